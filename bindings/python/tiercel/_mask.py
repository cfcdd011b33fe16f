"""Masks: which tokens may follow an output, by a function of the program."""

from __future__ import annotations

import operator
from typing import Any, Callable, Iterable, Optional

from ._call import Call
from ._library import ffi
from ._structs import wrong_type

# Gets the ids of an output so far, and the bits of tiercel_mask as a bytearray,
# all allowed: id i is bit i % 8 of byte i // 8. Either changes the bits, or
# returns the ids that are allowed.
Mask = Callable[[list[int], bytearray], Optional[Iterable[int]]]


def masking(call: Call, mask: Mask) -> Any:
    """A callback that asks `mask`. The caller keeps it until the call has
    returned."""
    if not callable(mask):
        raise wrong_type("mask", "a function", mask)

    def ask(_: Any, output: Any, count: int, allowed: Any, words: int) -> int:
        # The function may keep what it is given, so that it is a copy.
        bits = bytearray(ffi.buffer(allowed, 4 * words))
        size = len(bits)
        ids = mask(ffi.unpack(output, count), bits)
        if ids is not None:
            bits = _bits_of(ids, size)
        if len(bits) != size:
            raise ValueError(f"mask: allowed has {len(bits)} bytes; need the "
                             f"{size} that it had")
        ffi.buffer(allowed, size)[:] = bits
        return 0

    return call.callback("tiercel_mask", ask)


def _bits_of(ids: Iterable[int], size: int) -> bytearray:
    bits = bytearray(size)
    for each in ids:
        token = operator.index(each)
        if not 0 <= token < 8 * size:
            raise ValueError(f"mask: {token} is no token id")
        bits[token // 8] |= 1 << (token % 8)
    return bits
