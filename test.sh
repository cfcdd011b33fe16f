#!/usr/bin/env bash
# Proves that Tiercel works here: installs what is missing, builds, checks the
# format, and runs the tests. tests/full.sh runs the long ones.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

start=$SECONDS
step() { printf '\n== %s (at %d s)\n' "$*" $((SECONDS - start)); }

step "packages, model, book"
tests/setup/packages.sh test
TIERCEL_MODEL=$(tests/setup/model.sh)
TIERCEL_BOOKS=${TIERCEL_BOOKS:-$(tests/setup/book.sh)}
export TIERCEL_MODEL TIERCEL_BOOKS

step "format"
git ls-files '*.h' '*.hpp' '*.cc' '*.c' '*.cu' '*.cuh' |
  xargs -r -n 100 -P "$(nproc)" clang-format-14 --dry-run --Werror
git ls-files '*.sh' .ci/run | xargs -r shellcheck

step "build"
cmake --preset cpu >/dev/null
cmake --build --preset cpu

step "tests"
ctest --test-dir build/cpu --output-on-failure -j "$(nproc)" -LE long |
  tee build/cpu/ctest.log

if command -v nvcc >/dev/null; then
  step "CUDA: the module of kernels, for one kind of GPU"
  cmake --preset cuda -DCMAKE_BUILD_TYPE=None \
    -DCMAKE_CUDA_ARCHITECTURES=89-real >/dev/null
  cmake --build --preset cuda --target tiercel_cuda
  tests/module_test.sh build/cpu build/cuda/module/libtiercel-cuda.so
  tools=$(tests/setup/sass_tools.sh)
  PATH=$PATH:$tools python3 -B tests/sass_check.py --built build/cuda \
    --arch 89 | grep -E '^(WRONG|sass_check)'
else
  step "CUDA: no nvcc here, no .cu file compiled"
fi

passed=$(grep -cE 'Test +#[0-9]+.* Passed' build/cpu/ctest.log)
step "all tests passed"
echo "$passed passed, 0 failed"
missing=$(build/cpu/kernels/kernels_system_tests kernels/system/isa_test.cc |
  sed -nE 's/^\[  SKIPPED \] .*\/([a-z0-9]+) \(.*/\1/p' | paste -sd, |
  sed 's/,/, /g')
[[ -z $missing ]] || echo "not run here, for want of the CPU: $missing"
