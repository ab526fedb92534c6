#!/usr/bin/env python3
"""Commands and replies of a real server."""
import os
import select
import shutil
import socket
import subprocess
import threading
import time

from rig import Server, frame, main, until


def test_schedule_claim_and_ack():
    with Server("--sync", "loop") as server, server.client() as client:
        assert client.ask("SCHEDULE", "mail", "hello", "ID", "a") == "a"
        delivery = client.ask("CLAIM", "mail")[0]
        assert delivery[1:4] == ["mail", "a", "hello"], delivery
        assert client.ask("CLAIM", "mail") == []
        assert client.ask("ACK", delivery[0]) == 1
        assert client.ask("ACK", delivery[0]) == 0
        assert client.ask("GET", "mail", "a") is None


def test_what_was_acknowledged_is_there_after_a_restart():
    with Server("--sync", "loop") as server:
        with server.client() as client:
            client.ask("SCHEDULE", "t", "x", "ID", "kept", "IN", "1h")
        assert server.stop() == 0
        server.start()
        with server.client() as client:
            assert "kept" in client.ask("GET", "t", "kept")


def test_a_pipeline_is_answered_in_order():
    count = 20000
    with Server("--sync", "loop") as server, server.client() as client:
        def flood():
            for i in range(count):
                client.socket.sendall(frame("ECHO", i) if i % 2 else frame("SCHEDULE", "p", i, "ID", i))
        writer = threading.Thread(target=flood)
        writer.start()
        for i in range(count):
            assert client.read() == str(i)
        writer.join()


def test_a_frame_split_at_every_byte():
    data = frame("SCHEDULE", "t", "payload", "ID", "x")
    with Server("--store", "memory") as server, server.client() as client:
        for at in range(1, len(data)):
            client.socket.sendall(data[:at])
            client.socket.sendall(data[at:])
            assert client.read() == "x"


def test_a_claim_that_waits_is_served_when_it_is_due():
    with Server("--sync", "loop") as server, server.client() as worker, server.client() as client:
        worker.send("CLAIM", "t", "WAIT", "20s")
        worker.send("PING")  # held back until the claim is answered
        until(lambda: "requests_under_way:1" in client.ask("INFO", "clients"), "a claim that waits")
        start = time.time()
        client.ask("SCHEDULE", "t", "soon", "IN", "50ms")
        delivery = worker.read()[0]
        assert delivery[3] == "soon"
        assert time.time() * 1000 >= delivery[4], "it is early"
        assert time.time() - start >= 0.049
        assert worker.read() == "PONG"


def test_a_wait_ends_empty():
    with Server("--store", "memory") as server, server.client() as client:
        start = time.monotonic()
        assert client.ask("CLAIM", "t", "WAIT", "100ms") == []
        assert time.monotonic() - start >= 0.099


def test_who_hangs_up_while_waiting_gets_nothing():
    with Server("--store", "memory") as server, server.client() as client:
        for _ in range(5):
            gone = server.client()
            gone.send("CLAIM", "t", "WAIT", "60s")
            until(lambda: "requests_under_way:1" in client.ask("INFO", "clients"), "a claim")
            gone.close()
            until(lambda: "requests_under_way:0" in client.ask("INFO", "clients"), "its end")
        client.ask("SCHEDULE", "t", "mine")
        assert client.ask("CLAIM", "t")[0][3] == "mine"


def test_half_closed_is_still_answered():
    with Server("--sync", "loop") as server, server.client() as client:
        client.socket.sendall(frame("SCHEDULE", "t", "x", "ID", "h") + frame("PING"))
        client.socket.shutdown(socket.SHUT_WR)
        assert client.file.read() == b"$1\r\nh\r\n+PONG\r\n"


def test_quit_says_goodbye():
    with Server("--store", "memory") as server, server.client() as client:
        assert client.ask("QUIT") == "OK"
        assert client.file.read() == b""


def test_a_sync_thread_answers_too():
    with Server("--sync", "thread") as server, server.client() as client:
        for i in range(50):
            assert client.ask("SCHEDULE", "t", i, "ID", i) == str(i)
        clients = [server.client() for _ in range(20)]
        for i, each in enumerate(clients):
            each.send("CLAIM", "t")
        got = {each.read()[0][2] for each in clients}
        assert len(got) == 20
        for each in clients:
            each.close()


def test_info_has_its_sections():
    with Server("--store", "memory") as server, server.client() as client:
        text = client.ask("INFO")
        for word in ("# Server", "# Clients", "# Stats", "# Store", "# Capabilities",
                     f"tcp_port:{server.port}", "store:memory"):
            assert word in text, text
        assert "# Store" not in client.ask("INFO", "server")
        able = client.ask("INFO", "capabilities").split()
        assert "jobs:1" in able and "limits:1" in able, able


def test_info_says_how_durable():
    for durability in ("commit", "interval", "none"):
        with Server("--durability", durability) as server, server.client() as client:
            assert f"durability:{durability}\r\n" in client.ask("INFO", "store")


def test_info_counts_timers():
    with Server("--store", "memory") as server, server.client() as client:
        client.ask("SCHEDULE", "a", "x", "IN", "1h")
        client.ask("SCHEDULE", "b", "x")
        until(lambda: "timers_ready:1\r\n" in client.ask("INFO", "store"), "a census")
        assert "topics:2\r\n" in client.ask("INFO", "store")


def test_a_backup_can_be_served():
    with Server("--sync", "loop") as server:
        with server.client() as client:
            for i in range(100):
                client.ask("SCHEDULE", "t", i, "ID", i, "IN", "1h")
            copy = os.path.join(server.folder, "copy")
            assert client.ask("BACKUP", copy) == "OK"
            client.refused("BACKUP", copy)
        assert server.stop() == 0
        server.start("--data", copy)
        with server.client() as client:
            assert all(client.ask("GET", "t", i) is not None for i in range(100))


def test_a_request_above_a_limit_is_named():
    with Server("--store", "memory", "--max-payload", "1M") as server, server.client() as client:
        limits = ": at most 16384 arguments, "
        refusal = client.refused("PING", *["x"] * 16384)
        assert refusal.startswith("BADARG the request has too many arguments" + limits), refusal
        refusal = client.refused("ECHO", "x" * (32 << 20))
        assert refusal.startswith("BADARG the request has too many bytes" + limits), refusal
        assert client.ask("PING") == "PONG"


def test_a_refused_backup_is_logged():
    """One warning for each, with the path and the reason that the client gets."""
    with Server("--sync", "loop") as server, server.client() as client:
        full = os.path.join(server.folder, "full")
        file = os.path.join(server.folder, "file")
        os.mkdir(full)
        for name in (os.path.join(full, "x"), file):
            with open(name, "w"):
                pass
        targets = (full, file, os.path.join(file, "below"), os.path.join(server.folder, "no", "such"),
                   "/proc/belfry", "x" * 5000)
        for count, target in enumerate(targets, 1):
            refusal = client.refused("BACKUP", target)
            lines = [line for line in server.log().splitlines() if "backup failed" in line]
            assert len(lines) == count, (target, lines)
            assert " warn " in lines[-1] and "folder=" + target[:100] in lines[-1], lines[-1]
            assert refusal.split(" ", 1)[1][:80] in lines[-1].replace("\\", ""), (refusal, lines[-1])


def answered_meanwhile(asked, other, *words):
    """Returns the replies of the second client until the first, which has asked before, gets one."""
    answers = []
    while not select.select([asked.socket], [], [], 0)[0]:
        answers.append(other.ask(*words))
    return answers[:-1]  # the last may have come behind it


def test_a_backup_holds_up_nobody():
    with Server("--sync", "loop") as server, server.client() as client, server.client() as other:
        client.socket.sendall(b"".join(frame("SCHEDULE", "t", "x" * 2000, "IN", "1h")
                                       for _ in range(10000)))
        for _ in range(10000):
            client.read()
        client.send("BACKUP", os.path.join(server.folder, "copy"))
        until(lambda: "backup started" in server.log(), "a backup")
        refusal = other.refused("BACKUP", os.path.join(server.folder, "another"))
        assert refusal.startswith("FULL"), refusal
        assert len(answered_meanwhile(client, other, "SCHEDULE", "t", "y", "IN", "1h")) > 0
        assert client.read() == "OK"
        assert other.ask("BACKUP", os.path.join(server.folder, "third")) == "OK"


def test_a_backup_for_who_says_no_more():
    with Server("--sync", "loop") as server, server.client() as client:
        client.send("BACKUP", os.path.join(server.folder, "copy"))
        client.socket.shutdown(socket.SHUT_WR)
        assert client.read() == "OK"


def test_redis_cli():
    if shutil.which("redis-cli") is None:
        print("SKIPPED redis_cli: there is no redis-cli (package redis-tools)")
        return
    with Server("--store", "memory") as server:
        def cli(*words):
            return subprocess.run(["redis-cli", "-p", str(server.port), *words],
                                  capture_output=True, text=True, timeout=30).stdout
        assert cli("SCHEDULE", "t", "hello", "ID", "a") == "a\n"
        assert "hello" in cli("CLAIM", "t")
        assert cli("-3", "PING") == "PONG\n"


main(dict(globals()))
