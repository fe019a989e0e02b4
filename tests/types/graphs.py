"""Types across edges of the graph: branches, loops, functions, captures, and metadata that is wrong."""
import numpy as np
import onnx
from onnx import helper
from type_case import (arr64, bf16, body, const, d, doubtful, f16, f32, f64, floats, halves, i8, i32, i64, match, node,
                       softmax, u8, value)


def branches():
    x, h, w = floats("bx", 4), halves("bh", 4), floats("bw", 4)
    for taken in (True, False):
        yield match(f"if_branches_f16_f32_{str(taken).lower()}", "branch.edge",
                    node("If", "c", "y", name="here", then_branch=body([node("Neg", "h", "a")], "", "a:h"),
                         else_branch=body([node("Neg", "x", "b")], "", "b")),
                    {"c": np.array(taken), "h": h, "x": x}, "y", -d(h) if taken else -d(x))
    yield match("if_captures_f16_adds_f32_initializer", "branch.edge",
                node("If", "c", "y", name="here", then_branch=body([node("Add", "h k", "a", name="inside")], "", "a"),
                     else_branch=body([node("Sub", "h k", "b")], "", "b")),
                {"c": np.array(True), "h": h}, "y", d(h) + d(w), {"k": w})
    yield match("if_branch_own_initializer_f64_shared_name", "branch.edge",
                node("If", "c", "y", then_branch=body([node("Mul", "h k", "a")], "", "a:h", {"k": d(w)}),
                     else_branch=body([node("Mul", "h k", "b")], "", "b:h", {"k": w})),
                {"c": np.array(True), "h": h}, "y:h", d(h) * d(w), strict=None)
    yield match("if_branches_int64_float", "branch.edge",
                node("If", "c", "y", then_branch=body([node("Cast", "x", "a", to=7)], "", "a:l"),
                     else_branch=body([node("Mul", "x x", "b")], "", "b")),
                {"c": np.array(False), "x": x}, "y", d(x)**2, strict=None)
    root = body([node("Pow", "n e", "t"), node("Mul", "t k", "a")], "", "a", {"e": f32(0.5), "k": np.array([2, 3], f32)})
    yield match("if_branch_pow_int64_half_float_reader", "pow.base",
                node("If", "c", "y", then_branch=root, else_branch=body([node("Cast", "n", "b", to=1)], "", "b")),
                {"c": np.array(True), "n": np.array([5, 6])}, "y", np.sqrt([5, 6]) * [2, 3], strict=None)
    exact = np.array([2**24 + 1, 2**40 + 1])
    yield match("if_branches_large_int64_float", "branch.edge",
                node("If", "c", "y", then_branch=body([node("Identity", "n", "a")], "", "a:l"),
                     else_branch=body([node("Mul", "v v", "b")], "", "b")),
                {"c": np.array(True), "n": exact, "v": np.ones(2, f32)}, "y:d", exact, strict=None, unit="exact")
    for kind, c in (("int32", np.array(2, i32)), ("f32", np.array(0.5, f32)), ("uint8_vector", np.array([1], u8))):
        yield match(f"if_condition_{kind}", "branch.edge",
                    node("If", "c", "y", then_branch=body([node("Neg", "x", "a")], "", "a"),
                         else_branch=body([node("Abs", "x", "b")], "", "b")), {"c": c, "x": x}, "y", -d(x), strict=None)
    inner = node("If", "c", "t", then_branch=body([node("Add", "h k", "p")], "", "p"),
                 else_branch=body([node("Mul", "h k", "q")], "", "q"))
    yield match("if_nested_capture_of_captured_f16_f32", "branch.edge",
                node("If", "c", "y", then_branch=body([inner, node("Mul", "t x", "a")], "", "a"),
                     else_branch=body([node("Neg", "x", "b")], "", "b")),
                {"c": np.array(True), "h": h, "x": x.astype(bf16)}, "y", (d(h) + d(w)) * d(x.astype(bf16)), {"k": w})
    yield match("if_capture_and_main_consumer_of_shared_f32", "const.retype",
                [node("If", "c", "y", then_branch=body([node("Add", "h k", "a")], "", "a:h"),
                      else_branch=body([node("Identity", "h", "b")], "", "b:h")), node("Add", "x k", "z")],
                {"c": np.array(True), "h": h, "x": x}, "y:h z", {"y": d(h) + d(w), "z": d(x) + d(w)}, {"k": w},
                strict=None)


def loops():
    h, w = halves("lh", 4), floats("lw", 4)

    def loop(nodes, outs, constants=None, carried="a:h", extra=(), **kw):
        head = "i:l c:b " + carried
        return node("Loop", kw.pop("ins", ["n", "", "h"]), kw.pop("names", "y"),
                    body=body([node("Identity", "c", "d"), *nodes], head, "d:b " + outs, constants), **kw)
    yield match("loop_carried_f16_becomes_f32", "branch.edge",
                loop([node("Add", "a k", "b", name="inside")], "b", name="here"), {"h": h}, "y", d(h) + 3 * d(w),
                {"n": i64(3), "k": w})
    yield match("loop_carried_f16_becomes_f64", "branch.edge", loop([node("Add", "a k", "b")], "b:d"), {"h": h}, "y:d",
                d(h) + 3 * d(w) / 7, {"n": i64(3), "k": d(w) / 7}, strict=None)
    yield match("loop_carried_int64_becomes_float", "branch.edge",
                loop([node("Add", "a k", "b")], "b", carried="a:l"), {"h": np.array([1, 2])}, "y",
                np.array([2.5, 3.5]), {"n": i64(3), "k": np.array([0.5, 0.5], f32)}, strict=None)
    yield match("loop_carried_int32_adds_int64", "branch.edge", loop([node("Add", "a i", "b")], "b:l", carried="a:i"),
                {"h": np.array([10, 2**31 - 2], i32)}, "y:l", np.array([16, 2**31 + 4]), {"n": i64(4)})
    yield match("loop_trip_count_int32", "branch.edge", loop([node("Mul", "a k", "b")], "b:h"), {"h": h}, "y:h",
                d(h) * 8, {"n": i32(3), "k": f16(2)})
    yield match("loop_trip_count_f32_whole", "branch.edge", loop([node("Mul", "a k", "b")], "b:h"), {"h": h}, "y:h",
                d(h) * 8, {"n": f32(3), "k": f16(2)}, strict=None)
    yield match("loop_condition_int64", "branch.edge",
                node("Loop", ["n", "t", "h"], "y", body=body(
                    [node("Less", "i two", "c1"), node("Cast", "c1", "d", to=7), node("Mul", "a k", "b")],
                    "i:l c:l a:h", "d:l b:h")), {"h": h}, "y:h", d(h) * 8,
                {"n": i64(10), "t": i64(1), "k": f16(2), "two": i64(2)}, strict=None)
    yield match("loop_scan_output_f32_from_f16_capture", "branch.edge",
                loop([node("Mul", "a k", "b"), node("Add", "e f", "s")], "b:h s", names="y z"),
                {"h": h, "e": h[:2].copy()}, "y:h z", {"y": d(h) * 8, "z": np.broadcast_to(d(h[:2]) + d(w[:2]), (3, 2))},
                {"n": i64(3), "k": f16(2), "f": w[:2]})
    yield match("loop_counter_into_f16_arithmetic", "promote.int-float",
                loop([node("Mul", "a i", "m"), node("Add", "m k", "b")], "b:h"), {"h": h}, "y:h",
                ((d(h) * 0 + 1) * 1 + 1) * 2 + 1, {"n": i64(3), "k": f16(1)}, strict=None)
    yield match("loop_two_carried_swap_types", "branch.edge",
                node("Loop", ["n", "", "p", "q"], "y z", body=body(
                    [node("Identity", "c", "d"), node("Add", "a k", "s"), node("Identity", "b", "t")],
                    "i:l c:b a:h b", "d:b t s:h")), {"p": h, "q": w}, "y z", {"y": d(h) + 1, "z": d(w) + 1},
                {"n": i64(2), "k": f16(1)}, strict=None)
    xs = floats("scan", 3, 4)
    yield match("scan_state_f16_input_f32", "branch.edge",
                node("Scan", "h xs", "y z", name="here", num_scan_inputs=1, body=body(
                    [node("Add", "a x", "b"), node("Mul", "b x", "o")], "a:h x", "b o")), {"h": h, "xs": xs}, "y z",
                {"y": d(h) + d(xs).sum(0), "z": (d(h) + np.cumsum(d(xs), 0)) * d(xs)})
    yield match("scan_captured_f64_initializer", "branch.edge",
                node("Scan", "h xs", "y z", num_scan_inputs=1, body=body(
                    [node("Add", "a x", "b"), node("Mul", "x k", "o")], "a x:h", "b o:h")),
                {"h": w, "xs": xs.astype(f16)}, "y z:h",
                {"y": d(w) + d(xs.astype(f16)).sum(0), "z": d(xs.astype(f16)) * d(w) / 3}, {"k": d(w) / 3}, strict=None)


def functions():
    h, w = halves("fh", 4), floats("fw", 4)
    scaled = helper.make_function("local", "Scaled", ["a"], ["b"],
                                  [helper.make_node("Constant", [], ["k"], value_float=0.1),
                                   helper.make_node("Mul", ["a", "k"], ["t"], name="inside"),
                                   helper.make_node("Add", ["t", "a"], ["b"])], [helper.make_opsetid("", 17)])
    more = dict(functions=[scaled], extra=[("local", 1)])
    yield match("function_called_with_f16_f32_int32", "branch.edge",
                [node("Scaled", "h", "p", domain="local"), node("Scaled", "w", "q", domain="local"),
                 node("Scaled", "n", "r", domain="local")], {"h": h, "w": w, "n": np.array([10, -3], i32)}, "p:h q r",
                {"p": d(h) * 1.1, "q": d(w) * 1.1, "r": np.array([11, -3.3])}, strict=None, **more)
    yield match("function_f16_input_f32_initializer_outside", "branch.edge",
                [node("Scaled", "h", "p", domain="local"), node("MatMul", "p m", "y")], {"h": h}, "y",
                d(h) * 1.1 @ d(floats("fm", 4, 2)), {"m": floats("fm", 4, 2)}, unit="float16", **more)
    mixed = helper.make_function("local", "Mix", ["a", "b"], ["c"],
                                 [helper.make_node("MatMul", ["a", "b"], ["t"], name="inside"),
                                  helper.make_node("CastLike", ["t", "a"], ["c"])], [helper.make_opsetid("", 17)])
    yield match("function_matmul_f16_with_bf16", "branch.edge",
                node("Mix", "x m", "y", domain="local", name="here"), {"x": h[None]}, "y:h",
                d(h[None]) @ d(floats("fm", 4, 2).astype(bf16)), {"m": floats("fm", 4, 2).astype(bf16)},
                functions=[mixed], extra=[("local", 1)])


def metadata():
    h, w = halves("mh", 4), floats("mw", 4)
    add = [node("Add", "h w", "t"), node("Mul", "t two", "y")]
    base = dict(constants={"w": w, "two": np.full(4, 2, f32)}, strict=None)
    yield match("value_info_wrong_type", "claim.metadata", add, {"h": h}, "y", 2 * (d(h) + d(w)),
                value_info=[value("t", f16, [4])], **base)
    yield match("value_info_wrong_shape", "claim.metadata", add, {"h": h}, "y", 2 * (d(h) + d(w)),
                value_info=[value("t", f32, [2, 7])], **base)
    yield match("value_info_stale_int64_of_float", "claim.metadata", add, {"h": h}, "y", 2 * (d(h) + d(w)),
                value_info=[value("t", i64, [4]), value("gone", f16, [1])], **base)
    yield match("value_info_of_initializer_wrong", "claim.metadata", add, {"h": h}, "y", 2 * (d(h) + d(w)),
                value_info=[value("w", f16, [9])], **base)
    yield match("value_info_conflicting_twice", "claim.metadata", add, {"h": h}, "y", 2 * (d(h) + d(w)),
                value_info=[value("t", f16, [4]), value("t", bf16, [3])], **base)
    yield match("declared_output_wrong_shape", "claim.metadata", add, {"h": h}, "y", 2 * (d(h) + d(w)),
                shapes={"y": [5, 5]}, **base)
    yield match("declared_output_wrong_rank_and_type", "claim.metadata", add, {"h": h}, "y:h", 2 * (d(h) + d(w)),
                shapes={"y": [1, 4]}, **base)
    yield match("unsorted_nodes_mixed_types", "claim.metadata", add[::-1], {"h": h}, "y", 2 * (d(h) + d(w)), **base)
    chain = [node("Neg", "c", "y"), node("Cast", "a", "b", to=1), node("Exp", "h", "a"), node("Add", "b w", "c")]
    yield match("unsorted_nodes_four_and_stale_info", "claim.metadata", chain, {"h": h}, "y", -(np.exp(d(h)) + d(w)),
                value_info=[value("a", f32, [4]), value("b", f16, [4])], unit="float16", **base)
    yield match("branch_output_declared_wrong", "claim.metadata",
                node("If", "c", "y", then_branch=body([node("Mul", "h w", "a")], "", "a:l"),
                     else_branch=body([node("Identity", "w", "b")], "", "b:h")), {"h": h, "c": np.array(True)}, "y",
                d(h) * d(w), **base)
    yield match("intermediate_output_declared_other_float", "output.declared",
                [node("Add", "h w", "t"), node("Mul", "t two", "y")], {"h": h}, "t:h y",
                {"t": d(h) + d(w), "y": 2 * (d(h) + d(w))}, unit="float16", **base)

    def as_input(kind, shape):
        def edit(m):
            m.graph.input.append(value("w", kind, shape))
        return edit
    for ir in (3, 10):
        for kind in (f16, i64):
            yield match(f"initializer_also_{np.dtype(kind).name}_input_ir{ir}", "init.input",
                        node("Mul", "x w", "y"), {"x": floats("ii", 4)}, "y", d(floats("ii", 4)) * d(w), {"w": w}, ir=ir,
                        edit=as_input(kind, [4]), strict=None, **({"opset": 8} if ir == 3 else {}))
    yield match("initializer_f16_also_f32_input_with_other_shape", "init.input", node("Add", "x w", "y"),
                {"x": floats("ii", 4)}, "y", d(floats("ii", 4)) + d(w.astype(f16)), {"w": w.astype(f16)},
                edit=as_input(f32, [2, 2]), strict=None)


def forms():
    h, x = halves("oh", 2, 4), floats("ox", 2, 4)
    yield match("constant_value_float_beside_f16", "literal.weak",
                [node("Constant", [], "k", value_float=0.1), node("Mul", "h k", "y")], {"h": h}, "y:h", d(h) * 0.1)
    yield match("constant_value_int_beside_f32", "literal.weak",
                [node("Constant", [], "k", value_int=3), node("Mul", "x k", "y")], {"x": x}, "y", d(x) * 3)
    yield match("constant_value_floats_vector_beside_f16", "const.retype",
                [node("Constant", [], "k", value_floats=[0.1, 0.2, 0.3, 0.4]), node("Add", "h k", "y")], {"h": h}, "y",
                d(h) + d(np.array([0.1, 0.2, 0.3, 0.4], f32)))
    yield match("constant_value_ints_as_shape_and_numbers", "const.retype",
                [node("Constant", [], "k", value_ints=[4, 2]), node("Reshape", "x k", "t"),
                 node("Cast", "k", "f", to=10), node("Mul", "t f", "y")], {"x": x}, "y",
                d(x).reshape(4, 2) * np.array([4, 2]))
    yield match("add_opset6_broadcast_attribute_f16_f32", "promote.float",
                node("Add", "h w", "y", broadcast=1, axis=0), {"h": h}, "y", d(h) + np.array([[0.1], [0.3]], f32),
                {"w": np.array([0.1, 0.3], f32)}, opset=6)
    yield match("softmax_opset11_f16_masked", "mask.finite",
                [node("Add", "h m", "t"), node("Softmax", "t", "y", axis=1)], {"h": h}, "y:h",
                softmax(np.where([0, 0, 1, 1], -np.inf, d(h))), {"m": np.array([0, 0, -1e9, -1e9], f32)}, opset=11,
                strict=None)
    yield match("gemm_opset6_broadcast_bias_f64", "narrow.f64", node("Gemm", "h w b", "y", broadcast=1), {"h": x}, "y",
                d(x) @ d(floats("gw", 4, 3)) + d(floats("gb", 3)) / 3,
                {"w": floats("gw", 4, 3), "b": d(floats("gb", 3)) / 3}, opset=6, strict=None)
    yield match("pad_opset2_f16", "input.table", node("Pad", "h", "y", pads=[0, 1, 0, 0], value=0.1), {"h": h}, "y:h",
                np.pad(d(h), ((0, 0), (1, 0)), constant_values=0.1), opset=2)
    yield match("reducesum_opset11_f16_keeps_wide", "accumulate.wide", node("ReduceSum", "x", "y", axes=[1]),
                {"x": np.ones((1, 3000), f16)}, "y:h", np.full((1, 1), 3000), opset=11, unit="exact")
    yield match("where_opset9_bool_from_int_equal_f32_float", "promote.int-float",
                [node("Equal", "i z", "m"), node("Where", "m low x", "y")], {"i": np.array([[0, 1, 2, 0]], i32), "x": x},
                "y", np.where([True, False, False, True], -1e4, d(x)), {"z": f32(0), "low": f64(-1e4)}, opset=11,
                strict=None)
    yield match("max_opset1_f16_f32", "promote.float", node("Max", "h w", "y"), {"h": h}, "y",
                np.maximum(d(h), d(x)), {"w": x}, opset=8)
    yield match("slice_opset1_then_concat_f16_f32", "promote.float",
                [node("Slice", "h", "t", starts=[0], ends=[1], axes=[0]), node("Concat", "t x", "y", axis=0)],
                {"h": h, "x": x}, "y", np.concatenate([d(h)[:1], d(x)]), opset=9)
    yield match("optional_input_lstm_initial_state_f32", "promote.float",
                node("GRU", ["x", "w", "r", "", "", "s"], "y", hidden_size=1, linear_before_reset=1),
                {"x": np.zeros((1, 1, 2), f16)}, "y:h", np.full((1, 1, 1, 1), 0.25),
                {"w": np.zeros((1, 3, 2), f32), "r": np.zeros((1, 3, 1), f16), "s": np.full((1, 1, 1), 0.5, f32)})


def cases():
    for group in (branches, loops, functions, metadata, forms):
        yield from group()
