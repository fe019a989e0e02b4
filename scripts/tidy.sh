#!/usr/bin/env bash
# clang-tidy (14) over our sources with the checks of .clang-tidy. Exit code 1 if it finds anything.
#
#   scripts/tidy.sh              every source in the compile database of build/dev
#   scripts/tidy.sh FILE...      these .cc files
#   scripts/tidy.sh --changed    the .cc files that differ from main
#
# SINTER_BUILD names another configured build folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${SINTER_BUILD:-build/dev}
tidy=$(command -v clang-tidy-14 || command -v clang-tidy) || { echo "clang-tidy is missing: apt install clang-tidy-14"; exit 77; }
cmake -S . -B "$build" -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DSINTER_UNITY=OFF >/dev/null
database=$(mktemp -d)
trap 'rm -rf "$database"' EXIT
# Flags that only g++ has are dropped, and generated code is not ours.
python3 - "$build/compile_commands.json" "$database" "$@" <<'PYTHON'
import json, os, re, subprocess, sys
source, out, *asked = sys.argv[1:]
if asked == ["--changed"]:
    asked = subprocess.run(["git", "diff", "--name-only", "--diff-filter=d", "main"], capture_output=True, text=True,
                           check=True).stdout.split()
    asked = [f for f in asked if f.endswith(".cc")] or ["nothing"]
asked = {os.path.realpath(f) for f in asked}
kept = {}
for entry in json.load(open(source)):
    name = os.path.realpath(os.path.join(entry["directory"], entry["file"]))
    ours = re.match(r"(runtime|platforms|converter|tests|bench|examples)/", os.path.relpath(name))
    if not ours or "CMakeFiles" in name or (asked and name not in asked):
        continue
    entry["command"] = re.sub(r"^\S*ccache ", "", entry["command"])
    entry["command"] = re.sub(r" -W(no-)?(error|restrict|stringop-overflow|array-bounds)\b", "", entry["command"])
    kept.setdefault(name, entry)
json.dump(list(kept.values()), open(os.path.join(out, "compile_commands.json"), "w"))
open(os.path.join(out, "files"), "w").write("".join(f"{n}\0" for n in sorted(kept)))
print(f"{len(kept)} files")
PYTHON
xargs -0 -r -n 1 -P "$(nproc)" "$tidy" --quiet -p "$database" <"$database/files" 2>&1 |
  sed -E '/^[0-9]+ warnings?( treated as errors?| generated| and)|^Suppressed|^Use -header-filter/d' || exit 1
echo clean
