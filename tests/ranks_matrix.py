#!/usr/bin/env python3
"""Ranks at length: tensor parallel over 1 to 4 ranks gives the same bytes.

    ranks_matrix.py TIERCEL [PART...]    parts: small golden policies tiers
                                                texts far

  small     a few seconds of the next three (what test.sh runs)
  golden    logits of every tiny checkpoint, family and weight type: 1 to 4
            ranks, rows a step, types of KV, and the splits that are refused
  policies  SmolLM2: the coupled text of every policy and the plain one of each,
            in place and behind links
  tiers     each rank moves the bytes that offload/KV_FORMAT.md gives for its
            heads, and gathers those that offload/ranks/README.md gives; a
            sweep's time over one, two and three links
  texts     one count of ranks saves a text, another opens it
  far       a GPU that the CPU simulates

Times are printed and never judged. Reads TIERCEL_MODEL and TIERCEL_BOOKS.
"""

import hashlib
import itertools
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
CHECKPOINTS = ROOT / "tests/golden/checkpoints"
PAGE_TOKENS = 128
RANKS = (2, 3, 4)
LINK = "2GB/s"

# Flags of the verified form and of the plain one.
POLICIES = {
    "full": (["--draft", "ngram"], []),
    "triforce": ([], []),
    "sfi": (["--budget", "192", "--window", "64"],) * 2,
    "sadas": (["--window", "128", "--set", "think=on"],) * 2,
    "speed": (["--set", "cut=26"],) * 2,
}


class Runs:
    def __init__(self, program, scratch):
        self.program = program
        self.scratch = scratch
        self.count = 0

    def run(self, *args, env=None):
        """Returns the exit code and the document."""
        self.count += 1
        done = subprocess.run(
            [self.program, *map(str, args), "--json", "--no-progress"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            env={**os.environ, **(env or {})})
        return done.returncode, json.loads(done.stdout)

    def succeed(self, *args, env=None):
        code, document = self.run(*args, env=env)
        assert code == 0, (args, document)
        return document

    def logits(self, *args):
        out = self.scratch / "logits.npy"
        self.succeed("eval", "--logits", out, *args)
        digest = hashlib.sha256(out.read_bytes()).hexdigest()
        out.unlink()
        return digest

    def tokens(self, count, vocab, seed=0):
        path = self.scratch / f"tokens-{count}-{vocab}-{seed}"
        draws = random.Random(seed)
        path.write_text(" ".join(
            str(draws.randrange(vocab)) for _ in range(count)))
        return path


def over(ranks):
    return ["--tensor-parallel", ranks]


def heads_of(runs, path):
    config = runs.succeed("inspect", path)["config"]
    return config


def refused(config, ranks):
    """Returns true if there are too few columns, tokens or query heads."""
    kv, heads = config["kv_heads"], config["heads"]
    sharing = max(sum(r * kv // ranks == head for r in range(ranks))
                  for head in range(kv))
    return (min(config["hidden"], config["ffn"]) < ranks or
            config["vocab"] <= 16 * (ranks - 1) or
            (kv < ranks and sharing > heads // kv))


def checkpoints():
    for path in sorted(CHECKPOINTS.iterdir()):
        if path.suffix == ".json" or "-0000" in path.name:
            continue
        if path.is_dir() and not (path / "config.json").exists():
            yield from sorted(p for p in path.iterdir() if p.suffix == ".gguf")
            continue
        yield path


def golden(runs, paths, rows=(1, 64), kv_types=("f16", "q8_0", "f32")):
    splits = refusals = 0
    for path in paths:
        config = heads_of(runs, path)
        if config.get("layers", 0) == 0:
            continue
        tokens = runs.tokens(150, config["vocab"])
        for kv in kv_types:
            if kv == "q8_0" and config["head_dim"] % 32 != 0:
                continue
            common = ["-m", path, "--tokens", tokens, "-ctk", kv, "-ctv", kv]
            one = runs.logits(*common)
            for ranks, ub in itertools.product(RANKS, rows):
                args = [*common, *over(ranks), "-ub", ub]
                if refused(config, ranks):
                    code, document = runs.run("eval", *args)
                    assert code == 4, (args, document)
                    assert document["error"]["code"] == "cannot_split", document
                    refusals += 1
                    continue
                assert runs.logits(*args) == one, args
                splits += 1
    assert splits > 0
    print(f"golden: {splits} splits gave the bytes of one rank, "
          f"{refusals} were refused")


def output(document):
    return document["output"][0]["tokens"]


def least_device(runs, link, *args, spare=0):
    """Flags for the least device that each rank needs, as `plan` says, and so
    many bytes more: without these everything that can stream does."""
    code, plan = runs.run("plan", "--simulate", f"device=1kB,link={link}",
                          *args)
    assert code == 4, plan
    return ["--simulate",
            f"device={plan['min_device_bytes'] + spare},link={link}"]


def policies(runs, text, count, generated, which, ranks, links):
    """Tries every form over every count of ranks, each behind another of
    `links` than the one before it, and than in the form before. `links` has
    their rates, None for a single memory."""
    prompt = runs.scratch / "prompt.txt"
    prompt.write_text(text)
    agreed = 0
    for at, name in enumerate(which):
        verified, plain = POLICIES[name]
        forms = [(verified, ["--verify", "coupled"])]
        if name in ("sfi", "sadas", "speed"):
            forms.append(([*plain, "--plain"], []))
        for turn, (form, verify) in enumerate(forms, at):
            session = ["-c", count, "--policy", name, *form]

            def generate(link, *of_ranks):
                device = (link and least_device(runs, link, *session,
                                                *of_ranks)) or []
                return runs.succeed(
                    "generate", "-f", prompt, "-n", generated, "--temp", 0.8,
                    "--seed", 3, "--ignore-eos", *session, *verify, *device,
                    *of_ranks)

            one = generate(None)
            for n in ranks:
                link = links[(turn + n) % len(links)]
                many = generate(link, *over(n))
                assert output(many) == output(one), (session, n)
                assert len(many["ranks"]) == n
                # Plain forms may leave pages that they do not read in the host
                # tier, and a rank that needs less than another keeps more.
                way = "d2h_bytes" if "--plain" in form else "h2d_bytes"
                moved = any(of[way] > 0 for of in many["ranks"])
                assert moved == (link is not None), (session, many["ranks"])
                agreed += 1
        print(f"policies: {name} agrees", flush=True)
    print(f"policies: {agreed} texts are those of one rank")


def small_model(runs, text):
    """Lets a small model draft for several ranks, on the first of them."""
    path = CHECKPOINTS / "llama_chat"
    prompt = runs.scratch / "drafted.txt"
    prompt.write_text(text)
    common = ["generate", "-m", path, "-md", path, "-f", prompt, "-n", "40",
              "--temp", "0.8", "--verify", "coupled", "--ignore-eos"]
    one = runs.succeed(*common)
    two = runs.succeed(*common, *over(2))
    assert output(two) == output(one)
    (level,) = two["speculation"]["levels"]
    assert level == one["speculation"]["levels"][0], level
    assert level["drafter"] == "small" and level["accepted"] > 0, level
    first, second = (of["device_bytes"] for of in two["ranks"])
    assert first > second, "the small model is on the first rank"
    print("small model: the same drafts hold over 2 ranks")


def gathered(config, ranks, rank, rows, logit_rows, dims):
    """The bytes that a rank takes from others: offload/ranks/README.md."""

    def own(size):
        panels = -(-size // 16)
        return (min(size, (rank + 1) * panels // ranks * 16) -
                rank * panels // ranks * 16)

    kv, heads = config["kv_heads"], config["heads"]
    assert kv >= ranks
    own_heads = ((rank + 1) * kv // ranks - rank * kv // ranks) * heads // kv
    hidden, ffn, vocab = config["hidden"], config["ffn"], config["vocab"]
    layer = ((heads - own_heads) * dims + 2 * (hidden - own(hidden)) +
             ffn - own(ffn))
    return 4 * (rows * config["layers"] * layer +
                logit_rows * (vocab - own(vocab)))


def check_rank(rank, prompt, steps, hidden):
    """Checks one rank's bytes, which follow from the positions alone."""
    f = rank["formula"]

    def swept(length):
        return max(length // PAGE_TOKENS - f["resident_pages"], 0)

    begins = [prompt + step for step in range(steps)]
    reads = [swept(length) for length in begins[:1] + begins[:-1]]
    pages = f["layers"] * sum(reads) + 2 * swept(begins[-1])
    closed = f["layers"] * ((prompt + steps) // PAGE_TOKENS)
    # A prompt's hidden states come up before every layer but the first, and go
    # down after every layer; the last rows stay up after the last layer.
    up, down = f["states_up_bytes"], f["states_down_bytes"]
    state = 4 * hidden * prompt
    assert up in (0, (f["layers"] - 1) * state), rank
    assert up <= down <= up + state, rank
    assert rank["h2d_bytes"] == pages * f["page_bytes"] + up, (rank, pages)
    assert rank["d2h_bytes"] == closed * f["page_bytes"] + down, (rank, closed)


def sweep_ms(document):
    return document["tbt_ms"]["p50"]


def tiers(runs, path, tokens, context, generated, spare, link):
    """`spare`: bytes of each rank's device in which pages may stay."""
    config = heads_of(runs, path)
    one = None
    for n in (1, *RANKS):
        if n > config["kv_heads"]:
            continue
        session = ["-m", path, "-c", context, *over(n)]
        args = [*session, "--tokens", tokens, "-n", generated, "--ignore-eos",
                *least_device(runs, link, *session, spare=spare)]
        document = runs.succeed("generate", *args)
        one = one or document
        assert output(document) == output(one), args
        prompt = document["prompt_tokens"]
        steps = len(output(document)) - 1
        if n > 1:
            for rank, of in enumerate(document["ranks"]):
                check_rank(of, prompt, steps, config["hidden"])
                assert of["gathered_bytes"] == gathered(
                    config, n, rank, prompt + steps, 1 + steps,
                    config["head_dim"]), (rank, of)
            # The rank that needs the most device memory keeps the spare bytes.
            assert any(of["h2d_bytes"] > 0 for of in document["ranks"])
            least = min(of["formula"]["resident_pages"]
                        for of in document["ranks"])
            assert (least > 0) == (spare > 0), document["ranks"]
        for name in ("h2d_bytes", "d2h_bytes"):
            assert document["ledger"][name] == sum(
                of[name] for of in document["ranks"])
        predicted = document.get("predicted", {}).get("tbt_ms")
        print(f"tiers: {path.name} at {prompt} tokens over {link}, {n} ranks: "
              f"{sweep_ms(document):.1f} ms a token, "
              f"{sweep_ms(one) / sweep_ms(document):.2f} times one rank's "
              f"speed; predicted {predicted and round(predicted, 1)} ms")


def texts(runs, text, model):
    prompt = runs.scratch / "book.txt"
    prompt.write_text(text)
    opened = 0
    for wrote in (1, 2, 3):
        with tempfile.TemporaryDirectory() as cache:
            env = {"XDG_CACHE_HOME": cache}
            args = ["ask", prompt, "Who is it about?", "-m", model, "-n", 12]
            kept = runs.succeed(*args, *over(wrote), env=env)
            for reads in (1, 2, 3, 4):
                again = runs.succeed(*args, *over(reads), env=env)
                first = kept["answers"][0] if "answers" in kept else kept
                other = again["answers"][0] if "answers" in again else again
                assert output(other) == output(first), (wrote, reads)
                assert other["cached_tokens"] > 0, (wrote, reads)
                opened += 1
    print(f"texts: {opened} were opened by another count of ranks or the same")


def gpus(runs):
    path = CHECKPOINTS / "llama_gqa.gguf"
    config = heads_of(runs, path)
    tokens = runs.tokens(20, config["vocab"])
    common = ["-m", path, "--tokens", tokens]
    one = runs.logits(*common)
    for n in (1, 2):
        assert runs.logits(*common, "--device", "cuda", *over(n)) == one, n
    print("gpus: the CPU's bytes for 1 and 2 ranks")


def main():
    program = sys.argv[1]
    parts = sys.argv[2:] or ["golden", "policies", "tiers", "prompt_cache", "gpus"]
    model = pathlib.Path(os.environ["TIERCEL_MODEL"])
    book = (pathlib.Path(os.environ["TIERCEL_BOOKS"]) / "policy.txt").read_text()
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["XDG_CACHE_HOME"] = scratch
        runs = Runs(program, pathlib.Path(scratch))
        golden_tokens = ROOT / "tests/golden/smollm2/tokens.txt"
        ids = golden_tokens.read_text().split()
        for part in parts:
            if part == "small":
                golden(runs, [CHECKPOINTS / "llama_gqa.gguf",
                              CHECKPOINTS / "llama_mqa.gguf"],
                       rows=(64,), kv_types=("f16",))
                policies(runs, book[:1200], 600, 12, ("full", "sfi"), (2,),
                         (None,))
                small_model(runs, book[:600])
            elif part == "golden":
                golden(runs, checkpoints())
            elif part == "policies":
                policies(runs, book[20000:22600], 1400, 24, POLICIES, RANKS,
                         (None, LINK))
            elif part == "tiers":
                for count, spare, link in ((1000, 0, "1GB/s"),
                                           (6000, 20 << 20, "0.3GB/s")):
                    tokens = runs.scratch / f"ids-{count}"
                    tokens.write_text(" ".join(ids[:count]))
                    tiers(runs, model, tokens, count + 40, 24, spare, link)
            elif part == "prompt_cache":
                texts(runs, book[:9000], model)
            elif part == "gpus":
                gpus(Runs(program + "_hosted", runs.scratch))
            else:
                sys.exit(f"no part {part}")
        print(f"{runs.count} runs")


main()
