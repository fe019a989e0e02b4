"""Quantized networks (QuantizeLinear and DequantizeLinear around everything) made from fixed seeds: together they hold
every operation that computes on integers. All numbers that matter are integers or powers of two, so that the same files
come out everywhere."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Network:
    def __init__(self, seed, kind):
        self.r, self.kind = np.random.default_rng(seed), kind
        self.nodes, self.constants, self.inputs, self.outputs, self.made = [], [], [], [], 0

    def constant(self, array):
        self.constants.append(numpy_helper.from_array(np.asarray(array), f"c{len(self.constants)}"))
        return self.constants[-1].name

    def node(self, op, *inputs, outputs=1, **attributes):
        self.made += 1
        names = [f"{op}_{self.made}" + (f"_{i}" if outputs > 1 else "") for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, name=f"n{self.made}", **attributes))
        return names if outputs > 1 else names[0]

    def step(self, scale):
        """16 bits have steps that are 32 times finer."""
        return scale / 32 if self.kind == np.int16 else scale

    def rounded(self, x, scale=1 / 32, zero=None):
        """x through 8 or 16 bits. Of 16 the zero point is 0."""
        if self.kind == np.int16:
            zero = 0
        elif zero is None:
            zero = 131 if self.kind == np.uint8 else 3
        grid = [self.constant(np.float32(self.step(scale))), self.constant(self.kind(zero))]
        return self.node("DequantizeLinear", self.node("QuantizeLinear", x, *grid), *grid)

    def input(self, *shape):
        name = f"x{len(self.inputs)}"
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return self.rounded(name, 1 / 64)

    def weights(self, shape, axis=0, scale=None):
        """Per channel, -127 to 127, as they come out of a quantizer."""
        count = shape[axis]
        scales = (2.0 ** self.r.integers(-9, -6, count)).astype(np.float32)
        w = self.r.integers(-127, 128, shape).astype(np.int8)
        return self.node("DequantizeLinear", self.constant(w), self.constant(scales), self.constant(np.zeros(count, np.int8)),
                         axis=axis), scales

    def bias(self, scales, x_scale):
        b = self.r.integers(-2000, 2000, len(scales)).astype(np.int32)
        return self.node("DequantizeLinear", self.constant(b), self.constant((scales * np.float32(self.step(x_scale))).astype(np.float32)),
                         self.constant(np.zeros(len(scales), np.int32)), axis=0)

    def conv(self, x, into, out, kernel, scale=1 / 8, x_scale=1 / 32, transposed=False, biased=True, **attributes):
        group = attributes.get("group", 1)
        shape = (into, out // group, *kernel) if transposed else (out, into // group, *kernel)
        w, s = self.weights(shape, 1 if transposed else 0)
        more = [self.bias(s, x_scale)] if biased else []
        return self.rounded(self.node("ConvTranspose" if transposed else "Conv", x, w, *more, **attributes), scale)

    def output(self, x, *shape):
        name = f"y{len(self.outputs)}"
        for node in self.nodes:
            node.output[:] = [name if o == x else o for o in node.output]
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))

    def model(self, name):
        model = helper.make_model(helper.make_graph(self.nodes, name, self.inputs, self.outputs, self.constants),
                                  opset_imports=[helper.make_opsetid("", 21 if self.kind == np.int16 else 18)])
        model.ir_version = 10 if self.kind == np.int16 else 8
        onnx.checker.check_model(model)
        return model


def convolutions(kind):
    """Plain, strided, depthwise, grouped, dilated, transposed, with widths that no vector divides."""
    n = Network(1, kind)
    a = n.conv(n.input(1, 3, 21, 17), 3, 20, (3, 3), x_scale=1 / 64, strides=[2, 2], pads=[1, 1, 1, 1])
    b = n.conv(a, 20, 20, (3, 3), x_scale=1 / 8, group=20, pads=[1, 1, 1, 1])
    c = n.rounded(n.node("Relu", n.conv(b, 20, 37, (1, 1), x_scale=1 / 8)), 1 / 8)
    d = n.conv(c, 37, 24, (3, 2), x_scale=1 / 8, dilations=[2, 1], biased=False)
    e = n.conv(d, 24, 24, (3, 3), x_scale=1 / 8, group=4, pads=[1, 1, 1, 1])
    f = n.conv(e, 24, 9, (2, 2), x_scale=1 / 8, transposed=True, strides=[2, 2])
    n.output(f, 1, 9, 14, 16)
    return n.model("convolutions")


def arithmetic(kind):
    """Sums, products, averages, joins, and what moves."""
    n = Network(2, kind)
    x = n.input(1, 8, 12, 10)
    a, b = n.conv(x, 8, 16, (1, 1), x_scale=1 / 64), n.conv(x, 8, 16, (3, 3), 1 / 16, 1 / 64, pads=[1, 1, 1, 1])
    total = n.rounded(n.node("Add", a, b), 1 / 8)
    product = n.rounded(n.node("Mul", a, b), 1 / 4)
    less = n.rounded(n.node("Sub", total, product), 1 / 4)
    gated = n.rounded(n.node("Mul", less, n.rounded(n.node("Sigmoid", total), 1 / 256, 0 if kind == np.uint8 else -128)), 1 / 4)
    slope = n.constant((n.r.integers(-8, 9, (16, 1, 1)) / 32).astype(np.float32))
    bent = n.rounded(n.node("PRelu", gated, slope), 1 / 4)
    pooled = n.rounded(n.node("AveragePool", bent, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]), 1 / 8)
    largest = n.node("MaxPool", bent, kernel_shape=[2, 2], strides=[2, 2])
    joined = n.rounded(n.node("Concat", pooled, largest, axis=1), 1 / 8)
    first, second = n.node("Split", joined, n.constant(np.array([20, 12], np.int64)), axis=1, outputs=2)
    moved = n.node("Transpose", n.node("Pad", second, n.constant(np.array([0, 0, 1, 0, 0, 0, 0, 1], np.int64))), perm=[0, 2, 3, 1])
    mean = n.rounded(n.node("GlobalAveragePool", first), 1 / 16)
    flat = n.node("Flatten", mean)
    w, s = n.weights((11, 20))
    out = n.rounded(n.node("Gemm", flat, w, n.bias(s, 1 / 16), transB=1), 1 / 8)
    n.output(out, 1, 11)
    n.output(n.rounded(n.node("Tanh", moved), 1 / 128), 1, 7, 6, 12)
    return n.model("arithmetic")


def functions(kind):
    """One-input functions, softmax, interpolation, one-dimensional convolution and products of two activations."""
    n = Network(3, kind)
    x = n.input(1, 6, 30)
    a = n.conv(x, 6, 12, (5,), 1 / 16, 1 / 64, pads=[2, 2])
    b = n.rounded(n.node("HardSwish", a), 1 / 16)
    c = n.rounded(n.node("LeakyRelu", b, alpha=0.125), 1 / 16)
    d = n.rounded(n.node("Elu", c), 1 / 16)
    scores = n.rounded(n.node("MatMul", n.node("Transpose", d, perm=[0, 2, 1]), c), 1 / 2)
    chance = n.rounded(n.node("Softmax", n.rounded(n.node("Mul", scores, n.constant(np.float32(0.0625))), 1 / 8), axis=-1), 1 / 256,
                       0 if kind == np.uint8 else -128)
    read = n.rounded(n.node("MatMul", chance, n.node("Transpose", d, perm=[0, 2, 1])), 1 / 16)
    image = n.node("Reshape", read, n.constant(np.array([1, 5, 6, 12], np.int64)))
    larger = n.rounded(n.node("Resize", image, "", n.constant(np.array([1, 1, 2, 2], np.float32)), mode="linear"), 1 / 16)
    nearest = n.node("Resize", larger, "", n.constant(np.array([1, 1, 1, 2], np.float32)), mode="nearest")
    mean = n.rounded(n.node("ReduceMean", nearest, n.constant(np.array([2, 3], np.int64)), keepdims=1), 1 / 32)
    n.output(n.rounded(n.node("Add", nearest, mean), 1 / 16), 1, 5, 12, 48)
    return n.model("functions")


def mixed(kind):
    """Integers, a part that is kept in float, integers again."""
    n = Network(4, kind)
    a = n.conv(n.input(1, 4, 16, 16), 4, 16, (3, 3), x_scale=1 / 64, pads=[1, 1, 1, 1])
    b = n.rounded(n.node("Exp", n.node("Sin", n.node("InstanceNormalization", a, n.constant(np.ones(16, np.float32)),
                                                     n.constant(np.zeros(16, np.float32))))), 1 / 32)
    c = n.conv(b, 16, 24, (3, 3), 1 / 4, group=2)
    d = n.rounded(n.node("Add", n.conv(c, 24, 24, (1, 1), 1 / 2, 1 / 4), c), 1 / 2)
    n.output(d, 1, 24, 14, 14)
    return n.model("mixed")


def all_networks():
    return {make.__name__ + suffix: make(kind) for make in (convolutions, arithmetic, functions, mixed)
            for suffix, kind in (("", np.int8), ("_uint8", np.uint8), ("_int16", np.int16))}
