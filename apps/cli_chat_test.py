"""Conversations on a terminal or a pipe, with a text or without.

    cli_chat_test.py TIERCEL CHECKPOINTS
"""

import json
import os
import re
import signal
import stat
import subprocess
import unittest

from cli_testing import (IDS_ONLY, CHAT, environment, lend_rates, run, Case,
                         Terminal)

TEXT = " ".join(["The cat sat on the mat."] * 20)
ABOUT = ("Read the following text.\n\n%s\n\nAnswer from the text above: " % TEXT)


class ChatTest(Case):
    def setUp(self):
        super().setUp()
        self.state = self.path("state")
        self.book = self.path("book.txt", TEXT.encode())

    def start(self, *args):
        """Returns a terminal at the first prompt."""
        terminal = Terminal(self, "chat", "-m", CHAT, "-n", "8",
                            "--ignore-eos", "--no-progress", *args,
                            XDG_STATE_HOME=self.state)
        terminal.until(rb"/help lists")
        terminal.prompt()
        return terminal

    def ask(self, terminal, question):
        """Returns the tokens of its prompt, those cached, and the answer."""
        terminal.type(question.encode() + b"\r")
        shown = terminal.until(re.escape(question).encode() + rb"\r\n(.*?)\r\n"
                               rb"cut at -n 8 tokens[^\n]*\n(prompt \d+)")
        terminal.seen = shown[2] + terminal.seen
        prompt, cached = terminal.note()
        terminal.prompt()
        return prompt, cached, shown[1].replace(b"\r\n", b"\n").decode()

    def say(self, terminal, command, expected):
        terminal.type(command.encode() + b"\r")
        found = terminal.until(expected)
        terminal.prompt()
        return found

    def tokens(self, *said):
        """The number of tokens of a talk, by the checkpoint's template."""
        text = "".join("<|im_start|>%s\n%s<|im_end|>\n" % (
            ("user", "assistant")[i % 2], message)
            for i, message in enumerate(said))
        return len(self.document(
            "tokenize", "-m", CHAT, "--parse-special",
            input=(text + "<|im_start|>assistant\n").encode())["tokens"])

    def test_errors_name_what_is_typed(self):
        book = self.path("two.txt", b"Chapter 1\n\nA cat.\n\nChapter 2\n\nA dog.\n")
        told = run("chat", "--book", book, "-m", CHAT,
                   input=b"/chapter 9\n/chapter 2-\n/chapter Foo\n/save -\n")
        self.assertEqual([line.split(b":")[0]
                          for line in told.stderr.splitlines()],
                         3 * [b"/chapter"] + [b"/save"])

    def test_a_talk_about_nothing(self):
        terminal = self.start()
        prompt, cached, first = self.ask(terminal, "who?")
        self.assertEqual((prompt, cached), (self.tokens("who?"), 0))
        prompt, cached, _ = self.ask(terminal, "why?")
        self.assertEqual(prompt, self.tokens("who?", first, "why?"))
        self.assertGreater(cached, 0)
        self.say(terminal, "/undo", rb"forgotten: why\?")
        prompt, _, _ = self.ask(terminal, "how?")
        self.assertEqual(prompt, self.tokens("who?", first, "how?"))
        for command in "/toc", "/chapter 1", "/places":
            self.say(terminal, command, rb"no such command: " +
                     command.encode())
        notes = self.path("talk.md")
        self.say(terminal, "/save " + notes, rb"written: ")
        with open(notes, encoding="utf-8") as file:
            said = file.read()
        self.assertRegex(said, r"(?s)# A talk\n.*\[who\?\]\(#turn-1\)\n.*"
                         r'## <a id="turn-1"></a>who\?\n.*</a>how\?\n')
        self.assertNotIn("why?", said)
        self.say(terminal, "/save " + self.path("no/folder"), rb"opening")
        for _ in range(2):
            self.say(terminal, "/undo", rb"forgotten: ")
        self.say(terminal, "/undo", rb"nothing to forget")
        self.assertEqual(self.ask(terminal, "who?")[2], first)
        terminal.type(b"/quit\r")
        self.assertEqual(terminal.end(), 0)

    def test_a_talk_about_a_text(self):
        terminal = self.start("--book", self.book)
        prompt, cached, first = self.ask(terminal, "who?")
        self.assertEqual(prompt, self.tokens(ABOUT + "who?"))
        # The text was read while the question was typed.
        self.assertGreater(cached, prompt - 24)
        prompt, cached, _ = self.ask(terminal, "why?")
        self.assertEqual(prompt, self.tokens(ABOUT + "who?", first, "why?"))
        self.say(terminal, "/toc", rb"no chapters")
        self.say(terminal, "/chapter 1", rb"/chapter: the document has none")
        self.say(terminal, "/chapter 1-", rb"need numbers as")
        self.say(terminal, "/places", rb"quotes nothing|in the text")
        for _ in range(2):
            self.say(terminal, "/undo", rb"forgotten: ")
        self.assertEqual(self.ask(terminal, "who?")[2], first)

    def test_the_oldest_leave_where_the_context_is_full(self):
        context = self.tokens(ABOUT + "who?") + 60
        terminal = self.start("--book", self.book, "-c", str(context))
        for _ in range(8):
            terminal.type(b"who?\r")
            found = terminal.until(rb"(without the oldest \d question[^\n]*)?"
                                   rb"\r\n[^\n]*cut at -n 8[^\n]*\n(prompt \d+)"
                                   )
            terminal.seen = found[2] + terminal.seen
            prompt, cached = terminal.note()
            self.assertLessEqual(prompt, context)
            self.assertGreater(cached, self.tokens(ABOUT + "who?") - 24)
            terminal.prompt()
        self.say(terminal, "x y " * 100,
                 rb"context_length_exceeded[^\n]*ask something shorter")
        self.ask(terminal, "why?")

    def test_it_says_what_leaves(self):
        context = self.tokens("who?") + 70
        terminal = self.start("-c", str(context))
        self.ask(terminal, "who?")
        said = False
        for _ in range(6):
            terminal.type(b"who?\r")
            before = terminal.until(rb"who\?\r\n(.*?)(prompt \d+)")
            terminal.seen = before[2] + terminal.seen
            said = said or b"the context is full: without the oldest" in \
                before[1]
            self.assertLessEqual(terminal.note()[0], context)
            terminal.prompt()
        self.assertTrue(said)
        # All turns leave if the question fits only by itself.
        words = 1
        while self.tokens("x " * words + "x") < context - 6:
            words += 1
        self.assertEqual(self.tokens("x " * words + "x"), context - 6)
        terminal.type(b"x " * words + b"x\r")
        self.assertEqual(terminal.note()[0], context - 6)

    def test_lines_are_remembered(self):
        terminal = self.start()
        self.ask(terminal, "où?")
        terminal.type(b"\x04")
        self.assertEqual(terminal.end(), 0)
        folder = os.path.join(self.state, "tiercel")
        history = os.path.join(folder, "history")
        self.assertEqual(stat.S_IMODE(os.stat(folder).st_mode), 0o700)
        self.assertEqual(stat.S_IMODE(os.stat(history).st_mode), 0o600)
        terminal = self.start()
        terminal.type(b"\x1b[A\r")  # the line before
        self.assertEqual(terminal.note()[0], self.tokens("où?"))

    def test_ctrl_c_where_nothing_was_asked_yet(self):
        terminal = self.start()
        terminal.type(b"half\x03")
        terminal.prompt()
        terminal.type(b"\x04")
        self.assertEqual(terminal.end(), 0)

    def piped(self, lines, *args, command=("chat",), code=0):
        result = run(*command, "-m", CHAT, "-n", "8", "--ignore-eos", "--temp",
                     "0", "--repeat-penalty", "1", *args, input=lines.encode())
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertNotIn(b"> ", result.stderr)
        self.assertNotIn(b"tiercel: ", result.stderr)
        return result.stdout.decode(), result.stderr.decode()

    def test_ask_without_a_question_is_a_talk(self):
        lines = "who?\n/undo\nwhy?\nhow?\n"
        asked, notes = self.piped(lines, command=("ask", self.book))
        self.assertEqual(asked, self.piped(lines, "--book", self.book)[0])
        self.assertIn("prompt %d tokens" % self.tokens(ABOUT + "who?"), notes)
        self.assertIn("forgotten: who?", notes)
        terminal = Terminal(self, "ask", self.book, "-m", CHAT, "-n", "8",
                            "--ignore-eos", "--no-progress",
                            XDG_STATE_HOME=self.state)
        terminal.until(rb"Ask about the text; /help lists")
        terminal.prompt()
        prompt, cached, _ = self.ask(terminal, "who?")
        self.assertEqual(prompt, self.tokens(ABOUT + "who?"))
        self.assertGreater(cached, prompt - 24)
        terminal.type(b"/quit\r")
        self.assertEqual(terminal.end(), 0)

    def test_nobody_who_asks(self):
        for lines in b"", b"\n \n":
            result = run("ask", self.path("no such file"), "-m", CHAT,
                         input=lines)
            self.assertEqual(result.returncode, 2)
            self.assertIn(b"QUESTION is required where stdin is no terminal",
                          result.stderr)
        self.refuse(2, "usage", "ask", "-", "-m", CHAT)

    def test_a_text_on_stdin_leaves_nobody_who_asks(self):
        """Stdin has the text, so no questions can come from there."""
        with open(self.book, "rb") as file:
            text = file.read()
        for name in "-", "/dev/stdin", "/dev/fd/0":
            for args, said in ((["ask", name], b"where the text is on stdin"),
                               (["chat", "--book", name],
                                b"--book: the text cannot be on stdin")):
                result = run(*args, "-m", CHAT, input=text)
                self.assertEqual((result.returncode, result.stdout), (2, b""))
                self.assertIn(said, result.stderr)
        with_question = ["ask", "/dev/stdin", "who?", "-m", CHAT, "-n", "4",
                         "--ignore-eos", "--no-cache"]
        self.assertEqual(run(*with_question, input=text).returncode, 0)

    def test_what_cannot_be_answered_does_not_end_a_pipe(self):
        first = self.piped("who?\n")[0]
        long = "x y " * 100
        context = ["-c", str(self.tokens("who?") + 40)]
        for lines, code, said in (
                (long + "\nwho?\n", 3, "context_length_exceeded"),
                ("x" * ((1 << 20) + 9000) + "\nwho?\n", 3,
                 "a line of over 1048576 bytes"),
                ("/frob\nwho?\n", 2, "no such command: /frob"),
                ("/save %s\nwho?\n" % self.path("no/folder"), 6, "opening"),
                ("/frob\n%s\nwho?\n" % long, 2, "ask something shorter")):
            out, notes = self.piped(lines, *context, code=code)
            self.assertEqual(out, first)
            self.assertEqual(notes.count(said), 1, notes)

    def test_what_was_said_before_a_chapter_is_saved(self):
        book = self.path("book.md", b"# One\n\n%s\n\n# Two\n\nA dog barked.\n" %
                         TEXT.encode())
        notes = self.path("talk.txt")
        out, said = self.piped(
            "who?\nwhy?\n/chapter 2\n/undo\nhow?\n/save %s\n" % notes,
            "--book", book)
        self.assertIn("nothing to forget", said)
        with open(notes, encoding="utf-8") as file:
            saved = file.read()
        self.assertRegex(saved, r"(?s)\nwho\?\n.*\nwhy\?\n.*\nhow\?\n")
        before, after = saved.split("\nhow?\n")
        self.assertNotIn("[Two]", before)
        self.assertIn("\n[Two]\n", after)
        for answer in out.splitlines():
            self.assertIn(answer.strip(), saved)
        # The talk from before the chapter is not in the prompt.
        self.assertIn("prompt %d tokens" % self.tokens(
            ABOUT.replace(TEXT, "# Two\n\nA dog barked.\n") + "how?"), said)

    def test_questions_from_a_pipe(self):
        """Each line is a question; the last needs no line end, and an empty
        line is none."""
        first = self.piped("who?")[0]
        both, notes = self.piped("who?\n\n  why? ")
        self.assertTrue(both.startswith(first))
        self.assertGreater(len(both), len(first))
        self.assertEqual(
            [int(n) for n in re.findall(r"prompt (\d+) tokens", notes)],
            [self.tokens("who?"), self.tokens("who?", first[:-1], "why?")])
        self.assertRegex(notes, r"prompt \d+ tokens, \d+ cached")
        self.assertEqual(self.piped("")[0], "")
        self.assertEqual(self.piped("who?\n/quit\nwhy?\n")[0], first)
        # /undo leaves the conversation as if the question was never asked.
        self.assertEqual(self.piped("why?\n/undo\nwho?\n")[0],
                         self.piped("why?")[0] + first)
        _, notes = self.piped("who?\n", "--book", self.book)
        self.assertIn("prompt %d tokens" % self.tokens(ABOUT + "who?"), notes)

    def test_a_signal_ends_what_comes_from_a_pipe(self):
        process = self.spawn("chat", "-m", CHAT, "--device", "ref", "-n", "-1",
                             "--ignore-eos", stdin=subprocess.PIPE)
        self.addCleanup(process.stdin.close)
        process.stdin.write(b"who?\nwhy?\n")
        process.stdin.flush()
        process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), 130)

    def test_a_talk_about_a_text_that_the_context_does_not_hold(self):
        few = TEXT[:240]
        book = self.path("long.md", "".join(
            "# Chapter %d\n\n%s Number %d.\n\n" % (i, few, i)
            for i in range(1, 12)).encode())
        options = ["-c", "700", "--repeat-penalty", "1.3"]
        cache = self.path("cache")
        lend_rates(self, os.path.join(cache, "tiercel"))

        def asked(question, *flags):
            document = self.document(
                "ask", book, question, "-m", CHAT, "-n", "8", "--ignore-eos",
                *options, *flags, "--no-cache")
            return document["output"][0]["text"].strip()

        def on_terminal(text):
            return re.sub("[\0-\x08]", "?", text)
        terminal = Terminal(self, "chat", "--book", book, "-m", CHAT, "-n",
                            "8", "--ignore-eos", "--no-progress", *options,
                            XDG_STATE_HOME=self.state, XDG_CACHE_HOME=cache)
        terminal.until(rb"longer than the context: each question goes to all")
        terminal.prompt()

        def shown(question):
            """The answer to it, and the note behind."""
            terminal.type(question.encode() + b"\r")
            found = terminal.until(
                rb"parts to ask, then their answers in 1;(.*)parts made[,:] "
                rb"(.*?)seed 0\r\n")
            terminal.prompt()
            return found[1].replace(b"\r\n", b"\n").decode(), found[2]
        whole = asked("who?")
        self.assertIn(on_terminal(whole), shown("who?")[0])
        self.say(terminal, "/places", rb"quotes nothing|in the text")
        # A chapter that fits is talked about, and the next question goes on.
        self.say(terminal, "/chapter 2", rb"about Chapter 2\r\n")
        about = ABOUT.replace(TEXT, "# Chapter 2\n\n%s Number 2.\n\n" % few)
        prompt, _, first = self.ask(terminal, "who?")
        self.assertEqual(prompt, self.tokens(about + "who?"))
        prompt, cached, _ = self.ask(terminal, "why?")
        self.assertEqual(prompt, self.tokens(about + "who?", first, "why?"))
        self.assertGreater(cached, prompt / 2)
        # Chapters that do not fit are asked in their parts.
        self.say(terminal, "/chapter 3-11", rb"about Chapter 3 to Chapter 11, longer than ")
        self.assertIn(on_terminal(asked("how?", "--chapters", "3-11")),
                      shown("how?")[0])
        self.say(terminal, "/chapter", rb"about all of the text, longer than ")
        again, note = shown("who?")
        self.assertIn(on_terminal(whole), again)
        self.assertEqual(note, b"5 parts kept, ")
        notes = self.path("talk.txt")
        self.say(terminal, "/save " + notes, rb"written: ")
        with open(notes, encoding="utf-8") as file:
            self.assertRegex(file.read(), r"(?s)\nwho\?\n.*\nwho\?\n.*"
                             r"\nwhy\?\n.*\nhow\?\n.*\nwho\?\n")
        terminal.type(b"/quit\r")
        self.assertEqual(terminal.end(), 0)
        piped = run("ask", book, "-m", CHAT, "-n", "8", "--ignore-eos",
                    *options, "--effort", "600", input=b"who?\n/chapter 2\n")
        self.assertEqual(piped.returncode, 0, piped.stderr)
        self.assertEqual(piped.stdout.decode().strip(),
                         asked("who?", "--effort", "600"))
        self.assertIn(b"the answer is from 1 of ", piped.stderr)

    def test_a_text_is_kept_and_a_talk_is_not(self):
        cache = self.path("cache")
        lend_rates(self, os.path.join(cache, "tiercel"))
        text = " ".join("word%d" % i for i in range(400))
        book = self.path("long.txt", text.encode())
        talk = ["chat", "-m", CHAT, "-n", "2", "-c", "4k"]

        def kept(args, said):
            env = environment(XDG_CACHE_HOME=cache)
            result = run(*talk, *args, env=env, input=said.encode())
            self.assertEqual(result.returncode, 0, result.stderr)
            return len(json.loads(run("cache", "list", "--json",
                                      env=env).stdout)["prompt_cache"])
        self.assertEqual(kept([], text + "\n"), 0)
        self.assertEqual(kept(["--book", book, "--no-cache"], "who?\n"), 0)
        self.assertEqual(kept(["--book", book], "who?\n"), 1)
        for flag in (["--effort", "1k"], ["--no-cache"]):
            result = run(*talk, *flag, input=b"who?\n")
            self.assertEqual(result.returncode, 2)
            self.assertIn(flag[0].encode() + b": it has no effect without "
                          b"--book", result.stderr)

    def test_what_cannot_be_a_talk(self):
        result = run("chat", "-m", IDS_ONLY, input=b"who?\n")
        self.assertEqual(result.returncode, 3)
        self.assertIn(b"tokenizer", result.stderr)
        result = run("chat", "-m", CHAT, input=b"x" * ((1 << 20) + 5000))
        self.assertEqual(result.returncode, 3)
        self.assertIn(b"a line of over 1048576 bytes", result.stderr)
        terminal = Terminal(self, "chat", "-m", CHAT, "--book", self.book,
                            "-c", "32")
        self.assertEqual(terminal.end(), 3)
        self.assertIn(b"the context holds 32", terminal.seen)


if __name__ == "__main__":
    unittest.main(argv=["cli_chat_test"])
