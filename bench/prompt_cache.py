#!/usr/bin/env python3
"""Measures opening a text from the prompt cache, beside reading it anew.

  bench/prompt_cache.py BOOK            some minutes, on a quiet machine
  bench/prompt_cache.py BOOK --save     also writes
                                       bench/results/<date>-<cpu>-saved-texts.md
  bench/prompt_cache.py BOOK --peer llama-server
                                       also its slots, saved and restored
  bench/prompt_cache.py BOOK -- FLAG... more flags of `tiercel ask`

It runs `tiercel ask` about a piece of BOOK of --tokens tokens, in a cache
folder of its own: once with an empty folder, then --openings times with the
text's file in the system's page cache, and as often after it was dropped from
there. Each time is that to the first token (TTFT). It includes finding, reading
and checking the saved pages, hashing the model's file to recognise it, and
computing the tokens after the saved ones, but not loading the model. "MB/s" is
the rate of opening itself (taking memory, reading, checking), the report's
`opened_pages` over its `opened_s`.

The rate of the disk is that of a plain read of the same file from beginning to
end, which was dropped from the page cache before, into fresh memory, in huge
pages if possible, as opening a text needs it too. On a file system in memory it
is the rate of memory. There is a plain read before each opening from disk and
one after it, as a disk may be quicker with data that it has just read; the
quicker one counts. The shares of the disk's rate, of opening itself and of the
file's bytes over the whole time to the first token, are medians of all rounds,
as are the times. All three must give the same text. All is measured once more
with a kernel that refuses io_uring, where reads follow each other.

llama-server reads the ids of the same piece, up to the first token after them.
Then, in a new process each time, it restores the slot and gives the first token
after the same ids and a few more. It does not check that the slot is of the
same model. The time of loading the model counts for neither program.

Standard library only.
"""

import argparse
import contextlib
import mmap
import os
import pathlib
import statistics
import sys
import tempfile
import time

import pages
from llama_server import LlamaServer
from program import Program, keep_caches_in

NO_RING = (sys.executable, "-B",
           str(pathlib.Path(__file__).with_name("no_ring.py")))
QUESTION = "Who tells the story?"
COLUMNS = ["who", "tokens", "file, MB", "read, s", "opened, s", "times as fast",
           "opened from disk, s", "times as fast", "MB/s", "disk, MB/s",
           "of its rate", "to the first token"]


def forget(path):
    """Has the system drop the file's bytes from its page cache."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def plain_read_s(path):
    """Returns the seconds of a plain read of the file from disk to memory."""
    forget(path)
    with open(path, "rb", buffering=0) as file:
        begin = time.perf_counter()
        with mmap.mmap(-1, path.stat().st_size,
                       mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
            with contextlib.suppress(OSError):  # some systems lack huge pages
                memory.madvise(mmap.MADV_HUGEPAGE)
            with memoryview(memory) as all_of_it:
                done = 0
                while got := file.readinto(all_of_it[done:done + (8 << 20)]):
                    done += got
            return time.perf_counter() - begin


def between_plain_reads(path, opening):
    """Calls `opening` while the file is not in the page cache; returns its
    result, and the seconds of the quicker plain read before or after it."""
    before = plain_read_s(path)
    forget(path)
    found = opening()
    return found, min(before, plain_read_s(path))


def piece(program, text, tokens, folder):
    """Returns a file with the beginning of `text`, about `tokens` tokens."""
    cut = folder / "piece.txt"
    letters = 4 * tokens
    for _ in range(3):
        cut.write_text(text[:letters])
        count = len(program.document("tokenize", "-f", cut)["tokens"])
        letters = letters * tokens // count
    return cut


def measure(program, cut, texts, rounds, openings, flags):
    """Measures all rounds; returns their times, and what they are times of."""
    def ask():
        return program.document("ask", cut, QUESTION, "-n", 8, "--temp", 0,
                                "--ignore-eos", *flags)

    times = {"read": [], "opened": [], "disk": [], "rate": [], "plain": []}

    def note(name, read, document):
        times[name].append(document["ttft_s"])
        if document["output"][0]["tokens"] != read["output"][0]["tokens"]:
            sys.exit(f"{name}: another text")
        if (name == "read") != (document["cached_tokens"] == 0):
            sys.exit(f"{name}: {document['cached_tokens']} tokens cached")

    for _ in range(rounds):
        for old in texts.glob("*.kv"):
            old.unlink()
        read = ask()
        note("read", read, read)
        (saved,) = texts.glob("*.kv")
        for _ in range(openings):
            note("opened", read, ask())
            opened, plain = between_plain_reads(saved, ask)
            note("disk", read, opened)
            times["plain"].append(plain)
            formula = opened["ledger"]["formula"]
            times["rate"].append(formula["page_bytes"] * formula["opened_pages"]
                                 / opened["ledger"]["opened_s"])
    return times, read["prompt_tokens"], saved.stat().st_size


def measure_peer(server, ids, rounds, openings, folder):
    """The same as `measure` for llama-server, which `server` starts."""
    asked = ids + ids[:8]
    saved = folder / "slot"
    times = {"read": [], "opened": [], "disk": [], "rate": [], "plain": []}

    def opened():
        with server() as running:
            seconds = running.restore(saved.name)
            more, computed = running.first_token(asked)
            if computed > len(asked) - len(ids) + 1:
                sys.exit(f"llama-server: {computed} tokens read again")
            return seconds + more, saved.stat().st_size / seconds

    for _ in range(rounds):
        with server() as running:
            seconds, computed = running.first_token(ids)
            if computed != len(ids):
                sys.exit(f"llama-server: read {computed} of {len(ids)}")
            times["read"].append(seconds)
            running.save(saved.name)
        for _ in range(openings):
            times["opened"].append(opened()[0])
            (seconds, rate), plain = between_plain_reads(saved, opened)
            times["plain"].append(plain)
            times["disk"].append(seconds)
            times["rate"].append(rate)
    return times, len(ids), saved.stat().st_size


def row_of(who, times, tokens, size):
    read, opened, disk, rate, plain = (
        statistics.median(times[name])
        for name in ("read", "opened", "disk", "rate", "plain"))
    share = statistics.median(
        own * raw / size for raw, own in zip(times["plain"], times["rate"]))
    whole = statistics.median(
        raw / own for raw, own in zip(times["plain"], times["disk"]))
    megabytes = size / 1e6
    return [who, str(tokens), f"{megabytes:.0f}", f"{read:.2f}", f"{opened:.3f}",
            f"{read / opened:.0f}", f"{disk:.3f}", f"{read / disk:.0f}",
            f"{rate / 1e6:.0f}", f"{megabytes / plain:.0f}",
            f"{100 * share:.0f} %", f"{100 * whole:.0f} %"]


def book_parser(about, needs_book=True):
    """The arguments of a script that measures pieces of a book."""
    parser = argparse.ArgumentParser(description=about.split("\n")[0])
    parser.add_argument("book", type=pathlib.Path,
                        nargs=None if needs_book else "?")
    parser.add_argument("--tokens", type=int, default=7000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tiercel", default=str(
        pages.ROOT / "build/cpu/apps/tiercel"))
    parser.add_argument("--save", action="store_true")
    parser.add_argument("flags", nargs="*")
    return parser


def scratch_beside(tiercel):
    """A folder for a while beside the program, which is likely to be on a
    disk."""
    return tempfile.TemporaryDirectory(
        dir=pathlib.Path(tiercel).resolve().parent)


def conditions(args, of="tokens"):
    """The line of a page that says what was run. `args` are book_parser's, and
    have --generated."""
    return (f"{pages.version_of(args.tiercel)}; {args.rounds} rounds of "
            f"{args.generated} {of}; {pages.load_now()}; flags: "
            f"{' '.join(args.flags) or 'none'}")


def main():
    parser = book_parser(__doc__)
    parser.add_argument("--openings", type=int, default=4, help="of each round")
    parser.add_argument("--peer", metavar="PROGRAM", help="llama-server")
    args = parser.parse_args()
    program = Program(args.tiercel)
    text = args.book.read_text(encoding="utf-8")
    with scratch_beside(args.tiercel) as folder:
        folder = pathlib.Path(folder)
        cut = piece(program, text, args.tokens, folder)
        keep_caches_in(folder)
        rows = []
        for who, running in (
                ("Tiercel", program),
                ("Tiercel, no io_uring", Program(args.tiercel, NO_RING))):
            rows.append(row_of(who, *measure(
                running, cut, folder / "tiercel/prompt_cache", args.rounds,
                args.openings, args.flags)))
        if args.peer:
            ids = program.document("tokenize", "-f", cut)["tokens"]
            rows.append(row_of("llama-server", *measure_peer(
                lambda: LlamaServer(args.peer, os.environ["TIERCEL_MODEL"],
                                    len(ids) + 512,
                                    len(os.sched_getaffinity(0)), folder),
                ids, args.rounds, args.openings, folder)))
    pages.publish(
        "Saved texts",
        f"{pages.version_of(args.tiercel)}; {args.rounds} rounds of {args.openings} "
        f"openings; "
        f"{pages.load_now()}; flags: {' '.join(args.flags) or 'none'}",
        pages.table(COLUMNS, rows), args.save and "saved-texts")


if __name__ == "__main__":
    main()
