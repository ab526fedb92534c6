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
 * A caller is a backend. Each source of requests has a caller of its own, and a request belongs to
 * the caller that it was submitted to. The tracker provides what the loop needs and a backend does
 * not report: the number of new requests, because without any a turn is unnecessary; the waiting
 * claims, because a stopping server replies to them with no deliveries; and the caller of a claim,
 * because a connection that only waits can be closed when its client hangs up.
 *
 * While the backend holds back requests (struct bel_next), the tracker keeps those of each caller,
 * so that only their own caller waits:
 *
 *     caller, ordered:      [SCHEDULE] GET ACK     all that follow wait, too
 *     caller, not ordered:  [SCHEDULE]             GET and ACK pass
 *
 * Threads: a tracker and its callers belong to one thread.
 */

#include "belfry/backend.h"
#include "core/list.h"
#include "metrics/commit_window.h"
#include "metrics/metrics.h"

#include <stdbool.h>
#include <stdint.h>

struct bel_request_tracker;

/* The source of some requests: a connection, HTTP, or the server itself. */
struct bel_caller {
    struct bel_backend backend;              /* first: requests are submitted to it */
    struct bel_request_tracker *tracker;     /* borrowed */
    void (*left)(struct bel_caller *caller); /* private: set while the caller leaves */
    uint32_t under_way;                      /* read only: requests without a reply */
    uint32_t waiting;                        /* read only: claims with a wait among them */
    bool is_own;           /* the server itself: its requests are not in the metrics */
    bool is_unordered;     /* its requests are independent of each other; may be set after init */
    struct bel_list held;  /* private: requests that are held back, in order */
    struct bel_link holds; /* private: in the tracker's list of callers with such requests */
};

enum {
    BEL_COMMIT_MARKS = 64,
};

/* When the requests that change something were given to the backend, turn by turn, until as many
 * of them are answered: then they are durable. Private. */
struct bel_commit_marks {
    struct {
        uint64_t start_ns; /* of the turn */
        uint64_t asked;    /* requests up to this turn */
    } ring[BEL_COMMIT_MARKS];
    unsigned first, count;
    uint64_t asked, answered;
};

struct bel_request_tracker {
    struct bel_backend *inner; /* borrowed, as are the next two */
    struct bel_metrics *metrics;
    const struct bel_clock *clock;
    struct bel_list waits; /* claims with a wait */
    struct bel_list held;  /* callers whose requests are held back */
    struct bel_next next;  /* of the last turn */
    struct bel_now now;    /* of the last turn */
    uint64_t under_way;    /* requests without a reply; read only, as are the following fields */
    uint64_t fresh;        /* requests submitted since the last turn; not 0: a turn is needed */
    int broken;            /* BEL_EIO or BEL_ECORRUPT, once the backend replied with it for good */
    bool has_holds;        /* private: requests are held back, or may have to be */
    bool is_draining;
    bool does_recover; /* of the backend, from BEL_EIO: it is not broken; set after init */
    struct bel_commit_marks marks;
    struct bel_commit_window commits; /* how long changes took to become durable; read only */
};

/* Initializes a tracker in front of `inner`. It needs no cleanup. */
void bel__request_tracker_init(struct bel_request_tracker *tracker, struct bel_backend *inner,
                               struct bel_metrics *metrics, const struct bel_clock *clock);

/* Takes a turn of the inner backend and measures its duration. Returns when the next is due, also
 * for requests that are held back. */
struct bel_next bel__request_tracker_turn(struct bel_request_tracker *tracker, struct bel_now now);

/* Ends all waits: replies to waiting claims with no deliveries, now. Later claims get their reply
 * in the turn in which they would begin to wait. */
void bel__request_tracker_drain(struct bel_request_tracker *tracker);

/* Initializes a caller. It needs no cleanup, but must exist until its requests are done. */
void bel__caller_init(struct bel_caller *caller, struct bel_request_tracker *tracker);

/* Calls `left` once all requests of the caller are done, possibly before this function returns. */
void bel__caller_leave(struct bel_caller *caller, void (*left)(struct bel_caller *caller));

/* Returns whether requests of the caller are held back: read no more of them for now. */
bool bel__caller_is_held(const struct bel_caller *caller);

/* Returns the caller that a request was submitted to. Valid until the request is done. */
struct bel_caller *bel__caller_of(const struct bel_request *request);

#endif
