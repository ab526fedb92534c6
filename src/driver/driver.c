/* SPDX-License-Identifier: MIT */

/*
 * The loop of the driver's thread:
 *
 *     take submitted requests -> turn -> done, for every reply of the turn
 *         ^                                 |
 *         '---- rung, something due, or <---'
 *               the backend's descriptor
 *
 * The queue is parked before the thread sleeps, so the first submit after that rings the alarm, and
 * the others need no system call. The alarm stays rung, so a ring may come at any time.
 *
 * The driver counts the requests that the backend holds; to notice their end, it replaces `done`.
 * Claims that may wait are also in a list: to drain, the driver withdraws those that still wait
 * after a turn. To stop, the thread drains, closes the queue, and continues until the count is 0. A
 * backend whose replies leave later than the turn, because other threads sync or send them, wakes
 * the driver for them; the driver waits for these replies too.
 */
#include "belfry/driver.h"

#include "core/alarm.h"
#include "core/list.h"
#include "core/queue.h"
#include "core/thread.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>

struct bel_driver {
    struct bel_queue queue; /* first: other threads write it, so it should not share a cache line
                               with the rest */
    struct bel_backend *backend; /* borrowed, as is the clock */
    const struct bel_clock *clock;
    struct bel_alarm alarm;
    pthread_t thread;
    sem_t is_known;        /* posted when `*out` is set: turns may begin */
    pthread_mutex_t mutex; /* for threads that stop the driver */
    struct bel_list waits; /* thread only: claims that may wait */
    uint64_t under_way;    /* thread only: requests that the backend holds */
    bool is_stopped;       /* with the mutex held: the thread has ended */
    atomic_bool drains, stops;
};

/* The verb of a message to the driver itself: end the wait of a claim. */
#define END_WAIT BEL_VERBS

/* The driver that runs on this thread, or NULL. */
static _Thread_local struct bel_driver *own;

/* --- requests: first in the queue, then perhaps in the list --- */

static_assert(offsetof(struct bel_request, via.carrier) - offsetof(struct bel_request, via) >=
                  sizeof(struct bel_link),
              "a request has room for a link");
static_assert(sizeof(struct bel_queue_node) <= sizeof(struct bel_link), "and for a node");

static struct bel_queue_node *node_of(struct bel_request *request)
{
    return (struct bel_queue_node *)(void *)&request->via;
}

static struct bel_link *link_of(struct bel_request *request)
{
    return (struct bel_link *)(void *)&request->via;
}

static bool may_wait(const struct bel_request *request)
{
    return request->command.verb == BEL_VERB_CLAIM && request->command.claim.wait_ms > 0;
}

/* Replaces `done` of a request. */
static void finish(struct bel_request *request, const struct bel_reply *reply)
{
    struct bel_driver *driver = request->via.carrier;
    assert(own == driver);
    assert(driver->under_way > 0);
    driver->under_way--;
    if (bel__link_is_linked(link_of(request))) bel__link_remove(link_of(request));
    request->done = request->via.done;
    request->done(request, reply);
}

static const struct bel_reply nothing = {.err = 0};

/* Withdraws a claim and answers it with no deliveries, if the backend holds it and can. `claim` is
 * only compared with the list, because the request may have been answered and freed. */
static void end_wait(struct bel_driver *driver, const struct bel_request *claim)
{
    struct bel_link *link = bel__list_first(&driver->waits);
    while (link != NULL && BEL_CONTAINER_OF(link, struct bel_request, via) != claim) {
        link = bel__list_next(&driver->waits, link);
    }
    if (link == NULL) return;
    struct bel_request *request = BEL_CONTAINER_OF(link, struct bel_request, via);
    if (bel_backend_withdraw(driver->backend, request)) finish(request, &nothing);
}

/* Submits the requests from the queue to the backend, and ends waits. */
static void hand_over(struct bel_driver *driver, struct bel_queue_node *node)
{
    while (node != NULL) {
        struct bel_request *request = BEL_CONTAINER_OF(node, struct bel_request, via);
        node = node->next;
        if (request->command.verb == END_WAIT) {
            end_wait(driver, request->command.claim.topics->data);
            request->via.done(request, &nothing);
            continue;
        }
        *link_of(request) = (struct bel_link){NULL, NULL};
        if (may_wait(request)) bel__list_append(&driver->waits, link_of(request));
        driver->under_way++;
        bel_backend_submit(driver->backend, request);
    }
}

/* Withdraws the waiting claims and answers them with no deliveries. Returns false if there were
 * none. */
static bool end_waits(struct bel_driver *driver)
{
    bool has_answered = false;
    struct bel_link *next;
    for (struct bel_link *link = bel__list_first(&driver->waits); link != NULL; link = next) {
        struct bel_request *request = BEL_CONTAINER_OF(link, struct bel_request, via);
        next = bel__list_next(&driver->waits, link);
        if (!bel_backend_withdraw(driver->backend, request)) continue;
        finish(request, &nothing);
        has_answered = true;
    }
    return has_answered;
}

/* --- the thread --- */

static void await(sem_t *event)
{
    while (sem_wait(event) != 0) {
        assert(errno == EINTR);
    }
}

static bool is_due(struct bel_next next, struct bel_now now)
{
    return next.due.ns <= now.boot.ns || next.wait.ns <= now.real.ns;
}

/* Returns when to wake up, by the clock of the alarm. The end of a wait is on the mono clock, which
 * stops during suspend: then the wakeup is early, and the loop checks again. */
static struct bel_boot end_of_sleep(const struct bel_driver *driver, struct bel_next next,
                                    struct bel_now now)
{
    struct bel_boot wait = {BEL_NEVER};
    if (driver->clock != bel_clock_system()) return wait;
    if (next.wait.ns != BEL_NEVER && bel_boot_add(now.boot, next.wait.ns - now.real.ns, &wait)) {
        wait.ns = BEL_NEVER - 1;
    }
    return next.due.ns < wait.ns ? next.due : wait;
}

static void *run(void *arg)
{
    struct bel_driver *driver = arg;
    bool closes = false;
    own = driver;
    await(&driver->is_known);
    while (!closes || driver->under_way > 0) {
        if (!closes) {
            /* Acquire pairs with the release in bel_driver_stop. */
            closes = atomic_load_explicit(&driver->stops, memory_order_acquire);
            hand_over(driver,
                      closes ? bel__queue_close(&driver->queue) : bel__queue_take(&driver->queue));
        }
        struct bel_now now = bel_clock_now(driver->clock);
        struct bel_next next = bel_backend_turn(driver->backend, now);
        /* Acquire pairs with the release in bel_driver_drain. A `done` that was called may have
         * submitted to the backend, which `next` does not include. */
        bool drains = atomic_load_explicit(&driver->drains, memory_order_acquire);
        if ((closes || drains) && end_waits(driver)) continue;
        if (is_due(next, now)) continue;
        if (closes ? driver->under_way == 0 : !bel__queue_park(&driver->queue)) continue;
        bel__alarm_wait_with(&driver->alarm, end_of_sleep(driver, next, now),
                             bel_backend_descriptor(driver->backend));
    }
    return NULL;
}

/* --- other threads --- */

int bel_driver_start(struct bel_backend *backend, const struct bel_clock *clock,
                     struct bel_driver **out)
{
    assert(backend != NULL);
    struct bel_driver *driver = malloc(sizeof *driver);
    if (driver == NULL) return BEL_ENOMEM;
    *driver = (struct bel_driver){
        .backend = backend,
        .clock = clock != NULL ? clock : bel_clock_system(),
        .mutex = PTHREAD_MUTEX_INITIALIZER,
    };
    bel__list_init(&driver->waits);
    bel__queue_init(&driver->queue);
    int err = bel__alarm_init(&driver->alarm);
    if (!err) err = sem_init(&driver->is_known, 0, 0) != 0 ? BEL_ENOMEM : 0;
    if (!err) err = bel__thread_start(&driver->thread, run, driver);
    if (err) {
        bel__alarm_finish(&driver->alarm);
        free(driver);
        return err;
    }
    *out = driver;
    (void)sem_post(&driver->is_known);
    return 0;
}

static int push(struct bel_driver *driver, struct bel_request *request)
{
    enum bel_queue_was was;
    request->via.carrier = driver;
    request->via.done = request->done;
    request->done = finish;
    int err = bel__queue_push(&driver->queue, node_of(request), &was);
    if (err) {
        request->done = request->via.done;
        return err;
    }
    if (was == BEL__QUEUE_PARKED) bel__alarm_ring(&driver->alarm);
    return 0;
}

int bel_driver_submit(struct bel_driver *driver, struct bel_request *request)
{
    assert(request->done != NULL);
    assert(request->command.verb < BEL_VERBS);
    return push(driver, request);
}

/* The fields of a request that bel_driver_call() replaces until it is done. */
struct call {
    void (*done)(struct bel_request *request, const struct bel_reply *reply);
    void *user;
    int err;
    sem_t is_done;
};

static void put_back(struct bel_request *request, const struct call *call)
{
    request->done = call->done;
    request->user = call->user;
}

static void end_call(struct bel_request *request, const struct bel_reply *reply)
{
    struct call *call = request->user;
    put_back(request, call);
    call->err = reply->err;
    if (request->done != NULL) request->done(request, reply);
    (void)sem_post(&call->is_done);
}

int bel_driver_call(struct bel_driver *driver, struct bel_request *request)
{
    struct call call = {.done = request->done, .user = request->user};
    if (own == driver) return BEL_EBUSY;
    if (sem_init(&call.is_done, 0, 0) != 0) return BEL_ENOMEM;
    request->done = end_call;
    request->user = &call; /* cppcheck-suppress autoVariables; it is restored */
    int err = bel_driver_submit(driver, request);
    if (err) {
        put_back(request, &call);
    } else {
        await(&call.is_done);
        err = call.err;
    }
    (void)sem_destroy(&call.is_done);
    return err;
}

static void post(struct bel_request *request, const struct bel_reply *reply)
{
    (void)reply;
    (void)sem_post(request->user);
}

int bel_driver_end_wait(struct bel_driver *driver, const struct bel_request *claim)
{
    sem_t is_done;
    struct bel_view target = {claim, 0}; /* only an address */
    struct bel_request message = {.command = {.verb = END_WAIT, .claim = {.topics = &target}},
                                  .done = post,
                                  .user = &is_done};
    if (own == driver) return BEL_EBUSY;
    if (sem_init(&is_done, 0, 0) != 0) return BEL_ENOMEM;
    int err = push(driver, &message);
    if (!err) await(&is_done);
    (void)sem_destroy(&is_done);
    return err;
}

void bel_driver_wake(struct bel_driver *driver)
{
    bel__alarm_ring(&driver->alarm);
}

void bel_driver_drain(struct bel_driver *driver)
{
    /* Release pairs with the acquire in run. */
    atomic_store_explicit(&driver->drains, true, memory_order_release);
    bel__alarm_ring(&driver->alarm);
}

int bel_driver_stop(struct bel_driver *driver)
{
    if (own == driver) return BEL_EBUSY;
    (void)pthread_mutex_lock(&driver->mutex);
    if (!driver->is_stopped) {
        /* Release pairs with the acquire in run. */
        atomic_store_explicit(&driver->stops, true, memory_order_release);
        bel__alarm_ring(&driver->alarm);
        (void)pthread_join(driver->thread, NULL);
        driver->is_stopped = true;
    }
    (void)pthread_mutex_unlock(&driver->mutex);
    return 0;
}

void bel_driver_destroy(struct bel_driver *driver)
{
    if (driver == NULL) return;
    int err = bel_driver_stop(driver);
    assert(!err);
    (void)err;
    (void)pthread_mutex_destroy(&driver->mutex);
    (void)sem_destroy(&driver->is_known);
    bel__alarm_finish(&driver->alarm);
    free(driver);
}
