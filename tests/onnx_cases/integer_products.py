"""ConvInteger and MatMulInteger: sums of products of bytes, which are exact, whoever reads them."""
import itertools

import numpy as np
from case import floats, ints, node, simple

RANGE = {np.uint8: (0, 255), np.int8: (-128, 127)}


def windows(x, w, zx, zw, strides, dilations, pads, group):
    """The sums of ConvInteger in int64."""
    axes = x.ndim - 2
    x = np.pad(x.astype(np.int64) - int(zx), [(0, 0), (0, 0), *((pads[i], pads[axes + i]) for i in range(axes))])
    w = w.astype(np.int64) - np.asarray(zw, np.int64).reshape([-1] + [1] * (w.ndim - 1))
    sizes = [(x.shape[2 + i] - dilations[i] * (w.shape[2 + i] - 1) - 1) // strides[i] + 1 for i in range(axes)]
    y = np.zeros((x.shape[0], w.shape[0], *sizes), np.int64)
    inputs, outputs = w.shape[1], w.shape[0] // group
    for g, tap in itertools.product(range(group), np.ndindex(*w.shape[2:])):
        places = tuple(slice(tap[i] * dilations[i], tap[i] * dilations[i] + strides[i] * (sizes[i] - 1) + 1, strides[i]) for i in range(axes))
        part = x[(slice(None), slice(g * inputs, (g + 1) * inputs), *places)]
        y[:, g * outputs:(g + 1) * outputs] += np.einsum("oc,nc...->no...", w[(slice(g * outputs, (g + 1) * outputs), slice(None), *tap)], part)
    return y


def bytes_of(name, dtype, *shape):
    low, high = RANGE[dtype]
    return ints(name, *shape, low=low, high=high, dtype=dtype)


def conv(name, x_type, w_type, x_dims, w_dims, zero="constant", zeros="one", strides=None, dilations=None, pads=None, group=1, holds=None,
         cast=False):
    """One ConvInteger whose sums are the model's output, as float32 where cast. zero: of x, none, constant or input; zeros: of w,
    none, one or each."""
    axes = len(x_dims) - 2
    strides, dilations, pads = strides or [1] * axes, dilations or [1] * axes, pads or [0] * (2 * axes)
    x, w = bytes_of(name + "x", x_type, *x_dims), bytes_of(name + "w", w_type, *w_dims)
    zx = x_type(0 if zero == "none" else 117 if x_type == np.uint8 else -29)
    zw = {"none": np.zeros(1, w_type), "one": np.array(100, w_type), "each": bytes_of(name + "z", w_type, w_dims[0])}[zeros]
    constants, inputs = {"w": w}, {"x": x}
    if zero != "none":
        (constants if zero == "constant" else inputs)["zx"] = np.array(zx)
    if zeros != "none":
        constants["zw"] = zw
    names = ["x", "w", "" if zero == "none" else "zx", "" if zeros == "none" else "zw"]
    given = windows(x, w, zx, zw, strides, dilations, pads, group).astype(np.int32)
    nodes = [node("ConvInteger", names, "sums" if cast else "y", strides=strides, dilations=dilations, pads=pads, group=group)]
    if cast:
        nodes.append(node("Cast", "sums", "y", to=1))
        given = given.astype(np.float32)
    return simple(f"convinteger_{name}", nodes, inputs, "y" if cast else "y:i", constants, expect="given", given={"y": given}, rtol=0, atol=0,
                  holds=holds or {})


def cases():
    u, c = np.uint8, np.int8
    on_bytes = {"QConv": 1, "Conv": 0}
    for (i, x_type), (j, w_type), zero, zeros in itertools.product(enumerate((u, c)), enumerate((u, c)), ("none", "constant", "input"),
                                                                   ("none", "one")):
        yield conv(f"{'uc'[i]}{'uc'[j]}_{zero}_{zeros}", x_type, w_type, (2, 5, 7, 6), (9, 5, 3, 2), zero, zeros, [2, 1], [1, 2], [1, 0, 2, 2],
                   holds=on_bytes)
    yield conv("each", u, u, (1, 4, 6, 6), (8, 4, 3, 3), zeros="each", pads=[1, 1, 1, 1], holds=on_bytes)
    yield conv("groups", u, c, (1, 6, 6, 6), (8, 3, 3, 3), "input", "one", pads=[1, 1, 1, 1], group=2, holds=on_bytes)
    yield conv("depthwise", u, c, (1, 6, 9, 6), (12, 1, 3, 3), "input", "none", [2, 1], [2, 1], [1, 1, 1, 1], 6,
               {"QDepthwiseConv": 1, "DepthwiseConv": 0})
    # Fast kernels of depthwise convolutions subtract no zero points of weights; these products are float32, which holds them exactly.
    yield conv("depthwise_zero", u, u, (1, 6, 9, 6), (12, 1, 3, 3), "input", "one", [2, 1], [2, 1], [1, 1, 1, 1], 6,
               {"QDepthwiseConv": 0, "DepthwiseConv": 1}, cast=True)
    yield conv("one_axis", u, c, (1, 4, 17), (6, 4, 5), "input", "one", [2], [2], [3, 1], holds=on_bytes)
    yield conv("three_axes", u, c, (1, 3, 5, 4, 6), (6, 3, 2, 3, 2), "input", "one", [1, 2, 1], [2, 1, 1], [1, 1, 0, 0, 1, 2], holds=on_bytes)
    yield conv("one_channel", u, c, (1, 1, 9, 8), (1, 1, 3, 3), "input", "none", pads=[1, 1, 1, 1], holds=on_bytes)
    # Sums that float32 does not hold stay integers.
    yield conv("deep", u, u, (1, 700, 3, 3), (4, 700, 3, 3), "input", "one", pads=[1, 1, 1, 1], holds={"Conv": 1, "QConv": 0})
    a, b = bytes_of("ma", u, 2, 3, 40), bytes_of("mb", c, 40, 7)
    for zero in ("constant", "input"):
        z = np.array(90, u)
        yield simple(f"matmulinteger_{zero}", node("MatMulInteger", "a b z", "y"), {"a": a, **({"z": z} if zero == "input" else {})}, "y:i",
                     {"b": b, **({"z": z} if zero == "constant" else {})}, expect="given",
                     given={"y": ((a.astype(np.int64) - 90) @ b.astype(np.int64)).astype(np.int32)}, rtol=0, atol=0,
                     holds={"QFullyConnected": 1, "FullyConnected": 0})
    yield from dynamic()


def dynamic():
    """A dynamically quantized convolution whose bias is added in integers, as quantizers of 2020 write it."""
    w, bias = ints("dw", 6, 4, 3, 3, high=255, dtype=np.uint8), floats("db", 6)
    nodes = [node("DynamicQuantizeLinear", "x", "q s z"), node("ConvInteger", "q w z zw", "sums", pads=[1, 1, 1, 1]),
             node("Mul", "s ws", "scale"), node("Div", "b scale", "steps"), node("Floor", "steps", "whole"),
             node("Cast", "whole", "bi", to=6), node("Reshape", "bi dims", "br"), node("Add", "sums br", "t"), node("Cast", "t", "f", to=1),
             node("Mul", "f scale", "y")]
    yield simple("convinteger_bias_of_integers", nodes, {"x": floats("dx", 1, 4, 9, 8)}, "y",
                 {"w": w, "zw": np.uint8(121), "ws": np.float32(0.01), "b": bias, "dims": np.array([1, 6, 1, 1])}, holds={"QConv": 1, "Conv": 0})
    scales, w8 = floats("sw", 5, 1, 1, low=0.005, high=0.02), ints("ew", 5, 4, 1, 1, low=-128, high=127, dtype=np.int8)
    nodes = [node("DynamicQuantizeLinear", "x", "q s z"), node("ConvInteger", "q w z zw", "s0", pads=[1, 1, 1, 1]),
             node("Cast", "s0", "f0", to=1), node("Mul", "s ws", "k0"), node("Mul", "f0 k0", "a"),
             node("ConvInteger", "q w8 z", "s1"), node("Cast", "s1", "f1", to=1), node("Mul", "s sw", "k1"), node("Mul", "f1 k1", "m"),
             node("Add", "m b8", "c")]
    yield simple("convinteger_two_of_one_x", nodes, {"x": floats("dx", 2, 4, 9, 8)}, "a c",
                 {"w": w, "zw": np.uint8(121), "ws": np.float32(0.01), "w8": w8, "sw": scales, "b8": floats("eb", 1, 5, 1, 1)},
                 holds={"QConv": 2, "Conv": 0, "DynamicQuantize": 1})
