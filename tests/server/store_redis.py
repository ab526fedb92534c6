#!/usr/bin/env python3
"""belfry serve --store redis://: the start and what ends it, several servers on one Redis, outages.

Every redis-server is the test's own. Nothing is timed: what a test waits for has a deadline.
"""
import json
import re
import signal
import socket
import subprocess
import tempfile
import threading

from redis_rig import Node, Redis, Sentinel, free_port, need_redis
from rig import DEADLINE, PROGRAM, Refusal, main, run, until
from web import Web

PASSWORD = "s3cret-of-the-store"


def facts(client, section="store"):
    lines = client.ask("INFO", section).split("\r\n")
    return dict(line.split(":", 1) for line in lines if ":" in line)


def fails(*flags):
    """Runs a server that must not start. Returns its exit status and what it says."""
    status, out, err = run("serve", "--resp", "127.0.0.1:0", "--http", "none", *flags)
    assert status != 0 and out == "", (status, out)
    return status, err


def eventually(client, *words):
    """Asks until the answer is no IO error: the store may be away, or coming back."""
    def ask():
        try:
            return [client.ask(*words)]
        except Refusal as refusal:
            assert str(refusal).startswith("IO "), refusal
            return None
    return until(ask, words)[0]


def test_a_server_keeps_its_timers_in_redis():
    with Redis() as redis, Node(redis.url()) as server, server.client() as client:
        assert server.places["store"] == redis.url()
        assert client.ask("SCHEDULE", "mail", "hello", "ID", "a", "IN", "10ms") == "a"
        ((token, topic, name, payload, *_),) = client.ask("CLAIM", "mail", "WAIT", "20s")
        assert (topic, name, payload) == ("mail", "a", "hello")
        assert client.ask("ACK", token) == 1
        client.ask("SCHEDULE", "mail", "later", "ID", "b", "IN", "1h")
        web = Web(server)
        assert web.right("GET", "/v1/topics/mail/timers/b")["payload"] == "later"
        assert web.right("GET", "/readyz") == {"status": "ok"}
        text = web.right("GET", "/metrics")
        assert "belfry_store_ready 1\n" in text and 'belfry_timers{topic="mail",state' in text
        assert 'belfry_topic_claims_total{topic="mail"} 1\n' in text, text
        assert 'belfry_topic_completions_total{topic="mail"} 1\n' in text
        assert 'topic_waited_seconds' not in text and "pressure" not in text
        (line,) = [told for name, told in facts(client, "topics").items() if name == "topic_mail"]
        assert "claimed=1,completed=1,failed=0,lost=0" in line, line
        told, shown = client.ask("TOPIC", "mail"), web.right("GET", "/v1/topics/mail")
        assert told[told.index("claimed_total") + 1] == shown["claimed_total"] == 1
        for absent in ("claims_per_minute", "waited_ms_p50", "ran_ms_p99"):
            assert absent not in told and absent not in shown, (told, shown)
        web.close()
        with redis.client() as store:
            keys = store.ask("KEYS", "*")
        assert keys and all(key.startswith(("{belfry:mail:", "{belfry}:")) for key in keys), keys


def test_info_names_the_store_and_what_it_lacks():
    with Redis() as redis, Node(redis.url(), "--store-namespace", "ns") as server, \
            server.client() as client:
        told = facts(client)
        assert told["store"] == "redis" and told["durability"] == "async"
        assert told["store_url"] == redis.url() and told["store_namespace"] == "ns"
        assert told["store_ready"] == "1" and told["store_primaries"] == "1"
        assert re.fullmatch(rf"address=127\.0\.0\.1:{redis.port},ready=1,connections=1,"
                            r"server=(redis|valkey),version=\d+\..*", told["store_primary_0"])
        lacks = facts(client, "capabilities")
        assert lacks["timers"] == "1" and lacks["jobs"] == "0" and lacks["limits"] == "0"
        for words in (["JOB", "LIST"], ["LIMIT"], ["BACKUP", "/tmp/x"],
                      ["SCHEDULE", "t", "x", "GROUP", "g"], ["SCHEDULE", "t", "x", "RESOURCE", "r"],
                      ["CONFIGURE", "t", "concurrency", "3"]):
            text = client.refused(*words)
            assert text.startswith("UNSUPPORTED ") and "a store on Redis" in text, text
        web = Web(server)
        web.wrong(501, "UNSUPPORTED", "GET", "/v1/jobs")
        web.close()


def test_settings_that_do_not_apply_are_named():
    with Redis() as redis:
        status, err = fails("--store", redis.url(), "--durability", "commit")
        assert status == 2 and "async or wait" in err, err
        status, err = fails("--store", "memory", "--replicas", "2")
        assert status == 2 and "--replicas" in err, err
        status, err = fails("--store", "memory", "--durability", "wait")
        assert status == 2 and "commit, interval or none" in err, err
        status, err = fails("--store", redis.url("?nonsense=1"))
        assert status == 2 and "nonsense" in err, err
        status, err = fails("--store", "redi://here")
        assert status == 2 and "--store" in err, err
        with Node(redis.url(), "--sync", "loop", "--data", "/nonexistent") as server:
            log = server.log()
        assert "setting=sync" in log and "setting=data" in log and "setting=resp" not in log
        assert "durability=async" in log


def test_a_password_is_nowhere_to_be_seen():
    with Redis("--requirepass", PASSWORD) as redis, tempfile.NamedTemporaryFile("w") as file:
        file.write(PASSWORD + "\n")
        file.flush()
        url = f"redis://:{PASSWORD}@127.0.0.1:{redis.port}"
        for flags in ((url,), (redis.url(), "--store-password-file", file.name)):
            with Node(*flags) as server, server.client() as client:
                client.ask("SCHEDULE", "t", "x")
                seen = client.ask("INFO", "everything") + server.log() + str(server.places)
                with open(f"/proc/{server.process.pid}/cmdline") as command:
                    seen += command.read()
                assert PASSWORD not in seen and f"127.0.0.1:{redis.port}" in seen
        for wrong in (f"redis://:wrong-{PASSWORD}@127.0.0.1:{redis.port}", redis.url()):
            status, err = fails("--store", wrong, "--store-wait", "1h")
            assert status == 1 and "store cannot be used" in err and PASSWORD not in err, err
            assert "WRONGPASS" in err or "NOAUTH" in err, err
        assert "--store-password-file; a Sentinel: ?sentinel_password_file=" in err, err
        status, err = fails("--store", redis.url(), "--store-password-file", "/nonexistent")
        assert status == 1 and "/nonexistent cannot be read" in err, err
        status, err = fails("--store", url + "/no-number")
        assert status == 2 and PASSWORD not in err, err


def test_a_store_that_cannot_be_used_ends_the_start():
    with Redis("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru") as redis:
        status, err = fails("--store", redis.url(), "--store-wait", "1h")
        assert status == 1 and "about=eviction" in err and "noeviction" in err, err
        with Redis("--replicaof", f"127.0.0.1 {redis.port}") as replica:
            status, err = fails("--store", replica.url(), "--store-wait", "1h")
            assert status == 1 and "is a replica" in err and "redis+sentinel" in err, err
    with Redis("--cluster-enabled", "yes", "--cluster-port", str(free_port())) as redis:
        status, err = fails("--store", redis.url(), "--store-wait", "1h")
        assert status == 1 and "about=mode" in err and "redis+cluster://" in err, err
    with Redis() as redis, redis.client() as store:
        store.ask("ACL", "SETUSER", "reader", "on", ">pw", "~*", "+@read", "+info", "+hello")
        status, err = fails("--store", f"redis://reader:pw@127.0.0.1:{redis.port}")
        assert status == 1 and "about=scripts" in err and "NOPERM" in err, err


def test_a_user_who_may_not_use_channels_is_named():
    """A new user may use no channel: the scripts would make their changes and then fail."""
    with Redis() as redis, redis.client() as store:
        def examined(*permissions):
            store.ask("ACL", "SETUSER", "app", "reset", "on", ">pw", "~*", "+@all", *permissions)
            url = f"redis://app:pw@127.0.0.1:{redis.port}"
            status, out, err = run("doctor", "--store", url, "--json")
            found = json.loads(out)["findings"]
            return status, [each for each in found if each["about"] == "channels"]
        for permissions in ((), ("allchannels", "-publish", "-spublish")):
            status, (found,) = examined(*permissions)
            assert status == 1 and found["level"] == "refused", found
            assert "may not publish" in found["what"] and "allchannels" in found["do"], found
        status, (found,) = examined("allchannels", "-psubscribe", "-ssubscribe")
        assert status == 0 and found["level"] == "warning" and "late" in found["what"], found
        assert examined("allchannels") == (0, [])
        assert examined("&{belfry*", "&{belfry:*}:wake") == (0, [])
        assert examined("allchannels", "-multi") == (0, []), "it cannot be asked"


def test_a_server_that_is_too_old_is_refused():
    lines = b"# Server\r\nredis_version:5.0.14\r\nrun_id:x\r\n"
    old = {"HELLO": b"-ERR unknown command 'HELLO'\r\n",
           "INFO": b"$%d\r\n%s\r\n" % (len(lines), lines)}

    def answer(listener):
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            with peer, peer.makefile("rb") as file:
                while line := file.readline():
                    words = []
                    for _ in range(int(line[1:])):
                        words.append(file.read(int(file.readline()[1:]) + 2)[:-2].decode())
                    peer.sendall(old.get(words[0].upper(), b"+OK\r\n"))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=answer, args=[listener], daemon=True).start()
        url = f"redis://127.0.0.1:{listener.getsockname()[1]}"
        status, err = fails("--store", url, "--store-wait", "1h")
        listener.shutdown(socket.SHUT_RDWR)
    assert status == 1 and "about=version" in err and "5.0.14" in err, err


def test_the_start_waits_for_its_store():
    status, err = fails("--store", f"redis://127.0.0.1:{free_port()}", "--store-wait", "200ms")
    assert status == 1 and "store cannot be reached" in err and "--store-wait" in err, err
    listener = socket.create_server(("127.0.0.1", 0))
    redis = Redis(port=listener.getsockname()[1])

    def begin():
        """Hangs up on the server for a while, which does not give up. Then the store starts."""
        for _ in range(8):
            listener.accept()[0].close()
        listener.close()
        redis.start()

    late = threading.Thread(target=begin)
    late.start()
    with Node(f"redis://127.0.0.1:{redis.port}", "--store-wait", "60s") as server:
        late.join()
        with server.client() as client:
            assert client.ask("SCHEDULE", "t", "x", "ID", "a") == "a"
        assert "waiting for the store" in server.log(), server.log()
    redis.__exit__()


def test_a_signal_ends_the_wait_for_a_store():
    command = [PROGRAM, "serve", "--store", f"redis://127.0.0.1:{free_port()}", "--http", "none",
               "--resp", "127.0.0.1:0", "--store-wait", "1h"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if "waiting for the store" in line:
            break
    process.terminate()
    out, _ = process.communicate(timeout=DEADLINE)
    assert out == "" and process.returncode == -signal.SIGTERM, (out, process.returncode)


def test_servers_share_the_timers_and_one_may_die():
    with Redis() as redis, Node(redis.url()) as first, Node(redis.url()) as second:
        with first.client() as one, second.client() as two:
            for i in range(50):
                (one, two)[i % 2].ask("SCHEDULE", "t", i, "ID", f"id{i}")
            lost = one.ask("CLAIM", "t", "COUNT", "20", "LEASE", "100ms")
            assert len(lost) == 20
            two.send("CLAIM", "woken", "WAIT", "25s")
            one.ask("SCHEDULE", "woken", "x", "ID", "w")  # wakes the claim at the other server
            assert two.read()[0][2] == "w"
            first.kill()
            got = set()
            while len(got) < 50:
                for token, _, name, *_ in two.ask("CLAIM", "t", "COUNT", "50", "WAIT", "10s"):
                    assert two.ask("ACK", token) == 1
                    got.add(name)
            assert two.ask("CLAIM", "t") == []


def test_a_plan_rings_once_on_many_servers():
    with Redis() as redis, Node(redis.url()) as first, Node(redis.url()) as second:
        with first.client() as one, second.client() as two:
            one.ask("SCHEDULE", "t", "x", "ID", "p", "EVERY", "10ms", "COUNT", "20", "OVERLAP",
                    "allow", "MISFIRE", "all")
            names = []
            while len(names) < 20:
                for client in (one, two):
                    for token, _, name, *_ in client.ask("CLAIM", "t", "COUNT", "9", "WAIT", "1s"):
                        client.ask("ACK", token)
                        names.append(name)
            assert len(set(names)) == 20
            assert two.ask("CLAIM", "t", "WAIT", "100ms") == []


def test_a_silent_store_answers_io_and_comes_back():
    with Redis() as redis, Node(redis.url()) as server, server.client() as client:
        client.ask("SCHEDULE", "t", "x", "ID", "before")
        redis.signal(signal.SIGSTOP)
        text = client.refused("SCHEDULE", "t", "x", "ID", "during")
        assert text.startswith(f"IO the outcome is unknown: 127.0.0.1:{redis.port}: no reply"), text
        web = Web(server)
        assert web.ask("GET", "/readyz") == (503, {"status": "store unreachable"})
        assert web.right("GET", "/livez") == {"status": "ok"}
        web.close()
        told = facts(client)
        assert told["store_ready"] == "0" and "no reply" in told["store_last_failure"], told
        redis.signal(signal.SIGCONT)
        assert eventually(client, "SCHEDULE", "t", "x", "ID", "during", "CONFLICT", "keep")
        assert facts(client)["store_ready"] == "1"
        names = [row[2] for row in client.ask("CLAIM", "t", "COUNT", "9")]
        assert sorted(names) == ["before", "during"]
        assert "store lost" in server.log() and "store connected again" in server.log()


def test_a_store_that_is_gone_is_named():
    with Redis() as redis, Node(redis.url()) as server, server.client() as client:
        client.ask("SCHEDULE", "t", "x")
        redis.signal(signal.SIGKILL)
        until(lambda: facts(client)["store_ready"] == "0", "an unready store")
        wanted = f"nothing was changed, the store was not reached: 127.0.0.1:{redis.port}: "
        text = client.refused("SCHEDULE", "t", "x")
        assert text.startswith("IO " + wanted), text
        assert client.refused("PURGE", "t", "STATE", "dead").startswith("IO " + wanted)
        web = Web(server)
        status, problem = web.ask("POST", "/v1/topics/t/timers", {"payload": "x"})
        assert status == 500 and problem["detail"].startswith(wanted), problem
        web.close()


def test_a_store_that_restarts_has_its_timers():
    with Redis("--appendonly", "yes", "--appendfsync", "always") as redis:
        with Node(redis.url()) as server, server.client() as client, server.client() as worker:
            client.ask("SCHEDULE", "t", "x", "ID", "a", "IN", "1h")
            redis.kill()
            until(lambda: facts(client)["store_ready"] == "0", "the end of the store")
            redis.start()
            assert dict(zip(*[iter(eventually(client, "GET", "t", "a"))] * 2))["id"] == "a"
            worker.send("CLAIM", "t", "WAIT", "25s")
            with redis.client() as store:
                store.ask("SCRIPT", "FLUSH")
            client.ask("RESCHEDULE", "t", "a", "IN", "1ms")
            assert worker.read()[0][2] == "a"


def test_a_namespace_is_a_store_of_its_own():
    with Redis() as redis, Node(redis.url()) as one, \
            Node(redis.url("?namespace=other")) as other:
        with one.client() as client, other.client() as stranger:
            client.ask("SCHEDULE", "t", "x", "ID", "a")
            assert stranger.ask("TOPICS") == [] and client.ask("TOPICS") == ["t"]
            assert facts(stranger)["store_namespace"] == "other"
        status, err = fails("--store", redis.url("?namespace=other"), "--store-namespace", "third")
        assert status == 2 and "namespace" in err, err


def test_a_change_waits_for_replicas():
    with Redis() as redis:
        status, err = fails("--store", redis.url(), "--durability", "wait")
        assert status == 1 and "about=replicas" in err and "--replicas" in err, err
        with Redis("--replicaof", f"127.0.0.1 {redis.port}") as replica:
            with redis.client() as store:
                until(lambda: "state=online" in store.ask("INFO", "replication"), "the replica")
            with Node(redis.url(), "--durability", "wait") as server, server.client() as client:
                told = facts(client)
                assert told["durability"] == "wait" and told["store_replicas_at_start"] == "1"
                client.ask("SCHEDULE", "t", "x", "ID", "a")
                with replica.client() as copy:
                    assert copy.ask("KEYS", "{belfry:t:*")  # it is there when the reply is
                replica.kill()
                text = client.refused("SCHEDULE", "t", "x", "ID", "b")
                assert text.startswith("IO ") and "replica" in text, text
                assert client.ask("GET", "t", "a")
        with Node(redis.url(), "--durability", "wait", "--replicas", "2") as server:
            assert "about=replicas" in server.log() and "needs 2" in server.log()


def test_sentinels_name_the_primary():
    with Redis() as redis, Redis("--replicaof", f"127.0.0.1 {redis.port}") as replica:
        with redis.client() as store:
            until(lambda: "state=online" in store.ask("INFO", "replication"), "the replica")
        with Sentinel(redis) as sentinel, sentinel.client() as watcher:
            until(lambda: watcher.ask("SENTINEL", "REPLICAS", "m"), "the replica at the Sentinel")
            with Node(sentinel.url()) as server, server.client() as client:
                told = facts(client)
                assert f"address=127.0.0.1:{redis.port}," in told["store_primary_0"], told
                client.ask("SCHEDULE", "t", "x", "ID", "a", "IN", "1h")
                with replica.client() as copy:
                    until(lambda: copy.ask("KEYS", "{belfry:t:*"), "the timer at the replica")
                redis.kill()
                assert eventually(client, "SCHEDULE", "t", "x", "ID", "b", "CONFLICT", "keep")
                told = facts(client)
                assert f"address=127.0.0.1:{replica.port}," in told["store_primary_0"], told
                names = {dict(zip(row[::2], row[1::2]))["id"] for row in client.ask("LIST", "t")[1]}
                assert names == {"a", "b"}, names
                assert "store connected again" in server.log()
            url = sentinel.url().replace("redis+sentinel", "redis").split("?")[0]
            status, err = fails("--store", url, "--store-wait", "1h")
            assert status == 1 and "Sentinel" in err, err


def test_a_wrong_url_of_sentinels_says_what_to_type():
    with Redis() as redis, Sentinel(redis) as sentinel:
        other = f"127.0.0.1:{redis.port}"
        status, err = fails("--store", f"redis+sentinel://{other}/m", "--store-wait", "1h")
        assert status == 1 and f"{other} is not a Sentinel; " in err, err
        assert "(default 26379)" in err and f"redis://{other}" in err, err
        status, err = fails("--store", sentinel.url().replace("=m", "=other"), "--store-wait", "1h")
        assert status == 1 and "know no primary of the name 'other'; " in err, err
        assert f"redis-cli -h 127.0.0.1 -p {sentinel.port} SENTINEL MASTERS" in err, err
        # Too few: some may be starting, so the start waits.
        absent = f"127.0.0.1:{free_port()}"
        url = f"redis+sentinel://{absent},127.0.0.1:{sentinel.port},{absent}/m"
        status, err = fails("--store", url, "--store-wait", "1s")
        assert status == 1 and "1 of 3 Sentinels have named the primary, 2 must agree; " in err, err
        assert f"{absent}: cannot connect: Connection refused" in err, err
        # One wrong address is no obstacle while the others agree.
        url = f"redis+sentinel://{other},127.0.0.1:{sentinel.port},127.0.0.1:{sentinel.port}/m"
        with Node(url) as server, server.client() as client:
            client.ask("SCHEDULE", "t", "x")
        status, err = fails("--store", f"redis+cluster://127.0.0.1:{sentinel.port}", "--store-wait",
                            "1h")
        assert status == 1 and "redis+cluster:// is for servers of a Cluster" in err, err


def test_a_cluster_serves_what_is_left_of_it():
    with Redis("--cluster-enabled", "yes", "--cluster-port", str(free_port())) as redis:
        with redis.client() as store:
            store.ask("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
            until(lambda: "cluster_state:ok" in store.ask("CLUSTER", "INFO"), "the Cluster")
        url = redis.url().replace("redis://", "redis+cluster://")
        with Node(url) as server, server.client() as client:
            assert server.places["store"] == url
            for i in range(20):
                client.ask("SCHEDULE", f"t{i}", "x", "ID", f"id{i}")
            got = client.ask("CLAIM", *[f"t{i}" for i in range(20)], "COUNT", "20")
            assert sorted(row[2] for row in got) == sorted(f"id{i}" for i in range(20))
            told = facts(client)
            assert told["store_primaries"] == "1" and told["store_url"] == url
            web = Web(server)
            assert web.right("GET", "/readyz") == {"status": "ok"}
            redis.kill()
            until(lambda: web.ask("GET", "/readyz")[0] == 503, "the end of the store")
            web.close()
    with Redis() as redis:
        url = redis.url().replace("redis://", "redis+cluster://")
        status, err = fails("--store", url, "--store-wait", "1h")
        assert status == 1 and "cluster support disabled" in err, err


def test_virtual_time_moves_on_redis():
    with Redis() as redis, Node(redis.url(), "--clock", "virtual") as server:
        with server.client() as client, server.client() as worker:
            client.ask("SCHEDULE", "t", "x", "ID", "a", "IN", "2h")
            client.ask("SCHEDULE", "t", "x", "ID", "p", "EVERY", "1h", "COUNT", "3", "OVERLAP",
                       "allow")
            assert client.ask("CLAIM", "t") == []
            before = client.ask("CLOCK")
            worker.send("CLAIM", "t", "WAIT", "25s")
            client.ask("CLOCK", "ADVANCE", "5h")
            assert client.ask("CLOCK") == before + 5 * 3600 * 1000
            got = [row[2] for row in worker.read()]
            got += [row[2] for row in client.ask("CLAIM", "t", "COUNT", "9")]
            assert len(set(got)) == 4 and "a" in got, got


def test_virtual_time_has_one_server_and_stays():
    with Redis() as redis:
        with Node(redis.url(), "--clock", "virtual") as server, server.client() as client:
            client.ask("SCHEDULE", "t", "x", "ID", "a", "IN", "3h")
            client.ask("CLOCK", "ADVANCE", "2h")
            then = client.ask("CLOCK")
            status, err = fails("--store", redis.url())
            assert status == 1 and "about=namespace" in err and "virtual" in err, err
            status, err = fails("--store", redis.url(), "--clock", "virtual", "--store-wait", "0s")
            assert status == 1 and "another server moves the virtual clock" in err, err
            client.ask("CLOCK", "ADVANCE", "30m")
        with Node(redis.url(), "--clock", "virtual") as server, server.client() as client:
            assert client.ask("CLOCK") == then + 30 * 60 * 1000
            assert client.ask("CLAIM", "t") == []
            client.ask("CLOCK", "ADVANCE", "30m")
            assert client.ask("CLAIM", "t")[0][2] == "a"
            with redis.client() as store:  # as if the server had been suspended for too long
                store.ask("SET", "{belfry}:clock-owner", "another")
            assert server.wait() == 1
            assert "has taken over the virtual clock" in server.log(), server.log()
    with Redis() as redis:
        with Node(redis.url()) as server, server.client() as client:
            client.ask("SCHEDULE", "t", "x")
        status, err = fails("--store", redis.url(), "--clock", "virtual")
        assert status == 1 and "about=namespace" in err and "another namespace" in err, err


def test_a_key_of_some_topics_sees_nothing_of_the_store():
    status, line, _ = run("serve", "--hash-key", "some", "all,@mine.*", stdin="k" * 24 + "\n")
    assert status == 0
    with Redis() as redis, tempfile.NamedTemporaryFile("w") as keys:
        keys.write(line)
        keys.flush()
        with Node(redis.url(), "--keys", keys.name) as server, server.client() as client:
            client.ask("AUTH", "some", "k" * 24)
            told = client.ask("INFO")
            assert "store:redis\r\n" in told and str(redis.port) not in told, told


need_redis()
main(dict(globals()))
