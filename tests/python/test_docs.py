"""docs/python.md and README.md: their examples run in order, and mypy accepts them; wrong keywords and types it does not."""
import io
import contextlib
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

import numpy as np

REPO = Path(__file__).resolve().parents[2]
BLOCKS = re.findall(r"^```python\n(.*?)^```", (REPO / "docs/python.md").read_text(), re.DOTALL | re.MULTILINE)


class Docs(unittest.TestCase):
    def test_the_examples_run(self):
        self.assertGreater(len(BLOCKS), 4)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n".join(BLOCKS), "docs/python.md", "exec"), {"__name__": "docs"})
        lines = printed.getvalue()
        self.assertIn("imgae", lines)
        accuracy = re.search(r"^([\d.]+) %$", lines, re.MULTILINE)
        self.assertGreater(float(accuracy[1]), 95)
        self.assertRegex(lines, r"(?m)^True \d+\.\d+")

    def test_the_example_of_the_readme_runs(self):
        block, = re.findall(r"^```python\n(.*?)^```", (REPO / "README.md").read_text(), re.DOTALL | re.MULTILINE)
        images = np.load("digits_eval.npz")["image"]
        names = {"samples": lambda: ({"image": image[None]} for image in images[:50]), "image": images[:1]}
        exec(compile(block, "README.md", "exec"), names)
        self.assertEqual(names["probabilities"].shape, (1, 10))

    def test_types(self):
        Path("right.py").write_text("\n".join(BLOCKS))
        Path("wrong.py").write_text("import sinter_runtime as sinter\n"
                                    "sinter.convert('a.onnx', quantise='int8')\n"
                                    "sinter.convert('a.onnx', quantize='int7')\n"
                                    "sinter.convert('a.onnx', strict='yes')\n"
                                    "sinter.load('a.sinter').run(['x'])\n")
        python = os.path.join(os.path.dirname(sys.executable), "python")
        r = subprocess.run([python, "-m", "mypy", "--config-file=", "--cache-dir=mypy", "--no-error-summary", "-p", "sinter_runtime",
                            "--strict"], capture_output=True, text=True)
        self.assertEqual((r.returncode, r.stdout), (0, ""), r.stderr)
        r = subprocess.run([python, "-m", "mypy", "--config-file=", "--cache-dir=mypy", "--no-error-summary", "right.py", "wrong.py"],
                           capture_output=True, text=True)
        faults = sorted({int(n) for name, n in re.findall(r"^(\w+)\.py:(\d+): error", r.stdout, re.MULTILINE) if name == "wrong"})
        self.assertEqual(faults, [2, 3, 4, 5], r.stdout)
        self.assertNotIn("right.py", r.stdout)


if __name__ == "__main__":
    unittest.main()
