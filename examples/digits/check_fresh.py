#!/usr/bin/env python3
"""Were digits.onnx and its data written by the train.py beside them? (Standard library only.)

Compares the hashes that train.py recorded. A mismatch means: run train.py again (its header shows how).
"""
import hashlib
import pathlib
import sys

here = pathlib.Path(__file__).resolve().parent
expected = {'train.py', 'digits.onnx', 'digits_eval.npz', 'digits_expected.npz'}
recorded = dict(reversed(line.split()) for line in (here / 'digits.sources.sha256').read_text().splitlines())
bad = sorted(expected ^ recorded.keys())
total = 0
for name in sorted(expected & recorded.keys()):
    data = (here / name).read_bytes() if (here / name).exists() else b''
    total += len(data)
    if hashlib.sha256(data).hexdigest() != recorded[name]:
        bad.append(name)
if total >= 300_000:
    sys.exit(f'the digits example holds {total} bytes; it is to stay under 300000')
if bad:
    sys.exit('not as recorded in digits.sources.sha256: ' + ', '.join(bad) + '; run train.py again')
print(f'{len(recorded)} files as recorded, {total} bytes')
