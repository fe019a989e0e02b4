"""The models that are timed: their files, their flags of conversion, and their inputs.

models() yields {'name', 'path', 'flags', 'inputs'}, or {'name', 'absent'} with the reason. The networks of
SINTER_SHARED come from tests/models/models.tsv, whose recipes give flags and inputs.
"""
import pathlib
import sys

import numpy as np
import onnx

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / 'tests' / 'common'), str(ROOT / 'tests' / 'models')]
import networks  # noqa: E402
import sinter_cli  # noqa: E402

OWN = {'digits': ROOT / 'examples' / 'digits' / 'digits.onnx', 'one-relu': ROOT / 'bench' / 'relu.onnx'}
NOT_TIMED = {'types-bf16-int32', 'types-fp16', 'dynquant-matmul'}  # tests of types, not of speed


def models():
    image = np.load(ROOT / 'examples' / 'digits' / 'digits_eval.npz')['image'][:1]
    yield dict(name='digits', path=OWN['digits'], flags=[], inputs=dict(image=image))
    yield dict(name='one-relu', path=OWN['one-relu'], flags=[], inputs=dict(x=np.array([[-1, 2, -3, 4]], np.float32)))
    shared = sinter_cli.find_shared()
    if not shared:
        yield dict(name='models of SINTER_SHARED', absent='the folder is absent')
        return
    for net in networks.read_table():
        path = pathlib.Path(shared, 'models', net.file)
        name = path.parent.name if len(list(path.parent.glob('*.onnx'))) == 1 else path.stem
        if path.parent.name in NOT_TIMED:
            yield dict(name=name, absent='a test of types, not of speed')
        elif net.verdict.startswith('refuse'):
            yield dict(name=name, absent='to be refused: ' + (net.remark or net.verdict))
        elif net.expected == 'ort-repaired' or networks.constant_names(net):
            yield dict(name=name, absent='onnxruntime runs it in another form only')
        else:
            model = onnx.load(path, load_external_data=False)
            inputs = (networks.golden_sets(net, model, str(path.parent))[0][0] if net.inputs == 'golden'
                      else networks.seeded_inputs(net, model))
            yield dict(name=name, path=path, flags=net.flags, inputs=inputs)
