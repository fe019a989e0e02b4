#!/usr/bin/env python3
"""What happens when the system fails: no memory, no disk, no permission, a signal, a file that changes.

    faults.py [--sinter PROGRAM] [unittest options]

The program must end with exit code 6 and a message (or by the signal that it was sent), never crash; the output file
appears whole or not at all, and a signal that can be caught leaves nothing beside it.
"""
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
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
SANITIZED = False  # sanitizers take terabytes of address space


def network(path, width=1200, layers=3):
    """A chain of products: some 17 MB of weights."""
    rng = np.random.default_rng(5)
    nodes, weights, x = [], [], "x"
    for i in range(layers):
        weights.append(numpy_helper.from_array(rng.normal(0, 0.03, (width, width)).astype(np.float32), f"w{i}"))
        nodes += [helper.make_node("MatMul", [x, f"w{i}"], [f"m{i}"], name=f"m{i}"),
                  helper.make_node("Tanh", [f"m{i}"], [f"t{i}"], name=f"t{i}")]
        x = f"t{i}"
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, width])],
                              [helper.make_tensor_value_info(x, TensorProto.FLOAT, [1, width])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def contents(path):
    with open(path, "rb") as f:
        return f.read()


class Faults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="faults-")
        cls.dir = cls.scratch.name
        cls.onnx, cls.model = os.path.join(cls.dir, "net.onnx"), os.path.join(cls.dir, "net.sinter")
        network(cls.onnx)
        start = time.monotonic()
        cls.must(cls.start("convert", cls.onnx, "-o", cls.model))
        cls.seconds = time.monotonic() - start
        cls.good = contents(cls.model)
        cls.inputs = os.path.join(cls.dir, "x.npz")
        cli.save_npz(cls.inputs, {"x": np.ones((1, 1200), np.float32)})

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    @classmethod
    def start(cls, *args, limits=(), stdout=subprocess.PIPE):
        def prepare():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write beyond the limit fails, as on a full disk
            for what, value in limits:
                resource.setrlimit(what, (value, value))
        return subprocess.Popen([SINTER, *args], stdout=stdout, stderr=subprocess.PIPE, preexec_fn=prepare)

    @classmethod
    def must(cls, process):
        out, err = process.communicate(timeout=120)
        if process.returncode != 0:
            raise AssertionError(f"exit code {process.returncode}: {err.decode()}")
        return out

    def fails(self, process, *words):
        """Exit code 6 and one line with the reason."""
        err = process.communicate(timeout=120)[1].decode()
        self.assertEqual(process.returncode, 6, err[-600:])
        self.assertTrue(err.startswith("sinter: "), err[-600:])
        for word in words:
            self.assertIn(word, err.lower())

    def folder(self):
        """An empty one."""
        return tempfile.mkdtemp(dir=self.dir)

    # ---- signals

    def interrupted(self, number, times):
        for k in range(times):
            folder = self.folder()
            target = os.path.join(folder, "out.sinter")
            old = b"what was there before" if k % 2 else None
            if old:
                with open(target, "wb") as f:
                    f.write(old)
            process = self.start("convert", self.onnx, "-o", target, "--quiet")
            time.sleep(self.seconds * (k + 0.5) / times)
            process.send_signal(number)
            process.communicate(timeout=120)
            self.assertIn(process.returncode, (0, -number))
            left = sorted(os.listdir(folder))
            if number != signal.SIGKILL:
                self.assertLessEqual(set(left), {"out.sinter"}, f"{number} leaves files")
            now = contents(target) if os.path.exists(target) else None
            self.assertTrue(now in (old, self.good), f"the output is neither whole nor as it was: {left}")
            if process.returncode == 0:
                self.assertEqual(now, self.good)

    def test_killed(self):
        self.interrupted(signal.SIGKILL, 24)

    def test_interrupted(self):
        self.interrupted(signal.SIGINT, 24)
        self.interrupted(signal.SIGTERM, 6)

    def test_interrupted_while_the_file_is_written(self):
        """As soon as the partial file is there."""
        seen = 0
        for _ in range(20):
            folder = self.folder()
            process = self.start("convert", self.onnx, "-o", os.path.join(folder, "out.sinter"), "--quiet")
            while process.poll() is None and not os.listdir(folder):
                time.sleep(0.0002)
            seen += any("partial" in name for name in os.listdir(folder))
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=120)
            self.assertLessEqual(set(os.listdir(folder)), {"out.sinter"})
        self.assertGreater(seen, 0, "no partial file was ever seen: the test shows nothing")

    def test_two_at_once(self):
        target = os.path.join(self.folder(), "out.sinter")
        both = [self.start("convert", self.onnx, "-o", target, "--quiet") for _ in range(2)]
        for process in both:
            self.must(process)
        self.assertEqual(contents(target), self.good)
        self.assertEqual(os.listdir(os.path.dirname(target)), ["out.sinter"])

    # ---- disks

    def test_full_disk(self):
        for limit in (0, 1, 100, 4096, 1 << 20, len(self.good) - 1):
            folder = self.folder()
            self.fails(self.start("convert", self.onnx, "-o", os.path.join(folder, "out.sinter"), "--quiet",
                                  limits=[(resource.RLIMIT_FSIZE, limit)]), "make room there")
            self.assertEqual(os.listdir(folder), [])
        folder = self.folder()
        self.must(self.start("convert", self.onnx, "-o", os.path.join(folder, "out.sinter"), "--quiet",
                             limits=[(resource.RLIMIT_FSIZE, len(self.good))]))

    def test_full_disk_for_results(self):
        folder = self.folder()
        self.fails(self.start("run", self.model, "--inputs", self.inputs, "--outputs", os.path.join(folder, "y.npz"),
                              limits=[(resource.RLIMIT_FSIZE, 100)]), "cannot be written")
        self.assertEqual(os.listdir(folder), [])
        os.symlink("/dev/full", os.path.join(folder, "r.json"))
        self.fails(self.start("convert", self.onnx, "-o", os.path.join(folder, "net.sinter"), "--quiet", "--report",
                              os.path.join(folder, "r.json")), "cannot be written")
        self.fails(self.start("convert", self.onnx, "-o", os.path.join(folder, "net.sinter"), "--quiet", "--report",
                              "/dev/full/r.json"), "the folder does not exist")
        with open("/dev/full", "wb") as full:
            self.fails(self.start("inspect", self.model, "--steps", stdout=full), "standard output")
            self.fails(self.start("inspect", self.model, "--json", stdout=full), "standard output")
            self.fails(self.start("run", self.model, "--inputs", self.inputs, stdout=full), "standard output")
        self.fails(self.start("run", self.model, "--inputs", self.inputs, "--outputs", "/dev/full"), "make room there")

    def test_places_that_cannot_be_written(self):
        folder = self.folder()
        os.chmod(folder, 0o555)
        places = ["/proc/self/net.sinter"] + ([os.path.join(folder, "net.sinter")] if os.geteuid() != 0 else [])
        for place in places:
            self.fails(self.start("convert", self.onnx, "-o", place, "--quiet"), "cannot be written")
            self.fails(self.start("run", self.model, "--inputs", self.inputs, "--outputs", place + ".npz"), "cannot be written")
        os.chmod(folder, 0o755)
        self.assertEqual(os.listdir(folder), [])

    # ---- memory

    def limited(self, *args, check):
        """Runs with ever more address space until it succeeds; each failure is one with a message."""
        if SANITIZED:
            self.skipTest("sanitizers need address space of their own")
        least = 8 << 20
        while True:
            process = self.start("--version", limits=[(resource.RLIMIT_AS, least)])
            process.communicate()
            if process.returncode == 0:
                break
            least += 4 << 20
        failures, limit = 0, least
        while True:
            process = self.start(*args, limits=[(resource.RLIMIT_AS, limit)])
            err = process.communicate(timeout=120)[1].decode()
            if process.returncode == 0:
                break
            failures += 1
            result = f"{limit >> 20} MiB: exit code {process.returncode}: {err[-400:]}"
            self.assertEqual(process.returncode, 6, result)
            self.assertTrue("memory" in err.lower(), result)
            check()
            self.assertLess(limit, 2 << 30, result)
            limit += 1 << 20 if limit < least + (40 << 20) else 8 << 20
        self.assertGreater(failures, 3, "the limit was never felt")

    def test_no_memory_to_convert(self):
        folder = self.folder()
        self.limited("convert", self.onnx, "-o", os.path.join(folder, "out.sinter"), "--quiet",
                     check=lambda: self.assertEqual(os.listdir(folder), []))

    def test_no_memory_before_main(self):
        """From any allocation on, those of libraries' constructors among them: a message, not an abort."""
        compiler = shutil.which("cc") or shutil.which("gcc")
        if SANITIZED or compiler is None:
            self.skipTest("sanitizers have an allocator of their own, and a compiler is needed")
        library, source = os.path.join(self.folder(), "fail.so"), os.path.join(self.folder(), "fail.c")
        with open(source, "w") as f:
            f.write("#include <errno.h>\n#include <stdlib.h>\nextern void* __libc_malloc(size_t);\nstatic long count, first = -1;\n"
                    "void* malloc(size_t bytes) {\n  if (first < 0) first = atol(getenv(\"FAIL_FROM\"));\n"
                    "  if (++count < first) return __libc_malloc(bytes);\n  errno = ENOMEM;\n  return 0;\n}\n")
        subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
        codes = set()
        for first in [*range(1, 30), *range(30, 12_000, 301)]:
            environment = {**os.environ, "LD_PRELOAD": library, "FAIL_FROM": str(first)}
            process = subprocess.run([SINTER, "inspect", os.path.join(self.dir, "none.sinter")], env=environment, capture_output=True, timeout=60)
            codes.add(process.stderr)
            self.assertEqual(process.returncode, 6, (first, process.stderr[-300:]))
        self.assertEqual(len(codes), 2, codes)  # no memory, and no such file
        self.assertIn(b"sinter: out of memory\n", codes)

    def test_no_memory_to_quantize(self):
        folder = self.folder()
        self.limited("convert", self.onnx, "-o", os.path.join(folder, "out.sinter"), "--quiet", "--quantize", "int8w",
                     check=lambda: self.assertEqual(os.listdir(folder), []))

    def test_no_memory_to_run(self):
        self.limited("run", self.model, "--inputs", self.inputs, "--quiet", check=lambda: None)
        self.limited("run", self.model, "--inputs", self.inputs, "--quiet", "--copy", check=lambda: None)

    # ---- files that change

    def test_copy_gives_the_same(self):
        a, b = (os.path.join(self.folder(), "y.npz") for _ in range(2))
        self.must(self.start("run", self.model, "--inputs", self.inputs, "--outputs", a))
        self.must(self.start("run", self.model, "--inputs", self.inputs, "--outputs", b, "--copy"))
        self.assertEqual(contents(a), contents(b))

    def test_truncated_while_read(self):
        """A mapped file that becomes shorter ends the program with a message, not with a crash."""
        codes = set()
        for k in range(16):
            path = os.path.join(self.folder(), "net.onnx")
            with open(path, "wb") as f:
                f.write(contents(self.onnx))
            process = self.start("convert", path, "-o", path + ".sinter", "--quiet")
            time.sleep(self.seconds * (k + 0.5) / 16)
            os.truncate(path, 4096)
            err = process.communicate(timeout=120)[1].decode()
            codes.add(process.returncode)
            self.assertIn(process.returncode, (0, 3, 6), err[-400:])
            if process.returncode != 0:
                self.assertTrue(err.strip())
                self.assertEqual(os.listdir(os.path.dirname(path)), ["net.onnx"])
        self.assertTrue(codes - {0}, "it was never noticed")


def main():
    global SINTER, SANITIZED
    given = None
    argv = sys.argv[:1]
    rest = iter(sys.argv[1:])
    for arg in rest:
        if arg == "--sinter":
            given = next(rest)
        else:
            argv.append(arg)
    SINTER = cli.find_sinter(given)
    SANITIZED = b"__asan_init" in contents(SINTER)
    unittest.main(argv=argv)


if __name__ == "__main__":
    main()
