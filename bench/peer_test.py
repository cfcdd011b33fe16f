"""Tests of the parts of peer.py that need no llama.cpp.

    peer_test.py TIERCEL CHECKPOINTS
"""

import argparse
import json
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
import peer
import peer_parallel
import peer_table
import quiet

TIERCEL = pathlib.Path(sys.argv[1]).resolve()
CHECKPOINTS = pathlib.Path(sys.argv[2]).resolve()


class Clock:
    """A machine of 2 CPUs at 100 ticks a second. `busy` gives the shares that
    others and this process take in each window that is slept."""

    def __init__(self, busy):
        self.busy = iter(busy)
        self.taken = self.all = self.ours = self.slept = 0

    def sleep(self, seconds):
        self.slept += seconds
        ticks = 200 * seconds
        others, ours = next(self.busy)
        self.all += ticks
        self.taken += (others + ours) * ticks
        self.ours += ours * ticks

    def others(self):
        return quiet.Others(lambda: (self.taken, self.all), lambda: self.ours)

    def wait(self, limit_s):
        return quiet.wait(limit_s, self.others, self.sleep)


class QuietTest(unittest.TestCase):
    def test_the_line_of_all_cpus(self):
        with mock.patch("pathlib.Path.read_text", return_value=(
                "cpu  100 20 3 4000 500 6 7 8 90 10\ncpu0 1 1 1 1\n")):
            self.assertEqual(quiet.machine_ticks(), (144, 4644))

    def test_our_own_time_is_ours(self):
        before = quiet.own_ticks()
        child = "import time\nwhile time.process_time() < 0.2: pass"
        peer.output_of([sys.executable, "-c", child])
        self.assertGreaterEqual(quiet.own_ticks() - before,
                                0.2 * os.sysconf("SC_CLK_TCK") - 1)
        self.assertGreaterEqual(quiet.Others().share(), 0)

    def test_waits_until_others_are_quiet(self):
        clock = Clock([(0.5, 0), (0.05, 0.1), (0.04, 0.9), (0, 0)])
        share, is_quiet = clock.wait(900)
        self.assertTrue(is_quiet)
        self.assertAlmostEqual(share, 0.04)
        self.assertEqual(clock.slept, 90)

    def test_gives_up(self):
        clock = Clock([(0.5, 0)] * 99)
        share, is_quiet = clock.wait(120)
        self.assertFalse(is_quiet)
        self.assertAlmostEqual(share, 0.5)
        self.assertEqual(clock.slept, 120)

    def test_nothing_is_saved_where_others_work(self):
        args = argparse.Namespace(wait=0, save=True)
        with mock.patch("quiet.wait", return_value=(0.3, False)):
            with self.assertRaises(SystemExit) as stopped:
                peer.wait_until_quiet(args)
            self.assertIn("30%", str(stopped.exception.code))
            self.assertIn("nothing is saved", str(stopped.exception.code))
            args.save = False
            self.assertEqual(peer.wait_until_quiet(args), 0.3)


class BothProgramsTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def test_ids_are_llama_bench_s(self):
        # These are glibc's first numbers from its default seed.
        numbers = [1804289383, 846930886, 1681692777, 1714636915, 1957747793,
                   424238335, 719885386, 1649760492, 596516649, 1189641421,
                   1025202362, 1350490027, 783368690]
        ids = [number % 1000 for number in numbers]
        self.assertEqual(peer.ids_of(2, 2, 2, 1000), {
            "prompt": ids[:2] + ids[4:6],
            "generate": ids[:2] + ids[9:11]})
        self.assertEqual(peer.ids_of(0, 1, 1, 1000), {
            "prompt": ids[1:2], "generate": ids[4:5]})

    def fake_llama_bench(self, log):
        """Writes a program that prints rows as llama-bench does; the first
        sample is its warm-up."""
        path = self.directory / "llama-bench"
        path.write_text(f"""#!{sys.executable}
import json, sys
flags = dict(zip(sys.argv[1:], sys.argv[2:]))
open({str(log)!r}, "a").write(json.dumps(sys.argv[1:]) + "\\n")
depth, fast = int(flags["-d"]), int(flags["-fa"])
print(json.dumps([
    dict(n_prompt=prompt, n_gen=generate, n_depth=depth,
         samples_ts=[1.0, 10.0 * (1 + fast) + generate])
    for prompt, generate in ((int(flags["-p"]), 0), (0, int(flags["-n"])))]))
""")
        path.chmod(0o755)
        return path

    def test_the_second_run_of_a_test_counts(self):
        log = self.directory / "log"
        args = argparse.Namespace(threads=2, prompt=16, generate=4)
        rates = peer.run_llama(self.fake_llama_bench(log), "m.gguf", 8, args)
        self.assertEqual(rates, {("pp16@d8", "off"): 10, ("tg4@d8", "off"): 14,
                                 ("pp16@d8", "on"): 20, ("tg4@d8", "on"): 24})
        for line in log.read_text().splitlines():
            words = json.loads(line)
            self.assertIn("--no-warmup", words)
            self.assertEqual(words[words.index("-r") + 1], "2")

    def test_tiercel_reads_the_same_ids(self):
        args = argparse.Namespace(threads=1, prompt=16, generate=4)
        read = []
        output_of = peer.output_of

        def spy(command, env=None):
            if "--tokens" in command:
                path = command[command.index("--tokens") + 1]
                read.append([int(word) for word in
                             pathlib.Path(path).read_text().split()])
            return output_of(command, env)

        model = CHECKPOINTS / "llama_mha.gguf"
        with mock.patch("peer.output_of", spy):
            rows = peer.run_tiercel(TIERCEL, model, 8, args)
        self.assertEqual(set(rows), {"pp16@d8", "tg4@d8"})
        for row in rows.values():
            self.assertEqual(len(row["samples_ts"]), 1)
        vocab = json.loads(output_of([TIERCEL, "inspect", model, "--json"]))
        ids = peer.ids_of(8, 16, 4, vocab["config"]["vocab"])
        self.assertEqual(read, [ids["prompt"], ids["generate"]])

    def test_one_peak_of_several(self):
        values = iter([3.0, 9.0, 5.0, 4.0, 1.0])
        environments = []

        def measure(command, env=None):
            environments.append(env)
            return json.dumps([{"machine": {"read_bytes_per_s": next(values)}}])

        with mock.patch.dict(os.environ, TIERCEL_ISA="portable"), \
                mock.patch("peer.output_of", measure):
            self.assertEqual(peer.read_peak(TIERCEL, "m.gguf", 2), 9)
        self.assertTrue(all("TIERCEL_ISA" not in env for env in environments))

    def test_an_isa_below_the_machine_s(self):
        with mock.patch.dict(os.environ, TIERCEL_ISA="portable"):
            isa, machine = peer.isas(TIERCEL)
        self.assertEqual(isa, "portable")
        self.assertIn(machine, peer.ISAS)
        with mock.patch.dict(os.environ):
            os.environ.pop("TIERCEL_ISA", None)
            self.assertEqual(peer.isas(TIERCEL), (machine, machine))
        self.assertEqual(peer.build_flags(None), ["-DGGML_NATIVE=ON"])
        flags = peer.build_flags("avx2")
        for flag in ("NATIVE=OFF", "AVX2=ON", "FMA=ON", "AVX512=OFF",
                     "AVX_VNNI=OFF"):
            self.assertIn("-DGGML_" + flag, flags)
        self.assertFalse(any(flag.endswith("=ON")
                             for flag in peer.build_flags("portable")))

    def test_each_isa_has_a_build(self):
        built = []
        with mock.patch("peer.build_peer", lambda *what: built.append(what)):
            for isa, folder in ((None, "build"), ("avx2", "build-avx2")):
                programs = peer.peer_programs(self.directory, isa, 2)
                self.assertEqual(programs["llama-bench"],
                                 self.directory / folder / "bin/llama-bench")
                self.assertEqual(built.pop()[1:], (
                    self.directory / folder, peer.build_flags(isa), 2,
                    peer.TOOLS))
                for path in programs.values():
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.touch()
                peer.peer_programs(self.directory, isa, 2)
                self.assertEqual(built, [])


class TableTest(unittest.TestCase):
    def setUp(self):
        samples = {("q4_1", "tg32@d2048"): {
            "llama.cpp, fa off": [70.0, 90.0, 80.0],
            "llama.cpp, fa on": [60.0, 99.0, 61.0],
            "tiercel": [160.0, 100.0, 170.0]}}
        rows = {("q4_1", "tg32@d2048"): {"bytes_per_token": 1e8,
                                         "build": "0.1 (commit c1a2)"}}
        self.lines = peer_table.summarise(samples, rows, 2e10)
        args = argparse.Namespace(
            date=peer.datetime.datetime(2026, 11, 23), threads=2, rounds=3)
        self.about = peer_table.describe(
            rows, ("avx2", "avx512"), 2e10, {"before": 0.012, "during": 0.034},
            args)

    def test_medians_and_their_spread(self):
        (line,) = self.lines
        self.assertEqual(line["llama_cpp"], 80)
        self.assertEqual(line["llama_cpp_range"], [70, 90])
        self.assertEqual(line["flash_attention"], "off")
        self.assertEqual(line["tiercel"], 160)
        self.assertEqual(line["ratio"], 2)
        self.assertEqual(line["tiercel_peak_share"], 0.8)
        self.assertEqual(line["llama_cpp_peak_share"], 0.4)

    def test_the_table(self):
        head, row = peer_table.markdown(self.about, self.lines).split("\n\n")
        for what in ("ISA avx2", "20.0 GB/s read", "built for avx2",
                     "; Tiercel 0.1 (commit c1a2); ", "at most 1.2% ", "3.4% during"):
            self.assertIn(what, head)
        self.assertEqual(
            row.splitlines()[-1],
            "| Q4_1 | tg32@d2048 | 80.0 (70.0 to 90.0) | off "
            "| 160.0 (100.0 to 170.0) | 2.00 | 100 | 40% | 80% |")

    def test_the_page_has_the_machine_s_own_isa(self):
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            page = root / "doc" / "measured.md"
            page.parent.mkdir()
            text = (f"a\n{peer_table.RESULTS}\nold\n"
                    "<!-- end of results -->\nb\n")
            page.write_text(text)
            written = peer_table.save(self.about, self.lines, "new\n",
                                      root=root)
            self.assertTrue(all("-avx2." in path.name for path in written))
            self.assertEqual(page.read_text(), text)
            self.about["isa"] = "avx512"
            written = peer_table.save(self.about, self.lines, "new\n",
                                      "shapes", root)
            self.assertTrue(all("-shapes." in path.name for path in written))
            self.assertEqual(page.read_text(), text)
            written = peer_table.save(self.about, self.lines, "new\n",
                                      root=root)
            self.assertEqual(json.loads(written[0].read_text())["about"],
                             self.about)
            self.assertEqual(page.read_text(), text.replace("old", "new"))


class ParallelTest(unittest.TestCase):
    def test_the_better_median_counts(self):
        rows = peer_parallel.rows_of(
            64, {1: [40, 60, 50], 4: [100, 120, 110]},
            {(1, "off"): [20, 25, 30], (1, "on"): [10, 90, 20],
             (4, "off"): [50, 50, 50], (4, "on"): [55, 55, 55]})
        self.assertEqual(rows, [
            ["64", "1", "50", "25", "2.00", "1.00", "1.00"],
            ["64", "4", "110", "55", "2.00", "2.20", "2.20"]])

    def test_the_program_has_the_fields(self):
        args = argparse.Namespace(
            tiercel=TIERCEL, model=CHECKPOINTS / "llama_chat.gguf", threads=1,
            generate=4, counts=[1, 3])
        self.assertEqual(set(peer_parallel.run_tiercel(args, 16)), {1, 3})

    def test_lines_of_the_peer(self):
        args = argparse.Namespace(model="m", threads=1, generate=4,
                                  counts=[1, 3])
        said = 'log\n{"pl": 1, "speed_tg": 7.5}\n{"pl": 3, "speed_tg": 9}\n'
        with mock.patch("peer.output_of", return_value=said) as called:
            rates = peer_parallel.run_llama("bench", args, 16)
        self.assertEqual(rates[3, "on"], 9)
        self.assertEqual(len(rates), 4)
        self.assertIn(16 + 3 * 5, called.call_args.args[0])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
