#!/usr/bin/env python3
"""Prints the tests of a build that depend on changed files.

    tools/affected.py BUILD FILE ...    first line: targets for ninja, then names of tests, one per line

A test is affected if its program, another program it runs, or a script, folder or file among its
arguments is a changed file or is built from one. ninja knows these dependencies, headers included, from
the last build of BUILD. A file that neither ninja nor a test names, such as a module shared by
scripts, affects the tests whose scripts are in the same folder. A changed meson.build
affects every test.
"""
import collections
import json
import os
import re
import subprocess
import sys


def ninja(build, *arguments):
    return subprocess.run(["ninja", "-C", build, *arguments], capture_output=True, text=True,
                          check=True).stdout


def read_products(build):
    """Returns the outputs that are built directly from each file, as absolute paths."""
    products = collections.defaultdict(set)

    def absolute(path):
        return os.path.normpath(os.path.join(os.path.abspath(build), path))

    def words(text):
        escaped = re.split(r"(?<!\$) +", text.strip())
        return [absolute(re.sub(r"\$(.)", r"\1", word)) for word in escaped
                if word not in ("", "|", "||")]

    with open(os.path.join(build, "build.ninja"), encoding="utf-8") as file:
        for line in file:
            if not line.startswith("build "):
                continue
            outputs, inputs = re.split(r"(?<!\$): ", line[len("build "):].rstrip("\n"), maxsplit=1)
            for path in words(inputs.partition(" ")[2]):
                products[path].update(words(outputs))
    product = None
    for line in ninja(build, "-t", "deps").splitlines():
        if line.startswith(" "):
            products[absolute(line.strip())].add(product)
        elif line:
            product = absolute(line.partition(": #deps")[0])
    return products


def all_products(products, changed):
    seen, todo = set(changed), list(changed)
    while todo:
        for path in products.get(todo.pop(), set()) - seen:
            seen.add(path)
            todo.append(path)
    return seen


def files_of(test, build):
    """The files and folders among a test's program and arguments, but not the whole project."""
    for word in test["cmd"]:
        path = os.path.normpath(os.path.join(os.path.abspath(build), word))
        if os.path.sep in word and path != os.getcwd():
            yield path


def is_affected(test, build, stale):
    files = list(files_of(test, build))
    return any(path in stale or any(s.startswith(path + os.path.sep) for s in stale)
               for path in files)


def main():
    build, changed = sys.argv[1], {os.path.abspath(path) for path in sys.argv[2:]}
    tests = json.loads(subprocess.run(["meson", "introspect", "--tests", build],
                                      capture_output=True, text=True, check=True).stdout)
    products = read_products(build)
    stale = all_products(products, changed)
    named = {path for test in tests for path in files_of(test, build)}
    # A file that nothing names affects the tests in its folder.
    for path in changed - set(products) - named:
        stale |= {other for other in named if os.path.dirname(other) == os.path.dirname(path)}
    is_all = any(os.path.basename(path) in ("meson.build", "meson_options.txt") for path in changed)
    affected = [test for test in tests if is_all or is_affected(test, build, stale)]
    targets = {os.path.relpath(path, build) for test in affected for path in files_of(test, build)}
    made = {line.partition(":")[0] for line in ninja(build, "-t", "targets", "all").splitlines()}
    print(*sorted(targets & made))
    for name in sorted({test["name"] for test in affected}):
        print(name)


main()
