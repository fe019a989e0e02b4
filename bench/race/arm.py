#!/usr/bin/env python3
"""Instructions of one run on 64-bit ARM, float32 and int8, counted under qemu: instructions are not cycles.

    bench/race/arm.py [--sinter PROGRAM] [--runner PROGRAM] [--only NAME]... [--models FOLDER]
                      [--results FILE]

Networks, inputs and calibration samples are those of race.py. float32 and int8 are counted on a Cortex-A76 (dot product),
int8 also on qemu's `max` (i8mm, SVE); each is converted for that processor. A run costs (count at 3 runs - count at 1) / 2.
Only Sinter is counted: the rivals' packages for ARM need a Python for ARM. Needs qemu-aarch64, the counter
../shared/tools/insn_count.c, and the runner:

    cmake --preset aarch64 && cmake --build build/aarch64 --target sinter_run_model
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / 'bench'), str(ROOT / 'bench/race')]
import arm_instructions  # noqa: E402
import subjects  # noqa: E402
import results  # noqa: E402

# Column, processor of qemu, target, flags.
COLUMNS = (('float32', 'cortex-a76', 'aarch64+dotprod', False), ('int8', 'cortex-a76', 'aarch64+dotprod', True),
           ('int8, max', 'max', 'aarch64+dotprod+i8mm', True))


def convert(args, model, target, integers, folder):
    """The .sinter file; raises where the network cannot be converted."""
    out, flags = folder / 'model.sinter', list(model['flags'])
    if integers:
        np.savez(folder / 'samples.npz', **subjects.for_sinter(subjects.samples_of(model['inputs'])))
        flags += ['--quantize', 'int8', '--calibrate', folder / 'samples.npz']
    subprocess.run([args.sinter, 'convert', model['path'], '-o', out, '--target', target, '--quiet', *flags], check=True,
                   capture_output=True, text=True)
    return out


def instructions(args, model, cpu, file, folder):
    ports = json.loads(subprocess.run([args.sinter, 'inspect', file, '--json'], capture_output=True, text=True,
                                      check=True).stdout)['inputs']
    inputs = folder / 'in.bin'
    inputs.write_bytes(b''.join(np.ascontiguousarray(model['inputs'][p['name']]).astype(p['type']).tobytes() for p in ports))
    emulated = argparse.Namespace(cpu=cpu, runner=args.runner)
    counts = [arm_instructions.count(emulated, args.plugin, file, runs, inputs, folder / 'out.bin')[0] for runs in (1, 3)]
    return (counts[1] - counts[0]) / 2


def measure(args, model):
    row = dict(network=model['name'])
    for column, cpu, target, integers in COLUMNS:
        if integers and subjects.is_quantized(model['path']):
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                file = convert(args, model, target, integers, pathlib.Path(folder))
                row[column] = instructions(args, model, cpu, file, pathlib.Path(folder))
            except subprocess.CalledProcessError as e:
                row.setdefault('failed', {})[column] = (e.stderr or str(e)).strip().splitlines()[0][:160]
    return row


def table(rows):
    lines = ['| network | ' + ' | '.join(c[0] for c in COLUMNS) + ' | int8 / float32 |', '| --- |' + ' ---: |' * (len(COLUMNS) + 1)]
    for row in rows:
        cells = [f'{row[c[0]] / 1e6:.2f}' if c[0] in row else '-' for c in COLUMNS]
        ratio = f"{row['int8'] / row['float32']:.2f}" if 'int8' in row and 'float32' in row else '-'
        lines.append(f"| {row['network']} | " + ' | '.join([*cells, ratio]) + ' |')
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--sinter', default=ROOT / 'build/release/bin/sinter')
    parser.add_argument('--runner', default=ROOT / 'build/aarch64/bench/device/sinter_run_model')
    parser.add_argument('--only', action='append', help="a part of a network's name; may be repeated")
    parser.add_argument('--models', type=pathlib.Path, help='a folder of .onnx files, instead of SINTER_SHARED')
    parser.add_argument('--results', type=pathlib.Path)
    args = parser.parse_args()
    for program in (args.sinter, args.runner):
        if not pathlib.Path(program).exists():
            parser.error(f'{program} does not exist; build it, or give another with --sinter or --runner')
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        args.plugin = pathlib.Path(folder) / 'insn_count.so'
        source = arm_instructions.SHARED / 'tools/insn_count.c'
        subprocess.run(['gcc', '-O2', '-shared', '-fPIC', '-o', args.plugin, source], check=True)
        for model in subjects.networks(args.models):
            if 'absent' in model or (args.only and not any(word in model['name'] for word in args.only)):
                continue
            rows.append(measure(args, model))
            print(json.dumps(rows[-1]), flush=True)
    lines = table(rows)
    print('\n'.join(lines))
    if args.results:
        results.store(args.results, 'Millions of instructions of a run on ARM', {'networks': lines},
                      failed=[f"{row['network']}, {column}: {why}" for row in rows for column, why in row.get('failed', {}).items()])


if __name__ == '__main__':
    main()
