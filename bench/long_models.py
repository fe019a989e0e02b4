#!/usr/bin/env python3
"""Seconds of processor time and memory that `sinter convert` takes for models of many operations: a table.

    long_models.py --sinter PROGRAM [--shapes NAME...] COUNT...

Each shape is a way in which many operations are connected. Times that grow faster than COUNT show a step of the conversion that
compares all with all; tests do not time anything.
"""
import argparse
import os
import subprocess
import tempfile

import onnx
from onnx import TensorProto, helper


def chain(op):
    return lambda n: ([helper.make_node(op, [f'v{i}'], [f'v{i + 1}']) for i in range(n)], [f'v{n}'])


def residual(n):
    nodes = []
    for i in range(n // 2):
        nodes += [helper.make_node('Sigmoid', [f'v{i}'], [f's{i}']), helper.make_node('Add', [f'v{i}', f's{i}'], [f'v{i + 1}'])]
    return nodes, [f'v{n // 2}']


def fan_out(n):
    return [helper.make_node('Neg', ['v0'], [f'a{i}']) if i % 2 == 0 else helper.make_node('Sin', [f'a{i - 1}'], [f'a{i}'])
            for i in range(n)], [f'a{i}' for i in range(1, n, 2)]


def join(n):
    nodes = [helper.make_node('LeakyRelu', ['v0'], [f'a{i}'], alpha=(i + 1) / (n + 1)) for i in range(n)]
    return nodes + [helper.make_node('Concat', [f'a{i}' for i in range(n)], ['y'], axis=1)], ['y']


def tree(n):
    nodes, row = [], []
    for i in range(n // 2):
        nodes.append(helper.make_node('LeakyRelu', ['v0'], [f'a{i}'], alpha=(i + 1) / (n + 1)))
        row.append(f'a{i}')
    while len(row) > 1:
        pairs = [(row[i], row[i + 1]) for i in range(0, len(row) - 1, 2)]
        rest = row[len(row) // 2 * 2:]
        row = []
        for a, b in pairs:
            nodes.append(helper.make_node('Add', [a, b], [f't{len(nodes)}']))
            row.append(nodes[-1].output[0])
        row += rest
    return nodes, row


SHAPES = {'chain of Neg': chain('Neg'), 'chain of Sin': chain('Sin'), 'residual': residual, 'fan-out': fan_out, 'Concat': join,
          'tree of Add': tree}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--sinter', required=True)
    parser.add_argument('--shapes', nargs='+', choices=SHAPES, default=list(SHAPES))
    parser.add_argument('counts', type=int, nargs='+')
    args = parser.parse_args()
    print('| shape | operations | s | MB |\n| --- | --- | --- | --- |')
    for name in args.shapes:
        for count in args.counts:
            with tempfile.TemporaryDirectory() as work:
                nodes, outputs = SHAPES[name](count)
                info = lambda value: helper.make_tensor_value_info(value, TensorProto.FLOAT, None if value != 'v0' else [1, 8])
                graph = helper.make_graph(nodes, 'long', [info('v0')], [info(o) for o in outputs])
                path = os.path.join(work, 'long.onnx')
                onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=9), path)
                process = subprocess.Popen([args.sinter, 'convert', path, '-o', os.path.join(work, 'long.sinter'), '--quiet'])
                _, status, used = os.wait4(process.pid, 0)
                failed = '' if status == 0 else ' (failed)'
                print(f'| {name} | {count:,} | {used.ru_utime:.1f}{failed} | {used.ru_maxrss // 1024} |', flush=True)


if __name__ == '__main__':
    main()
