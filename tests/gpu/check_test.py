#!/usr/bin/env python3
"""Tests the check of a GPU with programs that crash, hang, lose the device or
cannot write. Standard library only."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import page
import programs
import record
import steps

# A program that behaves like GoogleTest's: each case is a shell command.
PROGRAM = """#!/bin/bash
all="{names}"
for flag in "$@"; do
  case $flag in
    --gtest_filter=*) chosen=${{flag#*=}} ;;
    --gtest_list_tests) listed=1 ;;
  esac
done
if [[ -n $listed ]]; then
  echo "Suite."
  for name in $all; do echo "  ${{name#Suite.}}  # on the device"; done
  exit
fi
echo run >>"{log}"
failed=0
for name in $all; do
  [[ :$chosen: == *:$name:* ]] || continue
  echo "[ RUN      ] $name"
  case $name in
{bodies}
  esac
done
exit $failed
"""
OK = 'echo "[       OK ] $name (7 ms)"'
FAILS = 'echo "got 1, need 2"; failed=1; echo "[  FAILED  ] $name (3 ms)"'
LOST = (f'echo "device_lost: {programs.LOST}"; failed=1; '
        'echo "[  FAILED  ] $name (1 ms)"')


class CasesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def outcomes(self, bodies, each=60, seconds=60):
        """Returns {case: (passed, why)} and the number of processes."""
        names = [f"Suite.{name}" for name in bodies]
        log = self.folder / "log"
        log.write_text("")
        program = self.folder / "program"
        program.write_text(PROGRAM.format(
            names=" ".join(names), log=log, bodies="\n".join(
                f"    {name}) {body} ;;"
                for name, body in zip(names, bodies.values()))))
        program.chmod(0o755)
        self.assertEqual(programs.cases_of(program, "*", 10), names)
        end = time.monotonic() + seconds
        found = {}
        for one in programs.run_cases(program, names,
                                      lambda: end - time.monotonic(),
                                      each=each):
            if isinstance(one, programs.Outcome):
                self.assertNotIn(one.case, found)
                found[one.case.split(".")[1]] = (one.passed, one.why)
        return found, len(log.read_text().split())

    def test_a_failure_is_told_and_hides_none(self):
        found, processes = self.outcomes({"A": OK, "B": FAILS, "C": OK})
        self.assertEqual([one[0] for one in found.values()],
                         [True, False, True])
        self.assertIn("got 1, need 2", found["B"][1])
        self.assertEqual(processes, 1)

    def test_a_crash_ends_one_case(self):
        found, processes = self.outcomes(
            {"A": OK, "B": "kill -SEGV $$", "C": OK, "D": "exit 3", "E": OK})
        self.assertEqual([one[0] for one in found.values()],
                         [True, False, True, False, True])
        self.assertIn("exit -11", found["B"][1])
        self.assertIn("exit 3", found["D"][1])
        self.assertEqual(processes, 3)

    def test_a_case_that_hangs_is_ended_with_its_children(self):
        began = time.monotonic()
        found, processes = self.outcomes(
            {"A": OK, "B": "sleep 50 & sleep 50", "C": OK}, each=0.1)
        self.assertLess(time.monotonic() - began, 40)
        self.assertEqual([one[0] for one in found.values()],
                         [True, False, True])
        self.assertIn("did not end in its time", found["B"][1])
        self.assertEqual(processes, 2)

    # The cases after it in that process would fail, too.
    def test_a_lost_device_ends_a_process(self):
        found, processes = self.outcomes({"A": LOST, "B": OK, "C": LOST})
        self.assertEqual([one[0] for one in found.values()],
                         [False, True, False])
        self.assertEqual(processes, 2)

    def test_what_is_skipped_has_not_passed(self):
        found, _ = self.outcomes({"A": 'echo "[  SKIPPED ] $name (0 ms)"'})
        self.assertEqual(found["A"], (False, "skipped"))

    def test_a_program_that_says_nothing_has_not_passed(self):
        self.assertFalse(any(one.passed for one in programs.run_cases(
            "/bin/false", ["A.B", "A.C"], lambda: 60)
            if isinstance(one, programs.Outcome)))

    def test_time_ends_everything(self):
        found, _ = self.outcomes({"A": "sleep 30", "B": OK}, seconds=1)
        self.assertNotIn("B", found)


class RecordsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_a_later_run_knows_what_passed(self):
        first = record.Records(self.folder)
        first.add({"step": "a", "case": "x", "outcome": record.PASSED})
        first.add({"step": "a", "case": "y", "outcome": record.FAILED,
                   "why": "z"})
        first.add({"step": "a", "outcome": record.FAILED, "words": "1 of 2"})
        first.add({"step": "b", "outcome": record.PASSED, "words": "all"})
        first.add({"step": "c", "outcome": record.OUT_OF_TIME, "words": ""})
        with open(self.folder / record.Records.FILE, "a") as file:
            file.write('{"step": "d", "outco')  # the run was killed here
        other = self.folder / "other"
        other.mkdir()
        second = record.Records(other, self.folder)
        self.assertTrue(second.is_known("a", "x"))
        self.assertFalse(second.is_known("a", "y"))
        self.assertEqual([step for step in "abcd" if second.is_finished(step)],
                         ["b"])
        self.assertEqual(second.failed(), [])
        # The new file has all lines.
        self.assertEqual(len(record.read_lines(other / record.Records.FILE)), 2)

    def test_a_full_disk_keeps_nothing_from_being_told(self):
        (self.folder / record.Records.FILE).symlink_to("/dev/full")
        records = record.Records(self.folder)
        records.add({"step": "a", "case": "x", "outcome": record.FAILED,
                     "why": "z"})
        self.assertEqual(records.unwritten, 1)
        self.assertEqual(len(records.failed()), 1)
        self.assertIn("| a | x | z |", page.of(records, "2000-01-01"))

    def test_a_page_has_what_there_is(self):
        records = record.Records(self.folder)
        for line in (
                {"step": "speed", "row": {"kind": "ceiling", "name": "device "
                 "read", "value": 1000.0, "unit": "GB/s"}},
                {"step": "speed", "row": {
                    "kind": "op", "op": "matmul", "model": "m", "part": "o",
                    "type": "f16", "rows": 1, "positions": 0, "us": 10.0,
                    "host_us": 2.0, "gb_s": 500.0, "tflop_s": 0.5}},
                {"step": "speed", "row": {
                    "kind": "torch", "op": "matmul", "model": "m",
                    "part": "o", "rows": 1, "positions": 0, "us": 20.0}},
                {"step": "deep", "row": {"label": "full", "test": "tg8",
                                         "avg_ts": 3.5}},
                {"step": "deep", "outcome": record.PASSED, "words": "1 | 2",
                 "seconds": 1}):
            records.add(line)
        text = page.of(records, "2000-01-01")
        self.assertIn("| matmul | m | o | f16 | 1 |  | 10 | 2 | 500 | 50 % | "
                      "0.5 | 20 | 2.00 |", text)
        self.assertIn("| deep | full | tg8 | 3.5 |", text)
        self.assertIn("| deep | passed | 1 | 1 / 2 |", text)


class StepsTest(unittest.TestCase):
    def test_boxes_leave_room_in_seven_minutes_for_what_is_worth_most(self):
        first = [step for step in steps.STEPS if step.name in
                 ("matrix", "tests", "logits", "texts", "prompts", "speed",
                  "link")]
        self.assertEqual([step.name for step in steps.STEPS[:7]],
                         [step.name for step in first])
        self.assertLess(sum(step.seconds for step in first), 6 * 60)

    def test_metrics_of_a_profiler(self):
        text = ('==PROF== x\n"ID","Metric Name","Metric Unit","Metric Value"\n'
                '"0","Duration","us","12.5"\n')
        self.assertEqual(steps.metrics_of(text), {"Duration [us]": "12.5"})


class EntryTest(unittest.TestCase):
    def test_wrong_words_are_told(self):
        script = pathlib.Path(__file__).resolve().parent.parent / "gpu_check.sh"
        for args, said in (([], "usage"), (["pack", "x", "far"], "sim"),
                           (["run"], "FOLDER"),
                           (["run", "/nowhere"], "no folder"),
                           (["run", tempfile.gettempdir()], "gpu-pack")):
            done = subprocess.run(
                [script, *args], stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                env={"PATH": os.environ["PATH"]})
            self.assertIn(done.returncode, (1, 2))
            self.assertIn(said, done.stderr)


if __name__ == "__main__":
    unittest.main()
