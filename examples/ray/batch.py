#!/usr/bin/env python3
"""Answers a file of requests on many machines, by Ray Data.

    batch.py --work FOLDER [--workers N] IN.jsonl OUT.jsonl [-- FLAG...]

The files have the form of `tiercel batch`. Each worker keeps one model open, by
a `tiercel serve` of its own, with the FLAGs. The FOLDER, which all machines
see, holds what is answered: the same command goes on where it was stopped.
README.md has the steps.
"""

import argparse
import concurrent.futures
import ctypes
import json
import pathlib
import re
import signal
import subprocess
import urllib.error
import urllib.request

import pyarrow
import pyarrow.parquet
import ray

PR_SET_PDEATHSIG = 1


def end_with_parent():
    """Has the kernel end this process once the worker that began it is gone."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class Answerer:
    """A worker: one model, which answers batches of requests."""

    def __init__(self, tiercel, flags, parallel):
        self.server = subprocess.Popen(
            [tiercel, "serve", "--port", "0", "--parallel", str(parallel),
             *flags], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True, preexec_fn=end_with_parent)
        said = ""
        for line in self.server.stderr:
            said += line
            if line == "ready\n":
                break
        found = re.search(r"listening at (http://\S+)\n", said)
        if self.server.poll() is not None or found is None:
            raise RuntimeError(said)
        self.url = found[1]
        # The lines of its log go to the worker's own.
        self.threads = concurrent.futures.ThreadPoolExecutor(parallel + 1)
        self.threads.submit(lambda: [print(line, end="", flush=True)
                                     for line in self.server.stderr])

    def __call__(self, batch):
        return {"custom_id": batch["custom_id"],
                "line": list(self.threads.map(self.answer, batch["line"]))}

    def answer(self, line):
        """The line of the output for a line of the input."""
        asked = json.loads(line)
        request = urllib.request.Request(
            self.url + asked["url"], json.dumps(asked["body"]).encode(),
            {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request) as response:
                status, body = response.status, json.load(response)
        except urllib.error.HTTPError as error:
            status, body = error.code, json.load(error)
        return json.dumps({
            "id": "batch_req_" + asked["custom_id"],
            "custom_id": asked["custom_id"],
            "response": {"status_code": status,
                         "request_id": body.get("id"), "body": body},
            "error": None})


def write_requests(source, path):
    """Writes the requests as Parquet, whose rows Ray knows by their ids."""
    requests = [(json.loads(line)["custom_id"], line)
                for line in source.read_text().splitlines() if line.strip()]
    if len(dict(requests)) < len(requests):
        raise ValueError(f"{source}: need another custom_id in each line")
    ids, lines = zip(*requests)
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(
        pyarrow.table({"custom_id": ids, "line": lines}), path)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("source", type=pathlib.Path, metavar="IN.jsonl")
    parser.add_argument("output", type=pathlib.Path, metavar="OUT.jsonl")
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--parallel", type=int, default=4,
                        help="... and answers at once")
    parser.add_argument("--lines", type=int, default=64,
                        help="requests that a worker takes at a time")
    parser.add_argument("--tiercel", default="tiercel")
    parser.add_argument("flags", nargs="*", help="flags of tiercel serve")
    args = parser.parse_args()

    work = args.work.resolve()
    requests = work / "requests.parquet"
    write_requests(args.source, requests)
    context = ray.data.DataContext.get_current()
    context.checkpoint_config = ray.data.checkpoint.CheckpointConfig(
        id_column="custom_id", checkpoint_path=str(work / "checkpoint"),
        delete_checkpoint_on_success=False)
    ray.data.read_parquet(str(requests)).repartition(
        target_num_rows_per_block=args.lines,
    ).map_batches(
        Answerer, fn_constructor_args=(args.tiercel, args.flags, args.parallel),
        compute=ray.data.ActorPoolStrategy(size=args.workers),
        # A model uses every CPU of its machine, whatever Ray plans for it, and
        # Ray needs those that it counts for what it reads and writes.
        batch_size=args.lines, num_cpus=0, scheduling_strategy="SPREAD",
    ).write_parquet(str(work / "answers"), mode="append")

    answers = pyarrow.parquet.read_table(work / "answers").column("line")
    args.output.write_text("".join(f"{line}\n" for line in answers.to_pylist()))


if __name__ == "__main__":
    main()
