/* SPDX-License-Identifier: MIT */

/*
 * Which batch a reply must wait for, if it comes from a read, found out without the engine's own
 * notes. The linker sends every put and delete of the store here, and every answer:
 *
 *     put, delete ----> row, topic -> the batch that changed it last
 *     answer ---------> the batch that changed last what the reply shows
 *
 * A read that is told before that batch is durable shows what a crash could take back. A read that
 * is not told in a turn which began when that batch was durable waits for a sync that it does not
 * depend on.
 */
#include "world.h"

#include "engine/engine.h"
#include "store/state.h"

#include <inttypes.h>
#include <string.h>

enum {
    ROWS_MAX = 1 << 16, /* a power of two */
    TOPICS_SEEN_MAX = 64,
};

struct row {
    struct bel_key key;
    uint64_t batch;
    uint64_t opening; /* other values: the entry is free */
};

static struct row rows[ROWS_MAX];
static size_t row_count;
static uint64_t opening, last, last_name, topics[TOPICS_SEEN_MAX];
static const struct bel_store *watched; /* NULL: none */

void __real_bel__store_put(struct bel_store *store, const struct bel_key *key,
                           struct bel_view value, enum bel_row row);
void __wrap_bel__store_put(struct bel_store *store, const struct bel_key *key,
                           struct bel_view value, enum bel_row row);
void __real_bel__store_delete(struct bel_store *store, const struct bel_key *key);
void __wrap_bel__store_delete(struct bel_store *store, const struct bel_key *key);
void __real_bel__answer(struct bel_engine *engine, struct bel_request *request);
void __wrap_bel__answer(struct bel_engine *engine, struct bel_request *request);

void reads_open(const struct bel_store *store)
{
    watched = store;
    opening++;
    row_count = 0;
    last = last_name = 0;
    memset(topics, 0, sizeof topics);
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The entry of a row, or the free one where it belongs. */
static struct row *find(const struct bel_key *key)
{
    uint64_t hash = key->words[0] ^ key->words[1] * UINT64_C(0x9e3779b97f4a7c15) ^
                    key->words[2] * UINT64_C(0xff51afd7ed558ccd);
    size_t at = (size_t)((hash * UINT64_C(0xc4ceb9fe1a85ec53)) >> 32) % ROWS_MAX;
    while (rows[at].opening == opening && memcmp(&rows[at].key, key, sizeof *key) != 0) {
        at = (at + 1) % ROWS_MAX;
    }
    return &rows[at];
}

/* Whether a table is one of jobs, whose keys have no topic. */
static bool is_job(enum bel_table table)
{
    return table == BEL_TABLE_JOBS || table == BEL_TABLE_JOB_IDS || table == BEL_TABLE_TASKS ||
           table == BEL_TABLE_EDGES || table == BEL_TABLE_JOB_WORK || table == BEL_TABLE_JOB_TIMES;
}

static void note(const struct bel_store *store, const struct bel_key *key)
{
    struct bel_place place = bel__place_of(key);
    uint64_t batch = store->batch + 1;
    bool is_shown = place.table != BEL_TABLE_META && place.table != BEL_TABLE_COUNTS &&
                    place.table != BEL_TABLE_EXPIRIES;
    if (store != watched || !is_shown) return;
    bool has_topic = place.table != BEL_TABLE_ALIASES && place.table != BEL_TABLE_CHUNKS &&
                     place.table != BEL_TABLE_RESOURCES && !is_job(place.table);
    if (row_count >= ROWS_MAX / 2 || (has_topic && place.topic >= TOPICS_SEEN_MAX)) {
        watched = NULL; /* too much to keep in mind */
        return;
    }
    struct row *row = find(key);
    if (row->opening != opening) row_count++;
    *row = (struct row){*key, batch, opening};
    last = batch;
    if (place.table == BEL_TABLE_TOPICS) last_name = batch;
    if (has_topic) topics[place.topic] = batch;
}

void __wrap_bel__store_put(struct bel_store *store, const struct bel_key *key,
                           struct bel_view value, enum bel_row row)
{
    note(store, key);
    __real_bel__store_put(store, key, value, row);
}

void __wrap_bel__store_delete(struct bel_store *store, const struct bel_key *key)
{
    note(store, key);
    __real_bel__store_delete(store, key);
}

/* --- what a reply shows --- */

static uint64_t of_row(const struct bel_key *key)
{
    const struct row *row = find(key);
    return row->opening == opening ? row->batch : 0;
}

static uint64_t of_topic(struct bel_engine *engine, struct bel_view name)
{
    const struct bel_topic_state *topic = bel__topic_find(&engine->topics, name);
    return topic == NULL ? 0 : topics[topic->number];
}

/* A timer or plan with what belongs to it: its lease, the state of the plan. */
static uint64_t of_timer(const struct bel_key *key)
{
    uint64_t batch = of_row(key);
    struct bel_key lease = bel__key_in(key, BEL_TABLE_LEASES);
    struct bel_key state = bel__key_in(key, BEL_TABLE_PLAN_STATES);
    if (bel__place_of(key).table == BEL_TABLE_TIMERS) batch = later(batch, of_row(&lease));
    if (bel__place_of(key).table == BEL_TABLE_PLANS) batch = later(batch, of_row(&state));
    return batch;
}

static uint64_t of_get(struct bel_engine *engine, const struct bel_target *target)
{
    const struct bel_topic_state *topic = bel__topic_find(&engine->topics, target->topic);
    struct bel_place place;
    struct bel_view row;
    if (topic == NULL) return 0;
    struct bel_place settings = {.table = BEL_TABLE_TOPICS, .topic = topic->number};
    struct bel_key key = bel__key_of(&settings);
    uint64_t batch = of_row(&key); /* they say how long what has ended is kept */
    if (bel__made_id_place(target->id, topic->number, &place)) {
        key = bel__key_of(&place);
        batch = later(batch, of_timer(&key));
    }
    key = bel__key_alias(engine->alias_keys, topic->number, target->id);
    batch = later(batch, of_row(&key));
    if (bel__store_get(engine->store, &key, &row) != 0) return batch;
    memcpy(&key, row.data, sizeof key);
    return later(batch, of_timer(&key));
}

/* The last batch that changed anything. Resources that have changed in this turn are put when its
 * batch ends. */
static uint64_t of_all(const struct bel_engine *engine)
{
    return engine->rows.resource_rows > 0 ? engine->store->batch + 1 : last;
}

/* Returns whether the request is a read, and the batch that its reply must wait for. What has
 * changed nothing, of the other verbs, shows everything before it. */
static bool find_batch(struct bel_engine *engine, const struct bel_request *request, bool is_after,
                       uint64_t *out)
{
    const struct bel_command *command = &request->command;
    *out = 0;
    switch (command->verb) {
    case BEL_VERB_GET:
        *out = of_get(engine, &command->target);
        return true;
    case BEL_VERB_TOPIC:
        *out = of_topic(engine, command->target.topic);
        return true;
    case BEL_VERB_EXPLAIN:
        *out = bel__resources_are_used(&engine->resources)
                   ? of_all(engine)
                   : of_topic(engine, command->target.topic);
        return true;
    case BEL_VERB_LIST:
        *out = of_topic(engine, command->list.topic);
        return true;
    case BEL_VERB_AGENDA:
        *out = of_all(engine);
        if (command->agenda.topic.bytes == 0) return true;
        *out =
            later(of_topic(engine, command->agenda.topic), of_topic(engine, BEL_RECURRING_TOPIC));
        return true;
    case BEL_VERB_TOPICS:
        *out = last_name;
        return true;
    case BEL_VERB_CLAIM:
        if (request->own.reply.err == 0 && request->own.reply.deliveries.count > 0) return false;
        if (bel__resources_are_used(&engine->resources)) *out = of_all(engine);
        for (size_t i = 0; i < command->claim.topics_count; i++) {
            *out = later(*out, of_topic(engine, command->claim.topics[i]));
        }
        return true;
    default:
        *out = of_all(engine);
        return is_after;
    }
}

static void decide(struct bel_engine *engine, struct bel_request *request, bool is_after)
{
    struct order *order = request->user;
    bool is_watched = engine->store == watched && request->done == run_told;
    if (!is_watched || watch_is_final(request->own.reply.err)) return;
    order->is_read = find_batch(engine, request, is_after, &order->shows);
}

void __wrap_bel__answer(struct bel_engine *engine, struct bel_request *request)
{
    decide(engine, request, request->own.words[BEL_OWN_AFTER] != BEL_AFTER_TURN);
    __real_bel__answer(engine, request);
}

/* --- judging --- */

void reads_told(struct world *world, const struct order *order)
{
    if (!order->is_read || world->engine->store != watched || order->is_over) return;
    uint64_t durable = bel__store_synced(world->engine->store);
    if (order->shows <= durable) return;
    world_fail(world, "reads",
               "#%" PRIu64 " %s shows batch %" PRIu64 ", and %" PRIu64 " is durable", order->number,
               bel_verb_name(order->requests[ENGINE_SIDE].command.verb), order->shows, durable);
}

void reads_turn(struct world *world, uint64_t durable)
{
    if (world->engine->store != watched) return;
    if (has_fault(world, FAULT_MEMORY)) return; /* without memory they wait */
    for (size_t i = 0; i < world->asked.count; i++) {
        const struct order *order = world->asked.items[i];
        if (!order->is_read || order->is_told || order->shows > durable) continue;
        world_fail(world, "reads",
                   "#%" PRIu64 " %s shows batch %" PRIu64 ", waits, and %" PRIu64 " was durable",
                   order->number, bel_verb_name(order->requests[ENGINE_SIDE].command.verb),
                   order->shows, durable);
    }
}
