#!/usr/bin/env python3
"""Predicts the time of a model's steps on a GPU by arithmetic.

  bench/roofline.py FILE.gguf             from a file's header
  bench/roofline.py --shape llama2-7b     a stated shape (--list names them)
  ... --context N --budget N --block N --prompt N --kv f16|q8_0|q4_0
      --link GB/s --host GB/s
  ... --save                              also writes bench/results/<date>-predicted-roofline.md

Nothing is measured. There are five steps: one token over the whole context, on
a device that holds it; a draft over a view of --budget positions; a sweep of
--block drafts and one row over the whole context, whose KV comes over the link
layer by layer while the layer before computes, also if the host attends to its
share of K and V at --host GB/s; a prompt of --prompt tokens on a
device that holds its KV, by the matrix unit in f16 and with --deterministic.

The time of an operation is max(bytes / (0.85 bandwidth), operations / (0.6
peak)), plus 2.2 us a launch. Bytes are those of the device's memory: weights,
and K and V, once for all rows that pass a layer at once; repeated reads from
the second-level cache are not counted. The heads of the kernels' sources count
in the same way. Bandwidths and peaks are from data sheets (4090: 920 GB/s of
1,008).

Standard library only.
"""

import argparse
import sys
import typing

sys.dont_write_bytecode = True
import gguf_file
import pages

OF_BANDWIDTH = 0.85
OF_PEAK = 0.6
LAUNCH_S = 2.2e-6
PAGE = 128  # positions
WAVE_FLOATS = 8 << 20  # kGpuWaveFloats of kernels/attention/attention_gpu.h
FEW_PAGES = 64  # kFew of kernels/attention/attention_body.h
TILE_QUERIES = 32  # queries of a KV head in a block of attention
PROMPT_ROWS = 1024  # PromptRowsAtOnce of runtime/pass/pass.h
FAST_TILE = 64  # queries of a KV head in a block of flash_attention.cu
FOLDING_TILES = 256  # kGpuFoldingTiles: blocks that are enough to fold pages

# Bits of a weight with its share of the scales, which is the same in a file and
# packed.
BITS = {0: 32, 1: 16, 30: 16, 8: 8.5, 2: 4.5, 3: 5, 6: 8.5, 7: 9, 12: 5,
        13: 9, 14: 6.75}
WITH_MIN = (3, 7, 12, 13)  # a link more in each block
FLOATS = (0, 1, 30)
NAMES = {"F32": 0, "F16": 1, "BF16": 30, "Q8_0": 8, "Q4_0": 2, "Q4_1": 3,
         "Q5_0": 6, "Q5_1": 7, "Q4_K": 12, "Q5_K": 13, "Q6_K": 14}
KV_BITS = {"f16": 16, "q8_0": 8.5, "q4_0": 4.5}


class Gpu(typing.NamedTuple):
    name: str
    bytes_s: float
    f32_s: float  # operations; a multiply-add is two
    int8_s: float  # operations of the matrix unit, dense
    f16_s: float  # likewise, with sums in f32


GPUS = (Gpu("RTX 4090", 920e9, 82.6e12, 660.6e12, 165.2e12),
        Gpu("RTX 3090", 854e9, 35.6e12, 284e12, 71e12),
        Gpu("RTX 4070", 460e9, 29.1e12, 233e12, 58.3e12),
        Gpu("RTX 5090", 1636e9, 104.8e12, 838e12, 209.5e12),
        Gpu("H100 SXM", 3350e9, 66.9e12, 1978.9e12, 989.4e12))


class Matrix(typing.NamedTuple):
    name: str
    n: int
    k: int
    kind: int  # one of BITS


class Model(typing.NamedTuple):
    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    of_layer: tuple  # a layer's matrices
    output: Matrix
    head_norms: bool = False


class Work(typing.NamedTuple):
    """The bytes and operations of one op, over all layers."""
    name: str
    bytes: float
    f32: float
    int8: float = 0.0
    f16: float = 0.0


def model_of_shape(name, layers, hidden, heads, kv_heads, head_dim, ffn, vocab,
                   kind):
    q, kv = heads * head_dim, kv_heads * head_dim
    return Model(name, layers, hidden, heads, kv_heads, head_dim, ffn,
                 (Matrix("q", q, hidden, kind), Matrix("k", kv, hidden, kind),
                  Matrix("v", kv, hidden, kind), Matrix("o", hidden, q, kind),
                  Matrix("gate", ffn, hidden, kind),
                  Matrix("up", ffn, hidden, kind),
                  Matrix("down", hidden, ffn, kind)),
                 Matrix("output", vocab, hidden, kind))


SHAPES = {
    "llama2-7b": ("Llama 2 7B, F16", 32, 4096, 32, 32, 128, 11008, 32000,
                  NAMES["F16"]),
    "llama2-7b-q4": ("Llama 2 7B, Q4_0", 32, 4096, 32, 32, 128, 11008, 32000,
                     NAMES["Q4_0"]),
    "llama3-8b-q4": ("Llama 3 8B, Q4_K", 32, 4096, 32, 8, 128, 14336, 128256,
                     NAMES["Q4_K"]),
    "qwen3-4b-q8": ("Qwen3 4B, Q8_0", 36, 2560, 32, 8, 128, 9728, 151936,
                    NAMES["Q8_0"]),
}


def model_of_file(path):
    """Reads the model of a file. Errors: gguf_file.Error, also if a tensor is
    missing."""
    with gguf_file.Reader(path) as file:
        tensors = {tensor.name: tensor for tensor in file.tensors}
        arch = file.value("general.architecture")
        number = lambda key: file.integer(f"{arch}.{key}")  # noqa: E731

        def matrix(name, tensor):
            if tensor not in tensors:
                raise gguf_file.Error(f"{path}: no tensor {tensor}; need one")
            found = tensors[tensor]
            if len(found.dims) != 2:
                raise gguf_file.Error(f"{path}: {tensor} has dimensions "
                                      f"{found.dims}; need two")
            return Matrix(name, found.dims[1], found.dims[0], found.kind)

        heads = number("attention.head_count")
        kv_heads = file.value(f"{arch}.attention.head_count_kv") or heads
        head_dim = (file.value(f"{arch}.attention.key_length")
                    or number("embedding_length") // heads)
        names = {"q": "attn_q", "k": "attn_k", "v": "attn_v",
                 "o": "attn_output", "gate": "ffn_gate", "up": "ffn_up",
                 "down": "ffn_down"}
        # Layers of a file may have several types, so that all are read.
        layers = number("block_count")
        of_layer = tuple(matrix(name, f"blk.{layer}.{tensor}.weight")
                         for layer in range(layers)
                         for name, tensor in names.items())
        output = ("output.weight" if "output.weight" in tensors
                  else "token_embd.weight")
        return Model(path.rsplit("/", 1)[-1], layers,
                     number("embedding_length"), heads, kv_heads, head_dim,
                     number("feed_forward_length"), of_layer,
                     matrix("output", output),
                     "blk.0.attn_q_norm.weight" in tensors)


# ---- Bytes and operations ----------------------------------------------------


def whole(count, of):
    return -(-count // of) * of


def passes(rows):
    """The times that a layer is read for `rows` rows."""
    return whole(rows, PROMPT_ROWS) // PROMPT_ROWS


def product(matrix, rows, fast=False):
    """Returns (bytes, operations in f32, in int8, in f16) for one product with
    `rows` rows. `fast`: by the matrix unit in f16, where that fits."""
    size = passes(rows) * matrix.n * matrix.k * BITS[matrix.kind] / 8
    if fast and matrix.kind != NAMES["F32"] and matrix.k % 64 == 0:
        return size, 0.0, 0.0, 2.0 * whole(rows, 8) * matrix.n * matrix.k
    if matrix.kind in FLOATS:
        # A block of threads has 1, 8 or 24 rows, from 49 on 64.
        counted = (rows if rows == 1 else 8 if rows <= 8 else
                   whole(rows, 24 if rows <= 48 else 64))
        return size, 2.0 * counted * matrix.n * matrix.k, 0.0, 0.0
    # The matrix unit takes 8 rows. A link of a chain is a conversion, which
    # costs as much as four multiply-adds, a product, and one or two
    # multiply-adds; it is for one row, or for whole tiles.
    counted = 8 if rows <= 8 else 24 if rows <= 24 else whole(rows, 32)
    slots = 4 + 1 + (2 + 1 if matrix.kind in WITH_MIN else 1)
    blocks = matrix.n * matrix.k / 32
    links = blocks * (1 if rows == 1 and matrix.k % 256 == 0 else counted)
    return size, 2.0 * slots * links, 2.0 * 32 * counted * blocks, 0.0


def products(name, matrices, rows, times=1, fast=False):
    counted = [product(matrix, rows, fast) for matrix in matrices]
    return Work(name, *(times * sum(column) for column in zip(*counted)))


def attention(model, rows, positions, kv, causal=False, fast=False):
    """The work of attention in all layers: K and V once a pass, and for scores
    and sums each a multiply-add per element and query. Queries of a KV head are
    rounded up to warps. `fast`: by the matrix unit in f16, where that fits."""
    fast = fast and model.head_dim in (64, 96, 128)
    seen = positions / 2 if causal else positions
    read = passes(rows) * model.layers * kv_bytes(model, seen, kv)
    of_head = queries_of_head(model, rows)
    queries = model.kv_heads * (
        whole(of_head, FAST_TILE) if fast
        else of_warps(of_head, kv, folds(model, rows)))
    operations = model.layers * 4.0 * queries * seen * model.head_dim
    return (Work("attention", read, 0.0, f16=operations) if fast
            else Work("attention", read, operations))


def queries_of_head(model, rows):
    """The queries, of all rows and heads, that share a KV head."""
    return rows * model.heads // model.kv_heads


def folds(model, rows):
    """Returns True if a block of attention sees all pages, and folds them."""
    tiles = whole(queries_of_head(model, rows), TILE_QUERIES) // TILE_QUERIES
    return model.kv_heads * tiles >= FOLDING_TILES


def of_warps(queries, kv, folding):
    """Rounds queries up to whole warps, as LaunchPages of
    kernels/attention/attention.cu does."""
    most = 8 if kv == "f16" else 6
    if not folding:
        if queries == 1:
            return 1
        if queries <= 8:
            return whole(queries, 2 if queries <= 4 else 4)
        if 10 * whole(queries, 6) < 9 * whole(queries, 8):
            return whole(queries, 6)
    return whole(queries, most)


def kv_bytes(model, positions, kv):
    """The bytes of one layer's KV."""
    return 2 * positions * model.kv_heads * model.head_dim * KV_BITS[kv] / 8


def others(model, rows):
    """The work of norms, RoPE, KV writes, gated products and quantised
    activations, which read and write their floats once."""
    q, kv = model.heads * model.head_dim, model.kv_heads * model.head_dim
    floats = (2 * 2 * model.hidden  # norms
              + 2 * (q + kv) + 2 * kv  # rope, KV
              + 3 * model.ffn  # gated
              + 2 * (2 * model.hidden + q + model.ffn)  # codes
              + 2 * q)  # folding of attention
    return Work("others", 4.0 * rows * model.layers * floats,
                10.0 * rows * model.layers * floats)


def launches(model, rows, positions):
    """The launches of a step: those of a token, as tests/hosted_test.cc counts
    them, and two for each further wave of attention, as the results of pages
    are folded before they leave the cache. Blocks that fold need one launch."""
    quantised = any(m.kind not in FLOATS for m in model.of_layer)
    layer = (11 if quantised else 10) + (2 if model.head_norms else 0)
    if positions > FEW_PAGES * PAGE:
        layer += 1  # sends the list of pages
    of_step = 6
    if folds(model, rows):
        return passes(rows) * (model.layers * (layer - 1) + of_step)
    floats = rows * model.heads * (model.head_dim + 2) * whole(
        positions, PAGE) // PAGE
    waves = whole(floats, WAVE_FLOATS) // WAVE_FLOATS
    return passes(rows) * (model.layers * (layer + 2 * (waves - 1)) + of_step)


def works(model, rows, positions, kv, causal=False, fast=False):
    by_name = {}
    for matrix in model.of_layer:
        by_name.setdefault(matrix.name, []).append(matrix)
    layers = 1 if len(model.of_layer) > 7 else model.layers
    groups = {"q, k, v": "qkv", "o": "o", "gate, up": ("gate", "up"),
              "down": ("down",)}
    rows_of = [products(label, [m for name in names for m in by_name[name]],
                        rows, layers, fast)
               for label, names in groups.items()]
    return [*rows_of, attention(model, rows, positions, kv, causal, fast),
            others(model, rows),
            products("output", [model.output], 1 if causal else rows)]


def seconds(gpu, work):
    return max(work.bytes / (OF_BANDWIDTH * gpu.bytes_s),
               work.f32 / (OF_PEAK * gpu.f32_s),
               work.int8 / (OF_PEAK * gpu.int8_s),
               work.f16 / (OF_PEAK * gpu.f16_s))


def bound(gpu, work):
    times = {"memory": work.bytes / (OF_BANDWIDTH * gpu.bytes_s),
             "f32": work.f32 / (OF_PEAK * gpu.f32_s),
             "int8": work.int8 / (OF_PEAK * gpu.int8_s),
             "f16": work.f16 / (OF_PEAK * gpu.f16_s)}
    return max(times, key=times.get)


def step_seconds(gpu, model, rows, positions, kv, causal=False, fast=False):
    of_step = works(model, rows, positions, kv, causal, fast)
    return (sum(seconds(gpu, work) for work in of_step)
            + launches(model, rows, positions) * LAUNCH_S)


def sweep_seconds(gpu, model, rows, positions, kv, link_bytes_s):
    """The seconds of a sweep, in which the link and the layers work side by
    side; only the first layer is waited for."""
    compute = step_seconds(gpu, model, rows, positions, kv)
    link = model.layers * kv_bytes(model, positions, kv) / link_bytes_s
    return max(link, compute) + min(link, compute) / model.layers


def shared_sweep_seconds(gpu, model, rows, positions, kv, link_bytes_s,
                         host_bytes_s):
    """The same if the host attends to as much of each layer as leaves it done
    when the link is (HostShare of offload/tier/tier_shape.h)."""
    compute = step_seconds(gpu, model, rows, positions, kv) / model.layers
    link = kv_bytes(model, positions, kv) / link_bytes_s
    host = kv_bytes(model, positions, kv) / host_bytes_s
    share = max(0, (link - compute) / (link + host))
    crossing = (1 - share) * link
    return (model.layers * max(crossing, compute + share * host)
            + min(crossing, compute))


# ---- The table ---------------------------------------------------------------


def size(count):
    for unit, factor in (("G", 1e9), ("M", 1e6)):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count:.3g}"


def table(gpu, model, args):
    steps = [
        ("a token over the context", 1, args.context, args.kv, False, False),
        ("a draft over the view", 1, args.budget, args.view_kv, False, False),
        ("a sweep", args.block + 1, args.context, args.kv, False, False),
        ("the prompt", args.prompt, args.prompt, args.kv, True, True),
        ("the prompt, --deterministic", args.prompt, args.prompt, args.kv, True,
         False),
    ]
    lines = [f"## {model.name} on {gpu.name}: *predicted*, not measured", ""]
    for name, rows, positions, kv, causal, fast in steps:
        of_step = works(model, rows, positions, kv, causal, fast)
        total = step_seconds(gpu, model, rows, positions, kv, causal, fast)
        title = (f"{name}: {rows:,} row{'s' if rows > 1 else ''}, "
                 f"{positions:,} positions, KV {kv}")
        lines += [f"### {title}", "",
                  "| | bytes | f32 operations | int8 operations | "
                  "f16 operations | bound by | predicted ms |",
                  "|---|---:|---:|---:|---:|---|---:|"]
        for work in of_step:
            lines.append(
                f"| {work.name} | {size(work.bytes)} | {size(work.f32)} | "
                f"{size(work.int8)} | {size(work.f16)} | "
                f"{bound(gpu, work)} | "
                f"{seconds(gpu, work) * 1e3:.3g} |")
        launched = launches(model, rows, positions)
        lines.append(f"| {launched} launches | | | | | | "
                     f"{launched * LAUNCH_S * 1e3:.3g} |")
        lines.append(f"| all | {size(sum(w.bytes for w in of_step))} | | | | | "
                     f"**{total * 1e3:.4g}** |")
        if name == "a sweep":
            swept = sweep_seconds(gpu, model, rows, positions, kv,
                                  args.link * 1e9)
            lines.append(f"| with the KV over a link of {args.link:g} GB/s | "
                         f"{size(model.layers * kv_bytes(model, positions, kv))}"
                         f" | | | | | **{swept * 1e3:.4g}** |")
            shared = shared_sweep_seconds(gpu, model, rows, positions, kv,
                                          args.link * 1e9, args.host * 1e9)
            lines.append(f"| ... and the host's share at {args.host:g} GB/s | "
                         f"| | | | | **{shared * 1e3:.4g}** |")
        lines.append("")
    return lines


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file", nargs="?")
    parser.add_argument("--shape", action="append", choices=sorted(SHAPES),
                        default=[])
    parser.add_argument("--list", action="store_true")
    for name, default in (("context", 131072), ("budget", 4096),
                          ("block", 16), ("prompt", 4096)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--kv", choices=sorted(KV_BITS), default="f16")
    parser.add_argument("--view-kv", choices=sorted(KV_BITS), default="f16")
    parser.add_argument("--link", type=float, default=25.0, help="GB/s")
    parser.add_argument("--host", type=float, default=34.0, help="GB/s")
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args(argv)
    if args.list:
        print("\n".join(f"{key}: {shape[0]}" for key, shape in SHAPES.items()))
        return 0
    for name in ("context", "budget", "block", "prompt", "link", "host"):
        if getattr(args, name) <= 0:
            parser.error(f"--{name} is {getattr(args, name)}; need more than 0")
    try:
        models = [model_of_shape(*SHAPES[name]) for name in args.shape]
        if args.file:
            models.insert(0, model_of_file(args.file))
    except (gguf_file.Error, OSError) as error:
        parser.error(str(error))
    if not models:
        parser.error("need a GGUF file or --shape")
    lines = ["# Steps on a GPU, *predicted* by bench/roofline.py", "",
             "By arithmetic from data sheets: nothing here ran on a GPU.", ""]
    for model in models:
        for gpu in GPUS:
            lines += table(gpu, model, args)
    print("\n".join(lines))
    if args.save:
        path = pages.page(pages.today(), "predicted", "roofline.md")
        path.write_text("\n".join(lines))
        print(f"saved: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
