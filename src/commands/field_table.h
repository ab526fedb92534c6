/* SPDX-License-Identifier: MIT */
#ifndef BEL_COMMANDS_FIELD_TABLE_H
#define BEL_COMMANDS_FIELD_TABLE_H

/*
 * field_table - the rows of commands/fields.h. A field stands where it is shown. Places in arrays
 * never change: new fields are added at the end.
 *
 * For commands/fields.c, and for the one writer that unrolls its loop over the rows of a delivery.
 * Everybody else uses bel__shown.
 */

#include "belfry/backend.h"
#include "commands/arguments.h"
#include "commands/fields.h"

#define ROW(title, kind, from, member, text)                                                       \
    .name = {(title), sizeof(title) - 1}, .type = BEL_FIELD_##kind,                                \
    .offset = offsetof(struct bel_##from, member), .help = (text)
#define SIZE(from, member) .size_offset = offsetof(struct bel_##from, member)

/* Rows by how the length of the value is read: not at all, of a view, of a number, of a list. */
#define FIELD(title, kind, from, member, text) ROW(title, kind, from, member, text)
/* NOLINTBEGIN(bugprone-macro-parentheses): a member cannot stand in parentheses */
#define VIEW(title, kind, from, member, text)                                                      \
    ROW(title, kind, from, member, text), SIZE(from, member.bytes)
/* NOLINTEND(bugprone-macro-parentheses) */
#define NUMBER(title, kind, from, member, text)                                                    \
    ROW(title, kind, from, member, text), SIZE(from, member)
#define LIST(title, kind, from, member, text)                                                      \
    ROW(title, kind, from, member, text), SIZE(from, member##_count)
#define ABSENT_IF_EMPTY .empty = BEL_EMPTY_ABSENT
#define NEEDS(fact)     .needs = BEL_FACT_##fact
#define SET_BY(place)   .is_argument = true, .argument = BEL_SCHEDULE_##place

static const struct bel_field bel__timer_fields[] = {
    {VIEW("id", TEXT, timer, id, "name of the timer in its topic"), SET_BY(ID)},
    {VIEW("topic", TEXT, timer, topic, "topic of the timer"), SET_BY(TOPIC)},
    {FIELD("state", STATE, timer, state, "state of the timer")},
    {VIEW("payload", PAYLOAD, timer, payload, "bytes for the worker"), SET_BY(PAYLOAD)},
    {FIELD("due_ms", INSTANT, timer, due,
           "when the timer is or was due; of a plan, its next nominal time"),
     NEEDS(DUE), SET_BY(AT)},
    {FIELD("priority", SMALL, timer, priority, "0 to 255, lower first"), SET_BY(PRIORITY)},
    {NUMBER("attempts", COUNT, timer, attempts, "failures so far")},
    {NUMBER("crashes", COUNT, timer, crashes, "leases that ended without an answer")},
    {FIELD("created_ms", INSTANT, timer, created, "when the timer was scheduled")},
    {FIELD("finished_ms", INSTANT, timer, finished, "when the timer ended"), NEEDS(ENDED)},
    {VIEW("reason", BYTES, timer, reason, "why the timer is dead, expired or skipped"),
     ABSENT_IF_EMPTY},
    {VIEW("result", BYTES, timer, result, "RESULT of the ACK"), ABSENT_IF_EMPTY},
    {FIELD("expires_ms", INSTANT, timer, expires, "when the timer expires"), NEEDS(EXPIRES)},
    {NUMBER("expires_after_ms", DURATION, timer, expires_ms, "EXPIRES of the timer"),
     ABSENT_IF_EMPTY, SET_BY(EXPIRES)},
    {NUMBER("lease_ms", DURATION, timer, lease_ms, "LEASE of the timer"), ABSENT_IF_EMPTY,
     SET_BY(LEASE)},
    {NUMBER("lease_left_ms", DURATION, timer, lease_left_ms, "time until the lease ends"),
     NEEDS(LEASED)},
    {VIEW("worker", BYTES, timer, worker, "WORKER of the claim"), ABSENT_IF_EMPTY},
    {VIEW("group", BYTES, timer, group, "GROUP of the timer"), ABSENT_IF_EMPTY, SET_BY(GROUP)},
    {VIEW("resource", BYTES, timer, resource, "RESOURCE of the timer"), ABSENT_IF_EMPTY,
     SET_BY(RESOURCE)},
    {VIEW("correlation", BYTES, timer, correlation, "CORRELATION of the timer"), ABSENT_IF_EMPTY,
     SET_BY(CORRELATION)},
    {VIEW("retry", TEXT, timer, retry, "RETRY of the timer"), ABSENT_IF_EMPTY, SET_BY(RETRY)},
    {LIST("headers", HEADERS, timer, headers, "names and values for the worker"), ABSENT_IF_EMPTY,
     SET_BY(HEADER)},
    {LIST("outcomes", OUTCOMES, timer, outcomes, "the last 5 failures and crashes, oldest first"),
     ABSENT_IF_EMPTY},
    {VIEW("every", TEXT, timer, plan.rule, "interval of a plan"), NEEDS(EVERY), SET_BY(EVERY)},
    {VIEW("cron", TEXT, timer, plan.rule, "cron rule of a plan"), NEEDS(CRON), SET_BY(CRON)},
    {VIEW("rrule", TEXT, timer, plan.rule, "recurrence rule of a plan"), NEEDS(RRULE),
     SET_BY(RRULE)},
    {VIEW("tz", TEXT, timer, plan.zone, "time zone of a plan, unless UTC"), NEEDS(PLAN),
     ABSENT_IF_EMPTY, SET_BY(TZ)},
    {FIELD("mode", WORD, timer, plan.mode, "MODE of a plan"), NEEDS(PLAN), SET_BY(MODE)},
    {FIELD("gap", WORD, timer, plan.gap, "GAP of a plan"), NEEDS(PLAN), SET_BY(GAP)},
    {FIELD("fold", WORD, timer, plan.fold, "FOLD of a plan"), NEEDS(PLAN), SET_BY(FOLD)},
    {FIELD("misfire", WORD, timer, plan.misfire, "MISFIRE of a plan"), NEEDS(PLAN),
     SET_BY(MISFIRE)},
    {FIELD("overlap", WORD, timer, plan.overlap, "OVERLAP of a plan"), NEEDS(PLAN),
     SET_BY(OVERLAP)},
    {FIELD("until_ms", INSTANT, timer, plan.until, "UNTIL of a plan"), NEEDS(UNTIL), SET_BY(UNTIL)},
    {NUMBER("count", COUNT, timer, plan.count, "COUNT of a plan"), NEEDS(PLAN), ABSENT_IF_EMPTY,
     SET_BY(COUNT)},
    {NUMBER("spread_ms", DURATION, timer, plan.spread_ms, "SPREAD of a plan"), NEEDS(PLAN),
     ABSENT_IF_EMPTY, SET_BY(SPREAD)},
    {NUMBER("made", COUNT, timer, made, "occurrences that a plan has made"), NEEDS(PLAN)},
    {NUMBER("skipped", COUNT, timer, skipped, "nominal times of a plan left out by OVERLAP"),
     NEEDS(PLAN)},
    {NUMBER("missed", COUNT, timer, missed, "nominal times of a plan left out by MISFIRE"),
     NEEDS(PLAN)},
    {NUMBER("used", COUNT, timer, used, "nominal times of a plan that COUNT has counted"),
     NEEDS(PLAN), ABSENT_IF_EMPTY},
    {VIEW("plan", TEXT, timer, plan_id, "id of the plan of an occurrence"), NEEDS(OCCURRENCE)},
    {FIELD("nominal_ms", INSTANT, timer, nominal, "nominal time of an occurrence"),
     NEEDS(OCCURRENCE)},
};

static const struct bel_field bel__delivery_fields[] = {
    {VIEW("token", TEXT, delivery, token, "proof of the lease, for ACK, FAIL, RELEASE, EXTEND")},
    {VIEW("topic", TEXT, delivery, topic, "topic of the timer")},
    {VIEW("id", TEXT, delivery, id, "name of the timer in its topic")},
    {VIEW("payload", PAYLOAD, delivery, payload, "bytes for the worker")},
    {FIELD("due_ms", INSTANT, delivery, due, "when the timer was due")},
    {NUMBER("attempt", COUNT, delivery, attempt, "1 + the failures so far")},
    {LIST("headers", HEADERS, delivery, headers, "names and values for the worker")},
    {NUMBER("lease_ms", DURATION, delivery, lease_ms, "how long the lease lasts")},
    {VIEW("correlation", BYTES, delivery, correlation, "CORRELATION of the timer"),
     ABSENT_IF_EMPTY},
    {LIST("results", RESULTS, delivery, results, "of a task: results of the tasks before it"),
     .empty = BEL_EMPTY_ABSENT_IN_MAPS},
};

#define STATE_COUNT(title, state, text)                                                            \
    {                                                                                              \
        NUMBER(title, COUNT, topic, counts[BEL_##state], text)                                     \
    }

#define WAITING(title, wait, text)                                                                 \
    {                                                                                              \
        NUMBER(title, COUNT, topic, waiting[BEL_WAIT_##wait], text)                                \
    }

static const struct bel_field bel__topic_fields[] = {
    {VIEW("topic", TEXT, topic, name, "name of the topic")},
    {FIELD("paused", BOOLEAN, topic, paused, "whether deliveries are stopped by PAUSE")},
    STATE_COUNT("scheduled", SCHEDULED, "timers that are not due yet, and plans"),
    STATE_COUNT("ready", READY, "due timers that no worker has claimed"),
    STATE_COUNT("leased", LEASED, "timers that a worker has claimed"),
    STATE_COUNT("blocked", BLOCKED, "occurrences that wait for the one before"),
    STATE_COUNT("done", DONE, "timers that were acknowledged"),
    STATE_COUNT("dead", DEAD, "timers that are out of attempts or were rejected"),
    STATE_COUNT("cancelled", CANCELLED, "timers that were cancelled"),
    STATE_COUNT("expired", EXPIRED, "timers that expired before they were done"),
    STATE_COUNT("skipped", SKIPPED, "occurrences that were skipped"),
    {NUMBER("plans", COUNT, topic, plans, "plans among the timers")},
    {NUMBER("oldest_age_ms", DURATION, topic, oldest_age_ms,
            "how long the first ready timer has been ready; 0 if there is none")},
    {NUMBER("claimed_total", COUNT, topic, claimed, "timers claimed since the start")},
    {NUMBER("completed_total", COUNT, topic, completed, "timers acknowledged since the start")},
    {NUMBER("failed_total", COUNT, topic, failed, "FAILs since the start")},
    {NUMBER("released_total", COUNT, topic, released, "RELEASEs since the start")},
    {NUMBER("lost_total", COUNT, topic, lost, "leases that expired since the start")},
    {NUMBER("claims_per_minute", COUNT, topic, claims_per_minute,
            "claims in the last minute, about"),
     NEEDS(RATES)},
    {NUMBER("completions_per_minute", COUNT, topic, completions_per_minute,
            "acknowledgements in the last minute, about"),
     NEEDS(RATES)},
    {NUMBER("waited_ms_p50", DURATION, topic, waited_ms_p50,
            "time from due to claim: half of the claims waited less"),
     NEEDS(RATES)},
    {NUMBER("waited_ms_p99", DURATION, topic, waited_ms_p99,
            "time from due to claim: 99 % of the claims waited less"),
     NEEDS(RATES)},
    {NUMBER("ran_ms_p50", DURATION, topic, ran_ms_p50,
            "time from claim to acknowledgement: half of the timers took less"),
     NEEDS(RATES)},
    {NUMBER("ran_ms_p99", DURATION, topic, ran_ms_p99,
            "time from claim to acknowledgement: 99 % of the timers took less"),
     NEEDS(RATES)},
    {LIST("settings", SETTINGS, topic, settings, "settings, as text that CONFIGURE takes")},
    WAITING("waiting_time", TIME, "timers that wait for their due"),
    WAITING("waiting_blocked", BLOCKED, "timers that wait for those before them"),
    WAITING("waiting_paused", PAUSED, "ready timers that wait for RESUME"),
    WAITING("waiting_resource", RESOURCE, "ready timers whose resource is closed"),
    WAITING("waiting_concurrency", CONCURRENCY, "ready timers that wait for the end of a lease"),
    WAITING("waiting_worker", WORKER, "ready timers that wait for a worker, or for their job"),
};

static const struct bel_field bel__outcome_fields[] = {
    {FIELD("kind", OUTCOME, outcome, kind, "failed or crashed")},
    {FIELD("at_ms", INSTANT, outcome, at, "when the attempt ended")},
    {VIEW("reason", BYTES, outcome, reason, "REASON of the FAIL"),
     .empty = BEL_EMPTY_ABSENT_IN_MAPS},
};

static const struct bel_field bel__verdict_fields[] = {
    {FIELD("state", STATE, verdict, state,
           "scheduled, dead or expired; ready if it waits for its resource")},
    {FIELD("due_ms", INSTANT, verdict, due,
           "when the next attempt is due, or the limit of the resource ends"),
     NEEDS(DUE)},
};

static const struct bel_field bel__step_fields[] = {
    {FIELD("start_ms", INSTANT, agenda_step, start, "when the step starts")},
    {NUMBER("count", COUNT, agenda_step, count, "timers and occurrences due in the step")},
};

static const struct bel_field bel__job_shown_fields[] = {
    {VIEW("id", TEXT, job, id, "id of the job")},
    {FIELD("state", JOB_STATE, job, state, "state of the job")},
    {VIEW("reason", BYTES, job, reason, "why the job has failed"), ABSENT_IF_EMPTY},
    {FIELD("priority", SMALL, job, priority, "1 to 10, lower first")},
    {FIELD("progress", PROGRESS, job, counts, "percent of the tasks that have ended"), NEEDS(RUN)},
    {FIELD("counts", COUNTS, job, counts, "tasks by state")},
    {NUMBER("total", COUNT, job, tasks_total, "tasks of the job")},
    {NUMBER("edges", COUNT, job, edges_total, "dependencies between the tasks")},
    {FIELD("created_ms", INSTANT, job, created, "when the job was submitted")},
    {FIELD("finished_ms", INSTANT, job, finished, "when the job ended"), NEEDS(ENDED)},
    {FIELD("deadline_ms", INSTANT, job, deadline, "when the timeout ends the job"),
     NEEDS(DEADLINE)},
    {NUMBER("estimate_ms", DURATION, job, estimate_ms,
            "time until the job is done, at the rate so far"),
     NEEDS(ESTIMATE)},
    {VIEW("parent", TEXT, job, parent, "of a job of then: the job before it"), ABSENT_IF_EMPTY},
    {VIEW("clash", TEXT, job, clash, "the job of then whose id was in use"), ABSENT_IF_EMPTY},
    {VIEW("plan", TEXT, job, plan_id, "of an occurrence: the recurring job"), NEEDS(OCCURRENCE)},
    {FIELD("nominal_ms", INSTANT, job, nominal, "of an occurrence: its nominal time"),
     NEEDS(OCCURRENCE)},
    {VIEW("every", TEXT, job, plan.rule, "interval of a recurring job"), NEEDS(EVERY)},
    {VIEW("cron", TEXT, job, plan.rule, "cron rule of a recurring job"), NEEDS(CRON)},
    {VIEW("rrule", TEXT, job, plan.rule, "recurrence rule of a recurring job"), NEEDS(RRULE)},
    {VIEW("tz", TEXT, job, plan.zone, "time zone of a recurring job, unless UTC"), NEEDS(PLAN),
     ABSENT_IF_EMPTY},
    {FIELD("next_ms", INSTANT, job, next, "next nominal time of a recurring job"), NEEDS(DUE)},
    {NUMBER("made", COUNT, job, made, "jobs that a recurring job has made"), NEEDS(PLAN)},
    {NUMBER("skipped", COUNT, job, skipped, "nominal times left out by overlap"), NEEDS(PLAN)},
    {NUMBER("missed", COUNT, job, missed, "nominal times left out by misfire"), NEEDS(PLAN)},
    {LIST("tasks", TASKS, job, tasks, "tasks, in the order of the text"), NEEDS(WHOLE)},
    {VIEW("cursor", TEXT, job, cursor, "for the next tasks, if there are more"), NEEDS(WHOLE),
     ABSENT_IF_EMPTY},
    {NUMBER("failures", COUNT, job, failures, "FAILs of tasks that have ended"), NEEDS(RUN)},
    {NUMBER("crashes", COUNT, job, crashes, "expired leases of tasks that have ended"), NEEDS(RUN)},
    {NUMBER("completions_per_minute", COUNT, job, completions_per_minute,
            "tasks done in the last minute, about"),
     NEEDS(RUN)},
    {NUMBER("waited_ms_p50", DURATION, job, waited_ms_p50,
            "time from due to claim: half of the done tasks waited less"),
     NEEDS(RUN)},
    {NUMBER("waited_ms_p99", DURATION, job, waited_ms_p99,
            "time from due to claim: 99 % of the done tasks waited less"),
     NEEDS(RUN)},
    {NUMBER("ran_ms_p50", DURATION, job, ran_ms_p50,
            "time from claim to acknowledgement: half of the done tasks took less"),
     NEEDS(RUN)},
    {NUMBER("ran_ms_p99", DURATION, job, ran_ms_p99,
            "time from claim to acknowledgement: 99 % of the done tasks took less"),
     NEEDS(RUN)},
};

static const struct bel_field bel__task_fields[] = {
    {VIEW("id", TEXT, job_task, id, "id of the task in its job")},
    {VIEW("topic", TEXT, job_task, topic, "topic of the task")},
    {FIELD("state", STATE, job_task, state, "state of the task")},
    {NUMBER("attempts", COUNT, job_task, attempts, "failures so far")},
    {NUMBER("crashes", COUNT, job_task, crashes, "leases that ended without an answer")},
    {NUMBER("depth", COUNT, job_task, depth, "longest path from a task without dependencies")},
    {FIELD("due_ms", INSTANT, job_task, due, "when the task is or was due"), NEEDS(DUE)},
    {FIELD("finished_ms", INSTANT, job_task, finished, "when the task ended"), NEEDS(ENDED)},
    {VIEW("reason", BYTES, job_task, reason, "why the task is dead, expired or skipped"),
     ABSENT_IF_EMPTY},
    {LIST("after", AFTERS, job_task, after, "tasks that come before, and how they must end"),
     ABSENT_IF_EMPTY},
};

static const struct bel_field bel__submitted_fields[] = {
    {VIEW("id", TEXT, job_submitted, id, "id of the job")},
    {NUMBER("tasks", COUNT, job_submitted, tasks, "tasks of the job")},
    {NUMBER("edges", COUNT, job_submitted, edges, "dependencies between the tasks")},
};

static const struct bel_field bel__resource_fields[] = {
    {VIEW("name", TEXT, limit_state, name, "name of the resource")},
    {VIEW("rate", TEXT, limit_state, rate, "deliveries in a duration, such as 10/1s"),
     ABSENT_IF_EMPTY},
    {NUMBER("burst", COUNT, limit_state, burst, "deliveries at once after a pause")},
    {NUMBER("concurrency", COUNT, limit_state, concurrency,
            "leases at the same time; 0 for no limit")},
    {NUMBER("running", COUNT, limit_state, running,
            "leases of timers with this resource or one below it")},
    {NUMBER("parked", COUNT, limit_state, parked, "ready timers that wait because it is closed")},
    {FIELD("limited_until_ms", INSTANT, limit_state, limited_until,
           "until when nothing is delivered"),
     NEEDS(UNTIL)},
    {FIELD("breaker", BREAKER, limit_state, breaker, "its circuit breaker")},
    {LIST("reports", REPORTS, limit_state, reports,
          "reports of a limit in the last hour, newest first"),
     ABSENT_IF_EMPTY},
    {VIEW("closed_by", TEXT, limit_state, closed_by,
          "why nothing is delivered now: limited, breaker, rate or concurrency"),
     ABSENT_IF_EMPTY},
    {NUMBER("claimed_total", COUNT, limit_state, claimed,
            "timers with this resource claimed since the start")},
    {NUMBER("completed_total", COUNT, limit_state, completed,
            "timers with this resource acknowledged since the start")},
    {NUMBER("failed_total", COUNT, limit_state, failed,
            "FAILs of timers with this resource since the start")},
    {NUMBER("claims_per_minute", COUNT, limit_state, claims_per_minute,
            "claims in the last minute, about")},
    {NUMBER("completions_per_minute", COUNT, limit_state, completions_per_minute,
            "acknowledgements in the last minute, about")},
    {NUMBER("failures_per_minute", COUNT, limit_state, failures_per_minute,
            "FAILs in the last minute, about")},
};

static const struct bel_field bel__breaker_fields[] = {
    {FIELD("state", BREAKER_STATE, limit_state, breaker, "closed, open or half_open")},
    {NUMBER("failures", COUNT, limit_state, failures, "failures in a row")},
    {FIELD("until_ms", INSTANT, limit_state, breaker_until, "when it is half open"), NEEDS(DUE)},
    {NUMBER("opens_at", COUNT, limit_state, breaker_failures,
            "failures in a row that open it; 0 if it is off")},
    {NUMBER("open_ms", DURATION, limit_state, breaker_open_ms, "how long it opens at first")},
    {NUMBER("max_ms", DURATION, limit_state, breaker_max_ms, "how long it opens at most")},
};

static const struct bel_field bel__report_fields[] = {
    {VIEW("who", BYTES, limit_report, who, "WORKER of the claim; absent if LIMIT was used"),
     ABSENT_IF_EMPTY},
    {FIELD("at_ms", INSTANT, limit_report, at, "when the limit was reported")},
    {NUMBER("for_ms", DURATION, limit_report, for_ms, "for how long")},
};

#undef ROW
#undef SIZE
#undef FIELD
#undef VIEW
#undef NUMBER
#undef LIST
#undef STATE_COUNT
#undef WAITING
#undef ABSENT_IF_EMPTY
#undef NEEDS
#undef SET_BY

#endif
