/* SPDX-License-Identifier: MIT */

/*
 * Measures the next time of a plan, compared with a scan of every minute, and the conversions
 * of a time zone. Prints a line of JSON for each, with ns per operation. Start times are spread
 * over ten years, and the results are summed up, so that the compiler cannot remove the calls.
 *
 * `year` makes plans of many rules and advances each by a year; malloc is counted meanwhile.
 */
#include "plan.h"

#include "harness.h"

#include "belfry/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define START INT64_C(1767225600) /* 2026-01-01 */
#define YEAR  INT64_C(31536000)

const struct engine_traits engine_traits = {.name = "plan"};

static struct bel_zones *zones;
static volatile int64_t sink;
static uint64_t allocations;

/* Count the allocations of the library; see the linker's --wrap. */
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    allocations++;
    return __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    allocations++;
    return __real_calloc(count, bytes);
}

double bench_plan_cpu_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static const struct bel_zone *zone(const char *name)
{
    const struct bel_zone *found;
    if (bel_zones_find(zones, name, strlen(name), &found) != 0) bench_fail("unknown time zone");
    return found;
}

static struct bel_plan *make(const char *rule, const char *zone_name)
{
    struct bel_plan *plan;
    struct bel_plan_options options = {.zone = zone(zone_name)};
    if (bel_plan_create(rule, strlen(rule), &options, &plan, NULL) != 0) bench_fail(rule);
    return plan;
}

void bench_plan_report(const char *what, const char *engine, double ns)
{
    printf("{\"workload\": \"%s\", \"engine\": \"%s\", \"ns_per_op\": %.1f}\n", what, engine, ns);
}

static void report(const char *what, double ns)
{
    bench_plan_report(what, "belfry", ns);
}

/* Returns random instants within ten years. */
static int64_t *make_instants(uint32_t count)
{
    struct bench_random random = {1};
    int64_t *instants = bench_alloc(count, sizeof *instants);
    for (uint32_t i = 0; i < count; i++) {
        instants[i] = START + (int64_t)(bench_random_next(&random) % (10 * (uint64_t)YEAR));
    }
    return instants;
}

static void bench_next(const char *what, const char *rule, const char *zone_name, uint32_t count)
{
    struct bel_plan *plan = make(rule, zone_name);
    int64_t *instants = make_instants(count);
    double start = bench_plan_cpu_ns();
    for (uint32_t i = 0; i < count; i++) {
        struct bel_wall next = {0};
        if (bel_plan_next(plan, (struct bel_wall){instants[i] * 1000}, 0, &next) != 0) {
            bench_fail("the rule has no next time");
        }
        sink += next.ms;
    }
    report(what, (bench_plan_cpu_ns() - start) / count);
    free(instants);
    bel_plan_destroy(plan);
}

/* Measures a scan of every minute, as many implementations do. */
static void bench_scan(const char *what, const char *rule, const char *zone_name, uint32_t count)
{
    struct bel_cron cron;
    const struct bel_zone *where = zone(zone_name);
    if (bel_cron_parse(rule, strlen(rule), 0, &cron, NULL) != 0) bench_fail(rule);
    int64_t *instants = make_instants(count);
    double start = bench_plan_cpu_ns();
    for (uint32_t i = 0; i < count; i++) {
        int64_t at = instants[i] / 60 * 60;
        struct bel_civil civil;
        bool found = false;
        while (!found) {
            at += 60;
            if (bel_zone_civil(where, at, &civil) != 0) bench_fail("a year above 9999");
            if ((cron.minutes >> civil.minute & 1) == 0) continue;
            if ((cron.hours >> civil.hour & 1) == 0 || (cron.months >> civil.month & 1) == 0) {
                continue;
            }
            unsigned weekday = (unsigned)((at + bel_zone_offset(where, at)) / 86400 + 4) % 7;
            found = (cron.days >> civil.day & 1) != 0 && (cron.weekdays >> weekday & 1) != 0;
        }
        sink += at;
    }
    double ns = (bench_plan_cpu_ns() - start) / count;
    printf("{\"workload\": \"%s\", \"engine\": \"scan\", \"ns_per_op\": %.1f}\n", what, ns);
    free(instants);
}

static void bench_zone(const char *name, uint32_t count)
{
    const struct bel_zone *where = zone(name);
    int64_t *instants = make_instants(count);
    struct bel_civil *civils = bench_alloc(count, sizeof *civils), civil;
    double start = bench_plan_cpu_ns();
    for (uint32_t i = 0; i < count; i++) {
        sink += bel_zone_civil(where, instants[i], &civil) + civil.minute;
    }
    report("to local", (bench_plan_cpu_ns() - start) / count);
    for (uint32_t i = 0; i < count; i++) {
        if (bel_zone_civil(where, instants[i], &civils[i]) != 0)
            bench_fail("cannot convert to local time");
    }
    start = bench_plan_cpu_ns();
    for (uint32_t i = 0; i < count; i++) {
        struct bel_zone_instants found;
        sink += bel_zone_at(where, &civils[i], &found) + found.first;
    }
    report("from local", (bench_plan_cpu_ns() - start) / count);
    free(civils);
    free(instants);
}

/* Measures many plans, each advanced by a year. */
static void bench_year(uint32_t count)
{
    static const char *const zone_names[] = {"Europe/Berlin", "America/New_York", "Asia/Bangkok",
                                             "Australia/Lord_Howe"};
    struct bel_plan *plans[1024];
    uint64_t asked = 0;
    for (uint32_t i = 0; i < 1024; i++) {
        char rule[64];
        (void)snprintf(rule, sizeof rule, "%u %u * * %u", i % 60, i / 60 % 24, i % 7);
        plans[i] = make(rule, zone_names[i % 4]);
    }
    uint64_t before = allocations;
    double start = bench_plan_cpu_ns();
    for (uint32_t i = 0; i < count; i++) {
        struct bel_wall at = {START * 1000}, end = {(START + YEAR) * 1000};
        while (at.ms < end.ms && bel_plan_next(plans[i % 1024], at, 0, &at) == 0)
            asked++;
    }
    double spent = bench_plan_cpu_ns() - start;
    printf("{\"workload\": \"year\", \"engine\": \"belfry\", \"plans\": %u, \"asked\": %llu, "
           "\"seconds\": %.2f, \"ns_per_op\": %.1f, \"allocations\": %llu}\n",
           count, (unsigned long long)asked, spent / 1e9, spent / (double)asked,
           (unsigned long long)(allocations - before));
    for (uint32_t i = 0; i < 1024; i++) {
        bel_plan_destroy(plans[i]);
    }
}

int main(int argc, char **argv)
{
    bool is_quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    uint32_t many = is_quick ? 20000 : 1000000;
    if (bel_zones_open(NULL, &zones) != 0) bench_fail("no time zones");
    bench_next("weekdays at 9", "0 9 * * 1-5", "Europe/Berlin", many);
    bench_next("every 15 minutes", "*/15 * * * *", "Europe/Berlin", many);
    bench_next("first of the month", "0 0 1 * *", "America/New_York", many);
    bench_next("last Friday", "30 18 * * 5L", "Asia/Bangkok", many);
    bench_next("29 February, a Monday", "0 0 ? 2 MON#5", "Europe/Berlin", many / 10);
    bench_next("29 February", "0 0 29 2 *", "Europe/Berlin", many / 10);
    bench_next("every 5 minutes", "5m", "UTC", many);
    bench_scan("weekdays at 9", "0 9 * * 1-5", "Europe/Berlin", many / 100);
    bench_scan("first of the month", "0 0 1 * *", "America/New_York", many / 1000);
    bench_libical("weekdays at 9",
                  "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9;BYMINUTE=0;BYSECOND=0", many / 10);
    bench_libical("first of the month", "FREQ=MONTHLY;BYMONTHDAY=1", many / 10);
    bench_libical("last Friday", "FREQ=MONTHLY;BYDAY=-1FR", many / 10);
    bench_zone("Europe/Berlin", many);
    bench_year(is_quick ? 10000 : 1000000);
    bel_zones_close(zones);
    return 0;
}
