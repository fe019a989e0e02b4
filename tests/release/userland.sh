#!/usr/bin/env bash
# A wheel, and if given the static program, on a fresh Debian without compilers, as its users meet them: installed by its own pip, then the
# commands that a reader tries first. Prints the seconds of each.
#
#     userland.sh SUITE WHEEL [PROGRAM.tar.xz]     bullseye (Debian 11) or bookworm (Debian 12); as root
#
# debootstrap makes the system in a temporary folder, or in SINTER_USERLANDS/SUITE, which is kept. It and pip need a package mirror and
# PyPI (for NumPy). Without debootstrap or root the exit code is 77.
set -euo pipefail
suite=$1 wheel=$(realpath "$2") program=${3:+$(realpath "$3")}
root=$(cd "$(dirname "$0")/../.." && pwd)
[ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null || { echo 'skipped: it needs root, and the package debootstrap'; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
system=${SINTER_USERLANDS:-$work}/$suite
if [ ! -e "$system/.made" ]; then
  debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates,xz-utils "$suite" "$system" >"$work/log" 2>&1 ||
    { tail -n 20 "$work/log"; exit 1; }
  touch "$system/.made"
fi
home=$system/root/try
rm -rf "$home"
mkdir "$home"
cp "$wheel" ${program:+"$program"} "$home/"
cp -r "$root/examples/digits" "$home/digits"
# The network and the certificates of this machine.
certificates=/etc/ssl/certs/ca-certificates.crt
cp /etc/resolv.conf "$system/etc/resolv.conf"
cp "${PIP_CERT:-$certificates}" "$system$certificates"

# inside COMMAND: in the new system, with the variables that name a proxy and a package index, and no others of this machine. What it
# mounts (a processor's properties are read there) is seen by the command alone.
inside() {
  # shellcheck disable=SC2016,SC2046  # a word for each variable
  env -i HOME=/root PATH=/root/try/venv/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 PIP_CERT=$certificates \
    $(env | grep -E '^(https?_proxy|no_proxy|HTTPS?_PROXY|NO_PROXY|PIP_INDEX_URL)=' || true) \
    unshare --mount bash -c 'mount -t proc proc "$1/proc" && mount -t sysfs -o ro sysfs "$1/sys" && exec chroot "$1" bash -c "cd /root/try && $2"' \
    bash "$system" "$1"
}
# timed COMMAND: prints it, its output and its seconds.
timed() {
  local start
  start=$(date +%s%N)
  printf '$ %s\n' "$1"
  inside "$1" >"$work/said" 2>&1 || { cat "$work/said"; echo "failed on $suite: $1"; exit 1; }
  tail -n 6 "$work/said"
  awk -v ns=$(($(date +%s%N) - start)) 'BEGIN { printf "  (%.1f s)\n", ns / 1e9 }'
}
says() { grep -Eq "$1" "$work/said" || { echo "failed on $suite: expected /$1/ in:"; cat "$work/said"; exit 1; }; }

! inside 'command -v cc gcc g++ clang cmake' || { echo "$suite has a compiler"; exit 1; }
echo "== $(inside '. /etc/os-release && echo "$PRETTY_NAME"'), $(inside 'python3 --version'), $(inside 'ldd --version 2>&1' | sed -n 1p)"
inside 'python3 digits/pictures.py pictures'
timed "python3 -m venv venv && pip install --quiet --disable-pip-version-check ./$(basename "$wheel")"
timed 'sinter convert digits/digits.onnx -o digits8.sinter --quantize int8 --calibrate pictures/calibrate --evaluate pictures/evaluate --scale 1/16 --labels pictures/classes.txt'
says '^accuracy +9[78]\.[0-9]+ % in float, 9[78]\.[0-9]+ % now'
timed 'sinter run digits8.sinter --inputs pictures/evaluate/7/215.png'
says '^ *7 0\.9'
timed 'sinter-runtime bench digits8.sinter'
says 'median'
cat >"$home/first.py" <<'PY'
import numpy as np
import sinter_runtime as sinter

data = np.load("digits/digits_eval.npz")
model = sinter.load("digits8.sinter")
right = sum(model.run({"image": image[None]})["probabilities"].argmax() == label for image, label in zip(data["image"], data["label"]))
print(right, "of", len(data["label"]), "right, on", sinter.__version__)
PY
timed 'python first.py'
says '^5[23][0-9] of 540 right'
code=0
inside 'sinter convert digits/digits.onnx -o /absent/digits.sinter' >"$work/said" 2>&1 || code=$?
[ $code = 6 ] || { echo "failed on $suite: a folder that is absent gives the exit code $code"; cat "$work/said"; exit 1; }
if [ -n "$program" ]; then
  timed "tar xf $(basename "$program")"
  top=$(basename "$program" .tar.xz)
  timed "$top/bin/sinter convert digits/digits.onnx -o program.sinter --quantize int8 --calibrate pictures/calibrate --scale 1/16"
  timed "$top/bin/sinter run program.sinter --inputs pictures/evaluate/7/215.png"
fi
