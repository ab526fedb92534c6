#!/usr/bin/env python3
"""Runs a worker of examples/workers against a real server.

    workers.py BELFRY LANGUAGE SOURCE FOLDER

LANGUAGE is python, node, go or shell; SOURCE is examples/workers; FOLDER is where packages of node are
installed. A language or a module that is missing is reported, and the test counts as skipped.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "clients"))
from run import PATIENCE, Server, find_python, install_packages, skip  # noqa: E402
from rig import DEADLINE  # noqa: E402

LANGUAGE, SOURCE, FOLDER = sys.argv[2:5]


def command_of(scratch):
    """What starts the worker; its port comes after."""
    if LANGUAGE == "python":
        return [find_python(), os.path.join(SOURCE, "worker.py")]
    if LANGUAGE == "shell":
        if shutil.which("redis-cli") is None:
            skip("shell: there is no redis-cli here (package redis-tools)")
        return ["bash", os.path.join(SOURCE, "worker.sh")]
    if LANGUAGE == "node":
        for program in ("node", "npm"):
            if shutil.which(program) is None:
                skip(f"node: there is no {program} here (packages nodejs and npm)")
        tests = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        install_packages(os.path.join(tests, "clients", "node"), FOLDER)
        return ["node", shutil.copy(os.path.join(SOURCE, "worker.mjs"), FOLDER)]
    if shutil.which("go") is None:
        skip("go: there is no go here (package golang)")
    program = os.path.join(scratch, "worker")
    built = subprocess.run(["go", "build", "-o", program, "."], cwd=os.path.join(SOURCE, "go"),
                           capture_output=True, text=True, timeout=PATIENCE,
                           env={**os.environ, "GOTOOLCHAIN": "local"})
    if built.returncode != 0:
        missing = ("dial tcp", "no such host", "requires go", "cannot find module", "i/o timeout")
        assert any(word in built.stderr for word in missing), built.stderr
        skip("go: the module github.com/redis/go-redis is not to be had:\n" + built.stderr[-2000:])
    return [program]


def timer(client, name):
    fields = client.ask("GET", "mail", name)
    return dict(zip(fields[::2], fields[1::2]))


def until(client, name, state):
    """Waits until a timer has a state."""
    end = time.monotonic() + DEADLINE
    while timer(client, name)["state"] != state:
        assert time.monotonic() < end, f"{name} is {timer(client, name)}, not {state}"
        time.sleep(0.02)
    return timer(client, name)


def ok(name):
    print("ok  ", name, flush=True)


def talk(client, worker):
    client.ask("CONFIGURE", "mail", "retention", "1h")
    client.ask("SCHEDULE", "mail", '{"to": "ann"}', "ID", "ann", "IN", "100ms")
    until(client, "ann", "done")
    ok("a_timer_is_worked_on_when_it_is_due")
    client.ask("SCHEDULE", "mail", "{}", "ID", "nobody", "RETRY", "10ms,10ms")
    dead = until(client, "nobody", "dead")
    assert dead["attempts"] == 3 and dead["reason"], dead
    ok("a_handler_that_fails_is_tried_again_and_given_up")
    client.ask("SCHEDULE", "mail", '{"to": "bob", "seconds": 3}', "ID", "bob", "LEASE", "1s")
    slow = until(client, "bob", "done")
    assert slow["crashes"] == 0 and slow["attempts"] == 0, slow
    ok("a_lease_is_extended_while_the_work_goes_on")
    client.ask("SCHEDULE", "mail", '{"to": "cid", "seconds": 3}', "ID", "cid", "LEASE", "1s",
               "CORRELATION", "order-7", "HEADER", "kind", "slow", "HEADER", "7", "8")
    slow = until(client, "cid", "done")
    assert slow["crashes"] == 0 and slow["attempts"] == 0, slow
    ok("so_is_that_of_a_timer_with_headers_and_a_correlation")
    client.ask("SCHEDULE", "mail", '{"to": "eve", "seconds": 0.5}', "ID", "eve")
    until(client, "eve", "leased")
    worker.terminate()
    assert worker.wait(timeout=DEADLINE) == 0, "the worker exits with another status"
    assert timer(client, "eve")["state"] == "done", timer(client, "eve")
    ok("a_signal_lets_it_finish")


with tempfile.TemporaryDirectory() as scratch, Server("--store", "memory") as server, \
        server.client() as client, open(os.path.join(scratch, "said"), "w+") as said:
    worker = subprocess.Popen([*command_of(scratch), str(server.port)], stdout=said)
    try:
        talk(client, worker)
    finally:
        worker.kill()
        worker.wait()
    said.seek(0)
    assert said.read() == "mail to ann\nmail to bob\nmail to cid\nmail to eve\n"
    ok("each_mail_was_sent_once")
