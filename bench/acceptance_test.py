"""The tables of acceptance.py for documents whose figures are known."""

import argparse
import sys
import unittest

sys.dont_write_bytecode = True
import acceptance


class Run:
    def __init__(self, held, per_sweep):
        self.held, self.per_sweep = held, per_sweep

    def acceptance(self):
        return self.held

    def tokens_per_sweep(self):
        return self.per_sweep

    def each(self):
        return [Run(self.held - 0.125, 0), Run(self.held + 0.125, 0)]


class Text:
    """A text whose drafts have an acceptance that tells chunk and budget."""

    def __init__(self, more):
        self.more = more
        self.asked = []

    def run(self, tokens, seeds, *flags):
        self.asked.append(flags)
        chunk = flags[flags.index("--chunk") + 1] if "--chunk" in flags else 32
        budget = flags[flags.index("--budget") + 1]
        length = flags[flags.index("--gamma2") + 1]
        return Run(budget / 8192 + chunk / 1024 + self.more,
                   length / 4 + 0.5 + self.more)


class TablesTest(unittest.TestCase):
    def setUp(self):
        self.texts = [Text(0.25), Text(0.0)]
        self.lines, self.charts = [], {}
        self.args = argparse.Namespace(tokens=160, seeds=2, verify="residual")

    def tables(self, prompt):
        acceptance.tables(self.texts, prompt, self.args,
                          lambda line="": self.lines.append(line), self.charts)

    def test_short(self):
        self.tables(7000)
        # 1,024 / 8,192 and 32 / 1,024, then a quarter more.
        cell = "0.156 to 0.406; 4.5 to 4.8"
        short = cell.replace("4.5 to 4.8", "2.5 to 2.8")
        self.assertIn(f"| 1024 | {short} | {cell} | {cell} |", self.lines)
        self.assertIn(f"| 32 | {cell} |", self.lines)
        self.assertIn("| 128 | 0.250 to 0.500; 4.5 to 4.8 |", self.lines)
        self.assertIn("| 24 | 0.156 to 0.406; 6.5 to 6.8 |", self.lines)
        self.assertEqual(set(self.charts), {"budget", "length", "chunk-7000"})
        # The budget table has twelve cells, the next five and six, of which two
        # and one are among these.
        for text in self.texts:
            self.assertEqual(len(text.asked), 4 * 3 + 5 - 2 + 6 - 1)

    def test_long(self):
        self.tables(28000)
        self.assertIn("| chunks of 32, by the mean key and the last row "
                      "| 0.531 to 0.781; 4.5 to 4.8 | 0.406 to 0.906 |",
                      self.lines)
        self.assertIn("| positions, by their keys and 16 rows "
                      "| 0.501 to 0.751; 4.5 to 4.8 | 0.376 to 0.876 |",
                      self.lines)
        self.assertIn("| a view of 27,648 "
                      "| 3.406 to 3.656; 4.5 to 4.8 | 3.281 to 3.781 |",
                      self.lines)
        self.assertEqual(self.charts, {})
        asked = self.texts[0].asked
        budgets = [flags[flags.index("--budget") + 1] for flags in asked]
        self.assertEqual(budgets,
                         [4096] * (len(acceptance.SELECTIONS) + 1) + [27648])
        lengths = [flags[flags.index("--gamma2") + 1] for flags in asked]
        self.assertEqual(lengths,
                         [16] * len(acceptance.SELECTIONS) + [1, 16])
        for flags in asked:
            self.assertEqual(flags[flags.index("--draft") + 1], "none")

    def test_one_text_is_no_range(self):
        one = acceptance.Held([Run(0.9, 5.0)])
        self.assertEqual(one.cell(), "0.900; 5.0")
        self.assertEqual(acceptance.Held([Run(0.9, 5.0), Run(0.5, 5.0)]).mean(),
                         0.7)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
