#!/usr/bin/env python3
"""Write the table of rules in docs/numerics.md from converter/ir/rules.def.

    types_doc.py            rewrites the table
    types_doc.py --check    exit code 1 if the table is not what this would write
"""
import ast
import re
import sys

from generated_doc import read, write_or_check

SOURCE, TARGET = "converter/ir/rules.def", "docs/numerics.md"
HEAD = ["| id | when | what | why |", "| --- | --- | --- | --- |"]
# One literal or several in a row, as C joins them.
STRING = r'("(?:[^"\\]|\\.)*"(?:\s*"(?:[^"\\]|\\.)*")*)'
ROW = re.compile(r"SINTER_TYPE_RULE\((\w+)," + ",".join([r"\s*" + STRING + r"\s*"] * 4) + r"\)")


def name_of(identifier):
    """promote.int-float -> PromoteIntFloat, the name that the code has for it."""
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[.-]", identifier))


def table():
    text = read(SOURCE)
    lines = list(HEAD)
    for name, *literals in ROW.findall(text):
        identifier, *texts = (ast.literal_eval(f"({literal})") for literal in literals)
        if name != name_of(identifier):
            sys.exit(f"{SOURCE}: {name} has the id '{identifier}'; name it {name_of(identifier)}")
        lines.append("| " + " | ".join([identifier] + [t.replace("|", "\\|") for t in texts]) + " |")
        lines[-1] = lines[-1].replace("|  |", "| |")
    if len(lines) - len(HEAD) != len(re.findall(r"^SINTER_TYPE_RULE", text, re.M)):
        sys.exit(f"{SOURCE}: a row is not SINTER_TYPE_RULE(name, id, when, what, why)")
    return lines


def document():
    lines = read(TARGET).splitlines()
    first = lines.index(HEAD[0])
    last = first
    while last < len(lines) and lines[last].startswith("|"):
        last += 1
    return "\n".join(lines[:first] + table() + lines[last:]) + "\n"


if __name__ == "__main__":
    sys.exit(write_or_check(TARGET, document, __doc__))
