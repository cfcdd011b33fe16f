"""Tests of book.py, with a model that takes no time.

    book_test.py TIERCEL CHECKPOINTS
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import book

TIERCEL, CHECKPOINTS = sys.argv[1:3]
SCRIPT = pathlib.Path(__file__).with_name("book.py")
TEXT = "".join(f"Part {i} of it. One two three, four five. Six!\n\n"
               for i in range(200))


class Lines:
    """A reading that wrote tokens for some parts."""

    def __init__(self, *parts):
        self.begun = list(parts)

    def parts(self):
        return self.begun


def part(level, text):
    return {"level": level, "text": text}


class BookTest(unittest.TestCase):
    def test_texts(self):
        below = [part(0, "a"), part(0, "b"), part(1, "a"), part(1, "b")]
        self.assertEqual(book.texts_of([*below, part(2, "a\n\nb")]), below)
        parts = [*below, part(2, "c")]
        self.assertEqual(book.texts_of(parts), parts)
        self.assertEqual(book.texts_of([part(0, "a"), part(1, "a")]),
                         [part(0, "a"), part(1, "a")])

    def test_what_is_made_twice_is_seen(self):
        made = {}
        book.Book.note_made(Lines((0, 0), (0, 1)), 0, 1, made)
        self.assertEqual(made, {(0, 0): 0})
        book.Book.note_made(Lines((0, 1)), 1, 1, made)
        with self.assertRaisesRegex(SystemExit, "made twice.*in run 2 and 1"):
            book.Book.note_made(Lines((0, 1), (0, 2)), 2, 2, made)
        with self.assertRaisesRegex(SystemExit, "began"):
            book.Book.note_made(Lines((0, 2), (0, 3)), 2, 0, made)
        with self.assertRaisesRegex(SystemExit, "began"):
            book.Book.note_made(Lines(), 2, 1, made)

    def test_lines_of_a_killed_run(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            reading = book.Reading(["true"], folder)
            reading.wait()
            reading.lines.write_text(
                '{"token":1,"text":"a","level":0,"number":4}\n'
                '{"token":1,"text":"a","level":0,"number":4}\n'
                '{"token":1,"text":"a","level":1,"number":0}\n'
                '{"error":{"code":"interrupted"}}\n{"token":1,"te')
            self.assertEqual(reading.parts(), [(0, 4), (1, 0)])

    def test_a_run(self):
        with tempfile.TemporaryDirectory() as folder:
            text = pathlib.Path(folder) / "text.txt"
            text.write_text(TEXT)
            done = subprocess.run(
                [sys.executable, "-B", str(SCRIPT), str(text),
                 "--interruptions", "4", "--epub", "2", "--tiercel", TIERCEL,
                 "--flag=-c", "--flag=900"],
                env={**os.environ,
                     "TIERCEL_MODEL": os.path.join(CHECKPOINTS, "llama_chat")},
                capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"\n\| text\.txt \| 2,000 \| [\d,]+ \| ")
        # On a slow machine a run may end before its signal comes.
        times = re.search(r"\ntext\.txt, interrupted ([0-4]) times \(seed 0\): ",
                          done.stdout)
        self.assertIsNotNone(times, done.stdout)
        self.assertEqual(len(re.findall(r"\n- SIG(?:INT|TERM|KILL) ",
                                        done.stdout)), int(times[1]))
        self.assertRegex(done.stdout, r"\nAn EPUB of 2 MB, all of it text: its "
                         r"\d+ chapters of [\d,]+ tokens ")


if __name__ == "__main__":
    unittest.main(argv=["book_test"])
