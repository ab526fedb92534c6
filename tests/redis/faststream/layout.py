#!/usr/bin/env python3
"""Topics of the layout faststream on a real server: layout.py RESP_NODE [CASE].

Needs no Python package: what faststream-redis-timers writes was recorded, and is written here by
plain commands. package.py does the same with the package itself.
"""
import sys

import rig
from rig import claim, claim_one, keys, is_empty, new_node, refused, timer, until

# Written by versions 0.4.0 and 0.5.4 alike.
TEXT = bytes.fromhex(
    "8942494e0d0a1a0a000100000012000000490002000e636f7272656c6174696f6e5f6964000974726163652d31"
    "3233000c636f6e74656e742d74797065000a746578742f706c61696e6869")
BINARY = bytes.fromhex(
    "8942494e0d0a1a0a000100000012000000280001000e636f7272656c6174696f6e5f6964000263317b00ff0102")
ODD = "naïve ü@ x"


CASES = []


def case(function):
    CASES.append(function)
    return function


def publish(server, topic, ident, value=TEXT, at=None):
    timeline, payloads = keys(topic)
    at = server.time() if at is None else at
    for words in (("MULTI",), ("ZADD", timeline, repr(at), ident), ("HSET", payloads, ident, value),
                  ("EXEC",)):
        server.redis(*words)


def score(server, topic, ident):
    text = server.redis("ZSCORE", keys(topic)[0], ident)
    return None if text is None else float(text)


def shared(node, topic="t", *settings):
    node("CONFIGURE", topic, "layout", "faststream", *settings)


@case
def what_the_package_wrote_is_claimed_and_acked(server, node, _):
    shared(node)
    publish(server, "t", "a")
    got = claim_one(node, "t")
    assert (got.id, got.payload, got.correlation, got.attempt) == (b"a", b"hi", b"trace-123", 1)
    assert got.headers == {b"content-type": b"text/plain"}, got.headers
    assert got.lease == 30000 and score(server, "t", "a") > server.time() + 20
    assert node("ACK", got.token) == 1
    assert is_empty(server, "t")
    assert node("ACK", got.token) == 0
    publish(server, "t", "b", BINARY)
    assert claim_one(node, "t").payload == b"\x7b\x00\xff\x01\x02"


@case
def what_we_schedule_is_as_the_package_writes_it(server, node, _):
    shared(node)
    assert node("SCHEDULE", "t", "hi", "ID", "a", "CORRELATION", "trace-123", "HEADER",
                "content-type", "text/plain") == b"a"
    timeline, payloads = keys("t")
    assert server.redis("HGET", payloads, "a") == TEXT
    assert server.redis("ZCARD", timeline) == 1 and score(server, "t", "a") <= server.time()
    at = 1999999999123
    node("SCHEDULE", "t", "hi", "ID", "b", "AT", at)
    assert score(server, "t", "b") == at / 1000
    made = node("SCHEDULE", "t", b"\x00\xff", "IN", "1h")
    assert len(made) == 26
    value = server.redis("HGET", payloads, made)
    assert value.endswith(made + b"\x00\xff"), "the correlation id is the id"


@case
def a_due_is_compared_as_a_number_and_never_early(server, node, _):
    shared(node)
    publish(server, "t", "later", at=server.time() + 3600)
    publish(server, "t", "now", at=5.0)
    publish(server, "t", "text", at=1e9)  # as texts, "1000000000" is before "5"
    assert [each.id for each in claim(node, "t", "COUNT", 10)] == [b"now", b"text"]
    assert claim(node, "t") == []
    assert timer(node, "t", "later")[b"state"] == b"scheduled"


@case
def two_nodes_get_one_timer_once(server, node, stack):
    other = new_node(stack, server)
    shared(node, "t", "lease", "1h")
    for i in range(20):
        node.ask.send("CLAIM", "t", "WAIT", "100ms")
        other.ask.send("CLAIM", "t", "WAIT", "100ms")
        publish(server, "t", str(i))
        got = node.ask.receive() + other.ask.receive()
        assert len(got or node("CLAIM", "t", "WAIT", "60s")) == 1
        assert claim(node, "t") == [] == claim(other, "t")


@case
def a_lost_lease_is_delivered_again(server, node, stack):
    other = new_node(stack, server)
    shared(other, "t", "lease", "300ms")
    publish(server, "t", "a")
    first = claim_one(other, "t")
    end = score(server, "t", "a")
    other.kill()
    again = claim_one(node, "t")
    assert again.id == b"a" and server.time() >= end and again.due >= end * 1000 - 1
    assert node("ACK", first.token) == 0, "the lease has ended"
    assert node("ACK", again.token) == 1


@case
def an_ack_does_not_delete_what_was_republished(server, node, _):
    shared(node)
    publish(server, "t", "a")
    got = claim_one(node, "t")
    publish(server, "t", "a", BINARY)
    assert node("ACK", got.token) == 0
    assert server.redis("HGET", keys("t")[1], "a") == BINARY
    again = claim_one(node, "t")
    # the same score, but another payload
    server.redis("HSET", keys("t")[1], "a", TEXT)
    refused("STALE", node, "EXTEND", again.token)
    refused("STALE", node, "FAIL", again.token)
    assert node("ACK", again.token) == 0
    assert score(server, "t", "a") > server.time()


@case
def a_handler_may_schedule_its_own_id_again(server, node, _):
    shared(node)
    node("SCHEDULE", "t", "one", "ID", "a")
    got = claim_one(node, "t")
    node("SCHEDULE", "t", "one", "ID", "a", "IN", "1h")
    assert node("ACK", got.token) == 0
    assert timer(node, "t", "a")[b"state"] == b"scheduled"


@case
def members_that_are_no_timers_are_removed(server, node, _):
    shared(node)
    timeline, payloads = keys("t")
    for member in (b"\xff", b"a\xc3", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80"):
        publish(server, "t", member, at=1)
    server.redis("ZADD", timeline, 2, "no payload")
    for ident in ("ü", "€", "𝄞", "", "a b"):
        publish(server, "t", ident, at=3)
    server.redis("HSET", payloads, "never due", TEXT)
    got = claim(node, "t", "COUNT", 10)
    assert sorted(each.id.decode() for each in got) == sorted(("ü", "€", "𝄞", "", "a b"))
    assert server.redis("ZCARD", timeline) == 5 and server.redis("HLEN", payloads) == 6
    assert node("ACK", *(each.token for each in got)) == 5
    assert server.redis("HKEYS", payloads) == [b"never due"]


@case
def odd_names_are_taken_as_they_are(server, node, stack):
    other = new_node(stack, server)
    refused("BADARG", node, "SCHEDULE", ODD, "x")
    refused("BADARG", node, "CONFIGURE", ODD, "lease", "5s")
    refused("BADARG", node, "CONFIGURE", b"\xff", "layout", "faststream")
    refused("BADARG", node, "CONFIGURE", "COUNT", "layout", "faststream")
    shared(node, ODD)
    for ident in ("", "{t}", "naïve ü@ x", "a" * 5000):
        assert node("SCHEDULE", ODD, "x", "ID", ident) == ident.encode()
        assert timer(other, ODD, ident)[b"id"] == ident.encode()
    refused("BADARG", node, "SCHEDULE", ODD, "x", "ID", b"\xff")
    got = claim(other, ODD, "COUNT", 10)
    assert {each.topic for each in got} == {ODD.encode()} and len(got) == 4
    assert {each.correlation or b"" for each in got} == {each.id for each in got}
    assert other("ACK", *(each.token for each in got)) == 4
    assert is_empty(server, ODD) and node("TOPICS") == [ODD.encode()]
    node("CONFIGURE", ODD, "layout", "native")
    assert node("TOPICS") == []
    until(lambda: not knows(other, ODD))
    refused("BADARG", node, "SCHEDULE", "plain", "x", "ID", "")


def knows(node, topic):
    try:
        node("TOPIC", topic)
    except rig.Error:
        return False
    return True


@case
def conflicts(server, node, _):
    shared(node)
    node("SCHEDULE", "t", "one", "ID", "a", "IN", "1h")
    assert node("SCHEDULE", "t", "two", "ID", "a", "CONFLICT", "keep") == b"a"
    refused("CONFLICT", node, "SCHEDULE", "t", "two", "ID", "a", "CONFLICT", "reject")
    assert timer(node, "t", "a")[b"payload"] == b"one"
    node("SCHEDULE", "t", "two", "ID", "a", "CONFLICT", "replace", "IN", "2h")
    assert timer(node, "t", "a")[b"payload"] == b"two"
    server.redis("HDEL", keys("t")[1], "a")
    node("SCHEDULE", "t", "three", "ID", "a", "CONFLICT", "keep")
    assert timer(node, "t", "a")[b"payload"] == b"three", "half a timer is none"


@case
def foreign_options_are_refused_by_name(_, node, __):
    shared(node)
    for option, value in (("PRIORITY", "1"), ("GROUP", "g"), ("RESOURCE", "r"), ("RETRY", "5s"),
                          ("LEASE", "5s"), ("EXPIRES", "5s"), ("EVERY", "5s"),
                          ("CRON", "* * * * *"), ("CONFLICT", "earliest"), ("CONFLICT", "latest")):
        refused("BADARG", node, "SCHEDULE", "t", "x", option, value, naming=option)
    refused("BADARG", node, "SCHEDULE", "t", "x", "HEADER", "a", b"\xff")
    refused("BADARG", node, "SCHEDULE", "t", "x", "CORRELATION", b"\xff")
    for setting in ("retry", "crashes", "retention", "depth", "misfire_after", "deliver"):
        refused("BADARG", node, "CONFIGURE", "t", setting, "5", naming=setting)


@case
def failing_and_releasing(server, node, _):
    shared(node)
    publish(server, "t", "a")
    got = claim_one(node, "t")
    end = score(server, "t", "a")
    assert node("FAIL", got.token) == [b"scheduled", round(end * 1000)]
    assert score(server, "t", "a") == end, "the lease runs out"
    refused("STALE", node, "FAIL", got.token)
    assert node("ACK", got.token) == 0
    publish(server, "t", "a")
    got = claim_one(node, "t")
    state, due = node("FAIL", got.token, "IN", "1h")
    assert state == b"scheduled" and score(server, "t", "a") == due / 1000 > server.time() + 3000
    publish(server, "t", "a")
    got = claim_one(node, "t")
    assert node("RELEASE", got.token, "IN", "0ms") == 1
    got = claim_one(node, "t")
    assert got.attempt == 1
    state, due = node("FAIL", got.token, "KIND", "limited")
    assert server.time() + 30 < due / 1000 < server.time() + 61
    publish(server, "t", "a")
    got = claim_one(node, "t")
    assert node("RELEASE", got.token) == 1 and score(server, "t", "a") > server.time() + 20


@case
def a_lease_is_extended(server, node, _):
    shared(node, "t", "lease", "60s")
    publish(server, "t", "a")
    got = claim_one(node, "t")
    assert node("EXTEND", got.token, "1h") == 3600000
    assert score(server, "t", "a") > server.time() + 3000
    assert node("EXTEND", got.token) == 60000
    assert score(server, "t", "a") < server.time() + 61
    assert node("ACK", got.token) == 1 and is_empty(server, "t")


@case
def the_dead_move_to_a_native_topic(server, node, _):
    for topic, ident, dead, buried in (
            ("t", "a", "t:dead", "a"), (ODD, "", "na_C3_AFve_20_C3_BC_40_20x:dead", "_"),
            ("u", "naïve", "u:dead", "na_C3_AFve"),
            ("v" * 200, "w" * 300, None, None)):
        shared(node, topic)
        publish(server, topic, ident)
        got = claim_one(node, topic)
        assert node("FAIL", got.token, "DEAD", "REASON", "no such thing")[0] == b"dead"
        assert is_empty(server, topic), topic
        refused("STALE", node, "FAIL", got.token, "DEAD")
        if dead is None:
            dead = next(name for name in node("TOPICS") if name.startswith(b"vvv") and
                        name.endswith(b":dead"))
            buried = dict(zip(*[iter(node("LIST", dead)[1][0])] * 2))[b"id"]
            assert len(dead) <= 200 and len(buried) <= 128
        found = timer(node, dead, buried)
        assert found[b"state"] == b"dead" and found[b"reason"] == b"no such thing", found
        assert found[b"payload"] == b"hi" and found[b"correlation"] == b"trace-123"
        headers = dict(zip(found[b"headers"][::2], found[b"headers"][1::2]))
        assert headers[b"belfry-topic"].decode() == topic
        assert headers.get(b"belfry-id", buried if isinstance(buried, bytes) else
                           buried.encode()).decode() == ident
        assert node("REVIVE", dead, buried) == 1 and claim_one(node, dead).payload == b"hi"
    publish(server, "t", "b")
    got = claim_one(node, "t")
    publish(server, "t", "b", BINARY)
    refused("STALE", node, "FAIL", got.token, "DEAD")
    assert server.redis("HGET", keys("t")[1], "b") == BINARY


@case
def cancelling_and_rescheduling(server, node, _):
    shared(node)
    publish(server, "t", "a")
    node("SCHEDULE", "t", "x", "ID", "b", "IN", "1h")
    assert node("CANCEL", "t", "a", "b", "c") == 2 and is_empty(server, "t")
    publish(server, "t", "a", at=server.time() + 3600)
    assert node("RESCHEDULE", "t", "b", "IN", "1s") == 0
    assert node("RESCHEDULE", "t", "a", "AT", 1000000000000) == 1
    got = claim_one(node, "t")
    assert got.due == 1000000000000
    assert node("CANCEL", "t", "a") == 1
    assert node("ACK", got.token) == 0 and is_empty(server, "t")


@case
def listing(server, node, _):
    shared(node)
    now = server.time()
    for i in range(250):
        publish(server, "t", f"past{i:03}", at=1e9 + i // 10)
    for i in range(5):
        publish(server, "t", f"next{i}", at=now + 3600 + i)
    publish(server, "t", "", at=2)
    server.redis("ZADD", keys("t")[0], 3, "no payload")
    leased = claim(node, "t", "LEASE", "30m")[0]
    assert leased.id == b""
    listed = list_all(node, "t", "COUNT", 7)
    wanted = [b"past%03d" % i for i in range(250)] + [b""] + [b"next%d" % i for i in range(5)]
    assert [each[b"id"] for each in listed] == wanted
    assert listed[0][b"state"] == b"ready" and listed[250][b"state"] == b"scheduled"
    assert len(list_all(node, "t", "STATE", "ready", "COUNT", 100)) == 250
    assert len(list_all(node, "t", "STATE", "scheduled")) == 6
    assert list_all(node, "t", "STATE", "leased") == []
    bounds = ("FROM", 1000000010000, "TO", 1000000012000)
    assert [each[b"id"] for each in list_all(node, "t", *bounds)] == wanted[100:120]
    refused("BADARG", node, "LIST", "t", "CURSOR", "AAAA")
    topic = node("TOPIC", "t")
    topic = dict(zip(topic[::2], topic[1::2]))
    counts = dict(zip(topic[b"counts"][::2], topic[b"counts"][1::2])) if b"counts" in topic \
        else topic
    assert counts[b"ready"] == 251 and counts[b"scheduled"] == 6, topic
    refused("BADARG", node, "PURGE", "t", "STATE", "leased")
    assert node("PURGE", "t") == 0
    assert node("PURGE", "t", "STATE", "ready") == 251
    assert node("PURGE", "t", "STATE", "scheduled") == 6
    assert not server.redis("EXISTS", keys("t")[0])
    assert node("REVIVE", "t", "*") == 0


def list_all(node, topic, *options):
    found, cursor = [], b""
    while True:
        more = ("CURSOR", cursor) if cursor else ()
        cursor, page = node("LIST", topic, *options, *more)
        found += [dict(zip(fields[::2], fields[1::2])) for fields in page]
        if not cursor:
            return found


@case
def a_paused_topic_delivers_nothing(server, node, stack):
    other = new_node(stack, server)
    shared(node)
    publish(server, "t", "a")
    node("PAUSE", "t")
    assert claim(other, "t") == []
    other.ask.send("CLAIM", "t", "WAIT", "60s")
    node("RESUME", "t")
    assert len(other.ask.receive()) == 1


@case
def one_claim_serves_topics_of_both_layouts(server, node, _):
    shared(node, "shared")
    for i in range(4):
        node("SCHEDULE", "native", "n", "ID", f"n{i}")
        node("SCHEDULE", "shared", "s", "ID", f"s{i}")
    got = [rig.Delivery(each) for each in node("CLAIM", "native", "shared", "COUNT", 6)]
    assert [each.topic for each in got] == [b"native", b"shared"] * 3
    assert node("ACK", *(each.token for each in got)) == 6
    assert node("ACK", *(each.token for each in got)) == 0
    got = [rig.Delivery(each) for each in node("CLAIM", "native", "shared", "COUNT", 6)]
    assert len(got) == 2 and node("ACK", *(each.token for each in got)) == 2
    assert is_empty(server, "shared")


@case
def the_layout_changes_only_while_the_topic_is_empty(server, node, stack):
    other = new_node(stack, server)
    node("SCHEDULE", "t", "x", "ID", "a", "IN", "1h")
    refused("CONFLICT", node, "CONFIGURE", "t", "layout", "faststream")
    assert node("CANCEL", "t", "a") == 1
    other("SCHEDULE", "t", "x", "ID", "b")
    other("CANCEL", "t", "b")  # now the other node knows the topic as a native one
    node.ask.send("CONFIGURE", "t", "layout", "faststream")
    node.ask.send("SCHEDULE", "t", "x", "ID", "c")
    assert node.ask.receive() == b"OK" and node.ask.receive() == b"c"
    assert score(server, "t", "c"), "the second command has seen the first"
    until(lambda: reaches(other, server))
    refused("CONFLICT", node, "CONFIGURE", "t", "layout", "native")
    refused("CONFLICT", node, "CONFIGURE", "t", "prefix", "p:")
    node("CONFIGURE", "t", "lease", "5s", "poll_max", "1s")
    assert claim(node, "t", "COUNT", 9)[0].lease == 5000
    server.redis("DEL", *keys("t"))
    node("CONFIGURE", "t", "prefix", "p:", "timeline_key", "tl", "payloads_key", "pl")
    node("SCHEDULE", "t", "x", "ID", "e")
    assert server.redis("HEXISTS", "pl:p:t", "e") == 1 and server.redis("ZCARD", "tl:p:t") == 1
    refused("CONFLICT", node, "CONFIGURE", "p:t", "layout", "faststream", "timeline_key", "tl",
            "payloads_key", "pl2")
    node("CANCEL", "t", "e")
    refused("CONFLICT", node, "CONFIGURE", "p:t", "layout", "faststream", "timeline_key", "tl",
            "payloads_key", "pl")
    settings = node("TOPIC", "t")
    assert b"p:" in flat(settings) and b"faststream" in flat(settings)
    node("CONFIGURE", "t", "layout", "native")
    node("SCHEDULE", "t", "x", "ID", "f", "PRIORITY", "3", "IN", "1h")
    assert not server.redis("EXISTS", "tl:p:t") and timer(node, "t", "f")[b"priority"] == 3
    until(lambda: timer(other, "t", "f"))
    assert not server.redis("KEYS", "*faststream*"), "nothing is left"


@case
def an_existing_deployment_is_adopted_as_it_is(server, node, stack):
    """What Python has filled before the topic gets the layout is neither changed nor lost."""
    now = server.time()
    publish(server, "t", "leased by Python", at=now + 3600)
    publish(server, "t", "later", at=now + 7200)
    for i in range(300):
        publish(server, "t", f"due {i}", BINARY, at=now - 300 + i)
    before = contents(server)
    other = new_node(stack, server)
    assert claim(other, "t") == []  # and knows the topic as a native one from now on
    # A native topic with timers of its own is not adopted, and the keys stay nobody's.
    node("SCHEDULE", "t", "native", "ID", "n", "IN", "1h")
    refused("CONFLICT", node, "CONFIGURE", "t", "layout", "faststream", naming="native topic")
    assert not server.redis("KEYS", "*faststream*"), "nothing is left"
    assert node("CANCEL", "t", "n") == 1
    shared(node)
    shared(node)  # again, as after a crash in between
    assert contents(server) == before
    counts = dict(zip(*[iter(node("TOPIC", "t"))] * 2))
    assert (counts[b"ready"], counts[b"scheduled"]) == (300, 2), counts
    assert timer(node, "t", "later")[b"state"] == b"scheduled"
    got = until(lambda: claims(other, "t", "COUNT", "300"))
    assert [each.id for each in got] == [f"due {i}".encode() for i in range(300)]
    assert got[0].payload == b"\x7b\x00\xff\x01\x02"
    assert other("ACK", *[each.token for each in got]) == 300
    assert claim(node, "t") == []
    refused("CONFLICT", node, "CONFIGURE", "t", "layout", "native")


def contents(server):
    timeline, payloads = keys("t")
    values = server.redis("HGETALL", payloads)
    return server.redis("ZRANGE", timeline, 0, -1, "WITHSCORES"), sorted(zip(*[iter(values)] * 2))


def claims(node, *words):
    """A node may be told to try again when it is the first to see that a layout has changed."""
    try:
        return claim(node, *words)
    except rig.Error as error:
        assert str(error).startswith("CONFLICT the layout"), error
        return []


@case
def keys_that_are_not_of_the_package_are_not_adopted(server, node, _):
    timeline, payloads = keys("t")
    publish(server, "t", "a")
    # A typing error in one key: a claim would remove all timers.
    refused("CONFLICT", node, "CONFIGURE", "t", "layout", "faststream", "payloads_key", "payload",
            naming="none of their payloads")
    assert node("CONFIGURE", "t", "layout", "faststream") == b"OK"
    assert node("CANCEL", "t", "a") == 1
    node("CONFIGURE", "t", "layout", "native")
    for key, words in ((timeline, ("SET", timeline, "x")), (payloads, ("RPUSH", payloads, "x"))):
        server.redis(*words)
        refused("CONFLICT", node, "CONFIGURE", "t", "layout", "faststream", naming="prefix")
        assert server.redis("DEL", key) == 1
    assert not server.redis("KEYS", "*faststream*"), "nothing is left"
    shared(node)


def flat(value):
    return sum((flat(each) for each in value), []) if isinstance(value, list) else [value]


def reaches(node, server):
    """A node may be told to try again when it is the first to see that a layout has changed."""
    try:
        node("SCHEDULE", "t", "x", "ID", "d")
    except rig.Error as error:
        assert str(error).startswith("CONFLICT the layout"), error
        return False
    assert score(server, "t", "d"), "went to the native topic"
    return True


@case
def settings_are_checked(_, node, __):
    for words, naming in ((("layout", "x"), "layout"), (("timeline_key", "x"), "timeline_key"),
                          (("poll_min", "1s"), "poll_min"),
                          (("layout", "faststream", "lease", "0ms"), "lease"),
                          (("layout", "faststream", "timeline_key", ""), "timeline_key"),
                          (("layout", "faststream", "prefix", "a\nb"), "prefix"),
                          (("layout", "faststream", "prefix", b"\xff"), "prefix"),
                          (("layout", "faststream", "poll_min", "9s"), "poll_min"),
                          (("layout", "faststream", "timeline_key", "a", "payloads_key", "a"),
                           "timeline_key"),
                          (("layout", "faststream", "retry", "5s"), "retry")):
        refused("BADARG", node, "CONFIGURE", "t", *words, naming=naming)
    node("CONFIGURE", "t", "layout", "native", "lease", "5s")
    shared(node)
    refused("BADARG", node, "CONFIGURE", "t", "layout", "native", "lease", "5s", naming="lease")


@case
def a_waiting_claim_polls(server, node, _):
    shared(node)
    node.ask.send("CLAIM", "t", "WAIT", "60s")
    calls = polls(server)
    until(lambda: polls(server) > calls + 3)
    publish(server, "t", "a", at=server.time() + 0.2)
    got = rig.Delivery(node.ask.receive()[0])
    assert got.id == b"a" and server.time() * 1000 >= got.due
    assert node("ACK", got.token) == 1
    calls = polls(server)
    assert node("PING") == b"PONG" and claim(node, "t") == []
    assert polls(server) == calls + 1, "nobody polls when no claim waits"


def polls(server):
    info = server.redis("INFO", "commandstats").decode()
    return sum(int(line.split("calls=")[1].split(",")[0]) for line in info.splitlines()
               if line.startswith(("cmdstat_evalsha:", "cmdstat_eval:")))


@case
def scripts_may_be_flushed_at_any_time(server, node, _):
    shared(node)
    for i in range(20):
        server.redis("SCRIPT", "FLUSH")
        node("SCHEDULE", "t", "x", "ID", str(i))
        server.redis("SCRIPT", "FLUSH")
        got = claim_one(node, "t")
        server.redis("SCRIPT", "FLUSH")
        assert node("ACK", got.token) == 1
    assert is_empty(server, "t")


@case
def an_agenda_counts_timers_by_their_due(server, node, _):
    shared(node)
    hour = 3600
    begin = int(server.time()) // hour * hour + 2 * hour
    for i, at in enumerate((begin, begin + hour - 0.001, begin + hour, begin + hour + 0.0004,
                            begin + 5 * hour - 0.5, begin - 0.001)):
        publish(server, "t", f"n{i}", at=at)
    words = ("AGENDA", "FROM", begin * 1000, "TO", (begin + 4 * hour) * 1000, "TOPIC", "t", "STEP")
    steps = node(*words, "1h")
    assert [step[:2] for step in steps] == [[(begin + i * hour) * 1000, count]
                                            for i, count in enumerate((2, 2, 0, 0))], steps
    fine = node(*words, "5s")  # 2,880 steps are three calls
    found = {(at - begin * 1000) / 1000: count for at, count, *_ in fine if count}
    assert len(fine) == 2880 and found == {0: 1, hour - 5: 1, hour: 2}, found
    assert node("AGENDA", "FROM", begin * 1000, "TO", (begin + hour) * 1000, "STEP", "1h")[0][1] == 0
    shared(node, "u", "lease", "3h")
    publish(server, "u", "a")
    end = claim_one(node, "u").due // 1000 + 3 * hour
    words = ("AGENDA", "FROM", (end - 5) * 1000, "TO", (end + 55) * 1000, "STEP", "1m")
    assert [step[1] for step in node(*words, "TOPIC", "u")] == [1], "a lease is a due"


@case
def explain_tells_what_the_layout_knows(server, node, _):
    shared(node, "t", "lease", "1h")
    publish(server, "t", "later", at=server.time() + 7200)
    publish(server, "t", "b", at=server.time() - 1)
    publish(server, "t", "a", at=server.time() - 2)

    def told(ident):
        return node("EXPLAIN", "t", ident, "REASON")[1], node("EXPLAIN", "t", ident)

    word, lines = told("later")
    assert word == b"time" and b"is scheduled: due at" in lines[-2], (word, lines)
    assert b"may have leased the timer until then" in lines[-1], lines
    word, lines = told("b")
    assert word == b"no worker" and b"1 timer of the topic is ahead." in lines[-1], (word, lines)
    token = claim_one(node, "t").token
    word, lines = told("a")
    assert word == b"leased" and b"a worker of Belfry has it for another" in lines[-2], lines
    node("PAUSE", "t")
    word, lines = told("b")
    assert word == b"topic paused", (word, lines)
    assert node("ACK", token) == 1
    refused("NOTFOUND", node, "EXPLAIN", "t", "a", naming="no timer 'a' in topic 't'")


@case
def a_full_server_lets_timers_go(server, node, _):
    shared(node)
    for i in range(3):
        publish(server, "t", str(i))
    server.redis("CONFIG", "SET", "maxmemory", "1")
    refused("FULL", node, "SCHEDULE", "t", "x")
    got = claim(node, "t", "COUNT", 3)
    assert len(got) == 3
    assert node("EXTEND", got[0].token, "1h") == 3600000
    assert node("ACK", got[0].token) == 1
    assert node("RELEASE", got[1].token, "IN", "0s") == 1
    assert node("FAIL", got[2].token, "DEAD")[0] == b"dead"
    assert node("CANCEL", "t", "1") == 1
    assert is_empty(server, "t")
    server.redis("CONFIG", "SET", "maxmemory", "0")
    node("SCHEDULE", "t", "x")


@case
def leases_leave_nothing(server, node, _):
    shared(node, "t", "lease", "1ms")
    for i in range(150):
        publish(server, "t", str(i))
    claim(node, "t", "COUNT", 150)
    until(lambda: node("PURGE", "t", "STATE", "ready") and not server.redis("EXISTS", keys("t")[0]))
    until(lambda: claim(node, "t") == [] and not server.redis("KEYS", "belfry:faststream-leases*"))
    assert server.redis("KEYS", "belfry:faststream-ends*") == []


if __name__ == "__main__":
    rig.run(CASES, *sys.argv[1:])
