"""Runs programs within a time, and the cases of GoogleTest in them."""

import os
import re
import signal
import subprocess
import tempfile
import typing

# The error after a fault took the device from its process: later cases in that
# process prove nothing.
LOST = "this process can no longer use the GPU"
# The words of compute-sanitizer and ncu if they are refused.
REFUSED = ("Device not supported", "LibraryNotLoaded", "ERR_NVGPUCTRPERM",
           "was not profiled", "Failed to initialize")


class Done(typing.NamedTuple):
    code: int  # exit code; negative for a signal
    out: str
    err: str
    hung: bool

    @property
    def words(self):
        """Returns the end of its output, for people."""
        lines = [line for line in (self.err + "\n" + self.out).splitlines()
                 if line.strip()]
        if self.hung:
            return "did not end in its time"
        return f"exit {self.code}: {' | '.join(lines[-3:])[-400:]}"


def run(command, seconds, env=None, folder=None):
    """Runs a program, and ends it and its children when its time is up."""
    # Files, not pipes: a child that is left behind would keep pipes open.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(
                list(map(str, command)), stdin=subprocess.DEVNULL, stdout=out,
                stderr=err, env=env, cwd=folder, start_new_session=True)
        except OSError as error:
            return Done(127, "", str(error), False)
        hung = False
        try:
            process.wait(max(seconds, 0.1))
        except subprocess.TimeoutExpired:
            hung = True
            os.killpg(process.pid, signal.SIGKILL)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                pass  # it hangs in the driver, and ends when that allows it
        code = process.returncode if process.returncode is not None else -9
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read(32 << 20).decode(errors="replace"))
        return Done(code, texts[0], texts[1], hung)


def cases_of(program, pattern, seconds, env=None):
    """Returns the full names of a program's cases."""
    done = run([program, "--gtest_list_tests", f"--gtest_filter={pattern}"],
               seconds, env)
    names, suite = [], ""
    for line in done.out.splitlines():
        line = line.split("#")[0].rstrip()
        if line.endswith(".") and not line.startswith(" "):
            suite = line
        elif line.startswith("  ") and suite:
            names.append(suite + line.strip())
    return names


class Outcome(typing.NamedTuple):
    case: str
    passed: bool
    seconds: float
    why: str


RESULT = re.compile(
    r"^\[ *(RUN|OK|FAILED|SKIPPED) *\] (\S+?)(?:,.*)?(?: \((\d+) ms\))?$")


def run_cases(program, names, seconds_left, tool=(), env=None, each=60):
    """Yields the Outcome of each case, and a Done of each process. If a case
    ends its process, hangs, or loses the device, a new process goes on."""
    left = list(names)
    while left and seconds_left() > 0:
        done = run([*tool, program, "--gtest_filter=" + ":".join(left),
                    "--gtest_brief=0"],
                   min(seconds_left(), each + 2 * len(left)), env)
        yield done
        begun, said, ended = None, [], set()
        for line in done.out.splitlines():
            match = RESULT.match(line)
            if match is None:
                said.append(line)
                continue
            what, name, ms = match.groups()
            if name not in left:
                continue
            if what == "RUN":
                begun, said = name, []
                continue
            if name in ended:
                continue  # the summary lists it again
            why = "" if what == "OK" else (
                "skipped" if what == "SKIPPED"
                else " | ".join(s.strip() for s in said if s.strip())[-600:])
            ended.add(name)
            begun = None
            yield Outcome(name, what == "OK", int(ms or 0) / 1000, why)
            if LOST in why:
                break
        if begun is not None:
            ended.add(begun)
            yield Outcome(begun, False, 0.0, done.words + " after " +
                          " | ".join(said)[-300:])
        elif not ended:
            if done.hung and seconds_left() <= 0:
                return
            # The process ended before any case.
            yield Outcome(left[0], False, 0.0, done.words)
            ended.add(left[0])
        left = [name for name in left if name not in ended]
