"""The tables of triforce.py for documents whose figures are known."""

import argparse
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import pages
import triforce


def phase(seconds, busy=0.0, up=0, down=0):
    return {"seconds": seconds, "link_busy_s": busy, "h2d_bytes": up,
            "d2h_bytes": down}


def document(rate, sweeps=10, per_sweep=5.0, drafted=160, checked=50,
             accepted=40, device=182_100_000, busy=1.5):
    """The document of a run of 7,000 tokens: 6 s of drafts, 3 of sweeps and 1
    of refreshes. The link was busy for 0.5 s of the drafts and `busy` of the
    sweeps."""
    return {
        "prompt_tokens": 7000,
        "decode_tok_s": rate,
        "memory": {"device_bytes": device},
        "speculation": {
            "sweeps": sweeps, "tokens_per_sweep": per_sweep,
            "levels": [
                {"drafted": 7, "checked": 7, "accepted": 1},
                {"drafted": drafted, "checked": checked, "accepted": accepted},
            ]},
        "ledger": {
            "formula": {"resident_pages": 14, "ahead_pages": 2,
                        "page_bytes": 500},
            "phases": {"draft": phase(6.0, 0.5, up=400),
                         "verify": phase(3.0, busy, up=10_000, down=600),
                         "refresh": phase(1.0)}},
    }


def runs(*documents):
    return triforce.Runs(list(documents))


class RunsTest(unittest.TestCase):
    def test_sums_over_seeds(self):
        both = runs(document(2.0), document(8.0, sweeps=30, per_sweep=3.0,
                                            checked=150, accepted=110))
        self.assertAlmostEqual(both.rate(), 2 / (1 / 2 + 1 / 8))
        self.assertAlmostEqual(both.tokens_per_sweep(),
                               (10 * 5 + 30 * 3) / 40)
        self.assertAlmostEqual(both.acceptance(), 150 / 200)

    def test_the_link_s_share_of_a_phase(self):
        # 11,000 bytes, less 1,000 requested ahead, moved in 2 s: half of what a
        # link of 10,000 bytes a second could move while it was busy.
        one = runs(document(2.0))
        self.assertAlmostEqual(one.link_share("verify", 10_000), 0.5 * 0.5)
        self.assertAlmostEqual(one.link_share("draft", 10_000), 0.5 / 6 * 0.5)


class RowTest(unittest.TestCase):
    def setUp(self):
        base = runs(document(2.0, device=182_000_000, busy=2.0))
        self.row = triforce.compare(runs(document(6.0)), base, ratio=20,
                                    rate=10_000)

    def test_figures(self):
        row = self.row
        self.assertAlmostEqual(row["speedup"], 3)
        self.assertAlmostEqual(row["acceptance"], 0.8)
        self.assertAlmostEqual(row["tokens_per_sweep"], 5)
        # 14 resident pages of 128 leave 5,208 of 7,000 positions behind the
        # link; a round is a sweep of 20 steps and 16 steps of drafts.
        self.assertAlmostEqual(row["model"],
                               5 * (20 * 5208 / 7000 + 1) / (20 + 16))
        self.assertEqual(row["time_shares"], [0.6, 0.3, 0.1])
        self.assertAlmostEqual(row["idle"], 1 - 0.5 / 6 * 0.5)

    def test_lines(self):
        self.assertEqual(
            triforce.line("1024 | 32 | 16 | ngram | 0.6", self.row),
            "| 1024 | 32 | 16 | ngram | 0.6 | 0.800 | 5.0 | 3.00 | 0.60 | 2.2 "
            "| 182.1, 182.0 | 2.00 | 60%, 30%, 10% | 0.250, 0.267 | 0.96 |")
        self.assertEqual(
            triforce.measured_line(7000, 1024, 20.0, 945e6, self.row),
            "| 7,000 | 1,024 | 20 | 945 | 80% | 5.0 | 3.0 | 0.60 | 0.44 |\n")
        columns = triforce.HEADER.splitlines()[0].count("|")
        self.assertEqual(triforce.line("a | b | c | d | e",
                                       self.row).count("|"), columns)


class FakeText:
    prompt = 7000

    def __init__(self):
        self.asked = []

    def run(self, tokens, seeds, *flags):
        self.asked.append((tokens, list(seeds), flags))
        if "--policy" not in flags:
            return runs(document(2.0))
        return runs(document(6.0 if "ngram" in flags else 4.0))

    def device(self, link, *flags):
        return f"device=1kB,{link}"


class TableTest(unittest.TestCase):
    def test_both_sides_have_one_device(self):
        text, said = FakeText(), []
        args = argparse.Namespace(only=None, quick=True, brief=False,
                                  tokens=160, seeds=1)
        table = triforce.speed_table(text, 1024, 0.008, 20, args,
                                      ["--verify", "residual"],
                                      lambda words="": said.append(words))
        base, ours = text.asked
        self.assertEqual(base[2][-1], ours[2][-1])
        # The rate is 7,000 tokens of 23,040 bytes in 20 steps of 8 ms.
        self.assertEqual(base[2][-1], "device=1kB,link=1008.00MB/s")
        self.assertIn("--policy", ours[2])
        self.assertNotIn("--policy", base[2])
        self.assertTrue(table.startswith("| 7,000 | 1,024 | 20 | 1,008 | 80%"))
        self.assertIn("| 3.00 | 0.60 |", said[-1])
        self.assertEqual([flags[-2] for _, _, flags in text.asked],
                         ["--simulate", "--simulate"])

    def test_the_page_has_the_defaults(self):
        args = argparse.Namespace(only=None, quick=False, brief=True,
                                  tokens=160, seeds=1)
        table = triforce.speed_table(FakeText(), 1024, 0.008, 20, args, [],
                                      lambda words="": None)
        self.assertIn("| 3.0 | 0.60 |", table)

    def test_a_step_is_that_of_the_drafts(self):
        self.assertAlmostEqual(triforce.draft_step(FakeText(), 1024, []),
                               6.0 / 160)


class PagesTest(unittest.TestCase):
    def test_the_page_s_tables_are_apart(self):
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            end = "<!-- end of results -->"
            page = root / "doc" / "measured.md"
            page.parent.mkdir()
            page.write_text(f"a\n<!-- one -->\n1\n{end}\nb\n{triforce.MEASURED}"
                              f"\n2\n{end}\nc\n")
            pages.fill_measured(triforce.MEASURED, "new\n", root)
            self.assertEqual(
                page.read_text(), f"a\n<!-- one -->\n1\n{end}\nb\n"
                f"{triforce.MEASURED}\nnew\n{end}\nc\n")
            with self.assertRaises(ValueError):
                pages.fill_measured("<!-- other -->", "new\n", root)

    def test_the_page_has_the_mark(self):
        self.assertIn(triforce.MEASURED + "\n",
                      (pages.ROOT / "doc" / "measured.md").read_text())

    def test_a_page_s_name(self):
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            self.assertEqual(
                pages.page("2026-11-23", "AMD EPYC(R) 9", "triforce.md",
                           root=root),
                root / "bench/results/2026-11-23-amd-epyc-r-9-triforce.md")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
