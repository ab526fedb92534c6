/* SPDX-License-Identifier: MIT */

/*
 * All numbers are big-endian, as struct.pack() of Lua writes them.
 *
 *     record   prefix 8 | due 7 | created 7 | expiry 7 | expires 7 | lease 7 | load 4 |
 *              kind 1 | body
 *     load     bytes of payload and headers, which limit a claim
 *     body     version 1 | correlation bytes 2 | retry bytes 2 | headers 2 |
 *              correlation | retry | (name bytes 4, value bytes 4, name, value) ... | payload
 *     att      state 1 | finished 7 | attempts 4 | crashes 4 | reason 2 + | outcomes 2 + |
 *              result 4 +
 *     outcome  kind 1 | at 7 | reason 2 +
 *     tok      secret 12 | length 7 | due 7 | worker
 */
#include "redis/record.h"

#include "redis/cursor.h"
#include "redis/rule.h"

#include "belfry/error.h"
#include "core/parse.h"

#include <assert.h>
#include <string.h>

enum {
    HEAD_BYTES = 48,
    BODY_VERSION = 1,
    SECRET_BYTES = 12,
    HEAD_REST_BYTES = 26, /* from the expiry on */
    KIND_TIMER = 0,
    KIND_PLAN = 1,
};

/* --- Writing --- */

size_t bel__record_load(const struct bel_schedule_spec *spec)
{
    size_t bytes = spec->payload.bytes;
    for (size_t i = 0; i < spec->headers_count; i++) {
        bytes += spec->headers[i].name.bytes + spec->headers[i].value.bytes;
    }
    return bytes;
}

size_t bel__record_body_bytes(const struct bel_schedule_spec *spec)
{
    size_t bytes = 1 + 2 + 2 + 2 + spec->correlation.bytes + spec->retry.bytes;
    for (size_t i = 0; i < spec->headers_count; i++) {
        bytes += 4 + 4 + spec->headers[i].name.bytes + spec->headers[i].value.bytes;
    }
    return bytes + spec->payload.bytes;
}

void bel__record_body_write(const struct bel_schedule_spec *spec, uint8_t *out)
{
    uint8_t *at = bel__put_number(out, BODY_VERSION, 1);
    at = bel__put_number(at, spec->correlation.bytes, 2);
    at = bel__put_number(at, spec->retry.bytes, 2);
    at = bel__put_number(at, spec->headers_count, 2);
    at = bel__put_view(at, spec->correlation);
    at = bel__put_view(at, spec->retry);
    for (size_t i = 0; i < spec->headers_count; i++) {
        at = bel__put_number(at, spec->headers[i].name.bytes, 4);
        at = bel__put_number(at, spec->headers[i].value.bytes, 4);
        at = bel__put_view(at, spec->headers[i].name);
        at = bel__put_view(at, spec->headers[i].value);
    }
    at = bel__put_view(at, spec->payload);
    assert((size_t)(at - out) == bel__record_body_bytes(spec));
}

size_t bel__record_rest_bytes(const struct bel_schedule_spec *spec)
{
    return HEAD_REST_BYTES + bel__record_body_bytes(spec);
}

void bel__record_rest_write(const struct bel_schedule_spec *spec, bool is_plan, uint8_t *out)
{
    uint8_t *at = bel__put_number(out, 0, 7);
    at = bel__put_number(at, spec->expires_ms, 7);
    at = bel__put_number(at, spec->lease_ms, 7);
    at = bel__put_number(at, bel__record_load(spec), 4);
    at = bel__put_number(at, is_plan ? KIND_PLAN : KIND_TIMER, 1);
    assert(at - out == HEAD_REST_BYTES);
    bel__record_body_write(spec, at);
}

/* --- Reading --- */

static struct bel_view take_text(struct bel_cursor *cursor, unsigned length_bytes)
{
    return bel__take(cursor, (size_t)bel__take_number(cursor, length_bytes));
}

static int read_headers(struct bel_cursor *cursor, struct bel_arena *arena, struct bel_stored *out)
{
    if (out->headers_count > BEL_HEADERS_MAX) return BEL_ECORRUPT;
    struct bel_header *headers = bel__arena_take(arena, (out->headers_count + 1) * sizeof *headers);
    if (headers == NULL) return BEL_ENOMEM;
    for (size_t i = 0; i < out->headers_count; i++) {
        size_t name_bytes = (size_t)bel__take_number(cursor, 4);
        size_t value_bytes = (size_t)bel__take_number(cursor, 4);
        headers[i].name = bel__take(cursor, name_bytes);
        headers[i].value = bel__take(cursor, value_bytes);
    }
    out->headers = headers;
    return 0;
}

int bel__stored_read(struct bel_view record, struct bel_arena *arena, struct bel_stored *out)
{
    struct bel_cursor cursor = bel__cursor_of(record);
    struct bel_view prefix = bel__take(&cursor, sizeof out->prefix);
    if (cursor.is_bad || record.bytes < HEAD_BYTES) return BEL_ECORRUPT;
    memcpy(out->prefix, prefix.data, sizeof out->prefix);
    out->due = bel__take_time(&cursor);
    out->created = bel__take_time(&cursor);
    out->expiry = bel__take_time(&cursor);
    out->expires_ms = bel__take_number(&cursor, 7);
    out->lease_ms = bel__take_number(&cursor, 7);
    (void)bel__take_number(&cursor, 4);
    out->is_plan = bel__take_number(&cursor, 1) == KIND_PLAN;
    if (bel__take_number(&cursor, 1) != BODY_VERSION) return BEL_ECORRUPT;
    size_t correlation_bytes = (size_t)bel__take_number(&cursor, 2);
    size_t retry_bytes = (size_t)bel__take_number(&cursor, 2);
    out->headers_count = (size_t)bel__take_number(&cursor, 2);
    out->correlation = bel__take(&cursor, correlation_bytes);
    out->retry = bel__take(&cursor, retry_bytes);
    int err = read_headers(&cursor, arena, out);
    if (err) return err;
    out->payload = bel__take(&cursor, cursor.left);
    return cursor.is_bad ? BEL_ECORRUPT : 0;
}

uint64_t bel__record_attempts(struct bel_view att)
{
    struct bel_cursor cursor = bel__cursor_of(att);
    if (att.bytes == 0) return 0;
    (void)bel__take(&cursor, 8);
    return bel__take_number(&cursor, 4);
}

static int read_outcomes(struct bel_view outcomes, struct bel_timer *out)
{
    struct bel_cursor cursor = bel__cursor_of(outcomes);
    out->outcomes_count = 0;
    while (cursor.left > 0 && !cursor.is_bad) {
        if (out->outcomes_count == BEL_OUTCOMES_MAX) return BEL_ECORRUPT;
        struct bel_outcome *outcome = &out->outcomes[out->outcomes_count++];
        uint64_t kind = bel__take_number(&cursor, 1);
        outcome->kind = kind == 0 ? BEL_OUTCOME_FAILED : BEL_OUTCOME_CRASHED;
        outcome->at.ms = bel__take_time(&cursor);
        outcome->reason = take_text(&cursor, 2);
    }
    return cursor.is_bad ? BEL_ECORRUPT : 0;
}

static int read_att(struct bel_view att, struct bel_timer *out)
{
    struct bel_cursor cursor = bel__cursor_of(att);
    if (att.bytes == 0) return 0;
    (void)bel__take_number(&cursor, 1);
    out->finished.ms = bel__take_time(&cursor);
    out->attempts = bel__take_number(&cursor, 4);
    out->crashes = bel__take_number(&cursor, 4);
    out->reason = take_text(&cursor, 2);
    struct bel_view outcomes = take_text(&cursor, 2);
    out->result = take_text(&cursor, 4);
    return cursor.is_bad ? BEL_ECORRUPT : read_outcomes(outcomes, out);
}

static int read_tok(const struct bel_found_timer *found, int64_t now_ms, struct bel_timer *out)
{
    struct bel_cursor cursor = bel__cursor_of(found->tok);
    if (found->state != BEL_LEASED) return 0;
    (void)bel__take(&cursor, SECRET_BYTES + 7 + 7);
    out->worker = bel__take(&cursor, cursor.left);
    out->lease_left_ms = found->score > now_ms ? (uint64_t)(found->score - now_ms) : 0;
    return cursor.is_bad ? BEL_ECORRUPT : 0;
}

bool bel__record_occurrence(struct bel_view id, struct bel_view *out_plan,
                            struct bel_view *out_nominal)
{
    const char *data = id.data, *at = id.bytes > 0 ? memchr(data, '@', id.bytes) : NULL;
    if (at == NULL) return false;
    size_t before = (size_t)(at - data);
    *out_plan = (struct bel_view){data, before};
    *out_nominal = (struct bel_view){at + 1, id.bytes - before - 1};
    return true;
}

/* Fills in a plan. Its state and rule are in place of the result. */
static int read_plan(struct bel_timer *out)
{
    struct bel_rule rule;
    int err = bel__rule_read(out->result, &rule);
    if (err) return err;
    out->result = (struct bel_view){NULL, 0};
    out->plan = rule.said;
    out->has_next = rule.has_next;
    out->due.ms = rule.has_next ? rule.next.ms : 0;
    out->expires.ms = 0;
    out->has_start = rule.has_start;
    if (rule.has_start) out->start = rule.start;
    out->is_catching_up = rule.is_catching_up;
    out->made = rule.made;
    out->skipped = rule.skipped;
    out->missed = rule.missed;
    if (rule.said.count > 0) out->used = rule.made + rule.skipped + rule.missed;
    return 0;
}

struct bel_view bel__record_result(struct bel_view att)
{
    struct bel_timer timer = {0};
    return read_att(att, &timer) == 0 ? timer.result : (struct bel_view){NULL, 0};
}

int bel__record_timer(const struct bel_found_timer *found, int64_t now_ms, struct bel_arena *arena,
                      struct bel_timer *out)
{
    struct bel_stored stored = {0};
    struct bel_view nominal;
    int err = bel__stored_read(found->record, arena, &stored);
    if (err) return err;
    *out = (struct bel_timer){.topic = found->topic, .id = found->id, .state = found->state};
    out->payload = stored.payload;
    out->correlation = stored.correlation;
    out->retry = stored.retry;
    out->priority = stored.prefix[0];
    if (found->state != BEL_BLOCKED) out->due.ms = stored.due;
    out->created.ms = stored.created;
    out->expires.ms = stored.expiry;
    out->expires_ms = stored.expires_ms;
    out->lease_ms = stored.lease_ms;
    out->headers = stored.headers;
    out->headers_count = stored.headers_count;
    if (bel__record_occurrence(found->id, &out->plan_id, &nominal)) {
        err = bel__parse_i64(nominal.data, nominal.bytes, INT64_MIN, INT64_MAX, &out->nominal.ms);
        if (err) return BEL_ECORRUPT;
        if (found->state == BEL_BLOCKED) {
            out->spread_by_ms = (uint64_t)(stored.due - out->nominal.ms);
        }
    }
    err = read_att(found->att, out);
    if (err == 0 && stored.is_plan) err = read_plan(out);
    return err ? err : read_tok(found, now_ms, out);
}
