#!/usr/bin/env python3
"""Models with narrow weights: no file is larger than its weights; results are those of widened weights, bit for bit.

    run.py [--sinter PROGRAM] [--filter GLOB] [--keep FOLDER]

For each model: bytes of weights in the ONNX file against the .sinter file (at most 2 % and the plan more), outputs with
--weights stored against --weights widened on every backend, and the output of `inspect`. Products of integers with
scales are left as widened weights for that; as they are by default, packed, they are converted once more, for size and
values. Weights that products read in their narrow type are in a model of their own: nothing is prepared for them, and
sums of widened weights differ in their last bits.
"""
import argparse
import fnmatch
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
import pinned  # noqa: E402

pinned.require()
import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import sinter_cli as cli  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

PLAN = 12000  # bytes of header, FlatBuffer and alignment that these small graphs take at most
TYPES = {"bfloat16": TensorProto.BFLOAT16, "float16": TensorProto.FLOAT16, "float32": TensorProto.FLOAT,
         "float8_e4m3fn": TensorProto.FLOAT8E4M3FN, "float8_e4m3fnuz": TensorProto.FLOAT8E4M3FNUZ,
         "float8_e5m2": TensorProto.FLOAT8E5M2, "float8_e5m2fnuz": TensorProto.FLOAT8E5M2FNUZ,
         "int64": TensorProto.INT64, "int8": TensorProto.INT8, "uint8": TensorProto.UINT8, "int4": TensorProto.INT4, "uint4": TensorProto.UINT4}
FLOAT8 = [t for t in TYPES if t.startswith("float8")]


class Net:
    """A graph under construction; weights are drawn on demand."""

    def __init__(self, name, opset=21):
        self.name, self.opset = name, opset
        self.nodes, self.initializers, self.outputs, self.inputs = [], [], [], []
        self.rng = np.random.default_rng(len(name) + sum(map(ord, name)))
        self.stored = 0  # bytes of initializers
        self.known = {}

    def const(self, a, kind):
        name = f"w{len(self.initializers)}"
        a = np.asarray(a)
        if kind in ("int4", "uint4"):
            flat = (a.reshape(-1).astype(np.int64) & 15).astype(np.uint8)
            flat = np.append(flat, 0)[:len(flat) + len(flat) % 2]
            raw = (flat[0::2] | flat[1::2] << 4).astype(np.uint8).tobytes()
        else:
            raw = a.astype(getattr(ml_dtypes, kind) if hasattr(ml_dtypes, kind) else kind).tobytes()
        t = TensorProto(data_type=TYPES[kind], name=name, dims=a.shape, raw_data=raw)
        self.initializers.append(t)
        self.stored += len(raw)
        return name

    def weights(self, shape, kind):
        if kind in ("int8", "int4"):
            span = 127 if kind == "int8" else 8
            return self.const(self.rng.integers(-span, span, shape), kind)
        if kind in ("uint8", "uint4"):
            return self.const(self.rng.integers(0, 256 if kind == "uint8" else 16, shape), kind)
        return self.const(self.rng.standard_normal(shape) / 4, kind)

    def op(self, op_type, *inputs, **attributes):
        out = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, list(inputs), [out], **attributes))
        return out

    def input(self, name, kind, shape):
        self.inputs.append(helper.make_tensor_value_info(name, TYPES[kind], shape))
        return name

    def output(self, value, kind, shape):
        self.op("Identity", value)
        self.nodes[-1].output[0] = f"y{len(self.outputs)}"
        self.outputs.append(helper.make_tensor_value_info(self.nodes[-1].output[0], TYPES[kind], shape))

    def model(self):
        g = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.initializers)
        return helper.make_model(g, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)


def plain(kind):
    """Linear layers, a convolution with batch normalization, a table; all in one narrow float type."""
    n = Net(f"net_{kind}")
    x = n.input("x", kind, [5, 96])
    for width in (160, 96):
        x = n.op("Add", n.op("MatMul", x, n.weights((96 if width == 160 else 160, width), kind)),
                 n.weights((width,), kind))
    x = n.op("Relu", x)
    n.output(n.op("Gemm", x, n.weights((300, 96), kind), n.weights((300,), kind), transB=1), kind, [5, 300])
    image = n.input("image", kind, [1, 16, 9, 9])
    c = n.op("Conv", image, n.weights((64, 16, 3, 3), kind), n.weights((64,), kind), pads=[1, 1, 1, 1])
    norm = [n.const(np.abs(n.rng.standard_normal(64)) + 0.5, kind) for _ in range(4)]
    c = n.op("BatchNormalization", c, *norm)
    c = n.op("ConvTranspose", n.op("Relu", c), n.weights((64, 8, 2, 2), kind), strides=[2, 2])
    n.output(c, kind, [1, 8, 18, 18])
    ids = n.input("ids", "int64", [5, 7])
    n.output(n.op("Gather", n.weights((100, 24), kind), ids), kind, [5, 7, 24])
    return n


def cast8(kind):
    """A float8 weight and bias under bfloat16 activations."""
    n = Net(f"cast_{kind}")
    x = n.input("x", "bfloat16", [4, 128])
    w = n.op("Cast", n.weights((128, 256), kind), to=TensorProto.BFLOAT16)
    b = n.op("Cast", n.weights((256,), kind), to=TensorProto.BFLOAT16)
    n.output(n.op("Add", n.op("MatMul", x, w), b), "bfloat16", [4, 256])
    return n


def scaled(kind, block=0, scale="float32", axis=0, zero=True, transpose=False):
    """DequantizeLinear before a product: per channel or blocked."""
    n = Net(f"scaled_{kind}_b{block}_{scale}_a{axis}{'_zp' if zero else ''}{'_t' if transpose else ''}")
    k, m = (160, 256) if not transpose else (256, 160)
    x = n.input("x", scale, [4, 160])
    shape = [k, m]
    if block:
        shape[axis] //= block
    else:
        shape = [shape[axis]]
    s = n.const(np.abs(n.rng.standard_normal(shape)) / 64 + 1e-3, scale)
    operands = [n.weights((k, m), kind), s]
    if zero:
        operands.append(n.weights(tuple(shape), kind) if not kind.startswith("float") else n.const(np.zeros(shape), kind))
    w = n.op("DequantizeLinear", *operands, axis=axis, **({"block_size": block} if block else {}))
    if transpose:
        w = n.op("Transpose", w, perm=[1, 0])
    y = n.op("MatMul", x, w)
    # Small products of few rows take another kernel.
    n.output(y, scale, [4, 256])
    one = n.op("Slice", x, *(n.const_i64(v) for v in ([0], [1], [0])))
    n.output(n.op("MatMul", one, w), scale, [1, 256])
    return n


def const_i64(self, items):
    name = f"w{len(self.initializers)}"
    self.initializers.append(numpy_helper.from_array(np.asarray(items, np.int64), name))
    return name


Net.const_i64 = const_i64


def conv_int8():
    """Convolutions with per-channel int8 weights, as quantization tools leave them, and a table of int8."""
    n = Net("conv_int8")
    x = n.input("x", "float32", [1, 12, 10, 10])
    for c_in, c_out, group in ((12, 48, 1), (48, 48, 48), (48, 20, 4)):
        w = n.op("DequantizeLinear", n.weights((c_out, c_in // group, 3, 3), "int8"),
                 n.const(np.abs(n.rng.standard_normal(c_out)) / 50 + 1e-3, "float32"), axis=0)
        x = n.op("Conv", x, w, n.weights((c_out,), "float32"), group=group, pads=[1, 1, 1, 1])
        x = n.op("BatchNormalization", x, *[n.const(np.abs(n.rng.standard_normal(c_out)) + 0.5, "float32")
                                            for _ in range(4)])
        x = n.op("Relu", x)
    n.output(x, "float32", [1, 20, 10, 10])
    return n


def shared():
    """One weight read by two products, one of them transposed, and inside the branches of an If."""
    n = Net("shared_bfloat16")
    x = n.input("x", "bfloat16", [6, 128])
    w = n.weights((128, 128), "bfloat16")
    y = n.op("MatMul", n.op("MatMul", x, w), n.op("Transpose", w, perm=[1, 0]))
    then = helper.make_graph([helper.make_node("MatMul", [y, w], ["then_y"])], "then", [],
                             [helper.make_tensor_value_info("then_y", TYPES["bfloat16"], [6, 128])])
    other = helper.make_graph([helper.make_node("Sub", [y, w6 := n.weights((6, 128), "bfloat16")], ["else_y"])],
                              "else", [], [helper.make_tensor_value_info("else_y", TYPES["bfloat16"], [6, 128])])
    assert w6
    total = n.op("ReduceSum", n.op("Cast", x, to=TensorProto.FLOAT), keepdims=0)
    go = n.op("Greater", total, n.const(np.float32(0), "float32"))
    n.output(n.op("If", go, then_branch=then, else_branch=other), "bfloat16", [6, 128])
    n.copies = 2  # the transposed one is another array
    return n


def large():
    """So many weights that products read them as they are: layers of few and many rows, and convolutions."""
    n = Net("large")
    for rows in (3, 40):
        x = n.input(f"x{rows}", "float32", [rows, 1024])
        for kind in ("bfloat16", "float8_e4m3fn", "float16", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"):
            w = n.op("Cast", n.drawn((1024, 1024), kind), to=TensorProto.FLOAT)
            x = n.op("MatMul", x, w)
            # A factor that is not folded into the weights.
            x = n.op("Mul", x, n.const(n.rng.uniform(0.1, 0.2, 1024), "float32"))
        n.output(x, "float32", [rows, 1024])
    image = n.input("image", "float32", [1, 768, 5, 5])
    for kind, shape, pads in (("float16", (608, 768, 3, 3), 1), ("bfloat16", (7000, 608, 1, 1), 0)):
        w = n.op("Cast", n.drawn(shape, kind), to=TensorProto.FLOAT)
        image = n.op("Conv", image, w, n.const(n.rng.standard_normal(shape[0]), "float32"), pads=[pads] * 4)
    n.output(image, "float32", [1, 7000, 5, 5])
    return n


def many():
    """Layers that are small and many, of a row as in decoding and of more."""
    n = Net("large-many")
    for rows in (1, 5):
        x = n.input(f"x{rows}", "float32", [rows, 256])
        for layer in range(36):
            kind = ("bfloat16", "float8_e4m3fn", "float16", "float8_e5m2")[layer % 4]
            x = n.op("MatMul", x, n.op("Cast", n.weights((256, 256), kind), to=TensorProto.FLOAT))
            x = n.op("Mul", x, n.const(n.rng.uniform(0.2, 0.4, 256), "float32"))
        n.output(x, "float32", [rows, 256])
    return n


def drawn(self, shape, kind):
    """Weights that are drawn once for all that ask for them."""
    if (shape, kind) not in self.known:
        self.known[shape, kind] = self.weights(shape, kind)
    return self.known[shape, kind]


Net.drawn = drawn


def nets():
    for kind in ("bfloat16", "float16"):
        yield plain(kind)
    for kind in FLOAT8:
        yield cast8(kind)
        yield scaled(kind, axis=1)
        yield scaled(kind, block=32, scale="bfloat16")
    for kind in ("int8", "uint8", "int4", "uint4"):
        yield scaled(kind, axis=1)
        yield scaled(kind, block=32)
        yield scaled(kind, block=16, scale="float16", zero=False)
        yield scaled(kind, block=32, axis=1, transpose=True)
    yield conv_int8()
    yield shared()


def feeds(model, seed):
    rng = np.random.default_rng(seed)
    out = {}
    for i in model.graph.input:
        shape = [d.dim_value for d in i.type.tensor_type.shape.dim]
        kind = next(k for k, v in TYPES.items() if v == i.type.tensor_type.elem_type)
        if kind == "int64":
            out[i.name] = rng.integers(0, 100, shape)
            continue
        a = rng.standard_normal(shape).astype(np.float32)
        out[i.name] = a.astype(ml_dtypes.bfloat16).astype(np.float32) if kind == "bfloat16" else a.astype(kind)
    return out


def check(net, sinter, work):
    faults = []
    model = net.model()
    source = os.path.join(work, net.name + ".onnx")
    onnx.save(model, source)
    files = {}
    for mode in ("stored", "widened"):
        files[mode] = os.path.join(work, f"{net.name}.{mode}.sinter")
        r = cli.call(sinter, "convert", source, "-o", files[mode], "--weights", mode, "--disable-pass", "recognise-low-bit",
                     timeout=120)
        if r.code != 0:
            return [f"convert --weights {mode}: {r.why()}"], ""
    sizes = {m: os.path.getsize(f) for m, f in files.items()}
    room = 1.02 * net.stored * getattr(net, "copies", 1) + PLAN
    if sizes["stored"] > room:
        faults.append(f"the file has {sizes['stored']} bytes, the weights {net.stored}; at most {room:.0f}")
    if sizes["widened"] < 1.5 * sizes["stored"]:
        faults.append(f"widened weights take {sizes['widened']} bytes, stored ones {sizes['stored']}")
    r = cli.call(sinter, "inspect", files["stored"], "--types", "--steps", "--json", timeout=120)
    told = json.loads(r.out) if r.code == 0 else {}
    forms = [t["stored"]["type"] for t in told.get("types", []) if t["kind"] == "prepared"]
    # A bias of less than 1 KB is stored in the type that it has in the model's arithmetic.
    if not forms or forms[0] not in net.name.replace("_e", "e"):
        faults.append(f"inspect shows prepared values of {forms}: {r.why()}")
    if told.get("weight_bytes", 0) < told.get("widened_weight_bytes", 0) or not told.get("prepare"):
        faults.append("inspect shows no prepare steps or wrong bytes")
    for seed in (1, 2):
        inputs = os.path.join(work, "in.npz")
        np.savez(inputs, **feeds(model, seed))
        for backend in ((), ("--backend", "reference"), ("--backend", "simd"), ("--backend", "xnnpack"),
                        ("--threads", "3")):
            got = {}
            for mode in files:
                out = os.path.join(work, f"out.{mode}.npz")
                r = cli.call(sinter, "run", files[mode], "--inputs", inputs, "--outputs", out, *backend, timeout=120)
                if r.code != 0:
                    faults.append(f"run {mode} {backend}: {r.why()}")
                    break
                got[mode] = dict(np.load(out))
            if len(got) != 2:
                continue
            for name, want in got["widened"].items():
                if want.tobytes() != got["stored"][name].tobytes():
                    faults.append(f"{name} differs with {backend}")
                if not np.isfinite(want.astype(np.float64)).all():
                    faults.append(f"{name} is not finite")
    packed = os.path.join(work, f"{net.name}.packed.sinter")
    r = cli.call(sinter, "convert", source, "-o", packed, timeout=120)
    if r.code != 0:
        return [*faults, f"convert: {r.why()}"], ""
    if os.path.getsize(packed) > room:
        faults.append(f"packed, the file has {os.path.getsize(packed)} bytes, the weights {net.stored}")
    for file in (files["stored"], packed):
        r = cli.call(sinter, "compare", source, file, "--inputs", inputs, "--rtol", "0.02", "--atol", "0.02", timeout=120)
        if r.code != 0:
            faults.append(f"compare with the ONNX file: {r.why()}")
    note = f"weights {net.stored}, stored {sizes['stored']}, widened {sizes['widened']}; session bytes " + " against ".join(
        str(session_bytes(sinter, files[m])) for m in files)
    return faults, note


def check_large(net, sinter, work):
    """The session of the narrow file has hardly more than its arena; results are close to those of widened weights."""
    faults, files, outputs = [], {}, {}
    source, inputs = os.path.join(work, net.name + ".onnx"), os.path.join(work, "in.npz")
    onnx.save(net.model(), source)
    np.savez(inputs, **feeds(net.model(), 1))
    for mode in ("stored", "widened"):
        files[mode] = os.path.join(work, f"{net.name}.{mode}.sinter")
        r = cli.call(sinter, "convert", source, "-o", files[mode], "--weights", mode, "--target", "x86_64", timeout=120)
        if r.code != 0:
            return [f"convert --weights {mode}: {r.why()}"], ""
    size = os.path.getsize(files["stored"])
    if size > 1.02 * net.stored + 2 * PLAN:
        faults.append(f"the file has {size} bytes, the weights {net.stored}")
    told = json.loads(cli.call(sinter, "inspect", files["stored"], "--json", timeout=120).out)
    if told["widened_weight_bytes"]:
        faults.append(f"{told['widened_weight_bytes']} bytes of weights are widened when a session is created")
    own = told["session_bytes"] - told["arena_bytes"]
    if own > max(200000, 2000 * told["step_count"]):  # control structures
        faults.append(f"the session has {own} bytes besides its arena of {told['arena_bytes']}")
    for name, mode, flags in (("widened", "widened", ()), ("stored", "stored", ()),
                              ("threads", "stored", ("--threads", "3")), ("reference", "stored", ("--backend", "reference"))):
        out = os.path.join(work, f"out.{name}.npz")
        r = cli.call(sinter, "run", files[mode], "--inputs", inputs, "--outputs", out, *flags, timeout=120)
        if r.code != 0:
            return [*faults, f"run {name}: {r.why()}"], ""
        outputs[name] = dict(np.load(out))
    for name, want in outputs["widened"].items():
        for other in ("stored", "reference"):
            worst = np.abs(outputs[other][name] - want).max() / np.abs(want).max()
            if not worst < 1e-5:
                faults.append(f"{name} of {other} differs by {worst:.1e} of the largest value")
        if outputs["threads"][name].tobytes() != outputs["stored"][name].tobytes():
            faults.append(f"{name} depends on the number of threads")
    return faults, f"weights {net.stored}, stored {size}; session bytes {told['session_bytes']}"


def session_bytes(sinter, file):
    r = cli.call(sinter, "inspect", file, "--json", timeout=120)
    return json.loads(r.out)["session_bytes"] if r.code == 0 else r.why()


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--sinter")
    p.add_argument("--filter", default="*")
    p.add_argument("--keep", help="write the models here and leave them")
    a = p.parse_args()
    sinter = cli.find_sinter(a.sinter)
    bad = count = 0
    with tempfile.TemporaryDirectory(prefix="weights-") as work:
        for net in [*nets(), large(), many()]:
            if not fnmatch.fnmatch(net.name, a.filter):
                continue
            faults, note = (check_large if net.name.startswith("large") else check)(net, sinter, a.keep or work)
            count += 1
            bad += bool(faults)
            print(f"{'FAIL' if faults else 'pass'}  {net.name}  {note}")
            for f in faults:
                print(f"      {f}")
    print(f"{count - bad} of {count} pass")
    sys.exit(1 if bad or not count else 0)


if __name__ == "__main__":
    main()
