#!/usr/bin/env python3
"""Run ONNX's backend tests through the `sinter` command line and judge the answers.

    run.py [--data FOLDER] [--sinter PROGRAM] [--backend reference|default|cuda-emulated|NAME] [--filter GLOB]... [--report FILE]

Every test is converted (operands that decide shapes as constants, see operands.py), run, and compared with
ONNX's own tolerances, exact type and shape. Statuses: pass, wrong, refused, crash, timeout. Classes come from
scope.py. Two lists are beside this file, one `GLOB  reason` per line, a name may end in `@BACKEND`:
unsupported.txt (out of scope or planned for later: refused, never wrong) and expected_failure.txt (in scope, fails
today). A test that fails or is refused without an entry fails the run, and so does an entry of the second list whose
test passes, or an entry of either that no test needs. Exit code 0: all as expected; 1: not.
"""
import argparse
import collections
import concurrent.futures
import fnmatch
import glob
import json
import os
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
sys.path.insert(0, HERE)
import pinned  # noqa: E402

pinned.require("numpy", "onnx")
import onnx  # noqa: E402
from onnx import numpy_helper  # noqa: E402

import make_data  # noqa: E402
import operands  # noqa: E402
import scope  # noqa: E402
import sinter_cli as cli  # noqa: E402

MUST_PASS = {"in"}
STATUSES = ("pass", "wrong", "refused", "crash", "timeout")


class Unfeedable(Exception):
    pass


def read_values(folder, what, infos):
    """The arrays of one data set, by name; sequences, maps and optionals cannot be fed."""
    values = {}
    known = {info.name for info in infos}
    for i, info in enumerate(infos):
        path = os.path.join(folder, f"{what}_{i}.pb")
        if not os.path.exists(path):
            break
        if not info.type.HasField("tensor_type"):
            raise Unfeedable(f"{info.name} is not a tensor")
        with open(path, "rb") as f:
            t = onnx.TensorProto.FromString(f.read())
        if t.data_type == onnx.TensorProto.STRING:
            raise Unfeedable(f"{info.name} holds strings")
        # Old files list their weights as inputs first: a name in the data goes before the place.
        values[t.name if t.name in known else info.name] = numpy_helper.to_array(t)
    return values


def status_of(answer, refused_codes=(3,)):
    if answer.code is None:
        return "timeout"
    if answer.crashed:
        return "crash"
    return "refused" if answer.code in refused_codes else "wrong"


def attempt(sinter, place, model, data, const_names, backend, timeout, work):
    """Convert with these constants, run, compare: (status, message)."""
    try:
        inputs = read_values(data, "input", [v for v in model.graph.input])
        outputs = read_values(data, "output", model.graph.output)
    except Unfeedable as e:
        inputs = outputs = None
        unfeedable = str(e)
    target = os.path.join(work, "m.sinter")
    planned = cli.PLANNED_FOR.get(backend, [])
    args = ["convert", os.path.join(place, "model.onnx"), "-o", target, "--quiet", *planned]
    for name in sorted(const_names if inputs is not None else ()):
        cli.save_npy(os.path.join(work, f"c{len(args)}.npy"), inputs[name])
        args += ["--const", f"{name}={work}/c{len(args)}.npy"]
    for v in model.graph.input:
        t = v.type.tensor_type
        if inputs is not None and v.name in inputs and v.name not in const_names and (
                not t.HasField("shape") or any(not d.HasField("dim_value") for d in t.shape.dim)):
            args += ["--shape", f"{v.name}={','.join(map(str, inputs[v.name].shape))}"]
    if os.path.exists(target):
        os.unlink(target)
    r = cli.call(sinter, *args, timeout=timeout)
    if r.code != 0:
        if os.path.exists(target):
            return "wrong", f"convert: {r.why()}; and it left an output file"
        status = status_of(r)
        if status == "refused" and not r.err.strip():
            return "wrong", "convert: refused without a reason"
        return status, f"convert: {r.why()}"
    if inputs is None:
        return "wrong", f"converted, but {unfeedable}"
    feed = {k: v for k, v in inputs.items() if k not in const_names}
    source, result = os.path.join(work, "in.npz"), os.path.join(work, "out.npz")
    cli.save_npz(source, feed)
    if os.path.exists(result):
        os.unlink(result)
    args = ["run", target, "--inputs", source, "--outputs", result, "--quiet"]
    chosen = [] if backend == "default" or planned else ["--backend", backend]
    r = cli.call(sinter, *args, *chosen, timeout=timeout)
    if r.code != 0:
        return ("wrong" if status_of(r) == "refused" else status_of(r)), f"run: {r.why()}"
    rtol, atol = tolerance(place)
    got = cli.load_npz(result)
    for name, want in outputs.items():
        if name not in got:
            return "wrong", f"no output {name!r}, only {sorted(got)}"
        outcome = cli.mismatch(got[name], want, rtol, atol)
        if outcome:
            return "wrong", f"{name}: {outcome}"
    return "pass", ""


def tolerance(place):
    path = os.path.join(place, "data.json")
    if not os.path.exists(path):
        return 1e-3, 1e-7
    with open(path, encoding="utf-8") as f:
        spec = json.load(f)
    return spec.get("rtol", 1e-3), spec.get("atol", 1e-7)


def run_test(job):
    kind, name, place, sinter, backend, timeout, data_root = job
    start = time.monotonic()
    model = onnx.load(os.path.join(place, "model.onnx"))
    test_class, reason = scope.classify(kind, name, model)
    if kind == "real":
        timeout = max(timeout, 300)
    # An expanded test has the operands of the test that it expands.
    origin = os.path.join(os.path.dirname(place), name.removesuffix("_expanded"), "model.onnx")
    about = onnx.load(origin) if name.endswith("_expanded") and os.path.exists(origin) else model
    op = about.graph.node[0].op_type if kind == "node" and len(about.graph.node) == 1 else f"({kind})"
    first = operands.names(about, operands.SHAPE_LIKE)
    if test_class == "const":
        first |= {v.name for v in model.graph.input if scope.type_name(v) in scope.LOW_BITS}
    second = first | operands.names(about, operands.PARAMETERS)
    result = dict(test=f"{kind}/{name}", op=op, scope=test_class, reason=reason, status="pass", message="",
                  const=[], second_attempt=False)
    with tempfile.TemporaryDirectory(prefix="conformance-") as work:
        for data in sorted(glob.glob(os.path.join(glob.escape(place), "test_data_set_*"))):
            status, message = attempt(sinter, place, model, data, first, backend, timeout, work)
            used = first
            if status == "refused" and second != first:
                again, text = attempt(sinter, place, model, data, second, backend, timeout, work)
                if again != "refused":
                    status, message, used = again, text, second
                    result["second_attempt"] = True
            result.update(status=status, message=message, const=sorted(used))
            if status != "pass":
                break
    result["seconds"] = round(time.monotonic() - start, 3)
    return result


class Listed:
    """One of the two lists: which entry, if any, covers a test on this backend."""

    def __init__(self, path, backend):
        self.path, self.entries, self.hits = path, [], collections.Counter()
        for n, line in enumerate(open(path, encoding="utf-8"), 1):
            line = line.split("#", 1)[0].strip() if line.lstrip().startswith("#") else line.strip()
            if not line:
                continue
            pattern, _, reason = line.partition(" ")
            if not reason.strip():
                sys.exit(f"{path}:{n}: {pattern} has no reason")
            pattern, _, only = pattern.partition("@")
            if only in ("", backend):
                self.entries.append((pattern, reason.strip()))

    def find(self, test):
        for pattern, reason in self.entries:
            if fnmatch.fnmatchcase(test, pattern) or fnmatch.fnmatchcase(test.split("/", 1)[1], pattern):
                self.hits[pattern] += 1
                return reason
        return None

    def stale(self):
        return [p for p, _ in self.entries if not self.hits[p]]


def judge(results, unsupported, expected, complete):
    """Lines about everything that is not as it should be."""
    bad = []
    for r in results:
        status, test = r["status"], r["test"]
        why_failing = expected.find(test)
        why_unsupported = unsupported.find(test) if status != "pass" else None
        r["expected_failure"], r["unsupported"] = why_failing, why_unsupported
        if why_failing:
            if status == "pass":
                bad.append(f"{test}: passes, but is listed in expected_failure.txt: remove it there")
        elif status in ("wrong", "crash", "timeout"):
            bad.append(f"{test}: {status}: {r['message']}")
        elif status == "refused" and (r["scope"] in MUST_PASS or not why_unsupported):
            bad.append(f"{test}: refused: {r['message']}")
    if complete:
        for listed in (unsupported, expected):
            bad += [f"{os.path.basename(listed.path)}: no test needs {p}" for p in listed.stale()]
    return bad


def tables(results):
    per_scope = collections.defaultdict(collections.Counter)
    per_op = collections.defaultdict(collections.Counter)
    for r in results:
        per_scope[r["scope"]][r["status"]] += 1
        per_op[r["op"]][r["status"]] += 1
        per_op[r["op"]]["in"] += r["scope"] == "in"

    def row(name, c):
        return f"{name:28s} {sum(c[s] for s in STATUSES):6d} " + " ".join(f"{c[s] or '':>8}" for s in STATUSES)

    head = f"{'':28s} {'tests':>6} " + " ".join(f"{s:>8}" for s in STATUSES)
    lines = ["by class", head, *(row(k, per_scope[k]) for k in ("in", "later", "const", "bounded", "out")
                                 if k in per_scope)]
    open_ops = {k: c for k, c in per_op.items() if c["in"] and c["pass"] < sum(c[s] for s in STATUSES)}
    lines += ["", "ops in scope that do not pass all their tests" if open_ops else "every op in scope passes", head]
    lines += [row(k, open_ops[k]) for k in sorted(open_ops)]
    return "\n".join(lines)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", default=make_data.DEFAULT, help="folder of make_data.py (written if absent)")
    p.add_argument("--sinter", help="the program (default: SINTER or the build folder)")
    p.add_argument("--backend", default="default", help="reference, xnnpack, ... or default (the profile's choice)")
    p.add_argument("--kind", action="append", help="node, simple, pytorch-converted, pytorch-operator, real "
                                                   "(default: all)")
    p.add_argument("--scope", action="append", help="only these classes (in, later, const, bounded, out)")
    p.add_argument("--filter", action="append", help="only tests whose name matches this glob")
    p.add_argument("--shard", default="0/1", help="i/n: the tests whose number is i modulo n")
    p.add_argument("--workers", type=int, default=os.cpu_count())
    p.add_argument("--timeout", type=float, default=20)
    p.add_argument("--report", help="write all results as JSON")
    p.add_argument("--verbose", action="store_true", help="print every failing test, listed ones too")
    p.add_argument("--tally-only", action="store_true", help="exit 0 whatever the results; print the tables")
    args = p.parse_args()
    sinter = cli.find_sinter(args.sinter)
    make_data.make(args.data)
    index, shards = map(int, args.shard.split("/"))
    kinds = args.kind or scope.KINDS
    jobs = [(kind, name, place) for kind, name, place in scope.tests(args.data) if kind in kinds and (
        not args.filter or any(fnmatch.fnmatchcase(name, f) or fnmatch.fnmatchcase(f"{kind}/{name}", f)
                               for f in args.filter))][index::shards]
    if args.scope:
        jobs = [j for j in jobs if scope.classify(*j[:2], onnx.load(f"{j[2]}/model.onnx"))[0] in args.scope]
    jobs.sort(key=lambda j: j[0] != "real")  # the longest first
    complete = shards == 1 and not args.filter and not args.kind and not args.scope
    start = time.monotonic()
    with concurrent.futures.ProcessPoolExecutor(args.workers) as pool:
        results = list(pool.map(run_test, [(*j, sinter, args.backend, args.timeout, args.data) for j in jobs]))
    lists = [Listed(os.path.join(HERE, f), args.backend) for f in ("unsupported.txt", "expected_failure.txt")]
    bad = judge(results, *lists, complete)
    if args.report:
        with open(args.report, "w", encoding="utf-8") as f:
            json.dump({"backend": args.backend, "shard": args.shard, "results": results}, f, indent=1)
    if args.verbose:
        for r in results:
            if r["status"] != "pass" and (r["scope"] != "out" or r["status"] != "refused"):
                print(f"{r['status']:8s} {r['scope']:7s} {r['test']}: {r['message']}")
    print(tables(results))
    in_scope = [r for r in results if r["scope"] == "in"]
    print(f"\nbackend {args.backend}: {sum(r['status'] == 'pass' for r in in_scope)} of {len(in_scope)} in scope pass, "
          f"{sum(bool(r['expected_failure']) for r in results)} expected failures, "
          f"{time.monotonic() - start:.0f} s")
    for line in bad:
        print(f"FAIL {line}")
    sys.exit(bool(bad) and not args.tally_only)


if __name__ == "__main__":
    main()
