#!/usr/bin/env python3
"""What the command line shows in a terminal of 100 columns: summaries, help, suggestions.

    test_terminal.py [--sinter PROGRAM] [unittest options]

Works on small models made here; needs numpy and onnx.
"""
import json
import os
import shutil
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
        for line in r.out.splitlines():
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


class Help(Case):
    def commands(self):
        listed = self.sinter("--help").out.split("Commands:\n")[1].split("\n\n")[0]
        return [line.split()[0] for line in listed.splitlines() if line[2] != " "]

    def test_groups_and_columns(self):
        commands = self.commands()
        self.assertIn("convert", commands)
        self.assertIn("completion", commands)
        for c in commands:
            text = self.sinter(c, "--help").out  # checks the columns
            self.assertEqual(self.sinter("help", c).out, text)
            self.assertIn(f"Usage: sinter {c}", text)
            self.assertNotIn("Options:", text)  # what a flag without a group has
        self.assertEqual(self.sinter("help").out, self.sinter("--help").out)
        groups = [line[:-1] for line in self.sinter("help", "convert").out.splitlines() if line.endswith(":") and line[0] != " "]
        self.assertEqual(groups, ["Shapes and constants", "Pictures and sounds", "State", "Types", "Quantization", "Accuracy",
                                  "Target and speed", "Memory", "Output", "Reports", "Passes", "General", "Examples"])

    def test_names_that_do_not_exist(self):
        model = self.path("m.sinter")
        self.sinter("convert", self.product, "-o", model, "--dim", "time=5", "--target", "portable")
        convert = ["convert", self.product, "-o", self.path("no.sinter"), "--dim", "time=5"]
        for code, args, words in (
                (2, ["help", "covert"], ("help: command: 'covert' is not a valid value", "did you mean 'convert'?")),
                (2, ["bnch", model], ("'bnch' is not a command", "did you mean 'bench'?")),
                (2, ["run", model, "--quantize", "int8"], ("'--quantize' is not a flag of this command but of convert",)),
                (2, ["run", model, "more"], ("'more' is one argument too many", "sinter run --help")),
                (2, [*convert, "--quantize", "int-8"], ("--quantize", "'int-8'", "did you mean 'int8'?")),
                (2, [*convert, "--disable-pass", "fuse-clam"], ("--disable-pass", "did you mean 'fuse-clamp'?")),
                (2, [*convert, "--target", "x86-64"], ("'x86-64'", "did you mean 'x86_64'?")),
                (2, [*convert, "--target", "x86_64+avx51"], ("'avx51'", "did you mean 'avx512'?")),
                (2, [*convert, "--keep", "y=flaot32"], ("'flaot32'", "did you mean 'float32'?")),
                (3, [*convert, "--dim", "tiem=5"], ("--dim tiem", "did you mean 'time'?")),
                (3, [*convert, "--max-trips", "loop=5"], ("--max-trips loop", "remove the option")),
                (3, [*convert, "--keep", "yy=float32"], ("--keep yy", "did you mean 'y'?")),
                (5, ["explain", model, "projekt"], ("'projekt'", "did you mean 'project'?")),
                (5, ["inspect", model, "--target", "portabel"], ("'portabel'",)),
                (2, ["bench", model, "--backend", "referenc"], ("--backend referenc", "did you mean 'reference'?"))):
            with self.subTest(args=args):
                r = cli.call(SINTER, *args, timeout=60)
                self.assertEqual(r.code, code, r.why())
                for word in words:
                    self.assertIn(word, r.err)

    def test_completion_in_bash(self):
        bash = shutil.which("bash")
        if bash is None:
            self.skipTest("no bash")

        def complete(*words):
            script = (f'source <("{SINTER}" completion bash)\nCOMP_WORDS=("$@") COMP_CWORD=$(($# - 1))\n_sinter\n'
                      'printf "%s\\n" "${COMPREPLY[@]}"\n')
            done = subprocess.run([bash, "-u", "-c", script, "-", *words], capture_output=True, text=True, cwd=self.dir)
            self.assertEqual((done.returncode, done.stderr), (0, ""), words)
            return done.stdout.split()

        self.assertEqual(complete("sinter", "con"), ["convert"])
        self.assertEqual(complete("sinter", "help", "con"), ["convert"])
        self.assertEqual(sorted(complete("sinter", "convert", "--quant")), ["--quantize"])
        self.assertEqual(complete("sinter", "convert", "--quantize", "int8"), ["int8", "int8x16", "int8w"])
        self.assertEqual(complete("sinter", "convert", "prod"), ["product.onnx"])
        self.assertEqual(complete("sinter", "completion", ""), ["bash", "zsh", "fish"])
        for shell in ("zsh", "fish"):
            script = self.path(f"sinter.{shell}")
            with open(script, "w", encoding="utf-8") as file:
                file.write(cli.call(SINTER, "completion", shell).out)
            if shutil.which(shell):
                self.assertEqual(subprocess.run([shell, "-n", script], check=False).returncode, 0)
        self.sinter("completion", "tcsh", code=2)

    def test_manual_page(self):
        page = cli.call(SINTER, "man").out
        for name in (*self.commands(), "max\\-arena", "EXIT STATUS"):
            self.assertIn(name.upper() if name.isalpha() else name, page)
        groff = shutil.which("groff")
        if groff is None:
            self.skipTest("no groff")
        done = subprocess.run([groff, "-man", "-ww", "-Tascii", "-rLL=100n", "-P-cbou"], input=page, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("--max-arena BYTES", done.stdout)


class Times(Case):
    def test_percentiles(self):
        model = self.path("t.sinter")
        self.sinter("convert", self.product, "-o", model, "--dim", "time=5", "--target", "portable")
        bench = json.loads(self.sinter("bench", model, "--seconds", "0.01", "--profile", "--json").out)
        self.assertLessEqual(bench["min_ms"], bench["median_ms"])
        self.assertLessEqual(bench["median_ms"], bench["p90_ms"])
        self.assertLessEqual(bench["p90_ms"], bench["p99_ms"])
        run = json.loads(self.sinter("run", model, "--random", "1", "--profile", "--json").out)
        self.assertTrue(3 <= run["warm_runs"] <= 20)
        self.assertGreater(run["first_ms"], 0)
        for step in (*bench["profile"], *run["profile"]):
            self.assertLessEqual(step["min_us"], step["us"])
            self.assertLessEqual(step["us"], step["p90_us"])
            self.assertLessEqual(step["p90_us"], step["p99_us"])
        self.assertEqual({s["runs"] for s in run["profile"]}, {run["warm_runs"]})
        text = self.sinter("run", model, "--random", "1", "--profile").out
        self.assertRegex(text, r"first run [\d.]+ ms; then, of \d+ runs of the first sample after 2 to warm up:")


class OnnxFiles(Case):
    """inspect, explain and bench of an ONNX model, which is converted for the command alone."""

    def sinter_files(self):
        return sorted(f for f in os.listdir(tempfile.gettempdir()) if f.startswith("sinter-"))

    def test_each_command(self):
        before, files = self.sinter_files(), sorted(os.listdir(self.dir))
        said = f"sinter: {self.product} is converted for this command alone"
        r = self.sinter("inspect", self.product, "--dim", "time=5", "--target", "portable", "--json")
        self.assertIn(said, r.err)
        facts = json.loads(r.out)
        self.assertEqual((facts["target"], facts["inputs"][0]["shape"]), ("portable", [1, 5, 8]))
        self.assertIn("step 0", self.sinter("explain", self.product, "project", "--shape", "x=2,5,8").out)
        bench = json.loads(self.sinter("bench", self.product, "--dim", "time=5", "--seconds", "0.01", "--json").out)
        self.assertEqual(bench["model"], self.product)
        self.assertEqual(self.sinter("bench", self.product, "--dim", "time=5", "--seconds", "0.01", "--quiet").err, "")
        self.assertEqual((self.sinter_files(), sorted(os.listdir(self.dir))), (before, files))

    def test_refusals(self):
        before = self.sinter_files()
        for command in (["inspect"], ["bench"], ["explain"]):
            name = ["project"] if command == ["explain"] else []
            r = self.sinter(*command, self.product, *name, code=3)
            self.assertIn("these dimensions are open: x dim 1 'time'", r.err)
            r = self.sinter(*command, self.product, *name, "--dim", "time=5", "--public-key", "none.pub", code=2)
            self.assertIn("leave out --public-key", r.err)
        model = self.path("fixed.sinter")
        self.sinter("convert", self.product, "-o", model, "--dim", "time=5")
        self.assertIn("are fixed", self.sinter("bench", model, "--dim", "time=5", code=2).err)
        self.assertEqual(self.sinter_files(), before)


def main():
    global SINTER
    SINTER, argv = cli.program_and_argv()
    unittest.main(argv=argv)


if __name__ == "__main__":
    main()
