"""The pinned Python packages, for tests that ctest starts with any Python.

require() continues in the project's virtual environment if this Python lacks numpy, onnx or onnxruntime, and
otherwise ends with ctest's skip code and a plain message. Standard library only.
"""
import importlib.util
import os
import sys

REPO = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))


def require(*modules):
    missing = [m for m in modules or ("numpy", "onnx", "onnxruntime") if importlib.util.find_spec(m) is None]
    if not missing:
        return
    for folder in (os.environ.get("SINTER_VENV"), os.path.join(REPO, ".venv")):
        python = folder and os.path.join(folder, "bin", "python")
        if python and os.path.exists(python) and os.environ.get("SINTER_IN_VENV") != folder:
            os.environ["SINTER_IN_VENV"] = folder
            os.execv(python, [python, *sys.argv])
    print(f"skipped: no {', '.join(missing)} in this Python and no .venv (scripts/requirements.txt; or SINTER_VENV)")
    sys.exit(77)
