#!/usr/bin/env python3
"""Bytes of code in an archive of kernels, by instruction set and by function: two tables.

    code_sizes.py ARCHIVE [--functions N]

ARCHIVE is a static library such as build/release/platforms/simd/libsinter_simd.a. Copies of a template are one row, with their number.
Needs nm.
"""
import argparse
import collections
import re
import subprocess


def function_name(name):
    """Without namespaces, template arguments and parameters."""
    name = re.sub(r'\(anonymous namespace\)::|\bN_[A-Z0-9_]+::', '', name)
    depth, kept = 0, ''
    for c in name:
        depth += c == '<'
        kept += c if depth == 0 else ''
        depth -= c == '>'
    return kept.split('(')[0].split(' ')[-1].removeprefix('sinter::').removeprefix('simd::')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('archive')
    parser.add_argument('--functions', type=int, default=12, help='rows of the second table')
    args = parser.parse_args()
    listing = subprocess.run(['nm', '-S', '-C', args.archive], capture_output=True, text=True, check=True).stdout
    sets, functions, copies = collections.Counter(), collections.Counter(), collections.Counter()
    for line in listing.splitlines():
        fields = line.split(None, 3)
        if len(fields) < 4 or fields[2].lower() not in 'tw':
            continue
        size, name = int(fields[1], 16), fields[3]
        found = re.search(r'\bN_([A-Z0-9_]+)::', name)
        sets[found.group(1) if found else 'none'] += size
        functions[function_name(name)] += size
        copies[function_name(name)] += 1
    print('| instruction set | bytes |\n| --- | --- |')
    for name, size in sets.most_common():
        print(f'| {name} | {size:,} |')
    print(f'| all | {sum(sets.values()):,} |\n\n| function | copies | bytes |\n| --- | --- | --- |')
    for name, size in functions.most_common(args.functions):
        print(f'| `{name}` | {copies[name]} | {size:,} |')


if __name__ == '__main__':
    main()
