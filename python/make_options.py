#!/usr/bin/env python3
"""Writes the type stub of the options of convert(), from the command line's table of flags.

    make_options.py LIBRARY OUTPUT

LIBRARY is libsinter_python.so.
"""
import ctypes
import json
import re
import sys
import textwrap

# Options that take more than the flag does (docs/python.md).
WIDER = {"calibrate": "Samples", "evaluate": "Samples"}
BASES = {"INT": ("int", "Ints"), "FLOAT": ("float", "Floats")}
HEAD = '''"""The options of convert(): the flags of `sinter convert`. Written by make_options.py."""
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypedDict

import numpy as np

Sample = Mapping[str, np.ndarray[Any, Any]] | np.ndarray[Any, Any]
Text = str | int | float | os.PathLike[str]
# The type of flags that can be repeated.
Texts = Text | Sequence[Text] | Mapping[str, Any]
Ints = int | Sequence[int]
Floats = float | Sequence[float]
Samples = str | os.PathLike[str] | Sample | Iterable[Sample] | Callable[[], Iterable[Sample]]

class ConvertOptions(TypedDict, total=False):
'''


def type_of(name, flag):
    if name in WIDER:
        return WIDER[name]
    if not flag["takes_value"]:
        return "bool"
    choices = re.search(r"\{(.*)\}", flag["type"])
    if choices:
        return f"Literal[{', '.join(repr(c) for c in choices[1].split(','))}]"
    if "[," in flag["form"]:
        return "Text | Sequence[Text] | np.ndarray[Any, Any]"
    return BASES.get(re.match(r"\w*", flag["type"])[0], ("Text", "Texts"))[flag["repeats"]]


def flags(library):
    """The flags of `sinter convert`, each a dict (python/native/sinter_python.h)."""
    function = ctypes.CDLL(library).sinter_python_flags
    function.restype = ctypes.c_char_p
    return json.loads(function(b"convert"))


def main(library, output):
    lines = [HEAD]
    for flag in flags(library):
        if flag["name"] in ("json", "quiet", "output"):
            continue
        name = flag["name"].replace("-", "_")
        lines.append(f"    {name}: {type_of(name, flag)} | None\n")
        text = " ".join(flag["help"].split()).replace("\\", "\\\\").replace('"""', "'''")
        body = textwrap.wrap(text, 110, initial_indent='    """', subsequent_indent="    ")
        lines.append("\n".join(body) + '"""\n')
    with open(output, "w") as file:
        file.write("".join(lines))


if __name__ == "__main__":
    main(*sys.argv[1:])
