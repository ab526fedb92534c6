/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_DELTA_H
#define BEL_STORE_DELTA_H

/*
 * delta - the rows that were put and deleted since the last checkpoint, in memory.
 *
 * A delta overlays a tree. For a key that was changed it has an entry: the value, or a tombstone if
 * the row was deleted. A row that is put as new, so that the layers below do not have it, and then
 * deleted leaves no entry.
 *
 *     err = bel__delta_reserve(&delta, 1, value.bytes);
 *     bel__delta_put(&delta, &key, value, true);
 *     entry = bel__delta_find(&delta, &key);
 *     if (entry != NULL && !bel__entry_is_gone(entry)) ... bel__entry_value(entry)
 *
 * Entries are not moved or freed before the delta is cleared, so a value stays readable after its
 * row was put again or deleted.
 *
 * A whole delta has no layers below it: a store in memory keeps all its rows there. It has no
 * tombstones, and bel__delta_settle() frees the entries that were replaced or deleted.
 *
 * Threads: a delta belongs to one thread. While it is not changed, any thread may read it.
 */

#include "belfry/error.h"
#include "belfry/view.h"
#include "core/sorted.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bel_delta_flag {
    BEL_DELTA_GONE = 1,  /* a tombstone: the row was deleted */
    BEL_DELTA_NEW = 2,   /* the layers below have no row with this key */
    BEL_DELTA_ALONE = 4, /* of a whole delta: the entry is an allocation of its own */
};

/* The entry of a key. */
struct bel_delta_entry {
    uint32_t bytes;
    uint32_t flags; /* of enum bel_delta_flag */
    uint8_t data[];
};

struct bel_delta_block; /* private */

/* Free entries of one size, for reuse. Private. */
struct bel_delta_spare {
    void *first; /* linked through their first words */
    size_t count;
};

enum {
    BEL_DELTA_SPARES = 65, /* sizes up to 512 bytes, in steps of 8 */
};

/* A delta. The fields are private. */
struct bel_delta {
    struct bel_sorted rows; /* from keys to addresses of entries, with their flags */
    struct bel_delta_block *blocks;
    uint8_t *next; /* the free space of the first block */
    size_t left_bytes;
    size_t block_bytes;           /* total of all blocks */
    struct bel_delta_block *kept; /* free blocks for reuse */
    uint64_t *filter;             /* which keys may have an entry; NULL: any */
    uint64_t misses;              /* lookups of keys without an entry, as far as they are told */

    bool is_whole;                   /* there are no layers below */
    size_t alone_bytes;              /* of a whole delta: entries allocated alone, spare ones too */
    struct bel_delta_entry **former; /* of a whole delta: entries without a key, to be freed */
    size_t former_count, former_max;
    struct bel_delta_spare spares[BEL_DELTA_SPARES]; /* of a whole delta */
};

/* A position in an iteration. `key` and `entry` are public. */
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

/* Initializes an empty delta. Allocates nothing. */
void bel__delta_init(struct bel_delta *delta);

/* Initializes an empty delta that is whole: there are no layers below it, so it has no tombstones.
 * Entries that have lost their key are freed by bel__delta_settle(). Allocates nothing. */
void bel__delta_init_whole(struct bel_delta *delta);

/* Frees the entries of a whole delta that were replaced or deleted since the last call. Values of
 * theirs are invalid from then on. */
void bel__delta_settle(struct bel_delta *delta);

/* Releases all memory at once. The delta is empty and can be used again. */
void bel__delta_finish(struct bel_delta *delta);

/* Empties the delta, and keeps up to `bytes_max` bytes of its memory for reuse. */
void bel__delta_clear(struct bel_delta *delta, size_t bytes_max);

/* Reserves memory for the next `rows` puts and deletes with `bytes` bytes of values in total.
 * Returns 0 or BEL_ENOMEM. */
BEL_CHECKED int bel__delta_reserve(struct bel_delta *delta, size_t rows, size_t bytes);

/* Puts a row, which is copied. `is_new` means that neither this delta nor the layers below have a
 * live row with this key. The memory must have been reserved. */
void bel__delta_put(struct bel_delta *delta, const struct bel_key *key, struct bel_view value,
                    bool is_new);

/* Deletes a row, which need not exist. The memory must have been reserved. */
void bel__delta_delete(struct bel_delta *delta, const struct bel_key *key);

/* A put or delete in two steps, for bulk loading: bel__delta_make() makes an entry, reserved like a
 * row; bel__delta_place() adds it under a key that has no entry yet. */
struct bel_delta_entry *bel__delta_make(struct bel_delta *delta, struct bel_view value,
                                        unsigned flags);
void bel__delta_place(struct bel_delta *delta, const struct bel_key *key,
                      struct bel_delta_entry *entry);

/* Returns the entry of `key`, or NULL. */
const struct bel_delta_entry *bel__delta_find(const struct bel_delta *delta,
                                              const struct bel_key *key);

/* Tells the delta that a lookup found no entry. Many make it remember which keys have none. */
static inline void bel__delta_miss(struct bel_delta *delta)
{
    delta->misses++;
}

/* Finds the first key >= `from`, tombstones included. Returns false if there is none. */
bool bel__delta_seek(const struct bel_delta *delta, const struct bel_key *from,
                     struct bel_delta_place *out);

/* Moves `place` to the next key, like bel__sorted_next(). Returns false if there is none. */
bool bel__delta_next(const struct bel_delta *delta, struct bel_delta_place *place);

/* Prefetches the entry a few keys after `place` into the CPU cache. The delta must not have changed
 * since the place was found. */
void bel__delta_expect(const struct bel_delta_place *place);

/* Returns the number of keys that have an entry. */
uint64_t bel__delta_count(const struct bel_delta *delta);

/* Returns the memory in use, in bytes, without the struct itself, its filter of 64 KiB, and
 * the blocks kept for reuse. */
size_t bel__delta_bytes(const struct bel_delta *delta);

/* Returns how many bytes its rows take in a tree at most. That is twice their bytes: leaves may be
 * half empty, and large values take whole pages. Replaced values count, too. */
size_t bel__delta_row_bytes(const struct bel_delta *delta);

#endif
