#!/usr/bin/env python3
"""SFI, SADAS and SPEED beside everything: what their plain forms cost and save.

  bench/policies.py            both tables, about twenty minutes
  bench/policies.py --quality  how far plain rows are from the model's
  bench/policies.py --speed    plain and verified decoding beside plain full
  bench/policies.py --save     also writes bench/results/<date>-<cpu>-policies.md

Real text: books of $TIERCEL_BOOKS. Quality: the first tokens are read as a
prompt, then the text goes on token by token under the policy, as it stands in
the book (`tiercel eval --prefill`); against the same rows of `--policy full`:
KL divergence (mean and 99th percentile, nats), the share of rows whose likeliest
token is the same, both perplexities. Beside each view stands a window of as many
tokens, which is what choosing has to beat: with the first four tokens, on which
attention leans, and without.

Speed: tokens decoded a second after a prompt, over those of `--policy full` in
the same call and on the same device (`--verify-against full`). What SADAS thinks
is forced: it thinks all the time. Standard library only.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import pages


class Program:
    def __init__(self, path):
        self.path = path

    def document(self, command, *args):
        done = subprocess.run(
            [self.path, command, *map(str, args), "--json", "--no-progress"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        document = json.loads(done.stdout)
        if done.returncode != 0:
            sys.exit(f"{command} {args}: {done.stdout.decode()}")
        return document


def sfi(settings, budget=1024):
    return ["--policy", "sfi", "--plain", "--budget", budget, "--set",
            settings]


def window(tokens, sink):
    return ["--policy", "sadas", "--plain", "--set", "gate=always",
            "--window", tokens, "--sink", sink]


# A view of SFI: what is chosen, 256 newest, and half of what comes meanwhile.
QUALITY = [
    ("SFI, sentences", sfi("trigger=sentence")),
    ("SFI, every 16", sfi("trigger=fixed,interval=16")),
    ("SFI, every 64", sfi("trigger=fixed,interval=64")),
    ("SFI, random, 1 in 64", sfi("trigger=random,interval=64")),
    ("SFI, never again", sfi("trigger=never")),
    ("... sentences, no prior", sfi("prior=0")),
    ("... no neighbours", sfi("nms=0")),
    ("... no exclusivity", sfi("exclusive=0")),
    ("... none of these", sfi("prior=0,nms=0,exclusive=0")),
    ("... none, 512", sfi("prior=0,nms=0,exclusive=0", 512)),
    ("... none, 2048", sfi("prior=0,nms=0,exclusive=0", 2048)),
    ("window of 1312, 4 first", window(1312, 4)),
    ("window of 1312", window(1312, 0)),
]

# How a model takes what it was not trained for.
SPEED_QUALITY = [
    (f"SPEED, cut {cut} of 30, {name} (untrained)",
     ["--policy", "speed", "--plain", "--set", f"cut={cut},anchor={anchor}"])
    for cut in (29, 28, 26, 24, 22, 15)
    for anchor, name in ((1, "anchor"), (0, "no anchor"))]

SPEED = [
    ("SADAS plain, thinking, 1024",
     ["--policy", "sadas", "--plain", "--window", 1024, "--set", "think=on"]),
    ("SFI plain, 1024, sentences", sfi("trigger=sentence")),
    ("SFI plain, 1024, every 64", sfi("trigger=fixed,interval=64")),
    ("SPEED plain, cut 22 of 30 (untrained)",
     ["--policy", "speed", "--plain", "--set", "cut=22"]),
    ("SADAS verified, thinking, 1024",
     ["--policy", "sadas", "--window", 1024, "--set", "think=on", "--verify",
      "coupled"]),
    ("SFI verified, 1024", ["--policy", "sfi", "--verify", "coupled"]),
]


def quality_table(program, book, ids, prefill, scored, say):
    say()
    say(f"## Quality, {book}: {prefill:,} tokens read, {scored} scored")
    say()
    say("| view | KL, mean | p99 | top-1 | perplexity | of full |")
    say("|---|---:|---:|---:|---:|---:|")
    for name, flags in QUALITY + SPEED_QUALITY:
        d = program.document("eval", "--tokens", ids, "--prefill", prefill,
                             "--verify-against", "full", *flags)
        say(f"| {name} | {d['kl']['mean']:.4f} | {d['kl']['p99']:.3f} | "
            f"{d['top1']:.3f} | {d['perplexity']:.2f} | "
            f"{d['perplexity_full']:.2f} |")


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
        base = row["baseline"]
        say(f"| {name} | {row['avg_ts']:.1f} | {base['decode_tok_s']:.1f} | "
            f"{base['speedup']:.2f} | {row['device_bytes'] / 1e6:.1f} | "
            f"{base['device_bytes'] / 1e6:.1f} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tiercel",
                        default=pages.ROOT / "build/cpu/apps/tiercel")
    parser.add_argument("--books", default="moby_dick.txt,alice.txt")
    parser.add_argument("--prefill", type=int, default=6000)
    parser.add_argument("--scored", type=int, default=512)
    parser.add_argument("--depth", type=int, default=7000)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--quality", action="store_true")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    both = not args.quality and not args.speed
    folder = pathlib.Path(os.environ["TIERCEL_BOOKS"])
    books = args.books.split(",")
    out = []

    def say(line=""):
        print(line, flush=True)
        out.append(line)

    cpu = pages.cpu_name()
    say("# Policies that read less than everything")
    say()
    say(f"{cpu}, {os.cpu_count()} threads, {pages.today()}, "
        f"{pages.version_of(args.tiercel)}, load {os.getloadavg()[0]:.1f}. "
        f"SmolLM2-135M Q4_1, untrained for any of them.")
    program = Program(str(args.tiercel))
    with tempfile.TemporaryDirectory() as scratch:
        for book in books:
            text = folder / book
            ids = program.document("tokenize", "-f", text)["tokens"]
            tokens = pathlib.Path(scratch) / "tokens.txt"
            tokens.write_text(
                " ".join(map(str, ids[:args.prefill + args.scored + 1])))
            if both or args.quality:
                quality_table(program, book, tokens, args.prefill, args.scored,
                              say)
        if both or args.speed:
            speed_table(program, books[0], folder / books[0], args.depth,
                        args.tokens, say)
    if args.save:
        path = pages.page(pages.today(), cpu, "policies.md")
        path.write_text("\n".join(out) + "\n")
        print(path)


if __name__ == "__main__":
    main()
