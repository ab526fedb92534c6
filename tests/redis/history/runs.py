#!/usr/bin/env python3
"""Nodes on a real Redis or Valkey server, with faults, judged by history.py.

    runs.py NODE BELFRY [run ...]       NODE is the program of history_node.c
    runs.py --planted NODE ...   nodes whose scripts have a fault (plant.py): the judge must find it

In each run two nodes, each with ten workers and two producers, use one server, to which something
happens; in `served` the nodes are belfry servers, and each of the clients is a process. Then the nodes end, a node without faults drains what is left, and the judge reads what all
of them have written. The server is the program in BEL_TEST_REDIS_SERVER (servers.py), with files in
its own folder. Nothing is measured: a run lasts until enough has happened.
"""
import itertools
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import history

PATIENCE = 120  # s, until a condition holds; for a busy machine
LONG = 10 if os.environ.get("BEL_TEST_LONG") else 1
SEED = int(os.environ.get("BEL_TEST_SEED", "1"))


def wait_for(what, condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"waited in vain: {what}"
        time.sleep(0.01)


class Server:
    def __init__(self, folder, *options):
        self.folder = os.path.join(folder, "server")
        self.path = os.path.join(self.folder, "socket")
        self.options = options
        os.mkdir(self.folder)
        self.start()

    def start(self):
        program = os.environ.get("BEL_TEST_REDIS_SERVER", "redis-server")
        if os.path.exists(self.path):
            os.unlink(self.path)
        self.process = subprocess.Popen(
            [program, "--port", "0", "--unixsocket", self.path, "--save", "", "--dir", self.folder,
             *self.options], cwd=self.folder, stdout=subprocess.DEVNULL)
        wait_for("the server starts", self.is_up)

    def is_up(self):
        assert self.process.poll() is None, "the server has ended"
        try:
            return self.ask("PING") == b"+PONG"
        except OSError:
            return False

    def ask(self, *words):
        """Sends a command and returns the first line of the reply."""
        command = b"*%d\r\n" % len(words)
        for word in map(str, words):
            command += b"$%d\r\n%s\r\n" % (len(word), word.encode())
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self.path)
            connection.sendall(command)
            reply = b""
            while b"\n" not in reply:
                part = connection.recv(65536)
                if not part:
                    raise OSError("closed")
                reply += part
        return reply.split(b"\r\n")[0]

    def number(self, section, field):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self.path)
            connection.sendall(f"INFO {section}\r\n".encode())
            text = ""
            while f"{field}:" not in text or not text.endswith("\n"):
                text += connection.recv(65536).decode()
        return int(text.split(f"{field}:")[1].split()[0])

    def signal(self, number):
        os.kill(self.process.pid, number)

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait()


class Run:
    """A server, its nodes, and what they have written."""

    def __init__(self, program, name, *server_options):
        self.program, self.random = program, random.Random(f"{name} {SEED}")
        self.folder = tempfile.mkdtemp(prefix="belfry-history-")
        self.server = Server(self.folder, *server_options)
        self.numbers, self.nodes, self.logs = itertools.count(1), [], []

    def start(self, *options):
        number = next(self.numbers)
        log = os.path.join(self.folder, f"node-{number}.log")
        self.logs.append(log)
        node = subprocess.Popen([self.program, self.server.path, log, str(SEED * 1000 + number),
                                 *options], cwd=self.folder)
        self.nodes.append(node)
        return node

    def start_process(self, *command):
        """Starts a server or a client of one, which writes its log to a file of its own."""
        process = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        self.nodes.append(process)
        return process

    def stop(self):
        for node in self.nodes:
            node.send_signal(signal.SIGTERM)
        for node in self.nodes:
            ends = (0, -signal.SIGTERM)  # a client may be ended before it has begun
            assert node.wait(PATIENCE) in ends, f"{node.args[:3]} ends with {node.returncode}"
        self.nodes = []

    def kill_one(self):
        node = self.nodes.pop(self.random.randrange(len(self.nodes)))
        node.kill()
        node.wait()

    def text(self):
        return "".join(pathlib.Path(log).read_text() for log in self.logs if os.path.exists(log))

    def lines(self):
        return [line for line in self.text().split("\n") if line]

    def count(self, words):
        return self.text().count(words)

    def pause(self, low, high):
        """Lets the nodes work for a random time."""
        time.sleep(self.random.uniform(low, high))
        for node in self.nodes:
            assert node.poll() is None, f"{node.args[:2]} has ended with {node.returncode}"

    def drain(self):
        self.stop()
        node = self.start("drain=1")
        assert node.wait(PATIENCE) == 0, f"the last node ends with {node.returncode}"
        self.nodes = []
        return history.read(self.lines())

    def end(self, is_kept):
        for node in self.nodes:
            node.kill()
            node.wait()
        if self.server.process.poll() is None:
            self.server.kill()
        if is_kept:
            print("the logs of the nodes are in", self.folder)
        else:
            shutil.rmtree(self.folder)


# --- the faults ---


def kills(run):
    """kill -9 of nodes, with all of their workers."""
    run.start()
    run.start()
    for _ in range(8 * LONG):
        run.pause(0.1, 0.7)
        run.kill_one()
        run.start()
    run.pause(0.5, 1)


def script_flush(run):
    """SCRIPT FLUSH in a loop."""
    run.start()
    run.start()
    flushed = 0
    while flushed < 300 * LONG or run.count("D ") < 300:
        run.server.ask("SCRIPT", "FLUSH")
        run.pause(0, 0.01)
        flushed += 1


def client_kill(run):
    """CLIENT KILL of every connection, in a loop."""
    run.start()
    run.start()
    killed = 0
    while killed < 30 * LONG or run.count("D ") < 300:
        run.server.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        run.server.ask("CLIENT", "KILL", "TYPE", "pubsub")
        run.pause(0.02, 0.15)
        killed += 1


def stopped(run):
    """A server that does not answer, until every request of that time has got its error."""
    run.start("call=500")
    run.start("call=500")
    for _ in range(2 * LONG):
        before = run.count("D ")
        wait_for("deliveries", lambda: run.count("D ") > before + 100)
        run.server.signal(signal.SIGSTOP)
        seen = set(history.read(run.lines()).ops)
        wait_for("new requests", lambda: len(set(history.read(run.lines()).ops) - seen) > 10)
        asked = set(history.read(run.lines()).ops)

        def are_answered():
            ops = history.read(run.lines()).ops
            return all(ops[name].end != history.NEVER for name in asked)
        wait_for("errors while the server does not answer", are_answered)
        run.server.signal(signal.SIGCONT)
    before = run.count("D ")
    wait_for("deliveries after that", lambda: run.count("D ") > before + 100)


def restarts(run):
    """kill -9 of a server that syncs its log for every command."""
    run.start()
    run.start()
    for _ in range(4 * LONG):
        before = run.count("D ")
        wait_for("deliveries", lambda: run.count("D ") > before + 60)
        run.server.kill()
        run.server.start()
    before = run.count("D ")
    wait_for("deliveries after that", lambda: run.count("D ") > before + 60)


def full(run):
    """No memory left: schedules are refused, and all that frees goes on."""
    run.start("payload=20000", "gap=2")
    run.start("payload=20000", "gap=2")
    for _ in range(LONG):
        before = run.count("D ")
        wait_for("deliveries", lambda: run.count("D ") > before + 50)
        run.server.ask("CONFIG", "SET", "maxmemory", run.server.number("memory", "used_memory"))
        before = run.count(" no ")
        wait_for("refused schedules", lambda: run.count(" no ") > before + 20)
        since = time.time() * 1e6

        def goes_on():
            ops = history.read(run.lines()).ops.values()
            done = [op.verb for op in ops if op.start > since and op.outcome == "ok"]
            return all(verb in done for verb in ("claim", "ack", "fail", "cancel", "extend"))
        wait_for("claims, acknowledgements, failures and cancels", goes_on)
        run.server.ask("CONFIG", "SET", "maxmemory", 0)


def skew(run):
    """Nodes whose wall clocks are an hour behind and an hour ahead."""
    run.start("skew=-3600000")
    run.start("skew=3600000")
    wait_for("deliveries", lambda: run.count("D ") > 400 * LONG)


def served(run):
    """kill -9 of belfry servers and of workers, twenty of which are processes of their own."""
    ports = [os.path.join(run.folder, f"port-{i}") for i in range(2)]
    client = os.path.join(os.path.dirname(os.path.abspath(__file__)), "client.py")

    def serve(i):
        return run.start_process(run.belfry, "serve", "--store", "unix://" + run.server.path,
                                 "--store-namespace", "history", "--http", "none",
                                 "--resp", "127.0.0.1:0", "--port-file", ports[i])

    def join(role):
        number = next(run.numbers)
        run.logs.append(os.path.join(run.folder, f"client-{number}.log"))
        return run.start_process(sys.executable, client, role, run.logs[-1],
                                 f"{SEED} {number}", *ports)

    def replace(processes, i, process):
        run.nodes.remove(processes[i])
        processes[i].kill()
        processes[i].wait()
        processes[i] = process()

    run.start("producers=0", "plans=0", "workers=1")  # configures the topics
    wait_for("the topics are configured", lambda: run.count("claim") > 0)
    servers = [serve(0), serve(1)]
    workers = [join("worker") for _ in range(20)]
    for _ in range(3):
        join("producer")
    for step in itertools.count():
        run.pause(0.02, 0.2)
        if step % 5 == 4:
            i = run.random.randrange(2)
            os.path.exists(ports[i]) and os.unlink(ports[i])
            replace(servers, i, lambda: serve(i))
        else:
            replace(workers, run.random.randrange(20), lambda: join("worker"))
        if step > 30 * LONG and run.count("D ") > 300 * LONG:
            break
    for server in servers:  # the last, so that clients can end
        run.nodes.remove(server)
    run.stop()
    run.nodes = servers


RUNS = {
    served: [],
    kills: [], script_flush: [], client_kill: [], stopped: [],
    restarts: ["--appendonly", "yes", "--appendfsync", "always"],
    full: [], skew: [],
}


def check(program, belfry, fault):
    run = Run(program, fault.__name__, *RUNS[fault])
    run.belfry = belfry
    is_good = False
    try:
        fault(run)
        seen = run.drain()
        found = history.judge(seen)
        for text in found[:20]:
            print(text)
        assert not found, f"{fault.__name__}: {len(found)} broken rules, seed {SEED}"
        assert len(seen.tokens) > 100, "too little has happened: " + history.summary(seen)
        assert seen.plans, "there was no plan"
        is_good = True
    finally:
        run.end(not is_good)
    print(f"     {history.summary(seen)}")
    print(f"ok   {fault.__name__}", flush=True)


# --- faults in the scripts ---

FOUND_BY = {
    "ack_without_token": "fenced",
    "cancel_that_forgets": "cancelled",
    "claim_too_early": "early",
    "claim_that_leaves": "one lease",
    "lease_lost_for_good": "kept",
    "lease_too_short": "one lease",
    "ring_without_comparing": "plan",
    "schedule_that_forgets": "kept",
}


def find(program, fault):
    """Lets nodes with a fault work until the judge has found it."""
    run = Run(program, fault)
    rule = FOUND_BY[fault]
    end = time.monotonic() + PATIENCE
    found = []
    try:
        while not any(text.startswith(rule + ":") for text in found):
            assert time.monotonic() < end, f"{fault} is not found; only {found[:5]}"
            run.start("plans=5")
            run.start("plans=5")
            run.pause(1, 1.2)
            run.stop()
            if rule in ("kept", "plan"):
                run.start("drain=1", "plans=0", "patience=3000").wait(PATIENCE)
                run.nodes = []
            found = history.judge(history.read(run.lines()))
    finally:
        run.end(False)
    print(f"ok   {fault} is found by the rule '{rule}'", flush=True)


def main(arguments):
    if arguments[0] == "--planted":
        for program in arguments[1:]:
            find(os.path.abspath(program), os.path.basename(program).split("history_node_")[1])
        return
    for fault in RUNS:
        if not arguments[2:] or fault.__name__ in arguments[2:]:
            check(*map(os.path.abspath, arguments[:2]), fault)


if __name__ == "__main__":
    main(sys.argv[1:])
