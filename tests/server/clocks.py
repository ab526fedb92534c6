#!/usr/bin/env python3
"""Virtual time: it moves only on request, and runs everything that becomes due on the way."""
import os
import select
import time

from rig import Server, main, until

HOUR = 3600 * 1000


def test_it_stands_still_and_goes_where_it_is_told():
    with Server("--clock", "virtual") as server, server.client() as client:
        start = client.ask("CLOCK")
        client.ask("SCHEDULE", "t", "x", "IN", "1h")
        client.ask("CLOCK", "ADVANCE", HOUR - 1)
        assert client.ask("CLAIM", "t") == []
        client.ask("CLOCK", "ADVANCE", 1)
        delivery = client.ask("CLAIM", "t")[0]
        assert delivery[3] == "x" and delivery[4] == start + HOUR
        assert client.ask("CLOCK") == start + HOUR
        assert client.refused("CLOCK", "SET", start).startswith("BADARG")
        client.ask("CLOCK", "SET", start + 2 * HOUR)
        assert client.ask("CLOCK") == start + 2 * HOUR


def test_a_new_data_directory_starts_at_the_time_of_the_wall():
    for flags in [[], ["--store", "memory"]]:
        before = int(time.time() * 1000)
        with Server("--clock", "virtual", *flags) as server, server.client() as client:
            after = int(time.time() * 1000)
            start = client.ask("CLOCK")
            assert before <= start <= after, (before, start, after)
            client.ask("SCHEDULE", "t", "x", "ID", "x")
            assert client.ask("GET", "t", "x")[9] == start, "what is stored has it, too"


def test_a_backup_has_the_time_it_was_made_at():
    with Server("--clock", "virtual") as server:
        with server.client() as client:
            then = client.ask("CLOCK") + 30 * 24 * HOUR
            client.ask("CLOCK", "SET", then)
            client.ask("SCHEDULE", "t", "x", "ID", "x", "IN", "1h")
            timer = client.ask("GET", "t", "x")
            copy = os.path.join(server.folder, "copy")
            assert client.ask("BACKUP", copy) == "OK"
            client.ask("CLOCK", "ADVANCE", "1d")
        assert server.stop() == 0
        server.start("--data", copy)
        with server.client() as client:
            assert client.ask("CLOCK") == then
            assert client.ask("GET", "t", "x") == timer


def test_leases_end_on_the_way():
    with Server("--clock", "virtual", "--store", "memory") as server, server.client() as client:
        client.ask("SCHEDULE", "t", "x", "ID", "x")
        token = client.ask("CLAIM", "t", "LEASE", "30s")[0][0]
        client.ask("CLOCK", "ADVANCE", "31s")
        assert client.refused("EXTEND", token).startswith("STALE")
        stats = client.ask("INFO", "stats")
        assert "leases_lost:1\r\n" in stats and "leases_lapsed:0\r\n" in stats, stats
        assert client.ask("CLAIM", "t")[0][2] == "x"


def test_a_plan_rings_every_time():
    with Server("--clock", "virtual", "--store", "memory") as server, server.client() as client:
        client.ask("SCHEDULE", "t", "x", "ID", "p", "EVERY", "1h", "OVERLAP", "allow")
        client.ask("CLOCK", "ADVANCE", "1d")
        dues = [each[4] for each in client.ask("CLAIM", "t", "COUNT", "100")]
        assert len(dues) == 24, dues
        assert all(b - a == HOUR for a, b in zip(dues, dues[1:])), dues


def test_those_who_wait_are_woken():
    with Server("--clock", "virtual") as server, server.client() as client:
        worker = server.client()
        worker.send("CLAIM", "t", "WAIT", "60s")
        until(lambda: "requests_under_way:1" in client.ask("INFO", "clients"), "a claim that waits")
        client.ask("SCHEDULE", "t", "x", "IN", "30d")
        client.ask("CLOCK", "ADVANCE", "30d")
        assert worker.read()[0][3] == "x"
        worker.close()


def test_a_long_way_holds_up_nobody():
    with Server("--clock", "virtual", "--store", "memory") as server, server.client() as client, \
            server.client() as other, server.client() as third:
        start = client.ask("CLOCK")
        client.ask("SCHEDULE", "t", "x", "ID", "p", "EVERY", "100ms")
        client.send("CLOCK", "ADVANCE", "1h")
        times = []
        while not select.select([client.socket], [], [], 0)[0]:
            times.append(other.ask("CLOCK"))
            if len(times) == 1:
                third.send("CLOCK", "ADVANCE", "1s")
        assert client.read() == start + HOUR
        assert third.read() == start + HOUR + 1000
        assert len(times) > 2 and sorted(times) == times, times[:5]
        assert start < times[len(times) // 2] < start + HOUR, "on the way"
        skipped = other.ask("GET", "t", "p")
        assert skipped[skipped.index("skipped") + 1] == 36010 - 1


def test_a_way_that_is_too_long_ends():
    with Server("--clock", "virtual", "--store", "memory") as server, server.client() as client:
        assert client.refused("CLOCK", "ADVANCE", "9223372036854775807").startswith("BADARG")


def test_waits_are_real_time():
    with Server("--clock", "virtual", "--store", "memory") as server, server.client() as client:
        start = time.monotonic()
        assert client.ask("CLAIM", "t", "WAIT", "50ms") == []
        assert time.monotonic() - start >= 0.049


def test_it_does_not_go_back_in_a_restart():
    with Server("--clock", "virtual") as server:
        with server.client() as client:
            client.ask("SCHEDULE", "t", "x", "IN", "3h", "ID", "x")
            client.ask("CLOCK", "ADVANCE", "2h")
            then = client.ask("CLOCK")
        server.kill()
        server.start()
        with server.client() as client:
            assert client.ask("CLOCK") == then
            client.ask("CLOCK", "ADVANCE", "59m")
            assert client.ask("CLAIM", "t") == []
            client.ask("CLOCK", "ADVANCE", "2m")
            assert client.ask("CLAIM", "t")[0][2] == "x"


def test_the_systems_time_cannot_be_moved():
    with Server("--store", "memory") as server, server.client() as client:
        assert abs(client.ask("CLOCK") - time.time() * 1000) < 60000
        client.refused("CLOCK", "ADVANCE", "1h")


main(dict(globals()))
