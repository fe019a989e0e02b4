"""sinter_runtime.onnxruntime: the API of onnxruntime, beside the real one where that is installed."""
import contextlib
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
import warnings
from pathlib import Path

import numpy as np
from onnx import TensorProto, external_data_helper, helper, numpy_helper

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import models  # noqa: E402

CACHE = tempfile.TemporaryDirectory(prefix="ort-cache-")
os.environ["SINTER_CACHE_DIR"] = CACHE.name
os.environ.pop("SINTER_ONNXRUNTIME_FALLBACK", None)

import sinter_runtime.onnxruntime as ort  # noqa: E402
from sinter_runtime.onnxruntime import _background, _cache, _converter, _real  # noqa: E402
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
        for model in ("/does-not-exist.onnx", "junk.onnx", b"junk", b"", 3, None, "/tmp", "a\0b.onnx"):
            with self.subTest(model):
                self.check(lambda m: m.InferenceSession(model, providers=["CPUExecutionProvider"]))

    def test_names_and_bytes(self):
        data = add_bias().SerializeToString()
        folder = Path("models of März – 模型")
        folder.mkdir(exist_ok=True)
        path = folder / "a 'ü' & \"x\" $b.onnx"
        path.write_bytes(data)
        for model in (str(path), path, path.absolute(), data):
            self.assertIsInstance(self.check(lambda m: m.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, {"x": X})), list)
        for model in (bytearray(data), memoryview(data), np.frombuffer(data, np.uint8), data[:-3], os.fsencode(path)):
            self.assertIsInstance(self.check(lambda m: m.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, {"x": X})), str)

    def test_providers(self):
        data, cpu = add_bias().SerializeToString(), "CPUExecutionProvider"
        cuda = ("CUDAExecutionProvider", {"device_id": 0})
        fine = [(None,), ([],), ([cpu],), ((cpu,),), ([(cpu, {})],), ([(cpu, {"a": "b"})],), ([cpu], [{}]), ([cpu], None), (None, [{}]), ({cpu},),
                ({cpu: {}},), (np.array([cpu]),)]
        odd = [([cuda[0]],), ([cuda[0], cpu],), ([cuda, cpu],), ([cpu, cuda],), (["NoSuchProvider"],), ([""],), ([cpu, cpu],), (cpu,), ([3],), ([(cpu,)],),
               ([(cpu, {}, 1)],), ([(cpu, 3)],), ([[cpu, {}]],), ([cpu], [{}, {}]), ([cpu], [3]), ([(cpu, {})], [{}])]

        def made(m, form):
            with warnings.catch_warnings(record=True) as said, contextlib.redirect_stdout(None):
                warnings.simplefilter("always")
                s = m.InferenceSession(data, None, *form)
            return repr([s.get_providers(), s.get_provider_options()]), said

        for form in [*fine, *odd]:
            with self.subTest(form):
                self.check(lambda m: made(m, form)[0])
                self.assertEqual(bool(made(ort, form)[1]), any(form is one for one in odd))
        self.check(lambda m: made(m, (3,)))
        for form in (([cpu],), ((cpu,),), ([(cpu, {})],), ([cpu], [{}]), (None,), ([3],), ([(cpu, 3)],), ([cpu], [{}, {}]), ([cpu], [3]), ([(cpu, {})], [{}]), (3,)):
            with self.subTest(set=form):
                self.check(lambda m: repr(m.InferenceSession(data, providers=[cpu]).set_providers(*form)))

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


@contextlib.contextmanager
def read_only(folder):
    """Makes the folder one that cannot be written; root, who writes to every folder, mounts it."""
    if os.geteuid() != 0:
        folder.chmod(0o500)
    elif subprocess.run(["mount", "--bind", folder, folder], capture_output=True).returncode != 0:
        raise unittest.SkipTest("root writes to every folder, and mounting is not allowed")
    try:
        if os.geteuid() == 0:
            subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
        yield
    finally:
        if os.geteuid() == 0:
            subprocess.run(["umount", folder], check=True)
        else:
            folder.chmod(0o700)


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

    def test_a_read_only_folder(self):
        self.check()
        entry, = cached()
        with read_only(entry.parent):
            self.check()  # from the cache
            with self.assertLogs("sinter_runtime.onnxruntime", logging.WARNING) as said:
                for n in (1, 1, 0):
                    np.testing.assert_array_equal(session(add_bias()).run(None, {"x": X[:n]})[0], X[:n] + 1)
            self.assertEqual(len(said.output), 1, said.output)
            self.assertEqual(list(entry.parent.iterdir()), [entry])
        entry.write_bytes(b"damaged")
        with read_only(entry.parent):
            self.check()

    def test_a_package_that_cannot_be_read(self):
        self.addCleanup(setattr, _cache, "_build", _cache._build)
        _cache._build = lambda: os.listdir("/does-not-exist")
        with self.assertLogs("sinter_runtime.onnxruntime", logging.WARNING) as said:
            self.check()
            self.check()
        self.assertEqual(len(said.output), 1, said.output)
        self.assertEqual(cached(), [])

    def test_it_is_trimmed(self):
        os.environ["SINTER_CACHE_BYTES"] = "4000"
        try:
            s = session(add_bias())
            for n in range(1, 8):
                s.run(None, {"x": np.ones((n, 3), np.float32)})
            settle()  # a file with ranges is written in the background, and others removed
            self.assertLess(sum(path.stat().st_size for path in cached()), 8000)
        finally:
            del os.environ["SINTER_CACHE_BYTES"]

    def entry_of(self, constant):
        """Returns the bytes of the cached file of y = x + constant."""
        model = add_bias()
        model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.full(3, constant, np.float32), "b"))
        session(model).run(None, {"x": X})
        entry, = cached()
        data = entry.read_bytes()
        entry.unlink()
        return data

    def test_foreign_entries(self):
        other = self.entry_of(5)
        renamed = models.model_of([helper.make_node("Neg", ["x"], ["z"])], [value("x", ["n", 3])], [value("z", ["n", 3])])
        session(renamed).run(None, {"x": X})
        entry, = cached()
        of_other_outputs = entry.read_bytes()
        entry.unlink()
        self.check()
        entry, = cached()
        whole = entry.read_bytes()
        later = bytearray(whole)
        later[8:12] = b"\xff\xff\xff\x7f"  # near the magic number is the version of the format
        for foreign in (of_other_outputs, bytes(later)):
            entry.unlink()
            entry.write_bytes(foreign)
            self.check()
            self.assertEqual(cached()[0].read_bytes(), whole)
        self.assertNotEqual(other, whole)

    def test_folders_that_others_can_write(self):
        planted = self.entry_of(5)
        self.check()
        entry, = cached()
        folder = entry.parent
        entry.unlink()
        entry.write_bytes(planted)
        np.testing.assert_array_equal(session(add_bias()).run(None, {"x": X})[0], X + 5)  # a private folder is trusted
        moved = folder.with_name("elsewhere")
        hostile = {"others": lambda: folder.chmod(0o777), "group": lambda: folder.chmod(0o770),
                   "link": lambda: (folder.chmod(0o700), folder.rename(moved), folder.symlink_to(moved))}
        if os.geteuid() == 0:
            hostile["owner"] = lambda: (folder.unlink(), moved.rename(folder), os.chown(folder, 12345, 12345))
        for name, make in hostile.items():
            with self.subTest(name):
                make()
                with self.assertLogs("sinter_runtime.onnxruntime", logging.WARNING) as said:
                    self.check()
                    self.check()
                self.assertEqual(len(said.output), 1, said.output)
                self.assertEqual(entry.read_bytes(), planted)

    def test_a_full_disk(self):
        place = Path(self.folder, "small")
        place.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place], capture_output=True).returncode != 0:
            self.skipTest("mounting is not allowed")
        try:
            os.environ["SINTER_CACHE_DIR"] = str(place)
            weights = np.random.default_rng(1).standard_normal((3, 40000)).astype(np.float32)
            model = models.model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], [value("x", ["n", 3])], [value("y", ["n", 40000])],
                                    [numpy_helper.from_array(weights, "w")])
            with self.assertLogs("sinter_runtime.onnxruntime", logging.WARNING) as said:
                s = session(model)
                for n in (2, 1):
                    np.testing.assert_allclose(s.run(None, {"x": X[:n]})[0], X[:n] @ weights, rtol=1e-4, atol=1e-5)
            self.assertEqual(len(said.output), 1, said.output)
            self.assertEqual(list(Path(place, "onnxruntime").iterdir()), [])
        finally:
            subprocess.run(["umount", place], check=True)

    def test_what_a_killed_process_left(self):
        self.check()
        left = cached()[0].with_suffix(".sinter.123")
        left.write_bytes(b"half")
        session(add_bias()).run(None, {"x": X[:1]})
        self.assertTrue(left.exists())  # it may be written now
        os.utime(left, (0, 0))
        session(add_bias()).run(None, {"x": X[:0]})
        self.assertFalse(left.exists())


class ExternalData(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="external-", dir=CACHE.name))
        model = add_bias()
        external_data_helper.set_external_data(model.graph.initializer[0], "weights.bin", 0, 12)
        model.graph.initializer[0].ClearField("raw_data")
        self.path, self.weights = self.folder / "model.onnx", self.folder / "weights.bin"
        self.path.write_bytes(model.SerializeToString())
        self.weights.write_bytes(np.ones(3, np.float32).tobytes())

    def test_it_is_read(self):
        for constant in (1, 4):  # each has an entry of its own in the cache
            self.weights.write_bytes(np.full(3, constant, np.float32).tobytes())
            for module in [ort, *([real] if REAL else [])]:
                s = module.InferenceSession(str(self.path), providers=["CPUExecutionProvider"])
                np.testing.assert_array_equal(s.run(None, {"x": X})[0], X + constant)

    def test_changed_weights(self):
        s = ort.InferenceSession(str(self.path))
        s.run(None, {"x": X})
        self.weights.write_bytes(np.full(3, 4, np.float32).tobytes() + b"more")
        np.testing.assert_array_equal(s.run(None, {"x": X})[0], X + 1)
        with self.assertRaisesRegex(state.Fail, "weights.bin: the file has changed"):
            s.run(None, {"x": X[:1]})

    def test_missing_weights(self):
        self.weights.unlink()
        with self.assertRaisesRegex(state.Fail, "weights.bin"):
            ort.InferenceSession(str(self.path))

    def test_a_replaced_model(self):
        s = ort.InferenceSession(str(self.path))
        s.run(None, {"x": X})
        self.path.unlink()
        np.testing.assert_array_equal(s.run(None, {"x": X})[0], X + 1)
        with self.assertRaisesRegex(state.Fail, "model.onnx: the file has been replaced"):
            s.run(None, {"x": X[:1]})


FORK = """
import multiprocessing, os, sys, numpy as np, sinter_runtime.onnxruntime as ort
s = ort.InferenceSession(sys.argv[1])
def run(n):
    y = s.run(None, {"x": np.zeros((1, n), np.float32)})[0]
    assert np.allclose(y, 1 / n), y
for n in (3, 4, 5, 6):  # the last ones begin a conversion in the background
    run(n)
children = []
for i in range(4):
    child = os.fork()
    if child == 0:
        for n in (3, 7 + i, 3):  # a shape of the parent's, and a new one
            run(n)
        os._exit(0)
    children.append(child)
    run(20 + i)
failed = any(os.waitpid(child, 0)[1] != 0 for child in children)
with multiprocessing.get_context("fork").Pool(2) as pool:
    pool.map(run, [3, 30, 31, 30, 3], 1)
sys.exit(failed)
"""


class Meanwhile(unittest.TestCase):
    def test_a_fork(self):
        Path("fork.onnx").write_bytes(seq_model().SerializeToString())
        self.assertEqual(subprocess.run([sys.executable, "-c", FORK, "fork.onnx"], timeout=100).returncode, 0)

    def held_conversions(self):
        """Makes conversions wait for the event that this returns."""
        go = threading.Event()
        convert = _converter.conversion.convert

        def waits(*arguments, **options):
            self.assertTrue(go.wait(30))
            return convert(*arguments, **options)

        _converter.conversion.convert = waits
        self.addCleanup(setattr, _converter.conversion, "convert", convert)
        self.addCleanup(go.set)
        return go

    def test_known_shapes_run_during_a_conversion(self):
        s = session(seq_model())
        run = lambda n: s.run(None, {"x": np.zeros((1, n), np.float32)})[0]  # noqa: E731
        run(31)
        go = self.held_conversions()
        got = []
        waiting = threading.Thread(target=lambda: got.append(run(32)))
        waiting.start()
        for _ in range(20):
            self.assertEqual(run(31).shape, (1, 31))
        self.assertEqual(got, [])
        go.set()
        waiting.join()
        self.assertEqual(got[0].shape, (1, 32))

    def test_a_file_with_ranges_serves_new_shapes(self):
        s = session(seq_model())
        run = lambda n: s.run(None, {"x": np.zeros((1, n), np.float32)})[0]  # noqa: E731
        for n in (33, 34, 35, 36):
            run(n)
        settle()
        self.assertIsNotNone(s._engine._bounded)
        run(37)
        go = self.held_conversions()
        for n in (37, 38, 37):  # the second run of a shape begins its conversion
            np.testing.assert_allclose(run(n), 1 / n, rtol=1e-5)
        self.assertTrue(_background._running)
        go.set()
        settle()

    @unittest.skipUnless(REAL, "onnxruntime is not installed")
    def test_the_real_one_serves_new_shapes(self):
        o = ort.SessionOptions()
        o.add_session_config_entry("sinter.fallback", "1")
        s = session(seq_model(), sess_options=o)
        run = lambda n: s.run(None, {"x": np.zeros((1, n), np.float32)})[0]  # noqa: E731
        run(41)
        go = self.held_conversions()
        np.testing.assert_allclose(run(42), 1 / 42, rtol=1e-5)
        go.set()
        settle()
        self.assertEqual(len(s._engine._kept), 2)
        np.testing.assert_allclose(run(42), 1 / 42, rtol=1e-5)


if __name__ == "__main__":
    unittest.main()
