#!/usr/bin/env python3
"""The cost of a decoder of any size: of converting, of opening, in memory, and of each token; beside ONNX Runtime and ggml.

    bench/decoders.py --sinter build/release/bin/sinter [--only "NAME;..."] [--gigabytes 0.5,2.5,6] [--threads 1,2]
                      [--ggml FOLDER] [--folder FOLDER] [--results bench/results/decoders.json]
    bench/decoders.py --write FOLDER [--only "NAME;..."] [--gigabytes 0.5]

The models are made here, with the same bytes every time: blocks as LLaMA's with onnxruntime's operators for norms and attention
(GroupQueryAttention, caches of 256 positions), as many as the weights of the given size need. KINDS describes their types.
Columns of Sinter: processor seconds and peak resident memory of the conversion (VmHWM, pages of mapped files included), bytes of the
file, milliseconds to open it and to the first token after that (the file read from the disk into the page cache before, its digests
checked), resident memory then, and tokens per second, one by one, at positions from 0 on: the fastest token and the median. ONNX
Runtime does the same with the ONNX file, in one process each, one after the other. With --ggml, the same blocks also run on ggml, the library of
tensors in llama.cpp, in ggml's type with the same bits for each weight (rivals/ggml_model.cc): its "open" is the time in which it
puts weights that are in memory into its own form. FOLDER (the temporary folder by default) needs room for the
model and the result. With --write, the models are left in folders of their own, for another machine: their weights repeat every
16 KiB, so that an archive of them is small; `flags` has the flags of convert, and `read` the bytes of weights that a token reads.
Other programs on the machine change the times: the table states their share of it.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from large_models import Model, convert, peak_of  # noqa: E402
import ggml  # noqa: E402
import results  # noqa: E402
import sinter_cli as cli  # noqa: E402

WIDTH, HEADS, GROUPS, SIZE, HIDDEN, TOKENS, CONTEXT = 2048, 16, 4, 128, 5632, 32000, 256
BLOCK = 32  # weights to a scale
MATRICES = {'q': (WIDTH, HEADS * SIZE), 'k': (WIDTH, GROUPS * SIZE), 'v': (WIDTH, GROUPS * SIZE), 'o': (HEADS * SIZE, WIDTH),
            'gate': (WIDTH, HIDDEN), 'up': (WIDTH, HIDDEN), 'down': (HIDDEN, WIDTH)}
SECONDS = 5  # of decoding

FLOATS = {'float32': (TensorProto.FLOAT, 4, Model.float32), 'float16': (TensorProto.FLOAT16, 2, Model.float16),
          'bfloat16': (TensorProto.BFLOAT16, 2, Model.bfloat16)}


class Decoder(Model):
    def __init__(self, folder, float_type, few_bits, repeats=False):
        super().__init__(folder, FLOATS[float_type][0])
        self.width, self.draw, self.few_bits, self.repeats = *FLOATS[float_type][1:], few_bits, repeats

    def weight(self, name, dims, onnx_type, draw):
        period = 16384 // self.width
        if not self.repeats or int(np.prod(dims)) <= period:
            return super().weight(name, dims, onnx_type, draw)
        pattern = draw(period)
        return super().weight(name, dims, onnx_type, lambda n: np.resize(pattern, n))

    def matrix(self, x, name, rows, columns):
        """x times a weight [rows, columns]."""
        if not self.few_bits:
            return self.add('MatMul', [x, self.weight(name + '.w', [rows, columns], self.float_type, lambda n: self.draw(self, n))], name)
        packed = self.weight(name + '.w', [columns, rows // BLOCK, BLOCK // 2], TensorProto.UINT8, self.bytes)
        scales = self.weight(name + '.s', [columns * rows // BLOCK], self.float_type, lambda n: self.of_numbers(self.scales(n)))
        return self.add('MatMulNBits', [x, packed, scales], name, domain='com.microsoft', K=rows, N=columns, bits=4, block_size=BLOCK,
                        accuracy_level=4)

    def bytes_of(self, rows, columns):
        return rows * columns // 2 + rows * columns // BLOCK * self.width if self.few_bits else rows * columns * self.width

    def norm(self, x, name):
        ones = self.weight(name + '.w', [WIDTH], self.float_type, lambda n: self.of_numbers(np.ones(n)))
        return self.add('SimplifiedLayerNormalization', [x, ones], name, axis=-1, epsilon=1e-5)

    def of_numbers(self, values):
        values = np.asarray(values, np.float32)
        if self.float_type == TensorProto.BFLOAT16:
            return (values.view(np.uint32) >> 16).astype(np.uint16)
        return values.astype(np.float16) if self.float_type == TensorProto.FLOAT16 else values

    def constant(self, name, values):
        self.initializers.append(onnx.numpy_helper.from_array(values, name))
        return name

    def block(self, i, x, inputs, outputs):
        h = self.norm(x, f'{i}.norm')
        q, k, v = (self.matrix(h, f'{i}.{n}', *MATRICES[n]) for n in 'qkv')
        for part in ('key', 'value'):
            for at, text in ((inputs, 'past_key_values'), (outputs, 'present')):
                at.append(helper.make_tensor_value_info(f'{text}.{i}.{part}', self.float_type, [1, GROUPS, 'past' if at is inputs else 'total', SIZE]))
        self.nodes.append(helper.make_node(
            'GroupQueryAttention', [q, k, v, f'past_key_values.{i}.key', f'past_key_values.{i}.value', 'seqlens_k', 'total', 'cos', 'sin'],
            [f'{i}.attention', f'present.{i}.key', f'present.{i}.value'], name=f'{i}.attention', domain='com.microsoft', num_heads=HEADS,
            kv_num_heads=GROUPS, do_rotary=1))
        x = self.add('Add', [x, self.matrix(f'{i}.attention', f'{i}.o', *MATRICES['o'])], f'{i}.after')
        h = self.norm(x, f'{i}.feed')
        gate, up = (self.matrix(h, f'{i}.{n}', *MATRICES[n]) for n in ('gate', 'up'))
        silu = self.add('Mul', [gate, self.add('Sigmoid', [gate], f'{i}.sigmoid')], f'{i}.silu')
        down = self.matrix(self.add('Mul', [silu, up], f'{i}.hidden'), f'{i}.down', *MATRICES['down'])
        return self.add('Add', [x, down], f'{i}.out')

    def build(self, size):
        """Writes the model; the number of its blocks."""
        each = sum(self.bytes_of(*dims) for dims in MATRICES.values())
        blocks = max(1, round((size - TOKENS * WIDTH * self.width - self.bytes_of(WIDTH, TOKENS)) / each))
        inputs = [helper.make_tensor_value_info('input_ids', TensorProto.INT64, [1, 'sequence_length']),
                  helper.make_tensor_value_info('attention_mask', TensorProto.INT64, [1, 'total'])]
        angles = np.outer(np.arange(CONTEXT), 10000.0 ** (-np.arange(0, SIZE, 2) / SIZE))
        for name, table in (('cos', np.cos(angles)), ('sin', np.sin(angles))):
            self.weight(name, list(table.shape), self.float_type, lambda n, table=table: self.of_numbers(table.ravel()))
        one, axis = self.constant('one', np.array(1, np.int64)), self.constant('axis', np.array([1], np.int64))
        count = self.add('Sub', [self.add('ReduceSum', ['attention_mask', axis], 'tokens', keepdims=0), one], 'last')
        self.add('Cast', [count], 'seqlens_k', to=TensorProto.INT32)
        self.add('Cast', [self.add('Gather', [self.add('Shape', ['attention_mask'], 'mask_shape'), self.constant('second', np.array(1, np.int64))],
                                   'length')], 'total', to=TensorProto.INT32)
        table = self.weight('embedding', [TOKENS, WIDTH], self.float_type, lambda n: self.draw(self, n))
        outputs = [helper.make_tensor_value_info('logits', self.float_type, [1, 'sequence_length', TOKENS])]
        x = self.add('Gather', [table, 'input_ids'], 'embedded')
        for i in range(blocks):
            x = self.block(i, x, inputs, outputs)
        self.nodes.append(helper.make_node('Identity', [self.matrix(self.norm(x, 'norm'), 'head', WIDTH, TOKENS)], ['logits']))
        self.file.close()
        graph = helper.make_graph(self.nodes, 'decoder', inputs, outputs, self.initializers)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 21), helper.make_opsetid('com.microsoft', 1)],
                                    ir_version=10), self.path)
        return blocks


# Name: type of the floats, whether matrices are MatMulNBits of 4 bits, flags of convert, ggml's type with the same arithmetic.
# Scales of q4_0 are float16, and of MatMulNBits of the type of the floats.
KINDS = {
    'float16': ('float16', False, [], 'f16'),
    'bfloat16': ('bfloat16', False, [], 'bf16'),
    'int4': ('float32', True, [], None),
    'int4, int8 activations': ('float32', True, ['--activations', 'int8'], 'q4_0'),
    'int4, float16 scales, int8 activations': ('float16', True, ['--activations', 'int8'], 'q4_0'),
    'float32, int4w': ('float32', False, ['--quantize', 'int4w'], None),
}

CONVERT = ['--max-context', str(CONTEXT), '--shape', 'input_ids=1,1']


def write(folder, names, gigabytes):
    for name in names:
        float_type, few_bits, flags, _ = KINDS[name]
        place = pathlib.Path(folder) / f'{name.replace(", ", "-").replace(" ", "-")}-{gigabytes:g}GB'
        place.mkdir(parents=True)
        model = Decoder(place, float_type, few_bits, repeats=True)
        model.build(gigabytes * 1e9)
        (place / 'flags').write_text(' '.join(CONVERT + flags) + '\n')
        (place / 'read').write_text(f'{model.data.stat().st_size - TOKENS * WIDTH * model.width}\n')


# Runs an ONNX file one token after the other: path, threads, seconds -> JSON.
RIVAL = '''
import json, sys, time
import numpy as np, onnxruntime as ort
def resident():
    return sum(int(l.split()[1]) * 1024 for l in open('/proc/self/status') if l.startswith('VmRSS'))
path, threads, seconds, context = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
ort.set_default_logger_severity(3)
before = resident()
options = ort.SessionOptions()
options.intra_op_num_threads = threads
begin = time.perf_counter()
session = ort.InferenceSession(path, options, providers=['CPUExecutionProvider'])
ready = time.perf_counter()
kinds = {'tensor(float)': np.float32, 'tensor(float16)': np.float16}
io = session.io_binding()
for i in session.get_inputs():
    if i.name.startswith('past'):
        cache = ort.OrtValue.ortvalue_from_numpy(np.zeros((1, i.shape[1], context, i.shape[3]), kinds[i.type]))
        io.bind_ortvalue_input(i.name, cache)
        io.bind_ortvalue_output(i.name.replace('past_key_values', 'present'), cache)
io.bind_output('logits')
times = []
for n in range(context):
    start = time.perf_counter()
    mask = np.zeros((1, context), np.int64)
    mask[0, :n + 1] = 1
    io.bind_cpu_input('attention_mask', mask)
    io.bind_cpu_input('input_ids', np.array([[n]], np.int64))
    session.run_with_iobinding(io)
    times.append(time.perf_counter() - start)
    if n == 0:
        held = resident() - before
    if time.perf_counter() - ready > seconds:
        break
print(json.dumps(dict(load_ms=1e3 * (ready - begin), first_ms=1e3 * times[0], resident=held, times=times[1:] or times)))
'''


def of_rival(model, threads):
    done = subprocess.run([sys.executable, '-c', RIVAL, str(model), str(threads), str(SECONDS), str(CONTEXT)], capture_output=True,
                          text=True)
    if done.returncode:
        return dict(refused=(done.stderr.strip().splitlines() or ['it was killed'])[-1][:200])
    return of_times(json.loads(done.stdout))


def of_times(facts):
    return dict(load_ms=facts['load_ms'], first_ms=facts['first_ms'], resident=facts['resident'], median_ms=1e3 * statistics.median(facts['times']),
                min_ms=1e3 * min(facts['times']))


def of_sinter(sinter, out, threads):
    with tempfile.TemporaryFile('w+') as outcome:
        child = subprocess.Popen([sinter, 'bench', str(out), '--entry', '0', '--threads', str(threads), '--seconds', str(SECONDS), '--json',
                                  '--quiet'], stdout=outcome, stderr=subprocess.STDOUT)
        peak = 0
        while child.poll() is None:
            peak = max(peak, peak_of(child.pid))
            time.sleep(0.005)
        outcome.seek(0)
        text = outcome.read()
    if child.returncode:
        return dict(refused=text.strip()[-200:])
    facts = json.loads(text)
    return dict(resident=peak, **{key: facts[key] for key in ('load_ms', 'first_ms', 'median_ms', 'min_ms')})


def read_from_disk(path):
    """Puts the file into the page cache as on a machine that has started since it was written: read in order, in large pages. Those
    of a file that was just written can be small, and reading them again takes up to 15 % longer."""
    with open(path, 'rb', buffering=0) as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        while file.read(1 << 24):
            pass


def cells(facts, weights):
    if 'refused' in facts:
        return [facts['refused'].split(' : ')[-1].replace('|', '/')[:80], '', '', '', '']
    return [f'{facts["load_ms"]:,.0f}', f'{facts["first_ms"]:,.0f}', f'{facts["resident"] / 1e6:,.0f}',
            f'{1e3 / facts["min_ms"]:,.1f} ({1e3 / facts["median_ms"]:,.1f})', f'{weights / facts["min_ms"] / 1e6:,.1f}']


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--sinter')
    parser.add_argument('--only', help='names, separated by semicolons: ' + '; '.join(KINDS))
    parser.add_argument('--gigabytes', default='0.5,2.5,6')
    parser.add_argument('--threads', default='1,2')
    parser.add_argument('--ggml', type=pathlib.Path, help=ggml.HELP)
    parser.add_argument('--folder', help='where the models are put while they are needed')
    parser.add_argument('--write', help='a folder for the models, which are not run')
    parser.add_argument('--results', type=pathlib.Path)
    args = parser.parse_args()
    names = args.only.split(';') if args.only else list(KINDS)
    if unknown := [n for n in names if n not in KINDS]:
        parser.error(f'{unknown[0]} is not a model; the models are {"; ".join(KINDS)}')
    if args.write:
        for size in args.gigabytes.split(','):
            write(args.write, names, float(size))
        return 0
    sinter = cli.find_sinter(args.sinter)
    rival = ggml.build(args.ggml) if args.ggml else None
    failed = False
    lines = ['| model, GB | | threads | CPU s | peak, MB | file, MB | open, ms | first token, ms | resident, MB | tokens per second | GB/s |',
             '| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |']
    for size in map(float, args.gigabytes.split(',')):
        for name in names:
            float_type, few_bits, flags, ggml_type = KINDS[name]
            with tempfile.TemporaryDirectory(dir=args.folder) as place:
                folder = pathlib.Path(place)
                model = Decoder(folder, float_type, few_bits)
                blocks = model.build(size * 1e9)
                weights, out = (folder / 'model.data').stat().st_size, folder / 'model.sinter'
                code, seconds, peak, outcome = convert(sinter, folder / 'model.onnx', out,
                                                       [*CONVERT, '--target', 'native', *flags])
                if code:
                    failed = True
                    print(f'{name}, {size} GB: exit code {code}: {outcome.strip()[-300:]}', flush=True)
                    continue
                for file in (out, folder / 'model.data'):
                    read_from_disk(file)
                file_bytes = out.stat().st_size
                read = file_bytes - TOKENS * WIDTH * FLOATS[float_type][1]  # a token reads one row of the embedding
                for threads in map(int, args.threads.split(',')):
                    first = f'| {name}, {size:g} | Sinter | {threads} | {seconds:.0f} | {peak / 1e6:,.0f} | {file_bytes / 1e6:,.0f} |'
                    fresh = [first + ' ' + ' | '.join(cells(of_sinter(sinter, out, threads), read)) + ' |',
                             f'| | ONNX Runtime | {threads} | – | – | {weights / 1e6:,.0f} | '
                             + ' | '.join(cells(of_rival(folder / 'model.onnx', threads), read)) + ' |']
                    if rival and ggml_type:
                        facts = rival.run('decoder', ggml_type, blocks, threads, SECONDS)
                        fresh.append(f'| | ggml, {ggml_type} | {threads} | – | – | {facts["weight_bytes"] / 1e6:,.0f} | '
                                     + ' | '.join(cells(of_times(facts), facts['weight_bytes'])) + ' |')
                    lines += fresh
                    print('\n'.join(fresh), flush=True)
    if args.results:
        results.store(args.results, 'A decoder of any size', {'decoders': lines})
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
