#!/usr/bin/env python3
"""redis-py as people use it: client_redis.py PORT PORT-WITH-KEYS KEY"""
import sys
import threading
import time

import redis

PORT, PORT_WITH_KEYS, KEY = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
VERSION = tuple(int(part) for part in redis.__version__.split(".")[:2])
DEADLINE = 30.0


class Skip(Exception):
    """A case that this version of the client cannot be tried with."""


def connect(**options):
    return redis.Redis(port=PORT, decode_responses=True, **options)


def refused(kind, code, question):
    """The text of the error that the question must end with."""
    try:
        answer = question()
    except kind as error:
        assert str(error).startswith(code), error
        return str(error)
    raise AssertionError(f"not refused: {answer}")


def pairs(answer):
    """A map, which is flat in version 2."""
    return answer if isinstance(answer, dict) else dict(zip(answer[::2], answer[1::2]))


def until_waiting(client, count):
    end = time.monotonic() + DEADLINE
    while client.info("clients")["requests_under_way"] != count:
        assert time.monotonic() < end, f"never {count} claims that wait"


def test_connecting():
    for options in ({}, {"db": 0}, {"client_name": "me"}, {"health_check_interval": 1},
                    {"socket_timeout": DEADLINE, "socket_keepalive": True},
                    {"single_connection_client": True}, {"retry_on_timeout": True}):
        with connect(**options) as client:
            assert client.ping() is True
            assert client.echo("x") == "x"
    with connect(client_name="me") as client:
        assert client.client_getname() == "me"
    with redis.from_url(f"redis://127.0.0.1:{PORT}/0") as client:
        assert client.echo("x") == b"x"
    refused(redis.ResponseError, "", connect(db=1).ping)


def check_commands(client):
    commands = client.command()
    assert len(commands) == client.command_count() and "schedule" in commands
    assert commands["ack"]["arity"] == -2 and commands["get"]["arity"] == 3, commands
    if VERSION >= (5, 0):
        assert list(commands["get"]["acl_categories"]) == ["@read"], commands["get"]
        assert commands["get"]["subcommands"] == [], commands["get"]


def test_what_it_knows_of_the_server():
    with connect(client_name="me") as client:
        assert client.client_id() > 0
        mine = client.client_info()
        assert mine["id"] == client.client_id() and mine["name"] == "me" and mine["db"] == 0, mine
        (listed,) = [line for line in client.client_list() if line["id"] == str(mine["id"])]
        assert listed["name"] == "me" and listed["addr"].startswith("127.0.0.1:"), listed
        assert client.client_setname("you") is True
        info = client.info()
        assert info["tcp_port"] == PORT and info["belfry_version"], info
        assert client.info("store")["store"] in ("memory", "redis")
        check_commands(client)
        assert client.execute_command("CLIENT", "SETINFO", "LIB-NAME", "redis-py") in ("OK", True)


def test_a_timer_from_its_making_to_its_end():
    payload = bytes(range(256))
    with redis.Redis(port=PORT) as client:
        name = client.execute_command("SCHEDULE", "py/raw", payload, "ID", "a", "HEADER", "k", b"\xff")
        assert name == b"a"
        timer = pairs(client.execute_command("GET", "py/raw", "a"))
        assert timer[b"state"] == b"ready" and timer[b"payload"] == payload, timer
        assert isinstance(timer[b"due_ms"], int) and timer[b"headers"] == [b"k", b"\xff"]
        (delivery,) = client.execute_command("CLAIM", "py/raw", "COUNT", 10, "WAIT", "20s")
        token, topic, name, got, due, attempt, headers = delivery[:7]
        assert (topic, name, got, attempt) == (b"py/raw", b"a", payload, 1), delivery
        assert due == timer[b"due_ms"] and headers == [b"k", b"\xff"]
        assert client.execute_command("EXTEND", token, "1m") == 60000
        assert client.execute_command("ACK", token) == 1
        assert client.execute_command("ACK", token) == 0
        assert client.execute_command("GET", "py/raw", "a") is None
        assert client.execute_command("CLAIM", "py/raw") == []


def test_maps_in_maps():
    with connect() as client:
        for i in range(3):
            client.execute_command("SCHEDULE", "py/list", i, "ID", i, "IN", "1h")
        cursor, timers = client.execute_command("LIST", "py/list", "COUNT", 2)
        assert cursor and [pairs(timer)["id"] for timer in timers] == ["0", "1"]
        cursor, timers = client.execute_command("LIST", "py/list", "CURSOR", cursor)
        assert cursor == "" and [pairs(timer)["id"] for timer in timers] == ["2"]
        topic = pairs(client.execute_command("TOPIC", "py/list"))
        assert topic["scheduled"] == 3 and not topic["paused"], topic
        assert "py/list" in client.execute_command("TOPICS")
        assert client.execute_command("CANCEL", "py/list", 0, 1, 2, 3) == 3


def test_a_pipeline():
    with connect() as client:
        pipeline = client.pipeline(transaction=False)
        for i in range(2000):
            pipeline.execute_command("SCHEDULE", "py/pipe", "x" * (i % 100), "ID", i)
        assert pipeline.execute() == [str(i) for i in range(2000)]
        pipeline.execute_command("CLAIM", "py/pipe", "COUNT", 1000)
        pipeline.execute_command("SCHEDULE", "py/pipe", "x", "IN", "never")
        pipeline.execute_command("CLAIM", "py/pipe", "COUNT", 1000)
        pipeline.execute_command("CLAIM", "py/pipe")
        first, error, second, third = pipeline.execute(raise_on_error=False)
        assert isinstance(error, redis.ResponseError) and str(error).startswith("BADARG")
        assert sorted(int(each[2]) for each in first + second) == list(range(2000))
        assert third == []
        for each in first + second:
            pipeline.execute_command("ACK", each[0])
        assert pipeline.execute() == [1] * 2000


def test_errors_have_our_codes():
    with connect() as client:
        def say(*words):
            return lambda: client.execute_command(*words)
        refused(redis.ResponseError, "BADARG IN", say("SCHEDULE", "t", "x", "IN", "soon"))
        refused(redis.ResponseError, "NOTFOUND", say("TOPIC", "py/nowhere"))
        refused(redis.ResponseError, "STALE", say("EXTEND", "nonsense"))
        refused(redis.ResponseError, "unknown command 'FLUSHALL'", say("FLUSHALL"))
        client.execute_command("SCHEDULE", "py/taken", "x", "ID", "a", "IN", "1h")
        refused(redis.ResponseError, "CONFLICT",
                say("SCHEDULE", "py/taken", "x", "ID", "a", "CONFLICT", "reject"))
        text = refused(redis.ResponseError, "BADARG", say("SCHEDULE", "t", "x", "IN", "a\r\n+OK\r\n"))
        assert "\n" not in text and client.ping() is True
        transaction = client.pipeline(transaction=True)
        transaction.execute_command("SCHEDULE", "py/all", "x")
        refused(redis.ResponseError, "Command # 1", transaction.execute)
        assert client.ping() is True and "py/all" not in client.execute_command("TOPICS")


def test_a_claim_waits_in_a_thread():
    with connect() as client:
        heard = []
        thread = threading.Thread(
            target=lambda: heard.append(client.execute_command("CLAIM", "py/wait", "WAIT", "60s")))
        thread.start()
        until_waiting(client, 1)
        client.execute_command("SCHEDULE", "py/wait", "at last")
        thread.join(DEADLINE)
        ((delivery,),) = heard
        assert delivery[3] == "at last"
        assert client.execute_command("ACK", delivery[0], "RESULT", "done") == 1
        assert client.execute_command("CLAIM", "py/wait", "WAIT", "1ms") == []


def test_a_pool_of_many():
    pool = redis.BlockingConnectionPool(port=PORT, max_connections=5, decode_responses=True,
                                        timeout=DEADLINE)
    client = redis.Redis(connection_pool=pool)
    taken, lock = [], threading.Lock()

    def work():
        for i in range(20):
            client.execute_command("SCHEDULE", "py/pool", "x")
            for each in client.execute_command("CLAIM", "py/pool", "COUNT", 5):
                assert client.execute_command("ACK", each[0]) == 1
                with lock:
                    taken.append(each[2])
    threads = [threading.Thread(target=work) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)
    rest = client.execute_command("CLAIM", "py/pool", "COUNT", 1000)
    assert len(set(taken)) == len(taken) == 200 - len(rest), (len(taken), len(rest))
    pool.disconnect()


def test_a_claim_that_is_given_up_takes_nothing():
    client = connect(socket_timeout=0.05)
    refused(redis.TimeoutError, "", lambda: client.execute_command("CLAIM", "py/late", "WAIT", "60s"))
    with connect() as other:
        until_waiting(other, 0)
        other.execute_command("SCHEDULE", "py/late", "x")
        assert len(client.execute_command("CLAIM", "py/late")) == 1
    client.close()


def test_keys():
    with redis.Redis(port=PORT_WITH_KEYS) as client:
        refused(redis.AuthenticationError, "", client.ping)
    with redis.Redis(port=PORT_WITH_KEYS, password="wrong") as client:
        refused(redis.AuthenticationError, "", client.ping)
    for options in ({"password": KEY}, {"username": "worker", "password": KEY}):
        with redis.Redis(port=PORT_WITH_KEYS, **options) as client:
            assert client.ping() is True
    with redis.from_url(f"redis://worker:{KEY}@127.0.0.1:{PORT_WITH_KEYS}") as client:
        assert client.execute_command("TOPICS") == []


def test_version_3():
    if VERSION < (5, 0):
        raise Skip(f"redis-py {redis.__version__} has only version 2")
    with connect(protocol=3) as client:
        assert client.ping() is True
        check_commands(client)
        client.execute_command("SCHEDULE", "py/three", "x", "ID", "a", "IN", "1h")
        timer = client.execute_command("GET", "py/three", "a")
        assert isinstance(timer, dict) and timer["state"] == "scheduled", timer
        assert client.execute_command("TOPIC", "py/three")["paused"] is False
        assert client.execute_command("GET", "py/three", "b") is None
        cursor, (listed,) = client.execute_command("LIST", "py/three")
        assert (cursor, listed["id"]) == ("", "a")
    with redis.Redis(port=PORT_WITH_KEYS, username="worker", password=KEY, protocol=3) as client:
        assert client.ping() is True


for name, case in list(globals().items()):
    if name.startswith("test_"):
        try:
            case()
            print("ok  ", name[len("test_"):], flush=True)
        except Skip as why:
            print("SKIPPED", name[len("test_"):], why, flush=True)
