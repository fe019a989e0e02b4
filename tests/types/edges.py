"""Where types have ends: integers that grow beyond 8 bits, bounds that no integer reaches, positions that 16-bit floats
cannot count, declared outputs that are too narrow, and what loops carry from turn to turn."""
import ml_dtypes
import numpy as np
from type_case import (bf16, body, const, d, doubtful, f16, f32, f64, floats, halves, i8, i32, i64, match, node, refuse, u8, u16,
                       u32)


def positions():
    x = floats("px", 300)
    yield match("range_bf16_beyond_256", "accumulate.wide", [node("Range", "a b c", "r"), node("Add", "r x", "y")],
                {"x": x}, "y", np.arange(300) + d(x), {"a": bf16(0), "b": bf16(300), "c": bf16(1)})
    yield match("range_f16_beyond_2048", "accumulate.wide",
                [node("Range", "a b c", "r"), node("Sub", "r x", "y")], {"x": x[:6]}, "y",
                np.arange(2047, 2053) - d(x[:6]), {"a": f16(2047), "b": i64(2053), "c": f16(1)})


def grown():
    a = np.array([200, 100, 7], u8)
    for kind, code in (("f32", 1), ("int32", 6), ("int64", 7)):
        yield match(f"reducesum_uint8_cast_to_{kind}", "promote.int",
                    [node("ReduceSum", "a", "t", keepdims=0), node("Cast", "t", "y", to=code)], {"a": a},
                    f"y:{ {'f32': 'f', 'int32': 'i', 'int64': 'l'}[kind]}", np.array(307))
    yield match("reducesumsquare_int8", "promote.int",
                [node("ReduceSumSquare", "a", "t", keepdims=0), node("Cast", "t", "f", to=1), node("Sqrt", "f", "y")],
                {"a": np.array([-120, 90], i8)}, "y", np.array(150.0))
    yield match("cumsum_uint16_declared_int32", "promote.int", node("CumSum", "a k", "y"),
                {"a": np.array([60000, 60000], u16)}, "y:i", np.array([60000, 120000]), {"k": i32(0)})
    yield match("cumsum_uint8_declared_uint8_wraps", "int.exact", node("CumSum", "a k", "y"), {"a": a}, "y:B",
                np.array([200, 300 - 256, 307 - 256]), {"k": f32(0)})


def bounds():
    a = np.array([5, 200], u8)
    yield match("clip_uint8_negative_bound", "input.table", node("Clip", "n a b", "y"), {"n": a}, "y:B",
                np.array([5, 100]), {"a": i32(-1), "b": i32(100)})
    yield match("clip_uint8_bound_300", "input.table", node("Clip", "n a b", "y"), {"n": a}, "y:B", np.array([10, 200]),
                {"a": f32(10), "b": f32(300)})
    yield match("clip_int32_infinity", "input.table", node("Clip", "n a b", "y"), {"n": np.array([5, -200], i32)},
                "y:i", np.array([5, 0]), {"a": f32(0), "b": f32(np.inf)})
    yield match("clip_int64_largest_float", "input.table", node("Clip", "n a b", "y"), {"n": np.array([5, -200])},
                "y:l", np.array([5, 0]), {"a": f16(0), "b": f32(3.4028235e38)})


def carried():
    step = body([node("Identity", "c", "d"), node("Add", "a one", "b")], "i:l c:b a:h", "d:b b:h")
    yield match("loop_carried_f16_counts_beyond_2048", "accumulate.wide", node("Loop", ["n", "", "m"], "y", body=step),
                {"m": np.array([2040], f16)}, "y:h", np.array([2060]), {"n": i64(20), "one": f16(1)})
    step = body([node("Add", "a x", "b"), node("Identity", "b", "o")], "a:w x:w", "b:w o:w")
    yield match("scan_bf16_state_sums_to_512", "accumulate.wide", node("Scan", "s xs", "y z", num_scan_inputs=1, body=step),
                {"s": np.array(0, bf16), "xs": np.ones(512, bf16)}, "y:w z:w",
                {"y": np.array(512), "z": np.arange(1, 513)})


def declared():
    x, n = floats("dx", 2, 5), np.array([3, 70000, -1])
    yield match("argmax_declared_uint8", "output.declared", node("ArgMax", "x", "y", axis=1, keepdims=0), {"x": x},
                "y:B", x.argmax(1))
    yield match("bool_sum_declared_float16", "output.declared", node("ReduceSum", "b", "y", keepdims=0),
                {"b": np.array([True, False, True])}, "y:h", np.array(2))
    yield match("int32_declared_int64", "output.declared", node("Mul", "n n", "y"), {"n": n[:1].astype(i32)}, "y:l",
                np.array([9]))
    yield doubtful("int64_declared_uint8", "output.declared", node("Add", "n k", "y", name="here"), {"n": n}, "y:B",
                   (n + 1).astype(u8), {"k": i64(1)}, words=["y", "uint8", "int64", "wraps"])
    yield doubtful("int64_declared_float32", "output.declared", node("Add", "n k", "y"), {"n": n}, "y", n + 1,
                   {"k": i64(1)}, words=["y", "float32", "int64", "rounds"])
    yield doubtful("uint32_declared_int32", "output.declared", node("Add", "n n", "y"), {"n": np.array([3], u32)}, "y:i",
                   np.array([6]), words=["y", "int32", "uint32"])


def quantized():
    u = floats("qu", 8, low=-3, high=3)
    for bits in ("int4", "uint4"):
        low, high = (-8, 7) if bits == "int4" else (0, 15)
        yield match(f"quantize_activation_to_{bits}_and_back", "quant.types",
                    [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "y")], {"x": u}, "y",
                    (np.clip(np.rint(d(u) / 0.25) + 2, low, high) - 2) * 0.25,
                    {"s": f32(0.25), "z": np.array(2, getattr(ml_dtypes, bits))}, opset=21)
    yield match("dequantize_int64_data", "quant.types", node("DequantizeLinear", "q s z", "y"),
                {"q": np.array([1000, -600])}, "y", np.array([999, -601]) * d(f32(0.01)), {"s": f32(0.01), "z": i64(1)})
    yield doubtful("dequantize_float_data", "quant.types", node("DequantizeLinear", "x s", "y", name="here"),
                   {"x": halves("qx", 4)}, "y", d(halves("qx", 4)) * d(f32(0.01)), {"s": f32(0.01)},
                   words=["here", "DequantizeLinear", "float16"])
    yield refuse("quantize_to_float32", "quant.types", node("QuantizeLinear", "x s", "y", name="here", output_dtype=1),
                 {"x": floats("qr", 4)}, "y", ["here", "QuantizeLinear", "output_dtype", "float32", "int8"],
                 {"s": f32(1)}, opset=21)


def told():
    w, number = floats("tw", 2), np.array([2**60 + 1, 3])
    yield doubtful("nan_constant_node", "refuse", [const("k", np.array([np.nan], f32)), node("Add", "x k", "y")],
                   {"x": w}, "y", np.full(2, np.nan), words=["k", "nan", "float32"])
    yield doubtful("nan_initializer_of_branch", "refuse",
                   node("If", "c", "y", then_branch=body([node("Add", "x k", "a")], "", "a", {"k": f32(np.nan)}),
                        else_branch=body([node("Neg", "x", "b")], "", "b")), {"c": np.array(True), "x": w}, "y",
                   np.full(2, np.nan), words=["k", "nan"])
    yield doubtful("cast_of_int64_constant_rounds", "cast.explicit",
                   [node("Cast", "k", "c", to=1, name="here"), node("Mul", "x c", "y")], {"x": np.ones(2, f32)}, "y",
                   number.astype(f32), {"k": number}, words=["here", "k", "int64", "float32"])
    yield doubtful("int64_constant_of_61_bits_beside_f32", "promote.int-float", node("Mul", "x k", "y", name="here"),
                   {"x": np.ones(2, f32)}, "y:d", number.astype(np.float64), {"k": number},
                   words=["here", "k", "int64", "float64"])
    yield refuse("bitshift_amount_fractional", "refuse", node("BitShift", "n s", "y", name="here", direction="LEFT"),
                 {"n": np.array([1], u8)}, "y:B", ["here", "BitShift", "s", "float32", "uint8", "1.5"], {"s": f32(1.5)})
    yield refuse("shapes_and_no_types", "refuse", node("Conv", "x w", "y", name="here"), {"x": floats("sx", 1, 3, 4, 4)},
                 "y", ["here", "Conv", "x", "w", "[1,3,4,4]", "[2,2,3,3]", "--shape"], {"w": floats("sw", 2, 2, 3, 3)})


def normalized():
    n, s = np.array([[1, 2, 3, 6], [5, 5, 5, 9]]), np.array([1, 2, 0.5, 1], f32)
    x = d(n)
    plain = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    for kind in (i32, i64, u8):
        yield match(f"layernorm_of_{np.dtype(kind).name}", "promote.int-float",
                    node("LayerNormalization", "n s", "y", axis=-1, epsilon=1e-5), {"n": n.astype(kind)}, "y", plain * s,
                    {"s": s})
    yield match("layernorm_of_bool", "promote.bool", node("LayerNormalization", "n s", "y", axis=-1, epsilon=1e-5),
                {"n": np.array([[True, False]])}, "y", np.array([[1, -2]]) / np.sqrt(1 + 4e-5), {"s": s[:2]})
    yield match("rmsnorm_of_int32", "promote.int-float",
                node("RMSNormalization", "n s", "y", axis=-1, epsilon=1e-6), {"n": n.astype(i32)}, "y",
                x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * s, {"s": s.astype(f16)}, opset=23)
    group = x.reshape(1, 2, 4)
    yield match("groupnorm_of_uint8", "image.u8",
                node("GroupNormalization", "n s b", "y", num_groups=2, epsilon=1e-5), {"n": group.astype(u8)}, "y",
                plain.reshape(1, 2, 4) * np.array([1, 2]).reshape(1, 2, 1) + 0.5,
                {"s": s[:2], "b": np.array([0.5, 0.5], bf16)}, opset=21)


def read_early():
    x = floats("ex", 2, 4)
    yield doubtful("rmsnorm_under_opset_17", "accumulate.wide", node("RMSNormalization", "x s", "y", axis=-1, name="norm"),
                   {"x": x.astype(f16)}, "y:h", d(x.astype(f16)) / np.sqrt((d(x.astype(f16))**2).mean(-1, keepdims=True) + 1e-5) * 2,
                   {"s": np.full(4, 2, f16)}, words=["norm", "RMSNormalization", "23", "17"])
    yield match("concat_from_sequence_of_types", "promote.float",
                [node("Cast", "x", "h", to=10), node("SequenceConstruct", "x h", "s"),
                 node("ConcatFromSequence", "s", "y", axis=0)], {"x": x}, "y",
                np.concatenate([d(x), d(x.astype(f16))]))
    # As a Concat of the same: an int64 is not always a float32 number.
    large = np.array([2**24 + 1, 5])
    yield match("concat_from_sequence_of_int64_and_f32", "promote.int-float",
                [node("SequenceConstruct", "n x", "s"), node("ConcatFromSequence", "s", "y", axis=0)],
                {"n": large, "x": np.array([0.5, 2], f32)}, "y:d", np.array([2**24 + 1, 5, 0.5, 2.0]))
    small = np.array([[100, -100], [50, 127]], i8)
    yield match("gemm_int8_declared_int32", "promote.int", node("Gemm", "a b", "y", transB=1), {"a": small, "b": small}, "y:i",
                small.astype(i64) @ small.T.astype(i64), strict=None)
    yield match("einsum_int8_declared_int32", "promote.int", node("Einsum", "a b", "y", equation="ij,kj->ik"),
                {"a": small, "b": small}, "y:i", small.astype(i64) @ small.T.astype(i64), strict=None)
    yield match("microsoft_pad_f16_value_f32", "promote.float",
                [node("Pad", "h p v", "t", domain="com.microsoft"), node("Cast", "t", "y", to=1)],
                {"h": np.array([0.5, 2], f16)}, "y", np.array([0.25, 0.5, 2, 0.25]), {"p": i64([1, 1]), "v": f32(0.25)},
                extra=[("com.microsoft", 1)], strict=None)
    yield match("affine_of_int32", "promote.int-float", node("Affine", "n", "y", alpha=0.5, beta=0.25),
                {"n": np.array([1, 2, 3], i32)}, "y", np.array([0.75, 1.25, 1.75]), opset=1, strict=None)


def cases():
    for group in (positions, grown, bounds, carried, declared, quantized, told, normalized, read_early):
        yield from group()
