"""The tables of SFI for documents whose figures are known."""

import pathlib
import sys
import unittest
from unittest import mock

sys.dont_write_bytecode = True
import by_context
import sfi_tables


class Budgets:
    """A program whose `generate` has the coverage given for its budget."""

    def __init__(self, coverage):
        self.coverage = coverage
        self.asked = []

    def document(self, *args):
        self.asked.append(args)
        budget = args[args.index("--budget") + 1]
        return {"schedule": {"coverage": self.coverage[budget]}}


class Speeds:
    """A program that decodes 200,000 / context tokens a second; full has half
    of that, plus one for each earlier document."""

    def __init__(self):
        self.asked = []

    def document(self, command, *args):
        self.asked.append((command, *args))
        depths = map(int, args[args.index("-d") + 1].split(","))
        return [{"avg_ts": 2e5 / depth,
                 "baseline": {"decode_tok_s": 1e5 / depth + len(self.asked),
                              "speedup": 2.0}} for depth in depths]


class TablesTest(unittest.TestCase):
    def setUp(self):
        patch = mock.patch.object(by_context, "CONTEXTS", (1000, 2000, 4000, 7000))
        patch.start()
        self.addCleanup(patch.stop)

    def test_coverage(self):
        lines, charts = [], {}
        program = Budgets({256: 0.5, 1024: 0.875})
        sfi_tables.coverage_table(program, "a book", "ids.txt", 6000,
                                  lambda line="": lines.append(line), charts)
        self.assertEqual(lines[-1], "| 128 | 0.500 | 0.875 |")
        self.assertEqual(len(program.asked), 4 * 2)
        self.assertIn("coverage", charts)

    def test_contexts(self):
        lines, charts = [], {}
        sfi_tables.context_table(Speeds(), pathlib.Path("book.txt"), None,
                                 lambda line="": lines.append(line), charts)
        self.assertEqual(lines[-7:], [
            "|---|---:|---:|---:|---:|",
            "| SFI, sentences | 200.0 | 100.0 | 50.0 | 28.6 |",
            "| ... full beside it | 101.0 | 51.0 | 26.0 | 15.3 |",
            "| ... over full | 2.00 | 2.00 | 2.00 | 2.00 |",
            "| SFI, every 64 | 200.0 | 100.0 | 50.0 | 28.6 |",
            "| ... full beside it | 102.0 | 52.0 | 27.0 | 16.3 |",
            "| ... over full | 2.00 | 2.00 | 2.00 | 2.00 |"])
        self.assertIn("1,000", lines[-8])
        self.assertEqual(list(charts), ["sfi-speed"])

    def test_the_chart_has_the_mean_of_fulls_runs(self):
        program = Speeds()
        series = by_context.speed_table(
            program, [("a", ["--a"]), ("b", ["--b"])], "book.txt",
            lambda line="": None)
        self.assertEqual(list(series), ["a", "b", "full"])
        self.assertEqual(series["a"][:2], [(1000, 200.0), (2000, 100.0)])
        self.assertEqual(series["full"][:2], [(1000, 101.5), (2000, 51.5)])
        for command, *args in program.asked:
            self.assertEqual(command, "bench")
            self.assertIn("--verify-against", args)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
