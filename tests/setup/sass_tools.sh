#!/usr/bin/env bash
# Fetches the tools that print machine code of kernels, cuobjdump and nvdisasm,
# once, and prints their folder. The CUDA Toolkit has them; a smaller
# installation of nvcc may not.
#
# They come from PyPI and are not installed; the versions are pinned. Needs
# python3 with pip.
set -euo pipefail

readonly VERSION=13.5.37

tools=${XDG_CACHE_HOME:-$HOME/.cache}/tiercel/sass-$VERSION
readonly BIN=nvidia/cu13/bin
if [[ -d $tools ]]; then
  echo "$tools/$BIN"
  exit 0
fi

mkdir -p "$(dirname "$tools")"
scratch=$(mktemp -d "$tools.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

echo "sass_tools.sh: fetching cuobjdump and nvdisasm $VERSION" >&2
for name in cuobjdump nvdisasm; do
  python3 -m pip download --quiet --disable-pip-version-check --no-deps \
    --only-binary :all: --dest "$scratch" "nvidia-cuda-$name==$VERSION" \
    </dev/null >&2
done
mkdir "$scratch/all"
for wheel in "$scratch"/*.whl; do
  python3 -m zipfile --extract "$wheel" "$scratch/all"
done
chmod +x "$scratch/all/$BIN"/*
mv "$scratch/all" "$tools"
echo "$tools/$BIN"
