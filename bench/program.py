"""The program, asked for its JSON document."""

import json
import os
import pathlib
import subprocess
import sys

# What demo.sh installs, whatever folder is named for caches later.
MODEL = (pathlib.Path(os.environ.get("XDG_CACHE_HOME")
                      or pathlib.Path.home() / ".cache")
         / "tiercel/models/SmolLM2-135M-Instruct.Q4_1.gguf")

# Tokens behind those that are decoded for which the longest block of drafts has
# room; `bench` gives it by itself.
BLOCK = 64


def keep_caches_in(folder):
    """From here on, programs keep what they cache in `folder`, and have the model
    that they had."""
    os.environ.setdefault("TIERCEL_MODEL", str(MODEL))
    os.environ["XDG_CACHE_HOME"] = str(folder)


class Program:
    def __init__(self, path, through=()):
        """`through`: the command that starts it, if it is not itself."""
        self.command = [*through, str(path)]

    def document(self, command, *args):
        """The document of a command; of `plan` also where it says that something
        does not fit (exit code 4). Another error ends this script."""
        done = subprocess.run(
            [*self.command, command, *map(str, args), "--json", "--no-progress"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        if done.returncode not in ((0, 4) if command == "plan" else (0,)):
            sys.exit(f"{command} {args}: {done.stdout.decode()} "
                     f"{done.stderr.decode()}")
        return json.loads(done.stdout)
