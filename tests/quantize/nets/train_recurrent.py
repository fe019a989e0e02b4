"""lstm.onnx and gru.onnx: two recurrent classifiers of word-like spectra (ONNX's LSTM and GRU operators)."""
import torch
from torch import nn
from training import accuracy, export, fit


class Recurrent(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.cell, self.out = cell(12, 32, batch_first=True), nn.Linear(32, 6)

    def forward(self, x):
        return self.out(self.cell(x)[0][:, -1])


for name, cell in (("lstm", nn.LSTM), ("gru", nn.GRU)):
    torch.manual_seed(0)
    model = fit(Recurrent(cell), name, epochs=10)
    print(f"accuracy {accuracy(model, name):.2f} %")
    export(model, name)
