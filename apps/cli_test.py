"""Runs the program as a user does: exit codes, JSON, odd environments.

    cli_test.py TIERCEL CHECKPOINTS
"""

import json
import math
import os
import pathlib
import re
import resource
import shutil
import struct
import subprocess
import sys
import time
import unittest

from cli_testing import (TIERCEL, CHECKPOINTS, IDS_ONLY, CHAT, environment, run,
                         read_npy, Case)
import gguf_file  # from bench/, where cli_testing looks

ALL_FAULTS = "TIERCEL_ALL_FAULTS" in os.environ  # full.sh


def size(count):
    """Returns a count of bytes as tables show it."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return "%.*f %s" % (0 if unit == "B" else 2, count, unit)
        count /= 1024


class UsageTest(Case):
    def test_help_and_version(self):
        for args in (["--help"], ["-h"], ["help"], ["generate", "--help"],
                     ["help", "generate"]):
            self.assertIn(b"Usage:", self.succeed(*args))
        self.assertRegex(self.succeed("--version"),
                         rb"^tiercel \d+\.\d+\.\d+ \(commit .+\)\n$")

    def test_the_manual_page_has_the_commands(self):
        said = self.succeed("--help").decode()
        commands = re.findall(r"^  ([a-z]+) {2,}(\S.*)$", said, re.M)
        self.assertGreater(len(commands), 9)
        page = pathlib.Path(__file__).with_name("tiercel.1").read_text()
        listed = re.findall(r"^\.TP\n\.B ([a-z]+)\n(.*)$", page, re.M)
        self.assertEqual(listed, commands)

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
            (text + ["-ctk", "q4_1"], "-ctk"),
            (["generate", "-p", "x", "-m", ""], "-m"),
        ):
            # A flag without its value must stay the last argument.
            result = run(*args)
            self.assertEqual(result.returncode, 2, args)
            self.assertIn(name, result.stderr.decode())
            self.assertEqual(result.stdout, b"")
            self.assertEqual(result.stderr.count(b"\n"), 1, result.stderr)

    def test_not_in_this_version(self):
        message = self.refuse(2, "not_in_this_version", "detokenize",
                              "--add-bos", "1")
        self.assertIn("not in this version", message)

    def test_stretching_by_nothing_is_refused(self):
        """The checkpoint may have a scale of its own, so it must be opened."""
        tokens = ["--tokens", self.path("tokens", b"1 2 3 4 5 6 7 8 9 " * 9)]
        original = ["--yarn-orig-ctx", "16"]
        for flags in (original, ["--rope-scaling", "yarn"],
                      ["--rope-scaling", "yarn", *original],
                      ["--rope-scaling", "linear"]):
            for args in (["plan"], ["eval", *tokens], ["generate", *tokens]):
                message = self.refuse(2, "usage", *args, "-m", IDS_ONLY,
                                      *flags)
                self.assertRegex(message, "^%s: it has no effect without "
                                 "--rope-scale" % (
                                     "--yarn-orig-ctx" if "16" in flags
                                     else "--rope-scaling"))
        for model, flags in ((IDS_ONLY, ["--rope-scale", "2"]),
                             (IDS_ONLY, ["--rope-scaling", "yarn",
                                         "--rope-scale", "2", *original]),
                             (os.path.join(CHECKPOINTS, "llama_rope_yarn"),
                              original)):
            nll = [self.document("eval", "-m", model, *tokens, *more)["nll"]
                   for more in ([], flags)]
            self.assertNotEqual(*nll)

    def test_malformed_variables_are_named(self):
        for name, value, code in (("TIERCEL_MODEL", "", "usage"),
                                  ("TIERCEL_ISA", "sse9",
                                   "invalid_environment")):
            env = environment(**{"TIERCEL_MODEL": CHAT, name: value})
            message = self.refuse(2, code, "generate", "-p", "x", env=env)
            self.assertIn(name, message)

    def test_a_wrong_isa_is_refused_where_no_model_is_loaded(self):
        env = environment(TIERCEL_MODEL=CHAT, TIERCEL_ISA="avx9")
        for args in (["inspect"], ["plan"], ["tokenize", "-p", "x"],
                     ["detokenize", "5"], ["cache", "list"]):
            self.assertIn("TIERCEL_ISA", self.refuse(
                2, "invalid_environment", *args, env=env))
        version = run("--version", env=env)
        self.assertEqual((version.returncode, version.stdout), (2, b""))
        self.assertIn(b"avx9", version.stderr)
        self.assertIn(b"Usage:", self.succeed("help", env=env))

    def test_a_missing_model_is_an_io_error(self):
        self.assertIn("/no/model", self.refuse(
            6, "file_not_found", "inspect", "-m", "/no/model"))
        self.assertIn("TIERCEL_MODEL", self.refuse(
            6, "file_not_found", "inspect",
            env=environment(TIERCEL_MODEL="/no/model")))

    def test_a_name_that_no_terminal_or_json_takes(self):
        name = b"/no/\x1b[31m\x7f\xff"
        plain = run("inspect", name)
        self.assertEqual(plain.returncode, 6)
        self.assertIn(b"/no/?[31m?", plain.stderr)
        machine = run("inspect", name, "--json")
        self.assertEqual(machine.returncode, 6)
        self.assertIn("/no/\x1b[31m\x7f\ufffd",
                      json.loads(machine.stdout)["error"]["message"])

    def test_a_wrong_model_is_invalid_input(self):
        path = self.path("x.gguf", b"this is no model, only a few words")
        result = run("inspect", path)
        self.assertEqual(result.returncode, 3, result.stderr.decode())


class PlanTest(Case):
    def test_the_document(self):
        cache = environment(XDG_CACHE_HOME=self.directory)
        plan = self.document("plan", "-m", CHAT, "-c", "1000", env=cache)
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
        # The host holds 8 pages of 128 positions, in 2 layers, K and V of 2
        # bytes; the hidden states, in floats, of the layer that goes to disk;
        # and the buffers of size vocab from which a token is drawn.
        config = self.document("inspect", CHAT)["config"]
        self.assertEqual(plan["tiers"]["host"],
                         {"kv": 8 * 128 * 2 * 2 * 2 * config["kv_heads"] *
                          config["head_dim"], "weights": 0,
                          "workspace": 1000 * 4 * config["hidden"] +
                          (12 + 4 * 8) * config["vocab"]})
        text = self.succeed("plan", "-m", CHAT, "-c", "1000").decode()
        self.assertRegex(text, r"context +1,000 tokens\n")
        self.assertRegex(text, r"fits +yes\n")

    def test_the_table_is_the_document(self):
        args = ["plan", "-m", CHAT, "-c", "1000", "--policy", "triforce",
                "--simulate", "device=64MB,link=2.5GB/s"]
        document = self.document(*args)
        table = self.succeed(*args).decode()
        for name, tier in document["tiers"].items():
            self.assertRegex(table, r"(?m)^%s memory +%s$" %
                             (name, size(sum(tier.values()))))
            for part, count in tier.items():
                if count > 0:
                    self.assertRegex(table, r"(?m)^  %s +%s$" %
                                     (part, size(count)))
        self.assertRegex(table, r"link +2\.50 GB/s\n")

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
        # A device for a shorter context, and the largest that it serves.
        less = json.loads(run(
            "plan", "-m", CHAT, "-c", "1000", "--simulate",
            "device=1MB,link=2GB/s", "--json").stdout)["min_device_bytes"]
        args = ["plan", "-m", CHAT, "--simulate", "device=%d,link=2GB/s" % less]
        most = json.loads(run(*args, "--json").stdout)["max_context"]
        self.assertIn(most, range(1000, 4096))
        for context, code in ((most, 0), (most + 1, 4)):
            result = run(*args, "-c", str(context))
            self.assertEqual(result.returncode, code, result.stdout)
        plan = json.loads(run(*args, "-c", str(most + 1), "--json").stdout)
        self.assertEqual(
            plan["lacks"],
            "context %d needs %d bytes of device memory at least, the budget is "
            "%d; it can serve a context of %d" % (
                most + 1, plan["min_device_bytes"], less, most))
        self.assertIn(plan["lacks"].encode(), result.stderr)
        # This device is large enough, and the host tier is not.
        result = run("plan", "-m", CHAT, "-c", "1000", "--host-memory", "1kB",
                     "--simulate", "device=%d,link=2GB/s" % less, "--no-cache")
        self.assertEqual(result.returncode, 4)
        self.assertIn(b"bytes of the host tier, ", result.stderr)

    def test_the_rank_that_does_not_fit(self):
        gqa = os.path.join(CHECKPOINTS, "llama_gqa.gguf")
        args = ["plan", "-m", gqa, "-c", "1000", "--tensor-parallel", "2",
                "--simulate"]
        least = json.loads(run(*args, "device=1kB,link=2GB/s", "--json")
                           .stdout)["min_device_bytes"]
        less = run(*args, "device=%d,link=2GB/s" % (least - 64))
        self.assertEqual(less.returncode, 4)
        self.assertIn(b"rank 1 of 2: context 1000 needs %d bytes" % least,
                      less.stderr)
        self.assertRegex(less.stdout, rb"rank 0 .*KV heads 0 to 0\n")
        self.assertRegex(less.stdout,
                         rb"rank 1 .*KV heads 1 to 2: does not fit\n")

    def test_it_reads_no_weights(self):
        args = ["-m", self.without_weights(), "--check-tensors"]
        self.refuse(3, "non_finite_weights", "generate", *args, "-p", "x")
        self.succeed("plan", *args)

    def test_a_budget_of_memory(self):
        tiers = self.document("plan", "-m", CHAT, "-c", "1000")["tiers"]
        budget = sum(sum(tier.values()) for tier in tiers.values())
        args = ["-m", CHAT, "--device-memory", "%dB" % budget]
        plan = json.loads(run("plan", *args, "--json").stdout)
        self.assertFalse(plan["fits"])
        self.assertEqual(plan["machine_bytes"], budget)
        self.assertEqual(plan["device_bytes"], budget)  # all in one place
        most = plan["max_context"]
        self.assertIn(most, range(1000, 1128))  # the rest of a page, at most
        text = ["-p", "Once upon a time", "-n", "2"]
        self.document("generate", *args, *text)  # takes the context that fits
        self.document("generate", *args, *text, "-c", str(most))
        message = self.refuse(4, "does_not_fit", "generate", *args, *text,
                              "-c", str(most + 1))
        self.assertIn("the budget is %d" % budget, message)
        # Without room for any token the error is not that the text is too long.
        for args in (["--device-memory", "9kB"],
                     ["--simulate", "device=9kB,link=1GB/s"]):
            message = self.refuse(4, "does_not_fit", "generate", "-m", CHAT,
                                  *text, *args)
            self.assertIn("context 1 needs", message)
        for size in ("much", "8"):
            self.assertIn("8GiB", self.refuse(2, "usage", "plan", "-m", CHAT,
                                              "--device-memory", size))


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
        # The logits are of order 2, in float32, after a few layers.
        self.assertLess(max(abs(a - b) for a, b in zip(logits, golden)), 1e-3)
        self.assertEqual(os.listdir(self.directory), ["logits.npy"])

    def test_the_figures_are_those_of_the_logits(self):
        out = self.path("logits.npy")
        result = self.evaluate("--logits", out)
        (rows, vocab), logits = read_npy(out)
        with open(os.path.join(IDS_ONLY, "tokens.txt")) as file:
            ids = [int(word) for word in file.read().split()]
        total = 0.0
        for row, following in zip(range(rows - 1), ids[1:]):
            distribution = logits[row * vocab:(row + 1) * vocab]
            total += math.log(math.fsum(map(math.exp, distribution))) - distribution[following]
        nll = total / (rows - 1)
        self.assertAlmostEqual(result["nll"], nll, places=9)
        self.assertAlmostEqual(result["perplexity"], math.exp(nll), places=6)
        table = self.succeed("eval", "-m", IDS_ONLY, "--tokens",
                             os.path.join(IDS_ONLY, "tokens.txt")).decode()
        self.assertRegex(table, r"nll +%.6f nats per token\n" % nll)
        self.assertRegex(table, r"perplexity +%.4f\n" % math.exp(nll))
        self.assertRegex(table, r"tokens +%d\nscored +%d\n" % (rows, rows - 1))

    def test_the_seconds_are_those_of_the_reading(self):
        # Four full pages in each of two layers go down a slow link first.
        tokens = self.path("tokens", b"1 2 3 4 5 6 7 8 9 10 " * 60)
        begin = time.monotonic()
        table = self.succeed("eval", "-m", IDS_ONLY, "--tokens", tokens,
                             "--simulate", "device=64MB,link=200kB/s").decode()
        whole = time.monotonic() - begin
        seconds = float(re.search(r"seconds +(.+)\n", table).group(1))
        shown_to = 0.005  # the table rounds to hundredths
        self.assertGreaterEqual(seconds + shown_to,
                                2 * 4 * 128 * 2 * 2 * 16 * 2 / 200e3)
        # The program itself takes longer than its reading.
        self.assertLessEqual(seconds - shown_to, whole)

    def test_what_is_simulated_is_said(self):
        self.assertNotIn("simulated", self.evaluate())
        self.assertTrue(self.evaluate("--simulate",
                                      "device=64MB,link=1GB/s")["simulated"])

    def test_activations_are_as_is_said(self):
        folder = os.path.join(CHECKPOINTS, "quant32")
        args = ["eval", "-m", os.path.join(folder, "q4_0.gguf"), "--tokens",
                os.path.join(folder, "tokens.txt")]
        rough, exact = [self.document(*args, "--compute", name)["nll"]
                        for name in ("q8", "f32")]
        self.assertNotEqual(rough, exact)
        self.assertAlmostEqual(rough, exact, delta=0.05)

    def test_positions_are_stretched_as_is_said(self):
        results = [self.evaluate(*flags)["nll"] for flags in (
            [], ["--rope-freq-base", "5e5"],
            ["--rope-scaling", "linear", "--rope-scale", "2"],
            ["--rope-scaling", "linear", "--rope-scale", "4"],
            ["--rope-scaling", "yarn", "--rope-scale", "4"],
            ["--rope-scaling", "yarn", "--rope-scale", "4",
             "--yarn-orig-ctx", "64"])]
        self.assertEqual(len(set(results)), len(results), results)

    def test_every_isa_gives_the_golden_logits(self):
        _, golden = read_npy(os.path.join(IDS_ONLY, "golden.npy"))
        isas = []
        for isa in ("portable", "avx2", "avxvnni", "avx512",
                      "avx512vnni"):
            out = self.path(isa + ".npy")
            result = run("eval", "-m", IDS_ONLY, "--tokens",
                         os.path.join(IDS_ONLY, "tokens.txt"), "--compute",
                         "f32", "-ctk", "f32", "-ctv", "f32", "--logits", out,
                         env=environment(TIERCEL_ISA=isa))
            if b"this machine runs" in result.stderr:
                self.assertEqual(result.returncode, 2)
                continue
            self.assertEqual(result.returncode, 0, result.stderr.decode())
            isas.append(isa)
            logits = read_npy(out)[1]
            self.assertLess(max(abs(a - b) for a, b in zip(logits, golden)),
                            1e-3, isa)
        self.assertIn("portable", isas)

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
                               "perplexity": None, "warnings": []})

    def test_a_disk_that_takes_nothing(self):
        tokens = os.path.join(IDS_ONLY, "tokens.txt")
        for out in ("/dev/full", self.path("no/such/directory.npy")):
            self.refuse(6, "io_error", "eval", "-m", IDS_ONLY, "--tokens",
                        tokens, "--logits", out)
        self.assertEqual(os.listdir(self.directory), [])

    def test_a_file_that_may_not_grow(self):
        result = run("eval", "-m", IDS_ONLY, "--tokens",
                     os.path.join(IDS_ONLY, "tokens.txt"), "--logits",
                     self.path("logits.npy"), preexec_fn=lambda:
                     resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)))
        self.assertEqual(result.returncode, 6, result.stderr)
        self.assertIn(b"File too large", result.stderr)
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

    def test_special_tokens_are_text_where_they_are_asked_for(self):
        text = b"<|im_start|>user"
        ids = self.succeed("tokenize", "-m", CHAT, "--parse-special",
                           input=text)
        self.assertNotEqual(self.succeed("tokenize", "-m", CHAT, input=text),
                            ids)
        args = ["detokenize", "-m", CHAT]
        self.assertEqual(self.succeed(*args, "--parse-special", input=ids),
                         text)
        self.assertEqual(self.succeed(*args, input=ids), b"user")

    def test_more_tokens_than_are_written_at_once(self):
        text = b"a cat, " * 30000
        listed = self.document("tokenize", "-m", CHAT, input=text)["tokens"]
        self.assertGreater(len(listed), 2 * 65536)
        ids = self.succeed("tokenize", "-m", CHAT, input=text)
        self.assertEqual(list(map(int, ids.split(b" "))), listed)
        self.assertEqual(self.succeed("detokenize", "-m", CHAT, input=ids),
                         text)

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

    def test_the_figures_are_those_of_the_file(self):
        with open(os.path.join(IDS_ONLY, "model.safetensors"), "rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(length))
        header.pop("__metadata__", None)
        document = self.document("inspect", IDS_ONLY)
        values = {name: math.prod(entry["shape"])
                  for name, entry in header.items()}
        self.assertEqual(document["parameters"], sum(values.values()))
        self.assertEqual({tensor["name"]: tensor["bytes"]
                          for tensor in document["tensors"]},
                         {name: 4 * count for name, count in values.items()})
        table = self.succeed("inspect", IDS_ONLY).decode()
        self.assertRegex(table, r"parameters +%s\n" %
                         format(sum(values.values()), ","))
        self.assertRegex(table, r"tensors +%d tensors, %.2f KiB\n" % (
            len(values), 4 * sum(values.values()) / 1024))

    def test_a_name_that_drives_a_terminal(self):
        model = self.path("model.gguf")
        with gguf_file.Reader(CHAT + ".gguf") as source:
            keys = {**source.keys, "a.\x1b[31m\n": gguf_file.u32(5)}
            with open(model, "wb") as file:
                gguf_file.write(file, keys, source.tensors,
                                map(source.data, source.tensors),
                                source.alignment)
        table = self.succeed("inspect", model)
        self.assertNotIn(b"\x1b", table)
        self.assertRegex(table, rb'\n  "a.\\u001b\[31m\\n" +5\n')

    def test_the_table_sums_each_type(self):
        model = os.path.join(CHECKPOINTS, "quant32", "q4_0.gguf")
        sums = {}
        for tensor in self.document("inspect", model)["tensors"]:
            count, total = sums.get(tensor["type"], (0, 0))
            sums[tensor["type"]] = (count + 1, total + tensor["bytes"])
        self.assertGreater(len(sums), 1)
        table = self.succeed("inspect", model).decode()
        for name, (count, total) in sums.items():
            self.assertRegex(table, r"\n  %s +%d tensors, %s\n" %
                             (name, count, size(total)))


class WrongModelTest(Case):
    """Checkpoints that differ in one thing from those that work."""

    def copy(self, source):
        shutil.copytree(source, self.path("model"))
        return self.path("model")

    def change(self, name, change):
        """Has `change` edit a JSON file of the copy."""
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
        # A special token needs no row, unless a prompt names it.
        self.succeed("generate", "-m", model, "-p", "a", "-n", "2")
        tokens = self.path("tokens", b"1 384")
        self.refuse(3, "invalid_token", "generate", "-m", model, "--tokens",
                    tokens)
        # A word does; behind it the special token is 385.
        self.change("tokenizer.json", lambda file: file["model"]["vocab"]
                    .update({"beyond": 384}))
        args = ["generate", "-m", model, "-p", "a"]
        message = self.refuse(3, "invalid_vocab", *args)
        self.assertIn("386 tokens", message)
        self.assertIn("384 rows", message)
        self.assertIn("word 384", message)
        self.assertIn(message.split(": ", 1)[-1].strip(),
                      self.document("inspect", model)["cannot_run"])

    def test_chat_templates(self):
        model = self.copy(CHAT)
        book = self.path("book.txt", b"A cat sat on a mat. Then it left.\n")
        args = ["summarize", book, "-m", model, "-n", "2", "--ignore-eos"]

        def put(template):
            self.change("tokenizer_config.json", lambda file: file.update(
                {"chat_template": template}))

        # A template that is missing or cannot be used is not used.
        for template, warnings in ((None, 0), ("", 0), ("{{ messages", 1)):
            put(template)
            document = self.document("inspect", model)
            self.assertFalse(document["chat_template"])
            self.assertEqual(len([text for text in document["warnings"]
                                  if "chat template" in text]), warnings)
            self.assertEqual(self.succeed("inspect", model).count(
                b'\nwarning: "chat template not used'), warnings)
            result = run(*args, "--json")
            document = json.loads(result.stdout)
            self.assertEqual(len(document["output"][0]["tokens"]), 2)
            self.assertEqual(len(document["warnings"]), warnings)
            self.assertEqual(
                result.stderr.count(b"warning: chat template not used"),
                warnings)
        for template in ("{{ messages | nosuch }}", "{{ range(10**9) }}",
                         "{{ raise_exception('roles must alternate') }}"):
            put(template)
            self.assertIn("line 1",
                          self.refuse(3, "template_error", *args))


class SurroundingsTest(Case):
    ARGS = ["generate", "-m", CHAT, "-p", "Once", "-n", "3"]

    def shell(self, redirection):
        return subprocess.run(["sh", "-c", 'exec "$@" ' + redirection, "sh",
                               TIERCEL, *self.ARGS], timeout=600,
                              env=environment(), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)

    def test_no_gpu_is_said(self):
        for command in (["generate", "-p", "x"], ["plan"]):
            done = run(*command, "--device", "cuda", "-m", CHAT,
                       env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
            self.assertEqual(done.returncode, 5, done.stderr.decode())
            self.assertIn("device cuda: ", done.stderr.decode())
            self.assertEqual(done.stdout, b"")
        # It is not the fault of the variable that names the model.
        done = run("generate", "-p", "x", "--device", "cuda",
                   env=environment(TIERCEL_MODEL=CHAT, CUDA_VISIBLE_DEVICES=""))
        self.assertRegex(done.stderr.decode(), "^tiercel: device cuda: ")

    def test_closed_streams(self):
        closed = self.shell(">&-")
        self.assertEqual(closed.returncode, 6, closed.stderr.decode())
        self.assertIn(b"stdout", closed.stderr)
        for redirection in ("<&-", "2>&-", "<&- 2>&-"):
            result = self.shell(redirection)
            self.assertEqual(result.returncode, 0, result.stderr.decode())
            self.assertTrue(result.stdout)
        self.assertEqual(run("tokenize", "-m", CHAT, stdin=None,
                             preexec_fn=lambda: os.close(0)).returncode, 6)

    def test_a_full_stdout_is_said(self):
        book = self.path("book.txt", b"The cat sat on the mat. " * 9)
        ids = self.path("ids", b"1 2 3 4 5")
        pages = [["--help"], ["plan", "--help"], ["--version"]]
        results = [["summarize", book, "-n", "2"],
                   ["ask", book, "who?", "-n", "2"],
                   ["generate", "-p", "Once", "-n", "2"],
                   ["eval", "--tokens", ids], ["tokenize", "-p", "Once"],
                   ["detokenize", "5"], ["inspect"], ["plan"],
                   ["bench", "-p", "4", "-n", "0", "-r", "1"]]
        with open("/dev/full", "wb") as full:
            for args in (*pages, *results,
                         *([*args, "--json"] for args in results)):
                result = subprocess.run(
                    [TIERCEL, *args], stdin=subprocess.DEVNULL, stdout=full,
                    stderr=subprocess.PIPE, timeout=60,
                    env=environment(TIERCEL_MODEL=CHAT))
                self.assertEqual(result.returncode, 6, args)
                self.assertIn(b"tiercel: writing to stdout: No space left",
                              result.stderr, args)

    def test_a_directory_is_no_text(self):
        path = self.directory
        for args in (["summarize", path], ["ask", path, "who?"],
                     ["generate", "-f", path], ["eval", "-f", path],
                     ["eval", "--tokens", path], ["tokenize", "-f", path],
                     ["bench", "-f", path], ["detokenize", "--tokens", path],
                     ["inspect", path], ["generate", "-p", "x", "-m", path],
                     ["generate", "-p", "x", "-md", path]):
            result = run(*args, env=environment(TIERCEL_MODEL=CHAT))
            self.assertEqual(result.returncode, 3, (args, result.stderr))
            self.assertIn(b"directory", result.stderr)

    def test_a_directory_as_stdin_is_no_text(self):
        directory = os.open(self.directory, os.O_RDONLY)
        self.addCleanup(os.close, directory)
        for args in (["summarize", "-"], ["ask", "-", "who?"],
                     ["generate", "-f", "-"], ["eval", "--tokens", "-"],
                     ["tokenize"], ["detokenize"], ["bench", "-f", "-"]):
            message = self.refuse(3, "not_a_regular_file", *args, "-m", CHAT,
                                  stdin=directory)
            self.assertEqual(message, "stdin is a directory")

    def test_utf16_is_named(self):
        text = "The cat sat on the mat."
        marked = self.path("marked", text.encode("utf-16"))
        bare = self.path("bare", text.encode("utf-16-le"))
        for command in ("generate", "eval", "bench"):
            for path, more in ((bare, {}),
                               ("-", {"input": text.encode("utf-16-be")})):
                message = self.refuse(3, "not_text", command, "-f", path, "-m",
                                      CHAT, **more)
                self.assertIn("UTF-16", message)
        # `tokenize` takes any text, also one with NULs.
        nul = self.succeed("tokenize", "-m", CHAT, input=b"a\0b")
        self.assertEqual(self.succeed("detokenize", "-m", CHAT, input=nul),
                         b"a\0b")
        for command in ("generate", "eval", "tokenize", "bench"):
            self.assertIn("UTF-16", self.refuse(3, "not_utf8", command, "-f",
                                                marked, "-m", CHAT))
        plain = self.path("plain", text.encode())
        outputs = [self.document("summarize", path, "-m", CHAT, "-n", "4")
                   ["output"] for path in (marked, bare, plain)]
        self.assertEqual(outputs[0], outputs[2])
        self.assertEqual(outputs[1], outputs[2])

    def test_utf32_is_named(self):
        text = "The cat sat on the mat."
        for encoding, mark in ("utf-32-le", b"\xff\xfe\0\0"), (
                "utf-32-be", b"\0\0\xfe\xff"):
            path = self.path(encoding, mark + text.encode(encoding))
            for command in ("generate", "tokenize"):
                message = self.refuse(3, "not_utf8", command, "-f", path, "-m",
                                      CHAT)
                self.assertIn("is UTF-32", message)
                self.assertNotIn("UTF-16;", message)
            plain = self.path("plain", text.encode())
            outputs = [self.document("summarize", book, "-m", CHAT, "-n", "4")
                       ["output"] for book in (path, plain)]
            self.assertEqual(*outputs)

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
        # Root alone may write into this home, and only rates are kept.
        self.assertEqual(len(kept), os.geteuid() == 0, kept)
        for name in kept:
            self.assertRegex(name, r"^rates-[0-9a-f]{16}\.json$")

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
        if os.geteuid() != 0:  # root may lock all the same
            self.assertIn("not pinned", " ".join(document["warnings"]))

    def test_an_address_space_too_small_is_out_of_memory(self):
        def run_in(mebibytes, *args, **kwargs):
            limit = mebibytes << 20
            return run(*args, **kwargs,
                       preexec_fn=lambda: resource.setrlimit(
                           resource.RLIMIT_AS, (limit, limit)))

        if run_in(256, "--version").returncode != 0:
            self.skipTest("a sanitizer reserves more before main")
        ids = self.path("ids", b"1 2 3 " * 100)
        for args in (self.SIMULATED, self.SIMULATED[:-2]):
            args = [*args, "--tokens", ids, "-t", "2", "--json"]
            expected = json.loads(self.succeed(*args))["output"]
            codes = set()
            enough = 256
            for mebibytes in range(16, 256, 8 if ALL_FAULTS else 24):
                if run_in(mebibytes, "--version").returncode != 0:
                    continue  # the program and its libraries do not fit
                result = run_in(mebibytes, *args)
                codes.add(result.returncode)
                document = json.loads(result.stdout)
                if result.returncode == 0:
                    self.assertEqual(document["output"], expected)
                    enough = min(enough, mebibytes)
                    continue
                self.assertEqual(result.returncode, 4, document)
                self.assertIn(document["error"]["code"], (
                    "out_of_memory", "does_not_fit", "no_thread"))
            self.assertLessEqual({0, 4}, codes)
        # This is enough to run, but not to measure: times are not predicted.
        for more in (8, 32, 48, 64):
            mebibytes = enough + more
            result = run_in(mebibytes, *args, env=environment(
                XDG_CACHE_HOME=self.path("rates%d" % mebibytes)))
            self.assertEqual(result.returncode, 0, result.stderr.decode())

    def test_no_model_anywhere(self):
        message = self.refuse(2, "no_model", "generate", "-p", "x",
                              env=environment(HOME=None, XDG_CACHE_HOME=None))
        self.assertIn("TIERCEL_MODEL", message)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
