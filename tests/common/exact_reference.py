"""Models in a form that onnxruntime evaluates exactly on every x86 processor.

Without VNNI onnxruntime adds two products of uint8 and int8 in 16 bits, with saturation: up to 2 * 255 * 128, where 32,767
fits. Its products of uint8 and uint8 are exact on every processor, and w - z stays the same where 128 is added to both.
"""
import numpy as np
import onnx
from onnx import numpy_helper

# Operator: (input with the zero point of the activations or None where they are always uint8, [(weights, their zero point)]).
PRODUCTS = {"QLinearConv": (2, [(3, 5)]), "QLinearMatMul": (2, [(3, 5)]), "QGemm": (2, [(3, 5)]), "QAttention": (6, [(1, 7)]),
            "MatMulInteger": (2, [(1, 3)]), "ConvInteger": (2, [(1, 3)]), "MatMulIntegerToFloat": (4, [(1, 5)]),
            "DynamicQuantizeMatMul": (None, [(1, 3)]), "DynamicQuantizeLSTM": (None, [(1, 9), (2, 11)])}


def without_saturation(model):
    """A copy of the model in which stored int8 weights that meet uint8 activations are uint8; their values are the same."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    stored = {i.name: i for i in changed.graph.initializer}

    def shifted(name):
        new = name + "/plus128"
        if new not in stored:
            old = numpy_helper.to_array(stored[name])
            assert old.dtype == np.int8, f"{name} is stored as {old.dtype}, expected int8"
            stored[new] = numpy_helper.from_array((old.astype(np.int16) + 128).astype(np.uint8), new)
            changed.graph.initializer.append(stored[new])
        return new

    for node in changed.graph.node:
        activations, weights = PRODUCTS.get(node.op_type, (None, []))
        if activations is not None and not is_uint8(node, activations, stored):
            continue
        for weight, zero in weights:
            names = [node.input[i] if i < len(node.input) else "" for i in (weight, zero)]
            if names[0] not in stored or stored[names[0]].data_type != onnx.TensorProto.INT8 or names[1] not in stored:
                continue
            node.input[weight], node.input[zero] = shifted(names[0]), shifted(names[1])
    return changed


def is_uint8(node, zero_point, stored):
    name = node.input[zero_point] if zero_point < len(node.input) else ""
    return name in stored and stored[name].data_type == onnx.TensorProto.UINT8
