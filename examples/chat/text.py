"""The text: chapters of the King James Version, which Debian's package bible-kjv prints (its copyright has expired).

Every tenth chapter is held out: half of these choose when training stops (`choice`), the others measure (`held`).
Nothing that trains, stops, calibrates or quantizes reads `held`.
"""
import re
import subprocess


def chapters():
    """The text of each chapter, a line for each verse."""
    lines = subprocess.run(['bible', '-f', 'Gen1:1-Rev22:21'], capture_output=True, text=True, check=True).stdout.splitlines()
    found = {}
    for line in lines:
        place, verse = re.fullmatch(r'(\S+?):\d+ (.*)', line).groups()
        found.setdefault(place, []).append(verse.strip())
    return ['\n'.join(verses) + '\n' for verses in found.values()]


def split(parts):
    """(train, choice, held)"""
    return ([p for i, p in enumerate(parts) if i % 10 != 9], [p for i, p in enumerate(parts) if i % 20 == 9],
            [p for i, p in enumerate(parts) if i % 20 == 19])
