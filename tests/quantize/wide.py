#!/usr/bin/env python3
"""Activations of 16 bits: models that come so run on integers and agree with onnxruntime; sinter convert --quantize
int8x16 gives them, clearly better than int8.

    wide.py [--sinter PROGRAM]
"""
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "common"))
import pinned  # noqa: E402

pinned.require()
import imports  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import sinter_cli as cli  # noqa: E402
import suite  # noqa: E402
from native import labelled_sets, network  # noqa: E402

SEEDS = 4
GAIN, LEAST = 8, 1.5  # dB over int8; where the weights are what is left


class Wide(imports.Model):
    """Everything int16 without zero points, weights int8 per channel."""

    def __init__(self, seed):
        super().__init__(np.random.default_rng(seed), np.int16)
        self.opset = 21

    def parameters(self, low, high, symmetric=None):
        scale = np.float32(max(abs(low), abs(high)) / 32767)
        return self.constant(scale), self.constant(np.array(0, np.int16)), scale

    def weights(self, *dims, axis=0):
        q = self.rng.integers(-127, 128, dims).astype(np.int8)
        scales = self.rng.uniform(0.002, 0.02, dims[axis]).astype(np.float32)
        return self.op("DequantizeLinear", self.constant(q), self.constant(scales),
                       self.constant(np.zeros(dims[axis], np.int8)), axis=axis)


def mixed(m):
    """int8 and int16 meet: a product of one gives the other, and both are added."""
    x = m.x(1, 4, 8, 8)
    m.kind = np.int8
    a = imports.Model.quantized(m, m.op("Conv", x, m.weights(4, 4, 3, 3), pads=[1] * 4), -4, 4)[0]
    m.kind = np.int16
    b = m.quantized(m.op("Conv", a, m.weights(4, 4, 1, 1)), -4, 4)[0]
    return m.op("Add", b, m.quantized(m.op("Sigmoid", a), 0, 1)[0]), "QAdd"


# A kink between two entries of a table: computed in float.
KINKED = {"HardSwish"}


def function(kind):
    def case(m):
        return imports.one_input(m, kind, (64, 128))

    case.__name__ = kind
    return case


CASES = [imports.conv, imports.conv1d, imports.depthwise, imports.transposed, imports.gemm, imports.mat_mul,
         imports.activations_product, imports.add, imports.mul, imports.average, imports.prelu, *map(function, imports.FUNCTIONS),
         imports.moved, imports.interpolated, imports.picked, imports.joined, imports.residual, mixed]


class Suite(suite.Suite):
    def convert(self, model, *more, out="q.sinter"):
        result = cli.call(self.sinter, "convert", model, "-o", self.path(out), "--json", *more, timeout=200)
        return (json.loads(result.out) if result.code == 0 else None), result

    def outputs(self, *more):
        result = cli.call(self.sinter, "run", self.path("q.sinter"), "--inputs", self.path("x.npz"), "--outputs",
                        self.path("y.npz"), "--quiet", *more)
        return next(iter(np.load(self.path("y.npz")).values())) if result.code == 0 else result.why()


def imported(s, case, seed):
    m = Wide(seed)
    value, must = case(m)
    # The weights of a QResize are multiples of 2^-11: an int16 that needs others is computed in float.
    must = (must or "").replace("Lut", "QTable Lut").replace("QResize", "QResize Resize")
    raw = imports.session(imports.finish(m, value)).run(None, m.inputs)[0]
    y, step = m.quantized(value, 0, float(np.abs(raw).max()) * 0.9 + 1e-3)
    model = imports.finish(m, y)
    want = imports.session(model).run(None, m.inputs)[0]
    onnx.save(model, s.path("m.onnx"))
    cli.save_npz(s.path("x.npz"), m.inputs)
    what = f"{case.__name__} {seed}"
    report, result = s.convert(s.path("m.onnx"))
    if not report:
        return s.check(what, False, result.why())
    listed = cli.call(s.sinter, "inspect", s.path("q.sinter"), "--steps").out
    steps = [line.split()[1] for line in listed.splitlines() if re.match(r"\d+\.\d+ ", line)]
    floats = [k for k in steps if k not in imports.MOVES | {"Quantize", "Dequantize", "Lut"} and not re.match("Q[A-Z]", k)]
    kinked = case.__name__ in KINKED
    if bool(floats) != kinked or not (kinked or set(must.split()) & set(steps)):
        return s.check(what, False, f"{' '.join(steps)}; {must} expected")
    limit = sum(n.op_type.startswith("Q") for n in model.graph.node) - len(m.inputs) + 0.01
    if case is mixed:
        limit += 4 / 127 / float(step)  # one step of int8 may be another
    bits = []  # the same, unless a step in float gave what was rounded
    for more in [], ["--backend", "reference"], ["--threads", "3"]:
        got = s.outputs(*more)
        if isinstance(got, str):
            return s.check(what, False, got)
        off = np.abs(got.astype(float) - want) / step
        if off.max() > limit:
            return s.check(what, False, f"{' '.join(more)}: off by {off.max():.2f} steps, {(off > 0.5).mean():.0%} of all: {' '.join(steps)}")
        bits.append(got.tobytes())
    s.check(what, "Resize" in steps or kinked or bits[0] == bits[1] == bits[2], "backends or threads differ")


def made_here(s):
    r = np.random.default_rng(5)
    onnx.save(network(), s.path("n.onnx"))
    np.savez(s.path("c.npz"), image=r.normal(0, 1, (64, 3, 16, 16)).astype("f"))
    np.savez(s.path("x.npz"), image=r.normal(0, 1, (1, 3, 16, 16)).astype("f"))
    result = cli.call(s.sinter, "convert", s.path("n.onnx"), "-o", s.path("w.sinter"), "--quantize", "int8x16")
    s.check("without data it is wrong usage", result.code == 2 and "--calibrate" in result.err, result.why())
    narrow, _ = s.convert(s.path("n.onnx"), "--quantize", "int8", "--calibrate", s.path("c.npz"))
    report, result = s.convert(s.path("n.onnx"), "--quantize", "int8x16", "--calibrate", s.path("c.npz"))
    if not report or not narrow:
        return s.check("a small network converts", False, result.why())
    q = report["quantized"]
    before, now = narrow["quantized"]["outputs"][0]["sqnr_db"], q["outputs"][0]["sqnr_db"]
    s.check(f"a small network: {now:.1f} dB where int8 has {before:.1f}", now > before + GAIN and q["mode"] == "int8x16", q)
    left = [layer["op"] for layer in q["layers"] if not layer["integer"]]
    s.check("all of it runs on integers", set(left) <= {"Transpose"}, left)  # the input's, before it is rounded
    listed = cli.call(s.sinter, "inspect", s.path("q.sinter"), "--steps").out
    s.check("with tables of int16", "QTable" in listed and " Lut " not in listed, listed)
    bits = [s.outputs(*more) for more in ([], ["--threads", "2"], ["--backend", "reference"], ["--backend", "simd"])]
    s.check("the same bits on every backend and thread count", len({b if isinstance(b, str) else b.tobytes() for b in bits}) == 1)


def labelled(s, shared):
    for name, (given, x, y) in labelled_sets(shared).items():
        model = os.path.join(shared, "models", name)
        order = np.random.RandomState(0).permutation(len(x))[:700]
        np.savez(s.path("c.npz"), **{given: x[order[:100]]})
        np.savez(s.path("e.npz"), **{given: x[order[100:]], "label": y[order[100:]]})
        got = {}
        for mode in "int8", "int8x16":
            report, result = s.convert(model, "--quantize", mode, "--calibrate", s.path("c.npz"), "--evaluate", s.path("e.npz"),
                                     "--label", "label")
            if not report:
                return s.check(f"{name}, {mode}", False, result.why())
            got[mode] = report["quantized"]["outputs"][0]["sqnr_db"], 100 * report["top1"]
        s.check(f"{name}: " + ", ".join(f"{mode} {db:.1f} dB, {top:.2f} %" for mode, (db, top) in got.items()),
                got["int8x16"][0] > got["int8"][0] + LEAST and got["int8x16"][1] > got["int8"][1] - 1)


def everything(s):
    for case in CASES:
        for seed in range(SEEDS):
            imported(s, case, seed)
    made_here(s)
    suite.with_shared(s, labelled, "labelled networks")


if __name__ == "__main__":
    sys.exit(suite.run(Suite, everything, __doc__))
