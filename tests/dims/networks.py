"""Networks with named dimensions, for lengths that callers give. Each: a model, the range of each dimension, and a function
that makes inputs for sizes."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
node, value = helper.make_node, helper.make_tensor_value_info
R = np.random.default_rng(1)


def weights(**shapes):
    return [numpy_helper.from_array((R.standard_normal(s) / 4).astype("f4"), n) for n, s in shapes.items()]


def constants(**numbers):
    return [numpy_helper.from_array(np.asarray(v), n) for n, v in numbers.items()]


def model(nodes, inputs, outputs, initializers=(), opset=17):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def floats(r, *shape):
    return r.standard_normal(shape).astype("f4")


def attention():
    nodes = [node("MatMul", ["x", "wq"], ["q"]), node("MatMul", ["x", "wk"], ["k"]), node("MatMul", ["x", "wv"], ["v"]),
             node("Transpose", ["k"], ["kt"], perm=[0, 2, 1]), node("MatMul", ["q", "kt"], ["s"]), node("Mul", ["s", "scale"], ["z"]),
             node("Add", ["z", "mask"], ["m"]), node("Softmax", ["m"], ["p"], axis=-1), node("MatMul", ["p", "v"], ["c"]),
             node("Add", ["c", "x"], ["a"]), node("LayerNormalization", ["a", "g", "b"], ["y"], axis=-1)]
    net = model(nodes, [value("x", FLOAT, ["batch", "seq", 16]), value("mask", FLOAT, ["batch", 1, "seq"])],
                [value("y", FLOAT, ["batch", "seq", 16])],
                weights(wq=(16, 16), wk=(16, 16), wv=(16, 16), g=(16,), b=(16,)) + constants(scale=np.float32(0.25)))
    return net, {"batch": (1, 3), "seq": (1, 24)}, lambda r, batch, seq: {
        "x": floats(r, batch, seq, 16), "mask": np.where(r.random((batch, 1, seq)) < 0.3, -9, 0).astype("f4")}


def heads():
    """Two heads by Reshape with sizes from Shape, and a causal mask by Range and Less."""
    nodes = [node("MatMul", ["x", "w"], ["h"]), node("Shape", ["x"], ["shape"]), node("Gather", ["shape", "one"], ["n"]),
             node("Unsqueeze", ["n", "zero1"], ["n1"]), node("Concat", ["one1", "n1", "two_eight"], ["split"], axis=0),
             node("Reshape", ["h", "split"], ["r"]), node("Transpose", ["r"], ["t"], perm=[0, 2, 1, 3]),
             node("Transpose", ["t"], ["tt"], perm=[0, 1, 3, 2]), node("MatMul", ["t", "tt"], ["s"]),
             node("Range", ["zero", "n", "one"], ["i"]), node("Unsqueeze", ["i", "one1"], ["rows"]), node("Less", ["rows", "i"], ["later"]),
             node("Where", ["later", "low", "s"], ["m"]), node("Softmax", ["m"], ["p"], axis=-1), node("MatMul", ["p", "t"], ["c"]),
             node("Transpose", ["c"], ["ct"], perm=[0, 2, 1, 3]), node("Concat", ["one1", "n1", "sixteen"], ["join"], axis=0),
             node("Reshape", ["ct", "join"], ["y"])]
    net = model(nodes, [value("x", FLOAT, [1, "seq", 16])], [value("y", FLOAT, None)],
                weights(w=(16, 16)) + constants(zero=np.int64(0), one=np.int64(1), zero1=np.int64([0]), one1=np.int64([1]),
                                                two_eight=np.int64([2, 8]), sixteen=np.int64([16]), low=np.float32(-1e9)))
    return net, {"seq": (1, 20)}, lambda r, seq: {"x": floats(r, 1, seq, 16)}


def embeddings():
    nodes = [node("Gather", ["table", "ids"], ["e"]), node("Shape", ["ids"], ["shape"], start=1, end=2), node("Squeeze", ["shape", "zero1"], ["n"]),
             node("Range", ["zero", "n", "one"], ["i"]), node("Gather", ["positions", "i"], ["p"]), node("Add", ["e", "p"], ["a"]),
             node("LayerNormalization", ["a", "g", "b"], ["y"], axis=-1), node("ReduceMean", ["y"], ["mean"], axes=[1], keepdims=0),
             node("ReduceMax", ["y"], ["max"], axes=[1], keepdims=0), node("ArgMax", ["y"], ["best"], axis=1, keepdims=0)]
    net = model(nodes, [value("ids", INT64, [1, "seq"])], [value(n, t, None) for n, t in
                                                          [("y", FLOAT), ("mean", FLOAT), ("max", FLOAT), ("best", INT64)]],
                weights(table=(40, 8), positions=(32, 8), g=(8,), b=(8,)) + constants(zero=np.int64(0), one=np.int64(1), zero1=np.int64([0])))
    return net, {"seq": (1, 32)}, lambda r, seq: {"ids": r.integers(-40, 40, (1, seq))}


def recurrent():
    nodes = [node("LSTM", ["x", "w", "r", "b"], ["h", "last"], hidden_size=6, direction="bidirectional"),
             node("Transpose", ["h"], ["ht"], perm=[0, 2, 1, 3]), node("Reshape", ["ht", "wide"], ["hw"]),
             node("GRU", ["hw", "gw", "gr"], ["y", "end"], hidden_size=5)]
    net = model(nodes, [value("x", FLOAT, ["seq", 2, 4])], [value(n, FLOAT, None) for n in ("y", "last", "end")],
                weights(w=(2, 24, 4), r=(2, 24, 6), b=(2, 48), gw=(1, 15, 12), gr=(1, 15, 5)) + constants(wide=np.int64([0, 0, 12])))
    return net, {"seq": (1, 12)}, lambda r, seq: {"x": floats(r, seq, 2, 4)}


def pictures():
    nodes = [node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]), node("Relu", ["c"], ["a"]), node("MaxPool", ["a"], ["m"], kernel_shape=[2, 2], strides=[2, 2]),
             node("GlobalAveragePool", ["m"], ["g"]), node("Flatten", ["g"], ["f"]), node("Gemm", ["f", "v", "d"], ["s"]), node("Softmax", ["s"], ["y"])]
    net = model(nodes, [value("x", FLOAT, ["batch", 3, 8, 8])], [value("y", FLOAT, ["batch", 5])], weights(w=(4, 3, 3, 3), b=(4,), v=(4, 5), d=(5,)))
    return net, {"batch": (1, 6)}, lambda r, batch: {"x": floats(r, batch, 3, 8, 8)}


def pointwise():
    """Convolutions of one element along the axis, as speech networks have them between layers of attention."""
    nodes = [node("Conv", ["x", "w", "b"], ["c"]), node("Sigmoid", ["c"], ["s"]), node("Mul", ["c", "s"], ["a"]),
             node("Conv", ["a", "v"], ["d"], group=2), node("GlobalAveragePool", ["d"], ["mean"]), node("Add", ["d", "x"], ["y"])]
    net = model(nodes, [value("x", FLOAT, [1, 6, "time"])], [value("y", FLOAT, None), value("mean", FLOAT, None)],
                weights(w=(8, 6, 1), b=(8,), v=(6, 4, 1)))
    return net, {"time": (1, 17)}, lambda r, time: {"x": floats(r, 1, 6, time)}


def cache():
    """The keys of earlier steps, at first none, with that of this step behind them."""
    nodes = [node("Concat", ["past", "key"], ["present"], axis=2), node("Transpose", ["present"], ["t"], perm=[0, 1, 3, 2]),
             node("MatMul", ["key", "t"], ["s"]), node("Softmax", ["s"], ["p"], axis=-1), node("MatMul", ["p", "present"], ["y"])]
    net = model(nodes, [value("past", FLOAT, [1, 2, "past_length", 4]), value("key", FLOAT, [1, 2, 1, 4])],
                [value("present", FLOAT, None), value("y", FLOAT, None)])
    return net, {"past_length": (0, 15)}, lambda r, past_length: {"past": floats(r, 1, 2, past_length, 4), "key": floats(r, 1, 2, 1, 4)}


def integers():
    nodes = [node("CumSum", ["x", "one"], ["sums"]), node("TopK", ["x", "k"], ["top", "at"], axis=1), node("ReduceProd", ["small"], ["product"], keepdims=0),
             node("ReduceSum", ["x"], ["sum"], keepdims=0), node("Mod", ["x", "seven"], ["mod"]), node("Add", ["x", "x"], ["twice"]),
             node("Cast", ["x"], ["c"], to=INT64), node("Clip", ["c", "lowest", "highest"], ["small"]), node("NonZero", ["x"], ["where"]),
             node("Slice", ["x", "minus_two", "end", "one1"], ["tail"])]
    net = model(nodes, [value("x", INT64, [2, "n"])], [value(n, INT64, None) for n in
                                                       ("sums", "top", "at", "product", "sum", "mod", "twice", "where", "tail")],
                constants(one=np.int64(1), k=np.int64([2]), seven=np.int64(7), lowest=np.int64(-2), highest=np.int64(2),
                          minus_two=np.int64([-2]), end=np.int64([1 << 40]), one1=np.int64([1])))
    return net, {"n": (2, 9)}, lambda r, n: {"x": r.integers(-5, 6, (2, n))}


def quantized():
    """As onnxruntime's quantize_dynamic writes it: the range of a value is that of the elements that exist."""
    nodes = [node("DynamicQuantizeLinear", ["x"], ["q", "qs", "qz"]), node("MatMulInteger", ["q", "w", "qz", "wz"], ["i"]),
             node("Cast", ["i"], ["f"], to=FLOAT), node("Mul", ["qs", "ws"], ["m"]), node("Mul", ["f", "m"], ["h"]),
             node("Transpose", ["h"], ["t"], perm=[0, 2, 1]), node("DynamicQuantizeLinear", ["t"], ["r", "rs", "rz"]),
             node("ConvInteger", ["r", "v", "rz"], ["j"]), node("Cast", ["j"], ["g"], to=FLOAT), node("Mul", ["g", "rs"], ["y"])]
    r = np.random.default_rng(5)
    net = model(nodes, [value("x", FLOAT, ["batch", "seq", 8])], [value(n, FLOAT, None) for n in ("h", "y")],
                constants(w=r.integers(0, 256, (8, 12)).astype("u1"), wz=np.uint8(120), ws=np.float32(0.01),
                          v=r.integers(-128, 128, (6, 12, 1)).astype("i1")))
    return net, {"batch": (1, 2), "seq": (1, 17)}, lambda r, batch, seq: {"x": floats(r, batch, seq, 8) + np.float32(2.5)}


def joined():
    """Both axes are bounded, and neither stays where it was."""
    nodes = [node("Transpose", ["x"], ["t"], perm=[1, 0]), node("Reshape", ["t", "flat"], ["f"]), node("Concat", ["f", "z"], ["c"], axis=0),
             node("ReduceLogSumExp", ["c"], ["l"], keepdims=0), node("Concat", ["x", "x"], ["twice"], axis=1),
             node("Expand", ["u", "shape"], ["wide"]), node("Shape", ["x"], ["shape"]), node("Mul", ["x", "wide"], ["scaled"]),
             node("MatMul", ["x", "t"], ["square"]), node("Dropout", ["x"], ["dropped", "kept"])]
    order = [nodes[i] for i in (6, 0, 1, 2, 3, 4, 5, 7, 8, 9)]
    net = model(order, [value("x", FLOAT, ["rows", "columns"]), value("z", FLOAT, ["columns"]), value("u", FLOAT, ["rows", 1])],
                [value(n, FLOAT, None) for n in ("f", "c", "l", "twice", "scaled", "square", "dropped")] + [value("kept", BOOL, None)],
                constants(flat=np.int64([-1])))
    return net, {"rows": (1, 5), "columns": (1, 7)}, lambda r, rows, columns: {
        "x": floats(r, rows, columns), "z": floats(r, columns), "u": floats(r, rows, 1)}


def branches():
    """An If whose condition and a Loop whose trips follow from the length."""
    double = helper.make_graph([node("Add", ["x", "x"], ["d"])], "double", [], [value("d", FLOAT, None)])
    negate = helper.make_graph([node("Neg", ["x"], ["e"])], "negate", [], [value("e", FLOAT, None)])
    body = helper.make_graph([node("Add", ["a", "half"], ["a_out"]), node("Identity", ["go"], ["go_out"])], "body",
                             [value("i", INT64, []), value("go", BOOL, []), value("a", FLOAT, [])],
                             [value("go_out", BOOL, []), value("a_out", FLOAT, [])])
    nodes = [node("Shape", ["x"], ["shape"], start=0, end=1), node("Squeeze", ["shape"], ["n"]), node("Less", ["n", "four"], ["few"]),
             node("If", ["few"], ["y"], then_branch=double, else_branch=negate), node("Loop", ["n", "", "start"], ["count"], body=body)]
    net = model(nodes, [value("x", FLOAT, ["n", 3])], [value("y", FLOAT, None), value("count", FLOAT, [])],
                constants(four=np.int64(4), half=np.float32(0.5), start=np.float32(0)))
    return net, {"n": (1, 8)}, lambda r, n: {"x": floats(r, n, 3)}


ALL = [attention, heads, embeddings, recurrent, pictures, pointwise, cache, integers, quantized, joined, branches]
