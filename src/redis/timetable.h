/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_TIMETABLE_H
#define BEL_REDIS_TIMETABLE_H

/*
 * timetable - when something happens next in each of many places, and where first: a binary heap.
 * An entry is a member of its owner, and may be in it or not. A turn of a node with 10,000 topics
 * looks at those alone whose time has come.
 */

#include "belfry/error.h"

#include <stddef.h>
#include <stdint.h>

struct bel_timetable_entry {
    int64_t time_ms; /* read only; BEL_REDIS_NEVER: not in the timetable */
    size_t place;    /* private */
};

struct bel_timetable {
    struct bel_timetable_entry **entries; /* private, as is the rest; the first is entries[0] */
    size_t count, owners, room;
};

/* Frees the memory, not the entries. */
void bel__timetable_finish(struct bel_timetable *timetable);

/* Prepares an entry, which is not in the timetable, and makes room for it, so that setting its time
 * cannot fail. Returns 0 or BEL_ENOMEM. */
BEL_CHECKED int bel__timetable_join(struct bel_timetable *timetable,
                                    struct bel_timetable_entry *entry);

/* Gives up the room of an entry, which is not in the timetable. */
void bel__timetable_leave(struct bel_timetable *timetable);

/* Sets the time of an entry; BEL_REDIS_NEVER takes it out. */
void bel__timetable_set(struct bel_timetable *timetable, struct bel_timetable_entry *entry,
                        int64_t time_ms);

/* Returns an entry with the earliest time; NULL: there is none. */
struct bel_timetable_entry *bel__timetable_first(const struct bel_timetable *timetable);

#endif
