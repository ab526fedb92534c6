#!/usr/bin/env python3
"""Runs the timer benchmarks and prints their tables; see bench/engine.h.

    timers    ns per operation and bytes per timer, Belfry compared with its peers
    pauses    the longest single call
    memory    memory after ten million timers were cancelled

Every measurement is a separate process. Runs alternate between the engines, so that
noise of the machine affects all of them, and the median of the runs is used.
"""
import argparse
import statistics
import sys
import time

import common
from common import print_versions

LIBRARIES = ["libev", "libevent", "libuv"]
PEERS = LIBRARIES + ["lazyheap", "heap4"]
ENGINES = ["belfry"] + PEERS
SIZES_QUICK = [1_000, 100_000, 1_000_000]
SIZES_FULL = SIZES_QUICK + [10_000_000]
COLUMNS = ["W1s", "W1r", "W1f", "W2c", "W2", "W2h", "W2b", "W3", "W4f", "W5"]
# The workloads of each column. W2 has two ways to restart; the faster one is used.
RUNS_OF = {"W1s": ["W1"], "W1r": ["W1r"], "W1f": ["W1"], "W5": ["W1"], "W2": ["W2", "W2pair"],
           "W2c": ["W2c"], "W2h": ["W2h"], "W2b": ["W2b"], "W3": ["W3"], "W4f": ["W4"]}
ORDER_TIMERS = 5_000
SLOW_S = 20  # a run that takes longer than this is not repeated
PAUSE_US_MAX = 200
GROWTH_MAX = 10

LEGEND = """\
W1s schedule, due over 1 ms..1 h; W1r W1s in reserved memory, where an engine can reserve it; W1f
fire them, jumping from one due millisecond to the next; W2 restart, due in 25..35 s, 1 M per
virtual second, what the caller keeps for the timer (a handle, or the library's struct) is at hand;
W2c W2 with nothing prefetched; W2h W2, and engines with handles are told 16 restarts ahead which
timer comes; W2b W2 in batches of 64; W3 half schedule, a quarter cancel, a quarter fire; W4f fire
timers due on 100 milliseconds; W5 bytes per pending timer, with a library's struct, without a
handle. ns of CPU time per operation, with the harness. libuv counts milliseconds, libev and
libevent microseconds, the others nanoseconds."""


class Runner(common.Runner):
    """Runs the programs of bench/engine.h, and counts errors in the order of firing."""

    def __init__(self, folder):
        super().__init__(folder)
        self.violations = {}

    def has(self, engine):
        return super().has(f"timers_{engine}")

    def run(self, engine, workload, timers, options=()):
        """Returns the results of one process, one dictionary per line; [] if it failed."""
        self.progress(f"{workload} N={timers:,} {engine}")
        lines, ok = self.start(f"timers_{engine}",
                               ["--workload", workload, "--n", str(timers), *options])
        for line in lines:
            if "engine" in line:
                self.note(engine, line)
        return [x for x in lines if "engine" not in x] if ok else []

    def note(self, engine, audit):
        self.versions[engine] = audit["version"]
        sums = self.violations.setdefault(engine, dict.fromkeys(
            ["early", "late", "inversions", "ties", "lost"], 0))
        for name in sums:
            sums[name] += audit[name]


class Timers:
    """The samples of the timers table: (column, size, engine) -> [(ns, bytes), ...]."""

    def __init__(self):
        self.samples, self.slow = {}, set()

    def add(self, column, size, engine, line):
        key = (column, size, engine)
        self.samples.setdefault(key, []).append((line["ns_per_op"], line["bytes_per_timer"]))

    def get(self, column, size, engine):
        """Returns the median run, of the faster way if there are two ways to restart."""
        best = None
        for name in ([column, "W2pair"] if column == "W2" else [column]):
            runs = self.samples.get((name, size, engine))
            if runs:
                ns = statistics.median(r[0] for r in runs)
                kept = statistics.median(r[1] for r in runs)
                if best is None or ns < best[0]:
                    best = (ns, kept)
        return best

    def value(self, column, size, engine):
        """Returns the value that a column compares: bytes for W5, ns for the others."""
        got = self.get(column, size, engine)
        return None if got is None else got[1 if column == "W5" else 0]

    def slower_way(self, size, engine):
        """Returns the slower of the two ways to restart, at this size or, for the largest, at a
        smaller one; None if it is not known yet."""
        for known in [size] + (SIZES_QUICK[::-1] if size > SIZES_QUICK[-1] else []):
            ways = [self.samples.get((w, known, engine)) for w in ("W2", "W2pair")]
            if None not in ways:
                return "W2" if ways[0][0][0] > ways[1][0][0] else "W2pair"
        return None

    def is_single(self, column, size, engine):
        """Returns whether a measurement was too slow to be repeated."""
        return any((w, size, engine) in self.slow for w in RUNS_OF[column])


def plan_timers(runner, args):
    """Yields all runs in order: (run number, size, workload, engine)."""
    sizes = args.n or (SIZES_QUICK if args.quick else SIZES_FULL)
    columns = args.workload or COLUMNS
    engines = [e for e in (args.engine or ENGINES) if runner.has(e)]
    workloads = list(dict.fromkeys(w for c in columns for w in RUNS_OF[c]))
    plan = []
    for number in range(args.runs or (1 if args.quick else 3)):
        for size in sizes:
            for workload in workloads:
                for engine in engines + ["null"]:
                    if workload == "W2b" and engine != "belfry":
                        continue
                    if workload == "W2pair" and engine == "belfry" and args.quick:
                        continue  # it re-arms
                    plan.append((number, size, workload, engine))
    return plan, sizes, columns, engines


def bench_timers(runner, args):
    plan, sizes, columns, engines = plan_timers(runner, args)
    runner.total = len(plan) + len(engines)
    table = Timers()
    options = ["--quick"] if args.quick else []
    for engine in engines:
        runner.run(engine, "order", ORDER_TIMERS)
    order, runner.violations = runner.violations, {}
    for number, size, workload, engine in plan:
        is_known = workload in ("W2", "W2pair") and table.slower_way(size, engine) == workload
        if is_known or (workload, size, engine) in table.slow:
            runner.done += 1
            continue
        started = time.monotonic()
        steps = ["--steps"] if args.steps and workload == "W1" else []
        seed = ["--seed", str(number + 1)]
        for line in runner.run(engine, workload, size, options + steps + seed):
            table.add(line["workload"], size, engine, line)
        if number < plan[-1][0] and time.monotonic() - started > SLOW_S:
            table.slow.add((workload, size, engine))
    runner.end()
    print_versions(runner)
    for size in sizes:
        print_size(table, size, columns, engines)
    print(LEGEND)
    if table.slow:
        print(f"* a single run, because it took more than {SLOW_S} s.")
    if args.steps:
        print("W1f here: in steps of 1 ms.")
    print_order(order, runner.violations, engines)
    if args.json:
        write_json(args.json, table, sizes, columns, engines)


def cell(value, is_single=False):
    if value is None:
        return "-"
    return (f"{value:.1f}" if value < 1000 else f"{value:,.0f}") + ("*" if is_single else "")


def print_size(table, size, columns, engines):
    print(f"N = {size:,}")
    head = columns + (["W2 bytes"] if "W2" in columns else [])
    print(f"  {'engine':<22}" + "".join(f"{c:>11}" for c in head))
    for engine in engines + ["null"]:
        values = [table.value(c, size, engine) for c in columns]
        if "W2" in columns:
            got = table.get("W2", size, engine)
            values.append(got and got[1])
        name = "(harness alone)" if engine == "null" else engine
        if engine == "null":
            values = [None if c in ("W5", "W2 bytes") else v for c, v in zip(head, values)]
        singles = [c in RUNS_OF and table.is_single(c, size, engine) for c in head]
        print(f"  {name:<22}" + "".join(f"{cell(*x):>11}" for x in zip(values, singles)))
    print_ratios(table, size, columns, engines)
    print()


def best_of(table, column, size, engines):
    """Returns the best engine of a column and its value; (None, "-") without any."""
    # Batches have no peer: they compare with the peers' single restarts.
    column = "W2" if column == "W2b" else column
    values = [(table.value(column, size, e), e) for e in engines]
    return min((v for v in values if v[0] is not None), default=(None, "-"))


def print_ratios(table, size, columns, engines):
    """Returns how many times better Belfry is than the best peer; below 1 if it is worse."""
    for name, peers in (("peer", PEERS), ("library", LIBRARIES)):
        bests = [best_of(table, c, size, [e for e in peers if e in engines]) for c in columns]
        owns = [table.value(c, size, "belfry") for c in columns]
        ratios = [f"{b[0] / own:.2f}x" if b[0] and own else "-" for b, own in zip(bests, owns)]
        title = f"best {name} / belfry"
        print(f"  {title:<22}" + "".join(f"{r:>11}" for r in ratios))
        print(f"  {'':<22}" + "".join(f"{b[1]:>11}" for b in bests))


def print_order(order, violations, engines):
    print("\nOrder: timers early, late, out of order, equal deadlines not in the order of "
          "scheduling, lost.")
    print(f"  {'engine':<10}{'early':>8}{'late':>8}{'inverted':>10}{'ties':>10}{'lost':>8}"
          f"   ties of the mixed test")
    for engine in engines:
        v = violations.get(engine) or dict.fromkeys(["early", "late", "inversions", "ties",
                                                     "lost"], 0)
        mixed = order.get(engine, {})
        others = sum(n for name, n in mixed.items() if name != "ties")
        text = f"{mixed.get('ties', '-')}" + (f" and {others} others" if others else "")
        print(f"  {engine:<10}{v['early']:>8}{v['late']:>8}{v['inversions']:>10}"
              f"{v['ties']:>10}{v['lost']:>8}   {text}")


def write_json(path, table, sizes, columns, engines):
    rows = []
    for size in sizes:
        for column in columns:
            for engine in engines:
                got = table.get(column, size, engine)
                if got is None:
                    continue
                ns = None if column == "W5" else round(got[0], 2)
                rows.append({"workload": column, "n": size, "engine": engine, "ns_per_op": ns,
                             "bytes_per_timer": round(got[1], 1)})
    common.write_rows(path, rows)


def bench_pauses(runner, args):
    """Measures Belfry several times, of which the best run is used, and the peers once."""
    size = (args.n or [10_000_000])[0]
    engines = [e for e in (args.engine or ["belfry", "heap4", "lazyheap", "libev"])
               if runner.has(e)]
    runs = {e: (args.runs or 5) if e == "belfry" or args.engine else 1 for e in engines}
    runner.total = sum(runs.values())
    best = {}
    for number in range(max(runs.values(), default=0)):
        for engine in (e for e in engines if number < runs[e]):
            for line in runner.run(engine, "pauses", size, ["--seed", str(number + 1)]):
                key = (engine, line["phase"])
                kept = best.setdefault(key, line)
                for name in ("tick_us", "cpu_us", "faults"):
                    kept[name] = min(kept[name], line[name])
                kept["touched_max"] = max(kept["touched_max"], line["touched_max"])
    runner.end()
    print_versions(runner)
    print(f"Longest single call at N = {size:,}, memory reserved, in us; belfry: best of "
          f"{runs.get('belfry', 0)} runs.")
    print("A call of a library fires all due timers; belfry and the heaps pop one timer per call.")
    print(f"  {'engine':<10}{'phase':<14}{'by the clock':>14}{'by CPU time':>14}{'faults':>8}"
          f"{'touched':>10}")
    for (engine, phase), line in best.items():
        touched = line["touched_max"] or "-"
        print(f"  {engine:<10}{phase:<14}{line['tick_us']:>14.1f}{line['cpu_us']:>14.1f}"
              f"{line['faults']:>8}{touched:>10}")
    worst = max((x["cpu_us"] for (e, _), x in best.items() if e == "belfry"), default=None)
    if worst is not None:
        verdict = "reached" if worst <= PAUSE_US_MAX else "MISSED"
        print(f"belfry's longest call: {worst:.1f} us; must be <= {PAUSE_US_MAX} us: {verdict}")
        runner.failed |= worst > PAUSE_US_MAX
    if args.json:
        common.write_rows(args.json, [{"workload": "pauses", "n": size, **line, "engine": engine}
                                      for (engine, _), line in best.items()])


def bench_memory(runner, args):
    size = (args.n or [10_000_000])[0]
    engines = [e for e in (args.engine or ["belfry"]) if runner.has(e)]
    runner.total = len(engines)
    rows = [(e, line) for e in engines for line in runner.run(e, "memory", size)]
    runner.end()
    print_versions(runner)
    print(f"{size:,} timers in 30..365 days, all cancelled, then as many within the hour; "
          "resident bytes a timer:")
    print(f"  {'engine':<10}{'first':>10}{'cancelled':>12}{'second':>10}{'growth':>10}")
    for engine, line in rows:
        print(f"  {engine:<10}{line['first']:>10.1f}{line['empty']:>12.1f}"
              f"{line['second']:>10.1f}{line['growth']:>9.1f}%")
        if engine == "belfry":
            verdict = "reached" if line["growth"] <= GROWTH_MAX else "MISSED"
            print(f"belfry's growth must be <= {GROWTH_MAX} %: {verdict}")
            runner.failed |= line["growth"] > GROWTH_MAX
    if args.json:
        common.write_rows(args.json, [{"workload": "memory", "n": size, **line, "engine": engine}
                                      for engine, line in rows])


def parse():
    parser = argparse.ArgumentParser(prog="script/bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["timers", "pauses", "memory"])
    parser.add_argument("--quick", action="store_true",
                        help="up to 1 M timers, one run each, in a minute")
    parser.add_argument("--json", metavar="FILE", help="also write the rows to a file")
    parser.add_argument("--engine", action="append", choices=ENGINES, metavar="NAME",
                        help="engine to measure; repeatable, like --workload and --n (default: all)")
    parser.add_argument("--workload", action="append", choices=COLUMNS, metavar="W")
    parser.add_argument("--n", action="append", type=int, metavar="N")
    parser.add_argument("--runs", type=int, metavar="R")
    parser.add_argument("--steps", action="store_true", help="W1 fires in steps of 1 ms")
    parser.add_argument("--programs", required=True, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    args = parse()
    started = time.monotonic()
    runner = Runner(args.programs)
    common.print_machine(args.programs)
    run = {"timers": bench_timers, "pauses": bench_pauses, "memory": bench_memory}[args.what]
    run(runner, args)
    print(f"\ntook {time.monotonic() - started:.0f} s")
    sys.exit(1 if runner.failed else 0)


if __name__ == "__main__":
    main()
