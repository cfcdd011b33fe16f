#!/usr/bin/env python3
"""Proves Tiercel on a GPU within minutes, from a pack that gpu_check.sh made.

    check.py PACK [--out DIR] [--resume DIR] [--minutes N] [STEP...]

Steps run in order, each within its own time and the time that is left over all;
a failure does not keep the next step from running. The results are in --out
(default $OUT, else PACK):

    results.jsonl         all findings, line by line, as they came
    DATE-gpu-check.md     a page: steps, failures, measurements
    failed.txt            the cases that failed, and why
    gpu-check.log         the output of programs

--resume: the folder of an earlier run, whose missing steps and cases are run.
Exit: 0 all held, 1 something failed, 77 there is no GPU.
"""

import argparse
import concurrent.futures
import datetime
import glob
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
import page
import programs
import record
import steps

LOG_BYTES = 12 << 20
MINUTES = 6.8  # a little less than 7: the page has to be written, too


class Run:
    """All that a step is given: the pack, the machine, the time that is left,
    and the records."""

    def __init__(self, pack, out, earlier, minutes):
        self.began = time.monotonic()
        self.pack = pack
        self.out = out
        self.deadline = self.began + 60 * minutes
        self.records = record.Records(out, earlier)
        self.is_simulated = (pack / "device").read_text().strip() == "sim"
        self.device = "cuda"
        self.commit = (pack / "commit").read_text().strip()
        self.tiercel = pack / "bin" / "tiercel"
        # A pattern for GoogleTest's cases of the device; on the executor, where
        # ctest runs them all, it selects a few.
        self.pattern = "*/cuda"
        if self.is_simulated:
            self.pattern = ":".join(
                f"*{suite}*/hosted_*" for suite in
                ("MatrixStep", "RmsNorm", "Embed", "GpuQueues"))
        # A case may take so long, or longer if its neighbours take less.
        self.case_seconds = 5 if self.is_simulated else 60
        self.workers = max(1, min(8, (os.cpu_count() or 2) // 2))
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="gpu_check."))
        self.env = self.environment()
        self.step = ""
        self.step_deadline = self.deadline
        self._log_lock = threading.Lock()
        self._log_left = LOG_BYTES
        self.log_file = out / "gpu-check.log"
        try:
            self.log_file.write_text("")
        except OSError as error:
            print(f"gpu_check: {error}", file=sys.stderr)

    def environment(self):
        env = {key: value for key, value in os.environ.items()
               if not key.startswith("TIERCEL_")}
        env["XDG_CACHE_HOME"] = str(self.scratch)
        env["TIERCEL_TEST_FOLDER"] = str(self.scratch)
        env["PATH"] += ":/usr/local/cuda/bin"
        # Libraries that are loaded at run time: a toolkit's, and PyTorch's.
        folders = {os.path.dirname(path) for root in library_roots()
                   for name in ("libcublasLt.so.13", "libnccl.so.2")
                   for path in glob.glob(f"{root}/**/{name}", recursive=True)}
        if folders:
            env["LD_LIBRARY_PATH"] = ":".join(
                [*sorted(folders), env.get("LD_LIBRARY_PATH", "")]).rstrip(":")
        return env

    # ---- Time ----

    def left(self):
        """Returns the seconds that are left for the step."""
        return min(self.step_deadline, self.deadline) - time.monotonic()

    # ---- Programs ----

    def call(self, *command, seconds=60, env=None):
        began = time.monotonic()
        done = programs.run(command, min(seconds, self.left()),
                            self.env | (env or {}))
        self.log(command, done, time.monotonic() - began)
        return done

    def log(self, command, done, seconds=0.0):
        text = (f"$ {' '.join(map(str, command))[:2000]}\n"
                f"{done.out[-20000:]}{done.err[-20000:]}"
                f"-> {done.code}{' (hung)' if done.hung else ''}, "
                f"{seconds:.2f} s\n")
        with self._log_lock:
            text = text[:self._log_left]
            self._log_left -= len(text)
            try:
                with open(self.log_file, "a", errors="replace") as log:
                    log.write(text)
            except OSError:
                pass  # the records have all that counts

    def each(self, what, items):
        """Calls what(item) for all, several at a time, until the step's time
        ends. An exception is a failure of its item alone."""
        def safely(item):
            if self.left() <= 0:
                return
            try:
                what(item)
            except Exception as error:  # noqa: BLE001: nothing hides the rest
                self.case(str(item), record.FAILED,
                          f"{type(error).__name__}: {error}")

        with concurrent.futures.ThreadPoolExecutor(self.workers) as threads:
            list(threads.map(safely, items))

    # ---- Findings ----

    def known(self, case):
        return self.records.is_known(self.step, case)

    def case(self, case, outcome, why="", seconds=0.0):
        line = {"step": self.step, "case": case, "outcome": outcome,
                "seconds": round(seconds, 3)}
        if why:
            line["why"] = why[:1000]
        self.records.add(line)
        if outcome == record.FAILED:
            print(f"FAILED {self.step}: {case}: {why[:300]}", flush=True)

    def row(self, row):
        self.records.add({"step": self.step, "row": row})

    def summary(self, words):
        """Returns a step's outcome and last words, from its cases."""
        cases = self.records.cases(self.step)
        passed = sum(case["outcome"] == record.PASSED for case in cases)
        return (record.PASSED if passed > 0 else record.FAILED,
                f"{passed} of {len(cases)} {words}")


def library_roots():
    roots = ["/usr/local/cuda/targets", "/usr/local/cuda/lib64"]
    for name in ("nvidia", "torch"):
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError):
            spec = None
        if spec is not None:
            roots += list(spec.submodule_search_locations or [])
    # PyTorch may be installed for another interpreter than this one.
    python = shutil.which("python3")
    if python is not None and os.path.realpath(python) != os.path.realpath(
            sys.executable):
        said = subprocess.run(
            [python, "-c", "import nvidia; print(*nvidia.__path__)"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        roots += said.stdout.split()
    return roots


def machine_of(run):
    """Describes the machine of the run, for the page."""
    said = programs.run(
        ["nvidia-smi", "--query-gpu=name,driver_version,memory.total,"
         "pcie.link.gen.max,pcie.link.width.max", "--format=csv,noheader"], 20)
    gpu = said.out.strip().splitlines()[:1] if said.code == 0 else []
    cpu = ""
    try:
        for line in open("/proc/cpuinfo"):
            if line.startswith("model name"):
                cpu = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"gpu": ("the host executor" if run.is_simulated
                    else gpu[0] if gpu else "a GPU; nvidia-smi says nothing"),
            "cpu": cpu, "cpus": os.cpu_count(), "host_bytes": memory,
            "kernel": os.uname().release, "commit": run.commit}


def run_step(run, step, others):
    """Runs a step within its own time and the time that later steps leave."""
    run.step = step.name
    began = time.monotonic()
    spare = run.deadline - began - step.seconds - sum(
        other.seconds for other in others)
    run.step_deadline = began + step.seconds + max(spare, 0)
    if run.left() <= 1:
        outcome, words = record.OUT_OF_TIME, "no time was left"
    else:
        try:
            outcome, words = step.work(run)
        except Exception as error:  # noqa: BLE001: the next step runs
            outcome = record.FAILED
            words = f"{type(error).__name__}: {error}"
    if any(case["outcome"] == record.FAILED for case in
           run.records.cases(step.name)):
        outcome = record.FAILED
    elif outcome == record.PASSED and run.left() <= 0:
        outcome = record.OUT_OF_TIME
    run.records.add({"step": step.name, "outcome": outcome, "words": words,
                     "seconds": round(time.monotonic() - began, 1)})
    print(f"{step.name}: {outcome} ({time.monotonic() - began:.1f} s): {words}",
          flush=True)


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("pack", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--resume", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--minutes", type=float, default=MINUTES, metavar="N")
    parser.add_argument("steps", nargs="*", metavar="STEP",
                        help=" ".join(step.name for step in steps.STEPS))
    args = parser.parse_intermixed_args()
    unknown = set(args.steps) - {step.name for step in steps.STEPS}
    if unknown:
        parser.error(f"no step is called {', '.join(sorted(unknown))}")
    if args.out is None:
        args.out = pathlib.Path(os.environ.get("OUT", args.pack))
    return args


def main():
    args = arguments()
    run = Run(args.pack.resolve(), args.out.resolve(), args.resume, args.minutes)
    try:
        said = run.call(run.tiercel, "--version")
        if said.code != 0:
            print(f"gpu_check: the program does not start: {said.words}")
            return 1
        (run.scratch / "one").write_text("1\n")
        said = run.call(run.tiercel, "eval", "-m",
                        run.pack / "checkpoints" / "deep.gguf", "--device",
                        run.device, "--tokens", run.scratch / "one",
                        "--no-progress")
        if said.code == 5:
            print(f"gpu_check: there is nothing to check on: {said.words}")
            return 77
        run.records.add({"machine": machine_of(run)})
        run.call("sh", "-c", "nvidia-smi; lscpu; head -5 /proc/meminfo; df -h; "
                 "cat /sys/kernel/mm/transparent_hugepage/*enabled")
        left = [step for step in steps.STEPS
                if (not args.steps or step.name in args.steps)
                and not run.records.is_finished(step.name)]
        while left:
            run_step(run, left.pop(0), left)
        date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
        text = page.of(run.records, date)
        failed = "".join(
            f"{line['step']}: {line.get('case', 'the step itself')}: "
            f"{line.get('why') or line.get('words', '')}\n"
            for line in run.records.failed())
        for name, content in ((f"{date}-gpu-check.md", text),
                              ("failed.txt", failed)):
            try:
                (run.out / name).write_text(content)
            except OSError as error:
                print(f"gpu_check: {error}", file=sys.stderr)
        print(text)
        print(failed, end="")
        if run.records.unwritten > 0:
            print(f"gpu_check: {run.records.unwritten} lines could not be "
                  "written; this is all of them", *run.records.lines, sep="\n")
        return 1 if run.records.failed() else 0
    finally:
        shutil.rmtree(run.scratch, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
