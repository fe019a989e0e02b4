#!/usr/bin/env python3
"""What is between two products runs on integers too: one small model for each kind of operation.

    coverage.py [--sinter PROGRAM] [--only NAME] [--keep FOLDER]

Each is converted with --quantize int8, without leaving in float what is accurate only there: the integer steps that it must have are there, no step but the listed ones
computes in float, the SQNR against float (on other samples than those of calibration) is as high as
stated, and the reference kernels give the same bits as the default ones.
"""
import argparse
import json
import os
import re
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
import pinned  # noqa: E402

pinned.require()
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
import sinter_cli as cli  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402

MOVES = {"View", "Copy", "Transpose", "Slice", "Concat", "Pad", "Gather", "GatherNd", "Tile", "Broadcast", "MaxPool",
         "Resize", "Reduce", "Min", "Max", "Where", "ReverseSequence", "GatherElements", "ScatterNd", "ScatterElements"}


class Model:
    """A graph under construction; values are names. Images [1, 8, 8, 8] and rows [1, 6, 16] come from a product."""

    def __init__(self):
        self.rng = np.random.default_rng(11)
        self.nodes, self.constants, self.inputs = [], [], {}

    def constant(self, array, kind=np.float32):
        self.constants.append(numpy_helper.from_array(np.asarray(array, kind), f"c{len(self.constants)}"))
        return self.constants[-1].name

    def ints(self, *items):
        return self.constant(np.array(items), np.int64)

    def op(self, kind, *inputs, outputs=1, **attributes):
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, name=f"{kind}_{len(self.nodes)}", **attributes))
        return names[0] if outputs == 1 else names

    def dims(self, name, shape):
        self.inputs[name] = shape
        return name

    def conv(self, x, into=8, out=8):
        return self.op("Conv", x, self.constant(self.rng.normal(0, into ** -0.5, (out, into, 1, 1))),
                       self.constant(self.rng.normal(0, 0.2, out)))

    def image(self, channels=8):
        return self.conv(self.dims(f"x{len(self.inputs)}", (1, 8, 8, 8)), 8, channels)

    def product(self, x, into=16, out=16):
        y = self.op("MatMul", x, self.constant(self.rng.normal(0, into ** -0.5, (into, out))))
        return self.op("Add", y, self.constant(self.rng.normal(0, 0.2, out)))

    def rows(self, width=16):
        return self.product(self.dims(f"x{len(self.inputs)}", (1, 6, 16)), 16, width)


def unary(kind, **attributes):
    return lambda m: (m.op(kind, m.image(), **attributes), "Lut")


def gelu_erf(m):
    x = m.image()
    y = m.op("Erf", m.op("Div", x, m.constant(2 ** 0.5)))
    return m.op("Mul", m.op("Mul", x, m.op("Add", y, m.constant(1))), m.constant(0.5)), "Lut"


def gelu_tanh(m):
    x = m.image()
    cube = m.op("Mul", m.op("Mul", x, x), x)
    y = m.op("Tanh", m.op("Mul", m.op("Add", x, m.op("Mul", cube, m.constant(0.044715))), m.constant((2 / np.pi) ** 0.5)))
    return m.op("Mul", m.op("Mul", m.constant(0.5), x), m.op("Add", m.constant(1), y)), "Lut"


def mish(m):
    x = m.image()
    return m.op("Mul", x, m.op("Tanh", m.op("Softplus", x))), "Lut"


def chain(m):
    """Steps of unlike ranges, as a whole one function."""
    x = m.op("Exp", m.op("Mul", m.image(), m.constant(3)))
    return m.op("Log", m.op("Add", x, m.constant(1e-3))), "Lut"


def square_root(m):
    return m.op("Sqrt", m.op("Add", m.op("Pow", m.image(), m.constant(2)), m.constant(0.1))), "Lut"


def select(m):
    x = m.image()
    return m.op("Where", m.op("Greater", x, m.constant(0.25)), x, m.op("Mul", x, m.constant(0.1))), "Lut"


def clip(m):
    return m.op("Clip", m.op("Div", m.image(), m.constant(3)), m.constant(-0.5), m.constant(0.5)), ""


def scaled(m):
    return m.op("Reshape", m.op("Div", m.image(), m.constant(7)), m.ints(1, 8, 8, 8)), ""


def softmax(m):
    return m.op("Softmax", m.op("Mul", m.rows(), m.constant(2)), axis=-1), "QSoftmax"


def softmax_channels(m):
    return m.op("Softmax", m.image(), axis=1), "QSoftmax"


def resize(**attributes):
    def case(m):
        scales = m.constant([1, 1, *attributes.pop("scales", (2, 2))])
        return m.op("Resize", m.image(), "", scales, **attributes), "QResize" if attributes["mode"] == "linear" else "Resize"
    return lambda m: case(m)


def mean(m):
    return m.op("Add", m.op("ReduceMean", m.image(), m.ints(2, 3)), m.op("GlobalAveragePool", m.image())), "QMean QAvgPool"


def total(m):
    return m.op("ReduceSum", m.image(), m.ints(3)), "QMean"


def average(m):
    return m.op("AveragePool", m.image(), kernel_shape=[3, 3], pads=[1, 1, 1, 1]), "QAvgPool"


def prelu(m):
    return m.op("PRelu", m.image(), m.constant(m.rng.uniform(-0.3, 0.8, (8, 1, 1)))), "QPRelu"


def binary(kind, *dims):
    def case(m):
        a = m.image()
        if dims:  # behind what takes no scale into its weights
            a, b = m.op("MaxPool", a, kernel_shape=[1, 2]), m.constant(m.rng.uniform(0.5, 2, dims))
        else:
            b = m.image()
        return m.op(kind, a, b), "QMul" if kind in ("Mul", "Div") else "QAdd"
    return case


def extremes(m):
    return m.op("Max", m.op("Min", m.image(), m.image()), m.op("Mul", m.image(), m.constant(-0.3))), "Max Min"


def pad(m):
    return m.op("Pad", m.image(), m.ints(0, 0, 1, 1, 0, 0, 1, 1), m.constant(0.7)), "Pad"


def where(m):
    mask = m.constant(m.rng.random((1, 1, 8, 8)) < 0.5, np.bool_)
    return m.op("Where", mask, m.image(), m.op("Mul", m.image(), m.constant(0.2))), "Where"


def where_constant(m):
    mask = m.constant(m.rng.random((1, 1, 8, 8)) < 0.5, np.bool_)
    return m.op("Where", mask, m.image(), m.constant(-0.4)), "Where"


def concat(m):
    return m.op("Concat", m.image(4), m.op("Mul", m.image(4), m.constant(0.1)), axis=1), "Concat"


def concat_alike(m):
    return m.op("Concat", m.op("Relu", m.image(4)), m.op("MaxPool", m.image(4), kernel_shape=[3, 3], pads=[1] * 4), axis=1), "Concat"


def scatter(m):
    """Slices assigned to: columns of an image, over zeros and over another image."""
    at = m.constant([[0, 1], [0, 5], [0, 2]], np.int64)
    y = m.op("ScatterND", m.constant(np.zeros((1, 8, 8, 8))), at, m.op("Squeeze", m.op("Slice", m.image(), m.ints(0), m.ints(3), m.ints(1)), m.ints(0)))
    rows = m.constant(m.rng.integers(0, 8, (1, 8, 3, 8)), np.int64)
    return m.op("ScatterElements", y, rows, m.op("Slice", m.image(), m.ints(0), m.ints(3), m.ints(2)), axis=2), "ScatterNd ScatterElements"


def split(m):
    a, b = m.op("Split", m.image(), axis=1, outputs=2, num_outputs=2)
    return m.op("Concat", m.op("Sigmoid", a), m.op("Tanh", b), axis=1), "Lut"


def moved(m):
    x = m.op("Gather", m.image(), m.ints(7, 6, 5, 4, 3, 2, 1, 0), axis=2)
    x = m.op("DepthToSpace", m.op("Concat", x, x, x, x, axis=1), blocksize=2)
    x = m.op("Slice", x, m.ints(0, 1), m.ints(16, 2), m.ints(2, 3), m.ints(2, 1))
    return m.op("Expand", m.op("Transpose", x, perm=[0, 1, 3, 2]), m.ints(1, 8, 5, 8)), ""


def max_pool(m):
    return m.op("MaxPool", m.image(), kernel_shape=[2, 2], strides=[2, 2]), "MaxPool"


def largest(m):
    return m.op("ReduceMax", m.image(), m.ints(2)), "Reduce"


def attention(m, masked=False):
    """Of rank 3, which no fused operation takes: both products, scaling, softmax."""
    x = m.dims("x0", (1, 6, 16))
    q, k, v = (m.product(x) for _ in range(3))
    s = m.op("Mul", m.op("MatMul", q, m.op("Transpose", k, perm=[0, 2, 1])), m.constant(0.25))
    if masked:
        s = m.op("Add", s, m.constant(np.triu(np.full((6, 6), -9.0), 1)))
    return m.op("MatMul", m.op("Softmax", s, axis=-1), v), "QMatMul QSoftmax"


def attention_masked(m):
    return attention(m, True)


def mixing(m):
    """A product with a constant on the left, as mixers have it."""
    return m.op("MatMul", m.constant(m.rng.normal(0, 0.4, (1, 6, 6))), m.rows()), "QMatMul"


def transposed(m):
    return m.op("ConvTranspose", m.image(), m.constant(m.rng.normal(0, 0.2, (8, 8, 2, 2))), strides=[2, 2]), "QConvTranspose"


def signal(m):
    x = m.op("Conv", m.dims("x0", (1, 8, 20)), m.constant(m.rng.normal(0, 0.3, (8, 4, 3))), group=2, pads=[1, 1])
    x = m.op("Relu", m.op("Conv", x, m.constant(m.rng.normal(0, 0.3, (8, 1, 3))), group=8))
    return m.op("Reshape", x, m.ints(1, 8, 3, 6)), "QConv QDepthwiseConv"


def batch_norm_scale(m):
    """A scale and an offset for each channel behind an operation that is not a product."""
    x = m.op("MaxPool", m.image(), kernel_shape=[2, 2])
    x = m.op("Mul", x, m.constant(m.rng.uniform(0.3, 2, (1, 8, 1, 1))))
    return m.op("Add", x, m.constant(m.rng.uniform(-1, 1, (1, 8, 1, 1)))), "QMul QAdd"


def dead_channels(m):
    """Channels whose weights are next to nothing or nothing at all, beside a bias: in the middle and, by the caller, at the end."""
    w = m.rng.normal(0, 0.35, (8, 8, 1, 1))
    w[0], w[1], w[2] = 0, w[1] * 1e-32, w[2] * 1e-9
    return m.op("Relu", m.op("Conv", m.image(), m.constant(w), m.constant(m.rng.normal(0, 0.4, 8)))), ""


def quotient(m):
    """x / (1 + |x|): one function of x although a division reads two values."""
    x = m.image()
    return m.op("Div", x, m.op("Add", m.op("Abs", x), m.constant(1))), "Lut"


def recurrent(kind, gates, hidden):
    """Of enough units on integers; small ones and Rnn in float, with weights in 8 bits."""
    def case(m):
        x = m.op("Transpose", m.rows(), perm=[1, 0, 2])
        w, r = (m.constant(m.rng.normal(0, 1.9 * hidden ** -0.5, (2, gates * hidden, n))) for n in (16, hidden))
        y = m.op(kind, x, w, r, m.constant(m.rng.normal(0, 0.2, (2, 2 * gates * hidden))), hidden_size=hidden, direction="bidirectional")
        integer = "Q" if kind != "RNN" and hidden > 300 else ""
        return m.op("Reshape", m.op("Transpose", y, perm=[2, 0, 1, 3]), m.ints(1, 6, 2 * hidden)), integer + kind.title()
    return case


# name -> (builder, minimum SQNR in dB)
CASES = {
    "sigmoid": (unary("Sigmoid"), 37), "tanh": (unary("Tanh"), 32), "hard_swish": (unary("HardSwish"), 27),
    "leaky_relu": (unary("LeakyRelu", alpha=0.1), 29), "elu": (unary("Elu"), 29), "gelu": (unary("Gelu"), 28),
    "softplus": (unary("Softplus"), 34), "abs": (unary("Abs"), 31), "exp": (unary("Exp"), 21),
    "gelu_erf": (gelu_erf, 28), "gelu_tanh": (gelu_tanh, 28), "mish": (mish, 29), "chain": (chain, 28),
    "square_root": (square_root, 32), "select": (select, 26), "clip": (clip, 33), "scaled": (scaled, 33),
    "softmax": (softmax, 30), "softmax_channels": (softmax_channels, 34),
    "resize_linear": (resize(mode="linear"), 31),
    "resize_align": (resize(mode="linear", coordinate_transformation_mode="align_corners", scales=(1.5, 2.5)), 30),
    "resize_one_axis": (resize(mode="linear", scales=(1, 2)), 29), "resize_nearest": (resize(mode="nearest"), 29),
    "mean": (mean, 24), "total": (total, 29), "average": (average, 31), "prelu": (prelu, 30),
    "add": (binary("Add"), 30), "sub": (binary("Sub"), 32), "mul": (binary("Mul"), 27),
    "mul_constant": (binary("Mul", 1, 8, 1, 1), 29), "div_constant": (binary("Div", 1, 8, 1, 1), 29),
    "add_constant": (binary("Add", 1, 8, 1, 1), 32), "extremes": (extremes, 28), "pad": (pad, 29),
    "where": (where, 28), "where_constant": (where_constant, 29), "concat": (concat, 31),
    "concat_alike": (concat_alike, 30), "scatter": (scatter, 29), "split": (split, 32), "moved": (moved, 25), "max_pool": (max_pool, 32),
    "largest": (largest, 29), "attention": (attention, 25), "attention_masked": (attention_masked, 28),
    "mixing": (mixing, 29), "transposed": (transposed, 31), "signal": (signal, 30),
    "batch_norm_scale": (batch_norm_scale, 32), "dead_channels": (dead_channels, 30), "quotient": (quotient, 30),
    "lstm": (recurrent("LSTM", 4, 40), 30), "gru": (recurrent("GRU", 3, 40), 30), "rnn": (recurrent("RNN", 1, 40), 30),
    "wide_lstm": (recurrent("LSTM", 4, 384), 30), "wide_gru": (recurrent("GRU", 3, 384), 30),
}


def build(case):
    """The case between two products, its result 0 to 3 dims from the graph's output, small so that it stays integer."""
    m = Model()
    y, must = case(m)
    zeros = {name: np.zeros(dims, np.float32) for name, dims in m.inputs.items()}
    session = onnxruntime.InferenceSession(finish(m, y).SerializeToString(), providers=["CPUExecutionProvider"])
    shape = session.run(None, zeros)[0].shape
    if len(shape) == 4:
        y = m.conv(y, shape[1], 4)
    else:
        y = m.product(y, shape[-1], 4)
    # A last product with a small result: only these may give float32.
    m.nodes.append(helper.make_node("Flatten", [y], ["flat"], name="Flatten"))
    count = int(np.prod(shape) // (shape[1] if len(shape) == 4 else shape[-1]) * 4)
    w = m.rng.normal(0, count ** -0.5, (8, count))
    w[3] = 0
    m.nodes.append(helper.make_node("Gemm", ["flat", m.constant(w), m.constant(m.rng.normal(0, 0.3, 8))], ["y"],
                                    name="last", transB=1))
    return finish(m, "y"), m.inputs, must


def finish(m, value):
    model = helper.make_model(
        helper.make_graph(m.nodes, "g", [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, s)
                                         for n, s in m.inputs.items()],
                          [helper.make_tensor_value_info(value, onnx.TensorProto.FLOAT, None)], m.constants),
        opset_imports=[helper.make_opsetid("", 20)])
    model.ir_version = 9
    return model


def check(sinter, case, least, folder):
    """(what is wrong or None, SQNR in dB)"""
    model, inputs, must = build(case)
    path = os.path.join(folder, "m")
    onnx.save(model, path + ".onnx")
    r = np.random.default_rng(2)
    for name, count in (("c", 32), ("t", 16)):
        np.savez(f"{path}.{name}.npz", **{n: r.normal(0, 1, (count, *s[1:])).astype("f") for n, s in inputs.items()})
    outcome = cli.call(sinter, "convert", path + ".onnx", "-o", path + ".sinter", "--quantize", "int8", "--calibrate",
                    path + ".c.npz", "--disable-technique", "leave-float", "--quiet", timeout=60)
    if outcome.code != 0:
        return "convert: " + outcome.why(), 0
    listed = cli.call(sinter, "inspect", path + ".sinter", "--steps").out
    steps = [line.split()[1] for line in listed.splitlines() if re.match(r"\d+\.\d+ ", line)]
    missing = set(must.split()) - set(steps)
    if must == "QMean QAvgPool" and missing != set(must.split()):
        missing = set()
    if missing:
        return f"no {' '.join(sorted(missing))} among {' '.join(steps)}", 0
    in_float = set(must.split()) & {"Lstm", "Gru", "QLstm", "QGru", "Rnn"}  # or give float32
    outcome = cli.call(sinter, "convert", path + ".onnx", "-o", path + ".float.sinter", "--quiet")
    if outcome.code != 0:
        return "convert in float: " + outcome.why(), 0
    saved = os.path.getsize(path + ".float.sinter") - os.path.getsize(path + ".sinter")
    if in_float and saved < 0.6 * max(c.ByteSize() for c in model.graph.initializer):
        return f"its weights in 8 bits save {saved} bytes", 0
    if in_float:  # what feeds it may give float32 as it is
        in_float.add("FullyConnected")
    floats = [s for s in steps if s not in in_float and s not in MOVES | {"Quantize", "Dequantize", "Lut"} and not re.match("Q[A-Z]", s)]
    if floats or steps.count("Quantize") > len(inputs) + len(in_float) or steps.count("Dequantize") > len(in_float):
        return f"computes in float: {' '.join(steps)}", 0
    if not must and set(steps) & {"Lut"}:
        return f"needs a table: {' '.join(steps)}", 0
    results = []
    for file, more in ((path + ".float.sinter", []), (path + ".sinter", []), (path + ".sinter", ["--backend", "reference"])):
        outcome = cli.call(sinter, "run", file, "--inputs", path + ".t.npz", "--each", "--outputs", path + ".o.npz",
                        "--quiet", *more)
        if outcome.code != 0:
            return "run: " + outcome.why(), 0
        results.append(np.load(path + ".o.npz")["y"].astype(np.float64))
    exact, fast, reference = results
    db = 10 * np.log10((exact ** 2).sum() / max(((exact - fast) ** 2).sum(), 1e-30))
    if fast.tobytes() != reference.tobytes():
        return f"{int((fast != reference).sum())} of {fast.size} results differ from the reference's: {' '.join(steps)}", db
    return (None if db >= least else f"{db:.1f} dB, not {least}: {' '.join(steps)}"), db


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sinter")
    parser.add_argument("--only")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--keep", metavar="FOLDER", help="where models go that fail")
    args = parser.parse_args()
    sinter = cli.find_sinter(args.sinter)
    failed = checked = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, (case, least) in CASES.items():
            if args.only and name != args.only:
                continue
            checked += 1
            wrong, db = check(sinter, case, least, folder)
            if wrong:
                failed += 1
                print(f"FAIL {name}: {wrong}")
            elif args.verbose:
                print(f"ok   {name}: {db:.1f} dB")
            if args.keep and wrong:
                os.makedirs(args.keep, exist_ok=True)
                shutil.copy(os.path.join(folder, "m.onnx"), os.path.join(args.keep, name + ".onnx"))
    print(f"{checked - failed} of {checked} kinds of operations run on integers between products")
    return 1 if failed or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
