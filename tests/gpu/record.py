"""Records the findings of a run, as JSON lines that are written at once.

A line records a case ("step", "case", "outcome", "seconds", "why"), a step's
end ("step", "outcome", "seconds", "words"), a measurement ("step", "row"), or
the machine ("machine"). Outcomes: passed, FAILED, "not run" (no failure), and
"out of time". A later run reads the lines of an earlier one and leaves out
the cases that passed.
"""

import json
import pathlib
import sys
import threading

PASSED, FAILED, NOT_RUN, OUT_OF_TIME = "passed", "FAILED", "not run", "out of time"


def read_lines(path):
    """Returns the whole lines; the last one of a killed run may be cut."""
    lines = []
    try:
        text = path.read_text(errors="replace")
    except OSError:
        return lines
    for line in text.splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:
            continue
    return lines


class Records:
    """Thread-safe. If the file cannot be written the run goes on: missing lines
    are kept, and printed at the end."""

    FILE = "results.jsonl"

    def __init__(self, folder, earlier=None):
        self._lock = threading.Lock()
        self.lines = []
        self.unwritten = 0
        self._file = None
        if earlier is not None:
            for line in read_lines(pathlib.Path(earlier) / self.FILE):
                if line.get("outcome", PASSED) == PASSED:
                    self.lines.append(line | {"earlier": True})
        try:
            self._file = open(pathlib.Path(folder) / self.FILE, "w")
        except OSError as error:
            print(f"gpu_check: {error}", file=sys.stderr)
        for line in self.lines:
            self._write(line)
        self._known = {(line["step"], line["case"]) for line in self.lines
                       if "case" in line}
        self._finished = {line["step"] for line in self.lines
                          if "words" in line}

    def is_known(self, step, case):
        """Returns true if the case has passed in an earlier run."""
        return (step, case) in self._known

    def is_finished(self, step):
        return step in self._finished

    def add(self, line):
        with self._lock:
            self.lines.append(line)
            self._write(line)

    def _write(self, line):
        try:
            if self._file is None:
                raise OSError("no file")
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()
        except (OSError, ValueError):  # a full disk; a file closed after that
            self.unwritten += 1

    def cases(self, step):
        return [line for line in self.lines
                if line.get("step") == step and "case" in line]

    def rows(self, step):
        return [line["row"] for line in self.lines
                if line.get("step") == step and "row" in line]

    def failed(self):
        return [line for line in self.lines if line.get("outcome") == FAILED]
