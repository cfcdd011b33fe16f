"""Writes the page of a run: steps, failures and measurements."""

import record


def table(heads, rows, right=()):
    lines = ["| " + " | ".join(heads) + " |",
             "|" + "|".join("---:" if i in right else "---"
                            for i in range(len(heads))) + "|"]
    for row in rows:
        lines.append("| " + " | ".join(
            str(cell).replace("|", "/").replace("\n", " ") for cell in row)
            + " |")
    return "\n".join(lines) + "\n"


def number(value, digits=3):
    return "" if value is None else f"{value:.{digits}g}"


def of(records, date):
    machines = [line["machine"] for line in records.lines if "machine" in line]
    parts = ["# Tiercel on a GPU\n"]
    for machine in machines:
        parts.append(
            f"{machine['gpu']}; {machine['cpu']}, {machine['cpus']} CPUs, "
            f"{machine['host_bytes'] / 2**30:.0f} GiB; Linux "
            f"{machine['kernel']}; commit {machine['commit']}, {date}\n")
    ends = {}
    for line in records.lines:
        if "words" in line:
            ends[line["step"]] = line
    parts.append(table(
        ("step", "outcome", "seconds", "last words"),
        [(name, line["outcome"] + (" (before)" if line.get("earlier") else ""),
          line["seconds"], line["words"][:160]) for name, line in ends.items()],
        right=(2,)))
    failed = [line for line in records.failed() if "case" in line]
    if failed:
        parts.append("## Failed\n")
        parts.append(table(("step", "case", "why"),
                           [(line["step"], line["case"],
                             line.get("why", "")[:200]) for line in failed]))
    for make in (ceilings, ops, link, ends_to_ends, profiles):
        text = make(records)
        if text:
            parts.append(text)
    return "\n".join(parts)


def ceilings(records):
    rows = [row for row in records.rows("speed") if row["kind"] == "ceiling"]
    if not rows:
        return ""
    return "## The machine's own\n\n" + table(
        ("figure", "value", "unit"),
        [(row["name"], number(row["value"], 4), row["unit"]) for row in rows],
        right=(1,))


def ops(records):
    all_rows = records.rows("speed")
    rows = [row for row in all_rows if row["kind"] == "op"]
    if not rows:
        return ""
    copy = max((row["value"] for row in all_rows if row["kind"] == "ceiling"
                and row["name"].startswith("device ")), default=0)
    peers = {(row["op"], row["model"], row["part"], row["rows"],
              row["positions"]): row for row in all_rows
             if row["kind"] == "torch"}
    lines = []
    for row in rows:
        peer = peers.get((row["op"].removesuffix("_fast"), row["model"], row["part"], row["rows"],
                          row["positions"]))
        lines.append((
            row["op"], row["model"], row["part"], row["type"],
            row["rows"] or "", row["positions"] or "", number(row["us"], 4),
            number(row["host_us"]), number(row["gb_s"]),
            f"{100 * row['gb_s'] / copy:.0f} %" if copy else "",
            number(row["tflop_s"] or None), number(peer["us"], 4) if peer else "",
            f"{peer['us'] / row['us']:.2f}" if peer else ""))
    return (
        "## Ops\n\nus: a call's time of many in a row, by the GPU's events, "
        "the median; host: what queueing it takes. GB/s of the fewest bytes, "
        "and their share of the greater of copying and reading in the "
        "device's memory. PyTorch: f16, torch.mm and "
        "scaled_dot_product_attention; × is its time over this one.\n\n"
        + table(("op", "model", "part", "type", "rows", "positions", "us",
                 "host us", "GB/s", "of peak", "TFLOP/s", "PyTorch us", "×"),
                lines, right=range(4, 13)))


def link(records):
    rows = records.rows("link")
    if not rows:
        return ""
    return "## The copy engine over the link\n\n" + table(
        ("figure", "GB/s"),
        [(row["name"], number(row["gb_s"])) for row in rows], right=(1,))


def gib(size):
    return None if size is None else size / 2**30


def ends_to_ends(records):
    lines = []
    for step in ("deep", "bench", "blas"):
        for row in records.rows(step):
            tbt = row.get("tbt_ms") or {}
            lines.append((
                step, row["label"], row.get("test", ""),
                number(row.get("avg_ts"), 4), number(tbt.get("p50"), 4),
                number(tbt.get("p90"), 4), number(row.get("ttft_s")),
                number(row.get("tokens_per_sweep")),
                number(gib(row.get("device_bytes")))))
    if not lines:
        return ""
    return (
        "## Whole models\n\n\"24 GiB, 25 GB/s\": device memory and link are "
        "limited so, as on a consumer card; everything else is this GPU's.\n\n"
        + table(("step", "run", "test", "tokens/s", "TBT p50 ms", "p90",
                 "TTFT s", "tokens a sweep", "device GiB"), lines,
                right=range(3, 9)))


# The metrics of a profile that a page shows.
METRICS = ("Duration", "Memory Throughput", "Compute (SM) Throughput",
           "DRAM Throughput", "Registers Per Thread", "Achieved Occupancy",
           "Warp Cycles Per Issued Instruction", "L2 Hit Rate", "Mem Busy",
           "Max Bandwidth")


def profiles(records):
    parts = []
    for row in records.rows("ncu"):
        shown = [(name, value) for name, value in row["metrics"].items()
                 if name.startswith(METRICS)]
        parts.append(f"### {row['kernel']}: {row['case']}\n\n"
                     + table(("metric", "value"), shown, right=(1,)))
    return "## Profiles\n\n" + "\n".join(parts) if parts else ""


if __name__ == "__main__":
    raise SystemExit("page.py: run check.py")
