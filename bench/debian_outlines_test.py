"""Tests of debian_outlines.py: contents and outlines are told apart."""

import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import debian_outlines


def section(level, label, title):
    return {"level": level, "label": label, "title": title}


class DebianOutlinesTest(unittest.TestCase):
    CONTENTS = ["1. Rain", "1.1. The way of the", "wind", "1.2. Fog", "2. Snow",
                "Index"]
    SECTIONS = [section(1, "CHAPTER ONE", "Rain"),
                section(2, "1.1", "The way of the wind"),
                section(3, "1.1.1", "Gusts"), section(2, "1.2", "Fog!"),
                section(1, "Chapter 2", "Snow")]

    def differences(self, sections):
        return debian_outlines.differences(
            self.CONTENTS, {"title": "T", "sections": sections})

    def test_the_same_titles(self):
        self.assertEqual(self.differences(self.SECTIONS), (4, [], []))

    def test_a_title_that_is_missing_and_one_too_many(self):
        without = self.SECTIONS[:3] + self.SECTIONS[4:]
        self.assertEqual(self.differences(without), (3, ["12fog"], []))
        added = [*self.SECTIONS, section(1, "", "Notes")]
        self.assertEqual(self.differences(added), (4, [], ["Notes"]))
        other = [*self.SECTIONS[:3], section(2, "1.2", "Frog"),
                 *self.SECTIONS[4:]]
        self.assertEqual(self.differences(other), (3, ["12fog"], ["1.2 Frog"]))

    def test_contents_of_a_page_and_a_text(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            (path / "index.html").write_text(
                "<a href=x.html>no</a><ul><li><a href=a.html>1. <i>Rain</i></a>"
                "<li><a href=http://b/c.html>no</a><li><a href=a.html#b>Fog</a>"
                "<li><a accesskey=n href=n.html>Next</a></ul>"
                "<div class=list-of-tables><ul><li><a href=t.html>T</a></ul>")
            self.assertEqual(debian_outlines.contents_of_html(path),
                             ["1. Rain", "Fog"])
        self.assertEqual(
            debian_outlines.contents_of_text(
                "A\n\nContents\n\n1. Rain\n * 1.1. Fog\n    goes on\n\nChapter 1. "
                "Rain\n"), ["1. Rain", "1.1. Fog", "goes on"])


if __name__ == "__main__":
    unittest.main(argv=["debian_outlines_test"])
