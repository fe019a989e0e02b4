#!/usr/bin/env bash
# Builds the third-party libraries that Sinter links into a prefix, from source tarballs that are checked by hash. CMake calls
# it for what is missing (SINTER_BUILD_DEPS).
#
#   scripts/deps.sh [--toolchain FILE] [-DNAME=VALUE]... [--only NAME]... [--where] [--fetch-only] [--source NAME] [-h]
#
#   --toolchain FILE  CMake's toolchain file of the target; without it, for this machine
#   -DNAME=VALUE      a variable that the toolchain file reads
#   --only NAME       xxhash, flatbuffers, highway, pthreadpool, xnnpack (these five if not given; xnnpack on x86-64 and ARM),
#                     sodium; what the converter links: protobuf, fmt, zlib, png, jpeg, zip, headers; for this machine only:
#                     flatc, onednn (x86_64; minutes)
#   --where           prints the folder of the results and builds nothing
#   --fetch-only      downloads the source tarballs and builds nothing
#   --source NAME     prints the path of the source tarball NAME and builds nothing
#
# Results: ${SINTER_DEPS_PREFIX:-build/deps}/TARGET, TARGET being this machine's processor or the toolchain file's name (with a
# hash of its place and of the variables if it is not one of toolchains/); tools that run here go to host/bin beside it.
# Sources: SINTER_DEPS_DIR, then ../shared/deps, then the system's Debian mirror. Each result carries a stamp
# (recipe, patches, flags, compiler), so that a second call does nothing.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
prefix_root=${SINTER_DEPS_PREFIX:-$root/build/deps}
mkdir -p "$prefix_root"
prefix_root=$(cd "$prefix_root" && pwd)
work=${SINTER_DEPS_WORK:-$prefix_root/work}
jobs=${SINTER_JOBS:-$(nproc)}

say() { printf 'deps: %s\n' "$*" >&2; }
die() { say "error: $*"; exit 6; }

usage() { sed -n '2,/^set /p' "$0" | sed '$d; s/^# \{0,1\}//'; }

# ---- sources -------------------------------------------------------------------------------------------------

# A library's tarball is named by the library and its version: deps.sha256 lists each once.
declare -A tarball
while read -r _ file; do tarball[${file%%_*}]=$file; done <"$root/scripts/deps.sha256"

want_sha() { awk -v f="$1" '$2 == f { print $1 }' "$root/scripts/deps.sha256"; }
sha_ok() { [ "$(sha256sum <"$1" | cut -d' ' -f1)" = "$(want_sha "$2")" ]; }

# The mirror's base address, from what apt would download for packages that are hardly ever security updates.
mirror_bases() {
  local p
  for p in hostname sed debianutils base-files hello; do
    apt-get download --print-uris "$p" 2>/dev/null || true
  done | sed -n "s|^'\(.*\)/pool/.*|\1|p" | awk '!seen[$0]++'
}

download() {  # URL FILE
  if [ -x /usr/lib/apt/apt-helper ]; then
    /usr/lib/apt/apt-helper -q download-file "$1" "$2" "SHA256:$(want_sha "$(basename "$2")")" >/dev/null 2>&1
  elif command -v curl >/dev/null; then
    curl -fsSL -o "$2" "$1"
  else
    wget -qO "$2" "$1"
  fi
}

# Prints the path of NAME's verified tarball.
fetch() {
  local name=$1 file=${tarball[$1]} dir base target
  [ -n "$(want_sha "$file")" ] || die "no hash for $file"
  for dir in "${SINTER_DEPS_DIR:-}" "$root/../shared/deps" "$work/download"; do
    [ -n "$dir" ] && [ -f "$dir/$file" ] || continue
    if sha_ok "$dir/$file" "$file"; then
      say "$name: source $dir/$file"
      echo "$dir/$file"
      return
    fi
    say "$name: $dir/$file has a wrong SHA256, ignored"
  done
  mkdir -p "$work/download"
  target=$work/download/$file
  local letter=${name:0:1}
  [ "${name:0:3}" != lib ] || letter=${name:0:4}
  for base in $(mirror_bases); do
    if download "$base/pool/main/$letter/$name/$file" "$target" && sha_ok "$target" "$file"; then
      say "$name: source from the system's package mirror"
      echo "$target"
      return
    fi
    rm -f "$target"
  done
  die "$file was found neither in SINTER_DEPS_DIR, ../shared/deps nor on the package mirror"
}

# Unpacks NAME, applies third_party/patches/NAME/*.patch, prints the folder.
unpack() {
  local name=$1 dir=$work/src/$1 tar patch
  tar=$(fetch "$name")
  rm -rf "$dir"
  mkdir -p "$dir"
  tar xf "$tar" -C "$dir"
  # Some archives have one top folder, some have none.
  if [ "$(find "$dir" -mindepth 1 -maxdepth 1 | wc -l)" = 1 ]; then
    local top
    top=$(find "$dir" -mindepth 1 -maxdepth 1)
    mv "$top" "$dir.top" && rmdir "$dir" && mv "$dir.top" "$dir"
  fi
  for patch in "$root/third_party/patches/$name"/*.patch; do
    [ -f "$patch" ] || continue
    say "$name: patch $(basename "$patch")"
    patch -d "$dir" -p1 -s <"$patch" || die "patch $patch does not apply"
  done
  echo "$dir"
}

# ---- building ------------------------------------------------------------------------------------------------

# set_target [TOOLCHAIN-FILE]: where the results go, and how CMake is called. $defines are the file's variables.
set_target() {
  toolchain=$1
  cmake_flags=(-DCMAKE_BUILD_TYPE=Release -DCMAKE_POSITION_INDEPENDENT_CODE=ON
    -DCMAKE_INSTALL_LIBDIR=lib -DBUILD_SHARED_LIBS=OFF -DCMAKE_POLICY_DEFAULT_CMP0063=NEW -Wno-dev)
  if command -v ninja >/dev/null; then cmake_flags+=(-G Ninja); else cmake_flags+=(-G 'Unix Makefiles'); fi
  if command -v ccache >/dev/null; then
    cmake_flags+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  fi
  if [ -n "$toolchain" ]; then
    [ -f "$toolchain" ] || die "the toolchain file '$toolchain' does not exist"
    toolchain=$(realpath "$toolchain")
    target=$(basename "$toolchain" .cmake)
    if [ "$(dirname "$toolchain")" != "$root/toolchains" ] || [ ${#defines[@]} -gt 0 ]; then
      target+=-$(printf '%s\n' "$toolchain" "${defines[@]}" | sha256sum | cut -c1-8)
    fi
    cmake_flags+=(-DCMAKE_TOOLCHAIN_FILE="$toolchain" "${defines[@]}")
  else
    target=$(uname -m)
    unset CMAKE_TOOLCHAIN_FILE
    # XNNPACK is measurably faster when built by g++ than by clang.
    ! command -v g++ >/dev/null || cmake_flags+=(-DCMAKE_C_COMPILER=gcc -DCMAKE_CXX_COMPILER=g++)
  fi
  prefix=$prefix_root/$target
}

# Fills `found` with the tools and flags that CMake has for the target. Asks again if the toolchain file or one beside it changes.
declare -A found
probe() {
  local dir=$work/build/$target/probe key name value
  key=$({
    printf '%s\n' "${cmake_flags[@]}"
    [ -z "$toolchain" ] || cat "$(dirname "$toolchain")"/*.cmake "$toolchain"
    cat "$root/third_party/probe/CMakeLists.txt"
  } | sha256sum | cut -d' ' -f1)
  if [ "$(cat "$dir/key" 2>/dev/null)" != "$key" ]; then
    rm -rf "$dir"
    mkdir -p "$dir"
    run_quiet "$dir/log.txt" cmake -S "$root/third_party/probe" -B "$dir" "${cmake_flags[@]}"
    echo "$key" >"$dir/key"
  fi
  found=()
  while IFS='=' read -r name value; do found[$name]=$value; done <"$dir/found.txt"
}

stamp_of() {  # NAME: what its result depends on
  local source sources=$1
  case $1 in
    xnnpack) sources='xnnpack pthreadpool cpuinfo fxdiv' ;;
    pthreadpool) sources='pthreadpool fxdiv' ;;
    sodium) sources=libsodium ;;
    fmt) sources=fmtlib ;;
    png) sources='libpng1.6 zlib' ;;
    jpeg) sources=libjpeg-turbo ;;
    zip) sources='libzip zlib' ;;
  esac
  {
    declare -f "build_$1" keep_reachable make_own hide_symbols windows no_stack_note set_target
    [ "$1" != xnnpack ] || { printf '%s\n' "$xnnpack_left_out"; xnnpack_roots; }
    case $1 in protobuf | fmt | zlib | png | jpeg | zip) declare -f quick_build quick_flags zlib_flags ;; esac
    [ "$1" != sodium ] || cat "$root"/third_party/libsodium/*
    [ "$1" != onednn ] || { printf '%s\n' "$onednn_left_out" "${onednn_hooks[@]}"; cat "$root"/third_party/onednn/*; }
    for source in $sources; do cat "$root/third_party/patches/$source"/*.patch 2>/dev/null || true; done
    for source in $sources; do want_sha "${tarball[$source]:-}"; done
    [ -z "$toolchain" ] || cat "$toolchain"
    # Programs of this tree (toolchains/zig) are the same in every checkout.
    for source in "${!found[@]}"; do printf '%s=%s\n' "$source" "${found[$source]//"$root"/}"; done | sort
    "${found[C_COMPILER]}" --version | head -1
  } | sha256sum | cut -d' ' -f1
}

run_quiet() {  # LOG COMMAND...
  local log=$1
  shift
  "$@" >>"$log" 2>&1 || {
    tail -40 "$log" >&2
    die "$target: '$*' failed, log in $log"
  }
}

cmake_build() {  # SRC BUILD TARGET [CMAKE-OPTION]...
  local src=$1 build=$2 target=$3
  shift 3
  mkdir -p "$build"
  : >"$build/log.txt"
  # What an earlier call has found, by a toolchain file that may be gone. Objects stay.
  rm -rf "$build/CMakeCache.txt" "$build"/CMakeFiles/[0-9]*
  run_quiet "$build/log.txt" cmake -S "$src" -B "$build" "${cmake_flags[@]}" "$@"
  run_quiet "$build/log.txt" cmake --build "$build" --target "$target" -j "$jobs"
}

. "$root/third_party/recipes.sh"
. "$root/third_party/recipes_converter.sh"

build() {  # NAME
  local stamp_file=$prefix/stamps/$1 stamp start=$SECONDS
  stamp=$(stamp_of "$1")
  if [ "$(cat "$stamp_file" 2>/dev/null)" = "$stamp" ]; then return; fi
  mkdir -p "$prefix/stamps" "$work/src" "$work/build/$target"
  rm -f "$stamp_file"
  "build_$1"
  echo "$stamp" >"$stamp_file"
  say "$1 for $target: $((SECONDS - start)) s"
}

toolchain='' defines=() only=() fetch_only='' where=''
while [ $# -gt 0 ]; do
  case $1 in
    --toolchain) toolchain=$2; shift 2 ;;
    --only) only+=("$2"); shift 2 ;;
    --fetch-only) fetch_only=1; shift ;;
    --source) fetch "$2"; exit ;;
    --where) where=1; shift ;;
    -D?*=*) defines+=("$1"); shift ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
done
export LC_ALL=C
# The same compiler cache entries for every prefix.
export CCACHE_BASEDIR=$work CCACHE_NOHASHDIR=1
if [ -n "$fetch_only" ]; then
  for name in "${!tarball[@]}"; do fetch "$name" >/dev/null; done
  exit 0
fi
set_target "$toolchain"
[ -z "$where" ] || { echo "$prefix"; exit 0; }

exec 9>"$prefix_root/.lock"
flock 9
mkdir -p "$work/build/$target"
probe
if [ ${#only[@]} = 0 ]; then
  only=(xxhash flatbuffers highway pthreadpool)
  case ${found[SYSTEM_PROCESSOR]} in x86_64 | AMD64 | aarch64 | arm64 | armv7* | armv8*) only+=(xnnpack) ;; esac
fi
case " ${only[*]} " in *' onednn '*)
  command -v clang++ >/dev/null || die 'oneDNN is built by clang++, which is missing (scripts/install.sh --fuzz installs it)' ;;
esac
for name in "${only[@]}"; do build "$name"; done
