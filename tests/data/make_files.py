#!/usr/bin/env python3
"""Makes files/: pictures of every kind that people have, and what Pillow reads and resizes them to.

    make_files.py [FOLDER]

Needs Pillow (12.1.1 made the files that are checked in), which no test needs. Pillow 13 resizes columns first for some
sizes, which changes pixels by one level. expected.npz holds for NAME.EXT the
arrays NAME.rgb, NAME.grey (Pillow's conversions), and NAME.WxH for the sizes below.
"""
import os
import sys

import numpy as np
from PIL import Image

SIZES = [(8, 8), (13, 40), (60, 5), (24, 30)]


def scene(width, height):
    """Smooth colours with some noise: what JPEG is made for, and what shows errors of a filter."""
    y, x = np.mgrid[0:height, 0:width]
    noise = np.random.default_rng(7).integers(0, 40, (height, width, 3))
    waves = np.stack([128 + 80 * np.sin(x / 3), 128 + 80 * np.cos(y / 2), 4 * x + 3 * y], -1)
    return np.clip(waves + noise, 0, 255).astype(np.uint8)


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "files")
    os.makedirs(folder, exist_ok=True)
    at = lambda name: os.path.join(folder, name)  # noqa: E731
    rgb = Image.fromarray(scene(24, 17))
    alpha = Image.fromarray(np.dstack([scene(24, 17), np.arange(17 * 24).reshape(17, 24).astype(np.uint8)]))
    rgb.save(at("rgb.png"), optimize=True)
    rgb.convert("L").save(at("grey.png"))
    rgb.convert("1").save(at("bits.png"))
    rgb.quantize(16).save(at("palette.png"))
    alpha.save(at("alpha.png"))
    rgb.save(at("rgb.jpg"), quality=80)
    rgb.save(at("full.jpeg"), quality=90, subsampling=0)
    rgb.save(at("progressive.jpg"), quality=70, progressive=True)
    rgb.convert("L").save(at("grey.jpg"), quality=80)
    expected = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith((".png", ".jpg", ".jpeg")) and name not in ("cmyk.jpg", "deep.png"):
            picture = Image.open(at(name))
            expected[name + ".rgb"] = np.asarray(picture.convert("RGB"))
            expected[name + ".grey"] = np.asarray(picture.convert("L"))
            if name in ("rgb.png", "rgb.jpg"):
                for w, h in SIZES:
                    expected[f"{name}.{w}x{h}"] = np.asarray(
                        picture.convert("RGB").resize((w, h), Image.Resampling.BILINEAR))
    rgb.convert("CMYK").save(at("cmyk.jpg"), quality=80)
    deep = (np.arange(17 * 24).reshape(17, 24) * 160).astype(np.uint16)
    Image.fromarray(deep).save(at("deep.png"))
    expected["deep.png.grey"] = ((deep.astype(np.uint32) * 255 + 32767) // 65535).astype(np.uint8)
    np.savez_compressed(at("expected.npz"), **expected)


if __name__ == "__main__":
    main()
