#!/usr/bin/env python3
"""The planned memory of every real network, beside the memory that onnxruntime takes.

    bench/bench_memory.py --sinter build/release/bin/sinter [--filter GLOB] [--results bench/results/memory-networks.json]

Columns, in bytes, for this machine's target and for --target portable (only the reference kernels, whose results may
lie partly over an operand): "values": the bytes of all values and workspaces side by side; "bound": the largest sum
of bytes that live in one step, which no arrangement of these steps can go below; "planned"; "given order": the plan
for the steps in the order that they came in. "onnxruntime": peak resident memory of a process
that loads the network and runs it once, less that of one which only imports onnxruntime; it includes the weights.
MobileNet v1 and v2 (224 pixels, float, random weights) are made here. The networks of SINTER_SHARED are left out with a
message where it is absent.
"""
import argparse
import fnmatch
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
for folder in ('bench', 'tests/common', 'tests/models'):
    sys.path.insert(0, str(ROOT / folder))
import bench_calibration  # noqa: E402
import networks  # noqa: E402
import sinter_cli as cli  # noqa: E402
import results  # noqa: E402

# Twice the channels at each of these strides.
MOBILENET_V1 = [1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1]
ORT = '''
import re, sys
import numpy as np
import onnxruntime as ort
if len(sys.argv) > 1:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(sys.argv[1], options, providers=['CPUExecutionProvider'])
    session.run(None, dict(np.load(sys.argv[2])))
print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read()).group(1))
'''


class MobileNetV1(bench_calibration.Network):
    """MobileNet 1.0 with batch normalization folded away, up to its classifier."""

    def model(self):
        x, c = self.conv('x', 3, 32, 3, 2), 32
        for i, stride in enumerate(MOBILENET_V1):
            out = 64 if i == 0 else c * 2 if stride == 2 or i in (1, 3, 5) else c
            out = min(out, 1024)
            x = self.conv(self.conv(x, c, c, 3, stride, c), c, out)
            c = out
        self.nodes.append(helper.make_node('GlobalAveragePool', [x], ['y']))
        graph = helper.make_graph(self.nodes, 'mobilenet_v1',
                                  [helper.make_tensor_value_info('x', TensorProto.FLOAT, [1, 3, 224, 224])],
                                  [helper.make_tensor_value_info('y', TensorProto.FLOAT, [1, c, 1, 1])], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)


def subjects(folder):
    """(name, path, flags, inputs) of every network."""
    for name, network in (('MobileNet v1 224', MobileNetV1()), ('MobileNet v2 224', bench_calibration.Network())):
        path = folder / 'mobilenet.onnx'
        onnx.save(network.model(), path)
        yield name, path, [], {'x': np.zeros((1, 3, 224, 224), np.float32)}
    shared = cli.find_shared()
    if shared is None:
        print('the models are absent (SINTER_SHARED): only MobileNets')
        return
    for net in networks.read_table():
        if net.verdict.startswith('refuse'):
            continue
        path = os.path.join(shared, 'models', net.file)
        model = onnx.load(path)
        flags, fixed = list(net.flags), networks.constant_names(net)
        feed = (networks.golden_sets(net, model, os.path.dirname(path))[0][0] if net.inputs == 'golden'
                else networks.seeded_inputs(net, model))
        for i, name in enumerate(fixed):
            cli.save_npy(str(folder / f'c{i}.npy'), feed[name])
            flags += ['--const', f'{name}={folder}/c{i}.npy']
        yield net.file.removesuffix('.onnx').removesuffix('/model').removesuffix('/network'), path, flags, feed


def planned(sinter, path, flags, target, folder):
    out, report = folder / 'm.sinter', folder / 'report.json'
    done = subprocess.run([sinter, 'convert', path, '-o', out, '--quiet', '--report', report, *target, *flags],
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f'{path}: {done.stderr}')
    r = json.loads(report.read_text())
    return dict(values=sum(p['bytes'] for p in r['placements'] if p['alias_of'] < 0)
                + sum(s['workspace_bytes'] for s in r['plan']),
                bound=r['arena_lower_bound'], planned=r['arena_bytes'], given=r['given_order_arena_bytes'])


def peak(*arguments):
    done = subprocess.run([sys.executable, '-c', ORT, *map(str, arguments)], capture_output=True, text=True)
    return int(done.stdout.split()[-1]) * 1024 if done.returncode == 0 else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--sinter', required=True)
    parser.add_argument('--filter', default='*')
    parser.add_argument('--results', type=pathlib.Path)
    args = parser.parse_args()
    alone = peak()
    lines = ['| network | values | bound | planned | gap | given order | portable: bound | planned | onnxruntime |',
             '| --- | --- | --- | --- | --- | --- | --- | --- | --- |']
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for name, path, flags, feed in subjects(folder):
            if not fnmatch.fnmatchcase(name, args.filter):
                continue
            host, portable = (planned(args.sinter, path, flags, target, folder)
                              for target in ([], ['--target', 'portable']))
            cli.save_npz(str(folder / 'in.npz'), feed)
            theirs = peak(path, folder / 'in.npz') if alone else None
            theirs = None if theirs is None else max(0, theirs - alone)
            gap = host['planned'] / host['bound'] - 1
            lines.append(f"| {name} | {host['values']:,} | {host['bound']:,} | {host['planned']:,} | {gap:.1%} | "
                         f"{host['given']:,} | {portable['bound']:,} | {portable['planned']:,} | "
                         f"{'' if theirs is None else f'{theirs:,}'} |")
            print(lines[-1], flush=True)
    if args.results:
        results.store(args.results, 'Planned memory of every real network', {'bytes': lines})


if __name__ == '__main__':
    main()
