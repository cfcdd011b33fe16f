"""The tables of ranks.py for documents whose figures are known."""

import sys
import unittest

sys.dont_write_bytecode = True
import ranks


class Simulated:
    """A program that returns given documents, and keeps its calls."""

    def __init__(self, **documents):
        self.documents = documents
        self.calls = []

    def document(self, command, *args):
        self.calls.append((command, *map(str, args)))
        return self.documents[command]


PLAN = {"min_device_bytes": 77, "tbt_ms": 90.0,
        "ranks": [{"kv_heads": [0, 1]}, {"kv_heads": [1, 3]}]}


def drafted(rate, accepted):
    return {"avg_ts": rate, "tokens_per_sweep": 8.25,
            "levels": [{"accepted": 1, "checked": 9, "drafted": 9},
                       {"accepted": accepted, "checked": 40, "drafted": 94}]}


class RanksTest(unittest.TestCase):
    def test_a_row_is_of_the_least_device_and_its_plan(self):
        program = Simulated(plan=PLAN, bench=[{"tbt_ms": {"p50": 100.0}}])
        row = ranks.sweep_row(program, 2, "m", 3, 7000, 5, "1GB/s")
        self.assertEqual(row, {"ranks": 2, "most": 2, "ms": 100.0,
                               "predicted": 90.0})
        self.assertAlmostEqual(ranks.off(row), 0.1)
        first, second, bench = map(" ".join, program.calls)
        common = "-c 7005 -m m --tensor-parallel 2 --simulate device="
        self.assertEqual(first, f"plan {common}1kB,link=1GB/s")
        self.assertEqual(second, f"plan {common}77,link=1GB/s")
        self.assertIn("--simulate device=77,link=1GB/s -n 5 -d 7000 --fill",
                      bench)

    def test_one_rank_has_all_heads(self):
        program = Simulated(plan={"min_device_bytes": 7, "tbt_ms": 1.0},
                         bench=[{"tbt_ms": {"p50": 1.0}}])
        self.assertEqual(
            ranks.sweep_row(program, 1, "m", 3, 1, 1, "1GB/s")["most"], 3)

    def test_sweeps_are_compared_with_one_rank(self):
        lines = ranks.sweep_lines([
            {"ranks": 1, "most": 32, "ms": 8000.0, "predicted": 8000.0},
            {"ranks": 3, "most": 11, "ms": 2500.0, "predicted": 2750.0}])
        self.assertEqual(lines[2:], [
            "| 1 | 32 | 8000 | 1.00 | 1.00 | 8000 | 0.0 % |",
            "| 3 | 11 | 2500 | 3.20 | 2.91 | 2750 | 10.0 % |"])
        self.assertEqual({line.count("|") for line in lines}, {8})

    def test_drafts_are_compared_with_one_rank_and_with_none(self):
        rows = [
            ranks.drafted_row(1, drafted(2.0, 30), {"tbt_ms": {"p50": 2000.0}},
                              3795.0, 10.0),
            ranks.drafted_row(2, drafted(4.0, 30), {"tbt_ms": {"p50": 1000.0}},
                              1485.0, 10.0)]
        lines = ranks.triforce_lines(rows)
        self.assertEqual(lines[2:], [
            "| 1 | 75 % | 8.2 | 500 | 1.00 | 480 | 4.0 % | 2000 | 4.0 |",
            "| 2 | 75 % | 8.2 | 250 | 2.00 | 200 | 20.0 % | 1000 | 4.0 |"])
        self.assertEqual({line.count("|") for line in lines}, {10})
        self.assertEqual(ranks.errors_line(rows),
                         "The prediction is off by 12.0 % in the median, "
                         "20.0 % at most.")

    def test_turns_give_ratios(self):
        lines = ranks.before_lines({"tg32": [(100, 101), (50, 52), (80, 72)]})
        self.assertEqual(
            lines[2:], ["| tg32 | 80.0 | 72.0 | 1.010 (0.900 to 1.040) |"])
        self.assertEqual({line.count("|") for line in lines}, {5})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
