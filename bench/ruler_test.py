"""Samples that fit, McNemar's test, and the tables of ruler.py.

    ruler_test.py ANSWERS CHECKPOINTS
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import haystack
import ruler
from long_task import Sample, Task

ANSWERS, CHECKPOINTS = sys.argv[1:3]
SCRIPT = pathlib.Path(__file__).with_name("ruler.py")
BOOK = "Der Fuchs läuft über den Hügel. Nobody saw him there! " * 40


class Counter:
    """A program whose tokens are words."""

    def count(self, sample):
        return len((sample.message + " " + sample.prefix).split())


class SizeTest(unittest.TestCase):
    def test_no_sample_passes_the_length(self):
        text = haystack.Text(BOOK)
        length = 1501
        for task in ruler.all_tasks(length, 4):
            samples = ruler.samples_of(task, length, 2, 7, text, Counter())
            counts = [Counter().count(one) + task.new_tokens
                      for one in samples]
            with self.subTest(task.name):
                self.assertLessEqual(max(counts), length)
                self.assertGreater(max(counts), length - 60)

    def test_the_longest_sample_decides(self):
        task = Task("t", "g", 10, lambda draw, size, share, text: Sample(
            "word " * (size if share < 1 else 2 * size), "", ("",)))
        samples = ruler.samples_of(task, 100, 3, 0, None, Counter())
        self.assertEqual([Counter().count(one) for one in samples],
                         [45, 45, 90])

    def test_too_short_a_length(self):
        (task, *_) = ruler.all_tasks(100, 4)
        self.assertEqual(
            ruler.samples_of(task, 100, 1, 0, haystack.Text(BOOK), Counter()),
            [])


class PolicyTest(unittest.TestCase):
    def test_flags_are_those_of_the_program(self):
        self.assertEqual(
            ruler.policy_of("--policy sfi --plain --budget 512 --set a=1,b=2"),
            {"name": "sfi", "form": "plain", "budget": 512,
             "settings": "a=1,b=2"})
        self.assertEqual(ruler.policy_of("--draft ngram"),
                         {"name": "full", "draft": "ngram"})

    def test_the_usual_ones_are_plain(self):
        for flags in ruler.usual_policies(2048).values():
            self.assertEqual(ruler.policy_of(flags)["form"], "plain")


    def test_usual_ones_are_chosen_by_name(self):
        usual = ruler.usual_policies(800)
        self.assertEqual(list(ruler.chosen_policies(800, [])),
                         ["full", *usual])
        self.assertEqual(
            ruler.chosen_policies(800, ["window", "mine=--plain"]),
            {"full": "--policy full", "window": usual["window"],
             "mine": "--plain"})
        self.assertIn("--window 200", usual["window"])
        with self.assertRaisesRegex(SystemExit, "got mine, needs NAME=FLAGS"):
            ruler.chosen_policies(800, ["mine"])


class McNemarTest(unittest.TestCase):
    def test_known_values(self):
        for lost, gained, p in ((0, 0, 1), (1, 0, 1), (5, 0, 0.0625),
                                (1, 8, 0.0390625), (3, 3, 1),
                                (6, 16, 0.052478790283203125),
                                (0, 10, 0.001953125)):
            self.assertAlmostEqual(ruler.mcnemar(lost, gained), p)
            self.assertAlmostEqual(ruler.mcnemar(gained, lost), p)


class TableTest(unittest.TestCase):
    def test_a_cell(self):
        outcomes = ruler.Outcomes([1, 1, 1, 0.5, 0.5], [1, 0.5, 0, 1, 0],
                                  [True, False, False, False, False])
        self.assertEqual(outcomes.discordant(), (2, 1))
        self.assertEqual(outcomes.cell(), "50.0; -2 +1, p 1; 20 %")

    def test_groups_are_summed(self):
        def outcomes(full, policy):
            return {"full": ruler.Outcomes([full], [full], [True]),
                    "view": ruler.Outcomes([full], [policy], [False])}

        results = {("a", "RULER"): outcomes(1, 0),
                   ("b", "RULER"): outcomes(1, 1),
                   ("c", "records"): outcomes(0, 1)}
        lines = ruler.table(results, ["view"])
        self.assertEqual(lines[2:], [
            "| a | 1 | 100.0 | 0.0; -1 +0, p 1; 0 % |",
            "| b | 1 | 100.0 | 100.0; -0 +0, p 1; 0 % |",
            "| c | 1 | 0.0 | 100.0; -0 +1, p 1; 0 % |",
            "| **RULER** | 2 | 100.0 | 50.0; -1 +0, p 1; 0 % |",
            "| **all** | 3 | 66.7 | 66.7; -1 +1, p 1; 0 % |"])

        again = {("b", "RULER"): outcomes(0, 1)}
        lines = ruler.table(ruler.together([results, again]), ["view"])
        self.assertIn("| b | 2 | 50.0 | 100.0; -0 +1, p 1; 0 % |", lines)
        self.assertIn("| **all** | 4 | 50.0 | 75.0; -1 +2, p 1; 0 % |", lines)

    def test_names_and_lengths_are_known(self):
        for parse, wrong in ((ruler.lengths_of, "2048"),
                             (ruler.lengths_of, "2048x0"),
                             (ruler.task_names, "qa1,qa6")):
            with self.assertRaisesRegex(argparse.ArgumentTypeError,
                                        "got .*, needs"):
                parse(wrong)
        self.assertEqual(ruler.task_names("qa1,pass key"), ["qa1", "pass key"])

    def test_lengths(self):
        self.assertEqual(ruler.lengths_of("2048x10,4096x5"),
                         [(2048, 10), (4096, 5)])


class OutcomesTest(unittest.TestCase):
    class Program:
        def answer(self, sample, most, policies):
            assert most == 5
            return [{"text": policy["says"], "tokens": [policy["says"]]}
                    for policy in policies]

    def test_answers_are_scored_beside_full(self):
        task = Task("t", "g", 5, None)
        found = ruler.outcomes_of(
            task, [Sample("", "", ("cat",)), Sample("", "", ("dog",))],
            self.Program(), {"full": {"says": "cat"}, "x": {"says": "a dog"},
                             "y": {"says": "cat"}})
        self.assertEqual(vars(found["x"]), {
            "full": [1, 0], "policy": [0, 1], "same": [False, False]})
        self.assertEqual(vars(found["y"]), {
            "full": [1, 0], "policy": [1, 0], "same": [True, True]})


class RunTest(unittest.TestCase):
    def run_script(self, folder, *flags):
        book = folder / "book.txt"
        book.write_text(BOOK, encoding="utf-8")
        return subprocess.run(
            [sys.executable, "-B", SCRIPT, "--text", book, "--program",
             ANSWERS, "--threads", "1", *flags],
            env={**os.environ, "TIERCEL_MODEL":
                 os.path.join(CHECKPOINTS, "llama_chat.gguf")},
            capture_output=True, text=True)

    def test_a_run_and_what_it_keeps(self):
        with tempfile.TemporaryDirectory() as name:
            kept = pathlib.Path(name) / "answers.jsonl"
            runs = []
            for more in (["--tasks", "single 2,pass key,common words"],
                         ["--made"]):
                runs.append(self.run_script(
                    pathlib.Path(name), "--lengths", "900x2,950x1",
                    "--answers", kept, "--policy",
                    "view=--policy sfi --plain --budget 64 --window 32",
                    "--policy", "exact=--policy triforce --budget 64", *more))
                runs.append(kept.read_text())
        first, answers, second, same = runs
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertEqual(first.stdout, second.stdout)
        self.assertEqual(answers, same)
        self.assertEqual(answers.count("\n"), 6)
        for line in ("| single 2 | 2 | ", "| pass key | 2 | ", "| **all** | 4",
                     "## 900 tokens", "## 950 tokens", "## All lengths",
                     "| **all** | 6",
                     "- view: `--policy sfi --plain --budget 64 --window 32`\n",
                     "- left out, as they need more tokens: common words\n",
                     "- exact: `--policy triforce --budget 64`, exact"):
            self.assertIn(line, first.stdout)
        exact = [line.split("|")[5] for line in first.stdout.splitlines()
                 if line.startswith("| **all**")]
        self.assertIn("-0 +0, p 1; 100 %", exact[0])

    def test_a_length_beyond_the_context(self):
        with tempfile.TemporaryDirectory() as name:
            run = self.run_script(pathlib.Path(name), "--lengths", "20000x1")
            short = self.run_script(pathlib.Path(name), "--lengths", "100x1")
        self.assertEqual((run.returncode, short.returncode), (1, 1))
        self.assertIn("no task has samples of 100 tokens", short.stderr)
        self.assertIn("got 20000, needs at most the model's context of 16384",
                      run.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
