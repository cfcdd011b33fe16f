#!/usr/bin/env bash
# Checks that a program that was built without CUDA, once it is installed, opens
# the module for GPUs that is installed with it, and says what is missing where
# there is none. No GPU is needed.
#
#   module_test.sh BUILD_FOLDER MODULE
set -euo pipefail

prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
cmake --install "$1" --prefix "$prefix" >/dev/null
model=$(dirname "${BASH_SOURCE[0]}")/golden/checkpoints/llama_chat.gguf

said() {  # prints what the program says of a GPU
  "$prefix/bin/tiercel" generate -m "$model" -p a -n 1 --device cuda 2>&1 || true
}

expect() {  # pattern text
  [[ $2 =~ $1 ]] || {
    echo "module_test: got \"$2\", need $1" >&2
    exit 1
  }
}

expect 'the CUDA module: libtiercel-cuda.so: cannot open' "$(said)"
for folder in "$prefix/lib" "$prefix/bin"; do
  mkdir -p "$folder"
  cp "$2" "$folder/"
  text=$(said)
  [[ $text != *"CUDA module"* ]] || expect 'no word of the module' "$text"
  rm "$folder/${2##*/}"
done
echo "module_test: ${2##*/} is found beside the program and in ../lib"
