"""Conversions in the background: one thread that ends when it has nothing to do, and with the program."""
from __future__ import annotations

import collections
import os
import threading
from collections.abc import Callable

from . import _notes

_jobs: collections.deque[Callable[[], None]] = collections.deque()
_lock = threading.Lock()
_running = False


class ProgramEnds(BaseException):
    """The main thread has ended; the conversion ends, too, and leaves no file."""


def stop_at_exit(fraction: float, stage: str) -> None:
    """The progress function of a conversion in the background."""
    if not threading.main_thread().is_alive():
        raise ProgramEnds


def submit(job: Callable[[], None]) -> None:
    """Queues a job."""
    global _running
    with _lock:
        _jobs.append(job)
        if _running:
            return
        _running = True
    # The thread is not a daemon, so the interpreter waits for the report of progress that ends its conversion.
    threading.Thread(target=_work, name="sinter-conversions").start()


def _work() -> None:
    global _running
    try:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
    except (AttributeError, OSError):
        pass  # a system without priorities of threads
    while True:
        with _lock:
            if not _jobs or not threading.main_thread().is_alive():
                _jobs.clear()
                _running = False
                return
            job = _jobs.popleft()
        try:
            job()
        except ProgramEnds:
            continue
        except Exception:  # the job has given it to the callers that wait
            _notes.logger.debug("a conversion in the background failed", exc_info=True)


def _forget() -> None:
    """In a forked child: the thread is the parent's."""
    global _running, _lock
    _lock = threading.Lock()
    _jobs.clear()
    _running = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
