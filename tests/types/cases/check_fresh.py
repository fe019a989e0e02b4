#!/usr/bin/env python3
"""Were the cases written by the sources beside them? (Standard library only.)

Compares the hashes that regenerate.py recorded. A mismatch means: run regenerate.py again (its header shows how).
"""
import hashlib
import pathlib
import sys

LIMIT = 300_000  # bytes a model

here = pathlib.Path(__file__).resolve().parent
recorded = dict(reversed(line.split()) for line in (here / "cases.sha256").read_text().splitlines())
present = {p.name for p in here.iterdir() if p.suffix in (".onnx", ".npz")}
present |= {"regenerate.py", "double_reference.py", "requirements.txt", "cases.json"}
bad = [f"{n}: not in cases.sha256" for n in sorted(present - recorded.keys())]
for name, digest in sorted(recorded.items()):
    path = here / name
    if not path.exists():
        bad.append(f"{name}: missing")
    elif hashlib.sha256(path.read_bytes()).hexdigest() != digest:
        bad.append(f"{name}: changed")
    elif path.stat().st_size >= LIMIT:
        bad.append(f"{name}: {path.stat().st_size} bytes, the limit is {LIMIT}")
if bad:
    sys.exit("\n".join([*bad, "run regenerate.py again"]))
print(f"{len(recorded)} files as recorded")
