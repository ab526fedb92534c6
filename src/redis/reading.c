/* SPDX-License-Identifier: MIT */

/*
 * A timer is {id, state, score, record, att, tok}; what was claimed is {lease, extras, id, record,
 * id, record, ...}, where extras is nil or {index, att, lease, index, att, lease, ...}. Both come
 * from the server, which could be anything: every type is checked.
 */
#include "redis/reading.h"

#include "redis/cursor.h"
#include "redis/record.h"

#include "core/parse.h"

#include <assert.h>
#include <string.h>

enum {
    TIMER_FIELDS = 6,
    CLAIMED_HEAD = 2,
    EXTRA_FIELDS = 3,
};

/* Returns the text of a value; empty for nil. */
static struct bel_view text_of(const struct bel_value *value)
{
    return value->type == BEL_VALUE_TEXT ? value->text : (struct bel_view){NULL, 0};
}

static bool is_list_of(const struct bel_value *value, size_t count)
{
    return value->type == BEL_VALUE_LIST && value->count == count;
}

int bel__reading_timer(struct bel_operation *operation, const struct bel_value *item,
                       struct bel_timer *out)
{
    if (!is_list_of(item, TIMER_FIELDS)) return BEL_ECORRUPT;
    const struct bel_value *fields = item->items;
    if (fields[1].number < 0 || fields[1].number >= BEL_STATES) return BEL_ECORRUPT;
    struct bel_found_timer found = {
        .topic = operation->topic != NULL ? operation->topic->name : (struct bel_view){NULL, 0},
        .id = text_of(&fields[0]),
        .state = (enum bel_state)fields[1].number,
        .score = fields[2].number,
        .record = text_of(&fields[3]),
        .att = text_of(&fields[4]),
        .tok = text_of(&fields[5]),
    };
    return bel__record_timer(&found, bel__operation_now(operation), &operation->arena, out);
}

int bel__reading_lease(const struct bel_value *item, uint64_t *out_ms)
{
    *out_ms = 0;
    if (!is_list_of(item, TIMER_FIELDS)) return BEL_ECORRUPT;
    struct bel_cursor cursor = bel__cursor_of(text_of(&item->items[5]));
    if (cursor.left == 0) return 0;
    (void)bel__take(&cursor, BEL_TOKEN_SECRET_BYTES);
    *out_ms = bel__take_number(&cursor, 7);
    return cursor.is_bad ? BEL_ECORRUPT : 0;
}

int bel__reading_rule(const struct bel_value *item, const struct bel_timer *timer,
                      struct bel_rule *out)
{
    if (!is_list_of(item, TIMER_FIELDS)) return BEL_ECORRUPT;
    *out = (struct bel_rule){.id = timer->id, .created = timer->created};
    return bel__rule_read(bel__record_result(text_of(&item->items[4])), out);
}

int bel__reading_timers(struct bel_operation *operation, const struct bel_value *items,
                        size_t count)
{
    struct bel_timer *timers = bel__arena_take(&operation->arena, (count + 1) * sizeof *timers);
    size_t found = 0;
    if (timers == NULL) return BEL_ENOMEM;
    for (size_t i = 0; i < count; i++) {
        if (items[i].type == BEL_VALUE_NIL) continue;
        int err = bel__reading_timer(operation, &items[i], &timers[found]);
        if (err) return err;
        found++;
    }
    operation->reply.timers.items = timers;
    operation->reply.timers.count = found;
    return 0;
}

/* Returns whether an id can be one of a timer: its token must have room for it. */
static bool is_timer_id(struct bel_view id)
{
    struct bel_view plan, nominal;
    int64_t time;
    if (!bel__record_occurrence(id, &plan, &nominal)) return bel_id_is_valid(id);
    return bel_id_is_valid(plan) && id.bytes <= BEL_ID_BYTES &&
           bel__parse_i64(nominal.data, nominal.bytes, INT64_MIN, INT64_MAX, &time) == 0;
}

static int make_token(struct bel_operation *operation, const uint8_t *secret,
                      const struct bel_stored *stored, struct bel_delivery *out)
{
    struct bel_token token = {.topic_bytes = out->topic.bytes, .id_bytes = out->id.bytes};
    char *text = bel__arena_take(&operation->arena, BEL_TOKEN_BYTES_MAX);
    if (text == NULL) return BEL_ENOMEM;
    memcpy(token.prefix, stored->prefix, sizeof token.prefix);
    memcpy(token.secret, secret, sizeof token.secret);
    memcpy(token.topic, out->topic.data, out->topic.bytes);
    memcpy(token.id, out->id.data, out->id.bytes);
    out->token = (struct bel_view){text, bel__lease_token_print(&token, text)};
    return 0;
}

/* Adds belfry-plan and belfry-nominal to the headers of an occurrence. */
static int add_headers(struct bel_operation *operation, struct bel_delivery *out)
{
    struct bel_view plan, nominal;
    if (!bel__record_occurrence(out->id, &plan, &nominal)) return 0;
    size_t count = out->headers_count;
    struct bel_header *headers = bel__arena_take(&operation->arena, (count + 2) * sizeof *headers);
    if (headers == NULL) return BEL_ENOMEM;
    if (count > 0) memcpy(headers, out->headers, count * sizeof *headers);
    headers[count++] = (struct bel_header){BEL_VIEW("belfry-plan"), plan};
    headers[count++] = (struct bel_header){BEL_VIEW("belfry-nominal"), nominal};
    out->headers = headers;
    out->headers_count = count;
    return 0;
}

int bel__reading_claimed(const struct bel_value *list, struct bel_claimed *out)
{
    if (list->type != BEL_VALUE_LIST || list->count < CLAIMED_HEAD || list->count % 2 != 0 ||
        !bel__result_is_number(&list->items[0], 0, BEL_REDIS_TIME_END_MS)) {
        return BEL_EIO;
    }
    *out = (struct bel_claimed){.list = list,
                                .count = (list->count - CLAIMED_HEAD) / 2,
                                .lease_ms = (uint64_t)list->items[0].number};
    return 0;
}

/* Sets what a result says besides of the next delivery. Returns 0 or BEL_ECORRUPT. */
static int read_extra(struct bel_claimed *claimed, struct bel_delivery *out)
{
    const struct bel_value *extras = &claimed->list->items[1];
    out->attempt = 1;
    out->lease_ms = claimed->lease_ms;
    if (extras->type != BEL_VALUE_LIST || claimed->extra == extras->count) return 0;
    if (extras->count - claimed->extra < EXTRA_FIELDS) return BEL_ECORRUPT;
    const struct bel_value *extra = &extras->items[claimed->extra];
    int64_t next = (int64_t)claimed->index;
    if (!bel__result_is_number(&extra[0], next, (int64_t)claimed->count - 1) ||
        !bel__result_is_number(&extra[2], 0, BEL_REDIS_TIME_END_MS)) {
        return BEL_ECORRUPT;
    }
    if (extra[0].number != next) return 0;
    claimed->extra += EXTRA_FIELDS;
    out->attempt = 1 + bel__record_attempts(text_of(&extra[1]));
    out->lease_ms = (uint64_t)extra[2].number;
    return 0;
}

int bel__reading_delivery(struct bel_operation *operation, struct bel_view topic,
                          const uint8_t secret[BEL_TOKEN_SECRET_BYTES], struct bel_claimed *claimed,
                          struct bel_delivery *out)
{
    struct bel_stored stored = {0};
    assert(claimed->index < claimed->count);
    const struct bel_value *fields = &claimed->list->items[CLAIMED_HEAD + 2 * claimed->index];
    *out = (struct bel_delivery){.topic = topic, .id = text_of(&fields[0])};
    if (!is_timer_id(out->id)) return BEL_ECORRUPT;
    int err = read_extra(claimed, out);
    if (err == 0) err = bel__stored_read(text_of(&fields[1]), &operation->arena, &stored);
    if (err) return err;
    claimed->index++;
    out->payload = stored.payload;
    out->correlation = stored.correlation;
    out->due.ms = stored.due;
    out->headers = stored.headers;
    out->headers_count = stored.headers_count;
    err = add_headers(operation, out);
    return err ? err : make_token(operation, secret, &stored, out);
}

int bel__reading_steps(struct bel_steps *steps, const struct bel_value *counts, size_t done)
{
    if (bel_value_is(counts, "full")) return BEL_EFULL;
    if (counts->type != BEL_VALUE_LIST || counts->count % 2 != 0) return BEL_EIO;
    for (size_t i = 0; i < counts->count; i += 2) {
        int64_t index = counts->items[i].number, count = counts->items[i + 1].number;
        if (index < 0 || (size_t)index >= steps->count - done || count < 0) return BEL_EIO;
        steps->items[done + (size_t)index].count += (uint64_t)count;
    }
    return 0;
}
