#!/usr/bin/env python3
"""Checks the machine code of kernels as far as that is possible without a GPU.

  sass_check.py [--arch 75,89,90] [--file kernels/layer/matmul.cu]...
  sass_check.py --built FOLDER [--arch 89]    the objects of a build with CUDA
  ... --save    writes the table to bench/machine_code.json

Compiles the sources of kernels (all of them, unless some are named) with nvcc,
or takes what a build has compiled, and fails if one of these does not hold:

  1. no kernel has a stack or spills registers to local memory;
  2. in the loops of the hot kernels at least 95 % of the bytes from global
     memory come in loads of 128 bits (70 % in MultiplyPanelRow, whose lanes
     each load the scales of their own block), and the loads of one pass through
     such a loop, in all warps for which a multiprocessor has registers, are
     bytes enough to keep its share of the memory's bandwidth busy;
  3. multiplication of quantised weights is done by IMMA.16832 (IMMA.8816 on
     compute capability 7.5);
  4. the loop of a chain has at most so many instructions a link, which is one
     multiply-add: 4 if a thread has one chain (the cycles that a link takes),
     1.6 if it has six, 1.25 if it has 64; the loop of flash attention over f16
     at most 8 a step of the matrix unit (9 in heads of 96, 11 in heads of 64,
     which have as many weights to compute for fewer steps), that of products of
     prompts at most 7.5 (8 for Q2_K, whose halves of blocks have minimums);
  5. in the innermost loops of attention's f16 kernels at least a stated share
     of the conversions and products are products: the more queries a warp has,
     the more products a load and a conversion serve;
  6. no loop has a tenth more instructions for each of its links or steps than
     bench/machine_code.json says, from which bench/roofline.py predicts times.

Needs cuobjdump and nvdisasm of the CUDA Toolkit or of PyPI
(nvidia-cuda-cuobjdump, nvidia-cuda-nvdisasm), and nvcc to compile, on the PATH
or in $NVCC, $CUOBJDUMP and $NVDISASM. If one is missing it says so and exits
with 77. tests/setup/sass_tools.sh fetches the first two.
"""

import argparse
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import typing

ROOT = pathlib.Path(__file__).resolve().parent.parent
SAVED = ROOT / "bench/machine_code.json"
FLAGS = ["-std=c++20", "-O3", "-fmad=false", "--expt-relaxed-constexpr",
         "-cubin", f"-I{ROOT}"]
SKIPPED = 77

# Kernels whose time is that of the bytes they load, each given by a part of its
# mangled name.
HOT = ("MultiplyPanels", "MultiplyFloatPanels", "MultiplyPanelRow",
       "MultiplyFloatRow", "MeasureKeys")
LEAST_WIDE = {"MultiplyPanelRow": 0.70}  # others: 0.95
# The instructions of a loop are counted for each of these in it: the links of
# its chains, or the steps of the matrix unit.
UNITS = {"ComputePages": "FFMA", "MultiplyFloatRow": "FFMA",
         "MultiplyFloatPanels": "FFMA", "MultiplyPanels": "IMMA",
         "MultiplyPanelRow": "IMMA", "MultiplyHalves": "HMMA",
         "FlashAttend": "HMMA"}
WORDS = {"FFMA": "a link", "IMMA": "a step", "HMMA": "a step"}
# The most of them, for kernels whose names have this form.
MOST = (("MultiplyFloatRow .*", 4), ("MultiplyFloatPanels . Rows24", 1.6),
        ("MultiplyFloatPanels . Rows64", 1.25), ("FlashAttend 128 1", 8),
        ("FlashAttend 96 1", 9), ("FlashAttend 64 1", 11),
        ("MultiplyHalves 15", 8), ("MultiplyHalves .*", 7.5))
MORE_THAN_SAVED = 1.1
# Bandwidth times latency for one multiprocessor: of an RTX 2080 Ti, an RTX
# 4090 and an H100.
LEAST_IN_FLIGHT = {"75": 5000, "89": 4700, "90": 25000}
WARPS = {"75": 32, "89": 48, "90": 64}  # a multiprocessor has at most so many
REGISTERS = 65536  # a multiprocessor has so many

# The least share of FFMA, for each kernel with its queries a warp, its cells a
# lane at a time and its type of K and V (0: f16).
LEAST_PRODUCTS = {
    "ComputePages 1 1 0": 0.30,
    "ComputePages 2 4 0": 0.40,
    "ComputePages 4 4 0": 0.50,
    "ComputePages 6 4 0": 0.58,
    "ComputePages 8 4 0": 0.62,
}
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


class Kernel(typing.NamedTuple):
    """A kernel's resources and its code: [(address, opcode, operands)]."""
    name: str
    registers: int
    stack: int  # bytes, with those of local memory
    threads: int  # the most of a block
    code: list


def resources(text):
    """{mangled name: (registers, stack and local memory)} of cuobjdump
    -res-usage."""
    found = re.findall(r"Function (\S+?):\s+REG:(\d+) STACK:(\d+) \S+ "
                       r"LOCAL:(\d+)", text)
    return {name: (int(registers), int(stack) + int(local))
            for name, registers, stack, local in found}


def most_threads(text):
    """{mangled name: threads} of cuobjdump -elf, where a kernel is bounded."""
    found, own, is_next = {}, None, False
    for line in text.splitlines():
        if match := re.match(r"\.nv\.info\.(\S+)", line):
            own = match[1]
        elif "EIATTR_MAX_THREADS" in line:
            is_next = True
        elif is_next and (match := re.search(
                r"Value:\s+0x([0-9a-f]+) 0x([0-9a-f]+) 0x([0-9a-f]+)", line)):
            found[own] = math.prod(int(n, 16) for n in match.groups())
            is_next = False
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


def bytes_of(opcode):
    """The bytes that a lane loads from global memory."""
    parts = opcode.split(".")
    if parts[0] not in ("LDG", "LDGSTS"):
        return 0
    return next((BYTES[p] for p in parts[1:] if p in BYTES), 4)


def loaded_bytes(code):
    """(bytes of loads of global memory in loops, those by 128 bits)."""
    inside = loops(code)
    total = wide = 0
    for address, opcode, _ in code:
        if any(first <= address <= last for first, last in inside):
            size = bytes_of(opcode)
            total += size
            wide += size if size == 16 else 0
    return total, wide


def loops_with(code, weight):
    """Yields (weight, instructions) of each loop whose inner loops have none of
    the weight, which is a number for each opcode."""
    ranges = loops(code)
    sums = {(first, last): sum(weight(opcode) for address, opcode, _ in code
                               if first <= address <= last)
            for first, last in ranges}
    for first, last in ranges:
        if any(first <= a and b <= last and (a, b) != (first, last)
               and sums[a, b] for a, b in ranges):
            continue
        yield sums[first, last], sum(first <= address <= last
                                     for address, _, _ in code)


def instructions_per(code, unit):
    """Instructions for each `unit`, in the loop with most of them and in those
    with nearly half as many: attention has one for scores and two for sums."""
    found = list(loops_with(code, lambda opcode: opcode.startswith(unit)))
    most = max((count for count, _ in found), default=0)
    main = [own for own in found if own[0] and own[0] >= 0.4 * most]
    if not main:
        return math.inf
    return sum(own for _, own in main) / sum(count for count, _ in main)


def warps_at_once(kernel, arch):
    """The warps for which a multiprocessor has registers."""
    if not kernel.threads:
        return 0
    of_block = -(-kernel.threads // 32)
    of_warp = 32 * 8 * -(-kernel.registers // 8)
    return min(WARPS[arch],
               REGISTERS // of_warp // of_block * of_block)


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


def kernels_in(arch, texts):
    """The kernels of an object, from cuobjdump's texts."""
    codes, threads = functions(texts["-sass"]), most_threads(texts["-elf"])
    return [Kernel(kernel_name(mangled), registers, stack,
                   threads.get(mangled, 0), codes.get(mangled, []))
            for mangled, (registers, stack)
            in resources(texts["-res-usage"]).items()]


def figures(arch, kernel):
    """The figures of a kernel in bench/machine_code.json. None: it has none, or
    the matrix unit is Turing's, whose steps are smaller."""
    unit = UNITS.get(kernel.name.split()[0])
    if not unit or arch == "75":
        return None
    return {"instructions": round(instructions_per(kernel.code, unit), 2),
            "for_each": unit, "registers": kernel.registers,
            "warps": warps_at_once(kernel, arch)}


def check_loads(arch, kernel):
    """Yields figures of a hot kernel's loads, and whether each is right."""
    total, wide = loaded_bytes(kernel.code)
    share = wide / total if total else 0.0
    least = LEAST_WIDE.get(kernel.name.split()[0], 0.95)
    yield f"{share:.0%} of loads by 128 bits", share >= least
    once, _ = max(loops_with(kernel.code, bytes_of), default=(0, 0))
    flying = 32 * once * warps_at_once(kernel, arch)
    yield (f"{flying:,} bytes in flight",
           total == 0 or flying >= LEAST_IN_FLIGHT[arch])


def check_counts(arch, kernel, saved):
    """Yields counts of a kernel's instructions, and whether each is right."""
    if kernel.name.split()[0] in BY_MATRIX_UNIT:
        wanted = "IMMA.8816" if arch == "75" else "IMMA.16832"
        steps = sum(opcode.startswith(wanted) for _, opcode, _ in kernel.code)
        yield f"{steps} {wanted}", steps > 0
    unit = UNITS.get(kernel.name.split()[0])
    if unit == "FFMA" or (unit and arch != "75"):
        count = instructions_per(kernel.code, unit)
        most = next((most for form, most in MOST
                     if re.fullmatch(form, kernel.name)), math.inf)
        if saved is not None and arch != "75":
            found = saved.get(f"sm_{arch}", {}).get(kernel.name)
            most = min(most, MORE_THAN_SAVED * found["instructions"]
                       if found else 0)
        yield (f"{count:.2f} instructions {WORDS[unit]}",
               count <= most and count != math.inf)
    least = LEAST_PRODUCTS.get(kernel.name.removesuffix(" true"))
    if least is not None:
        share = min(shares_of_products(kernel.code) or [0.0])
        yield f"{share:.0%} of inner loops multiply", share >= least


def check(arch, kernels, saved=None):
    """Returns the lines of a table, and the lines of what is wrong. `saved`:
    the figures to compare with."""
    table, wrong = [], []
    for kernel in kernels:
        found = [(f"{kernel.registers} registers", True),
                 (f"{warps_at_once(kernel, arch)} warps", True)]
        if kernel.stack:
            found.append((f"a stack of {kernel.stack} bytes", False))
        if kernel.name.split()[0] in HOT:
            found += check_loads(arch, kernel)
        found += check_counts(arch, kernel, saved)
        who = f"sm_{arch} {kernel.name}: "
        table.append(who + ", ".join(words for words, _ in found))
        wrong += [who + words for words, right in found if not right]
    if not table:
        wrong.append(f"sm_{arch}: no kernel was compiled")
    return table, wrong


def tool(name):
    return (os.environ.get(name.upper()) or shutil.which(name)
            or shutil.which(f"/usr/local/cuda/bin/{name}"))


def objects(args, archs, nvcc, folder):
    """Yields (source, architecture, file with its machine code)."""
    if args.built:
        for path in sorted(pathlib.Path(args.built).glob(
                "kernels/CMakeFiles/tiercel_cuda.dir/*/*.cu.o")):
            for arch in archs:
                yield "/".join(path.parts[-2:]).removesuffix(".o"), arch, path
        return
    for source in args.file or sorted(
            str(path.relative_to(ROOT)) for path in ROOT.glob("kernels/*/*.cu")):
        for arch in archs:
            cubin = f"{folder}/kernels.cubin"
            subprocess.run([nvcc, *FLAGS, f"-arch=sm_{arch}", "-o", cubin,
                            str(ROOT / source)], check=True)
            yield source, arch, cubin


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--arch", default="75,89,90")
    parser.add_argument("--file", action="append")
    parser.add_argument("--built")
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args(argv)
    needed = ("cuobjdump", "nvdisasm") if args.built else (
        "nvcc", "cuobjdump", "nvdisasm")
    tools = {name: tool(name) for name in needed}
    for name, path in tools.items():
        if not path:
            print(f"sass_check: nothing was checked: no {name}")
            return SKIPPED
    saved = None if args.save else json.loads(SAVED.read_text())
    wrong, new, count, archs = [], {}, 0, args.arch.split(",")
    # cuobjdump starts nvdisasm, which it looks for there.
    found = {**os.environ, "NVDISASM_PATH": os.path.dirname(tools["nvdisasm"])}
    with tempfile.TemporaryDirectory() as folder:
        for source, arch, code in objects(args, archs, tools.get("nvcc"),
                                          folder):
            texts = {flag: subprocess.run(
                [tools["cuobjdump"], flag, "-arch", f"sm_{arch}", code],
                check=True, capture_output=True, text=True, env=found).stdout
                     for flag in ("-res-usage", "-elf", "-sass")}
            kernels = kernels_in(arch, texts)
            table, failed = check(arch, kernels, saved)
            print("\n".join(f"{source} {line}" for line in table))
            wrong += [f"{source} {line}" for line in failed]
            count += len(table)
            for kernel in kernels:
                if own := figures(arch, kernel):
                    new.setdefault(f"sm_{arch}", {})[kernel.name] = own
    if count == 0:
        wrong.append("no kernel was found")
    for line in wrong:
        print(f"WRONG {line}")
    print(f"sass_check: {count} kernels, {len(wrong)} lines are wrong")
    if args.save:
        SAVED.write_text(json.dumps(new, indent=1, sort_keys=True) + "\n")
        print(f"saved: {SAVED}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
