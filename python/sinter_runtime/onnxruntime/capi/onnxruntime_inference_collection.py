"""Sessions and values, by the name of the module that has them in onnxruntime."""
from .._io_binding import IOBinding
from .._session import PROVIDER, InferenceSession, Session
from .._values import OrtDevice, OrtValue

__all__ = ["IOBinding", "InferenceSession", "OrtDevice", "OrtValue", "PROVIDER", "Session"]
