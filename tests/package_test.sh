#!/usr/bin/env bash
# Installs what was built, moves it, and builds programs with it as a stranger
# does: in C by pkg-config and by CMake, with the shared and the static library.
#
#   package_test.sh BUILD_FOLDER CHECKPOINT
set -euo pipefail
tests=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly TESTS=$tests BUILD=$1 CHECKPOINT=$2

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for component in runtime documents development tools; do
  cmake --install "$BUILD" --prefix "$scratch/first" --component "$component"
done >"$scratch/installed.log"
mv "$scratch/first" "$scratch/prefix"
prefix=$scratch/prefix

fail() {
  echo "package_test: $*" >&2
  exit 1
}

library=$(find "$prefix" -name libtiercel.so)
folder=$(dirname "$library")

# The libraries export the functions of their headers, and a program gets no
# other symbol of the static one.
exports() {  # list nm...
  local list=$TESTS/abi/$1
  "${@:2}" --defined-only | awk 'NF == 3 {print $3}' | LC_ALL=C sort |
    diff "$list" - || fail "${*:2}: other symbols than tests/abi/$1"
}
exports symbols.txt nm -D "$library"
exports symbols.txt nm -g "$folder/libtiercel.a"
exports documents_symbols.txt nm -D "$folder/libtiercel-documents.so"

text=$("$prefix/bin/tiercel" generate -m "$CHECKPOINT" -p "The falcon" -n 8 \
  --temp 0 2>/dev/null)
runs() {  # program
  local said
  said=$("$1" "$CHECKPOINT" "The falcon" 8)
  [[ $said == "$text" ]] || fail "$1: got \"$said\", need \"$text\""
}

export PKG_CONFIG_PATH=$folder/pkgconfig
flags=(-std=c99 -Wall -Wextra -Wpedantic -Wconversion -Werror)
for package in tiercel tiercel-static; do
  read -ra linked <<<"$(pkg-config --cflags --libs "$package")"
  cc "${flags[@]}" "$TESTS/../examples/complete.c" -o "$scratch/$package" \
    "${linked[@]}" -Wl,-rpath,"$folder"
  runs "$scratch/$package"
done
! readelf -d "$scratch/tiercel-static" | grep -q libtiercel ||
  fail "tiercel-static needs the shared library"

read -ra linked <<<"$(pkg-config --cflags --libs tiercel-documents)"
cc "${flags[@]}" "$TESTS/../examples/outline.c" -o "$scratch/outline" \
  "${linked[@]}" -Wl,-rpath,"$folder"
book=$scratch/book.html
echo "<title>T</title><h1>Chapter 1. A</h1>One<h1>Chapter 2. B</h1>Two" >"$book"
outline=$'1  Chapter 1 A\n2  Chapter 2 B'
reads() {  # program
  local said
  said=$("$1" "$book")
  [[ $said == "$outline" ]] || fail "$1: got \"$said\", need \"$outline\""
}
reads "$scratch/outline"
! readelf -d "$scratch/outline" | grep -qE 'libtiercel\.so' ||
  fail "a program for documents needs the runtime"

cmake -G Ninja -S "$TESTS/../examples" -B "$scratch/build" \
  -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_FLAGS="${flags[*]}" \
  -DCMAKE_CXX_FLAGS="${flags[*]:1}" >"$scratch/cmake.log"
cmake --build "$scratch/build" >>"$scratch/cmake.log" || {
  cat "$scratch/cmake.log" >&2
  exit 1
}
for program in complete_tiercel complete_static; do
  runs "$scratch/build/$program"
done
reads "$scratch/build/outline"
# Two turns, each told the talk so far.
talk=$(printf 'a\nb\n' | "$scratch/build/chat" "$CHECKPOINT" | wc -l)
((talk >= 2)) || fail "chat: got $talk lines, need two answers"
echo "package_test: programs built with the installed library run"
