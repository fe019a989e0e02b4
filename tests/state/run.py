#!/usr/bin/env python3
"""States from the command line: models whose outputs are the next run's inputs, against onnxruntime, whose caller carries them.

    run.py [--sinter PROGRAM] [unittest options]

Builds a recurrent network, a key-value cache written at a position, a line that is shifted, a delay, and a linear attention; needs
numpy, onnx and onnxruntime.
"""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
import pinned  # noqa: E402

pinned.require()
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
import sinter_cli as cli  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from program_case import ProgramCase, run_cases  # noqa: E402

STEPS = 12


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def model_of(nodes, inputs, outputs, initializers=(), opset=18):
    graph = helper.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(a, n) for n, a in initializers])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)],
                              ir_version=10)
    onnx.checker.check_model(model)
    return model


def recurrent(rng):
    """A GRU with a dense layer behind it."""
    weights = [("w", (0.5 * rng.standard_normal((1, 48, 8))).astype(np.float32)),
               ("r", (0.3 * rng.standard_normal((1, 48, 16))).astype(np.float32)),
               ("b", (0.1 * rng.standard_normal((1, 96))).astype(np.float32)),
               ("v", rng.standard_normal((16, 4)).astype(np.float32)), ("last", np.array([1, 16], np.int64))]
    nodes = [helper.make_node("GRU", ["x", "w", "r", "b", "", "h_in"], ["", "h_out"], name="gru", hidden_size=16),
             helper.make_node("Reshape", ["h_out", "last"], ["row"]), helper.make_node("MatMul", ["row", "v"], ["y"], name="dense")]
    return model_of(nodes, [value("x", [1, 1, 8]), value("h_in", [1, 1, 16])], [value("y", [1, 4]), value("h_out", [1, 1, 16])],
                    weights)


def cache(rng):
    """One head of attention over 16 rows of keys and values, written at a position."""
    nodes = [helper.make_node("ScatterND", ["past.key", "at", "x"], ["present.key"]),
             helper.make_node("ScatterND", ["past.value", "at", "x"], ["present.value"]),
             helper.make_node("Transpose", ["present.key"], ["kt"], perm=[1, 0]), helper.make_node("MatMul", ["x", "kt"], ["scores"]),
             helper.make_node("Softmax", ["scores"], ["p"], axis=-1), helper.make_node("MatMul", ["p", "present.value"], ["y"])]
    return model_of(nodes, [value("x", [1, 8]), value("at", [1, 1], TensorProto.INT64), value("past.key", [16, 8]), value("past.value", [16, 8])],
                    [value("y", [1, 8]), value("present.key", [16, 8]), value("present.value", [16, 8])])


def line(rng):
    """The last 20 frames, of which a convolution in time makes a number; and the frame of two runs before."""
    weights = [("taps", rng.standard_normal((20, 4)).astype(np.float32)), ("from", np.array([2], np.int64)),
               ("to", np.array([20], np.int64)), ("axis", np.array([0], np.int64))]
    nodes = [helper.make_node("Slice", ["line", "from", "to", "axis"], ["kept"]),
             helper.make_node("Concat", ["kept", "x"], ["line_out"], axis=0), helper.make_node("Mul", ["line_out", "taps"], ["m"]),
             helper.make_node("ReduceSum", ["m"], ["sum"], keepdims=0), helper.make_node("Identity", ["x"], ["d1_out"]),
             helper.make_node("Identity", ["d1"], ["d2_out"]), helper.make_node("Add", ["sum", "d2"], ["y"])]
    return model_of(nodes, [value("x", [2, 4]), value("line", [20, 4]), value("d1", [2, 4]), value("d2", [2, 4])],
                    [value("y", [2, 4]), value("line_out", [20, 4]), value("d1_out", [2, 4]), value("d2_out", [2, 4])], weights)


def linear(rng):
    """Two heads of linear attention, two tokens a run; decay and rate are computed from these."""
    edges = [(f"c{n}", np.array([n], np.int64)) for n in (0, 2, 4)]
    nodes = [helper.make_node("Slice", ["x", "c0", "c2", "c2"], ["a"]), helper.make_node("Slice", ["x", "c2", "c4", "c2"], ["b"]),
             helper.make_node("Abs", ["a"], ["size"]), helper.make_node("Neg", ["size"], ["decay"]), helper.make_node("Sigmoid", ["b"], ["rate"]),
             helper.make_node("Tanh", ["x"], ["k"]),
             helper.make_node("LinearAttention", ["x", "k", "x", "s_in", "decay", "rate"], ["y", "s_out"], name="attention",
                              domain="com.microsoft", q_num_heads=2, kv_num_heads=2, update_rule="gated_delta")]
    return model_of(nodes, [value("x", [1, 2, 16]), value("s_in", [1, 2, 8, 8])], [value("y", [1, 2, 16]), value("s_out", [1, 2, 8, 8])],
                    edges)


RECURRENT, CACHE = {"h_out": "h_in"}, {"present.key": "past.key", "present.value": "past.value"}
LINE, LINEAR = {"line_out": "line", "d1_out": "d1", "d2_out": "d2"}, {"s_out": "s_in"}


def by_hand(model, states, samples, initial=None, resets=()):
    """onnxruntime's outputs where the caller carries the states."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    shapes = {i.name: ([d.dim_value for d in i.type.tensor_type.shape.dim]) for i in model.graph.input}
    names = [o.name for o in model.graph.output]
    start = {s: (initial or {}).get(s, np.zeros(shapes[s], np.float32)) for s in states.values()}
    now, results = dict(start), []
    for n in range(len(next(iter(samples.values())))):
        if n in resets:
            now = dict(start)
        given = {k: v[n] for k, v in samples.items()}
        out = dict(zip(names, session.run(names, {**given, **now})))
        now = {i: out[o] for o, i in states.items()}
        results.append({k: v for k, v in out.items() if k not in states})
    return results


class States(ProgramCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.rng = np.random.default_rng(7)
        cls.models = {"recurrent": (recurrent(cls.rng), RECURRENT), "cache": (cache(cls.rng), CACHE), "line": (line(cls.rng), LINE),
                      "linear": (linear(cls.rng), LINEAR)}
        for name, (model, _) in cls.models.items():
            onnx.save(model, cls.path(name + ".onnx"))

    def samples(self, name, count=STEPS):
        rng = np.random.default_rng(3)
        shape = {"recurrent": (1, 1, 8), "cache": (1, 8), "line": (2, 4), "linear": (1, 2, 16)}[name]
        samples = {"x": rng.standard_normal((count, *shape)).astype(np.float32)}
        if name == "cache":
            samples["at"] = (np.arange(count) % 16).astype(np.int64).reshape(count, 1, 1)
        return samples

    def stacked(self, name, samples):
        """As --each takes them: an axis of one in front is that of the samples."""
        joined = {k: v.reshape(-1, *v.shape[2:]) if v.shape[1] == 1 else v for k, v in samples.items()}
        cli.save_npz(self.path(name + ".npz"), joined)
        return self.path(name + ".npz")

    def convert(self, name, *flags):
        out = self.path(name + ".sinter")
        states = [f for o, i in self.models[name][1].items() for f in ("--state", f"{o}={i}")]
        r = self.call("convert", self.path(name + ".onnx"), "-o", out, *states, *flags, "--json")
        return out, json.loads(r.out)

    def outputs(self, file, data, *flags):
        out = self.path("out.npz")
        self.call("run", file, "--inputs", data, "--outputs", out, "--each", *flags)
        with np.load(out) as arrays:
            return {k: arrays[k] for k in arrays.files}

    def expect_same(self, got, wanted):
        for n, want in enumerate(wanted):
            for name, array in want.items():
                np.testing.assert_allclose(got[name].reshape(len(wanted), *array.shape)[n], array, rtol=2e-5, atol=2e-5,
                                           err_msg=f"{name}, run {n}")

    def has_emulator(self, file, data):
        """Whether this program was built with the emulated device."""
        r = cli.call(self.sinter, "run", file, "--inputs", data, "--each", "--backend", "cuda-emulated", "--quiet", timeout=120)
        self.assertIn(r.code, (0, 2), r.why())
        return r.code == 0

    def test_runs_as_a_caller_who_carries_the_states(self):
        for name, (model, states) in self.models.items():
            samples = self.samples(name)
            data = self.stacked(name, samples)
            for flags in ((), ("--target", "portable"), ("--target", "cuda", "--backends", "cuda-emulated")):
                file, _ = self.convert(name, *flags)
                backends = ((),) if "cuda" not in flags else (("--backend", "reference"), ("--backend", "cuda-emulated"))
                for here in backends:
                    with self.subTest(name=name, flags=flags, here=here):
                        if "cuda-emulated" in here and not self.has_emulator(file, data):
                            continue
                        self.expect_same(self.outputs(file, data, "--stateful", *here), by_hand(model, states, samples))
                        self.expect_same(self.outputs(file, data, *here), by_hand(model, states, samples, resets=range(STEPS)))

    def test_updates_in_place_where_it_can(self):
        for name, copied in (("recurrent", {"h_in"}), ("cache", set()), ("line", {"d1"}), ("linear", set())):
            for target in ("x86_64", "portable"):
                _, report = self.convert(name, "--target", target)
                self.assertEqual({s["input"] for s in report["states"] if s["copied_bytes"] > 0}, copied, (name, target))
                self.assertNotIn("proposed_states", report)

    def test_shows_states(self):
        file, _ = self.convert("cache")
        facts = json.loads(self.call("inspect", file, "--json").out)
        self.assertEqual([i["name"] for i in facts["inputs"]], ["x", "at"])
        self.assertEqual([o["name"] for o in facts["outputs"]], ["y"])
        self.assertEqual([(s["input"], s["output"], s["bytes"], s["in_place"]) for s in facts["states"]],
                         [("past.key", "present.key", 512, True), ("past.value", "present.value", 512, True)])
        self.assertEqual(facts["state_bytes"], 1024 + 64)
        self.call("inspect", file, words=("state     past.key <- present.key  float32[16,8]  512 bytes, updated in place",))
        self.call("inspect", file, "--memory", words=("bytes of host memory for state",))
        file, _ = self.convert("cache", "--target", "cuda")
        facts = json.loads(self.call("inspect", file, "--json").out)
        self.assertEqual([s["memory"] for s in facts["states"]], ["cuda", "cuda"])
        self.assertEqual([d["backend"] for d in facts["devices"]], ["cuda"])
        self.call("bench", file, "--backend", "reference", "--seconds", "0.01", "--json", words=("state_bytes",))

    def test_begins_with_given_numbers(self):
        model, states = self.models["recurrent"]
        start = np.random.default_rng(1).standard_normal((1, 1, 16)).astype(np.float32)
        np.save(self.path("start.npy"), start)
        file, _ = self.convert("recurrent", "--state-init", f"h_in={self.path('start.npy')}")
        samples = self.samples("recurrent")
        data = self.stacked("recurrent", samples)
        self.expect_same(self.outputs(file, data, "--stateful"), by_hand(model, states, samples, {"h_in": start}))
        self.call("compare", self.path("recurrent.onnx"), file, "--inputs", data, "--each", "--stateful")

    def test_compares_sequences(self):
        for name in self.models:
            file, _ = self.convert(name)
            data = self.stacked(name, self.samples(name))
            for flags in ((), ("--stateful",), ("--stateful", "--per-layer")):
                self.call("compare", self.path(name + ".onnx"), file, "--inputs", data, "--each", *flags)

    def test_proposes_and_adds_all_on_request(self):
        out = self.path("proposed.sinter")
        r = self.call("convert", self.path("recurrent.onnx"), "-o", out, words=("--state h_out=h_in",))
        self.assertEqual([i["name"] for i in json.loads(self.call("inspect", out, "--json").out)["inputs"]], ["x", "h_in"], r.out)
        self.call("convert", self.path("cache.onnx"), "-o", out, "--state", "auto")
        self.assertEqual(len(json.loads(self.call("inspect", out, "--json").out)["states"]), 2)

    def test_quantizes_with_states_of_a_sequence(self):
        model, states = self.models["recurrent"]
        data = self.stacked("recurrent", self.samples("recurrent", 60))
        for flags in ((), ("--sequence", "20"), ("--samples", "30")):
            file, report = self.convert("recurrent", "--quantize", "int8", "--calibrate", data, "--force-int8", *flags)
            self.assertIn("quantized", report)
        self.call("compare", self.path("recurrent.onnx"), file, "--inputs", data, "--each", "--stateful", "--min-sqnr", "15")
        facts = json.loads(self.call("inspect", file, "--json").out)
        self.assertEqual(facts["states"][0]["type"], "float32")

    def test_evaluates_sequences(self):
        """A sum of scores is right where each sequence of two begins at zero, and half of the time where it goes on."""
        sums = model_of([helper.make_node("Add", ["s", "x"], ["s_out"]), helper.make_node("Identity", ["s_out"], ["y"])],
                        [value("x", [1, 2]), value("s", [1, 2])], [value("y", [1, 2]), value("s_out", [1, 2])])
        onnx.save(sums, self.path("sums.onnx"))
        cli.save_npz(self.path("sums.npz"), {"x": np.float32([[5, 0], [0, 1], [0, 1], [0, 1]]), "label": np.int64([0, 0, 1, 1])})
        for flags, accuracy in (((), "50.00 %"), (("--sequence", "2"), "100.00 %")):
            self.call("convert", self.path("sums.onnx"), "-o", self.path("sums.sinter"), "--state", "s_out=s", "--evaluate",
                      self.path("sums.npz"), "--label", "label", *flags, words=(f"accuracy  {accuracy}",))

    def test_binds_what_it_promises(self):
        out = self.path("bindable.sinter")
        self.call("convert", self.path("cache.onnx"), "-o", out, "--state", "auto", "--bindable", "x", "--bindable", "y")
        facts = json.loads(self.call("inspect", out, "--json").out)
        self.assertTrue(all(p["bindable"] for p in facts["inputs"] + facts["outputs"] if p["name"] in "xy"))

    def test_refuses_what_is_not_a_state(self):
        def refused(name, *flags, words):
            self.call("convert", self.path(name + ".onnx"), "-o", self.path("no.sinter"), *flags, code=3, words=words)
            self.assertFalse(os.path.exists(self.path("no.sinter")))

        refused("recurrent", "--state", "h_ou=h_in", words=("no output of this name", "h_out"))
        refused("recurrent", "--state", "h_out=h", words=("no input of this name", "h_in"))
        refused("recurrent", "--state", "y=h_in", words=("'y' is float32[1,4] and 'h_in' is float32[1,1,16]",))
        refused("line", "--state", "d1_out=d1", "--state", "d2_out=d1", words=("already belongs to --state d1_out=d1",))
        refused("line", "--state", "d1_out=d1", "--bindable", "d1", words=("the session keeps it",))
        refused("line", "--bindable", "z", words=("no input or output of this name",))
        np.save(self.path("short.npy"), np.zeros((3,), np.float32))
        refused("recurrent", "--state", "h_out=h_in", "--state-init", f"h_in={self.path('short.npy')}", words=("--state-init h_in",))
        refused("recurrent", "--state-init", f"h_in={self.path('short.npy')}", words=("not the input of a state",))
        growing = model_of([helper.make_node("Concat", ["past", "x"], ["present"], axis=0), helper.make_node("ReduceSum", ["present"], ["y"], keepdims=0)],
                           [value("x", [1, 4]), value("past", [8, 4])], [value("y", []), value("present", [9, 4])])
        onnx.save(growing, self.path("growing.onnx"))
        refused("growing", "--state", "present=past", words=("grows in every run", "ScatterND"))
        digits = os.path.join(cli.REPO, "examples", "digits", "digits.onnx")
        self.call("convert", digits, "-o", self.path("digits.sinter"))
        cli.save_npz(self.path("image.npz"), {"image": np.zeros((1, 1, 8, 8), np.float32)})
        self.call("run", self.path("digits.sinter"), "--inputs", self.path("image.npz"), "--each", "--stateful", code=2,
                  words=("keeps no state",))


if __name__ == "__main__":
    run_cases()
