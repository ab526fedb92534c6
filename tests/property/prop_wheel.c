/* SPDX-License-Identifier: MIT */

/*
 * The wheel compared with the simplest correct model: an array kept sorted by (due, priority,
 * sequence). Random operations go to both; the popped timers must agree to the nanosecond, handles
 * of ended timers must be refused, and the limits on work and on stale entries must always hold.
 *
 * Each seed first chooses a profile for its case - number of timers, how far ahead, how clustered,
 * how often each operation - because most bugs appear where one operation dominates.
 */
#include "belfry/wheel.h"
#include "property.h"

#include <string.h>

enum {
    TIMERS_MAX = 20000,
    ENDED = 64, /* handles of ended timers, kept to be tried again */
    CASES = 100,
    STEPS = 4000, /* plus some per timer, so that a large wheel fills up */
    STEPS_PER_TIMER = 12,
    BATCH_MAX = 64, /* timers moved by one call */
};

struct item {
    uint64_t due, order; /* order: priority, then sequence */
};

struct model {
    uint16_t sorted[TIMERS_MAX]; /* ids, the last first, so that a pop moves none */
    uint32_t count;
    struct item items[TIMERS_MAX]; /* by id */
    bool armed[TIMERS_MAX];
    uint64_t sequence;
};

struct character {
    uint32_t timers;         /* ids in use */
    unsigned reach_bits;     /* the longest delay is 2^reach_bits ns */
    unsigned grain_bits;     /* dues are multiples of 2^grain_bits ns */
    unsigned priorities;     /* how many */
    unsigned weights[6];     /* of arm, rearm, cancel, advance, jump, batch */
    unsigned restart_chance; /* of 8: a move stays near the old due */
    unsigned crowd_chance;   /* of 8: a due is in the crowded tick */
    unsigned alias_chance;   /* of 8: a due is moved by 2^42 ns, which an entry cannot
                                distinguish */
};

struct world {
    struct bel_wheel *wheel;
    struct model model;
    struct character character;
    bel_timer_t handles[TIMERS_MAX];
    bel_timer_t ended[ENDED];
    uint64_t now, random, meeting;
};

static uint64_t operations;

static bool item_before(const struct item *a, const struct item *b)
{
    return a->due != b->due ? a->due < b->due : a->order < b->order;
}

static uint32_t model_place(const struct model *m, const struct item *item)
{
    uint32_t low = 0, high = m->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (item_before(item, &m->items[m->sorted[middle]])) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void model_insert(struct model *m, uint32_t id, struct item item)
{
    uint32_t at = model_place(m, &item);
    memmove(&m->sorted[at + 1], &m->sorted[at], (m->count - at) * sizeof m->sorted[0]);
    m->sorted[at] = (uint16_t)id;
    m->items[id] = item;
    m->armed[id] = true;
    m->count++;
}

static void model_remove(struct model *m, uint32_t id)
{
    uint32_t at = model_place(m, &m->items[id]);
    CHECK(m->armed[id] && m->sorted[at] == id);
    m->count--;
    memmove(&m->sorted[at], &m->sorted[at + 1], (m->count - at) * sizeof m->sorted[0]);
    m->armed[id] = false;
}

/* Returns the timer after `before` others. */
static uint32_t model_id(const struct model *m, uint32_t before)
{
    CHECK(before < m->count);
    return m->sorted[m->count - 1 - before];
}

/* Returns its due; BEL_NEVER if there is none. */
static uint64_t model_due(const struct model *m, uint32_t before)
{
    return before < m->count ? m->items[model_id(m, before)].due : BEL_NEVER;
}

static struct character draw_character(uint64_t *random)
{
    static const uint32_t sizes[] = {3, 20, 100, 100, 1000, 1000, 6000, TIMERS_MAX};
    struct character c = {.priorities = 1};
    c.timers = sizes[random_below(random, 8)];
    c.reach_bits = 4 + (unsigned)random_below(random, 59);
    if (random_below(random, 2)) c.priorities += (unsigned)random_below(random, 256);
    c.restart_chance = (unsigned)random_below(random, 9);
    c.grain_bits = random_below(random, 2) ? 0 : (unsigned)random_below(random, c.reach_bits);
    for (unsigned i = 0; i < 6; i++) {
        c.weights[i] = (unsigned)random_below(random, 10);
    }
    if (random_below(random, 3) == 0) c.crowd_chance = 1 + (unsigned)random_below(random, 8);
    if (random_below(random, 3) == 0) c.alias_chance = 1 + (unsigned)random_below(random, 7);
    c.weights[0] += 4;
    c.weights[4] /= 8;
    c.weights[5] /= 8;
    return c;
}

/* Draws a due in one future tick: crowds are larger than the wheel sorts at once. */
static uint64_t draw_crowded(struct world *w)
{
    if (w->meeting <= w->now) {
        uint64_t ahead = random_u64(&w->random) >> (64 - w->character.reach_bits);
        w->meeting = (w->now + ahead) | 1023;
    }
    return w->meeting - random_below(&w->random, 3);
}

/* Draws a future due: any magnitude up to the reach, or spread evenly over it. */
static uint64_t draw_due(struct world *w)
{
    const struct character *c = &w->character;
    if (random_below(&w->random, 8) < c->crowd_chance && w->now < BEL_NEVER / 4) {
        return draw_crowded(w);
    }
    uint64_t delay = random_u64(&w->random) >> (64 - c->reach_bits);
    if (random_below(&w->random, 2)) delay >>= random_below(&w->random, c->reach_bits);
    uint64_t due = w->now + delay;
    if (due < w->now) due = BEL_NEVER - 1;
    if (random_below(&w->random, 8) < c->alias_chance && due < BEL_NEVER / 2) {
        due += (1 + random_below(&w->random, 3)) << 42;
    }
    due = due >> c->grain_bits << c->grain_bits;
    if (random_below(&w->random, 64) == 0) due = w->now - random_below(&w->random, w->now + 1);
    return due == BEL_NEVER ? 0 : due;
}

static uint64_t order_of(struct world *w, uint8_t priority)
{
    return (uint64_t)priority << 56 | w->model.sequence++;
}

static void arm(struct world *w, uint32_t id)
{
    uint8_t priority = (uint8_t)random_below(&w->random, w->character.priorities);
    struct item item = {.due = draw_due(w), .order = order_of(w, priority)};
    CHECK_EQ((uint64_t)bel_wheel_arm(w->wheel, item.due, priority, id, &w->handles[id]), 0);
    model_insert(&w->model, id, item);
}

/* Draws the new due of a timer that is moved. */
static uint64_t draw_move(struct world *w, uint32_t id)
{
    uint64_t old = w->model.items[id].due, due = draw_due(w);
    if (random_below(&w->random, 8) >= w->character.restart_chance) return due;
    due = old + (draw_due(w) - w->now) / 16; /* mostly a little later */
    return due < old || due == BEL_NEVER ? old : due;
}

/* Records the result of a move. */
static void moved(struct world *w, uint32_t id, uint64_t due, int result)
{
    CHECK(result == (w->model.armed[id] ? 0 : BEL_ESTALE));
    if (result != 0) return;
    uint8_t priority = (uint8_t)(w->model.items[id].order >> 56);
    model_remove(&w->model, id);
    model_insert(&w->model, id, (struct item){due, order_of(w, priority)});
}

static void rearm(struct world *w, uint32_t id)
{
    uint64_t due = draw_move(w, id);
    moved(w, id, due, bel_wheel_rearm(w->wheel, w->handles[id], due));
}

static void batch(struct world *w)
{
    struct bel_rearm moves[BATCH_MAX];
    uint32_t ids[BATCH_MAX];
    size_t count = random_below(&w->random, BATCH_MAX + 1), succeeded = 0;
    for (size_t i = 0; i < count; i++) {
        ids[i] = (uint32_t)random_below(&w->random, w->character.timers);
        moves[i] = (struct bel_rearm){w->handles[ids[i]], draw_move(w, ids[i]), 99};
    }
    size_t reported = bel_wheel_rearm_many(w->wheel, moves, count);
    for (size_t i = 0; i < count; i++) {
        moved(w, ids[i], moves[i].due, moves[i].result);
        succeeded += moves[i].result == 0;
    }
    CHECK_EQ(reported, succeeded);
}

static void end_handle(struct world *w, uint32_t id)
{
    w->ended[random_below(&w->random, ENDED)] = w->handles[id];
}

static void cancel(struct world *w, uint32_t id)
{
    bool armed = w->model.armed[id];
    CHECK(bel_wheel_cancel(w->wheel, w->handles[id]) == armed);
    if (!armed) return;
    model_remove(&w->model, id);
    end_handle(w, id);
}

static void check_popped(struct world *w, const struct bel_wheel_timer *timer)
{
    uint32_t id = model_id(&w->model, 0);
    CHECK_EQ(timer->user, id);
    CHECK_EQ(timer->due, w->model.items[id].due);
    CHECK_EQ(timer->priority, w->model.items[id].order >> 56);
    CHECK_EQ(timer->timer, w->handles[id]);
    CHECK(timer->due <= w->now);
    model_remove(&w->model, id);
    end_handle(w, id);
}

/* Pops all due timers, one by one or in batches, sometimes not all. */
static void pop_due(struct world *w)
{
    struct bel_wheel_timer timers[100];
    CHECK(bel_wheel_next(w->wheel) <= model_due(&w->model, 0));
    do {
        size_t max = 1 + random_below(&w->random, 100), count;
        if (random_below(&w->random, 2)) {
            count = bel_wheel_pop(w->wheel, w->now, timers);
        } else {
            count = bel_wheel_pop_many(w->wheel, w->now, timers, max);
            CHECK(count <= max);
        }
        for (size_t i = 0; i < count; i++) {
            check_popped(w, &timers[i]);
        }
        if (random_below(&w->random, 200) == 0) return;
    } while (bel_wheel_next(w->wheel) <= w->now);
    CHECK(model_due(&w->model, 0) > w->now);
}

static void advance(struct world *w)
{
    uint64_t step = random_u64(&w->random) >> (64 - w->character.reach_bits);
    step >>= random_below(&w->random, w->character.reach_bits);
    if (w->model.count > 0 && random_below(&w->random, 4) == 0) {
        uint32_t ahead = (uint32_t)random_below(&w->random, w->model.count);
        uint64_t due = model_due(&w->model, ahead / 8);
        step = due > w->now ? due - w->now : 0;
    }
    if (step < UINT64_MAX - w->now) w->now += step;
    pop_due(w);
}

/* Moves the time far ahead, or back: then fewer timers are due. */
static void jump(struct world *w)
{
    if (random_below(&w->random, 2)) {
        uint64_t shift = random_below(&w->random, 60);
        w->now -= random_below(&w->random, w->now + 1) >> shift;
    } else {
        uint64_t far = random_u64(&w->random) >> (66 - w->character.reach_bits);
        if (far < UINT64_MAX - w->now) w->now += far;
    }
    pop_due(w);
}

static void check_exact_next(struct world *w)
{
    uint64_t next;
    while (!bel_wheel_next_exact(w->wheel, &next)) {
        CHECK(next <= model_due(&w->model, 0));
        if (random_below(&w->random, 4) == 0) return; /* other operations come in between */
    }
    CHECK_EQ(next, model_due(&w->model, 0));
}

static void check_ended(struct world *w)
{
    bel_timer_t timer = w->ended[random_below(&w->random, ENDED)];
    struct bel_wheel_timer found;
    bel_wheel_expect(w->wheel, timer);
    CHECK(!bel_wheel_find(w->wheel, timer, &found));
    CHECK(!bel_wheel_cancel(w->wheel, timer));
    CHECK(bel_wheel_rearm(w->wheel, timer, w->now) == BEL_ESTALE);
}

static void check_bounds(struct world *w)
{
    struct bel_wheel_stats stats;
    bel_wheel_stats(w->wheel, &stats);
    CHECK_EQ(bel_wheel_count(w->wheel), w->model.count);
    CHECK_EQ(stats.armed, w->model.count);
    CHECK(stats.touched_max <= BEL_WHEEL_WORK_MAX);
    CHECK(stats.entries <= 3 * stats.armed + 16384);
}

static void check_walk(struct world *w)
{
    struct bel_wheel_walk *walk;
    struct bel_wheel_timer timer;
    CHECK_EQ((uint64_t)bel_wheel_walk_open(w->wheel, &walk), 0);
    for (uint32_t i = 0; i < w->model.count; i++) {
        CHECK(bel_wheel_walk_next(walk, &timer));
        CHECK_EQ(timer.user, model_id(&w->model, i));
    }
    CHECK(!bel_wheel_walk_next(walk, &timer));
    bel_wheel_walk_close(walk);
}

/* Applies one operation to every timer, in the order of their ids. */
static void burst(struct world *w)
{
    uint64_t what = random_below(&w->random, 3), spared = random_below(&w->random, 4);
    for (uint32_t id = 0; id < w->character.timers; id++) {
        if (spared > 0 && random_below(&w->random, 64) < spared) continue;
        if (what == 0 && !w->model.armed[id]) arm(w, id);
        if (what == 1) rearm(w, id);
        if (what == 2) cancel(w, id);
        operations++;
    }
    CHECK(bel_wheel_valid(w->wheel));
}

static void step(struct world *w)
{
    unsigned total = 0, pick;
    for (unsigned i = 0; i < 6; i++) {
        total += w->character.weights[i];
    }
    pick = (unsigned)random_below(&w->random, total);
    unsigned what = 0;
    while (pick >= w->character.weights[what]) {
        pick -= w->character.weights[what++];
    }
    uint32_t id = (uint32_t)random_below(&w->random, w->character.timers);
    switch (what) {
    case 0:
        if (!w->model.armed[id]) arm(w, id);
        break;
    case 1:
        rearm(w, id);
        break;
    case 2:
        cancel(w, id);
        break;
    case 3:
        advance(w);
        break;
    case 4:
        jump(w);
        break;
    case 5:
        batch(w);
        break;
    }
}

static void run_case(uint64_t seed)
{
    static struct world world;
    struct world *w = &world;
    memset(w, 0, sizeof *w);
    w->random = seed;
    w->character = draw_character(&w->random);
    w->now = random_magnitude(&w->random) / 2;
    struct bel_wheel_options options = {.now = w->now, .handle_seed = (uint32_t)seed};
    if (random_below(&w->random, 4) == 0) options.timers_max = w->character.timers;
    CHECK_EQ((uint64_t)bel_wheel_create(&options, &w->wheel), 0);
    uint64_t steps = STEPS + STEPS_PER_TIMER * w->character.timers;
    uint64_t look_every = 16 + w->character.timers / 2;
    uint64_t burst_chance = 500 + 5 * (uint64_t)w->character.timers;
    for (uint64_t i = 1; i <= steps; i++, operations++) {
        step(w);
        check_ended(w);
        if (random_below(&w->random, 500) == 0) check_exact_next(w);
        if (random_below(&w->random, burst_chance) == 0) burst(w);
        check_bounds(w);
        if (i % look_every == 0) CHECK(bel_wheel_valid(w->wheel));
    }
    check_walk(w);
    w->now = BEL_NEVER - 1;
    while (w->model.count > 0) {
        pop_due(w);
    }
    check_bounds(w);
    CHECK(bel_wheel_valid(w->wheel));
    bel_wheel_destroy(w->wheel);
}

int main(int argc, char **argv)
{
    int status = run_cases(argc, argv, CASES, run_case, "histories");
    printf("%" PRIu64 " operations\n", operations);
    return status;
}
