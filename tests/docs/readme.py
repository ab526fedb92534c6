#!/usr/bin/env python3
"""Checks README.md, and the links of every document.

    readme.py SOURCE LIBRARY COMPILER ...

The README stays short, and its C programs compile and print the indented block after them. (Its
shell commands are run by tests/cli/quickstart.sh.) A link in a Markdown file leads to a file and a
heading that exist.
"""
import pathlib, re, subprocess, sys, tempfile

source, library = (pathlib.Path(arg).resolve() for arg in sys.argv[1:3])
compiler = sys.argv[3:]
LINES_MAX = 200


def fail(text):
    print("FAILED " + text, file=sys.stderr)
    sys.exit(1)


def ok(name):
    print("ok   " + name, flush=True)


def run(command, **more):
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **more)


def check_length(text):
    lines = text.count("\n")
    if lines > LINES_MAX:
        fail(f"README.md has {lines} lines, more than {LINES_MAX}")
    ok(f"the_readme_has_at_most_{LINES_MAX}_lines")


def check_programs(text):
    """Each C block is a program; the shell session after it shows what the program prints."""
    found = re.findall(r"^```c\n(.*?)^```\n\n((?:    [^\n]*\n)+)", text, re.M | re.S)
    if not found or len(found) != text.count("```c\n"):
        fail("README.md has a C block without a session after it")
    for code, session in found:
        wanted = [line[4:] for line in session.splitlines() if not line.startswith("    $ ")]
        with tempfile.TemporaryDirectory() as folder:
            file, program = pathlib.Path(folder) / "example.c", pathlib.Path(folder) / "example"
            file.write_text(code)
            built = run(compiler + ["-std=c17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror",
                                    f"-I{source}/include", str(file), "-o", str(program),
                                    str(library), f"-Wl,-rpath,{library.parent}", "-pthread"])
            if built.returncode:
                fail(f"README.md: {built.stderr}")
            ran = run([str(program)], cwd=folder)
            if ran.returncode or ran.stdout.splitlines() != wanted:
                fail(f"README.md: its program exits with {ran.returncode}, prints\n{ran.stdout}")
    ok("the_programs_of_the_readme_are_true")


def documents():
    """Every Markdown file that is part of the source."""
    folders = [source, source / "docs", source / "docs/adr", source / "examples"]
    return [path for folder in folders for path in sorted(folder.glob("*.md"))]


def without_code(text):
    return re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.M | re.S)


def anchors(path):
    """The names by which the headings of a document can be linked to."""
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def check_links():
    count = 0
    for path in documents():
        for link in re.findall(r"\]\(([^)\s]+)\)", without_code(path.read_text())):
            if re.match(r"https?:", link):
                continue
            name, _, anchor = link.partition("#")
            target = (path.parent / name).resolve() if name else path
            if not target.exists():
                fail(f"{path.relative_to(source)} links to {link}, which does not exist")
            if anchor and anchor not in anchors(target):
                fail(f"{path.relative_to(source)} links to {link}: there is no such heading")
            count += 1
    if count < 40:
        fail(f"only {count} links were found")
    ok("every_link_leads_somewhere")


readme = (source / "README.md").read_text()
check_length(readme)
check_programs(readme)
check_links()
