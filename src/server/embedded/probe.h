/* SPDX-License-Identifier: MIT */
#ifndef BEL_SERVER_EMBEDDED_PROBE_H
#define BEL_SERVER_EMBEDDED_PROBE_H

/*
 * probe - measures how long the disk takes to sync, before the server starts. The result decides
 * what waits for a sync:
 *
 *     up to BEL_PROBE_LOOP_US     the loop: no thread switches, and the commands that arrive
 *                                 meanwhile form the next batch
 *     more                        a thread: reads, pings and new clients do not wait
 *
 * With a sync of 1 ms in the loop, a command that changes nothing takes at most 1 ms longer. If the
 * disk becomes slow later, the engine lets a thread take over: BEL_ENGINE_SYNC_ADAPTIVE.
 */

#include "belfry/error.h"

#include <stdint.h>

enum {
    BEL_PROBE_LOOP_US = 1000,
    BEL_PROBE_SYNCS = 7, /* the median is used */
};

/* Creates the folder if necessary, and writes and syncs a file of 4 KiB without a name in it
 * BEL_PROBE_SYNCS times. Returns 0 and sets `*out_us` to the median in microseconds, or BEL_EIO. */
BEL_CHECKED int bel__probe_sync(const char *folder, uint64_t *out_us);

#endif
