#!/usr/bin/env python3
"""Checks that the engine and its store touch the world through their doors alone.

    tools/doors.py libengine.a libstore.a ...

What an object file does not define itself it asks of others: of Belfry (bel...), of the C
library's functions that compute and nothing else (ALLOWED), or of the system. The last is for
the files that are a door, or have a thread, and these are named here with what they may ask for.
"""
import re, subprocess, sys

ALLOWED = set("""
    memcpy memmove memset memcmp memchr memrchr bcmp strlen strncasecmp strcmp strchr strspn strerror_r
    malloc calloc realloc free aligned_alloc
    snprintf vsnprintf qsort bsearch
    pow floor ceil llround fabs
    __assert_fail __stack_chk_fail
    __memcpy_chk __memmove_chk __memset_chk __snprintf_chk __vsnprintf_chk
    _GLOBAL_OFFSET_TABLE_ __errno_location
""".split())

THREAD = r"pthread_\w+|sigfillset"
DOORS = {
    "store_io/system.c": r".*",          # files
    "store_io/view.c": r"f?stat(64)?",   # the same, to look at alone
    "store_tree/lmdb.c": r".*",          # LMDB
    "store_tree/pages.c": r"open(at)?(64)?|close|fstat(64)?|mmap(64)?|munmap", # LMDB's file
    "store_tree/prefetch.c": THREAD + r"|pread(64)?|posix_fadvise(64)?",
    "store_log/syncer.c": THREAD,
    "store_log/writer.c": THREAD,
    "store/backup.c": THREAD,
    "store/checkpoint.c": THREAD,
    "engine_offline/subprocess.c": r".*", # another process, for what may end this one
}


def undefined(archive):
    """Yields (file, symbol) of an archive."""
    text = subprocess.run(["nm", "-u", "-A", archive], capture_output=True, text=True, check=True)
    for line in text.stdout.splitlines():
        m = re.match(r"(.*?)(\S+?)\.o:\s+[Uuvw]\s+(\S+)$", line)
        if m:
            library = re.search(r"lib(\w+)\.a$", archive)[1]
            yield library + "/" + re.split(r"[:/]", m[2])[-1], m[3].split("@")[0]


wrong = set()
seen = set()
for archive in sys.argv[1:]:
    for file, symbol in undefined(archive):
        seen.add(file)
        if symbol.startswith("bel") or symbol in ALLOWED:
            continue
        if re.fullmatch(DOORS.get(file, "$^"), symbol):
            continue
        wrong.add(f"{file} asks for {symbol}, past the doors")
if len(seen) < 10:
    wrong.add(f"there are only {len(seen)} object files: is this the right library?")
print("\n".join(sorted(wrong)) or "ok   nothing_is_asked_past_the_doors")
sys.exit(1 if wrong else 0)
