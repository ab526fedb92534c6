#!/usr/bin/env python3
"""Checks that OPERATIONS.md describes every setting, metric and log message."""
import os
import pathlib
import re
import socket
import tempfile
import urllib.error
import urllib.request

from rig import Server, main, run, until

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
with open(os.path.join(ROOT, "docs", "OPERATIONS.md")) as file:
    TEXT = file.read()


def settings():
    """Returns the settings of the example file, as name -> value."""
    lines = re.findall(r"^    (?:# )?([a-z-]+) += ([^ ]+)", TEXT, re.M)
    return dict(lines)


def test_every_setting_is_shown():
    _, text, _ = run("serve", "--help")
    flags = set(re.findall(r"^    --([a-z-]+) ", text, re.M)) - {"config", "hash-key"}
    assert set(settings()) == flags, set(settings()) ^ flags


def test_the_file_can_be_used():
    values = settings()
    for name in ("keys", "port-file", "data", "resp", "port", "http", "store-namespace",
                 "store-password-file", "store-wait", "replicas"):
        del values[name]
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        file.writelines(f"{name} = {value}  # as shown\n" for name, value in values.items())
        file.flush()
        with Server("--config", file.name) as server, server.client() as client:
            info = client.ask("INFO", "store")
            assert "durability:commit\r\n" in info and "max_payload_bytes:1048576\r\n" in info


def test_every_metric_is_explained():
    with Server("--store", "memory", "--http", "127.0.0.1:0") as server:
        with server.client() as client:
            client.ask("SCHEDULE", "t", "x")
        with urllib.request.urlopen(f"http://{server.places['http']}/metrics", timeout=30) as page:
            names = re.findall(r"^# TYPE belfry_(\S+)", page.read().decode(), re.M)
    assert len(names) > 20, names
    with open(os.path.join(ROOT, "src", "metrics", "metrics.c")) as source:
        names += re.findall(r'"(store_\w+)"', source.read())  # only with a store on Redis
    table = TEXT[TEXT.index("| metric |"):TEXT.index("    groups:")]
    for name in names:
        assert re.search(rf"`{name}[`{{]", table), f"{name} is not in the table"
    for name in re.findall(r"`([a-z_]+)[`{]", "".join(re.findall(r"^\| (`.*?) \|", table, re.M))):
        assert name in names, f"{name} is no metric"
    for name in re.findall(r"belfry_([a-z_]+)", TEXT[TEXT.index("    groups:"):]):
        name = name.removesuffix("_bucket")
        assert name in names, f"{name} is no metric"


def test_the_alerts_are_shipped():
    with open(os.path.join(ROOT, "dist", "belfry-alerts.yml")) as file:
        rules = [line for line in file if not line.startswith("#")]
    assert "".join("    " + line for line in rules) in TEXT, "OPERATIONS.md has other alerts"


def test_every_line_of_the_log_is_explained():
    folder = os.path.join(ROOT, "src", "server")
    table = TEXT[TEXT.index("| message |"):TEXT.index("## When something is wrong")]
    found = set()
    for name in sorted(pathlib.Path(folder).rglob("*.c")):
        with open(name) as file:
            found |= set(re.findall(r'BEL_LOG_(?:ERROR|WARN|INFO|DEBUG),\s*"([^"]+)"', file.read()))
            file.seek(0)
            found |= set(re.findall(r'\bfail\(server, err, "([^"]+)"', file.read()))
    assert len(found) > 15, found
    for message in found:
        assert "`" + message in table, f"'{message}' is not in the table"


def test_the_service_manager_is_told_when_the_server_listens():
    with tempfile.TemporaryDirectory() as folder:
        for name in (os.path.join(folder, "notify"), f"@belfry-test-{os.getpid()}"):
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
                manager.bind(name.replace("@", "\0"))
                manager.settimeout(30)
                os.environ["NOTIFY_SOCKET"] = name
                try:
                    with Server("--store", "memory") as server, server.client() as client:
                        assert manager.recv(100) == b"READY=1"
                        assert client.ask("PING") == "PONG"
                finally:
                    del os.environ["NOTIFY_SOCKET"]


def metrics_of(server):
    """Returns the lines of /metrics as name -> number."""
    with urllib.request.urlopen(f"http://{server.places['http']}/metrics", timeout=30) as page:
        lines = re.findall(r"^belfry_(\S+) (\S+)$", page.read().decode(), re.M)
    return {name: float(value) for name, value in lines}


def test_what_is_refused_is_counted():
    with Server("--store", "memory", "--http", "127.0.0.1:0") as server, server.client() as client:
        client.refused("SCHEDULE", "t", "x", "IN", "5sec")
        client.refused("SCHEDULE", "t")
        client.refused("SCHEDULE", "no topic", "x")
        client.refused("NONSENSE")
        client.refused("TOPIC", "nowhere")
        request = urllib.request.Request(f"http://{server.places['http']}/v1/topics/t/timers",
                                         b'{"payload": "x", "in": "5sec"}', method="POST")
        try:
            urllib.request.urlopen(request, timeout=30)
            raise AssertionError("not refused")
        except urllib.error.HTTPError as error:
            assert error.code == 400
        counts = metrics_of(server)
        assert counts['command_errors_total{verb="schedule"}'] == 4, counts
        assert counts['commands_total{verb="schedule"}'] == 4
        assert counts['command_errors_total{verb="topic"}'] == 1
        assert counts['errors_total{code="BADARG"}'] == 3, counts
        assert counts['errors_total{code="ERR"}'] == 2 and counts['errors_total{code="NOTFOUND"}'] == 1
        info = client.ask("INFO", "stats")
        assert "errorstat_BADARG:count=3\r\n" in info and "total_error_replies:6\r\n" in info, info


def test_dead_and_expired_timers_are_counted():
    with Server("--store", "memory", "--clock", "virtual", "--http", "127.0.0.1:0") as server, \
            server.client() as client:
        def fail(*words):
            ((token, *_),) = client.ask("CLAIM", "t")
            client.ask("FAIL", token, *words)
        client.ask("SCHEDULE", "t", "x", "ID", "a")
        fail("DEAD")
        client.ask("REVIVE", "t", "a")
        fail("DEAD")
        client.ask("PURGE", "t", "STATE", "dead")
        client.ask("SCHEDULE", "t", "x", "EXPIRES", "1s")
        client.ask("CLOCK", "ADVANCE", "2h")
        assert client.ask("CLAIM", "t") == []
        counts = metrics_of(server)
        assert counts["timers_dead_total"] == 2 and counts["timers_expired_total"] == 1, counts
        assert counts.get('timers{topic="t",state="dead"}', 0) == 0  # this gauge has gone back
        assert counts["deliveries_last_minute"] == 2
        assert counts['delivery_lateness_last_minute_seconds{quantile="0.99"}'] <= 0.05


def test_a_section_has_the_topics():
    with Server("--store", "memory") as server, server.client() as client:
        client.ask("SCHEDULE", "a:b", "x", "IN", "1h")
        client.ask("PAUSE", "c/d")
        def topics():
            return client.ask("INFO", "topics")
        until(lambda: "topic_c/d:paused=1" in topics(), "a count")
        line = re.search(r"^topic_a:b:(.*)\r$", topics(), re.M).group(1)
        assert line.startswith("paused=0,scheduled=1,ready=0,leased=0"), line
        assert "topic_" not in client.ask("INFO") and "topic_a:b" in client.ask("INFO", "everything")
        assert "lateness_le_1000_us:0\r\n" in client.ask("INFO", "lateness")
        assert "cmdstat_topic" not in client.ask("INFO", "stats")  # the count is no client's


main(dict(globals()))
