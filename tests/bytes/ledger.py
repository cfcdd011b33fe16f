"""Checks of a run's report beside its bytes.

The bytes that cross a link follow from the positions alone, by
offload/KV_FORMAT.md, and those that ranks take from each other by
offload/ranks/README.md. Each function returns a check for a `Case`.
"""

import collections
import re

from runs import tokens_of

PAGE_TOKENS = 128
UNITS = {"MB/s": 1e6, "GB/s": 1e9}
ROW_BYTES = {"f32": lambda n: 4 * n, "f16": lambda n: 2 * n,
             "q8_0": lambda n: n // 32 * 34, "q4_0": lambda n: n // 32 * 18}


def page_bytes(config, kv="f16", heads=None):
    """The bytes of K and V in a page of one layer."""
    heads = config["kv_heads"] if heads is None else heads
    return 2 * heads * PAGE_TOKENS * ROW_BYTES[kv](config["head_dim"])


def rate_of(link):
    number, unit = re.fullmatch(r"([\d.]+)(.*)", link).groups()
    return float(number) * UNITS[unit]


def steps_of(document):
    return len(tokens_of(document)) - 1  # a prefill gave the first token


def check_traffic(of, prompt, steps, hidden):
    """Checks the bytes over one link of a prompt that went layer by layer and
    of single-token steps; returns those that were fetched ahead."""
    f = of["formula"]
    assert prompt > 64, "a prompt that goes layer by layer"

    def swept(length):
        return max(length // PAGE_TOKENS - f["resident_pages"], 0)

    # The first step reads the pages that are full when it begins, each later
    # one those that were full when the one before it began.
    begins = [prompt + step for step in range(steps)]
    reads = [swept(length) for length in begins[:1] + begins[:-1]]
    ahead = 2 * swept(begins[-1])
    expected = {
        "page_tokens": PAGE_TOKENS,
        "swept_pages": f["layers"] * sum(reads) + ahead,
        "ahead_pages": ahead,
        "closed_pages": f["layers"] * ((prompt + steps) // PAGE_TOKENS),
        "reopened_pages": 0, "resumed_pages": 0, "resumed_bytes": 0,
        "parked_pages": 0, "parked_bytes": 0, "gathered_bytes": 0,
    }
    for name, count in expected.items():
        assert f[name] == count, (name, f[name], count)
    # The prompt's hidden states come up before every layer but the first, and
    # go down after every layer; the last rows stay up after the last layer.
    up, down = f["states_up_bytes"], f["states_down_bytes"]
    states = 4 * hidden * prompt
    assert up in (0, (f["layers"] - 1) * states), (up, states)
    assert up <= down <= up + states, (up, down)
    up += f["page_bytes"] * f["swept_pages"]
    down += f["page_bytes"] * f["closed_pages"]
    assert of["h2d_bytes"] == up, (of, up)
    assert of["d2h_bytes"] == down, (of, down)
    return ahead * f["page_bytes"]


def one_link(config, kv="f16", resident=None, swept=None, tell=False):
    """The bytes over the link of one rank, and a decode that takes no less
    than its bytes over the link's rate. `resident` pages stay on the device;
    `swept` is whether any page does not."""

    def check(document, _, run):
        ledger, f = document["ledger"], document["ledger"]["formula"]
        ahead = check_traffic(ledger, document["prompt_tokens"],
                              steps_of(document), config["hidden"])
        assert f["page_bytes"] == page_bytes(config, kv), f
        assert resident in (None, f["resident_pages"]), f
        assert swept in (None, f["swept_pages"] > 0), f
        verify = ledger["phases"]["verify"]
        seconds = document["tbt_ms"]["samples"] / document["decode_tok_s"]
        bound = (verify["h2d_bytes"] - ahead) / rate_of(run.place.link)
        assert seconds >= bound, (seconds, bound)
        return tell and (
            f"{document['prompt_tokens']} tokens, {f['resident_pages']} pages "
            f"resident, h2d {ledger['h2d_bytes']} bytes as the formula; decode "
            f"{seconds:.2f} s = {seconds / bound:.3f} x bytes/rate, link busy "
            f"{100 * verify['link_busy_share']:.1f} %")

    return check


def gathered(config, ranks, rank, rows, logit_rows):
    """The bytes that a rank takes from others: offload/ranks/README.md."""

    def own(size):
        panels = -(-size // 16)
        return (min(size, (rank + 1) * panels // ranks * 16) -
                rank * panels // ranks * 16)

    kv, heads = config["kv_heads"], config["heads"]
    assert kv >= ranks
    own_heads = ((rank + 1) * kv // ranks - rank * kv // ranks) * heads // kv
    hidden, ffn, vocab = config["hidden"], config["ffn"], config["vocab"]
    layer = ((heads - own_heads) * config["head_dim"] +
             2 * (hidden - own(hidden)) + ffn - own(ffn))
    return 4 * (rows * config["layers"] * layer +
                logit_rows * (vocab - own(vocab)))


def each_link(config, stays):
    """Each rank's bytes over its own link, and those that it gathered. Pages
    stay on the device of every rank if it has bytes to spare, else of none."""

    def check(document, plain, run):
        prompt, steps = document["prompt_tokens"], steps_of(document)
        ranks = document["ranks"]
        assert len(ranks) == run.place.ranks > 1
        for rank, of in enumerate(ranks):
            check_traffic(of, prompt, steps, config["hidden"])
            wanted = gathered(config, len(ranks), rank, prompt + steps,
                              1 + steps)
            assert of["gathered_bytes"] == wanted, (rank, of, wanted)
        # The rank that needs the most device memory keeps the spare bytes.
        assert any(of["h2d_bytes"] > 0 for of in ranks)
        assert stays == (min(of["formula"]["resident_pages"]
                             for of in ranks) > 0), ranks
        for name in ("h2d_bytes", "d2h_bytes"):
            assert document["ledger"][name] == sum(of[name] for of in ranks)
        one, many = (of["tbt_ms"]["p50"] for of in (plain, document))
        return (f"{prompt} tokens over {run.place.link}, {len(ranks)} ranks: "
                f"{many:.1f} ms a token, {one / many:.2f} times one rank's "
                f"speed")

    return check


def moves_pages(document, _, run):
    """Ranks behind links use them. Plain forms may leave pages that they do not
    read in the host tier, and a rank that needs less than another keeps
    more."""
    ranks = document["ranks"]
    assert len(ranks) == run.place.ranks
    way = "d2h_bytes" if "--plain" in run.policy else "h2d_bytes"
    moved = any(of[way] > 0 for of in ranks)
    assert moved == (run.place.link is not None), ranks


def host_attends(some):
    """The host attended to `some` pages, which did not cross the link, or to
    none."""

    def check(document, *_):
        f = document["ledger"]["formula"]
        assert (f["host_pages"] > 0) == some, f

    return check


def refuses_less(least):
    """The refusal of a device names the bytes that `plan` gave."""

    def check(document, _, run):
        (named,) = re.findall(r"needs (\d+) bytes",
                              document["error"]["message"])
        assert int(named) == least, (named, least)

    return check


class Drafts:
    """Sums of drafts that held and that did not, by policy and drafter. A level
    that drafts nothing, or is never rejected, proves nothing."""

    def __init__(self):
        self.levels = collections.defaultdict(lambda: [0, 0])
        self.sweeps = self.tokens = 0

    def of(self, name, least_a_sweep):
        """The check of a run of `name`: more tokens a sweep than this."""

        def check(document, *_):
            speculation = document["speculation"]
            assert speculation["tokens_per_sweep"] > least_a_sweep, speculation
            for level in speculation["levels"]:
                held = self.levels[name, level["drafter"]]
                held[0] += level["accepted"]
                held[1] += level["checked"] - level["accepted"]
            self.sweeps += speculation["sweeps"]
            self.tokens += len(tokens_of(document))

        return check

    def finish(self):
        for (name, level), (held, refused) in sorted(self.levels.items()):
            print(f"  {name}, level {level}: {held} held, {refused} refused, "
                  f"{held / max(1, held + refused):.2f}", flush=True)
            assert held > 0 and refused > 0, (name, level)
        print(f"  {self.tokens / self.sweeps:.1f} tokens a sweep", flush=True)
