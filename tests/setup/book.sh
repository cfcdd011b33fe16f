#!/usr/bin/env bash
# Fetches a book once, in four formats, and prints the folder it is in.
#
# The book is the Debian Policy Manual, from the package debian-policy of the
# Debian release this runs on: policy.txt, policy.epub, policy.pdf and html/, a
# page for each chapter. Its text differs a little between releases, so no
# checksum is pinned (apt checks the package's); VERSION says which one it is.
set -euo pipefail

books=${XDG_CACHE_HOME:-$HOME/.cache}/tiercel/books
if [[ -f $books/VERSION ]]; then
  echo "book.sh: debian-policy $(<"$books/VERSION")" >&2
  echo "$books"
  exit 0
fi

as_root=()
if ((EUID != 0)); then
  as_root=(sudo -n)
fi
candidate() {
  apt-cache policy debian-policy | sed -n 's/^ *Candidate: *//p'
}
if [[ -z $(candidate) || $(candidate) == "(none)" ]]; then
  # A fresh container has no package lists.
  "${as_root[@]}" apt-get -o Acquire::Retries=3 -qq update </dev/null >&2
fi

parent=$(dirname "$books")
mkdir -p "$parent"
scratch=$(mktemp -d "$parent/book.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

echo "book.sh: fetching debian-policy $(candidate)" >&2
# The sandbox user, where we are root, could not write into our folder.
apt-get -o Acquire::Retries=3 -o APT::Sandbox::User=root -qq \
  download debian-policy </dev/null >&2
dpkg-deb --extract debian-policy_*.deb tree
manual=tree/usr/share/doc/debian-policy
mkdir books
gunzip -c "$manual/policy.txt.gz" >books/policy.txt
gunzip -c "$manual/policy.pdf.gz" >books/policy.pdf
cp "$manual/policy.epub" books/
mkdir books/html
cp "$manual"/policy.html/*.html books/html/
dpkg-deb --field debian-policy_*.deb Version >books/VERSION
rm -rf "$books"  # of an older version of this script
mv books "$books"
echo "book.sh: debian-policy $(<"$books/VERSION")" >&2
echo "$books"
