/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_LINK_EXCHANGE_H
#define BEL_REDIS_LINK_EXCHANGE_H

/*
 * exchange - the calls of a link, and which reply belongs to which call.
 *
 *     urgent, unsent --write--> sent --read--> done
 *
 * A server replies in the order of commands, so the first call that was sent gets the next reply.
 * When a connection breaks, the sent calls end; replies to them can never arrive on another
 * connection. Calls that were not sent completely stay: a server does not execute a part of a
 * command.
 */

#include "redis/link/call.h"
#include "redis/link/stream.h"

#include "core/buffer.h"
#include "core/list.h"
#include "core/why.h"
#include "resp/reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bel_exchange_options {
    uint32_t calls_max;     /* that have not ended */
    size_t bytes_max;       /* of their commands */
    size_t reply_bytes_max; /* of one reply */
    size_t reply_values_max;
};

/* Pushed messages go to this function. */
typedef void bel_exchange_pushed(void *owner, const struct bel_value *message);

struct bel_exchange {
    uint32_t calls_count;                /* read only: calls that have not ended */
    uint64_t replies_count;              /* read only: replies on this connection */
    bool is_pending;                     /* read only: bel__exchange_read() has left something */
    bool is_resp3;                       /* set by the owner */
    struct bel_exchange_options options; /* this and all below is private */
    bel_exchange_pushed *pushed;
    void *owner;
    size_t bytes;
    struct bel_list urgent; /* bound to this connection and sent before all others */
    struct bel_list unsent, sent;
    size_t written;           /* bytes of the first call that is not sent completely */
    struct bel_mono earliest; /* no deadline is before this */
    struct bel_buffer input;
    struct bel_reader reader;
};

void bel__exchange_init(struct bel_exchange *exchange, const struct bel_exchange_options *options,
                        bel_exchange_pushed *pushed, void *owner);

/* Frees the memory. All calls must have ended. */
void bel__exchange_finish(struct bel_exchange *exchange);

/* Returns whether another call with `bytes` bytes is within the limits. */
bool bel__exchange_has_room(const struct bel_exchange *exchange, size_t bytes);

/* Adds a call with its deadline. A call with `is_bound` is urgent and ends with the connection. */
void bel__exchange_add(struct bel_exchange *exchange, struct bel_redis_call *call);

/* Takes a call back. Returns false if it was sent, at least in part: then it goes on. */
bool bel__exchange_withdraw(struct bel_exchange *exchange, struct bel_redis_call *call);

/* Writes calls; only urgent ones unless `is_open`. Returns 0 if all are sent, BEL_EBUSY if some are
 * not, or BEL_EIO and sets `*why`. */
BEL_CHECKED int bel__exchange_write(struct bel_exchange *exchange, struct bel_stream *stream,
                                    bool is_open, struct bel_why *why);

/* Reads replies and ends their calls, up to a limit; `is_pending` tells whether there is more.
 * Returns 0; or BEL_EIO, BEL_ECLOSED or BEL_ENOMEM and sets `*why`: then the connection must be
 * dropped. */
BEL_CHECKED int bel__exchange_read(struct bel_exchange *exchange, struct bel_stream *stream,
                                   struct bel_why *why);

/* Ends calls that were not sent by their deadline. Returns whether the deadline of a call has
 * passed that was sent, at least in part: then the connection must be dropped. */
bool bel__exchange_expire(struct bel_exchange *exchange, struct bel_mono now);

/* Ends calls that need RESP3 and are not sent. */
void bel__exchange_refuse_pushes(struct bel_exchange *exchange);

/* The connection is closed: ends the calls that were sent and those that are bound to it. */
void bel__exchange_break(struct bel_exchange *exchange, const char *why);

/* Ends all calls that are not sent. */
void bel__exchange_close(struct bel_exchange *exchange, const char *why);

/* Checks every invariant, for tests. */
bool bel__exchange_valid(const struct bel_exchange *exchange);

#endif
