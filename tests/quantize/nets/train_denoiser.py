"""denoiser.onnx: a UNet as diffusers writes them, made small: two latents (guided and not), a step each whose projection
is a product "2 by 160" with constant frequencies, and a text's states read by cross attention.
"""
import math

import torch
from torch import nn
from training import export, fit, samples

WIDTH, TIME, DEEP = 16, 16, 20


class Residual(nn.Module):
    def __init__(self, into, out):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(4, into), nn.Conv2d(into, out, 3, padding=1)
        self.time = nn.Linear(TIME, out)
        self.norm2, self.conv2 = nn.GroupNorm(4, out), nn.Conv2d(out, out, 3, padding=1)
        self.short = nn.Conv2d(into, out, 1)

    def forward(self, x, time):
        h = self.conv1(nn.functional.silu(self.norm1(x))) + self.time(nn.functional.silu(time))[:, :, None, None]
        return self.short(x) + self.conv2(nn.functional.silu(self.norm2(h)))


class Cross(nn.Module):
    def __init__(self, width, text=16):
        super().__init__()
        self.norm, self.q = nn.GroupNorm(4, width), nn.Linear(width, width)
        self.k, self.v, self.out = nn.Linear(text, width), nn.Linear(text, width), nn.Linear(width, width)

    def forward(self, x, text):
        n, c, h, w = x.shape
        q, k, v = self.q(self.norm(x).reshape(n, c, h * w).transpose(1, 2)), self.k(text), self.v(text)
        a = torch.softmax(q @ k.transpose(1, 2) * c ** -0.5, 2) @ v
        return x + self.out(a).transpose(1, 2).reshape(n, c, h, w)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.frequencies = nn.Parameter(torch.exp(-math.log(10000) * torch.arange(160) / 160)[None], False)
        self.time = nn.Sequential(nn.Linear(320, TIME), nn.SiLU(), nn.Linear(TIME, TIME))
        self.into, self.down1 = nn.Conv2d(4, WIDTH, 3, padding=1), Residual(WIDTH, WIDTH)
        self.shrink, self.down2 = nn.Conv2d(WIDTH, WIDTH, 3, 2, 1), Residual(WIDTH, DEEP)
        self.cross, self.up1 = Cross(DEEP), Residual(DEEP + WIDTH, WIDTH)
        self.norm, self.out = nn.GroupNorm(4, WIDTH), nn.Conv2d(WIDTH, 4, 3, padding=1)

    def forward(self, sample, timestep, text):
        if sample.dim() == 5:  # training: many batches of two
            n = sample.shape[0]
            return self.forward(sample.flatten(0, 1), timestep.flatten(), text.flatten(0, 1)).unflatten(0, (n, 2))
        angle = timestep[:, None] * self.frequencies
        time = self.time(torch.cat([torch.cos(angle), torch.sin(angle)], 1))
        a = self.down1(self.into(sample), time)
        b = self.cross(self.down2(self.shrink(a), time), text)
        b = nn.functional.interpolate(b, scale_factor=2.0, mode="nearest")
        return self.out(nn.functional.silu(self.norm(self.up1(torch.cat([b, a], 1), time))))


model = fit(UNet(), "denoiser", n=4000, epochs=6, loss=lambda got, noise: nn.functional.mse_loss(got, noise))
with torch.no_grad():
    inputs, (noise,) = samples("denoiser", 300, 2)
    print(f"error of the noise {nn.functional.mse_loss(model(*inputs), noise):.3f}, of nothing {(noise ** 2).mean():.3f}")
export(model, "denoiser", ("noise",))
