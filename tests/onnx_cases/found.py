"""Edges that random nodes found (../differential): shapes that a run gives, empty axes, rare attributes."""
import numpy as np
from case import arr64, floats, node, simple


def given_shapes():
    """Reshape by a shape known at run time: -1, 0 and allowzero in it, no elements, scalars."""
    def case(name, x, right, wrong, allowzero=0):
        shapes = [{"x": x, "s": arr64(*s)} for s in right]
        return simple(f"reshape_given_{name}", node("Reshape", "x s", "y", name="given", allowzero=allowzero), shapes[0],
                      more=shapes[1:], fails=[({"x": x, "s": arr64(*s)}, f"'given' (CheckLength): {words}") for s, words in wrong])
    three = floats("given", 2, 3, 4)
    yield case("two", three, [(6, 4), (-1, 4), (0, -1), (24, 1), (-1, 24)],
               [((5, -1), "24 elements do not fit"), ((-1, -1), "24 elements do not fit"), ((0, 0), "24 elements do not fit"),
                ((2, -3), "a part of -2 elements"), ((25, -1), "a part of 26 elements")])
    yield case("three", floats("given", 2, 3), [(0, 0, 1), (-1, 2, 1), (1, 0, -1)], [((0, 0, 0), "6 elements do not fit")])
    yield case("literal", three, [(2, 3, 4), (-1, 4, 2), (1, 24, 1)], [((0, -1, 2), "24 elements do not fit")], 1)
    yield case("empty_literal", floats("given", 0, 2), [(0, 5, 7), (2, 0, 1), (0, 0, 0), (-1, 2, 3)],
               [((1, 1, 1), "0 elements do not fit")], 1)
    yield case("empty", floats("given", 0, 3), [(0, 3), (-1, 3), (3, -1), (0, 5)], [((3, 0), "0 elements do not fit")])
    yield case("scalar", np.array(2.5, np.float32), [(1, 1), (-1, 1), (1, -1)], [((1, 2), "a part of 3 elements")])
    grow = [{"x": floats("given", 2, 3), "s": arr64(*s)} for s in ((2, 3), (1, 3), (2, 1), (1, 1))]
    yield simple("expand_given_by_one", node("Expand", "x s", "y"), grow[0], more=grow[1:])


def cases():
    yield from given_shapes()
