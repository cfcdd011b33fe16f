#!/usr/bin/env python3
"""Tests how sass_check.py reads the output of cuobjdump, and its check of a
kernel if nvcc is here.

  sass_check_test.py
"""

import contextlib
import io
import os
import sys
import unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import sass_check  # noqa: E402

NAME = ("_ZN7tiercel9RunKernelINS_41_GLOBAL__N__31bc8afe_9_matmul_cu_"
        "c8b0a79814MultiplyPanelsILNS_5DTypeE4ELi1EEEEEvT_")
RESOURCES = f"""\
Fatbin elf code:
 Function {NAME}:
  REG:80 STACK:0 SHARED:0 LOCAL:0 CONSTANT[0]:608 TEXTURE:0 SURFACE:0 SAMPLER:0
"""
ELF = f"""\
.nv.info.{NAME}
\tAttribute:\tEIATTR_PARAM_CBANK
\tValue:\t0x5 0x0 0x0
\tAttribute:\tEIATTR_MAX_THREADS
\tFormat:\tEIFMT_SVAL
\tValue:\t0x40 0x2 0x1
"""
SASS = f"""\
\t\tFunction : {NAME}
\t.headerflags\t@"EF_CUDA_SM89"
        /*0010*/  LDG.E R2, [R4.64] ;  /* 0x0000000404027981 */
                                       /* 0x000fe200078e00ff */
        /*0020*/  @!P1 BRA 0x40 ;  /* 0x0000003000009947 */
        /*0030*/  LDG.E.64 R2, [R4.64] ;  /* 0x0000000404027981 */
        /*0040*/  LDGSTS.E.BYPASS.128 [R21], [R14.64] ;  /* 0x000000000e157fae */
        /*0050*/  @P0 LDG.E.128.CONSTANT R4, [R14.64] ;  /* 0x000000000e157fae */
        /*0060*/  LDG.E.U16 R2, [R4.64] ;  /* 0x0000000404027981 */
        /*0070*/  IMMA.16832.S8.S8 R4, R4.ROW, R8.COL, RZ ;  /* 0x0000000804047237 */
        /*0080*/  @!P0 BRA 0x40 ;  /* 0xfffffe1000008947 */
        /*0090*/  BRA 0x90;  /* 0xfffffff000007947 */
"""


def check(arch="89", resources=RESOURCES, elf=ELF, sass=SASS, saved=None):
    return sass_check.check(arch, sass_check.kernels_in(
        arch, {"-res-usage": resources, "-elf": elf, "-sass": sass}), saved)


def renamed(name, sass):
    """check() of a kernel of another name."""
    texts = [text.replace("14MultiplyPanels", name)
             for text in (RESOURCES, ELF, sass)]
    return check("89", *texts)


class WordsTest(unittest.TestCase):
    def test_kernels_have_short_names(self):
        self.assertEqual(sass_check.kernel_name(NAME), "MultiplyPanels 4 1")
        self.assertEqual(
            sass_check.kernel_name(NAME.replace("14MultiplyPanelsILNS_5DTypeE4"
                                                "ELi1EEE", "8CopyRowsE")),
            "CopyRows")
        self.assertEqual(
            sass_check.kernel_name(NAME.replace("ELi1EEE", "ENS1_6Rows64EEE")),
            "MultiplyPanels 4 Rows64")

    def test_loads_are_counted_in_loops_alone(self):
        code = sass_check.functions(SASS)[NAME]
        self.assertEqual(sass_check.loops(code), [(0x40, 0x80)])
        self.assertEqual(sass_check.loaded_bytes(code), (34, 32))

    def test_what_is_right(self):
        table, wrong = check(sass=SASS.replace("LDG.E.U16", "LDS.U16"))
        # 65,536 registers are enough for 25 warps, which are 6 blocks of 4.
        self.assertEqual(
            table, ["sm_89 MultiplyPanels 4 1: 80 registers, 24 warps, 100% of "
                    "loads by 128 bits, 24,576 bytes in flight, 1 IMMA.16832, "
                    "5.00 instructions a step"])
        self.assertEqual(wrong, [])

    def test_warps_at_once(self):
        def warps(registers, threads, arch="89"):
            return sass_check.warps_at_once(sass_check.Kernel(
                "x", registers, 0, threads, []), arch)
        self.assertEqual(warps(81, 128), 20)  # each takes 88
        self.assertEqual(warps(81, 32), 23)
        self.assertEqual([warps(16, 128, arch) for arch in ("75", "89", "90")],
                         [32, 48, 64])
        self.assertEqual(warps(16, 0), 0)  # it is not bounded

    def test_instructions_of_a_chain_are_counted_in_its_loop(self):
        chain = SASS.replace("LDG.E.U16 R2", "FFMA R4, R5, R6")
        _, wrong = renamed("16MultiplyFloatRow", chain)
        self.assertEqual(wrong, ["sm_89 MultiplyFloatRow 4 1: 5.00 "
                                 "instructions a link"])
        table, wrong = renamed("16MultiplyFloatRow",
                               chain.replace("IMMA.16832", "FFMA"))
        self.assertEqual(wrong, [])
        self.assertIn(" 2.50 instructions a link", table[0])
        _, wrong = renamed("16MultiplyFloatRow",
                           SASS.replace("LDG.E.U16", "LDS"))
        self.assertIn("inf instructions", wrong[0])

    # A loop counts if it has nearly half as many as the loop with most, and if
    # none is in a loop within it.
    def test_the_main_loops_are_counted(self):
        def code(*parts):  # (FFMA, others), or the loops within a loop
            found = []
            for part in parts:
                first = 16 * len(found)
                if isinstance(part[0], int):
                    found += ["FFMA"] * part[0] + ["IADD3"] * part[1]
                else:
                    found += [op for _, op, _ in code(*part)] + ["IADD3"]
                found.append(f"BRA {first:#x}")
            return [(16 * i, op.split()[0], op.partition(" ")[2])
                    for i, op in enumerate(found)]
        per = sass_check.instructions_per
        self.assertEqual(per(code((4, 3)), "FFMA"), 2)
        self.assertEqual(per(code((10, 9), (5, 4), (3, 90)), "FFMA"), 2)

    def test_figures_that_rise(self):
        right = SASS.replace("LDG.E.U16", "LDS.U16")

        def beside(instructions, name="MultiplyPanels 4 1"):
            return check(sass=right, saved={"sm_89": {
                name: {"instructions": instructions}}})[1]
        self.assertEqual(beside(4.6), [])
        for saved in (beside(4.5), beside(9, "MultiplyPanels 4 3")):
            self.assertEqual(saved, ["sm_89 MultiplyPanels 4 1: 5.00 "
                                     "instructions a step"])

    def test_what_is_wrong(self):
        right = {"resources": RESOURCES, "elf": ELF, "sass": SASS}
        for arch, change, word in [
                ("89", {}, "94% of loads by 128 bits"),
                ("89", {"resources": RESOURCES.replace("STACK:0", "STACK:8")},
                 "a stack of 8 bytes"),
                ("89", {"resources": RESOURCES.replace("LOCAL:0", "LOCAL:4")},
                 "a stack of 4 bytes"),
                ("90", {"resources": RESOURCES.replace("REG:80", "REG:168")},
                 "13,056 bytes in flight"),
                ("89", {"sass": SASS.replace("IMMA", "IDP")},
                 "0 IMMA.16832"),
                ("75", {}, "0 IMMA.8816"),
                ("89", {"sass": ""}, "0% of loads"),
                ("89", {"resources": ""}, "no kernel was compiled")]:
            _, wrong = check(arch, **{**right, **change})
            self.assertTrue(any(word in line for line in wrong), (word, wrong))

    def test_without_the_tools_it_says_so(self):
        for argv, lacks in (([], "nvcc"), (["--built", "."], "cuobjdump")):
            said = io.StringIO()
            with mock.patch.object(sass_check, "tool", lambda name: None), \
                    contextlib.redirect_stdout(said):
                self.assertEqual(sass_check.main(argv), sass_check.SKIPPED)
            self.assertEqual(
                said.getvalue(),
                f"sass_check: nothing was checked: no {lacks}\n")

    def test_a_folder_without_objects(self):
        said = io.StringIO()
        with mock.patch.object(sass_check, "tool", lambda name: "/bin/true"), \
                contextlib.redirect_stdout(said):
            self.assertEqual(sass_check.main(["--built", "/var/empty"]), 1)
        self.assertEqual(said.getvalue(), "WRONG no kernel was found\n"
                         "sass_check: 0 kernels, 1 lines are wrong\n")


class KernelTest(unittest.TestCase):
    """Compiles a small kernel; full.sh compiles them all."""

    def test_a_kernel_on_ada(self):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            status = sass_check.main(
                ["--arch", "89", "--file", "kernels/layer/embed.cu"])
        if status == sass_check.SKIPPED:
            self.skipTest(said.getvalue().strip())
        self.assertEqual(status, 0, said.getvalue())
        self.assertRegex(said.getvalue(), r"embed.cu sm_89 .*: \d+ registers")


if __name__ == "__main__":
    unittest.main()
