#!/usr/bin/env python3
"""Builds the scripts with a fault that the judge must find: plant.py FAULT OUTPUT EMBED LUA..."""
import pathlib
import subprocess
import sys
import tempfile

# Name: file, what is there, what is put there.
FAULTS = {
    "ack_without_token": ("ack.lua", " and sub(entry, 1, SECRET_BYTES) == secret", ""),
    "cancel_that_forgets": ("cancel.lua", "        cancel_timer(id, r, state)\n    end\n    return 1",
                            "    end\n    return 1"),
    "claim_too_early": ("claim.lua", "'-inf', now_text, 'LIMIT'", "'-inf', now + 200, 'LIMIT'"),
    "claim_that_leaves": ("claim.lua", "    call('ZREM', PEND, unpack(members, 1, i - 1))\n", ""),
    "lease_lost_for_good": ("prelude.lua", "then return give_back(id, r, a) end",
                            "then return write_att(id, a) end"),
    "lease_too_short": ("claim.lua", "local usual_time = now + usual",
                        "local usual_time = now + math.floor(usual / 4)"),
    "ring_without_comparing": ("ring.lua", "if p.has_next == 0 or p.next ~= tonumber(ARGV[at + 2]) "
                               "then return 0 end", ""),
    "schedule_that_forgets": ("schedule.lua",
                              "    call('ZADD', PEND, unpack(members))\n",
                              "    if now % 16 > 0 then\n"
                              "        call('ZADD', PEND, unpack(members))\n"
                              "    end\n"),
}


def main(fault, output, embed, *sources):
    file, old, new = FAULTS[fault]
    with tempfile.TemporaryDirectory() as folder:
        copies = []
        for source in map(pathlib.Path, sources):
            text = source.read_text()
            if source.name == file and source.parent.name == "scripts":
                assert text.count(old) == 1, f"{fault}: {file} has no single {old!r}"
                text = text.replace(old, new)
            copies.append(pathlib.Path(folder, source.parent.name, source.name))
            copies[-1].parent.mkdir(exist_ok=True)
            copies[-1].write_text(text)
        subprocess.run([sys.executable, embed, output, *copies], check=True)


main(*sys.argv[1:])
