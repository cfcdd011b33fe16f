"""Text that comes while a thread generates it."""

from __future__ import annotations

import atexit
import codecs
import collections
import os
import threading
import weakref
from typing import Any, Callable, Iterator, NamedTuple

from ._errors import Cancelled, Error

# The most pieces that a thread is ahead of the iterator.
_MOST_AHEAD = 16

# Generations whose thread may run.
_running: weakref.WeakSet[Generation] = weakref.WeakSet()


class Token(NamedTuple):
    """A generated token. The last two have values with log_probs=1, as
    tiercel_token has them."""

    id: int
    text: str
    thought: str
    log_prob: float
    top_log_probs: list[tuple[int, float]]  # by id, the most likely first


class Piece(NamedTuple):
    """The text of some tokens, whole characters."""

    text: str
    thought: str
    tokens: int  # generated up to here
    token: Token  # the last of them


class Decoder:
    """Makes pieces of the bytes of tokens."""

    def __init__(self) -> None:
        self._text, self._thought = (
            codecs.getincrementaldecoder("utf-8")("replace") for _ in range(2))
        self._tokens = 0

    def piece(self, id: int, text: bytes, thought: bytes, log_prob: float,
              top_log_probs: list[tuple[int, float]]) -> Piece:
        self._tokens += 1
        token = Token(id, self._text.decode(text),
                      self._thought.decode(thought), log_prob, top_log_probs)
        return Piece(token.text, token.thought, self._tokens, token)


class Generation:
    """A thread that makes pieces, and those that wait to be taken.

    `generate(put)` makes them: put(piece) returns True once it is to end.
    `stop` ends it from another thread. `end(kept)` is called at its end: with
    None, or with the number of tokens that were taken if it was abandoned.
    """

    def __init__(self, generate: Callable[[Callable[[Piece], bool]], None],
                 stop: Callable[[], None],
                 end: Callable[[int | None], None]) -> None:
        self._stop = stop
        self._taken = 0  # tokens
        self._pieces: collections.deque[Piece] = collections.deque()
        self._changed = threading.Condition()  # the fields below
        self._ended = False
        self._abandoned = False
        self._error: BaseException | None = None
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._run, daemon=True,
                                        args=(generate, end))
        _running.add(self)
        self._thread.start()

    def take(self) -> Piece | None:
        """Waits for a piece; None at the end. Raises what ended it, once, when
        all pieces before have been taken."""
        with self._changed:
            while not self._pieces and not self._ended:
                self._changed.wait()
            if self._pieces:
                piece = self._pieces.popleft()
                self._taken = piece.tokens
                self._changed.notify_all()
                return piece
            error, self._error = self._error, None
        if error is not None:
            raise error
        return None

    def abandon(self) -> None:
        """Lets it end soon. Pieces that were not taken are dropped, from the
        session, too."""
        if self._process != os.getpid():  # the thread did not come along
            return
        with self._changed:
            self._abandoned = True
            self._pieces.clear()
            if not self._ended:
                self._stop()
            self._changed.notify_all()

    def settle(self) -> None:
        """Waits for the end, if it is near."""
        if (self._process == os.getpid() and
                (self._abandoned or self._ended) and
                threading.current_thread() is not self._thread):
            self._thread.join()

    def _run(self, generate: Callable[..., None],
             end: Callable[[int | None], None]) -> None:
        error: BaseException | None = None
        try:
            generate(self._put)
        except BaseException as raised:
            error = raised
        with self._changed:
            # All pieces are taken before the end, unless it is abandoned.
            while self._pieces and not self._abandoned:
                self._changed.wait()
            if self._abandoned:
                error = Cancelled("the stream was closed", "cancelled")
            try:
                end(self._taken if self._abandoned else None)
            except Error as raised:
                error = raised
            self._error = error
            self._ended = True
            self._changed.notify_all()

    def _put(self, piece: Piece) -> bool:
        with self._changed:
            while len(self._pieces) >= _MOST_AHEAD and not self._abandoned:
                self._changed.wait()
            if not self._abandoned:
                self._pieces.append(piece)
                self._changed.notify_all()
            return self._abandoned


class Stream(Iterator[str]):
    """The answer of a session, in pieces of whole characters.

    It ends with the answer. One that is closed or dropped before, or whose
    session is given other work, ends the generation; the session then holds
    the tokens of the pieces that were taken, and no more.
    """

    def __init__(self, generation: Generation,
                 said: Callable[[Piece | None], None]) -> None:
        self._generation = generation
        self._said = said  # told of each piece, and of the end by None

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> str:
        while True:
            try:
                piece = self._generation.take()
            except KeyboardInterrupt:
                self.close()
                raise
            self._said(piece)
            if piece is None:
                raise StopIteration
            if piece.text:
                return piece.text

    def close(self) -> None:
        """Ends the generation, if it has not ended."""
        self._generation.abandon()
        self._generation.settle()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        # The session waits for the end: here, anything may be locked.
        self._generation.abandon()


@atexit.register
def _end_all() -> None:
    for generation in list(_running):
        generation.abandon()
        generation.settle()
