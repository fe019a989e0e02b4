"""Keyword arguments as flags of the command line.

The command line's own table of flags is the only one: a keyword is a flag's name with underscores.
"""
from __future__ import annotations

import functools
import json
import numbers
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from . import _native, arrays

# What the package itself gives or replaces.
_OWN = {"json", "quiet", "output"}


@functools.lru_cache(maxsize=None)
def table(command: str) -> dict[str, _native.Flag]:
    """The flags of a command by keyword."""
    return {flag.name.replace("-", "_"): flag for flag in _native.flags(command) if flag.name not in _OWN}


def check_names(command: str, options: Iterable[str]) -> None:
    names = list(table(command))
    for name in options:
        if name not in names:
            near = _native.nearest_name(names, name)
            advice = f"'{near}' may be meant" if near else f"the options are {', '.join(names)}"
            raise TypeError(f"{command}() does not have an option '{name}'; {advice}")


def words(command: str, options: Mapping[str, Any], folder: str) -> list[bytes]:
    """The options as arguments. Arrays are written to `folder`, a temporary one."""
    check_names(command, options)
    result: list[bytes] = []
    for name, value in options.items():
        flag = table(command)[name]
        given = f"--{flag.name}".encode()
        if value is None or value is False:
            continue
        if not flag.takes_value:
            if value is not True:
                raise TypeError(f"{command}(): {name} is True or False, not {value!r}")
            result.append(given)
            continue
        if isinstance(value, bool):
            raise TypeError(f"{command}(): {name} takes a value, not {value!r}")
        for text in _values(command, name, value, flag.repeats, folder):
            if b"\0" in text:
                raise ValueError(f"{command}(): {name} contains a null byte")
            result.append(given + b"=" + text)
    return result


def _values(command: str, name: str, value: Any, repeats: bool, folder: str) -> list[bytes]:
    if repeats and isinstance(value, Mapping):
        return [_text(command, name, key) + b"=" + _item(command, name, item, folder) for key, item in value.items()]
    if repeats and isinstance(value, (list, tuple)):
        return [_text(command, name, item) for item in value]
    return [_text(command, name, value)]


def _item(command: str, name: str, value: Any, folder: str) -> bytes:
    """The part behind NAME=."""
    if isinstance(value, np.ndarray):
        path = os.path.join(folder, f"{name}-{len(os.listdir(folder))}.npy")
        arrays.save(path, value)
        return os.fsencode(path)
    if isinstance(value, (list, tuple)):
        return b",".join(_text(command, name, item) for item in value)
    return _text(command, name, value)


def _text(command: str, name: str, value: Any) -> bytes:
    if isinstance(value, (str, bytes, os.PathLike)):
        return os.fsencode(value)
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return str(int(value)).encode()
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        return repr(float(value)).encode()
    if isinstance(value, (np.dtype, type)):
        try:
            return np.dtype(value).name.encode()
        except TypeError:
            pass
    raise TypeError(f"{command}(): {name} cannot be {value!r}; docs/cli.md describes --{table(command)[name].name}")


def call(command: str, arguments: list[bytes], paths: list[bytes],
         progress: Callable[[float, str], object] | None = None) -> tuple[int, dict[str, Any], str]:
    """Runs the command: its exit code, its result, and its text."""
    code, result, text = _native.call([command.encode(), *arguments, b"--", *paths], progress)
    return code, json.loads(result) if result else {}, text
