# Sourced by the scripts of this folder, which set $root and $work.

# quiet COMMAND...: its output only if it fails.
quiet() { "$@" > "$work/log" 2>&1 || { cat "$work/log"; echo "failed: $*"; exit 1; }; }
# expect FILE REGEX
expect() { grep -Eq "$2" "$1" || { echo "expected /$2/ in:"; cat "$1"; exit 1; }; }
# without PROGRAM REGEX: no symbol, defined or not, has such a name.
without() {
  nm "$1" > "$work/symbols"
  [ "$(wc -l < "$work/symbols")" -gt 100 ] || { echo "$1 has no symbols"; exit 1; }
  ! grep -E "$2" "$work/symbols" || { echo "these are linked into $1"; exit 1; }
}
# copy_tree FOLDER: what a build of the device side reads.
copy_tree() {
  mkdir -p "$1"
  (cd "$root" && cp -r CMakeLists.txt LICENSE NOTICE application bench cmake platforms runtime schemas scripts third_party "$1/")
}
# share_objects COPY: its builds get the objects that builds of the tree have left in the compiler cache. The cache compares paths
# below CCACHE_BASEDIR by what follows it: the libraries are below the copy if they are below the tree.
share_objects() {
  local deps=${SINTER_DEPS_PREFIX:-$root/build/deps}
  if [ "$deps" = "$root/build/deps" ]; then
    mkdir -p "$1/build" "$deps"
    ln -s "$deps" "$1/build/deps"
    deps=$1/build/deps
  fi
  export SINTER_DEPS_PREFIX=$deps CCACHE_BASEDIR=$1 CCACHE_NOHASHDIR=1
}
