#!/usr/bin/env python3
"""The first five models: convert, run, compare with float64, and check the file's size.

    run.py [--sinter PROGRAM] [--filter GLOB]... [--backends reference,default] [--verbose] [--report FILE]

Checks per case: "NAME convert", "NAME BACKEND" (every output: declared type, shape, and within the tolerance of
cases.json: absolute + relative * |expected|), "NAME steps" (how many of certain operations the plan has), "NAME size"
(constants in the file at most 1.02 times the model's own, plus what alignment to 64 bytes adds per initializer). expected_failure.txt lists the checks that fail today, each with its
reason; a failure without an entry and an entry without a failure both fail the run. ONNX Runtime is asked the same.
"""
import argparse
import fnmatch
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "common"))
import pinned  # noqa: E402

pinned.require()
import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import sinter_cli as cli  # noqa: E402

# Weights kept in their own type; the plan is not counted, the padding of each constant is.
GROWTH, PADDING = 1.02, 64


def arrays(name):
    """Inputs as .npz holds them, expected outputs in float64."""
    both = cli.load_npz(os.path.join(HERE, f"{name}.npz"))
    return tuple({k.split("/", 1)[1]: v for k, v in both.items() if k.startswith(side)} for side in ("in/", "out/"))


def dtype_of(value):
    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type))


def differs(got, want, dtype, tolerance):
    got = cli.from_bits(np.asarray(got), dtype)
    if got.dtype != dtype:
        return f"type {got.dtype}, want {dtype}"
    if got.shape != want.shape:
        return f"shape {list(got.shape)}, want {list(want.shape)}"
    got = got.astype(np.float64)
    if not np.isfinite(got).all():
        return f"{int((~np.isfinite(got)).sum())} of {got.size} values are not finite"
    absolute, relative = tolerance
    off = np.abs(got - want)
    bad = off > absolute + relative * np.abs(want)
    if not bad.any():
        return None
    return f"{int(bad.sum())} of {bad.size} values differ, by up to {off.max():.3g} (allowed {absolute:.3g})"


def compare(results, want, outputs, tolerance):
    outcome = []
    for o in outputs:
        if o.name not in results:
            outcome.append(f"no output {o.name}")
            continue
        d = differs(results[o.name], want[o.name], dtype_of(o), tolerance[o.name])
        outcome += [f"{o.name}: {d}"] if d else []
    return "; ".join(outcome) or None


def try_sinter(sinter, name, facts, model, backends, timeout):
    """Check -> None or what is wrong."""
    feeds, want = arrays(name)
    found = {}
    with tempfile.TemporaryDirectory(prefix="case-") as work:
        target, source, result = (os.path.join(work, f) for f in ("m.sinter", "in.npz", "out.npz"))
        r = cli.call(sinter, "convert", os.path.join(HERE, f"{name}.onnx"), "-o", target, "--json",
                     timeout=timeout)
        found["convert"] = None if r.code == 0 else r.why()
        if r.code != 0:
            return found
        outcome = json.loads(r.out)
        room = GROWTH * facts["weights_bytes"] + PADDING * len(model.graph.initializer)
        if facts["size"]:
            found["size"] = (None if outcome["weight_bytes"] <= room else
                             f"constants take {outcome['weight_bytes']} bytes, {facts['weights_bytes']} in the model")
        if "steps" in facts:
            found["steps"] = lacking_steps(sinter, target, facts["steps"], timeout)
        cli.save_npz(source, feeds)
        for b in backends:
            r = cli.call(sinter, "run", target, "--inputs", source, "--outputs", result, "--quiet",
                         *(["--backend", b] if b != "default" else []), timeout=timeout)
            found[b] = r.why() if r.code != 0 else compare(cli.load_npz(result), want, model.graph.output,
                                                           facts["tolerance"])
        if name == "unet":
            found.update(wrong_inputs(sinter, work, target, feeds, timeout))
    return found


def lacking_steps(sinter, target, wanted, timeout):
    """None, or which operations the plan has more or fewer of than expected."""
    r = cli.call(sinter, "inspect", target, "--steps", timeout=timeout)
    if r.code != 0:
        return r.why()
    ops = [line.split()[1] for line in r.out.splitlines() if line.strip()]
    off = [f"{ops.count(op)} {op}, want {n}" for op, n in wanted.items() if ops.count(op) != n]
    return "; ".join(off) or None


def wrong_inputs(sinter, work, target, feeds, timeout):
    """Samples of the wrong shape are refused before anything runs, naming the input and the shape expected."""
    found = {}
    bad = {"timestep": np.arange(160, dtype=np.int64), "sample": feeds["sample"][:1]}
    for name, a in bad.items():
        source, result = os.path.join(work, "bad.npz"), os.path.join(work, "bad_out.npz")
        cli.save_npz(source, {**feeds, name: a})
        r = cli.call(sinter, "run", target, "--inputs", source, "--outputs", result, timeout=timeout)
        text = r.err.replace(" ", "")
        lacking = [w for w in (name, "[" + ",".join(map(str, feeds[name].shape)) + "]") if w not in text]
        found[f"wrong {name}"] = (f"want exit 5: {r.why()}" if r.code != 5 else
                                  f"the refusal lacks {lacking}: {r.why()}" if lacking else
                                  "left an output file" if os.path.exists(result) else None)
    return found


def try_onnxruntime(name, facts, model):
    """None, or what is wrong."""
    import onnxruntime as ort
    feeds, want = arrays(name)
    ort.set_default_logger_severity(4)
    try:
        session = ort.InferenceSession(os.path.join(HERE, f"{name}.onnx"), providers=["CPUExecutionProvider"])
        values = {}
        for i in model.graph.input:
            kind = i.type.tensor_type.elem_type
            values[i.name] = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(feeds[i.name], kind)
        got = session.run_with_ort_values([o.name for o in model.graph.output], values)
        got = {o.name: v.numpy() for o, v in zip(model.graph.output, got)}
    except Exception as e:  # onnxruntime raises many types
        return str(e).replace("\n", " ")[:300]
    return compare(got, want, model.graph.output, facts["tolerance"])


def expected_failures():
    """Check -> reason. Lines: CASE CHECK: reason."""
    entries = {}
    with open(os.path.join(HERE, "expected_failure.txt"), encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                check, _, reason = line.strip().partition(": ")
                assert reason and check not in entries, line
                entries[check] = reason
    return entries


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--sinter", help="the program (default: SINTER or the build folder)")
    p.add_argument("--filter", action="append", help="only cases whose name matches this glob")
    p.add_argument("--backends", default="reference,default")
    p.add_argument("--timeout", type=float, default=60)
    p.add_argument("--verbose", action="store_true", help="also print expected failures and ONNX Runtime's answers")
    p.add_argument("--report", help="write all results as JSON")
    args = p.parse_args()
    sinter = cli.find_sinter(args.sinter)
    with open(os.path.join(HERE, "cases.json"), encoding="utf-8") as f:
        cases = {k: v for k, v in json.load(f).items()
                 if not args.filter or any(fnmatch.fnmatchcase(k, g) for g in args.filter)}
    expected, results, other = expected_failures(), {}, {}
    for name, facts in cases.items():
        model = onnx.load(os.path.join(HERE, f"{name}.onnx"))
        checks = try_sinter(sinter, name, facts, model, args.backends.split(","), args.timeout)
        results.update({f"{name} {k}": v for k, v in checks.items()})
        other[name] = try_onnxruntime(name, facts, model)
        if args.verbose and other[name]:
            print(f"onnxruntime     {name}: {other[name]}")
    count = dict.fromkeys(("pass", "expected", "FAIL", "stale"), 0)
    for check, why in results.items():
        status = "pass" if not why else "expected" if check in expected else "FAIL"
        if not why and check in expected:
            status, why = "stale", "passes: remove it from expected_failure.txt"
        count[status] += 1
        if status in ("FAIL", "stale") or (args.verbose and why):
            print(f"{status:8s} {check}: {why}", flush=True)
    if not args.filter:
        for check in sorted(expected.keys() - results.keys()):
            count["stale"] += 1
            print(f"stale    {check}: no such check")
    if args.report:
        with open(args.report, "w", encoding="utf-8") as f:
            json.dump(dict(sinter=results, onnxruntime=other), f, indent=1)
    right = [n for n in cases if not any(results.get(f"{n} {k}") for k in ("convert", *args.backends.split(",")))]
    print(f"right values: sinter {len(right)} of {len(cases)}, onnxruntime "
          f"{sum(v is None for v in other.values())} of {len(cases)}")
    print(f"{count['pass']} checks pass, {count['expected']} fail as expected, {count['FAIL']} fail, "
          f"{count['stale']} stale entries")
    sys.exit(count["FAIL"] + count["stale"] > 0)


if __name__ == "__main__":
    main()
