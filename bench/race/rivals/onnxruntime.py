"""onnxruntime, CPU provider, all optimizations. int8: QDQ files of its own quantizer, weights per channel, by the minimum
and maximum, with signed and with unsigned activations."""
import shutil

import numpy as np
import onnx
import onnx.version_converter
import onnxruntime as ort

PACKAGE = 'onnxruntime'
LIBRARIES = ['onnxruntime/capi/libonnxruntime.so.*']
MINIMUM_OPSET = 13
FLAVOURS = {'float': ['float'], 'int8': ['s8', 'u8']}


def recent(source, to):
    """A file of an operator set that has scales per channel: `source`, or one made of it at `to`."""
    model = onnx.load(source)
    if all(o.version >= MINIMUM_OPSET for o in model.opset_import if o.domain in ('', 'ai.onnx')):
        return source
    onnx.save(onnx.version_converter.convert_version(model, MINIMUM_OPSET), to)
    return to


def convert(flavour, source, samples, folder):
    if flavour == 'float':
        shutil.copy(source, folder / 'model.onnx')
        return
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.rest = iter(samples)

        def get_next(self):
            return next(self.rest, None)

    prepared = folder / 'prepared.onnx'
    source = recent(source, folder / 'recent.onnx')
    try:
        quant_pre_process(source, prepared, skip_symbolic_shape=True)
    except Exception:  # of many types; the quantizer takes most files without it
        shutil.copy(source, prepared)
    quantize_static(prepared, folder / 'model.onnx', Reader(), quant_format=QuantFormat.QDQ, per_channel=True,
                    activation_type=QuantType.QInt8 if flavour == 's8' else QuantType.QUInt8, weight_type=QuantType.QInt8)
    prepared.unlink()
    (folder / 'recent.onnx').unlink(missing_ok=True)


class Model:
    def __init__(self, folder, inputs, threads):
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 3
        self.session = ort.InferenceSession(folder / 'model.onnx', options, providers=['CPUExecutionProvider'])
        # Values stay bound, so that Python's conversion of arrays is not timed.
        self.binding = self.session.io_binding()
        for port in self.session.get_inputs():
            array = np.ascontiguousarray(inputs[port.name]).reshape(inputs[port.name].shape)
            self.binding.bind_ortvalue_input(port.name, ort.OrtValue.ortvalue_from_numpy(array))
        self.names = [port.name for port in self.session.get_outputs()]
        for name in self.names:
            self.binding.bind_output(name)

    def run(self):
        self.session.run_with_iobinding(self.binding)

    def outputs(self):
        return dict(zip(self.names, self.binding.copy_outputs_to_cpu()))
