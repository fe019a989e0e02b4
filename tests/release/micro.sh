#!/usr/bin/env bash
# The micro package as a project uses it: unpacked, compiled for a Cortex-M4 by CMake and, sealed, by make, and run on the board
# that qemu emulates. Both programs give the bits of this machine.
#
#     micro.sh SINTER PYTHON PACKAGE.zip
#
# 2 minutes of processor time. Without the compiler or the emulator the exit code is 77.
set -euo pipefail
sinter=$(realpath "$1") python=$2 package=$(realpath "$3")
root=$(cd "$(dirname "$0")/../.." && pwd)
for tool in arm-none-eabi-g++ qemu-system-arm make; do
  command -v $tool >/dev/null || { echo "skipped: $tool is not installed; scripts/install.sh --cross installs it"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$python" -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extractall()' "$package"
mv sinter-micro-* sinter
data=$root/examples/digits
"$sinter" convert "$data/digits.onnx" --target cortex-m4 --quantize int8 --calibrate "$data/digits_eval.npz" --samples 100 \
  --output-type int8 -o net.sinter --quiet
"$sinter" embed net.sinter -o "$work/net" --quiet
"$python" - <<'PY'
import numpy as np

image = np.random.default_rng(3).uniform(0, 16, (1, 1, 8, 8)).astype(np.float32)
np.savez("in.npz", image=image)
image.tofile("input.bin")
PY
"$sinter" run net.sinter --inputs in.npz --outputs out.npz --backend reference --quiet
"$python" -c 'import numpy as np; f = np.load("out.npz"); open("expected.bin", "wb").write(b"".join(f[k].tobytes() for k in f.files))'

cpu='-mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi=hard'
link='--specs=nano.specs -nostartfiles -Wl,--gc-sections -L sinter/examples/microcontroller/board -T mps2-an386.ld'
cat >CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.22)
project(board LANGUAGES C CXX)
include(net.cmake)
include(sinter/sinter.cmake)
set(example sinter/examples/microcontroller)
add_executable(app ${example}/main.cc ${example}/board/startup.c ${net_SOURCES})
target_include_directories(app PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_compile_options(app PRIVATE -ffunction-sections -fdata-sections $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions>
  $<$<COMPILE_LANGUAGE:CXX>:-fno-rtti>)
target_link_options(app PRIVATE --specs=nano.specs -nostartfiles -Wl,--gc-sections -L "${CMAKE_CURRENT_SOURCE_DIR}/${example}/board"
  -T mps2-an386.ld)
target_link_libraries(app PRIVATE sinter)
CMAKE
cat >Makefile <<MAKE
SINTER_DIR := sinter
SINTER_EMBEDDED := net
include sinter/sinter.mk
example := sinter/examples/microcontroller
objects := \$(addprefix made/,\$(SINTER_SOURCES:.cc=.o) \$(example)/main.o \$(example)/board/startup.o net.o)
made/app: \$(objects)
	arm-none-eabi-g++ $cpu $link \$^ -o \$@
made/%.o: %.cc
	@mkdir -p \$(@D)
	@arm-none-eabi-g++ $cpu -Os -DNDEBUG -I. \$(SINTER_CXXFLAGS) -c \$< -o \$@
made/%.o: %.c
	@mkdir -p \$(@D)
	@arm-none-eabi-gcc $cpu -Os -ffunction-sections -fdata-sections -c \$< -o \$@
MAKE

run() {  # KIND PROGRAM
  rm -f output.bin
  qemu-system-arm -M mps2-an386 -nographic -monitor none -serial null -semihosting-config enable=on,target=native -kernel "$2" >said ||
    { cat said; echo "failed: $1"; exit 1; }
  cmp output.bin expected.bin
  echo "$1: the bits of this machine, $(arm-none-eabi-size "$2" | awk 'NR == 2 { print $1 }') bytes with the model"
}
cmake -G Ninja -B built --toolchain "$root/toolchains/arm-none-eabi-cortex-m4f.cmake" -DCMAKE_BUILD_TYPE=MinSizeRel >log 2>&1 &&
  cmake --build built >>log 2>&1 || { cat log; exit 1; }
run 'CMake, verified' built/app
make -s SINTER_SEALED=1 made/app >log 2>&1 || { cat log; exit 1; }
run 'make, sealed' made/app
# What Zephyr's build reads.
"$python" - <<'PY'
import re

text = open("sinter/zephyr/module.yml").read()
assert re.search(r"^  cmake: zephyr$", text, re.M) and re.search(r"^  kconfig: zephyr/Kconfig$", text, re.M), text
PY
