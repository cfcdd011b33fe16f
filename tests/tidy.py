#!/usr/bin/env python3
"""Runs clang-tidy, with the checks of .clang-tidy, over all sources but tests.

  tests/tidy.py BUILD    a build folder with compile_commands.json

A source that was clean is not read again while its text, with all that it
includes, and .clang-tidy stay the same: half a minute instead of a few seconds
each. ~/.cache/tiercel/tidy lists the clean sources. Standard library only.
"""

import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLEAN = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or
                     pathlib.Path.home() / ".cache") / "tiercel/tidy"


def is_read(path):
    name = path.name
    return (path.suffix == ".cc" and path.parts[0] != "tests" and
            not name.endswith(("_test.cc", "_fuzz.cc")))


def expanded(entry):
    """Returns the source with all that it includes."""
    words = shlex.split(entry["command"])
    kept = words[:words.index("-o")] + words[words.index("-o") + 2:]
    return subprocess.run([*kept, "-E"], cwd=entry["directory"],
                          stdout=subprocess.PIPE, check=True).stdout


def check(build, source, entries):
    """Returns the findings of clang-tidy in one source; "" if it is clean. It
    reads a source once for each time it is compiled, some once per ISA."""
    seen = hashlib.sha256((ROOT / ".clang-tidy").read_bytes())
    for entry in entries:
        seen.update(entry["command"].encode())
        seen.update(expanded(entry))
    known = CLEAN / seen.hexdigest()
    if known.exists():
        return ""
    done = subprocess.run(
        ["clang-tidy", "-p", build, "--quiet", source],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode == 0:
        known.touch()
        return ""
    return done.stdout or done.stderr


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: tidy.py BUILD")
    build = pathlib.Path(sys.argv[1])
    tracked = subprocess.run(["git", "ls-files", "*.cc"], cwd=ROOT, text=True,
                             stdout=subprocess.PIPE, check=True)
    wanted = {str(ROOT / path) for path in tracked.stdout.split()
              if is_read(pathlib.Path(path))}
    compiled = collections.defaultdict(list)
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if entry["file"] in wanted:
            compiled[entry["file"]].append(entry)
    CLEAN.mkdir(parents=True, exist_ok=True)
    found = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for said in pool.map(lambda source: check(build, source,
                                                  compiled[source]), compiled):
            if said:
                found += 1
                print(said, flush=True)
    print(f"{len(compiled)} sources, {found} with findings")
    return found > 0


if __name__ == "__main__":
    sys.exit(main())
