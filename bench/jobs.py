#!/usr/bin/env python3
"""Measures jobs, shares and limits, and prints a table beside the targets; see bench/jobs.c and
bench/turns.c.

Beside the engine, in the same run: a model that rescores every queued task for each pick, and the
flows of bullmq on a redis-server of its own, if npm can install bullmq.
"""
import argparse
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import common

QUEUED = (1000, 10000, 100000, 1000000)


def parse():
    parser = argparse.ArgumentParser(prog="script/bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["jobs"])
    parser.add_argument("--quick", action="store_true", help="up to 100,000 queued tasks")
    parser.add_argument("--dir", metavar="DIR", help="folder on a disk (default $TMPDIR)")
    parser.add_argument("--json", metavar="FILE", help="also write the rows to a file")
    parser.add_argument("--programs", required=True, help=argparse.SUPPRESS)
    return parser.parse_args()


class Bench:
    def __init__(self, args):
        self.args, self.rows, self.skipped = args, [], []
        self.runner = common.Runner(args.programs)

    def run(self, section, *words):
        self.runner.progress(" ".join([section, *words]))
        lines, is_good = self.runner.start("jobs", [section, *words])
        self.rows += lines
        if not is_good:
            self.skipped.append(f"{section} {' '.join(words)}: failed")
        return lines[0] if lines else {}

    def find(self, section, **wanted):
        for row in self.rows:
            if row["section"] == section and all(row.get(k) == v for k, v in wanted.items()):
                return row
        return {}


def measure(bench, folder):
    queued = [n for n in QUEUED if n <= 100000 or not bench.args.quick]
    for count in queued:
        bench.run("dispatch", f"queued={count}")
    for count in queued[:3]:
        bench.run("rescore", f"queued={count}")
    bench.run("durable", f"folder={folder}/durable")
    for is_random in "random=0", "random=1":
        bench.run("fairness", "groups=10", "unequal=0", is_random)
        bench.run("fairness", "groups=67", "unequal=0", is_random)
        bench.run("fairness", "groups=1000", "unequal=0", is_random)
        bench.run("fairness", "groups=100", "unequal=1", is_random)
    bench.run("claims")
    bench.run("parked", f"timers={100000 if bench.args.quick else 1000000}")
    bench.run("submit", "tasks=10000")
    bench.runner.progress("turns")
    lines, is_good = bench.runner.start("turns", [])
    bench.rows += lines
    if not is_good:
        bench.skipped.append("turns: failed")


# --- bullmq ---

def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port):
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return True
        except OSError:
            time.sleep(0.02)
    return False


def install_bullmq(folder):
    """Installs bullmq below the folder of the programs, once. Returns why it failed, or None."""
    if (folder / "node_modules" / "bullmq").exists():
        return None
    if not shutil.which("npm") or not shutil.which("node"):
        return "npm and node are not installed"
    folder.mkdir(exist_ok=True)
    done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder),
                           "bullmq", "ioredis"], capture_output=True, text=True, timeout=300)
    return None if done.returncode == 0 else "npm install bullmq failed"


def measure_bullmq(bench, folder):
    home = pathlib.Path(bench.args.programs).resolve() / "node"
    try:
        why = install_bullmq(home)
    except subprocess.TimeoutExpired:
        why = "npm install bullmq took too long"
    if why is None and not shutil.which("redis-server"):
        why = "redis-server is not installed"
    if why is not None:
        bench.skipped.append(f"bullmq: {why}")
        return
    port = free_port()
    server = subprocess.Popen(["redis-server", "--port", str(port), "--save", "", "--dir", folder,
                               "--appendonly", "no"], stdout=subprocess.DEVNULL)
    try:
        if not wait_for(port):
            bench.skipped.append("bullmq: redis-server did not start")
            return
        script = pathlib.Path(__file__).with_name("jobs_bullmq.mjs")
        shutil.copy(script, home / script.name)  # imports are looked up beside the script
        bench.runner.progress("bullmq: flows of 100 tasks")
        done = subprocess.run(["node", str(home / script.name), str(port)], capture_output=True,
                              text=True, timeout=300)
        if done.returncode != 0:
            bench.skipped.append(f"bullmq: {done.stderr.strip()[-200:]}")
            return
        bench.rows.append({"section": "bullmq", "tasks_per_second": float(done.stdout)})
    finally:
        server.terminate()
        server.wait()


# --- the table ---

def show(title, value, form, wanted="", is_good=None):
    verdict = "-" if value is None or is_good is None else "yes" if is_good(value) else "NO"
    text = "-" if value is None else form.format(value)
    print(f"  {title:<66}{text:>12}  {wanted:<22}{verdict}")


def ratio(one, other):
    return one / other if one and other else None


def print_dispatch(bench):
    rates = []
    for row in bench.rows:
        if row["section"] == "dispatch":
            rates.append(row["tasks_per_cpu_second"])
            show(f"claim and ack tasks in memory, {row['queued']:,} queued, per s",
                 row["tasks_per_second"], "{:,.0f}", ">= 150,000", lambda v: v >= 150000)
            show("  per s of CPU", row["tasks_per_cpu_second"], "{:,.0f}")
    flat = ratio(max(rates, default=0), min(rates, default=0))
    show("fastest / slowest of these, by CPU", flat, "{:.2f}", "<= 1.3", lambda v: v <= 1.3)
    for row in bench.rows:
        if row["section"] == "rescore":
            show(f"model that rescores everything, {row['queued']:,} queued, per s",
                 row["tasks_per_second"], "{:,.0f}")
    bullmq = bench.find("bullmq").get("tasks_per_second")
    show("bullmq flows of 100 tasks, 100 at a time, per s", bullmq, "{:,.0f}")


def print_fairness(bench):
    for is_random, what in (0, ""), (1, ", random times"):
        for groups in 10, 67, 1000:
            row = bench.find("fairness", groups=groups, random=is_random)
            show(f"fairness error, {groups:,} equal groups{what}", row.get("worst"), "{:.1%}",
                 "" if is_random else "<= 5 %, worst group",
                 None if is_random else lambda v: v <= 0.05)
        row = bench.find("fairness", unequal=1, random=is_random)
        show(f"fairness error, 100 groups of unequal demand{what}", row.get("error"), "{:.1%}",
             "<= 10 %", lambda v: v <= 0.1)


def print_turns(bench):
    for row in bench.rows:
        if row["section"] == "turns" and row["turns"] > 1:
            show(f"longest turn, {row['case']}, ms of CPU", row["longest_cpu_ms"], "{:.1f}",
                 "<= 10", lambda v: v <= 10)


def print_rest(bench):
    durable = bench.find("durable")
    show("durable lifecycles of tasks, b=100, per s", durable.get("tasks_per_second"), "{:,.0f}")
    show("  of those of plain timers",
         durable.get("ratio"), "{:.2f}", ">= 0.6, median", lambda v: v >= 0.6)
    print_fairness(bench)
    claims = bench.find("claims")
    show("plain claims beside limits and shares, of those without, by CPU", claims.get("ratio"),
         "{:.2f}", ">= 0.8, median", lambda v: v >= 0.8)
    show("claims of ten groups through a limited resource, of those",
         ratio(claims.get("through"), claims.get("off")), "{:.2f}")
    parked = bench.find("parked")
    title = f"{parked.get('timers', 0):,} timers of a closed resource: CPU in 10 s, ms"
    show(title, parked.get("idle_cpu_ms"), "{:.1f}", "<= 10", lambda v: v <= 10)
    show("  LIMIT CLEAR to a waiting CLAIM, p99 ms", parked.get("clear_p99_ms"), "{:.2f}",
         "<= 3", lambda v: v <= 3)
    show("submit of 10,000 tasks and 20,000 edges, ms", bench.find("submit").get("ms"), "{:.0f}",
         "<= 200", lambda v: v <= 200)
    print_turns(bench)


def main():
    args = parse()
    bench = Bench(args)
    with tempfile.TemporaryDirectory(dir=args.dir, prefix="belfry-bench-") as folder:
        common.refuse_memory(folder)
        measure(bench, folder)
        measure_bullmq(bench, folder)
    bench.runner.end()
    common.print_machine(args.programs)
    print(f"\n  {'':<66}{'measured':>12}  {'wanted':<22}met")
    print_dispatch(bench)
    print_rest(bench)
    for line in bench.skipped:
        print(f"SKIPPED {line}")
    if args.json:
        common.write_rows(args.json, bench.rows)
    sys.exit(1 if bench.runner.failed else 0)


main()
