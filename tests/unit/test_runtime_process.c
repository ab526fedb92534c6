/* SPDX-License-Identifier: MIT */

/*
 * The process forks in the middle of calls. On the real clock, because the runtime's own threads
 * must sleep; timers are due at once or in an hour, so that nothing depends on the speed of the
 * machine. An alarm ends a case that blocks.
 *
 * The thread sanitizer does not let a child start threads, so it does not run this test.
 */
#include "belfry/runtime.h"

#include "../live.h"

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__has_feature)
#    if __has_feature(address_sanitizer)
#        define __SANITIZE_ADDRESS__
#    endif
#endif
#ifdef __SANITIZE_ADDRESS__
#    define ON_ADDRESS_SANITIZER true
#else
#    define ON_ADDRESS_SANITIZER false
#endif

/* The address sanitizer's allocator may stay locked in a child, by a thread that the child
 * does not have. */
#define RUN_UNLESS_ADDRESS_SANITIZER(test)                                                         \
    (ON_ADDRESS_SANITIZER ? (void)printf("skip %s: the sanitizer would block\n", #test) : RUN(test))

enum {
    KIND_COUNT = 1, /* counts in `rung` */
    KIND_FORK,      /* forks inside the callback */
    KIND_INBOX,
    KIND_NONE, /* not registered */
    USERS = 512,
    LATE = 5,             /* timers that are late */
    AHEAD_NS = 50000000,  /* how far they are ahead */
    BEHIND_NS = 10000000, /* how late they are at least */
};

/* Shared by a child and its parent. */
struct board {
    atomic_uint rung[USERS]; /* by user word, in any process */
    pid_t first;             /* the original process */
    _Atomic uint64_t due;    /* of a child's timers, which wait; 0: not yet */
    _Atomic uint64_t missed; /* turns of its metronome, when it has ended */
};

static struct board *board;
static struct bel_inbox *inbox;

/* Called by the leak checker. Memory of threads that a child does not have is not a leak. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return getpid() != board->first;
}

static void ring(void *context, const struct bel_event *event)
{
    (void)context;
    atomic_fetch_add(&board->rung[event->user % USERS], 1);
    CHECK(sem_post(&rang) == 0);
}

/* The child returns from the callback like the parent. */
static void ring_and_fork(void *context, const struct bel_event *event)
{
    (void)fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        (void)alarm(PATIENCE_S);
        return;
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ring(context, event);
}

static struct bel_runtime *make_runtime(void)
{
    struct bel_runtime *made;
    CHECK(bel_runtime_create(NULL, &made) == 0);
    CHECK(bel_runtime_on(made, KIND_COUNT, ring, NULL) == 0);
    CHECK(bel_runtime_on(made, KIND_FORK, ring_and_fork, NULL) == 0);
    return made;
}

static void open_all(void)
{
    (void)alarm(PATIENCE_S);
    for (unsigned i = 0; i < USERS; i++) {
        atomic_store(&board->rung[i], 0);
    }
    CHECK(sem_init(&rang, 0, 0) == 0);
    runtime = make_runtime();
    CHECK(bel_inbox_create(runtime, &inbox) == 0);
    CHECK(bel_runtime_on_inbox(runtime, KIND_INBOX, inbox) == 0);
}

/* Runs a body in a child, which must exit normally. */
static void in_child(void (*body)(void))
{
    (void)fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        (void)alarm(PATIENCE_S);
        body();
        exit(0); /* NOLINT(concurrency-mt-unsafe): the child has one thread */
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_NOTE("status of the child: %#x", (unsigned)status);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* A new runtime in a child works. */
static void use_another(void)
{
    struct bel_runtime *other = make_runtime();
    CHECK(sem_init(&rang, 0, 0) == 0);
    CHECK(bel_runtime_start(other, 2) == 0);
    (void)schedule_in(other, (struct bel_schedule){.kind = KIND_COUNT, .user = 7}, 0);
    bel_timer_t late = schedule_in(other, (struct bel_schedule){.kind = KIND_COUNT}, HOUR);
    while (sem_wait(&rang) != 0) {}
    CHECK(bel_runtime_cancel(other, late));
    bel_runtime_destroy(other);
}

static struct bel_worker *worker; /* of the main thread */
static bel_timer_t pending, beating;

static void every_call_says_closed(void)
{
    struct bel_schedule options = {.kind = KIND_COUNT};
    struct bel_worker *entered = NULL;
    struct bel_inbox *made = NULL;
    struct bel_event event;
    struct bel_boot due = {1};
    bel_timer_t timer = 3;
    CHECK(bel_runtime_schedule(runtime, &options, &timer) == BEL_ECLOSED);
    CHECK(bel_runtime_schedule_after(runtime, 1, &options, &timer) == BEL_ECLOSED);
    CHECK(bel_runtime_schedule_wall(runtime, &options, &timer) == BEL_ECLOSED);
    CHECK_EQ(timer, 3);
    CHECK(!bel_runtime_cancel(runtime, pending));
    CHECK(bel_runtime_cancel_sync(runtime, pending) == BEL_ECLOSED);
    CHECK(bel_runtime_reschedule(runtime, pending, due) == BEL_ECLOSED);
    CHECK(!bel_runtime_is_pending(runtime, pending));
    CHECK(bel_runtime_on(runtime, KIND_NONE, ring, NULL) == BEL_ECLOSED);
    CHECK(bel_runtime_on_inbox(runtime, KIND_NONE, inbox) == BEL_ECLOSED);
    CHECK(bel_runtime_start(runtime, 1) == BEL_ECLOSED);
    CHECK(bel_worker_enter(runtime, &entered) == BEL_ECLOSED);
    CHECK(bel_inbox_create(runtime, &made) == BEL_ECLOSED);
    CHECK(entered == NULL && made == NULL);
    CHECK_EQ(bel_inbox_take(inbox, &event, 1), 0);
    CHECK_EQ(bel_runtime_tick(runtime).ns, BEL_NEVER);
    CHECK(bel_runtime_shutdown(runtime, BEL_SHUTDOWN_FIRE, NULL) == BEL_ECLOSED);
    CHECK_EQ(stats().scheduled, 0);
}

/* The worker that forked is not a worker in the child. */
static void the_worker_says_closed(void)
{
    CHECK_EQ(bel_worker_poll(worker, 10), 0);
    CHECK_EQ(bel_worker_next(worker).ns, BEL_NEVER);
    CHECK(!bel_worker_wait(worker, (struct bel_boot){BEL_NEVER}));
    CHECK(bel_worker_fd(worker) == -1);
    bel_worker_run(worker);
    CHECK(bel_worker_leave(worker) == BEL_ECLOSED);
}

static void be_a_child(void)
{
    if (worker != NULL) the_worker_says_closed();
    every_call_says_closed();
    bel_runtime_destroy(runtime);
    use_another();
}

/* A child may also ignore the runtime, and exit. */
static void be_a_child_that_only_exits(void)
{
    every_call_says_closed();
}

static bool is_readable(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    return poll(&poll_fd, 1, 0) == 1;
}

static void a_child_finds_the_runtime_closed_and_the_parent_goes_on(void)
{
    open_all();
    CHECK(bel_runtime_start(runtime, 2) == 0);
    CHECK(bel_worker_enter(runtime, &worker) == 0);
    await_workers(3);
    pending = schedule(KIND_COUNT, HOUR, 1);
    (void)schedule(KIND_INBOX, 0, 2);
    CHECK(bel_worker_fd(worker) >= 0);
    while (bel_worker_poll(worker, 10) == 0) {}
    CHECK(!is_readable(bel_worker_fd(worker)) || bel_worker_poll(worker, 10) == 0);
    in_child(be_a_child);
    in_child(be_a_child_that_only_exits);
    CHECK(is_readable(bel_inbox_fd(inbox))); /* the child took no event */
    struct bel_event event;
    CHECK_EQ(bel_inbox_take(inbox, &event, 1), 1);
    CHECK_EQ(event.user, 2);
    CHECK(bel_runtime_is_pending(runtime, pending));
    CHECK(bel_runtime_reschedule(runtime, pending, (struct bel_boot){1}) == 0);
    while (bel_worker_poll(worker, 10) == 0) {}
    CHECK_EQ(atomic_load(&board->rung[1]), 1);
    CHECK(bel_worker_leave(worker) == 0);
    worker = NULL;
    close_all();
}

static void a_child_wakes_nobody_in_the_parent(void)
{
    open_all();
    CHECK(bel_worker_enter(runtime, &worker) == 0);
    int fd = bel_worker_fd(worker);
    pending = schedule(KIND_COUNT, HOUR, 1);
    (void)bel_worker_poll(worker, 10);
    CHECK(!is_readable(fd));
    in_child(be_a_child);
    CHECK(!is_readable(fd));
    CHECK(!is_readable(bel_inbox_fd(inbox)));
    CHECK(bel_worker_leave(worker) == 0);
    worker = NULL;
    close_all();
}

static void a_runtime_that_was_never_used_is_closed_to_a_child(void)
{
    open_all();
    pending = 1;
    in_child(be_a_child);
    close_all();
}

static void a_child_made_while_workers_are_starting_can_go(void)
{
    for (unsigned i = 0; i < 20; i++) {
        open_all();
        CHECK(bel_runtime_start(runtime, 2) == 0);
        in_child(be_a_child);
        close_all();
    }
}

static struct bel_runtime *first;

static void be_a_grandchild(void)
{
    be_a_child();
    bel_runtime_destroy(first);
}

static void be_a_child_with_a_child(void)
{
    first = runtime;
    runtime = make_runtime();
    CHECK(bel_inbox_create(runtime, &inbox) == 0);
    CHECK(bel_runtime_start(runtime, 1) == 0);
    await_workers(1);
    pending = schedule(KIND_COUNT, HOUR, 1);
    in_child(be_a_grandchild);
    CHECK(bel_runtime_is_pending(runtime, pending));
    bel_runtime_destroy(runtime);
    bel_runtime_destroy(first);
}

static void a_grandchild_finds_both_runtimes_closed(void)
{
    open_all();
    CHECK(bel_runtime_start(runtime, 1) == 0);
    await_workers(1);
    in_child(be_a_child_with_a_child);
    close_all();
}

static atomic_bool enough;

/* Uses everything that has a lock, so that forks find each of them held at some time. */
static void *keep_busy(void *arg)
{
    unsigned turn = 0;
    struct bel_worker *mine;
    bel_timer_t timers[300];
    (void)arg;
    while (!atomic_load(&enough)) {
        for (unsigned i = 0; i < 300; i++) {
            timers[i] = schedule(KIND_COUNT, HOUR + i, 0);
        }
        for (unsigned i = 0; i < 300; i++) {
            CHECK(bel_runtime_cancel(runtime, timers[i]));
        }
        if (++turn % 4 == 0) {
            CHECK(bel_worker_enter(runtime, &mine) == 0);
            (void)bel_worker_poll(mine, 10);
            CHECK(bel_worker_leave(mine) == 0);
        }
        CHECK(stats().ended == 0);
    }
    return NULL;
}

static void children_of_a_busy_process_never_block(void)
{
    enum {
        THREADS = 3,
        CHILDREN = 60
    };
    pthread_t threads[THREADS];
    open_all();
    atomic_store(&enough, false);
    CHECK(bel_runtime_start(runtime, 1) == 0);
    pending = schedule(KIND_COUNT, HOUR, 1);
    for (unsigned i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, keep_busy, NULL) == 0);
    }
    for (unsigned i = 0; i < CHILDREN; i++) {
        in_child(i % 2 == 0 ? be_a_child : be_a_child_that_only_exits);
    }
    atomic_store(&enough, true);
    for (unsigned i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK_EQ(stats().pending, 1);
    CHECK(bel_runtime_cancel(runtime, pending));
    close_all();
}

/* The only thread of the child is the worker; it returns from the callback, finds the runtime
 * closed, and the process ends with it. */
static void a_callback_on_a_thread_of_the_runtime_may_fork(void)
{
    open_all();
    bel_timer_t first_of_all = schedule(KIND_FORK, 0, 1);
    for (uint64_t i = 2; i < 10; i++) {
        (void)schedule(i % 2 == 0 ? KIND_COUNT : KIND_FORK, 0, i);
    }
    CHECK(bel_runtime_is_pending(runtime, first_of_all));
    CHECK(bel_runtime_start(runtime, 1) == 0);
    await_rings(9);
    for (unsigned i = 1; i < 10; i++) {
        CHECK_EQ(atomic_load(&board->rung[i]), 1); /* and not in the child too */
    }
    close_all();
}

/* Child and parent continue after bel_worker_poll(). */
static void a_callback_on_a_thread_of_the_program_may_fork(void)
{
    pid_t parent = getpid();
    open_all();
    CHECK(bel_worker_enter(runtime, &worker) == 0);
    pending = schedule(KIND_COUNT, HOUR, 0);
    (void)schedule(KIND_FORK, 0, 1);
    (void)schedule(KIND_COUNT, 0, 2);
    beating =
        schedule_in(runtime,
                    (struct bel_schedule){
                        .kind = KIND_FORK, .user = 3, .repeat = BEL_RATE_SKIP, .period_ns = HOUR},
                    0);
    size_t rings = bel_worker_poll(worker, 10);
    if (getpid() != parent) {
        CHECK(atomic_load(&board->rung[2]) == (rings == 3));
        be_a_child();
        exit(0); /* NOLINT(concurrency-mt-unsafe): the child has one thread */
    }
    CHECK_EQ(rings, 3);
    for (unsigned i = 1; i < 4; i++) {
        CHECK_EQ(atomic_load(&board->rung[i]), 1);
    }
    CHECK(bel_runtime_cancel(runtime, beating));
    CHECK(bel_worker_leave(worker) == 0);
    worker = NULL;
    close_all();
}

static void a_callback_of_a_shutdown_may_fork(void)
{
    pid_t parent = getpid();
    open_all();
    pending = schedule(KIND_FORK, HOUR, 1);
    (void)schedule(KIND_COUNT, HOUR + 1, 2);
    int err = bel_runtime_shutdown(runtime, BEL_SHUTDOWN_FIRE, NULL);
    if (getpid() != parent) {
        CHECK(err == BEL_ECLOSED);
        CHECK_EQ(atomic_load(&board->rung[2]), 0);
        be_a_child();
        exit(0); /* NOLINT(concurrency-mt-unsafe): the child has one thread */
    }
    CHECK(err == 0);
    CHECK_EQ(atomic_load(&board->rung[1]), 1);
    CHECK_EQ(atomic_load(&board->rung[2]), 1);
    close_all();
}

static uint64_t now(void)
{
    return bel_clock_boot(bel_clock_system()).ns;
}

/* A loop of the program, which the metronome wakes. */
static void be_a_child_with_a_metronome(void)
{
    runtime = make_runtime();
    CHECK(sem_init(&rang, 0, 0) == 0);
    CHECK(bel_worker_enter(runtime, &worker) == 0);
    struct pollfd woken = {.fd = bel_worker_fd(worker), .events = POLLIN};
    for (uint64_t i = 0; i < LATE; i++) {
        (void)schedule(KIND_COUNT, AHEAD_NS, i);
    }
    size_t rings = bel_worker_poll(worker, LATE);
    atomic_store(&board->due, now() + AHEAD_NS);
    while (rings < LATE) {
        (void)poll(&woken, 1, -1);
        rings += bel_worker_poll(worker, LATE);
    }
    atomic_store(&board->missed, stats().metronome_missed);
    CHECK(bel_worker_leave(worker) == 0);
    close_all();
    exit(0); /* NOLINT(concurrency-mt-unsafe): it is alone again */
}

/* Stops a process, with all its threads, until its timers are late; unless it has ended. */
static void hold_up(pid_t child, int *out_status)
{
    while (atomic_load(&board->due) == 0) {
        (void)sched_yield();
    }
    CHECK(kill(child, SIGSTOP) == 0);
    CHECK(waitpid(child, out_status, WUNTRACED) == child);
    if (!WIFSTOPPED(*out_status)) return;
    while (now() < atomic_load(&board->due) + BEHIND_NS) {
        (void)sched_yield();
    }
    CHECK(kill(child, SIGCONT) == 0);
    CHECK(waitpid(child, out_status, 0) == child);
}

/* A child may be stopped too late, or before its metronome sleeps: then another one is tried. */
static void a_metronome_that_was_stopped_loses_no_timer_and_says_so(void)
{
    (void)alarm(PATIENCE_S);
    atomic_store(&board->missed, 0);
    while (atomic_load(&board->missed) == 0) {
        for (unsigned i = 0; i < LATE; i++) {
            atomic_store(&board->rung[i], 0);
        }
        atomic_store(&board->due, 0);
        (void)fflush(NULL);
        int status = 0;
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* an alarm does not end one that is stopped */
            be_a_child_with_a_metronome();
        }
        hold_up(child, &status);
        CHECK_NOTE("status of the child: %#x", (unsigned)status);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        for (unsigned i = 0; i < LATE; i++) {
            CHECK_EQ(atomic_load(&board->rung[i]), 1);
        }
    }
}

int main(void)
{
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(board != MAP_FAILED);
    board->first = getpid();
    RUN(a_child_finds_the_runtime_closed_and_the_parent_goes_on);
    RUN(a_child_wakes_nobody_in_the_parent);
    RUN(a_runtime_that_was_never_used_is_closed_to_a_child);
    RUN(a_grandchild_finds_both_runtimes_closed);
    RUN(a_callback_on_a_thread_of_the_runtime_may_fork);
    RUN(a_callback_on_a_thread_of_the_program_may_fork);
    RUN(a_callback_of_a_shutdown_may_fork);
    RUN(a_metronome_that_was_stopped_loses_no_timer_and_says_so);
    RUN_UNLESS_ADDRESS_SANITIZER(a_child_made_while_workers_are_starting_can_go);
    RUN_UNLESS_ADDRESS_SANITIZER(children_of_a_busy_process_never_block);
    return 0;
}
