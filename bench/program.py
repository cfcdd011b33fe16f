"""Runs the program, and returns its JSON document."""

import json
import os
import pathlib
import subprocess
import sys

# The model that demo.sh installs. Its path is taken before keep_caches_in
# changes the folder of caches.
MODEL = (pathlib.Path(os.environ.get("XDG_CACHE_HOME")
                      or pathlib.Path.home() / ".cache")
         / "tiercel/models/SmolLM2-135M-Instruct.Q4_1.gguf")

# Room for the longest block of drafts, in tokens after those that are decoded;
# `bench` adds it by itself.
BLOCK = 64


def keep_caches_in(folder):
    """Makes programs that are started later keep their caches in `folder`, and
    use the same model as before."""
    os.environ.setdefault("TIERCEL_MODEL", str(MODEL))
    os.environ["XDG_CACHE_HOME"] = str(folder)


class Program:
    def __init__(self, path, through=()):
        """`through` is a command that starts the program, if any."""
        self.command = [*through, str(path)]

    def document(self, command, *args):
        """Returns the document of a command; `plan` may also say that something
        does not fit (exit code 4). Other errors end this script."""
        done = subprocess.run(
            [*self.command, command, *map(str, args), "--json", "--no-progress"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        if done.returncode not in ((0, 4) if command == "plan" else (0,)):
            sys.exit(f"{command} {args}: {done.stdout.decode()} "
                     f"{done.stderr.decode()}")
        return json.loads(done.stdout)
