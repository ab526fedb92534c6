/* SPDX-License-Identifier: MIT */

/*
 * The limits of a call: the work of one poll, and the memory of other threads that it does not
 * touch. On a fake clock and by inspecting the runtime.
 */
#include "belfry/runtime.h"

#include "../actor.h"
#include "../random.h"
#include "runtime/worker.h"

#include <string.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
#define S  (1000 * MS)

enum {
    KIND = 1,
    KIND_INBOX,
    CROWD = 3 * TURN_MAX,
    PATIENCE_S = 100,
};

static struct bel_clock_fake *fake;
static struct bel_runtime *runtime;
static struct bel_worker *worker;
static struct bel_inbox *inbox;
static struct actor sender;
static uint64_t rung, last;

static void ring(void *context, const struct bel_event *event)
{
    (void)context;
    rung++;
    last = event->user;
}

static void open_with(uint32_t timers_max)
{
    (void)alarm(PATIENCE_S);
    CHECK(bel_clock_fake_create((struct bel_wall){0}, &fake) == 0);
    bel_clock_fake_advance(fake, 10 * S);
    struct bel_runtime_options options = {.clock = bel_clock_fake_clock(fake),
                                          .metronome = BEL_METRONOME_MANUAL,
                                          .timers_max = timers_max};
    CHECK(bel_runtime_create(&options, &runtime) == 0);
    CHECK(bel_inbox_create(runtime, &inbox) == 0);
    CHECK(bel_runtime_on(runtime, KIND, ring, NULL) == 0);
    CHECK(bel_runtime_on_inbox(runtime, KIND_INBOX, inbox) == 0);
    CHECK(bel_worker_enter(runtime, &worker) == 0);
    actor_start(&sender);
    rung = 0;
}

static void close_all(void)
{
    actor_stop(&sender);
    bel_runtime_destroy(runtime);
    bel_clock_fake_destroy(fake);
}

static uint64_t now(void)
{
    return bel_clock_boot(bel_clock_fake_clock(fake)).ns;
}

static bel_timer_t schedule(uint64_t delay, uint64_t user)
{
    bel_timer_t timer;
    struct bel_schedule options = {
        .due = {now() + delay}, .kind = KIND, .user = user, .priority = BEL_PRIORITY_DEFAULT};
    CHECK(bel_runtime_schedule(runtime, &options, &timer) == 0);
    return timer;
}

static struct bel_runtime_stats stats(void)
{
    struct bel_runtime_stats out;
    bel_runtime_stats(runtime, NULL, &out);
    return out;
}

static void send_crowd(void *arg)
{
    (void)arg;
    for (uint64_t i = 1; i <= CROWD; i++) {
        bel_timer_t timer;
        struct bel_schedule options = {.due = {now()},
                                       .kind = KIND,
                                       .user = i,
                                       .priority = BEL_PRIORITY_DEFAULT,
                                       .worker = worker};
        CHECK(bel_runtime_schedule(runtime, &options, &timer) == 0);
    }
}

/* All are due at the same instant, so they ring in the order in which they were sent. */
static void a_poll_takes_in_a_bounded_part_of_what_others_sent_and_keeps_its_order(void)
{
    open_with(0);
    actor_do(&sender, send_crowd, NULL);
    CHECK_EQ(bel_worker_poll(worker, 0), 0);
    CHECK(worker->backlog.unturned != NULL); /* it did not even reverse all of them */
    CHECK_EQ(stats().inbox, CROWD);
    struct bel_runtime_stats own;
    bel_runtime_stats(runtime, worker, &own);
    CHECK_EQ(own.inbox, CROWD);
    CHECK(bel_worker_next(worker).ns <= now());
    for (uint64_t before = stats().inbox; before > 0; before = stats().inbox) {
        CHECK(bel_worker_next(worker).ns <= now());
        CHECK_EQ(bel_worker_poll(worker, 0), 0);
        CHECK(before - stats().inbox <= INTAKE_MAX);
    }
    while (rung < CROWD) {
        uint64_t next = rung + 1;
        CHECK_EQ(bel_worker_poll(worker, 1), 1);
        CHECK_EQ(last, next);
    }
    CHECK(bel_worker_leave(worker) == 0);
    close_all();
}

static void a_worker_that_leaves_in_the_middle_of_that_loses_nothing(void)
{
    open_with(0);
    actor_do(&sender, send_crowd, NULL);
    for (unsigned polls = 0; polls < 8; polls++) {
        CHECK(bel_worker_leave(worker) == 0);
        CHECK_EQ(stats().unowned, CROWD);
        CHECK_EQ(stats().inbox, 0);
        CHECK(bel_worker_enter(runtime, &worker) == 0);
        for (unsigned i = 0; i < polls; i++) {
            CHECK_EQ(bel_worker_poll(worker, 0), 0);
        }
    }
    while (bel_worker_next(worker).ns <= now()) {
        (void)bel_worker_poll(worker, CROWD);
    }
    CHECK_EQ(rung, CROWD);
    CHECK(bel_worker_leave(worker) == 0);
    close_all();
}

/* All are due at the same instant, so they ring in the order in which they were scheduled. */
static void the_timers_of_a_worker_that_left_keep_their_order(void)
{
    open_with(0);
    for (uint64_t i = 1; i <= CROWD; i++) {
        (void)schedule(S, i);
    }
    CHECK(bel_worker_leave(worker) == 0);
    CHECK_EQ(stats().adopted, CROWD);
    CHECK_EQ(stats().shared, CROWD);
    CHECK(bel_worker_enter(runtime, &worker) == 0);
    bel_clock_fake_advance(fake, S);
    while (rung < CROWD) {
        uint64_t next = rung + 1;
        CHECK(bel_worker_next(worker).ns <= now());
        if (bel_worker_poll(worker, 1) == 1) CHECK_EQ(last, next);
    }
    CHECK_EQ(stats().shared, 0);
    CHECK(bel_worker_leave(worker) == 0);
    close_all();
}

/* Schedules, moves, cancels and polls, with a timer that is due before them. */
static void use_own_timers(unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++) {
        bel_timer_t timer = schedule(2 * S + i, i);
        CHECK(bel_runtime_reschedule(runtime, timer, (struct bel_boot){now() + 3 * S}) == 0);
        CHECK_EQ(bel_worker_poll(worker, 10), 0);
        CHECK(bel_runtime_cancel(runtime, timer));
    }
}

/* Everything that another thread could be writing to or waiting for. */
struct common {
    unsigned char runtime[sizeof(struct bel_runtime)];
    unsigned char worker[sizeof(struct bel_worker) - offsetof(struct bel_worker, inbox)];
};

static void look(struct common *out)
{
    memcpy(out->runtime, runtime, sizeof out->runtime);
    memcpy(out->worker, &worker->inbox, sizeof out->worker);
    /* Its own cache line, which the metronome reads: the poll writes the number of timers. */
    size_t own = offsetof(struct bel_worker, wake_at) - offsetof(struct bel_worker, inbox);
    size_t end = offsetof(struct bel_worker, now) + sizeof worker->now;
    memset(out->worker + own, 0, end - offsetof(struct bel_worker, wake_at));
}

static void a_worker_with_its_own_timers_writes_nothing_that_is_shared(void)
{
    static struct common before, after;
    open_with(0);
    (void)schedule(S, 0);
    use_own_timers(1); /* its magazine is filled */
    look(&before);
    use_own_timers(10000);
    look(&after);
    CHECK(memcmp(&before, &after, sizeof before) == 0);
    CHECK(bel_worker_leave(worker) == 0);
    close_all();
}

static void poll_own(void *arg)
{
    (void)arg;
    use_own_timers(1000);
}

static void enter_and_fill(void *arg)
{
    (void)arg;
    CHECK(bel_worker_enter(runtime, &worker) == 0);
    (void)schedule(S, 0);
    use_own_timers(1);
}

/* A thread that holds all locks does not delay a worker with its own timers. */
static void a_worker_with_its_own_timers_needs_no_lock(void)
{
    open_with(0);
    CHECK(bel_worker_leave(worker) == 0);
    actor_do(&sender, enter_and_fill, NULL);
    CHECK(pthread_mutex_lock(&runtime->mutex) == 0);
    CHECK(pthread_mutex_lock(&runtime->pool.mutex) == 0);
    actor_do(&sender, poll_own, NULL);
    CHECK(pthread_mutex_unlock(&runtime->pool.mutex) == 0);
    CHECK(pthread_mutex_unlock(&runtime->mutex) == 0);
    close_all();
}

/* Fields that other threads write to have their own cache lines, and so has each record. */
static void what_others_write_to_is_on_lines_of_its_own(void)
{
    CHECK_EQ(offsetof(struct bel_worker, inbox) % CACHE_LINE, 0);
    CHECK_EQ(offsetof(struct bel_worker, returns) % CACHE_LINE, 0);
    CHECK_EQ(offsetof(struct bel_worker, wake_at) % CACHE_LINE, 0);
    CHECK_EQ(offsetof(struct bel_worker, now) % CACHE_LINE, 0);
    CHECK_EQ(sizeof(struct bel_worker) % CACHE_LINE, 0);
    CHECK_EQ(sizeof(struct record) % CACHE_LINE, 0);
    open_with(0);
    CHECK_EQ((uintptr_t)worker % CACHE_LINE, 0);
    CHECK_EQ((uintptr_t)runtime->pool.slab.base % CACHE_LINE, 0);
    CHECK(bel_worker_leave(worker) == 0);
    close_all();
}

/* Each move to an earlier time leaves a stale entry; timers are everywhere in the wheel. A poll
 * sweeps a bounded part and continues where the last one stopped, so that it reaches every bucket
 * again and again. */
static void the_sweep_comes_round_to_every_bucket_again_and_again(void)
{
    enum {
        TIMERS = 100000,
        ROUNDS = 8,
    };
    static bel_timer_t timers[TIMERS];
    uint64_t random = 1;
    open_with(0);
    for (unsigned i = 0; i < TIMERS; i++) {
        timers[i] = schedule(1000 * S * ROUNDS + random_below(&random, 1000000 * S), i);
    }
    for (unsigned round = 1; round <= ROUNDS; round++) {
        CHECK_NOTE("round %u", round);
        for (unsigned i = 0; i < TIMERS; i++) {
            uint64_t due = now() + 1000 * S * (ROUNDS - round + 1) +
                           random_below(&random, 1000000 * S / (round + 1));
            CHECK(bel_runtime_reschedule(runtime, timers[i], (struct bel_boot){due}) == 0);
            if (i % 100 == 0) CHECK_EQ(bel_worker_poll(worker, 10), 0);
            if (i % 1000 == 0) CHECK(stats().stale_entries <= TIMERS / 4 + 16 * 1024);
        }
    }
    CHECK_EQ(stats().pending, TIMERS);
    CHECK(bel_worker_leave(worker) == 0);
    close_all();
}

static void timers_max_is_kept_to_within_what_threads_have_in_hand(void)
{
    enum {
        MAX = 1000
    };
    bel_timer_t timer;
    uint64_t count = 0;
    int err = 0;
    open_with(MAX);
    struct bel_schedule options = {.due = {now() + S}, .kind = KIND};
    for (; err == 0; count++) {
        err = bel_runtime_schedule(runtime, &options, &timer);
    }
    CHECK(err == BEL_EFULL);
    CHECK(count > MAX && count <= MAX + (1 << 16) + 1);
    CHECK(bel_runtime_shutdown(runtime, BEL_SHUTDOWN_DISCARD, NULL) == 0);
    CHECK(bel_runtime_schedule(runtime, &options, &timer) == 0);
    close_all();
}

/* Events that are not taken use up all memory. */
static void a_timer_without_room_for_its_event_keeps_no_other_from_ringing(void)
{
    static struct bel_event events[1000];
    bel_timer_t beat;
    open_with(1);
    struct bel_schedule options = {.due = {now()},
                                   .kind = KIND_INBOX,
                                   .period_ns = 1,
                                   .repeat = BEL_RATE_BURST,
                                   .priority = BEL_PRIORITY_DEFAULT};
    CHECK(bel_runtime_schedule(runtime, &options, &beat) == 0);
    (void)schedule(S, 1); /* while there is room */
    bel_clock_fake_advance(fake, S);
    while (bel_worker_poll(worker, 1000) > 0 && rung == 0) {}
    for (unsigned polls = 0; polls < 10; polls++) {
        (void)bel_worker_poll(worker, 1000);
    }
    CHECK_EQ(rung, 1);
    CHECK(bel_runtime_is_pending(runtime, beat));
    CHECK(bel_worker_next(worker).ns > now()); /* it does not ask for a poll at once */
    CHECK_EQ(bel_inbox_take(inbox, events, 1000), 1000);
    bel_clock_fake_advance(fake, 10 * MS);
    CHECK(bel_worker_poll(worker, 100) > 0);
    CHECK(bel_worker_leave(worker) == 0);
    close_all();
}

int main(void)
{
    RUN(a_poll_takes_in_a_bounded_part_of_what_others_sent_and_keeps_its_order);
    RUN(a_worker_that_leaves_in_the_middle_of_that_loses_nothing);
    RUN(the_timers_of_a_worker_that_left_keep_their_order);
    RUN(a_worker_with_its_own_timers_writes_nothing_that_is_shared);
    RUN(a_worker_with_its_own_timers_needs_no_lock);
    RUN(what_others_write_to_is_on_lines_of_its_own);
    RUN(the_sweep_comes_round_to_every_bucket_again_and_again);
    RUN(timers_max_is_kept_to_within_what_threads_have_in_hand);
    RUN(a_timer_without_room_for_its_event_keeps_no_other_from_ringing);
    return 0;
}
