"""Checks summaries by the real model with default flags: it reads sections, and
keeps the sentences that their text supports.

    cli_reading_test.py TIERCEL CHECKPOINTS

Reads TIERCEL_MODEL (SmolLM2) and policy.txt in TIERCEL_BOOKS. Without them it is
skipped, but fails where CI is set.
"""

import collections
import json
import os
import re
import unittest

from cli_testing import environment, lend_rates, run, Case, Terminal

import grounding

MODEL = os.environ.get("TIERCEL_MODEL", "")
TRIES_ALL = "TIERCEL_ALL_SHAPES" in os.environ  # full.sh
BOOK = os.path.join(os.environ.get("TIERCEL_BOOKS", ""), "policy.txt")


@unittest.skipUnless("CI" in os.environ or
                     (os.path.exists(MODEL) and os.path.exists(BOOK)),
                     "TIERCEL_MODEL or TIERCEL_BOOKS is not set")
class ReadingTest(Case):
    def setUp(self):
        super().setUp()
        with open(BOOK, "rb") as file:
            self.book = file.read()
        cache = self.path("cache")
        self.env = environment(TIERCEL_MODEL=MODEL, XDG_CACHE_HOME=cache)
        lend_rates(self, os.path.join(cache, "tiercel"))

    def part(self, begin, length):
        return self.path("part.txt", self.book[begin:begin + length])

    def summary(self, path, *flags):
        return self.document("summarize", path, "-t", "2", *flags, env=self.env)

    def test_a_summary_is_of_its_text(self):
        """If the model reads this text at once, with a repeat penalty of 1.15,
        only one sentence in five has its words from the text."""
        counts = []
        for begin in (60000, 100000) if TRIES_ALL else (60000,):
            path = self.part(begin, 6000 if TRIES_ALL else 4000)
            document = self.summary(path, "--no-cache")
            with open(path, encoding="utf-8", errors="replace") as file:
                text = grounding.Text(file.read())
            counts.append(grounding.score(document["output"][0]["text"], text))
            leaves = [part for part in document["parts"] if part["level"] == 0]
            self.assertGreater(len(leaves), 1)
            for leaf in leaves:
                self.assertLessEqual(leaf["end"] - leaf["begin"], 800)
        count = grounding.total(counts)
        self.assertGreaterEqual(count["sentences"], 3)
        self.assertGreater(2 * count["from_text"], count["sentences"], count)
        self.assertGreater(2 * count["in_one_place"], count["sentences"], count)
        self.assertLessEqual(5 * count["repeated"], count["sentences"], count)
        self.assertGreaterEqual(4 * count["names_found"], 3 * count["names"],
                                count)

    def test_it_is_the_same_under_every_policy(self):
        path = self.part(60000, 3500 if TRIES_ALL else 2000)
        flags = ["--no-cache", *([] if TRIES_ALL else ["-n", "32"])]
        plain = self.summary(path, *flags)["output"]
        self.assertGreater(len(plain[0]["tokens"]), 20)
        for policy in (("triforce", "sfi", "sadas", "speed") if TRIES_ALL else
                       ("speed",)):
            view = ["--window", "128"] if policy != "speed" else []
            run_ = self.summary(path, *flags, "--policy", policy, *view,
                                "--verify", "coupled", "--budget", "256")
            self.assertEqual(run_["output"], plain, policy)
            self.assertGreater(run_["speculation"]["levels"][-1]["accepted"], 0)

    def test_sections_side_by_side_are_those_one_by_one(self):
        """Also where a long text is read in parts of the context's length."""
        sections = (3800, ["-n", "8"])
        parts = (1200, ["-c", "300", "-n", "8", "--temp", "1"])
        for length, flags in (sections, parts) if TRIES_ALL else (sections,):
            path = self.part(60000, length)
            made = [self.summary(path, "--no-cache", "--at-once", count, *flags)
                    for count in ("1", "2")]
            self.assertEqual([run_["at_once"] for run_ in made], [1, 2])
            for field in "output", "parts", "prompt_tokens":
                self.assertEqual(made[0][field], made[1][field])

    def test_what_was_made_is_not_made_again(self):
        path = self.part(60000, 3500)
        once, twice = (self.summary(path) for _ in range(2))
        self.assertEqual(once["output"], twice["output"])
        made = len([part for part in once["parts"] if part["level"] == 0])
        self.assertEqual(once["resumed"]["nodes"], 0)
        self.assertEqual(twice["resumed"]["nodes"], made)
        self.assertEqual(twice["prompt_tokens"], 0)

    def test_where_a_context_is_named_it_is_read_at_once(self):
        path = self.part(60000, 3500)
        named = [["-c", "4k"], ["--instruction", "Name the files in it."]]
        if TRIES_ALL:
            named.append(["--draft", "ngram", "--verify-against", "full"])
        for flags in named:
            document = self.summary(path, "-n", "4", "--no-cache", *flags)
            self.assertEqual(len(document["parts"]), 1, flags)
            self.assertGreater(document["prompt_tokens"],
                               document["parts"][0]["end"])
        result = run("summarize", path, "--no-cache", "-n", "8", env=self.env)
        self.assertRegex(result.stderr, rb"at most 800 at once: 1 part")
        advice = re.search(rb"it could be read at once; (-c \d+)\n",
                           result.stderr)[1].decode().split()
        at_once = self.summary(path, "-n", "4", "--no-cache", *advice)
        self.assertEqual(len(at_once["parts"]), 1)

    def test_where_n_ends_a_section_it_is_said(self):
        """A cut counts even if the sentence that was cut is left out."""
        path = self.part(60000, 3500)
        left_out = 0
        for answer in (32, 48, 64) if TRIES_ALL else (32,):
            flags = ["-n", str(answer), "--stream"]
            out = self.succeed("summarize", path, "-t", "2", *flags, "--json",
                               env=self.env)
            *lines, document = map(json.loads, out.splitlines())
            said = collections.Counter(line["number"] for line in lines)
            cut = sum(count == answer for count in said.values())
            self.assertGreater(cut, 0)
            again = self.summary(path, "-n", str(answer))
            self.assertGreater(again["resumed"]["nodes"], 0)
            for made in (document, again):
                self.assertIn("the summaries of %d part%s were cut at %d "
                              "tokens; -n N for more" %
                              (cut, "s" * (cut > 1), answer), made["warnings"])
                self.assertEqual(made["output"][0]["finish_reason"], "length")
            left_out += len(document["output"][0]["tokens"]) < answer * cut
        self.assertGreater(left_out, 0)

    def test_about_so_many_words(self):
        path = self.part(60000, 6000 if TRIES_ALL else 2000)
        lengths = ((40, 1), (80, 2)) if TRIES_ALL else ((40, 1),)
        for words, paragraphs in lengths:
            text = self.summary(path, "--words", str(words)
                                )["output"][0]["text"]
            self.assertEqual(len(text.split("\n\n")), paragraphs)

    def test_questions_come_behind_it(self):
        terminal = Terminal(self, "summarize", self.part(61000, 2500), "-n",
                            "32", "--no-progress", **{
                                "TIERCEL_MODEL": MODEL,
                                "XDG_CACHE_HOME": self.env["XDG_CACHE_HOME"]})
        summary = terminal.until(rb"to summarize[^\n]*\n[^\n]*\n(.*?)\r\n\[")[1]
        terminal.until(rb"/help lists")
        terminal.prompt()
        terminal.type(b"What is it about?\r")
        read, cached = terminal.note()
        self.assertGreater(read, 500)
        self.assertGreater(cached, read - 40)  # the text was read before
        terminal.prompt()
        notes = self.path("talk.txt")
        terminal.type(b"/save " + notes.encode() + b"\r")
        terminal.until(rb"written")
        terminal.prompt()  # a Ctrl-D before it would be lost
        terminal.type(b"\x04")
        self.assertEqual(terminal.end(), 0)
        with open(notes, "rb") as file:
            self.assertIn(summary.split(b".")[0], file.read())


if __name__ == "__main__":
    unittest.main(argv=["cli_reading_test"])
