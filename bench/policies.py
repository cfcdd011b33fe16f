#!/usr/bin/env python3
"""The cost in quality and the gain in speed of SFI, SADAS and SPEED.

  bench/policies.py             all but --filled, about two hours
  bench/policies.py --quality   how far plain rows are from the model's
  bench/policies.py --coverage  how much of a row's attention an older view has
  bench/policies.py --needle    if a view finds a string far back in the text
  bench/policies.py --speed     plain and verified decoding beside plain full
  bench/policies.py --links     the same behind a slow link, simulated
  bench/policies.py --filled    the shape of Qwen3-1.7B, over random KV
  bench/policies.py --sfi-contexts      SFI: speed by context
  bench/policies.py --sadas-windows     SADAS: quality by window (its Table 3)
  bench/policies.py --sadas-answers     views of the answer (Tables 9, 10, 12)
  bench/policies.py --sadas-contexts    speed by context (Table 4)
  bench/policies.py --sadas-lengths     lengths of thinking and answer (Fig. 3)
  bench/policies.py --speed-contexts    SPEED: TTFT, TPOT, KV by cut and context
  bench/policies.py --speed-acceptance  acceptance of its drafts by cut
  bench/policies.py --quality --only decay,2080
                                rows with these in their names, of that table
  bench/policies.py --save      also writes bench/results/<date>-<cpu>-policies*:
                                the page, and its charts (SVG); a page of some
                                parts has their names

The texts are books of $TIERCEL_BOOKS. Quality: the first tokens are read as a
prompt, then the book goes on token by token under the policy (`tiercel eval
--prefill`). The rows are compared with those of `--policy full`: KL divergence
(mean and 99th percentile, nats), the share of rows whose likeliest token is the
same, and both perplexities. Beside each view stands a window of as many tokens,
which a choice must beat: with the first four tokens, to which much attention
goes, and without.

Coverage: at each step that chooses anew, the share of that row's attention that
falls on positions that were in view before, by the number of tokens since that
view was chosen (the stability of support, Slow-Fast Inference, arXiv
2603.12038, Fig. 1A). Needle: see bench/needle.py.

Speed: tokens decoded a second after a prompt, over those of `--policy full` in
the same call and on the same device (`--verify-against full`). SADAS is made to
think all the time. `--links`: the device is simulated, with the least memory
that works with a policy's view. The part of the text that full cannot keep on
it takes 20 and 100 times as long to cross the link as a step over a window of
1,024 (which is measured first, in place). Full decodes 16 tokens there, which
see 1 % less text in the mean than those of the policy. `--filled`: random
weights and random KV, where only the shape matters; random keys are the worst
case for a choice.

The seven tables with a paper in their name have its form, each for a piece of
the first book, and take a few minutes each. bench/acceptance.py has TriForce's
by chunk, budget and lengths. Standard library only, numpy for --filled.
"""

import argparse
import os
import pathlib
import subprocess
import tempfile

import by_context
import pages
import sadas_tables
import speed_tables
import triforce
from program import BLOCK, Program
from sadas_tables import window
from sfi_tables import BARE, context_table, coverage_table, needle_table, sfi
from triforce import KV_BYTES


# Views of SFI, and windows as large. A view has the chosen tokens, the newest
# (256 unless stated), and in the mean half of those between two choices.
QUALITY = [
    ("SFI, sentences", sfi("trigger=sentence")),
    ("SFI, every 16", sfi("trigger=fixed,interval=16")),
    ("SFI, every 64", sfi("trigger=fixed,interval=64")),
    ("SFI, random, 1 in 64", sfi("trigger=random,interval=64")),
    ("SFI, never again", sfi("trigger=never")),
    ("... sentences, no prior", sfi("prior=0")),
    ("... no neighbours", sfi("nms=0")),
    ("... no exclusivity", sfi("exclusive=0")),
    ("... none of these", sfi(BARE)),
    ("... none, 512", sfi(BARE, 512)),
    ("... none, 2048", sfi(BARE, 2048)),
    ("... none, 5632", sfi(BARE, 5632)),
    ("... none, chunks of 8", [*sfi(BARE), "--chunk", 8]),
    ("... none, chunks of 32", [*sfi(BARE), "--chunk", 32]),
    ("... none, decay 0.9", sfi(f"{BARE},decay=0.9")),
    ("... none, 1024 newest", sfi(BARE, newest=1024)),
    ("... none, 1024 newest, 16 rows", sfi(f"{BARE},queries=16", newest=1024)),
    ("... none, 1024 newest, decay 0.9", sfi(f"{BARE},decay=0.9", newest=1024)),
    ("... none, 1024 newest, decay 0.9, 4 rows",
     sfi(f"{BARE},decay=0.9,queries=4", newest=1024)),
    ("... none, 8 beside each, decay 0.9", sfi(f"{BARE},decay=0.9,beside=8")),
    *((f"... the same, every {interval}",
       sfi(f"{BARE},decay=0.9,beside=8,trigger=fixed,interval={interval},gap=1"))
      for interval in (4, 3)),
    ("... the same, 1024 newest",
     sfi(f"{BARE},decay=0.9,beside=8", newest=1024)),
    *((f"... the same, 1024 newest, every {interval}",
       sfi(f"{BARE},decay=0.9,beside=8,trigger=fixed,interval={interval},gap=1",
           newest=1024)) for interval in (4, 3, 2)),
    ("window of 1312, 4 first", window(1312, 4)),
    ("window of 1312", window(1312, 0)),
    ("window of 2080, 4 first", window(2080, 4)),
]

# These measure a model that was not trained for SPEED.
SPEED_QUALITY = [
    (f"SPEED, cut {cut} of 30, {name} (untrained)",
     speed_tables.plain(cut, anchor))
    for cut in (29, 28, 26, 24, 22, 15)
    for anchor, name in ((1, "anchor"), (0, "no anchor"))]

SPEED = [
    ("SADAS plain, thinking, 1024",
     ["--policy", "sadas", "--plain", "--window", 1024, "--set", "think=on"]),
    ("SFI plain, 1024, sentences", sfi("trigger=sentence")),
    ("SFI plain, 1024, every 64", sfi("trigger=fixed,interval=64")),
    ("SPEED plain, cut 22 of 30 (untrained)",
     speed_tables.plain(22)),
    ("SADAS verified, thinking, 1024",
     ["--policy", "sadas", "--window", 1024, "--set", "think=on", "--verify",
      "coupled"]),
    ("SFI verified, 1024", ["--policy", "sfi", "--verify", "coupled"]),
]


def quality_line(name, d):
    """The row of a view, from the document of `eval`."""
    return (f"| {name} | {d['kl']['mean']:.4f} | {d['kl']['p99']:.3f} "
            f"| {d['top1']:.3f} | {d['perplexity']:.2f} "
            f"| {d['perplexity_full']:.2f} |")


def quality_table(program, book, ids, prefill, scored, only, say):
    say()
    say(f"## Quality, {book}: {prefill:,} tokens read, {scored} scored")
    say()
    say("| view | KL, mean | p99 | top-1 | perplexity | of full |")
    say("|---|---:|---:|---:|---:|---:|")
    for name, flags in QUALITY + SPEED_QUALITY:
        if not any(part in name for part in only):
            continue
        say(quality_line(name, program.document(
            "eval", "--tokens", ids, "--prefill", prefill, "--verify-against",
            "full", *flags)))


def speed_cells(row, digits):
    """The cells for a row of `bench`: tokens a second, the baseline's, and
    their ratio."""
    base = row["baseline"]
    return (f"| {row['avg_ts']:.{digits}f} | {base['decode_tok_s']:.{digits}f} "
            f"| {base['speedup']:.2f} |")


def speed_line(name, row):
    return (f"| {name} {speed_cells(row, 1)} {row['device_bytes'] / 1e6:.1f} "
            f"| {row['baseline']['device_bytes'] / 1e6:.1f} |")


def speed_table(program, book, text, depth, tokens, say):
    say()
    say(f"## Speed, {book}: {tokens} tokens after {depth:,}")
    say()
    say("| policy | tokens/s | full | ratio | device, MB | of full |")
    say("|---|---:|---:|---:|---:|---:|")
    for name, flags in SPEED:
        (row,) = program.document(
            "bench", "-p", 0, "-n", tokens, "-d", depth, "-r", 2, "-f", text,
            "--verify-against", "full", "--temp", 0.6, *flags)
        say(speed_line(name, row))


LINKS = [
    ("SFI plain, sentences", sfi("trigger=sentence")),
    ("SFI plain, every 64", sfi("trigger=fixed,interval=64")),
    ("SADAS plain, thinking", SPEED[0][1]),
    ("SFI verified", ["--policy", "sfi"]),
    ("TriForce", ["--policy", "triforce"]),
]


def link_line(name, rate, step, row, full):
    """The row of a policy beside full, over a link of `rate` bytes a second;
    a step over the view takes `step` seconds."""
    per_sweep = row["tokens_per_sweep"]
    return (f"| {name} | {rate / 1e6:.0f} | {row['avg_ts']:.1f} "
            f"| {full['avg_ts']:.2f} | {1 / (full['avg_ts'] * step):.1f} "
            f"| {row['avg_ts'] / full['avg_ts']:.1f} "
            f"| {f'{per_sweep:.1f}' if per_sweep else ''} "
            f"| {row['device_bytes'] / 1e6:.1f} "
            f"| {full['device_bytes'] / 1e6:.1f} |")


def links_table(program, book, text, depth, tokens, say):
    def bench(tokens, *args):
        (row,) = program.document("bench", "-p", 0, "-n", tokens, "-d", depth,
                                  "-r", 1, "-f", text, *args)
        return row

    def of_policy(*args):
        return bench(tokens, "--temp", 0.6, *args)

    def plan(device, *args):
        return program.document("plan", "-c", depth + tokens + BLOCK,
                                "--simulate", f"device={device},link=1GB/s",
                                *args)

    step = 1 / of_policy(*window(1024, 4))["avg_ts"]
    for ratio in (20, 100):
        say()
        say(f"## Links, {book}: {tokens} tokens after {depth:,}, views of 1,024; "
            f"a sweep of full worth {ratio} steps of {1e3 * step:.1f} ms, "
            "simulated")
        say()
        say("| policy | link, MB/s | tokens/s | full | its sweep, steps | ratio "
            "| tokens a sweep | device, MB | of full |")
        say("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
        for name, flags in LINKS:
            device = f"{-(-plan('1MB', *flags)['min_device_bytes'] // 1000)}kB"
            tiers = plan(device)["tiers"]
            behind = 1 - tiers["device"]["resident"] / tiers["host"]["kv"]
            rate = depth * KV_BYTES * behind / (ratio * step)
            simulated = ["--simulate",
                      f"device={device},link={rate / 1e6:.2f}MB/s"]
            say(link_line(name, rate, step, of_policy(*flags, *simulated),
                          bench(triforce.BASELINE_TOKENS, "--policy", "full",
                                *simulated)))


# The shape of Qwen3-1.7B.
SHAPE = ["--layers", 28, "--hidden", 2048, "--heads", 16, "--kv-heads", 8,
         "--head-dim", 128, "--ffn", 6144, "--vocab", 151936, "--type", "q4_0"]
FILLED = [
    ("SADAS plain, thinking, 1024",
     ["--policy", "sadas", "--plain", "--window", 1024, "--set",
      "gate=always"]),
    ("SFI plain, 2048, every 64", sfi("trigger=fixed,interval=64", 2048)),
    ("SFI plain, 2048, every 64, chunks of 32",
     [*sfi("trigger=fixed,interval=64", 2048), "--chunk", 32]),
]


def filled_table(path, depths, tokens, scratch, say):
    model = scratch / "shape.gguf"
    subprocess.run(
        ["/usr/bin/python3", pages.ROOT / "bench/make_random.py",
         *map(str, SHAPE), "--context", str(max(depths) + 1024), model],
        check=True)
    program = Program(path)
    say()
    say(f"## Speed, the shape of Qwen3-1.7B in Q4_0, random weights: {tokens} "
        "tokens after KV that nobody computed")
    say()
    say("| policy | depth | tokens/s | full | ratio |")
    say("|---|---:|---:|---:|---:|")
    for depth in depths:
        for name, flags in FILLED:
            (row,) = program.document(
                "bench", "-m", model, "-p", 0, "-n", tokens, "-d", depth, "-r",
                1, "--fill", "--verify-against", "full", *flags)
            say(f"| {name} | {depth:,} {speed_cells(row, 2)}")


# The papers' own tables, each for a piece of one book.
PAPERS = {
    "sfi-contexts": context_table,
    "sadas-windows": sadas_tables.window_table,
    "sadas-answers": sadas_tables.answer_table,
    "sadas-contexts": sadas_tables.context_table,
    "sadas-lengths": sadas_tables.length_table,
    "speed-contexts": speed_tables.context_table,
    "speed-acceptance": speed_tables.acceptance_table,
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tiercel",
                        default=pages.ROOT / "build/cpu/apps/tiercel")
    parser.add_argument("--books", default="moby_dick.txt,alice.txt")
    parser.add_argument("--prefill", type=int, default=6000)
    parser.add_argument("--scored", type=int, default=512)
    parser.add_argument("--depth", type=int, default=7000)
    parser.add_argument("--tokens", type=int, default=by_context.TOKENS)
    parser.add_argument("--items", type=int, default=10)
    parser.add_argument("--filled-depths", default="32768")
    parser.add_argument("--skip", type=int, default=30000,
                        help="letters of the book before the piece that the "
                        "papers' tables have")
    parts = ("quality", "coverage", "needle", "speed", "links", "filled",
             *PAPERS)
    for part in parts:
        parser.add_argument(f"--{part}", action="store_true")
    parser.add_argument("--only", default="", metavar="TEXT,...",
                        help="of the quality table: rows with one of these in "
                        "their names")
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    wanted = {part for part in parts
              if getattr(args, part.replace("-", "_"))}
    usual = set(parts) - {"filled"}
    wanted = wanted or usual
    folder = pathlib.Path(os.environ["TIERCEL_BOOKS"])
    books = args.books.split(",")
    say, charts = pages.Lines(), {}
    say("# Policies that read less than everything")
    say()
    say(f"{pages.cpu_name()}, {os.cpu_count()} threads, {pages.today()}, "
        f"{pages.version_of(args.tiercel)}, load {os.getloadavg()[0]:.1f}. "
        f"SmolLM2-135M Q4_1, untrained for any of them.")
    program = Program(args.tiercel)
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        for book in books if wanted & {"quality", "coverage", "needle"} else ():
            text = folder / book
            ids = program.document("tokenize", "-f", text)["tokens"]
            tokens = scratch / "tokens.txt"
            tokens.write_text(
                " ".join(map(str, ids[:args.prefill + args.scored + 1])))
            if "quality" in wanted:
                quality_table(program, book, tokens, args.prefill, args.scored,
                              args.only.split(","), say)
        if "coverage" in wanted:
            tokens.write_text(" ".join(map(str, ids[:args.prefill])))
            coverage_table(program, book, tokens, args.prefill, say, charts)
        if "needle" in wanted:
            needle_table(program, book, ids, args.items, 3000, scratch, say)
        if "speed" in wanted:
            speed_table(program, books[0], folder / books[0], args.depth,
                        args.tokens, say)
        if "links" in wanted:
            links_table(program, books[0], folder / books[0], args.depth,
                        args.tokens, say)
        if "filled" in wanted:
            filled_table(args.tiercel,
                         list(map(int, args.filled_depths.split(","))), 65,
                         scratch, say)
        if wanted & PAPERS.keys():
            piece = scratch / books[0]
            piece.write_text(triforce.book(books[0])[args.skip:])
        for part, table in PAPERS.items():
            if part in wanted:
                table(program, piece, scratch, say, charts)
    if args.save:
        print(pages.save(say.said, charts,
                         pages.page_name("policies", wanted, usual)))


if __name__ == "__main__":
    main()
