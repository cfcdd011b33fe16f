#!/usr/bin/env python3
"""The memory tiers at length: a small device gives the bytes of a large memory.

    tiers_matrix.py TIERCEL [PART...]    parts: grid long heavy

  grid   SmolLM2, 300 tokens (two full pages and an open one): logits and
         generated tokens, for devices from the least that works to one that
         holds everything, three links, two KV types, threads, rows a step
  long   SmolLM2 at 7,500 tokens on the least device
  heavy  a random model whose KV outweighs it (MHA, 32 heads of 128; half a GiB
         a layer) at 32,640 tokens, a third of its pages resident

In every run on a small device the bytes that crossed the link are those of
offload/KV_FORMAT.md, which follow from the positions alone, and a decode takes
no less than its bytes over the rate of the link. There is no limit on its time:
ratios are printed, to be read with the load of the machine.

Reads TIERCEL_MODEL and TIERCEL_BOOKS. Needs numpy, for the random model.
"""

import hashlib
import itertools
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOLDEN_TOKENS = ROOT / "tests/golden/smollm2/tokens.txt"
PAGE_TOKENS = 128
UNITS = {"MB/s": 1e6, "GB/s": 1e9}


class Model:
    """Runs the program with one model, one token file and one context."""

    def __init__(self, program, path, tokens, context, scratch):
        self.path = str(path)
        self.program = program
        self.logits = scratch / "logits.npy"
        self.common = ["-m", self.path, "--tokens", str(tokens), "-c",
                       str(context), "--json", "--no-progress"]

    def run(self, command, *args):
        """Returns the exit code and the document."""
        done = subprocess.run(
            [self.program, command, *self.common, *map(str, args)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        return done.returncode, json.loads(done.stdout)

    def succeed(self, command, *args):
        code, document = self.run(command, *args)
        assert code == 0, (command, args, document)
        return document

    def logits_hash(self, *args):
        self.succeed("eval", "--logits", self.logits, *args)
        with open(self.logits, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def generate(self, count, *args):
        return self.succeed("generate", "-n", count, "--ignore-eos", *args)

    def least_device(self, *args):
        """The least device memory, from the refusal of a smaller one."""
        device = os.path.getsize(self.path)
        while True:
            code, document = self.run("generate", "-n", 1, *args,
                                      *simulate(device, "2GB/s"))
            assert code == 4, (device, document)
            error = document["error"]
            if error["code"] == "does_not_fit":
                break
            assert error["code"] == "out_of_memory", error  # for its weights
            device += device // 50
        (least,) = re.findall(r"needs (\d+) bytes", error["message"])
        least = int(least)
        assert least > device, error
        code, document = self.run("generate", "-n", 1, *args,
                                  *simulate(least - 1, "2GB/s"))
        assert document.get("error", {}).get("code") == "does_not_fit", document
        return least


def simulate(device, link):
    return ["--simulate", f"device={device},link={link}"]


def rate_of(link):
    number, unit = re.fullmatch(r"([\d.]+)(.*)", link).groups()
    return float(number) * UNITS[unit]


def check_bytes(document):
    """Checks the ledger by KV_FORMAT.md; returns the bytes fetched ahead."""
    ledger, f = document["ledger"], document["ledger"]["formula"]
    prompt = document["prompt_tokens"]
    steps = len(document["output"][0]["tokens"]) - 1  # the first is a prefill's
    assert prompt > 64, "a prompt that goes layer by layer"

    def swept(length):
        return max(length // PAGE_TOKENS - f["resident_pages"], 0)

    # The first step reads the pages that are full when it begins, each later
    # one those that were full when the one before it began.
    begins = [prompt + step for step in range(steps)]
    reads = [swept(length) for length in begins[:1] + begins[:-1]]
    ahead = 2 * swept(begins[-1])
    expected = {
        "page_tokens": PAGE_TOKENS,
        "swept_pages": f["layers"] * sum(reads) + ahead,
        "ahead_pages": ahead,
        "closed_pages": f["layers"] * ((prompt + steps) // PAGE_TOKENS),
        "reopened_pages": 0, "resumed_pages": 0, "resumed_bytes": 0,
        "parked_pages": 0, "parked_bytes": 0, "gathered_bytes": 0,
    }
    for name, count in expected.items():
        assert f[name] == count, (name, f[name], count)
    up = f["page_bytes"] * (f["swept_pages"] + f["reopened_pages"] +
                            f["resumed_pages"]) + (f["resumed_bytes"] +
                                                   f["gathered_bytes"] +
                                                   f["states_up_bytes"])
    down = (f["page_bytes"] * (f["closed_pages"] + f["parked_pages"]) +
            f["parked_bytes"] + f["states_down_bytes"])
    assert ledger["h2d_bytes"] == up, (ledger, up)
    assert ledger["d2h_bytes"] == down, (ledger, down)
    return ahead * f["page_bytes"]


def check_small(document, plain, link):
    """Compares a run on a small device with one without; returns a summary."""
    assert document["simulated"] and not plain["simulated"]
    assert document["output"] == plain["output"], (
        document["output"], plain["output"])
    not_waited_for = check_bytes(document)
    verify = document["ledger"]["phases"]["verify"]
    seconds = document["tbt_ms"]["samples"] / document["decode_tok_s"]
    bound = (verify["h2d_bytes"] - not_waited_for) / rate_of(link)
    assert seconds >= bound, (seconds, bound)
    ratio = f"{seconds / bound:.3f} x bytes/rate" if bound > 0 else "no sweep"
    return (f"{len(plain['output'][0]['tokens'])} tokens the same, "
            f"h2d {document['ledger']['h2d_bytes']} bytes as the formula, "
            f"decode {seconds:.2f} s = {ratio}, "
            f"link busy {100 * verify['link_busy_share']:.1f} %")


def say(text):
    print(text, flush=True)


# ---- The parts ---------------------------------------------------------------


def devices(model, kv, threads):
    """Devices (name, bytes): the least, one with resident pages, with all."""
    least = model.least_device(*kv, *threads)
    shape = model.generate(2, *kv, *threads, *simulate(least, "25GB/s"))
    f = shape["ledger"]["formula"]
    assert f["resident_pages"] == 0, f
    # A resident page takes a page in every layer, and frees one in each of two
    # buffers. Alignment may need a little more.
    some = least + (f["layers"] - 2) * f["page_bytes"] + 4096
    return [("least", least), ("some", some), ("all", 4 << 30)]


def grid(program, scratch):
    tokens = scratch / "tokens.txt"
    tokens.write_text(" ".join(GOLDEN_TOKENS.read_text().split()[:300]))
    model = Model(program, os.environ["TIERCEL_MODEL"], tokens, 340, scratch)
    runs = 0
    for kv_type in ("f16", "q8_0"):
        kv = ["-ctk", kv_type, "-ctv", kv_type]
        logits = model.logits_hash(*kv)
        plain = model.generate(32, *kv)
        for count in (1, 2):
            threads = ["-t", count]
            residents = {}
            for (name, device), link in itertools.product(
                    devices(model, kv, threads), ("0.5GB/s", "2GB/s",
                                                  "25GB/s")):
                args = [*kv, *threads, *simulate(device, link)]
                for rows in (1, 64):
                    found = model.logits_hash("-ub", rows, *args)
                    assert found == logits, (args, rows)
                small = model.generate(32, *args)
                check_small(small, plain, link)
                f = small["ledger"]["formula"]
                assert (f["swept_pages"] == 0) == (name == "all"), (name, f)
                residents[name] = f["resident_pages"]
                runs += 3
            assert residents["least"] == 0 and residents["some"] == 1, residents
            say(f"grid: {kv_type} KV, -t {count}: same logits and tokens; "
                f"resident pages {residents}")
    say(f"grid: {runs} runs, all the same bytes as without a small device")


def long(program, scratch):
    ids = subprocess.run(
        [program, "tokenize", "-f",
         pathlib.Path(os.environ["TIERCEL_BOOKS"]) / "policy.txt"],
        check=True, stdout=subprocess.PIPE).stdout.split()[:7500]
    assert len(ids) == 7500, len(ids)
    tokens = scratch / "tokens.txt"
    tokens.write_bytes(b" ".join(ids))
    model = Model(program, os.environ["TIERCEL_MODEL"], tokens, 7540, scratch)
    plain = model.generate(32)
    link = "2GB/s"
    small = model.generate(32, *simulate(model.least_device(), link))
    say("long: 7500 tokens: " + check_small(small, plain, link))


def heavy(program, scratch):
    prompt, context, vocab = 32640, 32768, 512
    path = scratch / "heavy.gguf"
    subprocess.run(
        ["/usr/bin/python3", ROOT / "bench/make_random.py", path, "--layers",
         "3", "--hidden", "4096", "--heads", "32", "--ffn", "256", "--vocab",
         str(vocab), "--context", str(context), "--type", "q8_0"], check=True)
    choose = random.Random(7)
    ids = [choose.randrange(vocab) for _ in range(prompt)]
    few = scratch / "few.txt"
    few.write_text(" ".join(map(str, ids[:64])))
    Model(program, path, few, 64, scratch).logits_hash()
    spread = float(np.load(scratch / "logits.npy").std())
    assert 0.5 < spread < 2, spread

    tokens = scratch / "tokens.txt"
    tokens.write_text(" ".join(map(str, ids)))
    model = Model(program, path, tokens, context, scratch)
    page_bytes = 2 * 32 * PAGE_TOKENS * 128 * 2
    third = context // PAGE_TOKENS // 3
    device = model.least_device() + third * page_bytes + 4096
    plain = model.generate(24)
    say(f"heavy: logits of standard deviation {spread:.2f}; without a small "
        f"device TTFT {plain['ttft_s']:.0f} s, decode "
        f"{plain['decode_tok_s']:.2f} tok/s")
    link = "2GB/s"
    small = model.generate(24, *simulate(device, link))
    f = small["ledger"]["formula"]
    assert f["page_bytes"] == page_bytes and f["resident_pages"] == third, f
    say(f"heavy: {prompt} tokens, {third} of {context // PAGE_TOKENS} pages "
        f"resident, TTFT {small['ttft_s']:.0f} s: " +
        check_small(small, plain, link))


PARTS = {"grid": grid, "long": long, "heavy": heavy}


def main():
    if len(sys.argv) < 2 or not set(sys.argv[2:]) <= set(PARTS):
        sys.exit(__doc__)
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["XDG_CACHE_HOME"] = scratch
        for part in sys.argv[2:] or PARTS:
            PARTS[part](program, pathlib.Path(scratch))


if __name__ == "__main__":
    main()
