#!/usr/bin/env python3
"""Measures questions to a book that the context does not hold.

  bench/whole_book.py BOOK --ask QUESTION CHAPTER WORDS ...
                            a question, the title of the chapter in which its
                            answer stands, and words of that answer; as often
                            as wanted
  bench/whole_book.py BOOK --ask ... --save
                            also writes
                            bench/results/<date>-<cpu>-whole-book.md

Each question is asked by `tiercel ask` in one cache folder, so that the first
reads every part, and the next find what it has left. The last question is
killed when half of its parts have answered, and then asked again: both runs
have a row. Beside the seconds stand those that the plan had predicted for what
was left to do, as it does before it reads.

A row also has how many parts said something, and whether the one with the
chapter did; how many quotations the text has of all that were made, and how
many stand in the chapter.

A small model seldom quotes what it was asked for. So each question is asked
once more of a double, a file whose model says the WORDS in quotation marks
whatever it reads (apps/told_model.py): then the quotation of the answer must be
found in the CHAPTER.

Standard library only.
"""

import argparse
import os
import pathlib
import re
import signal
import sys
import tempfile
import time

import gguf_file
import pages
from book import Reading, parts_kept, words_of
from program import Program, keep_caches_in

sys.path.insert(0, str(pages.ROOT / "apps"))
import told_model  # noqa: E402  # it stands in apps/

COLUMNS = ["question", "parts", "asked", "read before", "predicted, s",
           "took, s", "tokens read", "found", "written", "parts that said",
           "the chapter's", "quotations", "of the text", "of the chapter"]
ANSWER = 96  # tokens of each answer
DOUBLE_CONTEXT = 30_000  # the most bytes, which are its tokens


def stands_in(place, chapter):
    """Returns True if a part, or a quotation, is in the chapter."""
    return chapter in place.get("chapters", [])


def row_of(question, chapter, document, read_before):
    """A row of the table."""
    parts = [part for part in document["parts"] if part["level"] == 0]
    said = [part for part in parts if part["text"]]
    quoted = document["quotations"]
    found = [one for one in quoted if one["found"]]
    predicted = document["predicted"]["seconds"]
    cached = document["cached_tokens"]
    return [
        question, str(len(parts)),
        str(len(parts) - min(document["resumed"]["nodes"], len(parts))),
        str(read_before), "-" if predicted is None else f"{predicted:.0f}",
        f"{document['seconds']:.0f}",
        f"{document['prompt_tokens'] - cached:,}", f"{cached:,}",
        f"{document['tbt_ms']['samples']:,}", str(len(said)),
        "yes" if any(stands_in(part, chapter) for part in said) else "no",
        str(len(quoted)), str(len(found)),
        str(sum(stands_in(one, chapter) for one in found))]


class Book:
    def __init__(self, program, path, flags, folder):
        self.program = program
        self.path = path
        self.folder = folder
        self.flags = flags

    def ask(self, question, flags=None):
        return Reading(
            [*self.program.command, "ask", str(self.path), question, "-n",
             str(ANSWER), "--json", "--stream", "--no-progress",
             *(self.flags if flags is None else flags)],
            self.folder)

    def answered(self, question, flags=None):
        """Returns the document, and the number of parts whose KV was found."""
        reading = self.ask(question, flags)
        reading.expect_end()
        said = reading.said.read_text()
        found = re.search(r"(\d+) parts? to ask(?:, (all|\d+)(?: of them)? read "
                          "before)?", said)
        count = found[2] or "0"
        return reading.document(), int(found[1] if count == "all" else count)

    def killed(self, question, parts):
        """Asks, and kills it once half of `parts` have answered."""
        before = parts_kept(self.program)
        reading = self.ask(question)
        while parts_kept(self.program) - before < parts // 2 and reading.runs():
            time.sleep(0.2)
        if reading.runs():
            os.kill(reading.process.pid, signal.SIGKILL)
        return reading.wait() == -signal.SIGKILL

    def double(self, question, chapter, words):
        """Returns the quotations of a double's answer, those that were found,
        and those that were found in the chapter."""
        quoted = f'"{words}"'
        context = min(DOUBLE_CONTEXT, self.path.stat().st_size // 3)
        model = told_model.write_saying(
            self.folder / "double.gguf", quoted,
            llama__context_length=gguf_file.u32(context))
        document, _ = self.answered(
            question, ["-m", str(model), "--no-cache", "--temp", "0",
                       "--repeat-penalty", "1", "-c", str(context)])
        (output,) = document["output"]
        # The answer's quotations are the last ones.
        answers = document["quotations"][-output["text"].count(quoted):]
        found = [one for one in answers if one["found"]]
        return (len(answers), len(found),
                sum(stands_in(one, chapter) for one in found))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("book", type=pathlib.Path)
    parser.add_argument("--ask", nargs=3, action="append", required=True,
                        metavar=("QUESTION", "CHAPTER", "WORDS"))
    parser.add_argument("--tiercel", default=str(
        pages.ROOT / "build/cpu/apps/tiercel"))
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--flag", action="append", default=[], dest="flags",
                        help="a flag of `tiercel ask`, or its value")
    args = parser.parse_args()
    rows, lines = [], []
    with tempfile.TemporaryDirectory() as folder:
        keep_caches_in(folder)
        book = Book(Program(args.tiercel), args.book, args.flags,
                    pathlib.Path(folder))
        book.program.document("plan")  # measures this machine's rates

        def add(name, question, chapter):
            document, read_before = book.answered(question)
            rows.append(row_of(name, chapter, document, read_before))
            print(" | ".join(rows[-1]), flush=True)
            return document
        parts = 0
        for index, (question, chapter, _) in enumerate(args.ask):
            if 0 < index == len(args.ask) - 1 and book.killed(question, parts):
                question_name = f"{question} (killed at half, again)"
            else:
                question_name = question
            document = add(question_name, question, chapter)
            parts = sum(part["level"] == 0 for part in document["parts"])
            lines += ["", f"{question} {chapter}: "
                      f"{document['output'][0]['text'].strip()!r}"]
        for question, chapter, words in args.ask:
            quoted, found, right = book.double(question, chapter, words)
            lines += ["", f"A double that quotes {words!r}: of {quoted} "
                      f"quotations in its answer {found} found, {right} in "
                      f"{chapter}"]
            print(lines[-1], flush=True)
    pages.publish(
        f"Questions to all of {args.book.name}",
        f"{pages.version_of(args.tiercel)}; "
        f"{pathlib.Path(os.environ['TIERCEL_MODEL']).name}, -n {ANSWER} "
        f"{' '.join(args.flags)}; {words_of(args.book):,} words; {pages.load_now()}",
        [*pages.table(COLUMNS, rows), *lines], args.save and "whole-book")


if __name__ == "__main__":
    main()
