#!/usr/bin/env python3
"""Networks of operations picked at random, quantized here: they convert, the outputs have the noise that was reported,
and what runs on integers gives the same bits with the reference kernels.

    random_nets.py [--sinter PROGRAM] [--seeds N] [--first SEED] [--keep FOLDER]

Of every three networks one has operations that only float has, and one may leave layers in float.
"""
import argparse
import os
import re
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
import pinned  # noqa: E402

pinned.require()
import coverage  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import sinter_cli as cli  # noqa: E402
from onnx import helper  # noqa: E402

LEAST = 10  # dB against float; depth and operations are random
LEAST_MIXED = 25  # dB between backends where some layers are float, whose rounding is not the same everywhere


def operations(m, pick):
    """Name -> what adds one operation (or a few) to values [1, 8, 8, 8]; and those that are kept in float."""
    r, number = m.rng, m.constant

    def unary(kind, **attributes):
        return lambda: m.op(kind, pick(), **attributes)

    def binary(kind):
        return lambda: m.op(kind, pick(), pick())

    def order():
        return [int(i) for i in r.permutation(8)]
    integer = {
        "conv": lambda: m.conv(pick()), "relu": unary("Relu"), "sigmoid": unary("Sigmoid"), "tanh": unary("Tanh"),
        "leaky": unary("LeakyRelu", alpha=0.1), "gelu": unary("Gelu"), "abs": unary("Abs"), "neg": unary("Neg"),
        "times": lambda: m.op("Mul", pick(), number(float(r.choice([-2, 0.5, 3])))),
        "plus": lambda: m.op("Add", pick(), number(float(r.normal()))),
        "clip": lambda: m.op("Clip", pick(), number(-1), number(1)),
        "square": lambda: m.op("Pow", pick(), number(2)),
        "softplus": lambda: m.op("Log", m.op("Add", m.op("Exp", m.op("Clip", pick(), number(-4), number(4))), number(1))),
        "add": binary("Add"), "sub": binary("Sub"), "mul": binary("Mul"), "max": binary("Max"), "min": binary("Min"),
        "matmul": binary("MatMul"),
        "channel_scale": lambda: m.op("Mul", pick(), number(r.uniform(0.2, 2, (1, 8, 1, 1)))),
        "channel_shift": lambda: m.op("Add", pick(), number(r.normal(0, 1, (8, 1, 1)))),
        "softmax": lambda: m.op("Softmax", pick(), axis=int(r.choice([1, 3]))),
        "transpose": lambda: m.op("Transpose", pick(), perm=[[0, 1, 3, 2], [0, 2, 3, 1], [0, 3, 1, 2]][int(r.integers(3))]),
        "reshape": lambda: m.op("Reshape", m.op("Reshape", pick(), m.ints(1, 64, 8)), m.ints(1, 8, 8, 8)),
        "concat": lambda: m.conv(m.op("Concat", pick(), pick(), axis=1), 16, 8),
        "max_pool": unary("MaxPool", kernel_shape=[3, 3], pads=[1] * 4),
        "average": lambda: m.op("AveragePool", pick(), kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=int(r.integers(2))),
        "excite": lambda: m.op("Mul", pick(), m.op("Sigmoid", m.conv(m.op("GlobalAveragePool", pick())))),
        "less_mean": lambda: m.op("Sub", pick(), m.op("ReduceMean", pick(), m.ints(1))),
        "plus_sum": lambda: m.op("Add", pick(), m.op("ReduceSum", pick(), m.ints(2))),
        "less_largest": lambda: m.op("Sub", pick(), m.op("ReduceMax", pick(), m.ints(3))),
        "where": lambda: m.op("Where", m.constant(r.random((8, 8)) < 0.5, np.bool_), pick(), pick()),
        "where_number": lambda: m.op("Where", m.constant(r.random((8, 8)) < 0.5, np.bool_), pick(), number(0.3)),
        "resize": lambda: m.op("Resize", m.op("MaxPool", pick(), kernel_shape=[2, 2], strides=[2, 2]), "",
                               number([1, 1, 2, 2]), mode=str(r.choice(["linear", "nearest"]))),
        "pad": lambda: m.op("Slice", m.op("Pad", pick(), m.ints(0, 0, 1, 1, 0, 0, 1, 1), number(float(r.choice([0, 0.5])))),
                            m.ints(0, 2), m.ints(8, 10), m.ints(2, 3)),
        "swap": lambda: m.op("Concat", *reversed(m.op("Split", pick(), axis=1, outputs=2, num_outputs=2)), axis=1),
        "gather": lambda: m.op("Gather", pick(), m.ints(*order()), axis=int(r.integers(1, 4))),
        "prelu": lambda: m.op("PRelu", pick(), number(r.uniform(-0.3, 0.8, (8, 1, 1)))),
        "depthwise": lambda: m.op("Conv", pick(), number(r.normal(0, 0.4, (8, 1, 3, 3))), group=8, pads=[1] * 4),
        "transposed": lambda: m.op("ConvTranspose", pick(), number(r.normal(0, 0.2, (8, 8, 3, 3))), pads=[1] * 4),
        "rows": lambda: m.op("MatMul", pick(), number(r.normal(0, 0.35, (8, 8)))),
    }
    floating = {
        "layer_norm": lambda: m.op("LayerNormalization", pick(), number(r.uniform(0.5, 2, 8)), number(r.normal(0, 1, 8)), axis=-1),
        "instance_norm": lambda: m.op("InstanceNormalization", pick(), number(r.uniform(0.5, 2, 8)), number(r.normal(0, 1, 8))),
        "log_softmax": unary("LogSoftmax", axis=1),
        "root": lambda: m.op("Sqrt", m.op("Add", m.op("Abs", pick()), number(float(r.choice([0, 1]))))),
        "quotient": lambda: m.op("Div", pick(), m.op("Add", m.op("Sigmoid", pick()), number(1))),
        "choice": lambda: m.op("Where", m.op("Greater", pick(), number(0.1)), pick(), pick()),
    }
    return integer, floating


def network(seed):
    m = coverage.Model()
    r = m.rng = np.random.default_rng(seed)
    values = [m.image(), m.image()]
    integer, floating = operations(m, lambda: values[int(r.integers(max(0, len(values) - 4), len(values)))])
    kinds = {**integer, **(floating if seed % 3 == 2 else {})}
    for _ in range(int(r.integers(4, 14))):
        values.append(kinds[list(kinds)[int(r.integers(len(kinds)))]]())
    # A small product at the end may give float32 from integers.
    flat = m.op("Flatten", m.conv(values[-1], 8, 4))
    outputs = [m.op("Gemm", flat, m.constant(r.normal(0, 1 / 16, (8, 256))), transB=1)]
    if r.random() < 0.4:
        outputs.append(values[int(r.integers(2, len(values)))])
    model = helper.make_model(
        helper.make_graph(m.nodes, "g", [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, s) for n, s in m.inputs.items()],
                          [helper.make_tensor_value_info(o, onnx.TensorProto.FLOAT, None) for o in outputs], m.constants),
        opset_imports=[helper.make_opsetid("", 20)])
    model.ir_version = 9
    return model, m.inputs


def decibels(exact, given):
    x, y = exact.astype(np.float64), given.astype(np.float64)
    if np.array_equal(x, y):
        return 999
    if not x.any():
        return -999
    return 10 * np.log10((x ** 2).sum() / max(((x - y) ** 2).sum(), 1e-30))


def check(sinter, seed, folder):
    """(None or what is wrong, whether all of it runs on integers)"""
    model, inputs = network(seed)
    path = os.path.join(folder, "m")
    onnx.save(model, path + ".onnx")
    r = np.random.default_rng(1)
    for name, count in (("c", 8), ("t", 4)):
        np.savez(f"{path}.{name}.npz", **{n: r.normal(0, 1, (count, *s[1:])).astype("f") for n, s in inputs.items()})
    flags = [] if seed % 3 == 1 else ["--disable-technique", "leave-float"]
    for file, more in (("float", []), ("int8", ["--quantize", "int8", "--calibrate", path + ".c.npz", *flags])):
        result = cli.call(sinter, "convert", path + ".onnx", "-o", f"{path}.{file}.sinter", "--quiet", *more, timeout=120)
        if result.code != 0:
            return f"convert to {file}: {result.why()}", False
    results = []
    for file, more in (("float", []), ("int8", []), ("int8", ["--backend", "reference"])):
        result = cli.call(sinter, "run", f"{path}.{file}.sinter", "--inputs", path + ".t.npz", "--each", "--outputs",
                        path + ".o.npz", "--quiet", *more)
        if result.code != 0:
            return f"run {file}: {result.why()}", False
        results.append(dict(np.load(path + ".o.npz")))
    listed = cli.call(sinter, "inspect", path + ".int8.sinter", "--steps").out
    steps = [line.split()[1] for line in listed.splitlines() if re.match(r"\d+\.\d+ ", line)]
    integer = not any(s not in coverage.MOVES | {"Quantize", "Dequantize", "Lut"} and not re.match("Q[A-Z]", s) for s in steps)
    exact, fast, reference = results
    for name in exact:
        db, between = decibels(exact[name], fast[name]), decibels(fast[name], reference[name])
        if db < LEAST:
            return f"{name}: {db:.1f} dB: {' '.join(steps)}", integer
        if integer and fast[name].tobytes() != reference[name].tobytes() or between < LEAST_MIXED:
            return f"{name}: the reference kernels' results are at {between:.1f} dB: {' '.join(steps)}", integer
    return None, integer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sinter")
    parser.add_argument("--seeds", type=int, default=24)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--keep", metavar="FOLDER", help="where models go that fail")
    args = parser.parse_args()
    sinter = cli.find_sinter(args.sinter)
    failed = integers = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(args.first, args.first + args.seeds):
            wrong, integer = check(sinter, seed, folder)
            integers += integer
            if wrong:
                failed += 1
                print(f"FAIL {seed}: {wrong}")
                if args.keep:
                    os.makedirs(args.keep, exist_ok=True)
                    shutil.copy(os.path.join(folder, "m.onnx"), os.path.join(args.keep, f"random-{seed}.onnx"))
    print(f"{args.seeds - failed} of {args.seeds} random networks are right, {integers} of them on integers alone")
    return 1 if failed or not args.seeds else 0


if __name__ == "__main__":
    sys.exit(main())
