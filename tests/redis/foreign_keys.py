#!/usr/bin/env python3
"""Keys of another program where those of a topic should be: foreign_keys.py NODE [CASE].

A script has no way back, so it must look before its first change. Every key of a topic is replaced
by one of another type, for every command: a command that fails has changed nothing, and the key of
the other program stays as it is.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).with_name("faststream")))
import rig  # noqa: E402

CASES = []
TEXT = b"theirs"


def case(function):
    CASES.append(function)
    return function


class Keys:
    """All keys of a server, as they are now and as they were."""

    def __init__(self, server):
        self.redis = server.redis
        self.dumps = {key: self.redis("DUMP", key) for key in self.redis("KEYS", "*")}

    def replace(self, key):
        for name in set(self.redis("KEYS", "*")) - self.dumps.keys():
            self.redis("DEL", name)
        for name, dump in self.dumps.items():
            self.redis("RESTORE", name, 0, dump, "REPLACE")
        self.redis("SET", key, TEXT)

    def value(self, key):
        kind = self.redis("TYPE", key)
        if kind == b"zset":
            return self.redis("ZRANGE", key, 0, -1, "WITHSCORES")
        if kind == b"hash":
            flat = self.redis("HGETALL", key)
            return sorted(zip(flat[::2], flat[1::2]))
        return self.redis("SMEMBERS" if kind == b"set" else "GET", key)

    def values(self):
        return {key: self.value(key) for key in self.redis("KEYS", "*")}


def leave_alone(server, node, part, commands):
    """Checks all commands with each of the keys that have a part in their names."""
    keys = Keys(server)
    failures = 0
    for key in sorted(key for key in keys.dumps if part in key):
        for command in commands:
            keys.replace(key)
            before = keys.values()
            try:
                node(*command)
            except rig.Error as error:
                after = keys.values()
                changed = [name for name in before if after.get(name) != before[name]]
                assert "WRONGTYPE" in str(error), (key, command, error)
                assert after == before, (key, command, "has changed", changed)
                failures += 1
            assert keys.value(key) == TEXT, (key, command)
    assert failures > len(keys.dumps), "hardly a command has failed"


def claim(node, topic, count, lease="1h"):
    return [fields[0] for fields in node("CLAIM", topic, "COUNT", count, "LEASE", lease)]


def fill(node, topic):
    """Timers in every state. Returns the token of a live lease."""
    for i in range(2):
        node("SCHEDULE", topic, "x", "ID", f"later-{i}", "IN", "1h", "EXPIRES", "2h")
    for i in range(6):
        node("SCHEDULE", topic, "x", "ID", f"due-{i}", "RETRY", "max(3)")
    node("SCHEDULE", topic, "x", "ID", "plan", "EVERY", "1h")
    tokens = claim(node, topic, 4)
    node("ACK", tokens[0])
    node("FAIL", tokens[1], "DEAD")
    node("FAIL", tokens[2], "IN", "5h")
    return tokens[3]


def commands_of(topic, token):
    return [
        ("SCHEDULE", topic, "y", "ID", "new", "IN", "1h"),
        ("SCHEDULE", topic, "y", "ID", "new", "EXPIRES", "1h", "RETRY", "max(2)"),
        ("SCHEDULE", topic, "y", "ID", "later-0"),
        ("SCHEDULE", topic, "y", "ID", "due-0", "IN", "1h", "CONFLICT", "earliest"),
        ("SCHEDULE", topic, "y", "ID", "other", "EVERY", "10s"),
        ("CLAIM", topic, "COUNT", 3), ("ACK", token), ("FAIL", token), ("FAIL", token, "DEAD"),
        ("RELEASE", token), ("RELEASE", token, "IN", "1h"), ("EXTEND", token),
        ("CANCEL", topic, "later-1"), ("CANCEL", topic, "plan"),
        ("RESCHEDULE", topic, "later-1", "IN", "3h"), ("RESCHEDULE", topic, "plan", "IN", "3h"),
        ("REVIVE", topic, "due-1"), ("REVIVE", topic, "*"),
        ("PURGE", topic), ("PURGE", topic, "STATE", "scheduled"), ("PURGE", topic, "STATE", "ready"),
        ("GET", topic, "later-0"), ("LIST", topic), ("TOPIC", topic), ("EXPLAIN", topic, "later-0"),
        ("AGENDA", "TOPIC", topic),
    ]


@case
def a_topic_that_deletes_what_is_done(server, _, stack):
    node = rig.new_node(stack, server, "belfry", "still")
    token = fill(node, "mail")
    leave_alone(server, node, b"{belfry:mail:", commands_of("mail", token))


@case
def a_topic_that_keeps_what_is_done(server, _, stack):
    node = rig.new_node(stack, server, "belfry", "still")
    node("CONFIGURE", "mail", "retention", "1h")
    token = fill(node, "mail")
    leave_alone(server, node, b"{belfry:mail:", commands_of("mail", token))


@case
def a_topic_in_which_something_is_past(server, _, stack):
    """A lease, an expiry and a retention have ended, and whichever command comes next ends them."""
    node = rig.new_node(stack, server, "belfry", "still")
    node("CONFIGURE", "mail", "retention", "1h")
    token = fill(node, "mail")
    for name in ("pend", "exp", "lease", "done"):
        key = "{belfry:mail:0}:" + name
        for member in server.redis("ZRANGE", key, 0, 0):
            server.redis("ZADD", key, "XX", 1, member)
    server.redis("HSET", "{belfry:mail:0}:cfg", "calm", 0)
    leave_alone(server, node, b"{belfry:mail:", commands_of("mail", token))


@case
def a_topic_of_the_other_layout(server, node, _):
    node("CONFIGURE", "mail", "layout", "faststream")
    for i in range(4):
        node("SCHEDULE", "mail", "x", "ID", f"due-{i}")
    node("SCHEDULE", "mail", "x", "ID", "later-0", "IN", "1h")
    token = claim(node, "mail", 1)[0]
    leave_alone(server, node, b"mail", [
        ("SCHEDULE", "mail", "y", "ID", "new", "IN", "1h"), ("SCHEDULE", "mail", "y", "ID", "due-1"),
        ("CLAIM", "mail", "COUNT", 2), ("ACK", token), ("FAIL", token), ("FAIL", token, "IN", "1s"),
        ("RELEASE", token, "IN", "1h"), ("EXTEND", token), ("CANCEL", "mail", "later-0"),
        ("RESCHEDULE", "mail", "later-0", "IN", "3h"), ("PURGE", "mail"),
        ("PURGE", "mail", "STATE", "scheduled"), ("GET", "mail", "later-0"), ("LIST", "mail"),
        ("TOPIC", "mail")])


if __name__ == "__main__":
    rig.run(CASES, *sys.argv[1:])
