"""A call of the library: its error, its callbacks, and the buffers it fills.

Python's lock is free while the library works; a callback takes it. An exception
in a callback, also the KeyboardInterrupt of a signal that arrived meanwhile,
ends the call, and `check` raises it again.
"""

from __future__ import annotations

from typing import Any, Callable

from ._errors import error_of
from ._library import ffi, lib, text_of

_GUESS = 1 << 14  # the first size of a buffer for JSON, in bytes


class Call:
    """The error and the callbacks of one call."""

    def __init__(self) -> None:
        self.error = new("tiercel_error")
        self._thrown: BaseException | None = None

    def callback(self, kind: str, function: Callable[..., int]) -> Any:
        """A callback of type `kind`. The caller keeps it until the call has
        returned."""
        return ffi.callback(kind, function, error=1, onerror=self._keep)

    def _keep(self, kind: Any, error: Any, traceback: Any) -> None:
        if self._thrown is None:
            self._thrown = error

    def check(self, status: int) -> None:
        """Raises what a callback raised, or the error of the call."""
        thrown, self._thrown = self._thrown, None
        if thrown is not None:
            raise thrown
        if status != lib.TIERCEL_OK:
            raise error_of(status, text_of(self.error.code),
                           text_of(self.error.message))


def new(struct: str) -> Any:
    """A struct with its size set and zeros behind it."""
    made = ffi.new(struct + " *")
    made.struct_size = ffi.sizeof(struct)
    return made


def make(function: Callable[..., int], *arguments: Any) -> None:
    """Makes a call that has no callback, and whose last argument is its
    error."""
    call = Call()
    call.check(function(*arguments, call.error))


def fill(item: str, guess: int, function: Callable[..., int]) -> Any:
    """Makes a call that fills a buffer of `guess` items, `function(buffer,
    size, error)`, and again with the room that it asks for. Returns them as a
    list, or as bytes."""
    size = ffi.new("size_t *")
    while True:
        buffer = ffi.new(item + "[]", guess)
        size[0] = guess
        call = Call()
        status = function(buffer, size, call.error)
        if status != lib.TIERCEL_BUFFER_TOO_SMALL:
            call.check(status)
            return ffi.unpack(buffer, size[0])
        guess = size[0]


def fill_json(function: Callable[..., int]) -> str:
    """The same for a JSON text, whose size counts a NUL."""
    return fill("char", _GUESS, function)[:-1].decode("utf-8", "replace")
