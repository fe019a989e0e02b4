#!/usr/bin/env python3
"""Write the table of rules in docs/types.md from converter/ir/rules.def.

    types_doc.py            rewrites the table
    types_doc.py --check    exit code 1 if the table is not what this would write
"""
import argparse
import ast
import difflib
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCE, TARGET = "converter/ir/rules.def", "docs/types.md"
HEAD = ["| id | when | what | why |", "| --- | --- | --- | --- |"]
# One literal or several in a row, as C joins them.
STRING = r'("(?:[^"\\]|\\.)*"(?:\s*"(?:[^"\\]|\\.)*")*)'
ROW = re.compile(r"SINTER_TYPE_RULE\((\w+)," + ",".join([r"\s*" + STRING + r"\s*"] * 4) + r"\)")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    text = document()
    if not args.check:
        with open(os.path.join(ROOT, TARGET), "w", encoding="utf-8") as f:
            f.write(text)
        return 0
    there = read(TARGET)
    if there != text:
        diff = difflib.unified_diff(there.splitlines(), text.splitlines(), TARGET, "fresh", lineterm="", n=0)
        print("\n".join(list(diff)[:40]))
        print("stale: run scripts/types_doc.py")
        return 1
    print(f"{TARGET} is fresh")
    return 0


if __name__ == "__main__":
    sys.exit(main())
