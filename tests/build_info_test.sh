#!/usr/bin/env bash
# Tests that runtime/api/build_info.cmake names the commit of a build, at every
# build, and does not touch the header if it is the same as before.
#
#   build_info_test.sh CMAKE
set -euo pipefail

cmake=$1
script=$(realpath "$(dirname "$0")/../runtime/api/build_info.cmake")
work=$(mktemp -d)
export GIT_CEILING_DIRECTORIES=$work  # no repository above it counts
trap 'rm -rf "$work"' EXIT
header=$work/build_info.h

fail() { echo "build_info: $*"; exit 1; }
commit() {
  git -C "$work/tree" -c user.name=a -c user.email=a@b commit -qam "$1"
}
# Fails unless the header, looked up now, says that the commit is $1.
says() {
  "$cmake" -D SOURCE="$work/tree" -D VERSION=1.2 -D BUILD_TYPE=Release \
    -D HEADER="$header" -P "$script"
  grep -qxF "inline constexpr char kCommit[] = \"$1\";" "$header" ||
    fail "needed commit $1, got: $(grep kCommit "$header")"
}
head_of() { git -C "$work/tree" rev-parse --short HEAD; }

mkdir "$work/tree"
says unknown  # no repository
grep -qxF 'inline constexpr char kVersion[] = "1.2";' "$header" ||
  fail "needed version 1.2, got: $(grep kVersion "$header")"

git -C "$work/tree" init -q
echo one >"$work/tree/file"
git -C "$work/tree" add file
commit one
says "$(head_of)"
touch -d 2001-01-01 "$header"
says "$(head_of)"
[[ $(date -r "$header" +%Y) == 2001 ]] ||
  fail "the header of an unchanged commit was written again"

echo two >"$work/tree/file"
says "$(head_of)-dirty"
commit two
git -C "$work/tree" tag v9  # a tag's name is no commit
git -C "$work/tree" -c user.name=a -c user.email=a@b tag -a v10 -m v10
says "$(head_of)"
