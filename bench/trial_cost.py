#!/usr/bin/env python3
"""The cost of a conversion's trial run: processor seconds of every network of SINTER_SHARED with and without it.

    bench/trial_cost.py --sinter build/release/bin/sinter [--repeats 3] [--filter GLOB]

Each time is the minimum of its repeats, which alternate. The last line has the sums over the networks that are tried.
"""
import argparse
import fnmatch
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / 'tests' / 'common'), str(ROOT / 'tests' / 'models')]
import networks  # noqa: E402
import sinter_cli as cli  # noqa: E402


def seconds_of(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, json.loads(done.stdout) if done.returncode == 0 else None, done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--sinter')
    parser.add_argument('--repeats', type=int, default=3)
    parser.add_argument('--filter', default='*')
    args = parser.parse_args()
    sinter, shared = cli.find_sinter(args.sinter), cli.find_shared()
    if not shared:
        cli.skip('the models of SINTER_SHARED are absent')
    total = [0.0, 0.0]
    print(f'{"network":<52} {"without":>8} {"with":>8}  trial')
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, 'out.sinter')
        for net in networks.read_table():
            if not fnmatch.fnmatch(net.file, args.filter):
                continue
            command = [sinter, 'convert', os.path.join(shared, 'models', net.file), '-o', out, '--json', *net.flags]
            runs = [(seconds_of([*command, '--no-trial']), seconds_of(command)) for _ in range(args.repeats)]
            report = runs[0][1][1]
            if report is None:
                print(f'{net.file:<52} refused')
                continue
            plain, tried = (min(run[k][0] for run in runs) for k in (0, 1))
            trial = report['trial']
            if trial['done']:
                total[0], total[1] = total[0] + plain, total[1] + tried
            result = trial.get('note', '') or f'{trial["not_finite"]} not finite'
            print(f'{net.file:<52} {plain:7.3f}s {tried:7.3f}s  {result}', flush=True)
    print(f'tried networks together: {total[0]:.2f} s without, {total[1]:.2f} s with the trial')
    return 0


if __name__ == '__main__':
    sys.exit(main())
