"""progress=True: the progress of a conversion on stderr, as the command line shows it."""
from __future__ import annotations

import sys
import time


class Printer:
    """One line that changes on a terminal; elsewhere a line every 20 seconds."""

    def __init__(self) -> None:
        self.terminal = sys.stderr.isatty()
        self.pause = 0.25 if self.terminal else 20.0
        self.last = time.monotonic() - (self.pause if self.terminal else 0)

    def __call__(self, fraction: float, stage: str) -> None:
        now = time.monotonic()
        if now - self.last < self.pause:
            return
        self.last = now
        text = f"{100 * fraction:.0f} %, {stage}"
        print(f"\r\033[K{text}" if self.terminal else f"sinter: {text}", end="" if self.terminal else "\n", file=sys.stderr, flush=True)

    def finish(self) -> None:
        if self.terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
