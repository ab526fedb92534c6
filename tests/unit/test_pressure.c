/* SPDX-License-Identifier: MIT */

/*
 * Back-pressure, by simulation in virtual time: a flood of batches, each committed as soon as the
 * previous one has waited, meets checkpoints of different speeds.
 */
#include "store/pressure.h"

#include "../check.h"

#include <stdbool.h>

#define MB            UINT64_C(1000000)
#define MS            UINT64_C(1000000)
#define SECOND        UINT64_C(1000000000)
#define FILL_MAX      (64 * MB)
#define BATCH_COST_NS (100 * UINT64_C(1000)) /* of a sync */

/* The progress of a checkpoint as a function of time. */
struct pace {
    uint64_t total_ns;
    unsigned commits;     /* number of steps; 0: continuous */
    uint64_t stall_at_ns; /* it makes no progress for `stall_ns` */
    uint64_t stall_ns;
};

struct flood {
    uint64_t batch;       /* bytes */
    uint64_t cost_ns;     /* of a batch without waiting */
    uint64_t expected_ns; /* the store's estimate */
};

struct outcome {
    uint64_t fill;      /* when the checkpoint was done, or the store was full */
    uint64_t delay_max; /* of a batch */
    uint64_t waited;    /* number of batches that waited */
    uint64_t now;
    bool was_full;
};

static unsigned progress_at(const struct pace *pace, uint64_t now)
{
    uint64_t at = now;
    if (pace->stall_ns > 0 && now > pace->stall_at_ns) {
        uint64_t behind = now - pace->stall_at_ns;
        at = behind < pace->stall_ns ? pace->stall_at_ns : now - pace->stall_ns;
    }
    if (at >= pace->total_ns) return BEL_PRESSURE_PROGRESS_MAX;
    uint64_t thousandths = at * BEL_PRESSURE_PROGRESS_MAX / pace->total_ns;
    if (pace->commits == 0) return (unsigned)thousandths;
    uint64_t jump = BEL_PRESSURE_PROGRESS_MAX / pace->commits;
    uint64_t committed = thousandths / jump * jump; /* puts advance in the first half of the time */
    uint64_t put = committed + 2 * (thousandths - committed);
    if (put > committed + jump) put = committed + jump;
    return (unsigned)((committed + put) / 2);
}

static struct outcome run(const struct pace *pace, const struct flood *flood)
{
    struct outcome outcome = {.fill = 0};
    while (progress_at(pace, outcome.now) < BEL_PRESSURE_PROGRESS_MAX) {
        if (outcome.fill + flood->batch > FILL_MAX) {
            outcome.was_full = true;
            break;
        }
        outcome.fill += flood->batch;
        outcome.now += flood->cost_ns;
        struct bel_pressure pressure = {
            .fill = outcome.fill,
            .fill_max = FILL_MAX,
            .batch = flood->batch,
            .progress = progress_at(pace, outcome.now),
            .elapsed_ns = outcome.now,
            .expected_ns = flood->expected_ns,
        };
        uint64_t delay = bel__pressure_delay_ns(&pressure);
        if (delay > outcome.delay_max) outcome.delay_max = delay;
        outcome.waited += delay > 0;
        outcome.now += delay;
    }
    return outcome;
}

static void nobody_waits_without_a_checkpoint(void)
{
    struct bel_pressure pressure = {
        .fill = FILL_MAX - 1,
        .fill_max = FILL_MAX,
        .batch = 4096,
        .progress = BEL_PRESSURE_PROGRESS_MAX,
    };
    CHECK_EQ(bel__pressure_delay_ns(&pressure), 0);
}

static void nobody_waits_while_the_checkpoint_is_ahead(void)
{
    struct pace pace = {.total_ns = 4 * SECOND, .commits = 15};
    struct flood flood = {.batch = 4096, .cost_ns = 300 * UINT64_C(1000)}; /* 55 MB in 4 s */
    struct outcome outcome = run(&pace, &flood);
    CHECK_EQ(outcome.waited, 0);
    CHECK(!outcome.was_full);
}

static void a_flood_is_spread_evenly(void)
{
    /* 40 MB/s meet room for 64 MB in 4 s. */
    struct pace pace = {.total_ns = 4 * SECOND, .commits = 15};
    struct flood flood = {.batch = 4096, .cost_ns = BATCH_COST_NS, .expected_ns = 4 * SECOND};
    struct outcome outcome = run(&pace, &flood);
    CHECK(!outcome.was_full);
    CHECK(outcome.delay_max < 2 * MS);
    CHECK(outcome.fill > FILL_MAX * 7 / 8); /* it waited no more than necessary */
    CHECK(outcome.now < 4 * SECOND + 2 * MS);
}

static void large_batches_wait_longer_but_not_for_all(void)
{
    struct pace pace = {.total_ns = 4 * SECOND, .commits = 15};
    struct flood flood = {.batch = MB / 4, .cost_ns = 400 * UINT64_C(1000)}; /* 650 MB/s */
    struct outcome outcome = run(&pace, &flood);
    CHECK(!outcome.was_full);
    CHECK(outcome.delay_max < 100 * MS);
    CHECK(outcome.fill > FILL_MAX * 7 / 8);
}

/* Every combination of true and estimated speed, batch size and shape: never full, never a
 * stall. */
static void no_guess_is_so_wrong_that_it_stalls(void)
{
    static const uint64_t totals[] = {SECOND / 10, SECOND, 4 * SECOND, 20 * SECOND, 60 * SECOND};
    static const uint64_t batches[] = {4096, 65536, MB};
    static const unsigned commits[] = {0, 4, 15};
    for (int i = 0; i < 5 * 6 * 3 * 3; i++) {
        struct pace pace = {.total_ns = totals[i % 5], .commits = commits[i / 30 % 3]};
        struct flood flood = {.batch = batches[i / 90],
                              .cost_ns = BATCH_COST_NS + batches[i / 90],
                              .expected_ns = i / 5 % 6 == 5 ? 0 : totals[i / 5 % 6]};
        CHECK_NOTE("%.1f s, %.1f s expected, %u jumps, batches of %.0f KB",
                   (double)pace.total_ns / 1e9, (double)flood.expected_ns / 1e9, pace.commits,
                   (double)flood.batch / 1e3);
        struct outcome outcome = run(&pace, &flood);
        uint64_t slower = pace.total_ns;
        if (flood.expected_ns > slower) slower = flood.expected_ns;
        if (flood.expected_ns == 0 && slower < 4 * SECOND) slower = 4 * SECOND;
        uint64_t even = slower / (FILL_MAX / flood.batch); /* if the flood used all of it */
        CHECK(!outcome.was_full);
        CHECK(outcome.delay_max < 5 * even);
        CHECK(outcome.now < pace.total_ns + 5 * even + flood.cost_ns);
    }
}

static void a_checkpoint_that_stands_still_is_waited_for_and_no_longer(void)
{
    struct pace pace = {
        .total_ns = 4 * SECOND, .stall_at_ns = 2 * SECOND, .stall_ns = 2 * SECOND, .commits = 15};
    struct flood flood = {.batch = 4096, .cost_ns = BATCH_COST_NS, .expected_ns = 4 * SECOND};
    struct outcome outcome = run(&pace, &flood);
    CHECK(!outcome.was_full);
    CHECK(outcome.delay_max < 10 * MS);
    CHECK(outcome.now < 6 * SECOND + 10 * MS);
}

/* Floods and checkpoints alternate, as in a store under constant load: a full delta is frozen once
 * the previous checkpoint is done. */
static void a_long_flood_never_stands_still(void)
{
    struct pace pace = {.total_ns = 4 * SECOND, .commits = 15};
    struct flood flood = {.batch = 8192, .cost_ns = BATCH_COST_NS};
    uint64_t batches = 0, now = 0;
    for (unsigned round = 0; round < 20; round++) {
        pace.total_ns = (round % 5 + 1) * SECOND;
        struct outcome outcome = run(&pace, &flood);
        CHECK_NOTE("round %u", round);
        CHECK(!outcome.was_full);
        CHECK(outcome.delay_max < 6 * MS);
        uint64_t rest = (FILL_MAX - outcome.fill) / flood.batch; /* without waiting */
        batches += (outcome.fill / flood.batch) + rest;
        now += outcome.now + rest * flood.cost_ns;
        flood.expected_ns = pace.total_ns;
    }
    CHECK(batches >= 20 * (FILL_MAX / flood.batch - 1));
    CHECK(now < 60 * SECOND * 12 / 10); /* hardly slower than the checkpoints alone */
}

int main(void)
{
    RUN(nobody_waits_without_a_checkpoint);
    RUN(nobody_waits_while_the_checkpoint_is_ahead);
    RUN(a_flood_is_spread_evenly);
    RUN(large_batches_wait_longer_but_not_for_all);
    RUN(no_guess_is_so_wrong_that_it_stalls);
    RUN(a_checkpoint_that_stands_still_is_waited_for_and_no_longer);
    RUN(a_long_flood_never_stands_still);
    return 0;
}
