"""Six well-known image networks at 224 pixels with random weights, as ONNX files: their shapes are those of the published
architectures, batch normalization folded, so their times are those of trained ones.

ResNet-50 (He et al. 2015), SqueezeNet 1.1 (Iandola et al. 2016), MobileNet v2 (Sandler et al. 2018), MobileNet v3 large
(Howard et al. 2019), ShuffleNet v2 1.0 (Ma et al. 2018), EfficientNet-B0 (Tan and Le 2019).
"""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

PIXELS, CLASSES = 224, 1000
# Millions of multiply-adds of convolutions and products; make() checks them.
MILLIONS = dict(resnet50=4089, squeezenet1_1=349, mobilenet_v2=301, mobilenet_v3_large=217, shufflenet_v2_x1_0=145,
                efficientnet_b0=386)


def rounded(channels):
    """To a multiple of 8, at most a tenth below."""
    to = max(8, int(channels + 4) // 8 * 8)
    return to + 8 if to < 0.9 * channels else to


class Builder:
    """A network under construction; values are (name, channels, height)."""

    def __init__(self, name):
        self.name, self.nodes, self.weights = name, [], []
        self.random = np.random.default_rng(len(name))
        self.multiply_adds = 0

    def node(self, op, inputs, **attributes):
        out = f'{op.lower()}{len(self.nodes)}'
        self.nodes.append(helper.make_node(op, inputs, [out], name=out, **attributes))
        return out

    def constant(self, array):
        name = f'c{len(self.weights)}'
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def conv(self, x, out, kernel=1, stride=1, group=1, act=None, pad=None):
        name, channels, height = x
        shape = (out, channels // group, kernel, kernel)
        deviation = np.sqrt((2 if act else 0.5) / np.prod(shape[1:]))
        weight = self.constant((self.random.standard_normal(shape) * deviation).astype(np.float32))
        bias = self.constant((self.random.standard_normal(out) * 0.01).astype(np.float32))
        pad = kernel // 2 if pad is None else pad
        y = self.node('Conv', [name, weight, bias], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, group=group)
        height = (height + 2 * pad - kernel) // stride + 1
        self.multiply_adds += int(np.prod(shape)) * height * height
        return self.act((y, out, height), act)

    def act(self, x, act):
        name, channels, height = x
        if act == 'relu6':
            name = self.node('Clip', [name, self.constant(np.float32(0)), self.constant(np.float32(6))])
        elif act == 'silu':
            name = self.node('Mul', [name, self.node('Sigmoid', [name])])
        elif act == 'hardsigmoid':
            name = self.node('HardSigmoid', [name], alpha=1 / 6, beta=0.5)
        elif act:
            name = self.node({'relu': 'Relu', 'hardswish': 'HardSwish', 'sigmoid': 'Sigmoid'}[act], [name])
        return name, channels, height

    def pool(self, x, kernel=3, stride=2, pad=1, ceil=0):
        name = self.node('MaxPool', [x[0]], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, ceil_mode=ceil)
        free = x[2] + 2 * pad - kernel
        return name, x[1], (free + stride - 1 if ceil else free) // stride + 1

    def add(self, a, b):
        return (self.node('Add', [a[0], b[0]]), *a[1:])

    def concat(self, *values):
        return self.node('Concat', [v[0] for v in values], axis=1), sum(v[1] for v in values), values[0][2]

    def excite(self, x, middle, first, last):
        """Squeeze and excitation: each channel times a function of all channels' means."""
        mean = (self.node('GlobalAveragePool', [x[0]]), x[1], 1)
        gate = self.conv(self.conv(mean, middle, act=first), x[1], act=last)
        return (self.node('Mul', [x[0], gate[0]]), *x[1:])

    def linear(self, x, out, act=None):
        weight = (self.random.standard_normal((out, x[1])) / np.sqrt(x[1])).astype(np.float32)
        self.multiply_adds += weight.size
        y = self.node('Gemm', [x[0], self.constant(weight), self.constant(np.zeros(out, np.float32))], transB=1)
        return self.act((y, out, 1), act)

    def flat_mean(self, x):
        return self.node('Flatten', [self.node('GlobalAveragePool', [x[0]])]), x[1], 1

    def model(self, y):
        graph = helper.make_graph(
            self.nodes, self.name, [helper.make_tensor_value_info('x', TensorProto.FLOAT, [1, 3, PIXELS, PIXELS])],
            [helper.make_tensor_value_info(y[0], TensorProto.FLOAT, [1, CLASSES])], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)


INPUT = ('x', 3, PIXELS)


def resnet50(b):
    x = b.pool(b.conv(INPUT, 64, 7, 2, act='relu'))
    for stage, (width, count) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for i in range(count):
            stride = 2 if stage and i == 0 else 1
            y = b.conv(b.conv(b.conv(x, width, act='relu'), width, 3, stride, act='relu'), 4 * width)
            x = b.act(b.add(y, b.conv(x, 4 * width, 1, stride) if i == 0 else x), 'relu')
    return b.linear(b.flat_mean(x), CLASSES)


def squeezenet1_1(b):
    x = b.pool(b.conv(INPUT, 64, 3, 2, act='relu', pad=0), pad=0, ceil=1)
    for i, (narrow, wide) in enumerate(((16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256))):
        if i in (2, 4):
            x = b.pool(x, pad=0, ceil=1)
        s = b.conv(x, narrow, act='relu')
        x = b.concat(b.conv(s, wide, act='relu'), b.conv(s, wide, 3, act='relu'))
    return b.flat_mean(b.conv(x, CLASSES, act='relu'))


def inverted(b, x, middle, out, kernel, stride, act, excite=None):
    y = b.conv(x, middle, act=act) if middle != x[1] else x
    y = b.conv(y, middle, kernel, stride, middle, act)
    if excite:
        y = b.excite(y, *excite)
    y = b.conv(y, out)
    return b.add(y, x) if stride == 1 and out == x[1] else y


def mobilenet_v2(b):
    x = b.conv(INPUT, 32, 3, 2, act='relu6')
    for factor, out, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                       (6, 160, 3, 2), (6, 320, 1, 1)):
        for i in range(count):
            x = inverted(b, x, factor * x[1], out, 3, stride if i == 0 else 1, 'relu6')
    return b.linear(b.flat_mean(b.conv(x, 1280, act='relu6')), CLASSES)


def mobilenet_v3_large(b):
    x = b.conv(INPUT, 16, 3, 2, act='hardswish')
    for kernel, middle, out, squeeze, act, stride in (
            (3, 16, 16, 0, 'relu', 1), (3, 64, 24, 0, 'relu', 2), (3, 72, 24, 0, 'relu', 1), (5, 72, 40, 1, 'relu', 2),
            (5, 120, 40, 1, 'relu', 1), (5, 120, 40, 1, 'relu', 1), (3, 240, 80, 0, 'hardswish', 2),
            (3, 200, 80, 0, 'hardswish', 1), (3, 184, 80, 0, 'hardswish', 1), (3, 184, 80, 0, 'hardswish', 1),
            (3, 480, 112, 1, 'hardswish', 1), (3, 672, 112, 1, 'hardswish', 1), (5, 672, 160, 1, 'hardswish', 2),
            (5, 960, 160, 1, 'hardswish', 1), (5, 960, 160, 1, 'hardswish', 1)):
        gate = (rounded(middle / 4), 'relu', 'hardsigmoid') if squeeze else None
        x = inverted(b, x, middle, out, kernel, stride, act, gate)
    x = b.flat_mean(b.conv(x, 960, act='hardswish'))
    return b.linear(b.linear(x, 1280, 'hardswish'), CLASSES)


def shuffled(b, x):
    """The channels of two halves in turns."""
    name, channels, height = x
    split = b.node('Reshape', [name, b.constant(np.array([1, 2, channels // 2, height, height]))])
    turned = b.node('Transpose', [split], perm=[0, 2, 1, 3, 4])
    return b.node('Reshape', [turned, b.constant(np.array([1, channels, height, height]))]), channels, height


def shufflenet_v2_x1_0(b):
    x = b.pool(b.conv(INPUT, 24, 3, 2, act='relu'))
    for out, count in ((116, 4), (232, 8), (464, 4)):
        half = out // 2
        for i in range(count):
            stride = 2 if i == 0 else 1
            if stride == 2:
                kept = b.conv(b.conv(x, x[1], 3, 2, x[1]), half, act='relu')
                y = x
            else:
                parts = [f'split{len(b.nodes)}a', f'split{len(b.nodes)}b']
                b.nodes.append(helper.make_node('Split', [x[0], b.constant(np.array([half, half]))], parts, axis=1))
                kept, y = (parts[0], half, x[2]), (parts[1], half, x[2])
            y = b.conv(y, half, act='relu')
            y = b.conv(b.conv(y, half, 3, stride, half), half, act='relu')
            x = shuffled(b, b.concat(kept, y))
    return b.linear(b.flat_mean(b.conv(x, 1024, act='relu')), CLASSES)


def efficientnet_b0(b):
    x = b.conv(INPUT, 32, 3, 2, act='silu')
    for factor, kernel, out, count, stride in ((1, 3, 16, 1, 1), (6, 3, 24, 2, 2), (6, 5, 40, 2, 2), (6, 3, 80, 3, 2),
                                               (6, 5, 112, 3, 1), (6, 5, 192, 4, 2), (6, 3, 320, 1, 1)):
        for i in range(count):
            gate = (max(1, x[1] // 4), 'silu', 'sigmoid')
            x = inverted(b, x, factor * x[1], out, kernel, stride if i == 0 else 1, 'silu', gate)
    return b.linear(b.flat_mean(b.conv(x, 1280, act='silu')), CLASSES)


NETWORKS = (resnet50, squeezenet1_1, mobilenet_v2, mobilenet_v3_large, shufflenet_v2_x1_0, efficientnet_b0)


def make(folder):
    """(name, path) of each, written where it is not there yet; {x: [1, 3, 224, 224]} -> scores."""
    folder.mkdir(parents=True, exist_ok=True)
    for network in NETWORKS:
        path = folder / f'{network.__name__}.onnx'
        if not path.exists():
            builder = Builder(network.__name__)
            model = builder.model(network(builder))
            if round(builder.multiply_adds / 1e6) != MILLIONS[network.__name__]:
                raise ValueError(f'{network.__name__} has {builder.multiply_adds / 1e6:.2f} million multiply-adds, not '
                                 f'{MILLIONS[network.__name__]}')
            onnx.save(model, path)
        yield network.__name__, path
