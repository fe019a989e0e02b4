#!/usr/bin/env bash
# Takes the digits network from ONNX to a running model and prints the results.
#
#     examples/digits/run_demo.sh PATH/TO/sinter [FOLDER_FOR_RESULTS]
#
# Needs bash and python3 (standard library only).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
sinter=${1:?usage: run_demo.sh PATH/TO/sinter [FOLDER]}
if [ $# -gt 1 ]; then out=$2; mkdir -p "$out"; else out=$(mktemp -d); trap 'rm -rf "$out"' EXIT; fi

"$sinter" convert "$here/digits.onnx" -o "$out/digits.sinter" --report "$out/report.json" --json > "$out/convert.json"
"$sinter" inspect "$out/digits.sinter" --json > "$out/inspect.json"
"$sinter" run "$out/digits.sinter" --inputs "$here/digits_eval.npz" --each --outputs "$out/outputs.npz" --quiet
"$sinter" run "$out/digits.sinter" --inputs "$here/digits_eval.npz" --each --backend reference \
  --outputs "$out/outputs_reference.npz" --quiet
"$sinter" bench "$out/digits.sinter" --threads 1 --json > "$out/bench.json"
python3 "$here/report.py" "$here" "$out"
