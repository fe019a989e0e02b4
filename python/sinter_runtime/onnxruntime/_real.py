"""The real onnxruntime, where it is installed and the user allows it: for models that Sinter refuses."""
from __future__ import annotations

import importlib
import importlib.machinery
import os
import sys
import threading
from types import ModuleType
from typing import Any

from . import _exceptions, _notes, _values

_lock = threading.Lock()
_module: ModuleType | None = None
_allowed: bool | None = None


def allow(allowed: bool | None) -> None:
    """Sets whether sessions may use it; None: as SINTER_ONNXRUNTIME_FALLBACK says."""
    global _allowed
    _allowed = allowed


def allowed(entry: str | None = None) -> bool:
    """Returns whether a session may use it. `entry`: the session's own setting, sinter.fallback."""
    if entry is not None:
        return entry not in ("0", "False", "false", "")
    if _allowed is not None:
        return _allowed
    return os.environ.get("SINTER_ONNXRUNTIME_FALLBACK", "") not in ("", "0")


def _entries() -> dict[str, ModuleType]:
    return {name: module for name, module in sys.modules.items() if name == "onnxruntime" or name.startswith("onnxruntime.")}


def load() -> ModuleType | None:
    """Returns the real module, also where sys.modules has this drop-in in its place; None where it is not installed."""
    global _module
    with _lock:
        if _module is None:
            replaced = _entries()
            first = replaced.get("onnxruntime")
            ours = first is not None and getattr(first, "sinter_version", None) is not None
            if ours:
                for name in replaced:
                    del sys.modules[name]
            try:
                _module = importlib.import_module("onnxruntime")
            except ImportError:
                return None
            finally:
                if ours:
                    for name in _entries():
                        del sys.modules[name]
                    sys.modules.update(replaced)
        return _module


def replace(modules: dict[str, ModuleType]) -> None:
    """Puts these modules in the place of onnxruntime's in sys.modules. The real module is kept if it was imported before."""
    global _module
    with _lock:
        before = _entries()
        if "onnxruntime" in before:
            _module = before["onnxruntime"]
        for name in before:
            del sys.modules[name]
        sys.modules.update(modules)


class Session:
    """A session of the real onnxruntime that takes and gives arrays. Its exceptions become those of the same name here."""

    def __init__(self, module: ModuleType, model: str | bytes, options: Any) -> None:
        self._module = module
        self._session = self._translated(lambda: module.InferenceSession(model, options.real(module), providers=["CPUExecutionProvider"]))
        self.outputs: list[str] = [output.name for output in self._session.get_outputs()]

    def run(self, names: list[str], feed: dict[str, Any]) -> list[Any]:
        given = {name: value._array if isinstance(value, _values.OrtValue) else value for name, value in feed.items()}
        result: list[Any] = self._translated(lambda: self._session.run(names, given))
        return result

    @staticmethod
    def _translated(call: Any) -> Any:
        try:
            return call()
        except Exception as error:
            kind = _exceptions.ALL.get(type(error).__name__)
            if kind is None or isinstance(error, _exceptions.OrtError):
                raise
            raise kind(str(error).split(" : ", 3)[-1]) from error


def session(model: str | bytes, options: Any, reason: str) -> Session | None:
    """Returns a session of the real onnxruntime, and says once why; None where it is not allowed or not installed."""
    if not allowed(options.entries.get("sinter.fallback")):
        return None
    module = load()
    if module is None:
        return None
    if reason:
        say(reason)
    return Session(module, model, options)


def say(reason: str) -> None:
    """Tells once why the real onnxruntime computes a model's runs."""
    _notes.say_once(f"the real onnxruntime runs a model. {reason}")


def advice() -> str:
    """Returns what to do about a model that Sinter refuses."""
    if importlib.machinery.PathFinder.find_spec("onnxruntime") is None:
        return "Change the model as stated, or install onnxruntime and set SINTER_ONNXRUNTIME_FALLBACK=1, so that it runs the model."
    return "Change the model as stated, or set SINTER_ONNXRUNTIME_FALLBACK=1, so that the installed onnxruntime runs it."
