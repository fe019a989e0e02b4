#!/usr/bin/env python3
"""Exports the trained model to ONNX with torch, as float16 and with 4-bit weights by GPTQ.

    export.py build/chat          # tokens.txt, text.npz and weights.npz; leaves chat.onnx and chat_gptq.onnx there

Inputs: input_ids and position_ids int64 [1, S], past.i.key and past.i.value float16 [1, groups, P, size].
Outputs: logits float32 [1, S, tokens], present.i.key and present.i.value [1, groups, P + S, size].
"""
import argparse
import pathlib
import sys

import numpy as np
import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import gptq  # noqa: E402
from decoder import Decoder, Shape  # noqa: E402
from exported import drop_notes  # noqa: E402

CALIBRATION = 64  # pieces of text


class Exported(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, position_ids, *past):
        logits, present = self.model(input_ids, position_ids, list(zip(past[::2], past[1::2])))
        return logits.float(), *[t for pair in present for t in pair]


def load(folder):
    model = Decoder(Shape())
    weights = np.load(folder / 'weights.npz')
    state = {name: torch.tensor(weights[name].astype(np.float32)) for name in weights.files}
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert missing in ([], ['head.weight']) and not unexpected, (missing, unexpected)
    return model.eval()


def export(model, path):
    s = model.shape
    half = model.half()
    length, before = torch.export.Dim('sequence_length', min=1, max=4096), torch.export.Dim('past_length', min=0, max=4096)
    ids, positions = torch.zeros(1, 3, dtype=torch.int64), torch.arange(5, 8)[None]
    past = [torch.zeros(1, s.groups, 5, s.width // s.heads, dtype=torch.float16) for _ in range(2 * s.layers)]
    names = [f'.{i}.{part}' for i in range(s.layers) for part in ('key', 'value')]
    program = torch.onnx.export(
        Exported(half), (ids, positions, *past), dynamo=True, opset_version=20, verbose=False, optimize=False,
        input_names=['input_ids', 'position_ids', *['past' + n for n in names]],
        output_names=['logits', *['present' + n for n in names]],
        dynamic_shapes=({1: length}, {1: length}, tuple({2: before} for _ in past)))
    program.save(str(path), external_data=False)
    drop_notes(path)
    print(path, path.stat().st_size, 'bytes')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder', type=pathlib.Path)
    folder = parser.parse_args().folder
    export(load(folder), folder / 'chat.onnx')
    model = load(folder)
    train = torch.tensor(np.load(folder / 'text.npz')['train'].astype(np.int64))
    starts = torch.linspace(0, train.numel() - model.shape.context, CALIBRATION).long()
    ids = torch.stack([train[i:i + model.shape.context] for i in starts])
    gptq.quantize(model, ids, torch.arange(model.shape.context)[None].expand(CALIBRATION, -1))
    export(model, folder / 'chat_gptq.onnx')


if __name__ == '__main__':
    main()
