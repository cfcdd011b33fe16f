"""Books as text with places."""

from __future__ import annotations

import bisect
import contextlib
import os
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Callable, Iterator, Union

from ._call import Call, fill, make, new
from ._handle import Handle
from ._library import documents, ffi, text_of
from ._structs import filled, wrong_type

Source = Union[str, "os.PathLike[str]", bytes]


@dataclass(frozen=True)
class Section:
    """A part that a heading begins: text[begin:end], and the sections in it.

    `level` 1 is of the whole document; `label` is "Chapter 3" or "", `title`
    "Loomings" or "", `name` both; `anchor` is the format's own.
    """

    level: int
    begin: int
    end: int
    label: str
    title: str
    name: str
    anchor: str


@dataclass(frozen=True)
class Chapter:
    """A section that is a chapter. `number` is that by which `excerpt` takes
    it; None: it is taken by its title alone."""

    section: Section
    begin: int
    end: int
    number: int | None

    @property
    def name(self) -> str:
        return self.section.name


@dataclass(frozen=True)
class Page:
    """A page of the printed book, whose `number` may be "xii"."""

    begin: int
    end: int
    number: str


@dataclass(frozen=True)
class Part:
    """A run of the text that fits a prompt, and the place where it stands:
    "Chapter 3 Loomings, pages 12 to 14"."""

    begin: int
    end: int
    text: str
    place: str


class Document:
    """A book: EPUB, FB2, PDF (with poppler-utils), RTF, HTML or plain text.

    `source` is a file, a folder of HTML pages, or the bytes of a file, which
    `name` calls "book.epub". Places are indices of `text`:
    text[chapter.begin:chapter.end]. A document never changes, and any thread
    may use it.
    """

    def __init__(self, source: Source, *, name: str | None = None) -> None:
        if isinstance(source, bytes):
            params: dict[str, Any] = {"name": name}
        elif isinstance(source, (str, os.PathLike)) and name is None:
            params = {"path": source}
        else:
            raise wrong_type("Document: source",
                             "a path, or bytes with a name", source)
        with filled("tiercel_document_params", params, "Document") as struct:
            if isinstance(source, bytes):
                kept = ffi.from_buffer(source)
                struct.bytes, struct.num_bytes = kept, len(source)
            self._begin(partial(documents.tiercel_document_open, struct))

    def _begin(self, create: Callable[[Any, Any], int]) -> None:
        self._handle = Handle("document", documents.tiercel_document_free)
        make(create, self._handle.place)
        with self._read("info") as info:
            data = ffi.unpack(info.text, info.text_bytes) \
                if info.text_bytes > 0 else b""
            self.text: str = data.decode()
            self.title: str = text_of(info.title)
            self.author: str = text_of(info.author)
            self.language: str = text_of(info.language)
            self._counts = (info.num_sections, info.num_chapters,
                            info.num_pages, info.num_warnings)
        self._places = _Places(data)

    def close(self) -> None:
        """Frees the document once no call uses it; what was read stays."""
        self._handle.close()

    def __enter__(self) -> Document:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<tiercel.Document {self.title!r}: {len(self.text)} characters>"

    @cached_property
    def sections(self) -> list[Section]:
        """All sections, in the order of the text."""
        return [self._section(i) for i in range(self._counts[0])]

    @cached_property
    def chapters(self) -> list[Chapter]:
        """The sections that are chapters."""
        return [self._chapter(i) for i in range(self._counts[1])]

    @cached_property
    def pages(self) -> list[Page]:
        """The printed pages; none, if the file does not know them."""
        return [self._page(i) for i in range(self._counts[2])]

    @cached_property
    def warnings(self) -> list[str]:
        """Sentences on what may be lost."""
        with self._handle.use() as document:
            return [text_of(documents.tiercel_document_warning(document, i))
                    for i in range(self._counts[3])]

    def excerpt(self, *, chapters: str | None = None,
                pages: str | None = None) -> Document:
        """A document of some chapters ("3,5-7", or a part of a title) or pages
        ("10-40,xii"), whose chapters keep their numbers."""
        copy = Document.__new__(Document)
        with self._handle.use() as document, filled(
                "tiercel_excerpt", {"chapters": chapters, "pages": pages},
                "excerpt") as choice:
            copy._begin(partial(documents.tiercel_document_excerpt, document,
                                choice))
        return copy

    def parts(self, fits: Callable[[str], Any], *,
              usual_bytes: int = 0) -> list[Part]:
        """The longest runs of the text that fit, in order and without a gap.

        Each ends before a chapter, else a section, a paragraph, a sentence, a
        word. `fits` is given a text, say lambda text:
        len(model.tokenize(text)) <= 3000; the first one has about
        `usual_bytes`.
        """
        call = Call()
        ends: list[tuple[int, int]] = []

        def on_part(_: Any, begin: int, end: int) -> int:
            ends.append((begin, end))
            return 0

        def ask(_: Any, run: Any, count: int) -> int:
            return bool(fits(bytes(ffi.buffer(run, count)).decode()))

        asked = call.callback("tiercel_fits", ask)
        given = call.callback("tiercel_on_part", on_part)
        with self._handle.use() as document:
            call.check(documents.tiercel_document_parts(
                document, usual_bytes, asked, given, ffi.NULL, call.error))
            return [self._part(begin, end) for begin, end in ends]

    def place(self, begin: int, end: int) -> str:
        """The place of text[begin:end]: "Chapter 3 Loomings to Chapter 5
        Breakfast, pages 12 to 31"; "" if the document has no chapters."""
        if not 0 <= begin <= end <= len(self.text):
            raise ValueError(f"place: {begin} to {end} is no run of "
                             f"{len(self.text)} characters")
        return self._place(self._places.offset(begin),
                           self._places.offset(end))

    # ---- Reading structs -----------------------------------------------------

    @contextlib.contextmanager
    def _read(self, what: str, *index: int) -> Iterator[Any]:
        """A struct, whose texts stay for as long as the context."""
        struct = new("tiercel_document_info" if what == "info"
                     else "tiercel_" + what)
        with self._handle.use() as document:
            make(getattr(documents, "tiercel_document_get_" + what), document,
                 *index, struct)
            yield struct

    def _run(self, struct: Any) -> tuple[int, int]:
        return (self._places.index(struct.begin),
                self._places.index(struct.end))

    def _section(self, index: int) -> Section:
        with self._read("section", index) as section:
            return Section(
                section.level, *self._run(section), text_of(section.label),
                text_of(section.title), text_of(section.name),
                text_of(section.anchor))

    def _chapter(self, index: int) -> Chapter:
        with self._read("chapter", index) as chapter:
            number = chapter.number if chapter.has_number else None
            return Chapter(self.sections[chapter.section],
                           *self._run(chapter), number)

    def _page(self, index: int) -> Page:
        with self._read("page", index) as page:
            return Page(*self._run(page), text_of(page.number))

    def _part(self, begin: int, end: int) -> Part:
        first, last = self._places.index(begin), self._places.index(end)
        return Part(first, last, self.text[first:last],
                    self._place(begin, end))

    def _place(self, begin: int, end: int) -> str:
        with self._handle.use() as document:
            return fill("char", 256, partial(
                documents.tiercel_document_place, document, begin, end)
                        )[:-1].decode("utf-8", "replace")


_CONTINUATION = bytes(range(0x80, 0xC0))  # bytes that begin no character
_BLOCK = 4096  # bytes, of which the characters are counted once


class _Places:
    """Turns offsets in UTF-8 into indices of the text, and the reverse."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._before = [0]  # [block]: characters that begin before it
        for begin in range(0, len(data), _BLOCK):
            self._before.append(self._before[-1]
                                + _characters(data[begin:begin + _BLOCK]))

    def index(self, offset: int) -> int:
        block = offset // _BLOCK
        return self._before[block] + _characters(
            self._data[block * _BLOCK:offset])

    def offset(self, index: int) -> int:
        block = bisect.bisect_right(self._before, index) - 1
        begin = block * _BLOCK
        left = index - self._before[block]
        for offset in range(begin, min(begin + _BLOCK, len(self._data))):
            if self._data[offset] & 0xC0 != 0x80:
                if left == 0:
                    return offset
                left -= 1
        return len(self._data)


def _characters(data: bytes) -> int:
    return len(data.translate(None, _CONTINUATION))
