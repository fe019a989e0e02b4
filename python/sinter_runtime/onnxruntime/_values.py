"""Values that sessions take and give: element types, OrtValue, the arrays of a feed."""
from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from .. import arrays, errors
from ._exceptions import InvalidArgument
from ._onnx_file import ELEMENT_TYPES, Value

Array = np.ndarray[Any, Any]

# Names of NumPy's types, and of those of ml_dtypes, for onnxruntime's names where they differ.
_NUMPY_NAMES = {"float": "float32", "double": "float64"}
_ORT_NAMES = {numpy: ort for ort, numpy in _NUMPY_NAMES.items()}
_ORT_NAMES.update(float8_e4m3fn="float8e4m3fn", float8_e4m3fnuz="float8e4m3fnuz", float8_e5m2="float8e5m2",
                  float8_e5m2fnuz="float8e5m2fnuz", float8_e8m0fnu="float8e8m0")
_NUMBERS = {name: number for number, name in ELEMENT_TYPES.items()}


def type_name(dtype: np.dtype[Any]) -> str:
    """Returns onnxruntime's name of a NumPy type: tensor(float)."""
    name = "string" if dtype.kind in "OUS" else _ORT_NAMES.get(dtype.name, dtype.name)
    return f"tensor({name})"


def dtype_of(type_text: str) -> np.dtype[Any] | None:
    """Returns the NumPy type of tensor(NAME); None where there is none."""
    if not type_text.startswith("tensor("):
        return None
    name = type_text[len("tensor("):-1]
    if name == "string":
        return np.dtype(object)
    try:
        return arrays.dtype_of(_NUMPY_NAMES.get(name, name), name)
    except (TypeError, errors.ModelFileError):
        return None


def element_dtype(element: Any) -> np.dtype[Any]:
    """Returns the NumPy type of an element type, given as such or as a number of onnx.TensorProto."""
    if isinstance(element, int) and not isinstance(element, bool):
        found = dtype_of(f"tensor({ELEMENT_TYPES.get(element, '')})")
        if found is None:
            raise RuntimeError(f"the element type {element} has no NumPy type")
        return found
    kind: np.dtype[Any] = np.dtype(element)
    return kind


class NodeArg:
    """An input or output: `name`, `type` and `shape`, whose open dimensions are names or None."""

    __module__ = "onnxruntime.capi.onnxruntime_pybind11_state"

    def __init__(self, value: Value, free_dims: Mapping[str, int] = MappingProxyType({})) -> None:
        self.name = value.name
        self.type = value.type
        self.ranked = value.shape is not None
        # Whether the file leaves a size open.
        self.open = value.shape is None or any(not isinstance(dim, int) for dim in value.shape)
        self.dims = tuple(free_dims.get(dim, dim) if isinstance(dim, str) else dim for dim in value.shape or ())
        self.dtype = dtype_of(value.type)

    @property
    def shape(self) -> list[int | str | None]:
        return list(self.dims)

    def __str__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


class OrtDevice:
    """A place of memory. The CPU is the only one."""

    def __init__(self, kind: str = "cpu", number: int = 0) -> None:
        if str(kind).lower() != "cpu":
            raise RuntimeError(f"memory of the device '{kind}' does not exist here; give 'cpu'")
        self._number = number

    @staticmethod
    def make(device_type: str, device_id: int = 0, vendor_id: int = -1) -> OrtDevice:
        return OrtDevice(device_type, device_id)

    def device_type(self) -> str:
        return "cpu"

    def device_id(self) -> int:
        return self._number


class OrtValue:
    """An array that sessions take and give. It refers to the array that it is made of."""

    def __init__(self, ortvalue: Any, numpy_obj: Array | None = None) -> None:
        self._array: Array = ortvalue._array if isinstance(ortvalue, OrtValue) else ortvalue

    @classmethod
    def ortvalue_from_numpy(cls, numpy_obj: Array, /, device_type: str = "cpu", device_id: int = 0, vendor_id: int = -1) -> OrtValue:
        OrtDevice(device_type, device_id)
        if not isinstance(numpy_obj, np.ndarray) or numpy_obj.dtype.kind in "OUS":
            raise RuntimeError(f"an OrtValue is made of a NumPy array of numbers, not of {type(numpy_obj).__name__}")
        return cls(np.ascontiguousarray(numpy_obj) if numpy_obj.ndim else numpy_obj)

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: Array, /, onnx_element_type: int) -> OrtValue:
        return cls(np.ascontiguousarray(data).view(element_dtype(onnx_element_type)))

    @classmethod
    def ortvalue_from_shape_and_type(cls, shape: Sequence[int], element_type: Any, device_type: str = "cpu", device_id: int = 0,
                                     vendor_id: int = -1) -> OrtValue:
        OrtDevice(device_type, device_id)
        return cls(np.zeros(tuple(shape), element_dtype(element_type)))

    @classmethod
    def from_dlpack(cls, data: Any, /) -> OrtValue:
        return cls(np.from_dlpack(data))

    def __dlpack__(self, *, stream: Any = None) -> Any:
        return self._array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def _get_c_value(self) -> OrtValue:
        return self

    def data_ptr(self) -> int:
        return self._array.ctypes.data

    def device_name(self) -> str:
        return "cpu"

    def shape(self) -> list[int]:
        return list(self._array.shape)

    def data_type(self) -> str:
        return type_name(self._array.dtype)

    def element_type(self) -> int:
        return _NUMBERS[self.data_type()[len("tensor("):-1]]

    def tensor_size_in_bytes(self) -> int:
        return self._array.nbytes

    def has_value(self) -> bool:
        return True

    def is_tensor(self) -> bool:
        return True

    def is_sparse_tensor(self) -> bool:
        return False

    def is_tensor_sequence(self) -> bool:
        return False

    def numpy(self) -> Array:
        """Returns a copy of the elements."""
        return self._array.copy()

    def update_inplace(self, np_arr: Array) -> None:
        if np_arr.shape != self._array.shape or np_arr.dtype != self._array.dtype:
            raise RuntimeError(f"the OrtValue is {self.data_type()}{self.shape()}, but the array is "
                               f"{type_name(np_arr.dtype)}{list(np_arr.shape)}; give one of the same type and shape")
        np.copyto(self._array, np_arr)


def at_address(address: int, shape: Sequence[int], element_type: Any) -> Array:
    """Returns the caller's memory as an array."""
    dtype = element_dtype(element_type)
    count = int(np.prod(tuple(shape), dtype=np.int64)) * dtype.itemsize
    if count == 0:
        return np.empty(tuple(shape), dtype)
    memory = (ctypes.c_uint8 * count).from_address(address)
    array: Array = np.frombuffer(memoryview(memory), np.uint8).view(dtype).reshape(tuple(shape))
    return array


def to_array(arg: NodeArg, value: Any) -> Array:
    """Returns what a feed gives for an input as an array of its type and rank. Raises what onnxruntime does where it does not fit."""
    if isinstance(value, OrtValue):
        array = value._array
    elif isinstance(value, np.ndarray):
        array = np.asarray(value)
    elif isinstance(value, list):
        try:
            array = np.asarray(value, arg.dtype)
        except (TypeError, ValueError, OverflowError) as error:
            raise RuntimeError(f"the list for input '{arg.name}' is not an array of {arg.type}: {error}") from None
    else:
        raise RuntimeError(f"input '{arg.name}' is {type(value).__name__}, which sessions do not take; give a NumPy array")
    if array.dtype.kind in "US" and arg.dtype == object:
        array = array.astype(object)
    if arg.dtype is not None and array.dtype != arg.dtype:
        if array.dtype.newbyteorder() != arg.dtype:
            raise InvalidArgument(f"Unexpected input data type. Actual: ({type_name(array.dtype)}) , expected: ({arg.type}), which "
                                  f"input '{arg.name}' has; convert the array")
        array = array.astype(arg.dtype)
    if arg.ranked:
        array = _fitting(arg, array)
    return array


def _fitting(arg: NodeArg, array: Array) -> Array:
    dims = arg.dims
    if len(dims) != array.ndim:
        if not dims and array.size == 1:  # onnxruntime takes one element in any shape for a scalar
            return array.reshape(())
        raise InvalidArgument(f"Invalid rank for input: {arg.name}. The array has {array.ndim} dimensions, the model's input {len(dims)}: "
                              f"{arg.shape}")
    wrong = [f"index {i}: got {n}, expected {dim}" for i, (n, dim) in enumerate(zip(array.shape, dims)) if isinstance(dim, int) and n != dim]
    if wrong:
        raise InvalidArgument(f"Got invalid dimensions for input: {arg.name}, {'; '.join(wrong)}")
    return array
