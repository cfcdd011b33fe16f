"""Tests of draft_ahead.py.

    draft_ahead_test.py TIERCEL CHECKPOINTS
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import draft_ahead
from triforce import Runs

TIERCEL, CHECKPOINTS = sys.argv[1:3]


def run(rate, sweeps, ahead):
    return Runs([{"decode_tok_s": rate,
                  "speculation": {"sweeps": sweeps,
                                  "levels": [{"ahead": ahead}]}}])


class DraftAheadTest(unittest.TestCase):
    def test_a_row_is_of_runs_by_turns(self):
        pairs = [(run(12, 10, 5), run(10, 10, 0)),
                 (run(9, 30, 5), run(10, 30, 0))]
        devices = ["device=3000kB,link=1MB/s", "device=2000kB,link=1MB/s"]
        self.assertEqual(
            draft_ahead.row(7022, 16, 40, devices, pairs),
            ["7,022", "16", "40", "3, 2", "25%", "10.5", "1.05"])

    def test_the_program_has_the_fields(self):
        with tempfile.TemporaryDirectory() as folder:
            text = pathlib.Path(folder) / "text"
            text.write_text("One day a fox and a hen met. " * 12)
            command = [TIERCEL, "generate", "-m",
                       f"{CHECKPOINTS}/llama_chat.gguf", "-f", text, "-n",
                       "60", "--ignore-eos", "--json", "--no-progress",
                       "--policy", "triforce", "--gamma2", "3", "--sink", "8",
                       "--budget", "200", "--window", "16", "--chunk", "8",
                       "-c", "420", "--temp", "0.7", "--verify", "coupled"]
            simulated = ["--simulate", "device=28MB,link=1GB/s"]
            documents = [
                json.loads(subprocess.run(
                    [*command, *flags], capture_output=True, check=True).stdout)
                for flags in ([*simulated, "--draft-ahead"], [])]
        tokens = [document["output"][0]["tokens"] for document in documents]
        self.assertEqual(*tokens)
        # All pages of two layers are on that device, so that no sweep waits.
        self.assertEqual(Runs(documents[:1]).level("ahead"), 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
