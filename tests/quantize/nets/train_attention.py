"""attention.onnx: a transformer encoder (softmax attention, pre-LayerNorm, GELU) that finds a marker in a sequence and
names what follows. Then, as large language models grow them, a few channels of every LayerNorm are made 20 to 60 times
larger and what reads them as much smaller.
"""
import torch
from torch import nn
from training import accuracy, export, fit

WIDTH, HEADS, LENGTH = 32, 4, 16


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        n = x.shape[0]
        q, k, v = self.qkv(self.norm1(x)).view(n, LENGTH, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4).unbind(0)
        a = torch.softmax(q @ k.transpose(2, 3) * (WIDTH // HEADS) ** -0.5, 3) @ v
        x = x + self.out(a.transpose(1, 2).reshape(n, LENGTH, WIDTH))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.into, self.place = nn.Linear(8, WIDTH), nn.Parameter(torch.randn(1, LENGTH, WIDTH) * 0.5)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.norm, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 5)

    def forward(self, x):
        x = self.into(x) + self.place
        for block in self.blocks:
            x = block(x)
        return self.out(self.norm(x).mean(1))


@torch.no_grad()
def grow(model):
    random = torch.Generator().manual_seed(5)
    for block in model.blocks:
        for norm, reader in ((block.norm1, block.qkv), (block.norm2, block.up)):
            for channel in torch.randperm(WIDTH, generator=random)[:3]:
                factor = 20 + 40 * torch.rand(1, generator=random).item()
                norm.weight[channel] *= factor
                norm.bias[channel] *= factor
                reader.weight[:, channel] /= factor


model = fit(Encoder(), "attention", n=24000, epochs=24, rate=4e-3)
before = accuracy(model, "attention")
grow(model)
print(f"accuracy {before:.2f} %, with outliers {accuracy(model, 'attention'):.2f} %")
export(model, "attention")
