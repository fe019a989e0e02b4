"""Sinter: turns ONNX models into files with a fixed memory plan, and runs them.

    import sinter_runtime as sinter

    sinter.convert("net.onnx", "net.sinter", dim={"sequence": 128})
    model = sinter.load("net.sinter")
    outputs = model.run({"image": image})

docs/python.md describes the package, docs/cli.md every option of a conversion.
"""
from ._native import version as __version__
from .arrays import empty
from .conversion import Report, convert
from .errors import (Cancelled, ConversionError, DataError, Diagnostic, Error, FileError, InputError, ModelFileError, RunError,
                     UsageError)
from .evaluation import evaluate
from .model import Model, Port, StepTime, load
from .tools import compare, inspect

__all__ = ["Cancelled", "ConversionError", "DataError", "Diagnostic", "Error", "FileError", "InputError", "Model", "ModelFileError", "Port",
           "Report", "RunError", "UsageError", "__version__", "compare", "convert", "empty", "evaluate", "inspect", "load"]
