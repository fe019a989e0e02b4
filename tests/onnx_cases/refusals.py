"""Files that must be refused: which exit code, and which words the message must hold."""
import numpy as np
import onnx
from case import arr64, floats, graph, info, model, node, refused
from onnx import TensorProto, helper
from structure import external, with_external

X = floats("x", 2, 3)


def of(nodes, outputs="y", constants=None, inputs=None, value_info=(), **kw):
    nodes = nodes if isinstance(nodes, list) else [nodes]
    return model(graph(nodes, {"x": X} if inputs is None else inputs, outputs, constants, value_info), **kw)


def structure():
    yield refused("unknown_op", of(node("Frobnicate", "x", "y", name="here")), "Frobnicate", "here")
    yield refused("unknown_domain", of(node("Relu", "x", "y", domain="no.such", name="here"), extra=[("no.such", 1)]),
                  "no.such", "here")
    yield refused("domain_not_imported", of(node("Thing", "x", "y", domain="other.domain", name="here")),
                  "other.domain")
    yield refused("unknown_attribute", of(node("Relu", "x", "y", name="here", slope=2.0)), "slope", "here")
    yield refused("attribute_of_wrong_type", of(node("LeakyRelu", "x", "y", name="here", alpha="big")), "alpha", "here")
    yield refused("attribute_twice", twice(), "alpha")
    yield refused("cycle", of([node("Add", "x b", "a", name="one"), node("Relu", "a", "b", name="two"),
                               node("Neg", "a", "y")]), "cycle")
    yield refused("self_loop", of(node("Add", "x y", "y", name="here")), "here")
    yield refused("missing_input", of(node("Add", "x ghost", "y", name="here")), "ghost", "here")
    yield refused("missing_output", of(node("Relu", "x", "z"), "y"), "y")
    yield refused("too_few_inputs", of(node("Add", "x", "y", name="here")), "here", "Add")
    yield refused("too_many_inputs", of(node("Relu", "x x", "y", name="here")), "here", "Relu")
    yield refused("too_many_outputs", of(node("Relu", "x", "y z", name="here")), "here")
    yield refused("required_input_empty", of(node("Add", ["x", ""], "y", name="here")), "here")
    yield refused("required_attribute_missing", of(node("Concat", "x x", "y", name="here")), "axis", "here")
    yield refused("duplicate_value", of([node("Relu", "x", "y"), node("Neg", "x", "y")]), "y")
    yield refused("value_shadows_input", of([node("Relu", "x", "x"), node("Neg", "x", "y")]), "x")
    m = of(node("Add", "x c", "y"), constants={"c": floats("c", 3)})
    m.graph.initializer.append(m.graph.initializer[0])
    yield refused("duplicate_initializer", m, "c")
    m = of(node("Relu", "x", "y"))
    m.graph.input.append(m.graph.input[0])
    yield refused("duplicate_input", m, "x")
    m = of(node("Relu", "x", "y"))
    m.graph.output.append(m.graph.output[0])
    yield refused("duplicate_output", m, "y")
    yield refused("opset_too_new", of(node("Relu", "x", "y"), opset=999), "999", codes=(3, 4))
    m = of(node("Relu", "x", "y"))
    del m.opset_import[:]
    yield refused("no_opset", m, "opset", codes=(3, 4))
    yield refused("no_graph", onnx.ModelProto(ir_version=8, opset_import=[helper.make_opsetid("", 17)]),
                  codes=(3, 4))
    yield refused("no_outputs", of(node("Relu", "x", "y"), ""), codes=(3,))
    yield refused("open_dimension", of(node("Relu", "x", "y"), inputs={"x": (X, [2, "Width"])}), "Width", "x")


def twice():
    m = of(node("LeakyRelu", "x", "y", name="here", alpha=0.1))
    m.graph.node[0].attribute.append(m.graph.node[0].attribute[0])
    return m


def shapes_and_types():
    yield refused("matmul_mismatch", of(node("MatMul", "x c", "y", name="here"), constants={"c": floats("c", 4, 5)}),
                  "here", "MatMul", "3", "4")
    yield refused("broadcast_mismatch", of(node("Add", "x c", "y", name="here"), constants={"c": floats("c", 4)}),
                  "here", "Add")
    yield refused("reshape_count", of(node("Reshape", "x s", "y", name="here"), constants={"s": arr64(4, 2)}), "here")
    yield refused("squeeze_of_3", of(node("Squeeze", "x a", "y", name="here"), constants={"a": arr64(1)}), "here", "is not 1")
    yield refused("squeeze_of_3_declared_without", of([node("Squeeze", "x a", "h", name="here"), node("Relu", "h", "y")],
                                                      constants={"a": arr64(1)}, value_info=[info("h", shape=[2])]), "here", "is not 1")
    yield refused("reshape_two_unknown", of(node("Reshape", "x s", "y", name="here"), constants={"s": arr64(-1, -1)}),
                  "here")
    yield refused("axis_out_of_range", of(node("Softmax", "x", "y", axis=5, name="here")), "here", "5")
    yield refused("concat_mismatch", of(node("Concat", "x c", "y", axis=0, name="here"),
                                        constants={"c": floats("c", 2, 4)}), "here")
    yield refused("transpose_perm", of(node("Transpose", "x", "y", perm=[0, 0], name="here")), "here")
    yield refused("gather_out_of_range", of(node("Gather", "x i", "y", axis=0, name="here"),
                                            constants={"i": np.array([7])}), "here")
    yield refused("conv_channels", of(node("Conv", "x w", "y", name="here"), inputs={"x": floats("i", 1, 3, 5, 5)},
                                      constants={"w": floats("w", 4, 2, 3, 3)}), "here", "Conv")
    yield refused("conv_kernel_too_large", of(node("Conv", "x w", "y", name="here"),
                                              inputs={"x": floats("i", 1, 3, 2, 2)},
                                              constants={"w": floats("w", 4, 3, 3, 3)}), "here")
    yield refused("conv_zero_stride", of(node("Conv", "x w", "y", strides=[0, 1], name="here"),
                                         inputs={"x": floats("i", 1, 3, 5, 5)},
                                         constants={"w": floats("w", 4, 3, 3, 3)}), "here", "stride")
    yield refused("conv_group_zero", of(node("Conv", "x w", "y", group=0, name="here"),
                                        inputs={"x": floats("i", 1, 3, 5, 5)},
                                        constants={"w": floats("w", 4, 3, 3, 3)}), "here", "group")
    yield refused("pad_too_negative", of(node("Pad", "x p", "y", name="here"), constants={"p": arr64(0, -9, 0, 0)}),
                  "here")
    yield refused("split_sum", of(node("Split", "x s", "y z", axis=1, name="here"), "y z",
                                  constants={"s": arr64(1, 1)}), "here")
    yield refused("huge_shape", of(node("ConstantOfShape", "s", "y", name="here"),
                                   constants={"s": arr64(2**40, 2**40)}), "here")
    yield refused("huge_expand", of(node("Expand", "x s", "y", name="here"),
                                    constants={"s": arr64(2**31, 2**31, 2, 3)}), "here")
    yield refused("input_too_large", of(node("Relu", "x", "y"), inputs={"x": (X, [2, 2**62, 4])}), "x")
    yield refused("negative_input_dim", of(node("Relu", "x", "y"), inputs={"x": (X, [2, -5])}), "x")
    yield refused("strings", text_model(), "string")
    yield refused("complex", of(node("Identity", "x", "y"), inputs={"x": X.astype(np.complex64)}), "x")
    yield refused("sequence", sequence_model(), "s")
    yield refused("rank_too_large", of(node("Relu", "x", "y"), inputs={"x": np.zeros((1,) * 12, np.float32)}), "x")


def text_model():
    g = helper.make_graph([node("Identity", "x", "y")], "g", [info("x", kind=TensorProto.STRING, shape=[2])],
                          [info("y", kind=TensorProto.STRING, shape=[2])])
    return model(g)


def sequence_model():
    s = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
    return model(helper.make_graph([node("SequenceConstruct", "x x", "s", name="here")], "g", [info("x", X)], [s]))


def tensors():
    def broken(change):
        m = of(node("Add", "x c", "y", name="here"), constants={"c": floats("c", 3)})
        change(m.graph.initializer[0])
        return m

    yield refused("raw_too_short", broken(lambda t: setattr(t, "raw_data", t.raw_data[:-1])), "c")
    yield refused("raw_too_long", broken(lambda t: setattr(t, "raw_data", t.raw_data + b"\0")), "c")
    yield refused("raw_empty", broken(lambda t: t.ClearField("raw_data")), "c")
    yield refused("tensor_negative_dim", broken(lambda t: t.dims.__setitem__(0, -3)), "c")
    yield refused("tensor_huge_dim", broken(lambda t: t.dims.__setitem__(0, 2**62)), "c")
    yield refused("tensor_overflowing_dims", broken(lambda t: t.dims.extend([2**32, 2**32, 2**32])), "c")
    yield refused("tensor_unknown_type", broken(lambda t: setattr(t, "data_type", 99)), "c")
    yield refused("tensor_undefined_type", broken(lambda t: setattr(t, "data_type", 0)), "c")
    a = floats("ext", 3).tobytes()
    for name, m, files in (
            ("missing", with_external("none.bin", 0, 12), {}), ("beyond", with_external("w.bin", 8, 12), {"w.bin": a}),
            ("huge_offset", with_external("w.bin", 2**63 - 8, 12), {"w.bin": a}),
            ("wrong_length", with_external("w.bin", 0, 8), {"w.bin": a}),
            ("bad_number", with_external("w.bin", "many", 12), {"w.bin": a}),
            ("negative", with_external("w.bin", -4, 12), {"w.bin": a}),
            ("outside", with_external("../w.bin", 0, 12), {}), ("absolute", with_external("/etc/hostname", 0, 4), {}),
            ("empty_name", with_external("", 0, 12), {})):
        yield refused(f"external_{name}", m, "c", codes=(3, 4, 6) if name == "missing" else (3, 4), files=files)
    m = of(node("Add", "x c", "y"))
    m.graph.initializer.append(external("c", "w.bin"))
    del m.graph.initializer[0].external_data[:]
    yield refused("external_without_location", m, "c", codes=(3, 4))


def subgraphs():
    neg = helper.make_graph([node("Neg", "x", "b")], "neg", [], [info("b")])
    ghost = helper.make_graph([node("Add", "x ghost", "b", name="inside")], "ghost", [], [info("b")])
    c = {"x": X, "c": np.array(True)}
    yield refused("branch_missing_input", of(node("If", "c", "y", then_branch=neg, else_branch=ghost), inputs=c),
                  "ghost")
    yield refused("branch_absent", of(node("If", "c", "y", then_branch=neg, name="here"), inputs=c), "here", "branch")
    pair = helper.make_graph([node("Neg", "x", "b"), node("Exp", "x", "d")], "pair", [], [info("b"), info("d")])
    yield refused("branch_output_count", of(node("If", "c", "y", then_branch=neg, else_branch=pair, name="here"),
                                            inputs=c), "here")
    body = helper.make_graph([node("Identity", "k", "k_o"), node("Neg", "v", "v_o")], "body",
                             [info("i", kind=TensorProto.INT64, shape=[]), info("k", kind=TensorProto.BOOL, shape=[]),
                              info("v")], [info("k_o", kind=TensorProto.BOOL, shape=[]), info("v_o")])
    yield refused("loop_unbounded", of(node("Loop", ["n", "", "x"], "y", body=body, name="the_loop"),
                                       inputs={"x": X, "n": np.array(3, np.int64)}), "the_loop", "max-trips")
    many = helper.make_graph([node("Mul", "v v", "v_o"), node("Less", "v_o v", "k_o")], "body",
                             [info("i", kind=TensorProto.INT64, shape=[]), info("k", kind=TensorProto.BOOL, shape=[]),
                              info("v")], [info("k_o", kind=TensorProto.BOOL), info("v_o")])
    yield refused("loop_condition_many", of(node("Loop", "n t x", "y", body=many, name="here"),
                                            constants={"n": np.int64(2), "t": np.array(True)}), "here", "condition")
    yield refused("if_without_condition", of(node("If", "", "y", then_branch=neg, else_branch=neg, name="here"),
                                             inputs=c), "here")
    yield refused("loop_carried_count", of(node("Loop", "n t x x", "y z", body=body, name="here"), "y z",
                                           constants={"n": np.int64(2), "t": np.array(True)}), "here")


def behind_what_is_open():
    """What is open hides nothing: every reason comes in one run, and none that the open size alone would give."""
    slope = node("Relu", "h", "y", name="behind", slope=2.0)
    wide = {"x": (floats("x", 1, 4), [1, "Width"])}
    yield refused("behind_open_dimension", of([node("Neg", "x", "h"), slope], inputs=wide), "Width", "behind", "slope")
    # The product fits no width but 4, which may well be the one: not a reason.
    yield refused("shapes_behind_open_dimension",
                  of([node("MatMul", "x c", "y", name="fits"), node("Neg", "x", "h"), node("Relu", "h", "z", name="behind",
                                                                                         slope=2.0)], "y z", inputs=wide,
                     constants={"c": floats("c", 4, 5)}), "Width", "behind", "slope", absent=("fits", "256", "512"))
    loop = helper.make_graph([node("Identity", "k", "k_o"), node("Neg", "v", "v_o")], "body",
                             [info("i", kind=TensorProto.INT64, shape=[]), info("k", kind=TensorProto.BOOL, shape=[]),
                              info("v")], [info("k_o", kind=TensorProto.BOOL, shape=[]), info("v_o")])
    unbounded = node("Loop", ["n", "", "x"], "h", body=loop, name="the_loop")
    count = {"n": np.array(3, np.int64)}
    yield refused("behind_unbounded_loop", of([unbounded, slope], inputs={"x": X, **count}), "the_loop", "max-trips",
                  "behind", "slope")
    yield refused("behind_open_dimension_and_unbounded_loop", of([unbounded, slope], inputs={**wide, **count}), "Width",
                  "the_loop", "max-trips", "behind", "slope")
    inside = helper.make_graph([node("Identity", "k", "k_o"), node("Neg", "v", "v_o", name="inside", slope=2.0)], "body",
                               [info("i", kind=TensorProto.INT64, shape=[]),
                                info("k", kind=TensorProto.BOOL, shape=[]), info("v")],
                               [info("k_o", kind=TensorProto.BOOL, shape=[]), info("v_o")])
    yield refused("in_unbounded_loop", of(node("Loop", ["n", "", "x"], "y", body=inside, name="the_loop"),
                                          inputs={"x": X, **count}), "the_loop", "max-trips", "inside", "slope")
    grows = helper.make_graph([node("Identity", "k", "k_o"), node("Concat", "v x", "v_o", axis=0)], "body",
                              [info("i", kind=TensorProto.INT64, shape=[]), info("k", kind=TensorProto.BOOL, shape=[]),
                               info("v")], [info("k_o", kind=TensorProto.BOOL, shape=[]), info("v_o")])
    grown = node("Loop", ["n", "", "x"], "h", body=grows, name="the_loop")
    yield refused("behind_growing_carry", of([grown, slope], constants={"n": np.int64(1000)}), "behind", "slope")
    # The bound of its growth is not a size.
    for name, trips in (("large", 2**40), ("overflow", 2**62)):
        yield refused(f"growing_carry_{name}", of([grown, slope], constants={"n": np.int64(trips)}), "the_loop", "carried value 0",
                      "grows", "--bound the_loop=N", "behind", "slope")
    yield refused("behind_growing_carry_of_unbounded_loop", of([grown, slope], inputs={"x": X, **count}), "the_loop",
                  "max-trips", "behind", "slope")


def sequences():
    make = node("SequenceConstruct", "x x", "s", name="maker")
    at = {"x": X, "i": np.array(1, np.int64)}
    flat = [node("Flatten", "x", "f", axis=0), node("SequenceConstruct", "x f", "s")]
    yield refused("sequence_at_unknown_position", of([*flat, node("SequenceAt", "s i", "y", name="here")], inputs=at),
                  "here", "SequenceAt", "one shape", "[2,3]", "[1,6]")
    yield refused("sequence_at_missing_position",
                  of([make, node("SequenceAt", "s i", "y", name="here")], constants={"i": np.int64(2)}),
                  "here", "SequenceAt", "position 2 of a sequence of 2")
    yield refused("sequence_split_by_unknown_sizes",
                  of([node("SplitToSequence", "x i", "s", name="here"), node("ConcatFromSequence", "s", "y", axis=0)],
                     inputs=at), "here", "SplitToSequence", "i", "constant")
    yield refused("sequence_split_by_other_sizes",
                  of([node("SplitToSequence", "x i", "s", name="here"), node("ConcatFromSequence", "s", "y", axis=0)],
                     constants={"i": arr64(1, 2)}), "here", "SplitToSequence", "1,2")
    yield refused("sequence_of_ranks", of([node("Flatten", "x", "h", axis=0), node("Squeeze", "h i", "g"),
                                           node("SequenceConstruct", "x g", "s"),
                                           node("ConcatFromSequence", "s", "y", axis=0, name="here")],
                                          constants={"i": arr64(0)}), "here", "ConcatFromSequence", "ranks")
    yield refused("sequence_where_a_tensor_belongs", of([make, node("Neg", "s", "y", name="here")]), "here", "Neg",
                  "'s'", "sequence")
    yield refused("tensor_where_a_sequence_belongs", of(node("SequenceLength", "x", "y", name="here"), "y:l"), "here",
                  "SequenceLength", "float32")
    m = of([make, node("Neg", "x", "y")])
    m.graph.output.append(helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None))
    yield refused("sequence_as_result", m, "s", "sequence")
    body = helper.make_graph([node("Identity", "k", "k_o"), node("SequenceInsert", "v x", "v_o")], "body",
                             [info("j", kind=TensorProto.INT64, shape=[]), info("k", kind=TensorProto.BOOL, shape=[]),
                              helper.make_tensor_sequence_value_info("v", TensorProto.FLOAT, None)],
                             [info("k_o", kind=TensorProto.BOOL, shape=[]),
                              helper.make_tensor_sequence_value_info("v_o", TensorProto.FLOAT, None)])
    yield refused("sequence_carried_by_unknown_trips",
                  of([make, node("Loop", "i t s", "u", body=body, name="here"),
                      node("ConcatFromSequence", "u", "y", axis=0)], inputs=at, constants={"t": np.array(True)}),
                  "here", "Loop", "trip count", "--max-trips here=N")
    grow = [node("Identity", "k", "k_o"), node("NonZero", "x", "z"), node("SequenceInsert", "v z", "v_o", name="inside")]
    ragged = helper.make_graph(grow, "body", [info("j", kind=TensorProto.INT64, shape=[]), info("k", kind=TensorProto.BOOL, shape=[]),
                                              helper.make_tensor_sequence_value_info("v", TensorProto.INT64, None)],
                               [info("k_o", kind=TensorProto.BOOL, shape=[]),
                                helper.make_tensor_sequence_value_info("v_o", TensorProto.INT64, None)])
    yield refused("sequence_of_running_shapes",
                  of([node("SequenceEmpty", [], "s", dtype=TensorProto.INT64), node("Loop", "i t s", "u", body=ragged, name="here"),
                      node("ConcatFromSequence", "u", "y", axis=1)], "y:l", inputs=at, constants={"t": np.array(True)}),
                  "inside", "SequenceInsert", "one shape", "depends on data", flags=("--max-trips", "here=4"))


def functions():
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("my.domain", 1)]
    again = helper.make_function("my.domain", "Again", ["a"], ["b"], [node("Again", "a", "b", domain="my.domain")],
                                 imports)
    yield refused("function_recursive", of(node("Again", "x", "y", domain="my.domain", name="here"), functions=[again],
                                           extra=[("my.domain", 1)]), "Again")
    bad = helper.make_function("my.domain", "Bad", ["a"], ["b"], [node("Add", "a ghost", "b")], imports)
    yield refused("function_missing_input", of(node("Bad", "x", "y", domain="my.domain"), functions=[bad],
                                               extra=[("my.domain", 1)]), "ghost")


def advice():
    """Refusals that name the input to fix, and the fault."""
    x, k = floats("adv x", 2, 6), arr64(2, 2, 2, 2)
    size = [node("Add", "k one", "a"), node("Mul", "a two", "t"), node("Pad", "x t", "y", name="here")]
    yield refused("advice_names_the_input", model(graph(size, {"x": x, "k": k}, "y", {"one": arr64(1), "two": arr64(2)})),
                  "here", "'t'", "--const k=FILE.npy")
    data = [node("ReduceMax", "x", "m", keepdims=0), node("Cast", "m", "i", to=7), node("Unsqueeze", "i z", "t"),
            node("Concat", "t t t t", "p", axis=0), node("Pad", "x p", "y", name="here")]
    yield refused("advice_names_the_data", model(graph(data, {"x": x}, "y", {"z": arr64(0)})), "here",
                  "does not depend on the data of 'x'")
    yield refused("advice_complex_is_bfloat16", model(graph([node("Cast", "x", "c", to=15, name="here"),
                                                             node("Cast", "c", "y", to=1)], {"x": x}, "y")),
                  "here", "complex128", "bfloat16", "16")
    m = model(graph([node("Conv", "x w", "y", domain="com.microsoft.nchwc", name="here")], {"x": floats("n", 1, 8, 4, 4)},
                    "y", {"w": floats("nw", 8, 8, 1, 1)}), extra=[("com.microsoft.nchwc", 1)])
    yield refused("advice_nchwc", m, "here", "ORT_ENABLE_EXTENDED")


def cases():
    for make in (structure, shapes_and_types, tensors, subgraphs, behind_what_is_open, sequences, functions, advice):
        yield from make()
