/* SPDX-License-Identifier: MIT */

/*
 * Reading stops no thread. It reads a record like a sequence lock, with the word as the sequence:
 * read the word, copy the fields, check the word. The check is a compare-and-swap that does not
 * change the word. If it succeeds, the copy belongs to this word:
 *
 *   - The fields are not older. The first load acquires what was released with the word.
 *   - The fields are not newer. The swap releases. A thread changes a pending word by a
 *     read-modify-write that acquires, so that change comes after this swap, or before it and
 *     the swap fails; and the thread writes to the fields after that change. Hence the loads
 *     before the swap cannot see those writes.
 *
 * A second load instead of the swap would be wrong: nothing keeps the earlier loads from being
 * executed after it, and making them acquire would not help while the stores that they read do not
 * release. Releasing stores would slow down every scheduling; the swap slows down only the
 * reader, and costs a worker one cache miss per timer.
 *
 * While a timer is being moved, its word stays the same and its due changes. That usually ends in a
 * moment; otherwise either due is one that it had during the call. A repeating timer that is
 * ringing right now is recorded with the due for which it rings, unless the next one is known: a
 * process that dies inside a callback repeats it.
 */
#include "runtime/found.h"

#include "runtime/runtime.h"

#include <stdlib.h>

enum {
    ENTRIES_FIRST = 256, /* initial room */
    LOOKS_MAX = 100,     /* checks of a timer that is being moved */
};

bool bel__found_copy(const struct pool *pool, uint32_t index, struct found *out)
{
    struct record *record = record_at(pool, index);
    uint64_t seen = word_load(&record->word);
    for (unsigned looks = 1;; looks++) {
        if (!word_is_pending(seen)) return false;
        if (word_state(seen) == WORD_MOVING && looks < LOOKS_MAX) {
            seen = word_load(&record->word);
            continue;
        }
        out->due = get64(&record->due);
        out->user = get64(&record->user);
        out->period_ns = record_period(record);
        out->wall_ms = record_wall(record);
        out->what = get32(&record->what);
        out->index = index;
        out->generation = word_generation(seen);
        /* Releases the loads above to the next thread that changes the word: see above. */
        if (word_change(&record->word, &seen, seen)) return true;
    }
}

static int make_room(struct findings *all)
{
    if (all->count < all->room) return 0;
    uint32_t room = all->room > 0 ? 2 * all->room : ENTRIES_FIRST;
    struct found *timers = realloc(all->timers, room * sizeof *timers);
    if (timers == NULL) return BEL_ENOMEM;
    all->timers = timers;
    all->room = room;
    return 0;
}

static int compare(const void *left, const void *right)
{
    const struct found *a = left, *b = right;
    uint8_t a_priority = what_priority(a->what), b_priority = what_priority(b->what);
    if (a->due != b->due) return a->due < b->due ? -1 : 1;
    if (a_priority != b_priority) return a_priority < b_priority ? -1 : 1;
    return a->index < b->index ? -1 : 1;
}

/* Returns the end of the records that may be read. */
static uint32_t end_of(const struct pool *pool)
{
    /* Acquire pairs with the release in bel__pool_refill: the memory of the records exists. */
    return atomic_load_explicit(&pool->used, memory_order_acquire);
}

int bel__found_all(const struct pool *pool, struct findings *all)
{
    uint32_t end = end_of(pool);
    for (uint32_t index = 1; index < end; index++) {
        int err = make_room(all);
        if (err) return err;
        if (bel__found_copy(pool, index, &all->timers[all->count])) all->count++;
    }
    if (all->count > 0) qsort(all->timers, all->count, sizeof *all->timers, compare);
    return 0;
}

void bel__found_overdue(const struct bel_runtime *runtime, uint32_t owner, uint64_t before,
                        struct bel_runtime_stats *out)
{
    const struct pool *pool = &runtime->pool;
    uint32_t end = end_of(pool);
    for (uint32_t index = 1; index < end; index++) {
        const struct record *record = record_at(pool, index);
        if (!word_is_pending(word_load(&record->word))) continue;
        if (owner != 0 && get32(&record->owner) != owner) continue;
        uint64_t due = get64(&record->due);
        if (due >= before) continue;
        out->overdue++;
        if (due < out->oldest_due.ns) out->oldest_due.ns = due;
    }
}

/*
 * The public functions.
 */

static void describe(const struct bel_runtime *runtime, const struct found *found, uint64_t now,
                     struct bel_pending *out)
{
    *out = (struct bel_pending){
        .timer = pool_handle(&runtime->pool, found->index, found->generation),
        .user = found->user,
        .due = {found->due},
        .remaining_ns = found->due > now ? found->due - now : 0,
        .period_ns = found->period_ns,
        .is_wall = found->wall_ms != WALL_NONE,
        .wall = {found->wall_ms != WALL_NONE ? found->wall_ms : 0},
        .kind = what_kind(found->what),
        .priority = what_priority(found->what),
        .repeat = what_repeat(found->what),
    };
}

bool bel_runtime_find(const struct bel_runtime *runtime, bel_timer_t timer, struct bel_pending *out)
{
    struct found found;
    if (runtime_is_forked(runtime)) return false;
    if (pool_find(&runtime->pool, timer) == NULL) return false;
    if (!bel__found_copy(&runtime->pool, (uint32_t)timer, &found)) return false;
    if (found.generation != pool_handle_generation(&runtime->pool, timer)) return false;
    describe(runtime, &found, runtime_now(runtime), out);
    return true;
}

struct bel_runtime_walk {
    const struct bel_runtime *runtime;
    struct findings all;
    uint32_t next;
    uint64_t now;
};

int bel_runtime_walk_open(const struct bel_runtime *runtime, struct bel_runtime_walk **out)
{
    if (runtime_is_forked(runtime)) return BEL_ECLOSED;
    struct bel_runtime_walk *walk = calloc(1, sizeof *walk);
    if (walk == NULL) return BEL_ENOMEM;
    walk->runtime = runtime;
    walk->now = runtime_now(runtime);
    int err = bel__found_all(&runtime->pool, &walk->all);
    if (err) {
        bel_runtime_walk_close(walk);
        return err;
    }
    *out = walk;
    return 0;
}

bool bel_runtime_walk_next(struct bel_runtime_walk *walk, struct bel_pending *out)
{
    if (walk->next == walk->all.count) return false;
    describe(walk->runtime, &walk->all.timers[walk->next++], walk->now, out);
    return true;
}

void bel_runtime_walk_close(struct bel_runtime_walk *walk)
{
    if (walk == NULL) return;
    free(walk->all.timers);
    free(walk);
}
