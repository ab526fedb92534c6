/* SPDX-License-Identifier: MIT */

/*
 * Converts replies to JSON, field by field, following the table commands/fields.h. Bytes that are
 * not UTF-8 are encoded in base64, under a name that ends in _base64. If memory runs out for one
 * field, the whole page is replaced by an error, or lost if the command may have changed something.
 */
#include "http/call.h"

#include "commands/field_value.h"
#include "core/base64.h"
#include "core/shorten.h"
#include "core/utf8.h"
#include "core/view.h"
#include "session/reply.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PAGE_BYTES_MAX = 128 << 20, /* maximum sum of the payloads of a reply */
    PAYLOAD_FLAGS = JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES,
};

/* --- texts --- */

/* A growing text. */
struct text {
    char *bytes;
    size_t count, capacity;
    bool is_lost;
};

static int write_text(const char *bytes, size_t count, void *context)
{
    struct text *text = context;
    if (text->is_lost) return -1;
    if (count >= text->capacity - text->count) {
        size_t capacity = 2 * text->capacity + count + 1;
        char *larger = realloc(text->bytes, capacity);
        text->is_lost = larger == NULL;
        if (larger == NULL) return -1;
        text->bytes = larger;
        text->capacity = capacity;
    }
    memcpy(text->bytes + text->count, bytes, count);
    text->count += count;
    text->bytes[text->count] = 0;
    return 0;
}

/* Parses twice on failure, because jansson may report a failed allocation as a syntax error. In
 * other cases it reports an unknown error. */
json_t *bel__http_load(struct bel_view text, size_t flags, json_error_t *error, bool *is_memory)
{
    json_t *json = NULL;
    for (int i = 0; i < 2 && json == NULL; i++) {
        json = json_loadb(text.data, text.bytes, flags, error);
    }
    enum json_error_code code = json == NULL ? json_error_code(error) : json_error_invalid_syntax;
    *is_memory = code == json_error_out_of_memory || code == json_error_unknown;
    return json;
}

char *bel__http_dump(const json_t *value, size_t flags)
{
    struct text text = {0};
    int failed = json_dump_callback(value, write_text, &text, flags);
    if (failed != 0 || text.is_lost) {
        free(text.bytes);
        return NULL;
    }
    if (text.bytes != NULL) bel__shorten_numbers(text.bytes);
    return text.bytes;
}

/* --- fields --- */

/* A JSON object under construction. */
struct builder {
    json_t *object;
    bool is_lost;
};

static struct builder builder_create(void)
{
    struct builder builder = {json_object(), false};
    builder.is_lost = builder.object == NULL;
    return builder;
}

static void set(struct builder *builder, const char *name, json_t *value)
{
    if (json_object_set_new(builder->object, name, value) != 0) builder->is_lost = true;
}

static void set_text(struct builder *builder, const char *name, const char *text)
{
    set(builder, name, json_string(text));
}

static void set_number(struct builder *builder, const char *name, int64_t number)
{
    set(builder, name, json_integer(number));
}

static void set_count(struct builder *builder, const char *name, uint64_t count)
{
    set(builder, name, json_integer(count > INT64_MAX ? INT64_MAX : (json_int_t)count));
}

/* Adds a text under a name and takes ownership of it. A repeated name gets an array of texts. */
static void add_text(struct builder *builder, struct bel_view name, json_t *text)
{
    json_t *known = json_object_getn(builder->object, name.data, name.bytes);
    int failed;
    if (json_is_array(known)) {
        failed = json_array_append_new(known, text);
    } else {
        if (known != NULL) text = json_pack("[O, o]", known, text);
        failed = json_object_setn_new_nocheck(builder->object, name.data, name.bytes, text);
    }
    if (failed) builder->is_lost = true;
}

/* Adds bytes under a name, in base64 if they are not UTF-8. A name that is not UTF-8 cannot be
 * represented in JSON; the entry is left out. */
static void set_bytes_as(struct builder *builder, struct bel_view name, struct bel_view value)
{
    char long_name[BEL_TEXT_BYTES_MAX + 8];
    if (!bel__utf8_is_text(name)) return;
    if (bel__utf8_is_text(value)) {
        add_text(builder, name,
                 json_stringn_nocheck(value.bytes > 0 ? value.data : "", value.bytes));
        return;
    }
    char *base64 = bel__base64_encode(value);
    (void)snprintf(long_name, sizeof long_name, "%.*s_base64",
                   (int)(name.bytes < BEL_TEXT_BYTES_MAX ? name.bytes : BEL_TEXT_BYTES_MAX),
                   (const char *)name.data);
    add_text(builder, (struct bel_view){long_name, strlen(long_name)},
             base64 != NULL ? json_string_nocheck(base64) : NULL);
    free(base64);
}

static void set_bytes(struct builder *builder, const char *name, struct bel_view value)
{
    set_bytes_as(builder, (struct bel_view){name, strlen(name)}, value);
}

/* Sets the payload: as a JSON value if its content-type is application/json and it is valid JSON,
 * otherwise as bytes. */
static void set_payload(struct builder *builder, struct bel_view payload,
                        const struct bel_header *headers, size_t count)
{
    json_t *value = NULL;
    json_error_t error;
    bool is_memory;
    for (size_t i = 0; i < count && value == NULL; i++) {
        if (!bel__view_is(headers[i].name, "content-type")) continue;
        if (!bel__view_is(headers[i].value, "application/json")) continue;
        value = bel__http_load(payload, PAYLOAD_FLAGS, &error, &is_memory);
        if (is_memory) builder->is_lost = true;
    }
    if (value != NULL) {
        set(builder, "payload", value);
    } else {
        set_bytes(builder, "payload", payload);
    }
}

/* --- fields of the table --- */

/* Sets a field whose value is a text, a number or a boolean. */
static void set_scalar(struct builder *builder, const struct bel_field *field, const void *from)
{
    const char *name = field->name.data;
    switch (field->type) {
    case BEL_FIELD_TEXT:
    case BEL_FIELD_BYTES:
        set_bytes_as(builder, field->name, bel__field_bytes(field, from));
        break;
    case BEL_FIELD_STATE:
    case BEL_FIELD_WORD:
    case BEL_FIELD_OUTCOME:
        set_text(builder, name, bel__field_word(field, from));
        break;
    case BEL_FIELD_BOOLEAN:
        set(builder, name, json_boolean(bel__field_is_true(field, from)));
        break;
    case BEL_FIELD_SMALL:
        set_count(builder, name, bel__field_small(field, from));
        break;
    case BEL_FIELD_COUNT:
    case BEL_FIELD_DURATION:
        set_count(builder, name, bel__field_count(field, from));
        break;
    case BEL_FIELD_INSTANT:
        set_number(builder, name, bel__field_ms(field, from));
        break;
    default:
        assert(false);
    }
}

/* Sets the fields that are present, of a kind without lists and payloads. */
static void set_flat(struct builder *builder, enum bel_shown_kind kind, const void *from,
                     unsigned facts)
{
    const struct bel_shown *shown = &bel__shown[kind];
    for (size_t i = 0; i < shown->count; i++) {
        const struct bel_field *field = &shown->fields[i];
        if (bel__field_is_there(field, from, facts)) set_scalar(builder, field, from);
    }
}

static void append(struct builder *builder, json_t *list, const struct builder *item)
{
    if (json_array_append_new(list, item->object) != 0 || item->is_lost) builder->is_lost = true;
}

static void set_outcomes(struct builder *builder, const struct bel_field *field,
                         const struct bel_timer *timer)
{
    json_t *list = json_array();
    for (size_t i = 0; i < timer->outcomes_count; i++) {
        struct builder item = builder_create();
        set_flat(&item, BEL_SHOWN_OUTCOME, &timer->outcomes[i], 0);
        append(builder, list, &item);
    }
    set(builder, field->name.data, list);
}

static void set_headers(struct builder *builder, const struct bel_field *field,
                        const struct bel_header *headers, size_t count)
{
    struct builder inner = builder_create();
    for (size_t i = 0; i < count; i++) {
        set_bytes_as(&inner, headers[i].name, headers[i].value);
    }
    if (inner.is_lost) builder->is_lost = true;
    set(builder, field->name.data, inner.object);
}

static void set_settings(struct builder *builder, const struct bel_field *field,
                         const struct bel_topic *topic)
{
    struct builder inner = builder_create();
    for (size_t i = 0; i < topic->settings_count; i++) {
        set_bytes_as(&inner, topic->settings[i].name, topic->settings[i].value);
    }
    if (inner.is_lost) builder->is_lost = true;
    set(builder, field->name.data, inner.object);
}

/* Sets a field of a timer or a delivery. The headers determine the type of the payload. */
static void set_field(struct builder *builder, const struct bel_field *field, const void *from,
                      const struct bel_header *headers, size_t headers_count)
{
    switch (field->type) {
    case BEL_FIELD_PAYLOAD:
        set_payload(builder, bel__field_bytes(field, from), headers, headers_count);
        break;
    case BEL_FIELD_HEADERS:
        set_headers(builder, field, headers, headers_count);
        break;
    case BEL_FIELD_OUTCOMES:
        set_outcomes(builder, field, from);
        break;
    default:
        set_scalar(builder, field, from);
    }
}

static struct builder build_timer(const struct bel_timer *timer)
{
    const struct bel_shown *shown = &bel__shown[BEL_SHOWN_TIMER];
    struct builder builder = builder_create();
    uint64_t there = bel__timer_fields_there(timer);
    for (size_t i = 0; i < shown->count; i++) {
        if ((there >> i & 1) == 0) continue;
        set_field(&builder, &shown->fields[i], timer, timer->headers, timer->headers_count);
    }
    return builder;
}

static struct builder build_delivery(const struct bel_delivery *delivery)
{
    const struct bel_shown *shown = &bel__shown[BEL_SHOWN_DELIVERY];
    struct builder builder = builder_create();
    for (size_t i = 0; i < shown->count; i++) {
        const struct bel_field *field = &shown->fields[i];
        if (!bel__field_is_there(field, delivery, 0)) continue;
        set_field(&builder, field, delivery, delivery->headers, delivery->headers_count);
    }
    return builder;
}

static void set_topic(struct builder *builder, const struct bel_topic *topic)
{
    const struct bel_shown *shown = &bel__shown[BEL_SHOWN_TOPIC];
    for (size_t i = 0; i < shown->count; i++) {
        const struct bel_field *field = &shown->fields[i];
        if (field->type == BEL_FIELD_SETTINGS) {
            set_settings(builder, field, topic);
        } else {
            set_scalar(builder, field, topic);
        }
    }
}

/* --- lists --- */

static void set_timers(struct builder *builder, const struct bel_reply *reply)
{
    json_t *list = json_array();
    for (size_t i = 0; i < reply->timers.count; i++) {
        struct builder item = build_timer(&reply->timers.items[i]);
        append(builder, list, &item);
    }
    set(builder, bel__shown[BEL_SHOWN_TIMER].list, list);
    if (reply->timers.cursor.bytes > 0) {
        set_bytes(builder, "cursor", reply->timers.cursor);
    } else {
        set(builder, "cursor", json_null());
    }
}

static void set_deliveries(struct builder *builder, const struct bel_reply *reply)
{
    json_t *list = json_array();
    for (size_t i = 0; i < reply->deliveries.count; i++) {
        struct builder item = build_delivery(&reply->deliveries.items[i]);
        append(builder, list, &item);
    }
    set(builder, bel__shown[BEL_SHOWN_DELIVERY].list, list);
}

static void set_names(struct builder *builder, const char *name, const struct bel_reply *reply)
{
    json_t *list = json_array();
    for (size_t i = 0; i < reply->names.count; i++) {
        struct bel_view item = reply->names.items[i];
        if (json_array_append_new(list, json_stringn(item.data, item.bytes)) != 0) {
            builder->is_lost = true;
        }
    }
    set(builder, name, list);
}

static void set_steps(struct builder *builder, const struct bel_reply *reply)
{
    json_t *list = json_array();
    for (size_t i = 0; i < reply->steps.count; i++) {
        struct builder item = builder_create();
        set_flat(&item, BEL_SHOWN_STEP, &reply->steps.items[i], 0);
        append(builder, list, &item);
    }
    set(builder, bel__shown[BEL_SHOWN_STEP].list, list);
}

/* --- pages --- */

static const struct {
    const char *code, *title;
    unsigned status;
} problems[] = {
    {"ERR", "Bad request", 400},         {"BADARG", "Bad value", 400},
    {"NOTFOUND", "Not found", 404},      {"CONFLICT", "Conflict", 409},
    {"STALE", "Lease has ended", 409},   {"LIMITED", "Too many requests", 429},
    {"FULL", "A limit is reached", 507}, {"NOAUTH", "Key required", 401},
    {"NOPERM", "Not allowed", 403},      {"IO", "Storage has failed", 500},
};

/* Returns the title of a problem: that of its status, if the status is not the one of its code. */
static const char *title_of(unsigned status, const char *title)
{
    switch (status) {
    case 405:
        return "Method not allowed";
    case 413:
        return "Body too large";
    case 501:
        return "Not supported";
    default:
        return title;
    }
}

/* Turns an object into a page and takes ownership of it. An incomplete object gives a lost page. */
static struct bel_http_page page_of(unsigned status, struct builder *builder, bool is_problem)
{
    struct bel_http_page page = {
        .status = status, .json = builder->object, .is_problem = is_problem};
    assert(status >= 200 && status < 600);
    assert(builder->object != NULL || builder->is_lost);
    if (!builder->is_lost) return page;
    json_decref(builder->object);
    page.json = NULL;
    page.is_lost = true;
    return page;
}

struct bel_http_page bel__http_problem_as(unsigned status, const char *code, const char *text)
{
    size_t i = 0;
    while (i + 1 < sizeof problems / sizeof problems[0] && strcmp(problems[i].code, code) != 0) {
        i++;
    }
    if (status == 0) status = problems[i].status;
    struct builder builder = builder_create();
    bool has_detail =
        bel__utf8_is_text((struct bel_view){text, strlen(text)}); /* may quote a client's bytes */
    set_text(&builder, "type", "about:blank");
    set_text(&builder, "title", title_of(status, problems[i].title));
    set_number(&builder, "status", (int64_t)status);
    if (has_detail) set_text(&builder, "detail", text);
    set_text(&builder, "code", code);
    return page_of(status, &builder, true);
}

struct bel_http_page bel__http_problem(const char *code, const char *text)
{
    return bel__http_problem_as(0, code, text);
}

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
    default:
        return NULL;
    }
}

static void fill(struct builder *builder, const struct bel_http_call *call,
                 const struct bel_reply *reply)
{
    switch (call->request.command.verb) {
    case BEL_VERB_SCHEDULE:
        set_bytes(builder, "topic", call->request.command.schedule.topic);
        set_bytes(builder, "id", reply->id);
        break;
    case BEL_VERB_CLAIM:
        set_deliveries(builder, reply);
        break;
    case BEL_VERB_FAIL:
        set_flat(builder, BEL_SHOWN_VERDICT, &reply->verdict, bel__verdict_facts(&reply->verdict));
        break;
    case BEL_VERB_EXTEND:
        set_count(builder, "lease_left_ms", reply->count);
        break;
    case BEL_VERB_LIST:
        set_timers(builder, reply);
        break;
    case BEL_VERB_TOPICS:
        set_names(builder, "topics", reply);
        break;
    case BEL_VERB_TOPIC:
        set_topic(builder, reply->topic);
        break;
    case BEL_VERB_EXPLAIN:
        set_names(builder, "lines", reply);
        break;
    case BEL_VERB_AGENDA:
        set_steps(builder, reply);
        break;
    default:
        set_count(builder, "count", reply->count);
        break;
    }
}

/* Returns the total size of the payloads of a reply, which no other limit bounds. */
static uint64_t payloads_of(enum bel_verb verb, const struct bel_reply *reply)
{
    uint64_t bytes = 0;
    for (size_t i = 0; verb == BEL_VERB_LIST && i < reply->timers.count; i++) {
        bytes += reply->timers.items[i].payload.bytes;
    }
    for (size_t i = 0; verb == BEL_VERB_CLAIM && i < reply->deliveries.count; i++) {
        bytes += reply->deliveries.items[i].payload.bytes;
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
        return true;
    default:
        return false;
    }
}

static bool is_silent(enum bel_verb verb)
{
    return verb == BEL_VERB_CONFIGURE || verb == BEL_VERB_PAUSE || verb == BEL_VERB_RESUME;
}

struct bel_http_page bel__http_page(const struct bel_http_call *call, const struct bel_reply *reply)
{
    enum bel_verb verb = call->request.command.verb;
    if (reply->err) {
        const char *text = reply->why[0] != 0 ? reply->why : bel_error_text(reply->err);
        unsigned status = reply->err == BEL_EUNSUPPORTED ? 501 : 0;
        return bel__http_problem_as(status, bel__reply_code(reply->err), text);
    }
    const char *code = missing(verb, reply);
    if (code != NULL) {
        return bel__http_problem(code, verb == BEL_VERB_ACK   ? "the lease has ended"
                                       : verb == BEL_VERB_GET ? "no such timer"
                                       : verb == BEL_VERB_CANCEL
                                           ? "no such unfinished timer"
                                           : "no such scheduled or ready timer");
    }
    if (payloads_of(verb, reply) > PAGE_BYTES_MAX) {
        return bel__http_problem("FULL", "the reply is too large: request fewer timers");
    }
    if (is_silent(verb)) return (struct bel_http_page){.status = 204};
    struct builder builder = {NULL, false};
    if (verb == BEL_VERB_GET) {
        builder = build_timer(&reply->timers.items[0]);
    } else {
        builder = builder_create();
        fill(&builder, call, reply);
    }
    if (builder.is_lost && is_harmless(verb)) {
        json_decref(builder.object);
        return bel__http_problem("FULL", "out of memory: try again");
    }
    struct bel_http_page page = page_of(call->route->is_create ? 201 : 200, &builder, false);
    if (call->route->is_create) page.created_id = reply->id;
    return page;
}
