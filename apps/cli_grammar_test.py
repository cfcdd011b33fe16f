#!/usr/bin/env python3
"""Answers that a JSON schema or a grammar allows, under every policy, in a
server and in a batch.

    cli_grammar_test.py TIERCEL CHECKPOINTS

In a build without grammars it checks that the flags say so.
"""

import json
import unittest

from cli_testing import CHAT, TIERCEL, Case, environment, run
import gguf_file
import serving
import told_model
from told_model import CONTROL, NORMAL, USER, path_of

SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "maxLength": 12},
        "pages": {"type": "integer", "minimum": 0, "maximum": 999},
        "birds": {"type": "array", "maxItems": 3,
                  "items": {"enum": ["falcon", "heron", "owl"]}},
    },
    "required": ["title", "pages", "birds"],
}
BUILT = b'"not_built"' not in run("generate", "-m", CHAT, "-p", "a", "--json",
                                  "--grammar", "none").stdout


class GrammarCase(Case):
    def setUp(self):
        super().setUp()
        self.schema = self.path("schema.json", json.dumps(SCHEMA).encode())

    def server(self):
        server = serving.Server([TIERCEL, "serve", "-m", CHAT, "-c", "1000"],
                                environment())
        self.addCleanup(server.end)
        return server

    def check(self, text):
        """Checks that a text obeys the schema."""
        value = json.loads(text)
        self.assertEqual(list(value), ["title", "pages", "birds"])
        self.assertLessEqual(len(value["title"]), 12)
        self.assertIn(value["pages"], range(1000))
        self.assertLessEqual(len(value["birds"]), 3)
        self.assertLessEqual(set(value["birds"]), {"falcon", "heron", "owl"})


@unittest.skipIf(BUILT, "this build has grammars")
class WithoutGrammarsTest(GrammarCase):
    def test_the_flags_say_so(self):
        for flag in "--json-schema", "--grammar":
            said = self.refuse(2, "not_built", "generate", "-m", CHAT, "-p",
                               "a", flag, self.schema)
            self.assertIn(flag + ": this build has no grammars", said)

    def test_a_server_does_not_answer_freely(self):
        server = self.server()
        for name, value in (("json_schema", SCHEMA), ("grammar", "root ::= \"a\""),
                            ("response_format", {"type": "json_object"})):
            status, answer = server.post("/v1/completions",
                                      {"prompt": "a", name: value})
            self.assertEqual((status, answer["error"]["code"]),
                             (400, "unsupported_parameter"))


@unittest.skipUnless(BUILT, "this build has no grammars")
class GrammarTest(GrammarCase):
    def generate(self, *flags):
        return self.document("generate", "-m", CHAT, "-p", "The falcon", "-n",
                             "400", "-c", "3000", *flags)["output"][0]

    def test_a_schema_is_obeyed_by_random_weights(self):
        for seed in "0", "1", "2":
            output = self.generate("--json-schema", self.schema, "--temp", "1",
                                   "-s", seed)
            self.assertEqual(output["finish_reason"], "stop")
            self.check(output["text"])

    def test_the_text_is_the_same_under_every_policy(self):
        sampling = ["--json-schema", self.schema, "--temp", "0.8"]
        plain = self.generate(*sampling)
        small = ["--budget", "32", "--chunk", "8", "--sink", "8", "--window",
                 "8"]
        for flags in (["--draft", "ngram"], ["--policy", "triforce", *small],
                      ["--policy", "triforce", "--draft", "self", *small],
                      ["--policy", "speed"], ["--policy", "sadas"],
                      ["--policy", "sfi"]):
            output = self.generate(*sampling, *flags, "--verify", "coupled")
            self.assertEqual(output["text"], plain["text"], flags)

    def test_rules(self):
        rules = self.path("rules.gbnf", b'root ::= "yes" | "no" [!?]{2,3}\n')
        seen = {self.generate("--grammar", rules, "--temp", "2", "-s",
                              str(seed))["text"] for seed in range(12)}
        self.assertGreater(len(seen), 1)
        for text in seen:
            self.assertRegex(text, r"^(yes|no[!?]{2,3})$")

    def test_files_and_flags_that_will_not_do(self):
        generate = ["generate", "-m", CHAT, "-p", "a"]
        self.refuse(6, "file_not_found", *generate, "--grammar", "nowhere")
        for text, said in (
                (b"{", "it is no JSON"),
                (b'{"type": "object", "anyOf": [{}]}', "type beside anyOf"),
                (b'{"not": {}}', "not"),
                (b'{"items": ' * 60000 + b"1" + b"}" * 60000, "65536")):
            wrong = self.path("wrong.json", text)
            self.assertIn(said, self.refuse(3, "invalid_grammar", *generate,
                                            "--json-schema", wrong))
        self.refuse(2, "usage", *generate, "--json-schema", self.schema,
                    "--grammar", self.schema)
        self.refuse(2, "usage", *generate, "--json-schema", self.schema,
                    "--ignore-eos")

    def test_words_have_their_spaces(self):
        names = ["<unk>", "<s>", "</s>", "\u2581The", "\u2581cat"]
        model = told_model.write_gguf(
            self.path("space.gguf"), path_of(*names[3:], *names[3:]), names,
            [told_model.UNKNOWN, CONTROL, CONTROL, NORMAL, NORMAL],
            tokenizer__ggml__model=gguf_file.string("llama"),
            tokenizer__ggml__pre=None, tokenizer__ggml__merges=None,
            tokenizer__ggml__scores=gguf_file.array(
                6, [0.0] * 3 + [-1.0, -2.0]),
            tokenizer__ggml__eos_token_id=gguf_file.u32(2))
        rules = self.path("rules", b'root ::= " cat" (" The")+ " cat"')
        prompt = self.path("prompt", b"3")
        output = self.document("generate", "-m", model, "--tokens", prompt,
                               "-n", "9", "--grammar", rules)["output"][0]
        self.assertRegex(output["text"], r"^ ?cat( The)+( cat)?$")

    def test_a_question_about_a_book(self):
        book = self.path("book.txt", b"The falcon and the heron.\n" * 5)
        long = self.path("long.txt", b"The falcon and the heron.\n" * 200)
        ask = ["ask", book, "Which birds?", "-m", CHAT, "--no-cache", "-n",
               "400", "--json-schema", self.schema]
        self.check(self.document(*ask, "-c", "1000")["output"][0]["text"])
        self.refuse(3, "context_length_exceeded", "ask", long, *ask[2:], "-c",
                    "1000")

    def test_a_server_and_a_batch(self):
        server = self.server()
        body = {"messages": [{"role": "user", "content": "Which birds?"}],
                "max_tokens": 400, "temperature": 1, "seed": 3}
        formats = [
            {"response_format": {"type": "json_schema", "json_schema": {
                "name": "book", "strict": True, "schema": SCHEMA}}},
            {"json_schema": SCHEMA},
        ]
        for format in formats:
            status, answer = server.post("/v1/chat/completions",
                                      {**body, **format})
            self.assertEqual(status, 200, answer)
            self.check(answer["choices"][0]["message"]["content"])
        status, answer = server.post("/v1/chat/completions", {
            **body, "grammar": 'root ::= "owl" | "hawk"'})
        self.assertIn(answer["choices"][0]["message"]["content"],
                      ("owl", "hawk"))
        for format, param in (
                ({"response_format": {"type": "json_schema", "json_schema": {
                    "schema": {"not": {}}}}},
                 "response_format.json_schema.schema"),
                ({"grammar": "root ::="}, "grammar"),
                ({"response_format": {"type": "json_object", "schema": {}}},
                 "response_format"),
                ({"grammar": 'root ::= "a"', "ignore_eos": True}, "ignore_eos"),
                ({"response_format": {"type": "xml"}}, "response_format.type"),
                ({"grammar": "root ::= other", "json_schema": {}}, "grammar")):
            status, answer = server.post("/v1/chat/completions",
                                      {**body, **format})
            self.assertEqual(status, 400, answer)
            self.assertTrue(answer["error"]["param"].startswith(param), answer)
        lines = [{"custom_id": str(i), "method": "POST",
                  "url": "/v1/chat/completions", "body": {**body, **format}}
                 for i, format in enumerate(formats)]
        source = self.path("in.jsonl", "".join(
            json.dumps(line) + "\n" for line in lines).encode())
        answers = self.path("out.jsonl")
        self.succeed("batch", source, "-o", answers, "-m", CHAT, "-c", "1000")
        with open(answers, encoding="utf-8") as file:
            for line in file:
                self.check(json.loads(line)["response"]["body"]["choices"][0]
                           ["message"]["content"])


@unittest.skipUnless(BUILT, "this build has no grammars")
class ThoughtTest(GrammarCase):
    """A model that thinks before it answers thinks freely."""

    def test_a_thought_is_not_masked(self):
        special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>",
                   "</think>"]
        opens = told_model.CHATML.replace("assistant\n", "assistant\n<think>\n")
        note = self.path("note.txt", b"A note.\n")
        for template in told_model.CHATML, opens:
            for kind in USER, CONTROL, NORMAL:
                if template == told_model.CHATML and kind != CONTROL:
                    continue  # only a token can stand beside the grammar's
                follows = path_of("\n", "<think>", "h", "m", "</think>", "Y",
                                  "e", "s", "<|im_end|>")
                if template == opens:
                    follows = path_of("\n", "h", "m", "</think>", "Y", "e", "s",
                                      "<|im_end|>")
                model = told_model.write_gguf(
                    self.path("thinks.gguf"), follows,
                    told_model.tokens(special),
                    [CONTROL] * 3 + [kind] * 2 + [NORMAL] * 256,
                    tokenizer__chat_template=gguf_file.string(template))
                for rules, answer in (('"Yes!" | "No"', "Yes!"),
                                      ('"No"', "No")):
                    rules = self.path("rules", b"root ::= " + rules.encode())
                    output = self.document(
                        "ask", note, "hello", "-m", model, "--temp", "0",
                        "--repeat-penalty", "1", "-n", "16", "--no-cache",
                        "--grammar", rules)["output"][0]
                    self.assertEqual((output["reasoning"], output["text"]),
                                     ("hm", answer), (kind, rules))


if __name__ == "__main__":
    unittest.main(argv=["cli_grammar_test.py"])
