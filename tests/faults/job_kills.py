#!/usr/bin/env python3
"""kill -9 between two commands on a random job: the end equals that of an uninterrupted run.

    job_kills.py BELFRY

A random graph of up to 12 tasks, with edges of every policy, results, one `then`, and a pace or a
timeout, is worked off by a random script of commands on a virtual clock:

    uninterrupted   command, look, command, look, command, look ...
    killed often    command, kill, look, command, kill, look ...      after every command
    killed once     command, command, kill, look, command ...         after one prefix

A look is JOB GET of both jobs, GET and the first line of EXPLAIN of every task, and LIMIT. All
looks and all replies must be equal in the runs, times included: only the script moves the clock.
What may differ: tokens; counters of resources, which begin with the process; how many timers of a
closed resource have been looked at, and so are parked; how long a task waited and ran that was
claimed before the restart; and the number of lost leases, because a lease that is lost soon after a
start counts no crash. A move of the clock is a second at least: of the time of a lease, less than
that may be forgotten. Pressure, of a slow or full disk, delays tasks by real time: a difference
then proves nothing, and the job is left out.

The seed of a failed job is printed; BEL_TEST_SEED runs that job alone, BEL_TEST_LONG many more.
"""
import json
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
from rig import Refusal, Server, main  # noqa: E402

LONG = bool(os.environ.get("BEL_TEST_LONG"))
SEED = int(os.environ.get("BEL_TEST_SEED", "0"))
# The first has a pace and the second a timeout; in both, the job of `then` runs.
SEEDS = [SEED] if SEED else range(1, 31) if LONG else [16, 9]
START_MS = 4102444800000  # 2100: later than the time at which a new virtual clock begins
TASKS_MAX = 12
STEPS = 30  # random ones; then those that end the job
TOPICS = ("a", "b")
# Fields of resources, and of jobs and timers, that may differ.
OF_LIMITS = ("_total", "_per_minute", "parked")
OF_WORK = ("_p50", "_p99", "crashes")
CRASHES_MAX = 1000  # so that the number of lost leases does not matter


def chance_of(seed):
    return random.Random(seed)


def draw_task(chance, name, before):
    task = {"id": name, "topic": chance.choice(TOPICS)}
    edges = [{"task": other, "on": chance.choice(("success", "success", "failure", "always"))}
             for other in chance.sample(before, min(len(before), chance.choice((0, 1, 1, 2, 3))))]
    if edges:
        task["after"] = edges
    if chance.random() < 0.3:
        task["payload"] = {"of": name}
    if chance.random() < 0.2:
        task["in"] = chance.choice(("1s", "3s"))
    if chance.random() < 0.2:
        task["resource"] = "api"
    if chance.random() < 0.3:
        task["cost"] = chance.randrange(100)
    if chance.random() < 0.2:
        task["retry"] = "1s max(1)"
    return task


def draw_job(chance):
    """A job with one `then`. All delays are fixed: a retry has no jitter."""
    names = [f"t{i}" for i in range(chance.randrange(2, TASKS_MAX - 1))]
    job = {"id": "j", "retry": "2s,4s max(2)", "cooldown": chance.choice(("0s", "2s")),
           "tasks": [draw_task(chance, name, names[:i]) for i, name in enumerate(names)]}
    limit = chance.choice(("pace", "timeout", None))
    if limit:
        job[limit] = {"pace": "3s", "timeout": "40s"}[limit]
    more = ["u0", "u1"][:chance.randrange(3)]
    then = {"id": "k", "tasks": [draw_task(chance, name, more[:i]) for i, name in enumerate(more)]}
    job["then"] = [{"job": then, "on": chance.choice(("success", "failure", "always"))}]
    return job


def fields(flat, may_differ=OF_WORK):
    """A map without what may differ; nil, or the text of an error, as it is."""
    if not isinstance(flat, list):
        return flat
    named = {name: value for name, value in zip(flat[::2], flat[1::2])
             if not name.endswith(may_differ)}
    if "tasks" in named:
        named["tasks"] = [fields(task) for task in named["tasks"]]
    if "outcomes" in named:
        named["outcomes"] = [outcome for outcome in named["outcomes"] if outcome[0] != "crashed"]
        if not named["outcomes"]:
            del named["outcomes"]
    return named


class Pressed(Exception):
    """A server was under pressure."""


def expect(is_right, server, text):
    """Fails if something is wrong, unless pressure may be the cause."""
    if is_right:
        return
    if "pressure changed" in server.log():
        raise Pressed(text)
    raise AssertionError(text)


class Run:
    """One run of a script on a server of its own."""

    def __init__(self, server, job):
        self.server, self.client = server, server.client()
        self.tokens = {}  # of tasks that were claimed, also those whose lease has ended
        self.tasks = [(f"{each['id']}/{task['id']}", task["topic"])
                      for each in (job, job["then"][0]["job"]) for task in each["tasks"]]
        assert self.ask("CLOCK", "SET", START_MS) == START_MS
        for topic in TOPICS:
            assert self.ask("CONFIGURE", topic, "crashes", CRASHES_MAX) == "OK"

    def restart(self, kill=True):
        self.client.close()
        if kill:
            self.server.kill()
        else:
            assert self.server.stop() == 0
        self.server.start()
        self.client = self.server.client()

    def ask(self, *words):
        try:
            return self.client.ask(*words)
        except Refusal as refusal:
            return str(refusal)

    def do(self, step):
        """Runs a step: a command, in which the id of a task stands for its token."""
        verb, *rest = step
        if verb in ("ACK", "FAIL", "EXTEND", "RELEASE"):
            return self.ask(verb, self.tokens[rest[0]], *rest[1:])
        reply = self.ask(*step)
        if verb == "LIMIT":
            return fields(reply, OF_LIMITS)
        if verb == "CLAIM":
            for delivery in reply:
                self.tokens[delivery[2]] = delivery[0]
                delivery[0] = "token"
        return reply

    def look(self):
        """Returns all that is to be equal in two runs."""
        seen = {"clock": self.ask("CLOCK"),
                "limits": [fields(resource, OF_LIMITS) for resource in self.ask("LIMIT")[1]]}
        for id in ("j", "k"):
            seen[id] = fields(self.ask("JOB", "GET", id))
        for id, topic in self.tasks:
            seen[id] = fields(self.ask("GET", topic, id))
            seen[id + " is explained"] = self.ask("EXPLAIN", topic, id)[:1]
        return seen

    def state(self, id):
        job = fields(self.ask("JOB", "GET", id))
        return job["state"] if isinstance(job, dict) else None

    def has_ended(self):
        return all(self.state(id) in (None, "done", "failed", "cancelled") for id in ("j", "k"))


def draw_step(chance, run):
    """A random command; those that need a lease use that of any task that was ever claimed."""
    choice = chance.random()
    if choice < 0.3 or not run.tokens:
        return "CLAIM", chance.choice(TOPICS), "COUNT", chance.choice((1, 1, 2, 5))
    id, topic = chance.choice(run.tasks)
    claimed = chance.choice(sorted(run.tokens))
    if choice < 0.6:
        result = ("RESULT", "result of " + claimed) if chance.random() < 0.6 else ()
        return "ACK", claimed, *result
    if choice < 0.72:
        return "FAIL", claimed, *chance.choice(((), ("DEAD",), ("IN", "3s"), ("REASON", "no"),
                                                 ("KIND", "resource"),
                                                 ("KIND", "limited", "IN", "4s")))
    if choice < 0.75:
        return "RELEASE", claimed
    if choice < 0.78:
        return "EXTEND", claimed, chance.choice(("5s", "50s"))
    if choice < 0.92:
        return "CLOCK", "ADVANCE", chance.choice(("1s", "2s", "3s", "7s", "31s"))
    if choice < 0.95:
        return "CANCEL", topic, id
    if choice < 0.98:
        return "JOB", chance.choice(("PAUSE", "RESUME")), "j"
    return chance.choice((("JOB", "CANCEL", "j"), ("LIMIT", "api", "CLEAR")))


def finish(run):
    """The steps that end both jobs, whatever the random ones have left."""
    yield "JOB", "RESUME", "j"
    for _ in range(60):
        for topic in TOPICS:
            before = dict(run.tokens)
            yield "CLAIM", topic, "COUNT", 5
            for id, token in run.tokens.items():
                if before.get(id) != token:
                    yield "ACK", id, "RESULT", "last of " + id
        yield "CLOCK", "ADVANCE", "10s"
        if run.has_ended():
            return
    expect(False, run.server, f"the jobs do not end: {run.look()}")


def uninterrupted(seed, job):
    """Draws a script and runs it. Returns its steps, each with its reply and the look after it."""
    chance, steps = chance_of(seed), []
    with Server("--clock", "virtual", "--sync", "loop") as server:
        run = Run(server, job)

        def do(step):
            reply = run.do(step)
            steps.append((step, reply, run.look()))
        do(("LIMIT", "api", "RATE", "1/2s", "BREAKER", "2", "OPEN", "5s"))
        do(("JOB", "SUBMIT", json.dumps(job)))
        for _ in range(STEPS):
            if run.has_ended():
                break
            do(draw_step(chance, run))
        for step in finish(run):
            do(step)
        run.client.close()
        if "pressure changed" in server.log():
            raise Pressed("the uninterrupted run")
    return steps


def differences(got, wanted):
    if not isinstance(wanted, dict):
        return [] if got == wanted else [f"got {got}\n    not {wanted}"]
    return [f"{name}: got  {got.get(name)}\n    not {wanted.get(name)}"
            for name in {**wanted, **got} if got.get(name) != wanted.get(name)]


def replay(seed, job, steps, restarts):
    """Runs the steps again. restarts: from the number of a step to how the server ends after it."""
    ends = f"{len(restarts)} restarts" if len(restarts) > 1 else f"restarted after {[*restarts]}"
    with Server("--clock", "virtual", "--sync", "loop") as server:
        run = Run(server, job)
        for i, (step, reply, look) in enumerate(steps):
            where = f"seed {seed}, step {i} of {len(steps)}, {step}, {ends}"
            wrong = differences(run.do(step), reply)
            expect(not wrong, server, f"{where}: the reply: " + "\n".join(wrong))
            if i in restarts:
                run.restart(kill=restarts[i] == "kill")
            if i in restarts or i + 1 == len(steps):
                wrong = differences(run.look(), look)
                expect(not wrong, server, f"{where}: " + "\n".join(wrong))
        run.client.close()


def each_job(seeds, check):
    """Calls a function with each job, and with the steps of its uninterrupted run."""
    for seed in seeds:
        chance = chance_of(-seed)
        job = draw_job(chance)
        try:
            check(seed, chance, job, uninterrupted(seed, job))
        except Pressed as pressed:
            print(f"skip seed {seed}: the server was under pressure: {pressed}")


def test_a_job_that_is_killed_after_each_command_ends_the_same():
    def check(seed, chance, job, steps):
        replay(seed, job, steps, {i: "kill" for i in range(len(steps))})
    each_job(SEEDS if LONG else SEEDS[:1], check)


def test_and_one_that_is_killed_after_one_prefix():
    def check(seed, chance, job, steps):
        for i in range(len(steps)) if LONG else chance.sample(range(len(steps)), 3):
            replay(seed, job, steps, {i: "kill"})
    each_job(SEEDS if LONG else SEEDS[-1:], check)


def test_and_one_whose_server_is_stopped_or_killed():
    def check(seed, chance, job, steps):
        replay(seed, job, steps, {i: chance.choice(("kill", "stop")) for i in range(len(steps))
                                  if chance.random() < 0.15})
    each_job(SEEDS if LONG else SEEDS[-1:], check)


main(dict(globals()))
