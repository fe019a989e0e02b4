"""Shared parts of all Python tests of the command line: finding the program, running it, and array files.

Element types that .npz cannot hold (bfloat16, float8, 4 and 2 bits) travel as the bits of an unsigned integer.
"""
import dataclasses
import os
import signal
import subprocess
import sys

import numpy as np

REPO = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
NPZ_TYPES = {"bool", "float16", "float32", "float64", *(f"{u}int{b}" for u in ("", "u") for b in (8, 16, 32, 64))}
SKIP = 77  # ctest's SKIP_RETURN_CODE
# Backends that a file has to be planned for: the flags of convert that do.
PLANNED_FOR = {
    "portable": ["--target", "portable"],
    "cuda": ["--target", "cuda"],
    "cuda-emulated": ["--target", "cuda", "--backends", "cuda-emulated"],
}


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIP)


def find_sinter(given=None):
    """The program under test: --sinter, SINTER, or the usual build folders."""
    for place in (given, os.environ.get("SINTER"), *(os.path.join(REPO, "build", b, d, "sinter")
                                                     for b in ("dev", "release", "ci", "")
                                                     for d in ("bin", "converter", "converter/cli", ""))):
        if place and os.path.isfile(place) and os.access(place, os.X_OK):
            return os.path.abspath(place)
    skip("no sinter program: give --sinter PATH or set SINTER")


def program_and_argv():
    """The program under test, and sys.argv without --sinter PATH, for unittest.main."""
    args, given = sys.argv[1:], None
    if "--sinter" in args:
        at = args.index("--sinter")
        given = args[at + 1]
        del args[at:at + 2]
    return find_sinter(given), [sys.argv[0], *args]


def find_shared():
    """The folder of models and data that is not part of the project, or None."""
    for place in (os.environ.get("SINTER_SHARED"), os.path.join(REPO, "..", "shared")):
        if place and os.path.isdir(os.path.join(place, "models")):
            return os.path.abspath(place)
    return None


@dataclasses.dataclass
class Answer:
    code: int  # exit code; negative: killed by that signal; None: timed out
    out: str
    err: str

    @property
    def sanitizer(self):
        """What a sanitized build complained about."""
        return [x for x in self.err.splitlines() if "ERROR: AddressSanitizer" in x or "runtime error:" in x]

    @property
    def crashed(self):
        return self.code is not None and (not 0 <= self.code <= 6 or bool(self.sanitizer))

    def why(self):
        if self.code is None:
            return "timeout"
        if self.code < 0:
            return f"signal {signal.Signals(-self.code).name}: {self.err.strip()[-300:]}"
        lines = [x for x in (self.err.strip() or self.out.strip()).splitlines() if x.strip()]
        return f"exit {self.code}: " + " | ".join((self.sanitizer or lines)[:6])[:600]


def call(program, *args, timeout=20, cwd=None):
    try:
        r = subprocess.run([program, *map(str, args)], stdin=subprocess.DEVNULL, capture_output=True,
                           timeout=timeout, cwd=cwd)
    except subprocess.TimeoutExpired as e:
        return Answer(None, (e.stdout or b"").decode(errors="replace"), (e.stderr or b"").decode(errors="replace"))
    return Answer(r.returncode, r.stdout.decode(errors="replace"), r.stderr.decode(errors="replace"))


def is_bits(dtype):
    """Does .npz lack this type?"""
    return np.dtype(dtype).name not in NPZ_TYPES


def to_bits(a):
    """An array as .npz can hold it: 16 and 8 bit types as bits, smaller ones as the numbers that they are."""
    a = np.asarray(a)
    small = {"int4": np.int8, "int2": np.int8, "uint4": np.uint8, "uint2": np.uint8, "float4_e2m1fn": np.float32}
    if a.dtype.name in small:
        return a.astype(small[a.dtype.name])
    if not is_bits(a.dtype):
        return a
    return np.ascontiguousarray(a).view({1: np.uint8, 2: np.uint16}[a.dtype.itemsize]).reshape(a.shape)


def from_bits(a, dtype):
    """An array read from .npz as the element type that the model declares, where it came as bits."""
    if is_bits(dtype) and a.dtype.kind == "u" and a.dtype.itemsize == np.dtype(dtype).itemsize:
        return np.ascontiguousarray(a).view(dtype).reshape(a.shape)
    # Signed numbers of less than a byte come as int8.
    if is_bits(dtype) and a.dtype == np.int8 and np.dtype(dtype).name in ("int4", "int2"):
        small = a.astype(dtype)
        return small if np.array_equal(small.astype(np.int8), a) else a
    return a


def save_npz(path, arrays):
    """np.savez, but any name is allowed ('file' and names with slashes too)."""
    import zipfile
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as z:
        for name, a in arrays.items():
            with z.open(zipfile.ZipInfo(f"{name}.npy"), "w") as f:  # without a date: same arrays, same bytes
                np.lib.format.write_array(f, np.ascontiguousarray(to_bits(a)).reshape(np.shape(a)),
                                          allow_pickle=False)


def load_npz(path):
    with np.load(path, allow_pickle=False) as z:
        return {k: z[k] for k in z.files}


def save_npy(path, a):
    np.save(path, to_bits(a), allow_pickle=False)


def mismatch(got, want, rtol, atol, steps=0):
    """None if the arrays agree in type, shape and value, integers up to `steps`, else one line with their difference."""
    got = np.asarray(from_bits(np.asarray(got), want.dtype))
    if got.dtype != want.dtype:
        return f"type {got.dtype}, want {want.dtype}"
    if got.shape != want.shape:
        return f"shape {list(got.shape)}, want {list(want.shape)}"
    if want.dtype.kind in "biu":
        apart = want.dtype.kind != "b" and steps
        bad = np.abs(got.astype(np.int64) - want.astype(np.int64)) > steps if apart else got != want
        if not bad.any():
            return None
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        return f"{int(bad.sum())} of {want.size} values differ, first at {list(at)}: {got[at]}, want {want[at]}"
    if is_bits(want.dtype):
        rtol = max(rtol, 2.0**-6)
        got, want = got.astype(np.float32), want.astype(np.float32)
    with np.errstate(invalid="ignore", over="ignore"):
        ok = np.isclose(got, want, rtol=rtol, atol=atol, equal_nan=True)
    if ok.all():
        return None
    at = tuple(int(i) for i in np.argwhere(~ok)[0])
    finite = np.isfinite(got) & np.isfinite(want)
    worst = float(np.max(np.abs(got[finite].astype(np.float64) - want[finite].astype(np.float64)), initial=0))
    return (f"{int((~ok).sum())} of {want.size} values differ, largest difference {worst:.3g}, "
            f"first at {list(at)}: {got[at]}, want {want[at]}")
