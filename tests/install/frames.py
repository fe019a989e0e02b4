#!/usr/bin/env python3
"""Frames of a camera, from the pictures of digits, and the classes that a .sinter file gives them.

    frames.py frames DIGITS.npz FOLDER    writes NN.pgm, and frames.npz for `sinter run --each`
    frames.py classes OUT.npz             prints the class of each sample
"""
import os
import sys

import numpy as np

COUNT = 40

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
else:
    scores = np.load(sys.argv[2])["probabilities"]
    for row in scores.reshape(-1, scores.shape[-1]):
        print(int(row.argmax()))
