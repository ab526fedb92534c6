/* SPDX-License-Identifier: MIT */
#ifndef BEL_SESSION_REQUEST_TRACKER_H
#define BEL_SESSION_REQUEST_TRACKER_H

/*
 * tracker - a backend in front of the backend, where every request passes twice: on its way in, and
 * with its answer on the way out.
 *
 *     sessions, http ---- submit ----> tracker ----> engine
 *           ^                           |
 *           '------- done --------------'   counted
 *
 * What a loop needs to know and a backend does not say is known here: whether there is anything
 * new, so that a turn is worth it; which claims wait, so that a server that stops can send them
 * home; and whose they are, so that a client that hangs up while it only waits is let go.
 *
 * Whose a request is: of the caller that is `current` when it is submitted. The loop says so
 * before it steps a session; while a request is answered, it is that request's.
 *
 * Threads: a tracker belongs to one thread.
 */

#include "belfry/backend.h"
#include "core/list.h"
#include "metrics/metrics.h"

#include <stdbool.h>
#include <stdint.h>

struct bel_request_tracker;

/* Someone who asks. Zeroed, and then `left` is set. */
struct bel_caller {
    void (*left)(struct bel_caller
                     *caller); /* the last request is done, after bel__request_tracker_leave() */
    struct bel_request_tracker *tracker; /* private: set by the first request */
    uint32_t under_way;                  /* read only: requests not answered */
    uint32_t waiting;                    /* read only: of them, claims that may wait */
    bool is_leaving;                     /* private */
};

struct bel_request_tracker {
    struct bel_backend backend; /* first; what sessions submit to */
    struct bel_backend *inner;  /* borrowed, as are the next three */
    struct bel_metrics *metrics;
    const struct bel_clock *clock;
    struct bel_caller *current; /* the loop's to set; NULL: nobody */
    struct bel_caller nobody;
    struct bel_list waits; /* claims that may wait */
    struct bel_now now;    /* of the last turn */
    uint64_t under_way;    /* read only, as is all that follows */
    uint64_t fresh;        /* submitted since the last turn */
    int broken;            /* BEL_EIO or BEL_ECORRUPT, once one was answered so */
    bool is_draining;
};

/* Makes a tracker in front of `inner`. There is nothing to release. */
void bel__request_tracker_init(struct bel_request_tracker *tracker, struct bel_backend *inner,
                               struct bel_metrics *metrics, const struct bel_clock *clock);

/* From here on no claim waits: those that do are answered with nothing, now. Later ones are by
 * the turn that they would begin to wait in. */
void bel__request_tracker_drain(struct bel_request_tracker *tracker);

/* A caller goes: `left` is called when nothing of his is under way, which may be now. */
void bel__request_tracker_leave(struct bel_request_tracker *tracker, struct bel_caller *caller);

#endif
