#!/usr/bin/env python3
"""Makes calibration and evaluation data for the shared models, as bench_accuracy.py reads them.

    bench/accuracy_data.py --out FOLDER --photos FOLDER... [--only NAME]... [--shared FOLDER]

For each model: FOLDER/NAME/{calib,eval}.npz in the layout of `sinter run --each` (answers in "label") and meta.json.
Labelled sets come from the shared data folder. Photographs are the .jpg and .png of natural scenes in --photos:
Debian's opencv-doc (examples/data), the data folders of the Python packages scikit-image, scikit-learn and ultralytics;
a photograph serves calibration or evaluation, never both. Speech is spoken by Debian's espeak-ng, with noise and
pauses, and goes through the float model step by step, so that recurrent states are those of a running stream. Ids
for bert are random. Calibration has 128 samples of a RandomState(0) permutation (photographs: 24), evaluation the others.
Needs numpy, onnxruntime and Pillow. Missing parts are reported and left out.
"""
import argparse
import gzip
import io
import json
import os
import subprocess
import wave

import numpy as np
import onnxruntime as ort

CALIBRATION, PHOTOGRAPHS = 128, 24
NOT_SCENES = ("logo", "notes", "mask", "templ", "tmpl", "pic", "text", "imagetext", "blob", "digits", "chess", "gradient",
              "cards", "ellipses", "sudoku", "ml", "stuff", "left0", "left1", "right0", "right1", "right2", "opencv",
              "phantom", "page", "color", "horse", "aloegt", "trimap", "result", "cell", "blox", "suzanne", "board",
              "multipage", "clock", "shape", "peilin", "polygon", "lr_", "pca", "licenseplate", "ela_m", "motion",
              "microaneurysms", "input", "000", "001", "002", "box", "stanford", "linux", "windows")
SENTENCES = """The quick brown fox jumps over the lazy dog near the river bank.
Please turn off the lights in the kitchen and open the window.
Seventeen ships left the harbour before the storm began on Thursday.
How much would it cost to send this parcel to another country?
She wrote a long letter about her journey through the mountains.
Yes, no, left, right, stop, go, up, down, on, off.
A large fawn jumped quickly over white zinc boxes.
The committee will meet again next week to discuss the budget.
Call me tomorrow at half past nine, if you can find the time.
Rain is expected in the north while the south stays mostly dry.
He whispered something that nobody in the crowded room could hear.
Take the second road on the left, then walk straight ahead.""".splitlines()


class Missing(Exception):
    pass


# ---- photographs

def photographs(folders):
    """name -> RGB array, sorted by name, of every picture that shows a scene."""
    from PIL import Image
    found = {}
    for folder in folders:
        for place, _, files in sorted(os.walk(folder)):
            for file in sorted(files):
                stem, end = os.path.splitext(file.lower())
                if end not in (".jpg", ".jpeg", ".png") or any(stem.startswith(x) or (len(x) > 5 and x in stem)
                                                               for x in NOT_SCENES):
                    continue
                image = Image.open(os.path.join(place, file)).convert("RGB")
                if min(image.size) >= 150 and stem not in found:
                    found[stem] = image
    if len(found) < PHOTOGRAPHS + 8:
        raise Missing(f"only {len(found)} photographs")
    names = sorted(found)
    return [found[names[i]] for i in np.random.RandomState(0).permutation(len(names))]


def crop(image, height, width, random):
    """The picture's largest part of that shape, somewhere, at 60 to 100 % of its size, made height x width."""
    from PIL import Image
    w, h = image.size
    scale = min(w / width, h / height) * random.uniform(0.6, 1)
    cw, ch = int(width * scale), int(height * scale)
    x, y = random.randint(0, w - cw + 1), random.randint(0, h - ch + 1)
    part = image.crop((x, y, x + cw, y + ch)).resize((width, height), Image.BILINEAR)
    return np.asarray(part, np.float32)


def pictures(height, width, prepare, calibrate=PHOTOGRAPHS, each=(1, 1)):
    """Photographs [N, h, w, 3] through `prepare`; `each`: parts of a photograph for calibration and evaluation."""
    def make(photos, _):
        if not photos:
            raise Missing("no photographs")
        random = np.random.RandomState(1)
        sets = photos[:calibrate], photos[calibrate:]
        return [prepare(np.stack([crop(p, height, width, random) for p in s for _ in range(n)]))
                for s, n in zip(sets, each)]
    return make


def nchw(a):
    return np.ascontiguousarray(a.transpose(0, 3, 1, 2), dtype=np.float32)


def luma(a):
    return nchw((a @ np.array([0.299, 0.587, 0.114]) / 255)[..., None])


IMAGENET = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])


def imagenet(a):
    return nchw((a / 255 - IMAGENET[0]) / IMAGENET[1])


def dark(a):
    """Photographs as in bad light."""
    exposure = np.linspace(0.1, 0.5, len(a))[np.random.RandomState(2).permutation(len(a))]
    noise = np.random.RandomState(3).normal(0, 0.01, a.shape)
    return nchw(np.clip((a / 255) ** 1.5 * exposure[:, None, None, None] + noise, 0, 1))


# ---- speech

def spoken(rate=16000):
    """Sentences in several voices, each with its own level, noise and a pause behind it; one stream of float32."""
    random, parts = np.random.RandomState(4), []
    for i, text in enumerate(SENTENCES):
        voice = ["en-us", "en-gb", "en-gb-scotland", "en-us+f3", "en-gb+m4", "en-us+f5"][i % 6]
        try:
            outcome = subprocess.run(["espeak-ng", "-v", voice, "-s", str(130 + 10 * (i % 5)), "-p", str(30 + 8 * (i % 6)),
                                   "--stdout", text], check=True, capture_output=True).stdout
        except (OSError, subprocess.CalledProcessError) as e:
            raise Missing(f"no speech: {e}") from e
        with wave.open(io.BytesIO(outcome)) as f:
            given = f.getframerate()
        x = np.frombuffer(outcome[44:][:(len(outcome) - 44) // 2 * 2], np.int16) / 32768.0
        f = np.fft.rfft(x)
        n = int(len(x) * rate / given)
        x = np.fft.irfft(f[:n // 2 + 1], n) * rate / given * random.uniform(0.2, 1)
        x = np.concatenate([x, np.zeros(int(rate * random.uniform(0.3, 0.8)))])
        white = random.normal(0, 1, len(x))
        pink = np.fft.irfft(np.fft.rfft(white) / np.sqrt(1 + np.arange(len(x) // 2 + 1) / 50), len(x))
        noise = pink / pink.std() if i % 2 else white
        parts.append(x + noise * 0.1 * 10 ** (-random.uniform(5, 30) / 20))
    return np.concatenate(parts).astype(np.float32)


def frames(x, size, hop):
    return np.stack([x[i:i + size] for i in range(0, len(x) - size, hop)])


def streamed(session, steps, states, first):
    """Runs the model over `steps` (dicts of inputs); state input -> output; gives every step's inputs, stacked."""
    outputs, seen, state = [o.name for o in session.get_outputs()], [], dict(first)
    for step in steps:
        feed = {**step, **state}
        seen.append(feed)
        outcome = dict(zip(outputs, session.run(None, feed)))
        state = {name: outcome[out] for name, out in states.items()}
    return seen


def speech(steps, states, rate=16000):
    def make(_, model):
        session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
        first = {i.name: np.zeros(i.shape, np.float32) for i in session.get_inputs() if i.name in states}
        seen = streamed(session, list(steps(spoken(rate))), states, first)
        # As `run --each` has it: [N, d1, ...] where the shape is [1, d1, ...], else [N] + the shape.
        whole = {}
        for name in seen[0]:
            a = np.stack([s[name] for s in seen])
            whole[name] = a[:, 0] if a.shape[1] == 1 else a
        order = np.random.RandomState(0).permutation(len(seen))[:CALIBRATION + 500]
        return [{k: v[part] for k, v in whole.items()} for part in (order[:CALIBRATION], order[CALIBRATION:])]
    return make


def vad5(x):
    for f in frames(np.concatenate([np.zeros(64, np.float32), x]), 576, 512):
        yield {"input": f[None]}


def vad3(x):
    for f in frames(x, 1536, 1536):
        yield {"input": f[None]}


def dtln(x):
    for f in frames(x, 512, 128):
        yield {"input_2": np.abs(np.fft.rfft(f))[None, None].astype(np.float32)}


def gtcrn(x):
    window = np.sqrt(np.hanning(513)[:512])
    for f in frames(x, 512, 256):
        s = np.fft.rfft(f * window)
        yield {"mix": np.stack([s.real, s.imag], -1)[None, :, None].astype(np.float32)}


def whole(size):
    """Pieces of the stream for a model without state."""
    def make(_, __):
        x = frames(spoken(), size, size // 2)
        order = np.random.RandomState(0).permutation(len(x))[:CALIBRATION + 300]
        return x[order[:CALIBRATION]], x[order[CALIBRATION:]]
    return make


# ---- labelled and random

def split(inputs, label=None):
    order = np.random.RandomState(0).permutation(len(next(iter(inputs.values()))))
    calib, rest = order[:CALIBRATION], order[CALIBRATION:]
    answers = {} if label is None else {"label": label[rest].astype(np.int64)}
    return [{k: v[calib] for k, v in inputs.items()}, {k: v[rest] for k, v in inputs.items()} | answers]


def kws(data):
    z = np.load(os.path.join(data, "kws01", "kws01.npz"))
    return split({"input": (z["x"].astype(np.float32) - 83) * np.float32(0.58470291)}, z["y"])


def mnist(name, prepare):
    def make(data):
        def read(kind, skip):
            with gzip.open(os.path.join(data, "mnist-t10k", f"t10k-{kind}-ubyte.gz")) as f:
                return np.frombuffer(f.read()[skip:], np.uint8)
        images = read("images-idx3", 16).reshape(-1, 1, 28, 28).astype(np.float32)
        return split({name: prepare(images)}, read("labels-idx1", 8))
    return make


def hand(file, name, more=()):
    def make(data):
        table = np.loadtxt(os.path.join(data, "hand-keypoints", file), delimiter=",", dtype=np.float32)
        extra = {k: np.full(len(table), v, np.float32) for k, v in more}
        return split({name: table[:, 1:], **extra}, table[:, 0])
    return make


def ids(_, __):
    random = np.random.RandomState(5)
    n, length = CALIBRATION + 256, 16
    mask = (np.arange(length) < random.randint(6, length + 1, (n, 1))).astype(np.int64)
    return split({"input_ids": random.randint(0, 99, (n, length)), "token_type_ids": random.randint(0, 2, (n, length)),
                  "input_mask": mask})


def files(length):
    """The beginnings of this project's files, padded with 256 as magika does."""
    def make(_, __):
        root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
        names = subprocess.run(["git", "ls-files"], cwd=root, check=True, capture_output=True, text=True).stdout.split("\n")
        found = []
        for name in [n for n in sorted(names) if n and os.path.isfile(os.path.join(root, n))]:
            with open(os.path.join(root, name), "rb") as f:
                data = np.frombuffer(f.read(length), np.uint8).astype(np.float32)
            found.append(np.concatenate([data, np.full(length - len(data), 256, np.float32)]))
        order = np.random.RandomState(0).permutation(len(found))[:CALIBRATION + 300]
        found = np.stack(found)
        return found[order[:CALIBRATION]], found[order[CALIBRATION:]]
    return make


def lines(photos, _):
    """Lines of print, as they are and upside down."""
    random, out = np.random.RandomState(6), []
    pages = [p for p in photos.texts]
    if not pages:
        raise Missing("no pictures of text")
    for i in range(80):
        a = crop(pages[i % len(pages)], 48, 192, random)
        out.append(a[::-1, ::-1] if random.randint(2) else a)
    x = nchw(np.stack(out) / 127.5 - 1)
    return x[:PHOTOGRAPHS], x[PHOTOGRAPHS:]


class Photos(list):
    texts = ()


def data(make):
    return lambda _, __, folder: make(folder)


def plain(make, name):
    def wrapped(photos, model, _):
        return [x if isinstance(x, dict) else {name: x} for x in make(photos, model)]
    return wrapped


# name: file, options of convert, where the graph is cut ("" = not), maker
MODELS = {
    "kws-dscnn": ("mlperf-kws/kws-dscnn-fp32.onnx", [], "", data(kws)),
    "mnist8-cntk": ("mnist8-cntk/model.onnx", [], "", data(mnist("Input3", lambda x: x))),
    "mnist14-conv": ("mnist14-conv/mnist.simplified.onnx", [], "", data(mnist(
        "network_input", lambda x: x.reshape(-1, 1, 14, 2, 14, 2).mean((3, 5)).astype(np.float32)))),
    "mnist-mlp-bn": ("mnist-mlp-bn/pytorch.onnx", [], "", data(mnist(
        "network_input", lambda x: (x / 255).reshape(-1, 784).astype(np.float32)))),
    "hand-keypoint": ("hand-keypoint-softmax/keypoint_classifier_softmax.onnx", [], "", data(hand("keypoint.csv", "input"))),
    # Its answer is a class number: compared at the softmax, from which the number follows.
    "hand-history": ("hand-history/point_history_classifier.onnx", [], "base_scores",
                     data(hand("point_history.csv", "input"))),
    # 0..1 is the scale at which the other quantizers were measured; persons are found with 0..255 only.
    "person-det-192": ("person-det-192/model.onnx", [], "", plain(
        pictures(192, 192, lambda a: nchw(a[..., ::-1] / 255)), "images")),
    "person-det-255": ("person-det-192/model.onnx", [], "", plain(pictures(192, 192, lambda a: nchw(a[..., ::-1])), "images")),
    "ultraface-rfb320": ("ultraface-rfb320/version-RFB-320.onnx", [], "", plain(
        pictures(240, 320, lambda a: nchw((a - 127) / 128)), "input")),
    "yunet-120x160": ("yunet-120x160/face_detection_yunet_120x160.onnx", [], "", plain(
        pictures(120, 160, lambda a: nchw(a[..., ::-1])), "input")),
    "facemesh-192": ("facemesh-192/face_landmark_opt.onnx", [], "", plain(
        pictures(192, 192, lambda a: (a / 255).astype(np.float32)), "input_1")),
    "superres-x3": ("superres-x3/pytorch_super_resolution.onnx", [], "", plain(pictures(224, 224, luma), "input")),
    "tbefn-unet": ("tbefn-unet-180x320/model_float32.onnx", [], "", plain(
        pictures(180, 320, dark, calibrate=16), "Placeholder")),
    "mcunet-96": ("mcunet-96/network.onnx", [], "", plain(pictures(96, 96, imagenet, each=(4, 4)), "input")),
    "cct": ("cct-opset20/network.onnx", [], "", plain(pictures(32, 32, imagenet, each=(5, 8)), "input")),
    "ultraface-slim": ("ultraface-slim-simp/version-slim-320_simplified.onnx", [], "", plain(
        pictures(240, 320, lambda a: nchw((a - 127) / 128)), "input")),
    "mlperf-ic": ("mlperf-ic/ic-resnet8-fp32.onnx", [], "", plain(pictures(32, 32, lambda a: a, each=(5, 8)), "input")),
    "imgcls": ("imgcls-fp32/image_classifier32.onnx", [], "", plain(
        pictures(32, 32, lambda a: nchw(a / 127.5 - 1), each=(5, 8)), "modelInput")),
    "magika-v1": ("magika-v1/model.onnx", [], "", plain(files(1536), "bytes")),
    "silero-vad-micro": ("silero-vad-micro/model_micro.onnx", ["--dim", "samples=4000"], "", plain(whole(4000), "input")),
    "ocr-angle-cls": ("ocr-angle-cls/cls.onnx", ["--shape", "x=1,3,48,192"], "", plain(lines, "x")),
    "silero-vad-v5": ("silero-vad-v5-16k-static/silero_vad_openvino_16k.onnx", [], "", plain(
        speech(vad5, {"state": "stateN"}), "")),
    "silero-vad-v3": ("silero-vad-v3/silero_vad_v3.onnx", ["--dim", "sequence=1536"], "", plain(
        speech(vad3, {"h0": "hn", "c0": "cn"}), "")),
    "dtln-1": ("dtln-1/model_1.onnx", [], "", plain(speech(dtln, {"input_3": "tf_op_layer_stack_2"}), "")),
    "gtcrn": ("gtcrn-simple/gtcrn_simple.onnx", [], "", plain(speech(gtcrn, {
        "conv_cache": "conv_cache_out", "tra_cache": "tra_cache_out", "inter_cache": "inter_cache_out"}), "")),
    "bert-toy": ("bert-toy/bert_toy_optimized.onnx", ["--dim", "max_seq_len_in_batch=16"], "", plain(ids, "")),
}


def texts(folders):
    from PIL import Image
    names = "page.png", "text.png", "imagetextn.png", "imagetextr.png", "notes.png", "text_defocus.jpg"
    return [Image.open(os.path.join(place, f)).convert("RGB") for folder in folders
            for place, _, files in sorted(os.walk(folder)) for f in sorted(files) if f.lower() in names]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--photos", nargs="*", default=[])
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--shared", default=os.environ.get("SINTER_SHARED", "../shared"))
    args = parser.parse_args()
    photos, why = Photos(), ""
    try:
        photos = Photos(photographs(args.photos))
        photos.texts = texts(args.photos)
    except Missing as e:
        why = str(e)
    print(f"{len(photos)} photographs, {len(photos.texts)} pictures of text {why}")
    for name, (file, flags, cut, make) in MODELS.items():
        if args.only and name not in args.only:
            continue
        model, folder = os.path.join(args.shared, "models", file), os.path.join(args.out, name)
        try:
            if not os.path.exists(model):
                raise Missing(f"no {file}")
            calib, evaluate = make(photos, model, os.path.join(args.shared, "data"))
        except (Missing, OSError) as e:
            print(f"skip  {name}: {e}")
            continue
        os.makedirs(folder, exist_ok=True)
        np.savez(os.path.join(folder, "calib.npz"), **calib)
        np.savez(os.path.join(folder, "eval.npz"), **evaluate)
        with open(os.path.join(folder, "meta.json"), "w") as f:
            json.dump({"model": file, "flags": flags, "cut": cut}, f)
        about = "; ".join(f"{k} {list(v.shape)} in {v.min():.4g} .. {v.max():.4g}" for k, v in evaluate.items())
        print(f"made  {name}: {about}; {len(next(iter(calib.values())))} to calibrate", flush=True)


if __name__ == "__main__":
    main()
