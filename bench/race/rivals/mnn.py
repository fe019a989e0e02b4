"""MNN by its extension modules: `MNN.tools` and its programs, which send data and install packages, are never imported.
Precision `high` (float32). A run overwrites the inputs, so they are copied again before each; that copy is not timed. Its
offline quantizer wants images, so there is no int8."""
import contextlib
import os

import numpy as np

PACKAGE = 'MNN'
LIBRARIES = ['_mnncengine.*.so']
FLAVOURS = {'float': ['float'], 'int8': []}


def convert(flavour, source, samples, folder):
    import _tools
    _tools.mnnconvert(['mnnconvert', '-f', 'ONNX', '--modelFile', str(source), '--MNNModel', str(folder / 'model.mnn'),
                       '--bizCode', 'race'])
    if not (folder / 'model.mnn').exists():
        raise RuntimeError('the converter has written no file')


@contextlib.contextmanager
def silence():
    """Its libraries print."""
    kept, null = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept), os.close(null)


with silence():
    import _mnncengine as engine
TYPES = {np.dtype(np.float32): engine.Halide_Type_Float, np.dtype(np.int32): engine.Halide_Type_Int,
         np.dtype(np.uint8): engine.Halide_Type_Uint8, np.dtype(np.int64): engine.Halide_Type_Int}


class Model:
    def __init__(self, folder, inputs, threads):
        with silence():
            self.net = engine.Interpreter(str(folder / 'model.mnn'))
            self.session = self.net.createSession({'backend': 'CPU', 'numThread': threads, 'precision': 'high'})
            self.feeds = []
            for name in self.net.getSessionInputAll(self.session):
                if name not in inputs:  # an initializer that the file lists among the inputs
                    continue
                array = np.ascontiguousarray(inputs[name])
                array = array.astype(np.int32) if array.dtype in (np.int64, np.bool_) else array
                target = self.net.getSessionInput(self.session, name)
                if tuple(target.getShape()) != array.shape:
                    self.net.resizeTensor(target, array.shape)
                    self.net.resizeSession(self.session)
                    target = self.net.getSessionInput(self.session, name)
                self.feeds.append((target, engine.Tensor(tuple(array.shape), TYPES[array.dtype], array,
                                                         engine.Tensor_DimensionType_Caffe)))
        self.prepare()

    def prepare(self):
        for target, tensor in self.feeds:
            target.copyFrom(tensor)

    def run(self):
        self.net.runSession(self.session)

    def outputs(self):
        out = {}
        for name, tensor in self.net.getSessionOutputAll(self.session).items():
            shape, kind = tuple(tensor.getShape()), tensor.getDataType()
            dtype = np.asarray(tensor.getNumpyData()).dtype
            host = engine.Tensor(shape, kind, np.zeros(shape, dtype), engine.Tensor_DimensionType_Caffe)
            tensor.copyToHostTensor(host)
            out[name] = np.array(host.getNumpyData()).reshape(shape)
        return out
