/* SPDX-License-Identifier: MIT */

/*
 * Duties in memory and limits of an engine keep the same waits: after each report the engine leaves
 * a resource alone for as long as the functions of belfry/duties.h say.
 */
#include "belfry/backoff.h"
#include "belfry/driver.h"
#include "belfry/duties.h"
#include "belfry/engine.h"

#include "../check.h"

#include <string.h>
#include <unistd.h>

#define START ((struct bel_wall){INT64_C(1767225600000)})
#define MS    UINT64_C(1000000)
#define DAY   UINT64_C(86400000) /* ms */

enum {
    PATIENCE_S = 60,
    FAILURES = 12,
    ATTEMPTS = 20,
    CHAIN = 8,
};

static struct bel_clock_fake *fake;
static struct bel_engine *engine;
static struct bel_driver *driver;

static void start(void)
{
    (void)alarm(PATIENCE_S);
    CHECK(bel_clock_fake_create(START, &fake) == 0);
    struct bel_engine_options options = {.now = bel_clock_now(bel_clock_fake_clock(fake))};
    CHECK(bel_engine_open(&options, &engine, NULL) == 0);
    CHECK(bel_driver_start(bel_engine_backend(engine), bel_clock_fake_clock(fake), &driver) == 0);
    struct bel_request schedule = {.command = {.verb = BEL_VERB_SCHEDULE,
                                               .schedule = {.topic = BEL_VIEW("t"),
                                                            .id = BEL_VIEW("a"),
                                                            .when = BEL_WHEN_IN,
                                                            .retry = BEL_VIEW("fixed(1ms)"),
                                                            .resource = BEL_VIEW("api")}}};
    CHECK(bel_driver_call(driver, &schedule) == 0);
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

static int64_t now_ms(void)
{
    return bel_clock_now(bel_clock_fake_clock(fake)).wall.ms;
}

static struct bel_delivery *claim(void)
{
    struct bel_delivery *due = NULL;
    CHECK(bel_driver_claim(driver, "t", 0, &due) == 0);
    return due;
}

/* The state of the resource, without what it points to. */
static void note_state(struct bel_request *request, const struct bel_reply *reply)
{
    struct bel_limit_state *out = request->user;
    if (reply->err == 0 && reply->limits.count == 1) *out = reply->limits.items[0];
}

static struct bel_limit_state get_state(void)
{
    struct bel_limit_state state = {.breaker = BEL_BREAKERS};
    struct bel_request request = {
        .command = {.verb = BEL_VERB_LIMIT,
                    .limit = {.action = BEL_LIMIT_SET, .resource = BEL_VIEW("api")}},
        .done = note_state,
        .user = &state};
    CHECK(bel_driver_call(driver, &request) == 0);
    return state;
}

static void a_breaker_stays_open_as_long_as_the_duty(void)
{
    start();
    for (uint32_t failures = 1; failures <= FAILURES; failures++) {
        struct bel_delivery *due = claim();
        CHECK(due != NULL);
        CHECK(bel_driver_fail_resource(driver, due, NULL) == 0);
        bel_delivery_destroy(due);
        uint64_t wait_ms = bel_duty_breaker_ns(NULL, failures) / MS;
        struct bel_limit_state state = get_state();
        CHECK_NOTE("after %u failures: %llu ms", failures, (unsigned long long)wait_ms);
        CHECK(state.breaker == (wait_ms > 0 ? BEL_BREAKER_OPEN : BEL_BREAKER_CLOSED));
        if (wait_ms == 0) {
            advance(1); /* the retry */
            continue;
        }
        CHECK(state.breaker_until.ms == now_ms() + (int64_t)wait_ms);
        advance(wait_ms - 1);
        CHECK(claim() == NULL);
        advance(1); /* the next claim gets the probe */
    }
    end();
}

static void a_rate_limit_lasts_as_long_as_the_duty(void)
{
    static const uint64_t reports_ms[] = {0,       1,   500,     60000,  3600000,
                                          DAY - 1, DAY, DAY + 1, 9 * DAY};
    for (unsigned i = 0; i < sizeof reports_ms / sizeof reports_ms[0]; i++) {
        start();
        struct bel_delivery *due = claim();
        CHECK(bel_driver_limited(driver, due, reports_ms[i]) == 0);
        bel_delivery_destroy(due);
        uint64_t wait_ms = bel_duty_rate_limit_ns(NULL, reports_ms[i] * MS) / MS;
        CHECK_NOTE("a report of %llu ms", (unsigned long long)reports_ms[i]);
        CHECK(get_state().limited_until.ms == now_ms() + (int64_t)wait_ms);
        advance(wait_ms - 1);
        CHECK(claim() == NULL);
        advance(1);
        due = claim();
        CHECK(due != NULL && due->attempt == 1);
        bel_delivery_destroy(due);
        end();
    }
}

static void the_default_delays_between_attempts_are_those_of_the_duty(void)
{
    struct bel_backoff policy = bel_backoff_default();
    policy.jitter = 0;
    for (uint32_t attempt = 1; attempt < ATTEMPTS; attempt++) {
        uint64_t delay_ms = 0;
        CHECK_NOTE("attempt %u", attempt);
        CHECK(bel_backoff_delay(&policy, attempt, 0, &delay_ms));
        CHECK_EQ(delay_ms, bel_duty_retry_ns(NULL, attempt, 0) / MS);
    }
}

static int submit(const char *text)
{
    struct bel_job_submit job = {.text = {text, strlen(text)}};
    return bel_driver_job_submit(driver, &job, NULL);
}

/* Submits a job with `depth` jobs that follow each other. Returns the error. */
static int submit_chain(unsigned depth)
{
    char text[1024];
    size_t used = 0;
    for (unsigned i = 0; i <= depth; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "{\"id\": \"j%u.%u\", \"tasks\": []%s", depth, i,
                                 i < depth ? ", \"then\": [{\"job\": " : "");
    }
    for (unsigned i = 0; i <= depth; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s", i < depth ? "}}]" : "}");
    }
    return submit(text);
}

/* A job follows another after the cooldown, and chains have the same length. */
static void jobs_follow_each_other_as_the_duty_says(void)
{
    struct bel_runtime *runtime;
    struct bel_worker *worker;
    struct bel_duties *duties;
    struct bel_duty_event event;
    start();
    struct bel_runtime_options options = {.clock = bel_clock_fake_clock(fake),
                                          .metronome = BEL_METRONOME_MANUAL};
    CHECK(bel_runtime_create(&options, &runtime) == 0);
    CHECK(bel_worker_enter(runtime, &worker) == 0);
    CHECK(bel_duties_create(runtime, &(struct bel_duties_options){.kind_first = 100}, &duties) ==
          0);
    for (unsigned depth = 1; depth <= CHAIN; depth++) {
        int err = bel_duties_chain(duties, (struct bel_duty_for){.key = 1}, depth);
        CHECK_NOTE("a chain of %u", depth);
        CHECK(err == 0 || err == BEL_EFULL);
        CHECK((submit_chain(depth) == 0) == (err == 0));
    }
    CHECK(bel_duties_chain(duties, (struct bel_duty_for){.key = 1}, 1) == 0);
    CHECK(submit("{\"tasks\": [], \"then\": [{\"job\": {\"tasks\": [{\"id\": \"a\", \"topic\": "
                 "\"u\"}]}}]}") == 0);
    static const unsigned steps_ms[] = {0, BEL_JOB_COOLDOWN_MS - 1, 1};
    for (unsigned i = 0; i < 3; i++) {
        struct bel_delivery *due = NULL;
        advance(steps_ms[i]);
        (void)bel_worker_poll(worker, CHAIN);
        size_t events = bel_duties_take(duties, &event, 1);
        CHECK(bel_driver_claim(driver, "u", 0, &due) == 0);
        CHECK_EQ(events, i == 2);
        CHECK((due != NULL) == (i == 2));
        bel_delivery_destroy(due);
    }
    bel_duties_destroy(duties);
    CHECK(bel_worker_leave(worker) == 0);
    bel_runtime_destroy(runtime);
    end();
}

int main(void)
{
    RUN(a_breaker_stays_open_as_long_as_the_duty);
    RUN(a_rate_limit_lasts_as_long_as_the_duty);
    RUN(jobs_follow_each_other_as_the_duty_says);
    RUN(the_default_delays_between_attempts_are_those_of_the_duty);
    return 0;
}
