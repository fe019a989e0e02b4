"""Layers on a number of rows that depends on data: products, recurrent layers, distinct items, com.microsoft's operators.

As bounded.py, whose helpers they use; about 0.3 s a case.
"""
import numpy as np
from bounded import BIAS, KEEPS, ROWS, SOME, feeds, rows
from case import arr64, floats, graph, model, ms, node, refused
from onnx import TensorProto, helper


def products():
    w, v = floats("w", 4, 5), floats("v", 3, 4)
    yield rows("matmul", node("MatMul", "rows w", "y"), constants={"w": w})
    yield rows("gemm", node("Gemm", "rows w b", "y"), constants={"w": w, "b": floats("b", 5)})
    yield rows("matmul_right", [node("Transpose", "rows", "t", perm=[1, 0]), node("MatMul", "v t", "y")], constants={"v": v})
    yield rows("matmul_summed", [node("Transpose", "rows", "t", perm=[1, 0]), node("MatMul", "t rows", "y")])
    yield rows("attention", [node("Transpose", "rows", "t", perm=[1, 0]), node("MatMul", "rows t", "s"),
                             node("Mul", "s c", "m"), node("Softmax", "m", "p", axis=-1), node("MatMul", "p rows", "y")],
               constants={"c": np.float32(0.05)})
    yield rows("layer_norm", node("LayerNormalization", "rows g b", "y"), constants={"g": floats("g", 4), "b": BIAS})
    image = dict(constants={"s": arr64(-1, 1, 2, 2), "w": floats("k", 3, 1, 2, 2)})
    yield rows("conv", [node("Reshape", "rows s", "r"), node("Conv", "r w", "y", pads=[1, 1, 0, 0])], **image)
    yield rows("conv_transpose", [node("Reshape", "rows s", "r"), node("ConvTranspose", "r w", "y", strides=[2, 2])],
               constants={"s": arr64(-1, 1, 2, 2), "w": floats("k", 1, 3, 2, 2)})
    yield rows("max_pool", [node("Reshape", "rows s", "r"), node("MaxPool", "r", "y", kernel_shape=[2, 1])],
               constants={"s": arr64(-1, 1, 2, 2)})
    yield rows("global_pool", [node("Reshape", "rows s", "r"), node("GlobalAveragePool", "r", "y")],
               constants={"s": arr64(-1, 1, 2, 2)})
    yield rows("resize", [node("Reshape", "rows s", "r"), node("Resize", ["r", "", "k"], ["y"], mode="linear")],
               constants={"s": arr64(-1, 1, 2, 2), "k": np.array([1, 1, 2, 2], np.float32)})
    yield rows("resize_to_sizes", [node("Reshape", "rows s", "r"), node("Shape", "r", "rs", start=0, end=2),
                                   node("Concat", "rs hw", "k", axis=0),
                                   node("Resize", ["r", "", "", "k"], ["y"], mode="linear")],
               constants={"s": arr64(-1, 1, 2, 2), "hw": arr64(3, 5)})
    yield rows("grid_sample", [node("Mul", "rows c", "m"), node("Reshape", "m s", "g"), node("Shape", "rows", "rs", start=0, end=1),
                               node("Concat", "rs tail", "t", axis=0), node("Expand", "image t", "i"),
                               node("GridSample", "i g", "y")],
               constants={"c": np.float32(0.08), "s": arr64(-1, 2, 1, 2), "tail": arr64(2, 3, 3), "image": floats("im", 1, 2, 3, 3)})
    yield rows("roi_align", [node("Abs", "rows", "boxes"), node("Shape", "rows", "s", start=0, end=1),
                             node("ConstantOfShape", "s", "b", value=helper.make_tensor("v", TensorProto.INT64, [1], [0])),
                             node("RoiAlign", "im boxes b", "y", output_height=2, output_width=2, sampling_ratio=2)],
               constants={"im": floats("image", 1, 3, 8, 8)})


def recurrent():
    # Small weights: with saturated gates, results near 0 would be what rounding leaves of them.
    w = {op: dict(w=floats("w", 1, gates * 2, 4, low=-0.3, high=0.3), r=floats("r", 1, gates * 2, 2, low=-0.5, high=0.5))
         for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1))}
    for op, weights in w.items():
        outputs = "y h c" if op == "LSTM" else "y h"
        yield rows(f"{op.lower()}_steps", [node("Unsqueeze", "rows a", "u"), node(op, "u w r", outputs, hidden_size=2)], outputs,
                   {**weights, "a": arr64(1)}, keeps=SOME)
        yield rows(f"{op.lower()}_batch", [node("Unsqueeze", "rows a", "u"), node(op, "u w r", outputs, hidden_size=2)], outputs,
                   {**weights, "a": arr64(0)}, keeps=SOME)
    both = {k: np.concatenate([v, v[:, ::-1]]) for k, v in w["LSTM"].items()}
    yield rows("lstm_both_directions", [node("Unsqueeze", "rows a", "u"),
                                        node("LSTM", "u w r", "y h", hidden_size=2, direction="bidirectional")], "y h",
               {**both, "a": arr64(1)}, keeps=SOME)
    yield rows("lstm_reverse", [node("Unsqueeze", "rows a", "u"), node("LSTM", "u w r", "y h", hidden_size=2, direction="reverse")],
               "y h", {**w["LSTM"], "a": arr64(1)}, keeps=SOME)
    three = {"middle": [0, 1, 0, 1, 1, 0], "all": KEEPS["all"]}
    lens = node("LSTM", "u w r b lens", "y h", name="cell", hidden_size=2)
    yield rows("lstm_lengths", [node("Unsqueeze", "rows a", "u"), lens], "y h",
               {**w["LSTM"], "a": arr64(1), "b": floats("b", 1, 16), "lens": np.array([3], np.int32)}, keeps=three,
               fails=[(feeds("lstm_lengths")[1], "'cell' (CheckLength): a part of 3 elements is not within an axis of 1")])
    yield rows("lstm_lengths_last", [node("Unsqueeze", "rows a", "u"), node("LSTM", "u w r b lens", ["", "h"], name="cell", hidden_size=2)],
               "h", {**w["LSTM"], "a": arr64(1), "b": floats("b", 1, 16), "lens": np.array([3], np.int32)}, keeps=three,
               fails=[(feeds("lstm_lengths_last")[1], "'cell' (CheckLength): a part of 3 elements is not within an axis of 1")])
    # A length for each of a bounded number of sequences.
    yield rows("lstm_batch_lengths", [node("Unsqueeze", "rows a", "u"), node("Concat", "u u", "v", axis=0), node("Size", "rows", "s"),
                                      node("ReduceMax", "rows one", "m", keepdims=0), node("Greater", "m zero", "g"),
                                      node("Cast", "g", "i", to=TensorProto.INT32), node("Add", "i first", "lens"),
                                      node("LSTM", "v w r b lens", "y h", hidden_size=2)], "y h",
               {**w["LSTM"], "a": arr64(0), "one": arr64(1), "zero": np.float32(0), "first": np.array([1], np.int32),
                "b": floats("b", 1, 16)}, keeps=SOME, opset=18)


def distinct():
    """Distinct items among a number that depends on data."""
    small = [node("Mul", "rows quarter", "q"), node("Floor", "q", "f")]
    number = {"quarter": np.float32(0.12)}
    for sorted_ in (0, 1):
        yield rows(f"unique_elements_{sorted_}", [*small, node("Unique", "f", "y first inverse counts", sorted=sorted_)],
                   "y first:l inverse:l counts:l", number, keeps=SOME)
        yield rows(f"unique_rows_{sorted_}", [*small, node("Slice", "f zero one one", "c"),
                                              node("Unique", "c", "y first inverse counts", axis=0, sorted=sorted_)],
                   "y first:l inverse:l counts:l", {**number, "zero": arr64(0), "one": arr64(1)}, keeps=SOME)
    yield rows("unique_columns", [*small, node("Unique", "f", "y first inverse counts", axis=1)],
               "y first:l inverse:l counts:l", number, keeps=SOME)
    yield rows("unique_then_gather", [*small, node("Unique", "f", "u"), node("ReduceSum", "u", "y", keepdims=0)], constants=number,
               keeps=SOME)


def of_microsoft():
    w = floats("w", 4, 5)
    yield rows("fused_matmul", ms("FusedMatMul", "rows w", "y", alpha=0.5), constants={"w": w})
    yield rows("bias_gelu", ms("BiasGelu", "rows b", "y"), constants={"b": BIAS})
    yield rows("fast_gelu", ms("FastGelu", "rows b", "y"), constants={"b": BIAS}, atol=1e-3)
    yield rows("quick_gelu", ms("QuickGelu", "rows", "y"))
    yield rows("fused_gemm", ms("FusedGemm", "rows w b", "y", activation="Relu"), constants={"w": w, "b": floats("b", 5)})
    yield rows("skip_layer_norm", [node("Unsqueeze", "rows a", "u"), node("Mul", "u half", "s"),
                                   ms("SkipLayerNormalization", "u s g b", "y", epsilon=1e-5)],
               constants={"a": arr64(0), "half": np.float32(-0.5), "g": floats("g", 4), "b": BIAS})
    yield rows("expand_dims", ms("ExpandDims", "rows a", "y"), constants={"a": np.array(1, np.int32)})
    yield rows("ms_unique", [node("Mul", "rows c", "m"), node("Floor", "m", "f"), node("Reshape", "f s", "v"),
                             ms("Unique", "v", "y inverse counts")], "y inverse:l counts:l",
               {"c": np.float32(0.12), "s": arr64(-1)}, keeps=SOME)
    yield refused("bounded_microsoft", model(graph([ROWS, ms("CDist", "rows c", "y", name="here")], feeds("cdist")[0], "y",
                                                   {"c": floats("c", 3, 4)})), "here", "bounded (at most 6)", "CDist")


def cases():
    for make in (products, recurrent, distinct, of_microsoft):
        yield from make()
