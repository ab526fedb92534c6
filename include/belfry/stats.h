/* SPDX-License-Identifier: MIT */
#ifndef BEL_STATS_H
#define BEL_STATS_H

/*
 * stats - what an engine counts while it is open, for metrics and alarms.
 */

#include <stdbool.h>
#include <stdint.h>

/* Why a nominal time of a plan has made no occurrence. */
enum bel_engine_skip {
    BEL_ENGINE_SKIP_MISFIRE, /* it came too late, and MISFIRE did not choose it */
    BEL_ENGINE_SKIP_OVERLAP, /* OVERLAP skip: the one before is not finished */
    BEL_ENGINE_SKIP_QUEUE,   /* OVERLAP queue, and the queue is full */
    BEL_ENGINE_SKIP_KNOWN,   /* there was one of that id already */
    BEL_ENGINE_SKIPS,
};

/* What has happened since an engine was opened. */
struct bel_engine_stats {
    uint64_t leases_lost;   /* that ended without a word: crashes */
    uint64_t leases_lapsed; /* that did soon after the engine was opened, which counts no crash */
    uint64_t skips[BEL_ENGINE_SKIPS];
    uint64_t clock_steps; /* the wall clock was set */
    bool is_disk_low;     /* now: the disk is nearly full, and who schedules is refused */
};

#endif
