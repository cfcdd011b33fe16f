"""Books that the context does not hold: parts, places, notes, and going on.

    cli_book_test.py TIERCEL CHECKPOINTS
"""

import fcntl
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import time
import unittest

from cli_testing import (BOOK, CHAT, SMALL, TIERCEL, BookCase, run, run_until,
                         without_rates_warnings, write_deeper)

TRIES_ALL = "TIERCEL_ALL_SHAPES" in os.environ  # full.sh


class TreeTest(BookCase):
    def test_parts_join_and_end_in_one_text(self):
        document = self.summary("--no-cache")
        parts = document["parts"]
        levels = [[part for part in parts if part["level"] == level]
                  for level in range(parts[-1]["level"] + 1)]
        self.assertGreater(len(levels), 2)
        at = 0
        for leaf in levels[0]:
            self.assertEqual(leaf["begin"], at)
            self.assertGreater(leaf["end"], at)
            self.assertLessEqual(leaf["end"] - at, 700)
            at = leaf["end"]
        tokens = len(json.loads(self.succeed(
            "tokenize", "-f", self.book, "-m", CHAT, "--json"))["tokens"])
        self.assertLessEqual(abs(at - tokens), len(levels[0]))
        for below, above in zip(levels, levels[1:]):
            self.assertLess(len(above), len(below))
            self.assertEqual((above[0]["begin"], above[-1]["end"]), (0, at))
        (whole,) = levels[-1]
        self.assertEqual(whole["text"], document["output"][0]["text"])
        self.assertEqual(whole["text"],
                         "\n\n".join(part["text"] for part in levels[-2]))
        self.assertEqual(document["resumed"], {"layers": 0, "nodes": 0})
        # The instruction before each text but the first is not read again.
        read = sum(map(len, levels[:-1]))
        self.assertGreater(document["cached_tokens"], 10 * (read - 3))
        self.assertEqual(document["schema"], 1)
        self.assertFalse(os.path.exists(self.readings))

    def test_the_same_command_prints_the_same_text(self):
        one = run(*self.command, "--no-cache", env=self.env)
        two = run(*self.command, "-t", "1", "--no-cache", env=self.env)
        self.assertEqual(one.returncode, 0, one.stderr)
        self.assertEqual(one.stdout, two.stdout)
        drawn = [run(*self.command, "--temp", "0.3", "--seed", seed,
                     "--no-cache", env=self.env) for seed in ("0", "1")]
        self.assertNotEqual(drawn[0].stdout, drawn[1].stdout)
        # The plan is said before any reading.
        plan = one.stderr.splitlines()[0].decode()
        self.assertRegex(plan, r"^[\d,]+ tokens, the context holds 700: "
                         r"\d+ parts to summarize, then the summaries in \d+; "
                         r"[\d,]+ tokens to read and write at most")
        # Each paragraph comes with its place, and all places join.
        places = re.findall(rb"\[tokens (\d+) to (\d+) of (\d+)\]\n",
                            one.stdout)
        self.assertGreater(len(places), 1)
        paragraphs = one.stdout.rstrip(b"\n").split(b"\n\n")
        for paragraph in paragraphs:
            self.assertRegex(paragraph.splitlines()[-1], rb"^\[tokens ")
        ends = sorted({(int(a), int(b)) for a, b, _ in places})
        self.assertEqual(ends[0][0], 0)
        self.assertEqual(ends[-1][1], int(places[0][2]))
        for before, after in zip(ends, ends[1:]):
            self.assertEqual(before[1], after[0])

    def test_nothing_is_read_before_it_is_known_to_fit(self):
        broken = ["-m", self.without_weights(), "--check-tensors"]
        result = run("summarize", self.book, *broken, "-c", "700", "-n", "24",
                     "--json")
        self.assertEqual(json.loads(result.stdout)["error"]["code"],
                         "non_finite_weights")
        self.assertIn(b"parts to summarize", result.stderr)
        for flags in (["-c", "64"], ["-c", "300", "-n", "-1"]):
            message = self.refuse(3, "context_length_exceeded", "summarize",
                                  self.book, *broken, *flags)
            self.assertIn("the context holds " + flags[1], message)
        self.refuse(2, "not_in_this_version", *self.command, "--draft",
                    "ngram", "--verify-against", "full")

    def test_what_was_asked_is_in_the_request(self):
        texts = set()
        for flags in ([], ["--words", "200"], ["--language", "French"],
                      ["--instruction", "Count the parts."]):
            texts.add(self.summary("--no-cache", *flags)["output"][0]["text"])
        self.assertEqual(len(texts), 4)
        one = self.summary("--no-cache", "--words", "100")["parts"]
        self.assertEqual([part["begin"] for part in one
                          if part["level"] == one[-1]["level"]], [0])
        # Each flag changes the text of a short document, too.
        short = ["summarize", self.path("short.txt", BOOK[:500]), "-m", CHAT,
                 "-n", "24"]
        texts = {self.document(*short, *flags)["output"][0]["text"]
                 for flags in ([], ["--words", "200"], ["--language", "Greek"],
                               ["--instruction", "Count the parts."])}
        self.assertEqual(len(texts), 4)

    def test_what_all_parts_took_together(self):
        document = self.summary("--restart")
        parts = len(document["parts"]) - 1
        self.assertLess(document["ttft_s"], document["seconds"])
        self.assertGreater(document["tbt_ms"]["samples"], 10 * parts)
        self.assertLessEqual(document["tbt_ms"]["p50"],
                             document["tbt_ms"]["p99"])
        self.assertEqual(document["speculation"]["levels"], [])
        phases = document["ledger"]["phases"]
        self.assertLess(0, phases["prefill"]["seconds"])
        self.assertLess(phases["prefill"]["seconds"], document["ttft_s"])
        self.assertEqual(document["ledger"]["h2d_bytes"], 0)
        self.assertIsNone(document["ledger"]["formula"])
        self.assertGreater(document["memory"]["device_bytes"], 0)
        self.assertEqual(sorted(document["predicted"]),
                         ["device_bytes", "host_bytes", "seconds", "tbt_ms",
                          "ttft_s"])
        self.assertLess(document["predicted"]["ttft_s"],
                        document["predicted"]["seconds"])
        drafted = self.summary("--no-cache", "--draft", "ngram")
        (level,) = drafted["speculation"]["levels"]
        self.assertGreater(level["drafted"], 0)
        self.assertIsNone(drafted["predicted"]["tbt_ms"])
        deeper = self.path("deeper.gguf")
        write_deeper(deeper, 3)
        flags = ["-m", deeper, "-c", "700"]
        plan = run("plan", *flags, "--simulate", "device=1kB,link=1GB/s",
                   "--json")
        least = json.loads(plan.stdout)["min_device_bytes"]
        linked = self.document(
            "summarize", self.book, *flags, "-n", "8", "--no-cache",
            "--simulate", f"device={least},link=1GB/s")["ledger"]
        self.assertGreater(linked["h2d_bytes"], 0)
        self.assertEqual(linked["h2d_bytes"],
                         sum(phase["h2d_bytes"]
                             for phase in linked["phases"].values()))
        again = self.summary()  # makes nothing
        for field in ("ttft_s", "prefill_tok_s", "speculation", "ledger",
                      "memory"):
            self.assertIsNone(again[field], field)
        self.assertEqual(again["tbt_ms"]["samples"], 0)

    def test_tokens_of_all_parts_come_as_lines(self):
        out = self.succeed(*self.command, "--json", "--stream", env=self.env)
        *lines, document = map(json.loads, out.splitlines())
        texts, tokens, order = {}, {}, []
        for line in lines:
            self.assertEqual(list(line), ["token", "text", "level", "number"])
            part = (line["level"], line["number"])
            if part not in texts:
                order.append(part)
            texts[part] = texts.get(part, "") + line["text"]
            tokens.setdefault(part, []).append(line["token"])
        self.assertEqual(order, sorted(order))
        parts = document["parts"][:-1]
        for part, made in zip(order, parts, strict=True):
            self.assertTrue(texts[part].strip().startswith(made["text"]))
        self.assertEqual([level for level, _ in order],
                         [part["level"] for part in parts])
        self.assertEqual(sum((tokens[part] for part in order
                              if part[0] == parts[-1]["level"]), []),
                         document["output"][0]["tokens"])
        self.assertEqual(sum(map(len, tokens.values())) - len(parts),
                         document["tbt_ms"]["samples"])
        # Parts that were kept are not made again, but have the same lines.
        out = self.succeed(*self.command, "--stream", env=self.env)
        *again, kept = map(json.loads, out.splitlines())
        self.assertEqual(again, [{**line, "kept": True} for line in lines])
        self.assertEqual(kept["parts"], document["parts"])
        self.assertEqual(kept["resumed"]["nodes"], len(parts))

    def test_summaries_longer_than_what_they_are_made_of(self):
        """This model's bytes are no text, so each becomes three when it is read:
        summaries would never become fewer if they could not be shorter."""
        flags = ["-m", CHAT, "-c", "300", "-n", "40", "--temp", "1", "--seed",
                 "3", "--ignore-eos", "--no-cache", "--stream"]
        out = self.succeed("summarize", self.book, *flags, env=self.env)
        *lines, document = map(json.loads, out.splitlines())
        said = [re.fullmatch(r"the summaries of (\d+) parts are too long to "
                             r"become fewer: those of level (\d+) have (\d+) "
                             r"tokens at most", warning)
                for warning in document["warnings"]]
        shorter = [tuple(map(int, found.groups())) for found in said if found]
        self.assertGreater(len(shorter), 0)
        most = 40
        counts = {}
        for line in lines:
            part = (line["level"], line["number"])
            counts[part] = counts.get(part, 0) + 1
        last = max(level for level, _ in counts)
        for below, level, tokens in shorter:
            self.assertEqual(tokens, most // 2)
            most = tokens
            self.assertEqual(sum(at[0] == level - 1 for at in counts), below)
            longest = max(n for at, n in counts.items() if at[0] == level)
            self.assertEqual(longest, tokens if level < last else 40)
        self.assertLess(last, 20)
        self.assertEqual(max(n for at, n in counts.items() if at[0] == last),
                         40)
        whole = document["parts"][-1]
        self.assertEqual((whole["begin"], whole["end"]),
                         (0, document["parts"][-2]["end"]))
        again = self.succeed("summarize", self.book, *flags[:-1], "--json",
                             env=self.env)
        self.assertEqual(json.loads(again)["parts"], document["parts"])

    def test_what_reads_it_at_once_is_said(self):
        def advice(*flags):
            result = run("summarize", self.book, "-m", CHAT, "-n", "24",
                         "--no-cache", *flags, env=self.env)
            return re.findall(rb"^it could be read at once; make room: "
                              rb"-c (\d+)$", result.stderr, re.MULTILINE)
        (context,) = advice("-c", "700")
        document = self.document("summarize", self.book, "-m", CHAT, "-n",
                                 "24", "--no-cache", "-c", context.decode())
        self.assertEqual([part["level"] for part in document["parts"]], [0])
        # There is no advice of a context for which memory has no room.
        self.assertEqual(advice("-c", "700", "--device-memory", "14MiB"), [])

    def test_what_reads_it_in_parts_is_said(self):
        for answer in "8", "-1":
            flags = ["summarize", self.book, "-m", CHAT, "-n", answer]
            message = self.refuse(3, "context_length_exceeded", *flags, "-c",
                                  "64")
            (context,) = re.findall(r"; or in parts, make room: -c (\d+)$",
                                    message)
            run_with = [*flags, "--no-cache", "-c"]
            self.refuse(3, "context_length_exceeded", *run_with,
                        str(int(context) - 16))
            self.assertGreater(
                len(self.document(*run_with, context)["parts"]), 2)

    def test_a_text_that_fits_is_one_part(self):
        short = self.path("short.txt", BOOK[:500])
        document = self.document("summarize", short, "-m", CHAT, "-n", "24")
        (part,) = document["parts"]
        self.assertEqual((part["level"], part["begin"]), (0, 0))
        self.assertEqual(part["text"], document["output"][0]["text"])
        self.assertEqual(document["resumed"], {"layers": 0, "nodes": 0})

    def test_a_part_that_was_cut_is_not_silent(self):
        document = self.summary("--no-cache", "--ignore-eos")
        (warning,) = without_rates_warnings(document["warnings"])
        self.assertRegex(warning, r"^the summaries of \d+ parts were cut at 24 "
                         "tokens; -n N for more$")
        self.assertEqual(document["output"][0]["finish_reason"], "length")

    def test_a_part_that_was_cut_ends_with_what_is_whole(self):
        """It ends with a line, since this model writes no sentences."""
        for seed in range(100):
            out = self.succeed(*self.command, "--no-cache", "--ignore-eos",
                               "--temp", "5", "--seed", str(seed), "--stream",
                               env=self.env)
            *lines, document = map(json.loads, out.splitlines())
            leaves = [part["text"] for part in document["parts"]
                      if part["level"] == 0]
            texts = [""] * len(leaves)
            for line in lines:
                if line["level"] == 0:
                    texts[line["number"]] += line["text"]
            left_out = []
            for leaf, text in zip(leaves, texts):
                text = text.strip(" \t\n\v\f\r")
                self.assertTrue(text.startswith(leaf))
                if leaf != text:
                    left_out.append(text[len(leaf):])
            if left_out:
                break
        for text in left_out:
            self.assertRegex(text, r"^\s")
        self.assertNotEqual(left_out, [])
        # The document has all tokens, also those that were left out.
        self.assertEqual(document["output"][0]["finish_reason"], "length")
        self.assertEqual(len(document["output"][0]["tokens"]) % 24, 0)

    def test_what_is_not_there_is_named(self):
        self.refuse(3, "no_chapters", *self.command, "--chapters", "1")
        self.refuse(3, "no_pages", *self.command, "--pages", "1")
        self.refuse(2, "usage", *self.command, "--chapters", "3-")
        self.refuse(2, "usage", *self.command, "--pages", "-3")
        self.assertEqual(self.document("summarize", self.book, "-m", CHAT,
                                       "--toc")["sections"], [])
        self.assertEqual(self.document("ask", self.book, "-m", CHAT,
                                       "--toc")["title"], "")


class GoingOnTest(BookCase):
    def setUp(self):
        super().setUp()
        self.command += ["--at-once", "2"]  # few parts end at the same time

    def undisturbed(self):
        result = run(*self.command, "--no-cache", env=self.env)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def stop(self, number, parts):
        """Stops the command after `parts` parts or more; returns the number
        kept. A reading that ends before the signal reaches it, since the
        machine is busy, is made again from the same parts."""
        before = self.scratch_copy()
        for _ in range(20):
            if self.try_to_stop(number, parts):
                return self.kept()
            shutil.rmtree(self.readings)
            if before:
                shutil.copytree(before, self.readings)
        return self.fail("no reading lasted until it was stopped")

    def scratch_copy(self):
        """A copy of the kept parts; None if there are none yet."""
        if not os.path.isdir(self.readings):
            return None
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        return shutil.copytree(self.readings,
                               os.path.join(scratch.name, "readings"))

    def try_to_stop(self, number, parts):
        process, out, said = run_until(
            lambda: os.path.isdir(self.readings) and self.kept() >= parts,
            number, *self.command, env=self.env)
        # SIGKILL may end it after its last line.
        if process.returncode == 0 or (number == signal.SIGKILL and out):
            return False
        self.assertEqual(out, b"")
        if number == signal.SIGKILL:
            self.assertEqual(process.returncode, -number)
        else:
            self.assertEqual(process.returncode, 128 + number)
            self.assertIn(b"the same command goes on behind", said)
        return True

    def test_a_stopped_reading_goes_on(self):
        """No part is made twice, and the text is that of one run."""
        whole = self.undisturbed()
        total = 0
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            before, total = total, self.stop(number, total + 1)
            self.assertGreater(total, before)
        result = run(*self.command, env=self.env)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, whole)
        self.assertIn(b"going on: %d part" % total, result.stderr)
        made, kept = re.search(rb"(\d+) parts? made, (\d+) parts? kept",
                               result.stderr).groups()
        self.assertEqual(int(kept), total)
        document = self.summary()
        self.assertEqual(document["resumed"]["nodes"], int(made) + total)
        self.assertEqual(document["prompt_tokens"], 0)
        self.assertEqual(stat.S_IMODE(os.stat(self.readings).st_mode), 0o700)
        self.assertEqual(stat.S_IMODE(os.stat(self.file()).st_mode), 0o600)

    def test_what_is_not_its_own_is_not_used(self):
        whole = self.undisturbed()
        self.summary()
        with open(self.file(), "r+b") as file:
            data = bytearray(file.read())
            data[len(data) // 2] ^= 1
            file.seek(0)
            file.write(data)
        listed = self.document("cache", "list", env=self.env)["readings"]
        self.assertEqual(sorted(listed[0]), ["bytes", "file", "modified"])
        for flags, nodes in ([], 0), (["--restart"], 0), (["--seed", "1"], 0):
            self.assertEqual(self.summary(*flags)["resumed"]["nodes"], nodes,
                             flags)
        again = run(*self.command, env=self.env)
        self.assertEqual(again.stdout, whole)
        self.assertIn(b"0 parts made", again.stderr)
        # Another text of the same length begins anew.
        with open(self.book, "wb") as file:
            file.write(BOOK.replace(b"Six", b"Ten"))
        self.assertEqual(self.summary()["resumed"]["nodes"], 0)

    def test_every_setting_has_a_reading_of_its_own(self):
        book = self.path("some.txt", BOOK[:2000])
        usual = [("-c", "700"), ("-n", "8"), ("--temp", "1")]
        other = self.path("other.gguf")
        shutil.copy(CHAT + ".gguf", other)
        again = self.path("again.txt", BOOK[:2000])

        def kept(*flags, model=CHAT, book=book):
            own = [word for flag in usual if flag[0] not in flags
                   for word in flag]
            document = self.document("summarize", book, "-m", model, *own,
                                     *flags, env=self.env)
            return document["resumed"]["nodes"]

        self.assertEqual(kept(), 0)
        self.assertGreater(kept(), 0)
        dry = ["--repeat-penalty", "1", "--dry-multiplier", "0.5"]
        triforce = ["--policy", "triforce", "--budget", "128"]
        sfi = ["--policy", "sfi", "--budget", "128", "--window", "64"]
        yarn = ["--rope-scaling", "yarn", "--rope-scale", "3"]
        for flags in (
                ["-c", "720"], ["-n", "17"], ["--seed", "1"],
                ["--temp", "0.9"], ["--top-k", "7"], ["--top-p", "0.8"],
                ["--min-p", "0.1"], ["--repeat-penalty", "1.2"],
                ["--repeat-penalty", "1"], ["--stop", "e"], ["--ignore-eos"],
                dry, [*dry, "--dry-base", "2"],
                [*dry, "--dry-allowed-length", "3"],
                [*dry, "--dry-sequence-breaker", "e"],
                ["--compute", "f32"], ["-ctk", "f32"], ["-ctv", "f32"],
                ["--words", "50"], ["--language", "French"],
                ["--instruction", "Name it."],
                triforce, triforce + ["--window", "63"],
                sfi, sfi + ["--plain"],
                triforce + ["--chunk", "64"], triforce + ["--sink", "16"],
                triforce + ["--gamma2", "5"],
                sfi + ["--set", "interval=9"],
                ["--draft", "ngram"],
                ["--draft", "ngram", "--verify", "coupled"],
                ["--draft", "ngram", "--gamma1", "3"],
                ["--draft", "ngram", "--gamma1", "auto"],
                ["--draft", "ngram", "--gamma1", "auto", "--cost-ratio", "3"],
                ["--draft", "self"], ["--draft", "self", "--draft-layers", "1"],
                ["--draft", "small", "-md", CHAT],
                ["--draft", "small", "-md", other],
                ["--rope-freq-base", "5000"],
                ["--rope-scaling", "linear", "--rope-scale", "2"],
                ["--rope-scaling", "linear", "--rope-scale", "3"],
                yarn, [*yarn, "--yarn-orig-ctx", "600"],
                ["--device", "cpu"]):
            with self.subTest(flags=flags):
                self.assertEqual(kept(*flags), 0)
                if TRIES_ALL or flags in (dry, triforce, sfi):
                    self.assertGreater(kept(*flags), 0)
        self.assertEqual(kept(model=other), 0)
        self.assertGreater(kept(model=other), 0)
        with open(other, "r+b") as file:  # a weight of the same model
            file.seek(-2, os.SEEK_END)
            file.write(b"\0\1")
        self.assertEqual(kept(model=other), 0)
        # Threads and the file's name do not matter.
        self.assertGreater(kept("-t", "1"), 0)
        self.assertGreater(kept(book=again), 0)

    def test_what_is_no_file_is_not_waited_for_or_written_to(self):
        whole = self.summary()["output"]
        name = self.file()
        elsewhere = self.path("elsewhere", b"mine")
        reading = self.path("reading")
        shutil.copy(name, reading)  # would be used if it were not a link
        for make in (os.mkfifo, lambda name: os.symlink(elsewhere, name),
                     lambda name: os.symlink(reading, name)):
            os.unlink(name)
            make(name)
            document = self.summary()
            self.assertEqual(document["resumed"]["nodes"], 0)
            self.assertEqual(document["output"], whole)
            self.assertTrue(stat.S_ISREG(os.lstat(name).st_mode))
        with open(elsewhere, "rb") as file:
            self.assertEqual(file.read(), b"mine")

    def test_another_build_of_the_same_commit_begins_anew(self):
        self.summary()
        said = subprocess.run(["readelf", "-n", TIERCEL], check=True,
                              stdout=subprocess.PIPE).stdout.decode()
        build = bytes.fromhex(re.search(r"Build ID: (\w+)", said).group(1))
        with open(TIERCEL, "rb") as file:
            program = file.read()
        self.assertEqual(program.count(build), 1)
        other = self.path("other", program.replace(build, build[::-1]))
        os.chmod(other, 0o755)
        for nodes in (False, True):
            made = subprocess.run([other, *self.command, "--json"],
                                  env=self.env, check=True,
                                  stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE)
            resumed = json.loads(made.stdout)["resumed"]["nodes"]
            self.assertEqual(resumed > 0, nodes)

    def test_a_folder_that_others_may_write_is_not_believed(self):
        self.summary()
        with open(self.file(), "rb") as file:
            kept = file.read()
        ways = [lambda mode=mode: os.chmod(self.readings, mode)
                for mode in (0o777, 0o720, 0o702)]
        if os.geteuid() == 0:
            ways.append(lambda: (os.chmod(self.readings, 0o700),
                                 os.chown(self.readings, 1234, -1)))
        for way in ways:
            way()
            document = self.summary()
            self.assertEqual(document["resumed"]["nodes"], 0)
            self.assertRegex(
                " ".join(document["warnings"]),
                r"parts are not kept from here on: '.*readings' belongs to "
                r"user \d+ and has mode 0\d{3}; need a folder of user \d+")
            with open(self.file(), "rb") as file:
                self.assertEqual(file.read(), kept)
            os.chown(self.readings, os.geteuid(), -1)
        # A folder that others may read is closed to them.
        os.chmod(self.readings, 0o755)
        self.assertGreater(self.summary()["resumed"]["nodes"], 0)
        self.assertEqual(stat.S_IMODE(os.stat(self.readings).st_mode), 0o700)

    def stop_outside_of_the_folder(self, process):
        """Suspends a process, at a moment when it does not write a reading;
        returns False if it ended before that."""
        while True:
            process.send_signal(signal.SIGSTOP)
            _, status = os.waitpid(process.pid, os.WUNTRACED)
            if not os.WIFSTOPPED(status):
                process.returncode = os.waitstatus_to_exitcode(status)
                return False
            folder = os.open(self.readings, os.O_RDONLY)
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                process.send_signal(signal.SIGCONT)
                time.sleep(0.002)
            finally:
                os.close(folder)

    def stopped_half_way(self, deadline):
        """A process that is suspended behind its second part or a later one.
        One that ends before that, since the machine is busy, is made again."""
        while time.monotonic() < deadline:
            process = subprocess.Popen(
                [TIERCEL, *self.command], env=self.env,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE)
            self.addCleanup(process.communicate)
            self.addCleanup(process.kill)
            while process.poll() is None and self.kept() < 2:
                self.assertLess(time.monotonic(), deadline)
            if (process.returncode is None
                    and self.stop_outside_of_the_folder(process)):
                return process
            shutil.rmtree(self.readings)
        return self.fail("no reading lasted until it was suspended")

    def test_two_at_once_lose_nothing(self):
        deadline = time.monotonic() + 300
        first = self.stopped_half_way(deadline)
        whole = self.summary()
        parts = self.kept()
        before = os.stat(self.file()).st_ino
        first.send_signal(signal.SIGCONT)
        # The first process adds its part to those that the second has made.
        while os.stat(self.file()).st_ino == before:
            self.assertLess(time.monotonic(), deadline)
        self.assertEqual(self.kept(), parts)
        first.communicate()
        self.assertEqual(first.returncode, 0)
        self.assertEqual(self.kept(), parts)
        again = self.summary()
        self.assertEqual(again["parts"], whole["parts"])
        self.assertEqual(again["resumed"]["nodes"], len(whole["parts"]) - 1)

    def test_it_is_listed_and_cleared(self):
        made = self.summary()
        nodes = len(made["parts"]) - 1
        self.assertEqual(self.kept(), nodes)
        table = self.succeed("cache", "list", env=self.env).decode()
        self.assertRegex(table, r"reading-\w{16}\.txt +\d{4}-\d\d-\d\d +%d "
                         % nodes)
        self.path(os.path.join(self.readings, "notes.txt"), b"mine")
        cleared = self.document("cache", "clear", env=self.env)
        self.assertGreaterEqual(cleared["removed"], 1)
        self.assertEqual(os.listdir(self.readings), ["notes.txt"])

    def test_without_a_place_to_keep_it(self):
        self.path(self.readings, b"a file, where the folder should be")
        document = self.summary()
        self.assertEqual(  # said once
            " ".join(document["warnings"]).count("parts are not kept"), 1)
        self.assertEqual(document["output"],
                         self.summary("--no-cache")["output"])


class NotesTest(BookCase):
    def test_of_a_book(self):
        notes = {}
        for name, flags in (("notes.txt", []), ("notes.md", []),
                            ("notes.html", []), ("notes", ["--format", "md"])):
            path = self.path(name)
            document = self.summary("--output", path, *flags)
            with open(path, encoding="utf-8") as file:
                notes[name] = file.read()
        leaves = sum(part["level"] == 0 for part in document["parts"])
        self.assertEqual(notes["notes"], notes["notes.md"])
        self.assertTrue(notes["notes.md"].startswith("# book.txt\n"))
        html = notes["notes.html"]
        ids = re.findall('<section id="([^"]+)"', html)
        self.assertEqual(len(ids), 1 + leaves)
        self.assertEqual(len(set(ids)), len(ids))
        self.assertLessEqual(set(re.findall('href="#([^"]+)"', html)), set(ids))
        self.assertIn("[tokens 0 to ", notes["notes.txt"])

    def test_parts_of_one_place_are_told_apart(self):
        book = self.path("book.md", b"# One\n\n" + BOOK + b"# Two\n\nEnd.\n")
        path = self.path("notes.html")
        document = self.document("summarize", book, *SMALL, "--no-cache",
                                 "--output", path)
        with open(path, encoding="utf-8") as file:
            html = file.read()
        headings = re.findall("<h2>(.*)</h2>", html)
        leaves = [part for part in document["parts"] if part["level"] == 0]
        own = sum(part["chapters"] == ["One"] for part in leaves)
        self.assertGreater(own, 2)
        self.assertEqual(
            headings[:own + 1],
            ["Summary", *(f"One ({i + 1} of {own})" for i in range(own))])
        self.assertEqual(len(set(headings)), 1 + len(leaves))

    def test_of_a_text_that_fits_and_of_answers(self):
        short = self.path("short.txt", BOOK[:500])
        for command in (["summarize", short], ["ask", short, "Who?", "Why?"]):
            path = self.path("notes.txt")
            document = self.document(*command, "-m", CHAT, "-n", "24",
                                     "--output", path)
            with open(path, encoding="utf-8") as file:
                said = file.read()
            for question in command[2:]:
                self.assertIn(f"\n{question}\n", said)
            for output in document["output"]:
                for line in output["text"].splitlines():
                    self.assertIn(line.strip(), said)

    def test_what_is_read_is_not_written_over(self):
        book = self.path("own.txt", BOOK[:600])
        link = self.path("link.txt")
        os.symlink(book, link)
        for output in (book, link, CHAT + ".gguf"):
            model = CHAT + ".gguf"
            result = run("summarize", book, "-m", model, "-n", "4", "--output",
                         output, "--no-cache")
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(b"is what is read", result.stderr)
        draft = self.path("draft.gguf", b"a draft")
        os.makedirs(self.path("pages/sub"))
        page = self.path("pages/sub/b.html", b"<p>Two.</p>")
        self.path("pages/index.html", b"<a href='sub/b.html'>Two</a>")
        for read, output in (([book, "-md", draft], draft),
                             ([self.path("pages")], page)):
            result = run("ask", *read, "Who?", "-m", CHAT, "-n", "4",
                         "--output", output, "--no-cache")
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(b"is what is read", result.stderr)
        run("chat", "--book", book, "-m", CHAT,
            input=b"/save %s\n" % book.encode())
        with open(book, "rb") as file:
            self.assertEqual(file.read(), BOOK[:600])

    def test_notes_are_for_whom_they_were(self):
        notes = self.path("notes.md", b"old")
        os.chmod(notes, 0o600)
        self.succeed("summarize", self.path("b.txt", BOOK[:600]), "-m", CHAT,
                     "-n", "4", "--output", notes, "--no-cache")
        self.assertEqual(stat.S_IMODE(os.stat(notes).st_mode), 0o600)
        self.assertGreater(os.path.getsize(notes), 3)

    def test_a_file_that_cannot_be_written(self):
        self.refuse(6, "io_error", "ask", self.path("short.txt", BOOK[:500]),
                    "Who?", "-m", self.without_weights(), "--check-tensors",
                    "--output", self.path("no/folder"))
        self.refuse(6, "io_error", *self.command, "--output", "/proc/notes")



class ReadHereTest(BookCase):
    """The passages to which a question attends more than others do."""

    # Weights that are random look somewhere for long questions alone.
    LONG = ["".join(chr(33 + (at * step) % 90) for at in range(1, 121))
            for step in (37, 53)]

    def ask(self, *flags, questions=LONG):
        text = BOOK[:5000]
        book = self.path("fits.txt", text)
        document = self.document(
            "ask", book, *questions, "-m", CHAT, "-c", "4000", "-n", "24",
            "--ignore-eos", "--no-cache", *flags)
        return text.decode(), document["output"]

    def test_they_are_passages_of_the_text(self):
        text, outputs = self.ask()
        words = text.split()
        for output in outputs:
            passages = output["read_here"]
            self.assertIn(len(passages), (1, 2, 3))
            shares = [passage["share"] for passage in passages]
            self.assertEqual(shares, sorted(shares, reverse=True))
            self.assertTrue(0 < shares[-1] <= sum(shares) <= 1)
            for passage in passages:
                # The text has the passage verbatim, in whole words.
                self.assertIn(passage["text"], text)
                found = passage["text"].split()
                self.assertTrue(any(words[i:i + len(found)] == found
                                    for i in range(len(words))))
                self.assertLessEqual(len(found), 32)
                self.assertEqual(passage["pages"], [])
        self.assertEqual(len(set(str(o["read_here"]) for o in outputs)), 2)

    def test_they_do_not_change_the_answers(self):
        texts = []
        for flags in ([], ["--policy", "triforce", "--verify", "coupled"],
                      ["--simulate", "device=64MiB,link=1GB/s"]):
            _, outputs = self.ask(*flags)
            texts.append([(o["text"], o["read_here"]) for o in outputs])
        self.assertEqual(texts[0], texts[1])
        self.assertEqual(texts[0], texts[2])

    def test_a_plain_form_has_none(self):
        _, outputs = self.ask("--policy", "sadas", "--plain")
        self.assertNotIn("read_here", outputs[0])

    def test_they_are_said_beside_the_answer(self):
        book = self.path("fits.txt", BOOK[:5000])
        for question, said in (
                (self.LONG[0], b"\nread here: "),
                ("What is this text about?",
                 b"\nread here: the question drew no passage more than others "
                 b"do\n")):
            result = run("ask", book, question, "-m", CHAT, "-c", "4000", "-n",
                         "8", "--no-cache")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(said, result.stderr)
            self.assertNotIn(b"read here", result.stdout)

    def test_a_question_that_looks_nowhere_has_none(self):
        for question in ("What is this text about?", "What is the text about?"):
            _, outputs = self.ask(questions=[question])
            self.assertEqual(outputs[0]["read_here"], [], question)

    def test_other_questions_count(self):
        _, alone = self.ask(questions=self.LONG[:1])
        _, beside = self.ask()
        self.assertEqual(alone[0]["text"], beside[0]["text"])
        self.assertNotEqual(alone[0]["read_here"], beside[0]["read_here"])


if __name__ == "__main__":
    unittest.main(argv=["cli_book_test"])
