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
for component in runtime development tools; do
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

# The library exports the functions of its headers, and a program gets no other
# symbol of the static one.
for nm in "nm -D $library" "nm -g $folder/libtiercel.a"; do
  $nm --defined-only | awk 'NF == 3 {print $3}' | LC_ALL=C sort |
    diff "$TESTS/abi/symbols.txt" - ||
    fail "$nm: other symbols than tests/abi/symbols.txt"
done

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
# Two turns, each told the talk so far.
talk=$(printf 'a\nb\n' | "$scratch/build/chat" "$CHECKPOINT" | wc -l)
((talk >= 2)) || fail "chat: got $talk lines, need two answers"
echo "package_test: programs built with the installed library run"
