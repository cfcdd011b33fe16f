#!/usr/bin/env python3
"""Tests how sass_check.py reads the output of nvcc and cuobjdump, and its check
of the matrix product if these are here.

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
LOG = f"""\
ptxas info    : Compiling entry function '{NAME}' for 'sm_89'
ptxas info    : Function properties for {NAME}
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 80 registers, used 1 barriers, 608 bytes cmem[0]
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
        table, wrong = sass_check.check(
            "89", LOG, SASS.replace("LDG.E.U16", "LDS.U16"))
        self.assertEqual(table, ["sm_89 MultiplyPanels 4 1: 80 registers, 100% "
                                 "of loads by 128 bits, 1 IMMA.16832"])
        self.assertEqual(wrong, [])

    def test_instructions_of_a_chain_are_counted_in_its_loop(self):
        def of(name, sass):
            return sass_check.check(
                "89", LOG.replace("14MultiplyPanels", name),
                sass.replace("14MultiplyPanels", name))

        chain = SASS.replace("LDG.E.U16 R2", "FFMA R4, R5, R6")
        _, wrong = of("16MultiplyFloatRow", chain)
        self.assertEqual(wrong, ["sm_89 MultiplyFloatRow 4 1: 5.00 "
                                 "instructions a link"])
        table, wrong = of("16MultiplyFloatRow",
                          chain.replace("IMMA.16832", "FFMA"))
        self.assertEqual(wrong, [])
        self.assertIn(" 2.50 instructions a link", table[0])
        _, wrong = of("16MultiplyFloatRow", SASS.replace("LDG.E.U16", "LDS"))
        self.assertIn("inf instructions", wrong[0])

    def test_what_is_wrong(self):
        for arch, log, sass, word in [
                ("89", LOG, SASS, "32 of 34 bytes"),
                ("89", LOG.replace("0 bytes stack", "8 bytes stack"), SASS,
                 "a stack of 8 bytes, 0 spilled"),
                ("89", LOG.replace("0 bytes spill stores", "4 bytes spill "
                                   "stores"), SASS, "0 bytes, 4 spilled"),
                ("89", LOG, SASS.replace("IMMA", "IDP"), "no IMMA.16832"),
                ("75", LOG, SASS, "no IMMA.8816"),
                ("89", LOG, "", "0 of 0 bytes"),
                ("89", "", "", "no kernel was compiled")]:
            _, wrong = sass_check.check(arch, log, sass)
            self.assertTrue(any(word in line for line in wrong), (word, wrong))

    def test_without_the_tools_it_says_so(self):
        said = io.StringIO()
        with mock.patch.object(sass_check, "tool", lambda name: None), \
                contextlib.redirect_stdout(said):
            self.assertEqual(sass_check.main([]), sass_check.SKIPPED)
        self.assertEqual(said.getvalue(),
                         "sass_check: nothing was checked: no nvcc\n")


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
