"""The exceptions of onnxruntime: their names, their module and the number that begins their messages."""
from __future__ import annotations

MODULE = "onnxruntime.capi.onnxruntime_pybind11_state"


class OrtError(Exception):
    """The base of the exceptions that onnxruntime numbers. onnxruntime itself has no such base."""

    number = 1
    title = "FAIL"

    def __init__(self, message: str = "") -> None:
        super().__init__(f"[ONNXRuntimeError] : {self.number} : {self.title} : {message}")


class Fail(OrtError):
    """Something failed that has no exception of its own."""


class InvalidArgument(OrtError):
    """An array, a name or an option does not fit the model."""

    number, title = 2, "INVALID_ARGUMENT"


class NoSuchFile(OrtError):
    """The model's file does not exist."""

    number, title = 3, "NO_SUCHFILE"


class NoModel(OrtError):
    number, title = 4, "NO_MODEL"


class EngineError(OrtError):
    number, title = 5, "ENGINE_ERROR"


class RuntimeException(OrtError):
    """A run failed in the middle of the model."""

    number, title = 6, "RUNTIME_EXCEPTION"


class InvalidProtobuf(OrtError):
    """The file is not an ONNX model, or a damaged one."""

    number, title = 7, "INVALID_PROTOBUF"


class ModelLoaded(OrtError):
    number, title = 8, "MODEL_LOADED"


class NotImplemented(OrtError):  # noqa: A001, the name that onnxruntime has
    """Sinter refuses the model. The message has the nodes, the reasons and what to do."""

    number, title = 9, "NOT_IMPLEMENTED"


class InvalidGraph(OrtError):
    number, title = 10, "INVALID_GRAPH"


class EPFail(OrtError):
    number, title = 11, "EP_FAIL"


class ModelLoadCanceled(OrtError):
    number, title = 12, "MODEL_LOAD_CANCELED"


class ModelRequiresCompilation(OrtError):
    number, title = 13, "MODEL_REQUIRES_COMPILATION"


class NotFound(OrtError):
    number, title = 14, "NOT_FOUND"


ALL: dict[str, type[OrtError]] = {kind.__name__: kind for kind in OrtError.__subclasses__()}
for _kind in ALL.values():
    _kind.__module__ = MODULE
