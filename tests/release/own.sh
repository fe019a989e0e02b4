#!/usr/bin/env bash
# The program of a build folder as ./release lays it out: installed, with its licence texts and list, moved to another folder, and run.
#
#     own.sh CMAKE BUILD_FOLDER PYTHON
#
# It needs nothing that the build did not need: 2 s of processor time. Archives are for packages.py, because the best compression takes 14 s.
set -euo pipefail
cmake=$1 build=$2 python=$3
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$root/tests/install/common.sh"
. "$root/scripts/release/parts.sh"
export SOURCE_DATE_EPOCH=1700000000
cd "$root"
number=$(version)
top=sinter-$number-linux-$(uname -m)
quiet "$cmake" --install "$build" --component program --strip --prefix "$work/$top"
# The libraries of a build with the system's compiler are the system's, but these.
"$python" scripts/release/licences.py "$work/$top" sinter "$number" FlatBuffers xxHash Highway XNNPACK cpuinfo pthreadpool FXdiv CLI11 'JSON for Modern C++'
mkdir "$work/elsewhere"
mv "$work/$top" "$work/elsewhere/"
cd "$work/elsewhere/$top"
for file in LICENSE NOTICE licenses/XNNPACK.txt share/man/man1/sinter.1 share/bash-completion/completions/sinter \
  share/zsh/site-functions/_sinter share/fish/vendor_completions.d/sinter.fish; do
  [ -s "$file" ] || { echo "the package has no $file"; exit 1; }
done
"$python" - <<'PY'
import json

spdx = json.load(open("sinter.spdx.json"))
names = {package["name"] for package in spdx["packages"]}
assert spdx["spdxVersion"] == "SPDX-2.3" and {"sinter", "XNNPACK", "FlatBuffers"} <= names, names
PY
data=$root/examples/digits
bin/sinter --version >"$work/said"
expect "$work/said" "^sinter ${number//./\\.}"
quiet bin/sinter convert "$data/digits.onnx" --quantize int8 --calibrate "$data/digits_eval.npz" --samples 100 -o "$work/digits.sinter"
bin/sinter run "$work/digits.sinter" --random 3 >"$work/said"
expect "$work/said" '^probabilities +float32\[1,10\]'
