#!/usr/bin/env bash
# Fetches xgrammar's sources once and prints their path.
#
# They come from PyPI's source package (2.7 MB, the checksum is pinned). pip
# would build it to read the package's name, so its index is asked directly;
# nothing is installed or built here. Needs python3.
set -euo pipefail

readonly NAME=xgrammar-0.2.8
readonly SHA256=\
8305646fd2b319d6c3003f51a1665e54cbbe9cba1fb636bc41d0b46434ccbb80

sources=${XDG_CACHE_HOME:-$HOME/.cache}/tiercel/sources
if [[ -d $sources/$NAME ]]; then
  echo "$sources/$NAME"
  exit 0
fi

mkdir -p "$sources"
scratch=$(mktemp -d "$sources/fetch.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

echo "xgrammar.sh: fetching $NAME" >&2
index=${PIP_INDEX_URL:-https://pypi.org/simple}
python3 - "${index%/}/xgrammar/" "$NAME.tar.gz" "$scratch" <<'EOF'
import html, re, sys, urllib.parse, urllib.request

page, file, folder = sys.argv[1:]
with urllib.request.urlopen(page) as answer:
    links = re.findall(r'href="([^"]+)"', answer.read().decode())
link = next(html.unescape(link) for link in links if f"/{file}" in link)
urllib.request.urlretrieve(urllib.parse.urljoin(page, link), f"{folder}/{file}")
EOF
echo "$SHA256  $scratch/$NAME.tar.gz" | sha256sum --check --quiet >&2
tar -xzf "$scratch/$NAME.tar.gz" -C "$scratch"
mv "$scratch/$NAME" "$sources/$NAME"
echo "$sources/$NAME"
