"""Runs the program as a user does: exit codes, JSON, signals, odd environments.

    cli_test.py TIERCEL CHECKPOINTS

CHECKPOINTS holds the small models of tests/golden. Only the standard library.
"""

import fcntl
import json
import math
import os
import re
import resource
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

TIERCEL, CHECKPOINTS = map(os.path.abspath, sys.argv[1:3])
IDS_ONLY = os.path.join(CHECKPOINTS, "llama_mha")  # has no tokenizer
CHAT = os.path.join(CHECKPOINTS, "llama_chat")
FOREVER = ["--seeds", "0:999999", "--temp", "1", "--ignore-eos"]


# Measured rates go here and not to the user's.
CACHE = tempfile.TemporaryDirectory()


def environment(**changes):
    env = {k: v for k, v in os.environ.items() if not k.startswith("TIERCEL_")}
    env["XDG_CACHE_HOME"] = CACHE.name
    for name, value in changes.items():
        env.pop(name, None)
        if value is not None:
            env[name] = value
    return env


def run(*args, env=None, **kwargs):
    kwargs.setdefault("stdin", subprocess.DEVNULL)
    if "input" in kwargs:
        del kwargs["stdin"]
    return subprocess.run([TIERCEL, *args], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=120,
                          env=env or environment(), **kwargs)


def read_npy(path):
    """The shape and the float32 values of a NumPy file."""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:8] == b"\x93NUMPY\x01\x00", data[:8]
    (length,) = struct.unpack_from("<H", data, 8)
    header = eval(data[10:10 + length], {"False": False, "True": True})
    assert header["descr"] == "<f4" and not header["fortran_order"], header
    count = 1
    for n in header["shape"]:
        count *= n
    values = struct.unpack_from("<%df" % count, data, 10 + length)
    assert len(data) == 10 + length + 4 * count
    return header["shape"], values


class Case(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def path(self, name, content=None):
        path = os.path.join(self.directory, name)
        if content is not None:
            with open(path, "wb") as file:
                file.write(content)
        return path

    def succeed(self, *args, **kwargs):
        result = run(*args, **kwargs)
        self.assertEqual(result.returncode, 0, result.stderr.decode())
        return result.stdout

    def document(self, *args, **kwargs):
        out = self.succeed(*args, "--json", **kwargs)
        self.assertEqual(out.count(b"\n"), 1, out)
        return json.loads(out)

    def refuse(self, exit_code, code, *args, **kwargs):
        """The message, which must be the same for people and as JSON."""
        plain = run(*args, **kwargs)
        self.assertEqual(plain.returncode, exit_code, plain.stderr.decode())
        self.assertEqual(plain.stdout, b"")
        if "--" in args:
            return plain.stderr.decode()
        machine = run(*args, "--json", **kwargs)
        self.assertEqual(machine.returncode, exit_code)
        self.assertEqual(machine.stderr, b"")
        error = json.loads(machine.stdout)["error"]
        self.assertEqual(error["code"], code)
        self.assertEqual("tiercel: " + error["message"] + "\n",
                         plain.stderr.decode())
        return error["message"]


class UsageTest(Case):
    def test_help_and_version(self):
        for args in (["--help"], ["-h"], ["generate", "--help"]):
            self.assertIn(b"Usage:", self.succeed(*args))
        self.assertRegex(self.succeed("--version"),
                         rb"^tiercel \d+\.\d+\.\d+ \(commit .+\)\n$")

    def test_no_command(self):
        result = run()
        self.assertEqual(result.returncode, 2)
        self.assertIn(b"Usage:", result.stderr)

    def test_messages_name_the_flag(self):
        text = ["generate", "-m", CHAT, "-p", "x"]
        for args, name in (
            (text + ["--bogus"], "--bogus"),
            (text + ["-t"], "-t"),
            (text + ["-t", "2x"], "-t"),
            (text + ["-t", "0"], "-t"),
            (text + ["-t", "1", "-t", "1"], "-t"),
            (text + ["-m", CHAT], "-m"),
            (text + ["--temp", "nan"], "--temp"),
            (text + ["-ctk", "q4_0"], "-ctk"),
            (["generate", "-p", "x", "-m", ""], "-m"),
        ):
            # A flag without its value must stay the last argument.
            result = run(*args)
            self.assertEqual(result.returncode, 2, args)
            self.assertIn(name, result.stderr.decode())
            self.assertEqual(result.stdout, b"")
            self.assertEqual(result.stderr.count(b"\n"), 1, result.stderr)

    def test_not_in_this_version(self):
        for args in (["chat"], ["cache", "list"],
                     ["generate", "-p", "x", "--policy", "sfi"],
                     ["generate", "-p", "x", "--device", "cuda"]):
            message = self.refuse(2, "not_in_this_version", *args)
            self.assertIn("not in this version", message)

    def test_malformed_variables_are_named(self):
        for name, value, code in (("TIERCEL_MODEL", "", "usage"),
                                  ("TIERCEL_ISA", "sse9",
                                   "invalid_environment")):
            env = environment(**{"TIERCEL_MODEL": CHAT, name: value})
            message = self.refuse(2, code, "generate", "-p", "x", env=env)
            self.assertIn(name, message)

    def test_a_missing_model_is_an_io_error(self):
        self.assertIn("/no/model", self.refuse(
            6, "file_not_found", "inspect", "-m", "/no/model"))
        self.assertIn("TIERCEL_MODEL", self.refuse(
            6, "file_not_found", "inspect",
            env=environment(TIERCEL_MODEL="/no/model")))

    def test_a_wrong_model_is_invalid_input(self):
        path = self.path("x.gguf", b"this is no model, only a few words")
        result = run("inspect", path)
        self.assertEqual(result.returncode, 3, result.stderr.decode())


class PlanTest(Case):
    def test_the_document(self):
        plan = self.document("plan", "-m", CHAT, "-c", "1000")
        self.assertEqual(plan["context"], 1000)
        self.assertTrue(plan["fits"])
        self.assertFalse(plan["simulated"])
        self.assertGreater(plan["ttft_s"], 0)
        self.assertGreater(plan["tbt_ms"], 0)
        self.assertIsNone(plan["link_gb_s"])
        self.assertEqual(sorted(plan["tiers"]["device"]),
                         ["resident", "staging", "views", "weights",
                          "workspace"])
        self.assertGreater(plan["tiers"]["device"]["weights"], 0)
        # 8 pages of 128 positions, 2 layers, K and V of 2 bytes
        config = self.document("inspect", CHAT)["config"]
        self.assertEqual(plan["tiers"]["host"],
                         {"kv": 8 * 128 * 2 * 2 * 2 * config["kv_heads"] *
                          config["head_dim"], "weights": 0})
        text = self.succeed("plan", "-m", CHAT, "-c", "1000").decode()
        self.assertRegex(text, r"context +1,000 tokens\n")
        self.assertRegex(text, r"fits +yes\n")

    def test_what_does_not_fit_and_what_would(self):
        args = ["plan", "-m", CHAT, "-c", "4096", "--simulate"]
        small = run(*args, "device=1MB,link=2GB/s", "--json")
        self.assertEqual(small.returncode, 4, small.stderr)
        plan = json.loads(small.stdout)
        self.assertFalse(plan["fits"])
        self.assertTrue(plan["simulated"])
        self.assertEqual(plan["link_gb_s"], 2)
        least = plan["min_device_bytes"]
        self.assertTrue(self.document(
            *args, "device=%d,link=2GB/s" % least)["fits"])
        self.assertEqual(run(*args, "device=%d,link=2GB/s" % (least - 64))
                         .returncode, 4)
        # A device for less, and the largest context that it serves.
        less = json.loads(run(
            "plan", "-m", CHAT, "-c", "1000", "--simulate",
            "device=1MB,link=2GB/s", "--json").stdout)["min_device_bytes"]
        args = ["plan", "-m", CHAT, "--simulate", "device=%d,link=2GB/s" % less]
        most = json.loads(run(*args, "--json").stdout)["max_context"]
        self.assertIn(most, range(1000, 4096))
        for context, code in ((most, 0), (most + 1, 4)):
            result = run(*args, "-c", str(context))
            self.assertEqual(result.returncode, code, result.stdout)
        self.assertIn(b"the largest context that fits is %d" % most,
                      result.stderr)

    def test_a_budget_of_memory(self):
        tiers = self.document("plan", "-m", CHAT, "-c", "1000")["tiers"]
        budget = sum(sum(tier.values()) for tier in tiers.values())
        args = ["-m", CHAT, "--device-memory", str(budget)]
        plan = json.loads(run("plan", *args, "--json").stdout)
        self.assertFalse(plan["fits"])
        most = plan["max_context"]
        self.assertIn(most, range(1000, 1128))  # the rest of a page, at most
        text = ["-p", "Once upon a time", "-n", "2"]
        self.document("generate", *args, *text)  # of the context what fits
        self.document("generate", *args, *text, "-c", str(most))
        message = self.refuse(4, "does_not_fit", "generate", *args, *text,
                              "-c", str(most + 1))
        self.assertIn("the budget is %d" % budget, message)
        self.refuse(2, "usage", "plan", "-m", CHAT, "--device-memory", "much")


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
                drafted["ledger"]["stations"]["draft"]["h2d_bytes"], 0)
        plan = ["plan", "-m", CHAT, "--json"]
        views = json.loads(self.succeed(*plan, "--policy", "triforce"))
        views = views["tiers"]["device"]["views"]
        self.assertGreater(views, 0)
        fewer = json.loads(self.succeed(*plan, "--policy", "triforce",
                                        "--budget", "64"))
        self.assertLess(fewer["tiers"]["device"]["views"], views)
        self.refuse(2, "invalid_argument", *args, "--policy", "triforce",
                    "--budget", "16", "--sink", "40")

    def test_against_full(self):
        args = ["generate", "-m", CHAT, "-p", "one two three " * 40, "-n",
                "40", "--temp", "0.9", "--ignore-eos", "--policy", "triforce",
                "--gamma1", "auto", "--gamma2", "auto", "--verify-against",
                "full"]
        same = self.document(*args, "--verify", "coupled")
        self.assertTrue(same["baseline"]["agree"])
        self.assertIsNone(same["baseline"]["first_difference"])
        self.assertGreater(same["baseline"]["speedup"], 0)
        self.assertGreater(same["speculation"]["cost_ratio"], 0)
        other = self.document(*args, "--cost-ratio", "7.5")
        self.assertEqual(other["speculation"]["cost_ratio"], 7.5)
        self.assertFalse(other["baseline"]["agree"])
        first = other["baseline"]["first_difference"]
        ours = other["output"][0]["tokens"]
        theirs = same["output"][0]["tokens"]
        self.assertEqual(ours[:first], theirs[:first])
        self.assertNotEqual(ours[first:first + 1], theirs[first:first + 1])

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
            self.assertEqual(b"draft model" in result.stderr,
                             "--simulate" in more)
            drafted = json.loads(result.stdout)
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
                                 "-n", "5", "--ignore-eos")
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
        outputs = self.document(*args, "--seeds", "3:5")["output"]
        self.assertEqual([o["seed"] for o in outputs], [3, 4, 5])
        for output in outputs:
            single = self.document(*args, "-s", str(output["seed"]))
            self.assertEqual(single["seed"], output["seed"])
            self.assertEqual(single["output"][0]["tokens"], output["tokens"])
        self.assertGreater(len({tuple(o["tokens"]) for o in outputs}), 1)

    def test_stream_is_a_line_per_token_then_the_document(self):
        out = self.succeed("generate", "-m", CHAT, "-p", "Once", "-n", "9",
                           "--ignore-eos", "--stream")
        *lines, document = [json.loads(line) for line in out.splitlines()]
        output = document["output"][0]
        self.assertEqual([line["token"] for line in lines], output["tokens"])
        self.assertEqual("".join(line["text"] for line in lines),
                         output["text"])

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
        self.refuse(2, "usage", "ask", "-m", CHAT, book)
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
                f["gathered_bytes"])
            self.assertEqual(
                ledger["d2h_bytes"],
                f["page_bytes"] * (f["closed_pages"] + f["parked_pages"]) +
                f["parked_bytes"])
            self.assertEqual(f["closed_pages"], f["layers"] * (619 // 128))
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

    def test_summarize(self):
        book = self.path("book.txt", b"A cat sat on a mat. Then it left.\n")
        out = self.document("summarize", book, "-m", CHAT, "-n", "4",
                            "--ignore-eos")
        self.assertEqual(len(out["output"][0]["tokens"]), 4)
        self.refuse(3, "empty_document", "summarize", "-m", CHAT,
                    self.path("empty.txt", b" \n"))
        self.refuse(6, "file_not_found", "summarize", "-m", CHAT,
                    "/no/book.txt")


class Terminal:
    """The program on a terminal of its own, as a person has it."""

    def __init__(self, case, *args, **changes):
        self.master, slave = os.openpty()
        case.addCleanup(os.close, self.master)
        self.case = case
        self.seen = b""  # what no call below has taken yet

        def own_terminal():  # so that Ctrl-C reaches it
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            [TIERCEL, *args], stdin=slave, stdout=slave, stderr=slave,
            start_new_session=True, preexec_fn=own_terminal,
            env=environment(**{"TERM": "xterm", **changes}))
        os.close(slave)
        case.addCleanup(self.process.wait)
        case.addCleanup(self.process.kill)

    def read(self):
        """False at the end."""
        if not select.select([self.master], [], [], 60)[0]:
            self.case.fail(b"nothing more after %r" % self.seen[-400:])
        try:
            data = os.read(self.master, 1 << 16)
        except OSError:  # Linux says EIO where nobody has it open any more
            data = b""
        self.seen += data
        return data != b""

    def until(self, pattern):
        """Takes what comes up to `pattern`; the match."""
        while True:
            found = re.search(pattern, self.seen, re.DOTALL)
            if found:
                self.seen = self.seen[found.end():]
                return found
            if not self.read():
                self.case.fail(b"%r ended with %r" % (pattern,
                                                      self.seen[-400:]))

    def type(self, text):
        os.write(self.master, text)

    def prompt(self):
        self.until(rb"> (\x1b\[\w+)?$")

    def note(self):
        """After an answer: the tokens of its prompt, and of them the cached."""
        found = self.until(rb"prompt (\d+) tokens(?:, (\d+) cached)?, TTFT"
                           rb"[^\n]*, seed 0\r\n")
        return int(found[1]), int(found[2] or 0)

    def end(self):
        """The exit code; the rest of the output is in `seen`."""
        while self.read():
            pass
        return self.process.wait(60)


class FollowUpTest(Case):
    """Questions that are typed after a summary."""

    TEXT = b" ".join([b"The cat sat on the mat."] * 20)

    def setUp(self):
        super().setUp()
        self.args = ["summarize", self.path("book.txt", self.TEXT), "-m", CHAT,
                     "-n", "8", "--ignore-eos", "--no-progress"]
        alone = self.document(*self.args)
        self.prompt_tokens = alone["prompt_tokens"]
        self.summary = alone["output"][0]["text"]
        self.assertEqual(self.prompt_tokens, len(self.conversation()))

    def start(self, *args, **changes):
        """After the summary, at the first prompt."""
        terminal = Terminal(self, *self.args, *args, **changes)
        self.assertEqual(terminal.note(), (self.prompt_tokens, 0))
        terminal.until(rb"/help lists")
        terminal.prompt()
        return terminal

    def conversation(self, *said):
        """The ids of a talk, written out as the checkpoint's template does."""
        opening = ("Summarize the following text.\n\n%s\n\nSummarize the text "
                   "above in a few paragraphs: what it is about, what happens "
                   "in it or what it argues, and how it ends."
                   % self.TEXT.decode())
        text = ""
        for i, message in enumerate((opening, *said)):
            text += "<|im_start|>%s\n%s<|im_end|>\n" % (
                ("user", "assistant")[i % 2], message)
        return self.document("tokenize", "-m", CHAT, "--parse-special",
                             input=(text + "<|im_start|>assistant\n").encode()
                             )["tokens"]

    def answer(self, ids):
        tokens = self.path("tokens", " ".join(map(str, ids)).encode())
        return self.document("generate", "-m", CHAT, "--tokens", tokens, "-n",
                             "8", "--ignore-eos")["output"][0]

    def test_answers_are_those_to_the_whole_conversation(self):
        # Typed with a correction, and in any locale with all of UTF-8.
        first = "où est le 猫 \U0001f408?"
        typed = first.replace("est", "eX\x7fst")
        for changes in ({}, {"LC_ALL": "C"}, {"TERM": "dumb"}):
            terminal = self.start(**changes)
            terminal.type(typed.encode() + b"\r")
            ids = self.conversation(self.summary, first)
            prompt, cached = terminal.note()
            self.assertEqual(prompt, len(ids))
            # The text and the request, to where the summary began.
            self.assertGreaterEqual(cached, self.prompt_tokens)
            terminal.prompt()

            answer = self.answer(ids)
            held = ids + answer["tokens"]
            ids = self.conversation(self.summary, first, answer["text"], "why?")
            expected = self.answer(ids)["text"].encode().replace(b"\n", b"\r\n")
            terminal.type(b"why?\r")
            shown = terminal.until(rb"\r\n(.*?)\r\n(prompt \d+ tokens)")
            terminal.seen = shown[2] + terminal.seen
            self.assertEqual(shown[1], expected)
            again, cached = terminal.note()
            self.assertEqual(again, len(ids))
            # The answer too, but for its last token: no step has read that.
            common = len(os.path.commonprefix([held, ids]))
            self.assertEqual(cached, min(common, len(held) - 1))
            self.assertGreater(cached, prompt)
            terminal.prompt()
            terminal.type(b"\x04")  # Ctrl-D
            self.assertEqual(terminal.end(), 0)

    def test_commands_and_history(self):
        terminal = self.start()
        terminal.type(b"/help\r")
        terminal.until(rb"/quit")
        terminal.prompt()
        terminal.type(b" \r")
        terminal.prompt()
        terminal.type(b"/nosuch\r")
        terminal.until(rb"no such command: /nosuch")
        terminal.prompt()
        terminal.type(b"who?\r")
        ids = self.conversation(self.summary, "who?")
        self.assertEqual(terminal.note()[0], len(ids))
        terminal.prompt()
        terminal.type(b"\x1b[A\r")  # the line before
        ids = self.conversation(self.summary, "who?",
                                self.answer(ids)["text"], "who?")
        self.assertEqual(terminal.note()[0], len(ids))
        terminal.prompt()
        terminal.type(b"/quit\r")
        self.assertEqual(terminal.end(), 0)

    def test_a_small_device_takes_questions_too(self):
        terminal = self.start("--simulate", "device=64MiB,link=1GB/s")
        terminal.type(b"who?\r")
        ids = self.conversation(self.summary, "who?")
        shown = terminal.until(rb"who\?\r\n(.*?)\r\n(prompt [^\n]*simulated)")
        self.assertEqual(shown[1].replace(b"\r\n", b"\n").decode(),
                         self.answer(ids)["text"])
        cached = int(re.search(rb"(\d+) cached", shown[2])[1])
        self.assertGreaterEqual(cached, self.prompt_tokens)

    def test_without_a_template(self):
        model = self.path("model")
        shutil.copytree(CHAT, model)
        path = os.path.join(model, "tokenizer_config.json")
        with open(path) as file:
            config = json.load(file)
        del config["chat_template"]
        with open(path, "w") as file:
            json.dump(config, file)
        self.args[self.args.index(CHAT)] = model
        self.prompt_tokens = self.document(*self.args)["prompt_tokens"]
        terminal = self.start()
        terminal.type(b"who?\r")
        prompt, cached = terminal.note()
        self.assertGreater(prompt, self.prompt_tokens + len("Question: who?"))
        self.assertGreaterEqual(cached, self.prompt_tokens - 1)

    def test_a_context_that_is_full(self):
        context = self.prompt_tokens + 90
        terminal = self.start("-c", str(context))
        long = "x y " * 100
        terminal.type(long.encode() + b"\r")
        found = terminal.until(rb"context_length_exceeded[^\n]*?(\d+) tokens"
                               rb"[^\n]*?(\d+)[^\n]*\n")
        needed = len(self.conversation(self.summary, long.strip())) + 1
        self.assertEqual(int(found[1]), needed)
        self.assertEqual(int(found[2]), context)
        terminal.prompt()
        terminal.type(b"who?\r")
        prompt, cached = terminal.note()
        self.assertEqual(prompt,
                         len(self.conversation(self.summary, "who?")))
        self.assertGreaterEqual(cached, self.prompt_tokens)

    def test_ctrl_c(self):
        self.args[self.args.index("-n") + 1] = "-1"
        terminal = Terminal(self, *self.args)
        while len(terminal.seen) < 20:  # the summary
            terminal.read()
        terminal.type(b"\x03")
        terminal.until(rb"/help lists")
        terminal.prompt()
        for question in (b"who?", b"why?"):  # an answer, each
            terminal.type(question + b"\r")
            terminal.until(re.escape(question) + b"\r\n.{20}")
            terminal.type(b"\x03")
            terminal.prompt()
        terminal.type(b"half a li\x03")
        self.assertEqual(terminal.end(), 130)
        self.assertIn(b"tiercel: interrupted", terminal.seen)

    def test_sigterm_at_the_prompt(self):
        terminal = self.start()
        terminal.process.send_signal(signal.SIGTERM)
        self.assertEqual(terminal.end(), 143)

    def test_the_terminal_is_given_back(self):
        def mode(terminal):
            return termios.tcgetattr(terminal.master)[3] & (
                termios.ICANON | termios.ECHO | termios.ISIG)

        for ending in (b"/quit\r", b"\x04", b"\x03"):
            terminal = self.start()
            self.assertFalse(mode(terminal) & termios.ICANON)
            terminal.type(ending)
            # The terminal outlives its program while we hold this end.
            terminal.process.wait(60)
            self.assertEqual(mode(terminal), termios.ICANON | termios.ECHO |
                             termios.ISIG, ending)

    def test_a_terminal_that_others_change(self):
        terminal = self.start()
        attributes = termios.tcgetattr(terminal.master)
        attributes[3] |= termios.ICANON  # as a shell does after Ctrl-Z
        termios.tcsetattr(terminal.master, termios.TCSANOW, attributes)
        terminal.process.send_signal(signal.SIGCONT)
        deadline = time.monotonic() + 60
        while termios.tcgetattr(terminal.master)[3] & termios.ICANON:
            self.assertLess(time.monotonic(), deadline)
        terminal.type(b"who?")
        fcntl.ioctl(terminal.master, termios.TIOCSWINSZ,
                    struct.pack("4H", 24, 30, 0, 0))
        terminal.type(b"\r")
        self.assertEqual(terminal.note()[0],
                         len(self.conversation(self.summary, "who?")))

    def test_without_a_terminal_there_are_no_questions(self):
        master, slave = os.openpty()
        self.addCleanup(os.close, master)
        self.addCleanup(os.close, slave)
        plain = self.succeed(*self.args)
        self.assertEqual(self.succeed(*self.args, stdin=slave), plain)
        self.assertEqual(self.succeed(*self.args, input=b"who?\n"), plain)
        for stdin, args in ((subprocess.DEVNULL, []), (slave, ["--json"])):
            result = subprocess.run([TIERCEL, *self.args, *args], stdin=stdin,
                                    stdout=slave, stderr=subprocess.PIPE,
                                    timeout=60, env=environment())
            self.assertEqual(result.returncode, 0)
            self.assertNotIn(b"/help", result.stderr)


class EvalTest(Case):
    def evaluate(self, *args):
        return self.document("eval", "-m", IDS_ONLY, "--tokens",
                             os.path.join(IDS_ONLY, "tokens.txt"), *args)

    def test_logits_are_the_golden_ones(self):
        out = self.path("logits.npy")
        result = self.evaluate("--compute", "f32", "-ctk", "f32", "-ctv",
                               "f32", "--logits", out)
        shape, logits = read_npy(out)
        golden_shape, golden = read_npy(os.path.join(IDS_ONLY, "golden.npy"))
        self.assertEqual(shape, golden_shape)
        self.assertEqual(result["tokens"], shape[0])
        self.assertEqual(result["scored"], shape[0] - 1)
        # Logits of order 2 in float32, through a few layers.
        self.assertLess(max(abs(a - b) for a, b in zip(logits, golden)), 1e-3)
        self.assertEqual(os.listdir(self.directory), ["logits.npy"])

    def test_every_level_gives_the_golden_logits(self):
        _, golden = read_npy(os.path.join(IDS_ONLY, "golden.npy"))
        levels = []
        for level in ("portable", "avx2", "avx512", "avx512vnni"):
            out = self.path(level + ".npy")
            result = run("eval", "-m", IDS_ONLY, "--tokens",
                         os.path.join(IDS_ONLY, "tokens.txt"), "--compute",
                         "f32", "-ctk", "f32", "-ctv", "f32", "--logits", out,
                         env=environment(TIERCEL_ISA=level))
            if b"this machine runs" in result.stderr:
                self.assertEqual(result.returncode, 2)
                continue
            self.assertEqual(result.returncode, 0, result.stderr.decode())
            levels.append(level)
            logits = read_npy(out)[1]
            self.assertLess(max(abs(a - b) for a, b in zip(logits, golden)),
                            1e-3, level)
        self.assertIn("portable", levels)

    def test_rows_per_step_change_nothing(self):
        files = []
        for rows in ("1", "7", "64"):
            out = self.path(rows + ".npy")
            result = self.evaluate("-ub", rows, "--logits", out)
            with open(out, "rb") as file:
                files.append((result, file.read()))
        self.assertEqual(files[0], files[1])
        self.assertEqual(files[0], files[2])

    def test_one_token_scores_nothing(self):
        out = self.document("eval", "-m", IDS_ONLY, "--tokens",
                            self.path("tokens", b"1"))
        self.assertEqual(out, {"tokens": 1, "scored": 0, "nll": None,
                               "perplexity": None})

    def test_a_disk_that_takes_nothing(self):
        tokens = os.path.join(IDS_ONLY, "tokens.txt")
        for out in ("/dev/full", self.path("no/such/directory.npy")):
            self.refuse(6, "io_error", "eval", "-m", IDS_ONLY, "--tokens",
                        tokens, "--logits", out)
        self.assertEqual(os.listdir(self.directory), [])


class TokensTest(Case):
    def test_round_trip_of_any_text(self):
        text = "A cat\r\n\tsat, \u00e9\u4e2d\U0001f600 <|im_start|>".encode()
        ids = self.succeed("tokenize", "-m", CHAT, input=text)
        self.assertEqual(self.succeed("detokenize", "-m", CHAT, input=ids),
                         text)
        listed = self.document("tokenize", "-m", CHAT, input=text)["tokens"]
        self.assertEqual([int(i) for i in ids.split()], listed)
        again = self.succeed("detokenize", "-m", CHAT, *map(str, listed))
        self.assertEqual(again, text)

    def test_binary_input_is_safe(self):
        result = run("tokenize", "-m", CHAT, input=bytes(range(256)) * 8)
        self.assertIn(result.returncode, (0, 3), result.stderr.decode())

    def test_nothing_is_no_tokens(self):
        self.assertEqual(self.document("tokenize", "-m", CHAT, input=b""),
                         {"tokens": []})
        self.assertEqual(self.succeed("detokenize", "-m", CHAT, input=b""), b"")

    def test_ids_the_vocabulary_has_not(self):
        for token in ("-1", "2147483647", "2147483648", "one"):
            self.refuse(3, "invalid_token", "detokenize", "-m", CHAT, token)


class InspectTest(Case):
    def test_the_document(self):
        document = self.document("inspect", IDS_ONLY)
        self.assertEqual(document["format"], "safetensors")
        self.assertEqual(document["architecture"], "llama")
        self.assertGreater(document["parameters"], 0)
        for tensor in document["tensors"]:
            self.assertLessEqual({"name", "type", "shape", "bytes"},
                                 set(tensor))
        for key in ("tokenizer", "metadata", "warnings"):
            self.assertIn(key, document)
        self.assertEqual(self.document("inspect", IDS_ONLY + ".gguf")["format"],
                         "gguf")

    def test_the_table(self):
        self.assertIn(b"architecture", self.succeed("inspect", CHAT))


class WrongModelTest(Case):
    """Checkpoints that differ in one thing from those that work."""

    def copy(self, source):
        shutil.copytree(source, self.path("model"))
        return self.path("model")

    def change(self, name, change):
        """Lets `change` edit a JSON file of the copy."""
        path = os.path.join(self.path("model"), name)
        with open(path) as file:
            document = json.load(file)
        change(document)
        with open(path, "w") as file:
            json.dump(document, file)

    def test_weights_that_are_no_numbers(self):
        tokens = self.path("tokens", b"1 2 3")
        for name in ("model.norm.weight", "model.layers.1.mlp.up_proj.weight"):
            model = self.copy(IDS_ONLY)
            with open(os.path.join(model, "model.safetensors"), "r+b") as file:
                (length,) = struct.unpack("<Q", file.read(8))
                header = json.loads(file.read(length))
                begin, end = header[name]["data_offsets"]
                file.seek(8 + length + end - 4)
                file.write(struct.pack("<f", math.nan))
            args = ["-m", model, "--tokens", tokens]
            self.refuse(1, "non_finite", "generate", *args)
            self.refuse(1, "non_finite_logits", "eval", *args)
            message = self.refuse(3, "non_finite_weights", "generate", *args,
                                  "--check-tensors")
            self.assertIn(name, message)
            self.assertIn("the first is %d;" % ((end - begin) // 4 - 1),
                          message)
            shutil.rmtree(model)

    def test_more_tokens_than_the_embedding_has_rows(self):
        model = self.copy(CHAT)
        self.change("tokenizer.json", lambda file: file["added_tokens"].append(
            {"id": 384, "content": "<beyond>", "special": True}))
        message = self.refuse(3, "invalid_vocab", "inspect", model)
        self.assertIn("385 tokens", message)
        self.assertIn("384 rows", message)

    def test_chat_templates(self):
        model = self.copy(CHAT)
        book = self.path("book.txt", b"A cat sat on a mat. Then it left.\n")
        args = ["summarize", book, "-m", model, "-n", "2", "--ignore-eos"]

        def put(template):
            self.change("tokenizer_config.json", lambda file: file.update(
                {"chat_template": template}))

        # Without one, and with one that cannot be used, it does without.
        for template, warnings in ((None, 0), ("", 0), ("{{ messages", 1)):
            put(template)
            document = self.document("inspect", model)
            self.assertFalse(document["chat_template"])
            self.assertEqual(len([text for text in document["warnings"]
                                  if "chat template" in text]), warnings)
            output = self.document(*args)["output"][0]
            self.assertEqual(len(output["tokens"]), 2)
        for template in ("{{ messages | nosuch }}", "{{ range(10**9) }}",
                         "{{ raise_exception('roles must alternate') }}"):
            put(template)
            self.assertIn("line 1",
                          self.refuse(3, "template_error", *args))


class BenchTest(Case):
    ARGS = ["bench", "-m", IDS_ONLY, "-p", "8", "-n", "4", "-d", "0,16", "-r",
            "2", "-t", "1"]

    def test_the_documents(self):
        rows = self.document(*self.ARGS)
        self.assertEqual([row["test"] for row in rows],
                         ["pp8", "tg4", "pp8@d16", "tg4@d16"])
        for row in rows:
            self.assertEqual(len(row["samples_ts"]), 2)
            self.assertGreater(row["avg_ts"], 0)
            self.assertEqual(row["n_threads"], 1)
            self.assertEqual(row["bytes_per_token"] is None,
                             row["n_gen"] == 0)
            self.assertEqual(row["peak_share"] is None, row["n_gen"] == 0)
        # The mean step of tg4@d16 reads 16 positions more than that of tg4.
        self.assertGreater(rows[3]["bytes_per_token"],
                           rows[1]["bytes_per_token"])

    def test_the_other_forms(self):
        lines = self.succeed(*self.ARGS, "-o", "jsonl").splitlines()
        self.assertEqual(len([json.loads(line) for line in lines]), 4)
        lines = self.succeed(*self.ARGS, "-o", "csv").splitlines()
        self.assertEqual(len(lines), 5)
        self.assertIn("| tg4 @ d16 |", self.succeed(*self.ARGS).decode())

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

    def drafted(self, model, *flags):
        """The row tg24@d90 that such drafts give; its speculation must be that
        of `generate` after the same 90 tokens."""
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
        self.assertRegex(row, r"\| tg8 @ d20 \| .* \| - \| - \| \d+\.\d \|$")
        names, prompt, row = self.succeed(*args, "-o", "csv").splitlines()
        self.assertIn(b'"policy","draft","tokens_per_sweep"', names)
        self.assertIn(b'"triforce","none",,', prompt)
        self.assertRegex(row, rb'"triforce","none",\d')

    def test_drafts_need_a_text(self):
        text = self.path("text", b"a b " * 40)
        for flags in (["--draft", "ngram"], ["--policy", "triforce"],
                      ["-md", CHAT]):
            args = ["bench", "-m", CHAT, "-p", "0", "-n", "4", *flags]
            self.assertIn("-f FILE", self.refuse(2, "usage", *args, "-d", "9"))
            self.assertIn("-d,--n-depth",
                          self.refuse(2, "usage", *args, "-f", text))
            # Of the text only what is before the row is needed.
            self.assertEqual(len(self.document(*args, "-f", text, "-d", "80",
                                               "-r", "1")), 1)
            self.refuse(3, "text_too_short", *args, "-f", text, "-d", "900")
        self.refuse(2, "not_in_this_version", "bench", "-m", CHAT, "--policy",
                    "speed")
        self.refuse(3, "draft_vocabulary", "bench", "-m", CHAT, "-f", text,
                    "-p", "0", "-d", "9", "-md", IDS_ONLY)
        self.refuse(2, "invalid_argument", "bench", "-m", CHAT, "-f", text,
                    "-p", "0", "-d", "9", "--draft", "self", "--draft-layers",
                    "3")


class SignalTest(Case):
    def start(self, *args, **kwargs):
        process = subprocess.Popen([TIERCEL, *args], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=environment(),
                                   **kwargs)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        return process

    def test_a_signal_ends_a_generation_and_its_text_stays(self):
        tokens = self.path("tokens", b"1 2 3")
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.start("generate", "-m", IDS_ONLY, "--tokens",
                                 tokens, *FOREVER)
            self.assertEqual(process.stdout.readline(), b"# seed 0\n")
            process.send_signal(number)
            rest = process.stdout.read()
            self.assertEqual(process.wait(60), 128 + number)
            self.assertTrue(rest.endswith(b"\n"), rest[-80:])

    def test_a_second_signal_ends_it_at_once(self):
        process = self.start("generate", "--json", "-m", IDS_ONLY, "--tokens",
                             self.path("tokens", b"1 2 3"), *FOREVER)
        caught = 0
        while not caught >> (signal.SIGINT - 1) & 1:  # until it has a handler
            self.assertIsNone(process.poll())
            with open("/proc/%d/status" % process.pid) as status:
                caught = int(re.search("SigCgt:\\s*(\\w+)", status.read())[1], 16)
        for number in (signal.SIGSTOP, signal.SIGINT, signal.SIGTERM,
                       signal.SIGCONT):  # stopped, it gets the two together
            process.send_signal(number)
        self.assertEqual(process.stdout.read(), b"")  # one makes it tell why
        self.assertIn(process.wait(60), (130, 143))

    def test_a_signal_ends_waiting_for_input(self):
        process = self.start("tokenize", "-m", CHAT, "--json",
                             stdin=subprocess.PIPE)
        self.addCleanup(process.stdin.close)
        # Until it reads, the first signal would meet Python's own start.
        process.stdin.write(b"x" * 300000)
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        error = json.loads(process.stdout.read())["error"]
        self.assertEqual(process.wait(60), 130)
        self.assertEqual(error["code"], "interrupted")

    def test_a_terminal_may_be_resized(self):
        master, slave = os.openpty()
        self.addCleanup(os.close, master)

        def resize(columns):
            fcntl.ioctl(master, termios.TIOCSWINSZ,
                        struct.pack("4H", 24, columns, 0, 0))

        resize(80)
        process = subprocess.Popen(
            [TIERCEL, "eval", "-m", CHAT, "-ub", "1", "--device", "ref",
             "--tokens", self.path("tokens", b"5 " * 16000)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=slave,
            env=environment(TERM="xterm", NO_COLOR=None, COLUMNS=None))
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        os.close(slave)
        while b"reading" not in os.read(master, 100000):
            pass
        for columns in (12, 0, 20):  # 0: it does not say
            resize(columns)
            process.send_signal(signal.SIGWINCH)
            self.assertTrue(columns == 0 or any(
                len(os.read(master, 100000).split(b"\x1b[K")[-1]) + 1 == columns
                for _ in range(30)))
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), 130)

    def test_a_reader_that_leaves_is_no_error(self):
        tokens = self.path("tokens", b"1 2 3")
        process = self.start("generate", "-m", IDS_ONLY, "--tokens", tokens,
                             "--stream", *FOREVER)
        process.stdout.readline()
        process.stdout.close()
        self.assertEqual(process.wait(60), 0)
        self.assertEqual(process.stderr.read(), b"")


class SurroundingsTest(Case):
    ARGS = ["generate", "-m", CHAT, "-p", "Once", "-n", "3"]

    def shell(self, redirection):
        return subprocess.run(["sh", "-c", 'exec "$@" ' + redirection, "sh",
                               TIERCEL, *self.ARGS], timeout=60,
                              env=environment(), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)

    def test_closed_streams(self):
        closed = self.shell(">&-")
        self.assertEqual(closed.returncode, 6, closed.stderr.decode())
        self.assertIn(b"stdout", closed.stderr)
        full = self.shell("> /dev/full")
        self.assertEqual(full.returncode, 6, full.stderr.decode())
        for redirection in ("<&-", "2>&-", "<&- 2>&-"):
            result = self.shell(redirection)
            self.assertEqual(result.returncode, 0, result.stderr.decode())
            self.assertTrue(result.stdout)
        self.assertEqual(run("tokenize", "-m", CHAT, stdin=None,
                             preexec_fn=lambda: os.close(0)).returncode, 6)

    def test_odd_environments(self):
        expected = self.succeed(*self.ARGS)
        home = self.path("home")
        os.mkdir(home, mode=0o500)
        for env in ({"HOME": None, "XDG_CACHE_HOME": None},
                    {"HOME": home, "XDG_CACHE_HOME": None}, {"LANG": "C",
                    "LC_ALL": "C"}, {"LC_ALL": "de_DE.UTF-8"},
                    {"XDG_CACHE_HOME": "relative", "HOME": None},
                    {"XDG_CACHE_HOME": "/dev/null"}, {"TERM": None},
                    {"COLUMNS": "many"}, {"PATH": None}):
            self.assertEqual(self.succeed(*self.ARGS, env=environment(**env)),
                             expected, env)
        kept = [name for _, _, names in os.walk(home) for name in names]
        self.assertEqual(len(kept), 1, kept)  # measured rates, nothing else
        self.assertRegex(kept[0], r"^rates-[0-9a-f]{16}\.json$")

    def test_limits_of_the_system(self):
        expected = self.succeed(*self.ARGS)
        one_cpu = {min(os.sched_getaffinity(0))}
        for limit in (
                lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0)),
                lambda: os.sched_setaffinity(0, one_cpu)):
            for threads in ([], ["-t", "4"]):
                self.assertEqual(self.succeed(*self.ARGS, *threads,
                                              preexec_fn=limit), expected)
        rows = self.document("bench", "-m", IDS_ONLY, "-p", "8", "-n", "0",
                             "-r", "1", preexec_fn=lambda:
                             os.sched_setaffinity(0, one_cpu))
        self.assertEqual(rows[0]["n_threads"], 1)

    SIMULATED = ["generate", "-m", IDS_ONLY, "-c", "700", "-n", "8",
                 "--ignore-eos", "--simulate", "device=16MiB,link=10GB/s"]

    def test_any_topology_gives_the_same_tokens(self):
        args = [*self.SIMULATED, "--tokens", self.path("ids", b"1 2 3 " * 100)]
        expected = self.document(*args)["output"]
        two = {"HWLOC_SYNTHETIC": "numa:2 pu:1"}
        for env in (two, {"HWLOC_SYNTHETIC": "numa:1 pu:2"},
                    {"HWLOC_SYNTHETIC": "numa:8 pu:2"},
                    {"HWLOC_SYNTHETIC": "pack:1 [numa] [numa] pu:2"},
                    {**two, "HWLOC_THISSYSTEM": "1"},
                    {"HWLOC_COMPONENTS": "stop"}):
            document = self.document(*args, env=environment(**env))
            self.assertEqual(document["output"], expected, env)
            warnings = " ".join(document["warnings"])
            self.assertEqual("topology" in warnings, "HWLOC_COMPONENTS" in env,
                             warnings)
        document = self.document(*args, preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_MEMLOCK, (0, 0)))
        self.assertEqual(document["output"], expected)
        if os.geteuid() != 0:  # who may lock anything, may
            self.assertIn("not pinned", " ".join(document["warnings"]))

    def test_an_address_space_too_small_is_out_of_memory(self):
        ids = self.path("ids", b"1 2 3 " * 100)
        for args in (self.SIMULATED, self.SIMULATED[:-2]):
            args = [*args, "--tokens", ids, "-t", "2", "--json"]
            expected = json.loads(self.succeed(*args))["output"]
            codes = set()
            for mebibytes in range(16, 256, 8):
                limit = mebibytes << 20
                result = run(*args, preexec_fn=lambda: resource.setrlimit(
                    resource.RLIMIT_AS, (limit, limit)))
                codes.add(result.returncode)
                if result.returncode == 127:
                    continue  # the libraries do not fit
                document = json.loads(result.stdout)
                if result.returncode == 0:
                    self.assertEqual(document["output"], expected)
                    continue
                self.assertEqual(result.returncode, 4, document)
                self.assertIn(document["error"]["code"], (
                    "out_of_memory", "does_not_fit", "no_thread"))
            self.assertLessEqual({0, 4}, codes)
        # Enough to run, not to measure in: times are not predicted.
        for mebibytes in (64, 88, 104, 120):
            limit = mebibytes << 20
            self.succeed(*args, env=environment(
                XDG_CACHE_HOME=self.path("rates%d" % mebibytes)),
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS,
                                                      (limit, limit)))

    def test_no_model_anywhere(self):
        message = self.refuse(2, "no_model", "generate", "-p", "x",
                              env=environment(HOME=None, XDG_CACHE_HOME=None))
        self.assertIn("TIERCEL_MODEL", message)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
