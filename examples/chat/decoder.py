"""The example's language model: a decoder of transformer blocks, as they have been built since LLaMA.

RMS norms before attention and before a gated feed-forward part (SwiGLU), rotary positions, heads of queries that share keys
and values, embedding and head with the same weights. Needs torch.
"""
import dataclasses
import math

import torch
from torch import nn
from torch.nn import functional as F

import tokens


@dataclasses.dataclass
class Shape:
    tokens: int = tokens.COUNT  # of the vocabulary
    width: int = 256
    layers: int = 5
    heads: int = 8
    groups: int = 2  # heads of keys and values
    hidden: int = 640  # of the feed-forward part
    context: int = 256  # positions in training


class Block(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.heads, self.groups, self.size = s.heads, s.groups, s.width // s.heads
        self.attention_norm = nn.RMSNorm(s.width, eps=1e-5)
        self.q = nn.Linear(s.width, s.heads * self.size, bias=False)
        self.k = nn.Linear(s.width, s.groups * self.size, bias=False)
        self.v = nn.Linear(s.width, s.groups * self.size, bias=False)
        self.o = nn.Linear(s.heads * self.size, s.width, bias=False)
        self.feed_norm = nn.RMSNorm(s.width, eps=1e-5)
        self.gate = nn.Linear(s.width, s.hidden, bias=False)
        self.up = nn.Linear(s.width, s.hidden, bias=False)
        self.down = nn.Linear(s.hidden, s.width, bias=False)

    def forward(self, x, cos, sin, mask, past, drop):
        """x [B, S, width], mask [B, 1, S, T] (true: attends), past (keys, values) [B, groups, P, size] or None."""
        batch, length, _ = x.shape
        h = self.attention_norm(x)
        q = self.q(h).view(batch, length, self.heads, self.size).transpose(1, 2)
        k = self.k(h).view(batch, length, self.groups, self.size).transpose(1, 2)
        v = self.v(h).view(batch, length, self.groups, self.size).transpose(1, 2)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        shared = self.heads // self.groups
        y = F.scaled_dot_product_attention(q, k.repeat_interleave(shared, 1), v.repeat_interleave(shared, 1), attn_mask=mask)
        x = x + drop(self.o(y.transpose(1, 2).reshape(batch, length, -1)))
        h = self.feed_norm(x)
        return x + drop(self.down(F.silu(self.gate(h)) * self.up(h))), (k, v)


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat([-b, a], -1) * sin


class Decoder(nn.Module):
    def __init__(self, shape, dropout=0.0):
        super().__init__()
        self.shape = shape
        self.embed = nn.Embedding(shape.tokens, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.width, eps=1e-5)
        self.head = nn.Linear(shape.width, shape.tokens, bias=False)
        self.head.weight = self.embed.weight
        self.drop = nn.Dropout(dropout)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                scale = 0.02 / (math.sqrt(2 * shape.layers) if name.endswith(('o.weight', 'down.weight')) else 1)
                nn.init.normal_(p, std=scale)

    def begin(self, ids, positions, before=0):
        """What the first block takes: x [B, S, width], cosines and sines [B, 1, S, size], mask [B, 1, S, before + S]."""
        size = self.shape.width // self.shape.heads
        speeds = 10000.0 ** (-torch.arange(0, size, 2, device=ids.device, dtype=torch.float32) / size)
        angles = positions[:, None, :, None].float() * speeds
        angles = torch.cat([angles, angles], -1)
        keys = torch.arange(before + ids.shape[1], device=ids.device)
        x = self.embed(ids)
        return x, angles.cos().to(x.dtype), angles.sin().to(x.dtype), keys <= positions[:, None, :, None]

    def forward(self, ids, positions, past=None):
        """ids and positions int64 [B, S]; past: a list of (keys, values) of each block. Gives logits [B, S, tokens] and the new list."""
        x, cos, sin, mask = self.begin(ids, positions, 0 if past is None else past[0][0].shape[2])
        x, present = self.drop(x), []
        for i, block in enumerate(self.blocks):
            x, cache = block(x, cos, sin, mask, None if past is None else past[i], self.drop)
            present.append(cache)
        return self.head(self.norm(x)), present
