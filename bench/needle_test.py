"""Items of needle.py, and its results for documents whose figures are known."""

import math
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import needle

IDS = list(range(100, 1100))
CUE = [7, 8, 9]


class ItemTest(unittest.TestCase):
    def test_the_string_stands_early_and_at_the_end(self):
        for seed in range(20):
            item = needle.Needle(IDS, CUE, seed, 400)
            string = item.present[-needle.STRING:]
            self.assertEqual(len(set(string)), needle.STRING)
            self.assertEqual(len(item.present), 400 + needle.STRING)
            self.assertEqual(item.present[-needle.STRING - 3:-needle.STRING],
                             CUE)
            early = item.present.index(CUE[0])
            self.assertEqual(item.present[early:early + 3 + needle.STRING],
                             CUE + string)
            self.assertTrue(20 <= early < 100, early)
            # Without it the text is the same.
            self.assertEqual(item.present[:early] +
                             item.present[early + 3 + needle.STRING:],
                             item.absent)
        self.assertNotEqual(needle.Needle(IDS, CUE, 0, 400).present,
                            needle.Needle(IDS, CUE, 1, 400).present)


class Program:
    """A program for which the string has 9 nats without its early copy. With it
    the full view has 1, a window 9, another view 3. In every other item the
    copy gains only 1."""

    def __init__(self):
        self.items = 0

    def document(self, command, *args):
        if command == "tokenize":
            return {"tokens": CUE}
        assert command == "eval" and "full" in args, args
        ids = pathlib.Path(args[1]).read_text().split()
        assert args[args.index("--prefill") + 1] == len(ids) - needle.STRING
        if ids.count(str(CUE[0])) == 1:
            self.items += 1
            return {"nll": 9.0, "perplexity_full": math.exp(9.0)}
        full = 1.0 if self.items % 2 == 1 else 8.0
        return {"nll": 9.0 if "window" in args else 3.0,
                "perplexity_full": math.exp(full)}


class RecoveryTest(unittest.TestCase):
    def test_it_is_the_share_of_what_full_gains(self):
        with tempfile.TemporaryDirectory() as scratch:
            found = needle.recoveries(
                Program(), pathlib.Path(scratch), IDS,
                [("view", ["some"]), ("window", ["window"])], 5, 400)
        self.assertEqual(found["window"], [0.0] * 3)
        self.assertEqual(len(found["view"]), 3)
        for share in found["view"]:
            self.assertAlmostEqual(share, 0.75)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
