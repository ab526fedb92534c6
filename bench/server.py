#!/usr/bin/env python3
"""Compares belfry serve with redis-server and beanstalkd and prints tables.

One load generator in C is used for all (bench/serve_load.c); payloads have 100 bytes; client and
server share the machine. Redis schedules with MULTI/ZADD/HSET/EXEC, claims with one call of a
script, acknowledges with ZREM and HDEL. [D] marks a server that syncs to disk before the reply; a
power failure loses acknowledged timers of the others. The floor is not a timer server: it writes
what it reads, syncs, and sends a constant reply (bench/serve_floor.c), which shows what the machine
allows.

Sections: schedule, drain, cancel, life, memory, crowd (default: all). The data is in a temporary
folder under --dir or $TMPDIR, which is removed at the end.
"""
import argparse
import json
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

SECTIONS = ("schedule", "drain", "cancel", "life", "memory", "crowd")
RATES = (1000, 2000, 3000, 4000, 5000, 7000, 10000, 15000, 20000, 30000, 40000, 50000, 60000,
         70000, 80000, 90000, 100000, 110000, 120000, 135000, 150000, 165000, 180000, 200000, 225000,
         250000, 275000, 300000)
LATE_MS_MAX = 100
FILES_WANTED = 25000  # open at once, for the section crowd


def parse():
    parser = argparse.ArgumentParser(prog="script/bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["server"])
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--quick", action="store_true", help="one short run instead of three")
    parser.add_argument("--dir", metavar="DIR", help="folder on a disk (default $TMPDIR)")
    parser.add_argument("--json", metavar="FILE", help="also write the rows to a file")
    parser.add_argument("--programs", required=True, help=argparse.SUPPRESS)
    args = parser.parse_intermixed_args()
    for section in args.sections:
        if section not in SECTIONS:
            parser.error(f"unknown section '{section}'; expected {', '.join(SECTIONS)}")
    args.sections = args.sections or list(SECTIONS)
    return args


# --- servers ---


class System:
    """A server program with one durability setting."""

    def __init__(self, program, mode, flags, is_durable=False, fill=1.0, rate=20000,
                 sections=SECTIONS):
        self.program, self.mode, self.flags, self.sections = program, mode, flags, sections
        self.protocol = "belfry" if program == "floor" else program
        self.name = f"{program} {mode}".strip()
        self.is_durable = is_durable
        self.fill = fill  # how much of a usual load it can be given in the same time
        self.rate = rate  # lifecycles per second to try first

    def title(self):
        return self.name + (" [D]" if self.is_durable else "")

    def command(self, binary, port, folder):
        flags = [flag.replace("DIR", str(folder)) for flag in self.flags]
        if self.program == "belfry":
            return [binary, "serve", "--data", str(folder), "--resp", f"127.0.0.1:{port}", *flags]
        if self.program == "redis":
            return [binary, "--bind", "127.0.0.1", "--port", str(port), "--dir", str(folder),
                    *flags]
        if self.program == "floor":
            return [binary, str(port), *flags]
        return [binary, "-l", "127.0.0.1", "-p", str(port), *flags]


REDIS = ["--save", "", "--maxclients", "15000", "--loglevel", "warning"]
SYSTEMS = (
    System("belfry", "", ["--http", "none", "--max-clients", "15000", "--log-level", "warn"],
           is_durable=True, rate=40000),
    System("redis", "always", [*REDIS, "--appendonly", "yes", "--appendfsync", "always"],
           is_durable=True),
    System("redis", "everysec", [*REDIS, "--appendonly", "yes", "--appendfsync", "everysec"]),
    System("redis", "none", [*REDIS, "--appendonly", "no"], rate=60000),
    System("beanstalkd", "-f 0", ["-b", "DIR", "-f", "0"], is_durable=True, fill=0.04, rate=3000),
    System("beanstalkd", "-b", ["-b", "DIR"]),
    System("beanstalkd", "none", []),
    System("floor", "", ["DIR/log"], is_durable=True, sections=("schedule",)),
    System("floor", "none", [], sections=("schedule",)),
)


def binaries(programs):
    """Returns the path of each program by name. Missing programs are left out."""
    found = {"belfry": str(pathlib.Path(programs).parent / "belfry"),
             "redis": shutil.which("redis-server"), "beanstalkd": shutil.which("beanstalkd"),
             "floor": str(pathlib.Path(programs) / "serve_floor")}
    for name, path in found.items():
        if not path or not os.path.exists(path):
            print(f"bench: {name} is not installed and is LEFT OUT; script/setup installs it",
                  file=sys.stderr)
    return {name: path for name, path in found.items() if path and os.path.exists(path)}


def version_of(name, binary):
    flag = {"belfry": "version", "redis": "--version", "beanstalkd": "-v"}[name]
    said = subprocess.run([binary, flag], capture_output=True, text=True).stdout.split("\n")[0]
    words = [w.removeprefix("v=") for w in said.split()]
    return next((w for w in words if w[:1].isdigit()), said)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """A server process with its folder. It can be started and stopped several times."""

    def __init__(self, system, binary, folder):
        self.system, self.binary, self.folder = system, binary, folder
        self.process, self.port = None, free_port()

    def start(self, wait=True):
        self.folder.mkdir(parents=True, exist_ok=True)
        log = open(self.folder.with_suffix(".log"), "a")
        command = self.system.command(self.binary, self.port, self.folder)
        self.process = subprocess.Popen(command, stdout=log, stderr=log)
        log.close()
        deadline = time.monotonic() + 30
        while wait and not self.listens():
            if self.process.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"bench: {' '.join(command)} does not start:\n" +
                         self.folder.with_suffix(".log").read_text()[-2000:])
            time.sleep(0.005)

    def listens(self):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def end(self):
        if self.process:
            self.process.kill()
            self.process.wait()
        self.process = None

    def anonymous_bytes(self):
        for line in open(f"/proc/{self.process.pid}/smaps_rollup"):
            if line.startswith("Anonymous:"):
                return int(line.split()[1]) * 1024
        return 0


# --- measuring ---


class Bench:
    def __init__(self, args, folder):
        self.args, self.folder, self.rows, self.checks = args, pathlib.Path(folder), [], []
        self.runner = common.Runner(args.programs)
        self.binaries = binaries(args.programs)
        self.systems = [s for s in SYSTEMS if s.program in self.binaries]
        self.runs = 1 if args.quick else 3
        self.serial = 0

    def choose(self, *names):
        return [s for s in self.systems if s.name in names]

    def of_section(self, section):
        return [s for s in self.systems if section in s.sections]

    def server(self, system):
        self.serial += 1
        folder = self.folder / f"{self.serial}-{system.program}"
        return Server(system, self.binaries[system.program], folder)

    def load(self, server, words):
        """Runs the load generator with these words. Returns its lines."""
        command = [server.system.protocol, f"port={server.port}", f"pid={server.process.pid}"]
        lines, succeeded = self.runner.start("serve_load", [*command, *words])
        if not succeeded:
            log = server.folder.with_suffix(".log").read_text()[-2000:]
            print(f"{server.system.name}: {log}", file=sys.stderr)
        return lines if succeeded else []

    def run_fresh(self, system, words):
        """Starts a server, runs the load generator, and returns its lines."""
        server = self.server(system)
        try:
            server.start()
            return self.load(server, words)
        finally:
            server.end()
            shutil.rmtree(server.folder, ignore_errors=True)

    def with_server(self, system, words, section, shape):
        """Like with_server(), and appends the last line to the rows."""
        self.runner.progress(f"{section}: {system.name}, {shape}")
        lines = self.run_fresh(system, words)
        if lines:
            self.keep(lines[-1], system, section, shape)
        return lines

    def keep(self, line, system, section, shape):
        row = line | {"section": section, "shape": shape, "system": system.name}
        self.rows.append(row)
        return row

    def values(self, section, shape, name, field="rate"):
        return [r[field] for r in self.rows
                if (r["section"], r["shape"], r["system"]) == (section, shape, name)]

    def median(self, section, shape, name, field="rate"):
        values = self.values(section, shape, name, field)
        return statistics.median(values) if values else None

    def check(self, section, what, value, wanted, is_most=False):
        """Records whether a value is at least, or at most, the wanted one; None: not measured."""
        reached = value is not None and (value <= wanted if is_most else value >= wanted)
        self.checks.append({"section": section, "what": what, "value": value, "wanted": wanted,
                            "reached": reached, "is_most": is_most})


def show(value, form="{:,.0f}"):
    return form.format(value) if value is not None else "-"


def print_checks(bench, section):
    print(f"\n  {'':<44}{'measured':>10}{'wanted':>10}")
    for c in bench.checks:
        if c["section"] != section:
            continue
        sign = "<=" if c["is_most"] else ">="
        wanted = f"{sign} {c['wanted']:g}"
        verdict = "reached" if c["reached"] else "NOT REACHED" if c["value"] else "not measured"
        print(f"  {c['what']:<44}{show(c['value'], '{:,.2f}'):>10}{wanted:>10}  {verdict}")


def check_ratios(bench, section, wishes):
    for shape, peer, wanted in wishes:
        own, other = (bench.median(section, shape, name) for name in ("belfry", peer))
        ratio = own / other if own and other else None
        bench.check(section, f"{shape}: x {peer}", ratio, wanted)


def print_rates(bench, section, shapes, latency=None):
    """Prints a row per server; `latency` is the column whose p50 and p99 are printed."""
    heads = "".join(f"{s:>17}" + (f"{'p50 us':>8}{'p99 us':>8}" if s == latency else "")
                    for s in shapes)
    print(f"  {'':<22}{heads}{'CPU us':>8}")
    for system in bench.of_section(section):
        line = f"  {system.title():<22}"
        for shape in shapes:
            line += f"{show(bench.median(section, shape, system.name)):>17}"
            if shape == latency:
                line += "".join(f"{show(bench.median(section, shape, system.name, f)):>8}"
                                for f in ("p50_us", "p99_us"))
        cpu = bench.median(section, shapes[-1], system.name, "cpu_us")
        print(line + f"{show(cpu, '{:.1f}'):>8}")


def run_shapes(bench, section, shapes):
    """Runs every shape on every server in turn; `shapes` map names to functions that return words."""
    for _ in range(bench.runs):
        for shape, words in shapes.items():
            for system in bench.of_section(section):
                bench.with_server(system, words(system), section, shape)


# --- schedule, drain, cancel ---

SCHEDULE = {"1 connection": (1, 1), "pipeline 64": (1, 64), "64, own ids": (1, 64),
            "50 connections": (50, 1), "50 x 16": (50, 16)}


def schedule_words(bench, connections, pipeline, ids):
    tenths = 5 if bench.args.quick else 10
    return [f"connections={connections}", f"pipeline={pipeline}", f"tenths={tenths}",
            *(["ids"] if ids else []), "schedule"]


def measure_schedule(bench):
    shapes = {shape: lambda s, c=c, p=p, i="ids" in shape: schedule_words(bench, c, p, i)
              for shape, (c, p) in SCHEDULE.items()}
    run_shapes(bench, "schedule", shapes)
    if not bench.args.quick:
        for system in bench.choose("belfry", "redis always", "redis none", "beanstalkd none"):
            words = ["connections=50", "pipeline=16", "tenths=60", "schedule"]
            bench.with_server(system, words, "schedule", "50 x 16 for 6 s")


def print_schedule(bench):
    print("\nSchedule: timers per second, due at random within 30 days. Ids made by the server "
          "where supported; with Redis always by the client")
    print_rates(bench, "schedule", [*SCHEDULE, *([] if bench.args.quick else ["50 x 16 for 6 s"])],
                latency="50 connections")
    check_ratios(bench, "schedule", (
        ("50 connections", "redis always", 2.5), ("50 connections", "redis none", 1),
        ("pipeline 64", "redis always", 3), ("pipeline 64", "redis none", 1.3),
        ("pipeline 64", "beanstalkd none", 1.3), ("1 connection", "beanstalkd -f 0", 0.9)))


FILL = ["connections=50", "pipeline=16"]


def measure_drain(bench):
    many = 50000 if bench.args.quick else 150000
    few = 20000 if bench.args.quick else 50000
    run_shapes(bench, "drain", {
        "batches of 100": lambda s: [f"timers={int(many * s.fill)}", *FILL, "fill",
                                     "connections=1", "batch=100", "drain"],
        "100, 8 workers": lambda s: [f"timers={int(many * s.fill)}", *FILL, "fill",
                                     "connections=8", "batch=100", "drain"],
        "50 workers": lambda s: [f"timers={int(few * s.fill)}", *FILL, "fill", "connections=50",
                                 "batch=1", "drain"]})


def print_drain(bench):
    print("\nDrain: timers claimed and acknowledged per second; one at a time in the last column")
    print_rates(bench, "drain", ["batches of 100", "100, 8 workers", "50 workers"])
    check_ratios(bench, "drain", (
        ("batches of 100", "redis always", 2), ("batches of 100", "redis none", 1),
        ("50 workers", "redis always", 2)))


def measure_cancel(bench):
    count = 40000 if bench.args.quick else 100000

    def words(system, ids=False):
        return [f"timers={int(count * system.fill)}", "later", *(["ids"] if ids else []), *FILL,
                "fill", "connections=1", "pipeline=64", "cancel"]
    run_shapes(bench, "cancel", {"pipeline 64": words, "64, own ids": lambda s: words(s, True)})


def print_cancel(bench):
    print("\nCancel by id: timers per second")
    print_rates(bench, "cancel", ["pipeline 64", "64, own ids"])
    check_ratios(bench, "cancel", (("pipeline 64", "redis always", 2),
                                   ("64, own ids", "redis always", 2)))


# --- life ---


def live(bench, system, rate, tenths):
    """Runs lifecycles at a rate. Returns the last line of the load generator; None on failure."""
    lines = bench.with_server(system, [f"rate={rate}", f"tenths={tenths}", "life"], "life",
                              f"{rate:,} per second")
    return lines[-1] if lines else None


def is_met(line):
    """Returns whether a rate was met with a p99 of lateness under LATE_MS_MAX."""
    return line is not None and line["undone"] == 0 and line["late_p99_ms"] < LATE_MS_MAX


def find_highest(bench, system):
    """Searches for the highest rate that is met, up or down from the rate to try first. Returns the
    line of the load generator at that rate; None if none is met."""
    tenths, tries = (20, 1) if bench.args.quick else (30, 2)
    steps = RATES[::2] if bench.args.quick else RATES
    at = max(i for i, rate in enumerate(steps) if rate <= system.rate)

    def attempt(rate):
        lines = (live(bench, system, rate, tenths) for _ in range(tries))
        return next((line for line in lines if is_met(line)), None)
    best = attempt(steps[at])
    step = 1 if best else -1
    while 0 <= at + step < len(steps):
        at += step
        line = attempt(steps[at])
        if step < 0 and line:
            return line
        if step > 0 and not line:
            return best
        best = line
    return best


def measure_life(bench):
    names = ["belfry", "redis always", "redis none", "beanstalkd -f 0", "beanstalkd none"]
    if bench.args.quick:
        names = names[:2]
    for system in bench.choose(*names):
        calm = live(bench, system, 1000, 30 if bench.args.quick else 40)
        most = find_highest(bench, system)
        bench.rows.append({"section": "life", "shape": "result", "system": system.name,
                           "highest": most["rate"] if most else None, "calm": calm, "most": most})


def print_life(bench):
    print("\nLifecycles per second (schedule, claim, acknowledge), by the clock, due in a second.\n"
          f"The highest rate with p99 of lateness under {LATE_MS_MAX} ms, and 1,000 per second; "
          "lateness in ms")
    print(f"  {'':<22}{'highest':>10}{'p50':>8}{'p99':>8}{'max':>8}{'at 1,000':>12}{'p99':>8}"
          f"{'max':>8}{'CPU %':>8}")
    results = {r["system"]: r for r in bench.rows if r["shape"] == "result"}
    for name, result in results.items():
        title = next(s.title() for s in bench.systems if s.name == name)
        fields = ("late_p50_ms", "late_p99_ms", "late_max_ms")
        most, calm = ([show(result[k][f] if result[k] else None, "{:.2f}") for f in fields]
                      for k in ("most", "calm"))
        cpu = 100 * result["calm"]["cpu_share"] if result["calm"] else None
        print(f"  {title:<22}{show(result['highest']):>10}" + "".join(f"{v:>8}" for v in most)
              + f"{calm[0]:>12}{calm[1]:>8}{calm[2]:>8}{show(cpu, '{:.1f}'):>8}")
    own, peer = results.get("belfry"), results.get("redis always")
    ratio = own["highest"] / peer["highest"] if (own and peer and own["highest"]
                                                  and peer["highest"]) else None
    bench.check("life", "highest rate: x redis always", ratio, 2)
    if own and own["calm"]:
        bench.check("life", "1,000 per second: p50, ms", own["calm"]["late_p50_ms"], 0.5, True)
        bench.check("life", "1,000 per second: p99, ms", own["calm"]["late_p99_ms"], 2, True)
        bench.check("life", "1,000 per second: % of a core", 100 * own["calm"]["cpu_share"], 20, True)


# --- memory ---


def measure_memory(bench):
    pending = 200000 if bench.args.quick else 1000000
    for system in bench.choose("belfry", "redis always", "beanstalkd -b"):
        bench.runner.progress(f"memory: {system.name}, {pending:,} pending")
        server = bench.server(system)
        try:
            server.start()
            before = server.anonymous_bytes()
            bench.load(server, [f"timers={pending}", *FILL, "later", "fill", "timers=1000", "now",
                                "fill"])
            time.sleep(1)
            row = {"pending": pending, "anonymous_bytes": server.anonymous_bytes(),
                   "empty_bytes": before}
            server.end()
            row["disk_bytes"] = common.disk_bytes(server.folder)
            row["first_ms"] = restart(bench, server)
            bench.keep(row, system, "memory", "pending")
        finally:
            server.end()
            shutil.rmtree(server.folder, ignore_errors=True)


def restart(bench, server):
    """Returns the milliseconds from the restart of a killed server to its first delivery."""
    program = str(bench.runner.folder / "serve_load")
    client = subprocess.Popen([program, server.system.program, f"port={server.port}", "first"],
                              stdout=subprocess.PIPE, text=True)
    time.sleep(0.1)
    began = time.monotonic_ns()
    server.start(wait=False)
    try:
        said, _ = client.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        client.kill()
        return None
    return (json.loads(said)["at_ns"] - began) / 1e6 if said else None


def print_memory(bench):
    print("\nMemory and restart after kill -9, with timers pending")
    print(f"  {'':<22}{'pending':>12}{'MB anon':>10}{'B/timer':>9}{'MB disk':>10}"
          f"{'first claim ms':>16}")
    rows = {r["system"]: r for r in bench.rows if r["section"] == "memory"}
    for name, row in rows.items():
        title = next(s.title() for s in bench.systems if s.name == name)
        print(f"  {title:<22}{row['pending']:>12,}{row['anonymous_bytes'] / 1e6:>10,.0f}"
              f"{row['anonymous_bytes'] / row['pending']:>9,.0f}"
              f"{row['disk_bytes'] / 1e6:>10,.0f}{show(row['first_ms'], '{:,.1f}'):>16}")
    own, peer = rows.get("belfry"), rows.get("redis always")
    ratio = own["anonymous_bytes"] / peer["anonymous_bytes"] if own and peer else None
    bench.check("memory", "anonymous memory: x redis", ratio, 0.5, True)
    if own:
        bench.check("memory", "first claim, ms", own["first_ms"], 300, True)


# --- crowd ---


def measure_crowd(bench):
    tenths = 10 if bench.args.quick else 20
    words = ["connections=50", f"tenths={tenths}", "schedule", "schedule", "idle=10000", "gather",
             "schedule", "disperse", "slow=1000", "gather", "schedule", "disperse"]
    for _ in range(bench.runs):
        for system in bench.choose("belfry", "redis always"):
            bench.runner.progress(f"crowd: {system.name}")
            lines = bench.run_fresh(system, words)
            for shape, line in zip(("warm", "alone", "10,000 idle", "1,000 slow"), lines):
                bench.keep(line, system, "crowd", shape)


def print_crowd(bench):
    print("\nCrowd: p99 in us (and schedules per second) of 50 busy connections")
    shapes = ("alone", "10,000 idle", "1,000 slow")
    print(f"  {'':<22}" + "".join(f"{s:>24}" for s in shapes))
    for system in bench.choose("belfry", "redis always"):
        line = f"  {system.title():<22}"
        for shape in shapes:
            p99, rate = (bench.median("crowd", shape, system.name, f) for f in ("p99_us", "rate"))
            line += f"{show(p99) + ' (' + show(rate) + ')':>24}"
        print(line)
    alone = bench.median("crowd", "alone", "belfry", "p99_us")
    for shape in shapes[1:]:
        p99 = bench.median("crowd", shape, "belfry", "p99_us")
        bench.check("crowd", f"{shape}: p99, x alone", p99 / alone if p99 and alone else None, 2,
                    True)


# --- main ---

PARTS = {
    "schedule": (measure_schedule, print_schedule), "drain": (measure_drain, print_drain),
    "cancel": (measure_cancel, print_cancel), "life": (measure_life, print_life),
    "memory": (measure_memory, print_memory), "crowd": (measure_crowd, print_crowd),
}


def print_header(bench, parent):
    common.print_machine(bench.args.programs)
    print(f"disk      {parent}, {common.file_system(parent)}; {os.cpu_count()} cores, shared by "
          "client and server")
    versions = [f"{name} {version_of(name, path)}" for name, path in bench.binaries.items()
                if name != "floor"]
    print(f"servers   {', '.join(versions)}")
    print(f"load      {os.getloadavg()[0]:.1f} at the start; other programs affect the results")
    for name in {s.program for s in SYSTEMS} - set(bench.binaries):
        print(f"LEFT OUT  {name}: not installed")
    for system in bench.systems:
        print(f"  {system.title():<20}{' '.join(f or chr(34) * 2 for f in system.flags)}")
    print(f"runs      the median of {bench.runs}, a fresh server for each" if bench.runs > 1 else
          "runs      one, short: --quick")
    sys.stdout.flush()


def main():
    args = parse()
    parent = args.dir or tempfile.gettempdir()
    common.refuse_memory(parent)
    common.raise_files(FILES_WANTED)
    if shutil.disk_usage(parent).free < 4e9:
        sys.exit(f"bench: {parent} has less than 4 GB free")
    with tempfile.TemporaryDirectory(prefix="belfry-bench-", dir=parent) as folder:
        bench = Bench(args, folder)
        print_header(bench, parent)
        for section in args.sections:
            measure, tell = PARTS[section]
            bench.runner.done = bench.runner.total = 0
            measure(bench)
            bench.runner.end()
            tell(bench)
            print_checks(bench, section)
            sys.stdout.flush()
    if args.json:
        common.write_rows(args.json, bench.rows + bench.checks)
    sys.exit(1 if bench.runner.failed else 0)


if __name__ == "__main__":
    main()
