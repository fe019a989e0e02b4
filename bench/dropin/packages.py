"""What dropin.py runs: packages of PyPI with the models that they ship, on inputs that are drawn or synthesized.

    packages.py run PACKAGE onnxruntime|sinter THREADS SECONDS OUTPUT.npz     (in the package's virtual environment)
    packages.py compare ONE.npz OTHER.npz

Each task is a name and a function without arguments. Its result is what the package returns to its user. All arrays that
sessions return in the first call are kept, too, so that the numbers behind the results are compared. Times are of the first
call, which includes Sinter's conversions, and of later calls, which begin when conversions in the background have ended.
"""
import gzip
import io
import json
import os
import sys
import time

import numpy as np

RUNS = []  # the outputs of every session's run, while they are recorded
RECORDING = [False]


def text_image(lines, size, width, height=None):
    """Returns a picture of lines of text, as a PIL image."""
    from PIL import Image, ImageDraw, ImageFont
    image = Image.new("RGB", (width, height or int(size * 1.6) * len(lines) + 16), "white")
    draw = ImageDraw.Draw(image)
    for i, line in enumerate(lines):
        draw.text((12, 8 + i * int(size * 1.6)), line, fill="black", font=ImageFont.load_default(size))
    return image


def png(image):
    data = io.BytesIO()
    image.save(data, "PNG")
    return data.getvalue()


def picture(width, height, seed):
    """Returns a smooth picture with noise, as bytes of height, width and three channels."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    waves = [np.sin(x / rng.uniform(8, 60) + y / rng.uniform(8, 60) + rng.uniform(0, 6)) for _ in range(3)]
    return np.clip(128 + 80 * np.stack(waves, -1) + rng.normal(0, 8, (height, width, 3)), 0, 255).astype(np.uint8)


def voice(seconds, rate):
    """Returns a sound like a voice: a pitch with formants, in syllables with pauses between them."""
    t = np.arange(int(seconds * rate)) / rate
    pitch = 120 + 15 * np.sin(2 * np.pi * 0.7 * t)
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    sound = sum(np.sin(k * phase) * sum(np.exp(-((k * 120 - f) / 120) ** 2) for f in (500, 1500, 2500)) / k for k in range(1, 25))
    syllables = np.clip(np.sin(2 * np.pi * 3 * t), 0, 1) * (np.sin(2 * np.pi * 0.4 * t) > -0.3)
    noise = np.random.default_rng(3).normal(0, 0.003, t.size)
    return (0.25 * sound * syllables + noise).astype(np.float32)


def melody(rate=22050):
    """Returns a tune of eight notes with harmonics."""
    notes = [261.6, 293.7, 329.6, 349.2, 392.0, 440.0, 493.9, 523.3]
    t = np.arange(int(0.5 * rate)) / rate
    tones = [sum(np.sin(2 * np.pi * f * k * t) / k ** 1.5 for k in range(1, 6)) * np.exp(-3 * t) for f in notes]
    return (0.3 * np.concatenate(tones)).astype(np.float32)


def silero_vad():
    import torch
    from silero_vad import get_speech_timestamps, load_silero_vad
    torch.set_num_threads(1)
    tasks = []
    for rate, opset in ((16000, 16), (8000, 16), (16000, 15)):
        model = load_silero_vad(onnx=True, opset_version=opset)
        wave = torch.from_numpy(voice(8, rate))
        tasks.append((f"timestamps, {rate} Hz, opset {opset}",
                      lambda m=model, w=wave, r=rate: get_speech_timestamps(w, m, sampling_rate=r, threshold=0.3)))
        tasks.append((f"probabilities, {rate} Hz, opset {opset}", lambda m=model, w=wave, r=rate: m.audio_forward(w, sr=r).numpy()))
    return tasks


def magika():
    from magika import Magika
    detector = Magika()
    contents = {"python": open(__file__, "rb").read(), "json": json.dumps({"a": list(range(500))}).encode(),
                "elf": open(sys.executable, "rb").read(1 << 20), "gzip": gzip.compress(b"text" * 5000, mtime=0),
                "html": b"<!doctype html><html><body>" + b"<p>text</p>" * 300, "c": b"#include <stdio.h>\nint main(void) { return 0; }\n" * 40}
    folder = os.environ["DROPIN_FOLDER"]
    paths = []
    for name, data in contents.items():
        paths.append(os.path.join(folder, f"magika-{name}"))
        with open(paths[-1], "wb") as file:
            file.write(data)

    def answer(result):
        return [str(result.output.label), float(result.score)]

    return [("one file", lambda: answer(detector.identify_bytes(contents["python"]))),
            ("six files at once", lambda: [answer(r) for r in detector.identify_paths(paths)]),
            ("four files at once", lambda: [answer(r) for r in detector.identify_paths(paths[:4])])]


def rapidocr_onnxruntime():
    from rapidocr_onnxruntime import RapidOCR
    engine = RapidOCR()
    page = np.asarray(text_image(["Sinter turns an ONNX model", "into one small file", "with a fixed memory plan, 2026"], 32, 640))
    line = np.asarray(text_image(["Total: 1234.56 EUR"], 40, 520))
    wide = np.asarray(text_image(["The quick brown fox jumps over the lazy dog 0123456789"], 28, 900))

    def read(image):
        found, _ = engine(image)
        return [[text, float(score), np.asarray(box).tolist()] for box, text, score in found or []]

    return [("a page of three lines", lambda: read(page)), ("one line", lambda: read(line)), ("a wide line", lambda: read(wide))]


def basic_pitch():
    import soundfile
    from basic_pitch import ICASSP_2022_MODEL_PATH
    from basic_pitch.inference import Model, predict
    path = os.path.join(os.environ["DROPIN_FOLDER"], "melody.wav")
    soundfile.write(path, melody(), 22050)
    model = Model(ICASSP_2022_MODEL_PATH)

    def notes():
        outputs, _, events = predict(path, model)
        return [outputs["note"], sorted([float(a), float(b), int(pitch), float(loud)] for a, b, pitch, loud, _ in events)]

    return [("eight notes", notes)]


def nudenet():
    from nudenet import NudeDetector
    detector = NudeDetector()
    images = [picture(480, 640, 1), picture(640, 360, 2), picture(320, 320, 3)]

    def found(results):
        return [[r["class"], float(r["score"]), r["box"]] for r in results]

    return [("one picture", lambda: found(detector.detect(images[0]))),
            ("three pictures at once", lambda: [found(r) for r in detector.detect_batch(images)])]


def ddddocr():
    import ddddocr as package
    new, old = package.DdddOcr(show_ad=False), package.DdddOcr(old=True, show_ad=False)
    beta = package.DdddOcr(beta=True, show_ad=False)
    detector = package.DdddOcr(det=True, ocr=False, show_ad=False)
    words = {text: png(text_image([text], 36, width)) for text, width in (("a7Kp", 130), ("9xB2m", 160), ("sinter", 190))}
    page = png(text_image(["one two", "three"], 48, 400, 300))
    tasks = []
    for name, reader in (("default", new), ("old", old), ("beta", beta)):
        for text, data in words.items():
            tasks.append((f"{name} model, '{text}'", lambda r=reader, d=data: r.classification(d)))
    return [*tasks, ("detection", lambda: detector.detection(page))]


PACKAGES = {"silero-vad": silero_vad, "magika": magika, "rapidocr-onnxruntime": rapidocr_onnxruntime, "basic-pitch": basic_pitch,
            "nudenet": nudenet, "ddddocr": ddddocr}


def take_engine(engine, threads):
    """Makes `import onnxruntime` give the engine, records the outputs of its sessions, and sets their threads."""
    if engine == "sinter":
        import sinter_runtime.onnxruntime as ort
        ort.install()
    import onnxruntime as ort

    class Recorded(ort.InferenceSession):
        def __init__(self, model, sess_options=None, providers=None, **rest):
            sess_options = sess_options or ort.SessionOptions()
            sess_options.intra_op_num_threads = threads
            sess_options.inter_op_num_threads = 1
            super().__init__(model, sess_options, providers, **rest)

        def run(self, *arguments, **named):
            outputs = super().run(*arguments, **named)
            if RECORDING[0]:
                RUNS.extend(np.array(output) for output in outputs)
            return outputs

    ort.InferenceSession = Recorded
    inner = sys.modules.get("onnxruntime.capi.onnxruntime_inference_collection")
    if inner is not None:
        inner.InferenceSession = Recorded


def settle(engine):
    """Waits for conversions in the background."""
    if engine == "sinter":
        from sinter_runtime.onnxruntime import _background
        while _background._running:
            time.sleep(0.01)


def plain(value):
    """Returns a result as JSON has it."""
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return value.item() if isinstance(value, np.generic) else value


def measure(call, seconds):
    """Returns the times of calls, in seconds: three, and more until `seconds` have passed."""
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return times


def run(package, engine, threads, seconds, output):
    take_engine(engine, int(threads))
    start = time.perf_counter()
    tasks = PACKAGES[package]()
    report = {"start": time.perf_counter() - start, "tasks": {}}
    arrays = {}
    for name, call in tasks:
        RUNS.clear()
        RECORDING[0] = True
        start = time.perf_counter()
        result = call()
        first = time.perf_counter() - start
        RECORDING[0] = False
        arrays.update({f"{name}/{i}": array for i, array in enumerate(RUNS)})
        report["tasks"][name] = {"first": first, "result": plain(result)}
    settle(engine)
    for name, call in tasks:
        call()
    settle(engine)
    for name, call in tasks:
        report["tasks"][name]["later"] = measure(call, float(seconds))
    np.savez(output, **arrays)
    json.dump(report, sys.stdout)


def compare(one, other):
    """Prints by task the largest difference of arrays over the largest magnitude; null where numbers of arrays or shapes differ."""
    worst = {}
    with np.load(one) as first, np.load(other) as second:
        for name in sorted({*first.files, *second.files}):
            task = name.rpartition("/")[0]
            a, b = (file[name] if name in file.files else np.zeros(0) for file in (first, second))
            if a.shape != b.shape or a.dtype != b.dtype:
                worst[task] = None
            elif a.size and worst.setdefault(task, 0.0) is not None:
                a, b = a.astype(np.float64), b.astype(np.float64)
                worst[task] = max(worst[task], float(np.abs(a - b).max() / max(np.abs(a).max(), 1e-30)))
    json.dump(worst, sys.stdout)


if __name__ == "__main__":
    {"run": run, "compare": compare}[sys.argv[1]](*sys.argv[2:])
