"""Predictions of roofline.py for shapes whose figures are known, and the heads
of the kernels' sources.

  roofline_test.py [PROGRAM CHECKPOINTS]
"""

import contextlib
import io
import pathlib
import re
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
        def of(kind, rows, k=128):
            work = roofline.product(
                roofline.Matrix("q", 64, k, roofline.NAMES[kind]), rows)
            return work.bytes, work.units, work.int8

        # A link is a multiply-add of 32 lanes.
        self.assertEqual(of("F16", 1),
                         (16384, {"MultiplyFloatRow 1 12": 256}, 0))
        self.assertEqual(of("F32", 5),
                         (32768, {"MultiplyFloatPanels 0 Rows8": 8 * 256}, 0))
        self.assertEqual(of("BF16", 25),
                         (16384, {"MultiplyFloatPanels 2 Rows24": 48 * 256}, 0))
        self.assertEqual(of("F32", 65),
                         (32768, {"MultiplyFloatPanels 0 Rows64": 128 * 256},
                          0))
        # A step is 8 rows of 16 outputs of a block: there are 16 of each 8.
        self.assertEqual(of("Q4_0", 1), (4608, {"MultiplyPanels 4 1": 16},
                                         2 * 8 * 8192))
        self.assertEqual(of("Q4_1", 9), (5120, {"MultiplyPanels 5 3": 48},
                                         2 * 24 * 8192))
        self.assertEqual(of("Q6_K", 33), (6912, {"MultiplyPanels 10 4": 128},
                                          2 * 64 * 8192))
        self.assertEqual(of("Q2_K", 33), (2688, {"MultiplyPanels 15 4": 128},
                                          2 * 64 * 8192))
        # A single row has a kernel of its own if k is a multiple of 256.
        self.assertEqual(of("Q8_0", 1, 256), (17408, {"MultiplyPanelRow 3": 32},
                                              2 * 8 * 16384))

    def test_a_fast_product(self):
        of = lambda kind, rows, k=128: roofline.product(  # noqa: E731
            roofline.Matrix("q", 64, k, roofline.NAMES[kind]), rows, fast=True)
        # Rows are tiles of 8; weights are read once for 1,024 rows.
        work = of("F16", 9)
        self.assertEqual((work.bytes, work.f16), (16384, 2 * 16 * 8192))
        self.assertEqual(work.units, {"MultiplyHalves 1": 2 * 16 * 8192 / 4096})
        work = of("Q4_0", 1025)
        self.assertEqual((work.bytes, work.f16), (2 * 4608, 2 * 1032 * 8192))
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
        operations = 32 * 4 * (32 * 128) * 512 * 128
        self.assertEqual((work.units, work.f16),
                         ({"FlashAttend 128 4": operations / 4096}, operations))
        other = LLAMA._replace(head_dim=80)
        self.assertEqual(
            roofline.attention(other, 65, 1024, "f16", fast=True),
            roofline.attention(other, 65, 1024, "f16"))

    def test_attention(self):
        work = roofline.attention(LLAMA, 1, 1024, "q8_0")
        self.assertEqual(work.bytes, 32 * 2 * 1024 * 4096 * 8.5 / 8)
        self.assertEqual(work.units, {"ComputePages 1 1 1":
                                      32 * 2 * 1024 * 128})
        self.assertEqual(
            roofline.attention(LLAMA, 17, 1024, "f16", causal=True).units,
            {"ComputePages 6 4 0": 32 * 2 * 18 * 512 * 128})
        counted = [[roofline.attention_kernel(n, kv, folding)
                    for n in (1, 2, 5, 9, 17, 24)]
                   for kv, folding in (("f16", False), ("q4_0", False))]
        self.assertEqual(counted, [
            [(1, "ComputePages 1 1 0"), (2, "ComputePages 2 4 0"),
             (4, "ComputePages 4 4 0"), (6, "ComputePages 6 4 0"),
             (6, "ComputePages 6 4 0"), (8, "ComputePages 8 4 0")],
            [(1, "ComputePages 1 1 2"), (2, "ComputePages 2 4 2"),
             (4, "ComputePages 4 4 2"), (6, "ComputePages 6 4 2"),
             (6, "ComputePages 6 4 2"), (6, "ComputePages 6 4 2")]])
        for kv, kernel in (("f16", (8, "ComputePages 8 4 0 true")),
                           ("q8_0", (6, "ComputePages 6 4 1 true"))):
            self.assertEqual(roofline.attention_kernel(1, kv, True), kernel)

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
        code = {"sm_89": {"Chain": {"instructions": 4}}}
        work = roofline.Work("x", 0.85 * 920e9, {})
        self.assertAlmostEqual(roofline.seconds(ADA, work), 1.0)
        self.assertEqual(roofline.bound(ADA, work), "memory")
        # Half of 1.29e12 instructions a second, of which two of this kernel's
        # links take 8 and 12 others 12.
        work = work._replace(units={"Chain": 2 * 0.5 * 82.6e12 / 64 / 10,
                                    "": 12 * 0.5 * 82.6e12 / 64 / 10})
        with mock.patch.object(roofline, "machine_code", lambda: code):
            self.assertAlmostEqual(roofline.seconds(ADA, work), 2.0)
            self.assertEqual(roofline.bound(ADA, work), "issue")
        work = work._replace(units={}, int8=3 * 0.6 * 660.6e12)
        self.assertAlmostEqual(roofline.seconds(ADA, work), 3.0)
        self.assertEqual(roofline.bound(ADA, work), "int8")
        work = work._replace(f16=4 * 0.6 * 165.2e12)
        self.assertAlmostEqual(roofline.seconds(ADA, work), 4.0)
        self.assertEqual(roofline.bound(ADA, work), "f16")

    # Every kernel that a prediction needs is counted, for each GPU.
    def test_all_kernels_are_counted(self):
        for kind in roofline.DTYPES:
            model = roofline.model_of_shape("x", 2, 256, 4, 2, 64, 512, 512,
                                            kind)
            for rows in (1, 2, 8, 9, 17, 33, 65, 700):
                for kv in roofline.KV_BITS:
                    for fast in (False, True):
                        for work in roofline.works(model, rows, 512, kv,
                                                   fast=fast):
                            for gpu in roofline.GPUS:
                                self.assertGreater(
                                    roofline.issued(gpu, work), 0)

    def test_types_have_the_numbers_of_the_source(self):
        text = (pages.ROOT / "kernels/number/dtype.h").read_text()
        names = re.search(r"enum class DType[^{]*{([^}]*)}", text)[1]
        names = [name.strip().removeprefix("k").upper()
                 for name in names.split(",") if name.strip()]
        self.assertEqual({kind: names.index(name)
                          for name, kind in roofline.NAMES.items()},
                         roofline.DTYPES)


class MeasuredTest(unittest.TestCase):
    """Predictions beside an H200's own times."""

    LINES = roofline.beside_measured(str(
        pages.ROOT / "bench/results/2026-11-27-nvidia-h200-gpu-check.jsonl"))

    def of(self, op, shape, kind, rows, positions=""):
        start = f"| {op} | {shape} | {kind} | {rows} | {positions} |"
        line, = [line for line in self.LINES if line.startswith(start)]
        return line.split("|")[8].strip(), float(line.split("|")[9])

    # Work that fills the GPU is predicted within a tenth, in chains of floats
    # within a third.
    def test_work_that_fills_a_gpu(self):
        for kind in ("f16", "q8_0"):
            for rows in (1, 512):
                bound, ratio = self.of("attention", "llama3.1-8b ", kind, rows,
                                       131072)
                self.assertEqual(bound, "issue")
                self.assertAlmostEqual(ratio, 1, delta=0.11)
        for kind, delta in (("f16", 0.31), ("q8_0", 0.1), ("q4_K", 0.27)):
            bound, ratio = self.of("matmul", "llama3.1-8b gate_up", kind, 512)
            self.assertEqual(bound, "issue")
            self.assertAlmostEqual(ratio, 1, delta=delta)
        bound, ratio = self.of("matmul", "llama3.1-8b output", "f16", 1)
        self.assertEqual(bound, "memory")
        self.assertAlmostEqual(ratio, 1, delta=0.1)

    def test_other_ops_are_left_out(self):
        self.assertFalse([line for line in self.LINES if "rms_norm" in line])
        self.assertEqual(len(self.LINES), 7 + 144)

    def test_a_file_without_such_lines(self):
        status, _, errors = said("--against", __file__)
        self.assertEqual(status, 2)
        self.assertIn("need the JSON lines of tests/gpu_check.sh", errors)


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
