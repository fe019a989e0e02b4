#!/usr/bin/env python3
"""Give the models of tests/onnx_cases other floating-point types, all the same or each value its own; results stay.

    retyped.py [--sinter PROGRAM] [--seed S] [--data FOLDER] [--only GLOB] [--keep FOLDER]

Each model that converts and runs as it is must do so again with its float32 values declared float16, bfloat16, float64, and
with a type drawn for every single one (twice), and give the same within the precision of the narrowest type, relative to the
output's largest magnitude. --data takes the models of ../conformance/make_data.py instead.
"""
import argparse
import concurrent.futures
import fnmatch
import glob
import os
import random
import sys
import tempfile
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
sys.path.insert(0, os.path.join(HERE, "..", "onnx_cases"))
import pinned  # noqa: E402

pinned.require()
import make_cases  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import sinter_cli as cli  # noqa: E402
from case import Case  # noqa: E402
from onnx import TensorProto as T  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402

MIXED = (T.FLOAT16, T.BFLOAT16, T.DOUBLE, T.FLOAT)
MODES = {"float16": (T.FLOAT16,), "bfloat16": (T.BFLOAT16,), "float64": (T.DOUBLE,), "mixed1": MIXED, "mixed2": MIXED}
TOLERANCE = {"float16": 5e-3, "float64": 1e-5}  # bfloat16 keeps 8 bits
DEFAULT_TOLERANCE = 4e-2
# Their float32 form computes on integers, so that its bias is a multiple of the product's step (0.02 times 0.004 to 0.006),
# half of which is allowed; float64 is computed as such.
IN_STEPS = {"qattention*": 0.5 * 0.02 * 0.006}
# What another type cannot keep.
OTHER = {
    "initializer_uint32_*": "holds numbers beyond float16",
    "test_*softmax_large_number*": "its inputs differ by less than a step of float16 at 10000",
    "test_bitcast_*": "reads a float32's bits",
    "test_reduce_prod_default_axes_keepdims_example": "its result is beyond float16",
    "test_dequantizelinear_e5m2": "its result is beyond float16",
    "test_tan": "steep at its inputs",
    "cropandresize_nearest_*": "takes the nearest pixel, which is another one where coordinates are rounded otherwise",
    "inverse_*": "amplifies what rounding changes of its matrix",
    "test_ai_onnx_ml_tree_ensemble_set_membership": "compares for equality, and each type rounds its numbers to others",
    "ml_ensemble_*": "compare for equality with the members of a set, which each type rounds to others",
    "mha_bias_of_lowest_*": "its bias is the lowest float32, beyond float16",
    "gqa_per_*": "rounds keys and values to the steps of its cache, and each type rounds some to the next one",
    "gqa_keys_*": "likewise",
    "*_float32_length": "its scale makes another length where it is rounded to another type",
}


def retype(graph, types, draw):
    """Replaces float32 by a type drawn from `types`, value by value, bodies and attributes included."""
    def tensor(t):
        if t.data_type == T.FLOAT and not t.external_data:
            kind = draw.choice(types)
            values = numpy_helper.to_array(t).astype(np.float64)
            t.CopyFrom(helper.make_tensor(t.name, kind, values.shape, values.ravel().tolist()))
    for v in (*graph.input, *graph.output, *graph.value_info):
        kind = v.type.tensor_type
        if v.type.HasField("tensor_type") and kind.elem_type == T.FLOAT:
            kind.elem_type = draw.choice(types)
    for t in graph.initializer:
        tensor(t)
    for n in graph.node:
        for a in n.attribute:
            if a.HasField("t"):
                tensor(a.t)
            if a.HasField("g"):
                retype(a.g, types, draw)


def conformance_cases(data):
    sys.path.insert(0, os.path.join(HERE, "..", "conformance"))
    import make_data
    make_data.make(data)
    for path in sorted(glob.glob(os.path.join(data, "*", "*", "model.onnx"))):
        place = os.path.dirname(path)
        model, feeds = onnx.load(path), {}
        for i, v in enumerate(model.graph.input):
            tensor = os.path.join(place, "test_data_set_0", f"input_{i}.pb")
            if v.type.HasField("tensor_type") and os.path.exists(tensor):
                feeds[v.name] = numpy_helper.to_array(onnx.load_tensor(tensor))
        if os.path.basename(os.path.dirname(place)) != "real":
            yield Case(os.path.basename(place), model, feeds)


def answers(sinter, model, feeds, files, timeout):
    """The outputs, or a text: what stood in the way."""
    with tempfile.TemporaryDirectory(prefix="retyped-") as work:
        for path, content in {"model.onnx": model.SerializeToString(), **files}.items():
            os.makedirs(os.path.dirname(os.path.join(work, path)), exist_ok=True)
            with open(os.path.join(work, path), "wb") as f:
                f.write(content)
        source, target = os.path.join(work, "model.onnx"), os.path.join(work, "m.sinter")
        given, out = os.path.join(work, "in.npz"), os.path.join(work, "out.npz")
        r = cli.call(sinter, "convert", source, "-o", target, timeout=timeout)
        if r.code != 0:
            return f"convert: {r.why()}"
        cli.save_npz(given, feeds)
        r = cli.call(sinter, "run", target, "--inputs", given, "--outputs", out, timeout=timeout)
        if r.code != 0:
            return f"run: {r.why()}"
        with np.load(out) as f:
            return dict(f)


def numbers(a, like):
    if a.dtype == np.uint16 and like.dtype.kind == "f":  # bfloat16 as its bits
        a = (a.astype(np.uint32) << 16).view(np.float32)
    return a.astype(np.float64)


def differs(want, got, tolerance):
    for name, w in want.items():
        if name not in got or got[name].shape != w.shape:
            return f"output '{name}' is missing or has another shape"
        if w.dtype.kind not in "fiub":
            continue
        a, b = numbers(got[name], w), w.astype(np.float64)
        finite = np.abs(b[np.isfinite(b)])
        room = tolerance * (finite.max() if finite.size else 1) if w.dtype.kind == "f" else 1
        wrong = ~((np.abs(a - b) <= room) | (a == b) | (np.isnan(a) & np.isnan(b)))
        if wrong.any():
            return f"output '{name}': {a[wrong][:3]} where float32 gives {b[wrong][:3]}"
    return None


def trial(case, sinter, seed, timeout, keep):
    """Pairs of mode and finding; None where the model as it is does not run."""
    want = answers(sinter, case.model, case.feeds, case.files, timeout)
    if isinstance(want, str):
        return None
    findings = []
    for mode, types in MODES.items():
        if any(fnmatch.fnmatchcase(case.name, known) for known in OTHER):
            continue
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        retype(model.graph, types, random.Random(zlib.crc32(f"{case.name} {mode} {seed}".encode())))
        feeds = {k: np.asarray(v) for k, v in case.feeds.items()}
        for v in model.graph.input:
            if v.name in feeds and feeds[v.name].dtype == np.float32:
                kind = v.type.tensor_type.elem_type
                feeds[v.name] = feeds[v.name].astype({T.FLOAT16: np.float16, T.DOUBLE: np.float64}.get(kind, np.float32))
        got = answers(sinter, model, feeds, case.files, timeout)
        step = max((s for known, s in IN_STEPS.items() if fnmatch.fnmatchcase(case.name, known)), default=0)
        outcome = got if isinstance(got, str) else differs(want, got, max(TOLERANCE.get(mode, DEFAULT_TOLERANCE), step))
        if outcome:
            findings.append((mode, outcome))
            if keep:
                os.makedirs(keep, exist_ok=True)
                onnx.save(model, os.path.join(keep, f"{case.name}-{mode}.onnx"))
    return findings


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--sinter", help="the program (default: SINTER or the build folder)")
    p.add_argument("--data", help="folder of ../conformance/make_data.py: its models instead")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--only", help="only models whose name matches this glob")
    p.add_argument("--timeout", type=float, default=60)
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--keep", help="folder for models that lead to a finding")
    args = p.parse_args()
    sinter = cli.find_sinter(args.sinter)
    found = conformance_cases(args.data) if args.data else make_cases.cases()
    cases = [c for c in found if hasattr(c.model, "graph") and not c.flags and not c.consts and c.expect != "refuse"
             and (not args.only or fnmatch.fnmatchcase(c.name, args.only))]
    with concurrent.futures.ThreadPoolExecutor(args.workers) as pool:
        results = list(pool.map(lambda c: trial(c, sinter, args.seed, args.timeout, args.keep), cases))
    for c, findings in zip(cases, results):
        for mode, outcome in findings or ():
            print(f"FAIL   {c.name} as {mode}: {outcome}")
    bad = sum(len(f) for f in results if f)
    print(f"{sum(f is not None for f in results)} models in {len(MODES)} ways, seed {args.seed}: {bad} findings")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
