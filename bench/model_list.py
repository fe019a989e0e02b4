"""The models that bench_models.py times: where they lie, how they convert, what goes in.

models() yields {'name', 'path', 'flags', 'inputs'}, or {'name', 'absent'} with the reason. Inputs are drawn from a
fixed seed: normal for floats (0..255 where the network takes raw pixels), small integers for ids.
"""
import os
import pathlib

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
PIXELS = {'mlperf-ic', 'mnist8-cntk', 'mnist14-conv', 'ort-opt-mnist', 'digits'}

# Models with open dimensions other than the batch, or with a batch that is none: the whole shape of an input.
SHAPES = {
    'bert-toy': dict(input_ids=[1, 10], token_type_ids=[1, 10], input_mask=[1, 10]),
    'cntk-bilstm': dict(Input3=[4, 1, 2]),
    'cntk-birnn': dict(Input8931=[4, 1, 2]),
    'gaze-shufflenet': dict(input=[2, 3, 32, 32]),
    'ocr-angle-cls': dict(x=[1, 3, 48, 192]),
    'qlstm-scan': dict(input=[3, 3]),
    'rnn-loop': dict(input=[5, 1, 10]),
    'silero-vad-micro': dict(input=[1, 4000]),
    'silero-vad-v3': dict(input=[1, 1536]),
    'style-candy': dict(inputImage=[1, 3, 720, 720]),
}
NOT_TIMED = {
    'nms-yolov8': 'its output shape depends on data',
    'tree-ensemble': 'outside the scope of the converter',
    'types-bf16-int32': 'a test of types, not of speed',
    'types-fp16': 'a test of types, not of speed',
    'dynquant-matmul': 'a test of types, not of speed',
}


def draw(rng, folder, name, shape, dtype):
    if name in ('config', 'score_threshold'):
        return np.full(shape, 0.5, dtype)
    if name in ('input_mask', 'attention_mask'):
        return np.ones(shape, dtype)
    if name in ('token_type_ids', 'segment_ids'):
        return np.zeros(shape, dtype)
    if np.dtype(dtype).kind in 'iu':
        return rng.integers(0, 60, shape).astype(dtype)
    if folder.startswith('magika'):
        return rng.integers(0, 256, shape).astype(dtype)
    if folder in PIXELS:
        return rng.integers(0, 17 if folder == 'digits' else 256, shape).astype(dtype)
    if np.dtype(dtype).kind == 'b':
        return rng.integers(0, 2, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def describe(folder, path):
    import onnx
    graph = onnx.load(path, load_external_data=False).graph
    constants = {t.name for t in graph.initializer}
    rng, flags, inputs = np.random.default_rng(0), [], {}
    for i in graph.input:
        if i.name in constants:
            continue
        tensor = i.type.tensor_type
        shape = SHAPES.get(folder, {}).get(i.name)
        if shape:
            flags += ['--shape', f"{i.name}={','.join(map(str, shape))}"]
        else:
            shape = [d.dim_value if d.dim_value > 0 else 1 for d in tensor.shape.dim]
        inputs[i.name] = draw(rng, folder, i.name, shape, onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    return dict(path=pathlib.Path(path), flags=flags, inputs=inputs)


def models():
    shared = pathlib.Path(os.environ.get('SINTER_SHARED', ROOT.parent / 'shared')) / 'models'
    found = [('digits', ROOT / 'examples' / 'digits' / 'digits.onnx', 'digits')]
    found.append(('one-relu', ROOT / 'bench' / 'relu.onnx', 'one-relu'))
    for path in sorted(shared.glob('*/*.onnx')):
        alone = len(list(path.parent.glob('*.onnx'))) == 1
        found.append((path.parent.name if alone else path.stem, path, path.parent.name))
    if len(found) == 2:
        yield dict(name='models of SINTER_SHARED', absent=f'{shared} is absent')
    for name, path, folder in found:
        if folder in NOT_TIMED:
            yield dict(name=name, absent=NOT_TIMED[folder])
            continue
        yield dict(name=name) | describe(folder, path)
