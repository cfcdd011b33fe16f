"""The tables of SADAS for documents whose figures are known."""

import math
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
import by_context
import sadas_tables

# Each letter is a token; "X" is a different one if it is tokenized alone.
BOOK = "pppppabcabc;Xdefghijklmnop"
SIZES = {"PROMPT": 5, "THOUGHT": 3, "ANSWER": 4}
THOUGHT = 10  # rows of thinking: "def" is the tag, its "f" the answer's first


def evaluated(tokens, rows, kl, top1):
    """A document of `eval`: a token costs a nat, and two under the full view."""
    return {"tokens": tokens, "prefill": tokens - rows, "scored": rows - 1,
            "kl": {"mean": kl}, "top1": top1, "nll": 1.0,
            "perplexity_full": math.exp(2.0)}


class Letters:
    """A program for which a row over a window of N has a KL of N, and a row
    over everything has 1/2 if the thinking before it was over a window."""

    def __init__(self):
        self.evaluated = []

    def document(self, command, *args):
        if command == "tokenize":
            text = BOOK if args[0] == "-f" else args[-1].replace("X", "x")
            return {"tokens": list(map(ord, text))}
        if command == "detokenize":
            return {"text": "".join(map(chr, args))}
        ids = pathlib.Path(args[args.index("--tokens") + 1]).read_text().split()
        tokens = args[args.index("--window") + 1]
        settings = args[args.index("--set") + 1]
        self.evaluated.append(settings)
        rows = len(ids) - args[args.index("--prefill") + 1]
        answer = rows - THOUGHT
        reads_all = "think=on" in settings and "answer=kept" not in settings
        total = THOUGHT * tokens + answer * (0.5 if reads_all else tokens)
        return evaluated(len(ids), rows, total / rows, 0.25)


class QualityTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        for name, size in SIZES.items():
            patch = mock.patch.object(sadas_tables, name, size)
            patch.start()
            self.addCleanup(patch.stop)
        self.program, self.lines, self.charts = Letters(), [], {}

    def say(self, make):
        make(self.program, pathlib.Path("book.txt"), self.scratch,
             lambda line="": self.lines.append(line), self.charts)

    def test_a_part_is_a_difference_of_sums(self):
        whole = sadas_tables.Sums.of(evaluated(130, 30, 0.4, 0.5))
        part = sadas_tables.Sums.of(evaluated(110, 10, 0.1, 0.8))
        # They are (30 x 0.4 - 10 x 0.1) / 20, (15 - 8) / 20, and a nat a token.
        self.assertEqual((whole - part).cells(), "0.5500 | 0.350 | 2.72")
        self.assertAlmostEqual((whole - part).perplexity_full(), math.exp(2))

    def test_a_turn_is_the_books_text(self):
        turn = sadas_tables.Turn(self.program, "book.txt", self.scratch)
        # "abc" came in the thinking before, phrases with ";" would be no
        # setting, and "Xde" would have other ids.
        self.assertEqual(turn.tag, "def")
        read = ["".join(chr(int(i)) for i in path.read_text().split())
                for path in (turn.thinking, turn.whole)]
        self.assertEqual(read, ["pppppabcabc;Xde", "pppppabcabc;Xdefghij"])
        self.assertEqual(
            turn.split, "5 tokens read, 10 rows of thinking, 5 of the answer, "
            "closed by \"def\"")

    def test_windows(self):
        self.say(sadas_tables.window_table)
        self.assertEqual(
            self.lines[-1], "| 4,096 | 4096.0000 | 0.250 | 2.72 | 0.5000 | 0.250 "
            "| 2.72 | 4096.0000 | 0.250 | 2.72 | 7.39, 7.39 |")
        header = self.lines[-len(sadas_tables.WINDOWS) - 2]
        self.assertEqual(self.lines[-1].count("|"), header.count("|"))
        self.assertEqual(len(self.program.evaluated),
                         3 * len(sadas_tables.WINDOWS))
        self.assertEqual(list(self.charts), ["sadas-kl"])

    def test_answers(self):
        self.say(sadas_tables.answer_table)
        cells = [line.split(" | ")[1:] for line in self.lines[-4:]]
        self.assertEqual([c[0] for c in cells],
                         ["0.5000", "0.5000", "1024.0000", "1024.0000"])
        self.assertEqual(cells[0][1:], ["0.250", "2.72", "7.39 |"])
        # There are four answers, and thinking with sinks and without.
        self.assertEqual(len(self.program.evaluated), 4 + 2)


class SpeedTest(unittest.TestCase):
    def test_contexts(self):
        lines, charts, asked = [], {}, []

        class Speeds:
            def document(self, command, *args):
                if command == "tokenize":
                    return {"tokens": [1, 2, 3]}
                asked.append(args)
                return [{"avg_ts": 50.0, "baseline": {"decode_tok_s": 25.0,
                                                      "speedup": 2.0}}
                        for _ in by_context.CONTEXTS]

        sadas_tables.context_table(Speeds(), pathlib.Path("book.txt"), None,
                                   lambda line="": lines.append(line), charts)
        self.assertIn("thinks 96, closes with 3 and answers with 30",
                      "\n".join(lines))
        self.assertIn("| SADAS, 96 + 3 + 30 | 50.0 | 50.0 | 50.0 | 50.0 |", lines)
        settings = [args[args.index("--set") + 1] for args in asked]
        self.assertEqual(settings, ["think=on,most=96,close=</think>",
                                    "gate=always"])
        self.assertEqual(list(charts), ["sadas-speed"])


class LengthTest(unittest.TestCase):
    def test_split(self):
        self.assertEqual(sadas_tables.split([5, 7, 8, 7, 8, 9, 4], [7, 8, 9]),
                         (3, 1))
        self.assertEqual(sadas_tables.split([5, 7, 8], [7, 8]), (1, 0))
        self.assertEqual(sadas_tables.split([5, 7], [7, 8]), (2, None))

    def test_lengths(self):
        lines, charts = [], {}

        class Answers:
            """Thinks as long as it may, but for the last question; the plain form
            answers with a token more."""

            def document(self, command, *args):
                if command == "tokenize":
                    return {"tokens": [7, 8]}
                settings = args[args.index("--set") + 1]
                most = int(settings.rpartition("=")[2])
                more = "--plain" in args and 512 in args
                ids = [[1] * most + [7, 8] + [2] * (10 * n + more)
                       for n in (1, 2, 3)] + [[1, 1]]
                return {"prompt_tokens": 1234,
                        "output": [{"tokens": one} for one in ids]}

        with tempfile.TemporaryDirectory() as scratch:
            text = pathlib.Path(scratch) / "book.txt"
            text.write_text("a text")
            sadas_tables.length_table(
                Answers(), text, pathlib.Path(scratch),
                lambda line="": lines.append(line), charts)
        self.assertEqual(lines[-3:], [
            "| 128 | full | 96 (2 to 128) | 20 (10 to 30) | 2 | 8 of 8 |",
            "| 128 | plain | 96 (2 to 128) | 21 (11 to 31) | 2 | 2 of 8 |",
            "| 128 | verified | 96 (2 to 128) | 20 (10 to 30) | 2 | 8 of 8 |"])
        self.assertIn("about 1,234 tokens", "\n".join(lines))
        self.assertEqual(list(charts), ["sadas-tokens"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
