"""Policies that read a part of the context, as a user runs them.

    cli_policies_test.py TIERCEL CHECKPOINTS
"""

import glob
import json
import math
import os
import re
import shutil
import sys
import unittest

sys.path.append(os.path.dirname(os.path.abspath(__file__)))
from cli_testing import (CHAT, IDS_ONLY, Case, environment, lend_rates,
                         read_npy, run, write_deeper)

TEXT = "the falcon saw the sea and the sea saw the falcon again " * 12
SADAS = ["--policy", "sadas", "--window", "48"]


class EvalTest(Case):
    def evaluate(self, *args):
        text = self.path("text.txt", TEXT.encode())
        return self.document("eval", "-m", CHAT, "-f", text, *args)

    def test_a_window_of_everything_changes_nothing(self):
        full = self.evaluate("--prefill", "100")
        logits = self.path("logits.npy")
        plain = self.evaluate("--prefill", "100", "--policy", "sadas",
                              "--plain", "--window", "5000", "--set",
                              "gate=always", "--verify-against", "full",
                              "--logits", logits)
        for key in ("tokens", "scored", "nll", "perplexity", "prefill"):
            self.assertEqual(plain[key], full[key])
        self.assertEqual(plain["prefill"], 100)
        self.assertEqual(plain["scored"], plain["tokens"] - 101)
        self.assertEqual(plain["kl"], {"mean": 0, "p99": 0})
        self.assertEqual(plain["top1"], 1)
        self.assertEqual(plain["perplexity_full"], plain["perplexity"])
        self.assertEqual(read_npy(logits)[0][0], plain["tokens"] - 100)

    def test_a_window_costs_what_it_does_not_show(self):
        plain = self.evaluate("--prefill", "100", *SADAS, "--plain", "--set",
                              "gate=always", "--verify-against", "full")
        full = self.evaluate("--prefill", "100")
        self.assertGreater(plain["kl"]["mean"], 0)
        self.assertGreaterEqual(plain["kl"]["p99"], plain["kl"]["mean"])
        self.assertLessEqual(plain["top1"], 1)
        self.assertAlmostEqual(plain["perplexity_full"], full["perplexity"],
                               places=9)
        self.assertNotEqual(plain["perplexity"], full["perplexity"])
        # A verified form scores as the model itself does.
        verified = self.evaluate("--prefill", "100", *SADAS)
        self.assertEqual(verified["nll"], full["nll"])

    def test_the_figures_are_those_of_the_logits(self):
        files = {}
        for name, policy in (("full", []),
                             ("plain", [*SADAS, "--plain", "--set",
                                        "think=on"])):
            files[name] = self.path(name + ".npy")
            self.evaluate("--prefill", "120", "--logits", files[name], *policy)
        compared = ["--prefill", "120", *SADAS, "--plain", "--set", "think=on",
                    "--verify-against", "full"]
        plain = self.evaluate(*compared)
        (rows, vocab), full = read_npy(files["full"])
        _, other = read_npy(files["plain"])
        kl, same = [], 0
        for row in range(rows):
            p, q = (values[row * vocab:(row + 1) * vocab]
                    for values in (full, other))
            p_sum, q_sum = (math.log(math.fsum(map(math.exp, distribution)))
                            for distribution in (p, q))
            kl.append(math.fsum(math.exp(a - p_sum) * (a - p_sum - b + q_sum)
                                for a, b in zip(p, q)))
            same += p.index(max(p)) == q.index(max(q))
        self.assertAlmostEqual(plain["kl"]["mean"], sum(kl) / rows, places=9)
        self.assertAlmostEqual(plain["kl"]["p99"],
                               sorted(kl)[math.ceil(0.99 * rows) - 1],
                               places=9)
        self.assertEqual(plain["top1"], same / rows)
        self.assertLess(plain["top1"], 1)
        table = self.succeed("eval", "-m", CHAT, "-f", self.path("text.txt"),
                             *compared).decode()
        for line, figure, shown in (
                ("perplexity", plain["perplexity"], "%.4f"),
                ("... of full", plain["perplexity_full"], "%.4f"),
                ("mean KL", plain["kl"]["mean"], "%.6f"),
                ("p99 KL", plain["kl"]["p99"], "%.6f"),
                ("top-1", plain["top1"], "%.4f")):
            self.assertRegex(table, r"(?m)^%s +%s$" %
                             (re.escape(line), shown % figure))

    def test_what_cannot_be(self):
        text = self.path("text.txt", TEXT.encode())
        message = self.refuse(2, "usage", "eval", "-m", CHAT, "-f", text,
                              *SADAS, "--plain", "-ub", "8")
        self.assertIn("-ub", message)
        self.assertIn("-ub", self.refuse(2, "usage", "eval", "-m", CHAT, "-f",
                                         text, *SADAS, "-ub", "8"))
        self.refuse(3, "text_too_short", "eval", "-m", CHAT, "-f", text,
                    "--prefill", "5000")
        self.refuse(2, "usage", "eval", "-m", CHAT, "-f", text,
                    "--verify-against", "full")


class SpeedTest(Case):
    """The checkpoint has two layers: one below the cut."""

    def generate(self, *args):
        return self.document("generate", "-m", CHAT, "-p", TEXT, "-n", "40",
                             "--temp", "0.8", "--ignore-eos", "--policy",
                             "speed", *args)

    def test_a_verified_text_is_the_models(self):
        for settings in ("cut=1", "cut=1,anchor=9", "cut=2"):
            document = self.generate("--set", settings, "--verify", "coupled",
                                     "--verify-against", "full")
            self.assertTrue(document["baseline"]["agree"], settings)
            self.assertEqual(document["warnings"], [])
            # The row of the last token may or may not be held.
            self.assertIn(document["kv"]["entries"],
                          [2 * (document["prompt_tokens"] + held)
                           for held in (39, 40)])

    def test_a_plain_text_says_what_there_is(self):
        for settings, tail, anchor in (("cut=1", 1, 1), ("tail=7", 7, 1),
                                       ("anchor=5", 1, 5)):
            document = self.generate("--plain", "--set", settings)
            n = document["prompt_tokens"] - tail
            m = tail + 39
            kv = document["kv"]
            self.assertEqual(kv["entries"], n + anchor + 2 * m)
            # One head of 16 values, K and V in f16.
            self.assertEqual(kv["bytes"], kv["entries"] * 16 * 2 * 2)
            (warning,) = document["warnings"]
            self.assertIn("trained", warning)
            phases = document["ledger"]["phases"]
            self.assertGreater(phases["fast"]["seconds"], 0)
            self.assertEqual(phases["verify"]["seconds"], 0)
            self.assertNotIn("schedule", document)
        plan = self.document("plan", "-m", CHAT, "-c", "8000", "--policy",
                             "speed", "--plain")
        self.assertIn("trained", "".join(plan["warnings"]))
        full = self.document("plan", "-m", CHAT, "-c", "8000")
        self.assertNotIn("trained", "".join(full["warnings"]))
        self.assertLess(plan["tiers"]["host"]["kv"],
                        0.6 * full["tiers"]["host"]["kv"])

    def test_everything_deep_is_the_model(self):
        text = self.path("text.txt", TEXT.encode())
        # Tokens that are scored without a prompt go through all layers, too.
        for prefill, settings in ((100, "cut=2"), (100, "tail=100"),
                                  (100, "tail=99"), (0, "cut=1")):
            plain = self.document("eval", "-m", CHAT, "-f", text, "--prefill",
                                  str(prefill), "--policy", "speed", "--plain",
                                  "--set", settings, "--verify-against",
                                  "full")
            self.assertEqual(plain["kl"], {"mean": 0, "p99": 0})
            self.assertEqual(plain["warnings"], [], settings)
        for settings, warnings in (("cut=2", 0), ("tail=99", 0),
                                   ("tail=98", 1)):
            plan = self.document("plan", "-m", CHAT, "-c", "100", "--policy",
                                 "speed", "--plain", "--set", settings)
            self.assertEqual(len(plan["warnings"]), warnings, settings)
        args = ["eval", "-m", CHAT, "-f", text, "--prefill", "100",
                "--policy", "speed", "--plain", "--verify-against", "full"]
        shallow = self.document(*args)
        self.assertGreater(shallow["kl"]["mean"], 0)
        # The warning is that of a generation, and is said once.
        (warning,) = self.generate("--plain")["warnings"]
        self.assertEqual(shallow["warnings"], [warning])
        for json_too in ([], ["--json"]):
            self.assertEqual(run(*args, *json_too).stderr.decode(),
                             "warning: %s\n" % warning)

    def test_what_cannot_be(self):
        for settings, said in (("cut=0", "got 0, need 1 to the model's 2 "
                                "layers"),
                               ("cut=3", "got 3, need 1 to the model's 2 "
                                "layers"),
                               ("tail=5000", "tail"), ("past=x", "past"),
                               ("cut=1,cut=1", "twice"),
                               ("interval=8", "interval")):
            for form in ([], ["--plain"]):
                message = self.refuse(2, "invalid_argument", "generate", "-m",
                                      CHAT, "-p", TEXT, "-n", "4", "--policy",
                                      "speed", "--set", settings, *form)
                self.assertIn(said, message)
        for flags in (["--budget", "64"], ["--draft", "ngram"]):
            self.refuse(2, "usage", "generate", "-m", CHAT, "-p", TEXT,
                        "--policy", "speed", "--plain", *flags)
        self.assertIn("anchor: got 65, need 0 to the budget's 64",
                      self.refuse(2, "invalid_argument", "plan", "-m", CHAT,
                                  "--policy", "speed", "--budget", "64",
                                  "--set", "anchor=65"))


class GenerateTest(Case):
    def generate(self, *args):
        return self.document("generate", "-m", CHAT, "-p", TEXT, "-n", "40",
                             "--temp", "0.8", "--ignore-eos", *args)

    def test_a_verified_text_is_the_models(self):
        for settings in ("think=on", "think=on,most=12", "gate=always"):
            document = self.generate(*SADAS, "--set", settings, "--verify",
                                     "coupled", "--verify-against", "full")
            self.assertTrue(document["baseline"]["agree"], settings)
            schedule = document["schedule"]
            self.assertEqual(schedule["form"], "verified")
            self.assertEqual(schedule["slow"]["steps"],
                             document["speculation"]["sweeps"])
            self.assertIn("window", [level["drafter"] for level in
                                     document["speculation"]["levels"]])

    def test_a_plain_text_says_what_it_read(self):
        document = self.generate(*SADAS, "--plain", "--set",
                                 "think=on,most=12", "--verify-against",
                                 "full")
        schedule = document["schedule"]
        self.assertEqual(schedule["form"], "plain")
        first, second = schedule["segments"]
        self.assertEqual((first["mode"], second["mode"]), ("think", "answer"))
        self.assertEqual((first["begin"], second["end"]), (0, 40))
        self.assertEqual(first["end"], second["begin"])
        # The last id of the closing tag belongs to the answer.
        self.assertGreater(first["end"], 12)
        self.assertEqual(schedule["fast"]["steps"], first["end"])
        self.assertEqual(schedule["slow"]["steps"], 39 - first["end"])
        phases = document["ledger"]["phases"]
        for name, steps in (("fast", "fast"), ("verify", "slow")):
            self.assertAlmostEqual(phases[name]["seconds"],
                                   schedule[steps]["seconds"])
        self.assertEqual(document["speculation"]["levels"], [])
        # The baseline has the tag, too.
        tokens = document["output"][0]["tokens"]
        self.assertFalse(document["baseline"]["agree"])
        base = self.generate(*SADAS, "--set", "think=on,most=12", "--verify",
                             "coupled")["output"][0]["tokens"]
        self.assertEqual(base[12:first["end"] + 1],
                         tokens[12:first["end"] + 1])

    def test_a_stop_text_is_cut_everywhere(self):
        sfi = [*SfiTest.SFI, "--plain", "--set",
               "trigger=fixed,interval=2,gap=1"]
        sadas = [*SADAS, "--plain", "--set", "think=on,most=12"]
        for flags in (sfi, sadas):
            text = self.generate(*flags)["output"][0]["text"]
            stop = max(re.findall("[ -~]{8,}", text), key=len)
            document = self.generate(*flags, "--stop", stop)
            count = len(document["output"][0]["tokens"])
            self.assertLess(1, count)
            self.assertLess(count, 37)
            schedule = document["schedule"]
            self.assertEqual(schedule["segments"][-1]["end"], count)
            # The first token comes of the prompt, and the last is not read.
            if flags is sadas:
                slow = sum(min(segment["end"], count - 1) - segment["begin"]
                           for segment in schedule["segments"]
                           if segment["mode"] == "answer")
            else:
                slow = (count - 1) // 2
                self.assertEqual(schedule["slow_at"],
                                 list(range(2, count, 2)))
                self.assertEqual(schedule["reasons"], {"interval": slow})
            self.assertEqual(schedule["slow"]["steps"], slow)
            self.assertEqual(schedule["fast"]["steps"], count - 1 - slow)

    def test_kv_is_counted(self):
        document = self.generate()
        model = self.document("inspect", CHAT)["metadata"]
        layers = model["num_hidden_layers"]
        row = 2 * 2 * (model["num_key_value_heads"] * model["hidden_size"] //
                       model["num_attention_heads"])  # K and V, f16
        entries = layers * (document["prompt_tokens"] + 39)
        self.assertEqual(document["kv"],
                         {"entries": entries, "bytes": entries * row})

    def test_a_view_may_be_as_small_as_one_likes(self):
        for policy, budget in (("triforce", 16), ("speed", 16), ("sfi", 2),
                               ("sadas", 16)):
            view = ["--policy", policy, "--chunk", "8", "--budget",
                    str(budget)]
            plan = self.document("plan", "-m", CHAT, *view)
            self.assertGreater(plan["tiers"]["device"]["views"], 0)
            # The sinks of sadas are those of its window, not of the view.
            if policy == "sadas":
                self.document("plan", "-m", CHAT, *view, "--sink", "17")
                continue
            self.assertEqual(
                self.generate(*view)["speculation"],
                self.generate(*view, "--sink", str(budget))["speculation"])
            # A sink that is given is not reduced.
            self.assertEqual(
                self.refuse(2, "invalid_argument", "plan", "-m", CHAT, *view,
                            "--sink", str(budget + 1)),
                f"budget: got {budget}, need at least the sink's {budget + 1}")

    def test_without_a_tokenizer(self):
        tokens = self.path("tokens.txt", b"5 6 7 8 9 " * 20)
        args = ["generate", "-m", IDS_ONLY, "--tokens", tokens, "-n", "8",
                *SADAS, "--plain", "--set"]
        for settings in ("gate=always", "think=on,most=3"):
            document = self.document(*args, settings)
            self.assertEqual(len(document["output"][0]["tokens"]), 8)
        for settings in ("gate=state", "gate=literal"):
            message = self.refuse(2, "invalid_argument", *args, settings)
            self.assertIn("tokenizer", message)

    def test_what_cannot_be_set(self):
        model = self.without_weights()
        args = ["generate", "-m", model, "--check-tensors", "-p", "x"]
        for settings, words in (
                ("interval=5", "interval"), ("latch=on,latch=off", "twice"),
                ("latch=maybe", "maybe"), ("most=-1", "most"),
                ("open=", "open"), ("open=a,close=a", "differ"),
                ("think", "KEY=VALUE"), ("cut=4", "cut")):
            message = self.refuse(2, "invalid_argument", *args, *SADAS,
                                  "--set", settings)
            self.assertIn(words, message)
        for policy in ("full", "triforce"):
            message = self.refuse(2, "usage", *args, "--policy", policy,
                                  "--plain")
            self.assertIn("--plain", message)
            message = self.refuse(2, "usage", *args, "--policy", policy,
                                  "--set", "think=on")
            self.assertIn("--set", message)
        for drafter in (["--draft", "ngram"], ["-md", CHAT]):
            message = self.refuse(2, "usage", *args, *SADAS, "--plain",
                                  *drafter)
            self.assertIn("--plain", message)
        for flag in ("--budget", "--gamma2"):
            message = self.refuse(2, "usage", *args, *SADAS, "--plain", flag,
                                  "16")
            self.assertIn(flag, message)


class SfiTest(Case):
    SFI = ["--policy", "sfi", "--budget", "32", "--sink", "2", "--window",
           "24"]

    def generate(self, *args):
        return self.document("generate", "-m", CHAT, "-p", TEXT, "-n", "40",
                             "--temp", "0.8", "--ignore-eos", *self.SFI, *args)

    def test_a_verified_text_is_the_models(self):
        for drafter in ("none", "ngram"):
            document = self.generate("--draft", drafter, "--verify", "coupled",
                                     "--verify-against", "full")
            self.assertTrue(document["baseline"]["agree"])
            self.assertEqual(document["schedule"]["form"], "verified")
            self.assertEqual(document["schedule"]["selected"], 32)

    def test_a_plain_text_says_when_it_read_everything(self):
        document = self.generate("--plain", "--set",
                                 "trigger=fixed,interval=9,gap=1")
        schedule = document["schedule"]
        self.assertEqual(schedule["slow_at"], [9, 18, 27, 36])
        self.assertEqual(schedule["reasons"], {"interval": 4})
        self.assertEqual(schedule["slow"]["steps"], 4)
        self.assertEqual(schedule["fast"]["steps"], 35)
        slow = [segment for segment in schedule["segments"]
                if segment["mode"] == "slow"]
        self.assertEqual([segment["begin"] for segment in slow],
                         [8, 17, 26, 35])
        self.assertEqual(document["speculation"]["levels"], [])
        shares = schedule["coverage_at"]
        self.assertEqual(len(shares), 4)
        self.assertTrue(all(0 < share < 1 for share in shares), shares)
        self.assertAlmostEqual(schedule["coverage"], sum(shares) / 4)
        # A view of chunks has no coverage.
        chunks = self.generate("--plain", "--chunk", "8", "--set",
                               "trigger=fixed,interval=9,gap=1")["schedule"]
        self.assertIsNone(chunks["coverage"])
        self.assertEqual(chunks["coverage_at"], [None] * 4)

    def test_what_a_verified_text_does_not_heed_is_said(self):
        settings = "gap=2,fire=start,interval=9,spacing=half,trigger=fixed"
        said = ("settings of sfi: interval, gap, trigger, spacing: no effect "
                "in the verified form")
        verified = self.generate("--set", settings)
        self.assertEqual(verified["warnings"], [said])
        self.assertEqual(self.generate("--set", "fire=start")["output"],
                         verified["output"])
        plan = ["plan", "-m", CHAT, "-c", "4000", *self.SFI, "--set", settings]
        self.assertEqual(self.document(*plan)["warnings"], [said])
        self.assertEqual(run(*plan).stderr.decode(), "warning: %s\n" % said)
        self.assertEqual(self.document(*plan, "--plain")["warnings"], [])
        plan[-1] = "drafted=9"
        self.assertEqual(self.document(*plan)["warnings"], [])
        self.assertEqual(self.document(*plan, "--plain")["warnings"],
                         ["settings of sfi: drafted: no effect in the plain "
                          "form"])
        for policy, heeded, other in (("sadas", "think=on", "answer"),
                                      ("speed", "tail=3", "past")):
            value = {"answer": "kept", "past": "keep"}[other]
            args = ["plan", "-m", CHAT, "--policy", policy, "--set"]
            self.assertEqual(self.document(*args, heeded)["warnings"], [])
            (warning,) = self.document(*args, heeded + "," + other + "=" +
                                       value)["warnings"]
            self.assertEqual(warning, "settings of %s: %s: no effect in the "
                             "verified form" % (policy, other))
            plain = self.document(*args, other + "=" + value, "--plain")
            self.assertNotIn("no effect", str(plain["warnings"]))

    def test_without_a_tokenizer_there_are_no_sentences(self):
        """The verified form looks for none."""
        ids = ["plan", "-m", IDS_ONLY, "-c", "200", *self.SFI]
        self.assertEqual(self.document(*ids)["warnings"], [])
        self.assertIn("need trigger=fixed", self.refuse(
            2, "invalid_argument", *ids, "--plain"))
        self.assertEqual(self.document(*ids, "--plain", "--set",
                                       "trigger=fixed")["warnings"], [])

    def test_an_interval_of_one_is_the_model(self):
        full = self.document("generate", "-m", CHAT, "-p", TEXT, "-n", "40",
                             "--temp", "0.8", "--ignore-eos")
        plain = self.generate("--plain", "--set", "interval=1")
        self.assertEqual(plain["output"], full["output"])

    def test_what_cannot_be(self):
        model = self.without_weights()
        args = ["generate", "-m", model, "--check-tensors", "-p", "x"]
        message = self.refuse(4, "view_too_large", *args, "-c", "100",
                              *self.SFI, "--plain")
        self.assertIn("121", message)  # 32, 24, and 65 up to the next choice
        # The error is said once, and before rates are measured.
        cache = self.path("cache")
        planned = run("plan", "-m", CHAT, "-c", "100", *self.SFI, "--plain",
                      env=environment(XDG_CACHE_HOME=cache))
        self.assertEqual(planned.returncode, 4)
        self.assertEqual(planned.stderr.decode(), "tiercel: %s\n" % message)
        self.assertEqual(glob.glob(cache + "/**/rates-*", recursive=True), [])
        for settings in ("think=on", "interval=8,gap=9", "evidence=65",
                         "prior=1.5", "nms=x"):
            self.refuse(2, "invalid_argument", *args, *self.SFI, "--set",
                        settings)
        self.assertIn("--chunk", self.refuse(2, "usage", *args, *self.SFI,
                                             "--chunk", "24"))
        for policy, chunk in (("triforce", "2"), ("sadas", "1"),
                              ("speed", "4")):
            self.assertIn("--chunk", self.refuse(
                2, "usage", *args, "--policy", policy, "--chunk", chunk))
        self.assertIn("--gamma2", self.refuse(2, "usage", *args, *self.SFI,
                                              "--plain", "--gamma2", "4"))


class WarningTest(Case):
    """Warnings of policies that do nothing here, or leave little memory."""

    def warnings(self, *args, **kwargs):
        said = run(*args, **kwargs).stderr.decode()
        document = self.document(*args, **kwargs)
        return document["warnings"], said

    def test_a_model_that_does_not_think(self):
        plan = ["plan", "-c", "1000", "--policy", "sadas"]
        generate = ["generate", "-p", TEXT, "-n", "4", "--policy", "sadas"]
        for args in (plan, generate):
            for form, what in (([], "drafts as triforce does"),
                               (["--plain"], "reads everything, as full does")):
                (warning,), said = self.warnings(*args, "-m", CHAT, *form)
                self.assertEqual(
                    warning, "policy sadas: does nothing while a text has no "
                    "<think>, nor have the model's vocabulary and chat "
                    "template: it " + what)
                self.assertIn("warning: %s\n" % warning, said)
            for settings in ("think=on", "gate=always", "gate=literal",
                             "open=<a>,close=</a>"):
                self.assertEqual(self.warnings(
                    *args, "-m", CHAT, "--plain", "--set", settings)[0], [])

        def has_token(spec):  # replaces the last merge
            left, right = spec["model"]["merges"].pop()
            number = spec["model"]["vocab"].pop(left + right)
            spec["added_tokens"].append({**spec["added_tokens"][-1],
                                         "id": number, "content": "<think>"})

        def has_template(config):
            config["chat_template"] += "{# <think> #}"

        for name, change in (("tokenizer.json", has_token),
                             ("tokenizer_config.json", has_template)):
            model = self.path(name + ".model")
            shutil.copytree(CHAT, model)
            path = os.path.join(model, name)
            with open(path) as file:
                content = json.load(file)
            change(content)
            with open(path, "w") as file:
                json.dump(content, file)
            self.assertEqual(self.warnings(*plan, "-m", model)[0], [])

    def test_a_view_that_leaves_little_room(self):
        deep = self.path("deep.gguf")
        write_deeper(deep, 12)
        least = run("plan", "-m", deep, "--simulate", "device=1MB,link=1GB/s",
                    "--json")
        device = json.loads(least.stdout)["min_device_bytes"]
        small = ["-m", deep, "--simulate", "device=%d,link=1GB/s" % device]
        with_view = run("plan", *small, "--policy", "triforce", "--json")
        self.assertEqual(with_view.returncode, 4)
        room = json.loads(with_view.stdout)["max_context"]
        full = self.document("plan", *small)["context"]
        self.assertLess(room, full)
        least = json.loads(with_view.stdout)["min_device_bytes"]
        warning = ("context: room for %d tokens beside what the policy keeps "
                   "on the device, for %d without it; %d bytes of device "
                   "memory hold the model's %d" % (room, full, least, full))
        book = self.path("book.txt", b"The cat sat. " * (room // 3))
        summary = ["summarize", book, *small, "-n", "4", "--ignore-eos"]
        drafts = [*summary, "--policy", "triforce"]
        warnings, said = self.warnings(*drafts)
        self.assertIn(warning, warnings)
        self.assertIn("warning: %s\n" % warning, said)
        few = self.path("few.txt", b"The cat sat. " * 40)
        for args in ([*drafts, "-c", str(room)],
                     ["summarize", few, *summary[2:]]):
            self.assertNotIn("context: room for", str(self.warnings(*args)))
        # A device of the size named in the warning has room.
        small[-1] = "device=%d,link=1GB/s" % least
        self.assertTrue(self.document("plan", *small, "--policy",
                                      "triforce")["fits"])
        small[-1] = "device=%d,link=1GB/s" % device
        self.assertIn(
            "the context holds %d, without --policy triforce %d;" % (room,
                                                                     full),
            self.refuse(3, "context_length_exceeded", "generate", *small, "-f",
                        book, "--policy", "triforce"))

    def test_a_policy_that_is_slower_here(self):
        cache = self.path("cache")
        env = environment(XDG_CACHE_HOME=cache)
        lend_rates(self, os.path.join(cache, "tiercel"))
        view = ["--policy", "triforce", "--budget", "64", "--chunk", "8"]
        self.succeed("plan", "-m", CHAT, env=env)
        (path,) = glob.glob(cache + "/tiercel/rates-*")
        with open(path) as file:
            kept = json.load(file)

        def measured(**changes):
            rates = {**kept["rates"], "step_s": 1e-3, "prompt_row_s": 1e-6,
                     "prompt_position_s": 0.0, "logits_s": 1e-6, **changes}
            with open(path, "w") as file:
                json.dump({**kept, "spread": 0.0, "rates": rates}, file)

        for position_s, slower in ((0.0, True), (1e-3, False)):
            measured(step_position_s=position_s)
            for args in (["plan", "-m", CHAT, *view],
                         ["generate", "-m", CHAT, "-p", 8 * TEXT, "-n", "4",
                          *view]):
                warnings, said = self.warnings(*args, env=env)
                self.assertEqual(
                    any(re.match("policy triforce: slower here than full, by "
                                 "the plan: [0-9.]+ ms a token where nine of "
                                 "ten drafts hold, full [0-9.]+$", warning)
                        for warning in warnings), slower, warnings)
                self.assertEqual("slower here" in said, slower)
            full = self.document("plan", "-m", CHAT, env=env)
            self.assertEqual(full["warnings"], [])


class AgreementTest(Case):
    """The line for people that compares a text with its baseline's."""

    FORMS = {"triforce": ["--budget", "64", "--chunk", "8"],
             "sfi": SfiTest.SFI[2:],
             "sadas": [*SADAS[2:], "--set", "think=on"],
             "speed": ["--set", "cut=1"]}

    def said(self, policy, *flags):
        args = ["generate", "-m", CHAT, "-p", TEXT, "-n", "40", "--ignore-eos",
                "--policy", policy, *self.FORMS[policy], *flags,
                "--verify-against", "full"]
        result = run(*args)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stderr.decode(), self.document(*args).get("baseline")

    def test_every_sentence_is_true(self):
        speed = ", speed-up [0-9.]+"
        for policy in self.FORMS:
            for flags in ([], ["--temp", "0.8", "--verify", "coupled"]):
                note, baseline = self.said(policy, *flags)
                self.assertTrue(baseline["agree"])
                self.assertRegex(note, ", agrees with full" + speed)
            note, baseline = self.said(policy, "--temp", "1.5")
            self.assertFalse(baseline["agree"])
            self.assertRegex(note, ", same distribution as full" + speed)
            if policy == "triforce":
                continue
            for temp in ("0.8", "0"):
                note, baseline = self.said(policy, "--plain", "--temp", temp)
                sentence = ("the same 40 tokens" if baseline["agree"] else
                            "first differs at token %d" %
                            baseline["first_difference"])
                self.assertRegex(note, ", " + sentence + speed)
                self.assertNotIn("distribution", note)
        # These are a view that leaves nothing out, and several seeds.
        note, _ = self.said("sfi", "--plain", "--set", "interval=1")
        self.assertRegex(note, ", the same 40 tokens" + speed)
        note, _ = self.said("sfi", "--plain", "--temp", "0.8", "--seeds", "1:2")
        self.assertRegex(note, "(?m)^seed 1: (first differs at|the same)")
        row = self.succeed("bench", "-m", CHAT, "-p", "0", "-n", "20", "-d",
                           "200", "-r", "1", *SADAS, "--plain", "--set",
                           "think=on", "--verify-against", "full").decode()
        self.assertRegex(row, r"\| (yes|differs at token \d+) \|\n")


class BenchTest(Case):
    def test_a_plain_form(self):
        rows = json.loads(self.succeed(
            "bench", "-m", CHAT, "-p", "0", "-n", "8", "-d", "200", "-r", "1",
            *SADAS, "--plain", "--set", "think=on", "--verify-against", "full",
            "-o", "json", env=environment()))
        (row,) = rows
        self.assertEqual(row["policy"], "sadas")
        self.assertGreater(row["avg_ts"], 0)
        self.assertIn("baseline", row)
        message = self.refuse(2, "usage", "bench", "-m", CHAT, "-p", "0", "-n",
                              "8", *SADAS, "--plain")
        self.assertIn("--n-depth", message)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
