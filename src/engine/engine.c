/* SPDX-License-Identifier: MIT */

/*
 * A turn is all that an engine does:
 *
 *     time moves -> leases end -> timers expire -> work for jobs -> timers come due, plans ring
 *         -> parked claims are served
 *         -> each request, and again parked claims -> waits end
 *             -> numbers and times are written -> commit -> answers
 *
 * All requests of a turn share a number of rows that they read and write. When the number is used
 * up, the rest waits for the next turn: no turn is long, and requests keep their order.
 *
 * No answer is given before its batch is durable, unless the options require less. A turn depends
 * only on the state, the time, the requests, and random numbers from engine->entropy.
 */
#include "engine/engine.h"

#include "core/units.h"
#include "core/why.h"
#include "engine/commands/commands.h"
#include "engine/due.h"
#include "engine/jobs/jobs.h"
#include "engine/jobs/recurring.h"
#include "engine/jobs/work.h"
#include "engine/lease_timeout.h"
#include "engine/migration.h"
#include "engine/rows/encoding.h"
#include "engine/state/dependency.h"
#include "engine/state/ready.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOAD_MAX = 4096, /* due rows handled in one turn */
    SAVE_MS = 1000,  /* how often open time is written while there are leases */
    READY_MAX_DEFAULT = 1000 * 1000,
    BULK_CHANGES_MAX = 1000,
    ROWS_MAX = 10000, /* rows that the requests of one turn read and write, about: 2 to 5 ms */
    BULK_SHARE = 2,   /* others have half of them, however many bulk requests there are */
    SEGMENT_BYTES = 64 << 20,
    SYNC_INTERVAL_MS = 1000,
};

/* --- a turn --- */

typedef int command_fn(struct bel_engine *engine, struct bel_request *request);

static int schedule(struct bel_engine *engine, struct bel_request *request)
{
    bool is_whole = request->command.schedule.whole != NULL;
    return is_whole ? bel__do_restore(engine, request) : bel__do_schedule(engine, request);
}

static command_fn *const commands[] = {
    [BEL_VERB_SCHEDULE] = schedule,
    [BEL_VERB_CANCEL] = bel__do_cancel,
    [BEL_VERB_RESCHEDULE] = bel__do_reschedule,
    [BEL_VERB_GET] = bel__do_get,
    [BEL_VERB_CLAIM] = bel__do_claim,
    [BEL_VERB_ACK] = bel__do_ack,
    [BEL_VERB_FAIL] = bel__do_fail,
    [BEL_VERB_RELEASE] = bel__do_release,
    [BEL_VERB_EXTEND] = bel__do_extend,
    [BEL_VERB_LIST] = bel__do_list,
    [BEL_VERB_REVIVE] = bel__do_revive,
    [BEL_VERB_PURGE] = bel__do_purge,
    [BEL_VERB_TOPICS] = bel__do_topics,
    [BEL_VERB_TOPIC] = bel__do_topic,
    [BEL_VERB_CONFIGURE] = bel__do_configure,
    [BEL_VERB_PAUSE] = bel__do_pause,
    [BEL_VERB_RESUME] = bel__do_resume,
    [BEL_VERB_EXPLAIN] = bel__do_explain,
    [BEL_VERB_AGENDA] = bel__do_agenda,
    [BEL_VERB_JOB_SUBMIT] = bel__do_job_submit,
    [BEL_VERB_JOB_GET] = bel__do_job_get,
    [BEL_VERB_JOB_CANCEL] = bel__do_job_cancel,
    [BEL_VERB_JOB_LIST] = bel__do_job_list,
    [BEL_VERB_JOB_PAUSE] = bel__do_job_pause,
    [BEL_VERB_JOB_RESUME] = bel__do_job_resume,
    [BEL_VERB_LIMIT] = bel__do_limit,
};
static_assert(sizeof commands / sizeof commands[0] == BEL_VERBS, "every verb is done");

static bool is_final(int err)
{
    return err == BEL_EIO || err == BEL_ECORRUPT;
}

/* Runs a command whose reply may have to wait after the turn: for the batch of the turn if the
 * command has changed something, otherwise for what the reply shows. */
__attribute__((noinline)) static int run_late(struct bel_engine *engine,
                                              struct bel_request *request)
{
    const struct bel_changes *changes = &engine->rows.changes;
    uint64_t before = changes->count, after = BEL_AFTER_TURN;
    bel__answers_choose(&engine->answers,
                        bel_verb_effect(request->command.verb) == BEL_EFFECT_READ);
    int err = commands[request->command.verb](engine, request);
    bel__answers_choose(&engine->answers, false);
    if (err == BEL_DO_WAIT) return err;
    if (changes->count == before) {
        after = request->is_early ? 0 : bel__dependency(engine, request);
    }
    request->own.words[BEL_OWN_AFTER] = after;
    return err;
}

static int do_command(struct bel_engine *engine, struct bel_request *request)
{
    assert(request->command.verb < BEL_VERBS);
    if (engine->broken) return engine->broken;
    if (engine->rows.changes.is_on) return run_late(engine, request);
    return commands[request->command.verb](engine, request);
}

static void run(struct bel_engine *engine, struct bel_request *request)
{
    int err = do_command(engine, request);
    if (err == BEL_EBUSY && engine->rows.has_changed) {
        bel__request_list_push(&engine->submitted, request); /* first in the next batch */
        engine->is_full = true;
        return;
    }
    if (err == BEL_EBUSY) err = BEL_EFULL; /* larger than any batch */
    if (err == BEL_DO_WAIT) return;
    if (err == BEL_DO_LATER) {
        request->own.words[BEL_OWN_STAGE] = BEL_STAGE_BULK;
        bel__request_list_append(&engine->bulk, request);
    } else {
        if (is_final(err)) engine->broken = err;
        request->own.reply.err = err;
        bel__answer(engine, request);
    }
    err = engine->broken ? 0 : bel__work_turn(engine); /* what follows from it for jobs */
    if (err == 0 && !engine->broken) err = bel__due_turn(engine); /* rows that it made due */
    if (is_final(err)) engine->broken = err;
    if (engine->resources.is_active) bel__resources_turn(engine);
    bel__claims_serve(engine);
}

/* Handles everything that is due by now. */
static void handle_due(struct bel_engine *engine)
{
    int err = bel__lease_timeouts_turn(engine);
    if (err == 0) err = bel__migration_turn(engine);
    if (err == 0) err = bel__expiry_turn(engine);
    if (err == 0) err = bel__jobs_turn(engine);
    if (engine->resources.is_active) bel__resources_turn(engine);
    bel__due_reread(engine);
    if (err == 0) err = bel__due_turn(engine);
    if (err == 0) err = bel__recurring_turn(engine);
    if (err == 0) err = bel__work_turn(engine);
    if (is_final(err)) engine->broken = err;
    engine->rows_end = bel__store_touched(engine->store) + engine->rows_max;
    bel__claims_serve(engine);
}

/* Asks the store which requests must wait, and until when. */
static void look_at_holds(struct bel_engine *engine, struct bel_now now)
{
    uint64_t add_ns = bel__store_hold_ns(engine->store, BEL_STORE_ADD);
    uint64_t change_ns = bel__store_hold_ns(engine->store, BEL_STORE_END);
    engine->has_holds = (add_ns | change_ns) != 0;
    engine->add_from = (struct bel_mono){add_ns > 0 ? now.real.ns + add_ns : 0};
    engine->change_from = (struct bel_mono){change_ns > 0 ? now.real.ns + change_ns : 0};
}

/* Returns until when a request is held back; 0: it is not. */
static uint64_t held_until(const struct bel_engine *engine, const struct bel_request *request)
{
    enum bel_effect effect = bel_verb_effect(request->command.verb);
    if (effect == BEL_EFFECT_READ) return 0;
    uint64_t add = effect == BEL_EFFECT_ADD ? engine->add_from.ns : 0;
    return add > engine->change_from.ns ? add : engine->change_from.ns;
}

static bool is_held(const struct bel_engine *engine, const struct bel_request *request)
{
    return held_until(engine, request) > engine->now.real.ns;
}

/* Continues the bulk requests, in turn: those that this turn does not reach are first in the
 * next. */
static void run_bulk(struct bel_engine *engine)
{
    struct bel_request_list bulk;
    struct bel_request *request;
    uint64_t others = 1 + engine->rows_max / BULK_SHARE;
    bel__request_list_init(&bulk);
    bel__request_list_join(&bulk, &engine->bulk);
    engine->rows_end -= others < engine->rows_end ? others : 0;
    while (!engine->is_full && bel__has_rows_left(engine) &&
           (request = bel__request_list_take(&bulk)) != NULL) {
        bel__count_rows(engine, 1);
        run(engine, request);
    }
    uint64_t least = bel__store_touched(engine->store) + others;
    if (engine->rows_end < least) engine->rows_end = least;
    bel__request_list_join(&bulk, &engine->bulk);
    bel__request_list_join(&engine->bulk, &bulk);
}

static void run_requests(struct bel_engine *engine)
{
    struct bel_request *request;
    if (engine->bulk.first != NULL) run_bulk(engine);
    while (!engine->is_full && (request = engine->submitted.first) != NULL) {
        if (engine->has_holds && is_held(engine, request)) return;
        if (!bel__has_rows_left(engine)) return; /* first in the next turn */
        (void)bel__request_list_take(&engine->submitted);
        if (request->own.words[BEL_OWN_STAGE] != BEL_STAGE_BULK) {
            request->own.reply = (struct bel_reply){0};
        }
        bel__count_rows(engine, 1);
        run(engine, request);
    }
}

static void forget_all(struct bel_engine *engine)
{
    for (uint32_t i = 0; i < engine->topics.count; i++) {
        struct bel_topic_state *topic = bel__topic_at(&engine->topics, i);
        if (topic != NULL) bel__ready_forget(engine, topic);
    }
    bel__plan_bounds_forget(&engine->bounds);
}

static void put_times(struct bel_engine *engine)
{
    uint8_t row[4 * BEL_ENCODED_NUMBER_BYTES_MAX];
    struct bel_row_writer writer = {.at = row, .end = row + sizeof row};
    struct bel_key key = bel__key_meta(BEL_META_TIMES);
    bel__write_number(&writer, engine->now.engine);
    bel__write_number(&writer, engine->now.open_up); /* leases of this turn begin at open_up */
    bel__write_number(&writer, engine->rows.sequence);
    struct bel_view value = {.data = row, .bytes = (size_t)(writer.at - row)};
    bel__store_put(engine->store, &key, value, BEL_ROW_ANY);
}

/* Returns whether there are leases that end some day. Those of occurrences of recurring jobs end
 * with their jobs: the engine need not wake to write open time for them. */
static bool has_leases(const struct bel_engine *engine)
{
    return bel__map_count(&engine->leases.map) > bel__jobs_leases(engine);
}

static bool must_save_times(const struct bel_engine *engine)
{
    return engine->rows.has_changed ||
           (has_leases(engine) && engine->now.open - engine->saved_open >= SAVE_MS);
}

/* Commits the batch of the turn. After a fatal error it does not: numbers may not match rows, and
 * all answers report the error. */
static void commit(struct bel_engine *engine)
{
    if (engine->broken) {
        bel__answers_end(engine, bel__store_batch(engine->store));
        return;
    }
    if (must_save_times(engine)) {
        int err =
            engine->rows.has_changed ? 0 : bel__rows_reserve(&engine->rows, 1, 0, BEL_STORE_END);
        engine->saved_open = engine->now.open; /* on an error, retry after SAVE_MS */
        if (err == 0) {
            bel__rows_put_counts(&engine->rows);
            bel__topics_flush(engine);
            if (engine->resources.dirty != NULL) bel__resources_flush(engine);
            put_times(engine);
        }
    }
    bel__rows_end(&engine->rows);
    uint64_t batch = bel__store_commit(engine->store);
    engine->stats.is_disk_low = bel__store_is_disk_low(engine->store);
    int err = bel__store_error(engine->store);
    if (err) engine->broken = err;
    if (!engine->broken) bel__counts_trim(&engine->rows.counts);
    bel__answers_end(engine, batch);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Returns the boot time of a lane's `time`. The current millisecond of the lane, `now`, began
 * `rest_ns` ago. */
static uint64_t boot_after(const struct bel_engine *engine, uint64_t time, uint64_t now,
                           uint64_t rest_ns)
{
    assert(rest_ns < NS_PER_MS && rest_ns <= engine->now.boot.ns);
    struct bel_boot ms_start = {engine->now.boot.ns - rest_ns};
    if (time == BEL_NEVER) return BEL_NEVER;
    if (time <= now) return engine->now.boot.ns;
    uint64_t ms = time - now;
    struct bel_boot due;
    if (ms > UINT64_MAX / NS_PER_MS) return BEL_NEVER - 1;
    return bel_boot_add(ms_start, ms * NS_PER_MS, &due) == 0 ? due.ns : BEL_NEVER - 1;
}

/* For engine and open time, whose milliseconds begin with those of the boot clock. */
static uint64_t boot_in(const struct bel_engine *engine, uint64_t time, uint64_t now)
{
    return boot_after(engine, time, now, engine->now.boot.ns % NS_PER_MS);
}

/* For wall time, whose milliseconds begin at another point. Without wall_rest_ns, or just after
 * boot, the result may be up to 1 ms late. The boot clock was read before the wall clock, so the
 * result is early by the time between the two. */
static uint64_t boot_at_wall(const struct bel_engine *engine, uint64_t time)
{
    if (time == BEL_NEVER) return BEL_NEVER;
    uint64_t rest_ns = engine->wall_rest_ns, now = bel__lane_now(&engine->now, BEL_LANE_WALL);
    if (rest_ns == 0 || rest_ns > engine->now.boot.ns) return boot_in(engine, time, now);
    return boot_after(engine, time, now, rest_ns);
}

/* Lowers `*due`, or `*wait` if additions are held back, to the time of the next slice of what the
 * engine does by itself: ending many expired timers, work for jobs, and the migration. */
static void see_to_slices(const struct bel_engine *engine, uint64_t *due, uint64_t *wait)
{
    const struct bel_times *now = &engine->now;
    uint64_t time = bel__migration_next(engine);
    time = earlier(time, bel__jobs_next(engine));
    if (bel__expiry_is_behind(engine, NULL)) time = now->engine;
    if (time <= now->engine && bel__is_held(engine)) {
        *wait = earlier(*wait, engine->add_from.ns);
    } else {
        *due = earlier(*due, boot_in(engine, time, now->engine));
    }
}

static struct bel_next next_turn(const struct bel_engine *engine)
{
    const struct bel_times *now = &engine->now;
    if (engine->broken) { /* only answers are left to give */
        bool has_more =
            engine->submitted.first != NULL || bel_wheel_count(engine->waiting.wheel) > 0;
        return (struct bel_next){.due = {has_more ? now->boot.ns : BEL_NEVER}, .wait = {BEL_NEVER}};
    }
    uint64_t lease = bel_wheel_next(engine->leases.wheel);
    uint64_t due = boot_in(engine, lease, now->open);
    if (has_leases(engine)) {
        due = earlier(due, boot_in(engine, engine->saved_open + SAVE_MS, now->open));
    }
    uint64_t wake = bel_wheel_next(engine->wakes.wheels[BEL_LANE_ENGINE]);
    due = earlier(due, boot_in(engine, wake, bel__lane_now(now, BEL_LANE_ENGINE)));
    due = earlier(due, boot_at_wall(engine, bel_wheel_next(engine->wakes.wheels[BEL_LANE_WALL])));
    due = earlier(due, boot_at_wall(engine, bel__jobs_next_wall(engine)));
    if (engine->resources.is_active) {
        due = earlier(due, boot_in(engine, bel__resources_next(engine), now->engine));
    }
    uint64_t wait_ns = bel__store_wait_ns(engine->store);
    if (wait_ns < UINT64_MAX - now->boot.ns) due = earlier(due, now->boot.ns + wait_ns);
    uint64_t wait = bel_wheel_next(engine->waiting.wheel);
    see_to_slices(engine, &due, &wait);
    const struct bel_request *first = engine->submitted.first;
    bool has_requests = engine->bulk.first != NULL || first != NULL;
    if (engine->has_holds && first != NULL && engine->bulk.first == NULL) {
        uint64_t until = held_until(engine, first);
        has_requests = until <= now->real.ns;
        if (!has_requests) wait = earlier(wait, until);
    }
    if (engine->is_behind || has_requests) due = now->boot.ns;
    assert(due >= now->boot.ns);
    return (struct bel_next){
        .due = {due}, .wait = {wait}, .add = engine->add_from, .change = engine->change_from};
}

/* Tells which batch the changes of this turn will belong to. */
static void begin_batch(struct bel_engine *engine)
{
    if (!engine->rows.changes.is_on) return;
    bel__changes_begin(&engine->rows.changes, bel__store_batch(engine->store) + 1,
                       bel__store_answerable(engine->store));
}

/* Lets a thread sync if the disk has become slow. All batches are durable, so that no reply waits
 * for one. Without memory for the thread, the next slow turn tries again. */
static void see_to_syncs(struct bel_engine *engine)
{
    if (engine->broken || !bel__store_is_slow(engine->store)) return;
    assert(bel__store_answerable(engine->store) == bel__store_batch(engine->store));
    engine->stats.slow_sync_us = bel__store_commit_ns(engine->store) / NS_PER_US;
    if (bel__store_begin_late(engine->store) != 0) return;
    engine->stats.is_sync_in_thread = true;
    bel__changes_start(&engine->rows.changes);
}

static struct bel_next turn(struct bel_backend *backend, struct bel_now now)
{
    struct bel_engine *engine = (struct bel_engine *)backend;
    bel__answers_give(engine);
    if (bel__answers_begin(engine) != 0) { /* out of memory: retry */
        return (struct bel_next){.due = now.boot, .wait = {BEL_NEVER}};
    }
    begin_batch(engine);
    look_at_holds(engine, now);
    engine->is_behind = engine->is_full = false;
    engine->wakes.is_due = true;
    engine->load_left = LOAD_MAX;
    bel__resources_begin(engine);
    bel__wait_begin(engine);
    engine->wall_rest_ns = now.wall_rest_ns;
    if (bel__times_move(&engine->now, now)) {
        engine->stats.clock_steps++;
        forget_all(engine);
    }
    if (!engine->broken) handle_due(engine);
    if (engine->broken) engine->has_holds = false;
    run_requests(engine);
    bel__wait_turn(engine);
    commit(engine);
    bel__answers_give(engine);
    if (!engine->broken && bel__store_work(engine->store)) engine->is_behind = true;
    see_to_syncs(engine);
    engine->stats.is_disk_low = bel__store_is_disk_low(engine->store);
    look_at_holds(engine, now);
    return next_turn(engine);
}

static void submit(struct bel_backend *backend, struct bel_request *request)
{
    struct bel_engine *engine = (struct bel_engine *)backend;
    request->own.words[BEL_OWN_STAGE] = BEL_STAGE_SUBMITTED;
    bel__request_list_append(&engine->submitted, request);
}

static bool withdraw(struct bel_backend *backend, struct bel_request *request)
{
    struct bel_engine *engine = (struct bel_engine *)backend;
    switch (request->own.words[BEL_OWN_STAGE]) {
    case BEL_STAGE_SUBMITTED:
        return bel__request_list_remove(&engine->submitted, request);
    case BEL_STAGE_WAITING:
        bel__wait_leave(engine, request);
        return true;
    default:
        return false;
    }
}

void bel__engine_explain(const struct bel_engine *engine, struct bel_why *why)
{
    bel__store_explain(engine->store, why);
    if (why->text[0] != 0 || engine->broken != BEL_ECORRUPT) return;
    (void)bel__why_say(why, engine->broken,
                       "a stored row is damaged: check the data directory with belfry doctor");
}

/* --- opening and closing --- */

static uint32_t or_default(uint32_t value, uint32_t otherwise)
{
    return value > 0 ? value : otherwise;
}

static int load_secrets(struct bel_engine *engine)
{
    struct bel_key key = bel__key_meta(BEL_META_SECRETS);
    struct bel_view row;
    int err = bel__store_get(engine->store, &key, &row);
    if (err == 0) {
        if (row.bytes != sizeof engine->alias_keys) return BEL_ECORRUPT;
        memcpy(engine->alias_keys, row.data, row.bytes);
        return 0;
    }
    if (err != BEL_ENOTFOUND) return err;
    err = bel__entropy_fill(engine->entropy, engine->alias_keys, sizeof engine->alias_keys);
    if (err) return err;
    err = bel__rows_reserve(&engine->rows, 1, sizeof engine->alias_keys, BEL_STORE_ADD);
    if (err) return err;
    struct bel_view value = {.data = engine->alias_keys, .bytes = sizeof engine->alias_keys};
    bel__rows_put(&engine->rows, &key, value, BEL_ROW_NEW);
    return bel__migration_skip(engine);
}

static int load_times(struct bel_engine *engine, struct bel_now now)
{
    struct bel_key key = bel__key_meta(BEL_META_TIMES);
    struct bel_view row = {0};
    int err = bel__store_get(engine->store, &key, &row);
    if (err != 0 && err != BEL_ENOTFOUND) return err;
    bool is_new = err == BEL_ENOTFOUND;
    struct bel_row_reader reader = bel__reader_of(row);
    uint64_t time = is_new ? 0 : bel__read_number(&reader);
    uint64_t open = is_new ? 0 : bel__read_number(&reader);
    engine->rows.sequence = is_new ? 1 : bel__read_number(&reader);
    if (reader.bad || reader.at != reader.end) return BEL_ECORRUPT;
    bel__times_open(&engine->now, now, time, open);
    engine->saved_open = open;
    return 0;
}

static int recover(struct bel_engine *engine, const struct bel_engine_options *options)
{
    struct bel_siphash_key secret;
    int err = bel__entropy_fill(engine->entropy, &secret, sizeof secret);
    if (err) return err;
    bel__topics_init(&engine->topics, secret, or_default(options->topics_max, BEL_TOPICS_MAX));
    bel__counts_init(&engine->rows.counts, secret);
    bel__map_init(&engine->resource_work.map, secret);
    bel__job_marks_init(&engine->job_marks, secret);
    bel__changes_init(&engine->rows.changes, secret, bel__store_is_late(engine->store));
    begin_batch(engine);
    err = load_secrets(engine);
    if (err == 0) err = load_times(engine, options->now);
    if (err == 0) err = bel__wakes_open(engine);
    if (err == 0) err = bel__wait_open(engine, secret);
    if (err == 0) err = bel__topics_load(engine);
    if (err == 0) err = bel__resources_open(engine);
    if (err == 0) err = bel__jobs_open(engine, options->job_retention_ms);
    if (err == 0) err = bel__leases_open(engine);
    if (err == 0) err = bel__expiry_open(engine);
    if (err == 0) err = bel__migration_open(engine);
    if (err) return err;
    forget_all(engine); /* the first turn loads the ready timers */
    for (uint32_t i = 0; i < engine->topics.count; i++) {
        struct bel_topic_state *topic = bel__topic_at(&engine->topics, i);
        if (topic != NULL) bel__wake_sweep(engine, topic, 0);
    }
    return 0;
}

int bel__engine_open_on(const struct bel_engine_options *options, struct bel_store *store,
                        struct bel_entropy *entropy, struct bel_engine **out)
{
    if (options->payload_bytes_max > BEL_PAYLOAD_BYTES_MAX) return BEL_EINVAL;
    if (options->topics_max > BEL_TOPICS_MAX) return BEL_EINVAL;
    if (options->job_depth_max > BEL_JOB_THEN_DEPTH_MAX) return BEL_EINVAL;
    struct bel_engine *engine = calloc(1, sizeof *engine);
    if (engine == NULL) return BEL_ENOMEM;
    engine->backend = (struct bel_backend){.submit = submit, .withdraw = withdraw, .turn = turn};
    engine->zones = options->zones;
    engine->payload_bytes_max = or_default(options->payload_bytes_max, BEL_PAYLOAD_BYTES_DEFAULT);
    engine->job_limits = (struct bel_job_limits){.text_bytes_max = options->job_bytes_max,
                                                 .payload_bytes_max = engine->payload_bytes_max,
                                                 .tasks_max = options->job_tasks_max,
                                                 .edges_max = options->job_edges_max,
                                                 .then_depth_max = options->job_depth_max};
    engine->ready_max = or_default(options->ready_max, READY_MAX_DEFAULT);
    engine->bulk_changes_max = BULK_CHANGES_MAX;
    engine->rows_max = ROWS_MAX;
    engine->store = engine->rows.store = store;
    engine->entropy = entropy;
    engine->stats.is_sync_in_thread = bel__store_is_late(store);
    bel__request_list_init(&engine->submitted);
    bel__request_list_init(&engine->bulk);
    bel__answers_init(&engine->answers);
    int err = recover(engine, options);
    if (err) {
        engine->store = NULL; /* stays the caller's */
        bel_engine_close(engine);
        return err;
    }
    *out = engine;
    return 0;
}

/* Returns the size of a log segment: at least four times the largest payload. */
static uint64_t segment_bytes(const struct bel_engine_options *options)
{
    uint64_t bytes = 4 * (uint64_t)options->payload_bytes_max;
    return bytes <= SEGMENT_BYTES ? SEGMENT_BYTES : (bytes + 4095) / 4096 * 4096;
}

static int open_store(const struct bel_engine_options *options, struct bel_store **out,
                      struct bel_engine_why *why)
{
    struct bel_store_options store = {.path = options->folder,
                                      .segment_bytes = segment_bytes(options),
                                      .has_thread = true,
                                      .is_tree_checked = options->is_checked,
                                      .wake = options->wake,
                                      .context = options->context};
    bool is_lazy = options->durability != BEL_ENGINE_DURABILITY_COMMIT;
    if (options->sync == BEL_ENGINE_SYNC_ADAPTIVE) store.sync = BEL_SYNC_ADAPTIVE;
    if (options->sync == BEL_ENGINE_SYNC_IN_THREAD || is_lazy) store.sync = BEL_SYNC_IN_THREAD;
    store.is_lazy = is_lazy;
    if (options->durability == BEL_ENGINE_DURABILITY_INTERVAL) {
        store.sync_interval_ns =
            (uint64_t)or_default(options->sync_interval_ms, SYNC_INTERVAL_MS) * NS_PER_MS;
    }
    struct bel_why found = {0};
    if (options->folder == NULL) return bel__store_open_memory(out);
    int err = bel__store_open(&store, out, &found);
    if (err != 0 && why != NULL) (void)bel__why_pass(why->text, err, &found);
    return err;
}

int bel_engine_open(const struct bel_engine_options *options, struct bel_engine **out,
                    struct bel_engine_why *why)
{
    struct bel_store *store;
    if (why != NULL) why->text[0] = 0;
    int err = open_store(options, &store, why);
    if (err) return err;
    err = bel__engine_open_on(options, store, bel__entropy_system(), out);
    if (err) bel__store_close(store);
    return err;
}

void bel_engine_close(struct bel_engine *engine)
{
    if (engine == NULL) return;
    bel__wait_close(engine);
    bel__agendas_close(engine);
    bel__leases_close(engine);
    bel__jobs_close(engine);
    bel__topics_finish(&engine->topics);
    bel__work_finish(engine);
    bel__resources_close(engine);
    bel__counts_finish(&engine->rows.counts);
    bel__changes_finish(&engine->rows.changes);
    bel__wakes_close(engine);
    bel__answers_finish(&engine->answers);
    bel__store_close(engine->store);
    free(engine);
}

struct bel_backend *bel_engine_backend(struct bel_engine *engine)
{
    return &engine->backend;
}

const struct bel_engine_stats *bel_engine_stats(const struct bel_engine *engine)
{
    return &engine->stats;
}
