#!/usr/bin/env python3
"""The scripts of the Redis backend lose what they do not use, and nothing that they do use.

    test_shake.py SCRIPTS

SCRIPTS is the folder of embed.py and the Lua files.
"""
import os
import pathlib
import subprocess
import sys

FOLDER = pathlib.Path(sys.argv[1])
sys.dont_write_bytecode = True
sys.path.insert(0, str(FOLDER))
import shake  # noqa: E402

UPVALUES_MAX = 60  # of a function in Lua 5.1
RARE = """local function seldom() -- rare
    return helper()
end
local function seldom_too() -- rare
    return seldom()
end
"""


def shaken(text):
    return shake.shake(text)


def refused(text):
    try:
        shaken(text)
    except AssertionError as refusal:
        return str(refusal)
    return ""


def test_unused_functions_are_left_out():
    used = "local function c()\n    return 1\nend\nreturn c()\n"
    assert shaken("local function a()\n    return b\nend\n" + used) == used


def test_what_a_used_function_uses_stays():
    text = ("local t = {}\nlocal u = {}\nlocal function a()\n    return t\nend\n"
            "local function b()\n    return a()\nend\nreturn b()\n")
    assert shaken(text) == text.replace("local u = {}\n", "")


def test_a_function_that_is_declared_before_stays_whole():
    text = ("local late -- below\nlocal function a()\n    return late()\nend\n"
            "function late()\n    return 1\nend\nreturn ")
    assert shaken(text + "a()\n") == text.replace(" -- below", "") + "a()\n"
    assert shaken(text + "2\n") == "return 2\n"


def test_statements_and_variables_of_calls_stay():
    text = ("local t = {}\nlocal unused = write()\n"
            "if t.x then\n    write()\nelse\n    t.y = 1\nend\n")
    assert shaken(text) == text


def test_constants_are_put_where_they_are_used():
    text = ("local ONE, TWO = 1, 2\nlocal NONE = -1\nlocal NAME = 'a ONE' -- ONE\n"
            "return {ONE, t.TWO, TWO, 3 -NONE, NAME, 'NONE'}\n")
    assert shaken(text) == "return {1, t.TWO, 2, 3 -(-1), 'a ONE', 'NONE'}\n"
    assert "twice: ONE" in refused("local ONE = 1\nlocal ONE = 2\nreturn ONE\n")


def test_rare_functions_are_created_by_the_first_call():
    text = ("local function helper()\n    return 1\nend\n" + RARE +
            "local function often()\n    return x.seldom, seldom_too()\nend\nreturn often()\n")
    assert shaken(text) == (
        "local rares, rare\nfunction rare()\nif rares then return rares end\n"
        "local function helper()\n    return 1\nend\n" + RARE.replace(" -- rare", "") +
        "rares = {seldom_too = seldom_too}\nreturn rares\nend\n"
        "local function often()\n    return x.seldom, rare().seldom_too()\nend\nreturn often()\n")


def test_what_others_use_too_is_created_by_each_call():
    helper = "local function helper()\n    return 1\nend\n"
    text = shaken(helper + RARE + "return helper() + seldom()\n")
    assert text.startswith("local rares, rare\n" + helper + "function rare()\n")
    assert text.endswith("return helper() + rare().seldom()\n")


def test_rare_functions_are_only_called():
    assert "seldom is rare" in refused(RARE + "return {seldom}\n")
    assert "seldom is rare" in refused(RARE + "do\n    local seldom = 1\n    seldom()\nend\n")


def test_rare_functions_are_called_after_the_last_of_them():
    first, last = RARE.split("local function seldom_too")
    use = "if x then seldom() end\n"
    rest = "local function seldom_too" + last + "seldom_too()\n"
    function = "local function often()\n    return x\nend\n"
    text = shaken(first + use + function + rest.replace("seldom_too()\n", "often(seldom_too())\n"))
    assert text.index("function rare()") < text.index("if x then rare().seldom() end")
    assert "too early:\nif x then" in refused(first + use + "x = often()\n" + rest)


def test_what_only_rare_functions_use_is_left_to_them():
    helper = "local function helper()\n    return value, t, n, called\nend\n"
    values = ("local value = 2 + y\nlocal t = {a = tonumber(x)}\nlocal n = 1\n"
              "local called = x()\n")
    text = shaken(values + helper + RARE + "n = 2\nreturn seldom()\n")
    before, inside = text.split("function rare()")
    assert before == "local rares, rare\nlocal n = 1\nlocal called = x()\n"
    assert "local value = 2 + y\nlocal t = {a = tonumber(x)}\n" in inside


def scripts():
    for path in sorted(FOLDER.glob("**/*.lua")):
        if path.name != "prelude.lua" and path.name != "mark.lua":
            yield path, (path.parent / "prelude.lua").read_text() + path.read_text()


def test_the_scripts_have_all_that_they_use():
    for path, text in scripts():
        known = {name for each in shake.split(text) for name in each.defines}
        left = shake.split(shaken(text))
        inside = "\n".join(each.text for each in left if each.defines == {"rare"})
        outside = {name for each in left for name in each.defines}
        has = outside.copy()
        for line in inside.splitlines():
            has |= shake.Statement([line]).defines
        lost = {name for each in left for name in each.names} & known - has
        assert not lost, f"{path.name}: {', '.join(sorted(lost))} is left out and used"
        around = shake.names_of(inside) & outside
        assert len(around) <= UPVALUES_MAX, f"{path.name}: rare() uses {len(around)} variables"


def test_the_text_is_the_same_each_time():
    seeds = ["0", "1", "2"]
    texts = {subprocess.run([sys.executable, "-B", FOLDER / "embed.py", "/dev/stdout",
                             FOLDER / "prelude.lua", FOLDER / "schedule.lua", FOLDER / "ring.lua"],
                            env={**os.environ, "PYTHONHASHSEED": seed}, check=True,
                            stdout=subprocess.PIPE).stdout for seed in seeds}
    assert len(texts) == 1, "the text depends on the order of a set"


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
        print(f"ok   {name[5:].replace('_', ' ')}")
