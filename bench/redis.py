#!/usr/bin/env python3
"""Measures timers on a redis-server beside recipes, in one client; prints a table beside the targets.

The recipes, spoken by the same C client over TCP on loopback (bench/redis.c): the one of the Python
package faststream-redis-timers, one by one, each command when the one before was answered, but
without the pauses of that package; a script that claims a hundred without tokens; and bare ZADD and
HSET. BullMQ runs in node, if npm can install it. Each pair of programs runs in turn, on an
empty server without persistence; a figure is the median over its runs, a ratio the median of the
ratios of pairs.
"""
import argparse
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import common

PATIENCE = 20


def parse():
    parser = argparse.ArgumentParser(prog="script/bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["redis"])
    parser.add_argument("--quick", action="store_true", help="fewer timers, 3 pairs instead of 5")
    parser.add_argument("--json", metavar="FILE", help="also write the rows to a file")
    parser.add_argument("--programs", required=True, help=argparse.SUPPRESS)
    return parser.parse_args()


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Server:
    """A redis-server without persistence, in a folder of its own, on loopback. A Unix socket is for
    questions about it."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="belfry-bench-")
        self.path = os.path.join(self.folder, "socket")
        self.port = free_port()
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--unixsocket", self.path, "--save", "",
             "--appendonly", "no", "--dir", self.folder],
            cwd=self.folder, stdout=subprocess.DEVNULL)
        end = time.monotonic() + PATIENCE
        while not os.path.exists(self.path):
            if time.monotonic() > end or self.process.poll() is not None:
                sys.exit("bench: redis-server does not start")
            time.sleep(0.01)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(self.path)
        self.file = self.socket.makefile("rb")

    def ask(self, *words):
        self.socket.sendall((" ".join(words) + "\r\n").encode())
        line = self.file.readline()
        if line[:1] == b"$":
            return self.file.read(int(line[1:]) + 2)[:-2].decode()
        return line[1:-2].decode()

    def info(self, section):
        lines = (line.split(":", 1) for line in self.ask("INFO", section).splitlines())
        return {line[0]: line[1] for line in lines if len(line) == 2}

    def cpu_seconds(self):
        info = self.info("cpu")
        return float(info["used_cpu_sys"]) + float(info["used_cpu_user"])

    def commands(self):
        return int(self.info("stats")["total_commands_processed"])

    def memory(self):
        return int(self.info("memory")["used_memory"])

    def stop(self):
        self.socket.close()
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Bench:
    def __init__(self, args, server):
        self.args, self.server, self.rows, self.skipped = args, server, [], []
        self.runner = common.Runner(args.programs)
        self.pairs = 3 if args.quick else 5

    def run(self, section, **options):
        """Runs the program on an empty server. Returns its figures."""
        self.server.ask("FLUSHALL")
        words = [f"{name}={value}" for name, value in options.items()]
        self.runner.progress(" ".join([section, *words]))
        before = self.server.cpu_seconds()
        lines, is_good = self.runner.start("redis", [section, f"port={self.server.port}", *words])
        if not is_good:
            self.skipped.append(f"{section} {' '.join(words)}: failed")
            return {}
        row = {**lines[0], **options, "server_cpu_s": self.server.cpu_seconds() - before}
        self.rows.append(row)
        return row

    def compare(self, section, runs):
        """Runs each of `runs` in turn, several times. `runs`: name to options."""
        for _ in range(self.pairs):
            for options in runs.values():
                self.run(section, **options)

    def figures(self, section, **wanted):
        return [row for row in self.rows if row["section"] == section and
                all(row.get(name) == value for name, value in wanted.items())]

    def median(self, section, field="per_second", **wanted):
        found = [row[field] for row in self.figures(section, **wanted)]
        return statistics.median(found) if found else None

    def ratio(self, section, one, other):
        """The median of the ratios of the runs that followed each other."""
        pairs = zip(self.figures(section, mode=one), self.figures(section, mode=other))
        ratios = [a["per_second"] / b["per_second"] for a, b in pairs]
        return statistics.median(ratios) if ratios else None


def measure(bench):
    is_quick = bench.args.quick
    many, few = (10000, 1500) if is_quick else (30000, 3000)
    bench.compare("schedule", {mode: {"mode": mode, "count": many}
                               for mode in ("bare", "recipe", "apart", "single", "grouped")})
    bench.compare("claim", {mode: {"mode": mode, "count": few if mode in ("recipe", "single")
                                   else many}
                            for mode in ("recipe", "single", "hand", "batch")})
    bench.run("late", mode="wait", count=100 if is_quick else 500)
    bench.run("late", mode="recipe", count=3 if is_quick else 10)
    for _ in range(bench.pairs):
        for nodes in (1, 2):
            bench.run("lives", nodes=nodes, count=many)
    measure_memory(bench)
    measure_idle(bench)


def measure_memory(bench):
    count = 200000 if bench.args.quick else 1000000
    for mode in ("grouped", "bare"):
        bench.server.ask("FLUSHALL")
        before = bench.server.memory()
        row = bench.run("schedule", mode=mode, count=count)
        if row:
            bench.rows.append({"section": "memory", "mode": mode, "count": count,
                               "bytes": (bench.server.memory() - before) / count})
            bench.rows.remove(row)
    bench.server.ask("FLUSHALL")


def measure_idle(bench):
    """Nodes that wait: the program says when it begins and ends, and waits for an answer."""
    nodes, topics, seconds = 2, 1000, 5 if bench.args.quick else 15
    bench.server.ask("FLUSHALL")
    bench.runner.progress(f"idle topics={topics} nodes={nodes}")
    process = subprocess.Popen(
        [str(bench.runner.folder / "redis"), "idle", f"port={bench.server.port}",
         f"topics={topics}", f"seconds={seconds}", f"nodes={nodes}"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    before, began = bench.server.commands(), time.monotonic()
    process.stdout.readline()
    count, length = bench.server.commands() - before, time.monotonic() - began
    process.communicate("\n")
    count -= 1  # the INFO before
    bench.rows.append({"section": "idle", "topics": topics, "nodes": nodes,
                       "per_second_and_node": count / length / nodes})


# --- BullMQ ---

def install_bullmq(folder):
    """Installs bullmq below the folder of the programs, once. Returns why it failed, or None."""
    if (folder / "node_modules" / "bullmq").exists():
        return None
    if not shutil.which("npm") or not shutil.which("node"):
        return "npm and node are not installed"
    folder.mkdir(exist_ok=True)
    try:
        done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix",
                               str(folder), "bullmq", "ioredis"], capture_output=True, timeout=300)
    except subprocess.TimeoutExpired:
        return "npm install took too long"
    return None if done.returncode == 0 else "npm install failed"


def measure_bullmq(bench):
    home = pathlib.Path(bench.args.programs).resolve() / "node"
    why = install_bullmq(home)
    if why is not None:
        bench.skipped.append(f"bullmq: {why}")
        return
    script = pathlib.Path(__file__).with_name("redis_bullmq.mjs")
    shutil.copy(script, home / script.name)  # imports are looked up beside the script
    count = 5000 if bench.args.quick else 20000
    bench.server.ask("FLUSHALL")
    bench.runner.progress("bullmq: delayed jobs")
    done = subprocess.run(["node", str(home / script.name), bench.server.path, str(count)],
                          capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        bench.skipped.append(f"bullmq: {done.stderr.strip()[-200:]}")
        return
    added, worked = (float(word) for word in done.stdout.split())
    bench.rows.append({"section": "bullmq", "added_per_second": added,
                       "worked_per_second": worked})


# --- the table ---

def show(title, value, form, wanted="", is_good=None):
    verdict = "-" if value is None or is_good is None else "yes" if is_good(value) else "NO"
    text = "-" if value is None else form.format(value)
    print(f"  {title:<60}{text:>12}  {wanted:<14}{verdict}")


def show_mode(bench, section, mode, title):
    """A rate, and the CPU of Redis behind it, which other work on the machine does not change."""
    show(f"{title}, per s", bench.median(section, mode=mode), "{:,.0f}")
    found = [1e6 * row["server_cpu_s"] / row["count"] for row in bench.figures(section, mode=mode)]
    show("  CPU of Redis for each, us", statistics.median(found) if found else None, "{:.1f}")


def show_speed(bench):
    for mode, title in (("bare", "ZADD and HSET"), ("recipe", "the recipe: the same in MULTI"),
                        ("apart", "SCHEDULE, each in a topic of its own: one per call"),
                        ("single", "SCHEDULE, one per request: grouped as they wait"),
                        ("grouped", "SCHEDULE, 100 per call")):
        show_mode(bench, "schedule", mode, title)
    show("one per call / ZADD and HSET", bench.ratio("schedule", "apart", "bare"), "{:.2f}",
         ">= 0.3", lambda v: v >= 0.3)
    show("one per request / ZADD and HSET", bench.ratio("schedule", "single", "bare"), "{:.2f}")
    show("100 per call / ZADD and HSET", bench.ratio("schedule", "grouped", "bare"), "{:.2f}",
         ">= 0.65", lambda v: v >= 0.65)
    for mode, title in (("recipe", "claim + ack: the recipe, one by one"),
                        ("single", "claim + ack one by one"),
                        ("hand", "claim + ack of 100 by hand, without tokens"),
                        ("batch", "claim + ack of 100")):
        show_mode(bench, "claim", mode, f"{title} (schedules included in CPU)")
    show("one by one / recipe", bench.ratio("claim", "single", "recipe"), "{:.2f}", ">= 1.2",
         lambda v: v >= 1.2)
    show("100 at once / recipe", bench.ratio("claim", "batch", "recipe"), "{:.1f}", ">= 20",
         lambda v: v >= 20)
    show("100 at once / by hand", bench.ratio("claim", "batch", "hand"), "{:.2f}", ">= 0.5",
         lambda v: v >= 0.5)
    for row in bench.figures("bullmq"):
        show("BullMQ: delayed jobs added, 100 at a time, per s", row["added_per_second"],
             "{:,.0f}")
        show("BullMQ: jobs processed, 100 at a time, per s", row["worked_per_second"], "{:,.0f}")


def show_rest(bench):
    show("lateness when idle, p50 ms", bench.median("late", "p50_ms", mode="wait"), "{:.2f}")
    show("lateness when idle, p99 ms", bench.median("late", "p99_ms", mode="wait"), "{:.2f}",
         "<= 3", lambda v: v <= 3)
    show("  the recipe, p50 ms", bench.median("late", "p50_ms", mode="recipe"), "{:,.0f}")
    show("  the recipe, largest ms", bench.median("late", "max_ms", mode="recipe"), "{:,.0f}")
    show("idle with 1,000 topics: commands per s and node",
         bench.median("idle", "per_second_and_node"), "{:.1f}", "<= 20", lambda v: v <= 20)
    count = bench.median("memory", "count", mode="grouped") or 0
    show(f"bytes per timer, {count:,.0f} of 32 bytes",
         bench.median("memory", "bytes", mode="grouped"), "{:.0f}", "<= 340", lambda v: v <= 340)
    show("  ZADD and HSET", bench.median("memory", "bytes", mode="bare"), "{:.0f}")
    ones = bench.figures("lives", nodes=1)
    twos = bench.figures("lives", nodes=2)
    ratios = [two["server_cpu_s"] / one["server_cpu_s"] for one, two in zip(ones, twos)]
    if ones:
        show("CPU of Redis per lifecycle, us",
             statistics.median(1e6 * row["server_cpu_s"] / row["count"] for row in ones), "{:.1f}")
    show("  of two nodes / of one", statistics.median(ratios) if ratios else None, "{:.2f}",
         "<= 1.1", lambda v: v <= 1.1)


def main():
    args = parse()
    if not shutil.which("redis-server"):
        sys.exit("bench: redis-server is not installed (script/setup)")
    server = Server()
    bench = Bench(args, server)
    try:
        measure(bench)
        measure_bullmq(bench)
    finally:
        server.stop()
    bench.runner.end()
    common.print_machine(args.programs)
    print(f"\n  {'':<60}{'measured':>12}  {'wanted':<14}met")
    show_speed(bench)
    show_rest(bench)
    for line in bench.skipped:
        print(f"SKIPPED {line}")
    if args.json:
        common.write_rows(args.json, bench.rows)
    sys.exit(1 if bench.runner.failed else 0)


main()
