#!/usr/bin/env bash
# The installed package as other build systems use it: a shared library exports nothing of Sinter's or of the libraries that it links,
# programs of C alone link by CMake and by pkg-config, and a component that was not built is named.
#
#     package.sh CMAKE BUILD_FOLDER CXX_COMPILER [SINTER]    with the program: libsinter.so too, which exports the C API alone
set -euo pipefail
cmake=$1 build=$2 sinter=${4:-}
export CXX=$3
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$here/common.sh"
prefix="$work/a prefix"
quiet "$cmake" --install "$build" --prefix "$prefix"

quiet "$cmake" -S "$here/package" -B "$work/shared" -DKIND=shared -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$prefix"
quiet "$cmake" --build "$work/shared"
nm -D --defined-only "$work/shared/libshared.so" | awk '{ print $3 }' > "$work/exported"
[ "$(cat "$work/exported")" = exported ] || { cat "$work/exported"; echo 'the shared library exports these'; exit 1; }
nm "$work/shared/libshared.so" > "$work/symbols"
expect "$work/symbols" ' sinter_xnn_'

quiet "$cmake" -S "$here/package" -B "$work/c" -DKIND=c -DCMAKE_PREFIX_PATH="$prefix"
quiet "$cmake" --build "$work/c"
"$work/c/program" > "$work/said"
expect "$work/said" '^[2-9] backends$'

! "$cmake" -S "$here/package" -B "$work/component" -DKIND=component -DCMAKE_PREFIX_PATH="$prefix" > "$work/log" 2>&1 ||
  { echo 'a component that does not exist was found'; exit 1; }
tr '\n' ' ' < "$work/log" | tr -s ' ' > "$work/refusal"
expect "$work/refusal" 'this Sinter was built without the component npu; it has runtime, kernels, .*backends'

if [ -n "$sinter" ]; then
  "$sinter" convert "$root/examples/digits/digits.onnx" --target portable -o "$work/digits.sinter" --quiet
  quiet "$cmake" -S "$here/package" -B "$work/c_api" -DKIND=c_api -DCMAKE_PREFIX_PATH="$prefix"
  quiet "$cmake" --build "$work/c_api"
  "$work/c_api/c_api" "$work/digits.sinter" > "$work/opened"
  expect "$work/opened" '^[0-9.]+, 1 inputs$'
  library=$(find "$prefix/" -name libsinter.so)
  nm -D --defined-only "$library" | awk '$2 != "A" { sub("@.*", "", $3); print $3 }' | sort > "$work/exported"
  grep -oE 'SINTER_API [^(]*[ *]sinter_[a-z_]+\(' "$root/application/include/sinter/sinter_c.h" | grep -oE 'sinter_[a-z_]+\($' |
    tr -d '(' | sort > "$work/declared"
  diff "$work/declared" "$work/exported" || { echo 'libsinter.so exports (>) something else than sinter_c.h declares (<)'; exit 1; }
  readelf -d "$library" > "$work/dynamic"
  expect "$work/dynamic" 'SONAME.*\[libsinter\.so\.[0-9]+\.[0-9]+\]'
fi

if command -v pkg-config >/dev/null; then
  ln -s "$prefix" "$work/prefix"  # pkg-config's words are divided at spaces.
  export PKG_CONFIG_PATH
  PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix/" -name sinter.pc)")
  # shellcheck disable=SC2046  # flags are several words
  quiet cc "$here/package/program.c" $(pkg-config --static --cflags --libs sinter) -o "$work/by_pkg_config"
  "$work/by_pkg_config" > "$work/again"
  cmp "$work/said" "$work/again"
else
  echo 'pkg-config is missing: sinter.pc is not tried'
fi
cat "$work/said"
