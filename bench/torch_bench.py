#!/usr/bin/env python3
"""PyTorch at the shapes of kernel_bench, on the GPU: JSON lines.

  bench/torch_bench.py [--seconds N]

It measures torch.mm in f16 for each model's matrices, and
scaled_dot_product_attention in f16 for its attention, both with the kernel that
the library chooses; rows and positions are those of kernel_bench. Weights and
KV are read from several places in turn, so that none is in the cache. It is a
peer for speed alone: its sums are in another order, and a row's bits depend on
the rows beside it.
"""

import argparse
import json
import statistics
import sys
import time

MODELS = {  # name: hidden, heads, KV heads, head dimension, FFN, vocabulary
    "llama2-7b": (4096, 32, 32, 128, 11008, 32000),
    "llama3.1-8b": (4096, 32, 8, 128, 14336, 128256),
    "30b-a3b": (2048, 32, 4, 128, 0, 151936),
}
ROWS = (1, 17, 512)
POSITIONS = (4096, 131072)
POOL_BYTES = 4 << 30
ROUND_S = 0.012
ROUNDS = 3


def products(hidden, heads, kv_heads, head_dim, ffn, vocab):
    """Yields (part, outputs together, inputs) of a layer's matrices, and of the
    last one."""
    yield "qkv", (heads + 2 * kv_heads) * head_dim, hidden
    yield "o", hidden, heads * head_dim
    if ffn:
        yield "gate_up", 2 * ffn, hidden
        yield "down", hidden, ffn
    yield "output", vocab, hidden


def seconds_of(torch, call):
    """The seconds of call(turn) by the GPU's events, the median of some rounds
    of calls."""
    turn = 0

    def round_of(count):
        nonlocal turn
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(count):
            call(turn)
            turn += 1
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1e3 / count

    round_of(2)
    count = max(1, min(500, int(ROUND_S / max(round_of(2), 1e-6))))
    return statistics.median(round_of(count) for _ in range(ROUNDS))


def rows_of(torch, deadline):
    device = torch.device("cuda")
    pool = torch.randn(POOL_BYTES // 2, dtype=torch.float16, device=device)

    def place(size, turn):
        return turn % (pool.numel() // size) * size

    def line(op, model, part, rows, positions, seconds, byte_count, operations):
        return {"kind": "torch", "op": op, "model": model, "part": part,
                "type": "f16", "rows": rows, "positions": positions,
                "us": seconds * 1e6, "gb_s": byte_count / seconds * 1e-9,
                "tflop_s": operations / seconds * 1e-12}

    for name, shape in MODELS.items():
        _, heads, kv_heads, head_dim, _, _ = shape
        for rows in ROWS:
            for part, n, k in products(*shape):
                if part == "output" and rows > 64:
                    continue
                if time.monotonic() > deadline:
                    return
                x = torch.randn(rows, k, dtype=torch.float16, device=device)

                def multiply(turn, n=n, k=k, x=x):
                    at = place(n * k, turn)
                    torch.mm(x, pool[at:at + n * k].view(n, k).t())

                yield line("matmul", name, part, rows, 0,
                           seconds_of(torch, multiply),
                           2 * (n * k + rows * (n + k)), 2 * rows * n * k)
            for positions in POSITIONS:
                if time.monotonic() > deadline:
                    return
                q = torch.randn(1, heads, rows, head_dim, dtype=torch.float16,
                                device=device)
                size = kv_heads * positions * head_dim
                if 2 * size > pool.numel():
                    continue

                def attend(turn, q=q, size=size, positions=positions):
                    at = place(2 * size, turn)
                    k, v = (pool[at + i * size:at + (i + 1) * size].view(
                        1, kv_heads, positions, head_dim) for i in range(2))
                    # There is no mask: rows see everything, which costs no
                    # less.
                    torch.nn.functional.scaled_dot_product_attention(
                        q, k, v, enable_gqa=kv_heads != heads)

                try:
                    seconds = seconds_of(torch, attend)
                except RuntimeError as error:  # no memory, or no kernel
                    yield {"kind": "failed",
                           "why": f"torch attention {name}: {error}"[:300]}
                    torch.cuda.empty_cache()
                    continue
                yield line("attention", name, "", rows, positions, seconds,
                           4 * size + 4 * q.numel(),
                           4 * heads * head_dim * rows * positions)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=1e9, metavar="N",
                        help="begin nothing after so long")
    args = parser.parse_args()
    deadline = time.monotonic() + args.seconds
    try:
        import torch
    except ImportError as error:
        print(f"torch_bench.py: {error}", file=sys.stderr)
        return 77
    if not torch.cuda.is_available():
        print("torch_bench.py: PyTorch sees no GPU", file=sys.stderr)
        return 77
    for row in rows_of(torch, deadline):
        print(json.dumps(row), flush=True)
    print(json.dumps({"kind": "torch_version", "version": torch.__version__,
                      "cuda": torch.version.cuda}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
