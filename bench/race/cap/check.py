#!/usr/bin/env python3
"""Shows for each rival that race.py's --cap acts.

    bench/race/cap/check.py [--network resnet50] [--precision int8] [--rivals NAME,...] [--seconds 1] [--sinter PROGRAM]

Runs a network on one thread, without the cap and with it, and samples the state of the registers: `zmm` is the share in which
upper halves of zmm0 to zmm15 are in use, `any` the share of any registers that only AVX-512 has. Opmasks and zmm16 to
zmm31 count as used from their first use on, until the thread ends, so with `any` = 0 a capped rival has used none of them; only
AVX-512 instructions on ymm0 to ymm15 without a mask leave no trace. (Without the cap, glibc alone makes `any` 100 %.) `CPUID`
is how often the instruction was answered from the rival's import to its first result, and in all later runs together. OpenVINO
also states the instruction set of each of its operations, Sinter the largest one.
Exits with 1 where a capped rival uses AVX-512, or has asked for nothing.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import environment  # noqa: E402
import race  # noqa: E402
from cap import patch  # noqa: E402


def answerer():
    return str(patch.answerer(environment.WORK / 'venv-avx2'))


def shares(samples, wide, zmm):
    if not samples:
        raise RuntimeError('it ran too briefly for a sample')
    return dict(any=wide / samples, zmm=zmm / samples)


def operations(name, model):
    """Of OpenVINO: the number of operations by the instruction set of their kernel."""
    if name != 'openvino':
        return ''
    nodes = model.request.get_compiled_model().get_runtime_model().get_ops()
    kinds = [node.get_rt_info()['primitiveType'].astype(str) for node in nodes]
    sets = collections.Counter(m[0] for kind in kinds if (m := re.search(r'avx512|avx2_vnni|avx2|sse4\d|avx', kind)))
    return ', '.join(f'{count} {name}' for name, count in sets.most_common())


def probe(name, folder, inputs, seconds):
    """Prints what one rival does in this environment."""
    import ctypes
    import importlib
    import worker
    out = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)
    library = ctypes.CDLL(answerer())
    counts = (ctypes.c_long * 4).in_dll(library, 'cap_counts')
    inputs, imported = worker.load_arrays(inputs), counts[0]
    rival = importlib.import_module('rivals.' + name)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    model = rival.Model(pathlib.Path(folder), inputs, 1)
    model.run()
    first = counts[0]
    library.cap_watch()
    times = worker.timed_runs(model.run, getattr(model, 'prepare', lambda: None), float(seconds))
    result = dict(ms=1e3 * min(times), **shares(*counts[1:]), first=first - imported, later=counts[0] - first,
                  operations=operations(name, model))
    print(json.dumps(result), file=out, flush=True)
    os._exit(0)


def probed(cap, *arguments):
    folder, variables = environment.capped(cap) if cap else (environment.VENV, {})
    done = subprocess.run([folder / 'bin/python', __file__, '--probe', *map(str, arguments)], capture_output=True, text=True,
                          env=os.environ | variables)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or [f'signal {-done.returncode}'])[-1][:200])
    return json.loads(done.stdout)


def probed_sinter(cap, sinter, folder, seconds):
    variables = dict(environment.capped(cap)[1] if cap else {}, LD_PRELOAD=answerer(), SINTER_CAP_WATCH='1')
    done = subprocess.run([sinter.program, 'bench', folder / 'model.sinter', '--threads', '1', '--seconds', str(seconds), '--json'],
                          capture_output=True, text=True, env=os.environ | variables, check=True)
    result, counts = json.loads(done.stdout), list(map(int, done.stderr.strip().splitlines()[-1].split()))
    return dict(ms=result['min_ms'], **shares(*counts[1:]), first=counts[0], later=0, operations=result['instruction_set'])


def row(rival, flavour, network, seconds):
    """(the line of the table, is the rival capped)"""
    folder = rival.convert(flavour, network)
    if rival.name == 'sinter':
        full, capped = (probed_sinter(cap, rival, folder, seconds) for cap in (None, 'avx2'))
    else:
        full, capped = (probed(cap, rival.name, folder, network.inputs_path, seconds) for cap in (None, 'avx2'))
    right = capped['any'] == 0 and (capped['first'] > 0 or rival.name == 'sinter')
    cells = [rival.name, flavour, f"{full['ms']:.2f}", f"{capped['ms']:.2f}",
             *(f'{100 * one[key]:.0f} %' for key in ('zmm', 'any') for one in (full, capped)),
             f"{capped['first']}, {capped['later']}", full['operations'], capped['operations']]
    return ' | '.join(['', *cells, '' if right else '**not capped**']).strip(), right


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--network', default='resnet50')
    parser.add_argument('--precision', choices=['float', 'int8'], default='float')
    parser.add_argument('--rivals', default=race.RIVALS)
    parser.add_argument('--seconds', type=float, default=1)
    parser.add_argument('--sinter', help='look at Sinter, too, with a file for AVX2')
    args = parser.parse_args()
    environment.enter()
    import contestants
    import subjects
    failures = 0
    print('| rival | file | ms | capped | zmm | capped | any | capped | CPUID capped | operations | capped |')
    print('| --- | --- |' + ' ---: |' * 7 + ' --- | --- |')
    with tempfile.TemporaryDirectory() as temporary:
        network = race.Network(next(m for m in subjects.networks() if m['name'] == args.network), pathlib.Path(temporary))
        for name in ['sinter'] * bool(args.sinter) + args.rivals.split(','):
            rival = contestants.Sinter(args.sinter, 'avx2') if name == 'sinter' else contestants.Rival(name)
            for flavour in rival.flavours(args.precision):
                try:
                    line, right = row(rival, flavour, network, args.seconds)
                except contestants.Failure as e:
                    line, right = f'| {name} | {flavour} | no file: {e} |', True
                except RuntimeError as e:
                    line, right = f'| {name} | {flavour} | {e} |', False
                print(line, flush=True)
                failures += not right
            rival.close()
    sys.exit(failures > 0)


if __name__ == '__main__':
    if sys.argv[1:2] == ['--probe']:
        probe(*sys.argv[2:])
    main()
