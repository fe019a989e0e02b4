#!/usr/bin/env python3
"""Trains the example's language model. About 2 minutes on a GPU, and some hours on two processor cores.

    train.py --prepare build/chat                 # the text as tokens: needs bible-kjv (Debian) and tokenizers
    train.py build/chat [--steps 4000]            # trains: needs torch alone; leaves build/chat/weights.npz

The weights that the repository holds (model/) were made by these two commands.
"""
import argparse
import math
import pathlib
import sys
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))

BATCH, DROPOUT, RATE, CHOOSE_EVERY = 96, 0.2, 2e-3, 200


def prepare(folder):
    import text
    import tokens
    parts = dict(zip(('train', 'choice', 'held'), text.split(text.chapters())))
    vocabulary = tokens.train(parts['train'], tokens.COUNT)
    folder.mkdir(parents=True, exist_ok=True)
    tokens.save(folder / 'tokens.txt', vocabulary)
    encode = tokens.Encoder(vocabulary)
    arrays = {name: np.array([t for part in p for t in [tokens.END, *encode(part)]], np.int16) for name, p in parts.items()}
    np.savez(folder / 'text.npz', bytes_of_held=sum(len(p) for p in parts['held']), **arrays)
    print({name: a.size for name, a in arrays.items()}, 'tokens')


def loss_of(model, stream, context):
    """Mean negative log-likelihood of the tokens of `stream`, in pieces of `context`."""
    import torch
    from torch.nn import functional as F
    count = (stream.numel() - 1) // context
    total = 0.0
    positions = torch.arange(context, device=stream.device)[None]
    with torch.no_grad():
        for first in range(0, count, 64):
            x = torch.stack([stream[i * context:(i + 1) * context + 1] for i in range(first, min(first + 64, count))])
            logits, _ = model(x[:, :-1], positions.expand(x.shape[0], -1))
            total += F.cross_entropy(logits.float().flatten(0, 1), x[:, 1:].flatten(), reduction='sum').item()
    return total / (count * context)


def train(folder, steps):
    import torch
    from torch.nn import functional as F
    from decoder import Decoder, Shape
    torch.manual_seed(1)
    device = 'cuda' if torch.cuda.is_available() else 'cpu'
    data = np.load(folder / 'text.npz')
    streams = {n: torch.tensor(data[n].astype(np.int64), device=device) for n in ('train', 'choice')}
    shape = Shape()
    model = Decoder(shape, DROPOUT).to(device)
    print(sum(p.numel() for p in model.parameters()), 'weights,', device)
    decayed = [p for p in model.parameters() if p.dim() == 2]
    others = [p for p in model.parameters() if p.dim() != 2]
    optimizer = torch.optim.AdamW([{'params': decayed, 'weight_decay': 0.1}, {'params': others, 'weight_decay': 0.0}],
                                  lr=RATE, betas=(0.9, 0.95))
    positions = torch.arange(shape.context, device=device)[None].expand(BATCH, -1)
    best, kept, began = math.inf, None, time.time()
    for step in range(steps):
        rate = RATE * min((step + 1) / 200, 0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * step / steps)))
        for group in optimizer.param_groups:
            group['lr'] = rate
        starts = torch.randint(0, streams['train'].numel() - shape.context - 1, (BATCH,)).tolist()
        x = torch.stack([streams['train'][i:i + shape.context + 1] for i in starts])
        model.train()
        with torch.autocast(device, torch.bfloat16, enabled=device == 'cuda'):
            logits, _ = model(x[:, :-1], positions)
            loss = F.cross_entropy(logits.float().flatten(0, 1), x[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if (step + 1) % CHOOSE_EVERY == 0 or step + 1 == steps:
            model.eval()
            chosen = loss_of(model, streams['choice'], shape.context)
            print(f'step {step + 1}: {loss.item():.3f}, choice {chosen:.4f}, {time.time() - began:.0f} s', flush=True)
            if chosen < best:
                best = chosen
                kept = {n: p.detach().to('cpu', torch.float16).numpy().copy() for n, p in model.named_parameters()}
                np.savez(folder / 'weights.npz', **kept)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder', type=pathlib.Path)
    parser.add_argument('--prepare', action='store_true')
    parser.add_argument('--steps', type=int, default=4000)
    args = parser.parse_args()
    prepare(args.folder) if args.prepare else train(args.folder, args.steps)


if __name__ == '__main__':
    main()
