"""The table of real networks (models.tsv): seeded inputs, expected outputs, tolerances.

Expected outputs come from golden files beside a network or from onnxruntime with one thread; the latter are kept in a
cache folder, keyed by everything that they depend on.
"""
import dataclasses
import glob
import hashlib
import os
import shlex
import zlib

import numpy as np
import onnx
import sinter_cli as cli
from onnx import helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
BF16 = onnx.TensorProto.BFLOAT16


@dataclasses.dataclass
class Network:
    file: str
    flags: list
    inputs: str
    expected: str
    tolerance: str
    verdict: str  # run, refuse:WORD, may-refuse:WORD
    remark: str


def read_table(path=os.path.join(HERE, "models.tsv")):
    rows = []
    with open(path, encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                c = line.rstrip("\n").split("\t")
                rows.append(Network(c[0], shlex.split(c[1]), *c[2:7]))
    return rows


QUICK_BYTES = 1 << 19  # of a file, for the quick selection


def selected(shared):
    """The rows to try: all, or with SINTER_NETWORKS=quick (the default of ./test) those with small
    files, after a line with the number that was left out."""
    rows = read_table()
    if os.environ.get("SINTER_NETWORKS", "all") != "quick":
        return rows
    small = [n for n in rows if os.path.getsize(os.path.join(shared, "models", n.file)) <= QUICK_BYTES]
    print(f"quick selection: {len(small)} of {len(rows)} networks, those of up to {QUICK_BYTES} bytes; "
          "SINTER_NETWORKS=all tries every one", flush=True)
    return small


def np_type(info):
    return np.dtype(helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type))


def graph_inputs(model):
    known = {i.name for i in model.graph.initializer}
    return [v for v in model.graph.input if v.name not in known]


def make(kind, values, shape, rng):
    if kind == "normal":
        return rng.normal(values[0], values[1], shape)
    if kind == "uniform":
        return rng.uniform(values[0], values[1], shape)
    if kind == "ints":
        return rng.integers(int(values[0]), int(values[1]) + 1, shape)
    if kind == "prefix":
        return np.broadcast_to(np.arange(shape[-1]) < values[0], shape)
    if kind == "list":
        return np.array(values).reshape(shape)
    raise ValueError(f"unknown recipe {kind}")


def seeded_inputs(net, model):
    """One set of inputs from the recipe; the seed is the file's name."""
    rng = np.random.default_rng(zlib.crc32(net.file.encode()))
    infos = {v.name: v for v in graph_inputs(model)}
    feed = {}
    for part in net.inputs.split("; "):
        left, right = part.replace(" := ", " ~ ").split(" ~ ")
        name, _, dims = left.partition("[")
        info = infos[name]
        if dims or left.endswith("["):
            shape = [int(d) for d in dims.rstrip("]").split(",") if d]
        else:
            shape = [d.dim_value for d in info.type.tensor_type.shape.dim]
        kind, *values = right.split()
        feed[name] = np.asarray(make(kind, [float(v) for v in values], tuple(shape), rng)).astype(np_type(info))
    missing = set(infos) - set(feed)
    if missing:
        raise ValueError(f"{net.file}: no recipe for {sorted(missing)}")
    return feed


def constant_names(net):
    """Inputs that are given at conversion (NAME := RECIPE)."""
    return [p.split(" := ")[0].partition("[")[0] for p in net.inputs.split("; ") if " := " in p]


def repaired(model):
    """A copy whose Concats have no scalar operands: onnxruntime refuses what an older PyTorch exported."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    scalars = {i.name: i for i in model.graph.initializer if not i.dims}
    for n in model.graph.node:
        if n.op_type == "Concat":
            for k, name in enumerate(n.input):
                if name in scalars:
                    t = model.graph.initializer.add()
                    t.CopyFrom(scalars[name])
                    t.name = f"{name}/vector{len(model.graph.initializer)}"
                    t.dims.append(1)
                    n.input[k] = t.name
    return model


def golden_sets(net, model, folder):
    """(inputs, outputs) pairs from the files beside the network; outputs may be a part of all outputs."""
    ins, outs = [v.name for v in graph_inputs(model)], [v.name for v in model.graph.output]
    if net.expected.endswith(".npz"):
        arrays = {}
        for name in net.expected.split(","):
            arrays.update(cli.load_npz(os.path.join(folder, name)))
        return [({k: arrays[k] for k in ins}, {k: arrays[k] for k in outs if k in arrays})]
    sets = []
    for name in net.expected.split(","):
        def read(what, names):
            files = sorted(glob.glob(os.path.join(folder, name, f"{what}_*.pb")))
            protos = [onnx.TensorProto.FromString(open(f, "rb").read()) for f in files]
            return {t.name or names[i]: numpy_helper.to_array(t) for i, t in enumerate(protos)}
        sets.append((read("input", ins), read("output", outs)))
    return sets


def ort_outputs(model_path, model, feed, plain, fixed=False):
    """What onnxruntime answers, one thread; bfloat16 outputs come through an exact cast to float32."""
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    if plain:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    if fixed:
        model = repaired(model)
    half = [o.name for o in model.graph.output if o.type.tensor_type.elem_type == BF16]
    source = model.SerializeToString() if fixed else model_path
    if half:
        changed = onnx.ModelProto()
        changed.CopyFrom(model)
        for o in changed.graph.output:
            if o.name in half:
                changed.graph.node.append(helper.make_node("Cast", [o.name], [o.name + "/float"], to=1))
                o.name += "/float"
                o.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
        source = changed.SerializeToString()
    session = ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    types = {v.name: v.type.tensor_type.elem_type for v in model.graph.input}
    values = {k: ort.OrtValue.ortvalue_from_numpy_with_onnx_type(cli.to_bits(a), types[k]) if cli.is_bits(a.dtype)
              else ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(a).reshape(a.shape)) for k, a in feed.items()}
    got = session.run_with_ort_values(None, values)
    out = {}
    for info, value in zip(model.graph.output, got):
        out[info.name] = value.numpy().astype(np_type(info)) if info.name in half else value.numpy()
    return out


def cached_ort(model_path, model, net, feed, cache):
    import onnxruntime
    h = hashlib.sha256()
    for part in (open(model_path, "rb").read(), net.expected.encode(), onnxruntime.__version__.encode(),
                 open(__file__, "rb").read(), *(cli.to_bits(feed[k]).tobytes() for k in sorted(feed))):
        h.update(part)
    path = os.path.join(cache, h.hexdigest()[:24] + ".npz")
    infos = {o.name: o for o in model.graph.output}
    if not os.path.exists(path):
        os.makedirs(cache, exist_ok=True)
        cli.save_npz(path + ".part", ort_outputs(model_path, model, feed, net.expected == "ort-plain",
                                                 net.expected == "ort-repaired"))
        os.replace(path + ".part", path)
    return {k: cli.from_bits(v, np_type(infos[k])) for k, v in cli.load_npz(path).items()}


def cases(net, model_path, model, cache):
    """All (inputs, expected outputs) of a network."""
    if net.inputs == "golden":
        return golden_sets(net, model, os.path.dirname(model_path))
    feed = seeded_inputs(net, model)
    return [(feed, cached_ort(model_path, model, net, feed, cache))]


def quant_step(net, model, output):
    """The size of one step of a quantized output."""
    if ":" in net.tolerance:
        return float(net.tolerance.split(":")[1])
    known = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    for n in model.graph.node:
        if n.op_type == "Constant" and n.attribute[0].name == "value":
            known[n.output[0]] = numpy_helper.to_array(n.attribute[0].t)
    for n in model.graph.node:
        if output in n.output and n.op_type == "DequantizeLinear":
            return float(np.max(known[n.input[1]]))
    raise ValueError(f"{net.file}: {output} is not the result of a DequantizeLinear; give quant:STEP")


def allowed(net, model, name, want):
    """The largest absolute difference that passes; 0 for integers."""
    if want.dtype.kind in "biu":
        return 0.0
    if net.tolerance.startswith("quant"):
        return quant_step(net, model, name) * 1.0001
    largest = float(np.max(np.abs(want.astype(np.float64)), initial=0))
    return (2.0**-7 if cli.is_bits(want.dtype) else 1e-4) * largest
