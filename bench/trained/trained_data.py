"""Data of the networks that train.py trains: generators with a seed, so that every draw is new.

    draw(NAME, SEED, COUNT) -> {input: array}, in the layout of `sinter convert --calibrate`

TASKS has the generators, TASK(RandomState, COUNT) -> inputs and answers. Wide ranges are as real data have them: loudness
over 50 dB, columns with long tails, pictures whose contrast varies. RandomState's streams are the same in every version of
numpy.
"""
import os
import sys

import numpy as np

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "quantize", "nets"))
import nets_data  # noqa: E402


def pick(functions, label, *args):
    """The function of each sample's class, of arrays whose first axis are samples."""
    result = None
    for k, f in enumerate(functions):
        rows = label == k
        value = f(*[a[rows] for a in args])
        if result is None:
            result = np.empty((len(label), *value.shape[1:]))
        result[rows] = value
    return result


def words(r, n, length=2048, rate=4000):
    """Waves of half a second: a voice whose pitch moves in one of 6 ways, 50 dB of loudness, 3 to 30 dB over noise."""
    label, t = r.randint(0, 6, n), np.arange(length) / rate
    begin, span = r.uniform(0, 0.15, (n, 1)), r.uniform(0.25, 0.35, (n, 1))
    s = np.clip((t - begin) / span, 0, 1)
    move = pick([lambda s: 0.5 * s, lambda s: -0.4 * s, lambda s: 0.5 * np.sin(np.pi * s), lambda s: -0.35 * np.sin(np.pi * s),
                 lambda s: 0 * s, lambda s: 0.08 * np.sin(12 * np.pi * s)], label, s)
    phase = 2 * np.pi * np.cumsum(r.uniform(150, 300, (n, 1)) * (1 + move), 1) / rate
    voice = sum(r.uniform(0.2, 1, (n, 1)) / k * np.sin(k * phase) for k in (1, 2, 3, 5))
    voice *= np.sin(np.pi * s) ** 0.5 * (s > 0) * (s < 1)
    loud = 10 ** (-r.uniform(0, 50, (n, 1)) / 20)
    noise = r.normal(0, 1, (n, length)) * 10 ** (-r.uniform(3, 30, (n, 1)) / 20) * 0.4
    return {"wave": (0.5 * loud * (voice + noise) + 1e-4 * r.normal(0, 1, (n, length))).astype(np.float32)[:, None]}, label


def keywords(r, n, steps=40, bands=20):
    """Log spectra of words of 8 kinds: two formants over time, with loudness, noise and silence before and behind."""
    label, t, f = r.randint(0, 8, n), np.linspace(0, 1, steps), np.arange(bands)
    begin, span = r.uniform(0, 0.25, (n, 1)), r.uniform(0.5, 0.75, (n, 1))
    s = np.clip((t - begin) / span, 0, 1)
    track = pick([lambda s: 3 + 5 * s, lambda s: 8 - 5 * s, lambda s: 3 + 5 * np.sin(np.pi * s), lambda s: 8 - 5 * np.sin(np.pi * s),
                  lambda s: 5.5 + 0 * s, lambda s: 5.5 + 3 * np.sin(2 * np.pi * s), lambda s: 3 + 5 * (s > 0.5),
                  lambda s: 8 - 5 * (s > 0.5)], label, s) + r.uniform(-1, 1, (n, 1))
    power = 10 ** (r.uniform(-2.5, 1, (n, 1, 1))) * (((s > 0) & (s < 1))[:, :, None] *
        sum(np.exp(-((f - (track + up)[:, :, None]) / 1.0) ** 2) for up in (0, 7)) + 10 ** r.uniform(-3, -1, (n, 1, 1)))
    return {"spectrum": np.log(power * r.gamma(4, 0.25, power.shape) + 1e-3).astype(np.float32).transpose(0, 2, 1)}, label


FACTORS = np.random.RandomState(5).normal(0, 0.6, (30, 4))
SPREADS = np.random.RandomState(6).uniform(0.1, 0.55, 30)
SIZES = np.exp(np.random.RandomState(7).uniform(np.log(0.004), np.log(250), 30))


def cells(r, n):
    """30 raw columns of measured cells: from 0.003 to some thousands, log-normal, three of them areas; class of 2."""
    hidden = r.normal(0, 1, (n, 4))
    x = SIZES * np.exp(SPREADS * (hidden @ FACTORS.T + 0.6 * r.normal(0, 1, (n, 30))))
    radius = 13 * np.exp(0.24 * (hidden[:, :1] + 0.15 * r.normal(0, 1, (n, 3))))
    x[:, [3, 13, 23]] = np.pi * radius ** 2 * np.array([1, 0.06, 1.4])
    score = 1.5 * hidden[:, 0] + hidden[:, 1] - 0.7 * hidden[:, 2] * hidden[:, 3] + 0.3 * r.normal(0, 1, n)
    return {"columns": x.astype(np.float32)}, (score > 0.5).astype(np.int64)


def prices(r, n):
    """10 raw columns of sales with heavy tails, some whole numbers; the answer is a price, whose tail is as heavy."""
    g = r.normal(0, 1, (n, 10))
    x = np.stack([np.exp(4.5 + 0.6 * g[:, 0]), np.round(np.exp(0.8 + 0.5 * g[:, 1])), 1950 + 25 * g[:, 2], np.exp(1.2 * g[:, 3]),
                  100 * np.exp(0.9 * g[:, 4]), (g[:, 5] > 0).astype(float), 50 + 10 * g[:, 6], 0.01 * g[:, 7],
                  r.pareto(2.5, n) + 1, np.round(4 * abs(g[:, 9]))], 1)
    price = x[:, 0] * (2 + 0.02 * (x[:, 2] - 1950)) * (1 + 0.5 * x[:, 5]) + 8 * x[:, 1] * x[:, 8] + 30 * np.log1p(x[:, 3])
    return {"sale": x.astype(np.float32)}, (price[:, None] / 100).astype(np.float32)


ARC = np.array([[np.cos(a), np.sin(a)] for a in np.linspace(0, 2 * np.pi, 9)])
STROKES = [  # polylines of digits, in x and y from -1 to 1
    [ARC * [0.6, 0.9]], [[[-0.3, 0.6], [0.1, 0.9], [0.1, -0.9]]],
    [[[-0.6, 0.5], [-0.2, 0.9], [0.4, 0.8], [0.5, 0.3], [-0.6, -0.9], [0.6, -0.9]]],
    [[[-0.5, 0.9], [0.5, 0.9], [0, 0.2], [0.5, -0.2], [0.4, -0.8], [-0.5, -0.8]]],
    [[[0.4, -0.9], [0.4, 0.9], [-0.6, -0.2], [0.7, -0.2]]],
    [[[0.5, 0.9], [-0.5, 0.9], [-0.5, 0.1], [0.3, 0.1], [0.6, -0.4], [0.2, -0.9], [-0.5, -0.8]]],
    [[[0.4, 0.9], [-0.4, 0.2], [-0.5, -0.5]], ARC * [0.5, 0.45] + [0, -0.45]], [[[-0.6, 0.9], [0.6, 0.9], [-0.1, -0.9]]],
    [ARC * [0.45, 0.42] + [0, 0.48], ARC * [0.55, 0.45] + [0, -0.45]],
    [ARC * [0.5, 0.45] + [0, 0.45], [[0.5, 0.4], [0.4, -0.3], [0, -0.9]]]]


def digits(r, n, size=28):
    """Written digits in 0 to 1, turned, slanted, shifted, thick and thin, as vectors of 784; class of 10."""
    y, x = (1 - 2 * (a + 0.5) / size for a in nets_data.grid(size))
    place = np.stack([-x, y], -1).reshape(-1, 2) * 1.4
    label, picture = r.randint(0, 10, n), np.empty((n, size * size), np.float32)
    for i in range(n):
        a, slant = r.normal(0, 0.15), r.normal(0, 0.2)
        turn = np.array([[np.cos(a), -np.sin(a)], [np.sin(a) + slant, np.cos(a)]]) * r.uniform(0.75, 1.15, (2, 1))
        near = np.full(len(place), 9.0)
        for line in STROKES[label[i]]:
            p = (np.asarray(line) + r.normal(0, 0.06, (len(line), 2))) @ turn + r.normal(0, 0.08, 2)
            d = p[1:] - p[:-1]
            along = np.clip(((place[:, None] - p[:-1]) * d).sum(2) / ((d ** 2).sum(1) + 1e-9), 0, 1)
            near = np.minimum(near, np.sqrt(((place[:, None] - p[:-1] - along[..., None] * d) ** 2).sum(2)).min(1))
        picture[i] = np.clip((r.uniform(0.12, 0.26) - near) / 0.1 + 0.5, 0, 1)
    return {"pixels": picture}, label


def smooth_field(r, n, channels, size, slope, stretch=1, angle=0):
    """Gaussian fields with a power law as pictures have it, of deviation 1, longer in one direction."""
    v, u = np.meshgrid(np.fft.fftfreq(size), np.fft.fftfreq(size), indexing="ij")
    slope, stretch, angle = (np.broadcast_to(np.asarray(a, float), (n,))[:, None, None, None] for a in (slope, stretch, angle))
    along, across = u * np.cos(angle) + v * np.sin(angle), v * np.cos(angle) - u * np.sin(angle)
    weight = (along ** 2 * stretch + across ** 2 / stretch + 0.3 / size ** 2) ** (-slope / 2)
    weight[..., 0, 0] = 0
    field = np.fft.ifft2(np.fft.fft2(r.normal(0, 1, (n, channels, size, size))) * weight).real
    return field / field.std((1, 2, 3), keepdims=True)


def textures(r, n, size=32):
    """Colour textures of 4 directions, fine and coarse, of any contrast, brightness and colour; class of 8."""
    label = r.randint(0, 8, n)
    grey = smooth_field(r, n, 1, size, 1 + label % 2, 4, label // 2 * np.pi / 4 + r.normal(0, 0.15, n))
    colour = r.normal(0, 0.4, (n, 3, 1, 1)) + smooth_field(r, n, 3, size, 1.5) * 0.15 + 0.1 * r.normal(0, 1, (n, 3, size, size))
    return {"image": (grey * np.exp(r.normal(-0.8, 0.6, (n, 1, 1, 1))) + colour).astype(np.float32)}, label


def photos(r, n):
    """The shapes of nets_data.py as bytes of a camera: 0 to 255, with exposure from dark to bright."""
    x, label = nets_data.shapes(r, n, 32)
    light = np.exp(r.normal(0, 0.4, (n, 1, 1, 1)))
    return {"image": np.clip(np.round(255 * (0.35 + 0.35 * x["image"]) * light), 0, 255).astype(np.float32)}, label


def noisy(r, n, size=32):
    """Smooth colour scenes in 0 to 1 under noise of changing strength: what to restore."""
    clean = 0.5 + 0.13 * smooth_field(r, n, 3, size, 2.2) * np.exp(r.normal(0, 0.3, (n, 1, 1, 1)))
    step = (smooth_field(r, n, 1, size, 2.5) > r.uniform(-0.5, 0.8, (n, 1, 1, 1))) * r.uniform(-0.4, 0.4, (n, 3, 1, 1))
    clean = np.clip(clean + step, 0, 1)
    return {"noisy": (clean + r.normal(0, 1, clean.shape) * r.uniform(0.02, 0.2, (n, 1, 1, 1))).astype(np.float32)}, clean.astype(np.float32)


def objects(r, n, size=48, cell=8):
    """Pictures with none to three things of 2 kinds; for each of 36 cells a box (centre, size in pixels) and two scores."""
    y, x = nets_data.grid(size)
    image = r.normal(0, 0.12, (n, 1, size, size)) + 0.2 * smooth_field(r, n, 1, size, 2)
    boxes, scores = np.zeros((n, size // cell, size // cell, 4)), np.zeros((n, size // cell, size // cell, 2))
    for i in range(n):
        for _ in range(r.randint(0, 4)):
            (h, w), kind = r.uniform(7, 17, 2), r.randint(2)
            cy, cx = r.uniform(h / 2, size - h / 2), r.uniform(w / 2, size - w / 2)
            dy, dx = 2 * (y - cy) / h, 2 * (x - cx) / w
            inside = np.hypot(dy, dx) < 1 if kind else np.maximum(abs(dy), abs(dx)) < 1
            image[i, 0] = np.where(inside, r.uniform(0.7, 1.6), image[i, 0])
            at = int(cy // cell), int(cx // cell)
            boxes[i][at], scores[i][at] = (cx, cy, w, h), (kind == 0, kind == 1)
    return {"image": image.astype(np.float32)}, (boxes.reshape(n, -1, 4).astype(np.float32), scores.reshape(n, -1, 2).astype(np.float32))


def loads(r, n, steps=48):
    """Hourly loads of meters with two seasons, a trend, autocorrelated noise and rare peaks; the answer: the next 4."""
    t = np.arange(steps + 4)
    wave = sum(r.gamma(2, 0.4, (n, 1)) * np.sin(2 * np.pi * t / p + r.uniform(0, 6.3, (n, 1))) for p in (24, 12))
    drift, shocks = np.zeros((n, steps + 4)), r.standard_t(3, (n, steps + 4)) * 0.2
    for k in range(1, steps + 4):
        drift[:, k] = 0.8 * drift[:, k - 1] + shocks[:, k]
    load = (4 + wave + drift + r.normal(0, 0.02, (n, 1)) * t) * np.exp(r.normal(0, 0.5, (n, 1)))
    clock = np.broadcast_to(np.sin(2 * np.pi * t / 24), load.shape)
    return {"load": np.stack([load, clock], 2)[:, :steps].astype(np.float32)}, load[:, steps:].astype(np.float32)


def sentences(r, n, length=24, words=200):
    """Ids of words by Zipf's law; a word's tag of 6 depends on the word, on the one before and on a word that opens the
    sentence.
    """
    share = 1 / np.arange(2, words + 2)
    ids = r.choice(words, (n, length), p=share / share.sum())
    before = np.concatenate([ids[:, :1], ids[:, :-1]], 1)
    return {"ids": ids.astype(np.int64)}, (ids % 6 + (before % 7 == 3) * 2 + (ids[:, :1] % 2) * (ids % 5 == 1) * 3) % 6


def frames(r, n):
    """Noisy codes of symbols (nets_data.sequences) with a width of 16."""
    x, label = nets_data.sequences(r, n, 16, 16)
    return x, label


def hums(r, n, bands=24, steps=5):
    """Log spectra of a machine at changing speed and load, as vectors of 120, and clicks in one sample of 20."""
    f, speed, load = np.arange(bands), r.uniform(3, 6, (n, 1, 1)), np.exp(r.normal(0, 0.7, (n, 1, 1)))
    tones = sum(np.exp(-((f - k * speed + r.normal(0, 0.1, (n, steps, 1))) / 0.7) ** 2) / k for k in (1, 2, 3, 4))
    power = load * tones + 0.05 * np.exp(-f / 12) + (r.uniform(0, 1, (n, 1, 1)) < 0.05) * 5 * (r.uniform(0, 1, (n, steps, 1)) < 0.4)
    x = 10 * np.log10(power * r.gamma(6, 1 / 6, power.shape) + 1e-4).reshape(n, -1).astype(np.float32)
    return {"spectrum": x}, x


# name: generator, whether the answer is a class
TASKS = {"audio-words": (words, True), "audio-keywords": (keywords, True), "tabular-cells": (cells, True), "tabular-prices": (prices, False),
         "mlp-digits": (digits, True), "cnn-softmax": (nets_data.shapes, True), "convnext": (textures, True),
         "efficient-se": (photos, True), "lstm-loads": (loads, False), "denoiser-unet": (noisy, False), "detector": (objects, False),
         "tagger": (sentences, False), "norm-outlier": (frames, True), "autoencoder": (hums, False)}


def draw(name, seed, count):
    return TASKS[name][0](np.random.RandomState(seed), count)[0]
