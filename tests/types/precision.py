"""Where a type's range or precision is the point: explicit Casts, float64, large integers, NaN and infinity."""
import numpy as np
from type_case import (arr64, bf16, body, const, d, doubtful, f16, f32, f64, floats, halves, i8, i16, i32, i64, match,
                       node, u8)


def casts():
    x = np.array([0.1, 1 / 3, 1234.567, 3e-8], f32)
    yield match("cast_f32_f16_f32_keeps_rounding", "cast.explicit",
                [node("Cast", "x", "h", to=10), node("Cast", "h", "y", to=1)], {"x": x}, "y", d(x.astype(f16)),
                unit="exact", strict=None)
    yield match("cast_f32_bf16_f32_keeps_rounding", "cast.explicit",
                [node("Cast", "x", "h", to=16), node("Cast", "h", "y", to=1)], {"x": x}, "y", d(x.astype(bf16)),
                unit="exact", strict=None)
    yield match("cast_f32_f16_rounding_before_sub", "cast.explicit",
                [node("Cast", "x", "h", to=10), node("Cast", "h", "w", to=1), node("Sub", "x w", "y")], {"x": x}, "y",
                d(x) - d(x.astype(f16)), strict=None)
    yield match("cast_f32_f16_rounding_into_mixed_add", "cast.explicit",
                [node("Cast", "x", "h", to=10), node("Mul", "h c", "y")], {"x": x}, "y", d(x.astype(f16)) * 1024,
                {"c": np.array([1024] * 4, f32)}, unit="exact", strict=None)
    yield match("cast_f32_f16_overflow_stays_inf", "cast.explicit",
                [node("Cast", "x", "h", to=10), node("Cast", "h", "y", to=1)],
                {"x": np.array([70000, -1e9, 65504, 65519], f32)}, "y", np.array([np.inf, -np.inf, 65504, 65504]),
                unit="exact", strict=None)
    yield match("cast_constant_f32_f16_overflow_stays_inf", "cast.explicit",
                [node("Cast", "c", "h", to=10), node("Cast", "h", "w", to=1), node("Max", "x w", "y")],
                {"x": np.array([1, 2], f32)}, "y", np.array([np.inf, 2]), {"c": np.array([1e6, -1e6], f32)},
                unit="exact", strict=None)
    yield match("cast_f16_f32_f16_round_trip", "cast.explicit",
                [node("Cast", "x", "w", to=1), node("Cast", "w", "y", to=10)], {"x": halves("ch", 5)}, "y:h",
                d(halves("ch", 5)), unit="exact")
    yield match("cast_f64_f32_f64_keeps_rounding", "cast.explicit",
                [node("Cast", "x", "s", to=1), node("Cast", "s", "y", to=11)], {"x": np.array([0.1, 1e-3])}, "y:d",
                d(np.array([0.1, 1e-3], f32)), unit="exact", strict=None)
    yield match("cast_f32_int8_to_f32_truncates", "cast.explicit",
                [node("Cast", "x", "i", to=6), node("Cast", "i", "y", to=1)], {"x": np.array([2.7, -2.7, 0.5], f32)},
                "y", np.array([2, -2, 0]), unit="exact", strict=None)
    yield match("cast_int64_int32_wraps", "cast.explicit", node("Cast", "x", "y", to=6),
                {"x": np.array([2**32 + 5, -(2**33) - 1, 7])}, "y:i", np.array([5, -1, 7]), strict=None)
    yield match("cast_int32_uint8_int32_wraps", "cast.explicit",
                [node("Cast", "x", "u", to=2), node("Cast", "u", "y", to=6)], {"x": np.array([300, -1, 5], i32)}, "y:i",
                np.array([44, 255, 5]), strict=None)
    yield match("cast_bool_chain", "cast.explicit",
                [node("Cast", "x", "b", to=9), node("Cast", "b", "y", to=7)], {"x": np.array([0.5, 0, -2], f32)}, "y:l",
                np.array([1, 0, 1]), strict=None)
    yield match("cast_int64_to_f32_beyond_2_24", "cast.explicit", node("Cast", "x", "y", to=1),
                {"x": np.array([16777217, 16777219, 2**40 + 1])}, "y", np.array([16777216, 16777220, 2**40]),
                unit="exact", strict=None)
    yield match("castlike_f16_of_f32", "cast.explicit", [node("CastLike", "x h", "t"), node("Add", "t h", "y")],
                {"x": x, "h": np.zeros(4, f16)}, "y:h", d(x.astype(f16)), unit="exact", strict=None)
    yield match("cast_opset5_string_attribute", "cast.explicit",
                [node("Cast", "x", "t", to="FLOAT"), node("Mul", "t c", "y")], {"x": np.array([3, 4], i32)}, "y",
                np.array([1.5, 2]), {"c": np.array([0.5, 0.5], f32)}, opset=5)


def doubles():
    t = np.array([1700000000.123456, 1700000000.5])
    yield match("timestamps_f64_difference", "narrow.f64",
                [node("Sub", "a b", "s"), node("Cast", "s", "y", to=1)], {"a": t, "b": np.array([1.7e9, 1.7e9])}, "y",
                t - 1.7e9, strict=None)
    yield match("timestamps_f64_initializer_epoch", "narrow.f64",
                [node("Sub", "a c", "s"), node("Cast", "s", "y", to=1)], {"a": t}, "y", t - 1.7e9,
                {"c": f64(1.7e9)}, strict=None)
    yield match("timestamps_f64_minus_f32_epoch", "promote.float", node("Sub", "a c", "y"), {"a": t}, "y",
                t - d(f32(1.7e9)), {"c": f32(1.7e9)}, strict=None)
    for word, position in (("f64", np.arange(1996, 2004.0)), ("int64", np.arange(1996, 2004))):
        inverse = 1.0 / 10000**(np.arange(0, 8, 2) / 8)
        angle = position[:, None] * inverse
        yield match(f"rotary_angles_position_2000_{word}", "narrow.f64",
                    [node("Einsum", "p f", "a", name="/pos_embed/Einsum_2", equation="n,d->nd"), node("Cos", "a", "c"),
                     node("Sin", "a", "s"), node("Cast", "c", "y", to=1), node("Cast", "s", "z", to=1)],
                    {"p": position}, "y z", {"y": np.cos(angle), "z": np.sin(angle)}, {"f": inverse}, unit="float32",
                    strict=None)
    inverse = 1.0 / 10000**(np.arange(0, 8, 2) / 8)
    x = halves("rotary", 8, 4)
    angle = np.arange(1996.0, 2004)[:, None] * inverse
    yield match("rotary_f64_angles_f16_activation", "narrow.f64",
                [node("Einsum", "p f", "a", equation="n,d->nd"), node("Cos", "a", "c"), node("Mul", "x c", "y")],
                {"p": np.arange(1996.0, 2004), "x": x}, "y", d(x) * np.cos(angle), {"f": inverse}, strict=None)
    yield match("rotary_angles_folded_in_double", "narrow.f64",
                [node("Range", "a b c", "p"), node("Unsqueeze", "p one", "u"), node("Mul", "u f", "t"),
                 node("Cos", "t", "s"), node("Mul", "x s", "y")], {"x": x}, "y", d(x) * np.cos(angle),
                {"a": f64(1996), "b": f64(2004), "c": f64(1), "one": arr64(1), "f": inverse[None]}, strict=None)
    # Frequencies in float64 and positions in less: the product is an angle of thousands, whose error is absolute.
    position, fine = np.array([0.0, 1, 8, 1024, 1992, 2000]), 1.0 / 10000**(np.arange(0, 56, 2) / 56)
    angle = position[:, None] * fine
    both = [node("Cos", "a", "c"), node("Sin", "a", "s"), node("Cast", "c", "y", to=1), node("Cast", "s", "z", to=1)]
    want = {"y": np.cos(angle), "z": np.sin(angle)}
    products = {"einsum": ([node("Einsum", "p f", "a", equation="n,d->nd")], fine),
                "matmul": ([node("Unsqueeze", "p one", "u"), node("MatMul", "u f", "a")], fine[None]),
                "mul": ([node("Unsqueeze", "p one", "u"), node("Mul", "u f", "v"), node("Concat", "v v", "w", axis=-1),
                         node("Slice", "w b e one", "a")], fine[None])}
    for word, (nodes, f) in products.items():
        for short, p in (("f16", position.astype(np.float16)), ("bf16", position.astype(bf16)), ("f32", f32(position))):
            rest = {"one": arr64(1), "b": arr64(0), "e": arr64(28)}
            used = {k: rest[k] for k in rest if any(k in n.input for n in nodes)}
            yield match(f"rotary_{word}_{short}_positions_f64_frequencies", "narrow.f64", nodes + both, {"p": p}, "y z", want,
                        {"f": f, **used}, unit="float32", strict=None)
    yield match("rotary_positions_cast_to_f64_f32_frequencies", "narrow.f64",
                [node("Cast", "p", "q", to=11), node("Einsum", "q f", "a", equation="n,d->nd")] + both,
                {"p": f32(position)}, "y z",
                {"y": np.cos(position[:, None] * d(f32(fine))), "z": np.sin(position[:, None] * d(f32(fine)))},
                {"f": f32(fine)}, unit="float32", strict=None)
    yield match("epsilon_f64_below_float32", "narrow.f64",
                [node("Add", "x e", "t"), node("Div", "x t", "y")], {"x": np.array([0.0, 1e-20, 1.0])}, "y",
                np.array([0.0, 1e-20, 1.0]) / (np.array([0.0, 1e-20, 1.0]) + 1e-60), {"e": f64(1e-60)}, strict=None)
    yield match("f64_constants_folded_in_double", "narrow.f64",
                [node("Sub", "a b", "t"), node("Mul", "t big", "u"), node("Mul", "x u", "y")],
                {"x": floats("fold", 3)}, "y", d(floats("fold", 3)), {"a": f64(1 + 2.0**-40), "b": f64(1),
                                                                    "big": f64(2.0**40)}, strict=None)
    yield match("f64_model_whole", "narrow.f64",
                [node("MatMul", "x w", "t"), node("Softmax", "t", "y", axis=-1)], {"x": d(floats("dx", 2, 3))}, "y:d",
                (lambda e: e / e.sum(-1, keepdims=True))(np.exp(d(floats("dx", 2, 3)) @ d(floats("dw", 3, 4)))),
                {"w": d(floats("dw", 3, 4))}, strict=None)
    yield match("f64_large_sum_cancels", "narrow.f64", node("Sub", "a b", "y"),
                {"a": np.array([1e16 + 2, 123456789.25]), "b": np.array([1e16, 123456789.0])}, "y:d",
                np.array([2, 0.25]), unit="exact", strict=None)
    yield match("f64_beyond_float32_range", "narrow.f64", [node("Mul", "a b", "t"), node("Mul", "t c", "y")],
                {"a": np.array([1e30]), "b": np.array([1e30])}, "y", np.array([1e10]), {"c": f64(1e-50)}, strict=None)
    yield match("f64_keep_flag_double_precision", "narrow.f64", [node("Exp", "x", "t"), node("Add", "t c", "y")],
                {"x": np.array([0.1, 0.2])}, "y:d", np.exp([0.1, 0.2]) + 1 / 3, {"c": f64(1 / 3)}, unit="float64",
                flags=("--float64", "keep"), strict=None)


def integers():
    yield match("int64_index_beyond_2_24_stays_exact", "narrow.i64",
                [node("Mul", "x c", "t"), node("Add", "t e", "y")], {"x": np.array([70000, 3])}, "y:l",
                np.array([70000 * 70000 + 1, 210001]), {"c": np.int64(70000), "e": np.int64(1)})
    yield match("int64_mod_buckets_of_hash", "narrow.i64", [node("Mod", "x c", "i"), node("Gather", "t i", "y")],
                {"x": np.array([10**15 + 3, 10**12 + 1])}, "y", d(floats("bucket", 7, 2))[[(10**15 + 3) % 7,
                                                                                          (10**12 + 1) % 7]],
                {"c": np.int64(7), "t": floats("bucket", 7, 2)})
    yield match("int32_shift_and_mask", "int.exact",
                [node("BitShift", "x s", "t", direction="RIGHT"), node("BitwiseAnd", "t m", "y")],
                {"x": np.array([0xF2345678, 0x87654321], np.uint32)}, "y:I", np.array([0xF23456 & 15, 0x876543 & 15]),
                {"s": np.uint32(8), "m": np.uint32(15)}, opset=18)
    yield match("bitwiseand_int32_int64", "promote.int", node("BitwiseAnd", "x m", "y"),
                {"x": np.array([-1, 0x1234], i32)}, "y:l", np.array([0xF0F0F0F0F, 0x1234 & 0xF0F0F0F0F]),
                {"m": np.int64(0xF0F0F0F0F)}, opset=18)
    yield match("bitshift_int32_arithmetic", "int.exact", node("BitShift", "x s", "y", name="here", direction="RIGHT"),
                {"x": np.array([-256, 255, -1], i32)}, "y:i", np.array([-16, 15, -1]), {"s": np.int32(4)}, strict=None)
    yield match("argmax_declared_int32", "output.declared", node("ArgMax", "x", "y", axis=1, keepdims=0),
                {"x": floats("am", 3, 5)}, "y:i", floats("am", 3, 5).argmax(1), strict=None)


def special_values():
    x = floats("nan", 3)
    yield doubtful("cast_of_constant_to_infinity", "cast.explicit",
                   [node("Cast", "c", "k", name="here", to=10), node("Add", "x k", "y")], {"x": halves("inf", 3)}, "y:h",
                   np.array([-np.inf, *(d(halves("inf", 3))[1:] + [2, np.inf])]), {"c": f32([-1e9, 2, 70000])},
                   words=("here", "Cast", "infinite", "float16", "70000"))
    h = halves("cl", 2)
    yield doubtful("castlike_of_constant_to_infinity", "cast.explicit",
                   [node("CastLike", "c x", "k", name="here"), node("Add", "x k", "y")], {"x": h}, "y:h",
                   np.array([np.inf, np.inf]), {"c": f32([1e6])}, words=("here", "CastLike", "infinite", "float16"))
    yield doubtful("cast_to_infinity_in_a_loop", "cast.explicit",
                   node("Loop", ["n", "", "x"], "y", name="loop", body=body(
                       [node("Cast", "k", "j", to=10, name="here"), node("Identity", "c", "e"), node("Min", "a j", "b")],
                       "i:l c:b a:h", "e:b b:h", {"k": f32([70000])})), {"x": h}, "y:h", h, {"n": np.int64(300)},
                   words=("here", "Cast", "infinite", "70000"))
    yield doubtful("cast_of_constant_cut_to_float8", "cast.explicit",
                   [node("Cast", "c", "k", name="here", to=17), node("Cast", "k", "w", to=1), node("Mul", "x w", "y")],
                   {"x": floats("f8", 2)}, "y", d(floats("f8", 2)) * np.array([448, 1]), {"c": f32([1e6, 1])},
                   words=("here", "Cast", "largest", "float8", "1000000"), opset=19)
    yield doubtful("nan_constant", "literal.weak", node("Add", "x c", "y", name="here"), {"x": x}, "y",
                   d(x) + np.array([0, np.nan, 1]), {"c": np.array([0, np.nan, 1], f32)}, ["nan"])
    yield match("inf_literal_f64_beside_f16", "literal.weak", node("Min", "x c", "y"), {"x": x.astype(f16)}, "y:h",
                d(x.astype(f16)), {"c": f64(np.inf)}, strict=None)
    yield match("finite_f32_weights_beyond_f16_not_clamped", "const.retype", node("Mul", "x c", "y"),
                {"x": np.array([1, 0.5, 2], f16)}, "y", np.array([1e6, -5e8, 131072]),
                {"c": np.array([1e6, -1e9, 65536], f32)}, strict=None)
    yield match("tiny_f32_literal_below_f16", "literal.weak", [node("Add", "x c", "t"), node("Log", "t", "y")],
                {"x": np.array([0, 1], f16)}, "y", np.log(np.array([1e-12, 1 + 1e-12])), {"c": f32(1e-12)}, strict=None)
    yield match("tiny_epsilon_f16_norm", "literal.weak",
                [node("ReduceL2", "x", "n", axes=[1]), node("Max", "n e", "m"), node("Div", "x m", "y")],
                {"x": np.zeros((1, 3), f16)}, "y:h", np.zeros((1, 3)), {"e": f32(1e-12)}, strict=None)


def declared():
    h, x = halves("dh", 4), floats("df", 4)
    yield match("declared_f32_computed_f16", "output.declared", node("Mul", "a a", "y"), {"a": h}, "y", d(h) * d(h),
                unit="float16")
    yield match("declared_f16_computed_f32", "output.declared", node("Exp", "x", "y"), {"x": x}, "y:h", np.exp(d(x)))
    yield match("declared_f64_computed_f32", "output.declared", node("Exp", "x", "y"), {"x": x}, "y:d", np.exp(d(x)))
    yield match("declared_bf16_computed_f16", "output.declared", node("Add", "a a", "y"), {"a": h}, "y:w", 2 * d(h))
    yield doubtful("declared_int64_computed_float", "output.declared", node("Mul", "x x", "y"), {"x": x}, "y:l",
                   d(x) * d(x), words=["y", "int64", "float32"], computed={"y": f32})
    yield doubtful("declared_int32_softmax", "output.declared", node("Softmax", "x", "y"), {"x": x}, "y:i",
                   np.exp(d(x)) / np.exp(d(x)).sum(), words=["y", "int32"], computed={"y": f32})
    yield match("declared_f32_computed_bool", "output.declared", node("Greater", "x z", "y"), {"x": x}, "y",
                (x > 0).astype(f64), {"z": f32(0)}, strict=None)
    yield match("declared_f32_computed_int64", "output.declared", node("ArgMax", "x", "y", keepdims=0), {"x": x}, "y",
                np.array(x.argmax(), f64), strict=None)


def cases():
    for group in (casts, doubles, integers, special_values, declared):
        yield from group()
