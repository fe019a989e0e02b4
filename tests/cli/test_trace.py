#!/usr/bin/env python3
"""bench --trace: the events of a trace, its limit, and what is left of one that cannot be written."""
import json
import os
import resource
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
import pinned  # noqa: E402

pinned.require("numpy", "onnx")
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import sinter_cli as cli  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from program_case import ProgramCase, run_cases  # noqa: E402

DIGITS = os.path.join(cli.REPO, "examples", "digits", "digits.onnx")


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, list(shape))


def model_of(nodes, inputs, outputs):
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


class Trace(ProgramCase):
    def setUp(self):
        for name in os.listdir(self.scratch.name):
            os.remove(self.path(name))
        self.out = self.path("m.sinter")

    def convert(self, model, *flags):
        self.call("convert", model, "-o", self.out, *flags, "--quiet")

    def trace(self, model, *flags):
        said = json.loads(self.call("bench", model, "--seconds", "0.01", "--trace", self.path("t.json"), *flags, "--json").out)
        with open(self.path("t.json"), encoding="utf-8") as f:
            return said["trace"], json.load(f)

    def test_events(self):
        self.convert(DIGITS)
        said, trace = self.trace(self.out, "--threads", "2")
        events = trace["traceEvents"]
        for event in events:
            self.assertIn(event["ph"], "XM")
            self.assertEqual((event["pid"], event["tid"]), (1, 1))
        runs = [e for e in events if e.get("cat") == "run"]
        steps = [e for e in events if e.get("cat") == "step"]
        self.assertEqual((len(runs), len(steps)), (said["runs"], said["steps"]))
        self.assertGreaterEqual(len(runs), 5)
        self.assertEqual(len(steps) % len(runs), 0)
        for e in steps:
            self.assertTrue(e["ts"] >= 0 and e["dur"] >= 0)
            around = [r for r in runs if r["ts"] <= e["ts"] and e["ts"] + e["dur"] <= r["ts"] + r["dur"] + 1e-3]
            self.assertEqual(len(around), 1)
            self.assertEqual(set(e["args"]), {"step", "name", "inputs", "outputs", "bytes", "backend", "threads"})
            self.assertGreater(e["args"]["bytes"], 0)
            self.assertEqual(e["args"]["threads"], 2)
        self.assertIn("float32[1,10]", {t for e in steps for t in e["args"]["outputs"]})
        self.assertEqual(trace["otherData"], {"model": self.out, "threads": 2, "left_out": 0})
        self.call("bench", self.out, "--seconds", "0", "--trace", self.path("t.json"), words=("trace ",))

    def test_bodies_are_within_their_loop(self):
        body = helper.make_graph([helper.make_node("Identity", ["going"], ["goes_on"]), helper.make_node("Add", ["in", "one"], ["out"])],
                                 "body", [value("i", [], TensorProto.INT64), value("going", [], TensorProto.BOOL), value("in", [1])],
                                 [value("goes_on", [], TensorProto.BOOL), value("out", [1])], [numpy_helper.from_array(np.ones(1, np.float32), "one")])
        loop = model_of([helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)], [value("x", [1]), value("n", [], TensorProto.INT64)],
                        [value("y", [1])])
        onnx.save(loop, self.path("loop.onnx"))
        self.convert(self.path("loop.onnx"), "--const", "n=30000")
        said, trace = self.trace(self.out)
        steps = [e for e in trace["traceEvents"] if e.get("cat") == "step"]
        loops = [e for e in steps if e["name"].startswith("Loop")]
        self.assertTrue(loops and len(steps) > len(loops))
        first = loops[0]
        inner = [e for e in steps if e["args"]["step"].split(".")[0] != first["args"]["step"].split(".")[0]]
        self.assertTrue(all(any(a["ts"] <= e["ts"] + 1e-3 and e["ts"] + e["dur"] <= a["ts"] + a["dur"] + 1e-3 for a in loops)
                            for e in inner[:100]))
        # A trace has a limit, and states what it lacks.
        self.assertLessEqual(len(steps), 100000)
        self.assertEqual(said["left_out"], trace["otherData"]["left_out"])

    def test_faults(self):
        self.convert(DIGITS)
        self.call("bench", self.out, "--trace", self.out, code=2)
        self.call("bench", self.out, "--trace", self.path("none/t.json"), code=6)
        place = self.path("t.json")

        def small():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        r = subprocess.run([self.sinter, "bench", self.out, "--seconds", "0.01", "--trace", place], preexec_fn=small, capture_output=True, text=True, check=False)
        self.assertEqual(r.returncode, 6, r.stderr)
        self.assertEqual(sorted(os.listdir(self.scratch.name)), ["m.sinter"])


if __name__ == "__main__":
    run_cases()
