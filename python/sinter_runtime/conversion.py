"""convert(): an ONNX model becomes a .sinter file."""
from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import arrays, commands, samples
from .errors import ConversionError, Diagnostic, UsageError, diagnostics_of
from .progress import Printer

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .options import ConvertOptions


@dataclasses.dataclass(frozen=True)
class Report:
    """The outcome of a conversion. `details` is the object that `sinter convert --json` prints."""

    details: dict[str, Any] = dataclasses.field(repr=False)
    text: str = dataclasses.field(repr=False)  # as the command line prints it
    path: str | None  # of the file; None: it is in `data`
    data: bytes | None = dataclasses.field(repr=False)

    @property
    def diagnostics(self) -> list[Diagnostic]:
        return diagnostics_of(self.details)

    @property
    def warnings(self) -> list[Diagnostic]:
        return [d for d in self.diagnostics if d.severity == "warning"]

    @property
    def file_bytes(self) -> int:
        return int(self.details["file_bytes"])

    @property
    def arena_bytes(self) -> int:
        """The bytes of activations and workspaces, as planned."""
        return int(self.details["arena_bytes"])

    @property
    def session_bytes(self) -> int | None:
        """The bytes of all memory of a session on this machine; None where it was not measured."""
        return self.details.get("session_bytes")

    @property
    def quantized(self) -> dict[str, Any] | None:
        """The report of quantization: outputs with their SQNR, layers, remedies. None without quantize=."""
        return self.details.get("quantized")

    @property
    def accuracy(self) -> float | None:
        """The share of right answers on evaluate='s data; None without labels."""
        return self.details.get("top1")

    def __str__(self) -> str:
        return self.text


def convert(model: Any, output: str | os.PathLike[str] | None = None, *,
            progress: bool | Callable[[float, str], object] = False, **options: Unpack[ConvertOptions]) -> Report:
    """Converts an ONNX model. Raises ConversionError, with its diagnostics, where the model is refused.

    `model`: a path, the bytes of a file, or an onnx.ModelProto. `output`: the file to write; without it the result is
    Report.data. `progress`: a callable that takes the fraction done and the stage, or True to print. `options`: the flags of
    `sinter convert` with underscores (docs/python.md).
    """
    given: dict[str, Any] = dict(options)
    commands.check_names("convert", given)
    with tempfile.TemporaryDirectory(prefix="sinter-") as folder:
        source = _model_path(model, folder)
        for name in ("calibrate", "evaluate"):
            if name in given and given[name] is not None and not samples.is_path(given[name]):
                most = given.get("samples") if name == "calibrate" else None
                given[name] = samples.spool(given[name], folder, name, most)
        target = arrays.path_text(output) if output is not None else os.fsencode(os.path.join(folder, "model.sinter"))
        words = commands.words("convert", given, folder) + [b"--output=" + target]
        printer = Printer() if progress is True else None
        try:
            code, details, text = commands.call("convert", words, [source], printer or progress or None)  # type: ignore[arg-type]
        finally:
            if printer:
                printer.finish()
        if code != 0:
            raise _refusal(details)
        data = None
        if output is None:
            with open(target, "rb") as file:
                data = file.read()
        return Report(details, text, None if output is None else os.fsdecode(target), data)


def _model_path(model: Any, folder: str) -> bytes:
    if hasattr(model, "SerializeToString"):
        try:
            model = model.SerializeToString()
        except Exception as error:  # protobuf's own, of 2 GiB and more
            raise UsageError(f"the ModelProto cannot be serialized ({error}); save it with external data and give the path") from None
    elif isinstance(model, (str, os.PathLike)):
        return arrays.path_text(model)
    if not isinstance(model, (bytes, bytearray, memoryview)):
        raise TypeError(f"convert(): the model is {type(model).__name__}; give a path, bytes or an onnx.ModelProto")
    path = os.path.join(folder, "model.onnx")
    with open(path, "wb") as file:
        file.write(model)
    return os.fsencode(path)


def _refusal(details: dict[str, Any]) -> ConversionError:
    found = diagnostics_of(details)
    if "withheld" in details:
        reasons = [str(d) for d in found if d.severity == "warning"] if details["withheld"].startswith("strict=True") else []
        return ConversionError("\n".join([details["withheld"] + "; no file is written", *reasons]), found, details)
    reasons = [str(d) for d in found if d.severity == "refused"]
    return ConversionError("the model is refused; no file is written\n" + "\n".join(reasons), found)
