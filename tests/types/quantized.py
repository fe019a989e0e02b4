"""Narrow storage and quantization: scale, zero point, input and output types are four separate things."""
import ml_dtypes
import numpy as np
from onnx import helper
from type_case import (MS, arr64, bf16, d, doubtful, e4m3fn, e4m3fnuz, e5m2, e5m2fnuz, f16, f32, f64, floats, halves, i8,
                       i16, i32, i64, ints, match, node, rng, u8, u16)


def ms(op, ins, outs, **attributes):
    return node(op, ins, outs, domain=MS, **attributes)


def saturate(v, kind):
    info = np.iinfo(kind)
    return np.clip(v, info.min, info.max)


def float8():
    x, b = halves("f8x", 2, 8, kind=bf16), floats("f8b", 4)
    for kind in (e4m3fn, e5m2, e4m3fnuz, e5m2fnuz):
        name = np.dtype(kind).name.removeprefix("float8_")
        w, bias = halves(f"f8{name}", 8, 4, kind=kind), b.astype(kind)
        yield match(f"linear_{name}_weight_and_bias_bf16_input", "store.narrow",
                    [node("MatMul", "x w", "t", name="here"), node("Add", "t b", "y")], {"x": x}, "y:w",
                    d(x) @ d(w) + d(bias), {"w": w, "b": bias}, opset=19)
    w = halves("f8w", 8, 4, kind=e4m3fn)
    bias = b.astype(e4m3fn)
    yield match("gemm_e4m3fn_weight_and_bias_f32_input", "store.narrow", node("Gemm", "x w b", "y", transB=1),
                {"x": x.astype(f32)}, "y", d(x) @ d(w) + d(bias), {"w": w.T.copy(), "b": bias}, opset=19)
    per = floats("f8s", 4, low=0.01, high=0.1)
    yield match("e4m3fn_scale_per_tensor_f32", "store.narrow",
                [node("DequantizeLinear", "w s", "v"), node("MatMul", "x v", "y")], {"x": x.astype(f32)}, "y",
                d(x) @ (d(w) * d(f32(0.03))), {"w": w, "s": f32(0.03)}, opset=19)
    yield match("e4m3fn_scale_per_channel_f32_bf16_input", "store.narrow",
                [node("DequantizeLinear", "w s", "v", axis=1), node("MatMul", "x v", "y")], {"x": x}, "y:w",
                d(x) @ (d(w) * d(per)), {"w": w, "s": per}, opset=19)
    yield match("e5m2_cast_times_scale_bf16", "store.narrow",
                [node("Cast", "w", "c", to=16), node("Mul", "c s", "v"),
                 node("MatMul", "x v", "y")], {"x": x}, "y:w", d(x) @ (d(halves("f8e", 8, 4, kind=e5m2)) * 0.5),
                {"w": halves("f8e", 8, 4, kind=e5m2), "s": bf16(0.5)}, opset=19)
    yield match("e4m3fn_weight_times_f32_scale_without_cast", "store.narrow",
                [node("Mul", "w s", "v"), node("MatMul", "x v", "y")], {"x": x.astype(f16)}, "y:h",
                d(x.astype(f16)) @ (d(w) * d(per)), {"w": w, "s": per}, opset=19)
    yield match("e4m3fn_zero_point_of_e4m3fn", "quant.types",
                [node("DequantizeLinear", "w s z", "v"), node("MatMul", "x v", "y")], {"x": x.astype(f32)}, "y",
                d(x) @ (d(w) * 0.25), {"w": w, "s": f32(0.25), "z": np.array(0, e4m3fn)}, opset=19)
    yield match("float8_quantize_dequantize_activation", "quant.types",
                [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s", "y")], {"x": x.astype(f32)}, "y",
                d((d(x) / 0.25).astype(f32).astype(e4m3fn)) * 0.25, {"s": f32(0.25), "z": np.array(0, e4m3fn)}, opset=19,
                strict=None)
    yield match("bf16_weight_in_int32_data", "store.narrow", node("MatMul", "x w", "y"), {"x": x.astype(f32)}, "y",
                d(x) @ d(halves("bw", 8, 4, kind=bf16)),
                {"w": helper.make_tensor("w", 16, [8, 4], halves("bw", 8, 4, kind=bf16).astype(f32).ravel().tolist())})


def dequantize():
    q, per = ints("dq", 4, 6, low=-128, high=127, dtype=i8), floats("ds", 4, low=0.01, high=0.1)
    for kind, out in ((f16, "h"), (bf16, "w")):
        s = per.astype(kind)
        yield match(f"dequantize_int8_scale_{np.dtype(kind).name}", "quant.types",
                    node("DequantizeLinear", "q s", "y", axis=0), {"q": q}, f"y:{out}", d(q) * d(s)[:, None], {"s": s},
                    opset=21)
    yield match("dequantize_int8_scale_f16_zero_point_declared_f32", "quant.types",
                node("DequantizeLinear", "q s z", "y"), {"q": q}, "y", (d(q) - 3) * d(f16(0.05)),
                {"s": f16(0.05), "z": i8(3)}, opset=21, unit="float16", strict=None)
    yield match("dequantize_int8_scale_f64", "quant.types", node("DequantizeLinear", "q s z", "y"), {"q": q}, "y",
                (d(q) - 3) * 0.05, {"s": f64(0.05), "z": i8(3)})
    bias = np.array([100000, -3, 70000, 5], i32)
    yield match("dequantize_int32_bias_scale_f16", "quant.types",
                [node("DequantizeLinear", "b s", "v", axis=0), node("Add", "x v", "y")], {"x": halves("dx", 2, 4)},
                "y:h", d(halves("dx", 2, 4)) + d(bias) * d(f16(1 / 1024)), {"b": bias, "s": np.full(4, 1 / 1024, f16)},
                opset=21, strict=None)
    yield match("dequantize_int32_bias_zero_point_int32", "quant.zero", node("DequantizeLinear", "b s z", "y"),
                {"b": bias}, "y", d(bias) * d(f32(0.001)), {"s": f32(0.001), "z": i32(0)})
    u = ints("du", 4, 6, high=255, dtype=u8)
    yield match("zero_point_int32_of_uint8_data", "quant.zero", node("DequantizeLinear", "q s z", "y", name="here"),
                {"q": u}, "y", (d(u) - 131) * 0.5, {"s": f32(0.5), "z": i32(131)}, strict=None)
    yield match("zero_point_int8_of_uint8_data", "quant.zero", node("DequantizeLinear", "q s z", "y"), {"q": u}, "y",
                (d(u) - 7) * 0.5, {"s": f32(0.5), "z": i8(7)}, strict=None)
    yield match("zero_point_int64_vector_per_axis", "quant.zero", node("DequantizeLinear", "q s z", "y", axis=0),
                {"q": u}, "y", (d(u) - np.array([[0], [128], [255], [3]])) * d(per)[:, None],
                {"s": per, "z": np.array([0, 128, 255, 3])}, strict=None)
    yield match("zero_point_f32_whole", "quant.zero", node("DequantizeLinear", "q s z", "y"), {"q": u}, "y",
                (d(u) - 128) * 0.5, {"s": f32(0.5), "z": f32(128)}, strict=None)
    yield doubtful("zero_point_uint8_128_of_int8_data", "quant.zero",
                   node("DequantizeLinear", "q s z", "y", name="here"), {"q": q}, "y", (d(q) - 128) * 0.5,
                   {"s": f32(0.5), "z": u8(128)}, ["here", "zero"])
    yield doubtful("zero_point_fractional", "quant.zero", node("DequantizeLinear", "q s z", "y", name="here"),
                   {"q": u}, "y", (d(u) - 7.5) * 0.5, {"s": f32(0.5), "z": f32(7.5)}, ["here", "zero"])
    f8 = np.array([1, 2, -4], f32).astype(e4m3fn)
    two = np.array(2, f32).astype(e4m3fn)
    yield doubtful("float8_data_with_zero_point", "quant.zero",
                   [node("DequantizeLinear", "w s z", "v", name="here"), node("Mul", "x v", "y")], {"x": floats("f8z", 3)},
                   "y", d(floats("f8z", 3)) * (d(f8) - 2) * 0.5, {"w": f8, "s": f32(0.5), "z": two},
                   ["here", "zero point", "z", "2"], opset=21)
    yield match("float8_data_with_zero_point_zero", "quant.zero",
                [node("DequantizeLinear", "w s z", "v"), node("Mul", "x v", "y")], {"x": floats("f8z", 3)},
                "y", d(floats("f8z", 3)) * d(f8) * 0.5, {"w": f8, "s": f32(0.5), "z": np.array(0, f32).astype(e4m3fn)},
                opset=21)
    for name, kind, low, high in (("int4", "int4", -8, 7), ("uint4", "uint4", 0, 15)):
        w = ints(f"w{name}", 8, 4, low=low, high=high).astype(getattr(ml_dtypes, kind))
        z = np.array([[3, 1, 0, 7], [2, 5, 6, 4]]).astype(getattr(ml_dtypes, kind))
        s = floats(f"s{name}", 2, 4, low=0.05, high=0.2).astype(f16)
        x = halves("bx", 3, 8)
        yield match(f"blocked_{name}_scale_f16_zero_points", "unpack.lowbit",
                    [node("DequantizeLinear", "w s z", "v", axis=0, block_size=4), node("MatMul", "x v", "y")], {"x": x},
                    "y:h", d(x) @ ((d(w) - np.repeat(d(z), 4, 0)) * np.repeat(d(s), 4, 0)), {"w": w, "s": s, "z": z},
                    opset=21)
        yield match(f"blocked_{name}_scale_f32_activation_bf16", "unpack.lowbit",
                    [node("DequantizeLinear", "w s", "v", axis=0, block_size=4), node("MatMul", "x v", "y")],
                    {"x": x.astype(bf16)}, "y:w", d(x.astype(bf16)) @ (d(w) * np.repeat(d(s), 4, 0)),
                    {"w": w, "s": s.astype(f32)}, opset=21)
    w = ints("i4plain", 8, 4, low=-8, high=7).astype(ml_dtypes.int4)
    yield doubtful("matmul_int4_weight_without_scale", "store.scale", node("MatMul", "x w", "y", name="here"),
                   {"x": floats("i4x", 2, 8)}, "y", d(floats("i4x", 2, 8)) @ d(w), {"w": w}, ["scale"], opset=21)
    yield match("int8_weight_cast_times_f16_scale", "store.narrow",
                [node("Cast", "q", "c", to=10), node("Mul", "c s", "v"), node("MatMul", "x v", "y")],
                {"x": halves("cx", 2, 4)}, "y:h", d(halves("cx", 2, 4)) @ (d(q) * d(f16(0.03))),
                {"q": q, "s": f16(0.03)})


def quantize():
    x = floats("qx", 2, 5, low=-3, high=3)
    h = x.astype(f16)

    def quantized(v, s, z, kind):
        return saturate(np.rint(d(v) / d(s)) + z, kind)
    yield match("quantize_f16_scale_f32_int8", "quant.types", node("QuantizeLinear", "x s z", "y", name="here"), {"x": h},
                "y:c", quantized(h, f32(0.03), -4, i8), {"s": f32(0.03), "z": i8(-4)}, opset=21)
    yield match("quantize_f32_scale_f16_uint8", "quant.types", node("QuantizeLinear", "x s z", "y"), {"x": x}, "y:B",
                quantized(x, f16(0.03), 120, u8), {"s": f16(0.03), "z": u8(120)}, opset=21)
    yield match("quantize_f32_scale_f64", "quant.types", node("QuantizeLinear", "x s z", "y"), {"x": x}, "y:B",
                quantized(x, f32(0.03), 120, u8), {"s": f64(f32(0.03)), "z": u8(120)})
    yield match("quantize_bf16_scale_bf16_int8", "quant.types", node("QuantizeLinear", "x s z", "y"),
                {"x": x.astype(bf16)}, "y:c", quantized(x.astype(bf16), bf16(0.125), 3, i8),
                {"s": bf16(0.125), "z": i8(3)}, opset=21)
    yield match("quantize_output_dtype_int16", "quant.types", node("QuantizeLinear", "x s", "y", output_dtype=5),
                {"x": x}, "y:s", quantized(x, f32(0.0007), 0, i16), {"s": f32(0.0007)}, opset=21)
    yield match("quantize_output_dtype_uint16_f16_input", "quant.types",
                node("QuantizeLinear", "x s", "y", output_dtype=4), {"x": h}, "y:S", quantized(h, f32(0.0007), 0, u16),
                {"s": f32(0.0007)}, opset=21)
    yield match("quantize_output_dtype_same_as_zero_point", "quant.types",
                node("QuantizeLinear", "x s z", "y", output_dtype=3), {"x": x}, "y:c", quantized(x, f32(0.03), 2, i8),
                {"s": f32(0.03), "z": i8(2)}, opset=21)
    yield match("quantize_int32_input", "quant.types", node("QuantizeLinear", "x s z", "y"),
                {"x": np.array([1000, -7, 100001], i32)}, "y:c", np.array([10, 0, 127]), {"s": f32(100), "z": i8(0)})
    yield match("qdq_f16_scales_conv_int32_bias", "quant.types",
                [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "a"),
                 node("DequantizeLinear", "w t", "v", axis=0), node("DequantizeLinear", "b r", "c", axis=0),
                 node("Conv", "a v c", "y")], {"x": h.reshape(1, 2, 5, 1)}, "y:h",
                np.einsum("nchw,oc->nohw", (quantized(h.reshape(1, 2, 5, 1), f16(0.03), 5, u8) - 5) * d(f16(0.03)),
                          np.array([[10, -20], [30, 40]]) * d(f16(0.02))) +
                np.array([100, -200]).reshape(2, 1, 1) * d(f16(0.0006)),
                {"s": f16(0.03), "z": u8(5), "w": np.array([[10, -20], [30, 40]], i8).reshape(2, 2, 1, 1),
                 "t": np.full(2, 0.02, f16), "b": np.array([100, -200], i32), "r": np.full(2, 0.0006, f16)}, opset=21)


def integer_operators():
    a, b = ints("ia", 3, 4, high=255, dtype=u8), ints("ib", 4, 2, low=-127, high=127, dtype=i8)
    yield match("matmulinteger_zero_point_int32", "quant.zero", node("MatMulInteger", "a b z", "y", name="here"),
                {"a": a}, "y:i", (a.astype(i32) - 128) @ b.astype(i32), {"b": b, "z": i32(128)}, strict=None)
    yield match("matmulinteger_uint8_int8_opset10", "quant.types", node("MatMulInteger", "a b z w", "y"), {"a": a}, "y:i",
                (a.astype(i32) - 3) @ (b.astype(i32) + 2), {"b": b, "z": u8(3), "w": i8(-2)}, opset=10)
    x, w = ints("cx", 1, 2, 4, 4, high=255, dtype=u8), ints("cw", 3, 2, 1, 1, low=-127, high=127, dtype=i8)
    yield match("convinteger_uint8_int8_then_f16_scale", "quant.types",
                [node("ConvInteger", "x w z", "i"), node("Cast", "i", "f", to=1), node("Mul", "f s", "y")], {"x": x},
                "y", np.einsum("nchw,oc->nohw", d(x) - 120, d(w)[:, :, 0, 0]) * d(f16(0.001)),
                {"w": w, "z": u8(120), "s": f16(0.001)})
    yield match("convinteger_zero_point_int64", "quant.zero", node("ConvInteger", "x w z", "y"), {"x": x}, "y:i",
                np.einsum("nchw,oc->nohw", x.astype(i32) - 120, w.astype(i32)[:, :, 0, 0]), {"w": w, "z": i64(120)},
                strict=None)
    f = floats("dyn", 3, 4, low=-1, high=3)
    low, high = min(0, float(f.min())), max(0, float(f.max()))
    s = f32((f32(high) - f32(low)) / f32(255))
    z = saturate(np.rint(-low / d(s)), u8)
    q = saturate(np.rint(d(f) / d(s)) + z, u8)
    scale = floats("dyns", 2, low=0.01, high=0.1)
    yield match("dynamicquantize_matmulinteger_f16_scale", "quant.types",
                [node("DynamicQuantizeLinear", "x", "q s z"), node("MatMulInteger", "q b z", "i"),
                 node("Mul", "s t", "m"), node("Mul", "i m", "y")], {"x": f}, "y",
                ((q - z) @ d(b)) * (d(s) * d(scale.astype(f16))), {"b": b, "t": scale.astype(f16)}, strict=None)
    h = f.astype(f16)
    low, high = min(0, float(h.min())), max(0, float(h.max()))
    s = f32((f32(high) - f32(low)) / f32(255))
    z = saturate(np.rint(-low / d(s)), u8)
    q = saturate(np.rint(d(h) / d(s)) + z, u8)
    yield match("dynamicquantize_f16_input", "quant.types",
                [node("DynamicQuantizeLinear", "x", "q s z"), node("DequantizeLinear", "q s z", "y")], {"x": h}, "y",
                (q - z) * d(s), strict=None)
    acc = (a.astype(i32) - 100) @ (b.astype(i32))
    for kind in (f16, f64):
        sa, sb, sy = kind(0.02), kind(0.03), kind(1.5)
        yield match(f"qlinearmatmul_scales_{np.dtype(kind).name}", "quant.types",
                    node("QLinearMatMul", "a sa za b sb zb sy zy", "y"), {"a": a}, "y:B",
                    saturate(np.rint(acc * (d(sa) * d(sb) / d(sy))) + 90, u8),
                    {"sa": sa, "za": u8(100), "b": b, "sb": sb, "zb": i8(0), "sy": sy, "zy": u8(90)}, opset=21)
    bias = np.array([1000, -2000, 300], i32)
    acc = np.einsum("nchw,oc->nohw", x.astype(i32) - 120, w.astype(i32)[:, :, 0, 0]) + bias.reshape(3, 1, 1)
    m = d(f32(0.02)) * d(np.array([0.01, 0.02, 0.03], f32)) / d(f32(0.7))
    yield match("qlinearconv_int8_weights_uint8_output_scale_f64", "quant.types",
                node("QLinearConv", "x sx zx w sw zw sy zy b", "y"), {"x": x}, "y:B",
                saturate(np.rint(acc * m.reshape(3, 1, 1)) + 128, u8),
                {"sx": f32(0.02), "zx": u8(120), "w": w, "sw": np.array([0.01, 0.02, 0.03], f32),
                 "zw": np.zeros(3, i8), "sy": f64(f32(0.7)), "zy": u8(128), "b": bias})
    yield match("qlinearconv_bias_int64", "quant.types",
                node("QLinearConv", "x sx zx w sw zw sy zy b", "y"), {"x": x}, "y:B",
                saturate(np.rint(acc * m.reshape(3, 1, 1)) + 128, u8),
                {"sx": f32(0.02), "zx": u8(120), "w": w, "sw": np.array([0.01, 0.02, 0.03], f32),
                 "zw": np.zeros(3, i8), "sy": f32(0.7), "zy": u8(128), "b": bias.astype(i64)}, strict=None)


def packed():
    x = floats("nb", 2, 32)
    q = ints("nbq", 3, 32, high=15)
    bits4 = (q[:, 0::2] | (q[:, 1::2] << 4)).astype(u8).reshape(3, 2, 8)
    s = floats("nbs", 3, 2, low=0.02, high=0.1)
    for name, kind, scale, out in (("f32_scale_f16", f32, f16, "f"), ("f16_scale_f32", f16, f32, "h"),
                                   ("bf16_scale_f16", bf16, f16, "w"), ("f16_scale_f16", f16, f16, "h")):
        v = x.astype(kind)
        w = (d(q) - 8) * np.repeat(d(s.astype(scale)), 16, 1)
        yield match(f"matmulnbits_{name}", "unpack.lowbit",
                    ms("MatMulNBits", "x w s", "y", K=32, N=3, bits=4, block_size=16), {"x": v}, f"y:{out}",
                    d(v) @ w.T, {"w": bits4, "s": s.astype(scale).ravel()})
    z = np.array([[7, 9], [0, 15], [8, 3]])
    zp = (z[:, 0] | (z[:, 1] << 4)).astype(u8)
    yield match("matmulnbits_packed_zero_points_f16_scale", "unpack.lowbit",
                ms("MatMulNBits", "x w s z", "y", K=32, N=3, bits=4, block_size=16), {"x": x}, "y",
                d(x) @ ((d(q) - np.repeat(z, 16, 1)) * np.repeat(d(s.astype(f16)), 16, 1)).T,
                {"w": bits4, "s": s.astype(f16).ravel(), "z": zp})
    yield match("matmulnbits_float_zero_points", "unpack.lowbit",
                ms("MatMulNBits", "x w s z", "y", K=32, N=3, bits=4, block_size=16), {"x": x}, "y",
                d(x) @ ((d(q) - np.repeat(z + 0.5, 16, 1)) * np.repeat(d(s), 16, 1)).T,
                {"w": bits4, "s": s.ravel(), "z": (z + 0.5).astype(f32).ravel()}, strict=None)
    q8 = ints("nb8", 3, 32, high=255)
    yield match("matmulnbits_8bit_f16_input", "unpack.lowbit",
                ms("MatMulNBits", "x w s", "y", K=32, N=3, bits=8, block_size=16), {"x": x.astype(f16)}, "y:h",
                d(x.astype(f16)) @ ((d(q8) - 128) * np.repeat(d(s), 16, 1)).T / 1,
                {"w": q8.astype(u8).reshape(3, 2, 16), "s": s.ravel()})


def gptq(form, bits=4, negative=True, zero_offset=1, k=32, n=8, group=16):
    """int32 words of 32/bits weights along K, zeros packed along N, float16 scales per group, as exporters write it."""
    per, top = 32 // bits, 2**bits - 1
    r = rng(f"gptq{form}{bits}")
    q = r.integers(0, top + 1, (k, n))
    z = r.integers(0, top + 1 - zero_offset, (k // group, n))
    if negative:
        q[per - 1::per] |= 1 << (bits - 1)  # the top bit of every word: negative int32
        z[:, per - 1::per] |= 1 << (bits - 1)
        z = np.minimum(z, top - zero_offset)
    s = r.uniform(0.01, 0.05, (k // group, n)).astype(f16)

    def pack(v, axis):
        v = np.moveaxis(v.astype(np.uint64), axis, 0)
        words = sum(v[j::per] << np.uint64(bits * j) for j in range(per))
        return np.moveaxis(words, 0, axis).astype(np.uint32).view(i32)
    qweight, qzeros = pack(q, 0), pack(z, 1)
    shifts = (np.arange(per) * bits).astype(i32)
    powers = (2**(np.arange(per, dtype=i64) * bits)).astype(i32)
    constants = {"qweight": qweight[:, None], "qzeros": qzeros[:, :, None], "scales": s, "zero_offset": i8(zero_offset)
                 if form == "int8" else i32(zero_offset), "mask": i32(top), "group": np.arange(k) // group,
                 "wshape": arr64(k, n), "zshape": arr64(k // group, n)}
    nodes = []

    def shift(what, where, layout):
        if form == "bitshift":
            constants[f"{what}_s"] = shifts.reshape(layout)
            nodes.append(node("BitShift", f"{what} {what}_s", where, direction="RIGHT"))
        elif form == "div":  # floor division without a shift: add one to negatives, truncate, subtract one
            constants[f"{what}_s"] = powers.reshape(layout)
            constants.setdefault("nought", i32(0))
            nodes.extend([node("Less", f"{what} nought", f"{what}_n"), node("Cast", f"{what}_n", f"{what}_c", to=6),
                          node("Add", f"{what} {what}_c", f"{what}_a"), node("Div", f"{what}_a {what}_s", f"{what}_q"),
                          node("Sub", f"{what}_q {what}_c", where)])
        else:  # by way of uint32, as torch's exporter does for a logical shift
            constants[f"{what}_s"] = shifts.astype(np.uint32).reshape(layout)
            nodes.extend([node("Cast", what, f"{what}_u", to=12),
                          node("BitShift", f"{what}_u {what}_s", f"{what}_t", direction="RIGHT"),
                          node("Cast", f"{what}_t", where, to=6)])
    shift("qweight", "w1", (1, per, 1))
    shift("qzeros", "z1", (1, 1, per))
    nodes += [node("BitwiseAnd", "w1 mask", "w2"), node("BitwiseAnd", "z1 mask", "z2"),
              node("Reshape", "w2 wshape", "w3"), node("Add", "z2 zero_offset", "z3"),
              node("Reshape", "z3 zshape", "z4"), node("Gather", "z4 group", "z5"),
              node("Gather", "scales group", "s1"), node("Sub", "w3 z5", "w4"), node("Mul", "w4 s1", "w5"),
              node("MatMul", "x w5", "m"), node("Add", "m bias", "y", name="/q_proj/Add")]
    constants["bias"] = floats("gptqb", n).astype(f16)
    w = (q - np.repeat(z + zero_offset, group, 0)) * np.repeat(d(s), group, 0)
    x = halves("gptqx", 2, k)
    return nodes, {"x": x}, d(x) @ w + d(constants["bias"]), constants


def awq(k=256, n=128, group=64):
    """Words of eight 4-bit weights along N in the order 0 2 4 6 1 3 5 7, shifted, masked and put in order, with zero
    points and scales repeated for each row of their group."""
    r = rng("awq")
    q, z = r.integers(0, 16, (k, n)), r.integers(0, 16, (k // group, n))
    s, bias = r.uniform(0.01, 0.05, (k // group, n)).astype(f16), r.uniform(-1, 1, n).astype(f16)
    order = [0, 2, 4, 6, 1, 3, 5, 7]

    def pack(v):
        v = v.reshape(len(v), n // 8, 8).astype(np.uint64)
        return sum(v[..., order[j]] << np.uint64(4 * j) for j in range(8)).astype(np.uint32).view(i32)
    columns = np.arange(n).reshape(-1, 8)[:, np.argsort(order)].ravel()
    constants = {"qweight": pack(q), "qzeros": pack(z), "scales": s, "bias": bias, "two": arr64(2), "one": arr64(1),
                 "shifts": (4 * np.arange(8)).astype(i32).reshape(1, 1, 8), "mask": i8(15), "columns": columns,
                 "rows": arr64(k, n), "repeat": arr64(k // group, group, n)}
    nodes = []
    for what in ("qweight", "qzeros"):
        constants[f"{what}_shape"] = arr64(k if what == "qweight" else k // group, n)
        constants[f"{what}_words"] = arr64(*constants[what].shape, 8)
        nodes += [node("Unsqueeze", f"{what} two", f"{what}_u"),
                  node("Expand", f"{what}_u {what}_words", f"{what}_e"),
                  node("BitShift", f"{what}_e shifts", f"{what}_s", direction="RIGHT"),
                  node("Cast", f"{what}_s", f"{what}_c", to=3), node("BitwiseAnd", f"{what}_c mask", f"{what}_m"),
                  node("Reshape", f"{what}_m {what}_shape", f"{what}_r"),
                  node("Gather", f"{what}_r columns", f"{what}_g", axis=1)]
    for what, part in (("z", "qzeros_g"), ("s", "scales")):
        nodes += [node("Unsqueeze", f"{part} one", f"{what}_u"), node("Expand", f"{what}_u repeat", f"{what}_e"),
                  node("Reshape", f"{what}_e rows", f"{what}_r")]
    nodes += [node("Sub", "qweight_g z_r", "q"), node("Cast", "q", "qf", to=10), node("Mul", "qf s_r", "w"),
              node("MatMul", "x w", "m"), node("Add", "m bias", "y", name="/q_proj/Add")]
    x = halves("awqx", 3, k)
    w = (q - np.repeat(z, group, 0)) * np.repeat(d(s), group, 0)
    return nodes, {"x": x}, d(x) @ w + d(bias), constants


def gptq_chains():
    for form in ("bitshift", "div", "logical"):
        for bits in (4, 8):
            nodes, feeds, want, constants = gptq(form, bits)
            if form == "div":  # 2^28 times eight words fits; the powers of two stay int32
                assert constants["qweight_s"].dtype == i32
            yield match(f"gptq_{bits}bit_{form}", "unpack.lowbit", nodes, feeds, "y:h", want, constants, opset=18,
                        strict=None)
    nodes, feeds, want, constants = gptq("int8", 4)
    yield match("gptq_4bit_logical_int8_offset", "unpack.lowbit", nodes, feeds, "y:h", want, constants, opset=18,
                strict=None)
    nodes, feeds, want, constants = gptq("div", 4)
    constants["bias"] = d(constants["bias"])
    yield match("gptq_4bit_div_bias_f64", "unpack.lowbit", nodes, feeds, "y:h", want, constants, opset=18, strict=None)
    x = np.array([-1, -256, 255, -2**31, 2**31 - 1, -17], i32)
    yield match("arithmetic_shift_written_as_division", "unpack.lowbit",
                [node("Less", "x z", "n"), node("Cast", "n", "c", to=6), node("Add", "x c", "a"), node("Div", "a p", "q"),
                 node("Sub", "q c", "y")], {"x": x}, "y:i", x >> 4, {"z": i32(0), "p": i32(16)})


def sizes():
    """Weights large enough to see that they are kept as narrow as they came, and widen exactly."""
    x = halves("size", 1, 256)
    for kind in (bf16, f16, e4m3fn, e5m2, e4m3fnuz, e5m2fnuz):
        w = halves("sizew", 256, 256, kind=kind)
        name = np.dtype(kind).name.removeprefix("float8_")
        yield match(f"stored_{name}_matmul_f32_activation", "store.narrow", node("MatMul", "x w", "y"),
                    {"x": x.astype(f32)}, "y", d(x) @ d(w), {"w": w}, weights=w.nbytes, opset=19, strict=None)
    w = halves("sizew", 256, 256, kind=bf16)
    yield match("stored_bf16_shared_by_f16_and_f32_consumers", "store.narrow",
                [node("MatMul", "x w", "y"), node("MatMul", "v w", "z")], {"x": x, "v": x.astype(f32) / 3}, "y z",
                {"y": d(x) @ d(w), "z": d(x.astype(f32) / 3) @ d(w)}, {"w": w}, weights=w.nbytes, strict=None)
    yield match("stored_bf16_transposed_and_gathered", "store.narrow",
                [node("Gather", "w i", "e"), node("Transpose", "w", "t", perm=[1, 0]), node("MatMul", "e t", "y")],
                {"i": np.array([[3, 200]])}, "y:w", (d(w)[[3, 200]] @ d(w).T)[None], {"w": w}, weights=w.nbytes,
                strict=None)
    k = halves("sizec", 64, 64, 3, 3, kind=f16)
    image = halves("sizei", 1, 64, 3, 3)
    yield match("stored_f16_conv_f32_activation", "store.narrow", node("Conv", "x w", "y"), {"x": image.astype(f32)},
                "y", np.einsum("ncij,ocij->no", d(image), d(k))[:, :, None, None], {"w": k}, weights=k.nbytes,
                strict=None)
    table = halves("sizet", 1000, 64, kind=bf16)
    yield match("stored_bf16_embedding", "store.narrow", [node("Gather", "w i", "e"), node("Cast", "e", "y", to=1)],
                {"i": np.array([7, 999])}, "y", d(table)[[7, 999]], {"w": table}, weights=table.nbytes, strict=None)
    q = ints("sizeq", 256, 256, low=-8, high=7)
    s = floats("sizes", 8, 256, low=0.01, high=0.1).astype(f16)
    yield match("stored_int4_blocked", "unpack.lowbit",
                [node("DequantizeLinear", "w s", "v", axis=0, block_size=32), node("MatMul", "x v", "y")], {"x": x},
                "y:h", d(x) @ (d(q) * np.repeat(d(s), 32, 0)), {"w": q.astype(ml_dtypes.int4), "s": s},
                weights=256 * 128 + s.nbytes, opset=21, strict=None)
    yield match("stored_int8_per_channel", "store.narrow",
                [node("DequantizeLinear", "w s", "v", axis=1), node("MatMul", "x v", "y")], {"x": x.astype(f32)}, "y",
                d(x) @ (d(q) * d(s[0].astype(f32))), {"w": q.astype(i8), "s": s[0].astype(f32)}, weights=256 * 256 + 1024,
                strict=None)
    u = (q + 8).T.reshape(256, 8, 32)
    yield match("stored_matmulnbits", "unpack.lowbit",
                ms("MatMulNBits", "x w s", "y", K=256, N=256, bits=4, block_size=32), {"x": x}, "y:h",
                d(x) @ (d(q) * np.repeat(d(s), 32, 0)),
                {"w": (u[..., 0::2] | (u[..., 1::2] << 4)).astype(u8), "s": s.T.ravel().copy()},
                weights=256 * 128 + s.nbytes, strict=None)
    for bits in (4, 8):
        # Groups in no order, packed zero points and a bias: columns that share a group are not neighbours.
        k, n, block = 256, 128, 64
        r = rng(f"nbits{bits}")
        q, z = r.integers(0, 2**bits, (n, k)), r.integers(0, 2**bits, (n, k // block))
        s, bias = r.uniform(0.01, 0.05, (n, k // block)).astype(f16), r.uniform(-1, 1, n).astype(f16)
        group = r.permutation(k) // block
        per = 8 // bits
        words, zwords = (sum(v[:, i::per] << (bits * i) for i in range(per)).astype(u8) for v in (q, z))
        constants = {"w": words.reshape(n, k // block, -1), "s": s.ravel(), "z": zwords.ravel(), "g": group.astype(i32),
                     "b": bias}
        v = x.astype(f32) if bits == 8 else x
        yield match(f"stored_matmulnbits_{bits}bit_by_group", "unpack.lowbit",
                    ms("MatMulNBits", "x w s z g b", "y", K=k, N=n, bits=bits, block_size=block), {"x": v},
                    "y" if bits == 8 else "y:h", d(v) @ ((q - z[:, group]) * d(s)[:, group]).T + d(bias),
                    constants | ({"s": s.astype(f32).ravel(), "b": bias.astype(f32)} if bits == 8 else {}),
                    weights=sum(a.nbytes for a in constants.values()), strict=None)
    nodes, feeds, want, constants = awq()
    yield match("stored_awq", "unpack.lowbit", nodes, feeds, "y:h", want, constants, opset=18, strict=None,
                weights=sum(constants[c].nbytes for c in ("qweight", "qzeros", "scales", "bias")))
    for form in ("bitshift", "div"):
        nodes, feeds, want, constants = gptq(form, 4, k=256, n=256, group=64)
        yield match(f"stored_gptq_{form}", "unpack.lowbit", nodes, feeds, "y:h", want, constants, opset=18, strict=None,
                    weights=sum(np.asarray(constants[c]).nbytes for c in ("qweight", "qzeros", "scales", "group")))


def cases():
    for group in (sizes, float8, dequantize, quantize, integer_operators, packed, gptq_chains):
        yield from group()
