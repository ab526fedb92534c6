#!/usr/bin/env python3
"""Checks the manual pages: layout, that nothing is missing, and that examples print what they say.

    manual.py SOURCE BELFRY LIBRARY COMPILER ...
"""
import pathlib, re, shutil, subprocess, sys, tempfile, time

source, belfry, library = (pathlib.Path(arg).resolve() for arg in sys.argv[1:4])
compiler = sys.argv[4:]
pages = sorted((source / "docs/man").glob("*.[13]"))
room = tempfile.TemporaryDirectory()
REDIS = "redis://127.0.0.1"  # in an example; replaced by that of a server of the test


def fail(text):
    print("FAILED " + text, file=sys.stderr)
    sys.exit(1)


def ok(name):
    print("ok   " + name, flush=True)


def run(command, **more):
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **more)


def check_layout():
    """No page that the formatters complain of."""
    for page in pages:
        if shutil.which("groff"):
            got = run(["groff", "-mdoc", "-ww", "-Tutf8", "-rLL=100n", str(page)])
            if got.returncode or got.stderr:
                fail(f"groff: {got.stderr}")
        if shutil.which("mandoc"):
            got = run(["mandoc", "-Tlint", "-Wwarning", str(page)])
            if got.returncode:
                fail(f"mandoc: {got.stdout}")
    ok("every_page_is_well_formed")


def names_of(page):
    return re.findall(r"^\.Nm (bel_\w+)(?: ,)?$", page.read_text(), re.M)


def check_functions():
    """Every function of a public header is in the NAME and SYNOPSIS of a page, and no other."""
    declared = set()
    for header in (source / "include/belfry").glob("*.h"):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        text = re.sub(r"\btypedef\b[^;]*;", "", text)
        declared |= set(re.findall(r"(?<![*\w])\*?(bel_\w+)\(", text))
    named = {name: page for page in pages for name in names_of(page)}
    for name in sorted(declared - set(named)):
        fail(f"no page for {name}()")
    for name, page in sorted(named.items()):
        if name not in declared:
            fail(f"{page.name} has {name}(), which no header has")
        if not re.search(rf"^\.F[no] {name}\b", page.read_text(), re.M):
            fail(f"{page.name} does not show how {name}() is called")
    ok("every_function_has_a_page")


def check_installed():
    listed = (source / "docs/man/meson.build").read_text()
    for page in pages:
        if f"'{page.name}'" not in listed:
            fail(f"{page.name} is not installed")
    ok("every_page_is_installed")


def check_references():
    """What is ours and is referred to exists."""
    names = {page.name for page in pages}
    for page in pages:
        for name, section in re.findall(r"^\.Xr (bel\w*) (\d)", page.read_text(), re.M):
            if f"{name}.{section}" not in names:
                fail(f"{page.name} refers to {name}({section})")
    ok("every_reference_leads_somewhere")


def check_verbs():
    """Every verb that the program knows is in its page."""
    text = (source / "docs/man/belfry.1").read_text()
    verbs = re.findall(r"^    (\w+) ", run([str(belfry), "help"]).stdout, re.M)
    if len(verbs) < 20:
        fail(f"belfry help lists only {verbs}")
    for verb in verbs:
        if not re.search(rf"^\.It Cm {verb}\b|^\.It .*, Cm {verb}\b", text, re.M):
            fail(f"belfry.1 does not tell of {verb}")
    ok("every_verb_is_told_of")


def literals(page):
    """The literal blocks of a page's EXAMPLES, as they are printed."""
    text = page.read_text().split(".Sh EXAMPLES\n", 1)
    blocks = re.findall(r"^\.Bd -literal.*\n((?:(?!\.Ed).*\n)*)", text[1] if len(text) == 2 else "", re.M)
    return [re.sub(r"^\\&", "", b, flags=re.M).replace("\\e", "\\").replace("\\-", "-") for b in blocks]


def start_server():
    ports = pathlib.Path(room.name) / "ports"
    server = subprocess.Popen([str(belfry), "serve", "--store", "memory", "--resp", "127.0.0.1:0",
                               "--http", "none", "--port-file", str(ports)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 30
    while not (ports.exists() and re.search(r"resp (\d+)\n", ports.read_text())):
        if time.monotonic() > end or server.poll() is not None:
            fail("the server does not start")
        time.sleep(0.02)
    return server, "127.0.0.1:" + re.search(r"resp (\d+)\n", ports.read_text())[1]


def start_redis():
    """Returns a server of Redis and its URL; or None where there is none."""
    socket = pathlib.Path(room.name) / "redis"
    if not shutil.which("redis-server"):
        return None, REDIS
    server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", str(socket), "--save",
                               "", "--dir", room.name], stdout=subprocess.DEVNULL)
    return server, f"unix://{socket}"  # the example waits for it


def check_example(page, text, wanted, address):
    file, program = pathlib.Path(room.name) / "example.c", pathlib.Path(room.name) / "example"
    redis, url = start_redis() if REDIS in text else (None, REDIS)
    file.write_text(text.replace("127.0.0.1:7878", address).replace(REDIS, url))
    try:
        check_program(page, file, program, wanted, is_run=REDIS not in text or redis is not None)
    finally:
        if redis is not None:
            redis.kill()
            redis.wait()


def check_program(page, file, program, wanted, is_run):
    built = run(compiler + ["-std=c17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror",
                            f"-I{source}/include", str(file), "-o", str(program), str(library),
                            f"-Wl,-rpath,{library.parent}", "-pthread"])
    if built.returncode:
        fail(f"{page.name}: {built.stderr}")
    if not is_run:
        print(f"SKIPPED: the example of {page.name}: there is no redis-server")
        return
    ran = run([str(program)], cwd=room.name)
    if ran.returncode or (wanted is not None and ran.stdout != wanted):
        fail(f"{page.name}: exits with {ran.returncode}, prints\n{ran.stdout}{ran.stderr}")


def check_examples():
    """Every program in a page compiles and prints the block behind it."""
    server, address = start_server()
    try:
        for page in (p for p in pages if p.suffix == ".3"):
            blocks = literals(page)
            programs = [i for i, block in enumerate(blocks) if "int main(" in block]
            if not programs:
                fail(f"{page.name} has no example")
            for i in programs:
                follows = i + 1 < len(blocks) and i + 1 not in programs
                check_example(page, blocks[i], blocks[i + 1] if follows else None, address)
            ok(f"the_examples_of_{page.stem}_are_true")
    finally:
        server.terminate()
        server.wait()


check_layout()
check_functions()
check_installed()
check_references()
check_verbs()
check_examples()
