#!/usr/bin/env python3
"""Compares the program on a GPU whose kernels the host executor runs with
itself on the CPU.

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
TEXT = "The cat sat on the mat. " * 12


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

    def both(self, *args):
        return self.document(*args, device="cpu"), self.document(*args)

    def test_text_is_the_cpus(self):
        text = ["generate", "-p", TEXT, "-n", 12, "--ignore-eos", "-c", 512,
                "--temp", 0.8, "--seed", 3]
        small = ["--budget", 32, "--chunk", 8, "--sink", 4, "--window", 16]
        for flags in ([],
                      ["--simulate", "device=64MB,link=10GB/s"],
                      ["--policy", "triforce", *small, "--verify", "coupled"]):
            cpu, far = self.both(*text, *flags)
            self.assertEqual(far["output"][0]["tokens"],
                             cpu["output"][0]["tokens"], flags)
            # A CPU's rates predict nothing here.
            self.assertNotIn("predicted", far)
            self.assertIn("no times are predicted", "".join(far["warnings"]))

    def test_a_text_that_was_read_opens(self):
        with tempfile.TemporaryDirectory() as folder:
            book = pathlib.Path(folder) / "book.txt"
            book.write_text("One cat sat on two mats. " * 80)
            env = {**os.environ, "XDG_CACHE_HOME": folder}
            linked = ["--simulate", "device=36MB,link=10GB/s"]
            view = ["--policy", "triforce", "--budget", 256]

            def ask(*flags, device="cuda"):
                return self.document("ask", book, "who?", "-n", 8, "-c", 1600,
                                     "--ignore-eos", *flags, device=device,
                                     env=env)

            # If the GPU has room for all of the KV no prompt is saved.
            self.assertEqual(ask()["cached_tokens"], 0)
            read = ask(*linked)
            self.assertEqual(read["cached_tokens"], 0)
            for flags in [], view:
                opened = ask(*linked, *flags)
                self.assertGreater(opened["cached_tokens"], 1100)
                self.assertEqual(
                    opened["ledger"]["disk_read_bytes"],
                    opened["ledger"]["formula"]["opened_pages"]
                    * opened["ledger"]["formula"]["page_bytes"])
                again = ask(*linked, *flags, "--no-cache", device="cpu")
                self.assertEqual(opened["output"][0]["tokens"],
                                 again["output"][0]["tokens"])

    def test_logits_are_the_cpus(self):
        with tempfile.TemporaryDirectory() as folder:
            tokens = pathlib.Path(folder) / "tokens.txt"
            tokens.write_text(" ".join(str(7 * i % 90) for i in range(50)))
            logits = []
            for device in ("cpu", "cuda"):
                path = pathlib.Path(folder) / device
                done = run("eval", "--tokens", tokens, "--logits", path,
                           "--deterministic", device=device)
                self.assertEqual(done.returncode, 0, done.stderr.decode())
                logits.append(path.read_bytes())
            self.assertEqual(logits[0], logits[1])

    def test_a_library_for_gpus_is_not_asked(self):
        asked = {**os.environ, "TIERCEL_CUBLASLT": "1"}
        prompt = ["generate", "-p", TEXT, "-n", 2, "--ignore-eos", "-c", 512]
        self.assertEqual(
            self.document(*prompt, env=asked)["output"][0]["tokens"],
            self.document(*prompt, device="cpu")["output"][0]["tokens"])

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
