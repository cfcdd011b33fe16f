#!/usr/bin/env bash
# Fetches three books once and prints the path of their folder.
#
# They come from packages of the Debian release of this machine:
#
#   policy.txt, policy.epub, policy.pdf and html/, a page for each chapter:
#             the Debian Policy Manual (debian-policy)
#   faq/      the Debian GNU/Linux FAQ (debian-faq), likewise
#   history/  A Brief History of Debian (debian-history), likewise
#
# Their texts differ a little between releases, so no checksum is pinned (apt
# checks the packages'). A file VERSION beside each has its package's version.
set -euo pipefail

books=${XDG_CACHE_HOME:-$HOME/.cache}/tiercel/books

as_root=()
if ((EUID != 0)); then
  as_root=(sudo -n)
fi
candidate() {  # package
  apt-cache policy "$1" | sed -n 's/^ *Candidate: *//p'
}
fetch() {  # package: into ./tree, its version into ./VERSION
  if [[ -z $(candidate "$1") || $(candidate "$1") == "(none)" ]]; then
    # A fresh container has no package lists.
    "${as_root[@]}" apt-get -o Acquire::Retries=3 -qq update </dev/null >&2
  fi
  echo "book.sh: fetching $1 $(candidate "$1")" >&2
  # The sandbox user of apt, if we are root, could not write into our folder.
  apt-get -o Acquire::Retries=3 -o APT::Sandbox::User=root -qq \
    download "$1" </dev/null >&2
  rm -rf tree
  dpkg-deb --extract "$1"_*.deb tree
  dpkg-deb --field "$1"_*.deb Version >VERSION
}

scratch=
trap '[[ -z $scratch ]] || rm -rf "$scratch"' EXIT
work_in_scratch() {  # beside the books, so that a move is a rename
  [[ -z $scratch ]] || return 0
  mkdir -p "$(dirname "$books")"
  scratch=$(mktemp -d "$(dirname "$books")/book.XXXXXX")
  cd "$scratch"
}

if [[ ! -f $books/VERSION ]]; then
  work_in_scratch
  fetch debian-policy
  manual=tree/usr/share/doc/debian-policy
  mkdir -p books/html
  gunzip -c "$manual/policy.txt.gz" >books/policy.txt
  gunzip -c "$manual/policy.pdf.gz" >books/policy.pdf
  cp "$manual/policy.epub" books/
  cp "$manual"/policy.html/*.html books/html/
  mv VERSION books/
  rm -rf "$books"  # from an older version of this script
  mv books "$books"
fi
english() {  # folder of the books, package, folder of its pages
  [[ ! -f $books/$1/VERSION ]] || return 0
  work_in_scratch
  fetch "$2"
  rm -rf "${books:?}/$1" "$1"
  mkdir "$1"
  cp "tree/usr/share/doc/$3"/*.en.html VERSION "$1"
  mv "$1" "$books/$1"
}
english faq debian-faq debian/FAQ
english history debian-history debian-history/docs

for book in "" faq/ history/; do
  echo "book.sh: ${book:-policy/} $(<"$books/${book}VERSION")" >&2
done
echo "$books"
