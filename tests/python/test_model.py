"""load() and Model: arrays of every kind, memory, threads, hostile files."""
import copy
import gc
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

import numpy as np
import onnx
import sinter_runtime as sinter
from onnx import TensorProto

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import models  # noqa: E402

X = np.random.default_rng(1).standard_normal((4, 8)).astype(np.float32)


class Loaded(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        model, cls.w = models.affine()
        cls.file = sinter.convert(model).data
        Path("affine.sinter").write_bytes(cls.file)
        cls.expected = np.maximum(X @ cls.w, 0)

    def check(self, y):
        np.testing.assert_allclose(y, self.expected, rtol=1e-5, atol=1e-5)


class Arrays(Loaded):
    def test_the_numbers(self):
        for given in ("affine.sinter", Path("affine.sinter"), self.file, bytearray(self.file)):
            for options in ({}, {"threads": 2}, {"backend": "reference"}, {"backends": ["simd"]}, {"copy_file": True},
                            {"check_digests": False}, {"require_planned": True}):
                with self.subTest(options):
                    self.check(sinter.load(given, **options).run({"x": X})["y"])

    def test_ports(self):
        model = sinter.load(self.file)
        self.assertEqual(model.inputs, [("x", np.dtype("float32"), (4, 8))])
        self.assertEqual(str(model.outputs[0]), "y float32[4,8]")
        self.assertIn("x float32[4,8]", repr(model))
        self.assertGreater(model.memory_bytes, 0)
        self.assertEqual(model.fallbacks, 0)
        self.assertIn("x86_64" if os.uname().machine == "x86_64" else "a", model.profile)

    def test_texts(self):
        with tempfile.TemporaryDirectory() as folder:
            labels = Path(folder, "labels.txt")
            labels.write_text("\n".join(f"class {i}" for i in range(8)), encoding="utf-8")
            model = sinter.load(sinter.convert(models.affine()[0], labels=labels, meta={"license": "MIT", "name": "h\u00fchner"}))
        self.assertEqual(model.metadata, {"license": "MIT", "name": "h\u00fchner"})
        self.assertEqual(model.labels("y"), [f"class {i}" for i in range(8)])
        self.assertEqual(model.labels(), model.labels("y"))
        with self.assertRaisesRegex(sinter.InputError, "'z'.*'y'"):
            model.labels("z")
        model = sinter.load(self.file)
        self.assertEqual((model.metadata, model.labels()), ({}, []))

    def test_results_never_change(self):
        model = sinter.load(self.file)
        first = model.run({"x": X})["y"]
        kept = first.copy()
        model.run({"x": -X})
        np.testing.assert_array_equal(first, kept)
        self.assertTrue(first.flags.writeable and first.flags.owndata)
        del model
        gc.collect()
        np.testing.assert_array_equal(first, kept)

    def test_every_layout(self):
        """What an array looks like in memory does not matter."""
        model = sinter.load(self.file)
        wide = np.zeros((8, 16), np.float32)
        wide[::2, ::2] = X
        read_only = X.copy()
        read_only.flags.writeable = False
        unaligned = np.zeros(X.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(X.shape)
        unaligned[:] = X
        backwards = X[::-1].copy()[::-1]
        for name, array in {"strided": wide[::2, ::2], "Fortran": np.asfortranarray(X), "transposed": X.T.copy().T,
                            "read-only": read_only, "unaligned": unaligned, "backwards": backwards}.items():
            with self.subTest(name):
                self.check(model.run({"x": array})["y"])
        row = np.broadcast_to(X[0], X.shape)
        np.testing.assert_allclose(model.run({"x": row})["y"][3], self.expected[0], rtol=1e-5, atol=1e-5)

    def test_wrong_arrays(self):
        model = sinter.load(self.file)
        for name, given, words in (
                ("float64", {"x": X.astype(np.float64)}, r"astype\('float32'\)"),
                ("int32", {"x": X.astype(np.int32)}, "but the array is int32"),
                ("byte order", {"x": X.astype(">f4")}, "the other byte order"),
                ("shape", {"x": X[:3]}, r"\[4, 8\].*\[3, 8\]"), ("rank", {"x": X[None]}, "shape"),
                ("scalar", {"x": np.float32(1)}, "give a NumPy array"), ("list", {"x": X.tolist()}, "give a NumPy array"),
                ("mask", {"x": np.ma.masked_array(X)}, "give a NumPy array"), ("None", {"x": None}, "give a NumPy array"),
                ("object", {"x": X.astype(object)}, "object"), ("string", {"x": X.astype(str)}, "x"),
                ("record", {"x": X.view([("a", np.float32)])}, "x"),
                ("unknown", {"x": X, "z": X}, "does not have an input 'z'; it has 'x'"), ("number", {3: X}, "input 3"),
                ("missing", {}, "input 'x' is missing"), ("all missing", None, "input 'x' is missing")):
            with self.subTest(name), self.assertRaisesRegex(sinter.InputError, words):
                model.run(given)
        self.check(model.run({"x": X})["y"])

    def test_inputs_without_names(self):
        model = sinter.load(self.file)
        for given in (X, [X], (X,)):
            self.check(model.run(given)["y"])
        two = sinter.load(sinter.convert(models.model_of(
            [onnx.helper.make_node("Sub", ["a", "b"], ["y"])], [models.value("a", [2]), models.value("b", [2])],
            [models.value("y", [2])])))
        a, b = np.float32([5, 6]), np.float32([1, 4])
        np.testing.assert_array_equal(two.run([a, b])["y"], a - b)
        for net, given, words in (
                (two, a, "1 array is given, but the model takes 2: 'a', 'b'"), (model, [X, X], "2 arrays are given"),
                (model, [], "0 arrays are given"), (model, X.tolist(), "holds list; give NumPy arrays"),
                (model, 3, "give a NumPy array"), (model, X.astype(np.float64), r"astype\('float32'\)")):
            with self.subTest(words), self.assertRaisesRegex(sinter.InputError, words):
                net.run(given)
        bound = sinter.load(sinter.convert(models.model_of(
            [onnx.helper.make_node("Sub", ["a", "b"], ["y"])], [models.value("a", [2]), models.value("b", [2])],
            [models.value("y", [2])])), bind=["a"])
        bound.bound["a"][:] = a
        np.testing.assert_array_equal(bound.run(b)["y"], a - b)

    def test_outputs_of_the_caller(self):
        model = sinter.load(self.file)
        y = np.zeros((4, 8), np.float32)
        self.assertIs(model.run({"x": X}, outputs={"y": y})["y"], y)
        self.check(y)
        transposed = np.zeros((8, 4), np.float32).T
        model.run({"x": X}, outputs={"y": transposed})
        self.check(transposed)
        y.flags.writeable = False
        for given, words in (({"y": y}, "read-only"), ({"q": X}, "does not have an output 'q'"), ({"y": X[:2].copy()}, "shape"),
                             ({"y": np.zeros((4, 8))}, "float64"), ({"y": None}, "give a NumPy array")):
            with self.subTest(words), self.assertRaisesRegex(sinter.InputError, words):
                model.run({"x": X}, outputs=given)

    def test_every_type(self):
        kinds = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE, "float16": TensorProto.FLOAT16,
                 "bfloat16": TensorProto.BFLOAT16, "int8": TensorProto.INT8, "uint8": TensorProto.UINT8, "int16": TensorProto.INT16,
                 "uint16": TensorProto.UINT16, "int32": TensorProto.INT32, "uint32": TensorProto.UINT32, "int64": TensorProto.INT64,
                 "uint64": TensorProto.UINT64, "bool": TensorProto.BOOL, "float8_e4m3fn": TensorProto.FLOAT8E4M3FN}
        import ml_dtypes
        nodes = [onnx.helper.make_node("Reshape", ["x", "to"], ["y"], name="only")]
        to = onnx.numpy_helper.from_array(np.array([4]), "to")
        for name, kind in kinds.items():
            with self.subTest(name):
                dtype = np.dtype(getattr(ml_dtypes, name, None) or name)
                x = np.array([[0, 1], [1, 0]]).astype(dtype)
                model = models.model_of(nodes, [models.value("x", [2, 2], kind)], [models.value("y", [4], kind)], [to], opset=23)
                y = sinter.load(sinter.convert(model)).run({"x": x})["y"]
                self.assertEqual(y.dtype, dtype)
                np.testing.assert_array_equal(y.view(np.uint8), x.reshape(-1).view(np.uint8))

    def test_types_that_need_a_package(self):
        file = sinter.convert(models.unary("Abs", [2], TensorProto.BFLOAT16)).data
        saved = sys.modules.get("ml_dtypes")
        sys.modules["ml_dtypes"] = None
        try:
            with self.assertRaisesRegex(sinter.ModelFileError, "install the package ml_dtypes"):
                sinter.load(file)
        finally:
            sys.modules["ml_dtypes"] = saved

    def test_scalars_and_empty_arrays(self):
        y = sinter.load(sinter.convert(models.unary("Neg", []))).run({"x": np.array(2, np.float32)})["y"]
        self.assertEqual((y.shape, float(y)), ((), -2))
        y = sinter.load(sinter.convert(models.unary("Neg", [0, 3]))).run({"x": np.zeros((0, 3), np.float32)})["y"]
        self.assertEqual(y.shape, (0, 3))

    def test_bounded_dimensions_are_cut(self):
        model = sinter.load(sinter.convert(models.non_zero()))
        self.assertEqual(model.outputs[0].shape, (1, 6))
        for x in ([0, 3, 0, 1, 0, 2], [0] * 6, [1] * 6):
            x = np.array(x, np.float32)
            np.testing.assert_array_equal(model.run({"x": x})["y"], np.stack(np.nonzero(x)))
        whole = np.zeros((1, 6), np.int64)
        self.assertEqual(model.run({"x": x * 0}, outputs={"y": whole})["y"].shape, (1, 0))


class Shapes(unittest.TestCase):
    """Several shape sets: runs take the one of their arrays."""

    @classmethod
    def setUpClass(cls):
        model, cls.w = models.affine("rows")
        cls.file = sinter.convert(model, shapes="rows=1; rows=4; rows=9").data

    def test_arrays_choose(self):
        model = sinter.load(self.file)
        self.assertEqual([shapes["x"] for shapes in model.shapes], [(1, 8), (4, 8), (9, 8)])
        for rows in (4, 1, 9, 4):
            x = np.random.default_rng(rows).standard_normal((rows, 8)).astype(np.float32)
            np.testing.assert_allclose(model.run({"x": x})["y"], np.maximum(x @ self.w, 0), rtol=1e-4, atol=1e-4)
            self.assertEqual(model.outputs[0].shape, (rows, 8))
        self.assertGreater(model.memory_bytes, sinter.load(self.file, entry=1).memory_bytes)

    def test_a_stream_goes_on_with_another_set(self):
        """A prompt is read at once, and then one token is added at a time: the sets have the cache between them."""
        model = sinter.load(sinter.convert(models.cache(16), shapes="seq=5; seq=1", state=["present=past"]).data)
        tokens = np.random.default_rng(3).standard_normal((12, 8)).astype(np.float32)
        for stream in range(2):
            cache = np.zeros((16, 8), np.float32)
            for begin, end in [(0, 5)] + [(i, i + 1) for i in range(5, 12)]:
                at = np.arange(begin, end, dtype=np.int64)
                cache[at] = tokens[at]
                y = model.run({"x": tokens[at], "at": at[:, None]})["y"]
                np.testing.assert_allclose(y, tokens[at] @ cache.T, rtol=1e-4, atol=1e-4)
            model.reset()

    def test_refusals(self):
        model = sinter.load(self.file)
        with self.assertRaisesRegex(sinter.InputError, r"takes 'x' \[3, 8\]; give one of 'x' \[1, 8\]; 'x' \[4, 8\]"):
            model.run({"x": np.zeros((3, 8), np.float32)})
        with self.assertRaisesRegex(sinter.InputError, "'z'"):
            model.run({"z": np.zeros((4, 8), np.float32)})
        with self.assertRaisesRegex(sinter.InputError, "is missing"):
            model.run({})
        with self.assertRaisesRegex(sinter.InputError, r"has shape \[4, 8\]"):
            sinter.load(self.file, entry=1).run({"x": np.zeros((1, 8), np.float32)})
        with self.assertRaisesRegex(sinter.UsageError, "entry"):
            sinter.load(self.file, bind=["x"])
        with self.assertRaisesRegex(sinter.UsageError, "entry 3"):
            sinter.load(self.file, entry=3)
        bound = sinter.load(self.file, entry=2, bind=["x"])
        bound.bound["x"][:] = 1
        self.assertEqual(bound.run()["y"].shape, (9, 8))


class Bound(Loaded):
    def test_runs_read_and_write_in_place(self):
        model = sinter.load(self.file, bind=["x", "y"])
        model.bound["x"][:] = X
        y = model.run()["y"]
        self.assertIs(y, model.bound["y"])
        self.check(y)
        self.check(model.run({"x": X})["y"])
        x = model.bound["x"]
        del model, y
        gc.collect()
        np.testing.assert_array_equal(x, X)

    def test_arrays_of_the_caller(self):
        x, y = sinter.empty((4, 8)), sinter.empty((4, 8), "float32")
        x[:] = X
        model = sinter.load("affine.sinter", bind={"x": x, "y": y})
        model.run()
        self.check(y)
        # One model's output is the next one's input.
        second = sinter.load(self.file, bind={"x": y})
        np.testing.assert_allclose(second.run()["y"], np.maximum(self.expected @ self.w, 0), rtol=1e-4, atol=1e-4)
        del model
        gc.collect()
        second.run()

    def test_what_cannot_be_bound(self):
        x = sinter.empty((4, 8))
        padded = sinter.empty((5, 8))
        for bind, error, words in ((["z"], sinter.UsageError, "'z'"), ("x", TypeError, "list of names"),
                                   ({"x": X.copy()}, sinter.InputError, "sinter_runtime.empty"),
                                   ({"x": padded[1:].T.T[:, :]}, sinter.InputError, "aligned|empty"),
                                   ({"x": sinter.empty((4, 8), "float64")}, sinter.InputError, "float64"),
                                   ({"x": x, "y": x}, sinter.UsageError, "overlap"),
                                   ({"x": np.frombuffer(bytes(128), np.float32).reshape(4, 8)}, sinter.InputError, "empty"),
                                   ({"x": 3}, sinter.InputError, "NumPy array")):
            with self.subTest(words), self.assertRaisesRegex(error, words):
                sinter.load(self.file, bind=bind)
        # The result is a view of the input.
        reshape = [onnx.helper.make_node("Reshape", ["x", "to"], ["y"], name="only")]
        model = models.model_of(reshape, [models.value("x", [4])], [models.value("y", [2, 2])],
                                [onnx.numpy_helper.from_array(np.array([2, 2]), "to")])
        file = sinter.convert(model).data
        try:
            both = sinter.load(file, bind=["x", "y"])
        except sinter.Error as error:
            self.assertIn("bound", str(error))
        else:
            both.bound["x"][:] = [1, 2, 3, 4]
            np.testing.assert_array_equal(both.run()["y"], [[1, 2], [3, 4]])


class CustomOperators(unittest.TestCase):
    """wave.onnx is y = 2 * sin(relu(x)), with the sine of wave.so (examples/custom_op)."""
    X = np.array([-1, 0.5, 1, 3], np.float32)
    Y = 2 * np.sin(np.maximum(X, 0))

    def test_one_library_or_several(self):
        file = sinter.convert("wave.onnx", custom_ops="wave.so").data
        Path("wave.sinter").write_bytes(file)
        for model in (sinter.load(file, custom_ops="wave.so"), sinter.load("wave.sinter", custom_ops=[Path("wave.so").resolve()])):
            np.testing.assert_allclose(model.run({"x": self.X})["y"], self.Y, rtol=1e-6)
            other = model.another()
            del model
            gc.collect()
            np.testing.assert_allclose(other.run({"x": self.X})["y"], self.Y, rtol=1e-6)

    def test_refusals(self):
        file = sinter.convert("wave.onnx", custom_ops=["wave.so"]).data
        with self.assertRaisesRegex(sinter.ModelFileError, "Wave"):
            sinter.load(file)
        with self.assertRaisesRegex(sinter.UsageError, "cannot be loaded"):
            sinter.load(file, custom_ops="none.so")
        with self.assertRaisesRegex(sinter.UsageError, "wave.so"):
            sinter.load(file, custom_ops=["wave.so", "wave.so"])
        with self.assertRaisesRegex(sinter.UsageError, "does not export"):
            sinter.load(file, custom_ops=sinter._native.LIBRARY)
        with self.assertRaises(TypeError):
            sinter.load(file, custom_ops=[3])


class Lifetime(Loaded):
    def test_threads_with_models_of_their_own(self):
        first = sinter.load(self.file)
        wrong = []

        def work(model, seed):
            x = np.random.default_rng(seed).standard_normal((4, 8)).astype(np.float32)
            for _ in range(200):
                if not np.allclose(model.run({"x": x})["y"], np.maximum(x @ self.w, 0), atol=1e-4):
                    wrong.append(seed)
        threads = [threading.Thread(target=work, args=(first.another(), i)) for i in range(4)]
        del first
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_one_model_on_two_threads_raises(self):
        model = sinter.load(sinter.convert(models.slow_loop()).data)
        x = np.zeros(1, np.float32)
        started, refused, results = threading.Event(), [], []

        def work():
            started.set()
            results.append(model.run({"x": x}))
        thread = threading.Thread(target=work)
        thread.start()
        started.wait()
        while thread.is_alive():
            for call in (lambda: model.run({"x": x}), model.reset):
                try:
                    call()
                except sinter.RunError as error:
                    refused.append(str(error))
                    self.assertIn("another thread", str(error))
            if refused:
                break
        thread.join()
        self.assertTrue(refused)
        self.assertEqual(len(results), 1)

    def test_a_closed_model(self):
        with sinter.load(self.file, bind=["x"]) as model:
            kept = model.bound["x"]
            kept[:] = X
            self.check(model.run()["y"])
        kept[:] = 0  # the memory is there as long as the array
        self.assertEqual(repr(model), "<sinter_runtime.Model, closed>")
        model.close()
        for use in (lambda: model.run(X), lambda: model.inputs, lambda: model.outputs, lambda: model.shapes, lambda: model.ranges,
                    lambda: model.set_shape("x", (4, 8)), model.reset, model.another, lambda: model.memory_bytes,
                    lambda: model.bound["x"], model.__enter__):
            with self.assertRaisesRegex(sinter.RunError, "this model is closed; load the file again"):
                use()
        with self.assertRaises(KeyError), sinter.load(self.file) as model:
            raise KeyError
        self.assertIn("closed", repr(model))
        first = sinter.load(self.file)
        second = first.another()
        first.close()
        self.check(second.run(X)["y"])

    def test_a_closed_model_gives_its_memory_back(self):
        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        size = 1 << 24
        file = sinter.convert(models.unary("Neg", [size])).data
        model = sinter.load(file)
        model.run(np.ones(size, np.float32))
        before = resident()
        model.close()
        self.assertLess(resident(), before - 4 * size)

    def test_models_cannot_be_copied(self):
        model = sinter.load(self.file)
        for call in (pickle.dumps, copy.copy, copy.deepcopy):
            with self.assertRaisesRegex(TypeError, "cannot be pickled"):
                call(model)
        with self.assertRaisesRegex(TypeError, "'threads' may be meant"):
            model.another(thread=2)

    def test_the_file_may_be_replaced(self):
        Path("replaced.sinter").write_bytes(self.file)
        model = sinter.load("replaced.sinter")
        sinter.convert(models.unary("Abs", [3]), "replaced.sinter")
        self.check(model.run({"x": X})["y"])

    def test_a_run_that_fails_leaves_a_usable_model(self):
        nodes = [onnx.helper.make_node("Gather", ["t", "i"], ["y"], name="look")]
        table = onnx.numpy_helper.from_array(np.arange(5, dtype=np.float32), "t")
        model = sinter.load(sinter.convert(models.model_of(nodes, [models.value("i", [2], TensorProto.INT64)],
                                                           [models.value("y", [2])], [table])))
        with self.assertRaisesRegex(sinter.RunError, "look") as raised:
            model.run({"i": np.array([0, 9])})
        self.assertNotEqual(raised.exception.code, 0)
        np.testing.assert_array_equal(model.run({"i": np.array([4, 1])})["y"], [4, 1])

    def test_wrong_options(self):
        for options, error, words in (({"threads": -1}, sinter.UsageError, "-1"), ({"threads": "two"}, TypeError, ""),
                                      ({"backend": "tpu"}, sinter.UsageError, "does not have a backend 'tpu'"),
                                      ({"backends": ["simd", "tpu"]}, sinter.UsageError, "it has"),
                                      ({"profile": "vax"}, sinter.Error, "vax"), ({"entry": 9}, sinter.Error, ""),
                                      ({"public_key": b"short"}, sinter.UsageError, "32 bytes"),
                                      ({"public_key": bytes(32)}, sinter.ModelFileError, ""),
                                      ({"sparkle": 1}, TypeError, "sparkle")):
            with self.subTest(options), self.assertRaisesRegex(error, words):
                sinter.load(self.file, **options)


class Evaluate(Loaded):
    def test_every_form_of_samples(self):
        model = sinter.load(self.file)
        xs = np.random.default_rng(2).standard_normal((7, 4, 8)).astype(np.float32)
        exact = np.maximum(xs @ self.w, 0)

        def worst(outputs):
            self.assertEqual(outputs["y"].shape, (7, 4, 8))
            return np.abs(outputs["y"] - exact).max()
        for given in ({"x": xs, "labels": xs}, [{"x": x} for x in xs], ({"x": x} for x in xs), lambda: ({"x": x} for x in xs)):
            for net in (model, self.file, "affine.sinter", sinter.load(self.file, bind=["x", "y"])):
                if net is not model and not isinstance(given, dict):
                    continue
                self.assertLess(sinter.evaluate(net, given, worst), 1e-4)

    def test_a_first_axis_of_one_counts_the_samples(self):
        images = np.load("digits_eval.npz")["image"][:5]
        net = sinter.load(sinter.convert("digits.onnx"))
        shapes = []
        self.assertEqual(sinter.evaluate(net, {"image": images}, lambda o: shapes.append(o["probabilities"].shape) or 3), 3.0)
        sinter.evaluate(net, [{"image": i[None]} for i in images], lambda o: shapes.append(o["probabilities"].shape) or 3)
        self.assertEqual(shapes, [(5, 10)] * 2)

    def test_wrong_data(self):
        net = sinter.load(self.file)
        used = iter([{"x": X}])
        list(used)
        for given, error, words in (({"x": X}, sinter.InputError, "not a stack"), ({"z": X}, sinter.InputError, "'x' is missing"),
                                    ({"x": X[None].astype(float)}, sinter.InputError, "float64"), (used, sinter.DataError, "only once"),
                                    ([], sinter.DataError, "no samples"), ({"x": X[None][:0]}, sinter.DataError, "no samples"),
                                    (3, TypeError, "iterated"), ([{"y": X}], sinter.InputError, "'y'")):
            with self.subTest(words), self.assertRaisesRegex(error, words):
                sinter.evaluate(net, given, lambda o: 0)
        with self.assertRaises(KeyError):
            sinter.evaluate(net, [{"x": X}], lambda o: o["missing"])
        bounded = sinter.load(sinter.convert(models.non_zero()))
        with self.assertRaisesRegex(sinter.DataError, "different length"):
            sinter.evaluate(bounded, [{"x": np.eye(6, dtype=np.float32)[0]}, {"x": np.ones(6, np.float32)}], lambda o: 0)


class LittleMemory(Loaded):
    def test_every_shortage_is_an_exception(self):
        """In processes that may take some memory beyond what their imports took."""
        script = ("import resource, sys, numpy as np, sinter_runtime as sinter\n"
                  "from pathlib import Path\n"
                  "file = Path('affine.sinter').read_bytes()\n"
                  "taken = int(Path('/proc/self/statm').read_text().split()[0]) * resource.getpagesize()\n"
                  "resource.setrlimit(resource.RLIMIT_AS, (taken + int(sys.argv[1]),) * 2)\n"
                  "try:\n"
                  "    sinter.load(file).run({'x': np.zeros((4, 8), np.float32)})\n"
                  "    sinter.convert('digits.onnx')\n"
                  "    print('done')\n"
                  "except (MemoryError, sinter.Error, OSError, RuntimeError) as error:\n"
                  "    print('short:', type(error).__name__)\n")
        ends = set()
        for kilobytes in (0, 64, 200, 1000, 4000, 16_000, 64_000, 1_000_000):
            r = subprocess.run([sys.executable, "-c", script, str(kilobytes * 1000)], capture_output=True, text=True, timeout=60)
            self.assertEqual(r.returncode, 0, f"{kilobytes} kB: {r.stderr}")
            ends.add(r.stdout.split(":")[0].strip())
        self.assertEqual(ends, {"done", "short"})


class Hostile(Loaded):
    def test_what_is_not_a_model(self):
        os.makedirs("folder", exist_ok=True)
        for given, error in ((b"", sinter.Error), (b"x" * 10_000, sinter.ModelFileError), ("gone.sinter", sinter.FileError),
                             ("folder", sinter.FileError), ("digits.onnx", sinter.ModelFileError), (3, TypeError), (None, TypeError),
                             ("a\0b", ValueError), ([], TypeError)):
            with self.subTest(given), self.assertRaises(error):
                sinter.load(given)

    def test_damaged_files(self):
        """Each is refused, or computes what it computed before; nothing else can happen."""
        rng = np.random.default_rng(7)
        refused = 0
        for i in range(300):
            data = bytearray(self.file)
            if i % 3 == 0:
                data = data[:rng.integers(len(data))]
            else:
                for at in rng.integers(len(data) if i % 3 == 1 else 2000, size=rng.integers(1, 4)) % len(data):
                    data[at] = rng.integers(256)
            try:
                model = sinter.load(bytes(data), check_digests=bool(i % 2))
                model.run({p.name: np.zeros(p.shape, p.dtype) for p in model.inputs})
            except (sinter.Error, MemoryError):
                refused += 1
        self.assertGreater(refused, 200)


if __name__ == "__main__":
    unittest.main()
