/* SPDX-License-Identifier: MIT */
#ifndef BEL_HTTP_HTTP_H
#define BEL_HTTP_HTTP_H

/*
 * http - an HTTP server for the commands of RESP, on the loop thread.
 *
 *     loop: fd readable, or the wait is over, or a turn was taken ---> bel__http_run()
 *                                                                         |
 *     options.backend  <---- requests, answered in a turn <---------------'
 *
 * The HTTP server has no thread of its own and never blocks. A run does a limited amount of work:
 * long responses are made in slices. The time is that of `options.service`. It submits requests to
 * `options.backend`. That backend counts them, so the loop knows that a turn is needed. The backend
 * replies through the `done` callback during a turn; the next bel__http_run() sends the response.
 */

#include "core/address.h"
#include "core/why.h"
#include "metrics/metrics.h"
#include "session/session.h"

#include <stdbool.h>
#include <stdint.h>

struct bel_http;            /* opaque, as is the next */
struct bel_http_connection; /* of a client */

enum {
    /* Bytes of bodies and responses that a run works on, at most; one request or slice may exceed
     * it. */
    BEL_HTTP_RUN_BYTES_MAX = 256 << 10,
};

struct bel_http_options {
    struct bel_address address;        /* port 0: any free port */
    struct bel_backend *backend;       /* borrowed, as are the next two */
    const struct bel_service *service; /* time of the turn, API keys, limits */
    struct bel_metrics *metrics;       /* for GET /metrics, and counters */
    uint32_t connections_max;
};

/* Starts to listen. Returns 0 and sets `*out`; or BEL_ENOMEM; or BEL_EIO if it cannot listen on the
 * address, and sets `why` to the error of the system. */
BEL_CHECKED int bel__http_start(const struct bel_http_options *options, struct bel_http **out,
                                struct bel_why *why);

/* Returns the port that the server listens on. */
uint16_t bel__http_port(const struct bel_http *http);

/* Returns the file descriptor to poll: if it is readable, call bel__http_run(). */
int bel__http_fd(const struct bel_http *http);

/* Accepts connections, reads requests, submits them and sends responses, without blocking. */
void bel__http_run(struct bel_http *http);

/* Returns how many bytes the last run has worked on: received bodies it has parsed, and parts of
 * responses it has checked and made. */
uint64_t bel__http_work(const struct bel_http *http);

/* Returns the longest delay until the next bel__http_run(), in ms; UINT64_MAX: no deadline, wait
 * for the file descriptor. */
uint64_t bel__http_wait_ms(const struct bel_http *http);

/* Returns whether requests wait because of the answers of all connections (output_total.h). */
bool bel__http_is_crowded(const struct bel_http *http);

/* Returns whether one of them can be executed; and executes it, in the order of their arrival. */
bool bel__http_can_go_on(const struct bel_http *http);
bool bel__http_go_on(struct bel_http *http);

/* Begins to count what each client reads. Later bel__http_find_slowest() returns the memory of the
 * largest answer whose client has read less than an eighth of it since then, and has let the server
 * wait for at least half of that time; 0: there is none. */
void bel__http_begin_tick(struct bel_http *http);
size_t bel__http_find_slowest(const struct bel_http *http, struct bel_http_connection **out);

/* Closes a connection that was found. */
void bel__http_drop(struct bel_http_connection *connection);

/* Stops accepting connections. Each later response closes its connection. */
void bel__http_drain(struct bel_http *http);

/* Returns whether no request waits for a reply or for its response to be sent. A request that is
 * still being received does not count: its client may be slow, or gone. */
bool bel__http_is_idle(const struct bel_http *http);

/* Withdraws waiting requests, closes all connections and frees the server; NULL is allowed. */
void bel__http_stop(struct bel_http *http);

#endif
