/* SPDX-License-Identifier: MIT */
#ifndef BEL_HTTP_HTTP_H
#define BEL_HTTP_HTTP_H

/*
 * http - the same commands over HTTP, on the thread of the loop.
 *
 *     loop: fd readable, or the wait is over, or a turn was taken ---> bel__http_run()
 *                                                                         |
 *     options.backend  <---- requests, answered in a turn <---------------'
 *
 * It has no thread and never blocks. What it submits goes to `options.backend`, which counts it,
 * and so the loop knows that a turn is needed. Answers come through `done`, inside of a turn;
 * they are sent by the run behind it.
 */

#include "core/address.h"
#include "core/why.h"
#include "metrics/metrics.h"
#include "session/session.h"

#include <stdbool.h>
#include <stdint.h>

struct bel_http; /* opaque */

struct bel_http_options {
    struct bel_address address;        /* a port of 0: any that is free */
    struct bel_backend *backend;       /* borrowed, as are the next two; the caller that is HTTP */
    const struct bel_service *service; /* the time of the turn, who may come in, limits */
    struct bel_metrics *metrics;       /* bel__metrics_begin(), then bel__metrics_print() */
    uint32_t connections_max;
};

/* Listens. Returns 0 and sets `*out`; or BEL_ENOMEM, or BEL_EIO if it cannot listen there, and says
 * in `why` what the system said. */
BEL_CHECKED int bel__http_start(const struct bel_http_options *options, struct bel_http **out,
                                struct bel_why *why);

/* The port that it listens on. */
uint16_t bel__http_port(const struct bel_http *http);

/* What to poll for reading: then there is something to run. */
int bel__http_fd(const struct bel_http *http);

/* Does what there is to do: accepts, reads, submits, sends. */
void bel__http_run(struct bel_http *http);

/* When to run it at the latest, in ms from the last run; UINT64_MAX: when it is readable. */
uint64_t bel__http_wait_ms(const struct bel_http *http);

/* From here on it takes no connections and closes those that have nothing under way; and whether
 * all are closed. */
void bel__http_drain(struct bel_http *http);
bool bel__http_is_idle(const struct bel_http *http);

/* Closes what is left and frees it; NULL is allowed. Requests that wait are withdrawn. */
void bel__http_stop(struct bel_http *http);

#endif
