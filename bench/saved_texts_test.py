"""The script that opens saved texts, with a model that takes no time.

    saved_texts_test.py TIERCEL CHECKPOINTS
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import saved_texts

TIERCEL, CHECKPOINTS = sys.argv[1:3]
SCRIPT = pathlib.Path(__file__).with_name("saved_texts.py")


class SavedTextsTest(unittest.TestCase):
    def test_a_row(self):
        times = {"read": [9, 10, 30], "opened": [0.3, 0.1, 0.2],
                 "disk": [2.5, 2, 4], "plain": [1, 1, 8]}
        self.assertEqual(saved_texts.row_of(times, 7000, 200_000_000),
                         ["7000", "200", "10.00", "0.200", "50", "2.500", "4",
                          "80", "200"])

    def test_a_run(self):
        with tempfile.TemporaryDirectory() as folder:
            book = pathlib.Path(folder) / "book.txt"
            book.write_text("the cat sat on the mat and saw a bird. " * 200)
            done = subprocess.run(
                [sys.executable, "-B", str(SCRIPT), str(book), "--rounds", "1",
                 "--tokens", "1500", "--tiercel", TIERCEL],
                env={**os.environ,
                     "TIERCEL_MODEL": os.path.join(CHECKPOINTS, "llama_chat")},
                capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        row = [cell.strip() for cell in
               done.stdout.splitlines()[-1].strip("|").split("|")]
        self.assertEqual(len(row), len(saved_texts.COLUMNS))
        self.assertGreater(int(row[0]), 1400)
        self.assertGreater(float(row[2]), 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
