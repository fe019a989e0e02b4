#!/usr/bin/env python3
"""Exports the trained model to ONNX with torch, in float16 and in bfloat16.

    export.py build/diffusion     # weights.npz; leaves diffusion.onnx and diffusion_bfloat16.onnx there

Inputs and outputs are those of denoiser.Step, whose outputs are latent_next and step_next.
"""
import argparse
import pathlib
import sys

import numpy as np
import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
from denoiser import Denoiser, Shape, Step  # noqa: E402
from exported import drop_notes  # noqa: E402


def load(folder):
    model = Denoiser(Shape())
    weights = np.load(folder / 'weights.npz')
    model.load_state_dict({name: torch.tensor(weights[name]) for name in weights.files})
    return model.eval()


def export(model, path):
    one = torch.ones(1, dtype=torch.int64)
    program = torch.onnx.export(
        Step(model), (torch.zeros(1, 1, Shape.side, Shape.side), 0 * one, 3 * one, 20 * one, torch.ones(1)), dynamo=True,
        verbose=False, optimize=False, input_names=['latent', 'step', 'label', 'steps', 'guidance'],
        output_names=['latent_next', 'step_next'])
    program.save(str(path), external_data=False)
    drop_notes(path)
    print(path, path.stat().st_size, 'bytes')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder', type=pathlib.Path)
    folder = parser.parse_args().folder
    export(load(folder).half(), folder / 'diffusion.onnx')
    export(load(folder).bfloat16(), folder / 'diffusion_bfloat16.onnx')


if __name__ == '__main__':
    main()
