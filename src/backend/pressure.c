/* SPDX-License-Identifier: MIT */

/*
 * A level rises above its bound and falls 5 points below it:
 *
 *     critical                                             .----->
 *     high                                      .----->    |  <---
 *     medium                        .----->     |  <---  90  95
 *     low           .----->         |  <---   80  85
 *     none          |  <---       65  70
 *                 45  50                                       % of the limit
 *
 * A bound itself belongs to the lower level, in both directions. Uses are compared by products of
 * whole numbers, so that 500 of 1,000 and 501 of 1,000 are told apart.
 */
#include "backend/pressure.h"

#include <assert.h>

enum {
    FALL_POINTS = 5,
    PERCENT_MAX = 999,
};

static const unsigned bounds[] = {
    [BEL_PRESSURE_NONE] = 0,  [BEL_PRESSURE_LOW] = 50,      [BEL_PRESSURE_MEDIUM] = 70,
    [BEL_PRESSURE_HIGH] = 85, [BEL_PRESSURE_CRITICAL] = 95,
};
static_assert(sizeof bounds / sizeof bounds[0] == BEL_PRESSURE_LEVELS, "every level has a bound");

const char *bel_pressure_level_name(enum bel_pressure_level level)
{
    static const char *const names[] = {
        [BEL_PRESSURE_NONE] = "none",         [BEL_PRESSURE_LOW] = "low",
        [BEL_PRESSURE_MEDIUM] = "medium",     [BEL_PRESSURE_HIGH] = "high",
        [BEL_PRESSURE_CRITICAL] = "critical",
    };
    assert(level < BEL_PRESSURE_LEVELS);
    return names[level];
}

const char *bel_pressure_cause_name(enum bel_pressure_cause cause)
{
    static const char *const names[] = {
        [BEL_PRESSURE_MEMORY] = "memory",
        [BEL_PRESSURE_DISK] = "disk",
        [BEL_PRESSURE_DEPTH] = "depth",
        [BEL_PRESSURE_COMMIT] = "commit",
    };
    assert(cause < BEL_PRESSURE_CAUSES);
    return names[cause];
}

/* Returns a use whose numbers can be multiplied by PERCENT_MAX. */
static struct bel_pressure_use scaled(const struct bel_pressure_use *use)
{
    struct bel_pressure_use small = *use;
    while (small.limit > UINT32_MAX || small.used > UINT64_MAX / PERCENT_MAX) {
        small.used /= 2;
        small.limit /= 2;
    }
    if (use->limit > 0 && small.limit == 0) small.limit = 1;
    return small;
}

/* Returns whether more than `percent` of the limit is used. */
static bool is_above(const struct bel_pressure_use *use, unsigned percent)
{
    assert(percent <= 100);
    if (use->limit > UINT64_MAX / 100 || use->used > UINT64_MAX / 100) {
        struct bel_pressure_use small = scaled(use);
        return small.used * 100 > small.limit * percent;
    }
    return use->used * 100 > use->limit * percent;
}

/* Returns the highest level whose bound, lowered by `points`, the use is above. */
static enum bel_pressure_level level_of(const struct bel_pressure_use *use, unsigned points)
{
    unsigned level = BEL_PRESSURE_CRITICAL;
    while (level > BEL_PRESSURE_NONE && !is_above(use, bounds[level] - points)) {
        level--;
    }
    return (enum bel_pressure_level)level;
}

enum bel_pressure_level bel__pressure_next(enum bel_pressure_level before,
                                           const struct bel_pressure_use *use)
{
    assert(before < BEL_PRESSURE_LEVELS);
    if (use->is_unreadable) return BEL_PRESSURE_CRITICAL;
    if (use->limit == 0) return BEL_PRESSURE_NONE;
    enum bel_pressure_level risen = level_of(use, 0), fallen = level_of(use, FALL_POINTS);
    if (risen >= before) return risen;
    return fallen < before ? fallen : before;
}

bool bel__pressure_update(struct bel_pressure_state *state,
                          const struct bel_pressure_use uses[BEL_PRESSURE_CAUSES])
{
    enum bel_pressure_level before = state->level, worst = BEL_PRESSURE_NONE;
    for (unsigned i = 0; i < BEL_PRESSURE_CAUSES; i++) {
        enum bel_pressure_level level = bel__pressure_next(state->levels[i], &uses[i]);
        if (i == BEL_PRESSURE_COMMIT && level > BEL_PRESSURE_HIGH) level = BEL_PRESSURE_HIGH;
        state->levels[i] = level;
        state->uses[i] = uses[i];
        if (i > 0 && level <= worst) continue;
        worst = level;
        state->cause = (enum bel_pressure_cause)i;
    }
    state->level = worst;
    state->changes += worst != before;
    return worst != before;
}

uint32_t bel__pressure_pace_ms(enum bel_pressure_level level)
{
    static const uint32_t paces[] = {
        [BEL_PRESSURE_NONE] = 0,     [BEL_PRESSURE_LOW] = 2000,       [BEL_PRESSURE_MEDIUM] = 10000,
        [BEL_PRESSURE_HIGH] = 30000, [BEL_PRESSURE_CRITICAL] = 30000,
    };
    assert(level < BEL_PRESSURE_LEVELS);
    return paces[level];
}

unsigned bel__pressure_percent(const struct bel_pressure_use *use)
{
    if (use->is_unreadable) return PERCENT_MAX;
    if (use->limit == 0) return 0;
    struct bel_pressure_use small = scaled(use);
    uint64_t percent = (small.used * 100 + small.limit - 1) / small.limit;
    return percent < PERCENT_MAX ? (unsigned)percent : PERCENT_MAX;
}

bool bel__pressure_is_worse(const struct bel_pressure_use *one,
                            const struct bel_pressure_use *other)
{
    if (one->is_unreadable || other->is_unreadable) {
        return one->is_unreadable && !other->is_unreadable;
    }
    if (one->limit == 0 || other->limit == 0) return one->limit > 0 && other->limit == 0;
    struct bel_pressure_use a = scaled(one), b = scaled(other);
    if (a.used > UINT32_MAX) a.used = UINT32_MAX;
    if (b.used > UINT32_MAX) b.used = UINT32_MAX;
    return a.used * b.limit > b.used * a.limit;
}
