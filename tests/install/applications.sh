#!/usr/bin/env bash
# Installs a build into a fresh prefix, builds examples/classify and the README's C++ example against nothing but that
# prefix, and runs both on the digits model. Also: the arena size that classify reports is exactly what it needs.
#
#     applications.sh CMAKE BUILD_FOLDER SINTER CXX_COMPILER PYTHON
set -euo pipefail
cmake=$1 build=$2 sinter=$3 python=$5
export CXX=$4
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix

. "$here/common.sh"
# application NAME SOURCE_FOLDER [CMAKE_OPTION]...
application() {
  local name=$1 source=$2
  shift 2
  quiet "$cmake" -S "$source" -B "$work/$name" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release "$@"
  quiet "$cmake" --build "$work/$name"
}
# classify MODEL: its output goes to $work/said, its exit code to $code.
classify() {
  code=0
  "$work/classify/classify" "$1" > "$work/said" 2>&1 || code=$?
}

quiet "$cmake" --install "$build" --prefix "$prefix"
strays=$(find "$prefix/include" -mindepth 1 -maxdepth 1 ! -name sinter)
[ -z "$strays" ] || { echo "headers outside include/sinter: $strays"; exit 1; }
for text in LICENSE NOTICE; do
  [ -n "$(find "$prefix/share/doc" -name $text -size +1k)" ] || { echo "$text is not installed"; exit 1; }
done
"$sinter" convert "$root/examples/digits/digits.onnx" -o "$work/digits.sinter" --quiet

# As a user would: build with too little, read how much is needed, build with that.
bytes=64
application classify "$root/examples/classify" -DARENA_BYTES=$bytes
classify "$work/digits.sinter"
for _ in 1 2; do
  [ $code -eq 3 ] || break
  expect "$work/said" 'ARENA_BYTES=[0-9]+$'
  bytes=$(sed -n 's/.*ARENA_BYTES=//p' "$work/said")
  application classify "$root/examples/classify" -DARENA_BYTES="$bytes"
  classify "$work/digits.sinter"
done
expect "$work/said" '^class 2, probability 0\.9.*, 0 steps fall back$'
cat "$work/said"
head -c 100 "$work/digits.sinter" > "$work/cut.sinter"
classify "$work/cut.sinter"
[ $code -eq 1 ] || { echo "a cut file: exit code $code"; cat "$work/said"; exit 1; }
application classify "$root/examples/classify" -DARENA_BYTES=$((bytes - 1))
classify "$work/digits.sinter"
[ $code -eq 3 ] || { echo "one byte less: exit code $code"; cat "$work/said"; exit 1; }

# A model in a C array, in the memory that its header states, with the kernels that it needs alone.
"$sinter" convert "$root/examples/digits/digits.onnx" --target portable -o "$work/portable.sinter" --quiet
"$sinter" embed "$work/portable.sinter" -o "$work/net" --quiet
application embedded "$here/embedded" -DEMBEDDED="$work/net"
"$work/embedded/embedded" "$work/portable.sinter" > "$work/said" || { cat "$work/said"; exit 1; }
expect "$work/said" '^the embedded model gives the bits of the file$'
cat "$work/said"

# The same in C.
application classify_c "$root/examples/classify_c"
"$work/classify_c/classify_c" "$work/digits.sinter" > "$work/said"
expect "$work/said" '^class 2, probability 0\.9'
code=0
"$work/classify_c/classify_c" "$work/cut.sinter" > "$work/said" 2>&1 || code=$?
[ $code -eq 1 ] || { echo "classify_c with a cut file: exit code $code"; cat "$work/said"; exit 1; }
application classify_c "$root/examples/classify_c" -DARENA_BYTES=4096
code=0
"$work/classify_c/classify_c" "$work/digits.sinter" > "$work/said" 2>&1 || code=$?
[ $code -eq 3 ] || { echo "classify_c with too little memory: exit code $code"; cat "$work/said"; exit 1; }
expect "$work/said" '[0-9]+ bytes of memory are needed but [0-9]+ were given|needs [0-9]+ bytes'

# A camera: bytes go from the frame to the model's input, and the classes are those of `sinter run`.
"$python" "$here/frames.py" frames "$root/examples/digits/digits_eval.npz" "$work/frames"
"$sinter" convert "$root/examples/digits/digits.onnx" -o "$work/camera.sinter" --quiet --input-type uint8 --scale 16/255
"$sinter" run "$work/camera.sinter" --inputs "$work/frames/frames.npz" --each --outputs "$work/out.npz" --quiet
"$python" "$here/frames.py" classes "$work/out.npz" > "$work/classes"
application camera_c "$root/examples/camera_c"
"$work/camera_c/camera_c" "$work/camera.sinter" "$work"/frames/*.pgm > "$work/said"
sed -n 's/.*class \([0-9]*\),.*/\1/p' "$work/said" | cmp - "$work/classes"
[ "$(sort -u "$work/classes" | wc -l)" -ge 5 ] || { echo 'the frames are of too few classes'; exit 1; }
code=0
"$work/camera_c/camera_c" "$work/digits.sinter" "$work"/frames/00.pgm > "$work/said" 2>&1 || code=$?
[ $code -eq 1 ] || { echo "camera_c with a float model: exit code $code"; cat "$work/said"; exit 1; }
expect "$work/said" 'does not take bytes'
printf 'P5 9 9 255\n' > "$work/frames/bad.pgm"
"$work/camera_c/camera_c" "$work/camera.sinter" "$work/frames/bad.pgm" > "$work/said" 2>&1 && exit 1
expect "$work/said" "does not have the model's size"

# A custom operator: its library in the converter, the same source in the application. y = 2 * sin(0.5), four times.
application custom_op "$root/examples/custom_op"
"$python" "$root/examples/custom_op/make_model.py" "$work/wave.onnx"
wave=$work/custom_op/wave.so
"$sinter" convert "$work/wave.onnx" -o "$work/wave.sinter" --quiet --custom-ops "$wave"
"$work/custom_op/custom_op" "$work/wave.sinter" > "$work/said"
[ "$(sort -u "$work/said")" = 0.958851 ] && [ "$(wc -l < "$work/said")" -eq 4 ] || { echo "custom_op:"; cat "$work/said"; exit 1; }
"$sinter" compare "$work/wave.onnx" "$work/wave.sinter" --random 1 --quiet --custom-ops "$wave"
"$sinter" run "$work/wave.sinter" --random 1 --custom-ops "$wave" > "$work/said"
expect "$work/said" '^y '
# Without the library the model is refused by the operator's name.
(cd "$work" && ! "$sinter" run wave.sinter --random 1) > "$work/said" 2>&1
expect "$work/said" 'com\.example\.Wave'

# A decoder that keeps its context: pieces of a prompt and single tokens give one text, and wrong use is refused.
model=$root/examples/chat/model
application chat "$root/examples/chat"
"$sinter" convert "$model/chat_gptq.onnx" -o "$work/chat.sinter" --quiet --max-context 64 --shapes "sequence_length=8; sequence_length=1"
prompt='And it came to pass, when the king heard it, that he'
"$work/chat/chat" "$work/chat.sinter" "$model/tokens.txt" --prompt "$prompt" --tokens 12 --temperature 0 > "$work/words" 2> "$work/said"
grep -q "^$prompt [a-z]" "$work/words" || { echo 'chat:'; cat "$work/words"; exit 1; }
expect "$work/said" '^pieces of prompts: 8 tokens'
"$sinter" convert "$model/chat_gptq.onnx" -o "$work/chat1.sinter" --quiet --max-context 64 --shape input_ids=1,1
"$work/chat/chat" "$work/chat1.sinter" "$model/tokens.txt" --prompt "$prompt" --tokens 12 --temperature 0 2> /dev/null | cmp - "$work/words"
printf '%s\n%s\n' "$prompt" "$prompt" | "$work/chat/chat" "$work/chat.sinter" "$model/tokens.txt" --tokens 12 --temperature 0 2> /dev/null > "$work/twice"
cat "$work/words" "$work/words" | cmp - "$work/twice"
code=0
"$work/chat/chat" "$work/chat.sinter" "$model/tokens.txt" --prompt "$prompt" --tokens 100 --temperature 0 > /dev/null 2> "$work/said" || code=$?
[ $code -eq 1 ] || { echo "a text longer than the context: exit code $code"; cat "$work/said"; exit 1; }
expect "$work/said" 'outside the planned 0 to 64'
for wrong in '--tokens x' '--nothing 1' '--tokens'; do
  code=0
  # shellcheck disable=SC2086
  "$work/chat/chat" "$work/chat.sinter" "$model/tokens.txt" $wrong > /dev/null 2> "$work/said" < /dev/null || code=$?
  [ $code -eq 2 ] || { echo "chat $wrong: exit code $code"; exit 1; }
done
code=0
"$work/chat/chat" "$work/digits.sinter" "$model/tokens.txt" --prompt a > /dev/null 2> "$work/said" || code=$?
[ $code -eq 1 ] || { echo "chat with another model: exit code $code"; cat "$work/said"; exit 1; }

# Pictures from noise: the network of the demo reads nine of the ten digits, a picture depends on its seed alone, and wrong use is
# refused.
application diffusion "$root/examples/diffusion"
states=(--state latent_next=latent --state step_next=step)
"$sinter" convert "$root/examples/diffusion/model/diffusion.onnx" -o "$work/diffusion.sinter" --quiet "${states[@]}"
mkdir "$work/drawn"
for digit in 0 1 2 3 4 5 6 7 8 9; do
  "$work/diffusion/diffusion" "$work/diffusion.sinter" "$work/drawn/$digit.pgm" --label $digit --seed $digit --enlarge 1 2> "$work/said"
done
expect "$work/said" '^20 steps of '
"$work/camera_c/camera_c" "$work/camera.sinter" "$work"/drawn/*.pgm > "$work/said"
read_back=$(sed -n 's,.*/\([0-9]\)\.pgm.*class \1.*,\1,p' "$work/said" | wc -l)
[ "$read_back" -ge 9 ] || { echo 'diffusion:'; cat "$work/said"; exit 1; }
"$work/diffusion/diffusion" "$work/diffusion.sinter" "$work/row.pgm" --count 4 --seed 0 --enlarge 1 2> /dev/null
"$python" "$here/frames.py" beside "$work/row.pgm" "$work"/drawn/[0-3].pgm
for wrong in '--label 10' '--steps 0' '--guidance x' '--nothing 1' '--seed' 'third'; do
  code=0
  # shellcheck disable=SC2086
  "$work/diffusion/diffusion" "$work/diffusion.sinter" "$work/row.pgm" $wrong 2> "$work/said" || code=$?
  [ $code -eq 2 ] || { echo "diffusion $wrong: exit code $code"; exit 1; }
done
refused() {  # WHAT TEXT ARGUMENT...: the program's exit code is 1, and it states the reason
  local what=$1 text=$2
  shift 2
  code=0
  "$work/diffusion/diffusion" "$@" 2> "$work/said" || code=$?
  [ $code -eq 1 ] || { echo "diffusion with $what: exit code $code"; cat "$work/said"; exit 1; }
  expect "$work/said" "$text"
}
refused 'another model' 'does not keep the float32 latent' "$work/digits.sinter" "$work/row.pgm"
refused 'a cut file' '^diffusion: ' "$work/cut.sinter" "$work/row.pgm"
refused 'no folder' 'cannot be written' "$work/diffusion.sinter" "$work/absent/row.pgm" --steps 1

# The examples of README.md (Runner) and docs/application.md (C, and Session): the texts between ``` and ```, called by
# readme_main.cc and documented.c.
# example FILE LANGUAGE TEXT: the block of that language which has the text.
example() {
  awk -v language="\`\`\`$2" -v text="$3" '
    $0 == language { block = ""; inside = 1; next }
    /^```$/ && inside { if (index(block, text)) printf "%s", block; inside = 0 }
    inside { block = block $0 "\n" }' "$1"
}
mkdir "$work/readme-source"
example "$root/README.md" cpp 'best_class' > "$work/readme-source/runner_example.h"
example "$root/docs/application.md" cpp 'sinter::Status classify' > "$work/readme-source/session_example.h"
example "$root/docs/application.md" c 'sinter_model_open' > "$work/readme-source/c_example.h"
example "$root/README.md" c 'sinter_model_open' | diff "$work/readme-source/c_example.h" -  # README has the same lines
for file in "$work/readme-source"/*; do
  [ "$(wc -l < "$file")" -ge 8 ] || { echo "an example is missing: $file"; exit 1; }
done
grep -q '\.backends' "$work/readme-source/session_example.h" || { echo "the example of Session runs on the reference kernels alone"; exit 1; }
cp "$here/readme_main.cc" "$here/documented.c" "$work/readme-source/"
cp "$here/readme.cmake" "$work/readme-source/CMakeLists.txt"
application readme "$work/readme-source"
(cd "$work" && "$work/readme/readme" digits.sinter) > "$work/said"
expect "$work/said" '^0\.9[0-9]* 0\.9[0-9]* 2$'
# A plan for a GPU runs where there is one, and is refused in one line elsewhere.
"$sinter" convert "$root/examples/digits/digits.onnx" -o "$work/gpu.sinter" --target cuda --quiet
if ! (cd "$work" && "$work/readme/readme" gpu.sinter) > "$work/said" 2>&1; then
  [ "$(wc -l < "$work/said")" -eq 1 ] || { echo 'a refusal takes one line:'; cat "$work/said"; exit 1; }
  expect "$work/said" 'CUDA (driver|device|kernels)'
else
  expect "$work/said" '^0\.9'
fi

# small PROGRAM FILE: without symbols it has at most 1 % more bytes than sizes.tsv has for this build type, processor and compiler.
small() {
  local bytes allowed
  strip -o "$work/stripped" "$2"
  bytes=$(stat -c %s "$work/stripped")
  allowed=$(awk -v kind="$kind" -v name="$1" '$1 == kind && $2 == name { print $3 }' "$here/sizes.tsv")
  if [ -z "$allowed" ]; then
    echo "$1 takes $bytes bytes without symbols; sizes.tsv has no row for $kind"
  elif [ "$bytes" -gt $((allowed + allowed / 100)) ]; then
    echo "$1 takes $bytes bytes without symbols, more than 1 % above the $allowed of sizes.tsv; make them fewer, or raise the number there"
    exit 1
  else
    echo "$1 takes $bytes bytes without symbols"
  fi
}
option() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }
kind=$(uname -m)-gcc$("$CXX" -dumpversion)-$(option CMAKE_BUILD_TYPE)
[ "$(option SINTER_CUDA)" = OFF ] || kind=$kind-cuda
small runner "$work/readme/readme"
small sinter "$sinter"
