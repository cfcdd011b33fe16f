#!/usr/bin/env python3
"""Drafting while a sweep is on its way: --draft-ahead beside none, by turns.

  bench/draft_ahead.py           eight minutes, quiet
  bench/draft_ahead.py --save    also writes bench/results/<date>-<cpu>-draft-ahead.md

TriForce with --verify coupled, so that the text is the same with and without.
The prompt is that of triforce.py, 7,000 tokens. The device is simulated, with
the least memory that works; the link's rate is such that a sweep over the prompt
takes a number of draft steps (measured first, without a link). A run with and
one without follow each other: the ratio is of tokens a second. `ready` is the
share of the sweeps whose next block was there when they ended.

Standard library only.
"""

import os
import pathlib
import re
import statistics
import tempfile

import pages
from program import Program, keep_caches_in
from triforce import (KV_BYTES, Text, book, draft_step, parser_of_text,
                      view_of)

COLUMNS = ["prompt", "block", "sweep, draft steps", "device, MB", "ready",
           "tokens/s", "of none"]


def row(prompt, gamma2, sweep, devices, pairs):
    """A row of the table, for runs (with, without) by turns on `devices`."""
    ratio = statistics.median(a.rate() / b.rate() for a, b in pairs)
    ready = (sum(a.level("ahead") for a, _ in pairs)
             / sum(a.sum("speculation", "sweeps") for a, _ in pairs))
    return [f"{prompt:,}", str(gamma2), str(sweep),
            ", ".join(f"{int(re.search('[0-9]+', device)[0]) / 1e3:.0f}"
                      for device in devices),
            f"{ready:.0%}",
            f"{statistics.median(a.rate() for a, _ in pairs):.1f}",
            f"{ratio:.2f}"]


def main():
    parser = parser_of_text(description=__doc__.split("\n")[0])
    parser.add_argument("--tokens", type=int, default=120)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--length", type=int, default=7000)
    parser.add_argument("--gamma2", type=int, nargs="+", default=[6, 12])
    parser.add_argument("--sweeps", type=int, nargs="+",
                        default=[24, 48], help="in draft steps")
    parser.add_argument("--temp", type=float, default=0.6)
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    program = Program(args.tiercel)
    table = []
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        keep_caches_in(scratch)
        text = Text(program, book(args.book)[args.skip:],
                    scratch / args.book, args.length, kept=True)
        view = view_of(args.length)
        step = draft_step(text, view, [])
        for gamma2 in args.gamma2:
            for sweep in args.sweeps:
                link = text.prompt * KV_BYTES / (sweep * step)
                flags = ["--policy", "triforce", "--budget", view]
                both = [[*flags, "--draft-ahead"], flags]
                devices = [text.device(f"link={link / 1e6:.2f}MB/s", *one)
                           for one in both]
                pairs = [[text.run(args.tokens, [seed], *one, "--gamma2",
                                   gamma2, "--verify", "coupled", "--temp",
                                   args.temp, "--simulate", device)
                          for one, device in zip(both, devices)]
                         for seed in range(1, args.seeds + 1)]
                for one, other in pairs:
                    assert (one.first("output", 0, "tokens")
                            == other.first("output", 0, "tokens"))
                table.append(row(text.prompt, gamma2, sweep, devices, pairs))
                print(table[-1], flush=True)
    pages.publish(
        "Drafting while a sweep is on its way",
        f"{pages.version_of(args.tiercel)}; {args.book}, {args.tokens} tokens "
        f"for each of {args.seeds} seeds, --temp {args.temp}, --verify coupled; "
        f"simulated link; {os.cpu_count()} threads, {pages.load_now()}",
        pages.table(COLUMNS, table, words=0),
        args.save and "draft-ahead")


if __name__ == "__main__":
    main()
