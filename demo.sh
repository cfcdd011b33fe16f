#!/usr/bin/env bash
# Shows Tiercel at work: a language model reads chapters of a real book on this
# machine, says what is in them and where, and answers questions about them; a
# text that was read once is opened the second time. On a terminal it then takes
# questions until Ctrl-D. Installs and fetches what is missing (a 93 MB model,
# books from Debian packages); the second run starts at once.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

tests/setup/packages.sh demo
model=$(tests/setup/model.sh)
books=$(tests/setup/book.sh)

if [[ ! -f build/cpu/build.ninja ]]; then
  cmake --preset cpu >/dev/null
fi
cmake --build --preset cpu --target tiercel_cli >&2

export PATH=$PWD/build/cpu/apps:$PATH TIERCEL_MODEL=$model
cd "$books"
run() {  # as it would be typed
  local word line=tiercel
  for word; do
    [[ $word != *' '* ]] || word="\"$word\""
    line+=" $word"
  done
  printf '\n$ %s\n' "$line" >&2
  tiercel "$@"
}

printf '\nSmolLM2-135M reads "A Brief History of Debian".\n' >&2
run summarize history --chapters "The Debian Manifesto" --no-talk "$@"
run ask history --chapters 1-2 "Who founded Debian, and when?" \
  "Where does the name Debian come from?" "$@"
run ask history --chapters 1-2 "How is Debian pronounced?" "$@"
if [[ -t 0 && -t 1 ]]; then
  run ask history --chapters 1-2 "$@"
fi
