"""Pastes the commands of the README and the guide into a shell.

    readme_test.py TIERCEL CHECKPOINTS    a tiny model in a home of its own
    readme_test.py --installed            what demo.sh built and installed
"""

import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def blocks():
    """Yields a list of commands for each block that calls the program."""
    text = ""
    for page in ("README.md", "doc/guide.md"):
        with open(os.path.join(ROOT, page), encoding="utf-8") as file:
            text += file.read()
    for block in re.findall(r"^```\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        lines = [line for line in block.splitlines() if line.strip()]
        if any(calls(line) for line in lines):
            yield lines


def calls(line):
    return re.search(r"(^|\| )tiercel ", line) is not None


def make_home(home, tiercel, checkpoints):
    """Makes a repository and a home as demo.sh leaves them, but tiny."""
    root = os.path.join(home, "root")
    cache = os.path.join(home, ".cache", "tiercel")
    for folder in (os.path.join(root, "build/cpu/apps"),
                   os.path.join(cache, "models"),
                   os.path.join(cache, "books", "html")):
        os.makedirs(folder)
    os.symlink(tiercel, os.path.join(root, "build/cpu/apps/tiercel"))
    os.symlink(os.path.join(checkpoints, "llama_chat.gguf"),
               os.path.join(cache, "models",
                            "SmolLM2-135M-Instruct.Q4_1.gguf"))
    prose = "The cat sat on the mat, and the dog did not. " * 400
    with open(os.path.join(cache, "books", "policy.txt"), "w") as file:
        file.write(prose)
    with open(os.path.join(cache, "books", "html", "ch-archive.html"),
              "w") as file:
        file.write("<html><body><p>%s</p></body></html>" % prose[:2000])
    return root


def paste(root, environment):
    count = 0
    for lines in blocks():
        # Lines that call nothing (PATH=..., cd ...) precede the calls below.
        before = []
        for line in lines:
            if not calls(line):
                before.append(line)
                continue
            print("$", line, flush=True)
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", "\n".join([*before, line])],
                cwd=root, env=environment, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600)
            print(done.stdout.decode(errors="replace")[:400], flush=True)
            assert done.returncode == 0, (line, done.stderr.decode())
            assert done.stdout.strip(), line
            count += 1
    assert count >= 8, "the pages have %d commands" % count


def main():
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("TIERCEL_")}
    if sys.argv[1:] == ["--installed"]:
        return paste(ROOT, environment)
    tiercel, checkpoints = map(os.path.abspath, sys.argv[1:3])
    with tempfile.TemporaryDirectory() as home:
        environment.pop("XDG_CACHE_HOME", None)
        environment["HOME"] = home
        return paste(make_home(home, tiercel, checkpoints), environment)


if __name__ == "__main__":
    main()
