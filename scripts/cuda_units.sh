#!/usr/bin/env bash
# Compiles units of the CUDA platform's kernels for two architectures, and prints what they take.
#
#   scripts/cuda_units.sh [UNIT]...   all by default
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ $# -gt 0 ] || set -- $(basename -s .cu platforms/cuda/kernels/*/*.cu)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for unit in "$@"; do
  start=$SECONDS
  nvcc -std=c++20 -O3 -fmad=false --expt-relaxed-constexpr -Xptxas -v -Werror all-warnings -I. -Iruntime/include \
    -gencode arch=compute_75,code=sm_75 -gencode arch=compute_87,code=sm_87 \
    -fatbin platforms/cuda/kernels/*/"$unit.cu" -o "$out/$unit" 2>"$out/log" || { cat "$out/log"; exit 1; }
  printf '%s: %d s, %d bytes\n' "$unit" $((SECONDS - start)) "$(stat -c %s "$out/$unit")"
  grep -E 'spill|Compiling|Used' "$out/log" | sed 's/ptxas info *: //' | grep -B1 -A1 -E '[1-9][0-9]* bytes spill' || true
done
