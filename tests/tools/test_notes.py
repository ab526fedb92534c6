#!/usr/bin/env python3
"""Every object of the program carries the note of control-flow protection (IBT and shadow stack).

    test_notes.py BUILD

One object without the note takes it from everything that is linked with it. Debian 12's own crt1.o
has none, so the program has none either (docs/OPERATIONS.md); that must not hide an object of ours
that lacks it, e.g. one written in assembly.
"""
import pathlib
import subprocess
import sys

READ = ["readelf", "--notes", "--wide"]


def has_note(path):
    text = subprocess.run(READ + [path], capture_output=True, text=True, check=True).stdout
    return any("IBT" in line and "SHSTK" in line for line in text.splitlines())


def main():
    build = pathlib.Path(sys.argv[1])
    objects = sorted((build / "src").rglob("*.o")) + sorted((build / "belfry.p").rglob("*.o"))
    assert len(objects) > 200, f"only {len(objects)} objects in {build}"
    without = [str(path.relative_to(build)) for path in objects if not has_note(path)]
    assert not without, f"no note of IBT and SHSTK in: {' '.join(without)}"
    print(f"ok   {len(objects)} objects carry the note of control-flow protection")


main()
