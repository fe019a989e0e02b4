"""OpenVINO, CPU plugin, for latency, in float32 also where the processor has bfloat16. int8: NNCF of the ONNX file as
OpenVINO reads it, and onnxruntime's QDQ file with unsigned activations."""
import shutil

import numpy as np
import openvino as ov

PACKAGE = 'openvino'
LIBRARIES = ['openvino/libs/libopenvino.so.*', 'openvino/libs/libopenvino_intel_cpu_plugin.so',
             'openvino/libs/libopenvino_onnx_frontend.so.*', 'openvino/libs/libopenvino_ir_frontend.so.*',
             'openvino/libs/libtbb.so.*']
FLAVOURS = {'float': ['float'], 'int8': ['nncf', 'u8']}
BORROWED = {'u8': 'onnxruntime'}


def convert(flavour, source, samples, folder):
    if flavour == 'float':
        shutil.copy(source, folder / 'model.onnx')
    else:
        import nncf
        model = ov.Core().read_model(source)
        dataset = nncf.Dataset(samples, lambda sample: sample)
        quantized = nncf.quantize(model, dataset, subset_size=len(samples))
        ov.save_model(quantized, folder / 'model.xml', compress_to_fp16=False)


class Model:
    def __init__(self, folder, inputs, threads):
        core = ov.Core()
        path = folder / 'model.xml'
        compiled = core.compile_model(path if path.exists() else folder / 'model.onnx', 'CPU', {
            'INFERENCE_NUM_THREADS': threads, 'NUM_STREAMS': 1, 'PERFORMANCE_HINT': 'LATENCY',
            'INFERENCE_PRECISION_HINT': 'f32'})
        self.request = compiled.create_infer_request()
        self.kept = []
        for port in compiled.inputs:
            name = next(n for n in port.get_names() if n in inputs)
            tensor = ov.Tensor(np.ascontiguousarray(inputs[name]).reshape(inputs[name].shape))
            self.kept.append(tensor)
            self.request.set_tensor(port, tensor)
        self.ports = compiled.outputs

    def run(self):
        self.request.infer()

    def outputs(self):
        return {name: self.request.get_tensor(port).data for port in self.ports for name in port.get_names()}
