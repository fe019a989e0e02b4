"""Attention of decoders: caches, rotation by position, heads that share keys.

Expected: of onnxruntime where its CPU provider computes the form, else of the formula in float64.
"""
import ml_dtypes
import numpy as np
import onnx
from case import floats, graph, model, ms, node, refused, simple

HEADS, SIZE, BATCH, ROOM = 2, 4, 2, 6
FLOAT, FLOAT8 = onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT8E4M3FN
WIDTH = HEADS * SIZE


def apart(x, heads=HEADS):
    return x.astype(np.float64).reshape(x.shape[0], x.shape[1], heads, -1).transpose(0, 2, 1, 3)


def together(y):
    return y.transpose(0, 2, 1, 3).reshape(y.shape[0], y.shape[2], -1)


def weighted(q, k, v, seen, bias=0.0):
    """Attention of q [B, H, S, D] to the keys that `seen` [.., S, T] lets through."""
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1]) + bias
    scores = np.where(seen, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def turned(x, positions, size):
    """The first `size` elements of each head of x [B, H, S, D], rotated in halves by 10000^(-2i / size) a position."""
    angle = np.asarray(positions)[..., None] * 10000.0 ** (-np.arange(0, size, 2) / size)
    cos, sin = np.cos(angle), np.sin(angle)
    a, b = x[..., :size // 2], x[..., size // 2:size]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin, x[..., size:]], -1)


def one_token():
    """DecoderMaskedMultiHeadAttention: a cache with room for more, one that is complete, and an operand with all parts."""
    x = {n: floats(f"dec {n}", BATCH, 1, WIDTH) for n in "qkv"}
    caches = {n: floats(f"dec {n}", BATCH, HEADS, ROOM, SIZE) for n in ("pk", "pv")}
    past = np.array([3], np.int32)
    bias = {"b": floats("dec b", 3 * WIDTH)}
    inputs = ["q", "k", "v", "", "", "pk", "pv", "n", "", "", "b"]
    share = dict(num_heads=HEADS, past_present_share_buffer=1)
    op = "DecoderMaskedMultiHeadAttention"
    for name, known in (("running", False), ("known", True)):
        yield simple(f"decoder_mha_{name}", ms(op, inputs, "y nk nv", **share),
                     {**x, **caches, **({} if known else {"n": past})}, "y nk nv",
                     {**bias, **({"n": past} if known else {})}, more=() if known else (
                         {**x, **caches, "n": np.array([0], np.int32)}, {**x, **caches, "n": np.array([5], np.int32)}),
                     fails=() if known else (({**x, **caches, "n": np.array([6], np.int32)}, "an update at 6 exceeds a cache of 6"),))
    mask = np.array([[1, 0, 1, 1], [0, 1, 1, 1]], np.int32)
    added = floats("dec a", 1, HEADS, 1, 4)
    masked = ["q", "k", "v", "m", "a", "pk", "pv", "n"]
    yield simple("decoder_mha_masked", ms(op, masked, "y nk nv", **share), {**x, **caches, "n": past, "m": mask, "a": added},
                 "y nk nv")
    yield simple("decoder_mha_masked_known", ms(op, masked, "y nk nv", mask_filter_value=-1e30, **share),
                 {**x, **caches, "m": mask, "a": added}, "y nk nv", {"n": past})
    cross = {n: floats(f"dec cross {n}", BATCH, HEADS, 5, SIZE) for n in "kv"}
    yield simple("decoder_mha_cross", ms(op, ["q", "k", "v", "m"], "y", num_heads=HEADS),
                 {"q": x["q"], **cross, "m": np.array([[1, 0, 1, 1, 0], [0, 1, 1, 1, 1]], np.int32)})
    q, k, v = (apart(a) for a in x.values())
    keys, values = (np.concatenate([caches[c][:, :, :3], new], 2) for c, new in (("pk", k), ("pv", v)))
    want = together(weighted(q, keys, values, True)).astype(np.float32)
    yield simple("decoder_mha_packed", ms(op, ["q", "", "", "", "", "pk", "pv", "n"], "y nk nv", **share),
                 {"q": np.concatenate(list(x.values()), 2), **caches, "n": past}, "y", expect="given", given={"y": want})
    m = model(graph([ms(op, ["q", "k", "v", "", "", "pk", "pv", "n", "w", "i"], "y nk nv", name="here", **share)],
                    {**x, **caches, "n": past, "w": np.array([2], np.int32), "i": np.zeros((1, 2, ROOM), np.int32)}, "y"))
    yield refused("decoder_mha_beams", m, "here", "beam_width", "--const")


def self_attention():
    """Attention with a cache that has room, its form for one token, and their rotation."""
    weights = {"w": floats("dsa w", 8, 3 * WIDTH, low=-0.5, high=0.5), "b": floats("dsa b", 3 * WIDTH)}
    cache = floats("dsa p", 2, BATCH, HEADS, ROOM, SIZE)
    for op, tokens in (("DecoderMaskedSelfAttention", 1), ("Attention", 3)):
        x = floats(f"dsa x{tokens}", BATCH, tokens, 8)
        q, k, v = (apart(a) for a in np.split(x.astype(np.float64) @ weights["w"] + weights["b"], 3, 2))
        for rotary in (0, 1):
            for past, share in ((2, 1), (ROOM, 0)):
                at = past + np.arange(tokens)
                rq, rk = (turned(a, at, SIZE) if rotary else a for a in (q, k))
                keys, values = (np.concatenate([cache[i][:, :, :past], new], 2) for i, new in ((0, rk), (1, v)))
                present = cache.astype(np.float64)
                if share:
                    present[:, :, :, past:past + tokens] = np.stack([rk, v])
                else:
                    present = np.stack([keys, values])
                causal = op == "Attention"
                seen = np.arange(past + tokens) <= at[:, None] if causal else True
                extra = dict(unidirectional=1) if causal else {}
                if share:
                    extra["past_present_share_buffer"] = 1
                inputs = ["x", "w", "b", "", "p"] + (["", "n"] if share else [])
                yield simple(f"{op.lower()}_{'rotary' if rotary else 'plain'}_{'room' if share else 'grows'}",
                             ms(op, inputs, "y np", num_heads=HEADS, do_rotary=rotary, **extra),
                             {"x": x, "p": cache, **({"n": np.array([past], np.int32)} if share else {})}, "y np", weights,
                             expect="given", given={"y": together(weighted(rq, keys, values, seen)).astype(np.float32),
                                                    "np": present.astype(np.float32)})
    x = floats("dsa x5", BATCH, 5, 8)
    wide = {"w": floats("dsa wide", 8, 48, low=-0.5, high=0.5), "b": floats("dsa wb", 48)}
    q, k, v = (apart(a, 1) for a in np.split(x.astype(np.float64) @ wide["w"] + wide["b"], 3, 2))
    q, k = (turned(a, np.arange(5), 4) for a in (q, k))
    yield simple("attention_rotary_part", ms("Attention", "x w b", "y", num_heads=1, do_rotary=1, rotary_embedding_dim=4),
                 {"x": x}, constants=wide, expect="given", given={"y": together(weighted(q, k, v, True)).astype(np.float32)})


def group_query():
    """Prompts, tokens behind a cache, packed operands, rotation, windows, caps, sinks: onnxruntime computes them all."""
    heads, groups, size, room = 4, 2, 16, 8
    attrs = dict(num_heads=heads, kv_num_heads=groups)

    def operands(tokens, batch=1, packed=False):
        parts = {n: floats(f"gqa {n}{tokens}{batch}", batch, tokens, h * size) for n, h in
                 (("q", heads), ("k", groups), ("v", groups))}
        return {"q": np.concatenate(list(parts.values()), 2)} if packed else parts

    def caches(rows, batch=1):
        return {n: floats(f"gqa {n}{rows}{batch}", batch, groups, rows, size) for n in ("pk", "pv")}

    angle = np.arange(16)[:, None] / 100.0 ** (np.arange(8)[None] / 8)
    tables = {"c": np.cos(angle).astype(np.float32), "s": np.sin(angle).astype(np.float32)}
    part = {n: a[:, :8] for n, a in tables.items()}

    def case(name, tokens, total, rows=0, batch=1, packed=False, more=None, constants=None, lengths=None, known=True,
             outputs="y nk nv", **extra):
        more = more or {}
        order = ["q", "k", "v", "pk", "pv", "n", "t", "c", "s", "p", "a", "h"]
        feeds = {**operands(tokens, batch, packed), **(caches(rows, batch) if rows else {}), **more,
                 "n": np.array(lengths or [total - 1] * batch, np.int32)}
        count = {"t": np.array(total, np.int32)}
        constants = {**(constants or {}), **(count if known else {})}
        if not known:
            feeds.update(count)
        inputs = [n if n in feeds or n in constants else "" for n in order]
        return simple(f"gqa_{name}", ms("GroupQueryAttention", inputs, "y nk nv", **attrs, **extra), feeds, outputs,
                      constants, rtol=1e-3, atol=1e-4)

    yield case("prompt", 5, 5)
    yield case("prompt_packed_rotary", 5, 5, packed=True, constants=tables, do_rotary=1)
    yield case("prompt_interleaved", 5, 5, constants=part, do_rotary=1, rotary_interleaved=1)
    yield case("prompt_window", 5, 5, local_window_size=2)
    yield case("prompt_softcap", 5, 5, softcap=1.5)
    yield case("prompt_smooth", 5, 5, smooth_softmax=1)
    yield case("prompt_sink", 5, 5, more={"h": floats("gqa h", heads)})
    yield case("prompt_both_ways", 5, 5, causal=0)
    yield case("prompt_bias_scale", 5, 5, more={"a": floats("gqa a", 1, heads, 5, 5)}, scale=0.3)
    yield case("prompt_positions", 5, 5, more={"p": np.arange(3, 8)[None]}, constants=tables, do_rotary=1)
    yield case("token_grows", 1, 9, rows=8, constants=tables, do_rotary=1)
    yield case("token_grows_window", 1, 9, rows=8, local_window_size=3)
    yield case("token_lengths", 1, 8, rows=8, batch=2, lengths=[7, 7], constants=tables, do_rotary=1, known=False)
    yield case("token_ragged", 1, 6, rows=8, batch=2, lengths=[3, 5], constants=tables, do_rotary=1, known=False, outputs="y")
    yield case("tokens_behind", 3, 8, rows=5, constants=tables, do_rotary=1)
    yield case("tokens_room", 3, 7, rows=8, packed=True, constants=tables, do_rotary=1, known=False, outputs="y")
    yield case("tokens_bias", 3, 8, rows=5, more={"a": floats("gqa a8", 1, 1, 3, 8)})
    yield case("token_positions", 1, 6, rows=8, more={"p": np.array([[5]])}, constants=tables, do_rotary=1, outputs="y")
    yield case("prompt_room", 4, 4, rows=8, outputs="y", known=False)
    # Caches that grow where a run gives the number of tokens.
    yield case("token_grows_in_a_run", 1, 7, rows=6, known=False)
    yield case("token_grows_in_a_run_packed", 1, 7, rows=6, packed=True, known=False)
    yield case("tokens_grow_in_a_run", 2, 8, rows=6, known=False)
    yield case("token_grows_in_a_run_batch", 1, 7, rows=6, batch=2, known=False)
    # A cache for a window that still holds all tokens.
    yield case("token_rolling", 1, 6, rows=8, outputs="y", local_window_size=3, sliding_window_cache=1)
    # Of rows that are not valid, the given cache's stay.
    feeds = {**operands(1), **caches(room), "n": np.array([3], np.int32), "t": np.array(4, np.int32)}
    want = {n: feeds[p].copy() for n, p in (("nk", "pk"), ("nv", "pv"))}
    for n, new in (("nk", "k"), ("nv", "v")):
        want[n][:, :, 3] = feeds[new].reshape(1, groups, size)
    yield simple("gqa_cache_rows", ms("GroupQueryAttention", "q k v pk pv n t", "y nk nv", **attrs), feeds, "nk nv",
                 expect="given", given=want)
    for name, epsilon, given in (("", 1e-6, {}), ("_own", 0.5, dict(qk_norm_epsilon=0.25, k_norm_epsilon=0.5))):
        yield simple(f"gqa_norms{name}", ms("GroupQueryAttention", ["q", "k", "v", "", "", "n", "t", *[""] * 7, "g", "h"], "y nk nv",
                                            **attrs, **given),
                     {**operands(1), "n": np.array([0], np.int32)}, "nk",
                     {"t": np.array(1, np.int32), "g": floats("gqa g", size), "h": floats("gqa hn", size)}, expect="given",
                     given={"nk": normed(operands(1)["k"].reshape(1, groups, 1, size), floats("gqa hn", size), epsilon)})
    uneven = {**operands(1), **caches(8), "n": np.array([3], np.int32), "t": np.array(4, np.int32)}
    uneven["pv"] = uneven["pv"][:, :, :6]
    yield refused("gqa_uneven_caches", model(graph([ms("GroupQueryAttention", "q k v pk pv n t", "y nk nv", name="here",
                                                       **attrs)], uneven, "y")), "here", "past_value", "as many rows")
    m = model(graph([ms("GroupQueryAttention", "q k v pk pv n t", "y nk nv", name="here", sliding_window_cache=1, local_window_size=4,
                        **attrs)], {**operands(1), **caches(8), "n": np.array([3], np.int32), "t": np.array(4, np.int32)}, "y"))
    yield refused("gqa_evicting", m, "here", "sliding_window_cache")


def quantized_caches():
    """Caches of 8 and 4 bits: onnxruntime computes them where keys and values are quantized alike, NumPy the others."""
    heads, groups, size, room = 4, 2, 16, 8
    names = ["q", "k", "v", "pk", "pv", "n", "t", "c", "s", "", "", "", "ks", "vs"]

    def stored(x, scale, bits):
        q = np.clip(np.rint(x / scale), -2 ** (bits - 1), 2 ** (bits - 1) - 1).astype(np.int8)
        return q if bits == 8 else ((q[..., ::2] + 8) + 16 * (q[..., 1::2] + 8)).astype(np.uint8)

    def read(q, scale, bits):
        if bits == 4:
            q = np.stack([q % 16, q // 16], -1).reshape(*q.shape[:-1], -1).astype(np.int8) - 8
        return q * scale.astype(np.float64)

    def operands(tokens, bits, how, batch=1):
        tag = f"gqq {tokens}{bits}{how}{batch}"
        count = dict(PER_TENSOR=(1,), PER_CHANNEL=(1, groups, 1, size))[how]
        feeds = {n: floats(f"{tag} {n}", batch, tokens, h * size) for n, h in (("q", heads), ("k", groups), ("v", groups))}
        scales = {n: np.abs(floats(f"{tag} {n}", *count)) / 2 ** (bits - 2) + np.float32(0.3 / 2 ** (bits - 1)) for n in ("ks", "vs")}
        wide = {n: floats(f"{tag} {n}", batch, groups, room, size) for n in ("pk", "pv")}
        return feeds, scales, {n: stored(wide[n], scales[s].reshape(-1, groups, 1, size) if how == "PER_CHANNEL" else scales[s], bits)
                               for n, s in (("pk", "ks"), ("pv", "vs"))}

    angle = np.arange(16)[:, None] / 100.0 ** (np.arange(8)[None] / 8)
    tables = {"c": np.cos(angle).astype(np.float32), "s": np.sin(angle).astype(np.float32)}

    def kinds(keys, values):
        return "y " + " ".join(f"{n}:{ {8: 'c', 4: 'B', 0: 'f'}[b] }" for n, b in (("nk", keys), ("nv", values)))

    def attributes(keys, values, bits):
        return dict(num_heads=heads, kv_num_heads=groups, k_quant_type=keys, v_quant_type=values, kv_cache_bit_width=bits)

    for how in ("PER_TENSOR", "PER_CHANNEL"):
        for bits in (8, 4):
            for name, tokens, past, batch, extra in (("token", 1, 3, 1, {}), ("tokens", 3, 4, 1, dict(do_rotary=1)),
                                                     ("ragged", 1, 5, 2, {}), ("window", 1, 6, 1, dict(local_window_size=3, softcap=1.5))):
                feeds, scales, caches = operands(tokens, bits, how, batch)
                feeds = {**feeds, **caches, "n": np.array([past + tokens - 1, 1][:batch], np.int32), "t": np.array(past + tokens, np.int32)}
                constants = {**scales, **(tables if extra.get("do_rotary") else {})}
                yield simple(f"gqa_{how.lower()}_{bits}_{name}",
                             ms("GroupQueryAttention", [n if n in feeds or n in constants else "" for n in names], "y nk nv",
                                **attributes(how, how, bits), **extra), feeds, "y", constants, rtol=1e-3, atol=1e-4)
            feeds, scales, caches = operands(5, bits, how)
            feeds.update({n: a[:, :, :0] for n, a in caches.items()}, n=np.array([4], np.int32))
            yield simple(f"gqa_{how.lower()}_{bits}_prompt",
                         ms("GroupQueryAttention", [n if n in feeds or n in scales or n == "t" else "" for n in names], "y nk nv",
                            **attributes(how, how, bits)), feeds, kinds(bits, bits),
                         {**scales, "t": np.array(5, np.int32)}, rtol=1e-3, atol=1e-4)
    # Keys for each channel, values with one scale; and keys alone.
    for bits in (8, 4):
        for values in ("PER_TENSOR", "NONE"):
            feeds, scales, caches = operands(1, bits, "PER_CHANNEL")
            ks, vs = scales["ks"].reshape(groups, 1, size), np.float32([0.4 / 2 ** (bits - 1)])
            keys, rows = caches["pk"].copy(), {n: apart(feeds[n], groups) for n in "kv"}
            keys[:, :, 3:4] = stored(rows["k"].astype(np.float32), ks, bits)
            wide = floats("gqq wide", 1, groups, room, size)
            old = wide if values == "NONE" else stored(wide, vs, bits)
            after = old.copy()
            after[:, :, 3:4] = rows["v"] if values == "NONE" else stored(rows["v"].astype(np.float32), vs, bits)
            known = after if values == "NONE" else read(after, vs, bits)
            k, v = (np.repeat(a[:, :, :4], heads // groups, 1) for a in (read(keys, ks, bits), known))
            constants = {"ks": scales["ks"], **({} if values == "NONE" else {"vs": vs})}
            yield simple(f"gqa_keys_{bits}_{values.lower()}",
                         ms("GroupQueryAttention", [n if n not in "cs" and (n != "vs" or n in constants) else "" for n in names],
                            "y nk nv", **attributes("PER_CHANNEL", values, bits)),
                         {**feeds, "pk": caches["pk"], "pv": old, "n": np.array([3], np.int32), "t": np.array(4, np.int32)},
                         kinds(bits, 0 if values == "NONE" else bits), constants, expect="given", rtol=1e-3, atol=1e-4,
                         given={"y": together(weighted(apart(feeds["q"], heads), k, v, True)).astype(np.float32), "nk": keys, "nv": after})
    yield from caches_of_floats(operands, attributes, names)
    feeds, scales, caches = operands(1, 8, "PER_TENSOR")
    feeds = {**feeds, **caches, "n": np.array([3], np.int32), "t": np.array(4, np.int32)}
    for name, words, changed, given in (
            ("kind", "PER_ROW", dict(k_quant_type="PER_ROW"), scales), ("bits", "kv_cache_bit_width is 2", dict(kv_cache_bit_width=2), scales),
            ("channels", "do not fit k_quant_type PER_CHANNEL", dict(k_quant_type="PER_CHANNEL"), scales),
            ("scales", "whose v_quant_type is NONE", dict(v_quant_type="NONE"), scales),
            ("missing", "needs scales", {}, {"ks": scales["ks"]}),
            ("cache", "a cache of uint8 for int8", {}, scales)):
        inputs = [n if n in feeds or n in given else "" for n in names]
        m = model(graph([ms("GroupQueryAttention", inputs, "y nk nv", name="here", **{**attributes("PER_TENSOR", "PER_TENSOR", 8), **changed})],
                        {n: a.view(np.uint8) if name == "cache" and n in ("pk", "pv") else a for n, a in feeds.items()}, "y", given))
        yield refused(f"gqa_quantized_{name}", m, "here", words)


def caches_of_floats(operands, attributes, names):
    """Caches of float8, by NumPy: onnxruntime's CPU provider has none. Elements beyond 448 times the scale are clipped."""
    heads, groups = 4, 2
    for how in ("PER_TENSOR", "PER_CHANNEL"):
        for name, tokens in (("token", 1), ("tokens", 3)):
            feeds, scales, _ = operands(tokens, 8, how)
            scales = {"ks": scales["ks"], "vs": scales["vs"] / 8}  # so small that some values are clipped
            wide = {n: floats(f"gqq {name} {n}", 1, groups, 8, 16, low=-300, high=300) for n in ("pk", "pv")}
            kept, real = {}, {}
            for cache, scale, new in (("pk", "ks", "k"), ("pv", "vs", "v")):
                by = scales[scale] if how == "PER_TENSOR" else scales[scale].reshape(groups, 1, 16)
                rows = (apart(feeds[new], groups).astype(np.float32) / by).clip(-448, 448)
                kept[cache] = wide[cache].astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
                kept[cache][:, :, 4:4 + tokens] = rows.astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
                real[cache] = np.repeat(kept[cache][:, :, :4 + tokens].astype(np.float64) * by, heads // groups, 1)
            seen = np.arange(4 + tokens) <= np.arange(4, 4 + tokens)[:, None]
            nodes = [node("Cast", "pk", "pk8", to=FLOAT8), node("Cast", "pv", "pv8", to=FLOAT8),
                     ms("GroupQueryAttention", [{"pk": "pk8", "pv": "pv8"}.get(n, n) if n not in "cs" else "" for n in names], "y nk8 nv8",
                        **attributes(how, how, 8)),
                     node("Cast", "nk8", "nk", to=FLOAT), node("Cast", "nv8", "nv", to=FLOAT)]
            yield simple(f"gqa_{how.lower()}_float8_{name}", nodes,
                         {**feeds, **wide, "n": np.array([3 + tokens], np.int32), "t": np.array(4 + tokens, np.int32)}, "y nk nv", scales,
                         opset=19, expect="given", rtol=1e-3, atol=1e-4,
                         given={"y": together(weighted(apart(feeds["q"], heads), real["pk"], real["pv"], seen)).astype(np.float32),
                                "nk": kept["pk"], "nv": kept["pv"]})
    nodes[2] = ms("GroupQueryAttention", [{"pk": "pk8", "pv": "pv8"}.get(n, n) if n not in "cs" else "" for n in names], "y nk8 nv8",
                  name="here", **attributes(how, how, 4))
    yield refused("gqa_float8_bits", model(graph(nodes, {**feeds, **wide, "n": np.array([6], np.int32), "t": np.array(7, np.int32)}, "y",
                                                 scales), 19), "here", "kv_cache_bit_width is 4 for a cache of float8e4m3fn")


def fixed_caches():
    """Rows written into caches of a fixed size, and attention whose mask follows from their places: places from the end, rows of which
    the mask hides every key, and places beyond the cache."""
    tokens = 2
    caches = {n: floats(f"room {n}", BATCH, HEADS, ROOM, SIZE) for n in ("pk", "pv")}
    new = {n: floats(f"room {n}", BATCH, HEADS, tokens, SIZE) for n in "qkv"}
    axes = [2, 0, 1, 3]

    def written(cache, rows, to):
        return [node("Transpose", cache, cache + "t", perm=axes), node("Transpose", rows, rows + "t", perm=axes),
                node("ScatterND", f"{cache}t places {rows}t", to + "t"), node("Transpose", to + "t", to, perm=[1, 2, 0, 3])]
    constants = {"steps": np.arange(tokens), "keys": np.arange(ROOM), "last": np.array([-1]), "root": np.float32(SIZE ** -0.5),
                 "none": np.float32(0), "one": np.float32(1), "some": np.array([True, True, False, True, True, True])}
    rows = [node("Add", "at steps", "rows"), node("Unsqueeze", "rows last", "places")]
    masks = {"where": [node("LessOrEqual", "keys places", "seen"), node("Where", "seen none low", "bias")],
             "sum": [node("LessOrEqual", "keys places", "seen"), node("Not", "seen", "unseen"), node("Cast", "unseen", "f", to=FLOAT),
                     node("Mul", "f low", "bias")],
             "hides": [node("Greater", "keys places", "unseen"), node("Where", "unseen low none", "bias")],
             "turned": [node("Greater", "places keys", "seen"), node("Where", "seen none low", "bias")],
             "and": [node("LessOrEqual", "keys places", "early"), node("And", "early some", "seen"), node("Where", "seen none low", "bias")],
             "two": [node("LessOrEqual", "keys places", "seen"), node("Where", "seen none low", "first"),
                     node("Where", "some none low", "second"), node("Add", "first second", "bias")]}
    attention = [node("Transpose", "nk", "columns", perm=[0, 1, 3, 2]), node("MatMul", "q columns", "products"), node("Mul", "products root", "scaled"),
                 node("Add", "scaled bias", "scores"), node("Softmax", "scores", "weights", axis=-1), node("MatMul", "weights nv", "y")]
    for name, mask in masks.items():
        for kind, low in (("finite", -3.0e38), ("infinite", -np.inf)):
            if kind == "infinite" and name in ("sum", "turned", "two"):  # products of 0 and infinity, rows without any key
                continue
            feeds = [{**caches, **new, "at": np.array(at)} for at in (1, 0, ROOM - tokens, -tokens, -4)]
            feeds = feeds[:3] if kind == "infinite" or name == "two" else feeds
            yield simple(f"fixed_cache_{name}_{kind}", [*rows, *written("pk", "k", "nk"), *written("pv", "v", "nv"), *mask, *attention],
                         feeds[0], "y nk nv", {**constants, "low": np.float32(low)}, more=feeds[1:],
                         fails=(({**feeds[0], "at": np.array(ROOM - 1)}, f"an update at {ROOM - 1} exceeds a cache of {ROOM}"),))


def normed(x, weight, epsilon=1e-6):
    x = x.astype(np.float64)
    return (x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * weight).astype(np.float32)


def cases():
    for make in (one_token, self_attention, group_query, quantized_caches, fixed_caches):
        yield from make()
