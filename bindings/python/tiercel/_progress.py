"""Progress of long work: a function of the caller's, or a bar by tqdm."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator, Union

from ._call import Call
from ._structs import wrong_type

# True draws a bar if tqdm is installed; a function is called as (done, total).
Progress = Union[bool, None, Callable[[int, int], Any]]


@contextlib.contextmanager
def reporting(call: Call, progress: Progress, name: str, unit: str,
              each: int = 1) -> Iterator[Any]:
    """A callback of `call` that reports to `progress` in units of `each`.

    There is always one: it lets Python see the signals that have arrived.
    """
    tell: Callable[[int, int], Any] | None
    if progress is True:
        tell = _Bar(name, unit)
    elif callable(progress):
        tell = progress
    elif not progress:
        tell = None
    else:
        raise wrong_type("progress", "a bool or a function of two integers",
                         progress)

    def report(_: Any, done: int, total: int) -> int:
        if tell is not None:
            tell(done // each, total // each)
        return 0

    try:
        yield call.callback("tiercel_progress", report)
    finally:
        if isinstance(tell, _Bar):
            tell.close()


class _Bar:
    """A bar that is drawn from its first call on, if tqdm is installed."""

    def __init__(self, name: str, unit: str) -> None:
        self._look = {"desc": name, "unit": unit, "unit_scale": True}
        self._bar: Any = None
        try:
            from tqdm.auto import tqdm
            self._make = tqdm
        except ImportError:
            self._make = None

    def __call__(self, done: int, total: int) -> None:
        if self._make is None:
            return
        if self._bar is None:
            self._bar = self._make(total=total, **self._look)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
