#!/usr/bin/env python3
"""Random texts: every policy, sampler and place gives the text that it must.

    text_trial.py TIERCEL [COUNT [FIRST]]    default: 40 texts, from seed 0 on

Each seed draws a model (tiny random ones, every fifth time the real one), a
prompt (a book's, words again and again, several scripts, any bytes that are
UTF-8, ids), a sampler, a policy with settings of its own, and a place (threads,
ranks, a small device behind a link). With --verify coupled the tokens are those
of --policy full in place with one thread; a plain form's are its own ones
there. The pieces of --stream are the text, and no text ends within a character.

A device that is too small may refuse one text in five. Over all texts drafts of
each policy hold and are rejected: otherwise the comparison shows little. A
failure names its seed and both commands. Reads TIERCEL_MODEL and TIERCEL_BOOKS.
Standard library only.
"""

import collections
import itertools
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "bytes"))
from runs import book, measure_nothing

ROOT = pathlib.Path(__file__).resolve().parent.parent
CHECKPOINTS = ROOT / "tests/golden/checkpoints"
POLICIES = ("full", "triforce", "sfi", "sadas", "speed")
HAS_PLAIN = ("sfi", "sadas", "speed")
# Prompts fill pages of 128 tokens, or a part of one.
SIZES = (1, 2, 17, 127, 128, 129, 300, 500)
# budget, chunk, sink, window
VIEWS = ((64, 8, 4, 16), (128, 8, 8, 32), (192, 16, 16, 100), (256, 32, 32, 64),
         (384, 128, 128, 16))
TOKENS_OF_IDS = 67  # tiny models without a vocabulary have at least as many
SCRIPTS = ("the quick brown fox ", "Ελληνικά κείμενα ", "мир и труд ",
           "日本語の文章。", "العربية ", "🙂👩‍👩‍👧 ", "e\u0301a\u0308 ", "\t\n\r\n  ",
           "\u202eabc\u202c ", "\x1b[31mred\x1b[0m ", "<|im_end|>\n", "0.1e-5, ")


class Trial:
    """A random text, whose flags follow from its seed."""

    def __init__(self, seed, pages, scratch):
        self.draws = random.Random(seed)
        self.pages = pages
        self.scratch = scratch
        self.real = seed % 5 == 4
        self.draw_prompt()
        self.draw_sampler()
        self.draw_policy(POLICIES[seed // 5 % len(POLICIES)])

    def some(self, *choices):
        return self.draws.choice(choices)

    def draw_prompt(self):
        size = self.some(*SIZES)
        path = self.scratch / "prompt"
        if self.real or self.draws.random() < 0.5:
            path.write_text(self.text(size), encoding="utf-8", newline="")
            prompt = ["-f", path]
            model = (os.environ["TIERCEL_MODEL"] if self.real else
                     CHECKPOINTS / "llama_chat.gguf")
        else:
            ids = [self.draws.randrange(TOKENS_OF_IDS) for _ in range(size)]
            if self.draws.random() < 0.5:
                period = self.some(3, 40)
                ids = [ids[i % period] for i in range(size)]
            path.write_text(" ".join(map(str, ids)))
            prompt = ["--tokens", path]
            model = CHECKPOINTS / self.some(
                "llama_gqa.gguf", "llama_mha.gguf", "llama_mqa.gguf",
                "llama_bias-00001-of-00004.gguf", "llama_rope_linear", "qwen2",
                "qwen3.gguf")
        self.has_vocabulary = prompt[0] == "-f"
        # Room for the prompt by at most four bytes a token; ids need no more.
        self.context = 2600 if self.has_vocabulary else 1024
        self.command = ["generate", "-m", model, *prompt, "-c", self.context]

    def text(self, size):
        """About `size` tokens of the real model, at least a character."""
        kind = self.some("book", "words", "scripts", "any")
        if kind == "book":
            begin = self.draws.randrange(len(self.pages) - 4 * size)
            return self.pages[begin:begin + 4 * size].strip() or "a"
        if kind == "words":
            return "".join(self.some("so ", "it ", "goes, ", "on\n")
                           for _ in range(size))
        if kind == "scripts":
            text = "".join(self.some(*SCRIPTS) for _ in range(size // 8 + 1))
            return text[:size]
        # The real vocabulary lacks some control characters, and all bytes from
        # 0xf1 on.
        points = (self.draws.choice((0x80, 0x800, 0xd800, 0x40000))
                  for _ in range(size // 3 + 1))
        return "".join(chr(self.draws.randrange(32, most)) for most in points
                       ).encode("utf-8", "ignore").decode() or "a"

    def draw_sampler(self):
        flags = ["-n", self.some(1, 2, 20, 48), "--seed",
                 self.draws.randrange(2**32)]
        temperature = self.some(0, 0.4, 1, 2)
        flags += ["--temp", temperature]
        if temperature > 0:
            flags += self.some([], ["--top-k", 5], ["--top-p", 0.9],
                               ["--min-p", 0.05],
                               ["--top-k", 40, "--top-p", 0.8, "--min-p", 0.01])
        flags += self.some([], ["--repeat-penalty", 1.3], ["--ignore-eos"])
        if self.draws.random() < 0.3:
            flags += ["--dry-multiplier", 0.8, "--dry-allowed-length",
                      self.some(1, 2)]
            if self.has_vocabulary:
                flags += self.some([], ["--dry-sequence-breaker", "e"])
        if self.has_vocabulary and self.draws.random() < 0.3:
            flags += ["--stop", self.some("e", "\n", ". ", "the")]
        # A block of q8_0 has 32 numbers, more than a head of a tiny model.
        flags += self.some([], ["-ctk", "q8_0" if self.real else "f32",
                                "-ctv", "f16"],
                           ["-ctk", "bf16", "-ctv", "f32"],
                           ["--compute", "f32"])
        self.command += flags

    def draw_policy(self, policy):
        self.policy = policy
        self.plain = policy in HAS_PLAIN and self.draws.random() < 0.4
        flags = ["--policy", policy]
        budget, chunk, sink, window = self.some(*VIEWS)
        if policy == "triforce":
            flags += ["--sink", sink, "--window", window, "--chunk",
                      chunk, "--budget", budget]
        elif policy == "sfi":
            flags += ["--sink", sink, "--window", window, "--chunk",
                      self.some(1, 2, 32), "--budget", budget, "--set",
                      self.some("trigger=fixed,interval=5",
                                "trigger=fixed,decay=0.9,queries=4",
                                "trigger=fixed,interval=1",
                                *(["trigger=sentence",
                                   "trigger=random,interval=8,gap=2"]
                                  if self.has_vocabulary else []))]
        elif policy == "sadas":
            flags += ["--window", window, "--sink", self.some(0, sink), "--set",
                      self.some("think=on", "gate=always",
                                *(["think=off"] if self.has_vocabulary else []),
                                # Forces tokens that `full` does not.
                                *(["think=on,most=7"] if self.plain else []))]
        elif policy == "speed":
            cut = self.some(20, 28) if self.real else 1
            flags += ["--set", f"cut={cut}" + self.some("", ",anchor=4")]
        self.view = flags
        self.form = ["--plain"] if self.plain else []
        self.verified = [] if self.plain else ["--verify", "coupled"]
        if not self.plain:
            draft = self.some(
                *(("ngram", "self") if policy == "full" else
                  ("none", "ngram", "self") if policy == "triforce" else
                  ("none", "ngram")))
            self.form = ["--draft", draft]
            if draft != "none":
                self.verified += ["--gamma1", self.some(1, 3, 8, "auto")]
            if policy != "full":
                self.verified += ["--gamma2", self.some(1, 5, 16, 31, "auto")]

    def reference(self):
        kind = ([*self.view, *self.form] if self.plain else
                ["--policy", "full"])
        return [*self.command, *kind, "-t", 1, "--device", "cpu"]

    def place(self, least_device):
        kind = self.some("threads", "device", "device", "ranks")
        if kind == "ranks" and self.real:
            return ["--tensor-parallel", self.some(2, 3)]
        if kind == "device":
            least = least_device([*self.view, *self.form])
            more = self.some(0, 0, 20, 2000)
            return ["--simulate", f"device={least + more}kB,link=2GB/s"]
        return ["-t", 2]

    def other(self, least_device):
        return [*self.command, *self.view, *self.form, *self.verified,
                *self.place(least_device)]


class Runs:
    def __init__(self, program):
        self.program = program
        self.refused = collections.Counter()
        self.drafts = collections.defaultdict(lambda: [0, 0])

    def lines(self, args, *more):
        done = subprocess.run(
            [self.program, *map(str, args), "--json", "--no-progress", *more],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, timeout=600)
        said = f"exit {done.returncode} of {args}: {done.stderr[-2000:]!r}"
        assert done.returncode in (0, 4), said + done.stdout.decode()
        return [json.loads(line) for line in
                (done.stdout.splitlines() if more else [done.stdout])]

    def least_device(self, trial):
        def least(view):
            plan = self.lines(["plan", *trial.command[1:3], "-c", trial.context,
                               "--simulate", "device=1kB,link=2GB/s",
                               *only(trial.command, "-ctk", "-ctv",
                                     "--compute"),
                               *view])[0]
            return -(-plan["min_device_bytes"] // 1000)
        return least

    def check(self, seed, trial):
        reference = self.lines(trial.reference())[0]
        if "error" in reference:
            self.refused[reference["error"]["code"]] += 1
            return
        args = trial.other(self.least_device(trial))
        *pieces, run = self.lines(args, "--stream")
        if "error" in run:
            self.refused[run["error"]["code"]] += 1
            return
        where = f"seed {seed}: {args}\n against {trial.reference()}\n"
        ours, theirs = run["output"][0], reference["output"][0]
        assert ours["tokens"] == theirs["tokens"], (
            where, ours["tokens"], theirs["tokens"])
        assert ours["text"] == theirs["text"], (where, ours, theirs)
        assert ours["finish_reason"] == theirs["finish_reason"], (where, ours)
        if trial.has_vocabulary:
            said = "".join(piece["text"] for piece in pieces)
            assert said == ours["text"], (where, said, ours["text"])
        assert [piece["token"] for piece in pieces] == ours["tokens"], where
        for level in run.get("speculation", {}).get("levels", ()):
            held = self.drafts[trial.policy]
            held[0] += level["accepted"]
            held[1] += level.get("checked", level["drafted"]) - level["accepted"]


def only(args, *names):
    """Selects the flags of these names, each with its value."""
    pairs = itertools.pairwise(args)
    return [word for pair in pairs if pair[0] in names for word in pair]


def main():
    program = os.path.abspath(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    measure_nothing()
    pages = book()
    runs = Runs(program)
    with tempfile.TemporaryDirectory() as scratch:
        for seed in range(first, first + count):
            runs.check(seed, Trial(seed, pages, pathlib.Path(scratch)))
    for policy, (held, refused) in sorted(runs.drafts.items()):
        print(f"{policy}: {held} drafts held, {refused} refused")
    print(f"{count} texts as they must be; not run: {dict(runs.refused)}")
    if count >= 40:
        for policy in POLICIES:
            held, refused = runs.drafts[policy]
            # In a few texts all drafts of one policy may hold by chance.
            assert held > 0 and (refused > 0 or count < 200), runs.drafts
        assert sum(runs.refused.values()) <= count // 5, runs.refused


if __name__ == "__main__":
    main()
