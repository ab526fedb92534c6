#!/usr/bin/env python3
"""belfry serve --store redis:// while its Redis is full or is changed by an operator.

Every redis-server is the test's own. Nothing is timed: what a test waits for has a deadline.
"""
from redis_rig import Node, Redis, need_redis
from rig import Refusal, main


def code(client, *words):
    """The first word of an error."""
    return client.refused(*words).split()[0]


def read(client):
    try:
        return client.read()
    except Refusal as refusal:
        return str(refusal)


def test_a_full_server_refuses_what_adds_and_nothing_else():
    with Redis() as redis, Node(redis.url()) as server, server.client() as client, \
            redis.client() as store:
        client.ask("CONFIGURE", "py", "layout", "faststream")
        for name in ("a", "b", "c"):
            client.ask("SCHEDULE", "t", "x", "ID", name)
        client.ask("SCHEDULE", "t", "x", "ID", "later", "IN", "1h")
        client.ask("SCHEDULE", "t", "x", "ID", "plan", "EVERY", "1h")
        client.ask("SCHEDULE", "py", "x", "ID", "later", "IN", "1h")
        for token, *_ in client.ask("CLAIM", "t", "COUNT", 3):
            client.ask("FAIL", token, "DEAD")
        store.ask("CONFIG", "SET", "maxmemory", "1")
        again = ["SCHEDULE", "t", "y", "ID"]
        for words in (["SCHEDULE", "t", "x"], again + ["later"],
                      again + ["new", "CONFLICT", "keep"], again + ["new", "CONFLICT", "reject"],
                      again + ["later", "IN", "1m", "CONFLICT", "earliest"],
                      ["SCHEDULE", "py", "y", "ID", "later"],
                      ["SCHEDULE", "py", "y", "ID", "new", "CONFLICT", "keep"]):
            text = client.refused(*words)
            assert text.startswith("FULL ") and "nothing was changed" in text, (words, text)
        # What adds nothing is answered as usual, also in one call with what is refused.
        for topic in ("t", "py"):
            assert client.ask("SCHEDULE", topic, "y", "ID", "later", "CONFLICT", "keep") == "later"
            assert code(client, "SCHEDULE", topic, "y", "ID", "later", "CONFLICT",
                        "reject") == "CONFLICT"
        assert client.ask(*again, "plan", "EVERY", "1m", "CONFLICT", "keep") == "plan"
        assert client.ask(*again, "later", "IN", "2h", "CONFLICT", "earliest") == "later"
        assert client.ask(*again, "later", "IN", "1m", "CONFLICT", "latest") == "later"
        for name in ("later", "new", "plan"):
            client.send(*again, name, "CONFLICT", "keep")
        assert [read(client).split()[0] for _ in range(3)] == ["later", "FULL", "plan"]
        assert client.ask("REVIVE", "t", "a") == 1 and client.ask("REVIVE", "t", "*") == 2
        assert client.ask("RESCHEDULE", "t", "later", "IN", "1s") == 1
        assert len(client.ask("CLAIM", "t", "COUNT", 3)) == 3
        assert client.ask("GET", "t", "new") is None
        store.ask("CONFIG", "SET", "maxmemory", "0")
        assert client.ask(*again, "new", "CONFLICT", "keep") == "new"


need_redis()
main(dict(globals()))
