#!/usr/bin/env bash
# A package of libraries for devices as an application uses it: unpacked into a clean folder, its examples classify (C++) and
# classify_c (C) are built against it and run, if need be in an emulator. Both find the class of the picture.
#
#     device.sh SINTER PACKAGE.tar.xz...
#
# 10 s for each package. One whose compiler or emulator is missing is passed over; if that are all, the exit code is 77.
set -euo pipefail
sinter=$(realpath "$1")
shift
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$root/tests/install/common.sh"
done=0
for package in "$@"; do
  target=$(basename "$package" .tar.xz | sed 's/^sinter-device-[0-9.]*-//')
  toolchain='' emulator=() suffix='' plan=$target options=()
  case $target in
    x86_64) tools=g++ ;;
    aarch64) toolchain=aarch64-linux-gnu emulator=(qemu-aarch64 -L /usr/aarch64-linux-gnu) tools='aarch64-linux-gnu-g++ qemu-aarch64' ;;
    armv7) toolchain=armv7-linux-gnueabihf emulator=(qemu-arm -L /usr/arm-linux-gnueabihf) tools='arm-linux-gnueabihf-g++ qemu-arm' ;;
    riscv64) toolchain=riscv64-linux-gnu emulator=(qemu-riscv64 -L /usr/riscv64-linux-gnu) tools='riscv64-linux-gnu-g++ qemu-riscv64' plan=portable ;;
    x86_64-musl) toolchain=x86_64-linux-musl plan=x86_64 tools=python-zig ;;
    windows) toolchain=x86_64-w64-mingw32 emulator=(/usr/lib/wine/wine64) suffix=.exe plan=x86_64 tools='x86_64-w64-mingw32-g++-posix /usr/lib/wine/wine64' ;;
    wasm) toolchain=wasm32-wasi emulator=(node --no-warnings "$root/toolchains/wasi.mjs") suffix=.wasm plan=portable tools='python-zig node' ;;
    *) echo "$package is for no target that this script knows" >&2; exit 2 ;;
  esac
  for tool in $tools; do
    command -v "$tool" >/dev/null || { echo "$target: not run, $tool is missing"; continue 2; }
  done
  mkdir "$work/$target"
  tar xf "$package" -C "$work/$target"
  prefix=$(echo "$work/$target"/sinter-device-*)
  for text in LICENSE NOTICE sinter.spdx.json licenses/xxHash.txt; do
    [ -s "$prefix/$text" ] || { echo "$package has no $text"; exit 1; }
  done
  "$sinter" convert "$root/examples/digits/digits.onnx" --target "$plan" -o "$work/digits.sinter" --quiet
  [ -z "$toolchain" ] || options=(--toolchain "$root/toolchains/$toolchain.cmake")
  for example in classify classify_c; do
    quiet cmake -G Ninja -S "$prefix/examples/$example" -B "$work/$target/$example" "${options[@]}" -DCMAKE_BUILD_TYPE=Release \
      -DCMAKE_PREFIX_PATH="$prefix" -DARENA_BYTES=4000000
    quiet cmake --build "$work/$target/$example"
    (cd "$work" && "${emulator[@]}" "$target/$example/$example$suffix" digits.sinter) >"$work/said" 2>&1 ||
      { cat "$work/said"; echo "failed: $target, $example"; exit 1; }
    expect "$work/said" '^class 2, probability 0\.9'
  done
  echo "$target: $(tail -n 1 "$work/said" | tr -d '\r')"
  done=$((done + 1))
done
[ $done -gt 0 ] || exit 77
