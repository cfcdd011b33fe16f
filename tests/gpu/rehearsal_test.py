#!/usr/bin/env python3
"""Goes through a check of a GPU from its pack to its page, with the host
executor in the place of the GPU:

    rehearsal_test.py      builds and packs the programs of build/cpu, and runs

with a case that fails, one that hangs, a second run that goes on with what is
missing, a disk that is full, and no GPU. Standard library only.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import steps

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "gpu_check.sh"

# Programs with one case each, which ends in the pattern of the device's cases.
BROKEN = """#!/bin/bash
case "$*" in
  *--gtest_list_tests*) printf 'Broken/RmsNorm.\\n  Case/hosted_mixed\\n' ;;
  *) name=Broken/RmsNorm.Case/hosted_mixed
     echo "[ RUN      ] $name"
     {what}
     exit 1 ;;
esac
"""
FAILS = 'echo "got 1, need 2"; echo "[  FAILED  ] $name (0 ms)"'


def run(*args, env=None):
    return subprocess.run(
        [SCRIPT, *map(str, args)], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)


class RehearsalTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.folder.name)
        packed = run("pack", cls.root / "packed", "sim")
        if packed.returncode != 0:
            raise RuntimeError(packed.stdout)
        cls.pack = cls.root / "pack"
        cls.pack.mkdir()
        for name in ("gpu-pack", "model"):
            subprocess.run(["tar", "-C", cls.pack, "-xzf",
                            cls.root / "packed" / f"{name}.tar.gz"], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def out(self, name):
        folder = self.root / name
        folder.mkdir()
        return folder

    def put(self, name, what):
        program = self.pack / "bin" / f"{name}_tests"
        program.write_text(BROKEN.format(what=what))
        program.chmod(0o755)
        self.addCleanup(program.unlink, missing_ok=True)

    def page(self, folder):
        (page,) = folder.glob("*-gpu-check.md")
        return page.read_text()

    def outcomes(self, folder):
        """Returns {step: outcome} from its page."""
        rows = [line.split("|") for line in self.page(folder).splitlines()
                if line.startswith("| ")]
        names = {step.name for step in steps.STEPS}
        return {row[1].strip(): row[2].strip() for row in rows
                if len(row) == 6 and row[1].strip() in names}

    def test_a_run_that_meets_failures_and_one_that_goes_on(self):
        self.put("a_broken", FAILS)
        self.put("b_hanging", "sleep 1000 & sleep 1000")
        first = self.out("first")
        done = run("run", self.pack, "--out", first)
        self.assertEqual(done.returncode, 1, done.stdout)
        outcomes = self.outcomes(first)
        # The page has all steps, whatever failed before them.
        self.assertEqual(list(outcomes), [step.name for step in steps.STEPS])
        self.assertEqual({name for name, outcome in outcomes.items()
                          if outcome == "FAILED"}, {"tests"}, done.stdout)
        for name in ("ncu", "memcheck"):  # without a GPU its tools do not run
            self.assertEqual(outcomes[name], "not run")
        failed = (first / "failed.txt").read_text()
        self.assertIn("a_broken_tests Broken/RmsNorm.Case/hosted_mixed: got 1, "
                      "need 2", failed)
        self.assertIn("b_hanging_tests", failed)
        self.assertIn("did not end in its time", failed)
        self.assertEqual(len(failed.splitlines()), 3)  # with their step
        self.assertLess(sum(file.stat().st_size for file in first.iterdir()),
                        16 << 20)

        for name in ("a_broken", "b_hanging"):
            (self.pack / "bin" / f"{name}_tests").unlink()
        second = self.out("second")
        done = run("run", self.pack, "--out", second, "--resume", first)
        self.assertEqual(done.returncode, 0, done.stdout)
        outcomes = self.outcomes(second)
        self.assertEqual(outcomes["tests"], "passed")
        for name in ("matrix", "logits", "texts", "prompts", "deep"):
            self.assertEqual(outcomes[name], "passed (before)")
        self.assertEqual((second / "failed.txt").read_text(), "")
        lines = [json.loads(line) for line in
                 (second / "results.jsonl").read_text().splitlines()]
        cases = [line for line in lines if line.get("step") == "tests"
                 and "case" in line]
        # Cases that had passed are not run again.
        self.assertTrue(cases)
        self.assertTrue(all(case.get("earlier") for case in cases))

    def test_a_full_disk(self):
        full = self.out("full")
        for name in ("results.jsonl", "gpu-check.log", "failed.txt"):
            (full / name).symlink_to("/dev/full")
        done = run("run", self.pack, "--out", full, "matrix")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("could not be written", done.stdout)
        self.assertIn("IsTheProductAsLaidOut", done.stdout)

    def test_no_gpu(self):
        device = self.pack / "device"
        self.addCleanup(device.write_text, device.read_text())
        device.write_text("cuda\n")
        # The packed program simulates a GPU; the product finds none.
        program = self.pack / "bin" / "tiercel"
        packed = program.with_name("packed")
        program.rename(packed)
        self.addCleanup(packed.replace, program)
        shutil.copy(SCRIPT.parent.parent / "build/cpu/apps/tiercel", program)
        done = run("run", self.pack, "--out", self.out("none"))
        self.assertEqual(done.returncode, 77, done.stdout)
        self.assertIn("nothing to check on", done.stdout)

    def test_without_nvcc_a_pack_says_so(self):
        environment = os.environ | {"PATH": "/usr/bin:/bin",
                                    "CUDA_HOME": "/nowhere"}
        done = run("pack", self.root / "cuda", env=environment)
        self.assertEqual(done.returncode, 1)
        self.assertIn("needs nvcc", done.stdout)


if __name__ == "__main__":
    unittest.main()
