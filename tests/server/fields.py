#!/usr/bin/env python3
"""Every field of the table of fields is in every output and in docs/PROTOCOL.md, and no other is.

The server publishes the table as the schemas of /openapi.json. A few timers that have every field
between them are shown by RESP, by HTTP and by the command line; each output must have exactly the
names of the schema.
"""
import json
import re
import sys

from rig import Server, main, run
from web import Web

PROTOCOL = sys.argv[2]
TOPIC = "t"
WIRE = {"string": "bulk", "integer": "integer", "array": "array", "object": "array", None: "bulk"}


def is_name(name):
    return not name.endswith("_base64")


class Shop:
    """A server with timers in every state that has fields of its own."""

    def __enter__(self):
        self.server = Server("--store", "memory", "--clock", "virtual", "--http", "127.0.0.1:0")
        self.client, self.web = self.server.client(), Web(self.server)
        self.schemas = self.web.right("GET", "/openapi.json")["components"]["schemas"]
        ask = self.client.ask
        ask("CONFIGURE", TOPIC, "retention", "1h", "crashes", "9")
        ask("SCHEDULE", TOPIC, "x", "ID", "leased", "GROUP", "g", "RESOURCE", "r", "HEADER", "a",
            "b", "CORRELATION", "c", "RETRY", "1s,1s,1s", "LEASE", "1m", "EXPIRES", "1h")
        ((token, *_),) = ask("CLAIM", TOPIC)
        ask("FAIL", token, "REASON", "why", "IN", "0")
        ask("CLAIM", TOPIC, "WORKER", "w")
        ask("SCHEDULE", TOPIC, "x", "ID", "ended")
        ((token, *_),) = ask("CLAIM", TOPIC)
        ask("ACK", token, "RESULT", "r")
        ask("SCHEDULE", TOPIC, "x", "ID", "dead")
        ((token, *_),) = ask("CLAIM", TOPIC)
        ask("FAIL", token, "DEAD", "REASON", "why")
        ask("SCHEDULE", TOPIC, "x", "ID", "cron", "CRON", "0 9 * * *", "TZ", "Europe/Berlin",
            "COUNT", "9", "UNTIL", "2099-01-01T00:00:00Z", "SPREAD", "1m")
        ask("SCHEDULE", TOPIC, "x", "ID", "rrule", "RRULE", "FREQ=DAILY")
        ask("SCHEDULE", TOPIC, "x", "ID", "every", "EVERY", "1s", "COUNT", "9")
        ask("CLOCK", "ADVANCE", "1s")
        return self

    def __exit__(self, kind, *rest):
        self.web.close()
        self.client.close()
        self.server.__exit__(kind, *rest)

    def names(self, schema):
        return {name for name in self.schemas[schema]["properties"] if is_name(name)}

    def belfry(self, *words):
        status, out, err = run(*words, "--server", f"127.0.0.1:{self.server.port}")
        assert status == 0, (words, err)
        return out

    def compare(self, schema, maps, left_out=()):
        seen = set().union(*maps)
        wanted = self.names(schema) - set(left_out)
        assert seen == wanted, f"missing {wanted - seen}, not in the table {seen - wanted}"


def pairs(flat):
    return dict(zip(flat[::2], flat[1::2]))


def test_a_timer():
    with Shop() as shop:
        _, timers = shop.client.ask("LIST", TOPIC)
        shop.compare("Timer", [pairs(timer) for timer in timers])
        ids = [pairs(timer)["id"] for timer in timers]
        shop.compare("Timer", [pairs(shop.client.ask("GET", TOPIC, id)) for id in ids])
        shop.compare("Timer", shop.web.right("GET", f"/v1/topics/{TOPIC}/timers")["timers"])
        shop.compare("Timer", json.loads(shop.belfry("list", TOPIC, "--json"))["timers"])
        shown = [shop.belfry("get", TOPIC, id).splitlines() for id in ids]
        shop.compare("Timer", [{line.split("\t")[0] for line in lines} for lines in shown])
        states = ["leased", "done", "dead", "scheduled", "ready"]
        lines = [shop.belfry("export", TOPIC, "--state", state).splitlines() for state in states]
        shop.compare("Timer", [json.loads(line) for page in lines for line in page])


def test_what_is_exported_can_be_imported():
    with Shop() as shop:
        path = shop.server.folder + "/lines"
        with open(path, "w") as file:
            file.write(shop.belfry("export", TOPIC))
        shop.belfry("import", path, "--topic", "copy")


def test_an_outcome():
    with Shop() as shop:
        outcomes = shop.web.right("GET", f"/v1/topics/{TOPIC}/timers/leased")["outcomes"]
        shop.compare("Outcome", outcomes)
        (outcome,) = pairs(shop.client.ask("GET", TOPIC, "leased"))["outcomes"]
        assert len(outcome) == len(shop.names("Outcome"))


def test_a_delivery():
    with Shop() as shop:
        after = {"topic": "d", "after": ["a"], "correlation": "c", "headers": {"a": "b"}}
        tasks = [{"id": "a", "topic": "d"}] + [{"id": f"b{i}", **after} for i in range(3)]
        shop.client.ask("JOB", "SUBMIT", json.dumps({"id": "j", "tasks": tasks}))
        shop.client.ask("ACK", shop.client.ask("CLAIM", "d")[0][0], "RESULT", "r")
        (delivery,) = shop.client.ask("CLAIM", "d")
        assert len(delivery) == len(shop.names("Delivery"))
        over_http = shop.web.right("POST", "/v1/topics/d/claim", {})["deliveries"]
        shop.compare("Delivery", over_http)
        claimed = json.loads(shop.belfry("claim", "d", "--json"))["deliveries"]
        shop.compare("Delivery", claimed)
        assert claimed[0]["token"] != delivery[0] and claimed[0]["headers"]["a"] == "b"
        assert delivery[9] == ["a", "r"]
        assert over_http[0]["results"] == claimed[0]["results"] == [{"task": "a", "result": "r"}]


RULES = [{"every": "1h"}, {"cron": "0 9 * * *", "tz": "Europe/Berlin"}, {"rrule": "FREQ=DAILY"}]


def test_a_job_and_its_tasks():
    with Shop() as shop:
        tasks = [{"id": "a", "topic": "j"}, {"id": "b", "topic": "j", "after": ["a"]}]
        sent = json.dumps({"id": "failed", "tasks": tasks, "timeout": "1h"})
        shop.compare("Submitted", [pairs(shop.client.ask("JOB", "SUBMIT", sent))])
        shop.client.ask("FAIL", shop.client.ask("CLAIM", "j")[0][0], "DEAD", "REASON", "why")
        more = {"id": "runs", "tasks": tasks + [{"id": "c", "topic": "j"}], "timeout": "9h"}
        shop.compare("Submitted", [shop.web.right("POST", "/v1/jobs", more)])
        shop.client.ask("CLOCK", "ADVANCE", "1s")
        shop.client.ask("ACK", shop.client.ask("CLAIM", "j")[0][0])
        shop.client.ask("JOB", "SUBMIT", json.dumps({**more, "id": "late", "timeout": 5}))
        shop.client.ask("JOB", "SUBMIT", json.dumps({"id": "first", "cooldown": 0, "tasks": [],
                                                     "then": [{"job": {"tasks": []}}]}))
        for i, rule in enumerate(RULES):
            shop.client.ask("JOB", "SUBMIT", json.dumps({"id": f"p{i}", "tasks": tasks, **rule}))
        shop.client.ask("CLOCK", "ADVANCE", "1s")
        at = pairs(shop.client.ask("JOB", "GET", "p0"))["next_ms"]
        shop.client.ask("CLOCK", "SET", str(at))
        shop.client.ask("CLAIM", "j", "COUNT", "10")  # an estimate needs a leased task
        ids = ["failed", "runs", "late", "first.1", "p0", "p1", "p2", f"p0@{at}"]
        rest = ["clash"]  # two jobs that are made with one id
        told = [pairs(shop.client.ask("JOB", "GET", id, "COUNT", "1")) for id in ids]
        told += [pairs(shop.client.ask("JOB", "GET", id)) for id in ids]
        shop.compare("Job", told, left_out=rest)
        shop.compare("Task", [pairs(task) for job in told for task in job["tasks"]])
        over_http = [shop.web.right("GET", f"/v1/jobs/{id}") for id in ids]
        shop.compare("Job", over_http, left_out=rest + ["cursor"])
        shop.compare("Task", [task for job in over_http for task in job["tasks"]])
        shown = [json.loads(shop.belfry("job", "get", id, "--json")) for id in ids]
        assert shown == over_http
        listed = shop.web.right("GET", "/v1/jobs")["jobs"]
        shop.compare("Job", listed, left_out=rest + ["cursor", "tasks"])
        assert json.loads(shop.belfry("job", "list", "--json")) == listed


def test_the_document_has_the_fields_of_a_job():
    with Shop() as shop:
        listed = [name for row in rows("JOB GET") for name in re.findall(r"`(\w+)`", row[0])]
        assert sorted(listed) == sorted(shop.names("Job")), set(listed) ^ shop.names("Job")
        of_task = re.search(r"\| `tasks` \| array \| (.*)\|", section("JOB GET"))[1]
        assert shop.names("Task") == set(re.findall(r"`(\w+)`", of_task))


def test_a_topic():
    with Shop() as shop:
        settings = set(shop.web.right("GET", f"/v1/topics/{TOPIC}")["settings"])
        assert settings
        shop.compare("Topic", [shop.web.right("GET", f"/v1/topics/{TOPIC}")])
        told = pairs(shop.client.ask("TOPIC", TOPIC))
        for shown in (told, json.loads(shop.belfry("topics", TOPIC, "--json"))):
            assert settings <= set(shown)
            shop.compare("Topic", [set(shown) - settings], left_out=["settings"])


def test_a_verdict_and_a_step():
    with Shop() as shop:
        for _ in range(3):
            shop.client.ask("SCHEDULE", "v", "x")
        tokens = [shop.client.ask("CLAIM", "v")[0][0] for _ in range(3)]
        assert len(shop.client.ask("FAIL", tokens[0])) == len(shop.names("Verdict"))
        shop.compare("Verdict", [shop.web.right("POST", f"/v1/leases/{tokens[1]}/fail", {})])
        shop.compare("Verdict", [json.loads(shop.belfry("fail", tokens[2], "--json"))])
        assert len(shop.client.ask("AGENDA")[0]) == len(shop.names("Step"))
        shop.compare("Step", shop.web.right("GET", "/v1/agenda")["steps"])
        shop.compare("Step", json.loads(shop.belfry("agenda", "--json"))["steps"])


def section(title):
    with open(PROTOCOL) as file:
        return file.read().split(f"### {title}\n")[1].split("\n### ")[0]


def rows(title):
    """The rows of the first table of a section, each as its cells."""
    lines = [line for line in section(title).split("\n") if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_document_has_the_fields_of_a_timer():
    with Shop() as shop:
        properties, listed = shop.schemas["Timer"]["properties"], []
        for first, second, *_ in rows("GET"):
            names, types = re.findall(r"`(\w+)`", first), second.split(", ")
            listed += names
            for name, wire in zip(names, types * len(names) if len(types) == 1 else types):
                schema = followed(shop.schemas, properties[name])
                assert WIRE[schema.get("type")] == wire, (name, wire)
        assert sorted(listed) == sorted(shop.names("Timer")), set(listed) ^ shop.names("Timer")


def test_the_document_has_the_other_fields():
    with Shop() as shop:
        names = {kind: [name for name in schema.get("properties", ()) if is_name(name)]
                 for kind, schema in shop.schemas.items()}
        places = [[str(i), name] for i, name in enumerate(names["Delivery"])]
        assert [row[:2] for row in rows("CLAIM")] == places
        listed = [name for row in rows("TOPIC") if "store on Redis" not in row[1]
                  for name in re.findall(r"`(\w+)`", row[0])]
        settings = list(shop.web.right("GET", f"/v1/topics/{TOPIC}")["settings"])
        at = names["Topic"].index("settings")
        assert listed == names["Topic"][:at] + settings + names["Topic"][at + 1:], listed
        assert "`[" + ", ".join(names["Outcome"]) + "]`" in section("GET")
        assert "`[" + ", ".join(names["Verdict"]) + "]`" in section("FAIL")
        assert "`[[" + ", ".join(names["Step"]) + "], ...]`" in section("AGENDA")


def followed(schemas, schema):
    """A schema, or the one that it refers to."""
    return schemas[schema["$ref"].rsplit("/", 1)[1]] if "$ref" in schema else schema


def body_of(description, path):
    schemas = description["components"]["schemas"]
    content = description["paths"][path]["post"]["requestBody"]["content"]
    fields = followed(schemas, content["application/json"]["schema"])["properties"]
    return {name: followed(schemas, schema) for name, schema in fields.items()}


def test_the_limits_of_the_description_hold():
    with Server("--store", "memory", "--http", "127.0.0.1:0") as server:
        web = Web(server)
        paths = web.right("GET", "/openapi.json")
        schedule = body_of(paths, "/v1/topics/{topic}/timers")
        texts = {name: schema["maxLength"] for name, schema in schedule.items()
                 if "maxLength" in schema}
        assert texts["correlation"] == 256 and texts["group"] == 200 and texts["id"] == 128, texts
        for name in ("correlation", "group", "id"):
            timer = {"payload": "x", "in": "1h"}
            web.right("POST", "/v1/topics/t/timers", {**timer, name: "x" * texts[name]})
            web.wrong(400, "BADARG", "POST", "/v1/topics/t/timers",
                      {**timer, name: "x" * (texts[name] + 1)})
        for name, make in (("priority", lambda count: count),
                           ("headers", lambda count: {f"n{i}": "v" for i in range(count)})):
            limit = schedule[name].get("maximum", schedule[name].get("maxProperties"))
            timer = {"payload": "x", "in": "1h"}
            web.right("POST", "/v1/topics/t/timers", {**timer, name: make(limit)})
            web.wrong(400, "BADARG", "POST", "/v1/topics/t/timers",
                      {**timer, name: make(limit + 1)})
        limit = body_of(paths, "/v1/topics/{topic}/claim")["count"]["maximum"]
        web.right("POST", "/v1/topics/t/claim", {"count": limit})
        web.wrong(400, "BADARG", "POST", "/v1/topics/t/claim", {"count": limit + 1})


main(dict(globals()))
