"""Calibration and evaluation data as files, which the converter reads several times, one sample at a time."""
from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from . import arrays
from .errors import DataError


def is_path(data: Any) -> bool:
    return isinstance(data, (str, bytes, os.PathLike))


def spool(data: Any, folder: str, what: str, most: int | None = None) -> str:
    """Writes the data to a new file or folder below `folder`, and returns its path.

    A mapping of stacked arrays, or a stack for a model of one input, becomes one file. Anything that can be iterated over,
    or a callable that returns such a thing, gives samples, of which `most` are taken: a file each. One sample is in memory
    at a time.
    """
    if isinstance(data, (Mapping, np.ndarray)):
        path = os.path.join(folder, what + (".npz" if isinstance(data, Mapping) else ".npy"))
        arrays.save(path, data)
        return path
    samples = data() if callable(data) else data
    if not isinstance(samples, Iterable):
        raise TypeError(f"{what} is {type(data).__name__}; give a path, arrays by name, an array, or samples that can be iterated "
                        "over")
    path = os.path.join(folder, what)
    os.mkdir(path)
    count = 0
    for sample in itertools.islice(samples, most):
        if not isinstance(sample, (Mapping, np.ndarray)):
            raise DataError(f"{what}: sample {count} is {type(sample).__name__}; give arrays by name, or an array for a model of "
                            "one input")
        arrays.save(os.path.join(path, f"{count:09}" + (".npz" if isinstance(sample, Mapping) else ".npy")), sample)
        count += 1
    if count == 0:
        raise DataError(f"{what}: the iterator gave no samples; a generator can be used only once")
    return path
