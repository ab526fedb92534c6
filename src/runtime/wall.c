/* SPDX-License-Identifier: MIT */

/*
 * Timers that were scheduled for a wall time follow the wall clock. The wheels know only the boot
 * clock, so each of them is due at a boot time that was computed from both clocks. The difference
 * of the two changes only when the wall clock is set: both run at the same speed, and both run
 * during suspend.
 *
 * The metronome compares the difference at each of its turns. A clock that is set also wakes it:
 * the system ends a sleep on a timer of the wall clock then. It looks at all timers, and moves
 * those that have a wall time, like any other thread would.
 */
#include "runtime/wall.h"

#include "core/units.h"
#include "runtime/worker.h"

enum {
    READS_MAX = 10, /* tries to read both clocks at the same moment */
};

#define STEP_NS ((int64_t)(2 * NS_PER_MS)) /* a smaller difference is one of reading the clocks */

/* The wall and the boot clock at the same moment. */
struct moment {
    int64_t wall_ms;
    uint64_t boot_ns;
};

static struct moment read_clocks(const struct bel_runtime *runtime)
{
    struct moment moment = {0};
    for (unsigned i = 0; i < READS_MAX; i++) {
        uint64_t before = runtime_now(runtime);
        moment.wall_ms = bel_clock_wall(runtime->clock).ms;
        moment.boot_ns = runtime_now(runtime);
        if (moment.boot_ns - before < NS_PER_MS) break; /* the thread was not interrupted */
    }
    return moment;
}

/* Returns the wall time at which the boot clock was 0, in ns; wraps around. */
static int64_t offset_of(struct moment moment)
{
    return (int64_t)((uint64_t)moment.wall_ms * NS_PER_MS - moment.boot_ns);
}

int bel__wall_due(int64_t wall_ms, int64_t now_ms, uint64_t now_ns, uint64_t *out)
{
    int64_t delay_ms;
    struct bel_boot due = {now_ns};
    if (wall_ms > now_ms) {
        if (__builtin_sub_overflow(wall_ms, now_ms, &delay_ms)) return BEL_ERANGE;
        if ((uint64_t)delay_ms > UINT64_MAX / NS_PER_MS) return BEL_ERANGE;
        int err = bel_boot_add(due, (uint64_t)delay_ms * NS_PER_MS, &due);
        if (err) return err;
    }
    *out = due.ns;
    return 0;
}

void bel__wall_begin(struct bel_runtime *runtime)
{
    struct wall *wall = &runtime->wall;
    bel__runtime_lock(runtime);
    if (!atomic_load_explicit(&wall->is_used, memory_order_relaxed)) {
        wall->offset_ns = offset_of(read_clocks(runtime));
        /* Release pairs with the acquire in bel__wall_check. */
        atomic_store_explicit(&wall->is_used, true, memory_order_release);
    }
    bel__runtime_unlock(runtime);
    bel__alarm_ring(&runtime->metronome.alarm); /* watch the clock from now on */
}

uint32_t bel__wall_steps(struct bel_runtime *runtime)
{
    /* A read-modify-write, so that it is ordered with the one in bel__wall_check. */
    return atomic_fetch_add_explicit(&runtime->wall.steps, 0, memory_order_seq_cst);
}

/* Moves a timer to where the clocks say that it is due. */
static void follow(struct bel_runtime *runtime, struct visitor *visitor, uint32_t index,
                   struct moment now)
{
    struct found found;
    uint64_t due;
    if ((get32(&record_at(&runtime->pool, index)->what) & WHAT_INSTANT) == 0) return;
    if (!bel__found_copy(&runtime->pool, index, &found) || found.wall_ms == WALL_NONE) return;
    if (bel__wall_due(found.wall_ms, now.wall_ms, now.boot_ns, &due) != 0) due = BEL_NEVER - 1;
    runtime->wall.move(runtime, visitor, &found, due);
}

void bel__wall_follow(struct bel_runtime *runtime, bel_timer_t timer)
{
    struct visitor *visitor;
    if (visitor_get(runtime, &visitor) != 0 || visitor->busy) return;
    follow(runtime, visitor, (uint32_t)timer, read_clocks(runtime));
}

bool bel__wall_check(struct bel_runtime *runtime)
{
    struct wall *wall = &runtime->wall;
    struct visitor *visitor;
    if (!atomic_load_explicit(&wall->is_used, memory_order_acquire)) return false;
    struct moment now = read_clocks(runtime);
    bel__runtime_lock(runtime);
    int64_t step = (int64_t)((uint64_t)offset_of(now) - (uint64_t)wall->offset_ns);
    bool is_set = step > STEP_NS || step < -STEP_NS;
    if (is_set) {
        wall->offset_ns = offset_of(now);
        /* A thread that schedules at this moment comes before, and then its timer is found below;
         * or it sees the change and moves its timer itself. */
        atomic_fetch_add_explicit(&wall->steps, 1, memory_order_seq_cst);
    }
    bel__runtime_unlock(runtime);
    if (!is_set || visitor_get(runtime, &visitor) != 0 || visitor->busy) return false;
    /* Acquire pairs with the release in bel__pool_refill: the memory of the records exists. */
    uint32_t end = atomic_load_explicit(&runtime->pool.used, memory_order_acquire);
    for (uint32_t index = 1; index < end; index++) {
        follow(runtime, visitor, index, now);
    }
    return true;
}
