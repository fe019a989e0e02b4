"""Operators whose inputs each have a type of their own: bounds, indices, shapes, scales, counts, fill values."""
import numpy as np
from onnx import TensorProto, helper
from type_case import (arr64, bf16, body, const, d, doubtful, f16, f32, f64, floats, halves, i8, i16, i32, i64, ints,
                       match, node, rng, u8)


def clips_and_pads():
    x, h = floats("x", 2, 6, low=-4, high=4), halves("x", 2, 6, low=-4, high=4)
    yield match("clip_f16_bounds_f32", "input.table", node("Clip", "x lo hi", "y", name="here"), {"x": h}, "y:h",
                np.clip(d(h), -1.5, 2.25), {"lo": f32(-1.5), "hi": f32(2.25)})
    yield match("clip_f32_bounds_int64_f64", "input.table", node("Clip", "x lo hi", "y"), {"x": x}, "y",
                np.clip(d(x), -1, 2.5), {"lo": i64(-1), "hi": f64(2.5)})
    yield match("clip_bf16_only_max_f16_constant_node", "input.table",
                [const("hi", f16(1.0009765625)), node("Clip", ["x", "", "hi"], "y")], {"x": x.astype(bf16)}, "y:w",
                np.minimum(d(x.astype(bf16)), 1.0009765625))
    yield match("clip_f16_bounds_beyond_f16", "input.table", node("Clip", "x lo hi", "y"), {"x": h}, "y:h", d(h),
                {"lo": f32(-1e9), "hi": f32(1e9)})
    yield match("clip_int32_bounds_f32_whole", "input.table", node("Clip", "x lo hi", "y"),
                {"x": np.array([-3, 2, 9], i32)}, "y:i", np.array([0, 2, 6]), {"lo": f32(0), "hi": f32(6)})
    yield match("clip_int64_bounds_int32", "input.table", node("Clip", "x lo hi", "y"),
                {"x": np.array([-3, 2**40, 9])}, "y:l", np.array([0, 2**31 - 1, 9]),
                {"lo": i32(0), "hi": i32(2**31 - 1)})
    yield match("clip_f32_bounds_activations_f16", "input.table", node("Clip", "x lo hi", "y"),
                {"x": x, "lo": f16(-1), "hi": f16(1.5)}, "y", np.clip(d(x), -1, 1.5))
    yield match("clip_opset6_f16", "input.table", node("Clip", "x", "y", min=-0.1, max=0.7), {"x": h}, "y:h",
                np.clip(d(h), -0.1, 0.7), opset=6)
    yield match("pad_f16_value_f32", "input.table", node("Pad", "x p v", "y"), {"x": h}, "y:h",
                np.pad(d(h), ((0, 0), (1, 2)), constant_values=0.5), {"p": arr64(0, 1, 0, 2), "v": f32(0.5)})
    yield match("pad_f32_value_int64_pads_int32", "input.table", node("Pad", "x p v", "y", name="here"), {"x": x}, "y",
                np.pad(d(x), ((0, 0), (1, 2)), constant_values=-3), {"p": np.array([0, 1, 0, 2], i32), "v": i64(-3)})
    yield match("pad_int32_value_f32", "input.table", node("Pad", "x p v", "y"), {"x": np.array([4, 5], i32)}, "y:i",
                np.array([7, 4, 5]), {"p": arr64(1, 0), "v": f32(7)})
    yield match("pad_f32_value_minus_inf_f64", "input.table", node("Pad", "x p v", "y"), {"x": x[:1]}, "y",
                np.pad(d(x[:1]), ((0, 0), (0, 1)), constant_values=-np.inf),
                {"p": arr64(0, 0, 0, 1), "v": f64(-np.inf)}, strict=None)
    # What the data's type cannot hold makes it a wider one.
    yield doubtful("pad_f16_value_beyond_f16", "input.table", node("Pad", "x p v", "y", name="here"), {"x": h}, "y",
                   np.pad(d(h), ((0, 0), (1, 0)), constant_values=f32(-1e9)), {"p": arr64(0, 1, 0, 0), "v": f32(-1e9)},
                   words=["here", "Pad", "x", "-1000000000", "float16"])
    yield match("pad_int64_value_fraction", "input.table", node("Pad", "x p v", "y"), {"x": arr64(4, 5)}, "y",
                np.array([0.5, 4, 5]), {"p": arr64(1, 0), "v": f32(0.5)})
    yield match("pad_uint8_value_negative", "input.table", node("Pad", "x p v", "y"), {"x": np.array([250, 5], u8)},
                "y:l", np.array([-1, 250, 5]), {"p": arr64(1, 0), "v": i64(-1)})
    yield match("pad_opset2_int32_value_fraction", "input.table", node("Pad", "x", "y", pads=[1, 0], value=0.5),
                {"x": np.array([4, 5], i32)}, "y", np.array([0.5, 4, 5]), opset=9)
    yield match("clip_opset6_int64_fraction", "input.table", node("Clip", "x", "y", min=3.5, max=6.0),
                {"x": arr64(3, 4, 9)}, "y", np.array([3.5, 4, 6]), opset=8)
    yield match("slice_end_float_beyond_int64", "input.table", node("Slice", "x a e", "y", name="here"), {"x": x}, "y",
                d(x)[1:], {"a": np.array([1], f32), "e": np.array([2.0**63], f32)})
    table = helper.make_tensor("w", TensorProto.INT4, [2, 2], np.array([1, -2, 3, -8]))
    yield match("gather_int4_at_run_time", "const.retype", [node("Gather", "w i", "g"), node("Mul", "g s", "y")],
                {"i": np.array([1], i32)}, "y:h", np.array([[1.5, -4]]), {"w": table, "s": np.full(2, 0.5, f16)}, opset=21)
    yield match("transpose_int4", "const.retype", [node("Transpose", "w", "t"), node("MatMul", "x t", "y")],
                {"x": np.array([[1, 2]], f32)}, "y", np.array([[-3, -13]]), {"w": table}, opset=21, strict=None)


def resizes():
    x = floats("rx", 1, 1, 3, 4)
    big = np.repeat(np.repeat(d(x), 2, 2), 2, 3)
    s = np.array([1, 1, 2, 2])
    resize = dict(coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    yield match("resize_f16_scales_f16", "input.table", node("Resize", ["x", "", "s"], "y", name="here", **resize),
                {"x": x.astype(f16)}, "y:h", np.repeat(np.repeat(d(x.astype(f16)), 2, 2), 2, 3), {"s": s.astype(f16)})
    yield match("resize_f32_scales_f64", "input.table", node("Resize", ["x", "", "s"], "y", **resize), {"x": x}, "y", big,
                {"s": s.astype(f64)})
    yield match("resize_f32_scales_int64", "input.table", node("Resize", ["x", "", "s"], "y", **resize), {"x": x}, "y",
                big, {"s": s})
    yield match("resize_bf16_sizes_int32", "input.table", node("Resize", ["x", "", "", "z"], "y", **resize),
                {"x": x.astype(bf16)}, "y:w", np.repeat(np.repeat(d(x.astype(bf16)), 2, 2), 2, 3),
                {"z": np.array([1, 1, 6, 8], i32)})
    yield match("resize_f32_sizes_f32", "input.table", node("Resize", ["x", "", "", "z"], "y", **resize), {"x": x}, "y",
                big, {"z": np.array([1, 1, 6, 8], f32)})
    yield match("resize_f32_roi_f16_empty_scales", "input.table", node("Resize", "x r e z", "y", **resize), {"x": x}, "y",
                big, {"r": np.zeros(8, f16), "e": np.zeros(0, f16), "z": arr64(1, 1, 6, 8)}, opset=11)
    at = np.arange(6) * 2 / 5
    low = np.minimum(at.astype(int), 1)
    rows = d(x)[:, :, low] * (1 - at + low).reshape(6, 1) + d(x)[:, :, low + 1] * (at - low).reshape(6, 1)
    yield match("resize_crop_roi_f64", "input.table",
                node("Resize", "x r s", "y", coordinate_transformation_mode="tf_crop_and_resize", mode="linear"),
                {"x": x}, "y", rows, {"r": np.array([0, 0, 0, 0, 1, 1, 1, 1], f64), "s": np.array([1, 1, 2, 1], f32)},
                opset=13)
    yield match("upsample_opset9_scales_f64", "input.table", node("Upsample", "x s", "y"), {"x": x}, "y", big,
                {"s": s.astype(f64)}, opset=9)
    yield match("resize_opset10_uint8_scales_f32", "image.u8", node("Resize", "x s", "y"),
                {"x": np.array([[[[1, 255]]]], u8)}, "y:B", np.array([[[[1, 1, 255, 255]]]]),
                {"s": np.array([1, 1, 1, 2], f32)}, opset=10)


def counts_and_values():
    i = np.array([2, 0, 1])
    hot = np.eye(3)[i]
    yield match("onehot_values_f16_depth_int32_indices_f32", "input.table", node("OneHot", "i n v", "y", name="here"),
                {"i": i.astype(f32)}, "y:h", hot * 4.5 + 0.5, {"n": i32(3), "v": np.array([0.5, 5], f16)})
    yield match("onehot_values_int64_into_matmul_f32", "input.table",
                [node("OneHot", "i n v", "o"), node("MatMul", "o w", "y")], {"i": i.astype(i32)}, "y",
                hot @ d(floats("ohw", 3, 4)), {"n": arr64(3), "v": arr64(0, 1), "w": floats("ohw", 3, 4)}, strict=None)
    yield match("onehot_depth_f32_values_bool", "input.table", node("OneHot", "i n v", "y"), {"i": i}, "y:b",
                hot.astype(bool), {"n": f32(3), "v": np.array([False, True])})
    yield match("range_int64_int32_mixed", "input.table", node("Range", "a b c", "y", name="here"), {}, "y:l",
                np.arange(1, 9, 3), {"a": i64(1), "b": i32(9), "c": i32(3)})
    yield match("range_f32_limit_int64", "input.table", node("Range", "a b c", "y"), {}, "y", np.arange(0, 5) * 1.0,
                {"a": f32(0), "b": i64(5), "c": i32(1)})
    x = floats("rng", 7, 2)
    yield match("range_limit_from_shape_f32_start", "input.table",
                [node("Shape", "x", "s"), node("Gather", "s zero", "n"), node("Range", "a n c", "r"),
                 node("Mul", "r w", "y")], {"x": x}, "y", np.arange(7) * 0.25,
                {"zero": i64(0), "a": f32(0), "c": i32(1), "w": f32(0.25)})
    yield match("range_f64_literals_f16_activation", "input.table",
                [node("Range", "a b c", "r"), node("Mul", "x r", "y")], {"x": halves("rh", 4)}, "y:h",
                d(halves("rh", 4)) * np.array([0, 0.1, 0.2, 0.3]), {"a": f64(0), "b": f64(0.35), "c": f64(0.1)})
    top = np.sort(d(x[:, 0]))[::-1][:3]
    yield match("topk_k_int32", "input.table", node("TopK", "x k", "y i", axis=0), {"x": x[:, 0].copy()}, "y i:l",
                {"y": top, "i": np.argsort(-x[:, 0])[:3]}, {"k": np.array([3], i32)})
    yield match("topk_k_f32_scalar_from_shape", "input.table",
                [node("Shape", "x", "s"), node("Cast", "s", "f", to=1), node("Mul", "f half", "k"),
                 node("Floor", "k", "l"), node("TopK", "x l", "y i", axis=0)], {"x": x[:, 0].copy()}, "y i:l",
                {"y": top, "i": np.argsort(-x[:, 0])[:3]}, {"half": f32(0.5)})
    yield match("cumsum_axis_int32_exclusive", "input.table", node("CumSum", "x a", "y", exclusive=1),
                {"x": np.array([1, 2, 3])}, "y:l", np.array([0, 1, 3]), {"a": np.array(0, i32)})
    yield match("dropout_opset12_ratio_f64_f16_data", "input.table", node("Dropout", "x r", "y"),
                {"x": halves("rh", 4)}, "y:h", d(halves("rh", 4)), {"r": f64(0.5)}, opset=12)
    yield match("constantofshape_shape_int32", "input.table",
                [node("ConstantOfShape", "s", "c"), node("Add", "x c", "y")], {"x": x}, "y", d(x),
                {"s": np.array([7, 2], i32)})
    yield match("trilu_k_int32", "input.table", node("Trilu", "x k", "y"), {"x": x}, "y", np.triu(d(x), 1), {"k": i32(1)})


def indices():
    x = floats("gx", 5, 3)
    yield match("gather_indices_f32_whole", "input.table", node("Gather", "x i", "y", name="here"), {"x": x}, "y",
                d(x)[[4, 0]], {"i": np.array([4, 0], f32)})
    yield match("gather_indices_int8", "input.table", node("Gather", "x i", "y"), {"x": x}, "y", d(x)[[4, -1]],
                {"i": np.array([4, -1], i8)})
    yield match("gather_indices_f64_constant_node", "input.table",
                [const("i", np.array([1.0, 3.0])), node("Gather", "x i", "y", axis=0)], {"x": x}, "y", d(x)[[1, 3]])
    yield match("gather_indices_uint8_activation", "input.table", node("Gather", "x i", "y"),
                {"i": np.array([[4, 200 % 5]], u8)}, "y", d(x)[[[4, 0]]], {"x": x})
    yield match("gather_indices_f32_activation_argmax", "input.table",
                [node("ArgMax", "s", "a", axis=1, keepdims=0), node("Cast", "a", "f", to=1),
                 node("Gather", "x f", "y")], {"s": floats("gs", 2, 5)}, "y", d(x)[floats("gs", 2, 5).argmax(1)],
                {"x": x}, strict=None)
    yield match("gathernd_indices_int32", "input.table", node("GatherND", "x i", "y"), {"x": x}, "y",
                d(x)[[1, 4], [2, 0]], {"i": np.array([[1, 2], [4, 0]], i32)})
    yield match("gatherelements_indices_int16", "input.table", node("GatherElements", "x i", "y", axis=0), {"x": x}, "y",
                d(x)[[[2], [0]], [[0], [0]]], {"i": np.array([[2], [0]], i16)})
    yield match("slice_starts_int32_ends_int64", "input.table", node("Slice", "x a b c", "y", name="here"), {"x": x}, "y",
                d(x)[1:4], {"a": np.array([1], i32), "b": arr64(4), "c": np.array([0], i32)})
    yield match("slice_all_int32_step_int64", "input.table", node("Slice", "x a b c s", "y"), {"x": x}, "y",
                d(x)[4:0:-2], {"a": np.array([4], i32), "b": np.array([0], i32), "c": np.array([0], i32),
                               "s": arr64(-2)})
    yield match("slice_end_from_f32_shape_arithmetic", "input.table",
                [node("Shape", "x", "s"), node("Gather", "s zero", "n"), node("Cast", "n", "f", to=1),
                 node("Div", "f two", "h"), node("Floor", "h", "e"), node("Unsqueeze", "e zero1", "e1"),
                 node("Slice", "x a e1 c", "y")], {"x": x}, "y", d(x)[:2],
                {"zero": i64(0), "two": f32(2), "zero1": arr64(0), "a": arr64(0), "c": arr64(0)})
    u = halves("gu", 2, 3)
    want = d(x).copy()
    want[[3, 1]] = d(u)
    yield match("scatternd_f32_updates_f16_indices_int32", "input.table", node("ScatterND", "x i u", "y"),
                {"x": x, "u": u}, "y", want, {"i": np.array([[3], [1]], i32)})
    h = x.astype(f16)
    want = d(h).copy()
    want[[3, 1]] = d(floats("gu", 2, 3))
    yield match("scatternd_f16_updates_f32_initializer", "input.table", node("ScatterND", "x i u", "y"), {"x": h}, "y:h",
                want, {"i": arr64([3], [1]).reshape(2, 1), "u": floats("gu", 2, 3)})
    want = d(x).copy()
    want[2, 0], want[0, 1], want[4, 2] = 7, -1, 3
    yield match("scatterelements_f32_updates_int64", "input.table", node("ScatterElements", "x i u", "y", axis=0),
                {"x": x}, "y", want, {"i": np.array([[2, 0, 4]], i32), "u": arr64(7, -1, 3).reshape(1, 3)})
    yield match("embedding_f16_table_int32_ids_then_f32", "promote.float",
                [node("Gather", "t i", "e"), node("Add", "e p", "y")], {"i": np.array([[1, 2]], i32)}, "y",
                d(h)[[[1, 2]]] + d(x[:2]), {"t": h, "p": x[:2]})


def shapes():
    x = floats("sx", 2, 3, 4)
    yield match("reshape_shape_int32", "input.table", node("Reshape", "x s", "y", name="here"), {"x": x}, "y",
                d(x).reshape(6, 4), {"s": np.array([6, 4], i32)})
    yield match("reshape_shape_f32_whole", "input.table", node("Reshape", "x s", "y"), {"x": x}, "y",
                d(x).reshape(6, 4), {"s": np.array([6, -1], f32)})
    yield match("reshape_concat_of_int32_and_int64", "promote.int",
                [node("Shape", "x", "s"), node("Gather", "s zero", "n"), node("Cast", "n", "m", to=6),
                 node("Unsqueeze", "m zero1", "u"), node("Concat", "u rest", "r", axis=0), node("Reshape", "x r", "y")],
                {"x": x}, "y", d(x).reshape(2, 12), {"zero": i64(0), "zero1": arr64(0), "rest": arr64(-1)})
    yield match("shape_times_f32_scale_into_resize_sizes", "promote.int-float",
                [node("Shape", "x", "s"), node("Mul", "s k", "m"), node("Floor", "m", "f"), node("Cast", "f", "z", to=7),
                 node("Resize", ["x", "", "", "z"], "y", coordinate_transformation_mode="asymmetric",
                      nearest_mode="floor")], {"x": x}, "y", np.repeat(d(x), 2, 2),
                {"k": np.array([1, 1, 2], f32)})
    yield match("expand_shape_int32", "input.table", node("Expand", "x s", "y"), {"x": x[:, :1]}, "y",
                np.broadcast_to(d(x[:, :1]), (2, 3, 4)), {"s": np.array([2, 3, 4], i32)})
    yield match("tile_repeats_int32", "input.table", node("Tile", "x r", "y"), {"x": x}, "y", np.tile(d(x), (1, 2, 1)),
                {"r": np.array([1, 2, 1], i32)})
    yield match("unsqueeze_squeeze_axes_int32", "input.table",
                [node("Unsqueeze", "x a", "t"), node("Squeeze", "t b", "y")], {"x": x[:, :1]}, "y", d(x)[:, 0][None],
                {"a": np.array([0], i32), "b": np.array([2], i32)})
    yield match("split_sizes_int32", "input.table", node("Split", "x s", "y z", axis=2), {"x": x}, "y z",
                {"y": d(x)[..., :1], "z": d(x)[..., 1:]}, {"s": np.array([1, 3], i32)})
    yield match("reducesum_axes_int32", "input.table", node("ReduceSum", "x a", "y", keepdims=0), {"x": x}, "y",
                d(x).sum((0, 2)), {"a": np.array([0, 2], i32)})
    yield match("reducemean_opset18_axes_int32_f16", "input.table", node("ReduceMean", "x a", "y", keepdims=0),
                {"x": x.astype(f16)}, "y:h", d(x.astype(f16)).mean(1), {"a": np.array([1], i32)}, opset=18)
    yield match("reducemax_opset11_int64_data", "int.exact", node("ReduceMax", "x", "y", axes=[0], keepdims=0),
                {"x": np.array([[2**53 + 1, 3], [2**53, 5]])}, "y:l", np.array([2**53 + 1, 5]), opset=11)
    yield match("reducemean_int32_data", "int.exact", node("ReduceMean", "x", "y", axes=[0], keepdims=0),
                {"x": np.array([[4, 2], [8, 6]], i32)}, "y:i", np.array([6, 4]))


def cases():
    for group in (clips_and_pads, resizes, counts_and_values, indices, shapes):
        yield from group()
