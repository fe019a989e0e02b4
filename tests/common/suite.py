"""The counts and output of the command line's Python suites: one line per check, and a closing line."""
import argparse
import os
import tempfile

import sinter_cli as cli

LONGEST = 600  # characters of the reason of a failed check


class Suite:
    """Checks of one program, with a folder for its files."""

    def __init__(self, sinter, folder):
        self.sinter, self.folder, self.failed, self.passed = sinter, folder, 0, 0

    def path(self, name):
        return os.path.join(self.folder, name)

    def check(self, what, holds, why=""):
        self.passed, self.failed = self.passed + bool(holds), self.failed + (not holds)
        print(f"{'ok  ' if holds else 'FAIL'}  {what}{'' if holds else ': ' + str(why)[:LONGEST]}")

    def summary(self):
        return f"{self.passed} checks pass, {self.failed} fail"


def run(suite, body, doc):
    """Exit code of `body(suite(sinter, folder))`, in a folder that goes away; --sinter names the program."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sinter")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        s = suite(cli.find_sinter(args.sinter), folder)
        body(s)
        print(s.summary())
    return 1 if s.failed else 0


def with_shared(s, body, what):
    """body(s, folder of shared models), or a plain line where there is none."""
    shared = cli.find_shared()
    if shared:
        body(s, shared)
    else:
        print(f"skip  {what}: the folder of shared models is missing")
