#!/usr/bin/env python3
"""Runs the Python loops of docs/GUIDE.md that move a sorted set of Redis to Belfry, and back.

    guide.py BELFRY GUIDE

Needs redis-server and redis-py; where one is missing, that is reported and the test is skipped. (The
shell commands of the guide are run by tests/cli/quickstart.sh, its workers by tests/examples.)
"""
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "clients"))
from run import Server, find_python, skip  # noqa: E402
from rig import DEADLINE, Client  # noqa: E402

TIMERS = {"a": ("hello", 1900000000.5), "b": ("two words", 1900000001.0)}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_redis(folder):
    port = free_port()
    process = subprocess.Popen(
        ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder],
        stdout=subprocess.DEVNULL)
    end = time.monotonic() + DEADLINE
    while True:
        try:
            return process, Client(port), port
        except ConnectionError:
            assert process.poll() is None and time.monotonic() < end, "redis-server does not start"
            time.sleep(0.02)


def loops():
    """The loops from and to a sorted set: the first two blocks of Python."""
    with open(sys.argv[2]) as file:
        blocks = re.findall(r"^```python\n(.*?)^```", file.read(), re.M | re.S)
    assert "zscan_iter" in blocks[0] and "zadd" in blocks[1], "the guide has other blocks"
    return blocks[:2]


def main(python, folder):
    process, redis, port = start_redis(folder)
    try:
        with Server("--store", "memory") as server, server.client() as belfry:
            there, back = (loop.replace("port=6379", f"port={port}")
                           .replace("port=7878", f"port={server.port}") for loop in loops())
            for name, (payload, due) in TIMERS.items():
                redis.ask("HSET", "payloads", name, payload)
                redis.ask("ZADD", "delayed", due, name)
            for again in range(2):
                subprocess.run([python, "-c", there], check=True, timeout=DEADLINE)
            cursor, timers = belfry.ask("LIST", "mail")
            assert len(timers) == len(TIMERS), timers
            print("ok   a_sorted_set_is_moved_once", flush=True)
            redis.ask("FLUSHALL")
            opening = "".join(line for line in there.splitlines(True) if not line.startswith(("for", " ")))
            subprocess.run([python, "-c", opening + back], check=True, timeout=DEADLINE)
            for name, (payload, due) in TIMERS.items():
                assert redis.ask("HGET", "payloads", name) == payload
                assert float(redis.ask("ZSCORE", "delayed", name)) == due
            print("ok   and_moved_back", flush=True)
    finally:
        redis.close()
        process.terminate()
        process.wait()


if shutil.which("redis-server") is None:
    skip("there is no redis-server here (package redis-server)")
with tempfile.TemporaryDirectory() as folder:
    main(find_python(), folder)
