"""inspect() and compare(): what the commands of these names print with --json."""
from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from typing import Any

from . import arrays, commands
from .errors import ConversionError, diagnostics_of


def inspect(model: Any, **options: Any) -> dict[str, Any]:
    """The contents of a .sinter file, given as a path, bytes or a Report. `options`: flags of `sinter inspect`: steps=True, ..."""
    with tempfile.TemporaryDirectory(prefix="sinter-") as folder:
        return commands.call("inspect", commands.words("inspect", options, folder), [_file(model, folder, "model.sinter")])[1]


def compare(a: Any, b: Any, inputs: str | os.PathLike[str] | Mapping[str, Any], **options: Any) -> dict[str, Any]:
    """The differences between the outputs of an ONNX model, computed in float64, or a .sinter file `a`, and a .sinter file `b`.

    `inputs`: arrays by name, or a file of them. The result's "within" states whether they agree. `options`: flags of
    `sinter compare`: per_layer=True, min_sqnr=30, ...
    """
    with tempfile.TemporaryDirectory(prefix="sinter-") as folder:
        given = dict(options)
        if isinstance(inputs, Mapping):
            path = os.path.join(folder, "inputs.npz")
            arrays.save(path, inputs)
            given["inputs"] = path
        else:
            given["inputs"] = inputs
        files = [_file(a, folder, "a.onnx" if hasattr(a, "SerializeToString") else "a.sinter"), _file(b, folder, "b.sinter")]
        code, details, _ = commands.call("compare", commands.words("compare", given, folder), files)
        if code == 3:
            found = diagnostics_of(details)
            raise ConversionError("the ONNX model cannot be computed\n" + "\n".join(map(str, found)), found)
        return details


def _file(model: Any, folder: str, name: str) -> bytes:
    if hasattr(model, "SerializeToString"):
        data = model.SerializeToString()
    else:
        data = getattr(model, "data", None) if not isinstance(model, (bytes, bytearray, memoryview)) else bytes(model)
    if not isinstance(data, bytes):
        path = getattr(model, "path", model)
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"the model is {type(model).__name__}; give a path, bytes or a Report")
        return arrays.path_text(path)
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(data)
    return os.fsencode(path)
