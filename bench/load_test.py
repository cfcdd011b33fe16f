#!/usr/bin/env python3
"""Tests of load.py.

    load_test.py TIERCEL CHECKPOINTS
"""

import pathlib
import subprocess
import sys
import unittest

import load

TIERCEL, CHECKPOINTS = sys.argv[1], pathlib.Path(sys.argv[2])


class TallyTest(unittest.TestCase):
    def test_a_request_always_has_one_text(self):
        tally = load.Tally()
        for number, text in (1, "a"), (2, "b"), (1, "a"):
            tally.take(number, text)
        self.assertEqual(tally.faults, [])
        tally.take(1, "c")
        self.assertEqual(tally.faults, ["request 1: 'c' is not 'a'"])

    def test_what_was_left_is_a_beginning(self):
        tally = load.Tally()
        tally.take(1, "abc")
        for number, text in (1, "ab"), (1, ""), (2, "x"):
            tally.take_beginning(number, text)
        tally.check_beginnings()
        self.assertEqual(tally.faults, [])
        tally.take_beginning(1, "b")
        tally.check_beginnings()
        self.assertEqual(len(tally.faults), 1)

    def test_times(self):
        tally = load.Tally()
        tally.take_times(10, [10.5, 11.5, 13.5])
        self.assertEqual((tally.first_s, tally.gaps_s), ([0.5], [1, 2]))
        self.assertEqual(load.times_row("gap", tally.gaps_s),
                         ["gap", "2", "1000", "2000", "2000"])
        self.assertEqual(load.times_row("gap", [])[1], "0")
        self.assertEqual(load.quantile([3, 1, 2, 4], 0.5), 2)
        self.assertEqual(load.quantile(range(100), 0.99), 98)

    def test_requests_differ(self):
        asked = [load.request_of(number) for number in range(load.REQUESTS)]
        self.assertEqual(asked, [load.request_of(number)
                                 for number in range(load.REQUESTS)])
        self.assertEqual(len({repr(one) for one in asked}), load.REQUESTS)


class LoadTest(unittest.TestCase):
    def run_load(self, *flags):
        return subprocess.run(
            [sys.executable, "-B", load.__file__, "--tiercel", TIERCEL,
             "--model", CHECKPOINTS / "llama_chat.gguf", "--minutes", "0.03",
             "--clients", "6", *flags], capture_output=True, text=True)

    def test_nothing_is_lost(self):
        done = self.run_load("--", "--parallel", "2", "--queue", "1", "-c",
                             "2048", "--no-cache")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = dict(line.strip("| ").split(" | ")[:2]
                    for line in done.stdout.splitlines()
                    if line.startswith("| "))
        self.assertEqual(rows["lost, or another text"], "0")
        self.assertGreater(int(rows["after"]), 0)
        self.assertTrue({"answered whole", "answered as a stream"} & set(rows))

    def test_what_is_lost_is_told(self):
        # A context that some requests do not fit refuses them.
        done = self.run_load("--", "-c", "20", "--no-cache")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("context_length_exceeded", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
