#!/usr/bin/env python3
"""Failing and slow disks: strace injects errors and delays into the system calls of the server."""
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request

import rig
from rig import Refusal, Server, main


def traced(inject):
    """A script that runs the server under strace; the rig runs it instead of the server."""
    folder = tempfile.mkdtemp(prefix="belfry-strace-")
    path = os.path.join(folder, "belfry")
    with open(path, "w") as file:
        file.write('#!/bin/sh\nexport ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0"\n'
                   f'exec strace -f -qq -o /dev/null -e trace=fdatasync -e inject=fdatasync:{inject} "{rig.PROGRAM}" "$@"\n')
    os.chmod(path, 0o700)
    return path


def can_trace():
    try:
        return subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"]).returncode == 0
    except FileNotFoundError:
        return False


class Traced(Server):
    def __init__(self, inject, *flags, folder=None):
        self.program = traced(inject)
        self.is_traced = True
        super().__init__(*flags, folder=folder)

    def start(self, *flags):
        program = rig.PROGRAM
        try:
            if self.is_traced:
                rig.PROGRAM = self.program
            super().start(*flags)
        finally:
            rig.PROGRAM = program
        # The server would survive its strace, so the server is killed.
        with self.client() as client:
            about = client.ask("INFO", "server")
        self.pid = int(about.split("process_id:")[1].split()[0])
        return self

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        self.wait()

    def __exit__(self, *ignored):
        super().__exit__(*ignored)
        shutil.rmtree(os.path.dirname(self.program))


def no_ack_after_a_failed_sync(*flags):
    acknowledged = []
    # The first syncs are those of the probe and of opening; a later one fails.
    with Traced("error=EIO:when=60", *flags) as server:
        client = server.client()
        try:
            for i in range(1000):
                client.ask("SCHEDULE", "t", i, "ID", i, "IN", "1h")
                acknowledged.append(i)
        except Refusal as refusal:
            assert str(refusal).startswith("IO"), refusal
        except (EOFError, ConnectionError):
            pass
        client.close()
        assert len(acknowledged) < 1000, "no sync has failed"
        assert server.wait() == 1, "it goes on"
        assert "store failed" in server.log()
        assert "log-0 cannot be synced: Input/output error" in server.log(), server.log()
        server.is_traced = False
        server.start()
        with server.client() as again:
            for i in acknowledged:
                assert again.ask("GET", "t", i) is not None, f"{i} was acknowledged, and is lost"


def test_no_ack_after_a_failed_sync_in_the_loop():
    no_ack_after_a_failed_sync("--sync", "loop")


def test_nor_in_a_thread():
    no_ack_after_a_failed_sync("--sync", "thread")


def is_readable(client):
    return bool(select.select([client.socket], [], [], 0)[0])


def test_a_read_waits_for_the_sync_of_what_it_has_seen():
    with Traced("delay_enter=300000") as server:
        writer = server.client()
        with server.client() as reader:
            waited = 0
            for i in range(3):
                writer.send("SCHEDULE", "t", i, "ID", i, "IN", "1h")
                found = None
                while found is None:
                    is_answered = is_readable(writer)
                    found = reader.ask("GET", "t", i)
                waited += not is_answered
                assert reader.ask("PING") == "PONG"  # all that left with the answer has come
                assert is_readable(writer), f"{i} was shown before it was synced"
                assert writer.read() == str(i)
            assert waited > 0, "no read came before the sync"
        writer.close()
        os.kill(server.pid, signal.SIGTERM)
        assert server.wait() == 0


def test_a_slow_disk_holds_up_only_those_who_write():
    with Traced("delay_enter=300000") as server:
        writer = server.client()
        with server.client() as reader:
            assert "sync:thread" in reader.ask("INFO", "store"), "it was not chosen"
            before = 0
            for i in range(3):
                writer.send("SCHEDULE", "t", i, "ID", i)
                for _ in range(10):
                    assert reader.ask("PING") == "PONG"
                    before += not is_readable(writer)
                assert writer.read() == str(i)
            assert before > 0, "pings wait for the disk"
        writer.close()
        os.kill(server.pid, signal.SIGTERM)
        assert server.wait() == 0


def test_a_disk_that_becomes_slow_is_left_to_a_thread():
    if not os.path.isdir("/dev/shm"):
        print("without a fast disk: a_disk_that_becomes_slow_is_left_to_a_thread")
        return
    folder = tempfile.mkdtemp(prefix="belfry-test-", dir="/dev/shm")  # fast at first
    with Traced("delay_enter=100000:when=40+", folder=folder) as server:
        writer = server.client()
        with server.client() as reader:
            was_fast = "sync:loop" in reader.ask("INFO", "store")
            for i in range(200):
                assert writer.ask("SCHEDULE", "t", i, "ID", i, "IN", "1h") == str(i)
                if "sync:thread" in reader.ask("INFO", "store"):
                    break
            assert i < 199, "the loop goes on waiting for the disk"
            assert not was_fast or server.log().count("syncing in=") == 2, server.log()
            for i in range(45):  # strace counts the syncs of each thread
                assert writer.ask("SCHEDULE", "t", i, "ID", "more", "IN", "1h") == "more"
            before = 0
            for i in range(3):
                writer.send("SCHEDULE", "t", i, "ID", f"late{i}", "IN", "1h")
                for _ in range(10):
                    assert reader.ask("GET", "t", 0)
                    before += not is_readable(writer)
                assert writer.read() == f"late{i}"
            assert before > 0, "reads wait for the disk"
        writer.close()
        os.kill(server.pid, signal.SIGTERM)
        assert server.wait() == 0
        with server.start().client() as reader:
            assert reader.ask("GET", "t", "late2")
        os.kill(server.pid, signal.SIGTERM)
        assert server.wait() == 0


def test_a_hanging_disk_holds_up_no_figures():
    """/metrics, INFO, and what is synced: while a sync hangs for longer than the test waits."""
    with Traced("delay_enter=60000000:when=60+", "--sync", "thread", "--http", "127.0.0.1:0") as server:
        url = f"http://{server.places['http']}"
        writer, count = server.client(), 0
        with server.client() as reader:
            reader.ask("SCHEDULE", "quiet", "x", "ID", "q", "IN", "1h")
            while count < 1000:
                writer.send("SCHEDULE", "t", count, "ID", count, "IN", "1h")
                if not select.select([writer.socket], [], [], 3)[0]:
                    break
                writer.read()
                count += 1
            assert count < 1000, "no sync hangs"
            for _ in range(2):
                with urllib.request.urlopen(url + "/metrics", timeout=rig.DEADLINE) as page:
                    text = page.read().decode()
                assert 'topic="t"' in text and 'topic="quiet"' in text, text
            assert "timers_scheduled:" in reader.ask("INFO")
            assert reader.ask("TOPICS") == ["quiet", "t"]
            for command in (("GET", "quiet", "q"), ("LIST", "quiet"), ("TOPIC", "quiet"),
                            ("AGENDA", "TOPIC", "quiet")):
                assert reader.ask(*command)
            assert not is_readable(writer), "the sync has ended"
        server.process.kill()  # first: strace would hold the server until the delay is over
        server.kill()


if not can_trace():
    print("SKIPPED faults: strace is not there, or may not trace (package strace)")
    sys.exit(77)
main(dict(globals()))
