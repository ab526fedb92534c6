#!/usr/bin/env python3
"""How a server starts, fails to start, and stops."""
import os
import signal
import socket
import time

from rig import PROGRAM, Server, main, run, until


def test_sigterm_answers_who_waits_and_keeps_everything():
    with Server("--sync", "loop") as server:
        worker, client = server.client(), server.client()
        worker.send("CLAIM", "empty", "WAIT", "60s")
        until(lambda: "requests_under_way:1" in client.ask("INFO", "clients"), "a claim that waits")
        for i in range(1000):
            client.send("SCHEDULE", "t", i, "ID", i, "IN", "1h")
        assert client.read() == "0"
        start = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        assert worker.read() == []
        answered = 1
        try:
            while True:
                client.read()
                answered += 1
        except EOFError:
            pass
        assert server.wait() == 0
        assert time.monotonic() - start < 15
        worker.close()
        client.close()
        server.start()
        with server.client() as again:
            for i in range(answered):
                assert again.ask("GET", "t", i) is not None, f"{i} of {answered} is lost"


def test_sigint_ends_it_too():
    with Server("--store", "memory") as server:
        assert server.stop(signal.SIGINT) == 0


def test_shutdown_ends_it():
    with Server("--sync", "loop") as server:
        client = server.client()
        client.send("SHUTDOWN")
        assert server.wait() == 0
        client.close()


def stuck_client(server):
    """A client that has not read its replies, until the server could send it no more."""
    stuck = server.client()
    stuck.socket.setblocking(False)
    data = b"*2\r\n$4\r\nECHO\r\n$60000\r\n" + b"x" * 60000 + b"\r\n"
    rest, stalled = b"", 0
    end = time.monotonic() + 20
    with server.client() as client:
        while time.monotonic() < end and stalled < 200:
            try:
                rest = rest or data * 10
                rest, stalled = rest[stuck.socket.send(rest):], 0
            except BlockingIOError:
                stalled += 1  # the server may only be slow: it has a turn
                assert client.ask("PING") == "PONG"
    return stuck


def test_a_client_that_does_not_read_does_not_hold_it_up():
    with Server("--store", "memory") as server:
        stuck = stuck_client(server)
        start = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - start < 15
        stuck.close()


def test_a_second_server_on_the_same_data_is_refused():
    with Server("--sync", "loop") as server:
        data = os.path.join(server.folder, "data")
        command = ("serve", "--data", data, "--resp", "127.0.0.1:0", "--http", "none")
        for deleted in ("", "LOCK", "superblock"):
            if deleted:
                os.unlink(os.path.join(data, deleted))
            status, _, errors = run(*command)
            assert status == 1 and "cannot open the data directory" in errors, errors
            assert f"in use by process {server.process.pid}" in errors, errors
            assert "busy or timed out" not in errors, errors


def test_what_is_no_data_directory_is_left_alone():
    with Server("--store", "memory") as server:
        command = ("serve", "--resp", "127.0.0.1:0", "--http", "none", "--data")
        folder = os.path.join(server.folder, "etc")
        os.mkdir(folder)
        with open(os.path.join(folder, "passwd"), "w"):
            pass
        status, _, errors = run(*command, folder)
        assert status == 1 and "not a Belfry data directory" in errors, errors
        assert "passwd" in errors and os.listdir(folder) == ["passwd"], errors
        if os.getuid() != 0:
            return
        status, _, errors = run(*command, "/proc/belfry")
        assert status == 1 and "input/output error" not in errors, errors


def test_nothing_is_written_among_foreign_files():
    """Not even for a moment, which the events of the folder would tell."""
    with Server("--store", "memory") as server:
        folder = os.path.join(server.folder, "etc")
        os.mkdir(folder)
        with open(os.path.join(folder, ".profile"), "w"):
            pass
        before = os.stat(folder)
        for flags in ((), ("--clock", "virtual"), ("--sync", "thread")):
            status, _, errors = run("serve", "--resp", "127.0.0.1:0", "--http", "none", "--data",
                                    folder, *flags)
            assert status == 1 and ".profile" in errors, errors
        after = os.stat(folder)
        assert before.st_mtime_ns == after.st_mtime_ns, "a name was added and removed"
        assert os.listdir(folder) == [".profile"]


def test_a_second_signal_ends_it_at_once():
    with Server("--store", "memory") as server:
        stuck = stuck_client(server)
        server.process.send_signal(signal.SIGTERM)
        until(lambda: "stopping" in server.log(), "the first signal")
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(5) == 0, "it stops in order, and sooner"
        assert "stopping at once" in server.log(), server.log()
        stuck.close()
        server.start()


def test_data_is_checked_after_a_kill():
    with Server("--sync", "loop") as server:
        with server.client() as client:
            for i in range(100):
                client.ask("SCHEDULE", "t", i, "IN", "1h")
        server.kill()
        server.start("--check-time", "30s")
        assert server.log().count("data checked") == 1
        assert server.stop() == 0
        server.start("--check-time", "30s")
        assert server.log().count("data checked") == 2, "it is checked after every stop"


def test_damage_after_a_kill_is_named():
    with Server("--sync", "loop") as server:
        with server.client() as client:
            client.ask("SCHEDULE", "t", "x", "IN", "1h")
        assert server.stop() == 0
        server.start()  # the first checkpoint brings it into the tree
        with server.client() as client:
            client.ask("SCHEDULE", "t", "x", "IN", "1h")
        server.kill()
        data = os.path.join(server.folder, "data")
        tree = os.path.join(data, "tree", "data.mdb")
        with open(tree, "r+b") as file:
            file.seek(8192)
            rest = file.read()
            file.seek(8192)
            file.write(b"\xa5" * len(rest))
        status, _, errors = run("serve", "--data", data, "--resp", "127.0.0.1:0", "--http", "none")
        assert status == 1 and "the data is damaged" in errors, errors
        with open(tree, "r+b") as file:
            file.seek(8192)
            file.write(rest)
        server.start()


def test_a_port_that_is_taken():
    with Server("--store", "memory") as server:
        status, _, errors = run("serve", "--store", "memory", "--resp", f"127.0.0.1:{server.port}",
                                "--http", "none")
        assert status == 1 and "cannot listen" in errors, errors
        data = os.path.join(server.folder, "new")
        status, _, errors = run("serve", "--data", data, "--resp", f"127.0.0.1:{server.port}",
                                "--http", "none")
        assert status == 1 and "cannot listen" in errors, errors
        assert not os.path.exists(data), "nothing was created for a server that cannot run"


def test_both_ports_are_the_same():
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    data = f"/tmp/belfry-test-same-{os.getpid()}"
    status, _, errors = run("serve", "--data", data, "--resp", address, "--http", address)
    assert status == 2 and "--http" in errors, errors
    assert not os.path.exists(data), "nothing was created for a server that cannot run"


def test_a_port_of_http_that_is_taken():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        status, _, errors = run("serve", "--store", "memory", "--resp", "127.0.0.1:0",
                                "--http", address)
        assert status == 1 and address in errors and "in use" in errors, errors
        assert "choose another port" in errors, errors


def test_the_usual_port_of_http_is_taken():
    try:
        taken = socket.create_server(("127.0.0.1", 7879))
    except OSError:
        taken = None  # by somebody else, which is as good
    status, _, errors = run("serve", "--store", "memory", "--resp", "127.0.0.1:0")
    if taken is not None:
        taken.close()
    assert status == 1 and "127.0.0.1:7879" in errors and "--http none" in errors, errors


def test_the_ports_are_in_a_file():
    with Server("--store", "memory", "--port-file", "/tmp/belfry-test-ports-%d" % os.getpid()) as server:
        path = server.flags[-1]
        with open(path) as file:
            assert file.read() == f"resp {server.port}\n"
        os.unlink(path)


def test_a_file_of_ports_that_cannot_be_written_is_said():
    status, _, errors = run("serve", "--store", "memory", "--resp", "127.0.0.1:0", "--http", "none",
                            "--port-file", "/nonexistent/ports")
    assert status == 1 and "--port-file /nonexistent/ports: No such file" in errors, errors


def refused(wanted, *flags):
    status, _, errors = run("serve", *flags)
    assert status == 2, (flags, status)
    assert wanted in errors, errors


def test_other_machines_need_keys():
    refused("--resp 0.0.0.0:7878", "--resp", "0.0.0.0:7878")
    refused("--http 192.0.2.1:80", "--http", "192.0.2.1:80")
    refused("--resp [::]:7878", "--resp", "[::]:7878")
    refused("--keys", "--resp=10.0.0.1:7878")


def test_flags_that_are_wrong():
    refused("--bogus", "--bogus", "1")
    refused("--resp", "--resp")
    refused("--resp localhost", "--resp", "localhost")
    refused("--resp 127.0.0.1:65536", "--resp", "127.0.0.1:65536")
    refused("--max-clients 0", "--max-clients", "0")
    refused("--max-payload 65M", "--max-payload", "65M")
    refused("commit, interval or none", "--durability", "always")
    refused("a duration from 1ms", "--durability-interval", "0")
    refused("unknown scheme 'postgres'", "--store", "postgres://localhost")
    refused("--log xml", "--log", "xml")
    refused("--config", "--config", "/does/not/exist")
    refused("--keys", "--keys", "/does/not/exist")


def test_a_file_and_flags_that_win():
    path = "/tmp/belfry-test-config-%d" % os.getpid()
    try:
        with open(path, "w") as file:
            file.write("# a comment\n[serve]\nstore = memory ; another\nmax-clients=7\nlog = json\n")
        with Server("--config", path, "--max-clients", "9") as server, server.client() as client:
            assert "maxclients:9" in client.ask("INFO", "clients")
            assert "store:memory" in client.ask("INFO", "store")
            assert '"message":"listening"' in server.log()
        with open(path, "w") as file:
            file.write("store = memory\n\nbogus = 1\n")
        refused(f"{path}:3: unknown setting bogus", "--config", path)
    finally:
        os.unlink(path)


def test_help_fits_a_screen():
    status, text, _ = run("serve", "--help")
    lines = text.splitlines()
    assert status == 0 and len(lines) <= 48 and max(map(len, lines)) <= 80, text


KEY = "correct-horse-battery-staple"


def test_keys():
    path = "/tmp/belfry-test-keys-%d" % os.getpid()
    _, all_line, _ = run("serve", "--hash-key", "root", "all", stdin=KEY + "\n")
    _, work_line, _ = run("serve", "--hash-key", "worker", "work", stdin=KEY + "2\n")
    assert KEY not in all_line
    try:
        with open(path, "w") as file:
            file.write("# keys\n" + all_line + work_line)
        os.chmod(path, 0o600)
        with Server("--store", "memory", "--keys", path) as server:
            with server.client() as client:
                assert client.refused("SCHEDULE", "t", "x").startswith("NOAUTH")
                assert client.refused("AUTH", "root", KEY + "2").startswith(("NOAUTH", "WRONGPASS"))
                assert client.refused("AUTH", "nobody", KEY).startswith(("NOAUTH", "WRONGPASS"))
                assert client.refused("SCHEDULE", "t", "x").startswith("NOAUTH")
                assert client.ask("AUTH", "root", KEY) == "OK"
                client.ask("SCHEDULE", "t", "x")
            with server.client() as client:
                assert client.ask("AUTH", KEY + "2") == "OK"
                assert client.refused("SCHEDULE", "t", "x").startswith("NOPERM")
                assert client.ask("CLAIM", "t")[0][3] == "x"
            assert KEY not in server.log()
        with open(path, "a") as file:
            file.write("broken:all:sha256$00$11\n")
        refused("line 4", "--keys", path)
        os.chmod(path, 0o606)
        with open(path, "w") as file:
            file.write(all_line)
        refused("writable by everybody", "--keys", path)
    finally:
        os.unlink(path)


def test_keys_that_are_too_short():
    status, _, errors = run("serve", "--hash-key", stdin="secret\n")
    assert status == 2 and "20" in errors and "secret" not in errors, errors


main(dict(globals()))
