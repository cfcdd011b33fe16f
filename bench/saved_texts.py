#!/usr/bin/env python3
"""What it takes to open a text that was read before, beside reading it.

  bench/saved_texts.py BOOK            three rounds, some minutes, quiet
  bench/saved_texts.py BOOK --save     also writes
                                       bench/results/<date>-<cpu>-saved-texts.md
  bench/saved_texts.py BOOK -- FLAG... more flags of `tiercel ask`

`tiercel ask` about a piece of BOOK of --tokens tokens, in a cache folder of its
own: once with nothing there, once with the text's file in the system's page
cache, once after it was dropped from there. Each time is that to the first token
(TTFT): it counts finding, reading and checking the saved pages, and hashing the
model's file to know it again; loading the model it does not count. The rate of
the disk is that of a plain read of the same file from its beginning to its end,
dropped from the page cache before; where a file system keeps all it has in
memory, it is memory's. Medians of the rounds. All three must give one text.

Standard library only.
"""

import argparse
import os
import pathlib
import statistics
import sys
import tempfile
import time

import pages
from program import Program

CACHE = pathlib.Path(
    os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
MODEL = CACHE / "tiercel/models/SmolLM2-135M-Instruct.Q4_1.gguf"
QUESTION = "Who tells the story?"
COLUMNS = ["tokens", "file, MB", "read, s", "opened, s", "times as fast",
           "opened from disk, s", "times as fast", "MB/s", "disk, MB/s"]


def forget(path):
    """Has the system drop the file's bytes from memory, which are on disk."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def plain_read_s(path):
    buffer = bytearray(8 << 20)
    with open(path, "rb", buffering=0) as file:
        begin = time.perf_counter()
        while file.readinto(buffer):
            pass
        return time.perf_counter() - begin


def piece(program, text, tokens, folder):
    """A file with the beginning of `text`, of about so many tokens."""
    cut = folder / "piece.txt"
    letters = 4 * tokens
    for _ in range(3):
        cut.write_text(text[:letters])
        count = len(program.document("tokenize", "-f", cut)["tokens"])
        letters = letters * tokens // count
    return cut


def measure(program, cut, texts, rounds, flags):
    """The times of each round, and what they are of."""
    def ask():
        return program.document("ask", cut, QUESTION, "-n", 8, "--temp", 0,
                                "--ignore-eos", *flags)

    times = {"read": [], "opened": [], "disk": [], "plain": []}
    for _ in range(rounds):
        for old in texts.glob("*.kv"):
            old.unlink()
        read = ask()
        (saved,) = texts.glob("*.kv")
        opened = ask()
        forget(saved)
        times["plain"].append(plain_read_s(saved))
        forget(saved)
        from_disk = ask()
        for name, document in (("read", read), ("opened", opened),
                               ("disk", from_disk)):
            times[name].append(document["ttft_s"])
            if document["output"][0]["tokens"] != read["output"][0]["tokens"]:
                sys.exit(f"{name}: another text")
            if (name == "read") != (document["cached_tokens"] == 0):
                sys.exit(f"{name}: {document['cached_tokens']} tokens cached")
    return times, read["prompt_tokens"], saved.stat().st_size


def row_of(times, tokens, size):
    read, opened, disk, plain = (
        statistics.median(times[name])
        for name in ("read", "opened", "disk", "plain"))
    megabytes = size / 1e6
    return [str(tokens), f"{megabytes:.0f}", f"{read:.2f}", f"{opened:.3f}",
            f"{read / opened:.0f}", f"{disk:.3f}", f"{read / disk:.0f}",
            f"{megabytes / disk:.0f}", f"{megabytes / plain:.0f}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("book", type=pathlib.Path)
    parser.add_argument("--tokens", type=int, default=7000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tiercel", default=str(
        pages.ROOT / "build/cpu/apps/tiercel"))
    parser.add_argument("--save", action="store_true")
    parser.add_argument("flags", nargs="*")
    args = parser.parse_args()
    program = Program(args.tiercel)
    os.environ.setdefault("TIERCEL_MODEL", str(MODEL))
    text = args.book.read_text(encoding="utf-8")
    # Beside the program: there is a disk.
    beside = pathlib.Path(args.tiercel).resolve().parent
    with tempfile.TemporaryDirectory(dir=beside) as folder:
        folder = pathlib.Path(folder)
        cut = piece(program, text, args.tokens, folder)
        os.environ["XDG_CACHE_HOME"] = str(folder)  # from here on
        row = row_of(*measure(program, cut, folder / "tiercel/texts",
                              args.rounds, args.flags))
    load = os.getloadavg()
    lines = [
        f"# Saved texts, {pages.today()}, {pages.cpu_name()}", "",
        f"{pages.version_of(args.tiercel)}; {args.rounds} rounds; load average "
        f"at the end {load[0]:.1f} on {os.cpu_count()} CPUs; "
        f"flags: {' '.join(args.flags) or 'none'}", "",
        "| " + " | ".join(COLUMNS) + " |", "|" + "---:|" * len(COLUMNS),
        "| " + " | ".join(row) + " |"]
    print("\n".join(lines))
    if args.save:
        print(pages.save(lines, {}, "saved-texts"))


if __name__ == "__main__":
    main()
