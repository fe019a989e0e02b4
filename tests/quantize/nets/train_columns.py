"""columns.onnx: a table of raw columns from 1e-3 to 1e5 and a small MLP behind them: Sub and Div by each column's mean and
deviation are in the network, as exporters of table models write them.
"""
import torch
from torch import nn
from training import accuracy, export, fit, samples


class Table(nn.Module):
    def __init__(self):
        super().__init__()
        x = samples("columns", 4000, 4)[0][0]
        self.mean, self.deviation = nn.Parameter(x.mean(0), False), nn.Parameter(x.std(0), False)
        self.layers = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 3))

    def forward(self, x):
        return self.layers((x - self.mean) / self.deviation)


model = fit(Table(), "columns", n=24000, epochs=20)
print(f"accuracy {accuracy(model, 'columns'):.2f} %")
export(model, "columns")
