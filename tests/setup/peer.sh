#!/usr/bin/env bash
# Fetches llama.cpp's source tree once and prints its path.
#
# It comes from PyPI inside the source package of llama-cpp-python (77 MB, the
# checksum is pinned), with its converter and its vocabulary files; nothing is
# installed or built here. Needs python3 with pip.
set -euo pipefail

readonly NAME=llama_cpp_python-0.3.36
readonly SHA256=\
832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e

peer=${XDG_CACHE_HOME:-$HOME/.cache}/tiercel/peer
if [[ -d $peer/$NAME ]]; then
  echo "$peer/$NAME/vendor/llama.cpp"
  exit 0
fi

mkdir -p "$peer"
scratch=$(mktemp -d "$peer/fetch.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

echo "peer.sh: fetching $NAME" >&2
# Without `--no-binary :all:`, with which pip would also compile cmake and ninja
# to read the package's name.
python3 -m pip download --quiet --disable-pip-version-check --no-deps \
  --no-binary llama-cpp-python --dest "$scratch" \
  llama-cpp-python==0.3.36 </dev/null >&2
echo "$SHA256  $scratch/$NAME.tar.gz" | sha256sum --check --quiet >&2
tar -xzf "$scratch/$NAME.tar.gz" -C "$scratch"
mv "$scratch/$NAME" "$peer/$NAME"
echo "$peer/$NAME/vendor/llama.cpp"
