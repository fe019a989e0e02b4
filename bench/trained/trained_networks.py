"""The networks of train.py: their modules, and how each is trained."""
import torch
from torch import nn

F = nn.functional


class Network(nn.Module):
    outputs, finish = ["scores"], None

    def prepare(self, *inputs):
        """Sees the training inputs before training."""


class Served(nn.Module):
    """A network as it is exported: with the function behind its last layer (`finish`), which its loss computes in training."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, *inputs):
        got = self.network(*inputs)
        return got if self.network.finish is None else self.network.finish(got)


def softmax(scores):
    return torch.softmax(scores, -1)


class Chain(Network):
    def __init__(self, *layers, outputs=("scores",), finish=None):
        super().__init__()
        self.layers, self.outputs, self.finish = nn.Sequential(*layers), list(outputs), finish

    def forward(self, x):
        return self.layers(x)


class Columns(Chain):
    """A network of raw columns: it is trained on standardized ones, and its first layer is then given the units."""

    def prepare(self, x):
        self.mean, self.deviation = x.mean(0), x.std(0)

    def forward(self, x):
        return self.layers((x - self.mean) / self.deviation) if self.training else self.layers(x)

    def train(self, mode=True):
        if self.training and not mode:
            first = self.layers[0]
            with torch.no_grad():
                first.weight /= self.deviation
                first.bias -= first.weight @ self.mean
        return super().train(mode)


def conv(into, out, kernel, stride=1, groups=1, act=nn.ReLU, kind=nn.Conv2d, norm=nn.BatchNorm2d):
    return nn.Sequential(kind(into, out, kernel, stride, kernel // 2, groups=groups, bias=False), norm(out), act())


def conv1d(into, out, kernel, stride=1, groups=1):
    return conv(into, out, kernel, stride, groups, kind=nn.Conv1d, norm=nn.BatchNorm1d)


class Residual(nn.Module):
    def __init__(self, into, out, stride):
        super().__init__()
        self.body = nn.Sequential(conv(into, out, 3, stride), conv(out, out, 3, act=nn.Identity))
        self.short = conv(into, out, 1, stride, act=nn.Identity) if into != out else nn.Identity()

    def forward(self, x):
        return torch.relu(self.short(x) + self.body(x))


class ChannelNorm(nn.LayerNorm):
    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNext(nn.Module):
    """As ConvNeXt: 7x7 depthwise, LayerNorm, two products with GELU between them, a scale of each channel."""

    def __init__(self, width):
        super().__init__()
        self.mix, self.norm = nn.Conv2d(width, width, 7, padding=3, groups=width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.scale = nn.Parameter(0.1 * torch.ones(width))

    def forward(self, x):
        h = self.norm(self.mix(x).permute(0, 2, 3, 1))
        return x + (self.scale * self.down(F.gelu(self.up(h)))).permute(0, 3, 1, 2)


class Gate(nn.Module):
    """Squeeze and excitation."""

    def __init__(self, width):
        super().__init__()
        self.a, self.b = nn.Conv2d(width, width // 4, 1), nn.Conv2d(width // 4, width, 1)

    def forward(self, x):
        return x * torch.sigmoid(self.b(F.silu(self.a(x.mean((2, 3), keepdim=True)))))


class Inverted(nn.Module):
    """As EfficientNet's blocks: expansion, depthwise convolution, gate, projection, with SiLU."""

    def __init__(self, into, out, stride, kernel=3):
        super().__init__()
        wide = 3 * into
        self.body = nn.Sequential(conv(into, wide, 1, act=nn.SiLU), conv(wide, wide, kernel, stride, wide, act=nn.SiLU), Gate(wide),
                                  conv(wide, out, 1, act=nn.Identity))
        self.same = into == out and stride == 1

    def forward(self, x):
        return x + self.body(x) if self.same else self.body(x)


class Pooled(nn.Module):
    def __init__(self, into, out):
        super().__init__()
        self.out = nn.Linear(into, out)

    def forward(self, x):
        return self.out(x.mean(tuple(range(2, x.dim()))))


class Bytes(nn.Module):
    """A camera's bytes to numbers around 0."""

    def forward(self, x):
        return (x - 127.5) / 64


class Loads(Network):
    outputs = ["next"]

    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.LSTM(2, 32, batch_first=True), nn.Linear(32, 4)

    def forward(self, x):
        return self.out(self.cell(x)[0][:, -1]) + x[:, -1, :1]


class UNet(Network):
    outputs = ["restored"]

    def __init__(self):
        super().__init__()
        self.a, self.b = conv(3, 12, 3), nn.Sequential(conv(12, 20, 3, 2), conv(20, 20, 3))
        self.c = nn.Sequential(conv(20, 28, 3, 2), conv(28, 28, 3))
        self.d, self.e = conv(48, 20, 3), conv(32, 12, 3)
        self.out = nn.Conv2d(12, 3, 3, padding=1)

    def forward(self, x):
        a = self.a(x)
        b = self.b(a)
        c = F.interpolate(self.c(b), scale_factor=2.0, mode="nearest")
        d = F.interpolate(self.d(torch.cat([c, b], 1)), scale_factor=2.0, mode="nearest")
        return x - self.out(self.e(torch.cat([d, a], 1)))


class Detector(Network):
    outputs = ["boxes", "scores"]

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(conv(1, 12, 3, 2), conv(12, 24, 3, 2), conv(24, 32, 3, 2), conv(32, 32, 3))
        self.boxes, self.scores = nn.Conv2d(32, 4, 1), nn.Conv2d(32, 2, 1)

    def forward(self, x):
        x = self.body(x)
        return [head(x).permute(0, 2, 3, 1).flatten(1, 2) for head in (self.boxes, self.scores)]

    @staticmethod
    def finish(got):
        cell = torch.arange(36)
        centre = torch.stack([cell % 6, cell // 6], 1) * 8.0 + 4
        return torch.cat([got[0][..., :2] * 8 + centre, torch.exp(got[0][..., 2:]) * 12], 2), torch.sigmoid(got[1])


def detection_loss(got, box, score):
    there = score.sum(-1, keepdim=True)
    miss = F.binary_cross_entropy_with_logits(got[1], score)
    return 5 * miss + (there * F.smooth_l1_loss(Detector.finish(got)[0], box, reduction="none")).sum() / (there.sum() * 16 + 1)


class Attend(nn.Module):
    """A transformer's block: LayerNorm, attention of two heads, LayerNorm, two products with GELU."""

    def __init__(self, width):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        n, t, w = x.shape
        q, k, v = self.qkv(self.norm1(x)).reshape(n, t, 3, 2, w // 2).permute(2, 0, 3, 1, 4).unbind(0)
        a = torch.softmax(q @ k.transpose(2, 3) * (w // 2) ** -0.5, 3) @ v
        x = x + self.out(a.transpose(1, 2).reshape(n, t, w))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Tagger(Network):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(200, 32), nn.Parameter(0.3 * torch.randn(24, 32))
        self.blocks, self.norm, self.out = nn.Sequential(Attend(32), Attend(32)), nn.LayerNorm(32), nn.Linear(32, 6)

    def forward(self, ids):
        return self.out(self.norm(self.blocks(self.words(ids) + self.places)))


class NormOutlier(Network):
    """Frames through two blocks whose residual stream has a channel of 60, changing with the sample, as language models have."""

    def __init__(self):
        super().__init__()
        self.into, self.places = nn.Linear(16, 32), nn.Parameter(0.3 * torch.randn(16, 32))
        self.blocks, self.norm, self.out = nn.Sequential(Attend(32), Attend(32)), nn.LayerNorm(32), nn.Linear(32, 5)
        with torch.no_grad():
            self.into.bias[5] = 60
            self.into.weight[5] *= 30

    def forward(self, x):
        return self.out(self.norm(self.blocks(self.into(x) + self.places)).mean(1))


def tags(got, tag):
    return F.cross_entropy(got.flatten(0, 1), tag.flatten())


def relu_chain(*widths):
    return [x for a, b in zip(widths, widths[1:]) for x in (nn.Linear(a, b), nn.ReLU())][:-1]


CLASSES, SQUARES = F.cross_entropy, F.mse_loss
# name: network, training samples, epochs, rate, loss
NETWORKS = {
    "audio-words": (lambda: Chain(conv1d(1, 16, 31, 8), conv1d(16, 24, 9, 4), conv1d(24, 32, 5, 2), conv1d(32, 32, 5, 2), Pooled(32, 6)),
                    6000, 8, 4e-3, CLASSES),
    "audio-keywords": (lambda: Chain(conv1d(20, 32, 5), conv1d(32, 32, 7, 2, 32), conv1d(32, 40, 1), conv1d(40, 40, 7, 1, 40),
                                     conv1d(40, 40, 1), Pooled(40, 8), finish=softmax), 8000, 6, 4e-3, CLASSES),
    "tabular-cells": (lambda: Columns(*relu_chain(30, 48, 24, 2)), 8000, 10, 3e-3, CLASSES),
    "tabular-prices": (lambda: Columns(*relu_chain(10, 64, 32, 1), outputs=["price"]), 16000, 20, 3e-3, F.smooth_l1_loss),
    "mlp-digits": (lambda: Chain(*relu_chain(784, 128, 64, 10)), 6000, 8, 2e-3, CLASSES),
    "cnn-softmax": (lambda: Chain(conv(3, 12, 3), Residual(12, 16, 2), Residual(16, 24, 2), Pooled(24, 10), finish=softmax),
                    6000, 7, 4e-3, CLASSES),
    "convnext": (lambda: Chain(nn.Conv2d(3, 24, 4, 4), ChannelNorm(24), ConvNext(24), ConvNext(24), ConvNext(24), Pooled(24, 8)),
                 5000, 6, 3e-3, CLASSES),
    "efficient-se": (lambda: Chain(Bytes(), conv(3, 12, 3, 2, act=nn.SiLU), Inverted(12, 16, 2), Inverted(16, 16, 1), Inverted(16, 24, 2, 5),
                                   conv(24, 48, 1, act=nn.SiLU), Pooled(48, 10)), 6000, 7, 4e-3, CLASSES),
    "lstm-loads": (Loads, 8000, 6, 4e-3, SQUARES),
    "denoiser-unet": (UNet, 2000, 5, 4e-3, SQUARES),
    "detector": (Detector, 5000, 8, 4e-3, detection_loss),
    "tagger": (Tagger, 6000, 8, 4e-3, tags),
    "norm-outlier": (NormOutlier, 8000, 8, 3e-3, CLASSES),
    "autoencoder": (lambda: Chain(nn.Linear(120, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 12), nn.BatchNorm1d(12), nn.ReLU(),
                                  nn.Linear(12, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 120), outputs=["spectrum_again"]),
                    8000, 10, 4e-3, SQUARES)}
