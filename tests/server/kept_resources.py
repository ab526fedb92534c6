#!/usr/bin/env python3
"""A data directory of format 3, whose timers have resources that limited nothing: today's program
raises the format and limits them from its first start.

    kept_resources.py BELFRY ARCHIVE           checks
    kept_resources.py BELFRY ARCHIVE --write   writes the archive, with the program of commit 7cbc32b
"""
import json
import os
import shutil
import sys
import tarfile
import tempfile

from rig import Server, main

ARCHIVE = sys.argv[2]


def words(client, line):
    return client.ask(*line.split())


def pair(reply, name):
    return reply[reply.index(name) + 1]


def unpack():
    folder = tempfile.mkdtemp(prefix="belfry-test-")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder)
    with open(os.path.join(folder, "notes.json")) as file:
        notes = json.load(file)
    for path, size in notes["sizes"].items():
        os.truncate(os.path.join(folder, path), size)
    return folder, notes["token"]


def format_of(folder):
    with open(os.path.join(folder, "data/superblock"), "rb") as file:
        return int.from_bytes(file.read()[8:12], "little")


def test_old_timers_obey_limits_from_the_first_start():
    folder, token = unpack()
    assert format_of(folder) == 3
    with Server("--clock", "virtual", "--durability", "none", folder=folder) as server:
        assert format_of(folder) == 4
        with server.client() as client:
            db = words(client, "LIMIT db CONCURRENCY 1")
            assert pair(db, "running") == 1, db  # the lease of the earlier program
            words(client, "LIMIT api UNTIL 1m")
            assert [each[2] for each in words(client, "CLAIM t COUNT 9")] == ["plain"]
            assert client.ask("ACK", token) == 1
            assert [each[2] for each in words(client, "CLAIM t COUNT 9")] == ["db2"]
            words(client, "CLOCK ADVANCE 1m")
            ids = [each[2] for each in words(client, "CLAIM t COUNT 9")]
            assert "api1" in ids and "db3" not in ids, ids


def write():
    with Server("--clock", "virtual") as server:
        with server.client() as client:
            for name, resource in [("db1", "db"), ("db2", "db"), ("db3", "db/read"),
                                   ("api1", "api/search")]:
                client.ask("SCHEDULE", "t", "x", "ID", name, "RESOURCE", resource)
            client.ask("SCHEDULE", "t", "x", "ID", "plain")
            (delivery,) = client.ask("CLAIM", "t", "LEASE", "1h")
        server.kill()
        pack(server.folder, delivery[0])


def pack(folder, token):
    """Packs the data directory, without the zeros at the end of its log segments."""
    packed = os.path.join(folder, "packed")
    shutil.copytree(os.path.join(folder, "data"), os.path.join(packed, "data"))
    os.unlink(os.path.join(packed, "data/tree/lock.mdb"))
    notes = {"token": token, "sizes": {}}
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


def plain(info):
    info.uid = info.gid = info.mtime = 0
    info.uname = info.gname = ""
    return info


if sys.argv[3:] == ["--write"]:
    write()
else:
    main(globals())
