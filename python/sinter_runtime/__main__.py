"""The command line: `sinter convert ...`, `sinter-runtime convert ...`, or `python -m sinter_runtime convert ...`."""
import os
import sys

from . import _native


def main() -> int:
    return _native.run_program([os.fsencode(word) for word in sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
