#!/usr/bin/env python3
"""Ranks behind links: a sweep over one link, two, three and four.

  bench/ranks.py             all but --before, ten minutes
  bench/ranks.py --sweeps    decoding without drafts, bound by the links
  bench/ranks.py --triforce  TriForce over several ranks beside one
  bench/ranks.py --before PROGRAM
                             one rank beside an older program, in turns
  bench/ranks.py --save      also writes bench/results/<date>-<cpu>-ranks.md; a
                             page of some parts has their names

Every rank is simulated: a device with the least memory that works, as `plan`
says, and a link of the stated rate. All ranks compute on this machine's CPUs,
so the rates are such that the links take longer than the arithmetic of all
ranks together: the times are those of the links, which other work on the
machine does not change. The plan's prediction stands beside each.

Sweeps are measured for two models: random weights, 3 layers with 32 KV heads,
after 32,768 positions (1.6 GB of KV; 10, 11 and 11 heads for three ranks), and
SmolLM2 after 7,000, whose 3 KV heads are 1 and 2 for two ranks; their KV is
random. TriForce is measured with SmolLM2 after 7,000 tokens of a book of
$TIERCEL_BOOKS. The random weights need numpy, all else only the standard
library.
"""

import argparse
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

import pages
from program import BLOCK, MODEL, Program

RANDOM = ["--layers", 3, "--hidden", 4096, "--heads", 32, "--ffn", 256,
          "--vocab", 512, "--context", 32896]
RANDOM_DEPTH = 32768
BOOK = "moby_dick.txt"
BOOK_DEPTH = 7000
DRAFTED = 48  # tokens with TriForce
VIEW = 1088  # positions that a draft reads: 1,024 chosen, 64 newest
RANKS = (1, 2, 3, 4)
ROWS = {1: 300, 512: 1024}  # for `eval`: rows a step, rows
ONE_RANK = ["-p", 512, "-n", 32, "-d", "0,2048", "-r", 2]  # for `bench`


def device(program, context, link, *args):
    """Returns (--simulate with the least device that each rank needs, its
    plan)."""
    common = ["-c", context, *args]
    least = program.document("plan", *common, "--simulate",
                             f"device=1kB,link={link}")["min_device_bytes"]
    simulate = ["--simulate", f"device={least},link={link}"]
    return simulate, program.document("plan", *common, *simulate)


def bench(program, *args):
    return program.document("bench", "-p", 0, "-r", 1, *args)[0]


def sweep_row(program, ranks, model, heads, depth, tokens, link):
    """The time of decoding after `depth` positions, measured and predicted."""
    of_ranks = ["-m", model, "--tensor-parallel", ranks]
    simulate, plan = device(program, depth + tokens, link, *of_ranks)
    row = bench(program, *of_ranks, *simulate, "-n", tokens, "-d", depth,
                "--fill")
    most = max((rank["kv_heads"][1] - rank["kv_heads"][0]
                for rank in plan.get("ranks", ())), default=heads)
    return {"ranks": ranks, "most": most, "ms": row["tbt_ms"]["p50"],
            "predicted": plan["tbt_ms"]}


def off(row):
    return abs(row["predicted"] / row["ms"] - 1)


def sweep_lines(rows):
    """The lines of a table with rows of sweep_row."""
    lines = ["| ranks | KV heads of one, at most | ms a token | times as fast as "
             "one rank | by heads | predicted, ms | off |",
             "|---:|---:|---:|---:|---:|---:|---:|"]
    first = rows[0]
    for row in rows:
        lines.append(
            f"| {row['ranks']} | {row['most']} | {row['ms']:.0f} | "
            f"{first['ms'] / row['ms']:.2f} | "
            f"{first['most'] / row['most']:.2f} | {row['predicted']:.0f} | "
            f"{100 * off(row):.1f} % |")
    return lines


def sweeps(program, scratch, args, say):
    model = scratch / "random.gguf"
    subprocess.run(["/usr/bin/python3", pages.ROOT / "bench/make_random.py",
                    *map(str, RANDOM), model], check=True)
    everything = []
    for title, path, heads, depth, link, counts in (
            ("random weights, 32 KV heads", model, 32, RANDOM_DEPTH,
             args.random_link, RANKS),
            ("SmolLM2, 3 KV heads", MODEL, 3, BOOK_DEPTH, args.book_link,
             RANKS[:3])):
        rows = [sweep_row(program, ranks, path, heads, depth, args.tokens, link)
                for ranks in counts]
        everything += rows
        say()
        say(f"## Sweeps, {title}: {args.tokens} tokens after {depth:,} positions, "
            f"links of {link}, simulated")
        say()
        for line in sweep_lines(rows):
            say(line)
    say()
    say(errors_line(everything))


def held(row):
    """The acceptance: the accepted share of the tokens that sweeps checked."""
    level = row["levels"][-1]
    return level["accepted"] / level["checked"]


def drafted_row(ranks, drafted, plain, sweep_ms, draft_ms):
    """Compares TriForce with decoding without drafts, where plans predict the
    times of a sweep and a draft."""
    drafts = drafted["levels"][-1]["drafted"] / (DRAFTED - 1)  # for each token
    return {"ranks": ranks, "held": held(drafted),
            "tokens": drafted["tokens_per_sweep"],
            "ms": 1e3 / drafted["avg_ts"], "plain": plain["tbt_ms"]["p50"],
            "predicted": (sweep_ms / drafted["tokens_per_sweep"]
                          + draft_ms * drafts)}


def triforce_lines(rows):
    """The lines of a table with rows of drafted_row."""
    lines = ["| ranks | tokens that held | tokens a sweep | ms a token | times "
             "one rank's speed | predicted, ms | off | ms a token, nobody "
             "drafting | speed-up |",
             "|---:|---:|---:|---:|---:|---:|---:|---:|---:|"]
    for row in rows:
        lines.append(
            f"| {row['ranks']} | {100 * row['held']:.0f} % | "
            f"{row['tokens']:.1f} | {row['ms']:.0f} | "
            f"{rows[0]['ms'] / row['ms']:.2f} | {row['predicted']:.0f} | "
            f"{100 * off(row):.1f} % | {row['plain']:.0f} | "
            f"{row['plain'] / row['ms']:.1f} |")
    return lines


def errors_line(rows):
    errors = [100 * off(row) for row in rows]
    return (f"The prediction is off by {statistics.median(errors):.1f} % in the "
            f"median, {max(errors):.1f} % at most.")


def triforce(program, args, say):
    book = pathlib.Path(os.environ["TIERCEL_BOOKS"]) / BOOK
    rows = []
    for ranks in RANKS[:2]:
        of_ranks = ["-m", MODEL, "--tensor-parallel", ranks]
        policy = ["--policy", "triforce"]
        # Both have the same device: the least that works with the view.
        simulate, plan = device(program, BOOK_DEPTH + DRAFTED + BLOCK,
                                args.triforce_link, *of_ranks, *policy)
        draft = program.document(
            "plan", *of_ranks, "-c", VIEW, "--simulate",
            f"device=1GB,link={args.triforce_link}")
        common = [*of_ranks, *simulate, "-d", BOOK_DEPTH]
        rows.append(drafted_row(
            ranks,
            bench(program, *common, *policy, "-f", book, "--verify", "coupled",
                  "--temp", 0.6, "-n", DRAFTED),
            bench(program, *common, "-n", 2, "--fill"), plan["tbt_ms"],
            draft["tbt_ms"]))
    say()
    say(f"## TriForce, SmolLM2: {DRAFTED} tokens after {BOOK_DEPTH:,} of {BOOK}, "
        f"coupled, temperature 0.6, links of {args.triforce_link}, simulated")
    say()
    for line in triforce_lines(rows):
        say(line)
    say()
    say("Predicted is the plan's time of a sweep over the tokens that came of "
        "one, and of each draft that of a step over the view alone. "
        + errors_line(rows))


def before_lines(runs):
    """The table for runs: {test: [(tokens a second before, now)]}, one pair a
    turn."""
    lines = ["| test | before | now | ratio of turns: median (least to greatest) "
             "|", "|---|---:|---:|---:|"]
    for test, turns in runs.items():
        ratios = [now / before for before, now in turns]
        first, second = (statistics.median(side) for side in zip(*turns))
        lines.append(
            f"| {test} | {first:.1f} | {second:.1f} | "
            f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to "
            f"{max(ratios):.3f}) |")
    return lines


def rows_a_cpu_second(program, rows, at_once):
    """The rows that `eval` computes in a second of CPU time on one thread,
    which other work does not change."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as ids:
        # Every vocabulary has these ids.
        ids.write(" ".join(str(1 + i % 199) for i in range(rows)))
        ids.flush()
        begin = resource.getrusage(resource.RUSAGE_CHILDREN)
        program.document("eval", "-m", MODEL, "--tokens", ids.name, "-t", 1,
                         "-ub", at_once)
        end = resource.getrusage(resource.RUSAGE_CHILDREN)
    return rows / (end.ru_utime + end.ru_stime - begin.ru_utime
                   - begin.ru_stime)


def before(args, say):
    programs = [Program(args.before), Program(args.tiercel)]
    runs = {}
    for turn in range(args.turns):
        documents = [None, None]
        order = (0, 1) if turn % 2 == 0 else (1, 0)
        for which in order:
            documents[which] = programs[which].document("bench", "-m", MODEL,
                                                        *ONE_RANK)
        for first, second in zip(*documents):
            assert first["test"] == second["test"]
            runs.setdefault(first["test"], []).append(
                (first["avg_ts"], second["avg_ts"]))
        for at_once, rows in ROWS.items():
            rates = [0.0, 0.0]
            for which in order:
                rates[which] = rows_a_cpu_second(programs[which], rows, at_once)
            runs.setdefault(f"eval -ub {at_once}, rows a CPU second",
                            []).append(tuple(rates))
    say()
    say(f"## One rank beside {pages.version_of(args.before)}, {args.turns} turns, "
        "tokens a second")
    say()
    for line in before_lines(runs):
        say(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tiercel",
                        default=pages.ROOT / "build/cpu/apps/tiercel")
    parser.add_argument("--sweeps", action="store_true")
    parser.add_argument("--triforce", action="store_true")
    parser.add_argument("--before", metavar="PROGRAM")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=3)
    parser.add_argument("--random-link", default="200MB/s")
    parser.add_argument("--book-link", default="50MB/s")
    parser.add_argument("--triforce-link", default="50MB/s")
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    usual = {"sweeps", "triforce"}
    wanted = {part for part in (*usual, "before") if getattr(args, part)}
    wanted = wanted or usual
    say = pages.Lines()
    say("# Ranks behind links")
    say()
    say(f"{pages.cpu_name()}, {os.cpu_count()} threads, {pages.today()}, "
        f"{pages.version_of(args.tiercel)}, load {os.getloadavg()[0]:.1f}.")
    program = Program(args.tiercel)
    if "sweeps" in wanted:
        with tempfile.TemporaryDirectory() as scratch:
            sweeps(program, pathlib.Path(scratch), args, say)
    if "triforce" in wanted:
        triforce(program, args, say)
    if args.before:
        before(args, say)
    if args.save:
        print(pages.save(say.said, {},
                         pages.page_name("ranks", wanted, usual)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
