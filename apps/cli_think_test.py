#!/usr/bin/env python3
"""Models that think before they answer: the thought is told from the answer.

    cli_think_test.py TIERCEL CHECKPOINTS

Needs only the standard library.
"""

import json
import unittest

from cli_testing import Case, Terminal, run
import gguf_file
import told_model
from told_model import CONTROL, NORMAL, USER, path_of

GREEDY = ["--temp", "0", "--repeat-penalty", "1", "-n", "16"]
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"]
SWITCH = told_model.CHATML.replace(
    "assistant\n", "assistant\n{% if enable_thinking is defined and not "
    "enable_thinking %}<think></think>#{% endif %}")
OPENS = told_model.CHATML.replace("assistant\n", "assistant\n<think>\n")


class ThinkTest(Case):
    def model(self, template=told_model.CHATML, follows=None, kind=USER):
        follows = follows or path_of("\n", "<think>", "h", "m", "</think>", "Y",
                                     "e", "s", "<|im_end|>")
        names = told_model.tokens(SPECIAL)
        types = [CONTROL] * 3 + [kind] * 2 + [NORMAL] * 256
        return told_model.write_gguf(
            self.path("thinks.gguf"), follows, names, types,
            tokenizer__chat_template=gguf_file.string(template))

    def asked(self, model, *flags, questions=("hello",)):
        note = self.path("note.txt", b"A note.\n")
        return ["ask", note, *questions, "-m", model, *GREEDY, "--no-cache",
                *flags]

    def output(self, model, *flags):
        output = self.document(*self.asked(model, *flags))["output"][0]
        return output["reasoning"], output["text"], output["finish_reason"]

    def test_a_thought_is_no_part_of_the_answer(self):
        for kind in USER, CONTROL, NORMAL:
            model = self.model(kind=kind)
            self.assertEqual(self.output(model), ("hm", "Yes", "stop"))
            self.assertEqual(self.succeed(*self.asked(model)),
                             b"# hello\nYes\n")
        note = self.path("note.txt", b"A note.\n")
        self.assertEqual(
            self.succeed("summarize", note, "-m", model, *GREEDY), b"Yes\n")
        text = self.succeed("generate", "-p", "a\n", "-m", self.model(),
                            *GREEDY)
        self.assertEqual(text, b"<think>hm</think>Yes\n")

    def test_an_answer_may_end_within_a_thought(self):
        model = self.model()
        self.assertEqual(self.output(model, "-n", "2"), ("h", "", "length"))
        document = self.document(*self.asked(model, "-n", "2"))
        self.assertEqual(len(document["output"][0]["tokens"]), 2)
        # It is cut, too, if the model ends its turn there.
        model = self.model(follows=path_of("\n", "<think>", "h", "<|im_end|>"))
        self.assertEqual(self.output(model), ("h", "", "length"))

    def test_a_thought_that_the_template_begins(self):
        model = self.model(OPENS, path_of("\n", "h", "m", "</think>", "Y",
                                          "e", "s", "<|im_end|>"))
        self.assertEqual(self.output(model), ("hm", "Yes", "stop"))
        # Without one, it is closed where the model would go on with it.
        self.assertEqual(self.output(model, "--think", "off")[0], "")
        # It may begin the thought's text as well, but a message cannot.
        model = self.model(OPENS.replace("<think>\n", "<think>\nOkay"), path_of(
            "y", "h", "m", "</think>", "Y", "<|im_end|>"))
        self.assertEqual(self.output(model), ("hm", "Y", "stop"))
        model = self.model(told_model.CHATML.replace("assistant\n",
                                                     "{# <think>sir #}says:"),
                           path_of(":", "Y", "<|im_end|>"))
        self.assertEqual(self.document(*self.asked(
            model, questions=("<think>",)))["output"][0]["text"], "Y")

    def test_a_message_begins_no_thought(self):
        # No control token stands between this message and the answer.
        plain = ("{% for m in messages %}USER: {{ m.content }}\n{% endfor %}"
                 "{% if add_generation_prompt %}SAYS:{% endif %}")
        model = self.model(plain, path_of(":", "Y", "e", "s", "<|im_end|>"))
        for question in ("<think>", "What is <think>", "a </think> <think>"):
            output = self.document(*self.asked(
                model, questions=(question,)))["output"][0]
            self.assertEqual((output["text"], output["finish_reason"]),
                             ("Yes", "stop"), question)

    def test_the_template_is_told(self):
        follows = path_of("\n", "<think>", "z", "</think>", "A", "<|im_end|>")
        model = self.model(SWITCH, follows + path_of("#", "B", "<|im_end|>"))
        for flags, expected in (
                ([], ("z", "A")), (["--think", "on"], ("z", "A")),
                (["--think", "auto"], ("z", "A")),
                (["--think", "off"], ("", "B")),
                (["--template-kwargs", '{"enable_thinking":false}'], ("", "B")),
                (["--think", "off", "--template-kwargs",
                  '{"enable_thinking":true}'], ("z", "A"))):
            with self.subTest(flags):
                self.assertEqual(self.output(model, *flags)[:2], expected)
        for wrong in ("{", "[1]", '{"messages":[]}', "[" * 5000,
                      '{"a":1,"a":2}'):
            message = self.refuse(2, "invalid_argument", *self.asked(
                model, "--template-kwargs", wrong))
            self.assertIn("template", message)
        self.assertIn("1e400", self.refuse(2, "invalid_argument", *self.asked(
            model, "--template-kwargs", '{"x":1e400}')))

    def test_a_switch_that_changes_nothing_is_noted(self):
        for template, flags, noted in (
                (told_model.CHATML, [], False),
                (told_model.CHATML, ["--think", "off"], True),
                (SWITCH, ["--think", "off"], False),
                (SWITCH, ["--think", "on"], False),
                (SWITCH, ["--think", "on", "--template-kwargs",
                          '{"enable_thinking":true}'], True)):
            with self.subTest(flags):
                found = run(*self.asked(self.model(template), *flags))
                self.assertEqual(found.returncode, 0, found.stderr)
                self.assertEqual(b"changes nothing" in found.stderr, noted)

    def test_streams_tell_it(self):
        lines = [json.loads(line) for line in self.succeed(
            *self.asked(self.model(), "--stream")).splitlines()][:-1]
        self.assertEqual("".join(line["text"] for line in lines), "Yes")
        self.assertEqual(
            "".join(line.get("reasoning", "") for line in lines), "hm")
        two = self.succeed(*self.asked(self.model(), "--stream",
                                       questions=("a", "b")))
        lines = [json.loads(line) for line in two.splitlines()][:-1]
        for index in 0, 1:
            own = [line for line in lines if line["index"] == index]
            self.assertEqual(
                "".join(line.get("reasoning", "") for line in own), "hm")

    def summarized(self, *flags):
        book = self.path("book.txt", b"A boat came in.\n\n" * 200)
        return ["summarize", book, "-m", self.model(), *GREEDY, "-c", "512",
                "--no-cache", *flags]

    def test_no_part_of_a_tree_has_it(self):
        document = self.document(*self.summarized())
        self.assertGreater(len(document["parts"]), 3)
        for part in [*document["parts"], *document["output"]]:
            self.assertNotIn("think", part["text"])
            self.assertNotIn("hm", part["text"])
        lines = [json.loads(line) for line in self.succeed(
            *self.summarized("--stream")).splitlines()][:-1]
        thoughts = [line.get("reasoning", "") for line in lines
                    if (line["level"], line["number"]) == (0, 0)]
        self.assertEqual("".join(thoughts), "hm")

    def test_a_tree_of_thoughts_alone_says_so(self):
        document = self.document(*self.summarized("-n", "2"))
        output = document["output"][0]
        self.assertEqual((output["text"], output["finish_reason"]),
                         ("", "length"))
        self.assertIn("--think off", " ".join(document["warnings"]))
        self.assertNotIn("were cut", " ".join(document["warnings"]))
        self.assertNotIn("--think off", " ".join(
            self.document(*self.summarized())["warnings"]))

    def test_answers_of_parts_and_chapters_say_so_too(self):
        flags = self.summarized("-n", "2")[2:]
        text = b"A boat came in.\n\n" * 100
        book = self.path("chapters.txt", b"".join(
            b"Chapter %d\n\n" % i + text for i in (1, 2, 3)))
        for command in (["ask", book, "Who?"], ["summarize", book, "--each"]):
            document = self.document(*command, *flags)
            said = " ".join(document["warnings"])
            self.assertIn("ended within a thought and have no", said, command)
            self.assertNotIn("says anything", said)
            self.assertEqual({output["finish_reason"]
                              for output in document["output"]}, {"length"})

    def test_the_next_turn_has_it_if_the_template_wants_it(self):
        wants = told_model.CHATML.replace(
            "assistant\n",
            "assistant\n{% if messages|length > 1 and "
            "messages[1].reasoning_content == 'hm' %}#{% endif %}")
        model = self.model(wants, [
            *path_of("\n", "<think>", "h", "m", "</think>", "Y", "<|im_end|>"),
            *path_of("#", "A", "g", "<|im_end|>")])
        talk = run("chat", "-m", model, *GREEDY, input=b"a\nb\n")
        self.assertEqual(talk.stdout.split(), [b"Y", b"Ag"], talk.stderr)

    def test_the_next_turn_does_not_have_it(self):
        # The prompt ends with the letter that the first answer begins with.
        model = self.model(told_model.CHATML.replace(
            "assistant\n", "assistant {{ (messages[1].content if "
            "messages | length > 1 else '\n')[0] }}"))
        found = run("chat", "-m", model, *GREEDY, input=b"a\nb\n")
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertEqual(found.stdout.split(), [b"Yes", b"es"])

    def test_a_terminal_shows_it_in_grey(self):
        for changes, grey in (({}, "\x1b[90mhm"), ({"NO_COLOR": "1"}, "hm")):
            terminal = Terminal(self, *self.asked(self.model()), **changes)
            self.assertEqual(terminal.end(), 0)
            written = terminal.seen.decode()
            self.assertIn(grey, written)
            self.assertEqual("\x1b[90m" in written, "NO_COLOR" not in changes)


if __name__ == "__main__":
    unittest.main(argv=["cli_think_test.py"])
