"""An exception class for each status of tiercel.h."""

from __future__ import annotations

from ._library import lib


class Error(RuntimeError):
    """A call failed.

    `code` is stable, such as "context_length_exceeded"; `status` is the number
    of a TIERCEL_* status; the message is a sentence for people.
    """

    status: int = lib.TIERCEL_FAILED

    def __init__(self, message: str, code: str = "failed",
                 status: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        if status is not None:
            self.status = status


class Failed(Error):
    """An internal failure."""


class Usage(Error):
    """A parameter is wrong, or a handle is closed or in use."""

    status = lib.TIERCEL_USAGE


class InvalidInput(Error):
    """A model or a text is invalid or unsupported."""

    status = lib.TIERCEL_INVALID_INPUT


class OutOfMemory(Error):
    """Memory does not suffice."""

    status = lib.TIERCEL_OUT_OF_MEMORY


class NoDevice(Error):
    """There is no such device, or its link fails."""

    status = lib.TIERCEL_NO_DEVICE


class IO(Error):
    """A file cannot be read or written."""

    status = lib.TIERCEL_IO


class Cancelled(Error):
    """`Session.stop` ended the call. `text` is what it had generated."""

    status = lib.TIERCEL_CANCELLED
    text: str = ""


_CLASSES = {kind.status: kind for kind in
            (Failed, Usage, InvalidInput, OutOfMemory, NoDevice, IO, Cancelled)}


def error_of(status: int, code: str, message: str) -> Error:
    """The exception for what a function returned."""
    return _CLASSES.get(status, Error)(message, code, status)
