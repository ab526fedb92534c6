/* SPDX-License-Identifier: MIT */

/*
 * The first two bytes are the start time, a power of two and an offset. Then come
 * operations of three bytes: what to do; the timer or a count; and a time, as a magnitude
 * after now or, with the top bit set, before it.
 *
 * The model is an unordered table of timers, which is searched for the first one.
 */
#include "belfry/wheel.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    TIMERS = 256,
    CROWD_MAX = 64,
    OPERATIONS_MAX = 4096,
    VALID_EVERY = 64,
};

enum operation {
    ARM,
    REARM,
    CANCEL,
    POP,
    POP_MANY,
    NEXT_EXACT,
    TRAVEL,
    CROWD,
    OPERATION_COUNT,
};

struct model_timer {
    bel_timer_t handle;
    uint64_t due, sequence;
    uint8_t priority;
    bool armed;
};

struct world {
    struct bel_wheel *wheel;
    struct model_timer timers[TIMERS];
    uint64_t now, sequence;
};

/* Returns an instant: 64 magnitudes, and the nanosecond before, at or after each. */
static uint64_t instant_of(const struct world *w, uint8_t when)
{
    uint64_t distance = (UINT64_C(1) << (when & 0x3f)) + when % 3 - 1;
    uint64_t at = when & 0x80 ? w->now - distance : w->now + distance;
    if (when & 0x80) return at > w->now ? 0 : at;
    return at < w->now || at == BEL_NEVER ? BEL_NEVER - 1 : at;
}

static bool is_before(const struct model_timer *a, const struct model_timer *b)
{
    if (a->due != b->due) return a->due < b->due;
    return a->priority != b->priority ? a->priority < b->priority : a->sequence < b->sequence;
}

/* Returns the armed timer that is first, or NULL. */
static struct model_timer *first_of(struct world *w)
{
    struct model_timer *first = NULL;
    for (unsigned i = 0; i < TIMERS; i++) {
        struct model_timer *timer = &w->timers[i];
        if (timer->armed && (first == NULL || is_before(timer, first))) first = timer;
    }
    return first;
}

static void arm(struct world *w, uint8_t which, uint64_t due)
{
    struct model_timer *timer = &w->timers[which];
    if (timer->armed) return;
    timer->priority = which % 4;
    timer->due = due;
    timer->sequence = w->sequence++;
    timer->armed = true;
    int err = bel_wheel_arm(w->wheel, due, timer->priority, which, &timer->handle);
    assert(err == 0);
}

static void rearm(struct world *w, uint8_t which, uint64_t due)
{
    struct model_timer *timer = &w->timers[which];
    int err = bel_wheel_rearm(w->wheel, timer->handle, due);
    assert(err == (timer->armed ? 0 : BEL_ESTALE));
    if (err) return;
    timer->due = due;
    timer->sequence = w->sequence++;
}

static void cancel(struct world *w, uint8_t which)
{
    bool was_armed = bel_wheel_cancel(w->wheel, w->timers[which].handle);
    assert(was_armed == w->timers[which].armed);
    w->timers[which].armed = false;
}

static void check_popped(struct world *w, const struct bel_wheel_timer *popped)
{
    struct model_timer *first = first_of(w);
    assert(first != NULL && first->due <= w->now);
    assert(popped->timer == first->handle && popped->due == first->due);
    assert(popped->user == (uint64_t)(first - w->timers));
    assert(popped->priority == first->priority);
    first->armed = false;
}

/* Pops up to `max` timers: all due ones, unless the wheel reports that it stopped early. */
static void pop(struct world *w, size_t max)
{
    struct bel_wheel_timer out[TIMERS];
    size_t count = max == 1 ? bel_wheel_pop(w->wheel, w->now, out)
                            : bel_wheel_pop_many(w->wheel, w->now, out, max);
    assert(count <= max);
    for (size_t i = 0; i < count; i++) {
        check_popped(w, &out[i]);
    }
    const struct model_timer *first = first_of(w);
    uint64_t next = bel_wheel_next(w->wheel);
    assert(first == NULL || next <= first->due);
}

static void drain(struct world *w)
{
    while (bel_wheel_next(w->wheel) <= w->now) {
        pop(w, TIMERS);
    }
    const struct model_timer *first = first_of(w);
    assert(first == NULL || first->due > w->now);
}

static void check_next(struct world *w)
{
    uint64_t next;
    while (!bel_wheel_next_exact(w->wheel, &next)) {
        assert(next != BEL_NEVER);
    }
    const struct model_timer *first = first_of(w);
    assert(next == (first != NULL ? first->due : BEL_NEVER));
}

static void travel(struct world *w, uint8_t which, uint64_t to)
{
    w->now = to;
    if (which % 4 != 0) drain(w);
}

static void crowd(struct world *w, uint8_t which, uint64_t due)
{
    for (unsigned i = 0; i < CROWD_MAX; i++) {
        arm(w, (uint8_t)(which + i), due);
    }
}

static void operate(struct world *w, const uint8_t *bytes)
{
    uint64_t at = instant_of(w, bytes[2]);
    switch ((enum operation)(bytes[0] % OPERATION_COUNT)) {
    case ARM:
        arm(w, bytes[1], at);
        break;
    case REARM:
        rearm(w, bytes[1], at);
        break;
    case CANCEL:
        cancel(w, bytes[1]);
        break;
    case POP:
        pop(w, 1);
        break;
    case POP_MANY:
        pop(w, bytes[1]);
        break;
    case NEXT_EXACT:
        check_next(w);
        break;
    case TRAVEL:
        travel(w, bytes[1], at);
        break;
    case CROWD:
        crowd(w, bytes[1], at);
        break;
    default:
        assert(false);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct world world;
    struct world *w = &world;
    if (size < 2) return 0;
    *w = (struct world){.now = (UINT64_C(1) << (data[0] & 0x3f)) + data[1]};
    struct bel_wheel_options options = {.now = w->now, .handle_seed = 1};
    if (bel_wheel_create(&options, &w->wheel) != 0) return 0;
    size_t operations = (size - 2) / 3;
    if (operations > OPERATIONS_MAX) operations = OPERATIONS_MAX;
    for (size_t i = 0; i < operations; i++) {
        operate(w, data + 2 + 3 * i);
        if (i % VALID_EVERY == 0) assert(bel_wheel_valid(w->wheel));
    }
    assert(bel_wheel_valid(w->wheel));
    w->now = BEL_NEVER - 1;
    drain(w);
    assert(bel_wheel_count(w->wheel) == 0);
    bel_wheel_destroy(w->wheel);
    return 0;
}
