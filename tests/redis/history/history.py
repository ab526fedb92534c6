"""history - the judge of what clients of a store have seen.

A history is what history_node.c writes: every operation of every client, with its start, its end
and its outcome, and at the end every timer that there is. All times are of one machine, whose clock
the Redis server uses, too; a lease and a due are judged by that clock and no other.

An operation takes effect at one instant between its start and its end. One with an unknown outcome
(the process was killed, the connection broke) may take effect at any time after its start, or never.
A rule is broken only if no choice of these instants explains what was seen. The rules:

    kept        a timer whose SCHEDULE was acknowledged is there at the end, and has ended only if
                somebody may have ended it: so it was delivered, and came back if its worker was lost
    early       no delivery before the due, and no due before the one that was asked for
    one lease   two leases of a timer do not overlap
    cancelled   no delivery after an acknowledged CANCEL
    done        no delivery after an acknowledged ACK, whose timer is done
    fenced      the token of a lease that has ended is refused
    honoured    the token of a lease that is alive is accepted
    plan        a plan has made each of its times once, and no others
    token       no token is issued twice

The histories here keep every record (the topic's retention is longer than the run).
"""
import collections
import math

SLACK = 2000  # us: times of the server are in ms, and cut off
NEVER = math.inf


class Operation:
    def __init__(self, name, start, verb, args):
        self.name, self.start, self.verb, self.args = name, start, verb, args
        self.end, self.outcome, self.count = NEVER, "unknown", 0

    def may_have_happened(self):
        return self.outcome in ("ok", "unknown", "partly")

    def has_happened(self):
        return self.outcome == "ok"

    def latest(self):
        """When it took effect at the latest, if it did."""
        return NEVER if self.outcome == "unknown" else self.end

    def __str__(self):
        end = "?" if self.end == NEVER else f"{self.end / 1e6:.3f}"
        return f"{self.verb} {self.name} [{self.start / 1e6:.3f}, {end}] {self.outcome}"


Delivery = collections.namedtuple("Delivery", "op time topic id token due attempt lease")


class Timer:
    """All that happened to an id."""

    def __init__(self):
        self.schedules, self.cancels, self.moves = [], [], []
        self.deliveries = []
        self.state = None  # at the end

    def may_be_scheduled_after(self, time):
        return any(op.may_have_happened() and op.latest() > time for op in self.schedules)


class History:
    def __init__(self):
        self.ops = {}
        self.timers = collections.defaultdict(Timer)
        self.plans = {}     # those that were acknowledged: period in ms, count
        self.told = {}      # what GET tells of a plan at the end: made, skipped, missed
        self.tokens = {}    # token -> delivery
        self.uses = collections.defaultdict(list)  # token -> operations
        self.twice = []     # tokens issued twice
        self.is_complete = False  # there is a list of all timers


def read(lines):
    history = History()
    for line in lines:
        words = line.split()
        if words[0] == "S":
            history.ops[words[1]] = Operation(words[1], int(words[2]), words[3], words[4:])
        elif words[0] == "E":
            op = history.ops[words[1]]
            op.end, op.outcome, op.count = int(words[2]), words[3], int(words[4])
        elif words[0] == "D":
            op = history.ops[words[1]]
            delivery = Delivery(op, int(words[2]), words[3], words[4], words[5], int(words[6]),
                                int(words[7]), int(words[8]))
            # The time of the reply, also if the process was killed before it wrote the end.
            op.end = min(op.end, delivery.time)
            if delivery.token in history.tokens:
                history.twice.append(delivery)
            history.tokens[delivery.token] = delivery
            history.timers[delivery.topic, delivery.id].deliveries.append(delivery)
        elif words[0] == "L":
            history.is_complete = True
            history.timers[words[1], words[2]].state = words[3]
        elif words[0] == "P":
            history.is_complete = True
            history.told[words[1], words[2]] = [int(word) for word in words[3:6]]
    for op in history.ops.values():
        place(history, op)
    return history


def place(history, op):
    """Notes an operation with the timers that it is about."""
    if op.verb in ("cancel", "reschedule") and op.outcome == "ok" and op.count == 0:
        op.outcome = "no"
    if op.verb == "ack" and op.outcome == "ok" and op.count < len(op.args):
        op.outcome = "partly" if op.count else "stale"
    if op.verb == "schedule":
        history.timers[op.args[0], op.args[1]].schedules.append(op)
    elif op.verb == "plan" and op.has_happened():
        history.plans[op.args[0], op.args[1]] = int(op.args[2]), int(op.args[3])
    elif op.verb == "cancel":
        history.timers[op.args[0], op.args[1]].cancels.append(op)
    elif op.verb == "reschedule":
        history.timers[op.args[0], op.args[1]].moves.append(op)
    elif op.verb == "ack":
        for token in op.args:
            history.uses[token].append(op)
    elif op.verb in ("fail", "release", "extend"):
        history.uses[op.args[0]].append(op)


def name(delivery):
    return f"{delivery.topic}/{delivery.id} delivered by {delivery.op}"


# --- when a lease ends ---


def enders(history, timer, delivery):
    """Operations that may have ended a lease before its time."""
    for op in history.uses[delivery.token]:
        if op.verb != "extend" and op.may_have_happened():
            yield op
    for op in timer.cancels:
        if op.may_have_happened() and op.latest() > delivery.op.start:
            yield op
    for op in timer.schedules:
        replaces = op.may_have_happened() and op.args[3] == "replace"
        if replaces and op.latest() > delivery.op.start:
            yield op


def earliest_end(history, delivery, before):
    """When a lease that nobody has ended was over at the earliest, for what began then. Extensions
    here never shorten a lease."""
    end = delivery.op.start + delivery.lease * 1000 - SLACK
    for op in history.uses[delivery.token]:
        if op.verb == "extend" and op.has_happened() and op.end < before:
            end = max(end, op.start + int(op.args[1]) * 1000 - SLACK)
    return end


def latest_end(history, delivery):
    end = delivery.op.end + delivery.lease * 1000 + SLACK
    for op in history.uses[delivery.token]:
        if op.verb == "extend" and op.may_have_happened():
            end = max(end, op.latest() + int(op.args[1]) * 1000 + SLACK)
    return end


def may_follow(history, timer, first, second):
    """Whether the second lease can have begun after the end of the first."""
    if second.op.end < first.op.start:
        return False
    if second.op.end >= earliest_end(history, first, second.op.start):
        return True
    return any(op.start < second.op.end for op in enders(history, timer, first))


# --- the rules ---


def kept(history, key, timer):
    if not history.is_complete:
        return
    if not any(op.has_happened() for op in timer.schedules):
        return
    what = f"{key[0]}/{key[1]}"
    uses = [op for d in timer.deliveries for op in history.uses[d.token] if op.may_have_happened()]
    if timer.state is None:
        yield f"kept: {what} was scheduled and is gone: {timer.schedules[0]}"
    elif timer.state in ("scheduled", "ready", "leased", "blocked"):
        yield f"kept: {what} is still {timer.state} at the end"
    elif timer.state == "done" and not any(op.verb == "ack" for op in uses):
        yield f"kept: {what} is done and nobody has acknowledged it"
    elif timer.state == "cancelled" and not any(op.may_have_happened() for op in timer.cancels):
        yield f"kept: {what} is cancelled by nobody"


def early(history, key, timer):
    asked = [(op.start, op.start + int(op.args[2]) * 1000) for op in timer.schedules + timer.moves
             if op.may_have_happened()]
    for delivery in timer.deliveries:
        for op in history.uses[delivery.token]:
            if op.verb in ("fail", "release") and op.may_have_happened() and int(op.args[1]) >= 0:
                asked.append((op.start, op.start + int(op.args[1]) * 1000))
    for delivery in timer.deliveries:
        if delivery.due * 1000 > delivery.op.end:
            yield f"early: {name(delivery)} before its due {delivery.due}"
        dues = [due for start, due in asked if start < delivery.op.end]
        if timer.schedules and delivery.due * 1000 < min(dues, default=0) - SLACK:
            yield f"early: {name(delivery)}, due {delivery.due} was never asked for"


def one_lease(history, key, timer):
    deliveries = sorted(timer.deliveries, key=lambda delivery: delivery.op.end)
    for i, second in enumerate(deliveries):
        for first in deliveries[max(0, i - 50):i]:
            if may_follow(history, timer, first, second) or \
                    may_follow(history, timer, second, first):
                continue
            yield f"one lease: {name(first)} and by {second.op}"


def cancelled(history, key, timer):
    for cancel in timer.cancels:
        if not cancel.has_happened() or timer.may_be_scheduled_after(cancel.start):
            continue
        for delivery in timer.deliveries:
            if delivery.op.start > cancel.end:
                yield f"cancelled: {name(delivery)} after {cancel}"
        if history.is_complete and timer.state != "cancelled":
            yield f"cancelled: {key[0]}/{key[1]} is {timer.state} after {cancel}"


def done(history, key, timer):
    for delivery in timer.deliveries:
        for ack in history.uses[delivery.token]:
            if ack.verb != "ack" or not ack.has_happened():
                continue
            if timer.may_be_scheduled_after(ack.start):
                continue
            for other in timer.deliveries:
                if other.op.start > ack.end:
                    yield f"done: {name(other)} after {ack}"
            if history.is_complete and timer.state != "done":
                yield f"done: {key[0]}/{key[1]} is {timer.state} after {ack}"


def fenced(history, key, timer):
    for delivery in timer.deliveries:
        end = latest_end(history, delivery)
        for op in history.uses[delivery.token]:
            if not op.has_happened():
                continue
            if op.start > end:
                yield f"fenced: {op} succeeds after the lease of {name(delivery)}"
            for other in timer.deliveries:
                if other.op.start > delivery.op.end and other.op.end < op.start:
                    yield f"fenced: {op} of {name(delivery)} succeeds after {other.op}"
            for ender in enders(history, timer, delivery):
                is_before = ender.has_happened() and ender.end < op.start
                if is_before and ender.start > delivery.op.end and ender is not op:
                    yield f"fenced: {op} of {name(delivery)} succeeds after {ender}"


def honoured(history, key, timer):
    for delivery in timer.deliveries:
        for op in history.uses[delivery.token]:
            if op.outcome != "stale" or op.end >= earliest_end(history, delivery, op.start):
                continue
            others = enders(history, timer, delivery)
            if not any(ender.start < op.end for ender in others if ender is not op):
                yield f"honoured: {op} is refused in the lease of {name(delivery)}"


def plans(history):
    for key, (period, count) in history.plans.items():
        what = f"{key[0]}/{key[1]}"
        if key not in history.told:
            yield f"plan: {what} was scheduled and is gone"
            continue
        if history.told[key] != [count, 0, 0]:
            yield f"plan: {what} has made, skipped, missed {history.told[key]}, not {count}"
        prefix = key[1] + "@"
        times = sorted(int(i[len(prefix):]) for t, i in history.timers
                       if t == key[0] and i.startswith(prefix))
        if [time - times[0] for time in times] != [i * period for i in range(count)]:
            yield f"plan: {what} has made the times {times}"
        for time in times:
            state = history.timers[key[0], f"{prefix}{time}"].state
            if state != "done":
                yield f"plan: the time {time} of {what} is {state} at the end"


def judge(history):
    """Returns the broken rules, as texts."""
    found = [f"token: {name(delivery)} with a token that was issued before"
             for delivery in history.twice]
    for key, timer in history.timers.items():
        for rule in (kept, early, one_lease, cancelled, done, fenced, honoured):
            found += rule(history, key, timer)
    if history.is_complete:
        found += plans(history)
    return found


def summary(history):
    """Counts, which show that a run was one."""
    outcomes = collections.Counter(op.outcome for op in history.ops.values())
    verbs = collections.Counter(op.verb for op in history.ops.values())
    states = collections.Counter(timer.state for timer in history.timers.values())
    return (f"{len(history.ops)} operations ({outcomes['ok']} ok, {outcomes['unknown']} unknown, "
            f"{outcomes['no']} refused, {outcomes['stale']} stale), "
            f"{len(history.tokens)} deliveries, {verbs['schedule']} schedules, "
            f"{states['done']} done, {states['cancelled']} cancelled, {states['dead']} dead, "
            f"{len(history.plans)} plans")
