"""Texts, streams and talks of the package, beside those of the program.

    generation_test.py TIERCEL CHECKPOINTS

Reads TIERCEL_MODEL, too, if it is set.
"""

import gc
import os
import struct
import subprocess
import sys
import tempfile
import time
import unittest

from package_testing import CHAT, Case
import told_model

import tiercel
from tiercel import _stream

SAMPLING = {"max_tokens": 24, "temperature": 0.9, "seed": 7}
FLAGS = ["-n", "24", "--temp", "0.9", "--seed", "7"]


class GenerationTest(Case):
    def test_the_text_is_the_programs(self):
        for name in "llama_chat.gguf", "llama_chat":
            path = os.path.join(os.path.dirname(CHAT), name)
            self.check_text(path)

    def test_texts_begin_with_bos(self):
        bos = 1
        session = self.says(
            "a", "b",
            tokenizer__ggml__bos_token_id=told_model.gguf_file.u32(bos),
            tokenizer__ggml__add_bos_token=struct.pack("<I?", 7, True))
        self.assertEqual(session.generate("a", max_tokens=1), "b")
        ids = session.ids
        self.assertEqual((len(ids), ids[0]), (3, bos))
        self.assertEqual(self.document(
            "generate", "-m", session.model.path, "-p", "a", "-n",
            "1")["prompt_tokens"], 2)
        session.read("a")
        session.append("b")
        self.assertEqual(session.ids, ids)
        session.truncate(0)
        session.append("a")
        self.assertEqual(session.ids, ids[:2])

    def test_ids_alone(self):
        path = os.path.join(os.path.dirname(CHAT), "qwen3.gguf")
        ids = self.document("generate", "-m", path, "--tokens",
                            self.path("ids", b"1 2 3"),
                            *FLAGS)["output"][0]["tokens"]
        session = tiercel.Session(tiercel.Model(path))
        self.assertEqual(session.generate([1, 2, 3], **SAMPLING), "")
        self.assertEqual(session.ids, [1, 2, 3, *ids])
        self.assertEqual(list(session.generate(stream=True, max_tokens=2)), [])
        self.refused(tiercel.InvalidInput, "no tokenizer", session.generate,
                     "a")

    @unittest.skipUnless(os.environ.get("TIERCEL_MODEL"),
                         "TIERCEL_MODEL is not set")
    def test_the_text_of_a_real_model_is_the_programs(self):
        self.check_text(os.environ["TIERCEL_MODEL"])

    def check_text(self, path):
        args = ["generate", "-m", path, "-p", "The falcon", *FLAGS]
        document = self.document(*args)
        expected = document["output"][0]
        with tiercel.Model(path) as model, \
                tiercel.Session(model) as session:
            self.assertEqual(session.generate("The falcon", **SAMPLING),
                             expected["text"])
            self.assertEqual(session.ids[-len(expected["tokens"]):],
                             expected["tokens"])
            self.assertEqual(session.report()["output"], [expected])
            stream = session.generate("The falcon", stream=True, **SAMPLING)
            self.assertEqual("".join(stream), expected["text"])
            self.assertEqual(list(stream), [])
            # The parameters do something.
            self.assertNotEqual(
                session.generate("The falcon", **{**SAMPLING, "seed": 8}),
                expected["text"])

    def test_policies_and_stops(self):
        policy = {"name": "triforce", "draft": "ngram", "budget": 64,
                  "gamma1": tiercel.ADAPTIVE}
        session = self.session(context=400, policy=policy)
        greedy = session.generate("one two one two", max_tokens=40)
        level = session.report()["speculation"]["levels"][0]
        self.assertEqual(level["drafter"], "ngram")
        plain = self.session(context=400)
        self.assertEqual(plain.generate("one two one two", max_tokens=40),
                         greedy)
        cut = greedy[len(greedy) // 2:][:3]
        for stop in cut, [cut], ["no such", cut]:
            self.assertEqual(plain.generate("one two one two", max_tokens=40,
                                            stop=stop),
                             greedy[:greedy.index(cut)])
        named = self.session(context=400, policy="triforce")
        self.assertEqual(named.generate("one two one two", max_tokens=40),
                         greedy)

    def test_characters_stay_whole(self):
        session = self.says("\n", *("é€🦅".encode().decode("latin-1")),
                            "<|im_end|>")
        self.assertEqual(session.generate("\n"), "é€🦅")
        self.assertEqual(list(session.generate("\n", stream=True)),
                         ["é", "€", "🦅"])
        # One that a call leaves incomplete comes whole with the next.
        self.assertEqual(session.generate("\n", max_tokens=3), "é")
        self.assertEqual(list(session.generate(stream=True, max_tokens=2)),
                         ["€"])

    def test_a_stream_that_is_left_keeps_what_was_taken(self):
        session = self.session()
        whole = session.generate("a", **SAMPLING)
        prompt = len(self.model.tokenize("a"))
        count = session.length - prompt
        for leave in (lambda stream: stream.close(), lambda stream: None):
            stream = session.generate("a", stream=True, **SAMPLING)
            begin = next(stream) + next(stream)
            leave(stream)
            del stream
            gc.collect()
            held = session.ids[prompt:]
            self.assertEqual(self.model.detokenize(held), begin)
            rest = session.generate(**{**SAMPLING,
                                       "max_tokens": count - len(held)})
            self.assertEqual(begin + rest, whole)
        # Other work ends a stream, too, whose thread waits for room.
        stream = session.generate("a", stream=True, ignore_eos=True,
                                  **SAMPLING)
        next(stream)
        while len(stream._generation._pieces) < _stream._MOST_AHEAD:
            time.sleep(0.001)
        time.sleep(0.01)
        session.append("b")
        self.refused(tiercel.Cancelled, "closed", next, stream)
        self.assertRaises(StopIteration, next, stream)
        with session.generate("a", stream=True, **SAMPLING) as stream:
            next(stream)
        self.assertLess(session.length, prompt + count)

    def test_a_talk(self):
        session = self.session()
        first = session.chat("who?", max_tokens=6)
        second = "".join(session.chat("why?", max_tokens=6, stream=True))
        talk = [{"role": "user", "content": "who?"},
                {"role": "assistant", "content": first},
                {"role": "user", "content": "why?"}]
        self.assertEqual(session.messages,
                         [*talk, {"role": "assistant", "content": second}])
        self.assertGreater(session.report()["cached_tokens"], 0)
        other = self.session()
        self.assertEqual(other.generate(self.model.chat_tokens(talk),
                                        max_tokens=6, split_thought=True),
                         second)
        self.assertEqual(other.chat(talk, max_tokens=6), second)
        self.assertEqual(other.messages, session.messages)
        # A stream adds what was taken, and one that gave nothing, nothing.
        stream = session.chat("how?", max_tokens=6, stream=True)
        self.assertEqual(len(session.messages), 4)
        piece = next(stream)
        self.assertEqual(session.messages[-1]["content"], piece)
        list(stream)
        self.assertEqual(session.fork().messages, session.messages)

    def test_thoughts(self):
        session = self.says("\n", "<think>", "h", "m", "</think>", "Y", "e",
                            "s", "<|im_end|>", special=["<think>", "</think>"])
        for stream in False, True:
            thought = []
            answer = session.chat([{"role": "user", "content": "?"}],
                                  stream=stream, on_thought=thought.append)
            self.assertEqual("".join(answer), "Yes")
            self.assertEqual("".join(thought), "hm")
            self.assertEqual(session.messages[-1], {
                "role": "assistant", "content": "Yes", "reasoning": "hm"})
        self.assertEqual(session.chat("?", split_thought=False),
                         "hmYes")
        template = told_model.CHATML.replace(
            "assistant\n", "{% if enable_thinking %}A{% endif %}{{ name }}\n")
        model = self.says("\n", "Y", template=template).model
        talk = [{"role": "user", "content": "?"}]
        text = model.detokenize(
            model.chat_tokens(talk, think=True, template_kwargs={"name": "N"}),
            parse_special=True)
        self.assertTrue(text.endswith("<|im_start|>AN\n"), text)
        self.assertNotIn("A", model.detokenize(model.chat_tokens(talk)))
        answer = {"role": "assistant", "content": "Ye"}
        text = self.model.detokenize(self.model.chat_tokens(
            [*talk, answer], continue_last=True), parse_special=True)
        self.assertTrue(text.endswith("assistant\nYe"), text)

    def test_masks(self):
        session = self.session()
        prompt = self.model.tokenize("a")
        lengths = []

        def even(output, allowed):
            lengths.append(len(output))
            self.assertTrue(all(token % 2 == 0 for token in output))
            allowed[:] = bytes(byte & 0x55 for byte in allowed)

        def listed(output, allowed):
            return range(0, vocab, 2)

        vocab = self.model.info["vocab"]
        free = session.generate(prompt, ignore_eos=True, **SAMPLING)
        for policy in "full", {"name": "triforce", "draft": "ngram",
                               "verify": "coupled"}:
            session = self.session(context=400, policy=policy)
            texts = [session.generate(prompt, ignore_eos=True, mask=mask,
                                      **SAMPLING) for mask in (even, listed)]
            self.assertEqual(texts[0], texts[1])
            self.assertNotEqual(texts[0], free)
            self.assertTrue(all(token % 2 == 0 for token in
                                session.ids[len(prompt):]))
        self.assertEqual(lengths[:3], [0, 1, 2])
        self.assertEqual("".join(session.generate(
            prompt, ignore_eos=True, mask=even, stream=True, **SAMPLING)),
            texts[0])
        talk = [{"role": "user", "content": "?"}]
        session.chat(talk, mask=lambda output, allowed: [6], max_tokens=3)
        self.assertEqual(session.ids[-3:], [6, 6, 6])

        def fails(output, allowed):
            if len(output) == 2:
                raise KeyError("mine")

        for stream in False, True:
            with self.assertRaisesRegex(KeyError, "mine"):
                list(session.generate(prompt, mask=fails, stream=stream,
                                      **SAMPLING))
        error = self.refused(tiercel.Failed, "allows no token",
                             session.generate, prompt, mask=lambda *_: [])
        self.assertEqual(error.code, "nothing_allowed")
        self.refused(TypeError, "mask is of type str; need a function",
                     session.generate, prompt, mask="even")
        self.refused(ValueError, "-1 is no token id", session.generate, prompt,
                     mask=lambda *_: [-1])
        self.refused(ValueError, "need the", session.generate, prompt,
                     mask=lambda output, allowed: allowed.clear())

    def test_log_probs(self):
        session = self.session()
        told = []
        text = session.generate("a", on_token=told.append, log_probs=True,
                                top_log_probs=3, **SAMPLING)
        self.assertEqual("".join(token.text for token in told), text)
        self.assertEqual([token.id for token in told], session.ids[1:])
        for token in told:
            self.assertEqual(len(token.top_log_probs), 3)
            self.assertGreaterEqual(token.top_log_probs[0][1], token.log_prob)
            self.assertLess(token.log_prob, 0)
            if token.id in dict(token.top_log_probs):
                self.assertEqual(dict(token.top_log_probs)[token.id],
                                 token.log_prob)
        again = []
        stream = session.generate("a", on_token=again.append, stream=True,
                                  **SAMPLING)
        next(stream)
        self.assertLess(len(again), len(told))
        list(stream)
        self.assertEqual(
            again, [token._replace(log_prob=0, top_log_probs=[])
                    for token in told])
        self.refused(tiercel.Usage, "need 0 to 20", session.generate, "a",
                     log_probs=1, top_log_probs=21)

    def test_the_example(self):
        example = os.path.join(os.path.dirname(__file__),
                               "../../../examples/chat.py")
        done = subprocess.run([sys.executable, "-B", example, CHAT],
                              input="a\nb\n", capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        session = self.session()
        self.assertEqual(done.stdout, "".join(
            session.chat(line, max_tokens=256) + "\n" for line in "ab"))
        done = subprocess.run([sys.executable, "-B", example, "none"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "^chat: .*none")

    def test_tokens(self):
        ids = self.model.tokenize("The cat<|im_end|> sat")
        self.assertEqual(ids, self.document(
            "tokenize", "-m", CHAT,
            input="The cat<|im_end|> sat".encode())["tokens"])
        self.assertEqual(self.model.detokenize(ids), "The cat<|im_end|> sat")
        special = self.model.tokenize("<|im_end|>", parse_special=True,
                                      add_bos=False)
        self.assertEqual(len(special), 1)
        self.assertEqual(self.model.detokenize(special), "")
        self.assertEqual(
            self.model.detokenize(special, parse_special=True), "<|im_end|>")
        info = self.model.info
        self.assertIn(info["eos_id"], range(info["vocab"]))
        self.assertIn(info["eos_id"], info["end_ids"])
        self.assertIn("<|im_start|>", info["chat_template"])
        session = self.session()
        session.append("The cat")
        session.append(self.model.tokenize(" sat", add_bos=False))
        self.assertEqual(session.ids, self.model.tokenize("The cat") +
                         self.model.tokenize(" sat", add_bos=False))
        session.truncate(1)
        self.assertEqual(session.length, 1)
        self.assertEqual(self.model.detokenize([]), "")
        self.assertEqual(self.model.tokenize("", add_bos=False), [])

    def test_logits(self):
        numpy = self.numpy()
        ids = self.model.tokenize("The cat sat on the mat.")
        logits = self.path("logits.npy")
        self.document("eval", "-m", CHAT, "--logits", logits, "--tokens",
                      self.path("ids", " ".join(map(str, ids)).encode()))
        session = self.session()
        rows = session.score(ids)
        self.assertEqual(rows.shape, (len(ids), self.model.info["vocab"]))
        expected = numpy.load(logits)
        self.assertEqual(rows[:len(expected)].tobytes(), expected.tobytes())
        kept = {}
        other = self.session()
        self.assertIsNone(other.score("The cat sat on the mat.",
                                      rows_per_step=3,
                                      on_row=kept.__setitem__))
        for i, row in enumerate(rows):
            self.assertEqual(row.tobytes(), kept[i].tobytes())
        self.assertEqual(other.ids, ids)
        other.generate(max_tokens=1)
        self.assertEqual(other.ids[-1], rows[-1].argmax())

    def numpy(self):
        try:
            import numpy
        except ImportError:
            self.refused(ImportError, "needs numpy", self.session().score, "a")
            self.skipTest("numpy is not installed")
        return numpy

    def test_what_is_kept_of_a_prompt(self):
        with tempfile.TemporaryDirectory() as folder:
            kept = {"prompt_cache_dir": folder}
            ids = 1500 * [7]
            self.assertEqual(self.model.cached_tokens(ids, **kept), 0)
            with self.session(**kept) as session:
                session.read(ids)
            self.assertEqual(self.model.cached_tokens(ids, **kept), 1499)
            self.assertEqual(self.model.cached_tokens([7] * 2000, **kept), 1500)
        self.assertEqual(self.model.cached_tokens(ids), 0)

    def test_plans_and_descriptions(self):
        described = self.document("inspect", "-m", CHAT)
        self.assertEqual(
            described, {**described, **self.model.describe()})
        machine = {"threads": 1, "device_memory_bytes": 1 << 28}
        planned = tiercel.plan(CHAT, context=1000, kv_type_k="f32", **machine)
        self.assertEqual(planned, tiercel.Model(CHAT, load="header", **machine)
                         .plan(context=1000, kv_type_k="f32"))
        self.assertTrue(planned["fits"])
        self.assertFalse(tiercel.plan(CHAT, device_memory_bytes=1 << 20,
                                      context=16000)["fits"])
        small = {"device_bytes": 1 << 28, "link_bytes_per_s": 2e9}
        self.assertEqual(tiercel.plan(CHAT, simulation=small)["link_gb_s"], 2)
        self.assertEqual(tiercel.devices()[0]["device"], "cpu")
        self.assertRegex(tiercel.version(), r"\d+\.\d+\.\d+ \(commit ")


if __name__ == "__main__":
    unittest.main(argv=["generation_test.py"])
