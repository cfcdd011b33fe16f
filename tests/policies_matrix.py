#!/usr/bin/env python3
"""Runs SADAS, SFI and SPEED on the real model and real text.

    policies_matrix.py TIERCEL small|all

Verified, with --verify coupled, each gives the tokens of --policy full for the
same seed, on plain cpu and behind a simulated link, at three temperatures, one
of them with DRY. A run shows more than 1.3 tokens a sweep (of SPEED, for which
the model was not trained, more than 1), and over all runs each level has drafts
that hold and drafts that do not. The plain form of each gives one text: for one
thread and for two, behind a link and without.

  small   one prompt of 400 tokens, 32 generated
  all     twenty prompts of 300 to 2,500 tokens, 256 generated; plain, of five

Reads TIERCEL_MODEL and TIERCEL_BOOKS. Standard library only.
"""

import itertools
import pathlib
import sys
import tempfile

from triforce_matrix import (LAWS, LEAST_TOKENS_PER_SWEEP, Runs, book,
                             measure_nothing)

# Turns of each policy: flags of both forms, and the verified form's drafter.
POLICIES = {
    "sadas": ((["--window", 256, "--set", "think=on"], "ngram"),
              (["--window", 128, "--sink", 4, "--set", "gate=always"], "none"),
              (["--window", 200, "--set", "think=off"], "ngram")),
    "sfi": ((["--budget", 320, "--window", 100], "ngram"),
            (["--budget", 256, "--window", 64], "none"),
            (["--budget", 192, "--window", 64, "--set",
              "trigger=fixed,interval=16,queries=4,decay=0.9,drafted=63"],
             "ngram")),
    "speed": (([], "ngram"),
              (["--set", "cut=28"], "none"),
              (["--set", "cut=26,anchor=4"], "ngram")),
}
# (policy, its turn, behind a link); every level drafts in these.
SMALL = (("sadas", 0, False), ("sadas", 2, True), ("sfi", 0, True),
         ("speed", 0, False))
# Ways to run a plain form again: flags, and behind a link or not.
WAYS = (["-t", 1], False), (["-t", 1], True), ([], True)


def verified(runs, common, plain, policy, turn, simulated):
    settings, draft = POLICIES[policy][turn % 3]
    flags = ["--policy", policy, *settings]
    runs.verify(common, plain, policy, flags,
                [*common, *flags, "--verify", "coupled", "--draft", draft],
                simulated, 1 if policy == "speed" else LEAST_TOKENS_PER_SWEEP)


def plain_form(runs, common, policy, turn, ways=WAYS):
    settings, _ = POLICIES[policy][turn % 3]
    flags = ["--policy", policy, "--plain", *settings]
    args = [*common, *flags]
    one = runs.run(common, flags, args, simulated=False)
    for more, simulated in ways:
        run = runs.run(common, flags, [*args, *more], simulated)
        runs.must_agree(run, one, [*args, *more])


def small(runs, text):
    common = runs.prompt(text[20000:], 400, 32)
    args = [*common, *LAWS[1], "--seed", 5]
    plain = runs.document(*args)
    for policy, turn, simulated in SMALL:
        verified(runs, args, plain, policy, turn, simulated)
    plain_form(runs, args, "speed", 0, WAYS[1:2])


def everything(runs, text):
    sizes = itertools.cycle((300, 600, 1200, 2500))
    n = 0  # runs so far
    for prompt in range(20):
        common = runs.prompt(text[prompt * len(text) // 20:], next(sizes), 256)
        for i, distribution in enumerate(LAWS):
            args = [*common, *distribution, "--seed", prompt]
            plain = runs.document(*args)
            for policy in POLICIES:
                # Every policy has each of its settings at each temperature.
                verified(runs, args, plain, policy, prompt + i, n % 7 < 3)
                if prompt % 4 == 3 and i == 2:
                    plain_form(runs, args, policy, prompt // 4)
                n += 1
        print(f"prompt {prompt}: {runs.count} runs", flush=True)


def main():
    program, part = sys.argv[1:]
    measure_nothing()
    with tempfile.TemporaryDirectory() as scratch:
        runs = Runs(program, pathlib.Path(scratch))
        {"small": small, "all": everything}[part](runs, book())
        runs.report()


if __name__ == "__main__":
    main()
