#!/usr/bin/env python3
"""Predicts the time of steps with long contexts over 1, 2 and 4 GPUs. Nothing
is measured.

  bench/ranks_predicted.py          Llama2-7B-128K and Llama-3.1-8B at 128K on
                                    RTX 4090s, KV in f16 and q8_0
  ... --link GB/s --device GiB      of each card (25, 23)
  ... --context N --block N         131,072 and 16
  ... --save                        also writes
                                    bench/results/<date>-predicted-ranks.md

Memory is that of `tiercel plan --tensor-parallel N`, for a checkpoint that has
only a header. Times are those of bench/roofline.py for a rank's part of each
matrix, and those of gathers in offload/ranks/README.md. The page has the
formulas.

Standard library only.
"""

import argparse
import os
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
import gguf_file
import pages
import roofline
from program import Program

CARD = roofline.GPUS[0]
GATHERS_OF_LAYER = 4
GATHER_S = 15e-6  # with NCCL without peer-to-peer copies
# The sizes of the view by cards, as TriForce's authors had them.
BUDGETS = {1: 8192, 2: 12288, 4: 12288}
# Probabilities that a drafted token is accepted.
HELD = (0.90, 0.96)
PUBLISHED_MS = {("Llama2-7B-128K", 1): 312, ("Llama2-7B-128K", 2): 108}
F16 = roofline.NAMES["F16"]
SHAPES = {
    "Llama2-7B-128K": (32, 4096, 32, 32, 128, 11008, 32000, F16),
    "Llama-3.1-8B": (32, 4096, 32, 8, 128, 14336, 128256, F16),
}

FORMULAS = """\
Of R cards each computes 1/R of the outputs of every matrix and has the KV of
1/R of the heads (`offload/ranks/README.md`). Of one card:

    swept   = KV of its heads - what stays on the card           bytes a sweep
    link    = swept / {link:g} GB/s
    compute = bench/roofline.py, of its matrices, heads and vocabulary
    gather  = (4 layers + 1) 15 us
              + rows (R - 1)/R (layers (heads head_dim + 2 hidden + ffn)
                                + vocab) 4 bytes / {link:g} GB/s     (R > 1)
    step    = compute + gather                                   nothing swept
    sweep   = max(link, compute) + min(link, compute) / layers + gather
    full    = sweep of 1 row
    round   = sweep of {rows} rows + {block} steps over the view
    tokens  = (1 - a^{rows}) / (1 - a)    where a drafted token holds with a
    TriForce = round / tokens

What stays is what `tiercel plan -c {context} --simulate
device={device:g}GiB,link={link:g}GB/s --tensor-parallel R` leaves for it beside
weights, workspace, the two buffers of a layer and, of TriForce, the view (q8_0;
{budgets}). The whole embedding is
on every card. What an n-gram proposes to the view's drafts takes nothing here.
Gathers are counted whole beside the sweep, as the program does them.
"""


def write_headers(path, shape, context):
    """Writes a llama checkpoint without weights, which takes no room on
    disk."""
    layers, hidden, heads, kv_heads, head_dim, ffn, vocab, kind = shape
    numbers = {
        "block_count": layers, "context_length": context,
        "embedding_length": hidden, "feed_forward_length": ffn,
        "attention.head_count": heads, "attention.head_count_kv": kv_heads,
        "attention.key_length": head_dim, "attention.value_length": head_dim,
        "rope.dimension_count": head_dim, "vocab_size": vocab,
    }
    reals = {"attention.layer_norm_rms_epsilon": 1e-5, "rope.freq_base": 1e4}
    keys = {"general.architecture": gguf_file.string("llama"),
            **{f"llama.{k}": gguf_file.u32(v) for k, v in numbers.items()},
            **{f"llama.{k}": gguf_file.f32(v) for k, v in reals.items()}}
    query, kv = heads * head_dim, kv_heads * head_dim
    matrices = [("token_embd", vocab, hidden)]
    norms = ["output_norm"]
    for layer in range(layers):
        block = f"blk.{layer}."
        norms += [block + "attn_norm", block + "ffn_norm"]
        matrices += [
            (block + name, n, k) for name, n, k in (
                ("attn_q", query, hidden), ("attn_k", kv, hidden),
                ("attn_v", kv, hidden), ("attn_output", hidden, query),
                ("ffn_gate", ffn, hidden), ("ffn_up", ffn, hidden),
                ("ffn_down", hidden, ffn))]
    matrices.append(("output", vocab, hidden))
    tensors = [gguf_file.Tensor(f"{name}.weight", (k, n), kind)
               for name, n, k in matrices]
    tensors += [gguf_file.Tensor(f"{name}.weight", (hidden,), gguf_file.F32)
                for name in norms]
    with open(path, "wb") as file:
        data = gguf_file.write_header(file, keys, tensors)
        file.truncate(file.tell() + data)


def of_rank(model, ranks):
    """The part of a model that the rank with most computes; k is not split."""
    def part(count):
        return -(-count // ranks)

    def split(matrix):
        return matrix._replace(n=part(matrix.n))

    return model._replace(
        heads=part(model.heads), kv_heads=part(model.kv_heads),
        ffn=part(model.ffn), of_layer=tuple(map(split, model.of_layer)),
        output=split(model.output))


def gather_seconds(model, ranks, rows, link_bytes_s):
    """The seconds of all gathers of a step."""
    if ranks == 1:
        return 0.0
    floats = model.layers * (model.heads * model.head_dim + 2 * model.hidden
                             + model.ffn) + model.output.n
    return ((GATHERS_OF_LAYER * model.layers + 1) * GATHER_S
            + rows * (ranks - 1) / ranks * floats * 4 / link_bytes_s)


def step_seconds(model, ranks, rows, positions, kv, link_bytes_s, swept=0.0):
    """The seconds of a step in which `swept` bytes come up for each rank."""
    compute = roofline.step_seconds(CARD, of_rank(model, ranks), rows,
                                    positions, kv)
    link = swept / link_bytes_s
    return (max(link, compute) + min(link, compute) / model.layers
            + gather_seconds(model, ranks, rows, link_bytes_s))


def tokens_of(block, held):
    """The mean tokens of a sweep if each draft is accepted with probability
    `held`."""
    return (1 - held ** (block + 1)) / (1 - held)


class Memory:
    """The bytes on the card that has most, by the document of a plan."""

    def __init__(self, plan, layers):
        cards = [card["device"] for card in plan.get("ranks", [plan["tiers"]])]
        self.taken = max(sum(card.values()) for card in cards)
        self.fits = self.taken <= plan["device_bytes"]
        self.resident = max(card["resident"] for card in cards)
        # Each of two buffers holds a layer's pages that do not stay.
        self.swept = max(card["staging"] for card in cards) / 2 * layers


def rows_of(program, name, shape, kv, args):
    model = roofline.model_of_shape(name, *shape)
    link = args.link * 1e9
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch) / f"{name}.gguf"
        write_headers(path, shape, args.context)
        for ranks in args.ranks:
            budget = BUDGETS[ranks]
            common = ["-m", path, "-c", args.context, "-ctk", kv, "-ctv", kv,
                      "--tensor-parallel", ranks, "--simulate",
                      f"device={args.device}GiB,link={args.link}GB/s"]
            full = Memory(program.document("plan", *common), model.layers)
            view = Memory(program.document(
                "plan", *common, "--policy", "triforce", "--budget", budget),
                model.layers)
            yield ranks, full, view, {
                "full": step_seconds(model, ranks, 1, args.context, kv, link,
                                     full.swept),
                "sweep": step_seconds(model, ranks, args.block + 1,
                                      args.context, kv, link, view.swept),
                "draft": step_seconds(model, ranks, 1, budget, "q8_0", link)}


def cells_of(name, block, ranks, full, view, times):
    """The cells of a row in a model's table."""
    cells = [str(ranks)]
    for memory in (full, view):
        cells += ([f"{memory.resident / 2**30:.1f}",
                   f"{memory.swept / 1e9:.1f}"] if memory.fits else
                  [f"needs {memory.taken / 2**30:.1f}", "-"])
    one_row = 1e3 * times["full"]
    cells.append(f"{one_row:.0f}" if full.fits else "-")
    if not view.fits:
        return cells + ["-"] * (3 + len(HELD))
    round_ms = 1e3 * (times["sweep"] + block * times["draft"])
    cells += [f"{1e3 * times['sweep']:.0f}", f"{1e3 * times['draft']:.1f}"]
    cells += [f"**{round_ms / tokens_of(block, held):.0f}**" for held in HELD]
    published = PUBLISHED_MS.get((name, ranks))
    return cells + [f"{round_ms / published:.1f}" if published else "-"]


def page(program, args):
    lines = ["# Long contexts over 1, 2 and 4 cards, *predicted*", "",
             f"By `bench/ranks_predicted.py` from data sheets ({CARD.name}, "
             f"{args.device:g} GiB free, a link of {args.link:g} GB/s each, "
             f"weights F16, {args.context:,} positions): nothing here ran on a "
             "GPU.", ""]
    budgets = ", ".join(f"{budget:,} tokens on {ranks}"
                        for ranks, budget in BUDGETS.items())
    lines += FORMULAS.format(
        link=args.link, device=args.device, context=args.context,
        rows=args.block + 1, block=args.block, budgets=budgets).split("\n")
    for name, shape in SHAPES.items():
        for kv in ("f16", "q8_0"):
            lines += [
                f"## {name}, KV {kv}: *predicted*, not measured", "",
                "| cards | full: stays, GiB | comes up, GB | TriForce: stays | "
                "comes up | full, ms a token | sweep, ms | draft, ms | "
                + " | ".join(f"TriForce, ms a token, a = {held:.2f}"
                             for held in HELD)
                + " | tokens a sweep for the published |",
                "|" + "---:|" * (9 + len(HELD))]
            lines += ["| " + " | ".join(cells_of(name, args.block, *row))
                      + " |" for row in rows_of(program, name, shape, kv, args)]
            lines.append("")
    held = ", ".join(f"{tokens_of(args.block, a):.1f} at a = {a:.2f}"
                     for a in HELD)
    return lines + [
        "GiB and GB are each card's. Tokens a sweep: " + held + ".",
        "",
        "TriForce's authors published, measured, Llama2-7B-128K in f16: 108 ms "
        "a token on two RTX 4090 (840 without drafts, 12 of 32 layers' KV on "
        "the cards), 312 ms on one. The last column is how many tokens a sweep "
        "must give here for the same time; their 108 ms are about 13."]


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tiercel",
                        default=pages.ROOT / "build/cpu/apps/tiercel")
    parser.add_argument("--context", type=int, default=131072)
    parser.add_argument("--block", type=int, default=16)
    parser.add_argument("--link", type=float, default=25.0, help="GB/s")
    parser.add_argument("--device", type=float, default=23.0, help="GiB")
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args(argv)
    for name in ("context", "block", "link", "device"):
        if getattr(args, name) <= 0:
            parser.error(f"--{name} is {getattr(args, name)}; need more than 0")
    args.ranks = tuple(BUDGETS)
    # Without a home folder the program measures no rates for predictions.
    os.environ.update(HOME="", XDG_CACHE_HOME="")
    lines = page(Program(args.tiercel), args)
    print("\n".join(lines))
    if args.save:
        path = pages.page(pages.today(), "predicted", "ranks.md")
        path.write_text("\n".join(lines) + "\n")
        print(f"saved: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
