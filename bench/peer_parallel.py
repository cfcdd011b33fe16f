#!/usr/bin/env python3
"""Texts that go on from one context at once: Tiercel and llama.cpp's
batched-bench side by side.

  bench/peer_parallel.py                 some minutes, on a quiet machine
  bench/peer_parallel.py --depths 0,2048 --counts 1,8 --rounds 2
  bench/peer_parallel.py --save          also writes
                                         bench/results/<date>-<cpu>-parallel.md

A round runs every depth, first one program, then the other, and the next round
swaps them. The texts of both share the context: llama.cpp's are copies in one
unified cache, Tiercel's are forks. A rate counts all texts' tokens, by the time
from the context's end; it is the median over rounds, and llama.cpp's with or
without flash attention, whichever is better. Its tokens are random and never
sampled; Tiercel draws each from its logits. llama.cpp is built as peer.py does.

Standard library only.
"""

import argparse
import json
import os
import pathlib
import statistics

import pages
import peer
from program import MODEL

TOOL = "llama-batched-bench"
COLUMNS = ["depth", "texts", "tiercel tokens/s", "llama.cpp tokens/s", "ratio",
           "tiercel, to one text", "llama.cpp, to one text"]


def run_llama(program, args, depth):
    """Returns {(count, flash attention): tokens/s}."""
    rates = {}
    cells = depth + max(args.counts) * (args.generate + 1)
    for attention in ("off", "on"):
        lines = peer.output_of(
            [program, "-m", args.model, "-c", cells, "-npp", depth]
            + ["-ntg", args.generate, "-t", args.threads, "-tb", args.threads]
            + ["-npl", ",".join(map(str, args.counts)), "-pps", "-kvu"]
            + ["-ngl", 0, "-fa", attention, "--output-format", "jsonl"])
        for line in lines.splitlines():
            if line.startswith("{"):
                row = json.loads(line)
                rates[row["pl"], attention] = row["speed_tg"]
    return rates


def run_tiercel(args, depth):
    """Returns {count: tokens/s}."""
    rows = json.loads(peer.output_of(
        [args.tiercel, "bench", "-m", args.model, "-t", args.threads]
        + ["-p", 0, "-n", args.generate, "-d", depth, "-r", 1]
        + ["--parallel", ",".join(map(str, args.counts))]
        + ["-o", "json", "--no-progress"]))
    return {row["parallel"]: row["avg_ts"] for row in rows}


def rows_of(depth, ours, theirs):
    """Rows of the table, from {count: [tokens/s]} and {(count, attention):
    [tokens/s]}."""
    own = {count: statistics.median(rates) for count, rates in ours.items()}
    peers = {}
    for (count, _), rates in theirs.items():
        peers[count] = max(peers.get(count, 0), statistics.median(rates))
    first = min(own)
    return [[str(depth), str(count), f"{own[count]:.0f}",
             f"{peers[count]:.0f}", f"{own[count] / peers[count]:.2f}",
             f"{own[count] / own[first]:.2f}",
             f"{peers[count] / peers[first]:.2f}"] for count in sorted(own)]


def measure(program, args):
    """Returns all rows, and the greatest share of the CPUs that other processes
    took before and during a round."""
    samples = {depth: ({}, {}) for depth in args.depths}
    before, during = 0, 0
    for number in range(args.rounds):
        runs = [lambda depth: run_tiercel(args, depth),
                lambda depth: run_llama(program, args, depth)]
        order = [0, 1] if number % 2 == 0 else [1, 0]
        before = max(before, peer.wait_until_quiet(args))
        others = peer.quiet.Others()
        for depth in args.depths:
            peer.say(f"round {number + 1}/{args.rounds}, depth {depth}")
            for which in order:
                for key, rate in runs[which](depth).items():
                    samples[depth][which].setdefault(key, []).append(rate)
        during = max(during, others.share())
    rows = [row for depth, (ours, theirs) in samples.items()
            for row in rows_of(depth, ours, theirs)]
    return rows, before, during


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--counts", type=peer.integers, default=[1, 4, 8, 16])
    add("--depths", type=peer.integers, default=[64, 2048])
    add("--generate", type=int, default=64, help="tokens of a text")
    add("--rounds", type=int, default=3)
    add("--wait", type=int, default=15, metavar="MINUTES")
    add("--threads", type=int, default=len(os.sched_getaffinity(0)))
    add("--tiercel", type=pathlib.Path,
        default=pages.ROOT / "build/cpu/apps/tiercel")
    add("--model", default=os.environ.get("TIERCEL_MODEL") or MODEL)
    add("--peer-dir", type=pathlib.Path, help="an existing llama.cpp tree")
    add("--save", action="store_true", help="keep it in bench/results/")
    args = parser.parse_args()
    programs = peer.peer_programs(args.peer_dir, None, jobs=args.threads,
                                  tools=(*peer.TOOLS, TOOL))
    peer.without_broken_amx(programs, args.model, args.threads)
    rows, before, during = measure(programs[TOOL], args)
    pages.publish(
        "Texts at once, beside llama.cpp",
        f"{pages.version_of(args.tiercel)}; {pathlib.Path(args.model).name}, "
        f"{args.threads} threads, {args.generate} tokens a text, {args.rounds} "
        f"rounds; others took {before:.0%} of the CPUs before a round and "
        f"{during:.0%} during one.",
        pages.table(COLUMNS, rows, words=0), args.save and "parallel")


if __name__ == "__main__":
    main()
