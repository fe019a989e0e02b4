"""Edges that random nodes found (../differential): shapes that a run gives, empty axes, rare attributes."""
import numpy as np
from case import arr64, floats, graph, model, node, refused, simple
from onnx import TensorProto


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


def windows():
    """LpPool with ceil_mode whose window is longer than x and its pads; ConvTranspose of no pixels."""
    x = floats("short", 1, 2, 3, 7)
    for p in (1, 2):
        yield simple(f"lp_pool_ceil_short_{p}", node("LpPool", "x", "y", kernel_shape=[2, 3], dilations=[3, 3], strides=[2, 2], ceil_mode=1, p=p),
                     {"x": x}, opset=18)
    yield refused("conv_transpose_no_pixels", model(graph([node("ConvTranspose", "x w", "y", name="up")], {"x": floats("none", 1, 2, 0, 3)},
                                                          "y", {"w": floats("w", 2, 1, 2, 2)})), "'up'", "no elements along a spatial axis")
    roi = {"roi": np.array([0, 0, 0.1, 0.3, 1, 1, 0.8, 0.9], np.float32), "s": np.array([1, 1, 2, 1.5], np.float32)}
    yield simple("resize_crop_scales", node("Resize", "x roi s", "y", mode="linear", coordinate_transformation_mode="tf_crop_and_resize"),
                 {"x": floats("crop", 1, 2, 4, 6)}, constants=roi, opset=13)


def numbers():
    """Integers: roots and logarithms of large sums, fractions as factors; a bias of rank 0; bits as another type."""
    large = np.array([[-65127962, 615792918, 680130695], [630527797, 1137670823, -5]], np.int32)
    yield simple("reduce_l2_large", node("ReduceL2", "x", "y", axes=[1]), {"x": large}, "y:i", opset=13, steps=1)
    yield simple("reduce_log_sum_large", node("ReduceLogSum", "x", "y"), {"x": np.full((2, 2), 2**61, np.int64)}, "y:l", opset=13)
    a, b, c = (np.arange(k, k + 4).reshape(2, 2) for k in (1, -3, 2))
    want = (0.5 * (a @ b) + 1.5 * c).astype(np.int64)
    yield simple("gemm_integer_fractions", node("Gemm", "a b c", "y", alpha=0.5, beta=1.5), {"a": a, "b": b, "c": c}, "y:l",
                 expect="given", given={"y": want})
    yield simple("gemm_scalar_bias", node("Gemm", "a b c", "y"), {"a": floats("a", 3, 2), "b": floats("b", 2, 1), "c": np.array(1.5, np.float32)})
    half = floats("bits", 2, 3).astype(np.float16)
    yield simple("bit_cast_half", node("BitCast", "x", "y", to=TensorProto.UINT16), {"x": half}, "y:U", opset=26, ir=11,
                 expect="given", given={"y": half.view(np.uint16)})


def cases():
    yield from given_shapes()
    yield from windows()
    yield from numbers()
