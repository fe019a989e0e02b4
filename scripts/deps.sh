#!/usr/bin/env bash
# Builds the third-party libraries that Sinter links into a prefix, from source tarballs that are checked by hash.
#
#   scripts/deps.sh [--triple x86_64|aarch64|armv7]... [--only NAME]... [--fetch-only] [-h]
#
#   --only NAME   flatbuffers, xxhash, highway, xnnpack (these four if not given), flatc, onednn (x86_64; minutes)
#
# Prefix: ${SINTER_DEPS_PREFIX:-build/deps}/<triple>; tools that run here go to <prefix>/host/bin.
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

native_triple() {
  case $(uname -m) in
    x86_64) echo x86_64 ;;
    aarch64) echo aarch64 ;;
    armv7l) echo armv7 ;;
    *) die "no recipe for this machine's architecture ($(uname -m))" ;;
  esac
}

# ---- sources -------------------------------------------------------------------------------------------------

declare -A tarball=(
  [flatbuffers]='flatbuffers_23.5.26+dfsg.orig.tar.xz'
  [highway]='highway_1.3.0.orig.tar.gz'
  [pthreadpool]='pthreadpool_0.0~git20240616.560c60d.orig.tar.xz'
  [cpuinfo]='cpuinfo_0.0~git20250905.877328f.orig.tar.xz'
  [fxdiv]='fxdiv_0.0~git20200417.b408327.orig.tar.xz'
  [xnnpack]='xnnpack_0.0~git20241108.4ea82e5.orig.tar.xz'
  [onednn]='onednn_3.7.2+ds.orig.tar.xz'
)

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
  for base in $(mirror_bases); do
    if download "$base/pool/main/${name:0:1}/$name/$file" "$target" && sha_ok "$target" "$file"; then
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

set_triple() {
  triple=$1
  prefix=$prefix_root/$triple
  cross=''
  cmake_flags=(-G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_POSITION_INDEPENDENT_CODE=ON
    -DCMAKE_INSTALL_LIBDIR=lib -DBUILD_SHARED_LIBS=OFF -Wno-dev)
  if command -v ccache >/dev/null; then
    cmake_flags+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  fi
  if [ "$triple" != "$(native_triple)" ]; then
    case $triple in
      aarch64) cross=aarch64-linux-gnu- toolchain=aarch64-linux-gnu ;;
      armv7) cross=arm-linux-gnueabihf- toolchain=armv7-linux-gnueabihf ;;
      *) die "unknown or not cross-buildable triple '$triple'" ;;
    esac
    command -v "${cross}g++" >/dev/null || die "${cross}g++ is missing (scripts/install.sh --cross)"
    cmake_flags+=(-DCMAKE_TOOLCHAIN_FILE="$root/toolchains/$toolchain.cmake")
  else
    # XNNPACK is measurably faster when built by g++ than by clang.
    cmake_flags+=(-DCMAKE_C_COMPILER=gcc -DCMAKE_CXX_COMPILER=g++)
  fi
}

stamp_of() {  # NAME: what its result depends on
  local source sources=$1
  [ "$1" != xnnpack ] || sources='xnnpack pthreadpool cpuinfo fxdiv'
  {
    declare -f "build_$1" library keep_reachable rename_symbols set_triple
    [ "$1" != xnnpack ] || { printf '%s\n' "$xnnpack_left_out"; xnnpack_roots; }
    [ "$1" != onednn ] || { printf '%s\n' "$onednn_left_out" "${onednn_hooks[@]}"; cat "$root"/third_party/onednn/*; }
    for source in $sources; do cat "$root/third_party/patches/$source"/*.patch 2>/dev/null || true; done
    for source in $sources; do want_sha "${tarball[$source]:-}"; done
    [ -z "$cross" ] || cat "$root/toolchains/$toolchain.cmake"
    "${cross}gcc" --version | head -1
  } | sha256sum | cut -d' ' -f1
}

run_quiet() {  # LOG COMMAND...
  local log=$1
  shift
  "$@" >>"$log" 2>&1 || {
    tail -40 "$log" >&2
    die "$triple: '$*' failed, log in $log"
  }
}

cmake_build() {  # SRC BUILD TARGET [CMAKE-OPTION]...
  local src=$1 build=$2 target=$3
  shift 3
  mkdir -p "$build"
  : >"$build/log.txt"
  run_quiet "$build/log.txt" cmake -S "$src" -B "$build" "${cmake_flags[@]}" "$@"
  run_quiet "$build/log.txt" cmake --build "$build" --target "$target" -j "$jobs"
}

library() {  # OUT.a IN.a...: one archive out of several
  local out=$1 in
  shift
  rm -f "$out.tmp"
  {
    echo "CREATE $out.tmp"
    for in in "$@"; do echo "ADDLIB $in"; done
    echo SAVE
    echo END
  } | "${cross}ar" -M
  mv "$out.tmp" "$out"
}

build_flatbuffers() {
  local src
  src=$(unpack flatbuffers)
  mkdir -p "$prefix/include"
  rm -rf "$prefix/include/flatbuffers"
  cp -r "$src/include/flatbuffers" "$prefix/include/"
}

# The schema compiler, which runs on the machine that builds; only the test that the generated header is fresh needs it.
build_flatc() {
  local src build=$work/build/host/flatbuffers
  [ -z "$cross" ] || die "flatc runs on this machine; leave --triple $triple out"
  src=$(unpack flatbuffers)
  cmake_build "$src" "$build" flatc -DFLATBUFFERS_BUILD_TESTS=OFF -DFLATBUFFERS_BUILD_FLATHASH=OFF \
    -DFLATBUFFERS_BUILD_FLATLIB=OFF -DFLATBUFFERS_INSTALL=OFF -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS='-O0 -w'
  mkdir -p "$prefix_root/host/bin"
  install -m 755 "$build/flatc" "$prefix_root/host/bin/flatc"
}

build_highway() {
  local src build=$work/build/$triple/highway
  src=$(unpack highway)
  cmake_build "$src" "$build" install -DCMAKE_INSTALL_PREFIX="$prefix" -DHWY_ENABLE_CONTRIB=OFF \
    -DHWY_ENABLE_EXAMPLES=OFF -DHWY_ENABLE_TESTS=OFF -DHWY_CMAKE_ARM7="$([ "$triple" = armv7 ] && echo ON || echo OFF)" \
    -DCMAKE_CXX_FLAGS_RELEASE='-O2 -DNDEBUG -ffp-contract=off'
}

# xxHash is used as a header; copied so that cross builds find it without the host's include folder.
build_xxhash() {
  [ -f /usr/include/xxhash.h ] || die "xxhash.h is missing (package libxxhash-dev)"
  mkdir -p "$prefix/include"
  cp /usr/include/xxhash.h "$prefix/include/"
}

# Gives every global symbol of the archives the prefix sinter_, and writes the same renaming of what the public
# headers declare as macros, so that an application may link another XNNPACK beside Sinter.
rename_symbols() {  # MACRO-HEADER ARCHIVE... -- PUBLIC-HEADER...
  local macros=$1 archives=() all=$work/build/$triple/symbols.txt a
  shift
  while [ "$1" != -- ]; do archives+=("$1"); shift; done
  shift
  "${cross}nm" --defined-only -g -j "${archives[@]}" | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)$/\1/p' |
    grep -v '^__' | sort -u >"$all"
  sed 's/.*/& sinter_&/' "$all" >"$all.map"
  for a in "${archives[@]}"; do run_quiet "$all.log" "${cross}objcopy" --redefine-syms="$all.map" "$a"; done
  {
    echo '/* Made by scripts/deps.sh: the names under which Sinter links these libraries. */'
    grep -ohE '[A-Za-z_][A-Za-z0-9_]*' "$@" | sort -u | comm -12 - <(LC_ALL=C sort -u "$all") |
      sed 's/.*/#define & sinter_&/'
  } >"$macros"
}

# What platforms/ names of XNNPACK and cpuinfo: the roots of what is kept. Where an operator is named without its type, those
# for float16, float32 and int8 are meant.
xnnpack_roots() {
  grep -rohE '\b(xnn|cpuinfo)_[a-z0-9_]+\b' "$root/platforms" | sed 's/.*/&\n&_f16\n&_f32\n&_qs8_qc8w/' | sort -u
}

# Families of kernels that no operator of platforms/ can reach. keep_reachable fails where that is not so any more.
xnnpack_left_out='q[dp]8-.*|f32-qc[48]w-.*|qu8-i?gemm|qu8-dwconv|qu8-avgpool|qs8-dwconv|qs8-packw|.*-spmm|.*-dwconv2d-chw'
xnnpack_left_out+='|.*-conv-hwc2chw|.*-ibilinear-chw|[su]8-ibilinear|[su]8-maxpool|u8-lut32norm|u8-rmax|.*-rsum|.*-rdsum|.*-rminmax'
xnnpack_left_out+='|.*-vcmul|f32-vrelu|s32-f32-vcvt|.*-argmaxpool|.*-raddstoreexpminusmax|x8-packq|x32-unpool|x(8|32)-zip'

# keep_reachable OUT IN.a...: one archive with what the roots can reach, and nothing undefined that is XNNPACK's own.
keep_reachable() {
  local out=$1 kept=$1.o flags=() root_name missing
  shift
  while read -r root_name; do flags+=(-u "$root_name"); done < <(
    "${cross}nm" --defined-only -g -j "$@" | sort -u | comm -12 - <(xnnpack_roots))
  run_quiet "$out.log" "${cross}ld" -r --gc-sections "${flags[@]}" -o "$kept" --start-group "$@" --end-group
  run_quiet "$out.log" "${cross}objcopy" --strip-unneeded "$kept"  # names that only the dropped code used
  missing=$("${cross}nm" -u "$kept" | awk '$2 ~ /^(xnn|cpuinfo)_/ { print $2 }')
  [ -z "$missing" ] || die "left out of XNNPACK's build, but reachable (xnnpack_left_out): $missing"
  rm -f "$out"
  "${cross}ar" rcs "$out" "$kept"
}

build_xnnpack() {
  local src pool info div build=$work/build/$triple/xnnpack
  local flags='-O2 -DNDEBUG -ffp-contract=off -ffunction-sections -fdata-sections'
  src=$(unpack xnnpack) pool=$(unpack pthreadpool) info=$(unpack cpuinfo) div=$(unpack fxdiv)
  rm -f "$work/build/$triple"/symbols.txt.log
  cmake_build "$src" "$build" all -DXNNPACK_LIBRARY_TYPE=static -DCPUINFO_LIBRARY_TYPE=static \
    -DPTHREADPOOL_LIBRARY_TYPE=static -DCPUINFO_SOURCE_DIR="$info" -DPTHREADPOOL_SOURCE_DIR="$pool" \
    -DFXDIV_SOURCE_DIR="$div" -DXNNPACK_BUILD_TESTS=OFF -DXNNPACK_BUILD_BENCHMARKS=OFF \
    -DXNNPACK_BUILD_ALL_MICROKERNELS=OFF -DXNNPACK_ENABLE_KLEIDIAI=OFF \
    -DXNNPACK_ENABLE_AVX512AMX=OFF -DXNNPACK_ENABLE_AVX512FP16=OFF -DCPUINFO_BUILD_PKG_CONFIG=OFF \
    -DXNNPACK_LEFT_OUT="$xnnpack_left_out" -DXNNPACK_KERNELS_PER_SOURCE=24 -DCPUINFO_LOG_TO_STDIO=OFF -DCPUINFO_LOG_LEVEL=none -DXNNPACK_LOG_LEVEL=0 \
    -DCMAKE_C_FLAGS_RELEASE="$flags" -DCMAKE_CXX_FLAGS_RELEASE="$flags"
  mkdir -p "$prefix/lib" "$prefix/include"
  keep_reachable "$build/libsinter_xnnpack.a" "$build/libXNNPACK.a" "$build/libmicrokernels-prod.a" "$build/cpuinfo/libcpuinfo.a"
  library "$build/libsinter_pthreadpool.a" "$build/pthreadpool/libpthreadpool.a"
  rename_symbols "$build/sinter_deps_names.h" "$build/libsinter_xnnpack.a" "$build/libsinter_pthreadpool.a" -- \
    "$src/include/xnnpack.h" "$pool/include/pthreadpool.h" "$info/include/cpuinfo.h"
  cp "$src/include/xnnpack.h" "$pool/include/pthreadpool.h" "$info/include/cpuinfo.h" \
    "$build/sinter_deps_names.h" "$prefix/include/"
  cp "$build/libsinter_xnnpack.a" "$build/libsinter_pthreadpool.a" "$prefix/lib/"
}

# Sources of operations that platforms/onednn does not use. build_onednn fails where one of them is reachable.
onednn_left_out='/(rnn|lrn|prelu|shuffle)/[^/]*|/(ref|simple|nchw|nhwc|ncsp|nspc)_(batch_norm|group_norm|layer_norm|lrn|pool|prelu'
onednn_left_out+='|reduction|resampling|rnn|shuffle|softmax|deconv|concat|sum|binary)[^/]*|/ref_sparse_matmul|/jit_uni_sparse_matmul'
onednn_left_out+='|/jit_uni_(tbb_)?(batch_norm|group_norm|instance_norm|layer_norm|pool|i8i8_pool|reduction|resampling|softmax|xf16_sum)'
onednn_left_out+='[^/]*|/jit_uni_(binary|binary_kernel|eltwise|eltwise_int)|/jit_[^/]*deconv[^/]*|/jit_avx512_core_resampling'
onednn_left_out+='|/jit_brgemm_conv_bwd[^/]*|/cpu_reorder_(comp_(bf16|f32)_s8|regular_(f16|f32_(f16|fp8|s32|s8|u8)|fp4|fp8|s32|s4|u4|u8))'

# Functions that the library calls, and which of third_party/onednn/support.cc it calls instead.
onednn_hooks=(malloc=malloc free=free posix_memalign=posix_memalign getenv=getenv _Znwm=new _Znam=new_array _ZdlPv=delete
  _ZdaPv=delete_array _ZdlPvm=delete_sized _ZdaPvm=delete_array_sized)

# By clang with -O1, which is quicker to build: what decides the speed is generated at run time. 18 minutes of processor time.
build_onednn() {
  local src build=$work/build/$triple/onednn flags='-O1 -DNDEBUG -ffp-contract=off -ffunction-sections -fdata-sections'
  local hook hooks=() name roots=() missing kept
  [ "$triple" = x86_64 ] && [ -z "$cross" ] || die "oneDNN is built on and for x86_64"
  src=$(unpack onednn)
  find "$src/src" -regextype posix-extended -regex ".*($onednn_left_out)\.cpp" -delete
  cmake_build "$src" "$build" all -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ -DONEDNN_LIBRARY_TYPE=STATIC \
    -DONEDNN_BUILD_GRAPH=OFF -DONEDNN_BUILD_EXAMPLES=OFF -DONEDNN_BUILD_TESTS=OFF -DONEDNN_CPU_RUNTIME=THREADPOOL \
    -DONEDNN_GPU_RUNTIME=NONE -DONEDNN_ENABLE_WORKLOAD=INFERENCE \
    -DONEDNN_ENABLE_PRIMITIVE='CONVOLUTION;MATMUL;INNER_PRODUCT;REORDER' -DONEDNN_ENABLE_GEMM_KERNELS_ISA=NONE \
    -DONEDNN_ENABLE_JIT_PROFILING=OFF -DONEDNN_ENABLE_ITT_TASKS=OFF -DONEDNN_VERBOSE=OFF \
    -DONEDNN_ENABLE_PRIMITIVE_CACHE=OFF -DONEDNN_ARCH_OPT_FLAGS= -DCMAKE_DISABLE_FIND_PACKAGE_OpenMP=ON \
    -DCMAKE_DISABLE_FIND_PACKAGE_Git=ON -DCMAKE_C_FLAGS_RELEASE="$flags" -DCMAKE_CXX_FLAGS_RELEASE="$flags"
  kept=$build/libsinter_onednn.a.o
  while read -r name; do roots+=(-u "$name"); done < <(
    nm --defined-only -g -j "$build/src/libdnnl.a" | grep '^dnnl_' | sort -u)
  run_quiet "$build/log.txt" ld -r --gc-sections "${roots[@]}" -o "$kept" "$build/src/libdnnl.a"
  missing=$(nm -u -C "$kept" | grep 'dnnl::' || true)
  [ -z "$missing" ] || die "left out of oneDNN's build, but reachable (onednn_left_out): $missing"
  for hook in "${onednn_hooks[@]}"; do hooks+=(--redefine-sym "${hook%%=*}=sinter_onednn_${hook#*=}"); done
  run_quiet "$build/log.txt" objcopy --strip-unneeded "${hooks[@]}" "$kept"
  rm -f "$build/libsinter_onednn.a"
  ar rcs "$build/libsinter_onednn.a" "$kept"
  rename_symbols "$build/sinter_onednn_names.h" "$build/libsinter_onednn.a" -- "$src/include/oneapi/dnnl"/*.h
  mkdir -p "$prefix/lib" "$prefix/include/oneapi/dnnl"
  cp "$src/include/oneapi/dnnl"/*.h "$src/include/oneapi/dnnl/dnnl_threadpool_iface.hpp" \
    "$build/include/oneapi/dnnl"/*.h "$prefix/include/oneapi/dnnl/"
  cp "$build/sinter_onednn_names.h" "$prefix/include/"
  run_quiet "$build/log.txt" clang++ -std=c++20 -O2 -fPIC -Wall -Wextra -I"$root" -I"$prefix/include" \
    -include sinter_onednn_names.h -c "$root/third_party/onednn/support.cc" -o "$build/support.o"
  ar rcs "$build/libsinter_onednn.a" "$build/support.o"
  cp "$build/libsinter_onednn.a" "$prefix/lib/"
}

build() {  # NAME
  local stamp_file=$prefix/stamps/$1 stamp start=$SECONDS
  stamp=$(stamp_of "$1")
  if [ "$(cat "$stamp_file" 2>/dev/null)" = "$stamp" ]; then return; fi
  mkdir -p "$prefix/stamps" "$work/src" "$work/build/$triple"
  rm -f "$stamp_file"
  "build_$1"
  echo "$stamp" >"$stamp_file"
  say "$1 for $triple: $((SECONDS - start)) s"
}

triples=() only=() fetch_only=''
while [ $# -gt 0 ]; do
  case $1 in
    --triple) triples+=("$2"); shift 2 ;;
    --only) only+=("$2"); shift 2 ;;
    --fetch-only) fetch_only=1; shift ;;
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
[ ${#triples[@]} -gt 0 ] || triples=("$(native_triple)")
[ ${#only[@]} -gt 0 ] || only=(xxhash flatbuffers highway xnnpack)
case " ${only[*]} " in *' onednn '*)
  command -v clang++ >/dev/null || die 'oneDNN is built by clang++, which is missing (scripts/install.sh --fuzz installs it)' ;;
esac

exec 9>"$prefix_root/.lock"
flock 9
for t in "${triples[@]}"; do
  set_triple "$t"
  for name in "${only[@]}"; do build "$name"; done
done
