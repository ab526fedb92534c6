#!/usr/bin/env python3
"""Measures durable timers and prints tables; see bench/durable.c.

Compares Belfry's engine with SQLite (WAL, synchronous=FULL, an index in the order of delivery) and
with an upper limit: the same rows in a bare log, with a hash table in memory. Payloads have 100
bytes; every commit is synced. Pending timers are due at random over 30 days.

The data is in a temporary folder under --dir or $TMPDIR, which is removed at the end.
"""
import argparse
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

import common

ENGINES = ("belfry", "sqlite", "log")
ROW_BYTES = 24 + 143  # a row of a timer: key, and record with a generated id and the payload


def parse():
    parser = argparse.ArgumentParser(prog="script/bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["engine"])
    parser.add_argument("--quick", action="store_true", help="a million timers, short bursts")
    parser.add_argument("--long", action="store_true", help="five minutes of sustained load")
    parser.add_argument("--hundred-million", action="store_true",
                        help="load a hundred million timers; needs 40 GB of disk and an hour")
    parser.add_argument("--pending", type=int, metavar="N",
                        help="number of pending timers (default 10,000,000)")
    parser.add_argument("--dir", metavar="DIR", help="folder on a disk (default $TMPDIR)")
    parser.add_argument("--json", metavar="FILE", help="also write the rows to a file")
    parser.add_argument("--programs", required=True, help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.pending = args.pending or (1000000 if args.quick else 10000000)
    return args


class Bench:
    """Runs the programs, each in its own folder, and keeps their output."""

    def __init__(self, args, folder):
        self.args, self.folder, self.rows = args, pathlib.Path(folder), []
        self.runner = common.Runner(args.programs)
        self.bursts = ["bursts=5", "tenths=20"]
        if args.quick:
            self.bursts = ["bursts=3", "tenths=5", "rest=100"]

    def run(self, engine, name, words, pending):
        folder = self.folder / f"{engine}-{name}"
        folder.mkdir(exist_ok=True)
        self.runner.progress(f"{engine}: {' '.join(w for w in words if '=' not in w)}, "
                             f"{pending:,} pending")
        lines, _ = self.runner.start(f"durable_{engine}", [f"folder={folder}", *words])
        self.rows += [line | {"pending": pending, "name": name} for line in lines]
        return folder

    def remove(self, engine, name):
        shutil.rmtree(self.folder / f"{engine}-{name}", ignore_errors=True)

    def find(self, **wanted):
        for row in self.rows:
            if all(row.get(k) == v for k, v in wanted.items()):
                return row
        return None

    def kill(self, engine, name, pending, step):
        """Starts a step that does not end, kills it with signal 9, and opens its folder."""
        folder = self.folder / f"{engine}-{name}"
        program = str(self.runner.folder / f"durable_{engine}")
        process = subprocess.Popen([program, f"folder={folder}", "tenths=30", "batch=100", step],
                                   stdout=subprocess.PIPE, text=True)
        process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.run(engine, name, ["open"], pending)
        self.rows[-1] |= {"killed": step, "disk_bytes": common.disk_bytes(folder)}


def measure_empty(bench, lives):
    for engine in ENGINES:
        bench.run(engine, "empty", [*bench.bursts, *lives], 0)
        bench.remove(engine, "empty")
        bench.run(engine, "named", [*bench.bursts, "ids", "batch=100", "life"], 0)
        bench.remove(engine, "named")


def measure(bench):
    args, pending = bench.args, bench.args.pending
    inserts = [w for b in (1, 10, 100, 1000) for w in (f"batch={b}", "insert")]
    lives = ["batch=100", "life"] + ([] if args.quick else ["batch=1000", "life"])
    load = [f"pending={pending}", "load"]
    seconds = 10 if args.quick else 300 if args.long else 60
    bench.runner.total = 16
    measure_empty(bench, lives)
    bench.run("log", "full", [*load, *bench.bursts, *lives, *inserts], pending)
    bench.remove("log", "full")
    for engine in ("sqlite", "belfry"):
        bench.run(engine, "full", load, pending)
        bench.kill(engine, "full", pending, "linger")
        tenths = seconds * 10 if engine == "belfry" else 50
        bench.run(engine, "full", [f"tenths={tenths}", f"pending={pending}", "batch=100",
                                   "sustain", "rotate"], pending)
        bench.run(engine, "full", [*bench.bursts, *lives, *inserts], pending)
        if engine == "belfry":
            bench.kill(engine, "full", pending, "flood")
        bench.remove(engine, "full")


def median(row):
    return statistics.median(row["rates"]) if row else None


def show(value, form="{:,.0f}"):
    return form.format(value) if value is not None else "-"


def best(row):
    return max(row["rates"]) if row else None


def divided(one, other):
    return one / other if one and other else None


def print_bursts(bench):
    pending = bench.args.pending
    print(f"\nBursts of {int(bench.bursts[1][7:]) / 10:g} s, operations per second: the median of "
          f"{bench.bursts[0][7:]}, the ratios to the others, and the ratios of the best bursts;"
          "\nCPU in us per operation, of the calling thread")
    print(f"  {'':<36}{'belfry':>10}{'sqlite':>9}{'log':>10}{'x sqlite':>10}{'x log':>7}"
          f"{'best x sqlite':>15}{'x log':>7}{'CPU':>7}{'of log':>7}")
    shown = [("life", b, n, False) for b in (100, 1000) for n in (0, pending)]
    shown += [("life", 100, 0, True)]
    shown += [("insert", b, pending, False) for b in (1, 10, 100, 1000)]
    for step, batch, count, ids in shown:
        rows = {e: bench.find(engine=e, step=step, batch=batch, pending=count, ids=ids)
                for e in ENGINES}
        if not rows["belfry"]:
            continue
        usual = [median(rows[e]) for e in ENGINES]
        most = [best(rows[e]) for e in ENGINES]
        title = f"{step} b={batch}, {count:,} pending{', own ids' if ids else ''}"
        log_cpu = rows["log"]["cpu_us"] if rows["log"] else None
        print(f"  {title:<36}{show(usual[0]):>10}{show(usual[1]):>9}{show(usual[2]):>10}"
              f"{show(divided(usual[0], usual[1]), '{:.1f}'):>10}"
              f"{show(divided(usual[0], usual[2]), '{:.2f}'):>7}"
              f"{show(divided(most[0], most[1]), '{:.1f}'):>15}"
              f"{show(divided(most[0], most[2]), '{:.2f}'):>7}"
              f"{rows['belfry']['cpu_us']:>7.1f}{show(log_cpu, '{:.1f}'):>7}")
    print("  wanted for life b=100: 5 x sqlite, 0.7 x log")


def print_steps(bench):
    print("\nA lifecycle b=100, elapsed us per operation")
    print(f"  {'':<38}{'schedule':>10}{'claim':>10}{'ack':>10}")
    for count in (0, bench.args.pending):
        for engine in ENGINES:
            row = bench.find(engine=engine, step="life", batch=100, pending=count, ids=False)
            if row:
                print(f"  {f'{engine}, {count:,} pending':<38}{row['schedule_us']:>10.2f}"
                      f"{row['claim_us']:>10.2f}{row['ack_us']:>10.2f}")


def print_sustained(bench):
    print("\nSustained load, b=100: lifecycles per second, commits in ms")
    print(f"  {'':<38}{'per s':>10}{'p50':>8}{'p99':>8}{'longest':>9}{'delayed':>9}"
          f"{'MB anon':>9}")
    titles = {"sustain": "due now", "rotate": "through the tree", "load": "load, b=1000"}
    for step, title in titles.items():
        for engine in ("belfry", "sqlite"):
            row = bench.find(engine=engine, step=step)
            if not row or (step == "load" and engine == "sqlite"):
                continue
            print(f"  {f'{title}, {engine}':<38}{row['rate']:>10,.0f}{row['p50_ms']:>8.2f}"
                  f"{row['p99_ms']:>8.2f}{row['max_ms']:>9.1f}{row['refusals']:>9.0f}"
                  f"{row['anonymous_bytes'] / 1e6:>9.0f}")
    print("  wanted: 60,000 per second, p99 < 50, longest <= 500")


def print_open(bench):
    print("\nOpened after kill -9")
    print(f"  {'':<38}{'first claim':>14}{'MB anon':>10}{'MB disk':>10}{'x live':>8}")
    for row in bench.rows:
        if row["step"] != "open":
            continue
        has_load_only = row["killed"] == "linger"  # after a flood the number of timers is unknown
        live = row["pending"] * ROW_BYTES if has_load_only else None
        first = f"{row['claim_ms']:,.1f} ms"
        during = "lifecycles" if has_load_only else "a flood"
        title = f"{row['engine']}, in the middle of {during}"
        print(f"  {title:<38}{first:>14}"
              f"{row['anonymous_bytes'] / 1e6:>10,.0f}{row['disk_bytes'] / 1e6:>10,.0f}"
              f"{show(divided(row['disk_bytes'], live), '{:.2f}'):>8}")
    print(f"  {bench.args.pending:,} pending. Live: {ROW_BYTES} bytes per timer, key and record. "
          f"Peak memory during the load: {show_load(bench)}")
    print("  wanted: 1 s, 400 MB, 2.5 x")


def show_load(bench):
    row = bench.find(engine="belfry", step="load")
    return f"{row['anonymous_bytes_max'] / 1e6:,.0f} MB anon" if row else "-"


def measure_hundred_million(bench):
    """Runs the same bursts with a million and with a hundred million pending timers."""
    bench.runner.total = 6
    words = [*bench.bursts, "batch=100", "life", "insert"]
    for name, pending in (("one", 1000000), ("hundred", 100000000)):
        # In due order, which is how they would come in practice; a random load takes half a day.
        bench.run("belfry", name, [f"pending={pending}", "sorted", "load"], pending)
        bench.run("belfry", name, words, pending)
        bench.kill("belfry", name, pending, "linger")
        bench.remove("belfry", name)


def print_hundred_million(bench):
    print("\nA hundred million pending timers compared with one million")
    print(f"  {'':<38}{'1 M':>12}{'100 M':>12}{'x':>8}  wanted")
    for step, field, title, wanted in (
            ("life", None, "lifecycles per second, b=100", "within 3 x"),
            ("insert", None, "inserts per second, b=100", "within 3 x"),
            ("life", "schedule_us", "schedule, us", "within 3 x"),
            ("life", "claim_us", "claim, us", "within 3 x"),
            ("open", "claim_ms", "first claim after kill -9, ms", "3,000"),
            ("open", "anonymous_bytes", "MB anon after that", ""),
            ("open", "disk_bytes", "MB of disk", ""),
            ("load", "rate", "load, timers per second", "")):
        rows = [bench.find(step=step, name=name, batch=b) for name in ("one", "hundred")
                for b in (100,)]
        if not all(rows):
            continue
        one, hundred = (r[field] if field else median(r) for r in rows)
        if field and field.endswith("bytes"):
            one, hundred = one / 1e6, hundred / 1e6
        print(f"  {title:<38}{one:>12,.1f}{hundred:>12,.1f}{hundred / one:>8.2f}  {wanted}")


def main():
    args = parse()
    parent = args.dir or tempfile.gettempdir()
    common.refuse_memory(parent)
    needed = (60 if args.hundred_million else args.pending * 700 / 1e9 + 2) * 1e9
    if shutil.disk_usage(parent).free < needed:
        sys.exit(f"bench: {parent} has less than {needed / 1e9:.0f} GB free")
    common.print_machine(args.programs)
    print(f"disk      {parent}, {common.file_system(parent)}")
    with tempfile.TemporaryDirectory(prefix="belfry-bench-", dir=parent) as folder:
        bench = Bench(args, folder)
        if args.hundred_million:
            measure_hundred_million(bench)
        else:
            measure(bench)
    bench.runner.end()
    if args.hundred_million:
        print_hundred_million(bench)
    else:
        print_bursts(bench)
        print_steps(bench)
        print_sustained(bench)
        print_open(bench)
    if args.json:
        common.write_rows(args.json, bench.rows)
    sys.exit(1 if bench.runner.failed else 0)


if __name__ == "__main__":
    main()
