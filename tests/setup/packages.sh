#!/usr/bin/env bash
# Installs the Debian packages that are missing; does nothing if none is.
#
#   packages.sh [demo|test|full]
#
#   demo  packages to build and run Tiercel, and to fetch its model
#   test  the same, and those for tests, benches, formatting and linting; the
#         default
#   full  the same, and those for tests/full.sh
#
# Needs root, or sudo without a password, if a package is missing.
set -euo pipefail

readonly DEMO=(
  ca-certificates  # fetching
  cmake
  g++
  libabsl-dev
  libboost-context-dev  # tests: threads of a GPU, on the CPU
  libboost-dev  # the server: Boost.Beast
  libcli11-dev
  libcmark-dev  # notes: HTML
  libedit-dev  # follow-up questions
  libgmock-dev  # one CMake configuration builds and tests
  libgtest-dev
  libgumbo-dev  # documents: HTML
  libhwloc-dev
  libonig-dev  # patterns of tokenizers
  libpugixml-dev  # documents: the output of poppler's programs
  libre2-dev  # patterns of chapters
  libuchardet-dev  # documents: charsets that are not declared
  liburing-dev  # the prompt cache
  libutf8proc-dev
  libxml2-dev  # documents: EPUB's XML and XHTML
  libxxhash-dev  # the prompt cache
  libzip-dev  # documents: EPUB
  ninja-build
  nlohmann-json3-dev
  pkg-config
  poppler-data  # documents: PDF in Chinese and Japanese
  poppler-utils  # documents: PDF, by its programs
  python3
  python3-pip  # fetching the model
  unicode-data
  zlib1g-dev  # documents: PDF's page labels
)
readonly TEST=(
  ccache
  clang-format-14
  libbenchmark-dev
  patchelf  # gpu_check.sh: programs that bring their libraries
  python3-cffi  # the package for Python
  python3-numpy  # random checkpoints, logits in Python
  shellcheck
)
readonly FULL=(
  at-spi2-core  # the example with a window
  chromium  # the page of the server
  clang  # fuzzing
  clang-tidy
  dbus-daemon  # the window
  dpkg-dev
  gir1.2-atspi-2.0  # the window
  libclang-rt-14-dev
  libgtk-4-dev  # the window
  libjson-glib-dev  # the window
  lintian
  python3-gi  # the window
  python3-venv  # the wheel
  xauth  # the window
  xvfb  # the window
)

case "${1:-test}" in
  demo) wanted=("${DEMO[@]}") ;;
  test) wanted=("${DEMO[@]}" "${TEST[@]}") ;;
  full) wanted=("${DEMO[@]}" "${TEST[@]}" "${FULL[@]}") ;;
  *)
    echo "usage: packages.sh [demo|test|full]" >&2
    exit 2
    ;;
esac

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  echo "packages.sh: not a Debian system; install these by their names" \
    "there: ${wanted[*]}" >&2
  exit 1
fi

missing=()
for package in "${wanted[@]}"; do
  # Prints nothing for a package that dpkg does not know.
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || :)
  [[ $status == installed ]] || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  exit 0
fi

as_root=()
if ((EUID != 0)); then
  if ! sudo -n true 2>/dev/null; then
    echo "packages.sh: needs root; run: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo -n)
fi

echo "packages.sh: installing ${missing[*]}" >&2
apt_get() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get \
    -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 -qq -y "$@" \
    </dev/null >&2
}
apt_get update
apt_get install --no-install-recommends "${missing[@]}"
