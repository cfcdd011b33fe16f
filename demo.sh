#!/usr/bin/env bash
# Shows what Tiercel does: a language model reads a chapter of a real book on
# this machine, says what is in it and, on a terminal, answers questions about
# it until Ctrl-D. Installs and fetches what is missing (a 93 MB model, a book
# from a Debian package); the second run starts at once.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

tests/setup/packages.sh demo
model=$(tests/setup/model.sh)
books=$(tests/setup/book.sh)

if [[ ! -f build/cpu/build.ninja ]]; then
  cmake --preset cpu >/dev/null
fi
cmake --build --preset cpu --target tiercel_cli >&2

chapter=$books/html/ch-archive.html
printf '\nSmolLM2-135M reads %s\n\n' "${chapter##*/}" >&2
exec build/cpu/apps/tiercel summarize --model "$model" "$@" "$chapter"
