#!/usr/bin/env python3
"""The same bytes on every device, over any number of ranks.

    same_bytes.py [--small] TIERCEL [PART...]    parts:

  rows         logits for any rows a step and threads
  devices      logits and tokens on devices from the least that works to one
               that holds everything; the bytes over the link; a device of one
               byte less is refused
  long         7,500 tokens on the least device
  heavy        a random model whose KV outweighs it (MHA, 32 heads of 128; half
               a GiB a layer) at 32,640 tokens, a third of its pages resident
  splits       logits of every tiny checkpoint, family and weight type over 1 to
               4 ranks, types of KV, and the splits that are refused
  policies     the coupled text of every policy and the plain one of each, over
               1 to 4 ranks, in place and behind links
  links        the bytes over each rank's link, and those that it gathers
  prompts      a prompt that one count of ranks saved, opened by another
  gpu          a GPU whose kernels the host executor runs
  drafts       twenty prompts of 300 to 2,500 tokens, 256 generated, at three
               temperatures, one of them with DRY: every policy and drafter,
               fixed and adaptive lengths, views and settings by turns

A case is a run and its reference: the logits or the text of --policy full on
the CPU, in one memory, by one rank. They must be equal. With --verify coupled
drafts must not change the text; the plain form of a policy is compared with
itself in one memory. Checks beside the bytes are those of bytes/ledger.py.

With --small each part is a few seconds or nothing, as ../test.sh runs it. Times
are printed and never judged, but for a link's: nothing is faster than its rate.
Reads TIERCEL_MODEL and TIERCEL_BOOKS. `heavy` needs numpy.
"""

import dataclasses
import itertools
import pathlib
import random
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "bytes"))
from ledger import (Drafts, each_link, host_attends, moves_pages, one_link,
                    page_bytes, refuses_less)
from runs import (CHECKPOINTS, HERE, HOLDS_ALL, ROOT, Case, Place, Program, Run,
                  book, measure_nothing)

GOLDEN_TOKENS = ROOT / "tests/golden/smollm2/tokens.txt"
LINK = "2GB/s"
RANKS = (2, 3, 4)
COUPLED = ("--verify", "coupled")


def golden_ids(count):
    return GOLDEN_TOKENS.read_text().split()[:count]


def kv_types(kv):
    return ("-ctk", kv, "-ctv", kv)


# ---- Devices -----------------------------------------------------------------


def rows(program, small):
    if small:
        return
    logits = Run("eval", ("-m", program.model),
                 ("--tokens", program.ids(golden_ids(700))))
    for threads, of_step in itertools.product((1, 2), (1, 7, 64, 512)):
        place = Place(flags=("-t", threads, "-ub", of_step))
        yield Case(logits.at(place), logits)


def devices(program, small):
    """300 tokens: two full pages and an open one."""
    ids = program.ids(golden_ids(300))
    config = program.config(program.model)
    for kv in ("q8_0",) if small else ("f16", "q8_0", "q4_0"):
        session = ("-m", program.model, "-c", 340, *kv_types(kv))
        logits = Run("eval", session, ("--tokens", ids))
        text = Run("generate", session,
                   ("--tokens", ids, "-n", 8 if small else 32, "--ignore-eos"))
        page = page_bytes(config, kv)
        # A resident page takes a page in every layer, and frees one in each of
        # two buffers. Alignment may need a little more.
        some = (config["layers"] - 2) * page + 4096
        for threads in (2,) if small else (1, 2):
            least = text.at(Place(LINK, flags=("-t", threads)))
            yield Case(least.at(Place(LINK, -1, flags=("-t", threads))),
                       checks=(refuses_less(program.least_device(least)),),
                       refused="does_not_fit")
            for (spare, resident), link in itertools.product(
                    ((0, 0), (some, 1), (HOLDS_ALL, None)),
                    ("30MB/s",) if small else ("0.5GB/s", LINK, "25GB/s")):
                place = Place(link, spare, flags=("-t", threads))
                for of_step in () if small else (1, 64):
                    flags = (*place.flags, "-ub", of_step)
                    yield Case(logits.at(Place(link, spare, flags=flags)),
                               logits)
                yield Case(text.at(place), text,
                           (one_link(config, kv, resident,
                                     swept=spare < HOLDS_ALL),))
            for count in (11,) if small else (3, 11, config["layers"]):
                place = Place("1GB/s", flags=("-t", threads, "--host-layers",
                                              count))
                yield Case(text.at(place), text)
                if not small:
                    yield Case(logits.at(place), logits)
            for spare in (0,) if small else (0, some):
                place = Place("20MB/s", spare, host="32MB/s",
                              flags=("-t", threads))
                # A single page that is not resident is the link's.
                yield Case(text.at(place), text, (host_attends(spare == 0),))
                if not small:
                    yield Case(logits.at(place), logits)


def long(program, small):
    if small:
        return
    done = subprocess.run(
        [program.path, "tokenize", "-f", program.file(book())],
        check=True, stdout=subprocess.PIPE)
    ids = done.stdout.decode().split()[:7500]
    assert len(ids) == 7500, len(ids)
    text = Run("generate", ("-m", program.model, "-c", 7540),
               ("--tokens", program.ids(ids), "-n", 32, "--ignore-eos"))
    yield Case(text.at(Place(LINK)), text,
               (one_link(program.config(program.model), swept=True,
                         tell=True),))


def heavy(program, small):
    if small:
        return
    import numpy as np  # a module of Debian's

    prompt, context, vocab = 32640, 32768, 512
    path = program.scratch / "heavy.gguf"
    subprocess.run(
        ["/usr/bin/python3", ROOT / "bench/make_random.py", path, "--layers",
         "3", "--hidden", "4096", "--heads", "32", "--ffn", "256", "--vocab",
         str(vocab), "--context", str(context), "--type", "q8_0"], check=True)
    draws = random.Random(7)
    ids = [draws.randrange(vocab) for _ in range(prompt)]
    out = program.scratch / "few.npy"
    code, document = program.call("eval", "-m", path, "--tokens",
                                  program.ids(ids[:64]), "--logits", out)
    assert code == 0, document
    spread = float(np.load(out).std())
    assert 0.5 < spread < 2, spread  # else any text would be the same

    config = program.config(path)
    third = context // 128 // 3
    text = Run("generate", ("-m", path, "-c", context),
               ("--tokens", program.ids(ids), "-n", 24, "--ignore-eos"))
    yield Case(text.at(Place(LINK, third * page_bytes(config) + 4096)), text,
               (one_link(config, resident=third, tell=True),))


# ---- Ranks -------------------------------------------------------------------


def checkpoints():
    for path in sorted(CHECKPOINTS.iterdir()):
        if path.suffix == ".json" or "-0000" in path.name:
            continue
        if path.is_dir() and not (path / "config.json").exists():
            yield from sorted(p for p in path.iterdir() if p.suffix == ".gguf")
            continue
        yield path


def cannot_split(config, ranks):
    """Returns true if there are too few columns, tokens or query heads."""
    kv, heads = config["kv_heads"], config["heads"]
    sharing = max(sum(r * kv // ranks == head for r in range(ranks))
                  for head in range(kv))
    return (min(config["hidden"], config["ffn"]) < ranks or
            config["vocab"] <= 16 * (ranks - 1) or
            (kv < ranks and sharing > heads // kv))


def splits(program, small):
    paths = ([CHECKPOINTS / f"llama_{name}.gguf" for name in ("gqa", "mqa")]
             if small else checkpoints())
    for path in paths:
        config = program.config(path)
        if config.get("layers", 0) == 0:
            continue
        tokens = program.drawn_ids(150, config["vocab"])
        for kv in ("f16",) if small else ("f16", "q8_0",
                                               "q4_0", "f32"):
            if kv in ("q8_0", "q4_0") and config["head_dim"] % 32 != 0:
                continue
            logits = Run("eval", ("-m", path, *kv_types(kv)),
                         ("--tokens", tokens))
            for ranks, of_step in itertools.product(
                    RANKS, (64,) if small else (1, 64)):
                run = logits.at(Place(ranks=ranks, flags=("-ub", of_step)))
                if cannot_split(config, ranks):
                    yield Case(run, refused="cannot_split")
                else:
                    yield Case(run, logits)


SMALL_VIEW = ("--policy", "triforce", "--budget", 32, "--chunk", 8, "--sink", 4,
              "--window", 16)
# The flags of each policy's verified form and of its plain one.
FORMS = {
    "full": (("--draft", "ngram"), None),
    "triforce": ((), None),
    "sfi": (("--budget", "192", "--window", "64"),) * 2,
    "sadas": (("--window", "128", "--set", "think=on"),) * 2,
    "speed": (("--set", "cut=26"),) * 2,
}


def policies(program, small):
    """Each form over every count of ranks, by turns in place and behind
    links."""
    text, context, count = ((book()[:1200], 600, 12) if small else
                            (book()[20000:22600], 1400, 24))
    full = Run("generate", ("-m", program.model, "-c", context),
               ("-f", program.file(text), "-n", count, "--temp", 0.8, "--seed",
                3, "--ignore-eos"))
    links = (None,) if small else (None, LINK)
    for at, name in enumerate(("full", "sfi", "triforce") if small else FORMS):
        verified, plain = FORMS[name]
        if small and name == "triforce":
            verified = SMALL_VIEW[2:]
        forms = [(full.by(("--policy", name, *verified), COUPLED), full)]
        if plain is not None:
            run = full.by(("--policy", name, *plain, "--plain"))
            forms.append((run, run))
        for turn, (run, reference) in enumerate(forms, at):
            for ranks in (2,) if small else RANKS:
                link = links[(turn + ranks) % len(links)]
                yield Case(run.at(Place(link, ranks=ranks)), reference,
                           (moves_pages,))
            # A step after which a policy reads all pages has no share, nor
            # has one that reads a part of them.
            shared = Place("100MB/s", host="400MB/s")
            shares = (name in ("full", "triforce") or
                      name == "sadas" and "--plain" not in run.policy)
            yield Case(run.at(shared), reference, (host_attends(shares),))
            if not small:
                yield Case(run.at(dataclasses.replace(shared, ranks=2)),
                           reference)

    # A small model drafts for several ranks, on the first of them.
    path = CHECKPOINTS / "llama_chat"
    one = Run("generate", ("-m", path),
              ("-f", program.file(book()[:600]), "-n", 40, "--temp", 0.8,
               "--ignore-eos"), ("-md", path), COUPLED)
    yield Case(one.at(Place(ranks=2)), one, (same_drafts,))


def same_drafts(document, plain, _):
    (level,) = document["speculation"]["levels"]
    assert level == plain["speculation"]["levels"][0], level
    assert level["drafter"] == "small" and level["accepted"] > 0, level
    first, second = (of["device_bytes"] for of in document["ranks"])
    assert first > second, "the small model is on the first rank"


def links(program, small):
    if small:
        return
    config = program.config(program.model)
    for count, spare, link in ((1000, 0, "1GB/s"), (6000, 20 << 20, "0.3GB/s")):
        text = Run("generate", ("-m", program.model, "-c", count + 40),
                   ("--tokens", program.ids(golden_ids(count)), "-n", 24,
                    "--ignore-eos"))
        one = text.at(Place(link, spare))
        yield Case(one, text, (one_link(config),))
        for ranks in RANKS:
            if ranks <= config["kv_heads"]:
                yield Case(text.at(Place(link, spare, ranks=ranks)), one,
                           (each_link(config, stays=spare > 0),))


# ---- Prompts -----------------------------------------------------------------


def opened(least):
    """The check of a prompt of which so many tokens came from the cache; None:
    it was read."""

    def check(document, *_):
        answer = document.get("answers", [document])[0]
        found = answer["cached_tokens"]
        assert found == 0 if least is None else found > least, found

    return check


def from_disk(document, *_):
    ledger = document["ledger"]
    assert ledger["disk_read_bytes"] == (ledger["formula"]["opened_pages"] *
                                         ledger["formula"]["page_bytes"])


def cache_of(program, name):
    folder = program.scratch / f"cache-{name}"
    folder.mkdir(exist_ok=True)
    return (("XDG_CACHE_HOME", str(folder)),)


def prompts(program, small):
    if small:
        return
    ask = Run("ask", ("-m", program.model),
              (program.file(book()[:9000]), "Who is it about?", "-n",
               12))
    plain = ask.by(("--no-cache",))
    for wrote in (1, 2, 3):
        env = cache_of(program, wrote)
        yield Case(ask.at(Place(ranks=wrote, env=env)), plain, (opened(None),))
        for reads in (1, 2, 3, 4):
            yield Case(ask.at(Place(ranks=reads, env=env)), plain,
                       (opened(0),))


# ---- A GPU -------------------------------------------------------------------

CHAT = CHECKPOINTS / "llama_chat.gguf"


def gpu(program, small):
    on = Place(gpu=True, flags=("-t", 2))
    text = Run("generate", ("-m", CHAT, "-c", 512),
               ("-p", "The cat sat on the mat. " * 12, "-n", 12, "--ignore-eos",
                "--temp", 0.8, "--seed", 3))
    yield Case(text.at(on), text)
    yield Case(text.at(Place("10GB/s", 20 << 20, gpu=True, flags=on.flags)),
               text)
    yield Case(text.by(SMALL_VIEW, COUPLED).at(on), text)
    # A library for GPUs is not asked.
    yield Case(text.at(Place(gpu=True, flags=on.flags,
                             env=(("TIERCEL_CUBLASLT", "1"),))), text)

    logits = Run("eval", ("-m", CHAT, "--deterministic"),
                 ("--tokens", program.ids(7 * i % 90 for i in range(50))))
    yield Case(logits.at(on), logits)
    gqa = CHECKPOINTS / "llama_gqa.gguf"
    tokens = program.drawn_ids(20, program.config(gqa)["vocab"])
    logits = Run("eval", ("-m", gqa), ("--tokens", tokens))
    for ranks in (1, 2):
        yield Case(logits.at(Place(ranks=ranks, gpu=True)), logits)
    if not small:
        logits = Run("eval", ("-m", program.model, "--deterministic"),
                     ("--tokens", program.ids(golden_ids(20))))
        yield Case(logits.at(Place(gpu=True)), logits)

    # If the GPU has room for all of the KV no prompt is saved.
    ask = Run("ask", ("-m", CHAT, "-c", 1600),
              (program.file("One cat sat on two mats. " * 80), "who?", "-n", 8,
               "--ignore-eos"))
    plain = ask.by(("--no-cache",))
    view = ("--policy", "triforce", "--budget", 256)
    env = cache_of(program, "gpu")
    linked = Place("10GB/s", gpu=True, flags=on.flags, env=env)
    yield Case(ask.at(Place(gpu=True, flags=on.flags, env=env)), plain,
               (opened(None),))
    yield Case(ask.at(linked), plain, (opened(None),))
    yield Case(ask.at(linked), plain, (opened(1100), from_disk))
    yield Case(ask.by(view).at(linked), plain, (opened(1100), from_disk))


# ---- Drafts ------------------------------------------------------------------

LEAST_TOKENS_PER_SWEEP = 1.3
# With these a single word of the answer is a repetition.
DRY = ("--dry-multiplier", 0.8, "--dry-allowed-length", 1)
# Settings of the sampler, by turns.
SAMPLERS = (("--temp", 0), ("--temp", 1.0, *DRY), ("--temp", 0.6))

DRAFTERS = ("none", "ngram", "self", "small")
SMALL_LAYERS = 24  # the model that drafts lacks 6 of its 30 layers
# gamma1, gamma2
LENGTHS = ((4, 16), ("auto", "auto"), (1, 31))
# budget, chunk, sink, window
VIEWS = ((256, 32, 32, 64), (128, 8, 8, 32), (512, 64, 64, 64),
         (384, 128, 128, 16), (192, 16, 16, 100))

# Turns of each policy: the flags of both forms, and the verified one's drafter.
TURNS = {
    "sadas": ((("--window", 256, "--set", "think=on"), "ngram"),
              (("--window", 128, "--sink", 4, "--set", "gate=always"), "none"),
              (("--window", 200, "--set", "think=off"), "ngram")),
    "sfi": ((("--budget", 320, "--window", 100), "ngram"),
            (("--budget", 256, "--window", 64), "none"),
            (("--budget", 192, "--window", 64, "--set",
              "trigger=fixed,interval=16,queries=4,decay=0.9,drafted=63"),
             "ngram")),
    "speed": (((), "ngram"),
              (("--set", "cut=28"), "none"),
              (("--set", "cut=26,anchor=4"), "ngram")),
}


def make_small_model(program):
    path = program.scratch / "small.gguf"
    subprocess.run(
        [sys.executable, "-B", ROOT / "bench/make_draft.py", "drop", "--layers",
         str(SMALL_LAYERS), program.model, path], check=True)
    return path


class Turns:
    """Cases of one text; the real model verifies all drafts."""

    def __init__(self, program):
        self.small_model = make_small_model(program)
        self.drafts = Drafts()

    def triforce(self, full, drafter, lengths, view, place):
        flags = ["--policy", "triforce", "--draft", drafter]
        for name, size in zip(("budget", "chunk", "sink", "window"), view):
            flags += [f"--{name}", size]
        if drafter == "small":
            flags += ["-md", self.small_model]
        verify = [*COUPLED, "--gamma2", lengths[1]]
        if drafter != "none":
            verify += ["--gamma1", lengths[0]]
        return Case(full.by(flags, verify).at(place), full,
                    (self.drafts.of(f"--draft {drafter}",
                                    LEAST_TOKENS_PER_SWEEP),))

    def other(self, full, policy, turn, place):
        settings, drafter = TURNS[policy][turn % 3]
        # The model was not trained for SPEED.
        least = 1 if policy == "speed" else LEAST_TOKENS_PER_SWEEP
        run = full.by(("--policy", policy, *settings, "--draft", drafter),
                      COUPLED)
        return Case(run.at(place), full, (self.drafts.of(policy, least),))

    def plain(self, full, policy, turn, places):
        settings, _ = TURNS[policy][turn % 3]
        run = full.by(("--policy", policy, "--plain", *settings))
        for place in places:
            yield Case(run.at(place), run)


def drafts(program, small):
    turns = Turns(program)
    yield from (few_drafts if small else all_drafts)(program, turns)
    turns.drafts.finish()


def drafted_text(program, text, tokens, generated, sampler, seed):
    """The run of a prompt of about so many tokens."""
    return Run("generate",
               ("-m", program.model, "-c", 2 * tokens + generated + 200),
               ("-f", program.file(text[:4 * tokens]), "-n", generated,
                "--ignore-eos", *sampler, "--seed", seed))


def few_drafts(program, turns):
    """Every level drafts in these."""
    linked = Place(LINK)
    for turn, sampler in enumerate(SAMPLERS[:2]):
        full = drafted_text(program, book()[20000:], 400, 32, sampler,
                            5)
        for n, drafter in enumerate(DRAFTERS[1 - turn::2]):
            yield turns.triforce(full, drafter, LENGTHS[n], VIEWS[1],
                                 linked if n == turn else HERE)
    for policy, turn, place in (("sadas", 0, HERE), ("sadas", 2, linked),
                                ("sfi", 0, linked), ("speed", 0, HERE)):
        yield turns.other(full, policy, turn, place)
    yield from turns.plain(full, "speed", 0, (Place(LINK, flags=("-t", 1)),))


def all_drafts(program, turns):
    pages = book()
    sizes = itertools.cycle((300, 600, 1200, 2500))
    places = (HERE, Place(LINK))
    # The periods have no common divisor, so all pairs occur; every policy has
    # each of its settings at each temperature.
    of_triforce = of_others = 0
    for prompt in range(20):
        text, size = pages[prompt * len(pages) // 20:], next(sizes)
        for i, sampler in enumerate(SAMPLERS):
            full = drafted_text(program, text, size, 256, sampler, prompt)
            for drafter in DRAFTERS[(prompt + i) % 2::2]:
                n = of_triforce
                yield turns.triforce(full, drafter, LENGTHS[n % 3],
                                     VIEWS[n % 5], places[n % 7 < 3])
                of_triforce += 1
            for policy in TURNS:
                yield turns.other(full, policy, prompt + i,
                                  places[of_others % 7 < 3])
                of_others += 1
                if prompt % 4 == 3 and i == 2:
                    yield from turns.plain(
                        full, policy, prompt // 4,
                        (Place(flags=("-t", 1)), Place(LINK, flags=("-t", 1)),
                         Place(LINK)))
        print(f"  prompt {prompt} of 20", flush=True)


PARTS = {part.__name__: part for part in (rows, devices, long, heavy, splits,
                                          policies, links, prompts, gpu,
                                          drafts)}


def main():
    words = sys.argv[1:]
    small = words[:1] == ["--small"]
    path, *names = words[small:] or [None]
    if path is None or not set(names) <= set(PARTS):
        sys.exit(__doc__)
    measure_nothing()
    total = 0
    with tempfile.TemporaryDirectory() as scratch:
        program = Program(path, scratch)
        for name in names or PARTS:
            began, before = time.monotonic(), len(program.results)
            cases = 0
            for case in PARTS[name](program, small):
                program.check(case)
                cases += 1
            if cases > 0:
                print(f"{name}: {cases} cases, {len(program.results) - before} "
                      f"references, {time.monotonic() - began:.0f} s",
                      flush=True)
            total += cases
        print(f"{total} cases, {len(program.results)} references: the same "
              f"bytes")


if __name__ == "__main__":
    main()
