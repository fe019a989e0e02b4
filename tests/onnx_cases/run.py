#!/usr/bin/env python3
"""Run our own ONNX models (make_cases.py) through the command line and compare, or check the refusal.

    run.py [--sinter PROGRAM] [--filter GLOB]... [--backends reference,default] [--write FOLDER] [--report FILE]
"""
import argparse
import fnmatch
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
sys.path.insert(0, HERE)
import pinned  # noqa: E402

pinned.require()
import make_cases  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import sinter_cli as cli  # noqa: E402
from exact_reference import without_saturation  # noqa: E402


def reference(case, feeds=None):
    """Expected outputs by name, or None with a reason where nothing can compute them."""
    if case.expect == "given":
        return case.given, ""
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    m = case.twin if case.expect == "twin" else case.model
    if isinstance(m, onnx.ModelProto):
        m = without_saturation(m)
    feeds = {**(case.feeds if feeds is None else feeds), **case.consts}
    try:
        with tempfile.TemporaryDirectory(prefix="case-") as work:
            write(case, work, m)
            session = ort.InferenceSession(os.path.join(work, "model.onnx"), options,
                                           providers=["CPUExecutionProvider"])
            names = {i.name for i in session.get_inputs()} | {i.name for i in session.get_overridable_initializers()}
            outs = session.run(None, {k: v for k, v in feeds.items() if k in names})
    except Exception as e:  # onnxruntime raises many types
        return None, f"no reference: {str(e)[:300]}"
    return dict(zip((o.name for o in m.graph.output), outs)), ""


def write(case, folder, m=None):
    m = case.model if m is None else m
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "model.onnx"), "wb") as f:
        f.write(m if isinstance(m, bytes) else m.SerializeToString())
    for name, data in case.files.items():
        os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)
    for name, a in case.consts.items():
        cli.save_npy(os.path.join(folder, f"{name}.const.npy"), a)


def check(case, sinter, backends, timeout):
    """(status, message): pass, refused (planned cases only), FAIL."""
    with tempfile.TemporaryDirectory(prefix="case-") as work:
        write(case, work)
        target = os.path.join(work, "m.sinter")
        flags = [f for f in case.flags]
        for name in case.consts:
            flags += ["--const", f"{name}={work}/{name}.const.npy"]
        r = cli.call(sinter, "convert", os.path.join(work, "model.onnx"), "-o", target, *flags, timeout=timeout)
        if case.expect == "refuse":
            lacking = [w for w in case.words if w.lower() not in r.err.lower()]
            lacking += [f"no {w}" for w in case.absent if w.lower() in r.err.lower()]
            if r.code not in case.codes:
                return "FAIL", f"want exit {case.codes}: {r.why()}"
            if lacking:
                return "FAIL", f"the refusal lacks {lacking}: {r.why()}"
            return ("FAIL", "a refusal left an output file") if os.path.exists(target) else ("pass", "")
        if r.code != 0:
            return ("refused" if case.wanted and r.code == 3 else "FAIL"), f"convert: {r.why()}"
        if case.holds:
            steps = cli.call(sinter, "inspect", target, "--steps", timeout=timeout).out
            wrong = {op: steps.count(f" {op} ") for op, count in case.holds.items() if steps.count(f" {op} ") != count}
            if wrong:
                return "FAIL", f"the file has {wrong}, not {case.holds}"
        for feeds in (case.feeds, *case.more):
            outcome = check_run(case, sinter, backends, timeout, work, feeds)
            if outcome:
                return "FAIL", outcome
        for feeds, words in case.fails:
            source = os.path.join(work, "in.npz")
            cli.save_npz(source, feeds)
            r = cli.call(sinter, "run", target, "--inputs", source, "--outputs", os.path.join(work, "out.npz"), "--quiet",
                         timeout=timeout)
            if r.code == 0 or words not in r.err:
                return "FAIL", f"the run should fail with '{words}': {r.why()}"
    return "pass", ""


def check_run(case, sinter, backends, timeout, work, feeds):
    """What is wrong with the outputs for these feeds; empty: nothing."""
    want, why = reference(case, feeds)
    if want is None:
        return why
    source, result = os.path.join(work, "in.npz"), os.path.join(work, "out.npz")
    cli.save_npz(source, feeds)
    for backend in backends:
        r = cli.call(sinter, "run", os.path.join(work, "m.sinter"), "--inputs", source, "--outputs", result, "--quiet",
                     *(["--backend", backend] if backend != "default" else []), timeout=timeout)
        if r.code != 0:
            return f"run ({backend}): {r.why()}"
        got = cli.load_npz(result)
        for name, w in want.items():
            w = np.asarray(w)
            if name not in got:
                return f"{backend}: no output {name}"
            g = cli.from_bits(got[name], w.dtype)
            outcome = cli.mismatch(g, w, case.rtol, case.atol, case.steps)
            if outcome:
                return f"{backend}: {name}: {outcome}" + (f" (feeds {feeds})" if case.more else "")
    return ""


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--sinter", help="the program (default: SINTER or the build folder)")
    p.add_argument("--filter", action="append", help="only cases whose name matches this glob")
    p.add_argument("--backends", default="reference,default")
    p.add_argument("--timeout", type=float, default=30)
    p.add_argument("--write", help="only write all models into this folder")
    p.add_argument("--references-only", action="store_true", help="only check that every expected output can be had")
    p.add_argument("--report", help="write all results as JSON")
    args = p.parse_args()
    chosen = [c for c in make_cases.cases()
              if not args.filter or any(fnmatch.fnmatchcase(c.name, f) for f in args.filter)]
    names = [c.name for c in chosen]
    assert len(set(names)) == len(names), sorted(n for n in names if names.count(n) > 1)
    if args.write:
        for c in chosen:
            write(c, os.path.join(args.write, c.name))
        return
    if args.references_only:
        bad = [(c.name, why) for c in chosen if c.expect != "refuse" for want, why in [reference(c)] if want is None]
        for name, why in bad:
            print(f"{name}: {why}")
        print(f"{len(chosen)} cases, {len(bad)} without reference")
        sys.exit(bool(bad))
    sinter = cli.find_sinter(args.sinter)
    results = []
    for c in chosen:
        status, message = check(c, sinter, args.backends.split(","), args.timeout)
        results.append(dict(case=c.name, status=status, message=message))
        if status != "pass":
            print(f"{status:8s} {c.name}: {message}", flush=True)
    if args.report:
        with open(args.report, "w", encoding="utf-8") as f:
            json.dump(results, f, indent=1)
    count = {s: sum(r["status"] == s for r in results) for s in ("pass", "refused", "FAIL")}
    print(f"{count['pass']} pass, {count['refused']} refused (planned for later), {count['FAIL']} fail")
    sys.exit(count["FAIL"] > 0)


if __name__ == "__main__":
    main()
