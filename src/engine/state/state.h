/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_STATE_H
#define BEL_ENGINE_STATE_STATE_H

/*
 * state - the parts of an engine in one struct. Calls go downwards only:
 *
 *     reactions     what follows from a change of a timer
 *     by time       retention  plan_ring ---> expiry
 *     plans         occurrence ---> plan ---> plan_rule, plan_bounds
 *     timers        timer: change one ---> timer_lookup: find one
 *     memory        ready, lease ---> resource ---> wait ---> hot; resource_row, limits
 *                   wakes  topic  topic_row  answers  dependency  times  pressure  job_marks
 *                   work
 *     order         picker, picker_check ---> share
 *
 * timer and lease report their changes to reactions, through a table: timer_events.h.
 */

#include "belfry/backend.h"
#include "belfry/stats.h"
#include "belfry/zone.h"
#include "core/entropy.h"
#include "engine/rows/key.h"
#include "engine/rows/rows.h"
#include "engine/state/answers.h"
#include "engine/state/expiry.h"
#include "engine/state/job_marks.h"
#include "engine/state/lease.h"
#include "engine/state/plan_bounds.h"
#include "engine/state/pressure.h"
#include "engine/state/request_list.h"
#include "engine/state/resource.h"
#include "engine/state/timer_events.h"
#include "engine/state/times.h"
#include "engine/state/topic.h"
#include "engine/state/wait.h"
#include "engine/state/wakes.h"
#include "engine/state/work.h"
#include "store/store.h"

struct bel_agenda_run;
struct bel_jobs;

/* The progress of engine/migration.c. */
struct bel_migration {
    bool is_complete;
    struct bel_key next; /* of the next timer */
    uint64_t time;       /* when to continue, in engine time */
    uint32_t rows_max;   /* timers looked at in one turn */
};

struct bel_engine {
    struct bel_backend backend; /* first */

    /* Set when the engine is opened. */
    struct bel_store *store;
    struct bel_entropy *entropy;           /* borrowed */
    struct bel_zones *zones;               /* borrowed; NULL: the only zone is UTC */
    const struct bel_timer_events *events; /* callbacks for changes of timers */
    uint32_t payload_bytes_max;            /* of a timer */
    struct bel_job_limits job_limits;      /* 0: the parser's default */
    uint32_t ready_max;                    /* ready timers of a topic that may be in memory */
    uint32_t bulk_changes_max;             /* by PURGE or REVIVE in one turn */
    uint32_t rows_max;                     /* read and written by the requests of one turn */
    struct bel_siphash_key alias_keys[2];  /* for all hashes in keys */

    /* Time. */
    struct bel_times now;
    uint32_t wall_rest_ns; /* ns since the current wall millisecond began; 0: unknown */
    uint64_t saved_open;   /* open time of the last write of the times */

    /* Timers and related state. */
    struct bel_topics topics;
    struct bel_wakes wakes;
    struct bel_leases leases;
    struct bel_resources resources;
    struct bel_plan_bounds bounds;
    struct bel_expiry expiry;
    struct bel_migration migration;
    struct bel_job_marks job_marks;
    struct bel_jobs *jobs; /* of engine/jobs */
    struct bel_engine_stats stats;
    struct bel_depth_scan depth_scan;
    uint32_t work_topics, work_groups, work_resources; /* that have numbers of their own */
    struct bel_work_names resource_work;

    /* Requests, in the order of their stages. */
    struct bel_request_list submitted;
    struct bel_request_list bulk;   /* unfinished bulk requests, such as purge and revive */
    struct bel_agenda_run *agendas; /* those among them that go on in the next turn */
    struct bel_waiting waiting;
    struct bel_answers answers;

    /* This turn. */
    struct bel_rows rows;
    uint32_t load_left;                    /* rows that this turn may still load */
    uint64_t rows_end;                     /* of bel__store_touched(): no further request */
    bool is_behind;                        /* more work is due than one turn does */
    bool is_full;                          /* the batch takes no more requests */
    bool has_holds;                        /* some requests are held back: */
    struct bel_mono add_from, change_from; /* until then; 0: not held back */
    int broken; /* an error after which the state cannot be trusted, or 0 */
};

/* Returns whether the requests of this turn may read and write more rows. */
static inline bool bel__has_rows_left(const struct bel_engine *engine)
{
    return bel__store_touched(engine->store) < engine->rows_end;
}

/* Returns whether a request that has changed some of its timers is to go on in the next turn. */
static inline bool bel__must_break_off(const struct bel_engine *engine)
{
    return engine->rows.has_changed && !bel__has_rows_left(engine);
}

/* Counts work of a request that the store does not see, as so many rows. */
static inline void bel__count_rows(struct bel_engine *engine, uint64_t rows)
{
    engine->rows_end -= rows < engine->rows_end ? rows : engine->rows_end;
}

/* Returns whether the store asks to hold back additions. What the engine does by itself in slices
 * then waits, too. */
static inline bool bel__is_held(const struct bel_engine *engine)
{
    return engine->add_from.ns > engine->now.real.ns;
}

#endif
