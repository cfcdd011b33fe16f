"""Handles of models and sessions, which no call loses while it uses them."""

from __future__ import annotations

import contextlib
import threading
from typing import Any, Callable, Iterator

from ._errors import Usage
from ._library import ffi


class Handle:
    """A pointer that is freed once it is closed and no call uses it."""

    def __init__(self, name: str, free: Callable[[Any], None]) -> None:
        self._name = name
        self.kind = f"tiercel_{name} *"
        self._free = free
        self._place = ffi.new(self.kind + "*")
        self._users = 0
        self._lock = threading.RLock()  # a signal handler may use it, too
        self.closed = False

    @property
    def place(self) -> Any:
        """The place for the pointer, for the function that makes the object."""
        return self._place

    @contextlib.contextmanager
    def use(self, is_held: bool = False) -> Iterator[Any]:
        """The pointer for a call, even if another thread closes meanwhile.

        With `is_held` it may have been closed while another use of it lasts.
        """
        with self._lock:
            if not is_held:
                self.check()
            self._users += 1
        try:
            yield self._place[0]
        finally:
            with self._lock:
                self._users -= 1
                if self.closed:
                    self._free_unused()

    def check(self) -> None:
        """Raises an error if it is closed."""
        if self.closed:
            raise Usage(f"the {self._name} is closed", "closed")

    def close(self, end_call: Callable[[Any], None] | None = None) -> None:
        """Closes it; `end_call` ends a call that uses it."""
        with self._lock:
            self.closed = True
            if self._users > 0 and end_call is not None:
                end_call(self._place[0])
            self._free_unused()

    def _free_unused(self) -> None:
        if self._users == 0:
            pointer, self._place[0] = self._place[0], ffi.NULL
            self._free(pointer)

    def __del__(self) -> None:
        # No call can use an object without references; the generator of a
        # `use` that was left in the same garbage may still end after this.
        self._users = 0
        self.closed = True
        self._free_unused()
