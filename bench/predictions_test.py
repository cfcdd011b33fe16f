"""The results of predictions.py for documents whose figures are known."""

import sys
import unittest

sys.dont_write_bytecode = True
import predictions


def document(ttft, tbt, host):
    return {
        "ttft_s": ttft,
        "tbt_ms": {"p50": tbt, "p90": 70.0, "p99": 80.0},
        "memory": {"host_bytes": host, "device_bytes": 50_000_000},
        "predicted": {"ttft_s": 3.0, "tbt_ms": 9.0, "host_bytes": 70_000_000,
                      "device_bytes": 40_000_000},
    }


class PredictionsTest(unittest.TestCase):
    def setUp(self):
        self.figures = predictions.medians([
            predictions.compared(document(*run), resident, 8_000_000)
            for run, resident in (((2.0, 12.0, 30_000_000), 108_000_000),
                                  ((9.0, 10.0, 60_000_000), 208_000_000),
                                  ((2.5, 90.0, 50_000_000), 98_000_000))])

    def test_figures_are_medians_of_their_own(self):
        self.assertEqual(self.figures, {
            "ttft": (3.0, 2.5), "tbt": (9.0, 12.0),
            "memory": (110_000_000, 100_000_000),
            "resident": (110_000_000, 100_000_000)})

    def test_schedules_have_steps_of_two_kinds(self):
        run = document(2.0, 12.0, 1) | {"decode_tok_s": 40.0}
        self.assertEqual(predictions.gap_ms(run), 12.0)
        self.assertEqual(predictions.gap_ms(run | {"schedule": None}), 12.0)
        self.assertEqual(predictions.gap_ms(run | {"schedule": {"slow": 3}}),
                         25.0)

    def test_lines(self):
        line = predictions.line("Q4_1.gguf", 3000, "", self.figures)
        self.assertEqual(
            line, "| Q4_1.gguf | 3,000 | - | 3.00 / 2.50 | +20.0 % "
            "| 9.00 / 12.00 | -25.0 % | 110.00 / 100.00 | +10.0 % "
            "| 110.00 / 100.00 | +10.0 % |")
        for header in predictions.HEADER:
            self.assertEqual(header.count("|"), line.count("|"))

    def test_errors_have_no_sign(self):
        other = {"tbt": (11.0, 10.0)}
        exact = {"tbt": (10.0, 10.0)}
        self.assertEqual(
            predictions.verdict("tbt", "TBT", [self.figures, other, exact]),
            "TBT: off by 10.0 % in the median, 25.0 % at worst, of 3.")

    def test_busy_rates_are_counted(self):
        self.assertEqual(
            predictions.steadiness([{"spread": 0.02, "steady": True},
                                    {"spread": 0.4, "steady": False},
                                    {"spread": 0.11, "steady": True}]),
            "Rates: 3 measured, with a spread of 2 to 40 %; 1 while the machine"
            " was busy.")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
