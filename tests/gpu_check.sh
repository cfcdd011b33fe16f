#!/usr/bin/env bash
# Runs what has cases for a GPU on this machine's GPU, plainly and under
# compute-sanitizer, and writes gpu-check-DATE.md to $OUT, or to bench/results.
# Fails unless every case ran: a skipped one, or no GPU, is a failure.
#
#   gpu_check.sh           needs CUDA Toolkit 13, CMake and g++; Abseil and
#                          GoogleTest from the system or from --fetch
#   gpu_check.sh --fetch   on a Debian machine with a network: puts the packages
#                          of both into build/gpu-packages, to take along
#
# TIERCEL_COMMIT names the commit where there is no git to ask.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly PACKAGES=$PWD/build/gpu-packages
readonly BUILD=$PWD/build/gpu
readonly CHECKS=(plain memcheck racecheck synccheck initcheck)

if [[ ${1:-} == --fetch ]]; then
  mkdir -p "$PACKAGES"
  cd "$PACKAGES"
  # Abseil's headers come with one release of its libraries.
  library=$(apt-cache depends libabsl-dev | grep -oE 'libabsl2[0-9a-z]+')
  apt-get download libabsl-dev "$library" libgtest-dev libgmock-dev
  exit 0
elif (($# > 0)); then
  echo "usage: gpu_check.sh [--fetch]" >&2
  exit 2
fi

if ! command -v nvcc >/dev/null; then
  PATH=/usr/local/cuda/bin:$PATH
fi
command -v nvcc >/dev/null || { echo "gpu_check: no nvcc" >&2; exit 1; }

options=(-DTIERCEL_KERNELS_ONLY=ON)
# A compiler that is newer than ours may warn of more.
options+=(-DTIERCEL_WERROR=OFF)
command -v ninja >/dev/null || options+=(-G "Unix Makefiles")
if compgen -G "$PACKAGES/*.deb" >/dev/null; then
  for deb in "$PACKAGES"/*.deb; do
    dpkg-deb -x "$deb" "$PACKAGES/root"
  done
  options+=(-DCMAKE_PREFIX_PATH="$PACKAGES/root/usr")
  LD_LIBRARY_PATH=$(echo "$PACKAGES"/root/usr/lib/*-linux-gnu)
  export LD_LIBRARY_PATH
fi
cmake --preset cuda -B "$BUILD" "${options[@]}"
cmake --build "$BUILD" --target tiercel_gpu_tests -j "$(nproc)"
# The tests of a folder are one program.
mapfile -t programs < <(ctest --test-dir "$BUILD" -N -V -L gpu |
  sed -nE 's/^.*Test command: "?([^" ]+).*/\1/p' | sort -u)
((${#programs[@]} > 0)) || { echo "gpu_check: no tests" >&2; exit 1; }

gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader \
  2>/dev/null | head -1) || gpu="no nvidia-smi"
commit=${TIERCEL_COMMIT:-$(git describe --always --dirty --exclude '*' \
  2>/dev/null || echo unknown)}
result=${OUT:-bench/results}/gpu-check-$(date -u +%Y-%m-%d).md
log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT
{
  echo "# The kernels on a GPU"
  echo
  echo "${gpu/, /, driver }, $(nvcc --version | grep -oE 'release [0-9.]+' |
    sed 's/release/CUDA/'), commit $commit, $(date -u +%Y-%m-%d)"
  echo
  echo "| check | outcome | cases on the GPU | seconds | last words |"
  echo "|---|---|---:|---:|---|"
} >"$result"

run_tests() {  # check
  local tool=() program
  if [[ $1 == plain ]]; then
    # Cases that need no GPU too: they are run beside one only here.
    unset GTEST_FILTER
  else
    # A refused allocation is a case, not a finding.
    tool=(compute-sanitizer --tool "$1" --error-exitcode 9)
    [[ $1 != memcheck ]] || tool+=(--report-api-errors no --leak-check full)
    export GTEST_FILTER='*/cuda'
  fi
  for program in "${programs[@]}"; do
    "${tool[@]}" "$program"
  done
}

failed=0
for check in "${CHECKS[@]}"; do
  if [[ $check != plain ]] && ! command -v compute-sanitizer >/dev/null; then
    echo "| $check | not run | | | compute-sanitizer is not installed |" \
      >>"$result"
    continue
  fi
  began=$SECONDS
  outcome=passed
  # In a shell of its own, which its first failure ends.
  set +e
  (
    set -e
    run_tests "$check"
  ) >"$log/$check" 2>&1
  code=$?
  set -e
  passed=$(grep -cE '^\[ +OK \].*/cuda( |$)' "$log/$check" || :)
  if grep -q 'Device not supported' "$log/$check"; then
    outcome="not run"  # compute-sanitizer does not work on this machine
  elif ((code != 0 || passed == 0)) ||
    grep -q 'SKIPPED.*/cuda' "$log/$check"; then
    outcome=FAILED
    failed=1
    tail -60 "$log/$check"
  fi
  last=$(grep -v '^ *$' "$log/$check" | tail -1 | tr '|' '/' | cut -c1-100)
  echo "| $check | $outcome | $passed | $((SECONDS - began)) | $last |" \
    >>"$result"
done
cat "$result"
exit "$failed"
