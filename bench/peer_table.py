"""The table of peer.py: measurements as lines, as Markdown, and in files."""

import json
import os
import statistics

import pages
import quiet

PEAKS = 5  # measurements of the read bandwidth


def summarise(samples, rows, peak):
    """Returns one dictionary for each line of the table."""
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
            "llama_cpp_range": spread(by_program[best]),
            "flash_attention": best.removeprefix("llama.cpp, fa "),
            "tiercel": ours,
            "tiercel_range": spread(by_program.get("tiercel", [])),
            "ratio": None if ours is None else ours / medians[best],
            "samples": by_program,
        }
        row = rows.get((file, test), {})
        line["bytes_per_token"] = row.get("bytes_per_token")
        if line["bytes_per_token"] and peak:
            for who in ("llama_cpp", "tiercel"):
                line[f"{who}_peak_share"] = (
                    line[who] * line["bytes_per_token"] / peak
                )
        lines.append(line)
    return lines


def spread(rates):
    """Returns the least and the greatest rate; None if there are none."""
    return [min(rates), max(rates)] if rates else None


def describe(rows, isas, peak, others, args):
    """Describes machine, time and programs: everything that a reader needs to
    question a number."""
    build = None
    for row in rows.values():
        build = row.get("build")
    isa, machine = isas
    native = "native" if isa == machine else f"built for {isa}"
    return {
        "date": args.date.isoformat(timespec="minutes"),
        "build": build,
        "cpu": pages.cpu_name(),
        "isa": isa,
        "machine_isa": machine,
        "cores": len(os.sched_getaffinity(0)),
        "threads": args.threads,
        "rounds": args.rounds,
        "others_share": others,
        "read_bytes_per_s": peak,
        "peer": f"llama.cpp of llama-cpp-python 0.3.36, {native}, Release",
    }


def number(value, pattern):
    """A table cell; empty if there is no value."""
    return "" if value is None else pattern.format(value)


def rate_cell(line, who):
    """The median, least and greatest of a program's rates."""
    if line[who] is None:
        return ""
    low, high = line[f"{who}_range"]
    return f"{line[who]:.1f} ({low:.1f} to {high:.1f})"


def markdown(about, lines):
    """The table, under a description of machine and programs."""
    peak = about["read_bytes_per_s"]
    others = about["others_share"]
    text = (
        f"{about['cpu']}, ISA {about['isa']}, {about['cores']} cores, "
        f"threads: {about['threads']}"
        + (f", {peak / 1e9:.1f} GB/s read (measured, the best of {PEAKS})"
           if peak else "")
        + f"; {about['date']}; "
        + (f"Tiercel {about['build']}; " if about["build"] else "")
        + f"{about['peer']}; "
        f"medians of {about['rounds']} rounds (least to greatest), tokens/s; "
        f"other processes took at most {others['before']:.1%} of the CPUs in "
        f"the {quiet.WINDOW_S} s before a round, {others['during']:.1%} during "
        "one.\n\n"
        "| file | test | llama.cpp | its fa | Tiercel | ratio "
        "| MB/token | llama.cpp, % of peak | Tiercel, % of peak |\n"
        "|---|---|---:|---|---:|---:|---:|---:|---:|\n"
    )
    for line in lines:
        megabytes = line["bytes_per_token"] and line["bytes_per_token"] / 1e6
        cells = [
            line["file"].upper(),
            line["test"],
            rate_cell(line, "llama_cpp"),
            line["flash_attention"],
            rate_cell(line, "tiercel"),
            number(line["ratio"], "{:.2f}"),
            number(megabytes, "{:.0f}"),
            number(line.get("llama_cpp_peak_share"), "{:.0%}"),
            number(line.get("tiercel_peak_share"), "{:.0%}"),
        ]
        text += "| " + " | ".join(cells) + " |\n"
    return text


RESULTS = "<!-- results: written by bench/peer.py --save -->"


def save(about, lines, table, kind=None, root=pages.ROOT):
    """Writes bench/results/<date>-<cpu>.json and .md, and the table of
    doc/measured.md; files of another kind than the usual ones, or an ISA below
    the machine's, have a page of that name, <date>-<cpu>-<kind>-<isa>, without
    that table. Returns the paths."""
    below = about["isa"] != about["machine_isa"]
    suffixes = [kind] if kind else []
    suffixes += [about["isa"]] if below else []
    page = pages.page(about["date"][:10], about["cpu"], *suffixes, root=root)
    written = [page.with_suffix(ending) for ending in (".json", ".md")]
    document = json.dumps({"about": about, "lines": lines}, indent=1)
    written[0].write_text(document + "\n")
    written[1].write_text(table)
    if not suffixes:
        written.append(pages.fill_measured(RESULTS, table, root))
    return written
