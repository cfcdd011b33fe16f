"""A session: a sequence of tokens with its KV cache."""

from __future__ import annotations

import contextlib
import json
from functools import partial
from typing import (TYPE_CHECKING, Any, Callable, ContextManager, Iterable,
                    Iterator, Literal, Mapping, Sequence, Union, overload)

from ._call import Call, fill, fill_json, make, new
from ._errors import Cancelled, Usage
from ._handle import Handle
from ._library import ffi, lib
from ._mask import Mask, masking
from ._model import Message, Model, chat_tokens, prompt_tokens
from ._progress import Progress, reporting
from ._stream import Decoder, Generation, Piece, Stream, Token
from ._structs import count_of, filled, ids_of, wrong_type

if TYPE_CHECKING:
    import numpy

Prompt = Union[str, Sequence[int]]
OnThought = Callable[[str], Any]
OnToken = Callable[[Token], Any]


class Session:
    """One sequence of tokens of a model; calls on it take turns.

    `params` are the fields of tiercel_session_params, such as context=8192 or
    policy={"name": "triforce", "draft": "ngram"}; policy="triforce" is short
    for one with a name alone. Only `stop`, `length` and `close` may be called
    during a call of another thread, which `close` ends.

    `messages` is the talk so far, for `chat`; a program may change it.
    """

    def __init__(self, model: Model, **params: Any) -> None:
        if not isinstance(model, Model):
            raise wrong_type("Session: model", "a Model", model)
        with filled("tiercel_session_params", params, "Session") as struct:
            self._begin(model, model._handle.use(), lambda place, error:
                        lib.tiercel_session_create(self._pointer, struct, place,
                                                   error))

    def _begin(self, model: Model, hold: ContextManager[Any],
               create: Callable[[Any, Any], int]) -> None:
        self.model = model
        self.messages: list[Message] = []
        self._generation: Generation | None = None
        # The session needs the model's tokens even if that is closed.
        held = contextlib.ExitStack()
        self._pointer = held.enter_context(hold)

        def free(session: Any) -> None:
            lib.tiercel_session_free(session)
            held.close()

        self._handle = Handle("session", free)
        try:
            make(create, self._handle.place)
        except BaseException:
            self._handle.close()
            raise

    def close(self) -> None:
        """Ends what the session does, and frees it."""
        self._end_stream()
        self._handle.close(lib.tiercel_session_cancel)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._handle.closed else f"{self.length} tokens"
        return f"<tiercel.Session of {self.model!r}: {state}>"

    def fork(self) -> Session:
        """A second session with the same tokens, and messages."""
        copy = Session.__new__(Session)
        with self._idle() as session:
            copy._begin(self.model, self.model._handle.use(is_held=True),
                        partial(lib.tiercel_session_fork, session))
        copy.messages = [dict(message) for message in self.messages]
        return copy

    # ---- Text ----------------------------------------------------------------

    @overload
    def generate(self, prompt: Prompt | None = None, *,
                 max_tokens: int | None = None, temperature: float = 0.0,
                 seed: int = 0, stop: str | Sequence[str] | None = None,
                 stream: Literal[False] = False,
                 on_thought: OnThought | None = None,
                 on_token: OnToken | None = None, mask: Mask | None = None,
                 progress: Progress = None, **sampling: Any) -> str: ...

    @overload
    def generate(self, prompt: Prompt | None = None, *,
                 max_tokens: int | None = None, temperature: float = 0.0,
                 seed: int = 0, stop: str | Sequence[str] | None = None,
                 stream: Literal[True], on_thought: OnThought | None = None,
                 on_token: OnToken | None = None, mask: Mask | None = None,
                 progress: Progress = None, **sampling: Any) -> Stream: ...

    def generate(self, prompt: Prompt | None = None, *,
                 max_tokens: int | None = None, temperature: float = 0.0,
                 seed: int = 0, stop: str | Sequence[str] | None = None,
                 stream: bool = False, on_thought: OnThought | None = None,
                 on_token: OnToken | None = None, mask: Mask | None = None,
                 progress: Progress = None, **sampling: Any) -> str | Stream:
        """The text behind `prompt`, a str or an iterator of its pieces.

        A prompt takes the place of the tokens held, but what they share is not
        computed again; text begins with BOS as `tiercel generate` begins it.
        Without one the text goes on behind the tokens held. `max_tokens` None:
        to the end of the context. `sampling` are the other fields of
        tiercel_sampling: top_k, top_p, dry_multiplier, ... With
        split_thought=True the thought goes to `on_thought`. `mask` chooses the
        tokens that may follow, as tiercel_mask: it is given the ids of the
        output so far, and the bits of all tokens in a bytearray, of which it
        clears some, or returns the ids that are allowed. `on_token` is given
        each Token, of a stream as it is taken.

        A stream reads the prompt before it is returned.
        """
        settings = {"max_tokens": max_tokens, "temperature": temperature,
                    "seed": seed, "stop": stop, **sampling}

        def read(session: Any) -> None:
            if prompt is not None:
                ids = prompt_tokens(self._pointer, prompt, lib.TIERCEL_ADD_BOS,
                                    "generate: prompt")
                self._read(session, ids, progress)

        return self._run("generate", read, settings, mask, stream,
                         _Answer(self, None, on_thought, on_token))

    @overload
    def chat(self, message: str | Iterable[Message], *,
             max_tokens: int | None = None, temperature: float = 0.0,
             seed: int = 0, stop: str | Sequence[str] | None = None,
             stream: Literal[False] = False, think: bool | None = None,
             template_kwargs: Mapping[str, Any] | None = None,
             split_thought: bool = True, on_thought: OnThought | None = None,
             on_token: OnToken | None = None, mask: Mask | None = None,
             progress: Progress = None, **sampling: Any) -> str: ...

    @overload
    def chat(self, message: str | Iterable[Message], *,
             max_tokens: int | None = None, temperature: float = 0.0,
             seed: int = 0, stop: str | Sequence[str] | None = None,
             stream: Literal[True], think: bool | None = None,
             template_kwargs: Mapping[str, Any] | None = None,
             split_thought: bool = True, on_thought: OnThought | None = None,
             on_token: OnToken | None = None, mask: Mask | None = None,
             progress: Progress = None, **sampling: Any) -> Stream: ...

    def chat(self, message: str | Iterable[Message], *,
             max_tokens: int | None = None, temperature: float = 0.0,
             seed: int = 0, stop: str | Sequence[str] | None = None,
             stream: bool = False, think: bool | None = None,
             template_kwargs: Mapping[str, Any] | None = None,
             split_thought: bool = True, on_thought: OnThought | None = None,
             on_token: OnToken | None = None, mask: Mask | None = None,
             progress: Progress = None, **sampling: Any) -> str | Stream:
        """The answer to a message, as `generate`, by the model's template.

        A str goes on with the talk in `messages`; other messages take its
        place. Afterwards the answer is the last message, with the thought as
        its "reasoning". A stream adds to it as pieces are taken; the talk is as
        before if none was.
        """
        settings = {"max_tokens": max_tokens, "temperature": temperature,
                    "seed": seed, "stop": stop,
                    "split_thought": bool(split_thought), **sampling}
        if isinstance(message, str):
            talk = [*self.messages, {"role": "user", "content": message}]
        else:
            talk = list(message)

        def read(session: Any) -> None:
            ids = chat_tokens(self._pointer, talk, think, template_kwargs)
            self._read(session, ids_of(ids, "chat: messages"), progress)

        return self._run("chat", read, settings, mask, stream,
                         _Answer(self, talk, on_thought, on_token))

    def stop(self) -> None:
        """Ends the call that works, with Cancelled; from any thread. Without
        one it does nothing."""
        _stop(self._handle)

    # ---- Tokens --------------------------------------------------------------

    @property
    def length(self) -> int:
        """The tokens held; during a call, those that were held before it."""
        with self._handle.use() as session:
            return lib.tiercel_session_length(session)

    @property
    def ids(self) -> list[int]:
        """The ids of the tokens held."""
        with self._idle() as session:
            return fill("int32_t", lib.tiercel_session_length(session),
                        partial(lib.tiercel_session_ids, session))

    def read(self, prompt: Prompt, *, progress: Progress = None) -> None:
        """Makes the session hold a prompt, as `generate` does. `progress` is in
        tokens."""
        with self._working() as session:
            ids = prompt_tokens(self._pointer, prompt, lib.TIERCEL_ADD_BOS,
                                "read: prompt")
            self._read(session, ids, progress)

    def append(self, prompt: Prompt, *, progress: Progress = None) -> None:
        """Adds tokens behind those held. Text begins with BOS only if the
        session is empty."""
        with self._working() as session:
            ids = self._next_tokens(session, prompt, "append: prompt")
            self._read(session, ids, progress, lib.tiercel_session_prefill)

    def truncate(self, length: int) -> None:
        """Drops all tokens from `length` on."""
        with self._working() as session:
            make(lib.tiercel_session_truncate, session,
                 count_of(length, "truncate: length"))

    def trim(self) -> None:
        """Gives back the memory of tokens that were dropped."""
        with self._working() as session:
            make(lib.tiercel_session_trim, session)

    def score(self, prompt: Prompt, *, rows_per_step: int = 0,
              on_row: Callable[[int, numpy.ndarray], Any] | None = None
              ) -> numpy.ndarray | None:
        """Adds tokens, as `append`, and returns their logits.

        These are float32 [tokens, vocab], and row i has those of the token
        after tokens[i]. With `on_row` each is given to it, as (i, row), and
        none is kept. Needs numpy.
        """
        numpy = _numpy()
        with self._working() as session:
            ids = self._next_tokens(session, prompt, "score: prompt")
            vocab = self._info().vocab
            rows = None
            if on_row is None:
                rows = numpy.empty((len(ids), vocab), numpy.float32)
                on_row = rows.__setitem__
            call = Call()

            def take(_: Any, index: int, logits: Any) -> int:
                row = numpy.frombuffer(ffi.buffer(logits, 4 * vocab),
                                       numpy.float32)
                on_row(index, row if rows is not None else row.copy())
                return 0

            callback = call.callback("tiercel_on_row", take)
            call.check(lib.tiercel_session_score(
                session, ids, len(ids), count_of(rows_per_step,
                                                 "score: rows_per_step"),
                callback, ffi.NULL, call.error))
            return rows

    # ---- Figures -------------------------------------------------------------

    def report(self) -> dict[str, Any]:
        """The figures of the last prefill and generation, as `tiercel generate
        --json` has them: text, reasoning, finish, ttft_s, tbt_ms, ..."""
        with self._idle() as session:
            return json.loads(fill_json(partial(lib.tiercel_session_report,
                                                session)))

    # ---- Calls ---------------------------------------------------------------

    @contextlib.contextmanager
    def _idle(self) -> Iterator[Any]:
        """The handle, once a stream that was dropped has ended."""
        with self._handle.use() as session:
            if self._generation is not None:
                self._generation.settle()
            yield session

    @contextlib.contextmanager
    def _working(self) -> Iterator[Any]:
        """The handle for work that ends a stream. A stop that came too late for
        earlier work does not end it."""
        with self._handle.use() as session:
            self._end_stream()
            lib.tiercel_session_clear_cancel(session)
            self._handle.check()  # `close` may just have cancelled
            yield session

    def _end_stream(self) -> None:
        generation, self._generation = self._generation, None
        if generation is not None:
            generation.abandon()
            generation.settle()

    def _info(self) -> Any:
        info = new("tiercel_model_info")
        make(lib.tiercel_model_get_info, self._pointer, info)
        return info

    def _next_tokens(self, session: Any, prompt: Prompt, place: str) -> Any:
        is_first = lib.tiercel_session_length(session) == 0
        return prompt_tokens(self._pointer, prompt,
                             lib.TIERCEL_ADD_BOS * is_first, place)

    def _read(self, session: Any, ids: Any, progress: Progress,
              how: Callable[..., int] = lib.tiercel_session_read) -> None:
        call = Call()
        # The library counts token-layers.
        with reporting(call, progress, "reading", "tok",
                       max(self._info().layers, 1)) as callback:
            status = how(session, ids, len(ids), callback, ffi.NULL, call.error)
        call.check(status)

    def _run(self, caller: str, read: Callable[[Any], None],
             settings: dict[str, Any], mask: Mask | None, stream: bool,
             answer: _Answer) -> str | Stream:
        talk = self.messages
        with contextlib.ExitStack() as stack:
            session = stack.enter_context(self._working())
            sampling = stack.enter_context(
                filled("tiercel_sampling", settings, caller))
            read(session)
            if stream:
                return self._stream(session, sampling, mask, answer,
                                    stack.pop_all())
            text: list[str] = []

            def put(piece: Piece) -> bool:
                answer(piece)
                text.append(piece.text)
                return False

            try:
                _generate(session, sampling, mask, put)
                answer(None)
            except BaseException as error:
                self.messages = talk
                if isinstance(error, Cancelled):
                    error.text = "".join(text)
                raise
            return "".join(text)

    def _stream(self, session: Any, sampling: Any, mask: Mask | None,
                answer: _Answer, used: contextlib.ExitStack) -> Stream:
        begin = lib.tiercel_session_length(session)

        def generate(put: Callable[[Piece], bool]) -> None:
            _generate(session, sampling, mask, put)

        def end(kept: int | None) -> None:
            with used:
                if kept is not None:
                    make(lib.tiercel_session_truncate, session, begin + kept)

        self._generation = Generation(
            generate, partial(_stop, self._handle), end)
        return Stream(self._generation, answer)


class _Answer:
    """Takes the pieces of an answer: adds them to the talk behind `messages`,
    if there are some, and gives the thought to `on_thought` and the tokens to
    `on_token`."""

    def __init__(self, session: Session, messages: list[Message] | None,
                 on_thought: OnThought | None, on_token: OnToken | None
                 ) -> None:
        self._session = session
        self._messages = messages
        self._on_thought = on_thought
        self._on_token = on_token
        self._answer: dict[str, str] | None = None

    def __call__(self, piece: Piece | None) -> None:
        """Takes a piece, or None at the end."""
        if piece is not None and self._on_token is not None:
            self._on_token(piece.token)
        if piece is not None and not piece.text and not piece.thought:
            return
        if self._messages is not None:
            if self._answer is None:
                self._answer = {"role": "assistant", "content": ""}
                self._session.messages = [*self._messages, self._answer]
            if piece is not None:
                self._answer["content"] += piece.text
                if piece.thought:
                    self._answer["reasoning"] = (
                        self._answer.get("reasoning", "") + piece.thought)
        if piece is not None and piece.thought and self._on_thought is not None:
            self._on_thought(piece.thought)


def _stop(handle: Handle) -> None:
    with contextlib.suppress(Usage), handle.use() as session:
        lib.tiercel_session_cancel(session)


def _generate(session: Any, sampling: Any, mask: Mask | None,
              put: Callable[[Piece], bool]) -> None:
    call = Call()
    if mask is not None:
        asked = masking(call, mask)
        sampling.mask = asked
    decoder = Decoder()

    def on_token(_: Any, token: Any) -> int:
        return put(decoder.piece(
            token.id, _bytes(token.text, token.text_bytes),
            _bytes(token.thought, token.thought_bytes), token.log_prob,
            [(token.top_ids[i], token.top_log_probs[i])
             for i in range(token.num_top)]))

    callback = call.callback("tiercel_on_token", on_token)
    call.check(lib.tiercel_session_generate(session, sampling, callback,
                                            ffi.NULL, call.error))


def _bytes(text: Any, count: int) -> bytes:
    return ffi.unpack(text, count) if count > 0 else b""


def _numpy() -> Any:
    try:
        import numpy
    except ImportError as error:
        raise ImportError("Session.score needs numpy, which is not "
                          "installed") from error
    return numpy
