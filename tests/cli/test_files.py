#!/usr/bin/env python3
"""The files around a model: several processes at once, a hostile neighbour in the same folder, pipes, modes, links, and
names that no terminal should see. Ten seconds.

    test_files.py [--sinter PROGRAM] [unittest options]

tests/application/files_test.cc has the same for the C API.
"""
import io
import os
import shutil
import socket
import stat
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
