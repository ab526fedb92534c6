/* SPDX-License-Identifier: MIT */
#ifndef BEL_SESSION_SESSION_H
#define BEL_SESSION_SESSION_H

/*
 * session - the protocol of one connection, without its socket: received bytes become requests to
 * the backend, replies become bytes to send. A session has no socket, no clock and no loop, so
 * tests and the simulator drive it as the server does:
 *
 *     if (bel__session_room(session) > 0) read ...   read only if the session has room
 *     bel__session_receive(session, data, bytes);    any number of bytes, split anywhere
 *     while (bel__session_step(session, 64)) ...     parses and submits, at most 64 commands
 *     bel_backend_turn(backend, now);                the backend replies to the session
 *     write(fd, bel__buffer_data(out), out->count);  out = bel__session_output(session)
 *
 * Replies are sent in the order of the commands. A waiting claim delays the next command, as does a
 * command whose effects the next one must see. Unparsed input, running commands and unread output
 * are bounded. If the client does not read, the session stops parsing, and then stops accepting
 * input. Commands with long replies run together only if the output has room for all their replies;
 * a command whose reply may fill the output runs alone. While the replies of all sessions exceed
 * half of their limit, a session runs no command before it has written its own replies; while they
 * exceed the limit, none with a long reply. A turn makes about BEL_TURN_BYTES_MAX of long replies,
 * so that other clients wait for a few milliseconds only; the other commands wait for the next
 * turn. While the incomplete requests of all connections exceed half of their limit, a session with
 * one may have no room until others are complete: see session/input_total.h.
 *
 * Step a session after input arrived, after a reply (`ready`), and after output was written.
 */

#include "belfry/backend.h"
#include "core/buffer.h"
#include "core/list.h"
#include "core/why.h"
#include "metrics/metrics.h"
#include "session/input_total.h"
#include "session/output_total.h"
#include "session/scope.h"
#include "session/wrong_keys.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bel_session; /* opaque */

enum {
    /* Bytes of long replies that a turn makes, and one reply; more if the replies before were
     * shorter. */
    BEL_TURN_BYTES_MAX = 4 << 20,
};

/* An operation of the server that outlasts a turn. The server calls `done` once, on the thread of
 * the sessions, and not from within the function that started the task. `err` is 0 or an error,
 * `why` its message, which may be empty. */
struct bel_background_task {
    void (*done)(struct bel_background_task *task, int err, const char *why);
    struct bel_link link; /* private to the server, as is the next */
    struct bel_wall to;
};

/* Returned by a function that starts a task and will call `done` later; otherwise such a function
 * returns 0 if the task is already done, or an error. */
enum {
    BEL_BACKGROUND_LATER = 1,
};

/* A movement of the virtual clock: to a time, or by a duration from the time when it starts. */
struct bel_clock_move {
    bool is_set; /* move to `to`; otherwise by `by_ms` */
    struct bel_wall to;
    uint64_t by_ms;
};

/* A pool of unused calls with their memory, shared by all sessions. Starts zeroed; finish it when
 * no session is left. */
struct bel_call_pool {
    struct bel_call *spare; /* private, as is the next */
    size_t spare_count;
};

void bel__call_pool_finish(struct bel_call_pool *pool);

struct bel_service;

/* Returns the memory of the largest request, over RESP or HTTP. */
size_t bel__session_request_memory(const struct bel_service *service);

/* A key that a client sends. */
struct bel_key_attempt {
    struct bel_view user; /* may be empty */
    struct bel_view key;
    const char *address; /* of the client, with its port */
};

/* The parts of a server that all sessions share. Outlives the sessions. */
struct bel_service {
    struct bel_zones *zones;     /* for times with a zone; may be NULL */
    const struct bel_now *now;   /* the time of this turn, set by the loop */
    struct bel_metrics *metrics; /* counts error replies; may be NULL */
    struct bel_call_pool *calls; /* NULL: each session keeps one unused call, others are freed */
    uint32_t payload_bytes_max;
    size_t job_bytes_max;                  /* of the text of a job; 0: as for a payload */
    size_t output_bytes_max;               /* unread output of a session; 0: 8 MiB */
    struct bel_output_total *output_total; /* of all connections, also of HTTP; NULL: no limit */
    struct bel_input_total *input_total;   /* the same */
    size_t commands_max;                   /* running commands of a session; 0: 1,024 */
    uint32_t auth_ms_max;                  /* time for a client to send a right key; 0: 10 s */
    /* AUTH: returns whether the key is valid for its user, and sets its permissions. NULL: no
     * authentication, all clients have all permissions. */
    bool (*authenticate)(void *context, const struct bel_key_attempt *attempt,
                         struct bel_grant *out);
    struct bel_wrong_keys *wrong_keys; /* counts wrong keys per address; NULL: no limit */
    /* Called after a wrong key. May be NULL. */
    void (*report_key)(void *context, const struct bel_key_attempt *attempt,
                       enum bel_wrong_keys_verdict verdict);
    /* INFO, BACKUP, SHUTDOWN: commands that the server executes, not the backend. Each returns 0 or
     * an error, with a message in `why`. Each may be NULL. */
    int (*info)(void *context, struct bel_view section, const struct bel_scope *scope,
                struct bel_buffer *out); /* with a scope: only what concerns its topics */
    /* Returns whether the store can be reached. NULL: always. */
    bool (*is_ready)(void *context);
    int (*backup)(void *context, struct bel_view path, struct bel_background_task *task,
                  struct bel_why *why);
    void (*shutdown)(void *context);
    /* CLOCK ADVANCE and SET: moves the virtual clock and takes turns. Returns 0,
     * BEL_BACKGROUND_LATER, or BEL_EINVAL for a time in the past or too far in the future. NULL:
     * the server uses the system clock. */
    int (*advance)(void *context, const struct bel_clock_move *move,
                   struct bel_background_task *task);
    /* Called when a destroyed session is freed, after its last request has ended. May be NULL. When
     * all sessions are freed, the backend has no request of theirs and may be closed. */
    void (*gone)(void *context);
    void *context;
};

/* The connection that a session belongs to. `ready` is not called after bel__session_destroy(). The
 * backend outlives every request of the session. */
struct bel_session_owner {
    struct bel_backend *backend; /* the session submits its requests here; borrowed */
    /* Called after a reply: there may be output to write, or the session can be stepped again.
     * Called within a turn, perhaps often; it must only set a flag. May be NULL. */
    void (*ready)(void *context);
    void *context;
    /* Returns whether bytes of the client wait to be read. May be NULL: they never do. */
    bool (*has_input)(void *context);
};

/* Creates a session. Returns 0 and sets `*out`, or BEL_ENOMEM. */
BEL_CHECKED int bel__session_create(const struct bel_service *service,
                                    const struct bel_session_owner *owner,
                                    struct bel_session **out);

/* Destroys a session: withdraws waiting claims, and releases deliveries whose reply was not
 * written, so that workers need not wait for the leases to expire. The memory is freed when the
 * backend has replied to all requests. NULL is allowed. */
void bel__session_destroy(struct bel_session *session);

/* Releases the deliveries of the last claim that could wait, if the client has sent nothing after
 * their reply was written. Call it before bel__session_destroy() if the connection was reset: the
 * client has closed it without reading everything. */
void bel__session_take_back(struct bel_session *session);

/* Sets the id and the address that CLIENT ID and CLIENT LIST show. A long address is cut. */
void bel__session_introduce(struct bel_session *session, uint64_t id, const char *address);

/* Returns how many bytes the session can receive. 0: do not read from the socket until the session
 * was stepped or output was written. */
size_t bel__session_room(const struct bel_session *session);

/* The connection does not read, because the session has no room. If that is so because of the
 * requests of all connections, `ready` is called when the session may have room again. */
void bel__session_block(struct bel_session *session);

/* Appends received bytes to the input. Returns 0; BEL_EFULL if they exceed the room; or BEL_ENOMEM.
 * After a failure the session is closing. */
BEL_CHECKED int bel__session_receive(struct bel_session *session, const void *data, size_t bytes);

/* Parses and submits up to `commands` commands. Returns true if there may be more to parse, false
 * if the session waits for input, for replies, or for output to be written. */
bool bel__session_step(struct bel_session *session, unsigned commands);

/* Returns why the last step stopped, if the replies of all connections take too much memory. Step
 * the session again when they take less. */
enum bel_session_crowd bel__session_crowd(const struct bel_session *session);

/* Returns the memory of the replies that the client has not read. */
size_t bel__session_unread_bytes(const struct bel_session *session);

/* Returns the output. The caller writes it, consumes the written bytes, and calls
 * bel__session_trim(), which frees their memory. */
struct bel_buffer *bel__session_output(struct bel_session *session);

void bel__session_trim(struct bel_session *session);

/* Returns whether the session is blocked until some of its output is written. */
bool bel__session_is_full(const struct bel_session *session);

/* Returns whether the connection must be closed after its output is written. */
bool bel__session_is_closing(const struct bel_session *session);

/* Returns whether a background task of the session is running. */
bool bel__session_is_busy(const struct bel_session *session);

/* Returns until when the client must have sent a right key; BEL_NEVER if it has, or needs none. */
struct bel_mono bel__session_auth_end(const struct bel_session *session);

/* Returns until when the output must not be written, because the client has sent too many wrong
 * keys; 0 if it may be written. */
struct bel_mono bel__session_mute_end(const struct bel_session *session);

/* Updates the permissions of an authenticated client after the keys were read again. `regrant`
 * updates a grant, or returns false if its key is no longer valid: then the session is dropped. */
void bel__session_regrant(struct bel_session *session,
                          bool (*regrant)(void *context, struct bel_grant *grant));

/* Returns whether the output contains deliveries of a claim that could wait. */
bool bel__session_has_awaited(const struct bel_session *session);

/* Returns whether the session has no command in progress. */
bool bel__session_is_idle(const struct bel_session *session);

#endif
