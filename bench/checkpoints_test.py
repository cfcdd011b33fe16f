"""Runs make_random.py and make_draft.py, and the program on what they write.

    checkpoints_test.py TIERCEL CHECKPOINTS

CHECKPOINTS holds the small models of tests/golden. Random weights need an
interpreter with numpy; without one their cases are skipped, or fail if CI is
set.
"""

import json
import math
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import gguf_file

TIERCEL = os.path.abspath(sys.argv[1])
CHECKPOINTS = pathlib.Path(sys.argv[2]).resolve()
CHAT = CHECKPOINTS / "llama_chat.gguf"
SCRIPTS = pathlib.Path(__file__).resolve().parent
ENVIRONMENT = {k: v for k, v in os.environ.items()
               if not k.startswith("TIERCEL_")}
# Without a home folder the program measures no rates for predictions.
ENVIRONMENT.update(HOME="", XDG_CACHE_HOME="", PYTHONDONTWRITEBYTECODE="1")


def run(*command):
    return subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=ENVIRONMENT, timeout=600)


def numpy_interpreter():
    for python in (sys.executable, "/usr/bin/python3"):
        try:
            if run(python, "-c", "import numpy").returncode == 0:
                return python
        except OSError:
            pass
    return None


NUMPY = numpy_interpreter()
needs_numpy = unittest.skipIf(NUMPY is None and not os.environ.get("CI"),
                              "no interpreter with numpy")


class Case(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.out = self.directory / "out.gguf"

    def succeed(self, *command):
        result = run(*command)
        self.assertEqual(result.returncode, 0, result.stderr.decode())
        return result.stdout

    def drop(self, *args):
        # -S leaves out Debian's packages, and so numpy.
        self.succeed(sys.executable, "-S", SCRIPTS / "make_draft.py", "drop",
                     *args)
        return args[-1]

    def random(self, *args):
        self.assertIsNotNone(NUMPY, "no interpreter with numpy")
        self.succeed(NUMPY, SCRIPTS / "make_draft.py", "random", *args)
        return args[-1]

    def make_random(self, *args):
        self.assertIsNotNone(NUMPY, "no interpreter with numpy")
        self.succeed(NUMPY, SCRIPTS / "make_random.py", *args)
        return args[-1]

    def inspect(self, path):
        document = json.loads(self.succeed(TIERCEL, "inspect", path, "--json"))
        warnings = ["no tokenizer: only token ids can be used"]
        self.assertEqual(document["warnings"],
                         [] if document["tokenizer"] else warnings)
        return document

    def data(self, path):
        """Returns {name: (type, shape, bytes)}, from the program's reader and
        the end of the file, so without code of the scripts."""
        document = self.inspect(path)
        content = path.read_bytes()
        alignment = document["metadata"].get("general.alignment", 32)
        at, found = len(content), {}
        for tensor in reversed(document["tensors"]):
            at -= math.ceil(tensor["bytes"] / alignment) * alignment
            found[tensor["name"]] = (tensor["type"], tensor["shape"],
                                     content[at:at + tensor["bytes"]])
        return found

    def assert_same_tokenizer(self, path, source):
        ours, theirs = self.inspect(path), self.inspect(source)
        self.assertEqual(ours["tokenizer"], theirs["tokenizer"])
        self.assertEqual(*(
            {k: v for k, v in document["metadata"].items()
             if k.startswith("tokenizer.")} for document in (ours, theirs)))
        text = "Once upon a time<|im_start|>\n\u00e9t\u00e9 12"
        ids = [self.succeed(TIERCEL, "tokenize", "-m", model, "-p", text)
               for model in (path, source)]
        self.assertGreater(len(ids[0].split()), 5)
        self.assertEqual(*ids)

    def assert_generates(self, path, *prompt):
        document = json.loads(self.succeed(
            TIERCEL, "generate", "-m", path, *prompt, "-n", 8, "--ignore-eos",
            "--json"))
        self.assertEqual(len(document["output"][0]["tokens"]), 8)

    def assert_logits_of_deviation_1(self, path, vocab):
        ids, logits = self.directory / "ids", self.directory / "logits.npy"
        ids.write_text(" ".join(str(7 * i % vocab) for i in range(20)))
        self.succeed(TIERCEL, "eval", "-m", path, "--tokens", ids, "--logits",
                     logits, "--no-progress")
        content = logits.read_bytes()
        (header,) = struct.unpack_from("<H", content, 8)
        values = [x for (x,) in struct.iter_unpack("<f",
                                                   content[10 + header:])]
        self.assertEqual(len(values) % vocab, 0)
        self.assertGreater(len(values), 0)
        mean = sum(values) / len(values)
        variance = sum((x - mean)**2 for x in values) / len(values)
        # The sample has thousands of values.
        self.assertAlmostEqual(math.sqrt(variance), 1, delta=0.1)


class DropTest(Case):
    def test_all_layers_are_the_file(self):
        for name in ("llama_chat", "llama_rope_llama3", "llama_bias", "qwen3",
                     "quant32/q4_1", "quant32/bf16", "quant256/q4_k",
                     "quant256/q6_k", "quant256/iq4_xs", "quant32/mxfp4"):
            source = CHECKPOINTS / (name + ".gguf")
            layers = self.inspect(source)["config"]["layers"]
            for keep in ("first", "spread"):
                self.drop("--layers", layers, "--keep", keep, source, self.out)
                self.assertEqual(self.out.read_bytes(), source.read_bytes())

    @needs_numpy
    def test_kept_layers(self):
        source = self.random("--layers", 7, "--hidden", 32, "--heads", 2,
                             "--type", "f16", CHAT, self.directory / "seven")
        theirs, all_keys = self.data(source), self.inspect(source)["metadata"]
        for args, kept in (
            (("--layers", 1), [0]),
            (("--layers", 2), [0, 6]),
            (("--layers", 3), [0, 3, 6]),
            (("--layers", 4, "--keep", "spread"), [0, 2, 4, 6]),
            (("--layers", 5), [0, 2, 3, 5, 6]),
            (("--layers", 7), [0, 1, 2, 3, 4, 5, 6]),
            (("--layers", 1, "--keep", "first"), [0]),
            (("--layers", 3, "--keep", "first"), [0, 1, 2]),
        ):
            self.drop(*args, source, self.out)
            expected = {name: tensor for name, tensor in theirs.items()
                        if not name.startswith("blk.")}
            self.assertEqual(len(expected), 3)
            for new, old in enumerate(kept):
                for name, tensor in theirs.items():
                    match = re.fullmatch(rf"blk\.{old}\.(.+)", name)
                    if match:
                        expected[f"blk.{new}.{match.group(1)}"] = tensor
            self.assertEqual(len(expected), 3 + 9 * len(kept))
            self.assertEqual(self.data(self.out), expected)
            self.assertEqual(self.inspect(self.out)["metadata"],
                             all_keys | {"llama.block_count": len(kept)})
            self.assert_generates(self.out, "-p", "Once upon")

    @needs_numpy
    def test_smaller_embeddings(self):
        source = self.random("--layers", 3, "--hidden", 64, "--heads", 2, CHAT,
                             self.directory / "three")
        self.assertIsNotNone(NUMPY, "no interpreter with numpy")
        self.succeed(NUMPY, SCRIPTS / "make_draft.py", "drop", "--layers", 2,
                     "--keep", "first", "--embeddings", "q4_0", source,
                     self.out)
        theirs, ours = self.data(source), self.data(self.out)
        self.assertIn("2 layers, embeddings in Q4_0",
                      self.inspect(self.out)["metadata"]["general.name"])
        kind, shape, small = ours.pop("token_embd.weight")
        self.assertEqual((kind, shape), ("q4_0", theirs["token_embd.weight"][1]))
        large = theirs["token_embd.weight"][2]
        for i in range(len(small) // 18):
            (coarse,) = struct.unpack_from("<e", small, 18 * i)
            (fine,) = struct.unpack_from("<e", large, 34 * i)
            for j in range(32):
                code = (small[18 * i + 2 + j % 16] >> j // 16 * 4 & 15) - 8
                (value,) = struct.unpack_from("b", large, 34 * i + 2 + j)
                self.assertAlmostEqual(code * coarse, value * fine,
                                       delta=1.1 * abs(coarse))
        for name, tensor in ours.items():
            self.assertEqual(tensor, theirs[name], name)
        self.assert_generates(self.out, "-p", "Once upon")

    def test_the_tokenizer(self):
        self.drop("--layers", 1, CHAT, self.out)
        self.assertEqual(self.inspect(self.out)["config"]["layers"], 1)
        self.assert_same_tokenizer(self.out, CHAT)
        self.assert_generates(self.out, "-p", "Once upon")

    def test_counts_per_layer(self):
        source = self.directory / "per_layer.gguf"
        with (gguf_file.Reader(CHAT) as chat,
              gguf_file.replacing(source) as file):
            keys = dict(chat.keys)
            for name, value in (("attention.head_count", 2),
                                ("attention.head_count_kv", 1),
                                ("feed_forward_length", 40)):
                keys["llama." + name] = gguf_file.array(5, [value, value])
            gguf_file.write(file, keys, chat.tensors,
                            map(chat.data, chat.tensors))
        self.assert_generates(source, "-p", "Once upon")
        self.drop("--layers", 1, source, self.out)
        metadata = self.inspect(self.out)["metadata"]
        self.assertEqual(metadata["llama.attention.head_count"], [2])
        self.assertEqual(metadata["llama.attention.head_count_kv"], [1])
        self.assertEqual(metadata["llama.feed_forward_length"], [40])
        self.assert_generates(self.out, "-p", "Once upon")


@needs_numpy
class RandomDraftTest(Case):
    ARGS = ("--layers", 3, "--hidden", 64, "--heads", 2)

    def test_shape_and_vocabulary(self):
        theirs = self.inspect(CHAT)["config"]
        for more, kv_heads, ffn, kind in (
            ((), 2, 192, "q8_0"),
            (("--kv-heads", 1, "--ffn", 96, "--type", "f16"), 1, 96, "f16"),
        ):
            self.random(*self.ARGS, *more, CHAT, self.out)
            document = self.inspect(self.out)
            ours = document["config"]
            self.assertEqual(document["architecture"], "llama")
            for key, value in (("layers", 3), ("hidden", 64), ("heads", 2),
                               ("kv_heads", kv_heads), ("head_dim", 32),
                               ("ffn", ffn), ("vocab", theirs["vocab"]),
                               ("context", theirs["context"]),
                               ("eos_ids", theirs["eos_ids"])):
                self.assertEqual(ours[key], value, key)
            self.assertEqual(
                {t["type"] for t in document["tensors"]}, {"f32", kind})
            self.assert_same_tokenizer(self.out, CHAT)
            self.assert_generates(self.out, "-p", "Once upon")
            self.assert_logits_of_deviation_1(self.out, ours["vocab"])

    def test_the_same_arguments_give_the_same_bytes(self):
        files = [self.random(*self.ARGS, "--seed", seed, CHAT,
                             self.directory / str(i)).read_bytes()
                 for i, seed in enumerate((0, 0, 1))]
        self.assertEqual(files[0], files[1])
        self.assertNotEqual(files[0], files[2])
        self.random(*self.ARGS, CHAT, self.out)
        self.assertEqual(self.out.read_bytes(), files[0])


@needs_numpy
class MakeRandomTest(Case):
    def test_shape(self):
        ids = self.directory / "prompt"
        ids.write_text("1 2 3 199")
        for kind in ("f16", "q4_0", "q8_0"):
            args = ("--layers", 2, "--hidden", 96, "--heads", 4, "--kv-heads",
                    2, "--head-dim", 32, "--ffn", 64, "--vocab", 200,
                    "--context", 500, "--type", kind)
            self.make_random(*args, self.out)
            document = self.inspect(self.out)
            for key, value in (("layers", 2), ("hidden", 96), ("heads", 4),
                               ("kv_heads", 2), ("head_dim", 32), ("ffn", 64),
                               ("vocab", 200), ("context", 500)):
                self.assertEqual(document["config"][key], value, key)
            self.assertEqual(
                {t["type"] for t in document["tensors"]}, {"f32", kind})
            self.assert_generates(self.out, "--tokens", ids)
            self.assert_logits_of_deviation_1(self.out, 200)
            again = self.make_random(*args, self.directory / "again")
            self.assertEqual(again.read_bytes(), self.out.read_bytes())
            other = self.make_random(*args, "--seed", 1,
                                     self.directory / "other")
            self.assertNotEqual(other.read_bytes(), self.out.read_bytes())

    def test_experts(self):
        ids = self.directory / "prompt"
        ids.write_text("1 2 3 199")
        for kind, more in (("f16", ()), ("q4_0", ()), ("q8_0", ("--tile",))):
            args = ("--layers", 2, "--hidden", 96, "--heads", 4, "--kv-heads",
                    2, "--head-dim", 32, "--experts", 6, "--experts-used", 2,
                    "--expert-ffn", 64, "--vocab", 200, "--type", kind, *more)
            self.make_random(*args, self.out)
            document = self.inspect(self.out)
            self.assertEqual(document["architecture"], "qwen3moe")
            self.assertEqual(document["config"]["experts"], {
                "count": 6, "used": 2, "ffn": 64, "normed": True, "layers": 2})
            types = {t["name"]: (t["type"], t["shape"])
                     for t in document["tensors"]}
            self.assertEqual(types["blk.1.ffn_up_exps.weight"],
                             (kind, [6, 64, 96]))
            self.assertEqual(types["blk.1.ffn_down_exps.weight"],
                             (kind, [6, 96, 64]))
            self.assertEqual(types["blk.1.ffn_gate_inp.weight"],
                             ("f32", [6, 96]))
            self.assert_generates(self.out, "--tokens", ids)
            if not more:  # a tile is the same for every expert
                self.assert_logits_of_deviation_1(self.out, 200)

    def test_tiles(self):
        args = ("--tile", "--layers", 2, "--hidden", 2048, "--heads", 16,
                "--kv-heads", 1, "--ffn", 1088, "--vocab", 1500, "--type",
                "q8_0")
        tiled = self.data(self.make_random(*args, self.out))
        self.assert_logits_of_deviation_1(self.out, 1500)
        piece = 2048 * 1024 // 32 * 34
        content = tiled["output.weight"][2]  # one piece, and a part of it
        self.assertEqual(len(content), 1500 * 2048 // 32 * 34)
        self.assertEqual(content[piece:], content[:len(content) - piece])
        # Matrices of one scale have the same bytes, as far as they go.
        gate = tiled["blk.0.ffn_gate.weight"][2]
        self.assertEqual(gate, content[:len(gate)])
        self.assertEqual(gate, tiled["blk.1.ffn_up.weight"][2])
        down = tiled["blk.0.ffn_down.weight"][2]
        self.assertNotEqual(down[:1000], content[:1000])

    def test_blocks_are_near_what_they_stand_for(self):
        args = ("--layers", 1, "--hidden", 64, "--heads", 2, "--ffn", 64,
                "--vocab", 50)
        exact = self.data(self.make_random(*args, "--type", "f16",
                                           self.directory / "f16"))
        # The error is half a scale at most, or one where a nibble lacks a code.
        for kind, size, off in (("q8_0", 34, 0.5), ("q4_0", 18, 1)):
            coarse = self.data(self.make_random(*args, "--type", kind,
                                                self.directory / kind))
            for name, (theirs, shape, content) in exact.items():
                if theirs != "f16":
                    continue
                values = [x for (x,) in struct.iter_unpack("<e", content)]
                blocks = coarse[name][2]
                self.assertEqual(len(blocks), len(values) // 32 * size)
                most = 0
                for i in range(len(values) // 32):
                    block = blocks[i * size:(i + 1) * size]
                    (scale,) = struct.unpack_from("<e", block)
                    codes = struct.unpack("32b", block[2:]) if size == 34 else [
                        (block[2 + j % 16] >> j // 16 * 4 & 15) - 8
                        for j in range(32)]
                    most = max(most, *map(abs, codes))
                    for code, value in zip(codes, values[32 * i:]):
                        self.assertAlmostEqual(
                            code * scale, value,
                            delta=(off + 0.1) * abs(scale))
                self.assertEqual(most, 127 if size == 34 else 8, name)


class RefusalTest(Case):
    def refuse(self, words, python, script, *args):
        """The script must fail with these words, and leave an old file
        alone."""
        self.out.write_bytes(b"what was there")
        before = sorted(self.directory.iterdir())
        result = run(python, SCRIPTS / script, *args)
        message = result.stderr.decode()
        self.assertNotEqual(result.returncode, 0, args)
        self.assertNotIn("Traceback", message)
        for word in (script, *words):
            self.assertIn(word, message)
        self.assertEqual(self.out.read_bytes(), b"what was there")
        self.assertEqual(sorted(self.directory.iterdir()), before)

    def refuse_drop(self, words, *args):
        self.refuse(words, sys.executable, "make_draft.py", "drop", *args)

    def test_drop(self):
        out = self.out
        for count in (0, -1, 3):
            self.refuse_drop(("layers", f"got {count}", "need 1 to the 2"),
                             "--layers", count, CHAT, out)
        self.refuse_drop(("--keep", "last"), "--layers", 1, "--keep", "last",
                         CHAT, out)
        self.refuse_drop(("--layers",), CHAT, out)
        self.refuse_drop(("no/such",), "--layers", 1, "/no/such", out)
        self.refuse_drop(("no/such",), "--layers", 1, CHAT, "/no/such/out")
        self.refuse_drop(("is no file",), "--layers", 1, CHAT, self.directory)
        self.refuse_drop(("set of 4",), "--layers", 1,
                         CHECKPOINTS / "llama_bias-00001-of-00004.gguf", out)

    def test_the_input_is_no_place_for_the_output(self):
        source = self.directory / "in.gguf"
        source.write_bytes(CHAT.read_bytes())
        self.refuse_drop(("need another file",), "--layers", 1, source, source)
        self.assertEqual(source.read_bytes(), CHAT.read_bytes())

    def test_wrong_files(self):
        content = CHAT.read_bytes()
        source = self.directory / "in.gguf"
        for wrong, word in (
            (b"", "no GGUF file"),
            (b"some other file", "no GGUF file"),
            (content[:4] + b"\x00\x00\x00\x03" + content[8:], "version"),
            (content[:20], "the file has 20"),
            (content[:5000], "the file has 5000"),
            (content[:-64], "ends at"),
            (content.replace(b"llama.block_count", b"llama.block_xxxxx"),
             "llama.block_count is None"),
            (content.replace(b"blk.1.", b"blk.5."), "layers up to 5"),
            (content.replace(b"blk.1.", b"blk.0."), "is there twice"),
            (content.replace(b"general.type", b"general.name"), "twice"),
        ):
            source.write_bytes(wrong)
            self.refuse_drop((str(source), word), "--layers", 1, source,
                             self.out)

    @needs_numpy
    @needs_numpy
    def test_embeddings_of_another_type(self):
        self.refuse(("Q8_0",), NUMPY, "make_draft.py", "drop", "--layers", 1,
                    "--embeddings", "q4_0", CHAT, self.out)

    def test_random(self):
        for words, *args in (
            (("layers", "got 0"), 0, 64, 2),
            (("hidden", "got 63", "multiple of 2"), 1, 63, 2),
            (("hidden", "got 48", "multiple of 32"), 1, 48, 2),
            (("heads", "got 0"), 1, 64, 0),
            (("head-dim", "got 1", "even"), 1, 64, 64),
            (("kv-heads", "got 0"), 1, 64, 2, "--kv-heads", 0),
            (("kv-heads", "got 3", "divisor of 2"), 1, 64, 2, "--kv-heads", 3),
            (("ffn", "got 40", "multiple of 32"), 1, 64, 2, "--ffn", 40),
            (("ffn", "got 0"), 1, 64, 2, "--ffn", 0),
            (("seed", "got -1"), 1, 64, 2, "--seed", -1),
        ):
            layers, hidden, heads, *more = args
            shape = ("--layers", layers, "--hidden", hidden, "--heads", heads)
            self.refuse(words, NUMPY, "make_draft.py", "random", *shape, *more,
                        CHAT, self.out)
        self.refuse(("kv-heads", "got 3"), NUMPY, "make_random.py",
                    "--kv-heads", 3, self.out)
        self.refuse(("hidden", "got 63"), NUMPY, "make_random.py", "--hidden",
                    63, self.out)
        for experts, used, ffn in ((4, 5, 64), (4, 0, 64), (4, 2, 0),
                                   (1025, 2, 64), (0, 2, 64)):
            self.refuse(("experts", f"got {experts}, {used} used"), NUMPY,
                        "make_random.py", "--experts", experts,
                        "--experts-used", used, "--expert-ffn", ffn, self.out)
        self.refuse(("expert-ffn", "got 40", "multiple of 32"), NUMPY,
                    "make_random.py", "--experts", 4, "--experts-used", 2,
                    "--expert-ffn", 40, self.out)
        self.refuse(("no tokenizer",), NUMPY, "make_draft.py", "random",
                    "--layers", 1, "--hidden", 64, "--heads", 2,
                    CHECKPOINTS / "llama_mha.gguf", self.out)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
