"""When a model gets a file with ranges of sizes: on request, or after several shapes that differ in named dimensions."""
from __future__ import annotations

from collections import OrderedDict
from typing import Any

from ._values import NodeArg

Shapes = tuple[tuple[str, tuple[int, ...]], ...]

SHAPES_BEFORE = 3  # shapes that are converted one by one before ranges are tried
MOST_NOTED = 4096


class Ranges:
    """The shapes that runs had, and what they say about the sizes of named dimensions."""

    def __init__(self, inputs: list[NodeArg], given: dict[str, str]) -> None:
        self._inputs = {arg.name: arg for arg in inputs}
        self._seen: OrderedDict[Shapes, int] = OrderedDict()
        self._low: dict[str, int] = {}
        self._high: dict[str, int] = {}
        self._planned: dict[str, Any] | None = None
        self._possible = True
        self.given = {name: self._pair(name, text) for name, text in given.items()}

    @staticmethod
    def _pair(name: str, text: str) -> tuple[int, int]:
        low, _, high = text.partition("..")
        if not (low.isdecimal() and high.isdecimal() and int(low) <= int(high)):
            raise RuntimeError(f"sinter.dim.{name} is {text!r}; give a smallest and a largest size, such as 1..128")
        return int(low), int(high)

    def note(self, shapes: Shapes) -> int:
        """Returns how many times these shapes were met, with this time."""
        times = self._seen[shapes] = self._seen.pop(shapes, 0) + 1
        if len(self._seen) > MOST_NOTED:
            self._seen.popitem(last=False)
        if times == 1:
            sizes = self._sizes(shapes)
            self._possible = self._possible and sizes is not None
            for name, n in (sizes or {}).items():
                self._low[name] = min(n, self._low.get(name, n))
                self._high[name] = max(n, self._high.get(name, n))
        return times

    def _sizes(self, shapes: Shapes) -> dict[str, int] | None:
        """Returns the sizes of the named dimensions; None where a name has two sizes."""
        sizes: dict[str, int] = {}
        for name, shape in shapes:
            for dim, n in zip(self._inputs[name].dims, shape):
                if isinstance(dim, str) and sizes.setdefault(dim, n) != n:
                    return None
        return sizes

    def plan(self, shapes: Shapes) -> dict[str, Any] | None:
        """Returns the options of a conversion with ranges that takes these shapes; None where there is no reason for one, or where
        dimensions that vary have no names."""
        if not self._possible or not self.given and len(self._seen) < SHAPES_BEFORE:
            return None
        dims: dict[str, Any] = {}
        fixed: dict[str, tuple[int, ...]] = {}
        for name, shape in shapes:
            arg = self._inputs[name]
            named = {dim: n for dim, n in zip(arg.dims, shape) if isinstance(dim, str)}
            if not arg.ranked or None in arg.dims:
                if any(self._varies(dim) for dim in named) or self._other_shapes(name, shape):
                    return None
                fixed[name] = shape
            else:
                dims.update({dim: self._range(dim) if self._varies(dim) else n for dim, n in named.items()})
        if not any(isinstance(n, tuple) for n in dims.values()):
            return None
        plan = {"dim": dims, "shape": fixed}
        if plan == self._planned:
            return None  # it was refused, or does not take the shapes
        self._planned = plan
        return plan

    def _varies(self, dim: str) -> bool:
        return dim in self.given or not self.given and self._low.get(dim) != self._high.get(dim)

    def _range(self, dim: str) -> tuple[int, int]:
        if dim in self.given:
            return self.given[dim]
        return min(1, self._low[dim]), 1 << (self._high[dim] - 1).bit_length()

    def _other_shapes(self, name: str, shape: tuple[int, ...]) -> bool:
        return any(dict(shapes)[name] != shape for shapes in self._seen)

    def refused(self) -> None:
        """No ranges are tried again: the model does not allow them."""
        self._possible = False
