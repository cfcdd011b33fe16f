#!/usr/bin/env python3
"""Counts how often passages that `tiercel ask` calls "read here" have a fact.

  bench/read_here.py BOOK            200 facts, some 20 minutes
  bench/read_here.py BOOK --save     also writes
                                     bench/results/<date>-<cpu>-read-here.md

Each time a sentence that says who hid what, and where, is put between two
sentences of a piece of BOOK, and `tiercel ask` is asked about it. It names at
most three passages. The script counts how often the first of them, and any, has
words of the planted sentence: for all answers, and for those that name what was
hidden. By chance three passages of 32 tokens do so in proportion to the share
of the piece that they cover, which is printed too. A wrong answer may well come
from another place.

Standard library only.
"""

import argparse
import os
import pathlib
import random
import sys
import tempfile

import pages
from program import Program

NAMES = ("Zorvath", "Melindra", "Quorbin", "Tasselby", "Wexmoor", "Drabble",
         "Ophira", "Kestrin")
THINGS = ("a silver compass", "seven green candles", "a wooden falcon",
          "the key of the mill", "a jar of blue ink", "two brass bells")
PLACES = ("under the old bridge", "behind the clock tower",
          "in the baker's oven", "inside a hollow oak",
          "below the chapel floor")
COLUMNS = ["answers", "count", "in the first passage", "in any passage",
           "by chance"]


class Item:
    """A piece of a book with a fact in it, and a question about that."""

    def __init__(self, book, letters, seed):
        draw = random.Random(seed)
        begin = draw.randrange(max(1, len(book) - letters))
        piece = book[begin:begin + letters]
        at = piece.find(". ", draw.randrange(letters // 16, letters * 15 // 16))
        at = len(piece) // 2 if at < 0 else at + 2
        self.thing = draw.choice(THINGS)
        name = draw.choice(NAMES)
        self.fact = f"{name} hid {self.thing} {draw.choice(PLACES)}. "
        self.text = piece[:at] + self.fact + piece[at:]
        self.question = f"What did {name} hide, and where?"

    def names_it(self, answer):
        return " ".join(self.thing.split()[1:]) in answer

    def is_in(self, passage):
        """Returns True if a passage, which may begin and end within the fact,
        has three words of it in a row."""
        words = self.fact.split()
        return any(" ".join(words[i:i + 3]) in " ".join(passage.split())
                   for i in range(len(words) - 2))


def measure(program, book, letters, count, folder):
    """Returns [(the answer names it, in the first passage, in any, by
    chance)]."""
    found = []
    path = folder / "piece.txt"
    for seed in range(count):
        item = Item(book, letters, seed)
        path.write_text(item.text, encoding="utf-8")
        document = program.document("ask", path, item.question, "-n", 40,
                                    "--temp", 0, "--repeat-penalty", 1,
                                    "--no-cache")
        output = document["output"][0]
        passages = [item.is_in(p["text"]) for p in output["read_here"]]
        covered = sum(len(p["text"]) for p in output["read_here"])
        found.append((item.names_it(output["text"]), passages[:1] == [True],
                      any(passages),
                      min(1, (covered + len(item.fact) * len(passages))
                          / len(item.text))))
    return found


def rows_of(found):
    rows = []
    for name, which in (("all", found),
                        ("that name it", [f for f in found if f[0]])):
        share = ["-"] * 3
        if which:
            share = [f"{100 * sum(f[i] for f in which) / len(which):.0f} %"
                     for i in (1, 2, 3)]
        rows.append([name, str(len(which)), *share])
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("book", type=pathlib.Path)
    parser.add_argument("--letters", type=int, default=8000)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--tiercel", default=str(
        pages.ROOT / "build/cpu/apps/tiercel"))
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    book = args.book.read_text(encoding="utf-8")
    if len(book) < args.letters:
        sys.exit(f"{args.book}: got {len(book)} letters, need {args.letters}")
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Program(args.tiercel), book, args.letters, args.count,
                        pathlib.Path(folder))
    model = os.environ.get("TIERCEL_MODEL", "the installed model")
    pages.publish(
        "Read here",
        f"{pages.version_of(args.tiercel)}; {pathlib.Path(model).name}; "
        f"{args.book.name}, pieces of {args.letters} letters",
        pages.table(COLUMNS, rows_of(found)), args.save and "read-here")


if __name__ == "__main__":
    main()
