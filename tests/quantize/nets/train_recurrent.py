"""lstm.onnx and gru.onnx: two recurrent classifiers of word-like spectra (ONNX's LSTM and GRU operators). lstm_raw.onnx: the
first for bands in units from 1e-3 to 1e3, which its weights make up for.
"""
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
    if name == "lstm":
        with torch.no_grad():
            model.cell.weight_ih_l0 /= torch.logspace(-3, 3, 12)
        print(f"raw: accuracy {accuracy(model, 'lstm_raw'):.2f} %")
        export(model, "lstm_raw")
