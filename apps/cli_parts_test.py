#!/usr/bin/env python3
"""The parts of a book, made side by side.

    cli_parts_test.py TIERCEL CHECKPOINTS
"""

import json
import os
import re
import shutil
import signal
import unittest

from cli_testing import (BOOK, CHAT, SMALL, BookCase, run, run_until,
                         write_deeper, write_faulty)


class SideBySideTest(BookCase):
    """Parts that are made at once are those that are made one by one."""

    def setUp(self):
        super().setUp()
        self.path("book.txt", BOOK[:3000])  # five parts

    def streamed(self, at_once, *flags):
        """The document, and the tokens of each text."""
        out = self.succeed(*self.command, "--no-cache", "--stream",
                           "--at-once", str(at_once), *flags, env=self.env)
        *lines, document = map(json.loads, out.splitlines())
        tokens = {}
        for line in lines:
            tokens.setdefault((line["level"], line["number"]),
                              []).append(line["token"])
        return document, tokens

    def test_they_have_the_same_bytes(self):
        drawn = ["--temp", "1", "--seed", "3", "--ignore-eos"]
        triforce = ["--policy", "triforce", "--budget", "128"]
        for flags, counts in ((drawn, (2, 5, 64)), ([], (3,)),
                              ([*drawn, "--draft", "ngram"], (4,)),
                              ([*drawn, *triforce], (4,)),
                              (["--policy", "speed", "--temp", "1"], (4,))):
            alone, tokens = self.streamed(1, *flags)
            self.assertEqual(alone["at_once"], 1)
            for count in counts:
                with self.subTest(flags=flags, count=count):
                    document, beside = self.streamed(count, *flags)
                    leaves = sum(part["level"] == 0
                                 for part in document["parts"])
                    self.assertEqual(document["at_once"], min(count, leaves))
                    self.assertEqual(list(tokens), list(beside))
                    for field in "output", "parts", "prompt_tokens":
                        self.assertEqual(document[field], alone[field])
                    self.assertEqual(tokens, beside)

    def test_they_are_written_in_their_order(self):
        flags = ["--no-cache", "--temp", "2", "--stop", "e"]
        alone, beside = (run(*self.command, *flags, "--at-once", count,
                             env=self.env) for count in ("1", "16"))
        self.assertEqual(alone.returncode, 0, alone.stderr)
        self.assertEqual(alone.stdout, beside.stdout)
        self.assertIn(b" at most, 5 parts at a time, in about ", beside.stderr)
        self.assertNotIn(b"at a time", alone.stderr)

    def test_drafts_of_a_model_come_one_by_one_and_plain_forms_together(self):
        small = self.summary("--no-cache", "--draft", "small", "-md", CHAT)
        self.assertEqual(small["at_once"], 1)
        for flags in (["--policy", "sadas", "--plain"],
                      ["--tensor-parallel", "2"]):
            alone = self.summary("--no-cache", *flags, "--at-once", "1")
            together = self.summary("--no-cache", *flags)
            self.assertGreater(together["at_once"], 1, flags)
            self.assertEqual(together["parts"], alone["parts"])
            self.assertEqual(together["output"], alone["output"])

    def test_the_plan_chooses_their_number(self):
        """Behind a link each part holds pages that others then lack."""
        model = self.path("deeper.gguf")
        write_deeper(model, 3)
        link = "link=1GB/s"
        flags = ["-m", model, "-c", "700"]
        plan = run("plan", *flags, "--simulate", f"device=1kB,{link}", "--json")
        least = json.loads(plan.stdout)["min_device_bytes"]
        summary = ["summarize", self.book, *flags, "-n", "8", "--no-cache"]
        alone = self.document(*summary, "--at-once", "1", env=self.env)
        counts = []
        for times in (1.01, 1.3, 8):
            made = run(*summary, "--json", "--simulate",
                       f"device={int(least * times)},{link}", env=self.env)
            self.assertEqual(made.returncode, 0, made.stderr)
            document = json.loads(made.stdout)
            self.assertEqual(document["parts"], alone["parts"])
            said = re.search(rb", (\d+) parts? at a time( as memory serves "
                             rb"best)?[,\n]", made.stderr)
            self.assertEqual(int(said[1]), document["at_once"])
            counts.append(document["at_once"])
            leaves = sum(part["level"] == 0 for part in document["parts"])
            self.assertEqual(said[2] is not None, counts[-1] < leaves)
        self.assertEqual(counts, sorted(counts))
        self.assertLess(counts[0], counts[-1])
        self.assertEqual(counts[-1], leaves)

    def test_what_is_predicted_counts_them(self):
        alone, beside = (self.summary("--no-cache", "--at-once", count)
                         ["predicted"] for count in ("1", "8"))
        self.assertLess(beside["seconds"] - beside["ttft_s"],
                        alone["seconds"] - alone["ttft_s"])

    def test_one_that_fails_leaves_the_others(self):
        (token,) = json.loads(self.succeed("tokenize", "-m", CHAT, "-p", "Z",
                                           "--json"))["tokens"]
        model = self.path("faulty.gguf")
        write_faulty(model, token)
        text = BOOK[:1000] + b"Z" + BOOK[1000:3000]
        command = ["summarize", self.path("book.txt", text), "-m", model,
                   *SMALL[2:]]
        for count, kept in (("5", 4), ("1", 1)):
            shutil.rmtree(self.readings, ignore_errors=True)
            result = run(*command, "--at-once", count, "--json", env=self.env)
            self.assertEqual(result.returncode, 1)
            self.assertEqual(json.loads(result.stdout)["error"]["code"],
                             "non_finite")
            self.assertEqual(self.kept(), kept)

    def test_some_that_were_stopped_are_made_one_by_one(self):
        whole = self.summary("--no-cache", "--at-once", "1")
        for number in (signal.SIGINT, signal.SIGKILL):
            for _ in range(20):
                process, _, said = run_until(
                    lambda: os.path.isdir(self.readings) and self.kept() > 0,
                    number, *self.command, "--at-once", "4", env=self.env)
                if process.returncode != 0:
                    break
                shutil.rmtree(self.readings)
            before = self.kept()
            self.assertGreater(before, 0)
            if number == signal.SIGINT:
                self.assertEqual(process.returncode, 130)
                self.assertIn(b"the same command goes on behind %d part"
                              % before, said)
            again = self.summary("--at-once", "1")
            for field in "output", "parts":
                self.assertEqual(again[field], whole[field])
            self.assertEqual(again["resumed"]["nodes"], before)
            shutil.rmtree(self.readings)


if __name__ == "__main__":
    unittest.main(argv=["cli_parts_test"])
