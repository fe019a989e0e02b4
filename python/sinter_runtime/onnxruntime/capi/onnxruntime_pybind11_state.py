"""The names of onnxruntime's native module: exceptions, options and values."""
from .. import (get_all_providers, get_available_providers, get_build_info, get_device, get_version_string,
                set_default_logger_severity, set_default_logger_verbosity, set_seed)
from .._exceptions import (EngineError, EPFail, Fail, InvalidArgument, InvalidGraph, InvalidProtobuf, ModelLoadCanceled, ModelLoaded,
                           ModelRequiresCompilation, NoModel, NoSuchFile, NotFound, NotImplemented, RuntimeException)
from .._io_binding import IOBinding as SessionIOBinding
from .._options import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions
from .._session import InferenceSession, ModelMetadata
from .._values import NodeArg, OrtDevice, OrtValue

__all__ = ["EPFail", "EngineError", "ExecutionMode", "ExecutionOrder", "Fail", "GraphOptimizationLevel", "InferenceSession",
           "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "ModelLoadCanceled", "ModelLoaded", "ModelMetadata",
           "ModelRequiresCompilation", "NoModel", "NoSuchFile", "NodeArg", "NotFound", "NotImplemented", "OrtDevice", "OrtValue",
           "RunOptions", "RuntimeException", "SessionIOBinding", "SessionOptions", "get_all_providers", "get_available_providers",
           "get_build_info", "get_device", "get_version_string", "set_default_logger_severity", "set_default_logger_verbosity",
           "set_seed"]
