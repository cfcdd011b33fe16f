#!/usr/bin/env python3
"""Counts how often passages that `tiercel ask` calls "read here" have a fact.

  bench/read_here.py BOOK             200 facts, some 20 minutes
  bench/read_here.py BOOK --facts 3   three in each piece, asked together
  bench/read_here.py BOOK --save      also writes
                                      bench/results/<date>-<cpu>-read-here.md

Each time a sentence that says who hid what, and where, is put between two
sentences of a piece of BOOK, or several are, and `tiercel ask` is asked about
each. It names at most three passages. The script counts how often the first of
them, and any, has words of the sentence asked about: for all answers, and for
those that name what was hidden. By chance three passages of 32 tokens do so in
proportion to the share of the piece that they cover, which is printed too. It
counts the pieces, too, for all of whose questions the first passage is the
same.

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


class Fact:
    """A sentence that is put into a piece of a book, and a question about it."""

    def __init__(self, thing, name, place):
        self.words = (thing, name, place)
        self.thing = thing
        self.sentence = f"{name} hid {thing} {place}. "
        self.question = f"What did {name} hide, and where?"

    def is_named_in(self, answer):
        return " ".join(self.thing.split()[1:]) in answer

    def is_in(self, passage):
        """Returns True if a passage, which may begin and end within the fact,
        has three words of it in a row."""
        words = self.sentence.split()
        return any(" ".join(words[i:i + 3]) in " ".join(passage.split())
                   for i in range(len(words) - 2))


class Item:
    """A piece of a book with facts in it."""

    def __init__(self, book, letters, count, seed):
        draw = random.Random(seed)
        begin = draw.randrange(max(1, len(book) - letters))
        piece = book[begin:begin + letters]
        self.facts = []
        places = []
        for _ in range(count):
            places.append(draw.randrange(letters // 16, letters * 15 // 16))
            self.facts.append(Fact(*(
                draw.choice([word for word in words
                             if not any(word in fact.words
                                        for fact in self.facts)])
                for words in (THINGS, NAMES, PLACES))))
        for place, fact in sorted(zip(places, self.facts), reverse=True,
                                  key=lambda pair: pair[0]):
            at = piece.find(". ", place)
            at = len(piece) // 2 if at < 0 else at + 2
            piece = piece[:at] + fact.sentence + piece[at:]
        self.text = piece


def measure(program, book, args, folder):
    """Returns [(the answer names it, in the first passage, in any, by
    chance)], and for each piece whether its first passages are the same."""
    found = []
    same = []
    path = folder / "piece.txt"
    for seed in range(-(-args.count // args.facts)):
        item = Item(book, args.letters, args.facts, seed)
        path.write_text(item.text, encoding="utf-8")
        document = program.document(
            "ask", path, *(fact.question for fact in item.facts), "-n", 40,
            "--temp", 0, "--repeat-penalty", 1, "--no-cache")
        firsts = []
        for fact, output in zip(item.facts, document["output"]):
            texts = [p["text"] for p in output["read_here"]]
            firsts.append(texts[:1])
            passages = [fact.is_in(text) for text in texts]
            covered = sum(map(len, texts))
            found.append((fact.is_named_in(output["text"]),
                          passages[:1] == [True], any(passages),
                          min(1, (covered + len(fact.sentence) * len(passages))
                              / len(item.text))))
        same.append(all(first == firsts[0] for first in firsts))
    return found, same


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
    parser.add_argument("--facts", type=int, default=1)
    parser.add_argument("--tiercel", default=str(
        pages.ROOT / "build/cpu/apps/tiercel"))
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    book = args.book.read_text(encoding="utf-8")
    if len(book) < args.letters:
        sys.exit(f"{args.book}: got {len(book)} letters, need {args.letters}")
    with tempfile.TemporaryDirectory() as folder:
        found, same = measure(Program(args.tiercel), book, args,
                              pathlib.Path(folder))
    model = os.environ.get("TIERCEL_MODEL", "the installed model")
    lines = pages.table(COLUMNS, rows_of(found))
    name = "read-here"
    if args.facts > 1:
        name += f"-{args.facts}"
        lines += ["", f"{sum(same)} of {len(same)} pieces have one first passage "
                      "for all of their questions."]
    pages.publish(
        "Read here",
        f"{pages.version_of(args.tiercel)}; {pathlib.Path(model).name}; "
        f"{args.book.name}, pieces of {args.letters} letters with "
        f"{args.facts} fact" + "s, asked together" * (args.facts > 1),
        lines, args.save and name)


if __name__ == "__main__":
    main()
