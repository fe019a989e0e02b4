#!/usr/bin/env python3
"""The command line's behaviour: exit codes, one clear line for bad input, JSON, no half-written files.

    test_cli.py [--sinter PROGRAM] [unittest options]

Works on examples/digits alone; needs numpy and onnx. contract.py runs the shared contract check besides.
"""
import fcntl
import json
import os
import platform
import pty
import re
import stat
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
import pinned  # noqa: E402

pinned.require("numpy", "onnx")
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import sinter_cli as cli  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402

DIGITS = os.path.join(cli.REPO, "examples", "digits", "digits.onnx")
COMMANDS = ("convert", "quantize", "simplify", "repair", "inspect", "embed", "explain", "run", "compare", "bench", "ranges",
            "keygen", "sign", "tune", "pack")
SINTER = None


def contents(path):
    with open(path, "rb") as f:
        return f.read()


def model_of(nodes, inputs, outputs, initializers=(), opset=17):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="cli-")
        cls.dir = cls.scratch.name
        cls.digits = cls.path("digits.sinter")
        r = cli.call(SINTER, "convert", DIGITS, "-o", cls.digits, timeout=60)
        if r.code != 0:
            raise AssertionError(f"examples/digits does not convert: {r.why()}")
        rng = np.random.default_rng(1)
        cls.image = rng.integers(0, 17, (1, 1, 8, 8)).astype(np.float32)
        cli.save_npz(cls.path("x.npz"), {"image": cls.image})

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.dir, name)

    def expect(self, code, *args, words=(), lines=None):
        """The program ends with this code, never by a signal, and prints these words."""
        codes = code if isinstance(code, tuple) else (code,)
        r = cli.call(SINTER, *args, timeout=60)
        text = r.out + r.err
        self.assertIn(r.code, codes, f"{' '.join(map(str, args))}: {r.why()}")
        for w in words:
            self.assertIn(w.lower(), text.lower(), f"{' '.join(map(str, args))}: {text[-500:]}")
        if r.code not in (0, 1):
            self.assertTrue(r.err.strip(), f"{args}: a failure without a message on stderr")
            if lines:
                self.assertLessEqual(len(r.err.strip().splitlines()), lines, r.err)
        return r

    def save(self, name, model):
        with open(self.path(name), "wb") as f:
            f.write(model if isinstance(model, bytes) else model.SerializeToString())
        return self.path(name)

    def refused(self, name, model, *words, code=3, flags=()):
        out = self.path("refused.sinter")
        r = self.expect(code, "convert", self.save(name, model), "-o", out, *flags, words=words)
        self.assertEqual([f for f in os.listdir(self.dir) if f.startswith("refused.sinter")], [])
        return r


class Usage(Case):
    def test_help(self):
        for c in COMMANDS:
            r = self.expect(0, c, "--help", words=("json",))
            self.assertTrue(r.out)
        self.expect(0, "--help", words=COMMANDS)

    def test_wrong_usage_is_2(self):
        out = self.path("u.sinter")
        for args in ([], ["frobnicate"], ["convert"], ["convert", DIGITS], ["run"], ["run", self.digits],
                     ["compare", self.digits], ["explain", self.digits], ["inspect"], ["bench"],
                     ["convert", DIGITS, "-o", out, "--nonsense"], ["convert", DIGITS, "-o", out, "--dim", "N"],
                     ["convert", DIGITS, "-o", out, "--dim", "N=many"], ["convert", DIGITS, "-o", out, "--dim", "N=-1"],
                     ["convert", DIGITS, "-o", out, "--shape", "image=1,x"],
                     ["convert", DIGITS, "-o", out, "--target", "pdp11"],
                     ["run", self.digits, "--inputs", self.path("x.npz"), "--threads", "none"],
                     ["run", self.digits, "--inputs", self.path("x.npz"), "--threads", "0"],
                     ["run", self.digits, "--inputs", self.path("x.npz"), "--threads", "2", "--processors", "3-1"],
                     ["bench", self.digits, "--threads", "2", "--processors", "slow"],
                     ["bench", self.digits, "--threads", "2", "--processors", "4095"],
                     ["run", self.digits, "--inputs", self.path("x.npz"), "--backend", "abacus"],
                     ["compare", self.digits, self.digits, "--inputs", self.path("x.npz"), "--rtol", "big"]):
            with self.subTest(args=args):
                self.expect(2, *args)
                self.assertFalse(os.path.exists(out))

    def test_wrong_usage_states_where_and_what_to_do(self):
        x, out = ["--inputs", self.path("x.npz")], ["-o", self.path("u.sinter")]
        for args, words in ((["frobnicate"], ("'frobnicate' is not a command", "convert, inspect")),
                            (["conver", DIGITS], ("'conver'", "did you mean 'convert'?")), ([], ("no command", "convert, inspect")),
                            (["convert", DIGITS], ("convert: --output is missing", "sinter convert --help")),
                            (["convert", DIGITS, *out, "--shap", "image=1"], ("'--shap' is not a flag", "did you mean '--shape'?")),
                            (["convert", DIGITS, *out, "--stop-after", "-3"], ("--stop-after", "-3", "0 to")),
                            (["convert", DIGITS, *out, "--stop-after", "widen:x"], ("--stop-after widen:x", "PASS:N")),
                            (["convert", DIGITS, *out, "--disable-pass", "x"], ("--disable-pass", "'x' is not a valid value", "there are")),
                            (["convert", DIGITS, *out, "--dump-after", "x"], ("--dump-after", "'x' is not a valid value", "there are")),
                            (["convert", DIGITS, *out, "--keep", "image=float3"], ("'float3' is not a type", "did you mean 'float32'?")),
                            (["convert", DIGITS, *out, "--report", "x.txt"], ("x.txt", ".json, .jsonl or .html")),
                            (["explain", self.digits, ""], ("name is empty", "give")),
                            (["compare", self.digits, self.digits, *x, "--all"], ("--all", "--per-layer")),
                            (["compare", self.digits, self.digits, *x, "--rtol", "-1"], ("--rtol", "-1")),
                            (["bench", self.digits, "--backend", "abacus"], ("--backend abacus", "reference"))):
            with self.subTest(args=args):
                self.expect(2, *args, words=words, lines=1)
                self.assertFalse(os.path.exists(self.path("u.sinter")))

    def test_wrong_use_of_quantization(self):
        """Each is refused before any work, with what to write instead."""
        rng = np.random.default_rng(2)
        images = rng.integers(0, 17, (4, 1, 8, 8)).astype(np.float32)
        data, test, out = self.path("calib.npz"), self.path("test.npz"), self.path("wrong.sinter")
        cli.save_npz(data, {"image": images})
        cli.save_npz(test, {"image": images, "digit": np.arange(4)})
        int8 = ["--quantize", "int8", "--calibrate", data]
        for words, flags in (
                (["--calibrate DATA", ".npz", "int8w"], ["--quantize", "int8"]),
                (["int8w"], ["--quantize", "int4"]),
                (["--quantize int8"], ["--calibrate", data]),
                (["--quantize int8"], ["--min-sqnr", "30"]),
                (["--calibrator"], ["--calibrator", "mse"]),
                (["--calibrate DATA"], ["--samples", "4"]),
                (["--calibrate DATA"], ["--quantize", "int8w", "--samples", "4"]),
                (["magic", "equalize", "leave-float"], [*int8, "--disable-technique", "magic"]),
                (["magic", "minmax", "entropy"], [*int8, "--calibrator", "magic"]),
                (["--label NAME", "'digit'", "--metric sqnr"], [*int8, "--evaluate", test]),
                (["--evaluate DATA"], [*int8, "--label", "digit"]),
                (["--evaluate DATA", "--label NAME"], [*int8, "--max-drop", "0.5%"]),
                (["1%"], [*int8, "--max-drop", "1", "--evaluate", test, "--label", "digit"]),
                (["--quantize int8", "sinter compare"], ["--metric", "sqnr", "--evaluate", test]),
                (["--evaluate DATA"], [*int8, "--metric", "sqnr"]),
                (["--label", "top1"], [*int8, "--metric", "sqnr", "--evaluate", test, "--label", "digit"]),
                (["--min-sqnr", "top1"], [*int8, "--metric", "sqnr", "--evaluate", test, "--max-drop", "1%"]),
                (["nothing", "--report"], [*int8, "--keep-float", "nothing"])):
            self.expect(2, "convert", DIGITS, "-o", out, *flags, words=words, lines=4)
            self.assertFalse(os.path.exists(out), flags)
        for flag in (["--min-sqnr", "30"], ["--max-drop", "1%"], ["--keep-float", "x"], ["--require-int8"], ["--force-int8"],
                     ["--disable-technique", "smooth"], ["--adaptive-rounding"], ["--quantize-config", "x"]):
            self.expect(2, "convert", DIGITS, "-o", out, "--quantize", "int8w", *flag, words=[flag[0], "int8x16"], lines=2)
        for mode in ([], int8):
            self.expect(5, "convert", DIGITS, "-o", out, *mode, "--evaluate", test, "--label", "digits",
                      words=["digits", "'digit'", "'image'"], lines=2)
            self.assertFalse(os.path.exists(out))

    def test_names_that_the_model_lacks(self):
        out = self.path("n.sinter")
        self.expect((2, 3, 5), "convert", DIGITS, "-o", out, "--shape", "nosuch=1,1,8,8", words=("nosuch",))
        self.expect((2, 3, 5), "convert", DIGITS, "-o", out, "--dim", "nosuch=3", words=("nosuch",))
        np.save(self.path("c.npy"), np.zeros(3, np.float32))
        self.expect((2, 3, 5), "convert", DIGITS, "-o", out, "--const", f"nosuch={self.path('c.npy')}",
                  words=("nosuch",))
        self.expect((1, 2, 3, 5), "explain", self.digits, "nosuch", words=("nosuch",))
        self.assertFalse(os.path.exists(out))

    def test_wrong_constants(self):
        out = self.path("w.sinter")
        for kind, a in (("shape", np.zeros((1, 1, 7, 8), np.float32)), ("type", np.zeros((1, 1, 8, 8), np.int64))):
            np.save(self.path(f"{kind}.npy"), a)
            self.expect((3, 5), "convert", DIGITS, "-o", out, "--const", f"image={self.path(f'{kind}.npy')}",
                      words=("image",))
        self.expect(6, "convert", DIGITS, "-o", out, "--const", f"image={self.path('none.npy')}", words=("none.npy",))
        with open(self.path("bad.npy"), "wb") as f:
            f.write(b"\x93NUMPY\x01\x00\xff\xff{'descr'")
        self.expect(5, "convert", DIGITS, "-o", out, "--const", f"image={self.path('bad.npy')}")
        self.assertFalse(os.path.exists(out))


class Files(Case):
    def test_missing_files_are_6(self):
        for args in (["convert", self.path("none.onnx"), "-o", self.path("a.sinter")],
                     ["inspect", self.path("none.sinter")], ["bench", self.path("none.sinter")],
                     ["explain", self.path("none.sinter"), "image"],
                     ["run", self.path("none.sinter"), "--inputs", self.path("x.npz")],
                     ["run", self.digits, "--inputs", self.path("none.npz")],
                     ["compare", DIGITS, self.path("none.sinter"), "--inputs", self.path("x.npz")]):
            with self.subTest(args=args):
                self.expect(6, *args, words=("none.",), lines=2)

    def test_places_that_cannot_be_written_are_6(self):
        os.mkfifo(self.path("pipe"))
        for out in (self.path("no/where.sinter"), self.path("pipe"), self.dir):
            with self.subTest(out=out):
                self.expect(6, "convert", DIGITS, "-o", out)
        # Something that is not a plain file is never replaced by one (think of -o /dev/null, as root).
        self.assertTrue(stat.S_ISFIFO(os.stat(self.path("pipe")).st_mode))
        self.expect(6, "run", self.digits, "--inputs", self.path("x.npz"), "--outputs", self.path("no/where.npz"))
        self.expect(6, "convert", self.dir, "-o", self.path("a.sinter"))

    def test_results_never_replace_what_is_read(self):
        model, arrays, key = self.path("mine.onnx"), self.path("mine.npz"), self.path("mine.key")
        for path, source in ((model, DIGITS), (arrays, self.path("x.npz")), (key, self.digits)):
            with open(path, "wb") as f:
                f.write(contents(source))
        os.symlink("mine.onnx", self.path("alias.sinter"))
        before = [contents(p) for p in (model, arrays, key)]
        for args in (["convert", model, "-o", model], ["convert", model, "-o", self.path("alias.sinter")],
                     ["convert", model, "-o", os.path.join(self.dir, ".", "mine.onnx")],
                     ["convert", model, "-o", arrays, "--const", f"image={arrays}"],
                     ["convert", model, "-o", arrays, "--quantize", "int8", "--calibrate", arrays],
                     ["convert", model, "-o", self.path("r.json"), "--report", self.path("r.json")],
                     ["run", self.digits, "--inputs", arrays, "--outputs", arrays],
                     ["inspect", self.digits, "--memory", "--html", self.digits],
                     ["sign", self.digits, "--key", key, "-o", key]):
            with self.subTest(args=args):
                self.expect(2, *args, words=("would be overwritten", "give another name"), lines=1)
                self.assertEqual(before, [contents(p) for p in (model, arrays, key)])
        self.expect(0, "inspect", self.digits)

    def test_results_never_replace_external_data(self):
        for weights, args in (("weights.bin", ["-o", self.path("./weights.bin")]),
                              ("weights.json", ["-o", self.path("split.sinter"), "--report", self.path("weights.json")])):
            with self.subTest(args=args):
                onnx.save(onnx.load(DIGITS), self.path("split.onnx"), save_as_external_data=True, location=weights, size_threshold=0)
                before = contents(self.path(weights))
                self.expect(2, "convert", self.path("split.onnx"), *args, words=("external data", "would be overwritten"))
                self.assertEqual(before, contents(self.path(weights)))
        self.expect(0, "convert", self.path("split.onnx"), "-o", self.path("split.sinter"))

    def test_a_report_without_a_place_is_found_before_the_work(self):
        out = self.path("early.sinter")
        self.expect(6, "convert", DIGITS, "-o", out, "--report", self.path("no/r.json"), words=("folder", "create it"), lines=1)
        self.assertFalse(os.path.exists(out))

    def test_files_of_the_other_kind(self):
        self.expect(3, "convert", self.digits, "-o", self.path("again.sinter"), words=(".sinter file", "give the ONNX model"))
        self.expect(4, "tune", DIGITS, words=("not a Sinter model file", "sinter convert"), lines=1)

    def test_a_long_chain_behind_an_if(self):
        """Results of two ranks: what their readers read is followed back, however far."""
        flat, tall = (helper.make_graph([helper.make_node(op, inputs, [out])], out, [],
                                        [helper.make_tensor_value_info(out, TensorProto.FLOAT, None)])
                      for op, inputs, out in (("Identity", ["x"], "t"), ("Unsqueeze", ["x", "axis"], "e")))
        chain = [helper.make_node("Neg", [f"s{i}"], [f"s{i + 1}"]) for i in range(100_000)]
        graph = helper.make_graph(
            [helper.make_node("If", ["c"], ["r"], then_branch=flat, else_branch=tall), *chain,
             helper.make_node("Reshape", ["r", f"s{len(chain)}"], ["y"])], "g",
            [helper.make_tensor_value_info("c", TensorProto.BOOL, []), helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            [helper.make_tensor("axis", TensorProto.INT64, [1], [0]), helper.make_tensor("s0", TensorProto.INT64, [2], [2, 2])])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), self.path("chain.onnx"))
        self.expect(0, "convert", self.path("chain.onnx"), "-o", self.path("chain.sinter"), "--quiet")

    def test_many_parts_of_one_join(self):
        """20,000 values that are live at once lie inside one: their bytes are compared, not each with each. About 12 s."""
        n = 20_000
        names = [f"{kind}{i}" for kind in ("part", "sine") for i in range(n)]
        nodes = [helper.make_node("Split", ["x"], names[:n], axis=0, num_outputs=n),
                 *(helper.make_node("Sin", [names[i]], [names[n + i]]) for i in range(n)),
                 helper.make_node("Concat", names[n:], ["y"], axis=0)]
        m = model_of(nodes, [value("x", [n, 8])], [value("y", [n, 8])], opset=18)
        path = self.save("parts.onnx", m)
        self.expect(0, "convert", path, "-o", self.path("parts.sinter"), "--quiet")

    def test_integers_of_products_over_the_width_of_images(self):
        """The channels of a convolution are no columns of the products behind it, whose x they scale."""
        r = np.random.default_rng(0)
        weights = [onnx.numpy_helper.from_array(r.normal(size=shape).astype(np.float32), name)
                   for name, shape in (("w", (4, 3, 3, 3)), ("a", (32, 32)), ("b", (32, 32)))]
        nodes = [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 4), helper.make_node("MatMul", ["c", "a"], ["d"]),
                 helper.make_node("Relu", ["d"], ["e"]), helper.make_node("MatMul", ["e", "b"], ["y"])]
        path = self.save("widths.onnx", model_of(nodes, [value("x", [1, 3, 5, 32])], [value("y", [1, 4, 5, 32])], weights))
        cli.save_npz(self.path("widths.npz"), {"x": r.normal(size=(8, 3, 5, 32)).astype(np.float32)})
        self.expect(0, "convert", path, "-o", self.path("widths.sinter"), "--quantize", "int8", "--force-int8", "--calibrate",
                    self.path("widths.npz"))
        self.expect(0, "compare", path, self.path("widths.sinter"), "--inputs", self.path("widths.npz"))

    def test_broken_onnx_files(self):
        good = contents(DIGITS)
        broken = {"empty": b"", "text": b"hello world\n", "zeros": b"\0" * 64, "ones": b"\xff" * 64,
                  "npz": contents(self.path("x.npz")), "sinter": contents(self.digits),
                  **{f"cut{n}": good[:n] for n in (1, 2, 10, 100, len(good) // 2, len(good) - 1)}}
        for name, data in broken.items():
            with self.subTest(name=name):
                r = self.refused(f"{name}.onnx", data, code=(3, 4))
                self.assertLessEqual(len(r.err.strip().splitlines()), 3, r.err)

    def test_damaged_model_files_are_4(self):
        good = contents(self.digits)
        flips = {f"bit at {n}": good[:n] + bytes([good[n] ^ 0x40]) + good[n + 1:]
                 for n in (0, 5, 9, 17, 33, 70, 130, len(good) // 3, len(good) // 2, len(good) - 1)}
        for name, data in {"empty": b"", "eight": good[:8], "header": good[:64], "cut": good[:-1],
                           "longer": good + b"\0", "text": b"hello world\n", **flips}.items():
            with self.subTest(name=name):
                path = self.save("damaged.sinter", data)
                self.expect(4, "run", path, "--inputs", self.path("x.npz"), lines=2)
                self.expect(4, "inspect", path, lines=2)

    def test_an_older_file_survives_a_refusal(self):
        out = self.path("keep.sinter")
        with open(out, "wb") as f:
            f.write(b"precious")
        self.expect((3, 4), "convert", self.save("bad.onnx", b"nothing"), "-o", out)
        with open(out, "rb") as f:
            self.assertEqual(f.read(), b"precious")

    def test_no_rubbish_beside_the_result(self):
        place = self.path("clean")
        os.makedirs(place)
        self.expect(0, "convert", DIGITS, "-o", os.path.join(place, "m.sinter"))
        self.assertEqual(os.listdir(place), ["m.sinter"])

    def test_same_input_same_bytes(self):
        self.expect(0, "convert", DIGITS, "-o", self.path("again.sinter"))
        with open(self.digits, "rb") as a, open(self.path("again.sinter"), "rb") as b:
            self.assertEqual(a.read(), b.read())


class Run(Case):
    def test_inspect_shows_every_profile(self):
        file = os.path.join(cli.REPO, "tests", "format", "corpus", "v3_profiles.sinter")
        shown = json.loads(self.expect(0, "inspect", file, "--json").out)
        self.assertEqual([(p["name"], p["target"], p["step_count"], p["default"]) for p in shown["profiles"]],
                         [("branches", "elsewhere", 1, False), ("selects", "here", 3, True)])
        self.assertEqual(shown["step_count"], 3)
        for name, operations in (("branches", ["If", "Add", "Mul"]), ("selects", ["Add", "Mul", "Where"])):
            steps = json.loads(self.expect(0, "inspect", file, "--steps", "--target", name, "--json").out)["steps"]
            self.assertEqual([s["op"] for s in steps], operations)
        self.expect(0, "inspect", file, words=("branches: 1 steps", "selects: 3 steps", "run here"))
        self.expect(5, "inspect", file, "--target", "nothing", words=("no profile", "'nothing'", "branches, selects"), lines=1)

    def outputs(self, *extra, source="x.npz", code=0):
        out = self.path("y.npz")
        if os.path.exists(out):
            os.unlink(out)
        self.expect(code, "run", self.digits, "--inputs", self.path(source), "--outputs", out, *extra)
        return cli.load_npz(out) if code == 0 else self.assertFalse(os.path.exists(out))

    def test_outputs_are_named_as_in_the_onnx_file(self):
        y = self.outputs()
        self.assertEqual(set(y), {"probabilities"})
        self.assertEqual((y["probabilities"].shape, y["probabilities"].dtype), ((1, 10), np.float32))
        self.assertAlmostEqual(float(y["probabilities"].sum()), 1, places=4)

    def test_threads_change_no_bit_and_backends_agree(self):
        y = self.outputs()["probabilities"]
        self.assertEqual(self.outputs("--threads", 2)["probabilities"].tobytes(), y.tobytes())
        reference = self.outputs("--backend", "reference")["probabilities"]
        self.assertLessEqual(float(np.abs(reference - y).max()), 1e-5)

    def test_npy_and_pb_and_compressed(self):
        y = self.outputs()["probabilities"]
        np.save(self.path("x.npy"), self.image)
        np.savez_compressed(self.path("z.npz"), image=self.image)
        np.save(self.path("fortran.npy"), np.asfortranarray(self.image))
        np.save(self.path("big.npy"), self.image.astype(">f4"))
        with open(self.path("x.pb"), "wb") as f:
            f.write(onnx.numpy_helper.from_array(self.image, "image").SerializeToString())
        for source in ("x.npy", "z.npz", "x.pb"):
            with self.subTest(source=source):
                self.assertEqual(self.outputs(source=source)["probabilities"].tobytes(), y.tobytes())
        for source in ("fortran.npy", "big.npy"):  # read rightly, or refused: never misread
            with self.subTest(source=source):
                r = cli.call(SINTER, "run", self.digits, "--inputs", self.path(source), "--outputs",
                             self.path("odd.npz"))
                self.assertIn(r.code, (0, 5), r.why())
                if r.code == 0:
                    self.assertEqual(cli.load_npz(self.path("odd.npz"))["probabilities"].tobytes(), y.tobytes())

    def test_each(self):
        given = np.concatenate([self.image, self.image * 0.5, self.image * 0])
        cli.save_npz(self.path("each.npz"), {"image": given})
        y = self.outputs("--each", source="each.npz")["probabilities"]
        self.assertEqual(y.shape, (3, 10))
        self.assertEqual(y[0].tobytes(), self.outputs()["probabilities"][0].tobytes())
        self.assertGreater(float(np.abs(y[0] - y[1]).max()), 0)

    def test_summary(self):
        r = self.expect(0, "run", self.digits, "--inputs", self.path("x.npz"), words=("probabilities",))
        self.assertIn("probabilities", r.out)

    def test_wrong_inputs_are_5(self):
        bad = {"shape": {"image": self.image[:, :, :7]}, "rank": {"image": self.image[0]},
               "type": {"image": self.image.astype(np.int32)}, "double": {"image": self.image.astype(np.float64)},
               "name": {"picture": self.image}, "nothing": {}}
        for name, arrays in bad.items():
            with self.subTest(name=name):
                cli.save_npz(self.path(f"{name}.npz"), arrays)
                self.expect(5, "run", self.digits, "--inputs", self.path(f"{name}.npz"), words=("image",), lines=3)
                self.outputs(source=f"{name}.npz", code=5)
        self.expect(5, "run", self.digits, "--inputs", self.path("shape.npz"), words=("8", "7"))
        self.expect(5, "run", self.digits, "--inputs", self.path("type.npz"), words=("int32", "float32"))

    def test_broken_array_files_are_5(self):
        good = contents(self.path("x.npz"))
        np.save(self.path("t.npy"), self.image)
        npy = contents(self.path("t.npy"))
        broken = {"empty.npz": b"", "text.npz": b"hello world", "cut.npz": good[:len(good) // 2], "empty.npy": b"",
                  "text.npy": b"hello", "cut.npy": npy[:-8], "header.npy": npy[:20], "wild.npy":
                  npy.replace(b"(1, 1, 8, 8)", b"(1, 1, 8,-8)"), "huge.npy":
                  npy.replace(b"(1, 1, 8, 8), }  ", b"(99999999999,), }")}
        for name, data in broken.items():
            with self.subTest(name=name):
                self.save(name, data)
                self.expect(5, "run", self.digits, "--inputs", self.path(name), lines=3)


class Stacks(Case):
    def test_a_stack_names_each(self):
        cli.save_npz(self.path("six.npz"), {"image": np.repeat(self.image, 6, 0)})
        six = ("--inputs", self.path("six.npz"))
        self.expect(5, "run", self.digits, *six, words=("takes float32[1,1,8,8]", "6 samples", "--each"))
        self.expect(0, "run", self.digits, *six, "--each")
        cli.save_npz(self.path("bad.npz"), {"image": np.ones((6, 1, 8, 9), np.float32)})
        self.assertNotIn("--each", self.expect(5, "run", self.digits, "--inputs", self.path("bad.npz")).err)

    def test_quantize_without_data_names_pictures(self):
        self.expect(2, "convert", DIGITS, "-o", self.path("q.sinter"), "--quantize", "int8",
                    words=("--calibrate DATA", "pictures", ".png", ".wav", "folder", "cmd:COMMAND"))


class Embed(Case):
    """A model as source files, with sizes that inspect states as well; tests/microcontroller and tests/install run them."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.board = cls.path("board.sinter")
        r = cli.call(SINTER, "convert", DIGITS, "--target", "cortex-m4,portable", "-o", cls.board, timeout=60)
        if r.code != 0:
            raise AssertionError(r.why())

    def sizes(self, name):
        with open(self.path(name + ".h")) as f:
            text = f.read()
        return {k: int(v) for k, v in re.findall(rf"#define {name.upper()}_(\w+) (\d+)u", text.split("#else")[-1])}

    def test_sizes_are_those_of_the_target(self):
        for name, target, exact in (("small", "cortex-m4", True), ("wide", "portable", False)):
            self.expect(0, "embed", self.board, "-o", self.path(name), "--target", target)
            shown = json.loads(self.expect(0, "inspect", self.board, "--target", target, "--json").out)["target_memory"]
            sizes = self.sizes(name)
            self.assertEqual((shown["stable_open_bytes"], shown["stable_retained_bytes"], shown["session_bytes"]),
                             (sizes["OPEN_BYTES"], sizes["RETAINED_BYTES"], sizes["SESSION_BYTES"]))
            self.assertEqual(exact, shown["session_exact"])
            self.assertEqual(256, sizes["INPUT_0_BYTES"])
        self.assertLess(self.sizes("small")["SESSION_BYTES"], self.sizes("wide")["SESSION_BYTES"])

    def test_the_array_is_the_file(self):
        self.expect(0, "embed", self.board, "-o", self.path("net"), "--target", "portable", "--quiet")
        with open(self.path("net.c")) as f:
            numbers = re.search(r"= \{\n(.*)\};", f.read(), re.S)[1]
        self.assertEqual(contents(self.board), bytes(int(n) for n in numbers.replace("\n", "").rstrip(",").split(",")))
        shown = json.loads(self.expect(0, "inspect", self.board, "--steps", "--target", "portable", "--json").out)
        with open(self.path("net.cmake")) as f:
            listed = set(re.search(r"SINTER_OPERATIONS ([^)]*)\)", f.read())[1].split())
        self.assertEqual({s["op"] for s in shown["steps"]}, listed)

    def test_wrong_use(self):
        self.expect(2, "embed", self.board, "-o", self.path("net"), words=("several targets", "cortex-m4, portable"), lines=1)
        self.expect(2, "embed", self.board, "-o", self.path("net"), "--target", "armv7", words=("no profile", "armv7"), lines=1)
        for bad in ("9net", "my-net", "net.h"):
            self.expect(2, "embed", self.board, "-o", self.path(bad), "--target", "portable", words=("C variable",), lines=1)
        self.expect(5, "embed", self.digits, "-o", self.path("net2"), words=("depends on the machine", "--target"), lines=1)
        self.expect(4, "embed", DIGITS, "-o", self.path("net2"), lines=1)
        self.expect(6, "embed", self.board, "-o", self.path("none/net2"), "--target", "portable", lines=1)
        self.assertEqual([f for f in os.listdir(self.dir) if f.startswith("net2")], [])


class Signatures(Case):
    """Keys, signing in place and elsewhere, and refusing what a key did not sign."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        r = cli.call(SINTER, "keygen", cls.path("ours"))
        if r.code == 2 and "libsodium" in r.err:
            raise unittest.SkipTest("this build has no signatures")
        if r.code != 0 or cli.call(SINTER, "keygen", cls.path("theirs")).code != 0:
            raise AssertionError(r.why())
        cls.signed = cls.path("signed.sinter")
        r = cli.call(SINTER, "sign", cls.digits, "--key", cls.path("ours.key"), "-o", cls.signed)
        if r.code != 0:
            raise AssertionError(r.why())

    def opening(self, model):
        """Every command that opens a .sinter file."""
        x = ("--inputs", self.path("x.npz"))
        return (["run", model, *x], ["inspect", model], ["explain", model, "image"], ["compare", model, model, *x],
                ["compare", DIGITS, model, *x], ["bench", model, "--seconds", "0"])

    def secret(self):
        with open(self.path("ours.key")) as f:
            return f.read().split()[-1]

    def test_keys(self):
        self.assertEqual(stat.S_IMODE(os.stat(self.path("ours.key")).st_mode), 0o600)
        before = contents(self.path("ours.key")), contents(self.path("ours.pub"))
        self.expect(6, "keygen", self.path("ours"), words=("already exists",), lines=1)
        os.unlink(self.path("theirs.key"))  # a pair that is half there
        self.expect(6, "keygen", self.path("theirs"), words=("already exists",), lines=1)
        self.assertFalse(os.path.exists(self.path("theirs.key")))
        self.assertEqual((contents(self.path("ours.key")), contents(self.path("ours.pub"))), before)
        self.expect(6, "keygen", self.path("no/where"))
        r = self.expect(0, "keygen", self.path("third"), "--json")
        key = json.loads(r.out)
        self.assertEqual(key["key_id"], key["public_key"][:16])
        self.assertIn(key["public_key"], contents(self.path("third.pub")).decode())
        self.assertNotIn(contents(self.path("third.key")).decode().split()[-1], r.out + r.err)

    def test_signed_files_pass_with_their_key(self):
        for args in self.opening(self.signed):
            with self.subTest(args=args):
                self.expect(0, *args)
                self.expect(0, *args, "--public-key", self.path("ours.pub"))

    def test_others_are_refused(self):
        with open(self.path("other.pub"), "w") as f:
            f.write("sinter-ed25519-public " + "5" * 64 + "\n")
        flipped = contents(self.signed)
        flipped = flipped[:-9] + bytes([flipped[-9] ^ 1]) + flipped[-8:]
        cases = {("unsigned", self.digits, "ours.pub"): "not signed", ("other key", self.signed, "other.pub"):
                 "a key other", ("changed", self.save("flipped.sinter", flipped), "ours.pub"): "does not match"}
        for (name, model, key), why in cases.items():
            for args in self.opening(model):
                with self.subTest(name=name, args=args):
                    self.expect(4, *args, "--public-key", self.path(key), words=(why, os.path.basename(model)), lines=1)

    def test_every_byte_of_the_head(self):
        good = contents(self.signed)
        for n in list(range(0, 64)) + list(range(64, 512, 13)):
            path = self.save("head.sinter", good[:n] + bytes([good[n] ^ 0x10]) + good[n + 1:])
            self.expect(4, "inspect", path, "--public-key", self.path("ours.pub"), lines=1)

    def test_inspect_tells(self):
        facts = lambda *args: json.loads(self.expect(0, "inspect", *args, "--json").out)  # noqa: E731
        self.assertFalse(facts(self.digits)["signed"])
        key = contents(self.path("ours.pub")).decode().split()[-1]
        f = facts(self.signed)
        self.assertEqual((f["signed"], f["public_key"], f["key_id"], f["trusted"]), (True, key, key[:16], False))
        self.assertTrue(facts(self.signed, "--public-key", self.path("ours.pub"))["trusted"])
        self.expect(0, "inspect", self.signed, words=("signed", key[:16], "give --public-key"))
        self.expect(0, "inspect", self.digits, words=("signed    no",))

    def test_inspect_states_what_models_take_together(self):
        both = json.loads(self.expect(0, "inspect", self.digits, self.signed, "--memory", "--json").out)
        one = json.loads(self.expect(0, "inspect", self.digits, "--json").out)
        arena = one["arena_bytes"] - one["state_bytes"]
        self.assertEqual([m["shareable_bytes"] for m in both["models"]], [arena, arena])
        self.assertEqual(both["shared_arena_bytes"], arena)
        self.assertEqual(both["apart_bytes"], sum(m["retained_bytes"] + m["session_bytes"] for m in both["models"]))
        self.assertEqual(both["together_bytes"],
                         arena + sum(m["retained_bytes"] + m["sharing_session_bytes"] for m in both["models"]))
        self.assertLess(both["together_bytes"], both["apart_bytes"])
        self.expect(0, "inspect", self.digits, self.signed, "--memory", words=("apart", "together", "shared arena"))
        self.expect(2, "inspect", self.digits, self.signed, words=("give --memory",))
        self.expect(2, "inspect", self.digits, self.signed, "--memory", "--steps", words=("--steps",))

    def test_convert_signs_the_same_bytes_as_sign(self):
        out = self.path("converted.sinter")
        r = self.expect(0, "convert", DIGITS, "-o", out, "--sign", self.path("ours.key"), "--json")
        self.assertEqual(contents(out), contents(self.signed))
        self.assertEqual(json.loads(r.out)["key_id"], contents(self.path("ours.pub")).decode().split()[-1][:16])
        self.assertNotIn(self.secret(), r.out + r.err)

    def test_in_place(self):
        place = self.path("place")
        os.makedirs(place)
        model = self.save("place/m.sinter", contents(self.digits))
        self.expect(0, "sign", model, "--key", self.path("ours.key"))
        self.assertEqual(contents(model), contents(self.signed))
        self.expect(0, "sign", model, "--key", self.path("ours.key"), "--quiet")
        self.assertEqual(contents(model), contents(self.signed))
        self.assertEqual(os.listdir(place), ["m.sinter"])

    def test_what_cannot_be_signed(self):
        good = contents(self.digits)
        out = self.path("out.sinter")
        for data in (b"", b"hello", good[:-1], good[:700] + bytes([good[700] ^ 1]) + good[701:]):
            model = self.save("broken.sinter", data)
            self.expect(4, "sign", model, "--key", self.path("ours.key"), "-o", out, lines=1)
            self.expect(4, "sign", model, "--key", self.path("ours.key"), lines=1)
            self.assertEqual(contents(model), data)
        self.expect(6, "sign", self.digits, "--key", self.path("ours.key"), "-o", self.path("no/where.sinter"))
        self.expect(6, "sign", self.path("none.sinter"), "--key", self.path("ours.key"), "-o", out)
        self.assertEqual([f for f in os.listdir(self.dir) if f.startswith("out.sinter")], [])

    def test_wrong_keys(self):
        out = self.path("wk.sinter")
        tell = {"ours.pub": "public", "empty.key": "not hold a key", "text.key": "not a key file", "short.key": "64"}
        for name, text in (("empty.key", ""), ("text.key", "hello " + self.secret()),
                           ("short.key", "sinter-ed25519-secret " + self.secret()[:-1])):
            with open(self.path(name), "w") as f:
                f.write(text)
        for name, word in tell.items():
            for args in (["sign", self.digits, "-o", out, "--key"], ["convert", DIGITS, "-o", out, "--sign"]):
                r = self.expect(5, *args, self.path(name), words=(word,), lines=1)
                self.assertNotIn(self.secret()[:20], r.out + r.err)
        self.expect(6, "sign", self.digits, "-o", out, "--key", self.path("none.key"), words=("none.key",), lines=1)
        r = self.expect(5, "inspect", self.signed, "--public-key", self.path("ours.key"), words=("secret",), lines=1)
        self.assertNotIn(self.secret()[:20], r.out + r.err)
        self.expect(6, "inspect", self.signed, "--public-key", self.path("none.pub"), lines=1)
        self.expect(2, "sign", self.digits)
        self.assertFalse(os.path.exists(out))


class Pack(Case):
    """Packed weights in the file."""

    def facts(self, model):
        return json.loads(self.expect(0, "inspect", model, "--json").out)

    def test_a_file_is_packed(self):
        before = self.facts(self.digits)
        self.assertGreater(before["packed_bytes"], 0)
        self.assertEqual(before["packings_in_file"], 0)
        out = self.path("packed.sinter")
        report = json.loads(self.expect(0, "pack", self.digits, "-o", out, "--json").out)
        self.assertEqual(report["packings"], before["packings"])
        self.assertEqual(report["file_bytes"], os.path.getsize(out))
        after = self.facts(out)
        self.assertEqual(after["packed_bytes"], 0)
        self.assertEqual(after["packings_in_file"], before["packings"])
        self.assertLess(after["session_bytes"], before["session_bytes"])
        text = self.expect(0, "inspect", out).out
        self.assertIn(f"{before['packings']} of {before['packings']} packed weights", text)
        self.expect(0, "compare", self.digits, out, "--random", "2", "--atol", "0", "--rtol", "0")
        once = contents(out)
        self.assertEqual(json.loads(self.expect(0, "pack", out, "--json").out)["added"], 0)
        self.assertEqual(contents(out), once)
        self.expect(0, "pack", out, "--threads", "2", words=("0 of them new",))

    def test_conversion_packs(self):
        out, key = self.path("cp.sinter"), self.path("pack")
        report = json.loads(self.expect(0, "convert", DIGITS, "-o", out, "--pack", "--json").out)
        self.assertEqual(report["packed"]["file_bytes"], os.path.getsize(out))
        self.assertEqual(self.facts(out)["packed_bytes"], 0)
        self.expect(0, "keygen", key)
        self.expect(0, "convert", DIGITS, "-o", out, "--pack", "--sign", key + ".key")
        self.expect(0, "inspect", out, "--public-key", key + ".pub", words=("the given one", "packed weights of this machine"))
        self.expect(0, "pack", out, words=("0 of them new",))  # its signature stays
        self.expect(0, "sign", self.digits, "-o", out, "--key", key + ".key")
        self.expect(4, "pack", out, words=("signed", "then sign"), lines=1)
        other = "armv7" if "x86" in os.uname().machine else "x86_64"
        self.expect(2, "convert", DIGITS, "-o", self.path("no.sinter"), "--pack", "--target", other,
                    words=("--pack", other, "pack_file"), lines=1)
        self.assertEqual([f for f in os.listdir(self.dir) if f.startswith("no.sinter") or ".partial" in f], [])

    def test_a_file_of_packed_weights_alone(self):
        packed, only = self.path("packed.sinter"), self.path("only.sinter")
        self.expect(0, "pack", self.digits, "-o", packed)
        report = json.loads(self.expect(0, "pack", self.digits, "-o", only, "--packed-only", "--json").out)
        self.assertGreater(report["constants_left_out"], 0)
        self.assertEqual(report["file_bytes"], os.path.getsize(only))
        self.assertEqual(report["added_bytes"], os.path.getsize(only) - os.path.getsize(self.digits))
        self.assertLess(os.path.getsize(only), os.path.getsize(packed))
        before, after = self.facts(self.digits), self.facts(only)
        self.assertEqual(after["packings_in_file"], before["packings"])
        self.assertEqual(after["constants_left_out"], report["constants_left_out"])
        self.assertEqual(after["weight_bytes"] + after["left_out_bytes"], before["weight_bytes"])
        self.expect(0, "inspect", only, words=("left out", "packed form alone"))
        self.expect(0, "compare", self.digits, only, "--random", "2", "--atol", "0", "--rtol", "0")
        self.expect(0, "compare", DIGITS, only, "--random", "2", "--per-layer")
        self.expect(0, "bench", only, "--seconds", "0.05")
        self.expect(0, "run", only, "--random", "2", "--profile")
        # Again, with packings that are there; other sessions.
        once = contents(only)
        self.expect(0, "pack", only, "-o", only, "--packed-only", words=("0 of them new",))
        self.expect(0, "pack", only, words=("0 of them new",))
        self.assertEqual(contents(only), once)
        self.expect(2, "pack", self.digits, "--packed-only", words=("--packed-only", "-o FILE"), lines=1)
        for other in (["run", only, "--random", "2", "--backend", "reference"], ["inspect", only, "--backend", "reference"]):
            self.expect(4, *other, words=("step", "only as another machine", "use a file with constants"), lines=1)
        self.expect(5, "tune", only, words=("tune", "packed form alone"), lines=1)
        self.expect(5, "embed", only, "-o", self.path("only"), words=("embed", "packed form alone"), lines=1)
        self.assertEqual(contents(only), once)

    def test_conversion_leaves_out(self):
        out, key = self.path("co.sinter"), self.path("only")
        report = json.loads(self.expect(0, "convert", DIGITS, "-o", out, "--packed-only", "--strip", "--json").out)
        self.assertGreater(report["packed"]["constants_left_out"], 0)
        self.assertEqual(report["packed"]["file_bytes"], os.path.getsize(out))
        self.expect(0, "compare", self.digits, out, "--random", "2", "--atol", "0", "--rtol", "0")
        self.expect(0, "keygen", key)
        self.expect(0, "convert", DIGITS, "-o", out, "--packed-only", "--sign", key + ".key", words=("left out",))
        self.expect(0, "run", out, "--random", "2", "--public-key", key + ".pub")
        self.expect(2, "convert", DIGITS, "-o", out, "--packed-only", "--target", "native,portable",
                    words=("--packed-only", "portable"), lines=1)
        self.expect(0, "convert", DIGITS, "-o", out, "--target", "native,portable")
        self.expect(4, "pack", out, "-o", out, "--packed-only", words=("2 targets",), lines=1)

    def test_what_cannot_be_packed(self):
        out = self.path("out.sinter")
        good = contents(self.digits)
        for data in (b"", b"hello", good[:-1], good[:700] + bytes([good[700] ^ 1]) + good[701:]):
            model = self.save("broken.sinter", data)
            self.expect(4, "pack", model, "-o", out, lines=1)
            self.assertEqual(contents(model), data)
        self.expect(6, "pack", self.path("none.sinter"), "-o", out, lines=1)
        self.expect(6, "pack", self.digits, "-o", self.path("no/where.sinter"), lines=1)
        self.expect(2, "pack", self.digits, "--backend", "gpu", words=("gpu",))
        self.expect(2, "pack")
        self.assertEqual([f for f in os.listdir(self.dir) if f.startswith("out.sinter")], [])


class Tune(Case):
    """Kernels chosen by times, which a file can give as well, so that what is chosen does not depend on this machine."""

    def steps(self, model):
        return json.loads(self.expect(0, "inspect", model, "--steps", "--json").out)["steps"]

    def times(self, name, lines, profile=None):
        if profile is None:
            profile = json.loads(self.expect(0, "inspect", self.digits, "--json").out)["profiles"][0]["name"]
        with open(self.path(name), "w") as f:
            f.write(f"profile {profile}\n" + "".join(f"{line}\n" for line in lines))
        return self.path(name)

    def slower(self):
        """The first step that several backends can compute, and times by which its last candidate is the fastest."""
        for i, step in enumerate(self.steps(self.digits)):
            c = step.get("candidates", [])
            if len(c) > 1:
                return i, c, [f"0 {i} {name} {1000 * (len(c) - n)}" for n, name in enumerate(c)]
        raise AssertionError("no step has several candidates")

    def test_times_decide(self):
        i, candidates, lines = self.slower()
        out = self.path("tuned.sinter")
        r = self.expect(0, "tune", self.digits, "-o", out, "--times", self.times("t.txt", lines), "--json")
        self.assertEqual([(c["step"], c["planned"], c["chosen"]) for c in json.loads(r.out)["changed"]],
                         [(i, candidates[0], candidates[-1])])
        before, after = self.steps(self.digits), self.steps(out)
        self.assertEqual(after[i]["candidates"], [candidates[-1], *candidates[:-1]])
        self.assertEqual([s["candidates"] for n, s in enumerate(after) if n != i and "candidates" in s],
                         [s["candidates"] for n, s in enumerate(before) if n != i and "candidates" in s])
        self.expect(0, "compare", self.digits, out, "--inputs", self.path("x.npz"))
        self.assertEqual(self.expect(0, "run", out, "--inputs", self.path("x.npz")).err, "", "nothing falls back")

    def test_steps_that_share_a_plan(self):
        """Four equal steps, which have one plan in the file: a choice changes the steps that it names alone, again and again."""
        nodes = [helper.make_node("Add", ["x" if i == 0 else f"v{i}", "y"], [f"v{i + 1}"]) for i in range(4)]
        model, out = self.path("equal.sinter"), self.path("equal.tuned.sinter")
        shape = [1, 64, 64]
        self.expect(0, "convert", self.save("equal.onnx", model_of(nodes, [value("x", shape), value("y", shape)], [value("v4", shape)])),
                    "-o", model)
        planned = [s["candidates"] for s in self.steps(model)]
        self.assertEqual(planned, [planned[0]] * 4)
        self.assertGreater(len(planned[0]), 1)
        rotated = [planned[0][-1], *planned[0][:-1]]
        times = {n: [f"0 {step} {name} {1000 * (len(planned[0]) - k)}" for step in n for k, name in enumerate(planned[0])]
                 for n in ((1, 2), (3,))}
        self.expect(0, "tune", model, "-o", out, "--times", self.times("equal.txt", times[1, 2]), words=("changed    2 steps",))
        self.assertEqual([s["candidates"] for s in self.steps(out)], [planned[0], rotated, rotated, planned[0]])
        self.assertLess(os.path.getsize(out) - os.path.getsize(model), 128)
        self.expect(0, "tune", out, "--times", self.times("equal.txt", times[3,]), words=("changed    1 steps",))
        self.assertEqual([s["candidates"] for s in self.steps(out)], [planned[0], rotated, rotated, rotated])
        cli.save_npz(self.path("equal.npz"), {n: np.ones(shape, np.float32) for n in "xy"})
        self.expect(0, "compare", model, out, "--inputs", self.path("equal.npz"))

    def test_names_kernels(self):
        """Steps that are planned for the reference kernels come back, with the names of the kernels that are faster."""
        planned, tuned = self.path("highway.sinter"), self.path("highway.tuned.sinter")
        self.expect(0, "convert", DIGITS, "-o", planned, "--backends", "simd")
        lines = [f"0 {i} {name} {1000 if name == 'reference' else 2000}" for i, step in enumerate(self.steps(planned))
                 for name in step.get("candidates", ())]
        self.expect(0, "tune", planned, "--times", self.times("reference.txt", lines))
        changed = json.loads(self.expect((0, 1), "tune", planned, "-o", tuned, "--seconds", "0.1", "--json").out)["changed"]
        names = {c.get("chosen_kernel", "") for c in changed if c["op"] == "Conv"}
        self.assertTrue(names and all(n.startswith("f32_conv_") for n in names), names)
        self.assertFalse([c for c in changed if "planned_kernel" in c], "the reference kernels have no names")

    def test_noise_decides_nothing(self):
        i, c, _ = self.slower()
        lines = [f"0 {i} {c[0]} 100000", f"0 {i} {c[1]} 96000"]
        r = self.expect(0, "tune", self.digits, "--times", self.times("n.txt", lines), words=("changed    0 steps",))
        self.assertNotIn("wrote", r.out)

    def test_measures_here(self):
        out = self.path("here.sinter")
        r = self.expect((0, 1), "tune", self.digits, "-o", out, "--seconds", "0.05", "--json")
        facts = json.loads(r.out)
        self.assertGreater(facts["timed_steps"], 0)
        self.assertEqual(os.path.exists(out), r.code == 0)
        if r.code == 0:
            self.expect(0, "compare", self.digits, out, "--inputs", self.path("x.npz"))

    def test_wrong_times(self):
        before = contents(self.digits)
        for name, lines, profile, word in (("a", ["0 1 simd"], None, "line 2"), ("b", ["0 1 simd -4"], None, "line 2"),
                                           ("c", ["0 9999 simd 5"], None, "no step 9999"), ("d", ["7 0 simd 5"], None, "no step 0"),
                                           ("e", [], "pdp11", "profile 'pdp11'"), ("f", ["0 1 simd 5 6"], None, "line 2")):
            self.expect(5, "tune", self.digits, "--times", self.times(name, lines, profile), words=(word,), lines=1)
        self.expect(6, "tune", self.digits, "--times", self.path("nowhere.txt"), lines=1)
        self.expect(6, "tune", self.path("nowhere.sinter"), lines=1)
        self.expect(4, "tune", self.path("x.npz"), lines=1)
        self.assertEqual(contents(self.digits), before)

    def test_signed(self):
        if cli.call(SINTER, "keygen", self.path("k")).code != 0:
            self.skipTest("this build has no signatures")
        signed, out, times = self.path("s.sinter"), self.path("st.sinter"), self.times("s.txt", self.slower()[2])
        self.expect(0, "sign", self.digits, "--key", self.path("k.key"), "-o", signed)
        self.expect(2, "tune", signed, "-o", out, "--times", times, words=("--key",), lines=1)
        self.assertFalse(os.path.exists(out))
        self.expect(0, "tune", signed, "-o", out, "--times", times, "--key", self.path("k.key"))
        self.expect(0, "inspect", out, "--public-key", self.path("k.pub"))


class Ranges(Case):
    """Calibration data in every form, and refused before anything runs."""

    GENERATOR = """
import io, sys
import numpy as np
for x in np.load(sys.argv[1])["image"]:
    if len(sys.argv) > 2:
        b = io.BytesIO()
        np.savez_compressed(b, image=x[None])
        sys.stdout.buffer.write(b.getvalue())
    else:
        np.save(sys.stdout.buffer, x[None])
"""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.images = np.random.default_rng(2).integers(0, 17, (6, 1, 8, 8)).astype(np.float32)
        np.savez(cls.path("many.npz"), image=cls.images, label=np.array(["a"] * 6))
        with open(cls.path("gen.py"), "w") as f:
            f.write(cls.GENERATOR)

    def ranges(self, data, *more):
        r = self.expect(0, "ranges", DIGITS, "--calibrate", data, "--json", "--quiet", *more)
        return json.loads(r.out)

    def test_every_form_gives_the_same_ranges(self):
        np.savez_compressed(self.path("packed.npz"), image=self.images)
        np.save(self.path("many.npy"), self.images)
        os.makedirs(self.path("folder"), exist_ok=True)
        for i, x in enumerate(self.images):
            np.savez(self.path(f"folder/{i}.npz"), image=x[None])
        np.savez(self.path("columns.npz"), image=np.asfortranarray(self.images))
        command = f"cmd:{sys.executable} {self.path('gen.py')} {self.path('many.npz')}"
        first = self.ranges(self.path("many.npz"))
        self.assertEqual(first["samples"], 6)
        image = next(v for v in first["values"] if v["name"] == "image")
        self.assertEqual((image["min"], image["max"]), (self.images.min(), self.images.max()))
        for data in (self.path("packed.npz"), self.path("many.npy"), self.path("folder"), self.path("columns.npz")):
            self.assertEqual(self.ranges(data)["values"], first["values"], data)
        # Of a stream, whose length is not known, another part is counted where tensors are large; these are not.
        for data in (command, command + " z"):
            self.assertEqual(self.ranges(data)["values"], first["values"], data)

    def test_a_few_samples(self):
        self.assertEqual(self.ranges(self.path("many.npz"), "--samples", 4)["samples"], 4)

    def test_rules(self):
        for rule in ("best", "minmax", "moving-average", "percentile", "percentile=99.9", "entropy", "mse"):
            for v in self.ranges(self.path("many.npz"), "--calibrator", rule)["values"]:
                self.assertLessEqual(v["low"], 0)
                self.assertGreaterEqual(v["high"], 0)
                if rule in ("best", "mse", "minmax"):
                    self.assertGreater(v["sqnr_db"], 25, rule)
        self.expect(2, "ranges", DIGITS, "--calibrate", self.path("many.npz"), "--calibrator", "median")

    def test_wrong_data_is_5(self):
        nan = self.images.copy()
        nan[3, 0, 2, 1] = np.nan
        for name, array, words in (("type", self.images.astype(np.float64), ("image", "float64", "float32")),
                                   ("rank", np.float32(1), ("image", "rank 0")),
                                   ("shape", self.images[:, :, :7], ("image", "[6,1,7,8]", "[N,1,8,8]")),
                                   ("nan", nan, ("image", "sample 3", "[0,0,2,1]"))):
            np.savez(self.path(name + ".npz"), image=array)
            self.expect(5, "ranges", DIGITS, "--calibrate", self.path(name + ".npz"), words=words)
        np.savez(self.path("name.npz"), imago=self.images)
        self.expect(5, "ranges", DIGITS, "--calibrate", self.path("name.npz"), words=("'image'", "'imago'"))
        self.expect(5, "ranges", DIGITS, "--calibrate", "cmd:echo hello", words=("neither .npz nor .npy",))
        self.expect(6, "ranges", DIGITS, "--calibrate", self.path("absent.npz"))


class Arenas(Case):
    UNET = os.path.join(cli.REPO, "tests", "quantize", "nets", "unet.onnx")

    def setUp(self):
        given = onnx.load(self.UNET).graph.input[0]
        shape = [d.dim_value for d in given.type.tensor_type.shape.dim]
        noise = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
        cli.save_npz(self.path("unet.npz"), {given.name: noise})

    def memory(self, file):
        return json.loads(self.expect(0, "inspect", file, "--memory", "--json").out)["memory"]

    def arena(self, file):
        return self.memory(file)["regions"][0]["bytes"]

    def results(self, file, *flags):
        self.expect(0, "run", file, "--inputs", self.path("unet.npz"), "--outputs", self.path("y.npz"), *flags)
        return [array.tobytes() for array in np.load(self.path("y.npz")).values()]

    def test_threads_do_not_raise_the_arena(self):
        arena, results = {}, []
        for planned in (1, 8):
            file = self.path(f"unet{planned}.sinter")
            self.expect(0, "convert", self.UNET, "-o", file, "--plan-threads", planned)
            arena[planned] = self.arena(file)
            for threads in (1, 2, 4, 7, 8):  # also more than there is workspace for
                results += self.results(file, "--threads", threads)
        self.assertEqual(arena[1], arena[8])
        self.assertEqual(len(set(results)), 1)
        for wrong in (0, "many"):
            self.expect(2, "convert", self.UNET, "-o", self.path("no.sinter"), "--plan-threads", wrong)

    def test_steps_in_stripes_need_less(self):
        whole, striped = self.path("whole.sinter"), self.path("striped.sinter")
        for target in ("x86_64", "portable"):
            with self.subTest(target=target):
                # Stripes compute directly, so that the bits are the same.
                convert = ("convert", self.UNET, "--target", target, "--no-winograd")
                self.expect(0, *convert, "-o", whole)
                limit = self.arena(whole) * 3 // 4
                told = json.loads(self.expect(0, *convert, "-o", striped, "--max-arena", limit, "--json").out)
                self.assertGreaterEqual(len(told["stripes"]), 1)
                self.assertEqual(set(told["stripes"][0]), {"first", "last", "steps", "parts"})
                self.assertLess(told["extra_work"], 1)
                self.assertLessEqual(self.arena(striped), limit)
                # Stripes of a step share its packed weights.
                self.assertEqual(self.memory(striped)["packed_bytes"], self.memory(whole)["packed_bytes"])
                for flags in ([], ["--backend", "reference"], ["--threads", 2]):
                    self.assertEqual(self.results(whole, *flags), self.results(striped, *flags))
                facts = json.loads(self.expect(0, "inspect", striped, "--json").out)
                timed = json.loads(self.expect(0, "run", striped, "--inputs", self.path("unet.npz"), "--profile", "--json").out)
                sizes = ("session_bytes", "packed_bytes", "packed_weights_bytes", "sharing_session_bytes")
                self.assertEqual([facts[k] for k in sizes], [timed[k] for k in sizes])
                self.assertGreaterEqual(facts["packed_weights_bytes"], facts["packed_bytes"])
                self.assertLessEqual(facts["sharing_session_bytes"], facts["session_bytes"] - facts["packed_bytes"])
                # What fits is not touched.
                self.expect(0, *convert, "-o", striped, "--max-arena", self.arena(whole))
                self.assertEqual(contents(striped), contents(whole))

    def test_too_small_an_arena(self):
        out = self.path("small.sinter")
        r = self.expect(1, "convert", self.UNET, "-o", out, "--max-arena", 1000, words=("--max-arena 1000", "smallest arena"))
        self.assertFalse(os.path.exists(out))
        least = re.search(r"has (\d+) bytes", r.err).group(1)
        self.expect(0, "convert", self.UNET, "-o", out, "--max-arena", least, words=("stripes", "session"))
        self.assertLessEqual(self.arena(out), int(least))
        for wrong in (-5, "much"):
            self.expect(2, "convert", self.UNET, "-o", self.path("no.sinter"), "--max-arena", wrong)


class Backends(Case):
    """What a file is planned for, and what runs on another backend than that."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # On a processor, nothing but the reference kernels computes Sign.
        wave = model_of([helper.make_node("Sigmoid", ["x"], ["s"]), helper.make_node("Sign", ["s"], ["y"], name="wave")],
                        [value("x", [5, 32])], [value("y", None)])
        # The second convolution needs more memory than the first, beside which there is room.
        rng = np.random.default_rng(4)
        weights = [onnx.numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)
                   for name, shape in (("v", (16, 16, 3, 3)), ("w", (64, 16, 3, 3)))]
        convs = model_of([helper.make_node("Conv", ["x", "v"], ["c"], name="small", pads=[1, 1, 1, 1]),
                          helper.make_node("Conv", ["c", "w"], ["y"], name="large", pads=[1, 1, 1, 1])],
                         [value("x", [1, 16, 20, 20])], [value("y", None)], weights)
        for name, model in (("wave", wave), ("convs", convs)):
            onnx.save(model, cls.path(name + ".onnx"))
            r = cli.call(SINTER, "convert", cls.path(name + ".onnx"), "-o", cls.path(name + ".sinter"), timeout=60)
            if r.code != 0:
                raise AssertionError(r.why())
        cls.wave = cls.path("wave.sinter")
        cli.save_npz(cls.path("wave.npz"), {"x": rng.standard_normal((5, 32)).astype(np.float32)})

    def json(self, *args):
        return json.loads(self.expect(0, *args, "--json").out)

    @unittest.skipUnless(platform.machine() == "x86_64", "SINTER_CPU_CAP names instruction sets of x86-64")
    def test_a_cap_limits_the_instruction_set(self):
        os.environ["SINTER_CPU_CAP"] = "sse41"
        try:
            r = cli.call(SINTER, "bench", self.wave, "--seconds", "0.01", "--json")
        finally:
            del os.environ["SINTER_CPU_CAP"]
        self.assertEqual(r.code, 0, r.err)
        self.assertEqual("sse4", json.loads(r.out)["instruction_set"])

    @unittest.skipUnless(platform.machine() == "x86_64", "SINTER_CPU_CAP names instruction sets of x86-64")
    def test_a_capped_machine_is_the_one_that_the_file_is_planned_for(self):
        planned = self.path("avx2.sinter")
        self.expect(0, "convert", self.path("wave.onnx"), "-o", planned, "--target", "x86_64+avx2")
        os.environ["SINTER_CPU_CAP"] = "avx2"
        try:
            for args in (("convert", self.path("wave.onnx"), "-o", self.path("native.sinter"), "--target", "native"),
                         ("bench", planned, "--seconds", "0.01"), ("bench", self.path("native.sinter"), "--seconds", "0.01")):
                r = cli.call(SINTER, *args)
                self.assertEqual(r.code, 0, r.err)
                self.assertNotIn("this machine is", r.err)
            r = cli.call(SINTER, "bench", self.wave, "--seconds", "0.01")
            self.assertIn("times of avx512vnni, but this machine is avx2", r.err)
        finally:
            del os.environ["SINTER_CPU_CAP"]

    def test_a_target_without_a_backend_is_refused(self):
        out = self.path("t.sinter")
        for target in ("vulkan", "pdp11"):
            self.expect(2, "convert", DIGITS, "-o", out, "--target", target, lines=1,
                      words=(f"--target {target}", "x86_64", "aarch64", "armv7", "cortex-m4", "portable"))
        for target, word in (("x86_64+neon", "avx2"), ("aarch64+", "dotprod"), ("armv7+z80", "neon"), ("cuda+sm61", "sm75"), ("cortex-m4+avx2", "alone")):
            self.expect(2, "convert", DIGITS, "-o", out, "--target", target, lines=1,
                      words=(f"--target {target}", "has no feature", word))
        self.expect(2, "convert", DIGITS, "-o", out, "--target", "aarch64,aarch64+dotprod", lines=1, words=("given twice",))
        self.assertFalse(os.path.exists(out))

    def test_several_targets_share_one_file(self):
        one, both = self.path("one.sinter"), self.path("both.sinter")
        self.expect(0, "convert", DIGITS, "-o", one, "--target", "x86_64")
        r = self.expect(0, "convert", DIGITS, "-o", both, "--target", "portable,aarch64+neon,x86_64", "--json")
        profiles = [p["target"] for p in json.loads(r.out)["profiles"]]
        self.assertEqual(profiles, ["aarch64+neon", "x86_64", "portable"])
        self.assertLess(os.path.getsize(both), os.path.getsize(one) + 64 * 1024)
        inputs = self.path("in.npz")
        np.savez(inputs, image=np.load(os.path.join(os.path.dirname(DIGITS), "digits_eval.npz"))["image"][:1])
        for file in (one, both):
            self.expect(0, "run", file, "--inputs", inputs, "--outputs", file + ".npz")
        with np.load(one + ".npz") as a, np.load(both + ".npz") as b:
            for name in a.files:
                self.assertEqual(a[name].tobytes(), b[name].tobytes())
        shown = {p: json.loads(self.expect(0, "inspect", both, "--target", p, "--json").out)["backends"] for p in profiles}
        self.assertEqual(set(shown["portable"]), {"reference"})
        self.assertNotEqual(set(shown["x86_64"]), {"reference"})

    def test_the_plan_can_be_narrowed(self):
        out = self.path("narrow.sinter")
        for given, allowed in (("simd", {"simd", "reference"}), ("xnnpack", {"xnnpack", "reference"}),
                               ("simd,xnnpack", {"xnnpack", "simd", "reference"}), ("reference", {"reference"})):
            self.expect(0, "convert", self.path("convs.onnx"), "-o", out, "--target", "x86_64", "--backends", given)
            steps = [s for s in self.json("inspect", out, "--steps")["steps"] if not s["elided"]]
            self.assertEqual({c for s in steps for c in s["candidates"]}, allowed, given)
            conv = next(s for s in steps if s["op"] == "Conv")
            self.assertEqual(conv["candidates"][-1], "reference")
            if given != "reference":
                self.assertNotEqual(conv["candidates"][0], "reference", given)
        for given, words in (("abacus", ("abacus", "xnnpack, simd, onednn, reference")), ("simd,mkl", ("mkl",))):
            self.expect(2, "convert", DIGITS, "-o", self.path("no.sinter"), "--backends", given, words=words, lines=1)
        self.expect(2, "convert", DIGITS, "-o", self.path("no.sinter"), "--target", "portable", "--backends", "simd",
                  words=("portable", "reference"), lines=1)
        self.assertFalse(os.path.exists(self.path("no.sinter")))

    def test_a_backend_on_request(self):
        """oneDNN is planned where it is named, and for this machine where the program has it."""
        def candidates(out, *flags):
            self.expect(0, "convert", self.path("convs.onnx"), "-o", out, *flags)
            steps = self.json("inspect", out, "--steps")["steps"]
            return {c for s in steps if s["op"] == "Conv" for c in s["candidates"]}
        here = platform.machine() == "x86_64" and "onednn" in self.expect(
            2, "run", self.wave, "--inputs", self.path("wave.npz"), "--backend", "abacus").err
        out, tuned = self.path("request.sinter"), self.path("request.tuned.sinter")
        self.assertNotIn("onednn", candidates(out, "--target", "x86_64"))
        self.assertEqual("onednn" in candidates(out, "--target", "native"), here)
        self.assertIn("onednn", candidates(out, "--target", "x86_64", "--backends", "simd,onednn"))
        if here:
            facts = json.loads(self.expect((0, 1), "tune", out, "-o", tuned, "--seconds", "0.05", "--json").out)
            steps = [s for s in self.json("inspect", out, "--steps")["steps"] if not s["elided"]]
            self.assertGreater(facts["timed_steps"], 2 * sum("onednn" in s["candidates"] for s in steps))

    def test_a_backend_that_this_build_lacks(self):
        """A plan for this machine needs what this program has; one for another machine gets a warning."""
        out = self.path("lacking.sinter")
        if platform.machine() != "x86_64" or "onednn" in self.expect(
                2, "run", self.wave, "--inputs", self.path("wave.npz"), "--backend", "abacus").err:
            self.skipTest("this program has every backend of this machine")
        self.expect(2, "convert", DIGITS, "-o", out, "--target", "native", "--backends", "onednn",
                    words=("--backends onednn --target native", "no such backend", "xnnpack, simd"), lines=1)
        self.expect(2, "convert", DIGITS, "-o", out, "--target", "aarch64,native", "--backends", "simd,onednn",
                    words=("no such backend",), lines=1)
        self.assertFalse(os.path.exists(out))
        flags = ("--target", "x86_64+avx512bf16", "--prefer-bfloat16")
        self.expect(0, "convert", self.path("convs.onnx"), "-o", out, *flags, words=("which this build lacks", "remove the option"))
        self.expect(1, "convert", self.path("convs.onnx"), "-o", out, *flags, "--strict", words=("which this build lacks",))
        native = self.expect(0, "convert", DIGITS, "-o", out, "--target", "native").out
        if "avx512bf16" in native:
            self.expect(2, "convert", self.path("convs.onnx"), "-o", self.path("no.sinter"), "--target", "native",
                        "--prefer-bfloat16", words=("no onednn backend", "remove the option"), lines=1)
            self.assertFalse(os.path.exists(self.path("no.sinter")))

    def test_nothing_falls_back_as_planned(self):
        inputs = ("--inputs", self.path("wave.npz"))
        for flags in ([], ["--backend", "reference"]):
            r = self.expect(0, "run", self.wave, *inputs, *flags)
            self.assertEqual(r.err, "")
            self.assertEqual(self.json("run", self.wave, *inputs, *flags)["fallbacks"], [])
        facts = self.json("inspect", self.wave)
        self.assertEqual(facts["fallbacks"], [])
        self.assertEqual(sum(facts["backends"].values()), sum(not s["elided"] for s in
                                                              self.json("inspect", self.wave, "--steps")["steps"]))
        self.expect(0, "inspect", self.wave, words=("fallbacks none",))

    def test_what_falls_back_is_shown(self):
        inputs = ("--inputs", self.path("wave.npz"))
        other = ("--backend", "simd")
        r = self.expect(0, "run", self.wave, *inputs, *other)
        line = r.err.strip().splitlines()
        self.assertEqual(len(line), 1, r.err)
        for words in ("1 of 2 steps falls back", "Sign from simd to reference", "the simd backend has no kernel"):
            self.assertIn(words, line[0])
        self.assertEqual(self.expect(0, "run", self.wave, *inputs, *other, "--quiet").err, "")
        lists = [self.json("run", self.wave, *inputs, *other)["fallbacks"],
                 self.json("run", self.wave, *inputs, *other, "--profile")["fallbacks"],
                 self.json("bench", self.wave, "--seconds", 0, *other)["fallbacks"],
                 self.json("inspect", self.wave, *other)["fallbacks"]]
        for found in lists:
            self.assertEqual(found, lists[0])
        self.assertEqual([(f["op"], f["name"], f["expected"], f["backend"]) for f in lists[0]],
                         [("Sign", "wave", "simd", "reference")])
        self.assertIn("the simd backend has no kernel", lists[0][0]["reason"])
        for args in (("run", self.wave, *inputs, *other, "--profile"), ("inspect", self.wave, *other, "--steps")):
            noted = [x for x in self.expect(0, *args).out.splitlines() if "[not simd: the simd backend has no kernel" in x]
            self.assertEqual(len(noted), 1, args)
            self.assertIn("Sign", noted[0])
        self.expect(0, "inspect", self.wave, *other, words=("fallbacks 1 of 2", "Sign"))
        steps = self.json("inspect", self.wave, *other, "--steps")["steps"]
        self.assertEqual([s["op"] for s in steps if "fallback" in s], ["Sign"])

    def test_the_arena_has_room_for_later_candidates(self):
        """A convolution that is planned for XNNPACK runs on simd, too, where that costs no memory."""
        out = self.path("room.sinter")
        self.expect(0, "convert", self.path("convs.onnx"), "-o", out, "--target", "x86_64", "--no-winograd")
        steps = {s["name"]: s for s in self.json("inspect", out, "--steps", "--backend", "simd")["steps"]}
        self.assertEqual(steps["small"]["candidates"], ["xnnpack", "simd", "reference"])
        self.assertEqual(steps["small"]["backend"], "simd")
        if steps["large"]["backend"] != "simd":
            self.assertIn("more workspace than planned", steps["large"]["fallback"]["reason"])


class Memories(Case):
    """A plan with steps in the memory of a backend that this program does not have."""

    FILE = os.path.join(cli.REPO, "tests", "format", "corpus", "v3_memories.sinter")

    def test_inspect_names_them(self):
        self.expect(0, "inspect", self.FILE, "--memory", words=("far",))
        facts = json.loads(self.expect(0, "inspect", self.FILE, "--memory", "--json").out)["memory"]
        self.assertEqual([(r["memory"], r["bytes"]) for r in facts["regions"]], [("host", 320), ("far", 192)])
        self.assertEqual([v["region"] for v in facts["placements"]], [0, 0, 1, 1, 0, 0])
        page = self.path("memories.html")
        self.expect(0, "inspect", self.FILE, "--memory", "--html", page)
        self.assertIn(b"far", contents(page))

    def test_bodies_of_loops_are_placed_by_what_they_cost(self):
        """A trip of large products is the device's, and only that: what it needs is moved outside."""
        for width, memory in ((512, "cuda"), (4, "host")):
            body = helper.make_graph(
                [helper.make_node("MatMul", ["h", "w"], ["m"]), helper.make_node("Tanh", ["m"], ["next"]),
                 helper.make_node("Identity", ["c"], ["more"])], "body",
                [value("i", (), TensorProto.INT64), value("c", (), TensorProto.BOOL), value("h", (64, width))],
                [value("more", (), TensorProto.BOOL), value("next", (64, width))])
            onnx.save(model_of([helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)], [value("x", (64, width))],
                            [value("y", (64, width))],
                            [onnx.numpy_helper.from_array(np.array(30, np.int64), "n"),
                             onnx.numpy_helper.from_array(np.ones((width, width), np.float32), "w")]),
                      self.path("trips.onnx"))
            out = self.path("trips.sinter")
            self.expect(0, "convert", self.path("trips.onnx"), "-o", out, "--target", "cuda")
            steps = json.loads(self.expect(0, "inspect", out, "--steps", "--json").out)["steps"]
            inside = [s for s in steps if s["program"] != 0]
            products = [s for s in inside if s["op"] in ("MatMul", "FullyConnected")]
            self.assertEqual([s["memory"] for s in products], [memory])
            self.assertFalse([s for s in inside if "transfer" in s])
            self.assertEqual(len([s for s in steps if "transfer" in s]), 2 if memory == "cuda" else 0)
            self.assertEqual("starting the device in every trip" in products[0].get("on_host", ""), memory == "host")
            self.expect(0, "inspect", out, "--memory", words=("host", *(("cuda ",) if memory == "cuda" else ())))

    def test_run_needs_the_backend(self):
        np.savez(self.path("far.npz"), x=np.arange(6, dtype=np.float32).reshape(2, 3) - 2)
        inputs = ("--inputs", self.path("far.npz"))
        self.expect(4, "run", self.FILE, *inputs, words=("backend far", "step 1", "request another one"))
        self.expect(0, "run", self.FILE, *inputs, "--backend", "reference", "--outputs", self.path("y.npz"))
        y = np.load(self.path("y.npz"))["y"]
        self.assertEqual(y.tolist(), [[-4, -2, 0], [-2, -4, -6]])


class Json(Case):
    def json(self, *args, code=0):
        r = self.expect(code, *args, "--json")
        try:
            parsed = json.loads(r.out)
        except ValueError:
            self.fail(f"{' '.join(map(str, args))} --json prints no JSON: {r.out[:300]!r}")
        self.assertIsInstance(parsed, dict)
        return parsed

    def test_every_command(self):
        self.json("convert", DIGITS, "-o", self.path("j.sinter"))
        for extra in ([], ["--steps"], ["--memory"], ["--types"]):
            self.json("inspect", self.digits, *extra)
        self.json("explain", self.digits, "probabilities")
        self.json("run", self.digits, "--inputs", self.path("x.npz"))
        self.json("compare", DIGITS, self.digits, "--inputs", self.path("x.npz"))

    def test_bench(self):
        b = self.json("bench", self.digits, "--threads", 1)
        for k in ("runs", "median_ms", "min_ms", "load_ms", "first_ms", "arena_bytes", "peak_rss_bytes"):
            self.assertGreater(b[k], 0, k)
        self.assertEqual(b["threads"], 1)
        self.assertLessEqual(b["min_ms"], b["median_ms"])
        self.assertNotIn("profile", b)

    def test_bench_profile(self):
        b = self.json("bench", self.digits, "--seconds", 0.01, "--profile")
        steps = self.json("inspect", self.digits, "--steps")["steps"]
        computed = [s["step"] for s in steps if not s["elided"]]
        self.assertEqual(sorted(s["step"] for s in b["profile"]), computed)
        times = [s["us"] for s in b["profile"]]
        self.assertEqual(times, sorted(times, reverse=True))
        r = self.expect(0, "bench", self.digits, "--seconds", "0.01", "--profile")
        self.assertEqual(r.out.split("GMAC/s  step\n")[1].count(" %"), len(computed))

    def failure(self, code, *args):
        """What a command that fails prints with --json, its only object on stdout; the message is on stderr as well."""
        r = cli.call(SINTER, *args, timeout=60)
        self.assertEqual(r.code, code, (args, r.why()))
        try:
            said = json.loads(r.out)
        except ValueError:
            self.fail(f"{' '.join(map(str, args))} prints no JSON: {r.out[:300]!r}")
        self.assertEqual(said["exit_code"], code)
        if code > 1:
            self.assertTrue(r.err.strip(), args)
            self.assertGreater(len(said["error"]), 10, said)
        return said

    def test_failures(self):
        """Every exit code of every command."""
        broken = self.save("broken.sinter", contents(self.digits)[:500])
        not_onnx = self.save("broken.onnx", b"no model")
        refused = self.save("no_op.onnx", model_of([helper.make_node("NoSuchOp", ["x"], ["y"])], [value("x", [2])], [value("y", None)]))
        none, out, x = self.path("none.sinter"), self.path("failed.sinter"), self.path("x.npz")
        np.savez(self.path("imago.npz"), imago=self.image)
        wrong = self.path("imago.npz")
        for command in (*COMMANDS, "help", "completion"):
            with self.subTest(command=command):
                if command != "help":
                    self.failure(2, command, "--json")  # an argument is missing
                self.failure(2, command, "--json", "--no-such-flag")
        self.failure(2, "--json")
        self.failure(2, "frobnicate", "--json")
        self.failure(2, "run", "-", "--json")
        places = {"convert": ["-o", out], "run": ["--inputs", x], "explain": ["probabilities"], "embed": ["-o", self.path("failed")],
                  "sign": ["--key", none, "-o", out], "tune": ["--seconds", "0"], "compare": [self.digits, "--inputs", x],
                  "ranges": ["--calibrate", x], "quantize": ["-o", out, "--calibrate", x], "simplify": ["-o", out], "repair": ["-o", out]}
        for command in COMMANDS:
            if command == "keygen":
                continue
            with self.subTest(command=command):
                onnx_file = command in ("convert", "quantize", "simplify", "repair", "ranges")
                absent = "none.onnx" if onnx_file else none
                self.assertIn("none", self.failure(6, command, absent, *places.get(command, []), "--json")["error"])
                if command != "sign" and not onnx_file:
                    self.failure(4, command, broken, *places.get(command, []), "--json")
                if command in ("simplify", "repair"):  # which take ONNX files alone
                    self.failure(3, command, broken, *places.get(command, []), "--json")
        self.failure(6, "keygen", os.path.join(self.dir, "no folder", "k"), "--json")
        self.failure(3, "convert", not_onnx, "-o", out, "--json")
        for args in (["convert", "-o", out], ["inspect"], ["bench"], ["run", "--random", "1"], ["ranges", "--calibrate", x],
                     ["quantize", "-o", out, "--calibrate", x]):
            said = self.failure(3, args[0], refused, *args[1:], "--json")
            self.assertIn("NoSuchOp", json.dumps(said["diagnostics"]))
        for args in (["run", self.digits, "--inputs", wrong], ["compare", DIGITS, self.digits, "--inputs", wrong],
                     ["ranges", DIGITS, "--calibrate", wrong], ["explain", self.digits, "nothing"],
                     ["inspect", self.digits, "--target", "none"],
                     ["convert", DIGITS, "-o", out, "--quantize", "int8", "--calibrate", wrong]):
            self.failure(5, *args, "--json")
        said = self.failure(1, "compare", DIGITS, self.digits, "--inputs", x, "--min-sqnr", "900", "--json")
        self.assertFalse(said["within"])
        zero = self.save("zero.onnx", model_of([helper.make_node("Relu", ["x"], ["y"])], [value("x", ["n", 3])], [value("y", None)]))
        self.assertIn("--strict", self.failure(1, "convert", zero, "-o", out, "--dim", "n=0", "--strict", "--json")["error"])
        # After "--" there are only paths.
        self.assertEqual(cli.call(SINTER, "inspect", "--", "--json").out, "")
        # Without memory.
        r = subprocess.run(["/bin/sh", "-c", 'ulimit -v 300000; exec "$0" "$@"', SINTER, "convert", DIGITS, "-o", out, "--json",
                            "--max-context", "7"], capture_output=True, text=True, check=False)
        if r.returncode == 6:
            self.assertEqual(json.loads(r.stdout)["exit_code"], 6)

    def test_report_file(self):
        self.expect(0, "convert", DIGITS, "-o", self.path("r.sinter"), "--report", self.path("r.json"))
        with open(self.path("r.json"), encoding="utf-8") as f:
            self.assertIsInstance(json.load(f), (dict, list))

    def test_quiet_and_no_colour(self):
        r = self.expect(0, "convert", DIGITS, "-o", self.path("q.sinter"), "--quiet")
        self.assertEqual((r.out, r.err), ("", ""))
        r = self.expect(0, "inspect", self.digits)
        self.assertNotIn("\x1b", r.out + r.err)
        # Warnings stay, those about data included.
        np.savez(self.path("same.npz"), image=np.repeat(self.image, 40, 0))
        for args in (["ranges", DIGITS, "--calibrate", self.path("same.npz")],
                     ["convert", DIGITS, "-o", self.path("q.sinter"), "--quantize", "int8", "--calibrate", self.path("same.npz")]):
            warnings = [line for line in self.expect(0, *args).err.splitlines() if line.startswith("warning")]
            self.assertTrue(any("same" in w or "identical" in w for w in warnings), warnings)
            r = self.expect(0, *args, "--quiet")
            self.assertEqual((r.out, r.err.splitlines()), ("", warnings))


class Compare(Case):
    def test_equal_and_unequal(self):
        self.expect(0, "compare", DIGITS, self.digits, "--inputs", self.path("x.npz"))
        self.expect(0, "compare", self.digits, self.digits, "--inputs", self.path("x.npz"), "--rtol", 0, "--atol", 0)
        other = onnx.load(DIGITS)
        for i in other.graph.initializer:
            if i.name == "head.bias":
                i.CopyFrom(onnx.numpy_helper.from_array(np.arange(10, dtype=np.float32), i.name))
        self.expect(0, "convert", self.save("other.onnx", other), "-o", self.path("other.sinter"))
        self.expect(1, "compare", DIGITS, self.path("other.sinter"), "--inputs", self.path("x.npz"))


class NotFinite(Case):
    """NaN and infinity that the float64 reference does not have, and those that it has."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        scalars = [helper.make_tensor("big", TensorProto.FLOAT, [], [3e38]),
                   helper.make_tensor("two", TensorProto.FLOAT, [], [4.0])]
        inside = [helper.make_node("Mul", ["x", "big"], ["a"], name="scale"),
                  helper.make_node("Mul", ["a", "two"], ["b"], name="twice")]
        cls.models = {
            # Infinite in float32 alone.
            "over": ([*inside, helper.make_node("Div", ["b", "big"], ["y"], name="back")], value("y", [1, 8])),
            # NaN in float32 alone, which the result's type cannot show.
            "hidden": ([*inside, helper.make_node("Softmax", ["b"], ["c"], name="soft"),
                        helper.make_node("ArgMax", ["c"], ["y"], name="best", axis=1)],
                       value("y", [1, 1], TensorProto.INT64)),
            # NaN of negative numbers in any type.
            "log": ([helper.make_node("Log", ["x"], ["y"], name="log")], value("y", [1, 8])),
        }
        for name, (nodes, result) in cls.models.items():
            onnx.save(model_of(nodes, [value("x", [1, 8])], [result], scalars if name != "log" else []),
                      cls.path(f"{name}.onnx"))
        x = np.linspace(-1, 1, 8, dtype=np.float32)[None] + np.float32(0.01)
        cli.save_npz(cls.path("eight.npz"), {"x": x})
        cli.save_npz(cls.path("negative.npz"), {"x": -np.ones((1, 8), np.float32)})

    def compared(self, code, name, inputs="eight.npz", *more):
        self.expect(0, "convert", self.path(f"{name}.onnx"), "-o", self.path("n.sinter"), "--no-trial")
        r = self.expect(code, "compare", self.path(f"{name}.onnx"), self.path("n.sinter"), "--inputs",
                      self.path(inputs), "--json", *more)
        return json.loads(r.out)

    def test_they_are_a_difference_with_a_count(self):
        for more in ([], ["--min-sqnr", 20], ["--rtol", 1, "--atol", 1e30]):
            [y] = self.compared(1, "over", "eight.npz", *more)["outputs"]
            self.assertEqual((6, 0, -999), (y["not_finite"], y["not_finite_in_both"], y["sqnr_db"]))
        layers = {x["name"]: x for x in self.compared(1, "over", "eight.npz", "--per-layer")["layers"]}
        self.assertEqual((6, -999), (layers["b"]["appeared"], layers["b"]["sqnr_db"]))
        self.assertGreater(layers["a"]["sqnr_db"], 100)

    def test_those_of_the_reference_are_counted_apart(self):
        [y] = self.compared(0, "log")["outputs"]
        self.assertEqual((0, 4), (y["not_finite"], y["not_finite_in_both"]))
        self.assertGreater(y["sqnr_db"], 100)

    def test_nan_against_nan_alone_is_not_the_same(self):
        [y] = self.compared(1, "log", "negative.npz")["outputs"]
        self.assertEqual((8, None, False), (y["not_finite_in_both"], y["sqnr_db"], y["within"]))

    def test_convert_tries_the_result(self):
        out = self.path("tried.sinter")
        for name, place in (("over", "output 'y'"), ("hidden", "inside the network")):
            model = self.path(f"{name}.onnx")
            r = self.expect(0, "convert", model, "-o", out, "--json", words=["warning: node 'twice' (Mul)", place])
            trial = json.loads(r.out)["trial"]
            self.assertEqual((True, "twice", "Mul"), (trial["done"], trial["step"], trial["op"]))
            self.assertGreater(trial["not_finite"], 0)
            os.remove(out)
            self.expect(1, "convert", model, "-o", out, "--strict", words=["--strict"])
            self.assertFalse(os.path.exists(out))
            r = json.loads(self.expect(1, "convert", model, "-o", out, "--strict", "--json").out)
            self.assertIn("--strict", r["withheld"])
            self.assertEqual(["warning"], [d["severity"] for d in r["diagnostics"]])
            r = self.expect(0, "convert", model, "-o", out, "--strict", "--no-trial", "--json")
            self.assertEqual(False, json.loads(r.out)["trial"]["done"])
        # What the model gives in float64 too is its own.
        r = self.expect(0, "convert", self.path("log.onnx"), "-o", out, "--strict", "--json")
        self.assertEqual({"done": True, "not_finite": 0, "compared": {"values": 1}}, json.loads(r.out)["trial"])

    def convert_while_replaced(self, before, after, *flags):
        """convert of `before`, whose file holds `after` once the graph was read: it waits where --dump-after prints."""
        model, other = self.save("replaced.onnx", before), self.save("other.onnx", after)
        with subprocess.Popen([SINTER, "convert", model, "-o", self.path("replaced.sinter"), "--dump-after", "dead-code", "--json",
                               *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
            fcntl.fcntl(p.stderr, fcntl.F_SETPIPE_SZ, 4096)
            full, count = fcntl.fcntl(p.stderr, fcntl.F_GETPIPE_SZ), 0
            for _ in range(6000):
                [count] = struct.unpack("i", fcntl.ioctl(p.stderr, termios.FIONREAD, bytes(4)))
                if count >= full or p.poll() is not None:
                    break
                time.sleep(0.01)
            self.assertGreaterEqual(count, full)
            os.replace(other, model)
            out, err = p.communicate(timeout=60)
        self.assertNotEqual("", out.decode(), err.decode())
        return p.returncode, json.loads(out)

    def test_convert_compares_each_step_with_the_model(self):
        def network(given, changed=-1):
            rng, nodes, constants, now = np.random.default_rng(2), [], [], "x"

            def constant(name, array):
                constants.append(onnx.numpy_helper.from_array(array, name))
                return name

            def pair(name, now, zero, scale=np.float32(1 / 64)):
                ends = [constant(f"{name}.scale", scale), constant(f"{name}.zero", zero)]
                nodes.extend([helper.make_node("QuantizeLinear", [now, *ends], [f"{name}.q"]),
                              helper.make_node("DequantizeLinear", [f"{name}.q", *ends], [f"{name}.d"])])
                return f"{name}.d"

            for i in range(40):
                w = rng.integers(-40, 41, (8, 8)).astype(np.int8)
                if i == changed:
                    w[3, 5] += 9
                if given:
                    now = pair(f"a{i}", now, np.int8(0))
                    ends = [constant(f"w{i}.scale", np.float32(1 / 64)), constant(f"w{i}.zero", np.int8(0))]
                    nodes.append(helper.make_node("DequantizeLinear", [constant(f"w{i}.q", w), *ends], [f"w{i}"]))
                else:
                    constant(f"w{i}", w.astype(np.float32) / 64)
                nodes += [helper.make_node("MatMul", [now, f"w{i}"], [f"m{i}"], name=f"product{i}"),
                          helper.make_node("Tanh", [f"m{i}"], [f"h{i}"], name=f"tanh{i}")]
                now = f"h{i}"
            return model_of(nodes, [value("x", [4, 8])], [value(now, [4, 8])], constants)

        for given in (False, True):
            with self.subTest(given=given):
                # Nothing differs in the model that was converted.
                code, report = self.convert_while_replaced(network(given), network(given), "--strict")
                self.assertEqual((0, [], False), (code, report["diagnostics"], "differs" in report["trial"]["compared"]))
                self.assertGreaterEqual(report["trial"]["compared"]["values"], 40)
                # The product with the other weights is the first of 40 that differs.
                code, report = self.convert_while_replaced(network(given), network(given, changed=20))
                [warning] = [d for d in report["diagnostics"] if d["severity"] == "warning"]
                differs = report["trial"]["compared"]["differs"]
                self.assertEqual((0, "product20", "product20"), (code, differs["step"], warning["node"]))
                self.assertGreater(differs["difference"], differs["explained"])
                code, report = self.convert_while_replaced(network(given), network(given, changed=20), "--strict")
                self.assertEqual(1, code)
                self.assertIn("--strict", report["withheld"])

    def test_what_vanishes_in_a_narrow_type_is_no_difference(self):
        # A product of 24 numbers below 1 is 0 in float16, as the model states; bfloat16 explains any difference.
        for kind, compared in ((onnx.TensorProto.FLOAT16, {"values": 1}),
                               (onnx.TensorProto.BFLOAT16, {"values": 0, "note": "roundings to bfloat16 explain any difference"})):
            node = helper.make_node("ReduceProd", ["x"], ["y"])
            ends = [[helper.make_tensor_value_info(n, kind, s)] for n, s in (("x", [2, 3, 4]), ("y", [1, 1, 1]))]
            model = self.save("product.onnx", model_of([node], *ends))
            r = self.expect(0, "convert", model, "-o", self.path("product.sinter"), "--strict", "--json")
            self.assertEqual(compared, json.loads(r.out)["trial"]["compared"])

    def test_what_is_too_much_work_is_not_tried(self):
        w = onnx.numpy_helper.from_array(np.zeros((2048, 2048), np.float32), "w")
        nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
        model = self.save("much.onnx", model_of(nodes, [value("x", [128, 2048])], [value("y", [128, 2048])], [w]))
        r = self.expect(0, "convert", model, "-o", self.path("much.sinter"), "--json")
        trial = json.loads(r.out)["trial"]
        self.assertFalse(trial["done"])
        self.assertIn("multiply-adds", trial["note"])

    def test_made_up_integers_are_in_range(self):
        table = onnx.numpy_helper.from_array(np.ones((1, 4), np.float32), "table")  # index 1 is out of range
        model = model_of([helper.make_node("Gather", ["table", "i"], ["y"])],
                         [value("i", [3], TensorProto.INT64)], [value("y", [3, 4])], [table])
        r = self.expect(0, "convert", self.save("rows.onnx", model), "-o", self.path("rows.sinter"), "--json")
        self.assertTrue(json.loads(r.out)["trial"]["done"])


class Layers(Case):
    def test_layers_are_compared_in_onnx_order_where_every_dim_is_alike(self):
        # Eight rows, columns and channels: the dims do not show whether a value is held channels-last.
        n, rng = 8, np.random.default_rng(3)

        def weights(name):
            return onnx.numpy_helper.from_array((rng.standard_normal((n, n, 3, 3)) * 0.3).astype(np.float32), name)

        def node(op, ins, out, **attrs):
            return helper.make_node(op, ins, [out], name=f"{op}_{out}", **attrs)

        pads = {"pads": [1, 1, 1, 1]}
        model = model_of([node("Conv", ["x", "w1"], "c1", **pads), node("Sigmoid", ["c1"], "s1"),
                          node("Add", ["s1", "c1"], "a1"), node("Conv", ["a1", "w2"], "c2", **pads),
                          node("GlobalAveragePool", ["c2"], "g"), node("Mul", ["c2", "g"], "m"),
                          node("MaxPool", ["m"], "p", kernel_shape=[3, 3], **pads),
                          node("Transpose", ["p"], "t", perm=[0, 3, 1, 2]), node("Exp", ["t"], "y")],
                         [value("x", [1, n, n, n])], [value("y", [1, n, n, n])], [weights("w1"), weights("w2")])
        onnx.save(model, self.path("cube.onnx"))
        cli.save_npz(self.path("cube.npz"), {"x": rng.standard_normal((1, n, n, n)).astype(np.float32)})
        self.expect(0, "convert", self.path("cube.onnx"), "-o", self.path("cube.sinter"))
        for first in ("cube.onnx", "cube.sinter"):
            r = self.expect(0, "compare", self.path(first), self.path("cube.sinter"), "--inputs", self.path("cube.npz"),
                            "--per-layer", "--json")
            layers = {x["name"]: x["within"] for x in json.loads(r.out)["layers"]}
            self.assertLessEqual({"c1", "s1", "a1", "c2", "g", "m"}, set(layers))
            self.assertEqual([], [name for name, within in layers.items() if not within])


class Flags(Case):
    """A flag that matches nothing in the model is a mistake, and so are two that contradict each other."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        body = helper.make_graph([helper.make_node("Identity", ["k"], ["k_o"]), helper.make_node("Neg", ["v"], ["v_o"])],
                                 "body", [value("i", [], TensorProto.INT64), value("k", [], TensorProto.BOOL),
                                          value("v", None)], [value("k_o", [], TensorProto.BOOL), value("v_o", None)])
        m = model_of([helper.make_node("Add", ["x", "w"], ["h"], name="sum"),
                      helper.make_node("Loop", ["n", "", "h"], ["y"], name="turns", body=body)],
                     [value("x", [1, "width"]), value("z", [1, "width"]), value("n", [], TensorProto.INT64)],
                     [value("y", None)], [onnx.numpy_helper.from_array(np.ones(1, np.float32), "w")])
        cls.model = cls.path("flags.onnx")
        onnx.save(m, cls.model)
        cli.save_npy(cls.path("four.npy"), np.ones((1, 4), np.float32))
        cls.right = ["--dim", "width=4", "--max-trips", "turns=3"]

    def convert(self, code, *flags, words=()):
        out = self.path("flags.sinter")
        r = self.expect(code, "convert", self.model, "-o", out, *flags, words=words)
        self.assertEqual(code == 0, os.path.exists(out))
        if code == 0:
            os.remove(out)
        return r

    def test_right_ones(self):
        self.convert(0, *self.right, "--strict", "--keep", "h=float64", "--const", f"z={self.path('four.npy')}")

    def test_names_that_match_nothing(self):
        for flags, words in ((["--keep", "Nope=float32"], ["--keep Nope", "value"]),
                             (["--keep", "H=float32"], ["--keep H"]),
                             (["--max-trips", "turn=3"], ["--max-trips turn", "turns"]),
                             (["--max-trips", "sum=3"], ["--max-trips sum", "Loop"]),
                             (["--dim", "widht=4"], ["--dim widht", "width"]),
                             (["--shape", "X=1,4"], ["--shape X", "x, z"]),
                             (["--shape", "w=1"], ["--shape w", "holds"]),
                             (["--const", f"k={self.path('four.npy')}"], ["--const k"])):
            with self.subTest(flags=flags):
                self.convert(3, *self.right, *flags, words=words)

    def test_contradictions(self):
        four = self.path("four.npy")
        cli.save_npy(self.path("other.npy"), np.zeros((1, 4), np.float32))
        for flags, words in ((["--dim", "width=5"], ["--dim width", "twice"]),
                             (["--max-trips", "turns=4"], ["--max-trips turns", "twice"]),
                             (["--shape", "x=1,4", "--shape", "x=1,5"], ["--shape x", "twice"]),
                             (["--keep", "h=float64", "--keep", "h=float32"], ["--keep h", "twice"]),
                             (["--const", f"z={four}", "--const", f"z={self.path('other.npy')}"], ["--const z", "twice"]),
                             (["--disable-pass", "widen", "--dump-after", "widen"], ["--dump-after widen"]),
                             (["--stop-after", "1", "--dump-after", "widen"], ["--dump-after widen"])):
            with self.subTest(flags=flags):
                self.convert(2, *self.right, *flags, words=words)
        for flags, words in ((["--shape", "x=1,5"], ["--dim width=4", "--shape x=1,5"]),
                             (["--const", f"z={four}", "--shape", "z=1,5"], ["--shape z=1,5", "--const", "[1,4]"])):
            with self.subTest(flags=flags):
                self.convert(3, *self.right, *flags, words=words)
        self.convert(3, "--max-trips", "turns=3", "--shape", "x=1,4", "--shape", "z=1,5", words=["'width'", "4", "5"])
        # The same twice is not a contradiction.
        self.convert(0, *self.right, *self.right, "--shape", "x=1,4")
        self.convert(0, "--max-trips", "turns=3", "--const", f"z={four}", "--shape", "z=1,4")  # which gives x its width, too

    def test_numbers_as_constants(self):
        self.convert(0, *self.right, "--const", "z=0.5", "--shape", "z=1,4")
        self.convert(3, *self.right, "--const", "z=0.5", words=("--const z", "dimensions"))
        self.convert(3, *self.right, "--const", "z=0.5", "--shape", "z=100000,100000", words=("--const z", "elements"))
        model = self.path("flag.onnx")
        flag = helper.make_tensor_value_info("n", TensorProto.INT64, [2])
        x, y = (helper.make_tensor_value_info(v, TensorProto.INT64, [2]) for v in "xy")
        onnx.save(helper.make_model(helper.make_graph([helper.make_node("Add", ["x", "n"], ["y"])], "g", [x, flag], [y]),
                                    opset_imports=[helper.make_opsetid("", 17)], ir_version=9), model)
        out = self.path("flag.sinter")
        self.expect(0, "convert", model, "-o", out, "--const", "n=-7")
        np.savez(self.path("x.npz"), x=np.array([1, 9], np.int64))
        self.expect(0, "run", out, "--inputs", self.path("x.npz"), "--outputs", self.path("y.npz"))
        self.assertEqual(np.load(self.path("y.npz"))["y"].tolist(), [-6, 2])
        for number in ("1.5", "1e30", "nan"):
            self.expect(3, "convert", model, "-o", out, "--const", f"n={number}", words=("--const n", "int64"))

    def test_compare_takes_constants_again(self):
        const = ["--const", f"z={self.path('four.npy')}"]
        onnx.save(model_of([helper.make_node("Add", ["x", "z"], ["y"])], [value("x", [1, 4]), value("z", [1, 4])], [value("y", [1, 4])], []),
                  self.path("given.onnx"))
        files = [self.path("given.onnx"), self.path("given.sinter")]
        self.expect(0, "convert", files[0], "-o", files[1], *const)
        self.expect(2, "compare", *files, "--random", "1", words=("'z'", "--const z=FILE.npy"))
        self.expect(0, "compare", *files, "--random", "1", *const)

    def test_inputs_without_dimensions(self):
        node = [helper.make_node("Add", ["x", "s"], ["y"])]
        anything = helper.make_value_info("s", helper.make_tensor_type_proto(TensorProto.FLOAT, None))
        model = self.save("anything.onnx", model_of(node, [value("x", [2]), anything], [value("y", None)]))
        out = self.path("scalar.sinter")
        self.expect(3, "convert", model, "-o", out, words=["s (no shape at all)", "--shape s=scalar"])
        for given in (["--shape", "s=scalar"], ["--shapes", "s=scalar"], ["--shapes", "x=2, s=scalar; x=3, s=scalar"]):
            self.expect(0, "convert", model, "-o", out, *given)
            ports = json.loads(self.expect(0, "inspect", out, "--json").out)["inputs"]
            self.assertEqual([p["shape"] for p in ports if p["name"] == "s"], [[]])
        self.expect(0, "run", model, "--shape", "s=scalar", "--random", "1")
        self.expect(3, "convert", model, "-o", out, "--shape", "s=scalar", "--shape", "x=scalar", words=["x=scalar has 0 dims"])
        fixed = self.save("fixed.onnx", model_of(node, [value("x", [2]), value("s", [])], [value("y", None)]))
        self.expect(0, "convert", fixed, "-o", out, "--shape", "s=scalar")
        self.expect(3, "convert", fixed, "-o", out, "--shape", "s=1", words=["give --shape s=scalar"])
        self.expect(2, "convert", model, "-o", out, "--shape", "s=", words=["INPUT=scalar"])
        self.expect(2, "convert", model, "-o", out, "--shapes", "s=scalar,3", words=["no name"])

    def test_lengths_that_are_too_long(self):
        """The message names what fixes the length."""
        count = helper.make_node("Cast", ["n"], ["k"], to=TensorProto.INT32)
        rows = helper.make_node("Range", ["zero", "k", "one"], ["y"], name="rows")
        constants = [onnx.numpy_helper.from_array(np.int32(i), n) for i, n in ((0, "zero"), (1, "one"))]
        model = self.save("rows.onnx", model_of([count, rows], [value("n", [], TensorProto.INT64)], [value("y", None, TensorProto.INT32)],
                                                constants))
        out = self.path("rows.sinter")
        self.expect(3, "convert", model, "-o", out, words=["node 'rows'", "2147483647", "--bound rows=N", "--const n=FILE.npy"])
        self.expect(0, "convert", model, "-o", out, "--bound", "rows=9")
        np.save(self.path("n.npy"), np.int64(7))
        self.expect(0, "convert", model, "-o", out, "--const", f"n={self.path('n.npy')}")

    def test_size_of_zero_warns(self):
        for flags in (["--shape", "x=1,0"], ["--dim", "width=0"]):
            self.convert(0, "--max-trips", "turns=3", *flags, words=["warning", " ".join(flags), "empty"])
            self.convert(1, "--max-trips", "turns=3", *flags, "--strict")

    def test_arrays_go_to_npz(self):
        given = self.path("x.npz")
        for name in ("out.json", "out", "out.txt"):
            self.expect(2, "run", self.digits, "--inputs", given, "--outputs", self.path(name), words=["--outputs", ".npz"])
            self.assertFalse(os.path.exists(self.path(name)))
        for name in ("out.npz", "out.npy"):
            self.expect(0, "run", self.digits, "--inputs", given, "--outputs", self.path(name))

    def test_float32_for_float16_inputs(self):
        m = model_of([helper.make_node("Add", ["x", "x"], ["y"])], [value("x", [3], TensorProto.FLOAT16)],
                     [value("y", [3], TensorProto.FLOAT16)])
        half = self.path("half.sinter")
        self.expect(0, "convert", self.save("half.onnx", m), "-o", half)
        x = np.array([0.1, -3, 1000.3], np.float32)
        cli.save_npz(self.path("half.npz"), {"x": x})
        self.expect(0, "run", half, "--inputs", self.path("half.npz"), "--outputs", self.path("half_out.npz"))
        np.testing.assert_array_equal(cli.load_npz(self.path("half_out.npz"))["y"], x.astype(np.float16) * np.float16(2))
        cli.save_npz(self.path("half.npz"), {"x": np.array([1, 2, 1e6], np.float32)})
        self.expect(5, "run", half, "--inputs", self.path("half.npz"), words=["'x'", "1000000", "float16"])


class Explain(Case):
    """Every node of the ONNX file has an answer, and so have every value that a node gives and every initializer."""

    def explained(self, model, target, *flags):
        self.expect(0, "convert", model, "-o", target, *flags)
        fates = {}
        graph = onnx.load(model).graph
        names = [n for node in graph.node for n in (node.name, *node.output) if n]
        for name in names + [i.name for i in graph.initializer]:
            r = self.expect(0, "explain", target, name, "--json")
            answer = json.loads(r.out)
            self.assertTrue(answer["nodes"] or answer["steps"] or answer["values"] or "constant" in answer, name)
            self.expect(0, "explain", target, name)
            fates[name] = answer
        return fates

    def test_of_an_earlier_build(self):
        """Names as strings, reasons as lines."""
        file = os.path.join(cli.REPO, "tests", "format", "corpus", "v3_names.sinter")
        self.expect(0, "explain", file, "node_relu", words=("fused by pass fuse-clamp into node 'node_conv'", "(ONNX Conv)"))
        self.expect(0, "explain", file, "relu", words=("float16 -> float32, widened [promote.float]",))
        self.expect(0, "inspect", file, "--steps", words=("relu float32[1,4,4,3]", "# node_sqrt"))

    def test_digits(self):
        self.explained(DIGITS, self.path("d.sinter"))

    def test_where_nodes_went(self):
        rng = np.random.default_rng(5)
        weights = [onnx.numpy_helper.from_array(a.astype(np.float32), n) for n, a in (
            ("w", rng.standard_normal((4, 3, 3, 3))), ("scale", np.ones(4)), ("bias", np.zeros(4)), ("mean", np.zeros(4)),
            ("var", np.ones(4)), ("idle", np.ones(2)))] + [onnx.numpy_helper.from_array(np.array([2, 3]), "two")]
        nodes = [helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
                 helper.make_node("BatchNormalization", ["c", "scale", "bias", "mean", "var"], ["b"], name="norm"),
                 helper.make_node("Relu", ["b"], ["r"], name="relu"),
                 helper.make_node("Identity", ["r"], ["same"], name="identity"),
                 helper.make_node("Dropout", ["same"], ["d"], name="dropout"),
                 helper.make_node("Exp", ["d"], ["e1"], name="exp_once"),
                 helper.make_node("Exp", ["d"], ["e2"], name="exp_again"),
                 helper.make_node("Add", ["e1", "e2"], ["y"], name="sum"),
                 helper.make_node("Mul", ["two", "two"], ["four"], name="folded"),
                 helper.make_node("Sin", ["d"], ["unused"], name="unused_sine")]
        m = model_of(nodes, [value("x", [1, 3, 8, 8])], [value("y", None)], weights)
        fates = self.explained(self.save("went.onnx", m), self.path("went.sinter"))
        for name, became, word in (("norm", "fused", "conv"), ("relu", "fused", "conv"), ("identity", "value", ""),
                                   ("dropout", "value", ""), ("folded", "constant", ""),
                                   ("unused_sine", "dropped", ""), ("exp_again", "value", "e1")):
            with self.subTest(node=name):
                first = fates[name]["nodes"][0]
                self.assertEqual(became, first["became"], first)
                self.assertIn(word, first.get("into", ""))
                self.assertEqual(first["op"] in ("BatchNormalization", "Relu"), "fold-batch-norm" in str(first) or
                                 "fuse-clamp" in str(first))
        for name, reader in (("scale", ["norm"]), ("two", ["folded"]), ("idle", [])):
            with self.subTest(initializer=name):
                self.assertEqual(reader, fates[name]["constant"]["readers"])
        for name in ("conv", "norm", "relu", "scale", "w"):  # all lead to the step that does it
            self.assertEqual(["conv"], [s["name"] for s in fates[name]["steps"] if s["op"] == "Conv"], fates[name])
        self.expect(0, "explain", self.path("went.sinter"), "var", words=["'var' (float32[4])", "node 'norm'", "'conv'"])
        self.expect(0, "explain", self.path("went.sinter"), "idle", words=["dropped", "no node reads it"])
        self.expect(5, "explain", self.path("went.sinter"), "nobody", words=["nobody"])

    def test_attention_and_quantized(self):
        rng = np.random.default_rng(6)
        nodes, weights = [], [onnx.numpy_helper.from_array(np.float32(0.5), "scale")]
        for n in "qkv":
            weights.append(onnx.numpy_helper.from_array(rng.standard_normal((8, 8)).astype(np.float32), "w" + n))
            nodes.append(helper.make_node("MatMul", ["x", "w" + n], [n], name="proj_" + n))
        nodes += [helper.make_node("Transpose", ["k"], ["kt"], name="turn", perm=[0, 1, 3, 2]),
                  helper.make_node("MatMul", ["q", "kt"], ["s"], name="scores"),
                  helper.make_node("Mul", ["s", "scale"], ["sc"], name="scaling"),
                  helper.make_node("Softmax", ["sc"], ["p"], name="softmax", axis=-1),
                  helper.make_node("MatMul", ["p", "v"], ["y"], name="mix")]
        m = self.save("att.onnx", model_of(nodes, [value("x", [1, 2, 6, 8])], [value("y", None)], weights))
        fates = self.explained(m, self.path("att.sinter"))
        for name in ("scores", "scaling", "softmax"):
            self.assertEqual("fused", fates[name]["nodes"][0]["became"], fates[name])
        cli.save_npz(self.path("att.npz"), {"x": rng.standard_normal((8, 2, 6, 8)).astype(np.float32)})
        fates = self.explained(m, self.path("att8.sinter"), "--quantize", "int8", "--calibrate", self.path("att.npz"), "--quiet")
        self.assertIn("proj_q", [s["name"] for s in fates["wq"]["steps"]], fates["wq"])


class Working(Case):
    """Long conversions are seen to go on."""

    def slow(self, seconds):
        """Arguments of a conversion that waits so long for its samples."""
        rng = np.random.default_rng(7)
        with open(self.path("slow.npy"), "wb") as f:
            for _ in range(4):
                np.save(f, rng.integers(0, 17, (1, 1, 8, 8)).astype(np.float32))
        return [SINTER, "convert", DIGITS, "-o", self.path("slow.sinter"), "--quantize", "int8", "--calibrate",
                f"cmd:sleep {seconds}; cat {self.path('slow.npy')}"]

    def test_on_a_terminal(self):
        ours, theirs = pty.openpty()
        p = subprocess.Popen(self.slow(2), stdout=subprocess.DEVNULL, stderr=theirs)
        os.close(theirs)
        seen = b""
        try:
            while part := os.read(ours, 4096):
                seen += part
        except OSError:  # the other end is closed
            pass
        os.close(ours)
        self.assertEqual(0, p.wait(timeout=60))
        self.assertIn(b"reading samples; 0:01 so far", seen)

    def test_without_a_terminal(self):
        """Takes 22 seconds, all of them asleep."""
        r = subprocess.run(self.slow(22), capture_output=True, text=True, timeout=120, check=True)
        self.assertIn("sinter: reading samples; 0:20 so far", r.stderr)
        r = subprocess.run([*self.slow(0)], capture_output=True, text=True, timeout=120, check=True)
        self.assertNotIn("so far", r.stderr)


class Pages(Case):
    def drawing(self, model, *flags):
        page = self.path("page.html")
        self.expect(0, "convert", model, "-o", self.path("p.sinter"), "--report", page, *flags)
        with open(page, encoding="utf-8") as f:
            text = f.read()
        return text[text.index('<svg class="network"'):text.index("</svg>") + 6]

    def layers(self, count):
        """Layers of long names that differ in the middle alone, all of which read a mask, too."""
        nodes, weights, last = [], [], "x"
        for i in range(count):
            stem = f"/bert/encoder/layer.{i}/attention/self"
            weights.append(onnx.numpy_helper.from_array(np.eye(8, dtype=np.float32) * (i + 2), f"w{i}"))
            nodes.append(helper.make_node("MatMul", [last, f"w{i}"], [f"{stem}/query/MatMul_output_0"]))
            nodes.append(helper.make_node("Exp", [f"{stem}/query/MatMul_output_0"], [f"{stem}/query/Exp_output_0"]))
            nodes.append(helper.make_node("Sin", [f"{stem}/query/MatMul_output_0"], [f"{stem}/query/Sin_output_0"]))
            nodes.append(helper.make_node("Add", [f"{stem}/query/Exp_output_0", f"{stem}/query/Sin_output_0"],
                                          [f"{stem}/query/Add_output_0"]))
            nodes.append(helper.make_node("Mul", [f"{stem}/query/Add_output_0", "mask"], [f"{stem}/query/Mul_output_0"]))
            last = f"{stem}/query/Mul_output_0"
        return self.save("layers.onnx", model_of(nodes, [value("x", [2, 8]), value("mask", [2, 8])], [value(last, None)],
                                                   weights))

    def test_no_empty_margin(self):
        svg = self.drawing(self.layers(6))
        boxes = [(float(x), float(w)) for x, w in re.findall(r'<rect x="([-\d.]+)" y="[-\d.]+" width="([\d.]+)"', svg)]
        width = float(re.search(r'viewBox="0 0 ([\d.]+)', svg).group(1))
        self.assertLess(min(x for x, _ in boxes), 120)
        self.assertGreater(max(x + w for x, w in boxes), width - 120)

    def test_names_differ(self):
        svg = self.drawing(self.layers(12))
        names = re.findall(r'<text class="name"[^>]*>([^<]*)</text>', svg)
        full = re.findall(r"gives ([^ ]+) ", svg)
        shown = [n for n in names if "output_0" in n]
        self.assertGreater(len(shown), 40)
        self.assertEqual(len(set(full)), len(set(shown)), sorted(shown))
        self.assertEqual([], [n for n in shown if n.startswith("/bert/encoder")])


class Refusals(Case):
    """Models that must be refused: code 3, the reason and the place, no file."""

    def test_all_reasons_in_one_run(self):
        m = model_of([helper.make_node("NoSuchOp", ["x"], ["a"], name="first"),
                      helper.make_node("Relu", ["x"], ["b"], name="second", steepness=2.0),
                      helper.make_node("MatMul", ["x", "w"], ["c"], name="third")],
                     [value("x", [2, 3]), value("w", [4, 5])], [value(n, None) for n in "abc"])
        self.refused("three.onnx", m, "NoSuchOp", "first", "steepness", "second", "MatMul", "third")

    def test_open_dimensions_are_listed(self):
        m = model_of([helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Relu", ["z"], ["w"])],
                     [value("x", ["N", "H", 3]), value("z", [1, "W"])], [value("y", None), value("w", None)])
        self.refused("open.onnx", m, "H", "W")
        path = self.path("open.onnx")
        self.expect(0, "convert", path, "-o", self.path("o.sinter"), "--dim", "H=4", "--dim", "W=5")
        self.expect(0, "convert", path, "-o", self.path("o.sinter"), "--shape", "x=2,4,3", "--shape", "z=1,5")

    def test_equal_reasons_are_one_line(self):
        names = [f"part_{i}" for i in range(7)]
        m = model_of([helper.make_node("NoSuchOp", ["x"], [f"y{i}"], name=n) for i, n in enumerate(names)],
                     [value("x", [2, 3])], [value(f"y{i}", None) for i in range(7)])
        r = self.refused("seven.onnx", m, "7 nodes", *names)
        self.assertEqual(1, len(r.err.strip().splitlines()), r.err)
        # For a model with too new an opset, that is the only refusal.
        ops = ("Relu", "Neg", "Exp", "Abs", "Sqrt", "Tanh")
        m = model_of([helper.make_node(ops[i % 6], [f"v{i}"], [f"v{i + 1}"], name=f"n{i}") for i in range(204)],
                     [value("v0", [2, 3])], [value("v204", None)], opset=999)
        r = self.refused("new.onnx", m, "opset 999")
        self.assertEqual(1, len(r.err.strip().splitlines()), r.err)
        r = self.refused("seven.onnx", model_of([helper.make_node("NoSuchOp", ["x"], ["y"], name="alone")],
                                                [value("x", [2, 3])], [value("y", None)]), "node 'alone' (NoSuchOp)")

    def test_stdout_closed_early_is_no_crash(self):
        p = subprocess.Popen([SINTER, "inspect", self.digits, "--steps"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        p.stdout.close()
        p.stderr.read()
        p.stderr.close()
        self.assertIn(p.wait(timeout=60), (0, 6, -13))


def main():
    global SINTER
    SINTER, argv = cli.program_and_argv()
    unittest.main(argv=argv)


if __name__ == "__main__":
    main()
