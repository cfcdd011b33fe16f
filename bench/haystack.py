"""Haystacks: sentences of any text, what is put between them, and how many fit.

A task is made for a length in tokens, of which the haystack takes all that its
question and its answer leave. So its size, in sentences or whatever the task
counts, is found by trying.

Standard library only.
"""

import re
import uuid

INTRODUCTION = ("Read the following text with care. A question about it comes "
                "at its end.\n\n")
NOISE = ("Rain fell on the roof.", "The road was long and grey.",
         "A dog slept beside the door.", "There was a lamp in the window.",
         "Then it was morning again.")
DEPTHS = [100 * i / 39 for i in range(40)]  # percent of a haystack

# Closing quotation marks and brackets behind a sentence are no part of it.
_END = re.compile(r"(?<=[.!?…。！？؟।])[\"'”’»)\]]*(?:\s+|(?<=[。！？]))")
_ENDS = re.compile(r"[.!?…。！？؟।][\"'”’»)\]]*$")
_LONGEST = 300  # letters of a sentence; a longer one is cut
_SHORTEST = 8  # letters of a sentence, unlike "1.2."
_FEWEST = 10  # sentences that a text needs to be taken as prose
_CONSONANTS, _VOWELS = "bcdfghjklmnprstvz", "aeiou"
_ADJECTIVES = """
amber ancient arctic austere bitter blunt brave brisk bronze calm careful
cheerful clever coastal cosmic crimson crooked curious daring dapper distant
dusty eager early elastic faint famous fearless fertile fiery frozen gentle
giant golden graceful hasty hidden hollow humble icy idle jolly kindly late
lavish little lively lonely loyal lucky mellow merry mild misty modest narrow
nimble noble northern odd patient plain polite proud quiet rapid rare ripe
rugged rusty scarlet secret serene sharp shy silent silver simple sleepy slender
solemn southern spare steady stern sturdy subtle sunny tame tender thirsty tidy
tiny urban vacant velvet violet vivid wary weary western wild wise witty wooden
""".split()
_NOUNS = """
acorn anchor anvil apron badger barrel basket beacon beetle bell blanket bottle
branch bridge bucket button cabin candle canyon carpet castle cedar chapel
cherry circle clover comet compass copper cradle crane crater cricket dagger
desert dolphin drum eagle ember engine falcon feather ferry fiddle flute forest
fossil fountain garden garlic glacier goblet hammer harbor hazel heron hinge
island ivory jacket jasmine kettle ladder lantern lemon lily lizard magnet maple
marble meadow mirror mountain needle oboe onion orchard otter paddle parcel
pebble pepper pigeon pillow planet plum pocket raven ribbon river saddle sailor
sandal shovel spiral sparrow stable statue temple thimble ticket timber tower
tulip tunnel turnip valley violin walnut whistle willow window
""".split()


def sentences(text):
    """Returns the sentences of a text, without what lacks an end or has hardly
    a letter, such as headings. If that leaves too few, returns all pieces of
    the text."""
    pieces = []
    for paragraph in re.split(r"\n\s*\n", text):
        for sentence in _END.split(" ".join(paragraph.split())):
            while len(sentence) > _LONGEST:
                cut = sentence.rfind(" ", 1, _LONGEST) + 1 or _LONGEST
                pieces.append(sentence[:cut].strip())
                sentence = sentence[cut:]
            pieces.append(sentence.strip())
    pieces = [piece for piece in pieces if piece]
    whole = [piece for piece in pieces if _ENDS.search(piece)
             and sum(map(str.isalpha, piece)) >= _SHORTEST]
    return whole if len(whole) >= _FEWEST else pieces


class Text:
    """A text that serves as a haystack, over again if it is too short."""

    def __init__(self, text):
        self.sentences = sentences(text)
        if not self.sentences:
            raise ValueError("the text has no words")
        self.vocabulary = sorted(set(re.findall(r"\b[^\W\d_]{4,12}\b",
                                                text.lower())))

    def first(self, count):
        return cycle(self.sentences, count)

    def words(self, draw, count):
        """Draws words of the text, and coined ones where it has too few."""
        words = draw.sample(self.vocabulary, min(count, len(self.vocabulary)))
        return words + coined(draw, count - len(words), set(words))


def cycle(sentences_, count):
    """The first `count` of the sentences, which repeat."""
    times = -(-count // len(sentences_))
    return (list(sentences_) * times)[:count]


def coined(draw, count, besides=frozenset()):
    """Returns `count` different words of six letters that have no meaning."""
    words = {}
    while len(words) < count:
        word = "".join(draw.choice(_CONSONANTS) + draw.choice(_VOWELS)
                       for _ in range(3))
        if word not in besides:
            words[word] = None
    return list(words)


def names(draw, count):
    """Returns `count` different keys of an adjective and a noun; many keys have
    two adjectives."""
    nouns, adjectives = len(_NOUNS), len(_ADJECTIVES)
    firsts = 1 if 2 * count > nouns * adjectives else 0
    keys = []
    for at in draw.sample(range(nouns * adjectives**(1 + firsts)), count):
        at, noun = divmod(at, nouns)
        words = [_NOUNS[noun]]
        for _ in range(1 + firsts):
            at, adjective = divmod(at, adjectives)
            words.insert(0, _ADJECTIVES[adjective])
        keys.append("-".join(words))
    return keys


def uuids(draw, count):
    return [str(uuid.UUID(int=draw.getrandbits(128), version=4))
            for _ in range(count)]


def numbers(draw, count, digits=7):
    """Returns `count` different numbers of so many digits."""
    return [str(n) for n in draw.sample(range(10**(digits - 1), 10**digits),
                                        count)]


def put_at_depths(hay, needles, depths):
    """Returns the haystack as one text, with each needle behind that share of
    its sentences, in percent. Needles of one depth keep their order."""
    return put_in_gaps(hay, needles,
                       [round(depth * len(hay) / 100) for depth in depths])


def put_in_gaps(hay, needles, gaps):
    """The same with needles in the gaps of these numbers; gap 0 is before the
    first sentence."""
    by_gap = {}
    for needle, gap in zip(needles, gaps, strict=True):
        by_gap.setdefault(gap, []).append(needle)
    text = list(by_gap.get(0, ()))
    for gap, sentence in enumerate(hay, 1):
        text += [sentence, *by_gap.get(gap, ())]
    return " ".join(text)


def greatest(fits, least):
    """Returns the greatest size found for which fits(size) was true, or None if
    it is false for the least. Sizes that fit are taken to be one range."""
    if not fits(least):
        return None
    step = max(1, least)
    while fits(least + step):
        least, step = least + step, 2 * step
    while step > 1:
        step = -(-step // 2)
        if fits(least + step):
            least += step
    return least
