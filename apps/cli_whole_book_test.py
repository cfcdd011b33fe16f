"""A document as it is read, questions about all of a book that the context does
not hold, and summaries of its chapters.

    cli_whole_book_test.py TIERCEL CHECKPOINTS
"""

import json
import os
import re
import unittest

from cli_testing import BOOK, CHAT, SMALL, BookCase, Case, environment, run
import gguf_file
import told_model


class TextTest(Case):
    """`text`: a document as it is read; no model is needed."""

    PAGE = (b"<html lang=en><title>Tale</title><h1>Chapter 1</h1><p>a&amp;b"
            b"<span class=pagenum id=Page_7>[Pg 7]</span><h2>Night</h2>c"
            b"<h1>Chapter 2</h1>d")

    def setUp(self):
        super().setUp()
        self.page = self.path("tale.html", self.PAGE)
        self.env = {**os.environ, "TIERCEL_MODEL": "/no/model"}

    def test_text_and_places(self):
        result = run("text", self.page, env=self.env)
        self.assertEqual((result.returncode, result.stdout, result.stderr),
                         (0, b"Chapter 1\n\na&b\n\nNight\n\nc\n\nChapter 2"
                          b"\n\nd\n", b""))
        document = self.document("text", self.page)
        self.assertEqual(list(document), [
            "title", "author", "language", "text", "sections", "pages",
            "warnings"])
        self.assertEqual(document["text"].encode(), result.stdout)
        self.assertEqual(document["sections"], [
            {"level": 1, "label": "Chapter 1", "title": "", "begin": 0,
             "end": 26, "page": None, "anchor": ""},
            {"level": 2, "label": "", "title": "Night", "begin": 16, "end": 26,
             "page": "7", "anchor": "Page_7"},
            {"level": 1, "label": "Chapter 2", "title": "", "begin": 26,
             "end": 39, "page": "7", "anchor": ""}])
        self.assertEqual(document["pages"], [{"label": "7", "begin": 16}])

    def test_parts_are_chosen(self):
        self.assertEqual(self.succeed("text", self.page, "--chapters", "2"),
                         b"Chapter 2\n\nd\n")
        document = self.document("text", self.page, "--chapter-pattern",
                                 "^[a-d]$")
        self.assertEqual([(s["title"], s["begin"])
                          for s in document["sections"]],
                         [("c", 23), ("d", 37)])
        self.assertEqual(
            self.succeed("text", self.page, "--chapter-pattern", "^[a-d]$",
                         "--chapters", "d"), b"d\n")
        self.refuse(2, "usage", "text", self.page, "--chapter-pattern", "(")
        self.refuse(3, "no_chapters", "text", self.page, "--chapter-pattern",
                    "^x$")

    def test_what_cannot_be_read(self):
        page = self.path("a.djvu", b"AT&TFORM")
        self.assertIn("DjVu", self.refuse(3, "unsupported_document", "text",
                                          page))
        self.refuse(3, "rtf_too_complex", "text",
                    self.path("a.rtf", b"{\\rtf1 " + 2000 * b"{"))
        self.refuse(6, "file_not_found", "text", "/no/file")
        self.refuse(2, "usage", "text")
        self.refuse(3, "empty_document", "text", self.path("e.txt", b" "))


class AskedInPartsTest(BookCase):
    """Questions about a book that the context does not hold."""

    def asked(self, *questions, context="700", **kwargs):
        return self.document("ask", self.book, *questions, "-m", CHAT, "-c",
                             context, "-n", "24", "--repeat-penalty", "1.3",
                             **{"env": self.env, **kwargs})

    def test_each_part_is_asked_and_one_answer_made(self):
        document = self.asked("Who is it?", "Where was he?")
        leaves = [part for part in document["parts"] if part["level"] == 0]
        self.assertEqual(document["asked"], len(leaves))
        self.assertEqual([part["question"] for part in leaves],
                         sorted(part["question"] for part in leaves))
        for question, output in enumerate(document["output"]):
            own = [part for part in document["parts"]
                   if part["question"] == question]
            at = 0
            for part in own:
                if part["level"] > 0:
                    continue
                self.assertEqual(part["begin"], at)
                at = part["end"]
            self.assertEqual(at, document["read"])
            self.assertEqual(own[-1]["text"], output["text"])
            self.assertEqual((own[-1]["begin"], own[-1]["end"]), (0, at))
            self.assertGreater(own[-1]["level"], 0)
        self.assertEqual([output["question"] for output in document["output"]],
                         ["Who is it?", "Where was he?"])
        self.assertNotEqual(*[output["text"] for output in document["output"]])
        self.assertEqual(
            document["prompt_tokens"],
            sum(output["prompt_tokens"] for output in document["output"]))
        # A question is answered alike with others and alone, and what was
        # made is not made again.
        for question, output in zip(("Who is it?", "Where was he?"),
                                    document["output"]):
            alone = self.asked(question)
            self.assertEqual(alone["output"][0]["text"], output["text"])
            self.assertEqual(alone["resumed"]["nodes"], len(own))
            self.assertEqual(alone["prompt_tokens"], 0)
        other = self.asked("Where is it?")
        self.assertEqual(other["resumed"]["nodes"], 0)

    def test_lines_say_of_which_question_they_are(self):
        def lines(*questions):
            out = self.succeed("ask", self.book, *questions, "-m", CHAT, "-c",
                               "700", "-n", "24", "--repeat-penalty", "1.3",
                               "--no-cache", "--stream",
                               env=self.env)
            *lines, document = map(json.loads, out.splitlines())
            return lines, document
        told, document = lines("Who is it?", "Where was he?")
        self.assertEqual(sorted({line["index"] for line in told}), [0, 1])
        for index, output in enumerate(document["output"]):
            own = [line for line in told if line["index"] == index]
            last = max(line["level"] for line in own)
            self.assertEqual([line["token"] for line in own
                              if line["level"] == last], output["tokens"])
        alone, _ = lines("Who is it?")
        self.assertEqual(alone, [
            {key: line[key] for key in line if key != "index"}
            for line in told if line["index"] == 0])

    def test_the_next_question_reads_no_part_again(self):
        first = self.asked("Who is it?", context="2k")
        second = self.asked("Where?", context="2k")
        self.assertLess(first["cached_tokens"], first["prompt_tokens"] / 4)
        self.assertGreater(second["cached_tokens"],
                           3 * second["prompt_tokens"] / 4)
        anew = self.asked("Where?", "--no-cache", context="2k")
        self.assertEqual(anew["output"][0]["text"],
                         second["output"][0]["text"])
        # The plan counts what is left to do.
        def plan(*args):
            said = run("ask", self.book, *args, "-m", CHAT, "-c", "2k", "-n",
                       "24", env=self.env).stderr.decode()
            return re.search(r"the context holds .*", said)[0]
        of_second = plan("When?")
        left = re.search(r", all read before, .* ([\d,]+) tokens to",
                         of_second)
        texts = len(second["parts"])
        self.assertLess(int(left[1].replace(",", "")), 100 * texts)
        of_made = plan("When?")
        self.assertNotIn("read before", of_made)
        self.assertTrue(of_made.endswith("; all is done"), of_made)

    def test_parts_that_the_disk_has_no_room_for(self):
        def said(question, size):
            result = run("ask", self.book, question, "-m", CHAT, "-c", "2k",
                         "-n", "24", "--cache-size", size, env=self.env)
            self.assertEqual(result.returncode, 0, result.stderr)
            return result.stderr.decode()
        room = re.search(r"\nof these parts (\d+) have room on disk, .*: "
                         r"--cache-size (\d+MiB)\n", said("Who?", "600kB"))
        self.assertEqual(room[1], "2")
        self.assertIn(", 2 of them read before, ", said("Where?", "600kB"))
        # With room for all the next question reads none of them.
        self.assertNotIn("have room on disk", said("Why?", room[2]))
        self.assertIn(", all read before, ", said("When?", room[2]))
        # A smaller cache keeps no more, though nothing new was saved.
        def held():
            files = self.document("cache", "list", env=self.env)
            return sum(file["bytes"] for file in files["prompt_cache"])
        self.assertGreater(held(), 600e3)
        again = said("When?", "600kB")
        self.assertIn("; all is done\n", again)
        self.assertNotIn("have room on disk", again)
        said("How?", "600kB")
        self.assertLessEqual(held(), 600e3)
        self.assertIn(", 2 of them read before, ", said("What?", "600kB"))

    def test_questions_of_any_length_read_the_same_parts(self):
        plain = self.path("plain.txt", b" ".join(
            b"word%d" % (i % 997) for i in range(1500)))
        ends = []
        for question in ("Who?", "Who is it that was seen there by them?"):
            document = self.document("ask", plain, question, "-m", CHAT, "-c",
                                     "700", "-n", "4", env=self.env)
            ends.append([part["end"] for part in document["parts"]
                         if part["level"] == 0])
        self.assertGreater(len(ends[0]), 3)
        self.assertEqual(*ends)

    def test_effort_reads_the_parts_with_words_of_the_question(self):
        book = self.path("places.txt", BOOK.replace(
            b"Part 3 of it.", b"Part 3 of the harbour.").replace(
                b"Part 40 of it.", b"Part 40 of the harbours."))
        command = ["ask", book, "Which harbour?", "-m", CHAT, "-c", "700",
                   "-n", "24"]
        whole = self.document(*command, "--no-cache", env=self.env)
        parts = [part for part in whole["parts"] if part["level"] == 0]
        with open(book, "rb") as file:
            text = file.read().decode()
        tokens = json.loads(self.succeed("tokenize", "-f", book, "-m", CHAT,
                                         "--json"))["tokens"]

        def has_word(part):
            return b"harbour" in self.succeed(
                "detokenize", *map(str, tokens[part["begin"]:part["end"]]),
                "-m", CHAT)
        wanted = [part for part in parts if has_word(part)]
        self.assertEqual(len(wanted), 2, text[:60])
        document = self.document(*command, "--effort", "1300", env=self.env)
        read = [part for part in document["parts"] if part["level"] == 0]
        self.assertEqual([(p["begin"], p["end"], p["text"]) for p in read],
                         [(p["begin"], p["end"], p["text"]) for p in wanted])
        self.assertEqual(document["asked"], 2)
        self.assertEqual(document["read"],
                         sum(p["end"] - p["begin"] for p in wanted))
        self.assertIn("the answer is from 2 of %d parts; --effort full reads "
                      "the others, too" % len(parts), document["warnings"])
        # Parts that were read are not read again.
        rest = self.document(*command, "--effort", "full", env=self.env)
        self.assertEqual(rest["resumed"]["nodes"], 2)
        self.assertEqual(rest["output"][0]["text"],
                         whole["output"][0]["text"])
        self.assertEqual((rest["asked"], rest["read"]),
                         (len(parts), parts[-1]["end"]))
        result = run(*command, "--effort", "1300", "--no-cache", env=self.env)
        self.assertIn(b": 2 of %d parts to ask, those with most words of the "
                      b"question" % len(parts), result.stderr)
        error = self.refuse(2, "usage", *command, "--effort", "20")
        need = int(re.search(r"--effort: got 20, need (\d+) tokens",
                             error)[1])
        shortest = min(part["end"] - part["begin"] for part in parts)
        self.assertGreater(need, shortest + 50)  # the question's, too
        least = self.document(*command, "--effort", str(need), env=self.env)
        self.assertEqual((least["asked"], least["read"]), (1, shortest))
        # The answer of one part is the answer.
        (part,) = least["parts"]
        (output,) = least["output"]
        self.assertEqual((part["level"], part["text"]), (0, output["text"]))
        notes = self.path("notes.txt")
        said = run(*command, "--effort", str(need), "--no-cache", "--output",
                   notes, env=self.env)
        self.assertEqual(said.stdout.decode().strip(), part["text"].strip())
        self.assertRegex(said.stderr.decode(), (
            r": 1 of %d parts to ask, the one with most words of the question"
            r"[^;]*; %d tokens to read and write at most, in about .*\n"
            r"(.*\n)*from (tokens %d to %d of \d+)\n") % (
                len(parts), need + 24, part["begin"], part["end"]))
        with open(notes) as file:
            self.assertIn("tokens %d to %d of" % (part["begin"], part["end"]),
                          file.read())
        for wrong in ("0", "-1", "all"):
            self.assertIn("--effort", self.refuse(2, "usage", *command,
                                                  "--effort", wrong))

    def test_the_best_part_may_have_more_than_the_effort(self):
        book = self.path("zebra.txt", BOOK[:2000].replace(
            b"Part 3 of it.", b"Part 3 of the zebra.") + b"\n# End\n\nshort\n")
        command = ["ask", book, "Is there a zebra?", "-m", CHAT, "-c", "700",
                   "-n", "8"]
        error = self.refuse(2, "usage", *command, "--effort", "20")
        least = re.search(r"need (\d+) tokens", error)[1]
        document = self.document(*command, "--effort", least, env=self.env)
        self.assertRegex("\n".join(document["warnings"]),
                         r"the part with most words of this question has \d+ "
                         r"tokens, more than --effort " + least)

    def test_a_question_that_is_too_long(self):
        self.assertIn("ask something shorter", self.refuse(
            3, "context_length_exceeded", "ask", self.book, "why " * 900, "-m", CHAT,
            "-c", "700", "-n", "8"))

    def test_effort_without_a_word_of_the_question(self):
        document = self.asked("Qqq?", context="700")
        first = self.document("ask", self.book, "Qqq?", "-m", CHAT, "-c",
                              "700", "-n", "24", "--repeat-penalty", "1.3",
                              "--effort", "1300", env=self.env)
        self.assertEqual(first["asked"], 2)
        self.assertEqual(first["parts"][:2], document["parts"][:2])
        self.assertIn("no part of the text has a word of this question, so "
                      "the first parts are read: Qqq?", first["warnings"])
        result = run("ask", self.book, "Qqq?", "-m", CHAT, "-c", "700", "-n",
                     "24", "--effort", "1300", "--no-cache", env=self.env)
        self.assertIn(b"2 of 15 parts to ask, the first that fit, then",
                      result.stderr)

    def test_parts_that_say_nothing_are_dropped(self):
        model = told_model.write_gguf(
            self.path("nothing.gguf"),
            told_model.path_of("\n", *"Nothing", "<|im_end|>"),
            tokenizer__chat_template=gguf_file.string(told_model.CHATML))
        book = self.path("long.txt", BOOK[:3000])
        command = ["ask", book, "who?", "-m", model, "-c", "1000", "-n", "24",
                   "--temp", "0", "--repeat-penalty", "1"]
        document = self.document(*command, env=self.env)
        self.assertEqual({part["text"] for part in document["parts"]}, {""})
        self.assertGreater(document["asked"], 2)
        self.assertEqual(document["output"][0]["text"], "")
        self.assertIn("no part of the text says anything about: who?",
                      document["warnings"])
        result = run(*command, env=self.env)
        self.assertEqual((result.returncode, result.stdout), (0, b""))

    def test_a_part_quotes_from_itself(self):
        quoted = '"So it was said of him."'
        model = told_model.write_saying(self.path("quotes.gguf"), quoted)
        book = self.path("said.txt", b"".join(
            b"Chapter %d\n\n%sThere so it was said of\xc2\xa0him, too.\n\n" %
            (i, 12 * b"One two three, four five. Six! ") for i in (1, 2, 3))
            .replace(b"One two", b"The harbour", 13).replace(
                b"The harbour", b"One two", 12))
        command = ["ask", book, "Who?", "Where?", "-m", model, "-c", "1k",
                   "-n", "8", "--temp", "0", "--repeat-penalty", "1"]
        document = self.document(*command, env=self.env)
        parts = [part for part in document["parts"] if part["level"] == 0]
        places = [part["chapters"] for part in parts]
        self.assertEqual(len(parts), 6)
        self.assertEqual(
            [(one["question"], one["text"], one["found"], one["chapters"])
             for one in document["quotations"]],
            [(question, quoted[1:-1], True, place) for question in (0, 1)
             for place in (*places[:3], places[0])])
        self.assertEqual(places[:3], [["Chapter %d" % i] for i in (1, 2, 3)])
        # An answer quotes what the parts that were read have quoted.
        result = run(*command[:2], "Which harbour?", *command[4:], "--effort",
                     "700", env=self.env)
        self.assertIn(quoted.encode() + b": found in the text, Chapter 2\n",
                      result.stderr)
        talk = run(*command[:2], *command[4:],
                   input=b"/chapter 2\nWho?\n/chapter 3\n/places\n/chapter\n"
                   b"Who?\n/places\n", env=self.env)
        self.assertEqual(
            re.findall(rb'"So it was said of him.": (.*)\n', talk.stderr)[:1],
            [b"found in the text, Chapter 2"])
        self.assertEqual(talk.stderr.count(b"found in the text, Chapter 1"), 2)

    def test_notes_and_places(self):
        notes = self.path("notes.txt")
        result = run("ask", self.book, "Who is it?", "-m", CHAT, "-c", "700",
                     "-n", "24", "--output", notes, env=self.env)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(b"15 parts to ask, then their answers in 1",
                      result.stderr)
        self.assertRegex(result.stderr, rb"\ntokens 0 to \d+ of \d+: ")
        with open(notes, "rb") as file:
            text = file.read()
        self.assertIn(b"Who is it?", text)
        self.assertRegex(text, rb"tokens 0 to \d+ of \d+")
        self.assertIn(result.stdout.strip().splitlines()[0], text)


class EachTest(BookCase):
    """`summarize --each`: every chapter by itself."""

    def setUp(self):
        super().setUp()
        self.lengths = (10, 60, 8)  # the second is longer than the context
        self.chapters = self.path("chapters.txt", b"A word before.\n\n" + b"".join(
            b"Chapter %d\n\n" % (i + 1) +
            BOOK[:47 * length].replace(b"Part", b"Piece") + b"\n\n"
            for i, length in enumerate(self.lengths)))
        self.command = ["summarize", self.chapters, "--each", *SMALL]

    def test_each_chapter_has_a_summary_of_its_own(self):
        document = self.summary()
        outputs = document["output"]
        self.assertEqual([(o["chapter"], o["number"]) for o in outputs],
                         [("Chapter %d" % i, i) for i in (1, 2, 3)])
        parts = document["parts"]
        leaves = [[part for part in parts
                   if part["chapter"] == i and part["level"] == 0]
                  for i in range(3)]
        self.assertEqual(len(leaves[0]), 1)
        self.assertGreater(len(leaves[1]), 1)
        self.assertEqual(leaves[1][0]["chapters"], ["Chapter 2"])
        tokens = len(json.loads(self.succeed(
            "tokenize", "-f", self.chapters, "-m", CHAT, "--json"))["tokens"])
        self.assertGreater(leaves[0][0]["begin"], 0)
        ends = [own[-1]["end"] for own in leaves]
        begins = [own[0]["begin"] for own in leaves]
        self.assertEqual(begins, sorted(begins))
        for end, begin in zip(ends, begins[1:]):
            self.assertLessEqual(abs(begin - end), 2)
        self.assertLessEqual(abs(ends[-1] - tokens), 6)
        again = self.summary()
        self.assertEqual([o["text"] for o in again["output"]],
                         [o["text"] for o in outputs])
        self.assertEqual(again["prompt_tokens"], 0)
        # The length is asked of a chapter that fits, too.
        shorter = self.summary("--words", "20")
        self.assertNotEqual(shorter["output"][0]["text"], outputs[0]["text"])

    def test_what_holds_for_all_chapters_is_said_once(self):
        env = environment(XDG_CACHE_HOME=self.path("file", b""))
        result = run(*self.command, env=env)
        self.assertEqual(result.returncode, 0, result.stderr)
        said = [line for line in result.stderr.splitlines()
                if line.startswith(b"warning: ")]
        self.assertIn(b"no times are predicted", b"".join(said))
        self.assertEqual(len(said), len(set(said)), said)
        warnings = self.document(*self.command, env=env)["warnings"]
        self.assertEqual(len(warnings), len(set(warnings)), warnings)
        self.assertIn("no times are predicted", "".join(warnings))

    def test_text_and_notes(self):
        notes = self.path("notes.html")
        result = run(*self.command, "--output", notes, env=self.env)
        self.assertEqual(result.returncode, 0, result.stderr)
        heads = [line for line in result.stdout.splitlines()
                 if line.startswith(b"# ")]
        self.assertEqual(heads, [b"# Chapter 1", b"# Chapter 2",
                                 b"# Chapter 3"])
        with open(notes, "rb") as file:
            html = file.read()
        for i in (b"1", b"2", b"3"):
            self.assertIn(b'<a href="#chapter-%s">Chapter %s</a>' % (i, i),
                          html)
            self.assertIn(b'id="chapter-%s"' % i, html)
        chosen = run(*self.command, "--chapters", "2-3", env=self.env)
        self.assertEqual(
            [line for line in chosen.stdout.splitlines()
             if line.startswith(b"# ")], heads[1:])

    def test_what_has_no_chapters(self):
        self.refuse(3, "no_chapters", "summarize",
                    self.path("plain.txt", b"One. Two.\n"), "--each", *SMALL)
        streamed = run(*self.command, "--stream")
        self.assertEqual(streamed.returncode, 2)
        self.assertIn("--each", json.loads(streamed.stdout)["error"]["message"])
        self.refuse(2, "usage", *self.command, "--toc")


if __name__ == "__main__":
    unittest.main(argv=["cli_whole_book_test"])
