/* SPDX-License-Identifier: MIT */

/*
 * Writes replies field by field, following the table commands/fields.h. A map starts with the
 * number of its fields, which depends on the timer, so the present fields are counted before
 * writing.
 */
#include "session/reply.h"

#include "commands/field_table.h"
#include "commands/field_value.h"

#include <assert.h>
#include <stdio.h>

/* --- fields --- */

/* Not inline, so that write_value() needs no frame: most deliveries have no headers. */
__attribute__((noinline)) static void write_headers(struct bel_resp_writer *writer,
                                                    const struct bel_header *headers, size_t count)
{
    bel__resp_array(writer, 2 * count);
    for (size_t i = 0; i < count; i++) {
        bel__resp_bulk(writer, headers[i].name);
        bel__resp_bulk(writer, headers[i].value);
    }
}

__attribute__((noinline)) static void
write_results(struct bel_resp_writer *writer, const struct bel_task_result *results, size_t count)
{
    bel__resp_array(writer, 2 * count);
    for (size_t i = 0; i < count; i++) {
        bel__resp_bulk(writer, results[i].task);
        if (results[i].has_result) {
            bel__resp_bulk(writer, results[i].result);
        } else {
            bel__resp_null(writer);
        }
    }
}

/* Writes the value of a field, even if it is empty. Lists other than headers and results occur only
 * in maps. */
static inline __attribute__((always_inline)) void
write_value(struct bel_resp_writer *writer, const struct bel_field *field, const void *from)
{
    switch (field->type) {
    case BEL_FIELD_TEXT:
    case BEL_FIELD_BYTES:
    case BEL_FIELD_PAYLOAD:
        bel__resp_bulk(writer, bel__field_bytes(field, from));
        break;
    case BEL_FIELD_STATE:
    case BEL_FIELD_JOB_STATE:
    case BEL_FIELD_WORD:
    case BEL_FIELD_OUTCOME:
    case BEL_FIELD_BREAKER_STATE:
        bel__resp_text(writer, bel__field_word(field, from));
        break;
    case BEL_FIELD_BOOLEAN:
        bel__resp_boolean(writer, bel__field_is_true(field, from));
        break;
    case BEL_FIELD_SMALL:
        bel__resp_count(writer, bel__field_small(field, from));
        break;
    case BEL_FIELD_COUNT:
    case BEL_FIELD_DURATION:
        bel__resp_count(writer, bel__field_count(field, from));
        break;
    case BEL_FIELD_INSTANT:
        bel__resp_integer(writer, bel__field_ms(field, from));
        break;
    case BEL_FIELD_HEADERS:
        write_headers(writer, bel__field_items(field, from), bel__field_count(field, from));
        break;
    case BEL_FIELD_RESULTS:
        write_results(writer, bel__field_items(field, from), bel__field_count(field, from));
        break;
    default:
        assert(false);
    }
}

/* Writes an array with one element per field; absent fields are nil. */
static inline __attribute__((always_inline)) void write_places(struct bel_resp_writer *writer,
                                                               const struct bel_field *fields,
                                                               size_t count, const void *from,
                                                               unsigned facts)
{
    bel__resp_array(writer, count);
#pragma GCC unroll 16
    for (size_t i = 0; i < count; i++) {
        bool is_there = bel__field_is_there(&fields[i], from, facts);
        if (is_there || fields[i].empty == BEL_EMPTY_ABSENT_IN_MAPS) {
            write_value(writer, &fields[i], from);
        } else {
            bel__resp_null(writer);
        }
    }
}

static void write_array(struct bel_resp_writer *writer, enum bel_shown_kind kind, const void *from,
                        unsigned facts)
{
    const struct bel_shown *shown = &bel__shown[kind];
    write_places(writer, shown->fields, shown->count, from, facts);
}

static void write_outcomes(struct bel_resp_writer *writer, const struct bel_timer *timer)
{
    bel__resp_array(writer, timer->outcomes_count);
    for (size_t i = 0; i < timer->outcomes_count; i++) {
        write_array(writer, BEL_SHOWN_OUTCOME, &timer->outcomes[i], 0);
    }
}

/* Writes the settings of a topic as further fields, under the names that CONFIGURE accepts. */
static void write_settings(struct bel_resp_writer *writer, const struct bel_topic *topic)
{
    for (size_t i = 0; i < topic->settings_count; i++) {
        bel__resp_bulk(writer, topic->settings[i].name);
        bel__resp_bulk(writer, topic->settings[i].value);
    }
}

static void write_counts(struct bel_resp_writer *writer, const uint64_t *counts)
{
    bel__resp_map(writer, BEL_STATES);
    for (unsigned state = 0; state < BEL_STATES; state++) {
        bel__resp_text(writer, bel_state_name((enum bel_state)state));
        bel__resp_count(writer, counts[state]);
    }
}

static void write_afters(struct bel_resp_writer *writer, const struct bel_job_task *task)
{
    bel__resp_array(writer, 2 * task->after_count);
    for (size_t i = 0; i < task->after_count; i++) {
        bel__resp_bulk(writer, task->after[i].task);
        bel__resp_text(writer, bel_edge_policy_name(task->after[i].on));
    }
}

/* Returns the fields of a kind that are present: bit i is set for the i-th. */
static uint64_t fields_there(const struct bel_shown *shown, const void *from, unsigned facts)
{
    uint64_t there = 0;
    for (size_t i = 0; i < shown->count; i++) {
        there |= (uint64_t)bel__field_is_there(&shown->fields[i], from, facts) << i;
    }
    return there;
}

static void write_pairs(struct bel_resp_writer *writer, const struct bel_shown *shown,
                        const void *from, uint64_t there);

/* NOLINTBEGIN(misc-no-recursion): a job has tasks, a resource a breaker; these have no maps */
static void write_map(struct bel_resp_writer *writer, enum bel_shown_kind kind, const void *from,
                      unsigned facts)
{
    uint64_t there = fields_there(&bel__shown[kind], from, facts);
    bel__resp_map(writer, (size_t)__builtin_popcountll(there));
    write_pairs(writer, &bel__shown[kind], from, there);
}

static void write_tasks(struct bel_resp_writer *writer, const struct bel_job *job)
{
    bel__resp_array(writer, job->tasks_count);
    for (size_t i = 0; i < job->tasks_count; i++) {
        write_map(writer, BEL_SHOWN_TASK, &job->tasks[i], bel__task_facts(&job->tasks[i]));
    }
}

static void write_reports(struct bel_resp_writer *writer, const struct bel_limit_state *state)
{
    bel__resp_array(writer, state->reports_count);
    for (size_t i = 0; i < state->reports_count; i++) {
        write_map(writer, BEL_SHOWN_REPORT, &state->reports[i], 0);
    }
}

/* Writes the fields of a map, each with its name. */
static void write_pairs(struct bel_resp_writer *writer, const struct bel_shown *shown,
                        const void *from, uint64_t there)
{
    for (; there != 0; there &= there - 1) {
        const struct bel_field *field = &shown->fields[__builtin_ctzll(there)];
        if (field->type == BEL_FIELD_SETTINGS) {
            write_settings(writer, from);
            continue;
        }
        bel__resp_bulk(writer, field->name);
        switch (field->type) {
        case BEL_FIELD_OUTCOMES:
            write_outcomes(writer, from);
            break;
        case BEL_FIELD_TASKS:
            write_tasks(writer, from);
            break;
        case BEL_FIELD_AFTERS:
            write_afters(writer, from);
            break;
        case BEL_FIELD_BREAKER:
            write_map(writer, BEL_SHOWN_BREAKER, from, bel__resource_facts(from));
            break;
        case BEL_FIELD_REPORTS:
            write_reports(writer, from);
            break;
        case BEL_FIELD_COUNTS:
            write_counts(writer, bel__field_counts(field, from));
            break;
        case BEL_FIELD_PROGRESS:
            bel__resp_count(writer, bel__counts_progress(bel__field_counts(field, from)));
            break;
        default:
            write_value(writer, field, from);
        }
    }
}
/* NOLINTEND(misc-no-recursion) */

/* --- replies --- */

static void write_timer(struct bel_resp_writer *writer, const struct bel_timer *timer)
{
    const struct bel_shown *shown = &bel__shown[BEL_SHOWN_TIMER];
    uint64_t there = bel__timer_fields_there(timer);
    bel__resp_map(writer, (size_t)__builtin_popcountll(there));
    write_pairs(writer, shown, timer, there);
}

static void write_get(struct bel_resp_writer *writer, const struct bel_reply *reply)
{
    assert(reply->timers.count <= 1);
    if (reply->timers.count == 0) {
        bel__resp_null_array(writer);
    } else {
        write_timer(writer, &reply->timers.items[0]);
    }
}

static void write_list(struct bel_resp_writer *writer, const struct bel_reply *reply)
{
    bel__resp_array(writer, 2);
    bel__resp_bulk(writer, reply->timers.cursor);
    bel__resp_array(writer, reply->timers.count);
    for (size_t i = 0; i < reply->timers.count; i++) {
        write_timer(writer, &reply->timers.items[i]);
    }
}

/* Writes the most frequent reply: the fields are constants, and the loop is unrolled. */
static void write_delivery(struct bel_resp_writer *writer, const struct bel_delivery *delivery)
{
    size_t count = sizeof bel__delivery_fields / sizeof bel__delivery_fields[0];
    write_places(writer, bel__delivery_fields, count, delivery, 0);
}

static void write_deliveries(struct bel_resp_writer *writer, const struct bel_reply *reply)
{
    bel__resp_array(writer, reply->deliveries.count);
    for (size_t i = 0; i < reply->deliveries.count; i++) {
        write_delivery(writer, &reply->deliveries.items[i]);
    }
}

static void write_verdict(struct bel_resp_writer *writer, const struct bel_reply *reply)
{
    write_array(writer, BEL_SHOWN_VERDICT, &reply->verdict, bel__verdict_facts(&reply->verdict));
}

static void write_names(struct bel_resp_writer *writer, const struct bel_reply *reply)
{
    bel__resp_array(writer, reply->names.count);
    for (size_t i = 0; i < reply->names.count; i++) {
        bel__resp_bulk(writer, reply->names.items[i]);
    }
}

/* Writes the map of EXPLAIN with REASON. */
static void write_explanation(struct bel_resp_writer *writer, const struct bel_reply *reply)
{
    const struct bel_reason *reason = reply->names.reason;
    bool has_until = reason != NULL && reason->has_until;
    bool has_by = reason != NULL && reason->by.bytes > 0;
    bel__resp_map(writer, 1U + (reason != NULL) + has_until + has_by);
    if (reason != NULL) {
        bel__resp_text(writer, "reason");
        bel__resp_text(writer, reason->word);
    }
    if (has_until) {
        bel__resp_text(writer, "until_ms");
        bel__resp_integer(writer, reason->until.ms);
    }
    if (has_by) {
        bel__resp_text(writer, "by");
        bel__resp_bulk(writer, reason->by);
    }
    bel__resp_text(writer, "lines");
    write_names(writer, reply);
}

static void write_topic(struct bel_resp_writer *writer, const struct bel_reply *reply)
{
    const struct bel_shown *shown = &bel__shown[BEL_SHOWN_TOPIC];
    const struct bel_topic *topic = reply->topic;
    uint64_t there = fields_there(shown, topic, bel__topic_facts(topic));
    size_t count = (size_t)__builtin_popcountll(there); /* with the settings as one */
    bel__resp_map(writer, count - 1 + topic->settings_count);
    write_pairs(writer, shown, topic, there);
}

static void write_steps(struct bel_resp_writer *writer, const struct bel_reply *reply)
{
    bel__resp_array(writer, reply->steps.count);
    for (size_t i = 0; i < reply->steps.count; i++) {
        write_array(writer, BEL_SHOWN_STEP, &reply->steps.items[i], 0);
    }
}

static void write_count(struct bel_resp_writer *writer, const struct bel_reply *reply)
{
    bel__resp_count(writer, reply->count);
}

static void write_id(struct bel_resp_writer *writer, const struct bel_reply *reply)
{
    bel__resp_bulk(writer, reply->id);
}

static void write_ok(struct bel_resp_writer *writer, const struct bel_reply *reply)
{
    (void)reply;
    bel__resp_simple(writer, "OK");
}

static void write_submitted(struct bel_resp_writer *writer, const struct bel_reply *reply)
{
    write_map(writer, BEL_SHOWN_SUBMITTED, &reply->submitted, 0);
}

static void write_job(struct bel_resp_writer *writer, const struct bel_reply *reply)
{
    write_map(writer, BEL_SHOWN_JOB, reply->job, bel__job_facts(reply->job, true));
}

static void write_jobs(struct bel_resp_writer *writer, const struct bel_reply *reply)
{
    bel__resp_array(writer, 2);
    bel__resp_bulk(writer, reply->jobs.cursor);
    bel__resp_array(writer, reply->jobs.count);
    for (size_t i = 0; i < reply->jobs.count; i++) {
        const struct bel_job *job = &reply->jobs.items[i];
        write_map(writer, BEL_SHOWN_JOB, job, bel__job_facts(job, false));
    }
}

static void write_resource(struct bel_resp_writer *writer, const struct bel_limit_state *state)
{
    write_map(writer, BEL_SHOWN_RESOURCE, state, bel__resource_facts(state));
}

static void write_limits(struct bel_resp_writer *writer, const struct bel_reply *reply)
{
    const struct bel_limit_reply *limits = &reply->limits;
    switch (limits->action) {
    case BEL_LIMIT_LIST:
        bel__resp_array(writer, 2);
        bel__resp_bulk(writer, limits->cursor);
        bel__resp_array(writer, limits->count);
        for (size_t i = 0; i < limits->count; i++) {
            write_resource(writer, &limits->items[i]);
        }
        return;
    case BEL_LIMIT_CLEAR_ALL:
    case BEL_LIMIT_DELETE:
        bel__resp_count(writer, limits->changed);
        return;
    default:
        assert(limits->count == 1);
        write_resource(writer, &limits->items[0]);
    }
}

typedef void write_fn(struct bel_resp_writer *writer, const struct bel_reply *reply);

static write_fn *const writes[] = {
    [BEL_VERB_SCHEDULE] = write_id,      [BEL_VERB_CANCEL] = write_count,
    [BEL_VERB_RESCHEDULE] = write_count, [BEL_VERB_GET] = write_get,
    [BEL_VERB_CLAIM] = write_deliveries, [BEL_VERB_ACK] = write_count,
    [BEL_VERB_FAIL] = write_verdict,     [BEL_VERB_RELEASE] = write_count,
    [BEL_VERB_EXTEND] = write_count,     [BEL_VERB_LIST] = write_list,
    [BEL_VERB_REVIVE] = write_count,     [BEL_VERB_PURGE] = write_count,
    [BEL_VERB_TOPICS] = write_names,     [BEL_VERB_TOPIC] = write_topic,
    [BEL_VERB_CONFIGURE] = write_ok,     [BEL_VERB_PAUSE] = write_ok,
    [BEL_VERB_RESUME] = write_ok,        [BEL_VERB_EXPLAIN] = write_names,
    [BEL_VERB_AGENDA] = write_steps,     [BEL_VERB_JOB_SUBMIT] = write_submitted,
    [BEL_VERB_JOB_GET] = write_job,      [BEL_VERB_JOB_CANCEL] = write_count,
    [BEL_VERB_JOB_LIST] = write_jobs,    [BEL_VERB_JOB_PAUSE] = write_count,
    [BEL_VERB_JOB_RESUME] = write_count, [BEL_VERB_LIMIT] = write_limits,
};
static_assert(sizeof writes / sizeof writes[0] == BEL_VERBS, "every verb is answered");

/* --- errors --- */

const char *bel__reply_code(int err)
{
    switch (err) {
    case BEL_EINVAL:
    case BEL_ERANGE:
        return "BADARG";
    case BEL_ENOTFOUND:
        return "NOTFOUND";
    case BEL_ECONFLICT:
        return "CONFLICT";
    case BEL_ESTALE:
        return "STALE";
    case BEL_EFULL:
    case BEL_ENOMEM:
    case BEL_EBUSY:
        return "FULL";
    case BEL_EIO:
    case BEL_ECORRUPT:
    case BEL_ECLOSED:
        return "IO";
    case BEL_EUNSUPPORTED:
        return "UNSUPPORTED";
    default:
        return "ERR";
    }
}

static void write_error(struct bel_resp_writer *writer, const struct bel_reply *reply)
{
    const char *why = reply->why[0] != 0 ? reply->why : bel_error_text(reply->err);
    bel__resp_error(writer, bel__reply_code(reply->err), why);
}

void bel__reply_write(struct bel_resp_writer *writer, enum bel_verb verb,
                      const struct bel_reply *reply, bool has_reason)
{
    assert(verb < BEL_VERBS && (!has_reason || verb == BEL_VERB_EXPLAIN));
    if (reply->err) {
        write_error(writer, reply);
    } else if (has_reason) {
        write_explanation(writer, reply);
    } else {
        writes[verb](writer, reply);
    }
}
