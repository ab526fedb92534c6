/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_OFFLINE_INSPECT_JOBS_H
#define BEL_ENGINE_OFFLINE_INSPECT_JOBS_H

/*
 * inspect_jobs - the part of the check that knows jobs.
 */

#include "belfry/view.h"
#include "core/why.h"
#include "engine/rows/key.h"

#include <stdbool.h>
#include <stdint.h>

struct bel_engine;
struct bel_record;

/* Rows that were met, and rows that other rows ask for. Both are equal in the end. */
struct bel_jobs_walk {
    uint64_t jobs, ids; /* without ids that are reserved */
    uint64_t chunks;    /* of texts */
    uint64_t tasks, tasks_wanted;
    uint64_t edges, edges_wanted;
    uint64_t works, works_wanted;
    uint64_t times, times_wanted;
};

/* Checks a row of a table of jobs. Returns 0; an error of the store; or BEL_ECORRUPT, and sets
 * `*out` to what is wrong with the row. */
BEL_CHECKED int bel__inspect_job_row(struct bel_engine *engine, const struct bel_key *key,
                                     struct bel_view value, struct bel_jobs_walk *walk,
                                     const char **out);

/* What is true of a timer that is a task. */
struct bel_task_standing {
    bool is_counted; /* the numbers of its topic include it */
    bool is_named;   /* its id has an alias */
};

/* Checks that a task's timer is the one that its job knows. */
BEL_CHECKED int bel__inspect_task_timer(struct bel_engine *engine, const struct bel_key *key,
                                        const struct bel_record *record,
                                        struct bel_task_standing *out_standing, const char **out);

/* Checks that all rows were met that others ask for. */
BEL_CHECKED int bel__inspect_jobs_end(const struct bel_jobs_walk *walk, struct bel_why *why);

#endif
