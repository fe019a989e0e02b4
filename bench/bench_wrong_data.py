#!/usr/bin/env python3
"""Calibration data on another scale than that of training: is it named, and is right data left in peace?

    bench/bench_wrong_data.py --sinter SINTER --data FOLDER [--only NAME]... [--warnings] [--shared FOLDER]

FOLDER is as bench/accuracy_data.py or a folder of bench/trained/train.py fills it: NAME/calib.npz, eval.npz and meta.json.
Prints a table of networks and scales: whether convert warned, the SQNR that it claims, and the true one on rightly scaled
samples that it did not see. "right" must not be warned. `--warnings` leaves the two numbers out and prints the messages.
Pictures are brought from their scale to bytes, and from these to every other usual scale; other data is divided by 255, by 8,
multiplied by 255, and standardized.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

WARNED = ("scale that the model was trained", "float model gives class")
PICTURES = {"/255": lambda p: p / 255, "-1..1": lambda p: p / 127.5 - 1, "standardized": lambda p: (p - 116.5) / 57.6,
            "/8": lambda p: p / 8, "0..255": lambda p: p}
# What makes bytes of a network's pictures.
BYTES = {(0, 1): lambda x: x * 255, (0, 255): lambda x: x, (-1, 1): lambda x: (x + 1) * 127.5,
         (-2.2, 2.7): lambda x: x * 57.6 + 116.5}
OTHERS = {"/255": lambda x: x / 255, "/8": lambda x: x / 8, "x255": lambda x: x * 255,
          "standardized": lambda x: (x - x.mean()) / x.std()}


def scales(samples):
    """Name -> function, of the wrong scales for samples of one float array."""
    low, high = min(x.min() for x in samples), max(x.max() for x in samples)
    if any(x.ndim == 4 and min(x.shape[1], x.shape[3]) <= 4 for x in samples) or (low >= 0 and high in (1, 255)):
        for (least, most), to_bytes in BYTES.items():
            if low >= least - 0.01 and high <= most + 0.01 and (most == 255 or high > most / 3):
                return {name: lambda x, f=f, b=to_bytes: f(b(x)) for name, f in PICTURES.items()
                        if not np.allclose(f(to_bytes(samples[0])), samples[0], atol=0.5 * (high - low) / 255)}
    return OTHERS


def convert(sinter, model, flags, calibrate, right):
    with tempfile.TemporaryDirectory() as folder:
        r = subprocess.run([sinter, "convert", model, "-o", os.path.join(folder, "m.sinter"), "--quantize", "int8", "--calibrate",
                            calibrate, "--evaluate", right, "--metric", "sqnr", "--json", *flags], capture_output=True, text=True)
    return json.loads(r.stdout) if r.returncode == 0 else None, r.stderr


def network(args, name):
    folder = os.path.join(args.data, name)
    with open(os.path.join(folder, "meta.json")) as f:
        meta = json.load(f)
    calib, fresh = (dict(np.load(os.path.join(folder, f + ".npz"))) for f in ("calib", "eval"))
    inputs = {k: v for k, v in calib.items() if k != "label"}
    floats = [k for k, v in inputs.items() if v.dtype == np.float32]
    faults = 0
    with tempfile.TemporaryDirectory() as temporary:
        right = os.path.join(temporary, "right.npz")
        np.savez(right, **{k: fresh[k][:args.fresh] for k in inputs})
        for scale, f in {"right": lambda x: x, **(scales([inputs[k] for k in floats]) if floats else {})}.items():
            given = os.path.join(temporary, "given.npz")
            np.savez(given, **{k: f(v).astype(np.float32) if k in floats else v for k, v in inputs.items()})
            report, why = convert(args.sinter, os.path.join(args.shared, "models", meta["model"]), meta["flags"], given, right)
            if report is None:
                print(f"{name:18} {scale:13} {why.strip().splitlines()[-1] if why.strip() else 'failed'}", flush=True)
                continue
            said = [d for d in report["diagnostics"] if d["severity"] == "warning" and any(w in d["message"] for w in WARNED)]
            q = report["quantized"]
            dB = [min([o["sqnr_db"] for o in of["outputs"] if o.get("sqnr_db") is not None], default=float("nan"))
                  for of in (q, q["evaluation"])]
            faults += bool(said) if scale == "right" else 0
            print(f"{name:18} {scale:13} {'warned' if said else '-':7} {dB[0]:8.1f} {dB[1]:8.1f}", flush=True)
            if args.warnings:
                for d in said:
                    print(f"    {d.get('node', '')} {d['message']}: {d['remedy']}", flush=True)
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sinter", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--fresh", type=int, default=200)
    parser.add_argument("--warnings", action="store_true")
    parser.add_argument("--shared", default=os.environ.get("SINTER_SHARED", "../shared"))
    args = parser.parse_args()
    print(f"{'network':18} {'scale':13} {'':7} {'claimed':>8} {'true':>8}")
    names = [n for n in sorted(os.listdir(args.data)) if os.path.exists(os.path.join(args.data, n, "meta.json"))]
    faults = sum(network(args, n) for n in names if not args.only or n in args.only)
    print(f"{faults} warnings on right data")
    sys.exit(faults > 0)


if __name__ == "__main__":
    main()
