#!/usr/bin/env python3
"""sinter repair as people and scripts call it: what is written and what is not, external data, damaged files, exit codes."""
import glob
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
import pinned  # noqa: E402

pinned.require("numpy", "onnx")
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import sinter_cli as cli  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

SINTER = None
DIGITS = os.path.join(cli.REPO, "examples", "digits", "digits.onnx")


def contents(path):
    with open(path, "rb") as f:
        return f.read()


def value(name, kind=TensorProto.FLOAT, shape=(2, 3)):
    return helper.make_tensor_value_info(name, kind, list(shape))


def mixed(**kw):
    """x float16 + c float32, which several nodes read."""
    nodes = [helper.make_node("Add", ["x", "c"], ["s"], "add"), helper.make_node("Mul", ["s", "c"], ["y"], "mul")]
    graph = helper.make_graph(nodes, "g", [value("x", TensorProto.FLOAT16, kw.get("shape", (2, 3)))], [value("y", shape=kw.get("shape", (2, 3)))],
                              [numpy_helper.from_array(np.full(3, 0.1, np.float32), "c")], doc_string="about the graph",
                              value_info=[value("s", TensorProto.FLOAT16, kw.get("shape", (2, 3)))])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="me")
    helper.set_model_props(model, {"author": "someone"})
    return model


class Repair(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="repair-")
        self.addCleanup(self.folder.cleanup)
        self.model, self.out = self.path("m.onnx"), self.path("out.onnx")

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def put(self, model, **kw):
        onnx.save(model, self.model, **kw)

    def expect(self, code, *args, words=(), **kw):
        r = cli.call(SINTER, "repair", *args, timeout=60, **kw)
        self.assertEqual(r.code, code, r.why())
        for word in words:
            self.assertIn(word, r.out + r.err)
        return r

    def nothing_else(self, *names):
        self.assertEqual(sorted(os.listdir(self.folder.name)), sorted(names))

    def test_what_is_edited_and_what_is_kept(self):
        self.put(mixed())
        # A field that no version of ONNX has survives.
        with open(self.model, "ab") as f:
            f.write(b"\x9a\x3f\x03abc")
        r = self.expect(0, self.model, "-o", self.out, "--diff", words=("promote.float", "Cast inserted", "@ graph", "- value s float16",
                                                                       "+ value s float32", "add"))
        self.assertIn("Cast(x, to=float32)", r.out)
        fixed = onnx.load(self.out)
        onnx.checker.check_model(fixed, full_check=True)
        self.assertEqual([n.op_type for n in fixed.graph.node], ["Cast", "Add", "Mul"])
        self.assertEqual((fixed.producer_name, fixed.graph.doc_string, fixed.metadata_props[0].value), ("me", "about the graph", "someone"))
        self.assertIn(b"\x9a\x3f\x03abc", contents(self.out))
        r = self.expect(0, self.model, "-o", self.out, "--json")
        answer = json.loads(r.out)
        self.assertTrue(answer["changed"])
        self.assertEqual({e["edit"] for e in answer["edits"]}, {"Cast inserted", "declaration corrected"})
        self.assertTrue(all(e["rule"] and e["reason"] for e in answer["edits"]))
        self.assertEqual(self.expect(0, self.model, "-o", self.out, "--quiet").out, "")

    def test_a_model_that_is_fine_is_copied(self):
        self.expect(0, DIGITS, "-o", self.out, words=("nothing to repair", "is a copy"))
        self.assertEqual(contents(DIGITS), contents(self.out))

    def test_open_dimensions_stay_open(self):
        self.put(mixed(shape=("batch", 3)))
        self.expect(0, self.model, "-o", self.out)
        self.assertEqual(onnx.load(self.out).graph.input[0].type.tensor_type.shape.dim[0].dim_param, "batch")

    def test_external_data(self):
        model = mixed()
        model.graph.initializer.append(numpy_helper.from_array(np.zeros((64, 3), np.float16), "w"))
        model.graph.node.append(helper.make_node("MatMul", ["w", "t"], ["z"], "product"))
        model.graph.node.insert(2, helper.make_node("Transpose", ["y"], ["t"], "turn"))
        model.graph.output.append(value("z", shape=(64, 2)))
        self.put(model, save_as_external_data=True, location="weights.bin", size_threshold=100)
        data = contents(self.path("weights.bin"))
        self.expect(0, self.model, "-o", self.out)
        onnx.checker.check_model(self.out, full_check=True)
        self.nothing_else("m.onnx", "out.onnx", "weights.bin")
        os.mkdir(self.path("other"))
        other = self.path("other/out.onnx")
        self.expect(2, self.model, "-o", other, words=("weights.bin", "--external-data"))
        self.assertEqual(os.listdir(self.path("other")), [])
        self.expect(0, self.model, "-o", other, "--external-data")
        self.assertEqual(contents(self.path("other/weights.bin")), data)
        self.assertEqual(contents(other), contents(self.out))
        self.expect(2, self.model, "-o", other, "--external-data", words=("exists already",))

    def test_refusals_leave_no_file(self):
        text = helper.make_graph([helper.make_node("Add", ["x", "t"], ["y"], "sum")], "g",
                                 [value("x"), value("t", TensorProto.STRING)], [value("y")])
        self.put(helper.make_model(text, opset_imports=[helper.make_opsetid("", 17)]))
        r = self.expect(3, self.model, "-o", self.out, "--json", words=("sum", "string"))
        self.assertTrue(all(d["remedy"] for d in json.loads(r.out)["diagnostics"] if d["severity"] == "refused"))
        self.nothing_else("m.onnx")

    def test_wrong_use(self):
        self.put(mixed())
        self.expect(2, self.model)
        self.expect(2, self.model, "-o", self.model, words=("overwritten",))
        self.expect(6, self.model, "-o", self.path("none/out.onnx"))
        self.expect(6, self.path("absent.onnx"), "-o", self.out)
        self.expect(6, self.folder.name, "-o", self.out)
        self.expect(3, self.model, "-o", self.out, "--shape", "nothing=1,2", words=("no input of this name",))
        self.expect(2, self.model, "-o", self.out, "--fix")
        self.nothing_else("m.onnx")

    def test_a_full_disk(self):
        self.put(mixed())
        with open(self.path("zeros"), "wb"):
            pass

        def full():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

        r = subprocess.run([SINTER, "repair", self.model, "-o", self.out], capture_output=True, timeout=60,
                           preexec_fn=full, restore_signals=False)
        self.assertEqual(r.returncode, 6, r.stderr)
        self.nothing_else("m.onnx", "zeros")

    def test_damaged_files(self):
        """Every truncation and many changed bytes: an answer, never a crash, and no file behind a refusal."""
        self.put(mixed())
        whole, random_bytes = contents(self.model), random.Random(41)
        damaged = [whole[:n] for n in range(0, len(whole), 7)]
        for _ in range(60):
            changed = bytearray(whole)
            for _ in range(random_bytes.randrange(1, 4)):
                changed[random_bytes.randrange(len(whole))] = random_bytes.randrange(256)
            damaged.append(bytes(changed))
        for data in damaged:
            with open(self.model, "wb") as f:
                f.write(data)
            r = cli.call(SINTER, "repair", self.model, "-o", self.out, timeout=60)
            self.assertFalse(r.crashed, r.why())
            self.assertIn(r.code, (0, 3, 4), r.why())
            self.assertEqual(os.path.exists(self.out), r.code == 0)
            self.assertEqual(glob.glob(self.path("*partial*")), [])
            if r.code == 0:
                os.remove(self.out)


if __name__ == "__main__":
    SINTER, argv = cli.program_and_argv()
    unittest.main(argv=argv)
