"""Operators of two or more operands, with operands of different types in every place where they can clash."""
import numpy as np
from type_case import (arr64, bf16, body, const, d, doubtful, f16, f32, f64, floats, halves, i8, i16, i32, i64, ints,
                       match, node, u8, u32, u64)


def floats_of_different_types():
    x, y = halves("x", 3, 4), floats("y", 3, 4)
    w = halves("w", 3, 4, kind=bf16)
    row = floats("row", 4)
    ops = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}
    for op, f in ops.items():
        low = op.lower()
        yield match(f"{low}_f16_activation_f32_initializer", "promote.float", node(op, "x c", "y", name="here"),
                    {"x": x}, "y", f(d(x), d(row)), {"c": row})
        yield match(f"{low}_two_activations_f16_f32", "promote.float", node(op, "a b", "y", name="here"),
                    {"a": x, "b": y}, "y", f(d(x), d(y)))
    yield match("add_two_activations_f16_bf16", "promote.float", node("Add", "a b", "y"), {"a": x, "b": w}, "y",
                d(x) + d(w))
    # bfloat16 holds 1e30 and float16 the last bits of 1.0009765625: neither half can hold the product.
    yield match("mul_bf16_beyond_float16", "promote.float", node("Mul", "a b", "y"),
                {"a": np.array([1e30, -3e-20, 5], bf16), "b": np.array([1.0009765625, 2, 3], f16)}, "y",
                d(np.array([1e30, -3e-20, 5], bf16)) * d(np.array([1.0009765625, 2, 3], f16)))
    yield match("add_f32_activation_bf16_initializer", "promote.float", node("Add", "x c", "y"), {"x": y}, "y",
                d(y) + d(w), {"c": w})
    yield match("mul_f32_constant_node_f16", "const.retype", [const("c", row.astype(f16)), node("Mul", "x c", "y")],
                {"x": y}, "y", d(y) * d(row.astype(f16)))
    yield match("add_f16_constant_node_f32_declared_f16", "const.retype", [const("c", row), node("Add", "x c", "y")],
                {"x": x}, "y:h", d(x) + d(row))
    yield match("add_f16_bias_f64_initializer", "narrow.f64", node("Add", "x c", "y"), {"x": x}, "y:h",
                d(x) + d(row) + 1e-9, {"c": d(row) + 1e-9})
    yield match("add_bf16_f64_initializer_declared_bf16", "narrow.f64", node("Mul", "x c", "y"), {"x": w}, "y:w",
                d(w) * d(row), {"c": d(row)})
    # 1 + 2^-11 + 2^-13 is above the middle between two float16 values; rounding by way of bfloat16 or twice loses that.
    c = np.array([1 + 2.0**-11 + 2.0**-30] * 2, f64)
    yield match("const_rounded_once_f64_to_f16", "const.retype",
                [node("Cast", "c", "h", to=10), node("Identity", "h", "t"), node("Mul", "x t", "y")],
                {"x": np.array([1, 2], f16)}, "y:h", np.array([1, 2]) * (1 + 2.0**-10), {"c": c}, unit="exact")
    for op, f in (("Max", np.maximum), ("Min", np.minimum)):
        yield match(f"{op.lower()}_of_four_types", "promote.float", node(op, "a b c e", "y", name="here"),
                    {"a": x, "b": y}, "y", f(f(f(d(x), d(y)), d(w)), 0.25),
                    {"c": w, "e": np.float64(0.25)})
    yield match("sum_of_three_types", "promote.float", node("Sum", "a b c", "y"), {"a": x, "b": y}, "y",
                d(x) + d(y) + d(w), {"c": w})
    yield match("mean_of_f16_and_f32", "promote.float", node("Mean", "a b", "y"), {"a": x, "b": y}, "y",
                (d(x) + d(y)) / 2)
    yield match("pow_f16_base_f32_exponent", "pow.base", node("Pow", "x e", "y"), {"x": np.abs(x)}, "y:h",
                np.abs(d(x))**2.5, {"e": np.float32(2.5)})
    yield match("pow_f32_base_int64_exponent", "pow.base", node("Pow", "x e", "y"), {"x": y}, "y", d(y)**2,
                {"e": np.int64(2)})
    yield match("pow_f16_base_f32_exponent_opset7", "pow.base", node("Pow", "x e", "y"), {"x": np.abs(x)}, "y:h",
                np.abs(d(x))**0.5, {"e": np.float32(0.5)}, opset=7)
    yield match("mod_fmod_f16_f32", "promote.float", node("Mod", "a b", "y", fmod=1), {"a": x, "b": y}, "y",
                np.fmod(d(x), d(y)))
    yield match("prelu_f16_slope_f32", "promote.float", node("PRelu", "x s", "y"), {"x": x}, "y:h",
                np.where(d(x) < 0, d(x) * d(row), d(x)), {"s": row})
    # One initializer, three consumers of different types.
    yield match("shared_initializer_three_consumers", "const.retype",
                [node("Add", "a c", "p"), node("Mul", "b c", "q"), node("Sub", "e c", "r")],
                {"a": x, "b": y, "e": w}, "p:h q:f r:w",
                {"p": d(x) + d(row), "q": d(y) * d(row), "r": d(w) - d(row)}, {"c": row})
    # The wide consumer must not get what was rounded for the narrow one.
    third = np.full(4, 1 / 3)
    yield match("shared_double_keeps_its_bits", "const.retype", [node("Mul", "a c", "p"), node("Mul", "b c", "q")],
                {"a": x, "b": d(y)}, "p:h q:d", {"p": d(x) / 3, "q": d(y) / 3}, {"c": third}, unit="")
    yield match("same_value_twice_other_types", "const.retype",
                [node("Cast", "x", "h", to=10), node("Add", "h x", "y")], {"x": y}, "y", d(y) + d(y.astype(f16)))


def comparisons():
    x = np.array([0.1, 0.09, 0.11, 0.3], f16)
    # float16(0.1) is 0.09998: less than 0.1.
    yield match("less_f16_threshold_f32", "literal.weak", node("Less", "x t", "y"), {"x": x}, "y:b", d(x) < 0.1,
                {"t": np.float32(0.1)})
    yield match("equal_f16_literal_f32_inexact", "literal.weak", node("Equal", "x t", "y"), {"x": x}, "y:b",
                d(x) == d(f32(0.3)), {"t": np.float32(0.3)})
    n = np.array([-1, 0, 1, 2, 3])
    yield match("less_int32_threshold_half", "promote.int-float", node("Less", "x t", "y"), {"x": n.astype(i32)}, "y:b",
                n < 0.5, {"t": np.float32(0.5)})
    yield match("greater_int64_threshold_f16", "promote.int-float", node("Greater", "x t", "y"), {"x": n}, "y:b",
                n > 1.5, {"t": f16(1.5)})
    yield match("equal_int64_int32", "promote.int", node("Equal", "a b", "y"),
                {"a": np.array([5, 2**32 + 5, -1]), "b": np.array([5, 5, -1], i32)}, "y:b",
                np.array([True, False, True]))
    yield match("less_uint8_int8", "promote.int", node("Less", "a b", "y"),
                {"a": np.array([200, 3, 255], u8), "b": np.array([-1, 4, -1], i8)}, "y:b",
                np.array([False, True, False]))
    yield match("greater_uint32_int32", "promote.int", node("GreaterOrEqual", "a b", "y"),
                {"a": np.array([2**32 - 1, 0, 7], u32), "b": np.array([-1, -1, 7], i32)}, "y:b",
                np.array([True, True, True]))
    yield doubtful("equal_int64_beyond_float", "promote.int-float", node("Equal", "a b", "y", name="here"),
                   {"a": np.array([16777217, 16777216, 3]), "b": np.array([16777216, 16777216, 3], f32)}, "y:b",
                   np.array([False, True, True]), words=["here", "Equal", "a", "b", "int64", "float32"])
    yield match("equal_f32_opset7", "promote.float", node("Equal", "a b", "y"),
                {"a": np.array([1.5, 2, 3], f32), "b": np.array([1.5, 2.5, 3], f32)}, "y:b",
                np.array([True, False, True]), opset=7)
    yield match("equal_bool_int64", "promote.bool", node("Equal", "a b", "y"),
                {"a": np.array([True, False, True]), "b": np.array([1, 0, 2])}, "y:b", np.array([True, True, False]))


def integers():
    n = np.array([-7, -2, 0, 3, 8, 100], i32)
    f = np.array([0.5, 1.5, -2, 0.25, 3, -0.125], f32)
    yield match("add_int32_f32", "promote.int-float", node("Add", "a b", "y"), {"a": n, "b": f}, "y", d(n) + d(f))
    yield match("mul_int64_f16_activation", "promote.int-float", node("Mul", "a b", "y"),
                {"a": n.astype(i64), "b": f.astype(f16)}, "y", d(n) * d(f), strict=None)
    yield match("div_int32_by_f32_literal", "promote.int-float", node("Div", "x c", "y"), {"x": n}, "y", d(n) / 2,
                {"c": np.float32(2)})
    yield match("div_f32_by_int64_initializer", "promote.int-float", node("Div", "x c", "y"), {"x": f}, "y", d(f) / 3,
                {"c": np.int64(3)})
    yield match("div_f16_by_int32_vector", "promote.int-float", node("Div", "x c", "y"), {"x": f.astype(f16)}, "y:h",
                d(f) / np.arange(1, 7), {"c": np.arange(1, 7, dtype=i32)})
    yield match("sub_int64_f32_beyond_2_24", "promote.int-float", node("Sub", "a b", "y"),
                {"a": np.array([16777217, 33554435, -5]), "b": np.array([16777216, 33554432, 2], f32)}, "y",
                np.array([1, 3, -7]), unit="exact", strict=None)
    yield match("add_f32_int64_initializer_beyond_2_24", "promote.int-float", node("Sub", "x c", "y"),
                {"x": np.array([16777216, 0], f32)}, "y:d", np.array([-1, -16777217]),
                {"c": np.array([16777217, 16777217])}, unit="exact", strict=None)
    yield match("add_uint8_f32", "image.u8", node("Add", "x c", "y"), {"x": np.array([0, 200, 255], u8)}, "y",
                np.array([0.5, 201.5, 257.5]), {"c": np.array([0.5, 1.5, 2.5], f32)})
    yield match("add_int8_int32_initializer", "promote.int", node("Add", "x c", "y"), {"x": np.array([100, -100], i8)},
                "y:i", np.array([1100, -1100]), {"c": np.array([1000, -1000], i32)})
    # Each number would fit int8; the sums would not.
    yield match("add_int8_int64_initializer_sum_beyond_int8", "promote.int", node("Add", "x c", "y"),
                {"x": np.array([100, -100], i8)}, "y:l", np.array([200, -200]), {"c": np.array([100, -100])})
    yield match("mul_int16_int32_initializer_beyond_int16", "promote.int", node("Mul", "x c", "y"),
                {"x": np.array([3000, -3], i16)}, "y:i", np.array([90000, -90]), {"c": np.array([30, 30], i32)})
    yield match("add_uint8_int8_activations", "promote.int", node("Add", "a b", "y"),
                {"a": np.array([250, 3], u8), "b": np.array([5, -9], i8)}, "y:s", np.array([255, -6]))
    yield match("mul_int32_int64_activations", "promote.int", node("Mul", "a b", "y"),
                {"a": np.array([2**30, -3], i32), "b": np.array([6, 7])}, "y:l", np.array([6 * 2**30, -21]))
    yield match("div_int64_by_int32", "promote.int", node("Div", "a b", "y"),
                {"a": np.array([7, -7, 2**40 + 1]), "b": np.array([2, 2, 3], i32)}, "y:l",
                np.array([3, -3, (2**40 + 1) // 3]))
    yield match("sub_uint32_int32", "promote.int", node("Sub", "a b", "y"),
                {"a": np.array([4000000000, 1], u32), "b": np.array([-5, 7], i32)}, "y:l", np.array([4000000005, -6]))
    yield match("div_int32_exact_hex", "int.exact", node("Div", "x c", "y"),
                {"x": np.array([0x12345678, 0x7fffffff, -0x12345679, 16777217], i32)}, "y:i",
                np.array([0x1234567, 0x7ffffff, -0x1234567, 0x100000]), {"c": np.int32(16)})
    big = np.array([2**62 + 12345, -(2**53) - 1, 10**18 + 7])
    yield match("div_int64_exact", "int.exact", node("Div", "x c", "y"), {"x": big}, "y:l",
                np.array([int(v / abs(v)) * (abs(int(v)) // 10) for v in big]), {"c": np.int64(10)})
    yield match("mod_int64_exact", "int.exact", node("Mod", "x c", "y"), {"x": big}, "y:l", big % 1000003,
                {"c": np.int64(1000003)})
    yield match("mod_int32_signs", "int.exact", node("Mod", "x c", "y"), {"x": np.array([-7, 7, -8, 8], i32)}, "y:i",
                np.array([2, -2, 1, -1]), {"c": np.array([3, -3, 3, -3], i32)})
    yield match("fmod_int32_signs", "int.exact", node("Mod", "x c", "y", fmod=1), {"x": np.array([-7, 7, -8, 8], i32)},
                "y:i", np.array([-1, 1, -2, 2]), {"c": np.array([3, -3, 3, -3], i32)})
    a, b = np.array([100, -100, 127, 50], i8), np.array([100, -100, 2, -1], i8)
    with np.errstate(over="ignore"):
        for op, g in (("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply)):
            yield match(f"{op.lower()}_int8_wraps", "int.exact", node(op, "a b", "y"), {"a": a, "b": b}, "y:c", g(a, b))
        s, t = np.array([30000, -30000, 300], i16), np.array([10000, -10000, 300], i16)
        yield match("add_mul_int16_wrap", "int.exact", [node("Add", "a b", "y"), node("Mul", "a b", "z")],
                    {"a": s, "b": t}, "y:s z:s", {"y": s + t, "z": s * t})
        u = np.array([200, 5], u8)
        yield match("sub_uint8_wraps", "int.exact", node("Sub", "a b", "y"), {"a": u, "b": u[::-1].copy()}, "y:B",
                    u - u[::-1])
        h = np.array([6364136223846793005, -1234567890123456789])
        yield match("hash_int64_wraps", "narrow.i64", [node("Mul", "x a", "t"), node("Add", "t b", "y")], {"x": h},
                    "y:l", h * np.int64(6364136223846793005) + np.int64(1442695040888963407),
                    {"a": np.int64(6364136223846793005), "b": np.int64(1442695040888963407)})
    yield match("div_int8_truncates", "int.exact", node("Div", "a b", "y"),
                {"a": np.array([-7, 7, 100], i8), "b": np.array([2, -2, 7], i8)}, "y:c", np.array([-3, -3, 14]))
    yield match("max_min_int64_opset8", "int.exact", [node("Max", "a b", "y"), node("Min", "a b", "z")],
                {"a": np.array([2**53 + 1, -3]), "b": np.array([2**53, 4])}, "y:l z:l",
                {"y": np.array([2**53 + 1, 4]), "z": np.array([2**53, -3])}, opset=8)
    yield match("max_int64_f32_zero", "promote.int-float", node("Max", "x c", "y"), {"x": np.array([-5, 7])}, "y:l",
                np.array([0, 7]), {"c": np.float32(0)}, strict=None)
    yield match("timestamps_int64_difference", "narrow.i64", [node("Sub", "a b", "t"), node("Cast", "t", "y", to=1)],
                {"a": np.array([1700000000123, 1700000001000]), "b": np.array([1700000000000, 1700000000999])}, "y",
                np.array([123.0, 1.0]), unit="exact")
    # No integer type holds both uint64 and int64; what is constant has known values.
    big = np.array([2**63 + 5, 2**64 - 1, 7], u64)
    yield match("uint64_with_int64_literals", "promote.int",
                [node("Div", "x two", "q"), node("Less", "x lim", "p")], {"x": big}, "q:L p:b",
                {"q": big // u64(2), "p": np.array([False, False, True])}, {"two": i64(2), "lim": np.array([2**62])})
    yield doubtful("add_f64_int64_array_beyond_2_53", "promote.int-float", node("Add", "x c", "y", name="here"),
                   {"x": np.array([1.0, 2.0])}, "y:d", np.array([2.0**53, 2.0**60]),
                   {"c": np.array([2**53 + 1, 2**60])}, ["here", "Add", "c"], unit="float64")
    yield match("int64_with_uint64_array", "promote.int", node("Add", "x c", "y"), {"x": np.array([-9, 2**62])}, "y:l",
                np.array([-8, 2**62 + 2]), {"c": np.array([1, 2], u64)})
    yield match("zero_f32_minus_uint8_declared_f32", "promote.int-float", node("Sub", "z x", "y"),
                {"x": np.array([5, 200], u8)}, "y", np.array([-5, -200]), {"z": f32(0)})
    yield match("concat_empty_f32_with_int64", "promote.int", node("Concat", "e x", "y", axis=0), {"x": np.array([4, 5])},
                "y:l", np.array([4, 5]), {"e": np.zeros(0, f32)})


def powers():
    n = np.array([4, 9, 16, 5])
    yield match("pow_int32_minus_one_float_consumer", "pow.base",
                [node("Pow", "x e", "t", name="here"), node("Mul", "t c", "y")], {"x": n.astype(i32)}, "y", 1.5 / n,
                {"e": np.int64(-1), "c": np.array([1.5] * 4, f32)}, strict=None)
    yield match("pow_int64_half_float_reader_behind_reshape", "pow.base",
                [node("Pow", "x e", "t"), node("Reshape", "t s", "u"), node("MatMul", "u c", "y")], {"x": n}, "y",
                np.array([[np.sqrt(n).sum() * 1.5]]),
                {"e": np.float32(0.5), "s": np.array([1, 4]), "c": np.full((4, 1), 1.5, f32)}, strict=None)
    # The standard's result would be whole numbers.
    yield doubtful("reducemean_of_int64_float_output_behind_sub", "promote.int-float",
                   [node("ReduceMean", "x", "m", axes=[1], name="here"), node("Sub", "x m", "y")],
                   {"x": np.array([[1, 2], [3, 5]])}, "y", np.array([[-0.5, 0.5], [-1, 1]]),
                   words=["here", "ReduceMean", "x", "int64", "floating point"])
    yield doubtful("reducemean_of_int64_declared_float", "promote.int-float",
                   node("ReduceMean", "x", "y", axes=[1], keepdims=0, name="here"), {"x": np.array([[1, 2], [3, 5]])}, "y",
                   np.array([1.5, 4]), words=["here", "ReduceMean", "x", "int64", "floating point"])
    # Through a Pow, too.
    yield doubtful("reducemean_of_int64_float_reader_behind_pow", "promote.int-float",
                   [node("ReduceMean", "x", "m", axes=[1], keepdims=0, name="here"), node("Pow", "m e", "p"),
                    node("Mul", "p c", "y")],
                   {"x": np.array([[1, 2], [3, 5]])}, "y", np.array([1.5**2, 4**2]) * 0.5,
                   {"e": np.int64(2), "c": np.array([0.5, 0.5], f32)}, ["here", "ReduceMean", "x", "int64"])
    yield match("pow_bool_base", "promote.bool", node("Pow", "x e", "y"), {"x": n > 5}, "y:i", np.array([0, 1, 1, 0]),
                {"e": np.int64(2)})
    yield doubtful("pow_int64_minus_one_declared_int", "pow.base", node("Pow", "x e", "y", name="here"),
                   {"x": np.array([1, 2])}, "y:l", np.array([1, 0]), {"e": np.float32(-1)}, ["here", "Pow"])
    yield match("pow_int32_half_declared_float", "pow.base", node("Pow", "x e", "y", name="here"),
                {"x": n.astype(i32)}, "y", np.sqrt(n), {"e": np.float32(0.5)}, strict=None)
    yield match("pow_int64_half_float_consumer", "pow.base",
                [node("Pow", "x e", "t", name="here"), node("Mul", "t c", "y")], {"x": n}, "y", np.sqrt(n) * 1.5,
                {"e": np.float32(0.5), "c": np.array([1.5] * 4, f32)}, strict=None)
    yield doubtful("pow_int64_fraction_declared_int", "pow.base", node("Pow", "x e", "y", name="here"), {"x": n}, "y:l",
                   np.array([2, 3, 4, 2]), {"e": np.float32(0.5)}, ["here", "Pow"], strict=(1, 3))
    yield match("pow_int64_exact", "int.exact", node("Pow", "x e", "y"), {"x": np.array([3, -7, 10])}, "y:l",
                np.array([3**18, 7**18, 10**18]), {"e": np.int64(18)})
    yield match("pow_int32_int64_exponent", "pow.base", node("Pow", "x e", "y"), {"x": np.array([2, -3, 7], i32)}, "y:i",
                np.array([2, -3, 7])**np.array([10, 3, 5]), {"e": np.array([10, 3, 5])})
    yield match("pow_float_literal_of_int_base_two", "pow.base", node("Pow", "x e", "y"), {"x": n.astype(i32)}, "y:i",
                n**2, {"e": np.float32(2)}, strict=None)


def one_operand():
    """Functions of numbers, given integers or bool."""
    n = np.array([1, 4, 9, 2], i32)
    ops = {"Sqrt": np.sqrt, "Exp": np.exp, "Cos": np.cos, "Tanh": np.tanh, "Reciprocal": lambda v: 1 / v,
           "Sigmoid": lambda v: 1 / (1 + np.exp(-v)), "Log": np.log}
    for k, (op, f) in enumerate(ops.items()):
        kind = (i32, i64, i64, i8, i32, u8, i64)[k]
        yield match(f"{op.lower()}_of_{np.dtype(kind).name}", "promote.int-float", node(op, "x", "y", name="here"),
                    {"x": n.astype(kind)}, "y", f(d(n)), strict=None)
    yield match("rsqrt_of_head_dimension_int64", "promote.int-float",
                [node("Shape", "x", "s", start=-1), node("Sqrt", "s", "r"), node("Div", "x r", "y")],
                {"x": floats("head", 2, 64)}, "y", d(floats("head", 2, 64)) / 8, opset=15, strict=None)
    yield match("softmax_of_int32", "promote.int-float", node("Softmax", "x", "y"), {"x": n[None] // 2}, "y",
                (lambda e: e / e.sum())(np.exp(d(n[None] // 2))), strict=None)
    yield match("neg_abs_relu_of_int8", "int.exact", [node("Neg", "x", "t"), node("Relu", "t", "u"),
                                                       node("Abs", "x", "v"), node("Add", "u v", "y")],
                {"x": np.array([-5, 7, 0], i8)}, "y:c", np.array([10, 7, 0]), strict=None)
    yield match("floor_and_round_of_int64", "int.exact", [node("Floor", "x", "t"), node("Round", "t", "y")],
                {"x": np.array([2**53 + 1, -3])}, "y:l", np.array([2**53 + 1, -3]), strict=None)
    image = ints("pool", 1, 2, 4, 4, high=255, dtype=u8)
    yield match("globalaveragepool_of_uint8_image", "image.u8", node("GlobalAveragePool", "x", "y"), {"x": image}, "y",
                d(image).mean((2, 3), keepdims=True), strict=None)
    yield match("averagepool_of_uint8_image", "image.u8",
                node("AveragePool", "x", "y", kernel_shape=[2, 2], strides=[2, 2]), {"x": image}, "y",
                d(image).reshape(1, 2, 2, 2, 2, 2).mean((3, 5)), strict=None)
    yield match("reducemean_of_uint8_declared_float", "image.u8", node("ReduceMean", "x", "y", axes=[2, 3], keepdims=0),
                {"x": image}, "y", d(image).mean((2, 3)), strict=None)
    # 0.1 is below the bfloat16 next to it.
    yield match("thresholdedrelu_bf16_attribute", "literal.weak", node("ThresholdedRelu", "x", "y", alpha=0.1),
                {"x": np.array([0.1, 1.5], bf16)}, "y:w", np.array([0.1, 1.5]))
    yield doubtful("reducel2_of_int32_declared_float", "promote.int-float",
                   node("ReduceL2", "x", "y", keepdims=0, name="here"), {"x": np.array([1, 2, 3], i32)}, "y", np.sqrt(14),
                   words=["here", "ReduceL2", "int32"])
    yield match("reducemean_of_bool_declared_float", "promote.bool", node("ReduceMean", "x", "y", keepdims=0),
                {"x": np.array([True, False, True, True])}, "y", np.array(0.75), strict=None)
    yield match("isnan_of_int32_is_false", "promote.int-float", node("IsNaN", "x", "y"), {"x": n}, "y:b",
                np.zeros(4, bool), strict=None)


def wrapping():
    """Small integers that leave their type before something reads them as more: done as written, and reported."""
    a, b = np.array([1, 200, 7, 90], u8), np.array([2, 100, 7, 91], u8)
    cast = node("Cast", "d", "y", to=1, name="reader")
    at = {"a": a, "b": b}
    yield doubtful("sub_uint8_wraps_before_cast", "int.exact", [node("Sub", "a b", "d", name="here"), cast], at, "y", a - b,
                   words=["here", "Sub", "uint8", "below 0", "reader"])
    yield doubtful("sub_uint8_wraps_before_cast_to_int32_behind_reshape", "int.exact",
                   [node("Sub", "a b", "c", name="here"), node("Reshape", "c s", "d"),
                    node("Cast", "d", "y", to=6, name="reader")], at, "y:i", (a - b).astype(i32).reshape(2, 2),
                   {"s": arr64(2, 2)}, words=["here", "Sub", "below 0", "reader"])
    yield doubtful("sub_uint32_wraps_before_cast", "int.exact",
                   [node("Sub", "a b", "d", name="here"), node("Cast", "d", "y", to=7)],
                   {"a": a.astype(u32), "b": b.astype(u32)}, "y:l", (a.astype(u32) - b.astype(u32)).astype(i64),
                   words=["here", "Sub", "uint32", "below 0"])
    yield doubtful("add_uint8_wraps_before_cast", "int.exact", [node("Add", "a b", "d", name="here"), cast], at, "y", a + b,
                   words=["here", "Add", "uint8", "range"])
    yield doubtful("mul_int8_wraps_before_cast", "int.exact", [node("Mul", "a b", "d", name="here"), cast],
                   {"a": a.astype(i8), "b": b.astype(i8)}, "y", a.astype(i8) * b.astype(i8),
                   words=["here", "Mul", "int8", "range"])
    yield match("sub_255_minus_uint8_before_cast", "int.exact", [node("Sub", "c a", "d"), cast], {"a": a}, "y", 255 - d(a),
                {"c": u8(255)})
    yield match("sub_uint8_read_as_uint8", "int.exact", node("Sub", "a b", "y"), at, "y:B", a - b)
    yield match("sub_of_cast_uint8", "int.exact",
                [node("Cast", "a", "i", to=6), node("Cast", "b", "j", to=6), node("Sub", "i j", "d"), cast], at, "y",
                d(a) - d(b))


def fractional_truths():
    """Only a whole number is clearly true or false: 0.5 counts as true, and is reported."""
    x, z = floats("ft", 3), floats("fz", 3)
    m = np.array([True, False, True])
    yield doubtful("where_condition_half", "input.table", node("Where", "c x z", "y", name="here"), {"x": x, "z": z}, "y",
                   x, {"c": np.array([0.5, 1, -0.25], f32)}, words=["here", "Where", "c", "0.5"])
    yield doubtful("and_half", "input.table", node("And", "m c", "y", name="here"), {"m": m}, "y:b", m,
                   {"c": np.array([0.5], f16)}, words=["here", "And", "c", "0.5"])
    yield doubtful("if_condition_half", "branch.edge",
                   node("If", "c", "y", name="here", then_branch=body([node("Neg", "x", "a")], "", "a"),
                        else_branch=body([node("Exp", "x", "b")], "", "b")), {"x": x}, "y", -x, {"c": f32(0.5)},
                   words=["here", "If", "0.5"])
    yield match("where_condition_whole_floats", "input.table", node("Where", "c x z", "y"), {"x": x, "z": z}, "y",
                np.array([x[0], z[1], x[2]]), {"c": np.array([1, 0, 2], f32)})


def booleans():
    m = np.array([True, False, True, True])
    x = floats("bool", 4)
    yield match("mul_bool_f32", "promote.bool", node("Mul", "m x", "y"), {"m": m, "x": x}, "y", m * d(x))
    yield match("sub_one_minus_bool", "promote.bool", node("Sub", "one m", "y"), {"m": m}, "y", 1.0 - m,
                {"one": np.float32(1)})
    yield match("mul_bool_f16_literal_large", "promote.bool", node("Mul", "m c", "y"), {"m": m}, "y", m * -1e9,
                {"c": np.float32(-1e9)})
    yield match("add_bool_int64", "promote.bool", node("Add", "m x", "y"), {"m": m, "x": np.array([5, 6, 7, 8])}, "y:l",
                m + np.array([5, 6, 7, 8]))
    yield doubtful("add_bool_bool_declared_int32", "promote.bool", node("Add", "m n", "y", name="here"),
                   {"m": m, "n": np.array([True, False, False, True])}, "y:i", np.array([2, 0, 1, 2]),
                   words=["here", "Add", "m", "n", "truth value", "Or"])
    yield match("mul_bool_bool", "promote.bool", node("Mul", "m n", "y"),
                {"m": m, "n": np.array([True, False, False, True])}, "y:b", np.array([True, False, False, True]),
                strict=None)
    yield match("reducesum_bool", "promote.bool", node("ReduceSum", "m", "y", keepdims=0), {"m": m}, "y:l", np.array(3),
                strict=None)
    yield match("cumsum_bool_positions", "promote.bool", node("CumSum", "m a", "y"), {"m": m}, "y:l",
                np.cumsum(m), {"a": np.int64(0)}, strict=None)
    yield match("and_bool_int64", "promote.bool", node("And", "m n", "y"), {"m": m, "n": np.array([2, 1, 0, 1])}, "y:b",
                np.array([True, False, False, True]))
    yield match("not_int32", "promote.bool", node("Not", "x", "y"), {"x": np.array([0, 1, 2], i32)}, "y:b",
                np.array([True, False, False]))
    yield match("or_uint8_bool", "promote.bool", node("Or", "a b", "y"),
                {"a": np.array([0, 255, 0, 1], u8), "b": m}, "y:b", np.array([True, True, True, True]))
    yield match("matmul_bool_f32", "promote.bool", node("MatMul", "m w", "y"),
                {"m": np.array([[True, False, True], [False, True, True]])}, "y",
                np.array([[1, 0, 1], [0, 1, 1]]) @ d(floats("bw", 3, 2)), {"w": floats("bw", 3, 2)})


def selections():
    m = np.array([True, False, True])
    x = halves("where", 3)
    y = floats("where2", 3)
    yield match("where_f16_f32_vector", "input.table", node("Where", "m x c", "y"), {"m": m, "x": x}, "y",
                np.where(m, d(x), d(y)), {"c": y})
    yield match("where_f16_f32_literal_beyond_f16", "literal.weak", node("Where", "m x c", "y"), {"m": m, "x": x}, "y",
                np.where(m, d(x), -1e9), {"c": np.float32(-1e9)})
    yield doubtful("where_condition_f32", "input.table", node("Where", "m x c", "y", name="here"),
                   {"m": np.array([0.5, 0, 1], f32), "x": y}, "y", np.where([1, 0, 1], d(y), 0), {"c": np.float32(0)},
                   words=["here", "Where", "m", "float32", "threshold"])
    for letter, c in (("int64", np.array([2, 0, 1])), ("u8", np.array([9, 0, 1], u8))):
        yield match(f"where_condition_{letter}", "input.table", node("Where", "m x c", "y"), {"m": c, "x": y}, "y",
                    np.where(c != 0, d(y), 0), {"c": np.float32(0)})
    yield match("where_int64_f32", "promote.int-float", node("Where", "m a b", "y"),
                {"m": m, "a": np.array([1, 2, 3]), "b": y}, "y", np.where(m, [1, 2, 3], d(y)), strict=None)
    yield match("where_int32_int64_literal", "promote.int", node("Where", "m a c", "y"),
                {"m": m, "a": np.array([1, 2, 3])}, "y:l", np.where(m, [1, 2, 3], -100), {"c": np.int32(-100)})
    yield match("where_bool_f32_branches", "promote.bool", node("Where", "m n x", "y"),
                {"m": m, "n": np.array([True, True, False]), "x": y}, "y", np.where(m, [1, 1, 0], d(y)))
    yield match("concat_f16_f32", "promote.float", node("Concat", "a b", "y", axis=0), {"a": x, "b": y}, "y",
                np.concatenate([d(x), d(y)]))
    yield match("concat_bf16_f16_initializer", "promote.float", node("Concat", "a c", "y", axis=0),
                {"a": x.astype(bf16)}, "y", np.concatenate([d(x.astype(bf16)), d(x)]), {"c": x})
    yield match("concat_bool_int64", "promote.bool", node("Concat", "a b", "y", axis=0),
                {"a": m, "b": np.array([5, 2**40])}, "y:l", np.array([1, 0, 1, 5, 2**40]))
    yield match("concat_int32_f32", "promote.int-float", node("Concat", "a b", "y", axis=0),
                {"a": np.array([1, -2], i32), "b": y}, "y", np.concatenate([[1, -2], d(y)]), strict=None)
    yield match("concat_int8_uint8", "promote.int", node("Concat", "a b", "y", axis=0),
                {"a": np.array([-1, 3], i8), "b": np.array([255], u8)}, "y:s", np.array([-1, 3, 255]))


def cases():
    for group in (floats_of_different_types, comparisons, integers, powers, one_operand, wrapping, fractional_truths,
                  booleans, selections):
        yield from group()
