#!/usr/bin/env python3
"""The time of products of many rows with weights of few bits, as when a decoder reads a prompt; beside ONNX Runtime and ggml.

    bench/prefill.py --sinter build/release/bin/sinter [--rows 128,512] [--threads 1,2] [--only "4 bits, blocks of 32;..."]
                     [--cap avx2] [--ggml FOLDER] [--rounds 3] [--results FILE]
    bench/prefill.py --sinter build/release/bin/sinter --runner build/aarch64/bench/device/sinter_run_model [--cpus cortex-a53,max]
                     [--rows 32] [--only ...] [--results FILE]

A model is two MatMulNBits, 2048 to 5632 and back (KINDS describes their weights), with accuracy_level 4 for ONNX Runtime. Sinter
runs it with --activations int8, and in float; x is normally distributed. Each round runs every program once for a second; the
fastest run of all rounds counts. Before, the results are compared with the product in float64: the SQNR of each program is in the
table. ONNX Runtime has kernels for 2, 4 and 8 bits. With --cap avx2 both run as on a machine without AVX-512 (race/cap). With --ggml, products of the same sizes
also run on ggml, the library of tensors in llama.cpp, in its type with the same blocks (rivals/ggml_model.cc; built for this
machine, so not with --cap).

With --runner, Sinter's instructions on 64-bit ARM are counted under qemu instead (arm_instructions.py has the needs): cortex-a53
has neither dot products of bytes nor i8mm, cortex-a76 has the former, max has both. Instructions are not cycles.
"""
import argparse
import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / 'race'), str(HERE.parent / 'tests' / 'common')]
import arm_instructions  # noqa: E402
import ggml  # noqa: E402
import results  # noqa: E402
import sinter_cli as cli  # noqa: E402
from cap import patch  # noqa: E402

WIDTHS = (2048, 5632, 2048)
SECONDS = 1

# Name: bits, block, whether there are zero points. Without a block, the model is of QuantizeLinear, DequantizeLinear and MatMul: one scale for
# each column and one for each activation, which are known before. Its products are the fastest of 8 bits, and what the others can reach.
# A block of 0: as onnxruntime's quantize_dynamic writes it (DynamicQuantizeLinear, MatMulInteger); its "float" computes the products in float32.
KINDS = {
    '4 bits, blocks of 32': (4, 32, False),
    '4 bits, blocks of 32, zero points': (4, 32, True),
    '4 bits, blocks of 128': (4, 128, False),
    '8 bits, blocks of 32': (8, 32, False),
    '8 bits, blocks of 32, zero points': (8, 32, True),
    '2 bits, blocks of 32': (2, 32, False),
    'int8 by column': (8, None, False),
    'int8 by column, quantize_dynamic': (8, 0, False),
}
GGML_TYPES = {(4, 32, False): 'q4_0', (4, 32, True): 'q4_1', (8, 32, False): 'q8_0'}

# ONNX model, input, output, threads, seconds -> milliseconds of the fastest run.
RIVAL = '''
import sys, time
import numpy as np, onnxruntime as ort
model, x, y, threads, seconds = sys.argv[1], np.load(sys.argv[2]), sys.argv[3], int(sys.argv[4]), float(sys.argv[5])
options = ort.SessionOptions()
options.intra_op_num_threads = threads
session = ort.InferenceSession(model, options, providers=['CPUExecutionProvider'])
np.save(y, session.run(None, {'x': x})[0])
fastest, end = 1e9, time.perf_counter() + seconds
while time.perf_counter() < end:
    start = time.perf_counter()
    session.run(None, {'x': x})
    fastest = min(fastest, time.perf_counter() - start)
print(1e3 * fastest)
'''


def save_quantized(path, rows):
    """Two products of int8 by column; the function that computes them in float64."""
    random = np.random.default_rng(8)
    nodes, constants, matrices = [], [], []

    def constant(name, value):
        constants.append(onnx.numpy_helper.from_array(value, name))
        return name

    def rounded(value, largest):
        named = [constant(f'{value}.s', np.float32(largest / 127)), constant(f'{value}.z', np.uint8(128))]
        nodes.append(helper.make_node('QuantizeLinear', [value, *named], [f'{value}.q']))
        nodes.append(helper.make_node('DequantizeLinear', [f'{value}.q', *named], [f'{value}.r']))
        return f'{value}.r'
    value = rounded('x', 4.5)
    for i, (depth, columns) in enumerate(zip(WIDTHS, WIDTHS[1:])):
        integers = random.integers(-127, 128, (depth, columns)).astype(np.int8)
        scales = (random.uniform(0.5, 1.0, columns) / 127 / np.sqrt(depth) * 2).astype(np.float32)
        nodes.append(helper.make_node('DequantizeLinear', [constant(f'{i}.w', integers), constant(f'{i}.s', scales)], [f'{i}.d'], axis=1))
        nodes.append(helper.make_node('MatMul', [value, f'{i}.d'], [f'y{i}']))
        value = rounded(f'y{i}', 4.5)
        matrices.append(integers * scales)
    save_graph(path, nodes, constants, value, rows)
    return product_of(matrices)


def save_dynamic(path, rows):
    """Two products of int8 by column, whose x is quantized by the range that it has."""
    random = np.random.default_rng(8)
    nodes, constants, matrices, value = [], [], [], 'x'
    for i, (depth, columns) in enumerate(zip(WIDTHS, WIDTHS[1:])):
        integers = random.integers(-127, 128, (depth, columns)).astype(np.int8)
        scales = (random.uniform(0.5, 1.0, columns) / 127 / np.sqrt(depth) * 2).astype(np.float32)
        constants += [onnx.numpy_helper.from_array(v, f'{i}.{name}') for name, v in (('w', integers), ('s', scales), ('z', np.zeros(columns, np.int8)))]
        nodes += [helper.make_node('DynamicQuantizeLinear', [value], [f'{i}.x', f'{i}.xs', f'{i}.xz']),
                  helper.make_node('MatMulInteger', [f'{i}.x', f'{i}.w', f'{i}.xz', f'{i}.z'], [f'{i}.sum']),
                  helper.make_node('Cast', [f'{i}.sum'], [f'{i}.f'], to=TensorProto.FLOAT),
                  helper.make_node('Mul', [f'{i}.xs', f'{i}.s'], [f'{i}.m']),
                  helper.make_node('Mul', [f'{i}.f', f'{i}.m'], [f'y{i}'])]
        value = f'y{i}'
        matrices.append(integers * scales)
    save_graph(path, nodes, constants, value, rows)
    return product_of(matrices)


def save_graph(path, nodes, constants, result, rows):
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [rows, width]) for n, width in (('x', WIDTHS[0]), (result, WIDTHS[-1])))
    graph = helper.make_graph(nodes, 'prefill', [x], [y], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 21), helper.make_opsetid('com.microsoft', 1)], ir_version=10),
              path)


def product_of(matrices):
    def exact(x):
        for m in matrices:
            x = x.astype(np.float64) @ m.astype(np.float64)
        return x
    return exact


def save_model(path, bits, block, with_zeros, rows):
    """Two products; the function that computes them in float64."""
    if not block:
        return save_dynamic(path, rows) if block == 0 else save_quantized(path, rows)
    random = np.random.default_rng(bits * 1000 + block)
    nodes, constants, matrices, value = [], [], [], 'x'
    for i, (depth, columns) in enumerate(zip(WIDTHS, WIDTHS[1:])):
        blocks = depth // block
        integers = random.integers(0, 1 << bits, (columns, depth)).astype(np.uint8)
        zeros = random.integers((1 << bits) // 4, 3 * (1 << bits) // 4 + 1, (columns, blocks)).astype(np.uint8)
        scales = (random.uniform(0.5, 1.0, (columns, blocks)) / (1 << bits) / np.sqrt(depth) * 4).astype(np.float32)

        def packed(v, bits=bits):
            return sum(v.reshape(len(v), -1, 8 // bits)[..., j].astype(np.uint8) << (bits * j) for j in range(8 // bits))
        named = {'w': packed(integers).reshape(columns, blocks, -1), 's': scales.ravel()}
        if with_zeros:
            named['z'] = packed(zeros).ravel()
        else:
            zeros[:] = 1 << (bits - 1)
        constants += [onnx.numpy_helper.from_array(v, f'{i}.{name}') for name, v in named.items()]
        nodes.append(helper.make_node('MatMulNBits', [value, *(f'{i}.{name}' for name in named)], [f'y{i}'], domain='com.microsoft', K=depth,
                                      N=columns, bits=bits, block_size=block, accuracy_level=4))
        value = f'y{i}'
        matrices.append(((integers.astype(np.float32) - np.repeat(zeros, block, 1)) * np.repeat(scales, block, 1)).T)
    save_graph(path, nodes, constants, value, rows)
    return product_of(matrices)


def capped(cap, folder):
    """The variables for an ONNX Runtime that finds the processor of a `cap` machine."""
    import onnxruntime
    package, counts = pathlib.Path(onnxruntime.__file__).resolve().parent, {}
    shutil.copytree(package, folder / 'onnxruntime', copy_function=functools.partial(copied, counts=counts, root=package))
    return dict(patch.VARIABLES, LD_PRELOAD=str(patch.answerer(folder)), PYTHONPATH=str(folder), SINTER_CPU_CAP=cap)


def copied(source, to, counts, root):
    source, to = pathlib.Path(source), pathlib.Path(to)
    if '.so' not in source.name or patch.patch(source, to) is None:
        shutil.copy2(source, to)


class Race:
    def __init__(self, sinter, folder, variables):
        self.sinter, self.folder, self.variables = sinter, folder, dict(os.environ, **variables)

    def call(self, *command):
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=self.variables)
        if done.returncode:
            raise RuntimeError((done.stderr.strip() or done.stdout.strip()).splitlines()[-1][:200])
        return done.stdout

    def convert(self, name, *flags, target='native'):
        self.call(self.sinter, 'convert', self.folder / 'net.onnx', '-o', self.folder / name, '--target', target, '--quiet', *flags)

    def of_sinter(self, name, threads):
        out = self.call(self.sinter, 'bench', self.folder / name, '--inputs', self.folder / 'x.npy', '--threads', threads, '--seconds', SECONDS,
                        '--json', '--quiet')
        return json.loads(out)['min_ms']

    def of_rival(self, threads, seconds=SECONDS):
        return float(self.call(sys.executable, '-c', RIVAL, self.folder / 'net.onnx', self.folder / 'x.npy', self.folder / 'rival.npy', threads, seconds))

    def result_of(self, name):
        self.call(self.sinter, 'run', self.folder / name, '--inputs', self.folder / 'x.npy', '--outputs', self.folder / 'y.npy', '--quiet')
        return np.load(self.folder / 'y.npy')


def count_instructions(args, sinter, names):
    """Lines of a table: millions of instructions of a run, by processor, with int8 and float activations."""
    cpus = args.cpus.split(',')
    lines = ['| weights, 64-bit ARM | rows | ' + ' | '.join(f'{cpu}, {kind}' for cpu in cpus for kind in ('int8', 'float')) + ' |', '| --- | --- |' + ' --- |' * 2 * len(cpus)]
    print('\n'.join(lines), flush=True)
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        plugin = folder / 'insn_count.so'
        subprocess.run(['gcc', '-O2', '-shared', '-fPIC', '-o', plugin, arm_instructions.SHARED / 'tools/insn_count.c'], check=True)
        race = Race(sinter, folder, {})
        for name in names:
            for rows in map(int, args.rows.split(',')):
                save_model(folder / 'net.onnx', *KINDS[name], rows)
                (folder / 'x.bin').write_bytes(np.random.default_rng(1).standard_normal((rows, WIDTHS[0])).astype(np.float32).tobytes())
                counts = []
                for cpu in cpus:
                    for flags in (['--activations', 'int8'], []):
                        race.convert('arm.sinter', *flags, target='aarch64')
                        of = argparse.Namespace(cpu=cpu, runner=args.runner)
                        once, thrice = (arm_instructions.count(of, plugin, folder / 'arm.sinter', runs, folder / 'x.bin', folder / 'y.bin')[0]
                                        for runs in (1, 3))
                        counts.append(f'{(thrice - once) / 2e6:.0f}')
                lines.append('| ' + ' | '.join([name, str(rows), *counts]) + ' |')
                print(lines[-1], flush=True)
    return lines


def sqnr(found, exact):
    return 10 * np.log10(np.sum(exact ** 2) / np.sum((found - exact) ** 2))


def race_rivals(args, sinter, names):
    """Lines of a table: milliseconds of a run, and the SQNR of the result."""
    llama = ggml.build(args.ggml) if args.ggml else None
    lines = [f'| weights{", " + args.cap if args.cap else ""} | rows | threads | Sinter, int8, ms | ONNX Runtime, ms | ratio | '
             + ('ggml, ms | ratio | ' if llama else '') + 'Sinter, float, ms | SQNR, dB: int8 | ONNX Runtime |',
             '| --- | --- | --- | --- | --- | --- | --- | --- | --- |' + (' --- | --- |' if llama else '')]
    print('\n'.join(lines), flush=True)
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        race = Race(sinter, folder, capped(args.cap, folder) if args.cap else {})
        for name in names:
            for rows in map(int, args.rows.split(',')):
                exact = save_model(folder / 'net.onnx', *KINDS[name], rows)
                x = np.random.default_rng(1).standard_normal((rows, WIDTHS[0])).astype(np.float32)
                np.save(folder / 'x.npy', x)
                race.convert('int8.sinter', '--activations', 'int8')
                race.convert('float.sinter', *(['--disable-pass', 'dynamic-products'] if KINDS[name][1] == 0 else []))
                wanted = exact(x)
                quality = sqnr(race.result_of('int8.sinter'), wanted)
                try:
                    race.of_rival(1, 0)
                    rival_quality = f'{sqnr(np.load(folder / "rival.npy"), wanted):.1f}'
                except RuntimeError as error:
                    rival_quality = None
                    print(f'{name}: {error}', file=sys.stderr)
                for threads in map(int, args.threads.split(',')):
                    best = {}
                    for _ in range(args.rounds):
                        for key, run in (('int8', lambda: race.of_sinter('int8.sinter', threads)), ('float', lambda: race.of_sinter('float.sinter', threads)),
                                         ('rival', lambda: race.of_rival(threads))):
                            if key != 'rival' or rival_quality:
                                best[key] = min(best.get(key, 1e9), run())
                        if llama and KINDS[name] in GGML_TYPES:
                            times = llama.run('products', GGML_TYPES[KINDS[name]], rows, threads, SECONDS)['times']
                            best['ggml'] = min(best.get('ggml', 1e9), 1e3 * min(times))
                    rival = [f'{best["rival"]:.1f}', f'{best["rival"] / best["int8"]:.2f}'] if rival_quality else ['no kernel', '']
                    if llama:
                        rival += [f'{best["ggml"]:.1f}', f'{best["ggml"] / best["int8"]:.2f}'] if 'ggml' in best else ['', '']
                    lines.append('| ' + ' | '.join([name, str(rows), str(threads), f'{best["int8"]:.1f}', *rival, f'{best["float"]:.1f}', f'{quality:.1f}',
                                                    rival_quality or '']) + ' |')
                    print(lines[-1], flush=True)
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--sinter')
    parser.add_argument('--rows', default='128,512')
    parser.add_argument('--runner', help='sinter_run_model of build/aarch64')
    parser.add_argument('--cpus', default='cortex-a53,cortex-a76,max')
    parser.add_argument('--threads', default='1,2')
    parser.add_argument('--only', help='names, separated by semicolons: ' + '; '.join(KINDS))
    parser.add_argument('--cap', choices=['avx2'])
    parser.add_argument('--ggml', type=pathlib.Path, help=ggml.HELP)
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--results', type=pathlib.Path, help='bench/results/prefill.json, or prefill-avx2, prefill-dynamic, prefill-arm')
    args = parser.parse_args()
    sinter = cli.find_sinter(args.sinter)
    names = args.only.split(';') if args.only else list(KINDS)
    if args.ggml and (args.cap or args.runner):
        parser.error('--ggml runs on this machine as it is: leave out --cap and --runner')
    if unknown := [n for n in names if n not in KINDS]:
        parser.error(f'{unknown[0]} is not a kind of weights; the kinds are {"; ".join(KINDS)}')
    lines = count_instructions(args, sinter, names) if args.runner else race_rivals(args, sinter, names)
    if args.results:
        results.store(args.results, 'Products of many rows, as of a prompt', {'products': lines})


if __name__ == '__main__':
    main()
