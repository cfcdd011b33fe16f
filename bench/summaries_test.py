"""The measures of summaries, counted by hand, and summaries.py with a model
that takes no time.

    summaries_test.py TIERCEL CHECKPOINTS
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import grounding
import summaries

TIERCEL, CHECKPOINTS = sys.argv[1:3]
SCRIPT = pathlib.Path(__file__).with_name("summaries.py")
TEXT = ("The project was founded by Ian Murdock in August 1993. "
        + "Filler words stand here again and again without any end. " * 40
        + "The archive is split into sections for simpler handling.")


def counted(summary, *fields):
    count = grounding.score(summary, grounding.Text(TEXT))
    return [count[field] for field in fields]


class GroundingTest(unittest.TestCase):
    def test_sentences_are_cut_at_lines_and_full_stops(self):
        self.assertEqual(
            grounding.sentences('1. Debian grows. It "rests." Then?\n- Points\n'
                                "in 1.5 GB of e.g. mirrors\n\n...\nthe and"),
            ["Debian grows.", 'It "rests.', "Points",
             "in 1.5 GB of e.g. mirrors"])

    def test_words_of_the_text(self):
        for summary, expected in (
                ("Ian Murdock founded the projects.", 1),
                ("Murdock founded great projects everywhere.", 0),  # 3 of 5
                ("Murdock founded projects, archives everywhere.", 1),
                ("He did it.", 0)):
            self.assertEqual(counted(summary, "from_text"), [expected], summary)
        self.assertEqual(counted("He did it.", "sentences"), [0])

    def test_a_place_is_a_window(self):
        both = "Murdock founded an archive, split into sections."
        self.assertEqual(counted(both, "from_text", "in_one_place"), [1, 0])
        self.assertEqual(
            counted("Murdock founded the project. The archive is split into "
                    "sections for handling.", "in_one_place", "quarters"),
            [2, 2])

    def test_names_are_looked_up_as_they_are(self):
        self.assertEqual(
            counted("The founder is Ian Murdock's friend Debra.", "names",
                    "names_found"), [3, 2])
        self.assertEqual(counted("Debra founded it. I do.", "names"), [0])

    def test_repetitions(self):
        self.assertEqual(
            counted("Murdock founded the project. The project was founded by "
                    "Murdock. The archive is split. Murdock founded the "
                    "projects!", "repeated"), [2])

    def test_what_is_copied(self):
        self.assertEqual(
            counted("the project was founded by Ian Murdock in August 1994",
                    "runs", "copied"), [3, 2])

    def test_totals(self):
        one = grounding.score("Ian Murdock.", grounding.Text(TEXT))
        self.assertEqual(grounding.total([one, one])["summaries"], 2)
        self.assertEqual(grounding.total([one, one])["names_found"], 2)
        row = summaries.row_of("way", {"a": "Ian Murdock founded it. Ha Debra."},
                               {"a": TEXT})
        self.assertEqual(row, ["way", "6", "2", "50 %", "50 %",
                               "1 of 2, 50 %", "0 %", "-", "1.0"])


class ChaptersTest(unittest.TestCase):
    PAGE = ("<html><head><title>No</title></head><body><div class='related'>"
            "<ul><li>Next</li></ul></div><div class='toc'><p>Contents</p></div>"
            "<h1>2. The Archive¶</h1><p>One <b>two</b>\n three<br>four.</p><ul>"
            "<li>Point<li>Other</ul><pre>code  here</pre></body></html>")

    def chapter(self, page):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "page.html"
            path.write_text(page, encoding="utf-8")
            return summaries.chapter(path)

    def test_a_page_is_its_paragraphs(self):
        self.assertEqual(self.chapter(self.PAGE),
                         "2. The Archive\n\nOne two threefour.\n\nPoint\n\n"
                         "Other\n\ncode here\n")

    def test_a_long_chapter_is_cut_at_a_paragraph(self):
        page = "<p>" + "word " * 2000 + "</p>"
        self.assertEqual(len(self.chapter(page * 3).split()), 2000)
        self.assertEqual(len(self.chapter(page.replace("</p>", "")
                                          + "word " * 3000).split()), 5000)

    def test_requests_are_those_of_the_program(self):
        source = (SCRIPT.parent.parent / "apps/commands/requests.cc").read_text()
        said = "".join(source.split('"')[1::2])
        self.assertIn(summaries.REQUEST, said)
        self.assertIn(summaries.AT_ONCE.replace("in a few paragraphs", ""),
                      said.replace("in a few paragraphs", ""))

    def test_a_run(self):
        with tempfile.TemporaryDirectory() as scratch:
            books = pathlib.Path(scratch)
            for folder, (_, names) in summaries.BOOKS.items():
                (books / folder).mkdir()
                for name in names:
                    (books / folder / f"{name}.html").write_text(self.PAGE)
            done = subprocess.run(
                [sys.executable, "-B", str(SCRIPT), "--tiercel", TIERCEL,
                 "--texts", str(books / "texts")],
                env={**os.environ, "TIERCEL_BOOKS": scratch,
                     "TIERCEL_MODEL": os.path.join(CHECKPOINTS, "llama_chat")},
                capture_output=True, text=True)
            kept = len(list((books / "texts").iterdir()))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(kept, 20 * len(summaries.WAYS))
        for way in summaries.WAYS:
            self.assertIn(f"| {way} | ", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=["summaries_test"])
