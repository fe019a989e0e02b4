"""Clashes that hand edits and half-finished conversions leave behind: quantization operands of any type and number,
tiny epsilons, integer sums."""
import numpy as np
from type_case import (bf16, d, doubtful, e4m3fn, e5m2, f16, f32, f64, floats, halves, i8, i32, i64, ints, match, node,
                       refuse, rng, u8)


def quantized(x, scale, zero, low, high):
    return np.clip(np.rint(d(x) / d(scale)) + zero, low, high)


def quantization():
    w, x = ints("lw", 4, 8, low=-128, high=128).astype(i8), floats("lx", 2, 8)
    scales, zeros = floats("ls", 4, low=0.01, high=0.1), np.array([1, 2, 3, 4], i8)
    for name, s, z in (("scalar_zero_point_of_four_scales", scales, i8(3)),
                       ("four_zero_points_of_one_scale", f32(0.02), zeros),
                       ("int32_zero_point_of_four_scales", scales, i32(3))):
        per = (d(w) - np.broadcast_to(d(z), 4)[:, None]) * np.broadcast_to(d(s), 4)[:, None]
        yield match(name, "quant.types", [node("DequantizeLinear", "w s z", "v", axis=0),
                                          node("Gemm", "x v", "y", transB=1)], {"x": x}, "y", d(x) @ per.T,
                    {"w": w, "s": s, "z": np.asarray(z)})
    yield match("integer_scales", "quant.types",
                [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q t", "y")],
                {"x": np.array([1, 2.6, -3], f32)}, "y", np.array([2, 6, -6]),
                {"s": i64(1), "z": i8(0), "t": i32(2)})
    yield match("zero_point_of_another_float8", "quant.zero", node("DequantizeLinear", "q s z", "y"),
                {"q": halves("lf8", 6, kind=e5m2)}, "y", d(halves("lf8", 6, kind=e5m2)) * 0.25,
                {"s": f32(0.25), "z": np.array(0, e4m3fn)}, opset=19)
    yield refuse("float8_zero_point_not_zero", "quant.zero", node("DequantizeLinear", "q s z", "y", name="here"),
                 {"q": halves("lf8", 6, kind=e5m2)}, "y", ["here", "DequantizeLinear", "z", "float8e4m3fn", "float8e5m2"],
                 {"s": f32(0.25), "z": np.array(1, e4m3fn)}, opset=19)
    a = np.linspace(-20, 20, 16, dtype=f32)
    for name, z, letter, low, high in (("uint8", i32(128), "B", 0, 255), ("int8", i64(-3), "c", -128, 127),
                                       ("uint8_from_f32", f32(128), "B", 0, 255)):
        yield match(f"quantize_zero_point_declared_{name}", "quant.zero", node("QuantizeLinear", "x s z", "y"), {"x": a},
                    f"y:{letter}", quantized(a, 0.125, d(z), low, high), {"s": f32(0.125), "z": np.asarray(z)})
    yield match("quantize_int64_zero_point_output_dtype", "quant.zero",
                node("QuantizeLinear", "x s z", "y", output_dtype=3), {"x": a.astype(f16)}, "y:c",
                quantized(a.astype(f16), 0.125, 0, -128, 127), {"s": f16(0.125), "z": i64(0)}, opset=21)
    yield match("quantize_int32_zero_point_read_as_int8", "quant.zero",
                [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s w", "y")], {"x": a}, "y",
                (quantized(a, 0.25, 3, -128, 127) - 3) * 0.25, {"s": f32(0.25), "z": i32(3), "w": i8(3)})
    yield doubtful("quantize_int32_zero_point_shared", "quant.zero",
                   [node("QuantizeLinear", "x s z", "q", name="here"), node("DequantizeLinear", "q s z", "y")], {"x": a},
                   "y", (quantized(a, 0.25, 128, 0, 255) - 128) * 0.25, {"s": f32(0.25), "z": i32(128)},
                   words=["here", "z", "int32", "uint8"])
    yield refuse("quantize_zero_point_beyond_the_result", "quant.zero", node("QuantizeLinear", "x s z", "y", name="here"),
                 {"x": a}, "y:B", ["here", "QuantizeLinear", "z", "int32", "300", "uint8"], {"s": f32(1), "z": i32(300)})
    q = rng("lq").integers(0, 16, (32, 16)).astype(u8)
    per, zero = halves("lps", 2, 16, low=0.01, high=0.02), halves("lpz", 2, 16, low=5, high=9)
    weight = (d(q) - np.repeat(d(zero), 16, 0)) * np.repeat(d(per), 16, 0)
    b = halves("lpx", 2, 32)
    yield doubtful("fractional_zero_point_per_block", "quant.zero",
                   [node("DequantizeLinear", "q s z", "v", axis=0, block_size=16), node("MatMul", "x v", "y")], {"x": b},
                   "y:h", d(b) @ weight, {"q": q, "s": per, "z": zero}, opset=21, words=["z", "float16"])
    c, k, s = (ints("lc", 1, 2, 4, 4, low=0, high=256).astype(u8), ints("lk", 3, 2, 1, 1, low=-100, high=100).astype(i8),
               np.array([2.0**-8, 2.0**-9, 2.0**-7], f16))
    bias = ints("lb", 3, low=-500, high=500).astype(i64)
    acc = np.einsum("nchw,oc->nohw", d(c) - 128, d(k)[:, :, 0, 0]) + d(bias).reshape(1, 3, 1, 1)
    yield match("qlinearconv_operands_of_seven_types", "quant.types",
                node("QLinearConv", "x xs xz w ws wz ys yz b", "y"), {"x": c}, "y:B",
                quantized(acc * (d(s) * 2.0**-7).reshape(1, 3, 1, 1), 2.0**-5, 10, 0, 255),
                {"xs": f64(2.0**-7), "xz": i32(128), "w": k, "ws": s, "wz": i8(0), "ys": bf16(2.0**-5), "yz": u8(10),
                 "b": bias})


def tiny():
    x = np.array([0.0, 3.0])
    for kind, letter in ((f32, ""), (f16, ":h")):
        yield match(f"lone_epsilon_f64_beside_{np.dtype(kind).name}", "narrow.f64",
                    [node("Abs", "x", "a"), node("Add", "a e", "t"), node("Div", "x t", "y")], {"x": x.astype(kind)},
                    "y" + letter, np.array([0.0, 1.0]), {"e": f64(1e-60)}, strict=None)
    position, inverse = np.array([[0.0], [99999.0]], f32), 1 / 10000**(np.arange(0, 16, 2) / 16)[None]
    yield match("angles_of_f64_frequencies_with_float64_keep", "narrow.f64",
                [node("Mul", "p f", "a"), node("Cos", "a", "y")], {"p": position}, "y", np.cos(d(position) * inverse),
                {"f": inverse}, flags=("--float64", "keep"), strict=None)


def integers():
    a, b = ints("lea", 3, 4, low=0, high=256).astype(u8), ints("leb", 4, 5, low=-128, high=128).astype(i8)
    yield match("einsum_uint8_int8", "promote.int", node("Einsum", "a b", "y", equation="ij,jk->ik"), {"a": a, "b": b},
                "y:i", d(a) @ d(b))
    u = np.array([0, 100, 255], u8)
    half = node("Div", "t h", "y")
    yield match("uint8_minus_int64_literal_divided", "literal.weak", [node("Sub", "x c", "t"), half], {"x": u}, "y",
                (d(u) - 128) / 128, {"c": i64(128), "h": f32(128)})
    for op, c, value in (("Sub", i32(128), d(u) - 128), ("Mul", i64(3), d(u) * 3), ("Add", i32(-7), d(u) - 7)):
        yield match(f"uint8_{op.lower()}_literal_declared_int32", "literal.weak", node(op, "x c", "y"), {"x": u}, "y:i",
                    value, {"c": c}, strict=None)
    yield match("literal_minus_uint8_declared_int64", "literal.weak", node("Sub", "c x", "y"), {"x": u}, "y:l", 15 - d(u),
                {"c": i64(15)}, strict=None)
    yield match("uint32_minus_int32_literal_times_f16", "literal.weak", [node("Sub", "x c", "t"), node("Mul", "t s", "y")],
                {"x": np.array([0, 7, 15], np.uint32)}, "y", np.array([-4, -0.5, 3.5]),
                {"c": i32(8), "s": f16(0.5)}, strict=None)
    yield match("int8_times_int32_literal_read_as_float", "literal.weak",
                [node("Mul", "x c", "t"), node("Add", "t h", "y")], {"x": np.array([100, -100, 3], i8)}, "y",
                np.array([10000.5, -9999.5, 300.5]), {"c": i32(100), "h": f32(0.5)})
    with np.errstate(over="ignore"):
        yield match("uint8_minus_literal_declared_uint8_wraps", "int.exact", node("Sub", "x c", "y"), {"x": u}, "y:B",
                    u - u8(128), {"c": i64(128)})


def folded():
    """Constants that operators round to 16 bits on the way."""
    x = halves("lfx", 2, 64)
    v, g = floats("lfv", 16, 64, low=-120, high=120).astype(f16), floats("lfg", 16, 1, low=1, high=2)
    weight = d(g) * d(v) / np.sqrt((d(v)**2).sum(1, keepdims=True))
    yield match("weight_normalization_of_f16_constants", "accumulate.wide",
                [node("Mul", "v v", "q"), node("ReduceSum", "q a", "r"), node("Sqrt", "r", "n"), node("Div", "v n", "u"),
                 node("Mul", "u g", "w"), node("Transpose", "w", "t", perm=[1, 0]), node("MatMul", "x t", "y")],
                {"x": x}, "y:h", d(x) @ weight.T, {"v": v, "g": g, "a": np.array([1])})
    position, inverse = np.arange(0, 2000, 250)[:, None].astype(bf16), np.array([[1, 0.1, 0.01, 0.001]], bf16)
    yield match("angles_of_bf16_constants", "accumulate.wide",
                [node("Mul", "p f", "a"), node("Sin", "a", "s"), node("Mul", "x s", "y")],
                {"x": floats("lfs", 8, 4)}, "y", d(floats("lfs", 8, 4)) * np.sin(d(position) * d(inverse)),
                {"p": position, "f": inverse})
    acc = np.array([[10**7, 2 * 10**7, -5, 7]], i32)
    for name, inputs, constants in (("constant", {}, {"q": acc}), ("activation", {"q": acc}, {})):
        yield match(f"dequantized_beyond_float16_{name}", "accumulate.wide",
                    [node("DequantizeLinear", "q s", "t"), node("Add", "x t", "u"), node("Mul", "u c", "y")],
                    {"x": np.ones((1, 4), f32), **inputs}, "y", (1 + d(acc) * d(f16(0.01))) * d(f32(1e-3)),
                    {"s": f16(0.01), "c": f32(1e-3), **constants})
    w, s = ints("lfw", 40, 60, low=-128, high=127).astype(i8), halves("lfc", 60, low=0.01, high=0.02)
    yield match("int8_weights_f16_scales_f32_activation", "store.narrow",
                [node("DequantizeLinear", "w s", "v", axis=1), node("MatMul", "x v", "y")],
                {"x": floats("lfa", 2, 40)}, "y", d(floats("lfa", 2, 40)) @ (d(w) * d(s)), {"w": w, "s": s})


def cases():
    for group in (quantization, tiny, integers, folded):
        yield from group()
