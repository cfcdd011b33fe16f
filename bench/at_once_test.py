"""Tests of at_once.py.

    at_once_test.py TIERCEL CHECKPOINTS
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import at_once

TIERCEL, CHECKPOINTS = sys.argv[1:3]


def document(*texts, at_once=None):
    """A document of texts, each its number of tokens and of tokens a second."""
    return {"output": [{"tokens": [0] * count, "decode_tok_s": rate,
                        "tbt_ms": {"p50": 1000 / rate},
                        "at_once": at_once or len(texts)}
                       for count, rate in texts]}


class AtOnceTest(unittest.TestCase):
    def test_a_rate_is_that_of_the_longest_time(self):
        self.assertEqual(at_once.rate_of(document((11, 5))), 5)
        self.assertEqual(at_once.rate_of(document((11, 5), (3, 1))), 6)

    def test_groups_follow_each_other(self):
        texts = [(11, 5), (11, 10), (11, 10)]
        self.assertEqual(at_once.rate_of(document(*texts, at_once=2)), 10)
        self.assertEqual(at_once.rate_of(document(*texts, at_once=3)), 15)

    def test_a_row(self):
        alone = [document((11, 10)), document((11, 20))]
        together = [document((11, 8), (11, 8)), document((11, 15), (11, 15))]
        self.assertEqual(at_once.row_of(64, alone, together),
                         ["64", "2", "2", "23", "15", "1.55", "95.8"])

    def test_a_row_of_parts(self):
        def reading(seconds, rate, at_once):
            return {"seconds": seconds, "decode_tok_s": rate,
                    "at_once": at_once, "tbt_ms": {"samples": 95},
                    "parts": [{"level": 0}] * 4 + [{"level": 1}]}
        alone = [reading(40, 10, 1), reading(90, 12, 1), reading(60, 14, 1)]
        beside = [reading(20, 30, 4), reading(30, 31, 4), reading(40, 32, 4)]
        self.assertEqual(at_once.parts_row_of(alone, beside),
                         ["4", "4", "99", "30.0", "60.0", "31", "12", "2.00"])

    def test_the_program_has_the_fields_of_parts(self):
        with tempfile.TemporaryDirectory() as folder:
            book = pathlib.Path(folder, "book.txt")
            book.write_text("The cat sat on the mat.\n\n" * 60)
            done = subprocess.run(
                [TIERCEL, "summarize", book, "-m",
                 f"{CHECKPOINTS}/llama_chat.gguf", "-c", "400", "-n", "8",
                 "--ignore-eos", "--no-cache", "--json", "--no-progress"],
                capture_output=True, check=True)
        document = json.loads(done.stdout)
        texts = len(document["parts"]) - 1
        row = at_once.parts_row_of(*[[document]] * 2)
        self.assertEqual(row[0], str(texts))
        self.assertEqual(row[2], str(8 * texts))
        self.assertGreater(int(row[1]), 1)

    def test_the_program_has_the_fields(self):
        done = subprocess.run(
            [TIERCEL, "generate", "-m", f"{CHECKPOINTS}/llama_chat.gguf", "-p",
             "Once", "-n", "6", "--temp", "1", "--ignore-eos", "--seeds", "1:3",
             "--json", "--no-progress"], capture_output=True, check=True)
        row = at_once.row_of(1, *[[json.loads(done.stdout)]] * 2)
        self.assertEqual(row[1:3], ["3", "3"])
        self.assertEqual(row[5], "1.00")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
