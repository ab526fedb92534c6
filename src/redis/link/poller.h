/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_LINK_POLLER_H
#define BEL_REDIS_LINK_POLLER_H

/*
 * poller - one epoll descriptor for all connections of a node, and one turn for all of them.
 *
 *     bel__poller_receive(&poller, now);            replies arrive, callbacks send more calls
 *     ...                                           the owner sends more calls
 *     next = bel__poller_flush(&poller, now);       all calls of the turn leave in one write
 *
 * Neither function blocks. The owner sleeps until `next`, or until the descriptor is readable.
 *
 * A source is a user of the poller, with at most one descriptor at a time. A source must not be
 * removed inside a call of one of its functions.
 *
 * Threads: a poller and its sources belong to one thread.
 */

#include "belfry/clock.h"
#include "belfry/error.h"

#include "core/list.h"

#include <stdbool.h>
#include <stdint.h>

struct bel_poller {
    int descriptor; /* read only */
    struct bel_list sources;
    bool is_busy;    /* functions of sources are running */
    bool is_touched; /* set by a source: it needs another flush, perhaps after its own */
};

struct bel_poll_source {
    /* The descriptor is ready, or the source has asked for another call by `is_pending`. */
    void (*receive)(struct bel_poll_source *source, struct bel_mono now);
    /* The turn ends. Returns when the next turn is needed at the latest; BEL_NEVER: not at all. */
    struct bel_mono (*flush)(struct bel_poll_source *source, struct bel_mono now);
    bool is_pending;           /* set by the source: the next turn calls `receive` in any case */
    struct bel_poller *poller; /* this and all below is private */
    struct bel_link link;
    int fd; /* -1: none */
    uint32_t events;
};

/* Opens a poller. Returns 0, or BEL_EIO if the system has no descriptor left. */
BEL_CHECKED int bel__poller_open(struct bel_poller *poller);

/* Closes a poller, which must have no sources. */
void bel__poller_close(struct bel_poller *poller);

/* Adds a source, whose functions are set. */
void bel__poller_add(struct bel_poller *poller, struct bel_poll_source *source);

/* Removes a source. Its descriptor stays open and is no longer watched. */
void bel__poller_remove(struct bel_poll_source *source);

/* Watches `fd` for EPOLLIN or EPOLLOUT instead of what was watched before; -1 ends watching. To be
 * called before `fd` is closed. Returns 0; or BEL_EIO, and nothing is watched. Ending returns 0. */
BEL_CHECKED int bel__poller_watch(struct bel_poll_source *source, int fd, uint32_t events);

/* Receives from all descriptors that are ready, up to a number of them. */
void bel__poller_receive(struct bel_poller *poller, struct bel_mono now);

/* Ends a turn. Returns when the next turn is needed at the latest. */
struct bel_mono bel__poller_flush(struct bel_poller *poller, struct bel_mono now);

/* Does both. */
struct bel_mono bel__poller_turn(struct bel_poller *poller, struct bel_mono now);

#endif
