"""Tests of whole_book.py, with a model that takes no time.

    whole_book_test.py TIERCEL CHECKPOINTS
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import whole_book

TIERCEL, CHECKPOINTS = sys.argv[1:3]
SCRIPT = pathlib.Path(__file__).with_name("whole_book.py")
FILLER = "One two three, four five. Six!\n\n" * 50
TEXT = "".join(f"Chapter {i}\n\nThe {name}\n\n{FILLER}It was the old {name}.\n\n"
               for i, name in enumerate(("harbour", "tower", "river", "mill"),
                                        start=1))


class WholeBookTest(unittest.TestCase):
    def test_a_row(self):
        places = {"chapters": ["Here", "There"]}
        document = {
            "parts": [{"level": 0, "text": "a", **places},
                      {"level": 0, "text": "", "chapters": ["Third"]},
                      {"level": 1, "text": "b", "chapters": ["Third"]}],
            "quotations": [{"found": True, **places},
                           {"found": True, "chapters": ["Third"]},
                           {"found": False}],
            "predicted": {"seconds": 2.6}, "seconds": 3.4,
            "resumed": {"nodes": 1}, "prompt_tokens": 9000,
            "cached_tokens": 1000, "tbt_ms": {"samples": 7}}
        self.assertEqual(
            whole_book.row_of("Who?", "There", document, 2),
            ["Who?", "2", "1", "2", "3", "3", "8,000", "1,000", "7", "1", "yes",
             "3", "2", "1"])
        self.assertEqual(whole_book.row_of("Who?", "Third", document, 2)[-4:],
                         ["no", "3", "2", "1"])

    def test_a_run(self):
        with tempfile.TemporaryDirectory() as folder:
            text = pathlib.Path(folder) / "text.txt"
            text.write_text(TEXT)
            done = subprocess.run(
                [sys.executable, "-B", str(SCRIPT), str(text), "--tiercel",
                 TIERCEL, "--flag=-c", "--flag=2400",
                 "--ask", "Who?", "The harbour", "It was the old harbour.",
                 "--ask", "Where?", "The river", "It was the old river.",
                 "--ask", "When?", "The mill", "It was the old mill."],
                env={**os.environ,
                     "TIERCEL_MODEL": os.path.join(CHECKPOINTS, "llama_chat")},
                capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [line.split(" | ") for line in done.stdout.splitlines()
                if re.match(r"W\w+\? ", line) and " | " in line]
        # The third may have been answered before it was killed.
        self.assertEqual([row[3] == "0" for row in rows][:2], [True, False])
        self.assertEqual(len(rows), 3)
        for chapter in "harbour", "river", "mill":
            self.assertRegex(
                done.stdout, rf"\nA double that quotes 'It was the old {chapter}"
                rf"\.': of 1 quotations in its answer 1 found, 1 in The "
                rf"{chapter}\n")


if __name__ == "__main__":
    unittest.main(argv=["whole_book_test"])
