#!/usr/bin/env python3
"""Races Sinter against onnxruntime, OpenVINO, LiteRT, MNN, ncnn and tract on real networks.

    bench/race/race.py --sinter build/release/bin/sinter [--only NAME]... [--rivals NAME,...] [--precisions float,int8]
                       [--threads 1,2] [--rounds 3] [--seconds 0.1] [--models FOLDER]
                       [--cap avx2] [--json FILE] [--results bench/results/race-CPU.json]

The first call installs the rivals (requirements.txt) into build/race/venv and starts again there; a rival that cannot be
installed is listed as such. Networks: those of SINTER_SHARED (bench/model_list.py) and six well-known ones with random
weights (made_networks.py), or the .onnx files of a FOLDER. Files of the rivals are made once and kept in build/race/files.

In each round every contestant takes a turn for each number of threads, in an order that changes from round to round; a
turn is a fresh process, pinned to as many cores as it has threads, that loads the file (file to ready), runs once (first
result) and then runs for SECONDS. A contestant's time is the minimum over all rounds; the median over the rounds of the
rounds' medians stands beside it. Outputs are compared with Sinter's float32 ones (judge.py): a wrong rival is listed and
does not count, and of several kinds of int8 file the fastest right one counts. Files that are quantized already are raced
as they are, with int8. The score of a network is the fastest rival's time over Sinter's: above 1 Sinter is faster.

--json has every turn of every contestant, --results the tables from which bench/benchmarks_page.py makes docs/benchmarks.md.

--cap avx2 races on a processor with AVX-512 as if it had AVX2 only. Sinter is capped by
SINTER_CPU_CAP and `--target x86_64+avx2`; the rivals run with libraries of which each CPUID instruction has been replaced by
one that traps, and is answered as on Zen 3 (cap/patch.py, cap/cpuid.c; cap/check.py shows that it acts). Caches, frequencies
and the width of the units stay those of the processor.

Times of rivals include a call from Python, about a microsecond. Load and memory leave Python and the import out.
"""
import argparse
import json
import math
import os
import pathlib
import platform
import resource
import statistics
import sys
import tempfile
import time

import environment

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RIVALS = 'onnxruntime,openvino,litert,mnn,ncnn,tract'


class Network:
    """One network with its inputs and samples as files in `folder`."""

    def __init__(self, model, folder):
        import numpy as np
        import contestants
        import subjects
        self.name, self.path, self.flags, self.inputs = model['name'], model['path'], model['flags'], model['inputs']
        self.inputs_path, self.samples_path = folder / 'inputs.npz', folder / 'samples.npz'
        self.fixed_path = folder / 'fixed.onnx'
        stacks = subjects.samples_of(self.inputs)
        np.savez(self.inputs_path, **self.inputs)
        np.savez(self.samples_path, **stacks)
        self.samples_for_sinter = subjects.for_sinter(stacks)
        subjects.with_fixed_shapes(self.path, self.inputs, self.fixed_path)
        self.quantized = subjects.is_quantized(self.path)
        arrays = [a.tobytes() for a in stacks.values()]
        self.identity = contestants.digest(self.fixed_path, *map(hash_of, arrays))


def hash_of(data):
    import hashlib
    return hashlib.sha256(data).hexdigest()


class Entry:
    """What one flavour of one contestant did on one network."""

    def __init__(self, contestant, flavour):
        self.contestant, self.flavour = contestant, flavour
        self.folder, self.failure, self.sqnr = None, None, None
        self.turns = {}  # by number of threads

    def label(self):
        name = self.contestant.name
        return name if self.flavour in ('float', 'int8') else f'{name} {self.flavour}'

    def result(self):
        times = {}
        for threads, turns in self.turns.items():
            times[threads] = {key: min(t[key] for t in turns) for key in turns[0] if key != 'median_ms'}
            times[threads] |= dict(median_ms=statistics.median(t['median_ms'] for t in turns))
        return dict(name=self.contestant.name, flavour=self.flavour, label=self.label(), failure=self.failure,
                    sqnr=None if self.sqnr is None else round(min(self.sqnr, 999), 1), threads=times)


def race(network, precision, field, args, folder):
    """Results of all entries on one network; `field` holds Sinter first."""
    import contestants
    import judge
    import worker
    as_it_is = 'float' if network.quantized else precision
    entries = [Entry(c, flavour) for c in field for flavour in c.flavours(as_it_is)]
    want = None

    def fails(entry, reason):
        entry.failure = ' '.join(str(reason).split())[:200]

    for entry in entries:
        try:
            entry.folder = entry.contestant.convert(entry.flavour, network)
        except contestants.Failure as e:
            fails(entry, f'no file: {e}')
    reference = folder / 'reference.npz'
    try:
        sinter = field[0]
        sinter.measure(sinter.convert('float', network), network, 1, args.cores[:1], 0, reference)
        want = worker.load_arrays(reference)
    except contestants.Failure as e:
        return dict(network=network.name, skipped=f'Sinter: {e}')
    for k in range(args.rounds):
        for threads in args.threads:
            order = entries[k % len(entries):] + entries[:k % len(entries)]
            for entry in order:
                if entry.failure:
                    continue
                save = folder / 'out.npz' if not entry.turns else None
                try:
                    turn = entry.contestant.measure(entry.folder, network, threads, args.cores[:threads], args.seconds, save)
                    if save:
                        right, entry.sqnr = judge.agreement(worker.load_arrays(save), want, precision)
                        save.unlink()
                        if not right:
                            fails(entry, 'wrong: ' + ('a shape, or not finite' if math.isinf(entry.sqnr) else f'{entry.sqnr:.0f} dB'))
                    entry.turns.setdefault(threads, []).append(turn)
                except contestants.Failure as e:
                    fails(entry, e)
    result = dict(network=network.name, entries=[e.result() for e in entries])
    if lost(result, args.threads) and not entries[0].failure:
        try:
            result['costliest'] = field[0].costliest(entries[0].folder, network)
        except contestants.Failure as e:
            result['costliest'] = str(e)
    return result


def lost(result, thread_counts):
    import table
    return any((cell := table.cell(result, t)) and cell.ratio < 1 for t in thread_counts)


def busy_seconds():
    """Seconds that all programs have computed, of all cores."""
    fields = pathlib.Path('/proc/stat').read_text().splitlines()[0].split()[1:]
    user, nice, system, _, _, irq, softirq, steal = map(int, fields[:8])
    return (user + nice + system + irq + softirq + steal) / os.sysconf('SC_CLK_TCK')


def own_seconds():
    return sum(r.ru_utime + r.ru_stime for r in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def line_of(result, thread_counts):
    import table
    if 'skipped' in result:
        return result['skipped']
    cells = []
    for t in thread_counts:
        cell = table.cell(result, t)
        cells.append(f'{t}T: sinter {table.us(cell.sinter)}, {cell.best_label} {table.us(cell.best)} us, {cell.ratio:.2f}' if cell
                     else f'{t}T: -')
    return '; '.join(cells)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--sinter', required=True)
    parser.add_argument('--only', action='append', help='a part of a network\'s name; may be repeated')
    parser.add_argument('--rivals', default=RIVALS)
    parser.add_argument('--precisions', default='float,int8')
    parser.add_argument('--threads', type=lambda s: [int(t) for t in s.split(',')], default=[1, 2])
    parser.add_argument('--cores', type=lambda s: [int(c) for c in s.split(',')], default=list(range(os.cpu_count() or 1)))
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--seconds', type=float, default=0.1, help='how long a turn runs')
    parser.add_argument('--models', type=pathlib.Path, help='a folder of .onnx files, instead of SINTER_SHARED')
    parser.add_argument('--json', type=pathlib.Path)
    parser.add_argument('--cap', choices=['avx2'], help='race as on a machine without AVX-512')
    parser.add_argument('--results', type=pathlib.Path)
    args = parser.parse_args()
    if args.cap and platform.machine() != 'x86_64':
        parser.error('--cap needs x86-64')
    return args


def main():
    args = arguments()
    environment.enter(args.cap)
    import contestants
    import subjects
    import table
    import results
    field, absent = [contestants.Sinter(args.sinter, args.cap)], environment.not_installed()
    for name in filter(None, args.rivals.split(',')):
        try:
            field.append(contestants.Rival(name))
        except contestants.Failure as e:
            absent[name] = str(e)
    begin, others = time.time(), busy_seconds() - own_seconds()
    report = dict(commit=results.commit(), cpu=results.cpu('AVX2 (capped)' if args.cap else None), cap=args.cap, machine=platform.machine(),
                  cores=os.cpu_count(), rounds=args.rounds, seconds=args.seconds, threads=args.threads, target=' '.join(field[0].target), absent=absent,
                  command='bench/race/race.py ' + ' '.join(sys.argv[1:]),
                  contestants={c.name: dict(version=c.version, library_bytes=c.library_bytes) for c in field},
                  sinter_library=field[0].library, results={})
    for precision in args.precisions.split(','):
        raced = report['results'][precision] = []
        for model in subjects.networks(args.models):
            if args.only and not any(word in model['name'] for word in args.only):
                continue
            if 'absent' in model or (precision == 'float' and subjects.is_quantized(model['path'])):
                raced.append(dict(network=model['name'], skipped=model.get('absent', 'a quantized file: see int8')))
                continue
            with tempfile.TemporaryDirectory() as temporary:
                folder = pathlib.Path(temporary)
                raced.append(race(Network(model, folder), precision, field, args, folder))
            print(f"{precision:5s} {model['name']:26s} {line_of(raced[-1], args.threads)}", flush=True)
    for contestant in field:
        contestant.close()
    report['minutes'] = (time.time() - begin) / 60
    report['others'] = max(0, busy_seconds() - own_seconds() - others) / ((time.time() - begin) * (os.cpu_count() or 1))
    if args.json:
        args.json.write_text(json.dumps(report, indent=1) + '\n')
    found = table.tables(report)
    print('\n\n'.join('\n'.join([name, '', *lines]) for name, lines in found.items()))
    if args.results:
        results.store(args.results, f"Race on {report['cpu']}", found, **table.facts(report))


if __name__ == '__main__':
    main()
