"""Products, convolutions, normalisations, recurrences: weights, biases and statistics of other types than the data."""
import numpy as np
from type_case import (bf16, const, d, doubtful, f16, f32, f64, floats, halves, i8, i32, i64, ints, match, node, rng,
                       softmax, u8)


def products():
    x, w = floats("mx", 3, 8), floats("mw", 8, 5)
    h, g = halves("mh", 3, 8), halves("mg", 8, 5, kind=bf16)
    b = floats("mb", 5)
    yield match("matmul_f32_bf16_weight", "promote.float", node("MatMul", "x w", "y", name="here"), {"x": x}, "y",
                d(x) @ d(g), {"w": g})
    yield match("matmul_f16_f32_weight", "promote.float", node("MatMul", "x w", "y"), {"x": h}, "y", d(h) @ d(w),
                {"w": w})
    yield match("matmul_f16_f64_weight", "narrow.f64", node("MatMul", "x w", "y"), {"x": h}, "y:h", d(h) @ d(w),
                {"w": d(w)})
    yield match("matmul_f32_f64_weight_everywhere", "narrow.f64",
                [node("MatMul", "x w", "t"), node("Add", "t b", "u"), node("Relu", "u", "v"),
                 node("MatMul", "v z", "y")], {"x": x}, "y",
                np.maximum(d(x) @ d(w) + d(b), 0) @ d(floats("mz", 5, 2)),
                {"w": d(w), "b": d(b), "z": d(floats("mz", 5, 2))})
    yield match("matmul_two_activations_f16_bf16", "promote.float", node("MatMul", "a b", "y"), {"a": h, "b": g}, "y",
                d(h) @ d(g))
    yield match("matmul_int32_f32", "promote.int-float", node("MatMul", "a w", "y"),
                {"a": ints("mi", 3, 8, low=-9, dtype=i32)}, "y", d(ints("mi", 3, 8, low=-9, dtype=i32)) @ d(w),
                {"w": w}, strict=None)
    yield match("matmul_uint8_f32", "image.u8", node("MatMul", "a w", "y"),
                {"a": ints("mu", 3, 8, high=255, dtype=u8)}, "y", d(ints("mu", 3, 8, high=255, dtype=u8)) @ d(w),
                {"w": w})
    q = ints("mq", 8, 5, low=-127, high=127, dtype=i8)
    yield doubtful("matmul_f32_int8_weight_without_scale", "store.scale", node("MatMul", "x w", "y", name="here"),
                   {"x": x}, "y", d(x) @ d(q), {"w": q}, ["scale"])
    yield match("matmul_f16_bf16_weight_f32_bias", "promote.float", [node("MatMul", "x w", "t"), node("Add", "t b", "y")],
                {"x": h}, "y", d(h) @ d(g) + d(b), {"w": g, "b": b})
    yield match("gemm_f16_bias_f32", "promote.float", node("Gemm", "x w b", "y", name="here"), {"x": h}, "y:h",
                d(h) @ d(w.astype(f16)) + d(b), {"w": w.astype(f16), "b": b})
    yield match("gemm_f32_weight_bf16_transposed", "promote.float", node("Gemm", "x w b", "y", transB=1), {"x": x}, "y",
                d(x) @ d(g) + d(b), {"w": g.T.copy(), "b": b})
    yield match("gemm_weight_f64_bias_int32", "promote.int-float", node("Gemm", "x w b", "y", alpha=0.5, beta=2.0),
                {"x": x}, "y", 0.5 * (d(x) @ d(w)) + 2 * np.arange(-2, 3), {"w": d(w), "b": np.arange(-2, 3, dtype=i32)},
                strict=None)
    yield match("gemm_constant_node_weight_f16", "const.retype", [const("w", w.astype(f16)), node("Gemm", "x w", "y")],
                {"x": x}, "y", d(x) @ d(w.astype(f16)))
    # One matrix read by a float16 product, by a float32 product and as a table.
    yield match("shared_weight_embedding_and_head", "const.retype",
                [node("Gather", "w i", "e"), node("Transpose", "w", "t", perm=[1, 0]), node("MatMul", "x t", "y")],
                {"i": np.array([1, 6]), "x": floats("mt", 3, 5)}, "e:h y:f",
                {"e": d(w.astype(f16))[[1, 6]], "y": d(floats("mt", 3, 5)) @ d(w.astype(f16)).T}, {"w": w.astype(f16)})
    big = np.full((1, 64), 60, f16)
    yield match("matmul_f16_sum_above_65504", "accumulate.wide",
                [node("MatMul", "x w", "t"), node("Mul", "t c", "y")], {"x": big}, "y:h",
                np.full((1, 2), 64 * 3600 / 16), {"w": np.full((64, 2), 60, f16), "c": f16(1 / 16)}, strict=None)
    yield match("matmul_f16_stall_at_2048", "accumulate.wide", node("MatMul", "x w", "y"),
                {"x": np.ones((1, 5000), f16)}, "y:h", np.full((1, 1), 5000), {"w": np.ones((5000, 1), f16)},
                unit="exact")


def einsums():
    cases = (("ij,jk->ik", (3, 4), (4, 5)), ("i,j->ij", (6,), (4,)), ("bhqd,bhkd->bhqk", (1, 2, 3, 4), (1, 2, 5, 4)),
             ("...n,d->...nd", (2, 6), (4,)), ("bij,j->bi", (2, 3, 4), (4,)), ("ii,ij->j", (3, 3), (3, 2)))
    kinds = ((f16, f64, "h"), (f64, f16, "h"), (bf16, f32, "f"), (f32, f64, "f"), (f16, bf16, "f"), (i64, f32, "f"))
    for n, ((equation, s, t), (k, l, out)) in enumerate(zip(cases, kinds)):
        a = (rng(f"e{n}").integers(-9, 9, s) if k is i64 else halves(f"e{n}", *s, kind=k))
        b = halves(f"f{n}", *t, kind=l)
        yield match(f"einsum_{np.dtype(k).name}_{np.dtype(l).name}", "promote.float",
                    node("Einsum", "a b", "y", name="here", equation=equation), {"a": a, "b": b}, f"y:{out}",
                    np.einsum(equation, d(a), d(b)), strict=None if k is i64 else 0)
    a, b = halves("e", 2, 3), d(floats("g", 3, 4))
    yield match("einsum_f16_activation_f64_initializer", "narrow.f64",
                node("Einsum", "a b", "y", equation="ij,jk->ki"), {"a": a}, "y:h", (d(a) @ b).T, {"b": b})
    c = floats("ec", 4)
    yield match("einsum_three_operands_three_types", "promote.float",
                node("Einsum", "a b c", "y", equation="ij,jk,k->i"), {"a": a, "b": b.astype(f32)}, "y",
                d(a) @ d(b.astype(f32)) @ d(c.astype(bf16)), {"c": c.astype(bf16)})


def conv2d(x, w, b=None, pad=0, stride=1):
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    kh, kw = w.shape[2:]
    v = np.lib.stride_tricks.sliding_window_view(x, (kh, kw), axis=(2, 3))[:, :, ::stride, ::stride]
    y = np.einsum("nchwij,ocij->nohw", v, w)
    return y if b is None else y + b.reshape(1, -1, 1, 1)


def convolutions():
    x, w, b = floats("cx", 1, 3, 6, 6), floats("cw", 4, 3, 3, 3), floats("cb", 4)
    h = x.astype(f16)
    want = conv2d(d(h), d(w), d(b), 1)
    conv = node("Conv", "x w b", "y", name="here", pads=[1, 1, 1, 1])
    yield match("conv_f16_weights_f32", "promote.float", conv, {"x": h}, "y:h", want, {"w": w, "b": b})
    yield match("conv_f16_bias_f32", "promote.float", conv, {"x": h}, "y:h", conv2d(d(h), d(w.astype(f16)), d(b), 1),
                {"w": w.astype(f16), "b": b})
    yield match("conv_f32_weights_f16", "store.narrow", conv, {"x": x}, "y", conv2d(d(x), d(w.astype(f16)), d(b), 1),
                {"w": w.astype(f16), "b": b})
    yield match("conv_bf16_bias_f64", "promote.float", conv, {"x": x.astype(bf16)}, "y",
                conv2d(d(x.astype(bf16)), d(w), d(b) / 3, 1), {"w": w, "b": d(b) / 3})
    yield match("conv_f32_weights_f64", "narrow.f64", conv, {"x": x}, "y", conv2d(d(x), d(w) / 3, d(b), 1),
                {"w": d(w) / 3, "b": d(b)})
    image = ints("image", 1, 3, 6, 6, high=255, dtype=u8)
    yield match("conv_uint8_image", "image.u8", node("Conv", "x w b", "y", name="here"), {"x": image}, "y",
                conv2d(d(image), d(w), d(b)), {"w": w, "b": b})
    yield match("conv_uint8_image_f16_weights", "image.u8", node("Conv", "x w", "y", strides=[2, 2]), {"x": image}, "y:h",
                conv2d(d(image), d(w.astype(f16)) / 64, stride=2), {"w": w.astype(f16) / f16(64)})
    mean = np.array([123.675, 116.28, 103.53], f32).reshape(3, 1, 1)
    yield match("uint8_image_normalised_into_conv", "image.u8",
                [node("Sub", "x m", "t"), node("Div", "t s", "u"), node("Conv", "u w", "y")], {"x": image}, "y",
                conv2d((d(image) - d(mean)) / d(f32(58.4)), d(w)), {"m": mean, "s": f32(58.4), "w": w})
    yield match("uint8_image_divided_by_255", "image.u8", node("Div", "x c", "y"), {"x": image}, "y", d(image) / 255,
                {"c": f32(255)})
    yield doubtful("conv_int8_weights_without_scale", "store.scale", node("Conv", "x w", "y", name="here"), {"x": x},
                   "y", conv2d(d(x), np.rint(d(w))), {"w": np.rint(w).astype(i8)}, ["scale"])
    weights = floats("tw", 3, 2, 3, 3)
    y = np.zeros((1, 2, 8, 8))
    for i in range(6):
        for j in range(6):
            y[:, :, i:i + 3, j:j + 3] += np.einsum("nc,cokl->nokl", d(h)[:, :, i, j], d(weights))
    yield match("convtranspose_f16_weights_f32", "promote.float", node("ConvTranspose", "x w b", "y"), {"x": h}, "y:h",
                y + d(b[:2]).reshape(1, 2, 1, 1), {"w": weights, "b": b[:2].astype(f64)})
    yield match("conv_two_activations_f16_f32", "promote.float", node("Conv", "x w", "y"), {"x": h, "w": w}, "y",
                conv2d(d(h), d(w)))


def normalisations():
    x = halves("nx", 2, 3, 8, low=-4, high=4)
    s, b = floats("ns", 8), floats("nb", 8)
    wide = d(x)
    layer = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5)
    yield match("layernorm_f16_scale_f32", "promote.float", node("LayerNormalization", "x s b", "y", name="here"),
                {"x": x}, "y:h", layer * d(s) + d(b), {"s": s, "b": b})
    yield match("layernorm_bf16_scale_f32_bias_f16", "promote.float", node("LayerNormalization", "x s b", "y"),
                {"x": x.astype(bf16)}, "y:w", (lambda v: (v - v.mean(-1, keepdims=True)) / np.sqrt(
                    v.var(-1, keepdims=True) + 1e-5) * d(s) + d(b.astype(f16)))(d(x.astype(bf16))),
                {"s": s, "b": b.astype(f16)})
    yield match("layernorm_f32_scale_f64", "narrow.f64", node("LayerNormalization", "x s", "y"), {"x": x.astype(f32)},
                "y", layer * d(s) / 3, {"s": d(s) / 3})
    rms = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-6)
    yield match("rmsnorm_opset23_f16_scale_f32", "promote.float",
                node("RMSNormalization", "x s", "y", epsilon=1e-6), {"x": x}, "y:h", rms * d(s), {"s": s}, opset=23)
    loud = (wide * 200).astype(f16)
    rms = d(loud) / np.sqrt((d(loud)**2).mean(-1, keepdims=True) + 1e-6)
    decomposed = [node("Pow", "x two", "p"), node("ReduceMean", "p", "m", axes=[-1]), node("Add", "m eps", "e"),
                  node("Sqrt", "e", "r"), node("Div", "x r", "n"), node("Mul", "n s", "y")]
    yield match("rmsnorm_decomposed_overflow_pow", "accumulate.wide", decomposed, {"x": loud}, "y:h",
                rms * d(s.astype(f16)), {"two": f16(2), "eps": f16(1e-6), "s": s.astype(f16)}, strict=None)
    squares = [node("Mul", "x x", "p"), *decomposed[1:4], node("Reciprocal", "r", "q"), node("Mul", "x q", "n"),
               decomposed[5]]
    yield match("rmsnorm_decomposed_overflow_mul", "accumulate.wide", squares, {"x": loud}, "y:h",
                rms * d(s.astype(f16)), {"eps": f16(1e-6), "s": s.astype(f16)}, strict=None)
    yield match("rmsnorm_casts_inside_f32_scale", "accumulate.wide",
                [node("Cast", "x", "f", to=1), *[node(n.op_type, [("f" if i == "x" else i) for i in n.input],
                                                     list(n.output), **({"axes": [-1]} if n.op_type == "ReduceMean"
                                                                        else {})) for n in decomposed[:5]],
                 node("Cast", "n", "h", to=10), node("Mul", "h s", "y")], {"x": loud}, "y:h", rms * d(s),
                {"two": f32(2), "eps": f32(1e-6), "s": s})
    image = halves("ni", 1, 3, 4, 4)
    c = {k: floats(f"n{k}", 3, low=0.5, high=2) for k in ("s", "b", "m", "v")}
    t = {k: d(v).reshape(3, 1, 1) for k, v in c.items()}
    want = (d(image) - t["m"]) / np.sqrt(t["v"] + 1e-5) * t["s"] + t["b"]
    yield match("batchnorm_f16_statistics_f32", "promote.float", node("BatchNormalization", "x s b m v", "y"),
                {"x": image}, "y:h", want, c)
    yield match("batchnorm_f16_scale_f16_mean_f64", "promote.float", node("BatchNormalization", "x s b m v", "y"),
                {"x": image}, "y:h",
                (d(image) - t["m"]) / np.sqrt(t["v"] + 1e-5) * d(c["s"].astype(f16)).reshape(3, 1, 1) + t["b"],
                {"s": c["s"].astype(f16), "b": c["b"], "m": d(c["m"]), "v": d(c["v"])})
    yield match("batchnorm_opset9_f32_scale_f16", "promote.float", node("BatchNormalization", "x s b m v", "y"),
                {"x": image.astype(f32)}, "y",
                (d(image) - t["m"]) / np.sqrt(t["v"] + 1e-5) * d(c["s"].astype(f16)).reshape(3, 1, 1) + t["b"],
                {**c, "s": c["s"].astype(f16)}, opset=9)
    for kind in (f16, bf16):
        # What is folded of the parameters is not rounded to their type; behind a convolution neither.
        name, v = np.dtype(kind).name, image.astype(kind)
        k = {n: a.astype(kind) for n, a in c.items()}
        w = halves(f"bnw{name}", 3, 3, 1, 1, kind=kind)
        t = {n: d(a).reshape(3, 1, 1) for n, a in k.items()}
        for before, x, nodes in (("", d(v), []), ("_behind_a_convolution", np.einsum("nchw,oc->nohw", d(v), d(w)[:, :, 0, 0]),
                                                  [node("Conv", "x w", "u")])):
            yield match(f"batchnorm_{name}_parameters_folded_unrounded{before}", "accumulate.wide",
                        [*nodes, node("BatchNormalization", f"{'u' if nodes else 'x'} s b m v", "t"),
                         node("Cast", "t", "y", to=1)], {"x": v}, "y",
                        (x - t["m"]) / np.sqrt(t["v"] + 1e-5) * t["s"] + t["b"], {**k, **({"w": w} if nodes else {})})
    t = {k: d(v).reshape(3, 1, 1) for k, v in c.items()}
    mean, var = d(image).mean((2, 3), keepdims=True), d(image).var((2, 3), keepdims=True)
    yield match("instancenorm_f16_scale_f32", "promote.float", node("InstanceNormalization", "x s b", "y"),
                {"x": image}, "y:h", (d(image) - mean) / np.sqrt(var + 1e-5) * t["s"] + t["b"],
                {"s": c["s"], "b": c["b"]})
    four = halves("nf", 1, 4, 3, 3)
    grouped = d(four).reshape(1, 2, -1)
    n = ((grouped - grouped.mean(-1, keepdims=True)) / np.sqrt(grouped.var(-1, keepdims=True) + 1e-5)).reshape(
        four.shape)
    yield match("groupnorm_f16_scale_f32", "promote.float", node("GroupNormalization", "x s b", "y", num_groups=2),
                {"x": four}, "y:h", n * d(s[:4]).reshape(4, 1, 1) + d(b[:4]).reshape(4, 1, 1),
                {"s": s[:4], "b": b[:4]}, opset=21)


def sums():
    big = np.full((1, 100), 1000, f16)
    yield match("reducesum_f16_above_65504", "accumulate.wide",
                [node("ReduceSum", "x a", "t", keepdims=0), node("Div", "t n", "y")], {"x": big}, "y:h",
                np.array([1000]), {"a": np.array([1]), "n": f16(100)}, unit="exact", strict=None)
    yield match("reducesum_f16_stall_at_2048", "accumulate.wide", node("ReduceSum", "x a", "y", keepdims=0),
                {"x": np.ones((1, 4096), f16)}, "y:h", np.array([4096]), {"a": np.array([1])}, unit="exact")
    yield match("reducemean_f16_large", "accumulate.wide", node("ReduceMean", "x", "y", axes=[1], keepdims=0),
                {"x": big}, "y:h", np.array([1000]), unit="exact")
    yield match("reducesum_bf16_stall_at_256", "accumulate.wide", node("ReduceSum", "x a", "y", keepdims=0),
                {"x": np.ones((1, 1024), bf16)}, "y:w", np.array([1024]), {"a": np.array([1])}, unit="exact")
    yield match("cumsum_f16_stall_at_2048", "accumulate.wide", [node("CumSum", "x a", "y")],
                {"x": np.ones(2100, f16)}, "y:h", np.arange(1, 2101), {"a": np.int32(0)}, unit="exact")
    yield match("reducel2_f16_overflow", "accumulate.wide", node("ReduceL2", "x", "y", axes=[1], keepdims=0),
                {"x": np.full((1, 4), 500, f16)}, "y:h", np.array([1000]), unit="exact")
    yield match("reducesumsquare_f16_overflow", "accumulate.wide",
                [node("ReduceSumSquare", "x", "t", axes=[1], keepdims=0), node("Sqrt", "t", "y")],
                {"x": np.full((1, 4), 500, f16)}, "y:h", np.array([1000]), unit="exact", strict=None)
    image = np.full((1, 2, 16, 16), 900, f16)
    yield match("globalaveragepool_f16_sum_above_65504", "accumulate.wide", node("GlobalAveragePool", "x", "y"),
                {"x": image}, "y:h", np.full((1, 2, 1, 1), 900), unit="exact")
    yield match("averagepool_f16_sum_above_65504", "accumulate.wide",
                node("AveragePool", "x", "y", kernel_shape=[16, 16]), {"x": image}, "y:h", np.full((1, 2, 1, 1), 900),
                unit="exact")
    # The sum that the model stores is beyond float16: an output declared as float16 gets the standard's infinity.
    yield match("reducesum_f16_stored_beyond_range", "accumulate.wide", node("ReduceSum", "x a", "y", keepdims=0),
                {"x": big}, "y:h", np.array([np.inf]), {"a": np.array([1])}, strict=None)


def masks():
    scores = halves("scores", 2, 6, low=-5, high=5)
    keep = np.array([[1, 1, 0, 1, 0, 0], [1, 1, 1, 1, 1, 0]], bool)
    x = d(scores)
    for word, low in (("1e9", -1e9), ("65504", -65504.0), ("finfo", float(np.finfo(f32).min))):
        mask = np.where(keep, 0, low).astype(f32)
        yield match(f"softmax_f16_mask_minus_{word}", "mask.finite",
                    [node("Add", "x m", "t"), node("Softmax", "t", "y", axis=-1)], {"x": scores, "m": mask}, "y:h",
                    softmax(np.where(keep, x, -np.inf)), strict=None)
    yield match("softmax_f16_fully_masked_row", "mask.finite",
                [node("Add", "x m", "t"), node("Softmax", "t", "y", axis=-1)], {"x": scores}, "y:h",
                np.full((2, 6), 1 / 6), {"m": np.full((2, 6), -1e9, f32)}, strict=None)
    yield match("softmax_f16_fully_masked_row_65504", "mask.finite",
                [node("Add", "x m", "t"), node("Softmax", "t", "y", axis=-1)], {"x": scores}, "y:h", softmax(x),
                {"m": np.full((2, 6), -65504, f16)}, strict=None)
    yield match("softmax_where_literal_minus_1e9", "mask.finite",
                [node("Where", "k x c", "t"), node("Softmax", "t", "y", axis=-1)], {"k": keep, "x": scores}, "y:h",
                softmax(np.where(keep, x, -np.inf)), {"c": f32(-1e9)}, strict=None)
    yield match("softmax_mask_from_bool_times_literal", "mask.finite",
                [node("Cast", "k", "f", to=10), node("Sub", "one f", "i"), node("Mul", "i c", "m"),
                 node("Add", "x m", "t"), node("Softmax", "t", "y", axis=-1)], {"k": keep, "x": scores}, "y:h",
                softmax(np.where(keep, x, -np.inf)), {"one": f16(1), "c": f32(-1e9)}, strict=None)
    yield match("zero_times_minus_inf_mask", "mask.inf",
                [node("Cast", "k", "f", to=1), node("Sub", "one f", "i"), node("Mul", "i c", "m"),
                 node("Add", "x m", "t"), node("Softmax", "t", "y", axis=-1)], {"k": keep, "x": scores.astype(f32)},
                "y", softmax(np.where(keep, x, -np.inf)), {"one": f32(1), "c": f32(-np.inf)}, strict=None)
    yield match("where_minus_inf_fully_masked_row", "mask.inf",
                [node("Where", "k x c", "t"), node("Softmax", "t", "y", axis=-1)],
                {"k": keep * np.array([[True], [False]]), "x": scores.astype(f32)}, "y",
                np.stack([softmax(np.where(keep, x, -np.inf))[0], np.full(6, 1 / 6)]), {"c": f32(-np.inf)}, strict=None)
    yield match("where_minus_inf_ordinary_row", "mask.inf",
                [node("Where", "k x c", "t"), node("Softmax", "t", "y", axis=-1)],
                {"k": keep, "x": scores}, "y:h", softmax(np.where(keep, x, -np.inf)), {"c": f16(-np.inf)}, strict=None)


def recurrences():
    x, w, r, b = (floats(f"l{k}", *s, low=-0.5, high=0.5) for k, s in
                  (("x", (3, 1, 4)), ("w", (1, 8, 4)), ("r", (1, 8, 2)), ("b", (1, 16))))
    h = x.astype(f16)
    state, cell, out = np.zeros((1, 2)), np.zeros((1, 2)), []
    for t in range(3):
        g = d(h)[t] @ d(w)[0].T + state @ d(r)[0].T + d(b)[0, :8] + d(b)[0, 8:]
        i, o, f, c = np.split(g, 4, axis=1)
        sig = lambda v: 1 / (1 + np.exp(-v))  # noqa: E731
        cell = sig(f) * cell + sig(i) * np.tanh(c)
        state = sig(o) * np.tanh(cell)
        out.append(state)
    yield match("lstm_f16_weights_f32", "promote.float", node("LSTM", "x w r b", "y", hidden_size=2), {"x": h}, "y:h",
                np.stack(out)[:, None], {"w": w, "r": r, "b": b})
    yield match("lstm_f16_bias_f64", "promote.float", node("LSTM", "x w r b", "y", hidden_size=2), {"x": h}, "y:h",
                np.stack(out)[:, None], {"w": w, "r": r, "b": d(b)})
    q, k, v = (halves(f"a{n}", 1, 2, 3, 4) for n in "qkv")
    mask = np.where(np.tril(np.ones((3, 3), bool)), 0, -1e9).astype(f32)
    want = softmax(d(q) @ d(k).swapaxes(2, 3) / 2 + mask) @ d(v)
    yield match("attention_opset23_f16_mask_f32", "mask.finite", node("Attention", "q k v m", "y"),
                {"q": q, "k": k, "v": v}, "y:h", want, {"m": mask}, opset=23, strict=None)


def cases():
    for group in (products, einsums, convolutions, normalisations, sums, masks, recurrences):
        yield from group()
