#!/usr/bin/env bash
# Packages built a second time, from a clone of the commit in a folder of another name, have the same bytes. Others are kept in
# build/release-twice.
#
#     twice.sh NAME...      names of ./release --list, which ./release has built in this checkout
#
# The clone has nothing of this checkout: the compiler cache is off, and zig, its caches and the third-party libraries are the clone's.
# It takes as long as ./release, and 600 MB for zig. SINTER_DEPS_PREFIX names libraries of scripts/deps.sh that both use instead.
set -euo pipefail
[ $# -gt 0 ] || { sed -n '2,/^set /p' "$0" | sed '$d; s/^# \{0,1\}//' >&2; exit 2; }
root=$(cd "$(dirname "$0")/../.." && pwd)
first=$root/build/release-files/SHA256SUMS
[ -f "$first" ] || { echo "$first is missing; run ./release first" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
clone=$work/a-clone-whose-path-has-another-length
git clone --quiet "$root" "$clone"
options=()
for name in "$@"; do options+=(--only "$name"); done
(cd "$clone" && unset SINTER_VENV && CCACHE_DISABLE=1 ZIG_LOCAL_CACHE_DIR=$work/zig ZIG_GLOBAL_CACHE_DIR=$work/zig ./release "${options[@]}")
differ=0
while read -r digest file; do
  if grep -qxF "$digest  $file" "$first"; then
    echo "same bytes: $file"
  else
    echo "other bytes: $file ($(grep -F "  $file" "$first" | cut -c1-16 || true)... here, ${digest:0:16}... in the clone)"
    mkdir -p "$root/build/release-twice"
    cp "$clone/build/release-files/$file" "$root/build/release-twice/"
    differ=1
  fi
done <"$clone/build/release-files/SHA256SUMS"
exit $differ
