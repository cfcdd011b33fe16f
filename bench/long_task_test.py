"""The samples of the tasks over long texts, read again, and their scores."""

import collections
import json
import random
import re
import sys
import unittest

sys.dont_write_bytecode = True
import gathering_tasks
import haystack
import retrieval_tasks
import small_world
from long_task import Sample, in_first_sentence, record_f1, share_found

TEXT = haystack.Text("The quick brown fox jumps. Over there lies a lazy dog. "
                     "Größere Hunde schlafen länger! " * 20)
TASKS = {task.name: task for task in (
    *retrieval_tasks.NEEDLES, *retrieval_tasks.INFINITE, *small_world.TASKS,
    *gathering_tasks.tasks(8192, 4))}
NEEDLE = re.compile(r"special magic (\w+)s for (\S+) is: (\S+)\.")


def sample(name, index=0, size=120, count=5, seed=0):
    return TASKS[name].sample(size, seed, index, count, TEXT)


class EveryTaskTest(unittest.TestCase):
    def test_a_seed_gives_the_same_bytes(self):
        for name in TASKS:
            with self.subTest(name):
                self.assertEqual(sample(name), sample(name))
                messages = {sample(name, index, seed=seed).message
                            for index in (0, 1) for seed in (0, 1)}
                self.assertEqual(len(messages), 4)

    def test_the_message_has_the_references(self):
        for name in TASKS:
            with self.subTest(name):
                one = sample(name)
                for reference in one.references:
                    for part in ([reference] if isinstance(reference, str)
                                 else (reference[0], reference[2])):
                        self.assertIn(part, one.message)
                        self.assertNotIn(part, one.prefix)

    def test_a_greater_size_is_a_longer_text(self):
        for name in TASKS:
            with self.subTest(name):
                self.assertLess(len(sample(name, size=100).message),
                                len(sample(name, size=130).message))

    def test_the_list_of_tasks(self):
        groups = collections.Counter(task.group for task in TASKS.values())
        self.assertEqual(groups, {"RULER": 11, "BABILong": 5,
                                  "InfiniteBench": 3, "records": 1})


class RetrievalTest(unittest.TestCase):
    def test_needles(self):
        for name, needles, references, others in (
                ("single 1", 1, 1, 0), ("single 2", 1, 1, 0),
                ("single 3", 1, 1, 0), ("multikey 1", 4, 1, 0),
                ("multikey 2", 1, 1, 120), ("multikey 3", 1, 1, 120),
                ("multivalue", 4, 4, 0), ("multiquery", 4, 4, 0)):
            with self.subTest(name):
                one = sample(name)
                found = NEEDLE.findall(one.message)
                self.assertEqual(len(found), needles + others)
                question = one.message.rsplit("\n\n", 1)[1]
                asked = [value for _, key, value in found if key in question]
                self.assertEqual(sorted(asked), sorted(one.references))
                self.assertEqual(len(one.references), references)
                keys = {key for _, key, _ in found}
                self.assertEqual(len(keys), 1 if name == "multivalue" else
                                 needles + others)
                self.assertEqual("brown fox" in one.message,
                                 name[-1] != "1" and not others
                                 or name == "multikey 1")

    def test_kinds_of_keys_and_values(self):
        of_uuid = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
        for name, key_is, value_is in (("single 2", 0, 0), ("single 3", 0, 1),
                                       ("multikey 2", 0, 0),
                                       ("multikey 3", 1, 1)):
            for kind, key, value in NEEDLE.findall(sample(name).message):
                self.assertEqual(bool(of_uuid.match(key)), key_is)
                self.assertEqual(bool(of_uuid.match(value)), value_is)
                self.assertEqual(kind, "uuid" if value_is else "number")

    def test_a_needle_stands_at_its_depth(self):
        for index in range(5):
            one = sample("single 2", index, size=1000)
            text = one.message.split("\n\n")[1]
            before = text[:text.index("One of the special")]
            self.assertEqual(len(re.findall("[.!]", before)),
                             round(10 * one.depths[0]))
            self.assertIn(one.depths[0], haystack.DEPTHS)

    def test_steps_of_the_pass_key_are_equal(self):
        for name in ("pass key", "number string"):
            ones = [sample(name, index) for index in range(5)]
            self.assertEqual([one.depths[0] for one in ones],
                             [0, 25, 50, 75, 100])
            for one in ones:
                self.assertEqual(one.message.count(one.references[0]), 2)
        digits = sample("number string").references[0]
        self.assertRegex(digits, r"^\d{10}$")
        self.assertRegex(digits, r"(\d)\1")

    def test_pairs(self):
        one = sample("pairs")
        pairs = json.loads(one.message.split("\n\n")[1])
        self.assertEqual(len(pairs), 120)
        key = re.search(r'key "(\S+)"', one.message)[1]
        self.assertEqual(pairs[key], one.references[0])


class GatheringTest(unittest.TestCase):
    def test_the_chain_of_variables(self):
        for index in range(5):
            one = sample("tracking", index)
            value = re.search(r"value (\d{5})", one.prefix)[1]
            text = one.message.split("\n\n")[-2]
            said = re.findall(r"VAR (\w+) = (?:VAR )?(\w+)\.", text)
            self.assertEqual(len(said), 5)
            before = value
            for name, of in said:
                self.assertRegex(name, "^[A-Z]{5}$")
                self.assertEqual(of, before)
                before = name
            self.assertEqual(tuple(name for name, _ in said), one.references)
            # The example shows a whole answer to another question.
            example = one.message.split("\n\n")[2]
            self.assertEqual(example.count(", "), 1 + 4)
            self.assertFalse(set(re.findall("[A-Z]{5}", example))
                             & set(one.references))

    def test_common_words(self):
        for length, often, seldom in ((8192, 30, 3), (2048, 6, 1)):
            task = gathering_tasks.tasks(length, 4)[1]
            one = task.sample(50, 0, 0, 1, TEXT)
            shown = one.message.split("\n\n")
            counts = collections.Counter(
                re.findall(r"\d+\. (\S+)", shown[-2]))
            self.assertEqual({word for word, n in counts.items() if n == often},
                             set(one.references))
            self.assertEqual(collections.Counter(counts.values()),
                             {often: 10, seldom: 50})
            counts = collections.Counter(re.findall(r"\d+\. (\S+)", shown[1]))
            self.assertEqual(collections.Counter(counts.values()),
                             {10: 10, 3: 30})
            for word, n in counts.items():
                self.assertEqual(word in shown[2].split(": ")[1].split(", "),
                                 n == 10)

    def test_frequent_words(self):
        for size in (60, 61, 1000):
            one = sample("frequent words", size=size)
            counts = collections.Counter(one.message.split("\n\n")[1].split())
            (first, most), *next_three = counts.most_common(4)
            self.assertEqual(first, "...")
            self.assertAlmostEqual(most, size / 1.645, delta=1)
            self.assertAlmostEqual(next_three[0][1], size / 1.645 / 4, delta=1)
            self.assertEqual(tuple(word for word, _ in next_three),
                             one.references)
            self.assertEqual(len(set(n for _, n in counts.most_common(5))), 5)

    def test_records(self):
        one = sample("records")
        said = re.findall(r"parcel (\w+) went to (\w+) and cost (\d+)",
                          one.message)[1:]  # behind the example
        self.assertEqual(len(said), 4)
        answer = json.dumps([dict(zip(("id", "town", "price"), record))
                             for record in said])
        self.assertTrue(answer.startswith(one.prefix))
        self.assertEqual(record_f1(one, answer[len(one.prefix):]), 1)


class Reader:
    """Reads the facts of a small world, and answers questions by itself."""

    def __init__(self, facts):
        self.at, self.held, self.seen, self.gifts = {}, {}, {}, []
        self.sides = set()
        for fact in facts:
            words = fact.rstrip(".").split()
            if words[1] == "went":
                self.at[words[0]] = words[-1]
            elif words[1] == "took":
                assert self.held.get(words[-1]) is None, fact
                lay = self.seen.get(words[-1], [self.at[words[0]]])[-1]
                assert lay == self.at[words[0]], fact
                self.held[words[-1]] = words[0]
            elif words[1] == "dropped":
                assert self.held[words[-1]] == words[0], fact
                self.held[words[-1]] = None
            elif words[1] == "gave":
                giver, _, _, given, _, to = words
                assert self.held[given] == giver, fact
                assert self.at[giver] == self.at[to], fact
                self.held[given] = to
                self.gifts.append((giver, given, to))
            else:
                self.sides.add((words[1], words[3], words[-1]))
            for thing, holder in self.held.items():
                places = self.seen.setdefault(thing, [])
                if holder and places[-1:] != [self.at[holder]]:
                    places.append(self.at[holder])

    def answers(self, question):
        """All answers that the facts allow."""
        words = question.rstrip("?").split()
        if question.startswith("Where is the "):
            return {self.seen[words[-1]][-1]}
        if question.startswith("Where is "):
            return {self.at[words[-1]]}
        if question.startswith("Where was "):
            seen = self.seen[words[3]]
            return {seen[i - 1] for i, place in enumerate(seen)
                    if place == words[-1]}
        if question.startswith("What is "):
            other = {"north": "south", "east": "west", "south": "north",
                     "west": "east"}[words[2]]
            return ({a for a, way, b in self.sides if (way, b) ==
                     (words[2], words[-1])}
                    | {b for a, way, b in self.sides
                       if (way, a) == (other, words[-1])})
        if question.startswith("Who gave "):
            return {g for g, t, r in self.gifts if (t, r) ==
                    (words[3], words[-1])}
        if question.startswith("What did "):
            return {t for g, t, r in self.gifts if (g, r) ==
                    (words[2], words[-1])}
        return {r for g, t, r in self.gifts if (g, t) == (words[2], words[5])}


class SmallWorldTest(unittest.TestCase):
    def test_answers_follow_from_the_facts(self):
        for name, kind in small_world.KINDS.items():
            for seed in range(200):
                facts, question, prefix, answer = kind(random.Random(seed))
                self.assertEqual(Reader(facts).answers(question), {answer},
                                 (name, seed))
                self.assertNotIn(answer, prefix)

    def test_facts_stand_in_order_in_the_text(self):
        for name in small_world.KINDS:
            one = sample(name, size=300)
            draw = random.Random(f"{name} 0 0")
            facts = small_world.KINDS[name](draw)[0]
            at = 0
            for fact in facts:
                at = one.message.index(fact, at) + len(fact)


class ScoresTest(unittest.TestCase):
    def test_the_share_of_references(self):
        one = Sample("", "", ("Alpha", "42"))
        self.assertEqual(share_found(one, "it is ALPHA."), 0.5)
        self.assertEqual(share_found(one, "alpha, 421"), 1)
        self.assertEqual(share_found(one, ""), 0)

    def test_the_first_sentence_alone(self):
        one = Sample("", "", ("attic",))
        self.assertEqual(in_first_sentence(one, " Attic. No."), 1)
        self.assertEqual(in_first_sentence(one, "\n . the attic"), 1)
        self.assertEqual(in_first_sentence(one, "cellar. Then the attic"), 0)
        self.assertEqual(in_first_sentence(one, "cellar\nattic"), 0)
        self.assertEqual(in_first_sentence(one, ""), 0)

    def test_f1_of_records(self):
        one = Sample("", '[{"id": "', (("K1", "town", "Cork"),
                                       ("K1", "price", "10"),
                                       ("K2", "town", "Riga"),
                                       ("K2", "price", "20")))
        for output, score in (
                ('k1", "town": "cork", "price": 10}', 4 / 6),
                ('K1", "town": "Riga", "price": "10"}, {"id": "K2"', 2 / 6),
                ('K1", "town": "Cork", "price": 10}, {"id": "K2", "town": '
                 '"Riga", "price": 20}] and so on', 1),
                ("no JSON", 0), ('K1", "town"}', 0)):
            self.assertAlmostEqual(record_f1(one, output), score, msg=output)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
