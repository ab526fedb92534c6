/* SPDX-License-Identifier: MIT */

/*
 * Replies, field by field. A map says first how many fields it has, and which ones it has depends
 * on the timer; so fields are gathered in a list, and written when all are known.
 */
#include "session/reply.h"

#include "commands/arguments.h"
#include "commands/commands.h"

#include <assert.h>
#include <stdio.h>

enum {
    FIELDS_MAX = 48,
    DELIVERY_FIELDS = 9,
    OUTCOME_FIELDS = 3,
};

enum field_kind {
    FIELD_TEXT,
    FIELD_VIEW,
    FIELD_NUMBER,
    FIELD_COUNT,
    FIELD_HEADERS,
    FIELD_OUTCOMES,
};

struct field {
    const char *name;
    enum field_kind kind;
    union {
        const char *text;
        struct bel_view view;
        int64_t number;
        uint64_t count;
        const struct bel_timer *timer; /* whose headers or outcomes */
    };
};

struct fields {
    struct field items[FIELDS_MAX];
    size_t count;
};

static void add(struct fields *fields, struct field field)
{
    assert(fields->count < FIELDS_MAX);
    fields->items[fields->count++] = field;
}

static void add_text(struct fields *fields, const char *name, const char *text)
{
    add(fields, (struct field){.name = name, .kind = FIELD_TEXT, .text = text});
}

static void add_view(struct fields *fields, const char *name, struct bel_view view)
{
    add(fields, (struct field){.name = name, .kind = FIELD_VIEW, .view = view});
}

static void add_view_unless_empty(struct fields *fields, const char *name, struct bel_view view)
{
    if (view.bytes > 0) add_view(fields, name, view);
}

static void add_time(struct fields *fields, const char *name, struct bel_wall time)
{
    add(fields, (struct field){.name = name, .kind = FIELD_NUMBER, .number = time.ms});
}

static void add_count(struct fields *fields, const char *name, uint64_t count)
{
    add(fields, (struct field){.name = name, .kind = FIELD_COUNT, .count = count});
}

static void add_count_unless_0(struct fields *fields, const char *name, uint64_t count)
{
    if (count > 0) add_count(fields, name, count);
}

/* --- a timer --- */

/* The word that SCHEDULE has for it. */
static const char *word_of(size_t place, unsigned index)
{
    return bel__commands[BEL_COMMAND_SCHEDULE].arguments[place].words[index];
}

static void add_plan(struct fields *fields, const struct bel_timer *timer)
{
    static const char *const kinds[] = {
        [BEL_PLAN_EVERY] = "every", [BEL_PLAN_CRON] = "cron", [BEL_PLAN_RRULE] = "rrule"};
    const struct bel_recurrence *plan = &timer->plan;
    add_view(fields, kinds[plan->kind], plan->rule);
    add_view_unless_empty(fields, "tz", plan->zone);
    add_text(fields, "mode", word_of(BEL_SCHEDULE_MODE, plan->mode));
    add_text(fields, "gap", word_of(BEL_SCHEDULE_GAP, plan->gap));
    add_text(fields, "fold", word_of(BEL_SCHEDULE_FOLD, plan->fold));
    add_text(fields, "misfire", word_of(BEL_SCHEDULE_MISFIRE, plan->misfire));
    add_text(fields, "overlap", word_of(BEL_SCHEDULE_OVERLAP, plan->overlap));
    if (plan->has_until) add_time(fields, "until_ms", plan->until);
    add_count_unless_0(fields, "count", plan->count);
    add_count_unless_0(fields, "spread_ms", plan->spread_ms);
    add_count(fields, "made", timer->made);
    add_count(fields, "skipped", timer->skipped);
    add_count(fields, "missed", timer->missed);
}

static void add_ends(struct fields *fields, const struct bel_timer *timer)
{
    if (timer->state >= BEL_DONE) add_time(fields, "finished_ms", timer->finished);
    add_view_unless_empty(fields, "reason", timer->reason);
    add_view_unless_empty(fields, "result", timer->result);
    if (timer->expires_ms > 0) {
        if (timer->expires.ms != 0) add_time(fields, "expires_ms", timer->expires);
        add_count(fields, "expires_after_ms", timer->expires_ms);
    }
    add_count_unless_0(fields, "lease_ms", timer->lease_ms);
    if (timer->state == BEL_LEASED) add_count(fields, "lease_left_ms", timer->lease_left_ms);
    add_view_unless_empty(fields, "worker", timer->worker);
}

static void add_timer(struct fields *fields, const struct bel_timer *timer)
{
    bool is_plan = timer->plan.rule.bytes > 0;
    add_view(fields, "id", timer->id);
    add_view(fields, "topic", timer->topic);
    add_text(fields, "state", bel_state_name(timer->state));
    add_view(fields, "payload", timer->payload);
    if (is_plan ? timer->has_next : timer->state != BEL_BLOCKED) {
        add_time(fields, "due_ms", timer->due);
    }
    add_count(fields, "priority", timer->priority);
    add_count(fields, "attempts", timer->attempts);
    add_count(fields, "crashes", timer->crashes);
    add_time(fields, "created_ms", timer->created);
    add_ends(fields, timer);
    add_view_unless_empty(fields, "group", timer->group);
    add_view_unless_empty(fields, "resource", timer->resource);
    add_view_unless_empty(fields, "correlation", timer->correlation);
    add_view_unless_empty(fields, "retry", timer->retry);
    if (timer->headers_count > 0) {
        add(fields, (struct field){.name = "headers", .kind = FIELD_HEADERS, .timer = timer});
    }
    if (timer->outcomes_count > 0) {
        add(fields, (struct field){.name = "outcomes", .kind = FIELD_OUTCOMES, .timer = timer});
    }
    if (is_plan) add_plan(fields, timer);
    if (timer->plan_id.bytes > 0) {
        add_view(fields, "plan", timer->plan_id);
        add_time(fields, "nominal_ms", timer->nominal);
    }
}

/* --- writing --- */

static void write_headers(struct bel_resp_writer *writer, const struct bel_header *headers,
                          size_t count)
{
    bel__resp_array(writer, 2 * count);
    for (size_t i = 0; i < count; i++) {
        bel__resp_bulk(writer, headers[i].name);
        bel__resp_bulk(writer, headers[i].value);
    }
}

static void write_outcomes(struct bel_resp_writer *writer, const struct bel_timer *timer)
{
    bel__resp_array(writer, timer->outcomes_count);
    for (size_t i = 0; i < timer->outcomes_count; i++) {
        const struct bel_outcome *outcome = &timer->outcomes[i];
        bel__resp_array(writer, OUTCOME_FIELDS);
        bel__resp_text(writer, outcome->kind == BEL_OUTCOME_CRASHED ? "crashed" : "failed");
        bel__resp_integer(writer, outcome->at.ms);
        bel__resp_bulk(writer, outcome->reason);
    }
}

static void write_field(struct bel_resp_writer *writer, const struct field *field)
{
    bel__resp_text(writer, field->name);
    switch (field->kind) {
    case FIELD_TEXT:
        bel__resp_text(writer, field->text);
        break;
    case FIELD_VIEW:
        bel__resp_bulk(writer, field->view);
        break;
    case FIELD_NUMBER:
        bel__resp_integer(writer, field->number);
        break;
    case FIELD_COUNT:
        bel__resp_count(writer, field->count);
        break;
    case FIELD_HEADERS:
        write_headers(writer, field->timer->headers, field->timer->headers_count);
        break;
    case FIELD_OUTCOMES:
        write_outcomes(writer, field->timer);
        break;
    }
}

static void write_timer(struct bel_resp_writer *writer, const struct bel_timer *timer)
{
    struct fields fields;
    fields.count = 0;
    add_timer(&fields, timer);
    bel__resp_map(writer, fields.count);
    for (size_t i = 0; i < fields.count; i++) {
        write_field(writer, &fields.items[i]);
    }
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

static void write_delivery(struct bel_resp_writer *writer, const struct bel_delivery *delivery)
{
    bel__resp_array(writer, DELIVERY_FIELDS);
    bel__resp_bulk(writer, delivery->token);
    bel__resp_bulk(writer, delivery->topic);
    bel__resp_bulk(writer, delivery->id);
    bel__resp_bulk(writer, delivery->payload);
    bel__resp_integer(writer, delivery->due.ms);
    bel__resp_count(writer, delivery->attempt);
    write_headers(writer, delivery->headers, delivery->headers_count);
    bel__resp_count(writer, delivery->lease_ms);
    if (delivery->correlation.bytes > 0) {
        bel__resp_bulk(writer, delivery->correlation);
    } else {
        bel__resp_null(writer);
    }
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
    bel__resp_array(writer, 2);
    bel__resp_text(writer, bel_state_name(reply->verdict.state));
    if (reply->verdict.state == BEL_SCHEDULED) {
        bel__resp_integer(writer, reply->verdict.due.ms);
    } else {
        bel__resp_null(writer);
    }
}

static void write_names(struct bel_resp_writer *writer, const struct bel_reply *reply)
{
    bel__resp_array(writer, reply->names.count);
    for (size_t i = 0; i < reply->names.count; i++) {
        bel__resp_bulk(writer, reply->names.items[i]);
    }
}

/* The settings stand beside the counts, under the names that CONFIGURE takes. */
static void write_topic(struct bel_resp_writer *writer, const struct bel_reply *reply)
{
    const struct bel_topic *topic = reply->topic;
    bel__resp_map(writer, 4 + BEL_STATES + topic->settings_count);
    bel__resp_text(writer, "topic");
    bel__resp_bulk(writer, topic->name);
    bel__resp_text(writer, "paused");
    bel__resp_boolean(writer, topic->paused);
    for (unsigned i = 0; i < BEL_STATES; i++) {
        bel__resp_text(writer, bel_state_name((enum bel_state)i));
        bel__resp_count(writer, topic->counts[i]);
    }
    bel__resp_text(writer, "plans");
    bel__resp_count(writer, topic->plans);
    bel__resp_text(writer, "oldest_age_ms");
    bel__resp_count(writer, topic->oldest_age_ms);
    for (size_t i = 0; i < topic->settings_count; i++) {
        bel__resp_bulk(writer, topic->settings[i].name);
        bel__resp_bulk(writer, topic->settings[i].value);
    }
}

static void write_steps(struct bel_resp_writer *writer, const struct bel_reply *reply)
{
    bel__resp_array(writer, reply->steps.count);
    for (size_t i = 0; i < reply->steps.count; i++) {
        bel__resp_array(writer, 2);
        bel__resp_integer(writer, reply->steps.items[i].start.ms);
        bel__resp_count(writer, reply->steps.items[i].count);
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
    [BEL_VERB_AGENDA] = write_steps,
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
    default:
        return "ERR";
    }
}

static void write_error(struct bel_resp_writer *writer, const struct bel_reply *reply)
{
    char text[sizeof reply->why + 40];
    if (reply->err != BEL_EUNSUPPORTED) {
        const char *why = reply->why[0] != 0 ? reply->why : bel_error_text(reply->err);
        bel__resp_error(writer, bel__reply_code(reply->err), why);
        return;
    }
    (void)snprintf(text, sizeof text, "not available on this store%s%s",
                   reply->why[0] != 0 ? ": " : "", reply->why);
    bel__resp_error(writer, "ERR", text);
}

void bel__reply_write(struct bel_resp_writer *writer, enum bel_verb verb,
                      const struct bel_reply *reply)
{
    assert(verb < BEL_VERBS);
    if (reply->err) {
        write_error(writer, reply);
    } else {
        writes[verb](writer, reply);
    }
}
