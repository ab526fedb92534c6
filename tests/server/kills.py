#!/usr/bin/env python3
"""kill -9 under load, repeatedly; the result must match the replies that the clients got.

Each client schedules, cancels and acks under ids of its own, one command at a time, and writes
down what was acknowledged. A command that was under way when the server died may have happened or
not; one that was answered must have.
"""
import os
import random
import threading
import time

from rig import Client, Server, main, until

KILLS = 200 if os.environ.get("BEL_TEST_LONG") else 20
CLIENTS = 4


class Book:
    """What one client knows about its timers: scheduled, gone, or in doubt."""

    def __init__(self, name, seed):
        self.name, self.random = name, random.Random(seed)
        self.there, self.gone, self.unknown = set(), set(), set()
        self.serial, self.answers = 0, 0

    def schedule(self, client):
        self.serial += 1
        id = f"{self.name}-{self.serial}"
        self.unknown.add(id)
        assert client.ask("SCHEDULE", "t", "payload of " + id, "ID", id, "IN", "1h") == id
        self.settle(id, self.there)

    def cancel(self, client):
        id = self.random.choice(sorted(self.there))
        self.there.discard(id)
        self.unknown.add(id)
        assert client.ask("CANCEL", "t", id) == 1, f"{id} was acknowledged, and is lost"
        self.settle(id, self.gone)

    def work(self, client):
        """Returns the topic of this client, in which no other client acks."""
        self.serial += 1
        id, topic = f"{self.name}-w{self.serial}", "w-" + self.name
        client.ask("SCHEDULE", topic, "x", "ID", id)
        for delivery in client.ask("CLAIM", topic, "COUNT", "10", "LEASE", "1h"):
            assert delivery[2] not in self.gone, f"{delivery[2]} was done, and is back"
            self.unknown.add(delivery[2])
            assert client.ask("ACK", delivery[0]) == 1
            self.settle(delivery[2], self.gone)

    def settle(self, id, where):
        self.unknown.discard(id)
        where.add(id)
        self.answers += 1

    def run(self, port):
        try:
            with Client(port) as client:
                while True:
                    choice = self.random.random()
                    if choice < 0.6 or not self.there:
                        self.schedule(client)
                    elif choice < 0.8:
                        self.cancel(client)
                    else:
                        self.work(client)
        except (EOFError, ConnectionError, OSError):
            pass  # the server is gone

    def check(self, client):
        for id in self.there:
            found = client.ask("GET", "t", id)
            assert found is not None, f"{id} was acknowledged, and is lost"
            assert "payload of " + id in found, found
        for id in self.gone:
            assert client.ask("GET", "t", id) is None, f"{id} was cancelled, and is back"
        for id in list(self.unknown):
            self.unknown.discard(id)
            if "-w" not in id:
                (self.there if client.ask("GET", "t", id) else self.gone).add(id)


def kill_in_a_loop(*flags):
    seed = int(os.environ.get("BEL_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 31)
    print(f"seed {seed}")
    chance = random.Random(seed)
    books = [Book(f"c{i}", seed + i) for i in range(CLIENTS)]
    with Server(*flags) as server:
        for _ in range(KILLS):
            wanted = sum(book.answers for book in books) + chance.randrange(1, 60)
            failures = []

            def load(book):
                try:
                    book.run(server.port)
                except BaseException as error:
                    failures.append(error)
            threads = [threading.Thread(target=load, args=(book,)) for book in books]
            for thread in threads:
                thread.start()
            while sum(book.answers for book in books) < wanted and not failures:
                threads[0].join(0.001)
            server.kill()
            for thread in threads:
                thread.join()
            assert not failures, failures
            server.start()
            with server.client() as client:
                for book in books:
                    book.check(client)
        assert sum(len(book.there) for book in books) > KILLS
        assert server.stop() == 0


def test_nothing_acknowledged_is_lost_in_the_loop():
    kill_in_a_loop("--sync", "loop")


def test_nor_with_a_thread():
    kill_in_a_loop("--sync", "thread")


def test_nor_if_answers_do_not_wait_for_syncs():
    kill_in_a_loop("--durability", "interval", "--durability-interval", "20ms")
    kill_in_a_loop("--durability", "none")


def log_time(server):
    """Returns when the log was last written."""
    folder = os.path.join(server.folder, "data")
    paths = [os.path.join(where, name) for where, _, names in os.walk(folder) for name in names]
    return max(os.stat(path).st_mtime_ns for path in paths)


def test_the_time_of_a_lease_is_kept_though_nobody_asks():
    with Server() as server:
        with server.client() as client:
            client.ask("SCHEDULE", "t", "x", "ID", "x")
            claimed = time.monotonic()
            client.ask("CLAIM", "t", "LEASE", "1h")
        for _ in range(3):  # it saves the time, each second
            before = log_time(server)
            until(lambda: log_time(server) != before, "a log that is written")
        passed = time.monotonic() - claimed
        server.kill()
        server.start()
        with server.client() as client:
            timer = client.ask("GET", "t", "x")
        in_all = time.monotonic() - claimed
        left = timer[timer.index("lease_left_ms") + 1] / 1000
        assert left <= 3600 - passed + 1.1, f"{passed} s have passed, and {left} s are left"
        assert left >= 3600 - in_all - 0.001, f"{in_all} s have passed, and {left} s are left"


main(dict(globals()))
