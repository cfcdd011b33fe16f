#!/usr/bin/env python3
"""The reader, used over the accessibility bus as a screen reader uses it.

    xvfb-run -a -s -noreset dbus-run-session -- \\
        /usr/bin/python3 -B reader_test.py READER TIERCEL CHECKPOINTS

The model is TIERCEL_MODEL, the book the Debian policy of TIERCEL_BOOKS. Every
look at a widget is answered by the main loop: the longest wait for one is
printed, and the most that the loop itself computed meanwhile, not judged. With
READER_PICTURES, a folder, pictures of the screen are left there (by
ImageMagick's import).
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest

import gi

gi.require_version("Atspi", "2.0")
from gi.repository import Atspi, GLib  # noqa: E402

READER, TIERCEL, CHECKPOINTS = map(os.path.abspath, sys.argv[1:4])
MODEL = os.environ["TIERCEL_MODEL"]
BOOK = os.path.join(os.environ["TIERCEL_BOOKS"], "policy.epub")
TINY = os.path.join(CHECKPOINTS, "llama_chat.gguf")
DEADLINE_S = 300
# Chapters of the book, by their places in the list.
ABOUT, BINARY, RELATIONS, FLOWCHARTS, LICENSE = 1, 3, 7, 21, 23
WHOLE = ("list", "push button", "scroll bar", "text")  # nothing in them counts
CACHE = tempfile.TemporaryDirectory()


class Waits:
    """The longest that the main loop of a process lets a question wait."""

    longest_s = busiest_s = 0
    longest_of_all_s = 0

    def __init__(self, pid):
        self.pid = pid

    def computed_s(self):
        """Seconds that the thread of the main loop has had a processor."""
        with open(f"/proc/{self.pid}/task/{self.pid}/schedstat") as file:
            return int(file.read().split()[0]) / 1e9

    def states_of(self, accessible):
        try:
            computed_s = self.computed_s()
            asked = time.monotonic()
            accessible.clear_cache()
            states = accessible.get_state_set()
            self.longest_s = max(self.longest_s, time.monotonic() - asked)
            Waits.longest_of_all_s = max(Waits.longest_of_all_s,
                                         self.longest_s)
            self.busiest_s = max(self.busiest_s,
                                 self.computed_s() - computed_s)
            return states
        except FileNotFoundError:  # it has ended
            return Atspi.StateSet.new([])


def await_true(ready, said):
    end = time.monotonic() + DEADLINE_S
    while True:
        try:
            value = ready()
        except GLib.Error:  # a widget that has gone meanwhile
            value = None
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"in {DEADLINE_S} s: {said()}")
        time.sleep(0.02)


def within(accessible, waits):
    """Yields an accessible and all in it that is to be seen."""
    if not waits.states_of(accessible).contains(Atspi.StateType.VISIBLE):
        return
    yield accessible
    if accessible.get_role_name() in WHOLE:
        return
    for i in range(accessible.get_child_count()):
        child = accessible.get_child_at_index(i)
        if child is not None:
            yield from within(child, waits)


class Window:
    """A window, of which everything is found by its role and its name."""

    def __init__(self, frame, waits):
        self.frame = frame
        self.waits = waits

    def all(self, role):
        return [one for one in within(self.frame, self.waits)
                if one.get_role_name() == role]

    def find(self, role, name):
        found = [one for one in self.all(role) if one.get_name() == name]
        return found[0] if found else None

    def awaited(self, role, name):
        return await_true(lambda: self.find(role, name), self.words)

    def is_ready(self, role, name):
        one = self.find(role, name)
        return one is not None and one.get_state_set().contains(
            Atspi.StateType.SENSITIVE) and one

    def words(self):
        """All that is said in labels, and of the progress."""
        return [one.get_name() for one in within(self.frame, self.waits)
                if one.get_role_name() in ("label", "progress bar")]

    def await_words(self, pattern):
        """Waits for a label; returns what it says."""
        said = await_true(lambda: [word for word in self.words()
                                   if re.search(pattern, word)],
                          lambda: (pattern, self.words()))
        return said[0]

    def press(self, name):
        button = await_true(lambda: self.is_ready("push button", name),
                            lambda: (name, self.words()))
        Atspi.Action.do_action(button, 0)

    def choose(self, chapter):
        chapters = await_true(lambda: self.is_ready("list", "Chapters"),
                              self.words)
        await_true(lambda: chapters.get_child_count() > chapter, self.words)
        before = self.find("label", "Planning")
        Atspi.Selection.select_child(chapters, chapter)

    def type(self, text):
        entry = await_true(lambda: self.is_ready("text", "Question"),
                           self.words)
        Atspi.EditableText.set_text_contents(entry, text)

    def ask(self, question):
        """Asks, and waits until the window has begun with it."""
        before = self.answers()
        self.type(question)
        self.press("Ask")
        await_true(lambda: self.answers() != before, self.words)

    def await_answer(self):
        await_true(lambda: self.is_ready("push button", "Ask"), self.words)

    def answers(self):
        text = self.awaited("text", "Answers")
        return Atspi.Text.get_text(text, 0, -1)


class Reader:
    """The program, with its windows."""

    def __init__(self, case, *args, **settings):
        self.case = case
        environment = dict(os.environ, XDG_CACHE_HOME=CACHE.name,
                           GSK_RENDERER="cairo", **self.settings(case),
                           **settings)
        self.process = subprocess.Popen(
            [READER, *args], env=environment, cwd=self.files,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        case.addCleanup(self.kill)
        self.waits = Waits(self.process.pid)
        self.window = self.windows(1)[0]

    def settings(self, case):
        """Lets the dialog for files begin in a folder of this test's."""
        folder = tempfile.TemporaryDirectory()
        case.addCleanup(folder.cleanup)
        self.files = os.path.join(folder.name, "files")
        keys = os.path.join(folder.name, "glib-2.0", "settings")
        os.makedirs(self.files)
        os.makedirs(keys)
        with open(os.path.join(keys, "keyfile"), "w") as file:
            file.write("[org/gtk/gtk4/settings/file-chooser]\n"
                       "startup-mode='cwd'\n")
        return {"GSETTINGS_BACKEND": "keyfile", "XDG_CONFIG_HOME": folder.name}

    def kill(self):
        self.process.kill()
        self.process.communicate()

    def frames(self, role="frame"):
        desktop = Atspi.get_desktop(0)
        desktop.clear_cache()
        for i in range(desktop.get_child_count()):
            app = desktop.get_child_at_index(i)
            if app is None or app.get_process_id() != self.process.pid:
                continue
            app.clear_cache()
            frames = [app.get_child_at_index(k)
                      for k in range(app.get_child_count())]
            return [Window(frame, self.waits) for frame in frames
                    if frame is not None and frame.get_role_name() == role]
        return []

    def windows(self, count, role="frame"):
        def all_of_them():
            frames = self.frames(role)
            return len(frames) == count and frames
        return await_true(all_of_them, lambda: (role, len(self.frames(role))))

    def open(self, button, path):
        """Opens a file by the dialog, which chooses the only one there is."""
        for name in os.listdir(self.files):
            os.remove(os.path.join(self.files, name))
        os.symlink(path, os.path.join(self.files, os.path.basename(path)))
        self.window.press(button)
        dialog = self.windows(1, "filler")[0]
        await_true(lambda: dialog.find("push button", "_Open Open"),
                   dialog.words)
        self.picture("dialog")

        def is_gone():
            if not self.frames("filler"):
                return True
            Atspi.Action.do_action(dialog.find("push button", "_Open Open"), 0)
            time.sleep(0.5)
            return False
        await_true(is_gone, dialog.words)

    def picture(self, name):
        folder = os.environ.get("READER_PICTURES")
        if folder:
            subprocess.run(["import", "-window", "root",
                            os.path.join(folder, name + ".png")], check=True)

    def close(self):
        """Closes all windows; the program ends by itself."""
        for window in self.frames():
            window.press("Close")
        out, err = self.process.communicate(timeout=DEADLINE_S)
        self.case.assertEqual(self.process.returncode, 0, err)
        self.case.assertNotIn("CRITICAL", err)
        self.case.assertNotIn("WARNING", err)
        self.case.assertEqual(out, "")
        print(f"{self.case.id().split('.')[-1]}: the main loop answered within "
              f"{1000 * self.waits.longest_s:.0f} ms, and computed for at most "
              f"{1000 * self.waits.busiest_s:.0f} ms", flush=True)


def answer(chapter, *questions):
    """The command's answers to questions about a chapter, in one talk."""
    args = [TIERCEL, "ask", BOOK, "--chapters", str(chapter), "-m", MODEL,
            "--no-cache"]
    first = json.loads(subprocess.run(
        [*args, "--json", questions[0]], stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, check=True).stdout)["output"][0]["text"]
    if len(questions) == 1:
        return first
    said = subprocess.run([*args, "--quiet"], text=True, check=True,
                          input="\n".join(questions), stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout
    assert said.startswith(first + "\n"), (said, first)
    return first, said[len(first):].strip("\n")


class ReaderTest(unittest.TestCase):
    maxDiff = None

    def test_reads_and_answers(self):
        reader = Reader(self, MODEL, BOOK)
        window = reader.window
        plan = window.await_words("tokens.*of memory")
        self.assertRegex(plan, r"^2,?102 tokens, [0-9.]+.MB of memory; about .*"
                         " to read, then about .* for an answer of 100 tokens$")
        reader.picture("plan")
        questions = ["Who maintains this manual?", "What is it about?"]
        window.ask(questions[0])
        window.await_words("Reading: [0-9]+ %, about .* left")
        reader.picture("reading")
        window.await_answer()
        window.ask(questions[1])
        window.await_answer()
        first, second = answer(ABOUT, *questions)
        self.assertEqual(window.answers(), f"{questions[0]}\n{first}\n\n"
                         f"{questions[1]}\n{second}\n\n")
        reader.picture("answers")
        reader.close()

    def test_stop_while_it_reads_and_while_it_answers(self):
        reader = Reader(self, MODEL, BOOK)
        window = reader.window
        window.await_words("tokens.*of memory")
        window.choose(BINARY)
        window.await_words("^4,?[0-9]+ tokens")
        question = "What must a package have?"
        window.ask(question)
        share = window.await_words("Reading: [1-9][0-9] %")
        window.press("Stop")
        pressed = time.monotonic()
        window.await_words("Stopped")
        print(f"stopped at \"{share}\" in {time.monotonic() - pressed:.3f} s")
        self.assertEqual(window.answers(), question + "\n\n\n")
        reader.picture("stopped")
        # It goes on with what was read: no share is below the last one.
        window.press("Ask")
        again = window.await_words("Reading: [0-9]+ %")
        at = [int(re.search("([0-9]+) %", words)[1])
              for words in (share, again)]
        self.assertGreaterEqual(at[1] + 5, at[0])
        window.await_words("Answering")
        await_true(lambda: len(window.answers()) > 2 * len(question) + 8,
                   window.answers)
        window.press("Stop")
        window.await_words("Stopped")
        half = window.answers()
        whole = f"{question}\n\n\n{question}\n{answer(BINARY, question)}"
        self.assertTrue(whole.startswith(half.rstrip("\n")), (half, whole))
        reader.close()

    def test_wrong_files(self):
        with tempfile.NamedTemporaryFile(suffix=".png") as picture:
            picture.write(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(200))
            picture.flush()
            reader = Reader(self, picture.name, picture.name)
            window = reader.window
            said = window.await_words(r"\.png")
            reader.picture("wrong")
            reader.open("Open Model", picture.name)
            said = window.await_words(r"GGUF|checkpoint")
            self.assertIn(os.path.basename(picture.name), said)
            reader.open("Open Model", TINY)
            await_true(lambda: window.is_ready("push button", "New Window"),
                       window.words)
            reader.open("Open Book", picture.name)
            said = window.await_words(r"\.png")
            self.assertIn("text", said)
        reader.open("Open Book", BOOK)
        self.assertRegex(window.await_words("tokens.*of memory"), "tokens")
        self.assertFalse([words for words in window.words() if "png" in words])
        # The context does not hold all of the book.
        window.choose(0)
        window.await_words("too long|longer|more than [0-9,]+ tokens|context")
        window.choose(LICENSE)
        window.await_words("tokens.*of memory")
        window.ask("Who?")
        window.await_answer()
        self.assertGreater(len(window.answers()), 20)
        reader.close()

    def test_too_little_memory(self):
        reader = Reader(self, MODEL, BOOK, READER_MEMORY_MB="270")
        window = reader.window
        window.await_words("tokens.*of memory")
        window.choose(RELATIONS)
        said = window.await_words("needs [0-9]+ bytes of memory")
        print("too little memory:", said)
        reader.picture("memory")
        window.choose(FLOWCHARTS)
        window.await_words("tokens.*of memory")
        question = "What is shown?"
        window.ask(question)
        window.await_answer()
        self.assertEqual(window.answers(),
                         f"{question}\n{answer(FLOWCHARTS, question)}\n\n")
        reader.close()

    def test_two_windows_on_one_model(self):
        reader = Reader(self, MODEL, BOOK)
        window = reader.window
        window.await_words("tokens.*of memory")
        window.press("New Window")
        windows = reader.windows(2)
        questions = {ABOUT: "Who maintains this manual?",
                     LICENSE: "Who wrote this?"}
        for one, chapter in zip(windows, questions):
            one.await_words("tokens.*of memory")
            if chapter != ABOUT:
                one.choose(chapter)
                one.await_words("^[1-4][0-9][0-9] tokens")
        for one, chapter in zip(windows, questions):
            one.ask(questions[chapter])
        reader.picture("two")
        for one, chapter in zip(windows, questions):
            one.await_answer()
            question = questions[chapter]
            self.assertEqual(one.answers(),
                             f"{question}\n{answer(chapter, question)}\n\n")
        reader.close()

    def test_closed_while_it_reads(self):
        reader = Reader(self, MODEL, BOOK)
        reader.window.await_words("tokens.*of memory")
        reader.window.ask("What is it about?")
        reader.window.await_words("Reading: [0-9]+ %")
        reader.close()


if __name__ == "__main__":
    tests = unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2,
                          exit=False)
    print(f"main loops answered within {1000 * Waits.longest_of_all_s:.0f} ms")
    sys.exit(not tests.result.wasSuccessful())
