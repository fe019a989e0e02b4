#!/usr/bin/env python3
"""Writes the images of digits_eval.npz as PNG files, in folders by class: the data of docs/guides/pictures.md.

    pictures.py FOLDER    writes FOLDER/calibrate/CLASS/N.png and, of other images, FOLDER/evaluate/CLASS/N.png,
                          and the names of the classes as FOLDER/classes.txt
"""
import os
import struct
import sys
import zlib

from npz import load

CALIBRATE = 200  # of 540 images


def png(pixels, width):
    """The bytes of a grey PNG of 8 bits."""
    rows = b''.join(b'\0' + pixels[i:i + width] for i in range(0, len(pixels), width))

    def chunk(kind, data):
        return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))

    header = struct.pack('>IIBBBBB', width, len(pixels) // width, 8, 0, 0, 0, 0)
    return b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', header) + chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b'')


def main(folder):
    data = load(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'digits_eval.npz'))
    (count, _, height, width), numbers = data['image']
    size = height * width
    for i in range(count):
        part = 'calibrate' if i < CALIBRATE else 'evaluate'
        place = os.path.join(folder, part, str(data['label'][1][i]))
        os.makedirs(place, exist_ok=True)
        # The images have 17 levels; the lightest has the value 0, the darkest 16.
        pixels = bytes(min(round(x * 16), 255) for x in numbers[i * size:(i + 1) * size])
        with open(os.path.join(place, f'{i:03}.png'), 'wb') as f:
            f.write(png(pixels, width))
    with open(os.path.join(folder, 'classes.txt'), 'w', encoding='utf-8') as f:
        f.write(''.join(f'{label}\n' for label in sorted(set(data['label'][1]))))


if __name__ == '__main__':
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
