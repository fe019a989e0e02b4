# Sourced by ./demo, ./test and .ci/run: timed sections and a compiler cache that two checkouts can share.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$root} CCACHE_NOHASHDIR=1
jobs=${SINTER_JOBS:-$(nproc)}

section_name='' section_start=0
section() {
  section_end
  section_name=$1 section_start=$SECONDS
  printf '\n== %s\n' "$1"
}
section_end() {
  [ -n "$section_name" ] || return 0
  printf -- '-- %s: %d s\n' "$section_name" $((SECONDS - section_start))
  section_name=''
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

# configure_and_build PRESET [--target NAME]...
configure_and_build() {
  local preset=$1
  shift
  mkdir -p build
  quiet_unless_failed "build/$preset-configure.log" cmake --preset "$preset" \
    -DSINTER_VENV="${SINTER_VENV:-$root/.venv}" || return 1
  quiet_unless_failed "build/$preset-build.log" cmake --build "build/$preset" -j "$jobs" "$@"
}

# run_ctest PRESET [CTEST-OPTION]...: prints what fails, and ctest's closing lines.
run_ctest() {
  local preset=$1
  shift
  ctest --preset "$preset" -j "$jobs" --timeout 900 --no-tests=error "$@" |
    grep -vE --line-buffered '^ *(Start +[0-9]+: |[0-9]+/[0-9]+ Test +#[0-9]+: .* Passed )'
  return "${PIPESTATUS[0]}"
}
