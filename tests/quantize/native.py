#!/usr/bin/env python3
"""sinter convert --quantize int8: integer models that are as good as their float ones, the same bits everywhere, and
clear words about wrong data.

    native.py [--sinter PROGRAM]

A small network with everything that the common ones have is made here; labelled networks come from the folder of
shared models, where it is.
"""
import gzip
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
import pinned  # noqa: E402

pinned.require()
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import sinter_cli as cli  # noqa: E402
import suite  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402

LOSS = 0.3  # points of accuracy that int8 may cost


def network():
    """Convolutions (plain, depthwise, strided), a residual, activations, pooling, and logits: [1, 3, 16, 16] -> [1, 10]."""
    r = np.random.default_rng(3)
    nodes, constants = [], []

    def constant(array):
        constants.append(numpy_helper.from_array(np.asarray(array, np.float32), f"c{len(constants)}"))
        return constants[-1].name

    def op(kind, *inputs, **attributes):
        nodes.append(helper.make_node(kind, inputs, [f"v{len(nodes)}"], name=f"{kind}_{len(nodes)}", **attributes))
        return nodes[-1].output[0]

    def conv(x, into, out, kernel, **attributes):
        fan = into * kernel * kernel
        return op("Conv", x, constant(r.normal(0, (2 / fan) ** 0.5, (out, into, kernel, kernel))),
                  constant(r.normal(0, 0.1, out)), pads=[kernel // 2] * 4, **attributes)
    a = op("Relu", conv("image", 3, 16, 3, strides=[2, 2]))
    b = op("Clip", conv(a, 1, 16, 3, group=16), constant(0.0), constant(6.0))
    c = op("Add", op("Relu", conv(b, 16, 16, 1)), a)
    d = op("HardSwish", conv(c, 16, 24, 3))
    e = op("Concat", op("MaxPool", d, kernel_shape=[2, 2], strides=[2, 2]),
           op("AveragePool", d, kernel_shape=[2, 2], strides=[2, 2]), axis=1)
    f = op("Mul", e, op("Sigmoid", conv(e, 48, 48, 1)))
    g = op("Flatten", op("GlobalAveragePool", f))
    op("Gemm", g, constant(r.normal(0, 0.3, (10, 48))), constant(r.normal(0, 0.1, 10)), transB=1)
    nodes[-1].output[0] = "logits"
    model = helper.make_model(helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("image", onnx.TensorProto.FLOAT, [1, 3, 16, 16])],
        [helper.make_tensor_value_info("logits", onnx.TensorProto.FLOAT, [1, 10])], constants),
        opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 8
    return model


class Suite(suite.Suite):
    def quantize(self, model, data, *more, out="q.sinter"):
        result = cli.call(self.sinter, "convert", model, "-o", self.path(out), "--quantize", "int8", "--calibrate", data,
                        "--json", *more, timeout=120)
        return (json.loads(result.out) if result.code == 0 else None), result


def made_here(s):
    r = np.random.default_rng(5)
    onnx.save(network(), s.path("n.onnx"))
    np.savez(s.path("c.npz"), image=r.normal(0, 1, (64, 3, 16, 16)).astype("f"))
    np.savez(s.path("t.npz"), image=r.normal(0, 1, (32, 3, 16, 16)).astype("f"))
    report, result = s.quantize(s.path("n.onnx"), s.path("c.npz"))
    s.check("a small network converts", report, result.why())
    if not report:
        return
    q = report["quantized"]
    left = [layer["op"] for layer in q["layers"] if not layer["integer"]]
    s.check("all of it runs on integers", left == ["Transpose"], left)  # the input's, before it is rounded
    s.check("an SQNR of 30 dB", q["outputs"][0]["sqnr_db"] > 30, q["outputs"])
    s.check("all samples choose or judge", q["held_out"] and q["samples"] + q["measured_samples"] == 64,
            (q["samples"], q["measured_samples"]))
    results = {}
    for name, more in {"default": [], "two threads": ["--threads", "2"], "reference": ["--backend", "reference"],
                       "simd": ["--backend", "simd"]}.items():
        result = cli.call(s.sinter, "run", s.path("q.sinter"), "--inputs", s.path("t.npz"), "--each", "--outputs",
                        s.path("o.npz"), "--quiet", *more)
        results[name] = np.load(s.path("o.npz"))["logits"].tobytes() if result.code == 0 else result.why()
    for name, bits in results.items():
        s.check(f"the same bits: {name}", bits == results["reference"], bits[:100])
    s.quantize(s.path("n.onnx"), s.path("c.npz"), out="again.sinter")
    s.check("the same file twice", open(s.path("q.sinter"), "rb").read() == open(s.path("again.sinter"), "rb").read())
    np.savez(s.path("one.npz"), image=np.load(s.path("t.npz"))["image"][:1])
    result = cli.call(s.sinter, "compare", s.path("n.onnx"), s.path("q.sinter"), "--inputs", s.path("one.npz"),
                    "--min-sqnr", "25", timeout=60)
    s.check("compare agrees on data that it was not calibrated with", result.code == 0, result.why())


def wrong_data(s):
    r = np.random.default_rng(5)
    wrong = {"a wrong shape": ({"image": r.normal(0, 1, (8, 3, 16, 15)).astype("f")}, "image"),
             "a wrong name": ({"picture": r.normal(0, 1, (8, 3, 16, 16)).astype("f")}, "image"),
             "NaN": ({"image": np.full((8, 3, 16, 16), np.nan, "f")}, "image")}
    for what, (arrays, word) in wrong.items():
        np.savez(s.path("w.npz"), **arrays)
        _, result = s.quantize(s.path("n.onnx"), s.path("w.npz"), out="w.sinter")
        s.check(f"{what} is refused with the input's name", result.code == 5 and word in result.err, result.why())
        s.check(f"{what} leaves no file", not os.path.exists(s.path("w.sinter")))
    result = cli.call(s.sinter, "convert", s.path("n.onnx"), "-o", s.path("w.sinter"), "--quantize", "int8")
    s.check("without data it is wrong usage", result.code == 2 and "--calibrate" in result.err, result.why())
    result = cli.call(s.sinter, "convert", s.path("n.onnx"), "-o", s.path("w.sinter"), "--calibrate", s.path("c.npz"))
    s.check("data without --quantize is wrong usage", result.code == 2, result.why())


def labelled_sets(shared):
    """By model: the input's name, samples and labels."""
    def mnist(kind):
        with gzip.open(os.path.join(shared, "data", "mnist-t10k", f"t10k-{kind}-ubyte.gz")) as f:
            return np.frombuffer(f.read()[16 if "images" in kind else 8:], np.uint8)
    z = np.load(os.path.join(shared, "data", "kws01", "kws01.npz"))
    images = mnist("images-idx3").reshape(-1, 1, 28, 28).astype("f")[:4000]
    return {"mlperf-kws/kws-dscnn-fp32.onnx": ("input", (z["x"].astype("f") - 83) * np.float32(0.58470291), z["y"]),
            "mnist8-cntk/model.onnx": ("Input3", images, mnist("labels-idx1")[:4000].astype(np.int64))}


def labelled(s, shared):
    """Accuracy on samples that were not calibrated with, against float."""
    for name, (given, x, y) in labelled_sets(shared).items():
        model = os.path.join(shared, "models", name)
        order = np.random.RandomState(0).permutation(len(x))
        np.savez(s.path("c.npz"), **{given: x[order[:128]]})
        np.savez(s.path("e.npz"), **{given: x[order[128:]], "label": y[order[128:]]})
        evaluated = ["--evaluate", s.path("e.npz"), "--label", "label"]
        report, result = s.quantize(model, s.path("c.npz"), *evaluated)
        exact = cli.call(s.sinter, "convert", model, "-o", s.path("f.sinter"), "--json", *evaluated, timeout=120)
        if not report or exact.code != 0:
            s.check(name, False, result.why() + exact.why())
            continue
        now, before = 100 * report["top1"], 100 * json.loads(exact.out)["top1"]
        s.check(f"{name}: {now:.2f} % of {before:.2f} %, {report['quantized']['outputs'][0]['sqnr_db']:.1f} dB",
                now >= before - LOSS, f"loses {before - now:.2f} points")


def everything(s):
    made_here(s)
    wrong_data(s)
    suite.with_shared(s, labelled, "labelled networks")


if __name__ == "__main__":
    sys.exit(suite.run(Suite, everything, __doc__))
