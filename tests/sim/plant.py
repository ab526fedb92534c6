#!/usr/bin/env python3
"""Plants the bugs of a list into a copy of a source.

    plant.py LIST SOURCE FILE OUT    copies SOURCE, which LIST calls FILE, to OUT with its bugs
    plant.py LIST OUT                writes a header that names all bugs

The first lines of bugs.txt tell the format of a list. Fails if an edit does not fit its file: a bug
must not disappear when the source is changed.
"""
import dataclasses
import os
import pathlib
import re
import sys

SWITCH = re.compile(r"\bBUG\b")


@dataclasses.dataclass
class Edit:
    """One change of one file."""
    bug: str
    file: str
    line: int  # where its lines begin in the list
    old: list = dataclasses.field(default_factory=list)
    new: list = dataclasses.field(default_factory=list)


def read_bugs(path):
    """Returns the names of the bugs, and their edits."""
    names, edits = [], []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        where = f"{path}:{number}"
        if not line or line.startswith("#"):
            continue
        if name := re.match(r"([a-z_]+): ", line):
            if name[1] in names:
                sys.exit(f"{where}: a second bug {name[1]}")
            names.append(name[1])
        elif line.startswith("in ") and names:
            edits.append(Edit(names[-1], line[3:], number + 1))
        elif line[0] in " -+" and edits and edits[-1].bug == names[-1]:
            if line[0] in " -":
                edits[-1].old.append(line[1:])
            if line[0] in " +":
                edits[-1].new.append(line[1:])
        else:
            sys.exit(f"{where}: neither a bug, nor a file, nor a line of an edit: {line}")
    for name in set(names) - {edit.bug for edit in edits}:
        sys.exit(f"{path}: bug {name} has no edit")
    for edit in edits:
        if not any(SWITCH.search(line) for line in edit.new):
            sys.exit(f"{path}:{edit.line}: bug {edit.bug} has an edit without the word BUG, which"
                     " cannot be switched off")
    return names, edits


def find(edit, lines, path, source):
    """Returns where the old lines of an edit begin, which they must do once."""
    count = len(edit.old)
    found = [i for i in range(len(lines)) if lines[i:i + count] == edit.old] if count else []
    if len(found) == 1:
        return found[0]
    old = "\n".join(edit.old)
    advice = ("Add lines that stay, until the place is unique." if found else
              "The source has changed: write the edit anew, for the file that has the place now.")
    sys.exit(f"{path}:{edit.line}: bug {edit.bug} cannot be planted, because {source} has these"
             f" lines {len(found)} times instead of once:\n{old}\n{advice}")


def plant(path, source, edits):
    """Returns the text of a source with the bugs in it."""
    lines = source.read_text(encoding="utf-8").splitlines()
    places = sorted(((find(edit, lines, path, source), edit) for edit in edits),
                    key=lambda place: place[0])
    out = ['#include "bugs.h"', f'#line 1 "{source}"']
    done = 0
    for at, edit in places:
        if at < done:
            sys.exit(f"{path}:{edit.line}: bug {edit.bug} changes lines that another one changes")
        is_on = f"has_bug(BUG_{edit.bug.upper()})"
        out += lines[done:at]
        out += [f'#line {edit.line} "{path}"']
        out += [SWITCH.sub(is_on, line) for line in edit.new]
        done = at + len(edit.old)
        out += [f'#line {done + 1} "{source}"']
    return "\n".join(out + lines[done:]) + "\n"


HEADER = """\
#ifndef SIM_BUGS_H
#define SIM_BUGS_H

#include <stdbool.h>

enum bug {
    BUG_NONE,
%s
    BUGS,
};

#define BUG_NAMES \\
    "none", \\
%s

/* The bug that is switched on. */
extern enum bug planted_bug;

static inline bool has_bug(enum bug bug)
{
    return planted_bug == bug;
}

#endif
"""


def header(names):
    """Returns the text of the header that names the bugs."""
    return HEADER % ("\n".join(f"    BUG_{name.upper()}," for name in names),
                     ", \\\n".join(f'    "{name}"' for name in names))


def main():
    path = pathlib.Path(sys.argv[1])
    names, edits = read_bugs(path)
    if len(sys.argv) == 3:
        text = header(names)
    else:
        file = sys.argv[3]
        text = plant(path, pathlib.Path(os.path.normpath(sys.argv[2])), [e for e in edits if e.file == file])
    pathlib.Path(sys.argv[-1]).write_text(text, encoding="utf-8")


main()
