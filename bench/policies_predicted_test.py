"""Predictions of policies_predicted.py, beside figures worked out by hand."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
import pages
import policies_predicted as policies
import roofline

ADA = roofline.GPUS[0]
LLAMA = roofline.model_of_shape(*roofline.SHAPES["llama2-7b"])
SMALL = roofline.model_of_shape(*roofline.SHAPES["llama3-8b-q4"])


def predicted(model, context, kv="f16", gpu=ADA, link=25e9, host=34e9):
    return policies.predict(gpu, model, context, kv, link, host)


class TimesTest(unittest.TestCase):
    def test_kv_on_the_card(self):
        # 24 GiB hold 12.55 of weights, 1.5 besides and 4 of two layers, which
        # leaves 5.95 for 30 layers of 2 GiB.
        times = predicted(LLAMA, 131072)
        self.assertAlmostEqual(times.there, 5.95 / 60, delta=0.001)
        self.assertEqual(predicted(SMALL, 131072).there, 1)
        small = roofline.GPUS[2]
        self.assertIsNone(predicted(LLAMA, 131072, gpu=small))

    def test_kv_that_fits_never_crosses(self):
        times = predicted(SMALL, 131072)
        self.assertAlmostEqual(times.full, roofline.step_seconds(
            ADA, SMALL, 1, 131072, "f16"))
        self.assertEqual(times, predicted(SMALL, 131072, link=1e9))

    def test_a_sweep_has_the_rest_alone(self):
        times = predicted(LLAMA, 131072, host=1e3)
        link = (1 - times.there) * 2**36 / 25e9
        # The first layer's share comes before all compute.
        self.assertAlmostEqual(times.full, link + 0.1056 / 32, delta=0.01)
        self.assertLess(predicted(LLAMA, 131072).full, 0.5 * times.full)

    def test_triforce_takes_the_best_block(self):
        times = predicted(LLAMA, 131072)
        draft = roofline.step_seconds(ADA, LLAMA, 1, policies.BUDGET, "f16")
        for (seconds, block), held in zip(times.triforce, policies.HELD):
            tokens = sum(held**n for n in range(block + 1))
            sweep = seconds * tokens - block * draft
            self.assertAlmostEqual(sweep, times.full, delta=0.02)
        self.assertLess(times.triforce[1], times.triforce[0])
        self.assertGreater(times.triforce[1][1], times.triforce[0][1])

    def test_plain_forms(self):
        times = predicted(LLAMA, 131072)
        window = roofline.step_seconds(ADA, LLAMA, 1, 4096, "f16")
        self.assertAlmostEqual(times.sadas, window)
        fast = roofline.step_seconds(ADA, LLAMA, 1, 1280, "f16")
        self.assertAlmostEqual(times.sfi, (times.full + 63 * fast) / 64)
        self.assertAlmostEqual(times.speed_prompt, 0.75 * times.prompt)
        self.assertAlmostEqual(times.speed, 0.75 * times.full + fast / 4,
                               delta=0.001)


class PagesTest(unittest.TestCase):
    def said(self, *argv):
        out, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), \
                contextlib.redirect_stderr(errors):
            try:
                status = policies.main(list(argv))
            except SystemExit as exit_:
                status = exit_.code
        return status, out.getvalue(), errors.getvalue()

    def test_what_is_printed_is_labelled(self):
        status, out, _ = self.said()
        self.assertEqual(status, 0)
        for gpu in roofline.GPUS:
            self.assertIn(f"## {gpu.name}, {policies.MEMORY[gpu.name]} GiB: "
                          "*predicted*", out)
        rows = [line for line in out.splitlines() if line.startswith("| ")]
        # A head, and four models with two contexts, for each card.
        self.assertEqual(len(rows), 5 * (1 + 8))
        self.assertEqual({line.count("|") for line in rows}, {11})

    def test_a_page_is_saved(self):
        with tempfile.TemporaryDirectory() as folder:
            names = []

            def page(*words):
                names.append(words[1:])
                return pathlib.Path(folder) / "x.md"
            with mock.patch.object(pages, "page", page):
                for kv in ("f16", "q8_0"):
                    self.assertEqual(self.said("--save", "--kv", kv)[0], 0)
        self.assertEqual(names, [("predicted", "policies.md"),
                                 ("predicted", "policies", "q8_0.md")])

    def test_refusals_say_what_is_needed(self):
        status, _, errors = self.said("--link", "0")
        self.assertEqual(status, 2)
        self.assertIn("--link is 0.0; need more than 0", errors)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
