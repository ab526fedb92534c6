#!/usr/bin/env python3
"""Topics that Belfry and faststream-redis-timers share: package.py FOLDER VERSIONS NODE [CASE].

The package comes from PyPI and is installed in a virtual environment in FOLDER, once for all tests
of a build; where it cannot be had, the test is skipped and says so. peer.py runs in it: publishers
and workers as their authors write them.
"""
import fcntl
import json
import pathlib
import subprocess
import sys

import rig
from rig import claim, claim_one, is_empty, keys, refused, timer, until

SKIPPED = 77
PATIENCE = 240  # s, of the installation
PEER = pathlib.Path(__file__).with_name("peer.py")
CASES = []
PYTHON = None


def case(function):
    CASES.append(function)
    return function


# --- the package ---


def skip(why):
    print("SKIPPED: faststream-redis-timers", why)
    sys.exit(SKIPPED)


class Missing(Exception):
    """A version that cannot be had; the text says why."""


def run_quietly(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Missing(str(error)) from error
    if done.returncode != 0:
        raise Missing(done.stderr[-2000:])


def install(folder, version):
    """Makes the environment of a version, unless that was done before. Returns its interpreter."""
    home = pathlib.Path(folder).resolve() / f"faststream-redis-timers-{version}"
    home.parent.mkdir(parents=True, exist_ok=True)
    stamp, python = home / "installed", str(home / "bin" / "python")
    with open(f"{home}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists():
            run_quietly(sys.executable, "-m", "venv", "--clear", str(home))
            run_quietly(python, "-m", "pip", "install", "--quiet", "--retries", "1",
                        f"faststream-redis-timers=={version}")
            stamp.write_text("")
    return python


def install_first(folder, versions):
    """Installs the first of some versions that can be had; 0.5.* means the newest of these."""
    if sys.version_info < (3, 11):
        skip("needs Python 3.11")
    for version in versions.split(","):
        try:
            python = install(folder, version)
        except Missing as error:
            why = error
            continue
        code = "from importlib.metadata import version as v; print(v('faststream-redis-timers'))"
        shown = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
        print("with faststream-redis-timers", shown.stdout.strip(), flush=True)
        return python
    skip(f"cannot be installed from PyPI:\n{why}")


class Peer:
    """A process of the package: one line of JSON for each question and for each answer."""

    def __init__(self, stack, server, *args):
        self.process = subprocess.Popen([PYTHON, PEER, server.path, *args], cwd=server.folder,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        stack.callback(self.kill)

    def read(self):
        line = self.process.stdout.readline()
        assert line, "the Python process has ended"
        return json.loads(line)

    def ask(self, **question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return self.read()

    def publish(self, topic, **what):
        return self.ask(do="publish", topic=topic, **what)

    def kill(self):
        self.process.kill()
        self.process.wait()


def publisher(stack, server):
    return Peer(stack, server, "publish")


def worker(stack, server, topic, lease=30, how="handles"):
    """Prints each delivery; then it "handles" or "fails" it, "sleeps", or "replies" to it."""
    peer = Peer(stack, server, "work", topic, str(lease), how)
    assert peer.read() == "ready"
    return peer


def shared(node, topic="t", *settings):
    node("CONFIGURE", topic, "layout", "faststream", *settings)


# --- from Python to us ---


@case
def what_python_publishes_is_claimed_and_acked(server, node, stack):
    python = publisher(stack, server)
    shared(node)
    ident = python.publish("t", text="hi", correlation="trace-123",
                           headers={"x-tenant": "acme", "x-priority": "high"})
    got = claim_one(node, "t")
    assert got.id.decode() == ident and got.payload == b"hi"
    assert got.correlation == b"trace-123"
    assert got.headers == {b"content-type": b"text/plain", b"x-tenant": b"acme",
                           b"x-priority": b"high"}, got.headers
    assert python.ask(do="has", topic="t", id=ident) is True
    assert node("ACK", got.token) == 1
    assert python.ask(do="has", topic="t", id=ident) is False and is_empty(server, "t")


@case
def what_python_has_filled_before_is_adopted(server, node, stack):
    """The deployment exists: timers wait, and a worker of the package has a lease."""
    python = publisher(stack, server)
    slow = worker(stack, server, "t", lease=60, how="sleeps")
    busy = python.publish("t", text="busy")
    assert slow.read()["id"] == busy
    late = python.publish("t", text="late", seconds=3600)
    idents = {python.publish("u", text=f"n{i}") for i in range(5)}
    for topic in ("t", "u"):
        shared(node, topic)
    got = node("CLAIM", "u", "COUNT", "9")
    assert {fields[2].decode() for fields in got} == idents
    assert node("ACK", *[fields[0] for fields in got]) == 5 and is_empty(server, "u")
    assert claim(node, "t") == [], "one is leased by Python, the other is not due"
    assert timer(node, "t", late)[b"payload"] == b"late"
    assert python.ask(do="has", topic="t", id=busy) is True


@case
def every_kind_of_body_arrives(server, node, stack):
    python = publisher(stack, server)
    shared(node)
    for what, payload, kind in ((dict(hex="7b00ff0102"), b"\x7b\x00\xff\x01\x02", None),
                                (dict(json={"a": [1, "ü"]}), None, b"application/json"),
                                (dict(text="grün"), "grün".encode(), b"text/plain"),
                                (dict(nothing=True), b"", None)):
        ident = python.publish("t", **what)
        got = claim_one(node, "t")
        assert got.correlation.decode() == ident, "the default"
        assert got.headers.get(b"content-type") == kind
        if payload is None:
            assert json.loads(got.payload) == {"a": [1, "ü"]}
        else:
            assert got.payload == payload, got.payload
        assert node("ACK", got.token) == 1


@case
def headers_that_the_package_breaks_are_read(server, node, stack):
    python = publisher(stack, server)
    shared(node)
    python.publish("t", id="naïve ü@ x", text="grün", headers={"größe": "ü€"})
    got = claim_one(node, "t")
    assert got.id.decode() == got.correlation.decode() == "naïve ü@ x"
    assert got.payload.decode() == "grün"
    assert got.headers["größe".encode()].decode() == "ü€"
    assert node("ACK", got.token) == 1 and is_empty(server, "t")


@case
def odd_topics_and_ids_of_python(server, node, stack):
    python = publisher(stack, server)
    for topic in ("naïve ü", "a b", "{t}"):
        shared(node, topic)
        for ident in ("naïve ü@ x", "a b", "{t}"):
            python.publish(topic, id=ident, text="x")
            assert timer(node, topic, ident)[b"payload"] == b"x"
            got = claim_one(node, topic)
            assert got.id.decode() == ident and got.topic.decode() == topic
            assert node("ACK", got.token) == 1
        assert is_empty(server, topic)


@case
def a_reply_of_python_has_the_empty_id(server, node, stack):
    shared(node)
    shared(node, "answers")
    python = worker(stack, server, "t", how="replies")
    node("SCHEDULE", "t", "x", "ID", "a", "CORRELATION", "trace-123")
    assert python.read()["id"] == "a"
    got = claim_one(node, "answers")
    assert (got.id, got.payload, got.correlation) == (b"", b"done", b"trace-123")
    assert timer(node, "answers", "")[b"id"] == b""
    assert node("ACK", got.token) == 1 and is_empty(server, "answers")


@case
def an_hour_is_not_early_and_the_past_is_now(server, node, stack):
    python = publisher(stack, server)
    shared(node)
    python.publish("t", id="later", text="x", seconds=3600)
    python.publish("t", id="past", text="x", at=1000000000)
    assert claim_one(node, "t").id == b"past"
    assert claim(node, "t") == []
    found = timer(node, "t", "later")
    assert found[b"state"] == b"scheduled" and found[b"due_ms"] > server.time() * 1000 + 3500e3


@case
def our_ack_does_not_delete_what_python_republished(server, node, stack):
    python = publisher(stack, server)
    shared(node)
    python.publish("t", id="a", text="one")
    got = claim_one(node, "t")
    python.publish("t", id="a", text="two")
    assert node("ACK", got.token) == 0
    again = claim_one(node, "t")
    assert again.payload == b"two" and node("ACK", again.token) == 1


@case
def a_router_prefix_is_a_setting(server, node, stack):
    python = publisher(stack, server)
    shared(node, "t", "prefix", "svc:")
    python.publish("svc:t", text="x")
    assert node("ACK", claim_one(node, "t").token) == 1 and is_empty(server, "svc:t")


@case
def python_cancels_what_we_scheduled(server, node, stack):
    python = publisher(stack, server)
    shared(node)
    node("SCHEDULE", "t", "x", "ID", "a", "IN", "1h")
    node("SCHEDULE", "t", "x", "ID", "b", "IN", "1h")
    assert sorted(python.ask(do="pending", topic="t")) == ["a", "b"]
    python.ask(do="cancel", topic="t", id="a")
    assert timer(node, "t", "a") is None
    assert python.ask(do="cancel all", topic="t") == 1
    assert is_empty(server, "t")


# --- from us to Python ---


@case
def what_we_schedule_is_handled_by_python(server, node, stack):
    shared(node)
    python = worker(stack, server, "t")
    node("SCHEDULE", "t", "grün", "ID", "a", "CORRELATION", "trace-123", "HEADER", "content-type",
         "text/plain", "HEADER", "x-tenant", "äcme")
    got = python.read()
    assert got["body"] == "grün".encode().hex() and got["id"] == "a", got
    assert got["correlation"] == "trace-123"
    assert got["headers"]["x-tenant"] == "äcme" and got["headers"]["content-type"] == "text/plain"
    until(lambda: is_empty(server, "t"))
    node("SCHEDULE", "t", b"\x7b\x00\xff\x01\x02", "ID", "b")
    got = python.read()
    assert got["body"] == "7b00ff0102" and got["correlation"] == "b", got
    until(lambda: is_empty(server, "t"))


@case
def odd_ids_of_ours_are_handled_by_python(server, node, stack):
    topic = "naïve ü"
    shared(node, topic)
    python = worker(stack, server, topic)
    for ident in ("", "naïve ü@ x", "{t}"):
        node("SCHEDULE", topic, "x", "ID", ident)
        got = python.read()
        if ident:  # the package makes up another one to show, and removes the right timer
            assert got["id"] == ident and got["correlation"] == ident, got
        until(lambda: is_empty(server, topic))


@case
def python_does_not_handle_early(server, node, stack):
    shared(node)
    python = worker(stack, server, "t")
    at = round((server.time() + 1.5) * 1000)
    node("SCHEDULE", "t", "later", "ID", "later", "IN", "1h")
    node("SCHEDULE", "t", "soon", "ID", "soon", "AT", at)
    got = python.read()
    assert got["id"] == "soon" and got["time"] * 1000 >= at, got
    until(lambda: timer(node, "t", "soon") is None)
    assert timer(node, "t", "later")[b"state"] == b"scheduled"


# --- together ---


@case
def one_of_two_workers_gets_a_timer(server, node, stack):
    shared(node, "t", "lease", "1h")
    python = worker(stack, server, "t")
    ours, count = 0, 40
    for i in range(count):
        node("SCHEDULE", "t", "x", "ID", str(i))
        for got in claim(node, "t"):
            ours += node("ACK", got.token)
    until(lambda: is_empty(server, "t"))
    handled = python.ask(do="handled")
    assert ours + handled == count, (ours, handled)


@case
def a_handler_that_dies_is_followed_by_ours(server, node, stack):
    shared(node)
    python = worker(stack, server, "t", 1, "sleeps")
    node("SCHEDULE", "t", "x", "ID", "a")
    python.read()
    end = float(server.redis("ZSCORE", keys("t")[0], "a"))
    python.kill()
    again = claim_one(node, "t")
    assert again.id == b"a" and server.time() >= end, "no sooner than the lease"
    assert node("ACK", again.token) == 1


@case
def a_worker_of_ours_that_dies_is_followed_by_python(server, node, stack):
    other = rig.new_node(stack, server)
    shared(other, "t", "lease", "700ms")
    other("SCHEDULE", "t", "x", "ID", "a")
    claim_one(other, "t")
    end = float(server.redis("ZSCORE", keys("t")[0], "a"))
    other.kill()
    got = worker(stack, server, "t").read()
    assert got["id"] == "a" and got["time"] >= end, got
    until(lambda: is_empty(server, "t"))


@case
def what_python_fails_is_ours_after_the_lease(server, node, stack):
    shared(node)
    python = worker(stack, server, "t", 1, "fails")
    node("SCHEDULE", "t", "x", "ID", "a")
    python.read()
    python.kill()
    got = claim_one(node, "t")
    assert node("ACK", got.token) == 1 and is_empty(server, "t")


@case
def a_failure_of_ours_is_handled_by_python(server, node, stack):
    shared(node)
    node("SCHEDULE", "t", "x", "ID", "a")
    assert node("FAIL", claim_one(node, "t").token, "IN", "0s")[0] == b"scheduled"
    assert worker(stack, server, "t").read()["id"] == "a"


@case
def flushed_scripts_and_a_full_server(server, node, stack):
    python = publisher(stack, server)
    shared(node)
    for ident in ("a", "b"):
        python.publish("t", id=ident, text="x")
        server.redis("SCRIPT", "FLUSH")
    got = claim(node, "t", "COUNT", 2)
    server.redis("CONFIG", "SET", "maxmemory", "1")
    assert "OutOfMemory" in python.publish("t", id="c", text="x"), "its publish fails"
    assert node("ACK", got[0].token) == 1 and node("CANCEL", "t", "b") == 1
    server.redis("CONFIG", "SET", "maxmemory", "0")
    refused("STALE", node, "EXTEND", got[1].token)
    assert is_empty(server, "t")


if __name__ == "__main__":
    PYTHON = install_first(sys.argv[1], sys.argv[2])
    rig.run(CASES, *sys.argv[3:])
