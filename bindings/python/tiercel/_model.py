"""A model, which any thread may use."""

from __future__ import annotations

import json
import os
from functools import partial
from typing import Any, Iterable, Mapping, Sequence, Union

from ._call import Call, fill, fill_json, make, new
from ._handle import Handle
from ._library import ffi, lib, text_of
from ._log import log
from ._progress import Progress, reporting
from ._structs import (check_names, count_of, filled, ids_of, parameters, sequence, utf8,
                       wrong_type)

Path = Union[str, "os.PathLike[str]"]
# {"role": "user", "content": "..."}, and "reasoning" in an assistant's.
Message = Mapping[str, str]

_MESSAGE = ("role", "content", "reasoning")


class Model:
    """A checkpoint: a GGUF file, the first of a split, or a folder.

    `params` are the fields of tiercel_model_params, such as threads=4 or
    load="header", which reads no weights: enough for `plan`, `describe` and
    tokens. `progress` is in bytes. A model may be closed before its sessions.
    Their log is the logger "tiercel".
    """

    def __init__(self, path: Path, *, progress: Progress = None,
                 **params: Any) -> None:
        self.path = path
        self._handle = Handle("model", lib.tiercel_model_free)
        call = Call()
        with filled("tiercel_model_params", {"path": path, **params},
                    "Model") as struct, \
                reporting(call, progress, "loading", "B") as callback:
            struct.progress = callback
            struct.log = log
            status = lib.tiercel_model_open(struct, self._handle.place,
                                            call.error)
        call.check(status)

    def close(self) -> None:
        """Frees the model once no call uses it; its sessions stay."""
        self._handle.close()

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        closed = " (closed)" if self._handle.closed else ""
        return f"<tiercel.Model {os.fspath(self.path)!r}{closed}>"

    def describe(self) -> dict[str, Any]:
        """The checkpoint, as `tiercel inspect --json` has it."""
        with self._handle.use() as model:
            return json.loads(fill_json(partial(lib.tiercel_model_describe,
                                                model)))

    @property
    def info(self) -> dict[str, Any]:
        """The fields of tiercel_model_info: vocab, context, layers, ...;
        "end_ids" is a list."""
        info = new("tiercel_model_info")
        with self._handle.use() as model:
            make(lib.tiercel_model_get_info, model, info)
            ends = [info.end_ids[i] for i in range(info.num_end_ids)]
            return {name: ends if name == "end_ids"
                    else _value(getattr(info, name))
                    for name in parameters("tiercel_model_info")
                    if name != "num_end_ids"}

    def set_threads(self, threads: int) -> None:
        """Has only so many threads compute, at most those that it was opened
        with, also in a call that works; results are the same."""
        with self._handle.use() as model:
            make(lib.tiercel_model_set_threads, model,
                 count_of(threads, "set_threads: threads", 1 << 31))

    def trim(self) -> None:
        """Gives memory back that the next call takes again."""
        with self._handle.use() as model:
            make(lib.tiercel_trim, model)

    def tokenize(self, text: str, *, add_bos: bool = True,
                 parse_special: bool = False) -> list[int]:
        """The ids of a text, which begins as texts of the checkpoint do.

        With `parse_special` "<|im_start|>" is that token, else it is text.
        """
        with self._handle.use() as model:
            return _tokens(model, text, _flags(add_bos, parse_special),
                           "tokenize: text")

    def detokenize(self, ids: Sequence[int], *, parse_special: bool = False,
                   errors: str = "replace") -> str:
        """The text of ids. Control tokens are left out, or spelled with
        `parse_special`; bytes that are no whole character go by `errors`."""
        array = ids_of(ids, "detokenize: ids")
        with self._handle.use() as model:
            text = fill("char", 8 * len(array), partial(
                lib.tiercel_detokenize, model, array, len(array),
                _flags(False, parse_special)))
        return text.decode("utf-8", errors)

    def chat_tokens(self, messages: Iterable[Message], *,
                    think: bool | None = None,
                    template_kwargs: Mapping[str, Any] | None = None,
                    continue_last: bool = False) -> list[int]:
        """The ids of a talk by the checkpoint's own template, up to the start
        of the next answer; with `continue_last` to the end of the last message,
        an answer that `Session.generate` continues."""
        with self._handle.use() as model:
            return chat_tokens(model, messages, think, template_kwargs,
                               continue_last)

    def plan(self, **params: Any) -> dict[str, Any]:
        """The memory, and if cache_dir has rates the times, of
        Session(model, **params), which is not created."""
        with self._handle.use() as model, \
                filled("tiercel_session_params", params, "plan") as struct:
            return json.loads(fill_json(partial(lib.tiercel_plan, model,
                                                struct)))

    def cached_tokens(self, ids: Sequence[int], *, progress: Progress = None,
                      **params: Any) -> int:
        """The number of the first `ids` whose KV Session(model, **params)
        would open from its `prompt_cache_dir`."""
        call = Call()
        tokens = ffi.new("int64_t*")
        with self._handle.use() as model, \
                filled("tiercel_session_params", params,
                       "cached_tokens") as struct, \
                reporting(call, progress, "reading", "") as callback:
            array = ids_of(ids, "cached_tokens: ids")
            status = lib.tiercel_cached_tokens(
                model, struct, array, len(array), callback, ffi.NULL, tokens,
                call.error)
        call.check(status)
        return tokens[0]

    def measure(self, cache_dir: Path, *, again_seconds: float = 0,
                progress: Progress = None, **params: Any) -> dict[str, Any]:
        """Measures how fast this machine runs Session(model, **params), and
        keeps the rates in `cache_dir`, where plans find them."""
        measured = new("tiercel_measurement")
        measured.again_seconds = again_seconds
        call = Call()
        with self._handle.use() as model, \
                filled("tiercel_session_params",
                       {"cache_dir": cache_dir, **params},
                       "measure") as struct, \
                reporting(call, progress, "measuring", "") as callback:
            status = lib.tiercel_measure(model, struct, callback, ffi.NULL,
                                         measured, call.error)
        call.check(status)
        return {"measured": bool(measured.measured),
                "steady": bool(measured.steady), "spread": measured.spread}


def devices() -> list[dict[str, Any]]:
    """The devices of this machine, as tiercel_devices lists them."""
    return json.loads(fill_json(lib.tiercel_devices))


def plan(model: Model | Path, **params: Any) -> dict[str, Any]:
    """`Model.plan` of a model, or of a path, whose weights are not read.

    With a path `params` may be those of Model, too.
    """
    if isinstance(model, Model):
        return model.plan(**params)
    of_model = parameters("tiercel_model_params")
    of_model.pop("path", None)
    of_model.pop("load", None)
    of_session = parameters("tiercel_session_params")
    check_names("plan", params, [*of_model, *of_session])
    with Model(model, load="header", **{name: value for name, value
                                        in params.items()
                                        if name in of_model}) as opened:
        return opened.plan(**{name: value for name, value in params.items()
                              if name in of_session})


def prompt_tokens(model: Any, prompt: Any, flags: int, place: str) -> Any:
    """An array of the ids of a prompt: a text, or ids."""
    if isinstance(prompt, str):
        return ids_of(_tokens(model, prompt, flags, place), place)
    return ids_of(prompt, place)


def _flags(add_bos: bool, parse_special: bool) -> int:
    return (lib.TIERCEL_ADD_BOS * bool(add_bos) |
            lib.TIERCEL_PARSE_SPECIAL * bool(parse_special))


def _tokens(model: Any, text: str, flags: int, place: str) -> list[int]:
    data = utf8(text, place)
    return fill("int32_t", len(data) + 1, partial(
        lib.tiercel_tokenize, model, data, len(data), flags, ffi.NULL))


def chat_tokens(model: Any, messages: Iterable[Message], think: bool | None,
                template_kwargs: Mapping[str, Any] | None,
                continue_last: bool = False) -> list[int]:
    place = "chat_tokens: messages"
    messages = sequence(messages, place, "messages")
    array = ffi.new("tiercel_message[]", len(messages))
    kept = []
    for each, message in zip(array, messages):
        if not isinstance(message, Mapping):
            raise wrong_type(place, "a dict in each place", message)
        check_names(place, message, _MESSAGE)
        for name in _MESSAGE[:2]:
            if message.get(name) is None:
                raise TypeError(f"{place}: a message has no {name!r}")
        each.struct_size = ffi.sizeof("tiercel_message")
        texts = {name: ffi.new("char[]", utf8(message[name], place))
                 for name in _MESSAGE if message.get(name) is not None}
        kept.append(texts)
        if b"\0" in ffi.buffer(texts["role"])[:-1]:
            raise ValueError(f"{place}: a role contains a NUL")
        each.role = texts["role"]
        for name in texts.keys() - {"role"}:
            setattr(each, name, texts[name])
            setattr(each, name + "_bytes", len(texts[name]) - 1)
    guess = 1024 + sum(len(texts["content"]) for texts in kept)
    with filled("tiercel_chat_settings", {
            "think": _think(think), "continue_last": bool(continue_last),
            "template_kwargs": None if template_kwargs is None
            else json.dumps(template_kwargs)}, "chat_tokens") as settings:
        return fill("int32_t", guess, partial(
            lib.tiercel_chat_tokens_with, model, array, len(array), settings,
            ffi.NULL))


def _value(field: Any) -> Any:
    """A number, or the text of a pointer."""
    if not isinstance(field, ffi.CData):
        return field
    return None if field == ffi.NULL else text_of(field)


def _think(think: bool | None) -> int:
    if think is None:
        return lib.TIERCEL_THINK_AUTO
    return lib.TIERCEL_THINK_ON if think else lib.TIERCEL_THINK_OFF
