"""A task over a long text: its samples, and how an answer is scored.

Standard library only.
"""

import dataclasses
import json
import random
import re
from typing import Callable


@dataclasses.dataclass(frozen=True)
class Sample:
    """A message to the model, the beginning of its answer, and the references
    that the rest should have. `depths` says where they stand in the haystack,
    in percent, if the task places them so."""
    message: str
    prefix: str
    references: tuple
    depths: tuple = ()


def share_found(sample, output):
    """The share of the references that the output has, in any case of
    letters."""
    output = output.lower()
    found = sum(reference.lower() in output for reference in sample.references)
    return found / len(sample.references)


def in_first_sentence(sample, output):
    """The same for the first sentence of the output that has a word."""
    parts = re.split(r"[.!?\n]", output)
    return share_found(sample, next((p for p in parts if p.strip()), ""))


def record_f1(sample, output):
    """The F1 score of the fields of records: a field counts if its record's id,
    its name and its value are right. References are (id, name, value)."""
    wanted = set(sample.references)
    found = set()
    for written in re.findall(r"\{[^{}]*\}", sample.prefix + output):
        try:
            record = json.loads(written)
        except ValueError:
            continue
        record = {str(key).lower(): str(value).lower()
                  for key, value in record.items()}
        key = record.pop("id", "")
        found |= {(key, name, value) for name, value in record.items()}
    wanted = {tuple(part.lower() for part in field) for field in wanted}
    return 2 * len(wanted & found) / (len(wanted) + len(found))


@dataclasses.dataclass(frozen=True)
class Task:
    """make(draw, size, share, text) makes a sample whose haystack has this
    size, from draws; `share`, 0 to 1, is its place among the samples, and
    `text` a haystack.Text."""
    name: str
    group: str
    new_tokens: int
    make: Callable
    least: int = 1  # size
    score: Callable = share_found

    def sample(self, size, seed, index, count, text):
        """The sample `index` of `count`; the same for the same arguments."""
        draw = random.Random(f"{self.name} {seed} {index}")
        return self.make(draw, size, index / max(1, count - 1), text)
