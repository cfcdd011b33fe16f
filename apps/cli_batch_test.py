#!/usr/bin/env python3
"""A file of requests, answered into another.

    cli_batch_test.py TIERCEL CHECKPOINTS
"""

import fcntl
import json
import os
import signal
import unittest

from cli_testing import CHAT, Case, environment, run, run_until

MODEL = ["-m", CHAT + ".gguf"]


def line(custom_id, body, url="/v1/chat/completions", **others):
    return json.dumps({"custom_id": custom_id, "method": "POST", "url": url,
                       "body": body, **others}) + "\n"


def talk(question, **members):
    return {"model": "any", "messages": [{"role": "user", "content": question}],
            "max_tokens": 12, **members}


def drawn(i, **members):
    return line("q%d" % i, talk("Question %d?" % i, temperature=0.9, seed=i,
                                **members))


class BatchTest(Case):
    def setUp(self):
        super().setUp()
        self.out = self.path("out.jsonl")

    def input(self, *lines):
        return self.path("in.jsonl", "".join(lines).encode())

    def batch(self, *flags, **kwargs):
        return run("batch", self.path("in.jsonl"), "-o", self.out, *MODEL,
                   *flags, **kwargs)

    def summary(self, *flags, exit_code=0):
        result = self.batch(*flags, "--json")
        self.assertEqual(result.returncode, exit_code, result.stderr)
        return json.loads(result.stdout)

    def counts(self, *flags, exit_code=0):
        summary = self.summary(*flags, exit_code=exit_code)
        return tuple(summary[name] for name in ("answered", "skipped", "failed"))

    def answers(self):
        """The lines of the output by custom_id."""
        with open(self.out) as file:
            text = file.read()
        self.assertTrue(text.endswith("\n") or not text)
        answers = {}
        for answer in map(json.loads, text.splitlines()):
            self.assertNotIn(answer["custom_id"], answers)
            answers[answer["custom_id"]] = answer
        return answers

    def texts(self):
        return {name: answer["response"]["body"]["choices"]
                for name, answer in self.answers().items()}

    def refused(self, code, *flags, exit_code=3):
        result = self.batch(*flags, "--json")
        error = json.loads(result.stdout)["error"]
        self.assertEqual((result.returncode, error["code"]), (exit_code, code))
        return error["message"]

    def test_answers_are_those_of_the_other_commands(self):
        document = self.path("book.txt", b"A man had a dog. " * 20)
        self.input(
            line("chat", talk("Who?", temperature=0.8, seed=3)),
            line("text", {"prompt": "The falcon", "max_tokens": 9},
                 url="/v1/completions"),
            line("ids", {"prompt": [5, 6, 7], "max_tokens": 9, "stop": ["q"]},
                 url="/v1/completions"),
            line("scored", {"prompt": "The falcon", "max_tokens": 9,
                            "logprobs": 0}, url="/v1/completions"),
            line("book", talk("Who?", tiercel={"document": "book.txt"})))
        self.assertEqual(self.counts(), (5, 0, 0))
        answers = self.answers()
        for name, answer in answers.items():
            self.assertEqual(set(answer), {"id", "custom_id", "response",
                                           "error", "tiercel"})
            self.assertIsNone(answer["error"])
            response = answer["response"]
            self.assertEqual(response["status_code"], 200)
            self.assertEqual(response["request_id"], response["body"]["id"])
        texts = self.texts()
        greedy = self.document("generate", *MODEL, "-p", "The falcon",
                               "-n", "9")
        self.assertEqual(texts["text"][0]["text"], greedy["output"][0]["text"])
        self.assertEqual(answers["text"]["response"]["body"]["usage"]
                         ["prompt_tokens"], greedy["prompt_tokens"])
        self.assertIsNone(texts["text"][0]["logprobs"])
        self.assertEqual(texts["scored"][0]["text"], greedy["output"][0]["text"])
        scored = texts["scored"][0]["logprobs"]
        self.assertEqual(len(scored["tokens"]), 9)
        self.assertLess(max(scored["token_logprobs"]), 0)
        ids = self.document("generate", *MODEL, "--tokens",
                            self.path("ids", b"5 6 7"), "-n", "9",
                            "--stop", "q")
        self.assertEqual(texts["ids"][0]["text"], ids["output"][0]["text"])
        said = run("chat", *MODEL, "-n", "12", "--temp", "0.8", "--seed", "3",
                   "--dry-multiplier", "0", "--quiet", input=b"Who?\n").stdout
        self.assertEqual(texts["chat"][0]["message"]["content"].strip(),
                         said.decode().strip())
        asked = self.document("ask", document, "Who?", *MODEL, "-n", "12",
                              "--dry-multiplier", "0")
        self.assertEqual(texts["book"][0]["message"]["content"],
                         asked["output"][0]["text"])
        self.assertEqual(answers["book"]["response"]["body"]["usage"]
                         ["prompt_tokens"], asked["prompt_tokens"])

    def test_many_at_once_are_as_alone(self):
        self.input(*map(drawn, range(16)))
        self.assertEqual(self.counts("--parallel", "1"), (16, 0, 0))
        alone = self.texts()
        for flags in (["--parallel", "8"],
                      ["--parallel", "3", "--policy", "speed", "--plain"],
                      ["--parallel", "3", "--draft", "small", "-md", CHAT,
                       "--verify", "coupled"]):
            with self.subTest(flags=flags):
                os.remove(self.out)
                if "speed" in flags:
                    self.batch(*flags[2:], "--parallel", "1")
                    expected = self.texts()
                    os.remove(self.out)
                else:
                    expected = alone
                self.assertEqual(self.counts(*flags), (16, 0, 0))
                self.assertEqual(self.texts(), expected)

    def test_a_beginning_is_read_once(self):
        self.path("book.txt", b"A man had a dog, and it had a name. " * 30)
        self.input(*(line(str(i), talk("Question %d?" % i, tiercel={
            "document": "book.txt"})) for i in range(4)))
        summary = self.summary("--parallel", "1")
        longest = max(answer["response"]["body"]["usage"]["prompt_tokens"]
                      for answer in self.answers().values())
        self.assertGreater(summary["cached_tokens"], 3 * (longest - 40))
        self.assertLess(summary["cached_tokens"], summary["prompt_tokens"])

    def test_what_fails_is_answered_so_and_tried_again(self):
        name = self.path("later.txt")
        self.input(
            drawn(0), line("n", talk("Who?", n=2)),
            line("stream", talk("Who?", stream=True)),
            line("long", talk("word " * 5000)),
            line("book", talk("Who?", tiercel={"document": "later.txt"})),
            line("mute", {"messages": [{"role": "system", "content": "a"}],
                          "tiercel": {"document": "later.txt"}}),
            line("blank", talk(" \n", tiercel={"document": "later.txt"})))
        self.assertEqual(self.counts(exit_code=1), (1, 0, 6))
        codes = {name: answer["response"]["body"]["error"]["code"]
                 for name, answer in self.answers().items() if name != "q0"}
        self.assertEqual(codes, {
            "n": "unsupported_parameter", "stream": "unsupported_parameter",
            "long": "context_length_exceeded", "book": "file_not_found",
            "mute": "unsupported_parameter", "blank": "invalid_request"})
        long = self.answers()["long"]["response"]
        self.assertEqual(long["status_code"], 400)
        self.assertGreater(long["body"]["error"]["n_prompt_tokens"],
                           long["body"]["error"]["n_ctx"])
        with open(name, "w") as file:
            file.write("A man had a dog.")
        self.assertEqual(self.counts(exit_code=1), (1, 1, 5))
        plain = self.batch()
        self.assertEqual(plain.returncode, 1)
        self.assertIn(b"0 answered now, 2 before, 5 failed", plain.stdout)
        self.assertIn(b"5 of 7 requests failed", plain.stderr)

    def test_what_cannot_be_read_fails_alone(self):
        wrong = {
            "half": line("half", {"prompt": "aSIGN"}).replace(
                "SIGN", "\\ud83d").encode(),
            "latin": line("latin", {"prompt": "SIGN"}).encode().replace(
                b"SIGN", b"caf\xe9"),
            "large": line("large", {"prompt": "a", "temperature": 7}).replace(
                ": 7", ": 1e999").encode(),
            "raw": line("raw", {"prompt": "SIGN"}).encode().replace(
                b"SIGN", b"a\tb\0c")}
        self.path("in.jsonl", drawn(0).encode() + b"".join(wrong.values()))
        self.assertEqual(self.counts(exit_code=1), (1, 0, 4))
        for name in wrong:
            response = self.answers()[name]["response"]
            self.assertEqual(response["status_code"], 400)
            self.assertEqual(response["body"]["error"]["code"], "invalid_json")
        self.assertEqual(self.counts(exit_code=1), (0, 1, 4))
        # A name that cannot be read has U+FFFD.
        self.path("in.jsonl", wrong["half"].replace(b'"half"', b'"\\ude00 1"'))
        self.assertEqual(self.counts(exit_code=1), (0, 0, 1))
        self.assertIn("\ufffd 1", self.answers())

    def test_the_input_may_grow_and_change(self):
        self.input(drawn(0), drawn(1))
        self.assertEqual(self.counts(), (2, 0, 0))
        before = self.answers()
        self.input(drawn(2), drawn(1), drawn(0, top_k=1), drawn(3))
        self.assertEqual(self.counts(), (3, 1, 0))
        self.assertEqual(self.answers()["q1"], before["q1"])
        self.assertEqual(len(self.answers()), 4)
        self.assertEqual(self.counts("--parallel", "2"), (0, 4, 0))
        # Nothing is left to do, so that no weights are read.
        broken = self.without_weights()
        self.assertEqual(run("generate", "-m", broken, "--check-tensors", "-p",
                             "a").returncode, 3)

    def test_a_wrong_input_is_refused_before_anything_is_made(self):
        good = drawn(0)
        for text, said in (
                (good + drawn(1) + good, "line 3: custom_id 'q0' is that of "
                                         "line 1, too"),
                (good + "{\n", "line 2: the body is no JSON"),
                ("\n" + line("", {}), "line 2: custom_id"),
                (line("a", {}, url="/v1/embeddings"), "line 1: url: got "
                                                      "'/v1/embeddings'"),
                (line("a", 7), "line 1: body: need an object"),
                (line("a", {}).replace("POST", "GET"), "line 1: method")):
            self.input(text)
            self.assertIn(said, self.refused("invalid_batch"))
            self.assertFalse(os.path.exists(self.out))
        os.remove(self.path("in.jsonl"))
        self.refused("io_error", exit_code=6)
        self.input(good)
        for output in (self.path("in.jsonl"), MODEL[1]):
            result = run("batch", self.path("in.jsonl"), "-o", output, *MODEL)
            self.assertEqual(result.returncode, 2, result.stderr)
        result = run("batch", self.path("in.jsonl"), *MODEL)
        self.assertEqual(result.returncode, 2)
        self.assertIn(b"-o OUT.jsonl", result.stderr)

    def test_an_output_of_another_job_is_refused(self):
        self.input(drawn(0))
        self.assertEqual(self.counts(), (1, 0, 0))
        with open(self.out, "rb") as file:
            before = file.read()
        for flags in (["--min-p", "0.1"], ["--compute", "f32"]):
            self.assertIn("line 1", self.refused("another_job", *flags))
        other = run("batch", self.path("in.jsonl"), "-o", self.out, "-m", CHAT)
        self.assertEqual(other.returncode, 3, other.stderr)
        with open(self.out, "rb") as file:
            self.assertEqual(file.read(), before)
            fcntl.flock(file, fcntl.LOCK_EX)
            self.refused("output_in_use", exit_code=6)
        for mine in (b"a text of mine\n", b"a text of mine", b'{"my": 1}'):
            self.path("out.jsonl", mine)
            self.assertIn("line 1 is no answer", self.refused("not_a_batch"))
            with open(self.out, "rb") as file:
                self.assertEqual(file.read(), mine)

    def test_a_torn_answer_is_made_again(self):
        self.input(drawn(0), drawn(1))
        self.assertEqual(self.counts(), (2, 0, 0))
        with open(self.out, "rb") as file:
            whole = file.read()
        first = whole.index(b"\n") + 1
        for kept in (first + 1, first + 10, len(whole) - 1):
            self.path("out.jsonl", whole[:kept])
            self.assertEqual(self.counts(), (1, 1, 0))
            self.assertEqual(len(self.answers()), 2)
        self.path("out.jsonl", whole + b"\n")  # an editor's last line
        self.assertEqual(self.counts(), (0, 2, 0))

    def test_another_model_of_the_same_shape_is_another_job(self):
        model = self.path("model.gguf", b"")
        self.input(drawn(0))
        with open(CHAT + ".gguf", "rb") as file:
            weights = bytearray(file.read())
        for change in (False, True):
            if change:  # within the weights
                weights[len(weights) // 2] ^= 1
            with open(model, "wb") as file:
                file.write(weights)
            result = run("batch", self.path("in.jsonl"), "-o", self.out, "-m",
                         model)
            self.assertEqual(result.returncode, 3 if change else 0,
                             result.stderr)
        self.assertIn(b"another model", result.stderr)

    def test_a_changed_page_of_a_folder_is_read_again(self):
        os.mkdir(self.path("pages"))
        page = self.path("pages/index.html", b"<p>One.</p>")
        self.input(line("a", talk("Q?", tiercel={"document": "pages"})))
        self.assertEqual(self.counts(), (1, 0, 0))
        self.assertEqual(self.counts(), (0, 1, 0))
        with open(page, "wb") as file:
            file.write(b"<p>Two.</p>")
        self.assertEqual(self.counts(), (1, 0, 0))

    def test_an_input_is_read_twice(self):
        result = run("batch", "/dev/stdin", "-o", self.out, *MODEL, "--json",
                     input=drawn(0).encode())
        self.assertEqual(result.returncode, 6, result.stderr)
        self.assertIn(b"not_a_regular_file", result.stdout)

    def test_a_killed_batch_goes_on(self):
        self.input(*(drawn(i, ignore_eos=True, max_tokens=200)
                     for i in range(60)))
        self.assertEqual(self.counts(), (60, 0, 0))
        whole = self.texts()
        os.remove(self.out)

        def has(size):
            return lambda: (os.path.exists(self.out)
                            and os.path.getsize(self.out) > size)

        command = ["batch", self.path("in.jsonl"), "-o", self.out, *MODEL]
        process, _, _ = run_until(has(0), signal.SIGKILL, *command,
                                  env=environment())
        self.assertEqual(process.returncode, -signal.SIGKILL)
        with open(self.out, "r+b") as file:  # as if it was killed in a write
            text = file.read()
            file.truncate(text.rstrip(b"\n").rfind(b"\n") + 30)
        torn = text.count(b"\n") - 1
        process, _, said = run_until(has(len(text) + 1), signal.SIGTERM,
                                     *command, env=environment())
        self.assertEqual(process.returncode, 143)
        self.assertIn(b"interrupted", said)
        kept = len(self.answers())
        self.assertLess(torn, kept)
        self.assertLess(kept, 60)
        self.assertEqual(self.counts(), (60 - kept, kept, 0))
        self.assertEqual(self.texts(), whole)


if __name__ == "__main__":
    unittest.main(argv=["cli_batch_test"])
