"""Generates with the program as a user does: summaries, answers, drafts.

    cli_generation_test.py TIERCEL CHECKPOINTS
"""

import io
import json
import os
import socket
import subprocess
import sys
import unittest
import zipfile

from cli_testing import (CHECKPOINTS, IDS_ONLY, CHAT, environment, run,
                         write_deeper, Case)


def deeper(case, link):
    """A model of three layers, and the least device that serves 1,000 tokens of
    it behind `link`."""
    model = case.path("deeper.gguf")
    write_deeper(model, 3)
    plan = run("plan", "-m", model, "-c", "1000", "--simulate",
               "device=1kB," + link, "--json")
    return model, json.loads(plan.stdout)["min_device_bytes"]


class SpeculationTest(Case):
    def test_coupled_text_is_the_same(self):
        args = ["generate", "-m", CHAT, "-p", "one two one two one two one",
                "-n", "40", "--temp", "0.7", "--ignore-eos"]
        plain = self.document(*args)
        self.assertEqual(plain["speculation"]["levels"], [])
        for length in ("1", "8", "63"):
            drafted = self.document(*args, "--draft", "ngram", "--verify",
                                    "coupled", "--gamma1", length)
            self.assertEqual(drafted["output"], plain["output"])
            (level,) = drafted["speculation"]["levels"]
            self.assertEqual(level["drafter"], "ngram")
            self.assertGreater(level["drafted"], 0)

    def test_drafts_ahead_change_no_token(self):
        deep = self.path("deep.gguf")
        write_deeper(deep, 4)
        flags = ["-m", deep, "-c", "500", "--policy", "triforce", "--budget",
                 "160", "--chunk", "8", "--sink", "8", "--window", "16"]
        least = run("plan", *flags, "--draft-ahead", "--simulate",
                    "device=1,link=1GB/s", "--json")
        device = json.loads(least.stdout)["min_device_bytes"]
        args = ["generate", *flags, "-p", "one two three " * 24, "-n", "60",
                "--temp", "0.7", "--ignore-eos", "--gamma2", "3", "--simulate",
                "device=%d,link=1GB/s" % device]
        ahead = self.document(*args, "--draft-ahead")
        alone = self.document(*args, "--verify", "coupled")
        self.assertEqual(ahead["output"][0]["tokens"],
                         alone["output"][0]["tokens"])
        used = [document["speculation"]["levels"][-1]["ahead"]
                for document in (ahead, alone)]
        self.assertGreater(used[0], 0)
        self.assertEqual(used[1], 0)
        compared = self.document(*args, "--draft-ahead", "--verify-against",
                                 "full")
        self.assertIs(compared["baseline"]["agree"], True)

    def test_triforce_is_the_same_text(self):
        args = ["generate", "-m", CHAT, "-p", "one two three " * 40, "-n",
                "40", "--temp", "0.7", "--ignore-eos"]
        small = ["--budget", "32", "--chunk", "8", "--sink", "8", "--window",
                 "8"]
        plain = self.document(*args)
        for draft, levels in ((["--draft", "none"], ["retrieval"]),
                              ([], ["ngram", "retrieval"]),
                              (["--draft", "self"], ["self", "retrieval"])):
            drafted = self.document(*args, *small, *draft, "--policy",
                                    "triforce", "--verify", "coupled",
                                    "--gamma2", "6")
            self.assertEqual(drafted["policy"], "triforce")
            self.assertEqual(drafted["output"], plain["output"])
            self.assertEqual([level["drafter"] for level in
                              drafted["speculation"]["levels"]], levels)
            self.assertEqual(
                drafted["ledger"]["phases"]["draft"]["h2d_bytes"], 0)
        plan = ["plan", "-m", CHAT, "--json"]
        views = json.loads(self.succeed(*plan, "--policy", "triforce"))
        views = views["tiers"]["device"]["views"]
        self.assertGreater(views, 0)
        fewer = json.loads(self.succeed(*plan, "--policy", "triforce",
                                        "--budget", "64"))
        self.assertLess(fewer["tiers"]["device"]["views"], views)
        # A view of 16 has no room for a sink of 20, even with one chunk.
        for sink in ("40", "20"):
            message = self.refuse(2, "invalid_argument", *args, "--policy",
                                  "triforce", "--budget", "16", "--sink", sink)
            self.assertEqual(message, "budget: got 16, need at least the "
                             "sink's " + sink)

    def test_against_full(self):
        args = ["generate", "-m", CHAT, "-p", "one two three " * 40, "-n",
                "40", "--temp", "0.9", "--ignore-eos", "--policy", "triforce",
                "--gamma1", "auto", "--gamma2", "auto", "--verify-against",
                "full"]
        same = self.document(*args, "--verify", "coupled")
        self.assertTrue(same["baseline"]["agree"])
        self.assertIsNone(same["baseline"]["first_difference"])
        self.assertAlmostEqual(
            same["baseline"]["speedup"] * same["baseline"]["decode_tok_s"] /
            same["decode_tok_s"], 1)
        for level in same["speculation"]["levels"]:
            self.assertGreater(level["cost_ratio"], 0)
        other = self.document(*args, "--cost-ratio", "7.5")
        for level in other["speculation"]["levels"]:
            self.assertEqual(level["cost_ratio"], 7.5)
        self.assertFalse(other["baseline"]["agree"])
        first = other["baseline"]["first_difference"]
        ours = other["output"][0]["tokens"]
        theirs = same["output"][0]["tokens"]
        self.assertEqual(ours[:first], theirs[:first])
        self.assertNotEqual(ours[first:first + 1], theirs[first:first + 1])

    def test_against_full_on_the_same_device(self):
        model = self.path("deeper.gguf")
        write_deeper(model, 3)
        view = ["--policy", "triforce", "--budget", "256", "--window", "8"]
        args = ["generate", "-m", model, "-p", "one two three " * 100, "-n",
                "12", "--temp", "0.7", "--ignore-eos"]
        self.assertGreater(self.document(*args)["prompt_tokens"], 700)
        link = "link=10GB/s"
        plan = run("plan", "-m", model, "-c", "1000", *view, "--simulate",
                   "device=1kB," + link, "--json")
        device = json.loads(plan.stdout)["min_device_bytes"]
        # Without -c, both have the context for which the view leaves room.
        for context in (["-c", "1000"], []):
            here = [*args, "--simulate", f"device={device},{link}"]
            drafted = self.document(*here, *context, *view, "--verify",
                                    "coupled", "--verify-against", "full")
            baseline = drafted["baseline"]
            self.assertTrue(baseline["agree"])
            self.assertEqual(drafted["output"], self.document(*args)["output"])
            formula = drafted["ledger"]["formula"]
            slot = formula["page_bytes"] * formula["layers"]
            for taken in (drafted["memory"]["device_bytes"],
                          baseline["device_bytes"]):
                self.assertLessEqual(taken, device)
                self.assertGreater(taken, device - slot)
            self.assertGreater(baseline["resident_pages"],
                               formula["resident_pages"])
            # The report of the run includes nothing of its baseline.
            alone = self.document(*here, *context, *view, "--verify",
                                  "coupled")
            self.assertEqual(drafted["memory"], alone["memory"])
            for key in ("h2d_bytes", "d2h_bytes", "formula"):
                self.assertEqual(drafted["ledger"][key], alone["ledger"][key])
            full = self.document(*here, "-c", str(drafted["context"]))
            self.assertEqual(baseline["device_bytes"],
                             full["memory"]["device_bytes"])
            self.assertEqual(baseline["resident_pages"],
                             full["ledger"]["formula"]["resident_pages"])
        note = run(*here, *view, "--verify-against", "full").stderr
        self.assertRegex(
            note, rb"device: .* taken, 0 pages resident; full: .* \d+ resident")
        # Without a simulated device the baseline takes less, by the view.
        here = self.document(*args, *view, "--verify-against", "full")
        self.assertIsNone(here["baseline"]["resident_pages"])
        self.assertEqual(here["baseline"]["device_bytes"],
                         self.document(*args)["memory"]["device_bytes"])
        self.assertLess(here["baseline"]["device_bytes"],
                        here["memory"]["device_bytes"])

    def test_no_baseline_is_beyond_the_link(self):
        link = "link=4MB/s"
        model, device = deeper(self, link)
        document = self.document(
            "generate", "-m", model, "-p", "one two three " * 100, "-n", "6",
            "-c", "1000", "--ignore-eos", "--draft", "ngram", "--simulate",
            f"device={device},{link}", "--verify-against", "full")
        baseline, f = document["baseline"], document["ledger"]["formula"]
        self.assertEqual(baseline["resident_pages"], 0)
        # Every step of one token copies all pages up; those prefetched may have
        # come before the first token.
        moved = f["page_bytes"] * (5 * f["closed_pages"] - f["ahead_pages"])
        self.assertLessEqual(baseline["decode_tok_s"] * moved / 5, 4e6)
        totals = {**document["ledger"], **document["memory"]}
        self.assertEqual(totals["host_bytes"],
                         f["page_bytes"] * f["closed_pages"])
        for key in ("h2d_bytes", "d2h_bytes", "device_bytes"):
            self.assertGreater(totals[key], 0)
            self.assertEqual(sum(rank[key] for rank in document["ranks"]),
                             totals[key])

    def check_baselines(self, drafted, plain, coupled):
        """Checks each output against that without drafts; True: all agree."""
        for ours, theirs in zip(drafted, plain, strict=True):
            same = ours["tokens"] == theirs["tokens"]
            self.assertEqual(ours["baseline"]["agree"], same)
            self.assertAlmostEqual(
                ours["baseline"]["speedup"] * ours["baseline"]["decode_tok_s"] /
                ours["decode_tok_s"], 1)
            first = ours["baseline"]["first_difference"]
            if same:
                self.assertIsNone(first)
            else:
                self.assertEqual(ours["tokens"][:first],
                                 theirs["tokens"][:first])
                self.assertNotEqual(ours["tokens"][first],
                                    theirs["tokens"][first])
        self.assertEqual(all(one["baseline"]["agree"] for one in drafted),
                         coupled)

    def test_every_run_against_full(self):
        book = self.path("book.txt", b"The cat sat on the mat. " * 20)
        draft = ["--draft", "self", "--window", "8", "--verify-against", "full"]
        distribution = ["-m", CHAT, "-n", "24", "--temp", "0.9", "--ignore-eos"]
        for args, labels in (
                (["generate", *distribution, "-p", "one two three " * 40, "--seeds",
                  "1:3"], [b"seed 1: ", b"seed 2: ", b"seed 3: "]),
                (["ask", *distribution, book, "who?", "where?"],
                 [b"who?: ", b"where?: "])):
            plain = self.document(*args)["output"]
            for verify, label in (("coupled", b"agrees with full, speed-up "),
                                  ("residual", b"same distribution as full, speed-up ")):
                with self.subTest(command=args[0], verify=verify):
                    more = [*draft, "--verify", verify]
                    drafted = self.document(*args, *more)
                    self.assertNotIn("baseline", drafted)
                    self.check_baselines(drafted["output"], plain,
                                         verify == "coupled")
                    note = run(*args, *more).stderr
                    for which in labels:
                        self.assertIn(which, note)
                    self.assertIn(label, note)
                    self.assertNotIn(b"differs", note)

    def test_a_draft_model_gives_the_same_text(self):
        args = ["generate", "-m", CHAT, "-p", "one two three " * 40, "-n",
                "40", "--temp", "0.7", "--ignore-eos"]
        view = ["--policy", "triforce", "--budget", "32", "--chunk", "8",
                "--sink", "8", "--window", "8", "--gamma2", "6"]
        plain = self.document(*args)
        for more, levels in (([], ["small"]),
                             (["--draft", "small"], ["small"]),
                             (view, ["small", "retrieval"]),
                             (["--simulate", "device=64MiB,link=1GB/s", "-c",
                               "4096"], ["small"])):
            result = run(*args, "-md", CHAT, "--verify", "coupled", *more,
                         "--json")
            self.assertEqual(result.returncode, 0, result.stderr.decode())
            drafted = json.loads(result.stdout)
            self.assertEqual(drafted["warnings"], [])
            self.assertEqual(drafted["output"], plain["output"])
            self.assertEqual([level["drafter"] for level in
                              drafted["speculation"]["levels"]], levels)
            self.assertGreater(
                drafted["speculation"]["levels"][0]["accepted"], 0)
        message = self.refuse(3, "draft_vocabulary", *args, "-md",
                              os.path.join(CHECKPOINTS, "llama_mha.gguf"))
        self.assertIn("-md: ", message)
        self.assertIn("131", message)
        self.assertIn("384", message)
        message = self.refuse(6, "file_not_found", *args, "-md", "/nowhere.gguf")
        self.assertIn("-md: ", message)
        message = self.refuse(2, "usage", *args, "--draft", "small")
        self.assertIn("-md", message)

    def test_few_layers_draft(self):
        args = ["generate", "-m", CHAT, "-p", "one two three " * 40, "-n",
                "40", "--temp", "0.7", "--ignore-eos"]
        drafts = [*args, "--draft", "self", "--sink", "8", "--window", "8",
                  "--verify", "coupled"]
        plain = self.document(*args)
        levels = []
        for layers in ([], ["--draft-layers", "2"], ["--draft-layers", "1"]):
            drafted = self.document(*drafts, *layers)
            self.assertEqual(drafted["output"], plain["output"])
            levels.append(drafted["speculation"]["levels"])
        self.assertEqual(levels[1], levels[0])
        self.assertNotEqual(levels[2], levels[0])
        message = self.refuse(2, "invalid_argument", *drafts, "--draft-layers",
                              "3")
        self.assertIn("--draft-layers: got 3, the model has 2", message)
        message = self.refuse(2, "usage", *args, "--draft", "ngram",
                              "--draft-layers", "1")
        self.assertIn("--draft self", message)

    def test_greedy_text_is_the_same(self):
        args = ["generate", "-m", CHAT, "-p", "one two one two one two one",
                "-n", "60", "--ignore-eos"]
        drafted = self.document(*args, "--draft", "ngram")
        self.assertEqual(drafted["output"], self.document(*args)["output"])
        self.assertGreater(drafted["speculation"]["levels"][0]["accepted"], 0)
        self.assertGreater(drafted["speculation"]["tokens_per_sweep"], 1)

    def test_flags(self):
        for flag, value in (("--draft", "x"), ("--verify", "x"),
                            ("--gamma1", "0"), ("--gamma1", "64"),
                            ("--gamma2", "64"), ("--chunk", "24"),
                            ("--budget", "0"), ("--sink", "0"),
                            ("--window", "-1")):
            message = self.refuse(2, "usage", "generate", "-m", CHAT, "-p",
                                  "x", flag, value)
            self.assertIn(flag, message)


class GenerateTest(Case):
    def test_the_document(self):
        document = self.document("generate", "-m", CHAT, "-p", "Once upon",
                                 "-n", "5", "--ignore-eos", env=environment(
                                     XDG_CACHE_HOME=self.directory))
        self.assertEqual(document["model"], CHAT)
        self.assertEqual(document["policy"], "full")
        self.assertEqual(document["seed"], 0)
        self.assertGreater(document["prompt_tokens"], 0)
        self.assertEqual(document["cached_tokens"], 0)
        self.assertEqual(len(document["output"]), 1)
        self.assertEqual(len(document["output"][0]["tokens"]), 5)
        self.assertEqual(document["output"][0]["finish_reason"], "length")
        for key in ("tiercel", "ttft_s", "prefill_tok_s", "decode_tok_s",
                    "tbt_ms", "speculation", "ledger", "simulated"):
            self.assertIn(key, document)
        for key in ("ttft_s", "tbt_ms", "host_bytes", "device_bytes"):
            self.assertGreater(document["predicted"][key], 0)
        for key in ("host_bytes", "device_bytes"):
            self.assertGreater(document["memory"][key], 0)

    def test_figures_agree_with_each_other(self):
        args = ["generate", "-m", CHAT, "-p", "one two three " * 40, "-n",
                "40", "--temp", "0.7", "--ignore-eos"]
        for drafts in ([], ["--draft", "ngram"], ["--policy", "triforce"]):
            document = self.document(*args, *drafts)
            times = document["tbt_ms"]
            self.assertEqual(times["samples"], 39)
            self.assertLessEqual(times["p50"], times["p90"])
            self.assertLessEqual(times["p90"], times["p99"])
            speculation = document["speculation"]
            self.assertAlmostEqual(speculation["tokens_per_sweep"] *
                                   speculation["sweeps"], 39)
            if not drafts:
                self.assertEqual(speculation["sweeps"], 39)
            for level in speculation["levels"]:
                self.assertLessEqual(level["accepted"], level["checked"])
                self.assertLessEqual(level["checked"], level["drafted"])
            phases = document["ledger"]["phases"]
            prefill = phases["prefill"]["seconds"]
            self.assertAlmostEqual(document["prefill_tok_s"] * prefill,
                                   document["prompt_tokens"])
            self.assertGreater(document["ttft_s"], prefill)
            decoding = (document["ttft_s"] - prefill +
                        39 / document["decode_tok_s"])
            self.assertLessEqual(sum(phases[name]["seconds"] for name in
                                     ("draft", "verify", "refresh")), decoding)
            self.assertGreater(phases["verify"]["seconds"], 0)
            for name in ("draft", "refresh"):
                self.assertEqual(phases[name]["seconds"] > 0,
                                 bool(drafts) and (name == "draft" or
                                                   "triforce" in drafts))

    def test_a_single_token_has_no_gap(self):
        args = ["generate", "-m", CHAT, "-p", "Once", "-n", "1",
                "--ignore-eos"]
        document = self.document(*args)
        self.assertIsNone(document["decode_tok_s"])
        self.assertEqual(document["tbt_ms"], {"p50": None, "p90": None,
                                              "p99": None, "samples": 0})
        self.assertIsNone(document["speculation"]["tokens_per_sweep"])
        self.assertGreater(document["ttft_s"], 0)
        result = run(*args)
        self.assertIn(b"TTFT", result.stderr)
        self.assertNotIn(b"TBT", result.stderr)
        self.assertNotIn(b"decode", result.stderr)
        baseline = self.document(*args, "--draft", "ngram", "--verify-against",
                                 "full")["baseline"]
        self.assertTrue(baseline["agree"])
        self.assertIsNone(baseline["speedup"])

    def test_two_runs_print_the_same(self):
        args = ["generate", "-m", CHAT, "-p", "Once", "-n", "20", "--temp", "1"]
        self.assertEqual(self.succeed(*args), self.succeed(*args))

    def test_text_is_what_the_document_says(self):
        args = ["generate", "-m", CHAT, "-p", "Once", "-n", "20"]
        text = self.document(*args)["output"][0]["text"]
        self.assertEqual(self.succeed(*args).decode().rstrip("\n"),
                         text.rstrip("\n"))

    def test_the_seed_is_printed(self):
        result = run("generate", "-m", CHAT, "-p", "Once", "-n", "2")
        self.assertIn(b"seed 0", result.stderr)
        self.assertNotIn(b"\x1b", result.stderr)  # no progress in a pipe

    def test_seeds_are_the_single_runs(self):
        args = ["generate", "-m", CHAT, "-p", "Once", "-n", "12", "--temp", "1"]
        document = self.document(*args, "--seeds", "3:5")
        self.assertEqual(document["seed"], 3)
        outputs = document["output"]
        self.assertEqual([o["seed"] for o in outputs], [3, 4, 5])
        for output in outputs:
            single = self.document(*args, "-s", str(output["seed"]))
            self.assertEqual(single["seed"], output["seed"])
            self.assertEqual(single["output"][0]["tokens"], output["tokens"])
        self.assertGreater(len({tuple(o["tokens"]) for o in outputs}), 1)

    def test_texts_made_at_once_come_as_one_after_the_other(self):
        # More seeds than are made at once, and texts of different lengths.
        args = ["generate", "-m", CHAT, "-p", "Once", "-n", "24", "--temp",
                "1.5", "--stop", "a"]
        alone = [self.succeed(*args, "-s", str(seed)) for seed in range(20)]
        self.assertGreater(len({len(text) for text in alone}), 3)
        for flags in ([], ["--at-once", "3"], ["--at-once", "1"]):
            self.assertEqual(self.succeed(*args, "--seeds", "0:19", *flags),
                             b"".join(b"# seed %d\n%b" % (seed, text)
                                      for seed, text in enumerate(alone)))
            outputs = self.document(*args, "--seeds", "0:5", *flags)["output"]
            self.assertEqual([output["at_once"] for output in outputs],
                             [int(flags[1]) if flags else 6] * 6)

    def nll(self, tokens):
        """The sum of -log p of all tokens but the first, by `eval`."""
        if len(tokens) < 2:
            return 0
        ids = self.path("ids.txt", b" ".join(b"%d" % t for t in tokens))
        found = json.loads(self.succeed("eval", "-m", CHAT, "--tokens", ids,
                                        "--json"))
        return found["nll"] * found["scored"]

    def test_the_best_of_several_has_the_likeliest_tokens(self):
        args = ["generate", "-m", CHAT, "-p", "Once", "-n", "12", "--temp",
                "1.5"]
        prompt = json.loads(self.succeed("tokenize", "-m", CHAT, "-p", "Once",
                                         "--json"))["tokens"]
        texts = self.document(*args, "--seeds", "5:10")["output"]
        before = self.nll(prompt)
        means = {text["seed"]: (before - self.nll(prompt + text["tokens"])) /
                 len(text["tokens"]) for text in texts}
        best = max(means, key=means.get)
        self.assertNotEqual(best, 5)
        document = self.document(*args, "-s", "5", "--best-of", "6")
        output, = document["output"]
        self.assertEqual((document["seed"], output["seed"], output["best_of"]),
                         (best, best, 6))
        self.assertAlmostEqual(output["mean_logprob"], means[best], 5)
        expected = texts[best - 5]
        self.assertEqual(output["tokens"], expected["tokens"])
        self.assertEqual(self.succeed(*args, "-s", "5", "--best-of", "6"),
                         expected["text"].encode() + b"\n")

    def test_texts_made_at_once_behind_a_link(self):
        link = "link=1GB/s"
        model, least = deeper(self, link)
        text = ["generate", "-m", model, "-p", "one two three " * 100, "-c",
                "1000", "--temp", "1", "--ignore-eos", "-n", "9"]
        for policy in ("full", "triforce"):
            args = [*text, "--policy", policy]
            if policy == "triforce":
                args += ["--budget", "64", "--chunk", "8", "--sink", "8",
                         "--window", "16"]
            alone = [self.document(*args, "-s", str(seed))["output"][0]
                     for seed in range(6)]
            counts = set()
            for times in (1.01, 1.15, 4):
                found = run(*args, "--seeds", "0:5", "--json", "--simulate",
                            f"device={int(least * times)},{link}")
                if policy == "triforce" and found.returncode == 4:
                    continue  # the view has no room
                outputs = json.loads(found.stdout)["output"]
                self.assertEqual([o["tokens"] for o in outputs],
                                 [o["tokens"] for o in alone])
                counts.add(outputs[0]["at_once"])
                said = b"at a time, as memory serves best" in found.stderr
                self.assertEqual(said, outputs[0]["at_once"] < 6)
            self.assertEqual(counts, {1, 6} if policy == "full" else {6})

    def test_questions_asked_at_once_are_answered_alone(self):
        book = self.path("book.txt", b"The cat sat on the mat. " * 20)
        asked = ["who?", "where is it?", "why?"]
        view = ["--budget", "64", "--sink", "8", "--window", "16"]
        triforce = ["--policy", "triforce", "--chunk", "8", *view]
        branches = [*triforce, "--branches", "2"]
        texts = []
        for policy in ([], ["--policy", "speed", "--plain"],
                       ["--policy", "sfi", "--plain", *view], branches,
                       [*branches, "--tensor-parallel", "2"]):
            args = ["ask", "-m", CHAT, "-n", "20", "--temp", "1", book, *policy]
            alone = [self.document(*args, question) for question in asked]
            at_once = self.document(*args, *asked)["output"]
            self.assertEqual([output["tokens"] for output in at_once],
                             [one["output"][0]["tokens"] for one in alone])
            self.assertEqual({output["at_once"] for output in at_once}, {3})
            texts.append([output["tokens"] for output in at_once])
        self.assertEqual(*texts[-2:])  # over two ranks, too

    def test_each_output_has_its_own_times(self):
        document = self.document("generate", "-m", CHAT, "-p", "Once", "-n",
                                 "12", "--temp", "1", "--seeds", "3:5",
                                 "--ignore-eos")
        outputs = document["output"]
        self.assertEqual(outputs[0]["tbt_ms"], document["tbt_ms"])
        for key in ("decode_tok_s", "tbt_ms"):
            self.assertEqual(len({str(o[key]) for o in outputs}), 3)
        # All tokens, over the time in which any was decoded.
        self.assertAlmostEqual(
            document["decode_tok_s"],
            33 / max(11 / o["decode_tok_s"] for o in outputs), places=3)
        book = self.path("book.txt", b"The cat sat on the mat. " * 20)
        document = self.document("ask", "-m", CHAT, "-n", "12", book, "who?",
                                 "where?")
        first, second = document["output"]
        for key in ("prompt_tokens", "cached_tokens", "ttft_s", "tbt_ms"):
            self.assertEqual(first[key], document[key])
        self.assertNotEqual(second["ttft_s"], first["ttft_s"])

    def test_stream_is_a_line_per_token_then_the_document(self):
        out = self.succeed("generate", "-m", CHAT, "-p", "Once", "-n", "9",
                           "--ignore-eos", "--stream")
        *lines, document = [json.loads(line) for line in out.splitlines()]
        output = document["output"][0]
        self.assertEqual([line["token"] for line in lines], output["tokens"])
        self.assertEqual("".join(line["text"] for line in lines),
                         output["text"])

        *lines, document = [json.loads(line) for line in self.succeed(
            "generate", "-m", CHAT, "-p", "Once", "-n", "3", "--seeds", "4:5",
            "--temp", "1", "--ignore-eos", "--stream").splitlines()]
        # Texts that are made at once stream at once: the second begins before
        # the first ends.
        self.assertEqual(lines[-1]["index"], 1)
        self.assertLess([line["index"] for line in lines].index(1), 3)
        for index, output in enumerate(document["output"]):
            own = [line for line in lines if line["index"] == index]
            self.assertEqual([line["token"] for line in own], output["tokens"])
            self.assertEqual({line["seed"] for line in own}, {4 + index})

    def test_ids_alone(self):
        tokens = self.path("tokens", b"1 2 3\n4\t5")
        args = ["generate", "-m", IDS_ONLY, "--tokens", tokens, "-n", "4",
                "--ignore-eos"]
        document = self.document(*args)
        self.assertEqual(document["prompt_tokens"], 5)
        ids = document["output"][0]["tokens"]
        self.assertEqual(len(ids), 4)
        self.assertEqual(self.succeed(*args).split(),
                         [str(i).encode() for i in ids])
        self.refuse(3, "no_tokenizer", "generate", "-m", IDS_ONLY, "-p", "x")

    def test_prompts_of_next_to_nothing(self):
        for text in (b" ", b"     ", b"\n", b"\n\n\n\n"):
            document = self.document("generate", "-m", CHAT, "-n", "2", "-f",
                                     self.path("text", text), "--ignore-eos")
            self.assertGreater(document["prompt_tokens"], 0)
            self.assertEqual(len(document["output"][0]["tokens"]), 2)
        only_bos = self.path("tokens", b"1")
        document = self.document("generate", "-m", CHAT, "-n", "2", "--tokens",
                                 only_bos, "--ignore-eos")
        self.assertEqual(len(document["output"][0]["tokens"]), 2)
        self.refuse(3, "empty_prompt", "generate", "-m", CHAT, "-f",
                    self.path("text", b""))
        self.refuse(2, "usage", "generate", "-m", CHAT, "-p", "")

    def test_questions_share_one_reading(self):
        book = self.path("book.txt", b"The cat sat on the mat. " * 20)
        both = self.document("ask", "-m", CHAT, "-n", "12", book, "who?",
                             "where?")
        alone = self.document("ask", "-m", CHAT, "-n", "12", book, "where?")
        first, second = both["output"]
        self.assertEqual(first["question"], "who?")
        self.assertEqual(first["cached_tokens"], 0)
        self.assertEqual(second["question"], "where?")
        self.assertGreater(second["cached_tokens"],
                           second["prompt_tokens"] * 3 // 4)
        self.assertEqual(second["tokens"], alone["output"][0]["tokens"])
        text = self.succeed("ask", "-m", CHAT, "-n", "3", book, "who?",
                            "where?")
        self.assertTrue(text.startswith(b"# who?\n"), text)
        self.assertIn(b"\n# where?\n", text)
        self.refuse(2, "usage", "ask", "-m", CHAT, book, "")
        self.refuse(6, "file_not_found", "ask", "-m", CHAT, "/no/book", "why?")

    def test_a_simulated_device_gives_the_same_tokens_and_says_so(self):
        tokens = self.path("tokens", b"1 2 3 4 5 6 7 8 9 10 " * 60)
        common = ["generate", "-m", IDS_ONLY, "--tokens", tokens, "-n", "20",
                  "-c", "700", "--ignore-eos"]
        plain = self.document(*common)
        self.assertFalse(plain["simulated"])
        self.assertEqual(plain["ledger"]["h2d_bytes"], 0)
        for device in ("16MiB", "64MB"):
            small = self.document(*common, "--simulate",
                                  "device=%s,link=10GB/s" % device)
            self.assertTrue(small["simulated"])
            self.assertEqual(small["output"], plain["output"])
            ledger, f = small["ledger"], small["ledger"]["formula"]
            self.assertEqual(
                ledger["h2d_bytes"],
                f["page_bytes"] * (f["swept_pages"] + f["reopened_pages"] +
                                   f["resumed_pages"]) + f["resumed_bytes"] +
                f["gathered_bytes"] + f["states_up_bytes"])
            self.assertEqual(
                ledger["d2h_bytes"],
                f["page_bytes"] * (f["closed_pages"] + f["parked_pages"]) +
                f["parked_bytes"] + f["states_down_bytes"])
            self.assertEqual(f["closed_pages"], f["layers"] * (619 // 128))
        for strict in ("strict=7", "device=16MiB,link=10GB/s,strict=0"):
            closed = self.document(*common, "--simulate", strict)
            self.assertTrue(closed["simulated"])
            self.assertEqual(closed["output"], plain["output"])
        self.refuse(2, "usage", *common, "--simulate", "strict=x")
        self.refuse(2, "invalid_simulation", *common, "--simulate", "strict=7",
                    "--device", "ref")
        # Four pages of each of two layers go down, each in its own transfer.
        slow = self.document(*common, "--simulate",
                             "device=16MiB,link=10GB/s,latency=20000")
        prefill = slow["ledger"]["phases"]["prefill"]
        self.assertGreaterEqual(prefill["link_busy_s"], 2 * 0.02)
        self.assertGreaterEqual(slow["ttft_s"], 2 * 0.02)
        message = self.refuse(4, "does_not_fit", *common, "--simulate",
                              "device=1MiB,link=10GB/s")
        self.assertIn("1048576", message)
        self.refuse(2, "usage", *common, "--simulate", "device=1MiB")

    def test_a_text_longer_than_the_context(self):
        tokens = self.path("tokens", b"1 " * 33)
        for command in ("generate", "eval"):
            message = self.refuse(3, "context_length_exceeded", command, "-m",
                                  IDS_ONLY, "--tokens", tokens, "-c", "32")
            self.assertIn("33", message)
            self.assertIn("32", message)

    def test_the_end_of_the_context_is_a_length(self):
        tokens = self.path("tokens", b"1 " * 30)
        output = self.document("generate", "-m", IDS_ONLY, "--tokens", tokens,
                               "-c", "32", "-n", "10", "--ignore-eos")
        output = output["output"][0]
        self.assertEqual(len(output["tokens"]), 2)
        self.assertEqual(output["finish_reason"], "length")

    def test_wrong_tokens(self):
        for content in (b"-1", b"131", b"2147483647", b"2147483648", b"1 x"):
            self.refuse(3, "invalid_token", "generate", "-m", IDS_ONLY,
                        "--tokens", self.path("tokens", content))
        self.refuse(3, "empty_prompt", "generate", "-m", IDS_ONLY, "--tokens",
                    self.path("tokens", b" \n"))

    def test_a_summary_of_stdin(self):
        text = "Une cat\u00e9gorie. The cat sat on the mat.".encode("latin-1")
        args = ["-m", CHAT, "-n", "4", "--ignore-eos"]
        book = self.path("book.txt", text)
        for command, *more in (["summarize"], ["ask", "who?"]):
            result = run(command, book, *more, *args, "--json")
            self.assertIn(b"warning: not UTF-8", result.stderr)
            named = json.loads(result.stdout)
            piped = self.document(command, "-", *more, *args, input=text)
            for document in (named, piped):
                for times in ("ttft_s", "decode_tok_s", "tbt_ms"):
                    document["output"][0].pop(times, None)
            self.assertEqual(piped["output"], named["output"])
            self.assertEqual(piped["prompt_tokens"], named["prompt_tokens"])
            self.assertIn("WINDOWS-1252", " ".join(piped["warnings"]))
        for empty in (["summarize", "-"], ["ask", "-", "who?"]):
            self.assertEqual(self.refuse(3, "empty_document", *empty, "-m",
                                         CHAT), "standard input is empty")
        for empty in ("generate", "eval", "bench"):
            self.assertEqual(self.refuse(3, "empty_prompt", empty, "-f", "-",
                                         "-m", CHAT), "standard input is empty")
        self.assertIn("'/dev/null' has no text", self.refuse(
            3, "empty_document", "summarize", "/dev/null", "-m", CHAT))

    def test_a_summary_of_an_epub(self):
        files = {"META-INF/container.xml":
                 "<container><rootfile full-path='b.opf'/></container>",
                 "b.opf": "<package><manifest><item id='a' href='a.xhtml'/>"
                 "</manifest><spine><itemref idref='a'/></spine></package>",
                 "a.xhtml": "<h1>One</h1><p>The cat sat on the mat."}
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w") as archive:
            for name, text in files.items():
                archive.writestr(name, text)
        args = ["-m", CHAT, "-n", "4"]
        plain = self.document("summarize", self.path(
            "plain.txt", b"One\n\nThe cat sat on the mat.\n"), *args)
        named = self.document("summarize", self.path("b", data.getvalue()),
                              *args)
        piped = self.document("summarize", "-", *args, input=data.getvalue())
        for document in (named, piped):
            self.assertEqual(document["prompt_tokens"], plain["prompt_tokens"])
            self.assertEqual(document["output"][0]["tokens"],
                             plain["output"][0]["tokens"])

    def test_pdf_needs_programs(self):
        self.assertIn("poppler-utils", self.refuse(
            3, "pdf_tools_missing", "summarize", self.path("b.pdf", b"%PDF-1.4"),
            "-m", CHAT, env=environment(PATH="/nowhere")))

    def test_a_summary_of_a_pipe_with_a_name(self):
        """A shell's <(command) makes such a pipe."""
        text = b"The cat sat on the mat. " * 9000  # more than a pipe holds
        args = ["-m", CHAT, "-n", "4", "--ignore-eos", "-c", "1"]
        many = [self.refuse(3, "context_length_exceeded", "summarize", path,
                            *args, input=text)
                for path in ("-", "/dev/stdin", self.path("book", text))]
        self.assertEqual(many[1], many[0])
        self.assertEqual(many[2], many[0])
        fifo = self.path("page.html")
        os.mkfifo(fifo)
        page = self.path("same.html", b"<p>The cat sat on the mat.<p>It left.")
        args = args[:-2]
        for command, *more in (["summarize"], ["ask", "who?"]):
            writer = subprocess.Popen(["sh", "-c", 'exec cat "$0" >"$1"', page,
                                       fifo])
            self.addCleanup(writer.wait)
            self.addCleanup(writer.kill)
            piped = self.document(command, fifo, *more, *args)
            plain = self.document(command, page, *more, *args)
            self.assertEqual(piped["prompt_tokens"], plain["prompt_tokens"])
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(self.path("socket"))
            self.refuse(6, "io_error", "summarize", self.path("socket"),
                        "-m", CHAT)

    def test_an_answer_that_is_cut_says_so(self):
        book = self.path("book.txt", b"The cat sat on the mat. " * 9)
        cut = b"cut at -n 4 tokens; -n N for more\n"
        for command, times in ((["summarize", book], 1),
                               (["ask", book, "who?", "where?"], 2),
                               (["generate", "-p", "Once"], 0)):
            args = [*command, "-m", CHAT, "-n", "4", "--ignore-eos"]
            result = run(*args)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(result.stderr.count(cut), times)
            self.assertEqual(run(*args, "--json").stderr, b"")

    def test_what_is_in_vain_is_a_warning(self):
        args = ["generate", "-m", CHAT, "-p", "Once", "-n", "2"]
        self.assertEqual(self.document(*args)["warnings"], [])
        result = run(*args, "--top-k", "40", "--json")
        self.assertIn("--top-k", json.loads(result.stdout)["warnings"][0])
        self.assertIn(b"warning: --top-k", result.stderr)

    def test_a_missing_draft_is_known_before_the_weights(self):
        args = ["generate", "-m", self.without_weights(), "--check-tensors",
                "-p", "x"]
        self.refuse(3, "non_finite_weights", *args)
        self.refuse(6, "file_not_found", *args, "-md", "/no/model")
        message = self.refuse(3, "non_finite_weights", "generate", "-m", CHAT,
                              "--check-tensors", "-p", "x", "-md", args[2])
        self.assertIn("-md: ", message)
        # The message names the variable that names the model.
        self.assertIn("TIERCEL_MODEL: ", self.refuse(
            3, "non_finite_weights", "generate", "--check-tensors", "-p", "x",
            env=environment(TIERCEL_MODEL=args[2])))

    def test_summarize(self):
        book = self.path("book.txt", b"A cat sat on a mat. Then it left.\n")
        out = self.document("summarize", book, "-m", CHAT, "-n", "4",
                            "--ignore-eos")
        self.assertEqual(len(out["output"][0]["tokens"]), 4)
        self.refuse(3, "empty_document", "summarize", "-m", CHAT,
                    self.path("empty.txt", b" \n"))
        self.refuse(6, "file_not_found", "summarize", "-m", CHAT,
                    "/no/book.txt")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
