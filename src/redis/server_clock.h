/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_SERVER_CLOCK_H
#define BEL_REDIS_SERVER_CLOCK_H

/*
 * server_clock - what a node knows about the clock of a server.
 *
 * Every reply of a script has the time at which the script ran: after the command was sent, before
 * the reply was received. So each reply bounds how far the clock of the server is ahead, and the
 * estimate moves only as far as the new bounds demand. A reply that a slow node reads late, or that
 * a slow server sends late, has wide bounds and changes nothing; the first quick one sets the
 * estimate right. The wall clock of the node has no part in this.
 *
 * All times are in ms; those of the node are of its boot clock.
 */

#include <stdbool.h>
#include <stdint.h>

struct bel_server_clock {
    bool is_known;
    int64_t ahead_ms; /* of the boot clock of the node */
};

static inline int64_t bel__server_clock_now(const struct bel_server_clock *clock, int64_t boot_ms)
{
    return boot_ms + clock->ahead_ms;
}

/* Takes over a time of the server. The first estimate is rather early than late: a node that wakes
 * too early asks, and gets a better one. */
static inline void bel__server_clock_learn(struct bel_server_clock *clock, int64_t server_ms,
                                           int64_t sent_ms, int64_t received_ms)
{
    int64_t least = server_ms - received_ms, most = server_ms - sent_ms;
    if (!clock->is_known || clock->ahead_ms > most) clock->ahead_ms = most;
    if (clock->ahead_ms < least) clock->ahead_ms = least;
    clock->is_known = true;
}

#endif
