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

  bench/roofline.py --against FILE.jsonl  ops that a GPU was measured with
                                          (tests/gpu_check.sh), beside this

The time of an operation is the greatest of: its bytes at 0.85 of the bandwidth;
its instructions at half of the rate at which the multiprocessors issue them; its
operations at 0.6 of the matrix unit's peak; and 2.2 us a launch besides. Bytes
are those of the device's memory: weights, and K and V, once for all rows that
pass a layer at once; repeated reads from the second-level cache are not counted.
Instructions are those that nvcc makes of the kernels' loops, counted by
tests/sass_check.py (bench/machine_code.json), for each link of a chain or step
of the matrix unit. The half is measured: an H200's kernels issued 0.42 to 0.71
(--against). Bandwidths and peaks are from data sheets (4090: 920 GB/s of 1,008).

Standard library only.
"""

import argparse
import functools
import json
import sys
import typing

sys.dont_write_bytecode = True
import gguf_file
import pages

OF_BANDWIDTH = 0.85
OF_ISSUE = 0.5
OF_PEAK = 0.6  # the matrix unit's
LAUNCH_S = 2.2e-6
PAGE = 128  # positions
WAVE_FLOATS = 8 << 20  # kGpuWaveFloats of kernels/attention/attention_gpu.h
FEW_PAGES = 64  # kFew of kernels/attention/attention_body.h
TILE_QUERIES = 32  # queries of a KV head in a block of attention
PROMPT_ROWS = 1024  # PromptRowsAtOnce of runtime/pass/pass.h
FAST_TILE = 64  # queries of a KV head in a block of flash_attention.cu
FOLDING_TILES = 256  # kGpuFoldingTiles: blocks that are enough to fold pages

# Bits of a packed weight with its share of the scales.
BITS = {0: 32, 1: 16, 30: 16, 8: 8.5, 2: 4.5, 3: 5, 6: 8.5, 7: 9, 12: 5,
        13: 9, 14: 6.75, 20: 4.5, 23: 4.3125, 39: 4.5, 11: 4.5625, 10: 2.625}
FLOATS = (0, 1, 30)
NAMES = {"F32": 0, "F16": 1, "BF16": 30, "Q8_0": 8, "Q4_0": 2, "Q4_1": 3,
         "Q5_0": 6, "Q5_1": 7, "Q4_K": 12, "Q5_K": 13, "Q6_K": 14,
         "IQ4_NL": 20, "IQ4_XS": 23, "MXFP4": 39, "Q3_K": 11, "Q2_K": 10}
KV_BITS = {"f16": 16, "q8_0": 8.5, "q4_0": 4.5}
# The numbers of types in the names of kernels: DType of kernels/number/dtype.h,
# and OfType of kernels/attention/attention.cu.
DTYPES = {0: 0, 1: 1, 30: 2, 8: 3, 2: 4, 3: 5, 6: 6, 7: 7, 12: 8, 13: 9, 14: 10,
          20: 11, 23: 12, 39: 13, 11: 14, 10: 15}
OF_TYPES = {"f16": 0, "q8_0": 1, "q4_0": 2}
LANES = 32  # a warp's threads
STEP_INT8 = 2 * 16 * 8 * 32  # operations of a step of the matrix unit
STEP_F16 = 2 * 16 * 8 * 16


class Gpu(typing.NamedTuple):
    name: str
    arch: str  # the nearest one with counted machine code
    bytes_s: float
    f32_s: float  # operations; a multiply-add is two
    int8_s: float  # operations of the matrix unit, dense
    f16_s: float  # likewise, with sums in f32

    @property
    def issue_s(self):
        """Instructions of a warp that all multiprocessors issue in a second:
        each is 32 multiply-adds at the peak in f32."""
        return self.f32_s / (2 * LANES)


GPUS = (Gpu("RTX 4090", "sm_89", 920e9, 82.6e12, 660.6e12, 165.2e12),
        Gpu("RTX 3090", "sm_89", 854e9, 35.6e12, 284e12, 71e12),
        Gpu("RTX 4070", "sm_89", 460e9, 29.1e12, 233e12, 58.3e12),
        Gpu("RTX 5090", "sm_90", 1636e9, 104.8e12, 838e12, 209.5e12),
        Gpu("H100 SXM", "sm_90", 3350e9, 66.9e12, 1978.9e12, 989.4e12))
# --against only; its bandwidth is measured in the same run.
H200 = Gpu("H200", "sm_90", 4800e9, 66.9e12, 1978.9e12, 989.4e12)


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
    # {kernel: links or steps of a warp}; "": single instructions
    units: dict
    int8: float = 0.0
    f16: float = 0.0


@functools.cache
def machine_code():
    """{architecture: {kernel: figures}}, as tests/sass_check.py saves them."""
    return json.loads((pages.ROOT / "bench/machine_code.json").read_text())


def issued(gpu, work):
    """The instructions of all warps."""
    kernels = machine_code()[gpu.arch]
    return sum(count * (kernels[kernel]["instructions"] if kernel else 1)
               for kernel, count in work.units.items())


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
    "qwen3-8b-q8": ("Qwen3 8B, Q8_0", 36, 4096, 32, 8, 128, 12288, 151936,
                    NAMES["Q8_0"]),
    "ministral3-14b-q4": ("Ministral 3 14B, Q4_K", 40, 5120, 32, 8, 128, 16384,
                          131072, NAMES["Q4_K"]),
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
    """The Work of one product with `rows` rows. `fast`: by the matrix unit in
    f16, where that fits."""
    size = passes(rows) * matrix.n * matrix.k * BITS[matrix.kind] / 8
    kind = DTYPES[matrix.kind]
    if fast and matrix.kind != NAMES["F32"] and matrix.k % 64 == 0:
        operations = 2.0 * whole(rows, 8) * matrix.n * matrix.k
        return Work(matrix.name, size,
                    {f"MultiplyHalves {kind}": operations / STEP_F16},
                    f16=operations)
    if matrix.kind in FLOATS:
        # A block of threads has 1, 8 or 24 rows, from 49 on 64.
        of_block = (1 if rows == 1 else 8 if rows <= 8 else
                    24 if rows <= 48 else 64)
        kernel = (f"MultiplyFloatRow {kind} 12" if rows == 1 else
                  f"MultiplyFloatPanels {kind} Rows{of_block}")
        links = whole(rows, of_block) * matrix.n * matrix.k
        return Work(matrix.name, size, {kernel: links / LANES})
    # A step of the matrix unit takes 8 rows; a warp has 1, 3 or 4 such tiles.
    tiles = 1 if rows <= 8 else 3 if rows <= 24 else 4
    kernel = (f"MultiplyPanelRow {kind}" if rows == 1 and matrix.k % 256 == 0
              else f"MultiplyPanels {kind} {tiles}")
    operations = 2.0 * whole(rows, 8 * tiles) * matrix.n * matrix.k
    return Work(matrix.name, size, {kernel: operations / STEP_INT8},
                int8=operations)


def products(name, matrices, rows, times=1, fast=False):
    counted = [product(matrix, rows, fast) for matrix in matrices]
    units = {}
    for work in counted:
        for kernel, count in work.units.items():
            units[kernel] = units.get(kernel, 0) + times * count
    return Work(name, times * sum(work.bytes for work in counted), units,
                times * sum(work.int8 for work in counted),
                times * sum(work.f16 for work in counted))


def attention(model, rows, positions, kv, causal=False, fast=False):
    """The work of attention in all layers: K and V once a pass, and for scores
    and sums each a multiply-add per element and query. Queries of a KV head are
    rounded up to warps. `fast`: by the matrix unit in f16, where that fits."""
    fast = fast and model.head_dim in (64, 96, 128)
    seen = positions / 2 if causal else positions
    read = passes(rows) * model.layers * kv_bytes(model, seen, kv)
    of_head = queries_of_head(model, rows)
    of_warp, kernel = attention_kernel(of_head, kv, folds(model, rows))
    queries = model.kv_heads * whole(of_head, FAST_TILE if fast else of_warp)
    operations = model.layers * 4.0 * queries * seen * model.head_dim
    if not fast:
        return Work("attention", read, {kernel: operations / 2 / LANES})
    kind = DTYPES[NAMES[kv.upper()]]
    kernel = f"FlashAttend {model.head_dim} {kind}"
    return Work("attention", read, {kernel: operations / STEP_F16},
                f16=operations)


def queries_of_head(model, rows):
    """The queries, of all rows and heads, that share a KV head."""
    return rows * model.heads // model.kv_heads


def folds(model, rows):
    """Returns True if a block of attention sees all pages, and folds them."""
    tiles = whole(queries_of_head(model, rows), TILE_QUERIES) // TILE_QUERIES
    return model.kv_heads * tiles >= FOLDING_TILES


def attention_kernel(queries, kv, folding):
    """The queries of a warp, and the kernel, as LaunchPages of
    kernels/attention/attention.cu chooses them."""
    of_warp = 8 if kv == "f16" else 6
    if not folding:
        if queries <= 8:
            of_warp = 1 if queries == 1 else 2 if queries <= 4 else 4
        elif 10 * whole(queries, 6) < 9 * whole(queries, 8):
            of_warp = 6
    warps = 1 if of_warp == 1 else 4
    return of_warp, (f"ComputePages {of_warp} {warps} {OF_TYPES[kv]}"
                     + (" true" if folding else ""))


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
                {"": 10.0 / LANES * rows * model.layers * floats})


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


def times(gpu, work):
    """{bound: seconds}."""
    return {"memory": work.bytes / (OF_BANDWIDTH * gpu.bytes_s),
            "issue": issued(gpu, work) / (OF_ISSUE * gpu.issue_s),
            "int8": work.int8 / (OF_PEAK * gpu.int8_s),
            "f16": work.f16 / (OF_PEAK * gpu.f16_s)}


def seconds(gpu, work):
    return max(times(gpu, work).values())


def bound(gpu, work):
    found = times(gpu, work)
    return max(found, key=found.get)


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
                  "| | bytes | instructions | int8 operations | "
                  "f16 operations | bound by | predicted ms |",
                  "|---|---:|---:|---:|---:|---|---:|"]
        for work in of_step:
            lines.append(
                f"| {work.name} | {size(work.bytes)} | "
                f"{size(issued(gpu, work))} | "
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


# The models of bench/kernels/kernel_bench.cc, and the matrices of its parts.
MEASURED = {"llama2-7b": (4096, 32, 32, 128, 11008, 32000),
            "llama3.1-8b": (4096, 32, 8, 128, 14336, 128256),
            "30b-a3b": (2048, 32, 4, 128, 0, 151936)}
PARTS = {"qkv": ("q", "k", "v"), "o": ("o",), "gate_up": ("gate", "up"),
         "down": ("down",)}


def work_of(row):
    """The work of one call that kernel_bench timed; None: of another op."""
    op, _, fast = row.get("op", "").partition("_")
    if row.get("kind") != "op" or op not in ("matmul", "attention") or fast not in ("", "fast"):
        return None
    kind = NAMES[row["type"].upper()] if op == "matmul" else NAMES["F16"]
    model = model_of_shape(row["model"], 1, *MEASURED[row["model"]], kind)
    if op == "attention":
        return attention(model, row["rows"], row["positions"], row["type"],
                         fast=bool(fast))
    matrices = ([model.output] if row["part"] == "output" else
                [m for m in model.of_layer if m.name in PARTS[row["part"]]])
    return products(row["part"], matrices, row["rows"], fast=bool(fast))


def beside_measured(path):
    """The lines of a page: the ops that kernel_bench measured on an H200, and
    their predictions."""
    rows, gpu = [], H200
    with open(path) as file:
        for line in file:
            row = json.loads(line).get("row", {})
            if row.get("name") == "device read":
                gpu = gpu._replace(bytes_s=row["value"] * 1e9)
            rows.append(row)
    lines = ["# Ops on an H200, measured, beside bench/roofline.py", "",
             f"Measured: {path.rsplit('/', 1)[-1]}, by the GPU's events. *Predicted* "
             "from its bandwidth in", "the same run, data sheets and counted "
             "machine code. Launches are in what was measured alone.", "",
             "| op | shape | type | rows | positions | measured us | "
             "predicted us | bound by | measured / predicted |",
             "|---|---|---|---:|---:|---:|---:|---|---:|"]
    for row in rows:
        work = work_of(row)
        if work is None:
            continue
        us = seconds(gpu, work) * 1e6
        lines.append(
            f"| {row['op']} | {row['model']} {row['part']} | {row['type']} | "
            f"{row['rows']} | {row.get('positions') or ''} | {row['us']:.4g} | "
            f"{us:.4g} | {bound(gpu, work)} | {row['us'] / us:.2f} |")
    return lines


def write(lines, save, *slugs):
    """Prints the lines of a page, and saves it."""
    print("\n".join(lines))
    if save:
        path = pages.page(pages.today(), *slugs)
        path.write_text("\n".join(lines) + "\n")
        print(f"saved: {path}")


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file", nargs="?")
    parser.add_argument("--against")
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
    if args.against:
        try:
            lines = beside_measured(args.against)
        except (OSError, ValueError, KeyError) as error:
            parser.error(f"{args.against}: {error!r}; need the JSON lines of "
                         "tests/gpu_check.sh")
        write(lines, args.save, "nvidia-h200", "roofline.md")
        return 0
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
             "By arithmetic from data sheets and counted machine code: nothing "
             "here ran on a GPU.", ""]
    for model in models:
        for gpu in GPUS:
            lines += table(gpu, model, args)
    write(lines, args.save, "predicted", "roofline.md")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
