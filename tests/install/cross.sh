#!/usr/bin/env bash
# Runs the commands of docs/devices.md, section by section, in a copy of the tree: each builds the device side with a toolchain
# file, installs it, builds examples/classify against the prefix, and runs that under qemu. Then a camera and signed files on aarch64.
#
#     cross.sh CMAKE SINTER PYTHON [SECTION...]    aarch64, armv7, riscv64, windows, musl, wasm, own; without a section:
#                                                  the first three
#
# On Windows, with musl and as WebAssembly an integer model also has to give the bits of this machine.
#
# A section whose compiler or emulator is missing is passed over; if that are all, the exit code is 77.
set -euo pipefail
cmake=$1 sinter=$2 python=$3
shift 3
[ $# -gt 0 ] || set -- aarch64 armv7 riscv64
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$here/common.sh"

copy=$work/sinter
copy_tree "$copy"
cp -r "$root/examples" "$root/toolchains" "$copy/"
share_objects "$copy"
mkdir "$work/bin"
ln -s "$sinter" "$work/bin/sinter"
ln -s "$cmake" "$work/bin/cmake"
export PATH=$work/bin:$PATH

# text_of HEADING: the section, up to the next heading.
text_of() { awk -v h="## $1" '$0 == h { on = 1; next } /^## / { on = 0 } on' "$root/docs/devices.md"; }

# same_bits TARGET TOOLCHAIN FOLDER PROGRAM [EMULATOR...]: an int8 model gives the integers of this machine.
same_bits() {
  local data=$root/examples/digits seed native target=$1 toolchain=$2 folder=$3 program=$4
  shift 4
  native=$(dirname "$sinter")/golden_run
  "$sinter" convert "$data/digits.onnx" --quantize int8 --calibrate "$data/digits_eval.npz" --samples 100 --target "$target" \
    -o "$work/int8.sinter" --quiet
  quiet "$cmake" -G Ninja -S "$here/bits" -B "$work/bits-$folder" --toolchain "$copy/toolchains/$toolchain.cmake" -DROOT="$root" \
    -DDEPS="$SINTER_DEPS_PREFIX/$toolchain" -DCMAKE_PREFIX_PATH="$copy/build/$folder-prefix"
  quiet "$cmake" --build "$work/bits-$folder"
  for seed in 1 2 3; do
    "$native" "$work/int8.sinter" --seed $seed | grep '^integer ' > "$work/here"
    (cd "$work" && "$@" "bits-$folder/$program" int8.sinter --seed $seed) | tr -d '\r' | grep '^integer ' > "$work/there"
    cmp "$work/here" "$work/there"
  done
  echo "$section: $(wc -l < "$work/here") integer values as on this machine"
}

done=0
for section in "$@"; do
  case $section in
    aarch64) heading=aarch64 tools='aarch64-linux-gnu-g++ qemu-aarch64' ;;
    armv7) heading=armv7 tools='arm-linux-gnueabihf-g++ qemu-arm' ;;
    riscv64) heading=riscv64 tools='riscv64-linux-gnu-g++ qemu-riscv64' ;;
    windows) heading=Windows tools='x86_64-w64-mingw32-g++-posix /usr/lib/wine/wine64' ;;
    musl) heading='Static Linux programs' tools=python-zig ;;
    wasm) heading=WebAssembly tools='python-zig node' ;;
    own) heading='Your own toolchain file' tools='aarch64-linux-gnu-g++ qemu-aarch64' ;;
    *) echo "no section '$section'"; exit 2 ;;
  esac
  for tool in $tools; do
    command -v "$tool" >/dev/null || { echo "$section: not run, $tool is missing"; continue 2; }
  done
  text_of "$heading" > "$work/text"
  sed -n '/^```cmake$/,/^```$/p' "$work/text" | sed '/^```/d' > "$copy/my.cmake"
  sed -n 's/^    //p' "$work/text" | grep -vE '^(apt-get|scripts/install.sh) ' > "$work/commands"
  [ "$(wc -l < "$work/commands")" -ge 5 ] || { echo "$section: docs/devices.md has no commands"; exit 1; }
  rm -rf "$copy/build/classify"
  (cd "$copy" && bash -euo pipefail "$work/commands") > "$work/said" 2>&1 || { cat "$work/said"; echo "failed: $section"; exit 1; }
  sed -i 's/\r$//' "$work/said"  # of Windows
  expect "$work/said" '^class 2, probability 0\.9.*, 0 steps fall back$'
  echo "$section: $(tail -1 "$work/said")"
  done=$((done + 1))
  if [ "$section" = aarch64 ]; then
    # The camera: bytes in, int8 inside, static memory.
    "$python" "$here/frames.py" frames "$root/examples/digits/digits_eval.npz" "$work/frames"
    "$sinter" convert "$root/examples/digits/digits.onnx" -o "$work/camera.sinter" --quiet --input-type uint8 --scale 16/255 \
      --quantize int8 --calibrate "$work/frames/frames.npz" --target aarch64
    "$sinter" run "$work/camera.sinter" --inputs "$work/frames/frames.npz" --each --outputs "$work/out.npz" --quiet
    "$python" "$here/frames.py" classes "$work/out.npz" > "$work/classes"
    quiet "$cmake" -G Ninja -S "$root/examples/camera_c" -B "$work/camera_c" --toolchain "$copy/toolchains/aarch64-linux-gnu.cmake" \
      -DCMAKE_PREFIX_PATH="$copy/build/arm64-prefix"
    quiet "$cmake" --build "$work/camera_c"
    qemu-aarch64 -L /usr/aarch64-linux-gnu "$work/camera_c/camera_c" "$work/camera.sinter" "$work"/frames/*.pgm > "$work/said"
    sed -n 's/.*class \([0-9]*\),.*/\1/p' "$work/said" | cmp - "$work/classes"
    echo "aarch64: the camera gives the classes of this machine in $(wc -l < "$work/classes") frames"
  fi
  case $section in
    windows) same_bits x86_64 x86_64-w64-mingw32 windows golden_run.exe /usr/lib/wine/wine64 ;;
    musl) same_bits x86_64 x86_64-linux-musl musl golden_run env ;;
    wasm) same_bits aarch64+neon wasm32-wasi wasm golden_run.wasm node --no-warnings "$copy/toolchains/wasi.mjs" ;;
  esac
  if [ "$section" = aarch64 ]; then
    "$sinter" keygen "$work/own" --quiet
    "$sinter" sign "$copy/digits.sinter" --key "$work/own.key" -o "$work/signed.sinter" --quiet
    quiet "$cmake" "$copy/build/arm64" -DSINTER_SIGNATURES=ON
    quiet "$cmake" --build "$copy/build/arm64"
    quiet "$cmake" --install "$copy/build/arm64" --prefix "$work/signing"
    quiet "$cmake" -G Ninja -S "$here/signed" -B "$work/signed" --toolchain "$copy/toolchains/aarch64-linux-gnu.cmake" \
      -DCMAKE_PREFIX_PATH="$work/signing"
    quiet "$cmake" --build "$work/signed"
    qemu-aarch64 -L /usr/aarch64-linux-gnu "$work/signed/signed" "$work/signed.sinter" "$work/own.pub" "$copy/digits.sinter"
  fi
done
[ "$done" -gt 0 ] || exit 77
