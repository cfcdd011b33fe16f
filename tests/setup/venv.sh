#!/usr/bin/env bash
# Makes a virtual environment of Python with pinned packages once, and prints
# its folder.
#
#   venv.sh NAME REQUIREMENTS
#
# It is kept in the folder of caches, by the name and the contents of the file
# REQUIREMENTS, which lists packages from PyPI with their versions; each must
# have a wheel. Needs /usr/bin/python3 with venv.
set -euo pipefail

read -r sum _ < <(sha256sum "$2")
venv=${XDG_CACHE_HOME:-$HOME/.cache}/tiercel/venv-$1-${sum:0:12}
if [[ -e $venv/made ]]; then
  echo "$venv"
  exit 0
fi

mkdir -p "$(dirname "$venv")"
rm -rf "$venv"
echo "venv.sh: fetching the packages of $2" >&2
/usr/bin/python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check \
  --only-binary :all: --no-deps -r "$2" </dev/null >&2
touch "$venv/made"
echo "$venv"
