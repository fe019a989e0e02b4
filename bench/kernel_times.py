#!/usr/bin/env python3
"""Times of each platform's kernels by class of call, in the form of platforms/*/kernel_times.def.

    bench/kernel_times.py [--cpu avx512vnni|avx2|dotprod|neon|armv7|cortex-m4] [--runs N] [--program PROGRAM] [--platform NAME]
                          [--counts FILE]

avx512vnni and avx2 are measured on this machine, the latter with SINTER_CPU_CAP=avx2: the lowest time of N runs, in
nanoseconds, and the lowest of nine processes. The others are instructions of one run, counted under qemu on the
processors below: instructions are not cycles. cortex-m4 takes --counts alone, of the reference kernels; cases that take the
emulator more than a minute or do not fit the board's 16 MB are left out. Calls that only one platform takes, or that all
compute in the same time but for 5 %, have no row. The last lines, comments, compare the platforms.

Needs the program of the machine, and for ARM qemu and the counter of the folder that SINTER_SHARED names
(by default ../shared), tools/insn_count.c:

    cmake --preset dev && cmake --build build/dev --target sinter_time_ops
    cmake --preset aarch64 && cmake --build build/aarch64 --target sinter_time_ops      # and armv7
    cmake -G Ninja -B build/cortex-m4 --toolchain toolchains/arm-none-eabi-cortex-m4f.cmake -DCMAKE_BUILD_TYPE=MinSizeRel
    cmake --build build/cortex-m4 --target sinter_time_ops
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARED = pathlib.Path(os.environ.get('SINTER_SHARED', ROOT.parent / 'shared'))
COLUMNS = {'avx512vnni': 'Avx512Vnni', 'avx2': 'Avx2', 'dotprod': 'Dotprod', 'neon': 'Neon', 'armv7': 'Armv7'}
# The folder of the build, and the emulator.
EMULATED = {
    'dotprod': ('aarch64', ['qemu-aarch64', '-cpu', 'cortex-a76', '-L', '/usr/aarch64-linux-gnu']),
    'neon': ('aarch64', ['qemu-aarch64', '-cpu', 'cortex-a72', '-L', '/usr/aarch64-linux-gnu']),
    'armv7': ('armv7', ['qemu-arm', '-cpu', 'cortex-a15', '-L', '/usr/arm-linux-gnueabihf']),
    'cortex-m4': ('cortex-m4', ['qemu-system-arm', '-M', 'mps2-an386', '-nographic', '-monitor', 'none', '-serial', 'null']),
}
BOARD = 'cortex-m4'  # has 16 MB, and no fast kernels
SECONDS = 60  # for a case under an emulator
PROCESSES = 9
TIE = 1.05


def platforms():
    rows = (ROOT / 'platforms/platforms.def').read_text()
    return re.findall(r'^SINTER_PLATFORM\((\w+),', rows, re.M)


class Program:
    """sinter_time_ops on one processor."""

    def __init__(self, args, plugin):
        self.runs, self.board, self.counts, self.has_rows = args.runs, args.cpu == BOARD, args.cpu in EMULATED, args.cpu in COLUMNS
        build, emulator = EMULATED.get(args.cpu, ('dev', []))
        self.program = str(args.program or ROOT / f'build/{build}/bench/device/sinter_time_ops')
        self.emulator = [*emulator, '-plugin', str(plugin)] if emulator else []
        self.environment = {**os.environ, **({'SINTER_CPU_CAP': 'avx2'} if args.cpu == 'avx2' else {})}

    def __call__(self, *arguments):
        """None where the backend refuses the case, the emulator takes too long, or the board's memory does not suffice."""
        words = [str(a) for a in arguments]
        command = [*self.emulator, self.program, *words]
        if self.board:
            named = ','.join(f"arg='{a}'" for a in ('sinter_time_ops', *words))
            command = [*self.emulator, '-semihosting-config', f'enable=on,target=native,{named}', '-kernel', self.program]
        try:
            r = subprocess.run(command, capture_output=True, text=True, env=self.environment, timeout=SECONDS if self.counts else None)
        except subprocess.TimeoutExpired:
            return None
        if r.returncode not in (0, 3) and not self.board:
            sys.exit(f'{" ".join(command)}: {r.stderr.strip()}')
        return None if r.returncode else r

    def instructions(self, *case):
        r = self(*case)
        return r and int(re.search(r'instructions: (\d+)', r.stderr).group(1))

    def cost(self, *case):
        """Of one run, in nanoseconds or instructions; None: refused."""
        if self.counts:
            first, last = (0, 1) if self.board else (1, 3)
            before = self.instructions(*case, first)
            after = before and self.instructions(*case, last)
            return after and (after - before) // (last - first)
        r = self(*case, self.runs)
        return r and int(r.stdout)

    def costs(self, op, case, names):
        """By platform; in alternation, so that what else runs on the machine meets them all."""
        rounds = [[self.cost(op, case, name) for name in names] for _ in range(1 if self.counts else PROCESSES)]
        return [None if None in column else min(column) for column in zip(*rounds)]


def write_counts(program, names, path):
    with open(path, 'w') as file:
        for line in program('all').stdout.splitlines():
            op, case = line.split('\t')
            if not program.has_rows and 'winograd' in case:
                continue
            for name in names:
                if (cost := program.cost(op, case, name)) is not None:
                    print(op, case, name, cost, sep='\t', file=file, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--cpu', choices=[*COLUMNS, *(c for c in EMULATED if c not in COLUMNS)], default='avx512vnni')
    parser.add_argument('--runs', type=int, default=200, help='in each of the processes, of which the lowest counts')
    parser.add_argument('--program')
    parser.add_argument('--platform', action='append', help='(default: all of platforms.def)')
    parser.add_argument('--counts', help='of an emulated processor: count every case, into this file')
    args = parser.parse_args()
    if args.counts and args.cpu not in EMULATED:
        parser.error(f'--counts needs --cpu {", ".join(EMULATED)}')
    if args.cpu not in COLUMNS and not args.counts:
        parser.error(f'--cpu {args.cpu} needs --counts')
    names = args.platform or (['reference'] if args.cpu == BOARD else platforms())
    with tempfile.TemporaryDirectory() as folder:
        plugin = pathlib.Path(folder) / 'insn_count.so'
        if args.cpu in EMULATED:
            subprocess.run(['gcc', '-O2', '-shared', '-fPIC', '-o', plugin, SHARED / 'tools/insn_count.c'], check=True)
        program = Program(args, plugin)
        if args.counts:
            write_counts(program, names, args.counts)
            return
        calls = [line.split('\t') for line in program().stdout.splitlines()]
        costs = {}
        for op, kind, case in calls:
            for name, cost in zip(names, program.costs(op, case, names)):
                costs[op, kind, name] = cost
    provenance = 'Counted' if args.cpu in EMULATED else 'Measured'
    def differ(op, kind):
        taken = [costs[op, kind, name] for name in names if costs[op, kind, name] is not None]
        return len(taken) > 1 and max(taken) >= TIE * min(taken)

    for name in names:
        print(f'// {name}, {args.cpu}')
        for op, kind, _ in calls:
            if costs[op, kind, name] is not None and differ(op, kind):
                print(f'SINTER_KERNEL_TIME({op}, {kind}, {COLUMNS[args.cpu]}, {costs[op, kind, name]}, {provenance})')
    for op, kind, case in calls:
        taken = [(name, costs[op, kind, name]) for name in names if costs[op, kind, name] is not None]
        if len(taken) > 1:
            print(f'// {op} {kind}, {case}: ' + ', '.join(f'{n} {c / taken[0][1]:.2f}' for n, c in taken))


if __name__ == '__main__':
    main()
