#!/usr/bin/env python3
"""Counts the instructions of the usual operations and compares them with bench/instructions.json.

    instructions.py --programs DIR             fails if one takes over 3 % more than the file says
    instructions.py --programs DIR --update    writes the file; commit it with what changed the counts

Callgrind counts, and time and random numbers are fixed: another process changes nothing. Another
compiler, C library or processor family does, so the file names those it is for; elsewhere the
counts are printed, and not compared (exit 77).
"""
import argparse
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

FILE = pathlib.Path(__file__).with_suffix(".json")
GROWTH_MAX = 0.03
SKIPPED = 77
# The C library chooses functions by processor; with these off it chooses the same on all. No other
# variable is passed on: meson sets MALLOC_PERTURB_, which fills all memory.
TUNABLES = "glibc.cpu.hwcaps=-AVX2,-ERMS,-FSRM,-AVX512F,-AVX512VL,-AVX_Fast_Unaligned_Load"


def count(programs):
    """Returns the lines of the program: what built it, then operations with their instructions."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory, prefix="belfry-bench-") as folder:
        out = pathlib.Path(folder, "callgrind")
        data = pathlib.Path(folder, "data")
        data.mkdir()
        command = ["valgrind", "--quiet", "--tool=callgrind", "--instr-atstart=no",
                   "--collect-atstart=no", f"--callgrind-out-file={out}",
                   str(programs / "instructions"), str(data)]
        process = subprocess.run(command, capture_output=True, text=True,
                                 env={"PATH": os.environ["PATH"], "GLIBC_TUNABLES": TUNABLES})
        if process.returncode != 0:
            sys.exit(f"instructions: {' '.join(command)}: {process.stderr}")
        lines = [json.loads(line) for line in process.stdout.splitlines()]
        for number, line in enumerate(lines[1:], start=1):
            dump = pathlib.Path(f"{out}.{number}").read_text()
            if f"Client Request: {line['name']}\n" not in dump:
                sys.exit(f"instructions: dump {number} is not of {line['name']}")
            total = re.search(r"^(?:summary|totals): (\d+)", dump, re.MULTILINE)
            line["instructions"] = round(int(total[1]) / line["count"])
        return lines


def compare(name, counted, known):
    """Prints an operation. Returns whether it takes too many instructions."""
    if known is None:
        print(f"  {name:<48}{counted:>8,}  not in the file")
        return True
    growth = counted / known - 1
    is_over = growth > GROWTH_MAX
    print(f"  {name:<48}{counted:>8,}{growth:>+9.1%}{'  MORE' if is_over else ''}")
    return is_over


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("section", nargs="?", choices=["instructions"])
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--update", action="store_true")
    args = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("SKIPPED instructions: valgrind is not installed")
        sys.exit(SKIPPED)
    built, *lines = count(args.programs)
    built["machine"] = platform.machine()
    counts = {line["name"]: line["instructions"] for line in lines}
    if args.update:
        FILE.write_text(json.dumps({"built": built, "instructions": counts}, indent=4) + "\n")
    known = json.loads(FILE.read_text())
    if built != known["built"]:
        for name, counted in counts.items():
            print(f"  {name:<48}{counted:>8,}")
        print(f"SKIPPED instructions: {FILE.name} is for {known['built']}, this is {built}")
        sys.exit(SKIPPED)
    over = [name for name, counted in counts.items()
            if compare(name, counted, known["instructions"].get(name))]
    gone = known["instructions"].keys() - counts.keys()
    if over or gone:
        print(f"FAIL more than 3 % above {FILE.name}, or not the same operations:",
              ", ".join(over + sorted(gone)))
        print("     if it is worth it: script/bench instructions --update, and commit the file")
        sys.exit(1)
    print("ok   instructions")


main()
