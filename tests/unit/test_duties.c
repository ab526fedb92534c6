/* SPDX-License-Identifier: MIT */

/*
 * Every row of the table of duties, and what they share: names, rules, one inbox. The clock is
 * fake, except in the last case, in which timers ring on another thread while they are armed and
 * cancelled. The map is compiled in so that its memory can run out.
 */
#include "../memory.h"

#include "core/map.c" /* NOLINT(bugprone-suspicious-include) */

#include "../random.h"
#include "duties_rig.h"

#define HOUR (3600 * S)

enum {
    NAMES = 16,
};

/* Expects no event before `ns` have passed, and then this one. */
static void expect_after(uint64_t ns, enum bel_duty duty, uint64_t key)
{
    CHECK_EQ(pass(ns - 1), 0);
    CHECK_EQ(pass(1), 1);
    CHECK_EQ(came[0].duty, duty);
    CHECK_EQ(came[0].key, key);
    CHECK_EQ(came[0].due.ns, now());
}

static struct bel_duty_for of(uint64_t key)
{
    return (struct bel_duty_for){.key = key, .user = key * 10};
}

/*
 * The delays.
 */

static void attempt_n_waits_10_s_doubling_up_to_an_hour(void)
{
    static const uint64_t seconds[] = {10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600};
    for (uint32_t i = 0; i < 11; i++) {
        CHECK_EQ(bel_duty_retry_ns(NULL, i + 1, 0), seconds[i] * S);
    }
    CHECK_EQ(bel_duty_retry_ns(NULL, 0, 0), 10 * S);
}

static void the_exponent_is_clamped_and_never_overflows(void)
{
    struct bel_duty_limits wide = {.retry_ns = 1, .retry_max_ns = UINT64_MAX};
    for (uint32_t attempt = 10; attempt < 200; attempt++) {
        CHECK_EQ(bel_duty_retry_ns(NULL, attempt, 0), 3600 * S);
    }
    CHECK_EQ(bel_duty_retry_ns(NULL, UINT32_MAX, 0), 3600 * S);
    CHECK_EQ(bel_duty_retry_ns(&wide, 64, 0), UINT64_C(1) << 63);
    CHECK_EQ(bel_duty_retry_ns(&wide, 65, 0), UINT64_MAX);
    wide.retry_ns = 3;
    CHECK_EQ(bel_duty_retry_ns(&wide, 63, 0), UINT64_C(3) << 62);
    CHECK_EQ(bel_duty_retry_ns(&wide, 64, 0), UINT64_MAX);
    struct bel_duty_limits odd = {.retry_ns = 20 * S, .retry_max_ns = 15 * S};
    CHECK_EQ(bel_duty_retry_ns(&odd, 1, 0), 15 * S);
}

static void jitter_shortens_by_up_to_its_share(void)
{
    struct bel_duty_limits limits = {.retry_jitter = 25};
    uint64_t state = 1;
    CHECK_EQ(bel_duty_retry_ns(&limits, 1, 0), 10 * S);
    CHECK_EQ(bel_duty_retry_ns(&limits, 1, 1u << 31), 10 * S - 10 * S / 8);
    uint64_t least = bel_duty_retry_ns(&limits, 1, UINT32_MAX);
    CHECK(least >= 10 * S - 10 * S / 4 && least <= 10 * S - 10 * S / 4 + 10);
    for (unsigned i = 0; i < 1000; i++) {
        uint64_t delay = bel_duty_retry_ns(&limits, 99, (uint32_t)random_u64(&state));
        CHECK(delay >= 2700 * S && delay <= 3600 * S);
    }
    limits.retry_jitter = 500; /* more than 100 % counts as 100 % */
    CHECK(bel_duty_retry_ns(&limits, 1, UINT32_MAX) <= 10);
    limits.retry_max_ns = UINT64_MAX;
    CHECK(bel_duty_retry_ns(&limits, UINT32_MAX, UINT32_MAX) < UINT64_C(1) << 33);
}

static void the_breaker_waits_30_60_120_240_300(void)
{
    static const uint64_t seconds[] = {0, 0, 0, 0, 0, 30, 60, 120, 240, 300, 300};
    for (uint32_t failures = 0; failures < 11; failures++) {
        CHECK_EQ(bel_duty_breaker_ns(NULL, failures), seconds[failures] * S);
    }
    CHECK_EQ(bel_duty_breaker_ns(NULL, UINT32_MAX), 300 * S);
}

static void a_rate_limit_waits_as_reported_else_60_s(void)
{
    CHECK_EQ(bel_duty_rate_limit_ns(NULL, 7 * S), 7 * S);
    CHECK_EQ(bel_duty_rate_limit_ns(NULL, 700 * S), 700 * S);
    CHECK_EQ(bel_duty_rate_limit_ns(NULL, 0), 60 * S);
    CHECK_EQ(bel_duty_rate_limit_ns(NULL, 24 * HOUR), 24 * HOUR);
    CHECK_EQ(bel_duty_rate_limit_ns(NULL, 24 * HOUR + 1), 24 * HOUR);
}

/*
 * Row by row.
 */

static void a_failed_attempt_comes_back_after_its_delay(void)
{
    open_all();
    CHECK(bel_duties_retry(duties, of(5), 1) == 0);
    expect_after(10 * S, BEL_DUTY_RETRY, 5);
    CHECK_EQ(came[0].user, 50);
    CHECK(bel_duties_retry(duties, of(5), 2) == 0);
    expect_after(20 * S, BEL_DUTY_RETRY, 5);
    CHECK(bel_duties_retry(duties, of(5), 40) == 0);
    expect_after(HOUR, BEL_DUTY_RETRY, 5);
    close_all();
}

static void with_jitter_an_attempt_comes_back_within_its_share(void)
{
    open_with((struct bel_duties_options){.limits = {.retry_jitter = 50}});
    for (uint64_t task = 0; task < 100; task++) {
        CHECK(bel_duties_retry(duties, of(task), 1) == 0);
    }
    CHECK_EQ(pass(5 * S - 1), 0);
    size_t early = pass(5 * S / 2), late = pass(5 * S / 2 + 1);
    CHECK(early > 0 && late > 0);
    CHECK_EQ(early + late, 100);
    close_all();
}

static void a_resource_has_one_timer_and_a_later_report_never_shortens_it(void)
{
    open_all();
    CHECK(bel_duties_limit_rate(duties, of(1), 100 * S) == 0);
    CHECK(bel_duties_limit_rate(duties, of(1), 0) == 0); /* 60 s */
    CHECK_EQ(pass(30 * S), 0);
    CHECK(bel_duties_limit_rate(duties, of(1), 5 * S) == 0);
    CHECK(bel_duties_limit_rate(duties, of(2), 0) == 0);
    expect_after(60 * S, BEL_DUTY_RATE_LIMIT, 2);
    expect_after(10 * S, BEL_DUTY_RATE_LIMIT, 1);
    CHECK(bel_duties_limit_rate(duties, of(1), 10 * S) == 0);
    CHECK(bel_duties_limit_rate(duties, of(1), 80 * S) == 0); /* but may lengthen it */
    CHECK(bel_duties_limit_rate(duties, of(1), 50 * S) == 0);
    expect_after(80 * S, BEL_DUTY_RATE_LIMIT, 1);
    CHECK_EQ(pass(HOUR), 0);
    close_all();
}

static void fail(uint64_t resource, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        CHECK(bel_duties_fail(duties, of(resource)) == 0);
    }
}

static void the_breaker_opens_at_5_consecutive_failures(void)
{
    open_all();
    fail(1, 4);
    CHECK(!bel_duties_is_pending(duties, BEL_DUTY_BREAKER, 1));
    CHECK_EQ(bel_duties_count(duties, BEL_DUTY_BREAKER, 1), 4);
    CHECK(!bel_duties_cancel(duties, BEL_DUTY_BREAKER, 1)); /* a success: the count starts again */
    CHECK_EQ(bel_duties_count(duties, BEL_DUTY_BREAKER, 1), 0);
    fail(1, 4);
    fail(2, 4);
    CHECK(!bel_duties_is_pending(duties, BEL_DUTY_BREAKER, 1));
    fail(1, 1);
    CHECK(bel_duties_is_pending(duties, BEL_DUTY_BREAKER, 1));
    CHECK(!bel_duties_is_pending(duties, BEL_DUTY_BREAKER, 2));
    expect_after(30 * S, BEL_DUTY_BREAKER, 1);
    close_all();
}

static void a_breaker_that_fails_again_stays_open_for_twice_as_long(void)
{
    static const uint64_t seconds[] = {30, 60, 120, 240, 300, 300};
    open_all();
    fail(1, 4);
    for (unsigned i = 0; i < 6; i++) {
        fail(1, 1);
        expect_after(seconds[i] * S, BEL_DUTY_BREAKER, 1);
        CHECK(!bel_duties_is_pending(duties, BEL_DUTY_BREAKER, 1));
        CHECK_EQ(bel_duties_count(duties, BEL_DUTY_BREAKER, 1), 5 + i);
    }
    fail(1, 1);
    CHECK(bel_duties_cancel(duties, BEL_DUTY_BREAKER, 1));
    fail(1, 4);
    CHECK_EQ(pass(HOUR), 0);
    close_all();
}

static void a_failure_while_it_is_open_changes_nothing(void)
{
    open_all();
    fail(1, 10); /* of tasks that ran at the same time */
    CHECK_EQ(bel_duties_count(duties, BEL_DUTY_BREAKER, 1), 5);
    CHECK_EQ(pass(20 * S), 0);
    fail(1, 3);
    expect_after(10 * S, BEL_DUTY_BREAKER, 1);
    fail(1, 1); /* the single attempt */
    CHECK_EQ(bel_duties_count(duties, BEL_DUTY_BREAKER, 1), 6);
    expect_after(60 * S, BEL_DUTY_BREAKER, 1);
    close_all();
}

static void a_task_without_a_heartbeat_within_its_limit_is_stale(void)
{
    open_all();
    CHECK(bel_duties_watch(duties, of(3), 30 * S) == 0);
    for (unsigned i = 0; i < 10; i++) {
        CHECK_EQ(pass(30 * S - 1), 0);
        CHECK(bel_duties_heartbeat(duties, 3) == 0);
    }
    expect_after(30 * S, BEL_DUTY_STALE, 3);
    CHECK_EQ(came[0].user, 30);
    CHECK(bel_duties_heartbeat(duties, 3) == BEL_ESTALE); /* its event was taken */
    CHECK(bel_duties_heartbeat(duties, 4) == BEL_ESTALE);
    CHECK_EQ(pass(HOUR), 0);
    close_all();
}

static void pacing_starts_when_a_task_completes_and_no_other_runs(void)
{
    open_all();
    CHECK(bel_duties_pace(duties, of(8), 2) == 0);
    CHECK(bel_duties_pace(duties, of(8), 1) == 0);
    CHECK_EQ(pass(HOUR), 0);
    CHECK(bel_duties_pace(duties, of(8), 0) == 0);
    expect_after(2 * S, BEL_DUTY_PACING, 8);
    close_all();
}

static void chained_jobs_are_5_s_apart_and_at_most_5(void)
{
    open_all();
    for (uint32_t depth = 1; depth <= 5; depth++) {
        CHECK(bel_duties_chain(duties, of(depth), depth) == 0);
        expect_after(5 * S, BEL_DUTY_COOLDOWN, depth);
    }
    CHECK(bel_duties_chain(duties, of(6), 6) == BEL_EFULL);
    CHECK_EQ(pass(HOUR), 0);
    close_all();
}

static void a_job_times_out_after_24_h_and_starting_it_again_does_not_prolong_that(void)
{
    open_all();
    CHECK(bel_duties_start_job(duties, of(1), 0) == 0);
    CHECK(bel_duties_start_job(duties, of(2), 90 * S) == 0);
    expect_after(90 * S, BEL_DUTY_JOB_TIMEOUT, 2);
    CHECK(bel_duties_start_job(duties, of(1), 0) == 0);
    expect_after(24 * HOUR - 90 * S, BEL_DUTY_JOB_TIMEOUT, 1);
    CHECK(bel_duties_start_job(duties, of(1), 0) == 0);
    CHECK(bel_duties_cancel(duties, BEL_DUTY_JOB_TIMEOUT, 1)); /* the job has ended in time */
    CHECK_EQ(pass(48 * HOUR), 0);
    close_all();
}

static void a_job_that_times_out_is_not_paced_any_more(void)
{
    open_all();
    CHECK(bel_duties_start_job(duties, of(1), 3 * S) == 0);
    CHECK_EQ(pass(2 * S), 0);
    CHECK(bel_duties_pace(duties, of(1), 0) == 0);
    CHECK(bel_duties_pace(duties, of(2), 0) == 0);
    let_ring(10 * S); /* all three ring before any is taken */
    CHECK_EQ(take(), 2);
    CHECK_EQ(came[0].duty, BEL_DUTY_JOB_TIMEOUT);
    CHECK_EQ(came[1].duty, BEL_DUTY_PACING);
    CHECK_EQ(came[1].key, 2);
    close_all();
}

/* Ticks every 10 s, first in 10 s. */
static void start_cron(uint64_t key, enum bel_overlap overlap)
{
    struct bel_duty_ticks cron = {
        .first = {now() + 10 * S}, .period_ns = 10 * S, .overlap = overlap, .catches_up = false};
    CHECK(bel_duties_cron(duties, of(key), &cron) == 0);
}

static void a_cron_ticks_and_a_tick_starts_a_run(void)
{
    open_all();
    start_cron(1, BEL_OVERLAP_SKIP);
    for (unsigned i = 0; i < 5; i++) {
        expect_after(10 * S, BEL_DUTY_CRON, 1);
        CHECK_EQ(came[0].user, 10);
        CHECK(!bel_duties_end_run(duties, 1));
    }
    CHECK(!bel_duties_end_run(duties, 1)); /* there is no waiting tick */
    CHECK(!bel_duties_end_run(duties, 2));
    CHECK(bel_duties_cancel(duties, BEL_DUTY_CRON, 1));
    CHECK_EQ(pass(HOUR), 0);
    close_all();
}

static void a_tick_during_a_run_is_skipped_and_counted(void)
{
    open_all();
    start_cron(1, BEL_OVERLAP_SKIP);
    expect_after(10 * S, BEL_DUTY_CRON, 1);
    for (unsigned i = 1; i <= 3; i++) {
        CHECK_EQ(pass(10 * S), 0);
        CHECK_EQ(bel_duties_count(duties, BEL_DUTY_CRON, 1), i);
    }
    CHECK(!bel_duties_end_run(duties, 1));
    expect_after(10 * S, BEL_DUTY_CRON, 1);
    CHECK_EQ(bel_duties_count(duties, BEL_DUTY_CRON, 1), 3);
    close_all();
}

static void a_tick_during_a_run_waits_in_a_queue_that_has_an_end(void)
{
    open_with((struct bel_duties_options){.limits = {.cron_queue_max = 2}});
    start_cron(1, BEL_OVERLAP_QUEUE);
    expect_after(10 * S, BEL_DUTY_CRON, 1);
    for (unsigned i = 0; i < 3; i++) {
        CHECK_EQ(pass(10 * S), 0);
    }
    CHECK_EQ(bel_duties_count(duties, BEL_DUTY_CRON, 1), 1); /* the queue was full */
    CHECK(bel_duties_end_run(duties, 1));                    /* and another run has begun */
    CHECK_EQ(pass(10 * S), 0);
    CHECK(bel_duties_end_run(duties, 1));
    CHECK(bel_duties_end_run(duties, 1));
    CHECK(!bel_duties_end_run(duties, 1));
    expect_after(10 * S, BEL_DUTY_CRON, 1);
    close_all();
}

static void a_tick_during_a_run_arrives_if_that_is_allowed(void)
{
    open_all();
    start_cron(1, BEL_OVERLAP_ALLOW);
    for (unsigned i = 0; i < 5; i++) {
        expect_after(10 * S, BEL_DUTY_CRON, 1);
    }
    CHECK_EQ(bel_duties_count(duties, BEL_DUTY_CRON, 1), 0);
    for (unsigned i = 0; i < 5; i++) {
        CHECK(!bel_duties_end_run(duties, 1));
    }
    close_all();
}

static void ticks_that_were_missed_are_not_caught_up_with_by_default(void)
{
    open_all();
    start_cron(1, BEL_OVERLAP_ALLOW);
    CHECK_EQ(pass(95 * S), 1);
    CHECK_EQ(came[0].missed, 8);
    expect_after(5 * S, BEL_DUTY_CRON, 1); /* it stays in phase */
    CHECK_EQ(came[0].missed, 0);
    close_all();
}

static void ticks_that_were_missed_are_caught_up_with_if_asked_for(void)
{
    open_all();
    struct bel_duty_ticks cron = {.first = {now() + 10 * S},
                                  .period_ns = 10 * S,
                                  .overlap = BEL_OVERLAP_ALLOW,
                                  .catches_up = true};
    CHECK(bel_duties_cron(duties, of(1), &cron) == 0);
    CHECK_EQ(pass(95 * S), 9);
    CHECK_EQ(came[8].due.ns, now() - 5 * S);
    close_all();
}

static void a_cron_can_be_told_each_tick(void)
{
    open_all();
    struct bel_duty_ticks cron = {.first = {now() + 7 * S}};
    CHECK(bel_duties_cron(duties, of(1), &cron) == 0);
    expect_after(7 * S, BEL_DUTY_CRON, 1);
    CHECK(!bel_duties_is_pending(duties, BEL_DUTY_CRON, 1));
    cron.first.ns = now() + 3 * S;
    CHECK(bel_duties_cron(duties, of(1), &cron) == 0);
    CHECK_EQ(pass(3 * S), 0); /* the run has not ended: the next tick is skipped too */
    CHECK_EQ(bel_duties_count(duties, BEL_DUTY_CRON, 1), 1);
    CHECK(!bel_duties_end_run(duties, 1));
    cron.first.ns = BEL_NEVER;
    CHECK(bel_duties_cron(duties, of(1), &cron) == BEL_ERANGE);
    CHECK(bel_duties_cron(duties, of(2), &cron) == BEL_ERANGE);
    close_all();
}

static void a_cron_that_is_changed_ticks_the_new_way_only(void)
{
    open_all();
    start_cron(1, BEL_OVERLAP_ALLOW);
    let_ring(10 * S); /* a tick of the old schedule is in the inbox */
    struct bel_duty_ticks cron = {.first = {now() + 3 * S}, .period_ns = 4 * S};
    CHECK(bel_duties_cron(duties, of(1), &cron) == 0);
    CHECK_EQ(take(), 0);
    expect_after(3 * S, BEL_DUTY_CRON, 1);
    CHECK(!bel_duties_end_run(duties, 1));
    expect_after(4 * S, BEL_DUTY_CRON, 1);
    close_all();
}

/*
 * Common behaviour.
 */

static void arm(uint64_t key, uint64_t user, uint64_t delay, enum bel_duty_rule rule)
{
    struct bel_duty_timer timer = {BEL_DUTY_RETRY, rule, delay};
    CHECK(bel_duties_arm(duties, (struct bel_duty_for){key, user}, &timer) == 0);
}

static void a_new_timer_replaces_the_pending_one_earlier_or_later(void)
{
    open_all();
    arm(1, 7, 10 * S, BEL_RULE_REPLACE);
    arm(1, 8, 20 * S, BEL_RULE_REPLACE);
    expect_after(20 * S, BEL_DUTY_RETRY, 1);
    CHECK_EQ(came[0].user, 8);
    arm(1, 7, 20 * S, BEL_RULE_REPLACE);
    arm(1, 9, 10 * S, BEL_RULE_REPLACE);
    expect_after(10 * S, BEL_DUTY_RETRY, 1);
    CHECK_EQ(came[0].user, 9);
    CHECK_EQ(pass(HOUR), 0);
    close_all();
}

static void keep_longest_never_shortens_and_keep_first_never_changes(void)
{
    open_all();
    arm(1, 7, 10 * S, BEL_RULE_KEEP_LONGEST);
    arm(1, 8, 10 * S, BEL_RULE_KEEP_LONGEST);
    arm(1, 8, 5 * S, BEL_RULE_KEEP_LONGEST);
    expect_after(10 * S, BEL_DUTY_RETRY, 1);
    CHECK_EQ(came[0].user, 7);
    arm(1, 7, 10 * S, BEL_RULE_KEEP_FIRST);
    arm(1, 8, 5 * S, BEL_RULE_KEEP_FIRST);
    arm(1, 9, 20 * S, BEL_RULE_KEEP_FIRST);
    expect_after(10 * S, BEL_DUTY_RETRY, 1);
    CHECK_EQ(came[0].user, 7);
    CHECK_EQ(pass(HOUR), 0);
    close_all();
}

static void the_same_key_means_another_timer_for_each_duty(void)
{
    open_all();
    for (unsigned duty = 0; duty < BEL_DUTY_COUNT; duty++) {
        struct bel_duty_timer timer = {(enum bel_duty)duty, BEL_RULE_REPLACE, (duty + 1) * S};
        CHECK(bel_duties_arm(duties, of(UINT64_MAX), &timer) == 0);
    }
    CHECK(bel_duties_cancel(duties, BEL_DUTY_STALE, UINT64_MAX));
    for (unsigned duty = 0; duty < BEL_DUTY_COUNT; duty++) {
        if (duty == BEL_DUTY_STALE) {
            CHECK_EQ(pass(S), 0);
        } else {
            expect_after(S, (enum bel_duty)duty, UINT64_MAX);
        }
    }
    close_all();
}

static void events_of_all_duties_arrive_in_one_inbox_in_order(void)
{
    open_all();
    CHECK(bel_duties_start_job(duties, of(1), 50 * S) == 0);
    CHECK(bel_duties_retry(duties, of(2), 2) == 0); /* 20 s */
    CHECK(bel_duties_limit_rate(duties, of(3), 15 * S) == 0);
    CHECK(bel_duties_chain(duties, of(4), 1) == 0); /* 5 s */
    CHECK(bel_duties_watch(duties, of(5), 40 * S) == 0);
    CHECK(bel_duties_pace(duties, of(6), 0) == 0); /* 2 s */
    fail(7, 5);                                    /* 30 s */
    start_cron(8, BEL_OVERLAP_SKIP);               /* 10 s */
    let_ring(60 * S);
    CHECK_EQ(bel_duties_take(duties, came, 3), 3); /* in any portions */
    CHECK_EQ(bel_duties_take(duties, came + 3, 1), 1);
    CHECK_EQ(bel_duties_take(duties, came + 4, LOG_MAX), 4);
    for (unsigned i = 0; i < 8; i++) {
        static const uint64_t keys[] = {6, 4, 8, 3, 2, 7, 5, 1};
        CHECK_EQ(came[i].key, keys[i]);
        CHECK_EQ(came[i].user, keys[i] * 10);
        CHECK_EQ(came[i].now.ns, now());
    }
    close_all();
}

static void what_is_cancelled_after_it_rang_does_not_arrive(void)
{
    open_all();
    arm(1, 1, 1 * S, BEL_RULE_REPLACE);
    arm(2, 2, 1 * S, BEL_RULE_REPLACE);
    let_ring(S);
    CHECK(bel_duties_is_pending(duties, BEL_DUTY_RETRY, 1));
    CHECK(bel_duties_cancel(duties, BEL_DUTY_RETRY, 1));
    CHECK(!bel_duties_cancel(duties, BEL_DUTY_RETRY, 1));
    CHECK_EQ(take(), 1);
    CHECK_EQ(came[0].key, 2);
    CHECK(!bel_duties_cancel(duties, BEL_DUTY_RETRY, 2));
    close_all();
}

static void what_is_replaced_after_it_rang_arrives_once_when_the_new_one_rings(void)
{
    open_all();
    arm(1, 1, 1 * S, BEL_RULE_REPLACE);
    CHECK(bel_duties_watch(duties, of(2), S) == 0);
    let_ring(S);
    arm(1, 2, 5 * S, BEL_RULE_REPLACE);
    CHECK(bel_duties_heartbeat(duties, 2) == 0); /* not too late until the event is taken */
    CHECK_EQ(take(), 0);
    expect_after(S, BEL_DUTY_STALE, 2);
    expect_after(4 * S, BEL_DUTY_RETRY, 1);
    CHECK_EQ(came[0].user, 2);
    close_all();
}

static void keep_first_keeps_what_has_rung_and_waits_to_be_taken(void)
{
    open_all();
    arm(1, 1, 1 * S, BEL_RULE_KEEP_FIRST);
    let_ring(S);
    arm(1, 2, 1 * S, BEL_RULE_KEEP_FIRST);
    CHECK_EQ(take(), 1);
    CHECK_EQ(came[0].user, 1);
    CHECK_EQ(pass(HOUR), 0);
    close_all();
}

static void limits_can_be_chosen(void)
{
    open_with((struct bel_duties_options){.limits = {
                                              .retry_ns = 1 * S,
                                              .retry_max_ns = 3 * S,
                                              .breaker_opens = 2,
                                              .breaker_ns = 4 * S,
                                              .rate_limit_ns = 5 * S,
                                              .pacing_ns = 6 * S,
                                              .cooldown_ns = 7 * S,
                                              .job_timeout_ns = 8 * S,
                                              .chain_max = 1,
                                          }});
    CHECK(bel_duties_retry(duties, of(1), 1) == 0);
    CHECK(bel_duties_retry(duties, of(3), 9) == 0);
    fail(4, 2);
    CHECK(bel_duties_limit_rate(duties, of(5), 0) == 0);
    CHECK(bel_duties_pace(duties, of(6), 0) == 0);
    CHECK(bel_duties_chain(duties, of(7), 1) == 0);
    CHECK(bel_duties_chain(duties, of(7), 2) == BEL_EFULL);
    CHECK(bel_duties_start_job(duties, of(8), 0) == 0);
    CHECK_EQ(pass(10 * S), 7);
    for (unsigned i = 0; i < 7; i++) {
        CHECK_EQ(came[i].due.ns, now() - 10 * S + came[i].key * S);
    }
    close_all();
}

static void the_number_of_names_is_bounded_and_names_that_ended_do_not_count(void)
{
    struct bel_duty_timer timer = {BEL_DUTY_RETRY, BEL_RULE_REPLACE, S};
    open_with((struct bel_duties_options){.names_max = 10});
    for (uint64_t key = 0; key < 10; key++) {
        CHECK(bel_duties_arm(duties, of(key), &timer) == 0);
    }
    CHECK(bel_duties_arm(duties, of(10), &timer) == BEL_EFULL);
    CHECK(bel_duties_arm(duties, of(9), &timer) == 0);
    CHECK_EQ(pass(S), 10);
    for (uint64_t key = 0; key < 100000; key++) {
        CHECK(bel_duties_arm(duties, of(key), &timer) == 0);
        CHECK(bel_duties_cancel(duties, BEL_DUTY_RETRY, key));
        fail(key, 1);
        (void)bel_duties_cancel(duties, BEL_DUTY_BREAKER, key);
    }
    close_all();
}

static void an_arming_that_fails_changes_nothing(void)
{
    struct bel_duty_timer endless = {BEL_DUTY_RETRY, BEL_RULE_REPLACE, UINT64_MAX};
    open_with((struct bel_duties_options){.names_max = 2});
    arm(1, 1, 2 * S, BEL_RULE_REPLACE);
    for (unsigned i = 0; i < 10; i++) { /* no name is used up */
        CHECK(bel_duties_arm(duties, of(1), &endless) == BEL_ERANGE);
        CHECK(bel_duties_arm(duties, of(2 + i), &endless) == BEL_ERANGE);
        CHECK(!bel_duties_is_pending(duties, BEL_DUTY_RETRY, 2 + i));
    }
    expect_after(2 * S, BEL_DUTY_RETRY, 1);
    CHECK_EQ(came[0].user, 1);
    close_all();
}

static void a_failure_that_cannot_be_armed_is_not_counted(void)
{
    open_with((struct bel_duties_options){
        .limits = {.breaker_ns = UINT64_MAX, .breaker_max_ns = UINT64_MAX}});
    fail(1, 4);
    CHECK(bel_duties_fail(duties, of(1)) == BEL_ERANGE);
    CHECK_EQ(bel_duties_count(duties, BEL_DUTY_BREAKER, 1), 4);
    close_all();
}

static void without_memory_for_a_name_nothing_is_armed(void)
{
    open_with((struct bel_duties_options){.names_max = 2});
    memory_left = 0;
    for (unsigned i = 0; i < 10; i++) {
        CHECK(bel_duties_pace(duties, of(1), 0) == BEL_ENOMEM);
        CHECK(bel_duties_fail(duties, of(1)) == BEL_ENOMEM);
        CHECK(bel_duties_watch(duties, of(1), S) == BEL_ENOMEM);
    }
    memory_left = UINT64_MAX;
    CHECK(bel_duties_pace(duties, of(1), 0) == 0);
    CHECK(bel_duties_pace(duties, of(2), 0) == 0);
    CHECK_EQ(pass(2 * S), 2);
    close_all();
}

static void a_set_needs_kinds_of_its_own(void)
{
    struct bel_duties *other = NULL;
    struct bel_duties_options options = {.kind_first = KIND_FIRST + 7};
    open_all();
    CHECK(bel_duties_create(runtime, &options, &other) == BEL_EINVAL);
    options.kind_first = KIND_FIRST - 7;
    CHECK(bel_duties_create(runtime, &options, &other) == BEL_EINVAL);
    options.kind_first = BEL_KINDS_MAX - 7;
    CHECK(bel_duties_create(runtime, &options, &other) == BEL_EINVAL);
    CHECK(other == NULL);
    options.kind_first = BEL_KINDS_MAX - 8;
    CHECK(bel_duties_create(runtime, &options, &other) == 0);
    CHECK(bel_duties_fd(other) != bel_duties_fd(duties));
    CHECK(bel_duties_pace(other, of(1), 0) == 0);
    CHECK_EQ(pass(2 * S), 0); /* each set has its own inbox */
    CHECK_EQ(bel_duties_take(other, came, 10), 1);
    bel_duties_destroy(other);
    bel_duties_destroy(NULL);
    close_all();
}

/*
 * Timers ring on another thread, in real time, while their owner arms and cancels. Each event that
 * arrives is of the timer last armed under its name, and never of a cancelled one.
 */
static void what_arrives_was_armed_last_and_not_cancelled(void)
{
    struct bel_duties_options options = {.kind_first = KIND_FIRST};
    uint64_t armed[NAMES] = {0}, state = 1, arrived = 0, cancelled = 0;
    CHECK(bel_runtime_create(NULL, &runtime) == 0);
    CHECK(bel_runtime_start(runtime, 2) == 0);
    CHECK(bel_duties_create(runtime, &options, &duties) == 0);
    for (uint64_t turn = 1; turn <= 20000 || arrived < 100; turn++) {
        uint64_t key = random_below(&state, NAMES), delay = random_below(&state, 100000);
        CHECK_EQ(bel_duties_is_pending(duties, BEL_DUTY_RETRY, key), armed[key] != 0);
        if (random_below(&state, 4) == 0) {
            CHECK(bel_duties_cancel(duties, BEL_DUTY_RETRY, key) == (armed[key] != 0));
            cancelled += armed[key] != 0;
            armed[key] = 0;
        } else {
            arm(key, turn, delay, BEL_RULE_REPLACE);
            armed[key] = turn;
        }
        size_t count = bel_duties_take(duties, came, 8);
        for (size_t i = 0; i < count; i++) {
            CHECK_EQ(came[i].user, armed[came[i].key]);
            CHECK(armed[came[i].key] != 0);
            armed[came[i].key] = 0;
            arrived++;
        }
    }
    CHECK(cancelled > 0);
    bel_duties_destroy(duties);
    bel_runtime_destroy(runtime);
}

int main(void)
{
    RUN(attempt_n_waits_10_s_doubling_up_to_an_hour);
    RUN(the_exponent_is_clamped_and_never_overflows);
    RUN(jitter_shortens_by_up_to_its_share);
    RUN(the_breaker_waits_30_60_120_240_300);
    RUN(a_rate_limit_waits_as_reported_else_60_s);
    RUN(a_failed_attempt_comes_back_after_its_delay);
    RUN(with_jitter_an_attempt_comes_back_within_its_share);
    RUN(a_resource_has_one_timer_and_a_later_report_never_shortens_it);
    RUN(the_breaker_opens_at_5_consecutive_failures);
    RUN(a_breaker_that_fails_again_stays_open_for_twice_as_long);
    RUN(a_failure_while_it_is_open_changes_nothing);
    RUN(a_task_without_a_heartbeat_within_its_limit_is_stale);
    RUN(pacing_starts_when_a_task_completes_and_no_other_runs);
    RUN(chained_jobs_are_5_s_apart_and_at_most_5);
    RUN(a_job_times_out_after_24_h_and_starting_it_again_does_not_prolong_that);
    RUN(a_job_that_times_out_is_not_paced_any_more);
    RUN(a_cron_ticks_and_a_tick_starts_a_run);
    RUN(a_tick_during_a_run_is_skipped_and_counted);
    RUN(a_tick_during_a_run_waits_in_a_queue_that_has_an_end);
    RUN(a_tick_during_a_run_arrives_if_that_is_allowed);
    RUN(ticks_that_were_missed_are_not_caught_up_with_by_default);
    RUN(ticks_that_were_missed_are_caught_up_with_if_asked_for);
    RUN(a_cron_can_be_told_each_tick);
    RUN(a_cron_that_is_changed_ticks_the_new_way_only);
    RUN(a_new_timer_replaces_the_pending_one_earlier_or_later);
    RUN(keep_longest_never_shortens_and_keep_first_never_changes);
    RUN(the_same_key_means_another_timer_for_each_duty);
    RUN(events_of_all_duties_arrive_in_one_inbox_in_order);
    RUN(what_is_cancelled_after_it_rang_does_not_arrive);
    RUN(what_is_replaced_after_it_rang_arrives_once_when_the_new_one_rings);
    RUN(keep_first_keeps_what_has_rung_and_waits_to_be_taken);
    RUN(limits_can_be_chosen);
    RUN(the_number_of_names_is_bounded_and_names_that_ended_do_not_count);
    RUN(an_arming_that_fails_changes_nothing);
    RUN(a_failure_that_cannot_be_armed_is_not_counted);
    RUN(without_memory_for_a_name_nothing_is_armed);
    RUN(a_set_needs_kinds_of_its_own);
    RUN(what_arrives_was_armed_last_and_not_cancelled);
    return 0;
}
