# Sourced by ./release: its parts. Each lays a package out in build/release-stage/NAME and packs it into build/release-files.
files=$root/build/release-files
stage=$root/build/release-stage

# NAME|what the file is
part_rows() {
  cat <<'ROWS'
wheel-x86_64|the Python package for 64-bit x86 Linux, any Python from 3.9 on
wheel-aarch64|the Python package for 64-bit ARM Linux
program-x86_64|the program, static: unpack and run
program-aarch64|the program for 64-bit ARM Linux, static
deb-x86_64|the program as a Debian package
deb-aarch64|the program as a Debian package for 64-bit ARM
device-x86_64|headers and libraries for applications on 64-bit x86 Linux, by g++ 12
device-aarch64|headers and libraries for 64-bit ARM Linux, by g++ 12
device-armv7|headers and libraries for 32-bit ARM Linux with NEON, by g++ 12
device-riscv64|headers and libraries for 64-bit RISC-V Linux, by g++ 12
device-x86_64-musl|headers and libraries for static programs on 64-bit x86 Linux, by zig
device-windows|headers and libraries for 64-bit Windows, by MinGW-w64
device-wasm|headers and libraries for WebAssembly with WASI, by zig
micro|sources and lists for a project on Cortex-M: CMake, make and Zephyr
ROWS
}

# names PREFIX: the parts with this name, or whose names begin with it and a dash.
names() { part_rows | sed 's/|.*//' | awk -v p="$1" 'p == "" || $0 == p || index($0, p "-") == 1'; }

# The files that have been built, as a table of Markdown.
size_table() {
  local name what file
  printf '| name | file | bytes |\n| --- | --- | ---: |\n'
  part_rows | while IFS='|' read -r name what; do
    file=$(cat "$stage/$name.made" 2>/dev/null) && [ -f "$files/$file" ] || continue
    # shellcheck disable=SC2016  # a code span
    printf '| %s | `%s` | %s |\n' "$name" "$file" "$(stat -c %s "$files/$file" | sed ':a; s/\B[0-9]\{3\}\>/,&/; ta')"
  done
}

version() { sed -n 's/^project(Sinter VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt; }

# toolchain_of PART: the name of its toolchain file; nothing for g++ on this machine.
toolchain_of() {
  case $1 in
    wheel-*) echo "${1#wheel-}-linux-glibc" ;;
    program-* | deb-*) echo "${1#*-}-linux-musl" ;;
    device-x86_64) ;;
    device-aarch64) echo aarch64-linux-gnu ;;
    device-armv7) echo armv7-linux-gnueabihf ;;
    device-riscv64) echo riscv64-linux-gnu ;;
    device-x86_64-musl) echo x86_64-linux-musl ;;
    device-windows) echo x86_64-w64-mingw32 ;;
    device-wasm) echo wasm32-wasi ;;
  esac
}

install_needs() {
  local options=(--build-only --release) name
  for name in "$@"; do
    case $name in
      device-riscv64 | device-windows) options+=(--cross-all) ;;
      device-aarch64 | device-armv7) options+=(--cross) ;;
    esac
  done
  scripts/install.sh "${options[@]}"
}

# configure PART [CMAKE-OPTION]...: its build folder, which parts with the same toolchain share, is then in $build.
configure() {
  local toolchain options=(-DCMAKE_BUILD_TYPE=Release -DSINTER_UNITY=ON -DSINTER_WERROR=OFF -DCMAKE_SKIP_RPATH=ON -DSINTER_BUILD_TESTS=OFF -DSINTER_SIGNATURES=ON
    -DSINTER_PYTHON=OFF -DSINTER_BUILD_CONVERTER=OFF)
  toolchain=$(toolchain_of "$1")
  build=build/release-${toolchain:-$(uname -m)-linux-gnu}
  if [ -n "$toolchain" ]; then
    options+=(--toolchain "$root/toolchains/$toolchain.cmake")
  else
    # The libsodium of deps.sh, which the package contains, and not this machine's.
    options+=(-DCMAKE_C_COMPILER=gcc -DCMAKE_CXX_COMPILER=g++ -DSINTER_LIBSODIUM=OFF)
  fi
  case $toolchain in
    *-musl | *-glibc) options+=(-DSINTER_BUILD_CONVERTER=ON) ;;
  esac
  shift
  quiet_unless_failed "$build-configure.log" cmake -G Ninja -B "$build" "${options[@]}" "$@"
}

# compile TARGET...
compile() { quiet_unless_failed "$build-build.log" cmake --build "$build" -j "$jobs" --target "$@"; }

# built_with OPTION: whether CMake's cache says ON.
built_with() { grep -q "^$1:BOOL=ON" "$build/CMakeCache.txt"; }

# licences FOLDER PACKAGE device|program|wheel: the texts and the list of what such a package of $build contains.
licences() {
  local parts=(FlatBuffers xxHash)
  ! built_with SINTER_SIMD || parts+=(Highway)
  ! built_with SINTER_XNNPACK || parts+=(XNNPACK cpuinfo)
  ! built_with SINTER_THREADS || parts+=(pthreadpool)
  ! built_with SINTER_THREADS || parts+=(FXdiv)
  ! built_with SINTER_SIGNATURES || parts+=(libsodium)
  if [ "$3" != device ]; then
    parts+=('Protocol Buffers' '{fmt}' CLI11 'JSON for Modern C++' libpng libjpeg-turbo zlib libzip 'libc++' 'libc++abi' libunwind
      "zig's compiler-rt")
  fi
  [ "$3" != program ] || parts+=(musl)
  python scripts/release/licences.py "$1" "$2" "$(version)" "${parts[@]}"
}

# pack FOLDER FILE: the file is checked for paths of this folder before.
pack() {
  if grep -rlF "$root" "$1"; then
    echo "release: these files of $2 name the folder in which they were built" >&2
    return 1
  fi
  python scripts/release/pack.py "$1" "$files/$2"
}

make_part() {
  local name=$1 folder=$stage/$1 build=''
  rm -rf "$folder" "$folder.made"
  mkdir -p "$folder"
  case $name in
    wheel-*) make_wheel "${name#wheel-}" ;;
    program-*) make_program "${name#program-}" ;;
    deb-*) make_deb "${name#deb-}" ;;
    device-*) make_device "${name#device-}" ;;
    micro) make_micro ;;
  esac
}

make_wheel() {  # PROCESSOR
  local file host tag=manylinux_2_17_$1.manylinux2014_$1 options=(-DSINTER_PYTHON=ON -DSINTER_INSTALL=OFF)
  if [ "$1" != "$(uname -m)" ]; then
    # The stub of the options comes from the library of this machine.
    name=wheel-$(uname -m)
    configure "$name" "${options[@]}"
    compile sinter_python
    name=wheel-$1 host=$root/$build/python/sinter_runtime/libsinter_python.so
    options+=(-DSINTER_PYTHON_HOST_LIBRARY="$host")
  fi
  configure "$name" "${options[@]}"
  compile sinter_python sinter_python_options
  licences "$folder.licences" sinter_runtime wheel
  mkdir "$folder/wheel"
  file=$(python scripts/release/wheel.py "$folder/wheel" "$tag" "$build/python/sinter_runtime" "$folder.licences")
  pack "$folder/wheel" "$file"
  python scripts/release/check_wheel.py "$files/$file"
  echo "$file" >"$folder.made"
}

make_program() {  # PROCESSOR
  local file top
  top=sinter-$(version)-linux-$1
  file=$top.tar.xz
  configure "$name"
  compile sinter
  cmake --install "$build" --component program --prefix "$folder/$top" >/dev/null
  licences "$folder/$top" sinter program
  pack "$folder/$top" "$file"
  echo "$file" >"$folder.made"
}

make_deb() {  # PROCESSOR
  local file
  configure "$name"
  compile sinter
  rm -rf "$build/licences"
  licences "$build/licences" sinter program
  quiet_unless_failed "$build-deb.log" cpack --config "$build/CPackConfig.cmake" -G DEB -B "$folder"
  file=$(cd "$folder" && ls -- *.deb)
  mv "$folder/$file" "$files/"
  echo "$file" >"$folder.made"
}

make_device() {  # TARGET
  local top=sinter-device-$(version)-$1
  configure "$name"
  compile all
  cmake --install "$build" --component Unspecified --prefix "$folder/$top" >/dev/null
  mkdir "$folder/$top/examples"
  cp -r examples/classify examples/classify_c examples/camera_c examples/custom_op "$folder/$top/examples/"
  rm -rf "$folder/$top/share/doc"
  licences "$folder/$top" sinter-device device
  pack "$folder/$top" "$top.tar.xz"
  echo "$top.tar.xz" >"$folder.made"
}

make_micro() {
  local top=sinter-micro-$(version)
  python scripts/release/micro.py "$folder/$top"
  python scripts/release/licences.py "$folder/$top" sinter-micro "$(version)" FlatBuffers xxHash
  pack "$folder" "$top.zip"
  echo "$top.zip" >"$folder.made"
}
