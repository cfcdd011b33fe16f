"""The tables of policies.py for documents whose figures are known."""

import contextlib
import io
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
import policies

EVALUATED = {"kl": {"mean": 0.09234, "p99": 1.5678}, "top1": 0.8512,
             "perplexity": 21.504, "perplexity_full": 20.25}
BENCH_ROW = {"avg_ts": 48.26, "device_bytes": 151_240_000,
             "baseline": {"decode_tok_s": 32.14, "speedup": 1.5016,
                          "device_bytes": 149_500_000}}


class Program:
    """A program that keeps the arguments of its calls, and returns `said`."""

    def __init__(self, said):
        self.said = said
        self.asked = []

    def document(self, *args):
        self.asked.append(args)
        return self.said


class TablesTest(unittest.TestCase):
    def table(self, make, said, *args):
        """Makes a table; returns its last line, which has the columns of its
        header."""
        lines, program = [], Program(said)
        make(program, *args, lambda line="": lines.append(line))
        header = next(line for line in lines if line.startswith("|"))
        self.assertEqual(lines[-1].count("|"), header.count("|"))
        return lines[-1], program.asked

    def test_quality(self):
        line, asked = self.table(policies.quality_table, EVALUATED, "a book",
                                 "ids.txt", 6000, 512, [""])
        name, _ = policies.SPEED_QUALITY[-1]
        self.assertEqual(
            line, f"| {name} | 0.0923 | 1.568 | 0.851 | 21.50 | 20.25 |")
        for command, *args in asked:
            self.assertEqual(command, "eval")
            self.assertIn("--verify-against", args)
        self.assertEqual(len(asked), len(policies.QUALITY) +
                         len(policies.SPEED_QUALITY))
        _, asked = self.table(policies.quality_table, EVALUATED, "a book",
                              "ids.txt", 6000, 512, ["2080", "16 rows"])
        self.assertEqual(len(asked), 2)

    def test_speed(self):
        line, asked = self.table(policies.speed_table, [BENCH_ROW], "a book",
                                 "book.txt", 7000, 128)
        name, _ = policies.SPEED[-1]
        self.assertEqual(
            line, f"| {name} | 48.3 | 32.1 | 1.50 | 151.2 | 149.5 |")
        self.assertEqual(len(asked), len(policies.SPEED))
        self.assertEqual(policies.speed_cells(BENCH_ROW, 2),
                         "| 48.26 | 32.14 | 1.50 |")

    def test_links(self):
        lines, asked = [], []

        class Links:
            def document(self, command, *args):
                asked.append((command, *map(str, args)))
                if command == "plan":
                    return {"min_device_bytes": 150_000_001, "tiers": {
                        "device": {"resident": 40_000_000},
                        "host": {"kv": 160_000_000}}}
                # It has 100 tokens a second without --simulate; full has 32.14.
                if "--simulate" not in args:
                    return [BENCH_ROW | {"avg_ts": 100.0,
                                         "tokens_per_sweep": None}]
                if "full" in args:
                    return [{"avg_ts": 32.14, "device_bytes": 149_500_000,
                             "tokens_per_sweep": None}]
                return [BENCH_ROW | {"tokens_per_sweep": 5.25}]

        policies.links_table(Links(), "a book", "book.txt", 7000, 128,
                             lambda line="": lines.append(line))
        # Three quarters of 7,000 tokens of 23,040 bytes in 20 or 100 steps of
        # 10 ms; 32.14 tokens a second are 3.1 such steps each.
        self.assertIn("a sweep of full worth 20 steps of 10.0 ms, simulated",
                      "".join(lines))
        self.assertIn("device=150001kB,link=120.96MB/s", asked[-1])
        self.assertIn("device=150001kB,link=120.96MB/s", asked[-2])
        self.assertEqual(asked[-1][asked[-1].index("-n") + 1], "16")
        self.assertNotIn("--temp", asked[-1])  # full draws nothing
        self.assertEqual(asked[-3][0], "plan")
        self.assertIn("device=150001kB,link=1GB/s", asked[-3])
        self.assertNotIn("--policy", asked[-3])
        self.assertEqual(
            lines[-1], "| TriForce | 121 | 48.3 | 32.14 | 3.1 | 1.5 | 5.2 "
            "| 151.2 | 149.5 |")
        self.assertEqual(lines[-1].count("|"), lines[-len(policies.LINKS) - 1]
                         .count("|"))
        plain = policies.link_line(
            "SFI", 5e8, 0.01, BENCH_ROW | {"tokens_per_sweep": None},
            {"avg_ts": 32.14, "device_bytes": 149_500_000})
        self.assertEqual(plain, "| SFI | 500 | 48.3 | 32.14 | 3.1 | 1.5 |  "
                         "| 151.2 | 149.5 |")

    def test_a_papers_table_is_had_by_its_name(self):
        """It is made for the book from a place on, and no other is made."""
        had = []

        def table(name):
            return lambda program, piece, scratch, say, charts: had.append(
                (name, piece.name, piece.read_text()))

        papers = {name: table(name) for name in policies.PAPERS}
        with tempfile.TemporaryDirectory() as books, mock.patch.multiple(
                policies, PAPERS=papers, Program=lambda path: None), \
                mock.patch.object(policies.pages, "version_of", str), \
                mock.patch.dict(os.environ, TIERCEL_BOOKS=books), \
                contextlib.redirect_stdout(io.StringIO()):
            pathlib.Path(books, "a.txt").write_text("before, a text")
            for name in papers:
                with mock.patch.object(sys, "argv", [
                        "policies.py", f"--{name}", "--books", "a.txt", "--skip",
                        "8"]):
                    policies.main()
        self.assertEqual(had, [(name, "a.txt", "a text") for name in papers])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
