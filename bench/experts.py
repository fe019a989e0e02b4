#!/usr/bin/env python3
"""The cost of a token in a mixture of experts, by the type of the weights.

    bench/experts.py --sinter build/release/bin/sinter [--only NAME,...] [--experts 8] [--threads 1,2] [--rounds 5] [--seconds 1]
                     [--reference]

One layer in the sizes of gpt-oss-20b but for the number of experts, which --experts sets: 2880 numbers, experts of 2880, of which
a token has 4, swiglu. The models are made here, with the same bytes every time, and converted; one exists at a time, in the
temporary folder. For each: processor seconds and peak resident memory of the conversion, megabytes of the file, those of the
weights and scales that a token reads, and the fastest run of all rounds of `sinter bench`, with what it reads in a second.
--reference: also on the reference kernels, in one round.
"""
import argparse
import json
import pathlib
import sys
import tempfile

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / 'bench'), str(ROOT / 'tests' / 'common')]
import nf4 as nf4_table  # noqa: E402
import sinter_cli as cli  # noqa: E402
from large_models import convert  # noqa: E402

HIDDEN, INNER, CHOSEN = 2880, 2880, 4
LAYER = dict(k=CHOSEN, activation_type='swiglu', swiglu_fusion=1, activation_alpha=1.702, activation_beta=1.0,
             swiglu_limit=7.0, normalize_routing_weights=1, domain='com.microsoft')


class Model:
    def __init__(self, experts):
        self.experts, self.shapes = experts, {1: (experts, 2 * INNER, HIDDEN), 2: (experts, HIDDEN, INNER)}
        self.random = np.random.Generator(np.random.PCG64(7))
        self.nodes, self.initializers = [], []

    def tensor(self, name, a):
        self.initializers.append(numpy_helper.from_array(a, name))
        return name

    def stored(self, name, kind, dims, raw):
        self.initializers.append(helper.make_tensor(name, kind, dims, raw.tobytes(), raw=True))
        return name

    def codes(self, *shape):
        return self.random.integers(0, 256, shape, np.uint8)

    def powers(self, *shape):
        return (2.0 ** self.random.integers(-9, -6, shape)).astype(ml_dtypes.float8_e8m0fnu)

    def floats(self, *shape):
        return self.random.uniform(0.005, 0.01, shape).astype(np.float32)

    def node(self, op, inputs, output, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [output], **attributes))
        return output

    def save(self, path):
        value = helper.make_tensor_value_info
        graph = helper.make_graph(self.nodes, 'experts', [value('x', TensorProto.FLOAT, [1, HIDDEN]),
                                                          value('r', TensorProto.FLOAT, [1, self.experts])],
                                  [value('y', TensorProto.FLOAT, [1, HIDDEN])], self.initializers)
        opsets = [helper.make_opsetid('', 25), helper.make_opsetid('com.microsoft', 1)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=11), path, save_as_external_data=True,
                  location=path.name + '.data')


def packed(m, quant_type, block, scales, **attributes):
    inputs = ['x', 'r', *[''] * 15]
    for i, (e, n, k) in m.shapes.items():
        shape = (e, n, k // 2) if quant_type == 'int' else (e, k, n // 2)
        inputs[3 * i - 1] = m.tensor(f'w{i}', m.codes(*shape))
        inputs[3 * i] = m.tensor(f's{i}', scales(e, n, k // block))
        if quant_type != 'int':
            inputs[14 + i] = m.tensor(f'g{i}', m.floats(e) + np.float32(1))
    m.node('QMoE', inputs if quant_type != 'int' else inputs[:7], 'y', quant_type=quant_type, block_size=block,
           **attributes, **LAYER)


def int4(m):
    packed(m, 'int', 32, m.floats, expert_weight_bits=4, weights_prepacked=0)


def fp4(m):
    packed(m, 'fp4', 32, m.powers)


def nvfp4(m):
    packed(m, 'nvfp4', 16, lambda *shape: m.floats(*shape).astype(ml_dtypes.float8_e4m3fn))


def fp8(m):
    inputs = ['x', 'r', *[''] * 5]
    for i, (e, n, k) in m.shapes.items():
        inputs[3 * i - 1] = m.stored(f'w{i}', TensorProto.FLOAT8E4M3FN, (e, n, k), m.codes(e, n, k) & 0xb7)
        inputs[3 * i] = m.tensor(f's{i}', m.floats(e, -(-n // 128), -(-k // 128)))
    m.node('QMoE', inputs, 'y', quant_type='fp8', block_size=128, expert_weight_bits=8, **LAYER)


def mixture(m, unpacked):
    m.node('MoE', ['x', 'r', unpacked(1, *m.shapes[1]), '', unpacked(2, *m.shapes[2])], 'y', **LAYER)


def mxfp4(m):
    def unpacked(i, e, n, k):
        w = m.stored(f'w{i}', TensorProto.FLOAT4E2M1, (e, n, k), m.codes(e, n, k // 2))
        return m.node('DequantizeLinear', [w, m.tensor(f's{i}', m.powers(e, n, k // 32))], f'd{i}', axis=2, block_size=32,
                      output_dtype=TensorProto.FLOAT)
    mixture(m, unpacked)


def nf4(m):
    m.tensor('table', nf4_table.TABLE)

    def unpacked(i, e, n, k):
        w = m.stored(f'w{i}', TensorProto.UINT4, (e, n, k // 64, 64), m.codes(e, n, k // 2))
        at = m.node('Cast', [w], f'i{i}', to=TensorProto.INT32)
        scaled = m.node('Mul', [m.node('Gather', ['table', at], f't{i}'), m.tensor(f's{i}', m.floats(e, n, k // 64, 1))], f'm{i}')
        return m.node('Reshape', [scaled, m.tensor(f'd{i}', np.array([e, n, k]))], f'u{i}')
    mixture(m, unpacked)


# Name: what makes the model, and bytes of a weight with its part of the scale.
KINDS = {'QMoE int': (int4, 1 / 2 + 4 / 32), 'QMoE fp4': (fp4, 1 / 2 + 1 / 32), 'QMoE nvfp4': (nvfp4, 1 / 2 + 1 / 16),
         'QMoE fp8': (fp8, 1 + 4 / 128), 'MoE, float4e2m1': (mxfp4, 1 / 2 + 1 / 32), 'MoE, table': (nf4, 1 / 2 + 4 / 64)}


def command(sinter, *arguments):
    answer = cli.call(sinter, *arguments, timeout=1200)
    if answer.code != 0:
        raise SystemExit(f'{" ".join(map(str, arguments))}: {answer.why()}')
    return answer.out


def fastest(sinter, file, rounds, *flags):
    return min(json.loads(command(sinter, 'bench', file, '--json', *flags))['min_ms'] for _ in range(rounds))


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--sinter')
    p.add_argument('--only', default=','.join(KINDS))
    p.add_argument('--experts', type=int, default=8)
    p.add_argument('--threads', default='1')
    p.add_argument('--rounds', type=int, default=5)
    p.add_argument('--seconds', default='1')
    p.add_argument('--reference', action='store_true')
    args = p.parse_args()
    sinter, threads = cli.find_sinter(args.sinter), args.threads.split(',')
    timed = [f'{t} thread{"s" * (t != "1")}, ms (GB/s)' for t in threads] + ['reference kernels, ms'] * args.reference
    print('| weights | conversion, CPU s | peak, MB | file, MB | read, MB | ' + ' | '.join(timed) + ' |\n' + '| --- ' * (5 + len(timed)) + '|')
    for name, (make, width) in KINDS.items():
        if not any(name.startswith(only) for only in args.only.split(',')):
            continue
        with tempfile.TemporaryDirectory(prefix='experts-') as folder:
            source, file = pathlib.Path(folder) / 'model.onnx', pathlib.Path(folder) / 'model.sinter'
            m = Model(args.experts)
            make(m)
            m.save(source)
            code, seconds, peak, outcome = convert(sinter, source, file, [])
            if code:
                raise SystemExit(f'{name}: exit code {code}: {outcome.strip()[-300:]}')
            read = sum(n * k for _, n, k in m.shapes.values()) * CHOSEN * width
            cells = [name, f'{seconds:.1f}', f'{peak / 1e6:,.0f}', f'{file.stat().st_size / 1e6:.0f}', f'{read / 1e6:.0f}']
            for t in threads:
                ms = fastest(sinter, file, args.rounds, '--threads', t, '--seconds', args.seconds)
                cells.append(f'{ms:.2f} ({read / ms / 1e6:.1f})')
            if args.reference:
                cells.append(f'{fastest(sinter, file, 1, "--backend", "reference", "--threads", threads[0]):.0f}')
        print('| ' + ' | '.join(cells) + ' |', flush=True)


if __name__ == '__main__':
    main()
