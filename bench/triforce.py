#!/usr/bin/env python3
"""TriForce beside plain decoding: acceptance and speed-up over a slow link.

  bench/triforce.py              all tables, two hours, quiet
  bench/triforce.py --brief      some rows of each, an hour
  bench/triforce.py --quick      the defaults alone, half an hour
  bench/triforce.py --only 2048,24  one row: the view's size, tokens a block
  bench/triforce.py --save       also writes bench/results/<date>-<cpu>-triforce.md,
                                 and the defaults' rows into doc/measured.md

The prompt is a piece of a book of $TIERCEL_BOOKS and the request to summarise
it, 7,000 tokens in all, and 28,000, for which SmolLM2's context is scaled
(YaRN). The device is simulated, with the least memory that works with a row's
view: all full pages of TriForce are behind the link. The link's rate is such
that a sweep over the prompt takes 20 and 100 times as long as a draft step over
a view of 1,024, at 28,000 tokens one of 4,096 (measured first, on plain cpu, in
the shorter text). The baseline of a row is `--policy full` on the same device
and link, with the same double buffering, in the same call: it has resident
pages in the view's memory. It decodes 16 tokens, not 160: at 7,000 it sees 1 %
less text than the run does in the mean, which is to its advantage.

  speed-up     decoded tokens a second over those of the baseline
  of bound     the speed-up over the tokens a sweep, which it would reach if
               drafts cost nothing and the baseline had no resident pages
  model        the speed-up of a round in which only the sweep uses the link and
               all else takes as long as such draft steps, over the baseline's
               sweep of its pages that are not resident
  device       MB that were taken, and those of the baseline
  acceptance   the share of accepted tokens in those that were checked; tokens
               after the first rejected one are not checked
  link share   the share of the link's rate that was used while sweeps ran, from
               the first row to the verdict: the share of that time in which the
               link was busy (a copy counts when it ends), times the bytes it
               moved over those that its rate allows while busy

Standard library only.
"""

import argparse
import functools
import operator
import os
import pathlib
import sys
import tempfile

import pages
from program import Program

MEASURED = "<!-- TriForce: written by bench/triforce.py --save -->"
LAYERS = 30
KV_BYTES = LAYERS * 3 * 64 * 2 * 2  # a token's: heads, width, K and V, f16
PAGE = 128  # tokens
LONG = 20000  # tokens from which a prompt gets the larger view
BASELINE_TOKENS = 16
LAW = ["--repeat-penalty", 1, "--top-p", 1]
YARN = ["--rope-scaling", "yarn", "--rope-scale", 4, "--yarn-orig-ctx", 8192]


def view_of(prompt):
    """The tokens in view after a prompt of this many tokens."""
    return 1024 if prompt < LONG else 4096


class Text:
    """The first letters of `text`, in the file `cut`, which with the request
    make a prompt of about `tokens`. With `kept`, runs after the first find it
    in the prompt cache, and their times say little."""

    def __init__(self, program, text, cut, tokens, kept=False):
        self.program = program
        self.reading = [] if kept else ["--no-cache"]
        self.cut = cut
        self.prompt = tokens
        self.context = ["-c", tokens + 600]
        self.context += YARN if tokens > 8192 - 600 else []
        request = 50  # tokens
        letters = 4 * tokens
        for _ in range(3):
            cut.write_text(text[:letters])
            ids = program.document("tokenize", "-f", cut)["tokens"]
            letters = letters * (tokens - request) // len(ids)

    def run(self, tokens, seeds, *args):
        runs = Runs([
            self.program.document(
                "summarize", self.cut, *self.reading, "-n", tokens,
                "--ignore-eos", *self.context, "--seed", seed, *LAW, *args)
            for seed in seeds])
        self.prompt = runs.first("prompt_tokens")
        return runs

    def device(self, link, *args):
        """The value for --simulate with the least device that works, by
        plan."""
        plan = self.program.document(
            "plan", *self.context, "--simulate", f"device=1MB,{link}", *args)
        kilobytes = -(-plan["min_device_bytes"] // 1000)
        return f"device={kilobytes}kB,{link}"


class Runs:
    """The runs of one configuration, a seed each; shares are those of the
    sums."""

    def __init__(self, runs):
        self.runs = runs

    def each(self):
        return [Runs([run]) for run in self.runs]

    def first(self, *path):
        """A value of the first run that is the same in all."""
        return functools.reduce(operator.getitem, path, self.runs[0])

    def sum(self, *path):
        return sum(functools.reduce(operator.getitem, path, run)
                   for run in self.runs)

    def phase(self, name, key):
        return self.sum("ledger", "phases", name, key)

    def level(self, key):
        """The sum of `key` for the level that the sweeps check."""
        return self.sum("speculation", "levels", -1, key)

    def acceptance(self):
        return self.level("accepted") / self.level("checked")

    def tokens_per_sweep(self):
        sweeps = [run["speculation"]["sweeps"] for run in self.runs]
        tokens = [run["speculation"]["tokens_per_sweep"] for run in self.runs]
        return sum(map(operator.mul, sweeps, tokens)) / sum(sweeps)

    def rate(self):
        """Tokens a second of all runs, which have equally many tokens."""
        return len(self.runs) / sum(1 / run["decode_tok_s"]
                                    for run in self.runs)

    def link_share(self, name, rate):
        """The share of the link's rate that was used in a phase."""
        total = {key: sum(self.phase(phase, key) for phase in
                          ("refresh", "draft", "verify"))
                 for key in ("h2d_bytes", "d2h_bytes", "link_busy_s")}
        # Pages that were requested ahead when a run ended have not moved.
        ahead = sum(run["ledger"]["formula"]["ahead_pages"] *
                    run["ledger"]["formula"]["page_bytes"]
                    for run in self.runs)
        moved = total["h2d_bytes"] + total["d2h_bytes"] - ahead
        return (self.phase(name, "link_busy_s") /
                max(self.phase(name, "seconds"), 1e-9) *
                moved / rate / max(total["link_busy_s"], 1e-9))


def book(name):
    path = pathlib.Path(os.environ.get("TIERCEL_BOOKS", "")) / name
    if not path.exists():
        sys.exit(f"{path}: needs a folder of books in $TIERCEL_BOOKS")
    return path.read_text(encoding="utf-8", errors="replace")


def configurations(view, args):
    """Yields (name, flags); those of the sampler come last."""
    def one(budget, chunk, gamma2, temp, draft):
        return (f"{budget} | {chunk} | {gamma2} | {draft} | {temp}",
                ["--policy", "triforce", "--budget", budget, "--chunk", chunk,
                 "--gamma2", gamma2, "--draft", draft, "--temp", temp])
    if args.only:
        budget, gamma2 = args.only.split(",")
        return [one(budget, 32, gamma2, 0.6, "none")]
    default = [one(view, 32, 16, 0.6, "ngram")]
    if args.quick:
        return default
    if args.brief or view != 1024:
        return default + [one(budget, 32, gamma2, temp, "none")
                          for budget, gamma2, temp in (
                              (view, 16, 0.6), (view, "auto", 0.6),
                              (view // 4, 16, 0.6), (view, 16, 0))]
    rows = [one(budget, 32, 16, 0.6, "none")
            for budget in (256, 512, 1024, 2048)]
    rows += [one(1024, chunk, 16, 0.6, "none") for chunk in (8, 16, 64, 128)]
    rows += [one(1024, 32, gamma, 0.6, "none") for gamma in (8, 24, 32, "auto")]
    rows += [one(2048, 32, gamma, 0.6, "none") for gamma in (24, 32)]
    rows += [one(1024, 32, 16, 0, "none"), one(1024, 32, 16, 1, "none")]
    return default + rows + [one(1024, 32, 16, 0.6, "self")]


def draft_step(text, view, common):
    """The seconds of a step over a view of this many tokens, on plain cpu."""
    runs = text.run(64, [1], *common, "--policy", "triforce", "--draft", "none",
                    "--budget", view, "--temp", 0.6)
    return runs.phase("draft", "seconds") / runs.level("drafted")


def compare(runs, base, ratio, rate):
    """The figures of a row: `runs` beside `base`, on a link of `rate` bytes a
    second, over which a sweep takes as long as `ratio` draft steps."""
    per_sweep = runs.tokens_per_sweep()
    steps = runs.level("drafted") / runs.sum("speculation", "sweeps")
    resident = base.first("ledger", "formula", "resident_pages") * PAGE
    behind = max(0, 1 - resident / runs.first("prompt_tokens"))
    seconds = [runs.phase(phase, "seconds")
               for phase in ("draft", "verify", "refresh")]
    return {
        "acceptance": runs.acceptance(),
        "tokens_per_sweep": per_sweep,
        "speedup": runs.rate() / base.rate(),
        "model": per_sweep * (ratio * behind + 1) / (ratio + steps),
        "megabytes": [one.first("memory", "device_bytes") / 1e6
                      for one in (runs, base)],
        "baseline_rate": base.rate(),
        "time_shares": [s / sum(seconds) for s in seconds],
        "link_shares": [one.link_share("verify", rate) for one in (runs, base)],
        "idle": 1 - runs.link_share("draft", rate),
    }


HEADER = (
    "| budget | chunk | gamma2 | inner | temperature | acceptance "
    "| tokens a sweep | speed-up | of bound | model | device, baseline's "
    "| baseline, tokens/s | draft, verify, refresh | link share, baseline's "
    "| idle while drafting |\n"
    "|---:|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---|---:|---:|")


def line(name, row):
    """A row of a table under HEADER."""
    def each(pattern, values):
        return ", ".join(pattern.format(value) for value in values)
    return (f"| {name} | {row['acceptance']:.3f} "
            f"| {row['tokens_per_sweep']:.1f} | {row['speedup']:.2f} "
            f"| {row['speedup'] / row['tokens_per_sweep']:.2f} "
            f"| {row['model']:.1f} | {each('{:.1f}', row['megabytes'])} "
            f"| {row['baseline_rate']:.2f} "
            f"| {each('{:.0%}', row['time_shares'])} "
            f"| {each('{:.3f}', row['link_shares'])} | {row['idle']:.2f} |")


MEASURED_HEADER = (
    "| prompt | view | sweep | link, MB/s | drafted tokens that held "
    "| tokens a sweep | speed-up | of tokens a sweep | at most |\n"
    "|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")


def measured_line(prompt, view, ratio, rate, row):
    """A row of the table of doc/measured.md, with the defaults at one length and
    ratio."""
    return (f"| {prompt:,} | {view:,} | {ratio:.0f} | {rate / 1e6:,.0f} "
            f"| {row['acceptance']:.0%} | {row['tokens_per_sweep']:.1f} "
            f"| {row['speedup']:.1f} "
            f"| {row['speedup'] / row['tokens_per_sweep']:.2f} "
            f"| {row['model'] / row['tokens_per_sweep']:.2f} |\n")


def speed_table(text, view, step, ratio, args, common, say):
    """Prints the rows at one length and ratio; returns its line of the table."""
    rate = text.prompt * KV_BYTES / (ratio * step)
    link = f"link={rate / 1e6:.2f}MB/s"
    say()
    say(f"## {text.prompt} tokens, a sweep of {ratio:.0f} draft steps of "
        f"{1e3 * step:.1f} ms (a view of {view}): {rate / 1e6:.0f} MB/s")
    say()
    say(HEADER)

    @functools.cache
    def baseline(device):
        return text.run(BASELINE_TOKENS, [1], "--temp", 0.6, "--simulate",
                        device)

    rows = []
    for name, flags in configurations(view, args):
        device = text.device(link, *flags[:flags.index("--gamma2")])
        base = baseline(device)
        runs = text.run(args.tokens, range(1, args.seeds + 1), *common, *flags,
                        "--simulate", device)
        rows.append(compare(runs, base, ratio, rate))
        say(line(name, rows[-1]))
    return measured_line(text.prompt, view, ratio, rate, rows[0])


def parser_of_text(**kwargs):
    """A parser of the flags that choose the program and the text."""
    parser = argparse.ArgumentParser(**kwargs)
    parser.add_argument("--tiercel",
                        default=pages.ROOT / "build/cpu/apps/tiercel")
    parser.add_argument("--book", default="moby_dick.txt")
    parser.add_argument("--skip", type=int, default=30000,
                        help="letters of the book before the text")
    return parser


def main():
    parser = parser_of_text()
    parser.add_argument("--tokens", type=int, default=160)
    parser.add_argument("--seeds", type=int,
                        help="runs of each configuration, summed (default 2; "
                        "with --quick 1)")
    parser.add_argument("--verify", default="residual")
    parser.add_argument("--lengths", default="7000,28000",
                        help="tokens of a prompt")
    parser.add_argument("--ratios", default="20,100",
                        help="draft steps that a sweep takes")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--brief", action="store_true")
    parser.add_argument("--only", metavar="BUDGET,GAMMA2", help="one row")
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    if args.seeds is None:
        args.seeds = 1 if args.quick else 2
    if args.seeds < 1:
        parser.error(f"--seeds: got {args.seeds}, need 1 or more")
    say = pages.Lines()
    common = ["--verify", args.verify]
    say("# TriForce over a slow link (simulated)")
    say()
    say(f"{pages.cpu_name()}, {os.cpu_count()} threads, "
        f"{pages.today()}, {pages.version_of(args.tiercel)}, load "
        f"{os.getloadavg()[0]:.1f}. SmolLM2-135M Q4_1, {args.book}, "
        f"{args.tokens} tokens decoded for each of {args.seeds} seeds, "
        f"--verify {args.verify}.")
    program = Program(args.tiercel)
    table = MEASURED_HEADER
    with tempfile.TemporaryDirectory() as scratch:
        def text(tokens):
            return Text(program, book(args.book)[args.skip:],
                        pathlib.Path(scratch) / f"{tokens}-{args.book}", tokens)

        short = text(7000)
        for tokens in map(int, args.lengths.split(",")):
            view = view_of(tokens)
            step = draft_step(short, view, common)
            read = text(tokens)
            for ratio in map(float, args.ratios.split(",")):
                table += speed_table(read, view, step, ratio, args, common, say)
    if args.save:
        print(pages.save(say.said, {}, "triforce"))
        usual = all(getattr(args, name) == parser.get_default(name)
                    for name in ("book", "only", "lengths", "ratios",
                                 "tokens", "verify"))
        if usual:
            print(pages.fill_measured(MEASURED, table))


if __name__ == "__main__":
    main()
