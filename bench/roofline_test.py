"""Predictions of roofline.py for shapes whose figures are known, and the heads
of the kernels' sources.

  roofline_test.py [PROGRAM CHECKPOINTS]
"""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
import pages
import roofline

LLAMA = roofline.model_of_shape(*roofline.SHAPES["llama2-7b"])
ADA = roofline.GPUS[0]
CHECKPOINTS = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else
                           pages.ROOT / "tests/golden/checkpoints")


def said(*argv):
    """Runs roofline.py; returns (status, output, errors)."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            status = roofline.main([str(arg) for arg in argv])
        except SystemExit as exit_:
            status = exit_.code
    return status, out.getvalue(), errors.getvalue()


class NumbersTest(unittest.TestCase):
    def test_llama2_7b_has_12_55_gib_of_weights(self):
        held = sum(m.n * m.k * 2 for m in LLAMA.of_layer) * 32
        held += 2 * LLAMA.output.n * LLAMA.output.k * 2  # with the embedding
        self.assertAlmostEqual(held / 2**30, 12.55, places=2)

    # The times are worked out by hand from data sheets: 20.7 ms and 2.72 s.
    def test_a_draft_and_a_sweep_of_llama2_7b(self):
        draft = roofline.step_seconds(ADA, LLAMA, 1, 4096, "f16")
        self.assertAlmostEqual(draft * 1e3, 20.7, delta=0.4)
        sweep = roofline.sweep_seconds(ADA, LLAMA, 29, 131072, "f16", 25e9)
        self.assertAlmostEqual(sweep, 2.72, delta=0.06)

    def test_the_host_takes_a_share_of_a_sweep(self):
        def swept(host):
            return roofline.shared_sweep_seconds(ADA, LLAMA, 29, 131072, "f16",
                                                 25e9, host)
        # 64 GiB at 59 GB/s together take 1.16 s, and the device some time more.
        self.assertAlmostEqual(swept(34e9), 1.23, delta=0.03)
        alone = roofline.sweep_seconds(ADA, LLAMA, 29, 131072, "f16", 25e9)
        self.assertAlmostEqual(swept(1e3), alone, delta=0.001)
        self.assertLess(swept(60e9), swept(34e9))

    def test_a_slow_device_bounds_a_sweep(self):
        gpu = ADA._replace(f32_s=1e11)
        compute = roofline.step_seconds(gpu, LLAMA, 29, 131072, "f16")
        sweep = roofline.sweep_seconds(gpu, LLAMA, 29, 131072, "f16", 25e9)
        link = 32 * roofline.kv_bytes(LLAMA, 131072, "f16") / 25e9
        self.assertAlmostEqual(sweep, compute + link / 32)

    def test_one_product(self):
        of = lambda kind, rows, k=128: roofline.product(  # noqa: E731
            roofline.Matrix("q", 64, k, roofline.NAMES[kind]), rows)[:3]
        self.assertEqual(of("F16", 1), (16384, 16384, 0))
        self.assertEqual(of("F32", 5), (32768, 8 * 16384, 0))
        self.assertEqual(of("F32", 25), (32768, 48 * 16384, 0))
        self.assertEqual(of("F32", 65), (32768, 128 * 16384, 0))
        # There are 256 blocks for 8 rows; a link has 4 + 1 + 1 instructions, or
        # 8.
        self.assertEqual(of("Q4_0", 1), (4608, 2 * 6 * 2048, 2 * 32 * 2048))
        self.assertEqual(of("Q4_1", 9), (5120, 2 * 8 * 6144, 2 * 32 * 6144))
        self.assertEqual(of("Q4_0", 33),
                         (4608, 2 * 6 * 16384, 2 * 32 * 16384))
        # A single row has other links if k is a multiple of 256.
        self.assertEqual(of("Q4_0", 1, 256), (9216, 2 * 6 * 512, 2 * 32 * 4096))

    def test_a_fast_product(self):
        of = lambda kind, rows, k=128: roofline.product(  # noqa: E731
            roofline.Matrix("q", 64, k, roofline.NAMES[kind]), rows, fast=True)
        # Rows are tiles of 8; weights are read once for 1,024 rows.
        self.assertEqual(of("F16", 9), (16384, 0, 0, 2 * 16 * 8192))
        self.assertEqual(of("Q4_0", 1025), (2 * 4608, 0, 0, 2 * 1032 * 8192))
        # The kernels do not take F32 weights, nor such rows of weights.
        for kind, k in (("F32", 128), ("F16", 96)):
            self.assertEqual(of(kind, 9, k), roofline.product(
                roofline.Matrix("q", 64, k, roofline.NAMES[kind]), 9))

    # Worked out by hand: 2 operations for each of 6.48 G weights and row, and 4
    # for each of 4,096 numbers, 32 layers, row and position before it, at 99
    # TFLOP/s.
    def test_a_prompt_of_llama2_7b(self):
        rows = 127 * 1024
        held = sum(m.n * m.k for m in LLAMA.of_layer) * 32
        self.assertAlmostEqual(held / 1e9, 6.48, places=2)
        by_hand = rows * (2 * held + 4 * 4096 * 32 * rows / 2) / (0.6 * 165.2e12)
        self.assertAlmostEqual(by_hand, 61.7, delta=0.5)
        fast = roofline.step_seconds(ADA, LLAMA, rows, rows, "f16", causal=True,
                                     fast=True)
        # Ops between the products take a few seconds of memory.
        self.assertGreater(fast, by_hand)
        self.assertLess(fast, by_hand + 3)
        exact = roofline.step_seconds(ADA, LLAMA, rows, rows, "f16",
                                      causal=True)
        self.assertGreater(exact, 1.5 * fast)

    def test_fast_attention(self):
        work = roofline.attention(LLAMA, 65, 1024, "q4_0", causal=True,
                                  fast=True)
        self.assertEqual(work.bytes, 32 * 2 * 512 * 4096 * 4.5 / 8)
        self.assertEqual((work.f32, work.f16),
                         (0, 32 * 4 * (32 * 128) * 512 * 128))
        other = LLAMA._replace(head_dim=80)
        self.assertEqual(
            roofline.attention(other, 65, 1024, "f16", fast=True),
            roofline.attention(other, 65, 1024, "f16"))

    def test_attention(self):
        work = roofline.attention(LLAMA, 1, 1024, "q8_0")
        self.assertEqual(work.bytes, 32 * 2 * 1024 * 4096 * 8.5 / 8)
        self.assertEqual(work.f32, 32 * 4 * 32 * 1024 * 128)
        self.assertEqual(
            roofline.attention(LLAMA, 16, 1024, "f16", causal=True).f32,
            32 * 4 * (32 * 16) * 512 * 128)
        counted = [[roofline.of_warps(n, kv, folding)
                    for n in (1, 2, 3, 5, 9, 17, 24)]
                   for kv, folding in (("f16", False), ("q8_0", False),
                                       ("f16", True), ("q8_0", True))]
        self.assertEqual(counted, [[1, 2, 4, 8, 12, 18, 24],
                                   [1, 2, 4, 8, 12, 18, 24],
                                   [8, 8, 8, 8, 16, 24, 24],
                                   [6, 6, 6, 6, 12, 18, 24]])

    def test_launches_are_those_that_a_test_counts(self):
        self.assertEqual(roofline.launches(LLAMA, 1, 1024), 32 * 10 + 6)
        other = roofline.model_of_shape("x", 2, 256, 4, 4, 64, 512, 512,
                                        roofline.NAMES["Q4_0"])
        self.assertEqual(roofline.launches(other, 1, 1024), 2 * 11 + 6)
        normed = other._replace(head_norms=True)
        self.assertEqual(roofline.launches(normed, 1, 1024), 2 * 13 + 6)
        # 29 rows of 32 heads over 1,024 pages are 118 M floats, 8.4 M a wave.
        self.assertEqual(roofline.launches(LLAMA, 29, 131072),
                         32 * (11 + 2 * 14) + 6)
        # 256 blocks of 32 queries fold.
        self.assertEqual(roofline.launches(LLAMA, 224, 1024), 32 * 10 + 6)
        self.assertEqual(roofline.launches(LLAMA, 225, 1024), 32 * 9 + 6)

    def test_what_bounds(self):
        work = roofline.Work("x", 0.85 * 920e9, 0, 0)
        self.assertAlmostEqual(roofline.seconds(ADA, work), 1.0)
        self.assertEqual(roofline.bound(ADA, work), "memory")
        work = work._replace(f32=2 * 0.6 * 82.6e12)
        self.assertAlmostEqual(roofline.seconds(ADA, work), 2.0)
        self.assertEqual(roofline.bound(ADA, work), "f32")
        work = work._replace(int8=3 * 0.6 * 660.6e12)
        self.assertAlmostEqual(roofline.seconds(ADA, work), 3.0)
        self.assertEqual(roofline.bound(ADA, work), "int8")
        work = work._replace(f16=4 * 0.6 * 165.2e12)
        self.assertAlmostEqual(roofline.seconds(ADA, work), 4.0)
        self.assertEqual(roofline.bound(ADA, work), "f16")


class FilesTest(unittest.TestCase):
    def test_a_header_says_what_a_shape_says(self):
        for name, kind in (("quant32/q4_0.gguf", "Q4_0"), ("qwen3.gguf", "F32")):
            model = roofline.model_of_file(str(CHECKPOINTS / name))
            self.assertEqual([m.name for m in model.of_layer],
                             ["q", "k", "v", "o", "gate", "up", "down"]
                             * model.layers)
            self.assertEqual({m.kind for m in model.of_layer},
                             {roofline.NAMES[kind]})
            shape = roofline.model_of_shape(
                model.name, model.layers, model.hidden, model.heads,
                model.kv_heads, model.head_dim, model.ffn, model.output.n,
                roofline.NAMES[kind])
            for of_shape, of_file in zip(
                    roofline.works(shape, 3, 200, "f16"),
                    roofline.works(model, 3, 200, "f16")):
                if of_shape.name != "output":  # it may have another type
                    self.assertEqual(of_shape, of_file)

    def test_norms_of_heads_are_seen(self):
        model = roofline.model_of_file(str(CHECKPOINTS / "qwen3.gguf"))
        self.assertTrue(model.head_norms)

    def test_what_is_printed_is_labelled(self):
        status, out, _ = said("--shape", "llama2-7b")
        self.assertEqual(status, 0)
        for gpu in ("RTX 4090", "H100 SXM"):
            self.assertIn(f"## Llama 2 7B, F16 on {gpu}: *predicted*, not "
                          "measured", out)
        self.assertEqual(out.count("| all |"), 5 * len(roofline.GPUS))

    def test_a_page_is_saved(self):
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder) / "x.md"
            with mock.patch.object(pages, "page",
                                   lambda *words: place) as _:
                status, out, _ = said("--shape", "llama2-7b", "--save")
            self.assertEqual(status, 0)
            self.assertIn("*predicted*", place.read_text())
            self.assertIn(f"saved: {place}", out)

    def test_refusals_say_what_is_needed(self):
        for argv, words in [
                ([], "need a GGUF file or --shape"),
                (["/no/such"], "/no/such"),
                (["--shape", "llama2-7b", "--context", "0"],
                 "--context is 0; need more than 0"),
                ([__file__], "no GGUF file; need one")]:
            status, _, errors = said(*argv)
            self.assertEqual(status, 2)
            self.assertIn(words, errors)


class HeadsTest(unittest.TestCase):
    def test_every_source_of_kernels_says_what_bounds_it(self):
        sources = sorted(pages.ROOT.glob("kernels/*/*.cu"))
        self.assertGreater(len(sources), 10)
        for source in sources:
            head = source.read_text().split("\n\n", 1)[0]
            words = [line.split(":")[0] for line in head.split("\n")
                     if ":" in line]
            for word in ("// Bytes", "// Operations", "// Bound by"):
                self.assertIn(word, words, source)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
