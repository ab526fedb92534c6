/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_DELTA_H
#define BEL_STORE_DELTA_H

/*
 * delta - the rows that were put and deleted since the last checkpoint, in memory.
 *
 * A delta lies over a tree. It says of a key what it has now, or that it is gone; of other
 * keys it says nothing. What is put as new, so that nothing lies below it, and deleted again
 * leaves no trace.
 *
 *     err = bel__delta_reserve(&delta, 1, value.bytes);
 *     bel__delta_put(&delta, &key, value, true);
 *     entry = bel__delta_find(&delta, &key);
 *     if (entry != NULL && !bel__entry_is_gone(entry)) ... bel__entry_value(entry)
 *
 * Entries are never moved or given back before the whole delta is, so that a value can be read
 * after its row was put anew or deleted.
 *
 * Threads: a delta belongs to one thread; one that is not changed can be read by many.
 */

#include "belfry/error.h"
#include "belfry/view.h"
#include "core/sorted.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bel_delta_flag {
    BEL_DELTA_GONE = 1, /* a tombstone: the row was deleted */
    BEL_DELTA_NEW = 2,  /* nothing lies below it */
};

/* What a delta says of a key. */
struct bel_delta_entry {
    uint32_t bytes;
    uint32_t flags; /* of enum bel_delta_flag */
    uint8_t data[];
};

struct bel_delta_block; /* private */

/* A delta. The fields are private. */
struct bel_delta {
    struct bel_sorted rows; /* to addresses of entries, with their flags */
    struct bel_delta_block *blocks;
    uint8_t *next; /* the room left in the first block */
    size_t left_bytes;
    size_t block_bytes;           /* of all blocks */
    struct bel_delta_block *kept; /* those that wait to be used again */
};

/* Where one is in a walk. The first two can be read. */
struct bel_delta_place {
    struct bel_key key;
    const struct bel_delta_entry *entry;
    struct bel_sorted_place place; /* private */
};

static inline bool bel__entry_is_gone(const struct bel_delta_entry *entry)
{
    return (entry->flags & BEL_DELTA_GONE) != 0;
}

static inline struct bel_view bel__entry_value(const struct bel_delta_entry *entry)
{
    return (struct bel_view){.data = entry->data, .bytes = entry->bytes};
}

/* Makes an empty delta, which has no memory yet. */
void bel__delta_init(struct bel_delta *delta);

/* Releases all memory at once. The delta is empty and can be used again. */
void bel__delta_finish(struct bel_delta *delta);

/* Empties it as well, and keeps up to `bytes_max` bytes of the memory for the rows to come. */
void bel__delta_clear(struct bel_delta *delta, size_t bytes_max);

/* Makes room, so that the next `rows` puts and deletes, with `bytes` bytes of values in all,
 * need no memory. Returns 0 or BEL_ENOMEM. */
BEL_CHECKED int bel__delta_reserve(struct bel_delta *delta, size_t rows, size_t bytes);

/* Puts a row, which is copied. `is_new` says that what lies below, with what the delta has
 * said of it so far, has no such row. It must have been reserved. */
void bel__delta_put(struct bel_delta *delta, const struct bel_key *key, struct bel_view value,
                    bool is_new);

/* Deletes a row, which need not be there. It must have been reserved. */
void bel__delta_delete(struct bel_delta *delta, const struct bel_key *key);

/* A put or delete in two steps, for many at once: makes an entry, which is reserved as a row; and
 * says it of a key, of which nothing was said yet. */
struct bel_delta_entry *bel__delta_make(struct bel_delta *delta, struct bel_view value,
                                        unsigned flags);
void bel__delta_place(struct bel_delta *delta, const struct bel_key *key,
                      struct bel_delta_entry *entry);

/* What it says of `key`, or NULL. */
const struct bel_delta_entry *bel__delta_find(const struct bel_delta *delta,
                                              const struct bel_key *key);

/* The first key that is not before `from`, gone or not. False if there is none. */
bool bel__delta_seek(const struct bel_delta *delta, const struct bel_key *from,
                     struct bel_delta_place *out);

/* The key after `place`, as bel__sorted_next(). False if there is none. */
bool bel__delta_next(const struct bel_delta *delta, struct bel_delta_place *place);

/* Says that one will walk on from `place`, so that the entries of the next keys are brought near.
 * The delta has not changed since the place was found. */
void bel__delta_expect(const struct bel_delta_place *place);

/* How many keys it says anything of. */
uint64_t bel__delta_count(const struct bel_delta *delta);

/* Memory in use, in bytes, besides the delta itself and what it keeps. */
size_t bel__delta_bytes(const struct bel_delta *delta);

#endif
