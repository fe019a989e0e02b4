"""What the scripts that generate pages of docs/ have in common: write the page, or check that it is fresh."""
import argparse
import difflib
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def write_or_check(target, document, description):
    """`target`: relative to the repository's root; `document()`: its text. Returns the exit code."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    path, text = os.path.join(ROOT, target), document()
    if not args.check:
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return 0
    there = read(target) if os.path.exists(path) else ""
    if there != text:
        diff = difflib.unified_diff(there.splitlines(), text.splitlines(), target, "fresh", lineterm="", n=0)
        print("\n".join(list(diff)[:40]))
        print(f"stale: run {os.path.relpath(os.path.abspath(sys.argv[0]), ROOT)}")
        return 1
    print(f"{target} is fresh")
    return 0
