"""The program, asked for its JSON document."""

import json
import subprocess
import sys


class Program:
    def __init__(self, path):
        self.path = str(path)

    def document(self, command, *args):
        """The document of a command; one that does not fit in memory (exit
        code 4) has one too. Ends this script where there is another error."""
        done = subprocess.run(
            [self.path, command, *map(str, args), "--json", "--no-progress"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        if done.returncode not in (0, 4):
            sys.exit(f"{command} {args}: {done.stdout.decode()} "
                     f"{done.stderr.decode()}")
        return json.loads(done.stdout)
