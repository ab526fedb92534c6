/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_LINK_LINK_H
#define BEL_REDIS_LINK_LINK_H

/*
 * link - a connection to one Redis server that is restored when it breaks.
 *
 *     idle --> resolving --> connecting --> securing --> greeting --> ready
 *                  ^              |             |            |          |
 *                  '------- waiting <-----------'------------'----------'
 *
 *     err = bel__redis_link_open(&options, &link);
 *     err = bel__redis_link_send(link, call, now);          queues the call
 *     next = bel__poller_turn(&poller, now);                sends calls, calls their `done`
 *     bel__redis_link_close(link);
 *
 * Calls are sent in order, as many as there are with one write at the end of a turn. Each has a
 * deadline. A call that was not sent stays in the queue while the link connects again; a call that
 * was sent ends with BEL_EIO when the connection breaks, because nobody knows whether the server
 * has executed it. A call that was sent and has no reply by its deadline breaks the connection: the
 * server is silent, and its reply must not be taken for the reply to another call.
 *
 * A name is looked up for each attempt to connect, and all its addresses are tried in turn. Between
 * attempts the link waits a random time of up to 50 ms, which doubles up to 5 s. The bound starts
 * at 50 ms again after a connection that has replied to a call or has lasted 5 s.
 *
 * A malformed or too large reply, or a reply that no call waits for, breaks the connection.
 *
 * Threads: a link belongs to the thread of its poller.
 */

#include "redis/link/call.h"
#include "redis/link/greeting.h"
#include "redis/link/poller.h"
#include "redis/link/tls.h"

#include "belfry/clock.h"
#include "belfry/error.h"

#include "core/entropy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BEL_REDIS_CONNECT_MS = 5000, /* defaults of the options */
    BEL_REDIS_CALL_MS = 5000,
    BEL_REDIS_CALLS_MAX = 100000,
    BEL_REDIS_CALL_BYTES_MAX = 64 << 20,
    BEL_REDIS_REPLY_BYTES_MAX = 64 << 20,
    BEL_REDIS_REPLY_VALUES_MAX = 1 << 20,
    BEL_REDIS_RETRY_MS_MIN = 50, /* the longest first wait */
    BEL_REDIS_RETRY_MS_MAX = 5000,
};

enum bel_redis_link_state {
    BEL_REDIS_LINK_IDLE,       /* until the first call, or bel__redis_link_connect() */
    BEL_REDIS_LINK_RESOLVING,  /* looks up the addresses of the host */
    BEL_REDIS_LINK_CONNECTING, /* to one of the addresses */
    BEL_REDIS_LINK_SECURING,   /* the handshake of TLS */
    BEL_REDIS_LINK_GREETING,   /* HELLO, AUTH, SELECT */
    BEL_REDIS_LINK_READY,
    BEL_REDIS_LINK_WAITING, /* for the next attempt */
};

struct bel_redis_link; /* opaque */

struct bel_redis_link_options {
    struct bel_poller *poller;   /* borrowed */
    struct bel_entropy *entropy; /* borrowed; for the waits between attempts */
    const char *host;            /* a name or an address; NULL: `path` */
    uint16_t port;
    const char *path;          /* of a Unix socket */
    const struct bel_tls *tls; /* borrowed; NULL: without TLS. Not with a path */
    const char *user, *password;
    const char *name; /* of the connection, for CLIENT LIST; NULL: none */
    uint32_t db;
    uint32_t connect_ms;     /* for one attempt, all addresses together; 0: the default */
    uint32_t call_ms;        /* for calls that have no timeout; 0: the default */
    uint32_t calls_max;      /* that have not ended; 0: the default */
    size_t call_bytes_max;   /* of their commands; 0: the default */
    size_t reply_bytes_max;  /* of one reply; 0: the default */
    size_t reply_values_max; /* of one reply; 0: the default */
    void *owner;             /* for the functions below */
    /* The link has become ready, or was ready and is no longer; NULL: nobody wants to know. Calls
     * that this function sends when the link becomes ready belong to the connection: they are sent
     * before all others, and end with BEL_EIO when the connection breaks, even if they were not
     * sent. */
    void (*changed)(struct bel_redis_link *link, void *owner);
    /* A message arrived that is not a reply, such as one of a channel; a list of at least one
     * item, whose first is a text. NULL: such messages are dropped. */
    void (*pushed)(struct bel_redis_link *link, void *owner, const struct bel_value *message);
};

/* Opens a link, which is idle. Copies the texts. Returns 0 and sets `*out`; or BEL_EINVAL if the
 * path of a socket is too long, or BEL_ENOMEM. */
BEL_CHECKED int bel__redis_link_open(const struct bel_redis_link_options *options,
                                     struct bel_redis_link **out);

/* Closes a link; NULL is allowed. Calls that were sent end with BEL_EIO, the others with
 * BEL_ECLOSED. Must not be called by `done`, `changed` or `pushed`. */
void bel__redis_link_close(struct bel_redis_link *link);

/* Leaves the state idle: the next flush begins to connect. */
void bel__redis_link_connect(struct bel_redis_link *link);

/* Sends a call. Returns 0, and `done` will be called; or, without a call of `done`, BEL_EFULL if
 * the link has too many calls, BEL_ECLOSED if the link is being closed, or BEL_EUNSUPPORTED if the
 * call has `confirmed_by` and the server does not speak RESP3. */
BEL_CHECKED int bel__redis_link_send(struct bel_redis_link *link, struct bel_redis_call *call,
                                     struct bel_mono now);

/* Takes a call back that has not ended. Returns true if no byte of it was sent: `done` is not
 * called. Otherwise returns false, and `done` will be called. */
bool bel__redis_link_withdraw(struct bel_redis_link *link, struct bel_redis_call *call);

/* Drops the connection at the next flush and connects again, e.g. because the server has become a
 * replica. `why` is the reason for the calls that were sent; it is copied. */
void bel__redis_link_drop(struct bel_redis_link *link, const char *why);

/* Connects to another server from now on, and drops the connection. Calls that were not sent go to
 * the new server. Returns 0; or BEL_ENOMEM, and nothing has changed. */
BEL_CHECKED int bel__redis_link_move(struct bel_redis_link *link, const char *host, uint16_t port);

enum bel_redis_link_state bel__redis_link_state(const struct bel_redis_link *link);

/* Returns the reason of the last failure, e.g. "10.0.0.7:6379: cannot connect: Connection refused";
 * empty if there was none. A first handshake of TLS that takes long counts as one. Stays the same
 * when the link becomes ready again. */
const char *bel__redis_link_why(const struct bel_redis_link *link);

/* Returns what the server has told about itself; valid while the link is ready. */
const struct bel_redis_server *bel__redis_link_server(const struct bel_redis_link *link);

/* Returns how many times the link has become ready. */
uint64_t bel__redis_link_connections(const struct bel_redis_link *link);

/* Returns the number of calls that have not ended. */
uint32_t bel__redis_link_calls(const struct bel_redis_link *link);

/* Checks every invariant, for tests. */
bool bel__redis_link_valid(const struct bel_redis_link *link);

#endif
