#!/usr/bin/env python3
"""A worker for the topic "mail", on redis-py: worker.py [PORT]

The worker claims a timer when it is due, sends the mail, and acknowledges the timer after that. A
thread extends the lease while the mail is being sent. An exception fails the timer, which comes again
by its retry policy. SIGTERM stops the worker when the current mail is done.
"""
import json
import signal
import sys
import threading
import time

import redis

server = redis.Redis(port=int(sys.argv[1]) if len(sys.argv) > 1 else 7878)
stopping = threading.Event()


def send(mail):
    time.sleep(mail.get("seconds", 0))  # stands for the real work
    print("mail to", mail["to"], flush=True)


def extend(token, lease_ms, is_done):
    """Keeps the lease alive until the work is done or the lease is lost."""
    while not is_done.wait(lease_ms / 3000):
        try:
            server.execute_command("EXTEND", token)
        except redis.ResponseError:
            return  # STALE: cancelled, or the lease ended and another worker has the timer
        except redis.ConnectionError:
            pass


def work(delivery):
    token, topic, name, payload, due_ms, attempt, headers, lease_ms = delivery[:8]
    is_done = threading.Event()
    heartbeat = threading.Thread(target=extend, args=(token, lease_ms, is_done))
    heartbeat.start()
    try:
        send(json.loads(payload))
        outcome = ("ACK", token)
    except Exception as error:
        outcome = ("FAIL", token, "REASON", f"{type(error).__name__}: {error}")
    is_done.set()
    heartbeat.join()
    try:
        server.execute_command(*outcome)
    except redis.ResponseError as error:
        print(name.decode(), error, file=sys.stderr)


signal.signal(signal.SIGTERM, lambda *_: stopping.set())
while not stopping.is_set():
    try:
        for delivery in server.execute_command("CLAIM", "mail", "WAIT", "2s", "WORKER", "python"):
            work(delivery)
    except redis.ConnectionError as error:
        print(error, file=sys.stderr)
        time.sleep(1)  # the server restarts; what was not acknowledged comes again
