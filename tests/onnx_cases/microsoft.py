"""com.microsoft ops that optimized files hold; onnxruntime gives the expected outputs."""
import numpy as np
from case import floats, graph, ints, model, ms, node, refused, simple


def fused():
    x, w, b, z = floats("x", 1, 4, 7, 6), floats("w", 5, 4, 3, 3), floats("b", 5), floats("z", 1, 5, 7, 6)
    p = dict(pads=[1, 1, 1, 1])
    for act, params in (("Relu", None), ("Sigmoid", None), ("Tanh", None), ("LeakyRelu", [0.1]),
                        ("Clip", [-0.5, 1.5]), ("HardSigmoid", [0.2, 0.4])):
        extra = {"activation_params": params} if params else {}
        yield simple(f"fusedconv_{act.lower()}", ms("FusedConv", "x w b", "y", activation=act, **extra, **p), {"x": x},
                     constants={"w": w, "b": b})
    yield simple("fusedconv_add_relu", ms("FusedConv", "x w b z", "y", activation="Relu", **p), {"x": x, "z": z},
                 constants={"w": w, "b": b})
    a, c = floats("a", 2, 3, 4), floats("c", 2, 4, 5)
    yield simple("fusedmatmul_alpha", ms("FusedMatMul", "a c", "y", alpha=0.5), {"a": a, "c": c})
    yield simple("fusedmatmul_trans_b", ms("FusedMatMul", "a c", "y", transB=1, alpha=2.0),
                 {"a": a, "c": np.ascontiguousarray(c.transpose(0, 2, 1))})
    yield simple("fusedmatmul_trans_a", ms("FusedMatMul", "a c", "y", transA=1),
                 {"a": np.ascontiguousarray(a.transpose(0, 2, 1)), "c": c})
    yield simple("fusedmatmul_trans_batch", ms("FusedMatMul", "a c", "y", transBatchA=1, transA=1),
                 {"a": floats("ab", 4, 2, 3), "c": c}, wanted=True)
    g = {"w": floats("gw", 4, 5), "b": floats("gb", 5)}
    for act in ("Relu", "Sigmoid", "Tanh"):
        yield simple(f"fusedgemm_{act.lower()}", ms("FusedGemm", "x w b", "y", activation=act), {"x": floats("g", 3, 4)},
                     constants=g)
    yield simple("fusedgemm_leaky", ms("FusedGemm", "x w b", "y", activation="LeakyRelu", activation_alpha=0.2,
                                       alpha=0.5, beta=2.0), {"x": floats("g", 3, 4)}, constants=g)


def activations():
    x, b = floats("x", 3, 8, low=-4, high=4), floats("b", 8)
    yield simple("ms_gelu", ms("Gelu", "x", "y"), {"x": x})
    yield simple("ms_fastgelu", ms("FastGelu", "x", "y"), {"x": x})
    yield simple("ms_fastgelu_bias", ms("FastGelu", "x b", "y"), {"x": x}, constants={"b": b})
    yield simple("ms_biasgelu", ms("BiasGelu", "x b", "y"), {"x": x}, constants={"b": b})
    yield simple("ms_quickgelu", ms("QuickGelu", "x", "y", alpha=1.702), {"x": x})
    yield simple("ms_quickgelu_silu", ms("QuickGelu", "x", "y", alpha=1.0), {"x": x})


def norms():
    x, s = floats("x", 2, 5, 8), floats("s", 2, 5, 8)
    k = {"gamma": floats("gamma", 8), "beta": floats("beta", 8), "bias": floats("bias", 8)}
    pick = lambda *names: {n: k[n] for n in names}  # noqa: E731
    yield simple("skiplayernorm", ms("SkipLayerNormalization", "x s gamma beta", "y", epsilon=1e-5), {"x": x, "s": s},
                 constants=pick("gamma", "beta"))
    yield simple("skiplayernorm_bias_sum", ms("SkipLayerNormalization", ["x", "s", "gamma", "beta", "bias"],
                                              ["y", "", "", "sum"], epsilon=1e-5), {"x": x, "s": s}, "y sum", k)
    yield simple("skiplayernorm_no_beta", ms("SkipLayerNormalization", "x s gamma", "y"), {"x": x, "s": s},
                 constants=pick("gamma"))
    yield simple("skipsimplifiedlayernorm", ms("SkipSimplifiedLayerNormalization", ["x", "s", "gamma"],
                                               ["y", "", "", "sum"], epsilon=1e-6), {"x": x, "s": s}, "y sum",
                 pick("gamma"))
    yield simple("simplifiedlayernorm", node("SimplifiedLayerNormalization", "x gamma", "y", axis=-1, epsilon=1e-6),
                 {"x": x}, constants=pick("gamma"))
    yield simple("layernorm_early", node("LayerNormalization", "x gamma beta", "y", axis=-1, epsilon=1e-5), {"x": x},
                 constants=pick("gamma", "beta"), opset=12, twin=node("LayerNormalization", "x gamma beta", "y",
                                                                      axis=-1, epsilon=1e-5))
    ids, seg = ints("ids", 2, 5, high=10, dtype=np.int32), ints("seg", 2, 5, high=1, dtype=np.int32)
    tables = {"word": floats("word", 11, 8), "pos": floats("pos", 6, 8), "kind": floats("kind", 2, 8)}
    yield simple("embedlayernorm", ms("EmbedLayerNormalization", "ids seg word pos kind gamma beta", ["y", "mask"],
                                      epsilon=1e-5), {"ids": ids, "seg": seg}, "y",
                 {**tables, **pick("gamma", "beta")}, wanted=True)


def attention():
    x = floats("x", 2, 4, 8)
    yield simple("ms_attention", ms("Attention", "x w b", "y", num_heads=2), {"x": x},
                 constants={"w": floats("w", 8, 24, low=-0.5, high=0.5), "b": floats("b", 24)}, wanted=True)
    yield simple("ms_attention_unidirectional", ms("Attention", "x w b", "y", num_heads=2, unidirectional=1), {"x": x},
                 constants={"w": floats("w", 8, 24, low=-0.5, high=0.5), "b": floats("b", 24)}, wanted=True)
    q, k, v = floats("q", 2, 4, 8), floats("k", 2, 6, 8), floats("v", 2, 6, 8)
    yield simple("ms_multiheadattention", ms("MultiHeadAttention", "q k v", "y", num_heads=2),
                 {"q": q, "k": k, "v": v}, wanted=True)
    # ONNX's own, with scalings at the edges: a cap beside which every score is a denormal, and a negative scale.
    for name, scale in {"softcap": 8 ** -0.5, "negative_scale": -0.5}.items():
        given = {"softcap": 1e38} if name == "softcap" else {"scale": scale}
        scores = q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1) * scale
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        want = (weights / weights.sum(-1, keepdims=True) @ v).astype(np.float32)
        yield simple(f"attention_{name}", node("Attention", "q k v", "y", q_num_heads=1, kv_num_heads=1, **given),
                     {"q": q, "k": k, "v": v}, opset=24, expect="given", given={"y": want}, ir=10)
    pos = np.arange(4, dtype=np.int64)[None].repeat(2, 0)
    angle = np.arange(6)[:, None] / 10.0 ** np.arange(2)[None]
    yield simple("ms_rotary", ms("RotaryEmbedding", "x p c s", "y", num_heads=2),
                 {"x": x, "p": pos}, constants={"c": np.cos(angle).astype(np.float32),
                                                "s": np.sin(angle).astype(np.float32)}, wanted=True)


def quantized():
    f, u, c = np.float32, np.uint8, np.int8
    a, b = ints("a", 2, 3, 4, 5, high=255, dtype=u), ints("b", 2, 3, 4, 5, high=255, dtype=u)
    q = {"as": f(0.02), "az": u(120), "bs": f(0.03), "bz": u(130), "ys": f(0.05), "yz": u(110)}
    io = "a as az b bs bz ys yz"
    yield simple("qlinearadd", ms("QLinearAdd", io, "y"), {"a": a, "b": b}, "y:B", q, steps=1)
    yield simple("qlinearadd_broadcast", ms("QLinearAdd", io, "y"), {"a": a, "b": b[0, 0, 0]}, "y:B", q, steps=1)
    yield simple("qlinearmul", ms("QLinearMul", io, "y"), {"a": a, "b": b}, "y:B", q, steps=1)
    s = {k: (c(v.astype(np.int16) - 128) if v.dtype == u else v) for k, v in q.items()}
    yield simple("qlinearadd_int8", ms("QLinearAdd", io, "y"), {"a": (a.astype(np.int16) - 128).astype(c),
                                                                "b": (b.astype(np.int16) - 128).astype(c)}, "y:c", s,
                 steps=1)
    one = {k: q[k] for k in ("as", "az", "ys", "yz")}
    for op, extra in (("LeakyRelu", dict(alpha=0.1)), ("Sigmoid", {})):
        yield simple(f"qlinear{op.lower()}", ms(f"QLinear{op}", "a as az ys yz", "y", **extra), {"a": a}, "y:B", one,
                     steps=1)
    yield simple("qlinearglobalaveragepool", ms("QLinearGlobalAveragePool", "a as az ys yz", "y", channels_last=0),
                 {"a": a}, "y:B", one, steps=1)
    yield simple("qlinearaveragepool", ms("QLinearAveragePool", "a as az ys yz", "y", kernel_shape=[2, 2],
                                          strides=[2, 1]), {"a": a}, "y:B", one, steps=1)
    yield simple("qlinearconcat", ms("QLinearConcat", "ys yz a as az b bs bz", "y", axis=1), {"a": a, "b": b}, "y:B", q,
                 steps=1)
    yield simple("qlinearsoftmax", ms("QLinearSoftmax", "a as az ys yz", "y", axis=-1, opset=13), {"a": a}, "y:B",
                 {**one, "ys": f(1 / 256), "yz": u(0)}, steps=1, wanted=True)
    x = floats("x", 3, 8)
    yield simple("ms_qdq", [ms("QuantizeLinear", "x as az", "q"), ms("DequantizeLinear", "q as az", "y")], {"x": x},
                 constants=one)
    w, wz = ints("w", 8, 5, high=255, dtype=u), u(128)
    yield simple("matmulintegertofloat", ms("MatMulIntegerToFloat", "x w xs ws xz wz b", "y"),
                 {"x": ints("xi", 3, 8, high=255, dtype=u)},
                 constants={"w": w, "xs": f(0.02), "ws": f(0.01), "xz": u(127), "wz": wz, "b": floats("mb", 5)})
    yield simple("dynamicquantizematmul", ms("DynamicQuantizeMatMul", "x w ws wz b", "y"), {"x": x},
                 constants={"w": w, "ws": f(0.01), "wz": wz, "b": floats("mb", 5)}, wanted=True)
    yield simple("qgemm", ms("QGemm", "a as az w ws wz b ys yz", "y", transB=1),
                 {"a": a[0, 0]}, "y:B", {**one, "w": ints("gw", 6, 5, low=-127, high=127, dtype=c), "ws": f(0.01), "wz": c(0),
                                         "b": ints("gb", 6, low=-90, high=90, dtype=np.int32)}, steps=1)
    yield simple("qlinearwhere", ms("QLinearWhere", "m a as az b bs bz ys yz", "y"),
                 {"m": ints("mask", 2, 3, 4, 5, high=1) > 0, "a": a, "b": b}, "y:B", q, steps=1)
    image = {"w": ints("cw", 6, 3, 3, 3, low=-127, high=127, dtype=c), "ws": floats("cs", 6, low=0.002, high=0.01),
             "wz": np.zeros(6, c), "b": ints("cb", 6, low=-90, high=90, dtype=np.int32)}
    for last in (0, 1):
        yield simple(f"qlinearconv_last{last}", ms("QLinearConv", "a as az w ws wz ys yz b", "y", channels_last=last, pads=[1] * 4),
                     {"a": a.transpose(0, 2, 3, 1).copy() if last else a}, "y:B", {**one, **image}, steps=1)
    heads = {"w": ints("aw", 8, 24, high=255, dtype=u), "b": floats("ab", 24), "xs": f(0.02), "ws": f(0.004), "xz": u(127), "wz": u(120)}
    xq = ints("xq", 2, 4, 8, high=255, dtype=u)
    yield simple("qattention", ms("QAttention", ["x", "w", "b", "xs", "ws", "", "xz", "wz"], "y", num_heads=2), {"x": xq},
                 constants=heads, atol=2e-4)
    yield simple("qattention_masked", ms("QAttention", ["x", "w", "b", "xs", "ws", "m", "xz", "wz"], "y", num_heads=2,
                                         unidirectional=1),
                 {"x": xq, "m": np.array([[1, 1, 1, 0], [1, 1, 1, 1]], np.int32)}, constants=heads)
    columns = {"w": ints("aw", 8, 24, low=-127, high=127, dtype=c), "b": floats("ab", 24), "xs": f(0.02), "xz": u(127),
               "ws": floats("as", 24, low=0.002, high=0.006), "wz": np.zeros(24, c)}
    yield simple("qattention_columns", ms("QAttention", ["x", "w", "b", "xs", "ws", "", "xz", "wz"], "y", num_heads=2),
                 {"x": xq}, constants=columns, atol=2e-4)
    # Differs from onnxruntime's by what x and h lose there in 8 bits.
    gates = {"w": ints("lw", 1, 6, 20, low=-127, high=127, dtype=c), "r": ints("lr", 1, 5, 20, low=-127, high=127, dtype=c),
             "b": floats("lb", 1, 40), "ws": floats("ls", 1, low=0.004, high=0.005), "rs": floats("lt", 1, low=0.004, high=0.005),
             "z": np.zeros(1, c)}
    yield simple("dynamicquantizelstm", ms("DynamicQuantizeLSTM", ["x", "w", "r", "b", "", "", "", "", "ws", "z", "rs", "z"],
                                           ["y", "h"], hidden_size=5), {"x": floats("lx", 7, 2, 6)}, "y h", gates,
                 rtol=0.02, atol=0.02)
    real = {k: v for k, v in gates.items() if k == "b"}
    real.update({k: np.ascontiguousarray((gates[k].astype(np.float32) * gates[s]).transpose(0, 2, 1)) for k, s in (("w", "ws"), ("r", "rs"))})
    yield simple("dynamicquantizelstm_exact", ms("DynamicQuantizeLSTM", ["x", "w", "r", "b", "", "", "", "", "ws", "z", "rs", "z"],
                                                 ["y", "h"], hidden_size=5), {"x": floats("lx", 7, 2, 6)}, "y h", gates,
                 twin=(node("LSTM", "x w r b", "y h", hidden_size=5), real), rtol=1e-5)
    packed, scales = ints("pk", 6, 2, 16, high=255, dtype=u), floats("sc", 12, low=0.01, high=0.1)
    yield simple("matmulnbits_4", ms("MatMulNBits", "x w s", "y", K=64, N=6, bits=4, block_size=32),
                 {"x": floats("nb", 3, 64)}, constants={"w": packed, "s": scales}, wanted=True, rtol=1e-3, atol=1e-3)
    yield simple("matmulnbits_4_zero", ms("MatMulNBits", "x w s z", "y", K=64, N=6, bits=4, block_size=32),
                 {"x": floats("nb", 3, 64)}, constants={"w": packed, "s": scales, "z": ints("z", 6, high=255, dtype=u)},
                 wanted=True, rtol=1e-3, atol=1e-3)
    yield from bitsandbytes()
    yield from joined_products()
    ids = np.array([[3, 0, 171], [-1, 3, 64]])
    for bits in (2, 4, 8):
        table = {"t": ints(f"gbq{bits}", 300, 64 * bits // 8, high=255, dtype=u),
                 "s": floats("gbqs", 300, 4, low=0.01, high=0.1)}
        zeros = {"z": ints(f"gbqz{bits}", 300, 4 * bits // 8, high=255, dtype=u)}
        attrs = dict(bits=bits, block_size=16, gather_axis=0, quantize_axis=1)
        yield simple(f"gatherblockquantized_{bits}", ms("GatherBlockQuantized", "t i s", "y", **attrs), {"i": ids},
                     constants=table)
        yield simple(f"gatherblockquantized_{bits}_zero", ms("GatherBlockQuantized", "t i s z", "y", **attrs),
                     {"i": ids}, constants=table | zeros)


def bitsandbytes():
    """MatMulBnb4. The product with the identity gives every weight as it is."""
    for kind, name in enumerate(("fp4", "nf4")):
        for n, k, block in ((4, 32, 16), (6, 64, 64), (5, 24, 16), (3, 7, 16), (2, 5, 16), (40, 48, 128), (70, 192, 64)):
            constants = {"w": ints(f"bnb{kind}{k}", (n * k + 1) // 2, high=255, dtype=np.uint8),
                         "s": floats("bnbs", -(-n * k // block), low=0.01, high=2)}
            op = ms("MatMulBnb4", "x w s", "y", K=k, N=n, block_size=block, quant_type=kind)
            yield simple(f"matmulbnb4_{name}_{n}x{k}_by_{block}", op, {"x": np.eye(k, dtype=np.float32)}, constants=constants,
                         rtol=0, atol=0)
            yield simple(f"matmulbnb4_{name}_{n}x{k}_by_{block}_batch", op, {"x": floats("bnbx", 2, 3, k)},
                         constants=constants)
    x, w, s = floats("bnbx", 3, 32), ints("bnbr", 64, high=255, dtype=np.uint8), floats("bnbs", 8)
    for name, words, constants, attrs in (
            ("quant_type", "quant_type 2 is not FP4", {"w": w, "s": s}, {"quant_type": 2}),
            ("columns", "do not fit K 32, N 4", {"w": w[:60], "s": s}, {}), ("absmax", "do not fit K 32, N 4", {"w": w, "s": s[:7]}, {}),
            ("not_turned", "transB 0", {"w": w, "s": s}, {"transB": 0})):
        op = ms("MatMulBnb4", "x w s", "y", name="here", **({"K": 32, "N": 4, "block_size": 16, "quant_type": 1} | attrs))
        yield refused(f"matmulbnb4_{name}", model(graph([op], {"x": x}, "y", constants)), "here", words)


def joined_products():
    """MatMulNBitsMlp and MatMulNBitsQkv, which onnxruntime computes on WebGPU alone: their formulas in float64."""
    size, attrs = 64, dict(K=64, bits=4, block_size=32)
    sizes = {"g": 6, "u": 6, "q": 8, "k": 4, "v": 4}
    constants = {"n": floats("joined n", size)}
    for name, columns in sizes.items():
        constants |= {name + "w": ints(f"joined {name}", columns, 2, 16, high=255, dtype=np.uint8),
                      name + "s": floats(f"joined {name}s", columns * 2, low=0.01, high=0.1), name + "b": floats(f"joined {name}b", columns)}
    feeds = {"x": floats("joined x", 2, 3, size), "s": floats("joined skip", 2, 3, size)}

    def product(x, name, biased):
        w, s = constants[name + "w"].astype(np.int64), constants[name + "s"].astype(np.float64)
        q = np.stack([w % 16, w // 16], -1).reshape(sizes[name], 2, 32) - 8
        return x @ (q * s.reshape(sizes[name], 2, 1)).reshape(sizes[name], size).T + (constants[name + "b"] if biased else 0)

    for form, norm, skip, biased in (("plain", False, False, False), ("norm", True, False, True), ("skip", True, True, True)):
        x = feeds["x"].astype(np.float64) + (feeds["s"] if skip else 0)
        y = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-3) * constants["n"] if norm else x
        gate = product(y, "g", biased)
        given = {"y": gate / (1 + np.exp(-gate)) * product(y, "u", biased), "t": x,
                 **{n: product(y, n[1], biased) for n in ("oq", "ok", "ov")}}
        for op, names, outputs, more in (("Mlp", "gu", ["y"], dict(N=6, activation="silu")), ("Qkv", "qkv", ["oq", "ok", "ov"], dict(Nq=8, Nkv=4))):
            if op == "Qkv" and not norm:
                continue
            inputs = ["x", "s" if skip else "", "n" if norm else ""]
            for name in names:
                inputs += [name + "w", name + "s", name + "b" if biased else ""]
            wanted = outputs + (["t"] if skip else [])
            yield simple(f"matmulnbits{op.lower()}_{form}", ms("MatMulNBits" + op, inputs, wanted, epsilon=1e-3, **attrs, **more),
                         {n: feeds[n] for n in inputs if n in feeds}, " ".join(wanted), {n: constants[n] for n in inputs if n in constants},
                         expect="given", given={n: given[n].astype(np.float32) for n in wanted}, rtol=1e-3, atol=1e-3)
    inputs = ["x", "", "", "gw", "gs", "", "uw", "us", ""]
    used = {n: constants[n] for n in inputs if n in constants}
    for name, words, changed in (("activation", "activation 'gelu'", dict(activation="gelu")), ("sizes", "do not fit", dict(N=5)),
                                 ("sum", "needs a skip", dict(outputs=["y", "t"]))):
        more = dict(N=6, activation="silu", outputs=["y"]) | changed
        outputs = more.pop("outputs")
        m = model(graph([ms("MatMulNBitsMlp", inputs, outputs, name="here", **attrs, **more)], {"x": feeds["x"]}, " ".join(outputs), used))
        yield refused(f"matmulnbitsmlp_{name}", m, "here", words)


def others():
    yield simple("ms_trilu", ms("Trilu", "x", "y", upper=0), {"x": floats("x", 4, 5)}, wanted=True)
    yield simple("ms_pad", ms("Pad", "x p v", "y", mode="constant"), {"x": floats("x", 2, 3)},
                 constants={"p": np.array([0, 1, 1, 0]), "v": np.float32(0.5)}, wanted=True)
    yield simple("ms_gridsample", ms("GridSample", "x g", "y"), {"x": floats("x", 1, 2, 4, 5),
                                                               "g": floats("g", 1, 3, 3, 2, low=-1.1, high=1.1)},
                 wanted=True)


def cases():
    for make in (fused, activations, norms, attention, quantized, others):
        yield from make()
