"""The example's diffusion transformer: blocks as in Flux and SD3, made small.

Tokens of the label and of the picture's patches attend to each other. A double block has weights of its own for each of the two, a
single block has one set for both. Queries and keys have RMS norms and rotary positions, whose frequencies are computed in float64;
the time and the label give scale, shift and gate of every layer norm (adaLN). Needs torch.
"""
import dataclasses

import torch
from torch import nn
from torch.nn import functional as F


@dataclasses.dataclass
class Shape:
    side: int = 8  # pixels
    patch: int = 2
    labels: int = 10  # one more stands for no label
    label_tokens: int = 4
    width: int = 64
    heads: int = 4
    axes: tuple = (4, 6, 6)  # of a head, turned by a label token's number, a patch's row, its column
    double_blocks: int = 1
    single_blocks: int = 3


def rotary(ids, axes):
    """ids [T, 3], the position of each token on each axis: cosines and sines [T, heads' size], float32."""
    parts = []
    for i, size in enumerate(axes):
        frequencies = 1.0 / 10000.0 ** (torch.arange(0, size, 2, dtype=torch.float64, device=ids.device) / size)
        parts.append(torch.outer(ids[:, i], frequencies).repeat_interleave(2, dim=1))
    angles = torch.cat(parts, dim=1)
    return angles.cos().float(), angles.sin().float()


def turn(x, cos, sin):
    """x [B, heads, T, size]: neighbours turned together."""
    a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
    across = torch.stack([-b, a], -1).flatten(-2)
    return (x.float() * cos + across.float() * sin).to(x.dtype)


class Attention(nn.Module):
    """Queries, keys and values of one stream [B, T, width]: each [B, heads, T, size]."""

    def __init__(self, s):
        super().__init__()
        self.heads = s.heads
        self.qkv = nn.Linear(s.width, 3 * s.width)
        self.q_norm = nn.RMSNorm(s.width // s.heads, eps=1e-6)
        self.k_norm = nn.RMSNorm(s.width // s.heads, eps=1e-6)
        self.out = nn.Linear(s.width, s.width)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        return self.q_norm(q), self.k_norm(k), v


def attend(q, k, v, positions):
    y = F.scaled_dot_product_attention(turn(q, *positions), turn(k, *positions), v)
    return y.transpose(1, 2).flatten(2)


class Modulation(nn.Module):
    """`count` vectors [B, 1, width] from the time and the label [B, width]."""

    def __init__(self, s, count):
        super().__init__()
        self.count = count
        self.linear = nn.Linear(s.width, count * s.width)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, given):
        return self.linear(F.silu(given))[:, None].chunk(self.count, -1)


class Stream(nn.Module):
    """What a double block has for each kind of token, and a single block for both."""

    def __init__(self, s):
        super().__init__()
        self.modulation = Modulation(s, 6)
        self.norm = nn.LayerNorm(s.width, elementwise_affine=False, eps=1e-6)
        self.attention = Attention(s)
        self.feed = nn.Sequential(nn.Linear(s.width, 4 * s.width), nn.GELU(approximate='tanh'), nn.Linear(4 * s.width, s.width))

    def before(self, x, given):
        shift, scale, *self_gates = self.modulation(given)
        return self.attention(self.norm(x) * (1 + scale) + shift), self_gates

    def after(self, x, y, gates):
        gate, shift, scale, feed_gate = gates
        x = x + gate * self.attention.out(y)
        return x + feed_gate * self.feed(self.norm(x) * (1 + scale) + shift)


class DoubleBlock(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.label, self.picture = Stream(s), Stream(s)

    def forward(self, label, picture, given, positions):
        (a, label_gates), (b, picture_gates) = self.label.before(label, given), self.picture.before(picture, given)
        y = attend(*(torch.cat(pair, 2) for pair in zip(a, b)), positions)
        count = label.shape[1]
        return self.label.after(label, y[:, :count], label_gates), self.picture.after(picture, y[:, count:], picture_gates)


class SingleBlock(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.both = Stream(s)

    def forward(self, x, given, positions):
        qkv, gates = self.both.before(x, given)
        return self.both.after(x, attend(*qkv, positions), gates)


class Denoiser(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.shape = s
        self.patches = nn.Conv2d(1, s.width, s.patch, stride=s.patch)
        self.label_tokens = nn.Embedding(s.labels + 1, s.label_tokens * s.width)
        self.label = nn.Embedding(s.labels + 1, s.width)
        self.time = nn.Sequential(nn.Linear(s.width, s.width), nn.SiLU(), nn.Linear(s.width, s.width))
        self.doubles = nn.ModuleList(DoubleBlock(s) for _ in range(s.double_blocks))
        self.singles = nn.ModuleList(SingleBlock(s) for _ in range(s.single_blocks))
        self.modulation = Modulation(s, 2)
        self.norm = nn.LayerNorm(s.width, elementwise_affine=False, eps=1e-6)
        self.out = nn.Linear(s.width, s.patch ** 2)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def embed_time(self, t):
        """t [B] in 0 to 1, float32: [B, width] of the weights' type."""
        frequencies = 10000.0 ** (-torch.arange(0, self.shape.width, 2, dtype=torch.float32, device=t.device) / self.shape.width)
        angles = 1000 * t[:, None] * frequencies
        return self.time(torch.cat([angles.cos(), angles.sin()], -1).to(self.out.weight.dtype))

    def forward(self, x, t, label):
        """x [B, 1, side, side], t float32 [B] (0: noise, 1: picture), label int64 [B]: the velocity, as x."""
        s = self.shape
        rows = s.side // s.patch
        place = torch.arange(rows, device=x.device)
        ids = torch.zeros(s.label_tokens + rows * rows, 3, dtype=torch.float64, device=x.device)
        ids[:s.label_tokens, 0] = torch.arange(s.label_tokens, device=x.device).double()
        ids[s.label_tokens:, 1] = place.repeat_interleave(rows).double()
        ids[s.label_tokens:, 2] = place.repeat(rows).double()
        positions = rotary(ids, s.axes)
        given = self.embed_time(t) + self.label(label)
        tokens = self.label_tokens(label).unflatten(-1, (s.label_tokens, s.width))
        picture = self.patches(x).flatten(2).transpose(1, 2)
        for block in self.doubles:
            tokens, picture = block(tokens, picture, given, positions)
        both = torch.cat([tokens, picture], 1)
        for block in self.singles:
            both = block(both, given, positions)
        shift, scale = self.modulation(given)
        y = self.out(self.norm(both[:, s.label_tokens:]) * (1 + scale) + shift)
        return F.pixel_shuffle(y.transpose(1, 2).unflatten(-1, (rows, rows)), s.patch)


class Step(nn.Module):
    """One step of Euler's method from noise to a picture, with classifier-free guidance: what is exported.

    latent float32 [1, 1, side, side] and step int64 [1] (0 is the first) become those of the next step. label, steps (how many there
    are) int64 [1], guidance float32 [1]: 1 follows the label as trained, 0 ignores it.
    """

    def __init__(self, denoiser):
        super().__init__()
        self.denoiser = denoiser

    def forward(self, latent, step, label, steps, guidance):
        size = 1.0 / steps.float()
        labels = torch.cat([label, torch.full_like(label, self.denoiser.shape.labels)])
        x = torch.cat([latent, latent]).to(self.denoiser.out.weight.dtype)
        with_label, without = self.denoiser(x, (step * size).expand(2), labels).float().chunk(2)
        return latent + size * (without + guidance * (with_label - without)), step + 1
