"""What exporters write: small pieces of real networks in which types meet by accident."""
import numpy as np
from onnx import numpy_helper
from type_case import (arr64, bf16, d, doubtful, e4m3fn, f16, f32, f64, floats, halves, i8, i32, i64, ints, match, node,
                       softmax, u8, u32)


def numbers():
    e = np.arange(0, 8, 2).astype(f32) / 8
    yield match("pow_int_literal_base_f32_exponent", "pow.base", node("Pow", "b e", "y", name="here"), {"e": e}, "y",
                10000.0**d(e), {"b": i64(10000)}, strict=None)
    yield match("pow_int_literal_base_constant_exponent_inverse_frequency", "pow.base",
                [node("Pow", "b e", "p"), node("Reciprocal", "p", "f"), node("Mul", "x f", "y")],
                {"x": floats("ix", 4)}, "y", d(floats("ix", 4)) / 10000.0**d(e), {"b": i32(10000), "e": e}, strict=None)
    yield match("range_int_bounds_f32_delta", "input.table", node("Range", "a b c", "y"), {}, "y",
                np.array([0, 0.5, 1, 1.5]), {"a": i64(0), "b": i64(2), "c": f32(0.5)})
    yield match("clip_int32_bounds_fractional", "input.table", node("Clip", "x lo hi", "y"),
                {"x": np.array([-3, 2, 9], i32)}, "y", np.array([0.5, 2, 6.5]), {"lo": f32(0.5), "hi": f32(6.5)},
                strict=None)
    yield match("where_int64_fractional_literal", "literal.weak", node("Where", "m a c", "y"),
                {"m": np.array([True, False]), "a": np.array([3, 4])}, "y", np.array([3, 0.5]), {"c": f32(0.5)},
                strict=None)
    yield match("add_uint8_literal_300", "literal.weak", node("Add", "x c", "y"), {"x": np.array([5, 255], u8)}, "y:i",
                np.array([305, 555]), {"c": i32(300)}, strict=None)
    yield match("equal_f32_literal_f64_rounds_to_it", "literal.weak", node("Equal", "x c", "y"),
                {"x": np.array([0.1, 0.2], f32)}, "y:b", np.array([True, False]), {"c": f64(0.1)}, strict=None)
    yield match("sum_int32_f32_int64", "promote.int-float", node("Sum", "a b c", "y"),
                {"a": np.array([1, 2], i32), "b": np.array([0.5, 0.25], f32)}, "y", np.array([4.5, 6.25]),
                {"c": np.array([3, 4])}, strict=None)
    yield match("matmul_int8_int8_declared_int32", "promote.int", node("MatMul", "a b", "y"),
                {"a": ints("aa", 2, 3, low=-100, high=100, dtype=i8), "b": ints("bb", 3, 2, low=-100, high=100, dtype=i8)},
                "y:i", ints("aa", 2, 3, low=-100, high=100) @ ints("bb", 3, 2, low=-100, high=100), strict=None)
    yield match("mod_f32_floor", "promote.float", node("Mod", "a c", "y"), {"a": np.array([5.5, -1.25], f32)}, "y",
                np.mod([5.5, -1.25], 2), {"c": i64(2)}, strict=None)
    yield match("mod_int64_f32_literal", "promote.int-float", node("Mod", "a c", "y"), {"a": np.array([5, 8, -3])}, "y:l",
                np.array([1, 0, 1]), {"c": f32(2)}, strict=None)
    yield match("bitshift_uint32_amount_int64", "promote.int", node("BitShift", "x s", "y", direction="RIGHT"),
                {"x": np.array([0xF0000000, 256], u32)}, "y:I", np.array([0xF00000, 1]), {"s": i64(8)}, strict=None)
    yield match("xor_int32_bool", "promote.bool", node("Xor", "a b", "y"),
                {"a": np.array([0, 2, 1], i32), "b": np.array([True, True, False])}, "y:b",
                np.array([True, False, True]))
    yield doubtful("and_f32_bool", "input.table", node("And", "a b", "y", name="here"),
                   {"a": np.array([0, 0.5, 1], f32), "b": np.array([True, True, False])}, "y:b",
                   np.array([False, True, False]), words=["here", "And", "a", "float32"])
    yield match("add_float8_activations", "promote.float", node("Add", "a b", "y"),
                {"a": halves("f8a", 4, kind=e4m3fn), "b": halves("f8b", 4, kind=bf16)}, "y",
                d(halves("f8a", 4, kind=e4m3fn)) + d(halves("f8b", 4, kind=bf16)), opset=19, strict=None)
    yield match("matmul_f16_int32_weight_f16_bias", "promote.int-float",
                [node("MatMul", "x w", "t"), node("Add", "t b", "y")], {"x": halves("ix", 2, 3)}, "y:h",
                d(halves("ix", 2, 3)) @ ints("iw", 3, 4, low=-9) + d(halves("ib", 4)),
                {"w": ints("iw", 3, 4, low=-9, dtype=i32), "b": halves("ib", 4)}, strict=None)


def shape_arithmetic():
    x = floats("sx", 2, 7)
    yield match("reshape_concat_of_int64_and_f32_whole", "promote.int-float",
                [node("Shape", "x", "s", start=0, end=1), node("Concat", "s c", "r", axis=0), node("Reshape", "x r", "y")],
                {"x": x}, "y", d(x).reshape(2, 7, 1), {"c": np.array([7, 1], f32)}, opset=15)
    yield match("slice_at_ceil_of_half_the_length", "promote.int-float",
                [node("Shape", "x", "s", start=1), node("Mul", "s half", "h"), node("Ceil", "h", "c"),
                 node("Cast", "c", "e", to=7), node("Slice", "x z e one", "y")], {"x": x}, "y", d(x)[:, :4],
                {"half": f32(0.5), "z": arr64(0), "one": arr64(1)}, opset=15)
    yield match("size_divided_as_float_mean", "promote.int-float",
                [node("ReduceSum", "x", "t", keepdims=0), node("Size", "x", "n"), node("Div", "t n", "y")], {"x": x}, "y",
                np.array(d(x).mean()))
    yield match("same_int64_initializer_shape_and_number", "const.retype",
                [node("Reshape", "x k", "t"), node("Mul", "t k", "y")], {"x": x[:, :6].copy().astype(f16)}, "y:h",
                d(x[:, :6].astype(f16)).reshape(6, 2) * np.array([6, 2]), {"k": arr64(6, 2)}, strict=None)
    yield match("same_f32_initializer_index_and_number", "const.retype",
                [node("Gather", "x k", "t", axis=1), node("Mul", "t k", "y")], {"x": x}, "y",
                d(x)[:, [5, 2]] * np.array([5, 2]), {"k": np.array([5, 2], f32)})
    yield match("tile_repeats_f32_whole", "input.table", node("Tile", "x r", "y"), {"x": x}, "y", np.tile(d(x), (1, 2)),
                {"r": np.array([1, 2], f32)})


def attention():
    q, k, v = (halves(f"att{n}", 1, 2, 4, 8) for n in "qkv")
    scores = d(q) @ d(k).swapaxes(2, 3) / np.sqrt(8)
    causal = np.where(np.tril(np.ones((4, 4), bool)), 0, -np.inf)
    product = [node("Transpose", "k", "kt", perm=[0, 1, 3, 2]), node("MatMul", "q kt", "s"), node("Div", "s r", "u")]
    rest = [node("Softmax", "m", "p", axis=-1), node("MatMul", "p v", "y")]
    feeds = {"q": q, "k": k, "v": v}
    yield match("attention_f64_divisor_f32_mask", "mask.finite", product + [node("Add", "u mask", "m")] + rest, feeds,
                "y:h", softmax(scores + causal) @ d(v),
                {"r": f64(np.sqrt(8)), "mask": np.maximum(causal, -1e9).astype(f32)}, strict=None)
    yield match("attention_causal_trilu_minus_inf_f32", "mask.inf",
                [node("ConstantOfShape", "sh", "full", value=helper_value(f32(-np.inf))),
                 node("Trilu", "full one", "mask"), *product, node("Add", "u mask", "m"), *rest], feeds, "y:h",
                softmax(scores + causal) @ d(v), {"r": f16(np.sqrt(8)), "sh": arr64(4, 4), "one": i64(1)}, strict=None,
                unit="float16")
    yield match("attention_bool_mask_where_finfo_f16", "mask.finite",
                product + [node("Where", "keep u low", "m")] + rest,
                {**feeds, "keep": np.isfinite(causal)}, "y:h", softmax(scores + causal) @ d(v),
                {"r": f32(np.sqrt(8)), "low": f16(-65504)}, strict=None)
    yield match("attention_int64_mask_one_minus_times_1e9", "mask.finite",
                [node("Sub", "one keep", "i"), node("Mul", "i low", "mask"), *product, node("Add", "u mask", "m"), *rest],
                {**feeds, "keep": np.isfinite(causal).astype(i64)}, "y:h", softmax(scores + causal) @ d(v),
                {"r": f32(np.sqrt(8)), "low": f32(-1e9), "one": i64(1)}, strict=None)
    # A mask that comes with the inputs, and hides everything from query 2.
    keep = np.tril(np.ones((4, 4), bool))
    keep[2] = False
    seen = softmax(scores + np.where(keep | ~keep.any(axis=1, keepdims=True), 0, -np.inf))
    lost = np.where(keep.any(axis=1, keepdims=True), seen, 0.25) @ d(v)
    feeds = {**feeds, "keep": keep}
    low = {"r": f32(np.sqrt(8)), "zero": f32(0), "low": f32(-np.inf)}
    chosen = node("Where", "keep zero low", "mask")
    yield match("attention_bool_mask_added_lost_row", "mask.inf",
                [chosen, *product, node("Add", "u mask", "m"), *rest], feeds, "y:h", lost, low, strict=None)
    # One that a run computes in float32 and rounds to float16, where its number is infinite: for one layer and two.
    yield match("attention_mask_rounded_lost_row", "mask.inf",
                [chosen, node("Cast", "mask", "m16", to=10), *product, node("Add", "u m16", "m"), *rest], feeds, "y:h", lost,
                {**low, "low": f32(np.finfo(f32).min)}, strict=None)
    again = [node("MatMul", "y kt", "s2"), node("Div", "s2 r", "u2"), node("Add", "u2 m16", "m2"),
             node("Softmax", "m2", "p2", axis=-1), node("MatMul", "p2 v", "z")]
    second = d(lost.astype(f16)) @ d(k).swapaxes(2, 3) / np.sqrt(8)
    masked = softmax(second + np.where(keep | ~keep.any(axis=1, keepdims=True), 0, -np.inf))
    yield match("attention_mask_rounded_for_two_layers", "mask.inf",
                [chosen, node("Cast", "mask", "m16", to=10), *product, node("Add", "u m16", "m"), *rest, *again], feeds,
                "z:h", np.where(keep.any(axis=1, keepdims=True), masked, 0.25) @ d(v),
                {**low, "low": f32(np.finfo(f32).min)}, strict=None)
    yield match("attention_bool_mask_replaces_lost_row", "mask.finite",
                [*product, node("Not", "keep", "hide"), node("Where", "hide low u", "m"), *rest], feeds, "y:h", lost,
                {**low, "low": f32(-1e9)}, strict=None)
    yield match("attention_additive_mask_lost_row", "mask.finite", [*product, node("Add", "mask u", "m"), *rest],
                {"q": q, "k": k, "v": v, "mask": np.where(keep, 0, np.finfo(f32).min).astype(f32)}, "y:h", lost, low,
                strict=None)
    yield match("attention_nan_weights_become_zero", "promote.float",
                [chosen, *product, node("Add", "u mask", "m"), rest[0], node("IsNaN", "p", "bad"),
                 node("Where", "bad zero p", "w"), node("MatMul", "w v", "y")], feeds, "y:h",
                np.where(keep.any(axis=1, keepdims=True), seen, 0) @ d(v), low, strict=None)
    x = np.array([[12, 11.5, 3]], f16)
    yield match("softmax_by_hand_f16_exp_overflow", "accumulate.wide",
                [node("Exp", "x", "e"), node("ReduceSum", "e a", "s"), node("Div", "e s", "y")], {"x": x}, "y:h",
                softmax(d(x)), {"a": arr64(1)}, strict=None)


def helper_value(v):
    return numpy_helper.from_array(np.asarray([v]), "value")


def norms():
    x = (halves("big", 2, 16) * f16(1000)).astype(f16)
    c = d(x) - d(x).mean(-1, keepdims=True)
    want = c / np.sqrt((c**2).mean(-1, keepdims=True) + 1e-5)
    yield match("layernorm_decomposed_f16_overflow", "accumulate.wide",
                [node("ReduceMean", "x", "m", axes=[-1]), node("Sub", "x m", "c"), node("Pow", "c two", "p"),
                 node("ReduceMean", "p", "v", axes=[-1]), node("Add", "v eps", "e"), node("Sqrt", "e", "r"),
                 node("Div", "c r", "n"), node("Mul", "n s", "y")], {"x": x}, "y:h", want * 1.5,
                {"two": f32(2), "eps": f64(1e-5), "s": np.full(16, 1.5, f32)}, strict=None)
    yield match("square_of_f16_beyond_range_times_f32_initializer", "accumulate.wide",
                [node("Mul", "x x", "t"), node("Mul", "t c", "y")], {"x": np.array([300, -400], f16)}, "y",
                np.array([900, 1600]), {"c": np.array([0.01, 0.01], f32)}, unit="float16", strict=None)
    rms = d(x) / np.sqrt((d(x)**2).mean(-1, keepdims=True) + 1e-6)
    yield match("rmsnorm_decomposed_f16_f32_epsilon_and_scale", "accumulate.wide",
                [node("Pow", "x two", "p"), node("ReduceMean", "p", "v", axes=[-1]), node("Add", "v eps", "e"),
                 node("Sqrt", "e", "r"), node("Div", "x r", "n"), node("Mul", "n s", "y")], {"x": x}, "y:h", rms * 1.5,
                {"two": i64(2), "eps": np.array([1e-6], f32), "s": np.full(16, 1.5, f32)}, strict=None)
    yield match("rmsnorm_decomposed_f16_f64_epsilon_bf16_scale", "accumulate.wide",
                [node("Mul", "x x", "p"), node("ReduceMean", "p", "v", axes=[-1]), node("Add", "eps v", "e"),
                 node("Sqrt", "e", "r"), node("Reciprocal", "r", "q"), node("Mul", "x q", "n"), node("Mul", "s n", "y")],
                {"x": x}, "y:h", rms * 1.5, {"eps": f64(1e-6), "s": np.full(16, 1.5, bf16)}, strict=None)
    yield match("layernorm_f16_variance_overflow", "accumulate.wide", node("LayerNormalization", "x s", "y"), {"x": x},
                "y:h", want, {"s": np.ones(16, f16)}, strict=None)
    yield match("instancenorm_f16_variance_overflow", "accumulate.wide", node("InstanceNormalization", "x s b", "y"),
                {"x": x[:, None]}, "y:h", want[:, None], {"s": np.ones(1, f16), "b": np.zeros(1, f16)}, strict=None)
    yield match("lpnormalization_f16_overflow", "accumulate.wide", node("LpNormalization", "x", "y", axis=1, p=2),
                {"x": x}, "y:h", d(x) / np.sqrt((d(x)**2).sum(1, keepdims=True)), strict=None)
    yield match("mean_f16_of_large_operands", "accumulate.wide", node("Mean", "a b", "y"),
                {"a": np.array([60000], f16), "b": np.array([60032], f16)}, "y:h", np.array([60016]), strict=None)
    yield match("scale_up_and_down_in_f16", "accumulate.wide", [node("Mul", "x a", "t"), node("Mul", "t b", "y")],
                {"x": np.array([100, -3], f16)}, "y:h", np.array([100 * 4096 / 8192, -1.5]),
                {"a": np.array([4096, 4096], f16), "b": np.array([1 / 8192] * 2, f16)}, strict=None)
    yield match("logsumexp_f16_overflow", "accumulate.wide", node("ReduceLogSumExp", "x", "y", axes=[1], keepdims=0),
                {"x": np.full((1, 4), 20, f16)}, "y:h", np.array([20 + np.log(4)]), strict=None)


def vision():
    x = halves("grid", 1, 1, 3, 3)
    at = np.array([[[[-1, -1], [1, 1]], [[0, 0], [1, -1]]]], f32)
    yield match("gridsample_f16_grid_f32", "input.table", node("GridSample", "x g", "y", align_corners=1), {"x": x},
                "y:h", d(x)[:, :, [[0, 2], [1, 0]], [[0, 2], [1, 2]]], {"g": at}, opset=16)
    ones = np.ones((1, 1, 4, 4), f16) * f16(2.5)
    yield match("roialign_f16_rois_f32_batch_int32", "input.table",
                node("RoiAlign", "x r b", "y", output_height=2, output_width=2, sampling_ratio=1), {"x": ones}, "y:h",
                np.full((1, 1, 2, 2), 2.5), {"r": np.array([[0.5, 0.5, 2.5, 2.5]], f32), "b": np.array([0], i32)},
                opset=16)
    s = floats("rev", 3, 2)
    yield match("reversesequence_lengths_int32", "input.table", node("ReverseSequence", "x n", "y"), {"x": s}, "y",
                np.stack([d(s)[[1, 0, 2], 0], d(s)[[2, 1, 0], 1]], 1), {"n": np.array([2, 3], i32)})
    want = d(s).copy()
    want[[0, 2]] += 3
    yield match("scatternd_add_updates_int32", "input.table", node("ScatterND", "x i u", "y", reduction="add"), {"x": s},
                "y", want, {"i": arr64(0, 2).reshape(2, 1), "u": np.full((2, 2), 3, i32)}, opset=16, strict=None)
    w = halves("vw", 2, 1, 2, 2, kind=bf16)
    v = np.lib.stride_tricks.sliding_window_view(d(x), (2, 2), axis=(2, 3))
    yield match("conv_f16_weights_bf16_bias_e4m3fn", "store.narrow", node("Conv", "x w b", "y"), {"x": x}, "y",
                np.einsum("nchwij,ocij->nohw", v, d(w)) + np.array([0.5, -2]).reshape(2, 1, 1),
                {"w": w, "b": np.array([0.5, -2], e4m3fn)}, opset=19, strict=None)
    yield match("unet_time_projection_mul", "promote.float",
                [node("Unsqueeze", "t one", "u"), node("Cast", "u", "c", to=1), node("Mul", "c f", "m",
                                                                                    name="/time_proj/Mul"),
                 node("Sin", "m", "a"), node("Cos", "m", "b"), node("Concat", "b a", "k", axis=-1),
                 node("Cast", "k", "y", to=10)], {"t": np.array([981, 1])}, "y:h",
                np.concatenate([f(np.array([[981.0], [1]]) * d(frequencies())) for f in (np.cos, np.sin)], -1),
                {"one": arr64(1), "f": frequencies()[None]}, strict=None)


def frequencies():
    return np.exp(-np.log(10000) * np.arange(160) / 160).astype(f32)


def cases():
    for group in (numbers, shape_arithmetic, attention, norms, vision):
        yield from group()
