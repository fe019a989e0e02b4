#!/usr/bin/env bash
# Sinter as a part of another project. By add_subdirectory, in a folder whose path has a space: the project's own settings stay as they
# are, and a part of Sinter builds. With `full` also by FetchContent, in the leanest build, which then runs a model (70 seconds of
# processor time; lean.sh runs the same build on its own).
#
#     subproject.sh CMAKE SINTER CXX_COMPILER [full]
set -euo pipefail
cmake=$1 sinter=$2
export CXX=$3
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$here/common.sh"

# The copy has no tests and no converter: a parent project needs neither.
copy=$work/sinter
copy_tree "$copy"
"$sinter" convert "$root/examples/digits/digits.onnx" --target portable -o "$work/digits.sinter" --quiet

unset SINTER_DEPS_PREFIX
options=(-G Ninja -DCLASSIFY="$root/examples/classify/classify.cc")

# Nothing is forced on the project. The libraries are built in its folder.
own="$work/my project"
mkdir "$own"
cp -r "$copy" "$own/sinter"
quiet "$cmake" -S "$here/subproject" -B "$own" "${options[@]}" -DSINTER_SOURCE="$own/sinter" -DSINTER_XNNPACK=OFF -DSINTER_SIMD=OFF
quiet "$cmake" --build "$own" --target sinter_core sinter_threads
grep -qx 'CMAKE_BUILD_TYPE:STRING=' "$own/CMakeCache.txt" || { echo 'CMAKE_BUILD_TYPE is set in the cache'; exit 1; }
python3 - "$own/compile_commands.json" <<'PY'
import json, sys
units = json.load(open(sys.argv[1]))
mine = [u["command"] for u in units if u["file"].endswith("classify.cc")]
ours = [u["command"] for u in units if "/sinter/" in u["file"]]
assert len(mine) == 1 and len(ours) > 100, (len(mine), len(ours))
for flag in ("-O", "-W", "-ffp-contract", "-fno-", "-fvisibility", "-Werror"):
    assert " " + flag not in mine[0], f"{flag} is forced on the project's own source: {mine[0]}"
assert " -std=gnu++20 " in mine[0], mine[0]  # what the public headers need
assert all(" -O2 " in c for c in ours), "parts of Sinter are compiled without optimization"
assert not any(" -Werror " in c for c in ours), "another compiler's warnings would stop the project"
PY
quiet ctest --test-dir "$own" -N
expect "$work/log" '^Total Tests: 0$'
(cd "$own" && ninja -t targets all) > "$work/log"
! grep -E '^(sinter_tests|op_tests|unit_tests|fuzzers|sinter_run_model|sinter|sinter_converter): ' "$work/log" || { echo 'targets of tests and tools'; exit 1; }
DESTDIR=$work/installed quiet "$cmake" --install "$own"
[ -z "$(find "$work/installed" -type f 2>/dev/null)" ] || { find "$work/installed" -type f; echo 'the project installs Sinter'; exit 1; }

if [ "${4:-}" = full ]; then
  build=$copy/build/full
  quiet "$cmake" -S "$here/subproject" -B "$build" "${options[@]}" -DSINTER_SOURCE="$copy" -DFETCH=ON -DCMAKE_BUILD_TYPE=Debug \
    -DSINTER_THREADS=OFF -DSINTER_XNNPACK=OFF -DSINTER_SIMD=OFF -DSINTER_CUDA_BACKEND=OFF
  quiet "$cmake" --build "$build" -j "${SINTER_JOBS:-$(nproc)}" --target classify
  "$build/classify" "$work/digits.sinter" > "$work/said"
  expect "$work/said" '^class 2, probability 0\.9.*, 0 steps fall back$'
  cat "$work/said"
fi
