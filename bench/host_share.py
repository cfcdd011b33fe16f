#!/usr/bin/env python3
"""Decoding over a simulated link with the host's share of sweeps, beside all
pages over the link and beside the prediction.

  bench/host_share.py BOOK             some minutes, quiet
  bench/host_share.py BOOK --save      also writes
                                       bench/results/<date>-<cpu>-host-share.md
  bench/host_share.py BOOK -- FLAG...  more flags of `tiercel generate`

It runs `tiercel generate` behind a piece of BOOK of --tokens tokens, on a device
that is simulated: the least that works, behind a link of --link bytes a second.
The host attends at rates that are 0 (no share), 0.5, 1 and 2 times the link's.
Times between tokens are medians of --rounds runs' medians. The prediction is the
plan's, with rates measured before. All runs must give the same text.

Standard library only.
"""

import pathlib
import statistics
import sys

import pages
from program import Program, keep_caches_in
from prompt_cache import book_parser, conditions, piece, scratch_beside

HOSTS = (0, 0.5, 1, 2)
COLUMNS = ["host over link", "of the pages", "MB a token", "ms a token",
           "predicted, ms", "gain", "predicted gain", "of that"]


def measure(program, cut, host, args):
    flags = ["-c", args.tokens + 200, *args.flags]
    link = f"link={args.link:.0f}B/s"
    if host > 0:
        link += f",host={host * args.link:.0f}B/s"
    least = program.document("plan", *flags, "--simulate",
                             f"device=1kB,{link}")["min_device_bytes"]
    return [program.document(
        "generate", "-f", cut, "-n", args.generated, "--temp", 0,
        "--ignore-eos", *flags, "--simulate", f"device={least},{link}")
        for _ in range(args.rounds)]


def row_of(documents, host, alone):
    """A row of the table, and its ms a token, measured and predicted. `alone`
    are those of the run without a share."""
    ms = statistics.median(d["tbt_ms"]["p50"] for d in documents)
    predicted = statistics.median(d["predicted"]["tbt_ms"] for d in documents)
    ledger = documents[-1]["ledger"]
    formula = ledger["formula"]
    hosts = formula.get("host_pages", 0)
    tokens = documents[-1]["tbt_ms"]["samples"]
    gain, foreseen = (before / now for before, now in
                      zip(alone or (ms, predicted), (ms, predicted)))
    row = [f"{host:g}", f"{hosts / (hosts + formula['swept_pages']):.2f}",
           f"{ledger['phases']['verify']['h2d_bytes'] / tokens / 1e6:.1f}",
           f"{ms:.1f}", f"{predicted:.1f}", f"{gain:.2f}", f"{foreseen:.2f}",
           f"{gain / foreseen:.2f}"]
    return row, (ms, predicted)


def main():
    parser = book_parser(__doc__)
    parser.add_argument("--generated", type=int, default=24)
    parser.add_argument("--link", type=float, default=200e6)
    args = parser.parse_args()
    program = Program(args.tiercel)
    text = args.book.read_text(encoding="utf-8")
    rows = []
    expected = alone = None
    with scratch_beside(args.tiercel) as folder:
        folder = pathlib.Path(folder)
        cut = piece(program, text, args.tokens, folder)
        keep_caches_in(folder)
        for host in HOSTS:
            documents = measure(program, cut, host, args)
            for document in documents:
                expected = expected or document["output"][0]["tokens"]
                if document["output"][0]["tokens"] != expected:
                    sys.exit("another text")
            row, times = row_of(documents, host, alone)
            alone = alone or times
            rows.append(row)
    pages.publish(
        "The host's share of sweeps",
        f"simulated: a link of {args.link / 1e6:.0f} MB/s; {conditions(args)}",
        pages.table(COLUMNS, rows, words=0), args.save and "host-share")


if __name__ == "__main__":
    main()
