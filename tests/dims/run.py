#!/usr/bin/env python3
"""Lengths that callers give (--dim NAME=MIN..MAX): each result against that of a file converted for the size, in memory full of
garbage; and what is refused.

    run.py [--sinter PROGRAM] --poisoned PROGRAM [unittest options]

Needs numpy and onnx.
"""
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
sys.path.insert(0, HERE)
import pinned  # noqa: E402

pinned.require("numpy", "onnx")
import networks  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import sinter_cli as cli  # noqa: E402
from networks import FLOAT, model, node, value, weights  # noqa: E402
from program_case import ProgramCase, run_cases  # noqa: E402

POISONED = None
ULPS = 64  # of float32, relative to the largest number of an output: the lanes of a sum are others


class Case(ProgramCase):
    def save(self, name, net):
        onnx.save(net, self.path(name))
        return self.path(name)

    def convert(self, name, net, *flags, **expected):
        out = self.path(name)
        r = self.call("convert", net, "-o", out, "--json", *flags, **expected)
        self.assertEqual(os.path.exists(out), r.code == 0)
        return out, json.loads(r.out) if r.code == 0 else r

    def run_model(self, path, inputs, *flags):
        cli.save_npz(self.path("in.npz"), inputs)
        self.call("run", path, "--inputs", self.path("in.npz"), "--outputs", self.path("out.npz"), *flags)
        return cli.load_npz(self.path("out.npz"))

    def run_poisoned(self, path, inputs, wanted, byte):
        """The outputs of two runs in memory that is full of `byte`."""
        args = []
        for name, array in inputs.items():
            array.tofile(self.path(name + ".in"))
            args += [name, ",".join(map(str, array.shape))]
        r = subprocess.run([POISONED, path, str(byte), self.scratch.name, *args], capture_output=True, text=True, timeout=60)
        self.assertEqual(r.returncode, 0, r.stderr)
        found = {}
        for line in r.stdout.splitlines():
            name, _, dims = line.partition(" ")
            shape = [int(n) for n in dims.split(",") if n]
            found[name] = np.fromfile(self.path(name + ".out"), wanted[name].dtype).reshape(shape)
        return found

    def same(self, found, wanted, why):
        self.assertEqual(set(found), set(wanted), why)
        for name, want in wanted.items():
            got = found[name]
            self.assertEqual((got.dtype, got.shape), (want.dtype, want.shape), f"{why}: {name}")
            if want.dtype.kind != "f" or want.size == 0:
                np.testing.assert_array_equal(got, want, f"{why}: {name}")
            else:
                bound = ULPS * float(np.spacing(np.float32(np.abs(want).max())))
                np.testing.assert_allclose(got, want, rtol=0, atol=bound, err_msg=f"{why}: {name}")


def dims_of(sizes):
    return [part for name, size in sizes.items() for part in ("--dim", f"{name}={size}")]


class Results(Case):
    def check(self, network, *flags):
        net, ranges, inputs_for = network()
        path = self.save(network.__name__ + ".onnx", net)
        bounded, report = self.convert("bounded.sinter", path, *flags,
                                       *dims_of({name: f"{low}..{high}" for name, (low, high) in ranges.items()}))
        for d in report["open_dims"]:
            self.assertEqual((d["minimum"], d["size"]), ranges[d["name"]])
        chosen = [{n: low for n, (low, _) in ranges.items()}, {n: high for n, (_, high) in ranges.items()},
                  {n: (low + 2 * high) // 3 for n, (low, high) in ranges.items()}]
        for k, sizes in enumerate(chosen):
            inputs = inputs_for(np.random.default_rng(k), **sizes)
            fixed, _ = self.convert("fixed.sinter", path, *flags, *dims_of(sizes))
            wanted = self.run_model(fixed, inputs)
            self.same(self.run_model(bounded, inputs), wanted, f"{network.__name__} {sizes}")
            for byte in (0xFF, 0x7F):  # NaN and -1; large numbers
                self.same(self.run_poisoned(bounded, inputs, wanted, byte), wanted, f"{network.__name__} {sizes}, memory of {byte:#x}")


for network in networks.ALL:
    setattr(Results, f"test_{network.__name__}", lambda self, network=network: self.check(network))


def model_path(name):
    folder = os.path.join(cli.find_shared(), "models")
    with open(os.path.join(folder, "INDEX.tsv"), encoding="utf-8") as lines:
        return next(os.path.join(folder, name, line.split("\t")[1]) for line in lines if line.startswith(name + "\t"))


class Real(Case):
    """Networks with named dimensions, as they were exported."""

    def check(self, name, ranges, flags=()):
        path = model_path(name)
        bounded, _ = self.convert("bounded.sinter", path, *flags, *dims_of({n: f"{low}..{high}" for n, (low, high) in ranges.items()}))
        facts = json.loads(self.call("inspect", bounded, "--json").out)
        for size in ({n: low for n, (low, _) in ranges.items()}, {n: (low + high) // 2 for n, (low, high) in ranges.items()}):
            fixed, _ = self.convert("fixed.sinter", path, *flags, *dims_of(size))
            own = json.loads(self.call("inspect", fixed, "--json").out)
            self.assertEqual(len(own["inputs"]), len(facts["inputs"]))
            r = np.random.default_rng(3)
            inputs = {i["name"]: r.integers(0, 2, i["shape"]).astype(i["type"]) if i["type"].startswith("int")
                      else r.standard_normal(i["shape"]).astype(i["type"]) for i in own["inputs"]}
            wanted = self.run_model(fixed, inputs)
            self.same(self.run_model(bounded, inputs), wanted, f"{name} {size}")
            self.same(self.run_poisoned(bounded, inputs, wanted, 0xFF), wanted, f"{name} {size}")

    def setUp(self):
        if cli.find_shared() is None:
            self.skipTest("the shared models are missing")

    def test_bert(self):
        self.check("bert-toy", {"batch": (1, 2), "max_seq_len_in_batch": (1, 24)})

    def test_recurrent(self):
        self.check("cntk-bilstm", {"None": (1, 9)})

    def test_batches(self):
        self.check("imgcls-fp32", {"batch_size": (1, 4)})

    def test_a_size_that_the_model_states(self):
        """Exported for two pictures: another number fails, and gives no wrong answer."""
        path, _ = self.convert("two.sinter", model_path("gaze-shufflenet"), "--dim", "batch_size=1..4")
        for batch in (1, 2, 3):
            cli.save_npz(self.path("in.npz"), {"input": np.ones((batch, 3, 32, 32), "f4")})
            words = ("output  float32[2,4,8,8]",) if batch == 2 else ("'Reshape_0' (CheckLength)", "do not fit a shape of 3712 elements")
            self.call("run", path, "--inputs", self.path("in.npz"), code=0 if batch == 2 else 5, words=words)

    def test_a_convolution_along_the_axis(self):
        self.convert("no.sinter", model_path("silero-vad-micro"), "--dim", "batch=1", "--dim", "samples=512..1024", code=3,
                     words=("is bounded (at most 1024)", "give one size with --dim samples=N, or several with --shapes"))


class Commands(Case):
    """What commands make of ranges."""

    def setUp(self):
        net, _, self.inputs = networks.attention()
        self.onnx = self.save("attention.onnx", net)
        self.flags = ("--dim", "batch=2", "--dim", "seq=1..24")

    def test_inspect_and_run(self):
        path, report = self.convert("net.sinter", self.onnx, *self.flags)
        facts = json.loads(self.call("inspect", path, "--json").out)
        self.assertEqual(facts["inputs"][0]["shape"], [2, 24, 16])
        self.assertEqual(facts["inputs"][0]["lengths"], [{"axis": 1, "name": "seq", "minimum": 1, "maximum": 24}])
        self.call("inspect", path, words=("x  float32[2,1..24,16]", "y  float32[2,at most 24,16]"))
        out = self.run_model(path, self.inputs(np.random.default_rng(1), 2, 7))
        self.assertEqual(out["y"].shape, (2, 7, 16))
        self.call("run", path, "--random", "1", words=("y  float32[2,24,16]",))
        self.call("bench", path, "--seconds", "0.01")
        cli.save_npz(self.path("short.npz"), self.inputs(np.random.default_rng(1), 2, 3))
        self.call("bench", path, "--seconds", "0.01", "--inputs", self.path("short.npz"))
        self.call("compare", self.onnx, path, "--inputs", self.path("short.npz"))

    def test_wrong_lengths(self):
        path, _ = self.convert("net.sinter", self.onnx, *self.flags)
        r = np.random.default_rng(1)
        for batch, seq in ((2, 25), (1, 7)):
            cli.save_npz(self.path("wrong.npz"), self.inputs(r, batch, seq))
            self.call("run", path, "--inputs", self.path("wrong.npz"), code=5,
                      words=(f"input 'x' is float32[{batch},{seq},16] but the model takes float32[2,1..24,16]",))
        both = {"x": self.inputs(r, 2, 7)["x"], "mask": self.inputs(r, 2, 6)["mask"]}
        cli.save_npz(self.path("wrong.npz"), both)
        self.call("run", path, "--inputs", self.path("wrong.npz"), code=5, words=("input 1 'mask': its length is 6", "is 7"))

    def test_several_sets(self):
        """A range that all sets have in common."""
        path, _ = self.convert("net.sinter", self.onnx, "--dim", "seq=1..24", "--shapes", "batch=1; batch=4")
        for batch, seq in ((4, 5), (1, 24), (1, 1)):
            self.assertEqual(self.run_model(path, self.inputs(np.random.default_rng(2), batch, seq))["y"].shape, (batch, seq, 16))

    def test_refused(self):
        for flags, words in (
                (("--dim", "seq=9..3"), ("--dim seq=9..3: the minimum is above the maximum",)),
                (("--dim", "seq=0..0"), ("every input with this dimension would be empty",)),
                (("--dim", "sek=1..3"), ("the model has no input dimension of this name", "seq")),
                (("--dim", "seq=1..3", "--dim", "seq=2"), ("--dim seq=2 gives one size",)),
                (("--dim", "seq=1..3", "--shape", "x=2,2,16"), ("gives dimension 'seq' of input 'x' a range",)),
                (("--dim", "seq=1..3", "--shapes", "batch=1,seq=2; batch=2,seq=3"), ("gives dimension 'seq' a size as well",))):
            self.convert("no.sinter", self.onnx, *flags, *(() if "--shape" in str(flags) else ("--dim", "batch=2")), code=3, words=words)
        for text in ("seq=1..", "seq=..3", "seq=1..2..3", "seq=a..b", "seq=-1..3"):
            self.convert("no.sinter", self.onnx, "--dim", text, code=2, words=("is not a valid size",))

    def test_states(self):
        """A state keeps its size; the length of an input beside it may change from run to run."""
        nodes = [node("LSTM", ["x", "w", "r", "", "", "h", "c"], ["y", "h_out", "c_out"], hidden_size=4)]
        net = model(nodes, [value("x", FLOAT, ["seq", 1, 3]), value("h", FLOAT, [1, 1, 4]), value("c", FLOAT, [1, 1, 4])],
                    [value("y", FLOAT, None), value("h_out", FLOAT, [1, 1, 4]), value("c_out", FLOAT, [1, 1, 4])],
                    weights(w=(1, 16, 3), r=(1, 16, 4)))
        path, _ = self.convert("state.sinter", self.save("state.onnx", net), "--dim", "seq=1..6", "--state", "h_out=h", "--state", "c_out=c")
        self.assertEqual(self.run_model(path, {"x": np.ones((4, 1, 3), "f4")})["y"].shape, (4, 1, 1, 4))
        grows = model([node("Concat", ["past", "new"], ["present"], axis=0)], [value("past", FLOAT, ["n", 2]), value("new", FLOAT, [1, 2])],
                      [value("present", FLOAT, None)])
        self.convert("no.sinter", self.save("grows.onnx", grows), "--dim", "n=0..6", "--state", "present=past", code=3,
                     words=("the length of 'past' is given before each run",))

    def test_integers(self):
        """Samples of several lengths calibrate; the measures leave padding out."""
        folder = self.path("samples")
        os.makedirs(folder)
        r = np.random.default_rng(6)
        for k in range(24):
            cli.save_npz(os.path.join(folder, f"{k:02}.npz"), self.inputs(r, 2, 1 + 5 * k % 24))
        path, report = self.convert("int8.sinter", self.onnx, *self.flags, "--quantize", "int8", "--calibrate", folder, "--force-int8")
        self.assertGreater(report["quantized"]["outputs"][0]["sqnr_db"], 20)
        self.assertGreater(report["quantized"]["integer_steps"], 2)
        exact, _ = self.convert("float.sinter", self.onnx, *self.flags)
        for seq in (1, 9, 24):
            inputs = self.inputs(r, 2, seq)
            wanted, found = self.run_model(exact, inputs)["y"], self.run_model(path, inputs)["y"]
            self.assertEqual(found.shape, wanted.shape)
            self.assertLess(np.sum((wanted - found) ** 2), np.sum(wanted ** 2) / 30)
            for byte in (0xFF, 0x7F):
                np.testing.assert_array_equal(self.run_poisoned(path, inputs, {"y": wanted}, byte)["y"], found)
        cli.save_npz(os.path.join(folder, "99.npz"), self.inputs(r, 2, 25))
        self.convert("no.sinter", self.onnx, *self.flags, "--quantize", "int8", "--calibrate", folder, code=5,
                     words=("use --dim seq=1..25", "input 'x' is float32[2,25,16]", "float32[2,1..24,16]"))
        self.convert("weights.sinter", self.onnx, *self.flags, "--quantize", "int8w")

    def test_operations_that_need_a_size(self):
        """The node, the operation, the reason and the remedy."""
        conv = model([node("Conv", ["x", "w"], ["y"], name="conv1")], [value("x", FLOAT, [1, 3, "time"])], [value("y", FLOAT, None)],
                     weights(w=(4, 3, 3)))
        self.convert("no.sinter", self.save("conv.onnx", conv), "--dim", "time=8..64", code=3,
                     words=("conv1", "(Conv)", "is bounded (at most 64)", "give one size with --dim time=N, or several with --shapes"))


def main():
    global POISONED
    at = sys.argv.index("--poisoned")
    POISONED = sys.argv[at + 1]
    del sys.argv[at:at + 2]
    run_cases()


if __name__ == "__main__":
    main()
