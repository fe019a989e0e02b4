#!/usr/bin/env python3
"""Trains the demo's network on scikit-learn's handwritten digits and writes it as an ONNX file.

    python3 -m venv venv && venv/bin/pip install numpy scikit-learn onnx==1.23.2 onnxruntime==1.31.1
    venv/bin/python train.py

Training is plain NumPy: a small residual network, Adam, one-pixel shifts, fixed seed. Writes, beside itself:

    digits.onnx           the network as exporters write it: BatchNormalization unfused, the batch left open
                          ('N'), and a Shape/Gather/Concat/Reshape chain in front of the classifier
    digits_eval.npz       'image' [540, 1, 8, 8] float32 in 0..16 and 'label' [540] int64, not used in training
    digits_expected.npz   'probabilities' [540, 10] float32: what onnxruntime computes for digits_eval.npz
    digits.sources.sha256 hashes of this script and of the three files (check_fresh.py compares them)

Another BLAS may round differently, so a repeated training gives an equally good network, not the same bytes.
"""
import hashlib
import pathlib

import numpy as np
import onnx
import onnxruntime
import sklearn.datasets
from onnx import TensorProto, helper, numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
SEED, EVAL, EPOCHS, BATCH, RATE = 20261121, 540, 40, 32, 2e-3
BN_EPS, BN_KEEP = 1e-5, 0.9


class Conv:
    """3x3, padding 1, no bias; activations are NCHW."""

    def __init__(self, rng, cin, cout):
        self.p = {'w': (rng.standard_normal((cout, cin, 3, 3)) * np.sqrt(2 / (9 * cin))).astype(np.float32)}

    def forward(self, x, training):
        n, c, h, w = x.shape
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        taps = [padded[:, :, i:i + h, j:j + w] for i in range(3) for j in range(3)]
        self.cols = np.stack(taps, 2).transpose(0, 3, 4, 1, 2).reshape(n * h * w, c * 9)
        self.shape = x.shape
        return (self.cols @ self.p['w'].reshape(len(self.p['w']), -1).T).reshape(n, h, w, -1).transpose(0, 3, 1, 2)

    def backward(self, g):
        n, c, h, w = self.shape
        g = g.transpose(0, 2, 3, 1).reshape(n * h * w, -1)
        self.g = {'w': (g.T @ self.cols).reshape(self.p['w'].shape)}
        cols = (g @ self.p['w'].reshape(len(self.p['w']), -1)).reshape(n, h, w, c, 9).transpose(0, 3, 4, 1, 2)
        out = np.zeros((n, c, h + 2, w + 2), np.float32)
        for k in range(9):
            out[:, :, k // 3:k // 3 + h, k % 3:k % 3 + w] += cols[:, :, k]
        return out[:, :, 1:-1, 1:-1]


class BatchNorm:
    def __init__(self, channels):
        self.p = {'scale': np.ones(channels, np.float32), 'bias': np.zeros(channels, np.float32)}
        self.mean, self.var = np.zeros(channels, np.float32), np.ones(channels, np.float32)

    def forward(self, x, training):
        if training:
            mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
            self.mean = BN_KEEP * self.mean + (1 - BN_KEEP) * mean
            self.var = BN_KEEP * self.var + (1 - BN_KEEP) * var
        else:
            mean, var = self.mean, self.var
        self.inv = (1 / np.sqrt(var + BN_EPS)).astype(np.float32)[:, None, None]
        self.xhat = (x - mean[:, None, None]) * self.inv
        return self.xhat * self.p['scale'][:, None, None] + self.p['bias'][:, None, None]

    def backward(self, g):
        self.g = {'scale': (g * self.xhat).sum((0, 2, 3)), 'bias': g.sum((0, 2, 3))}
        mean = lambda a: a.mean((0, 2, 3))[:, None, None]
        return self.p['scale'][:, None, None] * self.inv * (g - mean(g) - self.xhat * mean(g * self.xhat))


class Relu:
    p, g = {}, {}

    def forward(self, x, training):
        self.on = x > 0
        return x * self.on

    def backward(self, g):
        return g * self.on


class Pool:
    """2x2, stride 2."""
    p, g = {}, {}

    def __init__(self, average):
        self.average = average

    def forward(self, x, training):
        n, c, h, w = x.shape
        t = x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, h // 2, w // 2, 4)
        self.at = t.argmax(-1)
        return t.mean(-1) if self.average else t.max(-1)

    def backward(self, g):
        n, c, h, w = g.shape
        share = np.full(4, 0.25, np.float32) if self.average else np.eye(4, dtype=np.float32)[self.at]
        t = (g[..., None] * share).reshape(n, c, h, w, 2, 2)
        return t.transpose(0, 1, 2, 4, 3, 5).reshape(n, c, 2 * h, 2 * w)


class Dense:
    def __init__(self, rng, fan_in, fan_out):
        self.p = {'w': (rng.standard_normal((fan_in, fan_out)) / np.sqrt(fan_in)).astype(np.float32),
                  'b': np.zeros(fan_out, np.float32)}

    def forward(self, x, training):
        self.x, self.shape = x.reshape(len(x), -1), x.shape
        return self.x @ self.p['w'] + self.p['b']

    def backward(self, g):
        self.g = {'w': self.x.T @ g, 'b': g.sum(0)}
        return (g @ self.p['w'].T).reshape(self.shape)


class Network:
    def __init__(self, rng):
        self.stem = [Conv(rng, 1, 16), BatchNorm(16), Relu()]
        self.branch = [Conv(rng, 16, 16), BatchNorm(16), Relu(), Conv(rng, 16, 16), BatchNorm(16)]
        self.joined = [Relu(), Pool(False), Conv(rng, 16, 32), BatchNorm(32), Relu(), Pool(True), Dense(rng, 128, 10)]
        self.layers = self.stem + self.branch + self.joined

    def forward(self, x, training=False):
        def through(layers, v):
            for layer in layers:
                v = layer.forward(v, training)
            return v
        x = through(self.stem, x / np.float32(16))
        return through(self.joined, x + through(self.branch, x))

    def backward(self, g):
        def through(layers, v):
            for layer in reversed(layers):
                v = layer.backward(v)
            return v
        g = through(self.joined, g)
        through(self.stem, g + through(self.branch, g))


def train(images, labels):
    rng = np.random.default_rng(SEED)
    net = Network(rng)
    moments = [{k: [np.zeros_like(v), np.zeros_like(v)] for k, v in layer.p.items()} for layer in net.layers]
    step, steps = 0, EPOCHS * (len(images) // BATCH)
    for epoch in range(EPOCHS):
        order, loss = rng.permutation(len(images)), 0.0
        for start in range(0, len(order) - BATCH + 1, BATCH):
            pick = order[start:start + BATCH]
            x = np.pad(images[pick], ((0, 0), (0, 0), (1, 1), (1, 1)))
            dy, dx = rng.integers(0, 3, 2)
            z = net.forward(x[:, :, dy:dy + 8, dx:dx + 8], training=True)
            z = np.exp(z - z.max(1, keepdims=True))
            p = z / z.sum(1, keepdims=True)
            target = 0.95 * np.eye(10, dtype=np.float32)[labels[pick]] + np.float32(0.005)
            loss -= float((target * np.log(p + 1e-9)).sum()) / len(images)
            net.backward(((p - target) / BATCH).astype(np.float32))
            step += 1
            rate = RATE * 0.5 * (1 + np.cos(np.pi * step / steps))
            for layer, moment in zip(net.layers, moments):
                for k, (m, v) in moment.items():
                    m += 0.1 * (layer.g[k] - m)
                    v += 0.001 * (layer.g[k] ** 2 - v)
                    layer.p[k] -= (rate * m / (1 - 0.9 ** step) / (np.sqrt(v / (1 - 0.999 ** step)) + 1e-8)).astype(np.float32)
        if epoch % 5 == 4:
            print(f'epoch {epoch + 1:2d}  loss {loss:.4f}')
    return net


def export(net):
    """The graph as exporters write it: nothing folded, shapes computed at run time."""
    nodes, weights = [], []

    def weight(name, value):
        weights.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(op, inputs, output, **attributes):
        nodes.append(helper.make_node(op, inputs, [output], name=f'/{output}', **attributes))
        return output

    def constant(name, value):
        return node('Constant', [], name, value=numpy_helper.from_array(np.array(value)))

    def conv_bn(x, tag, conv, bn):
        x = node('Conv', [x, weight(f'{tag}.weight', conv.p['w'])], f'{tag}/conv', kernel_shape=[3, 3],
                 pads=[1, 1, 1, 1], strides=[1, 1], dilations=[1, 1], group=1)
        return node('BatchNormalization', [x, weight(f'{tag}.scale', bn.p['scale']), weight(f'{tag}.bias', bn.p['bias']),
                                           weight(f'{tag}.mean', bn.mean), weight(f'{tag}.var', bn.var)],
                    f'{tag}/bn', epsilon=BN_EPS, momentum=BN_KEEP)

    x = node('Div', ['image', constant('sixteen', np.float32(16))], 'scaled')
    x = node('Relu', [conv_bn(x, 'stem', *net.stem[:2])], 'stem/relu')
    y = node('Relu', [conv_bn(x, 'block/1', *net.branch[:2])], 'block/1/relu')
    y = node('Add', [conv_bn(y, 'block/2', *net.branch[3:]), x], 'block/add')
    y = node('Relu', [y], 'block/relu')
    y = node('MaxPool', [y], 'pool', kernel_shape=[2, 2], strides=[2, 2])
    y = node('Relu', [conv_bn(y, 'wide', *net.joined[2:4])], 'wide/relu')
    y = node('AveragePool', [y], 'mean', kernel_shape=[2, 2], strides=[2, 2])
    size = node('Shape', [y], 'flatten/shape')
    size = node('Gather', [size, constant('flatten/zero', np.int64(0))], 'flatten/batch', axis=0)
    size = node('Unsqueeze', [size, constant('flatten/axis', np.array([0], np.int64))], 'flatten/batch1')
    size = node('Concat', [size, constant('flatten/rest', np.array([-1], np.int64))], 'flatten/to', axis=0)
    y = node('Reshape', [y, size], 'flatten')
    y = node('MatMul', [y, weight('head.weight', net.joined[-1].p['w'])], 'head/product')
    y = node('Add', [weight('head.bias', net.joined[-1].p['b']), y], 'logits')
    node('Softmax', [y], 'probabilities', axis=1)
    graph = helper.make_graph(nodes, 'digits', [helper.make_tensor_value_info('image', TensorProto.FLOAT, ['N', 1, 8, 8])],
                              [helper.make_tensor_value_info('probabilities', TensorProto.FLOAT, ['N', 10])], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8,
                              producer_name='examples/digits/train.py')
    onnx.checker.check_model(model, full_check=True)
    return model


def main():
    digits = sklearn.datasets.load_digits()
    images, labels = digits.images.astype(np.float32)[:, None], digits.target.astype(np.int64)
    order = np.random.default_rng(SEED).permutation(len(images))
    held_out, used = order[:EVAL], order[EVAL:]
    net = train(images[used], labels[used])
    onnx.save(export(net), HERE / 'digits.onnx')

    session = onnxruntime.InferenceSession(HERE / 'digits.onnx', providers=['CPUExecutionProvider'])
    got = session.run(None, {'image': images[held_out]})[0]
    z = net.forward(images[held_out])
    z = np.exp(z - z.max(1, keepdims=True))
    np.testing.assert_allclose(got, z / z.sum(1, keepdims=True), atol=1e-5)
    right = int((got.argmax(1) == labels[held_out]).sum())
    print(f'accuracy on {EVAL} held-out images: {100 * right / EVAL:.2f} % ({right})')
    assert right >= 0.97 * EVAL
    np.savez_compressed(HERE / 'digits_eval.npz', image=images[held_out], label=labels[held_out])
    np.savez_compressed(HERE / 'digits_expected.npz', probabilities=got)

    names = ['train.py', 'digits.onnx', 'digits_eval.npz', 'digits_expected.npz']
    lines = [f'{hashlib.sha256((HERE / name).read_bytes()).hexdigest()}  {name}\n' for name in names]
    (HERE / 'digits.sources.sha256').write_text(''.join(lines))


main()
