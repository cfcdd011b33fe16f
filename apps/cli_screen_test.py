"""Checks the bytes that reach a terminal, and their look there.

    cli_screen_test.py TIERCEL CHECKPOINTS
"""

import json
import os
import re
import sys
import unittest

sys.path.append(os.path.dirname(os.path.abspath(__file__)))
from cli_testing import CHAT, Case, Screen, Terminal, run

# Embeddings, overrides, isolates; C1; ESC, DEL and cursor movements.
DRIVES = re.compile("[\u202a-\u202e\u2066-\u2069\x80-\x9f"
                    "\x00-\x08\x0b-\x1f\x7f]")
HOSTILE = "a\x1b]0;b\x07\x1b[2J \x9b31m \u202etxt\u202c \u2066c\u2069 \rd"


def text_of(seen):
    """Returns the text shown, without the status line's control sequences."""
    return seen.decode().replace("\r\n", "\n").replace("\r\x1b[K", "")


class SafetyTest(Case):
    """No text, of a model, a book or a name, can control the terminal."""

    def assert_safe(self, seen):
        found = DRIVES.search(text_of(seen))
        self.assertIsNone(found, seen)

    def terminal(self, *args, code=0, **changes):
        terminal = Terminal(self, *args, **changes)
        self.assertEqual(terminal.end(), code, terminal.seen)
        self.assert_safe(terminal.seen)
        return text_of(terminal.seen)

    def test_what_a_model_writes(self):
        # The bytes of this model are nearly random.
        args = ["generate", "-m", CHAT, "-p", "x", "-n", "2000", "--temp", "9",
                "--ignore-eos"]
        file = self.succeed(*args).decode()
        self.assertTrue(DRIVES.search(file))  # a file has all of them
        shown = self.terminal(*args)
        self.assertTrue(shown.startswith(
            DRIVES.sub("?", file.replace("\r\n", "\n"))), shown)
        document = self.document(*args)
        self.assertEqual(document["output"][0]["text"] + "\n", file)
        lines = self.terminal(*args, "--stream").splitlines()
        self.assertEqual(json.loads(lines[-1])["output"], document["output"])
        self.assertEqual("".join(json.loads(line)["text"]
                                 for line in lines[:-1]) + "\n", file)

    def test_what_a_book_or_a_name_says(self):
        html = "<title>%s</title>" % HOSTILE + "".join(
            "<h1>%s %d</h1><p>The cat sat on the mat.</p>" % (HOSTILE, i)
            for i in range(3))
        book = self.path(HOSTILE.replace("/", "") + ".html", html.encode())
        model = self.path("m\x1b[2J\u202e.gguf")
        os.symlink(CHAT + ".gguf", model)
        for args, code in (
                (["summarize", book, "--toc"], 0),
                (["summarize", book, "--no-talk", "-n", "4"], 0),
                (["ask", book, HOSTILE, "-n", "4"], 0),
                (["summarize", book, "--chapters", HOSTILE], 3),
                (["summarize", book, "--output", book + "/x"], 6),
                (["summarize", book + HOSTILE], 6),
                (["generate", HOSTILE], 2),
                (["bench", "-p", "4", "-n", "0", "-r", "1"], 0)):
            with self.subTest(args=args):
                shown = self.terminal(*args, "-m", model, code=code)
                if HOSTILE in args[1:]:
                    self.assertIn("?[2J", shown)

    def test_what_is_said_of_what_was_typed(self):
        book = self.path("book.txt", b"The cat sat on the mat.")
        terminal = Terminal(self, "ask", book, "-m", CHAT, "-n", "4")
        terminal.prompt()
        typed = "/nosuch \u202etxt\u202c \x9b31m"
        terminal.type(typed.encode() + b"\r")
        found = terminal.until(rb"no such command: [^\n]*\n")
        self.assert_safe(found[0])
        self.assertIn(b"?txt? ?31m", found[0])

    def test_a_pipe_gets_names_that_drive_no_terminal(self):
        result = run("inspect", "/no/\x1b[31m\u009b\u202e\x7f")
        self.assertIn(b"/no/?[31m???", result.stderr)


class WidthTest(Case):
    """Narrow terminals and wide ones."""

    def words_of_a_model(self, *args):
        """Finds a seed for short words of letters of one column."""
        for seed in range(300):
            seeded = [*args, "--seed", str(seed)]
            text = self.document(*seeded)["output"][0]["text"]
            words = text.split()
            if (re.fullmatch("[ -~\n\ufffd]+", text) and len(words) > 15 and
                    max(map(len, words)) < 20):
                return seeded, words
        self.fail("it writes other words")

    def test_answers_break_between_words(self):
        args, words = self.words_of_a_model(
            "ask", self.path("book.txt", b"The cat sat on the mat."), "Who?",
            "-m", CHAT, "-n", "60", "--temp", "0.2", "--ignore-eos")
        for columns in (20, 33, 60, 80):
            terminal = Terminal(self, *args, "--quiet", columns=columns)
            self.assertEqual(terminal.end(), 0)
            seen = terminal.seen.decode()
            answer = seen[seen.index("# Who?") + 6:seen.index("cut at -n")]
            lines = Screen(columns, answer).text()
            self.assertLessEqual(max(map(len, lines)), columns)
            self.assertEqual(" ".join(lines).split(), words)

    def test_summaries_break_between_words(self):
        args, _ = self.words_of_a_model(
            "summarize", self.path("book.txt", b"The cat sat. " * 120), "-m",
            CHAT, "-n", "40", "--temp", "0.2", "--ignore-eos", "-c", "400")
        words = self.succeed(*args).decode().split()
        for columns in (24, 60):
            terminal = Terminal(self, *args, columns=columns)
            # The talk behind it is about a text that does not fit, either.
            terminal.until(rb"The text is\s+longer\s+than.*ends\.\r\n")
            terminal.prompt()
            terminal.type(b"\x04")
            self.assertEqual(terminal.end(), 0)
            terminal = Terminal(self, *args, "--no-talk", columns=columns)
            self.assertEqual(terminal.end(), 0)
            seen = re.sub(r"\r\x1b\[K.*\r\x1b\[K", "",
                          terminal.seen.decode())
            shown = " ".join(Screen(columns, seen).text()).split()
            self.assertIn(" ".join(words), " ".join(shown))


class PartsTest(Case):
    """A book that is read in parts."""

    def seen(self, *args):
        """The lines that a terminal drew, and its text at the end."""
        terminal = Terminal(self, *args, "--no-talk", columns=60)
        self.assertEqual(terminal.end(), 0)
        seen = terminal.seen.decode()
        return (re.findall(r"\r\x1b\[K([^\r]+)", seen),
                " ".join(Screen(60, seen).text()))

    def check_done(self, levels, shown):
        """Checks that the end of each part is said, in the order of the book."""
        for level, made in enumerate(levels):
            for i, part in enumerate(made):
                name = "%s %d of %d" % ("summary" if level else "part", i + 1,
                                        len(made))
                titles = part["chapters"]
                place = " to ".join(dict.fromkeys([titles[0], titles[-1]]))
                done = "%s is done: %s" % (name, place)
                if made is levels[-1]:  # the part itself is written there
                    self.assertNotIn("%s is done" % name, shown)
                else:
                    self.assertIn(done, shown)
                    shown = shown[shown.index(done):]

    def test_a_part_has_a_number_and_a_place(self):
        book = self.path("book.html", "".join(
            "<h1>Part \u732b %d</h1><p>%s</p>" % (i, "The cat sat. " * 60)
            for i in range(4)).encode())
        args = ["summarize", book, "-m", CHAT, "-c", "400", "-n", "24"]
        parts = self.document(*args)["parts"][:-1]
        levels = [[part for part in parts if part["level"] == level]
                  for level in range(parts[-1]["level"] + 1)]
        drawn, shown = self.seen(*args, "--at-once", "1")
        self.check_done(levels, shown)
        for level, made in enumerate(levels):
            for i, part in enumerate(made):
                name = "%s %d of %d" % ("summary" if level else "part", i + 1,
                                        len(made))
                titles = part["chapters"]
                for verb in ("reading", "writing"):
                    pattern = "%s, %s.*: %s" % (name, titles[0], verb)
                    self.assertTrue(any(re.match(pattern, line)
                                        for line in drawn), pattern)
        drawn, shown = self.seen(*args, "--at-once", "3")
        self.check_done(levels, shown)
        count = len(levels[0])
        for line in ("part 1 of %d and 2 more: writing" % count,
                     "part 2 of %d, %s.*: reading" % (
                         count, levels[0][1]["chapters"][0])):
            self.assertTrue(any(re.match(line, one) for one in drawn), line)
        for quiet in (Terminal(self, *args, "--no-talk", "--no-progress"),
                      Terminal(self, *args, "--no-talk", TERM="dumb")):
            self.assertEqual(quiet.end(), 0)
            self.assertNotIn(b"is done", quiet.seen)


class QuietTest(Case):
    def setUp(self):
        super().setUp()
        self.book = self.path("book.txt", b"The cat sat on the mat. " * 20)
        self.short = ["-m", CHAT, "-n", "4", "--ignore-eos"]

    def test_a_script_on_a_terminal_asks_for_no_questions(self):
        terminal = Terminal(self, "summarize", self.book, "--no-talk",
                            *self.short)
        self.assertEqual(terminal.end(), 0)
        self.assertNotIn(b"/help", terminal.seen)
        self.assertIn(b"TTFT", terminal.seen)

    def test_statistics_can_be_left_out(self):
        tree = [*self.short, "-c", "400"]
        book = self.path("long.txt", b"The cat sat on the mat. " * 300)
        for args in (["generate", "-p", "x", *self.short],
                     ["summarize", self.book, *self.short],
                     ["summarize", book, *tree],
                     ["ask", self.book, "Who?", *self.short],
                     ["chat", *self.short]):
            with self.subTest(args=args):
                said, quiet = (
                    run(*args, *flags, input=b"who?\n" * (args[0] == "chat"))
                    for flags in ([], ["--quiet"]))
                self.assertEqual(quiet.stdout, said.stdout)
                self.assertRegex(said.stderr, rb"TTFT|parts made")
                self.assertNotRegex(quiet.stderr, rb"TTFT|parts made|seed")
        # --quiet keeps the result that was asked for.
        result = run("generate", "-p", "a b a b a b", *self.short, "--draft",
                     "ngram", "--verify-against", "full", "--quiet")
        self.assertRegex(result.stderr,
                         rb"^agrees with full, speed-up [0-9.]+\n$")

    def test_a_talk_is_quiet_too(self):
        terminal = Terminal(self, "ask", self.book, *self.short, "--quiet")
        terminal.prompt()
        terminal.type(b"who?\r")
        found = terminal.until(rb"who\?(.*)> (\x1b\[\w+)?$")
        self.assertIn(b"cut at -n 4", found[1])
        self.assertNotIn(b"TTFT", found[1])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
