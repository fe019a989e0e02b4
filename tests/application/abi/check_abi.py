#!/usr/bin/env python3
"""The C API keeps what programs were compiled against.

    check_abi.py HEADER RECORD            compare the header with the record of its ABI version; exit 1 where they differ
    check_abi.py HEADER RECORD --record   write the record anew
    check_abi.py --self-test              check that the comparison finds what it should

The record has a line for each function (with its types), for each number of an enumeration, and for each member of a
structure in order. Programs go on working if functions, numbers, and members at the end of a structure that begins with
`size` are added. Everything else needs another SINTER_ABI_VERSION, whose record begins anew.
"""
import re
import sys
from pathlib import Path


def declarations(text):
    """The header as a dict: functions by name, structures with their members in order, numbers by name."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    version = int(re.search(r"#define SINTER_ABI_VERSION (\d+)", text).group(1))
    constants = dict(re.findall(r"^#define (SINTER_[A-Z_]+) (\d+)\s*$", text, flags=re.M))
    constants.pop("SINTER_ABI_VERSION")
    numbers = {f"define {name}": value for name, value in constants.items()}
    for body in re.findall(r"typedef enum \w+ \{(.*?)\}", text, flags=re.S):
        numbers.update((f"number {n}", v) for n, v in re.findall(r"(\w+)\s*=\s*(-?\d+)", body))
    structures = {}
    for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\}\s*\w+;", text, flags=re.S):
        structures[name] = [" ".join(m.split()) for m in body.split(";") if m.strip()]
    functions = {}
    for line in re.findall(r"SINTER_API ([^;{}]+?\));", text, flags=re.S):
        flat = re.sub(r"\s*\*\s*", "* ", " ".join(line.split())).replace("( ", "(")
        functions[re.search(r"(\w+)\(", flat).group(1)] = flat
    for line in re.findall(r"typedef (\w+ \(\*\w+\)\([^;]*\));", text):
        functions[re.search(r"\(\*(\w+)\)", line).group(1)] = " ".join(line.split())
    return {"version": version, "numbers": numbers, "structures": structures, "functions": functions}


def record_of(found):
    lines = [f"version {found['version']}"]
    lines += [f"{name} {value}" for name, value in sorted(found["numbers"].items())]
    lines += [f"struct {name}: {member}" for name, members in sorted(found["structures"].items()) for member in members]
    lines += [f"function {text}" for _, text in sorted(found["functions"].items())]
    return "\n".join(lines) + "\n"


def breaks(record, header):
    """Yields what a program that was compiled with the record's header would miss, or what is not recorded."""
    found = declarations(header)
    old = record.splitlines()
    new = set(record_of(found).splitlines())
    if old[0] != f"version {found['version']}":
        yield f"the record is of {old[0]}; record the header of version {found['version']} anew"
        return
    members = {}
    for line in old[1:]:
        if line.startswith("struct "):
            name, member = line[len("struct "):].split(": ", 1)
            members.setdefault(name, []).append(member)
        elif line not in new:
            yield f"changed or gone: {line}"
    for name, were in members.items():
        now = found["structures"].get(name, [])
        if now[:len(were)] != were:
            yield f"struct {name}: its members were {were}, and are {now}"
        elif len(now) > len(were) and were[0] != "size_t size":
            yield f"struct {name} has become longer, and does not begin with its size"
    for line in sorted(new - set(old)):
        yield f"not recorded: {line}"


def self_test():
    header = ("#define SINTER_ABI_VERSION 1\ntypedef enum e { SINTER_A = 1 } e;\n"
              "typedef struct s { size_t size; int a; } s;\ntypedef struct t { int a; } t;\n"
              "SINTER_API int f(const char* name, s* to);\n")
    record = record_of(declarations(header))
    cases = [(header, 0), (header.replace("= 1", "= 2"), 2), (header.replace("int a; } s", "int a; int b; } s"), 1),
             (header.replace("{ size_t size; int a; } s", "{ size_t size; int b; int a; } s"), 2),
             (header.replace("int a; } t", "int a; int b; } t"), 2), (header.replace("SINTER_API int f", "SINTER_API void f"), 2),
             (header + "SINTER_API int g(void);\n", 1), (header.replace("VERSION 1", "VERSION 2"), 1)]
    bad = [(i, list(breaks(record, text))) for i, (text, count) in enumerate(cases) if len(list(breaks(record, text))) != count]
    for i, lines in bad:
        print(f"self-test: case {i}: {lines}")
    return 1 if bad else 0


def with_includes(header):
    """The header's text, with the runtime's C headers that it includes in place of their names."""
    folder = header.resolve().parents[3] / "runtime" / "include"
    return re.sub(r'#include "(sinter/\w+\.h)"', lambda m: with_includes(folder / m.group(1)), header.read_text())


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    header, record = with_includes(Path(sys.argv[1])), Path(sys.argv[2])
    if sys.argv[3:] == ["--record"]:
        record.write_text(record_of(declarations(header)))
        return 0
    found = list(breaks(record.read_text(), header))
    print("\n".join(found) if found else f"{len(record.read_text().splitlines())} declarations, all as recorded")
    if found:
        print(f"where a program would break, raise SINTER_ABI_VERSION; then: {sys.argv[0]} HEADER {record} --record")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
