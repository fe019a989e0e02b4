#!/usr/bin/env python3
"""Repair the type-conflict corpus and the seed cases with `sinter repair`; print the table of what loads where.

    repaired.py [--sinter PROGRAM] [--only GLOB]... [--jobs N] [--report FILE] [--verbose]

For every model that Sinter converts: the repaired file passes onnx.checker with full shape and type inference, onnxruntime
loads and runs it (where it has kernels for the types) and gives what Sinter gives of the original, Sinter converts it
without a repair and gives the same, and a second repair changes nothing. A model without edits comes out byte for byte.
What Sinter refuses is refused, and no file is left. Integers are compared bit for bit, floats with twice the
tolerance of the type that the case stores (run.RTOL; 2e-2 for seed and shared cases): both results have an error of their own. repair_failures.txt lists what falls short, with the reason.
"""
import argparse
import collections
import concurrent.futures
import fnmatch
import glob
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
sys.path.insert(0, HERE)
import pinned  # noqa: E402

pinned.require()
import run as corpus_run  # noqa: E402, I001 (other folders have a run.py, too)
import corpus  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import sinter_cli as cli  # noqa: E402
from type_case import TypeCase  # noqa: E402

# The rules by which an ill-typed model is repaired. Others are about how Sinter computes a well-typed one.
REPAIRS = {"promote.float", "promote.int-float", "promote.int", "promote.bool", "literal.weak", "const.retype",
           "input.table", "image.u8", "output.declared", "claim.metadata", "branch.edge", "quant.zero"}
EFFECTS = {"cast", "constant retyped", "declaration corrected"}
# onnxruntime's words for a type that it has no kernel for.
NO_KERNEL = ("NOT_IMPLEMENTED", "Could not find an implementation")


def seed_cases():
    """The cases of cases/ as cases of the corpus; the unit is that of their declared outputs."""
    folder = os.path.join(HERE, "cases")
    with open(os.path.join(folder, "cases.json"), encoding="utf-8") as f:
        names = json.load(f)
    for name in names:
        arrays = cli.load_npz(os.path.join(folder, f"{name}.npz"))
        model = onnx.load(os.path.join(folder, f"{name}.onnx"))
        feeds = {i.name: cli.from_bits(arrays[f"in/{i.name}"], np.dtype(onnx.helper.tensor_dtype_to_np_dtype(
            i.type.tensor_type.elem_type))) for i in model.graph.input if f"in/{i.name}" in arrays}
        want = {o.name: arrays[f"out/{o.name}"].astype(onnx.helper.tensor_dtype_to_np_dtype(
            o.type.tensor_type.elem_type)) for o in model.graph.output}
        yield TypeCase(f"seed:{name}", "seed", model, feeds, want, unit="seed")


def shared_cases():
    shared = cli.find_shared()
    for path in sorted(glob.glob(os.path.join(shared, "cases", "*.expected.npz"))) if shared else ():
        stem = path[:-len(".expected.npz")]
        yield TypeCase(f"shared:{os.path.basename(stem)}", "shared", onnx.load(f"{stem}.onnx"),
                       cli.load_npz(f"{stem}.inputs.npz"), cli.load_npz(path), unit="seed")


def all_cases():
    yield from corpus.cases()
    yield from seed_cases()
    yield from shared_cases()


def close(case, got, want):
    """None, or how `got` differs from Sinter's results of the original, `want`."""
    for name, w in want.items():
        if name not in got:
            return f"no output {name}"
        g = np.asarray(got[name])
        w = np.asarray(w)
        kind = case.want[name].dtype if case.want and name in case.want else w.dtype
        g, w = cli.from_bits(g, kind), cli.from_bits(w, kind)
        if g.dtype != w.dtype or g.shape != w.shape:
            return f"{name}: {g.dtype}{list(g.shape)}, want {w.dtype}{list(w.shape)}"
        if w.dtype.kind in "biu" or not w.size:
            outcome = cli.mismatch(g, w, 0, 0)
        else:
            unit = case.unit or (w.dtype.name if w.dtype.name != "float64" else "float32")
            # A sum in float16 or bfloat16 rounds at every term in onnxruntime.
            rtol, share = (2e-2, 2e-2) if unit == "seed" else corpus_run.RTOL[unit]
            wide, g = w.astype(np.float64), g.astype(np.float64)
            finite = np.abs(wide[np.isfinite(wide)])
            outcome = cli.mismatch(g, wide, 2 * rtol, 2 * share * (finite.max() if finite.size else 0.0))
        if outcome:
            return f"{name}: {outcome}"
    return None


class Suite:
    def __init__(self, sinter, work, timeout):
        self.sinter, self.work, self.timeout = sinter, work, timeout

    def call(self, *args):
        return cli.call(self.sinter, *args, timeout=self.timeout)

    def results(self, case, folder, source, stem):
        """Sinter's results of a model; (None, why) where it fails."""
        target, feeds, out = (os.path.join(folder, f) for f in (f"{stem}.sinter", "in.npz", f"{stem}.npz"))
        r = self.call("convert", source, "-o", target, "--report", os.path.join(folder, f"{stem}.json"), *case.flags)
        if r.code != 0:
            return None, f"convert: {r.why()}"
        r = self.call("run", target, "--inputs", feeds, "--outputs", out, "--quiet")
        os.remove(target)
        return (cli.load_npz(out), None) if r.code == 0 else (None, f"run: {r.why()}")

    def repair(self, case):
        """(what, why): what is wrong, or the state before onnxruntime is asked: refused, same, repaired."""
        folder = os.path.join(self.work, case.name.replace("/", "_"))
        os.makedirs(folder, exist_ok=True)
        source, fixed, again = (os.path.join(folder, f) for f in ("model.onnx", "fixed.onnx", "again.onnx"))
        with open(source, "wb") as f:
            f.write(case.model.SerializeToString())
        options = [w for w in case.flags if w.startswith(("--shape", "--dim", "--const")) or "=" in w]
        options = options if all(w.startswith("--") or options[i - 1].startswith(("--shape", "--dim", "--const"))
                                 for i, w in enumerate(options)) else []
        r = self.call("repair", source, "-o", fixed, "--json", *options)
        if case.expect == "refuse":
            if r.code != 3:
                return "wrong", f"not refused: {r.why()}"
            return ("wrong", "a refusal left a file") if os.path.exists(fixed) else ("refused", "")
        if r.code != 0:
            return "wrong", f"repair: {r.why()}"
        outcome = json.loads(r.out)
        same = open(source, "rb").read() == open(fixed, "rb").read()
        if same == outcome["changed"]:
            return "wrong", f"{len(outcome['edits'])} edits, and the file is {'the same' if same else 'another'}"
        r = self.call("repair", fixed, "-o", again, "--json", *options)
        if r.code != 0 or open(again, "rb").read() != open(fixed, "rb").read():
            return "wrong", f"a second repair changes the file: {r.why() if r.code else json.loads(r.out)['edits'][:2]}"
        cli.save_npz(os.path.join(folder, "in.npz"), case.feeds)
        before, why = self.results(case, folder, source, "before")
        if why:
            return "wrong", f"original: {why}"
        if same:
            return "same", ""
        after, why = self.results(case, folder, fixed, "after")
        if why:
            return "wrong", f"repaired: {why}"
        with open(os.path.join(folder, "after.json"), encoding="utf-8") as f:
            left = [e for e in json.load(f)["types"] if e["rule"] in REPAIRS and e["effect"] in EFFECTS]
        if left:
            return "wrong", f"the repaired file is repaired by convert: {left[0]['value']} at {left[0]['node']} [{left[0]['rule']}] {left[0]['before']} -> {left[0]['after']}"
        if why := close(case, after, before):
            return "wrong", f"Sinter's results of the repaired file: {why}"
        return "repaired", ""


# --- onnxruntime and the checker, in a process of their own: they may crash ---

def ort_outcome(case, path, folder):
    """(what, why) of a file in onnxruntime: right, wrong values, no kernel, or not loadable."""
    outcome = corpus_run.ort_one(TypeCase(case.name, case.rule, onnx.load(path), case.feeds, case.want, unit=case.unit),
                                 lambda got: close(case, got, cli.load_npz(os.path.join(folder, "before.npz"))))
    if outcome[0] == "unloadable" and any(w in outcome[1] for w in NO_KERNEL):
        return "no kernel", outcome[1]
    return outcome


def worker(work):
    names = set(json.loads(sys.stdin.read()))
    for c in all_cases():
        if c.name not in names:
            continue
        print(json.dumps(["start", c.name]), flush=True)
        folder = os.path.join(work, c.name.replace("/", "_"))
        fixed = os.path.join(folder, "fixed.onnx")
        try:
            # Declarations without a shape, which the checker does not take, get the inferred one.
            inferred = onnx.shape_inference.infer_shapes(onnx.load(fixed), check_type=True, strict_mode=True)
            onnx.checker.check_model(inferred, full_check=True)
            checked = ""
        except Exception as e:  # the checker raises several types
            checked = " ".join(str(e).split())[:300]
        print(json.dumps(["end", c.name, checked, ort_outcome(c, os.path.join(folder, "model.onnx"), folder),
                          ort_outcome(c, fixed, folder)]), flush=True)


def ask_others(chosen, work):
    """name -> (the checker's fault, onnxruntime's outcome of the original, of the repaired file)."""
    results, left = {}, [c.name for c in chosen]
    while left:
        r = subprocess.run([sys.executable, os.path.abspath(__file__), "--worker", work], input=json.dumps(left),
                           capture_output=True, text=True)
        current = None
        for line in r.stdout.splitlines():
            entry = json.loads(line)
            current = entry[1] if entry[0] == "start" else None
            if entry[0] == "end":
                results[entry[1]] = entry[2:]
        if current:
            results[current] = ["", ("unloadable", "the process died"), ("unloadable", "the process died")]
        elif r.returncode:
            sys.exit(f"onnxruntime's process failed: {r.stderr[-2000:]}")
        left = [n for n in left if n not in results]
    return results


def known_failures():
    """case -> reason: lines "CASE | reason"."""
    with open(os.path.join(HERE, "repair_failures.txt"), encoding="utf-8") as f:
        lines = [line.strip() for line in f if line.strip() and not line.startswith("#")]
    return dict(line.split(" | ", 1) for line in lines)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--sinter")
    p.add_argument("--only", action="append")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--timeout", type=float, default=60)
    p.add_argument("--report")
    p.add_argument("--verbose", action="store_true")
    p.add_argument("--worker", help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.worker:
        return worker(args.worker)
    sinter = cli.find_sinter(args.sinter)
    chosen = [c for c in all_cases() if not args.only or any(fnmatch.fnmatchcase(n, f) for f in args.only
                                                             for n in (c.name, c.rule))]
    known = known_failures()
    with tempfile.TemporaryDirectory(prefix="repair-") as work:
        suite = Suite(sinter, work, args.timeout)
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            outcome = dict(zip((c.name for c in chosen), pool.map(suite.repair, chosen)))
        others = ask_others([c for c in chosen if outcome[c.name][0] in ("same", "repaired")], work)
    table, bad, rows = collections.Counter(), 0, []
    for c in chosen:
        what, why = outcome[c.name]
        checked, before, after = others.get(c.name, ("", ("", ""), ("", "")))
        if what == "repaired":
            why = (f"onnx.checker: {checked}" if checked else
                   f"onnxruntime: {after[0]}: {after[1]}" if after[0] not in ("right", "no kernel") else "")
            table["repaired", "checked"] += not checked
            table["repaired", "before", before[0]] += 1
            table["repaired", "after", after[0]] += 1
        table[what] += 1
        rows.append(dict(case=c.name, what=what, why=why, checker=checked, before=before, after=after))
        listed = c.name in known
        if bool(why) != listed:
            bad += 1
            print(f"{'FAIL ' if why else 'STALE'} {c.name} [{c.rule}]: {why or known[c.name]}", flush=True)
        elif args.verbose and why:
            print(f"known {c.name}: {why}", flush=True)
    n = table["repaired"]
    print(f"{len(chosen)} models: {n} repaired, {table['same']} fine and unchanged, {table['refused']} refused, "
          f"{table['wrong']} not as expected")
    print(f"of the {n} repaired: {table['repaired', 'checked']} pass onnx.checker with full inference; in onnxruntime")
    print("|          | right | other values | no kernel for a type | not loadable |")
    for when in ("before", "after"):
        counts = (table["repaired", when, k] for k in ("right", "wrong", "no kernel", "unloadable"))
        print(f"| {when:8s} | " + " | ".join(map(str, counts)) + " |")
    if args.report:
        with open(args.report, "w", encoding="utf-8") as f:
            json.dump(rows, f, indent=1)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
