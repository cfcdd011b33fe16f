#!/usr/bin/env python3
"""Makes golden logits of rows that read less than everything before them.

  make_masked.py [--out DIR]     DIR holds the tiny checkpoints

transformers in float64 (reference.py), whose attention is told per layer which
positions each row may see, as SPEED and SADAS define it. Written beside the
tokens of a checkpoint, of which the first PROMPT are a prompt: speed.npy, the
rows from the prompt's tail on; sadas.npy, those from the prompt's last on. Both
float32 [rows, vocab].
"""

import argparse
import pathlib

import numpy as np
import torch

import reference

CHECKPOINTS = ("llama_mha", "llama_gqa", "qwen3", "smollm3", "granite",
               "ministral3")
PROMPT = 90
# SPEED: of two layers the second sees the anchor, and all from the tail on.
CUT, ANCHOR, TAIL = 1, 2, 4
# SADAS: so many tokens after the prompt think, over a window.
THOUGHT, WINDOW, SINK = 40, 24, 3


def causal(count):
    return torch.ones(count, count, dtype=torch.bool).tril()


def speed_mask(layer, count):
    seen = causal(count)
    if layer >= CUT:
        position = torch.arange(count)
        seen &= (position < ANCHOR) | (position >= PROMPT - TAIL)
        seen |= torch.eye(count, dtype=torch.bool)  # of rows nobody sees
    return seen


def sadas_mask(_layer, count):
    seen = causal(count)
    row = torch.arange(count)[:, None]
    position = torch.arange(count)[None, :]
    thinks = (row >= PROMPT) & (row < PROMPT + THOUGHT)
    return seen & (~thinks | (position < SINK) | (position > row - WINDOW))


@torch.inference_mode()
def masked_logits(model, tokens, mask_of):
    """The logits where row t of layer l sees mask_of(l, n)[t]."""

    def hook(layer):
        def replace(_module, args, kwargs):
            seen = mask_of(layer, len(tokens))
            mask = torch.zeros(seen.shape, dtype=torch.float64)
            mask.masked_fill_(~seen, float("-inf"))  # a row sees itself
            kwargs["attention_mask"] = mask[None, None]
            return args, kwargs
        return replace

    hooks = [block.register_forward_pre_hook(hook(i), with_kwargs=True)
             for i, block in enumerate(model.model.layers)]
    try:
        with reference.double_precision():
            return reference.logits(model, tokens)
    finally:
        for one in hooks:
            one.remove()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=pathlib.Path,
                        default=pathlib.Path(__file__).parent / "checkpoints")
    folder = parser.parse_args().out
    for name in CHECKPOINTS:
        directory = folder / name
        tokens = reference.read_tokens(directory / "tokens.txt")
        model = reference.to_double(reference.load_directory(directory))
        whole = masked_logits(model, tokens, lambda _, n: causal(n))
        golden = np.load(directory / "golden.npy")
        assert np.abs(whole - golden).max() < 1e-6, "the hooks change nothing"
        for file, mask, first in (("speed", speed_mask, PROMPT - TAIL),
                                  ("sadas", sadas_mask, PROMPT - 1)):
            logits = masked_logits(model, tokens, mask)[first:]
            np.save(directory / f"{file}.npy", logits.astype(np.float32))
            print(name, file, logits.shape,
                  f"from the model's: {np.abs(logits - whole[first:]).max():.3f}")


if __name__ == "__main__":
    main()
