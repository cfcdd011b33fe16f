"""Writes results: pages under bench/results/, and the tables of doc/measured.md."""

import datetime
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent


def cpu_name():
    """The model name of the first CPU."""
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return os.uname().machine


def today():
    """The date in UTC, as in the name of a page."""
    return f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}"


def version_of(tiercel):
    """The program's `--version`: version, commit, build and ISA."""
    done = subprocess.run([tiercel, "--version"], capture_output=True,
                          text=True, check=True)
    return done.stdout.strip()


def page(date, cpu, *suffixes, root=ROOT):
    """The path bench/results/<date>-<cpu>[-<suffix>...], without an ending."""
    slug = re.sub(r"[^a-z0-9]+", "-", cpu.lower()).strip("-")
    folder = root / "bench/results"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "-".join([date, slug, *suffixes])


def page_name(name, wanted, usual):
    """The name of the page `name` with the parts `wanted`, which it has unless
    they are the usual ones."""
    return "-".join([name, *(sorted(wanted) if wanted != usual else ())])


class Lines:
    """The lines of a page. A call with a line prints and keeps it."""

    def __init__(self):
        self.said = []

    def __call__(self, line=""):
        print(line, flush=True)
        self.said.append(line)


def save(lines, charts, name, root=ROOT):
    """Writes the page `name` of today, with its charts {name: SVG} beneath and
    beside it. Returns its path."""
    date, cpu = today(), cpu_name()
    for chart_name, drawn in charts.items():
        path = page(date, cpu, f"{name}-{chart_name}.svg", root=root)
        path.write_text(drawn)
        lines = [*lines, "", f"![{chart_name}]({path.name})"]
    path = page(date, cpu, f"{name}.md", root=root)
    path.write_text("\n".join(lines) + "\n")
    return path


def table(columns, rows, words=1):
    """Returns the lines of a Markdown table: columns of words, then of
    numbers."""
    return ["| " + " | ".join(columns) + " |",
            "|" + "---|" * words + "---:|" * (len(columns) - words),
            *("| " + " | ".join(row) + " |" for row in rows)]


def load_now():
    """The machine's load at the end, for a page's head."""
    return (f"load average at the end {os.getloadavg()[0]:.1f} on "
            f"{os.cpu_count()} CPUs")


def publish(title, about, body, save_as):
    """Prints a page: its title with day and machine, a line about what was
    measured, and the body. Writes it too if `save_as` names it."""
    lines = [f"# {title}, {today()}, {cpu_name()}", "", about, "", *body]
    print("\n".join(lines))
    if save_as:
        print(save(lines, {}, save_as))


def fill_measured(mark, text, root=ROOT):
    """Replaces the lines of doc/measured.md between the line `mark` and the next
    "end" comment by `text`. Returns its path."""
    page = root / "doc" / "measured.md"
    before, found, rest = page.read_text().partition(mark + "\n")
    end = "<!-- end of results -->"
    old, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"{page}: needs the lines {mark} and {end}")
    page.write_text(f"{before}{mark}\n{text}{end}{after}")
    return page
