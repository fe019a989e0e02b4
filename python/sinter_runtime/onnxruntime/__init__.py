"""onnxruntime's Python API on Sinter: `import sinter_runtime.onnxruntime as ort`.

    session = ort.InferenceSession("net.onnx")
    outputs = session.run(None, {"image": image})

install() puts this module in the place of onnxruntime for packages that import that. docs/python.md describes what differs.
"""
from __future__ import annotations

import sys
from typing import NoReturn

from .. import __version__ as sinter_version
from . import _notes, _real
from ._io_binding import IOBinding
from ._options import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions
from ._session import PROVIDER, InferenceSession, ModelMetadata
from ._values import NodeArg, OrtDevice, OrtValue

# The version of onnxruntime whose API this is.
__version__ = "1.31.1"

SessionIOBinding = IOBinding

__all__ = ["ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "IOBinding", "InferenceSession", "ModelMetadata", "NodeArg",
           "OrtDevice", "OrtValue", "RunOptions", "SessionIOBinding", "SessionOptions", "allow_fallback", "get_all_providers",
           "get_available_providers", "get_build_info", "get_device", "get_version_string", "install", "set_default_logger_severity",
           "set_default_logger_verbosity", "set_seed", "sinter_version"]


def get_available_providers() -> list[str]:
    return [PROVIDER]


def get_all_providers() -> list[str]:
    return [PROVIDER]


def get_device() -> str:
    return "CPU"


def get_version_string() -> str:
    return __version__


def get_build_info() -> str:
    return f"Sinter {sinter_version}, with the API of onnxruntime {__version__}"


def set_default_logger_severity(severity: int) -> None:
    """Sets the lowest severity that is logged: 0 (verbose) to 4 (fatal)."""
    _notes.set_severity(severity)


def set_default_logger_verbosity(verbosity: int) -> None:
    """Does nothing: there is one verbosity."""


def set_seed(seed: int) -> None:
    """Does nothing: random operations of a converted model have the seed of the model."""


def set_global_thread_pool_sizes(intra_op_num_threads: int, inter_op_num_threads: int) -> None:
    _notes.say_once("set_global_thread_pool_sizes() has no meaning for Sinter; set SessionOptions.intra_op_num_threads")


def disable_telemetry_events() -> None:
    """Does nothing: nothing is sent anywhere."""


def enable_telemetry_events() -> None:
    """Does nothing: nothing is sent anywhere."""


def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: str | None = None) -> None:
    """Does nothing: no libraries of devices are used."""


def allow_fallback(allowed: bool | None = True) -> None:
    """Lets the real onnxruntime, where it is installed, run models that Sinter refuses; None: as SINTER_ONNXRUNTIME_FALLBACK says."""
    _real.allow(allowed)


def install(*, fallback: bool | None = None) -> None:
    """Makes `import onnxruntime` give this module, in this process. `fallback`: as allow_fallback()."""
    if fallback is not None:
        allow_fallback(fallback)
    this = sys.modules[__name__]
    if sys.modules.get("onnxruntime") is this:
        return
    _real.replace({"onnxruntime": this, "onnxruntime.capi": capi, "onnxruntime.capi._pybind_state": _pybind_state,
                   "onnxruntime.capi.onnxruntime_inference_collection": onnxruntime_inference_collection,
                   "onnxruntime.capi.onnxruntime_pybind11_state": onnxruntime_pybind11_state})


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(f"sinter_runtime.onnxruntime does not have '{name}'; docs/python.md lists what it has of onnxruntime")


# These modules take their names from this one.
from . import capi  # noqa: E402
from .capi import _pybind_state, onnxruntime_inference_collection, onnxruntime_pybind11_state  # noqa: E402
