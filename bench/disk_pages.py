#!/usr/bin/env python3
"""Decoding with pages on disk, beside all pages in memory and the prediction.

  bench/disk_pages.py BOOK             some minutes, quiet
  bench/disk_pages.py BOOK --save      also writes
                                       bench/results/<date>-<cpu>-disk-pages.md
  bench/disk_pages.py BOOK -- FLAG...  more flags of `tiercel ask`

It runs `tiercel ask` about a piece of BOOK of --tokens tokens, in a cache
folder of its own: with all pages in memory, with the least memory that works
(no page stays), and with half way between them. The first round of each reads
the piece, the others open it from the prompt cache. Times between tokens are
medians of --rounds runs' medians. The prediction is the plan's, with rates
measured before. The program has the system drop what it reads from the page
cache, so the rate is the disk's. All runs must give the same text, and the
bytes read from disk must be those of the formula.

Standard library only.
"""

import pathlib
import statistics
import sys

import pages
from program import Program, keep_caches_in
from prompt_cache import (QUESTION, book_parser, conditions,
                          piece, scratch_beside)

COLUMNS = ["memory for all, MB", "on disk, MB", "tokens", "read from disk, GB",
           "ms a token", "tokens/s", "predicted, ms", "of predicted"]


def total(tiers):
    return sum(sum(tiers.get(name, {}).values()) for name in ("device", "host"))


def bounds(program, context, flags):
    """The bounds of memory in bytes: none, then those of the description."""
    plan = ["plan", "-c", context, *flags]
    everything = total(program.document(*plan)["tiers"])
    least = program.document(*plan, "--host-memory",
                             "1MiB")["min_device_bytes"]
    return [None, least, (least + everything) // 2]


def measure(program, cut, context, bound, args):
    """Returns the documents of all runs, and the plan's bytes on disk."""
    flags = ["-c", context, *args.flags]
    if bound is not None:
        flags += ["--host-memory", f"{bound // 1000 + 1}kB"]
    plan = program.document("plan", *flags)
    documents = [
        program.document("ask", cut, QUESTION, "-n", args.generated, "--temp", 0,
                         "--ignore-eos", *flags)
        for _ in range(args.rounds)]
    return documents, plan["tiers"]


def row_of(documents, tiers):
    ms = statistics.median(d["tbt_ms"]["p50"] for d in documents)
    predicted = statistics.median(d["predicted"]["tbt_ms"] for d in documents)
    return [f"{total(tiers) / 1e6:.0f}",
            f"{tiers.get('disk', {}).get('kv', 0) / 1e6:.0f}",
            str(documents[-1]["prompt_tokens"]),
            f"{documents[-1]['ledger']['disk_read_bytes'] / 1e9:.2f}",
            f"{ms:.1f}", f"{1e3 / ms:.1f}", f"{predicted:.1f}",
            f"{ms / predicted:.2f}"]


def check(documents, expected):
    for document in documents:
        if document["output"][0]["tokens"] != expected:
            sys.exit("another text")
        ledger = document["ledger"]
        formula = ledger["formula"]
        asked = formula.get("page_bytes", 0) * (
            formula.get("opened_pages", 0) + formula.get("disk_pages", 0))
        # Pages that were requested for a step that never came may not be read.
        if not 0.95 * asked <= ledger["disk_read_bytes"] <= asked:
            sys.exit(f"read {ledger['disk_read_bytes']} bytes of {asked}")


def main():
    parser = book_parser(__doc__)
    parser.add_argument("--generated", type=int, default=24)
    args = parser.parse_args()
    program = Program(args.tiercel)
    text = args.book.read_text(encoding="utf-8")
    rows = []
    with scratch_beside(args.tiercel) as folder:
        folder = pathlib.Path(folder)
        cut = piece(program, text, args.tokens, folder)
        context = args.tokens + 600
        keep_caches_in(folder)
        expected = None
        for bound in bounds(program, context, args.flags):
            documents, tiers = measure(program, cut, context, bound, args)
            expected = expected or documents[0]["output"][0]["tokens"]
            check(documents, expected)
            rows.append(row_of(documents, tiers))
    pages.publish(
        "Pages on disk",
        conditions(args),
        pages.table(COLUMNS, rows, words=0), args.save and "disk-pages")


if __name__ == "__main__":
    main()
