"""Control flow beyond structure.py: conditions that constants decide, slices that move, loops that carry lists."""
import numpy as np
from case import arr64, floats, graph, info, model, node, refused, simple
from onnx import TensorProto, helper

X = floats("x", 2, 3)


def known_conditions():
    """Conditions that a constant decides beside what is not known, and that follow from shapes."""
    down = helper.make_graph([node("Neg", "x", "b")], "down", [], [info("b")])
    rows = helper.make_graph([node("Concat", "x x", "b", axis=0)], "rows", [], [info("b")])
    choice = node("If", "d", "y", then_branch=rows, else_branch=down)
    for op, value in (("And", False), ("Or", True)):
        yield simple(f"if_shapes_differ_{op.lower()}", [node(op, "c k", "d"), choice], {"x": X, "c": np.array(not value)},
                     constants={"k": np.array(value)})
    chain = [node("Shape", "x", "s"), node("ReduceProd", "s", "p", keepdims=0), node("Sub", "p one", "q"),
             node("GreaterOrEqual", "q five", "e"), node("Not", "e", "f"), node("And", "f c", "d"), choice]
    yield simple("if_shapes_differ_by_chain", chain, {"x": X, "c": np.array(True)},
                 constants={"one": np.int64(1), "five": np.int64(5)})


def running_slices():
    """Starts that are known only while running, sizes that are not."""
    x = floats("slices", 6, 7)
    k = {"two": arr64(2), "a": arr64(1), "st": arr64(2), "four": arr64(4), "z": arr64(0), "one": arr64(1),
         "both": arr64(1, 0), "scalar": np.int64(3)}
    ends = node("Add", "i two", "e")
    for name, start in {"front": 1, "from_end": -3, "last": 5}.items():
        yield simple(f"slice_running_{name}", [ends, node("Slice", "x i e a", "y")], {"x": x, "i": arr64(start)},
                     constants=k)
    yield simple("slice_running_steps", [node("Add", "four i", "e"), node("Slice", "x i e a st", "y")],
                 {"x": x, "i": arr64(2)}, constants=k)
    yield simple("slice_running_int32", [node("Cast", "i", "b", to=7), node("Sub", "b two", "f"), node("Slice", "x f b z", "y")],
                 {"x": x, "i": np.array([5], np.int32)}, constants=k)
    yield simple("slice_running_two_axes",
                 [node("Add", "p scalar", "q"), node("Unsqueeze", "p z", "p1"), node("Unsqueeze", "q z", "q1"),
                  node("Concat", "p1 one", "s", axis=0), node("Concat", "q1 four", "e", axis=0),
                  node("Slice", "x s e both", "y")], {"x": x, "p": np.array(3)}, constants=k)
    body = helper.make_graph(
        [node("Identity", "cond", "c_o"), node("Unsqueeze", "i z", "s"), node("Add", "s two", "e"),
         node("Slice", "x s e z", "w"), node("ReduceMax", "w", "m", keepdims=0), node("Add", "v m", "v_o")], "body",
        [info("i", kind=TensorProto.INT64, shape=[]), info("cond", kind=TensorProto.BOOL, shape=[]), info("v", shape=[])],
        [info("c_o", kind=TensorProto.BOOL, shape=[]), info("v_o", shape=[])])
    yield simple("slice_running_in_loop", node("Loop", "n t v", "y", body=body), {"x": x, "v": np.array(1, np.float32)},
                 constants={**k, "n": np.int64(5), "t": np.array(True)})


def carried_sequences():
    """Loops that grow lists: appended rows, a while loop as exporters of scripts write it, a scripted recurrence."""
    x = floats("sequence", 4, 6)
    i, go = info("i", kind=TensorProto.INT64, shape=[]), info("go", kind=TensorProto.BOOL, shape=[])
    go_o = info("go_o", kind=TensorProto.BOOL, shape=[])
    many, many_o = (helper.make_tensor_sequence_value_info(s, TensorProto.FLOAT, None) for s in ("l", "l_o"))
    k = {"t": np.array(True), "n": np.int64(4), "most": np.int64(2**63 - 1), "one": np.int64(1), "zero": arr64(0)}
    take = node("Gather", "x i", "r", axis=0)
    grow = node("SequenceInsert", "l u", "l_o")
    start, end = node("SequenceEmpty", [], "e"), node("ConcatFromSequence", "s", "y", axis=0, new_axis=1)
    body = helper.make_graph([node("Identity", "go", "go_o"), take, node("Exp", "r", "u"), grow], "body", [i, go, many],
                             [go_o, many_o])
    yield simple("loop_carries_sequence", [start, node("Loop", "n t e", "s", body=body), end], {"x": x}, constants=k)
    long = floats("carried long", 300, 2)
    yield simple("loop_carries_long_sequence", [start, node("Loop", "n t e", "s", body=body), end], {"x": long},
                 constants=k | {"n": np.int64(300)})
    step = [node("Add", "j one", "j_o"), node("Less", "j_o rows", "go_o")]
    bags = helper.make_graph(
        [node("Gather", "from j", "b"), node("Add", "j one", "j1"), node("Gather", "from j1", "d"),
         node("Unsqueeze", "b zero", "b1"), node("Unsqueeze", "d zero", "d1"), node("Slice", "x b1 d1 zero", "part"),
         node("ReduceSum", "part zero", "u", keepdims=0), grow, *step], "bags",
        [i, go, info("j", kind=TensorProto.INT64, shape=[]), many],
        [go_o, info("j_o", kind=TensorProto.INT64, shape=[]), many_o])
    yield simple("loop_while_bags", [start, node("Shape", "from", "f"), node("Squeeze", "f", "f0"), node("Sub", "f0 one", "rows"),
                                     node("Loop", "most t first e", "last s", body=bags), end], {"x": x},
                 constants=k | {"from": arr64(0, 1, 1, 4), "first": np.int64(0)})
    cell = helper.make_graph(
        [take, node("Add", "r h", "a"), node("Tanh", "a", "h_o"), node("Mul", "h_o h_o", "c"), node("Identity", "h_o", "u"),
         grow, *step], "cell",
        [i, go, info("j", kind=TensorProto.INT64, shape=[]), info("h"), many],
        [go_o, info("j_o", kind=TensorProto.INT64, shape=[]), info("h_o"), many_o])
    yield simple("loop_scripted_cell", [start, node("Shape", "x", "f"), node("Gather", "f first", "rows"),
                                        node("Loop", ["", "t", "first", "h0", "e"], "last h s", body=cell), end],
                 {"x": x, "h0": floats("carried h", 6)}, "y h", constants=k | {"first": np.int64(0)})


def running_sequences():
    """Sequences whose number of tensors, or a position in which, is known only while running."""
    x = floats("stacked", 6, 3)
    i, go = info("i", kind=TensorProto.INT64, shape=[]), info("go", kind=TensorProto.BOOL, shape=[])
    go_o = info("go_o", kind=TensorProto.BOOL, shape=[])
    many, many_o = (helper.make_tensor_sequence_value_info(s, TensorProto.FLOAT, None) for s in ("l", "l_o"))
    k = {"t": np.array(True), "one": np.int64(1), "zero": np.int64(0), "front": arr64(0)}
    take = [node("Identity", "go", "go_o"), node("Gather", "x i", "r", axis=0), node("Exp", "r", "u")]
    empty = node("SequenceEmpty", [], "e")

    def loop(grow, start="e", **more):
        body = helper.make_graph([*take, *grow], "body", [i, go, many], [go_o, many_o])
        return node("Loop", ["n", "t", start], "s", name="around", body=body, **more)

    runs = [{"x": x, "n": np.array(trips)} for trips in (1, 3, 6)]
    flags = ("--max-trips", "around=6")
    append = [empty, loop([node("SequenceInsert", "l u", "l_o")])]
    for new_axis, axes in ((1, (0, 1, -1)), (0, (0, -1))):
        for axis in axes:
            yield simple(f"stack_joined_{new_axis}_{axis}", [*append, node("ConcatFromSequence", "s", "y", axis=axis, new_axis=new_axis)],
                         runs[0], constants=k, more=runs[1:], flags=flags)
    yield simple("stack_length", [*append, node("SequenceLength", "s", "y")], runs[0], "y:l", constants=k,
                 more=[*runs[1:], {"x": x, "n": np.array(0)}], flags=flags)
    yield simple("stack_beyond", [*append, node("ConcatFromSequence", "s", "y", axis=0)], runs[0], constants=k, flags=("--max-trips", "around=2"),
                 fails=[(runs[1], "'around' (Loop): the loop would continue after its planned 2 trips")])
    at = [{**run, "p": np.array(p)} for run in runs for p in (0, -1)] + [{**runs[2], "p": np.array(4)}]
    yield simple("stack_at", [*append, node("SequenceAt", "s p", "y")], at[0], constants=k, more=at[1:], flags=flags,
                 fails=[({**runs[1], "p": np.array(3)}, "outside an axis")])
    for name, grow in {"front": [node("SequenceInsert", "l u zero", "l_o")],
                       "second_last": [node("SequenceLength", "l", "c"), node("Div", "c two", "h"), node("SequenceInsert", "l u h", "l_o")],
                       "replaced": [node("SequenceErase", "l zero", "m"), node("SequenceInsert", "m u", "m1"),
                                    node("SequenceInsert", "m1 u zero", "l_o")]}.items():
        yield simple(f"stack_insert_{name}", [node("SequenceConstruct", "v w", "e"), loop(grow),
                                              node("ConcatFromSequence", "s", "y", axis=0)],
                     runs[0], constants={**k, "two": np.int64(2), "v": floats("v", 3), "w": floats("w", 3)}, more=runs[1:], flags=flags)
    pick = [{"x": x, "p": np.array(p)} for p in (0, 1, -1, -2)]
    yield simple("stack_at_of_list", [node("Neg", "x", "h"), node("SequenceConstruct", "x h", "s"), node("SequenceAt", "s p", "y")],
                 pick[0], more=pick[1:])
    inside = helper.make_graph([node("Identity", "go", "go_o"), node("SequenceAt", "parts i", "r"), node("ReduceSum", "r", "q", keepdims=0),
                                node("Add", "a q", "a_o")], "inside", [i, go, info("a", shape=[])], [go_o, info("a_o", shape=[])])
    keep = [{"x": x, "keep": np.array(rows, bool)} for rows in ([0, 1, 1, 0, 0, 1], [1] * 6, [0, 0, 1, 0, 0, 0])]
    for keepdims in (0, 1):
        yield simple(f"stack_split_{keepdims}", [
            node("Compress", "x keep", "rows", axis=0), node("SplitToSequence", "rows", "parts", axis=0, keepdims=keepdims),
            node("SequenceLength", "parts", "n"), node("Loop", "n t start", "a", body=inside),
            node("ConcatFromSequence", "parts", "y", axis=0, new_axis=1)], keep[0], "a y",
            constants={**k, "start": np.float32(0)}, more=keep[1:])


def running_branches():
    """Branches that give values of different ranks, or sequences of different numbers, by a condition of the run."""
    x = floats("ranks", 2, 6)
    both = [{"x": x, "c": np.array(c)} for c in (True, False)]

    def tensor(name, a):
        return helper.make_tensor(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape, a.ravel())

    cubes = helper.make_graph([node("Reshape", "x cube", "t1"), node("Exp", "t1", "t2")], "cubes", [], [info("t2")],
                              [tensor("cube", arr64(2, 2, 3))])
    flat = helper.make_graph([node("Neg", "x", "e1")], "flat", [], [info("e1")])
    wide = helper.make_graph([node("Unsqueeze", "x front", "u1")], "wide", [], [info("u1")], [tensor("front", arr64(0))])
    pick = node("If", "c", "p", name="pick", then_branch=cubes, else_branch=flat)
    k = {"s": arr64(3, 4), "two": np.float32(2), "a": arr64(0)}
    for name, nodes, outputs in (
            ("reshape", [node("Reshape", "p s", "y")], "y"),
            ("flatten", [node("Flatten", "p", "y", axis=1)], "y"),
            ("sum", [node("ReduceSum", "p", "y", keepdims=0)], "y"),
            ("size", [node("Size", "p", "y")], "y:l"),
            ("later", [node("Mul", "p two", "m"), node("Abs", "m", "n"), node("Add", "n p", "o"), node("Reshape", "o s", "r"),
                       node("Neg", "r", "y")], "y"),
            # What a reader reads besides comes behind the If.
            ("besides", [node("Neg", "x", "h"), node("Flatten", "h", "f", axis=0), node("Shape", "f", "fs"),
                         node("Reshape", "p fs", "r"), node("Add", "r f", "y"), node("Flatten", "p", "z")], "y z"),
            # Shapes that follow from either rank are bounded.
            ("shape", [node("Shape", "p", "n"), node("ReduceMax", "n", "y", keepdims=0)], "y:l")):
        yield simple(f"if_ranks_{name}", [pick, *nodes], both[0], outputs, constants=k, more=both[1:])
    yield simple("if_ranks_squeeze", [node("If", "c", "p", then_branch=wide, else_branch=flat), node("Squeeze", "p", "y")], both[0],
                 more=both[1:])
    # A reader in a body; an If whose other result has one rank.
    inner = helper.make_graph([node("Flatten", "p", "v")], "inner", [], [info("v")])
    other = helper.make_graph([node("Abs", "x", "v2")], "other", [], [info("v2")])
    again = {"d": np.array(True)}
    yield simple("if_ranks_in_branch", [pick, node("If", "d", "y", then_branch=inner, else_branch=other)], {**both[0], **again},
                 more=[{**both[1], **again}, {**both[0], "d": np.array(False)}])
    two = [helper.make_graph(list(g.node) + [node("ReduceMax", "x", name, keepdims=0)], g.name, [], [*g.output, info(name)],
                             list(g.initializer)) for g, name in ((cubes, "m1"), (flat, "m2"))]
    yield simple("if_ranks_and_another", [node("If", "c", "p q", then_branch=two[0], else_branch=two[1]), node("Mul", "p q", "m"),
                                          node("Reshape", "m s", "r"), node("Sub", "r q", "y")], both[0], "y q", constants=k,
                 more=both[1:])
    body = helper.make_graph([node("Identity", "go", "go_o"), pick, node("ReduceSum", "p", "r", keepdims=0), node("Add", "v r", "v_o")],
                             "body", [info("i", kind=TensorProto.INT64, shape=[]), info("go", kind=TensorProto.BOOL, shape=[]),
                                      info("v", shape=[])], [info("go_o", kind=TensorProto.BOOL, shape=[]), info("v_o", shape=[])])
    start = {"start": np.float32(0), "n": np.int64(300), "t": np.array(True)}
    yield simple("if_ranks_in_loop", node("Loop", "n t start", "y", body=body), both[0], constants=start, more=both[1:], rtol=1e-3)
    # Nobody reads such a result, or what its readers give.
    yield simple("if_ranks_unread", [pick, node("Neg", "x", "y")], both[0], more=both[1:])
    yield simple("if_ranks_read_in_vain", [pick, node("Flatten", "p", "q"), node("Neg", "x", "y")], both[0], more=both[1:])
    yield refused("if_ranks_leave", model(graph([pick, node("Neg", "p", "y")], both[0], "y", k)), "pick", "[2,2,3]", "[2,6]", "one rank",
                  "'y'")
    # A reader that does not fit one of the branches.
    yield simple("if_ranks_do_not_fit", [pick, node("Transpose", "p", "t", perm=[1, 0], name="turn"), node("ReduceMax", "t", "y")],
                 both[1], constants=k, fails=[(both[0], "'pick then_branch: turn' (CheckLength): a branch was taken")])
    few = [helper.make_graph(nodes, name, [], [helper.make_tensor_sequence_value_info(out, TensorProto.FLOAT, None)])
           for name, out, nodes in (("three", "l1", [node("Neg", "x", "g"), node("SequenceConstruct", "x g x", "l1")]),
                                    ("one", "l2", [node("SequenceConstruct", "x", "l2")]), ("none", "l3", [node("SequenceEmpty", [], "l3")]))]
    for then, otherwise in ((0, 1), (1, 0), (2, 0), (0, 2)):
        choice = node("If", "c", "l", then_branch=few[then], else_branch=few[otherwise])
        yield simple(f"if_sequences_{then}_{otherwise}", [choice, node("SequenceLength", "l", "y"), node("SequenceInsert", "l x", "m"),
                                                         node("ConcatFromSequence", "m", "z", axis=0)], both[0], "y:l z", more=both[1:])


def failing_bodies():
    """A run that fails in a body is described by the step of that body."""
    body = helper.make_graph([node("Identity", "go", "go_o"), node("Gather", "x i", "r", name="inside"), node("Add", "s r", "s_o")],
                             "body", [info("i", kind=TensorProto.INT64, shape=[]), info("go", kind=TensorProto.BOOL, shape=[]),
                                      info("s", shape=[])],
                             [info("go_o", kind=TensorProto.BOOL, shape=[]), info("s_o", shape=[])])
    loop = node("Loop", ["n", "", "start"], "t", name="around", body=body)
    x = floats("failing", 3)
    yield simple("loop_fails_inside", [loop, node("Exp", "t", "y", name="behind")], {"x": x, "n": np.array(3, np.int64)},
                 constants={"start": np.float32(0)}, flags=("--max-trips", "around=5"),
                 fails=[({"x": x, "n": np.array(4, np.int64)}, "'inside' (Gather): index 3 is outside an axis of 3 elements")])
    take = helper.make_graph([node("Gather", "x k", "b", name="within")], "take", [], [info("b")])
    none = helper.make_graph([node("Identity", "zero", "b")], "none", [], [info("b")])
    at = {"x": x, "k": np.array(1, np.int64), "c": np.array(True)}
    yield simple("if_fails_inside", [node("If", "c", "t", then_branch=take, else_branch=none), node("Exp", "t", "y", name="behind")],
                 at, constants={"zero": np.float32(0)}, fails=[({**at, "k": np.array(5, np.int64)}, "'within' (Gather)")])


def unfit_branches():
    """A branch that does not fit the given shapes, beside one that does: a run that takes it fails."""
    x = floats("unfit", 2, 6)
    shape = ("--shape", "x=2,6")

    def case(name, nodes, feeds, *outputs, flags=(), **more):  # onnxruntime loads it because the file leaves x open
        return simple(name, nodes, {**feeds, "x": (x, [None, None])}, *outputs, flags=(*shape, *flags), **more)

    on, off = ({"x": x, "r": np.array(rate, np.int64)} for rate in (16000, 8000))

    def branch(name, nodes, outputs="b", **constants):
        return helper.make_graph(nodes, name, [], [info(o) for o in outputs.split()],
                                 [helper.make_tensor(k, TensorProto.INT64, [len(v)], v) for k, v in constants.items()])

    fits = branch("fits", [node("Neg", "x", "b")])
    unfit = {"reshape": branch("u", [node("Reshape", "x to", "b", name="bad")], to=[5, 5]),
             "squeeze": branch("u", [node("Unsqueeze", "x a", "v"), node("Squeeze", "v z", "w", name="bad"), node("Exp", "w", "b")], a=[0], z=[1]),
             "matmul": branch("u", [node("MatMul", "x x", "b", name="bad")]),
             "add": branch("u", [node("Slice", "x s e a", "v"), node("Add", "v x", "b", name="bad")], s=[0], e=[4], a=[1]),
             "concat": branch("u", [node("Slice", "x s e a", "v"), node("Concat", "v x", "b", axis=0, name="bad")], s=[0], e=[4], a=[1]),
             "split": branch("u", [node("Split", "x to", "b v", axis=1, name="bad")], to=[4, 4]),
             "gather": branch("u", [node("Gather", "x to", "b", axis=1, name="bad")], to=[7]),
             "lstm": branch("u", [node("Unsqueeze", "x a", "v"), node("LSTM", "v x x", "w b", hidden_size=2, name="bad")], a=[0])}
    k = {"rate": np.int64(16000), "shape": arr64(1), "scalar": arr64()}
    rates = [node("Equal", "r rate", "c")]
    words = "'pick {}_branch: bad' (CheckLength): a branch was taken that does not fit"
    for name, bad in unfit.items():
        yield case(f"if_unfit_{name}", [*rates, node("If", "c", "y", then_branch=fits, else_branch=bad, name="pick")], on, constants=k,
                     fails=[(off, words.format("else"))])
    bad = unfit["matmul"]
    # Other ways from the input to the condition, the other branch, readers, results of other types.
    computed = [node("Sub", "r rate", "d"), node("Cast", "d", "e", to=TensorProto.BOOL), node("Reshape", "e shape", "f"), node("Not", "f", "c")]
    yield case("if_unfit_computed", [*computed, node("If", "c", "y", then_branch=fits, else_branch=bad, name="pick")], on, constants=k,
                 fails=[(off, words.format("else"))])
    yield case("if_unfit_then", [*rates, node("If", "c", "b1", then_branch=bad, else_branch=fits, name="pick"), node("Mul", "b1 x", "y")],
                 off, constants=k, fails=[(on, words.format("then"))])
    kinds = {"b": TensorProto.FLOAT16, "l": TensorProto.INT64, "t": TensorProto.BOOL, "s": TensorProto.FLOAT}
    outs = [info(o, kind=kind) for o, kind in kinds.items()]
    four = [node("Cast", "x", "b", to=10), node("Shape", "x", "l"), node("Less", "x b0", "t"), node("ReduceMax", "x", "s", keepdims=0)]
    many, none = (helper.make_graph(nodes, "many", [], outs) for nodes in
                  ([node("Neg", "x", "b0"), *four], [node("MatMul", "x x", "b0", name="bad"), *four]))
    yield case("if_unfit_types", [*rates, node("If", "c", "y l1 t1 s1", then_branch=many, else_branch=none, name="pick")], on,
                 "y:h l1:l t1:b s1", constants=k, fails=[(off, words.format("else"))])
    # In a branch, in a loop, and where neither branch of an inner If fits.
    inner = branch("inner", [node("If", "d", "b", then_branch=fits, else_branch=bad, name="pick")])
    for rate, d in ((16000, True), (8000, True), (8000, False)):
        feeds = {**(on if rate == 16000 else off), "d": np.array(d)}
        yield case(f"if_unfit_nested_{rate}_{d}", [*rates, node("If", "c", "y", then_branch=fits, else_branch=inner, name="outer")], feeds
                     if rate == 16000 or d else {**on, "d": np.array(True)}, constants=k,
                     fails=[] if rate == 16000 or d else [(feeds, words.format("else"))])
    neither = branch("neither", [node("If", "d", "b", then_branch=unfit["reshape"], else_branch=bad, name="pick")])
    both = {**on, "d": np.array(True)}
    yield case("if_unfit_neither", [*rates, node("If", "c", "y", then_branch=fits, else_branch=neither, name="outer")], both, constants=k,
                 fails=[({**both, **off}, "'outer else_branch: bad")])
    body = helper.make_graph([node("Identity", "go", "go_o"), node("If", "c", "v", then_branch=fits, else_branch=bad, name="pick"),
                              node("Add", "v a", "a_o")], "body",
                             [info("i", kind=TensorProto.INT64, shape=[]), info("go", kind=TensorProto.BOOL, shape=[]), info("a")],
                             [info("go_o", kind=TensorProto.BOOL, shape=[]), info("a_o")])
    yield case("if_unfit_in_loop", [*rates, node("Loop", "n t x", "y", body=body)], on,
                 constants={**k, "n": np.int64(300), "t": np.array(True)}, fails=[(off, words.format("else"))], rtol=1e-3)
    # The advice works; only shapes make such a step, not what onnxruntime refuses or an operator that is not read.
    pick = [*rates, node("If", "c", "y", then_branch=fits, else_branch=bad, name="pick")]
    yield refused("if_unfit_strict", model(graph(pick, on, "y", k)), "'pick'", "else_branch", "'bad' (MatMul)", "--const r=FILE.npy", codes=(1,),
                  flags=(*shape, "--strict"))
    yield case("if_unfit_given", pick, on, constants=k, flags=("--strict",), consts={"r": on["r"]})
    yield refused("if_unfit_both", model(graph([*rates, node("If", "c", "y", then_branch=unfit["reshape"], else_branch=bad)], on, "y", k)),
                  "(Reshape)", "(MatMul)")
    yield refused("if_unfit_and_more", model(graph([*rates, node("If", "c", "y", then_branch=fits, else_branch=branch(
        "more", [node("MatMul", "x x", "v", name="bad"), node("Mystery", "x", "w"), node("Add", "v w", "b")]))], on, "y", k)), "Mystery")


def cases():
    for make in (known_conditions, running_slices, carried_sequences, running_sequences, running_branches, failing_bodies, unfit_branches):
        yield from make()
