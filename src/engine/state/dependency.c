/* SPDX-License-Identifier: MIT */

/*
 * A topic is never deleted, so an answer about a topic that does not exist depends on nothing.
 *
 * The rows of a timer are the rows that a lookup by id reads or would read: see timer_lookup.c. The
 * row of a lease counts even if there is none, because it may have been deleted. The settings of
 * the topic decide how long an ended timer is found.
 */
#include "engine/state/dependency.h"

#include "engine/state/state.h"

#include <string.h>

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t of_topic(struct bel_engine *engine, struct bel_view name)
{
    const struct bel_topic_state *topic = bel__topic_find(&engine->topics, name);
    return topic == NULL ? 0 : bel__changes_of_topic(&engine->rows.changes, topic->number);
}

/* A row of TIMERS, ENDED or PLANS, and the rows beside it. */
static uint64_t of_key(const struct bel_engine *engine, const struct bel_key *key)
{
    const struct bel_changes *changes = &engine->rows.changes;
    enum bel_table table = bel__place_of(key).table;
    uint64_t batch = bel__changes_of_row(changes, key);
    if (table != BEL_TABLE_TIMERS && table != BEL_TABLE_PLANS) return batch;
    struct bel_key beside =
        bel__key_in(key, table == BEL_TABLE_TIMERS ? BEL_TABLE_LEASES : BEL_TABLE_PLAN_STATES);
    return later(batch, bel__changes_of_row(changes, &beside));
}

/* The alias of an id, and the row that it names. */
static uint64_t of_alias(struct bel_engine *engine, const struct bel_topic_state *topic,
                         struct bel_view id)
{
    struct bel_key alias = bel__key_alias(engine->alias_keys, topic->number, id), key;
    struct bel_view row;
    uint64_t batch = bel__changes_of_row(&engine->rows.changes, &alias);
    if (bel__store_get(engine->store, &alias, &row) != 0 || row.bytes != sizeof key) return batch;
    memcpy(&key, row.data, sizeof key);
    return later(batch, of_key(engine, &key));
}

static uint64_t of_timer(struct bel_engine *engine, const struct bel_target *target)
{
    const struct bel_topic_state *topic = bel__topic_find(&engine->topics, target->topic);
    struct bel_place place;
    if (topic == NULL) return 0;
    struct bel_key key =
        bel__key_of(&(struct bel_place){.table = BEL_TABLE_TOPICS, .topic = topic->number});
    uint64_t batch = bel__changes_of_row(&engine->rows.changes, &key);
    if (bel__made_id_place(target->id, topic->number, &place)) {
        key = bel__key_of(&place);
        batch = later(batch, of_key(engine, &key));
    }
    return later(batch, of_alias(engine, topic, target->id));
}

static uint64_t of_claim(struct bel_engine *engine, const struct bel_claim *claim)
{
    uint64_t batch = 0;
    const struct bel_changes *changes = &engine->rows.changes;
    if (bel__resources_are_used(&engine->resources)) return bel__changes_of_all(changes);
    for (size_t i = 0; i < claim->topics_count; i++) {
        batch = later(batch, of_topic(engine, claim->topics[i]));
    }
    return batch;
}

uint64_t bel__dependency(struct bel_engine *engine, const struct bel_request *request)
{
    const struct bel_command *command = &request->command;
    const struct bel_changes *changes = &engine->rows.changes;
    switch (command->verb) {
    case BEL_VERB_GET:
        return of_timer(engine, &command->target);
    case BEL_VERB_TOPIC:
        return of_topic(engine, command->target.topic);
    case BEL_VERB_EXPLAIN:
        return bel__resources_are_used(&engine->resources)
                   ? bel__changes_of_all(changes)
                   : of_topic(engine, command->target.topic);
    case BEL_VERB_LIST:
        return of_topic(engine, command->list.topic);
    case BEL_VERB_AGENDA:
        if (command->agenda.topic.bytes == 0) return bel__changes_of_all(changes);
        return later(of_topic(engine, command->agenda.topic),
                     of_topic(engine, BEL_RECURRING_TOPIC));
    case BEL_VERB_CLAIM:
        return of_claim(engine, &command->claim);
    case BEL_VERB_TOPICS:
        return bel__changes_of_names(changes);
    default:
        return bel__changes_of_all(changes);
    }
}
