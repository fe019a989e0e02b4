"""Mixtures of experts, linear attention and the small fused operators of decoders, of com.microsoft.

Expected: of onnxruntime where its CPU provider computes the form, else of the operator's definition in float64.
"""
import numpy as np
from case import floats, graph, ints, model, ms, refused, simple

TOKENS, HIDDEN, INNER, EXPERTS = 5, 16, 32, 4


# ---- mixtures of experts

def softmax(x):
    e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def mixture(x, router, w1, w2, k, act, b1=0.0, b2=0.0, w3=None, normalized=False):
    """MoE by its definition; `act` takes the rows of fc1 and, if there is one, of fc3."""
    y = np.zeros((*x.shape[:-1], w2.shape[1]))
    for t in np.ndindex(x.shape[:-1]):
        chosen = np.argsort(-router[t], kind="stable")[:k]
        weights = softmax(router[t])[chosen]
        for e, weight in zip(chosen, weights / weights.sum() if normalized else weights):
            row = x[t].astype(np.float64)
            first = w1[e] @ row + (b1[e] if np.ndim(b1) else 0)
            third = (w3[e] @ row,) if w3 is not None else ()
            y[t] += weight * (w2[e] @ act(first, *third) + (b2[e] if np.ndim(b2) else 0))
    return y.astype(np.float32)


def sparse_mixture(x, router, w1, w2, act):
    """use_sparse_mixer, as Phi's models define it: scores that are further than 2 % from the largest take no part."""
    y = np.zeros((x.shape[0], w2.shape[1]))
    for t, scores in enumerate(router.astype(np.float64)):
        left = scores.copy()
        for _ in range(2):
            e = int(np.argmax(left))
            far = (left[e] - scores) / np.maximum(np.abs(scores), left[e]) > 0.02
            y[t] += softmax(np.where(far, -np.inf, left))[e] * (w2[e] @ act(w1[e] @ x[t].astype(np.float64)))
            left[e] = -np.inf
    return y.astype(np.float32)


def gated(alpha=1.0, beta=0.0, limit=np.inf):
    def act(g, rest):
        g, rest = np.minimum(g, limit), np.clip(rest, -limit, limit)
        return g / (1 + np.exp(-alpha * g)) * (rest + beta)
    return act


def gelu_by_tanh(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))


def moe():
    x, router = floats("moe x", TOKENS, HIDDEN), floats("moe r", TOKENS, EXPERTS)
    w = {"w1": floats("moe w1", EXPERTS, INNER, HIDDEN, low=-0.5, high=0.5),
         "w2": floats("moe w2", EXPERTS, HIDDEN, INNER, low=-0.5, high=0.5)}
    b = {"b1": floats("moe b1", EXPERTS, INNER), "b2": floats("moe b2", EXPERTS, HIDDEN)}
    plain = ["x", "r", "w1", "", "w2"]
    for act in ("relu", "gelu", "silu", "identity"):
        yield simple(f"moe_{act}", ms("MoE", ["x", "r", "w1", "b1", "w2", "b2"], "y", k=2, activation_type=act),
                     {"x": x, "r": router}, "y", {**w, **b})
    yield simple("moe_one_expert", ms("MoE", plain, "y"), {"x": x, "r": router}, "y", w)
    yield simple("moe_normalized", ms("MoE", plain, "y", k=3, normalize_routing_weights=1), {"x": x, "r": router}, "y", w)
    yield simple("moe_batch", ms("MoE", plain, "y", k=2), {"x": x.reshape(1, TOKENS, HIDDEN), "r": router}, "y", w)
    yield simple("moe_computed_weights", ms("MoE", plain, "y", k=2), {"x": x, "r": router, **w}, "y")
    both = {"w1": floats("moe both", EXPERTS, 2 * INNER, HIDDEN, low=-0.5, high=0.5), "w2": w["w2"]}
    attrs = dict(k=2, activation_type="swiglu", activation_alpha=1.702, activation_beta=1.0, swiglu_limit=0.75)
    yield simple("moe_swiglu", ms("MoE", plain, "y", swiglu_fusion=1, **attrs), {"x": x, "r": router}, "y", both)
    halves = {"w1": np.concatenate([both["w1"][:, 0::2], both["w1"][:, 1::2]], 1), "w2": w["w2"]}
    apart = {"w1": both["w1"][:, 0::2].copy(), "w2": w["w2"], "w3": both["w1"][:, 1::2].copy()}
    want = mixture(x, router, apart["w1"], w["w2"], 2, gated(1.702, 1.0, 0.75), w3=apart["w3"])
    yield simple("moe_swiglu_halves", ms("MoE", plain, "y", swiglu_fusion=2, **attrs), {"x": x, "r": router}, "y", halves,
                 expect="given", given={"y": want})
    yield simple("moe_swiglu_apart", ms("MoE", [*plain, "", "w3"], "y", **attrs), {"x": x, "r": router}, "y", apart,
                 expect="given", given={"y": want})
    # Two activations that onnxruntime has on CUDA only.
    want = mixture(x, router, apart["w1"], w["w2"], 2, lambda g, rest: gelu_by_tanh(g) * rest, w3=apart["w3"])
    for fusion, weights in ((1, both), (2, halves)):
        yield simple(f"moe_geglu_{fusion}", ms("MoE", plain, "y", k=2, activation_type="geglu", swiglu_fusion=fusion),
                     {"x": x, "r": router}, "y", weights, expect="given", given={"y": want})
    want = mixture(x, router, w["w1"], w["w2"], 2, lambda g: np.maximum(g, 0) ** 2)
    yield simple("moe_relu2", ms("MoE", plain, "y", k=2, activation_type="relu2"), {"x": x, "r": router}, "y", w,
                 expect="given", given={"y": want})
    want = mixture(x, router, w["w1"], w["w2"], 2, lambda g, rest: np.maximum(g, 0) * rest, w3=apart["w3"])
    yield simple("moe_third", ms("MoE", [*plain, "", "w3"], "y", k=2), {"x": x, "r": router}, "y", {**w, "w3": apart["w3"]},
                 expect="given", given={"y": want})
    close = router.copy()
    close[:3, 1] = close[:3].max(1) * 1.005  # experts that share their weight
    close[3] = -np.abs(close[3])
    yield simple("moe_sparse_mixer", ms("MoE", plain, "y", k=2, use_sparse_mixer=1), {"x": x, "r": close}, "y", w,
                 expect="given", given={"y": sparse_mixture(x, close, w["w1"], w["w2"], lambda g: np.maximum(g, 0))})
    half = {n: a.astype(np.float16) for n, a in {"x": x, "r": router, **w}.items()}
    want = mixture(*(half[n].astype(np.float64) for n in ("x", "r", "w1", "w2")), 2, lambda g: np.maximum(g, 0))
    yield simple("moe_float16", ms("MoE", plain, "y", k=2), {n: half[n] for n in "xr"}, "y:h",
                 {n: half[n] for n in w}, expect="given", given={"y": want.astype(np.float16)}, rtol=2e-3, atol=2e-3)

    def bad(name, words, inputs=plain, constants=w, x=x, r=router, **attributes):
        return refused(f"moe_{name}", model(graph([ms("MoE", inputs, "y", name="here", **attributes)], {"x": x, "r": r}, "y",
                                                  constants)), "here", *words)

    yield bad("unknown_activation", ["softmoe"], activation_type="softmoe")
    yield bad("too_many_experts", ["k is 9 of 4"], k=9)
    yield bad("sparse_mixer_k", ["use_sparse_mixer"], k=3, use_sparse_mixer=1)
    yield bad("sparse_mixer_normalized", ["use_sparse_mixer"], k=2, use_sparse_mixer=1, normalize_routing_weights=1)
    yield bad("swiglu_without_third", ["fc3_experts_weights"], activation_type="swiglu")
    yield bad("geglu_without_third", ["fc3_experts_weights"], activation_type="geglu")
    yield bad("wrong_inner", ["do not fit 4 experts"], constants={**w, "w2": floats("moe bad", EXPERTS, 9, INNER)})
    yield bad("wrong_rows", ["fc2_experts_weights"], constants={**w, "w2": floats("moe bad", EXPERTS, HIDDEN, 9)})
    yield bad("wrong_router", ["differ in tokens"], r=floats("moe bad", 3, EXPERTS))


def packed(q, bits):
    """Numbers of 2, 4 or 8 bits, low bits first, rows filled up to whole bytes."""
    each = 8 // bits
    q = np.concatenate([q, np.zeros((*q.shape[:-1], -q.shape[-1] % each), q.dtype)], -1)
    return sum(q[..., i::each].astype(np.int64) << (bits * i) for i in range(each)).astype(np.uint8)


def quantized(name, outputs, inputs, bits, block, with_zeros):
    """Constants w, s and perhaps z, and, under "numbers", the weights."""
    blocks = inputs // block if block else 1
    q = ints(f"{name} q", EXPERTS, outputs, inputs, high=2**bits - 1)
    s = floats(f"{name} s", EXPERTS, outputs, blocks, low=0.02, high=0.1) * 2.0 ** (4 - bits)
    made = {"w": packed(q, bits), "s": (s if block else s[..., 0]).astype(np.float32)}
    if with_zeros:
        z = ints(f"{name} z", EXPERTS, outputs, blocks, high=2**bits - 1)
        made["z"] = packed(z if block else z[..., 0], bits)
    else:
        z = np.full((EXPERTS, outputs, blocks), 2 ** (bits - 1))
    made["numbers"] = (q - np.repeat(z, inputs // blocks, 2)) * np.repeat(s.astype(np.float32), inputs // blocks, 2)
    return made


def qmoe():
    x, router = floats("qmoe x", TOKENS, HIDDEN * 2), floats("qmoe r", TOKENS, EXPERTS)
    hidden, inner = HIDDEN * 2, INNER * 2
    biases = {"b1": floats("qmoe b1", EXPERTS, inner), "b2": floats("qmoe b2", EXPERTS, hidden)}

    def constants(bits, block, with_zeros, both=1):
        first = quantized("fc1", both * inner, hidden, bits, block, with_zeros)
        second = quantized("fc2", hidden, inner, bits, block, with_zeros)
        return {**{n + "1": a for n, a in first.items()}, **{n + "2": a for n, a in second.items()}}

    def case(name, bits, block, with_zeros, more=None, cut=None, **attributes):
        made = {**constants(bits, block, with_zeros, attributes.pop("both", 1)), **(more or {})}
        first, second = made.pop("numbers1"), made.pop("numbers2")
        feeds = {"x": x, "r": router}
        if cut:
            feeds["rw"] = np.abs(floats("qmoe rw", TOKENS, EXPERTS))
        order = ["x", "r", "w1", "s1", "b1", "w2", "s2", "b2", "w3", "s3", "b3", "z1", "z2", "z3", "rw"]
        inputs = [n if n in made or n in feeds else "" for n in order]
        while not inputs[-1]:
            inputs.pop()
        attrs = dict(k=2, expert_weight_bits=bits, activation_type="silu", normalize_routing_weights=1)
        if block:
            attrs["block_size"] = block
        attrs.update(attributes)
        if bits == 8 and block:  # onnxruntime rounds the activations to int8
            y = mixture(x, router, first, second, 2, lambda g: g / (1 + np.exp(-g)), made.get("b1", 0.0),
                        made.get("b2", 0.0), normalized=True)
            return simple(f"qmoe_{name}", ms("QMoE", inputs, "y", **attrs), feeds, "y", made, expect="given",
                          given={"y": y}, rtol=1e-3, atol=1e-3)
        return simple(f"qmoe_{name}", ms("QMoE", inputs, "y", **attrs), feeds, "y", made, rtol=1e-3, atol=1e-3)

    for bits in (2, 4, 8):
        yield case(f"{bits}_rows", bits, 0, False, biases)
        yield case(f"{bits}_rows_zeros", bits, 0, True)
        yield case(f"{bits}_blocks", bits, 16, False)
        yield case(f"{bits}_blocks_zeros", bits, 16, True, biases)
    yield case("swiglu", 4, 16, False, both=2, activation_type="swiglu", swiglu_fusion=1, activation_alpha=1.702,
               activation_beta=1.0, swiglu_limit=7.0)
    yield case("not_normalized", 4, 16, False, normalize_routing_weights=0)
    yield case("router_weights", 4, 16, False, cut=True, normalize_routing_weights=0)
    yield case("router_weights_normalized", 4, 16, False, cut=True)
    yield case("raw", 4, 16, False, weights_prepacked=0, accuracy_level=0)
    m = {n: a for n, a in constants(4, 16, False).items() if not n.startswith("numbers")}
    plain = ["x", "r", "w1", "s1", "", "w2", "s2"]

    def bad(name, words, inputs=plain, made=m, feeds=None, **attributes):
        attrs = {"k": 2, "block_size": 16, **attributes}
        return refused(f"qmoe_{name}", model(graph([ms("QMoE", inputs, "y", name="here", **attrs)],
                                                   feeds or {"x": x, "r": router}, "y", made)), "here", *words)

    yield bad("prepacked", ["weights_prepacked"], weights_prepacked=1)
    turned = np.ascontiguousarray(m["w1"].transpose(0, 2, 1)).reshape(EXPERTS, hidden, inner // 2)
    yield bad("columns_for_rows", ["layout of a device", "qmoe_weights_prepacked"], made={**m, "w1": turned})
    square = {n + str(k): a for k in (1, 2) for n, a in quantized(f"fc{k}", hidden, hidden, 4, 16, False).items() if n != "numbers"}
    yield refused("qmoe_square", model(graph([ms("QMoE", plain, "y", name="here", k=2, block_size=16)], {"x": x, "r": router}, "y",
                                             square)), "here", "square", "weights_prepacked", flags=("--strict",), codes=(1,))
    yield bad("bits", ["3 bits"], expert_weight_bits=3)
    yield bad("wrong_block", ["whole blocks"], block_size=24)
    yield bad("wrong_scales", ["fc1_scales"], made={**m, "s1": floats("qmoe bad", EXPERTS, 3)})
    yield bad("no_scales", ["fc1_scales are missing"], inputs=["x", "r", "w1", "", "", "w2", "s2"],
              made={n: a for n, a in m.items() if n != "s1"})
    yield bad("computed_weights", ["must be constant"], made={n: a for n, a in m.items() if n != "w1"},
              feeds={"x": x, "r": router, "w1": m["w1"]})


# ---- linear attention

def recurrence(q, k, v, state, rule, decay=None, beta=None):
    """q [B, T, H, D], k and v [B, T, G, D or E], state [B, G, D, E]: results [B, T, max(H, G), E], all states."""
    q, k, v, s = (a.astype(np.float64) for a in (q, k, v, state))
    heads, count = v.shape[2], max(q.shape[2], v.shape[2])
    q, k, v = (np.repeat(a, count // a.shape[2], 2) for a in (q, k, v))
    spread = count // heads
    s = np.repeat(s, spread, 1)
    results, states = [], [s[:, ::spread]]
    for t in range(q.shape[1]):
        if decay is not None:
            g = np.exp(np.repeat(decay[:, t].astype(np.float64), spread, 1))
            s = s * g.reshape(*g.shape[:2], -1, 1)
        add = v[:, t]
        if "delta" in rule:
            b = np.broadcast_to(beta[:, t], (q.shape[0], heads)) if beta.shape[2] == 1 else beta[:, t]
            add = np.repeat(b, spread, 1)[..., None] * (add - np.einsum("bhd,bhde->bhe", k[:, t], s))
        s = s + np.einsum("bhd,bhe->bhde", k[:, t], add)
        results.append(np.einsum("bhd,bhde->bhe", q[:, t], s) / np.sqrt(q.shape[3]))
        states.append(s[:, ::spread])
    return np.stack(results, 1).astype(np.float32), [a.astype(np.float32) for a in states]


def linear_attention():
    batch, tokens, size, values = 2, 4, 8, 6
    for name, q_heads, k_heads, heads in (("inverse", 2, 2, 4), ("shared_keys", 4, 2, 4)):
        q, k, v = (floats(f"la {name} {n}", batch, tokens, h * s, low=-0.5, high=0.5)
                   for n, h, s in (("q", q_heads, size), ("k", k_heads, size), ("v", heads, values)))
        feeds = {"q": q, "k": k, "v": v, "s": floats(f"la {name} s", batch, heads, size, values),
                 "d": -np.abs(floats(f"la {name} d", batch, tokens, heads * size)),
                 "b": np.abs(floats(f"la {name} b", batch, tokens, 1)) / 2}
        yield simple(f"linearattention_{name}", ms("LinearAttention", "q k v s d b", "y t", q_num_heads=q_heads,
                                                   kv_num_heads=heads), feeds, "y t", rtol=1e-3, atol=1e-4)
    heads, groups = 4, 2
    q, k, v = (floats(f"la w {n}", batch, tokens, h * s, low=-0.5, high=0.5)
               for n, h, s in (("q", heads, size), ("k", groups, size), ("v", groups, values)))
    state = floats("la w s", batch, groups, size, values)
    decay, beta = -np.abs(floats("la w d", batch, tokens, groups)), np.abs(floats("la w b", batch, tokens, groups)) / 2
    y, states = recurrence(q.reshape(batch, tokens, heads, size), k.reshape(batch, tokens, groups, size),
                           v.reshape(batch, tokens, groups, values), state, "gated_delta", decay, beta)
    y = y.reshape(batch, tokens, -1)
    attrs = dict(q_num_heads=heads, kv_num_heads=groups)
    for window in (0, 2, 6):
        slots = [states[i] if i > 0 else np.zeros_like(state) for i in range(tokens - window + 1, tokens + 1)]
        past = np.stack([floats("la unread", *state.shape)] * (window - 1) + [state]) if window else state
        yield simple(f"linearattention_window_{window}",
                     ms("LinearAttention", "q k v s d b", "y t", state_window=window, **attrs),
                     {"q": q, "k": k, "v": v, "s": past, "d": decay, "b": beta}, "y t", rtol=1e-3, atol=1e-4,
                     expect="given", given={"y": y, "t": np.stack(slots) if window else states[-1]})
    long = floats("la long", 1, 300, 8, low=-0.3, high=0.3)
    yield simple("linearattention_prompt", ms("LinearAttention", ["x", "x", "x"], "y t", q_num_heads=2, kv_num_heads=2,
                                              update_rule="linear"), {"x": long}, "y t", rtol=1e-3, atol=1e-3)
    half = {n: a.astype(np.float16) for n, a in {"q": q, "k": k, "v": v, "d": decay, "b": beta}.items()}
    wide = {n: a.astype(np.float32) for n, a in half.items()}
    y, states = recurrence(wide["q"].reshape(batch, tokens, heads, size), wide["k"].reshape(batch, tokens, groups, size),
                           wide["v"].reshape(batch, tokens, groups, values), state, "gated_delta", wide["d"], wide["b"])
    yield simple("linearattention_float16", ms("LinearAttention", "q k v s d b", "y t", **attrs),
                 {"q": half["q"], "k": half["k"], "v": half["v"], "s": state, "d": half["d"], "b": half["b"]}, "y:h t",
                 expect="given", given={"y": y.reshape(batch, tokens, -1).astype(np.float16), "t": states[-1]}, rtol=2e-3,
                 atol=2e-3)

    def bad(name, words, inputs="q k v s d b", **attributes):
        feeds = {"q": q, "k": k, "v": v, "s": state, "d": decay, "b": beta}
        return refused(f"linearattention_{name}",
                       model(graph([ms("LinearAttention", inputs, "y t", name="here", **{**attrs, **attributes})],
                                   {n: a for n, a in feeds.items() if n in inputs.split()}, "y t")), "here", *words)

    yield bad("unknown_rule", ["update_rule 'other'"], update_rule="other")
    yield bad("wrong_heads", ["do not fit"], kv_num_heads=3)
    yield bad("no_decay", ["decay or beta"], "q k v s")
    yield bad("wrong_window", ["state_window is 9"], state_window=9)
    yield bad("no_slots", ["slots of state_window"], state_window=2)


def gates():
    a, b = floats("lag a", 2, 3, 4), floats("lag b", 2, 3, 4)
    heads = {"t": floats("lag t", 4), "s": -np.abs(floats("lag s", 4))}
    yield simple("linearattentiongate", ms("LinearAttentionGate", "a t s b", "d e"), {"a": a, "b": b}, "d e", heads)
    yield simple("linearattentiongate_decay", ms("LinearAttentionGate", "a t s", "d"), {"a": a}, "d", heads)
    yield simple("linearattentiongate_float16", ms("LinearAttentionGate", "a t s b", "d e"),
                 {"a": a.astype(np.float16), "b": b.astype(np.float16)}, "d:h e:h", heads, expect="given",
                 given={"d": (heads["s"] * np.log1p(np.exp(a.astype(np.float16).astype(np.float64) + heads["t"]))).astype(
                     np.float16), "e": (1 / (1 + np.exp(-b.astype(np.float16).astype(np.float64)))).astype(np.float16)},
                 rtol=2e-3, atol=1e-3)
    x, gate, scale = floats("grn x", 2, 3, 12), floats("grn g", 2, 3, 12), {"s": floats("grn s", 4)}
    for activation in ("silu", "sigmoid"):
        yield simple(f"gatedrmsnorm_{activation}", ms("GatedRMSNorm", "x s g", "y", activation=activation, epsilon=1e-3),
                     {"x": x, "g": gate}, "y", scale)
    y, one, many, weight = floats("ga y", *x.shape), floats("ga g", *x.shape[:-1], 1), floats("ga k", *x.shape[:-1], 3), floats("ga w", 3, 1)
    yield simple("gatedadd", ms("GatedAdd", "x b g", "y"), {"x": x, "b": y, "g": one}, "y")
    want = x + y / (1 + np.exp(-(many.astype(np.float64) @ weight)))
    yield simple("gatedadd_projected", ms("GatedAdd", "x b g w", "y"), {"x": x, "b": y, "g": many}, "y", {"w": weight},
                 expect="given", given={"y": want.astype(np.float32)})
    yield refused("gatedadd_sizes", model(graph([ms("GatedAdd", "x b g", "y", name="here")], {"x": x, "b": y, "g": many}, "y")),
                  "here", "do not fit")
    yield refused("gatedrmsnorm_sizes", model(graph([ms("GatedRMSNorm", "x s g", "y", name="here")], {"x": x, "g": gate}, "y",
                                                    {"s": floats("grn bad", 5)})), "here", "do not fit")


def delta_net():
    batch, tokens, groups, heads, size, values = 2, 3, 2, 4, 8, 6
    q, k = (floats(f"gdn {n}", batch * tokens, groups, size, low=-0.5, high=0.5) for n in "qk")
    v, state = floats("gdn v", batch * tokens, heads, values), floats("gdn s", batch, heads, values, size)
    g, b = floats("gdn g", batch * tokens, heads), floats("gdn b", batch * tokens, heads)
    log, bias = floats("gdn a", heads), floats("gdn t", heads)
    split = [a.reshape(batch, tokens, *a.shape[1:]) for a in (q, k, v, g, b)]
    decay = -np.exp(log) * np.log1p(np.exp(split[3].astype(np.float64) + bias))
    y, states = recurrence(*split[:3], state.transpose(0, 1, 3, 2), "gated_delta", decay, 1 / (1 + np.exp(-split[4])))
    want = {"y": y.reshape(batch * tokens, heads, values), "t": states[-1].transpose(0, 1, 3, 2)}
    attrs = dict(gate_activation="qwen", beta_activation="sigmoid")
    feeds = {"q": q, "k": k, "v": v, "g": g, "b": b, "s": state}
    yield simple("gateddeltanet", ms("GatedDeltaNet", ["q", "k", "v", "", "g", "b", "s", "l", "h"], "y t", **attrs), feeds,
                 "y t", {"l": log, "h": bias}, expect="given", given=want, rtol=1e-3, atol=1e-4)
    rows = np.concatenate([a.reshape(batch * tokens, -1) for a in (q, k, v)], 1)
    yield simple("gateddeltanet_packed", ms("GatedDeltaNet", ["q", "", "", "c", "g", "b", "s", "l", "h"], "y t", **attrs),
                 {"q": rows, "g": g, "b": b, "s": state}, "y t",
                 {"l": log, "h": bias, "c": np.array([0, tokens, 2 * tokens], np.int32)}, expect="given", given=want, rtol=1e-3,
                 atol=1e-4)
    for name, words, extra, bounds in (("lengths", "different lengths", {}, np.array([0, 1, 6], np.int32)),
                                       ("norm", "qk_l2_norm", {"qk_l2_norm": 1}, np.array([0, 3, 6], np.int32))):
        m = model(graph([ms("GatedDeltaNet", ["q", "k", "v", "c", "g", "b", "s"], "y t", name="here", **extra)], feeds, "y t",
                        {"c": bounds}))
        yield refused(f"gateddeltanet_{name}", m, "here", words)
    m = model(graph([ms("GatedDeltaNet", ["q", "k", "v", "c", "g", "b", "s"], "y t", name="here")],
                    {**feeds, "c": np.array([0, 3, 6], np.int32)}, "y t"))
    yield refused("gateddeltanet_computed_bounds", m, "here", "must be constant")


# ---- causal convolutions

def causal_windows():
    x, w = floats("ccw x", 2, 6, 3), {"w": floats("ccw w", 6, 1, 3), "b": floats("ccw b", 6)}
    past = floats("ccw p", 2, 6, 4)
    every = np.concatenate([past, x], 2).astype(np.float64)
    y = sum(every[:, :, 2 * i:2 * i + 3] * w["w"][:, :, i] for i in range(3)) + w["b"][:, None]
    for last in (0, 1):
        def turned(a, last=last):
            return np.swapaxes(a, -1, -2).copy() if last else a
        for window in (1, 2, 5):
            slots = [every[:, :, n:n + 4] if n > 0 else np.zeros((2, 6, 4)) for n in range(4 - window, 4)]
            given = np.stack([floats("ccw unread", 2, 6, 4)] * (window - 1) + [past])
            yield simple(f"causalconv_window_{window}{'_last' * last}",
                         ms("CausalConvWithState", "x w b p", "y s", dilation=2, state_window=window, channels_last=last),
                         {"x": turned(x), "p": turned(given)}, "y s", w, expect="given",
                         given={"y": turned(y).astype(np.float32), "s": turned(np.stack(slots)).astype(np.float32)})
    yield refused("causalconv_ndim", model(graph([ms("CausalConvWithState", "x w", "y s", ndim=2, name="here")],
                                                 {"x": floats("ccw x2", 1, 2, 4, 5)}, "y s", {"w": floats("ccw w2", 2, 1, 3, 3)})),
                  "here", "ndim")
    rows = x.transpose(0, 2, 1).reshape(6, 6).copy()
    yield simple("causalconv_packed", ms("VarlenCausalConvWithState", "x w c b p", "y s", dilation=2), {"x": rows, "p": past},
                 "y s", {**w, "c": np.array([0, 3, 6], np.int32)}, expect="given",
                 given={"y": y.transpose(0, 2, 1).reshape(6, 6).astype(np.float32), "s": every[:, :, 3:].astype(np.float32)})
    m = model(graph([ms("VarlenCausalConvWithState", "x w c b p", "y s", dilation=2, name="here")], {"x": rows, "p": past},
                    "y s", {**w, "c": np.array([0, 2, 6], np.int32)}))
    yield refused("causalconv_packed_lengths", m, "here", "different lengths")


# ---- rotations, norms

def rotations():
    batch, tokens, heads, size, pairs = 2, 3, 2, 16, 6
    x = floats("mr x", batch, tokens, heads * size)
    positions = ints("mr p", 3, batch, tokens, high=7)
    angle = np.arange(8)[:, None] / 100.0 ** (np.arange(pairs)[None] / pairs)
    tables = {"c": np.cos(angle).astype(np.float32), "s": np.sin(angle).astype(np.float32)}
    for layout in (0, 1):
        for interleaved in (0, 1):
            yield simple(f"mrotary_{layout}_{'pairs' if interleaved else 'halves'}",
                         ms("MRotaryEmbedding", "x p c s", "y", mrope_section=[2, 2, 2], mrope_layout=layout, num_heads=heads,
                            rotary_embedding_dim=2 * pairs, interleaved=interleaved), {"x": x, "p": positions}, "y", tables)
    yield simple("mrotary_heads", ms("MRotaryEmbedding", "x p c s", "y", mrope_section=[3, 1, 2]),
                 {"x": floats("mr x4", batch, heads, tokens, 2 * pairs), "p": positions}, "y", tables)
    yield refused("mrotary_section", model(graph([ms("MRotaryEmbedding", "x p c s", "y", mrope_section=[3, 1, 1], num_heads=heads,
                                                     name="here")], {"x": x, "p": positions}, "y", tables)),
                  "here", "mrope_section")
    emb = floats("gr e", batch, tokens, 4)
    parts = {n: floats(f"gr {n}", batch, heads, tokens, 4).astype(np.float16) for n in ("q", "qr", "k", "kr")}
    cos, sin = (f(emb.astype(np.float64))[:, None].astype(np.float16).astype(np.float64) for f in (np.cos, np.sin))
    want = {"a": parts["q"] * cos + parts["qr"] * sin, "b": parts["k"] * cos + parts["kr"] * sin}
    yield simple("gemmarotary", ms("GemmaRotaryEmbedding", "e q qr k kr", "a b"), {"e": emb, **parts}, "a:h b:h", expect="given",
                 given={n: a.astype(np.float16) for n, a in want.items()}, rtol=4e-3, atol=4e-3)


def skip_norms():
    """With every output, and operands that are broadcast."""
    x, bias = floats("skip x", 2, 3, 8), {"g": floats("skip g", 8), "e": floats("skip e", 8), "b": floats("skip b", 8)}
    for shape in ((2, 3, 8), (1, 3, 8), (3, 8)):
        skip = floats(f"skip s{len(shape)}", *shape)
        label = "x".join(map(str, shape))
        yield simple(f"skiplayernorm_{label}", ms("SkipLayerNormalization", ["x", "s", "g", "e", "b"], ["y", "", "", "t"],
                                                  epsilon=1e-3), {"x": x, "s": skip}, "y t", bias)
        yield simple(f"skiprmsnorm_{label}", ms("SkipSimplifiedLayerNormalization", ["x", "s", "g", "b"], ["y", "", "", "t"],
                                                epsilon=1e-3), {"x": x, "s": skip}, "y t", bias)
    flat = floats("skip flat", 3, 8)
    yield simple("skiprmsnorm_flat", ms("SkipSimplifiedLayerNormalization", ["x", "s", "g"], ["y", "", "", "t"]),
                 {"x": flat, "s": floats("skip flat s", 3, 8)}, "y t", bias)
    for op in ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"):
        yield simple(f"{op.lower()}_all_outputs", ms(op, ["x", "s", "g"], "y m r t", epsilon=1e-3),
                     {"x": x, "s": floats("skip s3", 2, 3, 8)}, "y m r t", bias)
    m = model(graph([ms("SkipSimplifiedLayerNormalization", ["x", "s", "g"], "y", name="here")],
                    {"x": floats("skip x1", 1, 3, 8), "s": floats("skip s3", 2, 3, 8)}, "y", bias))
    yield refused("skiprmsnorm_wide_skip", m, "here", "does not fit input")


def by_name():
    x = floats("refused x", 2, 8)
    for op in ("PagedAttention", "SparseAttention"):
        yield refused(f"refused_{op.lower()}", model(graph([ms(op, "x", "y", name="here")], {"x": x}, "y")), "here",
                      f"com.microsoft.{op} is not supported: ")


def cases():
    for part in (moe, qmoe, linear_attention, gates, delta_net, causal_windows, rotations, skip_norms, by_name):
        yield from part()
