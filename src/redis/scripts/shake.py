"""Leaves out of a script what it does not need. shake(text) returns the rest.

Redis runs the whole text of a script at each call: every function and table of the text is created
anew, and that takes more time than most calls do. Statements are told apart by their form: one
begins in the first column, what follows it is indented, and `end`, `else`, `}` or `)` in the first
column still belongs to it. Then,

- a top-level `local` of numbers and strings only, all named in capitals, is a constant: its values
  are put where it is used;
- a top-level function or other `local` stays if something that stays names it; all else stays, also
  a `local` that calls anything but functions of Lua, which change nothing;
- a function with the comment `-- rare` behind its head is not created by each call: these, and what
  only they use, are created by the first of them that is called; so is a variable that only they
  use and nothing assigns to, whose value is of things that do not change. A statement before the
  last of them that calls one comes after it, if only functions and values are between.

A name means the same everywhere in a script: no parameter or local variable is called like a
constant or a rare function. Rare functions are only called: they stand before a bracket.
"""
import re

TOKEN = re.compile(r"""(?P<string>'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")|(?P<comment>--[^\n]*)"""
                   r"|(?P<name>(?<![\w.])[A-Za-z_]\w*)")
FUNCTION = re.compile(r"(?:local )?function (\w+)\(")
LOCAL = re.compile(r"local ([\w, ]+?)\s*(?:=|$)", re.ASCII)
CONSTANT = re.compile(r"-?\d+|'(?:\\.|[^'\\])*'")
RARE = "-- rare"
PURE = re.compile(r"\b(?:tonumber|(?:string|math|struct)\.\w+)\(")


class Statement:
    def __init__(self, lines):
        self.text = replace("\n".join(lines), lambda name: name)
        function, variables = FUNCTION.match(self.text), LOCAL.match(self.text)
        self.is_rare = bool(function) and lines[0].endswith(RARE)
        self.is_function = bool(function)
        self.defines = set()
        self.names = names_of(self.text)
        if function:
            self.defines = {function[1]}
        elif variables:
            self.defines = set(re.split(r",\s*", variables[1]))
        self.names -= self.defines
        # What a call sets a variable to may be more than a value.
        calls = re.search(r"\w\(", PURE.sub("", self.text))
        self.acts = not function and (not variables or bool(calls))

    def constants(self):
        """The names and values of a statement that only defines constants; or nothing."""
        names, _, values = self.text.partition("=")
        names = re.split(r",\s*", names.removeprefix("local ").strip())
        values = re.split(r",\s*", values.strip())
        if not self.text.startswith("local ") or len(names) != len(values):
            return {}
        if not all(name.isupper() for name in names) or not all(map(CONSTANT.fullmatch, values)):
            return {}
        return {name: f"({value})" if value[0] == "-" else value
                for name, value in zip(names, values)}


def replace(text, name):
    """The text without comments, each name of a variable by name(it)."""
    def one(found):
        if found["comment"]:
            return ""
        return name(found["name"]) if found["name"] else found[0]

    lines = (line.rstrip() for line in TOKEN.sub(one, text).splitlines())
    return "\n".join(line for line in lines if line)


def names_of(text):
    return {found["name"] for found in TOKEN.finditer(text) if found["name"]}


def split(text):
    """The statements of a script."""
    groups = []
    for line in text.splitlines():
        if not line or line.startswith("--"):
            continue
        if re.match(r"[\s})]|(end|else|elseif)\b", line):
            groups[-1].append(line)
        else:
            groups.append([line])
    return [Statement(lines) for lines in groups]


def inline(statements):
    constants = {}
    for statement in statements:
        found = statement.constants()
        twice = constants.keys() & found
        assert not twice, f"constants are defined twice: {', '.join(sorted(twice))}"
        constants.update(found)
    left = [statement for statement in statements if not statement.constants()]
    for statement in left:
        both = statement.defines & constants.keys()
        assert not both, f"{', '.join(sorted(both))}: a constant and something else"
        statement.text = replace(statement.text, lambda name: constants.get(name, name))
        statement.names -= constants.keys()
    return left


def reach(statements, roots, through):
    """The statements that `roots` use, and what these use, unless through() says to stop."""
    found, queue = set(roots), list(roots)
    while queue:
        statement = queue.pop()
        for other in statements:
            if other not in found and other.defines & statement.names and through(other):
                found.add(other)
                queue.append(other)
    return found


def call_rare(statement, rare):
    """A statement that calls rare functions by way of the function that creates them."""
    for name in sorted(rare & statement.names):
        is_called = re.compile(rf"(?<![\w.]){name}\b(?!\()")
        assert not is_called.search(replace(statement.text, str)), \
            f"{name} is rare: it can only be called, in\n{statement.text}"
    return replace(statement.text, lambda name: f"rare().{name}" if name in rare else name)


def is_changed(statement, others):
    """Whether a variable that a statement defines is assigned again."""
    for name in statement.defines:
        assigned = re.compile(rf"(?<![\w.]){name}(\s*,\s*\w+)*\s*=(?!=)")
        for other in others:
            if other is not statement and any(assigned.search(line) and "local" not in line
                                              for line in other.text.splitlines()):
                return True
    return False


def divide(statements, rare):
    """The statements that stay, and those of them that only rare functions use; both in order."""
    is_often = lambda other: not other.defines & rare
    often = reach(statements, [each for each in statements if each.acts], is_often)
    used = reach(statements, often, lambda other: True)
    variables = {each for each in used if not each.is_function and is_changed(each, used)}
    often = reach(statements, often | variables, is_often)
    return ([each for each in statements if each in often],
            [each for each in statements if each in used - often])


def needs_rare(statement, often, rare):
    """Whether a statement calls a rare function, perhaps by way of others."""
    return any(other.names & rare for other in reach(often, [statement], lambda other: True))


def shake(text):
    statements = inline(split(text))
    rare = {name for each in statements if each.is_rare for name in each.defines}
    often, seldom = divide(statements, rare)
    if not seldom:
        return "".join(each.text + "\n" for each in often)
    place = statements.index(seldom[-1])
    before = [each for each in often if statements.index(each) < place]
    late = [each for each in before if each.acts and needs_rare(each, often, rare)]
    if late:
        after = [each for each in before[before.index(late[0]):] if each not in late]
        assert not any(each.acts for each in after), \
            f"needs a rare function too early:\n{late[0].text}"
    before = [each for each in before if each not in late]
    left = [each for each in often if each not in before]
    called = sorted(rare & {name for each in often for name in each.names})
    creation = ["function rare()", "if rares then return rares end"]
    creation += [each.text for each in seldom]
    creation += ["rares = {" + ", ".join(f"{name} = {name}" for name in called) + "}",
                 "return rares", "end"]
    return "\n".join(["local rares, rare"] + [call_rare(each, rare) for each in before] + creation +
                     [call_rare(each, rare) for each in left]) + "\n"
