"""What surrounds the ops: constants, subgraphs, functions, external data, declarations, shapes at the edges."""
import numpy as np
import onnx
from case import Case, KINDS, arr64, floats, graph, info, ints, model, node, simple
from onnx import TensorProto, helper, numpy_helper

X = floats("x", 2, 3)


def constants():
    t = helper.make_tensor
    forms = {
        "value": dict(value=numpy_helper.from_array(floats("c", 3))), "value_float": dict(value_float=1.5),
        "value_floats": dict(value_floats=[1.0, -2.0, 0.5]),
        "raw": dict(value=t("v", TensorProto.FLOAT, [3], floats("c", 3).tobytes(), raw=True)),
    }
    for name, attribute in forms.items():
        yield simple(f"constant_{name}", [node("Constant", [], "c", **attribute), node("Add", "x c", "y")], {"x": X})
    i = ints("i", 2, 3)
    for name, attribute in {"value_int": dict(value_int=7), "value_ints": dict(value_ints=[1, -2, 3])}.items():
        yield simple(f"constant_{name}", [node("Constant", [], "c", **attribute), node("Add", "x c", "y")], {"x": i},
                     "y:l")
    sparse = helper.make_sparse_tensor(t("sv", TensorProto.FLOAT, [2], [1.5, -2.5]),
                                       t("si", TensorProto.INT64, [2], [1, 5]), [2, 3])
    dense = np.zeros((2, 3), np.float32)
    dense[0, 1], dense[1, 2] = 1.5, -2.5
    yield simple("constant_sparse", [node("Constant", [], "c", sparse_value=sparse), node("Add", "x c", "y")],
                 {"x": X}, expect="given", given={"y": X + dense}, wanted=True)
    sparse2 = helper.make_sparse_tensor(t("sv", TensorProto.FLOAT, [2], [1.5, -2.5]),
                                        t("si", TensorProto.INT64, [2, 2], [0, 1, 1, 2]), [2, 3])
    yield simple("constant_sparse_pairs", [node("Constant", [], "c", sparse_value=sparse2), node("Add", "x c", "y")],
                 {"x": X}, expect="given", given={"y": X + dense}, wanted=True)
    # Every element type in its own typed field, added up after a cast.
    fields = {TensorProto.FLOAT: [1.5, -2], TensorProto.DOUBLE: [1.5, -2], TensorProto.INT64: [3, -4],
              TensorProto.INT32: [3, -4], TensorProto.INT16: [3, -4], TensorProto.INT8: [3, -4],
              TensorProto.UINT8: [3, 200], TensorProto.UINT16: [3, 60000], TensorProto.UINT32: [3, 70000],
              TensorProto.UINT64: [3, 4], TensorProto.BOOL: [1, 0], TensorProto.FLOAT16: [1.5, -2],
              TensorProto.BFLOAT16: [1.5, -2], TensorProto.INT4: [3, -4], TensorProto.UINT4: [3, 12],
              TensorProto.FLOAT8E4M3FN: [1.5, -2], TensorProto.FLOAT8E5M2: [1.5, -2]}
    for kind, values in fields.items():
        name = TensorProto.DataType.Name(kind).lower()
        late = kind in (TensorProto.INT4, TensorProto.UINT4)
        for raw in (False, True):
            c = t("c", kind, [2], values)
            if raw:
                c = numpy_helper.from_array(numpy_helper.to_array(c), "c")
            m = model(graph([node("Cast", "c", "d", to=1), node("Add", "x d", "y")], {"x": X[:, :2]}, "y"),
                      21 if late else 19, ir=10 if late else 9)
            m.graph.initializer.append(c)
            want = X[:, :2] + np.array(values, np.float32)
            yield Case(f"initializer_{name}_{'raw' if raw else 'field'}", m, {"x": X[:, :2]}, expect="given",
                       given={"y": want})
    for to, letter in ((10, "h"), (11, "d"), (7, "l"), (9, "b"), (3, "c"), (2, "B"), (16, "w")):
        k = KINDS[letter]
        yield simple(f"cast_to_{TensorProto.DataType.Name(k).lower()}", node("Cast", "x", "y", to=to),
                     {"x": np.array([[0, 1.25, -3.5], [2.75, 100.3, 7]], np.float32)},
                     f"y:{letter}", opset=19, expect="given", given={"y": cast_of(letter)}, ir=9)


def cast_of(letter):
    import ml_dtypes
    x = np.array([[0, 1.25, -3.5], [2.75, 100.3, 7]], np.float32)
    kinds = {"h": np.float16, "d": np.float64, "l": np.int64, "b": np.bool_, "c": np.int8, "w": ml_dtypes.bfloat16}
    if letter == "B":
        # A negative float to uint8 is undefined in ONNX; the project saturates (clamp before converting).
        return np.clip(np.trunc(x), 0, 255).astype(np.uint8)
    return x.astype(kinds[letter])


def declarations():
    two = [node("Relu", "x", "h"), node("Add", "h c", "y")]
    c = {"c": floats("c", 3)}
    yield simple("nodes_unsorted", two[::-1], {"x": X}, constants=c, expect="twin", twin=two)
    yield simple("value_info_wrong_shape", two, {"x": X}, constants=c, value_info=[info("h", shape=[7, 9])],
                 twin=two)
    yield simple("value_info_wrong_type", two, {"x": X}, constants=c,
                 value_info=[info("h", kind=TensorProto.INT64, shape=[2, 3])], twin=two)
    yield simple("value_info_wrong_rank", two, {"x": X}, constants=c, value_info=[info("h", shape=[2, 3, 1])],
                 twin=two)
    # torch's older exporter writes torch's number of bfloat16.
    m = model(graph([node("Cast", "x", "c", to=15), node("Cast", "w", "v", to=1), node("Cast", "c", "d", to=1), node("Add", "d v", "y")],
                    {"x": np.array([[1, 2.0078125, 3]], np.float32)}, "y"))
    m.graph.initializer.append(helper.make_tensor("w", TensorProto.BFLOAT16, [3], [1.5, -2.0, 0.25]))
    yield Case("cast_to_15_is_bfloat16", m, {"x": np.array([[1, 2.0078125, 3]], np.float32)}, expect="given",
               given={"y": np.array([[2.5, 0, 3.25]], np.float32)})
    # torch keeps an axis that is not 1; its exporter declares so.
    kept = [node("Squeeze", "x a", "h"), node("Relu", "h", "y")]
    yield simple("squeeze_of_3_declared", kept, {"x": X}, constants={"a": arr64(1)}, value_info=[info("h", shape=[2, 3])],
                 twin=node("Relu", "x", "y"))
    yield simple("squeeze_of_3_and_1_declared", kept, {"x": X[:1]}, constants={"a": arr64(0, 1)},
                 value_info=[info("h", shape=["n"])],
                 twin=([node("Reshape", "x s", "h"), node("Relu", "h", "y")], {"s": arr64(3)}))
    m = model(graph(two, {"x": X}, "y", c))
    m.graph.output[0].CopyFrom(info("y", shape=["whatever", "N"]))
    yield Case("output_symbolic", m, {"x": X})
    m = model(graph(two, {"x": X}, "y", c))
    m.graph.output[0].CopyFrom(info("y", shape=[5, 5]))
    yield Case("output_declared_wrong_shape", m, {"x": X}, expect="twin", twin=model(graph(two, {"x": X}, "y", c)))
    yield simple("batch_symbol", two, {"x": (X[:1], ["N", 3])}, constants=c)
    yield simple("batch_unnamed", two, {"x": (X[:1], [None, 3])}, constants=c)
    yield simple("dim_flag", two, {"x": (X, ["N", "W"])}, constants=c, flags=("--dim", "N=2", "--dim", "W=3"))
    yield simple("shape_flag", two, {"x": (X, ["N", "W"])}, constants=c, flags=("--shape", "x=2,3"))
    yield simple("dim_shared", node("Add", "x z", "y"), {"x": (X, ["N", "W"]), "z": (X * 2, ["N", "W"])},
                 flags=("--dim", "N=2", "--dim", "W=3"))
    m = model(graph([node("Relu", "x", "y")], {"x": X}, "y"))
    m.graph.input[0].type.tensor_type.ClearField("shape")
    yield Case("input_without_shape", m, {"x": X}, flags=("--shape", "x=2,3"))
    yield simple("const_flag", node("Reshape", "x s", "y"), {"x": X, "s": arr64(3, 2)},
                 flags=(), consts={"s": arr64(3, 2)})
    yield simple("initializer_is_input", two, {"x": X}, constants=c, ir=3)
    m = model(graph(two, {"x": X, "c": floats("c", 3)}, "y", c), ir=3)
    yield Case("initializer_listed_as_input", m, {"x": X})
    yield simple("initializer_unused", two, {"x": X}, constants={**c, "unused": floats("u", 4)})
    yield simple("input_unused", two, {"x": X, "z": X}, constants=c)
    yield simple("output_is_input", node("Relu", "x", "y"), {"x": X}, "y x")
    yield simple("output_is_constant", node("Relu", "x", "y"), {"x": X}, "y c", constants=c)
    yield simple("output_folds", [node("Relu", "x", "y"), node("Shape", "x", "s")], {"x": X}, "y s:l")
    yield simple("two_outputs_one_value", [node("Relu", "x", "y"), node("Identity", "y", "z")], {"x": X}, "y z")
    yield simple("identity_only", node("Identity", "x", "y"), {"x": X})
    yield simple("inner_value_is_output", two, {"x": X}, "h y", constants=c)
    yield simple("odd_names", [node("Relu", ["in put/0:1"], ["höhe"]), node("Neg", ["höhe"], ["a.b;c=d"])],
                 {"in put/0:1": X}, outputs="a.b;c=d".replace(":", ""))
    yield simple("node_without_name_twice", [node("Relu", "x", "a"), node("Relu", "a", "y")], {"x": X})
    yield simple("nodes_with_one_name", [node("Relu", "x", "a", name="n"), node("Neg", "a", "y", name="n")], {"x": X},
                 twin=[node("Relu", "x", "a"), node("Neg", "a", "y")])
    yield simple("dead_node", [node("Relu", "x", "y"), node("MatMul", "x c", "dead")], {"x": X},
                 constants={"c": floats("c", 3, 4)})
    yield simple("opset_imports_unused", node("Relu", "x", "y"), {"x": X}, extra=[("ai.onnx.ml", 3), ("some.domain", 1)])
    m = model(graph([node("Relu", "x", "y", domain="ai.onnx")], {"x": X}, "y"))
    yield Case("domain_spelled_out", m, {"x": X}, expect="twin", twin=model(graph([node("Relu", "x", "y")], {"x": X}, "y")))
    for opset in (7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26):
        yield simple(f"opset{opset}", two, {"x": X}, constants=c, opset=opset, ir=min(10, max(3, opset - 5)))


def edges():
    yield simple("scalar_input", node("Add", "x c", "y"), {"x": np.array(2, np.float32)},
                 constants={"c": np.float32(1)})
    yield simple("rank8", node("Transpose", "x", "y", perm=[7, 5, 3, 1, 0, 2, 4, 6]),
                 {"x": floats("r", 2, 1, 3, 1, 2, 1, 2, 2)})
    yield simple("zero_size", node("Relu", "x", "y"), {"x": np.zeros((2, 0, 3), np.float32)})
    yield simple("zero_size_concat", node("Concat", "x z", "y", axis=1), {"x": X, "z": np.zeros((2, 0), np.float32)})
    yield simple("zero_size_sum", node("ReduceSum", "x a", "y", keepdims=0), {"x": np.zeros((2, 0), np.float32)},
                 constants={"a": arr64(1)})
    yield simple("zero_size_matmul", node("MatMul", "x z", "y"), {"x": np.zeros((2, 0), np.float32),
                                                                "z": np.zeros((0, 3), np.float32)})
    yield simple("slice_to_nothing", node("Slice", "x s e", "y"), {"x": X},
                 constants={"s": arr64(2), "e": arr64(1)})
    yield simple("special_values", [node("Exp", "x", "e"), node("Sub", "e e", "y")],
                 {"x": np.array([[np.inf, -np.inf, np.nan], [0, -0.0, 1e-40]], np.float32)})
    yield simple("int64_large", node("Add", "x c", "y"), {"x": np.array([2**62, -2**62, 5], np.int64)}, "y:l",
                 {"c": np.array([2**61, -2**61, 1], np.int64)})
    yield simple("int_division_truncates", node("Div", "x c", "y"), {"x": np.array([7, -7, 2**40 + 1], np.int64)},
                 "y:l", {"c": np.array([2, 2, 3], np.int64)})
    yield simple("double", [node("Mul", "x x", "a"), node("Sqrt", "a", "y")],
                 {"x": np.array([1e-200, 3.0, 1e150])}, "y:d", expect="given",
                 given={"y": np.sqrt(np.array([1e-200, 3.0, 1e150]) ** 2)})
    yield simple("double_precision", node("Sub", "x c", "y"), {"x": np.array([1 + 2.0**-40])}, "y:d",
                 {"c": np.array([1.0])}, rtol=1e-12, atol=0)
    yield simple("half", [node("MatMul", "x c", "y")], {"x": floats("h", 3, 4).astype(np.float16)}, "y:h",
                 {"c": floats("hc", 4, 2).astype(np.float16)}, rtol=2e-3, atol=2e-3)
    yield simple("clip_bounds_cross", node("Clip", "x lo hi", "y"), {"x": X},
                 constants={"lo": np.float32(2), "hi": np.float32(-1)}, expect="given", given={"y": np.full_like(X, -1)})
    yield simple("optional_input_absent", node("Clip", ["x", "", "hi"], "y"), {"x": X}, constants={"hi": np.float32(.5)})
    yield simple("optional_output_absent", node("RNN", "x w r", ["", "h"], hidden_size=4),
                 {"x": floats("rx", 3, 1, 2)}, "h", {"w": floats("rw", 1, 4, 2), "r": floats("rr", 1, 4, 4)})
    chain = [node("Relu" if i % 2 else "Neg", f"v{i}", f"v{i + 1}") for i in range(300)]
    yield simple("long_chain", chain, {"v0": X}, "v300")
    yield simple("fan_out", [node("Relu", "x", f"r{i}") for i in range(40)] +
                 [node("Sum", [f"r{i}" for i in range(40)], "y")], {"x": X})
    shape = [node("Shape", "x", "s"), node("Gather", "s i0", "n"), node("Gather", "s i1", "m"),
             node("Mul", "n m", "k"), node("Unsqueeze", "k zero", "u"), node("Reshape", "x u", "y")]
    yield simple("shape_arithmetic", shape, {"x": X}, constants={"i0": np.int64(0), "i1": np.int64(1),
                                                                "zero": arr64(0)})
    yield simple("shape_through_cast", [node("Shape", "x", "s"), node("Cast", "s", "f", to=1),
                                        node("Mul", "f two", "g"), node("Cast", "g", "t", to=7),
                                        node("Expand", "row t", "y")], {"x": X},
                 constants={"two": np.float32(2), "row": np.ones((1, 1), np.float32)})


def control():
    up, down = (helper.make_graph([node(op, "x", "b")], op, [], [info("b")]) for op in ("Exp", "Neg"))
    for value in (True, False):
        yield simple(f"if_constant_{value}", node("If", "c", "y", then_branch=up, else_branch=down), {"x": X},
                     constants={"c": np.array(value)})
        yield simple(f"if_runtime_{value}", node("If", "c", "y", then_branch=up, else_branch=down),
                     {"x": X, "c": np.array(value)})
        yield simple(f"if_computed_{value}",
                     [node("ReduceMax", "x", "m", keepdims=0), node("Greater", "m t", "c"),
                      node("If", "c", "z", then_branch=up, else_branch=down), node("Add", "z x", "y")], {"x": X},
                     constants={"t": np.float32(-10 if value else 10)})
    inner = helper.make_graph([node("If", "d", "i", then_branch=up, else_branch=down), node("Add", "i x", "b")], "in",
                              [], [info("b")])
    for c, d in ((True, False), (False, True), (True, True)):
        yield simple(f"if_nested_{c}_{d}", node("If", "c", "y", then_branch=inner, else_branch=down),
                     {"x": X, "c": np.array(c), "d": np.array(d)})
    ids = helper.make_graph([node("Cast", "x", "b", to=7)], "ids", [], [info("b", kind=TensorProto.INT64)])
    yield simple("if_types_differ", node("If", "c", "y", then_branch=down, else_branch=ids),
                 {"x": X, "c": np.array(True)}, expect="given", given={"y": -X}, wanted=True)
    rows = helper.make_graph([node("Concat", "x x", "b", axis=0)], "rows", [], [info("b")])
    yield simple("if_shapes_differ", node("If", "c", "y", then_branch=rows, else_branch=down),
                 {"x": X, "c": np.array(True)}, wanted=True)
    # Branches of differing shapes, where the condition is known after all.
    differ = node("If", "c", "y", then_branch=rows, else_branch=down)
    for value in (True, False):
        yield simple(f"if_shapes_differ_constant_{value}", differ, {"x": X}, constants={"c": np.array(value)})
        yield simple(f"if_shapes_differ_given_{value}", differ, {"x": X, "c": np.array(value)}, expect="given",
                     given={"y": np.concatenate([X, X]) if value else -X}, consts={"c": np.array(value)})
        within = helper.make_graph([node("Not", "c", "d"), node("If", "d", "w", then_branch=down, else_branch=rows),
                                    node("ReduceSum", "w", "b", keepdims=0)], "within", [], [info("b")])
        total = helper.make_graph([node("ReduceMax", "x", "b", keepdims=0)], "total", [], [info("b")])
        yield simple(f"if_shapes_differ_within_{value}", node("If", "r", "y", then_branch=within, else_branch=total),
                     {"x": X, "r": np.array(True)}, constants={"c": np.array(value)})
    fold = [node("Shape", "x", "s"), node("Gather", "s i", "n"), node("Equal", "n two", "c"),
            node("If", "c", "y", then_branch=rows, else_branch=down)]
    yield simple("if_folds_by_shape", fold, {"x": X}, constants={"i": np.int64(0), "two": np.int64(2)})

    def body(nodes, carried, scans="", extra_cond="cond"):
        ins = [info("i", kind=TensorProto.INT64, shape=[]), info("cond", kind=TensorProto.BOOL, shape=[])]
        ins += [info(c) for c in carried.split()]
        outs = [info(extra_cond, kind=TensorProto.BOOL, shape=[]), *(info(c + "_o") for c in carried.split()),
                *(info(s) for s in scans.split())]
        return helper.make_graph(nodes, "body", ins, outs)

    keep = node("Identity", "cond", "cond_o")
    grow = body([keep, node("Mul", "v k", "v_o")], "v", extra_cond="cond_o")
    k = {"k": np.float32(1.1), "n": np.int64(5), "t": np.array(True)}
    yield simple("loop_constant_trips", node("Loop", "n t x", "y", body=grow), {"x": X}, constants=k)
    yield simple("loop_no_condition", node("Loop", ["n", "", "x"], "y", body=grow), {"x": X}, constants=k)
    yield simple("loop_zero_trips", node("Loop", "n t x", "y", body=grow), {"x": X}, constants={**k, "n": np.int64(0)})
    history = body([keep, node("Mul", "v k", "v_o"), node("ReduceSum", "v_o", "s", keepdims=0)], "v", "s", "cond_o")
    yield simple("loop_scan_output", node("Loop", "n t x", "y h", body=history), {"x": X}, "y h", k)
    counter = body([keep, node("Cast", "i", "f", to=1), node("Add", "v f", "v_o")], "v", extra_cond="cond_o")
    yield simple("loop_uses_counter", node("Loop", "n t x", "y", body=counter), {"x": X}, constants=k)
    double = body([keep, node("Concat", "v v", "v_o", axis=0)], "v", extra_cond="cond_o")
    yield simple("loop_carried_grows", node("Loop", "n t x", "y", body=double), {"x": X},
                 constants={"n": np.int64(2), "t": np.array(True)}, wanted=True)
    swap = body([keep, node("Identity", "a", "b_o"), node("Add", "a b", "a_o")], "a b", extra_cond="cond_o")
    yield simple("loop_two_carried", node("Loop", "n t x z", "y w", body=swap), {"x": X, "z": X * 2}, "y w", k)
    stop = body([node("Mul", "v k", "v_o"), node("ReduceMax", "v_o", "m", keepdims=0), node("Less", "m lim", "cond_o")],
                "v", extra_cond="cond_o")
    early = {**k, "k": np.float32(2), "lim": np.float32(5), "n": np.int64(20)}
    yield simple("loop_stops_early", node("Loop", "n t x", "y", body=stop, name="the_loop"), {"x": np.abs(X) + 0.1},
                 constants=early)
    yield simple("loop_bounded_by_flag", node("Loop", ["", "t", "x"], "y", body=stop, name="the_loop"),
                 {"x": np.abs(X) + 0.1}, constants=early, flags=("--max-trips", "the_loop=20"))
    vector = body([node("Mul", "v k", "v_o"), node("ReduceMax", "v_o", "m", keepdims=0), node("Unsqueeze", "m zero", "u"),
                   node("Less", "u lim", "cond_o")], "v", extra_cond="cond_o")
    yield simple("loop_condition_of_rank_1", node("Loop", "n t x", "y", body=vector, name="the_loop"),
                 {"x": np.abs(X) + 0.1}, constants={**early, "zero": arr64(0), "t": np.array([True])},
                 twin=(node("Loop", "n t x", "y", body=stop), {"t": np.array(True)}))
    yield simple("loop_runtime_trips", node("Loop", "n t x", "y", body=grow, name="the_loop"),
                 {"x": X, "n": np.array(3, np.int64)}, constants={"k": k["k"], "t": k["t"]},
                 flags=("--max-trips", "the_loop=8"))
    outer = body([keep, node("Loop", "n t v", "v_o", body=helper.make_graph(
        [node("Identity", "cond2", "c2_o"), node("Add", "u k", "u_o")], "inner",
        [info("j", kind=TensorProto.INT64, shape=[]), info("cond2", kind=TensorProto.BOOL, shape=[]), info("u")],
        [info("c2_o", kind=TensorProto.BOOL, shape=[]), info("u_o")]))], "v", extra_cond="cond_o")
    yield simple("loop_in_loop", node("Loop", "n t x", "y", body=outer), {"x": X}, constants=k)

    step = helper.make_graph([node("Add", "s e", "s_o"), node("Mul", "s_o k", "o")], "step", [info("s"), info("e")],
                             [info("s_o"), info("o")])
    seq, start = floats("seq", 4, 3), floats("start", 3)
    for name, extra in {"plain": {}, "reverse_input": dict(scan_input_directions=[1]),
                        "reverse_output": dict(scan_output_directions=[1]),
                        "axis_output": dict(scan_output_axes=[1])}.items():
        yield simple(f"scan_{name}", node("Scan", "st x", "f y", body=step, num_scan_inputs=1, **extra),
                     {"st": start, "x": seq}, "f y", {"k": np.float32(0.5)}, opset=11)
    yield simple("scan_axis_input", node("Scan", "st x", "f y", body=step, num_scan_inputs=1, scan_input_axes=[1]),
                 {"st": start, "x": np.ascontiguousarray(seq.T)}, "f y", {"k": np.float32(0.5)}, opset=11)
    two = helper.make_graph([node("Add", "e d", "a"), node("Add", "s a", "s_o"), node("Sub", "e d", "o")], "two",
                            [info("s"), info("e"), info("d")], [info("s_o"), info("o")])
    yield simple("scan_two_inputs", node("Scan", "st x z", "f y", body=two, num_scan_inputs=2),
                 {"st": start, "x": seq, "z": seq * 3}, "f y", opset=11)


def functions():
    imports = [helper.make_opsetid("", 17)]
    swish = helper.make_function("my.domain", "Swish", ["a"], ["b"], [node("Sigmoid", "a", "s"), node("Mul", "a s", "b")],
                                 imports)
    yield simple("function", node("Swish", "x", "y", domain="my.domain"), {"x": X}, functions=[swish],
                 extra=[("my.domain", 1)])
    yield simple("function_twice", [node("Swish", "x", "m", domain="my.domain"),
                                    node("Swish", "m", "y", domain="my.domain")], {"x": X}, functions=[swish],
                 extra=[("my.domain", 1)])
    leaky = helper.make_node("LeakyRelu", ["a"], ["b"])
    ref = leaky.attribute.add()
    ref.name, ref.ref_attr_name, ref.type = "alpha", "slope", onnx.AttributeProto.FLOAT
    scaled = helper.make_function("my.domain", "Leak", ["a"], ["b"], [leaky], imports, attributes=["slope"])
    yield simple("function_attribute", node("Leak", "x", "y", domain="my.domain", slope=0.25), {"x": X},
                 functions=[scaled], extra=[("my.domain", 1)])
    default = helper.make_function("my.domain", "Leak", ["a"], ["b"], [leaky], imports,
                                   attribute_protos=[helper.make_attribute("slope", 0.4)])
    yield simple("function_attribute_default", node("Leak", "x", "y", domain="my.domain"), {"x": X},
                 functions=[default], extra=[("my.domain", 1)], ir=9)
    outer = helper.make_function("my.domain", "Twice", ["a"], ["b"],
                                 [node("Swish", "a", "t", domain="my.domain"), node("Swish", "t", "b", domain="my.domain")],
                                 [*imports, helper.make_opsetid("my.domain", 1)])
    yield simple("function_nested", node("Twice", "x", "y", domain="my.domain"), {"x": X}, functions=[swish, outer],
                 extra=[("my.domain", 1)])
    # Inner names that clash with the caller's must not be mixed up.
    clash = helper.make_function("my.domain", "Clash", ["a"], ["b"], [node("Neg", "a", "x"), node("Exp", "x", "b")],
                                 imports)
    yield simple("function_names_clash", [node("Clash", "x", "t", domain="my.domain"), node("Add", "t x", "y")],
                 {"x": X}, functions=[clash], extra=[("my.domain", 1)])
    branch = helper.make_graph([node("Swish", "x", "b1", domain="my.domain")], "t", [], [info("b1")])
    other = helper.make_graph([node("Neg", "x", "b2")], "e", [], [info("b2")])
    yield simple("function_in_branch", node("If", "c", "y", then_branch=branch, else_branch=other),
                 {"x": X, "c": np.array(True)}, functions=[swish], extra=[("my.domain", 1)])


def external(name, location, offset=None, length=None, a=None):
    a = floats("ext", 3) if a is None else a
    t = onnx.TensorProto(name=name, data_type=1, dims=a.shape, data_location=onnx.TensorProto.EXTERNAL)
    entries = {"location": location, **({"offset": str(offset)} if offset is not None else {}),
               **({"length": str(length)} if length is not None else {})}
    for k, v in entries.items():
        e = t.external_data.add()
        e.key, e.value = k, v
    return t


def with_external(*args, **kw):
    m = model(graph([node("Add", "x c", "y")], {"x": X}, "y"))
    m.graph.initializer.append(external("c", *args, **kw))
    return m


def external_data():
    a = floats("ext", 3)
    want = {"y": X + a}
    yield Case("external", with_external("w.bin", 0, 12), {"x": X}, files={"w.bin": a.tobytes()}, expect="given",
               given=want)
    yield Case("external_offset", with_external("w.bin", 4096, 12), {"x": X}, expect="given", given=want,
               files={"w.bin": b"\xff" * 4096 + a.tobytes() + b"\xff" * 100})
    yield Case("external_no_length", with_external("w.bin"), {"x": X}, files={"w.bin": a.tobytes()}, expect="given",
               given=want)
    yield Case("external_folder", with_external("data/w.bin", 0, 12), {"x": X}, files={"data/w.bin": a.tobytes()},
               expect="given", given=want)
    yield Case("external_unaligned", with_external("w.bin", 3, 12), {"x": X}, files={"w.bin": b"abc" + a.tobytes()},
               expect="given", given=want)


def sequences():
    """Of known length, as unoptimised exports write them."""
    x = floats("sequence", 4, 6)
    k = {f"i{i}": np.int64(i) for i in range(3)} | {"last": np.int32(-1), "sizes": arr64(1, 2, 3), "four": np.int64(4)}
    ends = [node("SequenceAt", "s i0", "a"), node("SequenceAt", "s last", "b")]
    both = [*ends, node("ReduceSum", "a", "c", keepdims=0), node("Mul", "b c", "y")]
    for name, split in {"sizes": "x sizes", "even": "x i2", "uneven": "x four", "ones": "x"}.items():
        yield simple(f"split_to_sequence_{name}", [node("SplitToSequence", split, "s", axis=-1), *both], {"x": x},
                     constants=k)
    yield simple("split_to_sequence_squeezed", [node("SplitToSequence", "x", "s", axis=1, keepdims=0), *both], {"x": x},
                 constants=k)
    yield simple("split_to_sequence_unbound", [node("SplitToSequence", "x i1", "s", axis=1, keepdims=0), *both], {"x": x},
                 constants=k)
    make = node("SequenceConstruct", "p x q", "s")
    parts = [node("Neg", "x", "p"), node("Exp", "x", "q"), make]
    for fresh in (0, 1):
        yield simple(f"concat_from_sequence_{fresh}", [*parts, node("ConcatFromSequence", "s", "y", axis=-1,
                                                                    new_axis=fresh)], {"x": x})
    yield simple("sequence_inserted_and_erased",
                 [*parts, node("SequenceInsert", "s q i0", "t"), node("SequenceInsert", "t p", "u"),
                  node("SequenceErase", "u i2", "v"), node("SequenceErase", "v", "w"), node("SequenceLength", "w", "n"),
                  node("ConcatFromSequence", "w", "z", axis=0), node("Cast", "n", "f", to=1), node("Mul", "z f", "y")],
                 {"x": x}, constants=k)
    yield simple("sequence_from_nothing",
                 [node("SequenceEmpty", [], "e"), node("SequenceInsert", "e x", "s"), node("Identity", "s", "t"),
                  node("SequenceAt", "t i0", "y")], {"x": x}, constants=k)
    inside = helper.make_graph([node("SequenceAt", "s i1", "a"), node("Neg", "a", "b")], "inside", [], [info("b")])
    outside = helper.make_graph([node("SequenceAt", "s last", "b")], "outside", [], [info("b")])
    for value in (True, False):
        yield simple(f"sequence_in_branch_{value}", [*parts, node("If", "c", "y", then_branch=inside,
                                                                  else_branch=outside)],
                     {"x": x, "c": np.array(value)}, constants=k)
    rows = helper.make_graph([node("Concat", "x x", "b", axis=0)], "rows", [], [info("b")])
    plain = helper.make_graph([node("Neg", "x", "b")], "plain", [], [info("b")])
    yield simple("if_folds_by_sequence_length",
                 [*parts, node("SequenceLength", "s", "n"), node("Equal", "n i2", "c"),
                  node("If", "c", "y", then_branch=rows, else_branch=plain)], {"x": x}, constants=k)


def cases():
    for make in (constants, declarations, edges, control, sequences, functions, external_data):
        yield from make()
