#!/usr/bin/env python3
"""The memory of a session beside TensorFlow Lite Micro's arena, for the models of SINTER_SHARED that exist in both forms.

    bench/bench_micro.py --sinter build/release/bin/sinter [--tflm PYTHON] [--results bench/results/tflm.json]

Ours: `sinter convert --target portable` (reference kernels, weights read in the file) and `sinter inspect --memory`,
which states to the byte the memory that Session::create takes. Where the .tflite file has int8 inputs and outputs, the ONNX
twin gets the same: the QuantizeLinear behind an input and the DequantizeLinear before an output are removed.

Theirs: the arena that the interpreter of the tflite-micro wheel reports after a run (its recording allocator), with
--tflm naming a Python that can import it (default: this one). Without one that column is empty.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / 'tests' / 'common'))
import sinter_cli  # noqa: E402
import results  # noqa: E402

# name, ONNX file, .tflite file, whether the latter has int8 inputs and outputs
TWINS = [
    ('mlperf-ic int8', 'mlperf-ic/ic-resnet8-qdq.onnx', 'mlperf-ic/pretrainedResnet_quant.tflite', True),
    ('mlperf-kws int8', 'mlperf-kws/kws-dscnn-qdq.onnx', 'mlperf-kws/kws_ref_model.tflite', True),
    ('mlperf-ad int8', 'mlperf-ad/ad-autoenc-qdq.onnx', 'mlperf-ad/ad01_int8.tflite', True),
    ('micro-speech int8', 'micro-speech/micro-speech-qdq.onnx', 'micro-speech/micro_speech_quantized.tflite', True),
    ('hello-sine int8', 'hello-sine/hello-sine-qdq.onnx', 'hello-sine/hello_world_int8.tflite', True),
    ('mlperf-ic float', 'mlperf-ic/ic-resnet8-fp32.onnx', 'mlperf-ic/pretrainedResnet.tflite', False),
    ('mlperf-ad float', 'mlperf-ad/ad-autoenc-fp32.onnx', 'mlperf-ad/ad01_fp32.tflite', False),
    ('hello-sine float', 'hello-sine/hello-sine-fp32.onnx', 'hello-sine/hello_world_float.tflite', False),
]
TFLM = '''
import sys
from tflite_micro.python.tflite_micro import runtime
import numpy as np
interpreter = runtime.Interpreter.from_bytes(open(sys.argv[1], 'rb').read(), arena_size=4 << 20)
details = interpreter.get_input_details(0)
interpreter.set_input(np.zeros(details['shape'], details['dtype']), 0)
interpreter.invoke()
interpreter.print_allocations()
'''


def without_border_quantization(source, target):
    """Inputs and outputs become the int8 values behind and before them."""
    import onnx
    model = onnx.load(source)
    graph = model.graph
    stale = set()

    def rename(old, new):
        for node in graph.node:
            node.input[:] = [new if x == old else x for x in node.input]
            node.output[:] = [new if x == old else x for x in node.output]

    for port in graph.input:
        value = port.name
        while True:  # through what only moves
            users = [n for n in graph.node if value in n.input]
            if len(users) != 1 or users[0].op_type not in ('Transpose', 'Reshape', 'QuantizeLinear'):
                raise SystemExit(f'{source}: input {port.name} is not quantized at once')
            if users[0].op_type == 'QuantizeLinear':
                break
            value = users[0].output[0]
            stale.add(value)
        quantized = users[0].output[0]
        graph.node.remove(users[0])
        for node in graph.node:
            node.input[:] = [value if x == quantized else x for x in node.input]
        port.type.tensor_type.elem_type = onnx.TensorProto.INT8
    for port in graph.output:
        last = next(n for n in graph.node if port.name in n.output)
        if last.op_type != 'DequantizeLinear':
            raise SystemExit(f'{source}: output {port.name} is not dequantized last')
        graph.node.remove(last)
        rename(last.input[0], port.name)
        port.type.tensor_type.elem_type = onnx.TensorProto.INT8
    for value in [v for v in graph.value_info if v.name in stale]:
        graph.value_info.remove(value)
    onnx.checker.check_model(model)
    onnx.save(model, target)


def ours(sinter, source, folder):
    out = folder / 'model.sinter'
    subprocess.run([sinter, 'convert', source, '-o', out, '--target', 'portable', '--quiet'], check=True)
    text = subprocess.run([sinter, 'inspect', out, '--memory', '--json'], check=True, capture_output=True, text=True)
    return json.loads(text.stdout)


def tflm_arena(python, path):
    if python is None:
        return None
    r = subprocess.run([python, '-c', TFLM, path], capture_output=True, text=True)
    found = re.search(r'Arena allocation total (\d+) bytes', r.stdout + r.stderr)
    return int(found.group(1)) if found else None


def importable(python):
    try:
        return subprocess.run([python, '-c', 'import tflite_micro'], capture_output=True).returncode == 0
    except OSError:
        return False


def number(n):
    return '' if n is None else f'{n:,}'


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--sinter', required=True, type=pathlib.Path)
    parser.add_argument('--tflm', default=sys.executable, help='a Python that can import tflite_micro')
    parser.add_argument('--results', type=pathlib.Path)
    args = parser.parse_args()
    shared = sinter_cli.find_shared()
    if not shared:
        print('the models are absent (SINTER_SHARED): nothing to compare')
        return 0
    python = args.tflm
    if not importable(python):
        print('tflite-micro cannot be imported: its column stays empty (pip install tflite-micro, --tflm PYTHON)')
        python = None
    rows, more = [], 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for name, onnx_file, tflite_file, int8 in TWINS:
            source = pathlib.Path(shared, 'models', onnx_file)
            if int8:
                bare = folder / 'bare.onnx'
                without_border_quantization(source, bare)
                source = bare
            memory = ours(args.sinter, source, folder)
            theirs = tflm_arena(python, pathlib.Path(shared, 'models', tflite_file))
            row = dict(model=name, tflm=theirs, arena=memory['arena_bytes'], control=memory['memory']['control_bytes'],
                       prepared=memory['prepared_bytes'], session=memory['session_bytes'])
            rows.append(row)
            more += theirs is not None and row['session'] >= theirs
    lines = ['| model | TFLM arena | session | arena | control | prepared |', '| --- | --- | --- | --- | --- | --- |']
    lines += [f"| {r['model']} | {number(r['tflm'])} | {number(r['session'])} | {number(r['arena'])} | "
              f"{number(r['control'])} | {number(r['prepared'])} |" for r in rows]
    print('\n'.join(lines))
    if args.results:
        results.store(args.results, 'Session of the portable profile beside the arena of TensorFlow Lite Micro', {'bytes': lines})
    if more:
        print(f'{more} of them need more than TensorFlow Lite Micro')
    return 1 if more else 0


if __name__ == '__main__':
    sys.exit(main())
