#!/usr/bin/env python3
"""Runs the Python loops of docs/GUIDE.md: a sorted set of Redis to Belfry and back, and Celery beat;
and the one of README.md.

    guide.py BELFRY GUIDE README FOLDER

Needs redis-server and redis-py; where one is missing, that is reported and the test is skipped. The
loops run with the redis-py of this machine, and with the newest, which is installed in FOLDER: its
replies are maps where those of the older ones are lists. A
module of the test stands for Celery. (The shell commands of the guide are run by
tests/cli/quickstart.sh, its workers by tests/examples.)
"""
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import textwrap
import time

CLIENTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "clients")
sys.path.insert(0, CLIENTS)
from run import Server, find_python, install_python, skip  # noqa: E402
from rig import DEADLINE, Client  # noqa: E402

CELERY = """
class Celery:
    def __init__(self, broker):
        pass
    def send_task(self, name, args):
        print(name, args, flush=True)
"""
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
    """The blocks of Python: from a sorted set, back to a sorted set, and to Celery."""
    with open(sys.argv[2]) as file:
        blocks = re.findall(r"^```python\n(.*?)^```", file.read(), re.M | re.S)
    assert [word in block for word, block in zip(("zscan_iter", "zadd", "send_task"), blocks)] == [True] * 3
    return blocks


def beat_payload():
    """The payload that the guide schedules for Celery."""
    with open(sys.argv[2]) as file:
        return re.search(r"^belfry schedule beat '(.*?)' ", file.read(), re.M)[1]


def check_readme(python):
    with open(sys.argv[3]) as file:
        loop = textwrap.dedent(re.search(r"^    import redis.*?\n\n", file.read(), re.M | re.S)[0])
    with Server("--store", "memory", "--clock", "virtual") as server, server.client() as belfry:
        loop = loop.replace("port=7878", f"port={server.port}")
        process = subprocess.Popen([python, "-c", loop], stdout=subprocess.PIPE, text=True)
        try:
            end = time.monotonic() + DEADLINE
            while belfry.ask("TOPICS") != ["mail"]:
                assert process.poll() is None and time.monotonic() < end, "nothing is scheduled"
                time.sleep(0.02)
            belfry.ask("CLOCK", "ADVANCE", "3s")
            assert process.stdout.readline() == "b'Good morning'\n"
            assert process.wait(DEADLINE) == 0
        finally:
            process.kill()
            process.communicate()
        topic = belfry.ask("TOPIC", "mail")
        assert topic[topic.index("completed_total") + 1] == 1, topic
    print("ok   the_loop_of_the_readme_works", flush=True)


def check_celery(python, folder):
    with open(os.path.join(folder, "celery.py"), "w") as file:
        file.write(CELERY)
    with Server("--store", "memory") as server, server.client() as belfry:
        belfry.ask("CONFIGURE", "beat", "retention", "1h")
        belfry.ask("SCHEDULE", "beat", beat_payload(), "ID", "daily")
        loop = loops()[2].replace("port=7878", f"port={server.port}")
        process = subprocess.Popen([python, "-c", loop], stdout=subprocess.PIPE, text=True,
                                   env={**os.environ, "PYTHONPATH": folder})
        try:
            assert process.stdout.readline() == "reports.daily [7]\n"
            end = time.monotonic() + DEADLINE
            while "done" not in belfry.ask("GET", "beat", "daily"):
                assert time.monotonic() < end, belfry.ask("GET", "beat", "daily")
                time.sleep(0.02)
        finally:
            process.kill()
            process.communicate()
    print("ok   a_due_timer_is_sent_to_celery", flush=True)


def check_sorted_set(python, folder):
    process, redis, port = start_redis(folder)
    try:
        with Server("--store", "memory") as server, server.client() as belfry:
            there, back = (loop.replace("port=6379", f"port={port}")
                           .replace("port=7878", f"port={server.port}") for loop in loops()[:2])
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


check_readme(find_python())
if shutil.which("redis-server") is None:
    skip("there is no redis-server here (package redis-server)")
with tempfile.TemporaryDirectory() as folder:
    check_celery(find_python(), folder)
    check_sorted_set(find_python(), folder)
newest = install_python(os.path.join(CLIENTS, "python", "redis.txt"), os.path.abspath(sys.argv[4]))
check_readme(newest)
with tempfile.TemporaryDirectory() as folder:
    check_celery(newest, folder)
    check_sorted_set(newest, folder)
