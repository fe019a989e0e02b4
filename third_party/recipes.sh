# Sourced by scripts/deps.sh: how each library is built. build_NAME fills $prefix; $found has the target's tools (probe there),
# $work is for sources and objects.

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
  [ -z "$toolchain" ] || die 'flatc runs on this machine; leave --toolchain out'
  src=$(unpack flatbuffers)
  cmake_build "$src" "$build" flatc -DFLATBUFFERS_BUILD_TESTS=OFF -DFLATBUFFERS_BUILD_FLATHASH=OFF \
    -DFLATBUFFERS_BUILD_FLATLIB=OFF -DFLATBUFFERS_INSTALL=OFF -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS='-O0 -w'
  mkdir -p "$prefix_root/host/bin"
  install -m 755 "$build/flatc" "$prefix_root/host/bin/flatc"
}

build_highway() {
  local src build=$work/build/$target/highway arm7=OFF
  src=$(unpack highway)
  case ${found[SYSTEM_PROCESSOR]} in armv7*) arm7=ON ;; esac
  cmake_build "$src" "$build" install -DCMAKE_INSTALL_PREFIX="$prefix" -DHWY_ENABLE_CONTRIB=OFF \
    -DHWY_ENABLE_EXAMPLES=OFF -DHWY_ENABLE_TESTS=OFF -DHWY_CMAKE_ARM7=$arm7 -DHWY_CMAKE_RVV=OFF \
    -DCMAKE_CXX_VISIBILITY_PRESET=hidden -DCMAKE_VISIBILITY_INLINES_HIDDEN=ON \
    -DCMAKE_CXX_FLAGS_RELEASE='-O2 -DNDEBUG -ffp-contract=off -DHWY_DISABLE_PCLMUL_AES'  # as platforms/simd/isa/config.h
}

# xxHash is used as a header; copied so that cross builds find it without the host's include folder.
build_xxhash() {
  [ -f /usr/include/xxhash.h ] || die "xxhash.h is missing (package libxxhash-dev)"
  mkdir -p "$prefix/include"
  cp /usr/include/xxhash.h "$prefix/include/"
}

# Windows' objects state neither visibility nor what the stack may do; its shared libraries export what they name.
windows() { [ "${found[SYSTEM_NAME]}" = Windows ]; }
no_stack_note() { windows || echo '.section .note.GNU-stack,"",%progbits'; }

# hide_symbols OBJECT FOLDER LOG: a linker gives a symbol the narrowest visibility that any of its objects states.
hide_symbols() {
  ! windows || return 0
  { "${found[NM]}" --defined-only -g -j "$1" | sed 's/.*/.hidden &/'; no_stack_note; } >"$2/hidden.s"
  # shellcheck disable=SC2046  # flags are several words
  run_quiet "$3" "${found[C_COMPILER]}" $(compiler_flags) -c "$2/hidden.s" -o "$2/hidden.o"
  run_quiet "$3" "${found[LINKER]}" -r -o "$1.hidden" "$1" "$2/hidden.o"
  mv "$1.hidden" "$1"
}

# make_own NAME OBJECT BUILD PUBLIC-HEADER...: turns a relocatable object into libsinter_NAME.a. Its global symbols get the prefix
# sinter_, so that an application may link another such library beside Sinter's, and are hidden, so that a shared library which
# links the archive does not export them. sinter_NAME_names.h renames what the public headers declare in the same way.
make_own() {
  local name=$1 object=$2 build=$3 all=$3/symbols.txt
  shift 3
  "${found[NM]}" --defined-only -g -j "$object" | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)$/\1/p' | grep -v '^__' | sort -u >"$all"
  # pthreadpool's functions, which XNNPACK calls, become platforms/xnnpack/parallel.cc's.
  { sed 's/.*/& sinter_&/' "$all"; "${found[NM]}" -u "$object" | sed -n 's/^ *U pthreadpool_\(.*\)/pthreadpool_\1 sinter_xnnpack_\1/p'; } >"$all.map"
  run_quiet "$all.log" "${found[OBJCOPY]}" --redefine-syms="$all.map" "$object"
  hide_symbols "$object" "$build" "$all.log"
  mv "$object" "$build/sinter_$name.o"
  rm -f "$build/libsinter_$name.a"
  "${found[AR]}" rcs "$build/libsinter_$name.a" "$build/sinter_$name.o"
  {
    echo '/* Made by scripts/deps.sh: the names under which Sinter links this library. */'
    grep -ohE '[A-Za-z_][A-Za-z0-9_]*' "$@" | sort -u | comm -12 - "$all" | sed 's/.*/#define & sinter_&/'
  } >"$build/sinter_${name}_names.h"
  mkdir -p "$prefix/lib" "$prefix/include"
  cp "$build/libsinter_$name.a" "$prefix/lib/"
  cp "$build/sinter_${name}_names.h" "$prefix/include/"
}

# What CMake passes to the target's C compiler beside its own flags.
compiler_flags() {
  printf '%s ' "${found[C_FLAGS]}"
  [ -z "${found[SYSROOT]}" ] || printf -- '--sysroot=%s ' "${found[SYSROOT]}"
  [ -z "${found[C_COMPILER_TARGET]}" ] || printf -- '--target=%s ' "${found[C_COMPILER_TARGET]}"
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

# keep_reachable OUT.o IN.a...: one object with what the roots can reach, and nothing undefined that is XNNPACK's own.
keep_reachable() {
  local kept=$1 flags=() root_name missing
  shift
  while read -r root_name; do flags+=(-u "$root_name"); done < <(
    "${found[NM]}" --defined-only -g -j "$@" | sort -u | comm -12 - <(xnnpack_roots))
  # An object in front, from which LLVM's linker takes the kind of the target.
  no_stack_note >"$kept.s"
  # shellcheck disable=SC2046  # flags are several words
  run_quiet "$kept.log" "${found[C_COMPILER]}" $(compiler_flags) -c "$kept.s" -o "$kept.first"
  run_quiet "$kept.log" "${found[LINKER]}" -r --gc-sections "${flags[@]}" -o "$kept" "$kept.first" --start-group "$@" --end-group
  run_quiet "$kept.log" "${found[OBJCOPY]}" --strip-unneeded "$kept"  # names that only the dropped code used
  missing=$("${found[NM]}" -u "$kept" | awk '$2 ~ /^(xnn|cpuinfo)_/ { print $2 }')
  [ -z "$missing" ] || die "left out of XNNPACK's build, but reachable (xnnpack_left_out): $missing"
}

kernel_flags='-O2 -DNDEBUG -ffp-contract=off -ffunction-sections -fdata-sections'

build_xnnpack() {
  local src pool info div build=$work/build/$target/xnnpack
  src=$(unpack xnnpack) pool=$(unpack pthreadpool) info=$(unpack cpuinfo) div=$(unpack fxdiv)
  cmake_build "$src" "$build" all -DXNNPACK_LIBRARY_TYPE=static -DCPUINFO_LIBRARY_TYPE=static \
    -DPTHREADPOOL_LIBRARY_TYPE=static -DCPUINFO_SOURCE_DIR="$info" -DPTHREADPOOL_SOURCE_DIR="$pool" \
    -DFXDIV_SOURCE_DIR="$div" -DXNNPACK_BUILD_TESTS=OFF -DXNNPACK_BUILD_BENCHMARKS=OFF \
    -DXNNPACK_BUILD_ALL_MICROKERNELS=OFF -DXNNPACK_ENABLE_KLEIDIAI=OFF \
    -DXNNPACK_ENABLE_AVX512AMX=OFF -DXNNPACK_ENABLE_AVX512FP16=OFF -DXNNPACK_ENABLE_AVXVNNIINT8=OFF -DCPUINFO_BUILD_PKG_CONFIG=OFF \
    -DXNNPACK_LEFT_OUT="$xnnpack_left_out" -DXNNPACK_KERNELS_PER_SOURCE=24 -DCPUINFO_LOG_TO_STDIO=OFF -DCPUINFO_LOG_LEVEL=none -DXNNPACK_LOG_LEVEL=0 \
    -DCMAKE_C_FLAGS_RELEASE="$kernel_flags" -DCMAKE_CXX_FLAGS_RELEASE="$kernel_flags"
  keep_reachable "$build/kept.o" "$build/libXNNPACK.a" "$build/libmicrokernels-prod.a" "$build/cpuinfo/libcpuinfo.a"
  make_own xnnpack "$build/kept.o" "$build" "$src/include/xnnpack.h" "$info/include/cpuinfo.h"
  cp "$src/include/xnnpack.h" "$info/include/cpuinfo.h" "$pool/include/pthreadpool.h" "$prefix/include/"
}

build_pthreadpool() {
  local pool div build=$work/build/$target/pthreadpool
  pool=$(unpack pthreadpool) div=$(unpack fxdiv)
  cmake_build "$pool" "$build" pthreadpool -DPTHREADPOOL_LIBRARY_TYPE=static -DFXDIV_SOURCE_DIR="$div" \
    -DPTHREADPOOL_BUILD_TESTS=OFF -DPTHREADPOOL_BUILD_BENCHMARKS=OFF -DCMAKE_C_FLAGS_RELEASE="$kernel_flags"
  run_quiet "$build/log.txt" "${found[LINKER]}" -r -o "$build/kept.o" --whole-archive "$build/libpthreadpool.a"
  make_own pthreadpool "$build/kept.o" "$build" "$pool/include/pthreadpool.h"
  cp "$pool/include/pthreadpool.h" "$prefix/include/"
}

# For targets whose sysroot has no libsodium.
build_sodium() {
  local src
  src=$(unpack libsodium)
  cp "$root/third_party/libsodium/CMakeLists.txt" "$src/"
  cmake_build "$src" "$work/build/$target/sodium" install -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_C_VISIBILITY_PRESET=hidden
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
  local src build=$work/build/$target/onednn flags='-O1 -DNDEBUG -ffp-contract=off -ffunction-sections -fdata-sections'
  local hook hooks=() name roots=() missing kept
  [ "$target" = x86_64 ] || die 'oneDNN is built on and for x86_64'
  src=$(unpack onednn)
  find "$src/src" -regextype posix-extended -regex ".*($onednn_left_out)\.cpp" -delete
  cmake_build "$src" "$build" all -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ -DONEDNN_LIBRARY_TYPE=STATIC \
    -DONEDNN_BUILD_GRAPH=OFF -DONEDNN_BUILD_EXAMPLES=OFF -DONEDNN_BUILD_TESTS=OFF -DONEDNN_CPU_RUNTIME=THREADPOOL \
    -DONEDNN_GPU_RUNTIME=NONE -DONEDNN_ENABLE_WORKLOAD=INFERENCE \
    -DONEDNN_ENABLE_PRIMITIVE='CONVOLUTION;MATMUL;INNER_PRODUCT;REORDER' -DONEDNN_ENABLE_GEMM_KERNELS_ISA=NONE \
    -DONEDNN_ENABLE_JIT_PROFILING=OFF -DONEDNN_ENABLE_ITT_TASKS=OFF -DONEDNN_VERBOSE=OFF \
    -DONEDNN_ENABLE_PRIMITIVE_CACHE=OFF -DONEDNN_ARCH_OPT_FLAGS= -DCMAKE_DISABLE_FIND_PACKAGE_OpenMP=ON \
    -DCMAKE_DISABLE_FIND_PACKAGE_Git=ON -DCMAKE_C_FLAGS_RELEASE="$flags" -DCMAKE_CXX_FLAGS_RELEASE="$flags"
  kept=$build/kept.o
  while read -r name; do roots+=(-u "$name"); done < <(
    nm --defined-only -g -j "$build/src/libdnnl.a" | grep '^dnnl_' | sort -u)
  run_quiet "$build/log.txt" ld -r --gc-sections "${roots[@]}" -o "$kept" "$build/src/libdnnl.a"
  missing=$(nm -u -C "$kept" | grep 'dnnl::' || true)
  [ -z "$missing" ] || die "left out of oneDNN's build, but reachable (onednn_left_out): $missing"
  for hook in "${onednn_hooks[@]}"; do hooks+=(--redefine-sym "${hook%%=*}=sinter_onednn_${hook#*=}"); done
  run_quiet "$build/log.txt" objcopy --strip-unneeded "${hooks[@]}" "$kept"
  mkdir -p "$prefix/include/oneapi/dnnl"
  make_own onednn "$kept" "$build" "$src/include/oneapi/dnnl"/*.h
  cp "$src/include/oneapi/dnnl"/*.h "$src/include/oneapi/dnnl/dnnl_threadpool_iface.hpp" \
    "$build/include/oneapi/dnnl"/*.h "$prefix/include/oneapi/dnnl/"
  run_quiet "$build/log.txt" clang++ -std=c++20 -O2 -fPIC -fvisibility=hidden -Wall -Wextra -I"$root" -I"$prefix/include" \
    -include sinter_onednn_names.h -c "$root/third_party/onednn/support.cc" -o "$build/support.o"
  ar rcs "$build/libsinter_onednn.a" "$build/support.o"
  cp "$build/libsinter_onednn.a" "$prefix/lib/"
}
