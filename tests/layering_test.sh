#!/usr/bin/env bash
# Includes never point right (doc/code.md, "The tree"):
#   kernels < offload < models < drafts < runtime < bench, tests
# apps see include/ and lib/ alone; lib/ sees itself, lib/c_api also include/;
# include/ sees nothing of ours. Inside a folder the rooms of its README are in order.
#
#   layering_test.sh SOURCE_DIR
set -euo pipefail
script=$(realpath "$0")
cd "$1"

readonly LAYERS=(kernels offload models drafts runtime)
# The rooms of a folder, in order: each may include those before it.
readonly ROOMS=(
  'lib status text template grammar documents reader c_api'
  'kernels base number simd system device layer kv attention select token'
  'offload tier disk move ranks kv prompt_cache retrieval weights'
  'models format tokenizer chat decoder'
  'runtime pass machine model plan session drafting policies generate api'
  'apps cli terminal notes commands serve'
)
failed=0

# Fails on lines in folder $1 that include one of the folders after it; tests
# may include tests/.
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
  [[ $tests == with_tests ]] ||
    hits=$(grep -vE '(_test\.cc|_test_[a-z]+\.(cc|h)|_for_test\.h|testing\.h):' \
      <<<"$hits" || :)
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
for line in "${ROOMS[@]}"; do
  read -ra rooms <<<"$line"
  for i in "${!rooms[@]}"; do
    ((i > 0)) || continue
    later=()
    for room in "${rooms[@]:i+1}"; do later+=("${rooms[0]}/$room"); done
    ((${#later[@]} == 0)) ||
      forbid "${rooms[0]}/${rooms[i]}" without_tests "${later[@]}"
  done
  # Every room must have a place in the order.
  for folder in "${rooms[0]}"/*/; do
    [[ -d $folder ]] || continue
    room=$(basename "$folder")
    if [[ " ${rooms[*]:1} " != *" $room "* ]]; then
      echo "layering: $folder has no place in the order of rooms"
      failed=1
    fi
  done
done

# All threads of the library begin in one file, which blocks their signals.
threads=$(grep -rnE 'std::j?thread[({]|std::async|pthread_create' \
  "${LAYERS[@]}" --include='*.h' --include='*.cc' --include='*.cu' |
  grep -vE '(_test\.cc|_for_test\.h|kernels/system/thread\.h):' || :)
if [[ -n $threads ]]; then
  echo "layering: threads begin by StartThread (kernels/system/thread.h):"
  echo "$threads"
  failed=1
fi

# The host reads and writes a device's memory in few places
# (kernels/device/device_ptr.h). raw(), and a DevicePtr of a plain address:
# kernels, copies, libraries. The rest asks before, and says HostAddress or
# InPlace. Tests and benches know their device.
readonly RAW='kernels/.*|offload/move/.*|offload/ranks/nccl_gather\.cc'
readonly IN_PLACE='models/decoder/(decoder|experts)\.cc'\
'|offload/kv/(in_place_kv|host_attention)\.cc|offload/ranks/gather\.cc'\
'|offload/tier/page_pool\.cc|runtime/pass/fill\.cc'\
'|runtime/plan/(rates|disk_rate)\.cc|runtime/session/runner\.h'
# Fails on lines that match $1 in files other than $2.
keep_to() {
  local hits
  hits=$(grep -rnE "$1" "${LAYERS[@]}" --include='*.h' --include='*.cc' \
    --include='*.cu' |
    grep -vE "^($2|.*(_test\.cc|_for_test\.h|testing\.h)):" || :)
  [[ -z $hits ]] && return
  echo "layering: the host touches a device's memory:"
  echo "$hits"
  failed=1
}
keep_to '(\.|->)raw\(\)|(^|[^<])DevicePtr(<[^<>()]+>)?\([^)]' "$RAW"
keep_to '\b(HostAddress|InPlace)\(' "kernels/.*|$IN_PLACE"

forbid lib with_tests "${LAYERS[@]}" apps bench tests
for room in status text template grammar documents reader; do
  forbid "lib/$room" with_tests include
done
forbid include with_tests lib "${LAYERS[@]}" apps bench tests include
forbid apps with_tests "${LAYERS[@]}" bench tests
forbid lib/documents with_tests lib/text lib/template

# Tests this script: a copy with one wrong include must fail.
if [[ -z ${LAYERING_SELF_TEST:-} ]]; then
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  for folder in lib "${LAYERS[@]}" include apps bench tests; do
    mkdir -p "$scratch/$folder"
  done
  for line in "${ROOMS[@]}"; do
    read -ra rooms <<<"$line"
    for room in "${rooms[@]:1}"; do mkdir -p "$scratch/${rooms[0]}/$room"; done
  done
  let_pass() { LAYERING_SELF_TEST=1 bash "$script" "$scratch" >/dev/null; }
  let_pass || {
    echo "layering: the check refuses folders without a file"
    failed=1
  }
  for wrong in 'models/wrong.h runtime/session/session.h' \
    'lib/status/wrong.h kernels/base/checked.h' \
    'runtime/pass/wrong.cc runtime/api/boundary.h'; do
    echo "#include \"${wrong#* }\"" >"$scratch/${wrong% *}"
    if let_pass; then
      echo "layering: the check let a wrong include pass: $wrong"
      failed=1
    fi
    rm "$scratch/${wrong% *}"
  done
  echo 'std::thread(Work).detach();' >"$scratch/offload/move/wrong.cc"
  if let_pass; then
    echo "layering: the check let a thread of its own pass"
    failed=1
  fi
  rm "$scratch/offload/move/wrong.cc"
  for wrong in 'float x = *logits.raw();' 'Use(DevicePtr(x.data()));' \
    'Use(DevicePtr<float>(x.data()));' 'Use(HostAddress(logits)[0]);'; do
    echo "$wrong" >"$scratch/offload/kv/wrong.cc"
    if let_pass; then
      echo "layering: the check let the host touch a device's memory: $wrong"
      failed=1
    fi
    rm "$scratch/offload/kv/wrong.cc"
  done
fi
exit "$failed"
