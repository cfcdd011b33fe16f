#!/usr/bin/env python3
"""Tiercel and llama.cpp side by side: same files, threads and prompts.

  bench/peer.py                      everything; long, on a quiet machine
  bench/peer.py --files q4_1 --depths 0,2048 --rounds 2
  bench/peer.py --save               also writes bench/results/<date>-<cpu>.*

llama.cpp is built from nothing for this machine (-march=native, Release), with
its own flags. The files are SmolLM2-135M-Instruct as shipped (Q4_1) and made
from it by llama.cpp's own llama-quantize (Q4_0, Q8_0, F16).

A round runs every file at every depth, first one program, then the other, and
the next round swaps them: a slow minute of the machine hits both. Both run a
test once unmeasured and then once measured. A program's rate is the median
over rounds; llama.cpp runs with and without flash attention and the better
median counts. Only ratios between two columns of one table mean something.

Standard library only. README.md says what the columns are.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = pathlib.Path(
    os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
)
CACHE = CACHE / "tiercel"
FILES = ("q4_1", "q4_0", "q8_0", "f16")
TOOLS = ("llama-bench", "llama-quantize")


def output_of(command):
    """Runs a program and returns what it prints; stops if it fails."""
    command = [str(word) for word in command]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if done.returncode != 0:
        tail = (done.stdout + done.stderr)[-2000:]
        sys.exit(f"peer.py: {' '.join(command)} failed:\n{tail}")
    return done.stdout


def say(text):
    """Progress for people, on stderr: stdout is the table's."""
    print(f"peer.py: {text}", file=sys.stderr, flush=True)


# ---- What is compared --------------------------------------------------------


def peer_programs(source, jobs):
    """llama.cpp's programs by name, built where they are missing."""
    if source is None:
        script = ROOT / "tests/setup/peer.sh"
        source = pathlib.Path(output_of([script]).strip())
    programs = {tool: source / "build/bin" / tool for tool in TOOLS}
    if all(path.exists() for path in programs.values()):
        return programs
    build_peer(source, jobs, "")
    return programs


def build_peer(source, jobs, flags):
    say(f"building llama.cpp in {source}/build {flags}")
    # Only what is run is configured: no server, no tests, no downloads.
    off = ("LLAMA_BUILD_SERVER", "LLAMA_BUILD_TESTS", "LLAMA_CURL")
    configure = ["cmake", "-S", source, "-B", source / "build", "-G", "Ninja"]
    configure += ["-DCMAKE_BUILD_TYPE=Release", "-DGGML_NATIVE=ON"]
    configure += [f"-DCMAKE_{language}_FLAGS={flags}" for language in ("C", "CXX")]
    output_of(configure + [f"-D{name}=OFF" for name in off])
    build = ["cmake", "--build", source / "build", "-j", jobs, "--target"]
    output_of(build + list(TOOLS))


def without_broken_amx(programs, model, jobs):
    """Some virtual machines advertise AMX and trap on it: -march=native then
    gives a program that dies. It is built again without."""
    command = [programs["llama-bench"], "-m", model, "-p", "16", "-n", "1"]
    command += ["-r", "1"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode in (-signal.SIGILL, -signal.SIGSEGV):
        flags = "-mno-amx-tile -mno-amx-int8 -mno-amx-bf16"
        source = programs["llama-bench"].parents[2]
        build_peer(source, jobs, flags)


def model_files(names, shipped, quantize):
    """Paths by name; what is missing is requantised into the cache."""
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


def run_llama(program, model, depth, args):
    """{(test, flash attention): tokens/s} of one file at one depth."""
    rows = json.loads(
        output_of(
            [program, "-m", model, "-t", args.threads, "-o", "json"]
            + ["-p", args.prompt, "-n", args.generate, "-d", depth]
            + ["-r", 1, "-fa", "0,1", "-ngl", 0]
        )
    )
    return {
        (test_name(row), "on" if flash_attention(row) else "off"): row["avg_ts"]
        for row in rows
    }


def flash_attention(row):
    """llama-bench has spelt it as a bool, a number and a word."""
    return row["flash_attn"] in (True, 1, "1", "on", "enabled")


def run_tiercel(program, model, depth, args):
    """The rows of `tiercel bench`, by test, of one file at one depth."""
    rows = json.loads(
        output_of(
            [program, "bench", "-m", model, "-t", args.threads, "-o", "json"]
            + ["-p", args.prompt, "-n", args.generate, "-d", depth, "-r", 1]
            + ["--no-progress"]
        )
    )
    return {row["test"]: row for row in rows}


def test_name(row):
    """llama-bench's own name of a row: pp512, tg32@d2048."""
    name = f"pp{row['n_prompt']}" if row["n_prompt"] else f"tg{row['n_gen']}"
    return name + (f"@d{row['n_depth']}" if row["n_depth"] else "")


def measure(programs, models, args):
    """All samples: {(file, test): {program or variant: [tokens/s, ...]}}.

    Also returns Tiercel's last row of every (file, test).
    """
    samples, rows = {}, {}

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
        for file in models:
            for depth in args.depths:
                say(f"round {number + 1}/{args.rounds}, {file}, depth {depth}")
                for program in order:
                    program(file, depth)
    return samples, rows


# ---- Reporting ---------------------------------------------------------------


def summarise(samples, rows):
    """One dictionary per table line."""
    lines = []
    for (file, test), by_program in samples.items():
        medians = {
            who: statistics.median(rates) for who, rates in by_program.items()
        }
        ours = medians.pop("tiercel", None)
        best = max(medians, key=medians.get)
        line = {
            "file": file,
            "test": test,
            "llama_cpp": medians[best],
            "flash_attention": best.removeprefix("llama.cpp, fa "),
            "tiercel": ours,
            "ratio": None if ours is None else ours / medians[best],
            "samples": by_program,
        }
        row = rows.get((file, test), {})
        line["bytes_per_token"] = row.get("bytes_per_token")
        peak = row.get("machine", {}).get("read_bytes_per_s")
        if line["bytes_per_token"] and peak:
            for who in ("llama_cpp", "tiercel"):
                line[f"{who}_peak_share"] = (
                    line[who] * line["bytes_per_token"] / peak
                )
        lines.append(line)
    return lines


def describe(rows, args):
    """Where, when and what: everything a reader needs to distrust a number."""
    machine = {}
    build = None
    for row in rows.values():
        machine, build = row.get("machine", {}), row.get("build")
    return {
        "date": args.date.isoformat(timespec="minutes"),
        "commit": commit(),
        "build": build,
        "cpu": cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "threads": args.threads,
        "rounds": args.rounds,
        "load_before": args.load_before,
        "machine": machine,
        "peer": "llama.cpp of llama-cpp-python 0.3.36, native Release build",
    }


def commit():
    """The commit this was measured at, `-dirty` if the tree differs."""
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    done = subprocess.run(git, capture_output=True, text=True)
    return done.stdout.strip() or "no commit"


def cpu_name():
    """The model name of the first CPU."""
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return os.uname().machine


def number(value, pattern):
    """A table cell; empty where there is nothing to say."""
    return "" if value is None else pattern.format(value)


def markdown(about, lines):
    """The table, under what it was measured on."""
    bandwidth = about["machine"].get("read_bytes_per_s")
    text = (
        f"{about['cpu']}, {about['cores']} cores, threads: {about['threads']}"
        + (f", {bandwidth / 1e9:.1f} GB/s read (measured)" if bandwidth else "")
        + f"; {about['date']}, commit {about['commit']}; "
        f"{about['peer']}; medians of {about['rounds']} rounds, tokens/s; "
        f"load average before: {about['load_before']:.2f}.\n\n"
        "| file | test | llama.cpp | its fa | Tiercel | ratio "
        "| MB/token | llama.cpp, % of peak | Tiercel, % of peak |\n"
        "|---|---|---:|---|---:|---:|---:|---:|---:|\n"
    )
    for line in lines:
        megabytes = line["bytes_per_token"] and line["bytes_per_token"] / 1e6
        cells = [
            line["file"].upper(),
            line["test"],
            number(line["llama_cpp"], "{:.1f}"),
            line["flash_attention"],
            number(line["tiercel"], "{:.1f}"),
            number(line["ratio"], "{:.2f}"),
            number(megabytes, "{:.0f}"),
            number(line.get("llama_cpp_peak_share"), "{:.0%}"),
            number(line.get("tiercel_peak_share"), "{:.0%}"),
        ]
        text += "| " + " | ".join(cells) + " |\n"
    return text


RESULTS_BEGIN = "<!-- results: written by bench/peer.py --save -->"
RESULTS_END = "<!-- end of results -->"


def save(about, lines, table, args):
    """bench/results/<date>-<cpu>.json and .md, and the README's table."""
    cpu = re.sub(r"[^a-z0-9]+", "-", about["cpu"].lower()).strip("-")
    stem = ROOT / "bench/results" / f"{args.date:%Y-%m-%d}-{cpu}"
    stem.parent.mkdir(parents=True, exist_ok=True)
    document = json.dumps({"about": about, "lines": lines}, indent=1)
    stem.with_name(stem.name + ".json").write_text(document + "\n")
    stem.with_name(stem.name + ".md").write_text(table)
    readme = ROOT / "README.md"
    before, _, rest = readme.read_text().partition(RESULTS_BEGIN)
    after = rest.partition(RESULTS_END)[2]
    readme.write_text(
        f"{before}{RESULTS_BEGIN}\n{table}{RESULTS_END}{after}")
    say(f"saved {stem}.json and .md, and the table in README.md")


def integers(text):
    """0,2048 -> [0, 2048]"""
    return [int(word) for word in text.split(",")]


def known_files(text):
    """q4_1,f16 -> ["q4_1", "f16"]"""
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
    add("--depths", type=integers, default=[0, 2048, 7500])
    add("--prompt", type=int, default=512, help="tokens of a prefill test")
    add("--generate", type=int, default=32, help="tokens of a decode test")
    add("--rounds", type=int, default=3)
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
    args.load_before = os.getloadavg()[0]
    args.tiercel = args.tiercel.resolve()
    if not args.peer_only and not os.access(args.tiercel, os.X_OK):
        parser.error(f"{args.tiercel} is no program; build it or --peer-only")
    if args.load_before > 0.5:
        say(
            f"load average {args.load_before:.1f}: other work is running, the "
            "rates will be low and the ratios wrong"
        )
    return args


def main():
    args = parse()
    programs = peer_programs(args.peer_dir, jobs=args.threads)
    models = model_files(args.files, args.model, programs["llama-quantize"])
    without_broken_amx(programs, next(iter(models.values())), args.threads)
    samples, rows = measure(programs, models, args)
    lines = summarise(samples, rows)
    about = describe(rows, args)
    table = markdown(about, lines)
    print(table, end="")
    if args.save:
        save(about, lines, table, args)


if __name__ == "__main__":
    main()
