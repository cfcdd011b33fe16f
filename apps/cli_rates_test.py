"""Rates that the program measures of its machine: when it measures, where it
keeps them, and which commands use them.

    cli_rates_test.py TIERCEL CHECKPOINTS
"""

import atexit
import json
import os
import shutil
import signal
import sys
import tempfile
import unittest

from cli_testing import IDS_ONLY, CHAT, environment, run, Case, Terminal

TRIES_ALL = "TIERCEL_ALL_SHAPES" in os.environ  # full.sh
MEASURING = rb"measuring this machine, once a model: \d+ / \d+ parts"


class RatesCase(Case):
    """A case with a cache of its own, which `kept` reads and `keep` changes."""

    PLAN = ["plan", "-m", CHAT, "-c", "1000"]

    measured = None  # a cache with the rates of PLAN, for all classes

    @classmethod
    def setUpClass(cls):
        if RatesCase.measured:
            return
        RatesCase.measured = tempfile.mkdtemp()
        atexit.register(shutil.rmtree, cls.measured)
        done = run(*cls.PLAN, env=environment(XDG_CACHE_HOME=cls.measured))
        assert done.returncode == 0, done.stderr

    def setUp(self):
        super().setUp()
        self.env = environment(XDG_CACHE_HOME=self.directory)
        self.folder = self.path("tiercel")

    def measured_before(self, **changes):
        """Puts steady rates, which no command measures again, into the cache,
        with `changes`."""
        shutil.copytree(os.path.join(self.measured, "tiercel"), self.folder)
        self.keep(spread=0.0, attempts=1, **changes)

    def file(self):
        (name,) = os.listdir(self.folder)
        return os.path.join(self.folder, name)

    def kept(self):
        with open(self.file()) as file:
            return json.load(file)

    def keep(self, **changes):
        document = {**self.kept(), **changes}
        with open(self.file(), "w") as file:
            json.dump(document, file)

    def run_(self, *args):
        return self.document(*args, env=self.env)


class MeasuringTest(RatesCase):
    GENERATE = ["generate", "-m", CHAT, "-p", "one two", "-n", "4"]

    def test_the_first_run_of_a_model_measures(self):
        ids = self.path("ids", b"1 2 3 4")
        commands = [self.GENERATE,
                    ["bench", "-m", CHAT, "-p", "4", "-n", "0", "-r", "1"],
                    self.PLAN,
                    ["ask", self.path("a.txt", b"A cat."), "Who?", "-m", CHAT,
                     "-n", "2"]]
        # Each measures for seconds; the others measure as the first does.
        for args in commands if TRIES_ALL else commands[:2]:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.run_(*args)
            first = self.kept()
            self.assertGreater(first["rates"]["step_s"], 0)
            self.keep(spread=0.0, rates={**first["rates"], "step_s": 123.0})
            self.run_(*args)  # measures no more
            self.assertEqual(self.kept()["rates"]["step_s"], 123)
        # These commands predict no times, so they measure none.
        shutil.rmtree(self.folder)
        for args in (["eval", "-m", CHAT, "--tokens", ids],
                     ["tokenize", "-m", CHAT, "-p", "x"],
                     ["inspect", "-m", CHAT]):
            self.run_(*args)
            self.assertFalse(os.path.exists(self.folder))

    def test_what_is_kept_predicts(self):
        self.measured_before()
        plan = self.run_(*self.PLAN)
        rates = self.kept()["rates"]
        self.keep(rates={**rates, "step_s": rates["step_s"] + 1})
        slower = self.run_(*self.PLAN)
        layers = self.kept()["key"]["layers"]
        self.assertAlmostEqual(slower["tbt_ms"] - plan["tbt_ms"], 1e3 * layers,
                               delta=1)
        view = ["--policy", "triforce", "--budget", "32", "--chunk", "8"]
        for drafts in ([], view):
            table = self.succeed(*self.PLAN, *drafts, env=self.env).decode()
            self.assertEqual("end of it, if nobody drafted\n" in table,
                             bool(drafts), table)
        drafted = self.run_(*self.GENERATE, *view)
        self.assertGreater(drafted["predicted"]["ttft_s"], 0)
        self.assertIsNone(drafted["predicted"]["tbt_ms"])
        # The prediction of a plain form counts the positions its steps read.
        self.keep(rates={**rates, "step_position_s": 1.0})
        long = "one two three four " * 40
        window = ["--policy", "sadas", "--plain", "--window", "50", "--set",
                  "think=on"]
        chosen = ["--policy", "sfi", "--plain", "--budget", "32", "--window",
                  "16", "--set", "trigger=fixed,interval=4"]
        for flags, steps in ((window, lambda s: (0, 50)),
                             (chosen, lambda s: (s["slow"]["steps"], 50))):
            document = self.run_("generate", "-m", CHAT, "-p", long, "-n",
                                 "21", "--ignore-eos", *flags)
            slow, read = steps(document["schedule"])
            length = document["prompt_tokens"] + 10 + 1
            expected = ((20 - slow) * read + slow * length) / 20 * layers
            self.assertAlmostEqual(document["predicted"]["tbt_ms"] / 1e3,
                                   expected, delta=1 + 0.01 * expected)
            plan = self.run_(*self.PLAN, *flags)
            self.assertLess(plan["tbt_ms"], 1e3 * layers * 1000)
        self.keep(rates={**rates, "step_s": rates["step_s"] + 1})
        generated = self.run_(*self.GENERATE)
        self.assertGreater(generated["predicted"]["tbt_ms"], 1e3 * layers)
        self.keep(rates={**rates, "prompt_row_s": 1.0})
        slow = self.run_(*self.GENERATE)
        self.assertAlmostEqual(slow["predicted"]["ttft_s"],
                               layers * slow["prompt_tokens"], delta=1)
        # The bytes of a simulated device are predicted exactly.
        tiers = self.run_("generate", "-m", CHAT, "-p", long, "-n", "4", "-c",
                          "1000", "--simulate", "device=64MB,link=1GB/s")
        for key in ("host_bytes", "device_bytes"):
            self.assertGreater(tiers["memory"][key], 0)
            self.assertEqual(tiers["predicted"][key], tiers["memory"][key])
        # Without a folder no times are measured or predicted.
        alone = self.document(*self.GENERATE)
        self.assertNotIn("predicted", alone)
        self.assertEqual(alone["output"], generated["output"])
        self.assertIsNone(self.document(*self.PLAN)["ttft_s"])

    def test_the_table_shows_what_is_predicted(self):
        self.measured_before()
        plan = self.run_(*self.PLAN)
        table = self.succeed(*self.PLAN, env=self.env).decode()
        self.assertRegex(table, r"time to first token +%.2f s, "
                         % plan["ttft_s"])
        self.assertRegex(table, r"time between tokens +%.2f ms, "
                         % plan["tbt_ms"])

    def test_a_busy_machine_is_measured_for_no_longer_than_the_job(self):
        self.measured_before()
        costs = self.kept()["costs"]
        rates = self.kept()["rates"]
        slow = {**rates, "prompt_row_s": 100.0}
        tree = ["summarize", self.path("book.txt", b"A cat. " * 200), "-m",
                CHAT, "-c", "400", "-n", "4", "--ignore-eos", "--no-cache"]
        jobs = [(self.PLAN, slow, False),  # a plan takes no time
                (self.GENERATE, rates, False),
                (self.GENERATE, slow, True)]
        if TRIES_ALL:
            jobs += [(tree, rates, False), (tree, slow, True)]
        for args, kept, again in jobs:
            self.keep(spread=1e6, attempts=2, seconds=5.0, rates=kept)
            said = [w for w in self.run_(*args)["warnings"]
                    if w.startswith("rates: ")]
            now = self.kept()
            self.assertEqual(now["attempts"], 3 if again else 2, args)
            self.assertEqual(now["costs"], costs)
            if again:
                self.assertLess(now["spread"], 1e6)
            else:
                self.assertIn("a run that takes longer than that measures "
                              "again", "".join(said))
        # After three attempts it is not measured again.
        self.keep(spread=1e6, attempts=3, rates=slow)
        for args in (self.PLAN, self.GENERATE):
            (warning,) = [w for w in self.run_(*args)["warnings"]
                          if w.startswith("rates: ")]
            self.assertIn("tiercel cache clear", warning)
            self.assertIn(b"warning: rates: ",
                          run(*args, env=self.env).stderr)
            self.assertEqual(self.kept()["attempts"], 3)

    def test_what_is_not_whole_is_measured_again(self):
        self.measured_before()
        for text in ("{", '{"rates": 1}') if TRIES_ALL else ("{",):
            with open(self.file(), "w") as file:
                file.write(text)
            self.assertGreater(self.run_(*self.PLAN)["tbt_ms"], 0)
            self.assertGreater(self.kept()["rates"]["step_s"], 0)

    def test_where_nothing_can_be_kept_it_runs_without(self):
        for env in (environment(XDG_CACHE_HOME="/dev/null"),
                    environment(XDG_CACHE_HOME=self.path("file", b""))):
            done = run(*self.GENERATE, env=env)
            self.assertEqual(done.returncode, 0)
            self.assertIn(b"warning: no times are predicted: ", done.stderr)
            done = run(*self.PLAN, "--json", env=env)
            self.assertIsNone(json.loads(done.stdout)["tbt_ms"])
            for args in (self.PLAN, self.GENERATE):
                (warning,) = self.document(*args, env=env)["warnings"]
                self.assertIn("no times are predicted: ", warning)

    def test_a_signal_ends_it(self):
        for args, line in ((self.PLAN, MEASURING), (self.GENERATE, MEASURING),
                           (["bench", "-m", IDS_ONLY, "-p", "4", "-n", "0"],
                            rb"measuring peaks of this machine: ")):
            for number in (signal.SIGINT, signal.SIGTERM):
                # When `bench` measures peaks, it has measured the rates.
                terminal = Terminal(self, *args, XDG_CACHE_HOME=self.directory)
                terminal.until(line)
                terminal.process.send_signal(number)
                self.assertEqual(terminal.end(), 128 + number)
                self.assertNotIn(b"|", terminal.seen)  # no row, no table
                self.assertNotIn(b"memory", terminal.seen)
            if args[0] != "bench":
                self.assertEqual(os.listdir(self.folder), [])


class ReproducibleTest(RatesCase):
    """`auto` uses a cost ratio that no later measurement changes."""

    AUTO = ["generate", "-m", CHAT, "-p", "one two three " * 30, "-n", "40",
            "--ignore-eos", "--temp", "0.9", "--draft", "self", "--window",
            "8", "--gamma1", "auto"]

    def ratio(self, document):
        (level,) = document["speculation"]["levels"]
        return level["cost_ratio"]

    def test_the_same_command_prints_the_same_text(self):
        self.measured_before()
        rates = self.kept()["rates"]
        # A sweep reads all of the text, a draft 72 positions of it.
        self.keep(costs={**rates, "step_s": 1e-9, "step_position_s": 1.0})
        first = self.run_(*self.AUTO)
        self.assertGreater(self.ratio(first), 1)
        self.keep(rates={**rates, "step_s": 1000 * rates["step_s"],
                         "prompt_row_s": 100 * rates["prompt_row_s"]})
        again = self.run_(*self.AUTO)
        self.assertGreater(again["predicted"]["ttft_s"],
                           first["predicted"]["ttft_s"])
        for name in ("output", "speculation"):
            self.assertEqual(again[name], first[name])
        # Another ratio gives another text, so the texts above could differ.
        self.keep(costs={**rates, "step_s": 1.0, "step_position_s": 0.0})
        other = self.run_(*self.AUTO)
        self.assertEqual(self.ratio(other), 1)
        self.assertNotEqual(other["output"], first["output"])
        # On a machine without rates the ratio alone gives the same text.
        there = self.document(*self.AUTO, "--cost-ratio",
                              str(self.ratio(first)))
        for name in ("output", "speculation"):
            self.assertEqual(there[name], first[name])

    def test_without_rates_the_ratio_is_a_constant(self):
        constant = self.document(*self.AUTO)
        self.assertEqual(self.ratio(constant), 8)
        said = self.document(*self.AUTO, "--cost-ratio", "8")
        self.assertEqual(said["output"], constant["output"])
        self.assertIn("8 without", " ".join(
            self.succeed("generate", "--help-all").decode().split()))


class CacheTest(RatesCase):
    def test_list_and_clear(self):
        empty = self.run_("cache", "list")
        self.assertEqual(empty, {"cache_dir": self.folder, "files": [],
                                 "prompt_cache": [], "readings": []})
        self.assertEqual(self.run_("cache", "clear")["removed"], 0)
        self.measured_before()
        others = ("models", "rates.json", "rates-1234.json", "notes.txt")
        rates = os.path.basename(self.file())
        os.mkdir(os.path.join(self.folder, others[0]))
        for name in others[1:]:
            with open(os.path.join(self.folder, name), "w") as file:
                file.write("{}")
        (file,) = self.run_("cache", "list")["files"]
        self.assertEqual(file["file"], rates)
        self.assertEqual(file["model"], os.path.basename(CHAT))
        self.assertTrue(file["steady"])
        size = os.path.getsize(os.path.join(self.folder, rates))
        self.assertEqual(file["bytes"], size)
        table = self.succeed("cache", "list", env=self.env).decode()
        head, columns, row = table.splitlines()
        self.assertIn(self.folder, head)
        self.assertIn("decode tok/s", columns)
        key, speed = file["key"], file["rates"]
        step = key["layers"] * speed["step_s"] + speed["logits_s"]
        read = 1 / (key["layers"] * speed["prompt_row_s"])
        for word in (file["model"], key["isa"], "f16/f16", "%.1f" % (1 / step),
                     format(int(read), ",")):
            self.assertIn(word, row.split())
        self.assertTrue(row.endswith("  0 %"), row)

        cleared = self.run_("cache", "clear")
        self.assertEqual(cleared, {"cache_dir": self.folder, "removed": 1,
                                   "bytes": size})
        self.assertEqual(sorted(os.listdir(self.folder)), sorted(others))
        self.assertEqual(self.run_("cache", "list")["files"], [])
        self.assertIn(b"removed 0 files",
                      self.succeed("cache", "clear", env=self.env))

    def test_a_busy_machine_is_marked(self):
        self.measured_before()
        self.keep(spread=0.42)
        (file,) = self.run_("cache", "list")["files"]
        self.assertFalse(file["steady"])
        table = self.succeed("cache", "list", env=self.env).decode()
        self.assertTrue(table.endswith("  42 % (busy)\n"), table)

    def test_a_file_that_is_not_whole_is_listed_and_cleared(self):
        self.measured_before()
        with open(self.file(), "w") as file:
            file.write("{")
        (listed,) = self.run_("cache", "list")["files"]
        self.assertEqual(sorted(listed), ["bytes", "file", "modified"])
        self.assertIn(b"(not readable)",
                      self.succeed("cache", "list", env=self.env))
        self.assertEqual(self.run_("cache", "clear")["removed"], 1)
        self.assertEqual(os.listdir(self.folder), [])

    def test_bad_commands(self):
        for args in (["cache", "empty"], ["cache", "list", "clear"]):
            self.refuse(2, "usage", *args, env=self.env)
        self.refuse(2, "usage", "cache", env=self.env)
        self.refuse(2, "no_cache", "cache", "clear")
        self.refuse(6, "cannot_read", "cache", "list",
                    env=environment(XDG_CACHE_HOME="/dev/null"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
