"""Measures how much of a summary comes from the text that it is about.

Only words are compared. So a summary that copies is perfect by all measures
except `copied`, and one in other words than the text's looks worse than it is.
Values for different texts cannot be compared.
"""

import collections
import re

# Common English words, which do not count as content.
COMMON = frozenset("""
about above after again against also although always among another because been
before being below between both cannot could does doing done down during each
either else enough even ever every few first from further gets given gives goes
have having here hers herself himself however into its itself just keep kept
less like made make makes making many might more most much must near need needs
neither never next none often once only onto other others ours over perhaps
rather really same seem seems seen several shall should since some something
still such take taken takes than that their them then there these they thing
things this those though three through thus together too toward towards under
until upon used uses using very want well were what whatever when where whether
which while whole whom whose will with within without would your yours
""".split())

WORD = re.compile(r"[^\W\d_](?:[\w'’-]*\w)?|\d(?:[\d.,]*\d)?")
LEAST_LETTERS = 4  # letters of a content word, at least
STEM = 6           # letters that tell words apart
WINDOW = 120       # words of the text that are one place
RUN = 8            # words in a row that are copied


def words(text):
    return WORD.findall(text)


def stem(word):
    """Returns roughly the part that `word` shares with its other forms."""
    word = re.sub(r"['’]s$", "", word.lower())
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    return word[:STEM]


def content(sentence):
    """Returns the stems of the content words, in order."""
    return [stem(word) for word in words(sentence)
            if len(word) >= LEAST_LETTERS and word.lower() not in COMMON]


def sentences(text):
    """Returns the sentences with a content word: lines, cut after full stops,
    without the marks and numbers of lists."""
    found = []
    for line in text.splitlines():
        line = re.sub(r"^\s*(?:[-*•#]+|\d+[.)])\s+", "", line)
        found += re.split(r"(?<=[.!?])[\"”’')]*\s+(?=[\"“‘'(]?[A-Z0-9])", line)
    return [sentence for sentence in found if content(sentence)]


def names(sentence):
    """Returns the words with a capital except the first, without a possessive's
    ending."""
    return [re.sub(r"['’]s$", "", word) for word in words(sentence)[1:]
            if word[0].isupper() and word != "I"]


class Text:
    """A text, indexed to look up the content of its summaries."""

    def __init__(self, text):
        all_words = words(text)
        self.stems = [stem(word) for word in all_words]
        self.known = set(self.stems)
        self.words = {re.sub(r"['’]s$", "", word) for word in all_words}
        self.runs = set(runs(all_words))

    def place(self, stems):
        """Finds the window of the text that has the most of `stems`. Returns
        the share of them that it has, and its begin as a share of the text."""
        wanted = set(stems)
        hits = [(at, one) for at, one in enumerate(self.stems) if one in wanted]
        best, where, first = 0, 0, 0
        inside = collections.Counter()
        for at, one in hits:
            inside[one] += 1
            while hits[first][0] <= at - WINDOW:
                inside[hits[first][1]] -= 1
                first += 1
            count = sum(n > 0 for n in inside.values())
            if count > best:
                best, where = count, hits[first][0]
        return best / len(wanted), where / max(1, len(self.stems))


def runs(all_words):
    lower = [word.lower() for word in all_words]
    return [tuple(lower[i:i + RUN]) for i in range(len(lower) - RUN + 1)]


FIELDS = ("summaries", "words", "sentences", "from_text", "in_one_place",
          "names", "names_found", "repeated", "runs", "copied", "quarters")


def score(summary, text):
    """Returns the counts of FIELDS for one summary.

    from_text     sentences of whose content words four in five or more are the
                  text's
    in_one_place  ... of which three in four or more stand within 120 words of it
    names         words with a capital, except a sentence's first
    names_found   ... that the text has
    repeated      sentences that say what an earlier one said: four in five of
                  the content words of both
    runs, copied  runs of eight words; those that the text has
    quarters      quarters of the text in which a sentence has its one place
    """
    count = dict.fromkeys(FIELDS, 0)
    count["summaries"] = 1
    count["words"] = len(words(summary))
    said, quarters = [], set()
    for sentence in sentences(summary):
        stems = content(sentence)
        count["sentences"] += 1
        known = sum(one in text.known for one in stems)
        count["from_text"] += known >= 0.8 * len(stems)
        share, where = text.place(stems)
        if share >= 0.75:
            count["in_one_place"] += 1
            quarters.add(int(4 * where))
        for name in names(sentence):
            count["names"] += 1
            count["names_found"] += name in text.words
        own = set(stems)
        count["repeated"] += any(
            len(own & other) >= 0.8 * max(len(own), len(other))
            for other in said)
        said.append(own)
    for run in runs(words(summary)):
        count["runs"] += 1
        count["copied"] += run in text.runs
    count["quarters"] = len(quarters)
    return count


def total(counts):
    return {field: sum(count[field] for count in counts) for field in FIELDS}
