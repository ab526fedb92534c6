#!/usr/bin/env python3
"""Runs the first example of docs/JOBS.md as the page shows it, and what the page says of its end.

    jobs.py BELFRY JOBS

The job, step.sh and the commands are taken from the page. Only the server has another port, which
BELFRY_SERVER tells the commands.
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
from rig import DEADLINE, PROGRAM, Server, main  # noqa: E402

with open(sys.argv[2]) as page:
    TEXT = page.read()


def blocks():
    """The first JSON of the page, and the indented blocks after it."""
    start = TEXT.index("```json\n")
    end = TEXT.index("```\n", start + 1)
    indented = re.findall(r"(?:^    [^\n]*\n|^\n(?=    ))+", TEXT[end:TEXT.index("\n## ")], re.M)
    return TEXT[start + len("```json\n"):end], [re.sub(r"^    ", "", block.lstrip("\n"), flags=re.M)
                                                for block in indented]


def example():
    """The job, the program of its tasks, and the three commands: submit, work, watch."""
    job, (program, commands) = blocks()
    assert program.startswith("#!/bin/sh\n") and "chmod +x step.sh" in TEXT, program
    lines = [line for line in commands.splitlines() if line]
    assert [line.split()[:2] for line in lines[:2]] == [["belfry", "job"], ["belfry", "work"]], lines
    assert len(lines) == 3 and lines[2].startswith("belfry job watch "), lines
    return job, program, lines


class Shell:
    """A folder with the files of the page, in which belfry is the program."""

    def __init__(self, server, folder):
        job, program, self.lines = example()
        self.folder = folder
        os.mkdir(os.path.join(folder, "bin"))
        os.symlink(os.path.abspath(PROGRAM), os.path.join(folder, "bin", "belfry"))
        for name, text in (("nightly.json", job), ("step.sh", program)):
            with open(os.path.join(folder, name), "w") as file:
                file.write(text)
        os.chmod(os.path.join(folder, "step.sh"), 0o755)
        self.environment = {**os.environ, "BELFRY_SERVER": f"127.0.0.1:{server.port}",
                            "PATH": os.path.join(folder, "bin") + ":" + os.environ["PATH"]}

    def start(self, line):
        """Starts a line; exec, so that its process is the program."""
        return subprocess.Popen(["sh", "-c", "exec " + line], cwd=self.folder, text=True,
                                env=self.environment, stdout=subprocess.PIPE)

    def run(self, line):
        """Runs a line. Returns what it prints."""
        process = self.start(line)
        try:
            output, _ = process.communicate(timeout=DEADLINE)
        finally:
            process.kill()
        assert process.returncode == 0, f"{line} exits with {process.returncode}: {output}"
        return output


def result(client, topic, id):
    timer = client.ask("GET", topic, id)
    return timer[timer.index("result") + 1]


def test_the_first_example_runs_as_it_is_shown():
    with Server("--store", "memory") as server, server.client() as client, \
            tempfile.TemporaryDirectory() as folder:
        shell = Shell(server, folder)
        submit, work, watch = shell.lines
        assert shell.run(submit) == "nightly\n"
        worker = shell.start(work)
        try:
            last = shell.run(watch).splitlines()[-1]
        finally:
            worker.send_signal(signal.SIGTERM)
            worker.communicate(timeout=DEADLINE)
        assert last == "nightly\tdone\t100 %", last
        said = {}
        for task in json.loads(blocks()[0])["tasks"]:
            before = [edge["task"] if isinstance(edge, dict) else edge
                      for edge in task.get("after", [])]
            said[task["id"]] = result(client, task["topic"], "nightly/" + task["id"])
            name, _, results = said[task["id"]].partition(": the tasks before it returned ")
            assert name == task["id"], said
            assert json.loads(results) == {other: said[other] for other in before}, said
        assert len(said) == 6 and said["fetch"].endswith(" {}")


def work_off(client, failing):
    """Claims the tasks of both topics until there are none. One of them fails for good."""
    done = []
    while True:
        deliveries = client.ask("CLAIM", "etl", "mail", "COUNT", 10)
        if not deliveries:
            return done
        for token, _, id, *_ in deliveries:
            done.append(id)
            if id == failing:
                client.ask("FAIL", token, "DEAD")
            else:
                client.ask("ACK", token)


def test_the_end_if_load_fails_is_what_the_page_says():
    shown = re.search(r"`belfry job get nightly` shows `(done[^`]*)`", TEXT)[1]
    with Server("--store", "memory") as server, server.client() as client, \
            tempfile.TemporaryDirectory() as folder:
        shell = Shell(server, folder)
        shell.run(shell.lines[0])
        done = work_off(client, "nightly/load")
        assert done[-1] == "nightly/notify" and "nightly/report" not in done, done
        output = shell.run("belfry job get nightly")
        assert shown in output, f"{shown} is not in {output}"
        job = json.loads(blocks()[0])
        job["id"] = "without"
        job["tasks"] = [task for task in job["tasks"] if task["id"] != "notify"]
        client.ask("JOB", "SUBMIT", json.dumps(job))
        work_off(client, "without/load")
        assert client.ask("JOB", "GET", "without")[3] == "failed"


main(dict(globals()))
