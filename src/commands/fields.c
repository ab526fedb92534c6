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
};

static_assert(sizeof bel__timer_fields / sizeof bel__timer_fields[0] <= BEL_SHOWN_FIELDS_MAX,
              "the largest kind fits");
static_assert(sizeof(size_t) == sizeof(uint64_t), "lengths and counts are read alike");
static_assert(sizeof(enum bel_state) == sizeof(unsigned), "enums are read as unsigned");
static_assert(BEL_STATES == 9, "a topic has a count for each state");

static unsigned facts_of(const struct bel_timer *timer)
{
    static const uint16_t rules[] = {[BEL_PLAN_EVERY] = BEL_FACT_EVERY,
                                     [BEL_PLAN_CRON] = BEL_FACT_CRON,
                                     [BEL_PLAN_RRULE] = BEL_FACT_RRULE};
    bool is_plan = timer->plan.rule.bytes > 0;
    unsigned facts = 0;
    if (is_plan ? timer->has_next : timer->state != BEL_BLOCKED) facts |= BEL_FACT_DUE;
    if (timer->state >= BEL_DONE) facts |= BEL_FACT_ENDED;
    if (timer->state == BEL_LEASED) facts |= BEL_FACT_LEASED;
    if (timer->expires_ms > 0 && timer->expires.ms != 0) facts |= BEL_FACT_EXPIRES;
    if (timer->plan_id.bytes > 0) facts |= BEL_FACT_OCCURRENCE;
    if (is_plan) facts |= BEL_FACT_PLAN | rules[timer->plan.kind];
    if (is_plan && timer->plan.has_until) facts |= BEL_FACT_UNTIL;
    return facts;
}

unsigned bel__verdict_facts(const struct bel_verdict *verdict)
{
    return verdict->state == BEL_SCHEDULED ? BEL_FACT_DUE : 0;
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
