#!/usr/bin/env bash
# Shows on a machine with a GPU what the emulator shows without one, and measures. Leaves one report.
#
#   tests/cuda/on_device.sh [BUNDLE] [--report FILE] [--backend cuda|cuda-emulated]
#
#   BUNDLE         the folder that tests/cuda/bundle.sh made (default: the folder of this script)
#   --report FILE  default: report.md in the current folder
#   --backend      cuda-emulated tries the script itself where there is no GPU: the emulator in the GPU's place, no rivals
#
# Parts: the device; the suite of operations; networks, device against reference kernels; compute-sanitizer (memcheck,
# racecheck, initcheck) on a part of the suite; latencies beside other runtimes. Every program has a time limit; the
# whole is meant to take less than ten minutes. Exit code 0: all that ran has passed.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
usage() { sed -n '2,/^set /p' "$0" | sed '$d; s/^# \{0,1\}//'; }
bundle=$here report=report.md backend=cuda
while [ $# -gt 0 ]; do
  case $1 in
    --report) report=${2:?--report needs a file}; shift ;;
    --backend) backend=${2:?--backend needs a name}; shift ;;
    -h | --help) usage; exit 0 ;;
    -*) usage >&2; exit 2 ;;
    *) bundle=$1 ;;
  esac
  shift
done
export LD_LIBRARY_PATH=$bundle/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
sinter=$bundle/bin/sinter failed=0 log=$(mktemp)
trap 'rm -f "$log" "$log.network"' EXIT
{
  echo '# Report of tests/cuda/on_device.sh'
  echo
  date -u '+%Y-%m-%d %H:%M UTC'
  nvidia-smi --query-gpu=name,driver_version,memory.total,compute_cap --format=csv,noheader 2>/dev/null || echo 'no nvidia-smi'
} | tee "$report"

# part NAME SECONDS COMMAND...: its last lines go into the report.
part() {
  local name=$1 limit=$2 start=$SECONDS status=0
  shift 2
  if declare -F "$1" >/dev/null; then
    "$@" >"$log" 2>&1 || status=$?  # it limits the programs that it runs
  else
    timeout "$limit" "$@" >"$log" 2>&1 || status=$?
  fi
  {
    printf '\n## %s\n\n' "$name"
    if [ $status = 0 ]; then echo "passed in $((SECONDS - start)) s"; else echo "FAILED ($status) after $((SECONDS - start)) s"; fi
    printf '```\n'
    if [ $status = 0 ]; then tail -n 6 "$log"; else grep -E 'Failure|FAILED|error|Error|=====' "$log" | head -n 60; tail -n 15 "$log"; fi
    printf '```\n'
  } | tee -a "$report"
  [ $status = 0 ] || failed=1
}

suffix=sinter
[ "$backend" = cuda ] || suffix=emulated
# Each network on the device against the reference kernels; float16 by its SQNR.
networks() {
  local file name inputs all=0
  for file in "$bundle"/files/*."$suffix"; do
    name=$(basename "$file" ".$suffix") inputs=$bundle/files/${name%.half}
    set -- timeout 20 "$sinter" compare "${inputs%.npz}.reference" "$file" --inputs "$inputs.npz"
    [ "$name" = "${name%.half}" ] || set -- "$@" --min-sqnr 30
    if "$@" >"$log.network" 2>&1; then echo "$name: same"; else echo "$name: $(tail -n 1 "$log.network")"; all=1; fi
  done
  return $all
}
latencies() {
  local file
  for file in "$bundle"/files/*."$suffix"; do
    printf '%-24s ' "$(basename "$file" ".$suffix")"
    timeout 20 "$sinter" bench "$file" --seconds 0.3 | tr '\n' ';' | tr -s ' '
    echo
  done
}

part 'Unit tests of the platform' 60 "$bundle/bin/cuda_tests"
part 'Operations' 240 env SINTER_TEST_BACKENDS="$backend" "$bundle/bin/op_tests" --gtest_brief=1
if [ "$backend" = cuda ] && command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck initcheck; do
    part "compute-sanitizer $tool" 60 env SINTER_TEST_BACKENDS=cuda compute-sanitizer --tool "$tool" --error-exitcode 1 \
      "$bundle/bin/op_tests" --gtest_brief=1 \
      --gtest_filter='Softmax.*:Conv.*:MatMul.*:QConv.*:Attention.*:Transpose.*:*AttentionTiles.LargeHeads*'
  done
fi
part 'Networks' 120 networks
part 'Latencies' 90 latencies
cat "$log" >>"$report"
[ "$backend" != cuda ] || part 'Other runtimes' 90 python3 "$bundle/rivals.py" "$bundle/files"
exit $failed
