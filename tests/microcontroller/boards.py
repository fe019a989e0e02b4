#!/usr/bin/env python3
"""Programs without an operating system, on the boards that qemu emulates.

    boards.py --sinter SINTER [--cmake CMAKE] [--shared FOLDER] [--work FOLDER]

Follows docs/devices.md: each network is converted for cortex-m4, embedded, built with examples/microcontroller for a
Cortex-M4 and, sealed, for a Cortex-M55, and run. It fails unless

- the outputs have the bits that `sinter run --backend reference` gives on this machine;
- what opening, the model and a session take is what the embedded header states;
- the deepest stack is within the header's bound;
- the sums by the cores' own instructions are those of plain loops (simd32_check.cc);
- the bytes of code, without the model, are within 1 % above sizes.tsv;
- a program without a kernel that its model needs refuses to open it, and names the operation.
"""
import argparse
import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NETWORKS = {"hello-sine": "hello-sine/hello-sine-qdq.onnx", "kws": "mlperf-kws/kws-dscnn-qdq.onnx"}
BOARDS = {  # toolchain, machine, options of CMake
    "cortex-m4f": ("mps2-an386", []),
    "cortex-m55": ("mps3-an547", ["-DSINTER_SEALED=ON"]),
}
GROWTH = 1.01
SKIPPED = 77


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"failed: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def emulate(machine, folder, program):
    """The program's text, and whether it ended well."""
    done = subprocess.run(
        ["qemu-system-arm", "-M", machine, "-nographic", "-monitor", "none", "-serial", "null", "-semihosting-config",
         "enable=on,target=native", "-kernel", str(program)], cwd=folder, capture_output=True, text=True, timeout=120)
    return done.stdout + done.stderr, done.returncode == 0


class Network:
    """One network, converted and embedded in a folder of its own, with an input and the expected output."""

    def __init__(self, name, onnx, sinter, work):
        import numpy as np

        self.name, self.folder = name, work / name
        self.folder.mkdir()
        model = self.folder / "net.sinter"
        run(sinter, "convert", onnx, "--target", "cortex-m4", "-o", model, "--quiet")
        run(sinter, "embed", model, "-o", self.folder / "net", "--quiet")
        self.header = {m[1]: int(m[2]) for m in
                       re.finditer(r"#define NET_(\w+) (\d+)u", self.without_sealed())}
        self.lists = dict(re.findall(r"list\(APPEND (\w+) ([^)]*)\)", (self.folder / "net.cmake").read_text()))
        import json
        ports = json.loads(run(sinter, "inspect", model, "--json"))["inputs"]
        rng = np.random.default_rng(7)
        arrays = {p["name"]: (rng.normal(size=p["shape"]) * 3).astype(np.float32) for p in ports}
        np.savez(self.folder / "in.npz", **arrays)
        self.input = b"".join(a.tobytes() for a in arrays.values())
        run(sinter, "run", model, "--inputs", self.folder / "in.npz", "--outputs", self.folder / "out.npz",
            "--backend", "reference", "--quiet")
        with np.load(self.folder / "out.npz") as outputs:
            self.output = b"".join(outputs[k].tobytes() for k in outputs.files)

    def without_sealed(self):
        return re.sub(r"#ifdef SINTER_SEALED\n.*?#else\n(.*?)#endif\n", r"\1", (self.folder / "net.h").read_text(), flags=re.S)

    def sealed(self, what):
        return int(re.search(rf"#define NET_{what} (\d+)u", (self.folder / "net.h").read_text())[1])


class Board:
    def __init__(self, name, cmake, work, networks):
        self.name, self.cmake, self.build = name, cmake, work / name
        self.machine, self.options = BOARDS[name]
        self.lists = [f"-D{variable}={';'.join(sorted({w for n in networks for w in n.lists[variable].split()}))}"
                      for variable in ("SINTER_OPERATIONS", "SINTER_ELEMENT_TYPES")]

    def program(self, folder):
        toolchain = ROOT / "toolchains" / f"arm-none-eabi-{self.name}.cmake"
        run(self.cmake, "-G", "Ninja", "-S", ROOT / "examples/microcontroller", "-B", self.build, "--toolchain", toolchain,
            f"-DEMBEDDED={folder / 'net'}", *self.options, *self.lists)
        run(self.cmake, "--build", self.build, "--target", "app")
        return self.build / "app.elf"


def check(board, network, expected):
    """Faults of the network on the board, and its bytes of code."""
    faults = []
    program = board.program(network.folder)
    (board.build / "input.bin").write_bytes(network.input)
    output = board.build / "output.bin"
    output.unlink(missing_ok=True)
    text, good = emulate(board.machine, board.build, program)
    if not good:
        return [f"the program failed: {text}"], 0
    numbers = {m[1]: int(m[2]) for m in re.finditer(r"^(.+): (\d+)$", text, re.M)}
    if output.read_bytes() != network.output:
        faults.append("the outputs differ from those of this machine")
    sealed = "-DSINTER_SEALED=ON" in board.options
    stated = {"open": network.sealed("OPEN_BYTES") if sealed else network.header["OPEN_BYTES"],
              "retained": network.header["RETAINED_BYTES"], "session": network.header["SESSION_BYTES"]}
    for what, stated_bytes in stated.items():
        if numbers[what] != stated_bytes:
            faults.append(f"{what} takes {numbers[what]} bytes, and the header states {stated_bytes}")
    for what in ("open", "create", "run"):
        if numbers[f"stack of {what}"] > network.header["STACK_BYTES"]:
            faults.append(f"{what} takes {numbers[f'stack of {what}']} bytes of stack, more than STACK_BYTES")
    sizes = run("arm-none-eabi-size", program).splitlines()[1].split()
    code = int(sizes[0]) - network.header["FILE_BYTES"]
    if code > expected * GROWTH:
        faults.append(f"{code} bytes of code are more than 1 % above the {expected} of sizes.tsv; make them fewer, or raise the "
                      "number in the same commit")
    stack = ", ".join(f"{w} {numbers[f'stack of {w}']}" for w in ("open", "create", "run"))
    print(f"{board.name} {network.name}: code {code} (recorded {expected}), open {numbers['open']}, retained "
          f"{numbers['retained']}, session {numbers['session']}, stack: {stack}")
    return faults, code


def check_refusal(board, network, other):
    """The network with the kernels of another one, which has fewer."""
    folder = board.build.parent / "refused"
    shutil.copytree(network.folder, folder)
    shutil.copy(other.folder / "net_kernels.cc", folder)
    text, good = emulate(board.machine, board.build, board.program(folder))
    if good or not re.search(r"^step \d+: this program is built without operation \w+$", text, re.M):
        return [f"a missing kernel is not refused by name: {text}"]
    return []


def check_instructions(board):
    """The functions that use the core's own instructions, beside plain loops."""
    example = ROOT / "examples/microcontroller"
    program = board.build / "simd32.elf"
    flags = re.search(r'set\(cortex_flags "(.*)"\)', (ROOT / f"toolchains/arm-none-eabi-{board.name}.cmake").read_text())[1].split()
    startup = board.build / "startup.o"
    run("arm-none-eabi-gcc", *flags, "-Os", "-c", example / "board/startup.c", "-o", startup)
    run("arm-none-eabi-g++", *flags, "-Os", "-std=c++20", "-fno-exceptions", "-fno-rtti", "-I", ROOT,
        ROOT / "tests/microcontroller/simd32_check.cc", startup, "--specs=nano.specs", "-nostartfiles",
        "-L", example / "board", "-T", f"{board.machine}.ld", "-o", program)
    text, good = emulate(board.machine, board.build, program)
    return [] if good else [f"simd32_check: {text}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sinter", default=os.environ.get("SINTER", "sinter"))
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--shared", default=os.environ.get("SINTER_SHARED", ROOT.parent / "shared"), type=Path)
    parser.add_argument("--work", type=Path, help="keeps the programs there")
    a = parser.parse_args()
    for tool in ("arm-none-eabi-g++", "qemu-system-arm"):
        if shutil.which(tool) is None:
            print(f"skipped: {tool} is not installed; scripts/install.sh --cross installs it")
            return SKIPPED
    try:
        import numpy  # noqa: F401
    except ImportError:
        print("skipped: numpy is not installed; use the Python of scripts/install.sh")
        return SKIPPED
    onnx = {name: a.shared / "models" / path for name, path in NETWORKS.items()}
    missing = [str(p) for p in onnx.values() if not p.exists()]
    if missing:
        print(f"skipped: {', '.join(missing)} not found; SINTER_SHARED names another folder")
        return SKIPPED
    with open(Path(__file__).parent / "sizes.tsv", newline="") as file:
        expected = {(r["board"], r["network"]): int(r["code_bytes"]) for r in csv.DictReader(file, delimiter="\t")}
    # As the build under test, so that the compiler cache serves its objects.
    os.environ.setdefault("SINTER_DEPS_PREFIX", str(ROOT / "build/deps"))
    os.environ.update(CCACHE_BASEDIR=str(ROOT), CCACHE_NOHASHDIR="1")
    faults = []
    with tempfile.TemporaryDirectory() as temporary:
        work = a.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        networks = [Network(name, path, a.sinter, work) for name, path in onnx.items()]
        for name in BOARDS:
            board = Board(name, a.cmake, work, networks)
            board.build.mkdir(exist_ok=True)
            faults += [f"{name}: {f}" for f in check_instructions(board)]
            for network in networks:
                found, _ = check(board, network, expected[name, network.name])
                faults += [f"{name}, {network.name}: {f}" for f in found]
        faults += check_refusal(board, networks[1], networks[0])
    print("\n".join(faults) if faults else "every program gives the bits of this machine in the stated memory")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
