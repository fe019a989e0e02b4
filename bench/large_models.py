#!/usr/bin/env python3
"""The cost of converting a large model, and of starting and running the result.

    bench/large_models.py --sinter build/release/bin/sinter [--only NAME,...] [--gigabytes 1] [--folder FOLDER] [--json FILE]
                          [--start build/release/bench/device/sinter_start_cost] [--threads 1] [--rows 1]

The models are made here, with the same bytes every time: a chain of products, whose weights are in a file of external
data of the given size (KINDS describes each), of ROWS rows. Seconds of conversion are the user's and the system's
together, of one process; peak resident memory is VmHWM, pages of mapped files included. FOLDER (the temporary folder by
default) needs room for the model, the result, and as much again; everything in it is removed afterwards. One model exists
at a time.

With --start, the result is opened and run three times by that program, files in the page cache: seconds on the clock
until a session is created (load) and until the first result, the fastest of five runs, and the resident memory after them
(RssAnon and RssFile together). onnxruntime does the same with the ONNX file, in a process of its own, where it has the
kernels. The fastest process counts.
"""
import argparse
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / 'tests' / 'common'))
import nf4 as nf4_table  # noqa: E402
import sinter_cli as cli  # noqa: E402

DEPTH = 4096  # rows and columns of most weights
POLL_SECONDS = 0.005
CHUNK = 1 << 22  # random words made at a time


class Model:
    """A chain of nodes under construction; weights go to the data file as they are added."""

    rows = 1

    def __init__(self, folder, float_type):
        self.path, self.data = folder / 'model.onnx', folder / 'model.data'
        self.file = open(self.data, 'wb')
        self.random = np.random.Generator(np.random.PCG64(7))
        self.float_type = float_type
        self.nodes, self.initializers = [], []
        self.value = 'x'

    def weight(self, name, dims, onnx_type, draw):
        """An initializer in the data file. `draw(n)` gives n words of it."""
        words = int(np.prod(dims))
        if onnx_type in (TensorProto.INT4, TensorProto.UINT4, TensorProto.FLOAT4E2M1):
            words = (words + 1) // 2
        offset, length = self.file.tell(), 0
        for first in range(0, words, CHUNK):
            length += self.file.write(draw(min(CHUNK, words - first)).tobytes())
        tensor = onnx.TensorProto(name=name, data_type=onnx_type, dims=dims,
                                  data_location=onnx.TensorProto.EXTERNAL)
        for key, value in (('location', self.data.name), ('offset', offset), ('length', length)):
            tensor.external_data.add(key=key, value=str(value))
        self.initializers.append(tensor)
        return name

    def add(self, op, inputs, output, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [output], name=output, **attributes))
        return output

    def product(self, weight, i):
        self.value = self.add('MatMul', [self.value, weight], f'y{i}')

    # Small numbers: random signs, mantissas and low bits of the exponent.
    def bfloat16(self, n):
        return (self.random.integers(0, 1 << 16, n, np.uint16) & 0x80ff) | 0x3c00

    def float16(self, n):
        return (self.random.integers(0, 1 << 16, n, np.uint16) & 0x87ff) | 0x2000

    def float32(self, n):
        return (self.random.integers(0, 1 << 32, n, np.uint32) & 0x80ffffff) | 0x3c000000

    def float8(self, n):
        return self.random.integers(0, 256, n, np.uint8) & 0x8f

    def finite_float8(self, n):
        return self.random.integers(0, 256, n, np.uint8) & 0xf7

    def powers(self, n):
        return self.random.integers(116, 120, n, np.uint8)

    def scales(self, n):
        return self.random.uniform(0.001, 0.01, n).astype(np.float32)

    def words(self, n):
        return self.random.integers(0, 1 << 32, n, np.uint32)

    def bytes(self, n):
        return self.random.integers(0, 256, n, np.uint8)

    def dequantized(self, i, block, weights, scales):
        """A product whose weights [K, N] have a scale for `block` rows. `weights`, `scales`: type, what draws them."""
        names = [self.weight(f'w{i}', [DEPTH, DEPTH], weights[0], lambda n: weights[1](self, n)),
                 self.weight(f's{i}', [DEPTH // block, DEPTH], scales[0], lambda n: scales[1](self, n))]
        to = {'output_dtype': self.float_type} if scales[0] == TensorProto.FLOAT8E8M0 else {}
        self.product(self.add('DequantizeLinear', names, f'd{i}', axis=0, block_size=block, **to), i)

    def save(self, columns=DEPTH, opset=21):
        self.file.close()
        graph = helper.make_graph(
            self.nodes, 'large', [helper.make_tensor_value_info('x', self.float_type, [self.rows, DEPTH])],
            [helper.make_tensor_value_info(self.value, self.float_type, [self.rows, columns])], self.initializers)
        opsets = [helper.make_opsetid('', opset), helper.make_opsetid('com.microsoft', 1)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10 if opset < 23 else 11), self.path)


def plain(folder, size, float_type, width, draw):
    model = Model(folder, float_type)
    for i in range(max(1, round(size / (width * DEPTH * DEPTH)))):
        model.product(model.weight(f'w{i}', [DEPTH, DEPTH], float_type, lambda n: draw(model, n)), i)
    model.save()


def bfloat16(folder, size):
    """products with bfloat16 weights [K, N]"""
    plain(folder, size, TensorProto.BFLOAT16, 2, Model.bfloat16)


def float16(folder, size):
    """products with float16 weights [K, N]"""
    plain(folder, size, TensorProto.FLOAT16, 2, Model.float16)


def float32(folder, size):
    """products with float32 weights [K, N]"""
    plain(folder, size, TensorProto.FLOAT, 4, Model.float32)


def float32_with_samples(folder, size):
    """products with float32 weights [K, N], and eight samples for calibration"""
    float32(folder, size)
    x = np.random.Generator(np.random.PCG64(8)).standard_normal((8, Model.rows, DEPTH), np.float32)
    np.savez(folder / 'samples.npz', x=x)


def float8(folder, size):
    """products with float8e4m3fn weights [K, N], which a Cast widens"""
    model = Model(folder, TensorProto.FLOAT)
    for i in range(max(1, round(size / (DEPTH * DEPTH)))):
        weights = model.weight(f'w{i}', [DEPTH, DEPTH], TensorProto.FLOAT8E4M3FN, model.float8)
        model.product(model.add('Cast', [weights], f'c{i}', to=TensorProto.FLOAT), i)
    model.save()


def matmul_nbits(folder, size):
    """MatMulNBits of 4 bits, 32 weights to a scale, with zero points"""
    model = Model(folder, TensorProto.FLOAT)
    block = 32
    per_layer = DEPTH * DEPTH // 2 + DEPTH * DEPTH // block * 4 + DEPTH * DEPTH // block // 2
    for i in range(max(1, round(size / per_layer))):
        weights = model.weight(f'w{i}', [DEPTH, DEPTH // block, block // 2], TensorProto.UINT8, model.bytes)
        scales = model.weight(f's{i}', [DEPTH * DEPTH // block], TensorProto.FLOAT, model.scales)
        zeros = model.weight(f'z{i}', [DEPTH * DEPTH // block // 2], TensorProto.UINT8, model.bytes)
        model.value = model.add('MatMulNBits', [model.value, weights, scales, zeros], f'y{i}',
                                domain='com.microsoft', K=DEPTH, N=DEPTH, bits=4, block_size=block)
    model.save()


def bnb4_nf4(folder, size):
    """MatMulBnb4: indices into the table of NF4, 64 to a float32 scale"""
    model = Model(folder, TensorProto.FLOAT)
    block = 64
    for i in range(max(1, round(size / (DEPTH * DEPTH // 2 + DEPTH * DEPTH // block * 4)))):
        weights = model.weight(f'w{i}', [DEPTH * DEPTH // 2], TensorProto.UINT8, model.bytes)
        scales = model.weight(f's{i}', [DEPTH * DEPTH // block], TensorProto.FLOAT, model.scales)
        model.value = model.add('MatMulBnb4', [model.value, weights, scales], f'y{i}', domain='com.microsoft',
                                K=DEPTH, N=DEPTH, block_size=block, quant_type=1)
    model.save()


def scales_of_scales(model, i, codes, count):
    """[count, 1] float32 scales from bytes that index 256 levels, with a scale for 256 of them and an offset"""
    outer = model.weight(f't{i}', [count // 256, 1], TensorProto.FLOAT, model.scales)
    scales = model.add('Gather', ['levels', model.add('Cast', [codes], f'si{i}', to=TensorProto.INT32)], f'sg{i}')
    scales = model.add('Mul', [model.add('Reshape', [scales, 'inner'], f'sr{i}'), outer], f'sm{i}')
    scales = model.add('Add', [model.add('Reshape', [scales, 'last'], f'sf{i}'), 'offset'], f'sa{i}')
    return model.add('Reshape', [scales, 'column'], f'sc{i}')


def nf4(folder, size, stored=False, nested=False):
    """NF4 of bitsandbytes, 64 to a float32 scale, unpacked by the operations that torch's newer exporter writes"""
    model = Model(folder, TensorProto.FLOAT)
    block, count = 64, DEPTH * DEPTH
    for name, items in (('last', [-1]), ('first', [0]), ('second', [1]), ('two', [2]), ('end', [2**63 - 1]),
                        ('count', [count]), ('blocks', [-1, block]), ('dims', [DEPTH, DEPTH]), ('inner', [-1, 256]),
                        ('column', [-1, 1])):
        model.initializers.append(helper.make_tensor(name, TensorProto.INT64, [len(items)], items))
    for kind, items in ((TensorProto.UINT8, dict(four=4, ones=0xf0, mask=15, nought=0)), (TensorProto.INT32, dict(zero=0)),
                        (TensorProto.INT64, dict(begin=0, limit=count, step=1)), (TensorProto.FLOAT, dict(offset=1.5))):
        model.initializers += [helper.make_tensor(name, kind, [], [item]) for name, item in items.items()]
    model.initializers += [helper.make_tensor('table', TensorProto.FLOAT, [16], nf4_table.TABLE),
                           helper.make_tensor('levels', TensorProto.FLOAT, [256], np.linspace(-1, 1, 256))]
    if stored:
        model.initializers += [numpy_helper.from_array(np.zeros(count, np.int32), 'empty'),
                               numpy_helper.from_array(np.arange(count), 'places')]
    else:
        model.add('Expand', ['zero', 'count'], 'empty')
        model.add('Range', ['begin', 'limit', 'step'], 'places')

    def written(into, first, half, name):
        at = model.add('Slice', ['places', first, 'end', 'first', 'two'], f'{name}s')
        updates = model.add('Cast', [half], f'{name}c', to=TensorProto.INT32)
        return model.add('ScatterND', [into, model.add('Unsqueeze', [at, 'last'], f'{name}u'), updates], name)

    for i in range(max(1, round(size / (count // 2 + count // block * (1 if nested else 4))))):
        packed = model.weight(f'w{i}', [count // 2], TensorProto.UINT8, model.bytes)
        half = model.add('BitShift', [packed, 'four'], f'h{i}', direction='RIGHT')
        if not stored:  # an arithmetic shift, of which the sign is never set
            negative = model.add('Cast', [model.add('BitwiseOr', [half, 'ones'], f'o{i}')], f'n{i}', to=TensorProto.INT8)
            half = model.add('Where', [model.add('Less', [packed, 'nought'], f'b{i}'), negative,
                                       model.add('Cast', [half], f'p{i}', to=TensorProto.INT8)], f'a{i}')
        q = written('empty', 'second', model.add('BitwiseAnd', [packed, 'mask'], f'l{i}'), f'odd{i}')
        q = written(q, 'first', half, f'even{i}')
        numbers = model.add('GatherND', ['table', model.add('Unsqueeze', [q, 'last'], f'u{i}')], f'g{i}')
        if nested:
            codes = model.weight(f's{i}', [count // block], TensorProto.UINT8, model.bytes)
            scales = scales_of_scales(model, i, codes, count // block)
        else:
            scales = model.weight(f's{i}', [count // block, 1], TensorProto.FLOAT, model.scales)
        products = model.add('Mul', [model.add('Reshape', [numbers, 'blocks'], f'v{i}'), scales], f'x{i}')
        model.value = model.add('Gemm', [model.value, model.add('Reshape', [products, 'dims'], f'd{i}')], f'y{i}', transB=1)
    model.save()


def nf4_nested(folder, size):
    """the same with scales in bytes, 256 to a float32 scale and an offset (double quantization)"""
    nf4(folder, size, nested=True)


def nf4_script(folder, size):
    """the same as nf4 from torch's older exporter, which writes the empty tensor and the places into the file"""
    nf4(folder, size, stored=True)


def blocks(folder, size, width, weights, scales, opset=21):
    """Products with a scale for 32 rows of weights that take `width` bytes."""
    model = Model(folder, TensorProto.FLOAT)
    block = 32
    scale_width = 4 if scales[0] == TensorProto.FLOAT else 1
    per_layer = DEPTH * DEPTH * width + DEPTH * DEPTH // block * scale_width
    for i in range(max(1, round(size / per_layer))):
        model.dequantized(i, block, weights, scales)
    model.save(opset=opset)


def int4_dequantize(folder, size):
    """DequantizeLinear of int4 [K, N], 32 rows to a scale, before a product"""
    blocks(folder, size, 0.5, (TensorProto.INT4, Model.bytes), (TensorProto.FLOAT, Model.scales))


def float8_blocks(folder, size):
    """DequantizeLinear of float8e4m3fn [K, N], 32 rows to a float32 scale, before a product"""
    blocks(folder, size, 1, (TensorProto.FLOAT8E4M3FN, Model.finite_float8), (TensorProto.FLOAT, Model.scales))


def mxfp8(folder, size):
    """MXFP8: DequantizeLinear of float8e4m3fn [K, N], 32 rows to a power of two in float8e8m0, before a product"""
    blocks(folder, size, 1, (TensorProto.FLOAT8E4M3FN, Model.finite_float8), (TensorProto.FLOAT8E8M0, Model.powers), 24)


def mxfp4(folder, size):
    """MXFP4: DequantizeLinear of float4e2m1 [K, N], 32 rows to a power of two in float8e8m0, before a product"""
    blocks(folder, size, 0.5, (TensorProto.FLOAT4E2M1, Model.bytes), (TensorProto.FLOAT8E8M0, Model.powers), 24)


def gptq(folder, size):
    """GPTQ's words of 4 bits with g_idx, 128 rows to a scale, unpacked by the operations that torch's exporter writes"""
    model = Model(folder, TensorProto.FLOAT)
    group, each = 128, 8
    groups = DEPTH // group
    given = {'shifts': helper.make_tensor('', TensorProto.INT32, [each], range(0, 32, 4)),
             'words': helper.make_tensor('', TensorProto.UINT32, [], [32]),
             'ones': helper.make_tensor('', TensorProto.UINT32, [], [0xffffffff]),
             'nought': helper.make_tensor('', TensorProto.INT32, [], [0]),
             'mask': helper.make_tensor('', TensorProto.INT32, [], [15]),
             'one': helper.make_tensor('', TensorProto.INT32, [], [1]),
             'axis1': helper.make_tensor('', TensorProto.INT64, [1], [1]),
             'axis2': helper.make_tensor('', TensorProto.INT64, [1], [2]),
             'last': helper.make_tensor('', TensorProto.INT64, [1], [-1]),
             'turned': helper.make_tensor('', TensorProto.INT64, [3], [1, each, 1]),
             'q_dims': helper.make_tensor('', TensorProto.INT64, [2], [DEPTH, DEPTH]),
             'z_dims': helper.make_tensor('', TensorProto.INT64, [2], [groups, DEPTH]),
             'g_idx': helper.make_tensor('', TensorProto.INT32, [DEPTH], [k // group for k in range(DEPTH)])}
    for name, tensor in given.items():
        tensor.name = name
        model.initializers.append(tensor)

    def unpacked(words, axis, shifts, dims, name):
        # An arithmetic shift, which ONNX does not have: a logical one, and ones on the left of negative words.
        wide = model.add('Unsqueeze', [words, axis], f'{name}u')
        by = model.add('Cast', [shifts], f'{name}b', to=TensorProto.UINT32)
        shifted = model.add('BitShift', [model.add('Cast', [wide], f'{name}c', to=TensorProto.UINT32), by], f'{name}s',
                            direction='RIGHT')
        left = model.add('BitwiseNot', [model.add('BitShift', ['ones', by], f'{name}o', direction='RIGHT')], f'{name}l')
        filled = model.add('BitwiseOr', [shifted, left], f'{name}f')
        value = model.add('Where', [model.add('Less', [wide, 'nought'], f'{name}n'),
                                    model.add('Cast', [filled], f'{name}i', to=TensorProto.INT32),
                                    model.add('Cast', [shifted], f'{name}p', to=TensorProto.INT32)], f'{name}w')
        return model.add('Reshape', [model.add('BitwiseAnd', [value, 'mask'], f'{name}m'), dims], f'{name}r', allowzero=1)

    def of_groups(table, name):
        index = model.add('Unsqueeze', [model.add('Cast', ['g_idx'], f'{name}g', to=TensorProto.INT64), 'last'], f'{name}x')
        rows = model.add('GatherND', [model.add('Transpose', [table], f'{name}t', perm=[0, 1]), index], f'{name}y')
        return model.add('Transpose', [rows], f'{name}z', perm=[0, 1])

    shifts = model.add('Reshape', ['shifts', 'turned'], 'shifts_of_rows', allowzero=1)
    per_layer = DEPTH * DEPTH // 2 + groups * DEPTH // 2 + groups * DEPTH * 2
    for i in range(max(1, round(size / per_layer))):
        words = model.weight(f'w{i}', [DEPTH // each, DEPTH], TensorProto.INT32, model.words)
        zeros = model.weight(f'z{i}', [groups, DEPTH // each], TensorProto.INT32, model.words)
        scales = model.weight(f's{i}', [groups, DEPTH], TensorProto.FLOAT16, model.float16)
        z = model.add('Add', [unpacked(zeros, 'axis2', 'shifts', 'z_dims', f'z{i}'), 'one'], f'za{i}')
        q = unpacked(words, 'axis1', shifts, 'q_dims', f'q{i}')
        difference = model.add('Cast', [model.add('Sub', [q, of_groups(z, f'zg{i}')], f'd{i}')], f'h{i}',
                               to=TensorProto.FLOAT16)
        weight = model.add('Mul', [of_groups(scales, f'sg{i}'), difference], f'v{i}')
        model.product(model.add('Cast', [weight], f'e{i}', to=TensorProto.FLOAT), i)
    model.save()


def transposed(folder, size):
    """float32 weights that a Transpose turns before the product"""
    model = Model(folder, TensorProto.FLOAT)
    for i in range(max(1, round(size / (4 * DEPTH * DEPTH)))):
        weights = model.weight(f'w{i}', [DEPTH, DEPTH], TensorProto.FLOAT, model.float32)
        model.product(model.add('Transpose', [weights], f't{i}', perm=[1, 0]), i)
    model.save()


def cast(folder, size):
    """float32 weights that a Cast rounds to bfloat16, and another widens, before the product"""
    model = Model(folder, TensorProto.FLOAT)
    for i in range(max(1, round(size / (4 * DEPTH * DEPTH)))):
        weights = model.weight(f'w{i}', [DEPTH, DEPTH], TensorProto.FLOAT, model.float32)
        narrow = model.add('Cast', [weights], f'n{i}', to=TensorProto.BFLOAT16)
        model.product(model.add('Cast', [narrow], f'c{i}', to=TensorProto.FLOAT), i)
    model.save()


def sliced(folder, size):
    """one float32 weight, each slice of which belongs to a product"""
    model = Model(folder, TensorProto.FLOAT)
    count = max(2, round(size / (4 * DEPTH * DEPTH)))
    weights = model.weight('w', [count * DEPTH, DEPTH], TensorProto.FLOAT, model.float32)
    model.initializers += [helper.make_tensor(f'at{i}', TensorProto.INT64, [1], [i * DEPTH]) for i in range(count + 1)]
    for i in range(count):
        model.product(model.add('Slice', [weights, f'at{i}', f'at{i + 1}'], f'p{i}'), i)
    model.save()


def tied(folder, size):
    """one bfloat16 weight, of which a token's row is looked up and whose rows are the columns of the last product"""
    model = Model(folder, TensorProto.BFLOAT16)
    rows = max(8, round(size / (2 * DEPTH)))
    table = model.weight('w', [rows, DEPTH], TensorProto.BFLOAT16, model.bfloat16)
    token = model.add('ArgMax', [model.add('Cast', ['x'], 'wide', to=TensorProto.FLOAT)], 'token', axis=1, keepdims=0)
    model.value = model.add('Gather', [table, token], 'row')
    model.product(model.add('Transpose', [table], 't', perm=[1, 0]), 0)
    model.save(rows)


# Name, what makes the model, flags of convert; FOLDER in these is where the model is.
KINDS = {
    'bfloat16': (bfloat16, []),
    'float16': (float16, []),
    'float8': (float8, []),
    'float32': (float32, []),
    'transpose': (transposed, []),
    'cast': (cast, []),
    'slice': (sliced, []),
    'tied': (tied, []),
    'tied-int4w': (tied, ['--quantize', 'int4w']),
    'int4-dequantize': (int4_dequantize, []),
    'float8-blocks': (float8_blocks, []),
    'mxfp8': (mxfp8, []),
    'mxfp4': (mxfp4, []),
    'matmul-nbits': (matmul_nbits, []),
    'bnb4-nf4': (bnb4_nf4, []),
    'gptq': (gptq, []),
    'nf4': (nf4, []),
    'nf4-nested': (nf4_nested, []),
    'nf4-script': (nf4_script, []),
    'float32-int4w': (float32, ['--quantize', 'int4w']),
    'float32-int8w': (float32, ['--quantize', 'int8w']),
    'float32-int8': (float32_with_samples, ['--quantize', 'int8', '--calibrate', 'FOLDER/samples.npz']),
}


def peak_of(pid):
    try:
        with open(f'/proc/{pid}/status') as status:
            return next((int(line.split()[1]) * 1024 for line in status if line.startswith('VmHWM')), 0)
    except (OSError, ProcessLookupError):
        return 0


def convert(sinter, model, out, flags):
    """(exit code, processor seconds, peak resident bytes, its output)"""
    with tempfile.TemporaryFile('w+') as outcome:
        child = subprocess.Popen([sinter, 'convert', str(model), '-o', str(out), '--json', '--quiet', *flags],
                                 stdout=outcome, stderr=subprocess.STDOUT, text=True)
        peak = 0
        while True:
            peak = max(peak, peak_of(child.pid))
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                break
            time.sleep(POLL_SECONDS)
        child.returncode = os.waitstatus_to_exitcode(status)
        outcome.seek(0)
        return child.returncode, usage.ru_utime + usage.ru_stime, peak, outcome.read()


# Prints what sinter_start_cost prints. Inputs are zeros.
ONNXRUNTIME = """
import json, sys, time
import numpy as np
import onnxruntime
path, threads, runs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
start, processor = time.perf_counter(), time.process_time()
options = onnxruntime.SessionOptions()
options.intra_op_num_threads, options.log_severity_level = threads, 3
session = onnxruntime.InferenceSession(path, options, providers=['CPUExecutionProvider'])
loaded = time.perf_counter() - start
types = {'tensor(float)': np.float32, 'tensor(float16)': np.float16}
feeds = {i.name: np.zeros(i.shape, types[i.type]) for i in session.get_inputs()}
session.run(None, feeds)
first, processor = time.perf_counter() - start, time.process_time() - processor
best = first - loaded
for _ in range(1, runs):
    begin = time.perf_counter()
    session.run(None, feeds)
    best = min(best, time.perf_counter() - begin)
resident = dict(line.split(':', 1) for line in open('/proc/self/status') if line.startswith('Rss'))
resident = {key: int(value.split()[0]) * 1024 for key, value in resident.items()}
print(json.dumps(dict(load_seconds=loaded, first_result_seconds=first, first_result_processor_seconds=processor,
                      run_seconds=best,
                      resident_anonymous=resident['RssAnon'], resident_file=resident['RssFile'])))
"""


def started(command):
    """The fastest start of three processes; None: it failed."""
    best = None
    for _ in range(3):
        child = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        if child.returncode:
            return None
        found = json.loads(child.stdout)
        if best is None or found['first_result_seconds'] < best['first_result_seconds']:
            best = found
    return best


def start_line(name, found):
    if found is None:
        return f'  {name:<14} does not run it'
    resident = found['resident_anonymous'] + found['resident_file']
    return (f'  {name:<14} load {found["load_seconds"]:6.2f}s  first result {found["first_result_seconds"]:6.2f}s '
            f'({found["first_result_processor_seconds"]:.2f}s of the processor)  '
            f'run {found["run_seconds"] * 1e3:8.1f}ms  resident {resident / 1e6:6.0f}MB '
            f'({found["resident_anonymous"] / 1e6:.0f} anonymous)')


def digest_of(path):
    with open(path, 'rb') as file:
        return hashlib.file_digest(file, 'sha256').hexdigest()[:16]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--sinter')
    parser.add_argument('--only', help='names, separated by commas: ' + ', '.join(KINDS))
    parser.add_argument('--gigabytes', type=float, default=1)
    parser.add_argument('--folder', help='where the models are put while they are needed')
    parser.add_argument('--json')
    parser.add_argument('--start', help='the program sinter_start_cost')
    parser.add_argument('--threads', type=int, default=1, help='of what --start measures')
    parser.add_argument('--rows', type=int, default=1, help='of the products')
    args = parser.parse_args()
    sinter = cli.find_sinter(args.sinter)
    Model.rows = args.rows
    names = args.only.split(',') if args.only else list(KINDS)
    if unknown := [n for n in names if n not in KINDS]:
        parser.error(f'{unknown[0]} is not a model; the models are {", ".join(KINDS)}')
    rows, failed = [], False
    print(f'{"model":<16} {"weights":>9} {"CPU":>8} {"per GB":>8} {"peak":>9} {"file":>9}  digest of the file')
    for name in names:
        make, flags = KINDS[name]
        with tempfile.TemporaryDirectory(dir=args.folder) as place:
            folder = pathlib.Path(place)
            make(folder, args.gigabytes * 1e9)
            weights, out = (folder / 'model.data').stat().st_size, folder / 'model.sinter'
            flags = [flag.replace('FOLDER', place) for flag in flags]
            code, seconds, peak, outcome = convert(sinter, folder / 'model.onnx', out, flags)
            if code:
                failed = True
                print(f'{name:<16} {weights / 1e6:7.0f}MB  exit code {code}: {outcome.strip()[:300]}', flush=True)
                rows.append(dict(model=name, weight_bytes=weights, exit_code=code, outcome=outcome))
                continue
            row = dict(model=name, weight_bytes=weights, seconds=seconds, peak_bytes=peak,
                       file_bytes=out.stat().st_size, digest=digest_of(out))
            if args.start:
                runs = [args.threads, 5]
                row['start'] = started([args.start, out, *runs])
                row['start_onnxruntime'] = started([sys.executable, '-c', ONNXRUNTIME, folder / 'model.onnx', *runs])
        rows.append(row)
        print(f'{name:<16} {weights / 1e6:7.0f}MB {seconds:7.1f}s {seconds / (weights / 1e9):7.1f}s {peak / 1e6:7.0f}MB '
              f'{row["file_bytes"] / 1e6:7.0f}MB  {row["digest"]}', flush=True)
        if args.start:
            print(start_line('sinter', row['start']))
            print(start_line('onnxruntime', row['start_onnxruntime']), flush=True)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(rows, indent=1) + '\n')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
