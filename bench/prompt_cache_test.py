"""Tests of prompt_cache.py, with a model that takes no time.

    prompt_cache_test.py TIERCEL CHECKPOINTS
"""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

import llama_server
import no_ring
import prompt_cache

TIERCEL, CHECKPOINTS = sys.argv[1:3]
SCRIPT = pathlib.Path(__file__).with_name("prompt_cache.py")


class PromptCacheTest(unittest.TestCase):
    def test_a_row(self):
        times = {"read": [9, 10, 30], "opened": [0.3, 0.1, 0.2],
                 "disk": [2.5, 2, 4], "rate": [1e8, 15e7, 5e7],
                 "plain": [1, 1, 8]}
        self.assertEqual(prompt_cache.row_of("x", times, 7000, 200_000_000),
                         ["x", "7000", "200", "10.00", "0.200", "50", "2.500", "4",
                          "100", "200", "75 %", "50 %"])

    def test_a_run(self):
        with tempfile.TemporaryDirectory() as folder:
            book = pathlib.Path(folder) / "book.txt"
            book.write_text("the cat sat on the mat and saw a bird. " * 200)
            done = subprocess.run(
                [sys.executable, "-B", str(SCRIPT), str(book), "--rounds", "1",
                 "--openings", "2",
                 "--tokens", "1500", "--tiercel", TIERCEL],
                env={**os.environ,
                     "TIERCEL_MODEL": os.path.join(CHECKPOINTS, "llama_chat")},
                capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        with_ring, without = (
            [cell.strip() for cell in line.strip("|").split("|")]
            for line in done.stdout.splitlines()[-2:])
        self.assertEqual((with_ring[0], without[0]),
                         ("Tiercel", "Tiercel, no io_uring"))
        for row in (with_ring, without):
            self.assertEqual(len(row), len(prompt_cache.COLUMNS))
            self.assertGreater(int(row[1]), 1400)
            self.assertGreater(float(row[3]), 0)

    def test_without_io_uring(self):
        """425 is io_uring_setup. A kernel that refuses it by itself gives
        another error."""
        call = ("import ctypes; libc = ctypes.CDLL(None, use_errno=True); "
                "libc.syscall(425, 1, 0); print(ctypes.get_errno())")
        plain = [sys.executable, "-c", call]
        said = [int(subprocess.run([*prefix, *plain], capture_output=True,
                                   text=True, check=True).stdout)
                for prefix in ((), prompt_cache.NO_RING)]
        self.assertNotEqual(said[0], no_ring.REFUSAL)
        self.assertEqual(said[1], no_ring.REFUSAL)

    def test_a_peer_that_does_not_answer_is_ended(self):
        class Deaf(llama_server.LlamaServer):
            def _await(self):
                raise KeyboardInterrupt

        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "server"
            program.write_text("#!/bin/sh\nexec sleep 60\n")
            program.chmod(0o700)
            server = Deaf(program, "model", 1, 1, folder)
            with self.assertRaises(KeyboardInterrupt):
                with server:
                    pass
            self.assertEqual(server.process.poll(), -signal.SIGTERM)

    def test_the_peers_times(self):
        class Server:
            """A server that reads a token in a second, except those that are in
            its slot."""
            def __init__(self, again=0):
                self.slot, self.again = 0, again

            def __enter__(self):
                return self

            def __exit__(self, *_):
                pass

            def first_token(self, ids):
                computed = len(ids) - self.slot + self.again
                return computed, computed

            def save(self, name):
                (folder / name).write_bytes(b"x" * 100)

            def restore(self, name):
                self.slot = 50
                return 2

        with tempfile.TemporaryDirectory() as directory:
            folder = pathlib.Path(directory)
            times, tokens, size = prompt_cache.measure_peer(
                Server, list(range(50)), 2, 1, folder)
            self.assertEqual((times["read"], times["opened"], times["disk"]),
                             ([50, 50], [10, 10], [10, 10]))
            self.assertEqual(times["rate"], [50, 50])
            self.assertEqual((tokens, size), (50, 100))
            with self.assertRaises(SystemExit):
                prompt_cache.measure_peer(lambda: Server(again=2),
                                         list(range(50)), 1, 1, folder)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
