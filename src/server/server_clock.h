/* SPDX-License-Identifier: MIT */
#ifndef BEL_SERVER_SERVER_CLOCK_H
#define BEL_SERVER_SERVER_CLOCK_H

/*
 * server_clock - the clock of the turns, read once per turn: the system's, or a virtual time that
 * only changes when a client advances it.
 *
 * An advance takes a turn at each due time on the way, in order, as if the time had passed:
 *
 *     now ----> due ----> due ----------> due ----> to
 *         turn      turn           turn        turn
 *
 * Virtual time is stored in the file virtual-clock of the data directory, so that it does not go
 * back after a restart. A new one starts at the system's time. Waits of clients use real time.
 */

#include "belfry/backend.h"
#include "session/request_tracker.h"

#include <stdbool.h>

enum {
    BEL_SERVER_CLOCK_TURNS_MAX = 1000000, /* most turns of one advance */
    BEL_SERVER_CLOCK_PATH_BYTES = 1100,
};

struct bel_server_clock {
    struct bel_now now;             /* read only */
    const struct bel_clock *system; /* borrowed: the system clock */
    bool is_virtual;
    bool is_waiting; /* read only: the last advance stopped because it was not settled */
    /* Returns whether all effects of the turns so far are there; virtual time stands still until
     * then. NULL: always. Set after init. */
    bool (*is_settled)(void *context);
    void *context;
    /* Stores the virtual time elsewhere than in a file. `is_settled` tells when it is there. May be
     * NULL. */
    void (*store)(void *context, struct bel_wall time);
    void *store_context;
    struct bel_wall stored;                 /* private: the last time that was passed to `store` */
    char path[BEL_SERVER_CLOCK_PATH_BYTES]; /* private: file of the virtual time; empty: none */
};

/* Initializes a clock with the system's time. */
void bel__server_clock_init(struct bel_server_clock *clock, const struct bel_clock *system);

/* Initializes a virtual clock, stored in `folder`; NULL: not stored. Returns 0; BEL_EIO; or
 * BEL_ECORRUPT if the file has no valid time. */
BEL_CHECKED int bel__server_clock_init_virtual(struct bel_server_clock *clock,
                                               const struct bel_clock *system, const char *folder);

/* Writes the virtual time to another folder, which is a backup; its path has at most 1,023 bytes.
 * Does nothing for the system's time. Returns 0 or BEL_EIO. */
BEL_CHECKED int bel__server_clock_copy(const struct bel_server_clock *clock, const char *folder);

/* Reads the clock and sets `now`; virtual time stays as it is. */
void bel__server_clock_read(struct bel_server_clock *clock);

/* Reads the clock as bel__server_clock_read(), again if the process was interrupted between the
 * reads of boot and wall clock. The difference of the two decides which due times users see. */
void bel__server_clock_read_closely(struct bel_server_clock *clock);

/*
 * Advances virtual time towards `to` in turns, at most `*turns` of them and for a few ms of real
 * time. Sets `*turns` to the number taken, and when the next turn is needed. Returns 0 if the time
 * is reached and nothing more is due; BEL_EBUSY if it is not reached yet; BEL_EINVAL if `to` is in
 * the past or cannot be represented; or BEL_EIO if the time could not be stored; it is advanced
 * anyway.
 */
BEL_CHECKED int bel__server_clock_advance(struct bel_server_clock *clock,
                                          struct bel_request_tracker *tracker, struct bel_wall to,
                                          uint64_t *turns, struct bel_next *next);

#endif
