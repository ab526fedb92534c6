/* SPDX-License-Identifier: MIT */
#ifndef BEL_SERVER_PROBE_H
#define BEL_SERVER_PROBE_H

/*
 * probe - how long the disk takes to sync, tried out before the server starts, because that
 * decides who waits for it:
 *
 *     up to BEL_PROBE_LOOP_US     the loop: no switch of threads, and what comes meanwhile is
 *                                 the next batch
 *     more                        a thread: reads, pings and new clients do not wait for it
 *
 * The border is where waiting begins to be felt: with a sync of 1 ms in the loop, a client whose
 * command changes nothing waits 1 ms more at worst.
 */

#include "belfry/error.h"

#include <stdint.h>

enum {
    BEL_PROBE_LOOP_US = 1000,
    BEL_PROBE_SYNCS = 7, /* the one in the middle counts */
};

/* Makes the folder if it is not there, writes and syncs 4 KiB in it a few times, and removes the
 * file. Returns 0 and sets `*out` to how long one took, or BEL_EIO. */
BEL_CHECKED int bel__probe_sync(const char *folder, uint64_t *out_us);

#endif
