#!/usr/bin/env python3
"""Measures reading whole books, and checks that interruptions change nothing.

  bench/book.py BOOK...            each read once
  bench/book.py BOOK --interruptions 20
                                   and once more, with so many interruptions
  bench/book.py BOOK --epub 50     and an EPUB of so many MB, as chapters of
                                   BOOK again and again: its contents alone
  bench/book.py BOOK... --save     also writes
                                   bench/results/<date>-<cpu>-book.md
  bench/book.py BOOK --flag=-c --flag=8k
                                   with more flags of `tiercel summarize`: so
                                   SmolLM2 reads parts that fill its context,
                                   else sections

Each BOOK is read by `tiercel summarize` as a tree of parts. Its row also has
the seconds that the plan had predicted, those that the reader itself took
(finding the chapters and counting their tokens, `--toc`), and the most memory.

With --interruptions it is then read again in a cache folder of its own. This
reading is stopped so many times, at points drawn with --seed: each time a
signal (INT, TERM and KILL in turn) comes when a drawn number of the book's
parts is done, and a drawn share of the time of a part later. Then the same
command goes on. The notes and the parts must be those of the undisturbed
reading, byte for byte, and no part may be made twice: the lines of `--stream`
say in which run each was made, and of a stopped run only its last part may come
again. A run that ends before its signal comes does not count as an
interruption.

Standard library only.
"""

import argparse
import html
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import zipfile

import pages
from program import Program, keep_caches_in

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
ANSWER = 48  # tokens of each summary
COLUMNS = ["book", "words", "tokens", "parts", "levels", "reader, s",
           "predicted, s", "read and written, s", "tokens read", "tok/s",
           "tokens written", "memory, MB"]


PAGE = (b'<html xmlns="http://www.w3.org/1999/xhtml"><head><title>c</title>'
        b'</head><body><h1>Chapter %d</h1><p>%s</p></body></html>')
CONTAINER = (b'<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:'
             b'xmlns:container"><rootfiles><rootfile full-path="p.opf" '
             b'media-type="application/oebps-package+xml"/></rootfiles>'
             b'</container>')
PACKAGE = ('<package xmlns="http://www.idpf.org/2007/opf" version="3.0">'
           '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Long'
           '</dc:title></metadata><manifest>{}</manifest><spine>{}</spine>'
           '</package>')
CHAPTER_BYTES = 1_000_000


def write_epub(path, text, megabytes):
    """Writes an EPUB of that many MB, all of it text, uncompressed."""
    chapter = PAGE.replace(b"%s", b"</p><p>".join(
        part.encode() for part in html.escape(text[:CHAPTER_BYTES]).split("\n\n")
    ).replace(b"%", b"%%"))
    count = megabytes * 1_000_000 // len(chapter)
    names = [f"c{i}.xhtml" for i in range(count)]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as book:
        book.writestr("mimetype", "application/epub+zip")
        book.writestr("META-INF/container.xml", CONTAINER)
        book.writestr("p.opf", PACKAGE.format(
            "".join(f'<item id="i{i}" href="{name}" '
                    'media-type="application/xhtml+xml"/>'
                    for i, name in enumerate(names)),
            "".join(f'<itemref idref="i{i}"/>' for i in range(count))))
        for i, name in enumerate(names):
            book.writestr(name, chapter % (i + 1))


class Reading:
    """One run of the command: its output lines and exit code."""

    def __init__(self, command, folder):
        self.lines = folder / "lines.jsonl"
        self.said = folder / "said.txt"
        with open(self.lines, "wb") as out, open(self.said, "wb") as err:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                            stdout=out, stderr=err)

    def parts(self):
        """The parts, (level, number), that were made, in order of their tokens.
        A line that a kill cut short does not count."""
        found = []
        with open(self.lines, "rb") as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    break
                token = json.loads(line)
                part = (token.get("level"), token.get("number"))
                is_made = "token" in token and "kept" not in token
                if is_made and part not in found:
                    found.append(part)
        return found

    def runs(self):
        """Returns True while it runs. After it has ended wait() still works."""
        return os.waitid(os.P_PID, self.process.pid,
                         os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def wait(self):
        """Returns its exit code, or minus the signal that ended it."""
        _, status, usage = os.wait4(self.process.pid, 0)
        self.memory = usage.ru_maxrss * 1024  # bytes, the most
        self.process.returncode = os.waitstatus_to_exitcode(status)
        return self.process.returncode

    def expect_end(self):
        """Waits; ends this script if the run failed."""
        code = self.wait()
        if code != 0:
            sys.exit(f"ended with {code}: {self.said.read_text()}")

    def document(self):
        """The document in the last line of a run that was not stopped."""
        return json.loads(self.lines.read_bytes().splitlines()[-1])


def parts_kept(program):
    """The number of parts on the disk."""
    command = [*program.command, "cache", "list", "--json"]
    listed = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return sum(file.get("parts", 0)
               for file in json.loads(listed.stdout)["readings"])


def words_of(path):
    """The number of words of a text."""
    return len(re.findall(r"\S+", path.read_text("utf-8", "replace")))


class Book:
    def __init__(self, program, path, flags, folder):
        self.program = program
        self.path = path
        self.folder = folder
        self.flags = ["-n", str(ANSWER), *flags]

    def read(self, name, *flags):
        """Begins a reading whose notes go to a file `name`."""
        return Reading([*self.program.command, "summarize", str(self.path),
                        *self.flags, "--json", "--stream", "--no-progress",
                        "--output", str(self.folder / name), *flags],
                       self.folder)

    def undisturbed(self):
        """Reads the book; returns the document, and a row of the table."""
        begin = time.monotonic()
        self.program.document("summarize", self.path, "--toc")
        reader_s = time.monotonic() - begin
        reading = self.read("undisturbed.md", "--no-cache")
        reading.expect_end()
        document = reading.document()
        predicted = document["predicted"]["seconds"]
        parts = document["parts"]
        read = document["prompt_tokens"] - document["cached_tokens"]
        written = document["tbt_ms"]["samples"] + len(texts_of(parts))
        return document, [
            self.path.name, f"{words_of(self.path):,}", f"{parts[-1]['end']:,}",
            str(sum(part["level"] == 0 for part in parts)),
            str(len({part["level"] for part in texts_of(parts)})),
            f"{reader_s:.1f}",
            "-" if predicted is None else f"{predicted:.0f}",
            f"{document['seconds']:.0f}", f"{read:,}",
            f"{document['prefill_tok_s']:.0f}", f"{written:,}",
            f"{reading.memory / 1e6:.0f}"]

    def long_epub(self, megabytes):
        """Measures finding the chapters of such an EPUB; returns a sentence."""
        path = self.folder / "long.epub"
        write_epub(path, self.path.read_text("utf-8", "replace"), megabytes)
        begin = time.monotonic()
        reading = Reading([*self.program.command, "summarize", str(path), "--toc",
                           "--json"], self.folder)
        reading.expect_end()
        seconds = time.monotonic() - begin
        sections = reading.document()["sections"]
        tokens = sum(section["tokens"] for section in sections)
        size = path.stat().st_size
        path.unlink()
        return (f"An EPUB of {size / 1e6:.0f} MB, all of it text: its "
                f"{len(sections)} chapters of {tokens:,} tokens were found and "
                f"counted in {seconds:.0f} s, within "
                f"{reading.memory / 1e6:.0f} MB of memory.")

    def disturbed(self, whole, interruptions, seed):
        """Reads it again with interruptions; returns a line for each. Ends this
        script if anything differs from the document `whole`."""
        draw = random.Random(seed)
        total = len(texts_of(whole["parts"]))
        leaves = sum(part["level"] == 0 for part in whole["parts"])
        part_s = whole["seconds"] / total
        points = sorted(draw.randrange(leaves) for _ in range(interruptions))
        made = {}  # part -> the run that finished it
        lines = []
        for run, point in enumerate(points):
            number = SIGNALS[run % len(SIGNALS)]
            before = parts_kept(self.program)
            reading = self.read("disturbed.md")
            while parts_kept(self.program) < point and reading.runs():
                time.sleep(min(1, part_s / 20))
            delay = draw.random() * part_s
            time.sleep(delay)
            os.kill(reading.process.pid, number)
            code = reading.wait()
            if code == 0:
                break
            if code not in (-number, 128 + number):
                sys.exit(f"{number.name}: ended with {code}: "
                         f"{reading.said.read_text()}")
            after = parts_kept(self.program)
            self.note_made(reading, run, after - before, made)
            lines.append(f"{number.name} {delay:.1f} s behind {point} parts: "
                         f"{before} were kept, then {after}")
        else:
            before = parts_kept(self.program)
            reading = self.read("disturbed.md")
            reading.expect_end()
        document = reading.document()
        self.note_made(reading, len(lines), total - before, made)
        if document["resumed"]["nodes"] != before:
            sys.exit(f"{document['resumed']} of {before} parts")
        if len(made) != total:
            sys.exit(f"{len(made)} parts were made, there are {total}")
        for name in ("parts", "output"):
            if document[name] != whole[name]:
                sys.exit(f"{name}: another text")
        notes = [(self.folder / name).read_bytes()
                 for name in ("undisturbed.md", "disturbed.md")]
        if notes[0] != notes[1]:
            sys.exit("the notes differ")
        return lines

    @staticmethod
    def note_made(reading, run, finished, made):
        """Enters the `finished` parts of a run, the first for which it wrote
        tokens. None may have been finished before, and at most one more may
        have been begun after them."""
        begun = reading.parts()
        twice = [part for part in begun if part in made]
        if twice:
            sys.exit(f"made twice: {twice}, in run {run} and {made[twice[0]]}")
        if not finished <= len(begun) <= finished + 1:
            sys.exit(f"run {run} began {begun}, of which {finished} were kept")
        for part in begun[:finished]:
            made[part] = run


def texts_of(parts):
    """The parts for which a summary was written: all except the last one where
    that joins several paragraphs."""
    last = parts[-1]
    below = [part for part in parts if part["level"] == last["level"] - 1]
    joined = "\n\n".join(part["text"] for part in below)
    whole = len(below) > 1 and last["text"] == joined
    return parts[:-1] if whole else parts


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("books", type=pathlib.Path, nargs="+")
    parser.add_argument("--interruptions", type=int, default=0)
    parser.add_argument("--epub", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tiercel", default=str(
        pages.ROOT / "build/cpu/apps/tiercel"))
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--flag", action="append", default=[], dest="flags",
                        help="a flag of `tiercel summarize`, or its value")
    args = parser.parse_args()
    program = Program(args.tiercel)
    rows, lines = [], []
    for path in args.books:
        with tempfile.TemporaryDirectory() as folder:
            keep_caches_in(folder)
            book = Book(program, path, args.flags, pathlib.Path(folder))
            document, row = book.undisturbed()
            rows.append(row)
            print(" | ".join(row), flush=True)
            if args.epub > 0 and path == args.books[0]:
                lines += ["", book.long_epub(args.epub)]
            if args.interruptions == 0:
                continue
            stops = book.disturbed(document, args.interruptions, args.seed)
            lines += ["", f"{path.name}, interrupted {len(stops)} times (seed "
                      f"{args.seed}): the notes and parts of the undisturbed "
                      "reading, byte for byte; no part was made twice.", "",
                      *(f"- {stop}" for stop in stops)]
    model = os.environ["TIERCEL_MODEL"]
    pages.publish(
        "Whole books",
        f"{pages.version_of(args.tiercel)}; {pathlib.Path(model).name}, "
        f"-n {ANSWER} {' '.join(args.flags)}; {pages.load_now()}",
        [*pages.table(COLUMNS, rows), *lines], args.save and "book")


if __name__ == "__main__":
    main()
