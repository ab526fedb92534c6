#!/usr/bin/env python3
"""Jobs over HTTP and RESP of a real server: routes, keys that are limited to topics, large texts."""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from rig import Refusal, Server, main, run  # noqa: E402
from web import Web  # noqa: E402

KEYS = {"root": ("correct-horse-battery-staple", "all"),
        "etl": ("incorrect-horse-battery", "all,@etl,@etl.*"),
        "reader": ("the-key-of-the-reader-only", "read")}
MIB = 1 << 20


def chain(id, *topics):
    tasks = [{"id": f"t{i}", "topic": topic, "after": [f"t{i - 1}"] if i else []}
             for i, topic in enumerate(topics)]
    return {"id": id, "tasks": tasks}


def refusal(client, *words):
    try:
        raise AssertionError(f"not refused: {client.ask(*words)}")
    except Refusal as refused:
        return str(refused)


def test_the_routes():
    with Server("--store", "memory", "--http", "127.0.0.1:0") as server:
        web = Web(server)
        made = web.right("POST", "/v1/jobs", chain("a", "etl", "etl"))
        assert made == {"id": "a", "tasks": 2, "edges": 1}
        assert web.answer.status == 201 and web.answer.headers["Location"] == "/v1/jobs/a"
        web.wrong(409, "CONFLICT", "POST", "/v1/jobs", chain("a", "etl"))
        assert web.right("PUT", "/v1/jobs/a", {"tasks": chain("a", "etl")["tasks"]})["tasks"] == 1
        assert web.answer.status == 200
        job = web.right("GET", "/v1/jobs/a")
        assert job["state"] == "running" and [task["id"] for task in job["tasks"]] == ["t0"]
        assert web.right("POST", "/v1/jobs/a/pause", {}) == {"count": 1}
        assert web.right("GET", "/v1/jobs?state=paused&limit=5")["jobs"][0]["id"] == "a"
        assert web.right("POST", "/v1/topics/etl/claim", {})["deliveries"] == []
        assert web.right("POST", "/v1/jobs/a/resume", {}) == {"count": 1}
        (delivery,) = web.right("POST", "/v1/topics/etl/claim", {})["deliveries"]
        assert delivery["id"] == "a/t0" and "results" not in delivery
        web.right("POST", f"/v1/leases/{delivery['token']}/ack", {"result": "x"})
        assert web.right("GET", "/v1/topics/etl/timers/a%2Ft0")["result"] == "x"
        assert web.right("GET", "/v1/jobs/a")["state"] == "done"
        assert web.right("DELETE", "/v1/jobs/a") == {"count": 0}
        web.right("POST", "/v1/jobs", chain("n", "never", "never"))
        assert web.right("DELETE", "/v1/jobs/n") == {"count": 1}
        timers = web.right("GET", "/v1/topics/never/timers")["timers"]
        assert {timer["id"]: "due_ms" in timer for timer in timers} == {"n/t0": True, "n/t1": False}
        web.close()


def test_what_is_refused():
    with Server("--store", "memory", "--http", "127.0.0.1:0") as server:
        web = Web(server)
        for text, why in (("", "line 1, column 1: expected a JSON value"),
                          ("[]", "expected a job, which is an object"),
                          ('{"tasks": [], "foo": 1}', "foo: unknown field"),
                          ('{"tasks": [{"id": "a/b", "topic": "t"}]}', "tasks[0].id: use A-Z")):
            assert web.wrong(400, "BADARG", "POST", "/v1/jobs", text)["detail"].startswith(why)
        web.wrong(400, "BADARG", "PUT", "/v1/jobs/b", chain("c", "etl"))
        web.wrong(400, "BADARG", "POST", "/v1/jobs?id=x", chain("c", "etl"))
        for request in (("GET", "/v1/jobs/b"), ("DELETE", "/v1/jobs/b"),
                        ("POST", "/v1/jobs/b/pause", {}), ("POST", "/v1/jobs/b/resume", {})):
            web.wrong(404, "NOTFOUND", *request)
        web.wrong(400, "BADARG", "GET", "/v1/jobs?state=asleep")
        web.wrong(400, "BADARG", "GET", "/v1/jobs?limit=1001")
        assert web.ask("PATCH", "/v1/jobs/b")[0] == 405
        assert web.right("GET", "/v1/jobs") == {"jobs": [], "cursor": None}
        web.close()


def test_pages():
    with Server("--store", "memory", "--http", "127.0.0.1:0") as server:
        web = Web(server)
        for i in range(5):
            web.right("POST", "/v1/jobs", chain(f"j{i}", "t", "t", "t"))
        seen, cursor = [], ""
        while cursor is not None:
            page = web.right("GET", "/v1/jobs?limit=2" + (f"&cursor={cursor}" if cursor else ""))
            assert len(page["jobs"]) <= 2
            seen += [job["id"] for job in page["jobs"]]
            cursor = page["cursor"]
        assert sorted(seen) == [f"j{i}" for i in range(5)]
        first = web.right("GET", "/v1/jobs/j0?limit=2")
        rest = web.right("GET", f"/v1/jobs/j0?limit=2&cursor={first['cursor']}")
        assert [task["id"] for task in first["tasks"] + rest["tasks"]] == ["t0", "t1", "t2"]
        assert "cursor" not in rest
        web.close()


def test_a_key_needs_every_topic_of_a_job():
    lines = []
    for name, (key, permissions) in KEYS.items():
        status, line, errors = run("serve", "--hash-key", name, permissions, stdin=key + "\n")
        assert status == 0, errors
        lines.append(line)
    with tempfile.NamedTemporaryFile("w", prefix="belfry-test-keys-") as file:
        file.write("".join(lines))
        file.flush()
        with Server("--store", "memory", "--http", "127.0.0.1:0", "--keys", file.name) as server:
            root, etl, reader = (Web(server, KEYS[name][0]) for name in KEYS)
            both, then = chain("both", "etl.eu", "mail"), chain("then", "etl")
            then["then"] = [{"job": chain("after", "mail")}]
            for hidden in (both, then):
                etl.wrong(404, "NOTFOUND", "POST", "/v1/jobs", hidden)
            root.right("POST", "/v1/jobs", both)
            etl.right("POST", "/v1/jobs", chain("own", "etl", "etl.eu"))
            for request in (("GET", "/v1/jobs/both"), ("DELETE", "/v1/jobs/both"),
                            ("POST", "/v1/jobs/both/pause", {})):
                etl.wrong(404, "NOTFOUND", *request)
            assert [job["id"] for job in etl.right("GET", "/v1/jobs")["jobs"]] == ["own"]
            assert len(root.right("GET", "/v1/jobs")["jobs"]) == 2
            assert root.right("GET", "/v1/jobs/both")["state"] == "running"
            reader.wrong(403, "NOPERM", "POST", "/v1/jobs", chain("x", "t"))
            assert reader.right("GET", "/v1/jobs/both")["id"] == "both"
            with server.client() as client:
                assert client.ask("AUTH", "etl", KEYS["etl"][0]) == "OK"
                assert refusal(client, "JOB", "GET", "both").startswith("NOTFOUND")
                assert refusal(client, "JOB", "SUBMIT", json.dumps(both)).startswith("NOTFOUND")
                same = json.dumps(chain("both", "etl"))  # an id that is in use
                assert refusal(client, "JOB", "SUBMIT", same).startswith("CONFLICT")
                assert refusal(client, "JOB", "SUBMIT", same, "REPLACE").startswith("NOTFOUND")
                assert client.ask("JOB", "CANCEL", "own") == 1
            root.right("POST", "/v1/jobs", {"id": "empty", "tasks": []})
            assert etl.right("GET", "/v1/jobs/empty")["id"] == "empty"
            for web in (root, etl, reader):
                web.close()


def large(tasks, payload):
    return json.dumps({"id": f"large{payload}", "tasks": [
        {"id": f"t{i}", "topic": "big", "payload": "x" * payload,
         "after": [f"t{k}" for k in range(max(0, i - 10), i)]} for i in range(tasks)]})


def test_a_large_job_and_its_limit():
    text = large(10000, 1440)
    assert 15 * MIB < len(text) < 16 * MIB, len(text)
    with Server("--store", "memory", "--http", "127.0.0.1:0") as server, \
            server.client() as client, server.client() as other:
        client.send("JOB", "SUBMIT", text)
        for _ in range(20):                 # others are served meanwhile
            assert other.ask("PING") == "PONG"
        assert client.read() == ["id", "large1440", "tasks", 10000, "edges", 99945]
        assert other.ask("CLAIM", "big")[0][2] == "large1440/t0"
        assert client.ask("JOB", "CANCEL", "large1440") == 1
        web = Web(server)
        assert web.right("POST", "/v1/jobs", large(10000, 1430))["tasks"] == 10000
        web.connection.putrequest("POST", "/v1/jobs")  # refused before the body is sent
        web.connection.putheader("Content-Length", str(17 * MIB))
        web.connection.endheaders()
        status, answer = web.read()
        assert status == 413 and answer["code"] == "FULL", (status, answer)
        web.close()
        web = Web(server)
        web.connection.putrequest("POST", "/v1/jobs")  # known only when it is received
        web.connection.putheader("Transfer-Encoding", "chunked")
        web.connection.endheaders()
        web.connection.send(b"%x\r\n" % (17 * MIB))
        status, answer = web.read()
        assert status == 413 and answer["code"] == "FULL", (status, answer)
        web.close()
        web = Web(server)
        web.connection.putrequest("POST", "/v1/topics/t/timers")
        web.connection.putheader("Content-Length", str(17 * MIB))
        web.connection.endheaders()
        status, answer = web.read()
        assert status == 413 and answer["code"] == "BADARG", (status, answer)
        web.close()
    with Server("--store", "memory", "--max-job", "1000") as server, server.client() as client:
        assert refusal(client, "JOB", "SUBMIT", large(10, 1000)).startswith("FULL")
        for size in (1000, 2 * MIB, 18 * MIB):  # also more than a request may have
            why = refusal(client, "job", "submit", "x" * (size + 1))
            assert why.startswith("FULL") and "--max-job" in why, why
        assert client.ask("JOB", "SUBMIT", large(1, 100))[1] == "large100"


def test_limits_of_jobs_are_settings():
    with Server("--store", "memory", "--job-tasks", "2", "--job-edges", "1", "--job-depth", "1",
                "--job-retention", "5s", "--clock", "virtual") as server, \
            server.client() as client:
        def why(job):
            return refusal(client, "JOB", "SUBMIT", json.dumps(job))
        assert why(chain("a", "t", "t", "t")) == "FULL tasks[2]: more than 2 tasks (--job-tasks)"
        wide = {"tasks": [{"id": "a", "topic": "t"},
                          {"id": "b", "topic": "t", "after": ["a", "a"]}]}
        assert why(wide).endswith("more than 1 dependencies (--job-edges)")
        deep = {"tasks": [], "then": [{"job": {"tasks": [], "then": [{"job": {"tasks": []}}]}}]}
        assert why(deep).endswith("then is more than 1 levels deep (--job-depth)")
        assert client.ask("JOB", "SUBMIT", json.dumps(chain("a", "t", "t")))[3] == 2
        assert client.ask("JOB", "CANCEL", "a") == 1
        client.ask("CLOCK", "ADVANCE", "4s")
        assert client.ask("JOB", "GET", "a")[3] == "cancelled"
        client.ask("CLOCK", "ADVANCE", "2s")
        assert refusal(client, "JOB", "GET", "a").startswith("NOTFOUND")


def test_an_empty_result_is_a_result():
    with Server("--store", "memory") as server, server.client() as client:
        client.ask("JOB", "SUBMIT", json.dumps({"id": "a", "tasks": [
            {"id": "x", "topic": "t"}, {"id": "y", "topic": "t"},
            {"id": "z", "topic": "u", "after": ["x", "y"]}]}))
        assert client.ask("ACK", client.ask("CLAIM", "t")[0][0], "RESULT", "") == 1
        assert client.ask("ACK", client.ask("CLAIM", "t")[0][0]) == 1
        assert client.ask("CLAIM", "u")[0][9] == ["x", "", "y", None]


def test_skipped_overlaps_are_logged():
    job = {"id": "late", "every": "1s", "tasks": [{"id": "a", "topic": "t"}]}
    with Server("--store", "memory", "--clock", "virtual") as server, server.client() as client:
        client.ask("JOB", "SUBMIT", json.dumps(job))
        for _ in range(6):
            client.ask("CLOCK", "ADVANCE", "1s")
        lines = [line for line in server.log().splitlines() if "job=late" in line]
        assert len(lines) == 5, server.log()
        for i, line in enumerate(lines, 1):
            assert f"in_a_row={i}" in line and ("error" in line.lower()) == (i == 5), line
            assert line.endswith("skipped=1"), line


def test_skipped_overlaps_do_not_fill_the_log():
    job = {"id": "fast", "every": "1ms", "tasks": [{"id": "a", "topic": "t"}]}
    with Server("--store", "memory", "--clock", "virtual") as server, server.client() as client:
        client.ask("JOB", "SUBMIT", json.dumps(job))
        for _ in range(300):
            client.ask("CLOCK", "ADVANCE", "10ms")
        lines = [line for line in server.log().splitlines() if "job=fast" in line]
        skipped = [int(line.split("skipped=")[1]) for line in lines]
        assert 2 <= len(lines) <= 4 and skipped[0] == 1, lines
        assert all(990 <= count <= 1010 for count in skipped[1:]), lines


def test_names_of_resources():
    with Server("--store", "memory") as server, server.client() as client:
        for name in ("/", "/a", "a/", "a//b"):
            for words in (("SCHEDULE", "t", "", "RESOURCE", name), ("LIMIT", name, "BURST", "2"),
                          ("LIMIT", name), ("LIMIT", name, "DELETE")):
                why = refusal(client, *words)
                assert why.startswith(f"BADARG invalid resource '{name}'"), why
            job = {"tasks": [{"id": "a", "topic": "t", "resource": name}]}
            why = refusal(client, "JOB", "SUBMIT", json.dumps(job))
            assert why.startswith("BADARG tasks[0].resource: "), why
        client.ask("SCHEDULE", "t", "", "RESOURCE", "a/b/c")


def test_an_open_breaker_shows_its_failures():
    with Server("--store", "memory") as server, server.client() as client:
        client.ask("LIMIT", "api", "BREAKER", "2")
        for i in range(2):
            client.ask("SCHEDULE", "t", "", "RESOURCE", "api")
            client.ask("FAIL", client.ask("CLAIM", "t")[0][0], "KIND", "resource", "DEAD")
        reply = client.ask("LIMIT", "api")
        breaker = reply[reply.index("breaker") + 1]
        assert breaker[:4] == ["state", "open", "failures", 2], breaker


if __name__ == "__main__":
    main(dict(globals()))
