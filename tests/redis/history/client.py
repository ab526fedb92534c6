#!/usr/bin/env python3
"""A client of belfry servers, as a process that may be killed: a worker or a producer.

    client.py worker|producer LOG SEED PORT_FILE...

It connects to any of the servers, whose ports the files have, and again when a connection breaks.
It writes down all that it does, as history_node.c says. SIGTERM ends it after the request under way.
"""
import os
import random
import signal
import socket
import sys
import time

PATIENCE = 60  # s, for a reply
REFUSED = ("FULL", "BADARG", "CONFLICT", "NOTFOUND")
TOPICS = ("a", "b")
EXTENSION_MS = 1200  # no extension shortens a lease


def now_us():
    return time.time_ns() // 1000


class Client:
    def __init__(self, log, seed, port_files):
        self.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.random, self.port_files = random.Random(seed), port_files
        self.count, self.file, self.is_ending = 0, None, False
        signal.signal(signal.SIGTERM, self.end)

    def end(self, *_):
        self.is_ending = True

    def note(self, *words):
        os.write(self.log, (" ".join(map(str, words)) + "\n").encode())

    def connect(self):
        while self.file is None:
            try:
                with open(self.random.choice(self.port_files)) as file:
                    port = int(file.read().split()[1])
                self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
                self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.file = self.socket.makefile("rb")
            except (OSError, IndexError, ValueError):
                if self.is_ending:
                    sys.exit(0)
                time.sleep(0.01)

    def disconnect(self):
        self.file.close()
        self.socket.close()
        self.file = None

    def read(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise OSError("closed")
        kind, rest = line[:1], line[1:-2].decode()
        if kind == b"$":
            return None if rest == "-1" else self.file.read(int(rest) + 2)[:-2].decode()
        if kind == b"*":
            return [self.read() for _ in range(int(rest))]
        return int(rest) if kind == b":" else (kind.decode(), rest)

    def ask(self, noted, *words):
        """Sends a command. Returns the reply, or None after an error or without one."""
        self.connect()
        self.count += 1
        name = f"{os.getpid()}.{self.count}"
        command = b"".join(b"$%d\r\n%s\r\n" % (len(word.encode()), word.encode())
                           for word in map(str, words))
        self.note("S", name, now_us(), *noted)
        try:
            self.socket.sendall(b"*%d\r\n" % len(words) + command)
            reply = self.read()
        except OSError:
            self.disconnect()
            self.note("E", name, now_us(), "unknown", 0)
            return None
        if isinstance(reply, tuple) and reply[0] == "-":
            code = reply[1].split()[0]
            outcome = "stale" if code == "STALE" else "no" if code in REFUSED else "unknown"
            self.note("E", name, now_us(), outcome, 0)
            return None
        if words[0] == "CLAIM":
            time_us = now_us()
            for token, topic, id, _, due, attempt, _, lease, *_ in reply:
                self.note("D", name, time_us, topic, id, token, due, attempt, lease)
        self.note("E", name, now_us(), "ok", reply if isinstance(reply, int) else 1)
        return reply

    # --- a producer ---

    def schedule(self, topic, id, conflict):
        delay = self.random.choice((0, self.random.randrange(1500)))
        return self.ask(("schedule", topic, id, delay, conflict), "SCHEDULE", topic, "x", "ID", id,
                        "IN", f"{delay}ms", "CONFLICT", conflict)

    def plan(self, topic, id):
        return self.ask(("plan", topic, id, 150, 20), "SCHEDULE", topic, "x", "ID", id, "EVERY",
                        "150ms", "COUNT", 20, "OVERLAP", "allow", "MISFIRE", "all", "CONFLICT",
                        "keep")

    def produce(self):
        made = []
        while not self.is_ending:
            topic, id = self.random.choice(TOPICS), f"s{os.getpid()}-{self.count}"
            what = self.random.randrange(100) if made else 0
            old = self.random.choice(made[-30:] or [None])
            if not made or what < 4:
                id = "p" + id[1:]
                while self.plan(topic, id) is None and not self.is_ending:
                    time.sleep(0.01)
            if what < 75:
                id = "s" + id[1:]
                made.append((topic, id))
                while self.schedule(topic, id, "keep") is None and not self.is_ending:
                    time.sleep(0.01)
            elif what < 90:
                self.ask(("cancel", *old), "CANCEL", *old)
            else:
                self.schedule(*old, "replace")
            time.sleep(self.random.uniform(0, 0.03))

    # --- a worker ---

    def work(self):
        while not self.is_ending:
            lease = self.random.randrange(300, EXTENSION_MS)
            topics = self.random.choice((("a",), ("b",), TOPICS))
            found = self.ask(("claim", ",".join(topics), lease), "CLAIM", *topics, "COUNT",
                             self.random.randrange(1, 6), "LEASE", f"{lease}ms", "WAIT", "300ms")
            tokens = [delivery[0] for delivery in found or []]
            while tokens:
                time.sleep(self.random.uniform(0, 0.03))
                self.end_lease(tokens, lease)
            if found is None:
                time.sleep(0.02)

    def end_lease(self, tokens, lease):
        what = self.random.randrange(100)
        if what < 30:
            self.ask(("ack", *tokens), "ACK", *tokens)
            tokens.clear()
        elif what < 75:
            token = tokens.pop()
            for _ in range(2 if what < 34 else 1):
                self.ask(("ack", token), "ACK", token)
        elif what < 82:
            delay = self.random.randrange(200)
            token = tokens.pop()
            self.ask(("fail", token, delay), "FAIL", token, "IN", f"{delay}ms")
        elif what < 88:
            token = tokens.pop()
            self.ask(("release", token, -1), "RELEASE", token)
        elif what < 94:
            self.ask(("extend", tokens[-1], EXTENSION_MS), "EXTEND", tokens[-1],
                     f"{EXTENSION_MS}ms")
        else:
            time.sleep(lease / 1000 + self.random.uniform(0, 0.3))  # too late
            token = tokens.pop()
            self.ask(("ack", token), "ACK", token)


if __name__ == "__main__":
    client = Client(sys.argv[2], sys.argv[3], sys.argv[4:])
    client.work() if sys.argv[1] == "worker" else client.produce()
