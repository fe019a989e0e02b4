#!/usr/bin/env python3
"""Compares two builds of the program: same outputs, same plans, and the time of a run.

    bench/compare_builds.py OLD NEW [--only NAME]... [--targets x86_64,aarch64,armv7,portable] [--int8]
                            [--time] [--rounds 5] [--seconds 0.3] [--skip NAME]...

OLD and NEW are `sinter` programs. The models are those of model_list.py. Each is converted by both programs for every
target and run on the same inputs; the outputs are compared byte for byte, and so are the bytes of the arena and the
kernels that run. Plans for other targets run here as well, on the backends that this machine has. --int8 also converts to
int8 with made-up samples, where all inputs are float32. --time then times the x86_64 plans, both programs in turns within
each round, on one thread; the table gives the ratio of the medians and of the minima. Exit code 1 if outputs differ.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np

import model_list


def program(path, *args):
    done = subprocess.run([path, *map(str, args)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def made_up_samples(inputs, path):
    if not inputs or any(np.asarray(a).dtype != np.float32 for a in inputs.values()):
        return False
    rng = np.random.default_rng(7)
    arrays = {}
    for name, a in inputs.items():
        a = np.asarray(a)
        arrays[name] = np.stack([a + rng.normal(0, 0.1, a.shape).astype(np.float32) * (np.abs(a).max() or 1)
                                 for _ in range(8)])
    np.savez(path, **arrays)
    return True


def outputs_of(exe, model, inputs, folder):
    code, _, error = program(exe, 'run', model, '--inputs', inputs, '--outputs', folder / 'out.npz', '--quiet')
    if code != 0:
        return f'run fails with {code}: {error.strip()[:200]}'
    with np.load(folder / 'out.npz') as data:
        return {n: (data[n].dtype.str, data[n].shape, data[n].tobytes()) for n in data.files}


def plan_of(exe, model):
    code, out, error = program(exe, 'inspect', model, '--json')
    if code != 0:
        return {'error': error.strip()[:200]}
    facts = json.loads(out)
    return {k: facts.get(k) for k in ('arena_bytes', 'backends', 'step_count')}


def convert(exe, case, target, extra, to):
    code, _, error = program(exe, 'convert', case['path'], '-o', to, '--target', target, '--quiet', '--no-trial',
                             *case['flags'], *extra)
    return None if code == 0 else f'convert fails with {code}: {error.strip()[:200]}'


def time_of(exe, model, inputs, seconds):
    code, out, error = program(exe, 'bench', model, '--inputs', inputs, '--threads', 1, '--seconds', seconds, '--json')
    if code != 0:
        raise RuntimeError(error)
    return json.loads(out)['median_ms'] * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('old')
    parser.add_argument('new')
    parser.add_argument('--only', action='append', default=[])
    parser.add_argument('--targets', default='x86_64,aarch64,armv7,portable')
    parser.add_argument('--int8', action='store_true')
    parser.add_argument('--time', action='store_true')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--seconds', type=float, default=0.3)
    parser.add_argument('--skip', action='append', default=[])
    options = parser.parse_args()
    targets = options.targets.split(',')
    compared = differing = plans = 0
    times = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for case in model_list.models():
            if 'absent' in case or (options.only and case['name'] not in options.only) or case['name'] in options.skip:
                continue
            inputs = folder / 'in.npz'
            np.savez(inputs, **case['inputs'])
            variants = [('float', [])]
            if options.int8 and not case['flags'] and made_up_samples(case['inputs'], folder / 'samples.npz'):
                variants.append(('int8', ['--quantize', 'int8', '--calibrate', folder / 'samples.npz']))
            for target in targets:
                for variant, extra in variants:
                    label = f"{case['name']} {target} {variant}"
                    files = [folder / 'old.sinter', folder / 'new.sinter']
                    errors = [convert(exe, case, target, extra, to)
                              for exe, to in zip((options.old, options.new), files)]
                    compared += 1
                    if any(errors):
                        if bool(errors[0]) != bool(errors[1]):
                            differing += 1
                            print(f'{label}: old: {errors[0]}; new: {errors[1]}', flush=True)
                        continue
                    before, after = (outputs_of(exe, f, inputs, folder)
                                     for exe, f in zip((options.old, options.new), files))
                    if before != after:
                        differing += 1
                        what = (f'old: {before}; new: {after}' if isinstance(before, str) or isinstance(after, str) else
                                ', '.join(n for n in before if before[n] != after.get(n)))
                        print(f'{label}: outputs differ: {what}', flush=True)
                    before, after = (plan_of(exe, f) for exe, f in zip((options.old, options.new), files))
                    if before != after:
                        plans += 1
                        print(f'{label}: plan {before} -> {after}', flush=True)
                    if options.time and target == 'x86_64':
                        both = [[], []]
                        for i in range(options.rounds):
                            for k in ((0, 1) if i % 2 == 0 else (1, 0)):
                                both[k].append(time_of((options.old, options.new)[k], files[k], inputs, options.seconds))
                        times.append((label, both))
    print(f'{compared} conversions compared: outputs of {differing} differ, plans of {plans}')
    if times:
        print('\n| model | old median, us | new | ratio of medians | of minima |\n|---|---|---|---|---|')
        ratios = []
        for label, (a, b) in times:
            ratio = statistics.median(b) / statistics.median(a)
            ratios.append(ratio)
            print(f'| {label} | {statistics.median(a):.1f} | {statistics.median(b):.1f} | {ratio:.3f} | '
                  f'{min(b) / min(a):.3f} |')
        print(f'\nmedian of the ratios {statistics.median(ratios):.3f}, largest {max(ratios):.3f}')
    return 1 if differing else 0


if __name__ == '__main__':
    os.environ.setdefault('OMP_NUM_THREADS', '1')
    sys.exit(main())
