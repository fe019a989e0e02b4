#!/usr/bin/env bash
# clang-format of all C++ sources except generated ones; --fix rewrites them.
#
#   tests/structure/format.sh [--fix]
#
# Version 14 only: other versions break lines differently.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
tool=${CLANG_FORMAT:-clang-format-14}
command -v "$tool" >/dev/null || { echo "$tool is missing (scripts/install.sh)"; exit 6; }
files=()
for top in runtime platforms application converter python tests bench examples schemas; do
  [ -d "$top" ] || continue
  while IFS= read -r f; do files+=("$f"); done < <(find "$top" \( -name '*.cc' -o -name '*.h' -o -name '*.cu' \) -not -path '*/generated/*' | sort)
done
[ ${#files[@]} -gt 0 ] || { echo "no sources found"; exit 1; }
if [ "${1:-}" = --fix ]; then
  "$tool" -i "${files[@]}"
else
  "$tool" --dry-run -Werror "${files[@]}"
  echo "${#files[@]} files are formatted"
fi
