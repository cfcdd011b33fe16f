#!/usr/bin/env python3
"""Makes the golden log-probabilities of SmolLM2 over the start of a novel.

  make_smollm2.py --model FILE.gguf --text NOVEL.txt [--out DIR] [--full FILE]

The reference is transformers in float64 on the dequantised weights of the GGUF
file (reference.py), over the first 6,144 tokens of the text. What is written
is small: the 64 most likely tokens at some positions, and the loss at all of
them. --full also writes the float32 logits of every position (1.2 GB), for an
exact comparison by ../compare_logits.py. Takes five minutes on two cores.
"""

import argparse
import hashlib
import json
import pathlib

import gguf
import numpy as np
import tokenizers
import torch
import transformers

import reference

NUM_TOKENS = 6144
TOP = 64
CHUNK = 256  # rows of one forward pass; bounds the memory of the logits


def tokenizer_of(reader):
    """The BPE of a GGUF file with SmolLM2's pre-tokeniser."""
    if reader.get_field("tokenizer.ggml.pre").contents() != "smollm":
        raise ValueError("the file has another pre-tokeniser than SmolLM2's")
    tokens = reader.get_field("tokenizer.ggml.tokens").contents()
    merges = reader.get_field("tokenizer.ggml.merges").contents()
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.BPE(
            vocab={token: index for index, token in enumerate(tokens)},
            merges=[tuple(merge.split(" ")) for merge in merges],
        )
    )
    parts = tokenizers.pre_tokenizers
    tokenizer.pre_tokenizer = parts.Sequence(
        [
            parts.Digits(individual_digits=True),
            parts.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    return tokenizer


def logits_by_chunk(model, tokens):
    """Yields (first position, float64 logits [rows, vocab])."""
    cache = transformers.DynamicCache(config=model.config)
    for first in range(0, len(tokens), CHUNK):
        rows = torch.tensor([tokens[first : first + CHUNK]])
        out = model(rows, past_key_values=cache, use_cache=True)
        yield first, out.logits[0]


def golden_positions(num_tokens):
    """The first 512 positions, then every 32nd."""
    return [i for i in range(num_tokens) if i < 512 or i % 32 == 0]


def sha256(path):
    """The checksum of a file, as sha256sum prints it."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


@torch.inference_mode()
def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--text", type=pathlib.Path, required=True)
    parser.add_argument("--full", type=pathlib.Path, help="all logits, .npy")
    parser.add_argument(
        "--out",
        type=pathlib.Path,
        default=pathlib.Path(__file__).parent / "smollm2",
    )
    args = parser.parse_args()

    tokenizer = tokenizer_of(gguf.GGUFReader(args.model))
    text = args.text.read_bytes().decode("utf-8")
    tokens = tokenizer.encode(text).ids[:NUM_TOKENS]
    model = reference.to_double(reference.load_gguf(args.model))
    vocab_size = model.config.vocab_size
    full = None
    if args.full:
        full = np.lib.format.open_memmap(
            args.full, "w+", np.float32, (len(tokens), vocab_size)
        )

    positions = golden_positions(len(tokens))
    top_ids = np.zeros((len(positions), TOP), np.uint16)
    top_log_probs = np.zeros((len(positions), TOP), np.float32)
    nll = np.zeros(len(tokens) - 1)
    row_of = {position: row for row, position in enumerate(positions)}
    with reference.double_precision():
        for first, logits in logits_by_chunk(model, tokens):
            if full is not None:
                full[first : first + len(logits)] = logits.numpy()
            log_probs = torch.log_softmax(logits, dim=-1)
            best = torch.topk(log_probs, TOP, dim=-1)
            for offset in range(len(logits)):
                position = first + offset
                if position < len(nll):
                    nll[position] = -log_probs[offset, tokens[position + 1]]
                if position in row_of:
                    row = row_of[position]
                    top_ids[row] = best.indices[offset].numpy()
                    top_log_probs[row] = best.values[offset].numpy()
            print(f"{first + len(logits)} of {len(tokens)}", flush=True)

    args.out.mkdir(parents=True, exist_ok=True)
    reference.write_tokens(args.out / "tokens.txt", tokens)
    np.save(args.out / "positions.npy", np.array(positions, np.int32))
    np.save(args.out / "top_ids.npy", top_ids)
    np.save(args.out / "top_log_probs.npy", top_log_probs)
    np.save(args.out / "nll.npy", nll.astype(np.float32))
    about = {
        "model": args.model.name,
        "model_sha256": sha256(args.model),
        "text": args.text.name,
        "text_sha256": sha256(args.text),
        "tokens": len(tokens),
        "scored": len(nll),
        "nll": float(nll.mean()),
        "perplexity": float(np.exp(nll.mean())),
        "arithmetic": "float64",
        "made_with": {
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "gguf": gguf_version(),
        },
    }
    (args.out / "about.json").write_text(json.dumps(about, indent=2) + "\n")
    print(json.dumps(about, indent=2))


def gguf_version():
    """The gguf package keeps its version in its metadata alone."""
    from importlib.metadata import version

    return version("gguf")


if __name__ == "__main__":
    main()
