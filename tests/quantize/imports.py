#!/usr/bin/env python3
"""Models that were quantized elsewhere run on integers, and give what onnxruntime gives, to one step of the result for every rounding.

    imports.py [--sinter PROGRAM] [--seeds N] [--keep FOLDER]

Every operation that has an integer form is placed between DequantizeLinear and QuantizeLinear, in int8 and uint8, with
symmetric and other zero points, per tensor and per channel; QLinear operators as well. onnxruntime evaluates the same
file in float, without optimizations. Besides the values, no step but quantizing and dequantizing may compute in float.
"""
import argparse
import os
import re
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
import pinned  # noqa: E402

pinned.require()
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
import sinter_cli as cli  # noqa: E402
from exact_reference import without_saturation  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402

MOVES = {"View", "Copy", "Transpose", "Slice", "Concat", "Pad", "Gather", "Tile", "Broadcast", "MaxPool", "Resize",
         "Reduce", "Min", "Max", "Where"}
# Where more results than these differ by a step the cause is not rounding...
MOST_TURNED = 0.02
MOST_TURNED_BY = {"interpolated": 0.1,  # weights are multiples of 2^-11
                  "microsoft": 0.2}  # onnxruntime's softmax and averages are rounded in other places
# ... ties apart: what is so near to the middle between two steps may become either.
TIE = 0.01


class Model:
    """A graph under construction; values are names."""

    def __init__(self, rng, kind):
        self.rng, self.kind, self.opset = rng, kind, 18
        self.nodes, self.constants, self.inputs, self.count = [], [], {}, 0
        self.end = None  # gives the model's result and its step, if a case has an end of its own

    def name(self, stem):
        self.count += 1
        return f"{stem}{self.count}"

    def constant(self, array):
        name = self.name("c")
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def op(self, kind, *inputs, domain="", outputs=1, **attributes):
        names = [self.name("v") for _ in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, name=f"{kind}_{self.count}", domain=domain, **attributes))
        return names[0]

    def parameters(self, low, high, symmetric=None):
        """Scale and zero point for a range, as constants; also the scale itself."""
        info = np.iinfo(self.kind)
        if symmetric if symmetric is not None else self.rng.random() < 0.3:
            most = max(abs(low), abs(high))
            low, high = -most, most
        scale = np.float32((high - low) / (info.max - info.min))
        zero = int(np.clip(round(info.min - low / scale), info.min, info.max))
        return self.constant(scale), self.constant(np.array(zero, self.kind)), scale

    def quantized(self, x, low, high):
        """x -> QuantizeLinear -> DequantizeLinear; gives the result and its step."""
        scale, zero, step = self.parameters(low, high)
        return self.op("DequantizeLinear", self.op("QuantizeLinear", x, scale, zero), scale, zero), step

    def x(self, *dims, low=-2.0, high=3.0):
        name = self.name("x")
        self.inputs[name] = self.rng.uniform(low, high, dims).astype(np.float32)
        return self.quantized(name, low, high)[0]

    def weights(self, *dims, axis=0):
        """Dequantized int8 (per channel) or the activations' type (per tensor, any zero point)."""
        if self.rng.random() < 0.6:
            q = self.rng.integers(-127, 128, dims).astype(np.int8)
            scales = self.rng.uniform(0.002, 0.02, dims[axis]).astype(np.float32)
            return self.op("DequantizeLinear", self.constant(q), self.constant(scales),
                           self.constant(np.zeros(dims[axis], np.int8)), axis=axis)
        info = np.iinfo(self.kind)
        q = self.rng.integers(info.min, info.max + 1, dims).astype(self.kind)
        zero = int(self.rng.integers(info.min, info.max + 1)) if self.rng.random() < 0.5 else (info.min + info.max + 1) // 2
        return self.op("DequantizeLinear", self.constant(q), self.constant(np.float32(0.01)),
                       self.constant(np.array(zero, self.kind)))


def conv(m):
    group = int(m.rng.choice([1, 1, 2]))
    kernel = int(m.rng.choice([1, 3]))
    y = m.op("Conv", m.x(1, 4, 9, 8), m.weights(6, 4 // group, kernel, kernel), m.constant(m.rng.uniform(-1, 1, 6).astype("f")),
             group=group, pads=[kernel // 2] * 4, strides=[1, int(m.rng.choice([1, 2]))])
    return (m.op("Relu", y) if m.rng.random() < 0.5 else y), "QConv"


def conv1d(m):
    return m.op("Conv", m.x(2, 3, 20), m.weights(5, 3, 4), dilations=[2], pads=[1, 2]), "QConv"


def depthwise(m):
    c = int(m.rng.choice([3, 16]))
    y = m.op("Conv", m.x(1, c, 7, 7), m.weights(c, 1, 3, 3), group=c, pads=[1, 1, 1, 1])
    return m.op("Clip", y, m.constant(np.float32(0)), m.constant(np.float32(6))), "QDepthwiseConv"


def transposed(m):
    return m.op("ConvTranspose", m.x(1, 4, 5, 6), m.weights(4, 3, 2, 2, axis=1), strides=[2, 2]), "QConvTranspose"


def gemm(m):
    return m.op("Gemm", m.x(3, 20), m.weights(7, 20), m.constant(m.rng.uniform(-1, 1, 7).astype("f")), transB=1), "QFullyConnected"


def mat_mul(m):
    return m.op("MatMul", m.x(2, 3, 20), m.weights(20, 7, axis=1)), "QFullyConnected"


def activations_product(m):
    return m.op("MatMul", m.x(2, 3, 5, 16), m.x(2, 3, 16, 4)), "QMatMul"


def add(m):
    kind = m.rng.choice(["Add", "Sub"])
    y = m.op(kind, m.x(2, 3, 4, 5, low=-1, high=4), m.x(*[(2, 3, 4, 5), (1, 3, 1, 1)][m.rng.integers(2)]))
    return (m.op("Relu", y) if m.rng.random() < 0.5 else y), "QAdd"


def mul(m):
    return m.op("Mul", m.x(2, 3, 4, 5), m.x(*[(2, 3, 4, 5), (1, 3, 1, 1)][m.rng.integers(2)])), "QMul"


def average(m):
    kind = m.rng.integers(3)
    x = m.x(1, 5, 6, 6)
    if kind == 0:
        return m.op("GlobalAveragePool", x), "QAvgPool QMean"
    if kind == 1:
        return m.op("AveragePool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=int(m.rng.integers(2))), "QAvgPool"
    return m.op("ReduceMean", x, m.constant(np.array([2, 3], np.int64))), "QMean"


def prelu(m):
    x = m.quantized(m.op("Conv", m.x(1, 3, 6, 6), m.weights(6, 3, 3, 3)), -4, 4)[0]
    return m.op("PRelu", x, m.constant(m.rng.uniform(-0.5, 1, (6, 1, 1)).astype("f"))), "QPRelu"


def softmax(m):
    return m.op("Softmax", m.x(3, 11, low=-8, high=8), axis=-1), "QSoftmax"


FUNCTIONS = ["Sigmoid", "Tanh", "HardSwish", "LeakyRelu", "Elu", "Erf", "Exp", "silu", "steps", "scaled"]


def one_input(m, kind=None, items=(3, 7)):
    x = m.x(*items, low=-5, high=5)
    kind = kind or m.rng.choice(FUNCTIONS)
    if kind == "silu":
        return m.op("Mul", x, m.op("Sigmoid", x)), "Lut"
    if kind == "steps":  # rounded between
        return m.op("Mul", x, m.quantized(m.op("Sigmoid", x), 0, 1)[0]), "Lut"
    if kind == "scaled":
        return m.op("Div", m.op("Add", x, m.constant(np.float32(3))), m.constant(np.float32(6))), "Lut"
    return m.op(kind, x), "Lut"


def moved(m):
    x = m.x(2, 3, 4, 6)
    kind = m.rng.integers(6)
    if kind == 0:
        y = m.op("Transpose", x, perm=[0, 2, 3, 1])
    elif kind == 1:
        y = m.op("Reshape", x, m.constant(np.array([6, -1], np.int64)))
    elif kind == 2:
        y = m.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    elif kind == 3:
        y = m.op("Slice", x, m.constant(np.array([1], np.int64)), m.constant(np.array([3], np.int64)), m.constant(np.array([2], np.int64)))
    elif kind == 4:
        y = m.op("Pad", x, m.constant(np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64)))
    else:
        y = m.op("Resize", x, "", m.constant(np.array([1, 1, 2, 2], "f")), mode="nearest")
    return m.op("Sigmoid", y), "Lut"


def interpolated(m):
    """Between float operations only where the result is rounded to what it is made from."""
    scale, zero, _ = m.parameters(-2, 3)
    name = m.name("x")
    m.inputs[name] = m.rng.uniform(-2, 3, (1, 3, 5, 6)).astype("f")
    x = m.op("DequantizeLinear", m.op("QuantizeLinear", name, scale, zero), scale, zero)
    mode = str(m.rng.choice(["half_pixel", "align_corners", "asymmetric"]))
    y = m.op("Resize", x, "", m.constant(np.array([1, 1, 2, 1.5], "f")), mode="linear", coordinate_transformation_mode=mode)
    y = m.op("DequantizeLinear", m.op("QuantizeLinear", y, scale, zero), scale, zero)
    return m.op("Sigmoid", y), "QResize"


def picked(m):
    a, b = m.x(1, 3, 4, 4), m.x(1, 3, 4, 4, low=-1, high=1)
    kind = str(m.rng.choice(["Max", "Min", "Where"]))
    mask = [m.constant(m.rng.random((1, 1, 4, 4)) < 0.5)] if kind == "Where" else []
    return m.op(kind, *mask, a, b), kind


def joined(m):
    return m.op("Concat", m.x(1, 3, 4, 4), m.x(1, 2, 4, 4, low=-1, high=1), axis=1), "Concat"


def residual(m):
    """What networks are made of: two convolutions, one reading the other, added to what they began with."""
    x = m.x(1, 4, 8, 8)
    a = m.quantized(m.op("Relu", m.op("Conv", x, m.weights(4, 4, 3, 3), pads=[1] * 4)), 0, 4)[0]
    b = m.quantized(m.op("Conv", a, m.weights(4, 4, 1, 1)), -4, 4)[0]
    return m.op("Flatten", m.op("Relu", m.op("Add", b, x))), "QAdd"


def q_linear(m):
    """QLinearConv or QLinearMatMul in the middle."""
    xs, xz, _ = m.parameters(-2, 3)
    name = m.name("x")
    product = m.rng.random() < 0.5
    m.inputs[name] = m.rng.uniform(-2, 3, (1, 12) if product else (1, 4, 6, 6)).astype("f")
    q = m.op("QuantizeLinear", name, xs, xz)
    ys, yz, _ = m.parameters(-4, 4)
    w = m.rng.integers(-127, 128, (12, 5) if product else (5, 4, 3, 3)).astype(np.int8)
    ws, wz = m.constant(np.float32(0.01)), m.constant(np.array(0, np.int8))
    y = (m.op("QLinearMatMul", q, xs, xz, m.constant(w), ws, wz, ys, yz) if product else
         m.op("QLinearConv", q, xs, xz, m.constant(w), ws, wz, ys, yz, m.constant(m.rng.integers(-500, 500, 5).astype(np.int32))))
    return m.op("DequantizeLinear", y, ys, yz), "QFullyConnected" if product else "QConv"


def microsoft(m):
    """onnxruntime's own operators on quantized values, one after the other."""
    kind = ("Add", "Mul", "Sigmoid", "LeakyRelu", "Concat", "AveragePool", "GlobalAveragePool", "Softmax", "Where")[m.rng.integers(9)]

    def stored(*dims):
        scale, zero, _ = m.parameters(-2, 3)
        name = m.name("x")
        m.inputs[name] = m.rng.uniform(-2, 3, dims).astype("f")
        return m.op("QuantizeLinear", name, scale, zero), scale, zero
    a, b = stored(1, 4, 5, 6), stored(1, 4, 5, 6) if kind in ("Add", "Mul", "Concat", "Where") else None
    low, high = {"Sigmoid": (0, 1), "Softmax": (0, 1), "Mul": (-6, 9), "Add": (-4, 6)}.get(kind, (-2, 3))
    scale, zero, _ = m.parameters(low, high, symmetric=False)

    def op(*inputs, **attributes):
        return m.op("QLinear" + kind, *inputs, domain="com.microsoft", **attributes)
    if kind in ("Add", "Mul"):
        y, must = op(*a, *b, scale, zero), "Q" + kind
    elif kind == "Concat":
        y, must = op(scale, zero, *a, *b, axis=1), "Concat"
    elif kind == "Where":
        y, must = op(m.constant(m.rng.random((1, 1, 5, 6)) < 0.5), *a, *b, scale, zero), "Where"
    elif kind == "AveragePool":
        y, must = op(*a, scale, zero, kernel_shape=[2, 2], strides=[1, 2]), "QAvgPool"
    elif kind == "GlobalAveragePool":
        y, must = op(*a, scale, zero, channels_last=0), "QMean QAvgPool"
    elif kind == "Softmax":
        y, must = op(*a, scale, zero, axis=-1, opset=13), "QSoftmax"
    else:
        y, must = op(*a, scale, zero), "Lut"
    return m.op("DequantizeLinear", y, scale, zero), must


def q_gemm(m):
    xs, xz, _ = m.parameters(-2, 3)
    name = m.name("x")
    m.inputs[name] = m.rng.uniform(-2, 3, (3, 12)).astype("f")
    q = m.op("QuantizeLinear", name, xs, xz)
    ys, yz, _ = m.parameters(-4, 4)
    w = m.rng.integers(-127, 128, (7, 12)).astype(np.int8)
    ws, wz = m.constant(np.float32(0.01)), m.constant(np.array(0, np.int8))
    y = m.op("QGemm", q, xs, xz, m.constant(w), ws, wz, m.constant(m.rng.integers(-500, 500, 7).astype(np.int32)), ys, yz,
             domain="com.microsoft", transB=1)
    return m.op("DequantizeLinear", y, ys, yz), "QFullyConnected"


def per_axis(m):
    """Activations with a scale for every channel are not what integer kernels take: equal values, in float."""
    scale = m.constant(m.rng.uniform(0.01, 0.03, 4).astype("f"))
    zero = m.constant(m.rng.integers(-5, 5, 4).astype(np.int8) if m.kind == np.int8 else m.rng.integers(120, 130, 4).astype(np.uint8))
    name = m.name("x")
    m.inputs[name] = m.rng.uniform(-2, 3, (1, 4, 5, 6)).astype("f")
    x = m.op("DequantizeLinear", m.op("QuantizeLinear", name, scale, zero, axis=1), scale, zero, axis=1)
    return m.op("Relu", x), None


def opsets(m):
    """The forms that quantization had over time: per tensor from 10, along an axis from 13, in blocks and int16 from 21."""
    m.opset = int(m.rng.choice([10, 11, 12, 13, 16, 19, 21, 23]))
    if m.opset >= 21 and m.rng.random() < 0.5:
        m.kind = np.int16
    x = m.x(1, 4, 6, 6)
    if m.opset >= 13 and m.kind != np.int16:
        w = m.weights(5, 4, 3, 3)
    else:
        w = m.op("DequantizeLinear", m.constant(m.rng.integers(-127, 128, (5, 4, 3, 3)).astype(np.int8)),
                 m.constant(np.float32(0.01)), m.constant(np.array(0, np.int8)))
    return m.op("Relu", m.op("Conv", x, w, pads=[1] * 4)), "QConv"


def blocked(m):
    """Weights with a scale for every block stay packed; the activations' rounding is not undone."""
    m.opset = 21
    kind = (np.int8, np.uint8)[m.rng.integers(2)]
    info = np.iinfo(kind)
    q = m.rng.integers(info.min, info.max + 1, (64, 24)).astype(kind)
    scales = m.rng.uniform(0.002, 0.02, (4, 24)).astype("f")
    zeros = m.rng.integers(info.min, info.max + 1, (4, 24)).astype(kind)
    w = m.op("DequantizeLinear", m.constant(q), m.constant(scales), m.constant(zeros), axis=0, block_size=16)
    return m.op("MatMul", m.x(3, 64), w), None


def few_bits(m):
    """Products of 2 to 8 bits, as quantization-aware training exports them, whose bias is no multiple of input scale x weight
    scale: float, of a batch normalization, or int32 with a scale of its own, for the tensor or for each channel."""
    m.opset, m.kind, rng = 13, np.uint8, m.rng
    bits, kind, form = (int(rng.choice([2, 3, 4, 8])), str(rng.choice(["Conv", "depthwise", "ConvTranspose", "Gemm", "MatMul"])),
                        str(rng.choice(["float", "norm", "int32", "channels"])))
    steps, half = 2 ** bits - 1, 2 ** (bits - 1) - 1

    def rounded(value, scale):
        q = m.op("QuantizeLinear", value, m.constant(np.float32(scale)), m.constant(np.uint8(0)))
        if bits < 8:
            q = m.op("Clip", q, m.constant(np.uint8(0)), m.constant(np.uint8(steps)))
        return m.op("DequantizeLinear", q, m.constant(np.float32(scale)), m.constant(np.uint8(0)))
    image = kind not in ("Gemm", "MatMul")
    name = m.name("x")
    m.inputs[name] = rng.uniform(0, 3, (1, 8, 9, 9) if image else (6, 40)).astype("f")
    channels = 8 if kind == "depthwise" else 6
    dims, axis = {"Conv": ((channels, 8, 3, 3), 0), "depthwise": ((channels, 1, 3, 3), 0), "ConvTranspose": ((8, channels, 3, 3), 1),
                  "Gemm": ((channels, 40), 0), "MatMul": ((40, channels), 1)}[kind]
    inputs = 72 if kind == "Conv" else 9 if kind == "depthwise" else 18 if kind == "ConvTranspose" else 40
    scales = rng.uniform(0.5, 1.5, channels) / (half * np.sqrt(inputs))
    w = m.op("DequantizeLinear", m.constant(rng.integers(-half, half + 1, dims).astype(np.int8)), m.constant(scales.astype("f")),
             m.constant(np.zeros(channels, np.int8)), axis=axis)
    bias = rng.uniform(-1, 1, channels)
    if form == "int32":
        b = m.op("DequantizeLinear", m.constant((bias / 0.0371).astype(np.int32)), m.constant(np.float32(0.0371)))
    elif form == "channels":
        own = rng.uniform(0.01, 0.05, channels)
        b = m.op("DequantizeLinear", m.constant((bias / own).astype(np.int32)), m.constant(own.astype("f")), axis=0)
    else:
        b = m.constant(bias.astype("f"))
    x = rounded(name, 3 / steps)
    given = [] if form == "norm" or kind == "MatMul" else [b]
    if kind in ("Conv", "depthwise"):
        y = m.op("Conv", x, w, *given, pads=[1] * 4, group=8 if kind == "depthwise" else 1)
    elif kind == "ConvTranspose":
        y = m.op("ConvTranspose", x, w, *given, strides=[2, 2])
    elif kind == "Gemm":
        y = m.op("Gemm", x, w, *given, transB=1)
    else:
        y = m.op("MatMul", x, w)
        if form != "norm":
            y = m.op("Add", y, b)
    if form == "norm" and image:
        y = m.op("BatchNormalization", y, *(m.constant(v.astype("f")) for v in (
            rng.uniform(-1, 2, channels), bias, rng.uniform(-0.5, 0.5, channels), rng.uniform(0.5, 2, channels))))
    elif form == "norm":
        y = m.op("Add", m.op("Mul", y, m.constant(rng.uniform(0.5, 2, channels).astype("f"))), b)
    y = m.op("Relu", y) if rng.random() < 0.7 else y
    if rng.random() < 0.7:
        m.end = lambda y: (rounded(y, 3 / steps), np.float32(3 / steps))
    else:  # float results, as logits
        m.end = lambda y: (y, np.float32(1e-5))
    must = {"Conv": "QConv", "depthwise": "QDepthwiseConv", "ConvTranspose": "QConvTranspose"}.get(kind, "QFullyConnected")
    return y, must


def attention(m):
    """com.microsoft's QAttention: a float bias behind a product of integers."""
    m.kind = np.uint8
    scale, zero = m.constant(np.float32(3 / 255)), m.constant(np.uint8(100))
    name = m.name("x")
    m.inputs[name] = m.rng.uniform(-1, 2, (1, 5, 16)).astype("f")
    bits = int(m.rng.choice([2, 4, 8]))
    half = 2 ** (bits - 1) - 1
    w = m.constant(m.rng.integers(-half, half + 1, (16, 48)).astype(np.int8))
    q = m.op("QuantizeLinear", name, scale, zero)
    y = m.op("QAttention", q, w, m.constant(m.rng.uniform(-1, 1, 48).astype("f")), scale, m.constant(np.float32(0.5 / half)), "", zero,
             m.constant(np.int8(0)), domain="com.microsoft", num_heads=2)
    return y, "QFullyConnected"


def resized(m):
    """Resize between two scales, and before a product without a pair between them: rounded where the model rounds."""
    x = m.x(1, 4, 6, 8)
    mode = str(m.rng.choice(["linear", "cubic", "nearest"]))
    coordinates = str(m.rng.choice(["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
                                    "tf_crop_and_resize"]))
    # ONNX and onnxruntime align corners alike where the length is whole; no coordinate is in the middle between two pixels.
    scales = (2, m.rng.choice([1.5, 2] if coordinates == "align_corners" else [0.6, 1.2, 1.6, 2, 2.4]))
    region = m.constant(np.array([0, 0, 0.15, 0, 1, 1, 0.85, 1], "f")) if coordinates == "tf_crop_and_resize" else ""
    y = m.op("Resize", x, region, m.constant(np.array([1, 1, *scales], "f")), mode=mode, coordinate_transformation_mode=coordinates)
    then = m.rng.integers(3)
    if then == 0:
        y = m.op("Conv", y, m.weights(5, 4, 3, 3), pads=[1] * 4)
    elif then == 1:
        y = m.op("Sigmoid", y)
    return y, None


# The results of these may differ from onnxruntime's only where those are as near as this to the middle between two steps, as
# float32 sums in another order do.
EXACT = {"few_bits": 1e-3, "attention": 1e-3, "resized": 1e-3}

CASES = [few_bits, attention, resized, conv, conv1d, depthwise, transposed, gemm, mat_mul, activations_product, add, mul, average, prelu, softmax,
         one_input, moved, interpolated, picked, joined, residual, q_linear,
         microsoft, q_gemm, per_axis, opsets, blocked]


def session(model):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(without_saturation(model).SerializeToString(), options, providers=["CPUExecutionProvider"])


def finish(m, value):
    model = helper.make_model(
        helper.make_graph(m.nodes, "g", [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, a.shape)
                                         for n, a in m.inputs.items()],
                          [helper.make_tensor_value_info(value, onnx.TensorProto.FLOAT, None)], m.constants),
        opset_imports=[helper.make_opsetid("", m.opset), helper.make_opsetid("com.microsoft", 1)])
    model.ir_version = 8
    return model


def build(case, seed):
    """The model, its inputs, the result before and after it is quantized, its step, and the operations of which one
    must be there."""
    kind = (np.int8, np.uint8)[seed % 2]
    m = Model(np.random.default_rng(seed), kind)
    value, must = case(m)
    # The range that the result has without being quantized.
    raw = session(finish(m, value)).run(None, m.inputs)[0]
    low, high = min(float(raw.min()), 0.0), max(float(raw.max()), 1e-3)
    y, step = m.end(value) if m.end else m.quantized(value, low * 0.9, high * 0.9)
    model = finish(m, y)
    return model, m.inputs, raw, session(model).run(None, m.inputs)[0], step, must


def check(sinter, case, seed, folder):
    """None, or what is wrong."""
    model, inputs, raw, want, step, must = build(case, seed)
    exact = case.__name__ in EXACT
    ties = np.abs(raw / step - np.floor(raw / step) - 0.5) < EXACT.get(case.__name__, TIE)
    path = os.path.join(folder, "m")
    onnx.save(model, path + ".onnx")
    cli.save_npz(path + ".npz", inputs)
    outcome = cli.call(sinter, "convert", path + ".onnx", "-o", path + ".sinter", "--quiet")
    if outcome.code != 0:
        return "convert: " + outcome.why()
    listed = cli.call(sinter, "inspect", path + ".sinter", "--steps").out
    steps = [line.split()[1] for line in listed.splitlines() if re.match(r"\d+\.\d+ ", line)]
    if must is not None and not set(must.split()) & set(steps):
        return f"no {must} among {' '.join(steps)}"
    # The bias is added in float to sums whose steps are coarse, and to float results.
    apart = case is few_bits and "Add" in steps
    floats = [s for s in steps if s not in MOVES | {"Quantize", "Dequantize", "Lut", "Clamp"} | ({"Add"} if apart else set()) and not re.match("Q[A-Z]", s)]
    if must is None or case is attention:
        floats = steps = []
    if floats or steps.count("Quantize") > len(inputs) + apart or steps.count("Dequantize") > 1:
        return f"computes in float: {' '.join(steps)}"
    # One step for every rounding on the way.
    limit = max(sum(n.op_type.startswith("Q") for n in model.graph.node) - len(inputs), 0.5) + 0.01
    for backend in ([], ["--backend", "reference"]):
        outcome = cli.call(sinter, "run", path + ".sinter", "--inputs", path + ".npz", "--outputs", path + ".out.npz", "--quiet", *backend)
        if outcome.code != 0:
            return "run: " + outcome.why()
        got = next(iter(np.load(path + ".out.npz").values()))
        if got.shape != want.shape:
            return f"shape {got.shape}, not {want.shape}"
        off = np.abs(got.astype(np.float64) - want) / step
        turned = (off > 0.5) & ~ties
        if off.max() > limit or exact and turned.any() or turned.mean() > MOST_TURNED_BY.get(case.__name__, MOST_TURNED) + 1.5 / off.size:
            return f"{' '.join(backend)} {int(turned.sum())} of {off.size} differ, by {off.max():.1f} steps at most: {' '.join(steps)}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sinter")
    parser.add_argument("--seeds", type=int, default=8, help="of every kind of operation")
    parser.add_argument("--first", type=int, default=0, help="seed")
    parser.add_argument("--only", help="one kind of operation")
    parser.add_argument("--keep", metavar="FOLDER", help="where models go that fail")
    args = parser.parse_args()
    sinter = cli.find_sinter(args.sinter)
    failed = checked = 0
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            if args.only and case.__name__ != args.only:
                continue
            for seed in range(args.first, args.first + args.seeds):
                checked += 1
                wrong = check(sinter, case, seed, folder)
                if wrong is None:
                    continue
                failed += 1
                print(f"FAIL {case.__name__} {seed}: {wrong}")
                if args.keep:
                    os.makedirs(args.keep, exist_ok=True)
                    shutil.copy(os.path.join(folder, "m.onnx"), os.path.join(args.keep, f"{case.__name__}-{seed}.onnx"))
    print(f"{checked - failed} of {checked} quantized models run on integers and agree with onnxruntime {onnxruntime.__version__}")
    return 1 if failed or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
