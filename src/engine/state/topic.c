/* SPDX-License-Identifier: MIT */

/*
 * Topics are found by name through a map and by number through an array. A topic is never deleted:
 * its number is part of the keys of its timers.
 *
 * The numbers of a topic are one row, which is written at the end of each batch that changes them.
 */
#include "engine/state/topic.h"

#include "core/memory_use.h"
#include "core/view.h"
#include "engine/rows/encoding.h"
#include "engine/state/state.h"
#include "engine/state/work.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static_assert(BEL_NUMBERS * BEL_ENCODED_NUMBER_BYTES_MAX < BEL_STORE_VALUE_BYTES_MAX, "one row");

void bel__topics_init(struct bel_topics *topics, struct bel_siphash_key secret, uint32_t max)
{
    *topics = (struct bel_topics){.max = max};
    bel__map_init(&topics->by_name, secret);
}

static void topic_free(struct bel_topic_state *topic)
{
    bel__picker_finish(&topic->picker);
    bel__memory_shrink(sizeof *topic + topic->name_bytes);
    bel__work_free(topic->work);
    free(topic->settings);
    free(topic);
}

void bel__topics_finish(struct bel_topics *topics)
{
    for (uint32_t i = 0; i < topics->count; i++) {
        if (topics->by_number[i] != NULL) topic_free(topics->by_number[i]);
    }
    free(topics->by_number);
    bel__map_finish(&topics->by_name);
    *topics = (struct bel_topics){0};
}

struct bel_topic_state *bel__topic_find(struct bel_topics *topics, struct bel_view name)
{
    const struct bel_topic_state *last = topics->last;
    if (last != NULL && bel__view_equal(bel__topic_name(last), name)) return topics->last;
    const uint64_t *value = bel__map_find(&topics->by_name, name.data, name.bytes);
    if (value == NULL) return NULL;
    return topics->last = (struct bel_topic_state *)(uintptr_t)*value;
}

bool bel__topic_is_name(struct bel_topics *topics, struct bel_view name)
{
    if (bel__topic_is_own(name)) return false;
    return bel__topic_find(topics, name) != NULL || bel_topic_is_valid(name);
}

struct bel_topic_state *bel__topic_at(const struct bel_topics *topics, uint32_t number)
{
    struct bel_topic_state *topic = number < topics->count ? topics->by_number[number] : NULL;
    assert(topic == NULL || topic->number == number);
    return topic;
}

/* Grows the array so that it has an entry for this number. */
static int make_room(struct bel_topics *topics, uint32_t number)
{
    if (number < topics->capacity) return 0;
    uint32_t capacity = topics->capacity == 0 ? 16 : topics->capacity;
    while (capacity <= number) {
        capacity *= 2;
    }
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers */
    struct bel_topic_state **grown = realloc(topics->by_number, capacity * sizeof grown[0]);
    if (grown == NULL) return BEL_ENOMEM;
    for (uint32_t i = topics->capacity; i < capacity; i++) {
        grown[i] = NULL;
    }
    topics->by_number = grown;
    topics->capacity = capacity;
    return 0;
}

static struct bel_topic_state *topic_create(struct bel_engine *engine, struct bel_view name,
                                            uint32_t number)
{
    assert(name.bytes > 0 && number < engine->topics.max);
    struct bel_topic_state *topic = calloc(1, sizeof *topic + name.bytes);
    if (topic == NULL) return NULL;
    bel__memory_grow(sizeof *topic + name.bytes);
    topic->number = number;
    topic->name_bytes = (uint32_t)name.bytes;
    memcpy(topic->name, name.data, name.bytes);
    bel__picker_init(&topic->picker, engine->topics.by_name.secret);
    bel__picker_set_offset(&topic->picker, engine->now.offset);
    bel__list_init(&topic->waiters);
    topic->sweep_time = BEL_NEVER;
    for (uint8_t lane = 0; lane < BEL_LANES_TIMED; lane++) {
        topic->wake_times[lane] = topic->expiry_times[lane] = BEL_NEVER;
        struct bel_place start = {.table = BEL_TABLE_TIMERS, .topic = number, .lane = lane};
        topic->loaded[lane] = bel__key_of(&start);
        start.table = BEL_TABLE_EXPIRIES;
        topic->expiry_from[lane] = bel__key_of(&start);
    }
    return topic;
}

/* Adds a topic to the map and the array. Its number must be unused. */
static int enter(struct bel_engine *engine, struct bel_topic_state *topic)
{
    struct bel_topics *topics = &engine->topics;
    int err = make_room(topics, topic->number);
    if (err) return err;
    uint32_t count = bel__map_count(&topics->by_name) + 1;
    err = bel__wakes_reserve(engine, count);
    if (err == 0) err = bel__hot_reserve(&engine->waiting.hot, count);
    if (err) return err;
    err = bel__map_put(&topics->by_name, topic->name, topic->name_bytes, (uintptr_t)topic);
    if (err) return err;
    assert(topics->by_number[topic->number] == NULL);
    topics->by_number[topic->number] = topic;
    if (topic->number >= topics->count) topics->count = topic->number + 1;
    return 0;
}

int bel__topic_make(struct bel_engine *engine, struct bel_view name, struct bel_topic_state **out,
                    bool *out_is_new)
{
    struct bel_topics *topics = &engine->topics;
    struct bel_topic_state *topic = bel__topic_find(topics, name);
    *out_is_new = topic == NULL;
    if (topic != NULL) {
        *out = topic;
        return 0;
    }
    if (topics->count >= topics->max) return BEL_EFULL;
    topic = topic_create(engine, name, topics->count);
    if (topic == NULL) return BEL_ENOMEM;
    int err = enter(engine, topic);
    if (err) {
        topic_free(topic);
        return err;
    }
    *out = topic;
    return 0;
}

void bel__topic_drop(struct bel_topics *topics, struct bel_topic_state *topic)
{
    assert(topic->number == topics->count - 1);
    assert(!topic->is_dirty && topic->leased == 0 && bel__list_is_empty(&topic->waiters));
    bel__map_remove(&topics->by_name, topic->name, topic->name_bytes, NULL);
    if (topics->last == topic) topics->last = NULL;
    topics->by_number[topic->number] = NULL;
    topics->count--;
    topic_free(topic);
}

static struct bel_key row_key(enum bel_table table, uint32_t number)
{
    return bel__key_of(&(struct bel_place){.table = table, .topic = number});
}

void bel__topic_save(struct bel_engine *engine, const struct bel_topic_state *topic)
{
    struct bel_topic_row row = {.name = bel__topic_name(topic),
                                .is_paused = topic->is_paused,
                                .settings = *bel__topic_settings(topic)};
    uint8_t bytes[BEL_TOPIC_ROW_BYTES];
    struct bel_key key = row_key(BEL_TABLE_TOPICS, topic->number);
    struct bel_view value = {bytes, bel__topic_row_write(&row, bytes)};
    bel__rows_put(&engine->rows, &key, value, BEL_ROW_ANY);
}

const struct bel_settings *bel__topic_settings(const struct bel_topic_state *topic)
{
    return topic->settings != NULL ? topic->settings : bel__settings_default();
}

void bel__topic_count(struct bel_engine *engine, struct bel_topic_state *topic,
                      enum bel_topic_number number, int64_t delta)
{
    struct bel_topics *topics = &engine->topics;
    assert(delta >= 0 || topic->numbers[number] >= (uint64_t)-delta);
    topic->numbers[number] += (uint64_t)delta;
    if (topic->is_dirty) return;
    topic->is_dirty = true;
    topic->next_dirty = topics->dirty;
    topics->dirty = topic;
    engine->rows.topic_rows++;
}

static void put_numbers(struct bel_topic_state *topic, struct bel_store *store)
{
    uint8_t row[BEL_NUMBERS * BEL_ENCODED_NUMBER_BYTES_MAX];
    assert(topic->is_dirty);
    struct bel_row_writer writer = {.at = row, .end = row + sizeof row};
    for (int i = 0; i < BEL_NUMBERS; i++) {
        bel__write_number(&writer, topic->numbers[i]);
    }
    struct bel_key key = row_key(BEL_TABLE_COUNTS, topic->number);
    struct bel_view value = {row, (size_t)(writer.at - row)};
    bel__store_put(store, &key, value, topic->has_number_row ? BEL_ROW_ANY : BEL_ROW_NEW);
    topic->has_number_row = true;
}

void bel__topics_flush(struct bel_engine *engine)
{
    struct bel_topics *topics = &engine->topics;
    while (topics->dirty != NULL) {
        struct bel_topic_state *topic = topics->dirty;
        put_numbers(topic, engine->store);
        topics->dirty = topic->next_dirty;
        topic->is_dirty = false;
        engine->rows.topic_rows--;
    }
    assert(engine->rows.topic_rows == 0);
}

static int load_numbers(struct bel_engine *engine, struct bel_topic_state *topic)
{
    struct bel_key key = row_key(BEL_TABLE_COUNTS, topic->number);
    struct bel_view row;
    int err = bel__store_get(engine->store, &key, &row);
    if (err == BEL_ENOTFOUND) return 0;
    if (err) return err;
    struct bel_row_reader reader = bel__reader_of(row);
    for (int i = 0; i < BEL_NUMBERS; i++) {
        topic->numbers[i] = bel__read_number(&reader);
    }
    topic->has_number_row = true;
    return reader.bad ? BEL_ECORRUPT : 0;
}

static int set_settings(struct bel_topic_state *topic, const struct bel_topic_row *row)
{
    topic->is_paused = row->is_paused;
    if (!row->has_settings) return 0;
    topic->settings = malloc(sizeof *topic->settings);
    if (topic->settings == NULL) return BEL_ENOMEM;
    *topic->settings = row->settings;
    return 0;
}

/* Loads a topic from its row. */
static int load_topic(struct bel_engine *engine, const struct bel_store_cursor *cursor)
{
    struct bel_place place = bel__place_of(&cursor->key);
    struct bel_topic_row row;
    int err = bel__topic_row_read(cursor->value, &row);
    if (err) return err;
    bool is_name = row.name.bytes > 0 && row.name.bytes <= BEL_TOPIC_BYTES_MAX;
    if (place.topic >= engine->topics.max || !is_name) return BEL_ECORRUPT;
    struct bel_topic_state *topic = topic_create(engine, row.name, place.topic);
    if (topic == NULL) return BEL_ENOMEM;
    err = set_settings(topic, &row);
    if (err == 0) err = load_numbers(engine, topic);
    if (err == 0) err = enter(engine, topic);
    if (err) {
        topic_free(topic);
        return err;
    }
    return 0;
}

int bel__topics_load(struct bel_engine *engine)
{
    struct bel_key from = row_key(BEL_TABLE_TOPICS, 0);
    struct bel_store_cursor cursor;
    int err = bel__store_seek(engine->store, &from, &cursor);
    while (err == 0 && bel__place_of(&cursor.key).table == BEL_TABLE_TOPICS) {
        err = load_topic(engine, &cursor);
        if (err == 0) err = bel__store_next(engine->store, &cursor);
    }
    return err == BEL_ENOTFOUND ? 0 : err;
}
