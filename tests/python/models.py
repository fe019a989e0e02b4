"""Small ONNX models for the tests of the Python package."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def model_of(nodes, inputs, outputs, initializers=(), opset=17):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def unary(op, shape, kind=TensorProto.FLOAT, result=None):
    """y = op(x)."""
    return model_of([helper.make_node(op, ["x"], ["y"], name="only")], [value("x", shape, kind)], [value("y", shape, result or kind)])


def affine(rows=4, columns=8):
    """y = x @ w, with weights that any quantization represents well; w."""
    w = np.random.default_rng(5).standard_normal((columns, columns)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["z"], name="product"), helper.make_node("Relu", ["z"], ["y"], name="relu")]
    return model_of(nodes, [value("x", [rows, columns])], [value("y", [rows, columns])], [numpy_helper.from_array(w, "w")]), w


def cache(rows):
    """The products of the rows x with all rows of a cache, into which they are written before."""
    nodes = [helper.make_node("ScatterND", ["past", "at", "x"], ["present"]),
             helper.make_node("Transpose", ["present"], ["t"], perm=[1, 0]), helper.make_node("MatMul", ["x", "t"], ["y"])]
    return model_of(nodes, [value("x", ["seq", 8]), value("at", ["seq", 1], TensorProto.INT64), value("past", [rows, 8])],
                    [value("y", ["seq", rows]), value("present", [rows, 8])], opset=18)


def refused():
    """An operator that does not exist, and one of strings."""
    nodes = [helper.make_node("StringNormalizer", ["x"], ["s"], name="strings"), helper.make_node("Identity", ["s"], ["y"])]
    return model_of(nodes, [value("x", [2], TensorProto.STRING)], [value("y", [2], TensorProto.STRING)])


def slow_loop(trips=20_000_000):
    """A loop that runs for seconds: x + 1, `trips` times."""
    body = helper.make_graph([helper.make_node("Identity", ["going"], ["goes_on"]), helper.make_node("Add", ["in", "one"], ["out"])],
                             "body", [value("i", [], TensorProto.INT64), value("going", [], TensorProto.BOOL), value("in", [1])],
                             [value("goes_on", [], TensorProto.BOOL), value("out", [1])],
                             [numpy_helper.from_array(np.ones(1, np.float32), "one")])
    return model_of([helper.make_node("Loop", ["n", "", "x"], ["y"], name="loop", body=body)], [value("x", [1])], [value("y", [1])],
                    [numpy_helper.from_array(np.array(trips, np.int64), "n")])


def non_zero():
    """Bounded: the indices of the elements of x that are not zero."""
    return model_of([helper.make_node("NonZero", ["x"], ["y"], name="find")], [value("x", [6])], [value("y", [1, None], TensorProto.INT64)])
