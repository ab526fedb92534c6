#!/usr/bin/env python3
"""Measures timers on threads and in real time and prints tables.

    local     a worker's own timers compared with the bare wheel; see bench/threads.c
    two       two workers compared with two processes with a wheel each
    remote    cancelling and scheduling timers of another thread
    lateness  how long after its due time a timer rings; see bench/lateness.h
    idle      how often a process wakes whose only timer is due in an hour

Runs all sections unless some are named. Every measurement is a separate process. Runs
alternate between the engines, so that noise of the machine affects all of them, and the
median of the runs is used. The machine should be idle otherwise.
"""
import argparse
import statistics
import sys
import time

import common

ENGINES = ["belfry", "libuv", "libev", "timerfd", "heapthread"]
LATENESS_LEGEND = """\
us from the due time of a timer to its callback, by CLOCK_MONOTONIC; early: rang before; wakeups:
voluntary context switches, and CPU time, of all threads of the engine. The kernel gives a sleep
50 us of slack by default; a timerfd has none. timerfd: one per timer, in epoll.
heapthread: a binary heap, a mutex, and a thread on a condition variable.
libuv counts milliseconds: lateness is measured from its due time, rounded up; its callers wait half
a millisecond more on average. libev counts nanoseconds, but with epoll, which servers use and which
is measured, it sleeps whole milliseconds; with select it is about as late as heapthread."""


def gather(runner, prefix, arguments, args):
    """Returns the results of all engines whose program exists: {engine: [a dictionary per run]}."""
    engines = [e for e in (args.engine or ENGINES) if runner.has(f"{prefix}_{e}")]
    runs = args.runs or (1 if args.quick else 3)
    runner.done, runner.total = 0, runs * len(engines)
    results = {}
    for number in range(runs):
        for engine in engines:
            runner.progress(f"{' '.join([prefix, *arguments])} {engine}")
            program = f"{prefix}_{engine}"
            lines, ok = runner.start(program, [*arguments, "--seed", str(number + 1)])
            if ok:
                results.setdefault(engine, []).extend(lines)
    runner.end()
    return results


def row_of(workload, engine, lines, names):
    """Returns one row of the file: the medians of the runs."""
    row = {"workload": workload, "engine": engine, "version": lines[0]["version"],
           "runs": len(lines)}
    return row | {name: round(statistics.median(x[name] for x in lines), 2) for name in names}


def print_rows(rows, columns):
    """Prints a table; columns are (title, name, format)."""
    print(f"  {'engine':<22}" + "".join(f"{title:>10}" for title, _, _ in columns))
    for row in rows:
        title = f"{row['engine']} {row['version']}".removesuffix(" own")
        print(f"  {title:<22}" + "".join(f"{row[name]:>10{form}}" for _, name, form in columns))


def bench_lateness(runner, args):
    timers, seconds = (500, 1) if args.quick else (2_000, 4)
    arguments = ["--workload", "late", "--n", str(timers), "--window-ms", str(seconds * 1000)]
    rows = []
    for engine, lines in gather(runner, "lateness", arguments, args).items():
        row = row_of("lateness", engine, lines,
                     ["timers", "p50_us", "p99_us", "max_us", "wakeups", "cpu_ms"])
        row["early"] = sum(x["early"] for x in lines)  # one would be too many
        rows.append(row)
    print(f"Lateness: {timers:,} timers, spread over {seconds} s")
    print_rows(rows, [("p50", "p50_us", ",.0f"), ("p99", "p99_us", ",.0f"),
                      ("max", "max_us", ",.0f"), ("early", "early", ","),
                      ("wakeups", "wakeups", ",.0f"), ("CPU ms", "cpu_ms", ",.1f")])
    print(f"{LATENESS_LEGEND}\n")
    for row in rows:
        if row["engine"] == "belfry" and row["early"] > 0:
            print(f"belfry must ring none early: MISSED by {row['early']}\n")
            runner.failed = True
    return rows


def bench_idle(runner, args):
    seconds = 1 if args.quick else 3
    arguments = ["--workload", "idle", "--window-ms", str(seconds * 1000)]
    rows = [row_of("idle", engine, lines, ["seconds", "wakeups", "cpu_ms"])
            for engine, lines in gather(runner, "lateness", arguments, args).items()]
    print(f"Idle: one timer, due in an hour; wakeups in {seconds} s")
    print_rows(rows, [("wakeups", "wakeups", ",.0f"), ("CPU ms", "cpu_ms", ",.1f")])
    print()
    return rows


def run_threads(runner, args, cases):
    """Returns the medians of bench/threads for each (workload, mode): {case: {name: value}}."""
    runs = args.runs or (1 if args.quick else 5)
    ops = "500000" if args.quick else "4000000"
    runner.done, runner.total = 0, runs * len(cases)
    lines = {}
    for number in range(runs):
        for workload, mode in cases:
            runner.progress(f"threads {workload} {mode}")
            got, ok = runner.start("threads", ["--workload", workload, "--mode", mode, "--ops", ops,
                                               "--seed", str(number + 1)])
            if ok:
                lines.setdefault((workload, mode), []).extend(got)
    runner.end()
    return {case: {name: statistics.median(x[name] for x in found)
                   for name in found[0] if name not in ("workload", "mode")}
            for case, found in lines.items()}


def thread_rows(found):
    return [{"workload": workload, "engine": mode} | {k: round(v, 2) for k, v in values.items()}
            for (workload, mode), values in found.items()]


def bench_local(runner, args):
    cases = [(w, m) for w in ("pair", "churn") for m in ("wheel", "runtime")]
    found = run_threads(runner, args, cases)
    print("Local: schedule + cancel on the owning thread, 1,000,000 timers pending, ns for both")
    print(f"  {'':<34}{'wheel':>10}{'runtime':>10}{'more':>10}")
    for workload, title in (("pair", "cancels the one 64 before"), ("churn", "cancels any of all")):
        bare, own = (found[(workload, mode)]["ns_per_op"] for mode in ("wheel", "runtime"))
        print(f"  {title:<34}{bare:>10.1f}{own:>10.1f}{own - bare:>10.1f}")
    print()
    return thread_rows(found)


def bench_two(runner, args):
    cases = [(w, m) for w in ("pair", "two") for m in ("wheel", "runtime")]
    found = run_threads(runner, args, cases)
    print("Two: the first of these on one core and on two at once, M/s in total")
    print(f"  {'':<34}{'one':>10}{'two':>10}{'two/one':>10}")
    gains, rates = [], []
    for mode, title in (("wheel", "processes with a bare wheel"), ("runtime", "workers of a runtime")):
        one, two = (found[(w, mode)]["ops_per_s"] / 1e6 for w in ("pair", "two"))
        gains.append(two / one)
        rates.append(two)
        print(f"  {title:<34}{one:>10.1f}{two:>10.1f}{two / one:>9.2f}x")
    print(f"  workers / processes: {rates[1] / rates[0]:.2f}x the rate, "
          f"{gains[1] / gains[0]:.2f}x the gain from the second core")
    print()
    return thread_rows(found)


def bench_remote(runner, args):
    found = run_threads(runner, args, [("cancel", "runtime"), ("schedule", "runtime")])
    cancel, schedule = found[("cancel", "runtime")], found[("schedule", "runtime")]
    print("Remote: timers of another worker, which polls")
    print(f"  cancel, one at a time                      {cancel['ns_per_op']:>8.1f} ns")
    print(f"  schedule, one producer                     {schedule['ops_per_s'] / 1e6:>8.1f} M/s"
          f"   taken in at {schedule['taken_per_s'] / 1e6:.1f} M/s")
    print()
    return thread_rows(found)


# Each section measures, prints its table and returns the rows for the file.
SECTIONS = {"local": bench_local, "two": bench_two, "remote": bench_remote,
            "lateness": bench_lateness, "idle": bench_idle}


def parse():
    parser = argparse.ArgumentParser(prog="script/bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["runtime"])
    parser.add_argument("section", nargs="*", metavar="SECTION",
                        help=f"sections to run, of {', '.join(SECTIONS)}")
    parser.add_argument("--quick", action="store_true", help="shorter measurements, one run each")
    parser.add_argument("--json", metavar="FILE", help="also write the rows to a file")
    parser.add_argument("--engine", action="append", choices=ENGINES, metavar="NAME",
                        help="engine to measure; may be repeated (default: all)")
    parser.add_argument("--runs", type=int, metavar="R")
    parser.add_argument("--programs", required=True, help=argparse.SUPPRESS)
    args = parser.parse_intermixed_args()
    for name in args.section:
        if name not in SECTIONS:
            parser.error(f"no section {name}; there are {', '.join(SECTIONS)}")
    return args


def main():
    args = parse()
    started = time.monotonic()
    runner = common.Runner(args.programs)
    common.print_machine(args.programs)
    print()
    rows = []
    for name in args.section or SECTIONS:
        rows += SECTIONS[name](runner, args)
    if args.json:
        common.write_rows(args.json, rows)
    print(f"took {time.monotonic() - started:.0f} s")
    sys.exit(1 if runner.failed else 0)


if __name__ == "__main__":
    main()
