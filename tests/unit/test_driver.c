/* SPDX-License-Identifier: MIT */

/*
 * Threads around an engine in memory, and around a backend that does only what a case needs. Only
 * threads that wait for a reply sleep; an alarm ends a case that blocks.
 */
#include "belfry/driver.h"
#include "belfry/engine.h"

#include "../actor.h"
#include "../check.h"

#include <ftw.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define START ((struct bel_wall){INT64_C(1767225600000)})
#define MS    UINT64_C(1000000)
#define HOUR  UINT64_C(3600000) /* ms */

enum {
    PATIENCE_S = 100,
    CALLS = 1000,
    THREADS = 4,
    TIMERS = 300, /* of each thread */
    ROUNDS = 50,
    IN_FLIGHT = 64,
};

static struct bel_clock_fake *fake;
static struct bel_engine *engine;
static struct bel_driver *driver;

static void open_engine(const struct bel_clock *clock, const char *folder)
{
    struct bel_engine_options options = {.folder = folder, .now = bel_clock_now(clock)};
    CHECK(bel_engine_open(&options, &engine, NULL) == 0);
}

/* Starts a driver for an engine in memory, on a fake clock. */
static void start(void)
{
    (void)alarm(PATIENCE_S);
    CHECK(bel_clock_fake_create(START, &fake) == 0);
    open_engine(bel_clock_fake_clock(fake), NULL);
    CHECK(bel_driver_start(bel_engine_backend(engine), bel_clock_fake_clock(fake), &driver) == 0);
}

static void end(void)
{
    bel_driver_destroy(driver);
    bel_engine_close(engine);
    bel_clock_fake_destroy(fake);
    fake = NULL;
}

/* Starts a driver on the system clock. */
static void start_live(const char *folder)
{
    (void)alarm(PATIENCE_S);
    open_engine(bel_clock_system(), folder);
    CHECK(bel_driver_start(bel_engine_backend(engine), NULL, &driver) == 0);
}

/* A request with its reply. */
struct ask {
    struct bel_request request; /* first */
    struct bel_view topic;
    sem_t is_done;
    int times, err;
    uint64_t count;
    char token[BEL_TOKEN_BYTES_MAX];
    size_t token_bytes;
    pthread_t thread; /* that called `done` */
};

static void tell(struct bel_request *request, const struct bel_reply *reply)
{
    struct ask *ask = request->user;
    ask->times++;
    ask->err = reply->err;
    ask->thread = pthread_self();
    ask->count = reply->count;
    if (request->command.verb == BEL_VERB_CLAIM) {
        ask->count = reply->deliveries.count;
        if (ask->count > 0) {
            struct bel_view token = reply->deliveries.items[0].token;
            CHECK(token.bytes <= sizeof ask->token);
            memcpy(ask->token, token.data, token.bytes);
            ask->token_bytes = token.bytes;
        }
    }
    CHECK(sem_post(&ask->is_done) == 0);
}

static void ask_init(struct ask *ask, enum bel_verb verb)
{
    *ask = (struct ask){.request = {.command = {.verb = verb}, .done = tell}};
    ask->request.user = ask;
    CHECK(sem_init(&ask->is_done, 0, 0) == 0);
}

static void await(struct ask *ask)
{
    while (sem_wait(&ask->is_done) != 0) {}
}

static void init_schedule(struct ask *ask, uint64_t delay_ms)
{
    ask_init(ask, BEL_VERB_SCHEDULE);
    ask->request.command.schedule = (struct bel_schedule_spec){
        .topic = BEL_VIEW("mail"), .when = BEL_WHEN_IN, .delay_ms = delay_ms};
}

static void init_claim(struct ask *ask, uint64_t wait_ms)
{
    ask_init(ask, BEL_VERB_CLAIM);
    ask->topic = BEL_VIEW("mail");
    ask->request.command.claim =
        (struct bel_claim){.topics = &ask->topic, .topics_count = 1, .wait_ms = wait_ms};
}

static void schedule(uint64_t delay_ms)
{
    struct ask ask;
    init_schedule(&ask, delay_ms);
    CHECK(bel_driver_call(driver, &ask.request) == 0);
}

static void submit(struct ask *ask)
{
    CHECK(bel_driver_submit(driver, &ask->request) == 0);
}

/* Counts the timers of the topic in a state, once the backend belongs to the test again. */
static void note_topic(struct bel_request *request, const struct bel_reply *reply)
{
    CHECK(reply->err == 0);
    memcpy(request->user, reply->topic->counts, sizeof reply->topic->counts);
}

static uint64_t count_in(enum bel_state state)
{
    uint64_t counts[BEL_STATES];
    struct bel_request request = {
        .command = {.verb = BEL_VERB_TOPIC, .target = {.topic = BEL_VIEW("mail")}},
        .done = note_topic,
        .user = counts};
    const struct bel_clock *clock = fake != NULL ? bel_clock_fake_clock(fake) : bel_clock_system();
    CHECK(bel_backend_call(bel_engine_backend(engine), clock, &request) == 0);
    return counts[state];
}

/* --- requests --- */

static void requests_are_done_on_the_thread_of_the_driver(void)
{
    struct ask one, two;
    start();
    init_schedule(&one, 0);
    init_claim(&two, 0);
    submit(&one);
    submit(&two);
    await(&two);
    await(&one);
    CHECK(one.err == 0 && two.err == 0 && two.count == 1);
    CHECK(!pthread_equal(one.thread, pthread_self()));
    CHECK(pthread_equal(one.thread, two.thread));
    CHECK(one.request.done == tell);
    end();
}

static void a_call_returns_when_it_is_done(void)
{
    struct ask ask;
    start();
    init_schedule(&ask, 0);
    CHECK(bel_driver_call(driver, &ask.request) == 0);
    CHECK(ask.times == 1 && ask.request.done == tell && ask.request.user == &ask);
    ask.request.command.schedule.topic = BEL_VIEW("not a topic");
    CHECK(bel_driver_call(driver, &ask.request) == BEL_EINVAL);
    CHECK(ask.times == 2 && ask.err == BEL_EINVAL);
    ask.request.done = NULL; /* only the error is of interest */
    CHECK(bel_driver_call(driver, &ask.request) == BEL_EINVAL);
    CHECK(ask.times == 2 && ask.request.done == NULL);
    end();
}

static void call_from_done(struct bel_request *request, const struct bel_reply *reply)
{
    struct ask inner;
    init_schedule(&inner, 0);
    CHECK(reply->err == 0);
    CHECK(bel_driver_call(driver, &inner.request) == BEL_EBUSY);
    CHECK(bel_driver_stop(driver) == BEL_EBUSY);
    CHECK(inner.times == 0 && inner.request.done == tell && inner.request.user == &inner);
    tell(request, reply);
}

static void its_own_thread_can_neither_call_nor_stop(void)
{
    struct ask ask;
    start();
    init_schedule(&ask, 0);
    ask.request.done = call_from_done;
    submit(&ask);
    await(&ask);
    end();
}

static void submit_again(struct bel_request *request, const struct bel_reply *reply)
{
    struct ask *ask = request->user;
    CHECK(reply->err == 0 && request->done == submit_again);
    if (++ask->count < CALLS) {
        CHECK(bel_driver_submit(driver, request) == 0);
    } else {
        CHECK(sem_post(&ask->is_done) == 0);
    }
}

static void done_may_submit_the_same_request_again(void)
{
    struct ask ask;
    start();
    init_schedule(&ask, 0);
    ask.request.done = submit_again;
    submit(&ask);
    await(&ask);
    CHECK(bel_driver_stop(driver) == 0);
    CHECK_EQ(count_in(BEL_READY), CALLS);
    end();
}

static void submit_to_the_backend(struct bel_request *request, const struct bel_reply *reply)
{
    struct ask *ask = request->user;
    CHECK(reply->err == 0);
    request->done = tell;
    if (request->command.verb == BEL_VERB_CLAIM) request->command.claim.wait_ms = 0;
    bel_backend_submit(bel_engine_backend(engine), &ask->request);
}

static void done_may_use_the_backend(void)
{
    struct ask ask;
    start();
    init_schedule(&ask, 0);
    ask.request.done = submit_to_the_backend;
    submit(&ask);
    await(&ask);
    CHECK(bel_driver_stop(driver) == 0);
    CHECK_EQ(count_in(BEL_READY), 2);
    end();
}

static void free_it(struct bel_request *request, const struct bel_reply *reply)
{
    CHECK(reply->err == 0);
    free(request);
}

static void done_may_free_the_request(void)
{
    start();
    for (int i = 0; i < CALLS; i++) {
        struct bel_request *request = calloc(1, sizeof *request);
        CHECK(request != NULL);
        request->command.schedule.topic = BEL_VIEW("mail");
        request->done = free_it;
        CHECK(bel_driver_submit(driver, request) == 0);
    }
    CHECK(bel_driver_stop(driver) == 0);
    CHECK_EQ(count_in(BEL_READY), CALLS);
    end();
}

/* --- time --- */

static void a_claim_waits_for_what_another_thread_schedules(void)
{
    struct ask claim;
    start();
    init_claim(&claim, 60000);
    submit(&claim);
    schedule(0);
    await(&claim);
    CHECK_EQ(claim.count, 1);
    end();
}

static void a_fake_clock_is_noticed_when_the_driver_is_woken(void)
{
    struct ask claim, wait;
    start();
    schedule(HOUR);
    init_claim(&claim, 2 * HOUR);
    submit(&claim);
    schedule(4 * HOUR); /* the claim waits by now */
    bel_clock_fake_advance(fake, HOUR * MS);
    bel_driver_wake(driver);
    await(&claim);
    CHECK_EQ(claim.count, 1);

    init_claim(&wait, 10000); /* less than the lease */
    submit(&wait);
    schedule(4 * HOUR);
    bel_clock_fake_advance(fake, 10000 * MS);
    bel_driver_wake(driver);
    await(&wait);
    CHECK_EQ(wait.count, 0);
    end();
}

static void the_clock_of_the_system_wakes_it(void)
{
    struct ask claim, wait;
    start_live(NULL);
    init_claim(&wait, 10);
    uint64_t begin = bel_clock_mono(bel_clock_system()).ns;
    CHECK(bel_driver_call(driver, &wait.request) == 0);
    CHECK_EQ(wait.count, 0);
    CHECK(bel_clock_mono(bel_clock_system()).ns - begin >= 10 * MS);

    begin = bel_clock_boot(bel_clock_system()).ns;
    schedule(20);
    init_claim(&claim, 90000);
    CHECK(bel_driver_call(driver, &claim.request) == 0);
    CHECK_EQ(claim.count, 1);
    CHECK(bel_clock_boot(bel_clock_system()).ns - begin >= 19 * MS); /* whole ms, rounded down */
    bel_driver_destroy(driver);
    bel_engine_close(engine);
}

/* --- a backend that counts its turns, and replies on demand --- */

struct slow {
    struct bel_backend backend; /* first */
    struct bel_request *first;
    atomic_uint turns;
    atomic_bool holds; /* holds back all replies */
};

static void slow_submit(struct bel_backend *backend, struct bel_request *request)
{
    struct slow *slow = (struct slow *)backend;
    request->own.next = slow->first;
    slow->first = request;
}

static bool slow_withdraw(struct bel_backend *backend, struct bel_request *request)
{
    (void)backend;
    (void)request;
    return false;
}

static struct bel_next slow_turn(struct bel_backend *backend, struct bel_now now)
{
    struct slow *slow = (struct slow *)backend;
    (void)now;
    CHECK(driver != NULL); /* a thread that it wakes can use it */
    atomic_fetch_add(&slow->turns, 1);
    while (slow->first != NULL && !atomic_load(&slow->holds)) {
        struct bel_request *request = slow->first;
        slow->first = request->own.next;
        request->done(request, &(struct bel_reply){0});
    }
    return (struct bel_next){.due = {BEL_NEVER}, .wait = {BEL_NEVER}};
}

static struct slow slow;

static void start_slow(bool holds)
{
    (void)alarm(PATIENCE_S);
    slow = (struct slow){
        .backend = {.submit = slow_submit, .withdraw = slow_withdraw, .turn = slow_turn}};
    atomic_store(&slow.holds, holds);
    driver = NULL;
    CHECK(bel_driver_start(&slow.backend, NULL, &driver) == 0);
}

static void there_is_no_turn_without_a_reason(void)
{
    struct ask ask;
    start_slow(false);
    init_schedule(&ask, 0);
    for (int i = 0; i < CALLS; i++) {
        CHECK(bel_driver_call(driver, &ask.request) == 0);
    }
    unsigned turns = atomic_load(&slow.turns);
    CHECK_NOTE("%u turns", turns);
    CHECK(turns >= CALLS && turns <= CALLS + 1); /* the first turn may come before any request */
    bel_driver_destroy(driver);
}

static void stop_it(void *arg)
{
    (void)arg;
    CHECK(bel_driver_stop(driver) == 0);
}

static void a_stop_waits_for_answers_that_come_later(void)
{
    struct ask ask;
    struct actor stopper;
    actor_start(&stopper);
    start_slow(true);
    init_schedule(&ask, 0);
    submit(&ask);
    actor_begin(&stopper, stop_it, NULL);
    unsigned turns = atomic_load(&slow.turns);
    while (atomic_load(&slow.turns) < turns + 3) {
        bel_driver_wake(driver);
    }
    CHECK(sem_trywait(&ask.is_done) != 0);
    atomic_store(&slow.holds, false);
    bel_driver_wake(driver);
    actor_await(&stopper);
    CHECK_EQ((uint64_t)ask.times, 1);
    bel_driver_destroy(driver);
    actor_stop(&stopper);
}

/* --- stopping --- */

static void a_stop_finishes_what_was_submitted(void)
{
    static struct ask asks[CALLS];
    start();
    for (int i = 0; i < CALLS; i++) {
        init_schedule(&asks[i], 0);
        submit(&asks[i]);
    }
    CHECK(bel_driver_stop(driver) == 0);
    for (int i = 0; i < CALLS; i++) {
        CHECK(asks[i].times == 1 && asks[i].err == 0);
    }
    CHECK_EQ(count_in(BEL_READY), CALLS);
    end();
}

static void a_stop_answers_those_who_wait_with_nothing(void)
{
    struct ask waits[3], served;
    start();
    init_claim(&served, 60000);
    submit(&served);
    for (int i = 0; i < 3; i++) {
        init_claim(&waits[i], 60000);
        submit(&waits[i]);
    }
    struct ask timer;
    init_schedule(&timer, 0);
    submit(&timer);
    CHECK(bel_driver_stop(driver) == 0);
    CHECK(served.times == 1 && served.count == 1); /* there was a timer for the first claim */
    for (int i = 0; i < 3; i++) {
        CHECK(waits[i].times == 1 && waits[i].err == 0 && waits[i].count == 0);
    }
    end();
}

static void a_drain_sends_those_who_wait_home_and_lets_others_finish(void)
{
    struct ask worker, waits, late, ack;
    start();
    schedule(0);
    init_claim(&worker, 60000);
    CHECK(bel_driver_call(driver, &worker.request) == 0);
    CHECK_EQ(worker.count, 1);
    init_claim(&waits, 60000);
    submit(&waits);
    bel_driver_drain(driver);
    await(&waits);
    CHECK(waits.err == 0 && waits.count == 0);
    init_claim(&late, 60000);
    CHECK(bel_driver_call(driver, &late.request) == 0);
    CHECK_EQ(late.count, 0);

    struct bel_view token = {.data = worker.token, .bytes = worker.token_bytes};
    ask_init(&ack, BEL_VERB_ACK);
    ack.request.command.ack = (struct bel_ack){.tokens = &token, .tokens_count = 1};
    CHECK(bel_driver_call(driver, &ack.request) == 0);
    CHECK_EQ(ack.count, 1);
    schedule(0);
    CHECK(bel_driver_call(driver, &late.request) == 0); /* ready timers are delivered */
    CHECK_EQ(late.count, 1);
    end();
}

static void who_is_sent_home_may_use_the_backend(void)
{
    struct ask claim;
    start();
    init_claim(&claim, 60000);
    claim.request.done = submit_to_the_backend;
    submit(&claim);
    schedule(60000);
    bel_driver_drain(driver);
    await(&claim);
    CHECK_EQ(claim.count, 0);
    end();
}

static void who_comes_after_a_stop_is_refused(void)
{
    struct ask ask;
    start();
    CHECK(bel_driver_stop(driver) == 0);
    CHECK(bel_driver_stop(driver) == 0);
    init_schedule(&ask, 0);
    CHECK(bel_driver_submit(driver, &ask.request) == BEL_ECLOSED);
    CHECK(bel_driver_call(driver, &ask.request) == BEL_ECLOSED);
    CHECK(ask.times == 0 && ask.request.done == tell && ask.request.user == &ask);
    bel_driver_wake(driver);
    end();
    bel_driver_destroy(NULL);
}

static void done_is_refused_once_it_stops(struct bel_request *request,
                                          const struct bel_reply *reply)
{
    struct ask *ask = request->user;
    CHECK(reply->err == 0);
    ask->times++;
    ask->err = bel_driver_submit(driver, request);
}

static void a_request_that_always_comes_again_does_not_keep_it(void)
{
    struct ask ask;
    start();
    init_schedule(&ask, 0);
    ask.request.done = done_is_refused_once_it_stops;
    submit(&ask);
    CHECK(bel_driver_stop(driver) == 0);
    CHECK(ask.times >= 1 && ask.err == BEL_ECLOSED);
    CHECK_EQ(count_in(BEL_READY), (uint64_t)ask.times);
    end();
}

/* Submits until the driver refuses, a few requests at a time. */
struct producer {
    struct actor actor;
    atomic_int done;
    int accepted;
};

static void count_done(struct bel_request *request, const struct bel_reply *reply)
{
    struct producer *producer = request->user;
    CHECK(reply->err == 0);
    atomic_fetch_add(&producer->done, 1);
    free(request);
}

static void submit_until_refused(void *arg)
{
    struct producer *producer = arg;
    for (;;) {
        struct bel_request *request = calloc(1, sizeof *request);
        CHECK(request != NULL);
        request->command.schedule.topic = BEL_VIEW("mail");
        request->done = count_done;
        request->user = producer;
        int err = bel_driver_submit(driver, request);
        if (err) {
            CHECK(err == BEL_ECLOSED);
            free(request);
            return;
        }
        producer->accepted++;
        while (producer->accepted - atomic_load(&producer->done) >= IN_FLIGHT) {
            (void)sched_yield();
        }
    }
}

static void what_races_with_a_stop_is_done_or_refused(void)
{
    static struct producer producers[THREADS];
    struct actor stoppers[2];
    for (int i = 0; i < THREADS; i++) {
        actor_start(&producers[i].actor);
    }
    actor_start(&stoppers[0]);
    actor_start(&stoppers[1]);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t accepted = 0;
        start();
        for (int i = 0; i < THREADS; i++) {
            producers[i].accepted = 0;
            atomic_store(&producers[i].done, 0);
            actor_begin(&producers[i].actor, submit_until_refused, &producers[i]);
        }
        while (atomic_load(&producers[0].done) < round) {
            (void)sched_yield();
        }
        actor_begin(&stoppers[0], stop_it, NULL);
        actor_begin(&stoppers[1], stop_it, NULL);
        for (int i = 0; i < THREADS; i++) {
            actor_await(&producers[i].actor);
        }
        actor_await(&stoppers[0]);
        actor_await(&stoppers[1]);
        for (int i = 0; i < THREADS; i++) {
            CHECK(producers[i].accepted == atomic_load(&producers[i].done));
            accepted += (uint64_t)producers[i].accepted;
        }
        if (accepted > 0) CHECK_EQ(count_in(BEL_READY), accepted);
        end();
    }
    actor_stop(&stoppers[0]);
    actor_stop(&stoppers[1]);
    for (int i = 0; i < THREADS; i++) {
        actor_stop(&producers[i].actor);
    }
}

/* --- stress --- */

static atomic_int acked;

static void schedule_all(void *arg)
{
    (void)arg;
    for (int i = 0; i < TIMERS; i++) {
        schedule(i % 3 == 0 ? 0 : (uint64_t)(i % 20));
    }
}

/* Claims and acks until the driver stops. */
static void work(void *arg)
{
    (void)arg;
    for (;;) {
        struct ask claim, ack;
        init_claim(&claim, 1000);
        if (bel_driver_call(driver, &claim.request) == BEL_ECLOSED) return;
        CHECK(claim.err == 0);
        if (claim.count == 0) continue;
        CHECK(claim.count == 1);
        struct bel_view token = {.data = claim.token, .bytes = claim.token_bytes};
        ask_init(&ack, BEL_VERB_ACK);
        ack.request.command.ack = (struct bel_ack){.tokens = &token, .tokens_count = 1};
        int err = bel_driver_call(driver, &ack.request);
        if (err == BEL_ECLOSED) return;
        CHECK(err == 0 && ack.count == 1);
        atomic_fetch_add(&acked, 1);
    }
}

static void many_threads_schedule_claim_and_ack_at_once(void)
{
    struct actor producers[THREADS], workers[THREADS];
    start_live(NULL);
    atomic_store(&acked, 0);
    for (int i = 0; i < THREADS; i++) {
        actor_start(&producers[i]);
        actor_start(&workers[i]);
        actor_begin(&workers[i], work, NULL);
        actor_begin(&producers[i], schedule_all, NULL);
    }
    for (int i = 0; i < THREADS; i++) {
        actor_await(&producers[i]);
    }
    while (atomic_load(&acked) < THREADS * TIMERS) {
        struct ask pulse; /* a waiting claim, so that nothing spins */
        init_claim(&pulse, 5);
        static const struct bel_view other = {.data = "nothing", .bytes = 7};
        pulse.request.command.claim.topics = &other;
        CHECK(bel_driver_call(driver, &pulse.request) == 0);
    }
    CHECK(bel_driver_stop(driver) == 0);
    for (int i = 0; i < THREADS; i++) {
        actor_stop(&producers[i]);
        actor_stop(&workers[i]);
    }
    CHECK(atomic_load(&acked) == THREADS * TIMERS);
    CHECK_EQ(count_in(BEL_SCHEDULED) + count_in(BEL_READY) + count_in(BEL_LEASED), 0);
    bel_driver_destroy(driver);
    bel_engine_close(engine);
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    (void)about;
    (void)kind;
    (void)place;
    return remove(path);
}

static void a_backend_is_handed_over_and_back(void)
{
    char folder[] = "/tmp/test_driver.XXXXXX";
    CHECK(mkdtemp(folder) != NULL);
    for (uint64_t round = 1; round <= 3; round++) {
        start_live(folder);
        schedule(0);
        CHECK(bel_driver_stop(driver) == 0);
        CHECK_EQ(count_in(BEL_READY), round);
        bel_driver_destroy(driver);
        CHECK(bel_driver_start(bel_engine_backend(engine), NULL, &driver) == 0);
        bel_driver_destroy(driver);
        bel_engine_close(engine);
    }
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the others have ended */
    CHECK(nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS) == 0);
}

static void wake(void *context)
{
    bel_driver_wake(*(struct bel_driver **)context);
}

/* A thread of the engine syncs, and wakes the driver when replies can leave. */
static void answers_leave_when_another_thread_has_synced_them(void)
{
    char folder[] = "/tmp/test_driver.XXXXXX";
    struct actor producers[THREADS];
    static struct ask last[THREADS];
    CHECK(mkdtemp(folder) != NULL);
    (void)alarm(PATIENCE_S);
    struct bel_engine_options options = {.folder = folder,
                                         .now = bel_clock_now(bel_clock_system()),
                                         .sync = BEL_ENGINE_SYNC_IN_THREAD,
                                         .wake = wake,
                                         .context = &driver};
    CHECK(bel_engine_open(&options, &engine, NULL) == 0);
    CHECK(bel_driver_start(bel_engine_backend(engine), NULL, &driver) == 0);
    for (int i = 0; i < THREADS; i++) {
        actor_start(&producers[i]);
        actor_begin(&producers[i], schedule_all, NULL);
    }
    for (int i = 0; i < THREADS; i++) {
        actor_stop(&producers[i]);
        init_schedule(&last[i], 0);
        submit(&last[i]);
    }
    CHECK(bel_driver_stop(driver) == 0);
    for (int i = 0; i < THREADS; i++) {
        CHECK(last[i].times == 1 && last[i].err == 0);
    }
    bel_engine_close(engine);
    open_engine(bel_clock_system(), folder); /* everything is still there */
    CHECK_EQ(count_in(BEL_READY) + count_in(BEL_SCHEDULED), (uint64_t)THREADS * (TIMERS + 1));
    bel_engine_close(engine);
    bel_driver_destroy(driver);
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the others have ended */
    CHECK(nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS) == 0);
}

int main(void)
{
    RUN(requests_are_done_on_the_thread_of_the_driver);
    RUN(a_call_returns_when_it_is_done);
    RUN(its_own_thread_can_neither_call_nor_stop);
    RUN(done_may_submit_the_same_request_again);
    RUN(done_may_use_the_backend);
    RUN(done_may_free_the_request);
    RUN(a_claim_waits_for_what_another_thread_schedules);
    RUN(a_fake_clock_is_noticed_when_the_driver_is_woken);
    RUN(the_clock_of_the_system_wakes_it);
    RUN(there_is_no_turn_without_a_reason);
    RUN(a_stop_waits_for_answers_that_come_later);
    RUN(a_stop_finishes_what_was_submitted);
    RUN(a_stop_answers_those_who_wait_with_nothing);
    RUN(a_drain_sends_those_who_wait_home_and_lets_others_finish);
    RUN(who_is_sent_home_may_use_the_backend);
    RUN(who_comes_after_a_stop_is_refused);
    RUN(a_request_that_always_comes_again_does_not_keep_it);
    RUN(what_races_with_a_stop_is_done_or_refused);
    RUN(many_threads_schedule_claim_and_ack_at_once);
    RUN(answers_leave_when_another_thread_has_synced_them);
    RUN(a_backend_is_handed_over_and_back);
    return 0;
}
