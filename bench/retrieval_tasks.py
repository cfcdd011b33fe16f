"""Tasks that ask for something that stands somewhere in a long text.

The eight needles are RULER's (arXiv 2404.06654), pass key, number and pairs
those of InfiniteBench (arXiv 2402.13718): recipes, with words of our own.
Standard library only.
"""

import functools
import json

import haystack
from long_task import Sample, Task


def _listed(parts):
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last


def _values(draw, kind, count):
    return (haystack.numbers if kind == "number" else haystack.uuids)(draw,
                                                                      count)


def _needle(kind, key, value):
    return f"One of the special magic {kind}s for {key} is: {value}."


def _needles(where, kind, keys, values, asked, draw, size, share, text):
    """One of the eight variants. `keys` have `values` values each; of the
    first `asked` keys all values are asked. They stand in "noise", "prose" or
    other "needles"; if these are uuids, their keys are uuids, too."""
    del share
    others = size if where == "needles" else 0
    like = haystack.uuids if others and kind == "uuid" else haystack.names
    names = like(draw, keys + others)
    said = _values(draw, kind, keys * values + others)
    needles = [(names[i // values], said[i]) for i in range(keys * values)]
    lines = [_needle(kind, *needle) for needle in needles]
    if others:
        hay = [_needle(kind, *other) for other in zip(
            names[keys:], said[keys * values:], strict=True)]
    elif where == "noise":
        hay = haystack.cycle(haystack.NOISE, size)
    else:
        hay = text.first(size)
    depths = draw.sample(haystack.DEPTHS, len(lines))
    wanted = _listed(names[:asked])
    of_key = f"for {wanted} mentioned in the provided text"
    is_one = asked * values == 1
    return Sample(
        haystack.INTRODUCTION + haystack.put_at_depths(hay, lines, depths)
        + "\n\nWhat "
        + (f"is the special magic {kind}" if is_one else
           f"are all the special magic {kind}s") + f" {of_key}?",
        f"The special magic {kind} {of_key} is" if is_one else
        f"The special magic {kind}s {of_key} are",
        tuple(said[:asked * values]), tuple(depths))


def _pass_key(draw, size, share, text):
    del text
    (key,) = haystack.numbers(draw, 1, 5)
    return Sample(
        haystack.INTRODUCTION + haystack.put_at_depths(
            haystack.cycle(haystack.NOISE, size),
            [f"The pass key is {key}. Keep it in mind: {key} is the pass key."],
            [100 * share])
        + "\n\nWhat is the pass key?", "The pass key is", (key,),
        (100 * share,))


def _number(draw, size, share, text):
    """Ten digits, some of which stand two or three times beside each other."""
    del text
    digits = ""
    while len(digits) < 10:
        digits += draw.choice("0123456789".replace(digits[-1:] or "-", "")
                              ) * draw.randint(1, 3)
    digits = digits[:10]
    return Sample(
        haystack.INTRODUCTION + haystack.put_at_depths(
            haystack.cycle(haystack.NOISE, size),
            [f"The sequence of digits is {digits}. Keep it in mind: {digits} "
             "is the sequence of digits."], [100 * share])
        + "\n\nWhat is the sequence of digits?", "The sequence of digits is",
        (digits,), (100 * share,))


def _pairs(draw, size, share, text):
    del share, text
    keys, values = haystack.uuids(draw, size), haystack.uuids(draw, size)
    asked = draw.randrange(size)
    return Sample(
        haystack.INTRODUCTION + json.dumps(dict(zip(keys, values, strict=True)))
        + f'\n\nWhat is the value of the key "{keys[asked]}" in this JSON '
        "object?",
        f'The value of the key "{keys[asked]}" is "', (values[asked],),
        (100 * asked / size,))


_VARIANTS = {  # haystack, kind of value, keys, values of each, keys asked
    "single 1": ("noise", "number", 1, 1, 1),
    "single 2": ("prose", "number", 1, 1, 1),
    "single 3": ("prose", "uuid", 1, 1, 1),
    "multikey 1": ("prose", "number", 4, 1, 1),
    "multikey 2": ("needles", "number", 1, 1, 1),
    "multikey 3": ("needles", "uuid", 1, 1, 1),
    "multivalue": ("prose", "number", 1, 4, 1),
    "multiquery": ("prose", "number", 4, 1, 4),
}
NEEDLES = [Task(name, "RULER", 128, functools.partial(_needles, *variant))
           for name, variant in _VARIANTS.items()]
INFINITE = [Task("pass key", "InfiniteBench", 6, _pass_key),
            Task("number string", "InfiniteBench", 12, _number),
            Task("pairs", "InfiniteBench", 50, _pairs)]
