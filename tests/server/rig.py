"""Shared by the tests of the server: a server with a temporary data directory, and a client.

A server is the real program on free loopback ports; it is ended by its process id, and killed if
the test fails. Nothing sleeps: tests wait by reading, with a deadline.
"""
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

PROGRAM = sys.argv[1]
DEADLINE = 30.0  # s; generous, for a busy machine


class Refusal(Exception):
    """An error reply: its text starts with a code."""


class Client:
    """A RESP2 client with one socket."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def send(self, *words):
        self.socket.sendall(frame(*words))

    def read(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise EOFError("the server hung up")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            raise Refusal(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            if rest == b"-1":
                return None
            return self.file.read(int(rest) + 2)[:-2].decode()
        if kind == b"*":
            return None if rest == b"-1" else [self.read() for _ in range(int(rest))]
        raise ValueError(line)

    def ask(self, *words):
        self.send(*words)
        return self.read()

    def refused(self, *words):
        """Sends a command that must fail. Returns the text of the error."""
        try:
            answer = self.ask(*words)
        except Refusal as refusal:
            return str(refusal)
        raise AssertionError(f"{words} was not refused: {answer}")

    def close(self):
        self.file.close()
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        self.close()


def frame(*words):
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        data = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
    return b"".join(parts)


class Server:
    """belfry serve with a data directory that exists until the test ends."""

    running = []

    def __init__(self, *flags, folder=None):
        self.folder = folder or tempfile.mkdtemp(prefix="belfry-test-")
        self.flags = list(flags)
        self.start()

    def start(self, *flags):
        return self.launch(["--data", os.path.join(self.folder, "data"), "--resp", "127.0.0.1:0",
                            "--http", "none", *self.flags, *flags], "data")

    def launch(self, flags, last):
        """Starts the program, and reads its places up to the last one."""
        log = open(os.path.join(self.folder, "log"), "ab")
        command = [PROGRAM, "serve", *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        log.close()
        Server.running.append(self)
        self.places = {}
        while last not in self.places:
            line = self.process.stdout.readline()
            assert line, f"the server did not start: {self.log()[-2000:]}"
            name, _, value = line.strip().partition(" ")
            self.places[name] = value
        self.port = int(self.places["resp"].rsplit(":", 1)[1])
        return self

    def log(self):
        with open(os.path.join(self.folder, "log"), errors="replace") as file:
            return file.read()

    def client(self):
        return Client(self.port)

    def kill(self):
        self.process.kill()
        self.wait()

    def wait(self):
        status = self.process.wait(timeout=DEADLINE)
        self.process.stdout.close()
        Server.running.remove(self)
        return status

    def stop(self, number=signal.SIGTERM):
        """Stops the server and returns its exit status."""
        self.process.send_signal(number)
        return self.wait()

    def __enter__(self):
        return self

    def __exit__(self, kind, *ignored):
        if self.process.poll() is None and self in Server.running:
            status = self.stop() if kind is None else self.kill()
            assert kind is not None or status == 0, f"exits with {status}: {self.log()[-2000:]}"
        if kind is not None:
            print(self.log()[-4000:], file=sys.stderr)
        shutil.rmtree(self.folder)


def run(*arguments, stdin=""):
    """Runs the program. Returns its exit status, standard output and standard error."""
    done = subprocess.run([PROGRAM, *arguments], input=stdin, capture_output=True, text=True,
                          timeout=DEADLINE)
    return done.returncode, done.stdout, done.stderr


def until(question, what):
    """Calls a function until its result is true, and returns that."""
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        answer = question()
        if answer:
            return answer
        time.sleep(0.005)  # between two looks; how long the whole takes is up to the deadline
    raise AssertionError(f"never came: {what}")


def main(cases):
    """Runs every function whose name starts with test_, in the order of the file."""
    failed = False
    for name, case in cases.items():
        if not name.startswith("test_"):
            continue
        try:
            case()
            print("ok  ", name[len("test_"):])
        except BaseException as error:  # also a deadline, and an interrupt
            import traceback
            traceback.print_exc()
            print("FAIL", name[len("test_"):], error)
            failed = True
        finally:
            for server in list(Server.running):
                server.kill()
    sys.exit(1 if failed else 0)
