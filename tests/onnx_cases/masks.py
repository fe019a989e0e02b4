"""Masks of com.microsoft's Attention and MultiHeadAttention: every documented form, filter and type.

Expected: of onnxruntime's formula in float64: a masked key's score gets mask_filter_value added, that of a key beyond a
causal query is the lowest float32. Of onnxruntime itself where float32 rounds to the same.
"""
import ml_dtypes
import numpy as np
from case import floats, ms, simple

BATCH, QUERIES, HEADS, SIZE = 2, 4, 2, 4
LOWEST = float(np.finfo(np.float32).min)
FILTERS = {"default": None, "lowest": LOWEST, "half": -65504.0}
TYPES = {"f32": ("f", np.float32, 1e-5), "f16": ("h", np.float16, 4e-3), "bf16": ("w", ml_dtypes.bfloat16, 3e-2)}


def masks(keys):
    """name -> (mask, where a key is kept [batch, 1 or queries, keys]); of batch entry 1 everything is masked."""
    at = np.arange(keys)
    keep = (np.arange(keys)[None] * [[3], [0]] % 4 != 0) & np.array([[True], [False]])
    square = np.random.default_rng(5).integers(0, 2, (BATCH, QUERIES, keys)) > 0
    square[0, :, 0], square[1, 1] = True, False
    return {
        "lengths": (np.array([keys - 2, 0], np.int32), np.stack([at < keys - 2, at < 0])[:, None]),
        "ends_and_starts": (np.array([keys, keys - 1, 2, keys - 1], np.int32),
                            np.stack([at >= 2, at < 0])[:, None]),
        "keys": (keep.astype(np.int32), keep[:, None]),
        "counts": ((keep * 3 - ~keep * 2).astype(np.int32), keep[:, None]),
        "queries_and_keys": (square.astype(np.int32), square),
    }


def heads_apart(x):
    return x.reshape(x.shape[0], x.shape[1], HEADS, -1).transpose(0, 2, 1, 3)


def attention(q, k, v, keep=None, bias=None, filter_value=None, causal=False, past=0):
    """In float64, heads apart; the result [batch, queries, heads * size]."""
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1])
    mask = np.zeros((BATCH, scores.shape[2], scores.shape[3]))
    if keep is not None:
        mask = mask + np.where(keep, 0, -10000.0 if filter_value is None else filter_value)
    if causal:
        for i in range(scores.shape[2] - 1):
            mask[:, i, past + i + 1:] = LOWEST
    scores = scores + mask[:, None] + (0 if bias is None else bias)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    y = weights / weights.sum(-1, keepdims=True) @ v
    return y.transpose(0, 2, 1, 3).reshape(y.shape[0], y.shape[2], -1)


def multi_head():
    keys = 6
    given = {n: floats(f"masks {n}", BATCH, length, HEADS * SIZE) for n, length in (("q", QUERIES), ("k", keys),
                                                                                   ("v", keys))}
    bias = floats("masks bias", 1, HEADS, QUERIES, keys)
    for kind, (letter, dtype, near) in TYPES.items():
        feeds = {n: a.astype(dtype) for n, a in given.items()}
        wide = [heads_apart(feeds[n].astype(np.float64)) for n in "qkv"]
        for name, (mask, keep) in masks(keys).items():
            if name == "ends_and_starts":
                continue
            for called, value in FILTERS.items():
                for added in (False, True):
                    if called == "half" and (added or name != "keys") or kind == "bf16" and called == "default":
                        continue
                    extra = {} if value is None else {"mask_filter_value": value}
                    more = {"a": bias.astype(dtype)} if added else {}
                    want = dict(expect="ort" if kind == "f32" and called == "lowest" else "given", given={"y": attention(
                        *wide, keep, more["a"].astype(np.float64) if added else None, value).astype(dtype)})
                    yield simple(f"mha_mask_{name}_{called}{'_bias' if added else ''}_{kind}",
                                 ms("MultiHeadAttention", ["q", "k", "v", "", "m", *more], "y", num_heads=HEADS,
                                    **extra), {**feeds, "m": mask, **more}, f"y:{letter}",
                                 rtol=near, atol=near, **want)
        boolean = masks(keys)["keys"][1][:, 0]
        yield simple(f"mha_mask_bool_{kind}", ms("MultiHeadAttention", ["q", "k", "v", "", "m"], "y", num_heads=HEADS,
                                                 mask_filter_value=LOWEST),
                     {**feeds, "m": boolean}, f"y:{letter}", rtol=near, atol=near, expect="given",
                     given={"y": attention(*wide, boolean[:, None], None, LOWEST).astype(dtype)})
        low = np.where(masks(keys)["queries_and_keys"][1][:, None], 0, ml_dtypes.finfo(dtype).min).astype(dtype)
        yield simple(f"mha_bias_of_lowest_{kind}", ms("MultiHeadAttention", ["q", "k", "v", "", "", "a"], "y",
                                                      num_heads=HEADS), {**feeds, "a": low}, f"y:{letter}", rtol=near,
                     atol=near, expect="given", given={"y": attention(*wide, None, low.astype(np.float64)).astype(dtype)})


def self_attention():
    x = floats("masks x", BATCH, QUERIES, 8)
    k = {"w": floats("masks w", 8, 3 * HEADS * SIZE, low=-0.5, high=0.5), "b": floats("masks b", 3 * HEADS * SIZE)}
    for kind in ("f32", "f16"):
        letter, dtype, near = TYPES[kind]
        for causal in (0, 1):
            for past in (0, 3):
                keys = QUERIES + past
                for name, (mask, keep) in masks(keys).items():
                    if kind == "f16" and name not in ("counts", "ends_and_starts", "queries_and_keys"):
                        continue
                    value = LOWEST if name != "counts" else None
                    feeds = {"x": x.astype(dtype), "m": mask}
                    inputs = ["x", "w", "b", "m"]
                    if past:
                        feeds["p"] = floats("masks past", 2, BATCH, HEADS, past, SIZE).astype(dtype)
                        inputs.append("p")
                    consts = {n: a.astype(dtype) for n, a in k.items()}
                    extra = {} if value is None else {"mask_filter_value": value}
                    wide = {n: a.astype(np.float64) for n, a in (consts | feeds).items()}
                    parts = [heads_apart(p) for p in np.split(wide["x"] @ wide["w"] + wide["b"], 3, axis=2)]
                    if past:
                        parts[1:] = [np.concatenate([wide["p"][i], parts[1 + i]], axis=2) for i in (0, 1)]
                    want = dict(expect="ort" if kind == "f32" and value else "given",
                                given={"y": attention(*parts, keep, None, value, causal, past).astype(dtype)})
                    yield simple(f"ms_attention_mask_{name}{'_causal' if causal else ''}{'_past' if past else ''}_{kind}",
                                 ms("Attention", inputs, ["y", "state"] if past else ["y"], num_heads=HEADS,
                                    unidirectional=causal, **extra), feeds, f"y:{letter}", consts, rtol=near, atol=near,
                                 **want)


def forms():
    """Operands of MultiHeadAttention packed in one; causal where queries and keys differ in number."""
    q, kv = floats("forms q", 2, 4, 8), floats("forms kv", 2, 4, HEADS, 2, SIZE)
    qkv, bias = floats("forms qkv", 2, 4, HEADS, 3, SIZE), floats("forms bias", 24)
    apart = lambda a: a.transpose(0, 2, 1, 3).astype(np.float64)  # noqa: E731
    together = attention(heads_apart(q).astype(np.float64), apart(kv[:, :, :, 0]), apart(kv[:, :, :, 1]))
    yield simple("mha_packed_kv", ms("MultiHeadAttention", "q kv", "y", num_heads=HEADS), {"q": q, "kv": kv},
                 expect="given", given={"y": together.astype(np.float32)})
    for biased in (False, True):
        parts = [apart(qkv[:, :, :, i] + (bias.reshape(3, HEADS, SIZE)[i] if biased else 0)) for i in range(3)]
        yield simple(f"mha_packed_qkv{'_bias' if biased else ''}",
                     ms("MultiHeadAttention", ["x", "", "", "b"] if biased else ["x"], "y", num_heads=HEADS), {"x": qkv},
                     constants={"b": bias} if biased else {}, expect="given",
                     given={"y": attention(*parts).astype(np.float32)})
    k = {n: floats(f"forms {n}", 2, 6, 8) for n in "kv"}
    yield simple("mha_causal_more_keys", ms("MultiHeadAttention", "q k v", "y", num_heads=HEADS, unidirectional=1),
                 {"q": q, **k})
    past = {n: floats(f"forms past {n}", 2, HEADS, 3, SIZE) for n in ("pk", "pv")}
    yield simple("mha_causal_past", ms("MultiHeadAttention", ["q", "k", "v", "b", "", "", "pk", "pv"], ["y", "nk", "nv"],
                                       num_heads=HEADS, unidirectional=1),
                 {"q": q, "k": k["k"][:, :4], "v": k["v"][:, :4], **past}, "y nk nv", {"b": bias})


def cases():
    for make in (multi_head, self_attention, forms):
        yield from make()
