#!/usr/bin/env python3
"""Compares the plan's predictions with runs.

  bench/predictions.py             all configurations, ten minutes, quiet
  bench/predictions.py --save      also writes bench/results/<date>-<cpu>-predictions.md
  bench/predictions.py --extra FILE...   more checkpoints (a random one, say)
  bench/predictions.py --only policy     those with this in their flags

A configuration is a file, a prompt, a device and a link. `plan` comes first;
then the configuration is run, and the "predicted" of its document is compared
with the measurement: the median of rounds through all configurations, since
virtual machines have slow minutes. TBT is a run's median if all steps are
alike, and its mean under a schedule, which has steps of two kinds. Rates are
the program's own: the first `plan` of a file, type of KV and number of threads
measures them, and they are kept for all rounds, as for a user; the end says how
steady they were. Memory is also compared with the system's count: the largest
resident set of the process, less that of a process that only reads the header.

Standard library only.
"""

import argparse
import collections
import datetime
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

import pages

CACHE = pathlib.Path(
    os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
)
MODELS = CACHE / "tiercel/models"
SMOL = "SmolLM2-135M-Instruct.%s.gguf"
TOKENS = 24

# file, prompt tokens, flags
CONFIGURATIONS = [
    ("Q4_1", 1000, ""),
    ("Q4_1", 3000, ""),
    ("Q4_1", 3000, "-t 1"),
    ("Q4_1", 7500, ""),
    ("Q4_1", 3000, "--simulate device=150MB,link=0.5GB/s"),
    ("Q4_1", 3000, "--simulate device=150MB,link=1GB/s"),
    ("Q4_1", 3000, "--simulate device=150MB,link=2GB/s"),
    ("Q4_1", 3000, "--simulate device=180MB,link=2GB/s"),
    ("Q4_1", 3000, "--simulate device=150MB,link=4GB/s"),
    ("Q4_1", 3000, "-ctk q8_0 -ctv q8_0 --simulate device=140MB,link=1GB/s"),
    ("Q4_1", 7500, "--simulate device=180MB,link=2GB/s"),
    ("Q4_1", 7500, "--simulate device=240MB,link=1GB/s"),
    ("Q8_0", 3000, ""),
    ("Q8_0", 3000, "--simulate device=200MB,link=2GB/s"),
    ("F16", 3000, "--simulate device=330MB,link=2GB/s"),
] + [
    ("Q4_1", prompt, f"--policy {policy} {where}")
    for policy in ("sadas --plain --window 1024 --set gate=always",
                   "sfi --plain --set trigger=fixed,interval=8,gap=1",
                   "speed --plain --set cut=22")
    for prompt, where in ((3000, ""), (7000, ""),
                          (7000, "--simulate device=240MB,link=1GB/s"))
]


def largest_resident(command, env):
    """Returns the document that a run prints, and its peak resident set in
    bytes."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env,
        )
        _, status, usage = os.wait4(child.pid, 0)
        out.seek(0)
        err.seek(0)
        if status != 0:
            sys.exit(f"{command}: {err.read().decode()}{out.read().decode()}")
        return json.loads(out.read()), usage.ru_maxrss * 1024


def off(predicted, measured):
    return (predicted - measured) / measured


def percent(share):
    return f"{100 * share:+.1f} %"


FIGURES = (("ttft", "TTFT", 1), ("tbt", "TBT", 1), ("memory", "tiers", 1e-6),
           ("resident", "resident set", 1e-6))


def gap_ms(document):
    """The TBT of a document, in milliseconds between tokens."""
    if document.get("schedule"):
        return 1000 / document["decode_tok_s"]
    return document["tbt_ms"]["p50"]


def compared(document, resident, program):
    """Returns a run's pairs of predicted and measured values, in seconds,
    milliseconds and bytes. `resident` is its largest resident set, `program`
    that of a process that only reads the header."""
    predicted, memory = document["predicted"], document["memory"]
    tiers = predicted["host_bytes"] + predicted["device_bytes"]
    return {
        "ttft": (predicted["ttft_s"], document["ttft_s"]),
        "tbt": (predicted["tbt_ms"], gap_ms(document)),
        "memory": (tiers, memory["host_bytes"] + memory["device_bytes"]),
        "resident": (tiers, resident - program),
    }


def medians(runs):
    """The median pair of each figure of several runs."""
    return {key: tuple(map(statistics.median, zip(*(run[key] for run in runs))))
            for key in runs[0]}


HEADER = [
    "| file | prompt | flags | TTFT s | | TBT ms | | tiers MB | | resident MB | |",
    "|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|",
]


def line(name, prompt, flags, figures):
    """A row of a table under HEADER."""
    cells = [name, f"{prompt:,}", flags or "-"]
    for key, _, scale in FIGURES:
        predicted, measured = figures[key]
        cells += [
            f"{predicted * scale:.2f} / {measured * scale:.2f}",
            percent(off(predicted, measured)),
        ]
    return "| " + " | ".join(cells) + " |"


def verdict(key, name, rows):
    errors = [abs(off(*figures[key])) for figures in rows]
    return (f"{name}: off by {100 * statistics.median(errors):.1f} % in the"
            f" median, {100 * max(errors):.1f} % at worst, of {len(errors)}.")


def steadiness(files):
    """A sentence about the steadiness of the rates that `cache list` shows."""
    spreads = [100 * kept["spread"] for kept in files]
    busy = sum(not kept["steady"] for kept in files)
    return (f"Rates: {len(spreads)} measured, with a spread of"
            f" {min(spreads):.0f} to {max(spreads):.0f} %; {busy} while the"
            " machine was busy.")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tiercel", default=pages.ROOT / "build/cpu/apps/tiercel")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--extra", nargs="*", default=[], metavar="FILE:PROMPT:FLAGS")
    parser.add_argument("--only", default="", metavar="TEXT",
                        help="configurations with this in their flags")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error(f"--rounds: got {arguments.rounds}, need 1 or more")

    configurations = [
        (MODELS / (SMOL % name), prompt, flags)
        for name, prompt, flags in CONFIGURATIONS
        if (MODELS / (SMOL % name)).exists() and arguments.only in flags
    ]
    for extra in arguments.extra:
        path, prompt, flags = extra.split(":")
        configurations.append((pathlib.Path(path), int(prompt), flags))

    seen = collections.defaultdict(list)  # the runs of each configuration
    with tempfile.TemporaryDirectory() as scratch:
        env = dict(os.environ, XDG_CACHE_HOME=scratch)
        ids = pathlib.Path(scratch) / "ids.txt"
        for path, prompt, flags in configurations * arguments.rounds:
            # Every vocabulary has these ids.
            chosen = random.Random(0).choices(range(1, 200), k=prompt)
            ids.write_text(" ".join(map(str, chosen)))
            _, program = largest_resident(
                [arguments.tiercel, "inspect", path, "--json"], env
            )
            common = ["-m", path, "-c", prompt + TOKENS, "--json", *flags.split()]
            largest_resident([arguments.tiercel, "plan", *common], env)
            document, resident = largest_resident(
                [arguments.tiercel, "generate", "--tokens", ids, "-n", TOKENS,
                 "--ignore-eos", *common], env
            )
            run = compared(document, resident, program)
            seen[path, prompt, flags].append(run)
            print(path.name, prompt, flags, run, file=sys.stderr, flush=True)
        listed, _ = largest_resident(
            [arguments.tiercel, "cache", "list", "--json"], env
        )

    rows = {which: medians(runs) for which, runs in seen.items()}
    lines = HEADER + [
        line(path.name.replace("SmolLM2-135M-Instruct.", ""), prompt, flags,
             figures)
        for (path, prompt, flags), figures in rows.items()
    ] + [""] + [verdict(key, name, rows.values()) for key, name, _ in FIGURES]
    lines.append(steadiness(listed["files"]))
    table = "\n".join(lines)
    print(table)
    if not arguments.save:
        return
    cpu = pages.cpu_name()
    version = pages.version_of(arguments.tiercel)
    date = datetime.datetime.now(datetime.timezone.utc)
    result = pages.page(pages.today(), cpu, "predictions.md")
    result.write_text(
        "# Predicted and measured\n\n"
        f"{cpu}, {os.cpu_count()} cores; {date:%Y-%m-%dT%H:%M+00:00}; {version}. Pairs are predicted / measured, medians"
        f" of {arguments.rounds}\nrounds; rates were measured as they are for users, before the first use of a file, type of KV and number of\nthreads; {TOKENS} tokens are generated. `--simulate` plays"
        " a small device behind a slow link on\nthis CPU. The resident set is what the system counted at most, less that"
        " of a process that only reads the header.\n\n" + table + "\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
