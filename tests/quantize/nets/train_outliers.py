"""outliers.onnx: a residual convolutional classifier of waves. Readings that are 30 to 100 times too large come up in one
sample of 16. And without changing what the network computes, three channels of the residual stream then carry a constant
of 60 to 100, as normalization-free streams tend to, and two hidden channels of every block are 100 times larger.
"""
import torch
from torch import nn
from training import accuracy, export, fit

WIDTH = 24


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.into, self.mix = nn.Conv1d(WIDTH, 32, 1), nn.Conv1d(32, 32, 5, padding=2, groups=8)
        self.out = nn.Conv1d(32, WIDTH, 1)

    def forward(self, x):
        return x + self.out(torch.relu(self.mix(torch.relu(self.into(x)))))


class Waves(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.blocks = nn.Conv1d(2, WIDTH, 7, 2, 3), nn.ModuleList([Block() for _ in range(3)])
        self.out = nn.Linear(WIDTH, 5)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.out(x.mean(2))


@torch.no_grad()
def spread(model):
    random = torch.Generator().manual_seed(5)
    for channel in torch.randperm(WIDTH, generator=random)[:3]:
        constant = (60 + 40 * torch.rand(1, generator=random)).item() * (-1) ** int(channel)
        model.stem.bias[channel] += constant
        for reader in [b.into for b in model.blocks] + [model.out]:
            reader.bias -= reader.weight[:, channel].reshape(-1) * constant
    for block in model.blocks:
        for channel in torch.randperm(32, generator=random)[:2]:
            block.into.weight[channel] *= 100
            block.into.bias[channel] *= 100
            group, place = divmod(int(channel), 4)
            block.mix.weight[4 * group:4 * group + 4, place] /= 100


model = fit(Waves(), "outliers", n=24000, epochs=16)
before = accuracy(model, "outliers")
spread(model)
print(f"accuracy {before:.2f} %, with outliers {accuracy(model, 'outliers'):.2f} %")
export(model, "outliers")
