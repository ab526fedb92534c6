/* SPDX-License-Identifier: MIT */
#ifndef BEL_SESSION_SESSION_H
#define BEL_SESSION_SESSION_H

/*
 * session - one connection, without the connection: bytes come in, requests go to the backend,
 * bytes go out. It has no socket, no clock and no loop, so tests and the simulator drive it as the
 * server does:
 *
 *     if (bel__session_room(session) > 0) read ...   does it want more? otherwise leave it be
 *     bel__session_receive(session, data, bytes);    any number of bytes, split anywhere
 *     while (bel__session_step(session, 64)) ...     parses and submits, up to so many commands
 *     bel_backend_turn(backend, now);                answers come back into the session
 *     write(fd, bel__buffer_data(out), out->count);  out = bel__session_output(session)
 *
 * Answers leave in the order of the commands. A claim that waits holds back the commands behind
 * it, as do those of which the next one should see all effects. What a session keeps is bounded:
 * unparsed input, commands under way, unread output. One whose output nobody reads stops parsing,
 * and later wanting input. Of commands whose answers may be long, only as many are under way as
 * have room in the output; one that may fill it is alone.
 *
 * So a session is to be stepped when input has come, when it was answered (`ready`), and
 * when output was written.
 */

#include "belfry/backend.h"
#include "core/buffer.h"
#include "core/list.h"
#include "core/why.h"
#include "session/scope.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bel_session; /* opaque */

/* Something of the server's own that takes a while. Whoever does it calls `done` once, on the
 * thread of the sessions and not from where it was begun, with 0 or an error and a text that may
 * be empty. */
struct bel_background_task {
    void (*done)(struct bel_background_task *task, int err, const char *why);
    struct bel_link link; /* of whoever does it, as is the next */
    struct bel_wall to;
};

/* What begins one returns: an error, 0 if it is done already, or this. */
enum {
    BEL_BACKGROUND_LATER = 1,
};

/* How the clock is to move: to a time, or by so much from where it will be then. */
struct bel_clock_move {
    bool is_set;
    struct bel_wall to;
    uint64_t by_ms;
};

/* Calls that have ended, with their memory, for the next commands of any session. Zeroed at first,
 * finished when no session is left. */
struct bel_call_pool {
    struct bel_call *spare; /* private, as is the next */
    size_t spare_count;
};

void bel__call_pool_finish(struct bel_call_pool *pool);

/* What all sessions of a server share. Borrowed, and outlives them. */
struct bel_service {
    struct bel_zones *zones;     /* for times with a zone; may be NULL */
    const struct bel_now *now;   /* the time of this turn, kept up to date by the loop */
    struct bel_call_pool *calls; /* NULL: none are kept, but one by each session */
    uint32_t payload_bytes_max;
    size_t output_bytes_max; /* unread, of a session; 0: 8 MiB */
    size_t commands_max;     /* under way, of a session; 0: 1,024 */
    /* AUTH: whether a user (may be empty) with a key may come in, and what he may do. NULL: nobody
     * needs to, everybody may do all. */
    bool (*authenticate)(void *context, struct bel_view user, struct bel_view key,
                         struct bel_grant *out);
    /* INFO, BACKUP, SHUTDOWN, CLOCK: what is the server's and not the backend's. Appends to `out`
     * or returns an error with its text in `why`. */
    int (*info)(void *context, struct bel_view section, struct bel_buffer *out);
    int (*backup)(void *context, struct bel_view path, struct bel_background_task *task,
                  struct bel_why *why);
    void (*shutdown)(void *context);
    /* CLOCK ADVANCE and SET under a virtual clock; NULL with the system's. It moves time and takes
     * turns; or BEL_EINVAL if that is past or too far. */
    int (*advance)(void *context, const struct bel_clock_move *move,
                   struct bel_background_task *task);
    /* A destroyed session is gone, all that it had under way has ended. May be NULL. When as many
     * are gone as were created, the backend has nothing of theirs and may be closed. */
    void (*gone)(void *context);
    void *context;
};

/* The connection that a session belongs to. Borrowed, and outlives the session. */
struct bel_session_owner {
    struct bel_backend *backend; /* what the session submits to */
    /* The session was answered: there is something to write, or it can be stepped again. Called
     * within a turn, perhaps often; it may take note, and nothing else. May be NULL. */
    void (*ready)(void *context);
    void *context;
};

/* Makes a session. Returns 0 and sets `*out`, or BEL_ENOMEM. */
BEL_CHECKED int bel__session_create(const struct bel_service *service,
                                    const struct bel_session_owner *owner,
                                    struct bel_session **out);

/* Frees a session: requests that wait are withdrawn; deliveries that were not written are released,
 * so that nobody has to wait for their leases. It may live on, unseen, until the backend has
 * answered what is under way. NULL is allowed. */
void bel__session_destroy(struct bel_session *session);

/* Sets what CLIENT ID and CLIENT LIST show. The address is copied, and cut off if it is long. */
void bel__session_introduce(struct bel_session *session, uint64_t id, const char *address);

/* How many bytes it can take in. 0: leave them where they are until it is stepped or written. */
size_t bel__session_room(const struct bel_session *session);

/* Takes bytes in. BEL_EFULL: more than may be unparsed; then it is over, see is_closing. */
BEL_CHECKED int bel__session_receive(struct bel_session *session, const void *data, size_t bytes);

/* Parses and submits up to `commands` commands. True if there may be more to parse; false if it
 * waits, for input, answers or a reader. */
bool bel__session_step(struct bel_session *session, unsigned commands);

/* What is to be written; consume what was. */
struct bel_buffer *bel__session_output(struct bel_session *session);

/* Whether it does nothing more until some of its output is written. */
bool bel__session_is_full(const struct bel_session *session);

/* Whether it is to be closed once its output is written. */
bool bel__session_is_closing(const struct bel_session *session);

/* Whether a task of its is under way. */
bool bel__session_is_busy(const struct bel_session *session);

/* Whether it has nothing under way: for a drain. */
bool bel__session_is_idle(const struct bel_session *session);

#endif
