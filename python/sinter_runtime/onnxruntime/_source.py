"""The ONNX model of a session: its bytes, or a file that stays open, so that later conversions read what the session was made of."""
from __future__ import annotations

import hashlib
import mmap
import os
import weakref
from typing import Any

from . import _cache, _onnx_file
from ._exceptions import Fail, InvalidArgument, InvalidProtobuf, NoSuchFile


def _state(state: os.stat_result) -> tuple[int, int, int, int]:
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns


class Source:
    """A model that can be converted many times."""

    def __init__(self, model: Any) -> None:
        self._digest: str | None = None
        self.path: str | None = None
        self.data: bytes | None = None
        if isinstance(model, bytes):
            self.data = model
            self.facts = self._read(model, "the given bytes")
        elif isinstance(model, (str, os.PathLike)):
            self._open(os.path.abspath(os.fspath(model)))
        else:
            raise TypeError(f"a session is made of a path or bytes, not of {type(model).__name__}")

    def _open(self, path: str) -> None:
        self.path = path
        if not os.path.exists(path):
            raise NoSuchFile(f"Load model from {path} failed: the file does not exist")
        if not os.path.isfile(path):
            raise InvalidProtobuf(f"Load model from {path} failed: it is not a file")
        try:
            self._file = open(path, "rb")
        except OSError as error:
            raise Fail(f"Load model from {path} failed: {error.strerror}") from None
        weakref.finalize(self, self._file.close)
        state = os.fstat(self._file.fileno())
        self._state = _state(state)
        if state.st_size == 0:
            self._read(b"", path)
        with mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            self.facts = self._read(data, path)
        self._others = {other: self._other(other) for other in _onnx_file.external_paths(self.facts, path)}

    def _other(self, path: str) -> tuple[int, int, int, int]:
        """Returns the state of a file that holds weights of the model."""
        try:
            return _state(os.stat(path))
        except OSError as error:
            raise Fail(f"{self.path}: its weights are in {path}, which cannot be read ({error.strerror}); put the file there") from None

    @staticmethod
    def _read(data: Any, name: str) -> _onnx_file.Facts:
        try:
            facts = _onnx_file.read(data)
        except _onnx_file.Damaged as error:
            raise InvalidProtobuf(f"Load model from {name} failed: {error}") from None
        if not facts.has_graph:
            raise InvalidArgument(f"No graph was found in {name}; it is not an ONNX model")
        return facts

    @property
    def digest(self) -> str:
        """The digest of the model and of the files that have its weights."""
        if self._digest is None:
            if self.data is not None:
                self._digest = hashlib.sha256(self.data).hexdigest()
            else:
                assert self.path is not None
                self._digest = _cache.digest_of_files([self._readable(), *self._others])
        return self._digest

    @property
    def to_convert(self) -> str | bytes:
        """What convert() takes."""
        return self.data if self.data is not None else self._readable()

    def _readable(self) -> str:
        """Returns a path of the file that was opened, even if it has been removed or another one has its name."""
        assert self.path is not None
        now = {path: self._other(path) for path in self._others}
        changed = [path for path, state in now.items() if state != self._others[path]]
        if _state(os.fstat(self._file.fileno())) != self._state:
            changed = [self.path]
        if changed:
            raise Fail(f"{changed[0]}: the file has changed since the session was made; make the session again")
        try:
            if _state(os.stat(self.path)) == self._state:
                return self.path
        except OSError:
            pass
        if self._others:
            raise Fail(f"{self.path}: the file has been replaced since the session was made, and its weights are in other files; "
                       "make the session again")
        return f"/proc/self/fd/{self._file.fileno()}"
