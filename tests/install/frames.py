#!/usr/bin/env python3
"""Frames of a camera, from the pictures of digits, and the classes that a .sinter file gives them; pictures beside each other.

    frames.py frames DIGITS.npz FOLDER    writes NN.pgm, and frames.npz for `sinter run --each`
    frames.py classes OUT.npz             prints the class of each sample
    frames.py beside ROW.pgm ONE.pgm...   exit code 0 if ROW.pgm is the pictures beside each other
"""
import os
import sys

import numpy as np

COUNT = 40


def pixels(path):
    """Of a binary PGM of 8 bits: [height, width]."""
    with open(path, "rb") as f:
        kind, width, height, white = b"".join(f.readline() for _ in range(3)).split()
        assert (kind, white) == (b"P5", b"255"), path
        return np.frombuffer(f.read(), np.uint8).reshape(int(height), int(width))


if sys.argv[1] == "frames":
    images = np.load(sys.argv[2])["image"][:COUNT]
    frames = np.rint(images * (255 / 16)).astype(np.uint8)
    os.makedirs(sys.argv[3])
    for i, frame in enumerate(frames):
        height, width = frame.shape[-2:]
        with open(os.path.join(sys.argv[3], f"{i:02}.pgm"), "wb") as f:
            f.write(b"P5\n%d %d\n255\n" % (width, height))
            f.write(frame.tobytes())
    np.savez(os.path.join(sys.argv[3], "frames.npz"), image=frames)
elif sys.argv[1] == "beside":
    sys.exit(not np.array_equal(pixels(sys.argv[2]), np.hstack([pixels(path) for path in sys.argv[3:]])))
else:
    scores = np.load(sys.argv[2])["probabilities"]
    for row in scores.reshape(-1, scores.shape[-1]):
        print(int(row.argmax()))
