#!/usr/bin/env python3
"""belfry serve --store redis:// while its Redis is full or is changed by an operator.

Every redis-server is the test's own. Nothing is timed: what a test waits for has a deadline.
"""
import os
import shutil

from redis_rig import Node, Redis, need_redis
from rig import Refusal, main, until
from web import Web


def code(client, *words):
    """The first word of an error."""
    return client.refused(*words).split()[0]


def facts(client):
    lines = client.ask("INFO", "store").split("\r\n")
    return dict(line.split(":", 1) for line in lines if ":" in line)


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


def ready(web):
    """The status of /readyz."""
    return web.ask("GET", "/readyz")[0]


def cut(store):
    """Closes the connections of all others, when they listen again."""
    until(lambda: store.ask("CLIENT", "KILL", "TYPE", "pubsub") > 0, "a connection")


def test_data_that_is_gone_is_told():
    with Redis() as redis, Node(redis.url()) as server, Node(redis.url()) as other, \
            server.client() as client, redis.client() as store:
        client.ask("SCHEDULE", "t", "x", "ID", "a", "IN", "1h")
        for node in (server, other):
            with node.client() as asking:
                until(lambda: facts(asking)["store_origin"], "the origin")
                assert facts(asking)["store_origin"] == store.ask("GET", "{belfry}:origin")
                assert facts(asking)["store_data_losses"] == "0"
        for losses, words in enumerate((["FLUSHALL"], ["SWAPDB", "0", "1"]), 1):
            store.ask(*words)
            for node in (server, other):
                with node.client() as asking:
                    until(lambda: facts(asking)["store_data_losses"] == str(losses), words)
                until(lambda: node.log().count("store has lost its data") == losses, node.log)
        assert client.ask("SCHEDULE", "t", "x", "ID", "a", "IN", "1h") == "a"
    with Redis() as redis, Node(redis.url()) as server, server.client() as client:
        until(lambda: facts(client)["store_origin"], "the origin")
        redis.kill()
        redis.start()
        until(lambda: "store has lost its data" in server.log(), server.log)
        cut_off = server.log().count("store has lost its data")
        with redis.client() as store:
            cut(store)
        until(lambda: server.log().count("connected again") == 2, server.log)
        assert cut_off == 1 and facts(client)["store_data_losses"] == "1"


def test_a_policy_that_evicts_refuses_what_adds():
    with Redis() as redis, Node(redis.url()) as server, server.client() as client, \
            redis.client() as store:
        web = Web(server)
        client.ask("SCHEDULE", "t", "x", "ID", "a")
        client.ask("SCHEDULE", "t", "x", "ID", "b", "IN", "1h")
        for meets in (lambda: None, lambda: cut(store)):  # in time, and after a reconnection
            store.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
            meets()
            until(lambda: ready(web) == 503, "not ready")
            text = client.refused("SCHEDULE", "t", "x")
            assert text == (f"IO nothing was changed: 127.0.0.1:{redis.port} may delete timers: set "
                            "maxmemory-policy to noeviction"), text
            assert client.ask("RESCHEDULE", "t", "b", "IN", "2h") == 1
            ((token, *_),) = client.ask("CLAIM", "t")
            client.ask("RELEASE", token)
            assert "allkeys-lru" in facts(client)["store_trouble"]
            until(lambda: "store cannot take timers" in server.log(), server.log)
            store.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")
            meets()
            until(lambda: ready(web) == 200, "ready")
            assert client.ask("SCHEDULE", "t", "x", "ID", "a", "CONFLICT", "keep") == "a"
            assert facts(client)["store_trouble"] == ""
        until(lambda: "store can take timers again" in server.log(), server.log)
        web.close()


def test_a_disk_that_fails_is_told():
    with Redis("--save", "3600 1000000") as redis, Node(redis.url()) as server, \
            server.client() as client, redis.client() as store:
        web = Web(server)
        client.ask("SCHEDULE", "t", "x", "ID", "a")
        dump = break_disk(redis, store)
        text = client.refused("SCHEDULE", "t", "x")
        assert text.startswith(f"IO nothing was changed: 127.0.0.1:{redis.port}: MISCONF "), text
        for words in (["CANCEL", "none", "x"], ["CLAIM", "none"], ["CANCEL", "t", "none"]):
            assert code(client, *words) == "IO" and ready(web) == 503, words  # although no change
        until(lambda: "store cannot take timers" in server.log() and "its disk" in server.log(),
              server.log)
        shutil.rmtree(dump)
        store.ask("BGSAVE")
        until(lambda: ready(web) == 200, "ready")
        assert client.ask("SCHEDULE", "t", "x", "ID", "b") == "b"
        web.close()


def break_disk(redis, store):
    """Makes snapshots fail. Returns what is in the way."""
    dump = os.path.join(redis.folder, "dump.rdb")
    os.makedirs(os.path.join(dump, "in the way"))
    store.ask("BGSAVE")
    until(lambda: "rdb_last_bgsave_status:err" in store.ask("INFO", "persistence"), "BGSAVE")
    return dump


def test_a_disk_that_no_longer_matters_is_told():
    with Redis("--save", "3600 1000000") as redis, Node(redis.url()) as server, \
            server.client() as client, redis.client() as store:
        web = Web(server)
        break_disk(redis, store)
        assert code(client, "SCHEDULE", "t", "x") == "IO" and ready(web) == 503
        store.ask("CONFIG", "SET", "stop-writes-on-bgsave-error", "no")
        assert client.ask("SCHEDULE", "t", "x", "ID", "a") == "a"
        assert ready(web) == 200 and facts(client)["store_trouble"] == ""
        web.close()


def test_what_may_not_be_asked_is_not_known():
    with Redis("--save", "3600 1000000") as redis, Node(redis.url()) as server, \
            server.client() as client, redis.client() as store:
        web = Web(server)
        store.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        cut(store)
        until(lambda: facts(client)["store_trouble"], "the policy")
        store.ask("ACL", "SETUSER", "default", "-info")
        cut(store)
        until(lambda: ready(web) == 200, "ready")
        assert client.ask("SCHEDULE", "t", "x", "ID", "a") == "a"
        store.ask("ACL", "SETUSER", "default", "+info")
        dump = break_disk(redis, store)
        store.ask("ACL", "SETUSER", "default", "-info")
        assert code(client, "SCHEDULE", "t", "x") == "IO"
        until(lambda: ready(web) == 200, "ready")
        shutil.rmtree(dump)
        web.close()


def test_a_key_of_another_type_is_named():
    with Redis() as redis, Node(redis.url()) as server, server.client() as client, \
            redis.client() as store:
        client.ask("SCHEDULE", "t", "x", "ID", "a")
        store.ask("DEL", "{belfry:t:0}:hour")
        store.ask("SET", "{belfry:t:0}:hour", "theirs")
        for _ in range(100):
            text = client.refused("SCHEDULE", "t", "x")
            assert text == (f"IO nothing was changed: 127.0.0.1:{redis.port}: WRONGTYPE Operation "
                            "against a key holding the wrong kind of value"), text
        for _ in range(100):  # in batches of their own, whose refusals come together
            client.send("SCHEDULE", "t", "x")
            client.send("CANCEL", "t", "none")
        for _ in range(100):
            assert "WRONGTYPE" in read(client)
            assert client.read() == 0
        until(lambda: "store has refused requests" in server.log(), server.log)
        (line,) = [line for line in server.log().split("\n") if "has refused" in line]
        assert "key={belfry:t:0}:hour" in line and "WRONGTYPE" in line, line


def test_pipelined_requests_keep_their_order_across_an_outage():
    with Redis() as redis, Node(redis.url()) as server, server.client() as client, \
            server.client() as other:
        client.ask("SCHEDULE", "t", "x", "ID", "first", "IN", "1h")
        client.ask("CANCEL", "t", "first")
        for name in ("a", "b", "c"):
            redis.kill()
            until(lambda: facts(other)["store_ready"] == "0", "the outage")
            client.send("SCHEDULE", "t", "x", "ID", name, "IN", "1h")
            client.send("GET", "t", name)
            client.send("CANCEL", "t", name)
            client.send("GET", "t", name)
            other.ask("PING")
            redis.start()
            assert client.read() == name
            assert client.read() is not None, "GET has overtaken SCHEDULE"
            assert client.read() == 1, "CANCEL has overtaken SCHEDULE"
            assert client.read() is None


def test_a_password_that_is_needed_suddenly_is_told_in_whole_words():
    with Redis() as redis, Node(redis.url()) as server, server.client() as client, \
            redis.client() as store:
        client.ask("SCHEDULE", "t", "x")
        store.ask("CONFIG", "SET", "requirepass", "secret")
        cut(store)
        text = client.refused("SCHEDULE", "t", "x")
        assert text.startswith("IO nothing was changed, the store was not reached: ") and \
            f"127.0.0.1:{redis.port}: NOAUTH" in text, text
        assert text.endswith(" ...") or text.endswith("file="), text


need_redis()
main(dict(globals()))
