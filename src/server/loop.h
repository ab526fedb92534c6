/* SPDX-License-Identifier: MIT */
#ifndef BEL_SERVER_LOOP_H
#define BEL_SERVER_LOOP_H

/*
 * loop - the event loop: one thread that reads requests, takes turns and writes replies.
 *
 *     poll: receive bytes, accept and close connections
 *       |                                      ^
 *       v                                      | at most POLLS_MAX times while input arrives:
 *     step: sessions parse and submit ---------'    the requests of a turn share a sync
 *       |
 *       v
 *     turn: apply the requests, commit once, put the replies into the sessions
 *       |
 *       v
 *     write: send the replies; what a socket does not accept is sent later
 *       |
 *       '---> poll, until there is input, a timer is due, or a wait ends
 *
 * No change is acknowledged before its commit, because nothing is written between a step and the
 * turn that follows it.
 *
 * Threads: a loop belongs to the thread that created it; any thread may call bel__loop_wake().
 */

#include "core/why.h"
#include "http/http.h"
#include "metrics/metrics.h"
#include "server/logger.h"
#include "server/server_clock.h"
#include "session/request_tracker.h"
#include "session/session.h"

struct bel_loop; /* opaque; see server/loop_state.h for its parts */

/* All pointers are borrowed. */
struct bel_loop_options {
    const struct bel_service *service;   /* for the sessions */
    struct bel_request_tracker *tracker; /* each connection is a caller of it */
    struct bel_server_clock *clock;
    struct bel_metrics *metrics;
    const struct bel_logger *log;
    uint32_t clients_max;
    int (*broken)(void *context); /* 0, or a fatal error; called after each turn */
    /* Does a slice of a long operation, between two polls. Returns in how many ms to call it again;
     * UINT64_MAX: not before bel__loop_begin_chore(). */
    uint64_t (*chore)(void *context);
    void (*reload)(void *context); /* SIGHUP was received; may be NULL */
    void *context;
};

/* Creates a loop, which handles SIGTERM and SIGINT from then on: the first signal drains, a second
 * closes all clients and ends the loop, a third ends the process. SIGHUP calls `reload`. Returns 0
 * and sets `*out`; or BEL_ENOMEM, or BEL_EIO if a system call fails. */
BEL_CHECKED int bel__loop_create(const struct bel_loop_options *options, struct bel_loop **out);

/* Checks that an address is free, without listening. Returns 0; or BEL_EIO, and sets `why` as
 * bel__loop_listen(). */
BEL_CHECKED int bel__loop_probe(const struct bel_address *address, struct bel_why *why);

/* Listens for clients. Returns 0 and sets the port in `*address` if it was 0; or BEL_EIO, and sets
 * `why` to the system's error. */
BEL_CHECKED int bel__loop_listen(struct bel_loop *loop, struct bel_address *address,
                                 struct bel_why *why);

/* Adds an HTTP server to the loop; it is borrowed until bel__loop_finish(). */
BEL_CHECKED int bel__loop_add_http(struct bel_loop *loop, struct bel_http *http);

/* Takes a turn whenever the descriptor of a backend is readable; one without a descriptor needs
 * nothing. The backend must not be closed before bel__loop_finish(). Returns 0 or BEL_EIO. */
BEL_CHECKED int bel__loop_add_backend(struct bel_loop *loop, const struct bel_backend *backend);

/* Runs until the loop has drained. Returns 0; or the error of a failed store, from a reply of the
 * backend or from `broken`. */
BEL_CHECKED int bel__loop_run(struct bel_loop *loop);

/* Requests a turn. Any thread may call it. */
void bel__loop_wake(struct bel_loop *loop);

/* Stops listening, ends waiting claims with empty replies, answers the requests received so far,
 * and ends the loop. Clients that do not read their replies are closed after DRAIN_MS_MAX. */
void bel__loop_drain(struct bel_loop *loop);

/* Advances virtual time, like bel__server_clock_advance(). */
BEL_CHECKED int bel__loop_advance(struct bel_loop *loop, struct bel_wall to, uint64_t *turns);

/* Updates the permissions of all clients, like bel__session_regrant(), and closes the connections
 * of those whose key is no longer valid. */
void bel__loop_regrant(struct bel_loop *loop,
                       bool (*regrant)(void *context, struct bel_grant *grant));

/* Calls the chore of the options after the next poll, and again as its result says. */
void bel__loop_begin_chore(struct bel_loop *loop);

/* Closes all connections, and takes turns until their requests are done or END_MS_MAX has passed.
 * Then close the backend, and destroy the loop after that: a thread of the backend may wake the
 * loop until the backend is closed. */
void bel__loop_finish(struct bel_loop *loop);

/* Frees a loop; NULL is allowed. */
void bel__loop_destroy(struct bel_loop *loop);

#endif
