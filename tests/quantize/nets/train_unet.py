"""unet.onnx: a U-Net that takes noise out of pictures: skip connections joined by Concat, upsampling by transposed
convolution, a regression whose error shows in every output.
"""
import torch
from torch import nn
from training import export, fit, samples


def pair(into, out):
    return nn.Sequential(nn.Conv2d(into, out, 3, padding=1), nn.BatchNorm2d(out), nn.LeakyReLU(0.1),
                         nn.Conv2d(out, out, 3, padding=1), nn.LeakyReLU(0.1))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = pair(1, 10), pair(10, 18), pair(18, 28)
        self.up2, self.up1 = nn.ConvTranspose2d(28, 18, 2, 2), nn.ConvTranspose2d(18, 10, 2, 2)
        self.d, self.e, self.out = pair(36, 18), pair(20, 10), nn.Conv2d(10, 1, 1)

    def forward(self, x):
        a = self.a(x)
        b = self.b(nn.functional.max_pool2d(a, 2))
        c = self.c(nn.functional.max_pool2d(b, 2))
        d = self.d(torch.cat([self.up2(c), b], 1))
        return x + self.out(self.e(torch.cat([self.up1(d), a], 1)))


def loss(output, clean):
    return nn.functional.mse_loss(output, clean) * 100


model = fit(UNet(), "unet", n=4000, epochs=6, loss=loss)
with torch.no_grad():
    (x,), (clean,) = samples("unet", 500, 2)
    for what, got in (("noisy", x), ("restored", model(x))):
        print(f"{what}: {10 * torch.log10((clean ** 2).sum() / ((got - clean) ** 2).sum()):.2f} dB")
export(model, "unet", ("restored",))
