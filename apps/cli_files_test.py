#!/usr/bin/env python3
"""Model files as people have them: other spellings, keys that are absent, side
files that disagree.

    cli_files_test.py TIERCEL CHECKPOINTS

Needs only the standard library.
"""

import math
import os
import random
import struct
import unittest

from cli_testing import CHECKPOINTS, Case, run
import gguf_file
import told_model
from told_model import BYTE, CONTROL, NORMAL, UNKNOWN, UNUSED, USER, path_of

GREEDY = ["--temp", "0", "--repeat-penalty", "1", "-n", "8", "--no-cache"]


class FilesCase(Case):
    def ask(self, model, *flags):
        """Returns the answer to a question about a note, and its end."""
        note = self.path("note.txt", b"A note.\n")
        said = self.document("ask", note, "hello", "-m", model, *GREEDY, *flags)
        output = said["output"][0]
        return output["text"], output["finish_reason"]


class EndsTest(FilesCase):
    """The tokens that end an answer."""

    def answer(self, end, template, *flags, types=None, **keys):
        names = told_model.tokens(["<|endoftext|>", "<|im_start|>", end])
        model = told_model.write_gguf(
            self.path("model.gguf"), path_of("\n", "O", "K", end, "!", "!"),
            names, types, tokenizer__chat_template=gguf_file.string(template),
            **keys)
        return self.ask(model, *flags)

    def test_known_texts_of_control_tokens(self):
        plain = told_model.CHATML.replace("<|im_end|>", "")
        for end in "<|im_end|>", "<|eot_id|>", "<end_of_turn>", "</s>":
            with self.subTest(end):
                self.assertEqual(self.answer(end, plain), ("OK", "stop"))
        # A word with such a text is a control token; any other word is none.
        self.assertEqual(
            self.answer("<|im_end|>", plain,
                        types=[CONTROL, CONTROL, USER] + [NORMAL] * 256),
            ("OK", "stop"))
        self.assertEqual(self.answer("<sep>", plain)[1], "length")

    def test_what_the_template_ends_a_turn_with(self):
        own = told_model.CHATML.replace("<|im_end|>", "<sep>")
        self.assertEqual(self.answer("<sep>", own), ("OK", "stop"))
        self.assertEqual(
            self.answer("<sep>", own, "--ignore-eos"), ("OK!!!!!", "length"))

    def test_the_template_may_end_a_turn_with_a_known_text(self):
        """Only some files call it a control token."""
        template = told_model.CHATML.replace("<|im_end|>", "</s>")
        self.assertEqual(
            self.answer("</s>", template,
                        types=[CONTROL, CONTROL, USER] + [NORMAL] * 256),
            ("OK", "stop"))

    def test_stops_name_a_control_token(self):
        plain = told_model.CHATML.replace("<|im_end|>", "")
        for flag, value in (("--stop", "<sep>"), ("--stop-id", "2")):
            for more in [], ["--ignore-eos"]:
                with self.subTest(flag=flag, more=more):
                    self.assertEqual(
                        self.answer("<sep>", plain, flag, value, *more),
                        ("OK", "stop"))
        self.assertEqual(self.answer("<sep>", plain, "--stop-id", "1")[1],
                         "length")
        said = self.refuse(2, "invalid_stop", "generate", "-m",
                           self.path("model.gguf"), "-p", "x", "--stop-id",
                           "259")
        self.assertIn("got 259, need 0 to 258", said)


OK = path_of("\n", "O", "K", "<|im_end|>", "!", "!")


class FolderTest(FilesCase):
    """Side files of a folder."""

    def folder(self, name, **kwargs):
        return told_model.write_folder(self.path(name), OK, **kwargs)

    def settings(self, template=told_model.CHATML, **fields):
        return {"tokenizer_config.json": {"chat_template": template, **fields}}

    def test_the_template_gets_the_tokens_that_are_said(self):
        # The model answers to the last character that the template writes.
        template = told_model.CHATML.replace("assistant\n",
                                             "assistant\n{{ bos_token }}")
        for number, (fields, config, answers) in enumerate([
                ({"bos_token": None}, {"bos_token_id": 0}, True),
                ({"tokenizer_class": "PreTrainedTokenizerFast"},
                 {"bos_token_id": 0}, True),
                ({"bos_token": "<|endoftext|>"}, {}, False)]):
            with self.subTest(fields):
                model = self.folder(
                    f"m{number}", config=config,
                    files=self.settings(template, eos_token="<|im_end|>",
                                        **fields))
                text, _ = self.ask(model)
                self.assertEqual(text == "OK", answers, text)

    def test_the_template_gets_other_tokens_by_name(self):
        names = told_model.tokens([*told_model.SPECIAL, "<pad>"])
        follows = [*path_of("!", "N"), *path_of("<pad>", "O", "<|im_end|>")]
        template = ("{{ messages[0].content }}{% if add_generation_prompt %}"
                    "!{{ pad_token }}{% endif %}")
        model = told_model.write_gguf(
            self.path("pad.gguf"), follows, names,
            tokenizer__chat_template=gguf_file.string(template),
            tokenizer__ggml__padding_token_id=gguf_file.u32(3),
            tokenizer__ggml__eos_token_id=gguf_file.u32(2))
        self.assertEqual(self.ask(model), ("O", "stop"))
        special = [*told_model.SPECIAL, "<pad>"]
        for number, pad in enumerate(["<pad>", {"content": "<pad>"}]):
            model = told_model.write_folder(
                self.path(f"m{number}"), follows, names, files={
                    "tokenizer.json": told_model.tokenizer_json(names, special),
                    "tokenizer_config.json": {
                        "chat_template": template, "pad_token": pad,
                        "eos_token": "<|im_end|>"}})
            self.assertEqual(self.ask(model), ("O", "stop"))

    def test_special_tokens_in_one_file_alone(self):
        names = told_model.tokens()
        plain = told_model.tokenizer_json(names, [])
        for number, files in enumerate([
                {"special_tokens_map.json": {"eos_token": "<|im_end|>"},
                 **self.settings()},
                {**self.settings(added_tokens_decoder={
                    "2": {"content": "<|im_end|>", "special": True}})},
                {"generation_config.json": {"eos_token_id": [1, 2]},
                 **self.settings()},
                {"added_tokens.json": {"<|im_end|>": 2},
                 **self.settings(eos_token="<|im_end|>")}]):
            with self.subTest(files):
                model = self.folder(f"m{number}",
                                    config={"eos_token_id": None},
                                    files={"tokenizer.json": plain, **files})
                self.assertEqual(self.ask(model), ("OK", "stop"))
        self.assertEqual(self.document(
            "tokenize", "-m", self.path("m1"), "--parse-special", "-p",
            "<|im_end|>")["tokens"], [2])

    def test_a_vocabulary_without_tokenizer_json(self):
        names = told_model.tokens()
        model = self.folder("m", files={
            "tokenizer.json": None,
            "vocab.json": {name: i for i, name in enumerate(names)},
            "merges.txt": "#version: 0.2\n"})
        self.assertEqual(self.ask(model), ("OK", "stop"))
        os.remove(os.path.join(model, "merges.txt"))
        self.refuse(3, "no_tokenizer", "generate", "-m", model, "-p", "x")

    def test_pointers_of_git_lfs(self):
        pointer = (b"version https://git-lfs.github.com/spec/v1\n"
                   b"oid sha256:4d7a\nsize 12345\n")
        model = self.folder("m")
        for name in "model.safetensors", "config.json":
            path = os.path.join(model, name)
            with open(path, "rb") as file:
                whole = file.read()
            with open(path, "wb") as file:
                file.write(pointer)
            said = self.refuse(3, "git_lfs_pointer", "inspect", model)
            self.assertIn(name + ": is a Git LFS pointer", said)
            with open(path, "wb") as file:
                file.write(whole)

    def test_broken_side_files(self):
        """Each stops what needs it, and no more."""
        template = {"tokenizer_config.json": {"eos_token": "<|im_end|>"},
                    "chat_template.jinja": told_model.CHATML}
        pointer = (b"version https://git-lfs.github.com/spec/v1\n"
                   b"oid sha256:4d7a\nsize 12345\n")
        directory = None
        for name, content, keeps_tokenizer in (
                ("tokenizer.json", pointer, False),
                ("tokenizer_config.json", b"", False),
                ("added_tokens.json", directory, False),
                ("special_tokens_map.json", b'{"eos', True),
                ("generation_config.json", pointer, True),
                ("chat_template.jinja", b"\xff", True)):
            with self.subTest(name):
                model = self.folder(name, files=template)
                path = os.path.join(model, name)
                if os.path.exists(path):
                    os.remove(path)
                if content is directory:
                    os.mkdir(path)
                else:
                    with open(path, "wb") as file:
                        file.write(content)
                self.check_broken(model, name, keeps_tokenizer)

    def test_inspect_describes_what_lacks_data(self):
        model = self.folder("m")
        weights = os.path.join(model, "model.safetensors")
        with open(weights, "rb") as file:
            whole = file.read()
        for content, told in ((whole[:-1], "ends at"),
                              (whole[:40], "the header has"),
                              (None, "has neither model.safetensors")):
            os.remove(weights)
            if content is not None:
                with open(weights, "wb") as file:
                    file.write(content)
            self.check_described(model, told)
        with open(weights + ".index.json", "w") as file:
            file.write('{"weight_map": {}}')
        self.check_described(model, "lists no tensors")
        model = told_model.write_gguf(self.path("m.gguf"), OK)
        os.truncate(model, os.path.getsize(model) - 1)
        self.check_described(model, "ends at")
        first, second = (self.path(f"m-0000{part}-of-00002.gguf")
                         for part in (1, 2))
        for part, path in enumerate((first, second)):
            told_model.write_gguf(path, OK, split__no=gguf_file.u32(part),
                                  split__count=gguf_file.u32(2))
        self.check_described(second, "open the set by its first part")
        os.remove(second)
        self.check_described(first, "part 2 of 2")

    def check_described(self, model, told):
        shown = self.document("inspect", model)
        self.assertIn(told, shown["cannot_run"])
        self.assertEqual(shown["config"]["layers"], 1)
        self.assertIsNotNone(shown["tokenizer"])
        said = run("eval", "-m", model, "--tokens", self.path("ids", b"1"))
        self.assertIn(said.returncode, (3, 6))
        self.assertIn(told, said.stderr.decode())

    def check_broken(self, model, name, keeps_tokenizer):
        ids = self.path("ids", b"13 82 78")
        shown = self.document("inspect", model)
        self.assertIsNone(shown["cannot_run"])
        named = [w for w in shown["warnings"]
                 if os.path.join(model, name) + ": " in w]
        self.assertEqual(len(named), 1, shown["warnings"])
        self.assertEqual("only token ids can be used" in named[0],
                         not keeps_tokenizer)
        self.assertEqual(self.document("eval", "-m", model, "--tokens",
                                       ids)["tokens"], 3)
        self.document("generate", "-m", model, "--tokens", ids, "-n", "3")
        made = run("generate", "-m", model, "-p", "x", "-n", "1")
        self.assertEqual(made.returncode, 0 if keeps_tokenizer else 3)
        self.assertIn(name.encode() + b": ", made.stderr)

    def test_names_of_tensors(self):
        for number, prefix in enumerate(["", "language_model.model."]):
            model = self.folder(f"m{number}", rename=lambda name, to=prefix: (
                name.replace("model.", to, 1)))
            self.assertEqual(self.ask(model), ("OK", "stop"), prefix)

    def test_texts_within_a_sliding_window(self):
        model = self.folder("m", config={"model_type": "mistral",
                                         "sliding_window": 40})
        inspected = self.document("inspect", model)
        self.assertIsNone(inspected["cannot_run"])
        self.assertEqual(inspected["config"]["context"], 40)
        (warning,) = inspected["warnings"]
        self.assertIn("the context ends at 40 tokens", warning)
        self.assertIn(warning, self.succeed("inspect", model).decode())
        self.assertEqual(self.document("plan", "-m", model)["warnings"][:1],
                         [warning])
        for command in ["plan"], ["generate", "-p", "x"]:
            self.assertIn("got 41, need at most 40, the sliding window",
                          self.refuse(2, "invalid_context", *command, "-m",
                                      model, "-c", "41"))
        within, beyond = (self.path(f"{count}", b"5 " * count)
                          for count in (40, 41))
        whole = self.folder("whole", config={"model_type": "mistral",
                                             "sliding_window": None})
        self.assertEqual(*(
            self.document("eval", "-m", some, "--tokens", within)["nll"]
            for some in (model, whole)))
        self.assertIn("the context holds 40, the model's sliding window",
                      self.refuse(3, "context_length_exceeded", "eval", "-m",
                                  model, "--tokens", beyond))
        # A scaling of positions does not widen what attention sees.
        self.refuse(3, "context_length_exceeded", "eval", "-m", model,
                    "--tokens", beyond, "--rope-scale", "2")

    def test_rope_of_a_text_that_stays_short(self):
        """Within the original context a text is as a model without a scaling
        reads it, whatever the model's longest context is."""
        for name in "llama_rope_dynamic", "phi3":
            checkpoint = os.path.join(CHECKPOINTS, name)
            for count, size in (40, "64"), (66, "66"):
                ids = self.path("ids", b"5 9 4 " * (count // 3) +
                                b"7 " * (count % 3))
                read = ["eval", "-m", checkpoint, "--tokens", ids,
                        "--compute", "f32"]
                nlls = [self.document(*read, *more)["nll"]
                        for more in ([], ["-c", size], ["-c", "128"])]
                self.assertEqual(nlls[0], nlls[1])
                # There are two sets of factors.
                self.assertEqual(nlls[0] == nlls[2],
                                 name == "phi3" and count > 64)
            made = ["generate", "-m", checkpoint, "--tokens",
                    self.path("few", b"5 9 4 7 5 9 4 7"), "-n", "40", "--temp",
                    "1", "--ignore-eos"]
            tokens = [self.document(*made, *more)["output"][0]["tokens"]
                      for more in ([], ["-c", "64"], ["-c", "128"])]
            self.assertEqual(tokens[0], tokens[1])
            self.assertNotEqual(tokens[0], tokens[2])

    def test_rope_of_a_document_that_is_short(self):
        model = self.folder("long", config={
            "rope_scaling": {"rope_type": "longrope", "short_factor": [1.0] * 8,
                             "long_factor": [4.0] * 8},
            "original_max_position_embeddings": 700}, files=self.settings())
        for size, context in (100, 700), (900, 2048):
            note = self.path("note.txt", b"A note. " * (size // 8))
            for command in (["ask", note, "who?", "where?"], ["summarize", note]):
                made = [*command, "-m", model, *GREEDY]
                self.assertEqual(self.document(*made)["context"], context)
                self.assertEqual(self.document(*made, "-c", "1500")["context"],
                                 1500)

    def test_quantised_folders_are_named(self):
        """Also those whose settings stand in another file than config.json."""
        for number, (config, end) in enumerate([
                ({"compression_config": {"quant_method": "x"}}, ".weight"),
                ({}, ".qweight")]):
            model = self.folder(f"q{number}", config=config, rename=lambda name:
                                name.replace("q_proj.weight", "q_proj" + end))
            said = self.refuse(3, "unsupported_quantization", "generate", "-m",
                               model, "-p", "x")
            self.assertIn("by GPTQ or AWQ" if number else 'by "x"', said)
            self.assertIsNotNone(self.document("inspect", model)["cannot_run"])

    def test_a_pad_without_a_row(self):
        names = [*told_model.tokens(), "[PAD]"]
        model = self.folder(
            "m", names=names, rows=len(names) - 1,
            files={"tokenizer.json": told_model.tokenizer_json(
                names, [*told_model.SPECIAL, "[PAD]"])})
        self.assertEqual(self.ask(model), ("OK", "stop"))
        self.refuse(3, "invalid_token", "generate", "-m", model, "--tokens",
                    self.path("ids", b"5 %d" % (len(names) - 1)))


class UnusableTest(FilesCase):
    """A file that cannot be run is described; one without text takes ids."""

    def test_inspect_names_types_that_are_not_read(self):
        model = told_model.write_folder(self.path("m"), OK,
                                        files={"tokenizer.json": None})
        path = os.path.join(model, "model.safetensors")
        with open(path, "rb") as file:
            whole = file.read()
        with open(path, "wb") as file:
            file.write(whole.replace(b'"F32"', b'"I32"'))
        inspected = self.document("inspect", model)
        self.assertIn("got type I32", inspected["cannot_run"])
        self.assertIn("no tokenizer: only token ids can be used",
                      inspected["warnings"])

    def test_inspect_describes_another_architecture(self):
        model = told_model.write_gguf(
            self.path("m.gguf"), OK,
            general__architecture=gguf_file.string("gemma9"))
        shown = self.document("inspect", model)
        self.assertEqual(shown["architecture"], "gemma9")
        self.assertIn("gemma9", shown["cannot_run"])
        self.assertTrue(shown["tensors"])
        self.assertEqual(shown["metadata"]["llama.block_count"], 1)
        self.assertNotIn("config", shown)
        self.assertIn(b"cannot be run", self.succeed("inspect", model))
        self.refuse(3, "unsupported_architecture", "generate", "-m", model,
                    "-p", "x")
        model = told_model.write_folder(self.path("m"), OK,
                                        config={"model_type": "gemma9"})
        self.assertEqual(self.document("inspect", model)["architecture"],
                         "gemma9")
        model = told_model.write_folder(self.path("n"), OK)
        shown = self.document("inspect", model)
        self.assertIsNone(shown["cannot_run"])
        self.assertEqual(shown["config"]["eos_ids"], [0, 2])

    def test_ids_need_no_tokenizer(self):
        ids = self.path("ids", b"13 82 78")
        for number, keys in enumerate([
                {"tokenizer__ggml__model": gguf_file.string("t9")},
                {"tokenizer__ggml__pre": gguf_file.string("none-such")},
                {"tokenizer__ggml__merges": told_model.gguf_strings(["a"])}]):
            with self.subTest(keys):
                model = told_model.write_gguf(self.path(f"{number}.gguf"), OK,
                                              **keys)
                self.assertIsNone(self.document("inspect", model)["tokenizer"])
                self.assertEqual(self.document("eval", "-m", model, "--tokens",
                                               ids)["tokens"], 3)
                made = self.document("generate", "-m", model, "--tokens", ids,
                                     "-n", "3", "--temp", "0")
                self.assertEqual(len(made["output"][0]["tokens"]), 3)
                self.document("bench", "-m", model, "-p", "4", "-n", "2", "-r",
                              "1")
                said = run("generate", "-m", model, "-p", "x")
                self.assertEqual(said.returncode, 3)
                self.assertIn(b"tokenizer", said.stderr)


class DraftTest(FilesCase):
    """Drafts whose vocabulary is not quite the model's."""

    def drafted(self, names, types, rows=None):
        pads = [f"[PAD{i}]" for i in range(5)]
        model = told_model.write_gguf(
            self.path("model.gguf"), OK, [*told_model.tokens(), *pads],
            [CONTROL] * 3 + [NORMAL] * 256 + [UNUSED] * 5)
        draft = told_model.write_gguf(self.path("draft.gguf"), OK, names,
                                      types, rows)
        return ["generate", "-m", model, "-md", draft, "-p", "\n", "-n", "8",
                "--temp", "0"]

    def test_padding_and_a_few_other_tokens(self):
        names = told_model.tokens()
        kinds = [CONTROL] * 3 + [NORMAL] * 256
        others = list(names)
        others[1], others[250] = "<other>", "zz"
        for case in ((names, kinds), (names, kinds, 300),
                     ([*names, "[P]"], kinds + [UNUSED]), (others, kinds)):
            with self.subTest(names=len(case[0]), rows=case[2:]):
                made = self.document(*self.drafted(*case))
                self.assertEqual(made["output"][0]["text"], "OK")
                level = made["speculation"]["levels"][0]
                self.assertGreater(level["drafted"], 0)
                self.assertGreater(level["accepted"], 0)

    def test_another_vocabulary(self):
        names = told_model.tokens()
        names[3:] = reversed(names[3:])
        kinds = [CONTROL] * 3 + [NORMAL] * 256
        said = self.refuse(3, "draft_vocabulary",
                           *self.drafted(names, kinds))
        self.assertIn("token 3 is", said)


class SentencePieceTest(FilesCase):
    def test_ids_that_are_absent(self):
        names = ["<unk>", "<s>", "</s>", "\u2581", "a", "b"]
        names += [f"<0x{byte:02X}>" for byte in range(256)]
        model = told_model.write_gguf(
            self.path("m.gguf"), path_of("b", "a", "</s>", "b"), names,
            [UNKNOWN, CONTROL, CONTROL, NORMAL, NORMAL, NORMAL] + [BYTE] * 256,
            tokenizer__ggml__model=gguf_file.string("llama"),
            tokenizer__ggml__eos_token_id=None,
            tokenizer__ggml__scores=gguf_file.array(6, [0.0] * len(names)))
        self.assertEqual(self.document("tokenize", "-m", model, "--add-bos",
                                       "-p", "b")["tokens"], [1, 3, 5])
        made = self.document("generate", "-m", model, "-p", "b", "-n", "8",
                             "--temp", "0")["output"][0]
        self.assertEqual((made["text"], made["finish_reason"]), ("a", "stop"))


class HeadSizeTest(FilesCase):
    """Heads of any even size are those of a model whose heads are padded."""

    HEADS, KV_HEADS, HIDDEN, FFN, VOCAB = 8, 2, 32, 32, 48

    def write(self, name, kind, real, dim, quantised=False):
        """Writes a model of random weights with heads of `real` elements, and
        zeros behind them up to `dim`. The first rows of Q and the norms of
        heads then make up for what `dim` divides by."""
        chance = random.Random(5)
        ratio = math.sqrt(dim / real)

        def matrix(rows, cols):
            return [[chance.gauss(0, 0.3) for _ in range(cols)]
                    for _ in range(rows)]

        def padded_rows(rows, factor=1.0):
            wide = []
            for begin in range(0, len(rows), real):
                wide += [[factor * x for x in row]
                         for row in rows[begin:begin + real]]
                wide += [[0.0] * len(rows[0])] * (dim - real)
            return wide

        def norm():
            values = [chance.uniform(0.5, 2) for _ in range(real)]
            return [x / ratio for x in values] + [0.0] * (dim - real)

        tensors = {"token_embd": matrix(self.VOCAB, self.HIDDEN),
                   "output": matrix(self.VOCAB, self.HIDDEN),
                   "output_norm": [1.0] * self.HIDDEN}
        for layer in range(2):
            width = self.HEADS * real
            own = {"attn_norm": [1.0] * self.HIDDEN,
                   "ffn_norm": [1.0] * self.HIDDEN,
                   "attn_q": matrix(width, self.HIDDEN),
                   "attn_k": matrix(self.KV_HEADS * real, self.HIDDEN),
                   "attn_v": matrix(self.KV_HEADS * real, self.HIDDEN),
                   "attn_output": matrix(self.HIDDEN, width),
                   "ffn_gate": matrix(self.FFN, self.HIDDEN),
                   "ffn_up": matrix(self.FFN, self.HIDDEN),
                   "ffn_down": matrix(self.HIDDEN, self.FFN)}
            own["attn_output"] = [
                [x for begin in range(0, width, real)
                 for x in row[begin:begin + real] + [0.0] * (dim - real)]
                for row in own["attn_output"]]
            normed = kind == "qwen3"
            own["attn_q"] = padded_rows(own["attn_q"],
                                        1.0 if normed else ratio)
            for name_of in "attn_k", "attn_v":
                own[name_of] = padded_rows(own[name_of])
            if normed:
                own["attn_q_norm"] = [ratio * x for x in norm()]
                own["attn_k_norm"] = norm()
            tensors.update({f"blk.{layer}.{key}": values
                            for key, values in own.items()})
        keys = {"general.architecture": gguf_file.string(kind)}
        for key, value in (("context_length", 256), ("block_count", 2),
                           ("embedding_length", self.HIDDEN),
                           ("feed_forward_length", self.FFN),
                           ("attention.head_count", self.HEADS),
                           ("attention.head_count_kv", self.KV_HEADS),
                           ("attention.key_length", dim),
                           ("attention.value_length", dim),
                           ("rope.dimension_count", real)):
            keys[f"{kind}.{key}"] = gguf_file.u32(value)
        keys[kind + ".attention.layer_norm_rms_epsilon"] = gguf_file.f32(1e-7)
        described, data = [], []
        for key, values in tensors.items():
            if isinstance(values[0], list):
                dims = (len(values[0]), len(values))
                flat = [x for row in values for x in row]
            else:
                dims, flat = (len(values),), values
            as_blocks = quantised and "attn_" in key and len(dims) == 2
            described.append(gguf_file.Tensor(
                key + ".weight", dims,
                gguf_file.Q8_0 if as_blocks else gguf_file.F32))
            data.append(self.as_q8_0(flat) if as_blocks
                        else struct.pack(f"<{len(flat)}f", *flat))
        path = self.path(name)
        with open(path, "wb") as file:
            gguf_file.write(file, keys, described, data)
        return path

    @staticmethod
    def as_q8_0(values):
        out = b""
        for begin in range(0, len(values), 32):
            block = values[begin:begin + 32]
            # A scale that halves have exactly, so that padding changes nothing.
            out += struct.pack("<e32b", 1 / 64,
                               *(max(-127, min(127, round(64 * x)))
                                 for x in block))
        return out

    def nll(self, model, *flags):
        ids = self.path("ids", b"5 17 3 40 22 9 31 1 44 8 5 17 2 29 11 6")
        return self.document("eval", "-m", model, "--tokens", ids, "--compute",
                             "f32", "-ctk", "f32", "-ctv", "f32", *flags)["nll"]

    def test_padded_heads_give_the_same(self):
        for kind in "llama", "qwen2", "qwen3":
            for real, dim in (20, 24), (2, 8), (100, 104):
                with self.subTest(kind=kind, real=real):
                    own = self.write("own.gguf", kind, real, real)
                    padded = self.write("padded.gguf", kind, real, dim)
                    nll = self.nll(own)
                    self.assertAlmostEqual(nll, self.nll(padded), delta=2e-5)
                    self.assertEqual(nll, self.nll(own, "--tensor-parallel",
                                                   "2"))
                    self.assertAlmostEqual(nll, self.nll(own, "--device",
                                                         "ref"), delta=1e-5)

    def test_blocks_across_heads(self):
        own = self.write("own.gguf", "qwen3", 20, 20, quantised=True)
        padded = self.write("padded.gguf", "qwen3", 20, 24, quantised=True)
        self.assertAlmostEqual(self.nll(own), self.nll(padded), delta=2e-5)
        shown = self.document("inspect", own)
        self.assertEqual(shown["config"]["head_dim"], 20)
        self.refuse(2, "invalid_kv_type", "generate", "-m", own, "--tokens",
                    self.path("ids"), "-ctk", "q8_0")


if __name__ == "__main__":
    unittest.main(argv=["cli_files_test"])
