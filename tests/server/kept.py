#!/usr/bin/env python3
"""A data directory that an earlier version wrote: today's program gives the same answers.

    kept.py BELFRY ARCHIVE ANSWERS           compares
    kept.py BELFRY ARCHIVE ANSWERS --write   writes both files, with the program of commit 525019e
    kept.py BELFRY ARCHIVE ANSWERS --answers writes the answers of today's program

The clock is virtual, so the answers depend on nothing but the data. ANSWERS has what the earlier
program answered to questions and then, on a copy of its data, to commands that go on from there.
Where a rule changes, ANSWERS changes in the same commit, and the commit says why.
"""
import difflib
import json
import os
import re
import shlex
import shutil
import sys
import tarfile
import tempfile

from rig import Refusal, Server, main, run

ARCHIVE, ANSWERS = sys.argv[2:4]
START = 1830297600000  # 2028-01-01T00:00:00Z
TOPICS = ["deep", "ended", "expiring", "groups", "jobs", "legacy", "mail", "paused", "plans"]

ADDED = ["used"]  # fields of timers

# Commands that the earlier program was given. {topic/id} is the token of a delivery.
BEFORE = f"""
CLOCK SET {START}
CONFIGURE mail retention 1d retry '5s,30s,5m'
CONFIGURE jobs lease 1m crashes 2 retry 'exp(10s,2,1h) max(3)' misfire_after 5m
CONFIGURE ended retention 10d retention_dead 20d
CONFIGURE groups concurrency 4
CONFIGURE deep depth 5
CONFIGURE plans retention 1h
SCHEDULE mail 'no id' IN 10m
SCHEDULE mail 'no id either'
SCHEDULE mail x ID ready CORRELATION order-7 HEADER lang en HEADER empty ''
SCHEDULE mail '{'long ' * 400}' ID long IN 20m
SCHEDULE mail x ID at AT 2028-03-26T02:30[Europe/Berlin]
SCHEDULE mail x ID first IN 1h PRIORITY 0
SCHEDULE mail x ID last IN 1h PRIORITY 255
SCHEDULE mail x ID moved IN 1h
RESCHEDULE mail moved AT 2028-01-02T00:00:00Z
SCHEDULE legacy x ID retry-number RETRY 5
SCHEDULE legacy x ID retry-list RETRY 5000,30000 IN 1m
SCHEDULE legacy x ID resource RESOURCE database IN 2m
SCHEDULE legacy x ID headers HEADER belfry-plan fake HEADER belfry-nominal 7 HEADER belfry-own x IN 3m
SCHEDULE legacy x ID plan EVERY 1h RETRY 5 RESOURCE database HEADER belfry-own x COUNT 9
SCHEDULE jobs x ID lost LEASE 5s
CLAIM jobs
SCHEDULE jobs x ID failed
SCHEDULE jobs x ID killed
SCHEDULE jobs x ID released
SCHEDULE jobs x ID leased GROUP g
CLAIM jobs COUNT 4 WORKER first
FAIL {{jobs/failed}} REASON 'no route to host'
FAIL {{jobs/killed}} REASON 'not a job' DEAD
RELEASE {{jobs/released}} IN 30m
EXTEND {{jobs/leased}} 2h
CLOCK ADVANCE 5s
CLAIM jobs WORKER second LEASE 3h
SCHEDULE jobs x ID waits IN 1d
SCHEDULE jobs x ID limited
CLAIM jobs
FAIL {{jobs/limited}} KIND limited
SCHEDULE ended x ID done
CLAIM ended
ACK {{ended/done}} RESULT 'all went well'
SCHEDULE ended x ID cancelled IN 1h
CANCEL ended cancelled
SCHEDULE ended x ID expired EXPIRES 1s IN 1s
SCHEDULE ended x ID gone
CLAIM ended
FAIL {{ended/gone}} DEAD REASON 'cannot be'
SCHEDULE ended x ID revived
CLAIM ended
FAIL {{ended/revived}} DEAD
REVIVE ended revived
SCHEDULE expiring x ID ahead IN 1h EXPIRES 10m
SCHEDULE expiring x ID wall AT 2028-01-01T01:00:00Z EXPIRES 30m
SCHEDULE expiring x ID ready EXPIRES 2h
SCHEDULE expiring x ID noticed EXPIRES 10s
SCHEDULE expiring x ID retried EXPIRES 3h RETRY 1h,1h,1h
SCHEDULE expiring x ID given-back EXPIRES 20m
SCHEDULE expiring x ID leased EXPIRES 30m
CLAIM expiring COUNT 5
FAIL {{expiring/retried}}
RELEASE {{expiring/given-back}} IN 10h
RELEASE {{expiring/ready}}
RELEASE {{expiring/noticed}} IN 0
EXTEND {{expiring/leased}} 1h
SCHEDULE expiring x ID moved EXPIRES 1h IN 1h
RESCHEDULE expiring moved IN 5h
SCHEDULE expiring x ID each EVERY 1h EXPIRES 90m OVERLAP allow
SCHEDULE expiring x ID queue EVERY 10m EXPIRES 25m OVERLAP queue
SCHEDULE expiring x ID rests EVERY 30m MODE delay EXPIRES 5h
SCHEDULE groups x ID a1 GROUP a
SCHEDULE groups x ID a2 GROUP a
SCHEDULE groups x ID a3 GROUP a
SCHEDULE groups x ID b1 GROUP b
SCHEDULE groups x ID b2 GROUP b IN 1h
SCHEDULE groups x ID c1
CLAIM groups COUNT 2 LEASE 12h
SCHEDULE deep x ID one IN 1h
SCHEDULE deep x ID two IN 2h
SCHEDULE deep x ID three
SCHEDULE paused x ID waiting
SCHEDULE paused x ID later IN 1h
PAUSE paused
SCHEDULE plans x ID three EVERY 10m COUNT 3 OVERLAP allow
SCHEDULE plans x ID five EVERY 20m COUNT 5 OVERLAP skip
SCHEDULE plans x ID seven EVERY 20m COUNT 7 OVERLAP allow MISFIRE all
SCHEDULE plans x ID four EVERY 20m COUNT 4 OVERLAP queue MISFIRE last
SCHEDULE plans x ID daily CRON '30 2 * * *' TZ Europe/Berlin COUNT 100 GAP next FOLD both
SCHEDULE plans x ID weekly RRULE 'FREQ=WEEKLY;BYDAY=MO,WE' AT 2028-01-03T09:00:00Z COUNT 10
SCHEDULE plans x ID until EVERY 15m UNTIL 2028-01-01T02:00:00Z OVERLAP allow
SCHEDULE plans x ID spread CRON '@hourly' SPREAD 10m COUNT 50 OVERLAP allow
SCHEDULE plans x ID rests EVERY 40m MODE delay COUNT 6
SCHEDULE plans x ID hashed CRON 'H H * * *' TZ America/New_York MISFIRE last
CLOCK ADVANCE 65m
CLAIM plans COUNT 12
ACK {{plans/rests@1830300005000}}
CLOCK ADVANCE 20m
""".strip().splitlines()

# More of it, after a clean stop and a start, and before a kill: this is in the log only.
BEFORE_KILL = """
CLAIM plans COUNT 4 LEASE 2h
SCHEDULE deep x ID short EXPIRES 10m IN 1m
SCHEDULE deep x ID shorter EXPIRES 5m
SCHEDULE mail x ID last-words IN 3h HEADER k v
CLAIM mail LEASE 5h
CANCEL plans weekly
CLOCK ADVANCE 4m
""".strip().splitlines()

QUESTIONS = ["CLOCK", "TOPICS", *(f"TOPIC {topic}" for topic in TOPICS),
             *(f"LIST {topic} COUNT 1000" for topic in TOPICS),
             *(f"LIST {topic} STATE {state}" for topic in ["expiring", "plans", "ended"]
               for state in ["scheduled", "ready", "leased", "blocked", "dead", "expired"]),
             *(f"AGENDA TOPIC {topic}" for topic in TOPICS),
             "AGENDA", "AGENDA TO 2028-01-01T05:00:00Z STEP 7m TOPIC plans",
             "AGENDA FROM 2028-01-01 TO 2028-06-01 STEP 30d".replace("01-01 ", "01-01T00:00:00Z ")
             .replace("06-01 ", "06-01T00:00:00Z "),
             *(f"EXPLAIN {name}" for name in [
                 "mail ready", "mail at", "mail last-words", "legacy retry-number", "legacy plan",
                 "jobs failed", "jobs killed", "jobs lost", "jobs leased", "ended done",
                 "ended expired", "expiring wall", "expiring given-back", "expiring rests",
                 "groups a3", "deep one", "paused waiting", "plans three", "plans five",
                 "plans seven", "plans daily", "plans until", "plans spread", "plans rests"])]

# What goes on from there. Tokens of the earlier program are good.
AFTER = """
ACK {jobs/leased}
EXTEND {jobs/lost} 1h
GET jobs lost
CLAIM legacy
FAIL {legacy/retry-number} REASON again
CLOCK ADVANCE 5ms
CLAIM legacy
FAIL {legacy/retry-number} REASON 'and again'
GET legacy retry-number
CLOCK ADVANCE 10m
CLAIM legacy COUNT 10
ACK {legacy/headers}
ACK {legacy/resource}
SCHEDULE deep x ID six IN 1h
CLAIM mail COUNT 10
ACK {mail/ready}
REVIVE jobs *
CLAIM jobs COUNT 10
RESUME paused
CLAIM paused
ACK {paused/waiting}
CLAIM groups COUNT 10
ACK {groups/c1} {groups/b1}
CLAIM plans COUNT 100
CLOCK ADVANCE 30m
CLAIM expiring COUNT 100
CLAIM plans COUNT 100
CLOCK ADVANCE 6h
LIST expiring COUNT 1000
LIST plans COUNT 1000
CLAIM plans COUNT 1000
CLOCK ADVANCE 6h
LIST plans COUNT 1000
AGENDA
PURGE ended
PURGE expiring STATE expired
PURGE expiring
CLOCK ADVANCE 5d
TOPICS
LIST plans COUNT 1000
LIST jobs COUNT 1000
""".strip().splitlines()


class Talk:
    """Sends commands, keeps the tokens of deliveries by timer id, and shows replies as text."""

    def __init__(self, tokens):
        self.tokens = tokens

    def ask(self, client, line):
        words = [re.sub(r"^\{(.+)\}$", lambda m: self.tokens[m[1]], word)
                 for word in shlex.split(line)]
        try:
            reply = client.ask(*words)
        except Refusal as refusal:
            reply = "-" + str(refusal)
        if words[0] == "CLAIM":
            for delivery in reply:
                self.tokens[f"{delivery[1]}/{delivery[2]}"] = delivery[0]
                delivery[0] = "{token}"
        return reply


def without_added(value):
    """A reply without the fields that later versions have added to maps, which clients ignore."""
    if not isinstance(value, list):
        return value
    for name in ADDED:
        if name in value:
            at = value.index(name)
            value = value[:at] + value[at + 2:]
    return [without_added(each) for each in value]


def shown(line, reply):
    """A reply as text: each timer or step on a line of its own; of EXPLAIN, whose words may
    change, the times that it names."""
    reply = without_added(reply)
    rows = reply if isinstance(reply, list) else [reply]
    if line.startswith("LIST") and len(rows) == 2:
        rows = [rows[0], *rows[1]]
    elif line.startswith(("TOPIC ", "GET")):
        rows = [rows]
    elif line.startswith("AGENDA"):
        rows = [row for row in rows if row[1] > 0]
    elif line.startswith("EXPLAIN"):
        rows = re.findall(r"[-0-9]+T[:.0-9]+Z", " ".join(rows))
    return "".join([f"> {line}\n", *(json.dumps(row) + "\n" for row in rows)])


def answers(server, talk, lines):
    with server.client() as client:
        return "".join(shown(line, talk.ask(client, line)) for line in lines)


def exports(server):
    """What export prints of each topic."""
    text = ""
    for topic in TOPICS:
        status, out, err = run("export", topic, "--server", f"127.0.0.1:{server.port}")
        assert status == 0, err
        rows = (json.loads(row) for row in out.splitlines())
        rows = ({name: row[name] for name in row if name not in ADDED} for row in rows)
        text += f"> export {topic}\n" + "".join(json.dumps(row) + "\n" for row in rows)
    return text


def everything(server, talk):
    text = "# questions\n" + answers(server, talk, QUESTIONS) + "# export\n" + exports(server)
    return text + "# going on\n" + answers(server, talk, AFTER)


def unpack(folder):
    """Unpacks the archive into a folder. Returns the tokens that the earlier program gave out."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder)
    with open(os.path.join(folder, "notes.json")) as file:
        notes = json.load(file)
    for path, size in notes["sizes"].items():
        os.truncate(os.path.join(folder, path), size)
    return notes["tokens"]


def todays_answers():
    folder = tempfile.mkdtemp(prefix="belfry-test-")
    talk = Talk(unpack(folder))
    with Server("--clock", "virtual", "--durability", "none", folder=folder) as server:
        return everything(server, talk)


def test_the_answers_are_the_same():
    got = todays_answers()
    with open(ANSWERS) as file:
        want = file.read()
    if got != want:
        difference = difflib.unified_diff(want.splitlines(), got.splitlines(), "kept", "today",
                                          lineterm="", n=1)
        print("\n".join(line[:200] for line in list(difference)[:100]))
        raise AssertionError("the answers differ")


def test_older_programs_refuse_it_by_name():
    folder = tempfile.mkdtemp(prefix="belfry-test-")
    unpack(folder)
    superblock = os.path.join(folder, "data/superblock")
    assert format_of(superblock) == 2
    with Server("--clock", "virtual", "--durability", "none", folder=folder) as server:
        assert format_of(superblock) == 4
        server.kill()
        with open(superblock, "r+b") as file:  # what a later version would write
            head = bytearray(file.read())
            head[8] = 5
            head[60:64] = crc32c(head[:60]).to_bytes(4, "little")
            file.seek(0)
            file.write(head)
        status, _, err = run("serve", "--data", os.path.join(folder, "data"), "--resp",
                             "127.0.0.1:0", "--http", "none")
        assert status != 0 and "superblock has format 5; this build knows 2 to 4" in err, err


def format_of(path):
    with open(path, "rb") as file:
        return int.from_bytes(file.read()[8:12], "little")


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def test_a_kill_while_the_index_is_made():
    """Kills the first start again and again, a little later each time; the data stays good."""
    folder = tempfile.mkdtemp(prefix="belfry-test-")
    unpack(folder)
    with Server("--clock", "virtual", "--durability", "none", folder=folder) as server:
        for _ in range(3):
            server.kill()
            status, out, err = run("doctor", os.path.join(folder, "data"))
            assert status == 0, out + err
            server.start()
        with server.client() as client:
            topic = client.ask("TOPIC", "expiring")
            assert topic[topic.index("expired") + 1] == 10, topic


def write():
    """Makes the archive. A copy has its rows in the tree. What follows is in the log; the program
    is killed, so the log must be recovered."""
    talk = Talk({})
    with Server("--clock", "virtual") as server:
        data, copy = (os.path.join(server.folder, name) for name in ["data", "copy"])
        answers(server, talk, [*BEFORE, f"BACKUP {copy}"])
        assert server.stop() == 0
        shutil.rmtree(data)
        os.rename(copy, data)
        server.start()
        answers(server, talk, BEFORE_KILL)
        server.kill()
        pack(server.folder, talk.tokens)
        server.start()
        with open(ANSWERS, "w") as file:
            file.write(everything(server, talk))


def pack(folder, tokens):
    """Packs the data directory, without the zeros at the end of its log segments."""
    os.unlink(os.path.join(folder, "log"))
    packed = os.path.join(folder, "packed")
    shutil.copytree(os.path.join(folder, "data"), os.path.join(packed, "data"))
    os.unlink(os.path.join(packed, "data/tree/lock.mdb"))
    notes = {"tokens": tokens, "sizes": {}}
    for name in sorted(os.listdir(os.path.join(packed, "data"))):
        path = os.path.join(packed, "data", name)
        if name.startswith("log-"):
            notes["sizes"][f"data/{name}"] = os.path.getsize(path)
            with open(path, "rb") as file:
                used = file.read().rstrip(b"\0")
            os.truncate(path, len(used))
    with open(os.path.join(packed, "notes.json"), "w") as file:
        json.dump(notes, file)
    with tarfile.open(ARCHIVE, "w:xz", preset=9) as archive:
        for name in ["notes.json", "data"]:
            archive.add(os.path.join(packed, name), name, filter=plain)
    shutil.rmtree(packed)


def plain(info):
    info.uid = info.gid = info.mtime = 0
    info.uname = info.gname = ""
    return info


if sys.argv[4:] == ["--write"]:
    write()
elif sys.argv[4:] == ["--answers"]:
    with open(ANSWERS, "w") as answers_file:
        answers_file.write(todays_answers())
else:
    main(globals())
