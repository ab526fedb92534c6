#!/usr/bin/env python3
"""tests/sim/plant.py on a small source, and on edits that do not fit: each must be named.

    tests/tools/test_plant.py tests/sim/plant.py
"""
import pathlib, subprocess, sys, tempfile

PLANT = sys.argv[1]
SOURCE = "int one(void)\n{\n    return 1;\n}\n\nint two(void)\n{\n    return 2;\n}\n"
WRONG = "wrong: one is two\nin a.c\n-    return 1;\n+    return BUG ? 2 : 1;\n"


def plant(bugs, source=SOURCE):
    """Plants a list of bugs into a source, a.c. Returns the copy, or None, and the error."""
    with tempfile.TemporaryDirectory() as root:
        files = [pathlib.Path(root, name) for name in ("bugs.txt", "a.c", "copy.c")]
        files[0].write_text(bugs)
        files[1].write_text(source)
        done = subprocess.run([PLANT, files[0], files[1], "a.c", files[2]], capture_output=True,
                              text=True, check=False)
        assert (done.returncode == 0) == files[2].exists()
        return files[2].read_text() if files[2].exists() else None, done.stderr


def expect_error(bugs, *texts, source=SOURCE):
    copy, error = plant(bugs, source)
    assert copy is None, f"planted:\n{copy}"
    for text in texts:
        assert text in error, f"expected {text!r}, got:\n{error}"


def code(bugs, source=SOURCE):
    """Returns the lines of a copy without directives."""
    copy, error = plant(bugs, source)
    assert copy is not None, error
    return [line for line in copy.splitlines() if not line.startswith("#")]


def a_bug_is_planted_behind_its_switch():
    assert code(WRONG) == SOURCE.replace("1;", "has_bug(BUG_WRONG) ? 2 : 1;").splitlines()


def lines_that_stay_make_a_place_unique():
    twice = SOURCE.replace("2;", "1;")
    copy = code("wrong: one is two\nin a.c\n int one(void)\n {\n+    if (BUG) return 2;\n", twice)
    assert copy == twice.replace("{\n", "{\n    if (has_bug(BUG_WRONG)) return 2;\n", 1).splitlines()


def bugs_of_other_files_are_left_out():
    assert code(WRONG.replace("a.c", "b.c")) == SOURCE.splitlines()


def the_copy_keeps_the_line_numbers():
    copy, _ = plant("wrong: one is two\nin a.c\n {\n+    if (BUG) return 2;\n     return 1;\n")
    before, after = copy.splitlines()[-7:-5]
    assert before.startswith("#line 4 ") and before.endswith('a.c"') and after == "}", copy


def an_edit_whose_lines_are_missing_fails():
    expect_error(WRONG, "bugs.txt:3: bug wrong cannot be planted", "a.c has these lines 0 times",
                 "    return 1;", source=SOURCE.replace("1;", "3;"))


def an_edit_whose_lines_are_there_twice_fails():
    expect_error(WRONG, "bugs.txt:3: bug wrong cannot be planted", "a.c has these lines 2 times",
                 source=SOURCE.replace("2;", "1;"))


def edits_of_the_same_lines_fail():
    expect_error(WRONG + WRONG.replace("wrong", "worse"), "bug worse changes lines that another")


def a_list_that_cannot_be_read_fails():
    expect_error(WRONG + WRONG, "bugs.txt:5: a second bug wrong")
    expect_error("wrong: one is two\n", "bug wrong has no edit")
    expect_error("wrong: one is two\n-    return 1;\n", "bugs.txt:2: neither")
    expect_error("in a.c\n", "bugs.txt:1: neither")


def an_edit_that_cannot_be_switched_off_fails():
    expect_error(WRONG.replace("BUG ? 2 : 1", "2"), "bug wrong has an edit without the word BUG")


for case in (a_bug_is_planted_behind_its_switch, lines_that_stay_make_a_place_unique,
             bugs_of_other_files_are_left_out, the_copy_keeps_the_line_numbers,
             an_edit_whose_lines_are_missing_fails, an_edit_whose_lines_are_there_twice_fails,
             edits_of_the_same_lines_fail, a_list_that_cannot_be_read_fails,
             an_edit_that_cannot_be_switched_off_fails):
    case()
    print("ok   " + case.__name__)
