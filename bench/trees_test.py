"""Tests of trees.py.

    trees_test.py TIERCEL CHECKPOINTS
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import trees
from triforce import Runs

TIERCEL, CHECKPOINTS = sys.argv[1:3]


def run(sweeps, tokens, **level):
    return {"speculation": {"sweeps": sweeps,
                            "tokens_per_sweep": tokens / sweeps,
                            "levels": [level]}}


class TreesTest(unittest.TestCase):
    def test_a_row_counts_all_seeds(self):
        runs = Runs([run(10, 90, checked=80, accepted=60, branch_accepted=9),
                     run(10, 110, checked=120, accepted=100,
                         branch_accepted=11)])
        self.assertEqual(
            trees.count_row(7022, 1024, 16, 4, runs),
            ["7,022", "1,024", "16", "4", "10.0", "10%", "0.800"])

    def test_a_ratio_is_of_runs_by_turns(self):
        self.assertEqual(
            trees.time_row(7022, 4, 100, "3, 2", [10, 30, 20], [10, 20, 25]),
            ["7,022", "4", "100", "3, 2", "20.0", "1.00"])

    def test_the_program_has_the_fields(self):
        with tempfile.TemporaryDirectory() as folder:
            text = pathlib.Path(folder) / "text"
            text.write_text("One day a fox and a hen met. " * 12)
            done = subprocess.run(
                [TIERCEL, "generate", "-m", f"{CHECKPOINTS}/llama_chat.gguf",
                 "-f", text, "-n", "40", "--ignore-eos", "--json",
                 "--no-progress", "--sink", "8", "--window",
                 "16", "--chunk", "8",
                 *map(str, trees.flags_of(32, 8, 4, 1))],
                capture_output=True, check=True)
        runs = Runs([json.loads(done.stdout)])
        self.assertGreater(runs.level("branches"), 0)
        row = trees.count_row(300, 32, 8, 4, runs)
        self.assertGreater(float(row[4]), 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
