#!/usr/bin/env bash
# Gathers all that tests/cuda/on_device.sh needs into one folder, for an x86-64 machine with a GPU on which nothing of
# Sinter's can be built: programs with the libraries that they load, kernels compiled for its device, ONNX files.
#
#   tests/cuda/bundle.sh FOLDER [--capability N] [--limit MIB]
#
#   FOLDER           is made anew, and FOLDER.tar.gz with it, for a transfer
#   --capability N   compute capability of the device, without the point (default: 90). Jetson boards (87, 110) have ARM
#                    processors and are refused: cross-compile the preset jetson
#   --limit MIB      fails if FOLDER.tar.gz is larger (default: 62)
#
# Builds in build/cudaN with nvcc: half an hour on two processors.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
usage() { sed -n '2,/^set /p' "$0" | sed '$d; s/^# \{0,1\}//'; }
folder='' capability=90 limit=62
while [ $# -gt 0 ]; do
  case $1 in
    --capability) capability=${2:?--capability needs a number}; shift ;;
    --limit) limit=${2:?--limit needs a number}; shift ;;
    -h | --help) usage; exit 0 ;;
    -*) usage >&2; exit 2 ;;
    *) folder=$1 ;;
  esac
  shift
done
[ -n "$folder" ] || { usage >&2; exit 2; }
fail() {
  echo "bundle: $1" >&2
  exit "${2:-1}"
}
case $capability in
  87 | 101 | 110) fail "devices of $capability are on boards with ARM processors; cross-compile the preset jetson" 2 ;;
  75 | 80 | 86 | 89 | 90 | 100 | 120) ;;
  *) fail "--capability $capability: give 75, 80, 86, 89, 90, 100 or 120" 2 ;;
esac
folder=${folder%/}
[ ! -e "$folder" ] || [ -f "$folder/on_device.sh" ] || [ -z "$(ls -A "$folder")" ] ||
  fail "$folder has something else in it; name another folder" 2
rm -rf "$folder"
mkdir -p "$folder/bin" "$folder/lib/compiler" "$folder/files"
folder=$(cd "$folder" && pwd)
cd "$root"
. scripts/build_env.sh
cp tests/cuda/on_device.sh tests/cuda/rivals.py "$folder/" # first: they mark the folder as a bundle

build=build/cuda$capability
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DSINTER_UNITY=ON -DSINTER_CUDA=ON \
  -DSINTER_CUDA_ARCHITECTURES="$capability" -DSINTER_VENV="${SINTER_VENV:-$root/.venv}" >/dev/null
# -lineinfo: compute-sanitizer names lines of the sources; the code stays the same.
NVCC_APPEND_FLAGS=-lineinfo cmake --build "$build" -j "$jobs" --target sinter op_tests sinter_cuda_module
cp "$build/bin/libsinter_cuda.so" "$folder/bin/"
# The emulator tries on_device.sh where there is no device.
[ ! -f "$build/bin/libsinter_cuda_emulated.so" ] ||
  strip -o "$folder/bin/libsinter_cuda_emulated.so" "$build/bin/libsinter_cuda_emulated.so"
for program in bin/sinter tests/ops/op_tests; do
  strip -o "$folder/bin/$(basename "$program")" "$build/$program"
  # Libraries but for the C library, of which every machine has its own; the compiler's are for machines with older ones.
  ldd "$build/$program" | awk '$3 ~ /^\// { print $3 }' | grep -vE '/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*)\.so' |
    while read -r library; do
      case $library in
        */libstdc++.* | */libgcc_s.*) cp -L "$library" "$folder/lib/compiler/" ;;
        *) cp -L "$library" "$folder/lib/" ;;
      esac
    done
done
nvcc -O2 -arch="sm_$capability" -o "$folder/bin/device_times" tests/cuda/device_times.cu
# PyTorch reads ONNX files by this package, which few machines have.
python=${SINTER_VENV:-$root/.venv}/bin/python
"$python" -m pip install --quiet --no-deps --no-compile --target "$folder/python" onnx2torch==1.5.15 ||
  echo 'bundle: without onnx2torch; PyTorch is measured only where it is installed' >&2
echo "cuda+sm$capability" >"$folder/target"

# The networks, which on_device.sh converts, and their inputs. A row: name, file, and up to which number inputs go,
# if that is not 1.
shared=${SINTER_SHARED:-$root/../shared}
while read -r name file _; do
  install -m 644 "$shared/models/$file" "$folder/files/$name.onnx" || fail "$shared/models lacks $file; SINTER_SHARED names the folder"
done <tests/cuda/networks.txt
"$python" tests/cuda/rivals.py "$folder/files" --write-inputs tests/cuda/networks.txt

# Decoders, of which the archive keeps little, as their weights repeat.
"$python" bench/decoders.py --write "$folder/decoders" --only bfloat16 --gigabytes 1
"$python" bench/decoders.py --write "$folder/decoders" --only int4 --gigabytes 0.5

tar -C "$(dirname "$folder")" -czf "$folder.tar.gz" "$(basename "$folder")"
mebibytes() { du -sm --apparent-size "$1" | cut -f 1; }
size=$(mebibytes "$folder.tar.gz")
echo "bundle: $folder takes $(mebibytes "$folder") MiB, $folder.tar.gz $size MiB"
[ "$size" -le "$limit" ] || fail "that is more than $limit MiB; take networks out of tests/cuda/networks.txt or give a higher --limit"
