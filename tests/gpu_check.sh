#!/usr/bin/env bash
# Proves Tiercel on a GPU, and times it there, within minutes. It carries all
# that it runs: a machine with a GPU may have neither a network nor Debian's
# packages.
#
#   gpu_check.sh pack [FOLDER [sim]]
#   gpu_check.sh run FOLDER [--resume DIR] [--minutes N] [STEP...]
#
# pack installs what it needs, builds, and writes into FOLDER (build/gpu-pack):
#
#   gpu-pack.tar.gz   program, tests, benches, libraries, checkpoints, scripts;
#                     30 MiB at most
#   model.tar.gz      the real model's embeddings, as Q4_0, and as many of its
#                     first layers as fit into 24 MiB
#
# sim: packs the CPU's build, in which the host executor takes the GPU's place,
# and fewer tests, to rehearse `run` without a GPU. CUDAARCHS names the GPUs to
# compile for (89-real;90-real: Ada and Hopper; 90 adds PTX, for later ones).
#
# run unpacks the two (or takes an unpacked folder) and needs bash, python3 and
# CUDA's driver. It takes 7 minutes at most; gpu/check.py describes its checks,
# its output and its exit code.
set -euo pipefail

readonly MOST_MIB=30 MOST_MODEL_MIB=24
readonly CUDA_MODULE=build/gpu/module/libtiercel-cuda.so

die() {
  echo "gpu_check: $*" >&2
  exit 1
}

here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")

# ---- Packing ----

# Prints the libraries of a program except those of the C library, which have to
# be the machine's own.
libraries_of() {  # program
  ldd "$1" | sed -n 's/^.* => \(\/[^ ]*\) .*/\1/p' |
    grep -vE '/(libc|libm|libdl|librt|libpthread|libresolv)\.so'
}

put_program() {  # program folder [name]
  local to=$2/bin/${3:-${1##*/}} library
  cp "$1" "$to"
  strip "$to"
  for library in $(libraries_of "$1"); do
    cp -nL "$library" "$2/lib/"
  done
  # Libraries find the ones that they need by the same path.
  patchelf --force-rpath --set-rpath "\$ORIGIN/../lib" "$to"
}

# Builds the packed programs, and prints their paths.
build_programs() {  # device
  local build targets
  if [[ $1 == sim ]]; then
    build=build/cpu
    targets=(kernels_layer_tests kernels_device_matrix_step_tests
      offload_move_gpu_queues_tests tiercel_hosted_cli)
    cmake --preset cpu >/dev/null
  else
    build=build/gpu
    PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin
    command -v nvcc >/dev/null ||
      die "pack needs nvcc (CUDA Toolkit 13), and this machine has none;" \
        "'pack FOLDER sim' packs a rehearsal without"
    targets=(tiercel_gpu_tests tiercel_cli tiercel_cuda)
    # A newer compiler than ours may have more warnings.
    cmake --preset cuda -B "$build" -DTIERCEL_WERROR=OFF \
      -DCMAKE_CUDA_FLAGS=--compress-mode=size \
      -DCMAKE_CUDA_ARCHITECTURES="${CUDAARCHS:-89-real;90-real}" >/dev/null
  fi
  cmake --build "$build" --target "${targets[@]}" copy_bench kernel_bench >&2
  if [[ $1 == sim ]]; then
    printf '%s\n' "$build"/kernels/kernels_{layer,device_matrix_step}_tests \
      "$build"/offload/offload_move_gpu_queues_tests \
      "$build"/apps/tiercel_hosted
  else
    # The tests of a folder are one program.
    ctest --test-dir "$build" -N -V -L gpu |
      sed -nE 's/^.*Test command: "?([^" ]+).*/\1/p' | sort -u
    echo "$build/apps/tiercel"
  fi
  printf '%s\n' "$build"/bench/{copy,kernel}_bench
}

# Packs the real model's first layers, as many as fit.
pack_model() {  # folder
  local model layers
  model=$(tests/setup/model.sh)
  for layers in 5 4 3 2 1; do
    /usr/bin/python3 bench/make_draft.py drop --layers "$layers" --keep first \
      --embeddings q4_0 "$model" "$scratch/model.gguf"
    tar -C "$scratch" -czf "$scratch/model.tar.gz" model.gguf
    (($(stat -c %s "$scratch/model.tar.gz") > MOST_MODEL_MIB << 20)) || break
  done
  (($(stat -c %s "$scratch/model.tar.gz") <= MOST_MODEL_MIB << 20)) ||
    die "one layer of $model is more than $MOST_MODEL_MIB MiB"
  mv "$scratch/model.tar.gz" "$1/"
  echo "$1/model.tar.gz: the first $layers layers of ${model##*/}"
}

pack() {  # folder device
  local folder program programs stamp shape packed
  cd "$here/.."
  tests/setup/packages.sh test
  mkdir -p "$1"
  folder=$(realpath "$1")
  programs=$(build_programs "$2")
  # If everything to be packed is the same, so is the pack.
  # shellcheck disable=SC2086  # paths of ours
  stamp=$(
    echo "$2 $MOST_MIB $MOST_MODEL_MIB"
    [[ $2 == sim ]] || sha256sum "$CUDA_MODULE"
    sha256sum $programs tests/gpu_check.sh tests/gpu/*.py \
      bench/{make_random,make_draft,gguf_file,torch_bench}.py
    find tests/golden/checkpoints tests/golden/smollm2 -type f -exec \
      sha256sum {} + | sort
    git describe --always --dirty --exclude '*'
  )
  if [[ -e $folder/gpu-pack.tar.gz && -e $folder/model.tar.gz &&
    $(cat "$folder/stamp" 2>/dev/null) == "$stamp" ]]; then
    echo "$folder: nothing has changed"
    return
  fi
  rm -f "$folder/stamp"
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  packed=$scratch/pack
  mkdir -p "$packed"/{bin,lib,bench}
  for program in $programs; do
    if [[ $program == */tiercel_hosted ]]; then
      put_program "$program" "$packed" tiercel
    else
      put_program "$program" "$packed"
    fi
  done
  if [[ $2 != sim ]]; then
    cp "$CUDA_MODULE" "$packed/lib/"
    strip "$packed/lib/${CUDA_MODULE##*/}"
  fi
  cp -r tests/golden/checkpoints "$packed/"
  # Models come from the GGUF files, and their ids from tokens.txt.
  find "$packed/checkpoints" -type f ! -name '*.gguf' ! -name tokens.txt -delete
  cp tests/golden/smollm2/tokens.txt "$packed/"
  # With so many layers two buffers do not hold all.
  shape=(--hidden 256 --heads 8 --kv-heads 4 --ffn 512)
  [[ $2 != sim ]] || shape=(--hidden 64 --heads 2 --kv-heads 1 --ffn 128)
  /usr/bin/python3 bench/make_random.py --layers 6 --vocab 512 "${shape[@]}" \
    "$packed/checkpoints/deep.gguf"
  cp bench/{make_random,gguf_file,torch_bench}.py "$packed/bench/"
  cp -r tests/gpu_check.sh tests/gpu "$packed/"
  rm -rf "$packed/gpu/__pycache__"
  [[ $2 == sim ]] && echo sim >"$packed/device" || echo cuda >"$packed/device"
  git describe --always --dirty --exclude '*' >"$packed/commit"
  tar -C "$packed" -cf - . | gzip "-$([[ $2 == sim ]] && echo 1 || echo 9)" \
    >"$scratch/gpu-pack.tar.gz"
  (($(stat -c %s "$scratch/gpu-pack.tar.gz") <= MOST_MIB << 20)) ||
    die "the pack has $(stat -c %s "$scratch/gpu-pack.tar.gz") bytes, need" \
      "$MOST_MIB MiB at most"
  mv "$scratch/gpu-pack.tar.gz" "$folder/"
  pack_model "$folder"
  echo "$stamp" >"$folder/stamp"
  du -h "$folder"/*.tar.gz
}

# ---- Running ----

run() {  # folder [flags, steps...]
  local folder
  [[ -d $1 ]] || die "$1: no folder; need one that pack has written"
  folder=$(realpath "$1")
  shift
  command -v python3 >/dev/null || die "run needs python3"
  export OUT=${OUT:-$folder}
  if [[ ! -d $folder/bin ]]; then
    [[ -e $folder/gpu-pack.tar.gz ]] ||
      die "$folder: no gpu-pack.tar.gz; need a folder that pack has written"
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    local packed
    for packed in "$folder"/{gpu-pack,model}.tar.gz; do
      [[ ! -e $packed ]] || tar -C "$scratch" -xzf "$packed"
    done
    folder=$scratch
  fi
  python3 -B "$here/gpu/check.py" "$folder" "$@"
}

case "${1:-}" in
  pack)
    if (($# > 3)) || [[ ${3:-sim} != sim ]]; then die "pack [FOLDER [sim]]"; fi
    pack "${2:-build/gpu-pack}" "${3:-cuda}"
    ;;
  run)
    (($# >= 2)) || die "run FOLDER [--resume DIR] [--minutes N] [STEP...]"
    run "${@:2}"
    ;;
  *)
    echo "usage: gpu_check.sh pack [FOLDER [sim]] |" \
      "run FOLDER [--resume DIR] [--minutes N] [STEP...]" >&2
    exit 2
    ;;
esac
