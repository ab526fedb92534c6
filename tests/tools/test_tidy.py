#!/usr/bin/env python3
"""tools/tidy.py on small trees that have something wrong: each must be named.

    tests/tools/test_tidy.py tools/tidy.py
"""
import pathlib, re, subprocess, sys, tempfile

TIDY = pathlib.Path(sys.argv[1]).resolve()


def tidy(files, *options):
    """Runs tidy on a tree of these files. Returns whether it passed, and what it printed of it."""
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            path = pathlib.Path(root, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        # The cycles that the real tree still has are missing here, which is no error of the tree.
        script = pathlib.Path(root, "tidy.py")
        script.write_text(re.sub(r"^CYCLES = \{.*?\}", "CYCLES = {}", TIDY.read_text(),
                                 flags=re.M | re.S))
        done = subprocess.run([sys.executable, script, *options, root], capture_output=True,
                              text=True, check=False)
        return done.returncode == 0, done.stdout


def expect_error(files, text):
    passed, output = tidy(files)
    assert not passed and text in output, f"expected {text!r}, got:\n{output}"


def expect_tidy(files):
    passed, output = tidy(files)
    assert passed, output


def call(name, *called):
    """A function that calls others."""
    return f"void {name}(void)\n{{\n" + "".join(f"    {other}();\n" for other in called) + "}\n"


def an_include_that_follows_an_arrow_passes():
    expect_tidy({"src/store/log/log.c": '#include "store/io/io.h"\n#include "store/log/log.h"\n'
                                        '#include "core/list.h"\n#include "belfry/error.h"\n'})


def an_include_against_an_arrow_fails():
    expect_error({"src/core/list.c": '#include "store/store.h"\n'},
                 "src/core/list.c:1: src/core may not include store/store.h")
    expect_error({"src/session/session.c": '\n#include "server/loop.h"\n'},
                 "src/session/session.c:2: src/session may not include server/loop.h")
    expect_error({"src/session/session.c": '#include "belfry/engine.h"\n'},
                 "src/session may not include belfry/engine.h")


def a_folder_in_a_folder_is_a_layer_of_its_own():
    expect_error({"src/store/io/system.c": '#include "store/store.h"\n'},
                 "src/store/io may not include store/store.h")
    expect_error({"src/store/tree/lmdb.c": '#include "store/log/log.h"\n'},
                 "src/store/tree may not include store/log/log.h")
    expect_error({"src/core/clock.c": '#include "core/wheel/rack.h"\n'},
                 "src/core may not include core/wheel/rack.h")
    expect_error({"src/engine/engine.c": '#include "store/log/log.h"\n'},
                 "src/engine may not include store/log/log.h")


def an_unknown_folder_fails():
    expect_error({"src/store/cellar/x.c": ""}, "folder src/store/cellar is not in")
    expect_error({"src/cellar/x.c": ""}, "folder src/cellar is not in")


def a_link_list_is_the_list_of_arrows():
    library = "store_tree = static_library('store_tree',\n link_with: [%s],\n install: false)\n"
    expect_tidy({"src/store/tree/meson.build": library % "core, store_io"})
    expect_error({"src/store/tree/meson.build": library % "core, store_io, store_log"},
                 "store_tree may not link store_log")
    expect_error({"src/store/tree/meson.build": library % "core"},
                 "store_tree does not link store_io")
    expect_error({"src/store/tree/meson.build": "# nothing\n"}, "store_tree = static_library")


def files_that_call_each_other_fail():
    expect_tidy({"src/core/a.c": call("bel__a", "bel__b"), "src/core/b.c": call("bel__b")})
    expect_tidy({"src/core/a.c": call("bel__a", "bel__b"),
                 "src/core/b.c": call("bel__b") + "void (*const t)(void) = bel__a;\n"})
    circle = {"src/core/a.c": call("bel__a", "bel__b"), "src/core/b.c": call("bel__b", "bel__c"),
              "src/core/c.c": call("bel__c", "bel__a"), "src/core/d.c": call("bel__d", "bel__a")}
    expect_error(circle, "src/core:1: 3 files in call cycles, 0 are allowed")
    expect_error(circle, "src/core: call cycle: a.c b.c c.c")
    expect_tidy({"src/core/a.c": call("bel__a", "bel__b"),
                 "src/plan/b.c": call("bel__b", "bel__a")})


def sizes_and_banned_calls_fail():
    expect_error({"src/core/a.c": "x" * 101}, "line is over 100 columns")
    expect_error({"src/core/a.c": "{\n" + "\n" * 71 + "}\n"}, "function is over 70 lines")
    expect_error({"src/core/a.c": "\n" * 800}, "file is over 800 lines")
    expect_error({"src/core/a.c": "int x = rand();\n"}, "rand() is banned")


for case in (an_include_that_follows_an_arrow_passes, an_include_against_an_arrow_fails,
             a_folder_in_a_folder_is_a_layer_of_its_own, an_unknown_folder_fails,
             a_link_list_is_the_list_of_arrows, files_that_call_each_other_fail,
             sizes_and_banned_calls_fail):
    case()
    print("ok   " + case.__name__)
