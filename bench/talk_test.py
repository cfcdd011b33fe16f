#!/usr/bin/env python3
"""Tests of bench/talk: each person is answered, and what is counted adds up.

  talk_test.py TALK CHECKPOINTS
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

TALK, CHECKPOINTS = sys.argv[1], pathlib.Path(sys.argv[2])


def talk(*settings):
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as book:
        book.write("One day a fox and a hen met in the far hills. " * 20)
        book.flush()
        return subprocess.run([TALK, CHECKPOINTS / "llama_chat.gguf", book.name,
                               *settings], capture_output=True, text=True,
                              check=False)


class TalkTest(unittest.TestCase):
    def check(self, *settings):
        run = talk("people=3", "tokens=8", "text=100", "seconds=0.5",
                   "threads=2", *settings)
        self.assertEqual(run.returncode, 0, run.stderr)
        document = json.loads(run.stdout)
        self.assertEqual(document["text_tokens"], 100)
        answers = document["answers"]
        self.assertEqual(len(answers), 3)
        self.assertTrue(all(count > 0 for count in answers), answers)
        # Each answer has a first token, and one more answer may have begun.
        firsts = document["first_token_ms"]["count"]
        self.assertGreaterEqual(firsts, sum(answers))
        self.assertLessEqual(firsts, sum(answers) + 3)
        gaps = document["gap_ms"]
        self.assertGreaterEqual(gaps["count"], 7 * sum(answers))
        self.assertLessEqual(gaps["count"], 7 * (sum(answers) + 3))
        self.assertLessEqual(gaps["p50"], gaps["p99"])
        self.assertLessEqual(gaps["p99"], gaps["max"])
        self.assertEqual(len(document["resident_mib"]), 10)

    def test_people_are_answered_in_turn(self):
        self.check()

    def test_behind_a_link(self):
        self.check("device=14e6", "link=1e8", "context=512")

    def test_settings_are_known(self):
        run = talk("pepole=3")
        self.assertEqual(run.returncode, 2)
        self.assertIn("pepole=3: need one of", run.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
