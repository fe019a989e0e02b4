#!/usr/bin/env bash
# The checked-in FlatBuffers header is what schemas/generate.sh makes of the schema today.
#
#   tests/structure/schema_fresh.sh FLATC
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
flatc=${1:?usage: schema_fresh.sh FLATC}
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp schemas/generate.sh schemas/*.fbs "$copy/"
"$copy/generate.sh" "$flatc"
for file in "$copy"/generated/*; do
  diff -u "schemas/generated/$(basename "$file")" "$file" >"$copy/diff" || {
    head -40 "$copy/diff"
    echo "stale: run schemas/generate.sh $flatc"
    exit 1
  }
  echo "schemas/generated/$(basename "$file") is fresh"
done
