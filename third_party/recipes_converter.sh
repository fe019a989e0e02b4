# Sourced by scripts/deps.sh: how the libraries are built that the converter alone links. Where the converter is built for this machine,
# Debian's packages have them; what ./release builds links these archives instead.

# What a message of a library names is its own folder, not that of the build.
quick_flags() { printf '%s' "-O2 -DNDEBUG -w -ffunction-sections -fdata-sections -ffile-prefix-map=$1=."; }

# quick_build NAME SRC TARGET ARCHIVE [CMAKE-OPTION]...: the target, and its archive (a path below the build folder) in $prefix/lib.
quick_build() {
  local build=$work/build/$target/$1 src=$2 what=$3 archive=$4 flags
  shift 4
  flags=$(quick_flags "${src%/cmake}")
  cmake_build "$src" "$build" "$what" -DCMAKE_C_FLAGS_RELEASE="$flags" -DCMAKE_CXX_FLAGS_RELEASE="$flags" \
    -DCMAKE_C_VISIBILITY_PRESET=hidden -DCMAKE_CXX_VISIBILITY_PRESET=hidden -DCMAKE_VISIBILITY_INLINES_HIDDEN=ON "$@"
  mkdir -p "$prefix/lib" "$prefix/include"
  cp "$build/$archive" "$prefix/lib/"
}

build_protobuf() {
  local src
  src=$(unpack protobuf)
  quick_build protobuf "$src" libprotobuf-lite libprotobuf-lite.a -Dprotobuf_BUILD_TESTS=OFF -Dprotobuf_BUILD_PROTOC_BINARIES=OFF \
    -Dprotobuf_WITH_ZLIB=OFF -DCMAKE_CXX_STANDARD=17
  (cd "$src/src" && find google \( -name '*.h' -o -name '*.inc' \) -exec cp --parents {} "$prefix/include/" \;)
}

build_fmt() {
  local src
  src=$(unpack fmtlib)
  quick_build fmt "$src" fmt libfmt.a -DFMT_TEST=OFF -DFMT_DOC=OFF
  cp -r "$src/include/fmt" "$prefix/include/"
}

build_zlib() {
  local src
  src=$(unpack zlib)
  mkdir -p "$src/win32"
  touch "$src/win32/zlib1.rc"  # which Debian's archive lacks, and CMake asks for
  quick_build zlib "$src" zlibstatic libz.a -DZLIB_BUILD_EXAMPLES=OFF
  cp "$src/zlib.h" "$work/build/$target/zlib/zconf.h" "$prefix/include/"
}

zlib_flags() { printf '%s\n' -DZLIB_LIBRARY="$prefix/lib/libz.a" -DZLIB_INCLUDE_DIR="$prefix/include"; }

build_png() {
  local src
  src=$(unpack libpng1.6)
  build zlib
  # shellcheck disable=SC2046  # a word a line
  quick_build png "$src" png_static libpng16.a -DPNG_SHARED=OFF -DPNG_TESTS=OFF -DPNG_TOOLS=OFF -DPNG_HARDWARE_OPTIMIZATIONS=OFF \
    $(zlib_flags)
  cp "$src/png.h" "$src/pngconf.h" "$work/build/$target/png/pnglibconf.h" "$prefix/include/"
}

# Without assembly, which would need nasm and gives the same pixels.
build_jpeg() {
  local src
  src=$(unpack libjpeg-turbo)
  quick_build jpeg "$src" jpeg-static libjpeg.a -DENABLE_SHARED=OFF -DWITH_SIMD=OFF -DWITH_TURBOJPEG=OFF -DBUILD=0
  cp "$src/jpeglib.h" "$src/jmorecfg.h" "$src/jerror.h" "$work/build/$target/jpeg/jconfig.h" "$prefix/include/"
}

build_zip() {
  local src
  src=$(unpack libzip)
  build zlib
  # shellcheck disable=SC2046  # a word a line
  quick_build zip "$src" zip lib/libzip.a -DENABLE_COMMONCRYPTO=OFF -DENABLE_GNUTLS=OFF -DENABLE_MBEDTLS=OFF -DENABLE_OPENSSL=OFF \
    -DENABLE_WINDOWS_CRYPTO=OFF -DENABLE_BZIP2=OFF -DENABLE_LZMA=OFF -DBUILD_TOOLS=OFF -DBUILD_REGRESS=OFF -DBUILD_EXAMPLES=OFF \
    -DBUILD_DOC=OFF $(zlib_flags)
  cp "$src/lib/zip.h" "$work/build/$target/zip/zipconf.h" "$prefix/include/"
}

# CLI11 and nlohmann/json are headers; copied, as xxhash.h is.
build_headers() {
  local name package
  mkdir -p "$prefix/include"
  for name in CLI:libcli11-dev nlohmann:nlohmann-json3-dev; do
    package=${name#*:} name=${name%:*}
    [ -d "/usr/include/$name" ] || die "/usr/include/$name is missing (package $package)"
    cp -r "/usr/include/$name" "$prefix/include/"
  done
}
