"""Documents, whose text and places are those of `tiercel text`.

    documents_test.py TIERCEL CHECKPOINTS
"""

import os
import unittest

from package_testing import Case

import tiercel

BOOK = "".join(
    "<h1>Kapitel %d. %s</h1>" % (number, title)
    + "".join("<p>Über %s – der Satz №%d, 漢字 und 🦅.</p>" % (title, i)
              for i in range(40))
    for number, title in enumerate(("Früh", "Mittag", "Nacht"), 1))
PAGE = ("<html lang=de><title>Die Jagd</title><body>%s</body></html>"
        % BOOK).encode()


class DocumentTest(Case):
    def setUp(self):
        super().setUp()
        self.file = self.path("jagd.html")
        with open(self.file, "wb") as file:
            file.write(PAGE)

    def test_places_are_those_of_the_program(self):
        told = self.document("text", self.file)
        data = told["text"].encode()
        with tiercel.Document(self.file) as document:
            self.assertEqual(document.text, told["text"])
            self.assertEqual(document.title, "Die Jagd")
            self.assertEqual(document.language, "de")
            self.assertEqual(document.author, "")
            self.assertEqual(document.pages, [])
            self.assertEqual(document.warnings, told["warnings"])
            self.assertEqual(len(document.sections), len(told["sections"]))
            for section, other in zip(document.sections, told["sections"]):
                self.assertEqual(
                    document.text[section.begin:section.end].encode(),
                    data[other["begin"]:other["end"]])
                for name in ("level", "label", "title", "anchor"):
                    self.assertEqual(getattr(section, name), other[name] or "",
                                     name)
            self.assertEqual([chapter.number for chapter in document.chapters],
                             [1, 2, 3])
            self.assertEqual(document.chapters[1].name, "Kapitel 2 Mittag")
            self.assertIs(document.chapters[1].section, document.sections[1])
            text = document.text
        self.assertEqual(document.text, text)  # it stays
        self.refused(tiercel.Usage, "closed", document.place, 0, 1)

    def test_bytes_and_excerpts(self):
        document = tiercel.Document(PAGE, name="b.html")
        whole = tiercel.Document(self.file)
        self.assertEqual(document.text, whole.text)
        second = document.excerpt(chapters="2")
        document.close()
        chapter = whole.chapters[1]
        self.assertEqual(second.text.strip(),
                         whole.text[chapter.begin:chapter.end].strip())
        self.assertEqual(second.chapters[0].number, 2)
        error = self.refused(tiercel.InvalidInput, "7", whole.excerpt,
                             chapters="7")
        self.assertEqual(error.code, "chapter_not_found")
        self.refused(tiercel.Usage, "", whole.excerpt)

    def test_parts(self):
        document = tiercel.Document(self.file)
        asked = []

        def fits(text):
            asked.append(text)
            return len(text) <= 700

        parts = document.parts(fits, usual_bytes=500)
        self.assertEqual("".join(part.text for part in parts), document.text)
        self.assertTrue(all(len(part.text) <= 700 for part in parts))
        self.assertTrue(any(part.text.startswith("Kapitel 2") for part in parts))
        self.assertIn(parts[0].text, asked)
        for part in parts:
            self.assertEqual(part.text, document.text[part.begin:part.end])
            self.assertEqual(part.place, document.place(part.begin, part.end))
        self.assertEqual(parts[0].place, "Kapitel 1 Früh")
        self.refused(ZeroDivisionError, "", document.parts, lambda text: 1 / 0)
        error = self.refused(tiercel.InvalidInput, "", document.parts,
                             lambda text: False)
        self.assertEqual(error.code, "nothing_fits")

    def test_every_place_of_a_text(self):
        # It has characters of one to four bytes across the blocks' borders.
        text = "".join("a" * (i % 3) + "ß漢🦅\n" for i in range(3000))
        document = tiercel.Document(text.encode(), name="t.txt")
        self.assertEqual(document.text.strip(), text.strip())
        places = document._places
        offset = 0
        for index, character in enumerate(document.text):
            self.assertEqual(places.index(offset), index)
            if index % 7 == 0:
                self.assertEqual(places.offset(index), offset)
            offset += len(character.encode())
        self.assertEqual(places.offset(len(document.text)), offset)

    def test_what_is_wrong(self):
        error = self.refused(tiercel.IO, "", tiercel.Document,
                             self.path("none.txt"))
        self.assertEqual(error.code, "file_not_found")
        self.refused(TypeError, "source", tiercel.Document, 7)
        self.refused(TypeError, "source", tiercel.Document, self.file,
                     name="a")
        error = self.refused(tiercel.InvalidInput, "b.bin", tiercel.Document,
                             os.urandom(2000) + b"\0" * 99, name="b.bin")
        self.assertEqual(error.code, "not_text")
        document = tiercel.Document(b"One line.", name="t.txt")
        for begin, end in ((-1, 2), (3, 2), (0, 100)):
            self.refused(ValueError, "place", document.place, begin, end)


if __name__ == "__main__":
    unittest.main(argv=["documents_test.py"])
