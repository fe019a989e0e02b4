"""What the drop-in tells the user: each text once in a process, through Python's logging."""
from __future__ import annotations

import logging
import threading

logger = logging.getLogger("sinter_runtime.onnxruntime")

_said: set[str] = set()
_lock = threading.Lock()
# onnxruntime's severities: verbose, info, warning, error, fatal.
_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)


def say_once(text: str, level: int = logging.WARNING) -> None:
    """Logs the text unless this process has logged it before."""
    with _lock:
        if text in _said:
            return
        _said.add(text)
    logger.log(level, text)


def set_severity(severity: int) -> None:
    """Sets the lowest severity that is logged, in onnxruntime's numbers."""
    if not 0 <= severity < len(_LEVELS):
        raise RuntimeError(f"the severity {severity} does not exist; give 0 (verbose) to 4 (fatal)")
    logger.setLevel(_LEVELS[severity])
