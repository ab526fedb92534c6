/* SPDX-License-Identifier: MIT */

/*
 * Two hash tables, a young and an old one. Changes are noted in the young one. When it is full and
 * all batches of the old one are durable, the old one is emptied and becomes the young one. So the
 * memory is in proportion to the changes that are not durable, and nothing is removed one by one.
 *
 * A key is 64 bits of SipHash. Two rows with the same hash share an entry, which has the later
 * batch of the two: a reply may then wait too long, never too short. If memory runs out, all
 * replies wait for the batch that could not be noted.
 */
#include "engine/rows/changes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    CAPACITY_MIN = 256,
    CAPACITY_KEPT = 1 << 14, /* a larger table is freed when it is emptied */
};

struct bel_changes_entry {
    uint64_t hash; /* 0: the entry is free */
    uint64_t batch;
};

/* Stand for no row: the key of a topic as a whole, and of the names of all topics. */
enum {
    HASHED_TOPIC = 1,
    HASHED_NAMES = 2,
};

static uint64_t hash_of(const struct bel_changes *changes, const void *bytes, size_t count)
{
    uint64_t hash = bel__siphash(changes->secret, bytes, count);
    return hash == 0 ? 1 : hash;
}

static uint64_t hash_of_topic(const struct bel_changes *changes, uint32_t topic)
{
    uint32_t words[2] = {HASHED_TOPIC, topic};
    return hash_of(changes, words, sizeof words);
}

static uint64_t hash_of_names(const struct bel_changes *changes)
{
    uint32_t words[2] = {HASHED_NAMES, 0};
    return hash_of(changes, words, sizeof words);
}

/* Returns the entry of a hash, or the free entry where it belongs. */
static struct bel_changes_entry *find(const struct bel_changes_table *table, uint64_t hash)
{
    size_t mask = table->capacity - 1;
    size_t at = (size_t)hash & mask;
    assert(table->count < table->capacity);
    while (table->entries[at].hash != 0 && table->entries[at].hash != hash) {
        at = (at + 1) & mask;
    }
    return &table->entries[at];
}

static uint64_t batch_in(const struct bel_changes_table *table, uint64_t hash)
{
    if (table->count == 0) return 0;
    const struct bel_changes_entry *entry = find(table, hash);
    return entry->hash == hash ? entry->batch : 0;
}

static void empty(struct bel_changes_table *table)
{
    if (table->capacity > CAPACITY_KEPT) {
        free(table->entries);
        *table = (struct bel_changes_table){0};
    } else if (table->count > 0) {
        memset(table->entries, 0, table->capacity * sizeof table->entries[0]);
        *table = (struct bel_changes_table){table->entries, 0, table->capacity, 0};
    }
}

static int grow(struct bel_changes_table *table)
{
    struct bel_changes_table larger = *table;
    larger.capacity = table->capacity == 0 ? CAPACITY_MIN : 2 * table->capacity;
    larger.entries = calloc(larger.capacity, sizeof larger.entries[0]);
    if (larger.entries == NULL) return BEL_ENOMEM;
    for (size_t i = 0; i < table->capacity; i++) {
        uint64_t hash = table->entries[i].hash;
        if (hash != 0) *find(&larger, hash) = table->entries[i];
    }
    free(table->entries);
    *table = larger;
    return 0;
}

/* Makes room for one more entry in the young table. */
static int make_room(struct bel_changes *changes)
{
    struct bel_changes_table *young = &changes->young, *old = &changes->old;
    if (young->capacity > 0 && young->count < young->capacity / 2) return 0;
    if (young->capacity == 0 || old->last > changes->durable) return grow(young);
    struct bel_changes_table emptied = *old;
    empty(&emptied);
    *old = *young;
    *young = emptied;
    return young->capacity == 0 ? grow(young) : 0;
}

static void note_hash(struct bel_changes *changes, uint64_t hash)
{
    struct bel_changes_table *young = &changes->young;
    if (make_room(changes) != 0) {
        changes->lost = changes->batch;
        return;
    }
    struct bel_changes_entry *entry = find(young, hash);
    if (entry->hash == 0) young->count++;
    *entry = (struct bel_changes_entry){hash, changes->batch};
    young->last = changes->batch;
}

void bel__changes_init(struct bel_changes *changes, struct bel_siphash_key secret, bool is_on)
{
    *changes = (struct bel_changes){.is_on = is_on, .secret = secret};
}

void bel__changes_start(struct bel_changes *changes)
{
    assert(!changes->is_on && changes->young.count == 0 && changes->old.count == 0);
    changes->is_on = true;
}

void bel__changes_finish(struct bel_changes *changes)
{
    free(changes->young.entries);
    free(changes->old.entries);
    *changes = (struct bel_changes){0};
}

void bel__changes_begin(struct bel_changes *changes, uint64_t batch, uint64_t durable)
{
    assert(batch >= changes->batch && durable < batch);
    changes->batch = batch;
    changes->durable = durable;
}

void bel__changes_note(struct bel_changes *changes, const struct bel_key *key)
{
    struct bel_place place = bel__place_of(key);
    assert(changes->is_on && changes->batch > 0);
    if (place.table == BEL_TABLE_META || place.table == BEL_TABLE_EXPIRIES) return; /* not shown */
    changes->count++;
    changes->last = changes->batch;
    if (place.table == BEL_TABLE_CHUNKS) return; /* changes together with the row it belongs to */
    note_hash(changes, hash_of(changes, key, sizeof *key));
    if (place.table == BEL_TABLE_TOPICS) note_hash(changes, hash_of_names(changes));
    bool has_topic = place.table != BEL_TABLE_ALIASES && place.table < BEL_TABLE_RESOURCES;
    if (!has_topic) return;
    if (changes->topic == place.topic && changes->topic_batch == changes->batch) return;
    note_hash(changes, hash_of_topic(changes, place.topic));
    changes->topic = place.topic;
    changes->topic_batch = changes->batch;
}

static uint64_t batch_of(const struct bel_changes *changes, uint64_t hash)
{
    uint64_t young = batch_in(&changes->young, hash), old = batch_in(&changes->old, hash);
    uint64_t batch = young > old ? young : old;
    return batch > changes->lost ? batch : changes->lost;
}

uint64_t bel__changes_of_row(const struct bel_changes *changes, const struct bel_key *key)
{
    return batch_of(changes, hash_of(changes, key, sizeof *key));
}

uint64_t bel__changes_of_topic(const struct bel_changes *changes, uint32_t topic)
{
    return batch_of(changes, hash_of_topic(changes, topic));
}

uint64_t bel__changes_of_names(const struct bel_changes *changes)
{
    return batch_of(changes, hash_of_names(changes));
}

uint64_t bel__changes_of_all(const struct bel_changes *changes)
{
    return changes->last;
}
