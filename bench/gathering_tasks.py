"""Tasks that gather what stands all over a long text.

Tracking, common and frequent words are RULER's (arXiv 2404.06654): recipes,
with words of our own. Records are ours. Standard library only.
"""

import functools

import haystack
from long_task import Sample, Task, record_f1

_HOPS = 4
_COMMON = 10
_FEWER_BELOW = 4096  # tokens, where common words are rarer
_ZETA_2 = 1.6449340668482264
_TOWNS = ("Aarhus", "Bergen", "Cork", "Delft", "Eger", "Faro", "Ghent",
          "Hobart", "Izmir", "Jena", "Kiruna", "Lugano", "Malmo", "Nantes",
          "Oulu", "Porto", "Quito", "Riga", "Siena", "Turku")
_RECORD = "The parcel {} went to {} and cost {} crowns."
_QUESTION = ("List all parcels of this text as a JSON array of objects with "
             "id, town and price:")


def _chain(draw, size):
    """Returns the noise with a chain of assignments in it, the names and the
    value."""
    names = set()
    while len(names) <= _HOPS:
        names.add("".join(draw.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ", k=5)))
    names = draw.sample(sorted(names), len(names))
    (value,) = haystack.numbers(draw, 1, 5)
    said = [f"VAR {name} = {f'VAR {before}' if before else value}."
            for name, before in zip(names, [None, *names[:-1]], strict=True)]
    gaps = sorted(draw.sample(range(size + 1), len(said)))
    return haystack.put_in_gaps(haystack.cycle(haystack.NOISE, size), said,
                                gaps), names, value


def _tracking(draw, size, share, text):
    del share, text

    def asked(value):
        return (f"Which variables have the value {value}, given to them by a "
                "number or by another variable?",
                f"The {_HOPS + 1} variables with the value {value} are:")

    shown, names, value = _chain(draw, 2 * _HOPS)
    question, prefix = asked(value)
    example = f"{shown}\n\n{question} {prefix} {', '.join(names)}"
    hay, names, value = _chain(draw, size)
    question, prefix = asked(value)
    return Sample(
        f"{haystack.INTRODUCTION}{example}\n\n{hay}\n\n{question}", prefix,
        tuple(names))


def _numbered(draw, words, common, often, seldom):
    """Returns a shuffled, numbered list in which the first `common` words
    stand `often` times and the others `seldom`."""
    shown = words[:common] * often + words[common:] * seldom
    draw.shuffle(shown)
    return " ".join(f"{i}. {word}" for i, word in enumerate(shown, 1))


def _common(often, seldom, draw, size, share, text):
    del share
    words = text.words(draw, 40 + _COMMON + size)
    question = f"Which {_COMMON} words stand most often in this list?"
    prefix = f"The {_COMMON} words that stand most often in it are:"
    example, words = words[:40], words[40:]
    return Sample(
        f"{haystack.INTRODUCTION}{_numbered(draw, example, _COMMON, 10, 3)}\n\n"
        f"{question} {prefix} {', '.join(example[:_COMMON])}\n\n"
        f"{_numbered(draw, words, _COMMON, often, seldom)}\n\n{question}",
        prefix, tuple(words[:_COMMON]))


def _frequent(draw, size, share, text):
    """Coined words, the k-th of which makes 1 / (zeta(2) k^2) of the text."""
    del share, text
    counts = []
    while (count := round(size / _ZETA_2 / (len(counts) + 1)**2)) > 0:
        counts.append(count)
    words = ["...", *haystack.coined(draw, len(counts) - 1)]
    shown = [word for word, count in zip(words, counts, strict=True)
             for _ in range(count)]
    draw.shuffle(shown)
    return Sample(
        f"{haystack.INTRODUCTION}{' '.join(shown)}\n\nThis text has coined "
        "words, and dots that stand for no word. Which three words stand most "
        "often in it?", "The three words that stand most often in it are:",
        tuple(words[1:4]))


def _records(count, draw, size, share, text):
    del share
    ids = [f"K{number}" for number in haystack.numbers(draw, count, 4)]
    towns = [draw.choice(_TOWNS) for _ in ids]
    prices = [str(draw.randrange(100, 1000)) for _ in ids]
    records = [_RECORD.format(*record)
               for record in zip(ids, towns, prices, strict=True)]
    depths = sorted(draw.sample(haystack.DEPTHS, count))
    fields = [(key, name, value)
              for key, town, price in zip(ids, towns, prices, strict=True)
              for name, value in (("town", town), ("price", price))]
    return Sample(
        haystack.INTRODUCTION
        + f"{_RECORD.format('K100', 'Oslo', 50)} {_QUESTION} "
        '[{"id": "K100", "town": "Oslo", "price": 50}]\n\n'
        + haystack.put_at_depths(text.first(size), records, depths)
        + f"\n\n{_QUESTION}", '[{"id": "', tuple(fields), tuple(depths))


def tasks(length, records):
    """The tasks for texts of `length` tokens, with so many records."""
    common = (6, 1) if length < _FEWER_BELOW else (30, 3)
    return [
        Task("tracking", "RULER", 30, _tracking, 2 * _HOPS),
        Task("common words", "RULER", 120,
             functools.partial(_common, *common)),
        Task("frequent words", "RULER", 50, _frequent, 60),
        Task("records", "records", 64 * records,
             functools.partial(_records, records), score=record_f1),
    ]
