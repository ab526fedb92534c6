#!/usr/bin/env python3
"""Damage of the tree: found before the start, or while the server is running, and named."""
import json
import os
import signal
import subprocess
import sys
import tempfile

from rig import DEADLINE, PROGRAM, Server, main, until

TIMERS = 2000


def fill(server):
    """Schedules timers; a backup makes the server write them to its tree."""
    with server.client() as client:
        for i in range(TIMERS):
            client.send("SCHEDULE", "t", f"payload-{i:06}", "ID", i, "IN", "1h")
        for i in range(TIMERS):
            client.read()
        client.ask("BACKUP", os.path.join(server.folder, "backup"))


def tree_of(server):
    return os.path.join(server.folder, "data", "tree", "data.mdb")


def flip(server, payload):
    """Flips a bit of a payload, wherever the file has it."""
    with open(tree_of(server), "r+b") as file:
        data = file.read()
        at = data.find(payload)
        assert at > 0, "the tree does not have the payload"
        while at > 0:
            file.seek(at)
            file.write(bytes([data[at] ^ 1]))
            at = data.find(payload, at + 1)


def facts(server):
    with server.client() as client:
        lines = client.ask("INFO", "store").split("\r\n")
    return dict(line.split(":", 1) for line in lines if ":" in line)


def serve(server, *flags):
    """Runs a server that ends by itself. Returns its exit status."""
    log = open(os.path.join(server.folder, "log"), "ab")
    command = [PROGRAM, "serve", "--data", os.path.join(server.folder, "data"),
               "--resp", "127.0.0.1:0", "--http", "none", *flags]
    status = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=log, timeout=DEADLINE)
    log.close()
    return status.returncode


def is_named(server):
    return "the data is damaged; nothing was changed" in server.log() and "page" in server.log()


def test_a_start_checks_data_that_was_closed():
    with Server() as server:
        fill(server)
        server.stop()
        server.start("--check-time", "30s")
        assert "data checked rows=" in server.log()
        assert facts(server)["tree_checks_done"] == "1"
        assert facts(server)["tree_check"] == "done"


def test_damage_is_found_before_the_start():
    with Server() as server:
        fill(server)
        server.stop()
        flip(server, b"payload-000777")
        assert serve(server, "--check-time", "30s") == 1
        assert is_named(server), server.log()
        assert "listening" not in server.log().rsplit("stopped", 1)[1]
        flip(server, b"qayload-000777")
        server.start("--check-time", "30s")


def test_the_rest_is_checked_while_the_server_is_running():
    for flag in (("--check-time", "0ms"), ("--check-rows", "0")):
        with Server() as server:
            fill(server)
            server.stop()
            server.start(*flag)
            until(lambda: facts(server)["tree_check"] == "done", "the end of the check")
            found = facts(server)
            assert int(found["tree_check_rows"]) >= 2 * TIMERS
            assert found["tree_check_pages"] == found["tree_check_pages_done"]
            assert found["tree_check_snapshots"] == "1"
            assert "tree checked rows=" in server.log()


def test_damage_that_is_found_while_running_ends_the_server():
    with Server() as server:
        fill(server)
        server.stop()
        flip(server, b"payload-000777")
        size = os.path.getsize(tree_of(server))
        assert serve(server, "--check-time", "0ms") == 1
        assert is_named(server), server.log()
        assert os.path.getsize(tree_of(server)) == size  # nothing was deleted


def test_the_tree_is_checked_again():
    with Server("--scrub", "1s") as server:
        fill(server)
        until(lambda: int(facts(server)["tree_checks_done"]) >= 2, "a second check")
        flip(server, b"payload-000777")
        assert server.wait() == 1
        assert is_named(server), server.log()


def test_a_page_that_cannot_be_read_is_named():
    for form in ("text", "json"):
        with Server("--log", form) as server:
            fill(server)
            server.stop()
            server.start("--check-time", "30s")
            with server.client() as client:
                os.truncate(tree_of(server), 2 * 4096)
                try:
                    client.ask("GET", "t", 777)
                    raise AssertionError("a row that is gone was read")
                except (EOFError, OSError):
                    pass
            assert server.wait() == 1
            line = server.log().rstrip("\n").split("\n")[-1]
            assert "cannot be read" in line and "@" not in line, line
            if form == "json":
                assert json.loads(line)["level"] == "error"


def test_a_checker_ends_with_its_server():
    """A checker that waits for a file that nobody writes ends when its parent is killed."""
    with tempfile.TemporaryDirectory(prefix="belfry-test-") as folder:
        os.mkdir(os.path.join(folder, "tree"))
        os.mkfifo(os.path.join(folder, "tree", "data.mdb"))
        parent = subprocess.Popen(
            [sys.executable, "-c",
             "import os, subprocess, sys\n"
             "child = subprocess.Popen([*sys.argv[1:4], str(os.getpid()), '0'])\n"
             "print(child.pid, flush=True)\n"
             "child.wait()", PROGRAM, "check-tree", folder], stdout=subprocess.PIPE, text=True)
        child = int(parent.stdout.readline())
        until(lambda: os.getpriority(os.PRIO_PROCESS, child) == 10, "its low priority, set last")
        names = os.listdir(f"/proc/{child}/fd")
        assert len(names) <= 5, names  # the standard ones, and LMDB's
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        parent.stdout.close()
        until(lambda: not is_alive(child), "the end of the checker")


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_a_checker_of_another_server_does_nothing():
    with Server() as server:
        data = os.path.join(server.folder, "data")
        done = subprocess.run([PROGRAM, "check-tree", data, str(server.process.pid), "0"],
                              capture_output=True, timeout=DEADLINE)
        assert done.returncode == 1 and done.stdout == b""


main(globals())
