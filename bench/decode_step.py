#!/usr/bin/env python3
"""The time of one token of a decoder behind 16 and 1024 tokens, by the context's bound and the type of its keys and values,
and the error that the type brings into the logits of 256 tokens.

    decode_step.py --sinter PROGRAM --decode PROGRAM

PROGRAM of --decode is tests/state/run_decoder of the build. Microseconds, one thread, the shortest of 200 runs. Needs numpy and onnx;
a minute.
"""
import argparse
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "state"))
import decoder_models as models  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402

SHAPE = models.Shape(layers=4, hidden=512, heads=8, groups=4, vocabulary=256, positions=16384)
BOUNDS, LIVE = (2048, 16384), (16, 1024)
# Label, what differs in the model, flags of the conversion.
FORMS = (("float32", {}, ()), *((kind, {}, ("--kv-cache", kind)) for kind in ("float16", "bfloat16", "float8", "int8")),
         *((f"{label}, by the model", dict(quantized=("PER_CHANNEL", bits)), ())
           for label, bits in (("float8", "float8"), ("8 bits", 8), ("4 bits", 4))))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--sinter", default="sinter")
    p.add_argument("--decode", default="run_decoder")
    a = p.parse_args()
    tokens = np.random.default_rng(1).integers(0, SHAPE.vocabulary, 256)
    rows, exact = [], None
    with tempfile.TemporaryDirectory() as folder:
        source, file, logits = (os.path.join(folder, name) for name in ("net.onnx", "net.sinter", "logits.bin"))
        for kind, form, flags in FORMS:
            onnx.save(models.with_group_query(shape=SHAPE, **form), source)
            for bound in BOUNDS:
                subprocess.run([a.sinter, "convert", source, "-o", file, "--shapes", "sequence_length=1", "--max-context", str(bound),
                                "--quiet", *flags], check=True)
                commands = [word for live in LIVE for word in (f"at={live - 1}", "time=200")]
                out = subprocess.run([a.decode, file, logits, *commands], check=True, capture_output=True, text=True).stdout
                subprocess.run([a.decode, file, logits, *map(str, tokens)], check=True)
                found = np.fromfile(logits, np.float32)
                exact = found if exact is None else exact
                noise = np.sum((found - exact) ** 2)
                snr = f"{10 * np.log10(np.sum(exact ** 2) / noise):.0f} dB" if noise > 0 else "exact"
                rows.append([kind, str(bound), *out.split(), snr])
    head = ["keys and values", "bound", *(f"{live} tokens" for live in LIVE), "logits"]
    for row in [head, ["---"] * len(head), *rows]:
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
