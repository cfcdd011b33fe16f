"""Tests of pages.py: pages of results are named, printed and written."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import pages


class PagesTest(unittest.TestCase):
    def test_a_page_of_some_parts_names_them(self):
        usual = {"quality", "needle", "speed"}
        self.assertEqual(pages.page_name("policies", usual, usual), "policies")
        self.assertEqual(
            pages.page_name("policies", {"quality", "needle"}, usual),
            "policies-needle-quality")

    def test_what_is_said_is_printed_and_kept(self):
        say = pages.Lines()
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            say("# Title")
            say()
        self.assertEqual(printed.getvalue(), "# Title\n\n")
        with tempfile.TemporaryDirectory() as folder:
            path = pages.save(say.said, {"drawn": "<svg/>"}, "name",
                              pathlib.Path(folder))
            chart = path.with_name(path.stem + "-drawn.svg")
            self.assertEqual(path.read_text(),
                             f"# Title\n\n\n![drawn]({chart.name})\n")
            self.assertEqual(chart.read_text(), "<svg/>")

    def test_words_come_before_numbers(self):
        self.assertEqual(pages.table(["a", "b"], [["c", "1"]]),
                         ["| a | b |", "|---|---:|", "| c | 1 |"])
        self.assertEqual(pages.table(["a", "b"], [], words=0)[1],
                         "|---:|---:|")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
