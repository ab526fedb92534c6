#!/usr/bin/env python3
"""Topics of the layout faststream through a real server: served.py BELFRY.

Over HTTP and the command line, with names that only such topics have.
"""
import json
import pathlib
import sys
from urllib.parse import quote

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "server"))
from redis_rig import Node, Redis, free_port, need_redis  # noqa: E402
from rig import Refusal, Server, main, run, until  # noqa: E402
from web import Web  # noqa: E402

TOPICS = ("plain", "naïve ü@ x", "a/b?c#d%", "{t}")
IDS = ("", "a", "naïve ü@ x", "a b", "a/b?c#d%", "{t}")


def path_of(topic, ident):
    path = f"/v1/topics/{quote(topic, safe='')}/timers"
    return f"{path}/{quote(ident, safe='')}" if ident else f"{path}?id="


def test_any_topic_and_id_over_http():
    with Redis() as redis, Node(redis.url()) as server:
        web = Web(server)
        for topic in TOPICS:
            at = f"/v1/topics/{quote(topic, safe='')}"
            web.right("PATCH", at, {"layout": "faststream"})
            for ident in IDS:
                path = path_of(topic, ident)
                assert web.right("PUT", path, {"payload": "x", "in": "1h"})["id"] == ident
                got = web.right("GET", path)
                assert (got["topic"], got["id"], got["payload"]) == (topic, ident, "x"), got
                assert web.right("PATCH", path, {"at": 1000000000000})
                (delivery,) = web.right("POST", at + "/claim", {"wait": "20s"})["deliveries"]
                assert (delivery["topic"], delivery["id"]) == (topic, ident), delivery
                web.right("POST", f"/v1/leases/{delivery['token']}/ack")
                web.right("PUT", path, {"payload": "x", "in": "1h"})
                web.right("DELETE", path)
                web.wrong(404, "NOTFOUND", "GET", path)
            assert web.right("GET", at)["settings"]["layout"] == "faststream"
        assert set(web.right("GET", "/v1/topics")["topics"]) == set(TOPICS)
        web.close()


def test_a_payload_keeps_its_type():
    with Redis() as redis, Node(redis.url()) as server:
        web = Web(server)
        web.right("PATCH", "/v1/topics/t", {"layout": "faststream"})
        web.right("PUT", "/v1/topics/t/timers/a", {"payload": {"a": [1]}, "headers": {"x": "y"}})
        (got,) = web.right("POST", "/v1/topics/t/claim", {"wait": "20s"})["deliveries"]
        assert got["payload"] == {"a": [1]} and got["correlation"] == "a"
        assert got["headers"] == {"content-type": "application/json", "x": "y"}, got
        web.close()


def test_an_empty_id_needs_the_layout():
    with Redis() as redis, Node(redis.url()) as server:
        web = Web(server)
        web.wrong(400, "BADARG", "PUT", "/v1/topics/t/timers?id=", {"payload": "x"})
        web.wrong(404, "NOTFOUND", "GET", "/v1/topics/t/timers?id=")
        status, _ = web.ask("POST", "/v1/topics/t/timers?id=", {"payload": "x"})
        assert status == 405
        web.wrong(400, "BADARG", "GET", "/v1/topics/t/timers?id=a")
        web.close()


def test_the_embedded_store_has_no_layouts():
    with Server() as server, server.client() as client:
        for name, value in (("layout", "faststream"), ("prefix", "a"), ("poll_min", "5ms")):
            error = refusal(client, "CONFIGURE", "t", name, value)
            assert str(error).startswith(f"UNSUPPORTED {name}: "), error


def refusal(client, *words):
    try:
        answer = client.ask(*words)
    except Refusal as error:
        return error
    raise AssertionError(answer)


def test_a_cluster_needs_a_hash_tag():
    """One server has all slots, and refuses a script whose keys are in several."""
    with Redis("--cluster-enabled", "yes", "--cluster-port", str(free_port())) as redis:
        with redis.client() as store:
            store.ask("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
            until(lambda: "cluster_state:ok" in store.ask("CLUSTER", "INFO"), "the cluster")
        with Node(redis.url().replace("redis:", "redis+cluster:")) as server, \
                server.client() as client:
            error = refusal(client, "CONFIGURE", "inv", "layout", "faststream")
            assert str(error).startswith("BADARG layout: ") and "{inv}" in str(error), error
            for topic, more, dead in (("{inv}", (), "_7Binv_7D:dead"),
                                      ("inv", ("prefix", "{svc}:"), "inv:dead")):
                client.ask("CONFIGURE", topic, "layout", "faststream", *more)
                for name in ("a", "b"):
                    client.ask("SCHEDULE", topic, "x", "ID", name)
                first, second = client.ask("CLAIM", topic, "COUNT", "2")
                assert client.ask("ACK", first[0]) == 1
                assert client.ask("FAIL", second[0], "DEAD")[0] == "dead"
                ((_, found),) = [client.ask("LIST", dead)]
                assert len(found) == 1 and second[2] in found[0], found
                client.ask("CONFIGURE", topic, "layout", "native")


def test_the_command_line():
    with Redis() as redis, Node(redis.url()) as server:
        def ask(*words):
            status, out, err = run(words[0], "--server", f"127.0.0.1:{server.port}", *words[1:])
            assert status == 0, (words, err)
            return out
        topic = TOPICS[1]
        ask("configure", topic, "layout=faststream")
        ask("schedule", topic, "hello", "--id", "naïve")
        got = json.loads(ask("get", topic, "naïve", "--json"))
        assert got["payload"] == "hello" and got["topic"] == topic, got
        assert "faststream" in ask("topics", topic)


need_redis()
main(dict(globals()))
