#!/usr/bin/env bash
# Includes never point right (README, "The tree"):
#   kernels < offload < models < drafts < runtime < bench, tests
# apps see include/ alone; include/ and apps/document include nothing of ours
# but themselves.
#
#   layering_test.sh SOURCE_DIR
set -euo pipefail
script=$(realpath "$0")
cd "$1"

readonly LAYERS=(kernels offload models drafts runtime)
failed=0

# Fails on lines in folder $1 that include one of the folders after it.
# Tests may use what tests/ provides.
forbid() {
  local folder=$1 tests=$2
  shift 2
  local pattern
  pattern=$(IFS='|'; echo "$*")
  local files
  files=$(find "$folder" -name '*.h' -o -name '*.cc' -o -name '*.cu' \
    -o -name '*.inc')
  [[ -z $files ]] && return
  local hits
  # shellcheck disable=SC2086  # paths of the repository have no spaces
  hits=$(grep -nE "^ *# *include +\"($pattern)/" $files || :)
  [[ $tests == with_tests ]] || hits=$(grep -v '_test\.cc:' <<<"$hits" || :)
  if [[ -n $hits ]]; then
    echo "layering: $folder must not include ($pattern):"
    echo "$hits"
    failed=1
  fi
}

for i in "${!LAYERS[@]}"; do
  right=("${LAYERS[@]:i+1}" apps bench)
  forbid "${LAYERS[i]}" with_tests "${right[@]}"
  forbid "${LAYERS[i]}" without_tests tests
done
forbid include with_tests "${LAYERS[@]}" apps bench tests include
forbid apps with_tests "${LAYERS[@]}" bench tests
forbid apps/document with_tests include

# The check checks: a copy with one wrong include must fail.
if [[ -z ${LAYERING_SELF_TEST:-} ]]; then
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  for folder in "${LAYERS[@]}" include apps bench tests; do
    mkdir -p "$scratch/$folder"
  done
  mkdir -p "$scratch/apps/document"
  echo '#include "runtime/sequence/session.h"' >"$scratch/models/wrong.h"
  if LAYERING_SELF_TEST=1 bash "$script" "$scratch" >/dev/null; then
    echo "layering: the check let a wrong include pass"
    failed=1
  fi
fi
exit "$failed"
