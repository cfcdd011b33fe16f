"""The decoding speed of policies by context, beside full: lines of a table in
the papers' form, and of a chart. Standard library only."""

import statistics

# Tokens of context. SFI's view of 1,024 chosen and 256 newest fits into the
# first.
CONTEXTS = (1500, 3000, 5000, 7000)
# Tokens decoded after each. Rates leave out the first, and the others are two
# intervals of 64: a policy that chooses every 64 has a slow step in each.
TOKENS = 129


def header(contexts, say):
    say(f"| tokens before | {' | '.join(f'{n:,}' for n in contexts)} |")
    say("|---|" + "---:|" * len(contexts))


def line(name, values, digits):
    return f"| {name} | {' | '.join(f'{v:.{digits}f}' for v in values)} |"


def speed_table(program, policies, text, say):
    """Prints the tokens a second of `policies`, [(name, flags)], after the
    first tokens of the file `text`, each beside full in the same call. Returns
    the series of a chart, in which full's is the mean of its runs."""
    header(CONTEXTS, say)
    series, baselines = {}, []
    for name, flags in policies:
        rows = program.document(
            "bench", "-p", 0, "-n", TOKENS, "-d", ",".join(map(str, CONTEXTS)),
            "-r", 2, "-f", text, "--temp", 0.6, "--verify-against", "full",
            *flags)
        speeds = [row["avg_ts"] for row in rows]
        full = [row["baseline"]["decode_tok_s"] for row in rows]
        say(line(name, speeds, 1))
        say(line("... full beside it", full, 1))
        say(line("... over full", [row["baseline"]["speedup"] for row in rows],
                 2))
        series[name] = list(zip(CONTEXTS, speeds))
        baselines.append(full)
    series["full"] = list(zip(CONTEXTS, map(statistics.mean, zip(*baselines))))
    return series
