#!/usr/bin/env python3
"""Compiles every public header alone, every two together and all of them, as C11, C17 and C++17,
and links a C++ program with the library.

usage: headers.py SOURCE SHARED-LIBRARY C-COMPILER...

The C++ compiler is $CXX or c++; without one the cases of C++ are skipped.
"""
import itertools
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

SKIPPED = 77
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]

source = pathlib.Path(sys.argv[1])
library = pathlib.Path(sys.argv[2]).resolve()
cc = sys.argv[3:]
cxx = os.environ.get("CXX", "c++").split()
headers = sorted(path.name for path in (source / "include/belfry").glob("*.h"))


def compile_together(command, names):
    """Returns what a compiler says about a file that includes these headers in this order."""
    text = "".join(f'#include <belfry/{name}>\n' for name in names) + "extern int defined;\n"
    run = subprocess.run([*command, *WARNINGS, "-fsyntax-only", f"-I{source}/include", "-"],
                         input=text, capture_output=True, text=True)
    return "" if run.returncode == 0 else f"{' '.join(names)}: {run.stderr}"


def check(what, command):
    """Compiles all combinations with one compiler."""
    groups = [(name,) for name in headers] + list(itertools.combinations(headers, 2))
    groups += [headers, headers[::-1]]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        said = [text for text in pool.map(lambda names: compile_together(command, names), groups)
                if text]
    for text in said[:3]:
        print(text)
    print(f"{'FAILED' if said else 'ok  '} {what}: {len(groups)} combinations of headers compile")
    return not said


def check_umbrella():
    """belfry.h includes every other header."""
    text = (source / "include/belfry/belfry.h").read_text()
    missing = [name for name in headers if name != "belfry.h" and f'"belfry/{name}"' not in text]
    print(f"{'FAILED' if missing else 'ok  '} belfry.h includes all headers", *missing)
    return not missing


def check_link():
    """A C++ program links and runs."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "program"
        build = subprocess.run([*cxx, "-std=c++17", *WARNINGS, f"-I{source}/include",
                                source / "tests/headers/program.cpp", "-o", program, library,
                                f"-Wl,-rpath,{library.parent}"])
        is_good = build.returncode == 0 and subprocess.run([program]).returncode == 0
    print(f"{'ok  ' if is_good else 'FAILED'} a C++ program links and runs")
    return is_good


good = check_umbrella()
good &= check("C11", [*cc, "-std=c11", "-xc"])
good &= check("C17", [*cc, "-std=c17", "-xc"])
if shutil.which(cxx[0]):
    good &= check("C++17", [*cxx, "-std=c++17", "-xc++"])
    good &= check_link()
else:
    print(f"SKIPPED: no C++ compiler {cxx[0]}: the headers were not compiled as C++")
if not good:
    sys.exit(1)
sys.exit(0 if shutil.which(cxx[0]) else SKIPPED)
