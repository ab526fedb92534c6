/* SPDX-License-Identifier: MIT */

/*
 * Descriptors are watched level-triggered: what a source leaves unread because of its limit for a
 * turn makes the epoll descriptor readable again. Bytes that a source has already taken from its
 * socket, such as decrypted ones, do not; for them a source sets `is_pending`.
 */
#include "redis/link/poller.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    EVENTS_MAX = 256, /* descriptors received from in a turn; the others are ready in the next */
};

int bel__poller_open(struct bel_poller *poller)
{
    int fd = epoll_create1(EPOLL_CLOEXEC);
    if (fd < 0) return BEL_EIO;
    *poller = (struct bel_poller){.descriptor = fd};
    bel__list_init(&poller->sources);
    return 0;
}

void bel__poller_close(struct bel_poller *poller)
{
    assert(bel__list_is_empty(&poller->sources));
    (void)close(poller->descriptor);
    poller->descriptor = -1;
}

void bel__poller_add(struct bel_poller *poller, struct bel_poll_source *source)
{
    assert(source->receive != NULL && source->flush != NULL);
    assert(!poller->is_busy);
    source->poller = poller;
    source->fd = -1;
    source->events = 0;
    source->is_pending = false;
    bel__list_append(&poller->sources, &source->link);
}

void bel__poller_remove(struct bel_poll_source *source)
{
    assert(!source->poller->is_busy);
    (void)!bel__poller_watch(source, -1, 0);
    bel__link_remove(&source->link);
    source->poller = NULL;
}

int bel__poller_watch(struct bel_poll_source *source, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data = {.ptr = source}};
    int epoll = source->poller->descriptor;
    if (fd == source->fd && events == source->events) return 0;
    if (source->fd >= 0 && source->fd != fd) {
        int failed = epoll_ctl(epoll, EPOLL_CTL_DEL, source->fd, NULL);
        assert(!failed); /* otherwise it was closed before */
        (void)failed;
    }
    int operation = source->fd == fd ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    source->fd = -1;
    source->events = 0;
    if (fd < 0) return 0;
    if (epoll_ctl(epoll, operation, fd, &event) != 0) return BEL_EIO;
    source->fd = fd;
    source->events = events;
    return 0;
}

static struct bel_poll_source *source_of(struct bel_link *link)
{
    return BEL_CONTAINER_OF(link, struct bel_poll_source, link);
}

void bel__poller_receive(struct bel_poller *poller, struct bel_mono now)
{
    struct epoll_event events[EVENTS_MAX];
    assert(!poller->is_busy);
    poller->is_busy = true;
    int count = epoll_wait(poller->descriptor, events, EVENTS_MAX, 0);
    for (int i = 0; i < count; i++) {
        struct bel_poll_source *source = events[i].data.ptr;
        source->is_pending = true;
    }
    for (struct bel_link *link = bel__list_first(&poller->sources); link != NULL;
         link = bel__list_next(&poller->sources, link)) {
        struct bel_poll_source *source = source_of(link);
        if (!source->is_pending) continue;
        source->is_pending = false;
        source->receive(source, now);
    }
    poller->is_busy = false;
}

struct bel_mono bel__poller_flush(struct bel_poller *poller, struct bel_mono now)
{
    struct bel_mono next = {BEL_NEVER};
    assert(!poller->is_busy);
    poller->is_busy = true;
    poller->is_touched = false;
    for (struct bel_link *link = bel__list_first(&poller->sources); link != NULL;
         link = bel__list_next(&poller->sources, link)) {
        struct bel_poll_source *source = source_of(link);
        struct bel_mono wanted = source->flush(source, now);
        if (wanted.ns < next.ns) next = wanted;
        if (source->is_pending) next = now;
    }
    poller->is_busy = false;
    if (poller->is_touched) next = now;
    return next;
}

struct bel_mono bel__poller_turn(struct bel_poller *poller, struct bel_mono now)
{
    bel__poller_receive(poller, now);
    return bel__poller_flush(poller, now);
}
