#!/usr/bin/env python3
"""Many processes share one cache folder, which must not change their results.

    folder_trial.py TIERCEL CHECKPOINTS [PROCESSES [SEED]]

Processes of `ask` and `summarize`, up to four at once, open, save and go on
with a few texts that begin alike. Some are stopped at a random moment, by KILL,
TERM or INT. Between them the files of the cache are damaged: bits are flipped,
bytes overwritten, cut off and appended, files exchanged, removed, made
unreadable or replaced by something that is no file; or a folder is open to
others for a while, or everything is cleared.

A process that is let end gives the output of one without a cache; one that is
stopped ends by its signal; none takes longer than minutes. The last line says
how often a process opened a text that another had saved. The default of 120
processes takes some ten seconds.

Standard library only.
"""

import collections
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "apps"))
from cli_testing import CHAT, TIERCEL, environment, write_deeper

WORDS = "the cat sat on a mat and saw one two three birds fly over it".split()
FLAGS = ["-n", "16", "--ignore-eos", "--temp", "1", "--seed", "3",
         "--repeat-penalty", "1", "--json"]
MOST_SECONDS = 120  # for one process
STOPS = [signal.SIGKILL] * 3 + [signal.SIGTERM, signal.SIGINT]
BOOK_WORDS = 900
STOPPED = {code for stop in STOPS for code in (-stop, 128 + stop)}


class Failure(Exception):
    pass


# ---- Damage ----

def flip_bit(chance, path):
    data = bytearray(path.read_bytes())
    if data:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def write_over(chance, path):
    data = bytearray(path.read_bytes())
    begin = chance.randrange(len(data) + 1)
    end = min(len(data), begin + chance.choice([1, 8, 512, 4096]))
    data[begin:end] = chance.randbytes(end - begin)
    path.write_bytes(data)


def cut_off(chance, path):
    os.truncate(path, chance.randrange(path.stat().st_size + 1))


def put_behind(chance, path):
    with path.open("ab") as file:
        file.write(chance.randbytes(chance.choice([1, 4096])))


def exchange(chance, path):
    other = chance.choice(files_beside(path))
    between = path.with_name("between")
    path.rename(between)
    if other != path:
        other.rename(path)
    between.rename(other)


def remove(_, path):
    path.unlink()


def make_unreadable(_, path):
    path.chmod(0)


def make_folder(_, path):
    path.unlink()
    path.mkdir()


def make_pipe(_, path):
    path.unlink()
    os.mkfifo(path)


def make_link(_, path):
    elsewhere = path.parent.parent / ("elsewhere-" + path.name)
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


DAMAGE = [flip_bit, flip_bit, write_over, write_over, write_over, cut_off,
          put_behind, exchange, remove, make_unreadable, make_folder, make_pipe,
          make_link]


def files_beside(path):
    return sorted(other for other in path.parent.iterdir()
                  if other.is_file() and not other.is_symlink())


# ---- The trial ----

class Trial:
    def __init__(self, folder, seed):
        self.chance = random.Random(seed)
        self.cache = folder / "cache" / "tiercel"
        self.env = environment(XDG_CACHE_HOME=str(self.cache.parent))
        self.counts = collections.Counter()
        self.expected = {}  # the output of a job without a cache
        self.seconds = {}   # ... and its seconds
        self.jobs = self.make_jobs(folder)
        self.recent = self.jobs
        self.measure()

    def make_jobs(self, folder):
        """Jobs whose texts begin alike: asked of two models, read in parts."""
        deep = str(folder / "deep.gguf")
        write_deeper(deep, 4)
        common = [self.chance.choice(WORDS) for _ in range(BOOK_WORDS)]
        jobs = []
        for i, words in enumerate((BOOK_WORDS, 880, 500)):
            book = folder / f"book{i}.txt"
            own = [self.chance.choice(WORDS) for _ in range(BOOK_WORDS - words)]
            book.write_text(" ".join(common[:words] + own))
            ask = "ask", str(book)
            summarize = "summarize", str(book)
            jobs += [(*ask, "who?", "-m", CHAT, *FLAGS),
                     (*ask, "where?", "-m", CHAT, *FLAGS),
                     (*ask, "who?", "-m", CHAT, "-ctk", "f32", *FLAGS),
                     (*summarize, "-m", CHAT, "-c", "700", *FLAGS),
                     (*summarize, "-m", CHAT, "-c", "900", *FLAGS),
                     (*ask, "who?", "-m", deep, "-t", "2", *FLAGS),
                     (*summarize, "-m", deep, *FLAGS)]
        return jobs

    def measure(self):
        """Leaves the rates of this machine in the cache, and nothing else."""
        for job in self.jobs[:7]:
            self.result(job, *self.end(self.start(job)))
        for rates in self.cache.glob("rates-*.json"):
            measured = json.loads(rates.read_text())
            rates.write_text(json.dumps({**measured, "spread": 0.0}))
        self.clear()
        self.counts.clear()

    def start(self, job, *more, env=None):
        return subprocess.Popen([TIERCEL, *job, *more], env=env or self.env,
                                stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def end(self, process):
        try:
            out, said = process.communicate(timeout=MOST_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise Failure(f"{process.args} hangs") from None
        return process.returncode, out, said

    def result(self, job, code, out, said):
        if code != 0:
            raise Failure(f"{' '.join(job)} ended with {code}: "
                          f"{said.decode(errors='replace')}")
        document = json.loads(out)
        self.counts["texts opened"] += document.get("cached_tokens", 0) > 1024
        resumed = document.get("resumed", {})
        self.counts["prompts gone on with"] += resumed.get("layers", 0) > 0
        self.counts["readings gone on with"] += resumed.get("nodes", 0) > 0
        self.counts["let end"] += 1
        output = [{key: value for key, value in said.items()
                   if key not in ("ttft_s", "cached_tokens")}
                  for said in document["output"]]
        return {"output": output, "parts": document.get("parts")}

    def expect(self, job):
        """The result of the job in a process without a cache."""
        if job not in self.expected:
            begin = time.monotonic()
            process = self.start(job, "--no-cache", env=environment())
            code, out, said = self.end(process)
            self.seconds[job] = time.monotonic() - begin
            counts = self.counts.copy()
            self.expected[job] = self.result(job, code, out, said)
            self.counts = counts
        return self.expected[job]

    def clear(self):
        for kind in "prompt_cache", "readings":
            shutil.rmtree(self.cache / kind, ignore_errors=True)

    def run(self, number):
        """Runs `number` processes at once, and stops some of them."""
        # Often a recent job, whose files are there.
        jobs = [self.chance.choice(
            self.recent if self.chance.random() < 0.7 else self.jobs)
                for _ in range(number)]
        self.recent = sorted(set(jobs))
        for job in jobs:
            self.expect(job)
        with contextlib.ExitStack() as ends:
            processes = []
            for job in jobs:
                processes.append(ends.enter_context(self.start(job)))
                ends.callback(processes[-1].kill)
            self.stop_some(jobs, processes)

    def stop_some(self, jobs, processes):
        stops = []
        number = len(jobs)
        begin = time.monotonic()
        for i, job in enumerate(jobs):
            if self.chance.random() < 0.5:
                after = self.chance.uniform(0, number * self.seconds[job])
                stops.append((after, i, self.chance.choice(STOPS)))
        for after, i, stop in sorted(stops):
            time.sleep(max(0, begin + after - time.monotonic()))
            processes[i].send_signal(stop)
        stopped = {i for _, i, _ in stops}
        self.counts["processes"] += number
        for i, (job, process) in enumerate(zip(jobs, processes)):
            code, out, said = self.end(process)
            if i in stopped and code in STOPPED:
                self.counts["stopped"] += 1
            elif self.result(job, code, out, said) != self.expect(job):
                warnings = said.decode(errors="replace")
                raise Failure(f"{' '.join(job)} says another thing than "
                              f"without a cache; {warnings}")

    def damage(self):
        """Damages one file or folder of the cache."""
        kind = self.cache / self.chance.choice(["prompt_cache", "prompt_cache", "readings"])
        if not kind.is_dir():
            return
        kind.chmod(0o777 if self.chance.random() < 0.05 else 0o700)
        files = files_beside(kind / "any")
        if not files:
            return
        path = self.chance.choice(files)
        path.chmod(0o600)
        self.chance.choice(DAMAGE)(self.chance, path)
        self.counts["damages"] += 1

    def rest(self):
        """Checks that a cleared cache is made anew, and found by the next."""
        self.clear()
        for job in self.jobs[:7]:
            for _ in range(2):
                result = self.result(job, *self.end(self.start(job)))
                if result != self.expect(job):
                    raise Failure(f"{' '.join(job)} says another thing")


def main():
    processes = int(sys.argv[3]) if len(sys.argv) > 3 else 120
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(pathlib.Path(folder), seed)
        try:
            while trial.counts["processes"] < processes:
                trial.run(trial.chance.randint(1, 4))
                for _ in range(trial.chance.randint(0, 2)):
                    trial.damage()
                if trial.chance.random() < 0.15:
                    trial.clear()
            trial.rest()
        except Failure as failure:
            sys.exit(f"seed {seed}, after {dict(trial.counts)}: {failure}")
    print(", ".join(f"{count} {name}"
                    for name, count in sorted(trial.counts.items())))
    for name in "texts opened", "readings gone on with", "stopped", "damages":
        if trial.counts[name] < processes / 100:
            sys.exit(f"{name}: only {trial.counts[name]}")


if __name__ == "__main__":
    main()
