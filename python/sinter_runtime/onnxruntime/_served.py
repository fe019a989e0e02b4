"""Converted models that run: one for each shape, with a Model for each thread that runs it at the same time."""
from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import Any, Generic, Hashable, TypeVar

from ..model import Model
from ._values import Array


class Served:
    """A converted model, for any number of threads."""

    def __init__(self, model: Model, convert_seconds: float) -> None:
        self._first = model
        self._idle = [model]
        self._count = 1
        self._lock = threading.Lock()
        self._ports = {port.name: port for port in model.inputs}
        self.convert_seconds = convert_seconds
        self.run_seconds = 0.0  # of the first run
        self.outputs = [port.name for port in model.outputs]

    def run(self, feed: dict[str, Array]) -> dict[str, Array]:
        """Runs the inputs that the model has; a constant's are part of it."""
        with self._lock:
            model = self._idle.pop() if self._idle else None
        if model is None:
            model = self._first.another()
            with self._lock:
                self._count += 1
        try:
            start = time.perf_counter() if self.run_seconds == 0.0 else 0.0
            result = model.run({name: array for name, array in feed.items() if name in self._ports})
            if start:
                self.run_seconds = time.perf_counter() - start
            return result
        finally:
            with self._lock:
                self._idle.append(model)

    def takes(self, shapes: dict[str, tuple[int, ...]]) -> bool:
        """Returns whether all inputs can have these shapes."""
        return all(name in shapes and len(shapes[name]) == len(ranges) and all(a <= n <= b for n, (a, b) in zip(shapes[name], ranges))
                   for name, ranges in self._first.ranges.items())

    @property
    def bytes(self) -> int:
        """The memory of all its models."""
        return self._first.memory_bytes * self._count

    @property
    def models(self) -> list[Model]:
        return [self._first, *self._idle]


K = TypeVar("K", bound=Hashable)


class Kept(Generic[K]):
    """The models that were used last, at most `most` of them, and within `most_bytes` of memory unless it is one."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._served: OrderedDict[K, Served] = OrderedDict()

    def get(self, key: K) -> Served | None:
        found = self._served.get(key)
        if found is not None:
            self._served.move_to_end(key)
        return found

    def put(self, key: K, served: Served) -> None:
        self._served[key] = served
        self._served.move_to_end(key)
        total = sum(one.bytes for one in self._served.values())
        while len(self._served) > 1 and (len(self._served) > self._most or total > self._most_bytes):
            total -= self._served.popitem(last=False)[1].bytes

    def values(self) -> list[Served]:
        return list(self._served.values())

    def clear(self) -> None:
        self._served.clear()

    def __len__(self) -> int:
        return len(self._served)


class Once(Generic[K]):
    """Work that threads want at the same time and that is done once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[K, threading.Event] = {}

    def begin(self, key: K) -> bool:
        """Returns True where the caller has to do the work, and call end(); else False, without waiting."""
        with self._lock:
            if key in self._running:
                return False
            self._running[key] = threading.Event()
            return True

    def end(self, key: K) -> None:
        with self._lock:
            self._running.pop(key).set()

    def wait(self, key: K) -> None:
        """Waits until nobody does the work."""
        with self._lock:
            event = self._running.get(key)
        if event is not None:
            event.wait()
