"""Needles: measures if a view finds a string that stands far back in the text.

A string of random tokens stands early in a text, after a cue; at the end the cue
comes again, and the likelihood of the string is measured there. Under the full
view the model copies it; if it never stood in the text, the model cannot know
it. Recovery says how far a view comes from the latter to the former, for items
in which the difference is at least two nats a token:

  (nll_absent - nll_view) / (nll_absent - nll_full)

A window does not reach the string, so its recovery is about 0. Standard library
only.
"""

import math
import random

CUE = " The secret word, which nobody else may know, is:"
STRING = 12  # tokens
LEAST_GAIN = 2  # nats a token


class Needle:
    """One item: ids with the string early, and the same without it."""

    def __init__(self, ids, cue, seed, length):
        draw = random.Random(seed)
        # The string is of tokens of the text, none of them twice.
        string = draw.sample(sorted(set(ids[:length])), STRING)
        at = draw.randrange(length // 20, length // 4)
        room = length - 2 * len(cue) - STRING
        begin = draw.randrange(max(1, len(ids) - length))
        text = ids[begin:begin + room]
        self.present = [*text[:at], *cue, *string, *text[at:], *cue, *string]
        self.absent = [*text, *cue, *string]


def nll(program, path, ids, *flags):
    """Returns the string's nats a token under the flags and the full view."""
    path.write_text(" ".join(map(str, ids)))
    d = program.document("eval", "--tokens", path, "--prefill",
                         len(ids) - STRING, "--verify-against", "full", *flags)
    return d["nll"], math.log(d["perplexity_full"])


def recoveries(program, folder, ids, policies, items, length):
    """Returns {name: [recovery of each item that counts]} for `policies`,
    [(name, flags)]."""
    cue = program.document("tokenize", "-p", CUE)["tokens"]
    path = folder / "needle.txt"
    found = {name: [] for name, _ in policies}
    for seed in range(items):
        item = Needle(ids, cue, seed, length)
        name, flags = policies[0]
        _, absent = nll(program, path, item.absent, *flags)
        for name, flags in policies:
            policy, full = nll(program, path, item.present, *flags)
            if absent - full >= LEAST_GAIN:
                found[name].append((absent - policy) / (absent - full))
    return found
