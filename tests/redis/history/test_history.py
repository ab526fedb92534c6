#!/usr/bin/env python3
"""The judge itself: a good history breaks no rule, and each planted fault breaks the rule it should.

A history is written here with times in ms, operations as `name start end outcome verb ...`.
"""
import history


def op(name, start, end, outcome, *what, count=1):
    lines = [f"S {name} {start * 1000} {' '.join(map(str, what))}"]
    if end is not None:
        lines.append(f"E {name} {end * 1000} {outcome} {count}")
    return lines


def delivery(name, time, id, token, due, lease=1000, attempt=1):
    return [f"D {name} {time * 1000} a {id} {token} {due} {attempt} {lease}"]


def claim(name, start, end, *deliveries, lease=1000):
    """A claim and its deliveries, each (id, token, due)."""
    lines = op(name, start, end, "ok", "claim", "a", lease)
    return lines[:1] + [line for id, token, due in deliveries
                        for line in delivery(name, end, id, token, due, lease)] + lines[1:]


def found(*parts):
    texts = history.judge(history.read([line for part in parts for line in part]))
    return sorted({text.split(":")[0] for text in texts})


SCHEDULED = op("s", 10000, 10010, "ok", "schedule", "a", "x", 100, "keep")
CLAIMED = claim("c", 10200, 10210, ("x", "t1", 10105))
ACKED = op("k", 10300, 10310, "ok", "ack", "t1")
GONE = ["L a other done"]


def at_end(state):
    return [f"L a x {state}"]


def test_a_good_history():
    assert found(SCHEDULED, CLAIMED, ACKED, at_end("done")) == []


def test_a_timer_that_is_gone():
    assert found(SCHEDULED, GONE) == ["kept"]
    assert found(SCHEDULED, CLAIMED, GONE) == ["kept"]


def test_a_timer_that_is_not_delivered_at_the_end():
    assert found(SCHEDULED, at_end("ready")) == ["kept"]


def test_a_timer_that_nobody_has_acknowledged():
    assert found(SCHEDULED, CLAIMED, at_end("done")) == ["kept"]


def test_a_schedule_without_an_answer_may_be_gone():
    assert found(op("s", 10000, None, "", "schedule", "a", "x", 100, "keep"), GONE) == []
    assert found(op("s", 10000, 10010, "unknown", "schedule", "a", "x", 100, "keep"), GONE) == []


def test_a_delivery_before_its_due():
    early = claim("c", 10020, 10050, ("x", "t1", 10105))
    assert found(SCHEDULED, early, ACKED, at_end("done")) == ["early"]


def test_a_due_that_nobody_has_asked_for():
    early = claim("c", 10020, 10050, ("x", "t1", 10040))
    assert found(SCHEDULED, early, ACKED, at_end("done")) == ["early"]


def test_a_move_sets_the_due():
    move = op("m", 10011, 10012, "ok", "reschedule", "a", "x", 20)
    early = claim("c", 10020, 10050, ("x", "t1", 10032))
    assert found(SCHEDULED, move, early, ACKED, at_end("done")) == []


def test_two_leases_at_a_time():
    again = claim("d", 10400, 10410, ("x", "t2", 10105))
    ack = op("k", 10500, 10510, "ok", "ack", "t2")
    assert found(SCHEDULED, CLAIMED, again, ack, at_end("done")) == ["one lease"]


def test_claims_at_the_same_time():
    again = claim("d", 10200, 10212, ("x", "t2", 10105))
    ack = op("k", 10500, 10510, "ok", "ack", "t2")
    assert found(SCHEDULED, CLAIMED, again, ack, at_end("done")) == ["one lease"]


def test_a_lease_after_the_end_of_another():
    again = claim("d", 11150, 11215, ("x", "t2", 10105))
    ack = op("k", 11300, 11310, "ok", "ack", "t2")
    assert found(SCHEDULED, CLAIMED, again, ack, at_end("done")) == []


def test_a_lease_that_was_extended():
    extend = op("e", 10500, 10510, "ok", "extend", "t1", 1200)
    again = claim("d", 11250, 11260, ("x", "t2", 10105))
    ack = op("k", 11300, 11310, "ok", "ack", "t2")
    assert found(SCHEDULED, CLAIMED, extend, again, ack, at_end("done")) == ["one lease"]


def test_a_lease_after_a_release_or_one_that_may_have_been():
    again = claim("d", 10400, 10410, ("x", "t2", 10105))
    ack = op("k", 10500, 10510, "ok", "ack", "t2")
    for outcome in ("ok", "unknown"):
        release = op("r", 10300, 10310, outcome, "release", "t1", -1)
        assert found(SCHEDULED, CLAIMED, release, again, ack, at_end("done")) == []
    release = op("r", 10300, None, "", "release", "t1", -1)
    assert found(SCHEDULED, CLAIMED, release, again, ack, at_end("done")) == []
    release = op("r", 10420, 10430, "stale", "release", "t1", -1)
    assert "one lease" in found(SCHEDULED, CLAIMED, release, again, ack, at_end("done"))


def test_a_delivery_after_a_cancel():
    cancel = op("x", 10020, 10030, "ok", "cancel", "a", "x")
    assert found(SCHEDULED, cancel, CLAIMED, at_end("cancelled")) == ["cancelled"]
    assert found(SCHEDULED, cancel, at_end("cancelled")) == []
    nothing = op("x", 10020, 10030, "ok", "cancel", "a", "x", count=0)
    assert found(SCHEDULED, nothing, CLAIMED, ACKED, at_end("done")) == []


def test_a_cancel_that_changes_nothing():
    cancel = op("x", 10250, 10260, "ok", "cancel", "a", "x")
    stale = op("k", 10300, 10310, "stale", "ack", "t1")
    assert found(SCHEDULED, CLAIMED, cancel, stale, at_end("cancelled")) == []
    assert "fenced" in found(SCHEDULED, CLAIMED, cancel, ACKED, at_end("cancelled"))


def test_a_delivery_after_an_acknowledgement():
    again = claim("d", 11400, 11410, ("x", "t2", 10105))
    assert found(SCHEDULED, CLAIMED, ACKED, again, at_end("done")) == ["done"]
    replaced = op("z", 11300, 11310, "ok", "schedule", "a", "x", 0, "replace")
    ack = op("l", 11500, 11510, "ok", "ack", "t2")
    again = claim("d", 11400, 11410, ("x", "t2", 11305))
    assert found(SCHEDULED, CLAIMED, ACKED, replaced, again, ack, at_end("done")) == []


def test_an_acknowledgement_that_is_forgotten():
    assert "done" in found(SCHEDULED, CLAIMED, ACKED, at_end("ready"))


def test_a_token_after_the_end_of_its_lease():
    late = op("k", 11300, 11310, "ok", "ack", "t1")
    assert found(SCHEDULED, CLAIMED, late, at_end("done")) == ["fenced"]
    late = op("k", 11300, 11310, "stale", "ack", "t1")
    assert found(SCHEDULED, CLAIMED, late, at_end("done")) == ["kept"]


def test_a_token_of_an_older_lease():
    again = claim("d", 11230, 11240, ("x", "t2", 10105))
    extend = op("e", 10500, 11260, "unknown", "extend", "t1", 9000)
    late = op("k", 11300, 11310, "ok", "ack", "t1")
    assert found(SCHEDULED, CLAIMED, extend, again, late, at_end("done")) == ["fenced"]


def test_an_acknowledgement_twice():
    again = op("l", 10320, 10330, "ok", "ack", "t1")
    assert found(SCHEDULED, CLAIMED, ACKED, again, at_end("done")) == ["fenced"]
    again = op("l", 10320, 10330, "stale", "ack", "t1")
    assert found(SCHEDULED, CLAIMED, ACKED, again, at_end("done")) == []


def test_a_live_lease_that_is_refused():
    stale = op("k", 10300, 10310, "stale", "ack", "t1")
    again = claim("d", 11300, 11310, ("x", "t2", 10105))
    ack = op("l", 11400, 11410, "ok", "ack", "t2")
    assert found(SCHEDULED, CLAIMED, stale, again, ack, at_end("done")) == ["honoured"]
    stale = op("k", 11100, 11250, "stale", "ack", "t1")
    assert found(SCHEDULED, CLAIMED, stale, again, ack, at_end("done")) == []


def test_a_token_twice():
    again = claim("d", 11400, 11410, ("x", "t1", 10105))
    assert "token" in found(SCHEDULED, CLAIMED, again)


def plan(times, told=(3, 0, 0), state="done"):
    lines = op("p", 10000, 10010, "ok", "plan", "a", "p", 100, 3)
    lines.append(f"P a p {' '.join(map(str, told))}")
    for number, time in enumerate(times):
        lines += claim(f"c{number}", time + 10, time + 20, (f"p@{time}", f"t{number}", time))
        lines += op(f"k{number}", time + 30, time + 40, "ok", "ack", f"t{number}")
        lines.append(f"L a p@{time} {state}")
    return lines


def test_a_plan():
    assert found(plan([10100, 10200, 10300])) == []
    assert found(plan([10100, 10300])) == ["plan"]
    assert found(plan([10100, 10200, 10201, 10300])) == ["plan"]
    assert found(plan([10100, 10200, 10301])) == ["plan"]
    assert found(plan([10100, 10200, 10300], told=(3, 1, 0))) == ["plan"]
    lines = [line for line in plan([10100, 10200, 10300]) if not line.startswith("P")]
    assert found(lines) == ["plan"]


def test_an_occurrence_twice():
    again = claim("d", 10600, 10610, ("p@10200", "t9", 10200))
    assert found(plan([10100, 10200, 10300]), again) == ["done"]


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print("ok  ", name[5:])
