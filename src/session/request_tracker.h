/* SPDX-License-Identifier: MIT */
#ifndef BEL_SESSION_REQUEST_TRACKER_H
#define BEL_SESSION_REQUEST_TRACKER_H

/*
 * request_tracker - counts the requests of each caller on their way to the engine and back.
 *
 *     RESP session ---- submit ----> caller --.
 *     RESP session ---- submit ----> caller --+-- tracker ----> engine
 *     HTTP -----------> submit ----> caller --|                   |
 *     topic counts ---> submit ----> caller --'                   |
 *          ^                                                      |
 *          '------- done <---- counted, with its caller <---------'
 *
 * A caller is a backend. Whoever submits requests has a caller of its own, so each request belongs
 * to the caller it was submitted to. The tracker knows what a loop needs and a backend does not
 * tell: whether requests are new, so that a turn is worth it; which claims wait, so that a server
 * that stops can answer them with nothing; and whose they are, so that a connection whose client
 * hung up and only waits can be closed.
 *
 * Threads: a tracker and its callers belong to one thread.
 */

#include "belfry/backend.h"
#include "core/list.h"
#include "metrics/metrics.h"

#include <stdbool.h>
#include <stdint.h>

struct bel_request_tracker;

/* The source of some requests: a connection, HTTP, or the server itself. */
struct bel_caller {
    struct bel_backend backend;              /* first: what this caller submits to */
    struct bel_request_tracker *tracker;     /* borrowed */
    void (*left)(struct bel_caller *caller); /* private: set while the caller leaves */
    uint32_t under_way;                      /* read only: requests not answered */
    uint32_t waiting;                        /* read only: of them, claims that may wait */
};

struct bel_request_tracker {
    struct bel_backend *inner; /* borrowed, as are the next two */
    struct bel_metrics *metrics;
    const struct bel_clock *clock;
    struct bel_list waits; /* claims that may wait */
    struct bel_now now;    /* of the last turn */
    uint64_t under_way;    /* read only, as is all that follows */
    uint64_t fresh;        /* submitted since the last turn */
    int broken;            /* BEL_EIO or BEL_ECORRUPT, once a request was answered so */
    bool is_draining;
};

/* Makes a tracker in front of `inner`. There is nothing to release. */
void bel__request_tracker_init(struct bel_request_tracker *tracker, struct bel_backend *inner,
                               struct bel_metrics *metrics, const struct bel_clock *clock);

/* Takes a turn of the inner backend and measures how long it took. Returns when to come back. */
struct bel_next bel__request_tracker_turn(struct bel_request_tracker *tracker, struct bel_now now);

/* From here on no claim waits: claims that wait are answered with nothing, now. A later one is
 * answered by the turn in which it would begin to wait. */
void bel__request_tracker_drain(struct bel_request_tracker *tracker);

/* Makes a caller. There is nothing to release, but it must stay until its requests are done. */
void bel__caller_init(struct bel_caller *caller, struct bel_request_tracker *tracker);

/* Calls `left` when none of the caller's requests is under way, which may be now. */
void bel__caller_leave(struct bel_caller *caller, void (*left)(struct bel_caller *caller));

/* Returns the caller that a request was submitted to, from then until it is done. */
struct bel_caller *bel__caller_of(const struct bel_request *request);

#endif
