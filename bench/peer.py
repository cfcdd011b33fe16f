#!/usr/bin/env python3
"""Tiercel and llama.cpp side by side: same files, threads and prompts.

  bench/peer.py                      everything; long, on a quiet machine
  bench/peer.py --files q4_1 --depths 0,2048 --rounds 2
  bench/peer.py --save               also writes bench/results/<date>-<cpu>.*
  bench/peer.py --gguf FILE...       other files, as make_random.py writes them

llama.cpp is built from scratch, Release, with its own flags: for this machine
(-march=native), or, if TIERCEL_ISA names an ISA below the machine's, for that
ISA. The files are SmolLM2-135M-Instruct as shipped (Q4_1) and made from it by
llama.cpp's own llama-quantize (Q4_0, Q8_0, F16). Files of --gguf are saved in a
page of their own, bench/results/<date>-<cpu>-shapes.*.

A round runs every file at every depth, first one program, then the other, and
the next round swaps them: a slow minute of the machine hits both. Before each
round it waits (--wait) until other processes have taken under 5 % of the CPUs
for 30 s; if they do not stop, nothing is saved. Both programs read the same
token ids, and run a test once whole and unmeasured and then once measured. A
program's rate is the median over rounds, beside the least and the greatest;
llama.cpp runs with and without flash attention, and the better median counts.
Only ratios between two columns of one table mean something.

Standard library only. doc/measured.md explains the columns.
"""

import argparse
import ctypes
import datetime
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

import quiet
from pages import ROOT
from peer_table import PEAKS, describe, markdown, save, summarise

CACHE = pathlib.Path(
    os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
)
CACHE = CACHE / "tiercel"
FILES = ("q4_1", "q4_0", "q8_0", "f16")
TOOLS = ("llama-bench", "llama-quantize")

# The instruction sets that llama.cpp may use at each ISA; all others are off.
AVX2 = ("SSE42", "AVX", "AVX2", "BMI2", "FMA", "F16C")
ISAS = {
    "portable": (),
    "avx2": AVX2,
    "avxvnni": AVX2 + ("AVX_VNNI",),
    "avx512": AVX2 + ("AVX512",),
    "avx512vnni": AVX2 + ("AVX512", "AVX512_VNNI", "AVX512_BF16"),
}


def output_of(command, env=None):
    """Runs a program and returns what it prints; stops if it fails."""
    command = [str(word) for word in command]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        env=env
    )
    if done.returncode != 0:
        tail = (done.stdout + done.stderr)[-2000:]
        sys.exit(f"peer.py: {' '.join(command)} failed:\n{tail}")
    return done.stdout


def say(text):
    """Prints progress to stderr; stdout has only the table."""
    print(f"peer.py: {text}", file=sys.stderr, flush=True)


# ---- Programs and files ------------------------------------------------------


def machine_environment():
    """This process's environment without TIERCEL_ISA, for the machine's ISA."""
    return {k: v for k, v in os.environ.items() if k != "TIERCEL_ISA"}


def isas(tiercel):
    """The ISA that is measured, and the machine's own."""
    if tiercel is None:
        return "native", "native"
    found = []
    for env in (None, machine_environment()):
        version = output_of([tiercel, "--version"], env)
        found.append(re.search(r", (\w+)\)$", version.strip()).group(1))
    return tuple(found)


def build_flags(isa):
    """CMake's flags for llama.cpp at an ISA; None means this machine's."""
    if isa is None:
        return ["-DGGML_NATIVE=ON"]
    every = sorted(set().union(*ISAS.values()))
    return ["-DGGML_NATIVE=OFF"] + [
        f"-DGGML_{name}={'ON' if name in ISAS[isa] else 'OFF'}"
        for name in every]


def peer_programs(source, isa, jobs, tools=TOOLS):
    """Returns llama.cpp's programs by name, building those that are missing."""
    if source is None:
        script = ROOT / "tests/setup/peer.sh"
        source = pathlib.Path(output_of([script]).strip())
    folder = source / ("build" if isa is None else f"build-{isa}")
    programs = {tool: folder / "bin" / tool for tool in tools}
    if not all(path.exists() for path in programs.values()):
        build_peer(source, folder, build_flags(isa), jobs, tools)
    return programs


def build_peer(source, folder, flags, jobs, tools):
    say(f"building llama.cpp in {folder}: {' '.join(flags)}")
    # The configuration leaves out the server, tests and downloads.
    off = ("LLAMA_BUILD_SERVER", "LLAMA_BUILD_TESTS", "LLAMA_CURL")
    configure = ["cmake", "-S", source, "-B", folder, "-G", "Ninja"]
    configure += ["-DCMAKE_BUILD_TYPE=Release", *flags]
    output_of(configure + [f"-D{name}=OFF" for name in off])
    build = ["cmake", "--build", folder, "-j", jobs, "--target"]
    output_of(build + list(tools))


def without_broken_amx(programs, model, jobs):
    """Builds llama.cpp again without AMX if it dies: some virtual machines
    advertise AMX and trap on it."""
    command = [programs["llama-bench"], "-m", model, "-p", "16", "-n", "1"]
    command += ["-r", "1"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode in (-signal.SIGILL, -signal.SIGSEGV):
        flags = "-mno-amx-tile -mno-amx-int8 -mno-amx-bf16"
        folder = programs["llama-bench"].parents[1]
        build_peer(folder.parent, folder, build_flags(None) + [
            f"-DCMAKE_{language}_FLAGS={flags}" for language in ("C", "CXX")
        ], jobs, tuple(programs))


def model_files(names, shipped, quantize):
    """Returns paths by name; missing files are requantised into the cache."""
    if shipped is None:
        script = ROOT / "tests/setup/model.sh"
        shipped = pathlib.Path(output_of([script]).strip())
    paths = {}
    for name in names:
        if name == "q4_1":
            paths[name] = shipped
            continue
        stem = shipped.name.removesuffix(".gguf").removesuffix(".Q4_1")
        path = CACHE / "models" / f"{stem}.{name.upper()}.gguf"
        if not path.exists():
            say(f"requantising {shipped.name} to {path.name}")
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_suffix(".partial")
            command = [quantize, "--allow-requantize", shipped, partial]
            output_of(command + [name.upper()])
            partial.rename(path)
        paths[name] = path
    return paths


# ---- Running -----------------------------------------------------------------


def ids_of(depth, prompt, generate, vocab):
    """The ids that llama-bench reads in run_llama's tests: {test: token ids}.

    Each id is the C library's next rand(), from its default seed, modulo the
    vocabulary (a model that begins texts with BOS would begin with that). The
    context is drawn once, then each test twice, of which the second counts. A
    decode test draws one id more than it reads.
    """
    libc = ctypes.CDLL(None)
    libc.srand(1)

    def draw(count):
        return [libc.rand() % vocab for _ in range(count)]

    context = draw(depth)
    prompts = [draw(prompt), draw(prompt)]
    generations = [draw(generate + 1), draw(generate + 1)]
    return {"prompt": context + prompts[1],
            "generate": context + generations[1][:generate]}


def run_llama(program, model, depth, args):
    """Returns {(test, flash attention): tokens/s} of one file at one depth."""
    rates = {}
    for attention in ("off", "on"):
        rows = json.loads(
            output_of(
                [program, "-m", model, "-t", args.threads, "-o", "json"]
                + ["-p", args.prompt, "-n", args.generate, "-d", depth]
                + ["-r", 2, "--no-warmup", "-ngl", 0]
                + ["-fa", int(attention == "on")]
            )
        )
        for row in rows:
            _, rates[test_name(row), attention] = row["samples_ts"]
    return rates


def run_tiercel(program, model, depth, args):
    """Returns the rows of `tiercel bench` by test, of one file at one depth."""
    inspected = json.loads(output_of([program, "inspect", model, "--json"]))
    ids = ids_of(depth, args.prompt, args.generate,
                 inspected["config"]["vocab"])
    found = {}
    for prompt, generate, test in ((args.prompt, 0, "prompt"),
                                   (0, args.generate, "generate")):
        with tempfile.NamedTemporaryFile("w") as file:
            print(*ids[test], file=file, flush=True)
            rows = json.loads(
                output_of(
                    [program, "bench", "-m", model, "-t", args.threads]
                    + ["-p", prompt, "-n", generate, "-d", depth, "-r", 1]
                    + ["--tokens", file.name, "-o", "json", "--no-progress"]
                )
            )
        found.update({row["test"]: row for row in rows})
    return found


def read_peak(program, model, threads):
    """The bytes a second that all threads read together, at the machine's own
    ISA: the greatest of some measurements, as disturbances only slow them."""
    peaks = []
    for _ in range(PEAKS):
        (row,) = json.loads(
            output_of(
                [program, "bench", "-m", model, "-t", threads, "-p", 1]
                + ["-n", 0, "-r", 1, "-o", "json", "--no-progress"],
                machine_environment(),
            )
        )
        peaks.append(row["machine"]["read_bytes_per_s"])
    return max(peaks)


def test_name(row):
    """The name that llama-bench gives a row: pp512, tg32@d2048."""
    name = f"pp{row['n_prompt']}" if row["n_prompt"] else f"tg{row['n_gen']}"
    return name + (f"@d{row['n_depth']}" if row["n_depth"] else "")


def wait_until_quiet(args):
    """Waits, and returns the CPU share of other processes. Ends the script if
    the machine stays busy and results were to be saved."""
    share, is_quiet = quiet.wait(60 * args.wait)
    if not is_quiet:
        what = (f"other processes took {share:.0%} of the CPUs for "
                f"{quiet.WINDOW_S} s, after {args.wait} minutes of waiting")
        if args.save:
            sys.exit(f"peer.py: {what}; nothing is saved")
        say(what + "; the rates will be low and the ratios wrong")
    return share


def measure(programs, models, args):
    """Returns all samples, {(file, test): {program or variant: [tokens/s,
    ...]}}, Tiercel's last row of every (file, test), and the greatest share of
    the CPUs that other processes took before and during a round."""
    samples, rows = {}, {}
    before, during = 0, 0

    def add(file, test, who, rate):
        samples.setdefault((file, test), {}).setdefault(who, []).append(rate)

    def llama(file, depth):
        bench = programs["llama-bench"]
        found = run_llama(bench, models[file], depth, args)
        for (test, attention), rate in found.items():
            add(file, test, f"llama.cpp, fa {attention}", rate)

    def tiercel(file, depth):
        found = run_tiercel(args.tiercel, models[file], depth, args)
        for test, row in found.items():
            add(file, test, "tiercel", row["avg_ts"])
            rows[file, test] = row

    for number in range(args.rounds):
        order = [llama] if args.peer_only else [llama, tiercel]
        if number % 2 == 1:
            order.reverse()
        before = max(before, wait_until_quiet(args))
        others = quiet.Others()
        for file in models:
            for depth in args.depths:
                say(f"round {number + 1}/{args.rounds}, {file}, depth {depth}")
                for program in order:
                    program(file, depth)
        during = max(during, others.share())
    return samples, rows, {"before": before, "during": during}


# ---- The command line --------------------------------------------------------


def integers(text):
    """Turns "0,2048" into [0, 2048]."""
    return [int(word) for word in text.split(",")]


def known_files(text):
    """Turns "q4_1,f16" into ["q4_1", "f16"]; refuses unknown names."""
    names = text.lower().split(",")
    if unknown := set(names) - set(FILES):
        raise argparse.ArgumentTypeError(f"no such file: {', '.join(unknown)}")
    return names


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add = parser.add_argument
    add("--files", type=known_files, default=list(FILES), help="q4_1,q4_0,...")
    add("--gguf", type=pathlib.Path, nargs="+", metavar="FILE", default=[],
        help="these files instead of those")
    add("--depths", type=integers, default=[0, 2048, 7500])
    add("--prompt", type=int, default=512, help="tokens of a prefill test")
    add("--generate", type=int, default=32, help="tokens of a decode test")
    add("--rounds", type=int, default=3)
    add("--wait", type=int, default=15, metavar="MINUTES",
        help="at most so long for a quiet machine, before each round")
    cores = len(os.sched_getaffinity(0))
    add("--threads", type=int, default=cores, help=f"default {cores}")
    add(
        "--tiercel",
        type=pathlib.Path,
        default=ROOT / "build/cpu/apps/tiercel",
        help="the program under test",
    )
    add("--peer-only", action="store_true", help="llama.cpp alone")
    add("--peer-dir", type=pathlib.Path, help="an existing llama.cpp tree")
    add("--model", type=pathlib.Path, help="the Q4_1 file, if not the cache's")
    add("--save", action="store_true", help="keep it in bench/results/")
    args = parser.parse_args()
    if args.rounds < 1:
        parser.error(f"--rounds: got {args.rounds}, need 1 or more")
    args.date = datetime.datetime.now(datetime.timezone.utc)
    args.tiercel = args.tiercel.resolve()
    if not args.peer_only and not os.access(args.tiercel, os.X_OK):
        parser.error(f"{args.tiercel} is no program; build it or --peer-only")
    return args


def main():
    args = parse()
    both = isas(None if args.peer_only else args.tiercel)
    isa = None if both[0] == both[1] else both[0]
    programs = peer_programs(args.peer_dir, isa, jobs=args.threads)
    models = ({path.stem: path.resolve() for path in args.gguf} or
              model_files(args.files, args.model, programs["llama-quantize"]))
    any_model = next(iter(models.values()))
    if isa is None:
        without_broken_amx(programs, any_model, args.threads)
    peak = None
    if not args.peer_only:
        wait_until_quiet(args)
        peak = read_peak(args.tiercel, any_model, args.threads)
    samples, rows, others = measure(programs, models, args)
    lines = summarise(samples, rows, peak)
    about = describe(rows, both, peak, others, args)
    table = markdown(about, lines)
    print(table, end="")
    if args.save:
        kind = "shapes" if args.gguf else None
        written = save(about, lines, table, kind)
        say(f"saved {', '.join(map(str, written))}")


if __name__ == "__main__":
    main()
