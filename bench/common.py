"""Shared by the benchmark scripts: running programs, progress, the description of the machine."""
import json
import os
import pathlib
import platform
import resource
import subprocess
import sys

MEMORY = ("tmpfs", "ramfs")


class Runner:
    """Runs the programs, prints the progress, and remembers whether one failed."""

    def __init__(self, folder):
        self.folder, self.total, self.done = pathlib.Path(folder), 0, 0
        self.versions, self.failed = {}, False

    def has(self, program):
        return (self.folder / program).exists()

    def progress(self, text):
        self.done += 1
        line = f"[{self.done}/{self.total}] {text}" if self.total else f"[{self.done}] {text}"
        if sys.stderr.isatty():
            print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr, flush=True)

    def start(self, program, arguments):
        """Runs a program. Returns its output, one dictionary per line, and whether it succeeded."""
        command = [str(self.folder / program), *arguments]
        process = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if process.returncode != 0:
            print(f"\n{' '.join(command)}: failed", file=sys.stderr)
            self.failed = True
        lines = [json.loads(line) for line in process.stdout.splitlines()]
        return lines, process.returncode == 0

    def end(self):
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def file_system(path):
    """Returns the type of the file system of a path."""
    mounts = [line.split()[1:3] for line in open("/proc/mounts")]
    under = [m for m in mounts if os.path.realpath(path).startswith(m[0])]
    return max(under, key=lambda m: len(m[0]))[1]


def refuse_memory(folder):
    if file_system(folder) in MEMORY:
        sys.exit(f"bench: {folder} is not on a disk; choose a folder with --dir or TMPDIR")


def disk_bytes(folder):
    return sum(f.stat().st_blocks * 512 for f in pathlib.Path(folder).rglob("*") if f.is_file())


def raise_files(wanted):
    """Raises the limit of open files to `wanted`, or to the hard limit, for this process and its
    children."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(wanted, hard), max(wanted, hard)))
    except (ValueError, PermissionError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))


def print_machine(folder):
    """Prints machine, compiler and flags."""
    cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo")
                if line.startswith("model name")), platform.machine())
    build = pathlib.Path(folder).parent
    commands = json.loads((build / "compile_commands.json").read_text())
    common = next(c["command"] for c in commands if c["file"].endswith("bench/common.c"))
    flags = [f for f in common.split() if f.startswith(("-O", "-f", "-m", "-D_FORTIFY", "-std"))
             and not f.startswith("-fdiagnostics")]
    compiler = subprocess.run([common.split()[0], "--version"], capture_output=True,
                              text=True).stdout.split("\n")[0]
    print(f"machine   {cpu}, {platform.release()}")
    print(f"compiler  {compiler}")
    print(f"flags     {' '.join(flags)}; peers as Debian builds them (-O2)")


def print_versions(runner):
    named = [f"{e} {v}" for e, v in runner.versions.items() if e not in ("null", "belfry")]
    own = runner.versions.get("belfry", "not run")
    print(f"engines   {', '.join([f'belfry {own}'] + named)}\n")


def write_rows(path, rows):
    pathlib.Path(path).write_text(json.dumps({"rows": rows}) + "\n")
