/* SPDX-License-Identifier: MIT */

/*
 * The slab compared with a table of the items taken. Each item holds a stamp from when it was last
 * taken, which must be unchanged while it is taken, when it is given back and when it is taken
 * again.
 */
#include "core/slab.h"
#include "property.h"

#include <stdbool.h>
#include <string.h>

enum {
    ITEMS_MAX = 20000,
    CASES = 100,
    STEPS = 40000,
};

struct world {
    struct bel__slab slab;
    bool is_taken[ITEMS_MAX];
    uint64_t stamps[ITEMS_MAX]; /* 0: never taken */
    uint32_t taken[ITEMS_MAX];
    uint32_t count;
    uint64_t stamp, random;
};

static uint64_t *item_at(struct world *w, uint32_t index)
{
    return bel__slab_at(&w->slab, index);
}

static void take(struct world *w)
{
    uint32_t index = bel__slab_take(&w->slab);
    CHECK((index == BEL__SLAB_NONE) == (w->count == w->slab.max));
    if (index == BEL__SLAB_NONE) return;
    CHECK(index < w->slab.max && !w->is_taken[index]);
    CHECK_EQ(*item_at(w, index), w->stamps[index]);
    *item_at(w, index) = w->stamps[index] = ++w->stamp;
    w->is_taken[index] = true;
    w->taken[w->count++] = index;
}

static void give(struct world *w)
{
    if (w->count == 0) return;
    uint32_t at = (uint32_t)random_below(&w->random, w->count), index = w->taken[at];
    w->taken[at] = w->taken[--w->count];
    w->is_taken[index] = false;
    bel__slab_give(&w->slab, index);
    CHECK_EQ(*item_at(w, index), w->stamps[index]);
}

static void check_all(struct world *w)
{
    CHECK_EQ(w->slab.used - bel__slab_free_count(&w->slab), w->count);
    CHECK(w->slab.used <= w->slab.ready && w->slab.ready <= w->slab.max);
    for (uint32_t i = 0; i < w->slab.used; i++) {
        CHECK_EQ(*item_at(w, i), w->stamps[i]);
    }
}

/* Takes and gives for a while, mostly one of the two. */
static void run_phase(struct world *w, uint64_t steps)
{
    uint64_t takes_of_16 = random_below(&w->random, 17);
    for (uint64_t i = 0; i < steps; i++) {
        if (random_below(&w->random, 16) < takes_of_16) {
            take(w);
        } else {
            give(w);
        }
    }
    uint32_t ready = (uint32_t)random_below(&w->random, 2 * (uint64_t)w->slab.max);
    bool fits = ready <= w->slab.max;
    int err = random_below(&w->random, 2) ? bel__slab_grow(&w->slab, ready)
                                          : bel__slab_prefault(&w->slab, ready);
    CHECK(err == (fits ? 0 : BEL_EFULL));
    check_all(w);
}

static void run_case(uint64_t seed)
{
    static struct world world;
    struct world *w = &world;
    memset(w, 0, sizeof *w);
    w->random = seed;
    uint32_t max = 1 + (uint32_t)(random_magnitude(&w->random) % ITEMS_MAX);
    uint32_t item_bytes = 8 * (1 + (uint32_t)random_below(&w->random, 40));
    CHECK(bel__slab_init(&w->slab, item_bytes, max) == 0);
    for (uint64_t left = STEPS; left > 0;) {
        uint64_t steps = 1 + random_below(&w->random, left);
        run_phase(w, steps);
        left -= steps;
    }
    while (w->count > 0) {
        give(w);
    }
    for (uint32_t i = 0; i < max; i++) {
        take(w);
    }
    check_all(w);
    bel__slab_finish(&w->slab);
}

int main(int argc, char **argv)
{
    return run_cases(argc, argv, CASES, run_case, "seeds");
}
