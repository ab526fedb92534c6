#!/usr/bin/env python3
"""belfry copy: between data directories and a real server of Redis, out and back.

    servers.py redis FOLDER copying.py BELFRY ARCHIVE

ARCHIVE is the data directory of tests/server/kept: every kind of timer and plan, in every state,
written by an earlier version. BEL_TEST_REDIS_SERVER names the server, see servers.py.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "server"))
import redis_rig  # noqa: E402
from rig import DEADLINE, PROGRAM, Client, Refusal, Server, main  # noqa: E402

ARCHIVE = sys.argv[2]
REDIS = os.environ["BEL_TEST_REDIS_SERVER"]
WITHOUT = ["--without", "groups,resources,concurrency"]
TOPICS = ["deep", "ended", "expiring", "groups", "jobs", "legacy", "mail", "paused", "plans"]


class Redis:
    """A server of Redis in a directory of its own, on a Unix socket."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="belfry-test-")
        self.path = os.path.join(self.folder, "socket")

    def __enter__(self):
        self.process = subprocess.Popen(
            [REDIS, "--port", "0", "--unixsocket", self.path, "--save", "", "--dir", self.folder],
            cwd=self.folder, stdout=subprocess.DEVNULL)
        wait_for(lambda: os.path.exists(self.path))
        self.client = connect(self.path)
        return self

    def __exit__(self, *ignored):
        self.client.close()
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder)

    def url(self, name="belfry"):
        return f"unix://{self.path}?namespace={name}"


class Local(Client):
    """A client on a Unix socket."""

    def __init__(self, path):
        import socket
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(DEADLINE)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")


def connect(path):
    end = time.monotonic() + DEADLINE
    while True:
        try:
            return Local(path)
        except OSError:
            assert time.monotonic() < end, "the server of Redis does not start"
            time.sleep(0.01)


def wait_for(condition):
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.002)


class Folder:
    """A temporary folder, which is removed in the end."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="belfry-test-")
        return self.path

    def __exit__(self, *ignored):
        shutil.rmtree(self.path, ignore_errors=True)


class Serving(Server):
    """A server whose folder stays when it ends."""

    def __exit__(self, kind, *ignored):
        assert self.stop() == 0 or kind is not None, self.log()[-2000:]


def copy(source, target, *flags, status=0):
    """Runs belfry copy. Returns its result, or the text of the error if `status` is not 0."""
    command = [PROGRAM, "copy", "--from", source, "--to", target, "--json", *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=10 * DEADLINE)
    assert done.returncode == status, (command, done.returncode, done.stdout, done.stderr)
    assert "\r" not in done.stderr, "a bar is for terminals only"
    return json.loads(done.stdout) if status == 0 else done.stderr


def unpack(folder):
    """Unpacks the archive. Returns the data directory."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder)
    with open(os.path.join(folder, "notes.json")) as file:
        sizes = json.load(file)["sizes"]
    for path, size in sizes.items():
        os.truncate(os.path.join(folder, path), size)
    return os.path.join(folder, "data")


def is_sound(folder):
    done = subprocess.run([PROGRAM, "doctor", folder], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return True


def fields(flat):
    return {flat[i]: flat[i + 1] for i in range(0, len(flat), 2)}


def arrives(timer):
    """What a copy of a timer shows: a leased one is ready, and some names are left out."""
    timer = {name: timer[name] for name in timer
             if name not in ("group", "resource", "worker", "lease_left_ms")}
    if timer["state"] == "leased":
        timer["state"] = "ready"
    return timer


def shown(folder, clock, how=lambda timer: timer):
    """What a server shows of a data directory at a time of a virtual clock."""
    data = os.path.join(folder, "data")
    if clock is not None:
        shutil.copy(clock, os.path.join(data, "virtual-clock"))
    with Serving("--clock", "virtual", "--durability", "none", folder=folder) as server:
        with server.client() as client:
            rows = {}
            for topic in client.ask("TOPICS"):
                listed = client.ask("LIST", topic, "COUNT", 1000)[0]
                settings = fields(client.ask("TOPIC", topic))
                kept = {name: settings[name] for name in settings
                        if name in ("paused", "lease", "retry", "crashes", "retention",
                                    "retention_dead", "depth", "misfire_after")}
                rows[topic] = [kept, *(how(fields(timer)) for timer in listed)]
            return rows


def test_a_copy_out_and_back_shows_the_same():
    with Redis() as redis, Folder() as kept, Folder() as back, Folder() as direct:
        data = unpack(kept)
        clock = os.path.join(data, "virtual-clock")
        out = copy(f"embedded:{data}", redis.url(), *WITHOUT)
        assert out["verified"] and out["timers"] == out["written"] == 90, out
        assert out["leased"] == 9 and out["groups"] == 6 and out["resources"] == 3, out
        assert copy(redis.url(), f"embedded:{back}/data")["digest"] == out["digest"]
        copy(f"embedded:{data}", f"embedded:{direct}/data", *WITHOUT)
        assert is_sound(f"{back}/data") and is_sound(f"{direct}/data")
        want = shown(kept, None, arrives)
        assert list(want) == TOPICS
        for folder in (direct, back):
            got = shown(folder, clock)
            for topic in TOPICS:
                assert len(got[topic]) == len(want[topic]), topic
                for one, other in zip(got[topic], want[topic]):
                    assert one == other, (folder == back, topic, one, other)


def test_what_a_copy_does_not_have_is_refused_with_its_number():
    with Redis() as redis, Folder() as kept, Folder() as folder:
        data = unpack(kept)
        why = copy(f"embedded:{data}", redis.url(), status=1)
        assert "6 timers with a group, 3 timers with a resource, " in why, why
        assert "1 topic with a concurrency" in why, why
        assert "--without groups,resources,concurrency" in why, why
        assert redis.client.ask("DBSIZE") == 0
        with Serving(folder=folder) as server, server.client() as client:
            job = {"id": "j", "tasks": [{"id": "a", "topic": "t"}, {"id": "b", "topic": "t"}]}
            client.ask("JOB", "SUBMIT", json.dumps(job))
            client.ask("SCHEDULE", "t", "x", "ID", "own")
        why = copy(f"embedded:{folder}/data", redis.url(), status=1)
        assert "1 job, 2 tasks of jobs" in why and "--without jobs" in why, why
        out = copy(f"embedded:{folder}/data", redis.url(), "--without", "jobs")
        assert out["written"] == 1 and out["tasks"] == 2, out


def test_limits_of_resources_are_refused_by_name():
    with Redis() as redis, Folder() as folder, Folder() as back:
        with Serving(folder=folder) as server, server.client() as client:
            client.ask("SCHEDULE", "t", "x", "ID", "own", "IN", "1h")
            client.ask("LIMIT", "api", "RATE", "5/1s")
        for target in (redis.url(), f"embedded:{back}/data"):
            for flags in ((), ("--dry-run",)):
                why = copy(f"embedded:{folder}/data", target, *flags, status=1)
                assert "the source has 1 resource with limits (api)" in why, why
                assert "--without resources" in why, why
            out = copy(f"embedded:{folder}/data", target, "--without", "resources")
            assert out["limits"] == 1 and out["written"] == 1, out
        with Serving(folder=folder) as server, server.client() as client:
            client.ask("LIMIT", "api", "DELETE")
            client.ask("LIMIT", "*", "CONCURRENCY", "3")
            for i in range(60):
                client.ask("LIMIT", f"model-{i}", "BREAKER", "off")
        why = copy(f"embedded:{folder}/data", redis.url(), "--merge", status=1)
        assert "61 resources with limits (*, model-0, " in why, why
        assert "--without resources" in why, why


def test_a_refused_copy_makes_no_directory():
    with Redis() as redis, Folder() as folder, Folder() as back:
        with Serving(folder=folder) as server, server.client() as client:
            client.ask("JOB", "SUBMIT", json.dumps({"tasks": [{"id": "a", "topic": "t"}]}))
        target = f"embedded:{back}/data"
        assert "1 job, 1 task of jobs" in copy(f"embedded:{folder}/data", target, status=1)
        assert "has no topics" in copy(redis.url("mistyped"), target, status=3)
        copy(f"embedded:{folder}/data", target, "--without", "jobs", "--dry-run")
        assert os.listdir(back) == [], os.listdir(back)


def test_a_store_in_use_or_unknown_is_refused():
    with Redis() as redis, Folder() as folder:
        with Serving(folder=folder) as server:
            why = copy(f"embedded:{folder}/data", redis.url(), status=4)
            assert str(server.process.pid) in why, why
            why = copy(redis.url(), f"embedded:{folder}/data", status=4)
            assert str(server.process.pid) in why, why
        assert "nothing-here" in copy(f"embedded:{folder}/nothing-here", redis.url(), status=3)
        assert "passwords" in copy(f"embedded:{folder}/passwords", redis.url(), status=3)
        assert not os.path.exists(f"{folder}/nothing-here")
        assert "not a store" in copy(folder, redis.url(), status=2)
        assert "scheme" in copy("http://localhost", redis.url(), status=2)
        assert "same store" in copy(redis.url(), redis.url(), status=2)
        assert "same store" in copy(f"embedded:{folder}/data", f"embedded:{folder}/data/", status=2)
        why = copy(f"embedded:{folder}/data", f"unix://{folder}/no-socket", status=7)
        assert "no-socket" in why, why
        assert "--without" in copy(redis.url(), redis.url("b"), "--move", "--without", "jobs",
                                   status=2)


class Using(Server):
    """A server on a store of Redis."""

    def __init__(self, url):
        self.url = url
        super().__init__()

    def start(self, *flags):
        return self.launch(["--resp", "127.0.0.1:0", "--http", "none", "--store", self.url], "store")


def test_a_store_that_servers_use_is_refused_by_name():
    with Redis() as redis, Folder() as folder:
        with Using(redis.url()) as server, server.client() as client:
            client.ask("SCHEDULE", "t", "x", "ID", "a", "IN", "1h")
            who = f"in use by process {server.process.pid} on {os.uname().nodename}; stop them"
            target = f"embedded:{folder}/data"
            for words in ((redis.url(), target), (f"embedded:{folder}/forced", redis.url())):
                if words[1] != target:
                    copy(redis.url(), words[0], "--force")
                why = copy(*words, status=4)
                assert who in why and "--force" in why and "namespace belfry is" in why, why
            # Others that share the server of Redis are no obstacle, nor is looking.
            assert copy(redis.url("other"), target, status=3).count("has no topics") == 1
            assert "has no topics" in copy(redis.url() + "&db=1", target, status=3)
            assert copy(redis.url(), target, "--dry-run")["timers"] == 1
            with Using(redis.url()) as second:
                why = copy(redis.url(), target, status=4)
                assert f"process {server.process.pid} on " in why, why
                assert f"process {second.process.pid} on " in why, why
            server.kill()  # leaves nothing that would have to expire
            wait_for(lambda: not redis.client.ask("CLIENT", "LIST", "TYPE", "pubsub"))
            assert copy(redis.url(), target)["written"] == 1


def test_who_may_not_list_clients_is_told_their_number():
    with redis_rig.Redis() as redis, Folder() as folder, redis.client() as store:
        store.ask("ACL", "SETUSER", "plain", "on", ">pw", "~*", "allchannels", "+@all",
                  "-@dangerous", "+info", "+role", "+config|get")
        url = redis.url().replace("redis://", "redis://plain:pw@")
        with Using(url) as server, server.client() as client:
            client.ask("SCHEDULE", "t", "x", "ID", "a", "IN", "1h")
            why = copy(url, f"embedded:{folder}/data", status=4)
            assert "is in use by a server; stop" in why and "pw@" not in why, why
        assert copy(url, f"embedded:{folder}/data")["written"] == 1


class Clustered(redis_rig.Redis):
    """Two primaries that share the slots; `with` gives the first one."""

    def __init__(self):
        super().__init__("--cluster-enabled", "yes", "--cluster-port", str(redis_rig.free_port()))
        self.bus = str(redis_rig.free_port())
        self.other = redis_rig.Redis("--cluster-enabled", "yes", "--cluster-port", self.bus)

    def __enter__(self):
        super().__enter__()
        self.other.__enter__()
        with self.client() as first, self.other.client() as second:
            first.ask("CLUSTER", "ADDSLOTSRANGE", "0", "8191")
            second.ask("CLUSTER", "ADDSLOTSRANGE", "8192", "16383")
            first.ask("CLUSTER", "MEET", "127.0.0.1", str(self.other.port), self.bus)
            for store in (first, second):
                wait_for(lambda: "cluster_state:ok" in store.ask("CLUSTER", "INFO"))
        return self

    def __exit__(self, *ignored):
        self.other.__exit__()
        super().__exit__()

    def url(self, rest=""):
        return f"redis+cluster://127.0.0.1:{self.port}{rest}"


def test_sentinels_and_a_cluster_in_both_directions():
    with redis_rig.Redis() as redis, redis_rig.Sentinel(redis) as sentinel, \
            Clustered() as cluster, Folder() as kept, Folder() as back:
        data = unpack(kept)
        place = f"redis+sentinel://127.0.0.1:{sentinel.port}/m?namespace=one"
        digest = copy(f"embedded:{data}", place, *WITHOUT)["digest"]
        for source, target in ((place, cluster.url()),                     # Sentinel to Cluster
                               (cluster.url(), f"embedded:{back}/data"),   # to a folder
                               (f"embedded:{back}/data", cluster.url("?namespace=two")),
                               (cluster.url("?namespace=two"), place.replace("=one", "=two")),
                               (place.replace("=one", "=two"), f"embedded:{back}/again")):
            out = copy(source, target)
            assert (out["digest"], out["written"]) == (digest, 90), (source, target, out)
        with cluster.client() as first, cluster.other.client() as second:
            assert first.ask("DBSIZE") > 20 and second.ask("DBSIZE") > 20, "both have topics"
        assert is_sound(f"{back}/data") and is_sound(f"{back}/again")
        with Using(cluster.url()) as server:
            why = copy(cluster.url(), f"embedded:{back}/third", status=4)
            assert f"in use by process {server.process.pid} on " in why, why
        with Using(place) as server:
            why = copy(place, f"embedded:{back}/third", status=4)
            assert f"in use by process {server.process.pid} on " in why, why


def fill(folder, count):
    """Schedules timers in two topics. Returns the data directory."""
    with Serving("--durability", "none", folder=folder) as server, server.client() as client:
        for topic in ("one", "two"):
            for first in range(0, count, 500):
                numbers = range(first, min(first + 500, count))
                for i in numbers:
                    client.send("SCHEDULE", topic, f"payload {i}", "ID", f"t{i:06}", "IN", "1d",
                                "PRIORITY", i % 3, "HEADER", "n", i)
                for i in numbers:
                    client.read()
        client.ask("CONFIGURE", "one", "retention", "1h", "depth", "10")
        client.ask("PAUSE", "two")
    return os.path.join(folder, "data")


def members(redis, name="belfry"):
    return sum(redis.client.ask("ZCARD", f"{{{name}:{topic}:0}}:pend") for topic in ("one", "two"))


def kill_when(condition, source, target, *flags):
    """Begins a copy, and kills it when a condition holds. Returns whether it was under way."""
    process = subprocess.Popen([PROGRAM, "copy", "--from", source, "--to", target, *flags],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: process.poll() is not None or condition())
    process.send_signal(signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


def test_a_copy_that_was_killed_goes_on():
    with Redis() as redis, Folder() as folder, Folder() as back:
        data = fill(folder, 4000)
        kills = 0
        for i in range(3):
            before = members(redis)
            kills += kill_when(lambda: members(redis) > before + 1000, f"embedded:{data}",
                               redis.url())
        assert kills > 0, "no copy was under way when it was killed"
        out = copy(f"embedded:{data}", redis.url())
        assert out["verified"] and out["timers"] == 8000, out
        assert out["written"] + out["kept"] < 8000, out  # it did not begin at the start
        assert redis.client.ask("HGET", "{belfry:two:0}:cfg", "paused") == "1"
        log = f"{back}/data/log-0"
        kills = sum(kill_when(lambda: os.path.exists(log), redis.url(), f"embedded:{back}/data")
                    for i in range(2))
        assert copy(redis.url(), f"embedded:{back}/data")["digest"] == out["digest"]
        assert is_sound(f"{back}/data")


def test_a_move_that_was_killed_while_it_deleted_goes_on():
    with Redis() as redis, Folder() as folder, Folder() as back:
        data = fill(folder, 4000)
        out = copy(f"embedded:{data}", redis.url())
        target, kills = f"embedded:{back}/data", 0
        while not kills:
            before = members(redis)
            assert before > 1000, "no move was deleting when it was killed"
            flags = ("--move",) if before == 8002 else ("--merge", "--move")
            kills += kill_when(lambda: members(redis) < before, redis.url(), target, *flags)
        why = copy(redis.url(), target, "--move", status=4)
        assert "goes on with --merge --move" in why, why
        copy(redis.url(), target, "--merge", "--move")
        assert members(redis) == 2, "only what means nothing is left in the source"
        again = copy(target, redis.url("again"))
        assert again["digest"] == out["digest"] and again["timers"] == 8000, again


def test_a_target_with_timers_is_kept_only_with_merge():
    with Redis() as redis, Folder() as folder:
        data = fill(folder, 20)
        copy(f"embedded:{data}", redis.url())
        again = copy(f"embedded:{data}", redis.url())
        assert again["written"] == 0 and again["verified"], again  # it is complete
        with Serving(folder=folder) as server, server.client() as client:
            client.ask("CONFIGURE", "one", "depth", "0")
            client.ask("SCHEDULE", "one", "other", "ID", "t000003", "IN", "2d", "CONFLICT",
                       "replace")
            client.ask("SCHEDULE", "one", "more", "ID", "u", "IN", "2d", "CONFLICT", "replace")
        why = copy(f"embedded:{data}", redis.url(), status=4)
        assert "topic 'one' of the target has 20 timers" in why and "--merge" in why, why
        dry = copy(f"embedded:{data}", redis.url(), "--merge", "--dry-run")
        assert not dry["verified"] and dry["written"] == 0 and dry["timers"] == 41, dry
        out = copy(f"embedded:{data}", redis.url(), "--merge")
        assert out["written"] == 1 and out["kept"] == 40, out
        record = redis.client.ask("HSTRLEN", "{belfry:one:0}:rec", "t000003")
        assert record == redis.client.ask("HSTRLEN", "{belfry:two:0}:rec", "t000003")  # the old one


def test_a_topic_that_others_share_is_refused():
    with Redis() as redis, Folder() as folder:
        command = [PROGRAM, "configure", "t", "layout=faststream", "--create", "--store",
                   redis.url()]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        why = copy(redis.url(), f"embedded:{folder}/data", status=1)
        assert "topic 't' has the layout faststream" in why, why


def test_a_move_leaves_nothing():
    with Redis() as redis, Folder() as kept, Folder() as back:
        data = unpack(kept)
        out = copy(f"embedded:{data}", redis.url("a"), *WITHOUT)
        moved = copy(redis.url("a"), redis.url("b"), "--move")
        assert moved["removed"] == 90 and moved["digest"] == out["digest"], moved
        left = copy(redis.url("a"), f"embedded:{back}/empty")
        assert left["timers"] == 0 and left["topics"] == 9, left
        moved = copy(redis.url("b"), f"embedded:{back}/data", "--move")
        assert moved["digest"] == out["digest"], moved
        moved = copy(f"embedded:{back}/data", f"embedded:{back}/third", "--move")
        assert moved["digest"] == out["digest"] and is_sound(f"{back}/data"), moved
        left = copy(f"embedded:{back}/data", f"embedded:{back}/fourth")
        assert left["timers"] == 0, left


def test_a_wrong_source_of_an_unfinished_copy_is_named():
    with Redis() as redis, Folder() as folder, Folder() as other:
        data = fill(folder, 3000)
        while not kill_when(lambda: members(redis) > 1000, f"embedded:{data}", redis.url()):
            redis.client.ask("FLUSHALL")
        second = fill(other, 5)
        why = copy(f"embedded:{second}", redis.url(), status=4)
        assert "unfinished copy of embedded:" in why and os.path.realpath(data) in why, why
        assert "has no topics" in copy(redis.url(), f"embedded:{other}/new", status=3)
        target = f"embedded:{other}/new"
        while not kill_when(lambda: os.path.exists(f"{other}/new/log-0"), f"embedded:{data}",
                            target):
            shutil.rmtree(f"{other}/new")
        copies = subprocess.run([PROGRAM, "copy", "--from", target, "--to", redis.url("c")],
                                capture_output=True, text=True)
        assert copies.returncode in (3, 4), copies  # empty, or begun


main(dict(globals()))
