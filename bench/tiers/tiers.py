#!/usr/bin/env python3
"""Hot kernels on every instruction-set tier that this processor has, in percent of the core's own peak on that tier.

    bench/tiers/tiers.py [--program build/release/bench/device/sinter_tiers] [--tiers sse41,avx2,avx512,full]
                         [--rounds 5] [--seconds 0.05] [--results bench/results/tiers-CPU.json]

Rounds of all tiers take turns, each in a process of its own with SINTER_CPU_CAP, pinned to one core; peaks and times are
the best of all rounds, and of the backends the fastest counts. Rates have the percentage of the highest peak (or of copying) in
brackets. Needs the program:

    cmake --preset release && cmake --build build/release --target sinter_tiers
"""
import argparse
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / 'bench'))
import results  # noqa: E402

# The features of /proc/cpuinfo without which a tier cannot be measured. `full` is all that the processor has.
NEEDS = {'sse41': 'sse4_1', 'avx2': 'avx2', 'avx512': 'avx512bw', 'full': ''}


def run(program, tier, seconds, core):
    environment = {k: v for k, v in os.environ.items() if k != 'SINTER_CPU_CAP'}
    if tier != 'full':
        environment['SINTER_CPU_CAP'] = tier
    done = subprocess.run(['taskset', '-c', str(core), program, str(seconds)], capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.exit(f'{program} on {tier}: {done.stderr.strip()}')
    return [line.split('\t') for line in done.stdout.splitlines()]


class Tier:
    """The best of all rounds."""

    def __init__(self, name):
        self.name, self.peaks, self.times, self.rates, self.copies = name, {}, {}, {}, {}

    def add(self, lines):
        for kind, *fields in lines:
            if kind == 'peak':
                self.peaks[fields[0]] = max(float(fields[1]), self.peaks.get(fields[0], 0))
                continue
            label, what, backend, nanoseconds, rate, percent = fields
            key = what, label, backend
            self.times[key] = min(float(nanoseconds), self.times.get(key, float('inf')))
            self.rates[key] = max(float(rate), self.rates.get(key, 0))
            if float(percent):  # what copying, or the peak of its type, reached in that round
                self.copies[key] = max(100 * float(rate) / float(percent), self.copies.get(key, 0))

    def cell(self, what, label):
        """(backend, rate, percent, nanoseconds) of the fastest backend, or None."""
        keys = [k for k in self.times if k[:2] == (what, label)]
        if not keys:
            return None
        best = min(keys, key=self.times.get)
        return dict(backend=best[2], rate=self.rates[best], nanoseconds=self.times[best],
                    percent=100 * self.rates[best] / self.copies[best] if self.copies.get(best) else None)


def tables(tiers):
    """Lines of Markdown by the name of the table: the peaks, then rates of kernels by what they compute on."""
    head = ['| kernel | ' + ' | '.join(t.name for t in tiers) + ' |', '| --- |' + ' ---: |' * len(tiers)]
    found = {'peaks': ['| tier | instructions, 10^9 operations/s |', '| --- | --- |']}
    found['peaks'] += [f"| {t.name} | {'; '.join(f'{name}: {rate:.0f}' for name, rate in t.peaks.items())} |" for t in tiers]
    for what in dict.fromkeys(key[0] for t in tiers for key in t.times):
        lines = found[what if 'GB/s' in what else f'{what}, 10^9 operations/s'] = list(head)
        for label in dict.fromkeys(key[1] for t in tiers for key in t.times if key[0] == what):
            cells = []
            for tier in tiers:
                c = tier.cell(what, label)
                percent = '' if c is None or c['percent'] is None else f" ({c['percent']:.0f} %)"
                cells.append('-' if c is None else f"{c['rate']:.0f}{percent} {c['backend'][0]}")
            lines.append(f"| {label} | " + ' | '.join(cells) + ' |')
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', default=ROOT / 'build/release/bench/device/sinter_tiers')
    parser.add_argument('--tiers')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--seconds', type=float, default=0.05, help='for each kernel in each round')
    parser.add_argument('--core', type=int, default=0)
    parser.add_argument('--results', type=pathlib.Path)
    args = parser.parse_args()
    flags = pathlib.Path('/proc/cpuinfo').read_text().split()
    names = args.tiers.split(',') if args.tiers else [t for t, need in NEEDS.items() if not need or need in flags]
    tiers = [Tier(name) for name in names]
    for k in range(args.rounds):
        for tier in tiers if k % 2 == 0 else tiers[::-1]:
            tier.add(run(args.program, tier.name, args.seconds, args.core))
    found = tables(tiers)
    print('\n\n'.join('\n'.join([name, '', *lines]) for name, lines in found.items()))
    if args.results:
        results.store(args.results, 'Kernels on each instruction set in percent of the peak', found)


if __name__ == '__main__':
    main()
