#!/usr/bin/env python3
"""Measures plans and time zones and prints a table; see bench/plan.c.

The median of the runs counts. A scan of every minute and libical's iteration of the same
rules stand beside, where there is one.
"""
import argparse
import statistics
import sys

import common


def parse():
    parser = argparse.ArgumentParser(prog="script/bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["plan"])
    parser.add_argument("--quick", action="store_true", help="fewer operations, one run")
    parser.add_argument("--json", metavar="FILE", help="also write the rows to a file")
    parser.add_argument("--runs", type=int, metavar="R")
    parser.add_argument("--programs", required=True, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    args = parse()
    runner = common.Runner(args.programs)
    common.print_machine(args.programs)
    runs = args.runs or (1 if args.quick else 3)
    runner.total = runs
    found = {}
    for number in range(runs):
        runner.progress(f"plan, run {number + 1}")
        lines, _ = runner.start("plan", ["--quick"] if args.quick else [])
        for line in lines:
            found.setdefault((line["workload"], line["engine"]), []).append(line)
    runner.end()
    rows = []
    for lines in found.values():
        rows.append(lines[0] | {"ns_per_op": statistics.median(x["ns_per_op"] for x in lines)})
    print("\nThe next time of a plan, or one conversion, in ns")
    engines = [e for e in ("belfry", "scan", "libical") if any(r["engine"] == e for r in rows)]
    print(f"  {'':<26}" + "".join(f"{e:>14}" for e in engines))
    for name in dict.fromkeys(r["workload"] for r in rows if r["workload"] != "year"):
        cells = {r["engine"]: r["ns_per_op"] for r in rows if r["workload"] == name}
        print(f"  {name:<26}" + "".join(f"{cells[e]:>14,.0f}" if e in cells else f"{'-':>14}"
                                         for e in engines))
    for row in rows:
        if row["workload"] == "year":
            print(f"\n{row['plans']:,} plans, each advanced by a year: {row['asked']:,} times in "
                  f"{row['asked'] * row['ns_per_op'] / 1e9:.1f} s, {row['allocations']} allocations")
    if args.json:
        common.write_rows(args.json, rows)
    sys.exit(1 if runner.failed else 0)


if __name__ == "__main__":
    main()
