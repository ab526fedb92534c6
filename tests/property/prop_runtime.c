/* SPDX-License-Identifier: MIT */

/*
 * Threads run random operations for a while; then everything stops and the counts must balance.
 *
 * Clients schedule, cancel and move timers, each under an id of the test. Meanwhile workers enter
 * and leave, also by ending their thread. For each id the test counts how often it was scheduled,
 * how often a cancel returned true, and how often it rang:
 *
 *     scheduled == rang + cancelled        for every id, at rest
 *
 * and the runtime's counters must agree. A timer that was lost, rang twice, or rang after it was
 * cancelled breaks this equation. A timer is never early, unless a shutdown rings the remaining
 * ones.
 */
#include "belfry/runtime.h"

#include "../check.h"
#include "../random.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define MS UINT64_C(1000000)

enum {
    KIND = 1,
    CLIENTS = 2,
    WORKERS = 3,
    IDS = 1000,  /* timers alive at a time */
    EXITS = 500, /* of workers, in each case */
};

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum {
    SLOWLY = 10
};
#else
enum {
    SLOWLY = 1
};
#endif

/* One id. Its client schedules it again only after its last timer has ended. */
struct book {
    _Atomic bel_timer_t timer;
    atomic_uint scheduled, rang, cancelled;
};

static struct bel_runtime *runtime;
static struct book *books;
static atomic_bool clients_done, shut_down;
static atomic_uint exits;

static void ring(void *context, const struct bel_event *event)
{
    (void)context;
    CHECK(event->now.ns >= event->due.ns || atomic_load(&shut_down));
    atomic_fetch_add(&books[event->user].rang, 1);
}

static uint64_t now(void)
{
    return bel_clock_boot(bel_clock_system()).ns;
}

static bool is_over(struct book *book)
{
    unsigned ended = atomic_load(&book->rang) + atomic_load(&book->cancelled);
    return ended == atomic_load(&book->scheduled);
}

static void schedule(struct book *book, uint64_t id, uint64_t due)
{
    bel_timer_t timer;
    struct bel_schedule options = {.due = {due}, .kind = KIND, .user = id};
    atomic_fetch_add(&book->scheduled, 1);
    CHECK(bel_runtime_schedule(runtime, &options, &timer) == 0);
    atomic_store(&book->timer, timer);
}

static void cancel(struct book *book)
{
    if (bel_runtime_cancel(runtime, atomic_load(&book->timer))) {
        atomic_fetch_add(&book->cancelled, 1);
    }
}

static void move(struct book *book, uint64_t due)
{
    int err = bel_runtime_reschedule(runtime, atomic_load(&book->timer), (struct bel_boot){due});
    CHECK(err == 0 || err == BEL_ESTALE);
}

struct client {
    uint64_t random;
    uint64_t index;
};

/* Schedules its own timers; cancels and moves any. */
static void *be_client(void *arg)
{
    struct client *client = arg;
    while (atomic_load(&exits) < EXITS) {
        uint64_t id = random_below(&client->random, IDS);
        uint64_t due = now() + random_below(&client->random, 3 * MS);
        struct book *book = &books[id];
        switch (random_below(&client->random, 4)) {
        case 0:
            cancel(book);
            break;
        case 1:
            move(book, due);
            break;
        default:
            if (id % CLIENTS == client->index && is_over(book)) schedule(book, id, due);
        }
    }
    return NULL;
}

static void *be_worker(void *arg)
{
    uint64_t random = *(const uint64_t *)arg;
    struct bel_worker *worker;
    while (!atomic_load(&clients_done)) {
        CHECK(bel_worker_enter(runtime, &worker) == 0);
        uint64_t polls = random_below(&random, 30);
        for (uint64_t i = 0; i < polls; i++) {
            (void)bel_worker_poll(worker, 1 + random_below(&random, 40));
            if (i % 8 == 7) (void)sched_yield();
        }
        atomic_fetch_add(&exits, 1);
        if (random_below(&random, 4) == 0) return NULL; /* the thread ends as a worker */
        CHECK(bel_worker_leave(worker) == 0);
    }
    return NULL;
}

/* Starts workers while the clients run. */
static void *be_employer(void *arg)
{
    uint64_t random = *(const uint64_t *)arg;
    while (!atomic_load(&clients_done)) {
        pthread_t thread;
        uint64_t seed = random_u64(&random);
        CHECK(pthread_create(&thread, NULL, be_worker, &seed) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    return NULL;
}

static void balance(uint64_t ids)
{
    struct bel_runtime_stats stats;
    uint64_t scheduled = 0, rang = 0, cancelled = 0;
    bel_runtime_stats(runtime, NULL, &stats);
    for (uint64_t id = 0; id < ids; id++) {
        CHECK_NOTE("id %" PRIu64, id);
        CHECK(is_over(&books[id]));
        scheduled += atomic_load(&books[id].scheduled);
        rang += atomic_load(&books[id].rang);
        cancelled += atomic_load(&books[id].cancelled);
    }
    CHECK_EQ(stats.scheduled, scheduled);
    CHECK_EQ(stats.ended, rang);
    CHECK_EQ(stats.fired, rang);
    CHECK_EQ(stats.cancelled, cancelled);
    CHECK_EQ(stats.pending, 0);
    CHECK_EQ(stats.unowned, 0);
}

static void open_runtime(uint64_t ids)
{
    CHECK(bel_runtime_create(NULL, &runtime) == 0);
    CHECK(bel_runtime_on(runtime, KIND, ring, NULL) == 0);
    books = calloc(ids, sizeof *books);
    CHECK(books != NULL);
    atomic_store(&clients_done, false);
    atomic_store(&exits, 0);
    atomic_store(&shut_down, false);
}

static void close_runtime(uint64_t ids)
{
    atomic_store(&shut_down, true);
    CHECK(bel_runtime_shutdown(runtime, BEL_SHUTDOWN_FIRE, NULL) == 0);
    balance(ids);
    bel_runtime_destroy(runtime);
    free(books);
}

/* Workers come and go, with a thousand live timers. */
static void run_churn(uint64_t seed)
{
    pthread_t clients[CLIENTS], employers[WORKERS];
    struct client orders[CLIENTS];
    uint64_t seeds[WORKERS];
    CHECK_NOTE("seed %" PRIu64, seed);
    open_runtime(IDS);
    for (unsigned i = 0; i < WORKERS; i++) {
        seeds[i] = seed * 100 + i;
        CHECK(pthread_create(&employers[i], NULL, be_employer, &seeds[i]) == 0);
    }
    for (unsigned i = 0; i < CLIENTS; i++) {
        orders[i] = (struct client){seed * 1000 + i, i};
        CHECK(pthread_create(&clients[i], NULL, be_client, &orders[i]) == 0);
    }
    for (unsigned i = 0; i < CLIENTS; i++) {
        CHECK(pthread_join(clients[i], NULL) == 0);
    }
    atomic_store(&clients_done, true);
    for (unsigned i = 0; i < WORKERS; i++) {
        CHECK(pthread_join(employers[i], NULL) == 0);
    }
    close_runtime(IDS);
}

/* One hundred exits with many live timers, which are cancelled and moved meanwhile. */

struct crowd {
    uint64_t ids;
    unsigned exits;
};

static void *be_disturber(void *arg)
{
    const struct crowd *crowd = arg;
    uint64_t random = 77, far = now() + UINT64_C(3600000) * MS;
    while (!atomic_load(&clients_done)) {
        struct book *book = &books[random_below(&random, crowd->ids)];
        if (random_below(&random, 8) == 0) {
            cancel(book);
        } else {
            move(book, far + random_below(&random, 1000 * MS));
        }
    }
    return NULL;
}

static void *be_rival(void *arg)
{
    const struct crowd *crowd = arg;
    struct bel_worker *worker;
    for (unsigned i = 0; i < crowd->exits; i++) {
        CHECK(bel_worker_enter(runtime, &worker) == 0);
        struct bel_runtime_stats stats;
        do { /* until it has adopted its share, if there is any to adopt */
            (void)bel_worker_poll(worker, 1000);
            bel_runtime_stats(runtime, NULL, &stats);
        } while (stats.inbox + stats.unowned > crowd->ids / 16);
        CHECK(bel_worker_leave(worker) == 0);
    }
    return NULL;
}

static void run_exits(uint64_t ids)
{
    struct crowd crowd = {ids, 50};
    pthread_t rivals[2], disturber;
    open_runtime(ids);
    uint64_t far = now() + UINT64_C(3600000) * MS;
    for (uint64_t id = 0; id < ids; id++) {
        schedule(&books[id], id, far + id);
    }
    CHECK(pthread_create(&disturber, NULL, be_disturber, &crowd) == 0);
    for (unsigned i = 0; i < 2; i++) {
        CHECK(pthread_create(&rivals[i], NULL, be_rival, &crowd) == 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        CHECK(pthread_join(rivals[i], NULL) == 0);
    }
    atomic_store(&clients_done, true);
    CHECK(pthread_join(disturber, NULL) == 0);
    CHECK(bel_runtime_shutdown(runtime, BEL_SHUTDOWN_KEEP, NULL) == 0);
    struct bel_runtime_stats stats;
    bel_runtime_stats(runtime, NULL, &stats);
    CHECK(stats.unowned >= stats.pending); /* cancelled ones may wait there too */
    bel_runtime_destroy(runtime);
    uint64_t cancelled = 0;
    for (uint64_t id = 0; id < ids; id++) {
        cancelled += atomic_load(&books[id].cancelled);
        CHECK_EQ(atomic_load(&books[id].rang), 0);
    }
    CHECK_EQ(stats.cancelled, cancelled);
    CHECK_EQ(stats.scheduled, ids);
    CHECK_EQ(stats.pending, ids - cancelled);
    free(books);
}

int main(int argc, char **argv)
{
    struct cases cases = cases_of(argc, argv, 4);
    for (uint64_t seed = cases.first; seed <= cases.last; seed++) {
        run_churn(seed);
    }
    printf("ok   %d exits each over %d live timers\n", EXITS, IDS);
    if (argc > 1) return 0;
    uint64_t ids = UINT64_C(1000000) / SLOWLY / SLOWLY;
    if (getenv("BEL_TEST_LONG") != NULL) ids = 1000000; /* NOLINT(concurrency-mt-unsafe) */
    run_exits(ids);
    printf("ok   100 exits over %" PRIu64 " live timers\n", ids);
    return 0;
}
