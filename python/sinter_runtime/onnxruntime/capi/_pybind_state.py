"""The same names as onnxruntime_pybind11_state, as onnxruntime's own modules import them."""
from .onnxruntime_pybind11_state import *  # noqa: F401,F403
