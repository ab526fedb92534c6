/* SPDX-License-Identifier: MIT */

/*
 * A crew over a driver and an engine in memory, on a fake clock. A tap between driver and engine
 * counts the commands, so that a case can wait for one. Nothing sleeps, and time passes only when a
 * case moves the clock; an alarm ends a case that blocks.
 */
#include "belfry/engine.h"
#include "belfry/local_crew.h"

#include "../check.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define START ((struct bel_wall){INT64_C(1767225600000)})
#define MS    UINT64_C(1000000)

enum {
    PATIENCE_S = 60,
    GRACE_MS = 50000,
    LEASE_MS = 3000,
    TIMERS = 50,
    HOUR_MS = 3600000,
};

static struct bel_clock_fake *fake;
static struct bel_engine *engine;
static struct bel_driver *driver;
static struct bel_crew *crew;

/* --- what the case and the threads share --- */

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned verbs[BEL_VERBS]; /* commands that reached the engine */
    struct bel_report report;  /* of the next work */
    size_t result_bytes;       /* of the next work; 0: no result */
    bool is_open;              /* otherwise hands wait for it */
    unsigned inside, worked, attempts, told, told_lost, troubles;
} yard = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void wait_for(const unsigned *count, unsigned at_least)
{
    (void)pthread_mutex_lock(&yard.mutex);
    while (*count < at_least) {
        (void)pthread_cond_wait(&yard.changed, &yard.mutex);
    }
    (void)pthread_mutex_unlock(&yard.mutex);
}

static unsigned read_count(const unsigned *count)
{
    (void)pthread_mutex_lock(&yard.mutex);
    unsigned value = *count;
    (void)pthread_mutex_unlock(&yard.mutex);
    return value;
}

static void set_yard(bool is_open)
{
    (void)pthread_mutex_lock(&yard.mutex);
    yard.is_open = is_open;
    (void)pthread_cond_broadcast(&yard.changed);
    (void)pthread_mutex_unlock(&yard.mutex);
}

static void set_report(struct bel_report report)
{
    (void)pthread_mutex_lock(&yard.mutex);
    yard.report = report;
    (void)pthread_mutex_unlock(&yard.mutex);
}

/* --- the tap --- */

static void tap_submit(struct bel_backend *backend, struct bel_request *request)
{
    (void)backend;
    (void)pthread_mutex_lock(&yard.mutex);
    yard.verbs[request->command.verb]++;
    (void)pthread_cond_broadcast(&yard.changed);
    (void)pthread_mutex_unlock(&yard.mutex);
    bel_backend_submit(bel_engine_backend(engine), request);
}

static bool tap_withdraw(struct bel_backend *backend, struct bel_request *request)
{
    (void)backend;
    return bel_backend_withdraw(bel_engine_backend(engine), request);
}

static struct bel_next tap_turn(struct bel_backend *backend, struct bel_now now)
{
    (void)backend;
    return bel_backend_turn(bel_engine_backend(engine), now);
}

static struct bel_backend tap = {.submit = tap_submit, .withdraw = tap_withdraw, .turn = tap_turn};

/* --- the crew --- */

static void work(void *context, const struct bel_errand *errand, struct bel_report *report)
{
    struct bel_view color = {0};
    CHECK(context == &yard);
    CHECK(strcmp(errand->topic.data, "mail") == 0);
    CHECK(strcmp(errand->payload.data, "letter") == 0);
    CHECK(!bel_errand_find(errand, "color", &color));
    (void)pthread_mutex_lock(&yard.mutex);
    yard.inside++;
    yard.attempts += (unsigned)errand->attempt;
    (void)pthread_cond_broadcast(&yard.changed);
    while (!yard.is_open) {
        (void)pthread_cond_wait(&yard.changed, &yard.mutex);
    }
    *report = yard.report;
    if (yard.result_bytes > 0) {
        static const char result[BEL_RESULT_BYTES_MAX + 1];
        CHECK(bel_report_result(report, (struct bel_view){result, yard.result_bytes}) == 0);
        yard.result_bytes = 0;
    }
    yard.report = (struct bel_report){.kind = BEL_REPORT_DONE};
    yard.inside--;
    yard.worked++;
    (void)pthread_mutex_unlock(&yard.mutex);
}

static void told(void *context, const struct bel_errand *errand, const struct bel_report *report)
{
    bool is_lost = bel_errand_is_lost(errand);
    CHECK(context == &yard && report != NULL);
    (void)pthread_mutex_lock(&yard.mutex);
    yard.told++;
    yard.told_lost += is_lost;
    (void)pthread_cond_broadcast(&yard.changed);
    (void)pthread_mutex_unlock(&yard.mutex);
}

static void trouble(void *context, const char *text)
{
    CHECK(context == &yard && text[0] != '\0');
    (void)pthread_mutex_lock(&yard.mutex);
    yard.troubles++;
    (void)pthread_cond_broadcast(&yard.changed);
    (void)pthread_mutex_unlock(&yard.mutex);
}

static void start(unsigned hands)
{
    static const char *const topics[] = {"post", "mail"};
    (void)alarm(PATIENCE_S);
    CHECK(bel_clock_fake_create(START, &fake) == 0);
    const struct bel_clock *clock = bel_clock_fake_clock(fake);
    struct bel_engine_options engine_options = {.now = bel_clock_now(clock)};
    CHECK(bel_engine_open(&engine_options, &engine, NULL) == 0);
    CHECK(bel_driver_start(&tap, clock, &driver) == 0);
    memset(yard.verbs, 0, sizeof yard.verbs);
    yard.report = (struct bel_report){.kind = BEL_REPORT_DONE};
    yard.is_open = true;
    yard.inside = yard.worked = yard.attempts = yard.told = yard.told_lost = yard.troubles = 0;
    struct bel_crew_options options = {.client = {.clock = clock},
                                       .topics = topics,
                                       .topics_count = 2,
                                       .hands = hands,
                                       .lease_ms = LEASE_MS,
                                       .name = "tester",
                                       .work = work,
                                       .trouble = trouble,
                                       .told = told,
                                       .context = &yard};
    CHECK(bel_local_crew_start(driver, &options, &crew) == 0);
}

static void stop_crew(void)
{
    CHECK(bel_crew_stop(crew, GRACE_MS) == 0);
    CHECK(bel_crew_stop(crew, 0) == 0);
    bel_crew_destroy(crew);
}

static void end(void)
{
    bel_driver_destroy(driver);
    bel_engine_close(engine);
    bel_clock_fake_destroy(fake);
}

static void advance(uint64_t ms)
{
    bel_clock_fake_advance(fake, ms * MS);
    bel_driver_wake(driver);
}

static void schedule(const char *id)
{
    CHECK(bel_driver_schedule(driver, "mail", id, BEL_VIEW("letter"), 0) == 0);
}

static void note_state(struct bel_request *request, const struct bel_reply *reply)
{
    int *state = request->user;
    if (reply->err == 0 && reply->timers.count == 1) *state = (int)reply->timers.items[0].state;
}

/* Returns the state of a timer, or -1. */
static int state_of(const char *id)
{
    int state = -1;
    struct bel_target target = {BEL_VIEW("mail"), {id, strlen(id)}};
    struct bel_request request = {
        .command = {.verb = BEL_VERB_GET, .target = target}, .done = note_state, .user = &state};
    CHECK(bel_driver_call(driver, &request) == 0);
    return state;
}

/* --- cases --- */

static void due_timers_are_worked_on_and_acknowledged(void)
{
    start(4);
    for (unsigned i = 0; i < TIMERS; i++) {
        schedule(NULL);
    }
    wait_for(&yard.told, TIMERS);
    stop_crew();
    CHECK_EQ(yard.worked, TIMERS);
    CHECK_EQ(yard.told, TIMERS);
    CHECK_EQ(yard.told_lost, 0);
    CHECK_EQ(yard.verbs[BEL_VERB_ACK], TIMERS);
    CHECK_EQ(yard.troubles, 0);
    end();
}

static void failed_work_is_tried_again(void)
{
    start(1);
    set_report((struct bel_report){.kind = BEL_REPORT_FAILED, .has_delay = true, .delay_ms = 500});
    schedule("a");
    wait_for(&yard.told, 1);
    CHECK(state_of("a") == BEL_SCHEDULED);
    advance(500);
    wait_for(&yard.told, 2);
    stop_crew();
    CHECK_EQ(yard.attempts, 1 + 2);
    CHECK_EQ(yard.told_lost, 0);
    CHECK_EQ(yard.verbs[BEL_VERB_FAIL], 1);
    CHECK_EQ(yard.verbs[BEL_VERB_ACK], 1);
    end();
}

static void work_is_rejected_and_released(void)
{
    start(1);
    set_report((struct bel_report){.kind = BEL_REPORT_REJECTED, .reason = "no such address"});
    schedule("a");
    wait_for(&yard.told, 1);
    CHECK(state_of("a") == BEL_DEAD);
    set_report(
        (struct bel_report){.kind = BEL_REPORT_RELEASED, .has_delay = true, .delay_ms = HOUR_MS});
    schedule("b");
    wait_for(&yard.told, 2);
    CHECK(state_of("b") == BEL_SCHEDULED);
    CHECK_EQ(yard.told_lost, 0);
    stop_crew();
    end();
}

static void a_rate_limit_uses_up_no_attempt_and_a_broken_resource_does(void)
{
    start(1);
    set_report((struct bel_report){.kind = BEL_REPORT_LIMITED, .has_delay = true, .delay_ms = 500});
    schedule("a");
    wait_for(&yard.told, 1);
    CHECK(state_of("a") == BEL_SCHEDULED);
    set_report((struct bel_report){.kind = BEL_REPORT_RESOURCE, .has_delay = true, .delay_ms = 1});
    advance(500);
    wait_for(&yard.told, 2);
    advance(1);
    wait_for(&yard.told, 3);
    stop_crew();
    CHECK_EQ(yard.attempts, 1 + 1 + 2);
    CHECK_EQ(yard.told_lost, 0);
    end();
}

static void a_result_that_is_too_large_makes_the_work_failed(void)
{
    start(1);
    yard.result_bytes = BEL_RESULT_BYTES_MAX + 1;
    schedule("a");
    wait_for(&yard.told, 1);
    CHECK(state_of("a") == BEL_SCHEDULED); /* not leased */
    CHECK_EQ(yard.told_lost, 0);
    CHECK_EQ(yard.verbs[BEL_VERB_ACK], 1);
    CHECK_EQ(yard.verbs[BEL_VERB_FAIL], 1);
    yard.result_bytes = BEL_RESULT_BYTES_MAX;
    advance(HOUR_MS);
    wait_for(&yard.told, 2);
    stop_crew();
    CHECK_EQ(yard.verbs[BEL_VERB_ACK], 2);
    CHECK_EQ(yard.verbs[BEL_VERB_FAIL], 1);
    CHECK_EQ(yard.told_lost, 0);
    end();
}

/* The work takes longer than its lease. */
static void leases_are_extended_while_hands_work(void)
{
    start(1);
    set_yard(false);
    schedule("a");
    wait_for(&yard.inside, 1);
    for (unsigned i = 1; i <= 6; i++) {
        advance(LEASE_MS / 3);
        wait_for(&yard.verbs[BEL_VERB_EXTEND], i);
        CHECK(state_of("a") == BEL_LEASED);
    }
    set_yard(true);
    wait_for(&yard.told, 1);
    stop_crew();
    CHECK_EQ(yard.worked, 1);
    CHECK_EQ(yard.told_lost, 0);
    end();
}

static void work_whose_lease_expired_is_lost(void)
{
    start(2);
    set_yard(false);
    schedule("a");
    wait_for(&yard.inside, 1);
    advance((uint64_t)2 * LEASE_MS); /* no extension is in time */
    wait_for(&yard.inside, 2);
    set_yard(true);
    wait_for(&yard.told, 2);
    stop_crew();
    CHECK_EQ(yard.told_lost, 1);
    CHECK(yard.troubles > 0);
    end();
}

/* The fake clock stands still: a claim that waits would never end. */
static void a_stop_ends_a_claim_that_waits(void)
{
    for (unsigned i = 0; i < TIMERS; i++) {
        start(3);
        if (i % 2 == 0) wait_for(&yard.verbs[BEL_VERB_CLAIM], 1);
        stop_crew();
        CHECK_EQ(yard.troubles, 0);
        end();
    }
}

static void a_stop_waits_for_work_and_reports_it(void)
{
    start(1);
    set_yard(false);
    schedule("a");
    wait_for(&yard.inside, 1);
    CHECK(bel_crew_stop(crew, 0) == BEL_EBUSY);
    advance(LEASE_MS / 3);
    wait_for(&yard.verbs[BEL_VERB_EXTEND], 1); /* also while stopping */
    set_yard(true);
    stop_crew();
    CHECK_EQ(yard.told, 1);
    CHECK_EQ(yard.told_lost, 0);
    CHECK_EQ(yard.verbs[BEL_VERB_ACK], 1);
    schedule("b");
    CHECK(state_of("b") == BEL_READY);
    end();
}

/* A drained driver answers every claim at once; the crew pauses instead of asking without end. */
static void a_crew_pauses_when_its_driver_is_drained(void)
{
    start(2);
    wait_for(&yard.verbs[BEL_VERB_CLAIM], 1);
    bel_driver_drain(driver);
    wait_for(&yard.troubles, 1);
    CHECK(read_count(&yard.verbs[BEL_VERB_CLAIM]) <= 2);
    stop_crew();
    end();
}

static void a_crew_survives_its_driver(void)
{
    start(1);
    set_yard(false);
    schedule("a");
    wait_for(&yard.inside, 1);
    CHECK(bel_driver_stop(driver) == 0);
    set_yard(true);
    stop_crew();
    CHECK_EQ(yard.told, 1);
    CHECK_EQ(yard.told_lost, 1);
    end();
}

int main(void)
{
    RUN(due_timers_are_worked_on_and_acknowledged);
    RUN(failed_work_is_tried_again);
    RUN(work_is_rejected_and_released);
    RUN(a_rate_limit_uses_up_no_attempt_and_a_broken_resource_does);
    RUN(a_result_that_is_too_large_makes_the_work_failed);
    RUN(leases_are_extended_while_hands_work);
    RUN(work_whose_lease_expired_is_lost);
    RUN(a_stop_ends_a_claim_that_waits);
    RUN(a_stop_waits_for_work_and_reports_it);
    RUN(a_crew_pauses_when_its_driver_is_drained);
    RUN(a_crew_survives_its_driver);
    return 0;
}
