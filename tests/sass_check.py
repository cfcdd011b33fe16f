#!/usr/bin/env python3
"""Checks the machine code of kernels as far as that is possible without a GPU.

  sass_check.py [--arch 75,89,90] [--file kernels/layer/matmul.cu]...

Compiles the sources of kernels (all of them, unless some are named) with nvcc
and fails if one of these does not hold:

  1. no kernel spills registers or has a stack;
  2. in the loops of the hot kernels at least 95 % of the bytes from global
     memory come in loads of 128 bits (75 % in MultiplyPanelRow, whose lanes
     each load the scales of their own block);
  3. multiplication of quantised weights is done by IMMA.16832 (IMMA.8816 on
     compute capability 7.5);
  4. the loop of a chain has at most so many instructions a link, which is one
     multiply-add: 4 if a thread has one chain (the cycles that a link takes),
     1.6 if it has six, 1.25 if it has 64;
  5. in the innermost loops of attention's f16 kernels at least a stated share
     of the conversions and products are products: the more queries a warp has,
     the more products a load and a conversion serve;
  6. the loop of flash attention over f16 has at most 8 instructions a step of
     the matrix unit (9 in heads of 96, 11 in heads of 64, which have as many
     weights to compute for fewer steps), that of products of prompts at most 7.5.

Needs nvcc, and cuobjdump and nvdisasm of the CUDA Toolkit or of PyPI
(nvidia-cuda-cuobjdump, nvidia-cuda-nvdisasm), on the PATH or in $NVCC,
$CUOBJDUMP and $NVDISASM. If one is missing it says so and exits with 77.
tests/setup/sass_tools.sh fetches the last two.
"""

import argparse
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FLAGS = ["-std=c++20", "-O3", "-fmad=false", "--expt-relaxed-constexpr",
         "--resource-usage", "-cubin", f"-I{ROOT}"]
SKIPPED = 77

# Kernels whose time is that of the bytes they load, each given by a part of its
# mangled name.
HOT = ("MultiplyPanels", "MultiplyFloatPanels", "MultiplyPanelRow",
       "MultiplyFloatRow", "MeasureKeys")
LEAST_WIDE = {"MultiplyPanelRow": 0.75}  # others: 0.95
# The most instructions a link of a chain in kernels of floats.
MOST_A_LINK = {"MultiplyFloatRow": 4, "Rows24": 1.6, "Rows64": 1.25}
# The least share of FFMA, for each kernel with its queries a warp, its cells a
# lane at a time and its type of K and V (0: f16).
LEAST_PRODUCTS = {
    "ComputePages 1 1 0": 0.30,
    "ComputePages 2 4 0": 0.40,
    "ComputePages 4 4 0": 0.50,
    "ComputePages 6 4 0": 0.58,
    "ComputePages 8 4 0": 0.62,
}
# The most instructions a step of the matrix unit, in the loop with most steps.
MOST_A_STEP = {"FlashAttend 128 1": 8, "FlashAttend 96 1": 9,  # f16
               "FlashAttend 64 1": 11,
               "MultiplyHalves": 7.5}  # for all types
# The matrix unit must do the work of these kernels.
BY_MATRIX_UNIT = ("MultiplyPanels", "MultiplyPanelRow")

BYTES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
INSTRUCTION = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z0-9_.]+)"
                         r"([^;]*);")


def first_name(mangled):
    """Splits a name that follows its length from the rest."""
    length = re.match(r"\d+", mangled)
    end = length.end() + int(length[0])
    return mangled[length.end():end], mangled[end:]


def kernel_name(mangled):
    """The struct of a kernel and its arguments, from RunKernel's name; " true"
    stands for each that is true."""
    place = re.search(r"RunKernelINS_(?=\d)", mangled)
    if not place:
        return mangled
    name, rest = first_name(mangled[place.end():])
    if name.startswith("_GLOBAL__N_"):  # the namespace without a name
        name, rest = first_name(rest)
    numbers = re.findall(r"E(\d+)E|Li(\d+)E|\d(Rows\d+)E|Lb(1)E", rest)
    return name + "".join(" true" if d else f" {a or b or c}"
                          for a, b, c, d in numbers)


def resources(log):
    """{mangled name: (stack, spilled, registers)} of ptxas's words."""
    found, name, frame = {}, None, None
    for line in log.splitlines():
        if match := re.search(r"Compiling entry function '(\S+)'", line):
            name = match[1]
        elif match := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill "
                                r"stores, (\d+) bytes spill loads", line):
            frame = int(match[1]), int(match[2]) + int(match[3])
        elif match := re.search(r"Used (\d+) registers", line):
            found[name] = (*frame, int(match[1]))
    return found


def functions(sass):
    """{mangled name: [(address, opcode, operands)]} of cuobjdump -sass."""
    found, own = {}, None
    for line in sass.splitlines():
        if match := re.search(r"Function : (\S+)", line):
            own = found.setdefault(match[1], [])
        elif own is not None and (match := INSTRUCTION.search(line)):
            own.append((int(match[1], 16), match[2], match[3]))
    return found


def loops(code):
    """The ranges of addresses that a backward branch spans."""
    ranges = []
    for address, opcode, operands in code:
        target = re.search(r"0x([0-9a-f]+)", operands)
        if opcode.split(".")[0] != "BRA" or not target:
            continue
        if int(target[1], 16) < address:
            ranges.append((int(target[1], 16), address))
    return ranges


def loaded_bytes(code):
    """(bytes of loads of global memory in loops, those by 128 bits)."""
    inside = loops(code)
    total = wide = 0
    for address, opcode, _ in code:
        parts = opcode.split(".")
        if parts[0] not in ("LDG", "LDGSTS"):
            continue
        if not any(first <= address <= last for first, last in inside):
            continue
        size = next((BYTES[p] for p in parts[1:] if p in BYTES), 4)
        total += size
        wide += size if size == 16 else 0
    return total, wide


def instructions_per(code, opcodes):
    """Instructions per `opcodes` in the innermost loop with most of them."""
    most = (0, 1)
    ranges = loops(code)
    for first, last in ranges:
        if any(first <= a and b <= last and (a, b) != (first, last)
               for a, b in ranges):
            continue
        own = [opcode for address, opcode, _ in code if first <= address <= last]
        links = sum(opcode.startswith(opcodes) for opcode in own)
        most = max(most, (links, len(own)))
    return most[1] / most[0] if most[0] else math.inf


def shares_of_products(code):
    """The share of FFMA in each innermost loop with HADD2 and FFMA."""
    all_loops = set(loops(code))
    shares = []
    for first, last in all_loops:
        if any(first <= other[0] and other[1] <= last
               for other in all_loops - {(first, last)}):
            continue
        names = [opcode.split(".")[0] for address, opcode, _ in code
                 if first <= address <= last]
        if "HADD2" in names and "FFMA" in names:
            shares.append(names.count("FFMA") / len(names))
    return shares


def check(arch, log, sass):
    """Returns the lines of a table, and the sentences about what fails."""
    table, wrong = [], []
    codes = functions(sass)
    for mangled, (stack, spilled, registers) in resources(log).items():
        name = kernel_name(mangled)
        line = f"sm_{arch} {name}: {registers} registers"
        if stack or spilled:
            wrong.append(f"sm_{arch} {name}: a stack of {stack} bytes, "
                         f"{spilled} spilled")
        code = codes.get(mangled, [])
        for hot in (hot for hot in HOT if hot in mangled):
            total, wide = loaded_bytes(code)
            share = wide / total if total else 0.0
            line += f", {share:.0%} of loads by 128 bits"
            if share < LEAST_WIDE.get(hot, 0.95):
                wrong.append(f"sm_{arch} {name}: {wide} of {total} bytes "
                             "loaded by 128 bits")
        if any(kernel in mangled for kernel in BY_MATRIX_UNIT):
            wanted = "IMMA.8816" if arch == "75" else "IMMA.16832"
            steps = sum(opcode.startswith(wanted) for _, opcode, _ in code)
            line += f", {steps} {wanted}"
            if steps == 0:
                wrong.append(f"sm_{arch} {name}: no {wanted}")
        for most in (MOST_A_LINK[part] for part in MOST_A_LINK
                     if part in mangled):
            count = instructions_per(code, "FFMA")
            line += f", {count:.2f} instructions a link"
            if count > most:
                wrong.append(f"sm_{arch} {name}: {count:.2f} instructions a "
                             "link")
        most = MOST_A_STEP.get(name, MOST_A_STEP.get(name.split()[0]))
        if most is not None and arch != "75":  # sm_75 takes two halves
            count = instructions_per(code, "HMMA.16816")
            line += f", {count:.1f} instructions a matrix step"
            if count > most:
                wrong.append(f"sm_{arch} {name}: {count:.1f} instructions a "
                             f"matrix step, need {most}")
        least = LEAST_PRODUCTS.get(name.removesuffix(" true"))
        if least is not None:
            shares = shares_of_products(code) or [0.0]
            line += f", {min(shares):.0%} of inner loops multiply"
            if min(shares) < least:
                wrong.append(f"sm_{arch} {name}: {min(shares):.0%} of an "
                             "inner loop multiply, need "
                             f"{least:.0%}")
        table.append(line)
    if not table:
        wrong.append(f"sm_{arch}: no kernel was compiled")
    return table, wrong


def tool(name):
    return (os.environ.get(name.upper()) or shutil.which(name)
            or shutil.which(f"/usr/local/cuda/bin/{name}"))


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--arch", default="75,89,90")
    parser.add_argument("--file", action="append")
    args = parser.parse_args(argv)
    nvcc, cuobjdump, nvdisasm = map(tool, ("nvcc", "cuobjdump", "nvdisasm"))
    for name, path in (("nvcc", nvcc), ("cuobjdump", cuobjdump),
                       ("nvdisasm", nvdisasm)):
        if not path:
            print(f"sass_check: nothing was checked: no {name}")
            return SKIPPED
    sources = args.file or sorted(
        str(path.relative_to(ROOT)) for path in ROOT.glob("kernels/*/*.cu"))
    wrong = []
    # cuobjdump starts nvdisasm, which it looks for there.
    found = {**os.environ, "NVDISASM_PATH": os.path.dirname(nvdisasm)}
    with tempfile.TemporaryDirectory() as folder:
        for source in sources:
            for arch in args.arch.split(","):
                cubin = f"{folder}/kernels.cubin"
                built = subprocess.run(
                    [nvcc, *FLAGS, f"-arch=sm_{arch}", "-o", cubin,
                     str(ROOT / source)], capture_output=True, text=True)
                if built.returncode != 0:
                    print(built.stderr, file=sys.stderr)
                    return 1
                sass = subprocess.run([cuobjdump, "-sass", cubin], check=True,
                                      capture_output=True, text=True, env=found)
                table, failed = check(arch, built.stdout + built.stderr,
                                      sass.stdout)
                print("\n".join(f"{source} {line}" for line in table))
                wrong += [f"{source} {line}" for line in failed]
    for line in wrong:
        print(f"WRONG {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
