"""Keyword arguments as flags of the command line.

The command line's own table of flags is the only one: a keyword is a flag's name with underscores.
"""
from __future__ import annotations

import functools
import json
import numbers
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from . import _native, arrays
from .errors import Error

# Options that the package itself gives or replaces.
_OWN = {"json", "quiet", "output"}


@functools.lru_cache(maxsize=None)
def table(command: str) -> dict[str, _native.Flag]:
    """Returns the flags of a command by keyword."""
    return {flag.name.replace("-", "_"): flag for flag in _native.flags(command) if flag.name not in _OWN}


def check_names(command: str, options: Iterable[str]) -> None:
    names = list(table(command))
    for name in options:
        if name not in names:
            near = _native.nearest_name(names, name)
            advice = f"'{near}' may be meant" if near else f"the options are {', '.join(names)}"
            raise TypeError(f"{command}() does not have an option '{name}'; {advice}")


def words(command: str, options: Mapping[str, Any], folder: str) -> list[bytes]:
    """Returns the options as arguments. Arrays are written to `folder`, a temporary one."""
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
        for text in _values(command, name, value, flag, folder):
            if b"\0" in text:
                raise ValueError(f"{command}(): {name} contains a null byte")
            result.append(given + b"=" + text)
    return result


def _values(command: str, name: str, value: Any, flag: _native.Flag, folder: str) -> list[bytes]:
    if flag.repeats and isinstance(value, Mapping):
        return [_text(command, name, key) + b"=" + _item(command, name, item, flag, folder) for key, item in value.items()]
    listed = isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim == 1)
    if listed and "[," in flag.form:  # M[,M...]
        return [_joined(command, name, value)]
    if flag.repeats and isinstance(value, (list, tuple)):
        return [_text(command, name, item) for item in value]
    return [_text(command, name, value)]


def _item(command: str, name: str, value: Any, flag: _native.Flag, folder: str) -> bytes:
    """Returns the part behind NAME=."""
    if ".." in flag.form and isinstance(value, (list, tuple)):  # NAME=N|MIN..MAX
        if len(value) != 2:
            raise TypeError(f"{command}(): {name} is a size or a pair (smallest, largest), not {value!r}")
        return b"..".join(_text(command, name, item) for item in value)
    if isinstance(value, np.ndarray) and "FILE" in flag.form:
        path = os.path.join(folder, f"{name}-{len(os.listdir(folder))}.npy")
        arrays.save(path, value)
        return os.fsencode(path)
    if isinstance(value, (list, tuple, np.ndarray)):
        return _joined(command, name, value) if len(value) > 0 else b"scalar"  # the shape ()
    return _text(command, name, value)


def _joined(command: str, name: str, value: Iterable[Any]) -> bytes:
    return b",".join(_text(command, name, item) for item in value)


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
    raise TypeError(f"{command}(): {name} cannot be {value!r}; docs/cli.md describes it as --{table(command)[name].name}")


# A flag in a text, with the word behind it.
_FLAG = re.compile(r"(?<![\w-])--([a-z][a-z0-9-]*)(?:[ =]([\w./=,%+\[\]|-]*[\w%\]])(?![\w<>]))?")
# A word that is a value wherever it stands: a placeholder (DATA), or a word with a digit or an equals sign.
_VALUE = re.compile(r"[A-Z][A-Z0-9_.,\[\]|]*|.*[\d=].*")
# A command line, whose flags stay as they are.
_COMMAND = re.compile(r"sinter [a-z]+( \S+){0,4} ?$")


def with_python_names(command: str, text: str) -> str:
    """Returns a message of the command line with its flags as keywords: --plan-threads 2 is plan_threads=2."""
    flags = table(command)

    def renamed(found: re.Match[str]) -> str:
        name, value = found[1].replace("-", "_"), found[2]
        if name not in flags or _COMMAND.search(text, 0, found.start()):
            return found[0]
        behind = found[0][2 + len(found[1]):]
        if not flags[name].takes_value:
            return f"{name}=True{behind}"
        # "--target vax: ..." and the names of choices are values, too; other words go on with the sentence.
        choices = re.search(r"\{(.*)\}", flags[name].type)
        if value and (_VALUE.fullmatch(value) or text[found.end():found.end() + 1] == ":" or
                      choices and value in choices[1].split(",")):
            return f"{name}={value}"
        return name + behind

    return _FLAG.sub(renamed, text)


def _in_python(command: str, details: Any) -> Any:
    """Returns the result with the names of Python in its messages: diagnostics, and the reason for a missing file."""
    for item in details.get("diagnostics", ()):
        item["message"], item["remedy"] = (with_python_names(command, item[part]) for part in ("message", "remedy"))
    if "withheld" in details:
        details["withheld"] = with_python_names(command, details["withheld"])
    return details


def call(command: str, arguments: list[bytes], paths: list[bytes],
         progress: Callable[[float, str], object] | None = None) -> tuple[int, dict[str, Any], str]:
    """Runs the command and returns its exit code, result and text."""
    try:
        code, result, text = _native.call([command.encode(), *arguments, b"--", *paths], progress)
    except Error as error:
        raise type(error)(with_python_names(command, str(error))) from None
    return code, _in_python(command, json.loads(result)) if result else {}, text
