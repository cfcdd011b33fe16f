"""The tables of SPEED for documents whose figures are known."""

import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import speed_tables


class Cuts:
    """A program whose figures are proportional to its cut and the context."""

    def __init__(self):
        self.asked = []

    def document(self, command, *args):
        if command == "tokenize":
            return {"tokens": list(range(8000))}
        self.asked.append(args)
        settings = (args[args.index("--set") + 1] if "--set" in args
                    else "cut=30,anchor=1")
        cut, anchor = (int(one.partition("=")[2]) for one in settings.split(","))
        context = len(pathlib.Path(args[args.index("--tokens") + 1])
                      .read_text().split())
        return {"ttft_s": cut * context / 1e4, "decode_tok_s": 1e3 / cut,
                "kv": {"bytes": cut * context * 1000},
                "speculation": {
                    "sweeps": 32, "tokens_per_sweep": 1 + anchor,
                    "levels": [{"checked": 100, "accepted": 2 * cut + anchor}]}}


class TablesTest(unittest.TestCase):
    def setUp(self):
        self.program, self.lines, self.charts = Cuts(), [], {}

    def say(self, make):
        with tempfile.TemporaryDirectory() as scratch:
            make(self.program, pathlib.Path("book.txt"), pathlib.Path(scratch),
                 lambda line="": self.lines.append(line), self.charts)

    def test_contexts(self):
        self.say(speed_tables.context_table)
        rows = [line for line in self.lines if line.startswith("| cut 15")]
        self.assertEqual(rows, [
            "| cut 15 | 2.25 (0.50) | 4.50 (0.50) | 7.50 (0.50) | 10.50 (0.50) |",
            "| cut 15 | 15.00 (0.50) | 15.00 (0.50) | 15.00 (0.50) "
            "| 15.00 (0.50) |",
            "| cut 15 | 22.5 (0.50) | 45.0 (0.50) | 75.0 (0.50) | 105.0 (0.50) |"])
        self.assertIn("| full, mean | 4.50 | 9.00 | 15.00 | 21.00 |", self.lines)
        self.assertEqual(
            set(self.charts), {"speed-ttft", "speed-tpot", "speed-kv"})
        # Each context and cut has one run for all figures, and one of full
        # before it.
        asked = ["--set" in args for args in self.program.asked]
        self.assertEqual(asked, [False, True] * 4 * 4)

    def test_acceptance(self):
        self.say(speed_tables.acceptance_table)
        self.assertEqual(self.lines[-1], "| 15 | 0.310; 2.0 | 0.300; 1.0 |")
        self.assertEqual(len(self.program.asked),
                         len(speed_tables.DRAFT_CUTS) * 2 * 2)
        self.assertEqual(list(self.charts), ["speed-held"])
        for args in self.program.asked:
            budget = args[args.index("--budget") + 1]
            self.assertGreaterEqual(budget, speed_tables.DRAFT_PROMPT + 128)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
