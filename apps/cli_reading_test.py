"""How a summary by the real model reads, where nothing is asked of sampling.

    cli_reading_test.py TIERCEL CHECKPOINTS

Reads TIERCEL_MODEL (SmolLM2) and policy.txt in TIERCEL_BOOKS. Without them it is
skipped, but fails where CI is set.
"""

import os
import re
import unittest

from cli_testing import environment, Case

MODEL = os.environ.get("TIERCEL_MODEL", "")
TRIES_ALL = "TIERCEL_ALL_SHAPES" in os.environ  # full.sh
BOOK = os.path.join(os.environ.get("TIERCEL_BOOKS", ""), "policy.txt")


def sentences(text):
    """The ones of some length, without what numbers the points of a list."""
    for line in text.splitlines():
        for sentence in re.split(r"(?<=[.!?])\s+", line):
            sentence = re.sub(r"^[\W\d]+", "", sentence).lower()
            if len(sentence) > 15:
                yield sentence


@unittest.skipUnless("CI" in os.environ or
                     (os.path.exists(MODEL) and os.path.exists(BOOK)),
                     "TIERCEL_MODEL or TIERCEL_BOOKS is not set")
class ReadingTest(Case):
    def test_a_summary_does_not_go_round_in_circles(self):
        """Without a repeat penalty half of these sentences are there twice."""
        with open(BOOK, "rb") as file:
            book = file.read()
        said = []
        for begin in (20000, 60000) if TRIES_ALL else (20000,):
            part = self.path("part.txt", book[begin:begin + 6000])
            summary = self.document("summarize", part, "-t", "2",
                                    env=environment(TIERCEL_MODEL=MODEL))
            said += sentences(summary["output"][0]["text"])
        self.assertGreater(len(said), 4)
        repeated = len(said) - len(set(said))
        self.assertLessEqual(repeated, len(said) // 5, "\n".join(said))


if __name__ == "__main__":
    unittest.main(argv=["cli_reading_test"])
