"""convert(), inspect(), compare(): options, data, diagnostics, progress, interruption."""
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy as np
import onnx
import sinter_runtime as sinter
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import models  # noqa: E402

RNG = np.random.default_rng(3)


def rows(count):
    for _ in range(count):
        yield {"x": RNG.standard_normal((4, 8)).astype(np.float32)}


class Convert(unittest.TestCase):
    def test_path_bytes_and_proto_give_the_same_file(self):
        model, _ = models.affine()
        onnx.save(model, "affine.onnx")
        path = sinter.convert("affine.onnx", "affine.sinter")
        self.assertEqual(path.path, "affine.sinter")
        self.assertIsNone(path.data)
        same = Path("affine.sinter").read_bytes()
        self.assertEqual(path.file_bytes, len(same))
        for given in (Path("affine.onnx"), Path("affine.onnx").read_bytes(), model, bytearray(model.SerializeToString())):
            self.assertEqual(sinter.convert(given).data, same)

    def test_options_become_flags(self):
        report = sinter.convert("digits.onnx", shape={"image": [2, 1, 8, 8]}, target=["x86_64", "portable"], plan_threads=2,
                                strip=True, disable_pass=["fuse-clamp"], keep={"probabilities": np.float32}, min_sqnr=None)
        self.assertEqual([p["target"].split("+")[0] for p in report.details["profiles"]], ["x86_64", "portable"])
        self.assertEqual(sinter.load(report).inputs[0].shape, (2, 1, 8, 8))
        self.assertIn("arena", str(report))

    def test_an_array_becomes_a_constant(self):
        nodes = [onnx.helper.make_node("Reshape", ["x", "to"], ["y"], name="r")]
        model = models.model_of(nodes, [models.value("x", [6]), models.value("to", [2], onnx.TensorProto.INT64)],
                                [models.value("y", None)])
        net = sinter.load(sinter.convert(model, const={"to": np.array([2, 3])}))
        self.assertEqual(net.outputs[0].shape, (2, 3))

    def test_a_pair_becomes_a_range(self):
        model = models.unary("Neg", ["n", 8])
        net = sinter.load(sinter.convert(model, dim={"n": (1, 128)}))
        self.assertEqual(net.ranges["x"], ((1, 128), (8, 8)))
        self.assertEqual(net.run(np.ones((3, 8), np.float32))["y"].shape, (3, 8))
        for size in (2, np.int64(2), "2", "1..2"):
            self.assertEqual(sinter.load(sinter.convert(model, dim={"n": size})).inputs[0].shape, (2, 8))

    def test_a_shape_is_a_list_an_array_or_empty(self):
        for shape in ((2, 8), [2, 8], np.array([2, 8])):
            net = sinter.load(sinter.convert(models.unary("Neg", ["n", 8]), shape={"x": shape}))
            self.assertEqual(net.inputs[0].shape, (2, 8))
        scalar = sinter.load(sinter.convert(models.unary("Neg", None), shape={"x": ()}))
        self.assertEqual(scalar.run(np.array(2, np.float32))["y"], -2)

    def test_numbers_of_channels_are_lists_or_arrays(self):
        files = [sinter.convert("digits.onnx", input_type="uint8", mean=mean, scale=scale).data
                 for mean, scale in (("2", "0.5"), (2, 0.5), ([2], [0.5]), (np.float32([2]), (0.5,)))]
        self.assertEqual(files[1:], files[:1] * 3)
        with self.assertRaisesRegex(sinter.Error, "mean"):
            sinter.convert("digits.onnx", input_type="uint8", mean=[1, 2], scale=[1])

    def test_integers_of_ports_have_a_scale(self):
        rng = np.random.default_rng(3)
        samples = {"image": rng.random((20, 1, 1, 8, 8), np.float32)}
        made = [sinter.load(sinter.convert("digits.onnx", quantize="int8", force_int8=True, calibrate=samples, **types))
                for types in ({}, {"input_type": {"image": "int8"}, "output_type": "uint8"})]
        image = samples["image"][0]
        want = made[0].run(image)
        port, out = made[1].inputs[0], made[1].outputs[0]
        self.assertEqual((port.dtype, out.dtype), (np.dtype("int8"), np.dtype("uint8")))
        got = made[1].run(port.quantize(image))[out.name]
        self.assertLessEqual(np.abs(out.dequantize(got) - want[out.name]).max(), 2 * out.scale)
        self.assertLessEqual(np.abs(port.dequantize(port.quantize(image)) - image).max(), 0.51 * port.scale)
        self.assertEqual(port.quantize(1e9), 127)
        with self.assertRaisesRegex(sinter.InputError, "port.quantize"):
            made[1].run(image)
        with self.assertRaisesRegex(sinter.InputError, "NaN"):
            port.quantize(np.float32("nan"))
        with self.assertRaisesRegex(sinter.UsageError, "does not have a scale"):
            made[0].inputs[0].quantize(image)

    def test_texts_have_the_names_of_keywords(self):
        names = sinter.commands.with_python_names
        for text, expected in (
                ("--plan-threads 2 is too few", "plan_threads=2 is too few"), ("give --calibrate DATA", "give calibrate=DATA"),
                ("--target vax: this build", "target=vax: this build"), ("add --force-int8, or", "add force_int8=True, or"),
                ("--max-drop needs --evaluate", "max_drop needs evaluate"), ("--input-type uint8 and", "input_type=uint8 and"),
                ("--min-sqnr 30.", "min_sqnr=30."), ("run sinter convert x.onnx --strict", "run sinter convert x.onnx --strict"),
                ("give --dim NAME=N|MIN..MAX for it", "give dim=NAME=N|MIN..MAX for it"), ("--unheard of", "--unheard of")):
            self.assertEqual(names("convert", text), expected)

    def test_wrong_options(self):
        for options, error, words in (
                ({"quantise": "int8"}, TypeError, "'quantize' may be meant"),
                ({"zzzzzz": 1}, TypeError, "the options are shape"),
                ({"json": True}, TypeError, "does not have an option 'json'"),
                ({"quantize": "int7"}, sinter.UsageError, "int8"),
                ({"quantize": "int8"}, sinter.UsageError, "quantize=int8 needs calibrate=DATA: representative samples"),
                ({"quantize": "int8", "calibrate": "digits_eval.npz", "max_drop": "1%"}, sinter.UsageError,
                 "max_drop needs evaluate=DATA label=NAME"),
                ({"strict": 3}, TypeError, "strict is True or False"),
                ({"dim": True}, TypeError, "takes a value"),
                ({"dim": {"N": object()}}, TypeError, "docs/cli.md describes it as --dim"),
                ({"dim": "N=1\0"}, ValueError, "null byte"),
                ({"plan_threads": -1}, sinter.UsageError, "plan_threads: Value -1"),
                ({"dim": {"n": (1, 2, 3)}}, TypeError, "dim is a size or a pair (smallest, largest), not (1, 2, 3)"),
                ({"scale": [object()]}, TypeError, "scale cannot be <object"),
                ({"target": "vax"}, sinter.UsageError, "target=vax: this build")):
            with self.subTest(options), self.assertRaisesRegex(error, re.escape(words)):
                sinter.convert("digits.onnx", "never.sinter", **options)
        for model, error in ((3, TypeError), ("missing.onnx", sinter.FileError), (b"garbage", sinter.Error), ("a\0b", ValueError),
                             ("--help", sinter.FileError), (None, TypeError)):
            with self.subTest(model), self.assertRaises(error):
                sinter.convert(model, "never.sinter")
        with self.assertRaises(sinter.FileError):
            sinter.convert("digits.onnx", "no/such/folder/x.sinter")
        self.assertFalse(os.path.exists("never.sinter"))

    def test_every_flag_is_an_option(self):
        flags = set(subprocess.run([sys.executable, "-m", "sinter_runtime", "convert", "--help"], capture_output=True, text=True,
                                   check=True).stdout.split())
        for name in sinter.commands.table("convert"):
            self.assertTrue({f"--{name.replace('_', '-')}"} & {f.split(",")[-1] for f in flags}, name)
        self.assertIn("dim", sinter.commands.table("convert"))

    def test_refusals_carry_their_diagnostics(self):
        with self.assertRaisesRegex(sinter.ConversionError, "the model is refused") as raised:
            sinter.convert(models.refused(), "never.sinter")
        first = raised.exception.diagnostics[0]
        self.assertEqual((first.severity, bool(first.message)), ("refused", True))
        self.assertIn(first.message, str(raised.exception))
        self.assertFalse(os.path.exists("never.sinter"))

    def test_strict_raises_the_warnings(self):
        model = models.model_of([onnx.helper.make_node("Log", ["x"], ["y"], name="only")], [models.value("x", [4])],
                                [models.value("y", [4])])
        options = {"prefer_bfloat16": True, "target": "portable"}
        warned = sinter.convert(model, **options)
        self.assertTrue(warned.warnings)
        with self.assertRaisesRegex(sinter.ConversionError, "strict=True") as raised:
            sinter.convert(model, "never.sinter", strict=True, **options)
        self.assertEqual([d.severity for d in raised.exception.diagnostics], ["warning"])

    def test_a_result_that_is_not_good_enough_has_its_numbers(self):
        model, _ = models.affine()
        with self.assertRaisesRegex(sinter.ConversionError, "no file is written") as raised:
            sinter.convert(model, "never.sinter", quantize="int8", calibrate=list(rows(10)), require_int8=True)
        self.assertIn("quantized", raised.exception.report)
        self.assertFalse(os.path.exists("never.sinter"))


class Data(unittest.TestCase):
    def setUp(self):
        self.model, _ = models.affine()

    def convert(self, **options):
        return sinter.convert(self.model, quantize="int8", force_int8=True, **options)

    def test_every_form_of_samples(self):
        samples = list(rows(12))
        stack = np.stack([s["x"] for s in samples])
        np.savez("samples.npz", x=stack)
        expected = self.convert(calibrate="samples.npz").data
        for name, given in {"dict": {"x": stack}, "array": stack, "list": samples, "generator": (s for s in samples),
                            "callable": lambda: iter(samples), "arrays": [s["x"] for s in samples]}.items():
            with self.subTest(name):
                self.assertEqual(self.convert(calibrate=given).data, expected)

    def test_samples_limits_a_generator_that_has_no_end(self):
        def endless():
            while True:
                yield from rows(1)
        self.assertIsNotNone(self.convert(calibrate=endless(), samples=7).quantized)

    def test_wrong_samples(self):
        used = rows(3)
        list(used)
        for given, error in ((used, sinter.DataError), ([], sinter.DataError), ([3], sinter.DataError), (3, TypeError),
                             ({"x": np.zeros((2, 9, 9), np.float32)}, sinter.DataError), ({"x": np.array([None])}, TypeError),
                             ({3: np.zeros(1)}, TypeError), ([{"y": np.zeros((4, 8), np.float32)}], sinter.DataError),
                             ({"x": np.full((5, 4, 8), np.nan, np.float32)}, sinter.DataError)):
            with self.subTest(given), self.assertRaises(error):
                self.convert(calibrate=given)

    def test_an_exception_of_the_generator_passes(self):
        def broken():
            yield from rows(2)
            raise KeyError("the data set is gone")
        with self.assertRaisesRegex(KeyError, "the data set is gone"):
            self.convert(calibrate=broken())

    def test_no_temporary_file_stays(self):
        with tempfile.TemporaryDirectory() as folder:
            before, tempfile.tempdir = tempfile.tempdir, folder
            try:
                self.convert(calibrate=rows(6))
                self.assertRaises(sinter.DataError, self.convert, calibrate=[3])
                self.assertEqual(os.listdir(folder), [])
            finally:
                tempfile.tempdir = before


class Progress(unittest.TestCase):
    def setUp(self):
        self.model, _ = models.affine()

    def test_fractions_rise_and_stages_are_named(self):
        seen = []
        sinter.convert(self.model, progress=lambda fraction, stage: seen.append((fraction, stage)), quantize="int8",
                       calibrate=rows(10))
        fractions = [f for f, _ in seen]
        self.assertEqual(fractions, sorted(fractions))
        self.assertTrue(0 <= fractions[0] and fractions[-1] <= 1)
        self.assertTrue({"reading", "planning", "writing"} <= {s.split(",")[0] for _, s in seen})

    def test_an_exception_ends_the_conversion_without_a_file(self):
        for wanted in ("reading", "rewriting", "planning", "writing"):
            def stop(_, stage, wanted=wanted):
                if stage.startswith(wanted):
                    raise LookupError(wanted)
            with self.subTest(wanted), self.assertRaisesRegex(LookupError, wanted):
                sinter.convert(self.model, "stopped.sinter", progress=stop)
            self.assertEqual([f for f in os.listdir(".") if f.startswith("stopped")], [])

    def test_ctrl_c(self):
        """Python's own handler raises KeyboardInterrupt in the middle of a conversion."""
        script = ("import sys, numpy as np, sinter_runtime as sinter\n"
                  "x = np.load('digits_eval.npz')['image']\n"
                  "def seen(fraction, stage):\n"
                  "    if 'quantizing' in stage: print('now', flush=True)\n"
                  "try:\n"
                  "    sinter.convert('digits.onnx', 'interrupted.sinter', quantize='int8', calibrate={'image': x}, progress=seen,\n"
                  "                   adaptive_rounding=True)\n"
                  "except KeyboardInterrupt:\n"
                  "    print('interrupted')\n")
        with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
            self.assertEqual(process.stdout.readline(), "now\n")
            process.send_signal(signal.SIGINT)
            start = time.monotonic()
            self.assertIn("interrupted", process.stdout.read())
            self.assertEqual(process.wait(), 0)
            self.assertLess(time.monotonic() - start, 20)
        self.assertEqual([f for f in os.listdir(".") if f.startswith("interrupted")], [])

    def test_other_threads_run_during_a_conversion(self):
        counted, done = [0], threading.Event()

        def count():
            while not done.is_set():
                counted[0] += 1
                time.sleep(0.001)
        thread = threading.Thread(target=count)
        thread.start()
        sinter.convert("digits.onnx", quantize="int8", calibrate={"image": np.load("digits_eval.npz")["image"][:40]})
        done.set()
        thread.join()
        self.assertGreater(counted[0], 10)

    def test_two_conversions_at_once(self):
        results = {}

        def convert(name):
            results[name] = sinter.convert(self.model).data
        threads = [threading.Thread(target=convert, args=(i,)) for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(set(results.values())), 1)
        self.assertEqual(len(results), 3)


class Tools(unittest.TestCase):
    def test_inspect_takes_paths_bytes_and_reports(self):
        report = sinter.convert(models.unary("Abs", [3]))
        Path("abs.sinter").write_bytes(report.data)
        facts = [sinter.inspect(given, steps=True) for given in ("abs.sinter", Path("abs.sinter"), report.data, report)]
        self.assertTrue(all(f["steps"][0]["op"] == facts[0]["steps"][0]["op"] for f in facts))
        self.assertEqual(facts[0]["session_bytes"], report.session_bytes)
        for given, error in (("gone.sinter", sinter.Error), (b"garbage", sinter.ModelFileError), (3, TypeError)):
            with self.subTest(given), self.assertRaises(error):
                sinter.inspect(given)
        with self.assertRaisesRegex(TypeError, "'steps' may be meant"):
            sinter.inspect(report, step=True)

    def test_compare(self):
        model = models.unary("Abs", [3])
        report = sinter.convert(model)
        x = np.array([1, -2, 3], np.float32)
        self.assertTrue(sinter.compare(model, report, {"x": x})["within"])
        other = sinter.convert(models.unary("Neg", [3]))
        self.assertFalse(sinter.compare(report, other, {"x": x})["within"])
        with self.assertRaises(sinter.DataError):
            sinter.compare(model, report, {"x": np.zeros(9, np.float32)})

    def test_the_program(self):
        for command, code in ((["--version"], 0), (["inspect", "gone.sinter"], 6), (["nonsense"], 2)):
            for start in ([sys.executable, "-m", "sinter_runtime"], [os.path.join(sys.prefix, "bin", "sinter-runtime")]):
                r = subprocess.run([*start, *command], capture_output=True, text=True)
                self.assertEqual(r.returncode, code, r.stderr)
        self.assertIn(sinter.__version__, subprocess.run([sys.executable, "-m", "sinter_runtime", "--version"], capture_output=True,
                                                         text=True).stdout)


if __name__ == "__main__":
    unittest.main()
