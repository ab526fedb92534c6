/* SPDX-License-Identifier: MIT */

/*
 * Plans that ring in memory, on a fake clock: nominal times in a zone, clocks that are set, missed
 * times, counts, and plans that are cancelled while they ring.
 */
#include "belfry/calendar.h"

#include "../actor.h"

#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#define S       UINT64_C(1000000000)
#define HOUR    (3600 * S)
#define HOUR_MS INT64_C(3600000)

enum {
    KIND = 3,
    LOG_MAX = 2048,
};

/* 2026-03-28T12:00:00Z, half a day before the clocks go forward in Berlin. */
static const struct bel_wall noon = {INT64_C(1774699200000)};

static struct bel_clock_fake *fake;
static struct bel_runtime *runtime;
static struct bel_worker *worker;
static struct bel_calendar *calendar;
static struct bel_plan_event rung[LOG_MAX];
static size_t rung_count;

static void note(void *context, const struct bel_plan_event *event)
{
    (void)context;
    CHECK(rung_count < LOG_MAX);
    CHECK(event->now.ms >= event->nominal.ms);
    rung[rung_count++] = *event;
}

static void open_all(void)
{
    CHECK(bel_clock_fake_create(noon, &fake) == 0);
    struct bel_runtime_options options = {.clock = bel_clock_fake_clock(fake),
                                          .metronome = BEL_METRONOME_MANUAL};
    CHECK(bel_runtime_create(&options, &runtime) == 0);
    CHECK(bel_worker_enter(runtime, &worker) == 0);
    CHECK(bel_calendar_create(runtime, &(struct bel_calendar_options){.kind = KIND}, &calendar) ==
          0);
    rung_count = 0;
}

static void close_all(void)
{
    bel_calendar_destroy(calendar);
    CHECK(bel_worker_leave(worker) == 0);
    bel_runtime_destroy(runtime);
    bel_clock_fake_destroy(fake);
}

static void poll_all(void)
{
    (void)bel_runtime_tick(runtime);
    while (bel_worker_next(worker).ns <= bel_clock_boot(bel_clock_fake_clock(fake)).ns) {
        (void)bel_worker_poll(worker, 100);
    }
}

/* Lets time pass, a minute at a time. */
static void pass(uint64_t minutes)
{
    for (uint64_t i = 0; i < minutes; i++) {
        bel_clock_fake_advance(fake, 60 * S);
        poll_all();
    }
}

static uint64_t schedule(struct bel_plan_schedule schedule)
{
    uint64_t id = 0;
    if (schedule.ring == NULL) schedule.ring = note;
    CHECK(bel_runtime_schedule_plan(calendar, &schedule, &id, NULL) == 0);
    CHECK(id != 0);
    return id;
}

static uint64_t pending(void)
{
    struct bel_runtime_stats stats;
    bel_runtime_stats(runtime, NULL, &stats);
    return stats.pending;
}

static int64_t hours_after_noon(size_t ring)
{
    CHECK(ring < rung_count);
    CHECK((rung[ring].nominal.ms - noon.ms) % HOUR_MS == 0);
    return (rung[ring].nominal.ms - noon.ms) / HOUR_MS;
}

static void a_rule_rings_at_its_nominal_times_in_its_zone(void)
{
    struct bel_zones *zones;
    const struct bel_zone *berlin;
    CHECK(bel_zones_open(NULL, &zones) == 0);
    CHECK(bel_zones_find(zones, "Europe/Berlin", 13, &berlin) == 0);
    open_all();
    uint64_t id =
        schedule((struct bel_plan_schedule){.rule = "0 9 * * *", .options = {.zone = berlin}});
    pass(4320);
    CHECK_EQ(rung_count, 3); /* 09:00 is 07:00 UTC from the 29th on, as it was 08:00 before */
    CHECK(hours_after_noon(0) == 19);
    CHECK(hours_after_noon(1) == 19 + 24);
    CHECK_EQ(rung[2].plan, id);
    CHECK_EQ(rung[2].skipped, 0);
    struct bel_plan_status status;
    CHECK(bel_calendar_find(calendar, id, &status));
    CHECK_EQ(status.rings, 3);
    CHECK(status.next.ms == noon.ms + (19 + 72) * HOUR_MS);
    CHECK(!status.is_ringing);
    close_all();
    bel_zones_close(zones);
}

static void a_clock_that_is_set_back_repeats_no_time_and_delays_the_next(void)
{
    open_all();
    (void)schedule((struct bel_plan_schedule){.rule = "0 * * * *"});
    pass(90); /* 13:30 */
    CHECK_EQ(rung_count, 1);
    bel_clock_fake_step(fake, -HOUR_MS); /* 12:30: 13:00 has rung */
    pass(60);
    CHECK_EQ(rung_count, 1);
    pass(30); /* 14:00 */
    CHECK_EQ(rung_count, 2);
    CHECK(hours_after_noon(1) == 2);
    close_all();
}

static void set_forward(enum bel_misfire misfire, uint32_t max)
{
    open_all();
    (void)schedule(
        (struct bel_plan_schedule){.rule = "0 * * * *", .misfire = misfire, .misfire_max = max});
    bel_clock_fake_step(fake, 5 * HOUR_MS + HOUR_MS / 2); /* 17:30: five were missed */
    poll_all();
}

static void times_missed_by_a_clock_set_forward_ring_as_the_policy_says(void)
{
    set_forward(BEL_MISFIRE_SKIP, 0);
    CHECK_EQ(rung_count, 0);
    pass(30);
    CHECK_EQ(rung_count, 1);
    CHECK(hours_after_noon(0) == 6);
    CHECK_EQ(rung[0].skipped, 5);
    close_all();

    set_forward(BEL_MISFIRE_LAST, 0);
    CHECK_EQ(rung_count, 1);
    CHECK(hours_after_noon(0) == 5);
    CHECK_EQ(rung[0].skipped, 4);
    pass(30);
    CHECK_EQ(rung_count, 2);
    CHECK_EQ(rung[1].skipped, 0);
    close_all();

    set_forward(BEL_MISFIRE_ALL, 0);
    CHECK_EQ(rung_count, 5);
    for (size_t i = 0; i < 5; i++) {
        CHECK(hours_after_noon(i) == (int64_t)i + 1);
    }
    close_all();

    set_forward(BEL_MISFIRE_ALL, 2);
    CHECK_EQ(rung_count, 2);
    CHECK(hours_after_noon(0) == 4 && hours_after_noon(1) == 5);
    CHECK_EQ(rung[0].skipped, 3);
    close_all();
}

static void a_long_absence_is_bounded_work(void)
{
    open_all();
    uint64_t id = schedule((struct bel_plan_schedule){.rule = "1s", .misfire = BEL_MISFIRE_LAST});
    bel_clock_fake_suspend(fake, UINT64_C(24000) * HOUR);
    poll_all();
    CHECK(rung_count >= 1 && rung_count <= 3);
    struct bel_plan_status status;
    CHECK(bel_calendar_find(calendar, id, &status));
    CHECK(status.skipped >= BEL_MISFIRE_COUNT_MAX);
    close_all();
}

static void a_plan_with_a_count_makes_the_first_times_and_ends(void)
{
    open_all();
    uint64_t id = schedule((struct bel_plan_schedule){
        .rule = "0 * * * *", .options = {.count = 3}, .misfire = BEL_MISFIRE_ALL});
    bel_clock_fake_step(fake, 10 * HOUR_MS);
    poll_all();
    CHECK_EQ(rung_count, 3);
    CHECK(hours_after_noon(0) == 1 && hours_after_noon(2) == 3);
    CHECK(rung[2].is_last && !rung[1].is_last);
    CHECK(!bel_calendar_cancel(calendar, id));
    CHECK_EQ(bel_calendar_count(calendar), 0);
    CHECK_EQ(pending(), 0);
    close_all();

    open_all();
    (void)schedule((struct bel_plan_schedule){.rule = "0 * * * *", .options = {.count = 3}});
    bel_clock_fake_step(fake, 2 * HOUR_MS + HOUR_MS / 2); /* two are skipped, and count */
    poll_all();
    pass(600);
    CHECK_EQ(rung_count, 1);
    CHECK(hours_after_noon(0) == 3);
    CHECK_EQ(rung[0].skipped, 2);
    CHECK(rung[0].is_last);
    close_all();
}

static uint64_t own;

static void cancel_itself(void *context, const struct bel_plan_event *event)
{
    note(context, event);
    CHECK(bel_calendar_cancel(calendar, own));
    CHECK(!bel_calendar_cancel(calendar, own));
}

static void a_plan_can_be_cancelled_also_from_its_callback(void)
{
    open_all();
    uint64_t id = schedule((struct bel_plan_schedule){.rule = "1m"});
    own = schedule((struct bel_plan_schedule){.rule = "1m", .ring = cancel_itself});
    CHECK_EQ(bel_calendar_count(calendar), 2);
    pass(1);
    CHECK_EQ(rung_count, 2);
    CHECK_EQ(bel_calendar_count(calendar), 1);
    CHECK(bel_calendar_cancel(calendar, id));
    CHECK(!bel_calendar_cancel(calendar, id));
    CHECK(!bel_calendar_cancel(calendar, 77));
    pass(5);
    CHECK_EQ(rung_count, 2);
    CHECK_EQ(pending(), 0);
    close_all();
}

static void bad_plans_are_refused(void)
{
    struct bel_text_error why;
    uint64_t id = 99;
    open_all();
    struct bel_plan_schedule wrong = {.rule = "0 25 * * *", .ring = note};
    CHECK(bel_runtime_schedule_plan(calendar, &wrong, &id, &why) == BEL_EINVAL);
    wrong.rule = "1m";
    wrong.misfire_max = BEL_MISFIRE_MAX + 1;
    CHECK(bel_runtime_schedule_plan(calendar, &wrong, &id, &why) == BEL_EINVAL);
    wrong = (struct bel_plan_schedule){.rule = "1m", .ring = NULL};
    CHECK(bel_runtime_schedule_plan(calendar, &wrong, &id, &why) == BEL_EINVAL);
    wrong = (struct bel_plan_schedule){
        .rule = "1m", .ring = note, .options = {.has_until = true, .until = {noon.ms - 1}}};
    CHECK(bel_runtime_schedule_plan(calendar, &wrong, &id, &why) == BEL_ERANGE);
    CHECK_EQ(id, 99);
    struct bel_calendar *second;
    struct bel_calendar_options same = {.kind = KIND};
    CHECK(bel_calendar_create(runtime, &same, &second) == BEL_EINVAL);
    CHECK_EQ(bel_calendar_count(calendar), 0);
    close_all();
}

static void a_timer_of_a_plan_that_another_process_had_ends_silently(void)
{
    void *snapshot;
    size_t bytes;
    open_all();
    for (unsigned i = 0; i < 3; i++) {
        (void)schedule((struct bel_plan_schedule){.rule = "1m"});
    }
    CHECK(bel_runtime_snapshot(runtime, &snapshot, &bytes) == 0);
    close_all();
    open_all();
    (void)schedule((struct bel_plan_schedule){.rule = "1h"});
    CHECK(bel_runtime_restore(runtime, snapshot, bytes) == 0);
    CHECK_EQ(pending(), 4);
    pass(2);
    CHECK_EQ(rung_count, 0);
    CHECK_EQ(pending(), 1);
    free(snapshot);
    close_all();
}

/* On threads of the runtime, by the real clock. */
static sem_t blocked, unblock;

static void block(void *context, const struct bel_plan_event *event)
{
    (void)context;
    (void)event;
    CHECK(sem_post(&blocked) == 0);
    while (sem_wait(&unblock) != 0) {}
}

static void cancel_task(void *arg)
{
    uint64_t *id = arg;
    CHECK(bel_calendar_cancel(calendar, *id));
    CHECK(sem_post(&blocked) == 0);
}

static void a_cancel_waits_for_a_callback_that_is_running(void)
{
    struct actor actor;
    uint64_t id;
    struct bel_plan_status status;
    CHECK(sem_init(&blocked, 0, 0) == 0 && sem_init(&unblock, 0, 0) == 0);
    CHECK(bel_runtime_create(NULL, &runtime) == 0);
    CHECK(bel_runtime_start(runtime, 2) == 0);
    CHECK(bel_calendar_create(runtime, &(struct bel_calendar_options){.kind = KIND}, &calendar) ==
          0);
    struct bel_plan_schedule often = {.rule = "1ms", .ring = block};
    CHECK(bel_runtime_schedule_plan(calendar, &often, &id, NULL) == 0);
    while (sem_wait(&blocked) != 0) {}
    CHECK(bel_calendar_find(calendar, id, &status) && status.is_ringing);
    actor_start(&actor);
    actor_begin(&actor, cancel_task, &id);
    while (bel_calendar_find(calendar, id, &status)) {} /* until the cancel has begun */
    CHECK(sem_trywait(&blocked) != 0);
    CHECK(sem_post(&unblock) == 0);
    actor_await(&actor);
    actor_stop(&actor);
    CHECK_EQ(bel_calendar_count(calendar), 0);
    CHECK(bel_runtime_schedule_plan(calendar, &often, &id, NULL) == 0);
    while (sem_wait(&blocked) != 0) {} /* of the cancel */
    while (sem_wait(&blocked) != 0) {}
    for (unsigned i = 0; i < 100; i++) {
        CHECK(sem_post(&unblock) == 0);
    }
    bel_calendar_destroy(calendar); /* while it rings */
    bel_runtime_destroy(runtime);
}

/*
 * The cron duty.
 */

static struct bel_duties *duties;

static void open_duties(void)
{
    open_all();
    CHECK(bel_duties_create(runtime, &(struct bel_duties_options){.kind_first = 100}, &duties) ==
          0);
}

static void close_duties(void)
{
    bel_duties_destroy(duties);
    close_all();
}

static struct bel_plan *plan_of(const char *rule, uint64_t count)
{
    struct bel_plan *plan;
    struct bel_plan_options options = {.now = noon, .count = count};
    CHECK(bel_plan_create(rule, strlen(rule), &options, &plan, NULL) == 0);
    return plan;
}

static size_t take(struct bel_duty_event *out, size_t max)
{
    poll_all();
    return bel_duties_take(duties, out, max);
}

static void a_cron_duty_ticks_at_the_nominal_times_of_a_plan(void)
{
    struct bel_duty_event events[8];
    open_duties();
    struct bel_duty_plan ticks = {.plan = plan_of("0 9,17 * * *", 0)};
    CHECK(bel_duties_cron_plan(duties, (struct bel_duty_for){7, 70}, &ticks, BEL_OVERLAP_ALLOW) ==
          0);
    int64_t hours[] = {5, 21, 29, 45};
    uint64_t passed = 0;
    for (unsigned i = 0; i < 4; i++) {
        while (passed < (uint64_t)hours[i]) {
            CHECK_EQ(take(events, 8), 0);
            bel_clock_fake_advance(fake, HOUR);
            passed++;
        }
        CHECK_EQ(take(events, 8), 1);
        CHECK_EQ(events[0].key, 7);
        CHECK_EQ(events[0].user, 70);
        CHECK_EQ(events[0].missed, 0);
    }
    CHECK(bel_duties_cancel(duties, BEL_DUTY_CRON, 7));
    CHECK_EQ(pending(), 0);
    close_duties();
    bel_plan_destroy((struct bel_plan *)(uintptr_t)ticks.plan);
}

static void ticks_that_are_late_are_left_out_or_made_up_for(void)
{
    struct bel_duty_event events[8];
    for (int catches_up = 0; catches_up < 2; catches_up++) {
        open_duties();
        struct bel_duty_plan ticks = {.plan = plan_of("0 * * * *", 0),
                                      .catches_up = catches_up != 0};
        CHECK(bel_duties_cron_plan(duties, (struct bel_duty_for){1, 1}, &ticks,
                                   BEL_OVERLAP_ALLOW) == 0);
        bel_clock_fake_step(fake, 5 * HOUR_MS); /* 17:00: four are late */
        size_t count = 0, taken;
        while ((taken = take(events + count, 8 - count)) > 0) {
            count += taken;
        }
        CHECK_EQ(count, catches_up ? 5 : 2); /* the first had been armed */
        CHECK_EQ(events[count - 1].missed, catches_up ? 0 : 3);
        close_duties();
        bel_plan_destroy((struct bel_plan *)(uintptr_t)ticks.plan);
    }
}

static void ticks_end_with_their_plan_and_can_be_replaced_by_a_period(void)
{
    struct bel_duty_event events[8];
    open_duties();
    struct bel_duty_plan ticks = {.plan = plan_of("1h", 2)};
    CHECK(bel_duties_cron_plan(duties, (struct bel_duty_for){1, 1}, &ticks, BEL_OVERLAP_SKIP) == 0);
    for (unsigned i = 0; i < 2; i++) {
        bel_clock_fake_advance(fake, HOUR);
        CHECK_EQ(take(events, 8), 1);
        CHECK(!bel_duties_end_run(duties, 1));
    }
    bel_clock_fake_advance(fake, 10 * HOUR);
    CHECK_EQ(take(events, 8), 0);
    CHECK(!bel_duties_is_pending(duties, BEL_DUTY_CRON, 1));
    struct bel_duty_plan other = {.plan = plan_of("1h", 0)};
    CHECK(bel_duties_cron_plan(duties, (struct bel_duty_for){1, 1}, &other, BEL_OVERLAP_SKIP) == 0);
    struct bel_duty_ticks period = {
        .first = {bel_clock_boot(bel_clock_fake_clock(fake)).ns + 60 * S}, .period_ns = 60 * S};
    CHECK(bel_duties_cron(duties, (struct bel_duty_for){1, 2}, &period) == 0);
    bel_clock_fake_advance(fake, 60 * S);
    CHECK_EQ(take(events, 8), 1);
    CHECK_EQ(events[0].user, 2);
    CHECK_EQ(pending(), 1);
    close_duties();
    bel_plan_destroy((struct bel_plan *)(uintptr_t)ticks.plan);
    bel_plan_destroy((struct bel_plan *)(uintptr_t)other.plan);
}

int main(void)
{
    RUN(a_rule_rings_at_its_nominal_times_in_its_zone);
    RUN(a_clock_that_is_set_back_repeats_no_time_and_delays_the_next);
    RUN(times_missed_by_a_clock_set_forward_ring_as_the_policy_says);
    RUN(a_long_absence_is_bounded_work);
    RUN(a_plan_with_a_count_makes_the_first_times_and_ends);
    RUN(a_plan_can_be_cancelled_also_from_its_callback);
    RUN(bad_plans_are_refused);
    RUN(a_timer_of_a_plan_that_another_process_had_ends_silently);
    RUN(a_cancel_waits_for_a_callback_that_is_running);
    RUN(a_cron_duty_ticks_at_the_nominal_times_of_a_plan);
    RUN(ticks_that_are_late_are_left_out_or_made_up_for);
    RUN(ticks_end_with_their_plan_and_can_be_replaced_by_a_period);
    return 0;
}
