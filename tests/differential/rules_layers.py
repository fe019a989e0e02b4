"""Rules of recurrent layers, attention, quantization and spectra."""
import numpy as np

from draw import Impossible, rule


@rule("LSTM", "GRU", "RNN")
def recurrent(d):
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[d.op]
    direction = d.opt("direction", "forward", "reverse", "bidirectional", default="forward")
    dirs = 2 if direction == "bidirectional" else 1
    layout = d.opt("layout", 0, 0, 1, default=0)
    t, b, size, h = d.r.randint(1, 4), d.r.randint(1, 3), d.r.randint(1, 4), d.r.randint(1, 4)
    d.attr("hidden_size", h)
    d.opt("clip", 0.5, 3.0), d.opt("linear_before_reset", 0, 1), d.opt("input_forget", 0, 0, 1)
    if d.r.random() < 0.3:
        per = {"LSTM": 3, "GRU": 2, "RNN": 1}[d.op] * dirs
        names = ["Sigmoid", "Tanh", "Relu", "HardSigmoid", "LeakyRelu", "Elu", "Softsign", "Softplus", "Affine", "ScaledTanh", "ThresholdedRelu"]
        chosen = [d.r.choice(names) for _ in range(per)]
        d.attr("activations", chosen)
        if any(x in names[3:6] + names[8:] for x in chosen) and d.r.random() < 0.6:
            both = {"HardSigmoid": (0.3, 0.4), "Affine": (0.5, 0.1), "ScaledTanh": (0.8, 0.6)}
            one = {"LeakyRelu": 0.1, "Elu": 0.7, "ThresholdedRelu": 0.3}
            d.attr("activation_alpha", [both[x][0] if x in both else one[x] for x in chosen if x in both or x in one])
            beta = [both[x][1] for x in chosen if x in both]
            d.attr("activation_beta", beta) if beta else None
    d.special = d.empty = False
    swap = (lambda s: (s[1], s[0], *s[2:])) if layout else (lambda s: s)
    d.floats(swap((t, b, size)))
    d.floats((dirs, gates * h, size), constant=d.r.random() < 0.8), d.floats((dirs, gates * h, h), constant=d.r.random() < 0.8)
    last = d.r.randint(3, {"LSTM": 8, "GRU": 6, "RNN": 6}[d.op])
    shapes = [(dirs, 2 * gates * h), None, swap((dirs, b, h)), swap((dirs, b, h)), (dirs, 3 * h)]
    for i in range(3, last):
        if d.r.random() < 0.3:
            d.inp(None)
        elif i == 4:
            d.inp(d.n.integers(1, t + 1, b).astype("i4"))
        else:
            d.floats(shapes[i - 3], index=0)
    count = 3 if d.op == "LSTM" else 2
    names = [f"y{i}" if d.r.random() < 0.8 else "" for i in range(count)]
    while names and not names[-1]:
        names.pop()
    d.outputs = names or ["y0"]


@rule("QuantizeLinear", "DequantizeLinear")
def quantize(d):
    x = d.shape(1, 4)
    axis = d.axis(len(x)) if d.has("axis") else 1
    axis = 1 if axis is None else axis
    form = d.r.choice(("one", "one", "axis", "blocks")) if d.has("axis") else "one"
    if not -len(x) <= axis < len(x) or x[axis] == 0:
        form = "one"
    d.special = False
    shape = () if form == "one" else (x[axis],)
    if form == "blocks":
        if d.opset < 21:
            raise Impossible
        size = d.r.randint(1, x[axis])
        d.attr("block_size", size)
        shape = list(x)
        shape[axis] = -(-x[axis] // size)
    d.opt("saturate", 1)
    d.opt("output_dtype", 0, given=0.2)
    wide = d.opset >= 19
    if d.op == "QuantizeLinear":
        _, kinds = d.allowed(2) if len(d.schema.inputs) > 2 else ("", ["u1"])
        kind = np.dtype(d.r.choice([k for k in kinds if k in ("u1", "i1", "i2", "u2")]))
        s = d.type(0) if wide and d.type(0).kind == "f" else np.dtype("f4")
        d.inp(d.array(x, d.type(0), -8.0, 8.0))
        d.inp(d.n.uniform(0.02, 0.2, shape).astype(s))
        if d.r.random() < 0.7:
            d.inp(d.n.integers(0 if kind.kind == "u" else -20, 20, shape, endpoint=True).astype(kind))
        return
    _, kinds = d.allowed(0)
    kind = np.dtype(d.r.choice(kinds))
    bounds = np.iinfo(kind)
    s = np.dtype(d.r.choice(("f4", "f2"))) if wide else np.dtype("f4")
    d.inp(d.n.integers(bounds.min if kind != np.int32 else -9999, bounds.max if kind != np.int32 else 9999, x, endpoint=True).astype(kind))
    d.inp(d.n.uniform(0.01, 1.0, shape).astype(s))
    if d.r.random() < 0.7:
        d.inp(d.n.integers(0 if kind.kind == "u" or kind == np.int32 else -20, 0 if kind == np.int32 else 20, shape, endpoint=True).astype(kind))


@rule("Attention")
def attention(d):
    b, kv, ratio = d.r.randint(1, 2), d.r.randint(1, 2), d.r.choice((1, 1, 2))
    q, m, n, size, v = kv * ratio, d.r.randint(1, 4), d.r.randint(1, 5), d.r.randint(1, 4), d.r.randint(1, 4)
    flat = d.r.random() < 0.3
    d.special = d.empty = False
    past = d.r.randint(1, 3) if d.r.random() < 0.3 else 0
    d.opt("is_causal", 0, 1), d.opt("scale", 0.5, 1.0, 2.0), d.opt("softcap", 0.0, 2.0)
    mode = d.opt("qk_matmul_output_mode", 0, 1, 2, 3)
    if d.has("left_window_size") and d.r.random() < 0.2:
        d.attr("left_window_size", d.r.randint(0, 3))
        d.opt("right_window_size", 0, 1, -1)
    d.opt("softmax_precision", 1, given=0.2)
    if flat:
        d.attr("q_num_heads", q), d.attr("kv_num_heads", kv)
        d.floats((b, m, q * size), constant=False), d.floats((b, n, kv * size)), d.floats((b, n, kv * v))
    else:
        d.floats((b, q, m, size), constant=False), d.floats((b, kv, n, size)), d.floats((b, kv, n, v))
    if past or d.r.random() < 0.5:
        total = n + past
        mask_shape = d.r.choice(((m, total), (1, 1, m, total), (b, q, m, total), (b, 1, m, total), (q, m, total)))
        kind = d.type(3)
        mask = d.array(mask_shape, kind)
        if kind.kind == "b":
            mask[..., 0] = True
        d.inp(mask if d.r.random() < 0.7 else None)
    if past:
        d.floats((b, kv, past, size), index=0), d.floats((b, kv, past, v), index=2)
        d.outputs = ["y0", "y1", "y2"]
    else:
        d.outputs = ["y0"]
    if mode is not None and d.r.random() < 0.2:
        d.outputs = [*d.outputs, "", ""][:3] + ["y3"]


@rule("RotaryEmbedding")
def rotary(d):
    b, heads, t, size = d.r.randint(1, 2), d.r.randint(1, 2), d.r.randint(1, 4), 2 * d.r.randint(1, 3)
    rotary_dim = d.opt("rotary_embedding_dim", 0, 2, default=0)
    d.opt("interleaved", 0, 1)
    half = (rotary_dim or size) // 2
    d.special = d.empty = False
    flat = d.r.random() < 0.4
    if flat:
        d.attr("num_heads", heads)
    d.floats((b, t, heads * size) if flat else (b, heads, t, size))
    if d.r.random() < 0.6:
        d.floats((8, half), index=0), d.floats((8, half), index=0), d.inp(d.n.integers(0, 8, (b, t)).astype("i8"))
    else:
        d.floats((b, t, half), index=0), d.floats((b, t, half), index=0)


@rule("DFT")
def dft(d):
    one_sided = d.opt("onesided", 0, 1)
    inverse = d.opt("inverse", 0, 0, 1)
    if one_sided and inverse:
        raise Impossible
    x = (d.r.randint(1, 2), *(d.r.randint(2, 6) for _ in range(d.r.randint(1, 2))), 1 if one_sided else d.r.randint(1, 2))
    axis = d.r.randint(1, len(x) - 2)
    d.special = False
    d.floats(x)
    length = d.r.randint(2, 7) if d.r.random() < 0.4 else None
    if d.has("axis"):
        d.attr("axis", axis)
        d.ints(length) if length else None
        return
    d.ints(length) if length else d.inp(None)
    d.ints(axis - len(x) * d.r.randint(0, 1))


@rule("STFT")
def stft(d):
    n, frame = d.r.randint(8, 16), d.r.randint(2, 6)
    d.special = False
    one_sided = d.opt("onesided", 0, 1, default=1)
    d.floats((d.r.randint(1, 2), n, 1 if one_sided or d.r.random() < 0.5 else 2))
    d.ints(d.r.randint(1, 3), d.type(1))
    window_given = d.r.random() < 0.5
    d.floats((frame,), index=0, low=0.1, high=1.0) if window_given else d.inp(None)
    if not window_given or d.r.random() < 0.5:
        d.ints(frame, d.type(1))


@rule("LinearAttention")
def linear_attention(d):
    b, t, kv, ratio, k, v = d.r.randint(1, 2), d.r.randint(1, 4), d.r.randint(1, 2), d.r.choice((1, 2)), d.r.randint(1, 3), d.r.randint(1, 3)
    update = d.opt("update_rule", "linear", "gated", "delta", "gated_delta", default="gated_delta")
    d.attr("q_num_heads", kv * ratio), d.attr("kv_num_heads", kv)
    d.opt("scale", 0.5, 1.0), d.opt("chunk_size", 2, 64)
    d.special = d.empty = False
    d.floats((b, t, kv * ratio * k), constant=False), d.floats((b, t, kv * k), low=-0.5, high=0.5), d.floats((b, t, kv * v))
    d.floats((b, kv, k, v)) if d.r.random() < 0.5 else d.inp(None)
    d.floats((b, t, kv * (k if d.r.random() < 0.5 else 1)), low=-1.0, high=0.0) if "gated" in update else d.inp(None)
    d.floats((b, t, kv), low=0.0, high=1.0) if "delta" in update else None
    d.outputs = ["y0", "y1"]


@rule("CausalConvWithState")
def causal_conv(d):
    b, c, t, k = d.r.randint(1, 2), d.r.randint(1, 3), d.r.randint(1, 5), d.r.randint(1, 4)
    d.opt("activation", "none", "silu", "swish")
    d.special = d.empty = False
    d.floats((b, c, t)), d.floats((c, 1, k))
    d.floats((c,)) if d.r.random() < 0.5 else d.inp(None)
    d.floats((b, c, k - 1)) if d.r.random() < 0.5 and k > 1 else None
    d.outputs = ["y0", "y1"]


@rule("MelWeightMatrix")
def mel(d):
    d.opt("output_datatype", 1, 11)
    d.ints(d.r.randint(2, 6), d.type(0), True), d.ints(d.r.choice((16, 32)), d.type(0), True), d.ints(8000, d.type(0), True)
    d.ints(0.0, d.type(3), True), d.ints(4000.0, d.type(3), True)
