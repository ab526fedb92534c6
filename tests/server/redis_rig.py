"""Shared by the tests of servers whose store is Redis: a redis-server of the test's own.

Each has a temporary folder of its own, as working directory and for its data. The program is the one
that tests/redis/servers.py has found, or redis-server; without either, the test is skipped.
"""
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from rig import DEADLINE, Client, Refusal, Server

SKIPPED = 77
PROGRAM = os.environ.get("BEL_TEST_REDIS_SERVER") or shutil.which("redis-server")


def need_redis():
    if PROGRAM is None:
        print("SKIPPED: there is no redis-server here (package redis-server)")
        sys.exit(SKIPPED)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Redis:
    """A redis-server that keeps its data in a folder until the test ends."""

    client_type = Client

    def __init__(self, *flags, port=None):
        self.folder = tempfile.mkdtemp(prefix="belfry-redis-")
        self.flags = list(flags)
        self.port = port
        self.process = None

    def start(self):
        tries = 1 if self.port else 20
        for _ in range(tries):
            port = self.port or free_port()
            if self.try_to_start(port):
                self.port = port
                return self
        raise AssertionError(f"redis-server does not start:\n{self.log()[-2000:]}")

    def arguments(self, port):
        return ["--port", str(port), "--bind", "127.0.0.1", "--dir", self.folder, "--save", "",
                *self.flags]

    def try_to_start(self, port):
        """Returns whether the server has started; the port may have been taken meanwhile."""
        log = open(os.path.join(self.folder, "log"), "ab")
        self.process = subprocess.Popen([PROGRAM, *self.arguments(port)], cwd=self.folder,
                                        stdout=log, stderr=log)
        log.close()
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            if self.process.poll() is not None:
                return False
            try:
                with self.client_type(port) as client:
                    client.send("PING")
                    client.read()
                return True
            except Refusal as refusal:  # it wants a password; or it is loading
                if not str(refusal).startswith("LOADING"):
                    return True
            except OSError:
                pass
            time.sleep(0.01)  # between two looks
        raise AssertionError(f"redis-server does not answer:\n{self.log()[-2000:]}")

    def log(self):
        with open(os.path.join(self.folder, "log"), errors="replace") as file:
            return file.read()

    def client(self):
        return self.client_type(self.port)

    def url(self, rest=""):
        return f"redis://127.0.0.1:{self.port}{rest}"

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        self.process.wait(timeout=DEADLINE)

    def __enter__(self):
        return self if self.process else self.start()

    def __exit__(self, *ignored):
        if self.process is not None and self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class Sentinel(Redis):
    """A Sentinel alone, which watches a primary by the name of `m` and decides for itself."""

    def __init__(self, primary):
        super().__init__()
        self.primary = primary

    def arguments(self, port):
        path = os.path.join(self.folder, "sentinel.conf")  # it writes what it finds into this file
        with open(path, "w") as file:
            file.write(f"port {port}\nbind 127.0.0.1\ndir {self.folder}\n"
                       f"sentinel monitor m 127.0.0.1 {self.primary.port} 1\n"
                       "sentinel down-after-milliseconds m 500\n"
                       "sentinel failover-timeout m 3000\n")
        return [path, "--sentinel"]

    def url(self, rest=""):
        return f"redis+sentinel://127.0.0.1:{self.port}?master=m{rest}"


class Node(Server):
    """A server whose store is Redis."""

    def __init__(self, url, *flags):
        super().__init__("--store", url, *flags)

    def start(self, *flags):
        return self.launch(["--resp", "127.0.0.1:0", "--http", "127.0.0.1:0", *self.flags, *flags],
                           "store")
