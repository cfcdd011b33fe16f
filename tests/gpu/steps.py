"""The steps of a check, the most valuable first: each is a function of a Run
that records its findings and returns its outcome and last words."""

import csv
import sys
import typing

import deep
import programs
from exact import logits, prompts, ranks, texts
from record import FAILED, NOT_RUN, PASSED
from speed import bench, blas, kernels, link


class Step(typing.NamedTuple):
    name: str
    seconds: int  # at most
    work: typing.Callable


# ---- Cases of GoogleTest ----

MATRIX = "kernels_device_matrix_step_tests"


def run_suite(run, program, names):
    for found in programs.run_cases(program, names, run.left, env=run.env,
                                    each=run.case_seconds):
        if isinstance(found, programs.Done):
            run.log([program], found)
            continue
        run.case(f"{program.name} {found.case}",
                 PASSED if found.passed else FAILED, found.why, found.seconds)


def suites_of(run, program):
    """Returns {suite: cases} of the cases that are not known to pass."""
    suites = {}
    for name in programs.cases_of(program, run.pattern, 60, run.env):
        if not run.known(f"{program.name} {name}"):
            suites.setdefault(name.rsplit(".", 1)[0], []).append(name)
    return suites


def matrix(run):
    """Tests the matrix instructions, which the host executor takes on trust."""
    program = run.pack / "bin" / MATRIX
    for names in suites_of(run, program).values():
        run_suite(run, program, names)
    return run.summary("cases: the matrix step is the one kernels go by")


def tests(run):
    """Runs a process for each suite, several at a time."""
    jobs = []
    for program in sorted((run.pack / "bin").glob("*_tests")):
        if program.name == MATRIX:
            continue
        jobs += [(program, names)
                 for names in suites_of(run, program).values()]
    # The longest suites run first.
    jobs.sort(key=lambda job: -len(job[1]))
    run.each(lambda job: run_suite(run, *job), jobs)
    return run.summary("cases of the device")


# ---- Tools ----

MEMCHECK = ("MatrixStep", "GpuQueues", "RmsNorm", "KeyNorms")


def memcheck(run):
    """Runs four suites under compute-sanitizer; a refused allocation is one of
    their cases, and no finding."""
    tool = ["compute-sanitizer", "--tool", "memcheck", "--error-exitcode", "9",
            "--report-api-errors", "no", "--leak-check", "full"]
    for program in sorted((run.pack / "bin").glob("*_tests")):
        for suite, names in suites_of(run, program).items():
            if not any(name in suite for name in MEMCHECK) or run.known(suite):
                continue
            done = run.call(*tool, program,
                            "--gtest_filter=" + ":".join(names))
            said = done.out + done.err
            if done.code == 127 or any(r in said for r in programs.REFUSED):
                return NOT_RUN, done.words
            clean = done.code == 0 and "ERROR SUMMARY: 0 errors" in said
            run.case(suite, PASSED if clean else FAILED,
                     "" if clean else done.words)
    return run.summary("suites are clean under memcheck")


# A decode step, a long context and a prompt spend their time in these kernels.
PROFILED = (("MultiplyPanelRow", "matmul/llama2-7b/gate_up/q4_K/1/0"),
            ("ComputePages", "attention/llama2-7b//f16/1/131072"),
            ("MultiplyFloatPanels", "matmul/llama2-7b/gate_up/f16/512/0"))


def ncu(run):
    found = 0
    for kernel, case in PROFILED:
        only = [] if not run.is_simulated else ["--quick"]
        done = run.call(
            "ncu", "--clock-control", "none", "--csv", "--page", "details",
            "--kernel-name-base", "demangled",
            "-k", f"regex:{kernel}", "-c", "1", "--section", "SpeedOfLight",
            "--section", "Occupancy", "--section", "WarpStateStats",
            "--section", "LaunchStats", "--section",
            "MemoryWorkloadAnalysis", run.pack / "bin" / "kernel_bench", *only,
            "--once", "--only", case, seconds=40)
        said = done.out + done.err
        if done.code == 127 or any(r in said for r in programs.REFUSED):
            return NOT_RUN, done.words
        metrics = metrics_of(done.out)
        if metrics:
            found += 1
            run.row({"kernel": kernel, "case": case, "metrics": metrics})
    if found == 0:
        return NOT_RUN, "ncu showed no kernel"
    return PASSED, f"{found} of {len(PROFILED)} kernels"


def metrics_of(text):
    """Returns {name: value} from ncu's CSV."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    metrics = {}
    for row in csv.DictReader(lines):
        name, value = row.get("Metric Name"), row.get("Metric Value")
        if name and value:
            metrics[f"{name} [{row.get('Metric Unit', '')}]"] = value
    return metrics


STEPS = (
    Step("matrix", 20, matrix),
    Step("tests", 100, tests),
    Step("logits", 60, logits),
    Step("texts", 60, texts),
    Step("prompts", 15, prompts),
    Step("speed", 85, kernels),
    Step("link", 15, link),
    Step("deep", 130, deep.work),
    Step("bench", 25, bench),
    Step("blas", 20, blas),
    Step("ranks", 30, ranks),
    Step("ncu", 45, ncu),
    Step("memcheck", 45, memcheck),
)

if __name__ == "__main__":
    sys.exit("steps.py: run check.py")
