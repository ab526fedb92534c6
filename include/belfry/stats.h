/* SPDX-License-Identifier: MIT */
#ifndef BEL_STATS_H
#define BEL_STATS_H

/*
 * stats - counters of an open engine, for metrics and alerts.
 */

#include "belfry/pressure.h"
#include "belfry/view.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    BEL_SPAN_BUCKETS = 24,
    BEL_OVERLAP_JOB_BYTES = 104, /* of the id of a recurring job, with its 0 */
};

/* How long something took, as a histogram. Bucket 0 counts spans below 1 ms, bucket i those from
 * 2^(i-1) ms to below 2^i ms, and the last one all longer spans. */
struct bel_spans {
    uint64_t counts[BEL_SPAN_BUCKETS];
    uint64_t sum_ms;
};

/* How often something happened in the current minute and the one before. */
struct bel_rate {
    uint64_t minute; /* number of the current minute, in engine time */
    uint32_t current, before;
};

/* What workers did with the timers of an engine, a topic or a group, since the engine was opened.
 * `running` is now. */
struct bel_work {
    uint64_t claimed;
    uint64_t done;           /* acknowledged */
    uint64_t failed;         /* FAIL */
    uint64_t released;       /* RELEASE */
    uint64_t lost;           /* leases that expired */
    uint64_t withdrawn;      /* cancelled, replaced or deleted while a worker had them */
    uint64_t running;        /* leases */
    struct bel_spans waited; /* from due to claim, of each claim */
    struct bel_spans ran;    /* from claim to acknowledgement, of `done`, unless the engine was
                                closed in between */
    struct bel_rate claims, dones, fails;
};

/* The work of a group or of a resource. An empty name: all groups of the topic, or all resources,
 * without numbers of their own. */
struct bel_named_work {
    struct bel_work work;
    const struct bel_named_work *next; /* of the same topic, or resource; or NULL */
    struct bel_view name;
};

/* Why a nominal time of a plan produced no occurrence. */
enum bel_engine_skip {
    BEL_ENGINE_SKIP_MISFIRE, /* missed, and the misfire policy did not choose it */
    BEL_ENGINE_SKIP_OVERLAP, /* overlap policy skip: the previous occurrence is unfinished */
    BEL_ENGINE_SKIP_QUEUE,   /* overlap policy queue: the queue is full, or was dropped */
    BEL_ENGINE_SKIP_KNOWN,   /* an occurrence with that id already existed */
    BEL_ENGINE_SKIP_PAUSED,  /* the recurring job is paused */
    BEL_ENGINE_SKIPS,
};

enum {
    BEL_OVERLAPS_KEPT = 16,
};

/* A nominal time of a recurring job at which no job was made, because the one before was
 * unfinished. */
struct bel_engine_overlap {
    char job[BEL_OVERLAP_JOB_BYTES]; /* id of the recurring job, ends in 0 */
    uint64_t in_a_row;               /* such times since the last job was made, this one included */
};

struct bel_engine_overlaps {
    uint64_t count;                                    /* since the engine was opened */
    struct bel_engine_overlap last[BEL_OVERLAPS_KEPT]; /* number n is at n % BEL_OVERLAPS_KEPT */
};

/* Counted since the engine was opened. */
struct bel_engine_stats {
    uint64_t leases_lost;   /* expired without a report from the worker: crashes */
    uint64_t leases_lapsed; /* expired soon after the engine was opened; not counted as crashes */
    uint64_t skips[BEL_ENGINE_SKIPS];
    struct bel_engine_overlaps overlaps; /* of recurring jobs */
    uint64_t clock_steps;                /* times the wall clock was set */
    bool is_disk_low;                    /* now: the disk is nearly full, and SCHEDULE is refused */
    bool is_sync_in_thread;              /* now: replies wait for a thread that syncs */
    uint64_t slow_sync_us;               /* the sync after which the thread took over; or 0 */
    uint64_t dead;                       /* timers that became dead */
    uint64_t expired;                    /* timers that expired before they were claimed */
    struct bel_pressure_state pressure;  /* now: as of the last sample */
    struct bel_work work;                /* of all topics */
    const struct bel_named_work *resources; /* of the resources that timers name; a list */
};

#endif
