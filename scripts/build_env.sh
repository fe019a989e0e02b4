# Sourced by ./demo, ./test and .ci/run: timed sections with a line of progress every 10 s where there is no terminal, a table of
# where the time went, and a compiler cache that two checkouts can share.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$root} CCACHE_NOHASHDIR=1
jobs=${SINTER_JOBS:-$(nproc)}

# Sets cpu_now: the processor time of this shell's children so far, in seconds. No subshell, which would have its own count.
cpu_file=$(mktemp) cpu_now=0
trap 'end_progress; rm -f "$cpu_file"' EXIT
read_cpu() {
  times >"$cpu_file"
  cpu_now=$(awk 'NR == 2 { for (i = 1; i <= 2; ++i) { split($i, t, "m"); s += t[1] * 60 + t[2] } printf "%d", s }' "$cpu_file")
}

# The seconds of the section so far, and how far its newest log is: ninja's [7/310], or ctest's 12/900.
show_progress() {
  local start=$SECONDS log step
  while sleep 10 >/dev/null 2>&1; do
    log=$(find build -maxdepth 1 -name '*.log' -newer "$cpu_file" -printf '%T@ %p\n' 2>/dev/null | sort -n | sed -n '$s/^[^ ]* //p')
    step=''
    [ -z "$log" ] || step=$(tail -n 5 "$log" | sed -nE 's/^ *(\[[0-9]+\/[0-9]+\]|[0-9]+\/[0-9]+ ).*/\1/p' | tail -n 1)
    printf '   %d s %s\n' $((SECONDS - start)) "$step"
  done
}
progress_job=''
end_progress() {
  [ -n "$progress_job" ] || return 0
  kill "$progress_job" 2>/dev/null || true
  wait "$progress_job" 2>/dev/null || true
  progress_job=''
}

section_name='' section_start=0 section_cpu=0 section_rows=()
section() {
  section_end
  read_cpu
  section_name=$1 section_start=$SECONDS section_cpu=$cpu_now
  printf '\n== %s\n' "$1"
  [ -t 1 ] || { show_progress & progress_job=$!; }
}
section_end() {
  [ -n "$section_name" ] || return 0
  end_progress
  read_cpu
  local seconds=$((SECONDS - section_start)) cpu=$((cpu_now - section_cpu))
  printf -- '-- %s: %d s, %d s of processor time\n' "$section_name" "$seconds" "$cpu"
  section_rows+=("$(printf '%7d %9d  %s' "$seconds" "$cpu" "$section_name")")
  section_name=''
}

# time_table [LOG-OF-CTEST]...: the sections so far, and the ten slowest tests of the logs.
time_table() {
  section_end
  local log
  printf '\n== Where the time went\n%7s %9s\n' 'seconds' 'processor'
  printf '%s\n' "${section_rows[@]}"
  printf '%7d %9d  %s\n' "$SECONDS" "$cpu_now" 'all'
  for log in "$@"; do
    [ -f "$log" ] || continue
    printf '\nSlowest tests of %s, in seconds\n' "$(basename "$log" -ctest.log)"
    sed -nE 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: ([^ ]+) .* ([0-9.]+) sec.*/\2 \1/p' "$log" | sort -rn |
      awk 'NR <= 10 { printf "%9.1f  %s\n", $1, $2 }'  # Not head: sort would die of SIGPIPE, and pipefail end ./test.
  done
}

# quiet_unless_failed LOG COMMAND...: on a terminal the output is shown as it comes, elsewhere only if the command fails.
quiet_unless_failed() {
  local log=$1
  shift
  if [ -t 1 ]; then
    "$@"
  else
    "$@" >"$log" 2>&1 || {
      tail -n 150 "$log"
      return 1
    }
  fi
}

# libfuzzer: prints where clang has it, or nothing.
libfuzzer() {
  local file
  file=$(clang++ -print-file-name="libclang_rt.fuzzer-$(uname -m).a" 2>/dev/null) || return 0
  [ ! -f "$file" ] || printf '%s\n' "$file"
}

# configure_and_build PRESET [--target NAME]...: configured with $configure_options, too.
configure_options=()
configure_and_build() {
  local preset=$1
  shift
  mkdir -p build
  quiet_unless_failed "build/$preset-configure.log" cmake --preset "$preset" \
    -DSINTER_VENV="${SINTER_VENV:-$root/.venv}" "${configure_options[@]}" || return 1
  quiet_unless_failed "build/$preset-build.log" cmake --build "build/$preset" -j "$jobs" "$@"
}

# run_ctest PRESET [CTEST-OPTION]...: prints what fails, and ctest's closing lines. All of its output is in
# build/PRESET-ctest.log.
run_ctest() {
  local preset=$1
  shift
  ctest --preset "$preset" -j "$jobs" --timeout 900 --no-tests=error "$@" | tee "build/$preset-ctest.log" |
    grep -vE --line-buffered '^ *(Start +[0-9]+: |[0-9]+/[0-9]+ Test +#[0-9]+: .* Passed )'
  return "${PIPESTATUS[0]}"
}
