#!/usr/bin/env python3
"""--prefer-float16 and --prefer-bfloat16: what computes in the type then, what stays, and what the ledger records (rules
compute.float16 and compute.bfloat16).

    prefer_half.py [--sinter PROGRAM] [--verbose]

Values are compared with the same network in float64, on the reference kernels where the machine has no others: they
compute such files in float32 or wider and round each result once. The kernels themselves are tested in
tests/ops/random_cases.cc.
"""
import argparse
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
sys.path.insert(0, HERE)
import pinned  # noqa: E402

pinned.require()
import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import run as corpus_run  # noqa: E402
import sinter_cli as cli  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402
from type_case import TypeCase, body, build, node  # noqa: E402

f16, f32, bf16 = np.float16, np.float32, ml_dtypes.bfloat16
LETTER = {f16: "h", f32: "f", bf16: "w"}


def rng(seed=7):
    return np.random.default_rng(seed)


def weights(kind, *shape, seed=7):
    return (rng(seed).standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(kind)


def convolutions(kind):
    """Conv, BatchNormalization, Relu, depthwise Conv, residual Add, MaxPool, Flatten, Gemm, Softmax."""
    c = {"w1": weights(kind, 8, 3, 3, 3), "b1": weights(kind, 8), "w2": weights(kind, 8, 1, 3, 3, seed=8),
         "w3": weights(kind, 8, 8, 1, 1, seed=9), "w4": weights(kind, 5, 128, seed=10), "b4": weights(kind, 5),
         "s": np.full(8, 1.25, kind), "m": np.full(8, 0.125, kind), "v": np.full(8, 0.75, kind)}
    nodes = [node("Conv", ["x", "w1", "b1"], "c1", name="conv1", pads=[1, 1, 1, 1]),
             node("BatchNormalization", ["c1", "s", "m", "m", "v"], "n1", name="norm"),
             node("Relu", "n1", "r1", name="relu1"),
             node("Conv", ["r1", "w2"], "c2", name="depthwise", pads=[1, 1, 1, 1], group=8),
             node("Conv", ["c2", "w3"], "c3", name="conv3"),
             node("Add", ["c3", "r1"], "a", name="add"),
             node("MaxPool", "a", "p", name="pool", kernel_shape=[2, 2], strides=[2, 2]),
             node("Flatten", "p", "f", name="flat"),
             node("Gemm", ["f", "w4", "b4"], "g", name="gemm", transB=1),
             node("Softmax", "g", "y", name="soft")]
    return nodes, "x", "y", c, {"x": (1, 3, 8, 8), "y": (1, 5)}


def masked(kind):
    """Linear, mask of -1e4, Softmax; and a square that is summed."""
    c = {"w": weights(kind, 16, 16), "mask": np.where(np.arange(16) < 9, 0, -1e4).astype(kind)}
    nodes = [node("MatMul", ["x", "w"], "l", name="linear"), node("Add", ["l", "mask"], "a", name="mask_add"),
             node("Softmax", "a", "y", name="soft"), node("Mul", ["l", "l"], "q", name="square"),
             node("ReduceSum", "q", "z", name="sum")]
    return nodes, "x", "y z", c, {"x": (2, 16), "y": (2, 16), "z": (1, 1)}


def long_sum(kind):
    c = {"w": weights(kind, 3000, 4), "v": weights(kind, 4, 4)}
    nodes = [node("MatMul", ["x", "w"], "l", name="long"), node("MatMul", ["l", "v"], "y", name="short")]
    return nodes, "x", "y", c, {"x": (2, 3000), "y": (2, 4)}


def large(kind):
    """Sums beyond 65504 between two products, scaled down again."""
    c = {"w": np.full((1024, 4), 128, kind), "s": np.array(2.0**-9, kind), "v": weights(kind, 4, 4)}
    nodes = [node("MatMul", ["x", "w"], "l", name="large"), node("Relu", "l", "r", name="relu"),
             node("Mul", ["r", "s"], "m", name="scale"),
             node("MatMul", ["m", "v"], "y", name="small")]
    return nodes, "x", "y", c, {"x": (2, 1024), "y": (2, 4)}


def branches(kind):
    """A product, then one of two in branches."""
    c = {"w": weights(kind, 32, 32)}
    arms = {f"{arm}_branch": body([node("MatMul", ["l", f"w_{arm}"], f"y_{arm}")], "", f"y_{arm}:{LETTER[kind]}",
                                  {f"w_{arm}": weights(kind, 32, 32, seed=seed)})
            for arm, seed in (("then", 3), ("else", 4))}
    nodes = [node("MatMul", ["x", "w"], "l", name="before"), node("ReduceSum", "l", "sum", name="sum", keepdims=0),
             node("Cast", "sum", "sum32", name="cast", to=onnx.TensorProto.FLOAT),
             node("Constant", [], ["zero"], value=numpy_helper.from_array(np.array(0, f32))),
             node("Greater", ["sum32", "zero"], "cond", name="greater"), node("If", "cond", "y", name="if", **arms)]
    return nodes, "x", "y", c, {"x": (2, 32), "y": (2, 32)}


def gelu(kind):
    """Between two products something that has no float16 kernel."""
    c = {"w": weights(kind, 16, 16), "v": weights(kind, 16, 16, seed=3)}
    nodes = [node("MatMul", ["x", "w"], "l", name="first"), node("Gelu", "l", "g", name="gelu"),
             node("MatMul", ["g", "v"], "y", name="second")]
    return nodes, "x", "y", c, {"x": (2, 16), "y": (2, 16)}


def rounded_between(kind):
    """Between two products a pair of Casts that the model has."""
    c = {"w": weights(kind, 16, 16), "v": weights(kind, 16, 16, seed=3)}
    nodes = [node("MatMul", ["x", "w"], "l", name="first"), node("Cast", "l", "t", name="down", to=10),
             node("Cast", "t", "u", name="up", to=1), node("MatMul", ["u", "v"], "y", name="second")]
    return nodes, "x", "y", c, {"x": (2, 16), "y": (2, 16)}


QUERIES, WIDTH, HEADS = 24, 32, 4


def transformer(kind):
    """Rotated queries and keys and values of four heads, scores with a mask that hides later keys, weighted values, a product,
    a residual."""
    c = {f"w{n}": weights(kind, WIDTH, WIDTH, seed=i) for i, n in enumerate("qkvo")}
    c["split"] = np.array([0, 0, HEADS, WIDTH // HEADS], np.int64)
    c["join"] = np.array([0, 0, WIDTH], np.int64)
    c["scale"] = np.array((WIDTH // HEADS) ** -0.5, kind)
    c["mask"] = np.where(np.tri(QUERIES), 0, -np.inf).astype(kind)
    pairs = WIDTH // HEADS // 2
    angles = np.arange(QUERIES)[:, None] * 100.0 ** (-np.arange(pairs) / pairs)
    c["cos"], c["sin"] = (np.tile(f(angles), 2).astype(kind) for f in (np.cos, np.sin))
    nodes = []
    for n in "qkv":
        nodes += [node("MatMul", ["x", "w" + n], n + "1", name="linear_" + n),
                  node("Reshape", [n + "1", "split"], n + "2"),
                  node("Transpose", n + "2", n + "3", perm=[0, 2, 1, 3])]
    for n in "qk":
        nodes += [node("Split", n + "3", f"{n}a {n}b", axis=-1), node("Neg", n + "b", n + "c"),
                  node("Concat", [n + "c", n + "a"], n + "d", axis=-1), node("Mul", [n + "3", "cos"], n + "e"),
                  node("Mul", [n + "d", "sin"], n + "f"), node("Add", [n + "e", n + "f"], n + "4", name="rope_" + n)]
    nodes += [node("Transpose", "k4", "k5", perm=[0, 1, 3, 2]),
              node("MatMul", ["q4", "k5"], "s1", name="scores"), node("Mul", ["s1", "scale"], "s2"),
              node("Add", ["s2", "mask"], "s3"), node("Softmax", "s3", "p", axis=-1),
              node("MatMul", ["p", "v3"], "a1", name="attention"), node("Transpose", "a1", "a2", perm=[0, 2, 1, 3]),
              node("Reshape", ["a2", "join"], "a3"), node("MatMul", ["a3", "wo"], "o", name="linear_o"),
              node("Add", ["o", "x"], "y", name="residual")]
    return nodes, "x", "y", c, {"x": (2, QUERIES, WIDTH), "y": (2, QUERIES, WIDTH)}


def model(network, kind, public=None):
    nodes, inputs, outputs, constants, shapes = network(kind)
    letter = LETTER[public or kind]
    opset = 20 if network is gelu else 17
    if public and public is not kind:
        to = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
        back = helper.np_dtype_to_tensor_dtype(np.dtype(public))
        rename = {n: n + "_inner" for n in (inputs + " " + outputs).split()}
        for n in nodes:
            n.input[:] = [rename.get(i, i) for i in n.input]
            n.output[:] = [rename.get(o, o) for o in n.output]
        nodes = [node("Cast", i, i + "_inner", name="in_" + i, to=to) for i in inputs.split()] + nodes + [
            node("Cast", o + "_inner", o, name="out_" + o, to=back) for o in outputs.split()]
    feeds = {n: np.zeros(shapes[n], public or kind) for n in inputs.split()}
    return build(nodes, feeds, " ".join(f"{n}:{letter}" for n in outputs.split()), constants, opset=opset,
                 shapes=shapes), shapes


def in_float64(m):
    """The same network with every float tensor in float64, weights as they were rounded."""
    wide = onnx.ModelProto()
    wide.CopyFrom(m)
    floats = {onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16}
    for t in wide.graph.initializer:
        if t.data_type in floats:
            t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(t).astype(np.float64), t.name))
    for n in wide.graph.node:
        for a in n.attribute:
            if n.op_type == "Cast" and a.name == "to" and a.i in floats:
                a.i = onnx.TensorProto.DOUBLE
    for v in [*wide.graph.input, *wide.graph.output]:
        v.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    return wide


class Converted:
    """A model after convert --target aarch64 --prefer-float16 (or another type), and the output of inspect for the file."""

    def __init__(self, sinter, work, m, *flags, target=None, half=f16):
        self.rule = "compute.float16" if half is f16 else "compute.bfloat16"
        target = target or ("aarch64" if half is f16 else BF16_TARGET)
        self.sinter, self.work = sinter, work
        self.source, self.file = os.path.join(work, "m.onnx"), os.path.join(work, "m.sinter")
        onnx.save(m, self.source)
        self.answer = cli.call(sinter, "convert", self.source, "-o", self.file, "--target", target,
                               "--prefer-float16" if half is f16 else "--prefer-bfloat16", *flags)
        if self.answer.code == 0:
            self.types = json.loads(cli.call(sinter, "inspect", self.file, "--types", "--json").out)
            self.steps = json.loads(cli.call(sinter, "inspect", self.file, "--steps", "--json").out)["steps"]

    def computed(self):
        """name of a step's node -> the type of its first result, Casts and moves apart."""
        return {s["name"]: s["outputs"][0].split(" ")[-1].split("[")[0] for s in self.steps
                if s["op"] not in ("Cast", "View", "Copy", "Transpose")}

    def casts(self):
        return [s for s in self.steps if s["op"] == "Cast" and not s["elided"]]

    def reason(self, name):
        return [d["reason"] for d in self.types["decisions"]
                if d["rule"] == self.rule and d["node"] == name and d["effect"] == "kept"]

    def run(self, feeds):
        given, got = os.path.join(self.work, "in.npz"), os.path.join(self.work, "out.npz")
        cli.save_npz(given, feeds)
        r = cli.call(self.sinter, "run", self.file, "--inputs", given, "--outputs", got, "--quiet")
        assert r.code == 0, r.why()
        return cli.load_npz(got)


def expect(condition, outcome):
    if not condition:
        raise AssertionError(outcome)


def close(sinter, work, m, shapes, kind, tolerance, *flags, half=f16, target=None):
    """Converts, compares with float64, replays the ledger; gives the Converted."""
    c = Converted(sinter, work, m, *flags, half=half, target=target)
    expect(c.answer.code == 0, c.answer.why())
    feeds = {i.name: rng(1).uniform(-1, 1, shapes[i.name]).astype(kind) for i in m.graph.input}
    want = dict(zip([o.name for o in m.graph.output],
                    ReferenceEvaluator(in_float64(m)).run(None, {k: v.astype(np.float64) for k, v in feeds.items()})))
    for name, got in c.run(feeds).items():
        expect(got.dtype == kind, f"{name} has become {got.dtype}")
        error = np.abs(got.astype(np.float64) - want[name]).max() / np.abs(want[name]).max()
        expect(error <= tolerance, f"{name} is off by {error:.2g} of the largest value")
    case = TypeCase("", "", m, {}, {})
    fault = corpus_run.replayed(case, c.types, c.steps)
    expect(fault is None, fault)
    outcome = cli.call(sinter, "compare", c.source, c.file, "--inputs", os.path.join(work, "in.npz"), "--min-sqnr",
                       "45" if half is f16 else "30")
    expect(outcome.code == 0, f"compare: {outcome.out} {outcome.err}")
    return c


FOUR_ROUNDINGS = 4 * 2.0**-11
FOUR_OF_BF16 = 4 * 2.0**-8
BF16_TARGET = "x86_64+avx512bf16"


def test_float16_model(sinter, work):
    c = close(sinter, work, *model(convolutions, f16), f16, FOUR_ROUNDINGS)
    expect({n: t for n, t in c.computed().items() if t != "float16"} == {"soft": "float32"}, c.computed())
    expect(len(c.casts()) == 2, [s["name"] for s in c.casts()])  # before and behind the softmax
    expect("conv1" in c.answer.err and "65504" in c.answer.err, c.answer.err)


def test_float32_model(sinter, work):
    c = close(sinter, work, *model(convolutions, f32), f32, FOUR_ROUNDINGS)
    expect({n: t for n, t in c.computed().items() if t != "float16"} == {"soft": "float32"}, c.computed())
    expect(len(c.casts()) == 2, [s["name"] for s in c.casts()])  # of the input, before the softmax
    plain = os.path.join(work, "plain.sinter")
    cli.call(sinter, "convert", c.source, "-o", plain, "--target", "aarch64")
    expect(os.path.getsize(c.file) < 0.95 * os.path.getsize(plain), "the weights are not stored in float16")


def test_float16_inside_float32(sinter, work):
    c = close(sinter, work, *model(convolutions, f16, public=f32), f32, FOUR_ROUNDINGS)
    expect(c.computed()["gemm"] == "float16" and c.computed()["soft"] == "float32", c.computed())


def test_bfloat16_stays(sinter, work):
    c = Converted(sinter, work, model(convolutions, bf16)[0])
    expect("float16" not in c.computed().values(), c.computed())
    expect("no operation of this model" in c.answer.err, c.answer.err)


def test_masks_and_squares_stay(sinter, work):
    for kind in (f16, f32):
        c = close(sinter, work, *model(masked, kind), kind, FOUR_ROUNDINGS)
        computed = c.computed()
        expect(computed.pop("linear") == "float16" and set(computed.values()) == {"float32"}, c.computed())
        expect("softmax" in c.reason("mask_add")[0] and "squares" in c.reason("square")[0], c.types["decisions"])


def test_long_sums_stay(sinter, work):
    c = close(sinter, work, *model(long_sum, f16), f16, FOUR_ROUNDINGS)
    expect(c.computed() == {"long": "float32", "short": "float16"}, c.computed())
    expect("3000 terms" in c.reason("long")[0], c.reason("long"))


def test_large_sums_stay(sinter, work):
    m, _ = model(large, f16)
    c = Converted(sinter, work, m)
    expect(c.computed()["large"] == "float32" and c.computed()["small"] == "float16", c.computed())
    expect("in the trial run the result" in c.reason("large")[0], c.reason("large"))
    x = np.ones((2, 1024), f16)
    want = ReferenceEvaluator(in_float64(m)).run(None, {"x": x.astype(np.float64)})[0]
    got = c.run({"x": x})["y"].astype(np.float64)
    expect(np.abs(got - want).max() <= FOUR_ROUNDINGS * np.abs(want).max(), f"{got} instead of {want}")


def test_branches(sinter, work):
    c = Converted(sinter, work, model(branches, f16)[0])
    expect(c.answer.code == 0, c.answer.why())
    expect(c.computed()["before"] == "float16" and c.computed()["sum"] == "float32", c.computed())


def test_casts_of_the_model_inside(sinter, work):
    c = close(sinter, work, *model(rounded_between, f32), f32, FOUR_ROUNDINGS)
    expect(c.computed() == {"first": "float16", "second": "float16"}, c.computed())
    omitted = {d["node"]: d["rule"] for d in c.types["decisions"] if "Cast is omitted" in d["reason"]}
    expect(omitted == {"down": "cast.explicit", "up": "cast.explicit"}, c.types["decisions"])


def test_islands(sinter, work):
    c = close(sinter, work, *model(gelu, f16), f16, FOUR_ROUNDINGS)
    expect(c.computed() == {"first": "float16", "gelu": "float32", "second": "float16"}, c.computed())
    expect(len(c.casts()) == 2, [s["name"] for s in c.casts()])
    text = cli.call(sinter, "explain", c.file, "gelu").out
    expect("Gelu is kept in float32" in text, text)
    text = cli.call(sinter, "explain", c.file, "l").out
    expect("the target computes it in float16" in text and "temporary float16" in text, text)


def test_strict_and_other_targets(sinter, work):
    m, _ = model(convolutions, f16)
    expect(Converted(sinter, work, m, "--strict").answer.code == 1, "--strict passes what is not proven")
    for target in ("x86_64", "armv7", "portable"):
        c = Converted(sinter, work, m, target=target)
        expect(c.answer.code == 0 and f"'{target}' has no kernels that compute in float16" in c.answer.err, c.answer.err)
        expect("float16" not in c.computed().values(), c.computed())


def test_same_bytes(sinter, work):
    m, _ = model(convolutions, f32)
    files = []
    for _ in range(2):
        with open(Converted(sinter, work, m).file, "rb") as f:
            files.append(f.read())
    expect(files[0] == files[1], "two conversions differ")


def test_bfloat16_models(sinter, work):
    for kind in (bf16, f32):
        c = close(sinter, work, *model(convolutions, kind, public=f32), f32, FOUR_OF_BF16, half=bf16)
        wide = {n for n, t in c.computed().items() if t == "float32"}
        expect(wide == {"soft"}, c.computed())
        expect("65504" not in c.answer.err, c.answer.err)
        expect("Softmax is kept in float32" in c.reason("soft")[0], c.reason("soft"))


def test_bfloat16_has_the_range_of_float32(sinter, work):
    for network, kind in ((large, bf16), (long_sum, f32)):
        c = close(sinter, work, *model(network, kind, public=f32), f32, FOUR_OF_BF16, half=bf16)
        expect(set(c.computed().values()) == {"bfloat16"}, c.computed())


ON_CUDA = ["--backends", "cuda-emulated"]


def attention_steps(c):
    return [s for s in c.steps if s["op"] == "Attention"]


def test_attention_on_cuda(sinter, work):
    """Attention computes in the type with its mask in float32, and nothing is widened in between."""
    probe = Converted(sinter, work, model(transformer, f32)[0], *ON_CUDA, target="cuda")
    if probe.answer.code != 0 and "has no such backend" in probe.answer.err:
        return
    for half, tolerance in ((f16, FOUR_ROUNDINGS), (bf16, FOUR_OF_BF16)):
        for kind in (f32, half):
            c = close(sinter, work, *model(transformer, kind, public=f32), f32, tolerance, *ON_CUDA,
                      half=half, target="cuda")
            steps = attention_steps(c)
            name = "float16" if half is f16 else "bfloat16"
            expect(len(steps) == 1 and steps[0]["outputs"][0].split(" ")[-1].startswith(name), steps)
            expect(steps[0]["backend"] == "cuda-emulated", steps[0])
            expect(len([s for s in c.steps if s["op"] == "Rope"]) == 2, [s["op"] for s in c.steps])
            expect(set(c.computed().values()) == {name}, c.computed())
            expect(len(c.casts()) == 2, [s["name"] for s in c.casts()])  # of the input and of the output


def test_attention_elsewhere(sinter, work):
    """Targets without kernels for it keep it in float32."""
    for half in (f16, bf16):
        c = close(sinter, work, *model(transformer, f32), f32, FOUR_ROUNDINGS if half is f16 else FOUR_OF_BF16, half=half)
        steps = attention_steps(c)
        expect(len(steps) == 1 and " float32" in steps[0]["outputs"][0], steps)
        expect("no " in c.reason(steps[0]["name"])[0], c.reason(steps[0]["name"]))


def test_float16_is_not_made_bfloat16(sinter, work):
    c = Converted(sinter, work, model(convolutions, f16)[0], half=bf16)
    expect("bfloat16" not in c.computed().values(), c.computed())
    expect("--prefer-bfloat16: no operation of this model" in c.answer.err, c.answer.err)


def test_bfloat16_for_other_targets(sinter, work):
    m, _ = model(convolutions, f32)
    for target in ("x86_64", "aarch64", "portable"):
        c = Converted(sinter, work, m, target=target, half=bf16)
        expect(c.answer.code == 0 and f"'{target}' has no kernels that compute in bfloat16" in c.answer.err, c.answer.err)
        expect("bfloat16" not in c.computed().values(), c.computed())


def test_what_excludes_it(sinter, work):
    m, _ = model(convolutions, f32)
    for other in (["--prefer-float16"], ["--quantize", "int8w"]):
        c = Converted(sinter, work, m, *other, half=bf16)
        expect(c.answer.code == 2 and "exclude each other" in c.answer.err, c.answer.why())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sinter")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    sinter, failed = cli.find_sinter(args.sinter), 0
    tests = [(n, f) for n, f in globals().items() if n.startswith("test_")]
    for name, test in tests:
        with tempfile.TemporaryDirectory(prefix="half-") as work:
            try:
                test(sinter, work)
                if args.verbose:
                    print(f"passed {name}")
            except AssertionError as e:
                failed += 1
                print(f"FAILED {name}: {e}")
    print(f"{len(tests) - failed} of {len(tests)} passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
