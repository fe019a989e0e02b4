#!/usr/bin/env python3
"""The command `sinter simplify`: what stays in a model, flags, and files.

    test_simplify.py [--sinter PROGRAM]
"""
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
import pinned  # noqa: E402

pinned.require()
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import sinter_cli as cli  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402

SINTER = None
FLOAT = onnx.TensorProto.FLOAT


def network(batch=1, weights_seed=3):
    """A convolution, its batch normalization, a Relu, and a Reshape whose shape is computed."""
    rng = np.random.default_rng(weights_seed)
    constants = {"w": rng.standard_normal((8, 3, 3, 3)), "scale": rng.random(8) + 0.5, "b": rng.standard_normal(8),
                 "mean": rng.standard_normal(8), "var": rng.random(8) + 0.5}
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
             helper.make_node("BatchNormalization", ["c", "scale", "b", "mean", "var"], ["n"], name="norm"),
             helper.make_node("Relu", ["n"], ["r"], name="relu", doc_string="keeps what is positive"),
             helper.make_node("Shape", ["r"], ["s"]),
             helper.make_node("Slice", ["s", "zero", "one"], ["first"]),
             helper.make_node("Concat", ["first", "rest"], ["to"], axis=0),
             helper.make_node("Reshape", ["r", "to"], ["y"], name="flat"),
             helper.make_node("Neg", ["y"], ["unread"])]
    initializers = [numpy_helper.from_array(v.astype(np.float32), k) for k, v in constants.items()]
    initializers += [numpy_helper.from_array(np.array([v], np.int64), k) for k, v in (("zero", 0), ("one", 1), ("rest", -1))]
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", FLOAT, [batch, 3, 6, 6])],
                              [helper.make_tensor_value_info("y", FLOAT, [batch, 288])], initializers)
    m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8, domain="test.example",
                          model_version=7, doc_string="a test")
    m.metadata_props.add(key="author", value="nobody")
    return m


def contents(path):
    with open(path, "rb") as f:
        return f.read()


class Simplify(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="simplify-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.model = self.path("net.onnx")
        onnx.save(network(), self.model)

    def path(self, name):
        return os.path.join(self.folder, name)

    def simplify(self, *args, code=0, words=()):
        r = cli.call(SINTER, "simplify", *args)
        self.assertEqual(r.code, code, r.why())
        for word in words:
            self.assertIn(word, r.err)
        return r

    def refuses(self, code, words, *args):
        before = sorted(os.listdir(self.folder))
        self.simplify(*args, code=code, words=words)
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_what_stays(self):
        out = self.path("out.onnx")
        self.simplify(self.model, "-o", out)
        m = onnx.load(out)
        onnx.checker.check_model(m, full_check=True)
        self.assertEqual([n.op_type for n in m.graph.node], ["Conv", "Relu", "Reshape"])
        self.assertEqual([n.name for n in m.graph.node], ["conv", "relu", "flat"])
        self.assertEqual(m.graph.node[1].doc_string, "keeps what is positive")
        self.assertEqual([list(n.output) for n in m.graph.node], [["n"], ["r"], ["y"]])
        self.assertEqual((m.domain, m.model_version, m.doc_string, m.graph.name), ("test.example", 7, "a test", "net"))
        self.assertEqual({p.key: p.value for p in m.metadata_props}, {"author": "nobody"})
        self.assertEqual(m.opset_import[0].version, 18)
        self.assertEqual({v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in m.graph.value_info}["r"],
                         [1, 8, 6, 6])

    def test_quantized_models_state_the_same(self):
        out = self.path("int8w.onnx")
        r = cli.call(SINTER, "quantize", self.model, "-o", out, "--quantize", "int8w", "--opset", "21")
        self.assertEqual(r.code, 0, r.why())
        m = onnx.load(out)
        self.assertEqual((m.domain, m.model_version, m.doc_string, m.graph.name), ("test.example", 7, "a test", "net"))
        self.assertEqual({p.key: p.value for p in m.metadata_props}, {"author": "nobody"})

    def test_open_dimension(self):
        onnx.save(network(batch="N"), self.model)
        self.refuses(3, ["'x'", "'N'", "--dim N=N"], self.model, "-o", self.path("out.onnx"))
        self.simplify(self.model, "-o", self.path("out.onnx"), "--dim", "N=2")
        m = onnx.load(self.path("out.onnx"))
        self.assertEqual([d.dim_value for d in m.graph.output[0].type.tensor_type.shape.dim], [2, 288])

    def test_external_data(self):
        out, data = self.path("out.onnx"), self.path("out.onnx.data")
        big = network()
        big.graph.node[0].input[1] = "wide"
        big.graph.initializer.append(numpy_helper.from_array(np.ones((8, 3, 5, 5), np.float32), "wide"))
        big.graph.node[0].attribute[0].ints[:] = [2, 2, 2, 2]
        onnx.save(big, self.model)
        self.simplify(self.model, "-o", out, "--external-data")
        self.assertEqual(os.path.getsize(data), 8 * 3 * 5 * 5 * 4)
        onnx.checker.check_model(out, full_check=True)
        # The model's own data are not replaced.
        before = contents(data)
        self.simplify(out, "-o", self.path("out.onnx"), code=2)
        os.mkdir(self.path("sub"))
        self.simplify(out, "-o", self.path("sub/again.onnx"), "--external-data")
        self.assertEqual(contents(data), before)
        os.rename(out, self.path("other.onnx"))
        self.simplify(self.path("other.onnx"), "-o", out, "--external-data", code=2, words=["external data"])
        self.assertEqual(contents(data), before)

    def test_wrong_use(self):
        out = self.path("out.onnx")
        self.refuses(2, ["-o"], self.model)
        self.refuses(2, [], self.model, "-o", self.model)
        self.refuses(2, ["--opset"], self.model, "-o", out, "--opset", "9")
        self.refuses(2, ["--sahpe"], self.model, "-o", out, "--sahpe", "x=1")
        self.refuses(3, ["z"], self.model, "-o", out, "--shape", "z=1,2")
        self.refuses(6, ["nothing.onnx"], self.path("nothing.onnx"), "-o", out)
        self.refuses(6, ["no"], self.model, "-o", self.path("no/out.onnx"))
        with open(self.path("bad.onnx"), "wb") as f:
            f.write(contents(self.model)[:100])
        self.refuses(3, [], self.path("bad.onnx"), "-o", out)

    def test_refused_operation(self):
        graph = helper.make_graph([helper.make_node("NonZero", ["x"], ["y"], name="where")], "g",
                                  [helper.make_tensor_value_info("x", FLOAT, [3, 4])],
                                  [helper.make_tensor_value_info("y", onnx.TensorProto.INT64, [2, None])])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), self.model)
        self.refuses(3, ["'where'", "depends on data"], self.model, "-o", self.path("out.onnx"))

    def test_full_disk(self):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))

        with open(self.path("out.onnx"), "wb") as f:
            f.write(b"before")
        r = subprocess.run([SINTER, "simplify", self.model, "-o", self.path("out.onnx")], preexec_fn=limit,
                           capture_output=True, text=True)
        self.assertEqual(r.returncode, 6, r.stderr)
        self.assertIn("make room", r.stderr)
        self.assertEqual(sorted(os.listdir(self.folder)), ["net.onnx", "out.onnx"])
        self.assertEqual(contents(self.path("out.onnx")), b"before")

    def test_json(self):
        r = self.simplify(self.model, "-o", self.path("out.onnx"), "--json")
        facts = json.loads(r.out)
        self.assertEqual((facts["nodes"], facts["opset"], facts["external_data"]), ([8, 3], 18, None))
        self.assertEqual(self.simplify(self.model, "-o", self.path("out.onnx"), "--quiet").out, "")


if __name__ == "__main__":
    SINTER, argv = cli.program_and_argv()
    unittest.main(argv=argv)
