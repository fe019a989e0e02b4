#!/usr/bin/env python3
"""Accuracies of real networks on labelled data, through `sinter run --each`, against the published figures.

    accuracy.py [--sinter PROGRAM] [--backend NAME] [--limit N] [--json FILE]

The figures are those of ../shared/models/README.md, measured there with an independent float32 evaluator; a whole
set must come out within 0.1 points (float) or 0.5 points (int8 as QDQ, where ties round).

Then small networks are quantized for a microcontroller with the defaults: on integers as a whole, with the accuracy or the
SQNR on samples that the calibration has not seen.
"""
import argparse
import gzip
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
import pinned  # noqa: E402

pinned.require()
import numpy as np  # noqa: E402
import sinter_cli as cli  # noqa: E402


def keywords(data):
    z = cli.load_npz(os.path.join(data, "kws01", "kws01.npz"))
    x = (z["x"].astype(np.float32) - 83) * np.float32(0.58470291)
    return x.reshape(len(x), 49, 10, 1), z["y"].reshape(-1)


def digits(data):
    with gzip.open(os.path.join(data, "mnist-t10k", "t10k-images-idx3-ubyte.gz")) as f:
        x = np.frombuffer(f.read(), np.uint8, offset=16).reshape(-1, 28, 28)
    with gzip.open(os.path.join(data, "mnist-t10k", "t10k-labels-idx1-ubyte.gz")) as f:
        return x.astype(np.float32), np.frombuffer(f.read(), np.uint8, offset=8)


def digits28(data):
    x, y = digits(data)
    return x[:, None], y


def digits14(data):
    x, y = digits(data)
    return x.reshape(-1, 14, 2, 14, 2).mean((2, 4), dtype=np.float32)[:, None], y


def digits_flat(data):
    x, y = digits(data)
    return x.reshape(-1, 784) / np.float32(255), y


def hands(data):
    z = np.loadtxt(os.path.join(data, "hand-keypoints", "keypoint.csv"), delimiter=",")
    return z[:, 1:].astype(np.float32), z[:, 0].astype(np.int64)


def pictures32(data):
    x, y = digits(data)
    x = np.pad(x, ((0, 0), (2, 2), (2, 2)))
    return np.stack([x, x * np.float32(0.8), x * np.float32(0.6)], -1), y


def pictures96(data):
    x, y = pictures32(data)
    x = x[:400].repeat(3, 1).repeat(3, 2) / np.float32(255)
    x = (x - np.float32([0.485, 0.456, 0.406])) / np.float32([0.229, 0.224, 0.225])
    return np.ascontiguousarray(x.transpose(0, 3, 1, 2)), y[:400]


def machine(data):
    """Five neighbouring spectra of a valve at a time; no labels."""
    x = np.fromfile(os.path.join(data, "..", "models/mlperf-ad/normal_id_01_00000000_hist_librosa.bin"), np.float32)
    x = np.lib.stride_tricks.sliding_window_view(x.reshape(-1, 128).ravel(), 640)[::128]
    return np.ascontiguousarray(x), np.zeros(len(x), np.int64)


# file, input, data, samples of calibration, points of accuracy that may be lost (None: the labels are not the network's, and
# the SQNR counts), most bytes of the arena
MICROCONTROLLER = [
    ("mlperf-kws/kws-dscnn-fp32.onnx", "input", keywords, 128, 0.5, 13000),
    ("mlperf-ad/ad-autoenc-fp32.onnx", "input", machine, 64, None, 3300),
    ("mlperf-ic/ic-resnet8-fp32.onnx", "input", pictures32, 128, None, 70000),
    ("mcunet-96/network.onnx", "input", pictures96, 24, None, 225000),
]
LEAST_DB = 25


# file, input, output, data, per cent, points allowed
TABLE = [
    ("mlperf-kws/kws-dscnn-fp32.onnx", "input", "output", keywords, 91.3, 0.1),
    ("mlperf-kws/kws-dscnn-qdq.onnx", "input", "output", keywords, 90.2, 0.5),
    ("mnist8-cntk/model.onnx", "Input3", "Plus214_Output_0", digits28, 98.91, 0.1),
    ("ort-opt-mnist/mnist.level1_opt.onnx", "Input3", "Plus214_Output_0", digits28, 98.91, 0.1),
    ("mnist14-conv/mnist.simplified.onnx", "network_input", "network_output", digits14, 94.0, 0.1),
    ("mnist-mlp-bn/pytorch.onnx", "network_input", "network_output", digits_flat, 91.9, 0.1),
    ("hand-keypoint-softmax/keypoint_classifier_softmax.onnx", "input", "output", hands, 96.5, 0.1),
    ("hand-keypoint/keypoint_classifier.onnx", "input", "class_ids", hands, 96.5, 0.1),
]


def measure(sinter, path, source, sink, x, y, backend, work):
    target, given, result = (os.path.join(work, n) for n in ("m.sinter", "in.npz", "out.npz"))
    r = cli.call(sinter, "convert", path, "-o", target, "--quiet", timeout=300)
    if r.code != 0:
        return None, f"convert: {r.why()}"
    cli.save_npz(given, {source: x})
    r = cli.call(sinter, "run", target, "--inputs", given, "--outputs", result, "--each", "--quiet",
                 *(["--backend", backend] if backend != "default" else []), timeout=600)
    if r.code != 0:
        return None, f"run --each: {r.why()}"
    out = cli.load_npz(result)[sink]
    if len(out) != len(x):
        return None, f"run --each: {out.shape} for {len(x)} samples"
    outcome = out.reshape(len(x)) if out.size == len(x) else out.reshape(len(x), -1).argmax(1)
    return 100.0 * float(np.mean(outcome == y)), ""


def quantized(sinter, path, source, x, y, count, points, arena, work):
    """A line of numbers, and what is wrong with the integers that are the default for a microcontroller."""
    order = np.random.RandomState(0).permutation(len(x))
    seen, unseen, target = order[:count], order[count:count + 1000], os.path.join(work, "m.sinter")
    answers = {} if points is None else {"label": y[unseen].astype(np.int64)}
    files = [os.path.join(work, n) for n in ("calibration.npz", "evaluation.npz")]
    cli.save_npz(files[0], {source: x[seen]})
    cli.save_npz(files[1], {source: x[unseen], **answers})
    r = cli.call(sinter, "convert", path, "-o", target, "--target", "cortex-m4", "--quantize", "int8", "--calibrate", files[0],
                 "--evaluate", files[1], *(["--label", "label"] if answers else ["--metric", "sqnr"]), "--json", timeout=600)
    if r.code != 0:
        return "", f"convert: {r.why()}"
    answer = json.loads(r.out)
    q = answer["quantized"]
    share, used, wrong = q["integer_multiply_adds_share"], answer["arena_bytes"], []
    if share < 0.999:
        wrong.append("products are computed in float")
    if used > arena:
        wrong.append(f"the arena takes more than {arena} bytes")
    if answers:
        lost = 100 * (q["float_accuracy"] - q["accuracy"])
        line = f"{100 * q['float_accuracy']:.2f} % in float, {100 * q['accuracy']:.2f} % on integers"
        wrong += [f"more than {points} points are lost"] if lost > points else []
    else:
        worst = min(o["sqnr_db"] for o in q["evaluation"]["outputs"])
        line = f"{worst:.1f} dB"
        wrong += [f"less than {LEAST_DB} dB"] if worst < LEAST_DB else []
    return f"{100 * share:.0f} % of the products on integers, arena {used}, {len(unseen)} unseen samples: {line}", "; ".join(wrong)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--sinter", help="the program (default: SINTER or the build folder)")
    p.add_argument("--backend", default="default")
    p.add_argument("--limit", type=int, help="only the first N samples (nothing is asserted then)")
    p.add_argument("--json", help="write the table")
    args = p.parse_args()
    shared = cli.find_shared()
    if shared is None or not os.path.isdir(os.path.join(shared, "data")):
        cli.skip("no ../shared/models and ../shared/data (or SINTER_SHARED): accuracies are not measured")
    sinter, rows, bad = cli.find_sinter(args.sinter), [], 0
    for file, source, sink, read, want, points in TABLE:
        x, y = read(os.path.join(shared, "data"))
        x, y = x[:args.limit], y[:args.limit]
        with tempfile.TemporaryDirectory(prefix="accuracy-") as work:
            got, why = measure(sinter, os.path.join(shared, "models", file), source, sink, x, y, args.backend, work)
        ok = got is not None and (bool(args.limit) or abs(got - want) <= points)
        bad += not ok
        rows.append(dict(model=file, samples=len(x), accuracy=got, published=want, ok=ok, message=why))
        print(f"{'ok  ' if ok else 'FAIL'} {file:55s} {len(x):6d} samples  "
              f"{'-' if got is None else f'{got:.2f} %':>8}  published {want} %  {why}", flush=True)
    for file, source, read, count, points, arena in [] if args.limit or args.backend != "default" else MICROCONTROLLER:
        x, y = read(os.path.join(shared, "data"))
        with tempfile.TemporaryDirectory(prefix="accuracy-") as work:
            line, why = quantized(sinter, os.path.join(shared, "models", file), source, x, y, count, points, arena, work)
        bad += bool(why)
        rows.append(dict(model=file, target="cortex-m4", ok=not why, message=why or line))
        print(f"{'FAIL' if why else 'ok  '} {file:55s} cortex-m4, int8: {line}  {why}", flush=True)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(rows, f, indent=1)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
