#!/usr/bin/env bash
# The lean options of docs/devices.md, one by one: each builds the device side, installs it, builds examples/classify against
# the prefix, and runs a model that is planned for what is left; nothing of what was left out is linked. Then all of them at once.
#
#     lean.sh CMAKE SINTER CXX_COMPILER [threads|xnnpack|simd|cuda|all|sets]...    without a name: the first five; `sets`, the
#     instruction sets of x86, compiles simd kernels anew (a minute of processor time)
set -euo pipefail
cmake=$1 sinter=$2
export CXX=$3
shift 3
[ $# -gt 0 ] || set -- threads xnnpack simd cuda all
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$here/common.sh"

# The flags, relative paths and libraries of the build under test, so that the compiler cache serves its objects.
copy=$work/sinter
copy_tree "$copy"
share_objects "$copy"
for name in "$@"; do
  case $name in
    threads) option=SINTER_THREADS backends=xnnpack,simd,reference symbols='pthread_create|pthread_cond' ;;
    xnnpack) option=SINTER_XNNPACK backends=simd,reference symbols='xnn_|cpuinfo_' ;;
    simd) option=SINTER_SIMD backends=xnnpack,reference symbols='_ZN3hwy|4simd' ;;
    cuda) option=SINTER_CUDA_BACKEND backends=xnnpack,simd,reference symbols='dlopen|dlsym' ;;
    all) option='' backends=reference symbols='pthread_create|pthread_cond|xnn_|cpuinfo_|_ZN3hwy|4simd|dlopen|dlsym' ;;
    sets) option='' backends=xnnpack,simd,reference symbols='N_SSE4|N_AVX3' ;;
    *) echo "no option '$name'"; exit 2 ;;
  esac
  options=("-D$option=OFF")
  [ $name != sets ] || options=(-DSINTER_X86_SETS=avx2)
  [ $name != all ] ||
    options=(-DSINTER_THREADS=OFF -DSINTER_XNNPACK=OFF -DSINTER_SIMD=OFF -DSINTER_CUDA_BACKEND=OFF -DSINTER_DEVICE_MEMORY=OFF
      -DSINTER_SIGNATURES=OFF)
  build=$copy/build/$name
  quiet "$cmake" -G Ninja -S "$copy" -B "$build" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DSINTER_UNITY=ON \
    -DSINTER_BUILD_CONVERTER=OFF -DSINTER_BUILD_TESTS=OFF "${options[@]}"
  quiet "$cmake" --build "$build" -j "${SINTER_JOBS:-$(nproc)}"
  quiet "$cmake" --install "$build" --prefix "$work/$name"
  quiet "$cmake" -S "$root/examples/classify" -B "$work/classify" -DCMAKE_PREFIX_PATH="$work/$name" -DARENA_BYTES=4000000
  quiet "$cmake" --build "$work/classify"
  "$sinter" convert "$root/examples/digits/digits.onnx" --backends "$backends" -o "$work/digits.sinter" --quiet
  "$work/classify/classify" "$work/digits.sinter" > "$work/said"
  expect "$work/said" '^class 2, probability 0\.9.*, 0 steps fall back$'
  without "$work/classify/classify" "$symbols"
  echo "$name off: $(cat "$work/said"), $(stat -c %s "$work/classify/classify") bytes"
  rm -rf "$work/classify"
done
