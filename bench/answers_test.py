"""Tests of bench/answers: prompts are counted and answered, policy by policy.

    answers_test.py ANSWERS CHECKPOINTS
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ANSWERS, CHECKPOINTS = sys.argv[1], pathlib.Path(sys.argv[2])
MESSAGE = "One day a fox and a hen met in the far hills. " * 60
FULL = {"name": "full"}
SFI = {"name": "sfi", "form": "plain", "budget": 32, "window": 16}


def ask(prefix="hen met", most=8, policies=(), message=MESSAGE):
    return {"message": message, "prefix": prefix, "most": most,
            "policies": list(policies)}


def answers(*requests, model="llama_chat.gguf"):
    """The line about the program, and the replies."""
    with tempfile.TemporaryDirectory() as cache:
        run = subprocess.run(
            [ANSWERS, CHECKPOINTS / model, cache, "threads=1"],
            input="".join(line if isinstance(line, str) else json.dumps(line)
                          + "\n" for line in requests),
            capture_output=True, text=True, check=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


class AnswersTest(unittest.TestCase):
    def test_it_says_what_it_is(self):
        (about,) = answers()
        self.assertEqual(about["context"], 16384)
        self.assertIn("commit", about["version"])

    def test_a_prefix_stands_behind_the_template(self):
        _, none, one, empty = answers(ask(""), ask("zz"), ask("", message=""))
        self.assertEqual(set(none), {"prompt_tokens"})
        self.assertEqual(one["prompt_tokens"], none["prompt_tokens"] + 2)
        # Without a message there are still the template's own marks.
        self.assertGreater(empty["prompt_tokens"], 10)

    def test_a_model_without_a_template(self):
        with tempfile.TemporaryDirectory() as name:
            model = pathlib.Path(name) / "model"
            shutil.copytree(CHECKPOINTS / "llama_chat", model)
            settings = model / "tokenizer_config.json"
            known = json.loads(settings.read_text())
            marks = known.pop("chat_template")
            settings.write_text(json.dumps(known))
            _, plain = answers(ask(policies=[FULL]), model=model)
        _, chat = answers(ask(policies=[FULL]), model="llama_chat")
        self.assertIn("assistant", marks)
        self.assertLess(plain["prompt_tokens"], chat["prompt_tokens"])
        self.assertEqual(len(plain["answers"]), 1)

    def test_policies_answer_beside_each_other(self):
        exact = {"name": "triforce", "draft": "ngram", "budget": 64}
        _, together, alone, again = answers(
            ask(policies=[FULL, exact, SFI], most=24),
            ask(policies=[SFI], most=24), ask(policies=[FULL], most=24))
        full, verified, sfi = together["answers"]
        self.assertGreater(together["prompt_tokens"], 1024)  # goes on disk
        self.assertEqual(len(full["tokens"]), 24)
        self.assertEqual(full, verified)
        self.assertNotEqual(full, sfi)
        self.assertEqual(alone["answers"], [sfi])
        self.assertEqual(again["answers"], [full])

    def test_a_wrong_request_ends_nothing(self):
        _, policy, field, line, good = answers(
            ask(policies=[{"name": "nope"}]), {"message": "without the rest"},
            "no JSON\n", ask(policies=[FULL]))
        self.assertIn('"nope"', policy["error"])
        self.assertIn("prefix", field["error"])
        self.assertIn("error", line)
        self.assertEqual(len(good["answers"]), 1)

    def test_a_model_that_cannot_be_opened(self):
        run = subprocess.run([ANSWERS, "nowhere.gguf", "."],
                             capture_output=True, text=True)
        self.assertEqual(run.returncode, 1)
        self.assertIn("nowhere.gguf", run.stderr)
        self.assertEqual(subprocess.run([ANSWERS], capture_output=True)
                         .returncode, 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
