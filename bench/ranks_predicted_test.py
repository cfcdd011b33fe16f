"""Predictions of ranks_predicted.py for shapes and plans of known figures.

  ranks_predicted_test.py TIERCEL CHECKPOINTS
"""

import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
import pages
import ranks_predicted
import roofline

TIERCEL = sys.argv[1]
NAME = "Llama2-7B-128K"
LLAMA = roofline.model_of_shape(NAME, *ranks_predicted.SHAPES[NAME])
TINY = (2, 64, 4, 2, 32, 96, 128, roofline.NAMES["F16"])


def plan(staging, resident, ranks=2, device=1000):
    card = {"device": {"weights": 300, "staging": staging,
                       "resident": resident}}
    if ranks == 1:
        return {"device_bytes": device, "tiers": card}
    return {"device_bytes": device, "tiers": None, "ranks": [
        {"device": {"weights": 10, "staging": 0, "resident": 5}}, card]}


class NumbersTest(unittest.TestCase):
    def test_a_ranks_part(self):
        part = ranks_predicted.of_rank(LLAMA, 4)
        self.assertEqual((part.heads, part.kv_heads, part.ffn, part.hidden),
                         (8, 8, 2752, 4096))
        self.assertEqual({m.name: (m.n, m.k) for m in part.of_layer}["down"],
                         (1024, 11008))
        self.assertEqual(part.output.n, 8000)

    # A row has 129 gathers, and half of 32 * (4096 + 2 * 4096 + 11008) + 32000
    # floats.
    def test_gathers(self):
        self.assertEqual(ranks_predicted.gather_seconds(LLAMA, 1, 17, 25e9), 0)
        self.assertAlmostEqual(
            ranks_predicted.gather_seconds(LLAMA, 2, 17, 25e9),
            129 * 15e-6 + 17 * 777472 / 2 * 4 / 25e9)
        self.assertAlmostEqual(
            ranks_predicted.gather_seconds(LLAMA, 4, 1, 25e9),
            129 * 15e-6 + 777472 * 3 / 4 * 4 / 25e9)

    # A link of 1 GB/s hides all computing but a layer's.
    def test_a_sweep(self):
        compute = roofline.step_seconds(
            ranks_predicted.CARD, ranks_predicted.of_rank(LLAMA, 2), 17, 131072,
            "f16")
        gather = ranks_predicted.gather_seconds(LLAMA, 2, 17, 1e9)
        self.assertAlmostEqual(
            ranks_predicted.step_seconds(LLAMA, 2, 17, 131072, "f16", 1e9, 5e9),
            5 + compute / 32 + gather)
        self.assertAlmostEqual(
            ranks_predicted.step_seconds(LLAMA, 2, 17, 131072, "f16", 1e9),
            compute + gather)

    def test_tokens_of_a_sweep(self):
        self.assertAlmostEqual(ranks_predicted.tokens_of(2, 0.5), 1.75)

    def test_memory_is_that_of_the_card_with_most(self):
        for ranks in (1, 2):
            memory = ranks_predicted.Memory(plan(200, 500, ranks), layers=30)
            self.assertEqual((memory.taken, memory.resident, memory.swept),
                             (1000, 500, 3000))
            self.assertTrue(memory.fits)
        self.assertFalse(ranks_predicted.Memory(plan(201, 500), 30).fits)

    def test_cells(self):
        good = ranks_predicted.Memory(plan(200, 500), 30)
        bad = ranks_predicted.Memory(plan(900, 500), 30)
        times = {"full": 0.5, "sweep": 0.9, "draft": 0.01125}
        cells = ranks_predicted.cells_of(NAME, 16, 2, good, good, times)
        # A round of 1,080 ms is ten tokens at the published 108 ms.
        self.assertEqual(cells[5:], ["500", "900", "11.2", "**130**", "**86**",
                                     "10.0"])
        cells = ranks_predicted.cells_of("another", 16, 2, good, good, times)
        self.assertEqual(cells[-1], "-")
        cells = ranks_predicted.cells_of(NAME, 16, 2, bad, bad, times)
        self.assertEqual(cells[1::2][:2], ["needs 0.0", "needs 0.0"])
        self.assertEqual(cells[5:], ["-"] * 6)


class ProgramTest(unittest.TestCase):
    def test_headers_are_a_checkpoint(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "x.gguf"
            ranks_predicted.write_headers(path, TINY, 4096)
            done = subprocess.run([TIERCEL, "inspect", path, "--json"],
                                  stdout=subprocess.PIPE, check=True)
            config = json.loads(done.stdout)["config"]
            self.assertEqual(
                [config[key] for key in ("layers", "hidden", "heads", "kv_heads",
                                         "head_dim", "ffn", "vocab",
                                         "context")],
                [*TINY[:7], 4096])
            model = roofline.model_of_file(str(path))
            self.assertEqual(
                model._replace(of_layer=model.of_layer[:7], name=""),
                roofline.model_of_shape("", *TINY))

    def test_a_page_of_small_shapes(self):
        args = ["--tiercel", TIERCEL, "--context", 4096, "--device", 0.03125,
                "--save"]
        out = io.StringIO()
        with tempfile.TemporaryDirectory() as folder, \
                mock.patch.dict("os.environ"), \
                mock.patch.object(ranks_predicted, "SHAPES", {"tiny": TINY}), \
                mock.patch.object(ranks_predicted, "BUDGETS",
                                  {1: 1024, 2: 1024}), \
                mock.patch.object(pages, "page", lambda *words: pathlib.Path(
                    folder) / "-".join(words)), \
                contextlib.redirect_stdout(out):
            self.assertEqual(ranks_predicted.main(list(map(str, args))), 0)
            saved = (pathlib.Path(folder) / (pages.today() + "-predicted-"
                                             "ranks.md")).read_text()
        self.assertIn("## tiny, KV q8_0: *predicted*, not measured", saved)
        self.assertEqual(out.getvalue().count("\n| 1 |"), 2)
        self.assertEqual(out.getvalue().count("\n| 2 |"), 2)

    def test_refusals_say_what_is_needed(self):
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors), \
                self.assertRaises(SystemExit):
            ranks_predicted.main(["--link", "0"])
        self.assertIn("--link is 0.0; need more than 0", errors.getvalue())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
