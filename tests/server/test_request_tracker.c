/* SPDX-License-Identifier: MIT */

/* The request tracker and its metrics, on an engine in memory. */
#include "session/request_tracker.h"

#include "belfry/engine.h"
#include "core/units.h"
#include "metrics/topic_counts.h"
#include "server/server_clock.h"

#include "../check.h"

#include <string.h>

enum {
    SECOND_NS = 1000000000,
    LONG_MS = 1000000,
};

static struct bel_metrics metrics;
static struct bel_server_clock server_clock;
static struct bel_engine *engine;
static struct bel_request_tracker tracker;
static struct bel_caller one, other;
static unsigned done_count, left_count;
static int done_err;
static size_t delivered;

static void setup(void)
{
    struct bel_engine_options options = {0};
    CHECK(bel__server_clock_init_virtual(&server_clock, bel_clock_system(), NULL) == 0);
    options.now = server_clock.now;
    CHECK(bel__metrics_init(&metrics) == 0);
    CHECK(bel_engine_open(&options, &engine, NULL) == 0);
    bel__request_tracker_init(&tracker, bel_engine_backend(engine), &metrics, bel_clock_system());
    bel__caller_init(&one, &tracker);
    bel__caller_init(&other, &tracker);
    metrics.backend = &other.backend;
    done_count = left_count = 0;
}

static void teardown(void)
{
    bel_engine_close(engine);
    bel__metrics_finish(&metrics);
}

static void on_done(struct bel_request *request, const struct bel_reply *reply)
{
    done_count++;
    done_err = reply->err;
    if (request->command.verb == BEL_VERB_CLAIM) delivered = reply->deliveries.count;
}

static void on_left(struct bel_caller *caller)
{
    CHECK_EQ(caller->under_way, 0);
    left_count++;
}

static struct bel_next turn(void)
{
    return bel__request_tracker_turn(&tracker, server_clock.now);
}

static struct bel_request schedule(struct bel_view topic, uint64_t delay_ms)
{
    return (struct bel_request){
        .command = {.verb = BEL_VERB_SCHEDULE,
                    .schedule = {.topic = topic, .when = BEL_WHEN_IN, .delay_ms = delay_ms}},
        .done = on_done};
}

static struct bel_request claim(const struct bel_view *topic, uint64_t wait_ms)
{
    return (struct bel_request){
        .command = {.verb = BEL_VERB_CLAIM,
                    .claim = {.topics = topic, .topics_count = 1, .wait_ms = wait_ms}},
        .done = on_done};
}

static void submit(struct bel_request *request)
{
    bel_backend_submit(&one.backend, request);
}

static void requests_are_counted(void)
{
    static const struct bel_view topic = {"t", 1};
    struct bel_request first = schedule(topic, 0), bad = schedule((struct bel_view){"", 0}, 0);
    struct bel_request take = claim(&topic, 0);
    setup();
    submit(&first);
    submit(&bad);
    CHECK_EQ(tracker.fresh, 2);
    CHECK_EQ(tracker.under_way, 2);
    (void)turn();
    CHECK_EQ(tracker.fresh, 0);
    CHECK_EQ(tracker.under_way, 0);
    CHECK_EQ(metrics.commands[BEL_VERB_SCHEDULE], 2);
    CHECK_EQ(metrics.errors[BEL_VERB_SCHEDULE], 1);
    submit(&take);
    (void)turn();
    CHECK_EQ(delivered, 1);
    CHECK_EQ(metrics.deliveries, 1);
    CHECK_EQ(bel__meter_count(&metrics.lateness), 1);
    CHECK_EQ(metrics.turns, 2);
    CHECK(first.done == on_done);
    teardown();
}

static void a_drain_sends_home_who_waits(void)
{
    static const struct bel_view topic = {"t", 1};
    struct bel_request waits = claim(&topic, LONG_MS), later = claim(&topic, LONG_MS);
    setup();
    submit(&waits);
    (void)turn();
    CHECK_EQ(done_count, 0);
    delivered = 99;
    bel__request_tracker_drain(&tracker);
    CHECK_EQ(done_count, 1);
    CHECK(done_err == 0);
    CHECK_EQ(delivered, 0);
    submit(&later);
    (void)turn();
    CHECK_EQ(done_count, 2);
    CHECK_EQ(tracker.under_way, 0);
    teardown();
}

static void a_caller_leaves_when_all_of_his_is_done(void)
{
    static const struct bel_view topic = {"t", 1};
    struct bel_request waits = claim(&topic, LONG_MS), quick = schedule(topic, 1000);
    setup();
    submit(&waits);
    submit(&quick);
    CHECK_EQ(one.under_way, 2);
    CHECK_EQ(one.waiting, 1);
    bel__caller_leave(&one, on_left);
    (void)turn();
    CHECK_EQ(one.under_way, 1);
    CHECK_EQ(left_count, 0);
    CHECK(bel_backend_withdraw(&one.backend, &waits));
    CHECK_EQ(left_count, 1);
    CHECK_EQ(one.waiting, 0);
    CHECK(waits.done == on_done);
    bel__caller_leave(&one, on_left);
    CHECK_EQ(left_count, 2);
    teardown();
}

/* Submits another request from the callback of the first. */
static void submit_again(struct bel_request *request, const struct bel_reply *reply)
{
    struct bel_request *second = request->user;
    on_done(request, reply);
    bel_backend_submit(&one.backend, second);
}

static void a_request_is_of_the_caller_it_was_submitted_to(void)
{
    struct bel_request second = schedule(BEL_VIEW("t"), 1000), others = second;
    struct bel_request first = schedule(BEL_VIEW("t"), 1000);
    setup();
    first.done = submit_again;
    first.user = &second;
    submit(&first);
    bel_backend_submit(&other.backend, &others);
    CHECK(bel__caller_of(&first) == &one);
    CHECK(bel__caller_of(&others) == &other);
    CHECK_EQ(one.under_way, 1);
    CHECK_EQ(other.under_way, 1);
    bel__caller_leave(&one, on_left);
    (void)bel_backend_turn(&other.backend, server_clock.now);
    CHECK_EQ(done_count, 2);
    CHECK_EQ(one.under_way, 1); /* the second request */
    CHECK_EQ(other.under_way, 0);
    CHECK_EQ(left_count, 0);
    (void)turn();
    CHECK_EQ(left_count, 1);
    CHECK_EQ(tracker.under_way, 0);
    teardown();
}

static bool prints(const char *text)
{
    struct bel_buffer out;
    bel__buffer_init(&out, 1 << 20);
    CHECK(bel__metrics_print(&metrics, server_clock.now.real, &out) == 0);
    CHECK(bel__buffer_append(&out, "", 1) == 0);
    bool found = strstr((const char *)bel__buffer_data(&out), text) != NULL;
    bel__buffer_finish(&out);
    return found;
}

static void a_census_counts_topics(void)
{
    struct bel_request now = schedule(BEL_VIEW("mail"), 0),
                       later = schedule(BEL_VIEW("mail"), 5000);
    struct bel_request etl = schedule(BEL_VIEW("etl"), 0);
    setup();
    submit(&now);
    submit(&later);
    submit(&etl);
    CHECK(!prints("belfry_topics "));
    CHECK(!bel__metrics_sums(&metrics, NULL, NULL, &(struct bel_topic_counts_sums){0},
                             &(struct bel_mono){0}));
    bel__metrics_begin(&metrics, server_clock.now.real);
    CHECK(!bel__metrics_is_ready(&metrics));
    (void)turn();
    (void)turn();
    CHECK(bel__metrics_is_ready(&metrics));
    CHECK(prints("belfry_topics 2\n"));
    CHECK(prints("belfry_timers{topic=\"mail\",state=\"ready\"} 1\n"));
    CHECK(prints("belfry_timers{topic=\"mail\",state=\"scheduled\"} 1\n"));
    CHECK(prints("belfry_commands_total{verb=\"schedule\"} 3\n"));
    struct bel_topic_counts_sums sums = {0};
    struct bel_mono taken;
    CHECK(bel__metrics_sums(&metrics, NULL, NULL, &sums, &taken));
    CHECK_EQ(sums.topics, 2);
    CHECK_EQ(sums.counts[BEL_READY], 2);
    bel__metrics_begin(&metrics, server_clock.now.real); /* the last count is recent enough */
    CHECK(bel__metrics_is_ready(&metrics));
    server_clock.now.real.ns += (uint64_t)2 * SECOND_NS;
    bel__metrics_begin(&metrics, server_clock.now.real);
    CHECK(!bel__metrics_is_ready(&metrics));
    (void)turn();
    (void)turn();
    CHECK(bel__metrics_is_ready(&metrics));
    teardown();
}

static void meters_have_bounds(void)
{
    struct bel_meter meter = {0};
    CHECK_EQ(bel__meter_quantile(&meter, 500), 0);
    bel__meter_record(&meter, 0);
    bel__meter_record(&meter, 50000);
    bel__meter_record(&meter, 50001);
    CHECK_EQ(bel__meter_count(&meter), 3);
    CHECK_EQ(bel__meter_quantile(&meter, 500), 50000);
    CHECK_EQ(bel__meter_quantile(&meter, 1000), 100000);
    bel__meter_record(&meter, UINT64_MAX / 2);
    CHECK(bel__meter_quantile(&meter, 1000) == UINT64_MAX);
}

/* Advances the clock in slices of one turn until it has arrived. Counts the slices. */
static int advance(int64_t to_ms, struct bel_next *next, unsigned *slices)
{
    struct bel_wall to = {to_ms};
    int err = BEL_EBUSY;
    for (*slices = 0; err == BEL_EBUSY; ++*slices) {
        uint64_t turns = 1;
        CHECK(*slices < 100);
        err = bel__server_clock_advance(&server_clock, &tracker, to, &turns, next);
        CHECK(turns <= 1 && server_clock.now.wall.ms <= to_ms);
    }
    return err;
}

static void virtual_time_goes_through_what_is_due(void)
{
    static const struct bel_view topic = {"t", 1};
    struct bel_request soon = schedule(topic, 1000), late = schedule(topic, 3000);
    struct bel_request waits = claim(&topic, LONG_MS);
    struct bel_next next;
    setup();
    struct bel_wall start = server_clock.now.wall;
    submit(&soon);
    submit(&late);
    submit(&waits);
    delivered = 0;
    unsigned slices;
    CHECK(advance(start.ms + 999, &next, &slices) == 0 && slices > 1);
    CHECK_EQ(delivered, 0);
    CHECK(advance(start.ms + 2000, &next, &slices) == 0 && slices > 1);
    CHECK_EQ(delivered, 1);
    CHECK(server_clock.now.wall.ms == start.ms + 2000);
    CHECK(next.due.ns > server_clock.now.boot.ns);
    CHECK(bel__server_clock_advance(&server_clock, &tracker, start, &(uint64_t){1}, &next) ==
          BEL_EINVAL);
    CHECK(advance(INT64_MAX - 1, &next, &slices) == BEL_EINVAL);
    CHECK(server_clock.now.wall.ms == start.ms + 2000);
    teardown();
}

/* --- histograms of the last minute --- */

static uint64_t recent_count(const struct bel_recent *recent, uint64_t ms)
{
    struct bel_meter sum = bel__recent_sum(recent, (struct bel_mono){ms * NS_PER_MS});
    return bel__meter_count(&sum);
}

static void what_is_a_minute_old_is_forgotten(void)
{
    struct bel_recent recent = {0};
    for (uint64_t ms = 0; ms < 600 * 1000; ms += 1000) {
        struct bel_mono now = {ms * NS_PER_MS};
        bel__recent_record(&recent, ms < 300 * 1000 ? NS_PER_S : NS_PER_MS, now);
        uint64_t count = recent_count(&recent, ms), seconds = ms / 1000 + 1;
        CHECK(count <= 60 && count >= (seconds < 56 ? seconds : 56));
        struct bel_meter sum = bel__recent_sum(&recent, now);
        uint64_t want = ms < 300 * 1000 ? NS_PER_S : NS_PER_MS;
        bool is_mixed = ms >= 300 * 1000 && ms < 360 * 1000;
        if (!is_mixed) CHECK_EQ(bel__meter_quantile(&sum, 990), want);
    }
    CHECK(recent_count(&recent, 640 * 1000) > 0);
    CHECK_EQ(recent_count(&recent, 660 * 1000), 0);
    CHECK_EQ(recent_count(&recent, 6600 * 1000), 0);
}

static void error_replies_are_counted_by_code(void)
{
    CHECK(bel__metrics_init(&metrics) == 0);
    for (unsigned i = 0; i < BEL_ERROR_CODES; i++) {
        bel__metrics_count_error(&metrics, bel__error_code_name(i));
        CHECK_EQ(metrics.codes[i], 1);
    }
    bel__metrics_count_error(&metrics, "NONSENSE");
    CHECK_EQ(metrics.codes[2], 2); /* ERR */
    bel__metrics_finish(&metrics);
}

int main(void)
{
    RUN(what_is_a_minute_old_is_forgotten);
    RUN(error_replies_are_counted_by_code);
    RUN(requests_are_counted);
    RUN(a_drain_sends_home_who_waits);
    RUN(a_caller_leaves_when_all_of_his_is_done);
    RUN(a_request_is_of_the_caller_it_was_submitted_to);
    RUN(a_census_counts_topics);
    RUN(meters_have_bounds);
    RUN(virtual_time_goes_through_what_is_due);
    return 0;
}
