#!/usr/bin/env python3
"""The acceptance of TriForce's drafts, by view, chunk and length of a block.

  bench/acceptance.py           7,000 tokens, ten minutes
  bench/acceptance.py --lengths 28000 --books moby_dick.txt --seeds 12 \
      --tokens 96               28,000, by how a view is chosen: half an hour
  bench/acceptance.py --save    also writes bench/results/<date>-<cpu>-acceptance*:
                                the page, and its charts (SVG); other lengths
                                than 7,000 are in its name

The texts are made as in bench/triforce.py, from several books. A cell has the
range over them of the acceptance, which is the share of the checked drafts that
were accepted, and of the tokens a sweep. Nothing is timed, so other work does
not matter. Standard library only.
"""

import argparse
import functools
import pathlib
import statistics
import tempfile

import chart
import pages
import triforce
from program import Program, keep_caches_in


class Held:
    """The acceptance in each of some runs, one a text."""

    def __init__(self, runs):
        self.acceptance = [run.acceptance() for run in runs]
        self.per_sweep = [run.tokens_per_sweep() for run in runs]
        self.each = [one.acceptance() for run in runs for one in run.each()]

    def cell(self):
        return f"{between(self.acceptance, 3)}; {between(self.per_sweep, 1)}"

    def mean(self):
        return statistics.mean(self.acceptance)


def between(values, digits):
    low, high = (f"{v:.{digits}f}" for v in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def budget_table(held, prompt, view, say):
    """Prints the table of budgets by draft lengths; held(budget, chunk, length,
    temperature) makes a cell. Returns the chart."""
    columns = {f"T {temp}, blocks of {length}": (length, temp)
               for temp, length in ((0.6, 8), (0.6, 16), (0, 16))}
    series = {name: [] for name in columns}
    say("Chunks of 32.")
    say()
    say(f"| budget | {' | '.join(columns)} |")
    say("|---:|" + "---|" * len(columns))
    for budget in (view // 4, view // 2, view, 2 * view):
        cells = []
        for name, column in columns.items():
            one = held(budget, 32, *column)
            cells.append(one.cell())
            series[name].append((budget, one.mean()))
        say(f"| {budget} | {' | '.join(cells)} |")
    say()
    return chart.line_chart(
        f"Drafts that hold, {prompt:,} tokens, chunks of 32", "tokens in view",
        "acceptance", series)


def chunk_table(held, prompt, view, chunks, say):
    """Prints the table of chunks at one budget, with `held` as above; returns
    the chart."""
    say(f"A view of {view:,}, T 0.6, blocks of 16. Chunks of 1 are positions, "
        "chosen by the keys' own scores with the last 16 rows.")
    say()
    say("| chunk | acceptance; tokens a sweep |")
    say("|---:|---|")
    points = []
    for chunk in chunks:
        one = held(view, chunk, 16, 0.6)
        points.append((chunk, one.mean()))
        say(f"| {chunk} | {one.cell()} |")
    say()
    return chart.line_chart(
        f"Drafts that hold, {prompt:,} tokens, a view of {view:,}",
        "positions a chunk", "acceptance", {"T 0.6, blocks of 16": points})


# The ways to choose at one budget: names, and flags except the budget. The
# parts of the selection that spread the choice are off, as drafts that are
# checked gain nothing from them.
ATTENTION = "prior=0,nms=0,exclusive=0"
SELECTIONS = [
    ("chunks of 32, by the mean key and the last row",
     ["--policy", "triforce"]),
    ("positions, by their keys and 16 rows",
     ["--policy", "triforce", "--chunk", 1]),
    ("... by 4 rows and what earlier ones said, decay 0.97",
     ["--policy", "sfi", "--sink", 32, "--window", 64, "--set",
      f"{ATTENTION},queries=4,decay=0.97"]),
    ("... decay 0.9, with 2 beside each",
     ["--policy", "sfi", "--sink", 32, "--window", 64, "--set",
      f"{ATTENTION},queries=4,decay=0.9,beside=2"]),
    ("... decay 0.97, and by what was drafted",
     ["--policy", "sfi", "--sink", 32, "--window", 64, "--set",
      f"{ATTENTION},queries=4,decay=0.97,drafted=63"]),
]


def selection_table(run, prompt, view, say):
    """Prints the table of ways to choose, by run(flags, budget, length), with
    the least and the greatest of any text and seed. The last rows bound them:
    blocks of one token, in which no choice grows old, and a view that lacks
    only a few hundred tokens."""
    say(f"A view of {view:,}, T 0.6, blocks of 16, by how it is chosen.")
    say()
    say("| chosen | acceptance; tokens a sweep | of one text and seed |")
    say("|---|---|---|")
    most = prompt // 1024 * 1024
    rows = [(name, flags, view, 16) for name, flags in SELECTIONS]
    rows.append(("... in blocks of 1", SELECTIONS[-1][1], view, 1))
    rows.append((f"a view of {most:,}", ["--policy", "triforce"], most, 16))
    for name, flags, budget, length in rows:
        held = run(flags, budget, length)
        say(f"| {name} | {held.cell()} | {between(held.each, 3)} |")
    say()


def length_table(held, prompt, view, say):
    """Prints the table of block lengths at one budget, with `held` as above;
    returns the chart."""
    say(f"A view of {view:,}, chunks of 32, T 0.6.")
    say()
    say("| tokens a block | acceptance; tokens a sweep |")
    say("|---:|---|")
    points = []
    for length in (4, 8, 16, 24, 32):
        one = held(view, 32, length, 0.6)
        points.append((length, statistics.mean(one.per_sweep)))
        say(f"| {length} | {one.cell()} |")
    say()
    return chart.line_chart(
        f"Tokens a sweep, {prompt:,} tokens, a view of {view:,}",
        "tokens a block", "tokens a sweep", {"T 0.6, chunks of 32": points})


def tables(texts, prompt, args, say, charts):
    def run(flags, budget, length, temp=0.6):
        return Held([text.run(
            args.tokens, range(1, args.seeds + 1), *flags, "--draft", "none",
            "--verify", args.verify, "--budget", budget, "--gamma2", length,
            "--temp", temp) for text in texts])

    @functools.cache
    def held(budget, chunk, length, temp):
        return run(["--policy", "triforce", "--chunk", chunk], budget, length,
                   temp)

    say()
    say(f"## {prompt:,} tokens")
    say()
    if prompt < triforce.LONG:
        charts["budget"] = budget_table(held, prompt, 1024, say)
        charts["length"] = length_table(held, prompt, 1024, say)
        charts[f"chunk-{prompt}"] = chunk_table(
            held, prompt, 1024, (1, 8, 16, 32, 64, 128), say)
    else:
        selection_table(run, prompt, triforce.view_of(prompt), say)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tiercel",
                        default=pages.ROOT / "build/cpu/apps/tiercel")
    parser.add_argument("--books", default="moby_dick.txt,news_from_nowhere.txt")
    parser.add_argument("--skip", type=int, default=30000,
                        help="letters of a book before the text")
    parser.add_argument("--tokens", type=int, default=160)
    parser.add_argument("--seeds", type=int, default=1,
                        help="runs of each configuration, summed")
    parser.add_argument("--verify", default="residual")
    parser.add_argument("--lengths", default="7000", help="tokens of a prompt")
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    say, charts = pages.Lines(), {}
    books = args.books.split(",")
    say("# What holds of TriForce's drafts")
    say()
    say(f"{pages.cpu_name()}, {pages.today()}, "
        f"{pages.version_of(args.tiercel)}. SmolLM2-135M Q4_1, "
        f"{', '.join(books)}, {args.tokens} tokens decoded, seeds 1 to "
        f"{args.seeds}, --verify {args.verify}, no inner drafter. A cell: "
        "acceptance; tokens a sweep; each a range over the books.")
    program = Program(args.tiercel)
    with tempfile.TemporaryDirectory() as scratch:
        keep_caches_in(scratch)  # the prompt cache
        for prompt in map(int, args.lengths.split(",")):
            texts = [triforce.Text(program, triforce.book(name)[args.skip:],
                                   pathlib.Path(scratch) / f"{prompt}-{name}",
                                   prompt, kept=True) for name in books]
            tables(texts, prompt, args, say, charts)
    if args.save:
        lengths = () if args.lengths == "7000" else args.lengths.split(",")
        print(pages.save(say.said, charts, "-".join(["acceptance", *lengths])))


if __name__ == "__main__":
    main()
