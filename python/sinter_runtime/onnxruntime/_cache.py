"""Converted models on disk: one file for each model, shape, machine and version of Sinter.

Files appear by renaming, so that processes need no lock: two that convert the same model write the same file twice. A file that
cannot be opened is removed. Where the folder cannot be used, there is no cache, which is said once. This holds for a folder in
which another user can put files, too: such a file would decide what this program computes.
"""
from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import stat
import time
from pathlib import Path
from typing import Any

from .. import __version__, errors
from . import _notes

MOST_BYTES = 4 << 30  # of all files; SINTER_CACHE_BYTES
DAY = 24 * 3600
_OFF = ("", "0", "off", "none")


def folder() -> Path | None:
    """Returns the folder of SINTER_CACHE_DIR, or that of the user's caches; None where the environment turns the cache off."""
    given = os.environ.get("SINTER_CACHE_DIR")
    if given is not None:
        return None if given.lower() in _OFF else Path(given) / "onnxruntime"
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        root = Path(base) if base and os.path.isabs(base) else Path.home() / ".cache"
    except RuntimeError:  # no home
        return None
    return root / "sinter" / "onnxruntime"


@functools.cache
def _build() -> list[Any]:
    """Returns what tells this build of Sinter from others of the same version: its native files. A process has one build, even if it
    gives up the right to read them."""
    files = sorted(p for p in Path(__file__).resolve().parents[1].iterdir() if ".so" in p.suffixes)
    return [[p.name, p.stat().st_size, p.stat().st_mtime_ns] for p in files]


def _machine() -> str:
    """Returns the architecture and the processor's features, for which files are planned."""
    features = ""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            features = next((line for line in file if line.lower().startswith(("flags", "features"))), "")
    except OSError:
        pass
    return f"{platform.machine()} {' '.join(sorted(features.split()))}"


def _foreign(folder: Path) -> str:
    """Returns why files in the folder may be another user's; nothing where only this user and root can put files in it."""
    state = folder.lstat()
    if not stat.S_ISDIR(state.st_mode):
        return "it is a link"
    if not hasattr(os, "geteuid"):
        return ""
    if state.st_uid not in (0, os.geteuid()):
        return "it is another user's"
    if state.st_mode & stat.S_IWOTH:
        return "other users can write to it"
    return "its group can write to it" if state.st_mode & stat.S_IWGRP else ""


def digest_of_files(paths: list[str]) -> str:
    """Returns the digest of the files' contents."""
    total = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:
            own = hashlib.sha256()
            while block := file.read(1 << 20):
                own.update(block)
        total.update(own.digest())
    return total.hexdigest()


class Cache:
    """The folder, or nothing. One object serves the sessions of a model."""

    def __init__(self, enabled: bool = True) -> None:
        self._folder = folder() if enabled else None
        self._common: list[Any] = []
        self._writable = True
        if self._folder is not None:
            try:
                self._common = [__version__, _build(), _machine()]
            except OSError as error:
                self.stop_writing(f"the package's own folder cannot be read ({error.strerror})")
                self._folder = None

    def __bool__(self) -> bool:
        return self._folder is not None

    @property
    def writable(self) -> bool:
        return self._folder is not None and self._writable

    def path(self, model_digest: str, options: Any) -> Path | None:
        """Returns the place of a file for a model and the options of its conversion; None without a cache."""
        if self._folder is None:
            return None
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            problem = _foreign(self._folder)
        except OSError as error:
            problem = f"it cannot be made ({error.strerror})"
        if problem:
            self.stop_writing(problem)
            self._folder = None
            return None
        key = json.dumps([self._common, model_digest, options], sort_keys=True)
        return self._folder / f"{hashlib.sha256(key.encode()).hexdigest()}.sinter"

    def stop_writing(self, reason: str) -> None:
        """Writes no more files, and says so once. Those that exist are still read."""
        _notes.say_once(f"converted models are not kept in {self._folder}: {reason}; set SINTER_CACHE_DIR to a folder that can be "
                        "written, or to off")
        self._writable = False

    def remove(self, path: Path) -> None:
        """Removes a file that could not be opened."""
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            self.stop_writing(f"a file in it cannot be removed ({error.strerror})")

    def used(self, path: Path) -> None:
        """Notes that a file was used, for the order in which files are removed."""
        try:
            os.utime(path)
        except OSError:
            pass  # a folder that only others write

    def trim(self) -> None:
        """Removes the files that were not used for longest, until the rest is within the limit."""
        if self._folder is None:
            return
        try:
            most = int(os.environ.get("SINTER_CACHE_BYTES", MOST_BYTES))
        except ValueError:
            raise errors.UsageError("SINTER_CACHE_BYTES is not a whole number; give the bytes that cached models may take") from None
        found = []
        for path in self._folder.iterdir():
            try:
                state = path.stat()
            except OSError:
                continue  # another process removed it
            if path.suffix == ".sinter":
                found.append((state.st_mtime_ns, state.st_size, path))
            elif ".sinter." in path.name and time.time() - state.st_mtime > DAY:
                self.remove(path)  # a process was killed while it wrote this
        total = sum(size for _, size, _ in found)
        for _, size, path in sorted(found)[:-1]:
            if total <= most:
                break
            self.remove(path)
            total -= size
