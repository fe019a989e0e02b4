#!/usr/bin/env python3
"""The parts of ./release that need no compiler: archives whose bytes follow from contents, and the list of components.

    packages.py

Half a second. Zip archives need the program advzip and are passed over without it.
"""
import csv
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EPOCH = 1_700_000_000


def lay_out(folder, order, when):
    """A package with files written in this order and at this time."""
    for name in order:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode() * 1000)
        os.utime(path, (when, when))
    (folder / "bin/run").chmod(0o700)
    (folder / "lib/link.so").symlink_to("library.so.1")


def pack(folder, archive):
    subprocess.run([sys.executable, ROOT / "scripts/release/pack.py", folder, archive], check=True,
                   env=dict(os.environ, SOURCE_DATE_EPOCH=str(EPOCH)))
    return archive.read_bytes()


class Packing(unittest.TestCase):
    def setUp(self):
        self.work = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.work)
        names = ["LICENSE", "bin/run", "lib/library.so.1"]
        for place, order, when in (("a", names, 1_000_000_000), ("another/place", names[::-1], 1_800_000_000)):
            lay_out(self.work / place / "package-1.0", order, when)
        self.folders = [self.work / "a/package-1.0", self.work / "another/place/package-1.0"]

    def test_tar(self):
        first, second = (pack(folder, self.work / f"{i}.tar.xz") for i, folder in enumerate(self.folders))
        self.assertEqual(first, second)
        with tarfile.open(self.work / "0.tar.xz") as tar:
            self.assertEqual([m.name for m in tar], [f"package-1.0/{n}" for n in ("LICENSE", "bin/run", "lib/library.so.1", "lib/link.so")])
            self.assertEqual({m.mtime for m in tar}, {EPOCH})
            self.assertEqual(oct(tar.getmember("package-1.0/bin/run").mode), "0o755")
            self.assertEqual(tar.getmember("package-1.0/lib/link.so").linkname, "library.so.1")
            self.assertEqual(tar.extractfile("package-1.0/LICENSE").read(), b"LICENSE" * 1000)

    @unittest.skipUnless(shutil.which("advzip"), "advzip is not installed; scripts/install.sh --release installs it")
    def test_zip(self):
        first, second = (pack(folder, self.work / f"{i}.zip") for i, folder in enumerate(self.folders))
        self.assertEqual(first, second)
        with zipfile.ZipFile(self.work / "0.zip") as archive:
            self.assertIsNone(archive.testzip())
            self.assertEqual(archive.read("LICENSE"), b"LICENSE" * 1000)
            self.assertEqual(oct(archive.getinfo("bin/run").external_attr >> 16), "0o100755")
        self.assertFalse(list(self.work.glob("*.partial")))

    def test_nothing(self):
        """An empty folder is no package."""
        (self.work / "empty").mkdir()
        run = subprocess.run([sys.executable, ROOT / "scripts/release/pack.py", self.work / "empty", self.work / "e.tar.xz"],
                             capture_output=True, text=True, env=dict(os.environ, SOURCE_DATE_EPOCH=str(EPOCH)))
        self.assertEqual((run.returncode, (self.work / "e.tar.xz").exists()), (1, False))
        self.assertIn("has no files", run.stderr)


class Components(unittest.TestCase):
    def test_every_archive_is_listed(self):
        """Every source archive of a library has a row with a licence, but those that no package contains."""
        with open(ROOT / "third_party/components.tsv", newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
        self.assertFalse([row["name"] for row in rows if not row["licence"] or not row["from"]])
        archives = {line.split()[1].split("_")[0] for line in (ROOT / "scripts/deps.sha256").read_text().splitlines()}
        self.assertEqual(archives - {row["from"] for row in rows}, {"onednn"})
        install = (ROOT / "scripts/install.sh").read_text()
        unknown = {row["from"] for row in rows} - archives - {"ziglang"}
        self.assertFalse([package for package in unknown if package not in install])

    def test_commands(self):
        listed = subprocess.run([ROOT / "release", "--list"], capture_output=True, text=True, check=True).stdout.splitlines()
        self.assertIn("wheel-x86_64", [line.split()[0] for line in listed])
        sizes = subprocess.run([ROOT / "release", "--sizes"], capture_output=True, text=True, check=True).stdout.splitlines()
        self.assertEqual(sizes[0], "| name | file | bytes |")
        for wrong in (["--only", "nothing"], ["--only"], ["--nothing"]):
            run = subprocess.run([ROOT / "release", *wrong], capture_output=True, text=True)
            self.assertEqual((run.returncode, run.stdout), (2, ""), wrong)
            self.assertTrue(run.stderr)


if __name__ == "__main__":
    unittest.main()
