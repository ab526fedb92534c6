/* SPDX-License-Identifier: MIT */

#include "commands/fields.h"

#include "commands/arguments.h"
#include "commands/commands.h"
#include "commands/field_table.h"
#include "commands/field_value.h"
#include "core/view.h"

#include <assert.h>

#define SHOWN(title, many, rows, text)                                                             \
    {                                                                                              \
        .name = (title), .list = (many), .help = (text), .fields = (rows),                         \
        .count = sizeof(rows) / sizeof(rows)[0]                                                    \
    }

const struct bel_shown bel__shown[BEL_SHOWN_KINDS] = {
    [BEL_SHOWN_TIMER] =
        SHOWN("Timer", "timers", bel__timer_fields, "a timer, a plan or an occurrence of a plan"),
    [BEL_SHOWN_DELIVERY] =
        SHOWN("Delivery", "deliveries", bel__delivery_fields, "a timer that a worker has claimed"),
    [BEL_SHOWN_TOPIC] =
        SHOWN("Topic", "topics", bel__topic_fields, "counts and settings of a topic"),
    [BEL_SHOWN_OUTCOME] =
        SHOWN("Outcome", "outcomes", bel__outcome_fields, "an attempt that did not succeed"),
    [BEL_SHOWN_VERDICT] =
        SHOWN("Verdict", "verdicts", bel__verdict_fields, "state of a timer after FAIL"),
    [BEL_SHOWN_STEP] = SHOWN("Step", "steps", bel__step_fields, "a step of an agenda"),
    [BEL_SHOWN_JOB] = SHOWN("Job", "jobs", bel__job_shown_fields, "a job or a recurring job"),
    [BEL_SHOWN_TASK] = SHOWN("Task", "tasks", bel__task_fields, "a task of a job"),
    [BEL_SHOWN_SUBMITTED] =
        SHOWN("Submitted", "submitted", bel__submitted_fields, "a job that has been submitted"),
    [BEL_SHOWN_RESOURCE] =
        SHOWN("Resource", "resources", bel__resource_fields, "limits and state of a resource"),
    [BEL_SHOWN_BREAKER] =
        SHOWN("Breaker", "breakers", bel__breaker_fields, "circuit breaker of a resource"),
    [BEL_SHOWN_REPORT] =
        SHOWN("LimitReport", "reports", bel__report_fields, "a report that a resource is limited"),
};

static_assert(sizeof(enum bel_breaker) == sizeof(unsigned), "enums are read as unsigned");
static_assert(sizeof bel__timer_fields / sizeof bel__timer_fields[0] <= BEL_SHOWN_FIELDS_MAX,
              "the largest kind fits");
static_assert(sizeof(size_t) == sizeof(uint64_t), "lengths and counts are read alike");
static_assert(sizeof(enum bel_state) == sizeof(unsigned), "enums are read as unsigned");
static_assert(sizeof(enum bel_job_state) == sizeof(unsigned), "enums are read as unsigned");
static_assert(BEL_STATES == 9, "a topic has a count for each state");

static const uint16_t rule_facts[] = {[BEL_PLAN_EVERY] = BEL_FACT_EVERY,
                                      [BEL_PLAN_CRON] = BEL_FACT_CRON,
                                      [BEL_PLAN_RRULE] = BEL_FACT_RRULE};

/* Returns whether a timer is or was due. A task that was skipped or cancelled while it was blocked
 * never was: its due time is 0. */
static bool has_due(const struct bel_timer *timer)
{
    if (timer->plan.rule.bytes > 0) return timer->has_next;
    if (timer->state == BEL_SKIPPED || timer->state == BEL_CANCELLED) return timer->due.ms != 0;
    return timer->state != BEL_BLOCKED;
}

static unsigned facts_of(const struct bel_timer *timer)
{
    bool is_plan = timer->plan.rule.bytes > 0;
    unsigned facts = 0;
    if (has_due(timer)) facts |= BEL_FACT_DUE;
    if (timer->state >= BEL_DONE) facts |= BEL_FACT_ENDED;
    if (timer->state == BEL_LEASED) facts |= BEL_FACT_LEASED;
    if (timer->expires_ms > 0 && timer->expires.ms != 0) facts |= BEL_FACT_EXPIRES;
    if (timer->plan_id.bytes > 0) facts |= BEL_FACT_OCCURRENCE;
    if (is_plan) facts |= BEL_FACT_PLAN | rule_facts[timer->plan.kind];
    if (is_plan && timer->plan.has_until) facts |= BEL_FACT_UNTIL;
    return facts;
}

unsigned bel__resource_facts(const struct bel_limit_state *state)
{
    unsigned facts = 0;
    if (state->limited_until.ms != 0) facts |= BEL_FACT_UNTIL;
    if (state->breaker_until.ms != 0) facts |= BEL_FACT_DUE;
    return facts;
}

unsigned bel__topic_facts(const struct bel_topic *topic)
{
    return topic->has_no_rates ? 0 : BEL_FACT_RATES;
}

unsigned bel__verdict_facts(const struct bel_verdict *verdict)
{
    bool is_next = verdict->state == BEL_SCHEDULED || verdict->state == BEL_READY;
    return is_next ? BEL_FACT_DUE : 0;
}

unsigned bel__job_facts(const struct bel_job *job, bool is_whole)
{
    unsigned facts = is_whole ? BEL_FACT_WHOLE : 0;
    if (job->has_finished) facts |= BEL_FACT_ENDED;
    if (job->has_deadline) facts |= BEL_FACT_DEADLINE;
    if (job->has_estimate) facts |= BEL_FACT_ESTIMATE;
    if (job->has_next) facts |= BEL_FACT_DUE;
    if (job->plan_id.bytes > 0) facts |= BEL_FACT_OCCURRENCE;
    facts |= job->plan.rule.bytes > 0 ? BEL_FACT_PLAN | rule_facts[job->plan.kind] : BEL_FACT_RUN;
    return facts;
}

unsigned bel__task_facts(const struct bel_job_task *task)
{
    return (task->has_due ? BEL_FACT_DUE : 0) | (task->has_finished ? BEL_FACT_ENDED : 0);
}

uint64_t bel__counts_progress(const uint64_t counts[BEL_STATES])
{
    uint64_t all = 0, ended = 0;
    for (unsigned state = 0; state < BEL_STATES; state++) {
        all += counts[state];
        if (state >= BEL_DONE) ended += counts[state];
    }
    return all > 0 ? 100 * ended / all : 100;
}

/* Unrolled, with the rows as constants: 40 rows cost 40 tests. */
uint64_t bel__timer_fields_there(const struct bel_timer *timer)
{
    unsigned facts = facts_of(timer);
    uint64_t there = 0;
#pragma GCC unroll 64
    for (size_t i = 0; i < sizeof bel__timer_fields / sizeof bel__timer_fields[0]; i++) {
        there |= (uint64_t)bel__field_is_there(&bel__timer_fields[i], timer, facts) << i;
    }
    return there;
}

const char *bel__field_word(const struct bel_field *field, const void *from)
{
    const void *at = (const char *)from + field->offset;
    unsigned index = *(const unsigned *)at;
    switch (field->type) {
    case BEL_FIELD_STATE:
        return bel_state_name((enum bel_state)index);
    case BEL_FIELD_JOB_STATE:
        return bel_job_state_name((enum bel_job_state)index);
    case BEL_FIELD_BREAKER_STATE:
        return bel_breaker_name((enum bel_breaker)index);
    case BEL_FIELD_OUTCOME:
        return index == BEL_OUTCOME_CRASHED ? "crashed" : "failed";
    default:
        assert(field->type == BEL_FIELD_WORD && field->is_argument);
        return bel__commands[BEL_COMMAND_SCHEDULE].arguments[field->argument].words[index];
    }
}

const struct bel_field *bel__field_find(enum bel_shown_kind kind, struct bel_view name)
{
    assert(kind < BEL_SHOWN_KINDS);
    const struct bel_shown *shown = &bel__shown[kind];
    for (size_t i = 0; i < shown->count; i++) {
        if (bel__view_equal(shown->fields[i].name, name)) return &shown->fields[i];
    }
    return NULL;
}
