#!/usr/bin/env python3
"""Trains the example's diffusion transformer on scikit-learn's handwritten digits. About 12 minutes of one processor core.

    train.py build/diffusion [--steps 6000]       # leaves weights.npz and digits.pgm, ten pictures of each digit, in the folder

Rectified flow: a picture x1 and noise x0 give x = (1 - t) x0 + t x1, and the network learns the velocity x1 - x0. Every tenth picture is
held out, and its loss printed. Pixels are in -1 to 1. Needs torch and scikit-learn. model/ was made by this and export.py.
"""
import argparse
import copy
import math
import pathlib
import sys
import time

import numpy as np
import sklearn.datasets
import torch
from torch.nn import functional as F

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from denoiser import Denoiser, Shape, Step  # noqa: E402

BATCH, RATE, UNLABELLED, KEPT, REPORT_EVERY = 128, 1.5e-3, 0.1, 0.999, 500
SAMPLED_STEPS, GUIDANCE = 20, 2.0


def data():
    """Pictures [N, 1, 8, 8] and labels [N]: those to learn from, and those held out."""
    digits = sklearn.datasets.load_digits()
    x = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 8 - 1
    y = torch.tensor(digits.target, dtype=torch.int64)
    held = torch.arange(len(y)) % 10 == 9
    return (x[~held], y[~held]), (x[held], y[held])


def loss_of(model, x, label, t, noise):
    at = t[:, None, None, None]
    return F.mse_loss(model((1 - at) * noise + at * x, t, label), x - noise)


def train(steps):
    torch.manual_seed(1)
    (x, y), (held_x, held_y) = data()
    model = Denoiser(Shape())
    kept = copy.deepcopy(model)  # the mean of the weights over the last steps
    print(sum(p.numel() for p in model.parameters()), 'weights')
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.99), weight_decay=0.02)
    fixed = torch.Generator().manual_seed(2)
    held_t, held_noise = torch.rand(len(held_y), generator=fixed), torch.randn(held_x.shape, generator=fixed)
    total, began = 0.0, time.time()
    for step in range(steps):
        for group in optimizer.param_groups:
            group['lr'] = RATE * min((step + 1) / 100, 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * step / steps)))
        chosen = torch.randint(0, len(y), (BATCH,))
        label = torch.where(torch.rand(BATCH) < UNLABELLED, Shape.labels, y[chosen])
        t = torch.sigmoid(torch.randn(BATCH))  # more of the middle, where there is most to learn
        loss = loss_of(model, x[chosen], label, t, torch.randn(BATCH, *x.shape[1:]))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        with torch.no_grad():
            for mean, p in zip(kept.parameters(), model.parameters()):
                mean.lerp_(p, 1 - min(KEPT, (step + 1) / (step + 10)))
        total += loss.item()
        if (step + 1) % REPORT_EVERY == 0 or step + 1 == steps:
            with torch.no_grad():
                held = loss_of(kept, held_x, held_y, held_t, held_noise).item()
            print(f'step {step + 1}: {total / (step % REPORT_EVERY + 1):.4f}, held out {held:.4f}, {time.time() - began:.0f} s', flush=True)
            total = 0.0
    return kept.eval()


def pictures(model, seeds=10):
    """One picture of each label in each row, with a margin: [seeds * 10, labels * 10] of 0 to 255."""
    step, rows = Step(model), []
    for seed in range(seeds):
        noise = torch.randn(1, 1, Shape.side, Shape.side, generator=torch.Generator().manual_seed(seed))
        row = []
        for label in range(Shape.labels):
            latent, at = noise, torch.zeros(1, dtype=torch.int64)
            for _ in range(SAMPLED_STEPS):
                with torch.no_grad():
                    latent, at = step(latent, at, torch.tensor([label]), torch.tensor([SAMPLED_STEPS]), torch.tensor([GUIDANCE]))
            row.append(F.pad(latent[0, 0], (1, 1, 1, 1), value=-1.0))
        rows.append(torch.cat(row, 1))
    return ((torch.cat(rows) + 1) * 127.5).round().clamp(0, 255).to(torch.uint8).numpy()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder', type=pathlib.Path)
    parser.add_argument('--steps', type=int, default=6000)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    model = train(args.steps)
    np.savez(args.folder / 'weights.npz', **{name: p.detach().numpy() for name, p in model.named_parameters()})
    sheet = pictures(model)
    (args.folder / 'digits.pgm').write_bytes(b'P5 %d %d 255\n' % sheet.shape[::-1] + sheet.tobytes())


if __name__ == '__main__':
    main()
