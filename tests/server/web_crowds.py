#!/usr/bin/env python3
"""HTTP crowds: idle connections, half requests and clients that leave do not keep others out, on
either port."""
import json
import resource
import select
import socket
import threading

from rig import DEADLINE, Refusal, Server, main, until

GET = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
CLAIM = (b"POST /v1/topics/t/claim HTTP/1.1\r\nHost: localhost\r\nContent-Length: 15\r\n\r\n"
         b'{"wait": "60s"}')
DESCRIPTORS = 256


def serve(*flags):
    return Server("--store", "memory", "--http", "127.0.0.1:0", *flags)


def dial(server):
    port = int(server.places["http"].rsplit(":", 1)[1])
    return socket.create_connection(("127.0.0.1", port), timeout=DEADLINE)


def status_of(wire):
    """Sends a request, unless the server has spoken first. Returns the status; None if closed."""
    try:
        wire.sendall(GET)
        line = wire.makefile("rb").readline()
    except ConnectionError:
        return None
    return int(line.split()[1]) if line else None


def info(client, name):
    lines = dict(line.split(":", 1) for line in client.ask("INFO").splitlines() if ":" in line)
    return int(lines[name])


def test_a_full_port_answers_and_goes_on():
    with serve("--max-clients", "5") as server, server.client() as client:
        crowd = [dial(server) for _ in range(5)]
        for wire in crowd:
            wire.sendall(CLAIM)  # what waits for a timer is not idle
        until(lambda: info(client, "requests_under_way") == 5, "five claims that wait")
        for _ in range(20):
            wire = dial(server)
            head, _, body = wire.makefile("rb").read().partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 503 ") and b"Retry-After: 1" in head, head
            assert json.loads(body)["status"] == 503, body
            wire.close()
        crowd.pop().close()
        until(lambda: info(client, "http_clients") == 4, "one has left")
        wire = dial(server)
        assert status_of(wire) == 200
        wire.close()
        for wire in crowd:
            wire.close()
        until(lambda: info(client, "http_clients") == 0, "all have left")


def test_half_heads_do_not_keep_others_out():
    with serve("--max-clients", "3") as server, server.client() as client:
        crowd = [dial(server) for _ in range(3)]
        for wire in crowd:
            wire.sendall(GET[:20])
        until(lambda: info(client, "http_clients") == 3, "three HTTP clients")
        served = []
        for slow in crowd:
            served.append(dial(server))
            served[-1].sendall(CLAIM)
            answer = slow.makefile("rb").read()
            assert answer.startswith(b"HTTP/1.1 503 "), answer
            slow.close()
        until(lambda: info(client, "requests_under_way") == 3, "three claims that wait")
        for wire in served:
            wire.close()


def test_half_requests_of_clients_that_leave_hold_no_place():
    halves = (b"G", b"GET /livez HTTP/1.1\r\nHost: lo", b"PUT /v1/topics/t/timers/a HTTP/1.1\r\n"
              b"Host: localhost\r\nContent-Length: 100\r\n\r\n{", b"PUT /v1/topics/t/timers/a HTTP/1.1\r\n"
              b"Host: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{")
    with serve("--max-clients", "50") as server, server.client() as client:
        for i in range(200):
            wire = dial(server)
            wire.sendall(halves[i % len(halves)])
            wire.close()
        until(lambda: info(client, "http_clients") == 0, "all have left")
        assert status_of(dial(server)) == 200
        assert client.ask("TOPICS") == []


def test_the_reply_after_a_half_close():
    body = b'{"payload":0}'
    put = (b"PUT /v1/topics/t/timers/%d HTTP/1.1\r\nHost: localhost\r\nContent-Length: 13\r\n\r\n")
    with serve() as server:
        for i in range(200):
            wire = dial(server)
            wire.sendall(put % i + body)
            wire.shutdown(socket.SHUT_WR)
            answer = wire.makefile("rb").read()
            assert answer.startswith(b"HTTP/1.1 200 ") and answer.endswith(b'"id":"%d"}' % i), answer
            wire.close()
        wire = dial(server)
        claim = b'{"wait":"60s","count":200}'
        wire.sendall(b"POST /v1/topics/t/claim HTTP/1.1\r\nHost: localhost\r\n"
                     b"Content-Length: %d\r\n\r\n" % len(claim) + claim)
        wire.shutdown(socket.SHUT_WR)
        answer = wire.makefile("rb").read()
        assert answer.count(b'"token"') == 200, answer[:500]
        wire.close()


def test_half_requests_on_both_ports_share_a_limit():
    """Two clients stop in the middle of a request. A third must wait for their memory, a small
    request must not. Both are refused by name, and the third is answered."""
    total = 6 << 20
    with serve("--input-total", "6M", "--max-payload", "4M") as server, server.client() as client:
        payload = b"x" * (7 << 19)
        half, wire, third = server.client(), dial(server), server.client()
        half.socket.sendall(b"*3\r\n$8\r\nSCHEDULE\r\n$1\r\nt\r\n$4000000\r\n")
        wire.sendall(b"POST /v1/topics/t/timers HTTP/1.1\r\nHost: localhost\r\n"
                     b"Content-Length: 4000000\r\n\r\n")
        head = b"*5\r\n$8\r\nSCHEDULE\r\n$1\r\nt\r\n$%d\r\n" % len(payload)
        third.socket.sendall(head)
        senders = [threading.Thread(target=each.sendall, args=(payload,))
                   for each in (half.socket, wire)]
        senders.append(threading.Thread(
            target=third.socket.sendall, args=(payload + b"\r\n$2\r\nID\r\n$1\r\na\r\n",)))
        for sender in senders:
            sender.start()
        most = 0

        def are_dropped():
            nonlocal most
            assert client.ask("PING") == "PONG"
            most = max(most, info(client, "client_input_bytes"))
            return info(client, "clients_incomplete_dropped") == 2
        until(are_dropped, "two requests that are dropped")
        for sender in senders:
            sender.join()
        assert total // 2 < most < total * 5 // 4, most
        try:
            half.read()
            raise AssertionError("the half request was taken")
        except Refusal as refusal:
            # Which of the two rules drops the request depends on who waits at that moment.
            assert str(refusal).startswith(("ERR the request is incomplete, and less than",
                                            "ERR the request is incomplete, and nothing")), refusal
        assert half.file.read() == b""
        answer = wire.makefile("rb").read()
        assert answer.startswith(b"HTTP/1.1 408 "), answer
        assert b"the request is incomplete" in answer, answer
        assert third.read() == "a"
        until(lambda: info(client, "client_input_bytes") == 0, "the memory is free")
        assert "incomplete and stood still" in server.log()
        for each in (half, wire, third):
            each.close()


def ask(wire, path):
    """Sends a request and reads the answer. Returns its status and body."""
    wire.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % path)
    head, _, body = wire.makefile("rb").read().partition(b"\r\n\r\n")
    return int(head.split()[1]), body


def test_unread_answers_on_both_ports_share_a_limit():
    """Clients ask for 8 MB, over HTTP and then over RESP, and do not read. The total counts
    allocated bytes. Short answers go on, and whoever reads is answered."""
    total, reply = 32 << 20, 9 << 20
    get = b"GET /v1/topics/t/timers/b HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with serve("--output-total", "32M", "--max-payload", "8M") as server, \
            server.client() as client:
        client.ask("SCHEDULE", "t", "y" * 1000000, "ID", "a", "IN", "1h")
        client.ask("SCHEDULE", "t", "y" * 8000000, "ID", "b", "IN", "1h")
        crowd, most = [], 0

        def look():
            nonlocal most
            most = max(most, info(client, "client_output_bytes"))
            return most

        def join(other, wire, text):
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            wire.sendall(text)
            crowd.append(other)
            look()
        for _ in range(12):
            wire = dial(server)
            join(wire, wire, get)
        until(lambda: look() > total // 2, "answers over HTTP that nobody reads")
        for _ in range(4):
            other = server.client()
            join(other, other.socket, b"GET t b\r\n")
        for path in (b"/livez", b"/readyz", b"/metrics", b"/v1/topics/t"):
            status, _ = ask(dial(server), path)
            assert status == 200, (path, status)
        for number in range(4):
            status, body = ask(dial(server), b"/v1/topics/t/timers/a")
            assert status == 200 and body.count(b"y") >= 1000000, (number, status, len(body))
            look()
        assert client.ask("PING") == "PONG"
        until(lambda: look() and info(client, "clients_dropped") > 0, "a client that is closed")
        assert most < total * 5 // 4 + reply, f"{most} bytes"
        assert "do not read: output-total is exceeded" in server.log()
        for each in crowd:
            each.close()
        until(lambda: info(client, "client_output_bytes") < 1 << 20, "the memory is free")


def test_many_at_once():
    with serve() as server:
        crowd = [dial(server) for _ in range(300)]
        for wire in crowd:
            wire.sendall(GET * 3)
        left = {wire: b"" for wire in crowd}
        while left:
            ready, _, _ = select.select(list(left), [], [], DEADLINE)
            assert ready, f"{len(left)} clients wait"
            for wire in ready:
                left[wire] += wire.recv(4096)
                if left[wire].count(b'{"status":"ok"}') == 3:
                    del left[wire]
        for wire in crowd:
            wire.close()


def test_idle_connections_leave_descriptors_to_the_other_port():
    """The last test, because the limit of this process cannot be raised again."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    with serve() as server, server.client() as first:
        share = info(first, "maxclients")
        assert share == (DESCRIPTORS - 64) // 2, share
        crowd = []
        while len(crowd) < 3 * share // 2:
            try:
                crowd.append(dial(server))
            except OSError:  # this process has as few descriptors as the server
                break
        assert len(crowd) > share, len(crowd)
        until(lambda: info(first, "http_clients") == share, "the HTTP port is full")
        for wire in crowd[share:]:
            wire.close()
        clients = [server.client() for _ in range(40)]
        assert all(client.ask("PING") == "PONG" for client in clients)
        for client in clients:
            client.close()
        for wire in crowd[:share]:
            wire.close()


if __name__ == "__main__":
    main(dict(globals()))
