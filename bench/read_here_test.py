"""Tests of read_here.py, with a model that takes no time.

    read_here_test.py TIERCEL CHECKPOINTS
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import read_here

TIERCEL, CHECKPOINTS = sys.argv[1:3]
SCRIPT = pathlib.Path(__file__).with_name("read_here.py")
BOOK = "The cat sat on the mat. It saw a bird. The bird flew away. " * 200


class ReadHereTest(unittest.TestCase):
    def test_an_item(self):
        for count in (1, 3):
            item = read_here.Item(BOOK, 2000, count, 7)
            self.assertEqual(item.text,
                             read_here.Item(BOOK, 2000, count, 7).text)
            self.assertEqual(len(item.facts), count)
            self.assertEqual(len({word for fact in item.facts
                                  for word in fact.words}), 3 * count)
            for fact in item.facts:
                self.assertEqual(item.text.count(fact.sentence), 1)
                at = item.text.index(fact.sentence)
                end = at + len(fact.sentence)
                self.assertTrue(fact.is_in(item.text[at - 50:end - 9]))
                self.assertTrue(fact.is_in(fact.sentence.replace(" ", "\n")))
                self.assertFalse(fact.is_in(item.text[:at]))
                name = fact.sentence.split()[0]
                self.assertIn(name, fact.question)
                self.assertFalse(fact.is_in(name))
                self.assertTrue(fact.is_named_in(f"It is {fact.thing}."))
                self.assertFalse(fact.is_named_in("It is a hat."))

    def test_rows(self):
        found = [(True, True, True, 0.1), (True, False, True, 0.3),
                 (False, False, False, 0.2), (False, False, True, 0.2)]
        self.assertEqual(read_here.rows_of(found),
                         [["all", "4", "25 %", "75 %", "20 %"],
                          ["that name it", "2", "50 %", "100 %", "20 %"]])
        self.assertEqual(read_here.rows_of(found[2:])[1],
                         ["that name it", "0", "-", "-", "-"])

    def test_a_run(self):
        with tempfile.TemporaryDirectory() as folder:
            book = pathlib.Path(folder) / "book.txt"
            book.write_text(BOOK)
            for facts, said in (("1", "| all | 3 |"),
                                ("3", "of 1 pieces have one first passage")):
                done = subprocess.run(
                    [sys.executable, "-B", str(SCRIPT), str(book), "--count",
                     "3", "--letters", "1500", "--facts", facts, "--tiercel",
                     TIERCEL],
                    env={**os.environ, "TIERCEL_MODEL":
                         os.path.join(CHECKPOINTS, "llama_chat")},
                    capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(said, done.stdout)


if __name__ == "__main__":
    unittest.main(argv=["read_here_test"])
