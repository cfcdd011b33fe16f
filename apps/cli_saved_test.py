"""Texts that were read once open again: the prompt cache, its use, and that no
answer depends on it.

    cli_saved_test.py TIERCEL CHECKPOINTS
"""

import fcntl
import json
import os
import random
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

from cli_testing import (CHAT, TIERCEL, Case, Screen, Terminal, environment,
                         lend_rates, run, run_until, write_deeper)

ALL_FAULTS = "TIERCEL_ALL_FAULTS" in os.environ  # full.sh
LAYERS = 24 if ALL_FAULTS else 12  # the model is stopped between them
WORDS = "the cat sat on a mat and saw one two three birds fly over it".split()


class SavedCase(Case):
    """A case with a cache of its own, which has rates and no texts."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.cache = os.path.join(folder.name, "tiercel")
        cls.texts = os.path.join(cls.cache, "prompt_cache")
        cls.env = environment(XDG_CACHE_HOME=folder.name)

    def setUp(self):
        super().setUp()
        lend_rates(self, self.cache)
        if os.path.isdir(self.texts):
            shutil.rmtree(self.texts)
        elif os.path.exists(self.texts):
            os.remove(self.texts)
        chance = random.Random(1)
        self.text = " ".join(chance.choice(WORDS) for _ in range(1500))
        self.book = self.path("book.txt", self.text.encode())

    def ask(self, *args, command="ask", book=None):
        asked = ["who?"] if command == "ask" else []
        return self.document(command, book or self.book, *asked, "-m", CHAT,
                             "-n", "24", "--ignore-eos", *args, env=self.env)

    def kept(self):
        return sorted(os.listdir(self.texts)) if os.path.isdir(
            self.texts) else []


class PromptCacheTest(SavedCase):
    def test_the_second_reading_opens_what_the_first_left(self):
        for command in ("summarize", "ask"):
            first = self.ask(command=command)
            self.assertEqual(first["cached_tokens"], 0)
            self.assertEqual(first["ledger"]["disk_read_bytes"], 0)
            self.assertEqual(first["ledger"]["opened_s"], 0)
            second = self.ask(command=command)
            tokens = first["prompt_tokens"]
            self.assertEqual(second["cached_tokens"], tokens - 1)
            self.assertEqual(second["prompt_tokens"], tokens)
            self.assertEqual(second["output"][0]["tokens"],
                             first["output"][0]["tokens"])
            formula = second["ledger"]["formula"]
            self.assertEqual(formula["opened_pages"], 2 * -(-tokens // 128))
            self.assertEqual(second["ledger"]["disk_read_bytes"],
                             formula["opened_pages"] * formula["page_bytes"])
            self.assertGreater(second["ledger"]["opened_s"], 0)
            self.assertLess(second["ledger"]["opened_s"], second["ttft_s"])
            self.assertNotIn("saved texts", str(second["warnings"]))
            self.assertIsNone(second["prefill_tok_s"])
        self.assertEqual(len(self.kept()), 2)
        self.assertEqual(stat.S_IMODE(os.stat(self.texts).st_mode), 0o700)
        for name in self.kept():
            mode = os.stat(os.path.join(self.texts, name)).st_mode
            self.assertEqual(stat.S_IMODE(mode), 0o600)

    def test_another_question_reads_itself_alone(self):
        first = self.ask()
        other = self.document("ask", self.book, "where did it sit?", "-m",
                              CHAT, "-n", "24", "--ignore-eos", env=self.env)
        self.assertGreater(other["cached_tokens"], 0.9 * first["prompt_tokens"])
        self.assertEqual(len(self.kept()), 1)
        without = self.document("ask", self.book, "where did it sit?", "-m",
                                CHAT, "-n", "24", "--ignore-eos", "--no-cache",
                                env=self.env)
        self.assertEqual(without["cached_tokens"], 0)
        self.assertEqual(other["output"][0]["tokens"],
                         without["output"][0]["tokens"])

    def test_no_policy_and_no_device_makes_a_difference(self):
        ways = ([], ["--policy", "triforce", "--budget", "256"],
                ["--policy", "sfi", "--budget", "128", "--window", "64"],
                ["--policy", "sfi", "--budget", "128", "--window", "64",
                 "--plain"],
                ["--policy", "sadas", "--window", "256", "--set", "think=on"],
                ["--policy", "speed", "--set", "cut=1"],
                ["--policy", "speed", "--set", "cut=1", "--plain"])
        devices = [], ["--simulate", "device=15MB,link=1GB/s", "-c", "4k"]
        self.ask()
        for i, way in enumerate(ways):
            for device in devices if ALL_FAULTS else [devices[i % 2]]:
                with self.subTest(way=way, device=device):
                    args = [*way, *device, "--seed", "3", "--temp", "0.7"]
                    opened = self.ask(*args)
                    read = self.ask(*args, "--no-cache")
                    self.assertEqual(opened["output"][0]["tokens"],
                                     read["output"][0]["tokens"])
                    plain_speed = "cut=1" in way and "--plain" in way
                    self.assertEqual(opened["cached_tokens"] > 0,
                                     not plain_speed)
                    self.assertEqual(read["cached_tokens"], 0)

    def test_other_settings_read_anew(self):
        self.ask()
        for args in (["-ctk", "f32"], ["-ctv", "bf16"], ["--compute", "f32"],
                     ["--rope-freq-base", "5000"]):
            self.assertEqual(self.ask(*args)["cached_tokens"], 0, args)
            self.assertGreater(self.ask(*args)["cached_tokens"], 0, args)

    def test_nothing_is_kept_of_what_is_not_asked_for(self):
        self.ask("--no-cache")
        short = self.path("short.txt", self.text[:50].encode())
        self.ask(book=short)
        self.document("generate", "-f", self.book, "-m", CHAT, "-n", "2",
                      env=self.env)
        self.assertEqual(self.kept(), [])

    def test_it_is_compared_with_one_who_reads(self):
        self.ask()
        document = self.ask("--verify-against", "full", "--verify", "coupled",
                            "--draft", "ngram")
        self.assertGreater(document["cached_tokens"], 0)
        self.assertTrue(document["baseline"]["agree"])
        self.assertEqual(len(self.kept()), 1)


    def test_a_talk_of_ask_leaves_its_text(self):
        result = run("ask", self.book, "-m", CHAT, "-n", "8",
                     input=b"who?\nwhy?\n", env=self.env)
        self.assertEqual(result.returncode, 0, result.stderr)
        first = self.ask()
        self.assertGreater(first["cached_tokens"],
                           0.9 * first["prompt_tokens"])


class CacheTest(SavedCase):
    def test_prompts_are_listed_and_cleared(self):
        self.ask()
        (name,) = self.kept()
        listed = self.document("cache", "list", env=self.env)
        (text,) = listed["prompt_cache"]
        self.assertEqual(text["file"], name)
        self.assertEqual(text["model"], os.path.basename(CHAT))
        size = os.path.getsize(os.path.join(self.texts, name))
        self.assertEqual(text["bytes"], size)
        self.assertLess(abs(text["used"] - time.time()), 600)
        table = self.succeed("cache", "list", env=self.env).decode()
        self.assertIn("texts read by", table)
        self.assertIn(format(text["tokens"], ","), table)
        rates = sum(file["bytes"] for file in listed["files"])
        cleared = self.document("cache", "clear", env=self.env)
        self.assertEqual(cleared["removed"], 1 + len(listed["files"]))
        self.assertEqual(cleared["bytes"], size + rates)
        self.assertEqual(self.kept(), [])
        self.assertEqual(self.ask()["cached_tokens"], 0)

    def test_books_are_named(self):
        html = ("<title>The \u732b</title>" + "".join(
            "<h1>Part %d</h1><p>%s</p>" % (i, self.text) for i in (1, 2)))
        book = self.path("b.html", html.encode())
        self.ask()
        self.ask("--chapters", "2", book=book)
        run("chat", "--book", book, "--chapters", "1", "-m", CHAT, "-n", "2",
            input=b"who?\n", env=self.env)
        tree = ["-c", "700", "-n", "8"]
        for path in (self.book, book):
            self.ask(*tree, command="summarize", book=path)
        listed = self.document("cache", "list", env=self.env)
        self.assertEqual(sorted(text["name"] for text in listed["prompt_cache"]),
                         ["The \u732b (chapters 1)",
                          "The \u732b (chapters 2)", "book.txt"])
        self.assertEqual(sorted(file["name"] for file in listed["readings"]),
                         ["The \u732b", "book.txt"])
        table = self.succeed("cache", "list", env=self.env).decode()
        for name in ("book.txt", "The \u732b", "The \u732b (chapters 2)"):
            self.assertRegex(table, r"(?m)[KM]iB  %s$" % re.escape(name))
        shutil.rmtree(os.path.join(self.cache, "readings"))

    def test_a_link_leads_to_the_folder(self):
        self.ask()
        names = self.kept()
        elsewhere = self.path("elsewhere")
        os.rename(self.texts, elsewhere)
        os.symlink(elsewhere, self.texts)
        self.addCleanup(os.unlink, self.texts)
        self.assertGreater(self.ask()["cached_tokens"], 1024)
        listed = self.document("cache", "list", env=self.env)
        self.assertEqual([text["file"] for text in listed["prompt_cache"]], names)
        self.succeed("cache", "clear", env=self.env)
        self.assertEqual(os.listdir(elsewhere), [])

    def test_what_is_no_folder_of_texts_is_said_beside_the_rest(self):
        self.ask()
        shutil.rmtree(self.texts)
        with open(self.texts, "w"):
            pass
        self.addCleanup(os.unlink, self.texts)
        listed = self.document("cache", "list", env=self.env)
        self.assertEqual(listed["prompt_cache"], [])
        self.assertGreater(len(listed["files"]), 0)  # rates
        (warning,) = listed["warnings"]
        self.assertIn("prompt_cache", warning)
        result = run("cache", "list", env=self.env)
        self.assertEqual(result.returncode, 0)
        self.assertIn(b"rates of", result.stdout)
        self.assertIn(b"warning: ", result.stderr)
        result = run("cache", "clear", env=self.env)
        self.assertEqual(result.returncode, 6)
        self.assertRegex(result.stderr, rb"; beside them \d files? removed")
        listed = self.document("cache", "list", env=self.env)
        self.assertEqual(listed["files"], [])

    def test_a_folder_among_the_rates_keeps_nothing_else(self):
        self.ask()
        folder = os.path.join(self.cache, "rates-" + 16 * "f" + ".json")
        os.makedirs(os.path.join(folder, "mine"))
        result = run("cache", "clear", env=self.env)
        self.assertEqual(result.returncode, 6)
        self.assertRegex(
            result.stderr.decode(), "'%s': got a folder, need a file of rates; "
            r"it stays; beside them \d files? removed" % folder)
        listed = self.document("cache", "list", env=self.env)
        self.assertEqual(listed["prompt_cache"], [])
        self.assertEqual(os.listdir(folder), ["mine"])
        shutil.rmtree(folder)


class GoingOnTest(SavedCase):
    """A reading that is stopped goes on at most one layer before that place."""

    def setUp(self):
        super().setUp()
        self.model = self.path("deep.gguf", b"")
        write_deeper(self.model, LAYERS // 2)
        self.command = ["ask", self.book, "who?", "-m", self.model, "-n", "24",
                        "--ignore-eos", "--json"]

    def stop(self, number, layers, *args):
        """Stops the command with signal `number` once `layers` layers are on
        disk."""
        while True:
            shutil.rmtree(self.texts, ignore_errors=True)
            code, said = self.try_to_stop(number, layers, *args)
            if code != 0:  # it had not ended by itself
                return code, said

    def try_to_stop(self, number, layers, *args):
        process, self.out, said = run_until(
            lambda: self.finished() >= layers, number, *self.command, *args,
            env=self.env)
        return process.returncode, said.decode()

    def finished(self):
        """The number of layers recorded in the file of an unfinished prompt."""
        for name in self.kept():
            if name.startswith("prompt-"):
                try:
                    with open(os.path.join(self.texts, name), "rb") as file:
                        return file.read(1 << 16).count(b"TKP lay\n")
                except FileNotFoundError:
                    return 0
        return 0

    def test_it_goes_on_whatever_ended_it(self):
        whole = json.loads(run(*self.command, "--no-cache",
                               env=self.env).stdout)
        self.assertEqual(whole["resumed"]["layers"], 0)
        stops = list(zip((signal.SIGINT, signal.SIGTERM, signal.SIGKILL),
                         (1, 3, 9 if ALL_FAULTS else 6)))
        if ALL_FAULTS:
            stops = [(number, layers) for number, _ in stops
                     for _, layers in stops]
        for number, layers in stops:
            code, _ = self.stop(number, layers)
            if number == signal.SIGKILL:
                self.assertEqual(code, -number)
            else:
                self.assertEqual(code, 128 + number)
            finished = self.finished()
            self.assertGreaterEqual(finished, layers)
            listed = run("cache", "list", env=self.env).stdout
            self.assertRegex(listed, rb"prompt-\S+ \(unfinished\)")
            result = run(*self.command, env=self.env)
            document = json.loads(result.stdout)
            self.assertEqual(document["resumed"]["layers"], finished)
            self.assertEqual(
                re.findall(r"going on at layer .*\n", result.stderr.decode()),
                ["going on at layer %d of %d\n" % (finished + 1, LAYERS)])
            for key in ("text", "tokens", "read_here"):
                self.assertEqual(document["output"][0][key],
                                 whole["output"][0][key])
            formula = document["ledger"]["formula"]
            self.assertEqual(
                document["ledger"]["disk_read_bytes"],
                formula["opened_pages"] * formula["page_bytes"] +
                formula["opened_bytes"])
            self.assertEqual(document["ledger"]["opened_s"] > 0, finished > 0)
            (name,) = self.kept()
            self.assertTrue(name.startswith("text-"), name)

    def test_it_says_that_it_is_kept(self):
        kept = ("interrupted; what was read is kept, and the same command goes "
                "on there")
        self.stop(signal.SIGTERM, 3)
        self.assertEqual(json.loads(self.out)["error"]["message"], kept)
        self.command.remove("--json")
        _, said = self.stop(signal.SIGINT, 3)
        self.assertEqual(said.splitlines()[-1], "tiercel: " + kept)
        _, said = self.stop(signal.SIGINT, 3, "--restart")
        self.assertEqual(said.splitlines()[-1], "tiercel: interrupted")

    def test_a_terminal_shows_where_it_goes_on(self):
        self.stop(signal.SIGKILL, 3)
        finished = self.finished()
        self.command.remove("--json")
        terminal = Terminal(self, *self.command, columns=60,
                            XDG_CACHE_HOME=self.env["XDG_CACHE_HOME"])
        self.assertEqual(terminal.end(), 0)
        shown = Screen(60, terminal.seen.decode()).text()
        self.assertIn("going on at layer %d of %d" % (finished + 1, LAYERS),
                      shown)

    def test_restart_begins_anew(self):
        self.stop(signal.SIGKILL, 3)
        listed = self.document("cache", "list", env=self.env)
        self.assertNotIn("model", listed["prompt_cache"][0])
        summary = ["summarize", self.book, "-m", self.model, "-n", "8",
                   "--json"]
        for command in (self.command, summary):
            result = run(*command, "--restart", env=self.env)
            document = json.loads(result.stdout)
            self.assertEqual(document["resumed"]["layers"], 0)
            self.assertNotIn("going on", result.stderr.decode())
        self.assertEqual(document["resumed"]["nodes"], 0)

    def test_it_is_another_prompt_with_other_settings(self):
        self.stop(signal.SIGKILL, 3)
        for args in (["-ctk", "f32"], ["--compute", "f32"], ["--no-cache"]):
            result = run(*self.command, *args, env=self.env)
            self.assertEqual(json.loads(result.stdout)["resumed"]["layers"], 0)
        device = ["--simulate", "device=40MB,link=1GB/s", "-c", "4k"]
        result = run(*self.command, *device, env=self.env)
        self.assertGreaterEqual(json.loads(result.stdout)["resumed"]["layers"],
                                3)


class GoingOnInAPartTest(GoingOnTest):
    """A book that is read in parts goes on in the same way within a part."""

    def setUp(self):
        super().setUp()
        self.layers = 24  # it keeps three at a time
        write_deeper(self.model, self.layers // 2)
        book = self.path("long.txt", (self.text + "\n\n").encode() * 3)
        self.command = ["summarize", book, "-m", self.model, "-n", "24", "-c",
                        "2000", "--ignore-eos", "--json"]
        self.addCleanup(shutil.rmtree, os.path.join(self.cache, "readings"),
                        ignore_errors=True)

    def test_it_goes_on_whatever_ended_it(self):
        whole = json.loads(run(*self.command, "--no-cache",
                               env=self.env).stdout)
        self.assertGreater(len(whole["parts"]), 3)
        numbers = [signal.SIGINT, signal.SIGKILL]
        if ALL_FAULTS:
            numbers.append(signal.SIGTERM)
        for number in numbers:
            code, said = self.stop(number, 3)
            self.assertEqual(code, -number if number == signal.SIGKILL
                             else 128 + number)
            finished = self.finished()
            self.assertGreaterEqual(finished, 3)
            nodes = sum(file["parts"] for file in self.document(
                "cache", "list", env=self.env)["readings"])
            if number != signal.SIGKILL:  # SIGKILL leaves no note
                where = ("in the first part(, {})?" if nodes == 0 else
                         "behind %d parts?(, and in the next {})?" % nodes)
                self.assertRegex(
                    said, "the same command goes on %s\n" % where.format(
                        r"behind layer \d+ of %d" % self.layers))
            result = run(*self.command, env=self.env)
            document = json.loads(result.stdout)
            self.assertEqual(document["resumed"],
                             {"layers": finished, "nodes": nodes})
            self.assertIn("going on at layer %d of %d\n" % (finished + 1,
                                                            self.layers),
                          result.stderr.decode())
            for name in ("output", "parts"):
                self.assertEqual(document[name], whole[name])
            self.assertEqual(self.kept(), [])  # no part's KV stays
            shutil.rmtree(os.path.join(self.cache, "readings"))

    def test_restart_begins_anew(self):
        self.stop(signal.SIGKILL, 3)
        result = run(*self.command, "--restart", env=self.env)
        self.assertEqual(json.loads(result.stdout)["resumed"],
                         {"layers": 0, "nodes": 0})

    def stop_in_an_answer(self, number):
        """Stops the command in the answer of a part of this number, where it
        waits until its output is read; returns what it said."""
        process = subprocess.Popen([TIERCEL, *self.command, "--stream"],
                                   env=self.env, bufsize=0,
                                   stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 4096)
        for line in process.stdout:
            if json.loads(line)["number"] == number:
                break
        process.send_signal(signal.SIGINT)
        said = process.stderr.read().decode()
        process.stdout.close()
        process.stderr.close()
        self.assertEqual(process.wait(60), 130)
        return said

    def test_while_an_answer_is_written(self):
        self.command[self.command.index("-n") + 1] = "120"
        self.command[1:1] = ["--at-once", "1"]
        whole = self.document(*self.command[:-1], "--no-cache", env=self.env)
        said = self.stop_in_an_answer(1)
        layers = int(re.search("goes on behind 1 part, and in the next behind "
                               r"layer (\d+) of %d\n" % self.layers, said)[1])
        self.assertLessEqual(layers, self.layers - 3)
        document = self.document(*self.command[:-1], env=self.env)
        self.assertEqual(document["resumed"], {"layers": self.layers - 3,
                                               "nodes": 1})
        for name in ("output", "parts"):
            self.assertEqual(document[name], whole[name])

    def test_while_several_answers_are_written(self):
        """Each of them goes on behind the layers of its prompt."""
        self.command[self.command.index("-n") + 1] = "120"
        whole = self.document(*self.command[:-1], "--no-cache", "--at-once",
                              "2", env=self.env)
        self.assertEqual(whole["at_once"], 2)
        self.command[1:1] = ["--at-once", "2"]
        said = self.stop_in_an_answer(0)
        self.assertRegex(said, "goes on in the first part, behind layer %d of "
                         "%d\n" % (self.layers - 3, self.layers))
        document = self.document(*self.command[:-1], env=self.env)
        self.assertEqual(document["resumed"],
                         {"layers": 2 * (self.layers - 3), "nodes": 0})
        for name in ("output", "parts"):
            self.assertEqual(document[name], whole[name])

    test_it_says_that_it_is_kept = None
    test_a_terminal_shows_where_it_goes_on = None
    test_it_is_another_prompt_with_other_settings = None


class FaultsTest(SavedCase):
    def test_a_folder_that_is_none_is_a_warning(self):
        expected = self.ask("--no-cache")["output"][0]["tokens"]
        os.makedirs(self.cache, exist_ok=True)
        with open(self.texts, "w"):
            pass
        document = self.ask()
        self.assertEqual(document["output"][0]["tokens"], expected)
        self.assertIn("saved texts", " ".join(document["warnings"]))
        os.remove(self.texts)
        os.mkdir(self.texts)
        os.chmod(self.texts, 0o777)
        document = self.ask()
        self.assertEqual(document["output"][0]["tokens"], expected)
        self.assertIn("others may write there", " ".join(document["warnings"]))
        self.assertEqual(self.kept(), [])

    def test_a_damaged_file_is_read_again(self):
        expected = self.ask()["output"][0]["tokens"]
        (name,) = self.kept()
        path = os.path.join(self.texts, name)
        with open(path, "rb") as file:
            whole = file.read()
        for cut in (0, 100, len(whole) // 2, len(whole) - 1):
            with open(path, "wb") as file:
                file.write(whole[:cut])
            document = self.ask()
            self.assertEqual(document["cached_tokens"], 0)
            self.assertEqual(document["output"][0]["tokens"], expected)
        self.assertGreater(self.ask()["cached_tokens"], 0)

    def test_a_process_that_is_killed_leaves_no_half_a_text(self):
        expected = self.ask("--no-cache")["output"][0]["tokens"]
        command = [TIERCEL, "ask", self.book, "who?", "-m", CHAT, "-n", "24",
                   "--ignore-eos", "--json"]
        begin = time.monotonic()
        run(*command[1:], "--no-cache", env=self.env)
        whole = time.monotonic() - begin
        chance = random.Random(2)
        for _ in range(8 if ALL_FAULTS else 4):
            for name in self.kept():
                os.remove(os.path.join(self.texts, name))
            process = subprocess.Popen(command, env=self.env,
                                       stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            time.sleep(chance.uniform(0, whole))
            process.send_signal(signal.SIGKILL)
            process.wait()
            document = self.ask()
            self.assertEqual(document["output"][0]["tokens"], expected)
            self.assertNotIn("saved texts", str(document["warnings"]))
        self.assertEqual([name for name in self.kept()
                          if not name.startswith("text-")], [])

    def test_processes_share_the_folder(self):
        expected = self.ask("--no-cache")["output"][0]["tokens"]
        command = [TIERCEL, "ask", self.book, "who?", "-m", CHAT, "-n", "24",
                   "--ignore-eos", "--json", "-t", "1"]
        several = [subprocess.Popen(command, env=self.env,
                                    stdout=subprocess.PIPE)
                   for _ in range(4)]
        for process in several:
            out, _ = process.communicate(timeout=600)
            self.assertEqual(process.returncode, 0)
            self.assertIn(str(expected).replace(" ", "").encode(),
                          out.replace(b" ", b""))
        self.assertEqual(len(self.kept()), 1)
        self.assertGreater(self.ask()["cached_tokens"], 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
