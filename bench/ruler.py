#!/usr/bin/env python3
"""Long-context tasks of any length, under policies, beside `full`.

  bench/ruler.py --lengths 2048x10,8192x4   ten samples a task of 2,048 tokens,
                                            and four of 8,192
  bench/ruler.py --tasks qa1,records        these tasks alone
  bench/ruler.py --text BOOK                another haystack; any text
  bench/ruler.py --policy sfi --policy NAME="FLAGS"
                                            these beside full: usual ones by
                                            their names, and others
  bench/ruler.py --answers FILE             keeps the answers there, and makes
                                            only those that are missing
  bench/ruler.py --answers FILE --made      makes none, and leaves out tasks of
                                            which one is missing
  bench/ruler.py --save                     also writes
                                            bench/results/<date>-<cpu>-ruler.md

The 11 synthetic tasks of RULER (eight needles, tracking, common and frequent
words), BABILong's qa1 to qa5, InfiniteBench's pass key, number string and
key-value pairs, and records scattered in prose. A task is made for a length in
tokens of the model at hand: the haystack is as long as the prompt and the new
tokens of every sample allow. The same seed gives the same samples. The prompt
is the checkpoint's chat template and, behind it, the beginning of the answer.

A score is the mean over samples of the share of the references that the answer
has (qa: its first sentence; records: F1 of the fields). An answer counts as
right if its score is 1. Beside each policy stand the answers that are right
under full alone, and under the policy alone, and the p of McNemar's exact test:
the probability of so uneven a split, or a more uneven one, if the two were
equally good; and the share of answers that are the same, token for token.

Decoding is greedy, so verified policies give full's own bytes. They are left
out unless --policy names them.

Standard library only.
"""

import argparse
import hashlib
import json
import math
import os
import pathlib
import re
import shlex
import statistics
import subprocess
import sys
import tempfile

import gathering_tasks
import haystack
import pages
import retrieval_tasks
import small_world
from program import MODEL

RIGHT = 1 - 1e-9
FULL = "full"


def policy_of(flags):
    """The fields of a tiercel_policy by the flags of the command line."""
    parser = argparse.ArgumentParser(prog="--policy", add_help=False,
                                     allow_abbrev=False)
    parser.add_argument("--policy", dest="name", default=FULL)
    parser.add_argument("--plain", dest="form", action="store_const",
                        const="plain")
    parser.add_argument("--set", dest="settings")
    for flag in ("draft", "verify"):
        parser.add_argument(f"--{flag}")
    for flag in ("budget", "chunk", "sink", "window"):
        parser.add_argument(f"--{flag}", type=int)
    fields = vars(parser.parse_args(shlex.split(flags)))
    return {key: value for key, value in fields.items() if value is not None}


def usual_policies(length):
    """A setting of each policy that reads less: {name: flags}. The views have a
    quarter of the text."""
    part = length // 8
    sfi = f"--policy sfi --plain --budget {part} --window {part}"
    return {
        "sfi": sfi,
        "sfi, attention": f"{sfi} --set "
                          "prior=0,nms=0,exclusive=0,decay=0.9,beside=8",
        "window": f"--policy sadas --plain --window {2 * part} --sink 4 "
                  "--set gate=always",
        "speed": "--policy speed --plain",
    }


def chosen_policies(length, wanted):
    """{name: flags} of full and of those wanted, NAME or NAME=FLAGS; of all
    usual ones if none is."""
    usual = usual_policies(length)
    chosen = {FULL: "--policy full", **({} if wanted else usual)}
    for one in wanted:
        name, given, flags = one.partition("=")
        if not given and name not in usual:
            sys.exit(f"--policy: got {name}, needs NAME=FLAGS or one of "
                     f"{'; '.join(usual)}")
        chosen[name] = flags if given else usual[name]
    return chosen


def all_tasks(length, records):
    *three, record = gathering_tasks.tasks(length, records)
    return [*retrieval_tasks.NEEDLES, *three, *small_world.TASKS,
            *retrieval_tasks.INFINITE, record]


class Answers:
    """The program that answers, and the file of the answers it gave, if any.
    An answer is {"text": ..., "tokens": [...]}."""

    def __init__(self, program, model, cache, threads, kept=None):
        self.model = pathlib.Path(model).name
        self.kept = kept
        self.known = {}
        if kept and kept.exists():
            for line in kept.read_text(encoding="utf-8").splitlines():
                self.known.update(json.loads(line))
        self.process = subprocess.Popen(
            [program, model, cache, f"threads={threads}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
        self.about = self._reply()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def _reply(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit("the program ended; it said why above")
        reply = json.loads(line)
        if "error" in reply:
            sys.exit(reply["error"])
        return reply

    def _ask(self, sample, most, policies):
        request = {"message": sample.message, "prefix": sample.prefix,
                   "most": most, "policies": policies}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self._reply()

    def count(self, sample):
        """The tokens of the prompt."""
        return self._ask(sample, 0, [])["prompt_tokens"]

    def _keys(self, sample, most, policies):
        return [hashlib.sha256(json.dumps(
            [self.model, sample.message, sample.prefix, most, policy],
            sort_keys=True).encode()).hexdigest() for policy in policies]

    def made(self, sample, most, policies):
        """True if all these answers are there."""
        return all(key in self.known
                   for key in self._keys(sample, most, policies))

    def answer(self, sample, most, policies):
        """The answers under policies, of `most` tokens at most."""
        keys = self._keys(sample, most, policies)
        missing = {key: policy for key, policy in zip(keys, policies,
                                                      strict=True)
                   if key not in self.known}
        if missing:
            made = self._ask(sample, most, list(missing.values()))["answers"]
            new = dict(zip(missing, made, strict=True))
            self.known.update(new)
            if self.kept:
                with self.kept.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(new) + "\n")
        return [self.known[key] for key in keys]


def samples_of(task, length, count, seed, text, answers):
    """Samples of one size, the greatest with which each fits; none if the
    task needs more tokens."""
    def made(size):
        return [task.sample(size, seed, i, count, text) for i in range(count)]

    size = haystack.greatest(
        lambda size: all(answers.count(sample) + task.new_tokens <= length
                         for sample in made(size)), task.least)
    return [] if size is None else made(size)


def mcnemar(lost, gained):
    """The two-sided p of McNemar's exact test, by the numbers of pairs that
    differ one way and the other."""
    pairs = lost + gained
    tail = sum(math.comb(pairs, k) for k in range(min(lost, gained) + 1))
    return min(1.0, 2 * tail / 2**pairs)


class Outcomes:
    """The scores under full and under a policy of the same samples, and if the
    answers are the same."""

    def __init__(self, full=(), policy=(), same=()):
        self.full, self.policy, self.same = list(full), list(policy), list(same)

    def __add__(self, other):
        return Outcomes(self.full + other.full, self.policy + other.policy,
                        self.same + other.same)

    def discordant(self):
        pairs = list(zip(self.full, self.policy, strict=True))
        return (sum(full >= RIGHT > policy for full, policy in pairs),
                sum(policy >= RIGHT > full for full, policy in pairs))

    def cell(self):
        lost, gained = self.discordant()
        return (f"{100 * statistics.mean(self.policy):.1f}; "
                f"-{lost} +{gained}, p {mcnemar(lost, gained):.2g}; "
                f"{100 * statistics.mean(self.same):.0f} %")


def outcomes_of(task, samples, answers, policies):
    """Returns {policy: Outcomes}; full is the first of `policies`, {name:
    fields}."""
    found = {name: Outcomes() for name in policies}
    for sample in samples:
        given = answers.answer(sample, task.new_tokens,
                               list(policies.values()))
        scores = [task.score(sample, answer["text"]) for answer in given]
        for name, score, answer in zip(policies, scores, given, strict=True):
            found[name] += Outcomes(
                [scores[0]], [score],
                [answer["tokens"] == given[0]["tokens"]])
    return found


def table(results, others):
    """The lines of a table: results is {(task, group): {policy: Outcomes}}, and
    `others` are the policies beside full."""
    def row(name, chosen):
        sums = {policy: sum((results[task][policy] for task in chosen),
                            Outcomes()) for policy in (FULL, *others)}
        full = sums[FULL].full
        return [name, str(len(full)), f"{100 * statistics.mean(full):.1f}",
                *(sums[policy].cell() for policy in others)]

    rows = [row(task[0], [task]) for task in results]
    groups = list(dict.fromkeys(group for _, group in results))
    for group in groups:
        chosen = [task for task in results if task[1] == group]
        if len(chosen) > 1:
            rows.append(row(f"**{group}**", chosen))
    if len(groups) > 1:
        rows.append(row("**all**", list(results)))
    return pages.table(["task", "samples", FULL, *others], rows)


def together(all_results):
    """The results of several lengths as one."""
    summed = {}
    for results in all_results:
        for task, found in results.items():
            for policy, outcomes in found.items():
                of_task = summed.setdefault(task, {})
                of_task[policy] = of_task.get(policy, Outcomes()) + outcomes
    return summed


def results_of(tasks, length, count, args, text, answers, policies):
    """Returns {(task, group): {policy: Outcomes}}, and the names of tasks that
    need more tokens."""
    results, longer = {}, []
    for task in tasks:
        samples = samples_of(task, length, count, args.seed, text, answers)
        if not samples:
            longer.append(task.name)
        elif not args.made or all(
                answers.made(sample, task.new_tokens, policies.values())
                for sample in samples):
            found = outcomes_of(task, samples, answers, policies)
            results[task.name, task.group] = found
            print(length, task.name, *(f"{name}: {each.cell()}" for name, each
                                       in found.items()), sep="  ",
                  file=sys.stderr, flush=True)
    return results, longer


def measure(args, text, answers, say):
    every = []
    for length, count in args.lengths:
        if length > answers.about["context"]:
            sys.exit(f"--lengths: got {length}, needs at most the model's "
                     f"context of {answers.about['context']} tokens")
        flags = chosen_policies(length, args.policy)
        policies = {name: policy_of(each) for name, each in flags.items()}
        tasks = [task for task in all_tasks(length, args.records)
                 if not args.tasks or task.name in args.tasks]
        results, longer = results_of(tasks, length, count, args, text, answers,
                                     policies)
        if not results:
            sys.exit(f"--lengths: no task has samples of {length} tokens")
        every.append(results)
        others = list(flags)[1:]
        for line in ("", f"## {length:,} tokens", "", *table(results, others),
                     ""):
            say(line)
        if longer:
            say(f"- left out, as they need more tokens: {', '.join(longer)}")
        for name in others:
            exact = "" if "form" in policies[name] else ", exact"
            say(f"- {name}: `{flags[name]}`{exact}")
    if len(every) > 1:
        for line in ("", "## All lengths", "",
                     *table(together(every), others)):
            say(line)


def lengths_of(text):
    """Returns [(length, samples)] of "2048x10,4096x5"."""
    if not re.fullmatch(r"[1-9]\d*x[1-9]\d*(,[1-9]\d*x[1-9]\d*)*", text):
        raise argparse.ArgumentTypeError(f"got {text}, needs "
                                         "LENGTHxSAMPLES,...")
    return [tuple(map(int, one.split("x"))) for one in text.split(",")]


def task_names(text):
    names = text.split(",")
    known = [task.name for task in all_tasks(1, 1)]
    for name in names:
        if name not in known:
            raise argparse.ArgumentTypeError(
                f"got {name}, needs some of {', '.join(known)}")
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--lengths", type=lengths_of, default="2048x10",
                        metavar="LENGTHxSAMPLES,...")
    parser.add_argument("--tasks", type=task_names, metavar="NAME,...")
    parser.add_argument("--text", type=pathlib.Path)
    parser.add_argument("--policy", action="append", default=[],
                        metavar="NAME[=FLAGS]")
    parser.add_argument("--records", type=int, default=4,
                        help="records of a text (default 4)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--answers", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--made", action="store_true")
    parser.add_argument("--program",
                        default=pages.ROOT / "build/cpu/bench/answers")
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    if args.records < 1 or args.records > len(haystack.DEPTHS):
        parser.error(f"--records: got {args.records}, needs 1 to "
                     f"{len(haystack.DEPTHS)}")
    if args.made and not args.answers:
        parser.error("--made: needs --answers FILE")
    model = os.environ.get("TIERCEL_MODEL") or MODEL
    books = pathlib.Path(os.environ.get("TIERCEL_BOOKS")
                         or MODEL.parent.parent / "books")
    path = args.text or books / "policy.txt"
    try:
        text = haystack.Text(path.read_text(encoding="utf-8",
                                            errors="replace"))
    except (OSError, ValueError) as error:
        sys.exit(f"{path}: {error}; needs a text")
    say = pages.Lines()
    with tempfile.TemporaryDirectory() as cache, Answers(
            args.program, model, cache, args.threads, args.answers) as answers:
        say("# Long-context tasks")
        say()
        say(f"{pages.cpu_name()}, {pages.today()}, tiercel "
            f"{answers.about['version']}. {answers.model}, {path.name}, seed "
            f"{args.seed}. A cell: score; answers right under full alone (-) "
            "and under the policy alone (+), McNemar's p; answers that are the "
            "same. Greedy, so verified policies give the bytes of full "
            "(exact).")
        measure(args, text, answers, say)
    if args.save:
        print(pages.save(say.said, {}, "ruler"))


if __name__ == "__main__":
    main()
