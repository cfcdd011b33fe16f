#!/usr/bin/env python3
"""Writes a llama checkpoint of any shape with random weights, as GGUF; with
experts, one of qwen3moe.

  bench/make_random.py --layers 3 --hidden 4096 --heads 32 --ffn 256 \\
      --vocab 512 --context 32896 OUT.gguf
  bench/make_random.py --tile --type f16 --layers 32 --hidden 4096 \\
      --heads 32 --ffn 11008 --vocab 32000 --context 131072 OUT.gguf
  bench/make_random.py --type q4_0 --layers 8 --hidden 2048 --heads 32 \\
      --kv-heads 4 --head-dim 128 --experts 128 --experts-used 8 \\
      --expert-ffn 768 --vocab 32000 OUT.gguf

It is for measurements and long tests that need a shape but no sense: there is
no tokenizer, so only ids go in and out. The same arguments give the same bytes.

The elements of a matrix are normal with the variance 1 / inputs, divided by 2 x
layers where it writes to the residual stream (attn_output, ffn_down). So the
stream keeps a variance of about 1 at any depth, and logits, which come from
rows normed to 1, have a standard deviation of about 1. Norms are ones. Routers
are F32, and their logits have a standard deviation of 1 too.

With --tile a matrix repeats one random piece of 4 MiB, the same for all
matrices of its scale. 13 GB then take seconds instead of minutes; it is for
measurements of time alone.

Needs numpy, nothing else.
"""

import argparse
import math
import pathlib
import sys

import numpy as np

import gguf_file
from gguf_file import F16, F32, Q4_0, Q8_0

KINDS = {"f16": F16, "q4_0": Q4_0, "q8_0": Q8_0}
BLOCK = 32  # elements in a quantised block
ROUTER = "ffn_gate_inp"
TILE_ROW, TILE_ROWS = 2048, 1024  # 4 MiB of F16


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    number = dict(type=int, metavar="N")
    parser.add_argument("out", type=pathlib.Path, metavar="OUT.gguf")
    parser.add_argument("--layers", default=4, **number)
    parser.add_argument("--hidden", default=512, **number)
    parser.add_argument("--heads", default=8, **number)
    parser.add_argument("--kv-heads", help="None: as many as heads", **number)
    parser.add_argument("--head-dim", help="None: hidden / heads", **number)
    parser.add_argument("--ffn", default=1024, **number)
    parser.add_argument("--experts", default=0, help="in each layer", **number)
    parser.add_argument("--experts-used", default=0, help="by a token",
                        **number)
    parser.add_argument("--expert-ffn", default=0, help="columns of an expert",
                        **number)
    parser.add_argument("--vocab", default=1024, **number)
    parser.add_argument("--context", default=4096, **number)
    parser.add_argument("--type", choices=KINDS, default="q8_0")
    parser.add_argument("--tile", action="store_true",
                        help="one piece of random weights, again and again")
    parser.add_argument("--seed", default=0, **number)
    args = parser.parse_args()
    complete(args, parser.error)
    return args


def complete(args, error):
    """Fills in arguments that were not given; calls `error` with a reason if
    the arguments make no model."""
    if args.kv_heads is None:
        args.kv_heads = args.heads
    if args.head_dim is None:
        if args.heads > 0 and args.hidden % args.heads != 0:
            error(f"hidden: got {args.hidden}, need a multiple of "
                  f"{args.heads} heads")
        args.head_dim = args.hidden // max(args.heads, 1)
    for name in ("layers", "hidden", "heads", "kv_heads", "head_dim", "ffn",
                 "vocab", "context"):
        if not 1 <= getattr(args, name) < 2**31:
            error(f"{name.replace('_', '-')}: got {getattr(args, name)}, need "
                  "1 to 2147483647")
    experts = (args.experts, args.experts_used, args.expert_ffn)
    if any(experts) and not (0 < args.experts_used <= args.experts <= 1024 and
                             0 < args.expert_ffn < 2**31):
        error(f"experts: got {args.experts}, {args.experts_used} used, "
              f"{args.expert_ffn} columns; need 1 to 1024, at most all used, "
              "and 1 or more columns")
    if args.seed < 0:
        error(f"seed: got {args.seed}, need 0 or more")
    if args.heads % args.kv_heads != 0:
        error(f"kv-heads: got {args.kv_heads}, need a divisor of "
              f"{args.heads} heads")
    if args.head_dim % 2 != 0:
        error(f"head-dim: got {args.head_dim}, need an even number")
    for name, inputs in (("hidden", args.hidden), ("ffn", args.ffn),
                         ("expert-ffn", args.expert_ffn),
                         ("heads x head-dim", args.heads * args.head_dim)):
        if args.type != "f16" and inputs % BLOCK != 0:
            error(f"{name}: got {inputs}, {args.type} needs a multiple of "
                  f"{BLOCK}")


def shapes(args):
    """Yields (name, rows, inputs, scale) of every tensor; rows is None for a
    norm, and (experts, rows of each) for a matrix of all experts."""
    query, kv = args.heads * args.head_dim, args.kv_heads * args.head_dim
    to_stream = 1 / math.sqrt(2 * args.layers)
    yield "token_embd", args.vocab, args.hidden, math.sqrt(args.hidden)
    for layer in range(args.layers):
        block = f"blk.{layer}."
        yield block + "attn_norm", None, args.hidden, 1
        yield block + "attn_q", query, args.hidden, 1
        yield block + "attn_k", kv, args.hidden, 1
        yield block + "attn_v", kv, args.hidden, 1
        if args.experts:
            yield block + "attn_q_norm", None, args.head_dim, 1
            yield block + "attn_k_norm", None, args.head_dim, 1
        yield block + "attn_output", args.hidden, query, to_stream
        yield block + "ffn_norm", None, args.hidden, 1
        if args.experts:
            of_all = (args.experts, args.expert_ffn)
            yield block + ROUTER, args.experts, args.hidden, 1
            yield block + "ffn_gate_exps", of_all, args.hidden, 1
            yield block + "ffn_up_exps", of_all, args.hidden, 1
            yield (block + "ffn_down_exps", (args.experts, args.hidden),
                   args.expert_ffn, to_stream)
            continue
        yield block + "ffn_gate", args.ffn, args.hidden, 1
        yield block + "ffn_up", args.ffn, args.hidden, 1
        yield block + "ffn_down", args.hidden, args.ffn, to_stream
    yield "output_norm", None, args.hidden, 1
    yield "output", args.vocab, args.hidden, 1


def as_q4_0(x):
    """Turns float32 [rows, inputs] into the bytes of blocks: f16 scale,
    nibbles.

    The element furthest from zero becomes -8. The low nibble of byte i is
    element i, the high one element i + 16.
    """
    x = x.reshape(-1, BLOCK)
    furthest = np.take_along_axis(
        x, np.abs(x).argmax(axis=1)[:, None], axis=1)
    scale = furthest / np.float32(-8)
    quants = np.rint(x / np.where(scale == 0, 1, scale)) + 8
    quants = quants.clip(0, 15).astype("u1")
    blocks = np.empty(len(x), np.dtype([("d", "<f2"), ("q", "u1", BLOCK // 2)]))
    blocks["d"] = scale[:, 0]
    blocks["q"] = quants[:, :BLOCK // 2] | quants[:, BLOCK // 2:] << 4
    return blocks.tobytes()


def as_q8_0(x):
    """Turns float32 [rows, inputs] into the bytes of blocks: f16 scale,
    int8."""
    x = x.reshape(-1, BLOCK)
    scale = np.abs(x).max(axis=1, keepdims=True) / np.float32(127)
    quants = np.rint(x / np.where(scale == 0, 1, scale))
    blocks = np.empty(len(x), np.dtype([("d", "<f2"), ("q", "i1", BLOCK)]))
    blocks["d"] = scale[:, 0]
    blocks["q"] = quants
    return blocks.tobytes()


def q4_0_of_q8_0(data):
    """Turns the bytes of Q8_0 blocks into those of Q4_0."""
    blocks = np.frombuffer(data, np.dtype([("d", "<f2"), ("q", "i1", BLOCK)]))
    return as_q4_0(blocks["d"].astype("f4")[:, None] * blocks["q"])


def tensor_bytes(random, tensor, scale):
    inputs = tensor.dims[0]
    if len(tensor.dims) == 1:
        return np.ones(inputs, "<f4").tobytes()
    if len(tensor.dims) == 3:  # expert by expert, as floats take more memory
        own = tensor._replace(dims=tensor.dims[:2])
        return b"".join(tensor_bytes(random, own, scale)
                        for _ in range(tensor.dims[2]))
    x = random.standard_normal(tensor.dims[::-1], np.float32)
    x *= np.float32(scale / math.sqrt(inputs))
    if tensor.kind == F32:
        return x.astype("<f4").tobytes()
    if tensor.kind == F16:
        return x.astype("<f2").tobytes()
    return as_q4_0(x) if tensor.kind == Q4_0 else as_q8_0(x)


def tiled_bytes(random, tensor, scale, tiles):
    """The same as a Tiled; `tiles` keeps the pieces, {(kind, deviation):
    bytes}."""
    if tensor.kind == F32:
        return tensor_bytes(random, tensor, scale)
    deviation = scale / math.sqrt(tensor.dims[0])
    key = (tensor.kind, deviation)
    if key not in tiles:
        rows = gguf_file.Tensor("tile", (TILE_ROW, TILE_ROWS), tensor.kind)
        tiles[key] = tensor_bytes(random, rows, deviation * math.sqrt(TILE_ROW))
    return gguf_file.Tiled(tiles[key], tensor.size)


def key_values(args):
    numbers = {
        "block_count": args.layers,
        "context_length": args.context,
        "embedding_length": args.hidden,
        "feed_forward_length": args.ffn,
        "attention.head_count": args.heads,
        "attention.head_count_kv": args.kv_heads,
        "attention.key_length": args.head_dim,
        "attention.value_length": args.head_dim,
        "rope.dimension_count": args.head_dim,
        "vocab_size": args.vocab,
    }
    family = "llama"
    if args.experts:
        family = "qwen3moe"
        numbers |= {"expert_count": args.experts,
                    "expert_used_count": args.experts_used,
                    "expert_feed_forward_length": args.expert_ffn}
    reals = {"attention.layer_norm_rms_epsilon": 1e-5, "rope.freq_base": 1e4}
    keys = {"general.architecture": gguf_file.string(family),
            "general.name": gguf_file.string("random"),
            "general.alignment": gguf_file.u32(gguf_file.ALIGNMENT),
            # Without it llama.cpp reads no file.
            "tokenizer.ggml.model": gguf_file.string("none")}
    for key, value in numbers.items():
        keys[f"{family}.{key}"] = gguf_file.u32(value)
    for key, value in reals.items():
        keys[f"{family}.{key}"] = gguf_file.f32(value)
    return keys


def write(args, file, more_keys=(), tiled=False):
    """Writes the checkpoint of `args`; more_keys: {key: encoded value}."""
    matrix = KINDS[args.type]
    tensors, scales = [], []
    for name, rows, inputs, scale in shapes(args):
        dims, kind = (inputs,), F32
        if rows is not None:
            dims += tuple(reversed(rows)) if type(rows) is tuple else (rows,)
            kind = F32 if name.endswith(ROUTER) else matrix
        tensors.append(gguf_file.Tensor(name + ".weight", dims, kind))
        scales.append(scale)
    random = np.random.default_rng(args.seed)
    tiles = {}
    data = (tiled_bytes(random, tensor, scale, tiles) if tiled
            else tensor_bytes(random, tensor, scale)
            for tensor, scale in zip(tensors, scales))
    gguf_file.write(file, key_values(args) | dict(more_keys), tensors, data)


def main():
    args = arguments()
    try:
        with gguf_file.replacing(args.out) as file:
            write(args, file, tiled=args.tile)
    except (OSError, MemoryError, gguf_file.Error) as error:
        sys.exit(f"make_random.py: {error}")


if __name__ == "__main__":
    main()
