"""Runs `tiercel bench` as a user does.

    cli_bench_test.py TIERCEL CHECKPOINTS
"""

import errno
import json
import os
import shutil
import statistics
import sys
import time
import unittest

from cli_testing import (CHECKPOINTS, IDS_ONLY, CHAT, run,
                         without_peak_warnings, write_deeper, Case)


class BenchTest(Case):
    ARGS = ["bench", "-m", IDS_ONLY, "-p", "8", "-n", "4", "-d", "0,16", "-r",
            "2", "-t", "1"]

    def test_the_documents(self):
        rows = self.document(*self.ARGS)
        self.assertEqual([row["test"] for row in rows],
                         ["pp8", "tg4", "pp8@d16", "tg4@d16"])
        self.assertEqual([(row["n_prompt"], row["n_gen"], row["n_depth"])
                          for row in rows],
                         [(8, 0, 0), (0, 4, 0), (8, 0, 16), (0, 4, 16)])
        for row in rows:
            self.assertEqual(len(row["samples_ts"]), 2)
            self.assertGreater(row["avg_ts"], 0)
            self.assertEqual(row["n_threads"], 1)
            self.assertEqual(row["bytes_per_token"] is None,
                             row["n_gen"] == 0)
            self.assertEqual(row["peak_share"] is None, row["n_gen"] == 0)

    def test_the_model_is_as_inspect_has_it(self):
        described = self.document("inspect", IDS_ONLY)
        (row,) = self.document("bench", "-m", IDS_ONLY, "-p", "8", "-n", "0",
                               "-r", "1", "-t", "2")
        self.assertEqual(row["model_n_params"], described["parameters"])
        self.assertEqual(row["model_size"], sum(
            tensor["bytes"] for tensor in described["tensors"]))
        self.assertEqual(row["model_type"], "llama f32")
        self.assertEqual(row["n_threads"], 2)
        self.assertEqual(row["machine"]["threads"], 2)

    def test_a_peak_measured_beside_other_work_is_said(self):
        result = run("bench", "-m", IDS_ONLY, "-p", "4", "-n", "0", "-r", "1",
                     "-t", "1,2", "-o", "jsonl")
        warnings = []
        for row in map(json.loads, result.stdout.splitlines()):
            self.assertEqual(len(row["warnings"]),
                             0 if row["machine"]["steady"] else 1)
            warnings += row["warnings"]
        self.assertEqual(result.stderr.decode(), "".join(
            f"warning: {warning}\n" for warning in warnings))

    def test_a_session_warns_as_of_a_text_that_is_generated(self):
        text = self.path("text.txt", b"one two three " * 40)
        sfi = ["--policy", "sfi", "--budget", "32", "--window", "24", "--set"]
        speed = ["--policy", "speed", "--plain"]  # not trained for
        for form, flags in (
                ("md", [*sfi, "gap=2"]), ("jsonl", [*sfi, "fire=start"]),
                ("jsonl", speed),
                ("jsonl", [*sfi, "gap=2", "--verify-against", "full"])):
            warnings = self.document("generate", "-m", CHAT, "-f", text, "-n",
                                     "4", *flags)["warnings"]
            self.assertEqual(len(warnings), "fire=start" not in flags)
            result = run("bench", "-m", CHAT, "-f", text, "-p", "4", "-n", "4",
                         "-r", "1", "-d", "30,90", "-t", "1,2", "-o", form,
                         *flags)
            self.assertEqual(result.returncode, 0, result.stderr)
            # A warning is said once for all sessions, and is in every row.
            self.assertEqual(
                without_peak_warnings(result.stderr).decode(),
                "".join(f"warning: {warning}\n" for warning in warnings))
            if form == "md":
                continue
            rows = [json.loads(line) for line in result.stdout.splitlines()]
            self.assertEqual(len(rows), 8)
            for row in rows:
                peaks = 0 if row["machine"]["steady"] else 1
                self.assertEqual(row["warnings"][peaks:], warnings)

    def test_a_compressed_model_and_its_compressed_text(self):
        model = os.path.join(CHECKPOINTS, "quant32", "q4_0.gguf")
        args = ["bench", "-m", model, "-p", "0", "-r", "1", "-t", "1", "-n",
                "1", "-d", "0,16", "-ctk", "q8_0"]
        alone, after = self.document(*args)
        # Norms are f32; most bytes are not.
        self.assertEqual(alone["model_type"], "llama q4_0")
        config = self.document("inspect", model)["config"]
        values = config["layers"] * config["kv_heads"] * config["head_dim"]
        # 32 values of K take 34 bytes, one of V takes 2.
        self.assertEqual(after["bytes_per_token"] - alone["bytes_per_token"],
                         16 * values * (34 / 32 + 2))

    def test_bytes_of_a_token(self):
        args = ["bench", "-m", IDS_ONLY, "-p", "0", "-r", "1", "-t", "1", "-n",
                "1,4", "-d", "0,16"]
        described = self.document("inspect", IDS_ONLY)
        # Matrices are packed by 16 rows; of the embedding one row is read.
        matrices = [tensor for tensor in described["tensors"]
                    if len(tensor["shape"]) == 2 and
                    tensor["name"] != "model.embed_tokens.weight"]
        read = sum(-(-tensor["shape"][0] // 16) * 16 * tensor["shape"][1] * 4
                   for tensor in matrices)
        config = described["config"]
        values = config["layers"] * config["kv_heads"] * config["head_dim"]
        for types, position in (((), 2 * values * 2),
                                (("-ctk", "f32", "-ctv", "bf16"),
                                 values * 4 + values * 2)):
            rows = {row["test"]: row for row in self.document(*args, *types)}
            # A step attends to the positions before it, and to its own.
            weights = rows["tg1"]["bytes_per_token"] - position
            self.assertEqual(weights, read)
            for test, positions in (("tg4", 2.5), ("tg1@d16", 17),
                                    ("tg4@d16", 18.5)):
                self.assertEqual(rows[test]["bytes_per_token"],
                                 weights + positions * position)
            for row in rows.values():
                self.assertAlmostEqual(
                    row["peak_share"] * row["machine"]["read_bytes_per_s"],
                    row["avg_ts"] * row["bytes_per_token"], delta=1)

    def test_rates_and_times_are_of_the_same_runs(self):
        for model in (["-m", IDS_ONLY], ["-m", CHAT, "-f", self.path(
                "text", b"a b " * 40), "--draft", "ngram"]):
            prompt, one, two, many = self.document(
                "bench", *model, "-p", "8", "-n", "1,2,30", "-d", "20", "-r",
                "1", "-t", "1")
            (rate,) = prompt["samples_ts"]
            self.assertEqual(prompt["avg_ts"], rate)
            self.assertIsNone(prompt["stddev_ts"])
            self.assertAlmostEqual(prompt["ttft_s"] * rate, 8)
            nothing = {"p50": None, "p90": None, "p99": None, "samples": 0}
            self.assertEqual(prompt["tbt_ms"], nothing)
            self.assertEqual(one["tbt_ms"], nothing)
            self.assertLessEqual(one["ttft_s"], 1 / one["avg_ts"])
            gap = two["tbt_ms"]["p50"]
            self.assertEqual(two["tbt_ms"], {"p50": gap, "p90": gap,
                                             "p99": gap, "samples": 1})
            # The rate of a generated text begins behind its first token.
            first = 0 if "--draft" in model else 1
            begun = first * two["ttft_s"]
            self.assertLessEqual(begun + gap / 1e3, (1 + first) / two["avg_ts"])
            times = many["tbt_ms"]
            self.assertLessEqual(times["p50"], times["p90"])
            self.assertLessEqual(times["p90"], times["p99"])
            # Fifteen of the gaps are at least as long as the middle one.
            begun = first * many["ttft_s"]
            self.assertLessEqual(begun + 15 * times["p50"] / 1e3,
                                 (29 + first) / many["avg_ts"])
        for row in self.document("bench", "-m", IDS_ONLY, "-p", "8", "-n", "4",
                                 "-r", "3"):
            samples = row["samples_ts"]
            self.assertEqual(len(samples), 3)
            self.assertAlmostEqual(row["avg_ts"] / statistics.mean(samples), 1)
            self.assertAlmostEqual(
                row["stddev_ts"] / statistics.stdev(samples), 1)
            self.assertEqual(row["tbt_ms"]["samples"],
                             3 * 3 if row["n_gen"] else 0)

    def test_no_rate_is_beyond_the_link(self):
        # The time of a prompt includes the copies of its pages to the host.
        tokens = self.path("tokens", b"1 2 3 4 5 6 7 8 9 10 " * 60)
        common = ["-m", IDS_ONLY, "--tokens", tokens, "--simulate",
                  "device=64MB,link=1MB/s"]
        generated = self.document("generate", *common, "-n", "1")
        prefill = generated["ledger"]["phases"]["prefill"]
        self.assertEqual(prefill["d2h_bytes"], 2 * (600 // 128) *
                         generated["ledger"]["formula"]["page_bytes"])
        least = prefill["d2h_bytes"] / 1e6
        self.assertGreaterEqual(prefill["seconds"], least)
        self.assertGreaterEqual(prefill["link_busy_s"], least * (1 - 1e-6))
        self.assertLessEqual(generated["prefill_tok_s"], 600 / least)
        self.assertGreaterEqual(generated["ttft_s"], least)
        (row,) = self.document("bench", *common, "-p", "600", "-n", "0", "-r",
                               "2")
        self.assertTrue(row["simulated"])
        self.assertLessEqual(max(row["samples_ts"]), 600 / least)
        self.assertGreaterEqual(row["ttft_s"], least)

    def test_the_other_forms(self):
        lines = self.succeed(*self.ARGS, "-o", "jsonl").splitlines()
        self.assertEqual(len([json.loads(line) for line in lines]), 4)
        lines = self.succeed(*self.ARGS, "-o", "csv").splitlines()
        self.assertEqual(len(lines), 5)
        self.assertIn("| tg4 @ d16 |", self.succeed(*self.ARGS).decode())

    def test_after_an_error_rows_that_are_done_stay(self):
        """The FIFO has a text for the tests of the first thread count alone."""
        fifo = self.path("fifo")
        os.mkfifo(fifo)
        for form in (["--json"], ["-o", "json"], ["-o", "jsonl"],
                     ["-o", "csv"], ["-o", "md"]):
            process = self.spawn("bench", "-m", CHAT, "-f", fifo, "-p", "4",
                                 "-n", "0", "-r", "1", "-t", "1,2", *form)
            with open(fifo, "wb") as text:
                text.write(b"a b c d e f")
            while process.poll() is None:  # a second reader gets no bytes
                try:
                    os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
                except OSError as error:
                    self.assertEqual(error.errno, errno.ENXIO)
                time.sleep(0.01)
            self.assertEqual(process.returncode, 3)
            out = process.stdout.read().decode()
            said = without_peak_warnings(process.stderr.read())
            if form[-1].endswith("json"):
                (row,) = json.loads(out)
                self.assertEqual(row["test"], "pp4")
                self.assertEqual(row["n_threads"], 1)
            else:
                self.assertIn("pp4", out)
            self.assertEqual(said, b"tiercel: the text has no tokens\n")

    def test_context_from_a_text(self):
        text = self.path("text", b"A cat sat on a mat, and then it left. " * 4)
        self.assertEqual(len(self.document("bench", "-m", CHAT, "-f", text,
                                           "-p", "4", "-n", "0", "-r", "1")), 1)
        self.refuse(3, "text_too_short", "bench", "-m", CHAT, "-f",
                    self.path("short", b"A"), "-p", "64", "-n", "0")
        ids = self.path("ids", b"1 2 3 4 5")
        args = ["bench", "-m", IDS_ONLY, "--tokens", ids, "-p", "0", "-r", "1"]
        self.assertEqual(len(self.document(*args, "-n", "5")), 1)
        self.refuse(3, "text_too_short", *args, "-n", "6")

    def test_tests_longer_than_the_context(self):
        made_for = self.document("inspect", CHAT)["config"]["context"]
        text = self.path("text", b"a b " * 40)
        drafts = ["--draft", "ngram", "-f", text]
        for flags, named, needed, scale in (
                (["-p", "17000", "-n", "0"], "-p 17000, -n 0, -d 0", 17000, 2),
                (["-n", "40000", "-p", "8"], "-p 8, -n 40000, -d 0", 40000, 3),
                (["-d", "0,16300"], "-p 512, -n 128, -d 16300", 16812, 2),
                (["-d", "16300", "-p", "8", "-n", "64", *drafts],
                 "-p 8, -n 64, -d 16300", 16428, 2)):
            message = self.refuse(3, "context_length_exceeded", "bench", "-m",
                                  CHAT, *flags)
            self.assertEqual(
                message, f"{named}: these tests need {needed} tokens, the "
                f"context holds {made_for}; give less, or stretch the model "
                "beyond what it was made for: --rope-scaling yarn --rope-scale "
                f"{scale}")
        row, = self.document("bench", "-m", CHAT, "-p", "0", "-n", "1", "-d",
                             "17000", "--fill", "-r", "1", "--rope-scale", "2")
        self.assertEqual(row["test"], "tg1@d17000")

    def test_texts_at_once_are_tests_of_their_own(self):
        rows = self.document("bench", "-m", CHAT, "-p", "0", "-n", "3,9", "-d",
                             "20", "--parallel", "1,5", "-r", "2")
        self.assertEqual([(row["test"], row["parallel"]) for row in rows],
                         [("tg3@d20", 1), ("tg3@d20 x5", 5),
                          ("tg9@d20", 1), ("tg9@d20 x5", 5)])
        for row in rows:
            # There is no gap before the first token of a text.
            gaps = 2 * row["parallel"] * (row["n_gen"] - 1)
            self.assertEqual(row["tbt_ms"]["samples"], gaps)
            self.assertEqual(len(row["samples_ts"]), 2)
            self.assertEqual(row["bytes_per_token"] is None,
                             row["parallel"] > 1)

    def drafted(self, model, *flags):
        """Returns the row tg24@d90 with these flags; its speculation must be
        that of `generate` after the same 90 tokens."""
        text = b"one two three " * 40
        ids = self.document("tokenize", "-m", CHAT, "--add-bos",
                            input=text)["tokens"][:90]
        flags = ["-m", model, "--temp", "0.7", "-s", "3", *flags]
        prompt, row = self.document(
            "bench", *flags, "-f", self.path("text", text), "-d", "90", "-p",
            "8", "-n", "24", "-r", "2")
        self.assertEqual(prompt["test"], "pp8@d90")
        self.assertIsNone(prompt["tokens_per_sweep"])
        self.assertEqual(row["test"], "tg24@d90")
        self.assertEqual(len(row["samples_ts"]), 2)
        self.assertGreater(row["avg_ts"], 0)
        self.assertIsNone(row["bytes_per_token"])
        generated = self.document(
            "generate", *flags, "--tokens",
            self.path("tokens", " ".join(map(str, ids)).encode()), "-n", "24",
            "--ignore-eos")["speculation"]
        self.assertEqual(row["levels"], generated["levels"])
        self.assertEqual(row["tokens_per_sweep"],
                         generated["tokens_per_sweep"])
        self.assertGreater(row["tokens_per_sweep"], 1)
        for one in (prompt, row):
            self.assertEqual(one["policy"], "triforce" if "triforce" in flags
                             else "full")
        return row

    def test_drafts_are_those_of_a_generation(self):
        view = ["--policy", "triforce", "--budget", "32", "--chunk", "8",
                "--sink", "8", "--window", "8", "--gamma2", "6"]
        for flags, draft in ((["--draft", "ngram"], "ngram"), (view, "ngram"),
                             ([*view, "--draft", "none"], "none"),
                             (["-md", CHAT], "small"),
                             (["--draft", "self", "--draft-layers", "1",
                               "--window", "8"], "self")):
            row = self.drafted(CHAT, *flags)
            self.assertEqual(row["draft"], draft)
            drafters = [level["drafter"] for level in row["levels"]]
            self.assertEqual(drafters, ([] if draft == "none" else [draft]) +
                             ["retrieval"] * ("triforce" in flags))

    def test_an_end_of_text_ends_no_row(self):
        model = self.path("model")
        shutil.copytree(CHAT, model)
        path = os.path.join(model, "config.json")
        with open(path) as file:
            config = json.load(file)
        config["eos_token_id"] = list(range(config["vocab_size"]))
        with open(path, "w") as file:
            json.dump(config, file)
        row = self.drafted(model, "--draft", "ngram")
        self.assertGreater(row["levels"][0]["drafted"], 0)

    def test_drafts_in_the_other_forms(self):
        args = ["bench", "-m", CHAT, "-f", self.path("text", b"a b " * 40),
                "-p", "4", "-n", "8", "-d", "20", "-r", "1", "--policy",
                "triforce", "--draft", "none", "--window", "8"]
        header, _, prompt, row, *_ = self.succeed(*args).decode().splitlines()
        self.assertIn("| policy | draft |", header)
        self.assertIn("| triforce | none | pp4 @ d20 |", prompt)
        self.assertRegex(row, r"\| tg8 @ d20 \| .* \| - \| - \| \d+\.\d{3} \| "
                         r"\d+\.\d\d / \d+\.\d\d / \d+\.\d\d \| \d+\.\d \|$")
        names, prompt, row = self.succeed(*args, "-o", "csv").splitlines()
        self.assertIn(b'"policy","draft","tokens_per_sweep"', names)
        self.assertIn(b'"triforce","none",,', prompt)
        self.assertRegex(row, rb'"triforce","none",\d')

    def test_drafts_against_none(self):
        # With --temp above 0 drafts verified by residual sampling give another
        # text, coupled ones the same.
        args = ["-m", CHAT, "-f", self.path("text", b"a b " * 40), "-n", "24",
                "-d", "60", "--temp", "0.9", "-s", "4", "--draft", "self",
                "--window", "8", "--verify-against", "full"]
        bench = ["bench", "-p", "4", "-r", "2", *args]
        for verify in ("coupled", "residual"):
            prompt, row = self.document(*bench, "--verify", verify)
            self.assertIsNone(prompt["baseline"])
            baseline = row["baseline"]
            self.assertEqual(baseline["agree"], verify == "coupled")
            self.assertAlmostEqual(baseline["speedup"], row["avg_ts"] /
                                   baseline["decode_tok_s"])
            # The baseline has no view; without a link no page counts as
            # resident.
            self.assertGreater(row["device_bytes"], baseline["device_bytes"])
            self.assertGreater(baseline["device_bytes"], 0)
            self.assertIsNone(baseline["resident_pages"])
            if verify == "coupled":
                self.assertIsNone(baseline["first_difference"])
            else:
                self.assertLess(baseline["first_difference"], 24)
        header, _, prompt, row, *_ = self.succeed(*bench).decode().splitlines()
        self.assertTrue(header.endswith("| speed-up | agrees with full |"))
        self.assertTrue(prompt.endswith("| - | - |"), prompt)
        self.assertRegex(row, r"\| \d+\.\d\d \| same distribution \|$")
        self.assertIn("has no effect", self.refuse(
            2, "usage", "bench", "-m", CHAT, "--verify-against", "full"))

    def test_both_sides_have_the_same_device(self):
        model = self.path("deeper.gguf")
        write_deeper(model, 3)
        view = ["--policy", "triforce", "--budget", "256", "--window", "8"]
        context = 700 + 8 + 64  # with room for the longest block
        plan = run("plan", "-m", model, "-c", str(context), *view, "--simulate",
                   "device=1kB,link=10GB/s", "--json")
        device = json.loads(plan.stdout)["min_device_bytes"]
        prompt, row = self.document(
            "bench", "-m", model, "-f", self.path("text", b"a b " * 400), "-p",
            "8", "-n", "8", "-d", "700", "-r", "1", *view, "--simulate",
            f"device={device},link=10GB/s", "--verify-against", "full")
        self.assertEqual(row["device_bytes"], device)
        self.assertEqual(prompt["device_bytes"], device)
        self.assertLessEqual(row["baseline"]["device_bytes"], device)
        self.assertGreater(row["baseline"]["resident_pages"], 0)

    def test_depths_that_nobody_read(self):
        args = ["bench", "-m", IDS_ONLY, "-n", "6", "-d", "200", "-r", "1"]
        read = self.document(*args, "-p", "4")
        filled = self.document(*args, "-p", "4", "--fill", "--no-warmup")
        self.assertEqual([row["test"] for row in filled],
                         ["pp4@d200", "tg6@d200"])
        for row, other in zip(filled, read):
            self.assertIs(row["filled"], True)
            self.assertIs(row["warmed_up"], False)
            self.assertIs(other["warmed_up"], True)
            self.assertIs(other["filled"], False)
            self.assertEqual(row["bytes_per_token"], other["bytes_per_token"])
            self.assertEqual(row["backend"], "cpu filled")
        # Ids are enough, also for a policy, and the baseline is filled, too.
        (row,) = self.document(
            *args, "-p", "0", "--fill", "--policy", "sfi", "--plain",
            "--budget", "8", "--window", "8", "--set",
            "trigger=fixed,interval=1,evidence=4", "--verify-against", "full")
        self.assertIs(row["baseline"]["agree"], True)
        # The last 64 tokens of a depth are computed.
        for wrong in (["-d", "0"], ["-d", "200,64"],
                      ["-d", "99", "--policy", "speed"]):
            self.assertIn("--fill", self.refuse(2, "usage", "bench", "-m",
                                                IDS_ONLY, "--fill", *wrong))

    def test_drafts_need_a_text(self):
        text = self.path("text", b"a b " * 40)
        for flags in (["--draft", "ngram"], ["--policy", "triforce"],
                      ["-md", CHAT]):
            args = ["bench", "-m", CHAT, "-p", "0", "-n", "4", *flags]
            self.assertIn("-f FILE", self.refuse(2, "usage", *args, "-d", "9"))
            self.assertIn("-d,--n-depth",
                          self.refuse(2, "usage", *args, "-f", text))
            # The row needs only the text before it.
            self.assertEqual(len(self.document(*args, "-f", text, "-d", "80",
                                               "-r", "1")), 1)
            self.refuse(3, "text_too_short", *args, "-f", text, "-d", "900")
        self.refuse(2, "usage", "bench", "-m", CHAT, "--policy", "speed")
        self.refuse(3, "draft_vocabulary", "bench", "-m", CHAT, "-f", text,
                    "-p", "0", "-d", "9", "-md", IDS_ONLY)
        self.refuse(2, "invalid_argument", "bench", "-m", CHAT, "-f", text,
                    "-p", "0", "-d", "9", "--draft", "self", "--draft-layers",
                    "3")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
