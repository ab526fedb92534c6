#!/usr/bin/env python3
"""Pressure of a real server: by its memory, and by the depth of a topic."""
import re
import subprocess
import tempfile

from rig import PROGRAM, Refusal, Server, main, until


def pressure(client):
    return re.search(r"^pressure:(\w+)\r$", client.ask("INFO", "pressure"), re.M)[1]


def answer(client):
    try:
        return client.read()
    except Refusal as refusal:
        return refusal


def test_memory_that_is_used_up_refuses_timers_until_they_are_gone():
    with Server("--store", "memory", "--memory", "20M") as server, server.client() as client:
        for _ in range(205):  # 20.5 MB; the server may notice before the last of them
            client.send("SCHEDULE", "t", b"x" * 100_000)
        answers = [answer(client) for _ in range(205)]
        until(lambda: pressure(client) == "critical", "pressure is critical")
        refusal = client.refused("SCHEDULE", "t", "x")
        assert refusal.startswith("FULL pressure is critical: "), refusal
        assert "--memory" in refusal, refusal
        info = client.ask("INFO", "pressure")
        assert re.search(r"^pressure_memory:level=critical,", info, re.M), info
        assert len(client.ask("CLAIM", "t", "COUNT", "3")) == 3
        assert not isinstance(answers[100], Refusal), answers[100]
        assert client.ask("PURGE", "t", "STATE", "ready") > 100
        until(lambda: pressure(client) == "none", "pressure is none")
        client.ask("SCHEDULE", "t", "x")
        log = server.log()
        assert "pressure changed level=critical cause=memory percent=" in log, log
        assert "pressure changed level=none" in log, log


def test_the_level_follows_the_depth_of_a_topic():
    with Server("--store", "memory", "--http", "127.0.0.1:0") as server, server.client() as client:
        client.ask("CONFIGURE", "t", "depth", "1000")
        count = 0
        for limit, level in ((500, "none"), (501, "low"), (700, "low"), (701, "medium"),
                             (850, "medium"), (851, "high"), (950, "high"), (951, "critical")):
            while count < limit:
                client.ask("SCHEDULE", "t", "x", "IN", "1h")
                count += 1
            until(lambda: f"used={limit}," in client.ask("INFO", "pressure"), f"{limit} are seen")
            assert pressure(client) == level, (limit, client.ask("INFO", "pressure"))
        refusal = client.refused("SCHEDULE", "t", "x")
        assert refusal.startswith("FULL pressure is critical: topic t "), refusal
        client.ask("SCHEDULE", "u", "x", "ID", "a")
        assert "The pressure is critical (depth)" in " ".join(client.ask("EXPLAIN", "u", "a"))
        client.ask("CONFIGURE", "t", "depth", "2000")
        until(lambda: pressure(client) == "low", "pressure is low")
        client.ask("SCHEDULE", "t", "x")


def test_a_wrong_limit_is_refused():
    with tempfile.TemporaryDirectory() as folder:
        got = subprocess.run([PROGRAM, "serve", "--data", folder, "--memory", "12"],
                             capture_output=True, text=True, timeout=30)
        assert got.returncode == 2 and "--memory" in got.stderr, got


main(globals())
