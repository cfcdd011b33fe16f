#!/usr/bin/env python3
"""Measures how much of SmolLM2's summary of a chapter comes from the chapter.

  bench/summaries.py                  20 chapters, half an hour on two cores
  bench/summaries.py --texts FOLDER   keeps the summaries there, and makes only
                                      those that are missing
  bench/summaries.py --peer llama-server
                                      and the same with llama.cpp
  bench/summaries.py --save           also writes
                                      bench/results/<date>-<cpu>-summaries.md

The chapters are from three books in Debian packages (tests/setup/book.sh), the
first 2,000 words of each, as plain text, which both programs read. They are
summarized in three ways: as `tiercel summarize` does by default; as it did
before it read sections, the whole chapter at once with a repeat penalty of
1.15; and the same greedily with DRY. llama.cpp reads the whole chapter with the
same words and samples in the latter two ways, except that its penalties also
count tokens of the prompt until the answer fills their windows. All have a seed
of 0 and 512 tokens at most.

grounding.py explains the measures. Standard library only.
"""

import argparse
import html.parser
import os
import pathlib
import re
import sys
import tempfile

import grounding
import pages
from llama_server import LlamaServer
from program import MODEL, Program

MOST_WORDS = 2000
CONTEXT = 8192
ANSWER = 512
BOOKS = {
    "html": ("Debian Policy Manual", (
        "ch-archive", "ch-binary", "ch-controlfields",
        "ch-customized-programs", "ch-docs", "ch-files",
        "ch-maintainerscripts", "ch-opersys", "ch-source")),
    "faq": ("The Debian GNU/Linux FAQ", (
        "basic-defs.en", "compatibility.en", "contributing.en",
        "ftparchives.en", "getting-debian.en", "pkg-basics.en", "support.en",
        "uptodate.en")),
    "history": ("A Brief History of Debian", (
        "detailed.en", "intro.en", "manifesto.en")),
}
# These are the requests of apps/commands/requests.cc.
REQUEST = "Summarize the following text."
AT_ONCE = ("Summarize the text above in a few paragraphs: what it is about, "
           "what happens in it or what it argues, and how it ends.")
WHOLE = ["-c", CONTEXT]
WAYS = {
    "before: at once, `--temp 0.3 --repeat-penalty 1.15`": [
        *WHOLE, "--temp", 0.3, "--repeat-penalty", 1.15],
    "at once, greedily with DRY": [
        *WHOLE, "--temp", 0, "--repeat-penalty", 1, "--dry-multiplier", 0.8],
    "**now: by sections**": [],
}
PEER = {"seed": 0, "max_tokens": ANSWER, "top_k": 0, "top_p": 1, "min_p": 0}
PEER_WAYS = {
    "llama.cpp as before: at once, temperature 0.3, penalty 1.15": {
        **PEER, "temperature": 0.3, "repeat_penalty": 1.15,
        "repeat_last_n": 256},
    "llama.cpp at once, greedily with DRY": {
        **PEER, "temperature": 0, "dry_multiplier": 0.8, "dry_base": 1.75,
        "dry_allowed_length": 2, "dry_penalty_last_n": ANSWER},
}
COLUMNS = ["summaries", "words each", "sentences", "words from the text",
           "in one place", "capitalised words found", "repeated",
           "word for word", "quarters of the chapter"]


class Page(html.parser.HTMLParser):
    """The paragraphs of a page of a book, without navigation and contents."""

    BLOCKS = {"p", "li", "dt", "dd", "pre", "h1", "h2", "h3", "h4", "h5", "h6",
              "td", "th", "div", "table", "section"}
    LEFT_OUT = {"script", "style", "nav", "head", "footer", "header"}
    LEFT_OUT_CLASSES = re.compile(
        r"\b(related|sphinxsidebar|nav\w*|toc|footer|clearer)\b")
    EMPTY = {"br", "hr", "img", "link", "meta", "input", "col", "wbr"}

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.paragraphs = []
        self._text = ""
        self._open = []  # (tag, True if its contents are left out)

    def _end_paragraph(self):
        text = " ".join(self._text.replace("¶", "").split())
        if text:
            self.paragraphs.append(text)
        self._text = ""

    def handle_starttag(self, tag, attrs):
        if tag in self.BLOCKS:
            self._end_paragraph()
        if tag in self.EMPTY:
            return
        classes = " ".join(value or "" for name, value in attrs
                           if name in ("class", "role"))
        self._open.append((tag, tag in self.LEFT_OUT or bool(
            self.LEFT_OUT_CLASSES.search(classes))))

    def handle_endtag(self, tag):
        if tag in self.BLOCKS:
            self._end_paragraph()
        if any(tag == name for name, _ in self._open):
            while self._open.pop()[0] != tag:
                pass

    def handle_data(self, data):
        if not any(left_out for _, left_out in self._open):
            self._text += data

    def close(self):
        super().close()
        self._end_paragraph()


def chapter(path):
    """Returns the text of the first paragraphs of a page, MOST_WORDS in all."""
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    page.close()
    taken, count = [], 0
    for paragraph in page.paragraphs:
        count += len(paragraph.split())
        if taken and count > MOST_WORDS:
            break
        taken.append(paragraph)
    return "\n\n".join(taken) + "\n"


def chapters(books):
    """Returns {name: text} of all BOOKS."""
    return {f"{folder}-{name}": chapter(books / folder / f"{name}.html")
            for folder, (_, names) in BOOKS.items() for name in names}


def summarize(program, path, flags):
    document = program.document("summarize", path, "--no-cache", "--seed", 0,
                                *flags)
    return document["output"][0]["text"]


def message(text):
    """The message to a model about a whole chapter."""
    return f"{REQUEST}\n\n{text.strip()}\n\n{AT_ONCE}"


def file_name(way, name):
    return re.sub(r"[^a-z0-9.]+", "-", f"{way} {name}".lower()).strip("-")


class Texts:
    """Summaries in a folder, under the names of their way and chapter."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def get(self, way, name, make):
        path = self.folder / file_name(way, name)
        if not path.exists():
            path.write_text(make(), encoding="utf-8")
        return path.read_text(encoding="utf-8")


def summaries_of(args, texts, all_chapters, folder):
    """Returns {way: {chapter: summary}}."""
    program = Program(args.tiercel)
    found = {}
    paths = {}
    for name, text in all_chapters.items():
        paths[name] = folder / f"{name}.txt"
        paths[name].write_text(text, encoding="utf-8")
    for way, flags in WAYS.items():
        found[way] = {
            name: texts.get(way, name,
                            lambda p=path, f=flags: summarize(program, p, f))
            for name, path in paths.items()}
        print(row_of(way, found[way], all_chapters), flush=True)
    if not args.peer:
        return found
    with LlamaServer(args.peer, os.environ.get("TIERCEL_MODEL", MODEL), CONTEXT,
                     os.cpu_count(), folder) as server:
        found.update({way: {} for way in PEER_WAYS})
        for name, text in all_chapters.items():  # read once for all ways
            for way, sampling in PEER_WAYS.items():
                found[way][name] = texts.get(
                    way, name, lambda t=text, s=sampling: server.chat(
                        message(t), **s))
    for way in PEER_WAYS:
        print(row_of(way, found[way], all_chapters), flush=True)
    return found


def percent(part, whole):
    return f"{100 * part / whole:.0f} %" if whole else "-"


def row_of(way, summaries, all_chapters):
    count = grounding.total(
        [grounding.score(summary, grounding.Text(all_chapters[name]))
         for name, summary in summaries.items()])
    said = count["sentences"]
    return [way, f"{count['words'] / count['summaries']:.0f}", str(said),
            percent(count["from_text"], said),
            percent(count["in_one_place"], said),
            f"{count['names_found']} of {count['names']}, "
            + percent(count["names_found"], count["names"]),
            percent(count["repeated"], said),
            percent(count["copied"], count["runs"]),
            f"{count['quarters'] / count['summaries']:.1f}"]


def samples(found, names):
    """Returns the summaries of a few chapters in each way, as lines."""
    lines = []
    for name in names:
        lines += ["", f"## {name}"]
        for way, summaries in found.items():
            lines += ["", f"{way}:", ""]
            lines += [f"> {line}".rstrip()
                      for line in summaries[name].splitlines()]
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--texts", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--peer", metavar="PROGRAM", help="llama-server")
    parser.add_argument("--tiercel", default=str(
        pages.ROOT / "build/cpu/apps/tiercel"))
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    books = pathlib.Path(os.environ.get("TIERCEL_BOOKS")
                         or MODEL.parent.parent / "books")
    all_chapters = chapters(books)
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        texts = Texts(args.texts or scratch / "texts")
        found = summaries_of(args, texts, all_chapters, scratch)
    rows = [row_of(way, summaries, all_chapters)
            for way, summaries in found.items()]
    model = pathlib.Path(os.environ.get("TIERCEL_MODEL", MODEL)).name
    books_read = ", ".join(f"{len(names)} of {title}"
                           for title, names in BOOKS.values())
    pages.publish(
        "Summaries", f"{pages.version_of(args.tiercel)}; {model}; "
        f"{len(all_chapters)} chapters ({books_read}), the first "
        f"{MOST_WORDS:,} words of each",
        [*pages.table(COLUMNS, rows), *samples(
            found, ("history-intro.en", "html-ch-archive", "faq-support.en"))],
        args.save and "summaries")


if __name__ == "__main__":
    sys.exit(main())
