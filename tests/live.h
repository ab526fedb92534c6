/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_LIVE_H
#define BEL_TESTS_LIVE_H

/*
 * live - shared by tests of a runtime on the real clock: the runtime, a semaphore that each ring
 * posts, and functions that wait for events rather than for time to pass.
 */

#include "belfry/runtime.h"

#include "check.h"

#include <sched.h>
#include <semaphore.h>

#define HOUR (3600 * UINT64_C(1000000000))

enum {
    PATIENCE_S = 100 /* after which an alarm ends a case that blocks */
};

static struct bel_runtime *runtime;
static sem_t rang;

static inline void close_all(void)
{
    bel_runtime_destroy(runtime);
    (void)sem_destroy(&rang);
}

static inline bel_timer_t schedule_in(struct bel_runtime *where, struct bel_schedule options,
                                      uint64_t delay_ns)
{
    bel_timer_t timer = BEL_TIMER_NONE;
    options.priority = BEL_PRIORITY_DEFAULT;
    CHECK(bel_runtime_schedule_after(where, delay_ns, &options, &timer) == 0);
    return timer;
}

static inline bel_timer_t schedule(bel_kind_t kind, uint64_t delay_ns, uint64_t user)
{
    return schedule_in(runtime, (struct bel_schedule){.kind = kind, .user = user}, delay_ns);
}

static inline struct bel_runtime_stats stats(void)
{
    struct bel_runtime_stats out;
    bel_runtime_stats(runtime, NULL, &out);
    CHECK_EQ(out.scheduled, out.ended + out.cancelled + out.pending);
    return out;
}

static inline void await_rings(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        while (sem_wait(&rang) != 0) {}
    }
}

/* Waits until the runtime has `count` workers. */
static inline void await_workers(unsigned count)
{
    while (stats().workers != count) {
        (void)sched_yield();
    }
}

#endif
