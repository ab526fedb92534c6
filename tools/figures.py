#!/usr/bin/env python3
"""Prints the size of functions and the assertions in each, for each folder of src.

    tools/figures.py [ROOT]

Lines are those between the braces, comments and blank ones too, as tools/tidy.py counts them.
Fails if the median of all functions is above MEDIAN_MAX or one has more than tidy's FUNCTION_MAX.
"""
import pathlib
import re
import statistics
import sys

import tidy

MEDIAN_MAX = 12


def blank(match):
    return "\n" * match[0].count("\n")


def functions_in(folder):
    """Yields (lines, assertions) of each function in the sources and headers of a folder."""
    for path in sorted(folder.glob("*.[ch]")):
        text = re.sub(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', blank, path.read_text(), flags=re.S)
        for _, body in tidy.functions_of(text):
            yield body.count("\n"), len(re.findall(r"\bassert\(", body))


def row(name, functions):
    lines = sorted(lines for lines, _ in functions)
    p90 = lines[(len(lines) - 1) * 9 // 10]
    asserts = sum(count for _, count in functions) / len(functions)
    return (f"{name:16} {len(lines):9} {statistics.median(lines):7g} {p90:5} {lines[-1]:5} "
            f"{asserts:12.2f}")


def main(arguments):
    root = pathlib.Path(arguments[0] if arguments else ".") / "src"
    every = []
    print(f"{'folder':16} {'functions':>9} {'median':>7} {'p90':>5} {'max':>5} {'assertions/f':>12}")
    for folder in sorted(path for path in [root, *root.rglob("*")] if path.is_dir()):
        functions = list(functions_in(folder))
        if functions:
            every += functions
            print(row(str(folder.relative_to(root)), functions))
    print(row("all", every))
    too_long = max(lines for lines, _ in every) > tidy.FUNCTION_MAX
    return 1 if too_long or statistics.median(lines for lines, _ in every) > MEDIAN_MAX else 0


sys.exit(main(sys.argv[1:]))
