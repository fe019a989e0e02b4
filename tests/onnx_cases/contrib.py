"""Operators of com.microsoft beside attention and quantization; random constants; what surrounds constants of matrices.

Expected: of onnxruntime where it computes the operator on a CPU, else of the operator's formula in NumPy.
"""
import math

import numpy as np
from case import arr64, floats, graph, model, ms, node, refused, simple


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def group_norm(x, gamma, beta, groups, epsilon):
    """Channels last."""
    g = x.reshape(x.shape[0], -1, groups, x.shape[-1] // groups).astype(np.float64)
    mean, spread = g.mean((1, 3), keepdims=True), g.var((1, 3), keepdims=True)
    return ((g - mean) / np.sqrt(spread + epsilon)).reshape(x.shape) * gamma + beta


def diffusion():
    """What optimizers of diffusion models write, for GPUs alone."""
    x, skip = floats("gn x", 2, 5, 4, 8), floats("gn skip", 2, 5, 4, 8)
    k = {"g": floats("gn g", 8), "b": floats("gn b", 8), "c": floats("gn c", 8)}
    for activation in (0, 1):
        for last in (1, 0):
            norm = group_norm(x, k["g"], k["b"], 4, 1e-4)
            want = norm * sigmoid(norm) if activation else norm
            turn = (lambda a: a) if last else (lambda a: np.ascontiguousarray(a.transpose(0, 3, 1, 2)))
            yield simple(f"groupnorm_{activation}_{last}", ms("GroupNorm", "x g b", "y", groups=4, activation=activation,
                                                              channels_last=last, epsilon=1e-4), {"x": turn(x)},
                         constants={n: k[n] for n in "gb"}, expect="given", given={"y": turn(want).astype(np.float32)})
    for name, s in {"whole": skip, "pixels": skip[:, :1, :1], "rank_2": skip[:, 0, 0]}.items():
        total = x + (s if s.ndim == 4 else s[:, None, None]) + k["c"]
        norm = group_norm(total, k["g"], k["b"], 2, 1e-5)
        yield simple(f"skipgroupnorm_{name}", ms("SkipGroupNorm", "x g b s c", "y sum", groups=2, activation=1),
                     {"x": x, "s": s}, "y sum", k, expect="given",
                     given={"y": (norm * sigmoid(norm)).astype(np.float32), "sum": total})
    h, bias, rest = floats("bsg", 2, 3, 12), floats("bsg b", 12), floats("bsg r", 2, 3, 12)
    left, right = np.split((h + bias).astype(np.float64), 2, axis=2)
    gelu = right * 0.5 * (1 + np.vectorize(math.erf)(right / np.sqrt(2)))
    yield simple("biassplitgelu", ms("BiasSplitGelu", "x b", "y"), {"x": h}, constants={"b": bias}, expect="given",
                 given={"y": (left * gelu).astype(np.float32)})
    yield simple("biasadd", ms("BiasAdd", "x b s", "y"), {"x": h, "s": rest}, constants={"b": bias}, expect="given",
                 given={"y": h + bias + rest})
    image, w = floats("nhwc x", 1, 6, 5, 4), floats("nhwc w", 6, 4, 3, 3)
    p = dict(pads=[1, 1, 1, 1], kernel_shape=[3, 3])
    ports = {"x": image, "z": floats("nhwc z", 1, 6, 5, 6)}
    twin = lambda conv: [node("Transpose", "x", "t", perm=[0, 3, 1, 2]), conv,  # noqa: E731
                         node("Transpose", "u", "v", perm=[0, 2, 3, 1])]
    conv = node("Conv", "t wt b", "u", **p)
    plain = {"wt": w, "b": floats("nhwc b", 6)}
    for name, kernel in {"last": w.transpose(0, 2, 3, 1).copy(), "first": w}.items():
        yield simple(f"nhwcconv_{name}", ms("NhwcConv", "x w b", "y", **p), {"x": image},
                     constants={"w": kernel, "b": plain["b"]},
                     twin=(twin(conv) + [node("Identity", "v", "y")], plain, 17))
    pixels = np.random.default_rng(5).integers(-128, 128, size=(2, 9, 7, 5))
    for dtype, shift in {"int8": 0, "uint8": 128}.items():
        for name, pool in {"plain": {"kernel_shape": [2, 2], "strides": [2, 2]},
                        "padded": {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "dilations": [1, 2]},
                        "same": {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
                        "ceiling": {"kernel_shape": [2, 2], "strides": [3, 3], "ceil_mode": 1}}.items():
            yield simple(f"nhwcmaxpool_{dtype}_{name}", ms("NhwcMaxPool", "x", "y", **pool),
                         {"x": (pixels + shift).astype(dtype)}, {"int8": "y:c", "uint8": "y:B"}[dtype])
    yield simple("nhwcfusedconv", ms("NhwcFusedConv", "x w b z", "y", activation="LeakyRelu", activation_params=[0.25], **p),
                 ports, constants={"w": w, "b": plain["b"]},
                 twin=(twin(conv) + [node("Add", "v z", "s"), node("LeakyRelu", "s", "y", alpha=0.25)], plain, 17))


def matrices():
    rng = np.random.default_rng(3)
    for size in (1, 2, 3, 4):
        yield simple(f"inverse_{size}", ms("Inverse", "x", "y"), {"x": rng.normal(size=(3, size, size)).astype(np.float32)},
                     rtol=1e-3, atol=1e-3)
    big = rng.normal(size=(2, 8, 8)).astype(np.float32)
    x = floats("m x", 2, 8, 8)
    yield simple("inverse_constant", [ms("Inverse", "k", "i"), node("MatMul", "x i", "y")], {"x": x}, constants={"k": big},
                 rtol=1e-3, atol=1e-3)
    yield simple("det_constant", [node("Det", "k", "d"), node("Unsqueeze", "d a", "e"), node("Mul", "x e", "y")], {"x": x},
                 constants={"k": big, "a": arr64(1, 2)}, rtol=1e-3, atol=1e-3)
    yield refused("det_too_large", model(graph([node("Det", "x", "y", name="here")], {"x": x}, "y")), "here", "8",
                  "4 x 4", "before or after the model")
    a, b = floats("cd a", 5, 7), floats("cd b", 3, 7)
    for metric in ("sqeuclidean", "euclidean"):
        yield simple(f"cdist_{metric}", ms("CDist", "a b", "y", metric=metric), {"a": a, "b": b})
    yield simple("cdist_large", ms("CDist", "a b", "y"), {"a": floats("cd c", 300, 20), "b": floats("cd d", 200, 20)},
                 rtol=1e-3, atol=1e-3)
    c = floats("fm c", 2, 4, 5)
    for act, formula in {"Relu": lambda v: np.maximum(v, 0), "LeakyRelu": lambda v: np.where(v < 0, 0.3 * v, v),
                         "Tanh": np.tanh, "Softmax": lambda v: np.exp(v) / np.exp(v).sum(-1, keepdims=True)}.items():
        extra = {"activation_alpha": 0.3} if act == "LeakyRelu" else {}
        yield simple(f"fusedmatmulactivation_{act.lower()}",
                     ms("FusedMatMulActivation", "a c", "y", activation=act, alpha=0.5, transA=1, **extra),
                     {"a": floats("fm a", 2, 4, 3), "c": c}, expect="given",
                     given={"y": formula(0.5 * floats("fm a", 2, 4, 3).transpose(0, 2, 1) @ c).astype(np.float32)})


def movement():
    x = floats("mv x", 3, 4, 5)
    for axis in (0, 2, -1):
        yield simple(f"expanddims_{axis}", ms("ExpandDims", "x a", "y"), {"x": x}, constants={"a": np.int32(axis)})
    yield simple("ms_gathernd", ms("GatherND", "x i", "y"), {"x": x}, constants={"i": arr64(0, 2, 3, 1).reshape(1, 2, 2) % 3})
    yield simple("ms_unique", [ms("Unique", "c", "u i n"), node("Cast", "i", "f", to=1), node("Add", "x f", "y")],
                 {"x": floats("mv u", 6)}, "y u:l n:l", constants={"c": arr64(7, 1, 1, 9, 7, 3)},
                 expect="given", given={"y": floats("mv u", 6) + np.array([0, 1, 1, 2, 0, 3], np.float32),
                                        "u": arr64(7, 1, 9, 3), "n": arr64(2, 2, 1, 1)})
    image = floats("cr x", 2, 3, 6, 5)
    boxes = np.array([[0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1], [0.7, 0.9, 0.2, 0.1], [-0.3, 0.4, 1.2, 1.4]], np.float32)
    for mode in ("bilinear", "nearest"):
        for size in ((3, 4), (1, 2)):
            yield simple(f"cropandresize_{mode}_{size[0]}",
                         ms("CropAndResize", "x r b s", "y", mode=mode, extrapolation_value=0.5),
                         {"x": image, "r": boxes}, constants={"b": np.array([0, 1, 1, 0], np.int32),
                                                              "s": np.array(size, np.int32)})
    signal = floats("fft", 2, 3, 10)
    spectrum = np.fft.rfft(signal.astype(np.float64))
    pair = np.stack([spectrum.real, spectrum.imag], -1).astype(np.float32)
    attrs = dict(signal_ndim=1, normalized=0, onesided=1)
    yield simple("rfft", ms("Rfft", "x", "y", **attrs), {"x": signal}, expect="given", given={"y": pair})
    yield simple("irfft", ms("Irfft", "x", "y", **attrs), {"x": pair}, expect="given", given={"y": signal})
    for axes, shape in ((2, (2, 5, 8)), (2, (6, 7)), (3, (2, 4, 3, 6))):
        block = floats(f"fft{axes}", *shape)
        over = tuple(range(-axes, 0))
        spectrum = np.fft.rfftn(block.astype(np.float64), axes=over)
        pair = np.stack([spectrum.real, spectrum.imag], -1).astype(np.float32)
        attrs = dict(signal_ndim=axes, normalized=0, onesided=1)
        yield simple(f"rfft_{axes}_of_{len(shape)}", ms("Rfft", "x", "y", **attrs), {"x": block}, expect="given",
                     given={"y": pair})
        back = np.fft.irfftn(spectrum, axes=over)
        yield simple(f"irfft_{axes}_of_{len(shape)}", ms("Irfft", "x", "y", **attrs), {"x": pair}, expect="given",
                     given={"y": back.astype(np.float32)}, atol=1e-4)


def causal_states():
    x, w = floats("cc x", 2, 6, 5), floats("cc w", 6, 1, 3)
    b, past = floats("cc b", 6), floats("cc p", 2, 6, 2)
    yield simple("ms_causalconv", ms("CausalConvWithState", "x w b p", "y s", activation="silu"), {"x": x, "p": past},
                 "y s", {"w": w, "b": b})
    yield simple("ms_causalconv_dilated", ms("CausalConvWithState", ["x", "w", "b"], "y s", dilation=2), {"x": x}, "y s",
                 {"w": w, "b": b})
    yield simple("ms_causalconv_last", ms("CausalConvWithState", "x w b p", "y s", channels_last=1),
                 {"x": x.transpose(0, 2, 1).reshape(2, 5, 2, 3).copy(),
                  "p": past.transpose(0, 2, 1).reshape(2, 2, 2, 3).copy()}, "y s", {"w": w, "b": b})
    q, k, v = (floats(f"la {n}", 2, 3, 8) for n in "qkv")
    state = floats("la s", 2, 2, 4, 4)
    decay, beta = -np.abs(floats("la d", 2, 3, 2)), np.abs(floats("la b", 2, 3, 2)) / 2
    for rule, names in {"linear": ["q", "k", "v", "s"], "gated": ["q", "k", "v", "s", "d"],
                        "delta": ["q", "k", "v", "s", "", "b"], "gated_delta": ["q", "k", "v", "s", "d", "b"]}.items():
        feeds = {n: {"q": q, "k": k, "v": v, "s": state, "d": decay, "b": beta}[n] for n in names if n}
        yield simple(f"ms_linearattention_{rule}", ms("LinearAttention", names, "y t", q_num_heads=2, kv_num_heads=2,
                                                      update_rule=rule), feeds, "y t", rtol=1e-3, atol=1e-3)


def split_mix(seed, count):
    """The generator of docs/numerics.md."""
    state, out = int(np.float32(seed).view(np.uint32)), []
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        out.append(((z ^ z >> 31) >> 11) * 2.0**-53)
    return np.array(out)


def random_constants():
    x = floats("rnd", 4, 3)
    u = split_mix(7, 12)
    pairs = split_mix(7, 24).reshape(12, 2)
    normal = np.sqrt(-2 * np.log1p(-pairs[:, 0])) * np.cos(2 * np.pi * pairs[:, 1])
    for name, first, drawn in (
            ("RandomUniform", node("RandomUniform", [], "r", shape=[4, 3], seed=7.0, low=-1.0, high=3.0), -1 + 4 * u),
            ("RandomUniformLike", node("RandomUniformLike", "x", "r", seed=7.0), u),
            ("RandomNormal", node("RandomNormal", [], "r", shape=[4, 3], seed=7.0, mean=2.0, scale=0.5), 2 + 0.5 * normal),
            ("RandomNormalLike", node("RandomNormalLike", "x", "r", seed=7.0), normal)):
        yield simple(f"{name.lower()}_seed", [first, node("Add", "x r", "y")], {"x": x}, expect="given",
                     given={"y": (x + drawn.reshape(4, 3)).astype(np.float32)})
        del first.attribute[[a.name for a in first.attribute].index("seed")]
        first.name = "here"
        yield refused(f"{name.lower()}_unseeded", model(graph([first, node("Add", "x r", "y")], {"x": x}, "y")), "here",
                      "seed")


def standardized_weights():
    """BatchNormalization in training mode: of constant weights, as nf_regnet's exports have it, and of values."""
    w = floats("sw", 6, 3, 3, 3)
    # A bias of its own: onnxruntime moves the running mean in place, whoever else reads it.
    k = {"w": w, "rows": arr64(1, 6, -1), "back": arr64(6, 3, 3, 3), "g": floats("sw g", 6), "z": np.zeros(6, np.float32),
         "o": np.ones(6, np.float32), "b": np.zeros(6, np.float32)}
    norm = node("BatchNormalization", "r g b z o", ["n", "m", "v"], training_mode=1, epsilon=1e-6)
    yield simple("batchnorm_training_weights",
                 [node("Reshape", "w rows", "r"), norm, node("Reshape", "n back", "s"),
                  node("Conv", "x s", "y", pads=[1, 1, 1, 1])], {"x": floats("sw x", 1, 3, 7, 6)}, constants=k, opset=15)
    c = {"s": floats("bt s", 5), "b": floats("bt b", 5), "m": floats("bt m", 5), "v": np.abs(floats("bt v", 5)) + 0.5}
    yield simple("batchnorm_training_values", node("BatchNormalization", "x s b m v", "y rm rv", training_mode=1,
                                                   momentum=0.8), {"x": floats("bt x", 3, 5, 4, 2)}, "y rm rv", c, opset=15)


def cases():
    for make in (diffusion, matrices, movement, causal_states, random_constants, standardized_weights):
        yield from make()
