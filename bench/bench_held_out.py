#!/usr/bin/env python3
"""The SQNR that `sinter convert` reports beside that of fresh samples, over many draws of the same data.

    bench/bench_held_out.py --sinter PROGRAM [--nets FOLDER] [--trained FOLDER] [--data FOLDER] [--only NAME...] [--draws N]
                            [--first N] [--calibration N] [--options OPTIONS] [--json FILE]

Each draw makes calibration samples, converts, and evaluates the written file on other samples of the same distribution
(--evaluate, which decides nothing). --nets: the networks of tests/quantize/nets, whose data are made anew for each draw
(400 samples to evaluate). --trained: what trained/train.py wrote, with 1000 samples to evaluate. --data: the output of accuracy_data.py; each draw is a new partition of the samples of a model
into calibration and evaluation, so that only models with independent samples are of use (one crop per photograph). Models
that are cut, and exact ones, are left out.

The table has, for each model: the mean SQNR of the fresh samples and its standard deviation over the draws; the mean of
the reported SQNR; in how many draws the fresh samples were inside the reported interval, below and above it; the
mean distance of the interval's ends from the reported SQNR, and its median width. An interval of 95 % should be missed in one draw of 20. The
written file is fitted to all samples, and the reported SQNR is that of a file built without the judges: give
--options="--disable-technique refit" to judge the interval itself.
"""
import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile

import numpy as np

EVALUATION, TRAINED_EVALUATION, MOST_EVALUATED = 400, 1000, 600
EXACT = 999  # dB that stand for no noise


class Net:
    """A network of tests/quantize/nets: every draw has fresh samples."""

    def __init__(self, folder, name, task):
        self.name, self.model, self.flags, self.task = name, os.path.join(folder, name + ".onnx"), [], task

    def draw(self, number, calibration):
        return (self.task(np.random.RandomState(31000 + number), calibration)[0],
                self.task(np.random.RandomState(62000 + number), EVALUATION)[0])


class Trained:
    """A network of trained/train.py: every draw has fresh samples."""

    def __init__(self, folder, name, draw):
        self.name, self.model, self.flags, self.make = name, os.path.join(folder, name, "model.onnx"), [], draw

    def draw(self, number, calibration):
        return self.make(self.name, 31000 + number, calibration), self.make(self.name, 62000 + number, TRAINED_EVALUATION)


class Pool:
    """A model with given samples: every draw is another partition."""

    def __init__(self, folder, name, shared):
        with open(os.path.join(folder, "meta.json")) as f:
            meta = json.load(f)
        self.name, self.flags, self.cut = name, meta["flags"], meta["cut"]
        self.model = os.path.join(shared, "models", meta["model"])
        parts = [dict(np.load(os.path.join(folder, x))) for x in ("calib.npz", "eval.npz")]
        self.first = len(next(iter(parts[0].values())))
        self.samples = {k: np.concatenate([p[k] for p in parts]) for k in parts[0]}

    def draw(self, number, calibration):
        count = len(next(iter(self.samples.values())))
        order = np.random.RandomState(number).permutation(count)
        taken = min(calibration, self.first)
        return tuple({k: v[part] for k, v in self.samples.items()}
                     for part in (order[:taken], order[taken:taken + MOST_EVALUATED]))


def cases(args):
    found = []
    if args.nets:
        sys.path.insert(0, args.nets)
        import nets_data
        found += [Net(args.nets, name, task) for name, (task, _) in nets_data.NETS.items()]
    if args.trained:
        sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "trained"))
        import trained_data
        found += [Trained(args.trained, name, trained_data.draw) for name in trained_data.TASKS
                  if os.path.exists(os.path.join(args.trained, name, "model.onnx"))]
    for name in sorted(os.listdir(args.data)) if args.data else []:
        if os.path.exists(os.path.join(args.data, name, "meta.json")):
            found.append(Pool(os.path.join(args.data, name), name, args.shared))
    return [c for c in found if not getattr(c, "cut", "") and (not args.only or c.name in args.only)]


def measure(args, case, number, scratch):
    calibration, evaluation = (os.path.join(scratch, x) for x in ("c.npz", "e.npz"))
    for file, arrays in zip((calibration, evaluation), case.draw(number, args.calibration)):
        np.savez(file, **arrays)
    outcome = subprocess.run([args.sinter, "convert", case.model, "-o", os.path.join(scratch, "q.sinter"), "--quantize", "int8",
                           "--calibrate", calibration, "--evaluate", evaluation, "--metric", "sqnr", "--json", *case.flags,
                           *shlex.split(args.options)], capture_output=True, text=True)
    if outcome.returncode != 0:
        sys.exit(f"{case.name}, draw {number}: exit {outcome.returncode}: {outcome.stderr.strip()[:300]}")
    q = json.loads(outcome.stdout)["quantized"]
    fresh = min(q["evaluation"]["outputs"], key=lambda x: x["sqnr_db"])
    reported = next(x for x in q["outputs"] if x["name"] == fresh["name"])
    return {"model": case.name, "draw": number, "fresh": fresh["sqnr_db"], "reported": reported["sqnr_db"],
            "low": reported.get("low_db"), "high": reported.get("high_db"), "judges": q["measured_samples"],
            "integer": sum(x["integer"] for x in q["layers"]), "layers": len(q["layers"])}


def coverage(draws):
    """Draws with an interval, and how many of these have their fresh samples below and above it."""
    sure = [d for d in draws if d["low"] is not None]
    return sure, sum(d["fresh"] < d["low"] for d in sure), sum(d["fresh"] > d["high"] for d in sure)


def row(name, draws):
    mean = statistics.fmean
    fresh, reported = [d["fresh"] for d in draws], [d["reported"] for d in draws]
    sure, below, above = coverage(draws)
    width = f"{statistics.median(d['high'] - d['low'] for d in sure):.1f} dB" if sure else ""
    ends = f"-{mean(d['reported'] - d['low'] for d in sure):.1f} +{mean(d['high'] - d['reported'] for d in sure):.1f}" if sure else ""
    return (f"| {name} | {mean(fresh):.1f} dB | {statistics.pstdev(fresh):.1f} | {mean(reported):.1f} dB | {len(sure) - below - above} of "
            f"{len(sure)} | {below} | {above} | {ends} | {width} | {mean(d['integer'] for d in draws):.1f} of {draws[0]['layers']} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sinter", required=True)
    parser.add_argument("--nets", help="the folder tests/quantize/nets")
    parser.add_argument("--trained", help="the folder that trained/train.py wrote")
    parser.add_argument("--data")
    parser.add_argument("--shared", default=os.environ.get("SINTER_SHARED", "../shared"))
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="number of the first draw")
    parser.add_argument("--calibration", type=int, default=128, help="calibration samples of a draw")
    parser.add_argument("--options", default="", help="more options for sinter convert")
    parser.add_argument("--json")
    args = parser.parse_args()
    print("| model | fresh samples | deviation | reported | inside | below | above | ends | width | operations on integers |\n"
          "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    draws = []
    with tempfile.TemporaryDirectory() as scratch:
        for case in cases(args):
            own = [measure(args, case, n, scratch) for n in range(args.first, args.first + args.draws)]
            draws += own
            if min(d["fresh"] for d in own) < EXACT:
                print(row(case.name, own), flush=True)
            if args.json:
                with open(args.json, "w") as f:
                    json.dump(draws, f, indent=1)
    sure, below, above = coverage(draws)
    print(f"\n{len(sure) - below - above} of {len(sure)} draws inside, {below} below, {above} above")


if __name__ == "__main__":
    main()
