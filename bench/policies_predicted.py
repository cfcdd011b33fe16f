#!/usr/bin/env python3
"""Predicts a prompt and the time between tokens of each policy on GPUs, by the
arithmetic of bench/roofline.py. Nothing is measured.

  bench/policies_predicted.py               four models, 32K and 128K
  ... --kv f16|q8_0|q4_0 --link GB/s --host GB/s
  ... --save    also writes bench/results/<date>-predicted-policies.md

Standard library only.
"""

import argparse
import sys
import typing

sys.dont_write_bytecode = True
import pages
import roofline

MODELS = ("llama2-7b", "llama3-8b-q4", "qwen3-8b-q8", "ministral3-14b-q4")
CONTEXTS = (32768, 131072)
GIB = 2**30
MEMORY = {"RTX 4090": 24, "RTX 3090": 24, "RTX 4070": 12, "RTX 5090": 32,
          "H100 SXM": 80}  # GiB
WORKSPACE = 1.5  # GiB, activations of a prompt's rows, and what stays free
BUDGET = 4096  # positions of TriForce's view and of SADAS' window
SFI_READS, SFI_INTERVAL = 1280, 64  # positions of a fast step; steps a full one
SPEED_CUT = 0.75  # this part of the layers
HELD = (0.90, 0.948)  # probabilities that a drafted token is accepted
BLOCKS = range(4, 64)

FORMULAS = """\
A card holds the weights, {workspace:g} GiB besides, two layers of KV on their way
and, of the rest of its memory, as much KV as fits; the other KV is in the host's,
and crosses the link ({link:g} GB/s) in each sweep, or is attended to by the host
({host:g} GB/s). KV is {kv}.

    sweep      bench/roofline.py, of the KV that is not on the card
    full       a sweep of 1 row
    triforce   (a sweep of b + 1 rows + b steps over {budget:,} positions)
               / ((1 - a^(b + 1)) / (1 - a)), for the best block b;
               a: the probability that a drafted token is accepted
    sfi        a sweep in {interval} steps, else {sfi:,} positions, plain form
    speed      the prompt and the sweeps of the first {cut:.0%} of the layers alone
    sadas      {budget:,} positions, while the text thinks, plain form
"""


class Times(typing.NamedTuple):
    """The KV on the card, as a fraction; seconds of a prompt and of a token."""
    there: float
    prompt: float
    full: float
    triforce: tuple  # for each of HELD: (seconds, block)
    sfi: float
    speed_prompt: float
    speed: float
    sadas: float


def weight_bytes(model):
    """The bytes of a model's weights, with an embedding like its output."""
    times = 1 if len(model.of_layer) > 7 else model.layers
    of = lambda m: m.n * m.k * roofline.BITS[m.kind] / 8  # noqa: E731
    return times * sum(map(of, model.of_layer)) + 2 * of(model.output)


def predict(gpu, model, context, kv, link, host):
    """The Times of a model on a card; None: its weights do not fit."""
    layer = roofline.kv_bytes(model, context, kv)
    free = (MEMORY[gpu.name] - WORKSPACE) * GIB - weight_bytes(model)
    if free >= model.layers * layer:
        there = 1.0
    elif free < 2 * layer:
        return None
    else:  # two buffers hold what is not there of two layers
        there = max(0.0, (free - 2 * layer) / ((model.layers - 2) * layer))

    def sweep(rows):
        if there == 1.0:
            return roofline.step_seconds(gpu, model, rows, context, kv)
        # The link and the host have the share of the KV that is not there.
        return roofline.shared_sweep_seconds(
            gpu, model, rows, context, kv, link / (1 - there),
            host / (1 - there))

    def over(positions):
        return roofline.step_seconds(gpu, model, 1, min(positions, context), kv)

    def triforce(held):
        def of(block):
            tokens = (1 - held ** (block + 1)) / (1 - held)
            return (sweep(block + 1) + block * over(BUDGET)) / tokens
        best = min(BLOCKS, key=of)
        return of(best), best

    prompt = roofline.step_seconds(gpu, model, context, context, kv,
                                   causal=True, fast=True)
    upper = (1 - SPEED_CUT) * over(1)  # the layers above see the answer alone
    return Times(
        there=there, prompt=prompt, full=sweep(1),
        triforce=tuple(map(triforce, HELD)),
        sfi=(sweep(1) + (SFI_INTERVAL - 1) * over(SFI_READS)) / SFI_INTERVAL,
        speed_prompt=SPEED_CUT * prompt, speed=SPEED_CUT * sweep(1) + upper,
        sadas=over(BUDGET))


def table(gpu, kv, link, host):
    held = " | ".join(f"triforce, {a:g} (block)" for a in HELD)
    lines = [f"## {gpu.name}, {MEMORY[gpu.name]} GiB: *predicted*", "",
             f"| model | context | KV on the card | prompt, s | full, ms | {held}"
             " | sfi | speed (prompt, s) | sadas |",
             "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"]
    for name in MODELS:
        model = roofline.model_of_shape(*roofline.SHAPES[name])
        for context in CONTEXTS:
            times = predict(gpu, model, context, kv, link, host)
            start = f"| {model.name} | {context:,} | "
            if times is None:
                lines.append(start + "its weights do not fit" + " |" * 8)
                continue
            drafted = " | ".join(f"{s * 1e3:.3g} ({block})"
                                 for s, block in times.triforce)
            lines.append(
                start + f"{times.there:.0%} | {times.prompt:.3g} | "
                f"{times.full * 1e3:.3g} | {drafted} | {times.sfi * 1e3:.3g} | "
                f"{times.speed * 1e3:.3g} ({times.speed_prompt:.3g}) | "
                f"{times.sadas * 1e3:.3g} |")
    return [*lines, ""]


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kv", choices=sorted(roofline.KV_BITS), default="f16")
    parser.add_argument("--link", type=float, default=25.0, help="GB/s")
    parser.add_argument("--host", type=float, default=34.0, help="GB/s")
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args(argv)
    for name in ("link", "host"):
        if getattr(args, name) <= 0:
            parser.error(f"--{name} is {getattr(args, name)}; need more than 0")
    lines = ["# Policies on a GPU, *predicted* by bench/policies_predicted.py",
             "", "Times between tokens, in ms. Nothing here ran on a GPU.", "",
             *FORMULAS.format(
                 workspace=WORKSPACE, link=args.link, host=args.host, kv=args.kv,
                 budget=BUDGET, interval=SFI_INTERVAL, sfi=SFI_READS,
                 cut=SPEED_CUT).splitlines(), ""]
    for gpu in roofline.GPUS:
        lines += table(gpu, args.kv, args.link * 1e9, args.host * 1e9)
    suffix = ["policies.md"] if args.kv == "f16" else ["policies",
                                                       f"{args.kv}.md"]
    roofline.write(lines, args.save, "predicted", *suffix)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
