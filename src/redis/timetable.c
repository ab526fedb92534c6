/* SPDX-License-Identifier: MIT */

/*
 * No entry is earlier than the one at (place - 1) / 2. An entry knows its place, so that it can be
 * moved without looking for it.
 */
#include "redis/timetable.h"

#include "redis/node.h"

#include <assert.h>
#include <stdlib.h>

enum {
    ROOM_MIN = 64,
};

void bel__timetable_finish(struct bel_timetable *timetable)
{
    free(timetable->entries);
    *timetable = (struct bel_timetable){.entries = NULL};
}

int bel__timetable_join(struct bel_timetable *timetable, struct bel_timetable_entry *entry)
{
    if (timetable->owners == timetable->room) {
        size_t room = timetable->room == 0 ? ROOM_MIN : 2 * timetable->room;
        struct bel_timetable_entry **entries =
            reallocarray(timetable->entries, room, sizeof(struct bel_timetable_entry *));
        if (entries == NULL) return BEL_ENOMEM;
        timetable->entries = entries;
        timetable->room = room;
    }
    timetable->owners++;
    *entry = (struct bel_timetable_entry){.time_ms = BEL_REDIS_NEVER};
    return 0;
}

void bel__timetable_leave(struct bel_timetable *timetable)
{
    assert(timetable->owners > timetable->count);
    timetable->owners--;
}

static void put(struct bel_timetable *timetable, struct bel_timetable_entry *entry, size_t place)
{
    timetable->entries[place] = entry;
    entry->place = place;
}

/* Moves an entry from a place that is free towards the first. */
static void rise(struct bel_timetable *timetable, struct bel_timetable_entry *entry, size_t place)
{
    while (place > 0) {
        struct bel_timetable_entry *above = timetable->entries[(place - 1) / 2];
        if (above->time_ms <= entry->time_ms) break;
        size_t next = above->place;
        put(timetable, above, place);
        place = next;
    }
    put(timetable, entry, place);
}

/* Moves an entry from a place that is free away from the first. */
static void sink(struct bel_timetable *timetable, struct bel_timetable_entry *entry, size_t place)
{
    for (;;) {
        size_t child = 2 * place + 1;
        if (child >= timetable->count) break;
        struct bel_timetable_entry *const *entries = timetable->entries;
        if (child + 1 < timetable->count && entries[child + 1]->time_ms < entries[child]->time_ms) {
            child++;
        }
        if (entries[child]->time_ms >= entry->time_ms) break;
        put(timetable, entries[child], place);
        place = child;
    }
    put(timetable, entry, place);
}

static void take_out(struct bel_timetable *timetable, struct bel_timetable_entry *entry)
{
    assert(timetable->count > 0 && timetable->entries[entry->place] == entry);
    struct bel_timetable_entry *last = timetable->entries[--timetable->count];
    if (last == entry) return;
    if (last->time_ms < entry->time_ms) {
        rise(timetable, last, entry->place);
    } else {
        sink(timetable, last, entry->place);
    }
}

void bel__timetable_set(struct bel_timetable *timetable, struct bel_timetable_entry *entry,
                        int64_t time_ms)
{
    if (entry->time_ms == time_ms) return;
    if (entry->time_ms != BEL_REDIS_NEVER) take_out(timetable, entry);
    entry->time_ms = time_ms;
    if (time_ms == BEL_REDIS_NEVER) return;
    assert(timetable->count < timetable->owners);
    rise(timetable, entry, timetable->count++);
}

struct bel_timetable_entry *bel__timetable_first(const struct bel_timetable *timetable)
{
    return timetable->count > 0 ? timetable->entries[0] : NULL;
}
