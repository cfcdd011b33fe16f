"""Gives the program texts that are too long or never end, and interrupts it.

    cli_prompt_cache_test.py TIERCEL CHECKPOINTS

The commands interrupted here would take minutes, or wait for ever.
"""

import fcntl
import json
import os
import re
import resource
import signal
import struct
import termios
import time
import unittest

from cli_testing import (CHECKPOINTS, IDS_ONLY, CHAT, FOREVER, TIERCEL, run,
                         Case)


def at_most(mebibytes):
    """Limits memory beside the program itself, which sanitizers enlarge."""
    limit = (mebibytes << 20) + os.path.getsize(TIERCEL)
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


class LongTextTest(Case):
    def broken(self):
        """A model whose weights give an error if they are read."""
        broken = self.path("broken.gguf")
        with open(CHAT + ".gguf", "rb") as file:
            data = bytearray(file.read())
        data[-64:] = b"\xff" * 64  # NaN, whatever the type
        with open(broken, "wb") as file:
            file.write(data)
        return ["-m", broken, "--check-tensors"]

    def test_a_text_longer_than_the_context(self):
        text = self.path("text", b"one two three " * 100)
        many = ["--tokens", self.path("tokens", b"1 " * 40)]
        for args in (["summarize", text], ["ask", text, "why?"],
                     ["generate", "-f", text], ["eval", "-f", text],
                     ["generate", *many], ["eval", *many]):
            message = self.refuse(3, "context_length_exceeded", *args, "-m",
                                  CHAT, "-c", "32")
            count = re.search(r"has (\d+) tokens, the context holds 32;",
                              message)
            self.assertIsNotNone(count, message)
            if "--tokens" in args:
                self.assertEqual(count[1], "40")
            self.assertIn("-c", message.split(";")[1])

    def test_a_text_as_long_as_the_context(self):
        """It leaves no room for an answer; `eval` needs none."""
        tokens = self.path("tokens", b"1 " * 32)
        args = ["-m", CHAT, "--tokens", tokens, "-c"]
        self.document("eval", *args, "32")
        text = self.path("text", b"one two three ")
        read = self.document("summarize", text, "-m", CHAT, "-n", "1")
        exact = str(read["prompt_tokens"])
        for command, who in (
                (["generate", *args, "32"], "the text has"),
                (["summarize", text, "-m", CHAT, "-c", exact],
                 "the text, with what is asked of it, has")):
            message = self.refuse(3, "context_length_exceeded", *command)
            count = command[-1]
            self.assertIn(f"{who} {count} tokens, the context holds {count} "
                          "and leaves no room for an answer; ", message)
            self.assertRegex(message, r"make room: -c \d+$")
        made_for = self.document("inspect", CHAT)["config"]["context"]
        message = self.refuse(
            3, "context_length_exceeded", "generate", "-m", CHAT, "--tokens",
            self.path("many", b"1 " * made_for))
        self.assertIn("--rope-scaling yarn --rope-scale 2", message)

    def test_an_answer_that_fills_the_context(self):
        warning = ("cut after 2 tokens, where the context of 32 ends; a larger "
                   "-c has room for more")
        tokens = self.path("tokens", b"1 " * 30)
        args = ["generate", "-m", CHAT, "--ignore-eos", "-c", "32"]
        for more, times in (([], 1), (["-n", "3"], 1), (["-n", "2"], 0),
                            (["--seeds", "1:3"], 1)):
            result = run(*args, *more, "--tokens", tokens, "--json")
            self.assertEqual(result.returncode, 0, result.stderr)
            document = json.loads(result.stdout)
            self.assertEqual(document["warnings"], times * [warning])
            self.assertEqual(result.stderr.decode(),
                             times * f"warning: {warning}\n")
        text = self.path("text", b"one two three ")
        read = self.document("summarize", text, "-m", CHAT, "-n", "1")
        result = run("summarize", text, "-m", CHAT, "--ignore-eos", "-c",
                     str(read["prompt_tokens"] + 2))
        self.assertEqual(result.stderr.count(b"cut after 2 tokens, where"), 1)

    def test_the_message_names_what_helps(self):
        made_for = self.document("inspect", CHAT)["config"]["context"]
        tokens = self.path("tokens", b"1 " * (2 * made_for + 1))
        args = ["generate", "-m", CHAT, "--tokens", tokens]
        message = self.refuse(3, "context_length_exceeded", *args)
        helps = re.search("--rope-scaling yarn --rope-scale 3", message)
        self.assertIsNotNone(helps, message)
        message = self.refuse(3, "context_length_exceeded", *args,
                              "--rope-scaling", "yarn", "--rope-scale", "2")
        self.assertIn("--rope-scale 3", message)
        self.assertNotIn("-c", message.split(";")[1])
        message = self.refuse(3, "context_length_exceeded", *args, "-c", "100")
        self.assertRegex(message, r"--rope-scale 3 -c \d+$")

    def test_the_message_names_what_fits_in_memory(self):
        tiers = self.document("plan", "-m", CHAT, "-c", "1000")["tiers"]
        budget = sum(sum(tier.values()) for tier in tiers.values())
        args = ["-m", CHAT, "--device-memory", "%dB" % budget]
        most = json.loads(run("plan", *args, "--json").stdout)["max_context"]
        message = self.refuse(3, "context_length_exceeded", "generate", *args,
                              "--tokens", self.path("ids", b"1 " * 2000))
        self.assertIn("2000 tokens, the context holds %d; no larger context "
                      "fits: cut the text" % most, message)

    def test_what_the_message_names_is_accepted(self):
        tokens = self.path("tokens", b"1 " * 40000)
        plan = ["plan", "-m", CHAT, "-c", "4096"]
        room = self.document(*plan)["tiers"]
        room = sum(sum(tier.values()) for tier in room.values())
        refused = ["generate", *self.broken()]
        for kept, context in ([], []), ([], ["-c", "32"]), (["-n", "500"], []):
            args = [*refused, *kept, "--tokens", tokens]
            message = self.refuse(3, "context_length_exceeded", *args, *context)
            flags = message.rpartition(": ")[2].split()
            self.assertIn("--rope-scale", flags)
            self.refuse(3, "non_finite_weights", *args, *flags)
        for args in (["--device-memory", "%dB" % room],
                     ["--rope-scale", "2", "--yarn-orig-ctx", "8"]):
            message = self.refuse(3, "context_length_exceeded", *refused,
                                  *args, "--tokens", tokens)
            part = re.search("no larger context fits: cut the text into parts "
                             r"of (\d+) tokens at most$", message)
            self.assertIsNotNone(part, message)
            part = int(part[1])
            args = [*refused, *args, "--tokens"]
            self.refuse(3, "non_finite_weights", *args,
                        self.path("part", b"1 " * part))
            self.refuse(3, "context_length_exceeded", *args,
                        self.path("part", b"1 " * (part + 1)))

    def test_what_it_names_of_a_model_that_is_stretched_already(self):
        tokens = self.path("tokens", b"1 " * 2000)
        model = ["-m", os.path.join(CHECKPOINTS, "llama_rope_llama3")]
        stretched = ["--rope-scaling", "yarn", "--rope-scale", "32"]
        small = ["-ctk", "q8_0", "-ctv", "q8_0"]
        room = self.document("plan", *model, *stretched, *small, "-c", "2001")
        room = sum(sum(tier.values()) for tier in room["tiers"].values())
        generate = ["generate", *model, "--tokens", tokens, "-n", "1"]
        for args, flags in ([], stretched), (
                ["--device-memory", "%dB" % room], [*stretched, *small]):
            message = self.refuse(3, "context_length_exceeded", *generate,
                                  *args)
            self.assertEqual(message.rpartition(": ")[2].split(), flags)
            self.succeed(*generate, *args, *flags)

    def test_parts_may_be_as_long_as_the_model_was_made_for(self):
        text = self.path("text", b"1 2 3 4 " * 20000)
        args = ["eval", "-m", CHAT, "-f", text]
        self.assertNotIn("longer ones", self.refuse(
            3, "context_length_exceeded", *args))
        self.assertIn("longer ones with -c 16384, or stretch", self.refuse(
            3, "context_length_exceeded", *args, "-c", "100"))

    def test_it_is_known_before_weights_are_read(self):
        broken = self.broken()
        few = self.path("few", b"1 2 3")
        many = self.path("many", b"1 " * 40)
        text = self.path("text", b"one two three " * 100)
        for command, *question in (["summarize"], ["ask", "why?"]):
            self.refuse(3, "non_finite_weights", command, text, *question,
                        *broken)
            self.refuse(3, "context_length_exceeded", command, text, *question,
                        *broken, "-c", "32")
            self.refuse(6, "file_not_found", command, self.path("none"),
                        *question, *broken)
        self.refuse(3, "text_too_short", "bench", "-f", text, "-p", "9000",
                    *broken)
        self.refuse(3, "context_length_exceeded", "generate", *broken,
                    "--tokens", few, "-c", "3")
        for command in ("generate", "eval"):
            args = [command, *broken, "--tokens"]
            self.refuse(3, "non_finite_weights", *args, few)
            self.refuse(3, "context_length_exceeded", *args, many, "-c", "32")
            self.refuse(2, "invalid_context", *args, few, "-c", "1000000")
            self.refuse(3, "invalid_token", *args, self.path("x", b"x"))
            self.refuse(6, "file_not_found", *args, self.path("none"))
        self.refuse(3, "context_length_exceeded", "bench", *broken, "-d",
                    "1000000")

    def test_counting_ends_where_the_context_does(self):
        """There is no memory to count further."""
        self.needs_to_start(at_most(376))
        text = self.path("text", b"no end to it. " * (3 << 20))  # 42 MiB
        for args in (["summarize", text], ["ask", text, "why?"],
                     ["generate", "-f", text]):
            result = run(*args, "-m", CHAT, "-c", "32", "--json",
                         preexec_fn=at_most(376))
            self.assertEqual(result.returncode, 3, result)
            error = json.loads(result.stdout)["error"]
            self.assertEqual(error["code"], "context_length_exceeded")
            count = re.search(r"^the text has more than (\d+) tokens, about "
                              r"(\d+), the context holds 32;",
                              error["message"])
            self.assertIsNotNone(count, error)
            # The count ends beyond the context, and the length is estimated.
            self.assertEqual(int(count[1]), 32 + (1 << 17))
            few = self.path("few", b"no end to it. " * 3000)
            per_byte = len(self.document("tokenize", "-m", CHAT, "-f", few)
                           ["tokens"]) / (14 * 3000)
            estimate = int(count[2]) / (per_byte * (14 * 3 << 20))
            self.assertTrue(0.9 < estimate < 1.1, estimate)

    def test_of_a_text_bench_reads_what_it_needs(self):
        """There is no memory for the ids of the whole text."""
        self.needs_to_start(at_most(352))
        text = self.path("text", b"no end to it. " * (3 << 20))
        bench = ["bench", "-m", CHAT, "-p", "64", "-n", "0", "-r", "1",
                 "--json", "-f"]
        result = run(*bench, text, preexec_fn=at_most(352))
        self.assertEqual(result.returncode, 0, result)
        # With few tokens a byte the first part that is read has too few.
        words = self.path("words", b"no end to it. " * 5000)
        self.document(*bench[:-2], "-d", "9000", "-f", words)

    def test_what_a_template_cannot_take_is_too_long(self):
        """A template gives up on such a text before its tokens are counted."""
        text = self.path("text", b"\xff" * (40 << 20))
        # So small a context holds no parts of it, either.
        result = run("chat", "--book", text, "-m", CHAT, "-c", "32",
                     input=b"why?\n")
        self.assertEqual(result.returncode, 3)
        self.assertIn(b"the context holds", result.stderr)

    def test_one_piece_takes_little_memory(self):
        """A piece of 16 MiB once took 70 bytes of memory for each byte."""
        self.needs_to_start(at_most(768))
        for letter in (b"a", b" ", b"\xc3\xa9"):
            text = self.path("text", letter * ((16 << 20) // len(letter)))
            result = run("tokenize", "-m", CHAT, "-f", text,
                         preexec_fn=at_most(768))
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertGreater(len(result.stdout), 1 << 20)

    def test_what_is_too_large_is_not_read(self):
        self.needs_to_start(at_most(768))
        huge = self.path("huge", b"")
        os.truncate(huge, 1 << 40)
        for args in (["generate", "-f", huge], ["eval", "--tokens", huge],
                     ["tokenize", "-f", huge], ["generate", "-f", "/dev/zero"],
                     ["summarize", "/dev/zero"]):
            message = self.refuse(3, "input_too_large", *args, "-m", CHAT,
                                  preexec_fn=at_most(768))
            self.assertIn("67108864", message)
        message = self.refuse(3, "document_too_large", "summarize", huge, "-m",
                              CHAT)
        self.assertIn("67108864", message)


class SignalTest(Case):
    def start(self, *args, **kwargs):
        process = self.spawn(*args, **kwargs)
        caught = 0
        while not caught >> (signal.SIGINT - 1) & 1:  # until it has a handler
            self.assertIsNone(process.poll())
            with open("/proc/%d/status" % process.pid) as status:
                caught = int(re.search("SigCgt:\\s*(\\w+)", status.read())[1],
                             16)
        return process

    def ends(self, process, number):
        process.send_signal(number)
        self.assertEqual(process.wait(60), 128 + number)

    def test_before_there_is_text_it_ends_at_once(self):
        fifo = self.path("fifo")
        os.mkfifo(fifo)
        slow = ["-m", CHAT, "--device", "ref", "--tokens",
                self.path("tokens", b"5 " * 16000)]
        for args in (["generate", "-m", CHAT, "-f", fifo],
                     ["summarize", "-m", CHAT, fifo],
                     ["eval", "-m", CHAT, "--tokens", fifo],
                     ["generate", *slow], ["eval", *slow, "-ub", "1"]):
            for number in (signal.SIGINT, signal.SIGTERM):
                process = self.start(*args)
                self.ends(process, number)
                self.assertEqual(process.stdout.read(), b"")
                self.assertEqual(process.stderr.read(),
                                 b"tiercel: interrupted\n")
                process = self.start(*args, "--json")
                self.ends(process, number)
                self.assertEqual(json.loads(process.stdout.read()),
                                 {"error": {"code": "interrupted",
                                            "message": "interrupted"}})
                self.assertEqual(process.stderr.read(), b"")

    def test_interrupted_text_is_in_the_document(self):
        tokens = self.path("tokens", b"1 2 3")
        process = self.start("generate", "-m", CHAT, "--tokens", tokens,
                             "--json", "--stream", *FOREVER)
        first = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        *lines, last = map(json.loads, process.stdout)
        self.assertEqual(process.wait(60), 130)
        self.assertEqual(process.stderr.read(), b"")
        reasons = {o["finish_reason"] for o in last["output"]}
        self.assertEqual(reasons - {"length"}, {"cancelled"})
        streamed = [first, *lines]
        tokens = [t for o in last["output"] for t in o["tokens"]]
        # After a signal a line waits only a moment for its reader.
        self.assertLessEqual(len(tokens) - len(streamed), 1)
        for index, output in enumerate(last["output"]):
            own = [line for line in streamed if line["index"] == index]
            self.assertEqual(output["tokens"][:len(own)],
                             [line["token"] for line in own])
            # A text that ends within a character has its mark behind its
            # tokens.
            said = "".join(line["text"] for line in own)
            self.assertTrue(output["text"].startswith(said))

    def test_a_reader_that_sleeps_holds_nothing_up(self):
        tokens = self.path("tokens", b"1 2 3")
        ids = self.path("ids", b"a" * (1 << 20))
        for args in (["generate", "--tokens", tokens, *FOREVER],
                     ["generate", "--tokens", tokens, "--json", "--stream",
                      *FOREVER], ["tokenize", "-f", ids],
                     ["tokenize", "-f", ids, "--json"]):
            process = self.start(*args, "-m", CHAT)
            held, before = 0, -1
            while held < (1 << 15) or held != before:  # until the pipe is full
                time.sleep(0.2)
                self.assertIsNone(process.poll())
                before = held
                held, = struct.unpack("i", fcntl.ioctl(
                    process.stdout, termios.FIONREAD, bytes(4)))
            self.ends(process, signal.SIGINT)

    def test_a_file_that_is_half_written_goes(self):
        process = self.start("eval", "-m", CHAT, "--device", "ref", "--tokens",
                             self.path("tokens", b"5 " * 16000), "--logits",
                             self.path("logits.npy"), "-ub", "1")
        while len(os.listdir(self.directory)) == 1:
            self.assertIsNone(process.poll())
        self.ends(process, signal.SIGINT)
        self.assertEqual(os.listdir(self.directory), ["tokens"])


if __name__ == "__main__":
    unittest.main(argv=["cli_prompt_cache_test"])
