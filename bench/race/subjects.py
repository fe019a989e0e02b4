"""The networks of the race: those of bench/model_list.py and made_networks.py, or the .onnx files of a folder."""
import pathlib
import sys
import zlib

import numpy as np
import onnx

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.append(str(ROOT / 'bench'))
import made_networks  # noqa: E402
import model_list  # noqa: E402

SAMPLES = 8


def of_folder(folder):
    """Every network gets N(0, 1), integers from 0 to 1; dimensions that the file leaves open are 1."""
    for path in sorted(pathlib.Path(folder).glob('**/*.onnx')):
        model = onnx.load(path, load_external_data=False)
        rng = np.random.default_rng(zlib.crc32(path.name.encode()))
        known = {i.name for i in model.graph.initializer}
        inputs, flags = {}, []
        for port in model.graph.input:
            if port.name in known:
                continue
            dims = port.type.tensor_type.shape.dim
            shape = [d.dim_value or 1 for d in dims]
            dtype = onnx.helper.tensor_dtype_to_np_dtype(port.type.tensor_type.elem_type)
            inputs[port.name] = (rng.standard_normal(shape) if dtype.kind == 'f' else rng.integers(0, 2, shape)).astype(dtype)
            if any(not d.dim_value for d in dims):
                flags += ['--shape', f'{port.name}=' + ','.join(map(str, shape))]
        yield dict(name=path.stem, path=path, flags=flags, inputs=inputs)


def networks(folder=None):
    if folder:
        yield from of_folder(folder)
        return
    yield from model_list.models()
    image = np.random.default_rng(1).standard_normal((1, 3, made_networks.PIXELS, made_networks.PIXELS)).astype(np.float32)
    for name, path in made_networks.make(ROOT / 'build' / 'race' / 'networks'):
        yield dict(name=name, path=path, flags=[], inputs=dict(x=image))


def is_quantized(path):
    """Has the file integers of its own? Then there is nothing to quantize."""
    model = onnx.load(path, load_external_data=False)
    return any('Quantize' in n.op_type or 'Integer' in n.op_type or n.op_type.startswith('QLinear') for n in model.graph.node)


def with_fixed_shapes(path, inputs, to):
    """Writes the network to the file `to` with the shapes of `inputs`; rivals differ in how they are told."""
    model = onnx.load(path)
    for port in model.graph.input:
        if port.name in inputs:
            dims = port.type.tensor_type.shape.dim
            for dim, size in zip(dims, inputs[port.name].shape):
                dim.Clear()
                dim.dim_value = size
    for port in model.graph.output:  # may name dimensions that have numbers now
        for dim in port.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.Clear()
    onnx.save(model, to)


def samples_of(inputs):
    """{input: N disturbed copies, one after another}: the samples that all calibrate with."""
    rng = np.random.RandomState(0)
    stacks = {}
    for name, x in inputs.items():
        copies = [x]
        for _ in range(SAMPLES - 1):
            if x.dtype.kind == 'f' and x.size:
                noise = rng.standard_normal(x.shape) * (x.std() or 1.0)
                copies.append((0.8 * x + 0.3 * noise).clip(x.min(), x.max()).astype(x.dtype))
            else:
                copies.append(x)
        stacks[name] = np.stack(copies)
    return stacks


def for_sinter(stacks):
    """The same samples as --calibrate takes them."""
    return {name: stack.reshape(-1, *stack.shape[2:]) if stack.ndim > 1 and stack.shape[1] == 1 else stack
            for name, stack in stacks.items()}
