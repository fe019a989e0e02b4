#!/usr/bin/env python3
"""Operand types are settled before an operator is lowered: no function of converter/import/lower/ brings an operand of
the node to the type of another one.

    lowering_types.py SOURCE_ROOT     check the tree, print every breach, exit 1 if there is one
    lowering_types.py --self-test     check that the checker finds what it should

The row of the operator requests the common type (converter/types/operand_rules.h). A cast of an operand to a named type, in
which the operator computes, is not a breach, nor is a cast of a value that lowering has made.
"""
import re
import sys
from pathlib import Path

FOLDER = "converter/import/lower"
# The operand, then a type that comes from a value.
CAST = re.compile(r"\bcast\(\s*n_?(?:\.|->)input\([^()]*\)\s*,\s*n_?(?:\.|->)dtype\(")
COMMON = re.compile(r"\b(promote\w*|align_types|common_type)\s*\(")


def breaches_of(text):
    """Yields (line number, message)."""
    for match in CAST.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, "casts an operand to the type of another; request it in the operator's row"
    for match in COMMON.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, f"{match.group(1)}() decides on a type; converter/types/ does"


def check(root):
    files = sorted((Path(root) / FOLDER).glob("*.cc")) + sorted((Path(root) / FOLDER).glob("*.h"))
    found = [f"{f.relative_to(root)}:{number}: {message}" for f in files for number, message in breaches_of(f.read_text())]
    return len(files), found


def self_test():
    cases = [
        ("n.emit(A{}, {x, n.cast(n.input(2), n.dtype(x))});", True),
        ("bias = n.cast(n.input(1),\n    n.dtype(n.input(0)));", True),
        ("if (!n.promote(&a, &b)) return false;", True),
        ("const auto type = promote(a, b);", True),
        ("n.cast(n.input(2), DType::kFloat32)", False),
        ("n.cast(state, n.dtype(n.input(3)))", False),
        ("n.cast(n.reshape(index, {1}), n.dtype(x))", False),
    ]
    for text, breach in cases:
        assert bool(list(breaches_of(text))) == breach, text
    print(f"{len(cases)} cases")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    count, found = check(sys.argv[1])
    print("\n".join(found + [f"{count} files, {len(found)} breaches"]))
    sys.exit(bool(found) or count == 0)


if __name__ == "__main__":
    main()
