#!/usr/bin/env python3
"""The same bits everywhere: integer models on every backend, instruction set, thread count and architecture.

    golden.py [--sinter PROGRAM] [--runner PROGRAM] [--arm FOLDER]... [--only TEXT] [--update]

Networks made from fixed seeds (networks.py), the int8 twins of the shared folder and what `convert --quantize int8`
makes of float models run with inputs from an integer generator. Compared are the outputs of models that compute on
integers throughout, and in every model each value that a step makes of integers alone. The outputs of models that come
quantized must also hash to golden.json (--update writes it).

The runner (golden_run) is built for ARM, too; those of build/aarch64 and build/armv7 run under qemu.
What this machine or the emulator lacks is listed as not run.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
sys.path.insert(0, HERE)
import pinned  # noqa: E402

pinned.require()
import networks  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import sinter_cli as cli  # noqa: E402

GOLDEN = os.path.join(HERE, "golden.json")
NOT_RUN = 77
TWINS = ["hello-sine/hello-sine-qdq.onnx", "micro-speech/micro-speech-qdq.onnx", "mlperf-ad/ad-autoenc-qdq.onnx",
         "mlperf-ic/ic-resnet8-qdq.onnx", "mlperf-kws/kws-dscnn-qdq.onnx"]
FLOATS = ["mlperf-kws/kws-dscnn-fp32.onnx", "mlperf-ic/ic-resnet8-fp32.onnx", "mnist8-cntk/model.onnx",
          "person-det-192/model.onnx", "ultraface-slim-simp/version-slim-320_simplified.onnx"]
RECURRENT = ["lstm", "gru"]  # of tests/quantize/nets
# Targets differ in what is faster, and these choices depend on it: without them all targets get the same layers.
AS_INT8 = ["--quantize", "int8", "--force-int8", "--disable-technique", "wide-activations", "--disable-technique", "leave-float"]
# Name, target of the conversion, SINTER_CPU_CAP (of XNNPACK), flags of the runner, flags of qemu.
HERE_TIERS = [("reference", None, ["--backend", "reference"]), ("simd", None, ["--backend", "simd"]), ("default", None, []),
              ("2 threads", None, ["--threads", "2"]), ("4 threads", None, ["--threads", "4"]),
              ("simd, 4 threads", None, ["--backend", "simd", "--threads", "4"])]
X86_TIERS = [("sse4", "sse41", "sse4"), ("avx2", "avx2", "avx2"),
             ("avx512", "avx512", "avx512"), ("avx512_vbmi", None, "avx512_vbmi")]
ARM = {"aarch64": ("qemu-aarch64", "/usr/aarch64-linux-gnu", ["cortex-a53", "cortex-a76", "max"]),
       "armv7": ("qemu-arm", "/usr/arm-linux-gnueabihf", ["cortex-a7", "cortex-a15", "max"])}
ELF = {"aarch64": 183, "armv7": 40}


class Tier:
    def __init__(self, name, target, command, flags, cap=None, device=False):
        self.name, self.target, self.command, self.flags = name, target, command, flags
        self.device = device  # whose memory the runner cannot read: only outputs are compared
        self.environment = {**os.environ, **({"SINTER_CPU_CAP": cap} if cap else {})}
        self.ran, self.missing = 0, None

    def run(self, file):
        """Lines of the runner, or None where this tier cannot be had."""
        r = subprocess.run([*self.command, file, *self.flags], capture_output=True, text=True, env=self.environment, timeout=600)
        if r.returncode == NOT_RUN:
            self.missing = "not on this machine or in this build"
            return None
        if r.returncode != 0:
            raise RuntimeError(f"{self.name}: exit {r.returncode}: {r.stderr.strip()[-300:]}")
        self.ran += 1
        hashes = Hashes(r.stdout)
        if "--simd-cap" in self.flags and hashes.target != self.flags[self.flags.index("--simd-cap") + 1]:
            raise RuntimeError(f"{self.name}: ran on {hashes.target}")
        return hashes


class Hashes:
    def __init__(self, text):
        self.outputs, self.integers, self.target, self.floats = {}, {}, "", 0
        for line in text.splitlines():
            kind, rest = line.split(" ", 1)
            if kind == "target":
                self.target = rest
            elif kind == "float":
                self.floats = int(rest)
            else:
                name, value = rest.rsplit(" ", 1)
                into = self.outputs if kind == "output" else self.integers
                while name in into:  # values without names of their own
                    name += "'"
                into[name] = value


def runs_here(path):
    """Whether qemu and its libraries are there for this program."""
    return path and os.path.isfile(path) and os.access(path, os.X_OK)


def find_tiers(runner, arm):
    tiers = [Tier(name, None, [runner], flags, cap) for name, cap, flags in HERE_TIERS]
    if os.uname().machine == "x86_64":
        tiers += [Tier(f"cap {name}{', simd' if more else ''}", None, [runner], ["--simd-cap", simd, *more], cap)
                  for name, cap, simd in X86_TIERS for more in ([], ["--backend", "simd"])]
    else:
        tiers.append(Tier("cap neon", None, [runner], ["--simd-cap", "neon"], "neon"))
    tiers.append(Tier("cuda-emulated", "cuda-emulated", [runner], [], device=True))
    for target, (qemu, libraries, processors) in ARM.items():
        program = next((p for p in (os.path.join(f, target, "bin", "golden_run") for f in arm) if runs_here(p)), None)
        for cpu in processors:
            name = f"{target} {cpu}"
            tier = Tier(name, target, [qemu, "-L", libraries, "-cpu", cpu, program or ""], [])
            if not program:
                tier.missing = f"no golden_run for {target} (./test --arm builds it)"
            elif not shutil.which(qemu) or not os.path.isdir(libraries):
                tier.missing = f"no {qemu} with libraries"
            tiers.append(tier)
            if cpu == "max":
                tiers.append(Tier(name + ", 4 threads", target, tier.command, ["--threads", "4"]))
                tiers.append(Tier(name + ", simd", target, tier.command, ["--backend", "simd"]))
                tiers[-1].missing = tiers[-2].missing = tier.missing
    return tiers


class Suite:
    def __init__(self, sinter, folder, tiers, golden):
        self.sinter, self.folder, self.tiers, self.golden = sinter, folder, tiers, golden
        self.found, self.passed, self.failed = {}, 0, 0

    def path(self, name):
        return os.path.join(self.folder, name)

    def check(self, what, holds, why=""):
        self.passed, self.failed = self.passed + bool(holds), self.failed + (not holds)
        if not holds:
            print(f"FAIL  {what}: {str(why)[:800]}")

    def convert(self, model, target, *more):
        out = self.path(f"{target or 'here'}.sinter")
        planned = cli.PLANNED_FOR.get(target, ["--target", target]) if target else []
        result = cli.call(self.sinter, "convert", model, "-o", out, "--quiet", *planned, *more, timeout=300)
        if result.code != 0:
            raise RuntimeError(f"{model} for {target or 'this machine'}: {result.why()}")
        return out

    def model(self, name, path, *more, fixed=True):
        """All tiers against the reference kernels; `fixed`: and these against what was recorded."""
        try:
            targets = {t.target for t in self.tiers if not t.missing}
            files = {t: self.convert(path, t, *more) for t in targets}
            want = self.tiers[0].run(files[None])
        except (RuntimeError, subprocess.TimeoutExpired) as e:
            self.check(name, False, e)
            return
        whole = want.floats == 0
        if not want.integers:
            self.check(f"{name} has integer values", False, "none")
        before, count = self.failed, 0
        for tier in self.tiers[1:]:
            if tier.missing:
                continue
            try:
                got = tier.run(files[tier.target])
            except (RuntimeError, subprocess.TimeoutExpired) as e:
                self.check(f"{name} on {tier.name}", False, e)
                continue
            if got is None:
                continue
            count += 1
            if tier.device:
                if whole:
                    self.check(f"{name} on {tier.name}: outputs", got.outputs == want.outputs, f"{got.outputs} {want.outputs}")
                continue
            first = next((n for n in want.integers if got.integers.get(n) != want.integers[n]), None)
            self.check(f"{name} on {tier.name}: values made of integers", first is None and len(got.integers) == len(want.integers),
                       f"the first that differs is '{first}', of {len(want.integers)}")
            if whole:
                self.check(f"{name} on {tier.name}: outputs", got.outputs == want.outputs, f"{got.outputs} {want.outputs}")
        if fixed and whole:
            self.found[name] = want.outputs
            if self.golden is not None:
                self.check(f"{name}: the recorded outputs", self.golden.get(name) == want.outputs,
                           f"{want.outputs}, recorded {self.golden.get(name)}")
        kind = "all integer" if whole else f"{want.floats} float steps"
        print(f"{'ok  ' if self.failed == before else 'FAIL'}  {name}: {len(want.integers)} values, {kind}, {count} ways")


def samples(path, out, count=16):
    """Fixed made-up data for calibration."""
    model, r, arrays = onnx.load(path), np.random.default_rng(1), {}
    held = {i.name for i in model.graph.initializer}
    for i in model.graph.input:
        if i.name in held:
            continue
        dims = [d.dim_value or 1 for d in i.type.tensor_type.shape.dim]
        arrays[i.name] = r.uniform(0, 1, [count, *dims[1:]]).astype("f")
    np.savez(out, **arrays)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sinter")
    parser.add_argument("--runner")
    parser.add_argument("--arm", action="append", default=[], help="folder with aarch64/bin/golden_run, armv7/bin/golden_run")
    parser.add_argument("--only", default="")
    parser.add_argument("--update", action="store_true")
    args = parser.parse_args()
    sinter = cli.find_sinter(args.sinter)
    runner = args.runner or os.path.join(os.path.dirname(sinter), "golden_run")
    if not runs_here(runner):
        cli.skip("no golden_run beside the sinter program")
    tiers = find_tiers(runner, args.arm or [os.path.join(cli.REPO, "build"), os.path.dirname(os.path.dirname(os.path.dirname(runner)))])
    golden = {}
    if os.path.exists(GOLDEN):
        with open(GOLDEN) as f:
            golden = json.load(f)
    shared = cli.find_shared()
    with tempfile.TemporaryDirectory() as folder:
        s = Suite(sinter, folder, tiers, None if args.update else golden)
        for name, model in networks.all_networks().items():
            if args.only in name:
                onnx.save(model, s.path("m.onnx"))
                s.model(name, s.path("m.onnx"))
        for name in TWINS if shared else []:
            if args.only in name:
                s.model(name, os.path.join(shared, "models", name))
        for name in FLOATS if shared else []:
            path = os.path.join(shared, "models", name)
            if args.only in name:
                samples(path, s.path("c.npz"))
                s.model(name + " as int8", path, *AS_INT8, "--calibrate", s.path("c.npz"), fixed=False)
        for name in RECURRENT:
            path = os.path.join(HERE, "..", "quantize", "nets", name + ".onnx")
            if args.only in name:
                samples(path, s.path("c.npz"))
                s.model(name + " as int8", path, *AS_INT8, "--calibrate", s.path("c.npz"), fixed=False)
        if not shared:
            print("skip  shared models: the folder is missing")
        for tier in tiers:
            print(f"{'ran ' if tier.ran else 'not run'}  {tier.name}" + (f": {tier.missing}" if tier.missing else ""))
        if args.update:
            golden.update(s.found)
            with open(GOLDEN, "w") as f:
                f.write(json.dumps(golden, indent=1, sort_keys=True) + "\n")
        print(f"{s.passed} checks pass, {s.failed} fail")
        return 1 if s.failed else 0


if __name__ == "__main__":
    sys.exit(main())
