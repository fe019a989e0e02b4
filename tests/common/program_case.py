"""unittest cases that call the program under test, with a folder for their files."""
import os
import tempfile
import unittest

import sinter_cli as cli


class ProgramCase(unittest.TestCase):
    """The module's main() calls run_cases()."""

    sinter = None  # the program

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix=f"{cls.__name__.lower()}-")

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.scratch.name, name)

    def call(self, *args, code=0, words=()):
        """The answer to a command, which ends with `code` and prints all `words`."""
        r = cli.call(self.sinter, *args, timeout=120)
        self.assertEqual(r.code, code, f"{' '.join(map(str, args))}: {r.why()}")
        for word in words:
            self.assertIn(word, r.out + r.err)
        return r


def run_cases():
    """The module's cases, on the program of --sinter."""
    ProgramCase.sinter, argv = cli.program_and_argv()
    unittest.main(argv=argv)
