#!/usr/bin/env python3
"""A client that openapi-python-client has generated from /openapi.json: its answers have types.

    typed.py FOLDER PORT     FOLDER has the generated package belfry_api
"""
import sys

sys.path.insert(0, sys.argv[1])
from belfry_api import Client  # noqa: E402
from belfry_api.api.server import livez, readyz  # noqa: E402
from belfry_api.api.timers import (cancel_timer, explain_timer, get_timer, list_timers, put_timer,  # noqa: E402
                                   reschedule_timer, schedule_timer)
from belfry_api.api.topics import agenda, configure_topic, get_topic, list_topics, pause_topic  # noqa: E402
from belfry_api.api.work import ack_lease, claim_timers, extend_lease, fail_lease  # noqa: E402
from belfry_api import models as m  # noqa: E402

client = Client(base_url=f"http://127.0.0.1:{sys.argv[2]}")


def case(name, *facts):
    assert all(facts), (name, facts)
    print("ok  ", name)


health = livez.sync(client=client)
case("health", isinstance(health, m.Health), health.status == m.HealthStatus.OK,
     isinstance(readyz.sync(client=client), m.Health))

body = m.ScheduleTimerRequest(payload={"to": "ada"}, in_="1h", priority=5)
made = schedule_timer.sync("mail/x", client=client, body=body)
case("schedule", isinstance(made, m.Created), made.topic == "mail/x")

timer = get_timer.sync("mail/x", made.id, client=client)
case("get", isinstance(timer, m.Timer), timer.state == m.State.SCHEDULED, timer.priority == 5,
     timer.payload == {"to": "ada"}, abs(timer.due_ms - timer.created_ms - 3600000) <= 1)

missing = get_timer.sync("mail/x", "none", client=client)
case("problem", isinstance(missing, m.Problem), missing.status == 404,
     missing.code == m.ProblemCode.NOTFOUND)

again = put_timer.sync("mail/x", "a", client=client, body=m.PutTimerRequest(payload="x", in_="2h"))
page = list_timers.sync("mail/x", client=client, limit=1, state=m.State.SCHEDULED)
rest = list_timers.sync("mail/x", client=client, cursor=page.cursor)
case("list", isinstance(page, m.TimerPage), again.id == "a", len(page.timers) == 1,
     isinstance(page.timers[0], m.Timer), [t.id for t in rest.timers] == ["a"], rest.cursor is None)

moved = reschedule_timer.sync("mail/x", "a", client=client, body=m.RescheduleTimerRequest(in_=0))
claimed = claim_timers.sync("mail/x", client=client, body=m.ClaimTimersRequest(wait="20s"))
case("claim", moved.count == 1, isinstance(claimed, m.Deliveries),
     isinstance(claimed.deliveries[0], m.Delivery), claimed.deliveries[0].attempt == 1)

token = claimed.deliveries[0].token
left = extend_lease.sync(token, client=client, body=m.ExtendLeaseRequest(lease="5m"))
verdict = fail_lease.sync(token, client=client, body=m.FailLeaseRequest(reason="no", dead=True))
stale = ack_lease.sync(token, client=client, body=m.AckLeaseRequest())
case("work", left.lease_left_ms == 300000, verdict.state == m.State.DEAD, stale.status == 409,
     cancel_timer.sync("mail/x", made.id, client=client).count == 1)

dead = get_timer.sync("mail/x", "a", client=client)
case("outcomes", dead.reason == "no", dead.outcomes[0].kind == m.OutcomeKind.FAILED,
     isinstance(explain_timer.sync("mail/x", "a", client=client), m.Explanation))

done = configure_topic.sync_detailed("mail/x", client=client, body=m.ConfigureTopicRequest(lease="7s"))
pause_topic.sync_detailed("mail/x", client=client)
topic = get_topic.sync("mail/x", client=client)
case("topic", done.status_code == 204, isinstance(topic, m.Topic), topic.paused is True, topic.dead == 1,
     topic.settings["lease"] == "7s", list_topics.sync(client=client).topics == ["mail/x"],
     isinstance(agenda.sync(client=client, topic="mail/x").steps[0], m.Step))
