#!/usr/bin/env python3
"""What the device libraries' objects contain and refer to: no exceptions, no RTTI, no heap, no iostream, no code that
runs before main. The library for applications that may allocate uses the heap.

    device_objects.py [--nm NM] [--readelf READELF] ARCHIVE...
"""
import argparse
import os
import re
import subprocess
import sys

HEAP = "uses the heap"
FORBIDDEN = [
    ("throws or catches", re.compile(r"^(__cxa_(throw|rethrow|begin_catch|allocate_exception)|_ZSt\d+__throw_)")),
    ("needs RTTI", re.compile(r"^(_ZTI|_ZTS|_ZTVN10__cxxabiv|__dynamic_cast)")),
    (HEAP, re.compile(r"^(_Zn[wa]|_Zd[la]Pv|(malloc|calloc|realloc|free|posix_memalign|aligned_alloc)$)")),
    ("uses iostream", re.compile(r"^_ZN?K?S(o|i|t\d*(basic_)?[io]stream|t4(cout|cerr|cin))|^_ZNSt8ios_base")),
    ("uses std::string", re.compile(r"^_ZNK?St7__cxx1112basic_string|^_ZNK?Ss")),
    ("guards a static with a lock", re.compile(r"^__cxa_guard_")),
    ("registers code that runs at exit", re.compile(r"^(__cxa_atexit|atexit)$")),
]
MAY_ALLOCATE = "libsinter_application.a"
CONSTRUCTORS = re.compile(r"\s\.(init_array|ctors)(\.\S+)?\s")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def demangled(name):
    try:
        return run("c++filt", name).strip()
    except (OSError, subprocess.CalledProcessError):
        return name


def check(archive, nm, readelf):
    found = []
    member = "?"
    members = 0
    for line in run(nm, "--undefined-only", archive).splitlines():
        if line.endswith(":") and line:
            member = line[:-1]
            members += 1
            continue
        name = line.split()[-1] if line.split() else ""
        for what, pattern in FORBIDDEN:
            if what == HEAP and os.path.basename(archive) == MAY_ALLOCATE:
                continue
            if name and pattern.search(name):
                found.append(f"{archive}({member}) {what}: {demangled(name)}")
    for line in run(readelf, "-SW", archive).splitlines():
        if line.startswith("File: "):
            member = line[6:]
        elif CONSTRUCTORS.search(line):
            found.append(f"{member} has static constructors")
    return members, sorted(set(found))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nm", default="nm")
    parser.add_argument("--readelf", default="readelf")
    parser.add_argument("archives", nargs="+")
    arguments = parser.parse_args()
    total, found = 0, []
    for archive in arguments.archives:
        members, more = check(archive, arguments.nm, arguments.readelf)
        total += members
        found += more
    print("\n".join(found))
    print(f"{total} objects, {len(found)} findings")
    return 1 if found or total == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
