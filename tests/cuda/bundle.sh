#!/usr/bin/env bash
# Gathers all that tests/cuda/on_device.sh needs into one folder, for a machine with a GPU on which nothing of Sinter's can
# be built: programs with the libraries that they load, kernels compiled for its device, files of the shared networks.
#
#   tests/cuda/bundle.sh FOLDER [--capability N]
#
#   FOLDER           is made; about 60 MB
#   --capability N   compute capability of the device, without the point (default: 90)
#
# Needs a build of all targets in build/dev, and nvcc.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"
usage() { sed -n '2,/^set /p' "$0" | sed '$d; s/^# \{0,1\}//'; }
folder='' capability=90
while [ $# -gt 0 ]; do
  case $1 in
    --capability) capability=${2:?--capability needs a number}; shift ;;
    -h | --help) usage; exit 0 ;;
    -*) usage >&2; exit 2 ;;
    *) folder=$1 ;;
  esac
  shift
done
[ -n "$folder" ] || { usage >&2; exit 2; }
build=build/cuda$capability
mkdir -p "$folder/bin" "$folder/lib" "$folder/files"

cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DSINTER_UNITY=ON -DSINTER_CUDA=ON \
  -DSINTER_CUDA_ARCHITECTURES="$capability" >/dev/null
cmake --build "$build" --target sinter_cuda_module
cp "$build/bin/libsinter_cuda.so" "$folder/bin/"
for program in bin/sinter tests/ops/op_tests tests/cuda_tests; do
  [ -x "build/dev/$program" ] || { echo "bundle: build/dev/$program is missing; build the preset dev first" >&2; exit 1; }
  strip -o "$folder/bin/$(basename "$program")" "build/dev/$program"
  # Libraries but for those that every machine has in its own version.
  ldd "build/dev/$program" | awk '$3 ~ /^\// { print $3 }' | grep -vE '/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*)\.so' |
    xargs -r -I{} cp -L {} "$folder/lib/"
done
cp tests/cuda/on_device.sh tests/cuda/rivals.py "$folder/"

# Each network planned for the device, as it is and in float16; for the reference kernels; its inputs; and its ONNX file for
# the rivals.
shared=${SINTER_SHARED:-$root/../shared}
if [ -d "$shared/models" ]; then
  while read -r name file; do
    [ -f "$shared/models/$file" ] || continue
    convert() { build/dev/bin/sinter convert "$shared/models/$file" --quiet -o "$folder/files/$name$@"; }
    convert .sinter --target "cuda+sm$capability" || { echo "bundle: $name is not converted" >&2; continue; }
    convert .half.sinter --target "cuda+sm$capability" --prefer-float16
    convert .reference --target portable
    convert .emulated --target cuda --backends cuda-emulated
    cp "$shared/models/$file" "$folder/files/$name.onnx"
  done <tests/cuda/networks.txt
  "${SINTER_VENV:-$root/.venv}/bin/python" tests/cuda/rivals.py "$folder/files" --write-inputs
else
  echo 'bundle: no shared networks here' >&2
fi
du -sh "$folder"
