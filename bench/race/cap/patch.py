#!/usr/bin/env python3
"""Makes an environment of the rivals for an AVX2 machine, from the one for this machine. Standard library only.

    bench/race/cap/patch.py --self-test

In every shared library of the copy, each CPUID (0F A2) becomes UD0 (0F FF), which cpuid.c, preloaded, answers; everything else
is hard-linked. CPUID is looked for in a disassembly of all sections of code, so equal bytes within other instructions stay, as
does a place whose neighbourhood does not decode. capped.json of the environment has the counts of each library.
Needs objdump and gcc.
"""
import functools
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
CPUID, UD0 = b'\x0f\xa2', b'\x0f\xff'
NEIGHBOURS = 4
# glibc chooses memcpy and the like before any library can be preloaded.
VARIABLES = {'GLIBC_TUNABLES': 'glibc.cpu.hwcaps=-AVX512F,-AVX512CD,-AVX512DQ,-AVX512BW,-AVX512VL'}
LINE = re.compile(r'\s*([0-9a-f]+):\t(.*)')


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, env=dict(os.environ, LC_ALL='C')).stdout


def code_sections(path):
    """[(address, offset in the file, bytes)]"""
    rows = [line.split() for line in run('objdump', '-h', '-w', path).splitlines() if 'CODE' in line]
    return [(int(row[3], 16), int(row[5], 16), int(row[2], 16)) for row in rows]


def cpuid_offsets(path, sections):
    """Where the file has CPUID, and how many places were left because their neighbourhood does not decode."""
    listing = f'objdump -d --no-show-raw-insn "$0" | grep -P -B{NEIGHBOURS} -A{NEIGHBOURS} "\\tcpuid"; exit ${{PIPESTATUS[0]}}'
    groups = run('bash', '-c', listing, path).split('\n--\n')
    offsets, unclear = [], 0
    for group in groups:
        lines = [m.groups() for line in group.splitlines() if (m := LINE.match(line))]
        for i, (address, text) in enumerate(lines):
            if not text.startswith('cpuid'):
                continue
            if any('(bad)' in other for _, other in lines[max(0, i - NEIGHBOURS):i + NEIGHBOURS + 1]):
                unclear += 1
                continue
            address = int(address, 16)
            offsets.append(next(address - start + offset for start, offset, size in sections if start <= address < start + size))
    return offsets, unclear


def patch(source, to):
    """Writes `source` without CPUID to `to`: the counts, or None where there is nothing to replace."""
    data = bytearray(source.read_bytes())
    if data[:4] != b'\x7fELF' or CPUID not in data:
        return None
    sections = code_sections(source)
    equal = sum(data.count(CPUID, offset, offset + size) for _, offset, size in sections)
    offsets, unclear = cpuid_offsets(source, sections) if equal else ([], 0)
    if not offsets and not unclear:
        return None
    for offset in offsets:
        if data[offset:offset + 2] != CPUID:
            raise RuntimeError(f'{source}: no CPUID at {offset:#x}')
        data[offset:offset + 2] = UD0
    to.write_bytes(data)
    shutil.copymode(source, to)
    return dict(replaced=len(offsets), unclear=unclear, within_others=equal - len(offsets) - unclear)


def copy(source, to, counts, root):
    if '.so' in pathlib.Path(source).name and (done := patch(pathlib.Path(source), pathlib.Path(to))):
        counts[str(pathlib.Path(source).relative_to(root))] = done
        print(f'{source}: {done}', flush=True)
    else:
        os.link(source, to)


def environment(source, to):
    """Makes `to` of the environment `source`, unless it is up to date."""
    source, stamp = source.resolve(), to / 'capped.json'
    key = hashlib.sha256((source / 'installed.json').read_bytes() + pathlib.Path(__file__).read_bytes()).hexdigest()
    if stamp.exists() and json.loads(stamp.read_text())['key'] == key:
        return
    print(f'replacing CPUID in {to}, which takes minutes', flush=True)
    shutil.rmtree(to, ignore_errors=True)
    counts = {}
    shutil.copytree(source, to, symlinks=True, copy_function=functools.partial(copy, counts=counts, root=source))
    stamp.write_text(json.dumps(dict(key=key, libraries=counts), indent=1) + '\n')


def answerer(folder):
    """The library of cpuid.c, made in `folder`."""
    library = folder / 'cpuid.so'
    if not library.exists() or library.stat().st_mtime < (HERE / 'cpuid.c').stat().st_mtime:
        run('gcc', '-O2', '-Wall', '-Wextra', '-Werror', '-shared', '-fPIC', '-o', library, HERE / 'cpuid.c')
    return library


TEST = r"""
#include <cpuid.h>
#include <stdio.h>
static const volatile unsigned char text[] = {0x0f, 0xa2};
static unsigned other(void) { unsigned r; __asm__("mov $0xa20f0000, %0" : "=r"(r)); return r; }
int main(int count, char** values) {
  unsigned a = 0, b = 0, c = 0, d = 0, vendor;
  __cpuid_count(0, 0, a, vendor, c, d);
  __cpuid_count(7, 0, a, b, c, d);
  if (count > 1 && values) __builtin_trap();
  printf("%08x %d %d %08x %02x\n", vendor, b >> 5 & 1, b >> 16 & 1, other(), text[1]);
}
"""


def self_test():
    """Patches a program that has CPUID twice as an instruction, once in an operand and once as data, and runs it."""
    if os.uname().machine != 'x86_64' or not shutil.which('gcc') or not shutil.which('objdump'):
        print('skipped: needs gcc and objdump on x86-64')
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        (folder / 'a.c').write_text(TEST)
        run('gcc', '-O1', '-o', folder / 'a', folder / 'a.c')
        counts = patch(folder / 'a', folder / 'b')
        assert counts == dict(replaced=2, unclear=0, within_others=1), counts
        plain, preloaded = run(folder / 'a').split(), dict(os.environ, LD_PRELOAD=str(answerer(folder)))
        capped = subprocess.run([folder / 'b'], capture_output=True, text=True, env=preloaded).stdout.split()
        plain[2] = '0'  # AVX512F
        assert capped == plain, (capped, plain)
        assert subprocess.run([folder / 'b'], capture_output=True).returncode == -4, 'answered without the library'
        assert subprocess.run([folder / 'b', 'x'], capture_output=True, env=preloaded).returncode == -4, 'a trap was answered'
    print('passed')


if __name__ == '__main__':
    if sys.argv[1:] != ['--self-test']:
        sys.exit(__doc__)
    self_test()
