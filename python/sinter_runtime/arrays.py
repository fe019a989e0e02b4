"""Element types and memory of arrays."""
from __future__ import annotations

import os
from typing import Any, Mapping, Sequence

import numpy as np

from . import _native
from .errors import ModelFileError

# Names in the file that NumPy has no type of its own for, and their names in the package ml_dtypes.
_ML_DTYPES = {"bfloat16": "bfloat16", "float8e4m3fn": "float8_e4m3fn", "float8e4m3fnuz": "float8_e4m3fnuz",
              "float8e5m2": "float8_e5m2", "float8e5m2fnuz": "float8_e5m2fnuz", "float8e8m0": "float8_e8m0fnu"}


def dtype_of(name: str, where: str) -> np.dtype[Any]:
    """Returns the NumPy type for a type of the file. `where` names the value in messages."""
    other = _ML_DTYPES.get(name)
    if other is None:
        return np.dtype(name)
    try:
        import ml_dtypes
    except ImportError:
        raise ModelFileError(f"{where} is {name}, a type that NumPy does not have; install the package ml_dtypes") from None
    kind: np.dtype[Any] = np.dtype(getattr(ml_dtypes, other))
    return kind


def storable(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Returns the array as .npy files hold it: types of ml_dtypes as the bits of an unsigned integer."""
    array = np.asarray(array)
    if array.dtype.kind == "V" and array.dtype.itemsize in (1, 2) and array.dtype.names is None:
        return array.view(np.uint8 if array.dtype.itemsize == 1 else np.uint16)
    if array.dtype.hasobject:
        raise TypeError(f"an array of {array.dtype} does not hold numbers; give one of numbers, such as float32")
    return array


def save(path: str, arrays: Mapping[str, Any] | Any) -> None:
    """Writes a .npz of named arrays, or a .npy of a single one. No pickles."""
    if isinstance(arrays, Mapping):
        np.savez(path, allow_pickle=False, **{_key(name): storable(array) for name, array in arrays.items()})
    else:
        np.save(path, storable(arrays), allow_pickle=False)


def _key(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"arrays are named by str, but one is named {name!r}")
    return name


def empty(shape: Sequence[int] | int, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    """Returns an uninitialized array that a model can be bound to (load(..., bind=...)): aligned, with padding behind it."""
    kind = np.dtype(dtype)
    dims = (shape,) if isinstance(shape, int) else tuple(shape)
    count = int(np.prod(dims, dtype=np.int64)) * kind.itemsize
    block = np.empty(count + _native.ALIGNMENT + _native.READ_PADDING, np.uint8)
    start = -block.ctypes.data % _native.ALIGNMENT
    array: np.ndarray[Any, Any] = block[start:start + count].view(kind).reshape(dims)
    return array


def bindable(array: np.ndarray[Any, Any]) -> bool:
    """Returns whether a model can be bound to the array's memory."""
    base: Any = array
    while isinstance(base.base, np.ndarray):
        base = base.base
    if base is array or base.base is not None or not array.flags.c_contiguous or not array.flags.writeable:
        return False
    behind = base.ctypes.data + base.nbytes - (array.ctypes.data + array.nbytes)
    return bool(array.ctypes.data % _native.ALIGNMENT == 0 and behind >= _native.READ_PADDING)


def path_text(path: str | bytes | os.PathLike[Any]) -> bytes:
    """Returns a path as the system takes it."""
    text = os.fsencode(path)
    if b"\0" in text:
        raise ValueError(f"the path {path!r} contains a null byte")
    return text
