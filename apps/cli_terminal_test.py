"""Runs the program on a terminal: follow-up questions, signals, screens.

    cli_terminal_test.py TIERCEL CHECKPOINTS
"""

import fcntl
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
import unittest

from cli_testing import (TIERCEL, IDS_ONLY, CHAT, FOREVER, environment, run,
                         without_peak_warnings, Case, Terminal)


class FollowUpTest(Case):
    """Questions that are typed after a summary."""

    TEXT = b" ".join([b"The cat sat on the mat."] * 20)

    def setUp(self):
        super().setUp()
        self.args = ["summarize", self.path("book.txt", self.TEXT), "-m", CHAT,
                     "-n", "8", "--ignore-eos", "--no-progress", "--temp", "0",
                     "--repeat-penalty", "1"]
        alone = self.document(*self.args)
        self.prompt_tokens = alone["prompt_tokens"]
        self.summary = alone["output"][0]["text"]
        self.assertEqual(self.prompt_tokens, len(self.conversation()))

    def start(self, *args, **changes):
        """Returns a terminal after the summary, at the first prompt."""
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
        # The question is typed with a correction, and as UTF-8 in any locale.
        first = "où est le 猫 \U0001f408?"
        typed = first.replace("est", "eX\x7fst")
        for changes in ({}, {"LC_ALL": "C"}, {"TERM": "dumb"}):
            terminal = self.start(**changes)
            terminal.type(typed.encode() + b"\r")
            ids = self.conversation(self.summary, first)
            prompt, cached = terminal.note()
            self.assertEqual(prompt, len(ids))
            # The text and the request are cached, up to the summary.
            self.assertGreaterEqual(cached, self.prompt_tokens)
            terminal.prompt()

            answer = self.answer(ids)
            held = ids + answer["tokens"]
            ids = self.conversation(self.summary, first, answer["text"], "why?")
            expected = self.answer(ids)["text"].encode().replace(b"\n", b"\r\n")
            terminal.type(b"why?\r")
            shown = terminal.until(rb"\r\n(.*?)\r\ncut at -n 8 tokens[^\n]*\n"
                                   rb"(prompt \d+ tokens)")
            terminal.seen = shown[2] + terminal.seen
            self.assertEqual(shown[1], expected)
            again, cached = terminal.note()
            self.assertEqual(again, len(ids))
            # The answer is cached, too, except for its last token, which no
            # step has read.
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
        shown = terminal.until(rb"who\?\r\n(.*?)\r\ncut at -n 8 tokens[^\n]*\n"
                               rb"(prompt [^\n]*simulated)")
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
        talk = (b"%s\n\nSummary:%s\n\nQuestion: who?\nAnswer:" %
                (self.TEXT, self.document(*self.args)["output"][0]["text"]
                 .encode()))
        self.assertEqual(prompt, len(self.document(
            "tokenize", "-m", model, "--add-bos", input=talk)["tokens"]))
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
        for question in (b"who?", b"why?"):  # Ctrl-C stops each answer
            terminal.type(question + b"\r")
            terminal.until(re.escape(question) + b"\r\n.{20}")
            terminal.type(b"\x03")
            terminal.prompt()
        # At the prompt Ctrl-C drops the line, if any.
        for typed in (b"half a li", b"", b"\xe7\x8c", b"half \x1b[D\x1b"):
            terminal.type(typed + b"\x03")
            terminal.prompt()
        terminal.type(b"wh\x03")
        terminal.prompt()
        terminal.type(b"/nosuch\r")
        terminal.until(rb"no such command: /nosuch")
        terminal.prompt()
        terminal.type(b"who?\r")  # the text is still held
        terminal.until(rb"who\?\r\n.{20}")
        terminal.type(b"\x03")
        terminal.prompt()
        terminal.type(b"\x04")
        self.assertEqual(terminal.end(), 0)

    def test_sigterm_at_the_prompt(self):
        terminal = self.start()
        terminal.process.send_signal(signal.SIGTERM)
        self.assertEqual(terminal.end(), 143)

    def test_the_terminal_is_given_back(self):
        def mode(terminal):
            return termios.tcgetattr(terminal.master)[3] & (
                termios.ICANON | termios.ECHO | termios.ISIG)

        for dropped, ending in ((b"", b"/quit\r"), (b"", b"\x04"),
                                (b"half\x03", b"\x04")):
            terminal = self.start()
            self.assertFalse(mode(terminal) & termios.ICANON)
            if dropped:
                terminal.type(dropped)
                terminal.prompt()  # the terminal is ours again
            terminal.type(ending)
            # The terminal outlives its program while we hold this end.
            terminal.process.wait(60)
            self.assertEqual(mode(terminal), termios.ICANON | termios.ECHO |
                             termios.ISIG, (dropped, ending))

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

    def test_the_seed_is_heeded(self):
        self.args[self.args.index("--temp") + 1] = "1"
        texts = [self.document(*self.args, "--seed", seed)["output"][0]["text"]
                 for seed in ("0", "7")]
        self.assertNotEqual(*texts)
        terminal = Terminal(self, *self.args, "--seed", "7")
        shown = terminal.until(rb"^(.*?)\r\ncut at [^\n]*\n[^\n]*, seed 7\r\n")
        self.assertEqual(shown[1].replace(b"\r\n", b"\n").decode(), texts[1])

    def test_a_text_that_is_typed_or_compared_takes_no_questions(self):
        terminal = Terminal(self, *self.args, "--draft", "ngram",
                            "--verify-against", "full")
        terminal.until(rb"agrees with full[^\n]*\n")
        terminal.type(b"\x04")
        self.assertEqual(terminal.end(), 0)
        self.assertNotIn(b"/help", terminal.seen)
        self.args[1] = "-"
        terminal = Terminal(self, *self.args)
        terminal.type(b"The cat sat on the mat.\n\x04")
        terminal.until(rb"TTFT[^\n]*\n")
        terminal.type(b"\x04")  # Ctrl-D would end a prompt
        self.assertEqual(terminal.end(), 0)
        self.assertNotIn(b"/help", terminal.seen)

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


class SignalTest(Case):
    def test_a_signal_ends_a_generation_and_its_text_stays(self):
        tokens = self.path("tokens", b"1 2 3")
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.spawn("generate", "-m", IDS_ONLY, "--tokens",
                                 tokens, *FOREVER)
            self.assertEqual(process.stdout.readline(), b"# seed 0\n")
            process.send_signal(number)
            rest = process.stdout.read()
            self.assertEqual(process.wait(60), 128 + number)
            self.assertTrue(rest.endswith(b"\n"), rest[-80:])

    def test_a_second_signal_ends_it_at_once(self):
        process = self.spawn("generate", "--json", "--stream", "-m", IDS_ONLY,
                             "--tokens", self.path("tokens", b"1 2 3"),
                             *FOREVER)
        process.stdout.readline()
        for number in (signal.SIGSTOP, signal.SIGINT, signal.SIGTERM,
                       signal.SIGCONT):  # stopped, it gets the two together
            process.send_signal(number)
        # The first signal alone would make it write its document.
        self.assertNotIn(b"output", process.stdout.read())
        self.assertIn(process.wait(60), (130, 143))

    def test_a_signal_ends_waiting_for_input(self):
        process = self.spawn("tokenize", "-m", CHAT, "--json",
                             stdin=subprocess.PIPE)
        self.addCleanup(process.stdin.close)
        # It must read first, or the signal would meet the child before exec.
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
            env=environment(TERM="xterm", NO_COLOR="1", COLUMNS=None))
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        os.close(slave)
        while b"reading" not in os.read(master, 100000):
            pass
        for columns in (12, 0, 20):  # 0: the width is not known
            resize(columns)
            process.send_signal(signal.SIGWINCH)
            self.assertTrue(columns == 0 or any(
                len(os.read(master, 100000).split(b"\x1b[K")[-1]) + 1 == columns
                for _ in range(30)))
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), 130)

    def test_a_reader_that_leaves_is_no_error(self):
        tokens = self.path("tokens", b"1 2 3")
        process = self.spawn("generate", "-m", IDS_ONLY, "--tokens", tokens,
                             "--stream", *FOREVER)
        process.stdout.readline()
        process.stdout.close()
        self.assertEqual(process.wait(60), 0)
        self.assertEqual(process.stderr.read(), b"")


class ScreenTest(Case):
    """Progress is drawn where the terminal can draw, also with NO_COLOR."""

    def shown(self, *args, **changes):
        terminal = Terminal(self, "bench", "-m", CHAT, "-p", "4", "-n", "0",
                            "-r", "1", *args, **changes)
        self.assertEqual(terminal.end(), 0)
        return without_peak_warnings(terminal.seen)

    def test_it_is_drawn_where_it_can_be(self):
        for args, changes, drawn in (([], {}, True),
                                     ([], {"NO_COLOR": "1"}, True),
                                     (["--no-progress"], {}, False),
                                     ([], {"TERM": "dumb"}, False),
                                     ([], {"TERM": None}, False)):
            with self.subTest(args=args, changes=changes):
                seen = self.shown(*args, **changes)
                self.assertEqual(b"\x1b" in seen, drawn, seen)
                self.assertEqual(b"pp4 0 / 2 runs" in seen, drawn, seen)
                # Progress is erased before results.
                self.assertIn(b"\r\x1b[K| model" if drawn else b"| model", seen)

    def test_it_is_as_wide_as_columns_say(self):
        lines = self.shown(COLUMNS="12").split(b"| model")[0].split(b"\x1b[K")
        drawn = [line for line in lines if line.startswith(b"pp4")]
        self.assertEqual(max(map(len, drawn)), len(b"pp4 0 / 2 r\r"))


class BenchTest(Case):
    """`bench` shows its progress, and each row as soon as it is done."""

    def test_rows_come_as_they_are_done(self):
        terminal = Terminal(
            self, "bench", "-m", CHAT, "-f", self.path("text", b"a b " * 40),
            "-p", "4", "-n", "3", "-d", "8,16", "-r", "2", "--draft", "ngram",
            "--verify-against", "full")
        terminal.until(rb"measuring peaks of this machine: \d+ / \d+ runs")
        for depth in (8, 16):
            # A generation is run without drafts, too, before its row comes.
            for test, sessions in ((b"pp4", 1), (b"tg3", 2)):
                for i in [0, 1, 2] * sessions:
                    terminal.until(rb"%s@d%d %d / 3 runs" % (test, depth, i))
                terminal.until(rb"\| %s @ d%d \|" % (test, depth))
        self.assertEqual(terminal.end(), 0)

    def test_an_interrupted_array_has_the_rows_that_are_done(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            master, slave = os.openpty()
            self.addCleanup(os.close, master)
            process = subprocess.Popen(
                [TIERCEL, "bench", "-m", CHAT, "--device", "ref", "-p", "4",
                 "-n", "0", "-r", "1", "-d", "0,16000", "--json"],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=slave,
                env=environment(TERM="xterm"))
            self.addCleanup(process.stdout.close)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            os.close(slave)
            said = b""
            while b"reading" not in said:  # the second test's depth
                said += os.read(master, 1 << 16)
            process.send_signal(number)
            rows = json.loads(process.stdout.read())
            self.assertEqual(process.wait(60), code)
            self.assertEqual([row["test"] for row in rows], ["pp4"])
            while b"tiercel: interrupted" not in said:
                said += os.read(master, 1 << 16)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
