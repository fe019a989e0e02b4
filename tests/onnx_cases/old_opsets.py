"""Forms that ops had in opsets 1 to 12; a twin in modern form gives the expected outputs."""
import numpy as np
from case import floats, ints, node, simple

I64 = np.int64


def arr(*v):
    return np.array(v, I64)


def arithmetic():
    a, b = floats("a", 2, 3, 4, 5), floats("b", 3, 4, low=0.5, high=2)
    tall = {"bb": b.reshape(1, 3, 4, 1)}
    for op in ("Add", "Sub", "Mul", "Div", "Pow"):
        base = np.abs(a) if op == "Pow" else a
        yield simple(f"{op.lower()}6_axis", node(op, "a b", "y", broadcast=1, axis=1), {"a": base}, opset=6,
                     constants={"b": b}, twin=(node(op, "a bb", "y"), tall))
    yield simple("add1_consumed", node("Add", "a b", "y", broadcast=1, axis=1, consumed_inputs=[0, 0]), {"a": a},
                 constants={"b": b}, opset=1, twin=(node("Add", "a bb", "y"), tall))
    yield simple("add6_suffix", node("Add", "a b", "y", broadcast=1), {"a": a, "b": floats("s", 4, 5)}, opset=6,
                 twin=node("Add", "a b", "y"))
    yield simple("add6_scalar", node("Mul", "a b", "y", broadcast=1), {"a": a}, constants={"b": np.float32(3)}, opset=6,
                 twin=node("Mul", "a b", "y"))
    for op, out in (("Equal", "y:b"), ("Less", "y:b"), ("Greater", "y:b")):
        i = ints("i", 2, 3, dtype=np.int32, high=2)
        if op != "Equal":
            i = i.astype(np.float32)
        row = np.ones(3, i.dtype)
        yield simple(f"{op.lower()}1_broadcast", node(op, "a b", "y", broadcast=1, axis=1), {"a": i}, out, {"b": row},
                     opset=1, twin=node(op, "a b", "y"))
    t = np.array([[True, False, True], [False, False, True]])
    yield simple("and1_broadcast", node("And", "a b", "y", broadcast=1, axis=0), {"a": t}, "y:b",
                 {"b": np.array([True, False])}, opset=1,
                 twin=(node("And", "a bb", "y"), {"bb": np.array([[True], [False]])}))
    for op in ("Max", "Min", "Sum", "Mean"):
        yield simple(f"{op.lower()}1", node(op, "a b c", "y", consumed_inputs=[0, 0, 0]),
                     {k: floats(k, 2, 3) for k in "abc"}, opset=1, twin=node(op, "a b c", "y"))
    yield simple("matmul1", node("MatMul", "a b", "y"), {"a": floats("m", 2, 3), "b": floats("n", 3, 4)}, opset=1,
                 twin=node("MatMul", "a b", "y"))
    for opset in (1, 6):
        yield simple(f"gemm{opset}_broadcast", node("Gemm", "a b c", "y", transB=1, alpha=0.5, beta=2.0, broadcast=1),
                     {"a": floats("m", 2, 3)}, constants={"b": floats("n", 4, 3), "c": floats("c", 4)}, opset=opset,
                     twin=node("Gemm", "a b c", "y", transB=1, alpha=0.5, beta=2.0))


def unary():
    x = floats("x", 2, 3, 4)
    for op, params in (("Relu", {}), ("Sigmoid", {}), ("Tanh", {}), ("Exp", {}), ("Abs", {}), ("Neg", {}),
                       ("Floor", {}), ("Ceil", {}), ("LeakyRelu", dict(alpha=0.2)), ("Elu", dict(alpha=1.5)),
                       ("Selu", dict(alpha=1.6, gamma=1.05)), ("HardSigmoid", dict(alpha=0.2, beta=0.5)),
                       ("Reciprocal", {})):
        yield simple(f"{op.lower()}1", node(op, "x", "y", consumed_inputs=[0], **params), {"x": x}, opset=1,
                     twin=node(op, "x", "y", **params))
    for opset in (1, 6):
        yield simple(f"clip{opset}", node("Clip", "x", "y", min=-0.5, max=1.0), {"x": x}, opset=opset,
                     twin=(node("Clip", "x lo hi", "y"), {"lo": np.float32(-0.5), "hi": np.float32(1)}))
    yield simple("clip6_min_only", node("Clip", "x", "y", min=0.25), {"x": x}, opset=6,
                 twin=(node("Clip", "x lo", "y"), {"lo": np.float32(0.25)}))
    yield simple("clip6_defaults", node("Clip", "x", "y"), {"x": x}, opset=6, twin=node("Identity", "x", "y"))
    yield simple("cast1_string", node("Cast", "x", "y", to="INT32"), {"x": x}, "y:i", opset=1,
                 twin=node("Cast", "x", "y", to=6))
    yield simple("cast6", node("Cast", "x", "y", to=7), {"x": x}, "y:l", opset=6, twin=node("Cast", "x", "y", to=7))
    yield simple("dropout1", node("Dropout", "x", "y", is_test=1, consumed_inputs=[0], ratio=0.5), {"x": x}, opset=1,
                 twin=node("Identity", "x", "y"))
    yield simple("dropout6", node("Dropout", "x", "y", is_test=1), {"x": x}, opset=6, twin=node("Identity", "x", "y"))
    yield simple("dropout7", node("Dropout", "x", "y", ratio=0.3), {"x": x}, opset=7)
    yield simple("dropout12_mask", node("Dropout", "x", "y m"), {"x": x}, "y m:b", opset=12)
    yield simple("prelu6", node("PRelu", "x s", "y"), {"x": x}, constants={"s": floats("s", 3)}, opset=6,
                 twin=(node("PRelu", "x t", "y"), {"t": floats("s", 3).reshape(3, 1)}))
    for op in ("Softmax", "LogSoftmax", "Hardmax"):
        flat = [node("Reshape", "x two", "f"), node(op, "f", "g", axis=1), node("Reshape", "g back", "y")]
        yield simple(f"{op.lower()}1_flattens", node(op, "x", "y"), {"x": x}, opset=1,
                     twin=(flat, {"two": arr(2, 12), "back": arr(2, 3, 4)}))
        flat = [node("Reshape", "x two", "f"), node(op, "f", "g", axis=1), node("Reshape", "g back", "y")]
        yield simple(f"{op.lower()}11_axis0", node(op, "x", "y", axis=0), {"x": x}, opset=11,
                     twin=(flat, {"two": arr(1, 24), "back": arr(2, 3, 4)}))
    yield simple("parametricsoftplus1", node("ParametricSoftplus", "x", "y", alpha=0.5, beta=2.0), {"x": x}, opset=1,
                 wanted=True, twin=([node("Mul", "x b", "t"), node("Softplus", "t", "u"), node("Mul", "u a", "y")],
                                    {"a": np.float32(0.5), "b": np.float32(2)}))
    yield simple("scaledtanh1", node("ScaledTanh", "x", "y", alpha=2.0, beta=0.5), {"x": x}, opset=1, wanted=True,
                 twin=([node("Mul", "x b", "t"), node("Tanh", "t", "u"), node("Mul", "u a", "y")],
                       {"a": np.float32(2), "b": np.float32(0.5)}))
    yield simple("thresholdedrelu1", node("ThresholdedRelu", "x", "y", alpha=0.7), {"x": x}, opset=6, wanted=True,
                 twin=node("ThresholdedRelu", "x", "y", alpha=0.7))
    yield simple("affine1", node("Affine", "x", "y", alpha=2.0, beta=0.5), {"x": x}, opset=6,
                 twin=([node("Mul", "x a", "t"), node("Add", "t b", "y")], {"a": np.float32(2), "b": np.float32(0.5)}))
    image = floats("image", 1, 3, 6, 7)
    yield simple("imagescaler1", node("ImageScaler", "x", "y", scale=0.5, bias=[0.1, 0.2, 0.3]), {"x": image}, opset=6,
                 twin=([node("Mul", "x a", "t"), node("Add", "t b", "y")],
                       {"a": np.float32(0.5), "b": np.array([0.1, 0.2, 0.3], np.float32).reshape(3, 1, 1)}))
    yield simple("crop1", node("Crop", "x", "y", border=[1, 2, 1, 1]), {"x": image}, opset=6,
                 twin=(node("Slice", "x s e a", "y"), {"s": arr(2, 1), "e": arr(5, 6), "a": arr(2, 3)}))
    yield simple("crop1_scale", node("Crop", "x", "y", border=[1, 2, 0, 0], scale=[3, 4]), {"x": image}, opset=6,
                 wanted=True, twin=(node("Slice", "x s e a", "y"), {"s": arr(2, 1), "e": arr(5, 5), "a": arr(2, 3)}))


def shapes():
    x = floats("x", 2, 3, 4)
    yield simple("reshape1", node("Reshape", "x", "y", shape=[0, -1], consumed_inputs=[0]), {"x": x}, opset=1,
                 twin=(node("Reshape", "x s", "y"), {"s": arr(2, 12)}))
    one = floats("one", 1, 3, 1, 4)
    yield simple("squeeze1", node("Squeeze", "x", "y", axes=[0, 2]), {"x": one}, opset=1,
                 twin=(node("Squeeze", "x a", "y"), {"a": arr(0, 2)}))
    yield simple("squeeze1_all", node("Squeeze", "x", "y"), {"x": one}, opset=1, twin=node("Squeeze", "x", "y"))
    yield simple("unsqueeze1", node("Unsqueeze", "x", "y", axes=[0, 3]), {"x": x}, opset=1,
                 twin=(node("Unsqueeze", "x a", "y"), {"a": arr(0, 3)}))
    yield simple("unsqueeze11_negative", node("Unsqueeze", "x", "y", axes=[-1, 0]), {"x": x}, opset=11)
    yield simple("split2", node("Split", "x", "y z", axis=2, split=[1, 3]), {"x": x}, "y z", opset=2,
                 twin=(node("Split", "x s", "y z", axis=2), {"s": arr(1, 3)}))
    yield simple("split2_equal", node("Split", "x", "y z", axis=2), {"x": x}, "y z", opset=2,
                 twin=(node("Split", "x s", "y z", axis=2), {"s": arr(2, 2)}))
    yield simple("split1_input", node("Split", "x s", "y z", axis=2), {"x": x}, "y z",
                 {"s": np.array([1, 3], np.float32)}, opset=1, wanted=True,
                 twin=(node("Split", "x t", "y z", axis=2), {"t": arr(1, 3)}))
    yield simple("slice1", node("Slice", "x", "y", starts=[0, -3], ends=[2, 9000], axes=[1, 2]), {"x": x}, opset=1,
                 twin=(node("Slice", "x s e a", "y"), {"s": arr(0, -3), "e": arr(2, 9000), "a": arr(1, 2)}))
    yield simple("slice1_no_axes", node("Slice", "x", "y", starts=[1, 0], ends=[2, 2]), {"x": x}, opset=1,
                 twin=(node("Slice", "x s e", "y"), {"s": arr(1, 0), "e": arr(2, 2)}))
    yield simple("concat1_default_axis", node("Concat", "x x", "y"), {"x": x}, opset=1,
                 twin=node("Concat", "x x", "y", axis=1))
    yield simple("tile1", node("Tile", "x n a", "y"), {"x": x}, constants={"n": np.float32(2), "a": np.float32(1)},
                 opset=1, wanted=True, twin=(node("Tile", "x r", "y"), {"r": arr(1, 2, 1)}))
    yield simple("tile6", node("Tile", "x r", "y"), {"x": x}, constants={"r": arr(2, 1, 3)}, opset=6,
                 twin=node("Tile", "x r", "y"))
    for opset, word in ((1, "paddings"), (2, "pads")):
        for mode in ("constant", "reflect", "edge"):
            yield simple(f"pad{opset}_{mode}", node("Pad", "x", "y", mode=mode, value=0.5,
                                                    **{word: [0, 1, 2, 0, 1, 1]}), {"x": x}, opset=opset,
                         twin=(node("Pad", "x p v", "y", mode=mode),
                               {"p": arr(0, 1, 2, 0, 1, 1), "v": np.float32(0.5)}))
    yield simple("pad2_negative", node("Pad", "x", "y", pads=[0, -1, 2, 0, 0, -1]), {"x": x}, opset=2,
                 twin=(node("Pad", "x p", "y"), {"p": arr(0, -1, 2, 0, 0, -1)}))
    yield simple("flatten1", node("Flatten", "x", "y", axis=2), {"x": x}, opset=1,
                 twin=node("Flatten", "x", "y", axis=2))
    yield simple("gather1", node("Gather", "x i", "y", axis=1), {"x": x}, constants={"i": arr(2, 0)}, opset=1,
                 twin=node("Gather", "x i", "y", axis=1))
    yield simple("depthtospace1", node("DepthToSpace", "x", "y", blocksize=2), {"x": floats("d", 1, 8, 2, 3)}, opset=1,
                 twin=node("DepthToSpace", "x", "y", blocksize=2))
    up = floats("up", 1, 2, 3, 4)
    for mode in ("nearest", "linear"):
        yield simple(f"upsample7_{mode}", node("Upsample", "x", "y", mode=mode, scales=[1.0, 1.0, 2.0, 3.0]),
                     {"x": up}, opset=7)
        yield simple(f"upsample9_{mode}", node("Upsample", "x s", "y", mode=mode), {"x": up}, opset=9,
                     constants={"s": np.array([1, 1, 2, 1.5], np.float32)})
        yield simple(f"resize10_{mode}", node("Resize", "x s", "y", mode=mode), {"x": up}, opset=10,
                     constants={"s": np.array([1, 1, 0.6, 2], np.float32)})
    yield simple("upsample1", node("Upsample", "x", "y", mode="nearest", width_scale=3.0, height_scale=2.0), {"x": up},
                 opset=1, wanted=True, twin=(node("Resize", ["x", "", "s"], "y", mode="nearest",
                                                  coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
                                             {"s": np.array([1, 1, 2, 3], np.float32)}))


def reductions():
    x = floats("x", 2, 3, 4)
    for op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
               "ReduceLogSumExp", "ReduceSumSquare", "ReduceLogSum"):
        given = np.abs(x) + 0.5 if op == "ReduceLogSum" else x
        yield simple(f"{op.lower()}1_axes", node(op, "x", "y", axes=[0, 2], keepdims=0), {"x": given}, opset=1,
                     twin=(node(op, "x a", "y", keepdims=0), {"a": arr(0, 2)}, 18))
        yield simple(f"{op.lower()}11_all", node(op, "x", "y"), {"x": given}, opset=11)
    for op in ("ArgMax", "ArgMin"):
        yield simple(f"{op.lower()}1", node(op, "x", "y", axis=1, keepdims=0), {"x": x}, "y:l", opset=1,
                     twin=node(op, "x", "y", axis=1, keepdims=0))
    yield simple("topk1", node("TopK", "x", "y i", k=2, axis=1), {"x": x}, "y i:l", opset=1,
                 twin=(node("TopK", "x k", "y i", axis=1), {"k": arr(2)}))
    yield simple("topk10", node("TopK", "x k", "y i", axis=-1), {"x": x}, "y i:l", {"k": arr(3)}, opset=10)


def layers():
    x = floats("x", 2, 3, 5, 6)
    bn = {"s": floats("s", 3), "b": floats("b", 3), "m": floats("m", 3), "v": floats("v", 3, low=0.5, high=2)}
    twin = node("BatchNormalization", "x s b m v", "y", epsilon=1e-3)
    yield simple("batchnorm1", node("BatchNormalization", "x s b m v", "y", epsilon=1e-3, is_test=1, spatial=1,
                                    consumed_inputs=[0, 0, 0, 1, 1]), {"x": x}, constants=bn, opset=1, twin=twin)
    yield simple("batchnorm6", node("BatchNormalization", "x s b m v", "y", epsilon=1e-3, is_test=1), {"x": x},
                 constants=bn, opset=6, twin=twin)
    yield simple("batchnorm7_momentum", node("BatchNormalization", "x s b m v", "y", epsilon=1e-3, momentum=0.8),
                 {"x": x}, constants=bn, opset=7)
    each = {k: floats(f"e{k}", 3, 5, 6, low=0.5) for k in "sbmv"}
    yield simple("batchnorm7_spatial0", node("BatchNormalization", "x s b m v", "y", spatial=0), {"x": x},
                 constants=each, opset=7, wanted=True)
    yield simple("instancenorm1", node("InstanceNormalization", "x s b", "y", consumed_inputs=[0, 0, 0]), {"x": x},
                 constants={k: bn[k] for k in "sb"}, opset=1, twin=node("InstanceNormalization", "x s b", "y"))
    yield simple("lrn1", node("LRN", "x", "y", size=3, alpha=0.01, beta=0.7, bias=1.5), {"x": x}, opset=1,
                 twin=node("LRN", "x", "y", size=3, alpha=0.01, beta=0.7, bias=1.5))
    w = {"w": floats("w", 4, 3, 3, 3), "b": floats("cb", 4)}
    for pad in ("SAME_UPPER", "SAME_LOWER", "VALID"):
        yield simple(f"conv1_{pad.lower()}", node("Conv", "x w b", "y", auto_pad=pad, strides=[2, 2]), {"x": x},
                     constants=w, opset=1, twin=node("Conv", "x w b", "y", auto_pad=pad, strides=[2, 2]))
    yield simple("convtranspose1_output_shape", node("ConvTranspose", "x w", "y", strides=[2, 2], output_shape=[10, 12]),
                 {"x": x}, constants={"w": floats("tw", 3, 2, 3, 3)}, opset=1,
                 twin=node("ConvTranspose", "x w", "y", strides=[2, 2], output_shape=[10, 12]))
    for op in ("AveragePool", "MaxPool"):
        yield simple(f"{op.lower()}1", node(op, "x", "y", kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1]),
                     {"x": x}, opset=1, twin=node(op, "x", "y", kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1]))
        yield simple(f"{op.lower()}10_ceil", node(op, "x", "y", kernel_shape=[2, 3], strides=[2, 2], ceil_mode=1),
                     {"x": x}, opset=10)
    yield simple("lppool2", node("LpPool", "x", "y", kernel_shape=[2, 2], p=2), {"x": x}, opset=2,
                 twin=node("LpPool", "x", "y", kernel_shape=[2, 2], p=2))
    yield simple("globallppool2", node("GlobalLpPool", "x", "y", p=2), {"x": x}, opset=2,
                 twin=node("GlobalLpPool", "x", "y", p=2))
    rois = np.array([[0, 0, 0, 3, 3], [1, 1, 2, 5, 4]], np.float32)
    yield simple("maxroipool1", node("MaxRoiPool", "x r", "y", pooled_shape=[2, 2], spatial_scale=1.0),
                 {"x": x, "r": rois}, opset=1, wanted=True, twin=node("MaxRoiPool", "x r", "y", pooled_shape=[2, 2],
                                                         spatial_scale=1.0))
    yield simple("meanvariancenorm1", node("MeanVarianceNormalization", "x", "y", across_channels=1), {"x": x}, opset=1,
                 wanted=True, twin=node("MeanVarianceNormalization", "x", "y", axes=[1, 2, 3]))


def recurrent():
    x = floats("x", 4, 2, 3)
    for op, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        for direction, n in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
            k = {"w": floats("w", n, gates * 5, 3), "r": floats("r", n, gates * 5, 5),
                 "b": floats("b", n, 2 * gates * 5)}
            yield simple(f"{op.lower()}7_{direction}", node(op, "x w r b", "y h", hidden_size=5, direction=direction),
                         {"x": x}, "y h", k, opset=7)
    k = {"w": floats("w", 1, 15, 3), "r": floats("r", 1, 15, 5), "b": floats("b", 1, 30)}
    yield simple("gru3_linear_before_reset", node("GRU", "x w r b", "y", hidden_size=5, linear_before_reset=1),
                 {"x": x}, constants=k, opset=3, twin=node("GRU", "x w r b", "y", hidden_size=5, linear_before_reset=1))
    yield simple("gru1_output_sequence", node("GRU", "x w r b", "y h", hidden_size=5, output_sequence=1), {"x": x},
                 "y h", k, opset=1, twin=node("GRU", "x w r b", "y h", hidden_size=5), wanted=True)


def cases():
    for make in (arithmetic, unary, shapes, reductions, layers, recurrent):
        yield from make()
