#!/usr/bin/env python3
"""Runs TriForce on the real model and real text: drafts must not change it.

    triforce_matrix.py TIERCEL small|all

With --verify coupled every drafter gives the tokens of --policy full for the
same seed, with fixed and adaptive lengths, views of several sizes, on plain cpu
and behind a simulated link. Every run shows more than 1.3 tokens a sweep, and
over all runs each level has drafts that hold and drafts that do not: a level
that drafts nothing, or is never rejected, proves nothing.

  small   one prompt of 400 tokens, 32 generated
  all     twenty prompts of 300 to 2,500 tokens, 256 generated at three
          temperatures, one of them with DRY, two of the four drafters each
          time

The small model that drafts is the real one without 6 of its 30 layers. Reads
TIERCEL_MODEL and TIERCEL_BOOKS. Standard library only.
"""

import collections
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

LEAST_TOKENS_PER_SWEEP = 1.3
LINK = "2GB/s"
DRAFTS = ("none", "ngram", "self", "small")
SMALL_LAYERS = 24
# With these a single word of the answer is a repetition.
DRY = ("--dry-multiplier", 0.8, "--dry-allowed-length", 1)
MAKE_DRAFT = (pathlib.Path(__file__).resolve().parent.parent /
              "bench/make_draft.py")
# Settings of the sampler, by turns.
LAWS = (["--temp", 0], ["--temp", 1.0, *DRY], ["--temp", 0.6])
# gamma1, gamma2
LENGTHS = ((4, 16), ("auto", "auto"), (1, 31))
# budget, chunk, sink, window
VIEWS = ((256, 32, 32, 64), (128, 8, 8, 32), (512, 64, 64, 64),
         (384, 128, 128, 16), (192, 16, 16, 100))


class Runs:
    def __init__(self, program, scratch):
        self.program = program
        self.scratch = scratch
        self.levels = collections.defaultdict(lambda: [0, 0])
        self.count = 0
        self.sweeps = 0
        self.tokens = 0
        self.devices = {}
        self.small_model = scratch / "small.gguf"

    def make_small_model(self):
        subprocess.run(
            [sys.executable, "-B", MAKE_DRAFT, "drop", "--layers",
             str(SMALL_LAYERS), os.environ["TIERCEL_MODEL"], self.small_model],
            check=True)

    def document(self, *args):
        done = subprocess.run(
            [self.program, *map(str, args), "--json", "--no-progress"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        document = json.loads(done.stdout)
        assert done.returncode in (0, 4), (args, document)
        return document

    def least_device(self, context, flags):
        """The least device for --simulate, so that pages come and go."""
        key = (context, *flags)
        if key not in self.devices:
            plan = self.document("plan", "-c", context, "--simulate",
                                 f"device=1MB,link={LINK}", *flags)
            self.devices[key] = -(-plan["min_device_bytes"] // 1000)
        return f"device={self.devices[key]}kB,link={LINK}"

    def prompt(self, text, tokens, generated):
        """The arguments of all runs over one prompt of about so many tokens."""
        path = self.scratch / "prompt.txt"
        path.write_text(text[:4 * tokens])
        return ["generate", "-f", path, "-n", generated, "--ignore-eos", "-c",
                2 * tokens + generated + 200]

    def check(self, common, plain, draft, lengths, view, simulated):
        flags = ["--policy", "triforce", "--budget", view[0], "--chunk",
                 view[1], "--sink", view[2], "--window", view[3]]
        args = [*common, *flags, "--verify", "coupled", "--draft", draft,
                "--gamma2", lengths[1]]
        if draft != "none":
            args += ["--gamma1", lengths[0]]
        if draft == "small":
            flags += ["-md", self.small_model]
            args += flags[-2:]
        self.verify(common, plain, f"--draft {draft}", flags, args, simulated)

    def run(self, common, flags, args, simulated):
        if simulated:
            context = common[common.index("-c") + 1]
            args = [*args, "--simulate", self.least_device(context, flags)]
        return self.document(*args)

    @staticmethod
    def must_agree(run, plain, args):
        theirs = plain["output"][0]["tokens"]
        ours = run["output"][0]["tokens"]
        assert ours == theirs, (
            args, next(i for i, pair in enumerate(zip(ours, theirs))
                       if pair[0] != pair[1]))

    def verify(self, common, plain, name, flags, args, simulated,
               least=LEAST_TOKENS_PER_SWEEP):
        run = self.run(common, flags, args, simulated)
        self.must_agree(run, plain, args)
        speculation = run["speculation"]
        assert speculation["tokens_per_sweep"] > least, (args, speculation)
        for level in speculation["levels"]:
            held = self.levels[name, level["drafter"]]
            held[0] += level["accepted"]
            held[1] += level["checked"] - level["accepted"]
        self.count += 1
        self.sweeps += speculation["sweeps"]
        self.tokens += len(run["output"][0]["tokens"])

    def report(self):
        for (name, level), (held, refused) in sorted(self.levels.items()):
            print(f"{name}, level {level}: {held} held, {refused} refused, "
                  f"{held / max(1, held + refused):.2f}", flush=True)
            assert held > 0 and refused > 0, (name, level)
        print(f"{self.count} runs, all the tokens of --policy full, "
              f"{self.tokens / self.sweeps:.1f} a sweep")


def small(runs, text):
    common = runs.prompt(text[20000:], 400, 32)
    for turn, distribution in enumerate(LAWS[:2]):
        args = [*common, *distribution, "--seed", 5]
        plain = runs.document(*args)
        for i, draft in enumerate(DRAFTS):
            n = turn + i
            runs.check(args, plain, draft, LENGTHS[n % 2], VIEWS[turn],
                       simulated=n % 3 == 1)


def everything(runs, text):
    sizes = itertools.cycle((300, 600, 1200, 2500))
    n = 0
    for prompt in range(20):
        start = prompt * len(text) // 20
        common = runs.prompt(text[start:], next(sizes), 256)
        for turn, distribution in enumerate(LAWS):
            args = [*common, *distribution, "--seed", prompt]
            plain = runs.document(*args)
            first = (prompt + turn) % 2
            for draft in DRAFTS[first::2]:
                # The periods have no common divisor, so all pairs occur.
                runs.check(args, plain, draft, LENGTHS[n % 3], VIEWS[n % 5],
                           simulated=n % 7 < 3)
                n += 1
        print(f"prompt {prompt}: {runs.count} runs", flush=True)


def measure_nothing():
    """Leaves programs no folder for rates, so that adaptive lengths are the
    same on any machine, and the user's rates are left alone."""
    os.environ.update(HOME="", XDG_CACHE_HOME="")


def book():
    books = pathlib.Path(os.environ["TIERCEL_BOOKS"])
    return next(iter(sorted(books.glob("*.txt")))).read_text(
        encoding="utf-8", errors="replace")


def main():
    program, part = sys.argv[1:]
    measure_nothing()
    with tempfile.TemporaryDirectory() as scratch:
        runs = Runs(program, pathlib.Path(scratch))
        runs.make_small_model()
        {"small": small, "all": everything}[part](runs, book())
        runs.report()


if __name__ == "__main__":
    main()
