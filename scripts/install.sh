#!/usr/bin/env bash
# Installs what building and testing Sinter needs on Debian 12 (or a derivative); called by ./demo and ./test.
#
#   scripts/install.sh [--build-only] [--no-venv] [--cross] [--fuzz] [--zig] [-h]
#
#   --build-only  what building the program needs, nothing for tests (./demo)
#   --no-venv     without the Python packages that make test data
#   --fuzz        also clang with libFuzzer
#   --cross       also ARM cross compilers, their libraries and qemu
#   --cross-all   also cross compilers for RISC-V and Windows (./release)
#   --zig         also zig, for static programs and WebAssembly (docs/devices.md)
#   --release     also zig, and what packs and checks a wheel (./release)
#
# Steps, each skipped when done: apt packages (root or sudo), a venv in .venv (or SINTER_VENV) with the exact versions of
# scripts/requirements.txt (and of requirements-zig.txt and requirements-release.txt), third-party libraries (scripts/deps.sh).
# SINTER_SKIP_APT=1 leaves the system alone.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

usage() { sed -n '2,/^set /p' "$0" | sed '$d; s/^# \{0,1\}//'; }
say() { printf 'install: %s\n' "$*" >&2; }

venv=1 cross='' cross_all='' fuzz='' zig='' release='' tests=1
while [ $# -gt 0 ]; do
  case $1 in
    --build-only) venv='' tests='' ;;
    --no-venv) venv='' ;;
    --cross) cross=1 ;;
    --fuzz) fuzz=1 ;;
    --cross-all) cross=1 cross_all=1 ;;
    --zig) zig=1 ;;
    --release) zig=1 release=1 ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done

packages=(g++ cmake ninja-build ccache make patch xz-utils ca-certificates binutils python3 python3-venv
  protobuf-compiler libprotobuf-dev libfmt-dev libcli11-dev nlohmann-json3-dev zlib1g-dev libzip-dev libpng-dev libjpeg62-turbo-dev
  libxxhash-dev libsodium-dev)
[ -z "$tests" ] || packages+=(googletest libgtest-dev libgmock-dev libbenchmark-dev libboost-context-dev clang-format-14 lld
  zsh fish chromium advancecomp)
[ -z "$fuzz" ] || packages+=(clang-14 clang libclang-rt-14-dev llvm)
[ -z "$cross" ] || packages+=(g++-aarch64-linux-gnu g++-arm-linux-gnueabihf qemu-user
  gcc-arm-none-eabi libnewlib-arm-none-eabi libstdc++-arm-none-eabi-newlib qemu-system-arm)
[ -z "$release" ] || packages+=(advancecomp)
[ -z "$cross_all" ] || packages+=(g++-riscv64-linux-gnu g++-mingw-w64-x86-64-posix)

install_packages() {
  command -v dpkg-query >/dev/null || {
    say "this is not a Debian-like system; install by hand what corresponds to: ${packages[*]}"
    return 0
  }
  local missing=() p
  for p in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'install ok installed' || missing+=("$p")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "${SINTER_SKIP_APT:-}" = 1 ]; then
    say "SINTER_SKIP_APT=1, not installed: ${missing[*]}"
    return 0
  fi
  local sudo=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || {
      say "these packages are missing and neither root nor sudo is at hand: ${missing[*]}"
      exit 6
    }
    sudo=(sudo)
  fi
  say "apt: ${missing[*]}"
  local apt=("${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 -o Acquire::Retries=3)
  "${apt[@]}" update >&2
  "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null
}

# install_venv LIST: the packages of scripts/LIST.txt.
install_venv() {
  local dir=${SINTER_VENV:-$root/.venv} list=scripts/$1.txt stamp want
  stamp=$dir/sinter-$1
  want=$(sha256sum <"$list")
  if [ "$(cat "$stamp" 2>/dev/null)" = "$want" ]; then return 0; fi
  say "Python packages into $dir"
  # The system's interpreter, whose ABI the packages' wheels are sure to have; any other python3 if there is none.
  local python=/usr/bin/python3
  [ -x "$python" ] || python=python3
  [ -x "$dir/bin/python" ] || "$python" -m venv "$dir"
  "$dir/bin/python" -m pip install -q --disable-pip-version-check --retries 5 --only-binary :all: \
    -r "$list"
  printf '%s\n' "$want" >"$stamp"
}

install_packages
[ -z "$zig" ] || install_venv requirements-zig
[ -z "$release" ] || install_venv requirements-release
venv_job=''
if [ -n "$venv" ]; then
  install_venv requirements &  # It waits for the network while libraries compile.
  venv_job=$!
  trap 'kill "$venv_job" 2>/dev/null || true' EXIT
fi
scripts/deps.sh
[ -z "$tests" ] || scripts/deps.sh --only flatc
if [ -n "$cross" ]; then
  for target in aarch64-linux-gnu armv7-linux-gnueabihf; do scripts/deps.sh --toolchain "toolchains/$target.cmake"; done
fi
if [ -n "$venv_job" ]; then
  wait "$venv_job"
  trap - EXIT
fi
