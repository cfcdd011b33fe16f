"""Haystacks: sentences of any text, places of needles, and sizes that fit."""

import random
import re
import sys
import unittest

sys.dont_write_bytecode = True
import haystack

PROSE = "Heading\n\n1.2.\n\n" + "The cat sat. It saw\na bird! \"Why so?\" " * 9


class SentencesTest(unittest.TestCase):
    def test_headings_and_numbers_are_left_out(self):
        self.assertEqual(haystack.sentences(PROSE)[:4],
                         ["The cat sat.", "It saw a bird!", "The cat sat.",
                          "It saw a bird!"])

    def test_other_scripts(self):
        self.assertEqual(
            set(haystack.sentences("Где стоит большой дом? Там, за рекой. "
                                   * 9)),
            {"Где стоит большой дом?", "Там, за рекой."})
        self.assertEqual(
            set(haystack.sentences("昔々ある所に老人がいた。山へ柴刈りに毎日行った。" * 9)),
            {"昔々ある所に老人がいた。", "山へ柴刈りに毎日行った。"})

    def test_a_text_without_sentences_is_cut(self):
        for text in ("ü" * 1000, "many words " * 100):
            pieces = haystack.sentences(text)
            self.assertTrue(all(0 < len(piece) <= 300 for piece in pieces))
            self.assertEqual("".join(pieces).replace(" ", ""),
                             text.replace(" ", ""))
        self.assertEqual(haystack.sentences("short"), ["short"])
        with self.assertRaises(ValueError):
            haystack.Text(" \n")

    def test_a_short_text_repeats(self):
        text = haystack.Text("One only")
        self.assertEqual(text.first(3), ["One only"] * 3)

    def test_words_are_those_of_the_text_then_coined(self):
        draw = random.Random(1)
        words = haystack.Text("Größe über einen Fluß, Größe 1234").words(draw,
                                                                         10)
        self.assertEqual(set(words[:4]), {"größe", "über", "einen", "fluß"})
        self.assertEqual(len(set(words)), 10)
        self.assertTrue(all(re.fullmatch("[a-z]{6}", w) for w in words[4:]))
        besides = set(haystack.coined(random.Random(3), 9))
        self.assertFalse(besides & set(
            haystack.coined(random.Random(3), 9, besides)))


class DrawsTest(unittest.TestCase):
    def test_all_are_different(self):
        draw = random.Random(2)
        for draws in (haystack.names, haystack.uuids, haystack.coined,
                      haystack.numbers):
            self.assertEqual(len(set(draws(draw, 4000))), 4000)
        self.assertTrue(all(len(n) == 7 for n in haystack.numbers(draw, 99)))
        self.assertEqual({key.count("-") for key in haystack.names(draw, 99)},
                         {1})
        self.assertEqual(
            {key.count("-") for key in haystack.names(draw, 9000)}, {2})


class PlacesTest(unittest.TestCase):
    HAY = [f"s{i}." for i in range(200)]

    def test_needles_stand_at_their_depths(self):
        text = haystack.put_at_depths(self.HAY, ["END", "BEGIN", "MID", "ALSO"],
                                      [100, 0, 25, 25]).split()
        self.assertEqual(len(text), 204)
        self.assertEqual([text.index(n) for n in ("BEGIN", "MID", "ALSO",
                                                  "END")],
                         [0, 1 + 50, 1 + 51, 203])

    def test_needles_of_gaps_keep_the_text(self):
        text = haystack.put_in_gaps(self.HAY, ["A", "B"], [3, 3]).split()
        self.assertEqual(text[2:6], ["s2.", "A", "B", "s3."])
        self.assertEqual([w for w in text if w.startswith("s")], self.HAY)

    def test_forty_depths(self):
        self.assertEqual(len(set(haystack.DEPTHS)), 40)
        self.assertEqual((haystack.DEPTHS[0], haystack.DEPTHS[-1]), (0, 100))


class GreatestTest(unittest.TestCase):
    def test_it_is_the_last_that_fits(self):
        for least in (1, 3, 60):
            for last in (*range(least, 200), 4095, 4096, 4097):
                tried = []

                def fits(size, last=last, tried=tried):
                    tried.append(size)
                    return size <= last

                self.assertEqual(haystack.greatest(fits, least), last)
                self.assertLess(len(tried), 30)

    def test_nothing_fits(self):
        self.assertIsNone(haystack.greatest(lambda size: size < 3, 3))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
