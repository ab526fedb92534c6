/* SPDX-License-Identifier: MIT */

/*
 * A driver around a backend that waits for another process, which here is the test: the reply to a
 * request is there when an eventfd is readable. An alarm ends a case that blocks.
 */
#include "belfry/driver.h"

#include "../check.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    PATIENCE_S = 100
};

struct remote {
    struct bel_backend backend;  /* first */
    struct bel_request *request; /* without a reply */
    int fd;
    sem_t is_submitted;
    atomic_uint turns;
};

static void submit(struct bel_backend *backend, struct bel_request *request)
{
    struct remote *remote = (struct remote *)backend;
    CHECK(remote->request == NULL);
    remote->request = request;
    CHECK(sem_post(&remote->is_submitted) == 0);
}

static bool withdraw(struct bel_backend *backend, struct bel_request *request)
{
    (void)backend;
    (void)request;
    return false;
}

static struct bel_next turn(struct bel_backend *backend, struct bel_now now)
{
    struct remote *remote = (struct remote *)backend;
    eventfd_t arrived;
    (void)now;
    atomic_fetch_add(&remote->turns, 1);
    if (eventfd_read(remote->fd, &arrived) == 0) {
        struct bel_request *request = remote->request;
        remote->request = NULL;
        request->done(request, &(struct bel_reply){0});
    }
    return (struct bel_next){.due = {BEL_NEVER}, .wait = {BEL_NEVER}};
}

static int descriptor(const struct bel_backend *backend)
{
    return ((const struct remote *)backend)->fd;
}

static void post(struct bel_request *request, const struct bel_reply *reply)
{
    CHECK(reply->err == 0);
    CHECK(sem_post(request->user) == 0);
}

static void a_readable_descriptor_causes_a_turn(void)
{
    static struct remote remote;
    struct bel_driver *driver;
    sem_t is_done;
    struct bel_request request = {
        .command = {.verb = BEL_VERB_TOPICS}, .done = post, .user = &is_done};
    (void)alarm(PATIENCE_S);
    remote = (struct remote){
        .backend = {.submit = submit, .withdraw = withdraw, .turn = turn, .descriptor = descriptor},
        .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    CHECK(remote.fd >= 0);
    CHECK(sem_init(&is_done, 0, 0) == 0 && sem_init(&remote.is_submitted, 0, 0) == 0);
    CHECK(bel_driver_start(&remote.backend, NULL, &driver) == 0);
    CHECK(bel_driver_submit(driver, &request) == 0);
    while (sem_wait(&remote.is_submitted) != 0) {}
    CHECK(sem_trywait(&is_done) != 0);
    CHECK(eventfd_write(remote.fd, 1) == 0);
    while (sem_wait(&is_done) != 0) {}
    unsigned turns = atomic_load(&remote.turns);
    CHECK_NOTE("%u turns", turns);
    CHECK(turns <= 3); /* the start, the request, the reply */
    bel_driver_destroy(driver);
    (void)sem_destroy(&is_done);
    (void)close(remote.fd);
}

int main(void)
{
    RUN(a_readable_descriptor_causes_a_turn);
    return 0;
}
