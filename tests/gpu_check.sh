#!/usr/bin/env bash
# Proves Tiercel on a GPU, and times it there. What runs is carried: a machine
# with a GPU may have neither a network nor Debian's packages.
#
#   gpu_check.sh pack FOLDER [far]     builds what is to run and puts it into
#                                      FOLDER, libraries and checkpoints too
#   gpu_check.sh run FOLDER [STEP...]  runs it, with bash and CUDA's driver
#
# Steps: tests, logits, texts, bench; ranks, where there are two GPUs; blas, where cuBLASLt 13 is installed; then the tests under each tool of
# compute-sanitizer, where that is installed: memcheck, racecheck, synccheck,
# initcheck. What came of them is a page in $OUT (or in FOLDER), and all that
# was said is gpu-check.log beside it. Whatever cannot be checked is a failure,
# a test that is skipped too, but for the tools that are not there.
#
# far: packs the CPU's build, in which the host executor plays the GPU, and a
# part of the tests, to rehearse `run` where there is none.
#
# CUDAARCHS names the GPUs to compile for (89-real;90-real: Ada and Hopper).
# FOLDER has some 50 MB, half of that as a tar.gz. Where FOLDER/model.gguf is
# there it is checked and timed, too.
set -euo pipefail

readonly STEPS=(tests logits texts bench ranks blas memcheck racecheck synccheck initcheck)

die() {
  echo "gpu_check: $*" >&2
  exit 1
}

# ---- Packing ----

# The libraries of a program that are no part of the C library: those have to
# be the machine's own.
libraries_of() {  # program
  ldd "$1" | sed -n 's/^.* => \(\/[^ ]*\) .*/\1/p' |
    grep -vE '/(libc|libm|libdl|librt|libpthread|libresolv)\.so'
}

put_program() {  # program folder
  local to=$2/bin/${1##*/} library
  cp "$1" "$to"
  strip "$to"
  for library in $(libraries_of "$1"); do
    cp -nL "$library" "$2/lib/"
  done
  # Theirs is the path of what they need in turn.
  patchelf --force-rpath --set-rpath "\$ORIGIN/../lib" "$to"
}

pack() {  # folder device
  local folder build targets program
  command -v patchelf >/dev/null || die "pack needs patchelf (packages.sh full)"
  mkdir -p "$1/bin" "$1/lib"
  folder=$(realpath "$1")
  cd "$(dirname "${BASH_SOURCE[0]}")/.."
  if [[ $2 == far ]]; then
    build=build/cpu
    cmake --preset cpu >/dev/null
    targets=(kernels_layer_tests tiercel_hosted_cli)
  else
    build=build/gpu
    PATH=$PATH:/usr/local/cuda/bin
    command -v nvcc >/dev/null || die "pack needs nvcc (CUDA Toolkit 13)"
    # A compiler that is newer than ours may warn of more.
    cmake --preset cuda -B "$build" -DTIERCEL_WERROR=OFF \
      -DCMAKE_CUDA_ARCHITECTURES="${CUDAARCHS:-89-real;90-real}" >/dev/null
    targets=(tiercel_gpu_tests tiercel_cli)
  fi
  cmake --build "$build" --target "${targets[@]}" copy_bench
  # The tests of a folder are one program.
  if [[ $2 == far ]]; then
    put_program "$build/kernels/kernels_layer_tests" "$folder"
    put_program "$build/apps/tiercel_hosted" "$folder"
    mv "$folder/bin/tiercel_hosted" "$folder/bin/tiercel"
  else
    for program in $(ctest --test-dir "$build" -N -V -L gpu |
      sed -nE 's/^.*Test command: "?([^" ]+).*/\1/p' | sort -u); do
      put_program "$program" "$folder"
    done
    put_program "$build/apps/tiercel" "$folder"
  fi
  put_program "$build/bench/copy_bench" "$folder"

  rm -rf "$folder/checkpoints"
  cp -r tests/golden/checkpoints "$folder/"
  # Models come from the GGUF files, their ids from tokens.txt.
  find "$folder/checkpoints" -type f ! -name '*.gguf' ! -name tokens.txt -delete
  cp tests/golden/smollm2/tokens.txt "$folder/tokens.txt"
  # So many layers that two buffers do not hold all.
  local shape=(--hidden 256 --heads 8 --kv-heads 4 --ffn 512)
  [[ $2 != far ]] || shape=(--hidden 64 --heads 2 --kv-heads 1 --ffn 128)
  /usr/bin/python3 bench/make_random.py --layers 6 --vocab 512 "${shape[@]}" \
    "$folder/checkpoints/deep.gguf"
  cp tests/gpu_check.sh "$folder/"
  echo "$2" >"$folder/device"
  git describe --always --dirty --exclude '*' >"$folder/commit"
  du -sh "$folder"
}

# ---- Running ----

is_far() { [[ $device == far ]]; }

# Every case for a GPU; plainly, those that need none beside one as well.
step_tests() {  # [tool and its flags]
  local program passed
  is_far && export GTEST_FILTER='*/hosted_ascending'
  (($# == 0)) || export GTEST_FILTER='*/cuda'
  export TIERCEL_TEST_FOLDER=$scratch
  for program in "$folder"/bin/*_tests; do
    "$@" "$program" >"$scratch/tests" 2>&1 || {
      cat "$scratch/tests"
      return 1
    }
    cat "$scratch/tests"
    if grep -q 'SKIPPED.*/\(cuda\|hosted_\)' "$scratch/tests"; then
      echo "${program##*/}: cases were skipped"
      return 1
    fi
    grep -E '^\[ +OK \].*/(cuda|hosted_ascending) ' "$scratch/tests" \
      >>"$scratch/passed" || :
  done
  passed=$(wc -l <"$scratch/passed")
  ((passed > 0))
  echo "$passed cases on the GPU"
}

# compute-sanitizer; a refused allocation is a case, not a finding.
sanitized() {  # tool
  local flags=(--tool "$1" --error-exitcode 9)
  [[ $1 != memcheck ]] || flags+=(--report-api-errors no --leak-check full)
  step_tests compute-sanitizer "${flags[@]}"
}
step_memcheck() { sanitized memcheck; }
step_racecheck() { sanitized racecheck; }
step_synccheck() { sanitized synccheck; }
step_initcheck() { sanitized initcheck; }

# The first ids of a checkpoint's own, as many as the device can be asked for.
ids_for() {  # checkpoint how many
  local tokens=${1%.gguf}/tokens.txt
  [[ -e $tokens ]] || tokens=$(dirname "$1")/tokens.txt
  [[ -e $tokens ]] || tokens=$folder/tokens.txt
  if [[ $1 == */deep.gguf ]]; then
    # Again and again, with a change: drafts hold, and do not.
    seq 0 $(($2 - 1)) | awk '{print ($1 % 31 * 7 + int($1 / 93)) % 512}'
  else
    tr -s ' ' '\n' <"$tokens" | sed -n "1,$2p"
  fi
}

models() {
  local found=("$folder"/checkpoints/*.gguf "$folder"/checkpoints/*/*.gguf)
  printf '%s\n' "${found[@]}" |
    grep -vE 'tiny_vocab|-0000[2-9]-|/llama_bias-00001'
  [[ ! -e $folder/model.gguf ]] || echo "$folder/model.gguf"
}

# Bytes of logits, of a prompt and of rows one by one: the CPU's.
step_logits() {
  local model compute rows count=0
  while read -r model; do
    ids_for "$model" "$(is_far && echo 20 || echo 150)" >"$scratch/ids"
    for compute in q8 f32; do
      for rows in 1 512; do
        is_far && ((rows == 1)) && continue
        for one in cpu "$device"; do
          "$tiercel" eval -m "$model" --tokens "$scratch/ids" --no-progress \
            --compute "$compute" -ub "$rows" --deterministic --device "$one" \
            --logits "$scratch/$one.npy" >/dev/null
        done
        cmp "$scratch/cpu.npy" "$scratch/$device.npy" || {
          echo "$model --compute $compute -ub $rows"
          return 1
        }
        count=$((count + 1))
      done
    done
  done < <(models)
  ((count > 0))
  echo "$count times the CPU's bytes"
}

# What a session is told of its policy; where drafts are checked, text is to be
# that of no drafts.
readonly SFI="--policy sfi --window 32 --set trigger=fixed,interval=6,gap=1"
readonly SADAS="--policy sadas --window 64 --set think=on,most=12"
readonly TRIFORCE="--policy triforce --budget 64 --sink 8 --window 16"
readonly POLICIES=(
  "--policy full"
  "--policy full --draft ngram"
  "$TRIFORCE --chunk 8"
  "$TRIFORCE --chunk 1"
  "$SFI --budget 60 --sink 2"
  "$SFI --budget 60 --sink 2 --plain"
  "$SFI --budget 64 --sink 8 --chunk 8 --plain"
  "$SADAS"
  "$SADAS --plain"
  "--policy speed --set cut=1"
  "--policy speed --set cut=1 --plain"
)

# What a session takes at least, so that its KV comes over the link.
least_memory() {  # flags of the plan...
  local said
  said=$("$tiercel" plan "$@" --device-memory 1MB --json 2>/dev/null) || :
  sed -nE 's/.*"min_device_bytes":([0-9]+).*/\1/p' <<<"$said" |
    awk '{print int($1 / 1000) + 1 "kB"}'
}

# The tokens of a text; its document stays in text.json.
tokens_of() {  # flags...
  "$tiercel" generate "$@" --json --no-progress 2>"$scratch/err" \
    >"$scratch/text.json" || {
    echo "generate $*: $(cat "$scratch/err" "$scratch/text.json")" >&2
    return 1
  }
  grep -oE '"tokens":\[[0-9,]+\]' "$scratch/text.json"
}

# Tokens of every policy, KV in the device's memory and behind its link: the
# CPU's.
step_texts() {
  local model policy least memory expected got count=0 sizes=(700 40)
  is_far && sizes=(150 8)
  for model in "$folder"/checkpoints/deep.gguf "$folder"/model.gguf; do
    [[ -e $model ]] || continue
    ids_for "$model" "${sizes[0]}" >"$scratch/ids"
    for policy in "${POLICIES[@]}"; do
      local session=(-m "$model" -c 1024)
      # shellcheck disable=SC2206  # words of ours
      session+=($policy)
      local text=("${session[@]}" --tokens "$scratch/ids" -n "${sizes[1]}"
        --ignore-eos --temp 0.8 --seed 3)
      [[ $policy == *--plain || $policy == "--policy full" ]] ||
        text+=(--verify coupled)
      expected=$(tokens_of "${text[@]}" --device cpu)
      least=$(least_memory "${session[@]}" --device "$device")
      for memory in 1000GiB "$least"; do
        got=$(tokens_of "${text[@]}" --device "$device" \
          --device-memory "$memory")
        if [[ $got != "$expected" ]]; then
          echo "$model $policy in $memory: got $got, need $expected"
          return 1
        fi
        count=$((count + 1))
      done
      # A short text is within SADAS' window and the pages kept beside it.
      is_far && [[ $policy == *sadas* ]] && continue
      if ! grep -qE '"h2d_bytes":[1-9]' "$scratch/text.json"; then
        echo "$model $policy in $least: nothing came over the link"
        return 1
      fi
    done
  done
  echo "$count texts, all the CPU's"
}

# Seconds, and how busy the processors were: who waits for a GPU should sleep.
timed() {  # program...
  local TIMEFORMAT='%R %U %S'
  { time "$@" >"$scratch/out" 2>"$scratch/err"; } 2>"$scratch/time" || {
    cat "$scratch/err"
    return 1
  }
  cat "$scratch/out"
  awk '{printf "\n%.1f s, %.2f CPUs busy\n\n", $1, ($2 + $3) / $1}' \
    "$scratch/time"
}

step_bench() {
  local model=$folder/model.gguf tests=(-p 512 -n 64 -d "0,2048") context=2624
  local links=(--benchmark_min_time=0.5 --benchmark_filter=gpu) least
  [[ -e $model ]] || model=$folder/checkpoints/deep.gguf
  if is_far; then
    tests=(-p 8 -n 2 -d 0 -r 1)
    links=(--benchmark_min_time=0.01 --benchmark_filter=gpu/.*/8192)
    context=64
  fi
  local flags=(-m "$model" --device "$device")
  echo "KV in the GPU's memory:"
  timed "$tiercel" bench "${flags[@]}" "${tests[@]}"
  least=$(least_memory "${flags[@]}" -c "$context")
  echo "KV behind its link, in $least of device memory:"
  timed "$tiercel" bench "${flags[@]}" "${tests[@]}" --device-memory "$least"
  echo "The link:"
  timed "$folder/bin/copy_bench" "${links[@]}"
}

# Over two GPUs the CPU's bytes and tokens, gathered by copies and, where it is
# installed, by NCCL; and how long it takes.
step_ranks() {
  local model=$folder/checkpoints/deep.gguf policy way rows expected got count=0
  local over=(-m "$model" --device "$device" --tensor-parallel 2) ways=(0)
  ids_for "$model" "$(is_far && echo 20 || echo 150)" >"$scratch/ids"
  if TIERCEL_NCCL=1 "$tiercel" eval "${over[@]}" --tokens "$scratch/ids" \
    --no-progress >/dev/null 2>"$scratch/err"; then
    ways+=(1)
  else
    echo "not by NCCL: $(cat "$scratch/err")"
  fi
  for rows in 1 512; do
    is_far && ((rows == 1)) && continue
    "$tiercel" eval -m "$model" --device cpu --tokens "$scratch/ids" \
      --no-progress -ub "$rows" --logits "$scratch/cpu.npy" >/dev/null
    for way in "${ways[@]}"; do
      TIERCEL_NCCL=$way "$tiercel" eval "${over[@]}" --tokens "$scratch/ids" \
        --no-progress -ub "$rows" --deterministic \
        --logits "$scratch/ranks.npy" >/dev/null
      cmp "$scratch/cpu.npy" "$scratch/ranks.npy" || {
        echo "-ub $rows, TIERCEL_NCCL=$way"
        return 1
      }
      count=$((count + 1))
    done
  done
  for policy in "--policy full" "$TRIFORCE --chunk 8 --verify coupled"; do
    # shellcheck disable=SC2206  # words of ours
    local text=(-c 1024 $policy --tokens "$scratch/ids" -n 8 --ignore-eos
      --temp 0.8 --seed 3)
    expected=$(tokens_of -m "$model" --device cpu "${text[@]}")
    for way in "${ways[@]}"; do
      got=$(TIERCEL_NCCL=$way tokens_of "${over[@]}" "${text[@]}")
      if [[ $got != "$expected" ]]; then
        echo "$policy, TIERCEL_NCCL=$way: got $got, need $expected"
        return 1
      fi
      count=$((count + 1))
    done
  done
  [[ ! -e $folder/model.gguf ]] || model=$folder/model.gguf
  is_far || for way in "${ways[@]}"; do
    echo "Two GPUs, TIERCEL_NCCL=$way:"
    TIERCEL_NCCL=$way timed "$tiercel" bench -m "$model" --device "$device" \
      --tensor-parallel 2 -p 512 -n 64 -d "0,2048"
  done
  echo "$count times the CPU's over two GPUs"
}
# Says why not.
has_gpus() {
  local said
  echo 1 >"$scratch/ids"
  said=$("$tiercel" eval -m "$folder/checkpoints/deep.gguf" --device "$device" \
    --tensor-parallel 2 --tokens "$scratch/ids" --no-progress 2>&1) || :
  ! grep 'need a GPU each' <<<"$said"
}

# Prompts by cuBLASLt: what they predict is near what the kernels' do, and how
# long either takes.
perplexity_of() {  # flags...
  "$tiercel" eval "$@" --no-progress --json |
    grep -oE '"perplexity":[0-9.e+-]+' | cut -d: -f2
}
step_blas() {
  local model kernels library count=0
  while read -r model; do
    ids_for "$model" 150 >"$scratch/ids"
    local flags=(-m "$model" --tokens "$scratch/ids" --device "$device")
    kernels=$(perplexity_of "${flags[@]}" -ub 512)
    library=$(TIERCEL_CUBLASLT=1 perplexity_of "${flags[@]}" -ub 512)
    awk -v a="$kernels" -v b="$library" \
      'BEGIN { exit !(a > 0 && b / a > 0.98 && b / a < 1.02) }' || {
      echo "$model: perplexity $library with the library, $kernels without"
      return 1
    }
    timed "$tiercel" bench -m "$model" --device "$device" -p 512 -n 0
    TIERCEL_CUBLASLT=1 timed "$tiercel" bench -m "$model" --device "$device" \
      -p 512 -n 0
    count=$((count + 1))
  done < <(models | grep -E '/(model|f16|bf16)\.gguf$')
  ((count > 0))
  echo "$count checkpoints by cuBLASLt"
}
# Says why not. Where it is there and fails, its step will say so.
has_blas() {
  echo 1 >"$scratch/ids"
  TIERCEL_CUBLASLT=1 "$tiercel" eval -m "$folder/checkpoints/deep.gguf" \
    --device "$device" --tokens "$scratch/ids" --no-progress --json \
    >"$scratch/blas" 2>/dev/null || true
  ! grep '"no_library"' "$scratch/blas"
}

write_page() {
  {
    echo "# Tiercel on a GPU"
    echo
    echo "$gpu, commit $(<"$folder/commit"), $(date -u +%Y-%m-%d)"
    echo
    echo "| step | outcome | seconds | last words |"
    echo "|---|---|---:|---|"
    printf '%s\n' "${lines[@]}"
    if [[ -e $scratch/bench.log ]]; then
      printf '\n```\n'
      cat "$scratch/bench.log"
      echo '```'
    fi
  } >"$page"
}

run() {  # folder [step...]
  folder=$(realpath "$1")
  shift
  local steps=("$@") step said out
  ((${#steps[@]} > 0)) || steps=("${STEPS[@]}")
  for step in "${steps[@]}"; do
    [[ " ${STEPS[*]} " == *" $step "* ]] || die "no step is called $step"
  done
  device=$(<"$folder/device")
  tiercel=$folder/bin/tiercel
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  export XDG_CACHE_HOME=$scratch PATH=$PATH:/usr/local/cuda/bin

  said=$("$tiercel" --version 2>&1) || die "the program does not start: $said"
  echo 1 >"$scratch/ids"
  said=$("$tiercel" eval -m "$folder/checkpoints/deep.gguf" --device "$device" \
    --tokens "$scratch/ids" --no-progress 2>&1) ||
    die "there is nothing to check on: $said"
  gpu="the host executor"
  is_far || gpu=$(nvidia-smi --query-gpu=name,driver_version \
    --format=csv,noheader 2>/dev/null | head -1) || gpu="a GPU, no nvidia-smi"
  out=${OUT:-$folder}
  page=$out/$(date -u +%Y-%m-%d)-gpu-check.md
  : >"$out/gpu-check.log"

  local failed=0 code outcome began
  lines=()
  for step in "${steps[@]}"; do
    outcome=passed
    began=$SECONDS
    echo "== $step" | tee -a "$out/gpu-check.log"
    if [[ $step == *check ]] && ! command -v compute-sanitizer >/dev/null; then
      outcome="not run"
      echo "compute-sanitizer is not installed" >"$scratch/$step.log"
    elif [[ $step == ranks ]] && ! has_gpus >"$scratch/$step.log"; then
      outcome="not run"
    elif [[ $step == blas ]] && ! has_blas >"$scratch/$step.log"; then
      outcome="not run"
    else
      # In a shell of its own, which its first failure ends; not as a
      # condition, where failures would be ignored.
      set +e
      (
        set -e
        "step_$step"
      ) >"$scratch/$step.log" 2>&1
      code=$?
      set -e
      if grep -q 'Device not supported' "$scratch/$step.log"; then
        outcome="not run"  # compute-sanitizer does not work on this machine
      elif ((code != 0)); then
        outcome=FAILED
        failed=1
        tail -40 "$scratch/$step.log"
      fi
    fi
    cat "$scratch/$step.log" >>"$out/gpu-check.log"
    said=$(grep -v '^ *$' "$scratch/$step.log" | tail -1 | tr '|' '/' |
      cut -c1-100)
    lines+=("| $step | $outcome | $((SECONDS - began)) | $said |")
    write_page
  done
  cat "$page"
  return "$failed"
}

case "${1:-} $#" in
  "pack 2") pack "$2" cuda ;;
  "pack 3") [[ $3 == far ]] || die "pack FOLDER [far]" && pack "$2" far ;;
  "run "[2-9]*) run "${@:2}" ;;
  *)
    echo "usage: gpu_check.sh pack FOLDER [far] | run FOLDER [STEP...]" >&2
    exit 2
    ;;
esac
