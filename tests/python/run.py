#!/usr/bin/env python3
"""The Python package as a user gets it: builds the source distribution and from it a wheel, installs that in a fresh virtual
environment, and tests it there. What is installed has been laid out again by the script that ./release uses.

    run.py [--build-type TYPE] [--deps FOLDER] [--cc PROGRAM] [--cxx PROGRAM] [--wheel FILE] [unittest options]

The build uses the interpreter's own packages (pip's --no-build-isolation) and the compiler cache. The new environment has
the wheel and, by a path, the pinned packages; it reaches no package index.
"""
import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPO = HERE.parents[1]
sys.path.insert(0, str(HERE.parent / "common"))
import pinned  # noqa: E402

pinned.require("numpy", "onnx", "scikit_build_core", "mypy")
MOST_WHEEL_BYTES = 12_000_000


def say(text):
    print(text, flush=True)


def source_distribution(folder):
    """The source distribution, unpacked in `folder`: its path."""
    code = f"from scikit_build_core.build import build_sdist; build_sdist({folder!r})"
    subprocess.run([sys.executable, "-c", code], cwd=REPO, check=True, stdout=subprocess.DEVNULL)
    archive, = Path(folder).glob("sinter_runtime-*.tar.gz")
    shutil.unpack_archive(archive, folder)
    return archive.with_name(archive.name.removesuffix(".tar.gz"))


def beside(deps, source):
    """The libraries: where they are, or, if that is this tree's default, at the same place of `source`, so that compilers are given
    the same paths below CCACHE_BASEDIR."""
    if deps != REPO / "build/deps":
        return deps
    (source / "build").mkdir()
    (source / "build/deps").symlink_to(deps)
    return source / "build/deps"


def build(args, folder):
    """A wheel of the source distribution, in `folder`. Its build folder is two levels below the sources, as those of the presets
    are, so that the compiler cache has its objects."""
    source = source_distribution(folder)
    environment = dict(os.environ, CCACHE_BASEDIR=str(source), CCACHE_NOHASHDIR="1")
    if args.deps:
        environment["SINTER_DEPS_PREFIX"] = str(beside(Path(args.deps), source))
    settings = {"build-dir": "build/python-wheel", "cmake.build-type": args.build_type, "cmake.define.SINTER_WERROR": "ON"}
    # Without these, Python's own compilers, of other names, for which the cache has nothing.
    for language, compiler in (("C", args.cc), ("CXX", args.cxx)):
        if compiler:
            settings[f"cmake.define.CMAKE_{language}_COMPILER"] = compiler
    subprocess.run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", "--no-index",
                    "--disable-pip-version-check", "--wheel-dir", folder,
                    *(f"--config-settings={name}={value}" for name, value in settings.items()), str(source)],
                   env=environment, check=True)
    wheel, = Path(folder).glob("sinter_runtime-*.whl")
    return wheel


def contents(wheel):
    """The names of a wheel's files, but those of licences, and what its programs are. Folders are not files."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        programs, = (archive.read(name).decode().split() for name in names if name.endswith("/entry_points.txt"))
    return {name for name in names if "/licenses/" not in name and "/sboms/" not in name and not name.endswith("/")}, programs


def laid_out_again(wheel, folder):
    """A wheel with the library of this one, made by the scripts of ./release: it has the same files and programs."""
    built, licences, tree = (Path(folder) / name for name in ("built", "licences", "tree"))
    shutil.unpack_archive(wheel, built, "zip")
    tree.mkdir()
    scripts = REPO / "scripts/release"
    # The libraries of pip's wheel are the system's, but these.
    subprocess.run([sys.executable, scripts / "licences.py", licences, "sinter_runtime", "0", "FlatBuffers", "xxHash", "Highway", "XNNPACK",
                    "pthreadpool"], env=dict(os.environ, SOURCE_DATE_EPOCH="1700000000"), check=True)
    tag = wheel.stem.split("-py3-none-")[1]
    name = subprocess.run([sys.executable, scripts / "wheel.py", tree, tag, built / "sinter_runtime", licences], check=True,
                          capture_output=True, text=True).stdout.strip()
    again = Path(folder) / "again" / name
    shutil.make_archive(str(again), "zip", tree)
    again.with_name(name + ".zip").rename(again)
    if contents(again) != contents(wheel):
        raise SystemExit(f"{name}: ./release and pip make wheels of other contents: {contents(again)}, {contents(wheel)}")
    return again


def fresh_venv(folder, wheel):
    """A virtual environment with the wheel; its python."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = Path(folder) / "bin/python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--disable-pip-version-check", wheel],
                   check=True)
    packages = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], capture_output=True,
                              text=True, check=True).stdout.strip()
    (Path(packages) / "pinned.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python, Path(packages) / "sinter_runtime"


def custom_operator(folder, cc):
    """The library and the model of examples/custom_op: their paths."""
    example = REPO / "examples/custom_op"
    library, model = Path(folder) / "wave.so", Path(folder) / "wave.onnx"
    subprocess.run([cc, "-shared", "-fPIC", f"-I{REPO}/runtime/include", example / "wave.c", "-o", library, "-lm"], check=True)
    subprocess.run([sys.executable, example / "make_model.py", model], check=True)
    return library, model


def check_wheel(wheel, package):
    """Its tags, its size, and what its library exports."""
    size = wheel.stat().st_size
    say(f"{wheel.name}: {size} bytes")
    if size > MOST_WHEEL_BYTES:
        raise SystemExit(f"the wheel is larger than {MOST_WHEEL_BYTES} bytes")
    if "-py3-none-" not in wheel.name:
        raise SystemExit(f"{wheel.name} is for one version of Python")
    library = package / "libsinter_python.so"
    exported = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout.splitlines()
    foreign = [line for line in exported if not line.split()[-1].startswith(("sinter_", "SINTER"))]
    if foreign or "no symbols" not in subprocess.run(["nm", library], capture_output=True, text=True).stderr:
        raise SystemExit(f"{library.name} exports other functions or is not stripped: {foreign[:5]}")
    missing = [name for name in ("py.typed", "options.pyi") if not (package / name).exists()]
    if missing:
        raise SystemExit(f"the wheel lacks {missing}")


def check_programs(python):
    """The command line under both of its names."""
    said = {subprocess.run([Path(python).with_name(name), "--version"], capture_output=True, text=True, check=True).stdout
            for name in ("sinter", "sinter-runtime")}
    if len(said) != 1 or not said.pop().strip():
        raise SystemExit("sinter and sinter-runtime print other versions")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-type", default="RelWithDebInfo")
    parser.add_argument("--deps", help="SINTER_DEPS_PREFIX of the build")
    parser.add_argument("--cc", help="C compiler of the build")
    parser.add_argument("--cxx", help="C++ compiler of the build")
    parser.add_argument("--wheel", help="test this one instead of building one")
    args, rest = parser.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="python-package-") as folder:
        wheel = Path(args.wheel) if args.wheel else laid_out_again(build(args, folder), folder)
        python, package = fresh_venv(f"{folder}/venv", wheel)
        check_wheel(wheel, package)
        check_programs(python)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        failed = 0
        files = [REPO / "examples/digits/digits.onnx", REPO / "examples/digits/digits_eval.npz",
                 *custom_operator(folder, args.cc or "cc")]
        for suite in sorted(HERE.glob("test_*.py")):
            work = Path(folder) / suite.stem
            work.mkdir()
            for file in files:
                shutil.copy(file, work)
            say(f"== {suite.name}")
            failed += subprocess.run([python, "-P" if sys.version_info >= (3, 11) else "-s", suite, *rest], cwd=work,
                                     env=environment).returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
