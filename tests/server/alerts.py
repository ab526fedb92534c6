#!/usr/bin/env python3
"""dist/belfry-alerts.yml: its syntax, and that real servers export what its expressions select.

A metric that is missing makes an alert silent, not wrong: nothing would ever say so. So servers of
both kinds of store are given a dead timer, lost leases and refusals, and every selector with its
labels has to find a series.
"""
import os
import re
import shutil
import subprocess

from redis_rig import Node, Redis, need_redis
from rig import Refusal, Server, main, until
from web import Web

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "dist",
                    "belfry-alerts.yml")
SELECTOR = re.compile(r"\b(belfry_\w+)(?:\{([^}]*)\})?")
WORDS = {"and", "by", "delta", "histogram_quantile", "increase", "instance", "max", "on", "rate",
         "sum", "topic", "up", "job"}
# As docs/OPERATIONS.md says: what never fires with a store on Redis, or without one.
NOT_ON_REDIS = {"BelfryDead", "BelfryWorkersDie", "BelfryDiskLow", "BelfryPressure",
                "BelfryPressureCritical"}
ONLY_ON_REDIS = {"BelfryDeadInRedis", "BelfryWorkersDieOnRedis", "BelfryStoreLost"}


def read_alerts():
    """Returns {name: expression}; the file has a fixed form, so that no library is needed."""
    with open(PATH) as file:
        lines = [line.rstrip("\n") for line in file if not line.startswith("#")]
    assert lines[:3] == ["groups:", "  - name: belfry", "    rules:"], lines[:3]
    alerts, name = {}, None
    for line in lines[3:]:
        if match := re.fullmatch(r"      - alert: (Belfry[A-Za-z]+)", line):
            name = match[1]
            assert name not in alerts, f"{name} is there twice"
            alerts[name] = None
        elif match := re.fullmatch(r"        expr: ([a-z].*)", line):
            assert alerts[name] is None and ": " not in match[1] and " #" not in match[1], line
            alerts[name] = match[1]
        else:
            assert re.fullmatch(r"        for: \d+m", line) and alerts[name], line
    assert all(alerts.values()), alerts
    return alerts


ALERTS = read_alerts()


def test_every_expression_is_well_formed():
    for name, expression in ALERTS.items():
        bare = re.sub(r'"[^"]*"', '""', expression)
        open_ones = []
        for char in bare:
            if char in "([{":
                open_ones.append(char)
            elif char in ")]}":
                assert open_ones and open_ones.pop() + char in ("()", "[]", "{}"), (name, char)
        assert not open_ones, name
        bare = re.sub(r"\{[^}]*\}|\[\d+m\]", "", bare)
        words = set(re.findall(r"[a-zA-Z_]\w*", bare))
        assert all(word in WORDS or word.startswith("belfry_") for word in words), (name, words)
        for metric in re.findall(r"(?:rate|increase|delta)\((.*?)\)", expression):
            assert re.search(r"\[\d+m\]$", metric), f"{name}: {metric} is no range"


def test_prometheus_accepts_the_file():
    promtool = shutil.which("promtool")
    if promtool is None:
        print("     (promtool is not here: only the checks above)")
        return
    done = subprocess.run([promtool, "check", "rules", PATH], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def selects(series, metric, labels):
    """Returns whether a selector finds one of the series: lines without their values."""
    wanted = re.findall(r'(\w+)(=~|=)"([^"]*)"', labels or "")
    for line in series:
        name, _, rest = line.partition("{")
        has = dict(re.findall(r'(\w+)="([^"]*)"', rest))
        if name == metric and all(re.fullmatch(value if how == "=~" else re.escape(value),
                                               has.get(label, "")) for label, how, value in wanted):
            return True
    return False


def silent(server):
    """Returns the alerts whose expressions select nothing of a server's metrics."""
    text = Web(server).right("GET", "/metrics")
    series = [line.rsplit(" ", 1)[0] for line in text.splitlines() if line[:1] not in ("#", "")]
    return {name for name, expression in ALERTS.items()
            if not all(selects(series, *found) for found in SELECTOR.findall(expression))}


def suffer(client):
    """A dead timer, a lost lease, one that waits, one that was late, and a refusal."""
    client.ask("SCHEDULE", "t", "x", "ID", "dead")
    client.ask("FAIL", client.ask("CLAIM", "t", "WAIT", "20s")[0][0], "DEAD")
    client.ask("CONFIGURE", "t", "lease", "1ms", "depth", "1", "crashes", "100")
    client.ask("SCHEDULE", "t", "x", "ID", "lost")
    client.ask("CLAIM", "t", "WAIT", "20s")
    client.ask("CLAIM", "t", "WAIT", "20s")  # again: the first lease was lost
    try:
        raise AssertionError(client.ask("SCHEDULE", "t", "x"))
    except Refusal as refusal:
        assert str(refusal).startswith("FULL"), refusal
    until(lambda: dict(zip(*[iter(client.ask("TOPIC", "t"))] * 2))["ready"] == 1, "the timer")


def test_a_data_directory_exports_what_its_alerts_need():
    with Server("--http", "127.0.0.1:0", "--durability", "none") as server:
        with server.client() as client:
            suffer(client)
            assert silent(server) == ONLY_ON_REDIS, silent(server)


def test_a_store_on_redis_exports_what_its_alerts_need():
    with Redis() as redis, Node(redis.url()) as server, server.client() as client:
        suffer(client)
        assert silent(server) == NOT_ON_REDIS, silent(server)


def test_every_alert_fires_somewhere():
    assert not NOT_ON_REDIS & ONLY_ON_REDIS and NOT_ON_REDIS | ONLY_ON_REDIS < set(ALERTS)


need_redis()
main(dict(globals()))
