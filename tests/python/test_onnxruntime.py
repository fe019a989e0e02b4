"""sinter_runtime.onnxruntime: the API of onnxruntime, beside the real one where that is installed."""
import ctypes
import importlib.util
import logging
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import models  # noqa: E402

CACHE = tempfile.TemporaryDirectory(prefix="ort-cache-")
os.environ["SINTER_CACHE_DIR"] = CACHE.name
os.environ.pop("SINTER_ONNXRUNTIME_FALLBACK", None)

import sinter_runtime.onnxruntime as ort  # noqa: E402
from sinter_runtime.onnxruntime import _background, _real  # noqa: E402
from sinter_runtime.onnxruntime.capi import onnxruntime_pybind11_state as state  # noqa: E402

REAL = importlib.util.find_spec("onnxruntime") is not None
if REAL:
    import onnxruntime as real
    real.set_default_logger_severity(4)

logging.getLogger("sinter_runtime.onnxruntime").addHandler(logging.NullHandler())
value = models.value
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def add_bias():
    """y = x + b, for any number of rows; b may be overridden."""
    return models.model_of([helper.make_node("Add", ["x", "b"], ["y"])], [value("x", ["n", 3]), value("b", [3])],
                           [value("y", ["n", 3])], [numpy_helper.from_array(np.ones(3, np.float32), "b")])


def tiles():
    """y = x, tiled: the shape of y follows from the values of `repeats`."""
    return models.model_of([helper.make_node("Tile", ["x", "repeats"], ["y"])],
                           [value("x", ["n"]), value("repeats", [1], TensorProto.INT64)], [value("y", ["m"])])


def seq_model():
    return models.model_of([helper.make_node("Softmax", ["x"], ["y"], axis=-1)], [value("x", ["batch", "seq"])], [value("y", ["batch", "seq"])])


def session(model, **options):
    return ort.InferenceSession(model.SerializeToString(), **options)


def cached():
    return sorted(Path(os.environ["SINTER_CACHE_DIR"]).glob("onnxruntime/*.sinter"))


class Beside(unittest.TestCase):
    """The same calls on both give the same arrays, or exceptions of the same name."""

    def outcome(self, module, call):
        try:
            return call(module)
        except Exception as error:
            return type(error).__name__

    def check(self, call):
        ours = self.outcome(ort, call)
        if REAL:
            theirs = self.outcome(real, call)
            if isinstance(theirs, list) and theirs and isinstance(theirs[0], np.ndarray):
                self.assertEqual(len(ours), len(theirs), ours)
                for a, b in zip(ours, theirs):
                    self.assertEqual((a.dtype, a.shape), (b.dtype, b.shape))
                    np.testing.assert_allclose(a, b, rtol=1e-6)
            else:
                self.assertEqual(ours, theirs)
        return ours

    def test_feeds(self):
        data = add_bias().SerializeToString()
        feeds = {
            "array": {"x": X}, "list": {"x": X.tolist()}, "list of int": {"x": [[1, 2, 3]]}, "empty": {"x": X[:0]},
            "Fortran": {"x": np.asfortranarray(X)}, "overridden": {"x": X, "b": np.full(3, 7, np.float32)},
            "rank": {"x": X[0]}, "size": {"x": np.zeros((2, 4), np.float32)}, "float64": {"x": X.astype(np.float64)},
            "name": {"x": X, "q": X}, "missing": {}, "None": {"x": None}, "scalar": {"x": 3.0}, "tuple": {"x": tuple(X)},
            "text": {"x": "abc"}, "ragged": {"x": [[1, 2], [3]]}, "objects": {"x": np.array([[object()]], object)},
            "overridden size": {"x": X, "b": np.full(4, 7, np.float32)}}
        for name, feed in feeds.items():
            with self.subTest(name):
                self.check(lambda m: m.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, feed))
        for names in (["y"], ["y", "y"], [], "y", ["z"]):
            with self.subTest(names):
                self.check(lambda m: m.InferenceSession(data, providers=["CPUExecutionProvider"]).run(names, {"x": X}))

    def test_messages_name_types_and_inputs(self):
        with self.assertRaisesRegex(state.InvalidArgument, r"Unexpected input data type. Actual: \(tensor\(double\)\) , expected: \(tensor\(float\)\)"):
            session(add_bias()).run(None, {"x": X.astype(np.float64)})
        with self.assertRaisesRegex(state.InvalidArgument, "Got invalid dimensions for input: x, index 1: got 4, expected 3"):
            session(add_bias()).run(None, {"x": np.zeros((2, 4), np.float32)})
        self.assertEqual(state.InvalidArgument.__module__, "onnxruntime.capi.onnxruntime_pybind11_state")

    def test_files(self):
        Path("junk.onnx").write_bytes(b"junkjunk")
        for model in ("/does-not-exist.onnx", "junk.onnx", b"junk", b"", 3, "/tmp"):
            with self.subTest(model):
                self.check(lambda m: m.InferenceSession(model, providers=["CPUExecutionProvider"]))

    def test_facts(self):
        model = add_bias()
        model.producer_name, model.model_version, model.domain, model.doc_string = "tests", 3, "org.example", "adds"
        model.graph.doc_string = "a graph"
        helper.set_model_props(model, {"classes": "a,b"})

        def facts(m):
            s = m.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
            meta = s.get_modelmeta()
            ports = [[(a.name, a.type, a.shape) for a in side()] for side in (s.get_inputs, s.get_outputs, s.get_overridable_initializers)]
            return repr([ports, meta.producer_name, meta.version, meta.custom_metadata_map, meta.graph_name, meta.domain, meta.description,
                         meta.graph_description, s.get_providers()])

        self.assertIn("['n', 3]", self.check(facts))
        open_dims = models.model_of([helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0)], [value("x", [None, ""])], [value("y", [])])
        self.check(lambda m: repr([a.shape for a in m.InferenceSession(open_dims.SerializeToString()).get_inputs()]))
        self.check(lambda m: m.InferenceSession(open_dims.SerializeToString()).run(None, {"x": X}))

    def test_options(self):
        o = ort.SessionOptions()
        for name, wrong in (("intra_op_num_threads", "a"), ("graph_optimization_level", 3), ("nothing", 1)):
            with self.assertRaises((TypeError, AttributeError)):
                setattr(o, name, wrong)
        o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        o.intra_op_num_threads = 2
        o.add_session_config_entry("session.x", "1")
        self.assertEqual(o.get_session_config_entry("session.x"), "1")
        o.add_free_dimension_override_by_name("n", 2)
        o.execution_mode = ort.ExecutionMode.ORT_PARALLEL
        with self.assertLogs("sinter_runtime.onnxruntime", logging.WARNING) as said:
            s = session(add_bias(), sess_options=o)
            session(add_bias(), sess_options=o)
        self.assertEqual(len([line for line in said.output if "execution_mode" in line]), 1)
        self.assertEqual(s.get_inputs()[0].shape, [2, 3])
        np.testing.assert_array_equal(s.run(None, {"x": X})[0], X + 1)
        with self.assertRaises(state.InvalidArgument):
            s.run(None, {"x": X[:1]})
        o = ort.SessionOptions()
        o.add_initializer("b", ort.OrtValue.ortvalue_from_numpy(np.full(3, 5, np.float32)))
        np.testing.assert_array_equal(session(add_bias(), sess_options=o).run(None, {"x": X})[0], X + 5)
        stop = ort.RunOptions()
        stop.terminate = True
        with self.assertRaises(state.Fail):
            s.run(None, {"x": X}, stop)
        with self.assertWarns(UserWarning):
            session(add_bias(), providers=["CUDAExecutionProvider", "CPUExecutionProvider"])

    def test_binding(self):
        def bound(m):
            s = m.InferenceSession(add_bias().SerializeToString(), providers=["CPUExecutionProvider"])
            out, given = np.zeros((2, 3), np.float32), X.copy()
            b = s.io_binding()
            b.bind_input("x", "cpu", 0, np.float32, [2, 3], given.ctypes.data)
            b.bind_output("y", "cpu", 0, np.float32, [2, 3], out.ctypes.data)
            s.run_with_iobinding(b)
            given += 1
            s.run_with_iobinding(b)
            c = s.io_binding()
            c.bind_cpu_input("x", X)
            c.bind_output("y")
            s.run_with_iobinding(c)
            v = m.OrtValue.ortvalue_from_numpy(X)
            results = [out, *c.copy_outputs_to_cpu(), c.get_outputs()[0].numpy(), s.run_with_ort_values(["y"], {"x": v})[0].numpy()]
            d = s.io_binding()
            d.bind_ortvalue_input("x", v)
            d.bind_ortvalue_output("y", m.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32))
            s.run_with_iobinding(d)
            return [*results, d.get_outputs()[0].numpy()]

        self.check(bound)
        for wrong in (lambda b: b.bind_output("nope"), lambda b: b.bind_cpu_input("x", X.tolist()), lambda b: b.bind_cpu_input("x", X),
                      lambda b: (b.bind_cpu_input("x", X.astype(np.float64)), b.bind_output("y"))):
            def call(m):
                s = m.InferenceSession(add_bias().SerializeToString(), providers=["CPUExecutionProvider"])
                b = s.io_binding()
                wrong(b)
                s.run_with_iobinding(b)
            self.assertEqual(self.check(call), "RuntimeError")
        self.check(lambda m: repr([(v.shape(), v.data_type(), v.element_type(), v.tensor_size_in_bytes(), v.device_name(), v.is_tensor())
                                   for v in [m.OrtValue.ortvalue_from_numpy(X)]]))


class Shapes(unittest.TestCase):
    def test_values_of_inputs_may_decide_shapes(self):
        s = session(tiles())
        for n in (1, 3, 2):
            np.testing.assert_array_equal(s.run(None, {"x": X[0], "repeats": np.array([n])})[0], np.tile(X[0], n))

    def test_every_shape(self):
        s = session(seq_model())
        for _ in range(2):
            for n in (1, 5, 3, 8, 2, 7):
                x = np.random.default_rng(n).standard_normal((2, n)).astype(np.float32)
                expected = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
                np.testing.assert_allclose(s.run(None, {"x": x})[0], expected, rtol=1e-5)
            settle()

    def test_ranges_on_request(self):
        o = ort.SessionOptions()
        o.add_session_config_entry("sinter.dim.seq", "1..16")
        s = session(seq_model(), sess_options=o)
        s.run(None, {"x": np.ones((2, 3), np.float32)})
        for n in (4, 16, 1):
            np.testing.assert_allclose(s.run(None, {"x": np.ones((2, n), np.float32)})[0], np.full((2, n), 1 / n), rtol=1e-5)
        self.assertEqual(len(s._engine._kept), 0)  # the file with the range serves all of them
        self.assertEqual(s.run(None, {"x": np.ones((2, 20), np.float32)})[0].shape, (2, 20))

    def test_few_are_kept(self):
        o = ort.SessionOptions()
        o.add_session_config_entry("sinter.shapes", "2")
        s = session(add_bias(), sess_options=o)
        for n in (1, 2, 3, 1):
            s.run(None, {"x": np.ones((n, 3), np.float32)})
        self.assertEqual(len(s._engine._kept), 2)

    def test_threads(self):
        s = session(seq_model())
        wrong = []

        def work(seed):
            for n in (3, 4, 5, 3, 4):
                x = np.random.default_rng(seed).standard_normal((1, n)).astype(np.float32)
                y = s.run(None, {"x": x})[0]
                if not np.allclose(y, np.exp(x) / np.exp(x).sum(-1, keepdims=True), rtol=1e-4):
                    wrong.append((seed, n))

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        done = threading.Event()
        got = []
        s.run_async(None, {"x": np.ones((1, 2), np.float32)}, lambda results, data, error: (got.append((results, data, error)), done.set()), 7)
        self.assertTrue(done.wait(30))
        self.assertEqual((got[0][0][0].shape, got[0][1], got[0][2]), ((1, 2), 7, ""))

    def test_a_removed_file(self):
        Path("gone.onnx").write_bytes(add_bias().SerializeToString())
        s = ort.InferenceSession("gone.onnx")
        os.unlink("gone.onnx")
        np.testing.assert_array_equal(s.run(None, {"x": X[:1]})[0], X[:1] + 1)

    def test_refusals(self):
        for fallback in (False, True):
            ort.allow_fallback(fallback)
            try:
                if fallback and REAL:
                    with self.assertLogs("sinter_runtime.onnxruntime", logging.WARNING) as said:
                        y = session(models.refused()).run(None, {"x": np.array(["a", "b"])})[0]
                    self.assertEqual(y.tolist(), ["a", "b"])
                    self.assertIn("StringNormalizer", "".join(said.output))
                else:
                    with self.assertRaisesRegex(state.NotImplemented, "StringNormalizer"):
                        session(models.refused()).run(None, {"x": np.array(["a", "b"])})
            finally:
                ort.allow_fallback(None)


def settle():
    """Waits for the conversions in the background."""
    end = time.monotonic() + 60
    while (_background._running or _background._jobs) and time.monotonic() < end:
        time.sleep(0.01)


RUN = """
import sys, numpy as np, sinter_runtime.onnxruntime as ort
ort.install()
import onnxruntime
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument
assert onnxruntime is ort
y = onnxruntime.InferenceSession(sys.argv[1]).run(None, {"x": np.ones((2, 3), np.float32)})[0]
assert (y == 2).all()
"""


class Cache(unittest.TestCase):
    def setUp(self):
        self.before = os.environ["SINTER_CACHE_DIR"]
        self.folder = tempfile.mkdtemp(prefix="cache-", dir=CACHE.name)
        os.environ["SINTER_CACHE_DIR"] = self.folder

    def tearDown(self):
        os.environ["SINTER_CACHE_DIR"] = self.before

    def check(self):
        np.testing.assert_array_equal(session(add_bias()).run(None, {"x": X})[0], X + 1)

    def test_it_is_used(self):
        self.check()
        entry, = cached()
        written = entry.stat().st_ino
        self.check()
        self.assertEqual([entry.stat().st_ino], [path.stat().st_ino for path in cached()])
        self.assertEqual(entry.stat().st_ino, written)

    def test_damaged_entries(self):
        self.check()
        entry, = cached()
        whole = entry.read_bytes()
        for damaged in (b"", whole[:100], whole[:-8] + b"\xff" * 8, b"x" * 5000):
            entry.unlink()
            entry.write_bytes(damaged)
            self.check()
            self.assertEqual(cached()[0].read_bytes(), whole)

    def test_two_processes(self):
        Path("shared.onnx").write_bytes(add_bias().SerializeToString())
        both = [subprocess.Popen([sys.executable, "-c", RUN, "shared.onnx"]) for _ in range(3)]
        self.assertEqual([process.wait(120) for process in both], [0, 0, 0])
        self.assertEqual(len(cached()), 1)
        self.assertEqual(len(list(Path(self.folder, "onnxruntime").iterdir())), 1)

    def test_folders_that_cannot_be_written(self):
        Path(self.folder, "file").write_text("")
        for place in (f"{self.folder}/file/below", "/proc/no-such-folder"):
            os.environ["SINTER_CACHE_DIR"] = place
            with self.assertLogs("sinter_runtime.onnxruntime", logging.WARNING) as said:
                self.check()
                self.check()
            self.assertEqual(len(said.output), 1, said.output)
        os.environ["SINTER_CACHE_DIR"] = "off"
        self.check()

    @unittest.skipIf(os.geteuid() == 0, "root writes to every folder")
    def test_a_read_only_folder(self):
        self.check()
        os.chmod(Path(self.folder, "onnxruntime"), 0o500)
        self.check()

    def test_it_is_trimmed(self):
        os.environ["SINTER_CACHE_BYTES"] = "4000"
        try:
            s = session(add_bias())
            for n in range(1, 8):
                s.run(None, {"x": np.ones((n, 3), np.float32)})
            self.assertLess(sum(path.stat().st_size for path in cached()), 8000)
        finally:
            del os.environ["SINTER_CACHE_BYTES"]


if __name__ == "__main__":
    unittest.main()
