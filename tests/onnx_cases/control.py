"""Control flow beyond structure.py: conditions that constants decide, slices that move, loops that carry lists."""
import numpy as np
from case import arr64, floats, info, node, simple
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
                 fails=[({"x": x, "n": np.array(4, np.int64)}, "index 3 is outside an axis of 3 elements (Gather 'inside')")])
    take = helper.make_graph([node("Gather", "x k", "b", name="within")], "take", [], [info("b")])
    none = helper.make_graph([node("Identity", "zero", "b")], "none", [], [info("b")])
    at = {"x": x, "k": np.array(1, np.int64), "c": np.array(True)}
    yield simple("if_fails_inside", [node("If", "c", "t", then_branch=take, else_branch=none), node("Exp", "t", "y", name="behind")],
                 at, constants={"zero": np.float32(0)}, fails=[({**at, "k": np.array(5, np.int64)}, "(Gather 'within')")])


def cases():
    for make in (known_conditions, running_slices, carried_sequences, failing_bodies):
        yield from make()
