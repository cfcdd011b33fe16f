#!/usr/bin/env python3
"""Tests of batch.py: stopped midway, it answers each line once.

    ray_test.py TIERCEL

With the real model, $TIERCEL_MODEL, by a Python that finds the packages of
requirements.txt.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import pyarrow.parquet

TIERCEL = os.path.abspath(sys.argv[1])
SCRIPT = pathlib.Path(__file__).with_name("batch.py")
DEADLINE_S = 600
FLAGS = ["-c", "1024", "--no-cache"]


def request(number):
    drawn = {"max_tokens": 16, "temperature": 0.8 * (number % 2),
             "seed": number}
    if number == 7:
        drawn["n"] = 2  # refused
    if number % 3 == 0:
        url, asked = "/v1/completions", {"prompt": f"Story {number}:"}
    else:
        url, asked = "/v1/chat/completions", {"messages": [
            {"role": "user", "content": f"What is {number}?"}]}
    return {"custom_id": f"q{number}", "method": "POST", "url": url,
            "body": {"model": "any", **asked, **drawn}}


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def said(line):
    """The parts of an answer that are the same in all runs."""
    response = line["response"]
    body = response["body"]
    return response["status_code"], body.get("choices"), body.get("error")


class RayTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.input = self.folder / "in.jsonl"
        self.output = self.folder / "out.jsonl"

    def start(self):
        return subprocess.Popen(
            [sys.executable, SCRIPT, "--work", self.folder / "work",
             "--workers", "2", "--lines", "4", "--tiercel", TIERCEL,
             self.input, self.output, "--", *FLAGS], start_new_session=True)

    def kept(self):
        """The files that say which lines are answered, 4 of them in each."""
        return [path for path in (self.folder / "work/checkpoint").rglob("*")
                if path.suffix == ".parquet" and "pending" not in path.name]

    def test_a_batch_that_is_killed_goes_on(self):
        requests = [request(number) for number in range(48)]
        self.input.write_text("".join(json.dumps(one) + "\n"
                                      for one in requests))
        first = self.start()
        self.addCleanup(first.kill)
        end = time.monotonic() + DEADLINE_S
        while len(self.kept()) < 3:
            self.assertIsNone(first.poll(), "it ended too early")
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
        self.assertFalse(self.output.exists())
        before = set()
        for path in self.kept():
            table = pyarrow.parquet.read_table(path)
            before.update(table.column("custom_id").to_pylist())
        self.assertLess(len(before), len(requests))
        begun_s = time.time()

        self.assertEqual(self.start().wait(DEADLINE_S), 0)
        lines = lines_of(self.output)
        answers = {line["custom_id"]: line for line in lines}
        self.assertEqual(len(answers), len(lines))
        self.assertEqual(set(answers), {one["custom_id"] for one in requests})
        for name, line in answers.items():  # none is answered twice
            created = line["response"]["body"].get("created")
            if created is not None and name in before:
                self.assertLess(created, begun_s)

        # A batch that has ended has nothing more to answer.
        self.assertEqual(self.start().wait(DEADLINE_S), 0)
        self.assertEqual(lines_of(self.output), lines)

        batch = self.folder / "batch.jsonl"
        done = subprocess.run([TIERCEL, "batch", self.input, "-o", batch,
                               *FLAGS], capture_output=True)
        self.assertEqual(done.returncode, 1, done.stderr)  # one is refused
        for line in lines_of(batch):
            self.assertEqual(said(answers[line["custom_id"]]), said(line))
        self.assertEqual(said(answers["q7"])[0], 400)


if __name__ == "__main__":
    unittest.main(argv=["ray_test"])
