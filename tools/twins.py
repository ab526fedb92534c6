#!/usr/bin/env python3
"""Checks that no function or variable is defined in two libraries of the program.

    tools/twins.py liba.a libb.a ...

The linker does not complain about two libraries that define the same name: the first one wins, and
the code of the second one calls a function that it does not know.
"""
import collections, subprocess, sys

found = collections.defaultdict(set)
for library in sys.argv[1:]:
    names = subprocess.run(["nm", "--defined-only", "-g", "-P", library], capture_output=True,
                           text=True, check=True).stdout
    for line in names.splitlines():
        words = line.split()
        if len(words) > 1 and words[1] in "TDBRVWC":
            found[words[0]].add(library)

twins = {name: places for name, places in found.items() if len(places) > 1}
for name, places in sorted(twins.items()):
    print(f"{name} is defined in {' and '.join(sorted(places))}")
sys.exit(1 if twins or not found else 0)
