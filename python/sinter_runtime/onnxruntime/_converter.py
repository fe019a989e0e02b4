"""One conversion: from the cache folder if it has the file, else from the ONNX model."""
from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import conversion, errors
from ..model import Model, load
from . import _cache, _notes
from ._exceptions import Fail, InvalidArgument
from ._options import SessionOptions
from ._served import Served
from ._source import Source
from ._values import Array, NodeArg

Progress = Callable[[float, str], object]


class Key(NamedTuple):
    """What a conversion is for: the shapes of the inputs, and the digests of those that are constants of it."""

    shapes: tuple[tuple[str, tuple[int, ...]], ...]
    constants: tuple[tuple[str, str], ...]


def digest(array: Array) -> str:
    """Returns a name for the array's type, shape and elements."""
    head = f"{array.dtype.str}{array.shape}".encode()
    return hashlib.sha256(head + np.ascontiguousarray(array).tobytes()).hexdigest()


class Converter:
    """Makes a model of the session's ONNX file for given shapes."""

    def __init__(self, source: Source, inputs: dict[str, NodeArg], options: SessionOptions) -> None:
        self._source = source
        self._inputs = inputs
        self._threads = options.threads
        self._fixed = {name: np.asarray(value.numpy() if hasattr(value, "numpy") else value)
                       for name, value in options.initializers.items()}
        self._options: dict[str, Any] = {"target": "native", **options.conversion}
        if self._threads > 8:
            self._options["plan_threads"] = self._threads
        self._cache = _cache.Cache(options.entries.get("sinter.cache") != "0")

    def __call__(self, key: Key, feed: dict[str, Array], progress: Progress | None = None) -> Served:
        """Returns the model for a key. `feed` has the values of its constants. Raises ConversionError."""
        names = [name for name, _ in key.constants]
        shapes = {name: shape for name, shape in key.shapes if self._inputs[name].open and name not in names}
        constants = {**self._fixed, **{name: feed[name] for name in names}}
        return self._make({"shape": shapes, "const": constants}, self._path(key), dict(key.shapes), progress)

    def with_ranges(self, plan: dict[str, Any], progress: Progress | None) -> Served:
        """Returns the model with ranges of sizes."""
        return self._make({**plan, "const": self._fixed}, self._path(plan), None, progress)

    def in_cache(self, key: Key) -> bool:
        """Returns whether the cache folder has the file; it may turn out to be damaged."""
        path = self._path(key)
        return path is not None and path.is_file()

    def _path(self, what: Any) -> Path | None:
        if not self._cache:
            return None
        fixed = {name: digest(array) for name, array in self._fixed.items()}
        return self._cache.path(self._source.digest, [what, fixed, {name: str(value) for name, value in self._options.items()}])

    def _make(self, options: dict[str, Any], path: Path | None, shapes: dict[str, tuple[int, ...]] | None,
              progress: Progress | None) -> Served:
        model = self._open(path, shapes) if path is not None else None
        seconds = 0.0
        if model is None:
            start = time.perf_counter()
            given = {**self._options, **{name: value for name, value in options.items() if value}}
            model = self._convert(given, path if self._cache.writable else None, progress)
            seconds = time.perf_counter() - start
            sizes = {name: value for name, value in options.items() if name in ("shape", "dim") and value}
            _notes.logger.info("the model was converted in %.2f s for %s", seconds, sizes or "its shapes")
        return Served(model, seconds)

    def _open(self, path: Path, shapes: dict[str, tuple[int, ...]] | None) -> Model | None:
        """Returns the model of a file in the cache; None where there is none, or where it is damaged or foreign."""
        try:
            model = load(path, threads=self._threads)
        except errors.FileError:
            return None
        except errors.Error:
            self._cache.remove(path)
            return None
        fits = all(port.name in self._inputs and (shapes is None or shapes[port.name] == port.shape) for port in model.inputs)
        if fits and [port.name for port in model.outputs] == [value.name for value in self._source.facts.outputs]:
            self._cache.used(path)
            return model
        self._cache.remove(path)
        return None

    def _convert(self, options: dict[str, Any], path: Path | None, progress: Progress | None) -> Model:
        source = self._source.to_convert
        try:
            if path is not None:
                try:
                    report = conversion.convert(source, path, progress=progress or False, **options)
                    self._cache.trim()
                    return load(report, threads=self._threads)
                except errors.FileError as error:
                    self._cache.stop_writing(str(error).replace(f"{path}: ", "a file "))
            return load(conversion.convert(source, progress=progress or False, **options), threads=self._threads)
        except (errors.UsageError, errors.DataError) as error:
            raise InvalidArgument(str(error)) from None
        except errors.FileError as error:
            raise Fail(str(error)) from None
