#!/usr/bin/env python3
"""What the command line shows in terminals of several widths: summaries, help, suggestions, progress.

    test_terminal.py [--sinter PROGRAM] [unittest options]

Works on small models made here; needs numpy and onnx.
"""
import fcntl
import json
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import threading
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
        for line in r.out.splitlines() if args[0] not in ("inspect", "explain") else ():  # class Wrapped
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

    def test_other_names_of_targets(self):
        for given, name in (("arm64", "aarch64"), ("ARM64", "aarch64"), ("AArch64", "aarch64"), ("arm64-v8a", "aarch64"),
                            ("armv8", "aarch64"), ("armv8.2-a", "aarch64"), ("cortex-a72", "aarch64"), ("arm64+dotprod", "aarch64"),
                            ("armhf", "armv7"), ("arm", "armv7"), ("armv7l", "armv7"), ("armeabi-v7a", "armv7"), ("x64", "x86_64"),
                            ("amd64", "x86_64"), ("x86-64", "x86_64"), ("X86_64", "x86_64"), ("x86", "x86_64"), ("m4", "cortex-m4"),
                            ("cortexm4", "cortex-m4"), ("cortex_m4", "cortex-m4"), ("cortex-m7", "cortex-m4"),
                            ("cortex-m33", "cortex-m4"), ("stm32f4", "cortex-m4"), ("gpu", "cuda"), ("nvidia", "cuda"),
                            ("CUDA", "cuda"), ("jetson", "cuda"), ("sm_87", "cuda"), ("host", "native"), ("any", "portable"),
                            ("x86_64+vnni", "avx512vnni"), ("x86_64+AVX512_VNNI", "avx512vnni"), ("cuda+sm_87", "sm87"),
                            ("aarch64+asimddp", "dotprod")):
            with self.subTest(given=given):
                r = cli.call(SINTER, "convert", self.product, "-o", self.path("no.sinter"), "--target", given)
                self.assertEqual(r.code, 2, r.why())
                self.assertIn(f"did you mean '{name}'?", r.err)
        r = cli.call(SINTER, "convert", self.product, "-o", self.path("no.sinter"), "--target", "pdp11")
        self.assertNotIn("did you mean", r.err)
        model = self.path("two.sinter")
        self.sinter("convert", self.product, "-o", model, "--dim", "time=5", "--target", "aarch64,portable")
        self.assertIn("did you mean 'aarch64'?", cli.call(SINTER, "inspect", model, "--target", "arm64").err)
        self.assertIn("did you mean 'aarch64'?", cli.call(SINTER, "embed", model, "-o", self.path("e"), "--target", "arm64").err)

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
        self.assertEqual(sorted(complete("sinter", "convert", "--quant")), ["--quantize", "--quantize-config"])
        self.assertEqual(complete("sinter", "convert", "--require"), ["--require-int8"])
        self.assertEqual(complete("sinter", "convert", "--quantize", "int8"), ["int8", "int8x16", "int8w"])
        self.assertEqual(complete("sinter", "convert", "prod"), ["product.onnx"])
        self.assertEqual(complete("sinter", "completion", ""), ["bash", "zsh", "fish"])
        self.sinter("completion", "tcsh", code=2)

    def script(self, shell):
        path = self.path(f"completion.{shell}")
        with open(path, "w", encoding="utf-8") as file:
            file.write(cli.call(SINTER, "completion", shell).out)
        return path

    def test_completion_in_fish(self):
        fish = shutil.which("fish")
        if fish is None:
            self.skipTest("no fish; scripts/install.sh installs it")
        script = self.script("fish")

        def complete(line):
            done = subprocess.run([fish, "--no-config", "-c", "source $argv[1]; complete -C $argv[2]", script, line],
                                  capture_output=True, text=True, cwd=self.dir)
            self.assertEqual((done.returncode, done.stderr), (0, ""), line)
            return sorted(candidate.split("\t")[0] for candidate in done.stdout.splitlines())

        self.assertEqual(complete("sinter con"), ["convert"])
        self.assertEqual(complete("sinter help con"), ["convert"])
        self.assertEqual(sorted(complete("sinter convert --quant")), ["--quantize", "--quantize-config"])
        self.assertEqual(complete("sinter convert --require"), ["--require-int8"])
        self.assertEqual(complete("sinter convert --quantize int8"), ["int8", "int8w", "int8x16"])
        self.assertEqual(complete("sinter convert prod"), ["product.onnx"])
        self.assertEqual(complete("sinter completion "), ["bash", "fish", "zsh"])

    def test_completion_in_zsh(self):
        """Keys are typed into an interactive zsh: Tab completes, Ctrl-X lists the candidates, Ctrl-G prints the line and ends."""
        zsh = shutil.which("zsh")
        if zsh is None:
            self.skipTest("no zsh; scripts/install.sh installs it")
        begin = (f'autoload -Uz compinit && compinit -D -u; source "{self.script("zsh")}"; LISTMAX=0 PS1=; '
                 '_end() { print -r -- "<$BUFFER>"; exit }; zle -N _end; bindkey "^G" _end; bindkey "^X" list-choices; '
                 'bindkey "^I" complete-word; zle-line-init() { print re""ady }; zle -N zle-line-init\n')

        def typed(keys, seen):
            """What zsh shows until it ends; it lists nothing while keys wait, so the last one follows when `seen` is shown."""
            ours, theirs = pty.openpty()
            environment = dict(os.environ, TERM="dumb", HOME=self.dir, ZDOTDIR=self.dir)
            child = subprocess.Popen([zsh, "-f", "-i"], stdin=theirs, stdout=theirs, stderr=theirs, cwd=self.dir, env=environment,
                                     start_new_session=True)
            os.close(theirs)
            text, done = "", 0
            os.write(ours, begin.encode())
            for end, more in (("ready", keys), (seen, "\x07"), (">", "")):
                while end not in text[done:]:
                    self.assertTrue(select.select([ours], [], [], 30)[0], f"zsh is silent after {text!r}")
                    text += os.read(ours, 65536).decode(errors="replace")
                done = len(text)
                os.write(ours, more.encode())
            child.wait(30)
            os.close(ours)
            return text

        def complete(line):
            return typed(line + "\t", line).rsplit("<", 1)[1].split(">")[0]

        self.assertEqual(complete("sinter con"), "sinter convert ")
        self.assertEqual(complete("sinter convert --require"), "sinter convert --require-int8 ")
        self.assertEqual(complete("sinter convert prod"), "sinter convert product.onnx ")
        self.assertIn("bash  fish  zsh", typed("sinter completion \x18", "zsh"))

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


class Work(Case):
    """Multiply-adds: one count in every command."""

    def test_inspect_explain_and_profiles(self):
        model = self.path("w.sinter")
        report = json.loads(self.sinter("convert", self.product, "-o", model, "--dim", "time=5", "--target", "portable", "--json").out)
        facts = json.loads(self.sinter("inspect", model, "--steps", "--json").out)
        self.assertEqual(facts["multiply_adds"], report["multiply_adds"]["file"])
        self.assertEqual(sum(s["multiply_adds"] for s in facts["steps"]), 160)
        self.assertIn("work 160 multiply-adds: all in float32", self.words_of(self.sinter("inspect", model).out))
        self.assertIn("160 multiply-adds", self.sinter("inspect", model, "--steps").out)
        self.assertIn("160 multiply-adds", self.sinter("explain", model, "project").out)
        steps = json.loads(self.sinter("explain", model, "project", "--json").out)["steps"]
        self.assertEqual([s["multiply_adds"] for s in steps], [160])
        for command in (["run", model, "--random", "1"], ["bench", model, "--seconds", "0.01"]):
            step, = (s for s in json.loads(self.sinter(*command, "--profile", "--json").out)["profile"] if s["multiply_adds"] > 0)
            self.assertAlmostEqual(step["gmac_per_s"], 160 / step["us"] / 1000)
            self.assertIn("GMAC/s", self.sinter(*command, "--profile").out)

    def test_a_loop(self):
        model = self.path("lw.sinter")
        body = helper.make_graph([helper.make_node("MatMul", ["h", "w"], ["n"]), helper.make_node("Identity", ["c"], ["go"])], "b",
                                 [value("i", [], TensorProto.INT64), value("c", [], TensorProto.BOOL), value("h", [1, 4])],
                                 [value("go", [], TensorProto.BOOL), value("n", [1, 4])])
        save(self.path("lw.onnx"), [helper.make_node("Loop", ["trips", "", "x"], ["y"], name="again", body=body)],
             [value("trips", [], TensorProto.INT64), value("x", [1, 4])], [value("y", [1, 4])],
             [numpy_helper.from_array(np.eye(4, dtype=np.float32), "w")])
        page = self.path("lw.html")
        report = json.loads(self.sinter("convert", self.path("lw.onnx"), "-o", model, "--max-trips", "again=7", "--json", "--report",
                                        page).out)
        facts = json.loads(self.sinter("inspect", model, "--steps", "--json").out)
        self.assertEqual((facts["multiply_adds"], report["multiply_adds"]["file"]), (112, 112))
        self.assertEqual([s["multiply_adds"] for s in facts["steps"] if s["op"] == "Loop"], [112])
        with open(page, encoding="utf-8") as file:
            text = file.read()
        self.assertIn("multiply-adds in a run, 112 in the ONNX graph", text)
        self.assertIn("112 multiply-adds", text)


class Wrapped(Case):
    """Lines on a terminal, which is a pty here; elsewhere a message and a step are one line each."""
    WIDTHS = (40, 60, 80, 100, 132)

    def on_terminal(self, *args, columns=0, environment=None):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        attributes = termios.tcgetattr(theirs)
        attributes[1] &= ~termios.OPOST  # line breaks as they are
        termios.tcsetattr(theirs, termios.TCSANOW, attributes)
        child = subprocess.Popen([SINTER, *args], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=environment)

        # Linux drops what is not read yet when the last writer closes, so that this side stays open and marks the end itself.
        def mark_the_end():
            child.wait()
            os.write(theirs, b"\0")

        marker = threading.Thread(target=mark_the_end)
        marker.start()
        text = b""
        while not text.endswith(b"\0"):
            text += os.read(ours, 65536)
        marker.join()
        os.close(theirs)
        os.close(ours)
        return text[:-1].decode()

    def fits(self, shown, words, columns):
        """`shown` has these words, none of them cut by an edge of the terminal."""
        self.assertEqual(shown.split(), words)
        for line in shown.splitlines():
            if len(line) > columns:  # a word that is longer than a line
                self.assertEqual((len(line.split()), len(line.strip()) > columns), (1, True), (columns, line))

    def test_help(self):
        listed = cli.call(SINTER, "--help").out.split("Commands:\n")[1].split("\n\n")[0]
        commands = [line.split()[0] for line in listed.splitlines() if line[2] != " "]
        self.assertGreater(len(commands), 12)
        for args in (["--help"], *([c, "--help"] for c in commands), ["help", "convert"]):
            words = cli.call(SINTER, *args).out.split()
            for columns in self.WIDTHS:
                with self.subTest(args=args, columns=columns):
                    self.fits(self.on_terminal(*args, columns=columns), words, columns)

    def test_width_without_a_size(self):
        for given, columns in (("60", 60), ("none", COLUMNS), ("0", COLUMNS)):
            shown = self.on_terminal("run", "--help", environment={**os.environ, "COLUMNS": given})
            longest = max(map(len, shown.splitlines()))
            self.assertTrue(columns - 12 < longest <= columns, (given, longest))
        shown = self.on_terminal("run", "--help", columns=50, environment={**os.environ, "COLUMNS": "132"})
        self.assertLessEqual(max(map(len, shown.splitlines())), 50)

    def test_summaries_and_tables(self):
        """Numbers differ from run to run, so that only the kinds of words are compared."""
        model, inputs = self.path("wide.sinter"), [f"image_{i}" for i in range(5)]
        save(self.path("wide.onnx"), [helper.make_node("Concat", inputs, ["joined"], name="join_them_all", axis=1),
                                      helper.make_node("Softmax", ["joined"], ["scores"], name="the_scores_of_all_classes")],
             [value(n, ["batch", 4]) for n in inputs], [value("scores", ["batch", 20])])
        cli.save_npz(self.path("wide.npz"), {n: np.ones((1, 4), np.float32) for n in inputs})

        def kinds(text):
            return [re.sub(r"[0-9.]+", "0", word) for word in text.split()]

        for args in (["convert", self.path("wide.onnx"), "-o", model], ["inspect", model], ["inspect", model, "--steps"],
                     ["inspect", model, "--memory"], ["inspect", model, model, "--memory"], ["run", model, "--random", "1"],
                     ["compare", self.path("wide.onnx"), model, "--random", "1", "--per-layer"],
                     ["ranges", self.path("wide.onnx"), "--calibrate", self.path("wide.npz")],
                     ["convert", self.path("wide.onnx"), "-o", model, "--dim", "image=3", "--shape", "image_0=1,2,3"]):
            r = cli.call(SINTER, *args, timeout=60)
            plain = kinds(r.out + r.err if args[-1] != "image_0=1,2,3" else r.err)
            for columns in self.WIDTHS:
                with self.subTest(args=args[:3:2], columns=columns):
                    shown = self.on_terminal(*args, columns=columns)
                    self.assertEqual([w for w in kinds(shown) if "#" not in w], [w for w in plain if "#" not in w])
                    self.fits(shown, shown.split(), columns)
        for args in (["run", model, "--random", "1", "--profile"], ["bench", model, "--seconds", "0.01", "--profile"]):
            for columns in self.WIDTHS:
                shown = self.on_terminal(*args, columns=columns)
                self.assertIn("the_scores_of_all_classes", shown.split())
                self.assertIn("GMAC/s", shown.split())
                self.fits(shown, shown.split(), columns)

    def test_letters_of_two_columns(self):
        name = "\u5165\u529b" * 6  # 24 columns
        save(self.path("han.onnx"), [helper.make_node("Concat", [name] * 4, ["y"], name="joined", axis=0)], [value(name, [2])],
             [value("y", [8])])
        model = self.path("han.sinter")
        self.assertEqual(cli.call(SINTER, "convert", self.path("han.onnx"), "-o", model).code, 0)
        for columns in (40, 60):
            shown = self.on_terminal("inspect", model, "--steps", columns=columns)
            self.assertEqual(shown.count(name), 4)
            for line in shown.splitlines():
                self.assertLessEqual(sum(2 if c > "\u2fff" else 1 for c in line), columns, line)

    def test_progress(self):
        """One line, in one row, whatever the width; it is gone at the end."""
        data = self.path("slow.npy")
        with open(data, "wb") as file:
            for _ in range(4):
                np.save(file, np.ones((1, 5, 8), np.float32))
        for columns in (30, *self.WIDTHS):
            shown = self.on_terminal("convert", self.product, "-o", self.path("slow.sinter"), "--dim", "time=5", "--quantize", "int8",
                                     "--calibrate", f"cmd:sleep 0.6; cat {data}", columns=columns)
            states = shown.split("\r\x1b[K")
            self.assertGreater(len(states), 2, shown)
            for state in states[1:-1]:
                self.assertNotIn("\n", state)
                self.assertLess(len(state), columns)
            whole = "reading samples; 0:00 so far"
            self.assertIn(whole if columns > len(whole) + 1 else whole[:columns - 4] + "...", states)
            for line in states[-1].splitlines():
                self.assertTrue(len(line) <= columns or len(line.split()) == 1, line)

    def test_messages_and_steps(self):
        names = [f"a_long_name_of_a_value_{i}" for i in range(6)]
        save(self.path("long.onnx"), [helper.make_node("Concat", names, ["y"], name="joined", axis=0)], [value(n, [2]) for n in names],
             [value("y", [12])])
        model = self.path("long.sinter")
        self.sinter("convert", self.path("long.onnx"), "-o", model, "--target", "portable")
        short = os.path.join(tempfile.gettempdir(), "none.sinter")
        for args in (["inspect", model], ["inspect", model, "--steps"], ["inspect", model, "--types"], ["explain", model, "joined"],
                     ["run", short, "--quantize", "int8", "--no-such-flag-of-this-command", "--and-another-one-that-is-not-there"]):
            with self.subTest(args=args[0:3:2]):
                r = cli.call(SINTER, *args, timeout=60)
                plain = r.out + r.err
                shown = self.on_terminal(*args)
                self.assertEqual(shown.split(), plain.split())
                for line in shown.splitlines():
                    self.assertLessEqual(len(line), COLUMNS, line)
        r = cli.call(SINTER, "inspect", model, "--steps", timeout=60)
        self.assertGreater(max(map(len, r.out.splitlines())), COLUMNS)
        steps = json.loads(self.sinter("inspect", model, "--steps", "--json").out)["steps"]
        self.assertEqual(len(r.out.splitlines()), len(steps))


class OnnxFiles(Case):
    """Commands on an ONNX model, which is converted for the command alone."""

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
        self.sinter("compare", self.product, self.product, "--random", "1", "--dim", "time=5")
        self.sinter("compare", self.product, self.product, "--random", "1", "--shape", "x=2,5,8", "--target", "portable")
        self.assertEqual((self.sinter_files(), sorted(os.listdir(self.dir))), (before, files))

    def test_run_compare_and_ranges(self):
        """Their results are those of the converted file."""
        model, before = self.path("same.sinter"), self.sinter_files()
        self.sinter("convert", self.product, "-o", model, "--dim", "time=5")
        out = [self.path("from_onnx.npz"), self.path("from_sinter.npz")]
        self.sinter("run", self.product, "--random", "3", "--outputs", out[0], "--dim", "time=5")
        self.sinter("run", model, "--random", "3", "--outputs", out[1])
        np.testing.assert_array_equal(cli.load_npz(out[0])["y"], cli.load_npz(out[1])["y"])
        same = json.loads(self.sinter("compare", model, self.product, "--random", "3", "--dim", "time=5", "--json").out)
        self.assertEqual((same["within"], same["outputs"][0]["max_abs"]), (True, 0))
        cli.save_npz(self.path("x.npz"), {"x": np.ones((4, 1, 5, 8), np.float32)})
        ranges = json.loads(self.sinter("ranges", self.product, "--dim", "time=5", "--calibrate", self.path("x.npz"), "--json").out)
        self.assertEqual(ranges["samples"], 4)
        self.assertIn("these dimensions are open", self.sinter("ranges", self.product, "--calibrate", self.path("x.npz"), code=3).err)
        self.assertEqual(self.sinter_files(), before)

    def test_refusals(self):
        before = self.sinter_files()
        for command in (["inspect"], ["bench"], ["explain"], ["run"], ["compare", self.product]):
            name = {"explain": ["project"], "run": ["--random", "1"], "compare": ["--random", "1"]}.get(command[0], [])
            r = self.sinter(*command, self.product, *name, code=3)
            self.assertIn("these dimensions are open: x dim 1 'time'", r.err)
            r = self.sinter(*command, self.product, *name, "--dim", "time=5", "--public-key", "none.pub", code=2)
            self.assertIn("leave out --public-key", r.err)
        model = self.path("fixed.sinter")
        self.sinter("convert", self.product, "-o", model, "--dim", "time=5")
        self.assertIn("are fixed", self.sinter("bench", model, "--dim", "time=5", code=2).err)
        self.assertIn("are fixed", self.sinter("run", model, "--random", "1", "--dim", "time=5", code=2).err)
        self.assertIn("are fixed", self.sinter("compare", self.product, model, "--random", "1", "--dim", "time=5", code=2).err)
        self.assertEqual(self.sinter_files(), before)


def main():
    global SINTER
    SINTER, argv = cli.program_and_argv()
    unittest.main(argv=argv)


if __name__ == "__main__":
    main()
