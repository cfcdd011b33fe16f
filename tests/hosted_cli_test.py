#!/usr/bin/env python3
"""The program on a GPU whose kernels the host executor runs: what it plans,
chooses and says. Its texts are compared by same_bytes.py.

    hosted_cli_test.py TIERCEL_HOSTED CHECKPOINTS

Standard library only.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TIERCEL, CHECKPOINTS = sys.argv[1:3]
CHAT = os.path.join(CHECKPOINTS, "llama_chat.gguf")


def run(*args, device="cuda", env=None, model=CHAT):
    return subprocess.run(
        [TIERCEL, *map(str, args), "--device", device, "-m", model, "-t", "2"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env=env)


class HostedCliTest(unittest.TestCase):

    def document(self, *args, device="cuda", env=None, model=CHAT):
        done = run(*args, "--json", "--no-progress", device=device, env=env,
                   model=model)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return json.loads(done.stdout)

    def test_a_cpus_rates_predict_nothing(self):
        for flags in [], ["--simulate", "device=64MB,link=10GB/s"]:
            told = self.document("generate", "-p", "x", "-n", 2, "-c", 512,
                                 *flags)
            self.assertNotIn("predicted", told)
            self.assertIn("no times are predicted", "".join(told["warnings"]))

    def test_bench_has_no_share_of_the_cpus_peak(self):
        rows = self.document("bench", "-p", 8, "-n", 2, "-r", 1)
        for row in rows:
            self.assertEqual(row["backend"], "cuda")
            self.assertIsNone(row["peak_share"])
            self.assertGreater(row["device_bytes"], 0)

    def test_plan_is_of_the_gpus_memory(self):
        plan = self.document("plan", "-c", 512, "--device-memory",
                             "64MiB")
        self.assertTrue(plan["fits"])
        self.assertEqual(plan["device_bytes"], 64 << 20)
        self.assertEqual(plan["tiers"]["host"]["kv"], 0)
        self.assertIsNone(plan["ttft_s"])
        refused = run("generate", "-p", "x", "-c", 512,
                      "--device-memory", "1MB")
        self.assertEqual(refused.returncode, 4, refused.stderr.decode())

    def test_a_fast_prompts_reading_is_no_exact_one(self):
        with tempfile.TemporaryDirectory() as folder:
            text = pathlib.Path(folder) / "text.txt"
            text.write_text("The owl sleeps by day. " * 60)
            env = {**os.environ, "XDG_CACHE_HOME": folder}

            def kept(*flags):
                told = self.document("summarize", text, "-n", 4, "--temp", 0,
                                     "-c", 512, *flags, env=env)
                return told["resumed"]["nodes"]

            self.assertEqual(kept(), 0)
            self.assertGreater(kept(), 0)
            self.assertEqual(kept("--deterministic"), 0)
            self.assertGreater(kept("--deterministic"), 0)

    def test_the_count_of_ranks_is_chosen(self):
        # The executor simulates four GPUs.
        gqa = os.path.join(CHECKPOINTS, "llama_gqa.gguf")
        auto = ["-c", 1000, "--tensor-parallel", "auto"]
        slow = ["--simulate", "device=1kB,link=2GB/s"]

        def plan(*flags, device="cuda"):
            done = run("plan", *auto, *flags, "--json", device=device,
                       model=gqa)
            return json.loads(done.stdout)

        for device, flags, ranks in (("cuda", [], 1), ("cpu", [], 1),
                                     ("cuda", slow, 4), ("cpu", slow, 1)):
            chosen = plan(*flags, device=device)
            self.assertEqual(len(chosen.get("ranks", [0])), ranks,
                             (device, flags))
        least = max(rank["min_device_bytes"] for rank in plan(*slow)["ranks"])
        with tempfile.TemporaryDirectory() as folder:
            ids = pathlib.Path(folder) / "ids"
            ids.write_text("1 2 3 4 5 " * 40)
            tokens = ["generate", *auto, "-n", 3, "--ignore-eos", "--tokens",
                      ids]
            many = self.document(*tokens, "--simulate",
                                 "device=%d,link=2GB/s" % least, model=gqa)
            one = self.document(*tokens, device="cpu", model=gqa)
        self.assertEqual(len(many["ranks"]), 4)
        self.assertEqual(len(one["ranks"]), 1)
        self.assertEqual(many["output"][0]["tokens"],
                         one["output"][0]["tokens"])

    def test_auto_is_the_cpu(self):
        rows = self.document("bench", "-p", 8, "-n", 0, "-r", 1, device="auto")
        self.assertEqual([row["backend"] for row in rows], ["cpu"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
