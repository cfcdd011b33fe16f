"""Steps that measure kernels (beside their ceilings and PyTorch), the link, and
small models end to end."""

import json
import re

from exact import ids_for, least_memory, models
from record import FAILED, NOT_RUN, PASSED


def json_lines(text):
    for line in text.splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            continue


def kernels(run):
    """Measures every op at the shapes of models, and then PyTorch's."""
    program = run.pack / "bin" / "kernel_bench"
    flags = (["--quick"] if run.is_simulated
             else ["--seconds", max(run.left() - 30, 5)])
    done = run.call(program, *flags, seconds=run.left() - 5)
    count, end = 0, None
    for line in json_lines(done.out):
        if line["kind"] == "failed":
            run.case(line["why"].split(":")[0], FAILED, line["why"])
        elif line["kind"] == "end":
            end = line
        else:
            run.row(line)
            count += 1
    if end is None:
        run.case("kernel_bench", FAILED, done.words)
    else:
        run.case("kernel_bench", PASSED, seconds=end["seconds"])
    words = f"{count} figures"
    if end is not None and end["left_out"] > 0:
        words += f", {end['left_out']} cases left out for time"
    torch = run.pack / "bench" / "torch_bench.py"
    done = run.call("python3", torch, "--seconds", max(run.left() - 6, 1),
                    seconds=run.left())
    rows = list(json_lines(done.out))
    for line in rows:
        run.row(line)
    if not rows:
        words += f"; PyTorch: {done.words}"
    return PASSED, words


def link(run):
    """Measures the copy engine over the link, beside kernel_bench's copies."""
    which, seconds = "gpu/", 0.1
    if run.is_simulated:
        which, seconds = "gpu/.*/8192", 0.01
    done = run.call(run.pack / "bin" / "copy_bench",
                    f"--benchmark_filter={which}",
                    f"--benchmark_min_time={seconds}",
                    "--benchmark_format=json")
    try:
        rows = json.loads(done.out)["benchmarks"]
    except (ValueError, KeyError):
        return FAILED, done.words
    for row in rows:
        run.row({"name": row["name"], "gb_s":
                 row.get("bytes_per_second", 0) * 1e-9})
    return PASSED if rows else FAILED, f"{len(rows)} figures"


def bench_rows(run, label, *flags, seconds=60):
    """Reports the rows of `tiercel bench` under a label and returns them; or
    None and the words of a failure."""
    done = run.call(run.tiercel, "bench", *flags, "--json", "--no-progress",
                    seconds=seconds)
    if done.code != 0:
        return None, done.words
    rows = json.loads(done.out)
    rows = rows if isinstance(rows, list) else rows["tests"]
    for row in rows:
        run.row({"label": label} | {
            key: row.get(key) for key in
            ("test", "n_prompt", "n_gen", "n_depth", "avg_ts", "ttft_s",
             "tbt_ms", "bytes_per_token", "device_bytes",
             "tokens_per_sweep", "levels", "baseline", "simulated", "filled", "warnings")
            if row.get(key) is not None})
    return rows, ""


def bench(run):
    """Measures a small model, with its KV on the device and behind its link."""
    model = run.pack / "model.gguf"
    if run.is_simulated or not model.exists():
        model = run.pack / "checkpoints" / "deep.gguf"
    flags = ["-m", model, "--device", run.device]
    shape = ["-p", 512, "-n", 64, "-d", "0,2048", "-r", 2]
    context = 2624
    if run.is_simulated:
        shape, context = ["-p", 8, "-n", 2, "-d", 0, "-r", 1], 64
    least = least_memory(run, *flags, "-c", context)
    for label, more in (("KV on the device", []),
                        (f"KV behind the link, in {least}",
                         ["--device-memory", least])):
        rows, why = bench_rows(run, label, *flags, *shape, *more)
        run.case(label, FAILED if rows is None else PASSED, why)
    return PASSED, "a small model's rates"


def blas(run):
    """Checks that cuBLASLt gives about the perplexity of our kernels."""
    def perplexity(rows, library):
        done = run.call(run.tiercel, "eval", *flags, "-ub", rows, "--json",
                        "--no-progress", env={"TIERCEL_CUBLASLT": library})
        if "no_library" in done.out or "no CUDA" in done.out:
            return None, done.words
        found = re.search(r'"perplexity":([0-9.e+-]+)', done.out)
        return (float(found[1]) if found else 0.0), done.words

    for model in models(run):
        if model.name not in ("model.gguf", "f16.gguf", "bf16.gguf"):
            continue
        if run.is_simulated and model.name != "f16.gguf":
            continue
        flags = ["-m", model, "--device", run.device, "--tokens",
                 ids_for(run, model, 8 if run.is_simulated else 150)]
        own, why = perplexity(512, "0")
        by_library, library_why = perplexity(512, "1")
        if by_library is None:
            return NOT_RUN, library_why
        near = own and by_library and 0.98 < by_library / own < 1.02
        run.case(model.name, PASSED if near else FAILED,
                 "" if near else f"perplexity {by_library} by the library "
                 f"({library_why}), {own} without ({why})")
        if run.is_simulated:
            continue
        for library in ("0", "1"):
            done = run.call(run.tiercel, "bench", "-m", model, "--device",
                            run.device, "-p", 512, "-n", 0, "-r", 2, "--json",
                            "--no-progress", env={"TIERCEL_CUBLASLT": library})
            if done.code == 0:
                rate = json.loads(done.out)[0]["avg_ts"]
                run.row({"label": f"{model.name}, TIERCEL_CUBLASLT={library}",
                         "test": "pp512", "avg_ts": rate})
    return PASSED, "cuBLASLt's prompts"
