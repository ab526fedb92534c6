#!/usr/bin/env python3
"""Compares the map in docs/ARCHITECTURE.md, and the names in PROMISES.md and WALK.md, with the source.

    map.py SOURCE

Every entry of the tree exists; every folder under src and tests, every top-level folder and every
public header is in the map; and the table of layers is LAYERS of tools/tidy.py. Every file, test
and function that a promise names exists, and every function of a walk is in the file it names.
"""
import ast, pathlib, re, subprocess, sys

source = pathlib.Path(sys.argv[1]).resolve()
text = (source / "docs/ARCHITECTURE.md").read_text()


def fail(what):
    print("FAILED docs/" + what, file=sys.stderr)
    sys.exit(1)


def ok(name):
    print("ok   " + name, flush=True)


def section(title):
    m = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    return m[1] if m else fail(f"ARCHITECTURE.md: no section '{title}'")


def tree():
    """The folders that the tree names, as paths: an entry belongs to the one above, two columns out."""
    block = re.search(r"^```\n(.*?)^```", section("The tree"), re.M | re.S)[1]
    paths, parents = set(), []
    for line in block.splitlines():
        m = re.match(r"( *)([\w.-]+)/ +\S", line)
        if m is None or len(m[1]) > 8:
            continue                        # the description goes on
        parents = parents[:len(m[1]) // 2] + [m[2]]
        paths.add("/".join(parents))
    return paths


def folders():
    """The folders that the map must name: those that have files of the source in them."""
    names = subprocess.run(["git", "-C", str(source), "ls-files"], capture_output=True, text=True)
    if names.returncode == 0:
        files = [pathlib.PurePath(name) for name in names.stdout.split()]
    else:                                   # an unpacked archive
        files = [path.relative_to(source) for path in source.rglob("*")
                 if path.is_file() and not path.relative_to(source).parts[0].startswith((".", "build"))]
    found = set()
    for file in files:
        top = file.parts[0]
        depth = {"src": 9, "tests": 2}.get(top, 1)
        found |= {"/".join(file.parts[:n]) for n in range(1, min(depth, len(file.parts) - 1) + 1)}
    return found


def check_tree():
    named = tree()
    for path in sorted(named):
        if not (source / path).is_dir():
            fail(f"ARCHITECTURE.md: the tree has {path}/, which does not exist")
    for path in sorted(folders() - named):
        fail(f"ARCHITECTURE.md: the tree does not have {path}/")
    block = re.search(r"^```\n(.*?)^```", section("The tree"), re.M | re.S)[1]
    tools = {path.name for path in (source / "tools").glob("*.py")}
    named = set(re.findall(r"\b\w+\.py\b", block))
    for name in sorted(tools ^ named):
        fail(f"ARCHITECTURE.md: tools/{name} is in the tree or in the source, not in both")
    ok("the_tree_is_that_of_the_source")


def check_headers():
    table = re.search(r"^The public headers.*?\n\n(.*?)\n\n", text, re.M | re.S)[1]
    named = set(re.findall(r"`(\w+)`", table))
    there = {path.stem for path in (source / "include/belfry").glob("*.h")}
    if named != there:
        fail(f"ARCHITECTURE.md: public headers: {', '.join(sorted(named ^ there))} on one side only")
    ok("every_public_header_is_named")


def check_layers():
    tidy = (source / "tools/tidy.py").read_text()
    layers = ast.literal_eval(re.search(r"^LAYERS = (\{.*?^\})", tidy, re.M | re.S)[1])
    rows = re.findall(r"^\| `([\w/]+)` \| ([^|]+) \| (yes|no) \|", section("Layers and arrows"), re.M)
    shown = {name: [] if uses == "libc" else uses.split(", ") for name, uses, _ in rows}
    for name in sorted(set(layers) | set(shown)):
        if sorted(layers.get(name, ["-"])) != sorted(shown.get(name, ["-"])):
            fail(f"ARCHITECTURE.md: the layer {name} has other arrows than in tools/tidy.py")
    for name, _, exists in rows:
        if (exists == "yes") != (source / "src" / name).is_dir():
            fail(f"ARCHITECTURE.md: the layer {name} does not exist, or does")
    ok("the_table_of_layers_is_that_of_tidy")


def check_promises():
    sources = [path for folder in ("src", "include", "tests", "bench")
               for path in (source / folder).rglob("*.[ch]")]
    files = {path.name for path in sources}
    words = set(re.findall(r"\b\w+(?=\()", "\n".join(path.read_text() for path in sources)))
    for name in sorted(set(re.findall(r"`([^`]+)`", (source / "docs/PROMISES.md").read_text()))):
        if name.startswith(("tests/", "src/")):
            there = (source / name).exists()
        elif re.fullmatch(r"(test|prop|fuzz|inter)_\w+", name):
            there = name + ".c" in files
        elif re.fullmatch(r"\w+\.[ch]", name):
            there = name in files
        elif re.fullmatch(r"\w+\(\)", name):
            there = name[:-2] in words
        else:
            continue                        # an option, a command of script/bench, a constant
        if not there:
            fail(f"PROMISES.md names {name}, which does not exist")
    ok("what_the_promises_name_exists")


def check_walk():
    steps = re.findall(r"^\| `([^`]+\.c)` \| ([^|]+) \|", (source / "docs/WALK.md").read_text(), re.M)
    if not steps:
        fail("WALK.md has no steps")
    functions = {(file, name) for file, names in steps for name in re.findall(r"`(\w+)\(\)`", names)}
    for file, name in sorted(functions):
        path = source / "src" / file
        code = path.read_text() if path.exists() else ""
        if not re.search(rf"^[a-z][^\n;]*\b{name}\(", code, re.M):
            fail(f"WALK.md: src/{file} has no function {name}()")
    count = f"{len(functions)} functions in {len({file for file, _ in functions})} files"
    if count not in (source / "docs/WALK.md").read_text():
        fail(f"WALK.md: the walk has {count}")
    ok("a_walk_names_functions_that_exist")


def check_file_map(header):
    """The opening comment of a header that maps its folder names every source there, and no other."""
    path = source / "src" / header
    comment = re.search(r"/\*\n.*?\*/", path.read_text(), re.S)[0]
    drawing = "\n".join(line for line in comment.splitlines() if line.startswith(" *     "))
    for file in sorted(path.parent.glob("*.c")):
        if not re.search(rf"\b{file.stem}\b", drawing):
            fail(f"../src/{header}: its map does not name {file.name}")
    for name in re.findall(r"\b(\w+)\.c\b", drawing):
        if not (path.parent / f"{name}.c").exists():
            fail(f"../src/{header}: its map names {name}.c, which does not exist")


check_tree()
check_headers()
check_layers()
check_promises()
check_walk()
check_file_map("engine/engine.h")
check_file_map("engine/state/state.h")
ok("the_maps_of_the_engine_name_its_files")
