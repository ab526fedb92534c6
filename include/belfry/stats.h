/* SPDX-License-Identifier: MIT */
#ifndef BEL_STATS_H
#define BEL_STATS_H

/*
 * stats - counters of an open engine, for metrics and alerts.
 */

#include "belfry/pressure.h"

#include <stdbool.h>
#include <stdint.h>

/* Why a nominal time of a plan produced no occurrence. */
enum bel_engine_skip {
    BEL_ENGINE_SKIP_MISFIRE, /* missed, and the misfire policy did not choose it */
    BEL_ENGINE_SKIP_OVERLAP, /* overlap policy skip: the previous occurrence is unfinished */
    BEL_ENGINE_SKIP_QUEUE,   /* overlap policy queue: the queue is full */
    BEL_ENGINE_SKIP_KNOWN,   /* an occurrence with that id already existed */
    BEL_ENGINE_SKIPS,
};

/* Counted since the engine was opened. */
struct bel_engine_stats {
    uint64_t leases_lost;   /* expired without a report from the worker: crashes */
    uint64_t leases_lapsed; /* expired soon after the engine was opened; not counted as crashes */
    uint64_t skips[BEL_ENGINE_SKIPS];
    uint64_t clock_steps;               /* times the wall clock was set */
    bool is_disk_low;                   /* now: the disk is nearly full, and SCHEDULE is refused */
    uint64_t dead;                      /* timers that became dead */
    uint64_t expired;                   /* timers that expired before they were claimed */
    struct bel_pressure_state pressure; /* now: as of the last sample */
};

#endif
