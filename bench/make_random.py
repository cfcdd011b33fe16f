#!/usr/bin/env python3
"""Writes a llama checkpoint of any shape with random weights, as GGUF.

  bench/make_random.py --layers 3 --hidden 4096 --heads 32 --ffn 256 \\
      --vocab 512 --context 32896 OUT.gguf

For measurements and long tests that need a shape and not a sense: there is no
tokenizer, only ids go in and out. The same arguments give the same bytes.

Every matrix is normal with the variance 1 / its inputs; those that write to
the residual stream (attn_output, ffn_down) with that over 2 x layers. So the
stream keeps a variance of about 1 at any depth, and logits, of rows normed to
1, have a standard deviation of about 1. Norms are ones.

Needs numpy, nothing else.
"""

import argparse
import math
import os
import pathlib
import struct
import sys

import numpy as np

F32, F16, Q8_0 = 0, 1, 8  # GGUF's numbers for tensor types
ALIGNMENT = 32
BLOCK = 32  # elements of a Q8_0 block: f16 scale, int8 quants


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
    parser.add_argument("--vocab", default=1024, **number)
    parser.add_argument("--context", default=4096, **number)
    parser.add_argument("--type", choices=("f16", "q8_0"), default="q8_0")
    parser.add_argument("--seed", default=0, **number)
    args = parser.parse_args()
    args.kv_heads = args.kv_heads or args.heads
    args.head_dim = args.head_dim or args.hidden // max(args.heads, 1)
    for name in ("layers", "hidden", "heads", "kv_heads", "head_dim", "ffn",
                 "vocab", "context"):
        if getattr(args, name) < 1:
            parser.error(f"{name}: got {getattr(args, name)}, need 1 or more")
    if args.seed < 0:
        parser.error(f"seed: got {args.seed}, need 0 or more")
    if args.heads % args.kv_heads != 0:
        parser.error(f"kv-heads: got {args.kv_heads}, need a divisor of "
                     f"{args.heads} heads")
    if args.head_dim % 2 != 0:
        parser.error(f"head-dim: got {args.head_dim}, need an even number")
    for name, inputs in (("hidden", args.hidden), ("ffn", args.ffn),
                         ("heads x head-dim", args.heads * args.head_dim)):
        if args.type == "q8_0" and inputs % BLOCK != 0:
            parser.error(f"{name}: got {inputs}, q8_0 needs a multiple of "
                         f"{BLOCK}")
    return args


def shapes(args):
    """(name, rows, inputs, scale) of every tensor; rows None: a norm."""
    query, kv = args.heads * args.head_dim, args.kv_heads * args.head_dim
    to_stream = 1 / math.sqrt(2 * args.layers)
    yield "token_embd", args.vocab, args.hidden, math.sqrt(args.hidden)
    for layer in range(args.layers):
        block = f"blk.{layer}."
        yield block + "attn_norm", None, args.hidden, 1
        yield block + "attn_q", query, args.hidden, 1
        yield block + "attn_k", kv, args.hidden, 1
        yield block + "attn_v", kv, args.hidden, 1
        yield block + "attn_output", args.hidden, query, to_stream
        yield block + "ffn_norm", None, args.hidden, 1
        yield block + "ffn_gate", args.ffn, args.hidden, 1
        yield block + "ffn_up", args.ffn, args.hidden, 1
        yield block + "ffn_down", args.hidden, args.ffn, to_stream
    yield "output_norm", None, args.hidden, 1
    yield "output", args.vocab, args.hidden, 1


def quantised(x):
    """float32 [rows, inputs] -> the bytes of its Q8_0 blocks."""
    x = x.reshape(-1, BLOCK)
    scale = np.abs(x).max(axis=1, keepdims=True) / np.float32(127)
    quants = np.rint(x / np.where(scale == 0, 1, scale))
    blocks = np.empty(len(x), np.dtype([("d", "<f2"), ("q", "i1", BLOCK)]))
    blocks["d"] = scale[:, 0]
    blocks["q"] = quants
    return blocks.tobytes()


def tensor_bytes(random, rows, inputs, scale, kind):
    if kind == F32:
        return np.ones(inputs, "<f4").tobytes()
    x = random.standard_normal((rows, inputs), np.float32)
    x *= np.float32(scale / math.sqrt(inputs))
    return quantised(x) if kind == Q8_0 else x.astype("<f2").tobytes()


def size_of(rows, inputs, kind):
    if kind == F32:
        return 4 * inputs
    row = inputs // BLOCK * (2 + BLOCK) if kind == Q8_0 else 2 * inputs
    return rows * row


def text(value):
    value = value.encode()
    return struct.pack("<Q", len(value)) + value


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
    reals = {"attention.layer_norm_rms_epsilon": 1e-5, "rope.freq_base": 1e4}
    yield text("general.architecture") + struct.pack("<I", 8) + text("llama")
    yield text("general.name") + struct.pack("<I", 8) + text("random")
    yield text("general.alignment") + struct.pack("<II", 4, ALIGNMENT)
    for key, value in numbers.items():
        yield text("llama." + key) + struct.pack("<II", 4, value)
    for key, value in reals.items():
        yield text("llama." + key) + struct.pack("<If", 6, value)


def padded(size):
    return -(-size // ALIGNMENT) * ALIGNMENT


def write(args, file):
    matrix = Q8_0 if args.type == "q8_0" else F16
    tensors = [(name, rows, inputs, scale, F32 if rows is None else matrix)
               for name, rows, inputs, scale in shapes(args)]
    keys = list(key_values(args))
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    header += b"".join(keys)
    offset = 0
    for name, rows, inputs, _, kind in tensors:
        dims = (inputs,) if rows is None else (inputs, rows)
        header += text(name + ".weight") + struct.pack("<I", len(dims))
        header += struct.pack(f"<{len(dims)}Q", *dims)
        header += struct.pack("<IQ", kind, offset)
        offset += padded(size_of(rows, inputs, kind))
    file.write(header.ljust(padded(len(header)), b"\0"))
    random = np.random.default_rng(args.seed)
    for name, rows, inputs, scale, kind in tensors:
        data = tensor_bytes(random, rows, inputs, scale, kind)
        assert len(data) == size_of(rows, inputs, kind), name
        file.write(data.ljust(padded(len(data)), b"\0"))


def main():
    args = arguments()
    part = args.out.with_name(args.out.name + ".part")
    try:
        with open(part, "wb") as file:
            write(args, file)
        os.replace(part, args.out)
    except OSError as error:
        part.unlink(missing_ok=True)
        sys.exit(f"make_random.py: {error}")


if __name__ == "__main__":
    main()
