#!/usr/bin/env python3
"""sinter convert --quantize int8w to int3w: weights in 8 to 3 bits, activations in float, or with --activations int8 rounded.

    weights.py [--sinter PROGRAM]

What the weights became is read off by multiplying unit vectors; with these weights onnxruntime must give what sinter
gives, and they must be within a bound of the original ones that follows from the step of their block.
"""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
import pinned  # noqa: E402

pinned.require()
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
import sinter_cli as cli  # noqa: E402
import suite  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402

F, I = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
R = np.random.default_rng(11)


def normal(*shape, scale=1.0):
    return R.normal(0, scale, shape).astype("f")


def model(nodes, x, out, **weights):
    kind = I if x.dtype == np.int64 else F
    m = helper.make_model(helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", kind, x.shape)],
        [helper.make_tensor_value_info("y", F, out)],
        [numpy_helper.from_array(w, name) for name, w in weights.items()]),
        opset_imports=[helper.make_opsetid("", 18)])
    m.ir_version = 8
    return m


def node(kind, *inputs, **attributes):
    return helper.make_node(kind, list(inputs), ["y"], name=kind.lower(), **attributes)


def impulses(channels):
    """[channels, channels, 3, 3]: sample c is 1 in the middle of channel c."""
    x = np.zeros((channels, channels, 3, 3), "f")
    x[np.arange(channels), np.arange(channels), 1, 1] = 1
    return x


class Layer:
    """One node, an input that shows its weights, how to read them off, and blocks that a bound is taken over."""

    def __init__(self, name, nodes, weights, probe, out, read, rows, packed):
        self.name, self.nodes, self.weights, self.probe = name, nodes, weights, probe
        self.out, self.read, self.rows, self.packed = out, read, rows, packed


def layers():
    w = normal(48, 200)
    yield Layer("Gemm", [node("Gemm", "x", "w", transB=1)], w, np.eye(200, dtype="f"), (200, 48), lambda y: y.T,
                lambda v: v, True)
    w = normal(200, 48)
    yield Layer("MatMul", [node("MatMul", "x", "w")], w, np.eye(200, dtype="f"), (200, 48), lambda y: y,
                lambda v: v.T, True)
    w = (normal(48, 200) + 2).astype("f")
    yield Layer("Gemm with weights off zero", [node("Gemm", "x", "w", transB=1)], w, np.eye(200, dtype="f"), (200, 48),
                lambda y: y.T, lambda v: v, True)
    w = normal(48, 199)
    yield Layer("Gemm of odd depth", [node("Gemm", "x", "w", transB=1)], w, np.eye(199, dtype="f"), (199, 48),
                lambda y: y.T, lambda v: v, False)
    w = normal(300, 64)
    yield Layer("Gather", [node("Gather", "w", "x")], w, R.permutation(300), (300, 64), None, lambda v: v, True)
    w = normal(64, 64, 1, 1)
    yield Layer("Conv 1x1", [node("Conv", "x", "w")], w, impulses(64), (64, 64, 3, 3),
                lambda y: y[:, :, 1, 1].T[:, :, None, None], lambda v: v[:, :, 0, 0], True)
    w = normal(24, 16, 3, 3)
    yield Layer("Conv 3x3", [node("Conv", "x", "w", pads=[1] * 4)], w, impulses(16), (16, 24, 3, 3),
                lambda y: y[:, :, ::-1, ::-1].transpose(1, 0, 2, 3), lambda v: v.reshape(24, -1), False)
    w = normal(128, 1, 3, 3)
    one = np.zeros((1, 128, 3, 3), "f")
    one[:, :, 1, 1] = 1
    yield Layer("depthwise Conv", [node("Conv", "x", "w", pads=[1] * 4, group=128)], w, one, (1, 128, 3, 3),
                lambda y: y[0, :, None, ::-1, ::-1], lambda v: v.reshape(128, 9), False)
    w = normal(16, 24, 3, 3)
    yield Layer("ConvTranspose", [node("ConvTranspose", "x", "w", pads=[1] * 4)], w, impulses(16), (16, 24, 3, 3),
                lambda y: y, lambda v: v.transpose(1, 0, 2, 3).reshape(24, -1), False)


class Suite(suite.Suite):
    def convert(self, onnx_model, *more, out="q.sinter"):
        onnx.save(onnx_model, self.path("m.onnx"))
        result = cli.call(self.sinter, "convert", self.path("m.onnx"), "-o", self.path(out), "--json", *more, timeout=120)
        return (json.loads(result.out)["quantized"] if result.code == 0 else None), result

    def run(self, x, *more):
        np.savez(self.path("x.npz"), x=x)
        result = cli.call(self.sinter, "run", self.path("q.sinter"), "--inputs", self.path("x.npz"), "--outputs",
                        self.path("y.npz"), "--quiet", *more)
        return np.load(self.path("y.npz"))["y"] if result.code == 0 else result.why()


def exact(onnx_model, x):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(onnx_model.SerializeToString(), options).run(None, {"x": x})[0]


def one_layer(s, layer, bits):
    mode, what = f"int{bits}w", f"{layer.name}, int{bits}w"
    made = model(layer.nodes, layer.probe, layer.out, w=layer.weights)
    quantized, result = s.convert(made, "--quantize", mode)
    if not quantized:
        return s.check(what, False, result.why())
    reason = quantized["layers"][0]["detail"] if quantized["layers"] else ""
    four = bits == 4 and layer.packed
    s.check(f"{what}: {reason}", reason.startswith("4 bits" if four else "8 bits"), quantized)
    y = s.run(layer.probe)
    if isinstance(y, str):
        return s.check(what, False, y)
    if layer.read is None:
        w = np.empty_like(layer.weights)
        w[layer.probe] = y
    else:
        w = np.ascontiguousarray(layer.read(y))
    # Blocks of 32 in 4 bits, else rows (which may be cut into blocks, for less error).
    before, after = layer.rows(layer.weights), layer.rows(w)
    block, steps = (32, 7) if four else (before.shape[1], 127)
    bad, levels = 0, 0
    for row, now in zip(before, after):
        for k in range(0, len(row), block):
            a, b = row[k:k + block].astype(float), now[k:k + block].astype(float)
            # The search takes what a plain grid over the block gives if it finds nothing better.
            step = np.abs(a).max() / steps
            plain = np.sum((a - np.clip(np.round(a / step), -steps, steps) * step) ** 2)
            bad += np.sum((a - b) ** 2) > 1.05 * plain + 1e-12
            levels = max(levels, len(np.unique(b)))
    s.check(f"{what}: no block is further off than with the plain step", bad == 0, bad)
    if four:
        s.check(f"{what}: 16 levels at most", levels <= 16, levels)
    x = R.permutation(layer.probe) if layer.probe.dtype == np.int64 else normal(*layer.probe.shape)
    want = exact(model(layer.nodes, layer.probe, layer.out, w=w.astype("f")), x)
    for backend in [], ["--backend", "reference"]:
        got = s.run(x, *backend)
        error = got if isinstance(got, str) else np.abs(got - want).max() / np.abs(want).max()
        s.check(f"{what}: as onnxruntime with these weights {' '.join(backend)}",
                not isinstance(error, str) and error < 2e-6, error)


def recurrent(s):
    x = normal(12, 1, 40)
    for kind, gates in ("LSTM", 4), ("GRU", 3), ("RNN", 1):
        nodes = [helper.make_node(kind, ["x", "w", "r"], ["h"], hidden_size=64, name=kind),
                 helper.make_node("Squeeze", ["h", "axes"], ["y"])]
        made = model(nodes, x, (12, 1, 64), w=normal(1, gates * 64, 40, scale=0.2), r=normal(1, gates * 64, 64, scale=0.1),
                     axes=np.array([1]))
        quantized, result = s.convert(made, "--quantize", "int8w")
        got = s.run(x) if quantized else result.why()
        if isinstance(got, str):
            s.check(kind, False, got)
            continue
        want = exact(made, x)
        db = 10 * np.log10(np.sum(want ** 2) / np.sum((want - got) ** 2))
        s.check(f"{kind}: {db:.1f} dB SQNR", db > 35, db)
        s.check(f"{kind}: both matrices are narrow", [l["integer"] for l in quantized["layers"]] == [True, True],
                quantized["layers"])
        w = quantized["weights"]
        s.check(f"{kind}: a quarter of the bytes", w["bytes_after"] < 0.3 * w["bytes_before"], w)


def experts(s):
    """The weights of all experts, also of a float16 model, whose activations are cast."""
    x, wide = normal(16, 64), {"v": normal(4, 96, 64, scale=0.1), "w": normal(4, 64, 96, scale=0.1)}
    router, attrs = normal(64, 4), dict(k=2, activation_type="silu", domain="com.microsoft")

    def mixture(nodes, inputs, output, weights):
        m = model([helper.make_node("MatMul", ["x", "m"], ["scores"]), *nodes,
                   helper.make_node("MoE", inputs, [output], **attrs)], x, (16, 64), m=router, **weights)
        m.opset_import.append(helper.make_opsetid("com.microsoft", 1))
        return m

    plain = mixture([], ["x", "scores", "v", "", "w"], "y", wide)
    to = onnx.TensorProto.FLOAT16
    half = mixture([helper.make_node("Cast", ["x"], ["a"], to=to), helper.make_node("Cast", ["scores"], ["r"], to=to)],
                   ["a", "r", "v", "", "w"], "b", {n: a.astype(np.float16) for n, a in wide.items()})
    half.graph.node.append(helper.make_node("Cast", ["b"], ["y"], to=F))
    for kind, made in (np.float32, plain), (np.float16, half):
        want = exact(plain, x)
        for mode, least, share in ("int8w", 35, 0.3), ("int4w", 15, 0.2):
            what = f"experts of {np.dtype(kind).name}, {mode}"
            quantized, result = s.convert(made, "--quantize", mode)
            got = s.run(x) if quantized else result.why()
            if isinstance(got, str):
                s.check(what, False, got)
                continue
            db = 10 * np.log10(np.sum(want ** 2) / np.sum((want - got) ** 2))
            s.check(f"{what}: {db:.1f} dB SQNR", db > least, db)
            details = [l["detail"] for l in quantized["layers"] if l["op"] == "ExpertFullyConnected"]
            s.check(f"{what}: both projections", len(details) == 2 and all(d.startswith(mode[3] + " bits") for d in details),
                    quantized["layers"])
            size = os.path.getsize(s.path("q.sinter"))
            s.check(f"{what}: {size} bytes", size < share * sum(a.nbytes for a in wide.values()) + 8000, size)


def whole(s):
    """An embedding that is also the output's matrix, with data to measure with."""
    table, inner, bias = normal(500, 64), normal(64, 64, scale=0.1), normal(500)
    x = R.integers(0, 500, (1, 16))
    nodes = [helper.make_node("Gather", ["table", "x"], ["a"]), helper.make_node("MatMul", ["a", "inner"], ["b"]),
             helper.make_node("Transpose", ["table"], ["turned"]), helper.make_node("MatMul", ["b", "turned"], ["c"]),
             helper.make_node("Add", ["c", "bias"], ["y"])]
    made = model(nodes, x, (1, 16, 500), table=table, inner=inner, bias=bias)
    np.savez(s.path("c.npz"), x=R.integers(0, 500, (8, 16)))
    want = exact(made, x)
    for mode, least, share in ("int8w", 35, 0.28), ("int4w", 15, 0.18):
        quantized, result = s.convert(made, "--quantize", mode, "--calibrate", s.path("c.npz"))
        if not quantized:
            s.check(f"a language model's ends, {mode}", False, result.why())
            continue
        got = s.run(x)
        db = 10 * np.log10(np.sum(want ** 2) / np.sum((want - got) ** 2))
        told = quantized["outputs"][0]["sqnr_db"]
        s.check(f"a language model's ends, {mode}: {db:.1f} dB, reported {told:.1f}", db > least and abs(db - told) < 2)
        s.check(f"{mode}: its report", quantized["mode"] == mode and quantized["measured_samples"] == 8, quantized)
        size = os.path.getsize(s.path("q.sinter"))
        s.check(f"{mode}: the table is in the file once, {size} bytes", size < share * (table.nbytes + inner.nbytes) + 8000,
                size)
        s.convert(made, "--quantize", mode, out="again.sinter")
        s.check(f"{mode}: the same file twice, with data or without",
                open(s.path("q.sinter"), "rb").read() == open(s.path("again.sinter"), "rb").read())
    quantized, result = s.convert(made, "--quantize", "int4w", "--block", "64")
    s.check("--block 64", quantized and "64 to a scale" in quantized["layers"][0]["detail"], result.why())


def decibels(want, got):
    return 10 * np.log10(np.sum(want ** 2) / np.sum((want - got) ** 2))


def widths(s):
    """Weights of 3, 5 and 6 bits, and activations in 8."""
    w, x = normal(96, 256), normal(3, 256)
    made = model([node("Gemm", "x", "w", transB=1)], x, (3, 96), w=w)
    np.savez(s.path("samples.npz"), x=normal(8, 3, 256))
    want, sizes = exact(made, x), []
    for bits, least in (6, 28), (5, 22), (4, 17), (3, 11):
        quantized, result = s.convert(made, "--quantize", f"int{bits}w", "--calibrate", s.path("samples.npz"))
        if not quantized:
            s.check(f"{bits} bits", False, result.why())
            continue
        s.check(f"{bits} bits stay so", quantized["layers"][0]["detail"].startswith(f"{bits} bits"), quantized["layers"])
        told, sizes = quantized["outputs"][0]["sqnr_db"], sizes + [os.path.getsize(s.path("q.sinter"))]
        results = [s.run(x), s.run(x, "--backend", "reference")]
        db = [decibels(want, y) for y in results]
        s.check(f"{bits} bits: {db[0]:.1f} dB, reported {told:.1f}", min(db) > least and abs(db[0] - told) < 2, db)
        s.check(f"{bits} bits: as the reference kernels", np.abs(results[0] - results[1]).max() < 1e-5 * np.abs(want).max())
        rounded, result = s.convert(made, "--quantize", f"int{bits}w", "--activations", "int8", "--calibrate", s.path("samples.npz"))
        if not rounded:
            s.check(f"{bits} bits, rounded activations", False, result.why())
            continue
        both = [s.run(x), s.run(x, "--backend", "reference")]
        db, told = decibels(results[0], both[0]), rounded["outputs"][0]["sqnr_db"]
        s.check(f"{bits} bits, rounded activations: {db:.1f} dB less", 35 < db < 60 and rounded["rounded_products"] == 1, db)
        s.check(f"{bits} bits, rounded activations: {told:.1f} dB reported", abs(decibels(want, both[0]) - told) < 2, told)
        s.check(f"{bits} bits, rounded activations: as the reference kernels",
                np.abs(both[0] - both[1]).max() < 1e-5 * np.abs(want).max())
    s.check(f"fewer bits take fewer bytes: {sizes}", sizes == sorted(sizes, reverse=True) and len(set(sizes)) == 4)
    nothing, result = s.convert(made, "--activations", "int8")
    s.check("rounded activations of float weights give a warning", result.code == 0 and "--activations" in result.out + result.err,
            result.why())


def usage(s):
    made = model([node("Gemm", "x", "w", transB=1)], normal(1, 64), (1, 64), w=normal(64, 64))
    for what, word, *flags in [
            ("a calibrator", "kept in float", "--quantize", "int4w", "--calibrator", "mse"),
            ("an odd block", "even", "--quantize", "int4w", "--block", "33"),
            ("a block for int8", "--block is for", "--quantize", "int8", "--block", "32", "--calibrate", "c.npz"),
            ("a block for nothing", "--block is for", "--block", "32"),
            ("--weights widened", "undo", "--quantize", "int8w", "--weights", "widened"),
            ("an unknown mode", "int7w", "--quantize", "int7w"),
            ("rounded activations of integers", "already", "--quantize", "int8", "--activations", "int8", "--calibrate", "c.npz"),
            ("rounded activations in another type", "int4", "--quantize", "int4w", "--activations", "int4")]:
        _, result = s.convert(made, *flags)
        s.check(f"{what} is wrong usage", result.code == 2 and word in result.err, result.why())
    np.savez(s.path("w.npz"), x=normal(4, 63))
    _, result = s.convert(made, "--quantize", "int8w", "--calibrate", s.path("w.npz"))
    s.check("data of a wrong shape is refused", result.code == 5, result.why())
    endless = normal(64, 64)
    endless[3, 3] = np.inf
    quantized, result = s.convert(model([node("Gemm", "x", "w", transB=1)], normal(1, 64), (1, 64), w=endless),
                                "--quantize", "int8w")
    s.check("infinite weights are kept in float, with a reason", quantized and not quantized["layers"][0]["integer"] and
            "finite" in quantized["layers"][0]["detail"], result.why())


def everything(s):
    for layer in layers():
        for bits in 8, 4:
            one_layer(s, layer, bits)
    recurrent(s)
    experts(s)
    whole(s)
    widths(s)
    usage(s)


if __name__ == "__main__":
    sys.exit(suite.run(Suite, everything, __doc__))
