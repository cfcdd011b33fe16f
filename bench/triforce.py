#!/usr/bin/env python3
"""TriForce beside plain decoding: acceptance and speed-up over a slow link.

  bench/triforce.py              all tables, half an hour, quiet
  bench/triforce.py --brief      six rows of each, ten minutes
  bench/triforce.py --quick      one row of each
  bench/triforce.py --acceptance how much holds, by the size of the view, in
                                 texts of several books; nothing is timed
  bench/triforce.py --save       also writes bench/results/<date>-<cpu>-triforce.md
                                 (-acceptance.md)

Real text: a chapter-sized piece of a book of $TIERCEL_BOOKS, and the request to
summarise it, 7,000 tokens in all; SmolLM2. The device is simulated: as small as
works, so that all full pages are behind the link, whose rate is such that a
sweep over the prompt takes 20 and 100 times a draft step over a view of 1,024
(measured here first, on plain cpu). The baseline is `--policy full` on the same
device and link, with the same double buffering, in the same call.

  speed-up     decoded tokens a second over those of the baseline
  model        that of a round of which the link is busy in the sweep alone and
               all else is a draft step over a view of 1,024: (ratio + 1) /
               (ratio + draft) x tokens a sweep. Smaller views are faster
  acceptance   tokens that held, of those that were checked: what follows the
               first that did not hold is not
  link share   of the link's rate while sweeps ran, from the first row to the
               verdict: the share of that time in which the link was occupied (a
               copy counts when it ends), times what it moved over what its
               rate allows while occupied

Standard library only.
"""

import argparse
import datetime
import json
import operator
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LAYERS = 30
KV_BYTES = LAYERS * 3 * 64 * 2 * 2  # of one token: heads, width, K and V, f16
PROMPT = 7000
BASELINE_TOKENS = 16


class Program:
    def __init__(self, path, text, cut):
        self.path = path
        self.text = text
        self.cut = cut
        self.prompt = 0

    def document(self, command, *args):
        done = subprocess.run(
            [self.path, command, *map(str, args), "--json", "--no-progress"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        document = json.loads(done.stdout)
        if done.returncode not in (0, 4):
            sys.exit(f"{command} {args}: {done.stderr.decode()}")
        return document

    def fit(self):
        """Cuts the text so that the prompt is of about PROMPT tokens."""
        letters = 3 * PROMPT  # too many would not fit
        for _ in range(3):
            self.cut.write_text(self.text[:letters])
            run = self.document("summarize", self.cut, "-n", 1)
            self.prompt = run["prompt_tokens"]
            letters = int(letters * PROMPT / self.prompt)

    def run(self, tokens, seeds, *args):
        return Runs([
            self.document("summarize", self.cut, "-n", tokens, "--ignore-eos",
                          "-c", PROMPT + 600, "--seed", seed, *args)
            for seed in seeds])


class Runs:
    """Of one configuration, a seed each; shares are of their sums."""

    def __init__(self, runs):
        self.runs = runs

    def sum(self, *path):
        total = 0
        for value in self.runs:
            for key in path:
                value = value[key]
            total += value
        return total

    def station(self, name, key):
        return self.sum("ledger", "stations", name, key)

    def level(self, key):
        """Of the level that the sweeps check."""
        return self.sum("speculation", "levels", -1, key)

    def acceptance(self):
        return self.level("accepted") / self.level("checked")

    def tokens_per_sweep(self):
        sweeps = [run["speculation"]["sweeps"] for run in self.runs]
        tokens = [run["speculation"]["tokens_per_sweep"] for run in self.runs]
        return sum(map(operator.mul, sweeps, tokens)) / sum(sweeps)

    def rate(self):
        """Tokens a second; each run has as many tokens."""
        return len(self.runs) / sum(1 / run["decode_tok_s"]
                                    for run in self.runs)

    def link_share(self, name, rate):
        """Of its rate, while the station ran."""
        total = {key: sum(self.station(station, key) for station in
                          ("refresh", "draft", "verify"))
                 for key in ("h2d_bytes", "d2h_bytes", "link_busy_s")}
        # What was asked for ahead when a run ended has not moved.
        ahead = sum(run["ledger"]["formula"]["ahead_pages"] *
                    run["ledger"]["formula"]["page_bytes"]
                    for run in self.runs)
        moved = total["h2d_bytes"] + total["d2h_bytes"] - ahead
        return (self.station(name, "link_busy_s") /
                max(self.station(name, "seconds"), 1e-9) *
                moved / rate / total["link_busy_s"])


def book(name):
    path = pathlib.Path(os.environ.get("TIERCEL_BOOKS", "")) / name
    if not path.exists():
        sys.exit(f"{path}: needs a folder of books in $TIERCEL_BOOKS")
    return path.read_text(encoding="utf-8", errors="replace")


def configurations(quick, brief, only):
    """Name, flags."""
    def one(budget, chunk, gamma2, temp, draft):
        return (f"{budget} | {chunk} | {gamma2} | {draft} | {temp}",
                ["--policy", "triforce", "--budget", budget, "--chunk", chunk,
                 "--gamma2", gamma2, "--temp", temp, "--draft", draft])
    if quick:
        return [one(1024, 32, 16, 0.6, "none")]
    if only:
        budget, gamma2 = only.split(",")
        return [one(budget, 32, gamma2, 0.6, "none")]
    if brief:
        return [one(512, 32, 16, 0.6, "none"), one(1024, 32, 16, 0.6, "none"),
                one(2048, 32, 16, 0.6, "none"), one(2048, 32, 31, 0.6, "none"),
                one(2048, 32, 16, 0, "none"), one(1024, 32, 16, 0.6, "ngram")]
    rows = [one(budget, 32, 16, 0.6, "none")
            for budget in (256, 512, 1024, 2048)]
    rows += [one(1024, chunk, 16, 0.6, "none") for chunk in (8, 16, 64, 128)]
    rows += [one(1024, 32, gamma, 0.6, "none") for gamma in (8, 24, 32, "auto")]
    rows += [one(2048, 32, gamma, 0.6, "none") for gamma in (24, 32)]
    rows += [one(1024, 32, 16, 0, "none"), one(1024, 32, 16, 1, "none")]
    rows += [one(1024, 32, 16, 0.6, draft) for draft in ("ngram", "self")]
    return rows


def acceptance_table(books, tokens, seeds, common, say):
    """Budgets by draft lengths; each cell a range over the books."""
    columns = [(0.6, 8), (0.6, 16), (0, 16)]
    budgets = (256, 512, 1024, 2048)
    seen = {}
    for program in books:
        for budget in budgets:
            for temp, length in columns:
                runs = program.run(
                    tokens, seeds, *common, "--policy", "triforce", "--draft",
                    "none", "--budget", budget, "--gamma2", length, "--temp",
                    temp)
                seen.setdefault((budget, temp, length), []).append(
                    (runs.acceptance(), runs.tokens_per_sweep()))

    def between(values, digits):
        low, high = (f"{v:.{digits}f}" for v in (min(values), max(values)))
        return low if low == high else f"{low} to {high}"

    say("Acceptance; tokens a sweep. No inner drafter, chunks of 32.")
    say()
    say("| budget | " + " | ".join(f"T {temp}, blocks of {length}"
                                   for temp, length in columns) + " |")
    say("|---:|" + "---|" * len(columns))
    for budget in budgets:
        say(f"| {budget} | " + " | ".join(
            "{}; {}".format(between([a for a, _ in seen[budget, *column]], 3),
                            between([t for _, t in seen[budget, *column]], 1))
            for column in columns) + " |")


def speed_tables(program, args, seeds, common, say):
    # A draft step, and both policies on plain cpu.
    plain = program.run(64, seeds, *common, "--temp", 0.6)
    drafted = program.run(64, seeds, *common, "--temp", 0.6, "--policy",
                          "triforce", "--draft", "none")
    step = drafted.station("draft", "seconds") / drafted.level("drafted")
    ngram = program.run(64, seeds, *common, "--temp", 0.6, "--draft", "ngram")
    say(f"A step over a view of 1,024: {1e3 * step:.1f} ms. Plain cpu, no "
        f"link, tokens a second: full {plain.rate():.1f}, "
        f"triforce (no inner drafter) {drafted.rate():.1f}, "
        f"ngram {ngram.rate():.1f}.")
    for ratio in map(float, args.ratios.split(",")):
        sweep_bytes = program.prompt * KV_BYTES
        rate = sweep_bytes / (ratio * step)
        link = f"{rate / 1e6:.2f}MB/s"

        def device(extra):
            # The least that works, as plan says.
            probe = program.document(
                "plan", "-c", PROMPT + 600, "--simulate",
                f"device=1MB,link={link}", *extra)
            kilobytes = -(-probe["min_device_bytes"] // 1000)
            return f"device={kilobytes}kB,link={link}"

        base = program.run(BASELINE_TOKENS, seeds[:1], *common, "--temp", 0.6,
                           "--simulate", device([]))
        say()
        say(f"## A sweep of {ratio:.0f} draft steps: {rate / 1e6:.0f} MB/s")
        say()
        say(f"Baseline: {base.rate():.2f} tokens a second, link share "
            f"{base.link_share('verify', rate):.3f}.")
        say()
        say("| budget | chunk | gamma2 | inner | temperature | acceptance "
            "| tokens a sweep | speed-up | model | draft, verify, refresh "
            "| link share | idle while drafting |")
        say("|---:|---:|---:|---|---:|---:|---:|---:|---:|---|---:|---:|")
        for name, flags in configurations(args.quick, args.brief, args.only):
            size = flags[flags.index("--budget"):]
            size = size[:4]
            runs = program.run(args.tokens, seeds, *common, *flags,
                               "--simulate",
                               device(["--policy", "triforce", *size]))
            seconds = [runs.station(name, "seconds") for name in
                       ("draft", "verify", "refresh")]
            per_sweep = runs.tokens_per_sweep()
            drafted_steps = (runs.level("drafted") /
                             runs.sum("speculation", "sweeps"))
            model = per_sweep * (ratio + 1) / (ratio + drafted_steps)
            share = runs.link_share("verify", rate)
            idle = 1 - runs.link_share("draft", rate)
            say(f"| {name} | {runs.acceptance():.3f} | {per_sweep:.1f} | "
                f"{runs.rate() / base.rate():.2f} | {model:.1f} | "
                + ", ".join(f"{100 * s / sum(seconds):.0f} %"
                            for s in seconds)
                + f" | {share:.3f} | {idle:.2f} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tiercel",
                        default=ROOT / "build/cpu/apps/tiercel")
    parser.add_argument("--book", default="moby_dick.txt")
    parser.add_argument("--books", default="moby_dick.txt,news_from_nowhere.txt",
                        help="of --acceptance")
    parser.add_argument("--skip", type=int, default=30000,
                        help="letters of the book before the text")
    parser.add_argument("--tokens", type=int, default=160)
    parser.add_argument("--seeds", type=int, default=2,
                        help="runs of each configuration, summed")
    parser.add_argument("--verify", default="residual")
    parser.add_argument("--ratios", default="20,100")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--acceptance", action="store_true")
    parser.add_argument("--brief", action="store_true")
    parser.add_argument("--only", metavar="BUDGET,GAMMA2", help="one row")
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    if args.seeds < 1:
        parser.error(f"--seeds: got {args.seeds}, need 1 or more")
    out = []

    def say(line=""):
        print(line, flush=True)
        out.append(line)

    cpu = re.search(r"model name\s*: (.*)",
                    pathlib.Path("/proc/cpuinfo").read_text()).group(1)
    commit = subprocess.run(
        ["git", "-C", ROOT, "describe", "--always", "--dirty"],
        stdout=subprocess.PIPE, text=True).stdout.strip()
    common = ["--verify", args.verify]
    seeds = range(1, args.seeds + 1)
    what = "acceptance" if args.acceptance else "triforce"
    books = args.books.split(",") if args.acceptance else [args.book]
    with tempfile.TemporaryDirectory() as scratch:
        programs = []
        for name in books:
            programs.append(Program(str(args.tiercel), book(name)[args.skip:],
                                    pathlib.Path(scratch) / name))
            programs[-1].fit()
        say("# What holds of TriForce's drafts" if args.acceptance else
            "# TriForce over a slow link (simulated)")
        say()
        prompts = " and ".join(str(program.prompt) for program in programs)
        say(f"{cpu}, {os.cpu_count()} threads, "
            f"{datetime.datetime.utcnow():%Y-%m-%d}, commit {commit}, load "
            f"{os.getloadavg()[0]:.1f}. SmolLM2-135M Q4_1, {', '.join(books)}, "
            f"prompts of {prompts} tokens, {args.tokens} decoded for each of "
            f"{args.seeds} seeds, "
            f"--verify {args.verify}.")
        say()
        if args.acceptance:
            acceptance_table(programs, args.tokens, seeds, common, say)
        else:
            speed_tables(programs[0], args, seeds, common, say)
    if args.save:
        slug = re.sub(r"[^a-z0-9]+", "-", cpu.lower()).strip("-")
        path = (ROOT / "bench/results" /
                f"{datetime.datetime.utcnow():%Y-%m-%d}-{slug}-{what}.md")
        path.write_text("\n".join(out) + "\n")
        print(path)


if __name__ == "__main__":
    main()
