/* SPDX-License-Identifier: MIT */

/*
 * A lock around a slab, which is not thread-safe. Threads usually use only their magazines
 * (pool.h).
 */
#include "runtime/pool.h"

int bel__pool_init(struct pool *pool, uint32_t records_max, uint32_t disguise)
{
    *pool = (struct pool){.disguise = disguise};
    int err = bel__slab_init(&pool->slab, sizeof(struct record), records_max);
    if (err) return err;
    if (pthread_mutex_init(&pool->mutex, NULL) != 0) {
        bel__slab_finish(&pool->slab);
        return BEL_ENOMEM;
    }
    if (bel__slab_take(&pool->slab) != 0) { /* index 0 means no record, and no handle is 0 */
        bel__pool_finish(pool);
        return BEL_ENOMEM;
    }
    atomic_init(&pool->used, 1);
    return 0;
}

void bel__pool_finish(struct pool *pool)
{
    if (pool->slab.base == NULL) return;
    (void)pthread_mutex_destroy(&pool->mutex);
    bel__slab_finish(&pool->slab);
}

/* The first generation of a record is 1; 0 means that its generations are used up. */
static void make_fresh(struct pool *pool, uint32_t index)
{
    struct record *record = record_at(pool, index);
    /* Relaxed: no other thread knows the record, and `used` is released after it. */
    if (get64(&record->word) == 0) set64(&record->word, UINT64_C(1) << 32 | WORD_FREE);
}

/* A magazine hands out its last record first: reverses it, to keep the order of the slab. */
static void turn_round(struct magazine *magazine)
{
    for (uint32_t i = 0, j = magazine->count; i + 1 < j; i++) {
        uint32_t index = magazine->indexes[--j];
        magazine->indexes[j] = magazine->indexes[i];
        magazine->indexes[i] = index;
    }
}

int bel__pool_refill(struct pool *pool, struct magazine *magazine)
{
    assert(magazine->count == 0);
    (void)pthread_mutex_lock(&pool->mutex);
    while (magazine->count < MAGAZINE_HALF) {
        uint32_t index = bel__slab_take(&pool->slab);
        if (index == BEL__SLAB_NONE) break;
        make_fresh(pool, index);
        magazine->indexes[magazine->count++] = index;
    }
    bool is_full = pool->slab.used == pool->slab.max;
    /* Release pairs with the acquire in pool_find. */
    atomic_store_explicit(&pool->used, pool->slab.used, memory_order_release);
    (void)pthread_mutex_unlock(&pool->mutex);
    turn_round(magazine);
    if (magazine->count > 0) return 0;
    return is_full ? BEL_EFULL : BEL_ENOMEM;
}

void bel__pool_return(struct pool *pool, struct magazine *magazine, uint32_t keep)
{
    (void)pthread_mutex_lock(&pool->mutex);
    while (magazine->count > keep) {
        bel__slab_give(&pool->slab, magazine->indexes[--magazine->count]);
    }
    (void)pthread_mutex_unlock(&pool->mutex);
}
