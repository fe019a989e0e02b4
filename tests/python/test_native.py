"""_native.py declares the functions, structures and numbers of the library as the headers do, and objects of the library are
destroyed in order."""
import ctypes
import gc
import re
import subprocess
import sys
import unittest
from pathlib import Path

import numpy as np
import sinter_runtime as sinter

REPO = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).resolve().parent), str(REPO / "tests/application/abi")]
import check_abi  # noqa: E402
import models  # noqa: E402

native = sinter._native
# Members and parameters that refer to objects, for which c_void_p serves, or a more exact type.
SIMPLE = {"void": None, "int32_t": ctypes.c_int32, "uint32_t": ctypes.c_uint32, "int64_t": ctypes.c_int64, "size_t": ctypes.c_size_t,
          "char": ctypes.c_char, "double": ctypes.c_double, "float": ctypes.c_float, "sinter_code": ctypes.c_int32, "sinter_python_listener": native.Listener,
          "uint64_t": ctypes.c_uint64, "sinter_log": native.Log,
          "sinter_done": native.Done}


def headers():
    texts = [check_abi.with_includes(REPO / "application/include/sinter/sinter_c.h"), (REPO / "python/native/sinter_python.h").read_text()]
    return check_abi.declarations("\n".join(texts))


def structure_of(name):
    """The class for a structure of the headers: sinter_open_options is OpenOptions."""
    return getattr(native, "".join(part.title() for part in name.split("_")[1:]), None)


def fits(declared, text):
    """Whether a type of ctypes is that of C, such as "const char* name"."""
    text = re.sub(r"\bconst\b ?", "", text)
    kind, stars = re.match(r"(\w+)((?: ?\*)*)", text).groups()
    depth = stars.count("*")
    if depth == 0:
        return declared is (SIMPLE[kind] if kind in SIMPLE else structure_of(kind))
    if kind == "char" and depth == 1 and declared is ctypes.c_char_p or declared is ctypes.c_void_p:
        return True
    if declared in (None, ctypes.c_char_p):
        return kind == "uint8_t"
    pointed = declared._type_
    if depth == 2:
        return pointed in (ctypes.c_void_p, ctypes.c_char_p if kind == "char" else None)
    return pointed is SIMPLE.get(kind, structure_of(kind))


class Declarations(unittest.TestCase):
    FOUND = headers()

    def test_functions(self):
        for name, (result, *parameters) in native.FUNCTIONS.items():
            text = self.FOUND["functions"][name]
            head, body = text[:text.index(name)], re.search(r"\((.*)\)", text)[1]
            of_c = [] if body == "void" else body.split(", ")
            with self.subTest(name):
                self.assertEqual(len(parameters), len(of_c), text)
                self.assertTrue(fits(result, head), text)
                for declared, given in zip(parameters, of_c):
                    self.assertTrue(fits(declared, given), f"{text}: {declared} is not {given}")

    def test_structures(self):
        checked = 0
        for name, members in self.FOUND["structures"].items():
            declared = structure_of(name)
            if declared is None:
                continue
            checked += 1
            fields = declared._fields_
            # A structure that begins with its size may end early.
            self.assertTrue(len(fields) == len(members) or fields[0][0] == "size" and len(fields) < len(members), name)
            for (field, kind), member in zip(fields, members):
                with self.subTest(f"{name}.{field}"):
                    of_c, text, count = re.match(r"(.*?)(\w+)(?:\[(\w+)\])?$", member).groups()
                    self.assertEqual(text, field)
                    if count:
                        self.assertEqual(kind._length_, int(self.FOUND["numbers"][f"define {count}"]))
                        kind = kind._type_
                    self.assertTrue(fits(kind, of_c), member)
        classes = [c for c in vars(native).values() if isinstance(c, type) and issubclass(c, ctypes.Structure) and c is not ctypes.Structure]
        self.assertEqual(checked, len(classes))

    def test_numbers(self):
        for name, c in (("MAX_RANK", "define SINTER_MAX_RANK"), ("ALIGNMENT", "define SINTER_ALIGNMENT"),
                        ("READ_PADDING", "define SINTER_READ_PADDING"), ("GO_ON", "define SINTER_PYTHON_GO_ON"),
                        ("CANCELLED", "number SINTER_CANCELLED"), ("LOG_WARNING", "number SINTER_LOG_WARNING"),
                        ("OUT_OF_MEMORY", "number SINTER_OUT_OF_MEMORY"), ("INVALID_ARGUMENT", "number SINTER_INVALID_ARGUMENT"),
                        ("UNSUPPORTED", "number SINTER_UNSUPPORTED")):
            self.assertEqual(getattr(native, name), int(self.FOUND["numbers"][c]), name)

    def test_the_check_finds_differences(self):
        self.assertFalse(fits(ctypes.c_int32, "uint32_t count"))
        self.assertFalse(fits(ctypes.c_int64, "const char* name"))
        self.assertFalse(fits(ctypes.POINTER(native.Error), "sinter_tensor* to"))


class Objects(unittest.TestCase):
    def test_garbage_in_a_circle(self):
        """Model, session and arrays that refer to each other are destroyed with the session first."""
        file = sinter.convert(models.unary("Neg", [4])).data
        for _ in range(50):
            model = sinter.load(file, threads=2)
            circle = {"model": model, "other": model.another(), "view": model._inputs["x"].view}
            circle["circle"] = circle
            model._options["kept"] = circle
            del model, circle
        gc.collect()
        np.testing.assert_array_equal(sinter.load(file).run(np.ones(4, np.float32))["y"], -np.ones(4))

    def test_a_process_ends_during_a_run(self):
        """A daemon thread runs when the interpreter ends: nothing is destroyed below it."""
        Path("slow.sinter").write_bytes(sinter.convert(models.slow_loop(2_000_000)).data)
        script = ("import threading, time, numpy as np, sinter_runtime as sinter\n"
                  "model = sinter.load('slow.sinter')\n"
                  "threading.Thread(target=model.run, args=(np.zeros(1, np.float32),), daemon=True).start()\n"
                  "time.sleep(0.1)\n")
        r = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
        self.assertEqual((r.returncode, r.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
