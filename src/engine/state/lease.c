/* SPDX-License-Identifier: MIT */

/*
 * A lease is a row next to its timer's row, and an item in memory that is found by the timer's key.
 * Leases have a wheel of their own, whose time runs only while the engine is open. All leases are
 * in memory: there are as many as running handlers.
 */
#include "engine/state/lease.h"

#include "engine/state/ready.h"
#include "engine/state/state.h"
#include "engine/state/timer_lookup.h"
#include "engine/state/work.h"

#include <assert.h>
#include <string.h>

enum {
    LEASES_MAX = 1 << 24,
};

struct bel_lease *bel__lease_at(const struct bel_engine *engine, uint32_t index)
{
    return bel__slab_at(&engine->leases.slab, index);
}

static uint32_t index_of(const struct bel_engine *engine, const struct bel_lease *lease)
{
    const unsigned char *at = (const unsigned char *)lease;
    uint32_t index = (uint32_t)((size_t)(at - engine->leases.slab.base) / sizeof *lease);
    assert(bel__lease_at(engine, index) == lease);
    return index;
}

struct bel_lease *bel__lease_find(const struct bel_engine *engine, const struct bel_key *key)
{
    const uint64_t *index = bel__map_find(&engine->leases.map, key, sizeof *key);
    return index == NULL ? NULL : bel__lease_at(engine, (uint32_t)*index);
}

/* Compares secrets in constant time. */
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
    return lease->end > engine->now.open ? lease : NULL; /* NULL: over, but not taken back yet */
}

/* Returns the deliveries in a turn of the lease's share; 0 if the lease is not a delivery. */
static uint32_t turn_of(const struct bel_lease *lease)
{
    const struct bel_topic_state *topic = lease->topic;
    if (lease->is_old) return 0;
    return bel__picker_turn(bel__topic_settings(topic)->concurrency,
                            topic->numbers[BEL_NUMBER_SHARES]);
}

/* Returns whether a lease is of a delivery to a worker. The engine itself leases the occurrences of
 * recurring jobs, which are not delivered: they need no resource, not even `*`. */
static bool is_of_worker(const struct bel_lease *lease)
{
    return !bel__topic_is_own(bel__topic_name(lease->topic));
}

/* Adds a lease to the slab, the map and the wheel, and counts it for its share. */
static int enter(struct bel_engine *engine, const struct bel_lease *made,
                 const struct bel_record *record, struct bel_lease **out)
{
    struct bel_leases *leases = &engine->leases;
    assert(made->topic != NULL && bel__place_of(&made->key).table == BEL_TABLE_TIMERS);
    uint32_t index = bel__slab_take(&leases->slab);
    if (index == BEL__SLAB_NONE) return BEL_ENOMEM;
    struct bel_lease *lease = bel__lease_at(engine, index);
    *lease = *made;
    int err = bel__map_put(&leases->map, &lease->key, sizeof lease->key, index);
    if (err) goto give;
    err = bel_wheel_arm(leases->wheel, lease->end, BEL_PRIORITY_DEFAULT, index, &lease->timer);
    if (err) goto forget;
    struct bel_standing standing = bel__ready_share(record);
    if (record->resource.bytes > 0) {
        err = bel__resource_take(engine, record->resource, &lease->resource);
        if (err) goto disarm;
    }
    err = bel__picker_lease(&lease->topic->picker, &standing, turn_of(lease), &lease->share);
    if (err) goto leave;
    err = bel__job_lease(&engine->job_marks, lease->job);
    if (err) goto unlease;
    if (is_of_worker(lease)) {
        bel__resource_enter(engine, lease->resource, &lease->key, !lease->is_old);
    }
    lease->topic->leased++;
    assert(lease->topic->leased == lease->topic->picker.leased);
    bel__work_begin(engine, lease, record);
    *out = lease;
    return 0;

unlease:
    bel__picker_unlease(&lease->topic->picker, lease->share);
leave:
    bel__resource_leave(engine, lease->resource);
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

/* Draws a random secret. Secrets are fetched many at a time: a system call costs as much as the
 * rest of a lease. */
static int draw_secret(struct bel_engine *engine, uint8_t out[BEL_TOKEN_SECRET_BYTES])
{
    struct bel_leases *leases = &engine->leases;
    if (leases->secrets_left == 0) {
        int err = bel__entropy_fill(engine->entropy, leases->secrets, sizeof leases->secrets);
        if (err) return err;
        leases->secrets_left = BEL_SECRETS_MAX;
    }
    assert(leases->secrets_left > 0 && leases->secrets_left <= BEL_SECRETS_MAX);
    uint8_t *secret = leases->secrets[--leases->secrets_left];
    memcpy(out, secret, BEL_TOKEN_SECRET_BYTES);
    memset(secret, 0, BEL_TOKEN_SECRET_BYTES);
    return 0;
}

int bel__lease_make(struct bel_engine *engine, const struct bel_found *found,
                    const struct bel_lease_terms *terms, struct bel_lease **out)
{
    assert(found->state == BEL_READY && found->lease == NULL && terms->lease_ms > 0);
    struct bel_lease made = {
        .key = found->key,
        .topic = found->topic,
        .end = engine->now.open_up + terms->lease_ms,
        .lease_ms = terms->lease_ms,
        .due = (uint64_t)terms->due.ms,
        .start = engine->now.open,
        .job = found->record.job.number,
        .is_bare = bel__record_is_bare(&found->record),
    };
    int err = draw_secret(engine, made.secret);
    if (err) return err;
    err = enter(engine, &made, &found->record, out);
    if (err) return err;
    put_row(engine, *out, terms->worker, BEL_ROW_NEW);
    engine->events->left(engine, found->topic, &found->key, &found->record);
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
    assert(lease->end > engine->now.open); /* not taken back yet */
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
    bool was_there = bel__map_remove(&leases->map, &lease->key, sizeof lease->key, NULL);
    assert(was_there && lease->topic->leased > 0);
    (void)was_there;
    bel__work_end(engine, lease);
    bel__picker_unlease(&lease->topic->picker, lease->share);
    bel__job_unlease(&engine->job_marks, lease->job);
    lease->topic->leased--;
    if (is_of_worker(lease)) {
        bel__resource_end(engine, lease->resource, &lease->key, lease->ending);
    }
    engine->events->freed(engine, lease->topic); /* one more timer fits into the concurrency */
    bel__slab_give(&leases->slab, index_of(engine, lease));
}

/* Reads the record of a leased timer. */
static int read_record(struct bel_engine *engine, const struct bel_key *key, struct bel_record *out)
{
    struct bel_view row;
    int err = bel__store_get(engine->store, key, &row);
    if (err == 0) err = bel__record_read(row, out);
    if (err) return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
    return out->kind == BEL_RECORD_TIMER ? 0 : BEL_ECORRUPT;
}

static int load_lease(struct bel_engine *engine, const struct bel_store_cursor *cursor)
{
    struct bel_key key = bel__key_in(&cursor->key, BEL_TABLE_TIMERS);
    struct bel_lease_row row;
    struct bel_record record;
    struct bel_lease *lease;
    int err = bel__lease_read(cursor->value, &row);
    if (err == 0) err = read_record(engine, &key, &record);
    if (err) return err;
    struct bel_lease made = {
        .key = key,
        .topic = bel__topic_at(&engine->topics, bel__place_of(&key).topic),
        .end = row.end,
        .lease_ms = row.lease_ms,
        .due = row.due,
        .job = record.job.number,
        .is_bare = bel__record_is_bare(&record),
        .is_old = true,
    };
    if (made.topic == NULL) return BEL_ECORRUPT;
    memcpy(made.secret, row.secret, sizeof made.secret);
    return enter(engine, &made, &record, &lease);
}

int bel__leases_open(struct bel_engine *engine)
{
    struct bel_leases *leases = &engine->leases;
    assert(leases->wheel == NULL);
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
