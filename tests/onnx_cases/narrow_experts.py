"""Mixtures of experts whose weights are float4, float8 or indices into a table: QMoE, MoE behind DequantizeLinear, and the
products with chosen matrices that models of torch are exported as.

Expected: of the operator's definition in float64. onnxruntime runs these forms of QMoE on CUDA alone.
"""
import ml_dtypes
import numpy as np
from case import floats, graph, ints, model, ms, node, refused, rng, simple
from experts import EXPERTS, TOKENS, gated, mixture, packed
from nf4 import TABLE as NF4

HIDDEN, INNER = 64, 96
FLOAT4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)
SILU = {"activation_type": "silu", "normalize_routing_weights": 1, "k": 2}


def silu(g, *third):
    y = g / (1 + np.exp(-g))
    return y * third[0] if third else y


def turned(codes):
    """Codes of 4 bits [experts, outputs, inputs] as bytes [experts, inputs, outputs / 2], even outputs in the low half."""
    t = codes.transpose(0, 2, 1)
    return (t[..., 0::2] | t[..., 1::2] << 4).astype(np.uint8)


def powers(name, *shape):
    return (2.0 ** ints(name, *shape, low=-5, high=-2)).astype(ml_dtypes.float8_e8m0fnu)


def eights(name, *shape, low=-0.5, high=0.5):
    return floats(name, *shape, low=low, high=high).astype(ml_dtypes.float8_e4m3fn)


def spread(scales, block, count, axis=-1):
    return np.take(np.repeat(scales.astype(np.float32), block, axis), range(count), axis)


def float4(name, kind, outputs, inputs, ones):
    """Constants w, s, g, and "numbers", what they are."""
    codes = ints(f"{name} q", EXPERTS, outputs, inputs, high=15)
    block = 16 if kind == "nvfp4" else 32
    shape = (EXPERTS, outputs, inputs // block)
    s = eights(f"{name} s", *shape, low=0.05, high=0.2) if kind == "nvfp4" else powers(f"{name} s", *shape)
    g = np.ones(EXPERTS, np.float32) if ones else floats(f"{name} g", EXPERTS, low=0.5, high=1.5)
    return {"w": turned(codes), "s": s, "g": g, "numbers": FLOAT4[codes] * spread(s, block, inputs) * g[:, None, None]}


def float8(name, outputs, inputs, block):
    w = eights(f"{name} w", EXPERTS, outputs, inputs)
    if block == 0:
        g = floats(f"{name} g", EXPERTS, low=0.5, high=1.5)
        return {"w": w, "g": g, "numbers": w.astype(np.float32) * g[:, None, None]}
    s = floats(f"{name} s", EXPERTS, -(-outputs // block), -(-inputs // block), low=0.5, high=1.5)
    return {"w": w, "s": s, "numbers": w.astype(np.float32) * spread(spread(s, block, outputs, 1), block, inputs)}


ORDER = ["x", "r", "w1", "s1", "b1", "w2", "s2", "b2", "w3", "s3", "b3", "", "", "", "", "g1", "g2"]


def inputs_of(made):
    inputs = [n if n in made or n in ("x", "r") else "" for n in ORDER]
    while not inputs[-1]:
        inputs.pop()
    return inputs


def qmoe():
    x, router = floats("nq x", TOKENS, HIDDEN, low=-1, high=1), floats("nq r", TOKENS, EXPERTS)
    biases = {"b1": floats("nq b1", EXPERTS, INNER), "b2": floats("nq b2", EXPERTS, HIDDEN)}

    def join(first, second, third=None):
        parts = {**{n + "1": a for n, a in first.items()}, **{n + "2": a for n, a in second.items()}}
        return {**parts, **{n + "3": a for n, a in (third or {}).items()}}

    def case(name, kind, made, act=silu, x=x, **attributes):
        made = dict(made)
        numbers = [made.pop(f"numbers{i}", None) for i in (1, 2, 3)]
        w3 = numbers[2]
        if attributes.get("swiglu_fusion") == 1:
            numbers[0], w3 = numbers[0][:, 0::2], numbers[0][:, 1::2]
        b1 = made.get("b1", 0.0)
        y = mixture(x.astype(np.float32), router, numbers[0], numbers[1], 2, act, b1, made.get("b2", 0.0), w3, normalized=True)
        half = x.dtype == np.float16
        feeds = {"x": x, "r": router.astype(x.dtype)}
        inputs = [*inputs_of(made), *attributes.pop("more", [])]
        made = {n: a.astype(x.dtype) if n.startswith("b") else a for n, a in made.items()}
        return simple(f"qmoe_{name}", ms("QMoE", inputs, "y", quant_type=kind, **{**SILU, **attributes}), feeds,
                      "y:h" if half else "y", made, opset=23, expect="given", given={"y": y.astype(x.dtype)},
                      rtol=5e-3 if half else 1e-4, atol=5e-3 if half else 1e-4)

    for kind in ("fp4", "nvfp4", "wfp4afp8"):
        for ones in (True, False):
            made = join(float4(f"{kind} 1", kind, INNER, HIDDEN, ones), float4(f"{kind} 2", kind, HIDDEN, INNER, ones))
            block = {} if ones else {"block_size": 16 if kind == "nvfp4" else 32}
            yield case(f"{kind}{'' if ones else '_scaled'}", kind, {**made, **biases} if ones else made, **block)
    yield case("wfp4afp8_scales", "wfp4afp8", {**made, "a1": np.float32([2]), "a2": floats("nq a2", EXPERTS)}, more=["a1", "a2"])
    both = join(float4("both 1", "fp4", 2 * INNER, HIDDEN, True), float4("both 2", "fp4", HIDDEN, INNER, False))
    swiglu = dict(activation_type="swiglu", swiglu_fusion=1, activation_alpha=1.702, activation_beta=1.0, swiglu_limit=7.0)
    yield case("fp4_swiglu", "fp4", both, gated(1.702, 1.0, 7.0), **swiglu)
    yield case("fp4_float16", "fp4", both, gated(1.702, 1.0, 7.0), x=x.astype(np.float16), **swiglu)
    # Dims of rows, bytes as ever.
    rows = {n: a.reshape(EXPERTS, -1, a.shape[1] // 2) if n[0] == "w" else a for n, a in both.items()}
    yield case("fp4_dims_of_rows", "fp4", rows, gated(1.702, 1.0, 7.0), **swiglu)
    yield case("fp8", "fp8", join(float8("f8 1", INNER, HIDDEN, 0), float8("f8 2", HIDDEN, INNER, 0)), expert_weight_bits=8)
    for block in (16, 40):  # whole squares, and parts of them at the ends
        made = join(*(float8(f"f8 {block} {i}", o, k, block) for i, o, k in ((1, INNER, HIDDEN), (2, HIDDEN, INNER),
                                                                              (3, INNER, HIDDEN))))
        yield case(f"fp8_squares_{block}", "fp8", {**made, **biases}, block_size=block, expert_weight_bits=8)
    yield case("fp8_squares_float16", "fp8", {n: a for n, a in made.items() if n[-1] != "3"}, block_size=40,
               x=x.astype(np.float16), expert_weight_bits=8)

    m = {n: a for n, a in join(float4("bad 1", "fp4", INNER, HIDDEN, True), float4("bad 2", "fp4", HIDDEN, INNER, True)).items()
         if not n.startswith("numbers")}
    e = {n: a for n, a in join(float8("bad8 1", INNER, HIDDEN, 16), float8("bad8 2", HIDDEN, INNER, 16)).items()
         if not n.startswith("numbers")}

    def bad(name, words, made, inputs=None, quant_type="fp4", **attributes):
        nodes = [ms("QMoE", inputs or inputs_of(made), "y", name="here", quant_type=quant_type, **{**SILU, **attributes})]
        return refused(f"qmoe_{name}", model(graph(nodes, {"x": x, "r": router}, "y", made), 23), "here", *words)

    def without(made, *names):
        return {n: a for n, a in made.items() if n not in names}

    yield bad("fp5", ["quant_type 'fp5'"], m, quant_type="fp5")
    yield bad("fp4_no_scales", ["fc1_scales are missing"], without(m, "s1"))
    yield bad("fp4_no_global", ["fc2_global_scale is missing"], without(m, "g2"))
    yield bad("fp4_wrong_global", ["fc1_global_scale"], {**m, "g1": m["g1"][:3]})
    yield bad("fp4_wrong_type", ["float8e8m0", "float8e4m3fn"], {**m, "s1": m["s1"].astype(np.float32).astype(ml_dtypes.float8_e4m3fn)})
    yield bad("fp4_wrong_blocks", ["fc1_scales"], {**m, "s1": m["s1"][..., :1]})
    yield bad("fp4_wrong_weights", ["fc2_experts_weights"], {**m, "w2": m["w2"][:, :, :8]})
    yield bad("fp4_zeros", ["fc1_zero_points"], {**m, "z": m["w1"]}, [*inputs_of(m)[:11], "z", "", "", "", "g1", "g2"])
    yield bad("fp4_third", ["fc3_global_scale"], {**m, "w3": m["w1"], "s3": m["s1"]})
    yield bad("fp4_activations", ["operand 17"], {**m, "a": m["g1"]}, [*inputs_of(m), "a"])
    yield bad("fp8_no_squares", ["without block_size"], e, quant_type="fp8")
    yield bad("fp8_global_beside", ["beside scales of squares"], {**e, "g1": m["g1"]}, quant_type="fp8", block_size=16)
    yield bad("fp8_wrong_squares", ["fc1_scales"], e, quant_type="fp8", block_size=32)
    yield bad("fp8_integers", ["float8e4m3fn"], {**e, "w1": np.zeros(e["w1"].shape, np.uint8)}, quant_type="fp8", block_size=16)


def moe():
    """Weights that DequantizeLinear makes of what the model stores."""
    x, router = floats("nm x", TOKENS, HIDDEN, low=-1, high=1), floats("nm r", TOKENS, EXPERTS)
    shapes = {"1": (EXPERTS, INNER, HIDDEN), "2": (EXPERTS, HIDDEN, INNER)}
    dtypes = {"float4": ml_dtypes.float4_e2m1fn, "float8": ml_dtypes.float8_e4m3fn, "int4": ml_dtypes.int4}

    def stored(kind, name, shape):
        return rng(name).uniform(-6, 6, shape).astype(dtypes[kind])

    def case(name, nodes, made, numbers, **kw):
        y = mixture(x, router, numbers["1"], numbers["2"], 2, silu, normalized=True)
        nodes = [*nodes, ms("MoE", ["x", "r", "d1", "", "d2"], "y", **SILU)]
        return simple(f"moe_of_{name}", nodes, {"x": x, "r": router}, "y", made, opset=25, ir=11, expect="given",
                      given={"y": y}, rtol=1e-4, atol=2e-4, **kw)

    for kind in dtypes:
        for scale in ("blocks", "rows", "experts", "powers"):
            made, numbers, nodes = {}, {}, []
            for i, shape in shapes.items():
                w, name = stored(kind, f"nm {kind} {i}", shape), f"nm {kind} {scale} {i}"
                axis, block = {"blocks": (2, 32), "rows": (1, 0), "experts": (0, 0), "powers": (2, 32)}[scale]
                count = (*shape[:2], shape[2] // 32) if block else (shape[axis],)
                s = powers(name, *count) if scale == "powers" else floats(name, *count, low=0.05, high=0.1)
                wide = spread(s, 32, shape[2]) if block else s.reshape([-1 if a == axis else 1 for a in range(3)])
                numbers[i] = w.astype(np.float32) * wide
                made[f"w{i}"], made[f"s{i}"] = w, s
                blocks = {"block_size": block} if block else {}
                more = {"output_dtype": 1} if scale == "powers" else {}
                nodes.append(node("DequantizeLinear", [f"w{i}", f"s{i}"], f"d{i}", axis=axis, **blocks, **more))
            yield case(f"{kind}_{scale}", nodes, made, numbers)
    # Indices into a table, as of bitsandbytes.
    made, numbers, nodes = {"t": NF4}, {}, []
    for i, (e, o, k) in shapes.items():
        q, s = ints(f"nm nf4 {i}", e, o, k, high=15), floats(f"nm nf4s {i}", e, o, k // 32, 1, low=0.05, high=0.1)
        q = q.reshape(e, o, k // 32, 32)
        made[f"q{i}"], made[f"s{i}"], made[f"v{i}"] = q.astype(ml_dtypes.uint4), s, np.array([e, o, k])
        numbers[i] = (NF4[q] * s).reshape(e, o, k)
        nodes += [node("Cast", f"q{i}", f"c{i}", to=6), node("Gather", ["t", f"c{i}"], f"l{i}"),
                  node("Mul", [f"l{i}", f"s{i}"], f"m{i}"), node("Reshape", [f"m{i}", f"v{i}"], f"d{i}")]
    yield case("table", nodes, made, numbers)
    # Halves of bytes, and exponents in uint8, as torch unpacks gpt-oss.
    made = {"t": FLOAT4, "four": np.uint8(4), "low": np.uint8(15), "two": np.float32(2), "middle": np.float32(127), "last": np.array([-1])}
    numbers, nodes = {}, []
    for i, (e, o, k) in shapes.items():
        codes, power = ints(f"nm oss {i}", e, o, k // 32, 32, high=15), ints(f"nm osse {i}", e, o, k // 32, 1, low=120, high=126)
        made[f"b{i}"], made[f"e{i}"], made[f"v{i}"] = packed(codes, 4), power.astype(np.uint8), np.array([e, o, k])
        numbers[i] = (FLOAT4[codes] * np.exp2(power - 127.0)).reshape(e, o, k).astype(np.float32)
        for half, op in (("l", node("BitwiseAnd", [f"b{i}", "low"], f"lc{i}")),
                         ("h", node("BitShift", [f"b{i}", "four"], f"hc{i}", direction="RIGHT"))):
            nodes += [op, node("Cast", f"{half}c{i}", f"{half}i{i}", to=7), node("Gather", ["t", f"{half}i{i}"], f"{half}n{i}"),
                      node("Unsqueeze", [f"{half}n{i}", "last"], f"{half}u{i}")]
        made[f"g{i}"] = np.array([e, o, k // 32, 32])
        nodes += [node("Concat", [f"lu{i}", f"hu{i}"], f"p{i}", axis=-1), node("Reshape", [f"p{i}", f"g{i}"], f"a{i}"),
                  node("Cast", f"e{i}", f"f{i}", to=1), node("Sub", [f"f{i}", "middle"], f"x{i}"), node("Pow", ["two", f"x{i}"], f"s{i}"),
                  node("Mul", [f"a{i}", f"s{i}"], f"m{i}"), node("Reshape", [f"m{i}", f"v{i}"], f"d{i}")]
    yield case("bytes", nodes, made, numbers)


def chosen():
    """Products with matrices that a TopK chooses, and with all of them at once."""
    x, router = floats("nc x", TOKENS, HIDDEN, low=-1, high=1), floats("nc r", TOKENS, EXPERTS)
    top = [node("TopK", ["r", "k"], "v i", axis=-1)]
    best = np.argsort(-router, 1, kind="stable")[:, :2]
    k = {"k": np.array([2])}
    outputs = 24
    codes = rng("nc w").uniform(-6, 6, (EXPERTS, outputs, HIDDEN)).astype(ml_dtypes.float4_e2m1fn)
    s = powers("nc s", EXPERTS, outputs, HIDDEN // 32)
    w = codes.astype(np.float32) * spread(s, 32, HIDDEN)
    unpack = [node("DequantizeLinear", ["q", "s"], "w", axis=2, block_size=32, output_dtype=1)]
    unpack_across = [node("DequantizeLinear", ["q", "s"], "w", axis=1, block_size=32, output_dtype=1)]
    in_rows = {"q": codes, "s": s}
    across = {"q": codes.transpose(0, 2, 1).copy(), "s": s.transpose(0, 2, 1).copy()}
    plain, plain_across = {"w": w}, {"w": w.transpose(0, 2, 1).copy()}
    want = np.einsum("tknh,th->tkn", w[best].astype(np.float64), x)

    def case(name, nodes, made, y, **kw):
        return simple(f"chosen_{name}", nodes, kw.pop("feeds", {"x": x, "r": router}), "y", {**made, **k}, opset=25, ir=11,
                      expect="given", given={"y": y.astype(np.float32)}, rtol=1e-4, atol=1e-4, **kw)

    gather = [*top, node("Gather", ["w", "i"], "g", axis=0)]
    for kind, made, before in (("packed", in_rows, unpack), ("plain", plain, []),
                               ("bfloat16", {"b": w.astype(ml_dtypes.bfloat16)}, [node("Cast", "b", "w", to=1)])):
        numbers = want if kind != "bfloat16" else np.einsum(
            "tknh,th->tkn", w.astype(ml_dtypes.bfloat16).astype(np.float64)[best], x)
        yield case(f"einsum_{kind}", [*before, *gather, node("Einsum", ["g", "x"], "y", equation="tknh,th->tkn")], made, numbers)
    each = floats("nc e", TOKENS, 2, HIDDEN, low=-1, high=1)
    yield case("einsum_each", [*unpack, *gather, node("Einsum", ["g", "e"], "y", equation="tknh,tkh->tkn")], in_rows,
               np.einsum("tknh,tkh->tkn", w[best].astype(np.float64), each), feeds={"e": each, "r": router})
    flat = [*top, node("Reshape", ["i", "n"], "f")]
    many = {"n": np.array([-1]), "c": np.array([TOKENS * 2, HIDDEN, 1]), "o": np.array([TOKENS, 2, outputs])}
    yield case("columns", [*unpack, *flat, node("Gather", ["w", "f"], "g"), node("Reshape", ["e", "c"], "h"),
                           node("MatMul", ["g", "h"], "p"), node("Reshape", ["p", "o"], "y")], {**in_rows, **many},
               np.einsum("tknh,tkh->tkn", w[best].astype(np.float64), each), feeds={"e": each, "r": router})
    three = floats("nc three", TOKENS * 2, 3, HIDDEN, low=-1, high=1)
    for kind, made, before in (("packed", across, unpack_across), ("plain", plain_across, [])):
        yield case(f"rows_{kind}", [*before, *flat, node("Gather", ["w", "f"], "g"), node("MatMul", ["a", "g"], "y")],
                   {**made, "n": many["n"]}, np.einsum("snh,srh->srn", w[best.reshape(-1)].astype(np.float64), three),
                   feeds={"a": three, "r": router})
    yield case("rows_turned", [*unpack, *flat, node("Gather", ["w", "f"], "g"), node("Transpose", "g", "t", perm=[0, 2, 1]),
                               node("MatMul", ["a", "t"], "y")], {**in_rows, "n": many["n"]},
               np.einsum("snh,srh->srn", w[best.reshape(-1)].astype(np.float64), three), feeds={"a": three, "r": router})
    # Packed weights and scales are chosen, and unpacked then.
    for kind in ("float4_e2m1fn", "float8_e4m3fn", "int8", "int4"):
        q = rng(f"nc {kind}").uniform(-6, 6, (EXPERTS, outputs, HIDDEN)).astype(getattr(ml_dtypes, kind, kind))
        scales = floats(f"nc s {kind}", EXPERTS, outputs, HIDDEN // 32, low=0.05, high=0.1)
        numbers = q.astype(np.float32) * spread(scales, 32, HIDDEN)
        yield case(f"unpacked_{kind}", [*top, node("Gather", ["q", "i"], "gq"), node("Gather", ["s", "i"], "gs"),
                                        node("DequantizeLinear", ["gq", "gs"], "g", axis=3, block_size=32),
                                        node("Einsum", ["g", "x"], "y", equation="tknh,th->tkn")], {"q": q, "s": scales},
                   np.einsum("tknh,th->tkn", numbers[best].astype(np.float64), x))
    # Indices of the caller may be negative.
    index = np.array([-1, 0, 3, -4, 1])
    yield simple("chosen_by_caller", [*unpack, node("Gather", ["w", "i"], "g"), node("Einsum", ["g", "x"], "y",
                                                                                     equation="tnh,th->tn")],
                 {"x": x, "i": index}, "y", in_rows, opset=25, ir=11, expect="given", rtol=1e-4, atol=1e-4,
                 given={"y": np.einsum("tnh,th->tn", w[index].astype(np.float64), x).astype(np.float32)})
    batch = floats("nc batch", EXPERTS, 3, HIDDEN, low=-1, high=1)
    yield case("all", [*unpack_across, node("MatMul", ["a", "w"], "y")], across,
               np.einsum("enh,erh->ern", w.astype(np.float64), batch), feeds={"a": batch})


def cases():
    for part in (qmoe, moe, chosen):
        yield from part()
