"""evaluate(): a measure of a model's outputs for many samples."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from .errors import DataError, InputError
from .model import Array, Model, Port, load


def evaluate(model: Any, samples: Any, metric: Callable[[dict[str, Array]], float]) -> float:
    """The metric of the outputs for all samples.

    `model`: a Model, or what load() takes. `samples`: a dict of stacked arrays ([N, d1, ...] where the model takes [1, d1, ...],
    else [N] and the model's shape; other names are ignored), or dicts of one sample each, from a list, a generator, or a function
    that returns such a thing. `metric`: takes the outputs, stacked likewise, by name, and returns a number.
    """
    net = model if isinstance(model, Model) else load(model)
    kept: dict[str, list[Array]] = {port.name: [] for port in net.outputs}
    for sample in _each(net, samples):
        for name, array in net.run(sample).items():
            kept[name].append(array.copy())
    if not all(kept.values()):
        raise DataError("evaluate(): there are no samples; a generator can be used only once")
    return float(metric({name: _stacked(name, arrays) for name, arrays in kept.items()}))


def _each(net: Model, samples: Any) -> Iterator[Mapping[str, Array]]:
    if isinstance(samples, Mapping):
        stacks = {port.name: _samples_of(port, samples) for port in net.inputs if port.name in samples or port.name not in net.bound}
        counts = {name: len(stack) for name, stack in stacks.items()}
        if len(set(counts.values())) > 1:
            raise DataError(f"evaluate(): the arrays hold different numbers of samples: {counts}; give as many of each")
        for i in range(min(counts.values(), default=0)):
            yield {name: stack[i, ...] for name, stack in stacks.items()}
        return
    given = samples() if callable(samples) else samples
    if not isinstance(given, Iterable):
        raise TypeError(f"evaluate(): the samples are {type(samples).__name__}; give arrays by name, or samples that can be iterated over")
    yield from given


def _samples_of(port: Port, arrays: Mapping[str, Any]) -> Array:
    """The stack as [N, *shape of the input]."""
    if port.name not in arrays:
        raise InputError(f"input '{port.name}' is missing; give a stack of arrays for it, {port.dtype.name}{list(port.shape)} each")
    stack = np.asarray(arrays[port.name])
    if port.shape[:1] == (1,) and stack.shape[1:] == port.shape[1:]:
        return stack[:, None]
    if stack.ndim == 0 or stack.shape[1:] != port.shape:
        raise InputError(f"input '{port.name}': an array of shape {list(stack.shape)} is not a stack of samples of {list(port.shape)}; "
                         "its first axis counts the samples")
    return stack


def _stacked(name: str, arrays: list[Array]) -> Array:
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1:
        raise DataError(f"evaluate(): output '{name}' has a different length in each sample, and cannot be stacked; call run() for each")
    one = arrays[0].shape[:1] == (1,)
    return np.concatenate(arrays) if one else np.stack(arrays)
