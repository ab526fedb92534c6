#!/usr/bin/env python3
"""Clients without a key, wrong keys, keys that are read again, and keys that are limited to topics."""
import os
import shutil
import signal
import socket
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from rig import Refusal, Server, main, run, until  # noqa: E402

KEYS = {"root": "correct-horse-battery-staple", "reader": "incorrect-horse-battery",
        "mailer": "the-key-of-the-mail-topics"}
PERMISSIONS = {"root": "all", "reader": "read", "mailer": "all,@mail,@sms.*"}
CROWD = 40
FLOOD = b"PING\n" * 13000
KIB = 1024


def line_of(name, permissions=None):
    status, line, errors = run("serve", "--hash-key", name, permissions or PERMISSIONS[name],
                               stdin=KEYS[name] + "\n")
    assert status == 0, errors
    return line


class Keys:
    """A key file; the lines stay in the order in which they are given."""

    def __init__(self, *lines, mode=0o600):
        fd, self.path = tempfile.mkstemp(prefix="belfry-test-keys-")
        os.close(fd)
        os.chmod(self.path, mode)
        self.write(*lines)

    def write(self, *lines):
        with open(self.path, "w") as file:
            file.write("".join(lines))

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        os.unlink(self.path)


def serve(keys, *flags):
    return Server("--store", "memory", "--keys", keys.path, *flags)


def enter(server, name):
    client = server.client()
    assert client.ask("AUTH", name, KEYS[name]) == "OK"
    return client


def info(client, *sections):
    text = client.ask("INFO", *sections)
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)


def heard(client):
    """All bytes until the server closes the connection."""
    data = b""
    try:
        while True:
            part = client.socket.recv(65536)
            if not part:
                return data
            data += part
    except ConnectionError:
        return data


def heard_refusal(client):
    try:
        raise AssertionError(f"not refused: {client.read()}")
    except Refusal as refusal:
        return str(refusal)


def memory_of(server):
    with open(f"/proc/{server.process.pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:")) * KIB


def test_a_silent_stranger_is_dropped():
    with Keys(line_of("root")) as keys, serve(keys, "--auth-timeout", "100ms") as server:
        with enter(server, "root") as root:
            with server.client() as silent, server.client() as talker:
                talker.send("PING")
                assert heard(silent) == b""
                assert heard(talker).startswith(b"-NOAUTH ")
            assert info(root, "clients")["clients_unauthenticated_dropped"] == "2"
            root.ask("RESET")  # is a stranger again
            assert heard(root) == b""


def test_strangers_that_do_not_read_cost_little():
    with Keys(line_of("root")) as keys, serve(keys) as server, enter(server, "root") as root:
        before, crowd = memory_of(server), []
        for _ in range(CROWD):
            client = server.client()
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.socket.setblocking(False)
            crowd.append(client)
        for _ in range(100):
            for client in crowd:
                try:
                    client.socket.send(FLOOD)
                except (BlockingIOError, ConnectionError):
                    pass
            assert root.ask("PING") == "PONG"
        grown = memory_of(server) - before
        assert grown < CROWD * 64 * KIB + (4 << 20), f"{grown} bytes for {CROWD} strangers"
        print(f"     {grown // KIB} KiB for {CROWD} strangers that do not read")
        for client in crowd:
            client.close()


def test_a_stranger_gets_less_than_it_sends():
    with Keys(line_of("root")) as keys, serve(keys) as server:
        with server.client() as client:
            try:
                client.socket.sendall(FLOOD)
            except ConnectionError:
                pass
            out = len(heard(client))
            assert out < 1024, out
            print(f"     {len(FLOOD)} bytes in, {out} bytes out")


def test_strangers_give_way_to_a_new_client():
    with Keys(line_of("root")) as keys, serve(keys, "--max-clients", "4") as server:
        with enter(server, "root") as root:
            crowd = [server.client() for _ in range(3)]
            crowd[1].refused("PING")  # has spoken, and has no key
            until(lambda: info(root, "clients")["connected_clients"] == "4", "a full port")
            known = [root]
            for stranger in crowd:  # the oldest goes first
                known.append(enter(server, "root"))
                assert heard_refusal(stranger) == "ERR max number of clients reached"
                assert heard(stranger) == b""
            with server.client() as late:
                assert heard_refusal(late) == "ERR max number of clients reached"
            assert all(client.ask("PING") == "PONG" for client in known)
            assert info(root, "clients")["clients_unauthenticated_dropped"] == "3"


def test_guesses_are_delayed_and_logged():
    with Keys(line_of("root")) as keys, serve(keys) as server, enter(server, "root") as root:
        guessers = [server.client() for _ in range(25)]
        for number, guesser in enumerate(guessers):
            guesser.send("AUTH", "root", f"guess {number}")
            if number < 20:
                assert heard_refusal(guesser).startswith("NOAUTH")
        with enter(server, "root"):  # at once, while the guessers wait
            log = server.log()
            assert info(root, "clients")["wrong_keys"] == "25"
        for guesser in guessers[20:]:
            assert heard_refusal(guesser).startswith("NOAUTH")
            assert heard(guesser) == b""  # closed at its first wrong key
        lines = [line for line in log.splitlines() if "wrong key" in line]
        assert len(lines) == 21, log
        assert all("address=127.0.0.1:" in line and "user=root" in line for line in lines), log
        assert sum("too many wrong keys" in line for line in lines) == 1, log
        assert "guess" not in log
        for guesser in guessers:
            guesser.close()


def test_permissions_are_one_word():
    """What is behind the permissions would be lost, and the key would not be limited to topics."""
    status, line, errors = run("serve", "--hash-key", "mailer", "all", "@mail",
                               stdin=KEYS["mailer"] + "\n")
    assert status == 2 and line == "" and "without spaces" in errors, (status, line, errors)


def test_keys_are_read_again():
    with Keys(line_of("root"), line_of("reader"), line_of("mailer")) as keys, \
            serve(keys) as server, enter(server, "root") as root, \
            enter(server, "reader") as reader, enter(server, "mailer") as mailer:
        mailer.send("CLAIM", "mail", "WAIT", "1h")
        until(lambda: info(root, "clients")["requests_under_way"] == "1", "a claim that waits")
        assert reader.refused("SCHEDULE", "mail", "x").startswith("NOPERM")
        keys.write(line_of("root"), "nonsense\n")
        server.process.send_signal(signal.SIGHUP)
        until(lambda: "the old ones stay valid" in server.log(), "a line in the log")
        assert reader.refused("SCHEDULE", "mail", "x").startswith("NOPERM")
        keys.write(line_of("reader", "read,write"))
        server.process.send_signal(signal.SIGHUP)
        until(lambda: "keys read again" in server.log(), "a line in the log")
        assert heard(mailer) == b"" and heard(root) == b""
        with server.client() as client:
            assert client.refused("AUTH", "root", KEYS["root"]).startswith("NOAUTH")
            assert client.ask("AUTH", "reader", KEYS["reader"]) == "OK"
            client.ask("SCHEDULE", "mail", "x", "ID", "a")
            assert "ready" in client.ask("GET", "mail", "a")


def test_a_key_that_stays_keeps_its_connection():
    root, reader = line_of("root"), line_of("reader")
    with Keys(root, reader) as keys, serve(keys) as server, enter(server, "root") as client, \
            enter(server, "reader") as other:
        keys.write(root, reader.replace(":read:", ":read,write:"))
        server.process.send_signal(signal.SIGHUP)
        until(lambda: "keys read again" in server.log(), "a line in the log")
        assert client.ask("PING") == "PONG"
        assert other.ask("SCHEDULE", "mail", "x", "ID", "a") == "a"


def test_a_pipe_is_not_read_again():
    with Keys(line_of("root")) as keys, serve(keys) as server, enter(server, "root") as root:
        os.unlink(keys.path)
        os.mkfifo(keys.path)
        server.process.send_signal(signal.SIGHUP)
        until(lambda: "the old ones stay valid" in server.log(), "a line in the log")
        assert root.ask("PING") == "PONG"


def test_sighup_without_keys_does_nothing():
    with Server("--store", "memory") as server, server.client() as client:
        server.process.send_signal(signal.SIGHUP)
        until(lambda: "SIGHUP ignored" in server.log(), "a line in the log")
        assert client.ask("PING") == "PONG"


def test_a_file_that_everybody_reads_is_warned_about():
    for mode, is_said in ((0o600, False), (0o640, False), (0o644, True)):
        with Keys(line_of("root"), mode=mode) as keys, serve(keys) as server:
            assert ("readable by everybody" in server.log()) == is_said, oct(mode)


def test_a_credential_of_systemd_is_the_key_file():
    folder = tempfile.mkdtemp(prefix="belfry-test-credentials-")
    path = os.path.join(folder, "keys")
    try:
        with open(path, "w") as file:
            file.write(line_of("root"))
        os.chmod(path, 0o400)
        os.environ["CREDENTIALS_DIRECTORY"] = folder
        with Server("--store", "memory") as server, enter(server, "root") as root:
            with server.client() as client:
                assert client.refused("PING").startswith("NOAUTH")
            assert info(root, "server")["keys"] == "1"
        os.unlink(path)
        with Server("--store", "memory") as server, server.client() as client:
            assert client.ask("PING") == "PONG"
    finally:
        del os.environ["CREDENTIALS_DIRECTORY"]
        shutil.rmtree(folder)


def test_a_limited_key_sees_its_own_topics_alone():
    with Keys(line_of("root"), line_of("mailer")) as keys, \
            Server("--keys", keys.path) as server, \
            enter(server, "root") as root, enter(server, "mailer") as mailer:
        for topic, count in (("mail", 1), ("sms.de", 2), ("other", 4), ("secret", 8)):
            for _ in range(count):
                root.ask("SCHEDULE", topic, "x")
        until(lambda: info(root, "store").get("timers_ready") == "15", "a census")
        whole, part = info(root), info(mailer)
        assert part["timers_ready"] == "3" and part["topics"] == "2", part
        assert whole["topics"] == "4" and "process_id" in whole and "data" in whole
        hidden = {"process_id", "data", "config_file", "keys_file", "deliveries",
                  "total_commands_processed", "connected_clients", "cmdstat_schedule"}
        assert not hidden & part.keys(), hidden & part.keys()
        of_all = {name for name in part if name.startswith("tree_")}  # rows and pages of all topics
        assert not of_all and "tree_check_rows" in whole, of_all
        assert "belfry_version" in part and "plans" in part
        for section in ("clients", "stats"):
            assert info(mailer, section) == {}
        try:
            mailer.ask("TOPIC", "secret")
            raise AssertionError("another topic is shown")
        except Refusal as refusal:
            assert str(refusal).startswith("NOPERM")


main(dict(globals()))
