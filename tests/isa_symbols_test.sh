#!/usr/bin/env bash
# The objects of one ISA define nothing outside its namespace. Otherwise the
# linker could keep a weak symbol of theirs (an inline function of the standard
# library, say) for the whole program, and it would run on machines that lack
# its instructions.
#
#   isa_symbols_test.sh OBJECT...
set -euo pipefail

failed=0
(($# > 0)) || { echo "isa_symbols: no objects given"; exit 1; }
for object in "$@"; do
  isa=$(grep -oE '_(portable|avx2|avxvnni|avx512vnni|avx512)\.dir' <<<"$object" |
    head -1 | sed 's/^_//; s/\.dir$//')
  # Defined symbols that other objects can see; local ones ("t") are harmless.
  symbols=$(nm --defined-only --demangle "$object")
  outside=$(grep -E '^[0-9a-f]* +[A-Zuvw] ' <<<"$symbols" |
    grep -v "tiercel::$isa::" || :)
  if [[ -n $outside ]]; then
    echo "isa_symbols: $object defines outside tiercel::$isa:"
    echo "$outside"
    failed=1
  fi
done
exit "$failed"
