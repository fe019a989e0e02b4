"""The data of the networks in this folder: made anew wherever they are needed, from fixed seeds, by numpy alone.

data(NAME) gives calibration and evaluation arrays in the layout of `sinter run --each`, answers in "label";
train.py takes other seeds of the same tasks. RandomState's streams are the same in every version of numpy.
"""
import numpy as np

CALIBRATION, EVALUATION = 128, 400


def grid(n):
    y, x = np.mgrid[0:n, 0:n].astype(np.float64)
    return y, x


def shapes(r, n, size=24):
    """Colour pictures of 5 shapes x 2 textures at any place, size, brightness and colour, in noise: class of 10."""
    y, x = grid(size)
    images, label = np.empty((n, 3, size, size), np.float32), r.randint(0, 10, n)
    for i in range(n):
        cy, cx, s = r.uniform(8, size - 8), r.uniform(8, size - 8), r.uniform(5.0, 8.5)
        dy, dx = (y - cy) / s, (x - cx) / s
        radius = np.hypot(dy, dx)
        shape = [radius < 1, np.maximum(abs(dy), abs(dx)) < 0.85, (dy > abs(dx) * 1.7 - 0.9) & (dy < 0.8),
                 (np.minimum(abs(dy), abs(dx)) < 0.3) & (np.maximum(abs(dy), abs(dx)) < 1), (radius < 1) & (radius > 0.55)][
                     label[i] // 2]
        angle, period = r.uniform(0, np.pi), r.uniform(2.2, 3.2)
        u, v = y * np.cos(angle) + x * np.sin(angle), x * np.cos(angle) - y * np.sin(angle)
        wave = np.sin(2 * np.pi * u / period)
        if label[i] % 2:
            wave = wave * np.sin(2 * np.pi * v / period) * 1.5
        color, back = r.uniform(0.3, 1, 3), r.uniform(-0.3, 0.3, 3)
        picture = shape * (0.5 + 0.5 * wave)
        images[i] = back[:, None, None] + color[:, None, None] * picture + r.normal(0, 0.22, (3, size, size))
    return {"image": images}, label


def spikes(r, n, length=64):
    """Two-channel waves of 5 kinds; in one sample of 16 a few readings are 30 to 100 times too large: class of 5."""
    t = np.arange(length)
    x, label = np.empty((n, 2, length), np.float32), r.randint(0, 5, n)
    for i in range(n):
        period, phase = r.uniform(7, 16), r.uniform(0, 2 * np.pi)
        p = t / period + phase / (2 * np.pi)
        wave = [np.sin(2 * np.pi * p), np.sign(np.sin(2 * np.pi * p)), 2 * (p % 1) - 1, 2 * abs(2 * (p % 1) - 1) - 1,
                np.sin(2 * np.pi * p * (1 + t / length))][label[i]]
        x[i] = wave * r.uniform(0.6, 1.4, (2, 1)) + r.normal(0, 0.45, (2, length))
        if r.randint(16) == 0:
            where = r.randint(0, length, r.randint(1, 4))
            x[i][r.randint(2), where] += r.choice([-1, 1], len(where)) * r.uniform(30, 100, len(where))
    return {"signal": x}, label


def sequences(r, n, length=16, width=8):
    """Noisy codes of 6 symbols; one code is preceded by a marker, and the answer is which one: class of 5."""
    codes = np.random.RandomState(77).normal(0, 1, (6, width))
    symbols, label = r.randint(0, 5, (n, length)), r.randint(0, 5, n)
    at = r.randint(0, length - 1, n)
    symbols[np.arange(n), at] = 5
    symbols[np.arange(n), at + 1] = label
    x = codes[symbols] + r.normal(0, 0.65, (n, length, width))
    return {"frames": x.astype(np.float32)}, label


def spectrograms(r, n, steps=24, bands=12):
    """Word-like tracks of two formants over time in 6 kinds, as log spectra in noise: class of 6."""
    t, f = np.linspace(0, 1, steps), np.arange(bands)
    low = [lambda t: 2 + 3 * t, lambda t: 5 - 3 * t, lambda t: 2 + 3 * np.sin(np.pi * t), lambda t: 5 - 3 * np.sin(np.pi * t),
           lambda t: 3.5 + 0 * t, lambda t: 3.5 + 1.5 * np.sin(2 * np.pi * t)]
    x, label = np.empty((n, steps, bands), np.float32), r.randint(0, 6, n)
    for i in range(n):
        begin, span = r.uniform(0, 0.25), r.uniform(0.65, 0.9)
        s = np.clip((t - begin) / span, 0, 1)
        loud = ((t > begin) & (t < begin + span)) * r.uniform(0.6, 1.3)
        track = low[label[i]](s) + r.uniform(-1, 1)
        picture = sum(np.exp(-((f - c[:, None]) / 0.9) ** 2) for c in (track, track + 4 + r.uniform(-0.5, 0.5)))
        x[i] = 4 * loud[:, None] * picture - 3 + r.normal(0, 2.4, (steps, bands))
    return {"spectrum": x}, label


def raw_spectrograms(r, n):
    """The same with bands in units from 1e-3 to 1e3."""
    x, label = spectrograms(r, n)
    return {"spectrum": (x["spectrum"] * np.logspace(-3, 3, 12)).astype(np.float32)}, label


def pictures(r, n, size=32):
    """Smooth scenes with edges in 0..1, and the same under noise of changing strength: what to restore."""
    y, x = grid(size)
    clean = np.empty((n, 1, size, size), np.float32)
    for i in range(n):
        a = 0.5 + 0.2 * np.sin(x * r.uniform(0.05, 0.3) + r.uniform(0, 6)) * np.cos(y * r.uniform(0.05, 0.3) + r.uniform(0, 6))
        for _ in range(r.randint(2, 6)):
            angle, c, s = r.uniform(0, np.pi), r.uniform(6, size - 6, 2), r.uniform(3, 10, 2)
            u = (y - c[0]) * np.cos(angle) + (x - c[1]) * np.sin(angle)
            v = (x - c[1]) * np.cos(angle) - (y - c[0]) * np.sin(angle)
            inside = (u / s[0]) ** 2 + (v / s[1]) ** 2 < 1 if r.randint(2) else (abs(u) < s[0]) & (abs(v) < s[1])
            a = np.where(inside, r.uniform(0, 1), a)
        clean[i, 0] = a
    noisy = clean + r.normal(0, 1, clean.shape) * r.uniform(0.05, 0.15, (n, 1, 1, 1))
    return {"noisy": noisy.astype(np.float32)}, clean


def boxes(r, n, size=40):
    """One bright thing of 3 kinds (disc, square, stripes) in a picture that represents 300 x 300: its box and kind."""
    y, x = grid(size)
    images, label, box = np.empty((n, 1, size, size), np.float32), r.randint(0, 3, n), np.empty((n, 4), np.float32)
    for i in range(n):
        h, w = r.uniform(7, 17, 2)
        cy, cx = r.uniform(h / 2, size - h / 2), r.uniform(w / 2, size - w / 2)
        dy, dx = 2 * (y - cy) / h, 2 * (x - cx) / w
        inside = np.hypot(dy, dx) < 1 if label[i] == 0 else np.maximum(abs(dy), abs(dx)) < 1
        value = inside * (0.5 + 0.5 * np.sign(np.sin(x * 2)) if label[i] == 2 else 0.75)
        images[i, 0] = value * r.uniform(0.5, 1) + r.normal(0, 0.24, (size, size))
        box[i] = np.array([cx, cy, w, h]) * 300 / size
    return {"image": images}, (box, label)


def columns(r, n):
    """12 raw columns from 1e-3 to 1e5, some skewed, some whole numbers; class of 3 by a smooth rule with exceptions."""
    g = r.normal(0, 1, (n, 12))
    x = np.stack([0.001 * np.exp(0.5 * g[:, 0]), 40 + 12 * g[:, 1], 5e4 + 2e4 * g[:, 2], 0.02 * g[:, 3], 3 + g[:, 4],
                  np.exp(8 + 0.8 * g[:, 5]), np.round(2 * abs(g[:, 6])), (g[:, 7] > 0).astype(float), 1013 + 8 * g[:, 8],
                  1e-3 * g[:, 9], 250 + 60 * g[:, 10], 1e5 * np.exp(-abs(g[:, 11]))], 1)
    score = np.stack([1.2 * g[:, 0] + g[:, 1] * g[:, 7] - 0.6 * g[:, 5], 0.8 * g[:, 2] + np.sin(1.5 * g[:, 3]) + 0.5 * g[:, 8],
                      1.1 * g[:, 4] - 0.5 * g[:, 9] ** 2 + 0.4 * g[:, 10] + 0.3 * abs(g[:, 6])], 1)
    return {"columns": x.astype(np.float32)}, (score + r.normal(0, 0.1, score.shape)).argmax(1)


def latents(r, n):
    """Two latents, a step of the schedule and a text's states: what a denoiser of pictures is given, and the noise."""
    y, x = grid(8)
    clean = np.empty((n, 2, 4, 8, 8))
    text = r.normal(0, 1, (n, 2, 6, 16))
    for i in range(n):
        for b in range(2):
            k = text[i, b].mean(0)[:4, None, None]
            clean[i, b] = np.sin(x * (0.5 + 0.3 * k) + r.uniform(0, 6)) + np.cos(y * (0.4 - 0.3 * k))
    step = r.randint(0, 1000, (n, 2)).astype(np.float32)
    level = np.cos(step / 1000 * np.pi / 2)[:, :, None, None, None]
    noise = r.normal(0, 1, clean.shape)
    return {"sample": (level * clean + np.sqrt(1 - level ** 2) * noise).astype(np.float32), "timestep": step,
            "encoder_hidden_states": text.astype(np.float32)}, noise.astype(np.float32)


# name: task, whether the answer is a class
NETS = {"depthwise": (shapes, True), "prelu": (shapes, True), "outliers": (spikes, True), "attention": (sequences, True),
        "lstm": (spectrograms, True), "lstm_raw": (raw_spectrograms, True), "gru": (spectrograms, True),
        "boxes": (boxes, False), "columns": (columns, True), "unet": (pictures, False), "denoiser": (latents, False)}


def data(name):
    task, labelled = NETS[name]
    calib, _ = task(np.random.RandomState(1000), CALIBRATION)
    evaluate, answer = task(np.random.RandomState(2000), EVALUATION if labelled else EVALUATION // 4)
    return calib, {**evaluate, **({"label": answer.astype(np.int64)} if labelled else {})}
