#!/usr/bin/env python3
"""Runs a stock client of Redis, or our own, against two real servers: an open one, and one with keys.

    run.py BELFRY belfry PROGRAM         the library's own; the open server's clock is virtual
    run.py BELFRY hiredis PROGRAM
    run.py BELFRY redis-py SCRIPT
    run.py BELFRY redis-py-new SCRIPT FOLDER     the newest from PyPI, installed in FOLDER
    run.py BELFRY node SCRIPT FOLDER     FOLDER is where its packages are installed

A kind with @redis, such as hiredis@redis, speaks to servers whose store is Redis.

The client is a program: it is given both ports and a key, prints `ok   name` for every case, and
ends with 0. What is not to be had here (a library, node, a registry of packages) is said aloud,
and the test counts as skipped.
"""
import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
from redis_rig import Node, Redis, need_redis  # noqa: E402
from rig import Server, run  # noqa: E402

SKIPPED = 77
KEY = "correct-horse-battery-staple"
PATIENCE = 200  # s, of a client or of the installation of its packages


def skip(why):
    print("SKIPPED", why)
    sys.exit(SKIPPED)


def find_python():
    """An interpreter that has the module: meson's need not be the system's."""
    for python in (sys.executable, "/usr/bin/python3"):
        if shutil.which(python) is None:
            continue
        if subprocess.run([python, "-c", "import redis"], capture_output=True).returncode == 0:
            return python
    skip("redis-py: no python3 here has the module redis (package python3-redis)")


def install_python(source, folder):
    """Installs what a list of requirements names, unless that was done before. Returns python."""
    wanted = open(source).read()
    python = os.path.join(folder, "bin", "python")
    os.makedirs(folder, exist_ok=True)
    lock = open(os.path.join(folder, "lock"), "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    stamp = os.path.join(folder, "installed")
    if os.path.exists(stamp) and open(stamp).read() == wanted:
        return python
    for command in ([sys.executable, "-m", "venv", folder],
                    [python, "-m", "pip", "install", "--quiet", "--retries", "1", "--upgrade",
                     "-r", source]):
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        except (OSError, subprocess.TimeoutExpired) as error:
            skip(f"redis-py: the newest cannot be installed: {error}")
        if done.returncode != 0:
            skip("redis-py: the newest cannot be installed:\n" + done.stderr[-2000:])
    with open(stamp, "w") as file:
        file.write(wanted)
    return python


def install_packages(source, folder):
    """Installs what package-lock.json names, unless that was done before."""
    names = ("package.json", "package-lock.json")
    wanted = "".join(open(os.path.join(source, name)).read() for name in names)
    os.makedirs(folder, exist_ok=True)
    lock = open(os.path.join(folder, "lock"), "w")
    fcntl.flock(lock, fcntl.LOCK_EX)  # tests/examples uses the same folder
    stamp = os.path.join(folder, "installed")
    if os.path.exists(stamp) and open(stamp).read() == wanted:
        return
    for name in names:
        shutil.copy(os.path.join(source, name), folder)
    try:
        done = subprocess.run(
            ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1"],
            cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        skip("node: npm ci does not come to an end")
    if done.returncode != 0:
        skip("node: npm ci cannot install the packages:\n" + done.stderr[-2000:])
    with open(stamp, "w") as file:
        file.write(wanted)


def command_of(kind, arguments):
    if kind == "belfry":
        return list(arguments)
    if kind == "hiredis":
        if not arguments:
            skip("hiredis: it was not there when this was configured (package libhiredis-dev)")
        return list(arguments)
    if kind == "redis-py":
        return [find_python(), *arguments]
    script, folder = arguments
    if kind == "redis-py-new":
        requirements = os.path.join(os.path.dirname(script), "python", "redis.txt")
        return [install_python(requirements, os.path.abspath(folder)), script]
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            skip(f"node: there is no {program} here (packages nodejs and npm)")
    install_packages(os.path.dirname(script), folder)
    # A module looks for packages beside itself, and packages are not put into the source.
    copy = os.path.join(folder, os.path.basename(script))
    shutil.copy(script, copy)
    return ["node", copy]


@contextlib.contextmanager
def servers(store, flags, other_flags):
    """An open server and one with keys, in memory or on Redis."""
    if store == "":
        with Server("--store", "memory", *flags) as plain, \
                Server("--store", "memory", *other_flags) as closed:
            yield plain, closed
        return
    need_redis()
    with Redis() as redis, Node(redis.url("?namespace=open"), *flags) as plain, \
            Node(redis.url("?namespace=closed"), *other_flags) as closed:
        yield plain, closed


def serve(command, store, *flags):
    status, line, errors = run("serve", "--hash-key", "worker", "all", stdin=KEY + "\n")
    assert status == 0, errors
    with tempfile.NamedTemporaryFile("w") as keys:
        keys.write(line)
        keys.flush()
        with servers(store, flags, ["--keys", keys.name]) as (plain, closed):
            done = subprocess.run([*command, str(plain.port), str(closed.port), KEY],
                                  timeout=PATIENCE)
            assert done.returncode == 0, f"the client ends with {done.returncode}"


if __name__ == "__main__":
    kind, _, store = sys.argv[2].partition("@")
    serve(command_of(kind, sys.argv[3:]), store,
          *(["--clock", "virtual"] if kind == "belfry" else []))
