#!/usr/bin/env bash
# The checked-in FlatBuffers header is what flatc makes of the schema today; --fix writes it.
#
#   tests/structure/schema_fresh.sh FLATC [--fix]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
flatc=${1:?usage: schema_fresh.sh FLATC [--fix]}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
"$flatc" --cpp --cpp-std c++17 --scoped-enums -o "$out" schemas/model.fbs
if [ "${2:-}" = --fix ]; then
  mkdir -p schemas/generated
  cp "$out/model_generated.h" schemas/generated/model_generated.h
else
  diff -u schemas/generated/model_generated.h "$out/model_generated.h" >"$out/diff" || {
    head -40 "$out/diff"
    echo 'stale: run scripts/flatc.sh'
    exit 1
  }
  echo "schemas/generated/model_generated.h is fresh"
fi
