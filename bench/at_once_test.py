"""Tests of at_once.py.

    at_once_test.py TIERCEL CHECKPOINTS
"""

import json
import subprocess
import sys
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
