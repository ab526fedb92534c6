/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_LINK_CALL_H
#define BEL_REDIS_LINK_CALL_H

/*
 * call - a command to a Redis server, and what to do with its reply.
 *
 *     call->command = (struct bel_view){bel__buffer_data(&buffer), buffer.count};
 *     call->done = claimed;
 *     err = bel__redis_link_send(link, call, now);
 *
 * The caller owns the call and the bytes of the command. Both stay as they are until the call has
 * ended; the command can then be sent again, also to another server.
 *
 * A call may consist of several commands that must reach the same connection one after the other,
 * such as ASKING and a command, or a write and WAIT: `command` has all of them, and `replies` their
 * number. They are sent to one connection, or none of them is. If it breaks when a part has been
 * sent, the first commands may have been executed, and the call ends with BEL_EIO.
 *
 * With RESP3, commands like SUBSCRIBE have no reply. Each channel is confirmed by a pushed message,
 * and only an error is a reply. Such a call sets `confirmed_by` to the first text of these
 * messages, and `replies` to their number.
 */

#include "belfry/clock.h"
#include "belfry/error.h"
#include "belfry/value.h"
#include "belfry/view.h"

#include "core/list.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * How a call goes on.
 *
 *     err               was it executed?   what has happened
 *     0                 see `value`        a reply, which may be an error reply such as MOVED
 *     BEL_EIO           unknown            the connection broke after the call was sent
 *     BEL_EBUSY         no                 its deadline passed before it could be sent
 *     BEL_ECLOSED       no                 the link was closed before the call was sent
 *     BEL_EUNSUPPORTED  no                 `confirmed_by`, but the server does not speak RESP3
 */
struct bel_redis_reply {
    int err;
    const struct bel_value *value; /* borrowed until `done` returns; NULL if `err` is not 0 */
    uint32_t index;                /* of the reply, from 0 */
    bool is_last;                  /* the call has ended and is the caller's again */
    const char *why;               /* the reason for people; empty if `err` is 0 */
};

struct bel_redis_call {
    struct bel_view command;  /* borrowed: one or more whole commands in RESP */
    uint32_t replies;         /* number of replies; 0 means 1 */
    uint32_t timeout_ms;      /* until the last reply; 0: as in the options of the link */
    const char *confirmed_by; /* borrowed: "subscribe"; NULL: ordinary replies */
    /* Called once for each reply, and the last time with `is_last`. An error is the last. May send
     * calls, also this one if it has ended. Must not close a link or take a turn. */
    void (*done)(struct bel_redis_call *call, const struct bel_redis_reply *reply);
    struct bel_link link; /* this and all below is private; zeroed before the first use */
    struct bel_mono deadline;
    uint32_t replied;
    bool is_sent, is_bound; /* bound: to this connection */
};

#endif
