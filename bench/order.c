/* SPDX-License-Identifier: MIT */

/*
 * order: tests the order of firing, not the speed. Timers are scheduled, restarted and
 * cancelled on few due times, so that many are due together, and the engine is polled
 * every few milliseconds. The fired timers are compared with a plain table: never early,
 * at the first possible poll, in the order of due times, and equal due times in the
 * order in which they were last scheduled.
 */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

enum {
    ROUNDS = 2000,
    OPS_PER_ROUND = 100,
    STEP_MS = 4,
    SPAN_MS = 200,
};

struct table {
    uint64_t *dues;  /* 0: not pending */
    uint64_t *order; /* number of the operation that scheduled it */
    uint64_t ops;
    uint32_t timers;
    uint32_t pending;
};

static void operate(struct table *table, uint64_t bits)
{
    uint32_t id = bench_scale((uint32_t)(bits >> 32), table->timers);
    uint64_t due = bench_now + (1 + bits % SPAN_MS) * BENCH_MS;
    table->ops++;
    if (table->dues[id] == 0) {
        engine_schedule(id, due);
        table->pending++;
    } else if (bits / SPAN_MS % 2 == 0) {
        engine_restart(id, due);
    } else {
        engine_cancel(id);
        table->dues[id] = 0;
        table->pending--;
        return;
    }
    table->dues[id] = due;
    table->order[id] = table->ops;
}

static void check_fired(struct table *table, uint64_t polled_before)
{
    uint64_t last_due = 0, last_order = 0;
    for (uint32_t i = 0; i < bench_fired_len; i++) {
        uint32_t id = bench_fired_ids[i];
        uint64_t due = table->dues[id];
        if (due == 0) bench_fail("fired a timer that was not pending");
        bench_audit.early += due > bench_now;
        bench_audit.late += due <= polled_before;
        bench_audit.inversions += due < last_due;
        bench_audit.ties += due == last_due && table->order[id] < last_order;
        last_due = due;
        last_order = table->order[id];
        table->dues[id] = 0;
        table->pending--;
    }
}

static void poll_at(struct table *table, uint64_t now)
{
    uint64_t polled_before = bench_now;
    bench_set_now(now);
    bench_fired_len = 0;
    struct bench_audit audit = bench_audit;
    engine_fire();
    bench_audit = audit; /* check_fired() counts again, against the table */
    check_fired(table, polled_before);
}

void bench_run_order(const struct bench_options *options)
{
    if (engine_traits.is_null) return;
    struct bench_random random = {options->seed};
    struct table table = {.timers = options->timers};
    table.dues = calloc(options->timers, sizeof *table.dues);
    table.order = calloc(options->timers, sizeof *table.order);
    if (table.dues == NULL || table.order == NULL) bench_fail("out of memory");

    engine_open(options->timers);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < OPS_PER_ROUND; i++)
            operate(&table, bench_random_next(&random));
        poll_at(&table, bench_now + STEP_MS * BENCH_MS);
    }
    for (uint32_t i = 0; i <= SPAN_MS / STEP_MS; i++) {
        poll_at(&table, bench_now + STEP_MS * BENCH_MS);
    }
    bench_audit.lost += table.pending;
    engine_close();
    free(table.dues);
    free(table.order);
}
