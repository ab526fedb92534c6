/* SPDX-License-Identifier: MIT */
#ifndef BEL_SERVER_SERVER_CLOCK_H
#define BEL_SERVER_SERVER_CLOCK_H

/*
 * server_clock - the time that a turn is given, read once per turn: the system's, or a virtual time
 * that stands still until a client advances it.
 *
 * Virtual time goes through everything that happens on the way, in order, as if it had passed:
 *
 *     now ----> due ----> due ----------> due ----> to
 *         turn      turn           turn        turn
 *
 * It is what is stored, so it does not go back when the server is started again: with a folder,
 * it is kept in the file virtual-clock there. A new one starts with the system's time. Waits are
 * real time and do not ask it.
 */

#include "belfry/backend.h"
#include "session/request_tracker.h"

#include <stdbool.h>

enum {
    BEL_SERVER_CLOCK_TURNS_MAX = 1000000, /* of one advance, in all */
    BEL_SERVER_CLOCK_PATH_BYTES = 1100,
};

struct bel_server_clock {
    struct bel_now now;             /* read only */
    const struct bel_clock *system; /* borrowed: the system's */
    bool is_virtual;
    char
        path[BEL_SERVER_CLOCK_PATH_BYTES]; /* private: where virtual time is kept; empty: nowhere */
};

/* The system's time, from now on. */
void bel__server_clock_init(struct bel_server_clock *clock, const struct bel_clock *system);

/* Virtual time, kept in `folder`; NULL: not kept. Returns 0; or BEL_EIO, or BEL_ECORRUPT if what
 * is in the file is no time. */
BEL_CHECKED int bel__server_clock_init_virtual(struct bel_server_clock *clock,
                                               const struct bel_clock *system, const char *folder);

/* Keeps virtual time in another folder too, of at most 1,023 bytes, which is a copy of the first.
 * Returns 0, also if it is the system's time; or BEL_EIO. */
BEL_CHECKED int bel__server_clock_copy(const struct bel_server_clock *clock, const char *folder);

/* Reads the clock. */
void bel__server_clock_read(struct bel_server_clock *clock);

/*
 * Advances virtual time towards `to`, taking turns, at most `*turns` and for a few ms of real time;
 * says how many it has taken, and when the next one is needed. Returns 0 if it is there and
 * settled; BEL_EBUSY if it is on the way; BEL_EINVAL if that is past or too far to be represented;
 * or BEL_EIO if it could not be kept, and it is where it is all the same.
 */
BEL_CHECKED int bel__server_clock_advance(struct bel_server_clock *clock,
                                          struct bel_request_tracker *tracker, struct bel_wall to,
                                          uint64_t *turns, struct bel_next *next);

#endif
