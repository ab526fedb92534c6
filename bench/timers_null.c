/* SPDX-License-Identifier: MIT */

/* An engine that does nothing and fires the expected number of timers: measures the harness. */
#include "engine.h"

const struct engine_traits engine_traits = {
    .name = "null", .resolution_ns = 1, .is_null = true, .has_batches = true};

static uint32_t timers_count;
static uint32_t pending;

const char *engine_version(void)
{
    return "-";
}

void engine_open(uint32_t timers)
{
    timers_count = timers;
    pending = 0;
}

void engine_close(void)
{
}

void engine_reserve(uint32_t timers)
{
    (void)timers;
}

struct engine_objects engine_caller_objects(void)
{
    return (struct engine_objects){0};
}

void engine_schedule(uint32_t id, uint64_t due)
{
    (void)id, (void)due;
    pending++;
}

void engine_cancel(uint32_t id)
{
    (void)id;
    pending--;
}

void engine_restart(uint32_t id, uint64_t due)
{
    (void)id, (void)due;
}

void engine_restart_many(const uint32_t *ids, const uint64_t *dues, uint32_t count)
{
    (void)ids, (void)dues, (void)count;
}

void engine_expect(uint32_t id)
{
    (void)id; /* what the caller keeps is all there is */
}

void engine_fire(void)
{
    if (bench_polls_left == 0) return;
    uint32_t quota = (pending + bench_polls_left - 1) / bench_polls_left;
    for (uint32_t i = 0; i < quota; i++)
        bench_fired(--pending % timers_count, bench_now);
}

bool engine_poll(void)
{
    engine_fire();
    return false;
}

void engine_fire_next(void)
{
    bench_set_now(bench_now + BENCH_MS);
    bench_fired(--pending % timers_count, bench_now);
}

void engine_read_stats(struct engine_stats *out)
{
    (void)out;
}
