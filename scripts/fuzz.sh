#!/usr/bin/env bash
# Builds the libFuzzer targets of tests/fuzz with clang and runs them side by side.
#
#   scripts/fuzz.sh [--seconds N] [--seed N] [--corpus FOLDER] [TARGET]...
#
#   --seconds N      for each target (60)
#   --seed N         1 by default, so that a run repeats; 0: another one each time
#   --corpus FOLDER  keep what reaches new code there, in a folder a target, and go on from it; else nothing is kept
#   TARGET           model, onnx, arrays (all)
#
# What crashes, takes 20 s of processor time, 2 GiB or breaks a guarantee is a finding: its file is kept in
# build/fuzz/findings, and in base64 in build/fuzz/findings.log; the script ends with 1. Ends with 77 and a message where
# there is no clang with libFuzzer. See tests/fuzz/README.md.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
usage() { sed -n '2,/^set /p' "$0" | sed '$d; s/^# \{0,1\}//'; }
seconds=60 seed=1 corpus='' targets=()
while [ $# -gt 0 ]; do
  case $1 in
    --seconds) seconds=$2; shift ;;
    --seed) seed=$2; shift ;;
    --corpus) corpus=$2; shift ;;
    -h | --help) usage; exit 0 ;;
    model | onnx | arrays) targets+=("$1") ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done
[ ${#targets[@]} -gt 0 ] || targets=(model onnx arrays)

. scripts/build_env.sh
if [ -z "$(libfuzzer)" ]; then
  echo 'fuzz: skipped: there is no clang++ with libFuzzer (Debian: clang and libclang-rt-14-dev; scripts/install.sh)'
  exit 77
fi
configure_and_build fuzz --target fuzzers

mkdir -p build/fuzz/findings
findings=build/fuzz/findings.log
rm -f "$findings"
# report TARGET LOG: what the sanitizer reports of the finding, the frames of our own code, and the file.
report() {
  local file
  file=$(sed -nE 's/.*Test unit written to //p' "$2" | tail -n 1)
  {
    echo "fuzz: $1: FOUND something"
    grep -E 'runtime error:|^SUMMARY|libFuzzer: (timeout|out-of-memory|deadly)' "$2" | cut -c 1-300 | head -n 4 || true
    grep -E '^ +#[0-9]+ 0x' "$2" | grep -oE '(converter|runtime|platforms|tests)/[a-z_0-9/]+\.(cc|h|def):[0-9]+' |
      awk '!seen[$0]++ && ++n <= 6 { print "    " $0 }' || true
    if [ -f "$file" ]; then
      echo "$file, in base64:"
      head -c 6000 "$file" | base64
    fi
  } | tee -a "$findings"
}
# fuzz TARGET LOG: ends with the status of the fuzzer.
fuzz() {
  local target=$1 log=$2 scratch='' status=0
  local folders=("tests/fuzz/corpus/$target")
  [ ! -d "tests/fuzz/findings/$target" ] || folders+=("tests/fuzz/findings/$target")
  if [ -n "$corpus" ]; then
    mkdir -p "$corpus/$target"
    folders=("$corpus/$target" "${folders[@]}")
  else
    scratch=$(mktemp -d)
    folders=("$scratch" "${folders[@]}")
  fi
  # Its schedule by rarity costs more than the targets themselves.
  UBSAN_OPTIONS=print_stacktrace=1 "build/fuzz/bin/fuzz_$target" -max_total_time="$seconds" -seed="$seed" -entropic=0 -mutate_depth=2 -max_len=16384 \
    -timeout=300 -rss_limit_mb=2048 -malloc_limit_mb=1024 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/findings/$target-" "${folders[@]}" >"$log" 2>&1 || status=$?
  [ -z "$scratch" ] || rm -rf "$scratch"
  return $status
}
log_of() { echo "build/fuzz/fuzz_$1.log"; }
# Jobs in the background ignore Ctrl-C.
trap 'trap - TERM; kill 0' INT
pids=()
for target in "${targets[@]}"; do
  fuzz "$target" "$(log_of "$target")" &
  pids+=($!)
done
failed=''
for i in "${!targets[@]}"; do
  target=${targets[$i]}
  if wait "${pids[$i]}"; then
    echo "fuzz: $target: $(sed -n 's/^fuzz: //p' "$(log_of "$target")" | tail -n 1)"
  else
    report "$target" "$(log_of "$target")"
    failed=1
  fi
done
[ -z "$failed" ]
