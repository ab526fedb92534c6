#!/usr/bin/env python3
"""HTTP: the commands as resources, with JSON in and out."""
import base64
import http.client
import json
import os
import re
import signal
import socket
import tempfile
import urllib.parse

from rig import DEADLINE, Server, main, run, until

KEY = "correct-horse-battery-staple"


class Web:
    """A client with one keep-alive connection."""

    def __init__(self, server, key=None):
        self.port = int(server.places["http"].rsplit(":", 1)[1])
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE)
        self.key = key

    def send(self, method, path, body=None, headers=None):
        headers = dict(headers or {})
        if self.key:
            headers["Authorization"] = "Bearer " + self.key
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        self.connection.request(method, path, body, headers)

    def read(self):
        """Returns the status and the body: JSON, text, or None."""
        self.answer = self.connection.getresponse()
        data = self.answer.read()
        kind = self.answer.headers.get("Content-Type", "")
        return self.answer.status, json.loads(data) if "json" in kind else data.decode()

    def ask(self, *request, **more):
        self.send(*request, **more)
        return self.read()

    def right(self, *request, **more):
        status, answer = self.ask(*request, **more)
        assert 200 <= status < 300, (request, status, answer)
        return answer

    def wrong(self, status, code, *request, **more):
        got, answer = self.ask(*request, **more)
        assert got == status and answer["code"] == code, (request, got, answer)
        assert self.answer.headers["Content-Type"] == "application/problem+json"
        assert answer["status"] == status, answer
        return answer

    def close(self):
        self.connection.close()


def serve(*flags):
    return Server("--store", "memory", "--http", "127.0.0.1:0", *flags)


def claim_one(web, topic):
    (delivery,) = web.right("POST", f"/v1/topics/{topic}/claim", {"wait": "20s"})["deliveries"]
    return delivery


def test_it_lives():
    with serve() as server:
        web = Web(server)
        assert web.right("GET", "/livez") == {"status": "ok"}
        assert web.right("GET", "/readyz") == {"status": "ok"}
        web.right("POST", "/v1/topics/t/timers", {"payload": "x", "in": "1h"})
        text = web.right("GET", "/metrics")
        assert "# TYPE" in text and 'topic="t"' in text, text[:500]
        assert "belfry_http_clients 1\n" in text and "belfry_leases_lost_total 0\n" in text
        assert 'belfry_http_requests_total{status="2xx"} 3\n' in text, text
        assert 'belfry_plan_skips_total{reason="misfire"} 0\n' in text
        web.send("HEAD", "/livez")
        assert web.connection.getresponse().read() == b""


def test_a_timer_from_its_making_to_its_end():
    with serve() as server:
        web = Web(server)
        made = web.right("POST", "/v1/topics/mail/timers",
                         {"payload": "hello", "in": "1h", "priority": 5, "headers": {"a": "b"}})
        assert web.answer.status == 201
        place = web.answer.headers["Location"]
        assert place == "/v1/topics/mail/timers/" + made["id"]
        timer = web.right("GET", place)
        assert (timer["payload"], timer["state"], timer["priority"], timer["headers"]) == (
            "hello", "scheduled", 5, {"a": "b"}), timer
        assert web.right("PATCH", place, {"in": 0}) == {"count": 1}
        delivery = claim_one(web, "mail")
        assert (delivery["id"], delivery["attempt"]) == (made["id"], 1)
        lease = "/v1/leases/" + delivery["token"]
        assert web.right("POST", lease + "/extend", {"lease": "1m"})["lease_left_ms"] == 60000
        assert web.right("POST", lease + "/release") == {"count": 1}
        web.wrong(409, "STALE", "POST", lease + "/ack")
        lease = "/v1/leases/" + claim_one(web, "mail")["token"]
        verdict = web.right("POST", lease + "/fail", {"reason": "tired", "dead": True})
        assert verdict == {"state": "dead"}
        assert web.right("GET", place)["reason"] == "tired"
        assert web.right("POST", "/v1/topics/mail/revive") == {"count": 1}
        lease = "/v1/leases/" + claim_one(web, "mail")["token"]
        assert web.right("POST", lease + "/ack") == {"count": 1}
        web.wrong(404, "NOTFOUND", "GET", place)
        web.wrong(404, "NOTFOUND", "DELETE", place)


def test_put_delete_and_conflicts():
    with serve() as server:
        web = Web(server)
        path = "/v1/topics/a%2Fb/timers/x"
        assert web.right("PUT", path, {"payload": "", "in": "1h"}) == {"topic": "a/b", "id": "x"}
        web.wrong(409, "CONFLICT", "PUT", path, {"payload": "", "in": "1h", "conflict": "reject"})
        assert web.right("GET", path)["payload"] == ""
        with server.client() as client:
            assert client.ask("GET", "a/b", "x") is not None
        assert web.right("DELETE", path) == {"count": 1}
        web.right("POST", "/v1/topics/a%2Fb/timers", {"payload": "", "id": "y/z", "in": "1h"})
        assert web.answer.headers["Location"] == "/v1/topics/a%2Fb/timers/y%2Fz"
        assert web.right("GET", web.answer.headers["Location"])["id"] == "y/z"


def test_a_request_that_is_sent_again_makes_one_timer():
    with serve() as server:
        web = Web(server)
        path = "/v1/topics/t/timers"
        for key in ["k-1", '"k-1"', "k-1"]:
            made = web.right("POST", path, {"in": "1h", "payload": key}, {"Idempotency-Key": key})
            assert made == {"topic": "t", "id": "k-1"} and web.answer.status == 201
            assert web.answer.headers["Location"] == path + "/k-1"
        assert web.right("GET", path + "/k-1")["payload"] == "k-1"  # the first of them
        again = {"Idempotency-Key": "k-1"}
        web.wrong(409, "CONFLICT", "POST", path, {"payload": "", "in": "1h", "conflict": "reject"}, again)
        web.wrong(400, "BADARG", "POST", path, {"payload": "", "in": "1h", "id": "other"}, again)
        for key in ["", '""', "a" * 1000, "user@1"]:
            web.wrong(400, "BADARG", "POST", path, {"payload": "", "in": "1h"}, {"Idempotency-Key": key})
        assert len(web.right("GET", path)["timers"]) == 1
        web.right("PUT", path + "/k-2", {"payload": "", "in": "1h"}, again)  # it has a name
        assert len(web.right("GET", path)["timers"]) == 2


def test_payloads_come_back_as_they_were():
    with serve() as server:
        web = Web(server)
        for value in ["text", "", "gr\u00fc\u00df\u0000e", {"b": 1, "a": [True, None, 0.5]}, [], 7, None]:
            web.right("PUT", "/v1/topics/t/timers/p", {"payload": value})
            assert claim_one(web, "t")["payload"] == value, value
        raw = bytes(range(256))
        for count in range(250, 257):
            text = base64.b64encode(raw[:count]).decode()
            web.right("PUT", "/v1/topics/t/timers/p", {"payload_base64": text})
            assert claim_one(web, "t")["payload_base64"] == text
        with server.client() as client:
            web.right("PUT", "/v1/topics/t/timers/p", {"payload": {"a": 1}})
            (delivery,) = client.ask("CLAIM", "t", "WAIT", "20s")
            assert delivery[3] == '{"a":1}' and "application/json" in delivery[6], delivery
            web.right("PUT", "/v1/topics/t/timers/p", {"payload": {"price": [19.99, 0.1]}})
            (delivery,) = client.ask("CLAIM", "t", "WAIT", "20s")
            assert delivery[3] == '{"price":[19.99,0.1]}', delivery
        status, answer = web.ask("GET", "/v1/topics/t/timers/p")
        assert status == 200 and answer["payload"] == {"price": [19.99, 0.1]}, answer
        for body in ({"payload_base64": "a"}, {"payload_base64": "a==="}, {"payload_base64": 1},
                     {"payload": 1, "payload_base64": "QUJD"}):
            web.wrong(400, "BADARG", "PUT", "/v1/topics/t/timers/p", body)


def test_content_types_in_any_case_and_with_parameters():
    with serve() as server, server.client() as client:
        web = Web(server)
        types = {"application/json": True, "Application/JSON": True, "application/json;charset=utf-8": True,
                 "application/json ; a=b": True, "application/jsonx": False, "text/plain": False, "": False}
        for name in ("content-type", "Content-Type"):
            for value, is_json in types.items():
                client.ask("SCHEDULE", "t", '{"a": 1.50}', "ID", "a", "HEADER", name, value)
                payload = web.right("GET", "/v1/topics/t/timers/a")["payload"]
                assert payload == ({"a": 1.5} if is_json else '{"a": 1.50}'), (name, value, payload)
        client.ask("SCHEDULE", "t", "[1", "ID", "a", "HEADER", "content-type", "application/json")
        assert web.right("GET", "/v1/topics/t/timers/a")["payload"] == "[1"
        client.ask("SCHEDULE", "t", "[" + "9" * 40 + "]", "ID", "a", "HEADER", "content-type",
                   "application/json")  # a JSON payload comes back as it is, also if its numbers are long
        assert web.right("GET", "/v1/topics/t/timers/a")["payload"] == [int("9" * 40)]


def test_pages_of_large_timers_have_cursors():
    with serve() as server, server.client() as client:
        web = Web(server)
        for i in range(5):
            client.ask("SCHEDULE", "t", "\x01" * 900000, "ID", i, "AT", 4000000000000 + i)
        pages, seen, cursor = 0, [], ""
        while cursor is not None:
            page = web.right("GET", f"/v1/topics/t/timers?limit=1000&cursor={cursor}")
            assert all(timer["payload"] == "\x01" * 900000 for timer in page["timers"])
            seen += [timer["id"] for timer in page["timers"]]
            pages, cursor = pages + 1, page["cursor"]
        assert seen == list("01234") and pages == 3, (seen, pages)


def test_headers_that_come_again():
    with serve() as server, server.client() as client:
        web = Web(server)
        client.ask("SCHEDULE", "t", "x", "ID", "a", "HEADER", "k", "1", "HEADER", "l", "",
                   "HEADER", "k", "2", "HEADER", "k", b"\xff", "HEADER", "k", "3")
        headers = web.right("GET", "/v1/topics/t/timers/a")["headers"]
        assert headers == {"k": ["1", "2", "3"], "l": "", "k_base64": "/w=="}, headers
        web.right("PUT", "/v1/topics/t/timers/b", {"payload": "", "headers": {"k": ["1", 2], "l": ["3"]}})
        timer = client.ask("GET", "t", "b")
        assert timer[timer.index("headers") + 1] == ["k", "1", "k", "2", "l", "3"], timer
        for value in ([], [["1"]], [None], {"a": "b"}):
            web.wrong(400, "BADARG", "PUT", "/v1/topics/t/timers/c", {"payload": "", "headers": {"k": value}})


def test_lists_and_topics():
    with serve() as server:
        web = Web(server)
        for i in range(5):
            web.right("PUT", f"/v1/topics/t/timers/{i}", {"payload": "", "at": 4000000000000 + i})
        seen, cursor = [], ""
        while cursor is not None:
            page = web.right("GET", f"/v1/topics/t/timers?state=scheduled&limit=2&cursor={cursor}")
            seen += [timer["id"] for timer in page["timers"]]
            cursor = page["cursor"]
        assert seen == list("01234"), seen
        late = web.right("GET", "/v1/topics/t/timers?from=2096-10-02T07%3A06%3A40.003Z")["timers"]
        assert [timer["id"] for timer in late] == ["3", "4"], late
        assert web.right("GET", "/v1/topics") == {"topics": ["t"]}
        assert web.right("PATCH", "/v1/topics/t", {"lease": "7s", "crashes": 3}) == ""
        assert web.answer.status == 204
        web.right("POST", "/v1/topics/t/pause")
        topic = web.right("GET", "/v1/topics/t")
        assert topic["paused"] is True and topic["scheduled"] == 5, topic
        assert topic["settings"]["lease"] == "7s" and topic["settings"]["crashes"] == "3", topic
        told = web.right("GET", "/v1/explain/t/0")
        due = web.right("GET", "/v1/topics/t/timers/0")["due_ms"]
        assert told["lines"], told
        assert (told["reason"], told["until_ms"], told["by"]) == ("time", due, None), told
        web.right("POST", "/v1/topics/t/resume")
        assert web.right("GET", "/v1/topics/t")["paused"] is False
        web.right("PUT", "/v1/topics/t/timers/plan", {"payload": "", "every": "1h"})
        steps = web.right("GET", "/v1/agenda?topic=t&step=1h")["steps"]
        assert sum(step["count"] for step in steps) >= 20, steps
        assert web.right("POST", "/v1/topics/t/purge", {"state": "scheduled"})["count"] >= 5
        web.wrong(404, "NOTFOUND", "GET", "/v1/topics/none")


def test_what_is_refused():
    with serve() as server:
        web = Web(server)
        timers = "/v1/topics/t/timers"
        web.wrong(404, "NOTFOUND", "GET", "/nowhere")
        web.wrong(404, "NOTFOUND", "GET", "/v1/topics/")
        assert web.wrong(404, "NOTFOUND", "GET", timers + "/a")["detail"] == "no such timer"
        assert web.wrong(405, "ERR", "DELETE", timers)["title"] == "Method not allowed"
        assert web.answer.headers["Allow"] == "POST, GET, HEAD"
        for body in ("{", "[]", "1", '{"in":"1h","in":"2h"}', '{"payload":"\udcff"}', "[" * 5000):
            data = body.encode("utf-8", "surrogateescape")
            web.wrong(400, "BADARG", "POST", timers, data)
        for body in ({"in": "soon"}, {"in": -1}, {"in": 1.5}, {"in": True}, {"IN": "1h"},
                     {"topic": "u"}, {"priority": 256}, {"headers": []}, {"headers": {"a": []}},
                     {"id": "a b"}):
            web.wrong(400, "BADARG", "POST", timers, {"payload": "", **body})
        web.wrong(400, "ERR", "POST", timers, {"payload": "", "in": "1h", "at": 4000000000000})
        web.wrong(400, "BADARG", "PUT", timers + "/a", {"payload": "", "id": "b"})
        web.wrong(400, "BADARG", "POST", "/v1/topics/t/claim", {"other": "topic"})
        for method, path in (("POST", timers), ("PUT", timers + "/a")):
            for body in (None, {}, {"in": "1h"}):
                assert "payload" in web.wrong(400, "BADARG", method, path, body)["detail"]
        web.wrong(400, "BADARG", "GET", timers + "?color=red")
        web.wrong(400, "BADARG", "POST", "/v1/topics/a%00b/timers", {})
        assert web.right("GET", "/v1/topics") == {"topics": []}


def test_bodies_are_limited():
    with serve("--max-payload", "1000") as server:
        web = Web(server)
        web.right("POST", "/v1/topics/t/timers", {"payload": "x" * 1000})
        status, answer = web.ask("POST", "/v1/topics/t/timers", {"payload": "x" * 1001})
        assert status in (400, 507), (status, answer)
        raw = socket.create_connection(("127.0.0.1", web.port), timeout=DEADLINE)
        raw.sendall(b"POST /v1/topics/t/timers HTTP/1.1\r\nHost: localhost\r\n"
                    b"Content-Length: 99999999\r\n\r\n")
        page = raw.makefile("rb").read()
        assert b" 413 " in page.split(b"\r\n")[0] and b'"status":413' in page, page
        raw.close()
        raw = socket.create_connection(("127.0.0.1", web.port), timeout=DEADLINE)
        raw.sendall(b"POST /v1/topics/t/timers HTTP/1.1\r\nHost: localhost\r\n"
                    b"Transfer-Encoding: chunked\r\n\r\n")
        for _ in range(40):
            raw.sendall(b"2000\r\n" + b" " * 0x2000 + b"\r\n")
        raw.sendall(b"0\r\n\r\n")
        assert b" 413 " in raw.makefile("rb").readline()
        raw.close()


def test_values_of_a_body_are_limited():
    with serve() as server:
        web = Web(server)
        commas = "," * 30000
        web.right("PUT", "/v1/topics/t/timers/text", {"payload": '[{"' + commas})
        assert claim_one(web, "t")["payload"] == '[{"' + commas
        web.right("PUT", "/v1/topics/t/timers/list", {"payload": [1] * 19000})
        answer = web.wrong(400, "BADARG", "PUT", "/v1/topics/t/timers/long",
                           {"payload": [1] * 20000})
        assert "more than 20000 values" in answer["detail"], answer


def test_other_sites_are_kept_out():
    with serve() as server:
        web = Web(server)
        own = f"127.0.0.1:{web.port}"
        web.wrong(403, "NOPERM", "GET", "/v1/topics", headers={"Host": "evil.example"})
        for origin in ("http://evil.example", "null", f"http://{own}.evil.example"):
            web.wrong(403, "NOPERM", "GET", "/v1/topics", headers={"Origin": origin})
        for headers in ({"Origin": f"http://{own}"}, {"Host": "localhost"}, {"Host": "[::1]:1"}):
            web.right("GET", "/v1/topics", headers=headers)


def test_keys():
    lines = []
    for i, permissions in enumerate(("all", "read", "read,write,@t,@u.*")):
        _, line, _ = run("serve", "--hash-key", f"user{i}", permissions, stdin=f"{KEY}{i}\n")
        lines.append(line)
    with tempfile.NamedTemporaryFile("w", delete=False) as file:
        file.write("".join(lines))
    os.chmod(file.name, 0o600)
    with serve("--keys", file.name) as server:
        nobody, wrong = Web(server), Web(server, KEY)
        everything, reader = Web(server, KEY + "0"), Web(server, KEY + "1")
        assert nobody.right("GET", "/livez")
        for web in (nobody, wrong):
            web.wrong(401, "NOAUTH", "GET", "/v1/topics")
            assert web.answer.headers["WWW-Authenticate"] == "Bearer"
            web.wrong(401, "NOAUTH", "GET", "/metrics")
        everything.right("POST", "/v1/topics/t/timers", {"payload": "", "in": "1h"})
        assert reader.right("GET", "/v1/topics") == {"topics": ["t"]}
        assert reader.right("GET", "/metrics")
        guesser = Web(server, key="x" * 30)
        for i in range(10):
            assert guesser.wrong(401, "NOAUTH", "GET", "/v1/topics")["detail"] == "wrong key"
            assert (guesser.answer.headers["Connection"] == "close") == (i == 9), i
        reader.wrong(403, "NOPERM", "POST", "/v1/topics/t/timers", {"payload": "", "in": "1h"})
        reader.wrong(403, "NOPERM", "POST", "/v1/topics/t/claim", {})
        some = Web(server, KEY + "2")
        some.right("POST", "/v1/topics/u.1/timers", {"payload": "", "in": "1h"})
        some.wrong(403, "NOPERM", "POST", "/v1/topics/v/timers", {"payload": "", "in": "1h"})
        some.wrong(403, "NOPERM", "GET", "/v1/topics")
        some.wrong(403, "NOPERM", "GET", "/metrics")
        assert some.right("GET", "/v1/topics/t")["topic"] == "t"
    os.unlink(file.name)


def waiting(server, count):
    with server.client() as client:
        until(lambda: f"requests_under_way:{count}" in client.ask("INFO", "clients"),
              f"{count} claims that wait")


def test_a_claim_waits():
    with serve() as server:
        worker, web = Web(server), Web(server)
        assert worker.right("POST", "/v1/topics/t/claim", {"wait": 1}) == {"deliveries": []}
        worker.send("POST", "/v1/topics/t/claim", {"wait": "60s", "count": 10})
        waiting(server, 1)
        web.right("PUT", "/v1/topics/t/timers/a", {"payload": {"n": 1}})
        _, answer = worker.read()
        (delivery,) = answer["deliveries"]
        assert delivery["id"] == "a" and delivery["payload"] == {"n": 1}


def test_a_claim_whose_client_hangs_up_takes_nothing():
    with serve() as server:
        worker, web = Web(server), Web(server)
        worker.send("POST", "/v1/topics/t/claim", {"wait": "60s"})
        waiting(server, 1)
        worker.close()
        waiting(server, 0)
        web.right("PUT", "/v1/topics/t/timers/a", {"payload": ""})
        assert claim_one(web, "t")["attempt"] == 1
        assert web.right("GET", "/v1/topics/t/timers/a")["crashes"] == 0


def test_stopping_answers_who_waits():
    for number in (signal.SIGTERM, signal.SIGINT):
        with serve() as server:
            idle, workers = Web(server), [Web(server) for _ in range(5)]
            idle.right("GET", "/livez")
            for worker in workers:
                worker.send("POST", "/v1/topics/t/claim", {"wait": "60s"})
            waiting(server, len(workers))
            server.process.send_signal(number)
            for worker in workers:
                assert worker.read() == (200, {"deliveries": []})
            assert server.wait() == 0


def test_a_crowd_that_comes_and_goes():
    requests = (b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
                b"GET /v1/topics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 3,
                b"POST /v1/topics/t/claim HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Length: 27\r\n\r\n" + b'{"wait":"60s","lease":"1h"}',
                b"POST /v1/topics/t/timers HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Length: 9\r\n\r\n{",
                b"\x00\xff nonsense\r\n\r\n", b"PUT /v1/top")
    with serve() as server:
        web = Web(server)
        for i in range(120):
            raw = socket.create_connection(("127.0.0.1", web.port), timeout=DEADLINE)
            raw.sendall(requests[i % len(requests)])
            if i % 4 < 2:
                raw.recv(1) if i % len(requests) < 2 else None
            raw.close()
        waiting(server, 0)
        web.right("PUT", "/v1/topics/t/timers/a", {"payload": ""})
        assert claim_one(web, "t")["id"] == "a"


def test_requests_one_behind_the_other():
    with serve() as server:
        web = Web(server)
        raw = socket.create_connection(("127.0.0.1", web.port), timeout=DEADLINE)
        raw.sendall(b"GET /v1/topics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50)
        file, seen = raw.makefile("rb"), 0
        while seen < 50:
            line = file.readline()
            assert line, f"the server hung up after {seen}"
            seen += line == b"HTTP/1.1 200 OK\r\n"
            if line == b"\r\n":
                assert file.read(len(b'{"topics":[]}')) == b'{"topics":[]}'
        raw.close()


def operations_of(description):
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def test_the_description_names_every_field():
    with serve() as server:
        web = Web(server)
        description = web.right("GET", "/openapi.json")
        paths, schemas = description["paths"], description["components"]["schemas"]
        assert set(paths["/v1/topics/{topic}/timers/{id}"]) == {"get", "put", "patch", "delete"}
        body = paths["/v1/topics/{topic}/timers"]["post"]["requestBody"]
        assert body["required"] and body["content"]["application/json"]["schema"] == {
            "$ref": "#/components/schemas/ScheduleTimerRequest"}
        names = schemas["ScheduleTimerRequest"]["properties"]
        assert {"payload", "payload_base64", "in", "at", "every", "headers", "conflict"} <= set(names)
        assert names["conflict"]["enum"] == ["replace", "keep", "reject", "earliest", "latest"]
        assert schemas["ScheduleTimerRequest"]["additionalProperties"] is False
        listed = paths["/v1/topics/{topic}/timers"]["get"]["parameters"]
        assert [p["name"] for p in listed] == ["topic", "state", "from", "to", "limit", "cursor"]
        assert set(schemas["TimerPage"]["required"]) == {"timers", "cursor"}


def test_the_description_allows_what_is_allowed():
    with serve() as server:
        web = Web(server)
        schemas = web.right("GET", "/openapi.json")["components"]["schemas"]

        def field(schema, name):
            return schemas[schema]["properties"][name]

        for state in ("scheduled", "ready", "leased", "blocked", "done", "dead", "skipped"):
            status, _ = web.ask("POST", "/v1/topics/t/purge", {"state": state})
            assert (status == 200) == (state in field("PurgeTopicRequest", "state")["enum"]), state
        assert field("ReviveTimersRequest", "id")["minLength"] == 1
        assert web.ask("POST", "/v1/topics/t/revive", {"id": ""})[0] == 400
        settings = schemas["ConfigureTopicRequest"]["properties"]
        assert settings["crashes"]["minimum"] == 1
        for crashes in (0, "0"):
            assert web.ask("PATCH", "/v1/topics/t", {"crashes": crashes})[0] == 400
        assert not re.search(settings["crashes"]["pattern"], "0")
        assert settings["misfire_after"]["$ref"].endswith("/Duration")
        breaker = field("LimitResourceRequest", "breaker")
        assert breaker["minimum"] == 1 and not re.search(breaker["pattern"], "0")
        assert re.search(breaker["pattern"], "10") and re.search(breaker["pattern"], "off")
        assert re.search(field("LimitResourceRequest", "concurrency")["pattern"], "0")


def test_the_description_is_complete():
    with serve() as server:
        web = Web(server)
        description = web.right("GET", "/openapi.json")

        def check(value):
            if isinstance(value, dict):
                target = description
                for name in value.get("$ref", "#").split("/")[1:]:
                    target = target[name]  # a reference leads somewhere
                for inner in value.values():
                    check(inner)
            elif isinstance(value, list):
                for inner in value:
                    check(inner)

        check(description)
        ids = [operation["operationId"] for _, _, operation in operations_of(description)]
        assert len(set(ids)) == len(ids) == 35, ids
        for method, path, operation in operations_of(description):
            responses = operation["responses"]
            (done,) = [status for status in responses if status[0] == "2"]
            assert done == "204" or responses[done]["content"], (method, path)
            assert {"400", "401", "403", "507"} <= set(responses), (method, path)
            given = {p["name"] for p in operation.get("parameters", []) if p["in"] == "path"}
            assert given == set(re.findall(r"{(\w+)}", path)), (method, path)
        assert description["components"]["securitySchemes"]["key"]["scheme"] == "bearer"


def test_the_examples_of_the_description_are_accepted():
    with serve() as server:
        web = Web(server)
        for method, path, operation in operations_of(web.right("GET", "/openapi.json")):
            if "requestBody" not in operation:
                continue
            example = operation["requestBody"]["content"]["application/json"]["example"]
            web.right("PUT", "/v1/topics/mail/timers/greeting", {"payload": ""})
            token = claim_one(web, "mail")["token"] if "{token}" in path else ""
            path = path.replace("{topic}", "mail").replace("{id}", "greeting").replace("{token}", token)
            path = path.replace("{resource}", "api")
            status, answer = web.ask(method.upper(), path, example)
            assert str(status) in operation["responses"] and status < 300, (method, path, answer)


def test_numbers_are_numbers():
    with serve() as server:
        web = Web(server)
        path = "/v1/topics/t/timers/a"
        for body in ({"priority": 5}, {"priority": 5.0}, {"in": 5000}, {"in": 5e3}, {"in": "5s"}, {"in": "5000"}):
            web.right("PUT", path, {"payload": "", **body})
        assert web.right("GET", path)["due_ms"] > 0
        for body in ({"priority": "5"}, {"priority": 5.5}, {"in": 1e300}, {"id": 5}, {"tz": 5, "every": "1h"},
                     {"conflict": 1}, {"count": "3", "every": "1h"}):
            web.wrong(400, "BADARG", "PUT", path, {"payload": "", **body})
        assert web.right("POST", "/v1/topics/t/claim", {"count": 2})
        web.wrong(400, "BADARG", "POST", "/v1/topics/t/claim", {"worker": 7})


def fits(schema, schemas, value):
    """Whether a text is one that a schema allows: its length and its patterns."""
    if "$ref" in schema:
        schema = schemas[schema["$ref"].rpartition("/")[2]]
    return (schema["minLength"] <= len(value) <= schema["maxLength"]
            and re.search(schema["pattern"], value) is not None
            and not ("not" in schema and re.search(schema["not"]["pattern"], value)))


def test_the_description_allows_the_names_that_the_server_does():
    """Names of topics, resources and jobs: what the schema allows is accepted, and nothing else."""
    names = ("a", "a.b_c:d-e", "a/b", "wait", "WAIT", "Count", "waiting", "a//b", "/a", "a/", "a b", "a@1",
             "x" * 100, "x" * 101, "x" * 128, "x" * 129, "x" * 200, "x" * 201)
    task = {"id": "", "topic": "t"}
    with serve() as server:
        web = Web(server)
        description = web.right("GET", "/openapi.json")
        schemas, paths = description["components"]["schemas"], description["paths"]
        timer = schemas["PutTimerRequest"]["properties"]
        job = next(field for field in paths["/v1/jobs/{id}"]["put"]["parameters"] if field["name"] == "id")
        limit = next(field for field in paths["/v1/resources/{resource}"]["put"]["parameters"]
                     if field["name"] == "resource")
        for name in names:
            path = urllib.parse.quote(name, safe="")
            for schema, method, where, body in (
                    (schemas["TopicName"], "PUT", f"/v1/topics/{path}/timers/a", {"payload": ""}),
                    (timer["resource"], "PUT", "/v1/topics/t/timers/a", {"payload": "", "resource": name}),
                    (limit["schema"], "PUT", f"/v1/resources/{path}", {"burst": 2}),
                    (job["schema"], "PUT", f"/v1/jobs/{path}", {"tasks": []}),
                    (schemas["NewTask"]["properties"]["topic"], "PUT", "/v1/jobs/j",
                     {"tasks": [{**task, "id": "a", "topic": name}]}),
                    (schemas["NewTask"]["properties"]["resource"], "PUT", "/v1/jobs/j",
                     {"tasks": [{**task, "id": "a", "resource": name}]})):
                status, answer = web.ask(method, where, body)
                assert fits(schema, schemas, name) == (status < 300), (where, body, status, answer)


def test_errors_name_the_fields_of_the_request():
    """Not the options of the command that the server makes of them."""
    timers, long = "/v1/topics/t/timers", "x" * 101
    with serve() as server:
        web = Web(server)
        for method, path, body, detail in (
                ("GET", timers + "?limit=0", None, "limit is 0"),
                ("GET", timers + "?limit=1001", None, "limit must be at most 1000"),
                ("GET", "/v1/agenda?step=1ms", None, "at most 10000 steps are possible: give a longer step"),
                ("GET", "/v1/jobs?limit=-1", None, "limit: expected a number, not '-1'"),
                ("GET", "/v1/resources?limit=0", None, "limit is 0"),
                ("GET", "/v1/resources?limit=COUNT", None, "limit: expected a number, not 'COUNT'"),
                ("POST", "/v1/topics/t/claim", {"count": 0}, "count is 0"),
                ("POST", timers, {"payload": "", "in": "IN"}, "in 'IN': at byte 1"),
                ("POST", timers, {"payload": "", "priority": 256}, "priority must be from 0 to 255"),
                ("PUT", "/v1/jobs/" + long, {"tasks": []}, "id: longer than 100 bytes"),
                ("PUT", "/v1/jobs/j", {"tasks": [{"id": long, "topic": "t"}]},
                 "tasks[0].id: longer than 100 bytes"),
                ("PUT", "/v1/jobs/j", {"tasks": [{"id": "a", "topic": "WAIT"}]},
                 "tasks[0].topic: an option of CLAIM has this name")):
            answer = web.wrong(400, "BADARG", method, path, body)
            assert answer["detail"].startswith(detail), (path, answer)


def test_every_command_has_a_route():
    apart = {"clock", "backup", "ping", "echo", "hello", "auth", "client", "command", "info", "select",
             "reset", "quit", "shutdown"}  # of the connection or the server, not of timers
    with serve() as server, server.client() as client:
        names = {name.lower().replace("|", " ") for name in client.ask("COMMAND", "LIST")}
        paths = Web(server).right("GET", "/openapi.json")["paths"]
        led = {operation["x-command"].lower() for path in paths.values()
               for operation in path.values() if "x-command" in operation}
        assert led == names - apart, led ^ (names - apart)


def test_names_in_a_path_are_never_options():
    """LIMIT CLEAR is a command of its own, and other words are options: a name in a path is
    neither, in any case."""
    with serve() as server, server.client() as client:
        web = Web(server)
        client.ask("LIMIT", "api", "UNTIL", "1h")
        for name in ("CLEAR", "clear", "Delete", "RATE", "COUNT", "CURSOR"):
            web.wrong(404, "NOTFOUND", "GET", f"/v1/resources/{name}")
        assert "limited_until_ms" in client.ask("LIMIT", "api")
        for name in ("CLEAR", "rate", "concurrency"):
            assert web.right("PUT", f"/v1/resources/{name}", {"concurrency": 1})["name"] == name
            assert web.right("GET", f"/v1/resources/{name}")["concurrency"] == 1
            assert web.right("PUT", f"/v1/resources/{name}", {"clear": True})["name"] == name
            assert web.right("DELETE", f"/v1/resources/{name}") == {"count": 1}
            answer = web.wrong(404, "NOTFOUND", "DELETE", f"/v1/resources/{name}")
            assert answer["detail"] == f"resource '{name}' has no limits", answer
        assert "limited_until_ms" in client.ask("LIMIT", "api")
        web.wrong(409, "STALE", "POST", "/v1/leases/RESULT/ack", {"result": "x"})
        web.close()


def test_limits_that_are_taken_away():
    with serve() as server:
        web = Web(server)
        made = web.right("PUT", "/v1/resources/r", {"breaker": 3, "rate": "5/1s", "concurrency": 2})
        assert made["breaker"]["opens_at"] == 3 and made["rate"] == "5/1s", made
        for off in ("off", None, "OFF"):
            web.right("PUT", "/v1/resources/r", {"breaker": 3, "rate": "5/1s", "concurrency": 2})
            left = web.right("PUT", "/v1/resources/r", {"rate": off})
            assert "rate" not in left and left["concurrency"] == 2, left
            left = web.right("PUT", "/v1/resources/r", {"concurrency": off, "breaker": off})
            assert left["concurrency"] == 0 and left["breaker"]["opens_at"] == 0, left
        for field, value in (("breaker", 0), ("breaker", "x"), ("breaker", True), ("breaker", 1.5),
                             ("breaker", -1), ("concurrency", []), ("concurrency", "many"),
                             ("rate", 5), ("rate", "0/1s"), ("rate", "0/0s"), ("burst", None),
                             ("burst", "off"), ("until", None)):
            web.wrong(400, "BADARG", "PUT", "/v1/resources/r", {field: value})
        web.close()


def test_a_claim_that_cannot_be_sent_is_released():
    with serve("--max-payload", "16M") as server:
        web = Web(server)
        web.right("PUT", "/v1/topics/t/timers/a", {"payload": "x" * (15 << 20)})
        raw = socket.create_connection(("127.0.0.1", web.port), timeout=DEADLINE)
        raw.sendall(b"POST /v1/topics/t/claim HTTP/1.1\r\nHost: localhost\r\n"
                    b"Content-Length: 14\r\n\r\n" + b'{"lease":"1h"}')
        assert raw.recv(12) == b"HTTP/1.1 200"
        raw.close()
        delivery = claim_one(web, "t")
        assert delivery["id"] == "a" and len(delivery["payload"]) == 15 << 20



def test_every_refusal_names_what_is_wrong():
    """Each has a detail, also if the client's bytes are no text or are cut inside a character."""
    timer, euros = "/v1/topics/t/timers/a", "%e2%82%ac" * 40
    rows = [
        (404, "GET", "/nowhere", None, "/nowhere"),
        (404, "GET", "/v1/topics/t/nothing/%ff", None, "/v1/topics/t/nothing/%ff"),
        (404, "GET", "/" + "%e2%82%ac" * 500, None, "no such resource: /%e2%82%ac"),
        (405, "PATCH", "/v1/topics", None, "/v1/topics does not support PATCH; use GET"),
        (405, "DELETE", "/metrics", None, "DELETE"),
        (400, "PUT", "/v1/resources/%ff", {}, "resource '\\xff'"),
        (400, "GET", "/v1/resources/%ff", None, "resource '\\xff'"),
        (400, "DELETE", "/v1/resources/%00", None, "resource"),
        (400, "PUT", "/v1/resources/" + "x" * 300, {}, "resource 'xxx"),
        (400, "PUT", "/v1/resources/" + euros, {}, "resource '\u20ac\u20ac"),
        (404, "DELETE", "/v1/resources/none", None, "resource 'none'"),
        (400, "PUT", "/v1/resources/r", {"rate": "x"}, "rate 'x'"),
        (400, "PUT", "/v1/resources/r", {"nothing": 1}, "'nothing'"),
        (400, "PUT", "/v1/topics/t/timers/%ff", {"payload": ""}, "invalid id"),
        (400, "PUT", "/v1/topics/%ff/timers/a", {"payload": ""}, "invalid topic"),
        (400, "PUT", timer, {}, "payload"),
        (400, "PUT", timer, {"payload": "", "in": "5x"}, "in '5x'"),
        (400, "PUT", timer, {"payload": "", "in": True}, "in"),
        (400, "PUT", timer, {"payload": "", "in": "\u20ac" * 90}, "in '\u20ac\u20ac"),
        (400, "PUT", timer, {"payload": "", "\u20ac" * 90: 1}, "unknown field '\u20ac\u20ac"),
        (400, "PUT", timer, {"payload": "", "at": "never"}, "at 'never'"),
        (400, "PUT", timer, {"payload": "", "headers": {"x": []}}, "headers"),
        (400, "PUT", timer, {"payload_base64": "!"}, "payload_base64"),
        (400, "PUT", timer, "{", "not valid JSON: line 1"),
        (400, "PUT", timer, b'{"payload": "\xff"}', "not valid JSON: line 1"),
        (400, "PUT", timer, "[]", "not a JSON object"),
        (400, "PUT", timer + "?x=1", {"payload": ""}, "query"),
        (404, "GET", timer, None, "timer"),
        (404, "GET", "/v1/topics/none", None, "topic 'none'"),
        (400, "GET", "/v1/topics/t/timers?limit=x", None, "'x'"),
        (400, "GET", "/v1/topics/t/timers?state=%ff", None, "state: '\\xff'"),
        (400, "GET", "/v1/topics/t/timers?state=%07", None, "state: '\\x07'"),
        (400, "GET", "/v1/topics/t/timers?state=" + euros, None, "state: '\u20ac\u20ac"),
        (400, "GET", "/v1/topics/t/timers?nothing=1", None, "'nothing'"),
        (400, "GET", "/v1/topics/t/timers?limit=1&limit=2", None, "twice: 'limit=2'"),
        (400, "GET", "/v1/topics/t/timers?%zz=1", None, "percent-encoding: '%zz=1'"),
        (400, "GET", "/v1/topics/t/timers?%ff=1", None, "percent-encoding: '%ff=1'"),
        (400, "GET", "/v1/topics/t/timers?" + "&".join(f"a{i}" for i in range(101)), None,
         "more than 100 parameters"),
        (400, "GET", "/v1/topics/t/timers?cursor=x", None, "cursor"),
        (400, "POST", "/v1/topics/t/claim", {"count": 0}, "count is 0"),
        (409, "POST", "/v1/leases/%ff/ack", {}, "lease"),
        (400, "PATCH", "/v1/topics/t", {"nothing": 1}, "nothing"),
        (400, "POST", "/v1/jobs", "{", "line 1, column 2"),
        (404, "GET", "/v1/jobs/%ff", None, "job"),
        (400, "PUT", "/v1/jobs/%ff", {"tasks": []}, "id"),
        (404, "GET", "/v1/explain/t/none", None, "'none'"),
        (400, "GET", "/v1/agenda?from=%ff", None, "from '\\xff'"),
    ]
    with Server("--store", "memory", "--http", "127.0.0.1:0") as server:
        web = Web(server)
        for status, method, path, body, culprit in rows:
            got, answer = web.ask(method, path, body)
            assert got == status and answer["status"] == status, (method, path, got, answer)
            assert culprit in answer["detail"], (method, path, answer)


if __name__ == "__main__":
    main(dict(globals()))
