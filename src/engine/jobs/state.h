/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_JOBS_STATE_H
#define BEL_ENGINE_JOBS_STATE_H

/*
 * state - what the engine knows of its jobs in memory, besides engine->job_marks: how far it is
 * with the work in the store, and when there is more. All of it follows from the store.
 */

#include "engine/rows/key.h"
#include "engine/state/timer_events.h"

#include <stdbool.h>
#include <stdint.h>

struct bel_submission;
struct bel_topic_state;

struct bel_jobs {
    struct bel_timer_events events; /* the engine's own reactions, and those of jobs */
    uint32_t work_max;              /* units of work in one turn; tests may set another number */
    uint32_t left;                  /* units that this turn may still use */
    bool has_work;                  /* there may be rows in JOB_WORK to work on */
    struct bel_key from;            /* where the walk through JOB_WORK continues */
    uint64_t retry;                 /* engine time before which no work is tried */
    uint64_t next_time;    /* of the first row in JOB_TIMES, engine ms, or earlier; or BEL_NEVER */
    uint64_t next_sweep;   /* when the first ended job is to be removed, wall ms, or earlier */
    uint64_t retention_ms; /* of ended jobs */
    struct bel_submission *submissions; /* list */
    struct bel_submission *follower;    /* of `then`, being submitted; or NULL */
    struct bel_key follower_parent;     /* of its parent, which has ended */
    struct bel_submission *occurrence;  /* of a recurring job, being submitted; or NULL */
    struct bel_key occurrence_key;      /* of its timer */
    struct bel_topic_state *topic;      /* of occurrences; or NULL */
    uint32_t topics_seen;               /* number of topics when it was looked for */
    uint64_t plans_from; /* number of the job from which a search for recurring jobs that are over
                            goes on; BEL_NEVER: none */
};

/* Units of work, each a third of a microsecond. */
enum {
    BEL_UNITS_ROW = 1,
    BEL_UNITS_EDGE = 3,
    BEL_UNITS_TIMER = 15, /* a timer that is added, moved, ended or removed */
};

#endif
