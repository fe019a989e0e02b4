"""LiteRT, whose interpreter takes XNNPACK by itself. Its files come from onnx2tf (builder of flat buffers, float32), which
turns channels to the last place; int8 by AI Edge Quantizer, static, weights and activations of 8 bits. Where XNNPACK
refuses a file, LiteRT's own kernels compute it."""
import subprocess
import tempfile

import numpy as np
import onnx
from ai_edge_litert.interpreter import Interpreter, OpResolverType

PACKAGE = 'ai-edge-litert'
LIBRARIES = ['ai_edge_litert/libpywrap_litert_common.so', 'ai_edge_litert/_pywrap_litert_interpreter_wrapper.so']
FLAVOURS = {'float': ['float'], 'int8': ['static']}


def convert(flavour, source, samples, folder):
    import environment
    program = environment.ONNX2TF / 'bin' / 'onnx2tf'
    if not program.exists():
        raise RuntimeError('onnx2tf is not installed')
    with tempfile.TemporaryDirectory() as temporary:
        prepared = environment.pathlib.Path(temporary) / 'prepared.onnx'
        onnx.save(channels_first(onnx.load(source)), prepared)
        done = subprocess.run([program, '-i', prepared, '-o', temporary, '-tb', 'flatbuffer_direct', '-osd', '-n'],
                              capture_output=True, text=True, cwd=temporary)
        made = [p for p in environment.pathlib.Path(temporary).glob('*_float32.tflite')]
        if done.returncode or not made:
            raise RuntimeError('onnx2tf: ' + ((done.stderr + done.stdout).strip().splitlines() or ['failed'])[-1])
        (folder / 'model.tflite').write_bytes(made[0].read_bytes())
    if flavour == 'static':
        quantize(folder / 'model.tflite', samples)


def channels_first(model):
    """Moves each PRelu between transpositions before the first of them: onnx2tf knows slopes of channels in the second
    place only, and removes both transpositions then."""
    graph = model.graph
    makers = {name: n for n in graph.node for name in n.output}
    slopes = {t.name: t for t in graph.initializer}
    for n in list(graph.node):
        before = makers.get(n.input[0]) if n.op_type == 'PRelu' else None
        perm = [list(a.ints) for a in before.attribute if a.name == 'perm'] if before and before.op_type == 'Transpose' else []
        slope = slopes.get(n.input[1]) if perm == [[0, 2, 3, 1]] else None
        if slope is None or list(slope.dims[:-1]) != [1, 1]:
            continue
        turned = onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(slope).reshape(-1, 1, 1), slope.name + '/first')
        graph.initializer.append(turned)
        inner = n.output[0] + '/first'
        after = onnx.helper.make_node('Transpose', [inner], [n.output[0]], perm=[0, 2, 3, 1])
        n.input[0], n.input[1], n.output[0] = before.input[0], turned.name, inner
        graph.node.insert(list(graph.node).index(n) + 1, after)
    return model


def quantize(path, samples):
    from ai_edge_quantizer import quantizer, recipe
    interpreter = Interpreter(str(path))
    key = next(iter(interpreter.get_signature_list()))
    runner = interpreter.get_signature_runner(key)
    details = runner.get_input_details()
    feeds = [assign(details, sample) for sample in samples]
    q = quantizer.Quantizer(str(path), recipe.static_wi8_ai8())
    result = q.quantize(q.calibrate({key: feeds}))
    result.export_model(str(path), overwrite=True)


def quantized(array, detail):
    """In the type of the file's tensor."""
    scale, zero = detail['quantization']
    if scale and array.dtype.kind == 'f' and np.dtype(detail['dtype']).kind in 'iu':
        limits = np.iinfo(detail['dtype'])
        array = np.clip(np.rint(array / scale) + zero, limits.min, limits.max)
    return array.astype(detail['dtype'])


def dequantized(array, detail):
    scale, zero = detail['quantization']
    return (array.astype(np.float32) - zero) * np.float32(scale) if scale else array


def fit(array, shape):
    """`array` in the form of `shape`, which has the channels first or last."""
    shape = tuple(int(d) for d in shape)
    if array.shape == shape:
        return np.ascontiguousarray(array).reshape(shape)
    orders = ([0, *range(2, array.ndim), 1], [0, array.ndim - 1, *range(1, array.ndim - 1)])
    for order in orders if array.ndim > 2 else ():
        turned = array.transpose(order)
        if turned.shape == shape:
            return np.ascontiguousarray(turned)
    if array.size == int(np.prod(shape)):
        return np.ascontiguousarray(array).reshape(shape)
    raise RuntimeError(f'the file has an input of {shape}, the network has {array.shape}')


def assign(details, inputs):
    """Arrays for {name: detail}: by name, else by size, in order."""
    rest, out = dict(inputs), {}
    for name, detail in details.items():
        plain = name.removeprefix('serving_default_').split(':')[0]
        size = int(np.prod(detail['shape']))
        match = next((n for n in rest if n == plain or n.replace('/', '_') == plain), None)
        match = match or next((n for n in rest if rest[n].size == size), None)
        if match is None:
            raise RuntimeError(f'the file has an input {name}, the network has not')
        out[name] = quantized(fit(rest.pop(match), detail['shape']), detail)
    return out


class Model:
    def __init__(self, folder, inputs, threads):
        path = str(folder / 'model.tflite')
        try:
            self.interpreter = Interpreter(path, num_threads=threads)
            self.interpreter.allocate_tensors()
        except RuntimeError as e:
            if 'XNNPack delegate' not in str(e):
                raise
            self.interpreter = Interpreter(path, num_threads=threads,
                                           experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
            self.interpreter.allocate_tensors()
        details = {d['name']: d for d in self.interpreter.get_input_details()}
        for name, array in assign(details, inputs).items():
            self.interpreter.set_tensor(details[name]['index'], array)

    def run(self):
        self.interpreter.invoke()

    def outputs(self):
        details = self.interpreter.get_output_details()
        return {i: dequantized(self.interpreter.get_tensor(d['index']), d) for i, d in enumerate(details)}
