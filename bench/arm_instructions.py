#!/usr/bin/env python3
"""Instructions of one run on 64-bit ARM, in float32 and in float16, counted under qemu: instructions are not cycles.

    bench/arm_instructions.py [--sinter PROGRAM] [--runner PROGRAM] [--cpu cortex-a76] [MODEL.onnx]...

Each model's float32 tensors are declared float16, then it is converted for aarch64 with and without --prefer-float16.
A run costs (count at 3 runs - count at 1) / 2. The last column compares the outputs of the two, on random inputs.
Needs qemu-aarch64, the counter ../shared/tools/insn_count.c, and the runner:

    cmake --preset aarch64 && cmake --build build/aarch64 --target sinter_run_model
"""
import argparse
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARED = pathlib.Path(os.environ.get('SINTER_SHARED', ROOT.parent / 'shared'))
MODELS = ('mlperf-ic/ic-resnet8-fp32', 'mlperf-kws/kws-dscnn-fp32', 'ultraface-slim-simp/version-slim-320_simplified',
          'yunet-120x160/*', 'person-det-192/model')


def to_float16(model):
    """Declares every float32 tensor, input and output float16, but for sizes and scales of Resize."""
    kept = {name for n in model.graph.node if n.op_type in ('Resize', 'Upsample') for name in n.input[1:]}

    def narrow(t):
        if t.data_type == TensorProto.FLOAT:
            t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(t).astype(np.float16), t.name))
    for t in model.graph.initializer:
        if t.name not in kept:
            narrow(t)
    for n in model.graph.node:
        for a in n.attribute:
            if a.HasField('t') and n.output[0] not in kept:
                narrow(a.t)
            if n.op_type == 'Cast' and a.name == 'to' and a.i == TensorProto.FLOAT:
                a.i = TensorProto.FLOAT16
    for v in [*model.graph.input, *model.graph.output]:
        if v.type.tensor_type.elem_type == TensorProto.FLOAT:
            v.type.tensor_type.elem_type = TensorProto.FLOAT16
    del model.graph.value_info[:]
    return model


def count(args, plugin, model, runs, inputs, outputs):
    """(instructions, the runner's output)"""
    r = subprocess.run(['qemu-aarch64', '-cpu', args.cpu, '-L', '/usr/aarch64-linux-gnu', '-plugin', plugin, args.runner,
                        model, str(runs), inputs, outputs], capture_output=True, text=True, check=True)
    return int(re.search(r'instructions: (\d+)', r.stderr).group(1)), r.stdout


def measure(args, plugin, source, work):
    half = work / 'half.onnx'
    onnx.save(to_float16(onnx.load(source)), half)
    row, out = [source.parent.name], {}
    for name, flags in (('float32', []), ('float16', ['--prefer-float16'])):
        target = work / f'{name}.sinter'
        subprocess.run([args.sinter, 'convert', half, '-o', target, '--target', 'aarch64', '--quiet', *flags], check=True)
        ports = json.loads(subprocess.run([args.sinter, 'inspect', target, '--json'], capture_output=True, text=True,
                                          check=True).stdout)
        rng = np.random.default_rng(1)
        inputs = work / 'in.bin'
        inputs.write_bytes(b''.join(rng.random(p['shape']).astype(p['type']).tobytes() for p in ports['inputs']))
        once, result = count(args, plugin, target, 1, inputs, work / 'out.bin')
        thrice, _ = count(args, plugin, target, 3, inputs, work / 'out.bin')
        row.append((thrice - once) / 2)
        out[name] = np.frombuffer((work / 'out.bin').read_bytes(), np.float16).astype(np.float64)
        row.append(int(re.search(r'session (\d+)', result).group(1)))
        print(source.parent.name, name, ' '.join(result.split()), file=sys.stderr)
    noise = ((out['float32'] - out['float16'])**2).sum()
    row.append(10 * math.log10((out['float32']**2).sum() / noise) if noise else math.inf)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('models', nargs='*', type=pathlib.Path)
    parser.add_argument('--sinter', default=ROOT / 'build/dev/bin/sinter')
    parser.add_argument('--runner', default=ROOT / 'build/aarch64/bench/device/sinter_run_model')
    parser.add_argument('--cpu', default='cortex-a76')
    args = parser.parse_args()
    models = args.models or [p for m in MODELS for p in sorted((SHARED / 'models').glob(f'{m}.onnx'))]
    print('| model | float32, million instructions | float16 | ratio | session, kB, float32 / float16 | SQNR, dB |\n'
          '| --- | ---: | ---: | ---: | ---: | ---: |')
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        plugin = work / 'insn_count.so'
        subprocess.run(['gcc', '-O2', '-shared', '-fPIC', '-o', plugin, SHARED / 'tools/insn_count.c'], check=True)
        for source in models:
            name, wide, wide_bytes, half, half_bytes, sqnr = measure(args, plugin, source, work)
            print(f'| {name} | {wide / 1e6:.1f} | {half / 1e6:.1f} | {wide / half:.2f} | '
                  f'{wide_bytes / 1e3:.0f} / {half_bytes / 1e3:.0f} | {sqnr:.0f} |')


if __name__ == '__main__':
    main()
