#!/usr/bin/env python3
"""Measures costs that must not grow with the work beside them, and prints them; see bench/growth.c.

CPU time, in memory and in virtual time: ratios tell, as a row is compared with the first of its
section. script/bench instructions has counts of some.
"""
import argparse
import pathlib

import common

SECTIONS = (
    ("due", "us", "a timer for a claim that waits, all topics due at once",
     [f"topics={n}" for n in (100, 1000, 8000)]),
    ("schedule", "us", "schedule, 100 in a turn", [f"topics={n}" for n in (1, 100, 1000, 8000)]),
    ("agenda", "turn_max_ms", "the longest turn of an AGENDA of a day",
     ["plans=1000", "plans=100000", "timers=100000", "timers=1000000"]),
    ("late", "late_ms", "how late a plan rings beside ready timers", ["ready=0", "ready=10000"]),
)


def parse():
    parser = argparse.ArgumentParser(prog="script/bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["growth"])
    parser.add_argument("--json", metavar="FILE", help="also write the rows to a file")
    parser.add_argument("--programs", required=True, type=pathlib.Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    args = parse()
    runner, rows = common.Runner(args.programs), []
    for section, unit, title, arguments in SECTIONS:
        print(title)
        first = None
        for argument in arguments:
            lines, is_good = runner.start("growth", [section, argument])
            if not is_good:
                continue
            rows += lines
            value = lines[0][unit]
            first = first or value
            ratio = f"{value / first:>8.2f}x" if first else ""
            error = f"  error {lines[0]['err']}" if lines[0].get("err") else ""
            print(f"  {argument:<20}{value:>12,.2f} {unit.removeprefix('turn_max_'):<8}{ratio}{error}")
    if args.json:
        common.write_rows(args.json, rows)


main()
