"""Bounded dimensions: lengths that depend on data, carried through operators, at 0, 1, some and all elements.

Each model keeps rows of `x` whose `keep` is true, and goes on with them. One conversion, several runs; about 0.3 s a case.
"""
import numpy as np
from case import arr64, floats, graph, info, model, node, refused, simple
from onnx import TensorProto, helper

N = 6
KEEPS = {"none": [0] * N, "first": [1] + [0] * (N - 1), "last": [0] * (N - 1) + [1], "some": [0, 1, 0, 1, 1, 0],
         "all": [1] * N}
ROWS = node("Compress", "x keep", "rows", axis=0)


def feeds(name, keeps=KEEPS, **others):
    """One feed for each number of rows; values are distinct, so that no order is left to chance."""
    x = np.random.default_rng(len(name)).permutation(N * 4).reshape(N, 4).astype(np.float32) - 11.5
    return [{"x": x, "keep": np.array(k, bool), **others} for k in keeps.values()]


def rows(name, nodes, outputs="y", constants=None, keeps=KEEPS, others=None, **kw):
    nodes = nodes if isinstance(nodes, list) else [nodes]
    all_feeds = feeds(name, keeps, **(others or {}))
    return simple(f"bounded_{name}", [ROWS, *nodes], all_feeds[0], outputs, constants, more=all_feeds[1:], **kw)


SOME = {k: v for k, v in KEEPS.items() if k != "none"}
BIAS = floats("bias", 4)


def quantized():
    # Padding has no part in the range; rows are all negative, so that a padding of theirs would show.
    low = [{**f, "x": f["x"] - 100} for f in feeds("dynamic_quantize")]
    whole = [ROWS, node("DynamicQuantizeLinear", "rows", "q s z")]
    yield simple("bounded_dynamic_quantize", [*whole, node("DequantizeLinear", "q s z", "y")], low[0], "y s z:B", more=low[1:], atol=1e-3)
    w = np.random.default_rng(1).integers(-100, 100, (4, 3)).astype(np.int8)
    yield rows("integer_product", [*whole[1:], node("MatMulInteger", "q w z wz", "y")], "y:i", {"w": w, "wz": np.int8(3)})


def elementwise():
    yield rows("relu", node("Relu", "rows", "y"))
    yield rows("add_vector", node("Add", "rows c", "y"), constants={"c": BIAS})
    yield rows("add_itself", [node("Exp", "rows", "e"), node("Sub", "rows e", "y")])
    yield rows("where", [node("Greater", "rows zero", "g"), node("Where", "g rows zero", "y")],
               constants={"zero": np.float32(0)})
    yield rows("clip_cast", [node("Clip", "rows low high", "c"), node("Cast", "c", "y", to=TensorProto.INT32)], "y:i",
               {"low": np.float32(-3), "high": np.float32(5)})
    # Two values of one length that is not proven to be one.
    yield rows("two_of_a_length", [node("Not", "keep", "no"), node("Not", "no", "again"),
                                   node("Compress", "x again", "other", axis=0), node("Mul", "rows other", "y")])
    yield rows("beside_fixed", node("Add", "rows c", "y"), constants={"c": floats("fixed", N, 4)},
               keeps={"all": KEEPS["all"]})


def shapes():
    yield rows("shape", node("Shape", "rows", "y"), "y:l")
    yield rows("shape_part", node("Shape", "rows", "y", start=0, end=1), "y:l")
    yield rows("size", node("Size", "rows", "y"), "y:l")
    yield rows("flat", node("Reshape", "rows s", "y"), constants={"s": arr64(-1)})
    yield rows("reshape_2_2", node("Reshape", "rows s", "y"), constants={"s": arr64(-1, 2, 2)})
    yield rows("reshape_2n", node("Reshape", "rows s", "y"), constants={"s": arr64(2, -1)})
    yield rows("reshape_there_and_back", [node("Reshape", "rows s", "f"), node("Exp", "f", "e"),
                                          node("Reshape", "e t", "y")], constants={"s": arr64(-1), "t": arr64(-1, 4)})
    yield rows("reshape_inner", [node("Transpose", "rows", "t", perm=[1, 0]), node("Reshape", "t s", "y")],
               constants={"s": arr64(-1)})
    yield rows("reshape_swapped", [node("Shape", "rows", "s"), node("Gather", "s i", "r"), node("Reshape", "rows r", "y")],
               constants={"i": arr64(1, 0)}, keeps=SOME)
    yield rows("reshape_of_shape", [node("Shape", "rows", "s"), node("Gather", "s zero", "n"), node("Unsqueeze", "n axis", "n1"),
                                    node("Concat", "n1 tail", "t", axis=0), node("Reshape", "rows t", "y")],
               constants={"zero": np.int64(0), "axis": arr64(0), "tail": arr64(1, 2, 2)})
    yield rows("unsqueeze", node("Unsqueeze", "rows a", "y"), constants={"a": arr64(0, 2)})
    yield rows("squeeze", [node("Unsqueeze", "rows a", "u"), node("Squeeze", "u a", "y")], constants={"a": arr64(1)})
    yield rows("flatten", [node("Reshape", "rows s", "r"), node("Flatten", "r", "y", axis=1)],
               constants={"s": arr64(-1, 2, 2)})
    yield rows("flatten_two", [node("Reshape", "rows s", "r"), node("Flatten", "r", "y", axis=2)],
               constants={"s": arr64(-1, 2, 2)})
    yield rows("transpose", node("Transpose", "rows", "y", perm=[1, 0]))
    count = [node("Shape", "rows", "s"), node("Gather", "s zero", "n")]
    number = {"zero": np.int64(0), "one": np.int64(1), "axis": arr64(0)}
    yield rows("range", [*count, node("Range", "zero n one", "y")], "y:l", number)
    yield rows("range_down", [*count, node("Sub", "n one", "top"), node("Range", "top minus minus", "y")], "y:l",
               {**number, "minus": np.int64(-1)})
    yield rows("range_gather", [*count, node("Sub", "n one", "top"), node("Range", "top minus minus", "back"),
                                node("Gather", "rows back", "y")], constants={**number, "minus": np.int64(-1)})
    yield rows("constant_of_shape", [node("Shape", "rows", "s"), node("ConstantOfShape", "s", "z"),
                                     node("Add", "z rows", "y")])
    yield rows("ones", [node("Shape", "rows", "s"), node("ConstantOfShape", "s", "y", value=helper.make_tensor(
        "v", TensorProto.FLOAT, [1], [2.5]))])
    # Elements of a mask of ones.
    yield rows("gather_nd_ones", [*count, node("ConstantOfShape", "s", "ones", value=helper.make_tensor("v", TensorProto.INT64, [1], [3])),
                                  node("Range", "zero n one", "at"), node("Unsqueeze", "at axis", "r"), node("Mul", "r zero", "c"),
                                  node("Concat", "r c", "places", axis=-1), node("GatherND", "ones places", "y")], "y:l",
               {**number, "axis": arr64(1)})
    yield rows("expand", [*count, node("Unsqueeze", "n axis", "n1"), node("Concat", "n1 four", "t", axis=0),
                          node("Expand", "c t", "y")], constants={**number, "four": arr64(4), "c": BIAS})
    yield rows("expand_rows", [node("Unsqueeze", "rows one1", "u"), node("Shape", "rows", "s"), node("Gather", "s zero1", "n1"),
                               node("Concat", "n1 tail", "t", axis=0), node("Expand", "u t", "y")],
               constants={"one1": arr64(1), "zero1": arr64(0), "tail": arr64(3, 4)})
    for upper, k in ((1, 1), (0, -1)):
        for axes, perm in (("rows", [0, 1]), ("columns", [1, 0])):
            yield rows(f"trilu_{axes}_{upper}", [node("Transpose", "rows", "t", perm=perm), node("Trilu", "t k", "y", upper=upper)],
                       constants={"k": np.int64(k)})
    yield rows("tile", node("Tile", "rows r", "y"), constants={"r": arr64(2, 3)})
    yield rows("tile_by_count", [*count, node("Unsqueeze", "n axis", "n1"), node("Concat", "n1 o", "r", axis=0),
                                 node("Unsqueeze", "c axis", "c1"), node("Tile", "c1 r", "y")],
               constants={**number, "o": arr64(1), "c": BIAS})
    # Arithmetic of the length: min(n, 3), and what is left of it.
    yield rows("length_arithmetic", [*count, node("Min", "n three", "m"), node("Mul", "m two", "p"), node("Sub", "p one", "q"),
                                     node("Max", "q zero", "r"), node("Range", "zero r one", "y")], "y:l",
               {**number, "three": np.int64(3), "two": np.int64(2)})


def slices():
    for name, (start, end, step) in {"head": (0, 3, 1), "tail": (2, 2**63 - 1, 1), "from_end": (-2, 2**63 - 1, 1),
                                     "but_last": (0, -1, 1), "middle": (1, 4, 1), "every_second": (0, 99, 2),
                                     "backwards": (-1, -(2**63), -1), "back_from_4": (4, 0, -2), "last": (-1, 99, 1),
                                     "nothing": (3, 3, 1)}.items():
        yield rows(f"slice_{name}", node("Slice", "rows s e a k", "y"),
                   constants={"s": arr64(start), "e": arr64(end), "a": arr64(0), "k": arr64(step)})
    yield rows("slice_column", node("Slice", "rows s e a", "y"), constants={"s": arr64(1), "e": arr64(3), "a": arr64(1)})
    yield rows("slice_both", node("Slice", "rows s e", "y"), constants={"s": arr64(1, 1), "e": arr64(4, -1)})
    start = [{"x": floats("rs", 10, 3), "at": np.array([k], np.int64)} for k in (0, 3, 7, 9, 10, -1, -3, -5, -12, 99)]
    three = {"three": arr64(3), "a": arr64(0)}
    cut = [node("Add", "at three", "end"), node("Slice", "x at end a", "cut", name="cut_out")]
    # Near the end there are fewer elements.
    yield simple("bounded_running_start", [*cut, node("Relu", "cut", "y")], start[0], constants=three, more=start[1:])
    # ... which what follows does not take: the run fails, and names the step.
    few = "'cut_out' (CheckLength): a slice that starts at {} has fewer than the required 3 elements"
    ends = [(feed, few.format(k)) for feed in start for k in feed["at"] if k in (9, 10, -1, -12, 99)]
    for name, needs, constants in (
            ("add", node("Add", "cut c", "y"), {"c": floats("c", 3, 3)}),
            ("reshape", node("Reshape", "cut s", "y"), {"s": arr64(9)}),
            ("concat", node("Concat", "cut c", "y", axis=1), {"c": floats("c", 3, 1)}),
            ("matmul", node("MatMul", "m cut", "y"), {"m": floats("m", 2, 3)}),
            ("det", node("Det", "cut", "y"), {})):
        yield simple(f"bounded_running_start_fixed_{name}", [*cut, needs], start[0], constants={**three, **constants},
                     more=start[1:3], fails=ends)
    # The same behind an operation that follows lengths.
    yield simple("bounded_running_start_fixed_later", [*cut, node("Exp", "cut", "e"), node("Mul", "e two", "m"),
                                                       node("Det", "m", "y", name="whole")], start[0],
                 constants={**three, "two": np.float32(2)}, more=start[1:3],
                 fails=[(start[3], "'whole' (CheckLength): 1 elements do not fit a shape of 3 elements")])
    yield simple("bounded_running_start_fixed_conv", [*cut, node("Unsqueeze", "cut a", "u"),
                                                      node("Conv", "u w", "y", name="along")], start[0],
                 constants={**three, "w": floats("w", 2, 3, 2)}, more=start[1:3],
                 fails=[(start[3], "'along' (CheckLength): 1 elements do not fit a shape of 3 elements")])
    step = [{"x": floats("rs", 10, 3), "at": np.array([k], np.int64)} for k in (0, 4, 6, 8, -6)]
    yield simple("bounded_running_start_step", [node("Add", "at four", "end"), node("Slice", "x at end a k", "y")], step[0],
                 constants={"four": arr64(4), "a": arr64(0), "k": arr64(3)}, more=step[1:])
    both = [{"x": floats("rs", 10, 3), "at": arr64(*at)} for at in ((0, 0), (3, 1), (9, 2), (-4, -3), (10, 1))]
    yield simple("bounded_running_start_both", [node("Add", "at two", "end"), node("Slice", "x at end", "y")], both[0],
                 constants={"two": arr64(2, 2)}, more=both[1:])
    # A table's rows beside a fixed number of others; one row, which repeats.
    for k in (1, 4):
        yield simple(f"bounded_running_row_{k}", [node("Add", "at k", "end"), node("Slice", "table at end a", "t"),
                                                 node("Add", "x t", "y")],
                     {"x": floats("row", 4, 3), "at": arr64(2)}, constants={"k": arr64(k), "a": arr64(0), "table": floats("table", 9, 3)},
                     more=[{"x": floats("row", 4, 3), "at": arr64(5)}])
    ends = [{"x": floats("rs", 10, 3), "at": np.array([k], np.int64)} for k in (0, 1, -1, 10, 99, -99)]
    yield simple("bounded_running_end", node("Slice", "x zero at a", "y"), ends[0],
                 constants={"zero": arr64(0), "a": arr64(0)}, more=ends[1:])
    yield rows("split", [node("Shape", "rows", "s", start=0, end=1), node("Div", "s two", "h"), node("Sub", "s h", "r"),
                         node("Concat", "h r", "p", axis=0), node("Split", "rows p", "y z", axis=0)], "y z",
               {"two": arr64(2)})
    yield rows("split_columns", node("Split", "rows p", "y z", axis=1), "y z", {"p": arr64(1, 3)})


def indexed():
    yield rows("gather_first", node("Gather", "rows i", "y"), constants={"i": np.int64(0)}, keeps=SOME)
    yield rows("gather_last", node("Gather", "rows i", "y"), constants={"i": arr64(-1, 0)}, keeps=SOME)
    yield rows("gather_columns", node("Gather", "rows i", "y", axis=1), constants={"i": arr64(3, 0)})
    yield rows("gather_column", node("Gather", "rows i", "y", axis=1), constants={"i": np.int64(2)})
    where = [node("NonZero", "keep", "nz"), node("Squeeze", "nz a", "at")]
    yield rows("gather_at_nonzero", [*where, node("Gather", "x at", "y")], constants={"a": arr64(0)})
    yield rows("nonzero_of_nonzero", [*where, node("Gather", "x at", "g"), node("Greater", "g zero", "p"),
                                      node("NonZero", "p", "y")], "y:l", {"a": arr64(0), "zero": np.float32(0)})
    yield rows("nonzero_then_shape", [node("NonZero", "keep", "nz"), node("Shape", "nz", "y")], "y:l")
    yield rows("nonzero_transposed_gather_nd", [node("NonZero", "keep", "nz"), node("Transpose", "nz", "t", perm=[1, 0]),
                                                node("GatherND", "x t", "y")])
    yield rows("gather_nd_rows", [node("Shape", "rows", "s", start=0, end=1), node("Sub", "s one", "top"),
                                  node("Unsqueeze", "top one0", "t"), node("GatherND", "rows t", "y")],
               constants={"one": arr64(1), "one0": arr64(0)}, keeps=SOME)
    yield rows("compress_again", [node("ReduceSum", "rows a", "sum", keepdims=0), node("Greater", "sum zero", "g"),
                                  node("Compress", "rows g", "y", axis=0)], constants={"a": arr64(1), "zero": np.float32(0)})
    yield rows("gather_elements", [node("ArgMax", "rows", "i", axis=1), node("GatherElements", "rows i", "y", axis=1)])
    yield rows("gather_elements_rows", [node("ArgMax", "rows", "i", axis=0), node("GatherElements", "rows i", "y", axis=0)],
               keeps=SOME)
    for reduction in ("none", "add"):
        yield rows(f"scatter_elements_{reduction}",
                   [*where, node("Unsqueeze", "at one", "u"), node("Shape", "rows", "s"), node("Expand", "u s", "i"),
                    node("ScatterElements", "x i rows", "y", axis=0, reduction=reduction)],
                   constants={"a": arr64(0), "one": arr64(1)}, opset=18)
        yield rows(f"scatter_nd_{reduction}", [node("NonZero", "keep", "nz"), node("Transpose", "nz", "t", perm=[1, 0]),
                                               node("ScatterND", "x t rows", "y", reduction=reduction)], opset=18)
    yield rows("scatter_into_rows", [node("Shape", "rows", "s", start=0, end=1), node("Sub", "s one", "top"),
                                     node("Unsqueeze", "top a", "t"), node("ScatterND", "rows t c", "y")],
               constants={"one": arr64(1), "a": arr64(0), "c": floats("c", 1, 4)}, keeps=SOME)
    yield rows("one_hot", [node("ArgMax", "rows", "i", axis=1, keepdims=0), node("OneHot", "i d v", "y")],
               constants={"d": np.int64(4), "v": np.array([0, 1], np.float32)})


def reductions():
    for op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
               "ReduceSumSquare", "ReduceLogSumExp"):
        keeps = KEEPS if op in ("ReduceSum", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceProd") else SOME
        axes = dict(axes=[0]) if op != "ReduceSum" else {}
        scaled = [node("Mul", "rows tenth", "r")]
        yield rows(f"{op.lower()}", [*scaled, node(op, "r a" if op == "ReduceSum" else "r", "y", keepdims=0, **axes)],
                   constants={"tenth": np.float32(0.1), **({"a": arr64(0)} if op == "ReduceSum" else {})}, keeps=keeps)
        yield rows(f"{op.lower()}_all", [*scaled, node(op, "r", "y", keepdims=1)], constants={"tenth": np.float32(0.1)},
                   keeps=keeps)
        yield rows(f"{op.lower()}_columns", [*scaled, node(op, "r a" if op == "ReduceSum" else "r", "y", keepdims=1,
                                                           **({} if op == "ReduceSum" else dict(axes=[1])))],
                   constants={"tenth": np.float32(0.1), **({"a": arr64(1)} if op == "ReduceSum" else {})})
    for op in ("ArgMax", "ArgMin"):
        yield rows(f"{op.lower()}", node(op, "rows", "y", axis=0, keepdims=0), "y:l", keeps=SOME)
        yield rows(f"{op.lower()}_columns", node(op, "rows", "y", axis=1), "y:l")
    yield rows("max_of_integers", [node("Cast", "rows", "i", to=TensorProto.INT64), node("ReduceMax", "i", "y", keepdims=0)],
               "y:l", keeps=SOME)
    yield rows("cumsum", node("CumSum", "rows a", "y"), constants={"a": np.int64(0)})
    yield rows("cumsum_reverse", node("CumSum", "rows a", "y", reverse=1), constants={"a": np.int64(0)})
    yield rows("softmax_rows", node("Softmax", "rows", "y", axis=0))
    yield rows("softmax_columns", node("Softmax", "rows", "y", axis=1))
    yield rows("log_softmax_rows", node("LogSoftmax", "rows", "y", axis=0))
    yield rows("topk_columns", node("TopK", "rows k", "y z", axis=1), "y z:l", {"k": arr64(2)})
    for largest in (0, 1):
        yield rows(f"topk_all_{largest}", [node("Shape", "rows", "s", start=0, end=1),
                                           node("TopK", "rows s", "y z", axis=0, largest=largest)], "y z:l")
        yield rows(f"topk_min_{largest}", [node("Shape", "rows", "s", start=0, end=1), node("Concat", "three s", "b", axis=0),
                                           node("ReduceMin", "b", "k", keepdims=1),
                                           node("TopK", "rows k", "y z", axis=0, largest=largest)], "y z:l",
                   {"three": arr64(3)})


def joined():
    yield rows("concat_rows", [node("Not", "keep", "no"), node("Compress", "x no", "others", axis=0),
                               node("Concat", "rows others", "y", axis=0)])
    yield rows("concat_fixed", node("Concat", "c rows c", "y", axis=0), constants={"c": floats("c", 2, 4)})
    yield rows("concat_columns", [node("Neg", "rows", "m"), node("Concat", "rows m", "y", axis=1)])
    yield rows("concat_then_top", [node("Concat", "rows c", "j", axis=0), node("Slice", "j s e a", "y")],
               constants={"c": floats("c", 2, 4), "s": arr64(0), "e": arr64(4), "a": arr64(0)})


def value(name, kind=TensorProto.FLOAT, shape=None):
    return helper.make_tensor_value_info(name, kind, shape)


def loop(name, nodes, constants, carried, scanned, trips, start, kind=TensorProto.FLOAT, **kw):
    """A Loop named `around` over `trips`; carried and scanned are names of its body's results."""
    body = helper.make_graph([node("Identity", "go", "still"), *nodes], "body",
                             [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, []),
                              *[value(c + "_in", kind) for c in carried]],
                             [value("still", TensorProto.BOOL, []), *[value(c, kind) for c in carried],
                              *[value(c, kind) for c in scanned]],
                             [helper.make_tensor(k, helper.np_dtype_to_tensor_dtype(np.asarray(v).dtype), np.asarray(v).shape,
                                                 np.asarray(v).ravel()) for k, v in constants.items()])
    outs = " ".join("y" + c for c in (*carried, *scanned))
    return helper.make_node("Loop", [trips, "", *start], outs.split(), name="around", body=body)


def control():
    def branch(nodes, out, constants=None):
        inits = [helper.make_tensor(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape, v.ravel())
                 for k, v in (constants or {}).items()]
        return helper.make_graph(nodes, "b", [], [value(out)], inits)
    none = branch([node("ConstantOfShape", "s", "e")], "e", {"s": arr64(0, 4)})
    many = branch([node("Exp", "rows", "f")], "f")
    yield rows("if_empty", [node("Size", "rows", "s"), node("Equal", "s zero", "c"),
                            node("If", "c", "y", then_branch=none, else_branch=many)], constants={"zero": np.int64(0)})
    yield rows("if_known_by_its_shape", [node("Shape", "rows", "s", start=1, end=2), node("Equal", "s four", "c"),
                                         node("If", "c", "y", then_branch=many, else_branch=none)], constants={"four": arr64(4)})
    two = branch([node("Slice", "rows s e", "g")], "g", {"s": arr64(0), "e": arr64(2)})
    total = [node("ReduceSum", "x", "t", keepdims=0), node("Greater", "t big", "c")]
    yield rows("if_of_two_lengths", [*total, node("If", "c", "y", then_branch=two, else_branch=many), node("Shape", "y", "n")],
               "y n:l", {"big": np.float32(1e9)})
    yield rows("if_fixed_or_bounded", [*total, node("If", "c", "y", then_branch=branch([node("Neg", "x", "h")], "h"),
                                                    else_branch=many), node("ReduceSum", "y", "z", keepdims=0)],
               "y z", {"big": np.float32(1e9)})
    count = [node("Shape", "rows", "s"), node("Gather", "s zero", "n")]
    row = [node("Gather", "rows i", "row"), node("Unsqueeze", "row front", "one")]
    yield rows("loop_over_rows", [*count, loop("", [*row, node("ReduceSum", "one", "sum", keepdims=0),
                                                    node("Add", "a_in sum", "a")], {"front": arr64(0)}, ["a"], ["row"], "n",
                                               ["start"])], "ya yrow", {"zero": np.int64(0), "start": np.float32(0)},
               keeps=SOME)
    empty = {"zero": np.int64(0), "start": np.zeros((0, 4), np.float32)}
    yield rows("loop_that_grows", [*count, loop("", [*row, node("Neg", "one", "m"), node("Concat", "a_in m", "a", axis=0)],
                                                {"front": arr64(0)}, ["a"], [], "n", ["start"]), node("Shape", "ya", "l")],
               "ya l:l", empty)
    # Grows by none or one: rows whose first number is positive.
    yield rows("loop_that_may_grow", [*count, loop("", [
        *row, node("Gather", "row front", "r"), node("Greater", "r none", "p"), node("Compress", "one p", "m", axis=0),
        node("Concat", "a_in m", "a", axis=0)], {"front": arr64(0), "none": np.float32(0)}, ["a"], [], "n", ["start"])],
        "ya", empty)
    yield rows("loop_that_grows_to_a_bound", [*count, loop("", [*row, node("Concat", "a_in one one", "a", axis=0)],
                                                           {"front": arr64(0)}, ["a"], [], "n", ["start"])],
               "ya", empty, keeps={k: v for k, v in KEEPS.items() if k != "all"}, flags=("--bound", "around=7"),
               fails=[(feeds("loop_that_grows_to_a_bound")[4], "'around' (CheckLength): a length of 9 is outside")])
    # Slices from running starts in bodies: what needs their size behind them takes it.
    x = {"x": floats("windows", 8, 3)}
    window = [node("Unsqueeze", "i front", "s"), node("Add", "s two", "e"), node("Slice", "x s e front", "w")]
    yield simple("bounded_windows_scanned", loop("", [*window, node("ReduceSum", "w", "q", keepdims=0), node("Add", "a_in q", "a")],
                                                 {"front": arr64(0), "two": arr64(2)}, ["a"], ["w"], "n", ["start"]), x, "ya yw",
                 {"n": np.int64(6), "start": np.float32(0)}, rtol=1e-3)
    yield simple("bounded_windows_scanned_beyond", loop("", [*window, node("Identity", "a_in", "a")],
                                                        {"front": arr64(0), "two": arr64(2)}, ["a"], ["w"], "n", ["start"]),
                 {**x, "n": np.array(7)}, "ya yw", {"start": np.float32(0)}, flags=("--max-trips", "around=8"),
                 fails=[({**x, "n": np.array(8)}, "a slice that starts at 7 has fewer than the required 2 elements")])
    at = [{**x, "at": np.array([k]), "c": np.array(c)} for k, c in ((0, True), (5, True), (4, False))]
    ends = [node("Add", "at three", "end")]
    taken = [branch([node("Slice", f"{a} at end front", b)], b) for a, b in (("x", "f1"), ("x2", "f2"))]
    yield simple("bounded_windows_of_branches", [node("Neg", "x", "x2"), *ends,
                                                 node("If", "c", "w", then_branch=taken[0], else_branch=taken[1]),
                                                 node("Add", "w k", "v"), node("Reshape", "v nine", "y")], at[0],
                 constants={"three": arr64(3), "front": arr64(0), "k": floats("k", 3, 3), "nine": arr64(9)}, more=at[1:])
    moved = [node("Concat", "a_in x", "j", axis=0), node("Slice", "j at end front", "p"), node("Mul", "p half", "a")]
    yield simple("bounded_windows_carried", [*ends, loop("", moved, {"half": np.float32(0.5)}, ["a"], [], "n", ["start"]),
                                             node("Reshape", "ya nine", "y")],
                 {k: v for k, v in at[0].items() if k != "c"}, "y",
                 {"three": arr64(3), "front": arr64(0), "nine": arr64(9), "n": np.int64(4), "start": floats("start", 3, 3)},
                 more=[{k: v for k, v in feed.items() if k != "c"} for feed in at[1:]])
    yield rows("loop_that_filters", [loop("", [
        node("ReduceMax", "a_in", "most", axes=[1], keepdims=0), node("Less", "most limit", "k"),
        node("Compress", "a_in k", "a", axis=0)], {"limit": np.float32(9)}, ["a"], [], "three", ["rows"])], "ya",
        {"three": np.int64(1)})


def resized():
    x = floats("resized", 1, 2, 5, 4)
    sizes = [{"x": x, "hw": arr64(*hw)} for hw in ((7, 9), (1, 1), (5, 4), (12, 3))]
    rules = [("linear", "half_pixel", {}), ("linear", "align_corners", {}), ("linear", "asymmetric", {}),
             ("linear", "pytorch_half_pixel", {}), ("cubic", "half_pixel", {"cubic_coeff_a": -0.75}),
             ("cubic", "align_corners", {}), ("nearest", "asymmetric", {"nearest_mode": "floor"}),
             ("nearest", "half_pixel", {"nearest_mode": "round_prefer_floor"}),
             ("nearest", "half_pixel", {"nearest_mode": "round_prefer_ceil"}), ("nearest", "asymmetric", {"nearest_mode": "ceil"})]
    for i, (mode, rule, more) in enumerate(rules):
        yield simple(f"bounded_resize_{i}_{mode}_{rule}", [
            node("Concat", "nc hw", "s", axis=0),
            node("Resize", ["x", "", "", "s"], ["y"], name="r", mode=mode, coordinate_transformation_mode=rule, **more)], sizes[0],
            constants={"nc": arr64(1, 2)}, flags=("--bound", "r=12"), more=sizes[1:], atol=1e-4)


def refusals():
    conv = [ROWS, node("Unsqueeze", "rows a", "u"), node("Transpose", "u", "t", perm=[0, 2, 1]),
            node("Conv", "t w", "y", name="here")]
    yield refused("bounded_conv_along", model(graph(conv, feeds("conv_along")[0], "y", {"a": arr64(0), "w": floats("w", 3, 4, 2)})),
                  "here", "bounded (at most 6)", "Conv")
    free = {"n": np.array(3, np.int64)}
    body = [node("Range", "zero n one", "y", name="count_up")]
    numbers = {"zero": np.int64(0), "one": np.int64(1)}
    yield refused("bounded_no_maximum", model(graph(body, free, "y:l", numbers)), "count_up", "--bound count_up=N")
    more = [{"n": np.array(k, np.int64)} for k in (0, 1, 8)]
    yield simple("bounded_flag", body, free, "y:l", numbers, flags=("--bound", "count_up=8"), more=more)
    yield simple("bounded_flag_exceeded", body, free, "y:l", numbers, flags=("--bound", "count_up=8"),
                 fails=[({"n": np.array(9, np.int64)}, "'count_up' (CheckLength): a length of 9 is outside the planned 0 to 8; "
                         "convert with a larger --bound NODE=N")])
    yield rows("lengths_differ", node("Add", "rows c", "y", name="meets"), constants={"c": floats("fixed", N, 4)},
               keeps={"all": KEEPS["all"]}, fails=[(feeds("lengths_differ")[3], "'meets' (CheckLength): lengths 3 and 6 of one axis differ")])
    yield rows("gather_beyond", node("Gather", "rows i", "y"), constants={"i": arr64(2)}, keeps={"some": KEEPS["some"]},
               fails=[(feeds("gather_beyond")[1], "outside an axis")])
    yield rows("topk_beyond", node("TopK", "rows k", "y z", axis=0, name="top"), "y z:l", {"k": arr64(2)}, keeps={"some": KEEPS["some"]},
               fails=[(feeds("topk_beyond")[1], "'top' (CheckLength): a part of 2 elements is not within an axis of 1")])
    yield refused("bounded_flag_without_node", model(graph(body, free, "y:l", numbers)), "nobody",
                  flags=("--bound", "nobody=3", "--bound", "count_up=3"))


def cases():
    yield from quantized()
    yield from elementwise()
    yield from shapes()
    yield from slices()
    yield from indexed()
    yield from reductions()
    yield from joined()
    yield from control()
    yield from resized()
    yield from refusals()
