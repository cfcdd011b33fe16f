#!/usr/bin/env python3
"""Texts that are made at once, beside one after the other.

  bench/at_once.py BOOK             some minutes, quiet
  bench/at_once.py BOOK --save      also writes
                                    bench/results/<date>-<cpu>-at-once.md
  bench/at_once.py BOOK -- FLAG...  more flags of `tiercel generate`
  bench/at_once.py --parts          the parts of a book that is summarized;
                                    --save: ...-parts-at-once.md

It runs `tiercel generate --seeds` behind pieces of BOOK of some lengths, for
one seed and for more, which then share their passes. A rate counts all texts'
tokens but their first, by the time of the text that takes longest. The ratio
is to the rate of one seed alone, in turns with it; medians of --rounds. Every
text must be the one that its seed gives alone.

With --parts it runs `tiercel summarize` on the first --bytes of BOOK (policy.txt
of $TIERCEL_BOOKS unless named), with --at-once 1 and with as many as the plan
chooses, by turns. Its seconds are those of the whole reading, whose tokens are
those written; all texts must be the same.

Standard library only.
"""

import os
import pathlib
import statistics
import sys

import pages
from program import Program, keep_caches_in
from prompt_cache import book_parser, conditions, piece, scratch_beside

COUNTS = (2, 4, 8, 16)
COLUMNS = ["prompt", "texts", "at once", "tokens/s", "of one alone", "ratio",
           "ms between tokens"]


def rate_of(document):
    """Tokens a second of all texts, which may be made in several groups."""
    outputs = document["output"]
    tokens, seconds = 0, 0
    while outputs:
        group = outputs[:outputs[0].get("at_once", 1)]
        made = [len(output["tokens"]) - 1 for output in group]
        rates = [output.get("decode_tok_s", document.get("decode_tok_s"))
                 for output in group]
        tokens += sum(made)
        seconds += max(count / rate for count, rate in zip(made, rates))
        outputs = outputs[len(group):]
    return tokens / seconds


def row_of(length, alone, together):
    """A row of the table for runs of one seed and of several, by turns."""
    rates = [rate_of(document) for document in together]
    ones = [rate_of(document) for document in alone]
    between = [output["tbt_ms"]["p50"] for document in together
               for output in document["output"]]
    texts = together[0]["output"]
    return [str(length), str(len(texts)), str(texts[0]["at_once"]),
            f"{statistics.median(rates):.0f}", f"{statistics.median(ones):.0f}",
            f"{statistics.median(r / o for r, o in zip(rates, ones)):.2f}",
            f"{statistics.median(between):.1f}"]


PARTS_COLUMNS = ["parts", "at once", "tokens", "seconds", "one by one",
                 "tokens/s written", "one by one", "ratio of seconds"]


def parts_row_of(alone, beside):
    """A row for readings of a book one by one and side by side, by turns."""
    def median_of(documents, value):
        return statistics.median(map(value, documents))

    # The gaps between tokens, and the first token of each text.
    written = beside[0]["tbt_ms"]["samples"]
    texts = len(beside[0]["parts"]) - (
        beside[0]["parts"][-1]["level"] > 0)
    seconds = [median_of(documents, lambda d: d["seconds"])
               for documents in (beside, alone)]
    rates = [median_of(documents, lambda d: d["decode_tok_s"])
             for documents in (beside, alone)]
    ratio = statistics.median(one["seconds"] / several["seconds"]
                              for one, several in zip(alone, beside))
    return [str(texts), str(beside[0]["at_once"]), str(written + texts),
            *(f"{value:.1f}" for value in seconds),
            *(f"{value:.0f}" for value in rates), f"{ratio:.2f}"]


def measure_parts(args):
    """Publishes the readings of a book by parts."""
    program = Program(args.tiercel)
    book = args.book or (pathlib.Path(os.environ["TIERCEL_BOOKS"])
                         / "policy.txt")
    alone, beside = [], []
    with scratch_beside(args.tiercel) as folder:
        folder = pathlib.Path(folder)
        keep_caches_in(folder)
        cut = folder / book.name
        cut.write_bytes(book.read_bytes()[:args.bytes])
        for _ in range(args.rounds):
            for documents, flags in ((alone, ("--at-once", 1)), (beside, ())):
                documents.append(program.document(
                    "summarize", cut, "--no-cache", *flags, *args.flags))
                if documents[-1]["parts"] != alone[0]["parts"]:
                    sys.exit("another text")
    pages.publish(
        "Parts of a book that are made at once",
        f"{pages.version_of(args.tiercel)}; {args.rounds} rounds of {book.name}"
        f", {args.bytes} bytes; {pages.load_now()}; flags: "
        f"{' '.join(args.flags) or 'none'}",
        pages.table(PARTS_COLUMNS, [parts_row_of(alone, beside)], words=0),
        args.save and "parts-at-once")


def main():
    parser = book_parser(__doc__, needs_book=False)
    parser.add_argument("--parts", action="store_true")
    parser.add_argument("--bytes", type=int, default=48000)
    parser.add_argument("--generated", type=int, default=129)
    parser.add_argument("--lengths", type=int, nargs="+", default=[64, 2000])
    parser.add_argument("--texts", type=int, nargs="+", default=COUNTS)
    args = parser.parse_args()
    if args.parts:
        measure_parts(args)
        return
    if args.book is None:
        parser.error("BOOK is required without --parts")
    program = Program(args.tiercel)
    text = args.book.read_text(encoding="utf-8")
    rows = []
    with scratch_beside(args.tiercel) as folder:
        folder = pathlib.Path(folder)
        keep_caches_in(folder)
        for length in args.lengths:
            cut = piece(program, text, length, folder)

            def run(first, last):
                return program.document(
                    "generate", "-f", cut, "-n", args.generated, "--temp", 0.8,
                    "--ignore-eos", "--seeds", f"{first}:{last}", *args.flags)

            expected = [run(seed, seed)["output"][0]["tokens"]
                        for seed in range(max(args.texts))]
            for count in args.texts:
                alone, together = [], []
                for _ in range(args.rounds):
                    alone.append(run(0, 0))
                    together.append(run(0, count - 1))
                    if [o["tokens"] for o in together[-1]["output"]] != (
                            expected[:count]):
                        sys.exit("another text")
                rows.append(row_of(length, alone, together))
    pages.publish(
        "Texts that are made at once",
        conditions(args, "tokens a text"),
        pages.table(COLUMNS, rows, words=0), args.save and "at-once")


if __name__ == "__main__":
    main()
