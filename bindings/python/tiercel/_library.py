"""The two libraries, and their headers: all that is known comes from here.

`header.i` is the headers behind the C preprocessor. The build puts it beside
the libraries, so no declaration is written a second time.
"""

from __future__ import annotations

import os
from typing import Any

import cffi

_FOLDER = os.path.dirname(os.path.abspath(__file__))


def _declared() -> cffi.FFI:
    ffi = cffi.FFI()
    with open(os.path.join(_FOLDER, "header.i"), encoding="utf-8") as file:
        ffi.cdef(file.read())
    return ffi


def _load(name: str) -> Any:
    # It stays in memory for good, as the last handles may be freed after this
    # module.
    return ffi.dlopen(os.path.join(_FOLDER, name),
                      ffi.RTLD_NOW | ffi.RTLD_LOCAL | ffi.RTLD_NODELETE)


ffi = _declared()
lib = _load("libtiercel-python.so")
documents = _load("libtiercel-documents-python.so")


def text_of(chars: Any) -> str:
    """The text of a NUL-terminated array or pointer."""
    return ffi.string(chars).decode("utf-8", "replace")


def version() -> str:
    """The library's version, commit, kind of build and ISA."""
    return text_of(lib.tiercel_version())
