"""depthwise.onnx: a small MobileNet (batch normalization, ReLU6, depthwise convolutions) whose channels then get ranges
from 1 to 100 without changing what it computes: a channel that never reaches 6 is made smaller by its batch
normalization, and the convolution behind it larger. Per-tensor ranges leave such channels one or two of 256 levels.
prelu.onnx: the same with PReLU, through which every channel can be rescaled, up or down.
"""
import sys

import torch
from torch import nn
from training import accuracy, export, fit, samples


class Unit(nn.Sequential):
    def __init__(self, act, into, out, kernel=1, stride=1, group=1):
        super().__init__(nn.Conv2d(into, out, kernel, stride, kernel // 2, groups=group, bias=False),
                         nn.BatchNorm2d(out), act(out) if act is nn.PReLU else act())


def network(act):
    layers = [Unit(act, 3, 16, 3, 2)]
    for into, out, stride in [(16, 24, 1), (24, 40, 2), (40, 40, 1), (40, 56, 2)]:
        layers += [Unit(act, into, into, 3, stride, into), Unit(act, into, out)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(56, 10))


def small(model):
    """Keeps normalized activations away from the 6, so that most channels can be rescaled."""
    return 1e-3 * sum(((u[1].bias.abs() + 3 * u[1].weight.abs() - 5).relu() ** 2).sum() for u in model
                      if isinstance(u, Unit))


@torch.no_grad()
def rescale(model):
    """Factors over a hundredfold, evenly in the logarithm; for ReLU6 those from 0.01 to 1, for the channels that stay below
    6 on training data.
    """
    x, random, done, of = samples("depthwise", 4000, 1)[0][0], torch.Generator().manual_seed(5), 0, 0
    units = [u for u in model if isinstance(u, Unit)]
    for unit, after in zip(units, units[1:]):
        x = unit(x)
        top = x.amax((0, 2, 3))
        factor = 10 ** (-2 * torch.rand(len(top), generator=random))
        if isinstance(unit[2], nn.ReLU6):
            factor[top > 5.5] = 1
        else:
            factor *= 10
        done, of = done + int((factor != 1).sum()), of + len(top)
        unit[1].weight *= factor
        unit[1].bias *= factor
        shape = (-1, 1, 1, 1) if after[0].groups > 1 else (1, -1, 1, 1)
        after[0].weight /= factor.view(shape)
        x = x * factor.view(1, -1, 1, 1)
    print(f"{done} of {of} channels rescaled")


for name, act in (("depthwise", nn.ReLU6), ("prelu", nn.PReLU)):
    if sys.argv[1:] and name not in sys.argv[1:]:
        continue
    torch.manual_seed(0)
    model = fit(network(act), name, epochs=14, penalty=small)
    before = accuracy(model, name)
    rescale(model)
    print(f"accuracy {before:.2f} %, rescaled {accuracy(model, name):.2f} %")
    export(model, name)
