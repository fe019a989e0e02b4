#!/usr/bin/env python3
"""The guarantees about memory (promises.h) on every network, on every backend.

    models.py [--sinter PROGRAM] [--check PROGRAM] [--filter GLOB]... [--runs N] [--seconds S] [--report FILE]

Converts the networks of examples, tests/golden and tests/quantize, and of ../shared/models (or SINTER_SHARED; left out
with a message where it is absent), and has memory_check try each: no heap, lock or system call in up to N runs or S
seconds of each way to compute (SINTER_MEMORY_RUNS=10000 and --seconds 1e9 for all), dead memory overwritten, creation in
every size, on up to 8 threads; that `sinter inspect --memory` states the same bytes. Prints what is wrong and a summary, and
which ways to compute had fewer runs and had not settled (left all of their memory as the run before) by then.
"""
import argparse
import fnmatch
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("common", "models"):
    sys.path.insert(0, os.path.join(HERE, "..", folder))
import pinned  # noqa: E402

pinned.require("numpy", "onnx")
import importlib.util  # noqa: E402

import networks  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import sinter_cli as cli  # noqa: E402


def golden_networks():
    spec = importlib.util.spec_from_file_location("golden_networks", os.path.join(HERE, "..", "golden", "networks.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.all_networks()


def subjects(shared, folder):
    """(name, ONNX file, flags of convert, inputs or None)."""
    for path in sorted(glob.glob(os.path.join(cli.REPO, "examples", "*", "*.onnx"))):
        yield os.path.relpath(path, cli.REPO), path, [], None
    for path in sorted(glob.glob(os.path.join(cli.REPO, "tests", "quantize", "nets", "*.onnx"))):
        yield os.path.relpath(path, cli.REPO), path, [], None
        yield os.path.relpath(path, cli.REPO) + " int8w", path, ["--quantize", "int8w"], None
    for name, model in golden_networks().items():
        path = os.path.join(folder, name + ".onnx")
        onnx.save(model, path)
        yield "golden/" + name, path, [], None
    if shared is None:
        print("skipped: the real networks, because ../shared (or SINTER_SHARED) is missing", flush=True)
        return
    for net in networks.selected(shared):
        path = os.path.join(shared, "models", net.file)
        if net.verdict != "run":
            continue
        model = onnx.load(path)
        flags, fixed = list(net.flags), networks.constant_names(net)
        if net.inputs == "golden":
            feed = networks.golden_sets(net, model, os.path.dirname(path))[0][0]
        else:
            feed = networks.seeded_inputs(net, model)
        for i, name in enumerate(fixed):
            cli.save_npy(os.path.join(folder, f"c{i}.npy"), feed[name])
            flags += ["--const", f"{name}={folder}/c{i}.npy"]
        yield net.file, path, flags, {k: v for k, v in feed.items() if k not in fixed}


def disagreements(sinter, file, lines):
    """What `inspect --memory` states differently from what a session was created in, byte by byte."""
    for backend, threads, needed in (line.split()[1:] for line in lines if line.startswith("needs ")):
        extra = [] if backend == "planned" else ["--backend", backend]
        r = cli.call(sinter, "inspect", file, "--memory", "--json", "--threads", threads, *extra)
        stated = json.loads(r.out) if r.code == 0 else {}
        memory = stated.get("memory", {})
        parts = (memory.get("control_bytes", 0) + memory.get("prepared_bytes", 0)
                 + sum(region["bytes"] for region in memory.get("regions", [])))
        if not int(needed) == stated.get("session_bytes") == parts:
            yield (f"{backend}, {threads} threads: a session takes {needed} bytes, inspect states "
                   f"{stated.get('session_bytes')}, its parts add up to {parts} {r.err.strip()}")


def runs_made(report, most):
    """How many ways to compute had `most` runs, how many settled before; a line for each of the others."""
    full = settled = 0
    others, fewest = [], most
    for name, lines in report.items():
        for way, runs, end in re.findall(r"untouched \((.*), (\d+) runs(, settled)?\)", "\n".join(lines)):
            fewest = min(fewest, int(runs))
            if int(runs) >= most:
                full += 1
            elif end:
                settled += 1
            else:
                others.append(f"{name} ({way}): {runs} runs")
    return f"{full} ways made {most} runs, {settled} fewer, at least {fewest}, and settled", others


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--sinter")
    p.add_argument("--check")
    p.add_argument("--filter", action="append", default=[])
    p.add_argument("--runs")
    p.add_argument("--seconds", default="0.1")
    p.add_argument("--report")
    args = p.parse_args()
    sinter = cli.find_sinter(args.sinter)
    check = args.check or os.path.join(os.path.dirname(sinter), "memory_check")
    if not os.path.isfile(check):
        cli.skip(f"no memory_check beside {sinter}")
    failures, report = [], {}
    with tempfile.TemporaryDirectory(prefix="memory-") as folder:
        for name, path, flags, feed in subjects(cli.find_shared(), folder):
            if args.filter and not any(fnmatch.fnmatch(name, g) for g in args.filter):
                continue
            target = os.path.join(folder, "m.sinter")
            r = cli.call(sinter, "convert", path, "-o", target, "--quiet", *flags, timeout=600)
            if r.code != 0:
                failures.append(f"{name}: convert: {r.why()}")
                continue
            command = [check, target, "--seconds", args.seconds]
            if args.runs:
                command += ["--runs", args.runs]
            if feed is not None:
                command += ["--inputs", os.path.join(folder, "inputs")]
                with open(command[-1], "wb") as f:
                    for key, array in feed.items():
                        f.write(f"{array.nbytes} {key}\n".encode() + np.ascontiguousarray(array).tobytes())
            r = subprocess.run(command, capture_output=True, text=True, check=False)
            lines = r.stdout.splitlines()
            report[name] = lines
            wrong = [x for x in lines + r.stderr.splitlines() if not x.startswith(("ok ", "left ", "needs "))]
            wrong += disagreements(sinter, target, lines)
            if r.returncode != 0 and not wrong:
                wrong = [f"exit code {r.returncode}"] + lines[-1:]
            print(f"{'FAIL' if wrong else 'ok':4} {name}: {sum(x.startswith('ok') for x in lines)} checks", *wrong, sep="\n     " if wrong else "", flush=True)
            for line in lines:
                if line.startswith("left"):
                    print("     " + line)
            failures += [f"{name}: {w}" for w in wrong]
    if args.report:
        with open(args.report, "w", encoding="utf-8") as f:
            json.dump(report, f, indent=1)
    result, others = runs_made(report, int(args.runs or os.environ.get("SINTER_MEMORY_RUNS", 20)))
    print(result, *(f"fewer, not settled: {line}" for line in others), sep="\n")
    print(f"{len(report)} networks, {sum(map(len, report.values()))} checks, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
