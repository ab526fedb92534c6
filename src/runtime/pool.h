/* SPDX-License-Identifier: MIT */
#ifndef BEL_RUNTIME_POOL_H
#define BEL_RUNTIME_POOL_H

/*
 * pool - the records of a runtime, shared out to threads by the handful.
 *
 * A thread keeps some free records of its own (a magazine) and comes here, where there is
 * a lock, once in 64 times. Records never move and are never unmapped while the runtime
 * lives, so any thread may look at any of them.
 */

#include "core/slab.h"
#include "runtime/record.h"

#include <pthread.h>

enum {
    MAGAZINE = 128,
    MAGAZINE_HALF = MAGAZINE / 2,
};

struct pool {
    pthread_mutex_t mutex; /* guards the slab's accounts; its base never changes */
    struct bel__slab slab;
    _Atomic uint32_t used; /* below it an index may be looked at */
    uint32_t disguise;     /* what handles are mixed with, so that runtimes differ */
};

/* Free records of one thread. */
struct magazine {
    uint32_t count;
    uint32_t indexes[MAGAZINE];
};

/* Returns 0 or BEL_ENOMEM. */
BEL_CHECKED int bel__pool_init(struct pool *pool, uint32_t records_max, uint32_t disguise);
void bel__pool_finish(struct pool *pool);

/* Fills an empty magazine to its half. Returns 0, or BEL_EFULL or BEL_ENOMEM if there is
 * not even one record to be had. */
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

/* A handle is a record's index and, in disguise, its generation. */
static inline uint64_t pool_handle(const struct pool *pool, uint32_t index, uint32_t generation)
{
    return (uint64_t)(generation ^ pool->disguise) << 32 | index;
}

static inline uint32_t pool_handle_generation(const struct pool *pool, uint64_t handle)
{
    return (uint32_t)(handle >> 32) ^ pool->disguise;
}

/* The record that a handle names, whatever it is by now; NULL if there was never one. */
static inline struct record *pool_find(const struct pool *pool, uint64_t handle)
{
    /* Acquire pairs with the release in bel__pool_refill: the record's memory is there. */
    uint32_t used = atomic_load_explicit(&pool->used, memory_order_acquire);
    uint32_t index = (uint32_t)handle;
    return index < used && index > 0 ? record_at(pool, index) : NULL;
}

/* Gives a record back whose life has ended. */
static inline void pool_give(struct pool *pool, struct magazine *magazine, struct record *record)
{
    uint64_t word = atomic_load_explicit(&record->word, memory_order_relaxed);
    assert(word_state(word) == WORD_FREE);
    if (word_generation(word) == 0) return; /* it has had every generation: retired */
    if (magazine->count == MAGAZINE) bel__pool_return(pool, magazine, MAGAZINE_HALF);
    magazine->indexes[magazine->count++] = record_index(pool, record);
}

#endif
