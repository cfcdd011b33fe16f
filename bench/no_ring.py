#!/usr/bin/env python3
"""Runs a program to which the kernel refuses io_uring, as many sandboxes do.

  bench/no_ring.py PROGRAM [ARG...]

Linux alone. Standard library only.
"""

import ctypes
import errno
import os
import struct
import sys

IO_URING_SETUP = 425  # on every architecture
REFUSAL = errno.ENOANO  # no kernel returns it, so a test can tell this refusal

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 22, 38
SECCOMP_MODE_FILTER = 2
RETURN_ALLOW, RETURN_ERRNO = 0x7FFF0000, 0x00050000
LOAD_NUMBER, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06  # classic BPF


def refuse_rings():
    """Makes io_uring_setup fail in this process and its children."""
    filters = b"".join(
        struct.pack("=HBBI", *instruction) for instruction in (
            (LOAD_NUMBER, 0, 0, 0),
            (JUMP_EQUAL, 0, 1, IO_URING_SETUP),
            (RETURN, 0, 0, RETURN_ERRNO | REFUSAL),
            (RETURN, 0, 0, RETURN_ALLOW)))
    code = ctypes.create_string_buffer(filters, len(filters))
    program = struct.pack("@HP", len(filters) // 8, ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in ((PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
                      (PR_SET_SECCOMP, SECCOMP_MODE_FILTER,
                       ctypes.c_char_p(program), 0, 0)):
        if libc.prctl(*arguments) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    refuse_rings()
    os.execvp(sys.argv[1], sys.argv[1:])
