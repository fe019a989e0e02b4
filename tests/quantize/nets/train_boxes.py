"""boxes.onnx: a detector-like head on a small convolutional network; its one output joins a box in pixels (0..300) with
three scores (0..1), so that one range for both leaves the scores a single step.
"""
import torch
from torch import nn
from training import export, fit, samples


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        layers, into = [], 1
        for out, stride in ((12, 2), (20, 2), (28, 1), (32, 2)):
            layers += [nn.Conv2d(into, out, 3, stride, 1), nn.BatchNorm2d(out), nn.ReLU()]
            into = out
        self.body = nn.Sequential(*layers, nn.Conv2d(32, 16, 1), nn.ReLU(), nn.Flatten())
        self.place, self.kind = nn.Linear(16 * 25, 4), nn.Linear(16 * 25, 3)

    def forward(self, x):
        x = self.body(x)
        return torch.cat([torch.sigmoid(self.place(x)) * 300, torch.softmax(self.kind(x), 1)], 1)


def loss(output, box, label):
    return (nn.functional.smooth_l1_loss(output[:, :4] / 300, box / 300, beta=0.05) * 10 +
            nn.functional.nll_loss(torch.log(output[:, 4:] + 1e-6), label))


model = fit(Detector(), "boxes", n=12000, epochs=10, loss=loss)
with torch.no_grad():
    (x,), (box, label) = samples("boxes", 2000, 2)
    found = model(x)
    print(f"kind {100 * (found[:, 4:].argmax(1) == label).float().mean():.2f} %, box off by "
          f"{(found[:, :4] - box).abs().mean():.2f} pixels of 300")
export(model, "boxes", ("found",))
