"""The exceptions. Messages state what is wrong, where, and what to do."""
from __future__ import annotations

import dataclasses
from typing import Any, Mapping, Sequence


class Error(Exception):
    """Every exception of this package that is not one of Python's own."""


class UsageError(Error, ValueError):
    """An option is wrong, contradicts another one, or has no effect."""


class DataError(Error, ValueError):
    """Calibration or evaluation data does not fit the model."""


class InputError(Error, ValueError):
    """An array does not fit an input or output of the model: its name, type or shape."""


class ModelFileError(Error):
    """A .sinter file is corrupt, foreign, too new, not signed with the key, or cannot be served by this build."""


class FileError(Error, OSError):
    """A file cannot be read or written."""


class RunError(Error):
    """A run failed: an index or a length is outside its domain, a loop exceeds its bound, the model is in use."""

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code  # sinter_code of sinter_c.h; 0: the model is in use


class Cancelled(RunError):
    """Model.cancel() has ended the run."""


@dataclasses.dataclass(frozen=True)
class Diagnostic:
    """A statement of a conversion about one node or value."""

    severity: str  # "note", "warning" or "refused"
    node: str  # the name of an ONNX node or value; "": the model as a whole
    op: str  # the node's operator
    message: str
    remedy: str  # what to do; may be empty

    def __str__(self) -> str:
        place = f"node '{self.node}' ({self.op}): " if self.node and self.op else f"'{self.node}': " if self.node else ""
        return f"{self.severity}: {place}{self.message}" + (f"; {self.remedy}" if self.remedy else "")


class ConversionError(Error):
    """The model is refused, or the result is not as good as an option demands. No file is written."""

    def __init__(self, message: str, diagnostics: Sequence[Diagnostic] = (), report: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.diagnostics = list(diagnostics)
        self.report = report  # as far as the conversion came, for a result that is withheld


def diagnostics_of(report: Mapping[str, Any]) -> list[Diagnostic]:
    return [Diagnostic(**item) for item in report.get("diagnostics", [])]
