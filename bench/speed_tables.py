"""Tables of SPEED, in the paper's form: time to the first token (TTFT), time per
output token (TPOT) and KV by cut and context; acceptance of drafts by cut, with
and without the anchor, in place of the paper's quality by cut, as no small
checkpoint was trained for it. bench/policies.py prints them. Standard library
only."""

import statistics

import by_context
import chart
import triforce
from triforce import LAYERS

TOKENS = 65  # decoded after each context

# By name: how to take the figure from the document of `generate`, and digits.
FIGURES = {
    "TTFT, s": (lambda d: d["ttft_s"], 2),
    "TPOT, ms": (lambda d: 1e3 / d["decode_tok_s"], 2),
    "KV, MB": (lambda d: d["kv"]["bytes"] / 1e6, 1),
}
CUTS = (28, 24, 22, 15)


def plain(cut, anchor=1):
    return ["--policy", "speed", "--plain", "--set", f"cut={cut},anchor={anchor}"]


def context_table(program, text, scratch, say, charts):
    ids = program.document("tokenize", "-f", text)["tokens"]
    path = scratch / "context.txt"
    found = {cut: [] for cut in CUTS}  # each context's run, and full before it
    for length in by_context.CONTEXTS:
        path.write_text(" ".join(map(str, ids[:length])))
        room = length + 100

        def run(*flags):
            return program.document("generate", "--tokens", path, "-n", TOKENS,
                                    "--ignore-eos", "-c", room, *flags)

        for cut in CUTS:
            full = run()
            found[cut].append((run(*plain(cut)), full))
    say()
    say(f"## SPEED: TTFT, TPOT and KV by cut and context, {text.name}: {TOKENS} "
        "tokens decoded, plain (untrained)")
    for figure, (take, digits) in FIGURES.items():
        say()
        say(f"{figure}, and its share of that of all {LAYERS} layers, run just "
            "before it:")
        say()
        by_context.header(by_context.CONTEXTS, say)
        series = {"full": [
            (length, statistics.mean(take(found[cut][i][1]) for cut in CUTS))
            for i, length in enumerate(by_context.CONTEXTS)]}
        say(by_context.line("full, mean", [value for _, value in series["full"]],
                            digits))
        for cut, pairs in found.items():
            values = [take(own) for own, _ in pairs]
            cells = [f"{value:.{digits}f} ({value / take(full):.2f})"
                     for value, (_, full) in zip(values, pairs)]
            say(f"| cut {cut} | {' | '.join(cells)} |")
            series[f"cut {cut}"] = list(zip(by_context.CONTEXTS, values))
        word = figure.split(",")[0]
        charts[f"speed-{word.lower()}"] = chart.line_chart(
            f"SPEED: {word} by context, {text.name}", "tokens before", figure,
            series)


DRAFT_CUTS = (29, 28, 26, 24, 22, 15)
DRAFT_PROMPT = 2000  # tokens
BLOCK = 8  # tokens
SEEDS = (1, 2)


def acceptance_table(program, text, scratch, say, charts):
    ids = program.document("tokenize", "-f", text)["tokens"]
    path = scratch / "drafted.txt"
    path.write_text(" ".join(map(str, ids[:DRAFT_PROMPT])))
    columns = [("anchor", 1), ("no anchor", 0)]
    series = {name: [] for name, _ in columns}
    say()
    say(f"## SPEED: drafts that hold by cut, {text.name}: 128 tokens after "
        f"{DRAFT_PROMPT:,}, {len(SEEDS)} seeds, temperature 1, blocks of {BLOCK}")
    say()
    say("The view holds everything, so the cut alone is between the draft and the "
        "model (untrained). Acceptance; tokens a sweep.")
    say()
    say(f"| cut of {LAYERS} | {' | '.join(name for name, _ in columns)} |")
    say("|---:|---:|---:|")
    for cut in DRAFT_CUTS:
        cells = []
        for name, anchor in columns:
            runs = triforce.Runs([program.document(
                "generate", "--tokens", path, "-n", 128, "--ignore-eos", "--temp",
                1, "--seed", seed, "-c", DRAFT_PROMPT + 200, "--policy", "speed",
                "--set", f"cut={cut},anchor={anchor}", "--verify", "coupled",
                "--draft", "none", "--gamma2", BLOCK, "--budget",
                DRAFT_PROMPT + 136) for seed in SEEDS])
            held = runs.acceptance()
            cells.append(f"{held:.3f}; {runs.tokens_per_sweep():.1f}")
            series[name].append((cut, held))
        say(f"| {cut} | {' | '.join(cells)} |")
    charts["speed-held"] = chart.line_chart(
        f"SPEED: drafts that hold, {text.name}", f"cut of {LAYERS} layers",
        "acceptance", series)
