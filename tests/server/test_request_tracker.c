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

/* Slices of a job that nobody waits for take turns, too: the histogram shows them. */
static void turns_without_requests_are_measured(void)
{
    setup();
    (void)turn();
    (void)turn();
    CHECK_EQ(metrics.turns, 0);
    CHECK_EQ(bel__meter_count(&metrics.turn), 2);
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
    for (uint64_t ms = 0; ms < 600000; ms += 1000) {
        struct bel_mono now = {ms * NS_PER_MS};
        bel__recent_record(&recent, ms < 300000 ? NS_PER_S : NS_PER_MS, now);
        uint64_t count = recent_count(&recent, ms), seconds = ms / 1000 + 1;
        CHECK(count <= 60 && count >= (seconds < 56 ? seconds : 56));
        struct bel_meter sum = bel__recent_sum(&recent, now);
        uint64_t want = ms < 300000 ? NS_PER_S : NS_PER_MS;
        bool is_mixed = ms >= 300000 && ms < 360000;
        if (!is_mixed) CHECK_EQ(bel__meter_quantile(&sum, 990), want);
    }
    CHECK(recent_count(&recent, 640000) > 0);
    CHECK_EQ(recent_count(&recent, 660000), 0);
    CHECK_EQ(recent_count(&recent, 6600000), 0);
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

/* --- requests that are held back --- */

/* A backend that holds back what a test says, and notes what it gets. */
static struct bel_request *got[16];
static size_t got_count;
static struct bel_next holds;

static void note_request(struct bel_backend *backend, struct bel_request *request)
{
    (void)backend;
    CHECK(got_count < sizeof got / sizeof got[0]);
    got[got_count++] = request;
}

static bool withdraw_none(struct bel_backend *backend, struct bel_request *request)
{
    (void)backend;
    (void)request;
    return false;
}

static struct bel_next hold_some(struct bel_backend *backend, struct bel_now now)
{
    (void)backend;
    (void)now;
    return holds;
}

static struct bel_backend holding = {
    .submit = note_request, .withdraw = withdraw_none, .turn = hold_some};

static void setup_holding(void)
{
    setup();
    bel__request_tracker_init(&tracker, &holding, &metrics, bel_clock_system());
    bel__caller_init(&one, &tracker);
    bel__caller_init(&other, &tracker);
    got_count = 0;
    holds = (struct bel_next){.due = {BEL_NEVER}, .wait = {BEL_NEVER}};
    holds.add.ns = server_clock.now.real.ns + SECOND_NS;
    (void)turn();
}

static struct bel_request of_verb(enum bel_verb verb)
{
    return (struct bel_request){.command = {.verb = verb}, .done = on_done};
}

static void answer_all(void)
{
    static const struct bel_reply nothing = {.err = 0};
    for (size_t i = 0; i < got_count; i++) {
        got[i]->done(got[i], &nothing);
    }
    got_count = 0;
}

static void only_the_caller_who_adds_waits(void)
{
    struct bel_request add = of_verb(BEL_VERB_SCHEDULE), get = of_verb(BEL_VERB_GET);
    struct bel_request ack = of_verb(BEL_VERB_ACK), read = of_verb(BEL_VERB_GET);
    setup_holding();
    submit(&add);
    submit(&get); /* must see what was added */
    CHECK(bel__caller_is_held(&one) && !bel__caller_is_held(&other));
    bel_backend_submit(&other.backend, &ack);
    bel_backend_submit(&other.backend, &read);
    CHECK_EQ(tracker.fresh, 4);
    CHECK_EQ(tracker.under_way, 4);
    struct bel_next next = turn();
    CHECK(got_count == 2 && got[0] == &ack && got[1] == &read);
    CHECK_EQ(next.wait.ns, holds.add.ns); /* when the next turn is needed */
    answer_all();

    server_clock.now.real.ns = holds.add.ns;
    holds.add.ns = 0;
    next = turn();
    CHECK(got_count == 2 && got[0] == &add && got[1] == &get);
    CHECK(!bel__caller_is_held(&one));
    CHECK_EQ(next.wait.ns, BEL_NEVER);
    answer_all();
    CHECK_EQ(done_count, 4);
    CHECK_EQ(tracker.under_way, 0);
    teardown();
}

/* The turn before did not know that somebody would wait: without another turn nobody would wake
 * when the hold ends. */
static void a_request_that_is_held_back_needs_a_turn(void)
{
    struct bel_request add = of_verb(BEL_VERB_SCHEDULE);
    setup_holding();
    CHECK_EQ(turn().wait.ns, BEL_NEVER);
    submit(&add);
    CHECK(tracker.fresh > 0);
    CHECK_EQ(turn().wait.ns, holds.add.ns);
    CHECK_EQ(tracker.fresh, 0);
    server_clock.now.real.ns = holds.add.ns;
    holds.add.ns = 0;
    (void)turn();
    CHECK_EQ(got_count, 1);
    answer_all();
    teardown();
}

static void requests_without_an_order_pass(void)
{
    struct bel_request add = of_verb(BEL_VERB_SCHEDULE), get = of_verb(BEL_VERB_GET);
    struct bel_request more = of_verb(BEL_VERB_REVIVE), ack = of_verb(BEL_VERB_ACK);
    setup_holding();
    one.is_unordered = true;
    submit(&add);
    submit(&get);
    submit(&more);
    submit(&ack);
    (void)turn();
    CHECK(got_count == 2 && got[0] == &get && got[1] == &ack);
    answer_all();
    holds.change = holds.add; /* now all that changes waits */
    (void)turn();
    submit(&ack);
    (void)turn();
    CHECK_EQ(got_count, 0);
    server_clock.now.real.ns = holds.add.ns;
    (void)turn();
    CHECK(got_count == 3 && got[0] == &add && got[1] == &more && got[2] == &ack);
    answer_all();
    teardown();
}

static void a_hold_may_end_early(void)
{
    struct bel_request add = of_verb(BEL_VERB_SCHEDULE);
    setup_holding();
    submit(&add);
    holds.add.ns = 0;
    struct bel_next next = turn();
    CHECK_EQ(got_count, 0);
    CHECK_EQ(next.wait.ns, 0); /* another turn, at once */
    next = turn();
    CHECK(got_count == 1 && next.wait.ns == BEL_NEVER);
    answer_all();
    teardown();
}

static void who_is_held_back_can_leave(void)
{
    static const struct bel_view topic = {"t", 1};
    struct bel_request add = of_verb(BEL_VERB_SCHEDULE), take = claim(&topic, LONG_MS);
    setup_holding();
    submit(&add);
    submit(&take);
    CHECK_EQ(one.waiting, 0);
    CHECK(bel_backend_withdraw(&one.backend, &take)); /* it has not begun */
    CHECK(take.done == on_done);
    bel__caller_leave(&one, on_left);
    CHECK_EQ(left_count, 0); /* what adds is done to its end */
    server_clock.now.real.ns = holds.add.ns;
    (void)turn();
    CHECK(got_count == 1 && got[0] == &add);
    answer_all();
    CHECK_EQ(left_count, 1);
    teardown();
}

int main(void)
{
    RUN(what_is_a_minute_old_is_forgotten);
    RUN(error_replies_are_counted_by_code);
    RUN(requests_are_counted);
    RUN(turns_without_requests_are_measured);
    RUN(a_drain_sends_home_who_waits);
    RUN(a_caller_leaves_when_all_of_his_is_done);
    RUN(a_request_is_of_the_caller_it_was_submitted_to);
    RUN(a_census_counts_topics);
    RUN(meters_have_bounds);
    RUN(virtual_time_goes_through_what_is_due);
    RUN(only_the_caller_who_adds_waits);
    RUN(a_request_that_is_held_back_needs_a_turn);
    RUN(requests_without_an_order_pass);
    RUN(a_hold_may_end_early);
    RUN(who_is_held_back_can_leave);
    return 0;
}
