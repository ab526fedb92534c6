/* SPDX-License-Identifier: MIT */

/* Large wheels: exact order in a crowd, and limits on the work of every call and on the memory that
 * timers leave. */
#include "belfry/wheel.h"

#include "../check.h"
#include "../random.h"

#define MS     UINT64_C(1000000)
#define SECOND (1000 * MS)
#define HOUR   (3600 * SECOND)

enum {
    MILLION = 1000000,
    CROWD = 100000,
    HUGE_BUCKET = 300000,
    SLOT_BYTES = 32,
    GROWTH_STEP = 2 << 20, /* memory is asked for in steps of this */
};

static struct bel_wheel *wheel;
static bel_timer_t timers[MILLION];
static uint64_t stops; /* pops that stopped early */

static void setup(uint64_t now)
{
    struct bel_wheel_options options = {.now = now, .handle_seed = 1};
    CHECK(bel_wheel_create(&options, &wheel) == 0);
    stops = 0;
}

static void teardown(void)
{
    CHECK(bel_wheel_valid(wheel));
    bel_wheel_destroy(wheel);
}

static struct bel_wheel_stats stats_now(void)
{
    struct bel_wheel_stats stats;
    bel_wheel_stats(wheel, &stats);
    return stats;
}

static void check_work(void)
{
    CHECK(stats_now().touched_max <= BEL_WHEEL_WORK_MAX);
}

static void check_entries(void)
{
    struct bel_wheel_stats stats = stats_now();
    CHECK(stats.entries <= 3 * stats.armed + 16384);
}

static bel_timer_t arm(uint64_t due, uint8_t priority, uint64_t user)
{
    bel_timer_t timer;
    CHECK(bel_wheel_arm(wheel, due, priority, user, &timer) == 0);
    return timer;
}

/* User words count the arming here, so this is the specified order. */
static bool is_before(const struct bel_wheel_timer *a, const struct bel_wheel_timer *b)
{
    if (a->due != b->due) return a->due < b->due;
    return a->priority != b->priority ? a->priority < b->priority : a->user < b->user;
}

/* Pops like the owner's loop; counts pops that stopped early. */
static bool pop(uint64_t now, struct bel_wheel_timer *out)
{
    while (!bel_wheel_pop(wheel, now, out)) {
        if (bel_wheel_next(wheel) > now) return false;
        stops++;
    }
    return true;
}

/* Pops all due timers and returns their number. */
static uint64_t drain_in_order(uint64_t now)
{
    struct bel_wheel_timer before = {0}, timer;
    uint64_t count = 0;
    for (; pop(now, &timer); count++) {
        CHECK(timer.due <= now);
        CHECK(count == 0 || is_before(&before, &timer));
        before = timer;
    }
    CHECK(bel_wheel_next(wheel) > now);
    return count;
}

/* Pops by the hundred. */
static uint64_t drain_many_in_order(uint64_t now)
{
    struct bel_wheel_timer some[101] = {0};
    uint64_t total = 0;
    do {
        size_t count = bel_wheel_pop_many(wheel, now, some + 1, 100);
        for (size_t i = 1; i <= count; i++) {
            CHECK(total + i == 1 || is_before(&some[i - 1], &some[i]));
        }
        if (count > 0) some[0] = some[count];
        total += count;
    } while (bel_wheel_next(wheel) <= now);
    return total;
}

static void arm_crowd(uint64_t due)
{
    uint64_t random = 1;
    for (uint64_t i = 0; i < CROWD; i++) {
        timers[i] = arm(due, (uint8_t)random_below(&random, 256), i);
    }
}

static void a_crowd_on_one_nanosecond_fires_in_exact_order(void)
{
    struct bel_wheel_timer timer;
    setup(0);
    arm_crowd(HOUR);
    CHECK(bel_wheel_valid(wheel));
    CHECK(!pop(HOUR - 1, &timer));
    CHECK_EQ(drain_in_order(HOUR), CROWD);
    check_work();
    arm_crowd(2 * HOUR);
    CHECK_EQ(drain_many_in_order(2 * HOUR), CROWD);
    check_work();
    teardown();
}

static void a_crowd_that_is_past_fires_in_exact_order(void)
{
    setup(HOUR);
    arm_crowd(1);
    CHECK_EQ(drain_in_order(HOUR), CROWD);
    check_work();
    teardown();
}

static void a_crowd_can_be_left_and_joined_while_it_fires(void)
{
    struct bel_wheel_timer timer;
    uint64_t popped = 0, cancelled = 0, moved = 0;
    setup(0);
    arm_crowd(HOUR);
    for (uint64_t i = 0; i < CROWD / 4; i++) {
        CHECK(pop(HOUR, &timer));
        popped++;
        if (i % 2) cancelled += bel_wheel_cancel(wheel, timers[CROWD - 1 - i]);
        if (i % 3 == 0) moved += bel_wheel_rearm(wheel, timers[CROWD / 2 - i], 2 * HOUR) == 0;
        if (i % 1000 == 0) CHECK(bel_wheel_valid(wheel));
    }
    arm(HOUR, 0, CROWD); /* joins, before all others of its due */
    CHECK(pop(HOUR, &timer));
    CHECK_EQ(timer.user, CROWD);
    uint64_t left = drain_in_order(HOUR);
    CHECK(cancelled > CROWD / 16 && moved > CROWD / 32);
    CHECK_EQ(popped + left + cancelled + moved, CROWD);
    CHECK_EQ(bel_wheel_count(wheel), moved);
    for (uint64_t i = 0; i < moved; i++) {
        CHECK(pop(2 * HOUR, &timer));
        CHECK_EQ(timer.due, 2 * HOUR);
    }
    check_work();
    teardown();
}

static void a_crowd_that_has_left_costs_no_call_too_much(void)
{
    setup(0);
    arm_crowd(HOUR);
    uint64_t next;
    while (!bel_wheel_next_exact(wheel, &next)) {
        CHECK(next <= HOUR);
    }
    for (uint64_t i = 0; i + 1 < CROWD; i++) {
        CHECK(bel_wheel_cancel(wheel, timers[i]));
    }
    CHECK(bel_wheel_valid(wheel));
    CHECK_EQ(drain_in_order(HOUR), 1);
    check_work();
    teardown();
}

static void arm_huge_bucket(uint64_t start)
{
    uint64_t random = 2;
    for (uint64_t i = 0; i < HUGE_BUCKET; i++) {
        timers[i] = arm(start + random_below(&random, SECOND), (uint8_t)(i % 2), i);
    }
}

static void a_jump_over_a_huge_bucket_gives_it_in_exact_order(void)
{
    setup(0);
    arm_huge_bucket(24 * HOUR);
    CHECK_EQ(drain_in_order(48 * HOUR), HUGE_BUCKET);
    check_work();
    teardown();
}

static void a_pop_that_stops_early_says_so(void)
{
    struct bel_wheel_timer timer;
    setup(0);
    arm_huge_bucket(24 * HOUR);
    CHECK(pop(25 * HOUR, &timer)); /* next never returned BEL_NEVER */
    CHECK(stops > 0);
    CHECK_EQ(1 + drain_in_order(25 * HOUR), HUGE_BUCKET);
    teardown();
}

static void many_a_pop_of_many_does_no_more_than_its_share(void)
{
    static struct bel_wheel_timer out[HUGE_BUCKET];
    uint64_t total = 0;
    setup(0);
    arm_huge_bucket(24 * HOUR);
    do {
        size_t count = bel_wheel_pop_many(wheel, 25 * HOUR, out, HUGE_BUCKET);
        CHECK(count <= BEL_WHEEL_WORK_MAX);
        total += count;
    } while (bel_wheel_next(wheel) <= 25 * HOUR);
    CHECK_EQ(total, HUGE_BUCKET);
    check_work();
    teardown();
}

static void walking_through_a_huge_bucket_in_small_steps_is_exact(void)
{
    uint64_t total = 0;
    setup(0);
    arm_huge_bucket(24 * HOUR);
    for (uint64_t now = 24 * HOUR - 10 * MS; now <= 24 * HOUR + SECOND; now += 10 * MS) {
        total += drain_in_order(now);
        CHECK_EQ(bel_wheel_count(wheel), HUGE_BUCKET - total);
    }
    CHECK_EQ(total, HUGE_BUCKET);
    check_work();
    teardown();
}

static void a_huge_bucket_cancelled_or_moved_costs_no_call_too_much(void)
{
    setup(0);
    arm_huge_bucket(24 * HOUR);
    for (uint64_t i = 0; i < HUGE_BUCKET; i++) {
        if (i % 3 == 0) CHECK(bel_wheel_cancel(wheel, timers[i]));
        if (i % 3 == 1) CHECK(bel_wheel_rearm(wheel, timers[i], 26 * HOUR + i) == 0);
    }
    CHECK_EQ(drain_in_order(25 * HOUR), HUGE_BUCKET / 3);
    CHECK_EQ(drain_many_in_order(27 * HOUR), HUGE_BUCKET / 3);
    check_work();
    teardown();
}

static void arm_and_cancel_leave_memory_where_it_was(void)
{
    setup(0);
    for (uint64_t i = 0; i < 1000; i++) { /* what a wheel in use has anyway */
        CHECK(bel_wheel_cancel(wheel, arm(HOUR + i * MS, 0, i)));
    }
    uint64_t before = stats_now().bytes;
    for (uint64_t i = 0; i < MILLION; i++) {
        CHECK(bel_wheel_cancel(wheel, arm(HOUR + i * MS % HOUR, 0, i)));
        if (i % 10000 == 0) check_entries();
    }
    struct bel_wheel_stats after = stats_now();
    uint64_t lost = after.retired * SLOT_BYTES; /* this build may have few generations */
    CHECK(after.bytes <= before + lost + (lost > 0 ? GROWTH_STEP : 0));
    CHECK_EQ(after.armed, 0);
    teardown();
}

static void cancelled_memory_is_used_for_other_timers(void)
{
    setup(0);
    for (uint64_t i = 0; i < MILLION; i++) {
        timers[i] = arm(24 * HOUR + i * MS, 0, i);
    }
    uint64_t before = stats_now().bytes;
    for (uint64_t i = 0; i < MILLION; i++) {
        CHECK(bel_wheel_cancel(wheel, timers[i]));
        if (i % 10000 == 0) check_entries();
    }
    for (uint64_t i = 0; i < MILLION; i++) {
        (void)arm(HOUR + i * MS % (20 * HOUR), 0, i);
        if (i % 10000 == 0) check_entries();
    }
    CHECK(stats_now().bytes <= before + before / 10);
    check_work();
    teardown();
}

static void arming_and_cancelling_ever_nearer_keeps_entries_bounded(void)
{
    uint64_t due = 1000 * HOUR;
    setup(0);
    for (uint64_t i = 0; i < MILLION / 2; i++, due -= MS) {
        CHECK(bel_wheel_cancel(wheel, arm(due, 0, i)));
        check_entries();
    }
    check_work();
    teardown();
}

static void moving_ever_earlier_keeps_entries_bounded(void)
{
    enum {
        COUNT = 5000
    };
    uint64_t due = 1000 * HOUR;
    setup(0);
    for (uint64_t i = 0; i < COUNT; i++) {
        timers[i] = arm(due, 0, i);
    }
    for (uint64_t i = 0; i < MILLION / 2; i++, due -= MS) {
        CHECK(bel_wheel_rearm(wheel, timers[i % COUNT], due) == 0);
        check_entries();
    }
    check_work();
    CHECK_EQ(drain_many_in_order(due), 0);
    CHECK(bel_wheel_count(wheel) == COUNT);
    teardown();
}

static void stale_entries_are_bounded_after_all_timers_fired_too(void)
{
    setup(0);
    for (uint64_t i = 0; i < CROWD; i++) {
        timers[i] = arm(HOUR + i * MS, 0, i);
    }
    for (uint64_t i = 0; i < CROWD; i++) {
        CHECK(bel_wheel_rearm(wheel, timers[i], SECOND + i) == 0); /* leaves a stale entry */
    }
    CHECK_EQ(drain_many_in_order(2 * SECOND), CROWD);
    check_entries();
    teardown();
}

/* The sweep has stopped in the middle of a bucket that is emptied before it continues. */
static void a_sweep_goes_on_where_its_bucket_is_gone(void)
{
    const uint64_t tick = 1024, bucket = UINT64_C(1) << 24; /* of level 4, in ticks */
    setup(0);
    for (uint64_t i = 0; i < 20000; i++) {
        timers[i] = arm((bucket + bucket / 2 + 100 * i) * tick, 0, i);
    }
    for (uint64_t i = 0; i < 20000; i++) {
        CHECK(bel_wheel_cancel(wheel, timers[i]));
    }
    for (uint64_t i = 0; i < 60000; i++) {
        timers[i] = arm((2 * bucket + 200 * i) * tick, 0, i);
    }
    for (uint64_t i = 0; i < 300000; i++) { /* while these are popped, the next is opened */
        (void)arm((2 * bucket - 3000000 + 9 * i) * tick, 0, i);
    }
    CHECK(drain_many_in_order((2 * bucket - 3000000 + UINT64_C(9) * 299900) * tick) > 0);
    for (uint64_t i = 0; i < 60000; i++) {
        CHECK(bel_wheel_cancel(wheel, timers[i]));
        check_entries();
    }
    teardown();
}

/* Half of a call's work pops, then the next bucket is prepared, and then the rest of the run turns
 * out to be cancelled. */
static void check_pop_many(uint64_t run, uint64_t late)
{
    static struct bel_wheel_timer out[5000];
    const uint64_t tick = 1024, start = UINT64_C(50) * 64 * tick, now = start + 64 * tick;
    CHECK_NOTE("a run of %" PRIu64 ", %" PRIu64 " late", run, late);
    setup(0);
    for (uint64_t i = 0; i < run; i++) {
        timers[i] = arm(start + i * 60 / run * tick, 0, i);
    }
    for (uint64_t i = 0; i < 50000; i++) {
        (void)arm((UINT64_C(64) * 64 + i % 4000) * tick, 0, i);
    }
    CHECK(pop(now, out));
    for (uint64_t i = 256; i < run; i++) {
        CHECK(bel_wheel_cancel(wheel, timers[i]));
    }
    for (uint64_t i = 0; i < late; i++) {
        (void)arm(5, 0, i);
    }
    CHECK(pop(now, out));
    while (bel_wheel_next(wheel) <= now) {
        (void)bel_wheel_pop_many(wheel, now, out, 5000);
    }
    check_work();
    teardown();
}

static void a_pop_of_many_that_prepares_and_skips_keeps_its_bound(void)
{
    for (uint64_t run = 300; run <= 1000; run += 100) {
        for (uint64_t late = 500; late < 1200; late += 50) {
            check_pop_many(run, late);
        }
    }
}

int main(void)
{
    RUN(a_crowd_on_one_nanosecond_fires_in_exact_order);
    RUN(a_crowd_that_is_past_fires_in_exact_order);
    RUN(a_crowd_can_be_left_and_joined_while_it_fires);
    RUN(a_crowd_that_has_left_costs_no_call_too_much);
    RUN(a_jump_over_a_huge_bucket_gives_it_in_exact_order);
    RUN(a_pop_that_stops_early_says_so);
    RUN(many_a_pop_of_many_does_no_more_than_its_share);
    RUN(walking_through_a_huge_bucket_in_small_steps_is_exact);
    RUN(a_huge_bucket_cancelled_or_moved_costs_no_call_too_much);
    RUN(arm_and_cancel_leave_memory_where_it_was);
    RUN(cancelled_memory_is_used_for_other_timers);
    RUN(arming_and_cancelling_ever_nearer_keeps_entries_bounded);
    RUN(moving_ever_earlier_keeps_entries_bounded);
    RUN(stale_entries_are_bounded_after_all_timers_fired_too);
    RUN(a_sweep_goes_on_where_its_bucket_is_gone);
    RUN(a_pop_of_many_that_prepares_and_skips_keeps_its_bound);
    return 0;
}
