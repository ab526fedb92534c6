/* SPDX-License-Identifier: MIT */
#ifndef BEL_RUNTIME_POOL_H
#define BEL_RUNTIME_POOL_H

/*
 * pool - the records of a runtime, handed out to threads in batches.
 *
 * Each thread has a stock of free records (a magazine) and takes the lock of the pool only once per
 * 64 records. Records never move and are not unmapped before the runtime is destroyed, so any
 * thread may read any record.
 */

#include "core/slab.h"
#include "runtime/record.h"

#include <pthread.h>

enum {
    MAGAZINE = 128,
    MAGAZINE_HALF = MAGAZINE / 2,
};

struct pool {
    pthread_mutex_t mutex; /* guards the slab, except its base, which never changes */
    struct bel__slab slab;
    _Atomic uint32_t used; /* an index below it may be read */
    uint32_t disguise;     /* mixed into handles, so that those of two runtimes differ */
};

/* Free records of one thread. */
struct magazine {
    uint32_t count;
    uint32_t indexes[MAGAZINE];
};

/* Returns 0 or BEL_ENOMEM. */
BEL_CHECKED int bel__pool_init(struct pool *pool, uint32_t records_max, uint32_t disguise);
void bel__pool_finish(struct pool *pool);

/* Fills an empty magazine halfway. Returns 0; or returns BEL_EFULL or BEL_ENOMEM if no record is
 * available. */
BEL_CHECKED int bel__pool_refill(struct pool *pool, struct magazine *magazine);

/* Takes back all but `keep` records of a magazine. */
void bel__pool_return(struct pool *pool, struct magazine *magazine, uint32_t keep);

static inline struct record *record_at(const struct pool *pool, uint32_t index)
{
    return (struct record *)(void *)pool->slab.base + index;
}

static inline uint32_t record_index(const struct pool *pool, const struct record *record)
{
    return (uint32_t)(record - (const struct record *)(const void *)pool->slab.base);
}

/* A handle is a record's index and its generation, mixed with `disguise`. */
static inline uint64_t pool_handle(const struct pool *pool, uint32_t index, uint32_t generation)
{
    return (uint64_t)(generation ^ pool->disguise) << 32 | index;
}

static inline uint32_t pool_handle_generation(const struct pool *pool, uint64_t handle)
{
    return (uint32_t)(handle >> 32) ^ pool->disguise;
}

/* Returns the record that a handle names, in any state; NULL if there was never one. */
static inline struct record *pool_find(const struct pool *pool, uint64_t handle)
{
    /* Acquire pairs with the release in bel__pool_refill: the memory of the record exists. */
    uint32_t used = atomic_load_explicit(&pool->used, memory_order_acquire);
    uint32_t index = (uint32_t)handle;
    return index < used && index > 0 ? record_at(pool, index) : NULL;
}

/* Returns a free record to the magazine. */
static inline void pool_give(struct pool *pool, struct magazine *magazine, struct record *record)
{
    uint64_t word = atomic_load_explicit(&record->word, memory_order_relaxed);
    assert(word_state(word) == WORD_FREE);
    if (word_generation(word) == 0) return; /* all generations are used up: the record is retired */
    if (magazine->count == MAGAZINE) bel__pool_return(pool, magazine, MAGAZINE_HALF);
    magazine->indexes[magazine->count++] = record_index(pool, record);
}

#endif
