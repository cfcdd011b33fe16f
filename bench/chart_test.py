"""Reads the charts of chart.py, and compares them with the numbers drawn."""

import re
import sys
import unittest
from xml.etree import ElementTree

sys.dont_write_bytecode = True
import chart

SVG = "{http://www.w3.org/2000/svg}"


class TicksTest(unittest.TestCase):
    def test_they_are_round_and_few(self):
        for low, high, expected in ((0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
                                    (0, 47, [0, 10, 20, 30, 40]),
                                    (-3, 3, [-3, -2, -1, 0, 1, 2, 3]),
                                    (0, 0.07, [0, 0.02, 0.04, 0.06])):
            found = chart.ticks(low, high)
            self.assertEqual(len(found), len(expected), (low, high, found))
            for ours, theirs in zip(found, expected):
                self.assertAlmostEqual(ours, theirs)


class LineChartTest(unittest.TestCase):
    SERIES = {"a < b": [(4, 0.5), (16, 0.25)], "c": [(16, 1.0), (64, 0.0)]}

    def setUp(self):
        self.root = ElementTree.fromstring(
            chart.line_chart("Share & age", "tokens", "share", self.SERIES))

    def test_every_point_is_where_its_number_is(self):
        circles = [(float(c.get("cx")), float(c.get("cy")))
                   for c in self.root.iter(SVG + "circle")]
        points = [p for series in self.SERIES.values() for p in series]
        self.assertEqual(len(circles), len(points))
        # Heights are linear in y, by those of 0 and 1. Equal x have one place,
        # to the right of lesser ones.
        zero, one = circles[3][1], circles[2][1]
        self.assertLess(one, zero)  # up is less in SVG
        marks = {float(text.text): float(text.get("y")) - 4
                 for text in self.root.iter(SVG + "text")
                 if text.get("text-anchor") == "end"}
        self.assertAlmostEqual(marks[0], zero, delta=0.11)
        self.assertAlmostEqual(marks[1], one, delta=0.11)
        for (x, y), (cx, cy) in zip(points, circles):
            self.assertAlmostEqual(cy, zero + (one - zero) * y, delta=0.11)
            for (other, _), (ox, _) in zip(points, circles):
                self.assertEqual(x < other, cx < ox)

    def test_it_says_what_it_shows(self):
        words = [text.text for text in self.root.iter(SVG + "text")]
        for word in ("Share & age", "tokens", "share", "a < b", "c", "4", "16",
                     "64"):
            self.assertIn(word, words)
        lines = [path.get("d") for path in self.root.iter(SVG + "path")
                 if path.get("fill") == "none"]
        self.assertEqual([len(re.findall("[ML]", d)) for d in lines], [2, 2])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
