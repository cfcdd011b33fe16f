"""Structs of the header, filled from keyword arguments of the same names.

The header says which arguments there are, and of which types. A list and its
length (`stops`, `num_stops`) are one argument, a sequence; a struct within
another is a mapping.
"""

from __future__ import annotations

import contextlib
import operator
import os
from typing import Any, Iterable, Iterator, Mapping

from ._call import new
from ._handle import Handle
from ._library import ffi

# Fields whose argument has another name, and the reverse.
_ARGUMENTS = {"stops": "stop"}
_FIELDS = {argument: field for field, argument in _ARGUMENTS.items()}
# The C types of handles, each the `_handle` of an object.
_HANDLES = ("tiercel_model *", "tiercel_session *")


def parameters(struct: str) -> dict[str, Any]:
    """The arguments that fill `struct`: their names and C types."""
    fields: dict[str, Any] = dict(ffi.typeof(struct).fields)
    return {_ARGUMENTS.get(name, name): field.type
            for name, field in fields.items()
            if name != "struct_size" and field.type.kind != "function"
            and field.type.cname != "void *"
            and not (name.startswith("num_") and name[4:] in fields)}


def check_names(caller: str, given: Iterable[str],
                known: Iterable[str]) -> None:
    """Refuses an argument that is not known, and names those that are."""
    known = list(known)
    for name in given:
        if name not in known:
            raise TypeError(f"{caller}: there is no parameter {name!r}; there "
                            f"are {', '.join(known)}")


@contextlib.contextmanager
def filled(struct: str, values: Mapping[str, Any],
           caller: str) -> Iterator[Any]:
    """A struct for calls within the context, and all that it points to."""
    with contextlib.ExitStack() as stack:
        filling = _Filling(struct, values, caller, stack)
        yield filling.struct


class _Filling:
    def __init__(self, struct: str, values: Mapping[str, Any], caller: str,
                 used: contextlib.ExitStack) -> None:
        known = parameters(struct)
        check_names(caller, values, known)
        self._used = used
        self._kept: list[Any] = []
        self.struct = new(struct)
        for name, value in values.items():
            if value is not None:  # the default
                self._set(name, known[name], value, f"{caller}: {name}")

    def _set(self, argument: str, kind: Any, value: Any, place: str) -> None:
        name = _FIELDS.get(argument, argument)
        if hasattr(self.struct, "num_" + name):
            array = self._array(kind, value, place)
            setattr(self.struct, name, array)
            setattr(self.struct, "num_" + name, len(array))
            return
        try:
            setattr(self.struct, name, self._one(kind, value, place))
        except OverflowError:
            raise ValueError(f"{place} is {value}, which is no {kind.cname}"
                             ) from None

    def _one(self, kind: Any, value: Any, place: str) -> Any:
        if kind.kind == "enum":
            return _enumerator(kind, value, place)
        if kind.kind == "primitive":
            return _number(kind.cname, value, place)
        if kind.cname == "char *":
            return self._keep(ffi.new("char[]", c_string(value, place)))
        if kind.cname in _HANDLES:
            handle = getattr(value, "_handle", None)
            if not isinstance(handle, Handle) or handle.kind != kind.cname:
                raise wrong_type(place, "a " + kind.cname[8:-2].title(), value)
            return self._used.enter_context(handle.use())
        return self._nested(kind.item.cname, value, place)

    def _nested(self, struct: str, value: Any, place: str) -> Any:
        if isinstance(value, str):
            value = {"name": value}
        if not isinstance(value, Mapping):
            raise wrong_type(place, "a name or a dict", value)
        return self._keep(_Filling(struct, value, place, self._used)).struct

    def _array(self, kind: Any, value: Any, place: str) -> Any:
        if kind.item.cname == "char *":
            texts = [value] if isinstance(value, str) else \
                sequence(value, place, "texts")
            return self._keep(ffi.new("char *[]", [
                self._keep(ffi.new("char[]", c_string(text, place)))
                for text in texts]))
        return self._keep(ids_of(value, place))

    def _keep(self, value: Any) -> Any:
        self._kept.append(value)
        return value


def wrong_type(place: str, needed: str, value: Any) -> TypeError:
    return TypeError(f"{place} is of type {type(value).__name__}; need "
                     f"{needed}")


def sequence(value: Any, place: str, of: str) -> list[Any]:
    """The items of `value`, a sequence of `of`."""
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        raise wrong_type(place, f"a sequence of {of}", value)
    return list(value)


def ids_of(value: Any, place: str) -> Any:
    """An array of token ids."""
    ids = sequence(value, place, "token ids")
    try:
        return ffi.new("int32_t[]", [operator.index(each) for each in ids])
    except TypeError as error:
        raise TypeError(f"{place}: a token id is an integer: {error}") from None
    except OverflowError as error:
        raise ValueError(f"{place}: a token id is wrong: {error}") from None


def count_of(value: Any, place: str, end: int = 1 << 64) -> int:
    """A number from 0 to `end`."""
    count = _number("size_t", value, place)
    if not 0 <= count < end:
        raise ValueError(f"{place} is {count}; need 0 to {end - 1}")
    return count


def utf8(value: Any, place: str) -> bytes:
    """The bytes of a text."""
    if not isinstance(value, str):
        raise wrong_type(place, "a str", value)
    return value.encode()


def c_string(value: Any, place: str) -> bytes:
    """The bytes of a text or a path, which must contain no NUL."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if not isinstance(value, (str, bytes)):
        raise wrong_type(place, "a str", value)
    text = os.fsencode(value)
    if b"\0" in text:
        raise ValueError(f"{place} contains a NUL")
    return text


def _number(cname: str, value: Any, place: str) -> Any:
    if cname in ("float", "double"):
        if isinstance(value, (str, bytes)) or not hasattr(value, "__float__") \
                and not hasattr(value, "__index__"):
            raise wrong_type(place, "a number", value)
        return float(value)
    if not hasattr(value, "__index__"):
        raise wrong_type(place, "an integer", value)
    return operator.index(value)


def _enumerator(kind: Any, value: Any, place: str) -> int:
    """The number of an enumerator, which `value` may name: "header"."""
    start = len(os.path.commonprefix(list(kind.elements.values())))
    names = {name[start:].lower(): number
             for number, name in sorted(kind.elements.items())}
    if isinstance(value, str):
        if value not in names:
            raise ValueError(f"{place} is {value!r}; need one of "
                             f"{', '.join(names)}")
        return names[value]
    return _number("int", value, place)
