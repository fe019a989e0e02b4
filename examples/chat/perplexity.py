#!/usr/bin/env python3
"""Perplexity of the example's model on text that no choice has seen, for each way to store and compute its weights.

    perplexity.py --sinter build/release/bin/sinter FOLDER [--pieces 64]

FOLDER is what train.py and export.py left. A piece is 256 tokens of the held-out text, read at once; perplexity is
exp(mean negative log-likelihood) of a token. SQNR is of the logits, against those of the float model.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

CONTEXT = 256
# Name, model, flags of convert.
WAYS = [
    ('float16, computed in float32', 'chat.onnx', []),
    ('int8w', 'chat.onnx', ['--quantize', 'int8w']),
    ('int6w', 'chat.onnx', ['--quantize', 'int6w']),
    ('int5w', 'chat.onnx', ['--quantize', 'int5w']),
    ('int4w', 'chat.onnx', ['--quantize', 'int4w']),
    ('int4w, int8 activations', 'chat.onnx', ['--quantize', 'int4w', '--activations', 'int8']),
    ('int3w', 'chat.onnx', ['--quantize', 'int3w']),
    ('GPTQ, 4 bits', 'chat_gptq.onnx', []),
    ('GPTQ, int8 activations', 'chat_gptq.onnx', ['--activations', 'int8']),
    ('keys and values in float8', 'chat.onnx', ['--kv-cache', 'float8']),
]


def logits_of(sinter, model, flags, ids, folder):
    """(logits [pieces, CONTEXT, tokens], bytes of the file), or the reason for which there are none."""
    out, inputs, outputs = folder / 'model.sinter', folder / 'ids.npz', folder / 'logits.npz'
    np.savez(inputs, input_ids=ids[:, None])
    for command in ([sinter, 'convert', model, '-o', out, '--max-context', str(CONTEXT), '--shape', f'input_ids=1,{CONTEXT}', '--quiet', *flags],
                    [sinter, 'run', out, '--inputs', inputs, '--each', '--outputs', outputs, '--quiet']):
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if done.returncode:
            return done.stderr.strip().splitlines()[0]
    return np.load(outputs)['logits'].reshape(len(ids), CONTEXT, -1).astype(np.float64), out.stat().st_size


def perplexity(logits, following):
    logits = logits - logits.max(-1, keepdims=True)
    likelihood = np.take_along_axis(logits, following[..., None], -1)[..., 0] - np.log(np.exp(logits).sum(-1))
    return float(np.exp(-likelihood.mean()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder', type=pathlib.Path)
    parser.add_argument('--sinter', required=True)
    parser.add_argument('--pieces', type=int, default=64)
    parser.add_argument('--json', type=pathlib.Path)
    args = parser.parse_args()
    held = np.load(args.folder / 'text.npz')['held'].astype(np.int64)
    pieces = min(args.pieces, (held.size - 1) // CONTEXT)
    ids = held[:pieces * CONTEXT].reshape(pieces, CONTEXT)
    following = held[1:pieces * CONTEXT + 1].reshape(pieces, CONTEXT)
    rows, exact = [], None
    print('| weights | file, bytes | perplexity | SQNR of the logits, dB |\n| --- | --- | --- | --- |')
    for name, model, flags in WAYS:
        with tempfile.TemporaryDirectory() as folder:
            found = logits_of(args.sinter, args.folder / model, flags, ids, pathlib.Path(folder))
        if isinstance(found, str):
            print(f'| {name} | {found} | | |', flush=True)
            rows.append(dict(name=name, refused=found))
            continue
        logits, size = found
        if exact is None:
            exact = logits
        noise = ((logits - exact) ** 2).sum()
        db = 10 * np.log10((exact ** 2).sum() / noise) if noise else float('inf')
        rows.append(dict(name=name, bytes=size, perplexity=perplexity(logits, following), sqnr=db))
        print(f'| {name} | {size:,} | {rows[-1]["perplexity"]:.3f} | {db:.1f} |', flush=True)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + '\n')
    return int(any('refused' in row for row in rows))


if __name__ == '__main__':
    sys.exit(main())
