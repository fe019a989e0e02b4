#!/usr/bin/env python3
"""The files around a model: several processes at once, a hostile neighbour in the same folder, pipes, modes, links, and
names that no terminal should see. Ten seconds.

    test_files.py [--sinter PROGRAM] [unittest options]

tests/application/files_test.cc has the same for the C API.
"""
import io
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
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
WIDTH = 64


def network(path, x="x", y="y", node="product"):
    weights = numpy_helper.from_array(np.full((WIDTH, WIDTH), 0.25, np.float32), "w")
    graph = helper.make_graph([helper.make_node("MatMul", [x, "w"], [y], name=node)], "g",
                              [helper.make_tensor_value_info(x, TensorProto.FLOAT, [1, WIDTH])],
                              [helper.make_tensor_value_info(y, TensorProto.FLOAT, [1, WIDTH])], [weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def contents(path):
    with open(path, "rb") as f:
        return f.read()


def put(path, data):
    with open(path, "wb") as f:
        f.write(data)


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="files-")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.tmp = self.path("tmp")
        os.mkdir(self.tmp)
        self.onnx, self.model, self.inputs, self.data = (self.path(n) for n in ("net.onnx", "net.sinter", "x.npz", "x.npy"))
        network(self.onnx)
        x = np.ones((1, WIDTH), np.float32)
        cli.save_npz(self.inputs, {"x": x})
        np.save(self.data, x)
        self.expect(0, "convert", self.onnx, "-o", self.model, "--quiet")
        self.good = contents(self.model)

    def path(self, name):
        return os.path.join(self.dir, name)

    def start(self, *args, **options):
        environment = {**os.environ, "TMPDIR": self.tmp}
        return subprocess.Popen([SINTER, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, **options)

    def expect(self, code, *args, words=(), **options):
        """Its standard output and error; it ends, whatever is read."""
        process = self.start(*args, stdin=subprocess.DEVNULL, **options)
        try:
            out, err = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            self.fail(f"{args} does not end")
        self.assertEqual(process.returncode, code, (args, err[-600:]))
        for word in words:
            self.assertIn(word, err.decode())
        return out, err


class Writing(Case):
    # What writes one file: arguments with OUT for it, and whether a device can have it.
    COMMANDS = (("convert", "ONNX", "-o", "OUT"), ("pack", "MODEL", "-o", "OUT"),
                ("run", "MODEL", "--inputs", "X", "--outputs", "OUT.npz"), ("run", "MODEL", "--inputs", "X", "--outputs", "OUT.npy"),
                ("convert", "ONNX", "-o", "OTHER", "--report", "OUT.json"), ("convert", "ONNX", "-o", "OTHER", "--report", "OUT.html"),
                ("inspect", "MODEL", "--memory", "--html", "OUT"), ("sign", "MODEL", "--key", "KEY", "-o", "OUT"))

    def command(self, args, out):
        places = {"ONNX": self.onnx, "MODEL": self.model, "X": self.inputs, "OTHER": self.path("other"), "KEY": self.path("our.key")}
        if not os.path.exists(self.path("our.key")):
            self.expect(0, "keygen", self.path("our"), "--quiet")
        return [out + a[3:] if a.startswith("OUT") else places.get(a, a) for a in args] + ["--quiet"]

    def each(self):
        """The arguments of each command and the file that it writes, in a folder without others."""
        for i, args in enumerate(self.COMMANDS):
            folder = self.path(f"folder{i}")
            os.mkdir(folder)
            words = self.command(args, os.path.join(folder, "out"))
            yield words, next(os.path.join(folder, w) for w in words if w.startswith(folder))

    def test_modes_links_and_files_of_the_user_are_kept(self):
        os.umask(0o022)
        for words, out in self.each():
            with self.subTest(words=words):
                self.expect(0, *words)
                new = contents(out)
                self.assertEqual(mode(out), 0o644)
                put(out, b"old")
                os.chmod(out, 0o600)
                kept = {out + ".partial": b"the user's", out + ".partial-1": b"the user's, too"}
                for name, data in kept.items():
                    put(name, data)
                os.link(out, out + ".hard")
                self.expect(0, *words)
                self.assertEqual((contents(out), mode(out)), (new, 0o600))
                self.assertEqual({n: contents(n) for n in kept}, kept)
                self.assertEqual(contents(out + ".hard"), b"old")
                os.mkdir(out + "-there")
                there = os.path.join(out + "-there", "file")
                os.rename(out, there)
                os.symlink(os.path.relpath(there, os.path.dirname(out)), out)
                put(there, b"old")
                self.expect(0, *words)
                self.assertTrue(os.path.islink(out))
                self.assertEqual((contents(there), mode(there)), (new, 0o600))
                os.remove(there)  # a link to nothing is one to a new file
                self.expect(0, *words)
                self.assertTrue(os.path.islink(out))
                self.assertEqual(contents(there), new)

    def test_planted_links_are_not_followed(self):
        """Whoever foresees a temporary name could have a file of the user's overwritten."""
        precious = self.path("precious")
        put(precious, b"mine")
        commands = [(words, out) for words, out in self.each()]
        commands += [(["run", self.onnx, "--inputs", self.inputs], None), (["bench", self.onnx, "--seconds", "0.01"], None),
                     (["inspect", self.onnx], None), (["compare", self.onnx, self.onnx, "--random", "1"], None),
                     (["convert", self.onnx, "-o", self.path("q.sinter"), "--quantize", "int8", "--calibrate", self.inputs, "--quiet"], None)]
        for words, out in commands:
            with self.subTest(words=words):
                # The process stops before it starts, so that its number is known.
                gate, opened = os.pipe()
                process = subprocess.Popen(["/bin/sh", "-c", "read go <&3; exec \"$0\" \"$@\"", SINTER, *words], pass_fds=(gate,),
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": self.tmp},
                                           preexec_fn=lambda: os.dup2(gate, 3))
                planted = []
                for at in (out, os.path.join(self.tmp, f"sinter-{process.pid}.sinter")):
                    for name in ((at + f".partial-{process.pid}", at + ".partial", at + f".partial-{process.pid}-1") if at else ()):
                        os.symlink(precious, name)
                        planted.append(name)
                os.symlink(precious, os.path.join(self.tmp, f"sinter-{process.pid}.sinter"))
                planted.append(os.path.join(self.tmp, f"sinter-{process.pid}.sinter"))
                os.write(opened, b"go\n")
                os.close(opened), os.close(gate)
                err = process.communicate(timeout=60)[1]
                self.assertEqual(process.returncode, 0, err[-400:])
                self.assertEqual(contents(precious), b"mine")
                for name in planted:
                    self.assertTrue(os.path.islink(name), name)
                    os.remove(name)
                self.assertEqual(os.listdir(self.tmp), [])

    def test_links_of_others_in_shared_folders_are_refused(self):
        if os.geteuid() != 0:
            self.skipTest("only root can make a link of another user")
        precious = self.path("precious")
        put(precious, b"mine")
        os.mkdir(self.path("shared"))
        os.chmod(self.path("shared"), 0o1777)
        out = self.path("shared/out.npz")
        os.symlink(precious, out)
        os.lchown(out, 65534, 65534)
        self.expect(6, "run", self.model, "--inputs", self.inputs, "--outputs", out, words=("link of another user",))
        self.assertEqual(contents(precious), b"mine")

    def test_processes_write_one_output(self):
        for words, out in self.each():
            with self.subTest(words=words):
                if "--sign" in words or words[0] in ("sign", "inspect"):
                    continue
                self.expect(0, *words)
                new = contents(out)
                running = [self.start(*words) for _ in range(4)]
                while any(p.poll() is None for p in running):
                    self.assertEqual(contents(out), new)
                for p in running:
                    err = p.communicate()[1]
                    self.assertEqual(p.returncode, 0, err[-400:])
                self.assertEqual(contents(out), new)
                self.assertEqual(os.listdir(os.path.dirname(out)), [os.path.basename(out)])

    def test_devices_and_pipes_get_results_but_not_models(self):
        run = ["run", self.model, "--inputs", self.inputs, "--outputs"]
        out, _ = self.expect(0, *run, "/dev/stdout", "--quiet")
        self.assertEqual(list(np.load(io.BytesIO(out))), ["y"])
        with open(self.path("redirected"), "wb") as to:  # the file itself, not another one in its place
            subprocess.run([SINTER, *run, "/dev/stdout", "--quiet"], stdout=to, check=True)
        self.assertEqual(contents(self.path("redirected")), out)
        self.expect(0, *run, "/dev/null", "--quiet")
        os.mkfifo(self.path("pipe"))
        self.expect(6, *run, self.path("pipe"), words=("nothing reads this pipe",))
        reader = subprocess.Popen(["cat", self.path("pipe")], stdout=subprocess.PIPE)
        writer = os.open(self.path("pipe"), os.O_WRONLY)  # when the reader is there
        self.expect(0, *run, self.path("pipe"), "--quiet")
        os.close(writer)
        self.assertEqual(reader.communicate(timeout=20)[0], out)
        os.symlink("/dev/null", self.path("null.sinter"))
        for place in ("/dev/null", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", self.path("pipe"), self.path("null.sinter")):
            for words in (["convert", self.onnx, "-o"], ["pack", self.model, "-o"]):
                with self.subTest(place=place, words=words):
                    self.expect(6, *words, place, words=("not a regular file",))
        self.assertTrue(os.path.islink("/dev/stdout"))

    def test_no_file_outlives_a_command(self):
        for words in (["run", self.onnx, "--inputs", self.inputs], ["compare", self.onnx, self.onnx, "--random", "1"]):
            self.expect(0, *words)
            self.assertEqual(os.listdir(self.tmp), [])


class Interrupted(Case):
    """A signal ends what a command has started, and removes its temporary files."""

    def gone(self, pid):
        for _ in range(300):
            try:
                with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
                    if f.read().rsplit(")", 1)[1].split()[0] == "Z":
                        return True
            except FileNotFoundError:
                return True
            time.sleep(0.01)
        return False

    def interrupt(self, number, script, *args):
        """Sends the signal when the processes of `script` have written their numbers; it does not heed SIGTERM."""
        pids = self.path("pids")
        put(pids, b"")
        put(self.path("slow.sh"), f"trap '' TERM\nsleep 300 & echo $$ $! > {pids}\n{script}\nwait\n".encode())
        process = self.start(*args, stdin=subprocess.DEVNULL)
        for _ in range(1000):
            if contents(pids).endswith(b"\n") or process.poll() is not None:
                break
            time.sleep(0.02)
        time.sleep(0.05)
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, -number, err)
        started = contents(pids).split()
        self.assertEqual(len(started), 2, err)
        for pid in started:
            self.assertTrue(self.gone(int(pid)), (number, args))
        self.assertEqual(os.listdir(self.tmp), [])
        self.assertEqual([f for f in os.listdir(self.dir) if "out.sinter.partial" in f], [])

    def test_commands_end_with_the_program(self):
        quantize = ["convert", self.onnx, "-o", self.path("out.sinter"), "--quantize", "int8", "--quiet"]
        slow = f"cmd:sh {self.path('slow.sh')}"
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self.interrupt(number, "", *quantize, "--calibrate", slow)
            # One sample is there already.
            self.interrupt(number, f"cat {self.data}", "ranges", self.onnx, "--calibrate", slow)
        cli.save_npz(self.path("many.npz"), {"x": np.random.default_rng(1).standard_normal((8, WIDTH)).astype(np.float32)})
        self.interrupt(signal.SIGINT, "", "convert", self.onnx, "-o", self.path("out.sinter"), "--evaluate", self.path("many.npz"),
                       "--metric", slow)

    def test_a_command_that_goes_on_is_ended(self):
        """With --samples a stream is left before its end."""
        put(self.path("endless.sh"), f"echo $$ > {self.path('pid')}\ncat {self.data} {self.data}\nexec sleep 300\n".encode())
        self.expect(0, "ranges", self.onnx, "--calibrate", f"cmd:sh {self.path('endless.sh')}", "--samples", "2")
        self.assertTrue(self.gone(int(contents(self.path("pid")))))


class Reading(Case):
    def readers(self, at):
        """Commands that read the file `at`, whatever its name ends in."""
        convert, out = ["convert", self.onnx, "-o", self.path("out.sinter")], self.path("out.sinter")
        return [["convert", at("a.onnx"), "-o", out], ["inspect", at("a.onnx")], ["inspect", at("a.sinter")], ["run", at("a.sinter"), "--inputs", self.inputs],
                ["bench", at("a.sinter")], ["explain", at("a.sinter"), "y"], ["pack", at("a.sinter"), "-o", out],
                ["run", at("a.sinter"), "--inputs", self.inputs, "--copy"], ["embed", at("a.sinter"), "-o", self.path("embedded")],
                ["compare", at("a.onnx"), self.model, "--random", "1"], ["compare", self.onnx, at("a.sinter"), "--random", "1"],
                ["tune", at("a.sinter"), "-o", out], ["tune", self.model, "-o", out, "--times", at("times")],
                ["run", self.model, "--inputs", at("x.npz")], ["run", self.model, "--inputs", at("x.npy")], ["run", self.model, "--inputs", at("x.bin")],
                ["run", self.model, "--inputs", at("x.pb")], ["run", self.model, "--inputs", at("x.csv")], ["run", self.model, "--inputs", at("x.json")],
                [*convert, "--const", "x=" + at("x.npy")], [*convert, "--quantize", "int8", "--calibrate", at("x.npz")],
                [*convert, "--quantize", "int8", "--calibrate", at("x.npy")], ["ranges", self.onnx, "--calibrate", at("x.png")],
                ["run", self.model, "--inputs", self.inputs, "--public-key", at("k.pub")], ["sign", self.model, "--key", at("k.key")],
                ["inspect", self.model, "--custom-ops", at("lib.so")]]

    def test_pipes_sockets_folders_and_devices_are_refused(self):
        made = self.path("special")
        os.mkdir(made)
        sockets = []

        def pipe(name):
            os.mkfifo(name)

        def listening(name):
            sockets.append(socket.socket(socket.AF_UNIX))
            sockets[-1].bind(name)

        kinds = {"pipe": pipe, "socket": listening, "folder": os.mkdir, "device": lambda name: os.symlink("/dev/zero", name)}
        for kind, make in kinds.items():
            def at(name, kind=kind, make=make):
                path = os.path.join(made, f"{kind}-{name}")
                if not os.path.lexists(path):
                    make(path)
                return path
            for words in self.readers(at):
                # A folder of samples is none here, and holds none.
                codes = (2, 5, 6) if kind == "folder" else (2, 6)
                with self.subTest(words=words, kind=kind):
                    process = self.start(*words, stdin=subprocess.DEVNULL)
                    err = process.communicate(timeout=20)[1].decode()
                    self.assertIn(process.returncode, codes, err)
                    if kind != "folder":
                        self.assertRegex(err, f"is a {kind}|is not a (regular )?file")
                    self.assertEqual(err.count("\n"), 1, err)
        for s in sockets:
            s.close()
        self.assertFalse(os.path.exists(self.path("out.sinter")))

    def test_pipes_among_samples_are_refused(self):
        for name in ("a.png", "a.npy"):
            folder = self.path("folder-" + name)
            os.mkdir(folder)
            os.mkfifo(os.path.join(folder, name))
            for words in (["run", self.model, "--inputs", folder], ["ranges", self.onnx, "--calibrate", folder],
                          ["run", self.model, "--inputs", os.path.join(folder, "*")]):
                self.expect(6, *words, words=("is a pipe",))
        put(self.path("list.csv"), b"pipe.wav,1\n")
        os.mkfifo(self.path("pipe.wav"))
        self.expect(6, "run", self.model, "--inputs", self.path("list.csv"), words=("is a pipe",))

    def test_standard_streams_are_refused(self):
        for words in (["convert", "-", "-o", self.path("a")], ["convert", self.onnx, "-o", "-"], ["convert", self.onnx, "-o-"],
                      ["convert", self.onnx, "-o=-"], ["convert", self.onnx, "--output=-"], ["run", "-", "--inputs", self.inputs],
                      ["run", self.model, "--inputs", "-"], ["run", self.model, "--inputs", self.inputs, "--outputs", "-"],
                      ["inspect", "-"], ["pack", self.model, "-o", "-"], ["convert", self.onnx, "-o", self.path("a"), "--report", "-"],
                      ["embed", self.model, "-o", "-"], ["sign", self.model, "--key", "-"], ["keygen", "-"], ["bench", "-"],
                      ["compare", "-", self.model, "--random", "1"], ["convert", "-o", self.path("a"), "--", "-"]):
            with self.subTest(words=words):
                self.expect(2, *words, words=("standard input and output", "give the name of a file"), cwd=self.tmp)
        self.assertEqual(os.listdir(self.tmp), [])
        shutil.copy(self.onnx, os.path.join(self.tmp, "-"))
        self.expect(0, "convert", "./-", "-o", self.path("a"), cwd=self.tmp)


# What a terminal obeys, what hides in a text, and bytes that are not UTF-8, each as a name; {n} is a number.
HOSTILE = ["line{n}\nFAKE line", "return{n}\rFAKE", "escape{n}\x1b[31m\x1b]0;title\x07", "c1{n}\u009b31m\u0085FAKE", "turned{n}\u202etxt.exe",
           "isolated{n}\u2067x\u2069", "ends{n}\u2028FAKE\u2029", "tag{n}\U000e0041", "erased{n}\x7f\x08\x08", "mark{n}\ufeff\u200f\u061c"]
BYTES = {"@0000@": b"b\xff\xfe\x80c!", "@0001@": b"\xc3(\xa0\xf5x!", "@0002@": b"\xed\xa0\x80\xc0\x80!", "@0003@": b"\x9b31m\x90!"}
HIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb\ufeff\U000e0000-\U000e007f]")


def name_in_archive(name):
    return HIDDEN.sub(lambda m: f"\\x{ord(m[0]):02x}" if ord(m[0]) < 0x80 else f"\\u{ord(m[0]):04x}", name.replace("\n", "\\x0a"))


def hostile_network(path, names, op="Neg", data=None):
    """A chain of operations whose values, nodes and dimensions have the names."""
    numbers = iter(range(10_000))

    def name(i):
        return names[i % len(names)].replace("{n}", str(next(numbers))) if "{n}" in names[i % len(names)] else names[i % len(names)]
    nodes, values = [], [name(0)]
    weights = []
    for i in range(1, len(names) + 1):
        if len(names) - i < 1:
            weights.append(numpy_helper.from_array(np.full((WIDTH, WIDTH), 0.25, np.float32), name(i)))
            values.append(name(i))
            nodes.append(helper.make_node("MatMul", [values[-2], weights[0].name], [values[-1]], name=name(i)))
        else:
            values.append(name(i))
            nodes.append(helper.make_node(op if i == 1 else "Tanh", [values[-2]], [values[-1]], name=name(i)))
    graph = helper.make_graph(nodes, name(1), [helper.make_tensor_value_info(values[0], TensorProto.FLOAT, [name(2), WIDTH])],
                              [helper.make_tensor_value_info(v, TensorProto.FLOAT, None) for v in values[1:]], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name=names[0])
    put(path, model.SerializeToString())
    return values


class Names(Case):
    def clean(self, data):
        """What was printed, if a terminal would show all of it and obey nothing."""
        text = data.decode("utf-8")
        self.assertIsNone(HIDDEN.search(text), repr(text[-800:]))
        for line in text.split("\n"):
            self.assertFalse(line.startswith("FAKE"), repr(text[-800:]))
        return text

    def commands(self, model, made, data):
        convert = ["convert", model, "-o", made]
        return [convert, [*convert, "--json"], [*convert, "--quantize", "int8", "--calibrate", data, "--force-int8"],
                [*convert, "--report", self.path("r.html")], [*convert, "--report", self.path("r.json")], [*convert, "--report", self.path("r.jsonl")],
                [*convert, "--disable-pass", "fold", "--dump-after", "eliminate"], convert,
                ["inspect", made], ["inspect", made, "--json"], ["inspect", made, "--steps"], ["inspect", made, "--types"],
                ["inspect", made, "--memory"], ["inspect", made, "--memory", "--html", self.path("m.html")],
                ["inspect", made, "--steps", "--types", "--memory", "--json"], ["inspect", model],
                ["run", made, "--inputs", data], ["run", made, "--inputs", data, "--json"], ["run", made, "--random", "1", "--profile"],
                ["run", made, "--random", "1", "--profile", "--json"], ["run", made, "--inputs", data, "--outputs", self.path("y.npz")],
                ["bench", made, "--seconds", "0.01", "--profile"], ["bench", made, "--seconds", "0.01", "--profile", "--json"],
                ["compare", model, made, "--random", "1"], ["compare", model, made, "--random", "1", "--json"],
                ["compare", model, made, "--random", "1", "--per-layer"], ["compare", model, made, "--random", "1", "--per-layer", "--json"],
                ["ranges", model, "--calibrate", data], ["ranges", model, "--calibrate", data, "--json"],
                ["tune", made, "-o", self.path("t.sinter"), "--seconds", "0.01"], ["pack", made, "-o", self.path("p.sinter")],
                ["embed", made, "-o", self.path("embedded")]]

    def test_nothing_foreign_reaches_a_terminal(self):
        for kind, names in (("text", HOSTILE), ("bytes", ["x" + b for b in BYTES])):
            model, made, data = (self.path(kind + end) for end in (".onnx", ".sinter", ".npy"))
            values = hostile_network(model, [n if "{n}" in n else n + "{n}" for n in names])
            original = contents(model)
            for placeholder, name in BYTES.items():
                original = original.replace(placeholder.encode(), name)
            put(model, original)
            np.save(data, np.ones((1, WIDTH), np.float32))
            for words in self.commands(model, made, data):
                with self.subTest(kind=kind, words=words):
                    process = self.start(*words, stdin=subprocess.DEVNULL)
                    out, err = process.communicate(timeout=120)
                    self.assertIn(process.returncode, (0,) if words[0] not in ("tune", "embed", "convert") else (0, 1, 2, 5), err)
                    self.assertNotIn(b"internal error", err)
                    self.clean(err)
                    text = self.clean(out)
                    if "--json" in words:
                        json.loads(text)
            for page in ("r.json", "r.jsonl"):
                self.clean(contents(self.path(page)))
            for page in ("r.html", "m.html"):  # where an end of a line is a space
                self.assertIsNone(HIDDEN.search(contents(self.path(page)).decode()))
            described = json.loads(self.expect(0, "inspect", made, "--json")[0])
            arrays = dict(np.load(self.path("y.npz")))
            self.assertEqual([name_in_archive(o["name"]) for o in described["outputs"]], list(arrays))
            if kind == "text":  # readers of JSON get the names themselves
                self.assertEqual([o["name"] for o in described["outputs"]], values[1:])
                self.assertEqual(described["inputs"][0]["name"], values[0])
            # What is written is read again, by these names.
            name = described["inputs"][0]["name"]
            for given in {name, name_in_archive(name)}:
                cli.save_npz(self.path("x2.npz"), {given: np.ones((1, WIDTH), np.float32)})
                self.expect(0, "run", made, "--inputs", self.path("x2.npz"))

    def test_refusals_and_errors_are_clean(self):
        for kind, names in (("text", HOSTILE), ("bytes", ["x" + b for b in BYTES])):
            model = self.path(kind + ".onnx")
            for i, name in enumerate(names):
                bad = self.path("bad.onnx")
                one = name.replace("{n}", "")
                graph = helper.make_graph([helper.make_node(one, [one], ["y" + one], name=one, domain=one)], one,
                                          [helper.make_tensor_value_info(one, TensorProto.FLOAT, [one])],
                                          [helper.make_tensor_value_info("y" + one, TensorProto.FLOAT, None)])
                made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(one, 1)], ir_version=8)
                data = made.SerializeToString()
                for placeholder, to in BYTES.items():
                    data = data.replace(placeholder.encode(), to)
                put(bad, data)
                for words, codes in ((["convert", bad, "-o", self.path("no")], (3,)), (["convert", bad, "-o", self.path("no"), "--json"], (3,)),
                                     (["convert", bad, "-o", self.path("no"), "--shape", "none=1"], (2, 3)),
                                     (["inspect", bad], (3,)), (["run", bad, "--random", "1"], (3,))):
                    with self.subTest(kind=kind, i=i, words=words):
                        process = self.start(*words, stdin=subprocess.DEVNULL)
                        out, err = process.communicate(timeout=60)
                        self.assertIn(process.returncode, codes, err)
                        self.clean(out), self.clean(err)
                        if "--json" in words:
                            json.loads(out)
            # Names of inputs in errors about data, and of arrays and files.
            put(model, b"")
            hostile_network(model, [n if "{n}" in n else n + "{n}" for n in names])
            data = contents(model)
            for placeholder, to in BYTES.items():
                data = data.replace(placeholder.encode(), to)
            put(model, data)
            for i, name in enumerate(names):
                stranger = name.replace("{n}", "")
                cli.save_npz(self.path("z.npz"), {stranger: np.ones((2, 3), np.int8), "other": np.ones(2)})
                file = os.path.join(self.dir.encode(), stranger.encode() + b".npz")
                shutil.copy(self.path("z.npz"), file)
                for words in (["run", model, "--inputs", self.path("z.npz")], ["run", model, "--inputs", file],
                              ["convert", model, "-o", self.path("no"), "--quantize", "int8", "--calibrate", self.path("z.npz")]):
                    with self.subTest(kind=kind, name=name, words=words):
                        process = self.start(*words, stdin=subprocess.DEVNULL)
                        out, err = process.communicate(timeout=60)
                        self.assertIn(process.returncode, (2, 5), err)
                        self.clean(out), self.clean(err)
                        self.assertNotIn(b"internal error", err)

class ExternalData(Case):
    """Data in files beside the model: docs/security.md states which links are followed."""
    SECRET, DATA = b"\x55" * (4 * WIDTH * WIDTH), b"\x3e" * (4 * WIDTH * WIDTH)

    def with_data(self, path, location="w.bin", **keys):
        weights = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[WIDTH, WIDTH], data_location=TensorProto.EXTERNAL)
        for key, value in {"location": location, **keys}.items():
            weights.external_data.add(key=key, value=str(value))
        graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g",
                                  [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, WIDTH])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, WIDTH])], [weights])
        os.makedirs(os.path.dirname(path), exist_ok=True)
        put(path, helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString())
        return path

    def put(self, name, data):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        put(self.path(name), data)

    def link(self, name, to):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        os.symlink(to, self.path(name))

    def read(self, model, **options):
        out = self.path("out.sinter")
        self.expect(0, "convert", model, "-o", out, "--quiet", **options)
        self.assertIn(self.DATA, contents(out))

    def refused(self, model, *words):
        out = self.path("refused.sinter")
        for command in (["convert", model, "-o", out], ["run", model, "--random", "1"], ["inspect", model], ["ranges", model, "--calibrate", self.inputs],
                        ["compare", model, self.model, "--random", "1"]):
            with self.subTest(command=command):
                self.expect(3, *command, words=words)
        self.assertFalse(os.path.exists(out))

    def test_links_inside_the_folder_are_followed(self):
        model = self.with_data(self.path("plain/model.onnx"))
        self.put("plain/w.bin", self.DATA)
        self.read(model)
        self.read("model.onnx", cwd=self.path("plain"))
        self.link("alias", "plain")  # of the whole folder
        self.read(self.path("alias/model.onnx"))
        self.with_data(self.path("inside/model.onnx"))
        self.put("inside/parts/1/data", self.DATA)
        self.link("inside/parts/latest", "1")
        self.link("inside/w.bin", "parts/latest/data")
        self.read(self.path("inside/model.onnx"))
        self.read("./model.onnx", cwd=self.path("inside"))

    def test_caches_of_model_hubs_are_read(self):
        for name, location in (("model.onnx", "w.bin"), ("onnx/model.onnx", "w.bin"), ("onnx/q/model.onnx", "data/w.bin")):
            hub = "hub-" + name.replace("/", "-")
            self.put(f"{hub}/blobs/b2", self.DATA)
            self.with_data(self.path(f"{hub}/blobs/a1"), location)
            up = "../" * (2 + name.count("/"))
            self.link(f"{hub}/snapshots/main/{name}", up + "blobs/a1")
            self.link(f"{hub}/snapshots/main/{os.path.dirname(name)}/{location}", up + "../" * location.count("/") + "blobs/b2")
            self.read(self.path(f"{hub}/snapshots/main/{name}"))

    def test_links_that_leave_the_folder_are_refused(self):
        self.put("secret/w.bin", self.SECRET)
        model = self.with_data(self.path("a/model.onnx"))
        self.link("a/w.bin", self.path("secret/w.bin"))
        self.refused(model, "a link that leaves the model's folder", "secret/w.bin", "cp -L")
        model = self.with_data(self.path("b/model.onnx"))
        self.link("b/w.bin", "w2.bin")
        self.link("b/w2.bin", "../secret/w.bin")
        self.refused(model, "a link that leaves the model's folder")
        model = self.with_data(self.path("c/model.onnx"), "parts/w.bin")
        self.link("c/parts", "../secret")
        self.refused(model, "a link that leaves the model's folder")
        # A folder whose name begins like the model's.
        self.put("d-secret/w.bin", self.SECRET)
        model = self.with_data(self.path("d/model.onnx"))
        self.link("d/w.bin", "../d-secret/w.bin")
        self.refused(model, "a link that leaves the model's folder")
        # In a hub's cache, too.
        self.with_data(self.path("hub/blobs/a1"))
        self.link("hub/snapshots/main/model.onnx", "../../blobs/a1")
        self.link("hub/snapshots/main/w.bin", self.path("secret/w.bin"))
        self.refused(self.path("hub/snapshots/main/model.onnx"), "a link that leaves the model's folder")

    def test_other_places_are_refused(self):
        self.put("e/w.bin", self.DATA)
        self.put("w.bin", self.SECRET)
        os.mkfifo(self.path("e/pipe"))
        self.link("e/zero", "/dev/zero")
        self.link("e/stdin", "/dev/stdin")
        sized = f"has {len(self.DATA)} bytes"
        for location, keys, word in (("../w.bin", {}, "not a path inside"), ("../e/w.bin", {}, "not a path inside"), (self.path("w.bin"), {}, "not a path inside"),
                                     ("..", {}, "not a path inside"), ("a\\..\\w.bin", {}, "not a path inside"), ("", {}, "not a path inside"),
                                     ("pipe", {}, "is a pipe"), ("zero", {}, "is a device"), ("stdin", {}, "is a"), (".", {}, "is a folder"), ("none", {}, "none"),
                                     ("w.bin", {"offset": 4}, sized), ("w.bin", {"offset": 1 << 63}, sized),
                                     ("w.bin", {"offset": (1 << 64) - 16, "length": 32}, f"32 bytes behind the first {(1 << 64) - 16} are needed"),
                                     ("w.bin", {"offset": -1}, "is not a number"), ("w.bin", {"length": (1 << 64) - 1}, sized)):
            with self.subTest(location=location, keys=keys):
                self.refused(self.with_data(self.path("e/model.onnx"), location, **keys), word)

    def test_links_may_be_exchanged_at_any_time(self):
        """Whatever the link leads to when it is looked at, the secret is in no file."""
        self.put("secret", self.SECRET)
        model = self.with_data(self.path("race/model.onnx"))
        self.put("race/good", self.DATA)
        self.link("race/w.bin", "good")
        stopped = threading.Event()

        def exchange():
            while not stopped.is_set():
                for to in ("../secret", "good"):
                    os.symlink(to, self.path("race/next"))
                    os.replace(self.path("race/next"), self.path("race/w.bin"))
        thread = threading.Thread(target=exchange)
        thread.start()
        codes = set()
        try:
            for _ in range(40):
                process = self.start("convert", model, "-o", self.path("race.sinter"), "--quiet")
                process.communicate(timeout=60)
                codes.add(process.returncode)
                if process.returncode == 0:
                    self.assertNotIn(self.SECRET, contents(self.path("race.sinter")))
        finally:
            stopped.set()
            thread.join()
        self.assertEqual(codes, {0, 3})


def main():
    global SINTER
    given = None
    argv = sys.argv[:1]
    rest = iter(sys.argv[1:])
    for arg in rest:
        if arg == "--sinter":
            given = next(rest)
        else:
            argv.append(arg)
    SINTER = cli.find_sinter(given)
    unittest.main(argv=argv)


if __name__ == "__main__":
    main()
