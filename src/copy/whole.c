/* SPDX-License-Identifier: MIT */

/*
 * The digest has everything that a copy keeps. What the two stores may tell differently is left
 * out: whether an unfinished timer is due by now, and which clock its due follows.
 */
#include "copy/whole.h"

#include "core/siphash.h"
#include "core/view.h"

#include <assert.h>
#include <string.h>

static uint64_t settle(uint64_t *number, uint64_t surplus)
{
    uint64_t taken = *number < surplus ? *number : surplus;
    *number -= taken;
    return surplus - taken;
}

/* Before format 3, COUNT did not count all times: afterwards a count is the sum of its parts. */
static void settle_counts(struct bel_timer *timer)
{
    uint64_t sum = timer->made + timer->skipped + timer->missed;
    if (timer->plan.count == 0 || timer->used >= sum) return;
    uint64_t surplus = settle(&timer->missed, sum - timer->used);
    surplus = settle(&timer->skipped, surplus);
    (void)settle(&timer->made, surplus);
}

static bool has_added_headers(const struct bel_timer *timer)
{
    if (timer->plan_id.bytes == 0 || timer->headers_count < 2) return false;
    const struct bel_header *added = &timer->headers[timer->headers_count - 2];
    return bel__view_is(added[0].name, "belfry-plan") &&
           bel__view_is(added[1].name, "belfry-nominal");
}

struct bel_timer bel__whole_of(const struct bel_timer *timer, bool has_group, bool has_resource)
{
    struct bel_timer whole = *timer;
    if (has_added_headers(timer)) whole.headers_count -= 2;
    if (!has_group) whole.group = (struct bel_view){0};
    if (!has_resource) whole.resource = (struct bel_view){0};
    if (whole.state == BEL_LEASED) whole.state = BEL_READY;
    whole.worker = (struct bel_view){0};
    whole.lease_left_ms = 0;
    settle_counts(&whole);
    return whole;
}

/* Bytes to be hashed; after an error nothing is added. */
struct line {
    struct bel_buffer *buffer;
    int err;
};

static void put_bytes(struct line *line, const void *data, size_t bytes)
{
    if (line->err == 0 && bytes > 0) line->err = bel__buffer_append(line->buffer, data, bytes);
}

static void put(struct line *line, uint64_t number)
{
    uint8_t bytes[8];
    for (unsigned i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(number >> (8 * i));
    }
    put_bytes(line, bytes, sizeof bytes);
}

static void put_text(struct line *line, struct bel_view text)
{
    put(line, text.bytes);
    put_bytes(line, text.data, text.bytes);
}

static void put_plan(struct line *line, const struct bel_timer *timer)
{
    const struct bel_recurrence *plan = &timer->plan;
    put_text(line, plan->rule);
    if (plan->rule.bytes == 0) return;
    put_text(line, plan->zone);
    const uint64_t numbers[] = {
        plan->kind,
        plan->mode,
        plan->gap,
        plan->fold,
        plan->misfire,
        plan->overlap,
        plan->has_until,
        plan->has_until ? (uint64_t)plan->until.ms : 0,
        plan->count,
        plan->spread_ms,
        timer->has_next,
        timer->made,
        timer->skipped,
        timer->missed,
        timer->has_start,
        timer->has_start ? (uint64_t)timer->start.ms : 0,
        timer->is_catching_up,
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        put(line, numbers[i]);
    }
}

static void put_outcomes(struct line *line, const struct bel_timer *timer)
{
    put(line, timer->outcomes_count);
    for (size_t i = 0; i < timer->outcomes_count; i++) {
        put(line, timer->outcomes[i].kind);
        put(line, (uint64_t)timer->outcomes[i].at.ms);
        put_text(line, timer->outcomes[i].reason);
    }
}

static void put_timer(struct line *line, const struct bel_timer *timer)
{
    bool has_ended = timer->state >= BEL_DONE;
    const struct bel_view texts[] = {timer->id,       timer->payload, timer->group,
                                     timer->resource, timer->retry,   timer->correlation,
                                     timer->reason,   timer->result,  timer->plan_id};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        put_text(line, texts[i]);
    }
    bool may_expire = timer->expires_ms > 0 && !has_ended && timer->plan.rule.bytes == 0;
    const uint64_t numbers[] = {
        has_ended || timer->state == BEL_BLOCKED ? timer->state : BEL_SCHEDULED,
        timer->priority,
        (uint64_t)timer->due.ms,
        (uint64_t)timer->created.ms,
        has_ended ? (uint64_t)timer->finished.ms : 0,
        may_expire ? (uint64_t)timer->expires.ms : 0,
        timer->expires_ms,
        timer->lease_ms,
        timer->attempts,
        timer->crashes,
        (uint64_t)timer->nominal.ms,
        timer->spread_by_ms,
        timer->headers_count,
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        put(line, numbers[i]);
    }
    for (size_t i = 0; i < timer->headers_count; i++) {
        put_text(line, timer->headers[i].name);
        put_text(line, timer->headers[i].value);
    }
    put_outcomes(line, timer);
    put_plan(line, timer);
}

int bel__digest_add(struct bel_digest *digest, const struct bel_timer *timer)
{
    static const struct bel_siphash_key key = {"belfry copy 1"};
    struct line line = {.buffer = digest->scratch};
    bel__buffer_truncate(digest->scratch, 0);
    put_timer(&line, timer);
    if (line.err) return line.err;
    uint64_t hash = bel__siphash(key, bel__buffer_data(digest->scratch), digest->scratch->count);
    uint64_t link[] = {digest->chain, hash};
    digest->sum += hash;
    digest->chain = bel__siphash(key, link, sizeof link);
    return 0;
}
