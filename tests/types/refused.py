"""What cannot be repaired honestly: refused, naming the node, the op, the operands and both types or shapes."""
import numpy as np
import onnx
from onnx import helper
from type_case import (arr64, body, f16, f32, f64, floats, i8, i32, i64, ints, model, node, refuse, u8, u64, value)

X = floats("x", 2, 3)


def text(name, *shape):
    return helper.make_tensor(name, onnx.TensorProto.STRING, list(shape), [b"a"] * int(np.prod(shape)))


def string_input(m):
    m.graph.input.append(helper.make_tensor_value_info("s", onnx.TensorProto.STRING, [2, 3]))


def strings_and_complex():
    for op in ("Add", "Mul", "MatMul", "Concat"):
        attributes = {"axis": 0} if op == "Concat" else {}
        yield refuse(f"string_initializer_in_{op.lower()}", "refuse",
                     node(op, "x s", "y", name="here", **attributes), {"x": X}, "y", ["here", op, "s", "string", "float32"],
                     {"s": text("s", 3, 3) if op == "MatMul" else text("s", 2, 3)})
    yield refuse("string_initializer_in_where", "refuse", node("Where", "c x s", "y", name="here"),
                 {"c": X > 0, "x": X}, "y", ["here", "Where", "s", "string"], {"s": text("s", 2, 3)})
    yield refuse("string_constant_node_compared", "refuse",
                 [node("Constant", [], "s", value_string="a"), node("Less", "x s", "y", name="here")], {"x": X}, "y:b",
                 ["here", "Less", "string"])
    m = helper.make_graph([node("Add", "x t", "y", name="here")], "g",
                          [value("x", f32, [3]), helper.make_tensor_value_info("t", onnx.TensorProto.STRING, [3])],
                          [value("y", f32)])
    yield refuse("string_input_in_add", "refuse", model(m), {}, "y",
                 ["here", "Add", "t", "string", "float32", "encode text"])
    yield refuse("string_indices_of_gather", "refuse", node("Gather", "x s", "y", name="here"), {"x": X}, "y",
                 ["here", "Gather", "s", "string"], {"s": text("s", 1)})
    yield refuse("complex64_initializer_in_mul", "refuse", node("Mul", "x s", "y", name="here"), {"x": X}, "y",
                 ["here", "Mul", "s", "complex64"], {"s": X.astype(np.complex64)})
    yield refuse("complex128_input", "refuse", node("Add", "x s", "y", name="here"),
                 {"x": X, "s": X.astype(np.complex128)}, "y", ["here", "Add", "s", "complex128", "float32"])
    yield refuse("cast_to_string", "refuse", node("Cast", "x", "y", to=8, name="here"), {"x": X}, "y",
                 ["here", "Cast", "string", "float32", "encode text"])
    yield refuse("string_input_captured_by_branch", "refuse",
                 node("If", "c", "y", then_branch=body([node("Add", "x s", "a", name="inside")], "", "a"),
                      else_branch=body([node("Neg", "x", "b")], "", "b")), {"c": np.array(True), "x": X}, "y",
                 ["inside", "Add", "s", "string", "float32"], edit=string_input)


def fractions():
    yield refuse("gather_index_fractional", "refuse", node("Gather", "x i", "y", name="here"), {"x": X}, "y",
                 ["here", "Gather", "i", "1.5", "float32"], {"i": np.array([1.5], f32)})
    yield refuse("loop_trip_count_fractional", "refuse",
                 node("Loop", ["n", "", "x"], "y", name="here", body=body(
                     [node("Identity", "c", "d"), node("Add", "a a", "b")], "i:l c:b a", "d:b b")), {"x": X}, "y",
                 ["here", "Loop", "n", "2.5"], {"n": f32(2.5)})
    yield refuse("topk_k_fractional", "refuse", node("TopK", "x k", "y i", name="here"), {"x": X}, "y i:l",
                 ["here", "TopK", "k", "1.5"], {"k": np.array([1.5], f32)})
    yield refuse("slice_start_fractional", "refuse", node("Slice", "x a b", "y", name="here"), {"x": X}, "y",
                 ["here", "Slice", "0.5"], {"a": np.array([0.5], f32), "b": arr64(2)})
    yield refuse("reshape_shape_fractional", "refuse", node("Reshape", "x s", "y", name="here"), {"x": X}, "y",
                 ["here", "Reshape", "s", "1.5"], {"s": np.array([1.5, 4], f32)})
    yield refuse("resize_sizes_fractional", "refuse", node("Resize", ["x", "", "", "z"], "y", name="here"), {"x": X},
                 "y", ["here", "Resize", "z", "4.5"], {"z": np.array([4.5, 3], f32)})
    yield refuse("onehot_depth_fractional", "refuse", node("OneHot", "i n v", "y", name="here"),
                 {"i": np.array([0, 1])}, "y", ["here", "OneHot", "n", "2.5"],
                 {"n": f32(2.5), "v": np.array([0, 1], f32)})
    yield refuse("expand_shape_nan", "refuse", node("Expand", "x s", "y", name="here"), {"x": X}, "y",
                 ["here", "Expand", "s", "nan"], {"s": np.array([np.nan, 3], f32)})


def contradictions():
    yield refuse("two_producers_of_different_types", "refuse",
                 [node("Cast", "x", "t", to=10, name="one"), node("Cast", "x", "t", to=11, name="two"),
                  node("Neg", "t", "y")], {"x": X}, "y", ["t", "two"])
    yield refuse("resize_scales_and_sizes", "refuse", node("Resize", ["x", "", "s", "z"], "y", name="here"), {"x": X},
                 "y", ["here", "Resize", "scales", "sizes"], {"s": np.array([1, 2], f16), "z": np.array([2, 7], i32)})
    for op, a, b in (("Add", (2, 3), (2,)), ("Where", (2, 3), (4, 3)), ("Mul", (2, 160), (2,))):
        x, c = np.ones(a, f16), np.ones(b, f32)
        ins = "m x c" if op == "Where" else "x c"
        yield refuse(f"impossible_broadcast_{op.lower()}_{'x'.join(map(str, a))}", "refuse",
                     node(op, ins, "y", name="/time_proj/here"),
                     {"x": x, **({"m": x > 0} if op == "Where" else {})}, "y",
                     ["/time_proj/here", op, "c", str(a[-1]), str(b[0])], {"c": c})
    yield refuse("matmul_inner_dimensions_and_types", "refuse", node("MatMul", "x w", "y", name="here"),
                 {"x": X.astype(f16)}, "y", ["here", "MatMul", "w", "[2,3]", "[4,5]"], {"w": floats("w", 4, 5)})
    yield refuse("einsum_dimensions_disagree_across_types", "refuse",
                 node("Einsum", "x w", "y", name="here", equation="ij,jk->ik"), {"x": X.astype(f16)}, "y",
                 ["here", "Einsum", "w"], {"w": floats("w", 4, 5).astype(f64)})
    yield refuse("concat_of_other_shapes_and_types", "refuse", node("Concat", "x w", "y", axis=0, name="here"),
                 {"x": X.astype(f16)}, "y", ["here", "Concat", "w"], {"w": floats("w", 2, 5)})


def quantization():
    q = ints("q", 2, 3, high=9, dtype=u8)
    yield refuse("output_dtype_against_zero_point", "quant.types",
                 node("QuantizeLinear", "x s z", "y", name="here", output_dtype=2), {"x": X}, "y:B",
                 ["here", "QuantizeLinear", "output_dtype", "int8", "uint8"], {"s": f32(1), "z": i8(0)}, opset=21)
    for name, data, z in (("300_of_uint8", q, i32(300)), ("minus_1_of_uint8", q, i8(-1)),
                          ("200_of_int8", q.astype(i8), i32(200)), ("minus_129_of_int8", q.astype(i8), i64(-129))):
        yield refuse(f"zero_point_{name}", "quant.zero", node("DequantizeLinear", "q s z", "y", name="here"),
                     {"q": data}, "y", ["here", "DequantizeLinear", "z", str(int(z)), data.dtype.name],
                     {"s": f32(0.5), "z": z})
    yield refuse("matmulinteger_zero_point_300", "quant.zero", node("MatMulInteger", "q w z", "y", name="here"),
                 {"q": q}, "y:i", ["here", "MatMulInteger", "z", "300", "uint8"], {"w": ints("w", 3, 2, dtype=i8),
                                                                                  "z": i32(300)})
    yield refuse("scale_is_a_string", "quant.types", node("DequantizeLinear", "q s", "y", name="here"), {"q": q}, "y",
                 ["here", "DequantizeLinear", "s", "string"], {"s": text("s", 1)})
    yield refuse("scales_of_another_length", "quant.types", node("DequantizeLinear", "q s", "y", name="here", axis=1),
                 {"q": q}, "y", ["here", "DequantizeLinear"], {"s": np.ones(4, f16)}, opset=21)


def structure():
    yield refuse("bitshift_of_float", "refuse", node("BitShift", "x s", "y", name="here", direction="LEFT"), {"x": X},
                 "y", ["here", "BitShift", "float32"], {"s": np.uint32(2)})
    yield refuse("bitwise_and_of_float", "refuse", node("BitwiseAnd", "x s", "y", name="here"), {"x": X}, "y",
                 ["here", "BitwiseAnd", "float32"], {"s": i32(3)}, opset=18)
    yield refuse("sequence_in_arithmetic", "refuse",
                 [node("SequenceConstruct", "x x", "s"), node("Add", "s x", "y", name="here")], {"x": X}, "y",
                 ["here", "Add", "'s'", "sequence"])
    yield refuse("all_reasons_in_one_run", "refuse",
                 [node("Add", "x s", "a", name="first"), node("Gather", "x i", "b", name="second"),
                  node("Identity", "x", "y")], {"x": X}, "a b y", ["first", "second", "string", "1.5"],
                 {"s": text("s", 2, 3), "i": np.array([1.5], f32)})
    for op, a, b in (("Add", u64, i64), ("Less", i64, u64), ("Concat", u64, i8)):
        yield refuse(f"no_common_type_{op.lower()}_{np.dtype(a).name}_{np.dtype(b).name}", "promote.int",
                     node(op, "p q", "y", name="here", **({"axis": 0} if op == "Concat" else {})),
                     {"p": np.ones(2, a), "q": np.ones(2, b)}, "y:l",
                     ["here", op, "p", "q", np.dtype(a).name, np.dtype(b).name, "--keep"])
    yield refuse("uint64_array_with_negative_int64_array", "promote.int", node("Add", "p q", "y", name="here"),
                 {"p": np.ones(2, u64)}, "y:l", ["here", "Add", "q", "uint64", "int64"], {"q": arr64(3, -1)})
    yield refuse("gather_index_beyond_int64", "narrow.i64", node("Gather", "x i", "y", name="here"), {"x": X}, "y",
                 ["here", "Gather", "i", "uint64", "int64"], {"i": np.array([2**63 + 1], u64)})


def cases():
    for group in (strings_and_complex, fractions, contradictions, quantization, structure):
        yield from group()
