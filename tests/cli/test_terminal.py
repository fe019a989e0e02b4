#!/usr/bin/env python3
"""What the command line shows in a terminal of 100 columns: summaries, help, suggestions.

    test_terminal.py [--sinter PROGRAM] [unittest options]

Works on small models made here; needs numpy and onnx.
"""
import json
import os
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

COLUMNS = 100
SINTER = None


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def save(path, nodes, inputs, outputs, initializers=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="terminal-")
        cls.dir = cls.scratch.name
        # [batch,time,8] x [8,4]: 32 multiply-adds for each row.
        weights = numpy_helper.from_array(np.arange(32, dtype=np.float32).reshape(8, 4) / 32, "w")
        cls.product = cls.path("product.onnx")
        save(cls.product, [helper.make_node("MatMul", ["x", "w"], ["y"], name="project")], [value("x", ["batch", "time", 8])],
             [value("y", ["batch", "time", 4])], [weights])

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.dir, name)

    def sinter(self, *args, code=0):
        r = cli.call(SINTER, *args, timeout=60)
        self.assertEqual(r.code, code, f"{' '.join(map(str, args))}: {r.why()}")
        for line in (r.out + r.err).splitlines():
            if self.dir not in line and not line.lstrip().startswith(('"', "{", "}", "[", "]")):
                self.assertLessEqual(len(line), COLUMNS, line)
        return r

    def words_of(self, text):
        """The lines, with one space between words."""
        return [" ".join(line.split()) for line in text.splitlines()]


class Summary(Case):
    def convert(self, model, *flags):
        return self.sinter("convert", model, "-o", self.path("out.sinter"), "--target", "portable", *flags)

    def test_ports_dimensions_and_work(self):
        r = self.convert(self.product, "--dim", "time=5")
        lines = self.words_of(r.out)
        for line in ("input x float32[1,5,8]", "output y float32[1,5,4]", "target portable",
                     "open dim 'batch' is 1, because the model leaves it open; --dim batch=N sets another size",
                     "open dim 'time' is 5, by --dim",
                     "work 160 multiply-adds in the ONNX graph, 160 in the file: all in float32"):
            self.assertIn(line, lines)
        self.assertLessEqual(len(lines), 15)
        self.assertTrue(lines[-1].startswith("wrote "), lines[-1])
        report = json.loads(self.convert(self.product, "--shape", "x=2,5,8", "--json").out)
        self.assertEqual(report["inputs"], [{"name": "x", "type": "float32", "shape": [2, 5, 8]}])
        self.assertEqual(report["outputs"], [{"name": "y", "type": "float32", "shape": [2, 5, 4]}])
        self.assertEqual([(d["name"], d["size"], d["by"], d["axis"]) for d in report["open_dims"]],
                         [("batch", 2, "--shape", 0), ("time", 5, "--shape", 1)])
        self.assertEqual(report["multiply_adds"], {"onnx": 320, "file": 320, "by_type": {"float32": 320}})

    def test_long_lists_are_cut_with_a_count(self):
        names = [f"a_long_name_of_an_input_of_this_model_{i}" for i in range(9)]
        nodes = [helper.make_node("Relu", [n], ["r" + n]) for n in names]
        save(self.path("many.onnx"), nodes, [value(n, [2]) for n in names], [value("r" + n, [2]) for n in names])
        r = self.convert(self.path("many.onnx"))
        self.assertIn("and 5 more inputs; sinter inspect lists them", self.words_of(r.out))
        self.assertNotIn("work", r.out)  # nothing is multiplied and summed up
        report = json.loads(self.convert(self.path("many.onnx"), "--json").out)
        self.assertEqual([p["name"] for p in report["inputs"]], names)

    def test_types_that_changed(self):
        save(self.path("mixed.onnx"), [helper.make_node("Add", ["a", "b"], ["y"])],
             [value("a", [3]), value("b", [3], TensorProto.FLOAT16)], [value("y", [3])])
        text = " ".join(self.convert(self.path("mixed.onnx")).out.split())
        self.assertIn("types 1 decision: promote.float 1; float16 -> float32 1 (sinter explain FILE NAME", text)

    def test_a_loop_counts_its_body_as_often_as_it_runs(self):
        body = helper.make_graph([helper.make_node("MatMul", ["h", "w"], ["t"]), helper.make_node("Tanh", ["t"], ["n"]),
                                  helper.make_node("Identity", ["c"], ["go"])], "b",
                                 [value("i", [], TensorProto.INT64), value("c", [], TensorProto.BOOL), value("h", [1, 4])],
                                 [value("go", [], TensorProto.BOOL), value("n", [1, 4])])
        save(self.path("loop.onnx"), [helper.make_node("Loop", ["trips", "", "x"], ["y"], name="again", body=body)],
             [value("trips", [], TensorProto.INT64), value("x", [1, 4])], [value("y", [1, 4])],
             [numpy_helper.from_array(np.eye(4, dtype=np.float32), "w")])
        report = json.loads(self.convert(self.path("loop.onnx"), "--max-trips", "again=7", "--json").out)
        self.assertEqual((report["multiply_adds"]["onnx"], report["multiply_adds"]["file"]), (7 * 16, 7 * 16))


def main():
    global SINTER
    SINTER, argv = cli.program_and_argv()
    unittest.main(argv=argv)


if __name__ == "__main__":
    main()
