"""Runs 128K positions without a prompt: the shape of Llama 2 7B with random
weights and filled KV, on a card of 24 GiB behind 25 GB/s (a limit that a larger
card simulates, as the page says), and with all the memory there is."""

import os
import random
import shutil
import typing

import programs
from record import FAILED, NOT_RUN, PASSED
from speed import bench_rows

SHAPE = ("--type", "f16", "--layers", "32", "--hidden", "4096", "--heads",
         "32", "--ffn", "11008", "--vocab", "32000", "--context", "131072")
TOY = ("--type", "f16", "--layers", "4", "--hidden", "64", "--heads", "2",
       "--ffn", "128", "--vocab", "512", "--context", "2048")
VOCABULARY = 32000
CARD = "device=24GiB,link=25GB/s"

SFI = "--policy sfi --plain --budget 2048 --set trigger=fixed,interval=64"
SADAS = "--policy sadas --plain --set think=on"
TRIFORCE = "--policy triforce --budget 4096 --gamma2 16"


class DeepRun(typing.NamedTuple):
    name: str
    depth: int
    tokens: int
    flags: str
    card: bool  # on the small card


# 32K positions are 16 GiB of KV, 127K are 64 GiB.
RUNS = (
    DeepRun("a prompt, and decoding without a depth", 0, 64,
            "--policy full", False),
    DeepRun("full, 16 GiB", 32000, 5, "--policy full", True),
    DeepRun("triforce, 64 GiB", 130000, 9, TRIFORCE, True),
    DeepRun("sfi, 16 GiB", 32000, 129, SFI, True),
    DeepRun("sadas, 16 GiB", 32000, 64, SADAS, True),
    DeepRun("full, 16 GiB", 32000, 48, "--policy full", False),
    DeepRun("sfi, 16 GiB", 32000, 129, SFI, False),
    DeepRun("sadas, 16 GiB", 32000, 64, SADAS, False),
    DeepRun("triforce, 64 GiB", 130000, 24, TRIFORCE, False),
)
TOYS = (
    DeepRun("triforce", 400, 3, "--policy triforce --budget 64 --sink 8 "
            "--window 16 --chunk 8", True),
    DeepRun("full", 300, 2, "--policy full", False),
)
TOY_CARD = "device=40MiB,link=25GB/s"


def folder_with(run, size):
    """Prefers memory: writing to a disk takes longer than all the rest."""
    for folder in ("/dev/shm", run.scratch):
        try:
            if shutil.disk_usage(folder).free > size:
                return folder
        except OSError:
            continue
    return None


def python_with_numpy():
    for python in ("python3", "/usr/bin/python3"):
        if programs.run([python, "-c", "import numpy"], 20).code == 0:
            return python
    return "python3"  # its error says what is missing


def flags_of(run, one, model, depth, ids):
    flags = ["-m", model, "--device", run.device, "-n", one.tokens, "-d", depth,
             "-r", 1, "--no-warmup", *one.flags.split()]
    flags += (["--fill", "-p", 0, "--tokens", ids] if depth > 0
              else ["-p", 2048])
    if one.card:
        flags += ["--simulate", TOY_CARD if run.is_simulated else CARD]
    return flags


def work(run):
    size = (1 << 20) if run.is_simulated else (14 << 30)
    folder = folder_with(run, size + (1 << 30))
    if folder is None:
        return NOT_RUN, f"no folder has {size >> 30} GiB"
    model = os.path.join(folder, f"tiercel-deep-{os.getpid()}.gguf")
    ids = run.scratch / "deep.ids"
    draw = random.Random(1)
    ids.write_text("\n".join(
        str(draw.randrange(512 if run.is_simulated else VOCABULARY))
        for _ in range(131072)))
    try:
        made = run.call(python_with_numpy(), run.pack / "bench" / "make_random.py",
                        "--tile", *(TOY if run.is_simulated else SHAPE), model,
                        seconds=80)
        if made.code != 0:
            return FAILED, f"make_random.py: {made.words}"
        for one in TOYS if run.is_simulated else RUNS:
            where = "24 GiB, 25 GB/s" if one.card else "all there is"
            name = f"{one.name}, {where}"
            if run.known(name):
                continue
            if run.left() < (2 if run.is_simulated else 8):
                break
            for depth in dict.fromkeys((one.depth, one.depth // 2,
                                        one.depth // 4)):
                rows, why = bench_rows(run, name,
                                       *flags_of(run, one, model, depth, ids),
                                       seconds=run.left())
                # This machine may have less memory than the card's host.
                if rows is not None or "does_not_fit" not in why:
                    break
            if rows is None and run.left() <= 0:
                break
            run.case(name, FAILED if rows is None else PASSED, why)
    finally:
        try:
            os.unlink(model)
        except OSError:
            pass
    return run.summary("runs")
