#!/usr/bin/env python3
"""Whether the compiler refuses large stack frames in every source of the device side.

    stack_limit.py SOURCES COMPILE_COMMANDS

Every command that compiles a source of runtime/ or platforms/ for a device library is compared with the limit that
cmake/SinterFlags.cmake sets. One command for each set of flags also compiles two functions, one with a frame
above the limit, which has to fail, and one with a frame below it.
"""
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile

LIMIT = 4096
OPTIONS = (f"-Wstack-usage={LIMIT}", f"-Wframe-larger-than={LIMIT}")
PROBE = "void use(char*);\nvoid probe() {{\n  char room[{}];\n  use(room);\n}}\n"


def is_device_source(path, command):
    """Generated sources (unity builds) are in the build tree; the names of objects contain the library's."""
    objects = [part for part in command if part.endswith(".o") and "sinter_" in part]
    # The emulator of CUDA devices, and kernels that test it, run on workstations only.
    hosted = any(folder in path for folder in ("/tests/", "/emulator/", "/test_kernels/"))
    return not hosted and any(f"{side}/" in part for side in ("runtime", "platforms", "application") for part in objects)


def flags_of(command):
    """The compiler and what decides about code and warnings."""
    kept = [command[1] if pathlib.Path(command[0]).name == "ccache" else command[0]]
    kept += [part for part in command if part.startswith(("-O", "-W", "-f", "-m", "-std=", "--target"))]
    return tuple(kept)


def refuses(flags, frame):
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "probe.cc")
        source.write_text(PROBE.format(frame))
        done = subprocess.run([*flags, "-c", str(source), "-o", str(source) + ".o"], capture_output=True, text=True)
        return done.returncode != 0 and "probe" in done.stderr


def main():
    commands = json.loads(pathlib.Path(sys.argv[2]).read_text())
    faults, flags, sources = [], set(), 0
    for entry in commands:
        command = shlex.split(entry["command"])
        path = str(pathlib.Path(entry["directory"], entry["file"])).removeprefix(sys.argv[1] + "/")
        if not path.endswith(".cc") and not path.endswith(".cxx") or not is_device_source(path, command):
            continue
        sources += 1
        if not any(option in command for option in OPTIONS):
            faults.append(f"{path}: compiled without a limit of the stack frame")
        flags.add(flags_of(command))
    for one in sorted(flags):
        if "-Werror" in one and not refuses(one, LIMIT + 512):
            faults.append("a frame above the limit is accepted with " + " ".join(one))
        if refuses(one, LIMIT // 2):
            faults.append("a frame below the limit is refused with " + " ".join(one))
    if sources == 0:
        faults.append("no source of the device side is among the commands")
    print("\n".join(faults) if faults else f"{sources} sources, {len(flags)} sets of flags")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
