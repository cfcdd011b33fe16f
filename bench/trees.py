#!/usr/bin/env python3
"""Branches of TriForce's drafts: tokens a sweep, and what they cost.

  bench/trees.py            an hour, most of it the longer text
  bench/trees.py --save     also writes bench/results/<date>-<cpu>-trees-<lengths>.md

The texts are those of triforce.py, 7,000 tokens and 28,000, for which SmolLM2's
context is scaled (YaRN). First each number of branches runs without a link:
tokens a sweep do not depend on one. Then it runs behind a simulated link whose
sweep takes --sweep draft steps, with the least memory that works, by turns with
no branches: the ratio is of tokens a second. `in branches` is the share of the
tokens that came from a branch. With --temp 0 a seed changes nothing: the text
of each begins further on in the book.

Standard library only.
"""

import itertools
import os
import pathlib
import statistics
import tempfile

import pages
from program import Program, keep_caches_in
from triforce import (KV_BYTES, Runs, Text, book, draft_step, parser_of_text,
                      view_of)

COLUMNS = ["prompt", "view", "block", "branches", "tokens a sweep",
           "in branches", "acceptance"]
TIMED = ["prompt", "branches", "sweep, draft steps", "device, MB",
         "tokens/s", "of no branches"]
FURTHER = 150000  # letters, from the beginning of a text to that of the next


def flags_of(view, gamma2, branches, temp):
    return ["--policy", "triforce", "--budget", view, "--gamma2", gamma2,
            "--branches", branches, "--temp", temp]


def count_row(prompt, view, gamma2, branches, runs):
    """A row of the first table."""
    made = runs.sum("speculation", "sweeps") * runs.tokens_per_sweep()
    return [f"{prompt:,}", f"{view:,}", str(gamma2), str(branches),
            f"{runs.tokens_per_sweep():.1f}",
            f"{runs.level('branch_accepted') / made:.0%}",
            f"{runs.acceptance():.3f}"]


def time_row(prompt, branches, sweep, device, rates, bases):
    """A row of the second table, for runs by turns with no branches."""
    ratio = statistics.median(r / b for r, b in zip(rates, bases))
    return [f"{prompt:,}", str(branches), str(sweep), device,
            f"{statistics.median(rates):.1f}", f"{ratio:.2f}"]


def samples_of(args, program, scratch, length):
    """The texts and seeds that are run: pairs."""
    count = args.seeds if args.temp == 0 else 1
    texts = [Text(program, book(args.book)[args.skip + i * FURTHER:],
                  scratch / f"{length}-{i}-{args.book}", length, kept=True)
             for i in range(count)]
    if args.temp == 0:
        return [(text, 1) for text in texts]
    return [(texts[0], seed) for seed in range(1, args.seeds + 1)]


def main():
    parser = parser_of_text(description=__doc__.split("\n")[0])
    parser.add_argument("--tokens", type=int, default=160)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--verify", default="residual")
    parser.add_argument("--temp", type=float, default=0.6)
    parser.add_argument("--lengths", type=int, nargs="+",
                        default=[7000, 28000])
    parser.add_argument("--timed", type=int, nargs="*", default=[7000],
                        help="those of the lengths that run behind a link")
    parser.add_argument("--branches", type=int, nargs="+",
                        default=[0, 2, 4, 8])
    parser.add_argument("--gamma2", type=int, nargs="+", default=[16, 24])
    parser.add_argument("--sweep", type=int, default=100,
                        help="draft steps that a sweep takes")
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    program = Program(args.tiercel)
    counts, times = [], []
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        keep_caches_in(scratch)
        samples = {length: samples_of(args, program, scratch, length)
                   for length in args.lengths}

        def run(samples, *flags):
            return Runs([one for text, seed in samples for one in text.run(
                args.tokens, [seed], "--verify", args.verify, *flags).runs])

        for length in args.lengths:
            view = view_of(length)
            for gamma2, branches in itertools.product(args.gamma2,
                                                      args.branches):
                runs = run(samples[length],
                           *flags_of(view, gamma2, branches, args.temp))
                counts.append(count_row(samples[length][0][0].prompt, view,
                                        gamma2, branches, runs))
                print(counts[-1], flush=True)
        for length in args.timed:
            text, view = samples[length][0][0], view_of(length)
            rate = text.prompt * KV_BYTES / (
                args.sweep * draft_step(text, view, []))

            def timed(branches, sample):
                device = text.device(
                    f"link={rate / 1e6:.2f}MB/s", "--policy", "triforce",
                    "--budget", view, "--branches", branches)
                one = run([sample], "--simulate", device, *flags_of(
                    view, args.gamma2[0], branches, args.temp))
                return one.rate(), one.first("memory", "device_bytes") / 1e6

            for branches in args.branches[1:]:
                pairs = [(timed(branches, sample), timed(0, sample))
                         for sample in samples[length]]
                times.append(time_row(
                    text.prompt, branches, args.sweep,
                    ", ".join(f"{one[1]:.0f}" for one in pairs[0]),
                    [one[0] for one, _ in pairs],
                    [base[0] for _, base in pairs]))
                print(times[-1], flush=True)
    pages.publish(
        "Branches of drafts",
        f"{pages.version_of(args.tiercel)}; {args.book}, {args.tokens} tokens "
        f"for each of {args.seeds} {'seeds' if args.temp else 'texts'}, "
        f"--temp {args.temp:g}, --verify {args.verify}; "
        f"{os.cpu_count()} threads, {pages.load_now()}",
        [*pages.table(COLUMNS, counts, words=0), "",
         "Behind a link (simulated):", "",
         *pages.table(TIMED, times, words=0)],
        args.save and f"trees-{'-'.join(map(str, args.lengths))}" +
        ("" if args.temp else "-greedy"))


if __name__ == "__main__":
    main()
