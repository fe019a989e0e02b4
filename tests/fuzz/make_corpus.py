#!/usr/bin/env python3
"""Make the fuzzers' seeds: small valid files that together hold every operation.

    make_corpus.py --sinter PROGRAM [--out FOLDER] [--plans]

Plans: one file for each thing that a memory plan can hold. ONNX: of ONNX's own node tests and of this project's cases the smallest one per operator and set of attributes; models:
what they convert to, the smallest per operation and type, with quantized, weight-only, control-flow and prepare-list ones;
arrays: .npz, .npy and .pb of many types. Pictures, sounds and lists are copies of tests/data/files or written by hand. What fuzzing has added later (seeds that reach more code) keeps other names.
"""
import argparse
import concurrent.futures
import io
import json
import os
import subprocess
import sys
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("common", "onnx_cases", "golden"):
    sys.path.insert(0, os.path.join(HERE, "..", folder))
import pinned  # noqa: E402

pinned.require()
import make_cases  # noqa: E402
import ml_dtypes  # noqa: E402
import networks  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402

LARGEST_ONNX, LARGEST_MODEL = 3000, 5000


def graphs(g):
    yield g
    for n in g.node:
        for a in n.attribute:
            if a.HasField("g"):
                yield from graphs(a.g)


def onnx_features(model):
    found = set()
    for g in graphs(model.graph):
        for n in g.node:
            kind = (n.domain, n.op_type)
            found.add(kind)
            found.update((*kind, a.name) for a in n.attribute)
    found.update(("input type", v.type.tensor_type.elem_type) for v in model.graph.input)
    found.update(("data type", t.data_type) for t in model.graph.initializer)
    if model.functions:
        found.add("functions")
    return found


def onnx_candidates():
    from onnx.backend.test.loader import load_model_tests
    for case in load_model_tests(kind="node"):
        if case.model is not None and case.model.ByteSize() < LARGEST_ONNX:
            yield case.model
    for case in make_cases.cases():
        data = case.model if isinstance(case.model, bytes) else case.model.SerializeToString()
        if len(data) < LARGEST_ONNX and not case.files:
            try:
                yield onnx.load_model_from_string(data)
            except Exception:
                continue


def cover(candidates):
    """A small choice of (bytes, features) that has every feature: smallest first, then what adds nothing goes."""
    have, chosen = set(), []
    for data, features in sorted(candidates, key=lambda c: (len(c[0]), c[0])):
        if not features <= have:
            have |= features
            chosen.append((data, features))
    for item in list(reversed(chosen)):
        rest = set().union(*(f for d, f in chosen if d is not item[0]))
        if item[1] <= rest:
            chosen = [c for c in chosen if c[0] is not item[0]]
    return [d for d, _ in chosen]


def convert(sinter, data, flags, largest=LARGEST_MODEL):
    with tempfile.TemporaryDirectory() as folder:
        source, target = os.path.join(folder, "m.onnx"), os.path.join(folder, "m.sinter")
        with open(source, "wb") as f:
            f.write(data)
        done = subprocess.run([sinter, "convert", source, "-o", target, "--quiet", "--strip", *flags], capture_output=True)
        if done.returncode != 0 or os.path.getsize(target) > largest:
            return None
        with open(target, "rb") as f:
            converted = f.read()
        shown = subprocess.run([sinter, "inspect", target, "--steps", "--json"], capture_output=True)
        facts = json.loads(shown.stdout)
        return converted, facts


def model_features(facts):
    found = {("kind", k) for k in ("prepare",) if facts.get(k)}
    for step in facts["steps"] + facts["prepare"]:
        types = [o.split(" ")[-1].split("[")[0] for o in step["outputs"]]
        found.add((step["op"], types[0] if types else ""))
        found.add((step["op"], "elided" if step.get("elided") else "runs"))
    return found


def models(sinter, sources):
    jobs = [(d, []) for d in sources]
    small = [m.SerializeToString() for _, m in small_networks()]
    jobs += [(d, []) for d in small]
    for d in sources:
        jobs += [(d, ["--quantize", q]) for q in ("int8w", "int4w", "int3w")]
        jobs.append((d, ["--quantize", "int6w", "--activations", "int8"]))
    made = []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for result in pool.map(lambda j: convert(sinter, *j), jobs):
            if result:
                made.append((result[0], model_features(result[1])))
    return made


def small_networks():
    """The golden networks' kinds of layers, with few channels."""
    for unsigned in (False, True):
        n = networks.Network(1, unsigned)
        a = n.conv(n.input(1, 2, 5, 4), 2, 4, (3, 3), x_scale=1 / 64, strides=[2, 2], pads=[1, 1, 1, 1])
        b = n.conv(a, 4, 4, (3, 3), x_scale=1 / 8, group=4, pads=[1, 1, 1, 1])
        c = n.rounded(n.node("Relu", b), 1 / 8)
        d = n.conv(c, 4, 3, (2, 2), x_scale=1 / 8, transposed=True, strides=[2, 2])
        n.output(d, 1, 3, 6, 4)
        yield "convolutions", n.model("convolutions")
        n = networks.Network(2, unsigned)
        x, y = n.input(1, 4, 3, 3), n.input(1, 4, 3, 3)
        s = n.rounded(n.node("Add", x, y), 1 / 16)
        p = n.rounded(n.node("Mul", s, x), 1 / 16)
        q = n.rounded(n.node("AveragePool", p, kernel_shape=[2, 2]), 1 / 16)
        g = n.rounded(n.node("Sigmoid", q), 1 / 256)
        m = n.rounded(n.node("GlobalAveragePool", g), 1 / 256)
        t = n.rounded(n.node("Softmax", n.node("Flatten", m)), 1 / 256)
        n.output(t, 1, 4)
        yield "pointwise", n.model("pointwise")
        n = networks.Network(3, unsigned)
        x, y = n.input(1, 3, 4), n.input(1, 4, 5)
        n.output(n.rounded(n.node("MatMul", x, y), 1 / 8), 1, 3, 5)
        yield "products", n.model("products")


def plans(sinter):
    """(name, file): results that overlap operands, parts of others with strides, borders, stripes of rows, device memory."""
    r = np.random.default_rng(9)

    def network(nodes, weights, shape=(1, 2, 8, 6)):
        value = lambda n, dims: helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, dims)  # noqa: E731
        tensors = [numpy_helper.from_array(r.normal(size=d).astype("f4"), n) for n, d in weights.items()]
        graph = helper.make_graph(nodes, "g", [value("x", shape)], [value("y", None)], tensors)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()

    node, pads = helper.make_node, {"pads": [1, 1, 1, 1]}

    # A product whose weights several shape sets share.
    shared = helper.make_model(helper.make_graph(
        [node("MatMul", ["x", "w"], ["a"]), node("Relu", ["a"], ["y"])], "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["rows", 4])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.ones((4, 8), "f4"), "w")]), opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8).SerializeToString()

    def chain(*shape):
        return network([node("Conv", ["x", "v"], ["a"], **pads), node("Conv", ["a", "w"], ["b"], group=4, **pads),
                        node("MaxPool", ["b"], ["c"], kernel_shape=[2, 2]), node("Conv", ["c", "p"], ["d"]),
                        node("AveragePool", ["d"], ["y"], kernel_shape=[3, 2], strides=[2, 1])],
                       {"v": (4, 2, 3, 3), "w": (4, 1, 3, 3), "p": (4, 4, 1, 1)}, shape)

    joined = network([node("Conv", ["x", "v"], ["a"], **pads), node("Conv", ["x", "w"], ["b"], **pads),
                      node("Concat", ["a", "b"], ["c"], axis=1), node("Conv", ["c", "p"], ["y"])],
                     {"v": (4, 2, 3, 3), "w": (4, 2, 3, 3), "p": (3, 8, 1, 1)})
    framed = network([node("Conv", ["x", "v"], ["a"]), node("Relu", ["a"], ["b"]),
                      node("Pad", ["b", "sizes"], ["c"], mode="reflect"), node("Conv", ["c", "v2"], ["y"])],
                     {"v": (3, 2, 3, 3), "v2": (2, 3, 3, 3)}, (1, 2, 24, 24))
    framed = onnx.load_model_from_string(framed)
    framed.graph.initializer.append(numpy_helper.from_array(np.array([0, 0, 1, 0, 0, 0, 1, 0]), "sizes"))
    # A slice from a running start beside a value of its size: CheckLength.
    value = helper.make_tensor_value_info
    lengths = helper.make_model(helper.make_graph(
        [node("Add", ["at", "two"], ["end"]), node("Slice", ["x", "at", "end", "axis"], ["part"]),
         node("Add", ["part", "c"], ["y"])],
        "g", [value("x", onnx.TensorProto.FLOAT, [6, 3]), value("at", onnx.TensorProto.INT64, [1])],
        [value("y", onnx.TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.array(v), k) for k, v in (("two", [2]), ("axis", [0]))] +
        [numpy_helper.from_array(np.ones((2, 3), "f4"), "c")]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    # A line that is shifted, a cache that is written at a place, and a product, which is copied.
    cells = [value(name, onnx.TensorProto.FLOAT, [4, 4]) for name in ("line", "cache", "h")]
    stateful = helper.make_model(helper.make_graph(
        [node("Slice", ["line", "one", "four", "axis"], ["kept"]), node("Concat", ["kept", "x"], ["line_out"], axis=0),
         node("ScatterND", ["cache", "at", "x"], ["cache_out"]), node("MatMul", ["h", "line_out"], ["m"]),
         node("Clip", ["m", "low", "high"], ["h_out"]), node("Sum", ["line_out", "cache_out", "h_out"], ["y"])],
        "g", [value("x", onnx.TensorProto.FLOAT, [1, 4]), value("at", onnx.TensorProto.INT64, [1, 1]), *cells],
        [value(n, onnx.TensorProto.FLOAT, [4, 4]) for n in ("y", "line_out", "cache_out", "h_out")],
        [numpy_helper.from_array(np.array(v), k) for k, v in (("one", [1]), ("four", [4]), ("axis", [0]))] +
        [numpy_helper.from_array(np.float32(v), k) for k, v in (("low", -1), ("high", 1))]),
        opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    # A cache that two shape sets have between them.
    rows = helper.make_model(helper.make_graph(
        [node("ScatterND", ["cache", "at", "x"], ["cache_out"]), node("Transpose", ["cache_out"], ["t"], perm=[1, 0]),
         node("MatMul", ["x", "t"], ["y"])],
        "g", [value("x", onnx.TensorProto.FLOAT, ["rows", 4]), value("at", onnx.TensorProto.INT64, ["rows", 1]), cells[1]],
        [value("y", onnx.TensorProto.FLOAT, ["rows", 4]), value("cache_out", onnx.TensorProto.FLOAT, [4, 4])]),
        opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    # Rows by the weights of chosen experts, floats and packed integers, and a state that every token updates.
    def decoder(nodes, inputs, outputs, tensors):
        graph = helper.make_graph(nodes, "g", [value(n, onnx.TensorProto.FLOAT, d) for n, d in inputs.items()],
                                  [value(n, onnx.TensorProto.FLOAT, None) for n in outputs],
                                  [numpy_helper.from_array(a, n) for n, a in tensors.items()])
        imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=imports, ir_version=10).SerializeToString()

    tokens = {"x": [3, 4], "r": [3, 2]}
    experts = decoder([node("MoE", ["x", "r", "v", "", "w"], ["y"], k=2, domain="com.microsoft")], tokens, ["y"],
                      {"v": r.normal(size=(2, 6, 4)).astype("f2").astype("f4"), "w": r.normal(size=(2, 4, 6)).astype("f4")})
    packed_experts = decoder(
        [node("QMoE", ["x", "r", "v", "vs", "", "w", "ws"], ["y"], activation_type="silu", normalize_routing_weights=1,
              domain="com.microsoft")], tokens, ["y"],
        {"v": r.integers(0, 256, (2, 6, 2)).astype("u1"), "vs": np.ones((2, 6), "f4"),
         "w": r.integers(0, 256, (2, 4, 3)).astype("u1"), "ws": np.ones((2, 4), "f4")})
    small_floats = decoder(
        [node("QMoE", ["x", "r", "v", "vs", "", "w", "ws"], ["y"], quant_type="fp8", block_size=4, domain="com.microsoft")],
        tokens, ["y"],
        {"v": r.normal(size=(2, 6, 4)).astype(ml_dtypes.float8_e4m3fn), "vs": np.ones((2, 2, 1), "f4"),
         "w": r.normal(size=(2, 4, 6)).astype(ml_dtypes.float8_e4m3fn), "ws": np.ones((2, 1, 2), "f4")})
    linear = decoder([node("LinearAttention", ["q", "k", "v", "past_state", "d", "b"], ["y", "present_state"], q_num_heads=2,
                           kv_num_heads=1, domain="com.microsoft")],
                     {"q": [1, 2, 6], "k": [1, 2, 3], "v": [1, 2, 2], "past_state": [1, 1, 3, 2], "d": [1, 2, 1],
                      "b": [1, 2, 1]}, ["y", "present_state"], {})
    kept = ["--state", "auto"]
    for name, data, flags in [("shapes", shared, ["--shapes", "rows=1; rows=6; rows=40"]),
                              ("shapes_profiles", shared, ["--shapes", "rows=2; rows=3", "--target", "x86_64,portable"]),
                              ("shapes_state", rows, ["--shapes", "rows=3; rows=1", *kept]),
                              ("experts", experts, []), ("packed_experts", packed_experts, []),
                              ("small_float_experts", small_floats, []),
                              ("linear_attention", linear, kept), ("given_lengths", shared, ["--dim", "rows=1..6"]),
                              ("shapes_device", shared, ["--shapes", "rows=32; rows=48", "--target", "cuda"]),
                              ("state", stateful, kept), ("state_device", stateful, [*kept, "--target", "cuda"]),
                              ("state_profiles", stateful, [*kept, "--target", "x86_64,portable"]), ("lengths", lengths.SerializeToString(), []), ("overlap", chain(1, 2, 8, 6), ["--target", "portable"]),
                              ("strides", joined, []), ("strides_portable", joined, ["--target", "portable"]),
                              ("frame", framed.SerializeToString(), ["--target", "portable"]),
                              ("stripes", chain(1, 2, 24, 24), ["--max-arena", "13000"]),
                              ("packed_only", chain(1, 2, 12, 6), ["--packed-only"]),
                              ("device", chain(1, 2, 8, 6), ["--target", "cuda"]),
                              ("device_profiles", chain(1, 2, 8, 6), ["--target", "cuda,portable"])]:
        yield name, convert(sinter, data, flags, 4 * LARGEST_MODEL)[0]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as names:
        names.write("".join(f"class {i}\n" for i in range(8)))
        names.flush()
        flags = ["--dim", "rows=1", "--labels", names.name, "--meta", "license=MIT", "--meta", "model.version=7"]
        yield "texts", convert(sinter, shared, flags)[0]


def arrays():
    r = np.random.default_rng(5)
    kinds = "f4 f8 f2 i1 u1 i2 u2 i4 u4 i8 u8 b1".split()
    for kind in kinds:
        a = (r.normal(size=(2, 3)) * 50).astype(kind)
        out = io.BytesIO()
        np.save(out, np.asfortranarray(a) if kind in ("f4", "i8") else a)
        yield out.getvalue()
        yield numpy_helper.from_array(a, kind).SerializeToString()
    for how in (np.savez, np.savez_compressed):
        out = io.BytesIO()
        how(out, x=r.normal(size=(2, 1, 3)).astype("f4"), y=np.arange(4), z=np.float32(3))
        yield out.getvalue()
        out = io.BytesIO()
        how(out, **{k: np.zeros((3, 2), k, order="F") for k in kinds[:4]}, empty=np.zeros((0, 4), "f4"))
        yield out.getvalue()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        z.writestr("folder/x.npy", b"")
        z.writestr("nothing", b"text")
    yield out.getvalue()
    t = onnx.TensorProto(name="typed", data_type=onnx.TensorProto.FLOAT, dims=[2], float_data=[1, 2])
    yield t.SerializeToString()
    t = onnx.TensorProto(name="narrow", data_type=onnx.TensorProto.FLOAT16, dims=[2], int32_data=[15360, 0])
    yield t.SerializeToString()
    t = onnx.TensorProto(name="packed", data_type=onnx.TensorProto.INT4, dims=[3], int32_data=[1, 2])
    yield t.SerializeToString()


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def store(folder, stem, items):
    os.makedirs(folder, exist_ok=True)
    for name in os.listdir(folder):
        if name.startswith("seed_"):
            os.remove(os.path.join(folder, name))
    for i, data in enumerate(items):
        write(os.path.join(folder, f"seed_{i:03d}{stem}"), data)
    print(f"{folder}: {len(items)} files, {sum(map(len, items))} bytes")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sinter", required=True)
    parser.add_argument("--out", default=os.path.join(HERE, "corpus"))
    parser.add_argument("--plans", action="store_true", help="only these")
    args = parser.parse_args()
    for name, data in plans(args.sinter):
        write(os.path.join(args.out, "model", f"plan_{name}.sinter"), data)
    if args.plans:
        return
    candidates = [(m.SerializeToString(), onnx_features(m)) for m in onnx_candidates()]
    sources = cover(candidates)
    store(os.path.join(args.out, "onnx"), ".onnx", sources)
    made = models(args.sinter, [d for d, _ in candidates if len(d) < 700])
    store(os.path.join(args.out, "model"), ".sinter", cover(made))
    store(os.path.join(args.out, "arrays"), "", list(arrays()))


if __name__ == "__main__":
    main()
