/* SPDX-License-Identifier: MIT */

/*
 * A lease is a row beside its timer's, and an item in memory that is found by the timer's key and
 * ends by a wheel of its own, whose time runs only while the engine is open. All leases are in
 * memory: they are as many as there are handlers at work.
 */
#include "engine/lease.h"

#include "engine/engine.h"
#include "engine/ready.h"
#include "engine/timer.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEASES_MAX = 1 << 24,
    RETRY_MS = 100, /* until what failed for want of room is tried again */
    TURN_MAX = 1024 /* leases taken back in one turn */
};

static struct bel_lease *lease_at(const struct bel_engine *engine, uint64_t index)
{
    return bel__slab_at(&engine->leases.slab, (uint32_t)index);
}

static uint32_t index_of(const struct bel_engine *engine, const struct bel_lease *lease)
{
    const unsigned char *at = (const unsigned char *)lease;
    return (uint32_t)((size_t)(at - engine->leases.slab.base) / sizeof *lease);
}

struct bel_lease *bel__lease_find(const struct bel_engine *engine, const struct bel_key *key)
{
    const uint64_t *index = bel__map_find(&engine->leases.map, key, sizeof *key);
    return index == NULL ? NULL : lease_at(engine, *index);
}

/* Compares secrets in a time that does not tell where they differ. */
static bool same_secret(const uint8_t *a, const uint8_t *b)
{
    uint32_t x[BEL_TOKEN_SECRET_BYTES / sizeof(uint32_t)], y[sizeof x / sizeof x[0]];
    static_assert(sizeof x == BEL_TOKEN_SECRET_BYTES, "whole words");
    memcpy(x, a, sizeof x);
    memcpy(y, b, sizeof y);
    return ((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2])) == 0;
}

struct bel_lease *bel__lease_by_token(struct bel_engine *engine, struct bel_view token)
{
    struct bel_key key;
    uint8_t secret[BEL_TOKEN_SECRET_BYTES];
    if (!bel__token_parse(token, &key, secret)) return NULL;
    struct bel_lease *lease = bel__lease_find(engine, &key);
    if (lease == NULL || !same_secret(lease->secret, secret)) return NULL;
    return lease->end > engine->now.open ? lease : NULL; /* not taken back yet, but over */
}

/* A lease in memory: in the slab, the map, the wheel, and counted for its share. */
static int enter(struct bel_engine *engine, const struct bel_lease *made, struct bel_view group,
                 struct bel_lease **out)
{
    struct bel_leases *leases = &engine->leases;
    uint32_t index = bel__slab_take(&leases->slab);
    if (index == BEL__SLAB_NONE) return BEL_ENOMEM;
    struct bel_lease *lease = lease_at(engine, index);
    *lease = *made;
    int err = bel__map_put(&leases->map, &lease->key, sizeof lease->key, index);
    if (err) goto give;
    err = bel_wheel_arm(leases->wheel, lease->end, BEL_PRIORITY_DEFAULT, index, &lease->timer);
    if (err) goto forget;
    err = bel__picker_lease(&lease->topic->picker, group, &lease->share);
    if (err) goto disarm;
    lease->topic->leased++;
    *out = lease;
    return 0;

disarm:
    bel_wheel_cancel(leases->wheel, lease->timer);
forget:
    bel__map_remove(&leases->map, &lease->key, sizeof lease->key, NULL);
give:
    bel__slab_give(&leases->slab, index);
    return err;
}

static void put_row(struct bel_engine *engine, const struct bel_lease *lease,
                    struct bel_view worker, enum bel_row was)
{
    struct bel_lease_row row = {
        .end = lease->end, .lease_ms = lease->lease_ms, .due = lease->due, .worker = worker};
    uint8_t bytes[BEL_RECORD_BYTES_MAX];
    memcpy(row.secret, lease->secret, sizeof row.secret);
    struct bel_key key = bel__key_in(&lease->key, BEL_TABLE_LEASES);
    struct bel_view value = {.data = bytes, .bytes = bel__lease_write(&row, bytes)};
    bel__rows_put(&engine->rows, &key, value, was);
}

/* A secret that nobody else has. They are drawn many at a time: asking the system costs as much
 * as the rest of a lease. */
static int draw_secret(struct bel_engine *engine, uint8_t out[BEL_TOKEN_SECRET_BYTES])
{
    struct bel_leases *leases = &engine->leases;
    if (leases->secrets_left == 0) {
        int err = bel__entropy_fill(engine->entropy, leases->secrets, sizeof leases->secrets);
        if (err) return err;
        leases->secrets_left = BEL_SECRETS_MAX;
    }
    uint8_t *secret = leases->secrets[--leases->secrets_left];
    memcpy(out, secret, BEL_TOKEN_SECRET_BYTES);
    memset(secret, 0, BEL_TOKEN_SECRET_BYTES);
    return 0;
}

int bel__lease_make(struct bel_engine *engine, const struct bel_found *found, uint64_t lease_ms,
                    struct bel_view worker, struct bel_lease **out)
{
    struct bel_lease made = {
        .key = found->key,
        .topic = found->topic,
        .end = engine->now.open_up + lease_ms,
        .lease_ms = lease_ms,
        .due = (uint64_t)bel__timer_due(engine, found),
        .is_bare = bel__timer_is_bare(found),
    };
    int err = draw_secret(engine, made.secret);
    if (err) return err;
    err = enter(engine, &made, found->record.group, out);
    if (err) return err;
    put_row(engine, *out, worker, BEL_ROW_NEW);
    return 0;
}

int bel__lease_extend(struct bel_engine *engine, struct bel_lease *lease, uint64_t lease_ms)
{
    struct bel_key key = bel__key_in(&lease->key, BEL_TABLE_LEASES);
    struct bel_lease_row row;
    struct bel_view value;
    int err = bel__store_get(engine->store, &key, &value);
    if (err == 0) err = bel__lease_read(value, &row);
    if (err) return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
    uint64_t end = engine->now.open_up + lease_ms;
    err = bel_wheel_rearm(engine->leases.wheel, lease->timer, end);
    if (err) return err;
    lease->end = end;
    put_row(engine, lease, row.worker, BEL_ROW_ANY);
    return 0;
}

void bel__lease_drop(struct bel_engine *engine, struct bel_lease *lease)
{
    struct bel_leases *leases = &engine->leases;
    struct bel_key key = bel__key_in(&lease->key, BEL_TABLE_LEASES);
    bel__rows_delete(&engine->rows, &key);
    bel_wheel_cancel(leases->wheel, lease->timer);
    bel__map_remove(&leases->map, &lease->key, sizeof lease->key, NULL);
    bel__picker_unlease(&lease->topic->picker, lease->share);
    lease->topic->leased--;
    bel__wait_mark(engine, lease->topic); /* a place of its concurrency is free */
    bel__slab_give(&leases->slab, index_of(engine, lease));
}

/* One that ends soon after the engine was opened is nobody's crash: who has it could not
 * finish while it was closed. An old one that has all of its length left had it when the engine
 * was closed, so the end of that is still soon. */
static bool is_crash(const struct bel_engine *engine, const struct bel_lease *lease)
{
    uint64_t end = engine->now.open_start + lease->lease_ms;
    return lease->is_old ? lease->end > end : lease->end >= end;
}

static void take_back(struct bel_engine *engine, struct bel_found *found)
{
    struct bel_record *record = &found->record;
    bool counts = is_crash(engine, found->lease);
    *(counts ? &engine->stats.leases_lost : &engine->stats.leases_lapsed) += 1;
    if (counts) {
        record->crashes++;
        bel__record_note(record, (struct bel_outcome){.kind = BEL_OUTCOME_CRASHED,
                                                      .at = {engine->now.wall},
                                                      .reason = BEL_VIEW("lease lost")});
    }
    if (counts && record->crashes >= bel__topic_settings(found->topic)->crashes) {
        char reason[64];
        int bytes = snprintf(reason, sizeof reason, "lease lost %llu times",
                             (unsigned long long)record->crashes);
        struct bel_ending ending = {.state = BEL_DEAD, .reason = {reason, (size_t)bytes}};
        bel__timer_end(engine, found, &ending);
        return;
    }
    bel__lease_drop(engine, found->lease);
    if (counts) bel__timer_rewrite(engine, found);
    bel__ready_enter(engine, found->topic, &found->key, record->group);
}

static int lose(struct bel_engine *engine, struct bel_lease *lease)
{
    struct bel_found found;
    int err = bel__timer_load_leased(engine, &lease->key, lease, &found);
    if (err == BEL_ENOTFOUND) return BEL_ECORRUPT;
    if (err == 0) err = bel__timer_reserve(engine, &found, 0, BEL_STORE_END);
    if (err == 0) take_back(engine, &found);
    return err;
}

/* A lease that has ended. */
struct ended {
    uint64_t end, sequence;
    uint32_t index;
};

static int compare_ended(const void *a, const void *b)
{
    const struct ended *x = a, *y = b;
    if (x->end != y->end) return x->end < y->end ? -1 : 1;
    return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

/* Takes those that have ended out of the wheel, in the order of (end, sequence). */
static size_t pop_ended(struct bel_engine *engine, struct ended out[TURN_MAX])
{
    struct bel_wheel *wheel = engine->leases.wheel;
    struct bel_wheel_timer timer;
    size_t count = 0;
    for (int i = 0; i < 2 * TURN_MAX && count < TURN_MAX; i++) {
        if (bel_wheel_next(wheel) > engine->now.open) break;
        if (!bel_wheel_pop(wheel, engine->now.open, &timer)) continue;
        const struct bel_lease *lease = lease_at(engine, timer.user);
        out[count++] = (struct ended){.end = lease->end,
                                      .sequence = bel__place_of(&lease->key).sequence,
                                      .index = (uint32_t)timer.user};
    }
    qsort(out, count, sizeof out[0], compare_ended);
    return count;
}

/* Puts one back, to be taken out again at `time`. */
static void put_back(struct bel_engine *engine, uint32_t index, uint64_t time)
{
    struct bel_lease *lease = lease_at(engine, index);
    int err = bel_wheel_arm(engine->leases.wheel, time, BEL_PRIORITY_DEFAULT, index, &lease->timer);
    assert(err == 0); /* the place that was popped is free */
    (void)err;
}

int bel__leases_turn(struct bel_engine *engine)
{
    struct ended ended[TURN_MAX];
    uint64_t now = engine->now.open;
    if (bel_wheel_next(engine->leases.wheel) > now) return 0;
    size_t count = pop_ended(engine, ended);
    for (size_t i = 0; i < count; i++) {
        int err = lose(engine, lease_at(engine, ended[i].index));
        if (err == 0) continue;
        if (err == BEL_ENOMEM || err == BEL_EFULL) {
            put_back(engine, ended[i].index, now + RETRY_MS);
            continue;
        }
        if (err != BEL_EBUSY) return err;
        for (; i < count; i++) { /* the batch is full: all goes on with the next */
            put_back(engine, ended[i].index, now);
        }
        engine->load_left = 0;
        engine->is_behind = true;
    }
    return 0;
}

static int load_lease(struct bel_engine *engine, const struct bel_store_cursor *cursor)
{
    struct bel_key key = bel__key_in(&cursor->key, BEL_TABLE_TIMERS);
    struct bel_lease_row row;
    struct bel_found found;
    struct bel_lease *lease;
    int err = bel__lease_read(cursor->value, &row);
    if (err == 0) err = bel__timer_load_leased(engine, &key, NULL, &found);
    if (err) return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
    struct bel_lease made = {
        .key = key,
        .topic = found.topic,
        .end = row.end,
        .lease_ms = row.lease_ms,
        .due = row.due,
        .is_bare = bel__timer_is_bare(&found),
        .is_old = true,
    };
    memcpy(made.secret, row.secret, sizeof made.secret);
    return enter(engine, &made, found.record.group, &lease);
}

int bel__leases_open(struct bel_engine *engine)
{
    struct bel_leases *leases = &engine->leases;
    bel__map_init_words(&leases->map, engine->topics.by_name.secret);
    int err = bel__slab_init(&leases->slab, sizeof(struct bel_lease), LEASES_MAX);
    if (err) return err;
    struct bel_wheel_options options = {.now = engine->now.open, .timers_max = LEASES_MAX};
    err = bel_wheel_create(&options, &leases->wheel);
    if (err) return err;
    struct bel_key from = bel__key_of(&(struct bel_place){.table = BEL_TABLE_LEASES});
    struct bel_store_cursor cursor;
    err = bel__store_seek(engine->store, &from, &cursor);
    while (err == 0 && bel__place_of(&cursor.key).table == BEL_TABLE_LEASES) {
        err = load_lease(engine, &cursor);
        if (err == 0) err = bel__store_next(engine->store, &cursor);
    }
    return err == BEL_ENOTFOUND ? 0 : err;
}

void bel__leases_close(struct bel_engine *engine)
{
    bel_wheel_destroy(engine->leases.wheel);
    bel__map_finish(&engine->leases.map);
    bel__slab_finish(&engine->leases.slab);
}
