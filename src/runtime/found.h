/* SPDX-License-Identifier: MIT */
#ifndef BEL_RUNTIME_FOUND_H
#define BEL_RUNTIME_FOUND_H

/*
 * found - copies of pending timers, read while other threads change them; found.c.
 */

#include "runtime/pool.h"

/* A copy of a pending timer. */
struct found {
    uint64_t due, user, period_ns;
    int64_t wall_ms;
    uint32_t what;
    uint32_t index; /* of its record; for fresh records the order of scheduling */
    uint32_t generation;
};

struct findings {
    struct found *timers;
    uint32_t count, room;
};

/* Copies the timer of a record. Returns false if it is not pending. Each failed try means that
 * another thread has made progress. */
bool bel__found_copy(const struct pool *pool, uint32_t index, struct found *out);

/* Copies all pending timers, sorted by due and priority. Returns 0 or BEL_ENOMEM. The caller frees
 * `timers`, also after a failure. */
BEL_CHECKED int bel__found_all(const struct pool *pool, struct findings *all);

#endif
