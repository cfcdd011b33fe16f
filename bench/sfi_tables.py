"""Tables of Slow-Fast Inference (SFI, arXiv 2603.12038), in the paper's form:
speed by context, stability of support, needles. bench/policies.py prints them;
its quality table has the rest. Standard library only."""

import statistics

import by_context
import chart
import needle
from sadas_tables import window

# The selector by attention alone, without its other parts.
BARE = "prior=0,nms=0,exclusive=0"


def sfi(settings, budget=1024, newest=256):
    return ["--policy", "sfi", "--plain", "--budget", budget, "--window",
            newest, "--set", settings]


CONTEXT_POLICIES = [
    ("SFI, sentences", sfi("trigger=sentence")),
    ("SFI, every 64", sfi("trigger=fixed,interval=64")),
]


def context_table(program, text, scratch, say, charts):
    say()
    say(f"## SFI: speed by context, {text.name}: {by_context.TOKENS} tokens, "
        "1,024 chosen, 256 newest")
    say()
    say("Tokens a second.")
    say()
    charts["sfi-speed"] = chart.line_chart(
        f"SFI by context, {text.name}", "tokens before", "tokens/s",
        by_context.speed_table(program, CONTEXT_POLICIES, text, say))


def coverage_table(program, book, tokens, depth, say, charts):
    say()
    say(f"## Coverage, {book}: 256 tokens after {depth:,}, chosen every N")
    say()
    say("| N | 256 chosen | 1,024 chosen |")
    say("|---:|---:|---:|")
    series = {"256 chosen": [], "1,024 chosen": []}
    for interval in (4, 16, 64, 128):
        cells = []
        for name, budget in (("256 chosen", 256), ("1,024 chosen", 1024)):
            d = program.document(
                "generate", "--tokens", tokens, "-n", 256, "--ignore-eos", "--temp",
                0.6, "-c", depth + 400,
                *sfi(f"trigger=fixed,interval={interval},gap=1", budget))
            share = d["schedule"]["coverage"]
            cells.append(f"{share:.3f}")
            series[name].append((interval, share))
        say(f"| {interval} | {' | '.join(cells)} |")
    charts["coverage"] = chart.line_chart(
        f"Attention that falls on the old view, {book}", "tokens since",
        "share", series)


NEEDLE = [
    ("SFI, 1024", sfi("trigger=sentence")),
    ("SFI, 1024, chunks of 8", [*sfi("trigger=sentence"), "--chunk", 8]),
    ("SFI, 512", sfi("trigger=sentence", 512)),
    ("SFI, 1024, 16 beside each", sfi(f"{BARE},beside=16")),
    ("SFI, 1024, 8 beside each, every 4",
     sfi(f"{BARE},beside=8,trigger=fixed,interval=4,gap=1")),
    ("window of 1312, 4 first", window(1312, 4)),
]


def needle_table(program, book, ids, items, length, scratch, say):
    found = needle.recoveries(program, scratch, ids, NEEDLE, items, length)
    count = len(found[NEEDLE[0][0]])
    say()
    say(f"## Needle, {book}: {length:,} tokens, {count} of {items} items that "
        "full finds")
    say()
    say("| view | recovery: mean | least |")
    say("|---|---:|---:|")
    for name, shares in found.items():
        if shares:
            say(f"| {name} | {statistics.mean(shares):.2f} | "
                f"{min(shares):.2f} |")
