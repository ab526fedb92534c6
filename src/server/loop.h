/* SPDX-License-Identifier: MIT */
#ifndef BEL_SERVER_LOOP_H
#define BEL_SERVER_LOOP_H

/*
 * loop - the one thread that reads, turns and writes.
 *
 *     poll: bytes come in, clients come and go
 *       |                                      ^
 *       v                                      | at most POLLS_MAX times while more keeps
 *     step: sessions parse and submit ---------'    coming: what comes together shares a sync
 *       |
 *       v
 *     turn: applied, committed once, answered into the sessions
 *       |
 *       v
 *     write: what was answered leaves; what a socket does not take waits for it
 *       |
 *       '---> poll, until something comes, is due, or a wait ends
 *
 * Nothing that a command has changed is answered before its commit, because nothing is written
 * between the step and the turn behind it.
 *
 * Threads: a loop belongs to the thread that made it; bel__loop_wake() is for all.
 */

#include "core/why.h"
#include "http/http.h"
#include "metrics/metrics.h"
#include "server/logger.h"
#include "server/server_clock.h"
#include "session/request_tracker.h"
#include "session/session.h"

struct bel_loop; /* opaque; see server/loop_state.h for its parts */

/* All of it is borrowed. */
struct bel_loop_options {
    const struct bel_service *service;   /* of the sessions */
    struct bel_request_tracker *tracker; /* which each connection is a caller of */
    struct bel_server_clock *clock;
    struct bel_metrics *metrics;
    const struct bel_logger *log;
    uint32_t clients_max;
    int (*broken)(void *context); /* 0, or why nothing can be trusted any more; asked each turn */
    /* Does a slice of something that takes long, between two polls. Returns in how many ms to call
     * it again; UINT64_MAX: not before bel__loop_begin_chore(). */
    uint64_t (*chore)(void *context);
    void *context;
};

/* Makes a loop, which takes SIGTERM and SIGINT from here on: the first drains, the second ends the
 * process. Returns 0 and sets `*out`; or BEL_ENOMEM, or BEL_EIO if the system refuses it. */
BEL_CHECKED int bel__loop_create(const struct bel_loop_options *options, struct bel_loop **out);

/* Listens for clients. Returns 0 and sets the port in `*address` if it was 0; or BEL_EIO, and says
 * in `why` what the system said. */
BEL_CHECKED int bel__loop_listen(struct bel_loop *loop, struct bel_address *address,
                                 struct bel_why *why);

/* Runs HTTP along with the rest; it is borrowed until bel__loop_finish(). */
BEL_CHECKED int bel__loop_add_http(struct bel_loop *loop, struct bel_http *http);

/* Runs until it has drained. Returns 0; or what `broken` said. */
BEL_CHECKED int bel__loop_run(struct bel_loop *loop);

/* Any thread: there is something for a turn to do. */
void bel__loop_wake(struct bel_loop *loop);

/* Stops listening, answers claims that wait with nothing, finishes what has been received, and
 * ends. Clients that do not take their answers are closed after a while. */
void bel__loop_drain(struct bel_loop *loop);

/* Advances virtual time, as bel__server_clock_advance() does. */
BEL_CHECKED int bel__loop_advance(struct bel_loop *loop, struct bel_wall to, uint64_t *turns);

/* Calls the chore of the options behind the next poll, and again for as long as it wants. */
void bel__loop_begin_chore(struct bel_loop *loop);

/* Closes all clients, and takes turns until nothing that they have asked is under way. Behind this
 * the backend may be closed, and only then the loop destroyed: until then it may be woken. */
void bel__loop_finish(struct bel_loop *loop);

/* Frees a loop; NULL is allowed. */
void bel__loop_destroy(struct bel_loop *loop);

#endif
