#!/usr/bin/env python3
"""Checks that the engine and its store use the system only through their interfaces ("doors").

    tools/doors.py libengine.a libstore.a ...

An undefined symbol of an object file is a function of Belfry (bel...), a function of the C library
that only computes (ALLOWED), or one that uses the system. Only the files in DOORS, which implement
an interface to the system or have a thread, may use the last kind, each those listed for it. So the
simulator, which replaces the interfaces, controls all that the engine sees.
"""
import re, subprocess, sys

ALLOWED = set("""
    memcpy memmove memset memcmp memchr memrchr bcmp strlen strncasecmp strcmp strchr strspn strerror_r
    malloc calloc realloc free aligned_alloc
    snprintf vsnprintf qsort bsearch
    pow floor ceil llround fabs
    __assert_fail __stack_chk_fail __udivti3 __umodti3 __udivmodti4
    __memcpy_chk __memmove_chk __memset_chk __snprintf_chk __vsnprintf_chk
    _GLOBAL_OFFSET_TABLE_ __errno_location
""".split())

THREAD = r"pthread_\w+|sigfillset"
DOORS = {
    "store_io/system.c": r".*",          # files
    "store_io/view.c": r"f?stat(64)?",   # files, read only
    "store_tree/lmdb.c": r".*",          # LMDB
    "store_tree/pages.c": # the folder and the file of LMDB
        r"open(at)?(64)?|close|fstat(64)?|mmap(64)?|munmap|(fdopen|close)dir|readdir(64)?",
    "store_tree/prefetch.c": THREAD + r"|pread(64)?|posix_fadvise(64)?",
    "store_log/syncer.c": THREAD,
    "store_log/writer.c": THREAD,
    "store/backup.c": THREAD,
    "store/checkpoint.c": THREAD,
    "store_tree/map_fault.c": THREAD + r"|_exit|write|sig(action|altstack|emptyset)|raise",
    "store_tree/lookup.c": r"fstat(64)?",
    "store_tree/path_check.c": r"fstat(64)?",
    "store_tree/scrub.c": r"mdb_\w+", # LMDB, in the subprocess of the checker
    "engine_offline/checker.c": # runs as a subprocess of its own
        r"write|prctl|getppid|close_range|setpriority|setrlimit(64)?",
    "engine_offline/subprocess.c": r".*", # checks in a subprocess, which damage may crash
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
        wrong.add(f"{file} uses {symbol}, which tools/doors.py does not list for it")
if len(seen) < 10:
    wrong.add(f"there are only {len(seen)} object files: is this the right library?")
print("\n".join(sorted(wrong)) or "ok   the_system_is_used_only_through_interfaces")
sys.exit(1 if wrong else 0)
