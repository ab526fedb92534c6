#!/usr/bin/env python3
"""Many clients, and misbehaving clients."""
import socket
import threading
import time

from rig import Client, Refusal, Server, frame, main, until


def test_a_thousand_idle_clients():
    with Server("--sync", "loop") as server:
        idle = [server.client() for _ in range(1000)]
        with server.client() as client:
            assert "connected_clients:1001" in client.ask("INFO", "clients")
            for i in range(100):
                client.ask("SCHEDULE", "t", i)
        for each in idle[::100]:
            assert each.ask("PING") == "PONG"
        for each in idle:
            each.close()
        with server.client() as client:
            until(lambda: "connected_clients:1\r" in client.ask("INFO", "clients"), "one client")


def test_a_thousand_that_wait_are_served_in_turn():
    with Server("--store", "memory") as server, server.client() as client:
        workers = [server.client() for _ in range(1000)]
        for i, worker in enumerate(workers):
            worker.send("CLAIM", "t", "WAIT", "60s")
            if i % 100 == 0:
                client.ask("PING")
        until(lambda: "requests_under_way:1000" in client.ask("INFO", "clients"), "all of them")
        for i in range(1000):
            client.send("SCHEDULE", "t", i)
        for i in range(1000):
            client.read()
        got = {worker.read()[0][3] for worker in workers}
        assert got == {str(i) for i in range(1000)}
        for worker in workers:
            worker.close()


def test_one_too_many_is_turned_away():
    with Server("--store", "memory", "--max-clients", "3") as server:
        inside = [server.client() for _ in range(3)]
        for each in inside:
            assert each.ask("PING") == "PONG"
        late = server.client()
        try:
            late.read()
            raise AssertionError("it was let in")
        except Refusal as refusal:
            assert "max number of clients reached" in str(refusal)
        assert late.file.read() == b""
        late.close()
        inside.pop().close()

        def comes_in():
            client = server.client()
            try:
                return client.ask("PING") == "PONG"
            except (Refusal, EOFError, ConnectionError):
                return False
            finally:
                client.close()
        until(comes_in, "a place")
        for each in inside:
            each.close()


def test_who_never_reads_is_bounded_and_harms_nobody():
    with Server("--store", "memory", "--output-limit", "64K") as server, server.client() as client:
        stuck = server.client()
        stuck.socket.setblocking(False)
        sent, stalled, data = 0, 0, b""
        while stalled < 200 and sent < 64 << 20:
            data = data or frame("ECHO", "x" * 1000) * 100
            try:
                count = stuck.socket.send(data)
                sent, stalled, data = sent + count, 0, data[count:]
            except BlockingIOError:
                stalled += 1
                assert client.ask("PING") == "PONG"
            except ConnectionError:
                break
        assert sent < 64 << 20, "the server took everything in"
        stuck.close()


def test_who_talks_on_after_the_end_is_cut_off():
    with Server("--store", "memory") as server, server.client() as client:
        client.socket.sendall(b"*1\r\n$-5\r\n")
        sent = 0
        try:
            while sent < 64 << 20:
                sent += client.socket.send(b"x" * 65536)
        except ConnectionError:
            pass
        assert sent < 64 << 20, "the server listens on"


def pipeline(client, requests):
    """Sends all data while another thread reads. Returns the replies."""
    sender = threading.Thread(target=client.socket.sendall, args=(b"".join(requests),))
    sender.start()
    answers = [client.read() for _ in requests]
    sender.join()
    return answers


def test_a_pipeline_of_long_answers_is_answered_whole():
    for limit, size in (("64K", 30000), ("64K", 100000), ("64K", 1000000), ("8M", 1000000)):
        with Server("--store", "memory", "--output-limit", limit) as server, \
                server.client() as client:
            for i in range(10):
                client.ask("SCHEDULE", "t", "%d" % i + "y" * size, "ID", "%d" % i)
            echoes = pipeline(client, [frame("ECHO", "z" * size)] * 30)
            assert echoes == ["z" * size] * 30
            for timer in pipeline(client, [frame("GET", "t", "%d" % (i % 10)) for i in range(30)]):
                fields = dict(zip(timer[::2], timer[1::2]))
                assert fields["payload"] == fields["id"] + "y" * size
            lists = pipeline(client, [frame("LIST", "t", "COUNT", "1000")] * 4)
            assert all(len(page) >= 1 for _, page in lists)
            claims = pipeline(client, [frame("CLAIM", "t", "COUNT", "4")] * 4)
            counts = [2, 2, 2, 2] if size > 500000 else [0, 2, 4, 4]  # a claim ends after 1 MiB
            assert sorted(len(claim) for claim in claims) == counts
            assert client.ask("INFO", "clients").find("clients_dropped:0") > 0


def number_of(client, name):
    return int(client.ask("INFO", "clients").split(name + ":")[1].split()[0])


def memory_of(server):
    with open(f"/proc/{server.process.pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:")) << 10


def test_a_crowd_that_does_not_read_shares_a_limit():
    """The clients do not read 1 MB replies; another does. The total counts allocated bytes."""
    total = 32 << 20
    with Server("--store", "memory", "--output-total", "32M", "--max-payload", "8M") as server, \
            server.client() as client, server.client() as reader:
        client.ask("SCHEDULE", "t", "y" * 1000000, "ID", "a", "IN", "1h")
        client.ask("SCHEDULE", "t", "y" * 8000000, "ID", "b", "IN", "1h")
        before, most, crowd = memory_of(server), 0, []
        for _ in range(20):
            crowd.append(server.client())
            crowd[-1].socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            crowd[-1].socket.sendall(frame("GET", "t", "a") * 64)
            most = max(most, number_of(client, "client_output_bytes"))
        assert most > total // 2, most
        for crowded in (False, True):
            timers = pipeline(reader, [frame("GET", "t", "a")] * 20)
            assert all(len(timer[timer.index("payload") + 1]) == 1000000 for timer in timers)
            most = max(most, number_of(client, "client_output_bytes"))
            assert client.ask("PING") == "PONG"
            if crowded:
                break
            for _ in range(20):
                crowd.append(server.client())
                crowd[-1].socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                crowd[-1].socket.sendall(frame("GET", "t", "b"))  # more than a socket takes
        assert most < total * 5 // 4 + (9 << 20), f"{most} bytes"
        until(lambda: number_of(client, "clients_dropped") > 0, "a client that is closed")
        grown = memory_of(server) - before
        print(f"     {most >> 20} MiB of replies at most, {grown >> 20} MiB of memory")
        assert "do not read: output-total is exceeded" in server.log()
        for each in crowd:
            each.close()
        until(lambda: number_of(client, "client_output_bytes") < 1 << 20, "the memory is free")


def test_who_hung_up_when_a_timer_came_keeps_none():
    with Server("--store", "memory") as server, server.client() as client:
        def has(line):
            return line + "\r\n" in client.ask("INFO", "clients")
        for number in range(100):
            topic = f"t{number}"
            waiting = server.client()
            waiting.send("CLAIM", topic, "WAIT", "1h")
            until(lambda: has("requests_under_way:1"), "a claim that waits")
            if number % 2 == 0:  # both may arrive in the same poll
                waiting.close()
                client.send("SCHEDULE", topic, "x", "ID", "a")
            else:  # the timer may be on its way to the client
                client.send("SCHEDULE", topic, "x", "ID", "a")
                waiting.close()
            client.read()
            until(lambda: has("connected_clients:1"), "the end of a client")
            timer = client.ask("GET", topic, "a")
            assert dict(zip(timer[::2], timer[1::2]))["state"] == "ready", number


def test_a_slow_reader_gets_every_byte():
    with Server("--store", "memory") as server, server.client() as slow, server.client() as client:
        for i in range(300):
            slow.send("ECHO", "%d" % i + "y" * 50000)
            if i % 50 == 0:
                assert client.ask("PING") == "PONG"
            if i >= 60:
                assert slow.read() == "%d" % (i - 60) + "y" * 50000
        for i in range(240, 300):
            assert slow.read() == "%d" % i + "y" * 50000


def test_rubbish_is_refused_and_closed():
    with Server("--store", "memory") as server, server.client() as good:
        for rubbish in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"*1000000000\r\n", b"*1\r\n$-5\r\n",
                        b"\x16\x03\x01\x02\x00\x01", b"*1\r\n$99999999999\r\n", b"\0" * 100000):
            client = server.client()
            try:
                client.socket.sendall(rubbish)
                client.socket.shutdown(1)
                client.file.read()
            except ConnectionError:
                pass
            client.close()
            assert good.ask("PING") == "PONG"


main(dict(globals()))
