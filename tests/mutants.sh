#!/usr/bin/env bash
# Tests the tests: applies one-line faults to a copy of the tree, one at a time,
# and expects the suite to turn red for each. A fault that survives is a hole in
# the suite, and so is one that only a time limit ends: a test must say what is
# wrong.
#
#   mutants.sh [NAME|FOLDER/...]   all of mutants.txt, or those named and those
#                                  of the files in these folders
#   mutants.sh --check             tries none, but fails if one has become stale
#
# A fault costs the objects of the files that see it, the link of one program
# and one test. Libraries are compiled file by file, so that a fault in one file
# compiles no other; tests do not change and are compiled together. The faults
# of one folder's tests are tried one after the other, in the order of their
# files, in one copy of the tree; as many folders at once as there are
# processors. The copies stay in build/mutants, so a later run builds only what
# has changed since.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

declare -A heeded=()
is_chosen() {  # name file argument...
  local name=$1 file=$2 argument chosen=1
  shift 2
  (($# > 0)) || return 0
  for argument; do
    if [[ $argument == "$name" || $argument == */ && $file == "$argument"* ]]
    then
      heeded[$argument]=1
      chosen=0
    fi
  done
  return "$chosen"
}

# Names all faults that are stale, before any is tried: those that do not apply
# to their file, have no test, or share a name.
declare -A files=()
faults=()
stale=0
while IFS='|' read -r name file from to test; do
  if [[ -v files[$name] ]]; then
    echo "mutants: there are two of the name $name" >&2
    stale=1
  fi
  files[$name]=$file
  if [[ ! -e ${test#sim/} ]]; then
    echo "mutants: there is no test $test, which $name needs" >&2
    stale=1
  fi
  if [[ ! -e $file ]] || sed "s|$from|$to|" "$file" | cmp -s - "$file"; then
    echo "mutants: $name no longer applies to $file" >&2
    stale=1
  fi
  ! is_chosen "$name" "$file" "$@" || faults+=("$name|$file|$from|$to|$test")
done < <(grep -v '^#' tests/mutants.txt)
((stale == 0)) || exit 2
if [[ ${1:-} == --check ]]; then
  echo "mutants: all ${#files[@]} apply"
  exit
fi
for argument; do
  if [[ ! -v heeded[$argument] ]]; then
    echo "mutants: there is no $argument" >&2
    exit 2
  fi
done

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p build/mutants "$scratch/tree"
exec 8>build/mutants/lock
if ! flock -n 8; then
  echo "mutants: another run uses build/mutants" >&2
  exit 2
fi
git ls-files -z --cached --others --exclude-standard |
  xargs -0 cp --parents -t "$scratch/tree"
readonly TREE=$scratch/tree

# Makes the files of a copy those of the tree. What is the same is not touched,
# so that it is not built anew.
update() {  # copy
  local copy=$1 file
  mkdir -p "$copy"
  while IFS= read -r file; do
    [[ -e $TREE/$file ]] || rm "$copy/$file"
  done < <(cd "$copy" && find . -path ./build -prune -o -type f -print)
  while IFS= read -r file; do
    cmp -s "$TREE/$file" "$copy/$file" ||
      (cd "$TREE" && cp --parents "$file" "$copy")
  done < <(cd "$TREE" && find . -type f)
}

build() {  # copy test...
  local copy=$1 test
  local targets=()
  for test in "${@:2}"; do
    case $test in
      # A script's test needs the program, and some the one that has a GPU.
      tests/*.py) targets+=(tiercel_cli tiercel_hosted_cli) ;;
      bindings/*.py) targets+=(tiercel_cli tiercel_python) ;;
      bench/answers_test.py | bench/ruler_test.py) targets+=(answers) ;;
      *.py) targets+=(tiercel_cli) ;;
      *) test=${test//[\/.]/_} && targets+=("${test%_cc}") ;;
    esac
  done
  cmake --build "$copy/build/cpu" --target "${targets[@]}" \
    >"$copy/build/cpu/build.log" 2>&1
}

outcome_of() {  # copy test: passed, failed, "timed out" or "did not build"
  local copy=$1 test=$2
  if ! build "$copy" "$test"; then
    echo "did not build"
  # The first failure is enough: the cases after it may take forever.
  elif GTEST_THROW_ON_FAILURE=1 ctest --test-dir "$copy/build/cpu" \
    -C sim -R "^$test\$" --no-tests=error --timeout 300 \
    >"$copy/build/cpu/test.log" 2>&1; then
    echo passed
  elif grep -qF '***Timeout' "$copy/build/cpu/test.log"; then
    echo "timed out"
  else
    echo failed
  fi
}

# Tries the faults of one group, in the order of their files; writes the names
# of the survivors to a file.
try_group() {  # copy group
  local copy=$1 group=$2
  local name file from to test outcome began
  local tests=()
  mapfile -t tests < <(sed 's/.*|//' "$group" | sort -u)
  # A red test means something only if it was green before.
  for test in "${tests[@]}"; do
    if [[ $(outcome_of "$copy" "$test") != passed ]]; then
      echo "mutants: $test does not pass without a fault" >&2
      return 1
    fi
  done
  while IFS='|' read -ru 3 name file from to test; do
    began=$SECONDS
    sed "s|$from|$to|" "$TREE/$file" >"$copy/$file"
    outcome=$(outcome_of "$copy" "$test")
    case $outcome in
      failed) outcome=killed ;;
      passed) outcome=survived ;;
    esac
    printf '%-20s %-14s %4d s  %s\n' "$name" "$outcome" $((SECONDS - began)) \
      "$test"
    [[ $outcome == killed ]] || echo "$name" >>"$scratch/survivors"
    cp "$TREE/$file" "$copy/$file"
  done 3< <(sort -st '|' -k 2,2 "$group")
}

try_groups() {  # copy: those that no other worker has taken
  local copy=$1 group
  for group in "${groups[@]}"; do
    ! mkdir "$group.taken" 2>/dev/null || try_group "$copy" "$group"
  done
}

# The faults of one folder's tests are a group; the largest are tried first.
for fault in "${faults[@]}"; do
  folder=$(dirname "${fault##*|}")
  echo "$fault" >>"$scratch/group-${folder//\//-}"
done
mapfile -t groups < <(wc -l "$scratch"/group-* | sort -rn |
  sed -n 's/.* \(\/.*\)/\1/p')

# Builds the copies one after the other: ccache has for the second what the
# first has compiled.
mapfile -t tests < <(printf '%s\n' "${faults[@]##*|}" | sort -u)
copies=()
for ((worker = 0; worker < $(nproc) && worker < ${#groups[@]}; ++worker)); do
  copy=$PWD/build/mutants/$worker
  update "$copy"
  cmake -S "$copy" --preset cpu -DTIERCEL_UNITY=TESTS >/dev/null
  build "$copy" "${tests[@]}" || :  # each test is built again below
  copies+=("$copy")
done

running=()
for copy in "${copies[@]}"; do
  try_groups "$copy" &
  running+=($!)
done
failed=0
for worker in "${running[@]}"; do
  wait "$worker" || failed=1
done
((failed == 0)) || exit 1

survivors=()
[[ ! -e $scratch/survivors ]] || mapfile -t survivors <"$scratch/survivors"
echo "$((${#faults[@]} - ${#survivors[@]})) killed," \
  "${#survivors[@]} not: ${survivors[*]:-none}"
((${#survivors[@]} == 0))
