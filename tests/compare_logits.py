#!/usr/bin/env python3
"""Compares logits with the golden or with a full reference of SmolLM2.

  tiercel eval -m FILE.gguf --tokens tests/golden/smollm2/tokens.txt \\
      --logits OUT.npy
  compare_logits.py OUT.npy                     against tests/golden/smollm2
  compare_logits.py OUT.npy --full FULL.npy     against every logit

Per position, with p the reference and q the logits under test:
  KL(p || q), in nats. Against the golden the distributions are the 64 tokens
  that are most likely under p and one bucket for all others: a lower bound,
  and the bucket holds 8 % of p on average.
  Top-1 agreement: both have the same most likely token.
  The golden has only some positions: in a mean each stands for itself and those
  up to the next, so that the whole text counts evenly.
  Perplexity over all positions of OUT.npy but the last, which predicts a token
  that is not in the file. OUT.npy may hold a prefix of the text.

Exits 1 when a bound is exceeded. Needs numpy, nothing else.
"""

import argparse
import json
import pathlib
import sys

import numpy as np

GOLDEN = pathlib.Path(__file__).parent / "golden" / "smollm2"
CHUNK = 128  # rows widened to float64 at a time


def log_softmax(logits):
    """Turns rows of logits into rows of log-probabilities, in float64."""
    logits = logits.astype(np.float64)
    logits -= logits.max(axis=1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def compare_golden(logits, golden):
    """KL, agreement and weights at the golden's positions, NLL at all."""
    tokens = np.array((golden / "tokens.txt").read_text().split(), np.int64)
    positions = np.load(golden / "positions.npy")
    positions = positions[positions < len(logits)]
    top_ids = np.load(golden / "top_ids.npy").astype(np.int64)
    top_log_probs = np.load(golden / "top_log_probs.npy").astype(np.float64)
    row_of = {int(position): row for row, position in enumerate(positions)}
    kl, agree, nll = [], [], []
    for first in range(0, len(logits), CHUNK):
        log_q = log_softmax(logits[first : first + CHUNK])
        nll.append(next_token_nll(log_q, tokens, first))
        for offset, row_q in enumerate(log_q):
            row = row_of.get(first + offset)
            if row is None:
                continue
            ids, log_p = top_ids[row], top_log_probs[row]
            kl.append(bucketed_kl(log_p, row_q[ids]))
            agree.append(row_q.argmax() == ids[0])
    nll = np.concatenate(nll)
    weights = np.diff(positions, append=len(logits))
    return kl, agree, weights, nll, np.load(golden / "nll.npy")[: len(nll)]


def compare_full(logits, full, golden):
    """KL, agreement, equal weights and NLL at every position."""
    tokens = np.array((golden / "tokens.txt").read_text().split(), np.int64)
    kl, agree, nll, reference_nll = [], [], [], []
    for first in range(0, len(logits), CHUNK):
        log_q = log_softmax(logits[first : first + CHUNK])
        log_p = log_softmax(full[first : first + len(log_q)])
        kl.extend((np.exp(log_p) * (log_p - log_q)).sum(axis=1))
        agree.extend(log_p.argmax(axis=1) == log_q.argmax(axis=1))
        nll.append(next_token_nll(log_q, tokens, first))
        reference_nll.append(next_token_nll(log_p, tokens, first))
    nll = np.concatenate(nll)
    return kl, agree, np.ones(len(kl)), nll, np.concatenate(reference_nll)


def next_token_nll(log_probs, tokens, first):
    """-log p(next token) of rows that start at position `first`."""
    following = tokens[first + 1 : first + 1 + len(log_probs)]
    return -log_probs[np.arange(len(following)), following]


def bucketed_kl(log_p, log_q):
    """KL over the given tokens and one bucket for all others."""
    rest_p = max(1 - np.exp(log_p).sum(), 1e-12)
    rest_q = max(1 - np.exp(log_q).sum(), 1e-12)
    rest = rest_p * np.log(rest_p / rest_q)
    return (np.exp(log_p) * (log_p - log_q)).sum() + rest


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("logits", type=pathlib.Path, help="[n, vocab], .npy")
    parser.add_argument("--golden", type=pathlib.Path, default=GOLDEN)
    parser.add_argument("--full", type=pathlib.Path, help="of make_smollm2.py")
    parser.add_argument("--max-kl", type=float, help="bound of the mean KL")
    parser.add_argument("--min-top1", type=float, help="bound, 0 to 1")
    parser.add_argument(
        "--max-ppl-change", type=float, help="bound of |change|, 0.01 = 1 %%"
    )
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()

    logits = np.load(args.logits, mmap_mode="r")
    if args.full:
        full = np.load(args.full, mmap_mode="r")
        found = compare_full(logits, full, args.golden)
    else:
        found = compare_golden(logits, args.golden)
    kl, agree, weights, nll, reference_nll = map(np.asarray, found)
    if not np.isfinite(nll).all() or not np.isfinite(kl).all():
        sys.exit(f"{args.logits}: not all logits are finite")
    change = float(np.exp(nll.mean() - reference_nll.mean()) - 1)
    result = {
        "positions": len(logits),
        "compared": len(kl),
        "kl_mean": float(np.average(kl, weights=weights)),
        "kl_p99": float(np.quantile(kl, 0.99)),
        "kl_max": float(kl.max()),
        "top1": float(np.average(agree, weights=weights)),
        "perplexity": float(np.exp(nll.mean())),
        "reference_perplexity": float(np.exp(reference_nll.mean())),
        "perplexity_change": change,
    }
    if args.json:
        print(json.dumps(result, indent=2))
    else:
        for key, value in result.items():
            print(f"{key:22} {value:.6g}")

    broken = []
    if args.max_kl is not None and result["kl_mean"] > args.max_kl:
        broken.append(f"mean KL above {args.max_kl}")
    if args.min_top1 is not None and result["top1"] < args.min_top1:
        broken.append(f"top-1 agreement below {args.min_top1}")
    if args.max_ppl_change is not None and abs(change) > args.max_ppl_change:
        broken.append(f"perplexity changed by more than {args.max_ppl_change}")
    if broken:
        sys.exit("; ".join(broken))


if __name__ == "__main__":
    main()
