"""The findings of a run, as JSON lines that are out as soon as they are there.

A line is of a case ("step", "case", "outcome", "seconds", "why"), of a step's
end ("step", "outcome", "seconds", "words"), a measurement ("step", "row"), or
of the machine ("machine"). Outcomes: passed, FAILED, "not run" (which no
failure is), and "out of time". A later run reads the lines of an earlier one
and leaves out what passed.
"""

import json
import pathlib
import sys
import threading

PASSED, FAILED, NOT_RUN, OUT_OF_TIME = "passed", "FAILED", "not run", "out of time"


def read_lines(path):
    """Lines that are whole; the last of a run that was killed may not be."""
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
    """Thread-safe. A file that cannot be written ends nothing: what it lacks
    is kept, and printed at the end."""

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
        """Whether the case has passed in an earlier run."""
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
        except (OSError, ValueError):  # a full disk; closed after one
            self.unwritten += 1

    def cases(self, step):
        return [line for line in self.lines
                if line.get("step") == step and "case" in line]

    def rows(self, step):
        return [line["row"] for line in self.lines
                if line.get("step") == step and "row" in line]

    def failed(self):
        return [line for line in self.lines if line.get("outcome") == FAILED]
