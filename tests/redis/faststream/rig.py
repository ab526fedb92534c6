"""What the tests of the layout faststream share: a Redis server of their own, nodes, and RESP."""
import contextlib
import os
import select
import socket
import subprocess
import tempfile
import time

PATIENCE = 60  # s, generous: the machine may be busy


class Error(Exception):
    """An error reply; its text begins with the code."""


def encode(words):
    out = [b"*%d\r\n" % len(words)]
    for word in words:
        word = word if isinstance(word, bytes) else str(word).encode()
        out.append(b"$%d\r\n%s\r\n" % (len(word), word))
    return b"".join(out)


class Resp:
    """A client of RESP2 over two descriptors."""

    def __init__(self, reading, writing):
        self.reading, self.writing, self.buffer = reading, writing, b""

    def _more(self):
        ready, _, _ = select.select([self.reading], [], [], PATIENCE)
        assert ready, "no reply in time"
        got = os.read(self.reading, 65536)
        assert got, "the other side has closed"
        self.buffer += got

    def _take(self, count):
        while len(self.buffer) < count:
            self._more()
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def _line(self):
        while b"\r\n" not in self.buffer:
            self._more()
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line

    def _reply(self):
        line = self._line()
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return rest
        if kind == b"-":
            return Error(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self._take(int(rest) + 2)[:-2]
        assert kind == b"*", line
        return None if rest == b"-1" else [self._reply() for _ in range(int(rest))]

    def send(self, *words):
        data = encode(words)
        while data:
            data = data[os.write(self.writing, data):]

    def receive(self):
        reply = self._reply()
        if isinstance(reply, Error):
            raise reply
        return reply

    def __call__(self, *words):
        self.send(*words)
        return self.receive()


class Server:
    """A redis-server or valkey-server in a folder of its own, reached through a Unix socket."""

    def __init__(self, stack):
        self.folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="belfry-redis-"))
        self.path = os.path.join(self.folder, "socket")
        program = os.environ.get("BEL_TEST_REDIS_SERVER", "redis-server")
        self.process = subprocess.Popen(
            [program, "--port", "0", "--unixsocket", self.path, "--save", "", "--appendonly", "no",
             "--dir", self.folder], cwd=self.folder, stdout=subprocess.DEVNULL)
        stack.callback(self._stop)
        self.stack = stack
        until(self._accepts)
        self.redis = self.client()

    def _accepts(self):
        assert self.process.poll() is None, "the server has ended"
        try:
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(self.path)
        except OSError:
            return False
        return True

    def _stop(self):
        self.process.kill()
        self.process.wait()

    def client(self):
        connection = self.stack.enter_context(socket.socket(socket.AF_UNIX))
        connection.connect(self.path)
        return Resp(connection.fileno(), connection.fileno())

    def time(self):
        seconds, micros = self.redis("TIME")
        return int(seconds) + int(micros) / 1e6


class Node:
    """A node of Belfry: the program resp_node."""

    def __init__(self, stack, program, server, name_space="belfry", *options):
        self.process = subprocess.Popen([program, server.path, name_space, *options],
                                        cwd=server.folder, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.ask = Resp(self.process.stdout.fileno(), self.process.stdin.fileno())
        stack.callback(self.stop)

    def __call__(self, *words):
        return self.ask(*words)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process.poll() is not None:
            return
        self.process.stdin.close()
        assert self.process.wait(PATIENCE) == 0


class Delivery:
    def __init__(self, fields):
        (self.token, self.topic, self.id, self.payload, self.due, self.attempt, headers, self.lease,
         self.correlation) = fields[:9]
        self.headers = dict(zip(headers[::2], headers[1::2]))


def claim(node, topic, *options):
    return [Delivery(fields) for fields in node("CLAIM", topic, *options)]


def claim_one(node, topic, *options):
    deliveries = claim(node, topic, "WAIT", f"{PATIENCE}s", *options)
    assert len(deliveries) == 1, deliveries
    return deliveries[0]


def until(condition):
    """Waits until a condition holds, and returns it."""
    end = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert time.monotonic() < end, "a condition did not hold in time"
        time.sleep(0.02)
    return value


def refused(code, node, *words, naming=""):
    try:
        reply = node(*words)
    except Error as error:
        assert str(error).startswith(code + " "), error
        assert naming in str(error), error
        return str(error)
    raise AssertionError(f"{words} replied {reply!r}")


def keys(topic):
    return f"timers_timeline:{topic}", f"timers_payloads:{topic}"


def is_empty(server, topic):
    return not any(server.redis("EXISTS", key) for key in keys(topic))


def timer(node, topic, ident):
    fields = node("GET", topic, ident)
    return fields and dict(zip(fields[::2], fields[1::2]))


def run(cases, program, only=None):
    """Runs functions of (server, node, stack), each with its own servers."""
    global PROGRAM
    PROGRAM = program = os.path.abspath(program)
    for case in cases:
        if only and only != case.__name__:
            continue
        with contextlib.ExitStack() as stack:
            server = Server(stack)
            case(server, Node(stack, program, server), stack)
        print("ok  ", case.__name__, flush=True)


def new_node(stack, server, name_space="belfry", *options):
    return Node(stack, PROGRAM, server, name_space, *options)


PROGRAM = None  # resp_node; set by run()
