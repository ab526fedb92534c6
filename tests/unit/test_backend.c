/* SPDX-License-Identifier: MIT */

/*
 * The parts that every backend shares: bel_clock_now(), and bel_backend_call() for programs without
 * a loop. The backend here is an engine in memory.
 */
#include "belfry/engine.h"

#include "../check.h"

#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define START ((struct bel_wall){INT64_C(1767225600000)})
#define MS    UINT64_C(1000000)

enum {
    MANY = 2500 /* more than a purge takes in one turn */
};

static struct bel_clock_fake *fake;
static const struct bel_clock *clock;
static struct bel_engine *engine;
static struct bel_backend *backend;

static void open_engine(void)
{
    CHECK(bel_clock_fake_create(START, &fake) == 0);
    clock = bel_clock_fake_clock(fake);
    struct bel_engine_options options = {.now = bel_clock_now(clock)};
    CHECK(bel_engine_open(&options, &engine, NULL) == 0);
    backend = bel_engine_backend(engine);
}

static void close_engine(void)
{
    bel_engine_close(engine);
    bel_clock_fake_destroy(fake);
}

/* The reply to a request, if there was one. */
struct told {
    int times, err;
    uint64_t count;
};

static void tell(struct bel_request *request, const struct bel_reply *reply)
{
    struct told *told = request->user;
    CHECK(request->done == tell); /* as the caller has set it */
    told->times++;
    told->err = reply->err;
    told->count = request->command.verb == BEL_VERB_CLAIM ? reply->deliveries.count : reply->count;
}

static int schedule(uint64_t delay_ms)
{
    struct bel_request request = {
        .command = {
            .verb = BEL_VERB_SCHEDULE,
            .schedule = {.topic = BEL_VIEW("mail"), .when = BEL_WHEN_IN, .delay_ms = delay_ms}}};
    return bel_backend_call(backend, clock, &request);
}

static struct bel_request claim_of(uint64_t wait_ms, struct told *told)
{
    static const struct bel_view topic = {.data = "mail", .bytes = 4};
    return (struct bel_request){
        .command = {.verb = BEL_VERB_CLAIM,
                    .claim = {.topics = &topic, .topics_count = 1, .wait_ms = wait_ms}},
        .done = tell,
        .user = told};
}

static void a_moment_has_all_three_times(void)
{
    open_engine();
    bel_clock_fake_advance(fake, 5 * MS);
    bel_clock_fake_suspend(fake, 2 * MS);
    bel_clock_fake_step(fake, 100);
    struct bel_now now = bel_clock_now(clock);
    CHECK_EQ(now.real.ns, 5 * MS);
    CHECK_EQ(now.boot.ns, 7 * MS);
    CHECK(now.wall.ms == START.ms + 107);
    close_engine();
}

static void a_call_is_done_when_it_returns(void)
{
    struct told told = {0};
    open_engine();
    CHECK(schedule(0) == 0);
    struct bel_request claim = claim_of(0, &told);
    CHECK(bel_backend_call(backend, clock, &claim) == 0);
    CHECK(told.times == 1 && told.count == 1);
    CHECK(claim.done == tell && claim.user == &told);
    close_engine();
}

static void a_call_returns_the_error_of_the_reply(void)
{
    struct told told = {0};
    open_engine();
    struct bel_request request = {
        .command = {.verb = BEL_VERB_TOPIC, .target = {.topic = BEL_VIEW("nowhere")}},
        .done = tell,
        .user = &told};
    CHECK(bel_backend_call(backend, clock, &request) == BEL_ENOTFOUND);
    CHECK(told.times == 1 && told.err == BEL_ENOTFOUND);
    close_engine();
}

static void a_claim_that_would_have_to_wait_is_taken_back(void)
{
    struct told told = {0};
    open_engine();
    CHECK(schedule(1000) == 0);
    struct bel_request claim = claim_of(60000, &told);
    CHECK(bel_backend_call(backend, clock, &claim) == BEL_EBUSY);
    CHECK(told.times == 0 && claim.done == tell && claim.user == &told);

    struct bel_next next = bel_backend_turn(backend, bel_clock_now(clock));
    CHECK_EQ(next.wait.ns, BEL_NEVER); /* no claim waits */
    CHECK_EQ(next.due.ns, 1000 * MS);
    bel_clock_fake_advance(fake, 1000 * MS);
    CHECK(bel_backend_call(backend, clock, &claim) == 0);
    CHECK(told.times == 1 && told.count == 1);
    close_engine();
}

static void a_call_takes_as_many_turns_as_are_needed(void)
{
    struct told told = {0};
    open_engine();
    for (int i = 0; i < MANY; i++) {
        CHECK(schedule(1000) == 0);
    }
    struct bel_request purge = {.command = {.verb = BEL_VERB_PURGE,
                                            .purge = {.topic = BEL_VIEW("mail"),
                                                      .has_state = true,
                                                      .state = BEL_SCHEDULED}},
                                .done = tell,
                                .user = &told};
    CHECK(bel_backend_call(backend, clock, &purge) == 0);
    CHECK_EQ(told.count, MANY);
    close_engine();
}

static void what_others_have_submitted_is_done_along(void)
{
    struct told waits = {0}, told = {0};
    open_engine();
    struct bel_request first = claim_of(60000, &waits), second = claim_of(0, &told);
    bel_backend_submit(backend, &first);
    CHECK(bel_backend_call(backend, clock, &second) == 0);
    CHECK(waits.times == 0 && told.times == 1 && told.count == 0);
    CHECK(schedule(0) == 0);
    CHECK(waits.times == 1 && waits.count == 1);
    close_engine();
}

/* --- a backend that waits for another process: its reply comes with an eventfd --- */

struct remote {
    struct bel_backend backend; /* first */
    struct bel_request *request;
    int fd;
    int turns;
};

static void remote_submit(struct bel_backend *remote, struct bel_request *request)
{
    ((struct remote *)remote)->request = request;
}

static bool remote_withdraw(struct bel_backend *remote, struct bel_request *request)
{
    (void)remote;
    (void)request;
    return false;
}

static int remote_descriptor(const struct bel_backend *remote)
{
    return ((const struct remote *)remote)->fd;
}

static struct bel_next remote_turn(struct bel_backend *self, struct bel_now now)
{
    struct remote *remote = (struct remote *)self;
    eventfd_t arrived;
    (void)now;
    remote->turns++;
    if (remote->turns == 2) CHECK(eventfd_read(remote->fd, &arrived) == 0);
    if (remote->turns == 2) remote->request->done(remote->request, &(struct bel_reply){0});
    if (remote->turns == 1) CHECK(eventfd_write(remote->fd, 1) == 0);
    return (struct bel_next){.due = {BEL_NEVER}, .wait = {BEL_NEVER}};
}

static void a_call_sleeps_until_the_descriptor_is_readable(void)
{
    struct remote remote = {.backend = {.submit = remote_submit,
                                        .withdraw = remote_withdraw,
                                        .turn = remote_turn,
                                        .descriptor = remote_descriptor},
                            .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    struct bel_request request = {.command = {.verb = BEL_VERB_TOPICS}};
    CHECK(bel_backend_call(&remote.backend, bel_clock_system(), &request) == 0);
    CHECK(remote.turns == 2);
    (void)close(remote.fd);
}

static void an_engine_has_no_descriptor(void)
{
    open_engine();
    CHECK(bel_backend_descriptor(backend) == -1);
    close_engine();
}

int main(void)
{
    RUN(a_moment_has_all_three_times);
    RUN(a_call_is_done_when_it_returns);
    RUN(a_call_returns_the_error_of_the_reply);
    RUN(a_claim_that_would_have_to_wait_is_taken_back);
    RUN(a_call_takes_as_many_turns_as_are_needed);
    RUN(what_others_have_submitted_is_done_along);
    RUN(a_call_sleeps_until_the_descriptor_is_readable);
    RUN(an_engine_has_no_descriptor);
    return 0;
}
