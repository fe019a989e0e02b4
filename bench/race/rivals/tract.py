"""tract, which computes on one thread whatever is asked for. It has no quantizer, and onnxruntime's QDQ files take it minutes
to load or come out wrong, so there is no int8."""
import shutil

import numpy as np
import tract

PACKAGE = 'tract'
LIBRARIES = ['tract/tract.*.so']
FLAVOURS = {'float': ['float'], 'int8': []}


def convert(flavour, source, samples, folder):
    shutil.copy(source, folder / 'model.onnx')


class Model:
    def __init__(self, folder, inputs, threads):
        model = tract.onnx().load(folder / 'model.onnx')
        names = [model.input_name(i) for i in range(model.input_count())]
        self.names = [model.output_name(i) for i in range(model.output_count())]
        self.runnable = model.into_model().into_runnable()
        self.feeds = [tract.Tensor.from_numpy(np.ascontiguousarray(inputs[n]).reshape(inputs[n].shape)) for n in names]
        self.results = []

    def run(self):
        self.results = self.runnable.run(self.feeds)

    def outputs(self):
        return {i: tensor.to_numpy() for i, tensor in enumerate(self.results)}
