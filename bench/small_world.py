"""Questions about a small world, whose facts stand scattered in a long text.

The five kinds are those of bAbI that BABILong (arXiv 2406.10149) asks: recipes,
with persons, things and places of our own. Standard library only.
"""

import functools

import haystack
from long_task import Sample, Task, in_first_sentence

_PERSONS = ("Agnes", "Bruno", "Celia", "Dmitri")
_THINGS = ("lantern", "violin", "teapot", "umbrella")
_PLACES = ("attic", "bakery", "cellar", "chapel", "harbour", "orchard")
_SIDES = {"north": "south", "south": "north", "east": "west", "west": "east"}


class World:
    """Persons who move, take, drop and give, and a sentence for each act."""

    def __init__(self, draw):
        self.draw = draw
        self.facts = []
        self.place = {}  # {person: place}, once it was told
        self.holder = {}  # {thing: person}, while it is held
        self.seen = {}  # {thing: its places, in order}
        self.gifts = []  # (giver, thing, receiver)

    def _hold(self, thing):
        places = self.seen.setdefault(thing, [])
        place = self.place[self.holder[thing]]
        if places[-1:] != [place]:
            places.append(place)

    def move(self, person=None, place=None):
        person = person or self.draw.choice(_PERSONS)
        place = place or self.draw.choice(
            [p for p in _PLACES if p != self.place.get(person)])
        self.place[person] = place
        self.facts.append(f"{person} went to the {place}.")
        for thing, holder in self.holder.items():
            if holder == person:
                self._hold(thing)

    def take(self):
        """A person takes a thing that lies where the person is, or that was
        nowhere yet."""
        free = [(person, thing) for person, place in self.place.items()
                for thing in _THINGS if thing not in self.holder
                and self.seen.get(thing, [place])[-1] == place]
        if free:
            person, thing = self.draw.choice(free)
            self.holder[thing] = person
            self._hold(thing)
            self.facts.append(f"{person} took the {thing}.")

    def drop(self):
        if self.holder:
            thing = self.draw.choice(sorted(self.holder))
            self.facts.append(f"{self.holder.pop(thing)} dropped the {thing}.")

    def give(self):
        """A holder gives a thing to another person, who comes there first."""
        if self.holder:
            thing = self.draw.choice(sorted(self.holder))
            giver = self.holder[thing]
            other = self.draw.choice([p for p in _PERSONS if p != giver])
            if self.place.get(other) != self.place[giver]:
                self.move(other, self.place[giver])
            self.holder[thing] = other
            self.gifts.append((giver, thing, other))
            self.facts.append(f"{giver} gave the {thing} to {other}.")


def person(draw):
    """qa1: the place of a person. Returns (facts, question, prefix, answer),
    as do the others."""
    world = World(draw)
    for _ in range(draw.randint(4, 8)):
        world.move()
    one = draw.choice(sorted(world.place))
    return (world.facts, f"Where is {one}?", f"{one} is in the",
            world.place[one])


def _carry(draw, places):
    """A world in which a thing was in so many places; returns both."""
    world = World(draw)
    world.move()
    world.take()
    known = []
    while len(world.facts) < 8 or not known:
        draw.choice((world.move, world.move, world.take, world.drop))()
        known = [thing for thing in sorted(world.seen)
                 if len(world.seen[thing]) >= places]
    return world, draw.choice(known)


def thing(draw):
    """qa2: the place of a thing, which was carried there."""
    world, one = _carry(draw, 2)
    return (world.facts, f"Where is the {one}?", f"The {one} is in the",
            world.seen[one][-1])


def before(draw):
    """qa3: the place of a thing before another place. It was in that place
    once."""
    while True:
        world, one = _carry(draw, 3)
        seen = world.seen[one]
        once = [i for i in range(1, len(seen)) if seen.count(seen[i]) == 1]
        if once:
            break
    at = once[-1]
    return (world.facts, f"Where was the {one} before the {seen[at]}?",
            f"Before the {seen[at]} the {one} was in the", seen[at - 1])


def side(draw):
    """qa4: a place beside another, by one of two facts about it."""
    first, middle, last = draw.sample(_PLACES, 3)
    way = draw.choice(sorted(_SIDES))
    facts = [f"The {first} is {way} of the {middle}.",
             f"The {middle} is {way} of the {last}."]
    draw.shuffle(facts)
    if draw.random() < 0.5:
        return (facts, f"What is {way} of the {middle}?",
                f"{way.capitalize()} of the {middle} is the", first)
    return (facts, f"What is {_SIDES[way]} of the {middle}?",
            f"{_SIDES[way].capitalize()} of the {middle} is the", last)


def gift(draw):
    """qa5: giver, thing or receiver of a gift, which no other gift with the
    same two others has changed."""
    while True:
        world = World(draw)
        while len(world.facts) < 8 or not world.gifts:
            draw.choice((world.move, world.take, world.drop, world.give))()
        gifts = set(world.gifts)
        giver, given, to = draw.choice(world.gifts)
        asked = draw.randrange(3)
        alike = [g for g in gifts if g[:asked] + g[asked + 1:] ==
                 (giver, given, to)[:asked] + (giver, given, to)[asked + 1:]]
        if len(alike) == 1:
            break
    question, prefix = (
        (f"Who gave the {given} to {to}?",
         f"The {given} was given to {to} by"),
        (f"What did {giver} give to {to}?", f"{giver} gave {to} the"),
        (f"Who did {giver} give the {given} to?",
         f"{giver} gave the {given} to"))[asked]
    return world.facts, question, prefix, alike[0][asked]


_EXAMPLES = {  # with persons, things and places of their own
    "qa1": "Felix went to the garden. Felix went to the tower. Where is Felix? "
           "Felix is in the tower.",
    "qa2": "Felix went to the garden. Felix took the spoon. Felix went to the "
           "tower. Where is the spoon? The spoon is in the tower.",
    "qa3": "Felix went to the garden. Felix took the spoon. Felix went to the "
           "tower. Where was the spoon before the tower? Before the tower the "
           "spoon was in the garden.",
    "qa4": "The garden is north of the tower. What is north of the tower? "
           "North of the tower is the garden.",
    "qa5": "Felix gave the spoon to Greta. What did Felix give to Greta? Felix "
           "gave Greta the spoon.",
}


def _scattered(name, draw, size, share, text):
    del share
    facts, question, prefix, answer = KINDS[name](draw)
    gaps = sorted(draw.randrange(size + 1) for _ in facts)
    return Sample(
        haystack.INTRODUCTION
        + "Some of its sentences tell of persons, things and places. Where two "
        "of them differ, the later one holds. The answer is one sentence, as "
        f"here: {_EXAMPLES[name]}\n\n"
        + haystack.put_in_gaps(text.first(size), facts, gaps)
        + f"\n\n{question}", prefix, (answer,))


KINDS = {"qa1": person, "qa2": thing, "qa3": before, "qa4": side, "qa5": gift}
TASKS = [Task(name, "BABILong", 20, functools.partial(_scattered, name),
              score=in_first_sentence) for name in KINDS]
