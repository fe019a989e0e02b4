"""Types that fit together, although one of them is probably a mistake: a warning names the node and a remedy, and the same
operators in ordinary models have none."""
import numpy as np
from type_case import (arr64, bf16, body, d, doubtful, f16, f32, f64, floats, halves, i8, i16, i32, i64, match, node, refuse,
                       softmax, u8, u16, u32, u64)

M, N = np.array([True, False, True, True]), np.array([True, True, False, True])


def counts():
    """Sums and differences of truth values are numbers, where another operator would give a truth value."""
    words = ["here", "m", "n", "truth value"]
    at = {"m": M, "n": N}
    yield doubtful("sub_bool_bool_declared_int32", "promote.bool", node("Sub", "m n", "y", name="here"), at, "y:i",
                   M.astype(i32) - N, words=[*words, "Sub", "Xor"])
    yield doubtful("sum_of_three_bools_declared_int64", "promote.bool", node("Sum", "m n m", "y", name="here"), at, "y:l",
                   2 * M.astype(i64) + N, words=[*words, "Sum", "Or"])
    x = floats("wc", 4)
    yield doubtful("add_bool_bool_read_as_number", "promote.bool",
                   [node("Add", "m n", "t", name="here"), node("Mul", "t x", "y")], {**at, "x": x}, "y",
                   (M.astype(f64) + N) * x, words=[*words, "Add"])
    yield doubtful("add_bool_bool_behind_reshape_compared", "promote.bool",
                   [node("Add", "m n", "t", name="here"), node("Reshape", "t s", "u"), node("Greater", "u one", "y")], at,
                   "y:b", (M & N).reshape(2, 2), {"s": arr64(2, 2), "one": i32(1)}, words=[*words, "Add"])
    yield doubtful("matmul_bool_bool_declared_int32", "promote.bool", node("MatMul", "m n", "y", name="here"),
                   {"m": M.reshape(2, 2), "n": N.reshape(2, 2)}, "y:i", M.reshape(2, 2).astype(i32) @ N.reshape(2, 2),
                   words=[*words, "MatMul"])
    # A product of truth values is one, and so is a sum for those that ask whether it is zero.
    yield match("mul_bool_bool_declared_int32", "promote.bool", node("Mul", "m n", "y"), at, "y:i", M & N)
    yield match("add_bool_bool_read_as_truth", "promote.bool",
                [node("Add", "m n", "t"), node("Reshape", "t s", "u"), node("Where", "u x z", "y"),
                 node("Cast", "t", "k", to=9), node("Not", "k", "w")], {**at, "x": x, "z": -x}, "y w:b",
                {"y": np.where(M | N, x, -x), "w": ~(M | N)}, {"s": arr64(4)})


def truths():
    x, z, c = floats("wx", 4), floats("wz", 4), np.array([0.5, 0, 1, -0.25])
    at = {"x": x, "z": z}
    for kind in (f16, f64):
        short = np.dtype(kind).name
        yield doubtful(f"where_condition_{short}_activation", "input.table", node("Where", "c x z", "y", name="here"),
                       {**at, "c": c.astype(kind)}, "y", np.where(c != 0, x, z), words=["here", "Where", "c", short])
    yield doubtful("where_condition_behind_sigmoid", "input.table",
                   [node("Sigmoid", "c", "s"), node("Where", "s x z", "y", name="here")], {**at, "c": f32(c)}, "y", x,
                   words=["here", "Where", "s", "float32"])
    for op, g in (("And", np.logical_and), ("Or", np.logical_or), ("Xor", np.logical_xor)):
        yield doubtful(f"{op.lower()}_of_f32_activation", "input.table", node(op, "m c", "y", name="here"),
                       {"m": M, "c": f32(c)}, "y:b", g(M, c != 0), words=["here", op, "c", "float32"])
    yield doubtful("not_of_f32_activation", "input.table", node("Not", "c", "y", name="here"), {"c": f32(c)}, "y:b", c == 0,
                   words=["here", "Not", "c", "float32"])
    branches = {"then_branch": body([node("Neg", "x", "a")], "", "a"), "else_branch": body([node("Abs", "x", "b")], "", "b")}
    yield doubtful("if_condition_f32_activation", "branch.edge", node("If", "c", "y", name="here", **branches),
                   {"x": x, "c": f32(0.5)}, "y", -x, words=["here", "If", "c", "float32"])
    step = [node("Add", "a x", "b")]
    yield doubtful("loop_condition_f32_activation", "branch.edge",
                   node("Loop", "n c x", "y", name="here",
                        body=body([*step, node("Identity", "c0", "e")], "i:l c0:b a", "e:b b")),
                   {"x": x, "c": f32(0.5)}, "y", 4 * d(x), {"n": i64(3)}, words=["here", "Loop", "c", "float32"])
    yield doubtful("loop_body_condition_f32", "branch.edge",
                   node("Loop", ["n", "", "x"], "y", name="here",
                        body=body([*step, node("ReduceMax", "b", "e", keepdims=0)], "i:l c0:b a", "e b")),
                   {"x": x}, "y", 4 * d(x), {"n": i64(3)}, words=["here", "Loop", "condition", "float32"])
    # Whole numbers, proven to be some.
    yield match("where_condition_one_minus_mask_f32", "input.table",
                [node("Cast", "m", "f", to=1), node("Sub", "one f", "g"), node("Unsqueeze", "g a", "h"),
                 node("Mul", "h h", "k"), node("Where", "k x z", "y")], {**at, "m": M}, "y",
                np.where(~M, x, z)[None], {"one": f32(1), "a": arr64(0)})
    yield match("and_of_rounded_f32", "input.table", [node("Floor", "c", "f"), node("And", "m f", "y")],
                {"m": M, "c": f32(c)}, "y:b", M & (np.floor(c) != 0))
    yield match("where_condition_cast_to_bool", "cast.explicit",
                [node("Cast", "c", "b", to=9), node("Where", "b x z", "y")], {**at, "c": f32(c)}, "y",
                np.where(c != 0, x, z))


def edges():
    """Integers that take the place of float32 numbers in an If or a Loop, and reach an output of float32."""
    n, x, c = np.array([2**24 + 1, -5]), f32([0.5, 2]), np.array(True)
    words = ["'y'", "float32", "float64", "rounds"]
    branches = {"then_branch": body([node("Neg", "n", "a")], "", "a:l"), "else_branch": body([node("Neg", "x", "b")], "", "b")}
    at = {"n": n, "x": x}
    yield doubtful("if_of_int64_and_f32_declared_f32", "branch.edge", node("If", "c", "y", **branches), {**at, "c": c}, "y", f32(-n),
                   words=words)
    turn = body([node("Identity", "c0", "e"), node("Identity", "n", "b")], "i:l c0:b a", "e:b b:l")
    yield doubtful("loop_carries_f32_then_int64_declared_f32", "branch.edge", node("Loop", ["k", "", "x"], "y", body=turn), at, "y", f32(n),
                   {"k": i64(3)}, words=words)
    half = body([node("Identity", "c0", "e"), node("Mul", "a x", "b")], "i:l c0:b a:l", "e:b b")
    yield doubtful("loop_that_may_not_run_carries_int64_declared_f32", "branch.edge", node("Loop", ["k", "c", "n"], "y", body=half),
                   {**at, "c": np.array(False)}, "y", f32(n), {"k": i64(3)}, words=words)
    # What is computed may be rounded, and numbers that all fit are not.
    yield match("loop_that_runs_carries_int64_declared_f32", "branch.edge", node("Loop", ["k", "", "n"], "y", body=half), at, "y",
                f32(n * d(x)**3), {"k": i64(3)})
    few = {**branches, "then_branch": body([node("Cast", "n", "s", to=5), node("Neg", "s", "a")], "", "a:s")}
    yield match("if_of_int16_and_f32_declared_f32", "branch.edge", node("If", "c", "y", **few), {"n": n % 100, "x": x, "c": c}, "y",
                f32(-(n % 100)))
    yield match("if_of_int64_and_f32_declared_f64", "branch.edge", node("If", "c", "y", **branches), {**at, "c": c}, "y:d", d(-n))


def casts():
    """Constants that the type of a Cast does not hold."""
    def case(name, op, constant, kind, became, letter, words, more=None):
        attributes = {} if op == "CastLike" else {"to": more}
        one = np.ones(1, kind)
        return doubtful(name, "cast.explicit",
                        [node(op, "k x" if op == "CastLike" else "k", "c", name="here", **attributes),
                         node("Concat", "c x", "y", axis=0)], {"x": one}, f"y:{letter}",
                        np.array([*became, 1], kind), {"k": constant}, words=["here", op, np.dtype(kind).name, *words])
    yield case("castlike_of_300_to_int8", "CastLike", f32([300, 7]), i8, [127, 7], "c", ["300"])
    yield case("castlike_of_int64_to_uint8", "CastLike", arr64(7, 300), u8, [7, 44], "B", ["300", "44"])
    yield case("cast_of_int64_to_int16", "Cast", arr64(-40000), i16, [25536], "s", ["-40000"], 5)
    yield case("cast_of_negative_float_to_uint8", "Cast", f32([-3, 2]), u8, [0, 2], "B", ["-3"], 2)
    yield case("cast_of_negative_int_to_uint64", "Cast", np.array([-1], i8), u64, [2**64 - 1], "L", ["-1"], 13)
    yield case("cast_of_nan_to_int32", "Cast", f32([np.nan]), i32, [0], "i", ["nan"], 6)
    yield case("cast_of_infinity_to_int64", "Cast", f64([np.inf]), i64, [2**63 - 1], "l", ["inf"], 7)
    yield case("cast_of_float_beyond_int32", "Cast", f16([2, np.inf]), i32, [2, 2**31 - 1], "i", ["inf"], 6)
    yield case("cast_of_uint64_beyond_int64", "Cast", np.array([2**63], u64), i64, [-2**63], "l", [str(2**63)], 7)
    # Fractions are cut off as written, and those who combine bits want the lower ones alone.
    yield match("cast_of_constant_fraction_to_int32", "cast.explicit",
                [node("Cast", "k", "c", to=6), node("Add", "c x", "y")], {"x": np.ones(2, i32)}, "y:i", np.array([3, -127]),
                {"k": f32([2.5, -128.5])})
    yield match("cast_of_constant_words_to_bytes", "cast.explicit",
                [node("Cast", "k", "c", to=2), node("Reshape", "c s", "e"), node("BitwiseAnd", "e x", "y")],
                {"x": np.array([15, 240], u8)}, "y:B", np.array([8, 0x70]), {"k": i32([0x12345678, 0x1270]), "s": arr64(2)},
                opset=18)


def comparisons():
    far = 2**24 + 1
    n, x = np.array([far, 5, -7]), f32([2**24, 5, 1])
    at = {"n": n, "x": x}
    ops = {"Less": np.less, "LessOrEqual": np.less_equal, "Greater": np.greater, "GreaterOrEqual": np.greater_equal}
    for op, g in ops.items():
        yield doubtful(f"{op.lower()}_int64_f32_beyond_2_24", "promote.int-float", node(op, "n x", "y", name="here"), at,
                       "y:b", g(n, d(x)), words=["here", op, "n", "x", "int64", "float32"])
    yield doubtful("equal_int32_f16_beyond_2048", "promote.int-float", node("Equal", "x n", "y", name="here"),
                   {"n": np.array([2049, 3], i32), "x": f16([2048, 3])}, "y:b", np.array([False, True]),
                   words=["here", "Equal", "int32", "float16"])
    yield doubtful("equal_int16_bf16_beyond_256", "promote.int-float", node("Equal", "x n", "y", name="here"),
                   {"n": np.array([257, 3], i16), "x": np.array([256, 3], bf16)}, "y:b", np.array([False, True]),
                   words=["here", "Equal", "int16", "bfloat16"])
    yield doubtful("greater_f32_int64_initializer_beyond_2_24", "promote.int-float",
                   node("Greater", "x n", "y", name="here"), {"x": x}, "y:b", d(x) > n, {"n": n},
                   words=["here", "Greater", "n", "int64", "float32"])
    yield doubtful("less_f32_int64_literal_beyond_2_24", "promote.int-float", node("Less", "x n", "y", name="here"),
                   {"x": x}, "y:b", d(x) < far, {"n": i64(far)}, words=["here", "Less", "n", "int64"])
    yield doubtful("equal_int64_f32_literal_beyond_2_24", "promote.int-float", node("Equal", "n x", "y", name="here"),
                   {"n": n}, "y:b", n == 2**24 + 2, {"x": f32(2**24 + 2)}, words=["here", "Equal", "n", "float32"])
    # Every number that can occur is one of both types.
    yield match("equal_uint16_f32", "promote.int-float", node("Equal", "n x", "y"),
                {"n": np.array([65535, 5, 7], u16), "x": f32([65535, 5, 1])}, "y:b", np.array([True, True, False]))
    yield match("greater_int64_f32_literal_small", "promote.int-float", node("Greater", "n x", "y"), {"n": n}, "y:b",
                n > 4.5, {"x": f32(4.5)})
    yield match("equal_bounded_int64_f32", "promote.int-float",
                [node("Clip", "n lo hi", "t"), node("Equal", "t x", "y")], at, "y:b", np.clip(n, 0, 100) == d(x),
                {"lo": i64(0), "hi": i64(100)})
    yield match("less_f32_int64_initializer_even", "promote.int-float", node("Less", "x n", "y"), {"x": x}, "y:b",
                d(x) < np.array([2**24 + 2, 2**40, 3]), {"n": np.array([2**24 + 2, 2**40, 3])})


def chosen():
    """Integers that reach an output of a floating-point type by choices alone."""
    far = np.array([2**24 + 1, 5, -7])
    m, x = np.array([True, False, True]), f32([0.5, 2, 3])
    words = ["y", "float32", "float64", "rounds"]
    yield doubtful("where_int64_f32_declared_f32", "output.declared", node("Where", "m n x", "y"), {"m": m, "n": far, "x": x},
                   "y", np.where(m, far, d(x)), words=words)
    yield doubtful("max_int64_initializer_f32_declared_f32", "output.declared",
                   [node("Max", "x n", "t"), node("Unsqueeze", "t a", "y")], {"x": x}, "y", np.maximum(d(x), far)[None],
                   {"n": far, "a": arr64(0)}, words=words)
    yield match("where_int64_f32_declared_f64", "output.declared", node("Where", "m n x", "y"), {"m": m, "n": far, "x": x},
                "y:d", np.where(m, far, d(x)), unit="exact")
    yield match("min_uint16_f32_declared_f32", "output.declared", node("Min", "n x", "y"),
                {"n": np.array([65535, 1, 2], u16), "x": x}, "y", np.minimum([65535, 1, 2], d(x)))


def fills():
    h = halves("wf", 3)
    low = np.array([-1e9])
    words = ["here", "Pad", "h", "-1000000000", "float16"]
    end = {"p": arr64(1, 0), "v": f32(-1e9)}
    pad = node("Pad", "h p v", "y", name="here")
    yield doubtful("pad_f16_minus_1e9_declared_f16", "literal.weak", pad, {"h": h}, "y:h", [*low, *d(h)], end, words=words)
    yield doubtful("pad_f16_minus_1e9_read_as_f32", "literal.weak",
                   [node("Pad", "h p v", "t", name="here"), node("Mul", "t x", "y")], {"h": h, "x": np.ones(4, f32)}, "y",
                   [*low, *d(h)], end, words=words)
    yield doubtful("pad_opset2_f16_minus_1e9", "literal.weak", node("Pad", "h", "y", name="here", pads=[1, 0], value=-1e9),
                   {"h": h}, "y", [*low, *d(h)], words=words, opset=9)
    yield doubtful("microsoft_pad_f16_minus_1e9", "literal.weak", node("Pad", "h p v", "y", name="here", domain="com.microsoft"),
                   {"h": h}, "y", [*low, *d(h)], end, words=words, extra=[("com.microsoft", 1)])
    yield doubtful("pad_f32_minus_1e300", "literal.weak", node("Pad", "x p v", "y", name="here"), {"x": f32(h)}, "y:d",
                   [-1e300, *d(f32(h))], {"p": arr64(1, 0), "v": f64(-1e300)}, words=["here", "Pad", "x", "-1e+300", "float32"])
    m = np.array([True, False, True])
    yield doubtful("where_f16_minus_1e9_declared_f16", "literal.weak",
                   [node("Where", "m h v", "t", name="here"), node("Reshape", "t s", "y")], {"m": m, "h": h}, "y:h",
                   np.where(m, d(h), -1e9)[None], {"v": f32(-1e9), "s": arr64(1, 3)},
                   words=["here", "Where", "-1000000000", "y", "float16"])
    yield doubtful("max_f16_1e9_declared_f16", "literal.weak", node("Max", "h v", "y", name="here"), {"h": h}, "y:h",
                   np.full(3, 1e9), {"v": f32([1e9] * 3)}, words=["here", "Max", "1000000000", "y", "float16"])
    # A bound that no number reaches, and a mask that a softmax reads.
    yield match("max_f16_minus_1e9_declared_f16", "literal.weak", node("Max", "h v", "y"), {"h": h}, "y:h", d(h),
                {"v": f32(-1e9)})
    yield match("where_f16_minus_1e9_before_softmax", "mask.finite",
                [node("Where", "m h v", "t"), node("Softmax", "t", "y")], {"m": m, "h": h}, "y:h",
                softmax(np.where(m, d(h), -1e9)), {"v": f32(-1e9)})
    yield match("pad_f16_reflects", "literal.weak", node("Pad", "h p v", "y", mode="reflect"), {"h": h}, "y:h",
                [d(h)[1], *d(h)], end)


def roundings():
    """Pairs of Casts to 16 bits and back: what rounds is kept, and what does not has an entry (ledger.txt)."""
    h = halves("wr", 4)
    up, down = node("Cast", "q", "t", to=1, name="up"), node("Cast", "t", "u", to=10, name="down")
    yield match("cast_up_and_down_behind_f16_product", "cast.explicit",
                [node("Mul", "h h", "q"), up, down, node("Add", "u h", "y")], {"h": h}, "y:h",
                d((d(h) * d(h)).astype(f16)) + d(h))
    yield match("cast_up_behind_bf16_sum", "cast.explicit",
                [node("Add", "h h", "q"), node("CastLike", "q x", "t", name="up"), node("Mul", "t x", "y")],
                {"h": h.astype(bf16), "x": f32(h)}, "y", 2 * d(h.astype(bf16)) * d(f32(h)))
    yield match("cast_down_and_up_before_f32_product", "cast.explicit",
                [node("Cast", "x", "t", to=10), node("Cast", "t", "u", to=1), node("Mul", "u x", "y")], {"x": f32([0.1, 70.3])},
                "y", d(f16([0.1, 70.3])) * d(f32([0.1, 70.3])))


def indices():
    t, x, m = floats("wt", 4), f32([1, 0, 2]), np.array([True, False, True])
    words = ["here", "bool", "float32", "reader", "index", "int64"]
    truth, real = body([node("Not", "m", "p")], "", "p:b"), body([node("Neg", "x", "q")], "", "q")
    choice = node("If", "c", "i", name="here", then_branch=truth, else_branch=real)
    at = {"c": np.array(True), "m": m, "x": x, "t": t}
    yield refuse("if_bool_f32_into_gather", "refuse", [choice, node("Gather", "t i", "y", name="reader")], at, "y",
                 [*words, "If"])
    yield refuse("if_f32_bool_behind_sum_into_slice", "refuse",
                 [node("If", "c", "i", name="here", then_branch=real, else_branch=truth), node("Add", "i x", "j"),
                  node("Slice", "t j e", "y", name="reader")], {**at, "m": m[:1], "x": x[:1]}, "y", [*words, "If"],
                 {"e": arr64(4)})
    yield refuse("if_bool_f32_constants_into_gather", "refuse",
                 [node("If", "c", "i", name="here", then_branch=body([], "", "p:b", {"p": np.array([True])}),
                       else_branch=body([], "", "q", {"q": f32([2])})), node("Gather", "t i", "y", name="reader")], at, "y",
                 [*words, "If"])
    both = body([node("If", "c", "i", name="here", then_branch=truth, else_branch=real), node("Abs", "i", "g")], "", "g")
    yield match("if_bool_f32_read_as_numbers", "branch.edge",
                node("If", "c", "y", then_branch=both, else_branch=body([node("Exp", "x", "h")], "", "h")),
                {"c": np.array(True), "m": m, "x": x}, "y", (~m).astype(f64))
    outer = node("If", "c", "i", name="outer", else_branch=body([node("Abs", "x", "g")], "", "g"),
                 then_branch=body([node("If", "c", "k", name="here", then_branch=truth, else_branch=real)], "", "k"))
    yield refuse("if_in_if_bool_f32_into_gather", "refuse", [outer, node("Gather", "t i", "y", name="reader")], at, "y",
                 ["bool", "float32", "If"])
    step = body([node("Identity", "c0", "e"), node("Mul", "a x", "b")], "i0:l c0:b a:b", "e:b b")
    loop = node("Loop", ["n", "", "m"], "i", name="here", body=step)
    yield refuse("loop_carried_bool_f32_into_gather", "refuse", [loop, node("Gather", "t i", "y", name="reader")],
                 {"m": m, "x": x, "t": t}, "y", [*words, "Loop"], {"n": i64(3)})
    step = body([node("Identity", "c0", "e"), node("Gather", "t a", "b", name="reader")], "i0:l c0:b a:b", "e:b b")
    yield refuse("loop_carried_bool_f32_into_gather_of_body", "refuse", node("Loop", ["n", "", "m"], "y", name="here", body=step),
                 {"m": m, "t": t}, "y", [*words, "Loop"], {"n": i64(3)})
    yield refuse("where_bool_f32_into_gather", "refuse",
                 [node("Where", "c m x", "i", name="here"), node("Gather", "t i", "y", name="reader")], at, "y",
                 [*words, "Where", "m", "x"])
    yield refuse("concat_bool_f32_into_reshape", "refuse",
                 [node("Concat", "m x", "i", name="here", axis=0), node("Reshape", "t i", "y", name="reader")], at, "y",
                 [*words, "Concat", "m", "x"])
    integer = body([node("Add", "k k", "q")], "", "q:l")
    yield match("if_bool_int64_into_gather", "branch.edge",
                [node("If", "c", "i", then_branch=truth, else_branch=integer), node("Gather", "t i", "y")],
                {"c": np.array(True), "m": m, "t": t, "k": arr64(1, 0, 1)}, "y", d(t)[(~m).astype(i64)])


def cases():
    for group in (counts, truths, edges, casts, comparisons, chosen, fills, roundings, indices):
        yield from group()
