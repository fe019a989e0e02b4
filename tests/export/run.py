#!/usr/bin/env python3
"""Simplify ONNX models and compare: `sinter simplify` on all models of tests/onnx_cases that convert, and on shared ones.

Each new model passes ONNX's checker with strict shape inference, gives what the original gives in onnxruntime (or, where
that cannot run one of them, in Sinter), and stays the same when it is simplified again. A model may be refused with a
reason. Every third model is written in the oldest opset, where that has its operators, and the others in simplify's default.
The last line counts models that were written, refused and wrong.

    run.py [--sinter PROGRAM] [--filter GLOB]... [--no-shared] [--opset N] [--keep FOLDER]
"""
import argparse
import collections
import fnmatch
import itertools
import os
import re
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
sys.path.insert(0, os.path.join(HERE, "..", "onnx_cases"))
import pinned  # noqa: E402

pinned.require()
import make_cases  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime as ort  # noqa: E402
import run as onnx_cases  # noqa: E402
import sinter_cli as cli  # noqa: E402

# Flags of convert that simplify takes, too.
TAKEN = ("--shape", "--dim", "--const", "--max-trips", "--bound", "--custom-ops")
OLDEST = ("--opset", "13")
ort.set_default_logger_severity(4)


def in_onnxruntime(path, feeds):
    """Outputs by name; None where onnxruntime cannot load or run the model."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        names = {i.name for i in session.get_inputs()} | {i.name for i in session.get_overridable_initializers()}
        outputs = session.run(None, {k: v for k, v in feeds.items() if k in names})
        return dict(zip((o.name for o in session.get_outputs()), outputs))
    except Exception:  # onnxruntime raises many types
        return None


def in_sinter(sinter, path, flags, feeds, work):
    """Outputs by name, and a reason where there are none."""
    target, source, result = (os.path.join(work, n) for n in ("run.sinter", "run.in.npz", "run.out.npz"))
    r = cli.call(sinter, "convert", path, "-o", target, "--quiet", *flags, timeout=60)
    if r.code != 0:
        return None, r.why()
    cli.save_npz(source, feeds)
    r = cli.call(sinter, "run", target, "--inputs", source, "--outputs", result, "--quiet", timeout=60)
    return (cli.load_npz(result), "") if r.code == 0 else (None, r.why())


def differences(got, want, types, rtol, atol, steps):
    """The first difference in words; floats of 16 bits may differ by two units in the last place."""
    for name, w in want.items():
        if name not in got:
            return f"no output {name}"
        g, w = (cli.from_bits(np.asarray(a), types.get(name, np.asarray(w).dtype)) for a in (got[name], w))
        least = {"bfloat16": 2 ** -7, "float16": 2 ** -9}.get(w.dtype.name, 0)
        if least and g.dtype == w.dtype:
            g, w = g.astype(np.float32), w.astype(np.float32)
        outcome = cli.mismatch(g, w, max(rtol, least), max(atol, least), steps)
        if outcome:
            return f"{name}: {outcome}"
    return ""


class Opsets:
    """The flags that choose the opset of one model after another: the list of alternatives that check tries in turn."""

    def __init__(self, opset):
        self.turns = itertools.cycle([[("--opset", opset)]] if opset else [[OLDEST, ()], [()], [()]])

    def next(self):
        return next(self.turns)


def check(sinter, model, opsets, flags, *rest):
    """What check_in says of the first opset that the model can be written in."""
    for opset in opsets:
        outcome = check_in(sinter, model, [*flags, *opset], *rest)
        if outcome[0] != "refused":
            break
    return outcome


def check_in(sinter, model, flags, all_flags, feeds, work, rtol=1e-5, atol=1e-6, steps=0):
    """("written" | "refused" | "WRONG", message)."""
    out, again = os.path.join(work, "simple.onnx"), os.path.join(work, "again.onnx")
    r = cli.call(sinter, "simplify", model, "-o", out, *flags, timeout=120)
    if r.code == 3:
        named = re.search(r"refused: (.*)", r.err)
        return ("refused", named.group(1)) if named and not os.path.exists(out) else ("WRONG", r.why())
    if r.code != 0:
        return "WRONG", r.why()
    try:
        onnx.checker.check_model(out, full_check=True)
    except Exception as e:  # several types
        return "WRONG", f"checker: {str(e)[:300]}"
    want, got = in_onnxruntime(model, feeds), in_onnxruntime(out, feeds)
    where = "onnxruntime"
    if want is not None and got is None:
        options = ort.SessionOptions()
        try:
            ort.InferenceSession(out, options, providers=["CPUExecutionProvider"])
        except Exception as e:
            if "NOT_IMPLEMENTED" not in str(e):
                return "WRONG", f"onnxruntime runs the original and not this one: {str(e)[:300]}"
    new = onnx.load(out, load_external_data=False).graph
    types = {o.name: onnx.helper.tensor_dtype_to_np_dtype(o.type.tensor_type.elem_type) for o in new.output}
    if want is not None and got is not None:
        outcome = differences(got, want, types, rtol, atol, steps)
    # Sinter reads some models otherwise than onnxruntime, which the tests of these cases are about.
    if want is None or got is None or outcome:
        where = "Sinter"
        feeds = {k: v for k, v in feeds.items() if k in {i.name for i in new.input}}
        want, why = in_sinter(sinter, model, all_flags, feeds, work)
        if want is None:
            return "refused", f"the original cannot be run: {why}"
        got, why = in_sinter(sinter, out, [], feeds, work)
        if got is None:
            return "WRONG", f"Sinter does not run the new model: {why}"
        outcome = differences(got, want, types, rtol, atol, steps) or ""
    if outcome:
        return "WRONG", f"in {where}: {outcome}"
    kept = [f for pair in zip(flags[::2], flags[1::2]) if pair[0] in ("--max-trips", "--bound", "--opset") for f in pair]
    r = cli.call(sinter, "simplify", out, "-o", again, *kept, timeout=120)
    if r.code != 0:
        return "WRONG", f"a second time: {r.why()}"
    with open(out, "rb") as a, open(again, "rb") as b:
        return ("written", where) if a.read() == b.read() else ("WRONG", "a second time gives other bytes")


def taken(flags):
    result = []
    for flag, value in zip(flags, [*flags[1:], ""]):
        if flag in TAKEN:
            result += [flag, value]
    return result


def shapes(model, feeds):
    """Flags that give open dimensions of inputs the feeds' lengths."""
    m = model if isinstance(model, onnx.ModelProto) else onnx.load(model, load_external_data=False)
    initialized = {t.name for t in m.graph.initializer}
    result = []
    for i in m.graph.input:
        t = i.type.tensor_type
        if i.name in initialized or i.name not in feeds or feeds[i.name] is None:
            continue
        if not t.HasField("shape") or any(d.WhichOneof("value") != "dim_value" or d.dim_value < 0 for d in t.shape.dim):
            result += ["--shape", f"{i.name}={','.join(map(str, np.asarray(feeds[i.name]).shape))}"]
    return result


def run_cases(sinter, chosen, opsets, keep):
    for case in make_cases.cases():
        if case.expect == "refuse" or not chosen(case.name):
            continue
        with tempfile.TemporaryDirectory(prefix="export-") as work:
            onnx_cases.write(case, work)
            flags, all_flags = taken(case.flags), list(case.flags)
            for name in case.consts:
                given = ["--const", f"{name}={work}/{name}.const.npy"]
                flags, all_flags = flags + given, all_flags + given
            m = case.model if isinstance(case.model, onnx.ModelProto) else onnx.load_from_string(case.model)
            if not any(f in case.flags for f in ("--shape", "--dim", "--shapes")):
                open_dims = shapes(m, {k: v for k, v in case.feeds.items() if k not in case.consts})
                flags, all_flags = flags + open_dims, all_flags + open_dims
            status, message = check(sinter, os.path.join(work, "model.onnx"), opsets.next(), flags, all_flags,
                                    {**case.feeds, **case.consts}, work, case.rtol, case.atol, case.steps)
            if status == "WRONG" and keep:
                shutil.copytree(work, os.path.join(keep, case.name), dirs_exist_ok=True)
            yield case.name, status, message


def made_up(model):
    """Small random inputs, and open dimensions as 1 (or, after the first axis, 16)."""
    rng = np.random.default_rng(7)
    feeds = {}
    initialized = {t.name for t in model.graph.initializer}
    for i in model.graph.input:
        t = i.type.tensor_type
        if i.name in initialized:
            continue
        dims = [d.dim_value if d.WhichOneof("value") == "dim_value" and d.dim_value > 0 else 1 if at == 0 else 16
                for at, d in enumerate(t.shape.dim)]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(t.elem_type)
        feeds[i.name] = (rng.integers(0, 2, dims) if dtype.kind in "iub" else rng.standard_normal(dims)).astype(dtype)
    return feeds


def run_shared(sinter, chosen, opsets, folder):
    for base, _, files in sorted(os.walk(os.path.join(folder, "models"))):
        for file in sorted(f for f in files if f.endswith(".onnx")):
            path = os.path.join(base, file)
            name = os.path.relpath(path, os.path.join(folder, "models"))
            if os.path.getsize(path) > 16 << 20 or not chosen(name):
                continue
            model = onnx.load(path)
            feeds = made_up(model)
            flags = shapes(model, feeds)
            with tempfile.TemporaryDirectory(prefix="export-") as work:
                yield name, *check(sinter, path, opsets.next(), flags, flags, feeds, work, 1e-4, 1e-4, 1)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--sinter", help="the program (default: SINTER or the build folder)")
    p.add_argument("--filter", action="append", help="only models whose name matches this glob")
    p.add_argument("--no-shared", action="store_true", help="only models of tests/onnx_cases")
    p.add_argument("--opset", help="the version that all models are written in (default: 13 for every third, else simplify's)")
    p.add_argument("--keep", help="a folder for the models that come out wrong")
    p.add_argument("--verbose", action="store_true", help="show refusals")
    args = p.parse_args()
    sinter = cli.find_sinter(args.sinter)
    opsets = Opsets(args.opset)

    def chosen(name):
        return not args.filter or any(fnmatch.fnmatchcase(name, f) for f in args.filter)

    def models():
        yield from run_cases(sinter, chosen, opsets, args.keep)
        shared = None if args.no_shared else cli.find_shared()
        if shared:
            yield from run_shared(sinter, chosen, opsets, shared)
        elif not args.no_shared:
            print("without the shared models, which are not there")

    count, places = collections.Counter(), collections.Counter()
    for name, status, message in models():
        count[status] += 1
        if status == "written":
            places[message] += 1
        elif status == "WRONG" or args.verbose:
            print(f"{status:8s} {name}: {message}", flush=True)
    print(f"{count['written']} written (compared in onnxruntime: {places['onnxruntime']}, in Sinter: {places['Sinter']}), "
          f"{count['refused']} refused, {count['WRONG']} wrong")
    sys.exit(count["WRONG"] > 0 or count["written"] == 0)


if __name__ == "__main__":
    main()
