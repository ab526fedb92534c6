#!/usr/bin/env python3
"""Runs clang-tidy over sources, one process per core, and skips what it found clean before.

    tools/lint.py BUILD FILE ...

BUILD holds a compile_commands.json that clang understands; nothing has to be compiled. A file is
skipped if its text, every header it includes, its compiler command, .clang-tidy and clang-tidy
itself are what they were when the file was last found clean. BUILD/clean.json remembers that.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys


def digest(*parts):
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class Texts:
    """Digests of files, each read once."""

    def __init__(self):
        self.known = {}

    def of(self, path):
        if path not in self.known:
            try:
                self.known[path] = hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
            except OSError:
                self.known[path] = "missing"
        return self.known[path]


def read_commands(build):
    """The first command of each source: a file compiled for many programs is read once."""
    commands = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = os.path.normpath(os.path.join(entry["directory"], entry["file"]))
        commands.setdefault(path, entry)
    return commands


def borrow(commands, path):
    """The command of a file that this build leaves out: that of another one in its folder."""
    for other, entry in commands.items():
        if os.path.dirname(other) == os.path.dirname(path):
            command = shlex.split(entry["command"])[:-1] + [path]
            return {**entry, "file": path, "command": shlex.join(command)}
    return None


def headers_of(entry):
    """Every file that the compiler reads for this source, system headers too."""
    command = shlex.split(entry["command"])
    for option in ("-MF", "-MQ", "-o"):
        at = command.index(option)
        del command[at:at + 2]
    command = [word for word in command if word not in ("-MD", "-c")] + ["-M"]
    if os.path.basename(command[0]) == "ccache":
        del command[0]
    rule = subprocess.run(command, cwd=entry["directory"], capture_output=True, text=True)
    words = re.sub(r"\\\n", " ", rule.stdout).split()[1:]
    return [os.path.normpath(os.path.join(entry["directory"], word)) for word in words]


def state(entry, headers, tool, texts):
    return digest(tool, entry["command"], *(path + texts.of(path) for path in headers))


def lint(path, folder, entry, tool, texts):
    """Returns whether the file is clean, what to remember of it, and what clang-tidy printed."""
    headers = headers_of(entry) # before clang-tidy runs, so that an edit meanwhile is noticed
    remembered = {"headers": headers, "state": state(entry, headers, tool, texts)}
    run = subprocess.run(["clang-tidy", "-p", folder, "--quiet", path],
                         capture_output=True, text=True)
    is_clean = run.returncode == 0
    return is_clean, remembered, run.stdout if is_clean else run.stdout or run.stderr


def main():
    build = pathlib.Path(sys.argv[1])
    wanted = [os.path.abspath(path) for path in sys.argv[2:]]
    commands = read_commands(build)
    for path in wanted:
        if path not in commands:
            commands[path] = borrow(commands, path)
    unknown = [path for path in wanted if commands[path] is None]
    for path in unknown:
        print(f"{path}: nothing in this folder is compiled")
        del commands[path]

    once = build / "once"
    once.mkdir(exist_ok=True)
    (once / "compile_commands.json").write_text(json.dumps(list(commands.values())))
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, text=True).stdout
    tool = digest(version, pathlib.Path(".clang-tidy").read_text())
    texts = Texts()
    try:
        clean = json.loads((build / "clean.json").read_text())
    except (OSError, ValueError):
        clean = {}
    todo = [path for path in wanted if path in commands and not (
        path in clean and
        clean[path]["state"] == state(commands[path], clean[path]["headers"], tool, texts))]
    # The largest first, so that no core idles at the end.
    todo.sort(key=os.path.getsize, reverse=True)

    failed = len(unknown)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = {path: pool.submit(lint, path, once, commands[path], tool, texts) for path in todo}
        for path, job in jobs.items():
            is_clean, remembered, said = job.result()
            clean.pop(path, None)
            if not is_clean:
                failed += 1
            elif remembered["headers"]:
                clean[path] = remembered
            if said.strip():
                print(said.strip())
    (build / "clean.json").write_text(json.dumps(clean))
    print(f"{len(wanted)} files, {len(wanted) - len(todo) - len(unknown)} unchanged since found clean")
    return 1 if failed else 0


sys.exit(main())
