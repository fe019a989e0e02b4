#!/usr/bin/env bash
# Shows on a machine with a GPU what the emulator shows without one, and measures. Leaves one report.
#
#   tests/cuda/on_device.sh [BUNDLE] [--report FILE] [--minutes N] [--jobs N] [--only PART]... [--networks REGEX]
#                           [--suites REGEX] [--backend cuda|cuda-emulated]
#
#   BUNDLE            the folder that tests/cuda/bundle.sh made (default: the folder of this script)
#   --report FILE     default: report.md in the current folder. The complete output of all programs: FILE.log
#   --minutes N       no program runs longer (default: 9)
#   --jobs N          programs at a time where nothing is timed (default: half of the processors, up to 8)
#   --only PART       machine, latencies, decoders, networks, operations, rivals or sanitizer; may be repeated
#   --networks REGEX  the networks with such names (default: all; with cuda-emulated, the small ones)
#   --suites REGEX    the suites of operations with such names (default: all)
#   --backend         cuda-emulated tries the script itself where there is no GPU: the emulator in the GPU's place, without
#                     rivals and compute-sanitizer
#
# Needs bash, coreutils, grep, sed, awk and find; nvidia-smi, compute-sanitizer and Python with rivals are used where they
# are. A line is added to the report as soon as a program has ended, so that an interruption loses only what was running.
# Every network and every suite of operations runs in a process of its own, because an error of a kernel ends all that its
# process can do on the device. Exit code 0: everything has run and passed; 1: something failed or was not run for want of
# time; 2: wrong use.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
usage() { sed -n '2,/^set /p' "$0" | sed '$d; s/^# \{0,1\}//'; }
bundle=$here report=report.md minutes=9 jobs='' only='' networks='' suites=. backend=cuda
while [ $# -gt 0 ]; do
  case $1 in
    --report) report=${2:?--report needs a file}; shift ;;
    --minutes) minutes=${2:?--minutes needs a number}; shift ;;
    --jobs) jobs=${2:?--jobs needs a number}; shift ;;
    --only) only="$only ${2:?--only needs a part}"; shift ;;
    --networks) networks=${2:?--networks needs an expression}; shift ;;
    --suites) suites=${2:?--suites needs an expression}; shift ;;
    --backend) backend=${2:?--backend needs a name}; shift ;;
    -h | --help) usage; exit 0 ;;
    -*) usage >&2; exit 2 ;;
    *) bundle=$1 ;;
  esac
  shift
done
case $minutes$jobs in *[!0-9]*) echo 'on_device: --minutes and --jobs take whole numbers' >&2; exit 2 ;; esac
case $backend in
  cuda) ;;
  cuda-emulated) networks=${networks:-'^(mnist8|ic|ic-int8|kws|kws-int8|ad|ad-int8)$'} ;;
  *) echo "on_device: --backend takes cuda or cuda-emulated, not $backend" >&2; exit 2 ;;
esac
networks=${networks:-.}
for part in $only; do
  case $part in
    machine | latencies | decoders | networks | operations | rivals | sanitizer) ;;
    *) echo "on_device: '$part' is not a part" >&2; exit 2 ;;
  esac
done
bundle=$(cd "$bundle" 2>/dev/null && pwd) || { echo 'on_device: the folder of the bundle is not there' >&2; exit 2; }
for program in bin/sinter bin/op_tests target; do
  [ -f "$bundle/$program" ] || { echo "on_device: $bundle/$program is missing; make the bundle again" >&2; exit 2; }
done
processors=$(nproc 2>/dev/null || echo 2)
[ -n "$jobs" ] || { jobs=$((processors / 2)); [ "$jobs" -le 8 ] || jobs=8; }
[ "$jobs" -ge 1 ] || jobs=1
deadline=$((SECONDS + 60 * minutes))
log=$report.log
{ : >"$report" && : >"$log"; } || { echo "on_device: $report cannot be written" >&2; exit 2; }
work=$(mktemp -d) || exit 2
mkdir "$work/device" "$work/reference" || exit 2 # converted networks
watcher=''
trap 'rm -rf "$work"; [ -z "$watcher" ] || kill "$watcher" 2>/dev/null' EXIT
trap '' PIPE # the report does not end with the reader of our output
trap 'say "" "**Interrupted after $SECONDS s.**"; kill $(jobs -p) 2>/dev/null; exit 1' TERM INT HUP

# say LINE...: into the report, and to whoever watches. One write for all lines: several processes report.
say() {
  printf '%s\n' "$@" >>"$report"
  printf '%s\n' "$@" 2>/dev/null || true
}
seconds_left() { echo $((deadline - SECONDS)); }

# limited SECONDS COMMAND...: for that long, or for what is left of the whole. 124: it was stopped; 125: no time was left.
limited() {
  local limit=$1 rest
  rest=$(seconds_left)
  shift
  [ "$rest" -gt 0 ] || return 125
  [ "$limit" -le "$rest" ] || limit=$rest
  timeout -k 5 "$limit" "$@" &
  wait $! # unlike a command in the foreground, it lets signals through
}

# check NAME SECONDS COMMAND...: one line in the report, and where the command fails, what it printed about it. Its output
# stays in $work/NAME; its result (passed, failed, stopped, unstarted) becomes the name of a file there.
check() {
  local name=$1 limit=$2 out=$work/$1 start=$SECONDS status=0 took result text
  shift 2
  limited "$limit" "$@" >"$out" 2>&1 || status=$?
  took=$((SECONDS - start))
  case $status in
    0) result=passed text="passed in $took s" ;;
    124 | 137) result=stopped text="STOPPED after $took s" ;;
    125) result=unstarted text='NOT RUN: no time is left' ;;
    *) result=failed text="FAILED with code $status after $took s" ;;
  esac
  : >"$work/$name.$result"
  { printf '\n==== %s: %s\n' "$name" "$text"; cat "$out"; } >>"$log"
  case $result in
    passed) [ -n "${quietly:-}" ] || say "- $name: $text" ;;
    unstarted) say "- $name: $text" ;;
    *) say "- $name: $text" '' "$(excerpt "$out")" '' ;;
  esac
  [ $status = 0 ]
}
# What is worth reading of a failed program's output, as code in Markdown: where it is long, its first errors and its end.
excerpt() {
  if [ "$(wc -l <"$1")" -le 30 ]; then
    cat "$1"
  else
    grep -aE -A 4 'Failure|rror|=========|terminate|cannot' "$1" | head -n 30
    echo ...
    tail -n 6 "$1"
  fi | cut -c 1-220 | sed 's/^/      /'
}
# in_turns COMMAND...: runs it in the background, once fewer than $jobs are running.
in_turns() {
  while [ "$(jobs -pr | wc -l)" -ge "$jobs" ]; do wait -n 2>/dev/null || true; done
  "$@" &
}
# totals PREFIX: how the checks whose names start with it ended.
totals() {
  local result n text=''
  for result in passed failed stopped unfinished unstarted; do
    n=$(find "$work" -maxdepth 1 -name "$1*.$result" | wc -l)
    [ "$n" = 0 ] || text="$text, $n $result"
  done
  [ -n "$text" ] || { text=', FAILED: nothing was there to run'; : >"$work/$1.failed"; }
  say '' "${1%.}:${text#,}"
}

part() { # part NAME TITLE: its function follows
  case " $only " in "  " | *" $1 "*) ;; *) return 0 ;; esac
  say '' "## $2" ''
  "$1"
}

# Sinter's programs with the libraries of the bundle: those of the C++ compiler only where the machine's are too old.
libraries=$bundle/lib
LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$bundle/bin/sinter" --version >/dev/null 2>&1 ||
  libraries=$bundle/lib:$bundle/lib/compiler
with_libraries() { # for timeout, which starts no functions
  echo env "LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
}
read -ra ours <<<"$(with_libraries)"
sinter=("${ours[@]}" "$bundle/bin/sinter")
op_tests=("${ours[@]}" "SINTER_TEST_BACKENDS=$backend" "$bundle/bin/op_tests")

# The networks, converted here: device/NAME.sinter, device/NAME.half.sinter (float16), and reference/NAME.sinter for the
# reference kernels. What is not converted counts as failed.
converted=''
convert_networks() {
  local file name quietly=1 to
  [ -z "$converted" ] || return 0
  converted=1
  to=(--target "$(cat "$bundle/target")")
  [ "$backend" = cuda ] || to=(--target cuda --backends "$backend")
  for file in "$bundle"/files/*.onnx; do
    name=$(basename "$file" .onnx)
    [[ $name =~ $networks ]] || continue
    in_turns convert "$file" "device/$name" "${to[@]}"
    in_turns convert "$file" "device/$name.half" "${to[@]}" --prefer-float16
    in_turns convert "$file" "reference/$name" --target portable
  done
  wait
}
convert() { # ONNX-FILE NAME OPTION...
  local onnx=$1 name=$2
  shift 2
  check "convert.${name/\//.}" 60 "${sinter[@]}" convert "$onnx" -o "$work/$name.sinter" --quiet --no-trial "$@"
}
networks_there() {
  local file
  for file in "$work"/device/*.sinter; do
    [ ! -f "$file" ] || basename "$file" .sinter
  done
}

# ---- the parts

machine() {
  say "- $(date -u '+%Y-%m-%d %H:%M UTC'), $processors processors, $(uname -sm), $("${sinter[@]}" --version 2>&1 | head -n 1)"
  local query=name,driver_version,memory.total,compute_cap,clocks.sm,clocks.mem,power.limit
  if command -v nvidia-smi >/dev/null; then
    say "- $(timeout 20 nvidia-smi --query-gpu=$query --format=csv,noheader 2>&1 | head -n 4)"
  else
    say '- nvidia-smi is not installed'
  fi
  # As long as a program uses the device, others start quickly; the log has the clocks.
  if [ "$backend" = cuda ] && command -v nvidia-smi >/dev/null; then
    timeout $((60 * minutes)) nvidia-smi --query-gpu=timestamp,clocks.sm,clocks.mem,temperature.gpu,utilization.gpu \
      --format=csv,noheader -l 5 >>"$work/clocks" 2>&1 &
    watcher=$!
    disown "$watcher" # nothing waits for it
    case $(timeout 20 nvidia-smi --query-gpu=compute_mode --format=csv,noheader 2>/dev/null) in
      Exclusive*) jobs=1 && say '- one program at a time, because the compute mode is exclusive' ;;
    esac
  fi
  if [ "$backend" = cuda ] && [ -x "$bundle/bin/device_times" ]; then
    say '' "$(limited 30 "$bundle/bin/device_times" 2>&1)" ''
  fi
  local tool
  for tool in compute-sanitizer python3 nvcc; do
    say "- $tool: $(command -v $tool || echo 'not installed')"
  done
}

# Median and minimum of runs from host memory to host memory; the log has the time of each step.
latencies() {
  local name out line
  convert_networks
  say '| network | median, us | minimum, us | first result, ms |' '| --- | --- | --- | --- |'
  for name in $(networks_there); do
    out=$work/latency.$name
    if limited 30 "${sinter[@]}" bench "$work/device/$name.sinter" --seconds 0.3 --profile >"$out" 2>"$out.errors"; then
      line="$(number "$out" median 1000) | $(number "$out" fastest 1000) | $(number "$out" first 1) |"
      [ ! -s "$out.errors" ] || line="$line $(tail -n 1 "$out.errors" | cut -c 1-160)"
      : >"$out.passed"
    else
      line="failed: $(tail -n 1 "$out.errors" | cut -c 1-160) |"
      : >"$out.failed"
    fi
    say "| $name | $line"
    { printf '\n==== latency.%s\n' "$name"; cat "$out.errors" "$out"; } >>"$log"
  done
  totals latency.
}
# Tokens per second of decoders, one token after the other, and where their steps run.
decoders() {
  local folder name file out flags hosts to
  to=(--target "$(cat "$bundle/target")")
  [ "$backend" = cuda ] || to=(--target cuda --backends "$backend")
  say '| decoder | tokens per second: median | fastest | GB/s of weights | steps on the host | first token, ms |' \
    '| --- | --- | --- | --- | --- | --- |'
  for folder in "$bundle"/decoders/*/; do
    name=$(basename "$folder") file=$work/decoder.sinter out=$work/decoder.$name
    read -ra flags <"$folder/flags"
    quietly=1 check "decoder.convert.$name" 120 "${sinter[@]}" convert "$folder/model.onnx" -o "$file" --quiet --no-trial \
      "${to[@]}" "${flags[@]}" || continue
    hosts=$("${sinter[@]}" inspect "$file" --steps 2>>"$log" | tee -a "$log" | grep -c 'on the host')
    if limited 60 "${sinter[@]}" bench "$file" --entry 0 --seconds 3 --profile >"$out" 2>"$out.errors"; then
      say "| $name | $(rate "$out" median 1) | $(rate "$out" fastest 1) |\
 $(rate "$out" fastest "$(cat "$folder/read")e-9") | $hosts | $(number "$out" first 1) |"
      : >"$out.passed"
    else
      say "| $name | failed: $(tail -n 1 "$out.errors" | cut -c 1-160) |"
      : >"$out.failed"
    fi
    { printf '\n==== decoder.%s\n' "$name"; cat "$out.errors" "$out"; } >>"$log"
    rm -f "$file"
  done
  totals decoder.
}
# rate FILE WORD FACTOR: the factor for each second of what the line that begins with the word has in milliseconds.
rate() {
  awk -v word="$2" -v factor="$3" '$1 == word { printf "%.1f", factor * 1000 / $2; exit }' "$1"
}
# number FILE WORD FACTOR: the milliseconds in the line that begins with the word, times the factor.
number() {
  awk -v word="$2" -v factor="$3" '$1 == word { printf "%.2f", $2 * factor; exit }' "$1"
}

# On the device against the reference kernels on the host: integers to the bit, float32 closely, float16 by its SQNR.
networks() {
  local name tolerance
  convert_networks
  for name in $(networks_there); do
    tolerance=()
    [ "$name" = "${name%.half}" ] || tolerance=(--min-sqnr 30)
    in_turns check "network.$name" 90 "${sinter[@]}" compare "$work/reference/${name%.half}.sinter" \
      "$work/device/$name.sinter" --inputs "$bundle/files/${name%.half}.npz" "${tolerance[@]}"
  done
  wait
  totals convert.
  totals network.
}

operations() {
  local suite quietly=1
  for suite in $("${op_tests[@]}" --gtest_list_tests 2>/dev/null | sed -n 's/^\([A-Za-z0-9_/]*\)\..*/\1/p'); do
    [[ $suite =~ $suites ]] || continue
    in_turns check "suite.${suite//\//-}" 120 "${op_tests[@]}" --gtest_filter="$suite.*"
  done
  wait
  totals suite.
}

rivals() {
  local python=python3
  if ! command -v $python >/dev/null; then
    say '- not run: python3 is not installed'
    return
  fi
  # Without our libraries.
  limited 150 env PYTHONUNBUFFERED=1 $python "$bundle/rivals.py" "$bundle/files" --networks "$networks" 2>&1 | tee -a "$log" |
    while IFS= read -r line; do say "    $line"; done
  if [ "${PIPESTATUS[0]}" = 0 ]; then : >"$work/rivals.passed"; else : >"$work/rivals.failed"; fi
  totals rivals
}

# A suite that is too slow under a tool has shown no error until it was stopped.
sanitizer() {
  local tool suite found
  found=$(command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer 2>/dev/null | head -n 1)
  if [ -z "$found" ]; then
    say '- not run: compute-sanitizer is not installed'
    return
  fi
  for suite in AttentionLengths AttentionNarrow ExpertFullyConnected LinearAttention Softmax MatMul Conv QConv AttentionTiles \
    Reduce Transpose FullyConnected TopK Lstm ScatterElements GroupNorm Dft; do
    for tool in memcheck racecheck initcheck; do
      in_turns check "$tool.$suite" 60 "${ours[@]}" SINTER_TEST_BACKENDS=cuda "$found" --tool $tool --error-exitcode 1 \
        "$bundle/bin/op_tests" --gtest_filter="$suite.*:*/$suite.*"
    done
  done
  wait
  for tool in memcheck racecheck initcheck; do
    for suite in "$work/$tool".*.stopped; do
      [ ! -f "$suite" ] || grep -qE '^=+ (Invalid|Race|Uninit|Error|Program hit|Misaligned|Barrier)' "${suite%.stopped}" ||
        mv "$suite" "${suite%.stopped}.unfinished"
    done
    totals $tool.
  done
}

say '# Report of tests/cuda/on_device.sh' '' "$backend, all within $minutes minutes; complete output in $(basename "$log")"
part machine 'The machine'
part latencies 'Latencies'
part decoders 'Decoders'
part networks 'Networks, against the reference kernels'
part operations 'Operations'
if [ "$backend" = cuda ]; then
  part rivals 'Other runtimes'
  part sanitizer 'compute-sanitizer'
fi
if [ -n "$watcher" ]; then
  { printf '\n==== clocks\n'; cat "$work/clocks"; } >>"$log"
fi
bad=$(find "$work" -maxdepth 1 \( -name '*.failed' -o -name '*.stopped' -o -name '*.unstarted' \) | wc -l)
say '' "Ended after $SECONDS s: $bad of what was asked for has failed, was stopped or was not run."
[ "$bad" = 0 ]
