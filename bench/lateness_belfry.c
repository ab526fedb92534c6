/* SPDX-License-Identifier: MIT */

/* The runtime with one worker of its own, which sleeps in bel_worker_wait(). */
#include "lateness.h"

#include "belfry/runtime.h"
#include "belfry/version.h"

enum {
    KIND = 1
};

const struct engine_traits engine_traits = {.name = "belfry", .resolution_ns = 1};

static struct bel_runtime *runtime;

static void ring(void *context, const struct bel_event *event)
{
    (void)context;
    bench_rang((uint32_t)event->user);
}

const char *engine_version(void)
{
    return bel_version();
}

void engine_open(uint32_t timers)
{
    (void)timers;
    if (bel_runtime_create(NULL, &runtime) != 0 || bel_runtime_on(runtime, KIND, ring, NULL) != 0 ||
        bel_runtime_start(runtime, 1) != 0) {
        bench_fail("cannot start");
    }
}

void engine_schedule(uint32_t id, uint64_t due)
{
    bel_timer_t timer;
    uint64_t here = bench_clock_ns(), boot = bel_clock_boot(bel_clock_system()).ns;
    struct bel_schedule schedule = {
        .due = {boot + (due - here)}, .kind = KIND, .priority = BEL_PRIORITY_DEFAULT, .user = id};
    if (bel_runtime_schedule(runtime, &schedule, &timer) != 0) bench_fail("cannot schedule");
}

void engine_run(void)
{
}
