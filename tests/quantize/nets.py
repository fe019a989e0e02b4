#!/usr/bin/env python3
"""sinter convert --quantize int8 on small trained networks that are known to break quantizers (nets/train_*.py made
them; the data come from nets/nets_data.py), with default settings.

    nets.py [--sinter PROGRAM] [--only NAME]...

A labelled network may lose at most one point of accuracy; every network has a minimum SQNR, which is what
is reached now, less a little. No integer network may need a larger arena than its original.
"""
import argparse
import json
import math
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "common"), os.path.join(HERE, "nets")]
import pinned  # noqa: E402

pinned.require()
import nets_data  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import sinter_cli as cli  # noqa: E402
import suite  # noqa: E402

LOSS = 1.0  # points of accuracy that int8 may cost
# The choice of operations kept in float for accuracy affects results far above 25 dB (denoiser) and near it (outliers).
# SQNR in dB that an output, or a part of it, must have.
FLOORS = {("prelu", "output"): 26, ("lstm", "output"): 45, ("gru", "output"): 45, ("columns", "output"): 31,
          ("boxes", "boxes"): 44, ("boxes", "scores"): 39, ("unet", "output"): 35, ("denoiser", "output"): 27,
          ("depthwise", "output"): 33, ("outliers", "output"): 22, ("attention", "output"): 33}
PARTS = {"boxes": {"boxes": np.s_[:, :4], "scores": np.s_[:, 4:]}}


def decibels(exact, got):
    noise = ((exact.astype(np.float64) - got) ** 2).sum()
    return 10 * math.log10((exact.astype(np.float64) ** 2).sum() / noise) if noise else math.inf


class Suite(suite.Suite):
    def check(self, what, holds, why=""):
        super().check(f"{what}: {why}" if holds else what, holds, why)

    def convert(self, model, out, *more):
        return cli.call(self.sinter, "convert", model, "-o", self.path(out), "--quiet", *more, timeout=240)

    def arena(self, file):
        result = cli.call(self.sinter, "inspect", self.path(file), "--memory", "--json")
        return sum(region["bytes"] for region in json.loads(result.out)["memory"]["regions"])

    def run(self, file, output):
        result = cli.call(self.sinter, "run", self.path(file), "--inputs", self.path("x.npz"), "--each", "--outputs",
                        self.path("o.npz"), "--quiet", timeout=120)
        return np.load(self.path("o.npz"))[output] if result.code == 0 else result.why()


def network(s, name):
    model = os.path.join(HERE, "nets", name + ".onnx")
    output = onnx.load(model).graph.output[0].name
    calib, evaluate = nets_data.data(name)
    label = evaluate.pop("label", None)
    np.savez(s.path("c.npz"), **calib)
    np.savez(s.path("x.npz"), **evaluate)
    for result in (s.convert(model, "f.sinter"), s.convert(model, "q.sinter", "--quantize", "int8", "--calibrate", s.path("c.npz"))):
        if result.code != 0:
            return s.check(f"{name} converts", False, result.why())
    whole, narrow = s.arena("f.sinter"), s.arena("q.sinter")
    s.check(f"{name}: arena", narrow <= whole, f"{narrow} bytes, {whole} in float")
    exact, got = s.run("f.sinter", output), s.run("q.sinter", output)
    for a in (exact, got):
        if isinstance(a, str):
            return s.check(f"{name} runs", False, a)
    exact, got = (a.reshape(len(a), -1) for a in (exact, got))
    if label is not None:
        before, now = (100 * (a.argmax(1) == label).mean() for a in (exact, got))
        s.check(f"{name} keeps its accuracy", now >= before - LOSS, f"{now:.2f} % of {before:.2f} %")
    for part, where in PARTS.get(name, {"output": np.s_[:]}).items():
        db, floor = decibels(exact[where], got[where]), FLOORS.get((name, part), 20)
        s.check(f"{name}: {part}", db >= floor, f"{db:.1f} dB, at least {floor}")
    return None


def two_by_160(s):
    """Data that a denoiser of two latents cannot take are refused before anything runs, with the input's name."""
    model = os.path.join(HERE, "nets", "denoiser.onnx")
    right, _ = nets_data.data("denoiser")
    open_batch = onnx.load(model)
    for value in open_batch.graph.input:
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    onnx.save(open_batch, s.path("open.onnx"))
    one = {k: v[:, :1] for k, v in right.items()}
    wrong = {"a wrong batch": (one, "sample"),
             "one input's wrong batch": (right | {"timestep": right["timestep"][:, :1]}, "timestep"),
             "a missing timestep": ({k: v for k, v in right.items() if k != "timestep"}, "timestep"),
             "a time of rank 2": (right | {"timestep": right["timestep"][..., None]}, "timestep"),
             "fewer steps than samples": (right | {"timestep": right["timestep"][:64]}, "timestep")}
    for kind, file, flags in (("fixed batch", model, []), ("open batch", s.path("open.onnx"), ["--dim", "batch=2"])):
        np.savez(s.path("right.npz"), **right)
        result = s.convert(file, "r.sinter", "--quantize", "int8", "--calibrate", s.path("right.npz"), *flags)
        s.check(f"2 by 160, {kind}: right data", result.code == 0, result.why() if result.code else "converts")
        for what, (arrays, name) in wrong.items():
            np.savez(s.path("w.npz"), **arrays)
            result = s.convert(file, "w.sinter", "--quantize", "int8", "--calibrate", s.path("w.npz"), *flags)
            s.check(f"2 by 160, {kind}: {what}", result.code == 5 and name in result.err and not os.path.exists(s.path("w.sinter")),
                    result.why())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sinter")
    parser.add_argument("--only", nargs="*", default=[])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        s = Suite(cli.find_sinter(args.sinter), folder)
        for name in nets_data.NETS:
            if not args.only or name in args.only:
                network(s, name)
        if not args.only or "denoiser" in args.only:
            two_by_160(s)
        print(s.summary())
        return 1 if s.failed else 0


if __name__ == "__main__":
    sys.exit(main())
