/* SPDX-License-Identifier: MIT */

/*
 * Converts replies to JSON, field by field, following the table commands/fields.h. Bytes that are
 * not UTF-8 are encoded in base64, under a name that ends in _base64. Recording a page costs about
 * as much as copying the reply; the text is made later, in slices. If memory runs out, the page is
 * replaced by an error, or lost if the command may have changed something.
 */
#include "http/page.h"

#include "commands/field_value.h"
#include "core/utf8.h"
#include "core/view.h"
#include "session/reply.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    ITEM_BYTES = 640,   /* of a timer without its payload, usually */
    HEADERS_SEEN = 256, /* more than the engine ever delivers */
};

/* --- headers of a timer --- */

/* Returns whether the value of a header is JSON by its media type, whose case and parameters do not
 * matter. */
static bool is_json_type(struct bel_view value)
{
    static const char json[] = "application/json";
    const char *text = value.data;
    size_t bytes = sizeof json - 1;
    if (value.bytes < bytes || strncasecmp(text, json, bytes) != 0) return false;
    while (bytes < value.bytes && (text[bytes] == ' ' || text[bytes] == '\t')) {
        bytes++;
    }
    return bytes == value.bytes || text[bytes] == ';';
}

static bool has_json_type(const struct bel_header *headers, size_t count)
{
    static const char name[] = "content-type";
    for (size_t i = 0; i < count; i++) {
        if (headers[i].name.bytes != sizeof name - 1) continue;
        if (strncasecmp(headers[i].name.data, name, sizeof name - 1) != 0) continue;
        if (is_json_type(headers[i].value)) return true;
    }
    return false;
}

/* The headers of a timer, and how JSON shows each. */
struct headers {
    const struct bel_header *items;
    size_t count;
    enum {
        SHOWN_NOT,
        SHOWN_TEXT,
        SHOWN_BASE64
    } kinds[HEADERS_SEEN];
};

/* Returns whether two headers have the same name in JSON. */
static bool is_same_name(const struct headers *headers, size_t a, size_t b)
{
    static const char suffix[] = "_base64";
    if (headers->kinds[a] == headers->kinds[b]) {
        return bel__view_equal(headers->items[a].name, headers->items[b].name);
    }
    if (headers->kinds[a] == SHOWN_BASE64) return is_same_name(headers, b, a);
    struct bel_view whole = headers->items[a].name, start = headers->items[b].name;
    if (headers->kinds[b] != SHOWN_BASE64 || whole.bytes != start.bytes + sizeof suffix - 1) {
        return false;
    }
    const char *end = (const char *)whole.data + start.bytes;
    whole.bytes = start.bytes;
    return memcmp(end, suffix, sizeof suffix - 1) == 0 && bel__view_equal(whole, start);
}

/* Returns the first header from `from` on with the name of header `i`; `to` if there is none. */
static size_t find_same(const struct headers *headers, size_t i, size_t from, size_t to)
{
    for (; from < to; from++) {
        if (headers->kinds[from] != SHOWN_NOT && is_same_name(headers, i, from)) break;
    }
    return from;
}

static void put_header_value(struct bel_json_stream *body, const struct headers *headers, size_t i)
{
    if (headers->kinds[i] == SHOWN_TEXT) {
        bel__json_text(body, headers->items[i].value);
    } else {
        bel__json_base64(body, headers->items[i].value);
    }
}

/* Puts a header, together with the later ones of its name in an array. */
static void put_header(struct bel_json_stream *body, const struct headers *headers, size_t i)
{
    size_t next = find_same(headers, i, i + 1, headers->count);
    bool is_repeated = next < headers->count;
    bel__json_name_with(body, headers->items[i].name,
                        headers->kinds[i] == SHOWN_BASE64 ? "_base64" : "");
    if (is_repeated) bel__json_open(body, '[');
    put_header_value(body, headers, i);
    while (next < headers->count) {
        put_header_value(body, headers, next);
        next = find_same(headers, i, next + 1, headers->count);
    }
    if (is_repeated) bel__json_close(body, ']');
}

/* Puts headers as an object. A name that is not UTF-8 cannot be represented in JSON; its header is
 * left out. */
static void put_headers(struct bel_json_stream *body, const struct bel_header *items, size_t count)
{
    struct headers headers = {.items = items, .count = count};
    assert(count <= HEADERS_SEEN);
    for (size_t i = 0; i < count; i++) {
        bool is_text = bel__utf8_is_text(items[i].value);
        headers.kinds[i] = is_text ? SHOWN_TEXT : SHOWN_BASE64;
        if (!bel__utf8_is_text(items[i].name)) headers.kinds[i] = SHOWN_NOT;
    }
    bel__json_open(body, '{');
    for (size_t i = 0; i < count; i++) {
        if (headers.kinds[i] == SHOWN_NOT || find_same(&headers, i, 0, i) < i) continue;
        put_header(body, &headers, i);
    }
    bel__json_close(body, '}');
}

/* --- fields of the table --- */

static void put_text(struct bel_json_stream *body, const char *name, const char *text)
{
    bel__json_name(body, (struct bel_view){name, strlen(name)});
    bel__json_text(body, (struct bel_view){text, strlen(text)});
}

static void put_count(struct bel_json_stream *body, const char *name, uint64_t count)
{
    bel__json_name(body, (struct bel_view){name, strlen(name)});
    bel__json_number(body, count > INT64_MAX ? INT64_MAX : (int64_t)count);
}

/* Puts a field whose value is a text, a number or a boolean. */
static void put_scalar(struct bel_json_stream *body, const struct bel_field *field,
                       const void *from)
{
    const char *name = field->name.data;
    switch (field->type) {
    case BEL_FIELD_TEXT:
    case BEL_FIELD_BYTES:
        bel__json_bytes(body, field->name, bel__field_bytes(field, from), BEL_JSON_NEVER);
        break;
    case BEL_FIELD_STATE:
    case BEL_FIELD_JOB_STATE:
    case BEL_FIELD_WORD:
    case BEL_FIELD_OUTCOME:
    case BEL_FIELD_BREAKER_STATE:
        put_text(body, name, bel__field_word(field, from));
        break;
    case BEL_FIELD_BOOLEAN:
        bel__json_name(body, field->name);
        bel__json_word(body, bel__field_is_true(field, from) ? "true" : "false");
        break;
    case BEL_FIELD_SMALL:
        put_count(body, name, bel__field_small(field, from));
        break;
    case BEL_FIELD_COUNT:
    case BEL_FIELD_DURATION:
        put_count(body, name, bel__field_count(field, from));
        break;
    case BEL_FIELD_INSTANT:
        bel__json_name(body, field->name);
        bel__json_number(body, bel__field_ms(field, from));
        break;
    default:
        assert(false);
    }
}

/* Puts the fields that are present, of a kind without lists and payloads. */
static void put_flat(struct bel_json_stream *body, enum bel_shown_kind kind, const void *from,
                     unsigned facts)
{
    const struct bel_shown *shown = &bel__shown[kind];
    for (size_t i = 0; i < shown->count; i++) {
        const struct bel_field *field = &shown->fields[i];
        if (bel__field_is_there(field, from, facts)) put_scalar(body, field, from);
    }
}

static void put_outcomes(struct bel_json_stream *body, const struct bel_timer *timer)
{
    bel__json_open(body, '[');
    for (size_t i = 0; i < timer->outcomes_count; i++) {
        bel__json_open(body, '{');
        put_flat(body, BEL_SHOWN_OUTCOME, &timer->outcomes[i], 0);
        bel__json_close(body, '}');
    }
    bel__json_close(body, ']');
}

/* Puts the results of dependencies; one that is missing is null. */
static void put_results(struct bel_json_stream *body, const struct bel_task_result *results,
                        size_t count)
{
    bel__json_open(body, '[');
    for (size_t i = 0; i < count; i++) {
        bel__json_open(body, '{');
        bel__json_name(body, BEL_VIEW("task"));
        bel__json_text(body, results[i].task);
        if (results[i].has_result) {
            bel__json_bytes(body, BEL_VIEW("result"), results[i].result, BEL_JSON_NEVER);
        } else {
            bel__json_name(body, BEL_VIEW("result"));
            bel__json_word(body, "null");
        }
        bel__json_close(body, '}');
    }
    bel__json_close(body, ']');
}

/* Puts a field of a timer or a delivery. The headers determine the type of the payload. */
static void put_field(struct bel_json_stream *body, const struct bel_field *field, const void *from,
                      const struct bel_header *headers, size_t headers_count)
{
    bool is_json = false;
    switch (field->type) {
    case BEL_FIELD_PAYLOAD:
        is_json = has_json_type(headers, headers_count);
        bel__json_bytes(body, field->name, bel__field_bytes(field, from),
                        is_json ? BEL_JSON_PERHAPS : BEL_JSON_NEVER);
        break;
    case BEL_FIELD_HEADERS:
        bel__json_name(body, field->name);
        put_headers(body, headers, headers_count);
        break;
    case BEL_FIELD_OUTCOMES:
        bel__json_name(body, field->name);
        put_outcomes(body, from);
        break;
    case BEL_FIELD_RESULTS:
        bel__json_name(body, field->name);
        put_results(body, bel__field_items(field, from), bel__field_count(field, from));
        break;
    default:
        put_scalar(body, field, from);
    }
}

static void put_timer(struct bel_json_stream *body, const struct bel_timer *timer)
{
    const struct bel_shown *shown = &bel__shown[BEL_SHOWN_TIMER];
    uint64_t there = bel__timer_fields_there(timer);
    bel__json_open(body, '{');
    for (size_t i = 0; i < shown->count; i++) {
        if ((there >> i & 1) == 0) continue;
        put_field(body, &shown->fields[i], timer, timer->headers, timer->headers_count);
    }
    bel__json_close(body, '}');
}

static void put_delivery(struct bel_json_stream *body, const struct bel_delivery *delivery)
{
    const struct bel_shown *shown = &bel__shown[BEL_SHOWN_DELIVERY];
    bel__json_open(body, '{');
    for (size_t i = 0; i < shown->count; i++) {
        const struct bel_field *field = &shown->fields[i];
        if (!bel__field_is_there(field, delivery, 0)) continue;
        put_field(body, field, delivery, delivery->headers, delivery->headers_count);
    }
    bel__json_close(body, '}');
}

static void put_topic(struct bel_json_stream *body, const struct bel_topic *topic)
{
    const struct bel_shown *shown = &bel__shown[BEL_SHOWN_TOPIC];
    unsigned facts = bel__topic_facts(topic);
    for (size_t i = 0; i < shown->count; i++) {
        const struct bel_field *field = &shown->fields[i];
        if (field->type != BEL_FIELD_SETTINGS) {
            if (bel__field_is_there(field, topic, facts)) put_scalar(body, field, topic);
            continue;
        }
        bel__json_name(body, field->name);
        bel__json_open(body, '{');
        for (size_t k = 0; k < topic->settings_count; k++) {
            bel__json_bytes(body, topic->settings[k].name, topic->settings[k].value,
                            BEL_JSON_NEVER);
        }
        bel__json_close(body, '}');
    }
}

/* --- lists --- */

static void open_list(struct bel_json_stream *body, const char *name)
{
    bel__json_name(body, (struct bel_view){name, strlen(name)});
    bel__json_open(body, '[');
}

static void put_cursor(struct bel_json_stream *body, struct bel_view cursor)
{
    bel__json_name(body, BEL_VIEW("cursor"));
    if (cursor.bytes > 0) {
        bel__json_text(body, cursor);
    } else {
        bel__json_word(body, "null");
    }
}

static void put_timers(struct bel_json_stream *body, const struct bel_reply *reply)
{
    open_list(body, bel__shown[BEL_SHOWN_TIMER].list);
    for (size_t i = 0; i < reply->timers.count; i++) {
        put_timer(body, &reply->timers.items[i]);
    }
    bel__json_close(body, ']');
    put_cursor(body, reply->timers.cursor);
}

static void put_deliveries(struct bel_json_stream *body, const struct bel_reply *reply)
{
    open_list(body, bel__shown[BEL_SHOWN_DELIVERY].list);
    for (size_t i = 0; i < reply->deliveries.count; i++) {
        put_delivery(body, &reply->deliveries.items[i]);
    }
    bel__json_close(body, ']');
}

static void put_names(struct bel_json_stream *body, const char *name, const struct bel_reply *reply)
{
    open_list(body, name);
    for (size_t i = 0; i < reply->names.count; i++) {
        bel__json_text(body, reply->names.items[i]);
    }
    bel__json_close(body, ']');
}

static void put_reason(struct bel_json_stream *body, const struct bel_reason *reason)
{
    put_text(body, "reason", reason->word);
    bel__json_name(body, BEL_VIEW("until_ms"));
    if (reason->has_until) {
        bel__json_number(body, reason->until.ms);
    } else {
        bel__json_word(body, "null");
    }
    bel__json_name(body, BEL_VIEW("by"));
    if (reason->by.bytes > 0) {
        bel__json_text(body, reason->by);
    } else {
        bel__json_word(body, "null");
    }
}

static void put_steps(struct bel_json_stream *body, const struct bel_reply *reply)
{
    open_list(body, bel__shown[BEL_SHOWN_STEP].list);
    for (size_t i = 0; i < reply->steps.count; i++) {
        bel__json_open(body, '{');
        put_flat(body, BEL_SHOWN_STEP, &reply->steps.items[i], 0);
        bel__json_close(body, '}');
    }
    bel__json_close(body, ']');
}

/* --- jobs --- */

static void put_afters(struct bel_json_stream *body, const struct bel_job_task *task)
{
    bel__json_open(body, '[');
    for (size_t i = 0; i < task->after_count; i++) {
        bel__json_open(body, '{');
        bel__json_name(body, BEL_VIEW("task"));
        bel__json_text(body, task->after[i].task);
        put_text(body, "on", bel_edge_policy_name(task->after[i].on));
        bel__json_close(body, '}');
    }
    bel__json_close(body, ']');
}

static void put_task(struct bel_json_stream *body, const struct bel_job_task *task)
{
    const struct bel_shown *shown = &bel__shown[BEL_SHOWN_TASK];
    unsigned facts = bel__task_facts(task);
    bel__json_open(body, '{');
    for (size_t i = 0; i < shown->count; i++) {
        const struct bel_field *field = &shown->fields[i];
        if (!bel__field_is_there(field, task, facts)) continue;
        if (field->type == BEL_FIELD_AFTERS) {
            bel__json_name(body, field->name);
            put_afters(body, task);
        } else {
            put_scalar(body, field, task);
        }
    }
    bel__json_close(body, '}');
}

static void put_counts(struct bel_json_stream *body, const uint64_t *counts)
{
    bel__json_open(body, '{');
    for (unsigned state = 0; state < BEL_STATES; state++) {
        put_count(body, bel_state_name((enum bel_state)state), counts[state]);
    }
    bel__json_close(body, '}');
}

static void put_tasks(struct bel_json_stream *body, const struct bel_job *job)
{
    bel__json_open(body, '[');
    for (size_t i = 0; i < job->tasks_count; i++) {
        put_task(body, &job->tasks[i]);
    }
    bel__json_close(body, ']');
}

/* Puts the fields of a job, with its tasks if it is whole. */
static void put_job(struct bel_json_stream *body, const struct bel_job *job, bool is_whole)
{
    const struct bel_shown *shown = &bel__shown[BEL_SHOWN_JOB];
    unsigned facts = bel__job_facts(job, is_whole);
    for (size_t i = 0; i < shown->count; i++) {
        const struct bel_field *field = &shown->fields[i];
        if (!bel__field_is_there(field, job, facts)) continue;
        switch (field->type) {
        case BEL_FIELD_TASKS:
            bel__json_name(body, field->name);
            put_tasks(body, job);
            break;
        case BEL_FIELD_COUNTS:
            bel__json_name(body, field->name);
            put_counts(body, bel__field_counts(field, job));
            break;
        case BEL_FIELD_PROGRESS:
            put_count(body, field->name.data, bel__counts_progress(bel__field_counts(field, job)));
            break;
        default:
            put_scalar(body, field, job);
        }
    }
}

static void put_jobs(struct bel_json_stream *body, const struct bel_reply *reply)
{
    open_list(body, bel__shown[BEL_SHOWN_JOB].list);
    for (size_t i = 0; i < reply->jobs.count; i++) {
        bel__json_open(body, '{');
        put_job(body, &reply->jobs.items[i], false);
        bel__json_close(body, '}');
    }
    bel__json_close(body, ']');
    put_cursor(body, reply->jobs.cursor);
}

/* --- resources --- */

static void put_reports(struct bel_json_stream *body, const struct bel_limit_state *state)
{
    bel__json_open(body, '[');
    for (size_t i = 0; i < state->reports_count; i++) {
        bel__json_open(body, '{');
        put_flat(body, BEL_SHOWN_REPORT, &state->reports[i], 0);
        bel__json_close(body, '}');
    }
    bel__json_close(body, ']');
}

static void put_resource(struct bel_json_stream *body, const struct bel_limit_state *state)
{
    const struct bel_shown *shown = &bel__shown[BEL_SHOWN_RESOURCE];
    unsigned facts = bel__resource_facts(state);
    for (size_t i = 0; i < shown->count; i++) {
        const struct bel_field *field = &shown->fields[i];
        if (!bel__field_is_there(field, state, facts)) continue;
        switch (field->type) {
        case BEL_FIELD_BREAKER:
            bel__json_name(body, field->name);
            bel__json_open(body, '{');
            put_flat(body, BEL_SHOWN_BREAKER, state, facts);
            bel__json_close(body, '}');
            break;
        case BEL_FIELD_REPORTS:
            bel__json_name(body, field->name);
            put_reports(body, state);
            break;
        default:
            put_scalar(body, field, state);
        }
    }
}

static void put_limits(struct bel_json_stream *body, const struct bel_limit_reply *limits)
{
    switch (limits->action) {
    case BEL_LIMIT_LIST:
        open_list(body, bel__shown[BEL_SHOWN_RESOURCE].list);
        for (size_t i = 0; i < limits->count; i++) {
            bel__json_open(body, '{');
            put_resource(body, &limits->items[i]);
            bel__json_close(body, '}');
        }
        bel__json_close(body, ']');
        put_cursor(body, limits->cursor);
        break;
    case BEL_LIMIT_CLEAR_ALL:
    case BEL_LIMIT_DELETE:
        put_count(body, "count", limits->changed);
        break;
    default:
        put_resource(body, &limits->items[0]);
    }
}

/* --- pages --- */

/* Returns the error code of a reply that is nil or 0 in RESP but an error over HTTP; otherwise
 * NULL. */
static const char *missing(enum bel_verb verb, const struct bel_reply *reply)
{
    switch (verb) {
    case BEL_VERB_GET:
        return reply->timers.count == 0 ? "NOTFOUND" : NULL;
    case BEL_VERB_CANCEL:
    case BEL_VERB_RESCHEDULE:
        return reply->count == 0 ? "NOTFOUND" : NULL;
    case BEL_VERB_ACK:
        return reply->count == 0 ? "STALE" : NULL;
    case BEL_VERB_LIMIT:
        return reply->limits.action == BEL_LIMIT_DELETE && reply->limits.changed == 0 ? "NOTFOUND"
                                                                                      : NULL;
    default:
        return NULL;
    }
}

static void fill(struct bel_json_stream *body, const struct bel_command *command,
                 const struct bel_reply *reply)
{
    switch (command->verb) {
    case BEL_VERB_SCHEDULE:
        bel__json_bytes(body, BEL_VIEW("topic"), command->schedule.topic, BEL_JSON_NEVER);
        bel__json_bytes(body, BEL_VIEW("id"), reply->id, BEL_JSON_NEVER);
        break;
    case BEL_VERB_CLAIM:
        put_deliveries(body, reply);
        break;
    case BEL_VERB_FAIL:
        put_flat(body, BEL_SHOWN_VERDICT, &reply->verdict, bel__verdict_facts(&reply->verdict));
        break;
    case BEL_VERB_EXTEND:
        put_count(body, "lease_left_ms", reply->count);
        break;
    case BEL_VERB_LIMIT:
        put_limits(body, &reply->limits);
        break;
    case BEL_VERB_LIST:
        put_timers(body, reply);
        break;
    case BEL_VERB_TOPICS:
        put_names(body, "topics", reply);
        break;
    case BEL_VERB_TOPIC:
        put_topic(body, reply->topic);
        break;
    case BEL_VERB_EXPLAIN:
        if (reply->names.reason != NULL) put_reason(body, reply->names.reason);
        put_names(body, "lines", reply);
        break;
    case BEL_VERB_AGENDA:
        put_steps(body, reply);
        break;
    case BEL_VERB_JOB_SUBMIT:
        put_flat(body, BEL_SHOWN_SUBMITTED, &reply->submitted, 0);
        break;
    case BEL_VERB_JOB_GET:
        put_job(body, reply->job, true);
        break;
    case BEL_VERB_JOB_LIST:
        put_jobs(body, reply);
        break;
    default:
        put_count(body, "count", reply->count);
        break;
    }
}

/* Returns about how many bytes the page of a reply takes. */
static size_t estimate(enum bel_verb verb, const struct bel_reply *reply)
{
    size_t bytes = ITEM_BYTES;
    bool is_timers = verb == BEL_VERB_LIST || verb == BEL_VERB_GET;
    for (size_t i = 0; is_timers && i < reply->timers.count; i++) {
        bytes += ITEM_BYTES + reply->timers.items[i].payload.bytes;
    }
    for (size_t i = 0; verb == BEL_VERB_CLAIM && i < reply->deliveries.count; i++) {
        bytes += ITEM_BYTES + reply->deliveries.items[i].payload.bytes;
    }
    return bytes;
}

/* Returns whether a command changes nothing, or, as CLAIM, is undone if its reply is not sent. */
static bool is_harmless(enum bel_verb verb)
{
    switch (verb) {
    case BEL_VERB_CLAIM:
    case BEL_VERB_GET:
    case BEL_VERB_LIST:
    case BEL_VERB_TOPICS:
    case BEL_VERB_TOPIC:
    case BEL_VERB_EXPLAIN:
    case BEL_VERB_AGENDA:
    case BEL_VERB_JOB_GET:
    case BEL_VERB_JOB_LIST:
        return true;
    default:
        return false;
    }
}

static bool is_silent(enum bel_verb verb)
{
    return verb == BEL_VERB_CONFIGURE || verb == BEL_VERB_PAUSE || verb == BEL_VERB_RESUME;
}

/* Appends a percent-encoded path segment. Returns the new length. */
static size_t put_segment(char *out, size_t used, struct bel_view text)
{
    static const char hex[] = "0123456789ABCDEF";
    const unsigned char *bytes = text.data;
    for (size_t i = 0; i < text.bytes && used + 4 < BEL_HTTP_LOCATION_BYTES; i++) {
        bool is_plain = bytes[i] > ' ' && bytes[i] < 0x7f && strchr("/%?#", bytes[i]) == NULL;
        if (is_plain) {
            out[used++] = (char)bytes[i];
        } else {
            out[used++] = '%';
            out[used++] = hex[bytes[i] >> 4];
            out[used++] = hex[bytes[i] & 15];
        }
    }
    out[used] = 0;
    return used;
}

static void set_location(struct bel_http_page *page, struct bel_view topic, struct bel_view id)
{
    char *text = page->location;
    if (id.bytes > BEL_ID_BYTES) return; /* an id of the layout faststream may be any text */
    int bytes = snprintf(text, BEL_HTTP_LOCATION_BYTES, "/v1/topics/");
    size_t used = put_segment(text, (size_t)bytes, topic);
    const char *rest = id.bytes > 0 ? "/timers/" : "/timers?id=";
    bytes = snprintf(text + used, BEL_HTTP_LOCATION_BYTES - used, "%s", rest);
    (void)put_segment(text, used + (size_t)bytes, id);
}

static void set_job_location(struct bel_http_page *page, struct bel_view id)
{
    int bytes = snprintf(page->location, BEL_HTTP_LOCATION_BYTES, "/v1/jobs/");
    (void)put_segment(page->location, (size_t)bytes, id);
}

static struct bel_http_page error_page(const struct bel_reply *reply)
{
    const char *text = reply->why[0] != 0 ? reply->why : bel_error_text(reply->err);
    return bel__http_problem(bel__reply_code(reply->err), text);
}

static struct bel_http_page missing_page(const struct bel_command *command, const char *code)
{
    enum bel_verb verb = command->verb;
    if (verb == BEL_VERB_LIMIT) {
        char text[BEL_REPLY_WHY_BYTES];
        struct bel_view name = command->limit.resource;
        (void)snprintf(text, sizeof text, "resource '%.*s' has no limits", (int)name.bytes,
                       (const char *)name.data);
        return bel__http_problem(code, text);
    }
    return bel__http_problem(code, verb == BEL_VERB_ACK      ? "the lease has ended"
                                   : verb == BEL_VERB_GET    ? "no such timer"
                                   : verb == BEL_VERB_CANCEL ? "no such unfinished timer"
                                                             : "no such scheduled or ready timer");
}

struct bel_http_page bel__http_page(const struct bel_http_question *question,
                                    const struct bel_reply *reply)
{
    enum bel_verb verb = question->command->verb;
    if (reply->err) return error_page(reply);
    const char *code = missing(verb, reply);
    if (code != NULL) return missing_page(question->command, code);
    struct bel_http_page page = {.status = question->is_create ? 201 : 200,
                                 .type = "application/json"};
    bel__json_init(&page.body);
    if (is_silent(verb)) return (struct bel_http_page){.status = 204, .body = page.body};
    bel__json_expect(&page.body, estimate(verb, reply));
    if (verb == BEL_VERB_GET) {
        put_timer(&page.body, &reply->timers.items[0]);
    } else {
        bel__json_open(&page.body, '{');
        fill(&page.body, question->command, reply);
        bel__json_close(&page.body, '}');
    }
    page.is_lost = page.body.is_lost;
    if (page.is_lost && is_harmless(verb)) {
        bel__http_page_finish(&page);
        return bel__http_problem("FULL", "out of memory: try again");
    }
    if (question->is_create && verb == BEL_VERB_JOB_SUBMIT) {
        set_job_location(&page, reply->submitted.id);
    } else if (question->is_create) {
        set_location(&page, question->topic, reply->id);
    }
    return page;
}

struct bel_http_page bel__http_page_of_text(unsigned status, const char *type, struct bel_view text)
{
    struct bel_http_page page = {.status = status, .type = type};
    bel__json_init(&page.body);
    bel__json_raw(&page.body, text);
    page.is_lost = page.body.is_lost;
    return page;
}

void bel__http_page_finish(struct bel_http_page *page)
{
    bel__json_finish(&page->body);
}
