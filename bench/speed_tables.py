"""Tables of SPEED, in the paper's form: time to the first token (TTFT), time per
output token (TPOT) and KV by cut and context; drafts that hold by cut, with and
without the anchor, which stands for the paper's quality by cut, as no small
checkpoint was trained for it. bench/policies.py prints them. Standard library
only."""

import by_context
import chart
import triforce
from triforce import LAYERS

TOKENS = 65  # decoded after each context

# By name: of the document of `generate`; digits.
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
    policies = [(f"full, {LAYERS} layers", []),
                *((f"cut {cut}", plain(cut)) for cut in CUTS)]
    found = {name: [] for name, _ in policies}
    for length in by_context.CONTEXTS:
        path = scratch / "context.txt"
        path.write_text(" ".join(map(str, ids[:length])))
        for name, flags in policies:
            found[name].append(program.document(
                "generate", "--tokens", path, "-n", TOKENS, "--ignore-eos", "-c",
                length + 100, *flags))
    say()
    say(f"## SPEED: TTFT, TPOT and KV by cut and context, {text.name}: {TOKENS} "
        "tokens decoded, plain (untrained)")
    full = policies[0][0]
    for figure, (take, digits) in FIGURES.items():
        say()
        say(f"{figure}, and its share of full's:")
        say()
        by_context.header(by_context.CONTEXTS, say)
        series = {}
        for name, documents in found.items():
            values = list(map(take, documents))
            cells = [f"{value:.{digits}f} ({value / take(other):.2f})"
                     for value, other in zip(values, found[full])]
            say(f"| {name} | {' | '.join(cells)} |")
            series[name] = list(zip(by_context.CONTEXTS, values))
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
